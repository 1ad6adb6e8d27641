//! Webhooks: their part of a sender's page, and `/developers/webhook`, the environment's own.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::users::SignedIn;
use nuncio_core::webhooks::{DeliveryAttemptView, DeliveryView, PutWebhook, WebhookView};
use nuncio_domain::webhook::DeliveryStatus;
use nuncio_domain::{Error, ErrorCode, Redacted, Result, SenderId};

use crate::App;
use crate::components::{
    Faults, Field, ask_first, form_key, head, icon, may_change, panel, resource_page, shortened, state, time, value, words,
};
use crate::form::Form;
use crate::shell::{Live, followed};
use crate::signed::{Asked, Posted, Signed, lead_to, refuse, show_or_refuse};

const PLACE: &str = "/developers/webhook";
/// Its entry of the navigation.
const DEVELOPERS: &str = "/developers/keys";
/// Number of deliveries shown.
const NEWEST: u32 = 20;
/// Maximum number of characters shown of a response, and of its first line.
const RESPONSE: (usize, usize) = (1_000, 80);

/// Returns where the webhook of a sender or of the environment is shown.
pub(crate) fn place(sender: Option<SenderId>) -> String {
    sender.map_or_else(|| PLACE.to_owned(), |sender| format!("/senders/{sender}#webhook"))
}

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    match content(&app, &who, "", &Faults::default(), None, is_tested(&asked)).await {
        Ok(content) => followed(StatusCode::OK, &who, DEVELOPERS, "Webhook", &content, is_tested(&asked).then_some(Live::Whole)),
        Err(error) => refuse(&who, DEVELOPERS, &error),
    }
}

/// Returns the page that `own` leads to after a test event, which follows its delivery.
pub(crate) fn tested(own: &str) -> String {
    format!("{own}?tested=yes#webhook")
}

/// Returns whether a test event was just sent.
pub(crate) fn is_tested(asked: &Asked) -> bool {
    asked.get("tested").is_some()
}

async fn page(app: &App, who: &SignedIn, status: StatusCode, typed: &str, faults: &Faults, secret: Option<&Redacted<String>>) -> Response {
    show_or_refuse(status, who, DEVELOPERS, "Webhook", content(app, who, typed, faults, secret, false).await, DEVELOPERS)
}

async fn content(
    app: &App,
    who: &SignedIn,
    typed: &str,
    faults: &Faults,
    secret: Option<&Redacted<String>>,
    tested: bool,
) -> Result<Markup> {
    let webhook = find_own(app, who).await?;
    let panel = Panel::load(app, who, PLACE, None, tested).await?;
    Ok(html! {
        (head(Some((DEVELOPERS, "API keys")), html! { "Webhook of the environment" },
            html! { "For events without a sender, such as those of templates and invitations. Each sender has a webhook of its own." }, html! {
            @if webhook.is_some() && may_change(who) {
                (ask_first("delete", "Delete", "Delete this webhook?", "Events without a sender are no longer posted.", PLACE,
                    html! { (form_key(who)) input type="hidden" name="do" value="delete"; }))
            }
        }))
        (faults.summary())
        @if let Some(secret) = secret { (new_secret(secret)) }
        (panel.show(who, webhook.as_ref(), typed, faults))
    })
}

