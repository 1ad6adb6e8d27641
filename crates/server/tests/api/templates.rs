//! Templates: creation, approval, and messages made from them.

use std::time::Duration;

use nuncio_domain::Environment;
use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_testkit::TestApp;
use serde_json::{Value, json};

use crate::broadcasts::{act, add, contacts, draft, finish, phones, status};

async fn make(app: &TestApp, body: Value) -> String {
    app.post("/v1/templates", body).await.expect(201).json()["id"].as_str().expect("an id").to_owned()
}

fn order() -> Value {
    json!({
        "name": "order_shipped", "language": "en_US", "body": "Hello {{1}}, order {{2}} left.", "smsBody": "{{1}}: {{2}} left",
        "headerType": "text", "headerContent": "News for {{name}}", "footer": "Acme", "whatsappCategory": "MARKETING",
        "buttons": [{"type": "url", "text": "Track", "url": "https://example.com/t/{{1}}", "example": "https://example.com/t/7"}],
    })
}

async fn sender(app: &TestApp) -> String {
    let world = app.node.core.tenant_config(app.tenant()).await.expect("the test world");
    world.default_sender().expect("a sender").id.to_string()
}

async fn submit(app: &TestApp, id: &str) -> Value {
    let sender = sender(app).await;
    let answer = app.post(&format!("/v1/templates/{id}/submit"), json!({"senderId": sender})).await.expect(202).json();
    app.drain().await;
    answer
}

fn paths(answer: &Value) -> Vec<String> {
    let errors = answer["details"]["errors"].as_array().cloned().unwrap_or_default();
    errors.iter().map(|e| e["path"].as_str().unwrap_or_default().to_owned()).collect()
}

// holds: templates.list, templates.create, templates.get, templates.delete
#[tokio::test]
async fn a_template_is_made_read_listed_and_deleted() {
    for app in TestApp::on_each().await {
        let id = make(&app, order()).await;
        let template = app.get(&format!("/v1/templates/{id}")).await.expect(200).json();
        assert_eq!((template["status"].as_str(), template["category"].as_str()), (Some("draft"), Some("MARKETING")));
        assert_eq!(template["variables"], json!(["1", "2"]));
        assert_eq!(template["buttons"][0]["type"], "url");
        assert_eq!(app.post("/v1/templates", order()).await.expect(409).json()["code"], "conflict");
        app.clock.advance(Duration::from_millis(1));
        let other = make(&app, json!({"name": "order_shipped", "language": "es", "body": "Hola"})).await;
        let first = app.get("/v1/templates?limit=1").await.expect(200).json();
        assert_eq!(first["items"][0]["id"], other.as_str());
        let next = format!("/v1/templates?limit=1&cursor={}", first["nextCursor"].as_str().expect("a cursor"));
        let second = app.get(&next).await.expect(200).json();
        assert_eq!((second["items"][0]["id"].as_str(), &second["nextCursor"]), (Some(id.as_str()), &Value::Null));
        app.get("/v1/templates?limit=101").await.expect(400);
        app.request("DELETE", &format!("/v1/templates/{id}"), None).await.expect(204);
        app.get(&format!("/v1/templates/{id}")).await.expect(404);
        app.request("DELETE", &format!("/v1/templates/{id}"), None).await.expect(404);
        make(&app, order()).await;
    }
}

#[tokio::test]
async fn one_key_makes_one_template() {
    let app = TestApp::start().await;
    let made = app.once("k", "/v1/templates", order()).await.expect(201).json();
    let repeat = app.once("k", "/v1/templates", order()).await.expect(409).json();
    assert_eq!((&repeat["template"]["id"], repeat["code"].as_str()), (&made["id"], Some("idempotency_conflict")));
    let mut other = order();
    other["body"] = "Bye {{1}} {{2}}".into();
    let reused = app.once("k", "/v1/templates", other).await.expect(409).json();
    assert_eq!(reused["code"], "idempotency_key_reused");
}

