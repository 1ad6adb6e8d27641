//! `auto`: the choice of a message's channel.

use std::time::Duration;

use nuncio_channel::{Account, AdapterFactory, Field, FieldKind, Inbound, ProviderEvent, Registry};
use nuncio_domain::{AddressKind, Channel, Clock as _, Recipient, Timestamp};
use nuncio_store::{CountryMetrics, MetricDelta};
use nuncio_testkit::{Backend, Options, TestApp};
use serde_json::{Value, json};

use crate::scripted::with_stand_in;

async fn plan(app: &TestApp, body: Value) -> Value {
    app.post("/v1/messages?dryRun=true", body).await.expect(200).json()["plan"].clone()
}

async fn price(app: &TestApp, sms: &str, whatsapp: &str) {
    let csv = format!("channel,country,unit,provider,fee\nsms,*,segment,{sms},0\nwhatsapp,*,message,{whatsapp},0\n");
    app.node.core.billing().import_prices(None, &csv, true).await.expect("good prices");
}

/// Records results of attempts to a recipient.
async fn history(app: &TestApp, to: &str, channel: Channel, successes: i64, failures: i64) {
    let recipient = Recipient { kind: AddressKind::Phone, identifier: to.to_owned() };
    let (address, _) =
        app.store().read().await.expect("a reader").find_address(app.tenant(), &recipient).await.expect("a look").expect("known");
    let delta = MetricDelta { successes, failures, ..MetricDelta::default() };
    app.store().add_metrics(vec![(app.tenant(), address, channel, delta)]).await.expect("metrics");
}

// holds: messages.auto
#[tokio::test]
async fn the_cheapest_channel_that_is_likely_to_arrive() {
    for app in TestApp::on_each().await {
        let body = json!({"to": "+34600111222", "text": "x"});
        let equal = plan(&app, body.clone()).await;
        assert_eq!(equal["channel"], "sms", "without prices the order decides");
        price(&app, "0.05", "0.02").await;
        let cheap = plan(&app, body.clone()).await;
        assert_eq!(cheap["channel"], "whatsapp", "{cheap}");
        let reason = cheap["routing"]["reason"].as_str().unwrap_or_default();
        assert!(
            reason.starts_with("auto: whatsapp is the cheapest") && reason.contains("$0.02; assumed 90 % likely to arrive"),
            "{reason}"
        );
        let considered = cheap["routing"]["considered"].as_array().cloned().unwrap_or_default();
        assert_eq!(considered.len(), 3);
        assert_eq!(considered[1], json!({"channel": "sms_oneway", "usable": false, "reason": "sms is connected, which allows replies"}));
        // A channel that keeps failing for this recipient is skipped; others still use it.
        app.send_message(body.clone()).await;
        app.drain().await;
        history(&app, "+34600111222", Channel::Whatsapp, 0, 3).await;
        let passed = plan(&app, body.clone()).await;
        assert_eq!(passed["channel"], "sms", "{passed}");
        let reason = passed["routing"]["reason"].as_str().unwrap_or_default();
        assert!(reason.starts_with("auto: sms is the only channel that is likely enough to deliver ($"), "{reason}");
        assert_eq!(plan(&app, json!({"to": "+34600111223", "text": "x"})).await["channel"], "whatsapp");
        // If no channel is good, the best one is used.
        history(&app, "+34600111222", Channel::Sms, 0, 30).await;
        let nearest = plan(&app, body.clone()).await;
        assert_eq!(nearest["channel"], "whatsapp");
        assert!(nearest["routing"]["reason"].as_str().unwrap_or_default().contains("no channel is likely enough"), "{nearest}");
        // A country where it is hardly ever delivered.
        let mut tx = app.store().begin().await.expect("a transaction");
        let poor = CountryMetrics { channel: Channel::Whatsapp, country: "FR".into(), successes: 10, failures: 90 };
        tx.add_country_metrics(app.tenant(), &poor).await.expect("metrics");
        tx.commit().await.expect("a commit");
        app.clock.advance(Duration::from_secs(1));
        assert_eq!(plan(&app, json!({"to": "+33612345678", "text": "x"})).await["channel"], "sms");
        assert_eq!(plan(&app, json!({"to": "+34600111223", "text": "x"})).await["channel"], "whatsapp");
    }
}

