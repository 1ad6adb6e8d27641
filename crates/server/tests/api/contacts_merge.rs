//! Merging two contacts.

use std::sync::Arc;

use nuncio_domain::Channel;
use nuncio_testkit::{Backend, TestApp};
use serde_json::{Value, json};

use crate::contacts::{create, events, faults, get, list, sms, text, write};

// holds: contacts.merge, contacts.merge.source, contacts.merge.conflict, contacts.merge.errors
#[tokio::test]
async fn a_merge_takes_everything_along() {
    for app in TestApp::on_each().await {
        let target =
            create(&app, json!({"channels": [{"channel": "email", "identifier": "t@example.org"}], "metadata": {"a": "target", "b": 1}}))
                .await;
        // The source has an older channel, and fields that the target lacks.
        let sent = app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
        app.drain().await;
        let source = app.message(&sent).await["contactId"].clone();
        let patch = json!({"displayName": "Ada", "metadata": {"a": "source", "c": 2}, "defaultChannel": "sms"});
        app.request("PATCH", &format!("/v1/contacts/{}", text(&source)), Some(patch)).await.expect(200);
        let path = format!("/v1/contacts/{}/merge", text(&target["id"]));
        let merged = app.post(&path, json!({"sourceContactId": source})).await.expect(200).json();
        assert_eq!(merged["id"], target["id"]);
        assert_eq!(merged["availableChannels"], json!(["sms", "email"]));
        assert_eq!(merged["metadata"], json!({"a": "target", "b": 1, "c": 2}));
        assert_eq!((text(&merged["displayName"]), text(&merged["defaultChannel"])), ("Ada", "sms"));
        assert_eq!((text(&merged["primaryPhone"]), text(&merged["countryCode"])), ("+34600111222", "ES"));
        let sms = merged["channels"].as_array().expect("channels").iter().find(|c| c["channel"] == "sms").expect("sms");
        assert_eq!(sms["metrics"]["successCount"], 1);
        assert_eq!(app.message(&sent).await["contactId"], target["id"]);

        let by_source = get(&app, &source).await;
        assert_eq!((&by_source["id"], &by_source["mergedFrom"]), (&target["id"], &source));
        assert!(merged.get("mergedFrom").is_none());
        assert_eq!(list(&app).await.len(), 1);
        let told = events(&app, &target["id"]).await;
        assert_eq!((told.len(), text(&told[0].1[0]["type"]), &told[0].1[0]["data"]["mergedFrom"]), (1, "contact.merged", &source));
        assert_eq!(told[0].1[0]["data"]["contact"]["availableChannels"], json!(["sms", "email"]));

        let again = app.post(&path, json!({"sourceContactId": source})).await.expect(200).json();
        assert_eq!(again, merged, "repeating changes nothing");
        assert_eq!(events(&app, &target["id"]).await.len(), 1);
        let of_source = format!("/v1/contacts/{}", text(&source));
        let channel = text(&sms["id"]);
        for (method, path, body) in [
            ("PATCH", of_source.clone(), Some(json!({"displayName": "x"}))),
            ("DELETE", of_source.clone(), None),
            ("DELETE", format!("{of_source}/merge-suggestion"), None),
            ("POST", format!("{of_source}/channels"), Some(json!({"channel": "email", "identifier": "n@example.org"}))),
            ("PATCH", format!("{of_source}/channels/{channel}"), Some(json!({"label": "x"}))),
            ("DELETE", format!("{of_source}/channels/{channel}"), None),
            ("POST", format!("{of_source}/channels/{channel}/primary"), None),
            ("POST", format!("{of_source}/merge"), Some(json!({"sourceContactId": target["id"]}))),
        ] {
            let answer = app.request(method, &path, body).await.expect(409).json();
            assert_eq!((text(&answer["code"]), &answer["details"]["mergedInto"]), ("conflict", &target["id"]), "{method} {path}");
        }
        let third = crate::contacts::sms(&app, "+34600111999").await;
        let elsewhere =
            app.post(&format!("/v1/contacts/{}/merge", text(&third["id"])), json!({"sourceContactId": source})).await.expect(409);
        assert_eq!(elsewhere.json()["details"]["mergedInto"], target["id"]);
        let itself = app.post(&path, json!({"sourceContactId": target["id"]})).await.expect(400).json();
        assert_eq!(faults(&itself)[0].0, "sourceContactId");
        for unknown in ["con_00000000000000000000000000", "nonsense"] {
            app.post(&path, json!({"sourceContactId": unknown})).await.expect(404);
            app.post(&format!("/v1/contacts/{unknown}/merge"), json!({"sourceContactId": source})).await.expect(404);
        }
        // An earlier merge follows when its target is merged.
        app.post(&format!("/v1/contacts/{}/merge", text(&third["id"])), json!({"sourceContactId": target["id"]})).await.expect(200);
        assert_eq!(get(&app, &source).await["id"], third["id"]);
        // The number is the third contact's own, and stays its primary one despite an older one.
        assert_eq!(get(&app, &third["id"]).await["primaryPhone"], "+34600111999");
    }
}

