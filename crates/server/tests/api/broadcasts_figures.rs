//! Recipients selected by contact filters, tracked links, and statistics by channel, country, failure and link.

use std::sync::atomic::Ordering;
use std::time::Duration;

use nuncio_testkit::TestApp;
use serde_json::{Value, json};

use crate::audit::log;
use crate::broadcasts::{act, add, contacts, counts, draft, finish, get, phones};

async fn contact(app: &TestApp, body: Value) {
    app.post("/v1/contacts", body).await.expect(201);
}

async fn select(app: &TestApp, id: &str, filter: Value) -> Value {
    app.post(&format!("/v1/broadcasts/{id}/contacts/select"), filter).await.expect(201).json()
}

async fn recipients(app: &TestApp, id: &str) -> Vec<String> {
    let mut found: Vec<_> =
        contacts(app, id, "").await.iter().map(|contact| contact["recipient"].as_str().unwrap_or_default().to_owned()).collect();
    found.sort_unstable();
    found
}

/// Creates three contacts: Ada from Spain on plan pro, who wrote by WhatsApp; Bo from Spain; Cy, with only an email address.
async fn three(app: &TestApp) {
    contact(app, json!({"displayName": "Ada", "channels": [{"channel": "sms", "identifier": "+34600111222"}], "metadata": {"plan": "pro", "seats": 3}})).await;
    contact(
        app,
        json!({"displayName": "Bo", "channels": [{"channel": "sms", "identifier": "+34600111223"}], "metadata": {"plan": "free"}}),
    )
    .await;
    contact(
        app,
        json!({"displayName": "Cy", "channels": [{"channel": "email", "identifier": "cy@example.net"}], "metadata": {"plan": "pro"}}),
    )
    .await;
    app.post("/v1/sandbox/inbound", json!({"channel": "whatsapp", "from": "+34600111222", "text": "hello"})).await.expect(202);
    app.drain().await;
}

// holds: broadcasts.select
#[tokio::test]
async fn contacts_become_recipients_by_a_filter() {
    for app in TestApp::on_each().await {
        three(&app).await;
        let sms = || draft(&app, json!({"name": "x", "channel": "sms", "text": "Hello from Acme"}));
        let yesterday = "2020-01-01T00:00:00Z";
        let cases = [
            (json!({}), vec!["+34600111222", "+34600111223"]),
            (json!({"metadata": {"plan": "pro"}}), vec!["+34600111222"]),
            (json!({"countries": ["es"]}), vec!["+34600111222", "+34600111223"]),
            (json!({"countries": ["PT"]}), vec![]),
            (json!({"channel": "whatsapp"}), vec!["+34600111222"]),
            (json!({"channel": "email"}), vec![]),
            (json!({"lastInboundAfter": yesterday}), vec!["+34600111222"]),
            (json!({"lastInboundBefore": yesterday}), vec!["+34600111223"]),
            (json!({"channel": "sms", "lastInboundAfter": yesterday}), vec![]),
        ];
        for (filter, expected) in cases {
            let id = sms().await;
            let answer = select(&app, &id, filter.clone()).await;
            assert_eq!(recipients(&app, &id).await, expected, "{filter} {answer}");
            assert_eq!(answer["added"], expected.len(), "{filter} {answer}");
        }
        let id = sms().await;
        app.post("/v1/suppressions", json!({"identifier": "+34600111223"})).await.expect(201);
        let answer = select(&app, &id, json!({})).await;
        let numbers = ["matched", "added", "duplicates", "unreachable", "invalid", "suppressed"].map(|name| answer[name].as_u64());
        assert_eq!(numbers, [3, 2, 0, 1, 0, 1].map(Some), "{answer}");
        assert_eq!(select(&app, &id, json!({})).await["duplicates"], 2, "again is the same as once");
    }
}