/// Returns the environment's webhook, if it has one.
pub(crate) async fn find_own(app: &App, who: &SignedIn) -> Result<Option<WebhookView>> {
    match app.core.webhooks().get(&who.caller).await {
        Ok(webhook) => Ok(Some(webhook)),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

/// Changes, tests or deletes the environment's webhook, or repeats a delivery to it.
pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, Posted(form): Posted) -> Response {
    match change(&app, &who, &form).await {
        Ok(None) if form.get("do") == "try" => lead_to(&tested(PLACE)),
        Ok(None) => lead_to(PLACE),
        Ok(secret) => page(&app, &who, StatusCode::OK, "", &Faults::default(), secret.as_ref()).await,
        Err(error) if matches!(error.code().status(), 400 | 409) => {
            let faults = Faults::of(&error).renamed(|path| if path == "url" { "webhookUrl" } else { path }.to_owned());
            page(&app, &who, StatusCode::BAD_REQUEST, &form.get("webhookUrl"), &faults, None).await
        }
        Err(error) => refuse(&who, PLACE, &error),
    }
}

/// Returns the signing secret if it is new.
async fn change(app: &App, who: &SignedIn, form: &Form) -> Result<Option<Redacted<String>>> {
    let (webhooks, caller) = (app.core.webhooks(), &who.caller);
    let verb = form.get("do");
    match verb.as_str() {
        "webhook" | "enable" => {
            let before = find_own(app, who).await?;
            let put = put(before, Some(form.get("webhookUrl")).filter(|_| verb == "webhook"));
            Ok(webhooks.put(caller, put).await?.0.secret)
        }
        "delete" => webhooks.delete(caller).await.map(|()| None),
        "try" => webhooks.test(caller, None).await.map(|_| None),
        "replay" => webhooks.replay_delivery(caller, &form.get("delivery")).await.map(|_| None),
        _ => Err(Error::field("do", "is not an action of a webhook")),
    }
}

/// Sets an address, or switches the webhook on; the rest stays.
fn put(before: Option<WebhookView>, url: Option<String>) -> PutWebhook {
    let active = url.is_none() || before.as_ref().is_none_or(|webhook| webhook.active);
    let events = before.as_ref().map(|webhook| webhook.events.clone());
    let url = url.map(|url| url.trim().to_owned()).or(before.map(|webhook| webhook.url)).unwrap_or_default();
    PutWebhook { url, events, active: Some(active) }
}

/// Shows a new signing secret, once.
pub(crate) fn new_secret(secret: &Redacted<String>) -> Markup {
    let body = html! {
        div class="note ok" { (icon("key")) div { b { "Copy it now." } p { "It proves that events come from this server. It is not shown again." } } }
        (value(secret.expose()))
    };
    panel("The webhook's secret", body)
}

/// The webhook of a sender or of the environment: its address, its actions and its newest deliveries.
pub(crate) struct Panel<'a> {
    /// Where its forms are posted to.
    action: &'a str,
    of: &'static str,
    deliveries: Vec<DeliveryView>,
    /// Whether a test event was just sent.
    tested: bool,
}

impl<'a> Panel<'a> {
    /// Reads the newest deliveries. `action`: where its forms are posted to.
    pub(crate) async fn load(app: &App, who: &SignedIn, action: &'a str, sender: Option<SenderId>, tested: bool) -> Result<Self> {
        let deliveries = app.core.webhooks().newest_deliveries(&who.caller, sender, NEWEST).await?;
        let of = if sender.is_some() { "Signed events of this sender are posted there." } else { "Signed events are posted there." };
        Ok(Self { action, of, deliveries, tested })
    }

    /// Renders it. `typed`: a rejected address; empty if there is none.
    pub(crate) fn show(&self, who: &SignedIn, webhook: Option<&WebhookView>, typed: &str, faults: &Faults) -> Markup {
        let now = webhook.map(|webhook| webhook.url.as_str()).unwrap_or_default();
        let off = webhook.filter(|webhook| !webhook.active);
        let url = if typed.is_empty() { now } else { typed };
        html! {
            section class="panel" id="webhook" {
                header { h2 { "Webhook" } @if off.is_some() { (state("stop", "Switched off")) } }
                @if let Some(off) = off { (switched_off(who, self.action, off)) }
                @if may_change(who) {
                    form class="body" method="post" action=(self.action) {
                        (form_key(who))
                        p class="soft" { (self.of) }
                        (Field { kind: "url", required: false, ..Field::new("webhookUrl", "Address", "Such as https://example.com/hooks.", url) }.show(faults))
                        div class="row" { button class="btn" name="do" value="webhook" { "Save" } }
                    }
                    // A separate form: with this button, the other one would lose an address that is not saved yet.
                    @if !now.is_empty() && off.is_none() {
                        form class="body" method="post" action=(self.action) {
                            (form_key(who))
                            div class="row" { button class="btn" name="do" value="try" { "Send a test event" } }
                        }
                    }
                } @else {
                    div class="body" { @if now.is_empty() { p class="soft" { "No webhook is set." } } @else { (value(now)) } }
                }
                @if self.tested {
                    div class="body" {
                        div class="note ok" role="status" { (icon("check")) div { b { "A test event was sent." } p { "Its response appears under " i { "Newest events" } " within a few seconds." } } }
                    }
                }
                @if !self.deliveries.is_empty() { (posted(who, self.action, &self.deliveries, !now.is_empty() && off.is_none())) }
            }
        }
    }
}

