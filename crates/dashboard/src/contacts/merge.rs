//! `/contacts/{id}/merge`: compares two contacts and merges them.

use axum::extract::{Path, State};
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::contacts::{ContactView, MergeContacts, MergePreview};
use nuncio_core::users::SignedIn;

use super::name;
use crate::App;
use crate::components::{channel, form_key, head, json_text, may_change, panel, time, words};
use crate::shell::shell;
use crate::signed::{Asked, Posted, Signed, lead_back_or_refuse, refuse};

/// Previews the result of merging `with` into the contact.
pub(crate) async fn compare(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, asked: Asked) -> Response {
    let with = asked.get("with").unwrap_or_default();
    match app.core.contacts().preview_merge(&who.caller, &id, &with).await {
        Ok(preview) => shell(&who, "/contacts", "Merge two contacts", &content(&who, &preview)),
        Err(error) => refuse(&who, &format!("/contacts/{id}"), &error),
    }
}

fn content(who: &SignedIn, preview: &MergePreview) -> Markup {
    let (target, source) = (&preview.target, &preview.source);
    html! {
        (head(Some(("/contacts", "Contacts")), html! { "Are they one person?" }, html! { "The remaining contact gets the messages, opt-outs and metrics of both." }, html! {
            a class="btn" href={ "/contacts/" (source.id) "/merge?with=" (target.id) } { "Swap" }
        }))
        div class="cols even" {
            (person("Remains", target))
            (person("Is merged", source))
            (person("Result", &preview.merged))
            @if may_change(who) {
                section class="panel" {
                    form class="body" method="post" action={ "/contacts/" (target.id) "/merge" } {
                        (form_key(who))
                        input type="hidden" name="with" value=(source.id);
                        p class="soft" { "This cannot be undone. The id of the merged contact then refers to the remaining one." }
                        div class="row" {
                            button class="btn go" { "Merge them" }
                            a class="btn" href={ "/contacts/" (target.id) } { "Keep both" }
                        }
                    }
                }
            }
        }
    }
}

fn person(title: &str, contact: &ContactView) -> Markup {
    let body = html! {
        p { b { (words(&name(contact))) } }
        dl class="facts" {
            dt { "Known since" } dd { (time(contact.created_at)) }
            @if let Some(country) = &contact.country_code { dt { "Country" } dd { (country) } }
            @for own in &contact.channels { dt { (channel(own.channel)) @if own.is_primary { " " span class="tag" { "primary" } } } dd { (words(&own.identifier)) } }
            @for (key, value) in &contact.metadata { dt { (words(key)) } dd { code { (words(&json_text(value))) } } }
        }
    };
    panel(title, body)
}

pub(crate) async fn merge(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, Posted(form): Posted) -> Response {
    let page = format!("/contacts/{id}");
    let from = MergeContacts { source_contact_id: form.get("with") };
    lead_back_or_refuse(&who, &page, app.core.contacts().merge(&who.caller, &id, from).await)
}
