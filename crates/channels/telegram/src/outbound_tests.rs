use nuncio_channel::contract::{message, request};
use nuncio_channel::{Account, ResolvedAttachment};
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::message::{Button, Card, Row, Section};
use nuncio_domain::{Channel, ConnectionId, Redacted, TenantId, Timestamp};
use serde_json::Map;

use super::*;

fn told(message_type: MessageType, text: &str, content: Content) -> nuncio_domain::message::Message {
    let id = ConnectionId::from_uuid(uuid_v7(Timestamp::from_millis(1), [7; 10]));
    let (settings, secrets) = (Map::new(), Redacted::default());
    let account = Account { id, tenant: TenantId(1), channel: Channel::Telegram, settings, secrets, trusted: true };
    let mut message = message(&account, "-1005", 0);
    message.message_type = message_type;
    message.request_mut().text = Some(text.to_owned()).filter(|t| !t.is_empty());
    message.request_mut().content = Some(Box::new(content));
    message
}

/// The method and the parameters of each call of a message without files.
fn sent(message_type: MessageType, text: &str, content: Content) -> Vec<(&'static str, Value)> {
    let message = told(message_type, text, content);
    let calls = calls(&request(&message)).unwrap();
    calls.into_iter().inspect(|call| assert_eq!(call.file, None)).map(|call| (call.method, call.parameters.into())).collect()
}

