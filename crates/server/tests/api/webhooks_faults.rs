//! Webhooks: endpoints that reject some events or are slow, and what changes while deliveries wait or are in flight.

use std::time::Duration;

use nuncio_domain::Channel;
use nuncio_domain::event::EventType;
use nuncio_testkit::{Backend, Receiver, TestApp};
use serde_json::{Value, json};

use crate::contacts::write;
use crate::webhooks::{app, default_sender, hook, until_delivered};

async fn send(app: &TestApp, number: usize) -> String {
    app.send_message(json!({"to": format!("+34600111{number:03}"), "text": "x"})).await
}

/// Returns the deliveries that a query finds, newest first.
async fn deliveries(app: &TestApp, query: &str) -> Vec<Value> {
    let page = app.get(&format!("/v1/webhooks/deliveries?limit=100&{query}")).await.expect(200).json();
    page["items"].as_array().expect("deliveries").clone()
}

async fn delivery(app: &TestApp, id: &Value) -> Value {
    let path = format!("/v1/webhooks/deliveries/{}", id.as_str().expect("an id"));
    app.get(&path).await.expect(200).json()["delivery"].clone()
}

async fn replay(app: &TestApp, id: &Value) {
    let path = format!("/v1/webhooks/deliveries/{}/replay", id.as_str().expect("an id"));
    app.post(&path, json!({})).await.expect(202);
}

/// Runs rounds until the endpoint has got so many requests, without waiting for its responses.
async fn until_got(app: &TestApp, receivers: &[&Receiver], count: usize) {
    while receivers.iter().map(|receiver| receiver.got().len()).sum::<usize>() < count {
        app.node.tick().await.expect("a round");
    }
}

// holds: webhooks.isolation
#[tokio::test]
async fn an_endpoint_that_rejects_one_type_gets_the_others_at_once() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let receiver = Receiver::start().await;
        hook(&app, Some(default_sender(&app).await), &receiver.url, &[EventType::MessageQueued, EventType::MessageInbound]).await;
        receiver.reject("message.queued", 400);
        for number in 0..20 {
            send(&app, number).await;
        }
        app.drain().await;
        assert_eq!((receiver.got().len(), receiver.taken().len()), (20, 0));
        write(&app, Channel::Sms, "+34600222000", "hello", None).await;
        assert_eq!(receiver.taken(), ["message.inbound"]);
    }
}

// holds: webhooks.test
#[tokio::test]
async fn an_endpoint_that_is_down_gets_a_test_before_all_that_waits() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let receiver = Receiver::start().await;
        let sender = default_sender(&app).await;
        hook(&app, Some(sender), &receiver.url, &[EventType::MessageQueued]).await;
        receiver.always(Some(503));
        for number in 0..100 {
            send(&app, number).await;
        }
        app.drain().await;
        let before = receiver.got().len();
        assert!(before < 100, "it is left in peace: {before}");
        app.clock.advance(Duration::from_secs(3_600));
        receiver.hold(true);
        let tested = app.post(&format!("/v1/senders/{sender}/webhook/test"), json!({})).await.expect(202).json();
        let waiting = delivery(&app, &tested["deliveryId"]).await;
        assert_eq!((&waiting["status"], waiting.get("nextAttemptAt")), (&json!("pending"), None), "{waiting}");
        assert_eq!((&waiting["eventId"], &waiting["attempts"]), (&tested["eventId"], &json!([])), "{waiting}");
        until_got(&app, &[&receiver], before + 1).await;
        assert_eq!(receiver.got()[before].json()["type"], "webhook.test");
        receiver.hold(false);
        app.drain().await;
        let failed = delivery(&app, &tested["deliveryId"]).await;
        assert!(failed["status"] == "failed" && failed["nextAttemptAt"].is_string(), "{failed}");
    }
}

