//! Invitations.

use async_trait::async_trait;
use nuncio_domain::invitation::{Invitation, InvitationStatus};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{AddressKind, InvitationId, PhoneNumberId, Recipient, TenantId, Timestamp};
use nuncio_store::{InvitationRepo, Result};
use sqlx::QueryBuilder;

use super::query::{Condition, List, any_of, of_tenant};
use super::{Columns, Db, Record, SqlTx};
use crate::row::json;

impl Record for Invitation {
    const TABLE: &'static str = "invitations";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            version: row.get("version")?,
            status: row.get("status")?,
            token_hash: row.get("token_hash")?,
            sealed: row.get("sealed")?,
            client_name: row.get("client_name")?,
            client_email: row.get("client_email")?,
            client_phone: row.get("client_phone")?,
            number: row.get("number_id")?,
            countries: row.json("countries")?,
            sender: row.get("sender_id")?,
            expires_at: row.get("expires_at")?,
            viewed_at: row.get("viewed_at")?,
            started_at: row.get("started_at")?,
            completed_at: row.get("completed_at")?,
            updated_at: row.get("updated_at")?,
            progress: row.json("walk")?,
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
        let (countries, due_at, walk) = (json(&invitation.countries)?, due_at(invitation), json(&invitation.progress)?);
        self.write(sql!(
            r"
                INSERT INTO invitations (tenant_id, id, version, status, token_hash, sealed, client_name,
                    client_email, client_phone, number_id, countries, sender_id, expires_at, due_at,
                    viewed_at, started_at, completed_at, updated_at, walk)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18,
                    $19)",
            [
                tenant, invitation.id, invitation.version, invitation.status, &invitation.token_hash, &invitation.sealed,
                &invitation.client_name, &invitation.client_email, &invitation.client_phone, invitation.number, countries,
                invitation.sender, invitation.expires_at, due_at, invitation.viewed_at, invitation.started_at, invitation.completed_at,
                invitation.updated_at, walk
            ]
        ))
        .await
    }

    async fn find_invitation(&mut self, tenant: TenantId, id: InvitationId) -> Result<Option<Invitation>> {
        self.optional(sql!(FIND, [tenant, id])).await
    }

    async fn find_invitation_by_token(&mut self, hash: &[u8; 32]) -> Result<Option<(TenantId, InvitationId)>> {
        self.optional(sql!("SELECT tenant_id, id FROM invitations WHERE token_hash = $1", [hash])).await
    }

    async fn lock_invitation(&mut self, tenant: TenantId, id: InvitationId) -> Result<Option<Invitation>> {
        // An update that changes nothing locks the row on both databases. What is read after it is what the last holder of the lock wrote.
        self.run(sql!("UPDATE invitations SET version = version WHERE tenant_id = $1 AND id = $2", [tenant, id])).await?;
        self.find_invitation(tenant, id).await
    }

    async fn update_invitation(&mut self, tenant: TenantId, invitation: &Invitation) -> Result<()> {
        let (due_at, walk) = (due_at(invitation), json(&invitation.progress)?);
        self.write(sql!(
            r"
                UPDATE invitations
                SET version = $3, status = $4, client_name = $5, client_email = $6, client_phone = $7,
                    sender_id = $8, due_at = $9, viewed_at = $10, started_at = $11, completed_at = $12,
                    updated_at = $13, walk = $14
                WHERE tenant_id = $1 AND id = $2",
            [
                tenant, invitation.id, invitation.version, invitation.status, &invitation.client_name, &invitation.client_email,
                &invitation.client_phone, invitation.sender, due_at, invitation.viewed_at, invitation.started_at, invitation.completed_at,
                invitation.updated_at, walk
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
        self.page(list, page).await
    }

    async fn due_invitations(&mut self, now: Timestamp, limit: u32) -> Result<Vec<(TenantId, InvitationId)>> {
        self.all(sql!(
            r"
                SELECT tenant_id, id
                FROM invitations
                WHERE due_at IS NOT NULL AND due_at <= $1
                ORDER BY due_at
                LIMIT $2",
            [now, limit]
        ))
        .await
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
        let mut invitations: Vec<InvitationId> = self.column(query.build()).await?;
        // Sorted here: asked for an order, SQLite reads all invitations of the tenant.
        invitations.sort_unstable();
        Ok(invitations)
    }

    async fn invitation_of_number(&mut self, tenant: TenantId, number: PhoneNumberId, now: Timestamp) -> Result<Option<InvitationId>> {
        self.value(sql!(
            r"
                SELECT id
                FROM invitations
                WHERE tenant_id = $1
                  AND number_id IS NOT NULL
                  AND number_id = $2
                  AND due_at > $3
                ORDER BY id
                LIMIT 1",
            [tenant, number, now]
        ))
        .await
    }
}
