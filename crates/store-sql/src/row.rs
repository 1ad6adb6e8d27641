//! Converts between rows and domain types, for both databases.

use std::hash::Hasher as _;
use std::sync::Arc;

use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::Change;
use nuncio_domain::message::{Detail, Direction, HeldReason, Message, NodeId, Request, Route, State, Status, Wait};
use nuncio_domain::{AddressId, Channel, ConnectionId, MessageId, MessageType, SenderId, TenantId, Timestamp, limits};
pub(crate) use nuncio_store::Result;
use nuncio_store::{DueMessage, StoreError};
use siphasher::sip::SipHasher24;
use uuid::Uuid;

/// A struct that is read from a row: each field from the column of its name. `sqlx` has a derive for this, which would compile both
/// databases' drivers a second time.
macro_rules! from_row {
    ($(#[$attribute:meta])* $visible:vis struct $name:ident { $($field_visible:vis $field:ident: $type:ty,)* }) => {
        $(#[$attribute])*
        $visible struct $name {
            $($field_visible $field: $type,)*
        }

        impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for $name
        where
            &'static str: sqlx::ColumnIndex<R>,
            $($type: sqlx::Decode<'r, R::Database> + sqlx::Type<R::Database>,)*
        {
            fn from_row(row: &'r R) -> sqlx::Result<Self> {
                Ok(Self { $($field: row.try_get(stringify!($field))?,)* })
            }
        }
    };
}

/// A stored value that cannot be read.
pub(crate) fn corrupt(table: &'static str, what: impl std::fmt::Display) -> StoreError {
    StoreError::Corrupt { table, what: what.to_string() }
}

/// Reads the number that column `what` holds.
pub(crate) fn number<T>(read: impl Fn(i16) -> Option<T>, table: &'static str, what: &str, number: i16) -> Result<T> {
    read(number).ok_or_else(|| corrupt(table, format!("{what} {number}")))
}

pub(crate) fn json<T: serde::Serialize>(value: &T) -> Result<String> {
    serde_json::to_string(value).map_err(|e| StoreError::Other(Box::new(e)))
}

/// An identifier for one write of one resource; `n` is incremented by each. Never negative.
pub(crate) fn fingerprint(what: &[u8], id: Uuid, n: i64) -> i64 {
    let mut hasher = SipHasher24::new();
    hasher.write(what);
    hasher.write(id.as_bytes());
    hasher.write_i64(n);
    (hasher.finish() >> 1) as i64
}

from_row! {
    /// The changing columns of a message.
    #[derive(Clone, Debug)]
    pub(crate) struct StateRow {
        pub(crate) status: i16,
        pub(crate) wait: i16,
        pub(crate) held: i16,
        pub(crate) due_at: Option<i64>,
        pub(crate) owner: Option<i64>,
        pub(crate) fence: i64,
        pub(crate) version: i64,
        pub(crate) expires_at: i64,
        pub(crate) updated_at: i64,
        pub(crate) channel: i16,
        pub(crate) connection_id: Uuid,
        pub(crate) provider: String,
        pub(crate) detail: String,
    }
}

from_row! {
    /// The columns of a message that never change.
    #[derive(Clone, Debug)]
    pub(crate) struct FixedRow {
        pub(crate) tenant_id: i64,
        pub(crate) id: Uuid,
        pub(crate) direction: i16,
        pub(crate) message_type: i16,
        pub(crate) sender_id: Uuid,
        pub(crate) address_id: Uuid,
        pub(crate) recipient: String,
        pub(crate) sent_from: String,
        pub(crate) idempotency_key: Option<String>,
        pub(crate) spooled: i32,
        pub(crate) request: String,
    }
}

/// A whole message.
#[derive(Clone, Debug)]
pub(crate) struct MessageRow {
    pub(crate) fixed: FixedRow,
    pub(crate) state: StateRow,
}

impl<'r, R: sqlx::Row> sqlx::FromRow<'r, R> for MessageRow
where
    FixedRow: sqlx::FromRow<'r, R>,
    StateRow: sqlx::FromRow<'r, R>,
{
    fn from_row(row: &'r R) -> sqlx::Result<Self> {
        Ok(Self { fixed: FixedRow::from_row(row)?, state: StateRow::from_row(row)? })
    }
}

/// A query for [`DueRow`]s. Of the detail only this is asked, as text: a row that cannot be read must not spoil the others. No text in
/// it can look like this, since it is JSON.
macro_rules! select_due {
    () => {
        r#"
            SELECT s.tenant_id, s.id, s.fence, s.connection_id, s.wait, s.held, s.due_at, s.owner,
                s.expires_at, s.agenda, s.provider, m.spooled, s.detail LIKE '%"b":{%' AS bulk,
                s.detail LIKE '%"fb":{%' AS has_fallback
            FROM states s
            JOIN messages m ON m.tenant_id = s.tenant_id AND m.id = s.id"#
    };
}
pub(crate) use select_due;

from_row! {
    /// What the scanner needs of a message.
    #[derive(Clone, Debug)]
    pub(crate) struct DueRow {
        pub(crate) tenant_id: i64,
        pub(crate) id: Uuid,
        fence: i64,
        pub(crate) connection_id: Uuid,
        pub(crate) wait: i16,
        held: i16,
        pub(crate) due_at: Option<i64>,
        pub(crate) owner: Option<i64>,
        pub(crate) expires_at: i64,
        pub(crate) agenda: Option<i64>,
        pub(crate) provider: String,
        spooled: i32,
        pub(crate) bulk: bool,
        pub(crate) has_fallback: bool,
    }
}

/// That an address is of contact `$2`. The first address of a contact has its identifier, and needs no entry in the index of the others.
macro_rules! of_contact {
    () => {
        r"
            id IN (
                SELECT id
                FROM addresses
                WHERE tenant_id = $1 AND id = $2 AND contact_id = $2
                UNION ALL
                SELECT id
                FROM addresses
                WHERE tenant_id = $1 AND contact_id <> id AND contact_id = $2
            )"
    };
}
pub(crate) use of_contact;

const MESSAGES: &str = "messages";

const fn wait_parts(wait: Wait) -> (i16, i16, Option<i64>, Option<i64>) {
    match wait {
        Wait::Nothing => (0, 0, None, None),
        Wait::Attempt { due_at } => (1, 0, Some(due_at.millis()), None),
        Wait::Owned { node } => (2, 0, None, Some(node.0)),
        Wait::Receipt { deadline } => (3, 0, Some(deadline.millis()), None),
        Wait::Held { reason, deadline } => (4, reason.number(), Some(deadline.millis()), None),
    }
}

fn wait(wait: i16, held: i16, due_at: Option<i64>, owner: Option<i64>) -> Result<Wait> {
    let due = due_at.map(Timestamp::from_millis);
    match (wait, due, owner) {
        (0, None, None) => Ok(Wait::Nothing),
        (1, Some(due_at), None) => Ok(Wait::Attempt { due_at }),
        (2, None, Some(node)) => Ok(Wait::Owned { node: NodeId(node) }),
        (3, Some(deadline), None) => Ok(Wait::Receipt { deadline }),
        (4, Some(deadline), None) => {
            let reason = HeldReason::from_number(held).ok_or_else(|| corrupt(MESSAGES, format!("held {held}")))?;
            Ok(Wait::Held { reason, deadline })
        }
        other => Err(corrupt(MESSAGES, format!("wait, due_at, owner {other:?}"))),
    }
}

impl StateRow {
    pub(crate) fn encode(state: &State) -> Result<Self> {
        let (wait, held, due_at, owner) = wait_parts(state.wait);
        Ok(Self {
            status: state.status.number(),
            wait,
            held,
            due_at,
            owner,
            fence: state.fence,
            version: state.version,
            expires_at: state.expires_at.millis(),
            updated_at: state.updated_at.millis(),
            channel: state.channel().number(),
            connection_id: state.route.connection.uuid(),
            provider: state.route.provider.clone(),
            detail: json(&state.detail)?,
        })
    }

    pub(crate) fn decode(self) -> Result<State> {
        let detail: Detail = serde_json::from_str(&self.detail).map_err(|e| corrupt(MESSAGES, format!("detail: {e}")))?;
        let channel = || Channel::from_number(self.channel).ok_or_else(|| corrupt(MESSAGES, format!("channel {}", self.channel)));
        Ok(State {
            status: Status::from_number(self.status).ok_or_else(|| corrupt(MESSAGES, format!("status {}", self.status)))?,
            wait: wait(self.wait, self.held, self.due_at, self.owner)?,
            fence: self.fence,
            version: self.version,
            expires_at: Timestamp::from_millis(self.expires_at),
            updated_at: Timestamp::from_millis(self.updated_at),
            route: Route {
                channel: detail.next_channel.map_or_else(channel, Ok)?,
                connection: ConnectionId::from_uuid(self.connection_id),
                provider: self.provider,
            },
            detail,
        })
    }
}

impl FixedRow {
    pub(crate) fn encode(message: &Message) -> Result<Self> {
        Ok(Self {
            tenant_id: message.tenant.0,
            id: message.id.uuid(),
            direction: message.direction.number(),
            message_type: message.message_type.number(),
            sender_id: message.sender.uuid(),
            address_id: message.address.uuid(),
            recipient: message.to.clone(),
            sent_from: message.from.clone(),
            idempotency_key: message.request.idempotency_key.clone(),
            spooled: 0,
            request: json(&*message.request)?,
        })
    }

    pub(crate) fn decode(self, state: State) -> Result<Message> {
        let mut request: Request = serde_json::from_str(&self.request).map_err(|e| corrupt(MESSAGES, format!("request: {e}")))?;
        request.idempotency_key = self.idempotency_key;
        Ok(Message {
            tenant: TenantId(self.tenant_id),
            id: MessageId::from_uuid(self.id),
            direction: Direction::from_number(self.direction).ok_or_else(|| corrupt(MESSAGES, format!("direction {}", self.direction)))?,
            message_type: MessageType::from_number(self.message_type)
                .ok_or_else(|| corrupt(MESSAGES, format!("message_type {}", self.message_type)))?,
            to: self.recipient,
            from: self.sent_from,
            sender: SenderId::from_uuid(self.sender_id),
            address: AddressId::from_uuid(self.address_id),
            request: Arc::new(request),
            state,
        })
    }
}

impl MessageRow {
    pub(crate) fn decode(self) -> Result<Message> {
        self.fixed.decode(self.state.decode()?)
    }
}

impl DueRow {
    pub(crate) fn decode(self) -> DueMessage {
        DueMessage {
            tenant: TenantId(self.tenant_id),
            id: MessageId::from_uuid(self.id),
            fence: self.fence,
            connection: ConnectionId::from_uuid(self.connection_id),
            wait: wait(self.wait, self.held, self.due_at, self.owner).ok(),
            expires_at: Timestamp::from_millis(self.expires_at),
            fallback_is_due: false,
            bulk: self.bulk,
            bytes: self.spooled.unsigned_abs() as usize * limits::SPOOL_THRESHOLD_BYTES,
        }
    }
}

/// The sequence of the first of `changes`, the last of which brought the message to `version`.
pub(crate) fn first_sequence(version: i64, changes: &[Change]) -> i64 {
    version - changes.len() as i64 + 1
}
