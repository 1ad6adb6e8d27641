//! Contacts: created by callers or messages, updated, merged, erased.

use std::time::Duration;

use nuncio_channel::{Inbound, ProviderEvent};
use nuncio_domain::event::ResourceKind;
use nuncio_domain::id::Id as _;
use nuncio_domain::{AddressKind, Channel, Clock as _, ContactId, Recipient, Timestamp};
use nuncio_store::Address;
use nuncio_testkit::TestApp;
use serde_json::{Value, json};

/// Sends an inbound message to the default sender of the test environment.
pub(crate) async fn write(app: &TestApp, channel: Channel, from: &str, text: &str, name: Option<&str>) {
    write_late(app, channel, (from, text, name), Duration::ZERO).await;
}

/// The same for a message that the provider brings so late.
pub(crate) async fn write_late(app: &TestApp, channel: Channel, (from, text, name): (&str, &str, Option<&str>), late: Duration) {
    app.clock.advance(Duration::from_millis(1));
    let world = app.node.core.tenant_config(app.tenant()).await.expect("the test world");
    let sender = world.default_sender().expect("a default sender").id;
    let connection = world.connection(sender, channel).expect("a connection").id;
    let (now, id) = (app.node.core.ids().clock.now(), app.node.core.ids().next::<nuncio_domain::MessageId>());
    let place = (app.tenant(), connection, channel);
    let at = Timestamp::from_millis(now.millis() - late.as_millis() as i64);
    // As those of Telegram, whose ids contain the author.
    let mut inbound = Inbound::text(place, format!("{from}:{id}"), from.to_owned(), text.to_owned(), at);
    inbound.profile_name = name.map(str::to_owned);
    app.node.events().push(ProviderEvent::Inbound(inbound), Duration::ZERO);
    app.drain().await;
}

pub(crate) async fn create(app: &TestApp, body: Value) -> Value {
    app.clock.advance(Duration::from_millis(50));
    app.post("/v1/contacts", body).await.expect(201).json()
}

pub(crate) async fn sms(app: &TestApp, number: &str) -> Value {
    create(app, json!({"channels": [{"channel": "sms", "identifier": number}]})).await
}

pub(crate) async fn get(app: &TestApp, id: &Value) -> Value {
    app.get(&format!("/v1/contacts/{}", text(id))).await.expect(200).json()
}

pub(crate) async fn list(app: &TestApp) -> Vec<Value> {
    app.get("/v1/contacts").await.expect(200).json()["items"].as_array().expect("a page").clone()
}

pub(crate) fn text(value: &Value) -> &str {
    value.as_str().expect("a text")
}

pub(crate) async fn events(app: &TestApp, id: &Value) -> Vec<(i64, Vec<Value>)> {
    let id: ContactId = text(id).parse().expect("an id");
    let mut tx = app.store().read().await.expect("a reader");
    let found = tx.list_resource_events(app.tenant(), ResourceKind::Contact, id.uuid()).await.expect("events");
    found.into_iter().map(|(n, told)| (n, told.iter().map(|o| serde_json::to_value(o).expect("json")).collect())).collect()
}

pub(crate) fn faults(body: &Value) -> Vec<(&str, &str)> {
    let errors = body["details"]["errors"].as_array().unwrap_or_else(|| panic!("{body}"));
    errors.iter().map(|e| (text(&e["path"]), text(&e["message"]))).collect()
}