// holds: messages.auto.never_voice
#[tokio::test]
async fn voice_is_never_chosen_by_itself() {
    let app = TestApp::start().await;
    let prices = "channel,country,unit,provider,fee\nsms,*,segment,1,0\nwhatsapp,*,message,1,0\nvoice,*,minute,0,0\n";
    app.node.core.billing().import_prices(None, prices, true).await.expect("good prices");
    for body in [json!({"to": "+12125550009", "text": "x"}), json!({"to": "+34600111222", "text": "x"})] {
        let plan = plan(&app, body).await;
        assert_ne!(plan["channel"], "voice");
        let considered = plan["routing"]["considered"].as_array().cloned().unwrap_or_default();
        assert!(considered.iter().all(|channel| channel["channel"] != "voice"), "{plan}");
    }
}

#[tokio::test]
async fn what_happens_is_counted_by_country() {
    for app in TestApp::on_each().await {
        for n in 0..5 {
            app.send_message(json!({"to": format!("+3460011122{n}"), "text": "x"})).await;
        }
        app.send_message(json!({"to": "+12125550001", "text": "x"})).await;
        app.send_message(json!({"to": "a@example.org", "subject": "s", "text": "x"})).await;
        // WhatsApp fails at once; delivery by SMS does not hide that.
        app.send_message(json!({"to": "+12125550002", "text": "x", "channel": "whatsapp"})).await;
        app.drain().await;
        let rows = app.store().read().await.expect("a reader").country_metrics(app.tenant()).await.expect("metrics");
        let row = |channel, country: &str, successes, failures| CountryMetrics { channel, country: country.into(), successes, failures };
        assert_eq!(rows, [row(Channel::Sms, "ES", 5, 0), row(Channel::Sms, "US", 1, 1), row(Channel::Whatsapp, "US", 0, 1)]);
    }
}

// holds: messages.auto
#[tokio::test]
async fn the_channel_of_the_newest_inbound_message_goes_first() {
    for app in TestApp::on_each().await {
        price(&app, "0.01", "0.02").await;
        let to = "+12125550006";
        app.send_message(json!({"to": to, "text": "x", "channel": "whatsapp"})).await;
        app.drain().await;
        app.advance(Duration::from_secs(1)).await; // the recipient replies by WhatsApp
        let plan_now = plan(&app, json!({"to": to, "text": "x"})).await;
        assert_eq!(plan_now["channel"], "whatsapp", "though dearer: {plan_now}");
        assert!(
            plan_now["routing"]["reason"].as_str().unwrap_or_default().contains("newest message of the last 24 hours came by whatsapp")
        );
        app.send_message(json!({"to": to, "text": "x", "channel": "sms"})).await;
        app.drain().await;
        app.advance(Duration::from_secs(1)).await;
        assert_eq!(plan(&app, json!({"to": to, "text": "x"})).await["channel"], "sms");
        app.advance(Duration::from_secs(86_400)).await;
        let later = plan(&app, json!({"to": to, "text": "x"})).await;
        assert!(later["routing"]["reason"].as_str().unwrap_or_default().contains("cheapest"), "{later}");
    }
}

#[tokio::test]
async fn content_that_a_channel_cannot_carry_rules_it_out() {
    let app = TestApp::start().await;
    let long = plan(&app, json!({"to": "+34600111222", "text": "x".repeat(1_601)})).await;
    assert_eq!((&long["channel"], long.get("fallbackChannel")), (&json!("whatsapp"), None), "{long}");
    let warnings = long["routing"]["warnings"].to_string();
    assert!(
        warnings.contains("has no fallback to") && warnings.contains("takes 1601 characters on sms; must take at most 1600"),
        "{warnings}"
    );
    let closed = app.post("/v1/messages", json!({"to": "+12125550009", "text": "x".repeat(1_601)})).await.expect(400).json();
    assert_eq!(closed["details"]["errors"][0]["path"], "text", "{closed}");
    let too_long = json!({"to": "+34600111222", "text": "x".repeat(4_097), "validitySeconds": 60, "subject": "s"});
    let too_long = app.post("/v1/messages", too_long).await.expect(400).json();
    let told: Vec<_> = too_long["details"]["errors"].as_array().expect("a list").iter().map(|fault| fault["message"].clone()).collect();
    let takes = |channel: &str, most: u32| json!(format!("takes 4097 characters on {channel}; must take at most {most}"));
    assert_eq!(told, [json!("is for email only; the channel is sms"), takes("sms", 1_600), takes("whatsapp", 4_096)], "{too_long}");
    let image = |to: &str, content: Value| json!({"to": to, "messageType": "image", "content": content});
    let link = json!({"mediaUrl": "https://example.com/a.png"});
    assert_eq!(plan(&app, image("+34600111222", link.clone())).await["channel"], "whatsapp", "what carries it natively goes first");
    let degraded = plan(&app, image("+12125550009", link)).await;
    assert_eq!((&degraded["channel"], &degraded["degraded"]), (&json!("sms"), &json!(["sms: the media is sent as a link"])), "{degraded}");
    let bound = app.post("/v1/messages", image("+12125550009", json!({"mediaId": "4711"}))).await.expect(400).json();
    assert_eq!(bound["code"], "whatsapp_window_closed", "{bound}");
    assert_eq!(plan(&app, image("+34600111222", json!({"mediaId": "4711"}))).await.get("fallbackChannel"), None);
    // Neither an email nor a call can use what only a messaging app's provider knows.
    for body in [
        json!({"to": "a@example.org", "subject": "s", "messageType": "image", "content": {"mediaId": "4711"}}),
        json!({"to": "+34600111222", "channel": "voice", "text": "x", "messageType": "audio", "content": {"mediaId": "4711"}}),
    ] {
        let refused = app.post("/v1/messages", body).await.expect(400).json();
        assert_eq!(refused["details"]["errors"][0]["path"], "content.mediaId", "{refused}");
    }
}

