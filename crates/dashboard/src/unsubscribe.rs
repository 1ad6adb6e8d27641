//! `/unsubscribe/{token}`: one click in a mailbox (a POST, RFC 8058), or the page behind the link. Looking changes nothing: mailboxes and
//! their guards open links by themselves.

use axum::extract::rejection::PathRejection;
use axum::extract::{Path, Request, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::html;

use crate::page::{layout, page, plain};
use crate::{App, refused};

type Token = Result<Path<String>, PathRejection>;

/// The token of a link; what cannot be read is of no message.
fn readable(token: Token) -> String {
    token.map(|Path(token)| token).unwrap_or_default()
}

/// Whose messages the link is about, and a button.
pub(crate) async fn show(State(app): State<App>, token: Token, request: Request) -> Response {
    let leave = match app.core.suppressions().unsubscribe_target(&readable(token)).await {
        Ok(leave) => leave,
        Err(error) => return refused::link(&app, &request, "unsubscribing", &error),
    };
    let body = html! {
        h1 { "Unsubscribe" }
        p { "Do you want no more messages from " strong { (leave.sender) } " at " (leave.recipient) "?" }
        form method="post" {
            input type="hidden" name="List-Unsubscribe" value="One-Click";
            button { "Unsubscribe" }
        }
    };
    page(StatusCode::OK, layout("Unsubscribe", &body))
}

/// Unsubscribes. The body says nothing that the address does not.
pub(crate) async fn act(State(app): State<App>, token: Token, request: Request) -> Response {
    match app.core.suppressions().unsubscribe(&readable(token)).await {
        Ok(()) => page(StatusCode::OK, plain("You are unsubscribed", "You will get no more of these messages. You can close this page.")),
        Err(error) => refused::link(&app, &request, "unsubscribing", &error),
    }
}
