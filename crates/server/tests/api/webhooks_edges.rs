//! Webhooks: replays on any node, what events show of a message that fell back, a webhook that is off, a node that stops.

use std::sync::atomic::Ordering;
use std::time::Duration;

use nuncio_channel::{ProviderEvent, ReceiptTarget};
use nuncio_domain::event::EventType;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::{DeliveryId, MessageId};
use nuncio_testkit::{Backend, Receiver, TestApp};
use serde_json::{Value, json};
use tokio::time::timeout;

use crate::webhooks::{app, default_sender, hook};

/// The node that posts may have posted nothing to this webhook yet, and another node may have been asked.
// holds: webhooks.replay
#[tokio::test]
async fn a_replay_is_posted_whichever_node_is_asked() {
    for backend in Backend::all() {
        let mut app = app(backend).await;
        let receiver = Receiver::start().await;
        hook(&app, Some(default_sender(&app).await), &receiver.url, &[EventType::MessageDelivered]).await;
        app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
        app.drain().await;
        assert_eq!(receiver.taken(), ["message.delivered"]);
        let listed = app.get("/v1/webhooks/deliveries").await.expect(200).json();
        let id = listed["items"][0]["id"].as_str().expect("an id").to_owned();

        app.crash().await;
        app.advance(Duration::from_secs(30)).await;
        app.post(&format!("/v1/webhooks/deliveries/{id}/replay"), json!({})).await.expect(202);
        app.drain().await;
        assert_eq!(receiver.taken().len(), 2, "after a restart");

        app.advance(Duration::from_secs(30)).await;
        let now = app.node.core.ids().clock.now();
        let mut elsewhere = app.store().begin().await.expect("a transaction");
        let delivery: DeliveryId = id.parse().expect("an id");
        assert!(elsewhere.replay_delivery(app.tenant(), delivery, now).await.expect("written"));
        elsewhere.commit().await.expect("committed");
        app.advance(Duration::from_secs(5)).await;
        assert_eq!(receiver.taken().len(), 3, "by another node");
    }
}

/// The node that posts keeps webhooks in memory; another node may have changed them.
// holds: webhooks.events
#[tokio::test]
async fn a_change_of_a_webhook_holds_for_the_next_message() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let receiver = Receiver::start().await;
        let sender = Some(default_sender(&app).await);
        hook(&app, sender, &receiver.url, &[EventType::MessageDelivered]).await;
        app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
        app.drain().await;
        assert_eq!(receiver.taken(), ["message.delivered"]);

        let mut elsewhere = app.store().begin().await.expect("a transaction");
        elsewhere.raise_epoch(app.tenant()).await.expect("raised");
        let mut webhooks = elsewhere.list_webhooks(app.tenant()).await.expect("webhooks");
        webhooks[0].events = vec![EventType::MessageQueued];
        elsewhere.put_webhook(app.tenant(), &webhooks[0]).await.expect("written");
        elsewhere.commit().await.expect("committed");
        app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
        app.drain().await;
        assert_eq!(receiver.taken(), ["message.delivered", "message.queued"]);
    }
}

/// Returns the events of a message by their types.
async fn events(app: &TestApp, id: &str) -> Vec<(String, Value)> {
    let page = app.get(&format!("/v1/events?resourceId={id}")).await.expect(200).json();
    let items = page["items"].as_array().expect("events").iter().rev();
    items.map(|event| (event["type"].as_str().unwrap_or_default().to_owned(), event["data"]["message"].clone())).collect()
}

fn channels_of_attempts(message: &Value) -> Vec<&str> {
    message["attempts"].as_array().expect("attempts").iter().map(|attempt| attempt["channel"].as_str().unwrap_or_default()).collect()
}

