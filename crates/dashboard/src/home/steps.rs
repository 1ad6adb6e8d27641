//! First steps for a new project.

use maud::{Markup, html};
use nuncio_core::Caller;
use nuncio_core::messages::ListMessages;
use nuncio_core::senders::SenderView;
use nuncio_core::users::SignedIn;
use nuncio_domain::health::HealthState;
use nuncio_domain::key::ApiKey;
use nuncio_domain::user::Role;
use nuncio_domain::{Environment, Result, Timestamp};

use crate::App;
use crate::components::{form_key, state, value};

/// Which of the first steps are done.
#[derive(Clone, Copy)]
pub(super) struct Steps {
    sent: bool,
    keyed: bool,
    hooked: bool,
    connected: bool,
}

/// Returns the first steps of the project, whichever environment is viewed; `None` once it sends by a live connection. Of the viewed
/// environment, the page has read the senders and whether it `sends`; the other one is read as far as it counts.
pub(super) async fn look(app: &App, who: &SignedIn, senders: &[SenderView], sends: bool) -> Result<Option<Steps>> {
    let in_live = who.session.environment == Environment::Live;
    let environment = if in_live { Environment::Test } else { Environment::Live };
    let tenant = who.project.tenant(environment);
    let other = Caller { tenant, environment, ..who.caller.clone() };
    let live = if in_live { &who.caller } else { &other };
    // Events of the other environment do not count: a program that gets them gets none of this one.
    let hooked = senders.iter().any(|sender| sender.webhook.is_some());
    let has_live = if in_live { senders.iter().any(is_connected) } else { !app.core.tenant_config(tenant).await?.connections.is_empty() };
    let connected = match in_live {
        true => senders.iter().any(works),
        false => has_live && app.core.senders().all(tenant).await?.iter().any(works),
    };
    // One that fails now has worked if it sent something: its project is past the first steps.
    let sent_live = has_live && !connected && has_messages(app, live, Some("sent,delivered,read")).await?;
    if sent_live || (connected && (if in_live { sends } else { has_messages(app, live, None).await? })) {
        return Ok(None);
    }
    let sent = if in_live { has_messages(app, &other, None).await? } else { sends };
    let (mut keyed, now) = (false, app.core.ids().clock.now());
    for environment in [Environment::Live, Environment::Test] {
        keyed = keyed || app.core.keys().list(who.project.tenant(environment)).await?.iter().any(|key| is_used(key, now));
    }
    Ok(Some(Steps { sent, keyed, hooked, connected }))
}

/// Whether an environment has messages, with one of these statuses if they are given.
async fn has_messages(app: &App, caller: &Caller, status: Option<&str>) -> Result<bool> {
    let first = ListMessages { status: status.map(str::to_owned), limit: Some(1), ..ListMessages::default() };
    Ok(!app.core.messages().list(caller, &first).await?.0.is_empty())
}

/// Whether a program has used the key: not one that `nuncio quickstart` made, which it uses itself.
fn is_used(key: &ApiKey, now: Timestamp) -> bool {
    key.is_valid(now) && key.last_used_at.is_some() && key.name != "quickstart"
}

fn is_connected(sender: &SenderView) -> bool {
    !sender.connections.is_empty()
}

/// Whether a sender has a connection that works.
fn works(sender: &SenderView) -> bool {
    sender.connections.iter().any(|connection| connection.health.state == HealthState::Ok)
}

impl Steps {
    /// Whether nothing has been sent yet where a first message can be tried.
    pub(super) fn begin(self, who: &SignedIn) -> bool {
        !self.sent && who.session.environment == Environment::Test
    }

    fn done(self) -> usize {
        [self.sent, self.keyed, self.hooked, self.connected].into_iter().filter(|done| *done).count()
    }

    /// Renders the steps.
    pub(super) fn panel(self, app: &App, who: &SignedIn, senders: &[SenderView]) -> Markup {
        let curl = format!(
            "curl {}/v1/messages -H \"Authorization: Bearer $NUNCIO_API_KEY\" -H \"Content-Type: application/json\" -d '{{\"to\":\"+12025550100\",\"text\":\"Hello\"}}'",
            app.core.public_url()
        );
        let test = who.session.environment == Environment::Test;
        let owner = who.role == Role::Owner;
        let sender = senders.iter().find(|sender| sender.is_default).or(senders.first());
        let page = sender.map_or_else(|| "/senders".to_owned(), |sender| format!("/senders/{}", sender.id));
        html! {
            section class="panel" {
                header { h2 { "Getting started" } span class="faint" { (self.done()) " of 4 done" } }
                ol class="steps" {
                    (Step { number: "1", done: self.sent, title: "Send a message in the sandbox", text: "Everything is real except for the carrier.",
                        act: if test { html! {} } else { go_to(who, "test", "Go to the test environment") },
                        more: if test { first_message(who) } else { html! {} } }.show())
                    (Step { number: "2", done: self.keyed, title: "Send from your program",
                        text: if owner { "Create a key for the test environment and paste this." } else { "An owner creates a key for the test environment; then paste this." },
                        act: html! { @if owner { a class="btn" href="/developers/keys" { "Create a test key" } } }, more: value(&curl) }.show())
                    (Step { number: "3", done: self.hooked, title: "Receive events", text: "A webhook of a sender gets each event. Try one with a test event.",
                        act: html! { a class="btn" href={ (page) "#webhook" } { "Set a webhook" } }, more: html! {} }.show())
                    (Step { number: "4", done: self.connected, title: "Connect a carrier",
                        text: "Connect a provider account for a channel of a sender in the live environment. Only this step leaves the sandbox.",
                        act: if test { go_to(who, "live", "Go to the live environment") } else { html! { a class="btn" href=(page) { "Open the sender" } } },
                        more: html! {} }.show())
                }
            }
        }
    }
}

struct Step {
    number: &'static str,
    done: bool,
    title: &'static str,
    text: &'static str,
    act: Markup,
    /// What stands below it.
    more: Markup,
}

impl Step {
    fn show(&self) -> Markup {
        let more = self.more.0.as_str();
        html! {
            li {
                span class="n-o" { (self.number) }
                div { h3 { (self.title) } @if self.done { p { (state("ok", "Done")) } } @else { p { (self.text) } } }
                @if !self.done {
                    (self.act)
                    @if !more.is_empty() { div class="more" { (self.more) } }
                }
            }
        }
    }
}

fn go_to(who: &SignedIn, environment: &str, word: &str) -> Markup {
    html! {
        form class="plain" method="post" action="/world" {
            (form_key(who))
            button class="btn" name="world" value=(environment) { (word) }
        }
    }
}

fn first_message(who: &SignedIn) -> Markup {
    html! {
        form class="row" method="post" action="/messages/new" {
            (form_key(who))
            label class="sr" for="to" { "To" }
            input class="in" id="to" name="to" value="+12025550100" size="14";
            label class="sr" for="text" { "Text" }
            input class="in" id="text" name="text" value="Hello from nuncio" size="18";
            button class="btn go" { "Send it" }
        }
        p class="hint" { "Numbers with special behavior: " code { "+12025550001" } " fails, " code { "+12025550003" } " needs two attempts, " code { "+12025550006" } " answers." }
    }
}