// holds: webhooks.filter
#[tokio::test]
async fn what_waits_of_a_type_that_is_no_longer_selected_is_dead_and_holds_nothing() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let receiver = Receiver::start().await;
        let sender = default_sender(&app).await;
        hook(&app, Some(sender), &receiver.url, &[EventType::MessageQueued, EventType::MessageDelivered]).await;
        receiver.reject("message.queued", 500);
        send(&app, 1).await;
        app.drain().await;
        // The result of another one comes after the change.
        receiver.hold(true);
        let second = send(&app, 2).await;
        until_delivered(&app, &second).await;
        until_got(&app, &[&receiver], 2).await;
        app.clock.advance(Duration::from_millis(1));
        app.request("PATCH", &format!("/v1/senders/{sender}"), Some(json!({"webhookEvents": ["message.delivered"]}))).await.expect(200);
        receiver.hold(false);
        app.drain().await;
        assert_eq!(receiver.taken(), ["message.delivered", "message.delivered"], "at once");
        let dead = deliveries(&app, "eventType=message.queued").await;
        for dead in &dead {
            let shown = (&dead["status"], &dead["reason"], dead.get("nextAttemptAt"));
            assert_eq!(shown, (&json!("dead"), &json!("the webhook no longer gets events of this type"), None), "{dead}");
        }
        receiver.reject("", 500);
        replay(&app, &dead[0]["id"]).await;
        app.drain().await;
        assert_eq!(receiver.taken()[2..], ["message.queued"], "a person asked for it");
        let replayed = delivery(&app, &dead[0]["id"]).await;
        assert_eq!((&replayed["status"], replayed.get("reason")), (&json!("delivered"), None), "{replayed}");
    }
}

/// The node finds out when it stores an outcome or looks which logs it reads; by then, others wait in its memory.
// holds: webhooks.order
#[tokio::test]
async fn a_node_that_lost_the_log_posts_nothing_more_of_it() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let receiver = Receiver::start().await;
        hook(&app, Some(default_sender(&app).await), &receiver.url, &[EventType::MessageDelivered]).await;
        receiver.hold(true);
        for number in 0..40 {
            let id = send(&app, number).await;
            until_delivered(&app, &id).await;
        }
        until_got(&app, &[&receiver], 32).await;
        let mut elsewhere = app.store().begin().await.expect("a transaction");
        elsewhere.close_log(app.tenant()).await.expect("closed");
        elsewhere.commit().await.expect("committed");
        app.clock.advance(Duration::from_millis(600));
        app.node.tick().await.expect("a round");
        receiver.hold(false);
        app.drain().await;
        assert_eq!(receiver.got().len(), 32);
    }
}

// holds: webhooks.replay
#[tokio::test]
async fn a_replay_of_a_delivery_in_flight_is_posted_too() {
    for (backend, status) in Backend::all().into_iter().flat_map(|backend| [(backend, 200), (backend, 500)]) {
        let app = app(backend).await;
        let receiver = Receiver::start().await;
        hook(&app, Some(default_sender(&app).await), &receiver.url, &[EventType::MessageDelivered]).await;
        receiver.answer(&[status]);
        receiver.hold(true);
        let id = send(&app, 1).await;
        until_delivered(&app, &id).await;
        until_got(&app, &[&receiver], 1).await;
        // It is stored as pending by now.
        app.clock.advance(Duration::from_secs(2));
        app.node.tick().await.expect("a round");
        let in_flight = deliveries(&app, "").await.remove(0);
        assert_eq!((&in_flight["status"], in_flight.get("nextAttemptAt")), (&json!("pending"), None), "{in_flight}");
        replay(&app, &in_flight["id"]).await;
        receiver.hold(false);
        app.drain().await;
        app.advance(Duration::from_secs(1)).await;
        assert_eq!(receiver.got().len(), 2, "answered {status}");
        let after = delivery(&app, &in_flight["id"]).await;
        let statuses: Vec<_> = after["attempts"].as_array().expect("attempts").iter().map(|tried| &tried["responseStatus"]).collect();
        assert_eq!((&after["status"], statuses), (&json!("delivered"), vec![&json!(status), &json!(200)]), "{after}");
    }
}

