//! Webhooks: signed, in order, retried, and independent of each other.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use nuncio_core::events::EventFilter;
use nuncio_domain::event::EventType;
use nuncio_domain::webhook::Webhook;
use nuncio_domain::{Redacted, SenderId};
use nuncio_testkit::{Backend, Options, Posted, Receiver, TestApp};
use serde_json::{Value, json};

use crate::webhooks_edges::cancel_an_invitation;

const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

pub(crate) async fn app(backend: Backend) -> TestApp {
    let mut options = Options::default();
    options.dispatch.guard.allow_http = true;
    options.dispatch.guard.allow_loopback = true;
    TestApp::with(backend, options).await
}

pub(crate) async fn default_sender(app: &TestApp) -> SenderId {
    app.node.core.tenant_config(app.tenant()).await.expect("the world").default_sender().expect("a sender").id
}

pub(crate) async fn hook(app: &TestApp, sender: Option<SenderId>, url: &str, events: &[EventType]) {
    app.set_webhook(sender, url, events, SECRET).await;
}

async fn send(app: &TestApp, to: &str) -> String {
    app.send_message(json!({"to": to, "text": "x"})).await
}

// holds: webhooks.events, webhooks.envelope, webhooks.signature, webhooks.log
#[tokio::test]
async fn a_message_is_told_from_its_birth_to_its_arrival() {
    for backend in Backend::all() {
        let app = app(backend).await;
        // Verifiers compare with the current time.
        let present = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).expect("after 1970").as_millis() as i64;
        app.advance(Duration::from_millis((present - app.node.core.ids().clock.now().millis()) as u64)).await;
        let receiver = Receiver::start().await;
        let sender = default_sender(&app).await;
        hook(&app, Some(sender), &receiver.url, Webhook::DEFAULT_EVENTS).await;
        let id = send(&app, "+34600111222").await;
        app.drain().await;
        assert_eq!(receiver.taken(), ["message.queued", "message.sending", "message.sent", "message.delivered"]);
        let got = receiver.got();
        let bodies: Vec<Value> = got.iter().map(Posted::json).collect();
        assert_eq!(bodies.iter().map(|b| b["sequence"].as_i64()).collect::<Vec<_>>(), [Some(1), Some(2), Some(3), Some(4)]);
        for (body, status) in bodies.iter().zip(["queued", "sending", "sent", "delivered"]) {
            assert_eq!(body["data"]["message"]["status"], status);
            assert_eq!(body["data"]["message"]["id"], id.as_str());
            assert_eq!((body["environment"].as_str(), body["senderId"].as_str()), (Some("test"), Some(sender.to_string().as_str())));
        }
        assert_eq!(bodies[0]["data"].get("previousStatus"), None);
        assert_eq!(bodies[0]["data"]["message"]["attempts"], json!([]), "as it was then");
        assert_eq!(bodies[3]["data"]["previousStatus"], "sent");
        assert_eq!(bodies[2]["data"]["message"].get("deliveredAt"), None, "as it was then");
        let verifier = standardwebhooks::Webhook::new(SECRET).expect("a secret");
        for posted in &got {
            verifier.verify(&posted.bytes, &posted.headers).expect("a good signature");
            assert_eq!(posted.header("content-type"), "application/json");
        }
        let deliveries = app.get(&format!("/v1/webhooks/deliveries?resourceId={id}")).await.expect(200).json();
        let items = deliveries["items"].as_array().expect("items");
        assert_eq!(items.len(), 4);
        assert!(items.iter().all(|d| d["status"] == "delivered" && d["attempts"][0]["responseStatus"] == 200), "{items:?}");
        assert_eq!(items[0]["attempts"][0]["responseBody"], "as told");
    }
}

