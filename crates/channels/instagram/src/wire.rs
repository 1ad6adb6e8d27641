//! Messages as the Instagram messaging API takes them. Pure.
//!
//! Sources: <https://developers.facebook.com/docs/messenger-platform/instagram/features/send-message>,
//! <https://developers.facebook.com/docs/messenger-platform/instagram/features/quick-replies>,
//! <https://developers.facebook.com/docs/messenger-platform/instagram/features/button-template>

use std::sync::LazyLock;

use nuncio_channel::SendRequest;
use nuncio_domain::message::{Content, CtaHeaderType, Failure, FailureCode};
use nuncio_domain::{MessageId, MessageType, limits, plain};
use serde_json::{Value, json};

/// Longest text of a button template, in characters.
const TEMPLATE_TEXT: usize = 640;
/// Longest title of a quick reply, in characters.
const TITLE: usize = 20;

static NO_CONTENT: LazyLock<Content> = LazyLock::new(Content::default);

/// Returns the request bodies that send a message, in order, or why it cannot be sent.
pub(crate) fn calls(request: &SendRequest<'_>) -> Result<Vec<Value>, Failure> {
    let message = request.message;
    let to = message.to.as_str();
    if to.is_empty() || !to.bytes().all(|b| b.is_ascii_digit()) {
        let what = format!("{to:?} is not an Instagram-scoped id, which has only digits");
        return Err(Failure::own(FailureCode::InvalidRecipient, what));
    }
    if !request.attachments.is_empty() {
        return Err(refused("Instagram requires media by URL or by its own id; set content.mediaUrl or content.mediaId"));
    }
    let text = message.request.text.as_deref().unwrap_or_default();
    let content = message.request.content.as_deref().unwrap_or(&NO_CONTENT);
    let words = || plain::text(message.message_type, Some(text), Some(content));
    let calls = match message.message_type {
        // Templates are already rendered as text.
        MessageType::Text | MessageType::Template => texts(to, text),
        MessageType::Image | MessageType::Sticker => media(to, "image", text, content)?,
        MessageType::Video => media(to, "video", text, content)?,
        MessageType::Audio => media(to, "audio", text, content)?,
        MessageType::Document => media(to, "file", text, content)?,
        MessageType::Location | MessageType::Contact => texts(to, &words()),
        MessageType::Buttons => {
            let choices = content.buttons.iter().flatten().map(|button| quick_reply(&button.title, &button.id)).collect();
            with_choices(to, &paragraphs([Some(text), content.footer_text.as_deref()]), choices)
        }
        MessageType::List => {
            let rows = content.sections.iter().flatten().flat_map(|section| &section.rows);
            with_choices(to, &words(), rows.map(|row| quick_reply(&row.title, &row.id)).collect())
        }
        MessageType::CtaUrl => call_to_action(to, text, content),
        MessageType::Reaction => vec![reaction(to, content)?],
    };
    if calls.is_empty() { Err(refused("the message is empty")) } else { Ok(calls) }
}

/// Returns whether a request's response has no id, because it is not a message.
pub(crate) fn is_action(call: &Value) -> bool {
    call.get("sender_action").is_some()
}

fn refused(what: impl Into<String>) -> Failure {
    Failure::own(FailureCode::ContentRejected, what)
}

fn message(to: &str, message: Value) -> Value {
    json!({"recipient": {"id": to}, "message": message})
}

fn texts(to: &str, text: &str) -> Vec<Value> {
    pieces(text, limits::INSTAGRAM_TEXT_BYTES).map(|piece| message(to, json!({"text": piece}))).collect()
}

/// Splits a text into pieces of at most `most` bytes: at the last line break or space that fits, which is removed, or between two
/// characters.
fn pieces(text: &str, most: usize) -> impl Iterator<Item = &str> {
    let mut rest = Some(text).filter(|text| !text.is_empty());
    std::iter::from_fn(move || {
        let all = rest?;
        if all.len() <= most {
            rest = None;
            return Some(all);
        }
        // One byte more, to find a break right after what fits.
        let room = &all[..all.floor_char_boundary(most + 1)];
        let cut = room.rfind('\n').or_else(|| room.rfind(' ')).filter(|at| *at > 0).unwrap_or_else(|| all.floor_char_boundary(most));
        let (piece, left) = all.split_at(cut);
        rest = Some(left.strip_prefix(['\n', ' ']).unwrap_or(left)).filter(|left| !left.is_empty());
        Some(piece)
    })
}

