use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::{Channel, ConnectionId, TenantId};
use serde_json::{Value, json};

use super::*;

const NOW: Timestamp = Timestamp::from_millis(1_795_255_200_000);
const BOT: i64 = 123_456_789;

fn bot() -> Bot {
    let connection = ConnectionId::from_uuid(uuid_v7(NOW, [7; 10]));
    Bot { origin: Origin { tenant: TenantId(3), connection, channel: Channel::Telegram }, id: BOT }
}

fn received(update: Value) -> Received {
    bot().read(serde_json::from_value(update).unwrap(), NOW)
}

fn inbound(update: Value) -> Inbound {
    match received(update.clone()).event {
        Some(ProviderEvent::Inbound(inbound)) => inbound,
        other => panic!("{other:?} of {update}"),
    }
}

/// A message of Ada's, with these fields more.
fn message(more: Value) -> Value {
    let mut message = json!({
        "message_id": 42,
        "date": 1_795_255_100,
        "from": {"id": 5, "is_bot": false, "first_name": "Ada", "last_name": "Lovelace", "username": "ada", "language_code": "en"},
        "chat": {"id": 5, "type": "private", "first_name": "Ada", "last_name": "Lovelace", "username": "ada"},
    });
    message.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    json!({"update_id": 900, "message": message})
}

#[test]
fn a_text_as_a_whole() {
    let connection = bot().origin.connection;
    let text = "Hello *you*".to_owned();
    let mut wanted = Inbound::text((TenantId(3), connection, Channel::Telegram), "5:42".into(), "5".into(), text, NOW);
    wanted.at = Timestamp::from_millis(1_795_255_100_000);
    wanted.profile_name = Some("Ada Lovelace".into());
    let entities = json!([{"type": "bold", "offset": 6, "length": 5}]);
    let update = message(json!({"text": "Hello *you*", "entities": entities, "a_field_of_next_year": {"x": 1}}));
    assert_eq!(received(update), Received { event: Some(ProviderEvent::Inbound(wanted)), pressed: None });
}

#[test]
fn media() {
    use MessageType::{Audio, Document, Image, Sticker, Video};
    let size = |id: &str, width: u32| json!({"file_id": id, "file_unique_id": "u", "width": width, "height": 10, "file_size": 5});
    let file = |more: Value| {
        let mut file = json!({"file_id": "F", "file_unique_id": "u", "file_size": 5, "duration": 3});
        file.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        file
    };
    let sticker = |animated: bool, video: bool| json!({"sticker": file(json!({"is_animated": animated, "is_video": video}))});
    let named = file(json!({"file_name": "bill.pdf", "mime_type": "application/pdf"}));
    for (update, message_type, reference, content_type, filename) in [
        (json!({"photo": [size("S", 90), size("L", 1280), size("M", 320)]}), Image, "L", "image/jpeg", None),
        (json!({"video": file(json!({"mime_type": "video/quicktime"}))}), Video, "F", "video/quicktime", None),
        (json!({"video_note": file(json!({}))}), Video, "F", "video/mp4", None),
        (json!({"animation": file(json!({})), "document": named}), Video, "F", "video/mp4", None),
        (json!({"audio": file(json!({"mime_type": "audio/mp4", "file_name": "a.m4a"}))}), Audio, "F", "audio/mp4", Some("a.m4a")),
        (json!({"voice": file(json!({}))}), Audio, "F", "audio/ogg", None),
        (json!({"document": named}), Document, "F", "application/pdf", Some("bill.pdf")),
        (json!({"document": file(json!({}))}), Document, "F", "application/octet-stream", None),
        (sticker(false, false), Sticker, "F", "image/webp", None),
        (sticker(true, false), Sticker, "F", "application/x-tgsticker", None),
        (sticker(false, true), Sticker, "F", "video/webm", None),
    ] {
        let mut with_caption = update.clone();
        with_caption["caption"] = "Look".into();
        let inbound = inbound(message(with_caption));
        assert_eq!((inbound.message_type, inbound.text.as_str(), inbound.content), (message_type, "Look", None), "{update}");
        let (content_type, filename) = (content_type.to_owned(), filename.map(str::to_owned));
        let wanted = Media { reference: reference.to_owned(), filename, content_type, content_id: None, bytes: None };
        assert_eq!(inbound.media, [wanted], "{update}");
    }
}

