//! `/templates`: reusable texts, approved by WhatsApp where needed.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::senders::SenderView;
use nuncio_core::templates::{CreateTemplate, ListTemplates, SubmitTemplate, TemplateView, UpdateTemplate};
use nuncio_core::users::SignedIn;
use nuncio_domain::template::{Button, ButtonType, Category, HeaderType, Status};
use nuncio_domain::{Channel, Error, ErrorCode, Result, limits};

use crate::App;
use crate::components::{
    Faults, Field, ask_first, changed_meanwhile, choice, data_table, empty, form_key, form_panel, head, icon, may_change, pager, panel,
    select, state, time, value, version_field, words,
};
use crate::form::{Form, recipient};
use crate::messages::new::{key, made, once};
use crate::shell::{framed, shell};
use crate::signed::{Asked, MayChange, Posted, Signed, lead_to, refuse};

const PLACE: &str = "/templates";
const CATEGORIES: [(&str, &str); 3] = [("UTILITY", "Utility"), ("MARKETING", "Marketing"), ("AUTHENTICATION", "Authentication")];
const HEADERS: [(&str, &str); 5] = [("", "None"), ("text", "Text"), ("image", "Image"), ("video", "Video"), ("document", "Document")];
const BUTTON_TYPES: [(&str, &str); 4] =
    [("quick_reply", "Reply with its label"), ("url", "Open a page"), ("phone", "Call a number"), ("otp", "Copy a one-time code")];
/// Fields of a button that are empty if there is none.
const PARTS: [&str; 3] = [LABEL, TARGET, EXAMPLE];
const LABEL: &str = "label";
const TARGET: &str = "address_or_number";
const EXAMPLE: &str = "example";
/// Fields of the texts of single channels, with their titles.
const OWN_TEXTS: [(&str, &str); 3] =
    [("smsBody", "Text for SMS"), ("telegramBody", "Text for Telegram"), ("instagramBody", "Text for Instagram")];

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

pub(crate) async fn new(State(app): State<App>, MayChange(who): MayChange) -> Response {
    writing(&app, &who, StatusCode::OK, &Form::default(), &Faults::default())
}

