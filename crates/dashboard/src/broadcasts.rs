//! `/broadcasts`, `/broadcasts/{id}` and `/reviews`: how they go, and what a person decides.

use axum::extract::{Path, Request, State};
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::broadcasts::{BroadcastProgress, BroadcastView, ListBroadcasts};
use nuncio_core::users::SignedIn;
use nuncio_domain::permission::Permission;
use nuncio_domain::{Error, Result};

use crate::App;
use crate::components::{ask_first, broadcast_state, channel, count, empty, head, icon, money, pager, state, time, value, words};
use crate::shell::{form_key, shell};
use crate::signed::{Asked, Signed, form, lead_to, refuse};

pub(crate) async fn list(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    match broadcasts(&app, &who, &asked).await {
        Ok(content) => shell(&who, "/broadcasts", "Broadcasts", &content),
        Err(error) => refuse(&who, "/broadcasts", &error),
    }
}

async fn broadcasts(app: &App, who: &SignedIn, asked: &Asked) -> Result<Markup> {
    let list = ListBroadcasts { cursor: asked.get("cursor"), ..ListBroadcasts::default() };
    let (broadcasts, next) = app.core.broadcasts().list(&who.caller, &list).await?;
    Ok(html! {
        (head(None, html! { "Broadcasts" }, html! { "One content for many recipients" }, html! {}))
        section class="panel" aria-label="List" {
            @if broadcasts.is_empty() {
                (empty("cast", "No broadcasts yet", "Make one with POST /v1/broadcasts, and add recipients with nuncio broadcasts import FILE. It is reviewed before it goes out.", html! {}))
            } @else {
                table class="rows fix" {
                    caption class="sr" { "Broadcasts, newest first" }
                    thead { tr { th scope="col" class="w3" { "Status" } th scope="col" class="w5" { "Name" } th scope="col" class="w w2" { "Channel" } th scope="col" class="num w w2" { "Recipients" } th scope="col" class="num w w2" { "Delivered" } th scope="col" class="num w2" { "Made" } } }
                    tbody {
                        @for broadcast in &broadcasts {
                            tr {
                                td { (broadcast_state(broadcast.status)) }
                                td { a class="to clip" href={ "/broadcasts/" (broadcast.id) } { (words(&broadcast.name)) } }
                                td class="w" { (channel(broadcast.channel)) }
                                td class="num w" { (count(broadcast.total_contacts)) }
                                td class="num w" { (count(broadcast.delivered_count)) }
                                td class="num" { (time(broadcast.created_at)) }
                            }
                        }
                    }
                }
                (pager(asked.older("/broadcasts", next)))
            }
        }
    })
}

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>) -> Response {
    match one(&app, &who, &id).await {
        Ok((title, content)) => shell(&who, "/broadcasts", &title, &content),
        Err(error) => refuse(&who, "/broadcasts", &error),
    }
}

async fn one(app: &App, who: &SignedIn, id: &str) -> Result<(String, Markup)> {
    let broadcasts = app.core.broadcasts();
    let broadcast = broadcasts.get(&who.caller, id).await?;
    let progress = broadcasts.progress(&who.caller, id).await?;
    let line = html! { (broadcast_state(broadcast.status)) @if let Some(at) = broadcast.started_at { " since " (time(at)) } " · " (channel(broadcast.channel)) };
    let content = html! {
        (head(Some(("/broadcasts", "Broadcasts")), words(&broadcast.name), line, acts(who, &broadcast)))
        @if let Some(reason) = &broadcast.halted_reason { (notice("It was paused by itself.", reason)) }
        (how_far(&broadcast, &progress))
        div class="cols even" { (text(&broadcast)) (review(&broadcast)) (sums(&broadcast)) }
        section class="panel" { header { h2 { "Id" } } div class="body" { (value(&broadcast.id.to_string())) } }
    };
    Ok((broadcast.name.clone(), content))
}

fn notice(title: &str, words: &str) -> Markup {
    html! { div class="note held" { (icon("alert")) div { b { (title) } p { (words) } } } }
}

