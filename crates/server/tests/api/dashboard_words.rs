//! What pages say: before something is sent, of what failed, and after a form that could not be used.

use std::sync::atomic::{AtomicBool, Ordering};

use nuncio_channel::scripted::{Reply, Scripted};
use nuncio_domain::Channel;
use nuncio_domain::user::Role;
use nuncio_testkit::TestApp;
use serde_json::json;

use crate::broadcasts::{add, draft};
use crate::dashboard::{Browser, person};
use crate::dashboard_pages::upload;

// holds: pages.broadcasts
#[tokio::test]
async fn a_broadcast_whose_time_has_passed_is_not_sent() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let id = draft(&app, json!({"name": "News", "channel": "sms", "text": "Hello from Acme"})).await;
        let path = format!("/broadcasts/{id}");
        add(&app, &id, ["+34600111222".to_owned()]).await;
        let past = browser.submit(&path, &[("do", "send"), ("at", "2001-01-01T00:00")]).await.expect(400).text;
        assert!(past.contains("id=\"at-fault\"") && past.contains("has passed") && past.contains("value=\"2001-01-01T00:00\""), "{past}");
        app.drain().await;
        assert!(browser.page(&path).await.contains("Delete the draft"));
        browser.submit(&path, &[("do", "send")]).await.expect(303);
    }
}

// holds: pages.home
#[tokio::test]
async fn a_project_that_has_sent_live_is_past_its_first_steps() {
    static REFUSES: AtomicBool = AtomicBool::new(false);
    let gateway = Scripted::start(|_| {
        if REFUSES.load(Ordering::Relaxed) {
            Reply::text(403, "Authorization failed for sendsms")
        } else {
            Reply::text(202, "0: Accepted for delivery")
        }
    })
    .await;
    let app = TestApp::start().await;
    let settings = json!({"url": format!("{}/cgi-bin/sendsms", gateway.base()), "username": "tester"});
    app.connect(Channel::Sms, "kannel", settings, json!({"password": "foobar", "callback_secret": "a-word-of-our-own"})).await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    assert!(browser.page("/").await.contains("Getting started"));
    for refuses in [false, true] {
        REFUSES.store(refuses, Ordering::Relaxed);
        let body = json!({"to": "+34600111333", "channel": "sms", "text": "hello"});
        app.with_key(&app.live_key, "POST", "/v1/messages", Some(body)).await.expect(202);
        app.drain().await;
    }
    assert!(!browser.page("/").await.contains("Getting started"));
    browser.submit("/world", &[("world", "live"), ("to", "/")]).await.expect(303);
    let live = browser.page("/").await;
    assert!(live.contains("fails</h2>") && !live.contains("Getting started"), "{live}");
}

// holds: pages.home
#[tokio::test]
async fn a_webhook_counts_where_its_events_are() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let hook = async |key: &str| {
            let sender = app.with_key(key, "GET", "/v1/senders", None).await.expect(200).json()["items"][0]["id"].clone();
            let path = format!("/v1/senders/{}", sender.as_str().expect("an id"));
            app.with_key(key, "PATCH", &path, Some(json!({"webhookUrl": "https://example.com/hooks"}))).await.expect(200);
        };
        hook(&app.live_key).await;
        assert!(browser.page("/").await.contains("Set a webhook"), "that of the live environment gets no tests");
        browser.submit("/world", &[("world", "live"), ("to", "/")]).await.expect(303);
        assert!(!browser.page("/").await.contains("Set a webhook"));
        browser.submit("/world", &[("world", "test"), ("to", "/")]).await.expect(303);
        hook(&app.test_key).await;
        assert!(!browser.page("/").await.contains("Set a webhook"));
    }
}

// holds: pages.composer
#[tokio::test]
async fn a_sender_that_cannot_send_is_named_once() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    browser.submit("/world", &[("world", "live"), ("to", "/")]).await.expect(303);
    let page = browser.submit("/messages/new", &[("to", "+34600111222"), ("text", "hello"), ("do", "send")]).await.expect(400).text;
    assert!(page.contains("Sender Default has no provider connected for"), "{page}");
}