// holds: contacts.list, contacts.list.phone, contacts.create, contacts.get, contacts.by_phone, contacts.update
#[tokio::test]
async fn a_contact_is_made_read_changed_and_listed() {
    for app in TestApp::on_each().await {
        let made = create(
            &app,
            json!({
                "displayName": "Ada", "metadata": {"k": 1},
                "channels": [
                    {"channel": "sms", "identifier": "+34600111222", "label": "work"},
                    {"channel": "whatsapp", "identifier": "+34600111222"},
                    {"channel": "sms", "identifier": "+14155552671", "isPrimary": true, "countryCode": "CA"},
                    {"channel": "email", "identifier": "ada@EXAMPLE.org"},
                    {"channel": "telegram", "identifier": "-42"},
                ],
            }),
        )
        .await;
        assert_eq!(made["primaryPhone"], "+14155552671");
        assert_eq!((&made["phoneNumber"], &made["primaryEmail"]), (&made["primaryPhone"], &json!("ada@example.org")));
        assert_eq!(made["availableChannels"], json!(["sms", "whatsapp", "telegram", "email"]));
        assert_eq!((made["verified"].as_bool(), &made["profileName"]), (Some(false), &Value::Null));
        assert_eq!((text(&made["countryCode"]), text(&made["defaultChannel"])), ("ES", "sms"));
        let channels = made["channels"].as_array().expect("channels");
        let shown: Vec<_> =
            channels.iter().map(|c| (text(&c["channel"]), text(&c["identifier"]), c["isPrimary"].as_bool() == Some(true))).collect();
        assert_eq!(
            shown,
            [
                ("sms", "+34600111222", false),
                ("whatsapp", "+34600111222", true),
                ("sms", "+14155552671", true),
                ("email", "ada@example.org", true),
                ("telegram", "-42", true)
            ]
        );
        assert_eq!(
            (text(&channels[0]["label"]), text(&channels[2]["countryCode"]), text(&channels[1]["countryCode"])),
            ("work", "CA", "ES")
        );
        assert_eq!(channels[0]["metrics"], json!({"successCount": 0, "failureCount": 0, "totalAttempts": 0}));
        assert!(text(&channels[0]["id"]).starts_with("chn_"));
        assert_eq!(get(&app, &made["id"]).await, made);
        let by_phone = async |phone: &str| app.get(&format!("/v1/contacts/phone/{phone}")).await;
        assert_eq!(by_phone("+34600111222").await.expect(200).json(), made);
        assert_eq!(by_phone("%2B14155552671").await.expect(200).json(), made);
        for unknown in ["+34600111223", "nonsense", "34600111222"] {
            by_phone(unknown).await.expect(404);
        }

        let path = format!("/v1/contacts/{}", text(&made["id"]));
        app.clock.advance(Duration::from_secs(1));
        let patch = async |body: Value| app.request("PATCH", &path, Some(body)).await;
        let changed = patch(json!({"displayName": "Ada L.", "defaultChannel": "email", "metadata": {"x": null}})).await.expect(200).json();
        assert_eq!((text(&changed["displayName"]), text(&changed["defaultChannel"])), ("Ada L.", "email"));
        assert_eq!(changed["metadata"], json!({"x": null}), "replaced whole");
        assert!(text(&changed["updatedAt"]) > text(&made["updatedAt"]));
        let changed = patch(json!({"defaultChannel": null})).await.expect(200).json();
        assert_eq!((text(&changed["defaultChannel"]), text(&changed["displayName"])), ("sms", "Ada L."), "what is absent stays");
        assert!(patch(json!({"displayName": ""})).await.expect(200).json().get("displayName").is_none());
        for (body, fault) in [
            (json!({"displayName": null}), ("displayName", "is null; must be a string")),
            (json!({"metadata": null}), ("metadata", "is null; must be an object")),
            (json!({"displayName": "x".repeat(201)}), ("displayName", "has 201 characters; must have at most 200")),
            (
                json!({"defaultChannel": "voice"}),
                ("defaultChannel", "the contact has no channel voice; it has sms, whatsapp, telegram, email"),
            ),
            (
                json!({"defaultChannel": "auto"}),
                ("defaultChannel", "is \"auto\"; must be one of sms, whatsapp, telegram, email, instagram, voice"),
            ),
        ] {
            let answer = patch(body).await.expect(400).json();
            assert_eq!(faults(&answer), [fault]);
        }

        let second = sms(&app, "+34600111333").await;
        let ids: Vec<_> = list(&app).await.iter().map(|c| c["id"].clone()).collect();
        assert_eq!(ids, [second["id"].clone(), made["id"].clone()], "newest first");
        for (filter, expected) in [("%2B34600111222", 1), (" 14155552671", 1), ("+34600111222", 1), ("%2B34600999999", 0)] {
            let page = app.get(&format!("/v1/contacts?phoneNumber={}", filter.replace(' ', "%20"))).await.expect(200).json();
            assert_eq!((page["items"].as_array().map(Vec::len), &page["nextCursor"]), (Some(expected), &Value::Null), "{filter}");
        }
        let first = app.get("/v1/contacts?limit=1").await.expect(200).json();
        let next = app.get(&format!("/v1/contacts?limit=5&cursor={}", text(&first["nextCursor"]))).await.expect(200).json();
        assert_eq!((next["items"].as_array().map(Vec::len), next["items"][0]["id"] == made["id"]), (Some(1), true));
        for (query, path) in
            [("limit=0", "query.limit"), ("limit=101", "query.limit"), ("phoneNumber=x", "query.phoneNumber"), ("cursor=x", "query.cursor")]
        {
            let answer = app.get(&format!("/v1/contacts?{query}")).await.expect(400).json();
            assert_eq!(faults(&answer)[0].0, path);
        }
    }
}

