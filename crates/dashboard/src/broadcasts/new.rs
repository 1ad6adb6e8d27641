//! `/broadcasts/new`: creates a draft.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::html;
use nuncio_core::broadcasts::CreateBroadcast;
use nuncio_core::messages::SendOptions;
use nuncio_core::templates::ListTemplates;
use nuncio_core::users::SignedIn;
use nuncio_domain::{Error, Result};
use serde_json::json;

use super::content::{Content, given};
use crate::App;
use crate::components::{Faults, channels, choice, form_key, head};
use crate::form::Form;
use crate::messages::new::{key, made, once};
use crate::shell::framed;
use crate::signed::{Asked, MayChange, Posted, Signed, lead_to, refuse};

const CHANNELS: [(&str, &str); 7] = channels(("smart", "Chosen for each recipient"));

/// The form as entered; redisplayed after an error.
#[derive(Default)]
struct Typed {
    content: Content,
    channel: String,
    sender: String,
    template: String,
    once: String,
}

impl Typed {
    fn of(form: &Form) -> Self {
        let [channel, sender, template, once] = ["channel", "sender", "template", "once"].map(|name| form.get(name));
        Self { content: Content::of(form), channel, sender, template, once }
    }

    fn command(&self) -> Result<CreateBroadcast> {
        let Content { name, text, subject, html, links, .. } = &self.content;
        let mut command = json!({"name": name.trim(), "channel": self.channel, "text": given(text), "senderId": given(&self.sender),
            "emailSubject": given(subject), "emailHtmlBody": given(html), "trackLinks": links});
        if let Some(template) = given(&self.template) {
            (command["messageType"], command["content"]) = ("template".into(), json!({"templateId": template}));
        }
        // The form offers only valid channels.
        serde_json::from_value(command).map_err(|_| Error::field("channel", format!("{:?} is not a channel", self.channel)))
    }
}

/// Shows an empty form, or one with a template.
pub(crate) async fn new(State(app): State<App>, MayChange(who): MayChange, asked: Asked) -> Response {
    let typed = Typed { once: once(&app), template: asked.get("template").unwrap_or_default(), ..Typed::default() };
    if !typed.template.is_empty()
        && let Err(error) = app.core.templates().get(&who.caller, &typed.template).await
    {
        return refuse(&who, "/broadcasts/new", &error);
    }
    page(&app, &who, StatusCode::OK, &typed, &Faults::default()).await
}

/// Creates the draft. Submitting the form twice creates one.
pub(crate) async fn create(State(app): State<App>, Signed(who): Signed, Posted(form): Posted) -> Response {
    let mut typed = Typed::of(&form);
    let key = key(&typed.once);
    let created = async {
        let options = SendOptions { idempotency_key: key, ..SendOptions::default() };
        let created = app.core.broadcasts().create(&who.caller, typed.command()?, options).await;
        made(created.map(|broadcast| broadcast.id), "broadcast")
    };
    match created.await {
        Ok(id) => lead_to(&format!("/broadcasts/{id}")),
        // 404: the sender or the template was deleted since the form was opened.
        Err(error) if matches!(error.code().status(), 400 | 404) => {
            typed.once = once(&app);
            let field = |path: &str| match path {
                "senderId" => "sender".to_owned(),
                "content.templateId" => "template".to_owned(),
                path => path.to_owned(),
            };
            let faults = Faults::of(&error).renamed(field);
            page(&app, &who, StatusCode::BAD_REQUEST, &typed, &faults).await
        }
        Err(error) => refuse(&who, "/broadcasts/new", &error),
    }
}

async fn page(app: &App, who: &SignedIn, status: StatusCode, typed: &Typed, faults: &Faults) -> Response {
    let senders = match app.core.senders().all(who.caller.tenant).await {
        Ok(senders) => senders,
        Err(error) => return refuse(who, "/broadcasts", &error),
    };
    let ids: Vec<(String, String)> = senders.iter().map(|sender| (sender.id.to_string(), sender.name.clone())).collect();
    let mut options = vec![("", "The default sender")];
    options.extend(ids.iter().map(|(id, name)| (id.as_str(), name.as_str())));
    let (mut templates, older) =
        match app.core.templates().list(&who.caller, &ListTemplates { limit: Some(100), ..ListTemplates::default() }).await {
            Ok(found) => found,
            Err(error) => return refuse(who, "/broadcasts", &error),
        };
    // An older one, chosen on its page.
    if !typed.template.is_empty() && templates.iter().all(|one| one.id.to_string() != typed.template) {
        templates.extend(app.core.templates().get(&who.caller, &typed.template).await);
    }
    let named: Vec<_> = templates.iter().map(|one| (one.id.to_string(), format!("{} ({})", one.name, one.language))).collect();
    let mut with = vec![("", "No template: the text below")];
    with.extend(named.iter().map(|(id, name)| (id.as_str(), name.as_str())));
    let hint = format!(
        "Its variables are filled from the columns of your file. Leave the text empty.{}",
        if older.is_some() { " To use one that is not here, open it." } else { "" }
    );
    let chosen = if typed.channel.is_empty() { "smart" } else { &typed.channel };
    let content = html! {
        (head(Some(("/broadcasts", "Broadcasts")), html! { "New broadcast" }, html! { "This creates a draft. Next, add recipients. Nothing is sent until you send it." }, html! {}))
        form class="panel" method="post" action="/broadcasts/new" {
            (form_key(who))
            input type="hidden" name="once" value=(typed.once);
            div class="body" {
                (faults.summary())
                (typed.content.name_field(faults))
                div class="fields" {
                    (choice("channel", "Channel", &CHANNELS, chosen, "", faults))
                    (choice("sender", "From", &options, &typed.sender, "", faults))
                }
                @if !templates.is_empty() {
                    (choice("template", "Template", &with, &typed.template, &hint, faults))
                }
                (typed.content.text_fields(faults))
            }
            footer { button class="btn go push" { "Create the draft" } }
        }
    };
    framed(status, who, "/broadcasts", "New broadcast", &content)
}
