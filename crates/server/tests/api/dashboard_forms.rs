//! Forms and filters that get something they cannot take, and pages of messages that wait for a person.

use std::time::Duration;

use nuncio_domain::user::Role;
use nuncio_testkit::TestApp;
use serde_json::{Value, json};

use crate::broadcasts::{act, add, get, text};
use crate::dashboard::person;
use crate::dashboard_pages::upload;

// holds: pages.contacts, pages.set_up, pages.messages
#[tokio::test]
async fn a_filter_that_cannot_be_read_finds_nothing_and_says_why() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        app.send_message(json!({"to": "+34600111222", "text": "hello"})).await;
        let long = "x".repeat(201);
        for (path, typed, why) in [
            ("/contacts?q=", "%2B34600", "&quot;+34600&quot; is too short for a number of its country"),
            ("/contacts?q=", "ana%40", "&quot;ana@&quot; is not an email address"),
            ("/contacts?q=", &long, "It has 201 characters; must have 1 to 200."),
            ("/messages?q=", &long, "It has 201 characters; must have 1 to 200."),
            ("/suppressions?q=", "ana", "&quot;ana&quot; is not a recipient"),
            ("/numbers?country=", "spain", "It is &quot;SPAIN&quot;; must be an ISO 3166-1 alpha-2 code such as ES."),
            ("/numbers?country=US&contains=", "202-555", "It is &quot;202-555&quot;; must be at most 15 digits."),
        ] {
            let page = browser.page(&format!("{path}{typed}")).await;
            assert!(page.contains(why) && !page.contains("query."), "{path}{typed}: {page}");
        }
        let none = browser.page("/suppressions?q=%2B34600111222").await;
        assert!(none.contains("This recipient is not suppressed.") && !none.contains("No suppressions"), "{none}");
        // PostgreSQL takes no NUL.
        let broadcast = text(&app).await;
        let recipients = format!("/broadcasts/{broadcast}/recipients?q=%00");
        for path in
            ["/contacts?q=%00a", "/messages?q=%00a", "/messages?q=a%3D%00", "/messages?q=%00&in=to", "/suppressions?q=%00", &recipients]
        {
            browser.page(path).await;
        }
        // A cursor is not typed by anybody.
        browser.get("/contacts?cursor=nonsense").await.expect(400);
    }
}

// holds: pages.set_up
#[tokio::test]
async fn what_is_wrong_in_a_list_stands_at_the_field_of_the_list() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let sender = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
    let save = [("do", "save"), ("name", "Shop"), ("allowedCountries", "ES, Spain")];
    let page = browser.submit(&format!("/senders/{sender}"), &save).await.expect(400).text;
    assert!(page.contains("id=\"allowedCountries-fault\"") && page.contains("href=\"#allowedCountries\""), "{page}");
    let page = browser.submit("/invitations", &[("allowedPhoneCountries", "Spain")]).await.expect(400).text;
    assert!(page.contains("id=\"allowedPhoneCountries-fault\""), "{page}");
    let all = [("clientEmail", "ana"), ("allowedPhoneCountries", "Spain"), ("expiresInDays", "many")];
    let page = browser.submit("/invitations", &all).await.expect(400).text;
    assert!(all.iter().all(|(field, _)| page.contains(&format!("id=\"{field}-fault\""))), "all at once: {page}");

    // A comma at the end names no country. The label belongs to the field, which shares its name with no icon.
    let made = browser.submit("/invitations", &[("allowedPhoneCountries", "es,")]).await.expect(201).text;
    let of_label = made.split("<label for=\"").filter_map(|rest| rest.split_once("\">Link<")).map(|(id, _)| id).last().expect("a label");
    assert_eq!(made.matches(&format!(" id=\"{of_label}\"")).count(), 1, "{of_label}: {made}");
}