// holds: webhooks.retry
#[tokio::test]
async fn events_wait_for_a_webhook_whose_secret_cannot_be_decrypted() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let receiver = Receiver::start().await;
        let sender = default_sender(&app).await;
        hook(&app, Some(sender), &receiver.url, &[EventType::MessageDelivered]).await;
        let mut tx = app.store().begin().await.expect("a transaction");
        tx.raise_epoch(app.tenant()).await.expect("raised");
        let mut webhook = tx.find_webhook(app.tenant(), Some(sender)).await.expect("a look").expect("the webhook");
        webhook.sealed = Redacted::new(vec![7; 60]);
        tx.put_webhook(app.tenant(), &webhook).await.expect("written");
        tx.commit().await.expect("committed");
        app.node.dispatch.log_signals().webhooks_changed();
        assert_eq!(app.node.core.webhooks().without_secret(app.tenant()).await.expect("a look"), [Some(sender)]);
        send(&app, "+34600111222").await;
        app.drain().await;
        assert_eq!(receiver.got().len(), 0, "nothing goes out unsigned");
        let waiting = app.get("/v1/webhooks/deliveries").await.expect(200).json()["items"].clone();
        let error = waiting[0]["attempts"][0]["error"].as_str().unwrap_or_default();
        assert!(waiting[0]["status"] == "failed" && error.contains("cannot be decrypted; rotate it"), "{waiting}");
        app.post(&format!("/v1/senders/{sender}/webhook/secret"), json!({})).await.expect(200);
        app.advance(Duration::from_secs(6)).await;
        assert_eq!(receiver.taken(), ["message.delivered"]);
        assert_eq!(app.node.core.webhooks().without_secret(app.tenant()).await.expect("a look"), []);
    }
}

// holds: webhooks.filter
#[tokio::test]
async fn only_what_was_asked_for_is_told() {
    let app = app(Backend::Sqlite).await;
    let receiver = Receiver::start().await;
    hook(&app, Some(default_sender(&app).await), &receiver.url, &[EventType::MessageDelivered]).await;
    send(&app, "+34600111222").await;
    app.drain().await;
    assert_eq!(receiver.taken(), ["message.delivered"]);
}

// holds: webhooks.order, webhooks.retry
#[tokio::test]
async fn what_fails_is_tried_again_and_the_next_waits_for_it() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let receiver = Receiver::start().await;
        hook(&app, Some(default_sender(&app).await), &receiver.url, Webhook::DEFAULT_EVENTS).await;
        receiver.answer(&[500, 503]);
        let id = send(&app, "+34600111222").await;
        app.drain().await;
        assert_eq!(receiver.taken().len(), 0, "{:?}", receiver.taken());
        assert_eq!(receiver.got().len(), 1, "the next wait");
        app.advance(Duration::from_secs(6)).await;
        assert_eq!((receiver.got().len(), receiver.taken().len()), (2, 0));
        let waiting = app.get(&format!("/v1/webhooks/deliveries?resourceId={id}&status=failed,pending")).await.expect(200).json();
        let statuses: Vec<_> =
            waiting["items"].as_array().expect("items").iter().map(|d| d["status"].as_str().unwrap_or_default()).collect();
        assert_eq!(statuses.iter().filter(|s| **s == "failed").count(), 1);
        assert_eq!(statuses.iter().filter(|s| **s == "pending").count(), 3);
        app.advance(Duration::from_secs(70)).await;
        assert_eq!(receiver.taken(), ["message.queued", "message.sending", "message.sent", "message.delivered"]);
        let got = receiver.got();
        assert_eq!(got[0].header("webhook-id"), got[2].header("webhook-id"), "one event keeps its id");
        assert_ne!(got[0].header("webhook-timestamp"), got[2].header("webhook-timestamp"));
    }
}

#[tokio::test]
async fn after_two_retries_the_next_goes_ahead() {
    let app = app(Backend::Sqlite).await;
    let receiver = Receiver::start().await;
    hook(&app, Some(default_sender(&app).await), &receiver.url, &[EventType::MessageQueued, EventType::MessageDelivered]).await;
    receiver.answer(&[500, 500, 500]);
    send(&app, "+34600111222").await;
    app.drain().await;
    app.advance(Duration::from_secs(6)).await;
    app.advance(Duration::from_secs(70)).await;
    assert_eq!(receiver.taken(), ["message.delivered"]);
    app.advance(Duration::from_secs(400)).await;
    assert_eq!(receiver.taken(), ["message.delivered", "message.queued"]);
}

