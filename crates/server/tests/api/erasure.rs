//! Data about an erased contact: only a keyed hash remains.

use std::time::Duration;

use nuncio_domain::Channel;
use nuncio_domain::event::EventType;
use nuncio_testkit::{Backend, Receiver, TestApp};
use serde_json::{Value, json};

use crate::broadcasts::{act, contacts, counts, draft, get};
use crate::contacts::write;
use crate::webhooks::{self, default_sender, hook};

const NUMBER: &str = "+34699123456";
const MAIL: &str = "eva.secret@example.org";
const NAME: &str = "Eva Secret";

/// Sends a request with an idempotency key that contains personal data.
async fn keyed(app: &TestApp, path: &str, body: Value) -> Value {
    let (auth, key) = (format!("Bearer {}", app.test_key), format!("{path} {NUMBER} {MAIL}"));
    let headers = [("authorization", auth.as_str()), ("idempotency-key", key.as_str())];
    app.send("POST", path, &headers, Some(body)).await.json()
}

/// Creates all kinds of data about a contact: messages both ways, broadcasts in all stages, invitations, opt-outs, events and deliveries,
/// keys.
async fn leave_traces(app: &TestApp, receiver: &Receiver) -> (Value, [String; 3]) {
    receiver.echo();
    for webhook in [None, Some(default_sender(app).await)] {
        hook(app, webhook, &receiver.url, EventType::ALL).await;
    }
    let contact = keyed(
        app,
        "/v1/contacts",
        json!({"displayName": NAME, "channels": [{"channel": "sms", "identifier": NUMBER, "label": NAME}, {"channel": "email", "identifier": MAIL}]}),
    )
    .await;
    let before =
        app.post("/v1/contacts", json!({"channels": [{"channel": "telegram", "identifier": "699123456"}]})).await.expect(201).json();
    write(app, Channel::Telegram, "699123456", "stop", Some(NAME)).await;
    let merge = json!({"sourceContactId": before["id"]});
    app.post(&format!("/v1/contacts/{}/merge", contact["id"].as_str().expect("an id")), merge).await.expect(200);
    keyed(app, "/v1/messages", json!({"to": NUMBER, "text": format!("Dear {NAME}"), "metadata": {"who": MAIL}})).await;
    app.post("/v1/messages", json!({"to": MAIL, "subject": NAME, "text": "x", "scheduledAt": "2026-01-20T00:00:00Z"})).await.expect(202);
    write(app, Channel::Sms, NUMBER, &format!("I am {NAME}"), None).await;
    keyed(app, "/v1/suppressions", json!({"identifier": MAIL, "reason": "manual"})).await;
    keyed(app, "/v1/invitations", json!({"clientName": NAME, "clientEmail": MAIL, "clientPhone": NUMBER})).await;
    let template = json!({"name": "hi", "language": "en", "body": "Hello {{1}}, says Acme"});
    let template = app.post("/v1/templates", template).await.expect(201).json()["id"].clone();
    let broadcast = json!({"name": "x", "channel": "sms", "messageType": "template", "content": {"templateId": template}});
    let recipient = |to: &str| json!({"recipient": to, "templateVariables": {"1": NAME}});
    let given = json!({"contacts": [recipient(NUMBER), json!({"recipient": "+34600111222", "templateVariables": {"1": "Ada"}})]});
    let mut ids = [const { String::new() }; 3];
    for (n, send) in [None, Some(json!({"scheduledAt": "2026-01-10T00:00:00Z"})), Some(json!({}))].into_iter().enumerate() {
        ids[n] = draft(app, broadcast.clone()).await;
        app.post(&format!("/v1/broadcasts/{}/contacts", ids[n]), given.clone()).await.expect(201);
        if let Some(send) = send {
            app.post(&format!("/v1/broadcasts/{}/send", ids[n]), send).await.expect(202);
        }
    }
    app.advance(Duration::from_secs(2)).await;
    app.advance(Duration::from_secs(2)).await;
    (contact["id"].clone(), ids)
}