// holds: pages.contacts, pages.compose
#[tokio::test]
async fn what_is_wrong_beside_a_file_is_said_by_the_names_of_the_form() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let key = browser.form_key().await;
    let fields = [("key", key.as_str()), ("countries", "es, spain")];
    let page = upload(&browser, "/contacts", &fields, "a.csv", "phone\n600 111 222\n").await.expect(400).text;
    assert!(page.contains("id=\"countries-fault\"") && page.contains("&quot;SPAIN&quot; is not a country such as ES"), "{page}");
    assert!(page.contains("value=\"es, spain\"") && page.contains("No contacts yet"), "{page}");
    let large = format!("phone,notes\n{}", format!("+34600111222,{}\n", "x".repeat(1_000)).repeat(2_200));
    let page = upload(&browser, "/contacts", &fields[..1], "a.csv", &large).await.expect(400).text;
    assert!(page.contains("is larger than 2 MB; divide it"), "{page}");

    let path = format!("/broadcasts/{}", text(&app).await);
    for (field, value, why) in [
        ("countries", "spain", "&quot;SPAIN&quot; is not a country"),
        ("columns", "foo", "&quot;foo&quot; is not column:variable"),
        ("recipient", "foo", "the file has no column &quot;foo&quot;"),
        ("recipient", "", "no column has the name of a recipient"),
    ] {
        let file = if value.is_empty() { "a,b\n1,2\n" } else { "phone,name\n600111222,x\n" };
        let page = upload(&browser, &format!("{path}/recipients"), &[("key", &key), (field, value)], "a.csv", file).await.expect(400).text;
        let at_field = format!("id=\"{field}-fault\">{why}");
        assert!(page.contains(&at_field) && page.contains("<details open>") && !page.contains("query."), "{field}: {page}");
    }
    let page = upload(&browser, &format!("{path}/recipients"), &[("key", &key)], "a.csv", "").await.expect(400).text;
    assert!(page.contains("<a href=\"#file\">File is empty"), "{page}");
    let national = "phone\n600111222\n+34600111223\n";
    let page = upload(&browser, &format!("{path}/recipients"), &[("key", &key)], "a.csv", national).await.expect(200).text;
    assert!(page.contains("1 of 2 rows added") && page.contains("<details open>"), "the field for national numbers is open: {page}");
}

// holds: pages.compose
#[tokio::test]
async fn a_broadcast_stays_as_it_was_typed_when_its_template_or_sender_is_gone() {
    let app = TestApp::start().await;
    let browser = person(&app, "ma@example.net", Role::Operator).await;
    for (gone, why) in [
        (
            ("template", "tpl_01hgw2bbg0e9tatjpp9vyrkcyk"),
            "<a href=\"#template\">Template &quot;tpl_01hgw2bbg0e9tatjpp9vyrkcyk&quot; is not a template of this environment",
        ),
        (
            ("sender", "snd_01hgw2bbg0e9tatjpp9vyrkcyk"),
            "<a href=\"#sender\">From &quot;snd_01hgw2bbg0e9tatjpp9vyrkcyk&quot; is not a sender of this environment",
        ),
    ] {
        let write = [("name", "Spring"), ("channel", "sms"), ("text", if gone.0 == "sender" { "Hello" } else { "" }), gone];
        let page = browser.submit("/broadcasts/new", &write).await.expect(400).text;
        assert!(page.contains(why) && page.contains("value=\"Spring\""), "{gone:?}: {page}");
    }
}

// holds: pages.compose, pages.set_up
#[tokio::test]
async fn an_old_template_begins_a_broadcast_and_an_unknown_one_does_not() {
    let app = TestApp::start().await;
    let browser = person(&app, "ma@example.net", Role::Operator).await;
    let mut oldest = None;
    for n in 0..101 {
        let new = json!({"name": format!("hello_{n}"), "language": "en", "body": "Hello"});
        let made = app.post("/v1/templates", new).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
        oldest.get_or_insert(made);
        app.clock.advance(Duration::from_millis(1));
    }
    let oldest = oldest.expect("a template");
    let list = browser.page("/broadcasts/new").await;
    assert!(!list.contains(&oldest) && list.contains("To use one that is not here, open it."), "{list}");
    let path = format!("/broadcasts/new?template={oldest}");
    assert!(browser.page(&format!("/templates/{oldest}")).await.contains(&format!("href=\"{path}\"")));
    assert!(browser.page(&path).await.contains(&format!("<option value=\"{oldest}\" selected>hello_0 (en)</option>")));
    let unknown = browser.get("/broadcasts/new?template=tpl_01hgw2bbg0e9tatjpp9vyrkcyk").await.expect(404).text;
    assert!(unknown.contains("another environment or project"), "{unknown}");
    let both = [("name", "Spring"), ("channel", "sms"), ("text", "Hello"), ("template", oldest.as_str())];
    let refused = browser.submit("/broadcasts/new", &both).await.expect(400).text;
    assert!(refused.contains("must be empty: the template has the text") && !refused.contains("messageType"), "{refused}");
}