/// The endpoint checks bodies by the OpenAPI document.
// holds: webhooks.documented
#[tokio::test]
async fn events_of_the_erased_are_as_documented() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let receiver = Receiver::start().await;
        for sender in [None, Some(default_sender(&app).await)] {
            hook(&app, sender, &receiver.url, EventType::ALL).await;
        }
        let contact = async |number: &str| {
            let made = app.post("/v1/contacts", json!({"channels": [{"channel": "sms", "identifier": number}]})).await.expect(201).json();
            format!("/v1/contacts/{}", made["id"].as_str().expect("an id"))
        };
        let (kept, merged) = (contact("+34600111222").await, contact("+34600111223").await);
        let source = merged.rsplit('/').next().expect("an id");
        app.post(&format!("{kept}/merge"), json!({"sourceContactId": source})).await.expect(200);
        app.post("/v1/suppressions", json!({"identifier": "+34600111222", "reason": "opt_out"})).await.expect(201);
        let made = app.post("/v1/invitations", json!({"clientPhone": "+34600111222"})).await.expect(201).json();
        app.post(&format!("/v1/invitations/{}/cancel", made["invitation"]["id"].as_str().expect("an id")), json!({})).await.expect(200);
        app.drain().await;
        let told = ["contact.merged", "contact.opted_out", "invitation.status_changed"];
        let before = deliveries(&app, &format!("eventType={}", told.join(","))).await;
        assert_eq!(before.len(), 3, "{before:?}");

        app.request("DELETE", &kept, None).await.expect(204);
        app.drain().await;
        let posted = receiver.got().len();
        for delivery in &before {
            replay(&app, &delivery["id"]).await;
        }
        app.drain().await;
        let after: Vec<Value> = receiver.got()[posted..].iter().map(|posted| posted.json()["data"].clone()).collect();
        let has_id_only = |data: &Value| {
            data.as_object().is_some_and(|data| data.values().all(|resource| resource.as_object().is_some_and(|r| r.len() == 1)))
        };
        assert!(after.len() == 3 && after.iter().all(has_id_only), "{after:?}");
        app.get("/v1/events?type=contact.opted_out,contact.merged,invitation.status_changed").await.expect(200);
    }
}

// holds: webhooks.isolation
#[tokio::test]
async fn slow_endpoints_of_one_environment_leave_room_for_others() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let (slow, other) = ([Receiver::start().await, Receiver::start().await, Receiver::start().await], Receiver::start().await);
        for (receiver, name) in slow.iter().zip(["a", "b", "c"]) {
            receiver.hold(true);
            let made = app.post("/v1/senders", json!({"name": name, "webhookUrl": receiver.url})).await.expect(201).json();
            for _ in 0..30 {
                app.post(&format!("/v1/senders/{}/webhook/test", made["id"].as_str().expect("an id")), json!({})).await.expect(202);
            }
        }
        let slow: Vec<&Receiver> = slow.iter().collect();
        until_got(&app, &slow, 64).await;
        let live = async |method: &str, path: &str, body: Value| app.with_key(&app.live_key, method, path, Some(body)).await;
        live("PUT", "/v1/webhook", json!({"url": other.url})).await.expect(201);
        live("POST", "/v1/webhook/test", json!({})).await.expect(202);
        until_got(&app, &[&other], 1).await;
        assert_eq!(slow.iter().map(|receiver| receiver.got().len()).sum::<usize>(), 64);

        slow.iter().for_each(|receiver| receiver.hold(false));
        app.drain().await;
        assert_eq!(slow.iter().map(|receiver| receiver.taken().len()).collect::<Vec<_>>(), [30; 3], "the others follow");
    }
}

#[tokio::test]
async fn a_resource_id_that_is_none_is_shown_with_what_it_can_be() {
    let app = TestApp::start().await;
    for path in ["/v1/events", "/v1/webhooks/deliveries"] {
        let refused = app.get(&format!("{path}?resourceId=foo")).await.expect(400).json();
        let message = "is \"foo\"; must be the id of a message, contact, broadcast, template or invitation, such as msg_…";
        assert_eq!(refused["details"]["errors"], json!([{"path": "query.resourceId", "message": message}]));
    }
}
