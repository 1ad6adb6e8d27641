//! Common features of lists: filters without matches, time ranges, arrays in queries; and conversations.

use std::collections::BTreeMap;
use std::time::Duration;

use nuncio_domain::event::EventType;
use nuncio_domain::{Channel, Timestamp};
use nuncio_testkit::TestApp;
use serde_json::{Value, json};

use crate::contacts::{create, text, write};

/// Returns the ids of a page, and its `nextCursor`.
async fn page(app: &TestApp, path: &str) -> (Vec<String>, Option<String>) {
    let page = app.get(path).await.expect(200).json();
    let id = |item: &Value| text(&item["id"]).to_owned();
    (page["items"].as_array().expect("items").iter().map(id).collect(), page["nextCursor"].as_str().map(str::to_owned))
}

/// Returns the ids of all pages, and the number of pages.
async fn walk(app: &TestApp, path: &str) -> (Vec<String>, usize) {
    let (mut all, mut pages, mut cursor) = (Vec::new(), 0, String::new());
    let join = if path.contains('?') { '&' } else { '?' };
    loop {
        let (ids, next) = page(app, &format!("{path}{cursor}")).await;
        pages += 1;
        all.extend(ids);
        let Some(next) = next else { return (all, pages) };
        cursor = format!("{join}cursor={next}");
    }
}

async fn ids(app: &TestApp, path: &str) -> Vec<String> {
    page(app, path).await.0
}

/// Returns the documented list operations: path, and query parameters with their schemas.
async fn documented_lists(app: &TestApp) -> Vec<(String, BTreeMap<String, Value>)> {
    let document = app.send("GET", "/openapi.json", &[], None).await.expect(200).json();
    let paths = document["paths"].as_object().expect("paths");
    let of_path = |(path, item): (&String, &Value)| {
        let parameters = item["get"]["parameters"].as_array()?.iter().filter(|p| p["in"] == "query");
        Some((path.clone(), parameters.map(|p| (text(&p["name"]).to_owned(), p.clone())).collect::<BTreeMap<_, _>>()))
    };
    paths.iter().filter_map(of_path).filter(|(_, query)| query.contains_key("cursor")).collect()
}

/// One item in each list.
struct Furnished {
    contact: Value,
    broadcast: String,
    message: String,
}

async fn furnish(app: &TestApp) -> Furnished {
    let channels = json!([{"channel": "sms", "identifier": "+34600111222"}, {"channel": "email", "identifier": "ada@example.org"}]);
    let contact = create(app, json!({"channels": channels, "displayName": "Ada Lovelace", "metadata": {"vip": true, "n": 7}})).await;
    app.post("/v1/senders", json!({"name": "more", "webhookUrl": "https://example.com/hook"})).await.expect(201);
    app.post("/v1/templates", json!({"name": "t", "language": "en", "body": "x"})).await.expect(201);
    app.post("/v1/suppressions", json!({"identifier": "+34600999999"})).await.expect(201);
    app.post("/v1/invitations", json!({})).await.expect(201);
    app.post("/v1/keys", json!({"name": "x"})).await.expect(201);
    let number = crate::authz::stock(app).await;
    app.post("/v1/phone-numbers", json!({"phoneNumber": number})).await.expect(201);
    let made = app.post("/v1/broadcasts", json!({"name": "b", "channel": "sms", "text": "x"})).await.expect(201).json();
    let broadcast = text(&made["broadcast"]["id"]).to_owned();
    let recipients = json!({"contacts": [{"recipient": "+34600111222"}]});
    app.post(&format!("/v1/broadcasts/{broadcast}/contacts"), recipients).await.expect(201);
    let sender = app.node.core.tenant_config(app.tenant()).await.expect("a world").default_sender().expect("a sender").id;
    app.set_webhook(Some(sender), "http://127.0.0.1:9/hook", &[EventType::WebhookTest], "whsec_c2VjcmV0").await;
    app.post(&format!("/v1/senders/{sender}/webhook/test"), json!({})).await.expect(202);
    let message = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    app.drain().await;
    Furnished { contact, broadcast, message }
}

impl Furnished {
    /// Fills in the parameters of a list's path.
    fn path(&self, path: &str) -> String {
        match path {
            "/v1/broadcasts/{id}/contacts" => path.replace("{id}", &self.broadcast),
            _ => path.replace("{id}", text(&self.contact["id"])),
        }
    }
}