// holds: templates.limits, templates.variables
#[tokio::test]
async fn every_fault_of_a_template_is_told() {
    let app = TestApp::start().await;
    let wrong = json!({
        "name": " x", "language": "English", "body": "{{1}} {{3}} {{0}}", "smsBody": "{{name}}", "variables": ["1", "9", "1"],
        "headerType": "image", "headerContent": "no url", "footer": "{{1}}",
        "buttons": [
            {"type": "url", "text": "x", "url": "https://example.com/{{1}}/x"},
            {"type": "phone", "text": "x", "phoneNumber": "123"},
            {"type": "quick_reply", "text": "x", "url": "https://example.com"},
        ],
    });
    let found = paths(&app.post("/v1/templates", wrong).await.expect(400).json());
    for path in [
        "name", "language", "body", "variables[1]", "variables[2]", "variables", "headerContent", "footer", "buttons[0].url",
        "buttons[1].phoneNumber", "buttons[2].url",
    ] {
        assert!(found.iter().any(|p| p == path), "{path}: {found:?}");
    }
    let long = json!({"name": "x", "language": "en", "body": "x".repeat(1_025), "footer": "x".repeat(61), "colour": "red",
        "buttons": [{"type": "otp", "text": "x".repeat(26)}]});
    let found = paths(&app.post("/v1/templates", long).await.expect(400).json());
    assert_eq!(found.len(), 4, "{found:?}");
    let header = json!({"name": "x", "language": "en", "body": "x", "headerType": "text"});
    assert_eq!(paths(&app.post("/v1/templates", header).await.expect(400).json()), ["headerContent"]);
    for (body, sms, expected) in [
        ("{{1}}", "{{name}}", "smsBody: uses {{name}} beside {{1}}; use either numbers or names"),
        ("{{1}}", "{{1}} {{3}}", "smsBody: skips {{2}}; numbered variables count from 1 without a gap"),
        ("{{2}}", "{{1}}", "body: skips {{1}}; numbered variables count from 1 without a gap"),
        (" \u{3000}", "x", "body: has only whitespace; must have visible text"),
    ] {
        let template = json!({"name": "x", "language": "en", "body": body, "smsBody": sms});
        let refused = app.post("/v1/templates", template).await.expect(400).json();
        assert_eq!(refused["message"], expected);
    }
}

// holds: templates.submit
#[tokio::test]
async fn a_submitted_template_is_decided_and_told() {
    for app in TestApp::on_each().await {
        let id = make(&app, order()).await;
        assert_eq!(submit(&app, &id).await["status"], "pending");
        let template = app.get(&format!("/v1/templates/{id}")).await.json();
        assert_eq!((template["status"].as_str(), template["senderId"].as_str()), (Some("approved"), Some(sender(&app).await.as_str())));
        let again = app.post(&format!("/v1/templates/{id}/submit"), json!({"senderId": sender(&app).await})).await.expect(400).json();
        assert_eq!(again["details"], json!({"currentStatus": "approved", "allowedFrom": ["draft", "rejected"]}));
        let refused = make(&app, json!({"name": "reject_me", "language": "en", "body": "x"})).await;
        submit(&app, &refused).await;
        let template = app.get(&format!("/v1/templates/{refused}")).await.json();
        assert_eq!(template["status"], "rejected");
        assert!(template["rejectionReason"].is_string(), "{template}");
        submit(&app, &refused).await; // can be submitted again
        let undecided = make(&app, json!({"name": "pending_for_ever", "language": "en", "body": "x"})).await;
        submit(&app, &undecided).await;
        app.advance(Duration::from_secs(7 * 86_400)).await;
        assert_eq!(app.get(&format!("/v1/templates/{undecided}")).await.json()["status"], "pending");
        let uuid = id.parse::<nuncio_domain::TemplateId>().expect("an id").uuid();
        let told = app.store().read().await.expect("a reader").list_resource_events(app.tenant(), ResourceKind::Template, uuid).await;
        let told: Vec<_> = told.expect("events").into_iter().flat_map(|(_, o)| o).collect();
        let steps: Vec<_> = told.iter().map(|o| (o.data["previousStatus"].as_str(), o.data["template"]["status"].as_str())).collect();
        assert_eq!(steps, [(Some("draft"), Some("pending")), (Some("pending"), Some("approved"))]);
    }
}

