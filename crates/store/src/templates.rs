//! Templates.

use async_trait::async_trait;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::template::Template;
use nuncio_domain::{TemplateId, TenantId, Timestamp};

use crate::error::Result;

/// Templates.
#[async_trait]
pub trait TemplateRepo {
    /// Writes a template; `false` when there is one of this name and language.
    async fn insert_template(&mut self, template: &Template) -> Result<bool>;

    /// One template.
    async fn find_template(&mut self, tenant: TenantId, id: TemplateId) -> Result<Option<Template>>;

    /// Templates, newest first.
    async fn list_templates(&mut self, tenant: TenantId, page: PageRequest) -> Result<Page<Template>>;

    /// Writes a template anew, if its version still is `seen`; `false` when it is not.
    async fn update_template(&mut self, template: &Template, seen: i64) -> Result<bool>;

    /// Removes a template; `false` when there is none.
    async fn delete_template(&mut self, tenant: TenantId, id: TemplateId) -> Result<bool>;

    /// Up to `limit` templates of all worlds of which the provider must be asked at `now`.
    async fn due_templates(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Template>>;
}
