//! Addresses of contacts, with their channels and metrics.

use std::collections::{BTreeSet, HashMap};

use async_trait::async_trait;
use nuncio_domain::contact::ChannelEntry;
use nuncio_domain::id::Id as _;
use nuncio_domain::{AddressId, AddressKind, Channel, ContactId, Recipient, TenantId, Timestamp};
use nuncio_store::{Address, AddressRepo, ChannelMetrics, MetricDelta, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{Db, SqlTx, dialect};
use crate::row::{corrupt, from_row, json};

from_row! {
    struct AddressRow {
        id: Uuid,
        contact_id: Uuid,
        kind: i16,
        identifier: String,
        created_at: i64,
    }
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

from_row! {
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

from_row! {
    struct MetricsRow {
        address_id: Uuid,
        channel: i16,
        successes: i64,
        failures: i64,
        delivery_ms: i64,
        timed: i64,
        last_success_at: Option<i64>,
        last_inbound_at: Option<i64>,
    }
}

impl MetricsRow {
    fn decode(self) -> Result<ChannelMetrics> {
        let Self { channel, successes, failures, delivery_ms, timed, last_success_at, last_inbound_at, .. } = self;
        Ok(ChannelMetrics {
            channel: Channel::from_number(channel).ok_or_else(|| corrupt("channel_metrics", format!("channel {channel}")))?,
            sums: MetricDelta { successes, failures, delivery_ms, timed, last_success_at: last_success_at.map(Timestamp::from_millis) },
            last_inbound_at: last_inbound_at.map(Timestamp::from_millis),
        })
    }
}

#[async_trait]
impl AddressRepo for SqlTx {
    async fn find_address(&mut self, tenant: TenantId, recipient: &Recipient) -> Result<Option<(AddressId, ContactId)>> {
        let row: Option<(Uuid, Uuid)> = self
            .optional(sql!(
                r"
                SELECT id, contact_id
                FROM addresses
                WHERE tenant_id = $1 AND kind = $2 AND identifier = $3",
                [tenant.0, recipient.kind.number(), &recipient.identifier]
            ))
            .await?;
        Ok(row.map(|(id, contact)| (AddressId::from_uuid(id), ContactId::from_uuid(contact))))
    }

    async fn channel_metrics(&mut self, tenant: TenantId, address: AddressId) -> Result<Vec<ChannelMetrics>> {
        let rows: Vec<MetricsRow> = self
            .all(sql!(
                r"
                SELECT address_id, channel, successes, failures, delivery_ms, timed, last_success_at,
                    last_inbound_at
                FROM channel_metrics
                WHERE tenant_id = $1 AND address_id = $2
                ORDER BY channel",
                [tenant.0, address.uuid()]
            ))
            .await?;
        rows.into_iter().map(MetricsRow::decode).collect()
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
        let mut rows: Vec<AddressRow> = self.all(query.build()).await?;
        rows.extend(self.all(dialect::moved_addresses(tenant.0, ids.iter().map(|id| id.uuid())).build()).await?);
        rows.sort_unstable_by_key(|row: &AddressRow| row.id);
        let mut addresses = rows.into_iter().map(AddressRow::decode).collect::<Result<Vec<_>>>()?;
        let known: Vec<Uuid> = addresses.iter().map(|a| a.id.uuid()).collect();
        let mut entries = entries(self, tenant, &known).await?;
        let mut metrics = metrics(self, tenant, &known).await?;
        for address in &mut addresses {
            address.entries = entries.remove(&address.id.uuid()).unwrap_or_default();
            address.metrics = metrics.remove(&address.id.uuid()).unwrap_or_default();
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
        let rows: Vec<(String, Uuid)> = self.all(query.build()).await?;
        Ok(rows.into_iter().map(|(identifier, id)| (identifier, ContactId::from_uuid(id))).collect())
    }

    async fn insert_address(&mut self, tenant: TenantId, address: &Address) -> Result<bool> {
        self.run(sql!("DELETE FROM removed_addresses WHERE tenant_id = $1 AND id = $2", [tenant.0, address.id.uuid()])).await?;
        self.changes(sql!(
            r"
                INSERT INTO addresses (tenant_id, id, kind, identifier, contact_id, created_at)
                VALUES ($1, $2, $3, $4, $5, $6)
                ON CONFLICT (tenant_id, kind, identifier) DO NOTHING",
            [
                tenant.0,
                address.id.uuid(),
                address.recipient.kind.number(),
                &address.recipient.identifier,
                address.contact.uuid(),
                address.created_at.millis()
            ]
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
            [tenant.0, id.uuid()]
        ))
        .await?;
        self.run(sql!("DELETE FROM contact_channels WHERE tenant_id = $1 AND address_id = $2", [tenant.0, id.uuid()])).await?;
        self.changes(sql!("DELETE FROM addresses WHERE tenant_id = $1 AND id = $2", [tenant.0, id.uuid()])).await
    }

    async fn removed_addresses(&mut self, tenant: TenantId, contact: ContactId) -> Result<Vec<(AddressId, Recipient)>> {
        let rows: Vec<(Uuid, i16, String)> = self
            .all(sql!(
                "SELECT id, kind, identifier FROM removed_addresses WHERE tenant_id = $1 AND contact_id = $2 ORDER BY id",
                [tenant.0, contact.uuid()]
            ))
            .await?;
        let decode = |(id, kind, identifier)| {
            let kind = AddressKind::from_number(kind).ok_or_else(|| corrupt("removed_addresses", format!("kind {kind}")))?;
            Ok((AddressId::from_uuid(id), Recipient { kind, identifier }))
        };
        rows.into_iter().map(decode).collect()
    }

    async fn delete_metrics(&mut self, tenant: TenantId, id: AddressId) -> Result<()> {
        self.write(sql!("DELETE FROM channel_metrics WHERE tenant_id = $1 AND address_id = $2", [tenant.0, id.uuid()])).await
    }

    async fn put_channel_entry(&mut self, tenant: TenantId, address: AddressId, entry: &ChannelEntry) -> Result<()> {
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
                tenant.0,
                address.uuid(),
                entry.channel.number(),
                i16::from(entry.hidden),
                entry.verified.map(i16::from),
                &entry.label,
                &entry.country,
                entry.metadata.as_ref().map(json).transpose()?,
                entry.created_at.millis(),
                entry.updated_at.millis()
            ]
        ))
        .await
    }
}

async fn entries(tx: &mut SqlTx, tenant: TenantId, addresses: &[Uuid]) -> Result<HashMap<Uuid, Vec<ChannelEntry>>> {
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
    let rows: Vec<EntryRow> = tx.all(query.build()).await?;
    for row in rows {
        let (address, entry) = row.decode()?;
        found.entry(address).or_default().push(entry);
    }
    Ok(found)
}

async fn metrics(tx: &mut SqlTx, tenant: TenantId, addresses: &[Uuid]) -> Result<HashMap<Uuid, Vec<ChannelMetrics>>> {
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
    let rows: Vec<MetricsRow> = tx.all(query.build()).await?;
    for row in rows {
        found.entry(row.address_id).or_default().push(row.decode()?);
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
    let rows: Vec<(Uuid, Option<i16>)> = tx.all(query.build()).await?;
    let newest: HashMap<Uuid, Option<i16>> = rows.into_iter().collect();
    for address in addresses {
        address.newest = newest.get(&address.id.uuid()).copied().flatten().and_then(Channel::from_number);
    }
    Ok(())
}