/// There are no captions: the text follows as a separate message.
fn media(to: &str, kind: &str, text: &str, content: &Content) -> Result<Vec<Value>, Failure> {
    let payload = match (&content.media_id, &content.media_url) {
        (Some(id), _) => json!({"attachment_id": id}),
        (None, Some(url)) => json!({"url": url}),
        (None, None) => return Err(refused("there is neither content.mediaUrl nor content.mediaId")),
    };
    let mut calls = vec![attachment(to, kind, payload)];
    calls.extend(texts(to, text));
    Ok(calls)
}

fn attachment(to: &str, kind: &str, payload: Value) -> Value {
    message(to, json!({"attachment": {"type": kind, "payload": payload}}))
}

/// A choice returns its id as payload.
fn quick_reply(title: &str, id: &str) -> Value {
    let title: String =
        if title.chars().count() > TITLE { title.chars().take(TITLE - 1).chain(['…']).collect() } else { title.to_owned() };
    json!({"content_type": "text", "title": title, "payload": id})
}

/// Attaches the choices to the last piece of the text: they disappear with the next message.
fn with_choices(to: &str, text: &str, choices: Vec<Value>) -> Vec<Value> {
    let mut calls = texts(to, text);
    if let Some(last) = calls.last_mut() {
        last["message"]["quick_replies"] = choices.into();
    }
    calls
}

/// Makes a button template. A media header, or a text that exceeds the template's limit, is sent before it.
fn call_to_action(to: &str, text: &str, content: &Content) -> Vec<Value> {
    let header = match content.cta_header_type {
        Some(CtaHeaderType::Image) => Some("image"),
        Some(CtaHeaderType::Video) => Some("video"),
        Some(CtaHeaderType::Document) => Some("file"),
        Some(CtaHeaderType::Text) | None => None,
    };
    let header = header.zip(content.cta_header_media_url.as_ref());
    let mut calls: Vec<Value> = header.map(|(kind, url)| attachment(to, kind, json!({"url": url}))).into_iter().collect();
    let label = content.cta_display_text.as_deref().unwrap_or_default();
    let words = paragraphs([content.cta_header_text.as_deref(), Some(text), content.footer_text.as_deref()]);
    let body = if words.chars().count() > TEMPLATE_TEXT {
        calls.extend(texts(to, &words));
        label
    } else {
        &words
    };
    let button = json!({"type": "web_url", "title": label, "url": content.cta_url});
    calls.push(attachment(to, "template", json!({"template_type": "button", "text": body, "buttons": [button]})));
    calls
}

fn paragraphs<const N: usize>(parts: [Option<&str>; N]) -> String {
    let parts: Vec<_> = parts.into_iter().flatten().filter(|part| !part.is_empty()).collect();
    parts.join("\n\n")
}

/// Meta only documents the heart, under the name `love`; other emojis are passed on.
fn reaction(to: &str, content: &Content) -> Result<Value, Failure> {
    let id = content.react_to_message_id.as_deref().unwrap_or_default();
    if id.is_empty() || id.parse::<MessageId>().is_ok() {
        return Err(refused("a reaction needs Instagram's own id of the message; this one has none"));
    }
    Ok(match content.emoji.as_deref().unwrap_or_default() {
        "" => json!({"recipient": {"id": to}, "sender_action": "unreact", "payload": {"message_id": id}}),
        emoji => {
            let reaction = if emoji.trim_end_matches('\u{fe0f}') == "❤" { "love" } else { emoji };
            json!({"recipient": {"id": to}, "sender_action": "react", "payload": {"message_id": id, "reaction": reaction}})
        }
    })
}

#[cfg(test)]
mod tests {
    use nuncio_channel::contract::arbitrary;
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #![proptest_config(arbitrary::config(256))]

        #[test]
        fn pieces_fit_and_lose_nothing_but_where_they_are_cut(text in "[a-zé€👍 \n]{0,80}", most in 4_usize..40) {
            let all: Vec<_> = pieces(&text, most).collect();
            prop_assert!(all.iter().all(|piece| !piece.is_empty() && piece.len() <= most), "{all:?}");
            let dense = |text: &str| text.chars().filter(|c| !c.is_whitespace()).collect::<String>();
            prop_assert_eq!(dense(&all.concat()), dense(&text));
            if text.len() <= most {
                prop_assert_eq!(all.concat(), text);
            }
        }
    }

    #[test]
    fn a_text_is_cut_at_lines_then_words_then_characters() {
        let cut = |text, most| pieces(text, most).collect::<Vec<_>>();
        assert_eq!(cut("one two\nthree", 10), ["one two", "three"]);
        assert_eq!(cut("one two three", 8), ["one two", "three"]);
        assert_eq!(cut("onetwo", 3), ["one", "two"]);
        assert_eq!(cut("éé", 3), ["é", "é"]);
        assert_eq!(cut("one two", 3), ["one", "two"], "a break right behind what fits");
        assert!(cut("", 3).is_empty());
    }
}
