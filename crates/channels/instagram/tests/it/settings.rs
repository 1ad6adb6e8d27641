//! Settings: every fault at once, no secret in any text; and what a check finds.

use nuncio_channel::Receipts;
use nuncio_channel::testing::object;
use nuncio_channel_meta::scripted::{Reply, SECRET, TOKEN, WORD, refusal};
use serde_json::{Value, json};

use crate::support::{ACCOUNT, INSTAGRAM, start};

#[test]
fn the_least_that_works() {
    let mut least = INSTAGRAM.account("x", json!({}));
    least.settings = object(json!({"account_id": "1784"}));
    let adapter = INSTAGRAM.try_open(&least).unwrap();
    assert_eq!((adapter.capabilities().window, adapter.capabilities().receipts), (20, Receipts::ByReference));
    assert!(format!("{adapter:?}").contains("https://graph.instagram.com/v23.0"));
    least.settings = object(json!({"account_id": "1784", "login": "page", "window": "7"}));
    let adapter = INSTAGRAM.try_open(&least).unwrap();
    assert_eq!(adapter.capabilities().window, 7);
    assert!(format!("{adapter:?}").contains("https://graph.facebook.com/v23.0"));
}

#[test]
fn all_faults_at_once() {
    assert_eq!(
        INSTAGRAM.faults(json!({}), json!({})),
        ["secrets.access_token", "secrets.app_secret", "secrets.verify_token", "settings.account_id"]
    );
    let settings = json!({
        "account_id": "../me", "login": "facebook", "window": 0, "timeout_seconds": 301, "base_url": "graph.facebook.com",
        "api_version": "23", "token": "x"
    });
    let found = INSTAGRAM.faults(settings, json!({"access_token": "hunter2 \n", "app_secret": "hunter2", "verify_token": "hunter2"}));
    assert_eq!(
        found,
        [
            "secrets.access_token",
            "settings.account_id",
            "settings.api_version",
            "settings.base_url",
            "settings.login",
            "settings.timeout_seconds",
            "settings.token",
            "settings.window"
        ]
    );
}

#[test]
fn no_secret_is_printed() {
    let text = format!("{:?}", INSTAGRAM.offline(json!({})));
    assert!(text.contains(ACCOUNT) && ![TOKEN, SECRET, WORD].iter().any(|secret| text.contains(secret)), "{text}");
}

async fn check(login: &str, answer: Value) -> (Result<String, String>, String) {
    let api = start(move |_| Reply::json(200, &answer.clone())).await;
    let found = INSTAGRAM.try_open(&INSTAGRAM.account(&api.base(), json!({"login": login}))).unwrap().check().await;
    (found, api.seen()[0].path.clone())
}

#[tokio::test]
async fn a_check_asks_whose_token_it_is() {
    let (found, path) = check("instagram", json!({"user_id": ACCOUNT, "username": "acme", "id": "2"})).await;
    let text = found.unwrap();
    assert!(text.contains("@acme") && text.contains("https://nuncio.example/providers/instagram/cnx_"), "{text}");
    assert_eq!(path, "/v23.0/me?fields=user_id,username");
    let page = json!({"id": "9", "name": "Acme", "instagram_business_account": {"id": ACCOUNT, "username": "acme"}});
    let (found, path) = check("page", page).await;
    assert!(found.unwrap().contains("@acme"));
    assert_eq!(path, "/v23.0/me?fields=name,instagram_business_account{id,username}");
}

#[tokio::test]
async fn a_check_says_what_to_do() {
    let (found, _) = check("instagram", json!({"user_id": "1", "username": "other"})).await;
    assert!(found.unwrap_err().contains("set account_id=1"));
    let (found, _) = check("page", json!({"id": "9", "name": "Acme"})).await;
    assert!(found.unwrap_err().contains("link the account to the Page"));
    for (code, word) in [(190, "access_token"), (10, "instagram_business_manage_messages"), (100, "login")] {
        let api = start(move |_| refusal(400, code, "No")).await;
        let text = INSTAGRAM.try_open(&INSTAGRAM.account(&api.base(), json!({}))).unwrap().check().await.unwrap_err();
        assert!(text.contains(&format!("code {code}")) && text.contains("What to do") && text.contains(word), "{text}");
    }
}