// holds: webhooks.events
#[tokio::test]
async fn an_event_shows_the_channel_of_its_time() {
    for app in TestApp::on_each().await {
        let body = json!({"to": "+12125550005", "text": "x", "channel": "whatsapp", "fallbackAfterSeconds": 60});
        let id = app.send_message(body).await;
        app.drain().await;
        app.advance(Duration::from_secs(61)).await;
        let message = app.message(&id).await;
        assert_eq!((message["status"].as_str(), message["channel"].as_str()), (Some("sent"), Some("sms")), "{message}");
        let before = events(&app, &id).await;
        assert_eq!(before.iter().map(|(kind, _)| kind.as_str()).collect::<Vec<_>>(), ["message.queued", "message.sending", "message.sent"]);
        for (kind, message) in &before {
            assert_eq!((message["channel"].as_str(), message.get("segments")), (Some("whatsapp"), None), "{kind}: {message}");
        }
        assert_eq!(before.iter().map(|(_, message)| channels_of_attempts(message).len()).collect::<Vec<_>>(), [0, 1, 1]);

        // The first attempt arrives late.
        app.clock.advance(Duration::from_secs(1));
        first_receipt(&app, &id, ReceiptKind::Delivered).await;
        let (kind, last) = events(&app, &id).await.pop().expect("events");
        assert_eq!((kind.as_str(), last["channel"].as_str()), ("message.delivered", Some("sms")), "{last}");
        assert_eq!(channels_of_attempts(&last), ["whatsapp", "sms"], "{last}");
    }
}

// holds: webhooks.events
#[tokio::test]
async fn an_event_stays_as_it_was_whatever_happens_later() {
    for app in TestApp::on_each().await {
        let corrected = app.send_message(json!({"to": "+12125550016", "text": "x", "channel": "sms"})).await;
        let resent = app.send_message(json!({"to": "+12125550008", "text": "x", "channel": "sms", "onUnknown": "hold"})).await;
        // The first attempt of this one is unknown, and arrived as it turns out, as did the second.
        let twice = app.send_message(json!({"to": "+12125550008", "text": "x", "channel": "sms"})).await;
        app.drain().await;
        app.advance(Duration::from_secs(7)).await;
        let ids = [corrected, resent, twice];
        let all = async || [events(&app, &ids[0]).await, events(&app, &ids[1]).await, events(&app, &ids[2]).await];
        let before = all().await;
        let (kind, failed) = before[0].last().expect("events");
        assert_eq!((kind.as_str(), &failed["attempts"][0]["status"]), ("message.failed", &json!("failed")), "{failed}");
        assert!(failed["errorMessage"].as_str().is_some_and(|text| text != failed["errorCode"]), "{failed}");
        let (kind, arrived) = before[2].last().expect("events");
        assert_eq!((kind.as_str(), &arrived["attempts"][0]["status"]), ("message.delivered", &json!("unknown")), "{arrived}");

        app.advance(Duration::from_secs(31)).await;
        app.post(&format!("/v1/messages/{}/resolve", ids[1]), json!({"action": "resend"})).await.expect(200);
        app.drain().await;
        first_receipt(&app, &ids[2], ReceiptKind::Delivered).await;
        for (id, before) in ids.iter().zip(before) {
            assert_eq!(app.message(id).await["status"], "delivered");
            let now = events(&app, id).await;
            assert_eq!(now[..before.len()], before[..]);
        }
    }
}

/// Records a receipt of the first attempt of a message.
pub(crate) async fn first_receipt(app: &TestApp, id: &str, kind: ReceiptKind) {
    let message: MessageId = id.parse().expect("an id");
    let stored = app.store().read().await.expect("a reader").lookup_messages(app.tenant(), &[message]).await.expect("a look").remove(0);
    let connection = stored.state.detail.attempts[0].connection;
    let target = ReceiptTarget::Attempt { tenant: app.tenant(), message, attempt: Some(0), connection };
    let receipt = ProviderEvent::Receipt { target, kind, at: app.node.core.ids().clock.now(), raw: None };
    app.node.events().record(receipt).await.expect("recorded");
}