fn acts(who: &SignedIn, broadcast: &BroadcastView) -> Markup {
    let action = format!("/broadcasts/{}", broadcast.id);
    let button = |verb: &str, word: &str, strong: bool| {
        html! { form class="plain" method="post" action=(action) { (form_key(who)) button class=(if strong { "btn go" } else { "btn" }) name="do" value=(verb) { (word) } } }
    };
    html! {
        @if broadcast.status == "draft" && broadcast.total_contacts > 0 { (button("send", &format!("Review and send to {}", count(broadcast.total_contacts)), true)) }
        @if matches!(broadcast.status, "sending" | "scheduled") { (button("pause", "Pause", false)) }
        @if broadcast.status == "paused" { (button("resume", "Resume", true)) }
        @if broadcast.status == "rejected" { (button("escalate", "Ask a person to decide", false)) }
        @if matches!(broadcast.status, "sending" | "scheduled" | "paused" | "pending_review" | "escalated") {
            (ask_first("cancel", "Cancel", "Cancel this broadcast?", &format!("{} recipients have not got it and will not. This cannot be undone.", count(broadcast.pending_count)),
                &action, html! { (form_key(who)) input type="hidden" name="do" value="cancel"; }))
        }
        a class="btn" href={ "/messages?broadcast=" (broadcast.id) } { "Messages" }
    }
}

/// Whose numbers are part of all.
fn how_far(broadcast: &BroadcastView, progress: &BroadcastProgress) -> Markup {
    let total = progress.total.max(1) as f64;
    let parts = [("fok", progress.delivered), ("fmove", progress.sending), ("fbad", progress.failed), ("fstop", progress.skipped)];
    let mut from = 0.0;
    let bars: Vec<_> = parts
        .into_iter()
        .map(|(class, number)| {
            let (start, width) = (from, number as f64 / total * 100.0);
            from += width;
            html! { rect class=(class) x=(format!("{start:.2}%")) width=(format!("{width:.2}%")) height="100%" {} }
        })
        .collect();
    let figure = |shape: &str, word: &str, number: i64| {
        html! { div { dt { (state(shape, word)) } dd { (count(number)) } dd { (format!("{:.1} %", number as f64 / total * 100.0)) } } }
    };
    let label = format!(
        "{} delivered, {} on the way, {} failed, {} skipped, {} waiting",
        progress.delivered, progress.sending, progress.failed, progress.skipped, progress.pending
    );
    html! {
        section class="panel" aria-label="Progress" {
            div class="body" {
                div class="row" {
                    b class="h" { (progress.percent_complete) " % done" }
                    span class="soft" {
                        (count(broadcast.total_contacts)) " recipients"
                        @if let Some(rate) = progress.recipients_per_second { ", " (rate) " a second" }
                        @if let Some(at) = progress.estimated_completion_at { ", through at about " (time(at)) }
                    }
                }
                svg class="meter big" role="img" aria-label=(label) { @for bar in bars { (bar) } }
            }
            dl class="figs" {
                (figure("ok", "Delivered", progress.delivered))
                (figure("move", "On the way", progress.sending))
                (figure("", "Waiting", progress.pending))
                (figure("bad", "Failed", progress.failed))
                (figure("stop", "Skipped", progress.skipped))
            }
        }
    }
}

fn text(broadcast: &BroadcastView) -> Markup {
    let flagged = broadcast.review_result.as_ref().map_or(&[][..], |review| &review.flagged_content);
    html! {
        section class="panel" {
            header { h2 { "Content" } }
            div class="body" {
                @if let Some(subject) = &broadcast.email_subject { p { b { (words(subject)) } } }
                @if let Some(text) = &broadcast.text { div class="letter" dir="auto" { (marked(text, flagged)) } }
                @else { p class="soft" { "Made from a template, or without text." } }
            }
        }
    }
}

/// The text with what the review objected to.
pub(crate) fn marked(text: &str, flagged: &[String]) -> Markup {
    let mut spans: Vec<(usize, usize)> = flagged
        .iter()
        .filter(|part| !part.is_empty())
        .filter_map(|part| text.find(part.as_str()).map(|at| (at, at + part.len())))
        .collect();
    spans.sort_unstable();
    let (mut pieces, mut at) = (Vec::new(), 0);
    for (start, end) in spans {
        if start >= at {
            pieces.push(html! { (text[at..start]) mark { (text[start..end]) } });
            at = end;
        }
    }
    html! { @for piece in &pieces { (piece) } (text[at..]) }
}

fn review(broadcast: &BroadcastView) -> Markup {
    html! {
        section class="panel" {
            header { h2 { "Review" } }
            div class="body" {
                @match &broadcast.review_result {
                    Some(review) => {
                        p { b { (format!("{:.2}", review.score)) } " of 1 safe" @if !review.categories.is_empty() { ": " (review.categories.join(", ")) } }
                        p class="soft" { (review.reasoning) }
                    }
                    None => { p class="soft" { "It is reviewed when it is sent." } }
                }
            }
        }
    }
}