#[tokio::test]
async fn what_cannot_be_submitted_is_said() {
    let app = TestApp::start().await;
    let id = make(&app, json!({"name": "Order Shipped", "language": "en", "body": "x"})).await;
    let path = format!("/v1/templates/{id}/submit");
    assert_eq!(paths(&app.post(&path, json!({"senderId": sender(&app).await})).await.expect(400).json()), ["name"]);
    app.post(&path, json!({"senderId": "snd_nobody"})).await.expect(404);
    app.post(&path, json!({})).await.expect(400);
    let live = format!("Bearer {}", app.live_key);
    let auth = [("authorization", live.as_str())];
    let made = app.send("POST", "/v1/templates", &auth, Some(json!({"name": "x", "language": "en", "body": "x"}))).await.expect(201).json();
    let world = app.node.core.tenant_config(app.project.live).await.expect("the live world");
    let body = json!({"senderId": world.default_sender().expect("a sender").id.to_string()});
    let path = format!("/v1/templates/{}/submit", made["id"].as_str().expect("an id"));
    let refused = app.send("POST", &path, &auth, Some(body)).await.expect(400).json();
    assert_eq!(refused["code"], "sender_not_configured");
}

fn message(to: &str, channel: &str, id: &str) -> Value {
    json!({"to": to, "channel": channel, "messageType": "template", "content": {"templateId": id, "templateVariables": {"1": "Ada", "2": "77"},
        "templateHeaderVariables": {"name": "you"}, "templateButtonVariables": {"0": "xyz"}}})
}

// holds: messages.template, templates.render
#[tokio::test]
async fn a_message_is_made_from_a_template() {
    let app = TestApp::start().await;
    let id = make(&app, order()).await;
    let sent = app.send_message(message("+34600111222", "sms", &id)).await;
    app.drain().await;
    let sms = app.message(&sent).await;
    assert_eq!(sms["text"], "News for you\n\nAda: 77 left\n\nAcme\n\nTrack: https://example.com/t/xyz");
    assert_eq!((sms["messageType"].as_str(), sms["status"].as_str()), (Some("template"), Some("delivered")));
    let mut mail = message("ada@example.org", "email", &id);
    mail["subject"] = "Order".into();
    let mail = app.message(&app.send_message(mail).await).await;
    assert!(mail["text"].as_str().is_some_and(|t| t.contains("Hello Ada, order 77 left.")), "{mail}");
    let call = app.message(&app.send_message(message("+34600111222", "voice", &id)).await).await;
    assert_eq!(call["text"], "Hello Ada, order 77 left.");
}

/// A call speaks the body; the text for SMS neither costs nor saves a minute.
#[tokio::test]
async fn a_call_costs_what_is_spoken() {
    let app = TestApp::start().await;
    let csv = "channel,country,unit,provider,fee\nvoice,*,minute,0.02,0\n";
    app.node.core.billing().import_prices(None, csv, true).await.expect("good prices");
    for (name, body, sms, cost) in [("short", "Hi".to_owned(), "x".repeat(1_000), 0.02), ("long", "x".repeat(1_000), "Hi".to_owned(), 0.04)]
    {
        let id = make(&app, json!({"name": name, "language": "en", "body": body, "smsBody": sms})).await;
        let call = json!({"to": "+34600111222", "channel": "voice", "messageType": "template", "content": {"templateId": id}});
        let sent = app.send_message(call).await;
        app.drain().await;
        assert_eq!(app.message(&sent).await["costTotal"], cost, "{name}");
    }
}

// holds: messages.template.approved
#[tokio::test]
async fn whatsapp_carries_approved_templates_only() {
    let app = TestApp::start().await;
    let id = make(&app, order()).await;
    let refused = app.post("/v1/messages", message("+34600111222", "whatsapp", &id)).await.expect(400).json();
    assert_eq!(refused["code"], "template_not_approved");
    let auto = app.message(&app.send_message(message("+34600111222", "auto", &id)).await).await;
    assert_eq!(auto["channel"], "sms", "what WhatsApp does not carry goes by SMS");
    submit(&app, &id).await;
    let sent = app.send_message(message("+34600111222", "whatsapp", &id)).await;
    app.drain().await;
    assert_eq!(app.message(&sent).await["status"], "delivered");
    let auto = app.message(&app.send_message(message("+34600111222", "auto", &id)).await).await;
    assert_eq!(auto["channel"], "whatsapp");
    // Closed windows do not affect templates. If WhatsApp cannot deliver, the text is sent as fallback.
    let fallen = app.send_message(message("+12125550002", "whatsapp", &id)).await;
    app.drain().await;
    let fallen = app.message(&fallen).await;
    assert_eq!((fallen["channel"].as_str(), fallen["status"].as_str()), (Some("sms"), Some("delivered")));
    assert!(fallen["text"].as_str().is_some_and(|t| t.contains("Ada: 77 left")), "{fallen}");
}

