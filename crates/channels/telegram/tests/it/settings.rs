//! Settings, and what the check says.

use std::sync::Arc;

use nuncio_channel::Sessions;
use nuncio_domain::Redacted;
use nuncio_net::GuardPolicy;
use serde_json::{Value, json};

use crate::support::{Act, BotAnswer as _, BotCall as _, Peer, Recorder, TOKEN, account, factory, object, open, services, try_open};

#[tokio::test]
async fn faults_are_told_at_once_without_the_token() {
    let mut wrong = account(json!({"base_url": "https://x.example/?a=1", "receive": "carrier pigeon", "timeout_seconds": 0}));
    wrong.secrets = Redacted::new(object(json!({"token": "123456789:../getMe"})));
    let errors = try_open(&wrong, Arc::default()).unwrap_err();
    let paths: Vec<_> = errors.iter().map(|e| e.path.as_str()).collect();
    assert_eq!(paths.len(), 4, "{errors:?}");
    for path in ["settings.base_url", "settings.receive", "settings.timeout_seconds", "secrets.token"] {
        assert!(paths.contains(&path), "{path} in {errors:?}");
    }
    assert!(!format!("{errors:?}").contains("getMe"), "{errors:?}");
}

#[tokio::test]
async fn what_receives_keeps_one_session() {
    for (settings, sessions) in [
        (json!({}), Sessions::OneNode),
        (json!({"receive": "polling"}), Sessions::OneNode),
        (json!({"receive": "webhook"}), Sessions::OneNode),
        (json!({"receive": "off"}), Sessions::None),
    ] {
        assert_eq!(try_open(&account(settings.clone()), Arc::default()).unwrap().sessions(), sessions, "{settings}");
    }
}

async fn checked(settings: Value, info: Value) -> Result<String, String> {
    let peer = Peer::start(move |seen| match seen.method() {
        "getMe" => Act::result(json!({"id": 123_456_789, "is_bot": true, "first_name": "Desk", "username": "desk_bot"})),
        "getWebhookInfo" => Act::result(info.clone()),
        method => panic!("the check calls {method}"),
    })
    .await;
    open(&peer.base(), settings, &Arc::default()).check().await
}

#[tokio::test]
async fn the_check_says_how_messages_come_in() {
    let url = format!("https://nuncio.example/providers/telegram/{}", account(json!({})).id);
    let broken =
        json!({"url": url, "pending_update_count": 3, "last_error_date": 1_795_255_190, "last_error_message": "Connection refused"});
    let mended =
        json!({"url": url, "pending_update_count": 0, "last_error_date": 1_795_250_000, "last_error_message": "Connection refused"});
    for (receive, info, wanted) in [
        ("off", json!(null), Ok("logged in as @desk_bot (bot 123456789); it receives no messages".to_owned())),
        ("polling", json!(null), Ok("logged in as @desk_bot (bot 123456789); it polls for messages".to_owned())),
        ("webhook", json!({"url": url}), Ok(format!("logged in as @desk_bot (bot 123456789); Telegram posts messages to {url}"))),
        ("webhook", mended, Ok(format!("logged in as @desk_bot (bot 123456789); Telegram posts messages to {url}"))),
        (
            "webhook",
            json!({"url": ""}),
            Ok(format!("logged in as @desk_bot (bot 123456789); Telegram will be asked to post messages to {url}")),
        ),
        ("webhook", broken, Err(format!("Telegram cannot deliver to {url}: Connection refused (3 waiting)"))),
    ] {
        assert_eq!(checked(json!({"receive": receive}), info.clone()).await, wanted, "{receive} {info}");
    }
}

#[tokio::test]
async fn the_check_of_a_webhook_wants_https() {
    let peer = Peer::start(|_| Act::result(json!({"id": 1, "first_name": "Desk"}))).await;
    let settings = account(json!({"receive": "webhook", "base_url": peer.base()}));
    let adapter =
        factory(GuardPolicy::default()).open(&settings, &services(Arc::new(Recorder::default()), "http://nuncio.example")).unwrap();
    let told = adapter.check().await.unwrap_err();
    assert!(told.contains("server.public_url"), "{told}");
}

#[tokio::test]
async fn a_wrong_token_is_said_plainly() {
    let peer = Peer::start(|_| Act::error(401, &format!("Unauthorized: /bot{TOKEN}/getMe"), json!({}))).await;
    let told = open(&peer.base(), json!({}), &Arc::default()).check().await.unwrap_err();
    assert_eq!(told, "Unauthorized: /bot***/getMe; Telegram does not know the token: copy it from BotFather again");
}
