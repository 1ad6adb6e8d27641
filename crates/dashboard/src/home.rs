//! `/`: what needs somebody now, and for a new project the way to the first message.

use axum::extract::State;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::broadcasts::ListBroadcasts;
use nuncio_core::messages::CountryMetrics;
use nuncio_core::messages::ListMessages;
use nuncio_core::senders::ListSenders;
use nuncio_core::users::SignedIn;
use nuncio_core::webhooks::ListDeliveries;
use nuncio_domain::health::HealthState;
use nuncio_domain::{Environment, Result};

use crate::App;
use crate::components::{channel, count, empty, head, message_state, time, value, words};
use crate::shell::{form_key, shell};
use crate::signed::{Signed, refuse};

/// Things of one kind that are shown.
const SHOWN: u32 = 10;
/// Channels and countries in the chart.
const BARS: usize = 12;

/// Something that needs a person.
struct Need {
    shape: &'static str,
    title: Markup,
    text: String,
    href: String,
    act: &'static str,
}

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed) -> Response {
    match content(&app, &who).await {
        Ok((title, content)) => shell(&who, "/", &title, &content),
        Err(error) => refuse(&who, "/", &error),
    }
}

async fn content(app: &App, who: &SignedIn) -> Result<(String, Markup)> {
    let needs = needs(app, who).await?;
    let newest = app.core.messages().list(&who.caller, &ListMessages { limit: Some(5), ..ListMessages::default() }).await?.0;
    let title = match needs.len() {
        0 => "Nothing needs you".to_owned(),
        1 => "1 thing needs you".to_owned(),
        count => format!("{count} things need you"),
    };
    // A page has one strong button: that of the first step, while it is there.
    let begins = newest.is_empty() && who.session.environment == Environment::Test;
    let acts = html! { a class=(if begins { "btn" } else { "btn go" }) href="/messages/new" { "New message" } };
    let deliveries = app.core.messages().deliveries(&who.caller).await?;
    let content = html! {
        (head(None, html! { (title) }, html! { "Looked at " (time(app.core.ids().clock.now())) }, acts))
        @if begins { (first_steps(app, who)) }
        @if needs.is_empty() {
            section class="panel" {
                (empty("check", "Nothing needs you", "No connection fails, no message and no broadcast waits for a decision, every webhook answers.", html! {}))
            }
        } @else {
            section class="panel" aria-label="What needs you" {
                ul class="attn" {
                    @for need in &needs {
                        li {
                            i class={ "dot " (need.shape) } {}
                            div { h2 { (need.title) } p { (need.text) } }
                            a class="btn" href=(need.href) { (need.act) }
                        }
                    }
                }
            }
        }
        @if !deliveries.is_empty() { (arrived(deliveries)) }
        @if !newest.is_empty() {
            section class="panel" {
                header { h2 { "Newest messages" } a href="/messages" { "All" } }
                table class="rows fix" {
                    caption class="sr" { "Newest messages" }
                    tbody {
                        @for message in &newest {
                            tr {
                                td class="w3" { (message_state(message.status, message.held_reason.is_some())) }
                                td { a class="to clip" href={ "/messages/" (message.id) } { (words(if message.to.is_empty() { message.from.as_deref().unwrap_or("–") } else { &message.to })) } }
                                td class="w" { (channel(message.channel)) }
                                td class="num" { (time(message.created_at)) }
                            }
                        }
                    }
                }
            }
        }
    };
    Ok((title, content))
}

/// What arrived, by channel and country: a bar for the eye, the same in figures beside it.
fn arrived(mut rows: Vec<CountryMetrics>) -> Markup {
    let all = |row: &CountryMetrics| row.successes + row.failures;
    rows.sort_by_key(|row| std::cmp::Reverse(all(row)));
    let (left, most) = (rows.len().saturating_sub(BARS), rows.iter().map(all).max().unwrap_or(0).max(1) as f64);
    html! {
        section class="panel" {
            header { h2 { "What arrived" } span class="faint" { "Attempts with a known end" } }
            table class="fix" {
                caption class="sr" { "Attempts that arrived and failed, by channel and country" }
                thead {
                    tr {
                        th scope="col" class="w5" { "Channel" }
                        th scope="col" class="w1" { "Country" }
                        th scope="col" class="w" { span class="sr" { "Share" } }
                        th scope="col" class="num w2" { "Arrived" }
                        th scope="col" class="num w w2" { "Failed" }
                        th scope="col" class="num w1" { "Rate" }
                    }
                }
                tbody { @for row in rows.iter().take(BARS) { (bar(row, most)) } }
            }
            @if left > 0 { footer { span class="faint" { (left) " more, with fewer attempts." } } }
        }
    }
}

