//! Panels of a draft: recipients, preview and cost.

use std::cmp::Reverse;
use std::collections::BTreeMap;

use maud::{Markup, html};
use nuncio_core::broadcasts::{
    BroadcastEstimate, BroadcastPreview, BroadcastView, ColumnUse, ImportContacts, ImportPreview, ImportedContacts, PreviewBroadcast,
    SelectedContacts,
};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Error, Result};

use super::act::time_value;
use super::content::Content;
use crate::App;
use crate::components::{
    Faults, Field, channel, channels, choice, count, counted, data_table, figure, form_key, form_panel, icon, money, outdated, panel,
    state, words,
};
use crate::messages::new::once;
use crate::upload::{file_field, invalid_rows};

/// Maximum number of reasons shown.
const REASONS: usize = 5;

/// Result of the last action on the page.
#[derive(Default)]
pub(crate) struct Said {
    pub(super) faults: Faults,
    pub(super) imported: Option<ImportedContacts>,
    pub(super) previewed: Option<ImportPreview>,
    /// How the last file was to be read.
    pub(super) file: ImportContacts,
    pub(super) selected: Option<SelectedContacts>,
    pub(super) to: String,
    pub(super) at: Option<String>,
    /// Channel and countries of the contacts to select, as entered.
    pub(super) channel: String,
    pub(super) countries: String,
    /// Variables and the fields of contacts that fill them, as entered.
    pub(super) variables: BTreeMap<String, String>,
    /// Content that was entered and not saved.
    pub(super) edited: Option<Content>,
    /// Whether it was not saved because the broadcast was changed since the form was opened.
    pub(super) changed_meanwhile: bool,
    /// Whether it was not sent because it was changed since the page was opened.
    pub(super) sent_another: bool,
    /// Whether the status did not allow the last action.
    pub(super) too_late: bool,
}

/// Renders the panels of a draft. Without `inline`, a link leads to the estimate.
pub(super) async fn panels(app: &App, who: &SignedIn, broadcast: &BroadcastView, said: &Said, inline: bool) -> Result<Markup> {
    let id = broadcast.id.to_string();
    let variables = app.core.broadcasts().variables(&who.caller, &id).await?;
    let (mut preview, mut estimate) = (None, None);
    if broadcast.total_contacts > 0 {
        let broadcasts = app.core.broadcasts();
        // An error is shown in place of the preview.
        preview = Some(broadcasts.preview(&who.caller, &id, PreviewBroadcast::default()).await);
        if inline {
            estimate = Some(broadcasts.forecast(&who.caller, &id).await?);
        }
    }
    Ok(html! {
        (said.faults.summary())
        @if let Some(imported) = &said.imported { (rows(imported)) }
        @if let Some(previewed) = &said.previewed { (mapping(previewed)) }
        @if let Some(selected) = &said.selected { (matched(selected)) }
        div class="cols" {
            (from_file(who, broadcast, said))
            (from_contacts(who, broadcast, &variables, said))
        }
        @if let Some(preview) = &preview { div class="cols" { (shown(preview)) (costs(&id, estimate.as_ref())) (try_out(app, who, &id, said)) } }
        @if broadcast.total_contacts > 0 { (send(app, who, broadcast, said)) }
    })
}

fn from_file(who: &SignedIn, broadcast: &BroadcastView, said: &Said) -> Markup {
    let ImportContacts { recipient, columns, countries, .. } = &said.file;
    let has_invalid = said.imported.as_ref().is_some_and(|imported| imported.invalid > 0);
    let field = |name, label, hint, value: &Option<String>| {
        Field { required: false, ..Field::new(name, label, hint, value.as_deref().unwrap_or_default()) }.show(&said.faults)
    };
    html! {
        section class="panel" {
            header { h2 { "Recipients from a file" } span class="faint" { (count(broadcast.total_contacts)) " so far" } }
            form class="body" method="post" enctype="multipart/form-data" action={ "/broadcasts/" (broadcast.id) "/recipients" } {
                (form_key(who))
                // The file is read while it arrives: what says how to read it must come first.
                details open[recipient.is_some() || columns.is_some() || countries.is_some() || said.faults.has("recipient") || has_invalid] {
                    summary { "Other column names, national numbers" }
                    (field("recipient", "Column of the recipient", "If it has a different name.", recipient))
                    (field("columns", "Columns and their variables", "Such as nombre:name,notas: — a column without a variable is ignored.", columns))
                    (field("countries", "Countries of national numbers", "With ES, 600 111 222 means +34600111222.", countries))
                }
                (file_field("File", ".csv,.tsv,.txt,.ndjson,.jsonl", "CSV with a header row. A column named phone, email or recipient has the recipients; other columns fill the {{variables}} of the same name. Above 50 MB use nuncio broadcasts import.", &said.faults))
                div class="row" {
                    button class="btn" { "Add recipients" }
                    button class="btn quiet" formaction={ "/broadcasts/" (broadcast.id) "/columns" } { "Preview its columns" }
                }
            }
        }
    }
}

