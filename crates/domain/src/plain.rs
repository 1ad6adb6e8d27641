//! Renders any message type as plain text.

use std::borrow::Cow;

use crate::{channel::MessageType, message::Content};

/// Returns the text of a message with its links and choices written out.
pub fn text<'a>(message_type: MessageType, text: Option<&'a str>, content: Option<&Content>) -> Cow<'a, str> {
    let text = text.unwrap_or_default();
    let Some(content) = content.filter(|_| message_type != MessageType::Text) else { return Cow::Borrowed(text) };
    let mut lines: Vec<Cow<'_, str>> = Vec::new();
    if !text.is_empty() {
        lines.push(Cow::Borrowed(text));
    }
    match message_type {
        MessageType::Image | MessageType::Video | MessageType::Audio | MessageType::Document | MessageType::Sticker => {
            lines.extend(content.filename.as_deref().map(Cow::Borrowed));
            lines.extend(content.media_url.as_deref().map(Cow::Borrowed));
        }
        MessageType::Location => location(content, &mut lines),
        MessageType::Contact => {
            let cards = content.contacts.iter().flatten();
            lines.extend(cards.map(|card| Cow::Owned(format!("{}: {}", card.name, card.phones.join(", ")))));
        }
        MessageType::Buttons => {
            let buttons = content.buttons.iter().flatten().enumerate();
            lines.extend(buttons.map(|(n, button)| Cow::Owned(format!("{}. {}", n + 1, button.title))));
        }
        MessageType::List => list(content, &mut lines),
        MessageType::CtaUrl => {
            if let Some(header) = content.cta_header_text.as_deref() {
                lines.insert(0, Cow::Borrowed(header));
            }
            lines.extend(content.cta_header_media_url.as_deref().map(Cow::Borrowed));
            if let (Some(label), Some(url)) = (&content.cta_display_text, &content.cta_url) {
                lines.push(Cow::Owned(format!("{label}: {url}")));
            }
        }
        MessageType::Reaction => lines.extend(content.emoji.as_deref().map(Cow::Borrowed)),
        MessageType::Text | MessageType::Template => {}
    }
    lines.extend(content.footer_text.as_deref().map(Cow::Borrowed));
    Cow::Owned(lines.join("\n"))
}

fn location<'a>(content: &'a Content, lines: &mut Vec<Cow<'a, str>>) {
    lines.extend(content.location_name.as_deref().map(Cow::Borrowed));
    lines.extend(content.location_address.as_deref().map(Cow::Borrowed));
    if let (Some(latitude), Some(longitude)) = (content.latitude, content.longitude) {
        lines.push(Cow::Owned(format!("https://www.openstreetmap.org/?mlat={latitude}&mlon={longitude}")));
    }
}

fn list<'a>(content: &'a Content, lines: &mut Vec<Cow<'a, str>>) {
    let mut number = 0;
    for section in content.sections.iter().flatten() {
        if !section.title.is_empty() {
            lines.push(Cow::Borrowed(section.title.as_str()));
        }
        for row in &section.rows {
            number += 1;
            let description = row.description.as_ref().map_or_else(String::new, |d| format!(": {d}"));
            lines.push(Cow::Owned(format!("{number}. {}{description}", row.title)));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn choices_are_numbered_and_links_written_out() {
        let content: Content = serde_json::from_value(serde_json::json!({
            "buttons": [{"id": "y", "title": "Yes"}, {"id": "n", "title": "No"}], "footerText": "Shop"
        }))
        .unwrap();
        assert_eq!(text(MessageType::Buttons, Some("Coming?"), Some(&content)), "Coming?\n1. Yes\n2. No\nShop");
        let content = Content { media_url: Some("https://example.com/a.png".into()), ..Content::default() };
        assert_eq!(text(MessageType::Image, None, Some(&content)), "https://example.com/a.png");
        assert_eq!(text(MessageType::Text, Some("x"), None), "x");
    }
}