// holds: contacts.create.limits
#[tokio::test]
async fn all_faults_of_a_new_contact_are_told_at_once() {
    let app = TestApp::start().await;
    let body = json!({
        "displayName": "x".repeat(201), "metadata": {"a": {"b": {"c": {"d": {"e": {}}}}}},
        "channels": [
            {"channel": "sms", "identifier": "a@example.org"},
            {"channel": "sms_oneway", "identifier": "+34600111222"},
            {"channel": "voice", "identifier": "+34600111222", "label": "x".repeat(51), "countryCode": "ZZ"},
            {"channel": "sms", "identifier": "+34600111222", "isPrimary": true},
            {"channel": "sms", "identifier": "+34600111222"},
            {"channel": "sms", "identifier": "+34600111333", "isPrimary": true},
        ],
    });
    let answer = app.post("/v1/contacts", body).await.expect(400).json();
    let mut paths: Vec<_> = faults(&answer).into_iter().map(|(path, _)| path).collect();
    paths.sort_unstable();
    assert_eq!(
        paths,
        [
            "channels[0].identifier",
            "channels[1].channel",
            "channels[2].countryCode",
            "channels[2].label",
            "channels[4]",
            "channels[5].isPrimary",
            "displayName",
            "metadata"
        ]
    );
    for count in [0, 21] {
        let channels: Vec<_> = (0..count).map(|n| json!({"channel": "sms", "identifier": format!("+346001112{n:02}")})).collect();
        let answer = app.post("/v1/contacts", json!({"channels": channels})).await.expect(400).json();
        assert_eq!(faults(&answer), [("channels", format!("has {count} items; must have 1 to 20").as_str())]);
    }
    app.post("/v1/contacts", json!({})).await.expect(400);
    let channels: Vec<_> = (0..20)
        .map(|n| json!({"channel": "sms", "identifier": format!("+346001113{n:02}"), "label": "ж".repeat(50), "countryCode": "pt"}))
        .collect();
    let most = create(&app, json!({"channels": channels, "displayName": "ж".repeat(200)})).await;
    assert_eq!(most["channels"].as_array().map(Vec::len), Some(20));
    assert_eq!((&most["countryCode"], &most["channels"][0]["countryCode"]), (&json!("PT"), &json!("PT")), "in either case");
    app.request("DELETE", &format!("/v1/contacts/{}", text(&most["id"])), None).await.expect(204);
    app.post("/v1/contacts", json!({"channels": [{"channel": "sms", "identifier": "+34600111222"}], "name": "x"})).await.expect(400);
    assert_eq!(list(&app).await, [] as [Value; 0]);
}

