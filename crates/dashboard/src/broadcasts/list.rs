//! `/broadcasts`: lists broadcasts, newest first.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::broadcasts::ListBroadcasts;
use nuncio_core::users::SignedIn;
use nuncio_domain::Result;

use crate::App;
use crate::components::{broadcast_state, count, data_table, empty, head, may_change, pager, requested, time, words};
use crate::shell::{Live, followed};
use crate::signed::{Asked, Signed, refuse};

pub(crate) async fn list(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    match broadcasts(&app, &who, &asked).await {
        Ok(content) => {
            let live = asked.get("cursor").is_none().then_some(Live::Rows);
            followed(StatusCode::OK, &who, "/broadcasts", "Broadcasts", &content, live)
        }
        Err(error) => refuse(&who, "/broadcasts", &error),
    }
}

async fn broadcasts(app: &App, who: &SignedIn, asked: &Asked) -> Result<Markup> {
    let list = ListBroadcasts { cursor: asked.get("cursor"), ..ListBroadcasts::default() };
    let (broadcasts, next) = app.core.broadcasts().list(&who.caller, &list).await?;
    Ok(html! {
        (head(None, html! { "Broadcasts" }, html! { "One content for many recipients" }, html! { @if !broadcasts.is_empty() { (begin(who)) } }))
        section class="panel" aria-label="List" {
            @if broadcasts.is_empty() {
                (empty("cast", "No broadcasts yet", "Write once, add recipients from a file or from your contacts, and see the cost before you send.", begin(who)))
            } @else {
                (data_table("rows fix", "Broadcasts, newest first", &[("w w3", "Status"), ("w5", "Name"), ("w w2", "Channel"), ("num w w2", "Recipients"), ("num w w2", "Delivered"), ("num w2", "Made")], html! {
                    @for broadcast in &broadcasts {
                        tr {
                            td class="w" { (broadcast_state(broadcast.status)) }
                            td { a class="to clip" href={ "/broadcasts/" (broadcast.id) } { (words(&broadcast.name)) } span class="n" { (broadcast_state(broadcast.status)) } }
                            td class="w" { (requested(broadcast.channel.requested())) }
                            td class="num w" { (count(broadcast.total_contacts)) }
                            td class="num w" { (count(broadcast.delivered_count)) }
                            td class="num" { (time(broadcast.created_at)) }
                        }
                    }
                }))
                (pager(asked.older("/broadcasts", next)))
            }
        }
    })
}

fn begin(who: &SignedIn) -> Markup {
    html! { @if may_change(who) { a class="btn go" href="/broadcasts/new" { "New broadcast" } } }
}
