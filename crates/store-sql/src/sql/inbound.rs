//! Inbound messages, and replies to them.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::message::Message;
use nuncio_domain::{AddressId, Channel, ContactId, Recipient, TenantId, Timestamp, limits};
use nuncio_store::{AddressRepo as _, InboundRepo, NewInbound, Result, SpoolRepo as _, SuppressionRepo as _};
use sqlx::QueryBuilder;

use super::{Db, SqlTx, dialect};
use crate::message_batch::{EncodedMessage, StateWrite, spool};
use crate::row::{corrupt, of_contact};

#[async_trait]
impl InboundRepo for SqlTx {
    async fn insert_inbound(&mut self, inbound: &NewInbound) -> Result<bool> {
        let (tenant, id) = (inbound.message.tenant, inbound.message.id);
        let route = &inbound.message.state.route;
        let seen = self
            .run(sql!(
                r"
                INSERT INTO inbound_keys (tenant_id, connection_id, provider_key, message_id)
                VALUES ($1, $2, $3, $4)
                ON CONFLICT DO NOTHING",
                [tenant, route.connection, &inbound.provider_key, id]
            ))
            .await?;
        if seen == 0 {
            return Ok(false);
        }
        let at = id.created_at();
        let (address, contact) = self.ensure_address(inbound, at).await?;
        let conversation = inbound.is_proven && self.mark_inbound(tenant, address, contact, route.channel, inbound.written_at).await?;
        let mut encoded = EncodedMessage::received(inbound.message.clone(), conversation)?;
        encoded.fixed.address_id = address.uuid();
        // Whoever lists messages reads their rows whole, and an email can be large.
        let chunks = spool(&mut encoded)?;
        for (index, chunk) in chunks.iter().enumerate() {
            self.insert_spool_chunk(tenant, inbound.message.id, index as i32, chunk, at).await?;
        }
        self.insert_message(&encoded).await?;
        let stored = encoded.fixed.request.len() + chunks.iter().map(Vec::len).sum::<usize>();
        self.count_stored(tenant.0, stored as i64).await?;
        Ok(true)
    }

    async fn insert_reply(&mut self, message: &Message) -> Result<()> {
        let encoded = EncodedMessage::waiting(message.clone())?;
        self.insert_message(&encoded).await?;
        self.count_stored(encoded.fixed.tenant_id, encoded.fixed.request.len() as i64).await
    }
}

impl SqlTx {
    async fn ensure_address(&mut self, inbound: &NewInbound, at: Timestamp) -> Result<(AddressId, ContactId)> {
        let tenant = inbound.message.tenant;
        if let Some(known) = self.find_address(tenant, &inbound.from).await? {
            return Ok(known);
        }
        let made = self
            .run(sql!(
                r"
                INSERT INTO addresses (tenant_id, id, kind, identifier, contact_id, created_at)
                VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT (tenant_id, kind, identifier) DO NOTHING",
                [tenant, inbound.new_address, inbound.from.kind, &inbound.from.identifier, inbound.new_contact, at]
            ))
            .await?;
        if made == 0 {
            // Somebody else made it meanwhile.
            let found = self.find_address(tenant, &inbound.from).await?;
            return found.ok_or_else(|| corrupt("addresses", "a row that is there and is not"));
        }
        self.run(sql!(
            r"
                INSERT INTO contacts (tenant_id, id, country, created_at, updated_at)
                VALUES ($1, $2, $3, $4, $4)",
            [tenant, inbound.new_contact, &inbound.country, at]
        ))
        .await?;
        let mark = Recipient { kind: inbound.from.kind, identifier: inbound.mark.clone() };
        self.rename_suppressions(tenant, &mark, &inbound.from.identifier).await?;
        Ok((inbound.new_address, inbound.new_contact))
    }

    /// Notes when somebody wrote, and answers whether a conversation begins: the contact never wrote by this channel, or is heard
    /// again after a long silence.
    async fn mark_inbound(
        &mut self,
        tenant: TenantId,
        address: AddressId,
        contact: ContactId,
        channel: Channel,
        at: Timestamp,
    ) -> Result<bool> {
        // The row first, without changing it; its lock makes two messages that come together take turns.
        self.run(sql!(
            r"
                INSERT INTO channel_metrics (tenant_id, address_id, channel, successes, failures,
                    delivery_ms, timed)
                VALUES ($1, $2, $3, 0, 0, 0, 0)
                ON CONFLICT (tenant_id, address_id, channel) DO NOTHING",
            [tenant, address, channel]
        ))
        .await?;
        let mut query = QueryBuilder::<Db>::new("SELECT last_inbound_at FROM channel_metrics WHERE tenant_id = ");
        query.push_bind(tenant.0).push(" AND address_id = ").push_bind(address.uuid());
        query.push(" AND channel = ").push_bind(channel.number()).push(dialect::LOCK);
        let (own,): (Option<i64>,) = self.one(query.build()).await?;
        let (of_contact,): (Option<i64>,) = self
            .one(sql!(
                concat!(
                    r"
                SELECT MAX(last_inbound_at)
                FROM channel_metrics
                WHERE tenant_id = $1
                  AND channel = $3
                  AND address_id IN (SELECT id FROM addresses WHERE tenant_id = $1 AND ",
                    of_contact!(),
                    ")"
                ),
                [tenant, contact, channel]
            ))
            .await?;
        if own.is_none_or(|own| own < at.millis()) {
            self.run(sql!(
                r"
                    UPDATE channel_metrics
                    SET last_inbound_at = $4
                    WHERE tenant_id = $1 AND address_id = $2 AND channel = $3",
                [tenant, address, channel, at]
            ))
            .await?;
        }
        let before = own.max(of_contact).map(Timestamp::from_millis);
        Ok(before.is_none_or(|before| at.since(before) >= limits::CONVERSATION))
    }

    /// Inserts a message and its first event, outside the hot path.
    async fn insert_message(&mut self, encoded: &EncodedMessage) -> Result<()> {
        let fixed = &encoded.fixed;
        self.run(sql!(
            r"
                INSERT INTO messages (tenant_id, id, direction, message_type, sender_id, address_id,
                    recipient, sent_from, idempotency_key, spooled, request)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            [
                fixed.tenant_id, fixed.id, fixed.direction, fixed.message_type, fixed.sender_id, fixed.address_id, &fixed.recipient,
                &fixed.sent_from, &fixed.idempotency_key, fixed.spooled, &fixed.request
            ]
        ))
        .await?;
        let StateWrite { row, revision, agenda, history, .. } = self.writes.insert(encoded);
        self.write(sql!(
            r"
                INSERT INTO states (tenant_id, id, status, wait, held, due_at, owner, fence, version,
                    revision, expires_at, updated_at, channel, connection_id, agenda, provider, detail,
                    history)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18)",
            [
                fixed.tenant_id, fixed.id, row.status, row.wait, row.held, row.due_at, row.owner, row.fence, row.version, revision,
                row.expires_at, row.updated_at, row.channel, row.connection_id, agenda, &row.provider, &row.detail, history
            ]
        ))
        .await
    }
}