// holds: messages.template, templates.variables
#[tokio::test]
async fn variables_are_held_against_the_template() {
    let app = TestApp::start().await;
    let id = make(&app, order()).await;
    let mut wrong = message("+34600111222", "sms", &id);
    wrong["content"]["templateVariables"] = json!({"1": "Ada", "3": "x"});
    wrong["content"]["templateHeaderVariables"] = json!({});
    wrong["content"]["templateButtonVariables"] = json!({"0": "x", "1": "x"});
    let found = paths(&app.post("/v1/messages", wrong).await.expect(400).json());
    assert_eq!(
        found,
        [
            "content.templateVariables.2",
            "content.templateVariables.3",
            "content.templateHeaderVariables.name",
            "content.templateButtonVariables.1"
        ]
    );
    for value in ["a b", "a\nb", " "] {
        let mut broken = message("+34600111222", "sms", &id);
        broken["content"]["templateButtonVariables"]["0"] = value.into();
        let refused = app.post("/v1/messages", broken).await.expect(400).json();
        assert_eq!(paths(&refused), ["content.templateButtonVariables.0"]);
        assert!(refused["message"].as_str().is_some_and(|text| text.contains("makes the link \"https://example.com/t/")), "{refused}");
    }
    let mut text = message("+34600111222", "sms", &id);
    text["text"] = "mine".into();
    assert_eq!(paths(&app.post("/v1/messages", text).await.expect(400).json()), ["text"]);
    let missing = app.post("/v1/messages", message("+34600111222", "sms", "tpl_unknown")).await.expect(404).json();
    let expected = json!([{"path": "content.templateId", "message": "\"tpl_unknown\" is not a template of this environment"}]);
    assert_eq!(missing["details"]["errors"], expected);
    let bare = make(&app, json!({"name": "bare", "language": "en", "body": "{{1}}"})).await;
    let blank = json!({"to": "+34600111222", "channel": "sms", "messageType": "template",
        "content": {"templateId": bare, "templateVariables": {"1": " "}}});
    assert_eq!(paths(&app.post("/v1/messages", blank).await.expect(400).json()), ["content.templateVariables"]);
    let other = app.node.core.projects().create("other", None).await.expect("a project");
    let key = app.node.core.keys().create(other.test, Environment::Test, "k", nuncio_domain::Permissions::ALL, None).await.expect("a key");
    let auth = format!("Bearer {}", key.secret.expose());
    app.send("POST", "/v1/messages", &[("authorization", &auth)], Some(message("+34600111222", "sms", &id))).await.expect(404);
    let mut long = message("+34600111222", "sms", &id);
    long["content"]["templateVariables"] = json!({"1": "x".repeat(1_000), "2": "y".repeat(1_000)});
    assert_eq!(paths(&app.post("/v1/messages", long).await.expect(400).json()), ["content.templateVariables"]);
}

