//! Messages to the bot: asked for, posted, and their media.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use http::HeaderMap;
use nuncio_channel::contract::arbitrary;
use nuncio_channel::{Adapter, CallError, CallbackReply, CallbackRequest, ParsedCallback, ProviderEvent, stop};
use nuncio_domain::message::FailureCode;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::{Value, json};

use crate::support::{Act, BotAnswer as _, BotCall as _, NOW, Peer, Recorder, Seen, TOKEN, account, open};

fn text(update: i64, text: &str) -> Value {
    let chat = json!({"id": 5, "type": "private", "first_name": "Ada"});
    json!({"update_id": update, "message": {"message_id": update + 1_000, "date": 1_795_255_100, "chat": chat, "text": text}})
}

fn pressed(update: i64) -> Value {
    let from = json!({"id": 5, "is_bot": false, "first_name": "Ada"});
    json!({"update_id": update, "callback_query": {"id": "77", "from": from, "chat_instance": "1", "data": "yes"}})
}

/// A Bot API that tells these updates from the offset on, as Telegram does: those before it are forgotten.
async fn telling(updates: Vec<Value>) -> Peer {
    Peer::start(move |seen| {
        if seen.method() != "getUpdates" {
            return Act::result(json!(true));
        }
        let offset = seen.json()["offset"].as_i64().unwrap();
        let left: Vec<_> = updates.iter().filter(|u| u["update_id"].as_i64().is_none_or(|id| id >= offset)).collect();
        // With nothing to tell it is silent: the next question would be answered only after 25 seconds.
        if left.is_empty() { Act::Silence } else { Act::result(json!(left)) }
    })
    .await
}

/// Runs the session while `test` does, then asks it to end, and waits for that.
async fn running<T>(adapter: &Arc<dyn Adapter>, test: impl Future<Output = T>) -> T {
    let (ask, asked) = stop();
    let session = tokio::spawn({
        let adapter = Arc::clone(adapter);
        async move { adapter.run(asked).await }
    });
    let result = test.await;
    ask.send(true).unwrap();
    session.await.unwrap();
    assert_eq!(adapter.trouble(), None, "a session that ended has no trouble");
    result
}

#[tokio::test(start_paused = true)]
async fn what_is_told_is_written_and_then_confirmed() {
    let peer = telling(vec![text(10, "one"), pressed(11), text(12, "two")]).await;
    let events = Arc::new(Recorder::default());
    let adapter = open(&peer.base(), json!({}), &events);
    running(&adapter, peer.wait_for("getUpdates", 2)).await;
    let heard: Vec<_> = events.wait_for(3).await.into_iter().map(|i| (i.provider_message_id, i.text)).collect();
    let wanted = [("5:1010", "one"), ("callback:77", "yes"), ("5:1012", "two")].map(|(id, text)| (id.to_owned(), text.to_owned()));
    assert_eq!(heard, wanted);
    assert_eq!(peer.methods(), ["deleteWebhook", "getUpdates", "answerCallbackQuery", "getUpdates"]);
    let calls = peer.seen();
    assert_eq!(calls[2].json(), json!({"callback_query_id": "77"}));
    let question = |offset| json!({"offset": offset, "timeout": 25, "allowed_updates": ["message", "callback_query", "message_reaction", "my_chat_member"]});
    assert_eq!((calls[1].json(), calls[3].json()), (question(0), question(13)));
}

