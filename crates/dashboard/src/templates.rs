//! `/templates`: reusable texts, approved by WhatsApp where needed.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::senders::SenderView;
use nuncio_core::templates::{CreateTemplate, ListTemplates, SubmitTemplate, TemplateView, UpdateTemplate};
use nuncio_core::users::SignedIn;
use nuncio_domain::template::{Button, Category, Status};
use nuncio_domain::{Channel, Error, ErrorCode, Result};
use serde_json::json;

use crate::App;
use crate::components::{
    Faults, Field, ask_first, changed_meanwhile, data_table, empty, form_key, form_panel, head, icon, may_change, pager, panel, select,
    state, time, value, words,
};
use crate::form::Form;
use crate::shell::{framed, shell};
use crate::signed::{Asked, MayChange, Posted, Signed, lead_to, refuse};

const PLACE: &str = "/templates";
const CATEGORIES: [(&str, &str); 3] = [("UTILITY", "Utility"), ("MARKETING", "Marketing"), ("AUTHENTICATION", "Authentication")];

pub(crate) async fn list(State(app): State<App>, Signed(who): Signed, asked: Asked) -> Response {
    let list = ListTemplates { cursor: asked.get("cursor"), ..ListTemplates::default() };
    match app.core.templates().list(&who.caller, &list).await {
        Ok((found, next)) => shell(&who, PLACE, "Templates", &all(&found, asked.older(PLACE, next), may_change(&who))),
        Err(error) => refuse(&who, "/", &error),
    }
}

fn stage(status: Status) -> Markup {
    match status {
        Status::Approved => state("ok", "Approved"),
        Status::Pending => state("move", "With the provider"),
        Status::Rejected => state("bad", "Refused"),
        Status::Draft => state("", "Draft"),
    }
}

fn all(found: &[TemplateView], older: Option<String>, may_write: bool) -> Markup {
    let begin = html! { @if may_write { a class="btn go" href="/templates/new" { "New template" } } };
    html! {
        (head(None, html! { "Templates" }, html! { "Texts with variables. WhatsApp allows nothing else to people who have not written within 24 hours." }, html! { @if !found.is_empty() { (begin) } }))
        section class="panel" aria-label="List" {
            @if found.is_empty() { (empty("doc", "No templates yet", "Write one with {{1}} or {{name}} for text that differs for each recipient.", begin)) }
            @else {
                (data_table("rows fix", "Templates, newest first", &[("w2", "State"), ("w4", "Name"), ("w w1", "Language"), ("", "Text")], html! {
                    @for template in found {
                        tr {
                            td { (stage(template.status)) }
                            td { a class="to clip" href={ (PLACE) "/" (template.id) } { (words(&template.name)) } }
                            td class="w" { (template.language) }
                            td { span class="clip" { (words(&template.body)) } }
                        }
                    }
                }))
                (pager(older))
            }
        }
    }
}

pub(crate) async fn new(MayChange(who): MayChange) -> Response {
    writing(&who, StatusCode::OK, &Form::default(), &Faults::default())
}

fn writing(who: &SignedIn, status: StatusCode, typed: &Form, faults: &Faults) -> Response {
    let content = html! {
        (head(Some((PLACE, "Templates")), html! { "New template" }, html! {}, html! {}))
        form class="panel" method="post" action="/templates/new" {
            div class="body" {
                (form_key(who))
                (faults.summary())
                div class="fields" {
                    (Field::new("name", "Name", "Lower-case letters, digits and _, such as order_shipped.", &typed.get("name")).show(faults))
                    (Field::new("language", "Language", "Such as en or es_MX.", &typed.get("language")).show(faults))
                }
                (texts(typed, faults))
            }
            footer { button class="btn go push" { "Create the template" } }
        }
    };
    framed(status, who, PLACE, "New template", &content)
}

/// Renders the fields of the content, in a new template and in one that is changed.
fn texts(typed: &Form, faults: &Faults) -> Markup {
    html! {
        (Field { kind: "textarea", ..Field::new("body", "Text", "{{1}}, {{2}} or {{name}} are filled in for each recipient.", &typed.get("body")) }.show(faults))
        (Field { required: false, ..Field::new("footer", "Footer", "For WhatsApp.", &typed.get("footer")) }.show(faults))
        (Field { kind: "textarea", required: false, ..Field::new("smsBody", "Text for SMS", "If it should differ, such as a shorter one.", &typed.get("smsBody")) }.show(faults))
        div class="field" { (select("category", "WhatsApp category", &CATEGORIES, &typed.get("category"), true)) }
    }
}

