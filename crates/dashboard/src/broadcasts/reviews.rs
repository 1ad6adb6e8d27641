//! `/reviews`: broadcasts that wait for a human decision.

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::broadcasts::BroadcastView;
use nuncio_core::users::SignedIn;
use nuncio_domain::permission::Permission;
use nuncio_domain::{Error, ErrorCode, Result};

use super::act::{is_too_late, lead_to_too_late};
use super::letter::letter;
use crate::App;
use crate::components::{ask_first, count, empty, form_key, head, requested, words};
use crate::shell::shell;
use crate::signed::{Posted, Signed, lead_back_or_refuse, refuse};

pub(crate) async fn reviews(State(app): State<App>, Signed(who): Signed) -> Response {
    let waiting = match who.caller.require(Permission::BroadcastsRead) {
        Ok(()) => app.core.broadcasts().escalated(who.caller.tenant).await,
        Err(error) => Err(error),
    };
    let shown = match waiting {
        Ok(waiting) => with_letters(&app, &who, waiting).await,
        Err(error) => Err(error),
    };
    match shown {
        Ok(waiting) => shell(&who, "/reviews", "Reviews", &to_decide(&who, &waiting)),
        Err(error) => refuse(&who, "/", &error),
    }
}

/// Adds what each broadcast says; reads each, as lists have no HTML.
async fn with_letters(app: &App, who: &SignedIn, waiting: Vec<BroadcastView>) -> Result<Vec<(BroadcastView, Markup)>> {
    let mut all = Vec::new();
    for broadcast in waiting {
        let whole = app.core.broadcasts().get(&who.caller, &broadcast.id.to_string()).await?;
        let says = letter(app, who, &whole).await?;
        all.push((whole, says));
    }
    Ok(all)
}

fn to_decide(who: &SignedIn, waiting: &[(BroadcastView, Markup)]) -> Markup {
    let number = match waiting.len() {
        0 => String::new(),
        1 => "1 broadcast to decide".to_owned(),
        number => format!("{number} broadcasts to decide"),
    };
    html! {
        (head(None, html! { "Reviews" }, html! { "Broadcasts that the review rejected and whose authors ask for a person" }, html! { span class="faint" { (number) } }))
        @if waiting.is_empty() { section class="panel" { (empty("check", "Nothing to decide", "Rejected broadcasts whose authors request a human review appear here.", html! {})) } }
        div class="stack" {
            @for (broadcast, says) in waiting {
                article class="panel" aria-labelledby=(broadcast.id) {
                    header { h2 id=(broadcast.id) { a href={ "/broadcasts/" (broadcast.id) } { (words(&broadcast.name)) } } span class="faint" { (count(broadcast.total_contacts)) " recipients, " (requested(broadcast.channel.requested())) } }
                    div class="body" {
                        (says)
                        @if let Some(review) = &broadcast.review_result { p class="soft" { b { (format!("{:.2}", review.score)) } " of 1: " (review.reasoning) } }
                    }
                    @if may_decide(who).is_err() { footer { span class="faint" { "The operator of the server decides about it." } } } @else { footer {
                        @let action = format!("/reviews/{}", broadcast.id);
                        form class="plain" method="post" action=(action) {
                            (form_key(who))
                            div class="row" {
                                @let id = format!("approve-{}", broadcast.id);
                                label for=(id) { "Reason, seen by the author " span class="opt" { "optional" } }
                                input class="in" id=(id) name="why";
                                button class="btn go" name="do" value="approve" { "Approve, send to " (count(broadcast.total_contacts)) }
                            }
                        }
                        (ask_first(&format!("reject-{}", broadcast.id), "Reject permanently", "Reject this broadcast?", "It is never sent, and cannot be reviewed again.", &action, reason(who, broadcast)))
                    } }
                }
            }
        }
    }
}

fn may_decide(who: &SignedIn) -> Result<()> {
    who.caller.require(Permission::BroadcastsSend)?;
    if !who.decides_reviews {
        return Err(Error::new(
            ErrorCode::Forbidden,
            "Only operators and owners of the oldest project can decide about escalated broadcasts",
        ));
    }
    Ok(())
}

/// The fields of a rejection.
fn reason(who: &SignedIn, broadcast: &BroadcastView) -> Markup {
    let id = format!("why-{}", broadcast.id);
    html! {
        (form_key(who))
        input type="hidden" name="do" value="refuse";
        div class="field" {
            label for=(id) { "Reason, seen by the author" }
            input class="in" id=(id) name="why" required;
        }
    }
}

pub(crate) async fn decide(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, Posted(form): Posted) -> Response {
    let reason = Some(form.get("why")).filter(|reason| !reason.trim().is_empty());
    let done = match (may_decide(&who), form.get("do").as_str()) {
        (Err(error), _) => Err(error),
        (Ok(()), "refuse") if reason.is_none() => Err(Error::field("why", "is missing; the author needs the reason")),
        (Ok(()), verb @ ("approve" | "refuse")) => {
            app.core.broadcasts().decide_review(who.caller.tenant, &id, verb == "approve", reason.as_deref()).await.map(drop)
        }
        (Ok(()), _) => Err(Error::field("do", "must be approve or refuse")),
    };
    match done {
        Err(error) if is_too_late(&error) => lead_to_too_late(&id),
        done => lead_back_or_refuse(&who, "/reviews", done),
    }
}
