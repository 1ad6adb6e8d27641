//! `/senders/{id}/channels/{channel}`: a connection. Its form is generated from the adapter's description of its settings.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::is_changed_meanwhile;
use nuncio_core::senders::{ConnectionView, Field, FieldKind, Kind, PutConnection};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Channel, Error, ErrorCode, Redacted, Result, Timestamp};
use serde_json::{Map, Value};

use super::show::health;
use crate::App;
use crate::components::{
    Faults, ask_first, changed_meanwhile, channel as named, choice, form_key, head, icon, json_text, may_change, select, version_field,
    words,
};
use crate::form::Form;
use crate::labels::{capitalised, label};
use crate::signed::{Asked, Posted, Signed, lead_back_or_refuse, refuse, show_or_refuse};

/// Version of a channel that has no connection.
const NOT_CONNECTED: &str = "none";

/// Input and result of the last action.
#[derive(Default)]
struct Said {
    faults: Faults,
    /// The settings as entered.
    typed: Option<Form>,
    /// Result of a connection test.
    tested: Option<Result<String, String>>,
    /// Whether the settings were saved before the test.
    saved: bool,
    /// Whether they were not saved because the connection was changed since the form was opened.
    changed_meanwhile: bool,
}

pub(crate) async fn connection(
    State(app): State<App>,
    Signed(who): Signed,
    Path((id, channel)): Path<(String, String)>,
    asked: Asked,
) -> Response {
    page(&app, &who, (&id, &channel), asked.get("kind"), StatusCode::OK, &Said::default()).await
}

/// Saves, tests or removes the connection.
pub(crate) async fn connect(
    State(app): State<App>,
    Signed(who): Signed,
    Path((id, channel)): Path<(String, String)>,
    Posted(form): Posted,
) -> Response {
    let (senders, kind, place) = (app.core.senders(), form.get("kind"), (id.as_str(), channel.as_str()));
    let verb = form.get("do");
    if verb == "remove" {
        return lead_back_or_refuse(&who, &format!("/senders/{id}"), senders.delete_channel(&who.caller, &id, &channel).await);
    }
    if verb == "save" {
        match save(&app, &who, place, &form).await {
            Ok(()) => {}
            Err(error) if is_changed_meanwhile(&error) => {
                let said = Said { typed: Some(form), changed_meanwhile: true, ..Said::default() };
                return page(&app, &who, place, Some(kind), StatusCode::CONFLICT, &said).await;
            }
            Err(error) if matches!(error.code().status(), 400 | 409) => {
                let said = Said { faults: faults(&error), typed: Some(form), ..Said::default() };
                return page(&app, &who, place, Some(kind), StatusCode::BAD_REQUEST, &said).await;
            }
            Err(error) => return refuse(&who, &format!("/senders/{id}"), &error),
        }
    }
    match senders.check_channel(&who.caller, &id, &channel).await {
        Ok(tested) => {
            let said = Said { tested: Some(tested), saved: verb == "save", ..Said::default() };
            page(&app, &who, place, None, StatusCode::OK, &said).await
        }
        Err(error) => refuse(&who, &format!("/senders/{id}"), &error),
    }
}

/// Returns errors of settings and secrets under the names of their form fields.
fn faults(error: &Error) -> Faults {
    Faults::of(error).renamed(|path| path.trim_start_matches("settings.").trim_start_matches("secrets.").to_owned())
}

async fn save(app: &App, who: &SignedIn, (id, channel): (&str, &str), form: &Form) -> Result<()> {
    let name = form.get("kind");
    let kind = kinds(app, who, channel)?.into_iter().find(|kind| kind.name == name);
    let kind = kind.ok_or_else(|| Error::field("kind", format!("{name:?} does not support {channel}")))?;
    let (mut settings, mut secrets) = (Map::new(), Map::new());
    for field in kind.fields {
        let value = form.get(field.name);
        // An empty secret keeps its value; an empty setting is removed.
        if !value.trim().is_empty() {
            let map = if field.secret { &mut secrets } else { &mut settings };
            map.insert(field.name.to_owned(), Value::from(value));
        }
    }
    let senders = app.core.senders();
    let throttle = connected(app, who, (id, channel)).await?.and_then(|before| before.throttle);
    let expected_version = form.version().map(|version| Timestamp::parse(&version).ok());
    let put = PutConnection { kind: name, settings, secrets: Redacted::new(secrets), throttle, expected_version };
    senders.put_channel(&who.caller, id, channel, put).await.map(drop)
}

