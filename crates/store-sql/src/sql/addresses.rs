//! Addresses of contacts, with their channels and metrics.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use nuncio_domain::contact::ChannelEntry;
use nuncio_domain::id::Id as _;
use nuncio_domain::{AddressId, AddressKind, Channel, ContactId, Recipient, TenantId};
use nuncio_store::{Address, AddressRepo, ChannelMetrics, MetricDelta, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{Columns, Db, Record, SqlTx, dialect};
use crate::row::{json, number};

impl Record for Address {
    const TABLE: &'static str = "addresses";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            contact: row.get("contact_id")?,
            recipient: Recipient { kind: row.get("kind")?, identifier: row.get("identifier")? },
            created_at: row.get("created_at")?,
            entries: Vec::new(),
            metrics: Vec::new(),
            newest: None,
        })
    }
}

/// The settings of a channel, with their address.
struct EntryRow(AddressId, ChannelEntry);

impl Record for EntryRow {
    const TABLE: &'static str = "contact_channels";

    fn read(row: &Columns<'_>) -> Result<Self> {
        let entry = ChannelEntry {
            channel: row.get("channel")?,
            hidden: row.get("hidden")?,
            verified: row.get("verified")?,
            label: row.get("label")?,
            country: row.get("country")?,
            metadata: row.optional_json("metadata")?,
            created_at: row.get("created_at")?,
            updated_at: row.get("updated_at")?,
        };
        Ok(Self(row.get("address_id")?, entry))
    }
}

/// The metrics of a channel, with their address.
struct MetricsRow(AddressId, ChannelMetrics);

impl Record for MetricsRow {
    const TABLE: &'static str = "channel_metrics";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self(row.get("address_id")?, ChannelMetrics::read(row)?))
    }
}

impl Record for ChannelMetrics {
    const TABLE: &'static str = "channel_metrics";

    fn read(row: &Columns<'_>) -> Result<Self> {
        let sums = MetricDelta {
            successes: row.get("successes")?,
            failures: row.get("failures")?,
            delivery_ms: row.get("delivery_ms")?,
            timed: row.get("timed")?,
            last_success_at: row.get("last_success_at")?,
        };
        Ok(Self { channel: row.get("channel")?, sums, last_inbound_at: row.get("last_inbound_at")? })
    }
}

#[async_trait]
impl AddressRepo for SqlTx {
    async fn find_address(&mut self, tenant: TenantId, recipient: &Recipient) -> Result<Option<(AddressId, ContactId)>> {
        self.optional(sql!(
            r"
                SELECT id, contact_id
                FROM addresses
                WHERE tenant_id = $1 AND kind = $2 AND identifier = $3",
            [tenant, recipient.kind, &recipient.identifier]
        ))
        .await
    }

    async fn channel_metrics(&mut self, tenant: TenantId, address: AddressId) -> Result<Vec<ChannelMetrics>> {
        self.all(sql!(
            r"
                SELECT channel, successes, failures, delivery_ms, timed, last_success_at,
                    last_inbound_at
                FROM channel_metrics
                WHERE tenant_id = $1 AND address_id = $2
                ORDER BY channel",
            [tenant, address]
        ))
        .await
    }

    async fn addresses_of_contacts(&mut self, tenant: TenantId, ids: &[ContactId]) -> Result<Vec<Address>> {
        if ids.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new(
            r"
            SELECT id, contact_id, kind, identifier, created_at
            FROM addresses
            WHERE tenant_id = ",
        );
        query.push_bind(tenant.0).push(" AND contact_id = id");
        dialect::push_in(&mut query, "id", ids.iter().map(|id| id.uuid()));
        let mut addresses: Vec<Address> = self.all(query.build()).await?;
        addresses.extend(self.all::<Address>(dialect::moved_addresses(tenant.0, ids.iter().map(|id| id.uuid())).build()).await?);
        addresses.sort_unstable_by_key(|address| address.id);
        let known: Vec<Uuid> = addresses.iter().map(|a| a.id.uuid()).collect();
        let mut entries = entries(self, tenant, &known).await?;
        let mut metrics = metrics(self, tenant, &known).await?;
        for address in &mut addresses {
            address.entries = entries.remove(&address.id).unwrap_or_default();
            address.metrics = metrics.remove(&address.id).unwrap_or_default();
        }
        find_newest(self, tenant, &mut addresses).await?;
        Ok(addresses)
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
        Ok(self.all(query.build()).await?.into_iter().collect())
    }

