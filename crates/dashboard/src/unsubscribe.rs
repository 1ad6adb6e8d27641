//! `/unsubscribe/{token}`: one-click unsubscription (POST, RFC 8058) and its page. GET changes nothing: mail scanners open links.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::html;

use crate::page::{layout, page, plain};
use crate::{App, refused};

type Token = Result<Path<String>, PathRejection>;

/// Returns the token; `""`, which matches no message, if it is malformed.
fn readable(token: Token) -> String {
    token.map(|Path(token)| token).unwrap_or_default()
}

/// Shows the sender and a button.
pub(crate) async fn show(State(app): State<App>, token: Token, request: Request) -> Response {
    let leave = match app.core.suppressions().unsubscribe_target(&readable(token)).await {
        Ok(leave) => leave,
        Err(error) => return refused::link(&app, &request, "unsubscribing", &error),
    };
    let body = html! {
        h1 { "Unsubscribe" }
        p { "Do you want to stop receiving messages from " strong { (leave.sender) } " at " (leave.recipient) "?" }
        form method="post" {
            input type="hidden" name="List-Unsubscribe" value="One-Click";
            button { "Unsubscribe" }
        }
    };
    page(StatusCode::OK, layout("Unsubscribe", &body))
}

/// Unsubscribes. Ignores the body: the token suffices.
pub(crate) async fn act(State(app): State<App>, token: Token, request: Request) -> Response {
    match app.core.suppressions().unsubscribe(&readable(token)).await {
        Ok(()) => {
            page(StatusCode::OK, plain("You are unsubscribed", "You will not receive these messages any more. You can close this page."))
        }
        Err(error) => refused::link(&app, &request, "unsubscribing", &error),
    }
}
