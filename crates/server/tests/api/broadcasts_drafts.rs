//! Broadcasts before they are sent: drafts, recipients, and previews.

use std::time::Duration;

use nuncio_testkit::TestApp;
use serde_json::{Value, json};

use crate::broadcasts::{act, add, contacts, counts, draft, finish, get, paths, phones, text};

// holds: broadcasts.create, broadcasts.fields, broadcasts.list, broadcasts.update, broadcasts.delete
#[tokio::test]
async fn drafts_are_made_edited_listed_and_deleted() {
    for app in TestApp::on_each().await {
        let body = json!({"name": "A", "channel": "auto", "text": "Hello", "metadata": {"a": 1}, "scheduledAt": "2026-06-01T00:00:00Z"});
        let id = draft(&app, body).await;
        let made = get(&app, &id).await;
        assert_eq!(
            (made["status"].as_str(), made["channel"].as_str(), made["messageType"].as_str()),
            (Some("draft"), Some("smart"), Some("text"))
        );
        assert_eq!((made["totalContacts"].as_i64(), made["scheduledAt"].as_str()), (Some(0), Some("2026-06-01T00:00:00.000Z")));
        assert!(made["senderId"].is_string() && made.get("estimatedCost").is_none(), "{made}");
        let path = format!("/v1/broadcasts/{id}");
        let patch = json!({"name": "B", "text": "Bye", "metadata": null, "emailSubject": "News"});
        let changed = app.request("PATCH", &path, Some(patch)).await.expect(200).json()["broadcast"].clone();
        assert_eq!((changed["name"].as_str(), changed["text"].as_str(), changed.get("metadata")), (Some("B"), Some("Bye"), None));
        assert_eq!(changed["emailSubject"], "News");
        let kept = app.request("PATCH", &path, Some(json!({}))).await.expect(200).json()["broadcast"].clone();
        assert_eq!((kept["name"].as_str(), kept["text"].as_str()), (Some("B"), Some("Bye")));
        assert_eq!(paths(&app.request("PATCH", &path, Some(json!({"name": null}))).await.expect(400).json()), ["name"]);
        let cleared = app.request("PATCH", &path, Some(json!({"text": null}))).await.expect(200).json();
        assert!(cleared["broadcast"].get("text").is_none(), "{cleared}");
        assert_eq!(paths(&app.request("PATCH", &path, Some(json!({"channel": "sms"}))).await.expect(400).json()), ["channel"]);
        app.clock.advance(Duration::from_millis(1));
        let other = text(&app).await;
        let list = app.get("/v1/broadcasts?limit=1&status=draft,sending").await.expect(200).json();
        assert_eq!(list["items"][0]["id"], other.as_str());
        let next = format!("/v1/broadcasts?limit=1&status=draft,sending&cursor={}", list["nextCursor"].as_str().expect("a cursor"));
        assert_eq!(app.get(&next).await.expect(200).json()["items"][0]["id"], id.as_str());
        assert_eq!(app.get("/v1/broadcasts?status=paused").await.expect(200).json()["items"], json!([]));
        app.get("/v1/broadcasts?status=gone").await.expect(400);
        add(&app, &id, phones(3)).await;
        app.request("DELETE", &path, None).await.expect(204);
        app.get(&path).await.expect(404);
        app.with_key(&app.live_key, "GET", &format!("/v1/broadcasts/{other}"), None).await.expect(404);
    }
}

