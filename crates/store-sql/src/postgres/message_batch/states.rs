//! Rows of message states.

use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::column;
use crate::message_batch::StateWrite;
use crate::row::StateRow;

macro_rules! columns {
    () => {
        "tenant_id, id, status, wait, held, due_at, owner, fence, version, revision, expires_at, \
         updated_at, channel, connection_id, agenda, provider, detail, history"
    };
}

/// An array per column.
macro_rules! arrays {
    () => {
        "$1::bigint[], $2::uuid[], $3::smallint[], $4::smallint[], $5::smallint[], $6::bigint[], \
         $7::bigint[], $8::bigint[], $9::bigint[], $10::bigint[], $11::bigint[], $12::bigint[], \
         $13::smallint[], $14::uuid[], $15::bigint[], $16::text[], $17::text[], $18::bytea[]"
    };
}

#[rustfmt::skip]
pub(super) const INSERT: &str = concat!(r"
    INSERT INTO states (", columns!(), r")
    SELECT *
    FROM unnest(", arrays!(), r")");

/// Leaves a state alone that another node has written meanwhile, and one whose receipt names another message by now.
#[rustfmt::skip]
pub(super) const UPDATE: &str = concat!(r"
    UPDATE states s
    SET status = u.status, wait = u.wait, held = u.held, due_at = u.due_at, owner = u.owner, fence = u.fence,
        version = u.version, revision = u.revision, expires_at = u.expires_at, updated_at = u.updated_at,
        channel = u.channel, connection_id = u.connection_id, agenda = u.agenda, provider = u.provider,
        detail = u.detail, history = u.history
    FROM unnest(", arrays!(), r", $19::uuid[], $20::text[])
      AS u (", columns!(), r#", named_by, reference)
    WHERE s.tenant_id = u.tenant_id
      AND s.id = u.id
      AND s.revision = u.revision - 1
      AND (u.named_by IS NULL OR u.id = (
          SELECT r.message_id
          FROM provider_refs r
          WHERE r.tenant_id = u.tenant_id
            AND r.connection_id = u.named_by
            AND r.reference = u.reference COLLATE "C"
      ))
    RETURNING s.tenant_id, s.id"#);

/// The values of [`INSERT`], column by column.
pub(super) struct StateColumns<'a> {
    keys: (Vec<i64>, Vec<Uuid>),
    small: [Vec<i16>; 4],
    waits: [Vec<Option<i64>>; 3],
    numbers: [Vec<i64>; 5],
    connections: Vec<Uuid>,
    texts: [Vec<&'a str>; 2],
    histories: Vec<&'a [u8]>,
}

impl<'a> StateColumns<'a> {
    pub(super) fn new(states: &'a [StateWrite<'_>]) -> Self {
        let small = |value: fn(&StateRow) -> i16| column(states, |s| value(&s.row));
        let number = |value: fn(&StateRow) -> i64| column(states, |s| value(&s.row));
        Self {
            keys: (column(states, |s| s.tenant), column(states, |s| s.id)),
            small: [small(|r| r.status), small(|r| r.wait), small(|r| r.held), small(|r| r.channel)],
            waits: [column(states, |s| s.row.due_at), column(states, |s| s.row.owner), column(states, |s| s.agenda)],
            numbers: [
                number(|r| r.fence),
                number(|r| r.version),
                column(states, |s| s.revision),
                number(|r| r.expires_at),
                number(|r| r.updated_at),
            ],
            connections: column(states, |s| s.row.connection_id),
            texts: [column(states, |s| s.row.provider.as_str()), column(states, |s| s.row.detail.as_str())],
            histories: column(states, |s| s.history.as_slice()),
        }
    }

    pub(super) fn params(&self) -> [&(dyn ToSql + Sync); 18] {
        let [status, wait, held, channel] = &self.small;
        let [fence, version, revision, expires_at, updated_at] = &self.numbers;
        let [due_at, owner, agenda] = &self.waits;
        let [provider, detail] = &self.texts;
        [
            &self.keys.0,
            &self.keys.1,
            status,
            wait,
            held,
            due_at,
            owner,
            fence,
            version,
            revision,
            expires_at,
            updated_at,
            channel,
            &self.connections,
            agenda,
            provider,
            detail,
            &self.histories,
        ]
    }
}