fn time(at: Timestamp) -> String {
    at.to_string()
}

// holds: lists.span
#[tokio::test]
async fn every_list_takes_a_span_of_time() {
    for app in TestApp::on_each().await {
        app.advance(Duration::from_secs(3_600)).await;
        let begin = app.node.core.ids().clock.now();
        let furnished = furnish(&app).await;
        app.clock.advance(Duration::from_millis(1));
        let end = app.node.core.ids().clock.now();
        for (path, query) in documented_lists(&app).await {
            assert!(query.contains_key("since") && query.contains_key("until"), "{path}");
            let path = furnished.path(&path);
            let (begin, end) = (time(begin), time(end));
            let inside = ids(&app, &format!("{path}?since={begin}&until={end}")).await;
            assert!(!inside.is_empty(), "{path}: everything was made in the span");
            assert!(ids(&app, &format!("{path}?since={end}")).await.is_empty(), "{path}: `since` is inclusive");
            let before = ids(&app, &format!("{path}?until={begin}")).await;
            assert!(inside.iter().all(|id| !before.contains(id)), "{path}: `until` is exclusive");
            let all = ids(&app, &path).await;
            assert_eq!(inside.iter().chain(&before).cloned().collect::<Vec<_>>(), all, "{path}: the spans meet");
            let first = app.get(&path).await.expect(200).json()["items"][0].clone();
            let created = first.get("createdAt").or(first.get("timestamp")).expect("a time").clone();
            let at = text(&created);
            assert!(ids(&app, &format!("{path}?since={at}")).await.contains(&all[0]), "{path}: `since` is inclusive, by what is shown");
            assert!(!ids(&app, &format!("{path}?until={at}")).await.contains(&all[0]), "{path}: `until` is exclusive, by what is shown");
            // Finer than what is shown: the newest was created before it.
            let finer = at.replace('Z', "001Z");
            assert!(!ids(&app, &format!("{path}?since={finer}")).await.contains(&all[0]), "{path}: created before {finer}");
            assert!(ids(&app, &format!("{path}?until={finer}")).await.contains(&all[0]), "{path}: created before {finer}");
            let refused = app.get(&format!("{path}?since=yesterday")).await.expect(400).json();
            assert_eq!(refused["details"]["errors"][0]["path"], "query.since", "{path}");
            let unencoded = app.get(&format!("{path}?since=2026-01-01T00:00:00+01:00")).await.expect(400).json();
            let message = unencoded["details"]["errors"][0]["message"].as_str().unwrap_or_default();
            assert!(message.starts_with("is \"2026-01-01T00:00:00 01:00\"; must be") && message.ends_with("as %2B"), "{message}");
        }
    }
}

// holds: lists.arrays
#[tokio::test]
async fn arrays_are_repeated_or_joined_by_commas() {
    let app = TestApp::start().await;
    let furnished = furnish(&app).await;
    let mut arrays = 0;
    for (path, query) in documented_lists(&app).await {
        for (name, parameter) in query {
            let described = parameter["schema"]["items"].clone();
            if described.is_null() {
                continue;
            }
            arrays += 1;
            assert_eq!(parameter.get("explode").cloned().unwrap_or(json!(true)), json!(true), "{path} {name}");
            let document = app.send("GET", "/openapi.json", &[], None).await.json();
            let reference = text(&described["$ref"]).trim_start_matches('#').to_owned();
            let values = document.pointer(&reference).expect("a schema")["enum"].as_array().expect("an enumeration").clone();
            let values: Vec<&str> = values.iter().map(text).collect();
            let path = furnished.path(&path);
            let joined = ids(&app, &format!("{path}?{name}={}", values.join(","))).await;
            let repeated: Vec<String> = values.iter().map(|value| format!("{name}={value}")).collect();
            assert_eq!(ids(&app, &format!("{path}?{}", repeated.join("&"))).await, joined, "{path} {name}");
            // Most messages are not held, for whatever reason.
            if name != "heldReason" {
                assert_eq!(joined, ids(&app, &path).await, "{path} {name}: all values are all items");
            }
            let wrong = app.get(&format!("{path}?{name}={}&{name}=lost", values[0])).await.expect(400).json();
            assert_eq!(wrong["details"]["errors"][0]["path"], format!("query.{name}"));
        }
    }
    assert!(arrays >= 9, "{arrays}");
}

