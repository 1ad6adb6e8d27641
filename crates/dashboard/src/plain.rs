//! What messages say, as plain text for people: also those that are more than text.

use nuncio_core::messages::MessageView;
use nuncio_core::review::text_of_html;
use nuncio_domain::MessageType;
use nuncio_domain::message::Content;

/// Returns what a message says, or else its subject.
pub(crate) fn shown(message: &MessageView) -> String {
    said(message).or_else(|| message.subject.clone()).unwrap_or_else(|| "No text".to_owned())
}

/// Returns what a message says: its text, or that of its HTML, and its other content in words; `None` if there is nothing.
pub(crate) fn said(message: &MessageView) -> Option<String> {
    let own = message.text.clone().filter(|text| !text.trim().is_empty());
    let text = own.or_else(|| message.html_body.as_deref().map(text_of_html).filter(|text| !text.is_empty()));
    // A template that was sent as text needs no other words.
    let is_told = text.is_some() && message.message_type == MessageType::Template;
    let other = kind(message.message_type, message.content.as_deref()).filter(|_| !is_told);
    let lines: Vec<String> = text.into_iter().chain(other).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

/// Names a content that is more than text, with what tells it from others: `Location: 41.38, 2.17`.
fn kind(message_type: MessageType, content: Option<&Content>) -> Option<String> {
    let word = match message_type {
        MessageType::Text => return None,
        MessageType::Image => "Image",
        MessageType::Video => "Video",
        MessageType::Audio => "Audio",
        MessageType::Document => "Document",
        MessageType::Sticker => "Sticker",
        MessageType::Location => "Location",
        MessageType::Contact => "Contact",
        MessageType::Buttons => "Buttons",
        MessageType::List => "List",
        MessageType::CtaUrl => "Link",
        MessageType::Reaction => "Reaction",
        MessageType::Template => "Template",
    };
    let details = content.map(|content| details(message_type, content)).unwrap_or_default();
    Some(if details.is_empty() { word.to_owned() } else { format!("{word}: {}", details.join(", ")) })
}

fn details(message_type: MessageType, content: &Content) -> Vec<String> {
    let given = |parts: [&Option<String>; 2]| parts.into_iter().flatten().cloned().collect::<Vec<_>>();
    match message_type {
        MessageType::Location => {
            let place = content.latitude.zip(content.longitude).map(|(latitude, longitude)| format!("{latitude}, {longitude}"));
            given([&content.location_name, &content.location_address]).into_iter().chain(place).collect()
        }
        MessageType::Contact => content.contacts.iter().flatten().map(|card| card.name.clone()).collect(),
        MessageType::Buttons => content.buttons.iter().flatten().map(|button| button.title.clone()).collect(),
        MessageType::List => content.sections.iter().flatten().flat_map(|part| &part.rows).map(|row| row.title.clone()).collect(),
        MessageType::CtaUrl => given([&content.cta_display_text, &content.cta_url]),
        MessageType::Reaction => content.emoji.iter().cloned().collect(),
        MessageType::Template => content.template_variables.iter().flat_map(|values| values.values().cloned()).collect(),
        _ => content.filename.iter().cloned().collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn contents_are_named_in_words() {
        let content = |json| serde_json::from_value::<Content>(json).expect("content");
        let place = content(serde_json::json!({"latitude": 41.38, "longitude": 2.17}));
        let buttons = content(serde_json::json!({"buttons": [{"id": "y", "title": "Yes"}, {"id": "n", "title": "No"}]}));
        assert_eq!(kind(MessageType::Location, Some(&place)).as_deref(), Some("Location: 41.38, 2.17"));
        assert_eq!(kind(MessageType::Buttons, Some(&buttons)).as_deref(), Some("Buttons: Yes, No"));
        assert_eq!(kind(MessageType::CtaUrl, None).as_deref(), Some("Link"));
        assert_eq!(kind(MessageType::Text, None), None);
    }
}