#[tokio::test]
async fn merged_metadata_stays_within_its_limits() {
    let app = TestApp::start().await;
    let full = |from: usize| (from..from + 40).map(|n| (format!("k{n:02}"), json!(n))).collect::<serde_json::Map<_, _>>();
    let make = async |number: &str, from| {
        create(&app, json!({"channels": [{"channel": "sms", "identifier": number}], "metadata": full(from)})).await["id"].clone()
    };
    let (target, source) = (make("+34600111222", 0).await, make("+34600111333", 30).await);
    let merged = app.post(&format!("/v1/contacts/{}/merge", text(&target)), json!({"sourceContactId": source})).await.expect(200).json();
    assert_eq!(merged["metadata"].as_object().map(serde_json::Map::len), Some(50));
}

// holds: contacts.suggestion
#[tokio::test]
async fn merging_is_suggested_for_one_person_until_it_is_turned_down() {
    for app in TestApp::on_each().await {
        write(&app, Channel::Telegram, "77", "hi", Some("Ada  Lovelace")).await;
        let chat = list(&app).await[0]["id"].clone();
        let named = |name: &str, channel: Value| json!({"displayName": name, "channels": [channel]});
        let phone = create(&app, named("ada lovelace", json!({"channel": "sms", "identifier": "+34600111222"}))).await;
        assert_eq!(phone["suggestedMergeWith"], chat);
        let same_kind = create(&app, named("Ada Lovelace", json!({"channel": "telegram", "identifier": "78"}))).await;
        assert_eq!(same_kind["suggestedMergeWith"], phone["id"], "another chat is another person");
        let email = create(&app, json!({"channels": [{"channel": "email", "identifier": "ada@example.org"}]})).await;
        assert!(email.get("suggestedMergeWith").is_none());
        let body =
            json!({"channels": [{"channel": "sms", "identifier": "+34600111333"}], "metadata": {"crm": {"mail": " ada@EXAMPLE.org "}}});
        let by_email = create(&app, body).await;
        assert_eq!(by_email["suggestedMergeWith"], email["id"]);

        let dismiss = async |id: &Value| app.request("DELETE", &format!("/v1/contacts/{}/merge-suggestion", text(id)), None).await;
        dismiss(&by_email["id"]).await.expect(204);
        dismiss(&by_email["id"]).await.expect(204);
        assert!(get(&app, &by_email["id"]).await.get("suggestedMergeWith").is_none());
        assert_eq!(get(&app, &chat).await["suggestedMergeWith"], phone["id"], "each suggests the other");
        dismiss(&phone["id"]).await.expect(204);
        assert_eq!(get(&app, &phone["id"]).await["suggestedMergeWith"], same_kind["id"], "the next one");
        assert!(get(&app, &chat).await.get("suggestedMergeWith").is_none(), "nor does the other one suggest it");
        let merge = json!({"sourceContactId": same_kind["id"]});
        app.post(&format!("/v1/contacts/{}/merge", text(&phone["id"])), merge).await.expect(200);
        assert!(get(&app, &phone["id"]).await.get("suggestedMergeWith").is_none());
        app.request("DELETE", "/v1/contacts/con_nonsense/merge-suggestion", None).await.expect(404);
        let merged = create(&app, named("Ada Byron", json!({"channel": "sms", "identifier": "+34600111444"}))).await;
        app.post(&format!("/v1/contacts/{}/merge", text(&merged["id"])), json!({"sourceContactId": phone["id"]})).await.expect(200);
        app.request("PATCH", &format!("/v1/contacts/{}", text(&merged["id"])), Some(json!({"displayName": "Ada Lovelace"})))
            .await
            .expect(200);
        assert!(get(&app, &chat).await.get("suggestedMergeWith").is_none(), "nor under the id that it was merged into");
        let next = create(&app, named("Ada Lovelace", json!({"channel": "email", "identifier": "lovelace@example.org"}))).await;
        assert_eq!(get(&app, &chat).await["suggestedMergeWith"], next["id"], "and hides no other");
    }
}