fn sums(broadcast: &BroadcastView) -> Markup {
    html! {
        section class="panel" {
            header { h2 { "Money" } }
            div class="body" {
                dl class="facts" {
                    dt { "Expected" } dd { (money(broadcast.estimated_cost)) }
                    dt { "Set aside" } dd { (money(Some(broadcast.reserved_amount))) }
                    dt class="sum" { "Spent" } dd class="sum" { (money(Some(broadcast.actual_cost))) }
                }
            }
        }
    }
}

/// Does something with a broadcast.
pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, request: Request) -> Response {
    let form = match form(&app, request).await {
        Ok(form) => form,
        Err(refused) => return refused,
    };
    let (broadcasts, caller, page) = (app.core.broadcasts(), &who.caller, format!("/broadcasts/{id}"));
    let done = match form.get("do").as_str() {
        "send" => broadcasts.send(caller, &id, Default::default()).await.map(drop),
        "pause" => broadcasts.pause(caller, &id).await.map(drop),
        "resume" => broadcasts.resume(caller, &id).await.map(drop),
        "cancel" => broadcasts.cancel(caller, &id).await.map(drop),
        "escalate" => broadcasts.escalate(caller, &id).await.map(drop),
        _ => Err(Error::field("do", "is not something that can be done with a broadcast")),
    };
    match done {
        Ok(()) => lead_to(&page),
        Err(error) => refuse(&who, &page, &error),
    }
}

/// Broadcasts that wait for a person.
pub(crate) async fn reviews(State(app): State<App>, Signed(who): Signed) -> Response {
    let waiting = match who.caller.require(Permission::BroadcastsRead) {
        Ok(()) => app.core.broadcasts().escalated(who.caller.tenant).await,
        Err(error) => Err(error),
    };
    match waiting {
        Ok(waiting) => shell(&who, "/reviews", "Reviews", &to_decide(&who, &waiting)),
        Err(error) => refuse(&who, "/", &error),
    }
}

fn to_decide(who: &SignedIn, waiting: &[BroadcastView]) -> Markup {
    let title = match waiting.len() {
        0 => "Nothing to decide".to_owned(),
        1 => "1 broadcast to decide".to_owned(),
        number => format!("{number} broadcasts to decide"),
    };
    html! {
        (head(None, html! { (title) }, html! { "The automated review refused them, and their authors ask a person." }, html! {}))
        @if waiting.is_empty() { section class="panel" { (empty("check", "Nothing to decide", "A refused broadcast whose author asks for a person waits here.", html! {})) } }
        div class="stack" {
            @for broadcast in waiting {
                article class="panel" aria-labelledby=(broadcast.id) {
                    header { h2 id=(broadcast.id) { a href={ "/broadcasts/" (broadcast.id) } { (words(&broadcast.name)) } } span class="faint" { (count(broadcast.total_contacts)) " recipients, " (channel(broadcast.channel)) } }
                    div class="body" {
                        @let review = broadcast.review_result.as_ref();
                        div class="letter" dir="auto" { (marked(broadcast.text.as_deref().unwrap_or_default(), review.map_or(&[][..], |review| &review.flagged_content))) }
                        @if let Some(review) = review { p class="soft" { b { (format!("{:.2}", review.score)) } " of 1 safe: " (review.reasoning) } }
                    }
                    footer {
                        form class="row grow" method="post" action={ "/reviews/" (broadcast.id) } {
                            (form_key(who))
                            label class="sr" for={ "why-" (broadcast.id) } { "Reason, seen by the author" }
                            input class="in" id={ "why-" (broadcast.id) } name="why" placeholder="Reason, seen by the author";
                            button class="btn go" name="do" value="approve" { "Approve, send to " (count(broadcast.total_contacts)) }
                            button class="btn bad" name="do" value="refuse" { "Refuse for good" }
                        }
                    }
                }
            }
        }
    }
}

/// Decides about a broadcast.
pub(crate) async fn decide(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, request: Request) -> Response {
    let form = match form(&app, request).await {
        Ok(form) => form,
        Err(refused) => return refused,
    };
    let reason = Some(form.get("why")).filter(|reason| !reason.is_empty());
    let done = match (who.caller.require(Permission::BroadcastsSend), form.get("do").as_str()) {
        (Err(error), _) => Err(error),
        (Ok(()), verb @ ("approve" | "refuse")) => {
            app.core.broadcasts().decide_review(who.caller.tenant, &id, verb == "approve", reason.as_deref()).await.map(drop)
        }
        (Ok(()), _) => Err(Error::field("do", "is approve or refuse")),
    };
    match done {
        Ok(()) => lead_to("/reviews"),
        Err(error) => refuse(&who, "/reviews", &error),
    }
}