/// The simulator as a provider whose messages come from what the account says.
fn named_line() -> AdapterFactory {
    const FIELDS: &[Field] = &[Field::optional("from", FieldKind::Text, "whom messages come from")];
    let sim = nuncio_channel_sim::factory();
    AdapterFactory::new("named_line", sim.channels(), FIELDS, move |account, services| {
        sim.open(&Account { settings: serde_json::Map::new(), ..account.clone() }, services)
    })
}

#[tokio::test]
async fn from_is_that_of_the_newest_attempt() {
    for backend in Backend::all() {
        let registry = Registry::new(vec![nuncio_channel_sim::factory(), named_line()]);
        let app = TestApp::with(backend, Options { registry, ..Options::default() }).await;
        app.connect(Channel::Whatsapp, "named_line", json!({"from": "+34600000001"}), json!({})).await;
        app.connect(Channel::Sms, "named_line", json!({"from": "ACME"}), json!({})).await;
        let config = app.node.core.tenant_config(app.project.live).await.expect("the live world");
        let connection = config.connections.iter().find(|c| c.channel == Channel::Whatsapp).expect("a connection").id;
        let (now, auth) = (app.node.core.ids().clock.now(), format!("Bearer {}", app.live_key));
        for (to, from) in [("+12125550002", "ACME"), ("+12125550100", "+34600000001")] {
            let place = (app.project.live, connection, Channel::Whatsapp);
            let inbound = Inbound::text(place, to.to_owned(), to.to_owned(), "hi".to_owned(), now);
            app.node.events().push(ProviderEvent::Inbound(inbound), Duration::ZERO);
            app.drain().await;
            let auth = [("authorization", auth.as_str())];
            let body = json!({"to": to, "text": "x", "channel": "whatsapp"});
            let sent = app.send("POST", "/v1/messages", &auth, Some(body)).await.expect(202).json()["message"].clone();
            assert_eq!(sent["from"], "+34600000001", "the first attempt");
            app.drain().await;
            let path = format!("/v1/messages/{}", sent["id"].as_str().expect("an id"));
            let message = app.send("GET", &path, &auth, None).await.expect(200).json()["message"].clone();
            assert_eq!((&message["status"], &message["from"]), (&json!("delivered"), &json!(from)), "{message}");
        }
    }
}

