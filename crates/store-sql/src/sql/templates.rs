//! Templates.

use async_trait::async_trait;
use nuncio_domain::id::Id as _;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::template::{Status, Template};
use nuncio_domain::{TemplateId, TenantId, Timestamp};
use nuncio_store::{Result, TemplateRepo};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::query::{List, of_tenant};
use super::{Db, SqlTx};
use crate::row::{corrupt, from_row, json};

from_row! {
    struct TemplateRow {
        tenant_id: i64,
        id: Uuid,
        name: String,
        language: String,
        status: i16,
        version: i64,
        due_at: Option<i64>,
        content: String,
        updated_at: i64,
    }
}

const TABLE: &str = "templates";
const COLUMNS: &str = "tenant_id, id, name, language, status, version, due_at, content, updated_at";

impl TemplateRow {
    fn decode(self) -> Result<Template> {
        Ok(Template {
            tenant: TenantId(self.tenant_id),
            id: TemplateId::from_uuid(self.id),
            name: self.name,
            language: self.language,
            status: Status::from_number(self.status).ok_or_else(|| corrupt(TABLE, format!("status {}", self.status)))?,
            version: self.version,
            due_at: self.due_at.map(Timestamp::from_millis),
            content: serde_json::from_str(&self.content).map_err(|e| corrupt(TABLE, e))?,
            updated_at: Timestamp::from_millis(self.updated_at),
        })
    }
}

#[async_trait]
impl TemplateRepo for SqlTx {
    async fn insert_template(&mut self, template: &Template) -> Result<bool> {
        self.changes(sql!(
            r"
                INSERT INTO templates (tenant_id, id, name, language, status, version, due_at, content,
                    updated_at)
                VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
                ON CONFLICT (tenant_id, name, language) DO NOTHING",
            [
                template.tenant.0,
                template.id.uuid(),
                &template.name,
                &template.language,
                template.status.number(),
                template.version,
                template.due_at.map(Timestamp::millis),
                json(&template.content)?,
                template.updated_at.millis()
            ]
        ))
        .await
    }

    async fn find_template(&mut self, tenant: TenantId, id: TemplateId) -> Result<Option<Template>> {
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query.push(COLUMNS).push(" FROM templates WHERE tenant_id = ").push_bind(tenant.0).push(" AND id = ").push_bind(id.uuid());
        let row: Option<TemplateRow> = self.optional(query.build()).await?;
        row.map(TemplateRow::decode).transpose()
    }

    async fn list_templates(&mut self, tenant: TenantId, page: PageRequest) -> Result<Page<Template>> {
        let streams = vec![of_tenant(tenant.0, |_| {})];
        let list = List { joined: None, columns: COLUMNS, table: "templates", id: "id", streams, filter: None };
        let page = self.page(list, page, |row: &TemplateRow| row.id).await?;
        Ok(Page { items: page.items.into_iter().map(TemplateRow::decode).collect::<Result<_>>()?, next: page.next })
    }

    async fn update_template(&mut self, template: &Template, seen: i64) -> Result<bool> {
        self.changes(sql!(
            r"
                UPDATE templates
                SET name = $3, language = $4, status = $5, version = $6, due_at = $7, content = $8,
                    updated_at = $9
                WHERE tenant_id = $1 AND id = $2 AND version = $10",
            [
                template.tenant.0,
                template.id.uuid(),
                &template.name,
                &template.language,
                template.status.number(),
                template.version,
                template.due_at.map(Timestamp::millis),
                json(&template.content)?,
                template.updated_at.millis(),
                seen
            ]
        ))
        .await
    }

    async fn delete_template(&mut self, tenant: TenantId, id: TemplateId) -> Result<bool> {
        self.changes(sql!("DELETE FROM templates WHERE tenant_id = $1 AND id = $2", [tenant.0, id.uuid()])).await
    }

    async fn due_templates(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Template>> {
        let mut query = QueryBuilder::<Db>::new("SELECT ");
        query.push(COLUMNS).push(" FROM templates WHERE due_at IS NOT NULL AND due_at <= ").push_bind(now.millis());
        query.push(" ORDER BY due_at LIMIT ").push_bind(i64::from(limit));
        let rows: Vec<TemplateRow> = self.all(query.build()).await?;
        rows.into_iter().map(TemplateRow::decode).collect()
    }
}
