//! Lists what needs human attention, most urgent first.

use maud::{Markup, html};
use nuncio_core::broadcasts::{BroadcastView, ListBroadcasts};
use nuncio_core::messages::{ListMessages, MessageView, Overdue};
use nuncio_core::senders::SenderView;
use nuncio_core::users::SignedIn;
use nuncio_core::webhooks::{ListDeliveries, WebhookView};
use nuncio_domain::broadcast::Status;
use nuncio_domain::health::HealthState;
use nuncio_domain::id::Id as _;
use nuncio_domain::message::HeldReason;
use nuncio_domain::{Result, SenderId, Timestamp, limits};

use crate::App;
use crate::components::{age, channel, figure, words};
use crate::webhook;

/// Maximum number of items per kind.
const SHOWN: u32 = 10;

pub(super) struct Need {
    pub(super) shape: &'static str,
    pub(super) title: Markup,
    pub(super) text: String,
    pub(super) href: String,
    pub(super) act: &'static str,
}

pub(super) async fn all(app: &App, who: &SignedIn, senders: &[SenderView]) -> Result<Vec<Need>> {
    let now = app.core.ids().clock.now();
    let mut needs = failing(senders);
    needs.extend(app.core.messages().overdue(&who.caller).await?.iter().map(|overdue| waiting(overdue, senders, now)));
    let waiting =
        ListMessages { held_reason: Some(ListMessages::any_held_reason()), limit: Some(limits::PAGE_MAX), ..ListMessages::default() };
    let (messages, next) = app.core.messages().list(&who.caller, &waiting).await?;
    needs.extend(held(&messages, next.is_some()));
    needs.extend(senders.iter().filter_map(|sender| {
        let title = html! { "The webhook of " (words(&sender.name)) " is switched off" };
        switched_off(sender.webhook.as_ref()?, title, Some(sender.id))
    }));
    let own = webhook::find_own(app, who).await?;
    needs.extend(own.and_then(|own| switched_off(&own, html! { "The environment's webhook is switched off" }, None)));
    let dead = ListDeliveries { status: Some("dead".to_owned()), limit: Some(SHOWN), ..ListDeliveries::default() };
    let dead = app.core.webhooks().list_deliveries(&who.caller, &dead).await?.0;
    if let Some(newest) = dead.first() {
        let page = webhook::place(newest.sender_id);
        needs.push(Need {
            shape: "bad",
            title: html! { "A webhook gave up on " @if dead.len() == 1 { "an event" } @else { (dead.len()) @if dead.len() >= SHOWN as usize { " events or more" } @else { " events" } } },
            text: format!("{} did not respond with success, or was switched off.", newest.url),
            href: newest.resource_id.as_ref().filter(|id| dead.len() == 1 && id.starts_with("msg_")).map_or(page, |id| format!("/messages/{id}")),
            act: "See responses",
        });
    }
    // Apart, so that paused ones do not hide those that wait; most of them were paused by a person.
    for (status, most) in [("escalated,rejected", SHOWN), ("paused", limits::PAGE_MAX)] {
        let waiting = ListBroadcasts { status: Some(status.to_owned()), limit: Some(most), ..ListBroadcasts::default() };
        let found = app.core.broadcasts().list(&who.caller, &waiting).await?.0;
        needs.extend(found.into_iter().filter_map(broadcast).take(SHOWN as usize));
    }
    Ok(needs)
}

fn failing(senders: &[SenderView]) -> Vec<Need> {
    let mut needs = Vec::new();
    for sender in senders {
        needs.extend(sender.connections.iter().filter(|connection| connection.health.state != HealthState::Ok).map(|connection| {
            Need {
                shape: "bad",
                title: html! { (channel(connection.channel)) " of " (words(&sender.name)) " fails" },
                text: connection
                    .health
                    .reason
                    .clone()
                    .unwrap_or_else(|| "Waiting messages are sent automatically once it works again.".to_owned()),
                href: format!("/senders/{}/channels/{}", sender.id, connection.channel),
                act: "Open connection",
            }
        }));
    }
    needs
}

/// Names a webhook that was switched off automatically. One that a person switched off needs no attention.
fn switched_off(webhook: &WebhookView, title: Markup, sender: Option<SenderId>) -> Option<Need> {
    let reason = Some(webhook).filter(|webhook| !webhook.active)?.disabled_reason.as_ref()?;
    let text = format!("It gets no events: {reason}.");
    Some(Need { shape: "bad", title, text, href: webhook::place(sender), act: "Open webhook" })
}

fn waiting(overdue: &Overdue, senders: &[SenderView], now: Timestamp) -> Need {
    let of = senders.iter().find_map(|sender| Some((sender, sender.connections.iter().find(|one| one.id == overdue.connection)?)));
    let oldest = age(now.since(overdue.oldest.created_at()));
    Need {
        shape: "held",
        title: html! {
            (figure(overdue.count as u64)) @if overdue.more { " or more" } @if overdue.count == 1 { " message waits" } @else { " messages wait" }
            @if let Some((sender, connection)) = of { " for " (channel(connection.channel)) " of " (words(&sender.name)) }
        },
        text: format!(
            "The oldest was accepted {oldest} ago and due {} ago. Accepted in the last five minutes: {}.",
            age(now.since(overdue.since)),
            figure(overdue.recent as u64)
        ),
        href: of.map_or_else(
            || "/messages?status=queued,scheduled".to_owned(),
            |(sender, connection)| format!("/senders/{}/channels/{}", sender.id, connection.channel),
        ),
        act: if of.is_some() { "Open connection" } else { "See messages" },
    }
}

/// Groups held messages by reason. `more`: there are others.
fn held(messages: &[MessageView], more: bool) -> Vec<Need> {
    let reasons = [
        (
            HeldReason::UnknownOutcome,
            "The outcome of its last attempt is unknown: it might have been sent.",
            "The outcome of their last attempt is unknown: they might have been sent.",
        ),
        (HeldReason::PastDue, "It was due long ago, while no node was running.", "They were due long ago, while no node was running."),
        (
            HeldReason::StaleDatabase,
            "The database might be a restored copy: it might have been sent since.",
            "The database might be a restored copy: they might have been sent since.",
        ),
    ];
    let need = |(reason, of_one, of_many): (HeldReason, &str, &str)| {
        let of: Vec<_> = messages.iter().filter(|message| message.held_reason == Some(reason)).collect();
        let first = of.first()?;
        let one = of.len() == 1 && !more;
        Some(Need {
            shape: "held",
            title: html! { (of.len()) @if more { " or more" } @if one { " message waits" } @else { " messages wait" } " for your decision" },
            text: if one { of_one } else { of_many }.to_owned(),
            href: if one { format!("/messages/{}", first.id) } else { "/messages?status=held".to_owned() },
            act: "Decide",
        })
    };
    reasons.into_iter().filter_map(need).collect()
}

fn broadcast(broadcast: BroadcastView) -> Option<Need> {
    let page = format!("/broadcasts/{}", broadcast.id);
    let (shape, title, href, act) = match broadcast.status {
        Status::Escalated => ("held", " waits for a decision", "/reviews".to_owned(), "Decide"),
        Status::Rejected => ("bad", " was rejected by the review", page, "See why"),
        // A broadcast paused by a person needs no attention.
        _ if broadcast.halted_reason.is_some() => ("held", " was paused by its limits", page, "See why"),
        _ => return None,
    };
    let text = broadcast.halted_reason.or(broadcast.review_result.map(|review| review.reasoning)).unwrap_or_default();
    Some(Need { shape, title: html! { "Broadcast " (words(&broadcast.name)) (title) }, text, href, act })
}
