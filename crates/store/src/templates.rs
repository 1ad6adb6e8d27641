use async_trait::async_trait;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::template::Template;
use nuncio_domain::{TemplateId, TenantId, Timestamp};

use crate::error::Result;

#[async_trait]
pub trait TemplateRepo {
    /// Stores a template; `false` if one with this name and language exists.
    async fn insert_template(&mut self, template: &Template) -> Result<bool>;

    async fn find_template(&mut self, tenant: TenantId, id: TemplateId) -> Result<Option<Template>>;

    /// Lists templates, newest first.
    async fn list_templates(&mut self, tenant: TenantId, page: PageRequest) -> Result<Page<Template>>;

    /// Updates a template if its version is still `seen`; otherwise returns `false`.
    async fn update_template(&mut self, template: &Template, seen: i64) -> Result<bool>;

    /// Deletes a template; `false` if there is none.
    async fn delete_template(&mut self, tenant: TenantId, id: TemplateId) -> Result<bool>;

    /// Returns up to `limit` templates of all environments that must be polled at `now`.
    async fn due_templates(&mut self, now: Timestamp, limit: u32) -> Result<Vec<Template>>;
}
