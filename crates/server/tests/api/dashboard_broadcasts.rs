//! Actions on the page of a broadcast that come too late, are refused, or follow another person's change.

use nuncio_domain::user::Role;
use nuncio_testkit::{Backend, TestApp};
use serde_json::json;

use crate::broadcasts::{act, add, draft, finish, get, phones, status, text};
use crate::dashboard::person;
use crate::money::with_prices;

const BAD: &str = "Please reply with your password to win";

/// Returns the value of an input on a page.
pub(crate) fn value<'a>(page: &'a str, name: &str) -> &'a str {
    let named = format!(" name=\"{name}\"");
    let input = page.split("<input").find(|input| input.contains(&named)).unwrap_or_else(|| panic!("no {name}: {page}"));
    input.split(" value=\"").nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_else(|| panic!("no value of {name}: {page}"))
}

/// Creates a broadcast that the review rejects.
async fn rejected(app: &TestApp, text: &str) -> String {
    let id = draft(app, json!({"name": "Win", "channel": "sms", "text": text})).await;
    add(app, &id, phones(2)).await;
    act(app, &id, "send").await.expect(202);
    app.drain().await;
    assert_eq!(status(app, &id).await, "rejected");
    id
}

// holds: pages.broadcasts
#[tokio::test]
async fn the_stored_time_is_shown_and_an_empty_one_means_now() {
    const STORED: &str = "2026-01-05T10:30:15Z";
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let scheduled = async |text: &str| {
            let id = draft(&app, json!({"name": "x", "channel": "sms", "text": text, "scheduledAt": STORED})).await;
            add(&app, &id, phones(1)).await;
            id
        };
        let kept = scheduled("Hello from Acme").await;
        let path = format!("/broadcasts/{kept}");
        let shown = browser.page(&path).await;
        assert_eq!(value(&shown, "at"), "2026-01-05T10:30:15");
        browser.submit(&path, &[("do", "send"), ("at", value(&shown, "at"))]).await.expect(303);
        app.drain().await;
        let broadcast = get(&app, &kept).await;
        assert_eq!((&broadcast["status"], &broadcast["scheduledAt"]), (&json!("scheduled"), &json!("2026-01-05T10:30:15.000Z")));
        assert_eq!(value(&browser.page(&path).await, "at"), "2026-01-05T10:30:15");

        let emptied = scheduled("Hello {{name}}").await;
        let path = format!("/broadcasts/{emptied}");
        let gap = browser.submit(&path, &[("do", "send"), ("at", "")]).await.expect(400).text;
        assert_eq!(value(&gap, "at"), "", "it stays empty");
        app.request("PATCH", &format!("/v1{path}"), Some(json!({"text": "Hello from Acme"}))).await.expect(200);
        browser.submit(&path, &[("do", "send"), ("at", "")]).await.expect(303);
        finish(&app).await;
        let broadcast = get(&app, &emptied).await;
        assert!(broadcast["status"] == "completed" && broadcast["scheduledAt"].is_null(), "{broadcast}");

        // Without a time, the API keeps the stored one.
        let by_api = scheduled("Hello from Acme").await;
        act(&app, &by_api, "send").await.expect(202);
        app.drain().await;
        assert_eq!(status(&app, &by_api).await, "scheduled");
    }
}

// holds: pages.broadcasts
#[tokio::test]
async fn a_rejected_broadcast_is_cancelled_and_says_when_it_is_not_reviewed_again() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let id = rejected(&app, BAD).await;
        let path = format!("/broadcasts/{id}");
        let page = browser.page(&path).await;
        assert!(
            page.contains("Review again") && page.contains("Cancel this broadcast?") && !page.contains("is not reviewed again"),
            "{page}"
        );
        for attempt in 2..=3 {
            browser.submit(&path, &[("do", "update"), ("name", "Win"), ("text", &format!("{BAD} {attempt}"))]).await.expect(303);
            browser.submit(&path, &[("do", "retry")]).await.expect(303);
            app.drain().await;
        }
        let page = browser.page(&path).await;
        assert!(page.contains("It was reviewed 3 times, and is not reviewed again."), "{page}");
        assert!(page.contains("Request human review") && !page.contains("Review again"), "{page}");
        browser.submit(&path, &[("do", "cancel")]).await.expect(303);
        assert_eq!(status(&app, &id).await, "cancelled");
        assert!(!browser.page(&path).await.contains("Cancel this broadcast?"));
    }
}

