//! Invitations.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::invitation::{Invitation, InvitationStatus};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{AddressKind, InvitationId, PhoneNumberId, Recipient, Redacted, SenderId, TenantId, Timestamp};
use nuncio_store::{InvitationRepo, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::{Condition, List, any_of, of_tenant};
use super::{Db, SqlTx};
use crate::row::{corrupt, from_row, json};

const TABLE: &str = "invitations";

from_row! {
    struct InvitationRow {
        id: Uuid,
        version: i64,
        status: i16,
        token_hash: Vec<u8>,
        sealed: Vec<u8>,
        client_name: Option<String>,
        client_email: Option<String>,
        client_phone: Option<String>,
        number_id: Option<Uuid>,
        countries: String,
        sender_id: Option<Uuid>,
        expires_at: i64,
        viewed_at: Option<i64>,
        started_at: Option<i64>,
        completed_at: Option<i64>,
        updated_at: i64,
        walk: String,
    }
}

impl InvitationRow {
    fn decode(self) -> Result<Invitation> {
        Ok(Invitation {
            id: InvitationId::from_uuid(self.id),
            version: self.version,
            status: InvitationStatus::from_number(self.status).ok_or_else(|| corrupt(TABLE, format!("status {}", self.status)))?,
            token_hash: self.token_hash.try_into().map_err(|_| corrupt(TABLE, "token_hash length"))?,
            sealed: Redacted::new(self.sealed),
            client_name: self.client_name,
            client_email: self.client_email,
            client_phone: self.client_phone,
            number: self.number_id.map(PhoneNumberId::from_uuid),
            countries: serde_json::from_str(&self.countries).map_err(|e| corrupt(TABLE, e))?,
            sender: self.sender_id.map(SenderId::from_uuid),
            expires_at: Timestamp::from_millis(self.expires_at),
            viewed_at: self.viewed_at.map(Timestamp::from_millis),
            started_at: self.started_at.map(Timestamp::from_millis),
            completed_at: self.completed_at.map(Timestamp::from_millis),
            updated_at: Timestamp::from_millis(self.updated_at),
            progress: serde_json::from_str(&self.walk).map_err(|e| corrupt(TABLE, e))?,
        })
    }
}

/// When an open invitation must be processed.
fn due_at(invitation: &Invitation) -> Option<i64> {
    invitation.status.is_open().then_some(invitation.expires_at.millis())
}

macro_rules! columns {
    () => {
        "id, version, status, token_hash, sealed, client_name, client_email, client_phone, number_id, \
         countries, sender_id, expires_at, viewed_at, started_at, completed_at, updated_at, walk"
    };
}

const FIND: &str = concat!("SELECT ", columns!(), " FROM invitations WHERE tenant_id = $1 AND id = $2");

#[async_trait]
impl InvitationRepo for SqlTx {
    async fn insert_invitation(&mut self, tenant: TenantId, invitation: &Invitation) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO invitations (tenant_id, id, version, status, token_hash, sealed, client_name,
                    client_email, client_phone, number_id, countries, sender_id, expires_at, due_at,
                    viewed_at, started_at, completed_at, updated_at, walk)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                    $19)",
            [
                tenant.0,
                invitation.id.uuid(),
                invitation.version,
                invitation.status.number(),
                invitation.token_hash.as_slice(),
                invitation.sealed.expose(),
                &invitation.client_name,
                &invitation.client_email,
                &invitation.client_phone,
                invitation.number.map(|n| n.uuid()),
                json(&invitation.countries)?,
                invitation.sender.map(|s| s.uuid()),
                invitation.expires_at.millis(),
                due_at(invitation),
                invitation.viewed_at.map(Timestamp::millis),
                invitation.started_at.map(Timestamp::millis),
                invitation.completed_at.map(Timestamp::millis),
                invitation.updated_at.millis(),
                json(&invitation.progress)?
            ]
        ))
        .await
    }

    async fn find_invitation(&mut self, tenant: TenantId, id: InvitationId) -> Result<Option<Invitation>> {
        let row: Option<InvitationRow> = self.optional(sql!(FIND, [tenant.0, id.uuid()])).await?;
        row.map(InvitationRow::decode).transpose()
    }

    async fn find_invitation_by_token(&mut self, hash: &[u8; 32]) -> Result<Option<(TenantId, InvitationId)>> {
        let row: Option<(i64, Uuid)> =
            self.optional(sql!("SELECT tenant_id, id FROM invitations WHERE token_hash = $1", [hash.as_slice()])).await?;
        Ok(row.map(|(tenant, id)| (TenantId(tenant), InvitationId::from_uuid(id))))
    }

    async fn lock_invitation(&mut self, tenant: TenantId, id: InvitationId) -> Result<Option<Invitation>> {
        // An update that changes nothing locks the row on both databases. What is read after it is what the last holder of the lock wrote.
        self.run(sql!("UPDATE invitations SET version = version WHERE tenant_id = $1 AND id = $2", [tenant.0, id.uuid()])).await?;
        self.find_invitation(tenant, id).await
    }

    async fn update_invitation(&mut self, tenant: TenantId, invitation: &Invitation) -> Result<()> {
        self.write(sql!(
            r"
                UPDATE invitations
                SET version = $3, status = $4, client_name = $5, client_email = $6, client_phone = $7,
                    sender_id = $8, due_at = $9, viewed_at = $10, started_at = $11, completed_at = $12,
                    updated_at = $13, walk = $14
                WHERE tenant_id = $1 AND id = $2",
            [
                tenant.0,
                invitation.id.uuid(),
                invitation.version,
                invitation.status.number(),
                &invitation.client_name,
                &invitation.client_email,
                &invitation.client_phone,
                invitation.sender.map(|s| s.uuid()),
                due_at(invitation),
                invitation.viewed_at.map(Timestamp::millis),
                invitation.started_at.map(Timestamp::millis),
                invitation.completed_at.map(Timestamp::millis),
                invitation.updated_at.millis(),
                json(&invitation.progress)?
            ]
        ))
        .await
    }

    async fn list_invitations(
        &mut self,
        tenant: TenantId,
        statuses: &[InvitationStatus],
        now: Timestamp,
        page: PageRequest,
    ) -> Result<Page<Invitation>> {
        let filter = any_of("", statuses.iter().map(|s| s.number())).map(|in_any| {
            // An open invitation that ended is expired, though that may not have been written yet.
            Box::new(move |query: &mut QueryBuilder<Db>| {
                query.push("CASE WHEN due_at <= ").push_bind(now.millis()).push(" THEN ");
                query.push(InvitationStatus::Expired.number().to_string()).push(" ELSE status END");
                in_any(query);
            }) as Condition
        });
        let streams = vec![of_tenant(tenant.0, |_| {})];
        let list = List { joined: None, columns: columns!(), table: "invitations", id: "id", streams, filter };
        let page = self.page(list, page, |row: &InvitationRow| row.id).await?;
        Ok(Page { items: page.items.into_iter().map(InvitationRow::decode).collect::<Result<_>>()?, next: page.next })
    }

    async fn due_invitations(&mut self, now: Timestamp, limit: u32) -> Result<Vec<(TenantId, InvitationId)>> {
        let rows: Vec<(i64, Uuid)> = self
            .all(sql!(
                r"
                SELECT tenant_id, id
                FROM invitations
                WHERE due_at IS NOT NULL AND due_at <= $1
                ORDER BY due_at
                LIMIT $2",
                [now.millis(), i64::from(limit)]
            ))
            .await?;
        Ok(rows.into_iter().map(|(tenant, id)| (TenantId(tenant), InvitationId::from_uuid(id))).collect())
    }

    async fn invitations_of_client(&mut self, tenant: TenantId, client: &Recipient) -> Result<Vec<InvitationId>> {
        let column = match client.kind {
            AddressKind::Phone => "client_phone",
            AddressKind::Email => "client_email",
            AddressKind::Telegram | AddressKind::Instagram => return Ok(Vec::new()),
        };
        let mut query = QueryBuilder::<Db>::new("SELECT id FROM invitations WHERE tenant_id = ");
        query.push_bind(tenant.0).push(" AND ").push(column).push(" IS NOT NULL AND ").push(column).push(" = ");
        query.push_bind(client.identifier.clone());
        let rows: Vec<(Uuid,)> = self.all(query.build()).await?;
        // Sorted here: asked for an order, SQLite reads all invitations of the tenant.
        let mut invitations: Vec<InvitationId> = rows.into_iter().map(|(id,)| InvitationId::from_uuid(id)).collect();
        invitations.sort_unstable();
        Ok(invitations)
    }

    async fn invitation_of_number(&mut self, tenant: TenantId, number: PhoneNumberId, now: Timestamp) -> Result<Option<InvitationId>> {
        let row: Option<(Uuid,)> = self
            .optional(sql!(
                r"
                SELECT id
                FROM invitations
                WHERE tenant_id = $1
                  AND number_id IS NOT NULL
                  AND number_id = $2
                  AND due_at > $3
                ORDER BY id
                LIMIT 1",
                [tenant.0, number.uuid(), now.millis()]
            ))
            .await?;
        Ok(row.map(|(id,)| InvitationId::from_uuid(id)))
    }
}
