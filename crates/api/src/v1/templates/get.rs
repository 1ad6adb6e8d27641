//! `GET /v1/templates/{id}`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::templates::TemplateView;

use crate::extract::{Auth, Path};
use crate::reply::{Reply, Result};

/// Get a template
#[utoipa::path(
    get, path = "/v1/templates/{id}", tag = "Templates",
    params(("id" = String, Path, description = "The template.", example = "tpl_01hgw2bbg0e9tatjpp9vyrkcyk")),
    responses((status = 200, description = "The template.", body = TemplateView)),
)]
pub(crate) async fn get_template(State(core): State<Core>, Auth(caller): Auth, Path(id): Path<String>) -> Result<Reply<TemplateView>> {
    Ok(Reply::ok(core.templates().get(&caller, &id).await?))
}
