//! The adapter against Bot APIs that others wrote: the models of aiogram, which judge every parameter and every update, and the npm
//! package telegram-test-api.

use std::net::Ipv4Addr;
use std::process::Command;
use std::sync::Arc;

use http::HeaderMap;
use nuncio_channel::contract::request;
use nuncio_channel::testing::{PeerProcess, node_peer, python_peer};
use nuncio_channel::{Adapter, CallbackRequest, ParsedCallback, ResolvedAttachment, SendRequest, stop};
use nuncio_domain::MessageType;
use nuncio_domain::message::{Button, Card, Content, CtaHeaderType, FailureCode, Row, Section};
use nuncio_net::{FetchLimits, GuardPolicy, Method, Network};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;

use crate::support::{NOW, Recorder, TOKEN, account, factory, message, object, open, services, short};

/// A peer in a process of its own, which ends with this.
struct Foreign {
    _process: PeerProcess,
    base: String,
}

impl Foreign {
    fn start(command: &mut Command) -> Self {
        let mut process = PeerProcess::start(command);
        Self { base: format!("http://127.0.0.1:{}", process.port()), _process: process }
    }

    fn emulator() -> Self {
        Self::start(python_peer("telegram_emulator.py").args(["--token", TOKEN]))
    }

    /// One of the calls for tests.
    async fn tell(&self, method: Method, path: &str, body: Value) -> Value {
        let client = Network::new(GuardPolicy::default()).unwrap().client(true).clone();
        let limits = FetchLimits { max_bytes: 1 << 24, timeout: std::time::Duration::from_secs(20) };
        let headers = HeaderMap::from_iter([(http::header::CONTENT_TYPE, "application/json".parse().unwrap())]);
        let url = format!("{}{path}", self.base);
        let answer = client.request(method, &url, headers, body.to_string().into_bytes(), limits).await.unwrap();
        assert_eq!(answer.status.as_u16(), 200, "{path}: {}", String::from_utf8_lossy(&answer.body));
        serde_json::from_slice(&answer.body).unwrap()
    }

    /// What the emulator took since the `known` first ones.
    async fn sent(&self, known: usize) -> Vec<Value> {
        self.tell(Method::GET, "/_sent", Value::Null).await.as_array().unwrap()[known..].to_vec()
    }

    async fn push(&self, update: Value) -> Value {
        self.tell(Method::POST, "/_push", update).await
    }
}

fn some(text: &str) -> Option<String> {
    Some(text.to_owned())
}