#[test]
fn places_and_contacts() {
    let point = json!({"latitude": 40.5, "longitude": -3.25, "horizontal_accuracy": 5.0});
    let content = Content { latitude: Some(40.5), longitude: Some(-3.25), ..Content::default() };
    let found = inbound(message(json!({"location": point})));
    assert_eq!((found.message_type, found.content.as_deref(), found.text.as_str()), (MessageType::Location, Some(&content), ""));

    let venue = json!({"location": point, "title": "Sol", "address": "Madrid"});
    let found = inbound(message(json!({"venue": venue, "location": point})));
    let content = Content { location_name: Some("Sol".into()), location_address: Some("Madrid".into()), ..content };
    assert_eq!((found.message_type, found.content.as_deref()), (MessageType::Location, Some(&content)));

    let found = inbound(message(json!({"contact": {"phone_number": "34600111222", "first_name": "Bea", "user_id": 6}})));
    let cards = vec![Card { name: "Bea".into(), phones: vec!["34600111222".into()] }];
    let content = Content { contacts: Some(cards), ..Content::default() };
    assert_eq!((found.message_type, found.content.as_deref()), (MessageType::Contact, Some(&content)));
}

#[test]
fn an_answer_names_our_message() {
    let quoted =
        |from: i64| json!({"text": "Yes", "reply_to_message": {"message_id": 41, "date": 1, "from": {"id": from}, "chat": {"id": 5}}});
    assert_eq!(inbound(message(quoted(BOT))).replies_to.as_deref(), Some("5:41"));
    assert_eq!(inbound(message(quoted(5))).replies_to, None, "their own message");
}

#[test]
fn a_command_is_read_without_the_name_of_the_bot() {
    for (text, read) in
        [("/stop@AcmeBot", "/stop"), ("/start@AcmeBot a@b", "/start a@b"), ("/stop", "/stop"), ("a@b", "a@b"), ("/ a@b", "/ a@b")]
    {
        assert_eq!(inbound(message(json!({"text": text}))).text, read);
    }
}

#[test]
fn a_group_is_its_own_sender() {
    let chat = json!({"id": -1_001_234_567_890_i64, "type": "supergroup", "title": "Team"});
    let inbound = inbound(message(json!({"text": "Hi", "chat": chat})));
    assert_eq!((inbound.from.as_str(), inbound.profile_name.as_deref()), ("-1001234567890", Some("Team")));
    assert_eq!(inbound.provider_message_id, "-1001234567890:42");
}

fn pressed(data: Value, message: Value) -> Value {
    json!({"update_id": 901, "callback_query": {
        "id": "7701", "from": {"id": 5, "is_bot": false, "first_name": "Ada"}, "chat_instance": "1", "message": message, "data": data,
    }})
}

