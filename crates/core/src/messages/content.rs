//! Validates the content fields of each message type.

use std::collections::BTreeMap;

use nuncio_domain::message::{Content, CtaHeaderType};
use nuncio_domain::{FieldError, MessageType, limits};

use crate::base::{FieldErrors, is_blank};

/// Fields of a type: required ones, then optional ones. `a|b` means exactly one of them.
struct Uses(&'static [&'static str], &'static [&'static str]);

const MEDIA: &[&str] = &["mediaUrl|mediaId"];

const fn uses(message_type: MessageType) -> Uses {
    match message_type {
        MessageType::Text => Uses(&[], &[]),
        MessageType::Image | MessageType::Video | MessageType::Audio | MessageType::Sticker => Uses(MEDIA, &["mimeType"]),
        MessageType::Document => Uses(MEDIA, &["mimeType", "filename"]),
        MessageType::Location => Uses(&["latitude", "longitude"], &["locationName", "locationAddress"]),
        MessageType::Contact => Uses(&["contacts"], &[]),
        MessageType::Buttons => Uses(&["buttons"], &["footerText"]),
        MessageType::List => Uses(&["listButton", "sections"], &["footerText"]),
        MessageType::CtaUrl => Uses(&["ctaDisplayText", "ctaUrl"], &["ctaHeaderType", "ctaHeaderText", "ctaHeaderMediaUrl", "footerText"]),
        MessageType::Reaction => Uses(&["emoji", "reactToMessageId"], &[]),
        MessageType::Template => Uses(&["templateId"], &["templateVariables", "templateButtonVariables", "templateHeaderVariables"]),
    }
}

/// Returns whether a type has media in its content.
pub(super) fn has_media(message_type: MessageType) -> bool {
    uses(message_type).0 == MEDIA
}

/// Validates `content` for the type. Unused fields are errors, or removed if `lenient`.
pub(crate) fn check(message_type: MessageType, content: &mut Option<Box<Content>>, lenient: bool, errors: &mut Vec<FieldError>) {
    let Uses(required, optional) = uses(message_type);
    let present = content.as_deref().map(Content::present).unwrap_or_default();
    for group in required {
        let count = group.split('|').filter(|name| present.contains(name)).count();
        let wanted = group.replace('|', " or content.");
        let fault = match count {
            0 => format!("messageType {message_type} requires content.{wanted}"),
            1 => continue,
            _ => format!("must have either content.{wanted}, not both"),
        };
        errors.push(FieldError::new(format!("content.{}", group.split('|').next().unwrap_or(group)), fault));
    }
    let Some(given) = content else { return };
    for name in present {
        if required.iter().flat_map(|g| g.split('|')).chain(optional.iter().copied()).any(|used| used == name) {
            continue;
        }
        if lenient {
            given.clear(name);
        } else {
            errors.push(FieldError::new(format!("content.{name}"), format!("messageType {message_type} does not use this field")));
        }
    }
    // Providers get -0.0 as a text, such as "-0".
    for degrees in [&mut given.latitude, &mut given.longitude].into_iter().flatten() {
        *degrees += 0.0;
    }
    values(given, errors);
    if message_type == MessageType::Reaction {
        emoji("content.emoji", given.emoji.as_deref().unwrap_or_default(), errors);
    }
    if given.present().is_empty() {
        *content = None;
    }
}

/// Checks that a reaction is exactly one emoji, or empty, which removes the previous reaction.
pub(crate) fn emoji(path: &str, text: &str, errors: &mut Vec<FieldError>) {
    if !text.is_empty() && emojis::get(text).is_none() {
        let shown: String = text.chars().take(16).collect();
        errors.push(FieldError::new(path, format!("is {shown:?}; must be exactly one emoji such as 👍, or empty to remove the reaction")));
    }
}

/// Of a list that is too long, checks only the permitted number of items.
fn values(content: &Content, errors: &mut Vec<FieldError>) {
    let mut faults = FieldErrors { errors };
    faults.url("content.mediaUrl", content.media_url.as_deref());
    faults.mime("content.mimeType", content.mime_type.as_deref());
    faults.length("content.mediaId", content.media_id.as_deref(), 1, limits::URL_BYTES);
    faults.url("content.ctaUrl", content.cta_url.as_deref());
    faults.url("content.ctaHeaderMediaUrl", content.cta_header_media_url.as_deref());
    faults.range("content.latitude", content.latitude, 90.0);
    faults.range("content.longitude", content.longitude, 180.0);
    faults.name("content.filename", content.filename.as_deref(), 1, limits::FILENAME);
    faults.length("content.listButton", content.list_button.as_deref(), 1, limits::LIST_BUTTON);
    faults.length("content.ctaDisplayText", content.cta_display_text.as_deref(), 1, limits::LIST_BUTTON);
    faults.length("content.ctaHeaderText", content.cta_header_text.as_deref(), 1, limits::HEADER_FOOTER);
    faults.length("content.footerText", content.footer_text.as_deref(), 1, limits::HEADER_FOOTER);
    for (path, given) in [
        ("content.templateVariables", &content.template_variables),
        ("content.templateButtonVariables", &content.template_button_variables),
        ("content.templateHeaderVariables", &content.template_header_variables),
    ] {
        faults.count(path, given.as_ref().map_or(0, BTreeMap::len), 0, limits::TEMPLATE_VALUES);
    }
    header(content, &mut faults);
    cards(content, &mut faults);
    buttons(content, &mut faults);
    list(content, &mut faults);
}