// holds: contacts.suggestion
#[tokio::test(flavor = "multi_thread")]
async fn two_contacts_that_dismiss_each_other_at_once_stay_dismissed() {
    for app in TestApp::on_each().await {
        for round in 0..5 {
            let named = |channel: Value| json!({"displayName": format!("Ada {round}"), "channels": [channel]});
            let phone = create(&app, named(json!({"channel": "sms", "identifier": format!("+3460011122{round}")}))).await;
            let email = create(&app, named(json!({"channel": "email", "identifier": format!("ada{round}@example.org")}))).await;
            let path = |contact: &Value| format!("/v1/contacts/{}", text(&contact["id"]));
            let (ours, theirs) = (path(&phone), path(&email));
            // A change of the other contact, at the same moment, loses nothing either.
            let renames = app.request("PATCH", &theirs, Some(json!({"metadata": {"a": 1}})));
            let (one, other) = (format!("{ours}/merge-suggestion"), format!("{theirs}/merge-suggestion"));
            let (one, other, renamed) = tokio::join!(app.request("DELETE", &one, None), app.request("DELETE", &other, None), renames);
            assert_eq!((one.status.as_u16(), other.status.as_u16(), renamed.status.as_u16()), (204, 204, 200));
            for contact in [&phone, &email] {
                assert!(get(&app, &contact["id"]).await.get("suggestedMergeWith").is_none(), "{contact}");
            }
            assert_eq!(get(&app, &email["id"]).await["metadata"], json!({"a": 1}));
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn of_two_merges_of_one_source_one_wins() {
    for backend in Backend::all() {
        let app = Arc::new(TestApp::on(backend).await);
        for round in 0..5 {
            let mut ids = Vec::new();
            for n in 0..3 {
                ids.push(text(&sms(&app, &format!("+3460011{round}{n:02}0")).await["id"]).to_owned());
            }
            let merges = [(0, 1), (0, 2), (1, 0), (2, 0)].map(|(source, target)| {
                let (app, path) = (app.clone(), format!("/v1/contacts/{}/merge", ids[target]));
                let body = json!({"sourceContactId": ids[source]});
                tokio::spawn(async move { app.post(&path, body).await })
            });
            let mut statuses = Vec::new();
            for merge in merges {
                statuses.push(merge.await.expect("the request ends").status.as_u16());
            }
            assert!(statuses.iter().all(|status| matches!(status, 200 | 409)), "{statuses:?}");
            let first = get(&app, &json!(ids[0])).await;
            let number = |n: usize| format!("+3460011{round}{n:02}0");
            let mut found = Vec::new();
            for n in 0..3 {
                let owner = app.get(&format!("/v1/contacts/phone/{}", number(n))).await.expect(200).json();
                found.push(owner["id"].clone());
            }
            assert!(found.contains(&first["id"]), "no address is lost: {found:?}");
        }
    }
}

/// After merges in any order, the sums of metrics and the set of identifiers are the same.
// holds: contacts.merge
#[tokio::test]
async fn merges_keep_sums_and_identifiers() {
    let app = TestApp::start().await;
    for n in 0..12 {
        for _ in 0..=n % 4 {
            let to = if n % 3 == 0 { format!("+1212555000{}", n % 2 + 1) } else { format!("+346001112{n:02}") };
            let channel = ["sms", "whatsapp", "voice"][n % 3];
            app.send_message(json!({"to": to, "text": "x", "channel": channel})).await;
        }
    }
    app.drain().await;
    let whole = async || {
        let all = list(&app).await;
        let (mut sums, mut identifiers) = ([0; 2], std::collections::BTreeSet::new());
        for channel in all.iter().flat_map(|c| c["channels"].as_array().expect("channels")) {
            sums[0] += channel["metrics"]["successCount"].as_i64().expect("a number");
            sums[1] += channel["metrics"]["failureCount"].as_i64().expect("a number");
            assert!(identifiers.insert((text(&channel["id"]).to_owned(), text(&channel["identifier"]).to_owned())));
        }
        (sums, identifiers, all.iter().map(|c| text(&c["id"]).to_owned()).collect::<Vec<_>>())
    };
    let (sums, identifiers, mut left) = whole().await;
    assert!(sums[0] > 5 && sums[1] > 0, "{sums:?}");
    let mut seed = 7_usize;
    while left.len() > 1 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        let (a, b) = ((seed >> 33) % left.len(), (seed >> 43) % left.len());
        if a != b {
            app.post(&format!("/v1/contacts/{}/merge", left[a]), json!({"sourceContactId": left[b]})).await.expect(200);
            let now = whole().await;
            assert_eq!((&now.0, &now.1, now.2.len()), (&sums, &identifiers, left.len() - 1));
            left = now.2;
        }
    }
}