// holds: messages.list.filters
#[tokio::test]
async fn no_filter_of_messages_refuses() {
    for app in TestApp::on_each().await {
        let reply = app.send_message(json!({"to": "+12125550006", "text": "a", "metadata": {"order": 5, "x": "y"}})).await;
        let email = app.send_message(json!({"to": "a@example.org", "subject": "s", "text": "b"})).await;
        let failed = app.send_message(json!({"to": "+12125550001", "text": "c"})).await;
        app.advance(Duration::from_secs(5)).await;
        let inbound = ids(&app, "/v1/messages?direction=inbound").await;
        assert_eq!(inbound.len(), 1);
        let inbound = inbound[0].clone();
        let contact = text(&app.message(&reply).await["contactId"]).to_owned();
        let sender = text(&app.message(&reply).await["senderId"]).to_owned();
        for (query, expected) in [
            ("status=delivered".to_owned(), vec![&email, &reply]),
            ("status=delivered&status=failed".to_owned(), vec![&failed, &email, &reply]),
            ("status=failed&channel=sms".to_owned(), vec![&failed]),
            ("channel=email".to_owned(), vec![&email]),
            ("direction=inbound".to_owned(), vec![&inbound]),
            ("metadata[order]=5&metadata[x]=y".to_owned(), vec![&reply]),
            ("metadata[order]=6".to_owned(), vec![]),
            (format!("contactId={contact}"), vec![&inbound, &reply]),
            (format!("contactId={contact}&direction=outbound"), vec![&reply]),
            ("from=+12125550006".to_owned(), vec![&inbound]),
            (format!("senderId={sender}&channel=email"), vec![&email]),
            ("senderId=snd_01hgw2bbg0e9tatjpp9vyrkcyk".to_owned(), vec![]),
            ("broadcastId=brd_01hgw2bbg0e9tatjpp9vyrkcyk".to_owned(), vec![]),
            ("since=2020-01-01T00:00:00Z&status=failed,delivered&channel=email".to_owned(), vec![&email]),
        ] {
            let mut found = ids(&app, &format!("/v1/messages?{query}")).await;
            let mut expected: Vec<String> = expected.into_iter().cloned().collect();
            found.sort();
            expected.sort();
            assert_eq!(found, expected, "{query}");
        }
        for name in ["contactId", "senderId", "broadcastId"] {
            let refused = app.get(&format!("/v1/messages?{name}=msg_1")).await.expect(400).json();
            assert_eq!(refused["details"]["errors"][0]["path"], format!("query.{name}"));
        }
    }
}

#[tokio::test]
async fn messages_of_a_broadcast_are_found() {
    for app in TestApp::on_each().await {
        let made = app.post("/v1/broadcasts", json!({"name": "b", "channel": "sms", "text": "x"})).await.expect(201).json();
        let broadcast = text(&made["broadcast"]["id"]).to_owned();
        let recipients = json!({"contacts": [{"recipient": "+34600111222"}, {"recipient": "+34600111223"}]});
        app.post(&format!("/v1/broadcasts/{broadcast}/contacts"), recipients).await.expect(201);
        let single = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
        app.post(&format!("/v1/broadcasts/{broadcast}/send"), json!({})).await.expect(202);
        app.drain().await;
        let found = ids(&app, &format!("/v1/messages?broadcastId={broadcast}")).await;
        assert_eq!((found.len(), found.contains(&single)), (2, false));
        for id in found {
            assert_eq!(app.message(&id).await["broadcastId"], broadcast.as_str());
        }
    }
}

// holds: contacts.list.filters
#[tokio::test]
async fn contacts_are_found_by_what_they_have() {
    for app in TestApp::on_each().await {
        let ada = furnish(&app).await.contact;
        let bob =
            create(&app, json!({"channels": [{"channel": "email", "identifier": "bob@example.org"}], "displayName": "Bob ÄÖ_%"})).await;
        let (ada, bob) = (text(&ada["id"]), text(&bob["id"]));
        for (query, expected) in [
            ("email=ada@EXAMPLE.org", vec![ada]),
            ("email=nobody@example.org", vec![]),
            ("email=bob@example.org&phoneNumber=+34600111222", vec![]),
            ("email=ada@example.org&phoneNumber=+34600111222&name=lace", vec![ada]),
            ("email=ada@example.org&name=bob", vec![]),
            ("name=LOVE", vec![ada]),
            ("name=%C3%A4%C3%B6_%25", vec![bob]),
            ("name=b_b", vec![]),
            ("metadata[vip]=true&metadata[n]=7", vec![ada]),
            ("metadata[vip]=false", vec![]),
        ] {
            assert_eq!(ids(&app, &format!("/v1/contacts?{query}")).await, expected, "{query}");
        }
        let refused = app.get("/v1/contacts?email=nonsense").await.expect(400).json();
        assert_eq!(refused["details"]["errors"][0]["path"], "query.email");
    }
}

