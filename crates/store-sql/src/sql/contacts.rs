//! Contacts as callers see and change them.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use nuncio_domain::contact::Contact;
use nuncio_domain::id::Id as _;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{ContactId, TenantId, Timestamp};
use nuncio_store::{ContactFilter, ContactRepo, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::{Condition, List, all, contains, is, of_tenant};
use super::{Db, SqlTx, dialect};
use crate::row::{corrupt, from_row, json, of_contact};

macro_rules! columns {
    () => {
        "id, country, version, created_at, updated_at, detail"
    };
}

const FIND: &str = concat!("SELECT ", columns!(), " FROM contacts WHERE tenant_id = $1 AND id = $2");

from_row! {
    struct ContactRow {
        id: Uuid,
        country: String,
        version: i64,
        created_at: i64,
        updated_at: i64,
        detail: Option<String>,
    }
}

impl ContactRow {
    fn decode(self) -> Result<Contact> {
        let detail = self.detail.as_deref().map(serde_json::from_str).transpose().map_err(|e| corrupt("contacts", e))?;
        Ok(Contact {
            id: ContactId::from_uuid(self.id),
            country: self.country,
            version: self.version,
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
            detail: detail.unwrap_or_default(),
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
    let rows: Vec<ContactRow> = tx.all(query.build()).await?;
    rows.into_iter().map(ContactRow::decode).collect()
}

#[async_trait]
impl ContactRepo for SqlTx {
    async fn find_contact(&mut self, tenant: TenantId, id: ContactId) -> Result<Option<Contact>> {
        let row: Option<ContactRow> = self.optional(sql!(FIND, [tenant.0, id.uuid()])).await?;
        row.map(ContactRow::decode).transpose()
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
        let page = self.page(list, page, |row: &ContactRow| row.id).await?;
        Ok(Page { items: page.items.into_iter().map(ContactRow::decode).collect::<Result<_>>()?, next: page.next })
    }

    async fn lookup_contacts(&mut self, tenant: TenantId, ids: &[ContactId]) -> Result<Vec<Contact>> {
        contacts(self, tenant, ids, "").await
    }

    async fn lock_contacts(&mut self, tenant: TenantId, ids: &[ContactId]) -> Result<Vec<Contact>> {
        contacts(self, tenant, ids, dialect::LOCK).await
    }

    async fn insert_contact(&mut self, tenant: TenantId, contact: &Contact) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO contacts (tenant_id, id, country, version, name_key, detail, created_at,
                    updated_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
            [
                tenant.0,
                contact.id.uuid(),
                &contact.country,
                contact.version,
                contact.detail.name_key(),
                json(&contact.detail)?,
                contact.created_at.millis(),
                contact.updated_at.millis()
            ]
        ))
        .await
    }

    async fn update_contact(&mut self, tenant: TenantId, contact: &Contact) -> Result<bool> {
        self.changes(sql!(
            r"
                UPDATE contacts
                SET country = $3, version = $4, name_key = $5, detail = $6, updated_at = $7
                WHERE tenant_id = $1 AND id = $2",
            [
                tenant.0,
                contact.id.uuid(),
                &contact.country,
                contact.version,
                contact.detail.name_key(),
                json(&contact.detail)?,
                contact.updated_at.millis()
            ]
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
            self.run(sql!(statement, [tenant.0, id.uuid()])).await?;
        }
        self.changes(sql!("DELETE FROM contacts WHERE tenant_id = $1 AND id = $2", [tenant.0, id.uuid()])).await
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
        let mut rows: Vec<(String, Uuid)> = self.all(query.build()).await?;
        rows.sort_unstable_by_key(|(_, id)| *id);
        for (key, id) in rows {
            found.entry(key).or_default().push(ContactId::from_uuid(id));
        }
        Ok(found)
    }

    async fn merge_contact(&mut self, tenant: TenantId, source: ContactId, target: ContactId, now: Timestamp) -> Result<()> {
        for statement in [
            concat!("UPDATE addresses SET contact_id = $3 WHERE tenant_id = $1 AND ", of_contact!()),
            "UPDATE removed_addresses SET contact_id = $3 WHERE tenant_id = $1 AND contact_id = $2",
            "UPDATE merged_contacts SET target_id = $3 WHERE tenant_id = $1 AND target_id = $2",
        ] {
            self.run(sql!(statement, [tenant.0, source.uuid(), target.uuid()])).await?;
        }
        self.run(sql!(
            "INSERT INTO merged_contacts (tenant_id, id, target_id, merged_at) VALUES ($1, $2, $3, $4)",
            [tenant.0, source.uuid(), target.uuid(), now.millis()]
        ))
        .await?;
        self.write(sql!("DELETE FROM contacts WHERE tenant_id = $1 AND id = $2", [tenant.0, source.uuid()])).await
    }

    async fn merged_into(&mut self, tenant: TenantId, id: ContactId) -> Result<Option<ContactId>> {
        let row: Option<(Uuid,)> = self
            .optional(sql!(
                r"
                SELECT target_id
                FROM merged_contacts
                WHERE tenant_id = $1 AND id = $2",
                [tenant.0, id.uuid()]
            ))
            .await?;
        Ok(row.map(|(target,)| ContactId::from_uuid(target)))
    }

    async fn merged_from(&mut self, tenant: TenantId, id: ContactId) -> Result<Vec<ContactId>> {
        let rows: Vec<(Uuid,)> = self
            .all(sql!(
                r"
                SELECT id
                FROM merged_contacts
                WHERE tenant_id = $1 AND target_id = $2",
                [tenant.0, id.uuid()]
            ))
            .await?;
        // Sorted here: asked for an order, SQLite reads all merged contacts of the tenant.
        let mut sources: Vec<ContactId> = rows.into_iter().map(|(source,)| ContactId::from_uuid(source)).collect();
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
