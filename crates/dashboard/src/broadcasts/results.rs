//! `/broadcasts/{id}/results.csv`: what became of every recipient, for a spreadsheet.

use axum::body::Body;
use axum::extract::{Path, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use futures::{StreamExt as _, TryStreamExt as _, stream};
use nuncio_core::broadcasts::{BroadcastContactView, Results};
use nuncio_domain::Error;

use crate::App;
use crate::signed::{Signed, refuse};

const HEAD: &str = "recipient,status,channel,message,error,what happened,cost,time\r\n";

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
    let pieces = pages.map_ok(|page| page.iter().map(line).collect::<String>());
    let body = Body::from_stream(stream::iter([Ok(HEAD.to_owned())]).chain(pieces));
    let file = "attachment; filename=\"results.csv\"";
    ([(CONTENT_TYPE, "text/csv; charset=utf-8"), (CONTENT_DISPOSITION, file)], body).into_response()
}

fn line(contact: &BroadcastContactView) -> String {
    let text = |text: Option<&str>| cell(text.unwrap_or_default());
    let cells = [
        cell(&contact.recipient),
        cell(contact.status),
        text(contact.channel),
        cell(&contact.message_id.map(|id| id.to_string()).unwrap_or_default()),
        text(contact.error_code),
        text(contact.error_message.as_deref()),
        contact.cost.map(|cost| cost.to_string()).unwrap_or_default(),
        contact.processed_at.map(|at| at.to_string()).unwrap_or_default(),
    ];
    cells.join(",") + "\r\n"
}

/// A cell. What a spreadsheet would take for a formula gets an apostrophe in front; a phone number is none.
fn cell(text: &str) -> String {
    let number = text.strip_prefix('+').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
    let text = if text.starts_with(['=', '+', '-', '@', '\t', '\r']) && !number { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\n', '\r', ';']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_cell_is_a_formula() {
        let cells = ["+34600111222", "=1+1", "@SUM(A1)", "a,b", "say \"hi\"", "-5", "+34\n=1"].map(cell);
        assert_eq!(cells, ["+34600111222", "'=1+1", "'@SUM(A1)", "\"a,b\"", "\"say \"\"hi\"\"\"", "'-5", "\"'+34\n=1\""]);
    }
}