// holds: templates.update
#[tokio::test]
async fn an_approved_template_stays_in_use_until_its_new_version_is_approved() {
    for app in TestApp::on_each().await {
        let id = make(&app, json!({"name": "greeting", "language": "en", "body": "Hello {{1}}", "smsBody": "Hi {{1}}"})).await;
        let path = format!("/v1/templates/{id}");
        let draft = app.get(&path).await.expect(200).json();
        assert_eq!((&draft["version"], draft.get("approvedVersion")), (&json!(1), None));
        submit(&app, &id).await;
        let approved = app.get(&path).await.expect(200).json();
        assert_eq!((&approved["status"], &approved["version"], &approved["approvedVersion"]), (&json!("approved"), &json!(1), &json!(1)));
        let change = async |body: Value| app.request("PATCH", &path, Some(body)).await.expect(200).json();
        assert_eq!(change(json!({"body": "Hello {{1}}"})).await, approved, "nothing changed");
        app.clock.advance(Duration::from_millis(1));
        let edited = change(json!({"body": "Dear {{1}} of {{2}}", "smsBody": null, "footer": "Acme"})).await;
        assert_eq!((&edited["status"], &edited["version"], &edited["approvedVersion"]), (&json!("draft"), &json!(2), &json!(1)));
        assert_eq!((&edited["variables"], edited.get("smsBody"), &edited["footer"]), (&json!(["1", "2"]), None, &json!("Acme")));
        assert_eq!(app.get(&path).await.expect(200).json(), edited);
        // All channels send what was approved.
        let text_by = async |channel: &str, variables: Value, status: u16| {
            let body = json!({"to": "+34600111222", "channel": channel, "messageType": "template",
                "content": {"templateId": id, "templateVariables": variables}});
            app.post("/v1/messages", body).await.expect(status).json()["message"]["text"].clone()
        };
        assert_eq!(text_by("whatsapp", json!({"1": "Ada"}), 202).await, "Hi Ada");
        assert_eq!(text_by("sms", json!({"1": "Ada"}), 202).await, "Hi Ada");
        text_by("sms", json!({"1": "Ada", "2": "Acme"}), 400).await;
        submit(&app, &id).await;
        let approved = app.get(&path).await.expect(200).json();
        assert_eq!((&approved["status"], &approved["version"], &approved["approvedVersion"]), (&json!("approved"), &json!(2), &json!(2)));
        assert_eq!(text_by("sms", json!({"1": "Ada", "2": "Acme"}), 202).await, "Dear Ada of Acme\n\nAcme");
        // A version that WhatsApp rejects does not replace the approved one.
        change(json!({"body": "reject {{1}} {{2}}"})).await;
        submit(&app, &id).await;
        let rejected = app.get(&path).await.expect(200).json();
        assert_eq!((&rejected["status"], &rejected["version"], &rejected["approvedVersion"]), (&json!("rejected"), &json!(3), &json!(2)));
        assert_eq!(text_by("whatsapp", json!({"1": "Ada", "2": "Acme"}), 202).await, "Dear Ada of Acme\n\nAcme");
        let page = app.get(&format!("/v1/events?resourceId={id}")).await.expect(200).json();
        let told: Vec<_> = page["items"].as_array().expect("items").iter().map(|e| e["data"]["template"]["status"].clone()).collect();
        let expected = ["rejected", "pending", "draft", "approved", "pending", "draft", "approved", "pending"];
        assert_eq!(told, expected.map(|status| json!(status)));
    }
}

// holds: templates.update
#[tokio::test]
async fn a_change_of_a_template_is_held_to_its_rules() {
    for app in TestApp::on_each().await {
        // The simulator never decides on a template with this name.
        let id = make(&app, json!({"name": "pending", "language": "en", "body": "Hello {{1}}"})).await;
        let path = format!("/v1/templates/{id}");
        for (change, fault) in [
            (json!({"body": null}), "body"),
            (json!({"body": "{{0}}"}), "body"),
            (json!({"smsBody": "{{name}}"}), "smsBody"),
            (json!({"variables": ["2"]}), "variables[0]"),
            (json!({"headerType": "text"}), "headerContent"),
            (json!({"name": "other"}), "name"),
            (json!({"language": "es"}), "language"),
            (json!({"buttons": null}), "buttons"),
        ] {
            let refused = app.request("PATCH", &path, Some(change.clone())).await.expect(400).json();
            assert_eq!(paths(&refused)[0], fault, "{change}: {refused}");
        }
        let changed = app.request("PATCH", &path, Some(json!({"whatsappCategory": "MARKETING"}))).await.expect(200).json();
        assert_eq!((&changed["category"], &changed["version"], &changed["status"]), (&json!("MARKETING"), &json!(2), &json!("draft")));
        // A draft that was never approved is used as is.
        let body = json!({"to": "+34600111222", "channel": "sms", "messageType": "template",
            "content": {"templateId": id, "templateVariables": {"1": "Ada"}}});
        app.request("PATCH", &path, Some(json!({"body": "Dear {{1}}"}))).await.expect(200);
        assert_eq!(app.post("/v1/messages", body).await.expect(202).json()["message"]["text"], "Dear Ada");
        let sender = sender(&app).await;
        app.post(&format!("{path}/submit"), json!({"senderId": sender})).await.expect(202);
        let pending = app.request("PATCH", &path, Some(json!({"footer": "x"}))).await.expect(400).json();
        assert_eq!(pending["details"]["allowedFrom"], json!(["draft", "rejected", "approved"]));
        app.request("PATCH", "/v1/templates/tpl_01hgw2bbg0e9tatjpp9vyrkcyk", Some(json!({}))).await.expect(404);
    }
}