/// Returns the connection of the channel, if there is one.
async fn connected(app: &App, who: &SignedIn, (id, channel): (&str, &str)) -> Result<Option<ConnectionView>> {
    match app.core.senders().get_channel(&who.caller, id, channel).await {
        Ok(connection) => Ok(Some(connection)),
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        Err(error) => Err(error),
    }
}

fn kinds(app: &App, who: &SignedIn, channel: &str) -> Result<Vec<Kind>> {
    let channel = Channel::parse(channel).ok_or_else(|| Error::not_found("channel"))?;
    Ok(app.core.senders().kinds(who.session.environment, channel))
}

async fn page(app: &App, who: &SignedIn, place: (&str, &str), kind: Option<String>, status: StatusCode, said: &Said) -> Response {
    show_or_refuse(status, who, "/senders", "Connection", content(app, who, place, kind, said).await, "/senders")
}

async fn content(app: &App, who: &SignedIn, (id, channel): (&str, &str), kind: Option<String>, said: &Said) -> Result<Markup> {
    let sender = app.core.senders().get(&who.caller, id).await?;
    let now = connected(app, who, (id, channel)).await?;
    let kinds = kinds(app, who, channel)?;
    let chosen = kind.or_else(|| now.as_ref().map(|now| now.kind.clone()));
    let chosen = kinds.iter().find(|kind| Some(kind.name) == chosen.as_deref()).or(if kinds.len() == 1 { kinds.first() } else { None });
    let action = format!("/senders/{id}/channels/{channel}");
    let crumb = format!("/senders/{id}");
    Ok(html! {
        (head(Some((&crumb, &sender.name)), html! { (Channel::parse(channel).map_or("", named)) }, html! { @match &now { Some(now) => { (health(&now.health)) @if let Some(reason) = &now.health.reason { " · " (words(reason)) } }, None => "Nothing is connected yet" } }, html! {
            @if let Some(now) = now.as_ref().filter(|_| may_change(who)) {
                form class="plain" method="post" action=(action) { (form_key(who)) input type="hidden" name="kind" value=(now.kind); button class="btn" name="do" value="test" { "Test" } }
                (ask_first("remove", "Remove", "Remove this connection?", "Messages that wait for it use their fallback, or fail when they are due.", &action,
                    html! { (form_key(who)) input type="hidden" name="do" value="remove"; }))
            }
        }))
        @if let Some(tested) = &said.tested { (answer(tested, said.saved)) }
        (said.faults.summary())
        @if may_change(who) {
            @if kinds.len() > 1 { (which_kind(&kinds, chosen, &action)) }
            @if let Some(now) = now.as_ref().filter(|_| said.changed_meanwhile) { (facts(now)) }
            @if let Some(kind) = chosen { (settings(who, kind, now.as_ref(), said, &action)) }
        } @else if let Some(now) = &now { (facts(now)) }
    })
}

/// Shows the settings to a viewer, or what is stored in place of what was entered.
fn facts(now: &ConnectionView) -> Markup {
    html! {
        section class="panel" {
            header { h2 { (now.kind) } }
            div class="body" { dl class="facts" { @for (name, value) in &now.settings { dt { (label(name)) } dd { (words(&json_text(value))) } } } }
        }
    }
}