#[tokio::test]
async fn filters_of_any_size_are_read_or_refused_by_name() {
    for app in TestApp::on_each().await {
        let id = app.send_message(json!({"to": "+34600111222", "text": "x", "scheduledAt": "2026-01-20T00:00:00Z"})).await;
        let often = "scheduled,".repeat(5_000);
        assert_eq!(ids(&app, &format!("/v1/messages?status={often}scheduled")).await, [id]);
        let entries = |count: usize| (0..count).map(|n| format!("metadata[k{n}]=1")).collect::<Vec<_>>().join("&");
        for list in ["messages", "contacts"] {
            assert!(ids(&app, &format!("/v1/{list}?{}", entries(50))).await.is_empty());
            let refused = app.get(&format!("/v1/{list}?{}", entries(1_000))).await.expect(400).json();
            let fault = json!({"path": "query.metadata", "message": "has 1000 entries; must have at most 50"});
            assert_eq!(refused["details"]["errors"], json!([fault]));
        }
        let refused = app.get(&format!("/v1/contacts?name={}", "a".repeat(60_000))).await.expect(400).json();
        assert_eq!(refused["details"]["errors"][0]["path"], "query.name");
    }
}

// holds: contacts.messages
#[tokio::test]
async fn a_conversation_is_read() {
    for app in TestApp::on_each().await {
        let mut expected = Vec::new();
        for n in 0..3 {
            expected.push(app.send_message(json!({"to": "+34600111222", "text": n.to_string()})).await);
            app.clock.advance(Duration::from_millis(1));
            write(&app, Channel::Whatsapp, "+34600111222", "an answer", None).await;
            app.clock.advance(Duration::from_millis(1));
        }
        let contact = text(&app.message(&expected[0]).await["contactId"]).to_owned();
        app.send_message(json!({"to": "+34600111333", "text": "to somebody else"})).await;
        let (all, pages) = walk(&app, &format!("/v1/contacts/{contact}/messages?limit=4")).await;
        assert_eq!((all.len(), pages), (6, 2));
        assert_eq!(all.iter().rev().step_by(2).collect::<Vec<_>>(), expected.iter().collect::<Vec<_>>(), "newest first, both ways");
        let target = create(&app, json!({"channels": [{"channel": "email", "identifier": "t@example.org"}]})).await;
        let path = format!("/v1/contacts/{}", text(&target["id"]));
        assert!(ids(&app, &format!("{path}/messages")).await.is_empty());
        app.post(&format!("{path}/merge"), json!({"sourceContactId": contact})).await.expect(200);
        for id in [contact.as_str(), text(&target["id"])] {
            assert_eq!(ids(&app, &format!("/v1/contacts/{id}/messages")).await, all, "the target's");
            assert_eq!(ids(&app, &format!("/v1/messages?contactId={id}")).await, all);
        }
        app.get("/v1/contacts/con_01hgw2bbg0e9tatjpp9vyrkcyk/messages").await.expect(404);
        app.get("/v1/contacts/nonsense/messages").await.expect(404);
    }
}

// holds: events.filters
#[tokio::test]
async fn events_are_found_by_type_and_resource() {
    for app in TestApp::on_each().await {
        let furnished = furnish(&app).await;
        let types = async |query: &str| {
            let page = app.get(&format!("/v1/events?{query}")).await.expect(200).json();
            page["items"].as_array().expect("items").iter().map(|e| text(&e["type"]).to_owned()).collect::<Vec<_>>()
        };
        let message = &furnished.message;
        assert_eq!(
            types(&format!("resourceId={message}")).await,
            ["message.delivered", "message.sent", "message.sending", "message.queued"]
        );
        assert_eq!(types(&format!("resourceId={message}&type=message.sent&type=message.queued")).await, ["message.sent", "message.queued"]);
        assert_eq!(types("type=webhook.test").await, ["webhook.test"]);
        assert!(types("type=contact.merged").await.is_empty());
        assert_eq!(types("type=message.sent,webhook.test").await.len(), 2);
        let (all, pages) = walk(&app, &format!("/v1/events?resourceId={message}&limit=1")).await;
        assert_eq!((all.len(), pages), (4, 4));
        for (query, path) in [("resourceId=nonsense", "query.resourceId"), ("type=lost", "query.type")] {
            let refused = app.get(&format!("/v1/events?{query}")).await.expect(400).json();
            assert_eq!(refused["details"]["errors"][0]["path"], path);
        }
    }
}