// holds: contacts.create.duplicate
#[tokio::test]
async fn an_identifier_belongs_to_one_contact() {
    for app in TestApp::on_each().await {
        let first = sms(&app, "+34600111222").await;
        let body =
            json!({"channels": [{"channel": "email", "identifier": "a@example.org"}, {"channel": "voice", "identifier": "+34600111222"}]});
        let answer = app.post("/v1/contacts", body).await.expect(400).json();
        assert_eq!((text(&answer["code"]), &answer["details"]["contactId"]), ("duplicate_identifier", &first["id"]));
        assert_eq!(faults(&answer)[0].0, "channels[1].identifier");
        assert_eq!(list(&app).await.len(), 1, "nothing of it was written");
        create(&app, json!({"channels": [{"channel": "email", "identifier": "a@example.org"}]})).await;
        // It is unknown in the other environment.
        let body = json!({"channels": [{"channel": "sms", "identifier": "+34600111222"}]});
        let other = app.with_key(&app.live_key, "POST", "/v1/contacts", Some(body)).await.expect(201).json();
        app.get(&format!("/v1/contacts/{}", text(&other["id"]))).await.expect(404);
        let merge = json!({"sourceContactId": other["id"]});
        app.post(&format!("/v1/contacts/{}/merge", text(&first["id"])), merge).await.expect(404);
    }
}

// holds: contacts.create
#[tokio::test]
async fn a_repeated_key_makes_one_contact_and_one_channel() {
    for app in TestApp::on_each().await {
        let body = json!({"channels": [{"channel": "sms", "identifier": "+34600111222"}]});
        let made = app.once("k", "/v1/contacts", body.clone()).await.expect(201).json();
        let again = app.once("k", "/v1/contacts", body).await.expect(409).json();
        assert_eq!((text(&again["code"]), &again["contact"]), ("idempotency_conflict", &made));
        let other = json!({"channels": [{"channel": "sms", "identifier": "+34600111333"}]});
        let again = app.once("k", "/v1/contacts", other).await.expect(409).json();
        assert_eq!((text(&again["code"]), &again["contact"]["id"]), ("idempotency_key_reused", &made["id"]));
        let path = format!("/v1/contacts/{}/channels", text(&made["id"]));
        let body = json!({"channel": "email", "identifier": "a@example.org"});
        let added = app.once("k", &path, body.clone()).await.expect(201).json();
        let again = app.once("k", &path, body).await.expect(409).json();
        assert_eq!((text(&again["code"]), &again["channel"]), ("idempotency_conflict", &added["channel"]));
        assert_eq!(get(&app, &made["id"]).await["channels"].as_array().map(Vec::len), Some(2));
    }
}