/// One message of each type and shape, with the methods that it takes.
fn messages() -> Vec<(MessageType, Content, &'static [&'static str])> {
    use MessageType::{Audio, Buttons, Contact, CtaUrl, Document, Image, List, Location, Reaction, Sticker, Template, Text, Video};
    let media = |name: &str, mime_type: Option<&str>| Content {
        media_url: Some(format!("https://files.example/{name}")),
        mime_type: mime_type.map(str::to_owned),
        ..Content::default()
    };
    let place = Content { latitude: Some(40.5), longitude: Some(-3.25), ..Content::default() };
    let long_id = "é".repeat(256);
    let buttons = vec![Button { id: long_id.clone(), title: "Yes".into() }, Button { id: "no".into(), title: "No".into() }];
    let row = |id: &str| Row { id: id.to_owned(), title: "Ten".into(), description: some("in the morning") };
    let sections = vec![Section { title: "Times".into(), rows: vec![row("r"), row(&long_id)] }];
    let cta = |header| Content {
        cta_display_text: some("Pay"),
        cta_url: some("https://x.example/pay"),
        cta_header_type: header,
        cta_header_text: some("Bill"),
        cta_header_media_url: some("https://files.example/a.pdf"),
        footer_text: some("Bye"),
        ..Content::default()
    };
    let react = |emoji: &str| Content { emoji: some(emoji), react_to_message_id: some("5:1"), ..Content::default() };
    let cards = vec![Card { name: "Ada".into(), phones: vec!["+34600111222".into(), "+34600111333".into()] }];
    vec![
        (Text, Content::default(), &["sendMessage"]),
        (Template, Content::default(), &["sendMessage"]),
        (Image, media("a.png", None), &["sendPhoto"]),
        (Image, media("a.gif", Some("image/gif")), &["sendAnimation"]),
        (Video, media("a.mp4", None), &["sendVideo"]),
        (Audio, media("a.mp3", None), &["sendAudio"]),
        (Audio, media("a.ogg", Some("audio/ogg")), &["sendVoice"]),
        (Document, media("a.pdf", None), &["sendDocument"]),
        (Sticker, Content { media_id: some("CAACAgIAAxkBAAE"), ..Content::default() }, &["sendSticker"]),
        (Location, place.clone(), &["sendLocation"]),
        (Location, Content { location_name: some("Sol"), ..place }, &["sendVenue"]),
        (Contact, Content { contacts: Some(cards), ..Content::default() }, &["sendContact", "sendContact"]),
        (Buttons, Content { buttons: Some(buttons), footer_text: some("Bye"), ..Content::default() }, &["sendMessage"]),
        (List, Content { list_button: some("Choose"), sections: Some(sections), ..Content::default() }, &["sendMessage"]),
        (CtaUrl, cta(None), &["sendMessage"]),
        (CtaUrl, cta(Some(CtaHeaderType::Image)), &["sendPhoto"]),
        (CtaUrl, cta(Some(CtaHeaderType::Video)), &["sendVideo"]),
        (CtaUrl, cta(Some(CtaHeaderType::Document)), &["sendDocument"]),
        (Reaction, react("👍"), &["setMessageReaction"]),
        (Reaction, react(""), &["setMessageReaction"]),
    ]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Telegram peers; ./test runs it"]
async fn heavy_every_type_is_taken_by_the_models_of_aiogram() {
    let emulator = Foreign::emulator();
    let adapter = open(&emulator.base, json!({"receive": "off"}), &Arc::default());
    assert_eq!(adapter.check().await.unwrap(), "logged in as @emulated_bot (bot 123456789); it receives no messages");

    let (mut taken, mut id) = (0, 0);
    for (message_type, content, methods) in messages() {
        let outcome = adapter.send(&request(&message("5", message_type, content.clone()))).await;
        let case = format!("{message_type} {content:?}: {outcome:?}");
        let (kind, _, refs) = short(&outcome);
        let wanted: Vec<_> =
            if message_type == MessageType::Reaction { Vec::new() } else { (1..=methods.len()).map(|n| format!("5:{}", id + n)).collect() };
        assert_eq!((kind, refs.iter().map(|&r| r.to_owned()).collect::<Vec<_>>()), ("accepted", wanted.clone()), "{case}");
        let sent = emulator.sent(taken).await;
        assert_eq!(sent.iter().map(|call| call["method"].as_str().unwrap()).collect::<Vec<_>>(), methods, "{case}");
        (taken, id) = (taken + sent.len(), id + wanted.len());
    }

    let bytes = [0, 255, 13, 10, 45, 45].repeat(50_000);
    for (message_type, method, parameter) in [
        (MessageType::Image, "sendPhoto", "photo"),
        (MessageType::Video, "sendVideo", "video"),
        (MessageType::Audio, "sendAudio", "audio"),
        (MessageType::Document, "sendDocument", "document"),
        (MessageType::Sticker, "sendSticker", "sticker"),
    ] {
        let file = ResolvedAttachment {
            filename: "fáctura 日本.bin".into(),
            content_type: "image/png".into(),
            content_id: None,
            bytes: bytes.clone(),
        };
        let message = message("5", message_type, Content::default());
        let outcome = adapter.send(&SendRequest { attachments: &[file], ..request(&message) }).await;
        assert_eq!(short(&outcome).0, "accepted", "{outcome:?}");
        let sent = emulator.sent(taken).await.remove(0);
        taken += 1;
        let sha256 = hex::encode(<sha2::Sha256 as sha2::Digest>::digest(&bytes));
        let wanted = json!({"filename": "fáctura 日本.bin", "contentType": "image/png", "size": bytes.len(), "sha256": sha256});
        assert_eq!((&sent["method"], &sent["files"][parameter]), (&json!(method), &wanted));
        let caption = if message_type == MessageType::Sticker { Value::Null } else { "Message 0 of the suite".into() };
        assert_eq!((&sent["parameters"]["chat_id"], &sent["parameters"]["caption"]), (&json!("5"), &caption));
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Telegram peers; ./test runs it"]
async fn heavy_refusals_and_lost_answers() {
    let emulator = Foreign::emulator();
    let adapter = open(&emulator.base, json!({}), &Arc::default());
    for (to, kind, code) in [
        ("400", "rejected", FailureCode::InvalidRecipient),
        ("403", "rejected", FailureCode::BlockedByRecipient),
        ("429", "deferred", FailureCode::RateLimited),
        ("500", "unknown", FailureCode::UnknownOutcome),
        ("504", "unknown", FailureCode::UnknownOutcome),
    ] {
        let outcome = adapter.send(&request(&message(to, MessageType::Text, Content::default()))).await;
        assert_eq!((short(&outcome).0, short(&outcome).1), (kind, Some(code)), "{to}: {outcome:?}");
    }
    assert_eq!(emulator.sent(0).await.len(), 1, "only the one whose answer was lost");

    let mut long = message("5", MessageType::Text, Content::default());
    long.request_mut().text = Some("x".repeat(4_097));
    assert_eq!(short(&adapter.send(&request(&long)).await).1, Some(FailureCode::ContentRejected));

    let mut other = account(json!({"base_url": emulator.base}));
    other.secrets = nuncio_domain::Redacted::new(object(json!({"token": "987654321:of-another-bot"})));
    let told = crate::support::try_open(&other, Arc::default()).unwrap().check().await.unwrap_err();
    assert!(told.contains("BotFather"), "{told}");
}

/// Updates of every kind that is heard, as aiogram's models have them, and one that is passed over.
fn updates() -> Vec<Value> {
    let ada = json!({"id": 5, "is_bot": false, "first_name": "Ada"});
    let chat = json!({"id": 5, "type": "private", "first_name": "Ada"});
    let message = |more: Value| {
        let mut message = object(json!({"message_id": 42, "date": 1_795_255_100, "from": ada, "chat": chat}));
        message.extend(object(more));
        json!({"message": message})
    };
    let file = json!({"file_id": "F", "file_unique_id": "u", "width": 10, "height": 10, "duration": 3});
    let ours = json!({
        "message_id": 7, "date": 1, "chat": chat, "text": "?",
        "reply_markup": {"inline_keyboard": [[{"text": "Yes", "callback_data": "y"}]]},
    });
    let reaction = json!({
        "chat": chat, "message_id": 7, "date": 1, "user": ada, "old_reaction": [], "new_reaction": [{"type": "emoji", "emoji": "👍"}],
    });
    vec![
        message(json!({"text": "Hello"})),
        message(json!({"caption": "Look", "photo": [{"file_id": "F", "file_unique_id": "u", "width": 90, "height": 90}]})),
        message(json!({"video": file})),
        message(json!({"voice": {"file_id": "F", "file_unique_id": "u", "duration": 3}})),
        message(json!({"document": {"file_id": "F", "file_unique_id": "u", "file_name": "a.pdf"}})),
        message(json!({"location": {"latitude": 40.5, "longitude": -3.25}})),
        message(json!({"contact": {"phone_number": "34600111222", "first_name": "Bea"}})),
        json!({"callback_query": {"id": "77", "from": ada, "chat_instance": "1", "message": ours, "data": "y"}}),
        json!({"message_reaction": reaction}),
        json!({"edited_message": message(json!({"text": "Changed"}))["message"]}),
    ]
}

/// Result of [`updates`], whichever way they came.
async fn assert_heard(events: &Recorder) {
    use MessageType::{Audio, Contact, Document, Image, Location, Reaction, Text, Video};
    let heard: Vec<_> = events.wait_for(9).await.into_iter().map(|i| (i.message_type, i.text, i.media.len())).collect();
    let wanted = [
        (Text, "Hello", 0),
        (Image, "Look", 1),
        (Video, "", 1),
        (Audio, "", 1),
        (Document, "", 1),
        (Location, "", 0),
        (Contact, "", 0),
        (Text, "Yes", 0),
        (Reaction, "", 0),
    ];
    assert_eq!(heard, wanted.map(|(kind, text, media)| (kind, text.to_owned(), media)));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Telegram peers; ./test runs it"]
async fn heavy_what_is_written_to_the_bot_is_asked_for() {
    let emulator = Foreign::emulator();
    let events = Arc::new(Recorder::default());
    let adapter = open(&emulator.base, json!({}), &events);
    for update in updates() {
        assert_eq!(emulator.push(update).await, json!({"status": null, "body": null}));
    }
    let (ask, asked) = stop();
    let session = tokio::spawn({
        let adapter = Arc::clone(&adapter);
        async move { adapter.run(asked).await }
    });
    assert_heard(&events).await;
    // The question that is open now is answered when there is something to tell.
    emulator.push(json!({"message": {"message_id": 43, "date": 1, "chat": {"id": 5, "type": "private"}, "text": "More"}})).await;
    assert_eq!(events.wait_for(10).await[9].text, "More");
    ask.send(true).unwrap();
    session.await.unwrap();
    assert_eq!(emulator.sent(0).await, [json!({"method": "answerCallbackQuery", "parameters": {"callback_query_id": "77"}, "files": {}})]);

    emulator.tell(Method::POST, "/_file", json!({"fileId": "F", "path": "photos/file_1.jpg", "content": "jpeg"})).await;
    let file = adapter.fetch_media("F", 20 * 1024 * 1024).await.unwrap();
    assert_eq!((file.filename.as_str(), file.bytes.as_slice()), ("file_1.jpg", b"jpeg".as_slice()));
    assert_eq!(adapter.fetch_media("G", 10).await.unwrap_err().message, "Bad Request: invalid file_id");
}

/// Passes posts on to the adapter, as the server does, and writes what they told; one after another, permanently.
async fn post_office(listener: TcpListener, adapter: Arc<dyn Adapter>, events: Arc<Recorder>) {
    use nuncio_channel::EventSink as _;
    loop {
        let mut stream = tokio::io::BufReader::new(listener.accept().await.unwrap().0);
        let (mut line, mut headers) = (String::new(), HeaderMap::new());
        stream.read_line(&mut line).await.unwrap();
        assert!(line.starts_with(&format!("POST /providers/telegram/{} ", account(json!({})).id)), "{line}");
        loop {
            line.clear();
            stream.read_line(&mut line).await.unwrap();
            let Some((name, value)) = line.trim_end().split_once(": ") else { break };
            headers.insert(name.parse::<http::HeaderName>().unwrap(), value.parse().unwrap());
        }
        let mut body = vec![0; headers["content-length"].to_str().unwrap().parse().unwrap()];
        stream.read_exact(&mut body).await.unwrap();
        let call = CallbackRequest { method: "POST", url: "", rest: "", query: "", headers: &headers, body: &body, now: NOW };
        let (status, body) = match adapter.callback(&call) {
            Ok(ParsedCallback { events: told, reply: answer }) => {
                for event in told {
                    events.record(event).await.unwrap();
                }
                (200, answer.body)
            }
            Err(error) => (400, error.to_string()),
        };
        let answer = format!("HTTP/1.1 {status} x\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{body}", body.len());
        stream.write_all(answer.as_bytes()).await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Telegram peers; ./test runs it"]
async fn heavy_what_is_written_to_the_bot_is_posted() {
    let emulator = Foreign::emulator();
    let events = Arc::new(Recorder::default());
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
    let services = services(events.clone(), &format!("http://{}", listener.local_addr().unwrap()));
    let settings = account(json!({"base_url": emulator.base, "receive": "webhook"}));
    let adapter = factory(GuardPolicy::default()).open(&settings, &services).unwrap();
    tokio::spawn(post_office(listener, Arc::clone(&adapter), Arc::clone(&events)));

    let (ask, asked) = stop();
    let session = tokio::spawn({
        let adapter = Arc::clone(&adapter);
        async move { adapter.run(asked).await }
    });
    // Until the webhook is set, updates would be kept for who asks.
    let bot = format!("/bot{TOKEN}/getWebhookInfo");
    while emulator.tell(Method::POST, &bot, json!({})).await["result"]["url"] == "" {
        tokio::task::yield_now().await;
    }
    for update in updates() {
        let is_choice = update.get("callback_query").is_some();
        let told = emulator.push(update).await;
        let answer =
            if is_choice { json!({"method": "answerCallbackQuery", "callback_query_id": "77"}).to_string() } else { String::new() };
        assert_eq!(told, json!({"status": 200, "body": answer}));
    }
    assert_heard(&events).await;
    ask.send(true).unwrap();
    session.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the Telegram peers; ./test runs it"]
async fn heavy_texts_go_both_ways_with_telegram_test_api() {
    let Some(mut command) = node_peer("telegram_test_api.js", "telegram-test-api") else { return };
    let api = Foreign::start(&mut command);
    let events = Arc::new(Recorder::default());
    let adapter = open(&api.base, json!({}), &events);
    assert_eq!(adapter.check().await.unwrap(), "logged in as @TestNameBot (bot 666); it polls for messages");

    let outcome = adapter.send(&request(&message("5", MessageType::Text, Content::default()))).await;
    assert_eq!(short(&outcome), ("accepted", None, vec!["5:1"]));
    let history = api.tell(Method::POST, "/getUpdatesHistory", json!({"token": TOKEN})).await;
    assert_eq!(history["result"][0]["message"], json!({"chat_id": 5, "text": "Message 0 of the suite"}));

    let ada = json!({"id": 5, "first_name": "Ada", "is_bot": false});
    let chat = json!({"id": 5, "first_name": "Ada", "type": "private"});
    let hello = json!({"botToken": TOKEN, "from": ada, "date": 1_795_255_100, "chat": chat, "text": "Hello"});
    api.tell(Method::POST, "/sendMessage", hello).await;
    let (ask, asked) = stop();
    let session = tokio::spawn(async move { adapter.run(asked).await });
    let heard = events.wait_for(1).await.remove(0);
    assert_eq!((heard.from.as_str(), heard.text.as_str(), heard.provider_message_id.as_str()), ("5", "Hello", "5:2"));
    ask.send(true).unwrap();
    session.await.unwrap();
}
