//! Business profiles, with the simulated provider.

use std::sync::Arc;

use nuncio_testkit::{Backend, Options, TestApp, TestResponse};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

async fn profile_path(app: &TestApp) -> String {
    let all = app.get("/v1/senders").await.expect(200).json();
    format!("/v1/senders/{}/profile", all["items"][0]["id"].as_str().expect("an id"))
}

async fn patch(app: &TestApp, body: Value) -> TestResponse {
    app.request("PATCH", &profile_path(app).await, Some(body)).await
}

fn faults(answer: &TestResponse) -> Vec<String> {
    assert_eq!(answer.status.as_u16(), 400, "{}", answer.text);
    let json = answer.json();
    let mut paths: Vec<_> =
        json["details"]["errors"].as_array().expect("faults").iter().map(|e| e["path"].as_str().expect("a path").to_owned()).collect();
    paths.sort();
    paths
}

// holds: profile.update, profile.get
#[tokio::test]
async fn a_profile_is_what_was_made_of_it() {
    for app in TestApp::on_each().await {
        let path = profile_path(&app).await;
        assert_eq!(app.get(&path).await.expect(200).json(), json!({"profile": {"websites": [], "vertical": "UNDEFINED"}}));
        let full = json!({"about": "a".repeat(139), "address": "é".repeat(256), "description": "d".repeat(512), "email": "hello@Example.org",
            "websites": ["https://example.org", "http://example.net/x"], "vertical": "PROF_SERVICES"});
        let changed = patch(&app, full.clone()).await.expect(200).json();
        assert_eq!(changed, json!({"success": true, "profile": full}));
        let cleared = patch(&app, json!({"email": "", "websites": [], "about": "new"})).await.expect(200).json();
        let mut expected = full;
        expected.as_object_mut().expect("an object").remove("email");
        (expected["websites"], expected["about"]) = (json!([]), json!("new"));
        assert_eq!(cleared["profile"], expected, "what is left out stays");
        assert_eq!(patch(&app, json!({})).await.expect(200).json()["profile"], expected);
        assert_eq!(app.get(&path).await.expect(200).json()["profile"], expected);
    }
}

// holds: profile.limits, profile.vertical
#[tokio::test]
async fn each_limit_is_held() {
    let app = TestApp::start().await;
    for (body, expected) in [
        (json!({"about": "x".repeat(140)}), vec!["about"]),
        (json!({"address": "x".repeat(257)}), vec!["address"]),
        (json!({"description": "x".repeat(513)}), vec!["description"]),
        (json!({"email": "nobody"}), vec!["email"]),
        (json!({"websites": ["https://a.example", "https://b.example", "https://c.example"]}), vec!["websites"]),
        (json!({"websites": ["https://a.example", "ftp://b.example"]}), vec!["websites[1]"]),
        (json!({"vertical": "PIRACY"}), vec!["vertical"]),
        (json!({"about": null, "websites": null}), vec!["about", "websites"]),
        (json!({"phone": "x"}), vec!["phone"]),
        (json!({"about": "x".repeat(140), "email": "nobody"}), vec!["about", "email"]),
    ] {
        assert_eq!(faults(&patch(&app, body.clone()).await), expected, "{body}");
    }
    for vertical in [
        "UNDEFINED", "OTHER", "AUTO", "BEAUTY", "APPAREL", "EDU", "ENTERTAIN", "EVENT_PLAN", "FINANCE", "GROCERY", "GOVT", "HOTEL",
        "HEALTH", "NONPROFIT", "PROF_SERVICES", "RETAIL", "TRAVEL", "RESTAURANT", "NOT_A_BIZ",
    ] {
        assert_eq!(patch(&app, json!({"vertical": vertical})).await.expect(200).json()["profile"]["vertical"], vertical);
    }
}

// holds: profile.not_connected
#[tokio::test]
async fn without_an_account_that_has_one_there_is_no_profile() {
    let app = TestApp::start().await;
    let live = async |method: &str, path: &str, body| app.with_key(&app.live_key, method, path, body).await;
    let sender = live("GET", "/v1/senders", None).await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
    let path = format!("/v1/senders/{sender}/profile");
    let picture = json!({"imageUrl": "https://example.com/x.png", "mimeType": "image/png"});
    for (method, path, body) in [
        ("GET", path.clone(), None),
        ("PATCH", path.clone(), Some(json!({"about": "x"}))),
        ("POST", format!("{path}/picture"), Some(picture.clone())),
    ] {
        assert_eq!(live(method, &path, body).await.expect(400).json()["code"], "sender_not_configured", "{method}");
    }
    for (method, path, body) in [("GET", "", None), ("PATCH", "", Some(json!({}))), ("POST", "/picture", Some(picture))] {
        app.request(method, &format!("/v1/senders/snd_nonsense/profile{path}"), body).await.expect(404);
    }
    // Also in the sandbox, once the channel is deleted, with the account's stored data.
    patch(&app, json!({"about": "x"})).await.expect(200);
    let path = profile_path(&app).await;
    let channel = path.replace("/profile", "/channels/whatsapp");
    app.request("DELETE", &channel, None).await.expect(204);
    assert_eq!(app.get(&path).await.expect(400).json()["code"], "sender_not_configured");
    assert!(app.get(&path.replace("/profile", "")).await.json().get("whatsapp").is_none());
    app.request("PUT", &channel, Some(json!({"kind": "sim"}))).await.expect(201);
    assert!(app.get(&path).await.expect(200).json()["profile"].get("about").is_none());
    assert_eq!(app.get(&path.replace("/profile", "")).await.json()["whatsapp"]["paymentStatus"]["setupStatus"], "COMPLETE");
}