// holds: broadcasts.select
#[tokio::test]
async fn fields_of_contacts_fill_variables() {
    let app = TestApp::start().await;
    three(&app).await;
    let body = json!({"name": "x", "channel": "smart", "text": "Hello {{name}}, {{seats}} seats", "emailSubject": "Hello {{name}}"});
    let id = draft(&app, body).await;
    let filter = json!({"metadata": {"plan": "pro"}, "variables": {"name": "name", "seats": "metadata.seats"}});
    assert_eq!(select(&app, &id, filter).await["added"], 2);
    assert_eq!(recipients(&app, &id).await, ["+34600111222", "cy@example.net"]);
    let missing = act(&app, &id, "send").await.expect(400).json();
    assert_eq!(missing["details"]["errors"][0]["path"], "contacts[cy@example.net].templateVariables.seats", "{missing}");
    let wrong = json!({"countries": ["Spain"], "variables": {"a": "surname"}, "lastInboundAfter": "2026-01-02T00:00:00Z",
        "lastInboundBefore": "2026-01-01T00:00:00Z"});
    let answer = app.post(&format!("/v1/broadcasts/{id}/contacts/select"), wrong).await.expect(400).json();
    let paths: Vec<_> = answer["details"]["errors"].as_array().into_iter().flatten().map(|error| error["path"].clone()).collect();
    assert_eq!(paths, ["countries[0]", "variables.a", "lastInboundBefore"], "{answer}");
}

// holds: broadcasts.select
#[tokio::test]
async fn an_empty_field_of_a_contact_takes_the_value_of_the_broadcast() {
    let app = TestApp::start().await;
    contact(&app, json!({"channels": [{"channel": "sms", "identifier": "+34600111222"}], "metadata": {"seats": ""}})).await;
    let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "{{seats}} seats", "variables": {"seats": "No"}})).await;
    let answer = select(&app, &id, json!({"variables": {"seats": "metadata.seats"}})).await;
    assert_eq!((&answer["added"], &answer["invalid"]), (&json!(1), &json!(0)), "{answer}");
    let shown = app.post(&format!("/v1/broadcasts/{id}/preview"), json!({})).await.expect(200).json();
    assert_eq!(shown["text"], "No seats");
}

// holds: broadcasts.select
#[tokio::test]
async fn a_selection_of_many_contacts_is_one_entry_of_the_audit_log() {
    for app in TestApp::on_each().await {
        let messages: Vec<_> = phones(501).map(|phone| json!({"to": phone, "text": "x", "channel": "sms"})).collect();
        app.post("/v1/messages/batch", json!({"messages": messages})).await.expect(200);
        let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Hello from Acme"})).await;
        assert_eq!(select(&app, &id, json!({})).await["added"], 501);
        let entries = log(&app, app.tenant()).await;
        assert_eq!(entries.iter().filter(|entry| entry.verb == "select_recipients").count(), 1);
    }
}

// holds: broadcasts.select
#[tokio::test]
async fn a_selection_by_too_many_countries_is_refused() {
    let app = TestApp::start().await;
    let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Hello from Acme"})).await;
    let select = format!("/v1/broadcasts/{id}/contacts/select");
    app.post(&select, json!({"countries": vec!["ES"; 250]})).await.expect(201);
    let answer = app.post(&select, json!({"countries": vec!["ES"; 251]})).await.expect(400).json();
    assert_eq!(answer["details"]["errors"][0]["path"], "countries", "{answer}");
}

/// Returns the path of the link in a message.
fn path(text: &str) -> String {
    let from = text.find("/l/").expect("a counted link");
    text[from..].split(|c: char| c.is_whitespace() || c == '"').next().unwrap_or_default().to_owned()
}

// holds: broadcasts.links
#[tokio::test]
async fn links_are_counted_for_each_recipient() {
    for app in TestApp::on_each().await {
        let text = "Our offer: https://acme.example/spring?from=sms. Yours: https://acme.example/{{name}}";
        let body = json!({"name": "x", "channel": "sms", "text": text, "trackLinks": true, "variables": {"name": "ada"}});
        let id = draft(&app, body).await;
        add(&app, &id, ["+34600111222", "+34600111223"].map(str::to_owned)).await;
        assert_eq!(get(&app, &id).await["trackLinks"], true);
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        let messages = app.get("/v1/messages").await.expect(200).json()["items"].as_array().cloned().unwrap_or_default();
        let texts: Vec<_> = messages.iter().map(|message| message["text"].as_str().unwrap_or_default()).collect();
        let [first, second] = texts.as_slice() else { panic!("{texts:?}") };
        for text in [first, second] {
            assert!(!text.contains("spring") && text.ends_with("Yours: https://acme.example/ada"), "{text}");
        }
        assert_ne!(path(first), path(second), "each recipient has their own");
        let path = path(first).trim_end_matches('.').to_owned();
        let begun = || app.faults.begun.load(Ordering::Acquire);
        let before = begun();
        for _ in 0..20 {
            let answer = app.raw("GET", &path, &[], Vec::new()).await.expect(302);
            assert_eq!(answer.header("location"), "https://acme.example/spring?from=sms");
            assert_eq!(answer.header("cache-control"), "no-store");
        }
        app.raw("HEAD", &path, &[], Vec::new()).await.expect(302);
        let mut forged = path.clone();
        let last = if forged.pop() == Some('A') { 'Q' } else { 'A' };
        forged.push(last);
        app.raw("GET", &forged, &[], Vec::new()).await.expect(404);
        assert_eq!(begun(), before, "nothing is written for each");
        app.drain().await;
        let figures = app.get(&format!("/v1/broadcasts/{id}/statistics")).await.expect(200).json();
        assert_eq!(figures["links"], json!([{"url": "https://acme.example/spring?from=sms", "recipients": 1, "clicks": 20}]), "{figures}");
    }
}