/// Fills the fields with the content of a template.
fn form_of(template: &TemplateView) -> Form {
    let optional = |text: &Option<String>| text.clone().unwrap_or_default();
    let fields = [
        ("body", template.body.clone()),
        ("footer", optional(&template.footer)),
        ("smsBody", optional(&template.sms_body)),
        ("category", template.category.to_string()),
    ];
    fields.into_iter().collect()
}

/// Returns an optional field, if it is not blank.
fn given(form: &Form, name: &str) -> Option<String> {
    Some(form.get(name)).filter(|text| !text.trim().is_empty())
}

pub(crate) async fn create(State(app): State<App>, Signed(who): Signed, Posted(form): Posted) -> Response {
    let command = json!({"name": form.get("name").trim(), "language": form.get("language").trim(), "body": form.get("body"),
        "footer": given(&form, "footer"), "smsBody": given(&form, "smsBody"), "whatsappCategory": given(&form, "category")});
    let made = async {
        let command: CreateTemplate = serde_json::from_value(command).map_err(|error| Error::field("category", error.to_string()))?;
        app.core.templates().create(&who.caller, command, None).await
    };
    match made.await {
        Ok(template) => lead_to(&format!("{PLACE}/{}", template.id)),
        Err(error) if matches!(error.code().status(), 400 | 409) => writing(&who, StatusCode::BAD_REQUEST, &form, &Faults::of(&error)),
        Err(error) => refuse(&who, PLACE, &error),
    }
}

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>) -> Response {
    page(&app, &who, &id, StatusCode::OK, &Said::default()).await
}

/// Result of the last action on the page of a template.
#[derive(Default)]
struct Said {
    /// What was entered and not saved.
    typed: Option<Form>,
    faults: Faults,
    /// Whether it was not saved because the template was changed since the form was opened.
    changed_meanwhile: bool,
}

async fn page(app: &App, who: &SignedIn, id: &str, status: StatusCode, said: &Said) -> Response {
    match with_senders(app, who, id).await {
        Ok((template, senders)) => framed(status, who, PLACE, &template.name, &one(who, &template, &senders, said)),
        Err(error) => refuse(who, PLACE, &error),
    }
}

/// Returns a template, and the senders whose WhatsApp account can submit it.
async fn with_senders(app: &App, who: &SignedIn, id: &str) -> Result<(TemplateView, Vec<SenderView>)> {
    let template = app.core.templates().get(&who.caller, id).await?;
    let mut senders = app.core.senders().all(who.caller.tenant).await?;
    senders.retain(|sender| sender.connections.iter().any(|own| own.channel == Channel::Whatsapp));
    Ok((template, senders))
}

fn category(category: Category) -> &'static str {
    let value = category.as_str();
    CATEGORIES.iter().find(|(name, _)| *name == value).map_or(value, |(_, label)| label)
}

/// Returns the text of a button, with what it opens.
pub(crate) fn labelled(button: &Button) -> String {
    let parts = [Some(button.text.as_str()), button.url.as_deref(), button.phone_number.as_deref()];
    parts.into_iter().flatten().collect::<Vec<_>>().join(": ")
}

/// Returns the texts for single channels, with their titles.
pub(crate) fn own_texts(template: &TemplateView) -> Vec<(&'static str, String)> {
    let own = [
        ("Text for SMS", &template.sms_body),
        ("Text for Telegram", &template.telegram_body),
        ("Text for Instagram", &template.instagram_body),
    ];
    own.into_iter().filter_map(|(title, text)| Some((title, text.clone()?))).collect()
}