// holds: contacts.channels.add, contacts.channels.update, contacts.channels.remove, contacts.channels.primary
#[tokio::test]
async fn channels_come_change_and_go() {
    for app in TestApp::on_each().await {
        let contact = sms(&app, "+34600111222").await;
        let path = format!("/v1/contacts/{}/channels", text(&contact["id"]));
        let first = text(&contact["channels"][0]["id"]).to_owned();
        let add = async |body: Value| app.post(&path, body).await;
        let second = add(json!({"channel": "sms", "identifier": "+34600111333", "label": "b"})).await.expect(201).json()["channel"].clone();
        assert_eq!((second["isPrimary"].as_bool(), text(&second["identifier"])), (Some(false), "+34600111333"));
        let taken = add(json!({"channel": "sms", "identifier": "+34600111333"})).await.expect(400).json();
        assert_eq!((text(&taken["code"]), &taken["details"]["contactId"]), ("duplicate_identifier", &contact["id"]));
        assert_eq!(faults(&taken)[0].0, "identifier");
        let other = sms(&app, "+34600111444").await;
        let taken = add(json!({"channel": "whatsapp", "identifier": "+34600111444"})).await.expect(400).json();
        assert_eq!((text(&taken["code"]), &taken["details"]["contactId"]), ("duplicate_identifier", &other["id"]));
        assert_eq!(faults(&add(json!({"channel": "email", "identifier": "+34600111555"})).await.expect(400).json())[0].0, "identifier");
        let whatsapp = add(json!({"channel": "whatsapp", "identifier": "+34600111222"})).await.expect(201).json()["channel"].clone();

        let second = text(&second["id"]).to_owned();
        app.clock.advance(Duration::from_secs(60));
        let primary = app.request("POST", &format!("{path}/{second}/primary"), None).await.expect(200).json();
        assert_eq!(primary["channel"]["isPrimary"], true);
        app.post(&format!("{path}/{second}/primary"), json!({})).await.expect(200);
        let now = get(&app, &contact["id"]).await;
        assert_eq!((text(&now["primaryPhone"]), now["channels"][0]["isPrimary"].as_bool()), ("+34600111333", Some(false)));
        assert_eq!(now["channels"][0]["updatedAt"], primary["channel"]["updatedAt"], "both changed");
        assert_eq!(primary["channel"]["updatedAt"], app.clock.now().to_string());
        assert_eq!(now["channels"][1], whatsapp, "another type has a primary one of its own");

        let patch = async |id: &str, body: Value| app.request("PATCH", &format!("{path}/{id}"), Some(body)).await;
        let changed =
            patch(&second, json!({"label": "c", "verified": true, "metadata": {"a": 1}})).await.expect(200).json()["channel"].clone();
        assert_eq!((text(&changed["label"]), changed["verified"].as_bool(), &changed["metadata"]), ("c", Some(true), &json!({"a": 1})));
        assert_eq!(get(&app, &contact["id"]).await["verified"], true);
        let changed = patch(&second, json!({"label": ""})).await.expect(200).json()["channel"].clone();
        assert_eq!((changed.get("label"), changed["verified"].as_bool()), (None, Some(true)));
        for body in [
            json!({"label": null}),
            json!({"verified": null}),
            json!({"metadata": null}),
            json!({"label": "x".repeat(51)}),
            json!({"x": 1}),
        ] {
            patch(&second, body).await.expect(400);
        }
        patch(text(&other["channels"][0]["id"]), json!({})).await.expect(404);
        patch("chn_nonsense", json!({})).await.expect(404);

        let remove = async |id: &str| app.request("DELETE", &format!("{path}/{id}"), None).await;
        remove(text(&whatsapp["id"])).await.expect(204);
        assert_eq!(get(&app, &contact["id"]).await["availableChannels"], json!(["sms"]), "the number stays for sms");
        remove(text(&whatsapp["id"])).await.expect(404);
        let back = add(json!({"channel": "whatsapp", "identifier": "+34600111222"})).await.expect(201).json();
        assert_eq!(back["channel"]["id"], whatsapp["id"], "an identifier on a channel has one id");
        remove(text(&whatsapp["id"])).await.expect(204);
        app.clock.advance(Duration::from_millis(1));
        write(&app, Channel::Whatsapp, "+34600111222", "hi", None).await;
        assert_eq!(get(&app, &contact["id"]).await["availableChannels"], json!(["sms", "whatsapp"]), "who writes by it has it");
        patch(text(&whatsapp["id"]), json!({"label": "again"})).await.expect(200);
        assert_eq!(get(&app, &contact["id"]).await["availableChannels"], json!(["sms", "whatsapp"]));
        remove(text(&whatsapp["id"])).await.expect(204);
        remove(&second).await.expect(204);
        assert_eq!(get(&app, &contact["id"]).await["primaryPhone"], "+34600111222");
        let last = remove(&first).await.expect(400).json();
        assert!(text(&last["message"]).contains("last channel"), "{last}");
        sms(&app, "+34600111333").await; // available again
    }
}

#[tokio::test]
async fn whoever_is_written_to_or_writes_is_a_contact_with_that_channel() {
    for app in TestApp::on_each().await {
        let id = app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "whatsapp"})).await;
        let contact = app.message(&id).await["contactId"].clone();
        let made = get(&app, &contact).await;
        assert_eq!((&made["availableChannels"], text(&made["countryCode"])), (&json!(["whatsapp"]), "ES"), "before any result");
        app.drain().await;
        app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "sms_oneway"})).await;
        app.send_message(json!({"to": "+34600111222", "text": "x", "channel": "sms"})).await;
        app.drain().await;
        let made = get(&app, &contact).await;
        assert_eq!(made["availableChannels"], json!(["sms", "whatsapp"]));
        assert_eq!(made["channels"][0]["metrics"]["successCount"], 2, "one-way or not, it is sms");
        assert_eq!(made["channels"][1]["metrics"]["totalAttempts"], 1);
        assert!(made["channels"][1]["metrics"]["lastSuccessAt"].is_string() && made["channels"][1].get("lastInboundAt").is_none());
        assert_eq!((made["verified"].as_bool(), text(&made["defaultChannel"])), (Some(false), "sms"));

        write(&app, Channel::Whatsapp, "+34600111222", "hi", Some("Ada W.")).await;
        let made = get(&app, &contact).await;
        assert_eq!(
            (text(&made["profileName"]), made["verified"].as_bool(), text(&made["defaultChannel"])),
            ("Ada W.", Some(true), "whatsapp")
        );
        let channel = &made["channels"][1];
        assert_eq!((channel["verified"].as_bool(), made["channels"][0]["verified"].as_bool()), (Some(true), Some(false)));
        let day = |text: &str| text[8..10].parse::<u32>().expect("a day");
        assert_eq!(day(text(&channel["windowExpiresAt"])), day(text(&channel["lastInboundAt"])) + 1);

        write(&app, Channel::Telegram, "77", "hi", None).await;
        let all = list(&app).await;
        assert_eq!((all.len(), &all[0]["availableChannels"]), (2, &json!(["telegram"])));
        assert_eq!((all[0].get("primaryPhone"), &all[0]["profileName"]), (None, &Value::Null));
    }
}