// holds: pages.forms
#[tokio::test]
async fn browsers_keep_what_was_typed_but_no_secret() {
    let app = TestApp::start().await;
    let browser = person(&app, "ow@example.net", Role::Owner).await;
    for path in ["/messages/new", "/broadcasts/new", "/templates/new", "/senders/new"] {
        let page = browser.page(path).await;
        assert_eq!(page.matches("autocomplete=").count(), 1, "the search of the navigation alone: {path}: {page}");
    }
    let people = browser.page("/settings/people").await;
    assert!(people.contains("type=\"password\" value=\"\" autocomplete=\"new-password\""), "{people}");
}

// holds: pages.composer, pages.compose, pages.set_up, pages.connect
#[tokio::test]
async fn a_form_that_was_sent_and_then_changed_can_be_sent_again() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        for (path, field, rest) in [
            ("/messages/new", "text", &[("to", "+34600111222"), ("channel", "sms"), ("do", "send")][..]),
            ("/broadcasts/new", "name", &[("channel", "sms"), ("text", "Hello")]),
            ("/senders/new", "name", &[]),
            ("/invitations", "clientName", &[]),
        ] {
            let send = async |text: &str, once: &str| {
                let fields: Vec<_> = rest.iter().copied().chain([(field, text), ("once", once)]).collect();
                browser.submit(path, &fields).await
            };
            assert!(send("First", "page-1").await.status.as_u16() < 400, "{path}");
            let changed = send("Second", "page-1").await.expect(400).text;
            assert!(changed.contains("You sent this form before") && changed.contains("Second"), "{path}: {changed}");
            let once = changed.split("name=\"once\" value=\"").last().and_then(|rest| rest.split('"').next()).expect("a key");
            assert!(send("Second", once).await.status.as_u16() < 400, "{path}");
        }
        for (path, count) in [("messages", 2), ("broadcasts", 2), ("invitations", 2)] {
            assert_eq!(app.get(&format!("/v1/{path}")).await.expect(200).json()["items"].as_array().map(Vec::len), Some(count), "{path}");
        }
    }
}

// holds: pages.conversations
#[tokio::test]
async fn an_email_without_a_subject_is_answered() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "su@example.net", Role::Operator).await;
        let mail = json!({"channel": "email", "from": "ana@example.com", "text": "Where is it?"});
        let contact = app.post("/v1/sandbox/inbound", mail).await.expect(202).json()["message"]["contactId"].clone();
        app.drain().await;
        let path = format!("/conversations/{}", contact.as_str().expect("a contact"));
        browser.submit(&path, &[("text", "On its way")]).await.expect(303);
        let newest =
            async || -> Value { app.get("/v1/messages?direction=outbound").await.expect(200).json()["items"][0]["subject"].take() };
        assert_eq!(newest().await, "Re:");
        // The answer to an answer, and to the longest subject.
        app.clock.advance(Duration::from_millis(1));
        browser.submit(&path, &[("text", "Tomorrow")]).await.expect(303);
        assert_eq!(newest().await, "Re:");
        app.clock.advance(Duration::from_millis(1));
        app.send_message(json!({"to": "ana@example.com", "subject": "ä".repeat(998), "text": "x"})).await;
        app.clock.advance(Duration::from_millis(1));
        browser.submit(&path, &[("text", "Today")]).await.expect(303);
        assert_eq!(newest().await, format!("Re: {}", "ä".repeat(994)));
    }
}

