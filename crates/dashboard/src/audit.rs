//! `/settings/audit`: the audit log.

use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::Act;
use nuncio_core::users::{AuditEntryView, ListAudit, SignedIn};
use nuncio_domain::audit::{Actor, ActorKind};
use nuncio_domain::id::Id as _;
use nuncio_domain::{Error, Result, Timestamp};
use serde_json::Value;
use std::time::Duration;

use crate::components::{empty, head, pager, time, words};
use crate::shell::shell;
use crate::signed::{Asked, Signed, refuse, signed_in};
use crate::{App, address};

const PLACE: &str = "/settings/audit";
const DAY: Duration = Duration::from_secs(86_400);

/// Records the changes of a request in the audit log, as the signed-in person. Without one, the use case names the actor.
pub(crate) async fn watch(State(app): State<App>, request: Request, next: Next) -> Response {
    if request.method().is_safe() {
        return next.run(request).await;
    }
    let (from, ids) = (address(&request), app.core.ids().clone());
    let act = match signed_in(&app, request.headers()).await {
        Ok(Some(who)) => Act::person(&who.user.email, from, ids),
        Ok(None) => Act::unknown(from.to_string(), ids),
        Err(failed) => return failed,
    };
    act.run(next.run(request)).await
}

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    match content(&app, &who, &asked).await {
        Ok(content) => shell(&who, PLACE, "Audit log", &content),
        Err(error) => refuse(&who, "/", &error),
    }
}

async fn content(app: &App, who: &SignedIn, asked: &Asked) -> Result<Markup> {
    let list = ListAudit {
        actor: asked.get("who"),
        resource: asked.get("what"),
        since: day(asked, "since")?,
        until: day(asked, "until")?.map(|day| day.plus(DAY)),
        cursor: asked.get("cursor"),
    };
    let (found, next) = app.core.users().audit_log(who, &list).await?;
    let field = |name: &str, label: &str, kind: &str, hint: &str| {
        html! {
            label class="sr" for=(name) { (label) }
            input class="in" id=(name) name=(name) type=(kind) title=(label) placeholder=(hint) value=(asked.get(name).unwrap_or_default());
        }
    };
    Ok(html! {
        (head(None, html! { "Audit log" }, html! { "Who changed what in " (who.project.name) ", in both environments" }, html! {}))
        section class="panel" {
            form class="filters" method="get" action=(PLACE) {
                (field("who", "Actor: an email address, the id of an API key, or command line", "search", "Email address or key"))
                (field("what", "Resource: an id or a kind", "search", "Id, or a kind such as sender"))
                (field("since", "First day (UTC)", "date", ""))
                (field("until", "Last day (UTC)", "date", ""))
                button class="btn" { "Find" }
            }
            @if found.is_empty() {
                (empty("doc", "No changes", "Changes by people, API keys and the command line are listed here.", html! {}))
            } @else {
                table class="fix" {
                    caption class="sr" { "Changes, newest first" }
                    thead { tr {
                        th scope="col" class="w2" { "When" } th scope="col" { "Who" } th scope="col" { "What" }
                        th scope="col" class="w w3" { "Where" }
                    } }
                    tbody { @for one in &found { (row(one)) } }
                }
                (pager(asked.older(PLACE, next)))
            }
        }
    })
}

fn row(one: &AuditEntryView) -> Markup {
    let entry = &one.entry;
    html! {
        tr {
            td { (time(entry.id.created_at())) }
            td {
                span class="clip" { (who(&entry.actor)) }
                @if !entry.from.is_empty() { span class="faint clip" { "from " (entry.from) } }
            }
            td {
                (entry.kind.replace('_', " ")) ": " (entry.verb.replace('_', " ")) br;
                span class="faint clip" { (words(&entry.resource)) }
                @let changes = changes(entry.before.as_ref(), entry.after.as_ref());
                @if !changes.is_empty() {
                    details {
                        summary { "Before and after" }
                        ul {
                            @for (name, before, after) in changes {
                                li {
                                    b { (name) } ": "
                                    @if let Some(before) = before { del { (words(&before)) } " " }
                                    @if let Some(after) = after { ins { (words(&after)) } }
                                }
                            }
                        }
                    }
                }
            }
            td class="w" { (one.environment.map_or("project", |environment| environment.as_str())) }
        }
    }
}

fn who(actor: &Actor) -> Markup {
    html! {
        @match actor.kind {
            ActorKind::Person => { (words(&actor.name)) }
            ActorKind::ApiKey => { "API key " (words(&actor.label)) " " span class="faint" { (actor.name) } }
            ActorKind::CommandLine => { "Command line" }
            ActorKind::Guest => { "Client of " (actor.name) }
        }
    }
}

/// Returns each changed member: name, old value, new value.
fn changes(before: Option<&Value>, after: Option<&Value>) -> Vec<(String, Option<String>, Option<String>)> {
    let members = |value: Option<&Value>| value.and_then(Value::as_object).cloned().unwrap_or_default();
    let (before, after) = (members(before), members(after));
    let mut names: Vec<&String> = before.keys().chain(after.keys()).collect();
    names.sort_unstable();
    names.dedup();
    let shown = |value: Option<&Value>| match value {
        None | Some(Value::Null) => None,
        Some(Value::String(text)) => Some(text.clone()),
        Some(other) => Some(other.to_string()),
    };
    let all = names.into_iter().map(|name| (name.clone(), shown(before.get(name)), shown(after.get(name))));
    all.filter(|(_, before, after)| before.is_some() || after.is_some()).collect()
}

/// Parses a day (UTC) of the query; returns its start.
fn day(asked: &Asked, name: &str) -> Result<Option<Timestamp>> {
    let Some(text) = asked.get(name) else { return Ok(None) };
    let parsed = Timestamp::parse(&format!("{text}T00:00:00Z"));
    parsed.map(Some).map_err(|_| Error::field(name, format!("is {text:?}; must be a day such as 2026-05-31")))
}
