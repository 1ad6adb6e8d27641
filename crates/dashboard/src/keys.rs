//! `/developers/keys`: API keys of both environments. Owners create and revoke them.

use std::time::Duration;

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::users::SignedIn;
use nuncio_core::{Caller, CreateApiKey};
use nuncio_domain::permission::{Permission, Permissions};
use nuncio_domain::user::Role;
use nuncio_domain::{Environment, Error, ErrorCode, Redacted, Result, Timestamp};

use crate::App;
use crate::components::{
    Faults, Field, ask_first, choice, data_table, empty, form_key, form_panel, head, icon, panel, state, time, value, words,
};
use crate::form::Form;
use crate::messages::new::{key, once};
use crate::signed::{Posted, Signed, lead_back_or_refuse, refuse, show_or_refuse};

const PLACE: &str = "/developers/keys";

/// Permissions of a key, as named sets.
const SETS: [(&str, &str, &str); 4] = [
    ("messages", "Send and read messages", "enough for most programs"),
    ("send", "Only send", "for code that you trust less"),
    ("audit", "Read the audit log", "for collectors of logs"),
    ("all", "Everything", "everything in the API"),
];

/// Lives of a key, in days.
const LIVES: [(&str, &str); 4] = [("", "Never"), ("30", "After 30 days"), ("90", "After 90 days"), ("365", "After 1 year")];

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed) -> Response {
    page(&app, &who, StatusCode::OK, &Form::default(), &Faults::default(), None).await
}

async fn page(app: &App, who: &SignedIn, status: StatusCode, typed: &Form, faults: &Faults, made: Option<&Redacted<String>>) -> Response {
    show_or_refuse(status, who, PLACE, "API keys", content(app, who, typed, faults, made).await, "/")
}

async fn content(app: &App, who: &SignedIn, typed: &Form, faults: &Faults, made: Option<&Redacted<String>>) -> Result<Markup> {
    let mut keys = Vec::new();
    for environment in [Environment::Live, Environment::Test] {
        keys.extend(app.core.keys().list(who.project.tenant(environment)).await?.into_iter().map(|key| (environment, key)));
    }
    let owner = who.role == Role::Owner;
    let now = app.core.ids().clock.now();
    Ok(html! {
        (head(None, html! { "API keys" }, html! { "Programs authenticate with these." }, html! { a class="btn" href="/developers/webhook" { "Webhook of the environment" } }))
        @if let Some(key) = made {
            (panel("Your new key", html! {
                div class="note ok" { (icon("key")) div { b { "Copy it now." } p { "It is not shown again: the server stores only a hash." } } }
                (value(key.expose()))
            }))
        }
        @if owner { (new_key(app, who, typed, faults)) }
        section class="panel" {
            header { h2 { "Keys" } span class="faint" { (keys.len()) } }
            @if keys.is_empty() { (empty("key", "No keys", "A program needs one to send messages.", html! {})) }
            @else {
                (data_table("fix", "API keys", &[("", "Name"), ("w2", "Environment"), ("w", "May"), ("num w w3", "Last used"), ("num w w3", "Expires"), ("num w3", "Action")], html! {
                    @for (environment, key) in &keys {
                        tr {
                            td {
                                b { (words(&key.name)) }
                                span class="n faint" { (may(key.permissions)) }
                                span class="n faint" { "Last used: " (moment(key.last_used_at)) }
                                span class="n faint" { "Expires: " (moment(key.expires_at)) }
                            }
                            td { span class={ "tag " (environment.as_str()) } { (environment.as_str()) } }
                            td class="w" { span class="clip" title=(key.permissions.names().join(", ")) { (may(key.permissions)) } }
                            td class="num w" { (moment(key.last_used_at)) }
                            td class="num w" { (moment(key.expires_at)) }
                            td class="num" {
                                @if key.revoked_at.is_some() { (state("stop", "Revoked")) }
                                @else if key.has_expired(now) { (state("stop", "Expired")) }
                                @else if owner {
                                    (ask_first(&key.id.to_string(), "Revoke", &format!("Revoke {:?}?", key.name), "Requests with it are rejected within a second. This cannot be undone.",
                                        &format!("{PLACE}/{}", key.id), html! { (form_key(who)) input type="hidden" name="world" value=(environment.as_str()); }))
                                }
                            }
                        }
                    }
                }))
            }
        }
    })
}

/// Renders a time that a key may not have.
fn moment(at: Option<Timestamp>) -> Markup {
    html! {
        @match at {
            Some(at) => { (time(at)) }
            None => { span class="faint" { "Never" } }
        }
    }
}

