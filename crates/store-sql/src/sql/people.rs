//! Contacts as callers see and change them.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use nuncio_domain::contact::{ChannelEntry, Contact};
use nuncio_domain::id::Id as _;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{AddressId, AddressKind, Channel, ContactId, Recipient, TenantId, Timestamp};
use nuncio_store::{Address, ChannelMetrics, ContactFilter, PeopleRepo, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::contacts::MetricsRow;
use super::query::{Condition, List, all, is, of_world};
use super::{Db, SqlTx, dialect};
use crate::SqlxResult as _;
use crate::row::{corrupt, json, of_contact};

const COLUMNS: &str = "id, country, version, created_at, updated_at, detail";

#[derive(sqlx::FromRow)]
struct ContactRow {
    id: Uuid,
    country: String,
    version: i64,
    created_at: i64,
    updated_at: i64,
    detail: Option<String>,
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

#[derive(sqlx::FromRow)]
struct AddressRow {
    id: Uuid,
    contact_id: Uuid,
    kind: i16,
    identifier: String,
    created_at: i64,
}

impl AddressRow {
    fn decode(self) -> Result<Address> {
        let kind = AddressKind::from_number(self.kind).ok_or_else(|| corrupt("addresses", format!("kind {}", self.kind)))?;
        Ok(Address {
            id: AddressId::from_uuid(self.id),
            contact: ContactId::from_uuid(self.contact_id),
            recipient: Recipient { kind, identifier: self.identifier },
            created_at: Timestamp::from_millis(self.created_at),
            entries: Vec::new(),
            metrics: Vec::new(),
            newest: None,
        })
    }
}

#[derive(sqlx::FromRow)]
struct EntryRow {
    address_id: Uuid,
    channel: i16,
    hidden: i16,
    verified: Option<i16>,
    label: Option<String>,
    country: Option<String>,
    metadata: Option<String>,
    created_at: i64,
    updated_at: i64,
}

impl EntryRow {
    fn decode(self) -> Result<(Uuid, ChannelEntry)> {
        const TABLE: &str = "contact_channels";
        let channel = Channel::from_number(self.channel).ok_or_else(|| corrupt(TABLE, format!("channel {}", self.channel)))?;
        let entry = ChannelEntry {
            channel,
            hidden: self.hidden != 0,
            verified: self.verified.map(|v| v != 0),
            label: self.label,
            country: self.country,
            metadata: self.metadata.as_deref().map(serde_json::from_str).transpose().map_err(|e| corrupt(TABLE, e))?,
            created_at: Timestamp::from_millis(self.created_at),
            updated_at: Timestamp::from_millis(self.updated_at),
        };
        Ok((self.address_id, entry))
    }
}

#[async_trait]
impl PeopleRepo for SqlTx {
    async fn find_contact(&mut self, tenant: TenantId, id: ContactId) -> Result<Option<Contact>> {
        let row: Option<ContactRow> = sqlx::query_as(
            r"
                SELECT id, country, version, created_at, updated_at, detail
                FROM contacts
                WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .fetch_optional(self.conn())
        .await
        .or_end(self)?;
        row.map(ContactRow::decode).transpose()
    }

    async fn list_contacts(&mut self, tenant: TenantId, filter: &ContactFilter, page: PageRequest) -> Result<Page<Contact>> {
        let only = filter.id.map(|id| is("id", id.uuid()));
        let streams = vec![of_world(tenant.0, move |query| {
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
        let list = List { columns: COLUMNS, table: "contacts", id: "id", streams, filter: all(conditions) };
        let page = self.page(list, page, |row: &ContactRow| row.id).await?;
        Ok(Page { items: page.items.into_iter().map(ContactRow::decode).collect::<Result<_>>()?, next: page.next })
    }

    async fn lock_contacts(&mut self, tenant: TenantId, ids: &[ContactId]) -> Result<Vec<Contact>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query.push(COLUMNS).push(" FROM contacts WHERE tenant_id = ").push_bind(tenant.0);
        dialect::push_in(&mut query, "id", ids.iter().map(|id| id.uuid()));
        query.push(" ORDER BY id").push(dialect::LOCK);
        let rows: Vec<ContactRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        rows.into_iter().map(ContactRow::decode).collect()
    }

    async fn insert_contact(&mut self, tenant: TenantId, contact: &Contact) -> Result<()> {
        sqlx::query(
            r"
                INSERT INTO contacts (tenant_id, id, country, version, name_key, detail, created_at,
                    updated_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        )
        .bind(tenant.0)
        .bind(contact.id.uuid())
        .bind(&contact.country)
        .bind(contact.version)
        .bind(contact.detail.name_key())
        .bind(json(&contact.detail)?)
        .bind(contact.created_at.millis())
        .bind(contact.updated_at.millis())
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(())
    }

    async fn update_contact(&mut self, tenant: TenantId, contact: &Contact) -> Result<bool> {
        let done = sqlx::query(
            r"
                UPDATE contacts
                SET country = $3, version = $4, name_key = $5, detail = $6, updated_at = $7
                WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tenant.0)
        .bind(contact.id.uuid())
        .bind(&contact.country)
        .bind(contact.version)
        .bind(contact.detail.name_key())
        .bind(json(&contact.detail)?)
        .bind(contact.updated_at.millis())
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(done.rows_affected() == 1)
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
            "DELETE FROM merged_contacts WHERE tenant_id = $1 AND target_id = $2",
        ] {
            sqlx::query(statement).bind(tenant.0).bind(id.uuid()).execute(self.conn()).await.or_end(self)?;
        }
        let done = sqlx::query("DELETE FROM contacts WHERE tenant_id = $1 AND id = $2")
            .bind(tenant.0)
            .bind(id.uuid())
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn addresses_of_contacts(&mut self, tenant: TenantId, ids: &[ContactId]) -> Result<Vec<Address>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        const ADDRESSES: &str = r"
            SELECT id, contact_id, kind, identifier, created_at
            FROM addresses
            WHERE tenant_id = ";
        let mut query = QueryBuilder::<Db>::new(ADDRESSES);
        query.push_bind(tenant.0).push(" AND contact_id = id");
        dialect::push_in(&mut query, "id", ids.iter().map(|id| id.uuid()));
        query.push(" UNION ALL ").push(ADDRESSES).push_bind(tenant.0).push(" AND contact_id <> id");
        dialect::push_in(&mut query, "contact_id", ids.iter().map(|id| id.uuid()));
        query.push(" ORDER BY id");
        let rows: Vec<AddressRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        let mut addresses = rows.into_iter().map(AddressRow::decode).collect::<Result<Vec<_>>>()?;
        let known: Vec<Uuid> = addresses.iter().map(|a| a.id.uuid()).collect();
        let mut entries = self.entries(tenant, &known).await?;
        let mut metrics = self.metrics(tenant, &known).await?;
        for address in &mut addresses {
            address.entries = entries.remove(&address.id.uuid()).unwrap_or_default();
            address.metrics = metrics.remove(&address.id.uuid()).unwrap_or_default();
        }
        self.find_newest(tenant, &mut addresses).await?;
        Ok(addresses)
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
        let mut rows: Vec<(String, Uuid)> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        rows.sort_unstable_by_key(|(_, id)| *id);
        for (key, id) in rows {
            found.entry(key).or_default().push(ContactId::from_uuid(id));
        }
        Ok(found)
    }

    async fn contacts_by_identifier(
        &mut self,
        tenant: TenantId,
        kind: AddressKind,
        identifiers: &BTreeSet<String>,
    ) -> Result<HashMap<String, ContactId>> {
        if identifiers.is_empty() {
            return Ok(HashMap::new());
        }
        let mut query = dialect::contacts_by_identifier(tenant.0, kind.number(), identifiers);
        let rows: Vec<(String, Uuid)> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        Ok(rows.into_iter().map(|(identifier, id)| (identifier, ContactId::from_uuid(id))).collect())
    }

    async fn insert_address(&mut self, tenant: TenantId, address: &Address) -> Result<bool> {
        let done = sqlx::query(
            r"
                INSERT INTO addresses (tenant_id, id, kind, identifier, contact_id, created_at)
                VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT (tenant_id, kind, identifier) DO NOTHING",
        )
        .bind(tenant.0)
        .bind(address.id.uuid())
        .bind(address.recipient.kind.number())
        .bind(&address.recipient.identifier)
        .bind(address.contact.uuid())
        .bind(address.created_at.millis())
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn delete_address(&mut self, tenant: TenantId, id: AddressId) -> Result<bool> {
        sqlx::query("DELETE FROM contact_channels WHERE tenant_id = $1 AND address_id = $2")
            .bind(tenant.0)
            .bind(id.uuid())
            .execute(self.conn())
            .await
            .or_end(self)?;
        let done = sqlx::query("DELETE FROM addresses WHERE tenant_id = $1 AND id = $2")
            .bind(tenant.0)
            .bind(id.uuid())
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(done.rows_affected() == 1)
    }

    async fn delete_metrics(&mut self, tenant: TenantId, id: AddressId) -> Result<()> {
        sqlx::query("DELETE FROM channel_metrics WHERE tenant_id = $1 AND address_id = $2")
            .bind(tenant.0)
            .bind(id.uuid())
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(())
    }

    async fn put_channel_entry(&mut self, tenant: TenantId, address: AddressId, entry: &ChannelEntry) -> Result<()> {
        sqlx::query(
            r"
                INSERT INTO contact_channels (tenant_id, address_id, channel, hidden, verified, label,
                    country, metadata, created_at, updated_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
                ON CONFLICT (tenant_id, address_id, channel) DO UPDATE SET
                    hidden = excluded.hidden,
                    verified = excluded.verified,
                    label = excluded.label,
                    country = excluded.country,
                    metadata = excluded.metadata,
                    created_at = excluded.created_at,
                    updated_at = excluded.updated_at",
        )
        .bind(tenant.0)
        .bind(address.uuid())
        .bind(entry.channel.number())
        .bind(i16::from(entry.hidden))
        .bind(entry.verified.map(i16::from))
        .bind(&entry.label)
        .bind(&entry.country)
        .bind(entry.metadata.as_ref().map(json).transpose()?)
        .bind(entry.created_at.millis())
        .bind(entry.updated_at.millis())
        .execute(self.conn())
        .await
        .or_end(self)?;
        Ok(())
    }

    async fn merge_contact(&mut self, tenant: TenantId, source: ContactId, target: ContactId, now: Timestamp) -> Result<()> {
        for statement in [
            concat!("UPDATE addresses SET contact_id = $3 WHERE tenant_id = $1 AND ", of_contact!()),
            "UPDATE merged_contacts SET target_id = $3 WHERE tenant_id = $1 AND target_id = $2",
        ] {
            sqlx::query(statement).bind(tenant.0).bind(source.uuid()).bind(target.uuid()).execute(self.conn()).await.or_end(self)?;
        }
        sqlx::query("INSERT INTO merged_contacts (tenant_id, id, target_id, merged_at) VALUES ($1, $2, $3, $4)")
            .bind(tenant.0)
            .bind(source.uuid())
            .bind(target.uuid())
            .bind(now.millis())
            .execute(self.conn())
            .await
            .or_end(self)?;
        sqlx::query("DELETE FROM contacts WHERE tenant_id = $1 AND id = $2")
            .bind(tenant.0)
            .bind(source.uuid())
            .execute(self.conn())
            .await
            .or_end(self)?;
        Ok(())
    }

    async fn merged_into(&mut self, tenant: TenantId, id: ContactId) -> Result<Option<ContactId>> {
        let row: Option<(Uuid,)> = sqlx::query_as(
            r"
                SELECT target_id
                FROM merged_contacts
                WHERE tenant_id = $1 AND id = $2",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .fetch_optional(self.conn())
        .await
        .or_end(self)?;
        Ok(row.map(|(target,)| ContactId::from_uuid(target)))
    }

    async fn merged_from(&mut self, tenant: TenantId, id: ContactId) -> Result<Vec<ContactId>> {
        let rows: Vec<(Uuid,)> = sqlx::query_as(
            r"
                SELECT id
                FROM merged_contacts
                WHERE tenant_id = $1 AND target_id = $2
                ORDER BY id",
        )
        .bind(tenant.0)
        .bind(id.uuid())
        .fetch_all(self.conn())
        .await
        .or_end(self)?;
        Ok(rows.into_iter().map(|(source,)| ContactId::from_uuid(source)).collect())
    }
}

/// That `column`, in lower case, has `part` in it.
fn has(column: &'static str, part: &str) -> Condition {
    let escaped = part.replace('\\', "\\\\").replace('%', "\\%").replace('_', "\\_");
    let pattern = format!("%{escaped}%");
    Box::new(move |query| {
        query.push(column).push(" LIKE ").push_bind(pattern.clone()).push(" ESCAPE '\\'");
    })
}

impl SqlTx {
    async fn entries(&mut self, tenant: TenantId, addresses: &[Uuid]) -> Result<HashMap<Uuid, Vec<ChannelEntry>>> {
        let mut found: HashMap<Uuid, Vec<ChannelEntry>> = HashMap::new();
        if addresses.is_empty() {
            return Ok(found);
        }
        let mut query = QueryBuilder::<Db>::new(
            r"
                SELECT address_id, channel, hidden, verified, label, country, metadata, created_at,
                    updated_at
                FROM contact_channels
                WHERE tenant_id = ",
        );
        query.push_bind(tenant.0);
        dialect::push_in(&mut query, "address_id", addresses.iter().copied());
        query.push(" ORDER BY address_id, channel");
        let rows: Vec<EntryRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        for row in rows {
            let (address, entry) = row.decode()?;
            found.entry(address).or_default().push(entry);
        }
        Ok(found)
    }

    async fn metrics(&mut self, tenant: TenantId, addresses: &[Uuid]) -> Result<HashMap<Uuid, Vec<ChannelMetrics>>> {
        let mut found: HashMap<Uuid, Vec<ChannelMetrics>> = HashMap::new();
        if addresses.is_empty() {
            return Ok(found);
        }
        let mut query = QueryBuilder::<Db>::new(
            r"
                SELECT address_id, channel, successes, failures, delivery_ms, timed, last_success_at,
                    last_inbound_at
                FROM channel_metrics
                WHERE tenant_id = ",
        );
        query.push_bind(tenant.0);
        dialect::push_in(&mut query, "address_id", addresses.iter().copied());
        query.push(" ORDER BY address_id, channel");
        let rows: Vec<MetricsRow> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        for row in rows {
            found.entry(row.address_id).or_default().push(row.decode()?);
        }
        Ok(found)
    }

    /// A phone number that was just written to for the first time tells its channel by that message only.
    async fn find_newest(&mut self, tenant: TenantId, addresses: &mut [Address]) -> Result<()> {
        let silent = |a: &Address| a.recipient.kind == AddressKind::Phone && a.entries.is_empty() && a.metrics.is_empty();
        if !addresses.iter().any(silent) {
            return Ok(());
        }
        let mut query = QueryBuilder::<Db>::new(
            r"
                SELECT a.id, (
                    SELECT s.channel
                    FROM messages m
                    JOIN states s ON s.tenant_id = m.tenant_id AND s.id = m.id
                    WHERE m.tenant_id = a.tenant_id AND m.address_id = a.id
                    ORDER BY m.id DESC
                    LIMIT 1
                )
                FROM addresses a
                WHERE a.tenant_id = ",
        );
        query.push_bind(tenant.0);
        dialect::push_in(&mut query, "a.id", addresses.iter().filter(|a| silent(a)).map(|a| a.id.uuid()));
        let rows: Vec<(Uuid, Option<i16>)> = query.build_query_as().fetch_all(self.conn()).await.or_end(self)?;
        let newest: HashMap<Uuid, Option<i16>> = rows.into_iter().collect();
        for address in addresses {
            address.newest = newest.get(&address.id.uuid()).copied().flatten().and_then(Channel::from_number);
        }
        Ok(())
    }
}