fn bar(row: &CountryMetrics, most: f64) -> Markup {
    let share = |number: i64| format!("{:.2}%", number as f64 / most * 100.0);
    let rate = row.successes as f64 / (row.successes + row.failures).max(1) as f64 * 100.0;
    html! {
        tr {
            td { (channel(row.channel.as_str())) }
            td { @if row.country.is_empty() { "–" } @else { (row.country) } }
            td class="w" {
                svg class="meter" aria-hidden="true" {
                    rect class="fok" x="0" width=(share(row.successes)) height="100%" {}
                    rect class="fbad" x=(share(row.successes)) width=(share(row.failures)) height="100%" {}
                }
            }
            td class="num" { (count(row.successes)) }
            td class="num w" { (count(row.failures)) }
            td class="num" { (format!("{rate:.1} %")) }
        }
    }
}

async fn needs(app: &App, who: &SignedIn) -> Result<Vec<Need>> {
    let mut needs = Vec::new();
    let senders = app.core.senders().list(&who.caller, &ListSenders { limit: Some(100), ..ListSenders::default() }).await?.0;
    for sender in &senders {
        for connection in sender.connections.iter().filter(|connection| connection.health.state != HealthState::Ok) {
            needs.push(Need {
                shape: "bad",
                title: html! { (channel(connection.channel)) " of " (words(&sender.name)) " fails" },
                text: connection.health.reason.clone().unwrap_or_else(|| "What waits goes out by itself once it works again.".to_owned()),
                href: format!("/senders/{}", sender.id),
                act: "Open sender",
            });
        }
    }
    let held = app.core.messages().held(&who.caller).await?;
    if let Some(first) = held.first() {
        needs.push(Need {
            shape: "held",
            title: html! { (held.len()) " messages wait for your decision" },
            text: "Nobody knows whether they went out.".to_owned(),
            href: format!("/messages/{}", first.id),
            act: "Decide",
        });
    }
    let dead = ListDeliveries { status: Some("dead".to_owned()), limit: Some(SHOWN), ..ListDeliveries::default() };
    if let Some(dead) = app.core.webhooks().list_deliveries(&who.caller, &dead).await?.0.first() {
        needs.push(Need {
            shape: "bad",
            title: html! { "A webhook gave up on an event" },
            text: format!("{} got no good answer for two days.", dead.url),
            href: dead
                .resource_id
                .as_ref()
                .filter(|id| id.starts_with("msg_"))
                .map_or("/senders".to_owned(), |id| format!("/messages/{id}")),
            act: "See answers",
        });
    }
    let waiting = ListBroadcasts { status: Some("escalated,rejected".to_owned()), limit: Some(SHOWN), ..ListBroadcasts::default() };
    for broadcast in app.core.broadcasts().list(&who.caller, &waiting).await?.0 {
        let escalated = broadcast.status == "escalated";
        needs.push(Need {
            shape: if escalated { "held" } else { "bad" },
            title: html! { "Broadcast " (words(&broadcast.name)) @if escalated { " waits for a decision" } @else { " was refused by the review" } },
            text: broadcast.review_result.map_or_else(String::new, |review| review.reasoning),
            href: if escalated { "/reviews".to_owned() } else { format!("/broadcasts/{}", broadcast.id) },
            act: if escalated { "Decide" } else { "See why" },
        });
    }
    Ok(needs)
}

/// The way to the first message, while there is none.
fn first_steps(app: &App, who: &SignedIn) -> Markup {
    let curl = format!(
        "curl {}/v1/messages -H \"Authorization: Bearer $NUNCIO_API_KEY\" -H \"Content-Type: application/json\" -d '{{\"to\":\"+12025550100\",\"text\":\"Hello\"}}'",
        app.core.public_url()
    );
    html! {
        section class="panel" {
            header { h2 { "Getting started" } }
            ol class="steps" {
                li {
                    span class="n-o" { "1" }
                    div { h3 { "Send a message in the sandbox" } p { "Everything is real except for the carrier." } }
                    div class="more" {
                        form class="row" method="post" action="/messages/new" {
                            (form_key(who))
                            label class="sr" for="to" { "To" }
                            input class="in" id="to" name="to" value="+12025550100" size="14";
                            label class="sr" for="text" { "Text" }
                            input class="in" id="text" name="text" value="Hello from nuncio" size="18";
                            button class="btn go" { "Send it" }
                        }
                        p class="hint" { "Numbers that misbehave: " code { "+12025550001" } " fails, " code { "+12025550003" } " needs two attempts, " code { "+12025550006" } " answers." }
                    }
                }
                li {
                    span class="n-o" { "2" }
                    div { h3 { "Do the same from your program" } p { "Make a key for the test environment and paste this." } }
                    a class="btn" href="/developers/keys" { "Make a test key" }
                    div class="more" { (value(&curl)) }
                }
                li {
                    span class="n-o" { "3" }
                    div { h3 { "Connect a carrier" } p { "With " code { "nuncio connections" } " or the API. The only step that leads to the live environment." } }
                    a class="btn" href="/senders" { "Senders" }
                }
            }
        }
    }
}