// holds: lists.scan
#[tokio::test]
async fn a_search_in_a_long_log_goes_on_in_steps() {
    for app in TestApp::on_each().await {
        furnish(&app).await;
        let delivered = ids(&app, "/v1/events?type=message.delivered").await;
        assert_eq!(delivered.len(), 1);
        // Newer rows of one type, more than one request reads.
        let sender = app.node.core.tenant_config(app.tenant()).await.expect("a world").default_sender().expect("a sender").id;
        app.post(&format!("/v1/senders/{sender}/webhook/test"), json!({})).await.expect(202);
        app.drain().await;
        app.sql(&format!(
            "INSERT INTO log (tenant_id, position, batch, recorded_at, entries) \
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10050) \
             SELECT t.tenant_id, t.position + n.i, n.i, t.recorded_at, t.entries FROM \
             (SELECT * FROM log WHERE tenant_id = {} ORDER BY position DESC LIMIT 1) t CROSS JOIN n",
            app.tenant().0
        ))
        .await;
        let (first, cursor) = page(&app, "/v1/events?type=message.delivered").await;
        assert!(first.is_empty(), "a page may be empty");
        let cursor = cursor.expect("and still go on");
        assert_eq!(page(&app, &format!("/v1/events?type=message.delivered&cursor={cursor}")).await, (delivered, None));
    }
}

/// What a caller wrote is found as the caller wrote it.
#[tokio::test]
async fn recipients_are_found_as_they_were_written() {
    let app = TestApp::start().await;
    app.send_message(json!({"to": "Ada@Example.NET", "subject": "s", "text": "x"})).await;
    for to in ["Ada@Example.NET", "Ada@example.net"] {
        assert_eq!(ids(&app, &format!("/v1/messages?to={to}")).await.len(), 1, "{to}");
    }
    let key = |to: &str| json!({"to": to, "subject": "s", "text": "x", "idempotencyKey": "k"});
    app.post("/v1/messages", key("Bo@Example.NET")).await.expect(202);
    let again = app.post("/v1/messages", key("Bo@example.net")).await.expect(409).json();
    assert_eq!(again["code"], "idempotency_conflict");
}

#[tokio::test]
async fn a_recipient_that_cannot_be_one_is_refused_by_the_filter() {
    let app = TestApp::start().await;
    for (to, meant) in [
        ("+34%20600%20111%20222", "did you mean +34600111222?"),
        ("0034600111222", "did you mean +34600111222?"),
        ("+1", "an E.164 phone number such as +34600111222"),
        ("ada@", "an email address such as ada@example.org"),
    ] {
        let refused = app.get(&format!("/v1/messages?to={to}")).await.expect(400).json();
        let fault = &refused["details"]["errors"][0];
        assert!(fault["path"] == "query.to" && text(&fault["message"]).ends_with(meant), "{to}: {refused}");
    }
    // An inbound message can be written to a short code or a name, and come from whatever its provider says.
    for query in ["to=0800", "to=ACME", "from=%2B1", "from=A%20Bank"] {
        assert!(ids(&app, &format!("/v1/messages?{query}")).await.is_empty(), "{query}");
    }
}

#[tokio::test]
async fn a_cursor_depends_on_what_is_asked_for_and_not_on_its_order() {
    let app = TestApp::start().await;
    for n in 0..2 {
        app.send_message(json!({"to": format!("+3460011122{n}"), "text": "x"})).await;
    }
    app.drain().await;
    let (first, cursor) = page(&app, "/v1/messages?status=sent,delivered&limit=1").await;
    let cursor = cursor.expect("another page");
    let second = ids(&app, &format!("/v1/messages?status=delivered&status=sent,sent&limit=1&cursor={cursor}")).await;
    assert!(second.len() == 1 && second != first, "{first:?} {second:?}");
}