// holds: webhooks.retry, webhooks.replay
#[tokio::test]
async fn what_never_succeeds_is_given_up_and_can_be_replayed() {
    let app = app(Backend::Sqlite).await;
    let receiver = Receiver::start().await;
    hook(&app, Some(default_sender(&app).await), &receiver.url, &[EventType::MessageDelivered]).await;
    receiver.always(Some(500));
    send(&app, "+34600111222").await;
    app.drain().await;
    for hours in [0, 0, 0, 1, 3, 7, 14, 27] {
        app.advance(Duration::from_secs(400 + hours * 3_600)).await;
    }
    let dead = app.get("/v1/webhooks/deliveries?status=dead").await.expect(200).json();
    assert_eq!(dead["items"].as_array().map(Vec::len), Some(1), "{dead}");
    let delivery = &dead["items"][0];
    assert_eq!((delivery["attempts"].as_array().map(Vec::len), delivery.get("nextAttemptAt")), (Some(9), None));
    receiver.always(None);
    let id = delivery["id"].as_str().expect("an id");
    app.post(&format!("/v1/webhooks/deliveries/{id}/replay"), json!({})).await.expect(202);
    app.drain().await;
    assert_eq!(receiver.taken(), ["message.delivered"]);
    let after = app.get(&format!("/v1/webhooks/deliveries/{id}")).await.expect(200).json();
    assert_eq!(after["delivery"]["status"], "delivered");
}

// holds: webhooks.gone
#[tokio::test]
async fn an_endpoint_that_is_gone_is_switched_off() {
    let app = app(Backend::Sqlite).await;
    let receiver = Receiver::start().await;
    let sender = default_sender(&app).await;
    hook(&app, Some(sender), &receiver.url, &[EventType::MessageDelivered]).await;
    receiver.always(Some(410));
    send(&app, "+34600111222").await;
    app.drain().await;
    let webhook = app.store().read().await.expect("a reader").find_webhook(app.tenant(), Some(sender)).await.expect("a look");
    let webhook = webhook.expect("it is there");
    assert_eq!((webhook.active, webhook.disabled_reason.as_deref()), (false, Some("the endpoint returned 410 Gone")));
    send(&app, "+34600111222").await;
    app.drain().await;
    assert_eq!(receiver.got().len(), 1, "nothing more is posted");
}

/// The status decides; the body is only shown.
// holds: webhooks.order
#[tokio::test]
async fn an_endpoint_that_never_ends_its_response_holds_nothing() {
    let app = app(Backend::Sqlite).await;
    let receiver = Receiver::start().await;
    receiver.stall();
    hook(&app, Some(default_sender(&app).await), &receiver.url, &[EventType::MessageQueued, EventType::MessageDelivered]).await;
    send(&app, "+34600111222").await;
    tokio::time::timeout(Duration::from_secs(10), app.drain()).await.expect("its timeout is not waited for");
    assert_eq!(receiver.taken(), ["message.queued", "message.delivered"]);
    let first = app.get("/v1/webhooks/deliveries").await.expect(200).json()["items"][0].clone();
    assert_eq!((&first["status"], &first["attempts"][0]["responseBody"]), (&json!("delivered"), &json!("as told")), "{first}");
}

// holds: webhooks.gone
#[tokio::test]
async fn the_answer_of_an_old_url_says_nothing_about_the_new_one() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let (old, new) = (Receiver::start().await, Receiver::start().await);
        let sender = Some(default_sender(&app).await);
        hook(&app, sender, &old.url, &[EventType::MessageDelivered]).await;
        old.always(Some(410));
        old.hold(true);
        send(&app, "+34600111222").await;
        let answered = async {
            while old.got().is_empty() {
                tokio::task::yield_now().await;
            }
            app.clock.advance(Duration::from_secs(1));
            hook(&app, sender, &new.url, &[EventType::MessageDelivered]).await;
            old.hold(false);
        };
        tokio::join!(app.drain(), answered);
        app.drain().await;
        let webhook = app.store().read().await.expect("a reader").find_webhook(app.tenant(), sender).await.expect("a look");
        let webhook = webhook.expect("it is there");
        assert_eq!((webhook.active, webhook.failing_since, webhook.disabled_reason), (true, None, None));
    }
}