// holds: pages.broadcasts
#[tokio::test]
async fn saving_does_not_overwrite_what_was_changed_meanwhile() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let id = text(&app).await;
        let path = format!("/broadcasts/{id}");
        let page = browser.page(&path).await;
        let save = async |name: &str, text: &str, page: &str| {
            let fields = [("do", "update"), ("name", name), ("text", text), ("version", value(page, "version"))];
            browser.submit(&path, &fields).await
        };
        let wrong = save("", "First", &page).await.expect(400).text;
        app.request("PATCH", &format!("/v1{path}"), Some(json!({"text": "Second"}))).await.expect(200);
        let warned = save("Mine", "First", &wrong).await.expect(409).text;
        assert!(warned.contains("It was changed meanwhile.") && warned.contains("value=\"Mine\""), "{warned}");
        assert!(warned.contains(">First</textarea>") && warned.contains("<div class=\"letter\" dir=\"auto\">Second</div>"), "{warned}");
        assert_eq!(get(&app, &id).await["text"], "Second");
        save("Mine", "First", &warned).await.expect(303);
        let stored = get(&app, &id).await;
        assert_eq!((&stored["name"], &stored["text"]), (&json!("Mine"), &json!("First")));

        // Adding recipients does not change the content.
        let page = browser.page(&path).await;
        add(&app, &id, phones(1)).await;
        save("Mine", "Third", &page).await.expect(303);
        let page = browser.page(&path).await;
        act(&app, &id, "send").await.expect(202);
        let late = save("Mine", "A text of many words", &page).await.expect(409).text;
        assert!(late.contains("It was not saved.") && late.contains("A text of many words"), "{late}");
        assert!(late.contains("Your last action changed nothing") && !late.contains("pending_review"), "{late}");
    }
}

// holds: pages.broadcasts
#[tokio::test]
async fn what_is_sent_is_what_the_page_showed() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let id = text(&app).await;
        let path = format!("/broadcasts/{id}");
        add(&app, &id, phones(1)).await;
        let send = async |page: &str| {
            // The field of the form that sends follows that of the editor, with the same value.
            let fields = [
                ("do", "send"),
                ("at", "2026-06-01T10:00"),
                ("version", value(page, "version")),
                ("recipients", value(page, "recipients")),
            ];
            browser.submit(&path, &fields).await
        };
        let page = browser.page(&path).await;
        app.request("PATCH", &format!("/v1{path}"), Some(json!({"text": "Another text"}))).await.expect(200);
        let warned = send(&page).await.expect(409).text;
        assert!(warned.contains("It was changed meanwhile.") && warned.contains("Nothing was sent."), "{warned}");
        assert!(warned.contains("Another text") && value(&warned, "at") == "2026-06-01T10:00", "{warned}");
        app.post(&format!("/v1{path}/contacts"), json!({"contacts": [{"recipient": "+34600999999"}]})).await.expect(201);
        let warned = send(&warned).await.expect(409).text;
        assert!(warned.contains("Review and send to 2"), "{warned}");
        assert_eq!(status(&app, &id).await, "draft");
        send(&warned).await.expect(303);
        app.drain().await;
        assert_eq!(status(&app, &id).await, "scheduled");
    }
}

// holds: pages.broadcasts
#[tokio::test]
async fn a_broadcast_that_others_can_move_on_is_followed() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let id = rejected(&app, BAD).await;
        let path = format!("/broadcasts/{id}");
        let is_live = async || browser.page(&path).await.contains("data-live=\"whole\"");
        assert!(!is_live().await, "it can be edited");
        act(&app, &id, "escalate").await;
        assert_eq!(status(&app, &id).await, "escalated");
        assert!(is_live().await);
        act(&app, &id, "cancel").await;
        assert!(!is_live().await);
    }
}

// holds: pages.set_up
#[tokio::test]
async fn a_template_that_was_changed_meanwhile_is_not_overwritten() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let new = json!({"name": "hello", "language": "en", "body": "First"});
        let id = app.post("/v1/templates", new).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
        let path = format!("/templates/{id}");
        let page = browser.page(&path).await;
        let save = async |body: &str, page: &str| {
            let fields = [("do", "save"), ("body", body), ("category", "UTILITY"), ("version", value(page, "version"))];
            browser.submit(&path, &fields).await
        };
        app.request("PATCH", &format!("/v1{path}"), Some(json!({"body": "Second"}))).await.expect(200);
        let warned = save("Mine", &page).await.expect(409).text;
        assert!(warned.contains("It was changed meanwhile.") && warned.contains(">Mine</textarea>"), "{warned}");
        assert!(warned.contains("<div class=\"bub\" dir=\"auto\">Second"), "{warned}");
        save("Mine", &warned).await.expect(303);
        assert_eq!(app.get(&format!("/v1{path}")).await.expect(200).json()["body"], "Mine");
    }
}

// holds: pages.broadcasts, pages.composer
#[tokio::test]
async fn a_send_that_cannot_be_paid_for_stays_in_its_form() {
    for backend in Backend::all() {
        let app = with_prices(backend).await;
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let id = text(&app).await;
        add(&app, &id, phones(3)).await;
        let path = format!("/broadcasts/{id}");
        let send = [("do", "send"), ("at", "2026-02-01T09:30")];
        app.node.core.billing().limit_balance(app.tenant(), true).await.expect("a limit");
        let refused = browser.submit(&path, &send).await.expect(400).text;
        assert!(refused.contains("is required") && refused.contains("Review and send to 3"), "{refused}");
        assert_eq!(value(&refused, "at"), "2026-02-01T09:30");

        app.node.core.billing().limit_balance(app.tenant(), false).await.expect("no limit");
        let sender = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
        let limited = json!({"name": "Shop", "dailySpendLimit": 0.01});
        app.request("PATCH", &format!("/v1/senders/{sender}"), Some(limited)).await.expect(200);
        let message = [("do", "send"), ("to", "+34600111222"), ("channel", "sms"), ("text", "hello")];
        for (path, fields) in [(path.as_str(), &send[..]), ("/messages/new", &message[..])] {
            let refused = browser.submit(path, fields).await.expect(400).text;
            let summary = refused.split("role=\"alert\"").nth(1).and_then(|rest| rest.split("</div>").next()).expect("a summary");
            assert!(summary.contains("Sender Shop can spend $0.01 a day") && !summary.contains(&sender), "{path}: {summary}");
        }
    }
}

