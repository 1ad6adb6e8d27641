//! `GET /v1/templates`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::templates::{ListTemplates, TemplateView};

use crate::extract::{Auth, Query};
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
pub(crate) async fn list_templates(
    State(core): State<Core>,
    Auth(caller): Auth,
    Query(list): Query<ListTemplates>,
) -> Result<Reply<TemplatePage>> {
    Ok(Reply::ok(core.templates().list(&caller, &list).await?.into()))
}