#[tokio::test(start_paused = true)]
async fn ids_that_start_again_at_a_lower_number_are_followed() {
    let asked = AtomicUsize::new(0);
    let peer = Peer::start(move |seen| {
        if seen.method() != "getUpdates" {
            return Act::result(json!(true));
        }
        match asked.fetch_add(1, Ordering::Relaxed) {
            0 => Act::result(json!([text(900, "one")])),
            1 => Act::result(json!([])),
            2 => Act::result(json!([text(5, "two")])),
            _ => Act::Silence,
        }
    })
    .await;
    let events = Arc::new(Recorder::default());
    let adapter = open(&peer.base(), json!({}), &events);
    let calls = running(&adapter, peer.wait_for("getUpdates", 4)).await;
    let offsets: Vec<_> = calls.iter().map(|call| call.json()["offset"].clone()).collect();
    assert_eq!(offsets, [0, 901, 0, 6]);
    let texts: Vec<_> = events.wait_for(2).await.into_iter().map(|i| i.text).collect();
    assert_eq!(texts, ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn what_could_not_be_written_is_asked_for_again() {
    let peer = telling(vec![text(10, "one"), text(11, "two")]).await;
    let events = Arc::new(Recorder::default());
    *events.refusals.lock() = 2;
    let adapter = open(&peer.base(), json!({}), &events);
    running(&adapter, async {
        peer.wait_for("getUpdates", 2).await;
        assert!(adapter.trouble().unwrap().contains("could not be stored"));
        peer.wait_for("getUpdates", 4).await;
    })
    .await;
    let offsets: Vec<_> = peer.wait_for("getUpdates", 4).await.iter().map(|call| call.json()["offset"].clone()).collect();
    assert_eq!(offsets, [0, 0, 0, 12]);
    let texts: Vec<_> = events.wait_for(2).await.into_iter().map(|i| i.text).collect();
    assert_eq!(texts, ["one", "two"]);
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_read_does_not_come_for_ever() {
    let unreadable = json!({"update_id": 10, "message": {"message_id": "ten"}});
    let unknown = json!({"update_id": 11, "kind_of_next_year": {}});
    let peer = telling(vec![unreadable, unknown, text(12, "one")]).await;
    let events = Arc::new(Recorder::default());
    let adapter = open(&peer.base(), json!({}), &events);
    let calls = running(&adapter, peer.wait_for("getUpdates", 2)).await;
    assert_eq!(calls[1].json()["offset"], 13);
    assert_eq!(events.wait_for(1).await[0].text, "one");
}

#[tokio::test(start_paused = true)]
async fn another_program_that_receives_is_named_and_outlasted() {
    let mut asked = 0;
    let peer = Peer::start(move |seen| match seen.method() {
        "getUpdates" => {
            asked += 1;
            match asked {
                1 => Act::error(409, "Conflict: terminated by other getUpdates request", json!({})),
                2 => Act::error(429, "Too Many Requests: retry after 40", json!({"retry_after": 40})),
                3 => Act::HangUp,
                4 => Act::result(json!([text(10, "one")])),
                _ => Act::Silence,
            }
        }
        _ => Act::result(json!(true)),
    })
    .await;
    let events = Arc::new(Recorder::default());
    let adapter = open(&peer.base(), json!({}), &events);
    let began = tokio::time::Instant::now();
    running(&adapter, async {
        peer.wait_for("deleteWebhook", 2).await;
        assert!(adapter.trouble().unwrap().contains("another program receives"), "{:?}", adapter.trouble());
        peer.wait_for("getUpdates", 5).await;
        assert_eq!(adapter.trouble(), None);
    })
    .await;
    // 1 s, the 40 s that were asked for, 4 s.
    assert_eq!(began.elapsed().as_secs(), 45);
    assert_eq!(events.wait_for(1).await[0].text, "one");
}

#[tokio::test(start_paused = true)]
async fn a_server_that_does_not_wait_is_not_hurried() {
    let peer = Peer::start(|seen| if seen.method() == "getUpdates" { Act::result(json!([])) } else { Act::result(json!(true)) }).await;
    let adapter = open(&peer.base(), json!({}), &Arc::default());
    let began = tokio::time::Instant::now();
    running(&adapter, peer.wait_for("getUpdates", 4)).await;
    assert_eq!(began.elapsed().as_secs(), 3);
}

#[tokio::test(start_paused = true)]
async fn nor_is_one_that_has_nothing_new() {
    for update in [json!({"x": 1}), text(10, "one")] {
        let peer = telling_always(update).await;
        let adapter = open(&peer.base(), json!({}), &Arc::default());
        let began = tokio::time::Instant::now();
        running(&adapter, peer.wait_for("getUpdates", 5)).await;
        assert!((3..=4).contains(&began.elapsed().as_secs()), "{:?}", began.elapsed());
    }
}

async fn telling_always(update: Value) -> Peer {
    Peer::start(move |seen| Act::result(if seen.method() == "getUpdates" { json!([update]) } else { json!(true) })).await
}

#[tokio::test(start_paused = true)]
async fn the_webhook_is_kept() {
    let url = format!("https://nuncio.example/providers/telegram/{}", account(json!({})).id);
    let failing = json!({"url": url, "pending_update_count": 2, "last_error_date": 1_795_255_190, "last_error_message": "Timeout"});
    let mut looks = 0;
    let peer = {
        let (url, failing) = (url.clone(), failing.clone());
        Peer::start(move |seen| match seen.method() {
            "getWebhookInfo" => {
                looks += 1;
                match looks {
                    1 => Act::error(502, "Bad Gateway", json!({})),
                    2 => Act::result(json!({"url": url, "pending_update_count": 0})),
                    3 => Act::result(json!({"url": "https://other.example", "pending_update_count": 0})),
                    4 => Act::result(failing.clone()),
                    _ => Act::Silence,
                }
            }
            _ => Act::result(json!(true)),
        })
        .await
    };
    let adapter = open(&peer.base(), json!({"receive": "webhook"}), &Arc::default());
    let began = tokio::time::Instant::now();
    running(&adapter, async {
        peer.wait_for("getWebhookInfo", 5).await;
        assert_eq!(adapter.trouble().as_deref(), Some("Telegram could not deliver to the webhook: Timeout (2 waiting)"));
    })
    .await;
    assert_eq!(began.elapsed().as_secs(), 1 + 3 * 300);
    let [info, set] = ["getWebhookInfo", "setWebhook"];
    assert_eq!(peer.methods(), [info, info, set, info, set, info, info]);
    let asked = peer.wait_for(set, 2).await[0].json();
    assert_eq!(asked["url"], url);
    assert_eq!(asked["allowed_updates"], json!(["message", "callback_query", "message_reaction", "my_chat_member"]));
    assert_eq!(asked["secret_token"].as_str().unwrap().len(), 64);
}

/// A bot that Telegram calls, and the secret that it gave Telegram.
async fn called() -> (Arc<dyn Adapter>, String) {
    let peer = Peer::start(|seen| match seen.method() {
        "getWebhookInfo" => Act::result(json!({"url": ""})),
        _ => Act::result(json!(true)),
    })
    .await;
    let adapter = open(&peer.base(), json!({"receive": "webhook"}), &Arc::default());
    let asked = running(&adapter, peer.wait_for("setWebhook", 1)).await[0].json();
    (adapter, asked["secret_token"].as_str().unwrap().to_owned())
}

fn post(adapter: &Arc<dyn Adapter>, secret: Option<&str>, body: &[u8]) -> Result<ParsedCallback, CallError> {
    let mut headers = HeaderMap::new();
    if let Some(secret) = secret {
        headers.insert("X-Telegram-Bot-Api-Secret-Token", secret.parse().unwrap());
    }
    adapter.callback(&CallbackRequest {
        method: "POST",
        url: "https://nuncio.example/",
        rest: "",
        query: "",
        headers: &headers,
        body,
        now: NOW,
    })
}

#[tokio::test]
async fn what_telegram_posts_is_read() {
    let (adapter, secret) = called().await;
    let told = post(&adapter, Some(&secret), text(10, "one").to_string().as_bytes()).unwrap();
    assert_eq!(told.reply, CallbackReply::default());
    let [ProviderEvent::Inbound(inbound)] = told.events.as_slice() else { panic!("{told:?}") };
    assert_eq!((inbound.provider_message_id.as_str(), inbound.text.as_str()), ("5:1010", "one"));
    assert_eq!(post(&adapter, Some(&secret), text(10, "one").to_string().as_bytes()), Ok(told), "told again, it is the same");

    let told = post(&adapter, Some(&secret), pressed(11).to_string().as_bytes()).unwrap();
    let answer: Value = serde_json::from_str(&told.reply.body).unwrap();
    assert_eq!((told.events.len(), told.reply.content_type), (1, "application/json"));
    assert_eq!(answer, json!({"method": "answerCallbackQuery", "callback_query_id": "77"}));

    assert_eq!(post(&adapter, Some(&secret), br#"{"update_id": 12, "kind_of_next_year": {"x": 1}}"#), Ok(ParsedCallback::default()));
}

#[tokio::test]
async fn what_others_post_and_what_is_no_json_is_refused() {
    let (adapter, secret) = called().await;
    for wrong in [None, Some(""), Some("x"), Some(TOKEN), Some(&secret[1..]), Some(&secret.to_uppercase())] {
        let refused = post(&adapter, wrong, b"nonsense").unwrap_err();
        let CallError::Unproved(text) = refused else { panic!("{wrong:?}: {refused:?}") };
        assert!(!text.contains(&secret), "{text}");
    }
    // Telegram would send it again and again.
    for unreadable in ["[]", "{}", r#"{"update_id": 1, "message": {"text": 5, "chat": {"id": "of-Ada"}}}"#] {
        assert_eq!(post(&adapter, Some(&secret), unreadable.as_bytes()), Ok(ParsedCallback::default()), "{unreadable}");
    }
    for body in ["", "nonsense", r#"{"update_id": 1, "of-Ada"#] {
        let refused = post(&adapter, Some(&secret), body.as_bytes()).unwrap_err();
        let CallError::Malformed(text) = refused else { panic!("{body}: {refused:?}") };
        assert!(text.contains("not an update") && !text.contains("of-Ada"), "{text}");
    }
}

#[tokio::test]
async fn who_asks_is_not_called() {
    for receive in ["polling", "off"] {
        let adapter = open("http://127.0.0.1:9", json!({"receive": receive}), &Arc::default());
        assert_eq!(post(&adapter, None, b"{}"), Err(CallError::NotCalled), "{receive}");
    }
}

/// The file that a call asks for; files themselves are asked for without a body.
fn file_id(seen: &Seen) -> String {
    let body: Value = serde_json::from_slice(&seen.body).unwrap_or_default();
    body["file_id"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test]
async fn media_are_fetched_by_their_reference() {
    let peer = Peer::start(|seen| match (seen.method(), file_id(seen).as_str()) {
        ("getFile", "F") => Act::result(json!({"file_id": "F", "file_unique_id": "u", "file_size": 4, "file_path": "photos/file 1.jpg"})),
        ("getFile", "long") => Act::result(json!({"file_id": "F", "file_unique_id": "u", "file_path": "photos/long.jpg"})),
        ("getFile", "huge") => Act::result(json!({"file_id": "F", "file_unique_id": "u", "file_size": 99, "file_path": "x"})),
        ("getFile", "sly") => Act::result(json!({"file_id": "F", "file_unique_id": "u", "file_path": "../../other?x=1"})),
        ("getFile", _) => Act::error(400, "Bad Request: file is too big", json!({})),
        ("long.jpg", _) => Act::text(200, &"y".repeat(11)),
        _ => Act::text(200, "jpeg"),
    })
    .await;
    let adapter = open(&peer.base(), json!({}), &Arc::default());
    let file = adapter.fetch_media("F", 10).await.unwrap();
    assert_eq!((file.filename.as_str(), file.bytes.as_slice()), ("file 1.jpg", b"jpeg".as_slice()));
    assert_eq!(peer.seen()[1].path, format!("/file/bot{TOKEN}/photos/file%201.jpg"));
    for (reference, says) in [("huge", "99 bytes"), ("long", "longer than 10"), ("none", "file is too big")] {
        let failure = adapter.fetch_media(reference, 10).await.unwrap_err();
        assert_eq!(failure.code, FailureCode::AttachmentUnavailable, "{reference}");
        assert!(failure.message.contains(says) && !failure.message.contains(TOKEN), "{}", failure.message);
    }
    adapter.fetch_media("sly", 10).await.unwrap();
    let path = peer.seen().pop().unwrap().path;
    assert!(path.starts_with(&format!("/file/bot{TOKEN}/")) && !path.contains('?'), "{path}");
}

/// What updates are made of.
const NAMES: &[&str] = &[
    "update_id", "message", "message_id", "date", "chat", "id", "type", "from", "first_name", "text", "caption", "photo", "file_id",
    "width", "document", "sticker", "location", "latitude", "longitude", "venue", "title", "address", "contact", "phone_number",
    "callback_query", "data", "reply_markup", "inline_keyboard", "callback_data", "message_reaction", "old_reaction", "new_reaction",
    "emoji", "my_chat_member", "new_chat_member", "status", "kicked", "reply_to_message",
];

#[tokio::test]
async fn nothing_breaks_the_reader() {
    let (adapter, secret) = called().await;
    let values = (arbitrary::json(NAMES), arbitrary::json(NAMES), any::<Vec<u8>>());
    TestRunner::new(arbitrary::config(512))
        .run(&values, |(value, more, octets)| {
            let chat = json!({"id": 77, "type": "private"});
            let mut message = json!({"message_id": 5, "date": 1, "chat": chat, "from": {"id": 77, "is_bot": false, "first_name": "Ada"}});
            for part in [&value, &more].into_iter().filter_map(Value::as_object) {
                let fields = part.iter().map(|(name, value)| (name.clone(), value.clone()));
                message
                    .as_object_mut()
                    .unwrap()
                    .extend(fields.filter(|(name, _)| !["chat", "date", "from", "message_id"].contains(&name.as_str())));
            }
            let press = json!({"id": "1", "data": "y", "from": {"id": 77, "is_bot": false, "first_name": "Ada"}, "message": value});
            let react = json!({"chat": chat, "message_id": 5, "date": 1, "old_reaction": [value], "new_reaction": [more]});
            for body in [
                value.to_string().into_bytes(),
                json!({"update_id": 1, "message": message}).to_string().into_bytes(),
                json!({"update_id": 1, "callback_query": press, "message_reaction": react}).to_string().into_bytes(),
                octets,
            ] {
                prop_assert!(!matches!(post(&adapter, Some(&secret), &body), Err(CallError::Unproved(_))));
            }
            Ok(())
        })
        .unwrap();
}
