//! Templates.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::template::Template;
use nuncio_domain::{TemplateId, TenantId, Timestamp};
use nuncio_store::{Result, TemplateRepo};
use sqlx::QueryBuilder;

use super::query::{List, of_tenant};
use super::{Columns, Db, Record, SqlTx};
use crate::row::json;

const COLUMNS: &str = "tenant_id, id, name, language, status, version, due_at, content, updated_at";

impl Record for Template {
    const TABLE: &'static str = "templates";

    fn read(row: &Columns<'_>) -> Result<Self> {
        Ok(Self {
            tenant: row.get("tenant_id")?,
            id: row.get("id")?,
            name: row.get("name")?,
            language: row.get("language")?,
            status: row.get("status")?,
            version: row.get("version")?,
            due_at: row.get("due_at")?,
            content: row.json("content")?,
            updated_at: row.get("updated_at")?,
        })
    }
}

#[async_trait]
impl TemplateRepo for SqlTx {
    async fn insert_template(&mut self, template: &Template) -> Result<bool> {
        let content = json(&template.content)?;
        self.changes(sql!(
            r"
                INSERT INTO templates (tenant_id, id, name, language, status, version, due_at, content,
                    updated_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                ON CONFLICT (tenant_id, name, language) DO NOTHING",
            [
                template.tenant, template.id, &template.name, &template.language, template.status, template.version, template.due_at,
                content, template.updated_at
            ]
        ))
        .await
    }

    async fn find_template(&mut self, tenant: TenantId, id: TemplateId) -> Result<Option<Template>> {
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query.push(COLUMNS).push(" FROM templates WHERE tenant_id = ").push_bind(tenant.0).push(" AND id = ").push_bind(id.uuid());
        self.optional(query.build()).await
    }

    async fn list_templates(&mut self, tenant: TenantId, page: PageRequest) -> Result<Page<Template>> {
        let streams = vec![of_tenant(tenant.0, |_| {})];
        let list = List { joined: None, columns: COLUMNS, table: "templates", id: "id", streams, filter: None };
        self.page(list, page).await
    }

    async fn update_template(&mut self, template: &Template, seen: i64) -> Result<bool> {
        let content = json(&template.content)?;
        self.changes(sql!(
            r"
                UPDATE templates
                SET name = $3, language = $4, status = $5, version = $6, due_at = $7, content = $8,
                    updated_at = $9
                WHERE tenant_id = $1 AND id = $2 AND version = $10",
            [
                template.tenant, template.id, &template.name, &template.language, template.status, template.version, template.due_at,
                content, template.updated_at, seen
            ]
        ))
        .await
    }

    async fn delete_template(&mut self, tenant: TenantId, id: TemplateId) -> Result<bool> {
        self.changes(sql!("DELETE FROM templates WHERE tenant_id = $1 AND id = $2", [tenant, id])).await
    }

    async fn due_templates(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Template>> {
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query.push(COLUMNS).push(" FROM templates WHERE due_at IS NOT NULL AND due_at <= ").push_bind(now.millis());
        query.push(" ORDER BY due_at LIMIT ").push_bind(i64::from(limit));
        self.all(query.build()).await
    }
}