fn one(who: &SignedIn, template: &TemplateView, senders: &[SenderView], said: &Said) -> Markup {
    let ids: Vec<(String, &str)> = senders.iter().map(|sender| (sender.id.to_string(), sender.name.as_str())).collect();
    let options: Vec<(&str, &str)> = ids.iter().map(|(id, name)| (id.as_str(), *name)).collect();
    let may_write = may_change(who);
    let open = may_write && matches!(template.status, Status::Draft | Status::Rejected) && !options.is_empty();
    let own = format!("{PLACE}/{}", template.id);
    html! {
        (head(Some((PLACE, "Templates")), words(&template.name), html! { (stage(template.status)) " · " (template.language) " · changed " (time(template.updated_at)) }, html! {
            @if may_write { (ask_first("delete", "Delete", "Delete this template?", "Existing messages are not affected.", &own, html! { (form_key(who)) input type="hidden" name="do" value="delete"; })) }
        }))
        @if let Some(reason) = &template.rejection_reason { div class="note bad" { (icon("alert")) div { b { "WhatsApp rejected it." } p { (words(reason)) } } } }
        (said.faults.summary())
        @if open {
            (form_panel(who, "Approval by WhatsApp", &own, html! {
                div class="row" { (select("sender", "Sender", &options, "", false)) button class="btn" name="do" value="submit" { "Submit for approval" } }
            }))
        }
        div class="cols" {
            @if may_write { (editor(who, template, said, &own)) }
            (panel("Preview", html! {
                div class="bub" dir="auto" {
                    @if let Some(header) = &template.header_content { b { (header) } br; }
                    (template.body)
                    @if let Some(footer) = &template.footer { br; small { (footer) } }
                    @for button in &template.buttons { br; small { (labelled(button)) } }
                }
                @for (title, text) in own_texts(template) { p class="soft" { (title) } div class="bub" dir="auto" { (text) } }
                dl class="facts" {
                    dt { "WhatsApp category" } dd { (category(template.category)) }
                    dt { "Variables" } dd { @if template.variables.is_empty() { "none" } @else { (template.variables.join(", ")) } }
                    dt { "Version" } dd { (template.version) }
                }
                (value(&template.id.to_string()))
            }))
        }
    }
}

/// Renders the form that changes the content, with what was entered if that was not saved.
fn editor(who: &SignedIn, template: &TemplateView, said: &Said, own: &str) -> Markup {
    let stored = form_of(template);
    let typed = said.typed.as_ref().unwrap_or(&stored);
    // After a notice that it was changed, saving is meant.
    let version = version_of(typed).filter(|_| !said.changed_meanwhile).unwrap_or(template.version);
    html! {
        form class="panel" method="post" action=(own) {
            header { h2 { "Content" } }
            div class="body" {
                (form_key(who))
                input type="hidden" name="version" value=(version);
                @if said.changed_meanwhile { (changed_meanwhile("Preview")) }
                (texts(typed, &said.faults))
                p class="soft" { "WhatsApp must approve each change again." }
            }
            footer { button class="btn go push" name="do" value="save" { "Save" } }
        }
    }
}

/// Returns the version of the content that the form showed.
fn version_of(form: &Form) -> Option<u32> {
    form.get("version").parse().ok()
}

/// Edits, submits or deletes a template.
pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, Posted(form): Posted) -> Response {
    let templates = app.core.templates();
    let done: Result<String> = match form.get("do").as_str() {
        "save" => {
            let change = UpdateTemplate {
                body: Some(form.get("body")),
                footer: Some(given(&form, "footer")),
                sms_body: Some(given(&form, "smsBody")),
                whatsapp_category: Category::parse(&form.get("category")),
                expected_version: version_of(&form),
                ..UpdateTemplate::default()
            };
            templates.update(&who.caller, &id, change).await.map(|_| format!("{PLACE}/{id}"))
        }
        "submit" => templates
            .submit(&who.caller, &id, SubmitTemplate { sender_id: form.get("sender"), category: None })
            .await
            .map(|_| format!("{PLACE}/{id}")),
        "delete" => templates.delete(&who.caller, &id).await.map(|()| PLACE.to_owned()),
        _ => Err(Error::field("do", "is not an action of a template")),
    };
    match done {
        Ok(path) => lead_to(&path),
        Err(error) if error.code() == ErrorCode::Conflict && form.get("do") == "save" => {
            let said = Said { typed: Some(form), changed_meanwhile: true, ..Said::default() };
            page(&app, &who, &id, StatusCode::CONFLICT, &said).await
        }
        Err(error) if matches!(error.code().status(), 400 | 409) => {
            let typed = (form.get("do") == "save").then_some(form);
            let said = Said { typed, faults: Faults::of(&error), ..Said::default() };
            page(&app, &who, &id, StatusCode::BAD_REQUEST, &said).await
        }
        Err(error) => refuse(&who, &format!("{PLACE}/{id}"), &error),
    }
}
