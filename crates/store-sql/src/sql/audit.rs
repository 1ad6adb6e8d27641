//! The audit log.

use async_trait::async_trait;
use nuncio_domain::audit::{Actor, ActorKind, Entry, Filter};
use nuncio_domain::id::Id as _;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{AuditEntryId, TenantId};
use nuncio_store::{AuditRepo, Result};
use serde_json::Value;
use uuid::Uuid;

use super::SqlTx;
use super::query::{Condition, List, all, is, of_tenant};
use crate::row::{corrupt, from_row};

const COLUMNS: &str = "id, tenant_id, actor_kind, actor, actor_label, origin, kind, verb, resource, before, after";

from_row! {
    struct EntryRow {
        id: Uuid,
        tenant_id: i64,
        actor_kind: i16,
        actor: String,
        actor_label: String,
        origin: String,
        kind: String,
        verb: String,
        resource: String,
        before: Option<String>,
        after: Option<String>,
    }
}

impl EntryRow {
    fn decode(self) -> Result<Entry> {
        let json = |text: Option<String>| -> Result<Option<Value>> {
            text.map(|text| serde_json::from_str(&text).map_err(|error| corrupt("audit_log", error.to_string()))).transpose()
        };
        let kind = ActorKind::from_number(self.actor_kind);
        Ok(Entry {
            id: AuditEntryId::from_uuid(self.id),
            tenant: TenantId(self.tenant_id),
            actor: Actor {
                kind: kind.ok_or_else(|| corrupt("audit_log", format!("actor_kind {}", self.actor_kind)))?,
                name: self.actor,
                label: self.actor_label,
            },
            from: self.origin,
            kind: self.kind,
            verb: self.verb,
            resource: self.resource,
            before: json(self.before)?,
            after: json(self.after)?,
        })
    }
}

#[async_trait]
impl AuditRepo for SqlTx {
    async fn insert_audit_entry(&mut self, entry: &Entry) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO audit_log (tenant_id, id, actor_kind, actor, actor_label, origin, kind, verb, resource, before, after)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            [
                entry.tenant.0,
                entry.id.uuid(),
                entry.actor.kind.number(),
                &entry.actor.name,
                &entry.actor.label,
                &entry.from,
                &entry.kind,
                &entry.verb,
                &entry.resource,
                entry.before.as_ref().map(Value::to_string),
                entry.after.as_ref().map(Value::to_string)
            ]
        ))
        .await
    }

    async fn list_audit_entries(&mut self, tenant: TenantId, filter: &Filter, page: PageRequest) -> Result<Page<Entry>> {
        // The index of the resource serves best; after it that of the actor. What is left is looked for among its rows.
        let wanted = [("resource", &filter.resource), ("actor", &filter.actor), ("kind", &filter.kind)];
        let mut wanted: Vec<_> = wanted.into_iter().filter_map(|(column, value)| Some((column, value.clone()?))).collect();
        let indexed = (!wanted.is_empty() && wanted[0].0 != "kind").then(|| wanted.remove(0));
        let streams = vec![of_tenant(tenant.0, move |query| {
            if let Some((column, value)) = &indexed {
                query.push(" AND ").push(*column).push(" = ").push_bind(value.clone());
            }
        })];
        let rest: Vec<Condition> = wanted.into_iter().map(|(column, value)| is(column, value)).collect();
        let list = List { joined: None, columns: COLUMNS, table: "audit_log", id: "id", streams, filter: all(rest) };
        let page = self.page(list, page, |row: &EntryRow| row.id).await?;
        Ok(Page { items: page.items.into_iter().map(EntryRow::decode).collect::<Result<_>>()?, next: page.next })
    }
}