/// In the live environment, inbound messages open the window.
#[tokio::test]
async fn the_live_window_opens_with_an_inbound_message() {
    let app = with_stand_in(Backend::Sqlite).await;
    let recipient = Recipient { kind: AddressKind::Phone, identifier: "+34600111222".into() };
    let live = [("authorization", format!("Bearer {}", app.live_key))];
    let live: Vec<_> = live.iter().map(|(n, v)| (*n, v.as_str())).collect();
    for channel in [Channel::Sms, Channel::Whatsapp] {
        app.connect(channel, "stand_in", json!({}), json!({})).await;
    }
    let send = async |channel: &str| {
        app.send("POST", "/v1/messages?dryRun=true", &live, Some(json!({"to": recipient.identifier, "text": "x", "channel": channel})))
            .await
    };
    assert_eq!(send("whatsapp").await.expect(400).json()["code"], "whatsapp_window_closed");
    let auto = send("auto").await.expect(200).json();
    assert_eq!(auto["plan"]["routing"]["considered"][2]["usable"], false, "{auto}");
    let world = app.node.core.tenant_config(app.project.live).await.expect("a world");
    let connection = world.connections.iter().find(|c| c.channel == Channel::Whatsapp).expect("a connection").id;
    let place = (app.project.live, connection, Channel::Whatsapp);
    let brought = async |id: &str, at: Timestamp| {
        let inbound = nuncio_channel::Inbound::text(place, id.into(), recipient.identifier.clone(), "hello".into(), at);
        app.node.events().push(nuncio_channel::ProviderEvent::Inbound(inbound), Duration::ZERO);
        app.drain().await;
    };
    let written = Timestamp::from_millis(app.clock.now().millis() - 2 * 86_400_000);
    brought("in-0", written).await;
    assert_eq!(send("whatsapp").await.expect(400).json()["code"], "whatsapp_window_closed", "it was written two days before");
    brought("in-1", app.clock.now()).await;
    let open = send("whatsapp").await.expect(200).json();
    assert_eq!((&open["plan"]["window"]["open"], &open["plan"]["window"]["expiresAt"]), (&json!(true), &json!("2026-01-02T00:00:00.000Z")));
    assert_eq!(send("auto").await.expect(200).json()["plan"]["channel"], "whatsapp");
    let later = async |channel: &str, at: &str| {
        let body = json!({"to": recipient.identifier, "text": "x", "channel": channel, "scheduledAt": at});
        app.send("POST", "/v1/messages?dryRun=true", &live, Some(body)).await
    };
    later("whatsapp", "2026-01-01T23:00:00Z").await.expect(200);
    let closed = later("whatsapp", "2026-01-02T01:00:00Z").await.expect(400).json();
    assert_eq!(closed["code"], "whatsapp_window_closed", "closed by the time it is sent");
    assert_eq!(later("auto", "2026-01-02T01:00:00Z").await.expect(200).json()["plan"]["channel"], "sms");
    app.clock.advance(Duration::from_secs(86_400));
    app.node.tick().await.expect("a beat");
    assert_eq!(send("auto").await.expect(200).json()["plan"]["channel"], "sms");
}

/// Instagram sends nothing outside the window, not even a template, which is sent as text.
#[tokio::test]
async fn instagram_has_a_window_of_its_own() {
    for backend in Backend::all() {
        let app = with_stand_in(backend).await;
        let live = [("authorization", format!("Bearer {}", app.live_key))];
        let live: Vec<_> = live.iter().map(|(n, v)| (*n, v.as_str())).collect();
        for channel in [Channel::Telegram, Channel::Instagram] {
            app.connect(channel, "stand_in", json!({}), json!({})).await;
        }
        let ada = "1254459154682919";
        let send = async |channel: &str, path: &str| {
            app.send("POST", path, &live, Some(json!({"to": ada, "text": "x", "channel": channel}))).await
        };
        for path in ["/v1/messages", "/v1/messages?dryRun=true"] {
            assert_eq!(send("instagram", path).await.expect(400).json()["code"], "window_closed");
        }
        let world = app.node.core.tenant_config(app.project.live).await.expect("a world");
        let write = async |channel: Channel| {
            let connection = world.connections.iter().find(|c| c.channel == channel).expect("a connection").id;
            let place = (app.project.live, connection, channel);
            let inbound = nuncio_channel::Inbound::text(place, format!("{channel}-1"), ada.into(), "hello".into(), app.clock.now());
            app.node.events().push(nuncio_channel::ProviderEvent::Inbound(inbound), Duration::ZERO);
            app.drain().await;
        };
        write(Channel::Telegram).await;
        send("instagram", "/v1/messages").await.expect(400);
        send("telegram", "/v1/messages").await.expect(202);
        write(Channel::Instagram).await;
        let open = send("instagram", "/v1/messages?dryRun=true").await.expect(200).json();
        let window = &open["plan"]["window"];
        assert_eq!((&window["open"], &window["expiresAt"]), (&json!(true), &json!("2026-01-02T00:00:00.000Z")), "{open}");
        send("instagram", "/v1/messages").await.expect(202);
        app.clock.advance(Duration::from_secs(86_400));
        app.node.tick().await.expect("a beat");
        send("instagram", "/v1/messages").await.expect(400);
    }
}

#[tokio::test]
async fn the_sandbox_has_a_closed_window_of_instagram_too() {
    let app = TestApp::start().await;
    let body = |to: &str| json!({"to": to, "text": "x", "channel": "instagram"});
    assert_eq!(app.post("/v1/messages", body("900000009")).await.expect(400).json()["code"], "window_closed");
    app.post("/v1/messages", body("900000001")).await.expect(202);
}
