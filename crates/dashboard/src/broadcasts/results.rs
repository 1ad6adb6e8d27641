//! `/broadcasts/{id}/results.csv`: results of all recipients, for spreadsheets.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use nuncio_core::broadcasts::{CSV_HEAD, Results, csv_line};
use nuncio_domain::Error;

use crate::App;
use crate::signed::{Signed, refuse};

pub(crate) async fn results(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>) -> Response {
    let results = match app.core.broadcasts().results(&who.caller, &id).await {
        Ok(results) => results,
        Err(error) => return refuse(&who, "/broadcasts", &error),
    };
    let pages =
        stream::try_unfold(
            results,
            |mut results: Results| async move { Ok::<_, Error>(results.next().await?.map(|page| (page, results))) },
        );
    let pieces = pages.map_ok(|page| page.iter().map(csv_line).collect::<String>());
    let body = Body::from_stream(stream::iter([Ok(CSV_HEAD.to_owned())]).chain(pieces));
    let file = "attachment; filename=\"results.csv\"";
    ([(CONTENT_TYPE, "text/csv; charset=utf-8"), (CONTENT_DISPOSITION, file)], body).into_response()
}