fn answer(tested: &Result<String, String>, saved: bool) -> Markup {
    let failed = if saved { "It is saved, but does not work yet." } else { "It does not work." };
    html! {
        @match tested {
            Ok(found) => { div class="note ok" role="status" { (icon("check")) div { b { "It works." } p { (words(found)) } } } }
            Err(why) => { div class="note bad" role="alert" { (icon("alert")) div { b { (failed) } p { (words(why)) } } } }
        }
    }
}

fn which_kind(kinds: &[Kind], chosen: Option<&Kind>, action: &str) -> Markup {
    let mut options = vec![("", "Choose")];
    options.extend(kinds.iter().map(|kind| (kind.name, kind.name)));
    html! {
        form class="panel" method="get" action=(action) {
            div class="body" {
                div class="row" {
                    (select("kind", "Kind of provider", &options, chosen.map_or("", |kind| kind.name), true))
                    button class="btn" { "Show its settings" }
                }
            }
        }
    }
}

fn settings(who: &SignedIn, kind: &Kind, now: Option<&ConnectionView>, said: &Said, action: &str) -> Markup {
    let same = now.filter(|now| now.kind == kind.name);
    let stored = now.map_or_else(|| NOT_CONNECTED.to_owned(), |now| now.updated_at.to_string());
    let (needed, rare): (Vec<&Field>, Vec<&Field>) = kind.fields.iter().partition(|field| field.required || said.faults.has(field.name));
    html! {
        form class="panel" method="post" action=(action) {
            header { h2 { (kind.name) } }
            div class="body" {
                (form_key(who))
                input type="hidden" name="kind" value=(kind.name);
                (version_field(said.typed.as_ref().and_then(Form::version), said.changed_meanwhile, stored))
                @if said.changed_meanwhile { (changed_meanwhile(if now.is_some() { "The list above" } else { "This page" })) }
                @for field in needed { (input(field, same, said)) }
                @if !rare.is_empty() {
                    details {
                        summary { "More settings" }
                        div class="stack" { @for field in rare { (input(field, same, said)) } }
                    }
                }
            }
            footer { span class="faint" { "Saving tests it at once; nothing is sent." } button class="btn go push" name="do" value="save" { "Save and test" } }
        }
    }
}

/// Renders the input of a setting with its current or entered value. Secrets are never shown.
fn input(field: &Field, now: Option<&ConnectionView>, said: &Said) -> Markup {
    let kept = field.secret && now.is_some();
    let value = match &said.typed {
        Some(_) if field.secret => String::new(),
        Some(typed) => typed.get(field.name),
        None => now.and_then(|now| now.settings.get(field.name)).map(json_text).unwrap_or_default(),
    };
    // The help of a choice begins with one of its words, which stay as they are.
    let mut hint = if matches!(field.kind, FieldKind::OneOf(_)) { field.help.to_owned() } else { capitalised(field.help) };
    if !hint.ends_with('.') {
        hint.push('.');
    }
    if kept {
        hint.push_str(" Leave it empty to keep the current one, unless you change another setting.");
    }
    hint.push_str(&format!(" In the API: {}.", field.name));
    let label = label(field.name);
    let choice = |options: &[(&str, &str)]| choice(field.name, &label, options, &value, &hint, &said.faults);
    match field.kind {
        FieldKind::OneOf(choices) => {
            let options: Vec<(&str, &str)> =
                [("", "The default")].into_iter().chain(choices.iter().map(|&choice| (choice, choice))).collect();
            choice(&options)
        }
        FieldKind::Flag => choice(&[("", "The default"), ("true", "true"), ("false", "false")]),
        FieldKind::Text | FieldKind::Integer(..) => {
            let range = if let FieldKind::Integer(least, most) = field.kind { Some((least, most)) } else { None };
            let kind = match range {
                Some(_) => "number",
                None if field.secret => "password",
                None => "text",
            };
            let (autocomplete, required) = (if field.secret { "new-password" } else { "" }, field.required && !kept);
            let usual = crate::components::Field::new(field.name, &label, &hint, &value);
            crate::components::Field { kind, autocomplete, required, ..usual }.within(&said.faults, range)
        }
    }
}