    async fn insert_address(&mut self, tenant: TenantId, address: &Address) -> Result<bool> {
        self.run(sql!("DELETE FROM removed_addresses WHERE tenant_id = $1 AND id = $2", [tenant, address.id])).await?;
        self.changes(sql!(
            r"
                INSERT INTO addresses (tenant_id, id, kind, identifier, contact_id, created_at)
                VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT (tenant_id, kind, identifier) DO NOTHING",
            [tenant, address.id, address.recipient.kind, &address.recipient.identifier, address.contact, address.created_at]
        ))
        .await
    }

    async fn remove_address(&mut self, tenant: TenantId, id: AddressId) -> Result<bool> {
        self.run(sql!(
            r"
                INSERT INTO removed_addresses (tenant_id, id, kind, identifier, contact_id)
                SELECT tenant_id, id, kind, identifier, contact_id
                FROM addresses
                WHERE tenant_id = $1 AND id = $2",
            [tenant, id]
        ))
        .await?;
        self.run(sql!("DELETE FROM contact_channels WHERE tenant_id = $1 AND address_id = $2", [tenant, id])).await?;
        self.changes(sql!("DELETE FROM addresses WHERE tenant_id = $1 AND id = $2", [tenant, id])).await
    }

    async fn removed_addresses(&mut self, tenant: TenantId, contact: ContactId) -> Result<Vec<(AddressId, Recipient)>> {
        let rows: Vec<(AddressId, i16, String)> = self
            .all(sql!(
                "SELECT id, kind, identifier FROM removed_addresses WHERE tenant_id = $1 AND contact_id = $2 ORDER BY id",
                [tenant, contact]
            ))
            .await?;
        let recipient = |(id, kind, identifier)| {
            Ok((id, Recipient { kind: number(AddressKind::from_number, "removed_addresses", "kind", kind)?, identifier }))
        };
        rows.into_iter().map(recipient).collect()
    }

    async fn delete_metrics(&mut self, tenant: TenantId, id: AddressId) -> Result<()> {
        self.write(sql!("DELETE FROM channel_metrics WHERE tenant_id = $1 AND address_id = $2", [tenant, id])).await
    }

    async fn put_channel_entry(&mut self, tenant: TenantId, address: AddressId, entry: &ChannelEntry) -> Result<()> {
        let metadata = entry.metadata.as_ref().map(json).transpose()?;
        self.write(sql!(
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
            [
                tenant, address, entry.channel, entry.hidden, entry.verified, &entry.label, &entry.country, metadata, entry.created_at,
                entry.updated_at
            ]
        ))
        .await
    }
}

async fn entries(tx: &mut SqlTx, tenant: TenantId, addresses: &[Uuid]) -> Result<HashMap<AddressId, Vec<ChannelEntry>>> {
    let mut found: HashMap<AddressId, Vec<ChannelEntry>> = HashMap::new();
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
    for EntryRow(address, entry) in tx.all(query.build()).await? {
        found.entry(address).or_default().push(entry);
    }
    Ok(found)
}

async fn metrics(tx: &mut SqlTx, tenant: TenantId, addresses: &[Uuid]) -> Result<HashMap<AddressId, Vec<ChannelMetrics>>> {
    let mut found: HashMap<AddressId, Vec<ChannelMetrics>> = HashMap::new();
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
    for MetricsRow(address, metrics) in tx.all(query.build()).await? {
        found.entry(address).or_default().push(metrics);
    }
    Ok(found)
}

/// Sets the channel of the newest message for phone numbers that have no other sign of their channel.
async fn find_newest(tx: &mut SqlTx, tenant: TenantId, addresses: &mut [Address]) -> Result<()> {
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
    let newest: HashMap<AddressId, Option<i16>> = tx.all(query.build()).await?.into_iter().collect();
    for address in addresses {
        address.newest = newest.get(&address.id).copied().flatten().and_then(Channel::from_number);
    }
    Ok(())
}
