//! Inbound email addresses.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::mailbox::Proof;
use nuncio_domain::{ConnectionId, ProjectId, TenantId, Timestamp};
use nuncio_store::{InboundAddress, MailCode, MailDomain, Mailbox, MailboxRepo, Result};
use sqlx::QueryBuilder;

use super::{Columns, Db, Record, SqlTx, dialect};
use crate::row::corrupt;

const MAILBOXES: &str = "SELECT address, tenant_id, connection_id, proof FROM mailboxes WHERE ";

impl Record for Mailbox {
    const TABLE: &'static str = "mailboxes";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            address: row.get("address")?,
            tenant: row.get("tenant_id")?,
            connection: row.get("connection_id")?,
            proof: row.get("proof")?,
        })
    }
}

#[async_trait]
impl MailboxRepo for SqlTx {
    async fn set_inbound_address(&mut self, tenant: TenantId, connection: ConnectionId, address: Option<&str>) -> Result<()> {
        self.run(sql!(
            "DELETE FROM mailboxes WHERE tenant_id = $1 AND connection_id = $2 AND address <> $3",
            [tenant, connection, address.unwrap_or_default()]
        ))
        .await?;
        let Some(address) = address else {
            self.run(sql!("DELETE FROM inbound_addresses WHERE tenant_id = $1 AND connection_id = $2", [tenant, connection])).await?;
            return Ok(());
        };
        self.write(sql!(
            r"
                INSERT INTO inbound_addresses (tenant_id, connection_id, address)
                VALUES ($1, $2, $3)
                ON CONFLICT (tenant_id, connection_id) DO UPDATE SET address = excluded.address",
            [tenant, connection, address]
        ))
        .await
    }

    async fn inbound_addresses(&mut self, tenant: TenantId, connections: &[ConnectionId]) -> Result<Vec<InboundAddress>> {
        if connections.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new(
            r"
                SELECT i.connection_id, i.address, CASE WHEN m.proof IS NULL THEN 0 ELSE 1 END
                FROM inbound_addresses i
                LEFT JOIN mailboxes m ON m.address = i.address AND m.tenant_id = i.tenant_id
                    AND m.connection_id = i.connection_id
                WHERE i.tenant_id = ",
        );
        query.push_bind(tenant.0);
        dialect::push_in(&mut query, "i.connection_id", connections.iter().map(|id| id.uuid()));
        let rows: Vec<(ConnectionId, String, i32)> = self.all(query.build()).await?;
        let read = |(connection, address, claimed)| InboundAddress { connection, address, is_claimed: claimed != 0 };
        Ok(rows.into_iter().map(read).collect())
    }

    async fn claim_mailbox(&mut self, tenant: TenantId, connection: ConnectionId, address: &str, proof: Proof) -> Result<bool> {
        // A connection keeps the strongest proof that it had, which has the smallest number.
        self.changes(sql!(
            r"
                INSERT INTO mailboxes (address, tenant_id, connection_id, proof)
                VALUES ($1, $2, $3, $4)
                ON CONFLICT (address) DO UPDATE SET
                    tenant_id = excluded.tenant_id,
                    connection_id = excluded.connection_id,
                    proof = CASE
                        WHEN mailboxes.tenant_id = excluded.tenant_id
                            AND mailboxes.connection_id = excluded.connection_id
                            AND mailboxes.proof < excluded.proof
                        THEN mailboxes.proof
                        ELSE excluded.proof
                    END
                WHERE (mailboxes.tenant_id = excluded.tenant_id AND mailboxes.connection_id = excluded.connection_id)
                  OR (excluded.proof = $5 AND mailboxes.proof <> $5)
                  OR (excluded.proof = $6 AND mailboxes.proof = $7 AND mailboxes.tenant_id <> excluded.tenant_id)
                  OR (excluded.proof = $7 AND mailboxes.proof <> $5 AND mailboxes.tenant_id = excluded.tenant_id)",
            [address, tenant, connection, proof, Proof::Operator, Proof::Domain, Proof::Code]
        ))
        .await
    }

    async fn find_mailbox(&mut self, address: &str) -> Result<Option<Mailbox>> {
        let mut query = QueryBuilder::<Db>::new(MAILBOXES);
        query.push("address = ").push_bind(address.to_owned());
        self.optional(query.build()).await
    }

    async fn mailboxes_of_domain(&mut self, domain: &str) -> Result<Vec<Mailbox>> {
        let end = format!("@{domain}");
        let mut query = QueryBuilder::<Db>::new(MAILBOXES);
        query.push("address LIKE ").push_bind(format!("%{end}")).push(" ORDER BY address");
        let mut found: Vec<Mailbox> = self.all(query.build()).await?;
        // An underscore in the domain stands for any character in the pattern.
        found.retain(|mailbox| mailbox.address.ends_with(&end));
        Ok(found)
    }

    async fn release_mailbox(&mut self, address: &str) -> Result<bool> {
        self.changes(sql!("DELETE FROM mailboxes WHERE address = $1", [address])).await
    }

    async fn assign_mail_domain(&mut self, given: &MailDomain) -> Result<ProjectId> {
        self.run(sql!(
            r"
                INSERT INTO mail_domains (domain, project_id, created_at)
                VALUES ($1, $2, $3)
                ON CONFLICT (domain) DO NOTHING",
            [&given.domain, given.project, given.created_at]
        ))
        .await?;
        let found = self.find_mail_domain(&given.domain).await?;
        found.ok_or_else(|| corrupt("mail_domains", "a row that is there and is not"))
    }

    async fn find_mail_domain(&mut self, domain: &str) -> Result<Option<ProjectId>> {
        self.value(sql!("SELECT project_id FROM mail_domains WHERE domain = $1", [domain])).await
    }

    async fn list_mail_domains(&mut self) -> Result<Vec<MailDomain>> {
        let rows = self.all(sql!("SELECT domain, project_id, created_at FROM mail_domains ORDER BY domain")).await?;
        Ok(rows.into_iter().map(|(domain, project, created_at)| MailDomain { domain, project, created_at }).collect())
    }

    async fn delete_mail_domain(&mut self, domain: &str) -> Result<bool> {
        self.changes(sql!("DELETE FROM mail_domains WHERE domain = $1", [domain])).await
    }

    async fn put_mail_code(&mut self, tenant: TenantId, code: &MailCode) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO mail_codes (tenant_id, address, hash, tries, sends, first_at, sent_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7)
                ON CONFLICT (tenant_id, address) DO UPDATE SET
                    hash = excluded.hash,
                    tries = excluded.tries,
                    sends = excluded.sends,
                    first_at = excluded.first_at,
                    sent_at = excluded.sent_at",
            [tenant, &code.address, &code.hash, code.tries, code.sends, code.first_at, code.sent_at]
        ))
        .await
    }

    async fn list_mail_codes(&mut self, tenant: TenantId) -> Result<Vec<MailCode>> {
        let rows = self
            .all(sql!(
                r"
                SELECT address, hash, tries, sends, first_at, sent_at
                FROM mail_codes
                WHERE tenant_id = $1
                ORDER BY address",
                [tenant]
            ))
            .await?;
        let read = |(address, hash, tries, sends, first_at, sent_at)| MailCode { address, hash, tries, sends, first_at, sent_at };
        Ok(rows.into_iter().map(read).collect())
    }

    async fn purge_mail_codes(&mut self, tenant: TenantId, before: Timestamp) -> Result<()> {
        self.write(sql!("DELETE FROM mail_codes WHERE tenant_id = $1 AND first_at < $2", [tenant, before])).await
    }
}