// holds: pages.broadcasts
#[tokio::test]
async fn a_broadcast_shows_since_when_it_is_sent_and_when_it_ended() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let (id, refused_first) = (text(&app).await, "+12125550004");
        add(&app, &id, ["+34600111222", refused_first].map(str::to_owned)).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        let begun = get(&app, &id).await;
        assert_eq!(begun["status"], "sending");
        let shown = |word: &str, at: &Value| format!("{word} <time datetime=\"{}\"", at.as_str().expect("a time"));
        let page = browser.page(&format!("/broadcasts/{id}")).await;
        assert!(page.contains(&shown("Sending</span> since", &begun["startedAt"])), "{page}");
        for _ in 0..5 {
            app.advance(Duration::from_secs(60)).await;
        }
        let ended = get(&app, &id).await;
        assert!(ended["status"] == "completed" && ended["completedAt"] != ended["startedAt"], "{ended}");
        let page = browser.page(&format!("/broadcasts/{id}")).await;
        assert!(page.contains(&shown("Completed</span> at", &ended["completedAt"])), "{page}");
    }
}

// holds: pages.home, pages.connect
#[tokio::test]
async fn the_webhook_of_the_environment_is_set_tested_and_deleted() {
    const PAGE: &str = "/developers/webhook";
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        assert!(browser.page("/developers/keys").await.contains(PAGE));
        assert!(viewer.page(PAGE).await.contains("No webhook is set."));
        let refused = browser.submit(PAGE, &[("do", "webhook"), ("webhookUrl", "ftp://example.com")]).await.expect(400).text;
        assert!(refused.contains("href=\"#webhookUrl\"") && refused.contains("ftp://example.com"), "{refused}");
        viewer.submit(PAGE, &[("do", "webhook"), ("webhookUrl", "https://example.com/hooks")]).await.expect(403);
        let made = browser.submit(PAGE, &[("do", "webhook"), ("webhookUrl", "https://example.com/hooks")]).await.expect(200).text;
        assert!(made.contains("Copy it now."), "{made}");
        assert_eq!(app.get("/v1/webhook").await.expect(200).json()["url"], "https://example.com/hooks");
        let tried = browser.submit(PAGE, &[("do", "try")]).await.expect(303).header("location").to_owned();
        assert!(browser.page(&tried).await.contains("A test event was sent."));
        app.drain().await;
        let shown = browser.page(PAGE).await;
        assert!(shown.contains("webhook.test") && !shown.contains("Copy it now."), "{shown}");

        let mut tx = app.store().begin().await.expect("a transaction");
        let mut webhook = tx.find_webhook(app.tenant(), None).await.expect("read").expect("the webhook");
        (webhook.active, webhook.disabled_reason) = (false, Some("the endpoint returned 410 Gone".to_owned()));
        tx.put_webhook(app.tenant(), &webhook).await.expect("written");
        tx.commit().await.expect("committed");
        let home = browser.page("/").await;
        assert!(home.contains("webhook is switched off") && home.contains(&format!("href=\"{PAGE}\"")), "{home}");
        // A corrected address alone does not switch it on.
        browser.submit(PAGE, &[("do", "webhook"), ("webhookUrl", "https://example.com/new")]).await.expect(303);
        assert!(browser.page(PAGE).await.contains("Switch it on"));
        browser.submit(PAGE, &[("do", "enable")]).await.expect(303);
        let webhook = app.get("/v1/webhook").await.expect(200).json();
        assert!(webhook["active"] == true && webhook["url"] == "https://example.com/new", "{webhook}");
        browser.submit(PAGE, &[("do", "delete")]).await.expect(303);
        app.get("/v1/webhook").await.expect(404);
    }
}

