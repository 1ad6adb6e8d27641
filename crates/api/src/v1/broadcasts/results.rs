//! `GET /v1/broadcasts/{id}/results`.

use axum::body::Body;
use axum::extract::State;
use axum::http::HeaderMap;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures::{TryStreamExt as _, stream};
use nuncio_core::broadcasts::{BroadcastContactView, CSV_HEAD, Results, csv_line};
use nuncio_domain::{BroadcastId, Error};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::extract::{Auth, Path, Query};
use crate::middleware::prefers;
use crate::reply::Result;
use crate::state::App;

/// Format of results.
#[derive(Clone, Copy, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResultsFormat {
    /// Comma-separated values with a header row.
    Csv,
    /// One JSON object per line, each like an item of *List the recipients of a broadcast*.
    Ndjson,
}

/// Query of an export.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ResultsQuery {
    /// The format. By default what `Accept` asks for, otherwise `csv`.
    #[param(inline)]
    format: Option<ResultsFormat>,
}

/// Export the results of a broadcast
///
/// All recipients with their results, newest first, in one response.
#[utoipa::path(
    get, path = "/v1/broadcasts/{id}/results", tag = "Broadcasts", params(("id" = BroadcastId, Path, description = "The broadcast."), ResultsQuery),
    responses((status = 200, description = "The recipients.", headers(("Content-Disposition" = String, description = "A file name.")), content((String = "text/csv"), (String = "application/x-ndjson")))),
)]
pub(crate) async fn export_broadcast_results(
    State(app): State<App>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Query(asked): Query<ResultsQuery>,
    headers: HeaderMap,
) -> Result<Response> {
    let results = app.core.broadcasts().results(&caller, &id).await?;
    let format = asked.format.unwrap_or(preferred(&headers));
    let (kind, extension, head) = match format {
        ResultsFormat::Csv => ("text/csv; charset=utf-8", "csv", CSV_HEAD),
        ResultsFormat::Ndjson => ("application/x-ndjson", "ndjson", ""),
    };
    let file = format!("attachment; filename=\"{id}.{extension}\"");
    let pages =
        stream::try_unfold(
            results,
            |mut results: Results| async move { Ok::<_, Error>(results.next().await?.map(|page| (page, results))) },
        );
    let pieces = pages.map_ok(move |page| page.iter().map(|contact| line(contact, format)).collect::<String>());
    let body = stream::iter([Ok(head.to_owned())]);
    let body = Body::from_stream(futures::StreamExt::chain(body, pieces));
    Ok(([(CONTENT_TYPE, kind.to_owned()), (CONTENT_DISPOSITION, file)], body).into_response())
}

/// Returns the format that `Accept` prefers; CSV if it leaves the choice.
fn preferred(headers: &HeaderMap) -> ResultsFormat {
    if prefers(headers, "application/x-ndjson", "text/csv") { ResultsFormat::Ndjson } else { ResultsFormat::Csv }
}

fn line(contact: &BroadcastContactView, format: ResultsFormat) -> String {
    match format {
        ResultsFormat::Ndjson => serde_json::to_string(contact).unwrap_or_default() + "\n",
        ResultsFormat::Csv => csv_line(contact),
    }
}