#[test]
fn a_pressed_button_tells_its_title() {
    let keyboard = json!({"inline_keyboard": [[{"text": "Pay", "url": "https://x.example"}], [{"text": "Yes", "callback_data": "~0~ab"}]]});
    let ours = json!({"message_id": 41, "date": 1, "from": {"id": BOT}, "chat": {"id": 5, "first_name": "Ada"}, "text": "?", "reply_markup": keyboard});
    let heard = received(pressed("~0~ab".into(), ours.clone()));
    assert_eq!(heard.pressed.as_deref(), Some("7701"));
    let Some(ProviderEvent::Inbound(inbound)) = heard.event else { panic!("{heard:?}") };
    let chosen = Content { buttons: Some(vec![Button { id: "~0~ab".into(), title: "Yes".into() }]), ..Content::default() };
    assert_eq!((inbound.message_type, inbound.text.as_str(), inbound.content.as_deref()), (MessageType::Text, "Yes", Some(&chosen)));
    assert_eq!((inbound.provider_message_id.as_str(), inbound.replies_to.as_deref()), ("callback:7701", Some("5:41")));
    assert_eq!((inbound.from.as_str(), inbound.at), ("5", NOW));

    // Old messages come without their content (InaccessibleMessage), and without a message at all: the id stands for the title.
    for (message, replies_to) in [(json!({"message_id": 41, "date": 0, "chat": {"id": 5}}), Some("5:41")), (Value::Null, None)] {
        let Some(ProviderEvent::Inbound(inbound)) = received(pressed("yes".into(), message)).event else { panic!() };
        assert_eq!((inbound.from.as_str(), inbound.text.as_str(), inbound.replies_to.as_deref()), ("5", "yes", replies_to));
        assert_eq!(inbound.profile_name.as_deref(), Some("Ada"));
    }
    // A game has no data, but its button turns too.
    assert_eq!(received(pressed(Value::Null, ours)), Received { event: None, pressed: Some("7701".into()) });
}

#[test]
fn reactions() {
    let emoji = |e: &str| json!({"type": "emoji", "emoji": e});
    let custom = || json!({"type": "custom_emoji", "custom_emoji_id": "9"});
    for (old, new, told) in [
        (vec![], vec![emoji("👍")], Some("👍")),
        (vec![emoji("👍")], vec![emoji("👍"), emoji("❤")], Some("❤")),
        (vec![emoji("👍")], vec![], Some("")),
        (vec![], vec![custom()], None),
        (vec![emoji("👍"), emoji("❤")], vec![emoji("👍")], None),
    ] {
        let case = format!("{old:?} {new:?}");
        let update = json!({"update_id": 902, "message_reaction": {
            "chat": {"id": 5, "type": "private", "first_name": "Ada"}, "message_id": 41, "date": 1_795_255_100,
            "user": {"id": 5, "is_bot": false, "first_name": "Ada"}, "old_reaction": old, "new_reaction": new,
        }});
        let Some(told) = told else {
            assert_eq!(received(update), Received::default(), "{case}");
            continue;
        };
        let inbound = inbound(update);
        let content = Content { emoji: Some(told.into()), react_to_message_id: Some("5:41".into()), ..Content::default() };
        assert_eq!((inbound.message_type, inbound.content.as_deref()), (MessageType::Reaction, Some(&content)), "{case}");
        assert_eq!((inbound.provider_message_id.as_str(), inbound.from.as_str()), ("update:902", "5"), "{case}");
    }
}

#[test]
fn what_tells_nothing() {
    let edited = json!({"update_id": 1, "edited_message": {"message_id": 42, "date": 1, "chat": {"id": 5}, "text": "changed"}});
    let joined = message(json!({"new_chat_members": [{"id": 6, "is_bot": false, "first_name": "Bea"}]}));
    let dice = message(json!({"dice": {"emoji": "🎲", "value": 3}}));
    let unblocked = json!({"update_id": 1, "my_chat_member": {"chat": {"id": 5}, "date": 1, "new_chat_member": {"status": "member"}}});
    for update in [edited, joined, dice, unblocked, json!({"update_id": 1}), json!({"update_id": 1, "next_years_kind": {}})] {
        assert_eq!(received(update.clone()), Received::default(), "{update}");
    }
}

#[test]
fn who_blocks_the_bot_opts_out() {
    let blocked = json!({"update_id": 1, "my_chat_member": {"chat": {"id": 5}, "date": 7, "new_chat_member": {"status": "kicked"}}});
    let Some(ProviderEvent::OptedOut(opted)) = received(blocked).event else { panic!("no opt-out") };
    let at = Some(Timestamp::from_millis(7_000));
    assert_eq!((opted.channel, opted.from.as_str(), opted.at), (nuncio_domain::Channel::Telegram, "5", at));
}