#[tokio::test]
async fn every_fault_of_a_broadcast_is_told() {
    let app = TestApp::start().await;
    let wrong = async |body: Value| {
        let answer = app.post("/v1/broadcasts", body).await.expect(400).json();
        paths(&answer)
    };
    assert_eq!(wrong(json!({"channel": "pigeon", "colour": "red"})).await.len(), 3);
    assert_eq!(wrong(json!({"name": "x", "channel": "sms", "text": "x".repeat(1_601)})).await, ["text"]);
    assert_eq!(wrong(json!({"name": "x", "channel": "email", "text": "x", "emailSubject": ""})).await, ["emailSubject"]);
    assert_eq!(wrong(json!({"name": "x", "channel": "sms", "text": "x", "emailSubject": "x"})).await, ["emailSubject"]);
    assert_eq!(
        wrong(json!({"name": "x", "channel": "voice", "messageType": "image", "content": {"mediaUrl": "https://e.org/x"}})).await,
        ["messageType"]
    );
    let both = json!({"mediaUrl": "https://e.org/x", "mediaId": "1"});
    assert_eq!(wrong(json!({"name": "x", "channel": "whatsapp", "messageType": "image", "content": both})).await, ["content.mediaUrl"]);
    let braces = json!({"name": "x", "channel": "email", "text": "{{año}}", "emailSubject": "{{first-name}}",
        "emailHtmlBody": "<p>{{ .Subscriber.FirstName }}</p>"});
    assert_eq!(wrong(braces).await, ["text", "emailSubject", "emailHtmlBody"]);
    assert_eq!(wrong(json!({"name": "x", "channel": "sms", "text": "x", "content": {"emoji": "x"}})).await, ["content.emoji"]);
    assert_eq!(wrong(json!({"name": "x", "channel": "sms", "text": "x", "messageType": "sticker"})).await, ["messageType"]);
    assert_eq!(wrong(json!({"name": "x", "channel": "sms", "text": "x", "scheduledAt": "2027-01-02T00:00:00Z"})).await, ["scheduledAt"]);
    assert_eq!(wrong(json!({"name": "x", "channel": "sms", "text": "x", "metadata": {"a": "x".repeat(17_000)}})).await, ["metadata"]);
    let unknown =
        app.post("/v1/broadcasts", json!({"name": "x", "channel": "sms", "text": "x", "senderId": "snd_nobody"})).await.expect(404);
    assert_eq!(unknown.json()["details"]["errors"][0]["path"], "senderId");
    // Header or body name the sender; they must not differ.
    let sender = async |name: &str| {
        let made = app.post("/v1/senders", json!({"name": name})).await.expect(201).json();
        made["id"].as_str().expect("an id").to_owned()
    };
    let (one, other, auth) = (sender("one").await, sender("other").await, format!("Bearer {}", app.test_key));
    let headers = [("authorization", auth.as_str()), ("service-sender", one.as_str())];
    let named = json!({"name": "x", "channel": "sms", "text": "x"});
    let nobody = [("authorization", auth.as_str()), ("service-sender", "snd_nobody")];
    let unknown = app.send("POST", "/v1/broadcasts", &nobody, Some(named.clone())).await.expect(404);
    assert_eq!(unknown.json()["details"]["errors"][0]["path"], "header.Service-Sender");
    let both = |id: &str| json!({"name": "x", "channel": "sms", "text": "x", "senderId": id});
    for body in [named, both(&one)] {
        let made = app.send("POST", "/v1/broadcasts", &headers, Some(body)).await.expect(201).json();
        assert_eq!(made["broadcast"]["senderId"], one.as_str());
    }
    let differ = app.send("POST", "/v1/broadcasts", &headers, Some(both(&other))).await.expect(400).json();
    assert_eq!(differ["details"]["errors"][0]["path"], "senderId", "{differ}");
    let template = json!({"name": "x", "channel": "sms", "messageType": "template", "content": {"templateId": "tpl_nothing"}});
    app.post("/v1/broadcasts", template).await.expect(404);
}

// holds: broadcasts.idempotency
#[tokio::test]
async fn one_key_makes_one_broadcast() {
    for app in TestApp::on_each().await {
        let body = json!({"name": "x", "channel": "sms", "text": "x", "idempotencyKey": "k"});
        let id = draft(&app, body.clone()).await;
        let bare = json!({"name": "x", "channel": "sms", "text": "x"});
        let repeat = app.once("k", "/v1/broadcasts", bare).await.expect(409).json();
        assert_eq!((repeat["broadcast"]["id"].as_str(), repeat["code"].as_str()), (Some(id.as_str()), Some("idempotency_conflict")));
        let reused = app.post("/v1/broadcasts", json!({"name": "y", "channel": "sms", "text": "x", "idempotencyKey": "k"})).await;
        assert_eq!(reused.expect(409).json()["code"], "idempotency_key_reused");
        assert_eq!(app.get("/v1/broadcasts").await.json()["items"].as_array().map(Vec::len), Some(1));
    }
}