// holds: pages.broadcasts
#[tokio::test]
async fn a_second_click_says_that_it_changed_nothing() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "ow@example.net", Role::Owner).await;
        let says = async |path: &str, of: &str, fields: &[(&str, &str)], now: &str| {
            let led = browser.submit(path, fields).await.expect(303).header("location").to_owned();
            assert_eq!(led, format!("{of}?late=yes"), "{fields:?}");
            let page = browser.page(&led).await;
            assert!(page.contains("It is now: ") && page.contains("Your last action changed nothing"), "{page}");
            assert!(page.contains(now) && !page.contains("pending_review"), "{page}");
        };
        let id = text(&app).await;
        add(&app, &id, phones(1)).await;
        let path = format!("/broadcasts/{id}");
        browser.submit(&path, &[("do", "send")]).await.expect(303);
        says(&path, &path, &[("do", "send")], "In review").await;
        finish(&app).await;
        assert!(!browser.page(&path).await.contains("Your last action"));
        for verb in ["pause", "resume", "cancel", "delete", "select"] {
            says(&path, &path, &[("do", verb)], "Completed").await;
        }
        let bad = rejected(&app, BAD).await;
        let (path, review) = (format!("/broadcasts/{bad}"), format!("/reviews/{bad}"));
        // Not too late: it says what is missing.
        let unchanged = browser.submit(&path, &[("do", "retry")]).await.expect(400).text;
        assert!(unchanged.contains("has not changed since it was rejected"), "{unchanged}");
        act(&app, &bad, "escalate").await.expect(200);
        browser.submit(&review, &[("do", "approve")]).await.expect(303);
        says(&review, &path, &[("do", "approve")], "Sending").await;
    }
}

// holds: pages.broadcasts
#[tokio::test]
async fn findings_of_an_earlier_text_are_named_as_such() {
    let earlier = "The content was changed after the review, which flagged: ";
    for app in TestApp::on_each().await {
        let browser = person(&app, "ow@example.net", Role::Owner).await;
        let id = rejected(&app, BAD).await;
        let path = format!("/broadcasts/{id}");
        let page = browser.page(&path).await;
        assert!(page.contains("<mark>") && !page.contains("was changed after"), "{page}");
        browser.submit(&path, &[("do", "update"), ("name", "Win"), ("text", "Hello from Acme")]).await.expect(303);
        let page = browser.page(&path).await;
        assert!(page.contains(earlier) && page.contains("The content was changed after this review. "), "{page}");
        browser.submit(&path, &[("do", "escalate")]).await.expect(303);
        for page in [browser.page(&path).await, browser.page("/reviews").await] {
            assert!(page.contains(earlier) && !page.contains("for some recipients"), "{page}");
            assert_eq!(page.matches("The content was changed after this review.").count(), 1, "{page}");
        }
        browser.submit(&format!("/reviews/{id}"), &[("do", "approve"), ("why", "It is a game")]).await.expect(303);
        assert_eq!(get(&app, &id).await["reviewResult"]["reasoning"], "Approved by a person: It is a game");

        let id = draft(&app, json!({"name": "Win", "channel": "sms", "text": "Acme: {{note}}"})).await;
        let contact = json!({"recipient": "+34600111222", "templateVariables": {"note": BAD}});
        app.post(&format!("/v1/broadcasts/{id}/contacts"), json!({"contacts": [contact]})).await.expect(201);
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        let page = browser.page(&format!("/broadcasts/{id}")).await;
        assert!(page.contains("Flagged for some recipients: ") && !page.contains("was changed after"), "{page}");
    }
}

// holds: pages.forms
#[tokio::test]
async fn the_address_of_a_form_leads_to_its_page() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    for (form, page) in [
        ("/broadcasts/brd_1/columns", "/broadcasts/brd_1"),
        ("/reviews/brd_1", "/reviews"),
        ("/suppressions/sup_1", "/suppressions"),
        ("/invitations/inv_1", "/invitations"),
        ("/numbers/num_1", "/numbers"),
        ("/developers/keys/key_1", "/developers/keys"),
        ("/world", "/"),
        ("/sign-out", "/"),
    ] {
        assert_eq!(browser.get(form).await.expect(303).header("location"), page, "{form}");
    }
    browser.page("/").await;
}