/// Whatever its state at that moment: posted, behind another event of its message, or waiting for capacity.
// holds: webhooks.gone
#[tokio::test]
async fn what_was_for_an_endpoint_that_is_gone_is_dead_at_once() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let receiver = Receiver::start().await;
        let told = [EventType::MessageQueued, EventType::MessageSending, EventType::MessageSent, EventType::MessageDelivered];
        hook(&app, Some(default_sender(&app).await), &receiver.url, &told).await;
        receiver.answer(&[500, 500]);
        receiver.always(Some(410));
        for n in 0..50 {
            send(&app, &format!("+346001113{n:02}")).await;
        }
        app.drain().await;
        for status in ["pending", "failed"] {
            let open = app.get(&format!("/v1/webhooks/deliveries?status={status}")).await.expect(200).json();
            assert_eq!(open["items"], json!([]), "{status}");
        }
        let (mut dead, mut path) = (Vec::new(), "/v1/webhooks/deliveries?status=dead&limit=100".to_owned());
        loop {
            let page = app.get(&path).await.expect(200).json();
            dead.extend(page["items"].as_array().expect("deliveries").clone());
            let Some(cursor) = page["nextCursor"].as_str() else { break };
            path = format!("/v1/webhooks/deliveries?status=dead&limit=100&cursor={cursor}");
        }
        assert!(dead.iter().any(|d| d["attempts"][0]["responseStatus"] == 410), "{dead:?}");
        let posted: BTreeSet<String> = receiver.got().iter().map(|p| p.json()["id"].to_string()).collect();
        assert!(dead.iter().all(|d| d.get("nextAttemptAt").is_none()), "{dead:?}");
        assert!(dead.len() >= posted.len(), "{} posted, {} dead", posted.len(), dead.len());
    }
}

/// Its operator can see at once what will be missing.
#[tokio::test]
async fn what_waits_for_a_webhook_that_is_switched_off_is_dead_at_once() {
    let app = app(Backend::Sqlite).await;
    let receiver = Receiver::start().await;
    let sender = default_sender(&app).await;
    hook(&app, Some(sender), &receiver.url, &[EventType::MessageDelivered]).await;
    receiver.always(Some(500));
    send(&app, "+34600111222").await;
    app.drain().await;
    app.request("PATCH", &format!("/v1/senders/{sender}"), Some(json!({"webhookActive": false}))).await.expect(200);
    let all = app.get("/v1/webhooks/deliveries").await.expect(200).json();
    let dead = &all["items"][0];
    assert_eq!((&dead["status"], dead.get("nextAttemptAt")), (&json!("dead"), None), "{all}");
    assert_eq!(dead["reason"], "the webhook was removed or switched off", "{all}");
}

/// What waited for a webhook is dropped after it was deleted, in steps that a crash or the caller can interrupt.
#[tokio::test]
async fn a_new_webhook_gets_nothing_that_waited_for_a_deleted_one() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let (old, new) = (Receiver::start().await, Receiver::start().await);
        let sender = default_sender(&app).await;
        for of in [None, Some(sender)] {
            hook(&app, of, &old.url, &[EventType::MessageDelivered, EventType::InvitationStatusChanged]).await;
            old.always(Some(500));
            match of {
                None => cancel_an_invitation(&app).await,
                Some(_) => drop(send(&app, "+34600111222").await),
            }
            app.drain().await;
            assert_eq!(
                app.get("/v1/webhooks/deliveries?status=failed").await.expect(200).json()["items"].as_array().map(Vec::len),
                Some(1)
            );
            let mut tx = app.store().begin().await.expect("a transaction");
            tx.delete_webhook(app.tenant(), of).await.expect("deleted");
            tx.raise_epoch(app.tenant()).await.expect("raised");
            tx.commit().await.expect("committed");
            match of {
                None => drop(app.request("PUT", "/v1/webhook", Some(json!({"url": new.url}))).await.expect(201)),
                Some(sender) => {
                    let change = json!({"webhookUrl": new.url, "webhookEvents": ["message.delivered"]});
                    drop(app.request("PATCH", &format!("/v1/senders/{sender}"), Some(change)).await.expect(200));
                }
            }
            app.advance(Duration::from_secs(30)).await;
            assert_eq!(new.taken(), [""; 0]);
            if of.is_none() {
                app.request("DELETE", "/v1/webhook", None).await.expect(204);
            }
        }
        send(&app, "+34600111222").await;
        app.drain().await;
        assert_eq!(new.taken(), ["message.delivered"]);
    }
}