fn writing(app: &App, who: &SignedIn, status: StatusCode, typed: &Form, faults: &Faults) -> Response {
    let content = html! {
        (head(Some((PLACE, "Templates")), html! { "New template" }, html! {}, html! {}))
        form class="panel" method="post" action="/templates/new" {
            div class="body" {
                (form_key(who))
                input type="hidden" name="once" value=(once(app));
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

/// Renders the fields of the content, in a new template and in one that is changed. Those that few templates have are closed.
fn texts(typed: &Form, faults: &Faults) -> Markup {
    let field = |name: &str, label: &str, hint: &str, kind: &str| {
        Field { kind, required: name == "body", ..Field::new(name, label, hint, &typed.get(name)) }.show(faults)
    };
    let is_used = |name: &str| !typed.get(name).is_empty() || faults.has(name);
    let has_button = (1..=limits::BUTTONS).any(|number| PARTS.into_iter().any(|part| is_used(&button_field(number, part))));
    html! {
        (field("body", "Text", "{{1}}, {{2}} or {{name}} are filled in for each recipient.", "textarea"))
        details open[OWN_TEXTS.into_iter().any(|(name, _)| is_used(name))] {
            summary { "Other texts for SMS, Telegram and Instagram" }
            div class="stack" { @for (name, label) in OWN_TEXTS { (field(name, label, "If it should differ.", "textarea")) } }
        }
        details open[has_button || ["headerType", "headerContent", "footer"].into_iter().any(is_used)] {
            summary { "Header, footer and buttons" }
            div class="stack" {
                div class="fields" {
                    (choice("headerType", "Header", &HEADERS, &typed.get("headerType"), "", faults))
                    (field("headerContent", "Header content", "At most 60 characters with at most one variable, or the URL of the media.", "text"))
                }
                (field("footer", "Footer", "At most 60 characters, without variables.", "text"))
                @for number in 1..=limits::BUTTONS { (button_fields(number, typed, faults)) }
            }
        }
        (choice("category", "WhatsApp category", &CATEGORIES, &typed.get("category"), "", faults))
    }
}

/// Returns the name of a field of a button.
fn button_field(number: usize, part: &str) -> String {
    format!("button_{number}_{part}")
}

fn button_fields(number: usize, typed: &Form, faults: &Faults) -> Markup {
    let field = |part: &str, label: &str, hint: &str| {
        let name = button_field(number, part);
        Field { required: false, ..Field::new(&name, label, hint, &typed.get(&name)) }.show(faults)
    };
    let kind = button_field(number, "type");
    html! {
        fieldset class="field" {
            legend { "Button " (number) }
            div class="fields" {
                (choice(&kind, "Action", &BUTTON_TYPES, &typed.get(&kind), "", faults))
                (field(LABEL, "Label", "At most 25 characters; empty for no button."))
                (field(TARGET, "Address or number", "Of the page or the call. An address can end in {{1}}."))
                (field(EXAMPLE, "Example", "A value of that {{1}}, for WhatsApp."))
            }
        }
    }
}

/// Fills the fields with the content of a template.
fn form_of(template: &TemplateView) -> Form {
    let optional = |text: &Option<String>| text.clone().unwrap_or_default();
    let fields = [
        ("body", template.body.clone()),
        ("smsBody", optional(&template.sms_body)),
        ("telegramBody", optional(&template.telegram_body)),
        ("instagramBody", optional(&template.instagram_body)),
        ("headerType", template.header_type.map(|kind| kind.to_string()).unwrap_or_default()),
        ("headerContent", optional(&template.header_content)),
        ("footer", optional(&template.footer)),
        ("category", template.category.to_string()),
    ];
    let buttons = template.buttons.iter().zip(1..).flat_map(|(button, number)| {
        let target = button.url.as_ref().or(button.phone_number.as_ref()).cloned();
        let parts = [
            ("type", button.kind.to_string()),
            (LABEL, button.text.clone()),
            (TARGET, optional(&target)),
            (EXAMPLE, optional(&button.example)),
        ];
        parts.map(|(part, value)| (button_field(number, part), value))
    });
    fields.into_iter().map(|(name, value)| (name.to_owned(), value)).chain(buttons).collect()
}

/// Returns an optional field, if it is not blank.
fn given(form: &Form, name: &str) -> Option<String> {
    Some(form.get(name)).filter(|text| !text.trim().is_empty())
}

/// Reads the buttons, each with its number in the form. One with empty fields is none.
fn buttons(form: &Form) -> Vec<(usize, Button)> {
    let read = |number| {
        let part = |part| given(form, &button_field(number, part)).map(|text| text.trim().to_owned());
        let [text, target, example] = PARTS.map(part);
        if text.is_none() && target.is_none() && example.is_none() {
            return None;
        }
        let kind = ButtonType::parse(&form.get(&button_field(number, "type"))).unwrap_or(ButtonType::QuickReply);
        let (url, phone_number) = if kind == ButtonType::Phone { (None, target.map(|number| recipient(&number))) } else { (target, None) };
        Some((number, Button { kind, text: text.unwrap_or_default(), url, example, phone_number }))
    };
    (1..=limits::BUTTONS).filter_map(read).collect()
}

/// Reads the form of a new template.
fn command(form: &Form) -> CreateTemplate {
    CreateTemplate {
        name: form.get("name").trim().to_owned(),
        language: form.get("language").trim().to_owned(),
        body: form.get("body"),
        sms_body: given(form, "smsBody"),
        telegram_body: given(form, "telegramBody"),
        instagram_body: given(form, "instagramBody"),
        whatsapp_category: Category::parse(&form.get("category")),
        header_type: HeaderType::parse(&form.get("headerType")),
        header_content: given(form, "headerContent"),
        footer: given(form, "footer"),
        variables: None,
        buttons: Some(buttons(form).into_iter().map(|(_, button)| button).collect()),
    }
}

/// Reads the form that changes a template.
fn change(form: &Form) -> UpdateTemplate {
    let new = command(form);
    UpdateTemplate {
        body: Some(new.body),
        sms_body: Some(new.sms_body),
        telegram_body: Some(new.telegram_body),
        instagram_body: Some(new.instagram_body),
        whatsapp_category: new.whatsapp_category,
        header_type: Some(new.header_type),
        header_content: Some(new.header_content),
        footer: Some(new.footer),
        variables: None,
        buttons: new.buttons,
        expected_version: version_of(form),
    }
}

/// Returns the errors under the names of the form fields.
fn faults(error: &Error, form: &Form) -> Faults {
    let numbers: Vec<usize> = buttons(form).into_iter().map(|(number, _)| number).collect();
    Faults::of(error).renamed(|path| {
        let of_button = path.strip_prefix("buttons[").and_then(|rest| rest.split_once("]."));
        let Some((at, part)) = of_button else { return path.to_owned() };
        let number = at.parse().ok().and_then(|at: usize| numbers.get(at).copied()).unwrap_or(1);
        button_field(
            number,
            if part == "text" {
                LABEL
            } else if part == EXAMPLE {
                EXAMPLE
            } else {
                TARGET
            },
        )
    })
}

pub(crate) async fn create(State(app): State<App>, Signed(who): Signed, Posted(form): Posted) -> Response {
    let created = app.core.templates().create(&who.caller, command(&form), key(&form.get("once"))).await;
    match made(created.map(|template| template.id), "template") {
        Ok(id) => lead_to(&format!("{PLACE}/{id}")),
        Err(error) if matches!(error.code().status(), 400 | 409) => {
            writing(&app, &who, StatusCode::BAD_REQUEST, &form, &faults(&error, &form))
        }
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
    let own = [&template.sms_body, &template.telegram_body, &template.instagram_body];
    OWN_TEXTS.into_iter().zip(own).filter_map(|((_, title), text)| Some((title, text.clone()?))).collect()
}

fn one(who: &SignedIn, template: &TemplateView, senders: &[SenderView], said: &Said) -> Markup {
    let ids: Vec<(String, &str)> = senders.iter().map(|sender| (sender.id.to_string(), sender.name.as_str())).collect();
    let options: Vec<(&str, &str)> = ids.iter().map(|(id, name)| (id.as_str(), *name)).collect();
    let may_write = may_change(who);
    let open = may_write && matches!(template.status, Status::Draft | Status::Rejected) && !options.is_empty();
    let own = format!("{PLACE}/{}", template.id);
    html! {
        (head(Some((PLACE, "Templates")), words(&template.name), html! { (stage(template.status)) " · " (template.language) " · changed " (time(template.updated_at)) }, html! {
            @if may_write { a class="btn" href={ "/broadcasts/new?template=" (template.id) } { "New broadcast" } (ask_first("delete", "Delete", "Delete this template?", "Existing messages are not affected.", &own, html! { (form_key(who)) input type="hidden" name="do" value="delete"; })) }
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
    html! {
        form class="panel" method="post" action=(own) {
            header { h2 { "Content" } }
            div class="body" {
                (form_key(who))
                (version_field(version_of(typed), said.changed_meanwhile, template.version))
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
    form.version()?.parse().ok()
}

/// Edits, submits or deletes a template.
pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, Posted(form): Posted) -> Response {
    let templates = app.core.templates();
    let done: Result<String> = match form.get("do").as_str() {
        "save" => templates.update(&who.caller, &id, change(&form)).await.map(|_| format!("{PLACE}/{id}")),
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
            let faults = faults(&error, &form);
            let said = Said { typed: (form.get("do") == "save").then_some(form), faults, ..Said::default() };
            page(&app, &who, &id, StatusCode::BAD_REQUEST, &said).await
        }
        Err(error) => refuse(&who, &format!("{PLACE}/{id}"), &error),
    }
}