#[tokio::test(flavor = "multi_thread")]
async fn parallel_changes_do_not_undo_each_other() {
    for backend in Backend::all() {
        let app = Arc::new(TestApp::on(backend).await);
        let changes: Vec<_> = [json!({"about": "a"}), json!({"address": "b"}), json!({"description": "c"})]
            .into_iter()
            .map(|body| {
                let app = Arc::clone(&app);
                tokio::spawn(async move { patch(&app, body).await.expect(200) })
            })
            .collect();
        for change in changes {
            change.await.expect("the request ends");
        }
        let profile = app.get(&profile_path(&app).await).await.expect(200).json()["profile"].clone();
        assert_eq!((&profile["about"], &profile["address"], &profile["description"]), (&json!("a"), &json!("b"), &json!("c")));
    }
}

/// Serves `body` at a local URL, any number of times.
async fn serve(body: Vec<u8>) -> String {
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/picture", listener.local_addr().expect("an address"));
    tokio::spawn(async move {
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1_024];
            let _ = stream.read(&mut request).await;
            let head = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n", body.len());
            let _ = stream.write_all(head.as_bytes()).await;
            let _ = stream.write_all(&body).await;
        }
    });
    url
}

// holds: profile.picture, profile.picture.refused
#[tokio::test]
async fn a_picture_is_fetched_and_looked_at() {
    let mut options = Options::default();
    (options.dispatch.guard.allow_http, options.dispatch.guard.allow_loopback) = (true, true);
    let app = TestApp::with(Backend::Sqlite, options).await;
    let path = format!("{}/picture", profile_path(&app).await);
    let png = b"\x89PNG\r\n\x1a\nrest".to_vec();
    let large = [png.clone(), vec![0; 5 * 1024 * 1024]].concat();
    let largest = [png.clone(), vec![0; 5 * 1024 * 1024 - png.len()]].concat();
    for (bytes, stated, good) in [
        (png.clone(), "image/png", true),
        (largest, "image/png", true),
        (vec![0xff, 0xd8, 0xff, 0xe0], "image/jpeg", true),
        (png.clone(), "image/jpeg", false),
        (b"<svg/>".to_vec(), "image/png", false),
        (Vec::new(), "image/png", false),
        (large, "image/png", false),
    ] {
        let url = serve(bytes).await;
        let answer = app.post(&path, json!({"imageUrl": url, "mimeType": stated})).await;
        if good {
            let json = answer.expect(200).json();
            assert_eq!((&json["success"], &json["profile"]["profilePictureUrl"]), (&json!(true), &json!(url)));
        } else {
            assert_eq!(faults(&answer), ["imageUrl"], "{}", answer.text);
        }
    }
    let unreachable = app.post(&path, json!({"imageUrl": "http://127.0.0.1:9/x", "mimeType": "image/png"})).await;
    assert_eq!(faults(&unreachable), ["imageUrl"]);
}

#[tokio::test]
async fn a_picture_comes_from_a_public_place() {
    let app = TestApp::start().await;
    let path = format!("{}/picture", profile_path(&app).await);
    for (url, setting) in [("http://example.com/x.png", "net.allow_http"), ("https://192.168.0.1/x.png", "net.allow_networks")] {
        let answer = app.post(&path, json!({"imageUrl": url, "mimeType": "image/png"})).await;
        assert_eq!(faults(&answer), ["imageUrl"]);
        assert!(answer.text.contains(setting), "{}", answer.text);
    }
    for (body, expected) in [
        (json!({}), vec!["imageUrl", "mimeType"]),
        (json!({"imageUrl": "https://example.com/x.gif", "mimeType": "image/gif"}), vec!["mimeType"]),
        (json!({"imageUrl": "nonsense", "mimeType": "image/png"}), vec!["imageUrl"]),
    ] {
        assert_eq!(faults(&app.post(&path, body).await), expected);
    }
}