/// The result of its last post comes after what waited was dropped.
#[tokio::test]
async fn a_new_webhook_gets_nothing_that_failed_while_the_old_one_was_deleted() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let (old, new) = (Receiver::start().await, Receiver::start().await);
        let sender = default_sender(&app).await;
        let change = async |body: Value| drop(app.request("PATCH", &format!("/v1/senders/{sender}"), Some(body)).await.expect(200));
        // The node goes on reading the log for it.
        hook(&app, None, &new.url, &[EventType::ContactMerged]).await;
        hook(&app, Some(sender), &old.url, &[EventType::MessageDelivered]).await;
        old.always(Some(500));
        old.hold(true);
        send(&app, "+34600111222").await;
        let replaced = async {
            while old.got().is_empty() {
                tokio::task::yield_now().await;
            }
            app.clock.advance(Duration::from_secs(1));
            change(json!({"webhookUrl": null})).await;
            change(json!({"webhookUrl": new.url, "webhookEvents": ["message.delivered"]})).await;
            old.hold(false);
        };
        tokio::join!(app.drain(), replaced);
        app.advance(Duration::from_secs(30)).await;
        assert_eq!((new.taken(), old.got().len()), (Vec::new(), 1));
        let delivery = app.get("/v1/webhooks/deliveries").await.expect(200).json()["items"][0].clone();
        assert_eq!(delivery["status"], "dead", "{delivery}");

        new.answer(&[500]);
        let replay = format!("/v1/webhooks/deliveries/{}/replay", delivery["id"].as_str().expect("an id"));
        app.post(&replay, json!({})).await.expect(202);
        app.drain().await;
        app.advance(Duration::from_secs(30)).await;
        assert_eq!(new.taken(), ["message.delivered"], "who replays it means the new webhook");
    }
}

#[tokio::test]
async fn a_crash_repeats_what_was_under_way_and_loses_nothing() {
    for backend in Backend::all() {
        let mut app = app(backend).await;
        let receiver = Receiver::start().await;
        hook(&app, Some(default_sender(&app).await), &receiver.url, &[EventType::MessageDelivered]).await;
        receiver.answer(&[500; 3]);
        let ids = [send(&app, "+34600111222").await, send(&app, "+34600111223").await, send(&app, "+34600111224").await];
        app.drain().await;
        app.crash().await;
        app.advance(Duration::from_secs(30)).await;
        let told: std::collections::BTreeSet<String> = receiver
            .got()
            .iter()
            .filter(|p| p.answered == 200)
            .map(|p| p.json()["data"]["message"]["id"].as_str().unwrap_or_default().to_owned())
            .collect();
        assert_eq!(told, ids.into_iter().collect());
    }
}

// holds: webhooks.test
#[tokio::test]
async fn a_webhook_can_be_tried_out() {
    let app = app(Backend::Sqlite).await;
    let receiver = Receiver::start().await;
    let sender = default_sender(&app).await;
    app.post(&format!("/v1/senders/{sender}/webhook/test"), json!({})).await.expect(400);
    hook(&app, Some(sender), &receiver.url, &[]).await;
    let tested = app.post(&format!("/v1/senders/{sender}/webhook/test"), json!({})).await.expect(202).json();
    app.drain().await;
    assert_eq!(receiver.taken(), ["webhook.test"]);
    assert_eq!(receiver.got()[0].header("webhook-id"), tested["eventId"]);
    let delivery = tested["deliveryId"].as_str().expect("an id");
    assert_eq!(app.get(&format!("/v1/webhooks/deliveries/{delivery}")).await.expect(200).json()["delivery"]["status"], "delivered");
}

// holds: webhooks.test
#[tokio::test]
async fn the_webhook_of_a_world_can_be_tried_out() {
    for backend in Backend::all() {
        let app = app(backend).await;
        app.post("/v1/webhook/test", json!({})).await.expect(400);
        let receiver = Receiver::start().await;
        let of_sender = default_sender(&app).await;
        let of_world = Receiver::start().await;
        hook(&app, Some(of_sender), &receiver.url, &[]).await;
        app.post("/v1/webhook/test", json!({})).await.expect(400);
        hook(&app, None, &of_world.url, &[]).await;
        let tested = app.post("/v1/webhook/test", json!({})).await.expect(202).json();
        app.drain().await;
        assert_eq!((of_world.taken(), receiver.taken().len()), (vec!["webhook.test".to_owned()], 0));
        let path = format!("/v1/webhooks/deliveries/{}", tested["deliveryId"].as_str().expect("an id"));
        let delivery = app.get(&path).await.expect(200).json()["delivery"].clone();
        assert_eq!(
            (&delivery["status"], &delivery["senderId"], &delivery["eventId"]),
            (&json!("delivered"), &Value::Null, &tested["eventId"])
        );
    }
}