// holds: broadcasts.links
#[tokio::test]
async fn tests_of_a_draft_do_not_count() {
    for app in TestApp::on_each().await {
        let body = json!({"name": "x", "channel": "sms", "text": "Our offer: https://acme.example/spring", "trackLinks": true});
        let id = draft(&app, body).await;
        add(&app, &id, ["+34600111222".to_owned()]).await;
        let tested = app.post(&format!("/v1/broadcasts/{id}/test"), json!({"to": "+34600111229"})).await.expect(202).json();
        let path = path(tested["message"]["text"].as_str().expect("a text"));
        app.raw("GET", &path, &[], Vec::new()).await.expect(302);
        let links = async || app.get(&format!("/v1/broadcasts/{id}/statistics")).await.expect(200).json()["links"].clone();
        let unopened = |url: &str| json!([{"url": url, "recipients": 0, "clicks": 0}]);
        assert_eq!(links().await, unopened("https://acme.example/spring"));
        let text = json!({"text": "Our offer: https://acme.example/summer"});
        app.request("PATCH", &format!("/v1/broadcasts/{id}"), Some(text)).await.expect(200);
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        assert_eq!(links().await, unopened("https://acme.example/summer"));
        let answer = app.raw("GET", &path, &[], Vec::new()).await.expect(302);
        assert_eq!(answer.header("location"), "https://acme.example/spring", "the test message stays usable");
    }
}

// holds: broadcasts.links
#[tokio::test]
async fn links_are_counted_only_if_that_was_asked() {
    let app = TestApp::start().await;
    let link = "https://acme.example/spring";
    let html = format!("<a href=\"{link}\">Spring</a> {link}");
    let body = json!({"name": "x", "channel": "email", "emailSubject": "s", "text": "See the page", "emailHtmlBody": html});
    let id = draft(&app, body).await;
    add(&app, &id, ["ada@example.net".to_owned()]).await;
    let shown = app.post(&format!("/v1/broadcasts/{id}/preview"), json!({})).await.expect(200).json();
    assert_eq!(shown["htmlBody"], html);
    app.request("PATCH", &format!("/v1/broadcasts/{id}"), Some(json!({"trackLinks": true}))).await.expect(200);
    let shown = app.post(&format!("/v1/broadcasts/{id}/preview"), json!({})).await.expect(200).json();
    let seen = shown["htmlBody"].as_str().unwrap_or_default();
    assert!(seen.contains("/l/") && seen.ends_with(&format!("</a> {link}")), "{seen}");
    let template =
        json!({"name": "x", "channel": "whatsapp", "messageType": "template", "trackLinks": true, "content": {"templateId": "t"}});
    let refused = app.post("/v1/broadcasts", template).await.expect(400).json();
    assert!(refused.to_string().contains("trackLinks"), "{refused}");
}

// holds: broadcasts.links
#[tokio::test]
async fn counted_links_of_html_lead_where_the_mail_program_would() {
    let app = TestApp::start().await;
    let html = "<a href=\"https://acme.example/\r\n\tspring?x=1&#38;y=2\">Spring</a>";
    let body = json!({"name": "x", "channel": "email", "emailSubject": "s", "emailHtmlBody": html, "trackLinks": true});
    let id = draft(&app, body).await;
    let tested = app.post(&format!("/v1/broadcasts/{id}/test"), json!({"to": "ada@example.net"})).await.expect(202).json();
    let message = app.get(&format!("/v1/messages/{}", tested["message"]["id"].as_str().expect("an id"))).await.expect(200).json();
    let path = path(&message.to_string()).trim_end_matches(['\\', '"']).to_owned();
    let answer = app.raw("GET", &path, &[], Vec::new()).await.expect(302);
    assert_eq!(answer.header("location"), "https://acme.example/spring?x=1&y=2");
}