/// Shows how the columns of a file would be imported.
fn mapping(previewed: &ImportPreview) -> Markup {
    html! {
        section class="panel" role="status" {
            header { h2 { "The columns of your file" } span class="faint" { "Nothing has been added yet." } }
            @if !previewed.missing.is_empty() {
                div class="body" {
                    div class="note warn" {
                        (icon("alert"))
                        div { b { "No column fills " @for (at, name) in previewed.missing.iter().enumerate() { @if at > 0 { ", " } code { "{{" (name) "}}" } } "." } p { "Assign a column under Other column names, such as nombre:name, or remove the variable from the text." } }
                    }
                }
            }
            (data_table("fix", "Columns and their use", &[("", "Column"), ("", "Used as"), ("", "First values")], html! {
                @for column in &previewed.columns {
                    tr {
                        td { span class="clip" { (words(&column.name)) } }
                        td { @match &column.becomes {
                            ColumnUse::Recipient => { (state("ok", "Recipient")) },
                            ColumnUse::Variable(name) => { code { "{{" (name) "}}" } },
                            ColumnUse::LeftOut => { (state("stop", "Ignored")) },
                        } }
                        td { span class="clip soft" { (words(&column.values.join(", "))) } }
                    }
                }
            }))
            footer { span class="soft" { "Choose the file again below and press Add recipients." } }
        }
    }
}

fn from_contacts(who: &SignedIn, broadcast: &BroadcastView, variables: &[String], said: &Said) -> Markup {
    let body = html! {
        (choice("channel", "Reachable by", &channels(("", "Any channel")), &said.channel, "", &said.faults))
        (Field { required: false, ..Field::new("ofCountries", "In these countries", "Such as ES,MX.", &said.countries) }.show(&said.faults))
        @if !variables.is_empty() {
            p class="soft" { "Enter the field of the contact that fills each variable: name, country, or metadata.city for your own field city." }
            @for variable in variables { (filled_with(variable, said)) }
        }
        div class="row" { button class="btn" name="do" value="select" { "Add contacts" } }
    };
    form_panel(who, "Recipients from your contacts", &format!("/broadcasts/{}", broadcast.id), body)
}

/// Renders the field for what fills a variable: what was entered, otherwise the field of the contact with the same name. Numbers do not
/// name any.
fn filled_with(variable: &str, said: &Said) -> Markup {
    let offered = match variable {
        "name" | "country" => variable.to_owned(),
        _ if variable.starts_with(|first: char| first.is_ascii_digit()) => String::new(),
        _ => format!("metadata.{variable}"),
    };
    let (id, label) = (format!("variables.{variable}"), format!("{{{{{variable}}}}}"));
    let value = said.variables.get(variable).unwrap_or(&offered);
    Field { required: false, ..Field::new(&id, &label, "", value) }.show(&said.faults)
}

/// Shows the result of an import.
fn rows(imported: &ImportedContacts) -> Markup {
    html! {
        section class="panel" role="status" {
            header { h2 { (figure(imported.added)) " of " (figure(imported.rows)) " rows added" } }
            div class="body" {
                p class="soft" { "Already recipients: " (figure(imported.duplicates)) ". Invalid: " (figure(imported.invalid)) "." }
                (suppressed(imported.suppressed))
            }
            @if !imported.errors.is_empty() { (invalid_rows(imported.errors.iter().map(|row| (row.line, row.reason.as_str())))) }
        }
    }
}

/// Tells how many of all recipients are suppressed, not only of those that were just added.
fn suppressed(number: u64) -> Markup {
    html! { @if number > 0 { p class="soft" { "Suppressed among all recipients of this broadcast: " (figure(number)) ". They are skipped when it is sent." } } }
}

fn matched(selected: &SelectedContacts) -> Markup {
    let (class, symbol) = if selected.added > 0 && selected.invalid == 0 { ("note ok", "check") } else { ("note warn", "alert") };
    html! {
        div class=(class) role="status" {
            (icon(symbol))
            div {
                b { (counted(selected.added, "contact")) " added." }
                p { "Matched: " (figure(selected.matched)) ". Already recipients: " (figure(selected.duplicates)) ". Without an address for this channel: " (figure(selected.unreachable)) ". Invalid: " (figure(selected.invalid)) "." }
                (suppressed(selected.suppressed))
            }
        }
        @if !selected.errors.is_empty() { (rejected(selected)) }
    }
}