fn header(content: &Content, faults: &mut FieldErrors<'_>) {
    let wants_text = matches!(content.cta_header_type, Some(CtaHeaderType::Text));
    let wants_media = content.cta_header_type.is_some() && !wants_text;
    if wants_text && content.cta_header_text.is_none() {
        faults.push("content.ctaHeaderText", "is required when ctaHeaderType is text");
    }
    if wants_media && content.cta_header_media_url.is_none() {
        faults.push("content.ctaHeaderMediaUrl", "is required when ctaHeaderType is image, video or document");
    }
    if content.cta_header_type.is_none() && content.cta_header_media_url.is_some() {
        faults.push("content.ctaHeaderType", "is required with ctaHeaderMediaUrl; must be image, video or document");
    }
}

fn cards(content: &Content, faults: &mut FieldErrors<'_>) {
    let Some(cards) = &content.contacts else { return };
    faults.count("content.contacts", cards.len(), 1, 20);
    for (n, card) in cards.iter().enumerate().take(20) {
        faults.name(&format!("content.contacts[{n}].name"), Some(&card.name), 1, 200);
        faults.count(&format!("content.contacts[{n}].phones"), card.phones.len(), 1, 20);
        for (m, phone) in card.phones.iter().enumerate().take(20) {
            faults.length(&format!("content.contacts[{n}].phones[{m}]"), Some(phone), 1, 32);
        }
    }
}

fn buttons(content: &Content, faults: &mut FieldErrors<'_>) {
    let Some(buttons) = &content.buttons else { return };
    faults.count("content.buttons", buttons.len(), 1, limits::BUTTONS);
    for (n, button) in buttons.iter().enumerate().take(limits::BUTTONS) {
        faults.length(&format!("content.buttons[{n}].id"), Some(&button.id), 1, limits::BUTTON_ID);
        faults.length(&format!("content.buttons[{n}].title"), Some(&button.title), 1, limits::BUTTON_TITLE);
        let before = &buttons[..n];
        unique(faults, &format!("content.buttons[{n}].id"), &button.id, before.iter().map(|b| &b.id));
        unique(faults, &format!("content.buttons[{n}].title"), &button.title, before.iter().map(|b| &b.title));
        visible(faults, &format!("content.buttons[{n}].title"), &button.title);
    }
}

fn unique<'a>(faults: &mut FieldErrors<'_>, path: &str, value: &String, mut before: impl Iterator<Item = &'a String>) {
    if before.any(|other| other == value) {
        faults.push(path, format!("is {value:?} again; must be unique"));
    }
}

fn visible(faults: &mut FieldErrors<'_>, path: &str, title: &str) {
    if !title.is_empty() && is_blank(title) {
        faults.push(path, "has only whitespace; must have visible text");
    }
}

fn list(content: &Content, faults: &mut FieldErrors<'_>) {
    let Some(sections) = &content.sections else { return };
    faults.count("content.sections", sections.len(), 1, limits::LIST_SECTIONS);
    let rows: usize = sections.iter().map(|s| s.rows.len()).sum();
    if rows > limits::LIST_ROWS {
        faults.push("content.sections", format!("has {rows} rows in all; must have at most {}", limits::LIST_ROWS));
    }
    let mut ids = Vec::new();
    for (n, section) in sections.iter().enumerate().take(limits::LIST_SECTIONS) {
        let least = usize::from(sections.len() > 1);
        faults.length(&format!("content.sections[{n}].title"), Some(&section.title), least, limits::ROW_TITLE);
        faults.count(&format!("content.sections[{n}].rows"), section.rows.len(), 1, limits::LIST_ROWS);
        for (m, row) in section.rows.iter().enumerate().take(limits::LIST_ROWS) {
            let path = format!("content.sections[{n}].rows[{m}]");
            faults.length(&format!("{path}.id"), Some(&row.id), 1, limits::BUTTON_ID);
            unique(faults, &format!("{path}.id"), &row.id, ids.iter().copied());
            ids.push(&row.id);
            faults.length(&format!("{path}.title"), Some(&row.title), 1, limits::ROW_TITLE);
            visible(faults, &format!("{path}.title"), &row.title);
            faults.length(&format!("{path}.description"), row.description.as_deref(), 0, limits::ROW_DESCRIPTION);
        }
    }
}