// holds: broadcasts.links
#[tokio::test]
async fn a_broadcast_can_count_a_thousand_links() {
    for app in TestApp::on_each().await {
        let body = |count: usize| {
            let text: Vec<_> = (0..count).map(|n| format!("https://acme.example/{n}")).collect();
            json!({"name": "x", "channel": "email", "emailSubject": "s", "text": text.join(" "), "trackLinks": true})
        };
        let refused = app.post("/v1/broadcasts", body(1_001)).await.expect(400).json();
        assert_eq!(refused["details"]["errors"][0]["path"], "trackLinks", "{refused}");
        let id = draft(&app, body(1_000)).await;
        let tested = app.post(&format!("/v1/broadcasts/{id}/test"), json!({"to": "ada@example.net"})).await.expect(202).json();
        let path = path(tested["message"]["text"].as_str().expect("a text"));
        let answer = app.raw("GET", &path, &[], Vec::new()).await.expect(302);
        assert_eq!(answer.header("location"), "https://acme.example/0");
        let figures = app.get(&format!("/v1/broadcasts/{id}/statistics")).await.expect(200).json();
        assert_eq!(figures["links"].as_array().map(Vec::len), Some(1_000));
    }
}

/// The time for a text grew with the square of its links: minutes for this one.
#[tokio::test]
async fn a_text_of_links_alone_is_rewritten_in_time() {
    let app = TestApp::start().await;
    let text = "http://acme.example ".repeat(40_000);
    let body = json!({"name": "x", "channel": "email", "emailSubject": "s", "text": text, "trackLinks": true});
    let id = draft(&app, body).await;
    add(&app, &id, ["ada@example.net".to_owned()]).await;
    let begun = std::time::Instant::now();
    app.post(&format!("/v1/broadcasts/{id}/preview"), json!({})).await.expect(400);
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
}

// holds: broadcasts.statistics
#[tokio::test]
async fn figures_by_channel_country_and_reason_add_up() {
    for app in TestApp::on_each().await {
        let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Hello from Acme"})).await;
        let failing = (0..3).map(|n| format!("+1{}5550001", 212 + n));
        add(&app, &id, failing.chain(["+34600111222", "+351912345678", "+34600111224"].map(str::to_owned))).await;
        app.post("/v1/suppressions", json!({"identifier": "+34600111224"})).await.expect(201);
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        app.advance(Duration::from_secs(1)).await;
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        let [total, _, _, delivered, failed, skipped] = counts(&broadcast);
        let figures = app.get(&format!("/v1/broadcasts/{id}/statistics")).await.expect(200).json();
        let sum = |list: &str, field: &str| -> i64 {
            figures[list].as_array().into_iter().flatten().map(|group| group[field].as_i64().unwrap_or_default()).sum()
        };
        assert_eq!([total, delivered, failed, skipped], [6, 2, 3, 1], "{broadcast}");
        let of_countries = ["total", "delivered", "failed", "skipped", "pending", "sending"].map(|field| sum("countries", field));
        assert_eq!(of_countries, [6, 2, 3, 1, 0, 0], "{figures}");
        let first = &figures["countries"][0];
        assert_eq!((&first["country"], &first["failed"]), (&json!("US"), &json!(3)), "{figures}");
        assert_eq!(figures["channels"][0]["channel"], "sms");
        assert_eq!(sum("failures", "recipients"), 4, "{figures}");
        let queued = contacts(&app, &id, "").await.iter().filter(|contact| contact["messageId"].is_string()).count();
        assert!(queued >= 5 && sum("pace", "recipients") == queued as i64, "{queued}: {figures}");
        let codes: Vec<_> = figures["failures"].as_array().into_iter().flatten().map(|failure| failure["code"].clone()).collect();
        assert!(codes.contains(&json!("recipient_suppressed")), "{figures}");
        let listed = contacts(&app, &id, "&status=delivered").await;
        assert!(listed.iter().all(|contact| contact["channel"] == "sms"), "{listed:?}");
    }
}