// holds: broadcasts.contacts.add, broadcasts.contacts.remove, broadcasts.update
#[tokio::test]
async fn recipients_are_added_counted_and_removed() {
    for app in TestApp::on_each().await {
        let id = text(&app).await;
        let given = ["+34600111222", "+34600111222", "nonsense", "a@example.org", "12345", "+34600111223"];
        let outcome = add(&app, &id, given.map(str::to_owned)).await;
        assert_eq!((outcome["added"].as_i64(), outcome["duplicates"].as_i64(), outcome["invalid"].as_i64()), (Some(2), Some(1), Some(3)));
        assert_eq!(outcome["errors"][0]["recipient"], "nonsense");
        let outcome = add(&app, &id, ["+34600111222".to_owned()]).await;
        assert_eq!(outcome, json!({"added": 0, "duplicates": 1, "invalid": 0}));
        assert_eq!(counts(&get(&app, &id).await), [2, 2, 0, 0, 0, 0]);
        let path = format!("/v1/broadcasts/{id}/contacts");
        let many: Vec<_> = phones(1_001).map(|r| json!({"recipient": r})).collect();
        app.post(&path, json!({"contacts": many})).await.expect(400);
        app.post(&path, json!({"contacts": []})).await.expect(400);
        let variables = json!({"contacts": [{"recipient": "+34600111224", "templateButtonVariables": {"0": "x"}}]});
        assert_eq!(app.post(&path, variables).await.expect(201).json()["invalid"], 1);
        let one = contacts(&app, &id, "&status=pending").await[0]["id"].as_str().expect("an id").to_owned();
        app.request("DELETE", &format!("{path}/{one}"), None).await.expect(204);
        app.request("DELETE", &format!("{path}/{one}"), None).await.expect(404);
        app.request("DELETE", &format!("{path}/bct_none"), None).await.expect(404);
        assert_eq!(counts(&get(&app, &id).await)[0], 1);
        act(&app, &id, "send").await.expect(202);
        let late = app.post(&path, json!({"contacts": [{"recipient": "+34600111229"}]})).await.expect(400).json();
        assert_eq!(late["details"], json!({"currentStatus": "pending_review", "allowedFrom": ["draft"]}));
        let left = contacts(&app, &id, "").await[0]["id"].as_str().expect("an id").to_owned();
        app.request("DELETE", &format!("{path}/{left}"), None).await.expect(400);
        app.request("DELETE", &format!("/v1/broadcasts/{id}"), None).await.expect(400);
        assert_eq!(
            app.request("PATCH", &format!("/v1/broadcasts/{id}"), Some(json!({"text": "y"}))).await.expect(400).json()["code"],
            "broadcast_not_editable"
        );
    }
}

async fn template(app: &TestApp, body: &str) -> String {
    let template = json!({"name": "hi", "language": "en", "body": body});
    app.post("/v1/templates", template).await.expect(201).json()["id"].as_str().expect("an id").to_owned()
}

