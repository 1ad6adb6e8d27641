//! Instagram through the whole server, both directions, with a scripted Graph API.

use nuncio_channel::scripted::{Reply, Scripted, Seen};
use nuncio_channel_meta::scripted::{SECRET, TOKEN, WORD, sign};
use nuncio_domain::Channel;
use nuncio_testkit::{Backend, TestApp};
use serde_json::{Value, json};

const ACCOUNT: &str = "17841405309211844";
const ADA: &str = "1254459154682919";

/// Accepts each message with a recognizable id.
async fn graph() -> Scripted {
    Scripted::start(|seen: &Seen| {
        let kind = if seen.json()["message"].get("text").is_some() { "text" } else { "media" };
        Reply::json(200, &json!({"recipient_id": ADA, "message_id": format!("mid-{kind}")}))
    })
    .await
}

#[tokio::test]
async fn a_conversation_on_instagram() {
    for backend in Backend::all() {
        let (api, app) = (graph().await, TestApp::on(backend).await);
        let secrets = json!({"access_token": TOKEN, "app_secret": SECRET, "verify_token": WORD});
        app.connect(Channel::Instagram, "instagram", json!({"account_id": ACCOUNT, "base_url": api.base()}), secrets).await;
        let world = app.node.core.tenant_config(app.project.live).await.expect("the live world");
        let connection = world.connections.iter().find(|c| c.kind == "instagram").expect("a connection").id;
        let (address, auth) = (format!("/providers/instagram/{connection}"), format!("Bearer {}", app.live_key));
        let auth = [("authorization", auth.as_str())];

        let trial = format!("{address}?hub.mode=subscribe&hub.verify_token={WORD}&hub.challenge=42");
        assert_eq!(app.raw("GET", &trial, &[], Vec::new()).await.expect(200).text, "42");

        let tell = async |event: Value| {
            let mut all = json!({"sender": {"id": ADA}, "recipient": {"id": ACCOUNT}});
            all.as_object_mut().expect("an object").extend(event.as_object().expect("an object").clone());
            let body = json!({"object": "instagram", "entry": [{"id": ACCOUNT, "messaging": [all]}]}).to_string().into_bytes();
            app.raw("POST", &address, &[("x-hub-signature-256", "sha256=00")], body.clone()).await.expect(401);
            for _ in 0..2 {
                app.raw("POST", &address, &[("x-hub-signature-256", &sign(&body))], body.clone()).await.expect(200);
            }
            app.drain().await;
        };
        let send = async |body: Value| app.send("POST", "/v1/messages", &auth, Some(body)).await;
        let image = json!({"to": ADA, "channel": "instagram", "messageType": "image", "text": "See",
            "content": {"mediaUrl": "https://x.example/a.png"}});
        send(image.clone()).await.expect(400);
        tell(json!({"message": {"mid": "mid-in", "text": "hi"}})).await;
        let inbound = app.send("GET", "/v1/messages?direction=inbound&since=2026-01-01T00:00:00Z", &auth, None).await.expect(200).json();
        let items = inbound["items"].as_array().expect("a page");
        assert_eq!((items.len(), &items[0]["from"], &items[0]["text"]), (1, &json!(ADA), &json!("hi")), "told twice, it is one: {inbound}");

        let id = send(image).await.expect(202).json()["message"]["id"].as_str().expect("an id").to_owned();
        app.drain().await;
        let status = async || {
            let message = app.send("GET", &format!("/v1/messages/{id}"), &auth, None).await.expect(200).json();
            message["message"]["status"].as_str().expect("a status").to_owned()
        };
        assert_eq!(status().await, "sent");
        assert_eq!(api.seen().len(), 2, "an image and its text");
        tell(json!({"read": {"mid": "mid-media"}})).await;
        assert_eq!(status().await, "sent", "its text was not read");
        tell(json!({"read": {"mid": "mid-text"}})).await;
        assert_eq!(status().await, "read");
    }
}
