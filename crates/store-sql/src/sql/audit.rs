//! The audit log.

use async_trait::async_trait;
use nuncio_domain::TenantId;
use nuncio_domain::audit::{Actor, Entry, Filter};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_store::{AuditRepo, Result};
use serde_json::Value;

use super::query::{Condition, List, all, is, of_tenant};
use super::{Columns, Record, SqlTx};

const COLUMNS: &str = "id, tenant_id, actor_kind, actor, actor_label, origin, kind, verb, resource, before, after";

impl Record for Entry {
    const TABLE: &'static str = "audit_log";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            id: row.get("id")?,
            tenant: row.get("tenant_id")?,
            actor: Actor { kind: row.get("actor_kind")?, name: row.get("actor")?, label: row.get("actor_label")? },
            from: row.get("origin")?,
            kind: row.get("kind")?,
            verb: row.get("verb")?,
            resource: row.get("resource")?,
            before: row.optional_json("before")?,
            after: row.optional_json("after")?,
        })
    }
}

#[async_trait]
impl AuditRepo for SqlTx {
    async fn insert_audit_entry(&mut self, entry: &Entry) -> Result<()> {
        let [before, after] = [&entry.before, &entry.after].map(|value| value.as_ref().map(Value::to_string));
        self.write(sql!(
            r"
                INSERT INTO audit_log (tenant_id, id, actor_kind, actor, actor_label, origin, kind, verb, resource, before, after)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)",
            [
                entry.tenant, entry.id, entry.actor.kind, &entry.actor.name, &entry.actor.label, &entry.from, &entry.kind, &entry.verb,
                &entry.resource, before, after
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
        self.page(list, page).await
    }
}