// holds: pages.messages
#[tokio::test]
async fn a_schedule_that_is_held_is_not_said_to_wait_for_its_time() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let soon = json!({"to": "+34600111222", "text": "x", "scheduledAt": "2026-01-01T02:00:00Z"});
        let path = format!("/messages/{}", app.send_message(soon).await);
        assert!(browser.page(&path).await.contains("Waiting for its scheduled time."));
        app.advance(Duration::from_secs(4 * 3_600)).await;
        let page = browser.page(&path).await;
        assert!(page.contains("Held for a human decision.") && page.contains("It was due long ago"), "{page}");
        assert!(!page.contains("Waiting for its scheduled time.") && !page.contains("No provider has it yet"), "{page}");
        assert!(page.contains("Send it now") && !page.contains("again"), "no attempt was made: {page}");
        browser.submit(&path, &[("do", "resend")]).await.expect(303);
        app.drain().await;
        assert!(browser.page(&path).await.contains("Delivered by SMS"));
    }
}

// holds: pages.home
#[tokio::test]
async fn home_says_that_there_are_more_held_messages_than_it_counts() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let hold = async |count: usize| {
        let messages = vec![json!({"to": "+34600111222", "text": "x", "scheduledAt": "2026-01-01T02:00:00Z"}); count];
        app.post("/v1/messages/batch", json!({"messages": messages})).await.expect(200);
    };
    hold(100).await;
    app.advance(Duration::from_secs(4 * 3_600)).await;
    let home = browser.page("/").await;
    assert!(home.contains("100 messages wait for your decision"), "{home}");
    let later = json!({"to": "+12125550008", "text": "hello", "onUnknown": "hold"});
    app.send_message(later).await;
    app.drain().await;
    let home = browser.page("/").await;
    assert!(home.contains("99 or more messages wait") && home.contains("1 or more messages wait"), "{home}");
}

// holds: pages.home, pages.connect
#[tokio::test]
async fn a_webhook_that_was_switched_off_is_named_and_switched_on_again() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        let sender = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
        let path = format!("/senders/{sender}");
        browser.submit(&path, &[("do", "webhook"), ("webhookUrl", "https://example.com/hooks")]).await.expect(200);
        assert!(!browser.page(&path).await.contains("Switched off"));
        let now = app.node.core.ids().clock.now();
        let mut tx = app.store().begin().await.expect("a transaction");
        let mut webhook = tx.list_webhooks(app.tenant()).await.expect("webhooks").pop().expect("the webhook");
        (webhook.active, webhook.failing_since) = (false, Some(now));
        webhook.disabled_reason = Some("the endpoint returned 410 Gone".to_owned());
        tx.put_webhook(app.tenant(), &webhook).await.expect("written");
        tx.commit().await.expect("committed");

        let home = browser.page("/").await;
        assert!(home.contains("is switched off") && home.contains("It gets no events: the endpoint returned 410 Gone."), "{home}");
        assert!(home.contains(&format!("href=\"{path}#webhook\"")) && !home.contains("every webhook responds"), "{home}");
        // A corrected address alone does not switch it on.
        browser.submit(&path, &[("do", "webhook"), ("webhookUrl", "https://example.com/new")]).await.expect(303);
        let seen = viewer.page(&path).await;
        assert!(seen.contains("Switched off") && seen.contains("automatically: ") && !seen.contains("Switch it on"), "{seen}");
        let page = browser.page(&path).await;
        assert!(page.contains("Switch it on") && !page.contains("Send a test event"), "it would be refused: {page}");
        viewer.submit(&path, &[("do", "enable")]).await.expect(403);
        browser.submit(&path, &[("do", "enable")]).await.expect(303);
        let page = browser.page(&path).await;
        assert!(!page.contains("Switched off") && page.contains("Send a test event"), "{page}");
        assert_eq!(app.get(&format!("/v1/senders/{sender}")).await.expect(200).json()["webhook"]["active"], true);
        // What a person switches off is their own decision.
        app.request("PATCH", &format!("/v1/senders/{sender}"), Some(json!({"webhookActive": false}))).await.expect(200);
        let calm = browser.page("/").await;
        assert!(
            calm.contains("Nothing needs you") && calm.contains("every webhook responds") && !calm.contains("class=\"empty\""),
            "{calm}"
        );
        assert!(browser.page(&path).await.contains("A person switched it off"));
    }
}