#[tokio::test]
async fn a_first_word_on_a_used_channel_does_not_hide_it() {
    let app = TestApp::start().await;
    let id = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
    let contact = app.message(&id).await["contactId"].clone();
    let path = format!("/v1/contacts/{}/channels", text(&contact));
    app.post(&path, json!({"channel": "voice", "identifier": "+34600111222"})).await.expect(201);
    let channels = get(&app, &contact).await["channels"].clone();
    assert_eq!((text(&channels[0]["channel"]), text(&channels[1]["channel"])), ("sms", "voice"));
    app.request("DELETE", &format!("{path}/{}", text(&channels[1]["id"])), None).await.expect(204);
    assert_eq!(get(&app, &contact).await["availableChannels"], json!(["sms"]));
}

// holds: contacts.delete
#[tokio::test]
async fn erasing_takes_the_person_and_keeps_the_books() {
    for app in TestApp::on_each().await {
        let body = json!({"to": "secret.ada@example.org", "subject": "Your secret", "text": "a secret", "metadata": {"k": "secret"},
            "attachments": [{"filename": "secret.txt", "content": "c2VjcmV0"}]});
        let sent = app.send_message(body).await;
        app.drain().await;
        let later = app
            .send_message(json!({"to": "secret.ada@example.org", "subject": "s", "text": "secret", "scheduledAt": "2026-01-10T00:00:00Z"}))
            .await;
        write(&app, Channel::Email, "secret.ada@example.org", "my secret", None).await;
        let contact = app.message(&sent).await["contactId"].clone();
        let path = format!("/v1/contacts/{}", text(&contact));
        app.request("PATCH", &path, Some(json!({"displayName": "secret"}))).await.expect(200);
        let merged = sms(&app, "+34600111222").await;
        app.post(&format!("{path}/merge"), json!({"sourceContactId": merged["id"]})).await.expect(200);
        let files = app.get(&format!("/v1/messages/{sent}/attachments")).await.expect(200).json();
        let link = text(&files["items"][0]["downloadUrl"]).to_owned();
        app.request("DELETE", &path, None).await.expect(204);

        app.get(&path).await.expect(404);
        app.request("DELETE", &path, None).await.expect(404);
        app.get(&format!("/v1/contacts/{}", text(&merged["id"]))).await.expect(404);
        assert_eq!(list(&app).await, [] as [Value; 0]);
        let kept = app.message(&sent).await;
        assert_eq!((text(&kept["status"]), text(&kept["to"]), kept.get("contactId")), ("delivered", "", None));
        assert_eq!(app.message(&later).await["status"], "cancelled");
        let page = app.get("/v1/messages").await.expect(200);
        assert!(!page.text.contains("secret"), "{}", page.text);
        assert_eq!(page.json()["items"].as_array().map(Vec::len), Some(3));
        app.send("GET", &link, &[], None).await.expect(404);
        assert!(!format!("{:?}", events(&app, &contact).await).contains("secret"));
        app.advance(Duration::from_secs(30 * 86_400)).await;
        assert_eq!(app.message(&later).await["status"], "cancelled");
        // The identifiers are available, and belong to a new contact.
        let again = sms(&app, "+34600111222").await;
        assert_ne!(again["id"], merged["id"]);
    }
}

