//! `POST /v1/broadcasts/{id}/contacts/import`.

use axum::body::Body;
use axum::http::HeaderMap;
use axum::http::header::CONTENT_TYPE;
use http_body_util::BodyExt as _;
use nuncio_core::broadcasts::{ImportContacts, ImportFormat, ImportedContacts};
use nuncio_domain::{BroadcastId, Error, ErrorCode};

use crate::budget::{Lease, OVERHEAD};
use crate::extract::{Call, Path, Query, check_encoding};
use crate::reply::{Reply, Result};
use crate::wire::unread;

/// A file of recipients.
#[derive(utoipa::ToSchema)]
#[schema(value_type = String, format = Binary)]
#[expect(dead_code, reason = "describes the body, which is read as it arrives")]
struct RecipientFile(String);

/// Import recipients from a file
///
/// Only for a draft. The body is the file, of any size: CSV with a header row (`text/csv`; cells separated by comma, semicolon or tab),
/// or one JSON object per line (`application/x-ndjson`; flat, or like an item of `contacts` in *Add recipients to a broadcast*). Rows are
/// stored as they arrive, and kept if the request is interrupted. If it is, send the same file again: with the same `importId` it resumes
/// after the last stored row; without one, rows already stored count as duplicates.
#[utoipa::path(
    post, path = "/v1/broadcasts/{id}/contacts/import", tag = "Broadcasts",
    params(("id" = BroadcastId, Path, description = "The broadcast."), ImportContacts),
    request_body(description = "The file.", content((RecipientFile = "text/csv"), (RecipientFile = "application/x-ndjson"))),
    responses((status = 201, description = "The number of added rows, and why others were not added.", body = ImportedContacts)),
)]
pub(crate) async fn import_broadcast_contacts(
    Call(core, caller): Call,
    Path(id): Path<String>,
    Query(asked): Query<ImportContacts>,
    lease: Lease,
    headers: HeaderMap,
    body: Body,
) -> Result<Reply<ImportedContacts>> {
    let mut import = core.broadcasts().import(&caller, &id, asked, format(&headers)).await?;
    let mut body = body;
    while let Some(frame) = body.frame().await {
        let Ok(bytes) = frame.map_err(unread)?.into_data() else { continue };
        import.feed(&bytes).await?;
        // The bytes read are no longer in memory.
        lease.settle(OVERHEAD + import.held(), true)?;
    }
    Ok(Reply::created(import.finish().await?))
}

fn format(headers: &HeaderMap) -> nuncio_domain::Result<ImportFormat> {
    check_encoding(headers)?;
    let named = headers.get(CONTENT_TYPE).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match named.split(';').next().unwrap_or_default().trim().to_ascii_lowercase().as_str() {
        "text/csv" | "application/csv" | "text/tab-separated-values" => Ok(ImportFormat::Csv),
        "application/x-ndjson" | "application/ndjson" | "application/jsonl" | "application/x-jsonlines" => Ok(ImportFormat::Ndjson),
        _ => {
            let shown: String = named.chars().take(64).collect();
            let message = format!("the header Content-Type is {shown:?}; must be text/csv or application/x-ndjson");
            Err(Error::new(ErrorCode::UnsupportedMediaType, message))
        }
    }
}