// holds: events.list
#[tokio::test]
async fn the_log_is_paged_newest_first_without_gaps() {
    for backend in Backend::all() {
        let app = app(backend).await;
        for n in 0..7 {
            send(&app, &format!("+3460011122{n}")).await;
            app.drain().await;
        }
        let whole = app.get("/v1/events?limit=100").await.expect(200).json();
        let ids = |page: &Value| -> Vec<String> {
            page["items"].as_array().expect("items").iter().map(|e| e["id"].as_str().unwrap_or_default().to_owned()).collect()
        };
        assert_eq!(ids(&whole).len(), 28);
        for limit in [1, 3, 5, 28] {
            let (mut seen, mut cursor) = (Vec::new(), String::new());
            loop {
                let page = app.get(&format!("/v1/events?limit={limit}{cursor}")).await.expect(200).json();
                assert!(!ids(&page).is_empty() && ids(&page).len() <= limit);
                seen.extend(ids(&page));
                match page["nextCursor"].as_str() {
                    Some(next) => cursor = format!("&cursor={next}"),
                    None => break,
                }
            }
            assert_eq!(seen, ids(&whole), "{limit}");
        }
        app.get("/v1/events?cursor=nonsense").await.expect(400);
    }
}

/// Waits for the message without waiting for webhooks.
pub(crate) async fn until_delivered(app: &TestApp, id: &str) {
    while app.message(id).await["status"] != "delivered" {
        app.node.tick().await.expect("dispatch");
        tokio::task::yield_now().await;
    }
}

/// Returns the event sequences of each message, in the order of first arrival.
fn heard(posts: &[Posted]) -> BTreeMap<String, Vec<i64>> {
    let mut heard: BTreeMap<String, Vec<i64>> = BTreeMap::new();
    for json in posts.iter().map(Posted::json) {
        let events = heard.entry(json["data"]["message"]["id"].as_str().expect("an id").to_owned()).or_default();
        let sequence = json["sequence"].as_i64().expect("a sequence");
        if !events.contains(&sequence) {
            events.push(sequence);
        }
    }
    heard
}

// holds: webhooks.order
#[tokio::test]
async fn what_piled_up_is_told_in_order() {
    for (backend, crashes) in Backend::all().into_iter().flat_map(|backend| [(backend, false), (backend, true)]) {
        let mut app = app(backend).await;
        let receiver = Receiver::start().await;
        let told = [EventType::MessageQueued, EventType::MessageSending, EventType::MessageDelivered];
        hook(&app, Some(default_sender(&app).await), &receiver.url, &told).await;
        receiver.hold(true);
        // More events than are stored at a time.
        for n in 0..300 {
            let id = send(&app, &format!("+34600111{n:03}")).await;
            until_delivered(&app, &id).await;
            app.clock.advance(Duration::from_millis(1));
        }
        app.node.tick().await.expect("dispatch");
        // Events that waited this long are stored as pending deliveries: some in this round, the rest in the next ones.
        app.clock.advance(Duration::from_secs(2));
        app.node.tick().await.expect("dispatch");
        if crashes {
            app.crash().await;
        }
        receiver.hold(false);
        app.drain().await;
        app.advance(Duration::from_secs(70)).await;
        let heard = heard(&receiver.got());
        assert_eq!(heard.len(), 300);
        for (id, sequences) in heard {
            assert!(sequences.len() == 3 && sequences.is_sorted(), "{id} crashed={crashes}: {sequences:?}");
        }
    }
}

