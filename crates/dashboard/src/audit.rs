//! `/settings/audit`: the audit log.

use axum::extract::{Request, State};
use axum::http::StatusCode;
use axum::middleware::Next;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::Act;
use nuncio_core::users::{AuditEntryView, ListAudit, SignedIn};
use nuncio_domain::audit::{Actor, ActorKind};
use nuncio_domain::id::Id as _;
use nuncio_domain::{Environment, Result};
use serde_json::Value;

use crate::components::{data_table, empty, head, json_text, pager, resource_page, time, words};
use crate::filters::{field, span, span_fields};
use crate::signed::{Asked, Signed, show_or_refuse, signed_in};
use crate::{App, address};

const PLACE: &str = "/settings/audit";

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
    show_or_refuse(StatusCode::OK, &who, PLACE, "Audit log", content(&app, &who, &asked).await, "/")
}

async fn content(app: &App, who: &SignedIn, asked: &Asked) -> Result<Markup> {
    let (since, until) = span(asked)?;
    let list = ListAudit { actor: asked.get("who"), resource: asked.get("what"), since, until, cursor: asked.get("cursor") };
    let (found, next) = app.core.users().audit_log(who, &list).await?;
    let filtered = ["who", "what", "since", "until"].iter().any(|name| asked.get(name).is_some());
    Ok(html! {
        (head(None, html! { "Audit log" }, html! { "Who changed what in " (who.project.name) ", in both environments" }, html! {}))
        section class="panel" {
            form class="filters" method="get" action=(PLACE) {
                (field(asked, "who", "Who", "search", "Email address, key or command line"))
                (field(asked, "what", "What", "search", "Id, or a kind such as sender"))
                (span_fields(asked))
                button class="btn" { "Find" }
            }
            @if found.is_empty() && filtered {
                (empty("search", "No changes match", "No change matches all of these filters.", html! { a class="btn" href=(PLACE) { "Clear all filters" } }))
            } @else if found.is_empty() {
                (empty("doc", "No changes", "Changes by people, API keys and the command line are listed here.", html! {}))
            } @else {
                (data_table("fix", "Changes, newest first", &[("w2", "When"), ("", "Who"), ("", "What"), ("w w3", "Where")], html! {
                    @for one in &found { (row(one, who.session.environment)) }
                }))
                (pager(asked.older(PLACE, next)))
            }
        }
    })
}

fn row(one: &AuditEntryView, shown: Environment) -> Markup {
    let entry = &one.entry;
    // The title has the names that the API and the filter use.
    let names = format!("{}: {}", entry.kind.replace('_', " "), entry.verb.replace('_', " "));
    html! {
        tr {
            td { (time(entry.id.created_at())) }
            td {
                span class="clip" { (who(&entry.actor)) }
                @if !entry.from.is_empty() { span class="faint clip" { "from " (entry.from) } }
            }
            td {
                span title=(names) { (phrase(&entry.kind, &entry.verb)) } br;
                @match page(one, shown) {
                    Some(page) => { a class="clip" href=(page) { (words(&entry.resource)) } },
                    None => { span class="faint clip" { (words(&entry.resource)) } },
                }
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

/// Returns the page of the resource, if it still exists and is in the environment shown.
fn page(one: &AuditEntryView, shown: Environment) -> Option<String> {
    let entry = &one.entry;
    if one.environment.is_some_and(|environment| environment != shown) || matches!(entry.verb.as_str(), "delete" | "erase") {
        return None;
    }
    let connection = || {
        let of = entry.after.as_ref()?;
        Some(format!("/senders/{}/channels/{}", of["senderId"].as_str()?, of["channel"].as_str()?))
    };
    let list = match entry.kind.as_str() {
        "connection" => return connection(),
        "project" => "/settings/project",
        "person" => "/settings/people",
        "api_key" => "/developers/keys",
        "invitation" => "/invitations",
        "suppression" => "/suppressions",
        "phone_number" | "inventory" => "/numbers",
        "prices" | "balance" => "/money",
        _ => return resource_page(&entry.resource),
    };
    Some(list.to_owned())
}

/// Describes a change in words, such as `Project changed`.
fn phrase(kind: &str, verb: &str) -> String {
    let noun = match kind {
        "api_key" => "API key".to_owned(),
        "delivery" => "Webhook event".to_owned(),
        kind => {
            let mut letters = kind.chars();
            let first = letters.next().map(|first| first.to_ascii_uppercase());
            first.into_iter().chain(letters).map(|letter| if letter == '_' { ' ' } else { letter }).collect()
        }
    };
    let done = match (kind, verb) {
        ("balance", "add") | (_, "update") => "changed",
        ("balance", "limit") => "limit changed",
        (_, "create") => "created",
        (_, "delete") => "deleted",
        (_, "erase") => "erased",
        (_, "revoke") => "revoked",
        (_, "import") => "imported",
        (_, "clone") => "duplicated",
        (_, "send") => "sent",
        (_, "schedule") => "scheduled",
        (_, "pause") => "paused",
        (_, "resume") => "resumed",
        (_, "cancel") => "cancelled",
        (_, "approve") => "approved",
        (_, "refuse") => "rejected",
        (_, "escalate") => "sent to human review",
        (_, "retry_review") => "reviewed again",
        (_, "submit") => "submitted for approval",
        (_, "complete") => "completed",
        (_, "merge") => "merged",
        (_, "resolve") => "decided",
        (_, "replay") => "sent again",
        (_, "test") => "tested",
        (_, "acquire") => "acquired",
        (_, "release") => "released",
        (_, "rotate_secret") => "secret replaced",
        (_, "add_recipients" | "import_recipients" | "select_recipients") => "recipients added",
        (_, "remove_recipient") => "recipient removed",
        (_, "remove_all_recipients") => "all recipients removed",
        (_, "add_channel") => "address added",
        (_, "remove_channel") => "address removed",
        (_, "update_channel") => "address changed",
        (_, "make_channel_primary") => "primary address changed",
        (_, "dismiss_suggestion") => "merge suggestion dismissed",
        (_, "update_profile") => "profile changed",
        (_, "request_code") => "address code requested",
        (_, "verify_address") => "address verified",
        (_, "sign_in") => "signed in",
        (_, "sign_out") => "signed out",
        (_, "sign_out_browser") => "signed out another browser",
        (_, "change_password") => "changed their password",
        (_, "switch_on_second_factor") => "switched on their second factor",
        (_, "switch_off_second_factor") => "switched off their second factor",
        (_, "reset_second_factor") => "lost their second factor",
        (_, "renew_recovery_codes") => "renewed their recovery codes",
        (_, "use_recovery_code") => "signed in with a recovery code",
        (_, "refused_second_step") => "entered a wrong second factor",
        // A new action: its name, which is English, too.
        (_, verb) => return format!("{noun}: {}", verb.replace('_', " ")),
    };
    format!("{noun} {done}")
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
        Some(other) => Some(json_text(other)),
    };
    let all = names.into_iter().map(|name| (name.clone(), shown(before.get(name)), shown(after.get(name))));
    all.filter(|(_, before, after)| before.is_some() || after.is_some()).collect()
}

#[cfg(test)]
mod tests {
    use super::phrase;

    #[test]
    fn changes_are_described_in_words() {
        let seen = [("project", "update"), ("api_key", "create"), ("balance", "limit"), ("phone_number", "polish_up")];
        let expected = ["Project changed", "API key created", "Balance limit changed", "Phone number: polish up"];
        assert_eq!(seen.map(|(kind, verb)| phrase(kind, verb)), expected);
    }
}