#[tokio::test]
async fn templates_go_to_each_with_their_own_values() {
    let app = TestApp::start().await;
    let template = template(&app, "Hello {{1}} of {{2}}, says Acme").await;
    let body = json!({"name": "x", "channel": "sms", "messageType": "template", "content": {"templateId": template, "templateVariables": {"2": "Rome"}}});
    let id = draft(&app, body).await;
    let given = json!({"contacts": [
        {"recipient": "+34600111222", "templateVariables": {"1": "Ada"}},
        {"recipient": "+34600111223", "templateVariables": {"1": "Bo", "2": "Oslo"}},
        {"recipient": "+34600111224"},
        {"recipient": "+34600111225", "templateVariables": {"1": "x", "9": "x"}},
    ]});
    let outcome = app.post(&format!("/v1/broadcasts/{id}/contacts"), given).await.expect(201).json();
    assert_eq!((outcome["added"].as_i64(), outcome["invalid"].as_i64()), (Some(2), Some(2)));
    assert!(outcome["errors"][0]["reason"].as_str().is_some_and(|r| r.contains("templateVariables.1")), "{outcome}");
    act(&app, &id, "send").await.expect(202);
    finish(&app).await;
    let mut texts = Vec::new();
    for contact in contacts(&app, &id, "").await {
        texts.push(app.message(contact["messageId"].as_str().expect("a message")).await["text"].clone());
        assert!(contact["variables"]["templateVariables"]["1"].is_string());
    }
    texts.sort_by_key(Value::to_string);
    assert_eq!(texts, ["Hello Ada of Rome, says Acme", "Hello Bo of Oslo, says Acme"]);
    let body = json!({"name": "x", "channel": "whatsapp", "messageType": "template", "content": {"templateId": template, "templateVariables": {"1": "a", "2": "b"}}});
    let id = draft(&app, body).await;
    add(&app, &id, phones(1)).await;
    assert_eq!(act(&app, &id, "send").await.expect(400).json()["code"], "template_not_approved");
}

// holds: broadcasts.variables
#[tokio::test]
async fn subject_and_html_take_the_values_of_the_template() {
    for app in TestApp::on_each().await {
        let template = template(&app, "Hello {{1}}, says Acme").await;
        let body = json!({"name": "x", "channel": "email", "messageType": "template", "emailSubject": "News for {{name}}",
            "emailHtmlBody": "<p>Hello {{1}}, says Acme</p>", "content": {"templateId": template, "templateVariables": {"1": "you"}}});
        let id = draft(&app, body).await;
        let path = format!("/v1/broadcasts/{id}");
        let ada = json!({"recipient": "ada@example.org", "templateVariables": {"1": "A & B"}});
        app.post(&format!("{path}/contacts"), json!({"contacts": [ada, {"recipient": "bo@example.org"}]})).await.expect(201);
        let refused = act(&app, &id, "send").await.expect(400).json();
        assert_eq!(paths(&refused), ["emailSubject"], "{refused}");
        app.request("PATCH", &path, Some(json!({"emailSubject": "News for {{1}}"}))).await.expect(200);
        let shown = app.post(&format!("{path}/preview"), json!({"contact": ada})).await.expect(200).json();
        assert_eq!((&shown["subject"], &shown["htmlBody"]), (&json!("News for A & B"), &json!("<p>Hello A &amp; B, says Acme</p>")));
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        let mut subjects = Vec::new();
        for contact in contacts(&app, &id, "").await {
            subjects.push(app.message(contact["messageId"].as_str().expect("a message")).await["subject"].clone());
        }
        subjects.sort_by_key(Value::to_string);
        assert_eq!(subjects, ["News for A & B", "News for you"]);
    }
}

// holds: broadcasts.variables
#[tokio::test]
async fn values_that_the_template_misses_are_told_before_it_is_sent() {
    for app in TestApp::on_each().await {
        let template = template(&app, "Hello {{1}} of {{2}}, says Acme").await;
        let content = |values: Value| json!({"templateId": template, "templateVariables": values});
        let all = content(json!({"1": "Ada", "2": "Rome"}));
        let id = draft(&app, json!({"name": "x", "channel": "sms", "messageType": "template", "content": all})).await;
        add(&app, &id, phones(30)).await;
        let path = format!("/v1/broadcasts/{id}");
        app.request("PATCH", &path, Some(json!({"content": content(json!({"1": "Ada"}))}))).await.expect(200);
        let refused = act(&app, &id, "send").await.expect(400).json();
        let missing = paths(&refused);
        assert!(missing.len() == 20 && missing.iter().all(|path| path.ends_with("].templateVariables.2")), "{refused}");
        assert_eq!(get(&app, &id).await["status"], "draft");
        app.request("PATCH", &path, Some(json!({"content": all}))).await.expect(200);
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        assert_eq!(counts(&get(&app, &id).await), [30, 0, 0, 30, 0, 0]);
    }
}