// holds: webhooks.order
#[tokio::test]
async fn a_new_reader_reads_on_before_it_makes_what_was_put_off() {
    for backend in Backend::all() {
        let mut app = app(backend).await;
        let receiver = Receiver::start().await;
        let told = [EventType::MessageQueued, EventType::MessageSending, EventType::MessageDelivered];
        let other = app.post("/v1/senders", json!({"name": "other"})).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
        hook(&app, other.parse().ok(), &receiver.url, &told).await;
        // More of the log than is read at a time, without events for the webhook.
        for n in 0..300 {
            send(&app, &format!("+34600111{n:03}")).await;
            app.drain().await;
        }
        receiver.hold(true);
        let (auth, body) = (format!("Bearer {}", app.test_key), json!({"to": "+34600222000", "text": "x"}));
        let sent = app.send("POST", "/v1/messages", &[("authorization", &auth), ("service-sender", &other)], Some(body)).await;
        let id = sent.expect(202).json()["message"]["id"].as_str().expect("an id").to_owned();
        until_delivered(&app, &id).await;
        for _ in 0..3 {
            app.clock.advance(Duration::from_secs(2));
            app.node.tick().await.expect("dispatch");
        }
        // The node dies when only the second event was stored.
        app.sql("DELETE FROM deliveries WHERE sequence <> 2").await;
        app.sql("UPDATE webhook_cursors SET position = 0, entry = 0").await;
        let before = receiver.got().len();
        app.crash().await;
        receiver.hold(false);
        app.drain().await;
        assert_eq!(heard(&receiver.got()[before..]), BTreeMap::from([(id, vec![1, 2, 4])]), "{backend:?}");
    }
}

// holds: webhooks.isolation
#[tokio::test]
async fn a_dead_endpoint_delays_nobody() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let (dead, alive) = (Receiver::start().await, Receiver::start().await);
        dead.always(Some(500));
        let other = app.post("/v1/senders", json!({"name": "other"})).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
        // Several events per message: some wait behind a failing one.
        let told = [EventType::MessageQueued, EventType::MessageSending, EventType::MessageDelivered];
        hook(&app, Some(default_sender(&app).await), &dead.url, &told).await;
        hook(&app, other.parse().ok(), &alive.url, &[EventType::MessageDelivered]).await;
        let (auth, sender) = (format!("Bearer {}", app.test_key), other);
        for n in 0..50 {
            send(&app, &format!("+346001113{n:02}")).await;
            let body = json!({"to": format!("+346001114{n:02}"), "text": "x"});
            app.send("POST", "/v1/messages", &[("authorization", &auth), ("service-sender", &sender)], Some(body)).await.expect(202);
        }
        app.drain().await;
        assert_eq!(alive.taken().len(), 50);
        assert!(dead.got().len() < 100, "an endpoint that only fails is left in peace: {}", dead.got().len());
        dead.always(None);
        for _ in 0..3 {
            app.advance(Duration::from_secs(70)).await;
        }
        assert_eq!(dead.taken().len(), 150, "and gets everything when it is back");
    }
}

#[tokio::test]
async fn the_log_can_be_followed_and_resumed() {
    for backend in Backend::all() {
        let app = app(backend).await;
        let caller = app.node.core.keys().authenticate(&app.test_key).await.expect("a caller");
        let begin = app.node.core.events().begin(&caller, &EventFilter::default()).await.expect("the end");
        for n in 0..3 {
            send(&app, &format!("+3460011122{n}")).await;
        }
        app.drain().await;
        let (all, end) = app.node.core.events().after(&caller, &EventFilter::default(), begin, 100).await.expect("events");
        assert_eq!(all.len(), 12);
        assert_eq!(app.node.core.events().after(&caller, &EventFilter::default(), end, 100).await.expect("events").0.len(), 0);
        // After any event, the next one follows: also in the middle of a row.
        for (n, (token, _)) in all.iter().enumerate() {
            let seen = app.node.core.events().seen(&caller, token).expect("a token of the stream");
            let (rest, _) = app.node.core.events().after(&caller, &EventFilter::default(), seen, 100).await.expect("events");
            let ids = |events: &[(String, nuncio_core::events::EventView)]| events.iter().map(|(_, e)| e.id).collect::<Vec<_>>();
            assert_eq!(ids(&rest), ids(&all[n + 1..]), "{n}");
        }
        assert!(app.node.core.events().seen(&caller, "nonsense").is_err());
    }
}
