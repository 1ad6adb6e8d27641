//! Contacts as callers see and change them.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use nuncio_domain::contact::Contact;
use nuncio_domain::id::Id as _;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{ContactId, TenantId, Timestamp};
use nuncio_store::{ContactFilter, ContactRepo, Result};
use sqlx::QueryBuilder;

use super::query::{Condition, List, all, contains, is, of_tenant};
use super::{Columns, Db, Record, SqlTx, dialect};
use crate::row::{json, of_contact};

macro_rules! columns {
    () => {
        "id, country, version, created_at, updated_at, detail"
    };
}

const FIND: &str = concat!("SELECT ", columns!(), " FROM contacts WHERE tenant_id = $1 AND id = $2");

impl Record for Contact {
    const TABLE: &'static str = "contacts";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            country: row.get("country")?,
            version: row.get("version")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
            detail: row.optional_json("detail")?.unwrap_or_default(),
        })
    }
}

/// Returns the existing contacts of these, in the order of their ids; `lock` ends the statement.
async fn contacts(tx: &mut SqlTx, tenant: TenantId, ids: &[ContactId], lock: &str) -> Result<Vec<Contact>> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let mut query = QueryBuilder::<Db>::new("SELECT ");
    query.push(columns!()).push(" FROM contacts WHERE tenant_id = ").push_bind(tenant.0);
    dialect::push_in(&mut query, "id", ids.iter().map(|id| id.uuid()));
    query.push(" ORDER BY id").push(lock);
    tx.all(query.build()).await
}

#[async_trait]
impl ContactRepo for SqlTx {
    async fn find_contact(&mut self, tenant: TenantId, id: ContactId) -> Result<Option<Contact>> {
        self.optional(sql!(FIND, [tenant, id])).await
    }

    async fn list_contacts(&mut self, tenant: TenantId, filter: &ContactFilter, page: PageRequest) -> Result<Page<Contact>> {
        let only = filter.id.map(|id| is("id", id.uuid()));
        let streams = vec![of_tenant(tenant.0, move |query| {
            if let Some(only) = &only {
                query.push(" AND ");
                only(query);
            }
        })];
        let mut conditions: Vec<Condition> = Vec::new();
        if let Some(name) = &filter.name {
            conditions.push(has("name_key", name));
        }
        for (key, value) in &filter.metadata {
            conditions.push(dialect::json_entry("detail", "m", key, value));
        }
        let list = List { joined: None, columns: columns!(), table: "contacts", id: "id", streams, filter: all(conditions) };
        self.page(list, page).await
    }

    async fn lookup_contacts(&mut self, tenant: TenantId, ids: &[ContactId]) -> Result<Vec<Contact>> {
        contacts(self, tenant, ids, "").await
    }

    async fn lock_contacts(&mut self, tenant: TenantId, ids: &[ContactId]) -> Result<Vec<Contact>> {
        contacts(self, tenant, ids, dialect::LOCK).await
    }

    async fn insert_contact(&mut self, tenant: TenantId, contact: &Contact) -> Result<()> {
        let (name_key, detail) = (contact.detail.name_key(), json(&contact.detail)?);
        self.write(sql!(
            r"
                INSERT INTO contacts (tenant_id, id, country, version, name_key, detail, created_at,
                    updated_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            [tenant, contact.id, &contact.country, contact.version, name_key, detail, contact.created_at, contact.updated_at]
        ))
        .await
    }

    async fn update_contact(&mut self, tenant: TenantId, contact: &Contact) -> Result<bool> {
        self.changes(sql!(
            r"
                UPDATE contacts
                SET country = $3, version = $4, name_key = $5, detail = $6, updated_at = $7
                WHERE tenant_id = $1 AND id = $2",
            [tenant, contact.id, &contact.country, contact.version, contact.detail.name_key(), json(&contact.detail)?, contact.updated_at]
        ))
        .await
    }

    async fn delete_contact(&mut self, tenant: TenantId, id: ContactId) -> Result<bool> {
        for statement in [
            concat!(
                r"
                    DELETE FROM contact_channels
                    WHERE tenant_id = $1
                      AND address_id IN (SELECT id FROM addresses WHERE tenant_id = $1 AND ",
                of_contact!(),
                ")"
            ),
            concat!("DELETE FROM addresses WHERE tenant_id = $1 AND ", of_contact!()),
            "DELETE FROM removed_addresses WHERE tenant_id = $1 AND contact_id = $2",
            "DELETE FROM merged_contacts WHERE tenant_id = $1 AND target_id = $2",
        ] {
            self.run(sql!(statement, [tenant, id])).await?;
        }
        self.changes(sql!("DELETE FROM contacts WHERE tenant_id = $1 AND id = $2", [tenant, id])).await
    }

    async fn contacts_named(
        &mut self,
        tenant: TenantId,
        name_keys: &BTreeSet<String>,
        limit: u32,
    ) -> Result<HashMap<String, Vec<ContactId>>> {
        let mut found: HashMap<String, Vec<ContactId>> = HashMap::new();
        if name_keys.is_empty() {
            return Ok(found);
        }
        let mut query = dialect::contacts_named(tenant.0, name_keys, limit);
        let mut rows: Vec<(String, ContactId)> = self.all(query.build()).await?;
        rows.sort_unstable_by_key(|(_, id)| *id);
        for (key, id) in rows {
            found.entry(key).or_default().push(id);
        }
        Ok(found)
    }

    async fn merge_contact(&mut self, tenant: TenantId, source: ContactId, target: ContactId, now: Timestamp) -> Result<()> {
        for statement in [
            concat!("UPDATE addresses SET contact_id = $3 WHERE tenant_id = $1 AND ", of_contact!()),
            "UPDATE removed_addresses SET contact_id = $3 WHERE tenant_id = $1 AND contact_id = $2",
            "UPDATE merged_contacts SET target_id = $3 WHERE tenant_id = $1 AND target_id = $2",
        ] {
            self.run(sql!(statement, [tenant, source, target])).await?;
        }
        self.run(sql!(
            "INSERT INTO merged_contacts (tenant_id, id, target_id, merged_at) VALUES ($1, $2, $3, $4)",
            [tenant, source, target, now]
        ))
        .await?;
        self.write(sql!("DELETE FROM contacts WHERE tenant_id = $1 AND id = $2", [tenant, source])).await
    }

    async fn merged_into(&mut self, tenant: TenantId, id: ContactId) -> Result<Option<ContactId>> {
        self.value(sql!("SELECT target_id FROM merged_contacts WHERE tenant_id = $1 AND id = $2", [tenant, id])).await
    }

    async fn merged_from(&mut self, tenant: TenantId, id: ContactId) -> Result<Vec<ContactId>> {
        let query = sql!("SELECT id FROM merged_contacts WHERE tenant_id = $1 AND target_id = $2", [tenant, id]);
        let mut sources: Vec<ContactId> = self.column(query).await?;
        // Sorted here: asked for an order, SQLite reads all merged contacts of the tenant.
        sources.sort_unstable();
        Ok(sources)
    }
}

/// That `column`, in lower case, has `part` in it.
fn has(column: &'static str, part: &str) -> Condition {
    let pattern = contains(part);
    Box::new(move |query| {
        query.push(column).push(" LIKE ").push_bind(pattern.clone()).push(" ESCAPE '\\'");
    })
}