/// Says why a webhook gets no events, with the button that changes it.
fn switched_off(who: &SignedIn, own: &str, off: &WebhookView) -> Markup {
    html! {
        div class="body" {
            div class="note bad" {
                (icon("alert"))
                div {
                    b { "It gets no events." }
                    p {
                        @match &off.disabled_reason { Some(reason) => { "It was switched off automatically: " (words(reason)) }, None => "A person switched it off" }
                        @if let Some(since) = off.failing_since { ". It has failed since " (time(since)) }
                        ". Events that occur until it is switched on are not delivered."
                    }
                }
            }
            @if may_change(who) {
                form class="row" method="post" action=(own) { (form_key(who)) button class="btn" name="do" value="enable" { "Switch it on" } }
            }
        }
    }
}

/// Lists deliveries. Without a webhook that is on, none can be repeated.
fn posted(who: &SignedIn, own: &str, deliveries: &[DeliveryView], is_on: bool) -> Markup {
    let repeats = is_on && may_change(who);
    html! {
        table class="fix" {
            caption { "Newest events" }
            thead { tr { th scope="col" class="w2" { "State" } th scope="col" class="w5" { "Event" } th scope="col" class="w" { "Response" } th scope="col" class="num w3" { "Time" } } }
            tbody {
                @for delivery in deliveries {
                    @let newest = delivery.attempts.last();
                    tr {
                        td { @match delivery.status { DeliveryStatus::Delivered => (state("ok", "Delivered")), DeliveryStatus::Dead => (state("bad", "Given up")), DeliveryStatus::Failed => (state("held", "Failing")), DeliveryStatus::Pending => (state("", "Waiting")) } }
                        td {
                            @match delivery.resource_id.as_deref().and_then(resource_page) {
                                Some(page) => { a class="clip" href=(page) { (delivery.event_type) } },
                                None => { span class="clip" { (delivery.event_type) } },
                            }
                            @if let Some(newest) = newest { span class="n faint" { (status(newest)) @if delivery.status != DeliveryStatus::Delivered { @if let Some(said) = said(newest) { " · " (words(&shortened(said, RESPONSE.1 / 2))) } } } }
                        }
                        td class="w" { @match newest { Some(newest) => (response(newest)), None => "–" } }
                        td class="num" {
                            (time(delivery.created_at))
                            @if repeats && matches!(delivery.status, DeliveryStatus::Dead | DeliveryStatus::Failed) {
                                form class="plain" method="post" action=(own) { (form_key(who)) input type="hidden" name="delivery" value=(delivery.id); button class="btn small" name="do" value="replay" { "Send again" } }
                            }
                        }
                    }
                }
            }
        }
    }
}

fn status(attempt: &DeliveryAttemptView) -> Markup {
    html! {
        @match (attempt.response_status, &attempt.error) {
            (Some(status), _) => { "Status " (status) },
            (None, Some(error)) => (words(error)),
            (None, None) => "No response",
        }
    }
}

/// Returns the text of the response, if there is one.
fn said(attempt: &DeliveryAttemptView) -> Option<&str> {
    attempt.response_body.as_deref().map(str::trim).filter(|text| !text.is_empty())
}

/// Renders the status and the beginning of the response, which opens.
fn response(attempt: &DeliveryAttemptView) -> Markup {
    html! {
        @match said(attempt) {
            Some(said) => {
                details {
                    summary { (status(attempt)) " · " (words(&shortened(said, RESPONSE.1))) }
                    pre class="said" tabindex="0" { (words(said.get(..said.char_indices().nth(RESPONSE.0).map_or(said.len(), |(end, _)| end)).unwrap_or_default())) }
                }
            },
            None => (status(attempt)),
        }
    }
}