#[tokio::test]
async fn what_is_accepted_while_its_recipient_goes_is_erased_after() {
    for app in TestApp::on_each().await {
        let sent = app.send_message(json!({"to": "+34600111222", "text": "secret"})).await;
        app.drain().await;
        // As if the message had been stored concurrently: its address is deleted and not checked again.
        let message = app.message(&sent).await;
        let stored = app.store().read().await.expect("a reader").lookup_message(app.tenant(), sent.parse().expect("an id")).await;
        let address = stored.expect("a look").expect("a message").address;
        let erasure = nuncio_store::Erasure {
            tenant: app.tenant(),
            address,
            recipient: nuncio_domain::Recipient { kind: nuncio_domain::AddressKind::Phone, identifier: text(&message["to"]).to_owned() },
        };
        let mut tx = app.store().begin().await.expect("a transaction");
        tx.insert_erasure(&erasure, app.node.core.ids().clock.now()).await.expect("noted");
        tx.commit().await.expect("written");
        let sweep = async || app.node.core.contacts().finish_erasures().await.expect("a sweep");
        sweep().await;
        assert_eq!(app.message(&sent).await["text"], "secret", "too early to be sure");
        app.clock.advance(Duration::from_secs(61));
        sweep().await;
        assert_eq!(app.message(&sent).await.get("text"), None);
        let left = app.store().read().await.expect("a reader").list_erasures(app.node.core.ids().clock.now(), 10).await.expect("erasures");
        assert_eq!(left, [], "nothing tells of the identifier any more");
    }
}

// holds: contacts.delete.suppressed
#[tokio::test]
async fn an_opt_out_outlives_the_contact() {
    for app in TestApp::on_each().await {
        write(&app, Channel::Sms, "+34600111222", "STOP", None).await;
        let contact = list(&app).await[0]["id"].clone();
        app.request("DELETE", &format!("/v1/contacts/{}", text(&contact)), None).await.expect(204);
        let all = app.get("/v1/suppressions").await.expect(200).json();
        assert_eq!((all["items"].as_array().map(Vec::len), text(&all["items"][0]["identifier"])), (Some(1), ""));
        let of = app.get("/v1/suppressions?identifier=%2B34600111222").await.expect(200).json();
        assert_eq!(of["items"].as_array().map(Vec::len), Some(1), "it can still be asked for");
        let body = json!({"to": "+34600111222", "text": "again"});
        let plan = app.post("/v1/messages?dryRun=true", body.clone()).await.expect(200).json();
        assert_eq!(plan["plan"]["suppressed"], true);
        for _ in 0..2 {
            let answer = app.post("/v1/messages", body.clone()).await.expect(202).json();
            assert_eq!((text(&answer["message"]["status"]), text(&answer["message"]["errorCode"])), ("failed", "recipient_suppressed"));
        }
        let of = app.get("/v1/suppressions?identifier=%2B34600111222").await.expect(200).json();
        assert_eq!((of["items"].as_array().map(Vec::len), text(&of["items"][0]["identifier"])), (Some(1), "+34600111222"));
        write(&app, Channel::Sms, "+34600111222", "START", None).await;
        assert_eq!(app.post("/v1/messages", body).await.expect(202).json()["message"]["status"], "sending");
    }
}

#[tokio::test]
async fn a_name_without_visible_characters_is_no_name() {
    let app = TestApp::start().await;
    for name in ["Ada", "\u{202e}\t", " "] {
        write(&app, Channel::Whatsapp, "+34600111222", "hi", Some(name)).await;
        assert_eq!(list(&app).await[0]["profileName"], "Ada", "after {name:?}");
    }
    write(&app, Channel::Whatsapp, "+34600111223", "hi", Some("\u{202e}")).await;
    assert_eq!(list(&app).await[0]["profileName"], Value::Null);
}

