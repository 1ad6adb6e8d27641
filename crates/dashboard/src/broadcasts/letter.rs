//! What a broadcast says, with the fragments that its review flagged: people who decide about it need all of it.

use maud::{Markup, html};
use nuncio_core::broadcasts::{BroadcastView, PreviewBroadcast};
use nuncio_core::review::text_of_html;
use nuncio_core::templates::TemplateView;
use nuncio_core::users::SignedIn;
use nuncio_domain::broadcast::{BroadcastType, Status};
use nuncio_domain::template::variables;
use nuncio_domain::{ErrorCode, Result, plain};

use crate::App;
use crate::components::words;
use crate::templates::{labelled, own_texts};

/// Renders the content: subject, text, template and HTML.
pub(super) async fn letter(app: &App, who: &SignedIn, broadcast: &BroadcastView) -> Result<Markup> {
    let flagged = broadcast.review_result.as_ref().map_or(&[][..], |review| &review.flagged_content);
    let template = template(app, who, broadcast).await?;
    let mut texts = vec![(
        "",
        plain::text(broadcast.message_type.message_type(), broadcast.text.as_deref(), broadcast.content.as_deref()).into_owned(),
    )];
    if template.is_some() && broadcast.status == Status::Escalated {
        // Without a recipient or a sender, there is none.
        let preview = app.core.broadcasts().preview(&who.caller, &broadcast.id.to_string(), PreviewBroadcast::default()).await;
        texts.extend(preview.ok().and_then(|preview| Some(("For the first recipient", preview.text?))));
    }
    texts.extend(template.iter().flat_map(texts_of));
    let source = broadcast.email_html_body.as_deref();
    texts.extend(source.map(|html| ("Text of the HTML", text_of_html(html))));
    texts.retain(|(_, text)| !text.is_empty());
    let subject = broadcast.email_subject.as_deref();
    let is_shown = |part: &&String| texts.iter().map(|(_, text)| text.as_str()).chain(subject).any(|text| !found(text, part).is_empty());
    let hidden: Vec<&String> = flagged.iter().filter(|part| !is_shown(part)).collect();
    let (in_source, elsewhere): (Vec<&String>, Vec<&String>) =
        hidden.into_iter().partition(|part| source.is_some_and(|html| !found(html, part).is_empty()));
    Ok(html! {
        @if let Some(subject) = subject { p { b dir="auto" { (marked(subject, flagged)) } } }
        @match &template {
            Some(template) => (named(template)),
            None if broadcast.message_type == BroadcastType::Template => p class="soft" { "Its template was deleted." },
            None => {},
        }
        @for (title, text) in &texts {
            @if !title.is_empty() { p class="soft" { (title) } }
            div class="letter" dir="auto" { (marked(text, flagged)) }
        }
        @if let Some(html) = source {
            details open[!in_source.is_empty()] {
                summary { "Source of the HTML" }
                pre class="said" tabindex="0" { (marked(html, flagged)) }
            }
        }
        @if texts.is_empty() && template.is_none() { p class="soft" { "No text." } }
        @if !elsewhere.is_empty() {
            p class="soft" {
                (why_elsewhere(broadcast, template.as_ref())) ": "
                @for (at, part) in elsewhere.iter().enumerate() { @if at > 0 { ", " } mark { (words(part)) } }
                "."
            }
        }
    })
}

/// Says why flagged fragments are not in the content.
fn why_elsewhere(broadcast: &BroadcastView, template: Option<&TemplateView>) -> &'static str {
    if broadcast.edited_since_review {
        return "The content was changed after the review, which flagged";
    }
    let own = [&broadcast.text, &broadcast.email_subject, &broadcast.email_html_body];
    let varies = template.is_some_and(|template| !template.variables.is_empty())
        || own.into_iter().flatten().any(|text| !variables(text).is_empty());
    if varies { "Flagged for some recipients" } else { "Also flagged" }
}

/// Returns the template of a broadcast that has one, unless it was deleted.
async fn template(app: &App, who: &SignedIn, broadcast: &BroadcastView) -> Result<Option<TemplateView>> {
    let Some(id) = broadcast.content.as_ref().and_then(|content| content.template_id.as_deref()) else { return Ok(None) };
    match app.core.templates().get(&who.caller, id).await {
        Err(error) if error.code() == ErrorCode::NotFound => Ok(None),
        found => found.map(Some),
    }
}

fn named(template: &TemplateView) -> Markup {
    let newer = template.approved_version.filter(|approved| *approved != template.version);
    html! {
        p {
            "Template " a href={ "/templates/" (template.id) } { (words(&template.name)) } "."
            @if let Some(approved) = newer {
                " Its newest version, " (template.version) ", is shown here. It is not approved by WhatsApp: messages use version " (approved) "."
            }
        }
    }
}

/// Returns the texts of a template: with header, footer and buttons, and those for single channels.
fn texts_of(template: &TemplateView) -> Vec<(&'static str, String)> {
    let lines = [template.header_content.clone(), Some(template.body.clone()), template.footer.clone()];
    let lines: Vec<String> = lines.into_iter().flatten().chain(template.buttons.iter().map(labelled)).collect();
    [("Text of the template", lines.join("\n\n"))].into_iter().chain(own_texts(template)).collect()
}

/// Returns where a fragment occurs. Its white space may differ, as the review reads HTML with that of its source.
fn found(text: &str, part: &str) -> Vec<(usize, usize)> {
    let flat = |text: &str| text.replace(['\n', '\r', '\t'], " ");
    let (text, joined) = (flat(text), part.split_whitespace().collect::<Vec<_>>().join(" "));
    let wanted = [flat(part), joined].into_iter().filter(|part| !part.trim().is_empty());
    wanted.flat_map(|part| text.match_indices(&part).map(|(at, _)| (at, at + part.len())).collect::<Vec<_>>()).collect()
}

/// Renders a text with the flagged fragments marked.
fn marked(text: &str, flagged: &[String]) -> Markup {
    let mut spans: Vec<(usize, usize)> = flagged.iter().flat_map(|part| found(text, part)).collect();
    spans.sort_unstable();
    let (mut pieces, mut at) = (Vec::new(), 0);
    for (start, end) in spans {
        if start >= at {
            pieces.push(html! { (text[at..start]) mark { (text[start..end]) } });
            at = end;
        }
    }
    html! { @for piece in &pieces { (piece) } (text[at..]) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fragments_are_marked_wherever_they_occur() {
        let flagged = ["act now".to_owned(), "your  PIN".to_owned(), " ".to_owned()];
        let shown = marked("act now! Send\nyour\nPIN, act now", &flagged).into_string();
        assert_eq!(shown, "<mark>act now</mark>! Send\n<mark>your\nPIN</mark>, <mark>act now</mark>");
    }
}