fn why_not(message_type: MessageType, content: Content) -> Failure {
    calls(&request(&told(message_type, "", content))).unwrap_err()
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

fn button(id: &str, title: &str) -> Button {
    Button { id: id.to_owned(), title: title.to_owned() }
}

fn row(id: &str, title: &str, description: Option<&str>) -> Row {
    Row { id: id.to_owned(), title: title.to_owned(), description: description.map(str::to_owned) }
}

#[test]
fn texts() {
    let wanted = vec![("sendMessage", json!({"chat_id": -1005, "text": "*Hi* <b>"}))];
    assert_eq!(sent(MessageType::Text, "*Hi* <b>", Content::default()), wanted);
    assert_eq!(sent(MessageType::Template, "*Hi* <b>", Content::default()), wanted);
}

#[test]
fn media_by_url_and_by_id() {
    use MessageType::{Audio, Document, Image, Sticker, Video};
    for (message_type, mime_type, url, method, parameter) in [
        (Image, None, "https://x.example/a.png", "sendPhoto", "photo"),
        (Image, Some("image/gif"), "https://x.example/a.gif", "sendAnimation", "animation"),
        (Video, None, "https://x.example/a.mp4", "sendVideo", "video"),
        (Audio, None, "https://x.example/a.mp3", "sendAudio", "audio"),
        (Audio, Some("audio/ogg; codecs=opus"), "https://x.example/a.ogg", "sendVoice", "voice"),
        (Document, None, "https://x.example/a.PDF?x=1", "sendDocument", "document"),
        (Sticker, None, "https://x.example/a.webp", "sendSticker", "sticker"),
    ] {
        let mime_type = mime_type.map(str::to_owned);
        let mut wanted = json!({"chat_id": -1005, "caption": "Look"});
        if message_type == Sticker {
            wanted.as_object_mut().unwrap().remove("caption");
        }
        wanted[parameter] = url.into();
        let by_url = Content { media_url: some(url), mime_type: mime_type.clone(), ..Content::default() };
        assert_eq!(sent(message_type, "Look", by_url), [(method, wanted.clone())]);
        wanted[parameter] = "AgAD".into();
        let by_id = Content { media_id: some("AgAD"), mime_type, ..Content::default() };
        assert_eq!(sent(message_type, "Look", by_id), [(method, wanted)]);
    }
    assert_eq!(why_not(Image, Content::default()).code, FailureCode::ContentRejected);
}

#[test]
fn a_media_id_is_a_file_id() {
    let with = |id: &str| Content { media_id: some(id), ..Content::default() };
    let id = "AgACAgIAAxkBAAIB-_9";
    assert_eq!(sent(MessageType::Image, "", with(id)), [("sendPhoto", json!({"chat_id": -1005, "photo": id}))]);
    for other in ["file:///etc/passwd", "https://x.example/a.png", "attach://photo", "/etc/passwd", "ä"] {
        let failure = why_not(MessageType::Document, with(other));
        assert_eq!(failure.code, FailureCode::ContentRejected, "{other}");
        assert!(failure.message.contains("mediaId"), "{failure:?}");
    }
}

#[test]
fn documents_that_telegram_does_not_fetch_are_uploaded() {
    for (url, filename, name) in [
        ("https://x.example/d/bill.docx?k=1", None, "bill.docx"),
        ("https://x.example/a.pdf", Some("bill.pdf"), "bill.pdf"),
        ("https://x.example/", None, "document"),
    ] {
        let content = Content { media_url: some(url), filename: filename.map(str::to_owned), ..Content::default() };
        let message = told(MessageType::Document, "", content);
        let call = calls(&request(&message)).unwrap().remove(0);
        assert_eq!(call.parameters, *json!({"chat_id": -1005}).as_object().unwrap());
        let file = call.file.unwrap();
        assert_eq!((file.parameter, &*file.name, file.source), ("document", name, Source::Url(url)));
    }
}

#[test]
fn attachments_are_uploaded() {
    let file = ResolvedAttachment { filename: "a.png".into(), content_type: "image/png".into(), content_id: None, bytes: vec![1, 2] };
    let files = [file.clone(), file];
    let with = |message_type, files| {
        let message = told(message_type, "Look", Content { media_url: some("https://x.example/a.png"), ..Content::default() });
        calls(&SendRequest { attachments: files, ..request(&message) }).map(|mut calls| {
            let call = calls.remove(0);
            let file = call.file.unwrap();
            (
                call.method,
                Value::from(call.parameters),
                file.parameter,
                file.name.into_owned(),
                file.source == Source::Bytes(vec![1, 2].into()),
            )
        })
    };
    let caption = json!({"chat_id": -1005, "caption": "Look"});
    assert_eq!(with(MessageType::Image, &files[..1]), Ok(("sendPhoto", caption, "photo", "a.png".to_owned(), true)));
    assert_eq!(with(MessageType::Image, &files).unwrap_err().code, FailureCode::ContentRejected);
    assert_eq!(with(MessageType::Text, &files[..1]).unwrap_err().code, FailureCode::ContentRejected);
}

#[test]
fn places() {
    let place = Content { latitude: Some(40.5), longitude: Some(-3.25), ..Content::default() };
    for (name, address, method, title_and_address) in [
        (None, None, "sendLocation", None),
        (Some("Sol"), Some("Madrid"), "sendVenue", Some(("Sol", "Madrid"))),
        (Some("Sol"), None, "sendVenue", Some(("Sol", "40.5, -3.25"))),
        (None, Some("Madrid"), "sendVenue", Some(("Madrid", "Madrid"))),
        (Some(""), Some(""), "sendLocation", None),
    ] {
        let [location_name, location_address] = [name, address].map(|t: Option<&str>| t.map(str::to_owned));
        let mut wanted = json!({"chat_id": -1005, "latitude": 40.5, "longitude": -3.25});
        if let Some((title, address)) = title_and_address {
            (wanted["title"], wanted["address"]) = (title.into(), address.into());
        }
        let content = Content { location_name, location_address, ..place.clone() };
        assert_eq!(sent(MessageType::Location, "", content), [(method, wanted)]);
    }
}

#[test]
fn a_contact_for_each_phone() {
    let cards =
        vec![Card { name: "Ada".into(), phones: vec!["+1".into(), "+2".into()] }, Card { name: "Bea".into(), phones: vec!["+3".into()] }];
    let contact = |name, phone| ("sendContact", json!({"chat_id": -1005, "phone_number": phone, "first_name": name}));
    assert_eq!(
        sent(MessageType::Contact, "", Content { contacts: Some(cards), ..Content::default() }),
        [contact("Ada", "+1"), contact("Ada", "+2"), contact("Bea", "+3")]
    );
}

#[test]
fn choices_are_keyboards() {
    let content = Content { buttons: Some(vec![button("y", "Yes"), button("n", "No")]), footer_text: some("Bye"), ..Content::default() };
    let keyboard = json!([[{"text": "Yes", "callback_data": "y"}], [{"text": "No", "callback_data": "n"}]]);
    assert_eq!(
        sent(MessageType::Buttons, "Well?", content),
        [("sendMessage", json!({"chat_id": -1005, "text": "Well?\n\nBye", "reply_markup": {"inline_keyboard": keyboard}}))]
    );

    let sections = vec![
        Section { title: "Morning".into(), rows: vec![row("10", "Ten", Some("with tea")), row("11", "Eleven", None)] },
        Section { title: String::new(), rows: vec![row("16", "Four", None)] },
    ];
    let content = Content { list_button: some("Choose"), sections: Some(sections), ..Content::default() };
    let keyboard = json!([
        [{"text": "Ten", "callback_data": "10"}], [{"text": "Eleven", "callback_data": "11"}], [{"text": "Four", "callback_data": "16"}]
    ]);
    let text = "When?\n\nMorning\nTen: with tea";
    assert_eq!(
        sent(MessageType::List, "When?", content),
        [("sendMessage", json!({"chat_id": -1005, "text": text, "reply_markup": {"inline_keyboard": keyboard}}))]
    );
}

#[test]
fn ids_that_are_too_long_are_replaced() {
    // Bytes count, not characters.
    for id in ["x".repeat(64), "é".repeat(32)] {
        assert_eq!(callback_data(3, &id), id);
    }
    // printf 'x%.0s' {1..65} | sha256sum
    assert_eq!(callback_data(3, &"x".repeat(65)), "~3~9537c5fdf120482f");
    let (one, other) = ("é".repeat(33), "é".repeat(34));
    assert_ne!(callback_data(0, &one), callback_data(0, &other));
    assert!(callback_data(9, &"é".repeat(256)).len() <= CALLBACK_DATA);
}

#[test]
fn calls_to_action() {
    let plain = Content { cta_display_text: some("Pay"), cta_url: some("https://x.example/pay"), ..Content::default() };
    let markup = json!({"inline_keyboard": [[{"text": "Pay", "url": "https://x.example/pay"}]]});
    let content =
        Content { cta_header_type: Some(CtaHeaderType::Text), cta_header_text: some("Bill"), footer_text: some("Bye"), ..plain.clone() };
    assert_eq!(
        sent(MessageType::CtaUrl, "Hello", content),
        [("sendMessage", json!({"chat_id": -1005, "text": "Bill\n\nHello\n\nBye", "reply_markup": markup.clone()}))]
    );
    let url = "https://x.example/a.pdf";
    for (kind, method, parameter) in [
        (CtaHeaderType::Image, "sendPhoto", "photo"),
        (CtaHeaderType::Video, "sendVideo", "video"),
        (CtaHeaderType::Document, "sendDocument", "document"),
    ] {
        let content = Content { cta_header_type: Some(kind), cta_header_media_url: some(url), ..plain.clone() };
        let mut wanted = json!({"chat_id": -1005, "caption": "Hello", "reply_markup": markup.clone()});
        wanted[parameter] = url.into();
        assert_eq!(sent(MessageType::CtaUrl, "Hello", content.clone()), [(method, wanted)]);
        // What no caption holds is sent as a text with a link.
        let long = "x".repeat(1_025);
        let wanted = json!({"chat_id": -1005, "text": format!("{url}\n\n{long}"), "reply_markup": markup.clone()});
        assert_eq!(sent(MessageType::CtaUrl, &long, content), [("sendMessage", wanted)]);
    }
}

#[test]
fn reactions() {
    let content = |target: &str, emoji: &str| Content { react_to_message_id: some(target), emoji: some(emoji), ..Content::default() };
    let wanted = |reaction| [("setMessageReaction", json!({"chat_id": -1005, "message_id": 42, "reaction": reaction}))];
    assert_eq!(sent(MessageType::Reaction, "", content("-1005:42", "👍")), wanted(json!([{"type": "emoji", "emoji": "👍"}])));
    assert_eq!(sent(MessageType::Reaction, "", content("-1005:42", "")), wanted(json!([])));
    for bad in ["", "42", "-1006:42", "-1005:", "-1005:x", "callback:7", "msg_01kahy0000e0000000000000ab"] {
        assert_eq!(why_not(MessageType::Reaction, content(bad, "👍")).code, FailureCode::ContentRejected, "{bad:?}");
    }
}

#[test]
fn a_recipient_is_a_number() {
    for bad in ["", "@channel", "5 ", "99999999999999999999"] {
        let mut message = told(MessageType::Text, "Hi", Content::default());
        message.to = bad.into();
        let code = calls(&request(&message)).unwrap_err().code;
        assert_eq!(code, FailureCode::InvalidRecipient, "{bad:?}");
    }
}
