//! `/broadcasts/new`: creates a draft.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::html;
use nuncio_core::broadcasts::CreateBroadcast;
use nuncio_core::senders::ListSenders;
use nuncio_core::templates::ListTemplates;
use nuncio_core::users::SignedIn;
use nuncio_domain::{Error, Result};
use serde_json::json;

use crate::App;
use crate::components::{Faults, Field, channels, head, select};
use crate::form::Form;
use crate::messages::new::once;
use crate::shell::{form_key, framed};
use crate::signed::{Asked, Posted, Signed, lead_to, refuse};

const CHANNELS: [(&str, &str); 7] = channels(("smart", "Chosen for each recipient"));

/// The form as entered; redisplayed after an error.
#[derive(Default)]
struct Typed {
    name: String,
    channel: String,
    sender: String,
    template: String,
    text: String,
    subject: String,
    html: String,
    links: bool,
    once: String,
}

impl Typed {
    fn of(form: &Form) -> Self {
        let [name, channel, sender, template, text, subject, html, once] =
            ["name", "channel", "sender", "template", "text", "emailSubject", "emailHtmlBody", "once"].map(|name| form.get(name));
        Self { name, channel, sender, template, text, subject, html, links: form.get("links") == "on", once }
    }

    fn command(&self) -> Result<CreateBroadcast> {
        let given = |text: &str| Some(text.to_owned()).filter(|text| !text.trim().is_empty());
        let mut command = json!({"name": self.name.trim(), "channel": self.channel, "text": given(&self.text), "senderId": given(&self.sender),
            "emailSubject": given(&self.subject), "emailHtmlBody": given(&self.html), "trackLinks": self.links});
        if let Some(template) = given(&self.template) {
            (command["messageType"], command["content"]) = ("template".into(), json!({"templateId": template}));
            // The template provides the text.
            if self.text.trim().is_empty() {
                command["text"] = serde_json::Value::Null;
            }
        }
        // The form offers only valid channels.
        serde_json::from_value(command).map_err(|_| Error::field("channel", format!("{:?} is not a channel", self.channel)))
    }
}

/// Shows an empty form, or one with a template.
pub(crate) async fn new(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    let typed = Typed { once: once(&app), template: asked.get("template").unwrap_or_default(), ..Typed::default() };
    page(&app, &who, StatusCode::OK, &typed, &Faults::default()).await
}

/// Creates the draft. Submitting the form twice creates one.
pub(crate) async fn create(State(app): State<App>, Signed(who): Signed, Posted(form): Posted) -> Response {
    let typed = Typed::of(&form);
    let key = Some(typed.once.clone()).filter(|key| !key.is_empty());
    let made = async { app.core.broadcasts().create(&who.caller, typed.command()?, key).await };
    match made.await {
        Ok(broadcast) => lead_to(&format!("/broadcasts/{}", broadcast.id)),
        Err(error) if error.code().status() == 400 => page(&app, &who, StatusCode::BAD_REQUEST, &typed, &Faults::of(&error)).await,
        Err(error) => refuse(&who, "/broadcasts/new", &error),
    }
}

async fn page(app: &App, who: &SignedIn, status: StatusCode, typed: &Typed, faults: &Faults) -> Response {
    let senders = match app.core.senders().list(&who.caller, &ListSenders { limit: Some(100), ..ListSenders::default() }).await {
        Ok((senders, _)) => senders,
        Err(error) => return refuse(who, "/broadcasts", &error),
    };
    let ids: Vec<(String, String)> = senders.iter().map(|sender| (sender.id.to_string(), sender.name.clone())).collect();
    let mut options = vec![("", "The default sender")];
    options.extend(ids.iter().map(|(id, name)| (id.as_str(), name.as_str())));
    let templates = match app.core.templates().list(&who.caller, &ListTemplates { limit: Some(100), ..ListTemplates::default() }).await {
        Ok((templates, _)) => templates,
        Err(error) => return refuse(who, "/broadcasts", &error),
    };
    let named: Vec<_> = templates.iter().map(|one| (one.id.to_string(), format!("{} ({})", one.name, one.language))).collect();
    let mut with = vec![("", "No template: the text below")];
    with.extend(named.iter().map(|(id, name)| (id.as_str(), name.as_str())));
    let field = |name, label, hint, kind, value, required| Field { name, label, hint, kind, value, autocomplete: "off", required };
    let chosen = if typed.channel.is_empty() { "smart" } else { &typed.channel };
    let content = html! {
        (head(Some(("/broadcasts", "Broadcasts")), html! { "New broadcast" }, html! { "This creates a draft. Next, add recipients. Nothing is sent until you send it." }, html! {}))
        form class="panel" method="post" action="/broadcasts/new" {
            (form_key(who))
            input type="hidden" name="once" value=(typed.once);
            div class="body" {
                (faults.summary())
                (field("name", "Name", "Not visible to recipients.", "text", &typed.name, true).show(faults))
                div class="fields" {
                    div class="field" { (select("channel", "Channel", &CHANNELS, chosen, true)) }
                    div class="field" { (select("sender", "From", &options, &typed.sender, true)) }
                }
                @if !templates.is_empty() {
                    div class="field" {
                        (select("template", "Template", &with, &typed.template, true))
                        p class="hint" { "Its variables are filled from the columns of your file. Leave the text empty." }
                    }
                }
                (field("text", "Text", "{{name}} stands for a column of your file. Include a way to opt out, such as: Reply STOP.", "textarea", &typed.text, false).show(faults))
                details {
                    summary { "Email and links" }
                    (field("emailSubject", "Subject", "Required for email.", "text", &typed.subject, false).show(faults))
                    (field("emailHtmlBody", "HTML", "Sent in addition to the text.", "textarea", &typed.html, false).show(faults))
                    label class="check" { input type="checkbox" name="links" checked[typed.links]; "Count clicks on links, which then redirect through this server." }
                }
            }
            footer { button class="btn go push" { "Create the draft" } }
        }
    };
    framed(status, who, "/broadcasts", "New broadcast", &content)
}
