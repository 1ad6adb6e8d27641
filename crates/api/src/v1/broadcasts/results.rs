//! `GET /v1/broadcasts/{id}/results`.

use axum::body::Body;
use axum::extract::State;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures::{TryStreamExt as _, stream};
use nuncio_core::Core;
use nuncio_core::broadcasts::{BroadcastContactView, Results};
use nuncio_domain::Error;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};

use crate::extract::{Auth, Path, Query};
use crate::reply::Result;

/// How results are written.
#[derive(Clone, Copy, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub(crate) enum ResultsFormat {
    /// Comma-separated values with a head line.
    #[default]
    Csv,
    /// One JSON object a line, each as an item of *List the recipients of a broadcast*.
    Ndjson,
}

/// How results are asked for.
#[derive(Debug, Default, Deserialize, IntoParams)]
#[serde(default, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub(crate) struct ResultsQuery {
    /// How they are written. Default: `csv`.
    #[param(inline)]
    format: ResultsFormat,
}

const HEAD: &str = "id,recipient,recipientType,status,channel,messageId,errorCode,errorMessage,cost,processedAt,createdAt\r\n";

/// Export the results of a broadcast
///
/// All recipients with what became of them, newest first, as one stream of any length.
#[utoipa::path(
    get, path = "/v1/broadcasts/{id}/results", tag = "Broadcasts", params(("id" = String, Path, description = "The broadcast.", example = "brd_01hgw2bbg0e9tatjpp9vyrkcyk"), ResultsQuery),
    responses((status = 200, description = "The recipients.", headers(("Content-Disposition" = String, description = "A name for the file.")), content((String = "text/csv"), (String = "application/x-ndjson")))),
)]
pub(crate) async fn export_broadcast_results(
    State(core): State<Core>,
    Auth(caller): Auth,
    Path(id): Path<String>,
    Query(asked): Query<ResultsQuery>,
) -> Result<Response> {
    let results = core.broadcasts().results(&caller, &id).await?;
    let (kind, extension, head) = match asked.format {
        ResultsFormat::Csv => ("text/csv; charset=utf-8", "csv", HEAD),
        ResultsFormat::Ndjson => ("application/x-ndjson", "ndjson", ""),
    };
    let file = format!("attachment; filename=\"{id}.{extension}\"");
    let format = asked.format;
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

fn line(contact: &BroadcastContactView, format: ResultsFormat) -> String {
    match format {
        ResultsFormat::Ndjson => serde_json::to_string(contact).unwrap_or_default() + "\n",
        ResultsFormat::Csv => {
            let cells = [
                contact.id.to_string(),
                contact.recipient.clone(),
                contact.recipient_type.to_owned(),
                contact.status.to_owned(),
                contact.channel.unwrap_or_default().to_owned(),
                contact.message_id.map(|id| id.to_string()).unwrap_or_default(),
                contact.error_code.unwrap_or_default().to_owned(),
                contact.error_message.clone().unwrap_or_default(),
                contact.cost.map(|cost| cost.to_string()).unwrap_or_default(),
                contact.processed_at.map(|at| at.to_string()).unwrap_or_default(),
                contact.created_at.to_string(),
            ];
            cells.map(|cell| quoted(&cell)).join(",") + "\r\n"
        }
    }
}

/// A cell of a CSV file (RFC 4180). Text that a spreadsheet would take for a formula begins with an apostrophe; numbers do not.
fn quoted(cell: &str) -> String {
    let number = cell.strip_prefix(['+', '-']).is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit() || b == b'.'));
    let formula = cell.starts_with(['=', '+', '-', '@', '\t', '\r']) && !number;
    let cell = if formula { format!("'{cell}") } else { cell.to_owned() };
    if cell.contains([',', '"', '\n', '\r']) { format!("\"{}\"", cell.replace('"', "\"\"")) } else { cell }
}