#[tokio::test]
async fn what_was_deleted_is_named_wherever_a_broadcast_lacks_it() {
    for app in TestApp::on_each().await {
        let of = |template: &str| json!({"name": "x", "channel": "sms", "messageType": "template", "content": {"templateId": template}});
        let gone = template(&app, "Hello from Acme").await;
        let id = draft(&app, of(&gone)).await;
        add(&app, &id, phones(1)).await;
        let bad = json!({"name": "bad", "language": "en", "body": "Please reply with your password to win"});
        let bad = app.post("/v1/templates", bad).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
        let (rejected, escalated) = (draft(&app, of(&bad)).await, draft(&app, of(&bad)).await);
        for id in [&rejected, &escalated] {
            add(&app, id, phones(1)).await;
            act(&app, id, "send").await.expect(202);
        }
        app.drain().await;
        act(&app, &escalated, "escalate").await.expect(200);
        for template in [&gone, &bad] {
            app.request("DELETE", &format!("/v1/templates/{template}"), None).await.expect(204);
        }
        let path = format!("/v1/broadcasts/{id}");
        let recipients = json!({"contacts": [{"recipient": "+34600111222"}]});
        for (path, body) in [
            (format!("{path}/send"), json!({})),
            (format!("{path}/contacts"), recipients.clone()),
            (format!("{path}/contacts/select"), json!({})),
            (format!("{path}/preview"), json!({})),
            (format!("{path}/test"), json!({"to": "+34600111222"})),
            (format!("{path}/clone"), json!({})),
            (format!("/v1/broadcasts/{rejected}/escalate"), json!({})),
        ] {
            let refused = app.post(&path, body).await.expect(400).json();
            assert!(
                refused["message"].as_str().is_some_and(|message| message.contains("template of the broadcast was deleted")),
                "{refused}"
            );
        }
        let approval = app.node.core.broadcasts().decide_review(app.tenant(), &escalated, true, None).await;
        let refused = approval.expect_err("nothing to send");
        assert!(refused.message().contains("the template was deleted"), "{refused:?}");
        app.request("PATCH", &path, Some(json!({"name": "y"}))).await.expect(200);
        app.request("PATCH", &path, Some(json!({"content": {"templateId": gone}}))).await.expect(404);
        let other = template(&app, "Hello again from Acme").await;
        app.request("PATCH", &path, Some(json!({"content": {"templateId": other}}))).await.expect(200);
        act(&app, &id, "send").await.expect(202);

        let sender = app.post("/v1/senders", json!({"name": "Shop"})).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
        let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Hello", "senderId": sender})).await;
        add(&app, &id, phones(1)).await;
        app.request("DELETE", &format!("/v1/senders/{sender}"), None).await.expect(204);
        for verb in ["send", "clone", "preview"] {
            let refused = app.post(&format!("/v1/broadcasts/{id}/{verb}"), json!({})).await.expect(400).json();
            assert!(
                refused["message"].as_str().is_some_and(|message| message.contains("sender of the broadcast was deleted")),
                "{refused}"
            );
        }
    }
}

