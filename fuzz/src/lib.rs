//! Fuzz targets. A target is a function here and a one-line file in `bin/`; each panics if an invariant is violated.

mod request;

use std::panic;
use std::sync::{Arc, LazyLock, Once};

pub use request::request;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, Mac as _};
use http::{HeaderMap, HeaderName};
use nuncio_channel::{Account, Adapter, AdapterFactory, CallbackRequest, CallError, ParsedCallback};
use nuncio_channel_meta::scripted::{SECRET, WORD, network, services, sign};
use nuncio_channel_smpp::promises;
use nuncio_channel_smtp::mail::Mail;
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::{ConnectionId, Redacted, TenantId, Timestamp};
use serde_json::{Value, json};
use sha1::Sha1;
use sha2::Sha256;

/// Splits texts into segments.
pub fn segmentation(data: &[u8]) {
    let Some((reference, text)) = data.split_first_chunk::<2>() else { return };
    let Ok(text) = std::str::from_utf8(text) else { return };
    // The API rejects NUL.
    promises::segmentation(&text.replace('\0', ""), u16::from_le_bytes(*reference));
}

/// Receipts of SMSCs, as text.
pub fn receipt(data: &[u8]) {
    let Some(([esm_class, state], text)) = data.split_first_chunk::<2>() else { return };
    promises::receipt(&String::from_utf8_lossy(text), (*state != 0).then_some(*state), *esm_class);
}

/// PDUs of SMSCs.
pub fn pdu(data: &[u8]) {
    promises::pdu(data);
}

/// Callbacks of Meta about WhatsApp.
pub fn whatsapp(body: &[u8]) {
    static ADAPTER: LazyLock<Arc<dyn Adapter>> = LazyLock::new(|| {
        let secrets = json!({"access_token": "t", "app_secret": SECRET, "verify_token": WORD});
        open(&nuncio_channel_whatsapp::factory(network()), json!({"phone_number_id": "106540352242922"}), secrets)
    });
    callback(&ADAPTER, "x-hub-signature-256", &sign(body), body);
}

/// Callbacks of Meta about Instagram.
pub fn instagram(body: &[u8]) {
    static ADAPTER: LazyLock<Arc<dyn Adapter>> = LazyLock::new(|| {
        let secrets = json!({"access_token": "t", "app_secret": SECRET, "verify_token": WORD});
        open(&nuncio_channel_instagram::factory(network()), json!({"account_id": "17841405309211844"}), secrets)
    });
    callback(&ADAPTER, "x-hub-signature-256", &sign(body), body);
}

/// Updates of Telegram.
pub fn telegram(body: &[u8]) {
    const TOKEN: &str = "123456789:AAF";
    static ADAPTER: LazyLock<Arc<dyn Adapter>> =
        LazyLock::new(|| open(&nuncio_channel_telegram::factory(network()), json!({"receive": "webhook"}), json!({"token": TOKEN})));
    // The secret that the adapter sets with the URL.
    static SECRET: LazyLock<String> = LazyLock::new(|| {
        let mut mac = Hmac::<Sha256>::new_from_slice(TOKEN.as_bytes()).expect("any length");
        mac.update(format!("nuncio webhook {}", connection()).as_bytes());
        hex::encode(mac.finalize().into_bytes())
    });
    callback(&ADAPTER, "x-telegram-bot-api-secret-token", &SECRET, body);
}

/// Inbound messages from Kannel, as queries.
pub fn kannel(query: &[u8]) {
    const WORD: &str = "a word of sixteen letters";
    static ADAPTER: LazyLock<Arc<dyn Adapter>> = LazyLock::new(|| {
        let settings = json!({"url": "http://127.0.0.1:13013/cgi-bin/sendsms", "username": "nuncio"});
        open(&nuncio_channel_kannel::factory(network()), settings, json!({"password": "p", "callback_secret": WORD}))
    });
    let Ok(query) = std::str::from_utf8(query) else { return };
    let query = format!("key={}&{query}", WORD.replace(' ', "+"));
    tried(ADAPTER.callback(&call("GET", "https://nuncio.example/", &query, &HeaderMap::new(), b"")));
}

/// Inbound messages from Twilio, as queries.
pub fn twilio(query: &[u8]) {
    const TOKEN: &str = "0123456789abcdef0123456789abcdef";
    static ADAPTER: LazyLock<Arc<dyn Adapter>> = LazyLock::new(|| {
        let settings = json!({"account_sid": "AC0123456789abcdef0123456789abcdef", "from": "+34600111222"});
        open(&nuncio_channel_twilio::factory(network()), settings, json!({"auth_token": TOKEN}))
    });
    let Ok(query) = std::str::from_utf8(query) else { return };
    let url = format!("https://nuncio.example/?{query}");
    let mac = Hmac::<Sha1>::new_from_slice(TOKEN.as_bytes()).expect("any length").chain_update(&url);
    let proof = STANDARD.encode(mac.finalize().into_bytes());
    let headers = HeaderMap::from_iter([(HeaderName::from_static("x-twilio-signature"), proof.parse().expect("a header"))]);
    tried(ADAPTER.callback(&call("GET", &url, query, &headers, b"")));
}

/// Emails: messages, delivery reports, complaints.
pub fn mail(bytes: &[u8]) {
    static CAUGHT: Once = Once::new();
    // The fuzzer's hook ends the process before a panic can be caught. A panic of the parser is caught and rejected; other panics are found
    // without a hook.
    CAUGHT.call_once(|| {
        panic::set_hook(Box::new(|info| {
            if !info.location().is_some_and(|at| at.file().contains("mail-parser")) {
                eprintln!("{info}");
            }
        }));
    });
    Mail::read("a@example.org", bytes);
    Mail::read("", bytes);
}

fn connection() -> ConnectionId {
    ConnectionId::from_uuid(uuid_v7(Timestamp::from_millis(1), [7; 10]))
}

fn open(factory: &dyn AdapterFactory, settings: Value, secrets: Value) -> Arc<dyn Adapter> {
    let object = |value: Value| value.as_object().cloned().unwrap_or_default();
    let account = Account {
        id: connection(),
        tenant: TenantId(3),
        channel: factory.channels()[0],
        settings: object(settings),
        secrets: Redacted::new(object(secrets)),
        trusted: false,
    };
    factory.open(&account, &services()).expect("good settings")
}

/// Posts a body with valid credentials of the provider. It is parsed or rejected; `proof` is what the adapter must accept.
fn callback(adapter: &Arc<dyn Adapter>, name: &'static str, proof: &str, body: &[u8]) {
    let headers = HeaderMap::from_iter([(HeaderName::from_static(name), proof.parse().expect("a header"))]);
    tried(adapter.callback(&call("POST", "https://nuncio.example/", "", &headers, body)));
}

fn call<'a>(method: &'a str, url: &'a str, query: &'a str, headers: &'a HeaderMap, body: &'a [u8]) -> CallbackRequest<'a> {
    CallbackRequest { method, url, rest: "", query, headers, body, now: Timestamp::from_millis(1_749_416_400_000) }
}

/// Fails if the credentials are rejected, since then nothing is tested.
fn tried(told: Result<ParsedCallback, CallError>) {
    assert!(!matches!(told, Err(CallError::Unproved(_) | CallError::NotCalled)), "the target tries nothing: {told:?}");
}
