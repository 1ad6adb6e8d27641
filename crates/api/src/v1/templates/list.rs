//! `GET /v1/templates`.

use nuncio_core::templates::{ListTemplates, TemplateView};

use crate::extract::{Call, Query};
use crate::reply::{Reply, Result, page};

page! {
    /// A page of templates.
    TemplatePage of TemplateView
}

/// List templates
///
/// Newest first.
#[utoipa::path(
    get, path = "/v1/templates", tag = "Templates", params(ListTemplates),
    responses((status = 200, description = "A page of templates.", body = TemplatePage)),
)]
pub(crate) async fn list_templates(Call(core, caller): Call, Query(list): Query<ListTemplates>) -> Result<Reply<TemplatePage>> {
    Ok(Reply::ok(core.templates().list(&caller, &list).await?.into()))
}