fn new_key(app: &App, who: &SignedIn, typed: &Form, faults: &Faults) -> Markup {
    let (name, chosen, life) = (typed.get("name"), typed.get("may"), typed.get("expires"));
    let live = world(typed) == Environment::Live;
    let body = html! {
        input type="hidden" name="once" value=(once(app));
        (faults.summary())
        (Field::new("name", "Name", "Its purpose.", &name).show(faults))
        fieldset class="field" {
            legend { "Environment" }
            div class="pick" {
                label { input type="radio" name="world" value="test" checked[!live]; "Test" span { "Nothing leaves this server." } }
                label { input type="radio" name="world" value="live" checked[live]; "Live" span { "Sends real messages and costs money." } }
            }
        }
        fieldset class="field" {
            legend { "Permissions" }
            div class="pick" {
                @for (at, (value, title, text)) in SETS.iter().enumerate() {
                    @let checked = chosen == *value || (chosen.is_empty() && at == 0);
                    label { input type="radio" name="may" value=(value) checked[checked]; (title) span { (text) } }
                }
            }
        }
        (choice("expires", "Expires", &LIVES, &life, "", faults))
        div class="row" { button class="btn go" { "Create key" } }
    };
    form_panel(who, "New key", PLACE, body)
}

/// Names permissions in words.
fn may(permissions: Permissions) -> String {
    if permissions == Permissions::ALL {
        return "Everything".to_owned();
    }
    let allowed: Vec<_> = Permission::ALL.iter().filter(|permission| permissions.allows(**permission)).map(|each| label(*each)).collect();
    allowed.join(" · ")
}

const fn label(permission: Permission) -> &'static str {
    match permission {
        Permission::MessagesSend => "Send messages",
        Permission::MessagesRead => "Read messages",
        Permission::TemplatesRead => "Read templates",
        Permission::TemplatesWrite => "Change templates",
        Permission::ContactsRead => "Read contacts",
        Permission::ContactsWrite => "Change contacts",
        Permission::SendersRead => "Read senders",
        Permission::SendersWrite => "Change senders",
        Permission::BroadcastsRead => "Read broadcasts",
        Permission::BroadcastsWrite => "Edit broadcasts",
        Permission::BroadcastsSend => "Send broadcasts",
        Permission::InvitationsRead => "Read invitations",
        Permission::InvitationsWrite => "Create invitations",
        Permission::NumbersRead => "Read numbers",
        Permission::NumbersWrite => "Change numbers",
        Permission::WebhooksRead => "Read webhook deliveries",
        Permission::WebhooksWrite => "Change webhooks",
        Permission::KeysRead => "Read API keys",
        Permission::KeysWrite => "Create API keys",
        Permission::AuditRead => "Read the audit log",
    }
}

fn owners_only(who: &SignedIn) -> Result<()> {
    if who.role == Role::Owner { Ok(()) } else { Err(Error::new(ErrorCode::Forbidden, "only owners can create and revoke API keys")) }
}

/// Creates a key and shows it once.
pub(crate) async fn create(State(app): State<App>, Signed(who): Signed, Posted(form): Posted) -> Response {
    match make(&app, &who, &form).await {
        Ok(secret) => page(&app, &who, StatusCode::CREATED, &Form::default(), &Faults::default(), Some(&secret)).await,
        Err(error) if error.code().status() == 400 => page(&app, &who, StatusCode::BAD_REQUEST, &form, &Faults::of(&error), None).await,
        Err(error) => refuse(&who, PLACE, &error),
    }
}

async fn make(app: &App, who: &SignedIn, form: &Form) -> Result<Redacted<String>> {
    owners_only(who)?;
    let permissions = match form.get("may").as_str() {
        "all" => Permissions::ALL,
        "send" => Permissions::NONE.with(Permission::MessagesSend),
        "audit" => Permissions::NONE.with(Permission::AuditRead),
        _ => Permissions::NONE.with(Permission::MessagesSend).with(Permission::MessagesRead),
    };
    let expires_at = match form.get("expires").as_str() {
        "" => None,
        days if LIVES.iter().any(|(known, _)| *known == days) => {
            let days: u64 = days.parse().map_err(Error::internal)?;
            Some(app.core.ids().clock.now().plus(Duration::from_secs(days * 86_400)))
        }
        _ => return Err(Error::field("expires", "must be one of the choices")),
    };
    let environment = world(form);
    let caller = Caller { tenant: who.project.tenant(environment), environment, ..who.caller.clone() };
    let names = permissions.names().into_iter().map(str::to_owned).collect();
    let asked = CreateApiKey { name: form.get("name"), permissions: Some(names), expires_at };
    match app.core.keys().issue(&caller, asked, key(&form.get("once")).as_deref()).await {
        Err(error) if matches!(error.code(), ErrorCode::IdempotencyConflict | ErrorCode::IdempotencyKeyReused) => {
            let text = "This form was sent twice; the first time created the key. If you did not copy it, revoke it and create another.";
            Err(Error::new(ErrorCode::InvalidRequest, text))
        }
        made => made?.key.ok_or_else(|| Error::internal("a new key came without its secret")),
    }
}

fn world(form: &Form) -> Environment {
    if form.get("world") == "live" { Environment::Live } else { Environment::Test }
}

pub(crate) async fn revoke(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, Posted(form): Posted) -> Response {
    let revoked = async {
        owners_only(&who)?;
        let id = id.parse().map_err(|_| Error::not_found("API key"))?;
        app.core.keys().revoke(who.project.tenant(world(&form)), id).await
    };
    lead_back_or_refuse(&who, PLACE, revoked.await)
}