// holds: pages.home, pages.roles
#[tokio::test]
async fn only_an_owner_is_led_to_the_form_of_a_key() {
    let app = TestApp::start().await;
    let (owner, operator) = (person(&app, "ow@example.net", Role::Owner).await, person(&app, "op@example.net", Role::Operator).await);
    assert!(owner.page("/").await.contains("Create a test key"));
    let page = operator.page("/").await;
    assert!(!page.contains("Create a test key") && page.contains("An owner creates a key"), "{page}");
}

// holds: pages.messages
#[tokio::test]
async fn a_failure_by_receipt_follows_the_acceptance() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let id = app.send_message(json!({"to": "+12125550002", "text": "hello", "channel": "sms"})).await;
    app.drain().await;
    let page = browser.page(&format!("/messages/{id}")).await;
    let at = |words: &str| page.find(words).unwrap_or_else(|| panic!("{words}: {page}"));
    assert!(at("Attempt 1 accepted") < at("receipt, after it had accepted") && at("Attempt 1 accepted") < at("Attempt 1 failed"), "{page}");
    assert!(page.contains("By the simulator.") && page.contains(" UTC</time>"), "{page}");
    let refused = app.send_message(json!({"to": "+12125550001", "text": "hello", "channel": "sms"})).await;
    app.drain().await;
    let page = browser.page(&format!("/messages/{refused}")).await;
    assert!(page.contains("Attempt 1 failed") && !page.contains("Attempt 1 accepted"), "{page}");
    let why = app.message(&refused).await["errorMessage"].as_str().expect("a reason").to_owned();
    assert!(page.contains(&format!("Failed. {}", &why[..1].to_uppercase())), "{page}");
}

// holds: pages.messages
#[tokio::test]
async fn a_message_that_is_tried_again_says_why_and_when() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let id = app.send_message(json!({"to": "+12125550003", "text": "hello"})).await;
    app.drain().await;
    let page = browser.page(&format!("/messages/{id}")).await;
    let why = app.message(&id).await["attempts"][0]["errorMessage"].as_str().expect("a reason").to_owned();
    assert!(page.contains(&format!("Waits: {}. Tried again at <time", why.trim_end_matches('.'))), "{page}");
}

// holds: pages.sign_in
#[tokio::test]
async fn a_form_after_the_end_of_a_session_says_that_nothing_was_sent() {
    let app = TestApp::start().await;
    let mut browser = person(&app, "op@example.net", Role::Operator).await;
    let gone = Browser { app: &app, cookie: String::new() };
    for (form, page) in [
        ("/messages/new", "/messages/new"),
        ("/reviews/brd_1", "/reviews"),
        ("/broadcasts/brd_1/columns", "/broadcasts/brd_1"),
        ("/broadcasts/brd_1/recipients", "/broadcasts/brd_1"),
        ("/broadcasts/brd_1/recipients/bct_1", "/broadcasts/brd_1"),
        ("/developers/keys/key_1", "/developers/keys"),
        ("/world", "/"),
    ] {
        let to: String = url::form_urlencoded::byte_serialize(page.as_bytes()).collect();
        let led = gone.send(form, &[("text", "hello")]).await.expect(303).header("location").to_owned();
        assert_eq!(led, format!("/sign-in?ended=yes&to={to}"), "{form}");
        let asked = gone.page(&led).await;
        assert!(asked.contains("Your session ended.") && asked.contains(&format!("name=\"to\" value=\"{page}\"")), "{asked}");
    }
    let elsewhere = gone.page("/sign-in?ended=yes&to=%2F%2Fevil.example").await;
    assert!(elsewhere.contains("name=\"to\" value=\"/\""), "{elsewhere}");
    assert!(!gone.page("/sign-in").await.contains("Your session ended."));
    browser.submit("/sign-out", &[]).await.expect(303);
    let again = browser.sign_in("op@example.net", crate::dashboard::PASSWORD).await.expect(303);
    assert_eq!(again.header("location"), "/messages");
}