/// SQLite takes no statement of more than 500 parts.
#[tokio::test]
async fn a_contact_that_had_hundreds_of_identifiers_has_its_messages() {
    for app in TestApp::on_each().await {
        let contact = sms(&app, "+34600111222").await;
        let id: ContactId = text(&contact["id"]).parse().expect("an id");
        let now = app.node.core.ids().clock.now();
        let mut tx = app.store().begin().await.expect("a transaction");
        for n in 0..600 {
            let identifier = format!("{n}@example.org");
            let recipient = Recipient { kind: AddressKind::Email, identifier };
            let address = Address::new(app.node.core.ids().next(), id, recipient, now);
            assert!(tx.insert_address(app.tenant(), &address).await.expect("an address"));
            assert!(tx.remove_address(app.tenant(), address.id).await.expect("removed"));
        }
        tx.commit().await.expect("a commit");
        let sent = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
        for path in [format!("/v1/contacts/{id}/messages"), format!("/v1/messages?contactId={id}&metadata[a]=b")] {
            let page = app.get(&path).await.expect(200).json();
            let found: Vec<_> = page["items"].as_array().expect("items").iter().map(|message| text(&message["id"])).collect();
            assert_eq!(found, if path.contains('?') { vec![] } else { vec![sent.as_str()] }, "{path}");
        }
    }
}

#[tokio::test]
async fn a_file_brings_no_zero_characters() {
    for app in TestApp::on_each().await {
        let caller = app.node.core.keys().authenticate(&app.test_key).await.expect("a key");
        let file = "phone,metadata\n+34600111222,\"{\"\"note\"\":\"\"a\\u0000b\"\"}\"\n+34600111223,\"{\"\"note\"\":\"\"ab\"\"}\"\n";
        let imported = app.node.core.contacts().import(&caller, file.as_bytes(), &[]).await.expect("a file");
        assert_eq!((imported.added, imported.errors.len()), (1, 1), "{imported:?}");
        assert!(imported.errors[0].1.contains("U+0000"), "{imported:?}");
        let found = app.get("/v1/contacts?metadata[note]=ab").await.expect(200).json();
        assert_eq!(found["items"].as_array().map(Vec::len), Some(1), "{found}");
    }
}

#[tokio::test]
async fn columns_of_a_file_that_become_metadata_keep_their_letters() {
    let app = TestApp::start().await;
    let caller = app.node.core.keys().authenticate(&app.test_key).await.expect("a key");
    let import = async |file: &str| app.node.core.contacts().import(&caller, file.as_bytes(), &[]).await;
    let imported = import("Phone,NAME,Plan,plan\n+34600111222,Ada,A,B\n").await.expect("a file");
    assert_eq!((imported.added, imported.errors.len()), (1, 0), "{imported:?}");
    let contact = app.get("/v1/contacts?metadata[Plan]=A").await.expect(200).json()["items"][0].clone();
    assert_eq!((&contact["displayName"], &contact["metadata"]), (&json!("Ada"), &json!({"Plan": "A", "plan": "B"})), "{contact}");
    let imported = import("phone,,,id,country\n+34600111223,,,17,Spain\n").await.expect("a spreadsheet's empty columns");
    assert_eq!((imported.added, imported.errors.len()), (1, 0), "{imported:?}");
    let contact = app.get("/v1/contacts?metadata[id]=17").await.expect(200).json()["items"][0].clone();
    assert_eq!(contact["metadata"], json!({"id": "17", "country": "Spain"}), "of another program: {contact}");
    let imported = import("phone,sms,Voice\n+34600111224,yes,no\n").await.expect("what they agreed to, of another program");
    assert_eq!((imported.added, imported.errors.len()), (1, 0), "{imported:?}");
    let contact = app.get("/v1/contacts?metadata[sms]=yes").await.expect(200).json()["items"][0].clone();
    assert_eq!(contact["metadata"], json!({"sms": "yes", "Voice": "no"}), "{contact}");
    for (head, twice) in [("phone,Plan,Plan", "Plan"), ("phone,name,displayName", "name")] {
        let refused = import(&format!("{head}\n+34600111222,A,B\n")).await.expect_err("which of them?");
        assert!(format!("{refused:?}").contains(&format!("two columns for {twice:?}").escape_debug().to_string()), "{refused:?}");
    }
}