/// Shows why contacts were not added, the most frequent reasons first.
fn rejected(selected: &SelectedContacts) -> Markup {
    let mut by_reason = BTreeMap::<&str, (usize, &str)>::new();
    for error in &selected.errors {
        by_reason.entry(&error.reason).or_insert((0, &error.recipient)).0 += 1;
    }
    let mut reasons: Vec<_> = by_reason.into_iter().collect();
    reasons.sort_by_key(|(_, (contacts, _))| Reverse(*contacts));
    let listed = selected.errors.len() as u64;
    html! {
        section class="panel" {
            header { h2 { "Not added" } @if listed < selected.invalid { span class="faint" { "The first " (figure(listed)) } } }
            (data_table("fix", "Reasons", &[("", "Reason"), ("w w4", "First contact"), ("num w2", "Contacts")], html! {
                @for (reason, (contacts, first)) in reasons.into_iter().take(REASONS) {
                    tr { td { (words(&reason.replace("templateVariables.", ""))) } td class="w" { span class="clip soft" { (words(first)) } } td class="num" { (figure(contacts as u64)) } }
                }
            }))
        }
    }
}

fn shown(preview: &Result<BroadcastPreview>) -> Markup {
    let body = html! {
        @match preview {
            Ok(preview) => {
                @if let Some(subject) = &preview.subject { p { b { (words(subject)) } } }
                @if let Some(text) = &preview.text { div class="bub" dir="auto" { (text) } }
                p class="soft" { "By " (channel(preview.plan.channel)) @if let Some(segments) = preview.plan.segments.filter(|_| preview.plan.channel.is_sms()) { ", " (segments) @if segments == 1 { " segment" } @else { " segments" } } "." }
            }
            Err(error) => (missing(error)),
        }
    };
    panel("Message to the first recipient", body)
}

fn missing(error: &Error) -> Markup {
    html! { (Faults::of(error).listed(false)) }
}

fn costs(id: &str, estimate: Option<&BroadcastEstimate>) -> Markup {
    let Some(estimate) = estimate else {
        return looked_up_on_request("Estimate", id, "The estimate evaluates every recipient, which takes a moment.", "Estimate");
    };
    let body = html! {
        dl class="facts" {
            dt { "Recipients" } dd { (figure(estimate.recipients)) }
            @if estimate.suppressed > 0 { dt { "Skipped" } dd { (figure(estimate.suppressed)) " are suppressed" } }
            @for each in &estimate.channels {
                dt { (channel(each.channel)) } dd { (figure(each.recipients)) @if let Some(segments) = each.segments { ", " (counted(segments, "segment")) } }
            }
            @for each in &estimate.unsendable { dt { "Cannot be sent" } dd { (figure(each.recipients)) ": " (each.reason) } }
            @if let Some(seconds) = estimate.duration_seconds { dt { "Duration" } dd { "about " (duration(seconds)) } }
            dt class="sum" { "Cost" } dd class="sum" { (money(estimate.estimated_cost)) }
        }
    };
    panel("Estimate", body)
}

fn duration(seconds: u64) -> String {
    match seconds {
        0..=90 => format!("{seconds} seconds"),
        91..=5_400 => format!("{} minutes", seconds.div_ceil(60)),
        _ => format!("{:.1} hours", seconds as f64 / 3_600.0),
    }
}

/// Renders a panel with a link instead of its figures.
pub(super) fn looked_up_on_request(title: &str, id: &str, words: &str, verb: &str) -> Markup {
    let body = html! {
        p class="soft" { (words) }
        div class="row" { a class="btn" href={ "/broadcasts/" (id) "?figures=1" } { (verb) } }
    };
    panel(title, body)
}

fn try_out(app: &App, who: &SignedIn, id: &str, said: &Said) -> Markup {
    let body = html! {
        input type="hidden" name="once" value=(once(app));
        (Field::new("to", "To", "You get the message of the first recipient.", &said.to).show(&said.faults))
        div class="row" { button class="btn" name="do" value="test" { "Send the test" } }
    };
    form_panel(who, "Send yourself a test", &format!("/broadcasts/{id}"), body)
}

fn send(app: &App, who: &SignedIn, broadcast: &BroadcastView, said: &Said) -> Markup {
    let stored = broadcast.scheduled_at.filter(|at| *at > app.core.ids().clock.now()).map(time_value).unwrap_or_default();
    let value = said.at.as_deref().unwrap_or(&stored);
    let at = Field { kind: "datetime-local", required: false, ..Field::new("at", "When (UTC)", "Empty: now.", value) };
    let body = html! {
        p class="soft" { "It is reviewed first, by rules on this server. If the review rejects it, it is not sent." }
        input type="hidden" name="version" value=(broadcast.version);
        input type="hidden" name="recipients" value=(broadcast.total_contacts);
        @if said.sent_another { (outdated("Nothing was sent. Check the content and the recipients, then send it again.")) }
        (at.show(&said.faults))
        div class="row" { button class="btn go" name="do" value="send" { "Review and send to " (count(broadcast.total_contacts)) } }
    };
    form_panel(who, "Send it", &format!("/broadcasts/{}", broadcast.id), body)
}