async fn reword(app: &TestApp, id: &str, body: &str) {
    app.request("PATCH", &format!("/v1/templates/{id}"), Some(json!({"body": body}))).await.expect(200);
}

/// Creates a broadcast of a template with two recipients.
async fn broadcast(app: &TestApp, template: &str, channel: &str) -> String {
    let id = draft(app, json!({"name": "x", "channel": channel, "messageType": "template", "content": {"templateId": template}})).await;
    add(app, &id, phones(2)).await;
    id
}

/// Returns the texts of a broadcast's messages.
async fn texts(app: &TestApp, id: &str) -> Vec<Value> {
    let mut texts = Vec::new();
    for contact in contacts(app, id, "").await {
        texts.push(app.message(contact["messageId"].as_str().expect("a message")).await["text"].clone());
    }
    texts
}

// holds: templates.update, broadcasts.review
#[tokio::test]
async fn a_broadcast_sends_its_template_as_it_was_reviewed() {
    for app in TestApp::on_each().await {
        let id = make(&app, json!({"name": "greeting", "language": "en", "body": "Hello from Acme"})).await;
        submit(&app, &id).await;
        let mut sent = Vec::new();
        for channel in ["whatsapp", "sms"] {
            let broadcast = broadcast(&app, &id, channel).await;
            let at = json!({"scheduledAt": "2026-01-01T01:00:00Z"});
            app.post(&format!("/v1/broadcasts/{broadcast}/send"), at).await.expect(202);
            sent.push(broadcast);
        }
        app.drain().await;
        reword(&app, &id, "Buy cocaine now").await;
        submit(&app, &id).await;
        assert_eq!(app.get(&format!("/v1/templates/{id}")).await.json()["approvedVersion"], 2);
        for broadcast in &sent {
            let shown = app.post(&format!("/v1/broadcasts/{broadcast}/preview"), json!({})).await.expect(200).json();
            assert_eq!(shown["text"], "Hello from Acme");
            let to = json!({"to": "+34600111229"});
            let tested = app.post(&format!("/v1/broadcasts/{broadcast}/test"), to).await.expect(202).json();
            assert_eq!(tested["message"]["text"], "Hello from Acme");
        }
        app.advance(Duration::from_secs(3_600)).await;
        finish(&app).await;
        for broadcast in sent {
            assert_eq!(texts(&app, &broadcast).await, ["Hello from Acme"; 2]);
        }
    }
}

// holds: broadcasts.review, broadcasts.escalate
#[tokio::test]
async fn a_template_that_changes_during_its_review_is_reviewed_again() {
    for app in TestApp::on_each().await {
        let id = make(&app, json!({"name": "greeting", "language": "en", "body": "Buy cocaine now"})).await;
        let first = broadcast(&app, &id, "sms").await;
        act(&app, &first, "send").await.expect(202);
        reword(&app, &id, "Hello from Acme").await;
        app.drain().await;
        assert_eq!(status(&app, &first).await, "pending_review");
        app.advance(Duration::from_secs(6)).await;
        finish(&app).await;
        assert_eq!(texts(&app, &first).await, ["Hello from Acme"; 2]);
        // A person cannot approve what changed after the request.
        reword(&app, &id, "Buy cocaine now").await;
        let second = broadcast(&app, &id, "sms").await;
        act(&app, &second, "send").await.expect(202);
        app.drain().await;
        reword(&app, &id, "Hello again from Acme").await;
        act(&app, &second, "escalate").await.expect(200);
        reword(&app, &id, "Buy cocaine today").await;
        let refused = app.node.core.broadcasts().decide_review(app.tenant(), &second, true, None).await;
        assert_eq!(refused.map_err(|error| error.code()).err(), Some(nuncio_domain::ErrorCode::Conflict));
        assert_eq!(status(&app, &second).await, "escalated");
    }
}