#[tokio::test]
async fn a_draft_gets_its_content_before_it_is_sent() {
    for app in TestApp::on_each().await {
        let whole = json!({"text": "Hello from Acme", "emailSubject": "News", "content": {"mediaUrl": "https://example.org/a.png"}});
        for (kind, channel, recipient, missing) in [
            ("text", "sms", "+34600111222", vec!["text"]),
            ("text", "email", "ada@example.org", vec!["text", "emailSubject"]),
            ("image", "whatsapp", "+34600111222", vec!["content.mediaUrl"]),
            ("template", "whatsapp", "+34600111222", vec!["content.templateId"]),
        ] {
            let id = draft(&app, json!({"name": "x", "channel": channel, "messageType": kind})).await;
            let added = add(&app, &id, [recipient.to_owned()]).await;
            assert_eq!(added["added"], 1, "{added}");
            let refused = act(&app, &id, "send").await.expect(400).json();
            assert_eq!(paths(&refused), missing, "{refused}");
            assert_eq!(get(&app, &id).await["status"], "draft");
            if kind == "template" {
                continue;
            }
            let given: serde_json::Map<String, Value> = missing
                .iter()
                .map(|path| path.split('.').next().unwrap_or(path))
                .map(|name| (name.to_owned(), whole[name].clone()))
                .collect();
            app.request("PATCH", &format!("/v1/broadcasts/{id}"), Some(given.into())).await.expect(200);
            act(&app, &id, "send").await.expect(202);
            finish(&app).await;
            assert_eq!(counts(&get(&app, &id).await), [1, 0, 0, 1, 0, 0]);
        }
    }
}

#[tokio::test]
async fn rejected_content_stays_complete() {
    let app = TestApp::start().await;
    let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Please reply with your password to win"})).await;
    add(&app, &id, phones(1)).await;
    act(&app, &id, "send").await.expect(202);
    finish(&app).await;
    assert_eq!(get(&app, &id).await["status"], "rejected");
    let emptied = app.request("PATCH", &format!("/v1/broadcasts/{id}"), Some(json!({"text": null}))).await.expect(400).json();
    assert_eq!(paths(&emptied), ["text"], "{emptied}");
}

#[tokio::test]
async fn a_smart_broadcast_reaches_phones_and_mailboxes() {
    let app = TestApp::start().await;
    let id = draft(&app, json!({"name": "x", "channel": "smart", "text": "Hello from Acme", "emailSubject": "News"})).await;
    let outcome = add(&app, &id, ["+34600111222".to_owned(), "ada@example.org".to_owned(), "4711".to_owned()]).await;
    assert_eq!((outcome["added"].as_i64(), outcome["invalid"].as_i64()), (Some(2), Some(1)));
    // The mailbox cannot go without a subject, also if it was removed later.
    let path = format!("/v1/broadcasts/{id}");
    app.request("PATCH", &path, Some(json!({"emailSubject": null}))).await.expect(200);
    assert_eq!(paths(&act(&app, &id, "send").await.expect(400).json()), ["emailSubject"]);
    app.request("PATCH", &path, Some(json!({"emailSubject": "News"}))).await.expect(200);
    act(&app, &id, "send").await.expect(202);
    finish(&app).await;
    assert_eq!(counts(&get(&app, &id).await), [2, 0, 0, 2, 0, 0]);
}

#[tokio::test]
async fn lenient_handling_drops_content_that_a_broadcast_does_not_use() {
    for app in TestApp::on_each().await {
        let auth = format!("Bearer {}", app.test_key);
        let body = json!({"name": "b", "channel": "sms", "text": "x", "emailSubject": "s", "content": {"mediaUrl": "https://x.example/a"}});
        app.post("/v1/broadcasts", body.clone()).await.expect(400);
        let lenient = [("authorization", auth.as_str()), ("prefer", "handling=lenient")];
        let made = app.send("POST", "/v1/broadcasts", &lenient, Some(body.clone())).await.expect(201).json()["broadcast"].take();
        assert!(made.get("emailSubject").is_none() && made["content"].get("mediaUrl").is_none(), "{made}");
        let path = format!("/v1/broadcasts/{}", made["id"].as_str().expect("an id"));
        let change = json!({"content": body["content"], "emailSubject": "s"});
        app.request("PATCH", &path, Some(change.clone())).await.expect(400);
        let changed = app.send("PATCH", &path, &lenient, Some(change)).await.expect(200).json()["broadcast"].take();
        assert!(changed.get("emailSubject").is_none() && changed["content"].get("mediaUrl").is_none(), "{changed}");
    }
}