/// Creates an invitation and cancels it, which is an event without a sender.
pub(crate) async fn cancel_an_invitation(app: &TestApp) {
    let made = app.post("/v1/invitations", json!({})).await.expect(201).json();
    let id = made["invitation"]["id"].as_str().expect("an id");
    app.post(&format!("/v1/invitations/{id}/cancel"), json!({})).await.expect(200);
    app.drain().await;
}

// holds: webhooks.world
#[tokio::test]
async fn what_the_worlds_webhook_would_get_goes_nowhere_while_it_is_off() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let receiver = Receiver::start().await;
        let of_world = Receiver::start().await;
        hook(&app, Some(default_sender(&app).await), &receiver.url, &[EventType::InvitationStatusChanged]).await;
        cancel_an_invitation(&app).await;
        assert_eq!(receiver.taken(), ["invitation.status_changed"], "the only one");
        app.request("PUT", "/v1/webhook", Some(json!({"url": of_world.url, "active": false}))).await.expect(201);
        cancel_an_invitation(&app).await;
        app.request("PUT", "/v1/webhook", Some(json!({"url": of_world.url}))).await.expect(200);
        cancel_an_invitation(&app).await;
        assert_eq!((receiver.taken().len(), of_world.taken().len()), (1, 1));
        app.request("DELETE", "/v1/webhook", None).await.expect(204);
        cancel_an_invitation(&app).await;
        assert_eq!((receiver.taken().len(), of_world.taken().len()), (2, 1));
    }
}

/// The message of the row in which a page ended is deleted meanwhile: the next page goes on with the next message.
#[tokio::test]
async fn a_page_of_events_skips_nothing_when_a_message_is_deleted() {
    for app in TestApp::on_each().await {
        let older = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
        app.drain().await;
        app.advance(Duration::from_secs(1)).await;
        app.send_message(json!({"to": "+34600111223", "text": "x"})).await;
        app.drain().await;
        let mut path = "/v1/events?limit=1".to_owned();
        loop {
            let page = app.get(&path).await.expect(200).json();
            path = format!("/v1/events?limit=1&cursor={}", page["nextCursor"].as_str().expect("there is more"));
            // It was accepted and started by one row.
            if page["items"][0]["type"] == "message.sending" {
                break;
            }
        }
        app.sql("DELETE FROM states WHERE id IN (SELECT id FROM messages WHERE recipient = '+34600111223')").await;
        app.sql("DELETE FROM messages WHERE recipient = '+34600111223'").await;
        let next = app.get(&path).await.expect(200).json();
        let event = &next["items"][0];
        assert_eq!((&event["type"], &event["data"]["message"]["id"]), (&json!("message.delivered"), &json!(older)), "{next}");
    }
}

#[tokio::test]
async fn a_node_that_stops_begins_no_post() {
    let app = app(Backend::Sqlite).await;
    let receiver = Receiver::start().await;
    hook(&app, Some(default_sender(&app).await), &receiver.url, &[EventType::MessageDelivered]).await;
    receiver.hold(true);
    // More than an endpoint gets at a time.
    for n in 0..40 {
        let id = app.send_message(json!({"to": format!("+346001112{n:02}"), "text": "x"})).await;
        crate::webhooks::until_delivered(&app, &id).await;
    }
    while receiver.got().len() < 32 {
        app.node.tick().await.expect("a round");
    }
    tokio::join!(app.node.stop(Duration::from_secs(20)), async { receiver.hold(false) });
    assert_eq!(receiver.got().len(), 32, "the rest is for the next node");
}

/// A node that only posts no more would keep the logs that it reads from all others.
#[tokio::test]
async fn a_loop_that_panics_ends_the_node() {
    let app = app(Backend::Sqlite).await;
    let receiver = Receiver::start().await;
    hook(&app, Some(default_sender(&app).await), &receiver.url, &[EventType::MessageQueued]).await;
    app.faults.log_panics.store(true, Ordering::Release);
    app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    let node = app.node.clone();
    let ended = timeout(Duration::from_secs(30), tokio::spawn(async move { node.run().await })).await.expect("in time");
    assert!(ended.is_err_and(|error| error.is_panic()));
}