// holds: pages.sign_in
#[tokio::test]
async fn an_unknown_address_is_a_page_for_browsers_and_json_for_programs() {
    const BROWSER: &str = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
    let app = TestApp::start().await;
    let viewer = person(&app, "vi@example.net", Role::Viewer).await;
    let ask = async |method: &str, path: &str, accept: &str, cookie: &str| {
        app.raw(method, path, &[("accept", accept), ("cookie", cookie)], Vec::new()).await.expect(404)
    };
    for method in ["GET", "POST"] {
        let page = ask(method, "/mesages/x", BROWSER, &viewer.cookie).await;
        assert!(page.header("content-security-policy").starts_with("default-src 'none'"), "{page:?}");
        assert_eq!((page.header("content-type"), page.header("cache-control")), ("text/html; charset=utf-8", "no-store"));
        assert!(
            page.text.contains("There is nothing here") && page.text.contains("<nav") && page.text.contains("href=\"/\">Back"),
            "{page:?}"
        );
        let guest = ask(method, "/mesages/x", BROWSER, "").await.text;
        assert!(guest.contains("There is nothing here") && guest.contains("href=\"/\">Home") && !guest.contains("<nav"), "{guest}");
    }
    for (path, accept) in [
        ("/v1/mesages", BROWSER),
        ("/v1", BROWSER),
        ("/mesages", "*/*"),
        ("/mesages", ""),
        ("/mesages", "application/json"),
        ("/mesages", "application/json, text/html;q=0.5"),
    ] {
        let answer = ask("GET", path, accept, &viewer.cookie).await;
        assert_eq!(answer.json()["code"], "not_found", "{path} {accept}: {}", answer.text);
    }
}

// holds: pages.set_up
#[tokio::test]
async fn a_second_click_creates_no_second_key() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "ow@example.net", Role::Owner).await;
        let fields = [("name", "shop"), ("world", "test"), ("may", "send"), ("expires", "30"), ("once", "page-1")];
        let made = browser.submit("/developers/keys", &fields).await.expect(201).text;
        assert!(made.contains("svc_test_") && made.contains("name=\"once\""), "{made}");
        app.clock.advance(std::time::Duration::from_secs(1));
        let again = browser.submit("/developers/keys", &fields).await.expect(400).text;
        assert!(again.contains("This form was sent twice") && !again.contains("svc_test_"), "{again}");
        assert_eq!(again.matches(">shop</bdi>").count(), 1, "{again}");
    }
}

// holds: pages.broadcasts, pages.contacts, pages.set_up
#[tokio::test]
async fn errors_name_the_labels_of_fields() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let page = browser.submit("/broadcasts/new", &[("name", ""), ("channel", "sms"), ("text", "x")]).await.expect(400).text;
    assert!(page.contains(">Name "), "{page}");
    let page = browser.submit("/invitations", &[("allowedPhoneCountries", "Spain")]).await.expect(400).text;
    assert!(page.contains(">Countries of their number is &quot;SPAIN&quot;; must be"), "{page}");
    assert_eq!(page.matches(" autofocus").count(), 1, "browsers scroll to it: {page}");
    let unknown = [("name", "News"), ("channel", "sms"), ("text", "x"), ("sender", "snd_01hgw2bbg0e9tatjpp9vyrkcyk")];
    let page = browser.submit("/broadcasts/new", &unknown).await.expect(400).text;
    let choice = page.split("<select class=\"in\" id=\"sender\"").nth(1).and_then(|rest| rest.split('>').next()).expect("the choice");
    assert!(choice.contains(" autofocus") && choice.contains("aria-describedby=\"sender-fault\""), "also to a choice: {page}");
    assert!(page.matches(" autofocus").count() == 1 && page.contains("id=\"sender-fault\""), "{page}");
    let faulty = [("name", "x"), ("channel", "email"), ("text", "x")];
    let made = browser.submit("/broadcasts/new", &faulty).await.expect(303).header("location").to_owned();
    add(&app, made.trim_start_matches("/broadcasts/"), ["ana@example.org".to_owned()]).await;
    let page = browser.submit(&made, &[("do", "send")]).await.expect(400).text;
    let opened = page.split("<details open>").nth(1).expect("an open part");
    assert!(opened.contains("id=\"emailSubject-fault\""), "{page}");
    let key = browser.form_key().await;
    let file = "name,phone,email\nCy,+34600111222,nonsense\n";
    let added = upload(&browser, "/contacts", &[("key", &key)], "a.csv", file).await.expect(200).text;
    assert!(added.contains(">email ") && !added.contains("channels["), "{added}");
}