// holds: contacts.delete, contacts.delete.suppressed
#[tokio::test]
async fn nothing_tells_of_who_was_erased() {
    for backend in Backend::all() {
        let app = webhooks::app(backend).await;
        let receiver = Receiver::start().await;
        let (contact, [draft, scheduled, sent]) = leave_traces(&app, &receiver).await;
        let traces = |held: Vec<String>| held.into_iter().collect::<std::collections::BTreeSet<_>>();
        let held = traces(app.holders(&NUMBER[1..]).await);
        for table in ["addresses", "broadcast_contacts", "deliveries", "invitations", "log", "messages"] {
            assert!(held.contains(table), "the test must leave a trace in {table}: {held:?}");
        }
        assert!(!held.contains("idempotency_keys"), "keys are never kept as they are");
        assert!(traces(app.holders(NAME).await).contains("broadcast_contacts"));

        app.request("DELETE", &format!("/v1/contacts/{}", contact.as_str().expect("an id")), None).await.expect(204);
        app.advance(Duration::from_secs(61)).await;
        app.node.core.contacts().finish_erasures().await.expect("a sweep");
        for trace in [&NUMBER[1..], MAIL, "699123456", NAME] {
            assert_eq!(app.holders(trace).await, [""; 0], "{trace}");
        }
        let held = app.holders("\"~").await;
        assert_eq!(held, [""; 0], "nobody is told the mark");

        // Broadcasts continue without the contact.
        assert_eq!(counts(&get(&app, &draft).await), [1, 1, 0, 0, 0, 0]);
        assert_eq!(counts(&get(&app, &scheduled).await), [2, 1, 0, 0, 0, 1]);
        let of_sent = contacts(&app, &sent, "").await;
        assert_eq!(
            of_sent.iter().filter(|c| c["recipient"] == "" && c["status"] == "delivered" && c.get("variables").is_none()).count(),
            1
        );
        app.advance(Duration::from_secs(9 * 86_400)).await;
        act(&app, &scheduled, "resume").await; // paused: past due after the advance
        app.drain().await;
        assert_eq!(counts(&get(&app, &scheduled).await), [2, 0, 0, 1, 0, 1]);
        // The invitation has no recipient, and is open.
        let invitation = app.get("/v1/invitations").await.expect(200).json()["items"][0].clone();
        assert_eq!([&invitation["clientName"], &invitation["clientEmail"], &invitation["clientPhone"]], [&Value::Null; 3]);
        // Opt-outs remain in effect.
        let again = app.post("/v1/messages", json!({"to": MAIL, "subject": "x", "text": "x"})).await.expect(202).json();
        assert_eq!(again["message"]["errorCode"], "recipient_suppressed");
        if let Some(folder) = app.folder() {
            app.store().close().await;
            let file = std::fs::read(folder.join("nuncio.db")).expect("the file");
            let in_file = |trace: &str| file.windows(trace.len()).any(|bytes| bytes == trace.as_bytes());
            assert!([&NUMBER[1..], NAME].iter().all(|trace| !in_file(trace)), "in free space of the file");
        }
    }
}

#[tokio::test]
async fn a_key_guards_although_nobody_can_read_it() {
    for app in TestApp::on_each().await {
        let path = "/v1/messages";
        let body = json!({"to": NUMBER, "text": "x"});
        let first = keyed(&app, path, body.clone()).await["message"]["id"].clone();
        let repeat = keyed(&app, path, body).await;
        assert_eq!((&repeat["code"], &repeat["message"]["id"]), (&json!("idempotency_conflict"), &first));
        assert_eq!(keyed(&app, path, json!({"to": NUMBER, "text": "y"})).await["code"], "idempotency_key_reused");
        let found =
            app.get(&format!("{path}?idempotencyKey=/v1/messages%20%2B34699123456%20eva.secret@example.org")).await.expect(200).json();
        assert_eq!((found["items"].as_array().map(Vec::len), &found["items"][0]["id"]), (Some(1), &first));
        assert_eq!(app.holders(MAIL).await, [""; 0]);
    }
}

/// Messages to a number that the contact does not have any more are found, and erased with the contact. The number can be somebody else's.
// holds: contacts.delete
#[tokio::test]
async fn what_was_sent_to_a_removed_channel_is_erased_too() {
    for app in TestApp::on_each().await {
        let channels = json!({"channels": [{"channel": "sms", "identifier": NUMBER}, {"channel": "email", "identifier": MAIL}]});
        let contact = app.post("/v1/contacts", channels).await.expect(201).json();
        let id = contact["id"].as_str().expect("an id");
        let sent = app.post("/v1/messages", json!({"to": NUMBER, "text": format!("Dear {NAME}")})).await.expect(202).json();
        let sms =
            contact["channels"].as_array().and_then(|all| all.iter().find(|c| c["channel"] == "sms")).expect("its channel")["id"].clone();
        app.request("DELETE", &format!("/v1/contacts/{id}/channels/{}", sms.as_str().expect("an id")), None).await.expect(204);
        let list = async |query: &str| app.get(&format!("/v1/messages?{query}")).await.expect(200).json()["items"].clone();
        app.clock.advance(Duration::from_millis(1));
        let other = app.post("/v1/messages", json!({"to": NUMBER, "text": "Dear Ada"})).await.expect(202).json();
        let ids = |items: &Value| items.as_array().expect("items").iter().map(|m| m["id"].clone()).collect::<Vec<_>>();
        assert_eq!(ids(&list("to=%2B34699123456").await), [other["message"]["id"].clone(), sent["message"]["id"].clone()]);
        let of_contact = list(&format!("contactId={id}")).await;
        assert_eq!((ids(&of_contact), &of_contact[0]["contactId"]), (vec![sent["message"]["id"].clone()], &contact["id"]));
        app.drain().await;
        app.request("DELETE", &format!("/v1/contacts/{id}"), None).await.expect(204);
        assert_eq!(app.holders(NAME).await, [""; 0]);
        assert_eq!(ids(&list("to=%2B34699123456").await), [other["message"]["id"].clone()], "the other is somebody else's");
    }
}
