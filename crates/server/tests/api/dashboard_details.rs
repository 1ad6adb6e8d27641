//! Pages that show and change one thing after another: a sender and its profile, recipients of a broadcast, metadata of a contact.

use std::time::Duration;

use nuncio_domain::Clock as _;
use nuncio_domain::user::Role;
use nuncio_testkit::{Backend, TestApp};
use serde_json::json;

use crate::broadcasts::{act, add, draft, finish};
use crate::dashboard::person;
use crate::dashboard_broadcasts::value;

// holds: pages.broadcasts
#[tokio::test]
async fn a_person_decides_about_all_that_a_broadcast_says() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Owner).await;
        let template = json!({"name": "account", "language": "en", "body": "Hello {{1}}, please reply with your password and PIN."});
        let template = app.post("/v1/templates", template).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
        let values = json!({"templateId": template, "templateVariables": {"1": "Ada"}});
        let by_template = json!({"name": "A", "channel": "sms", "messageType": "template", "content": values});
        let html = "<p>Dear <b>client</b>,</p><p>Please reply with your password and PIN.</p>";
        let by_html = json!({"name": "B", "channel": "email", "emailSubject": "About your account", "emailHtmlBody": html});
        for (body, recipient, parts) in [
            (by_template, "+34600111222", ["Template <a href=\"/templates/tpl_", "Hello Ada, ", "Hello {{1}}, "]),
            (by_html, "ana@example.org", ["About your account", "Dear client, Please", "&lt;p&gt;Dear &lt;b&gt;client"]),
        ] {
            let id = draft(&app, body).await;
            add(&app, &id, [recipient.to_owned()]).await;
            act(&app, &id, "send").await.expect(202);
            app.drain().await;
            act(&app, &id, "escalate").await.expect(200);
            for path in ["/reviews", &format!("/broadcasts/{id}")] {
                let page = browser.page(path).await;
                assert!(page.contains("<mark>"), "{path}: {page}");
                let page = page.replace("<mark>", "").replace("</mark>", "");
                for part in parts {
                    assert!(page.contains(part), "{path}, {part}: {page}");
                }
            }
        }
    }
}

// holds: pages.details
#[tokio::test]
async fn a_sender_has_a_number_and_limits() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        let sender = app.get("/v1/senders").await.expect(200).json()["items"][0].clone();
        let own = format!("/senders/{}", sender["id"].as_str().expect("an id"));
        let good = [
            ("do", "save"),
            ("name", "Shop"),
            ("phoneNumber", "+34 600 111 222"),
            ("allowedCountries", "es, pt"),
            ("dailySpendLimit", "25.50"),
        ];
        viewer.submit(&own, &good).await.expect(403);
        let bad = [("do", "save"), ("name", "Shop"), ("phoneNumber", "12"), ("allowedCountries", "Spain"), ("dailySpendLimit", "lots")];
        let wrong = browser.submit(&own, &bad).await.expect(400);
        for (field, typed) in &bad[2..] {
            let shown = [format!("id=\"{field}-fault\""), format!("value=\"{typed}\"")];
            assert!(shown.iter().all(|part| wrong.text.contains(part)), "{field}: {}", wrong.text);
        }

        browser.submit(&own, &[&good[..], &[("emailReceivingEnabled", "on")]].concat()).await.expect(303);
        let page = browser.page(&own).await;
        for shown in
            ["value=\"Shop\"", "value=\"+34600111222\"", "value=\"ES, PT\"", "value=\"25.5\"", "name=\"emailReceivingEnabled\" checked"]
        {
            assert!(page.contains(shown), "{shown}: {page}");
        }
        let seen = viewer.page(&own).await;
        assert!(seen.contains("+34600111222") && seen.contains("ES, PT") && seen.contains("$25.50"), "{seen}");
        assert!(!seen.contains("name=\"phoneNumber\""), "{seen}");
        browser.submit(&own, &[("do", "save"), ("name", "Shop")]).await.expect(303);
        let sender = app.get(&format!("/v1{own}")).await.expect(200).json();
        assert_eq!((&sender["phoneNumber"], sender.get("dailySpendLimit"), sender.get("allowedCountries")), (&json!(""), None, None));
        assert!(browser.page("/settings/audit?what=sender").await.contains("Sender changed"));
    }
}

// holds: pages.details
#[tokio::test]
async fn what_another_person_set_meanwhile_is_not_removed() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let sender = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
        let own = format!("/senders/{sender}");
        let page = browser.page(&own).await;
        app.request("PATCH", &format!("/v1{own}"), Some(json!({"dailySpendLimit": 25}))).await.expect(200);
        // At the same time, by this clock.
        app.request("PATCH", &format!("/v1{own}"), Some(json!({"allowedCountries": ["ES"]}))).await.expect(200);
        let save = async |page: &str| browser.submit(&own, &[("do", "save"), ("name", "Shop"), ("version", value(page, "version"))]).await;
        let stored = async || app.get(&format!("/v1{own}")).await.expect(200).json();
        let warned = save(&page).await.expect(409).text;
        assert!(warned.contains("It was changed meanwhile.") && warned.contains("value=\"Shop\""), "{warned}");
        assert!(warned.contains("<dd>$25.00</dd>") && warned.contains(">ES<"), "what is stored: {warned}");
        assert_eq!((&stored().await["dailySpendLimit"], &stored().await["allowedCountries"]), (&json!(25), &json!(["ES"])));
        save(&warned).await.expect(303);
        assert_eq!((&stored().await["name"], stored().await.get("dailySpendLimit")), (&json!("Shop"), None), "saving again is meant");

        let path = format!("{own}/profile");
        let page = browser.page(&path).await;
        app.request("PATCH", &format!("/v1{path}"), Some(json!({"about": "Shoes"}))).await.expect(200);
        let save = async |page: &str| {
            let fields = [("do", "save"), ("address", "Calle Mayor 1"), ("vertical", "RETAIL"), ("version", value(page, "version"))];
            browser.submit(&path, &fields).await
        };
        let warned = save(&page).await.expect(409).text;
        assert!(warned.contains("It was changed meanwhile.") && warned.contains("<dd><bdi dir=\"auto\">Shoes</bdi></dd>"), "{warned}");
        assert_eq!(app.get(&format!("/v1{path}")).await.expect(200).json()["profile"]["about"], "Shoes");
        save(&warned).await.expect(303);

        let path = format!("{own}/channels/sms");
        let (page, put) = (browser.page(&path).await, json!({"kind": "sim", "throttle": {"messagesPerSecond": 5, "burst": 5}}));
        app.request("PUT", &format!("/v1{path}"), Some(put)).await.expect(200);
        let save = async |page: &str| browser.submit(&path, &[("do", "save"), ("kind", "sim"), ("version", value(page, "version"))]).await;
        let warned = save(&page).await.expect(409).text;
        assert!(warned.contains("It was changed meanwhile."), "{warned}");
        save(&warned).await.expect(200);
        // Somebody else connects it first.
        app.request("DELETE", &format!("/v1{path}"), None).await.expect(204);
        let page = browser.page(&format!("{path}?kind=sim")).await;
        app.request("PUT", &format!("/v1{path}"), Some(json!({"kind": "sim"}))).await.expect(201);
        save(&page).await.expect(409);
    }
}

// holds: pages.details
#[tokio::test]
async fn a_business_profile_is_shown_and_changed() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        let sender = app.get("/v1/senders").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
        let path = format!("/senders/{sender}/profile");
        assert!(browser.page(&format!("/senders/{sender}")).await.contains(&format!("href=\"{path}\"")));
        let good = [
            ("do", "save"),
            ("about", "Shoes & more"),
            ("address", "Calle Mayor 1"),
            ("description", "We sell shoes."),
            ("email", "hello@example.org"),
            ("website1", ""),
            ("website2", "https://example.org"),
            ("vertical", "RETAIL"),
        ];
        viewer.submit(&path, &good).await.expect(403);
        let (mut bad, long) = (good, "x".repeat(140));
        (bad[1].1, bad[6].1) = (&long, "ftp://example.org");
        let wrong = browser.submit(&path, &bad).await.expect(400);
        assert!(wrong.text.contains("id=\"about-fault\"") && wrong.text.contains("id=\"website2-fault\""), "{}", wrong.text);
        assert!(wrong.text.contains(">We sell shoes.</textarea>"), "what was entered stays: {}", wrong.text);
        assert!(!viewer.page(&path).await.contains("We sell shoes."), "nothing was changed");

        browser.submit(&path, &good).await.expect(303);
        let profile = app.get(&format!("/v1{path}")).await.expect(200).json()["profile"].clone();
        assert_eq!((&profile["about"], &profile["websites"]), (&json!("Shoes & more"), &json!(["https://example.org"])));
        let seen = viewer.page(&path).await;
        assert!(seen.contains("Shoes &amp; more") && seen.contains("Shops") && !seen.contains("name=\"about\""), "{seen}");
        let picture = browser.submit(&path, &[("do", "picture"), ("imageUrl", "nonsense"), ("mimeType", "image/png")]).await.expect(400);
        assert!(picture.text.contains("id=\"imageUrl-fault\"") && picture.text.contains("value=\"nonsense\""), "{}", picture.text);
        let without = browser.submit("/senders/new", &[("name", "No WhatsApp")]).await.expect(303).header("location").to_owned();
        app.request("DELETE", &format!("/v1{without}/channels/whatsapp"), None).await;
        assert!(!browser.page(&without).await.contains("WhatsApp profile"));
        browser.get(&format!("{without}/profile")).await.expect(400);
    }
}

// holds: pages.details
#[tokio::test]
async fn recipients_of_a_broadcast_are_listed_one_by_one() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        let id = draft(&app, json!({"name": "News", "channel": "sms", "text": "Hello from Acme"})).await;
        let path = format!("/broadcasts/{id}/recipients");
        assert!(viewer.page(&path).await.contains("No recipients yet"));
        // Number 1 of the sandbox fails.
        let recipients = (0..60).map(|n| format!("+346001112{n:02}")).chain(["+12125550001".to_owned()]);
        add(&app, &id, recipients).await;
        assert!(viewer.page(&format!("/broadcasts/{id}")).await.contains(&format!("href=\"{path}\"")));
        let page = viewer.page(&path).await;
        assert!(page.contains("Waiting") && page.contains("+12125550001") && page.contains("Older"), "{page}");
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        let failed = viewer.page(&format!("{path}?status=failed")).await;
        assert!(failed.contains("+12125550001") && failed.contains("href=\"/messages/msg_"), "{failed}");
        assert!(failed.contains("class=\"clip soft\"") && !failed.contains("+34600111"), "with its reason: {failed}");
        assert!(viewer.page(&format!("{path}?status=skipped")).await.contains("Nothing matches"));
        viewer.get(&format!("{path}?status=lost")).await.expect(400);
        let one = viewer.page(&format!("{path}?q=600-111-207&x=")).await;
        assert!(one.contains("Not a recipient"), "a national number is none: {one}");
        let one = viewer.page(&format!("{path}?q=%2B34+600+111+207")).await;
        assert!(one.contains("+34600111207") && one.matches("href=\"/messages/msg_").count() == 1, "{one}");
        viewer.get("/broadcasts/brd_01hgw2bbg0e9tatjpp9vyrkcyk/recipients").await.expect(404);
    }
}

// holds: pages.details
#[tokio::test]
async fn metadata_of_a_contact_is_changed_entry_by_entry() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        let body = json!({"channels": [{"channel": "sms", "identifier": "+34600111222"}], "metadata": {"plan": "gold", "visits": 7}});
        let id = app.post("/v1/contacts", body).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
        let path = format!("/contacts/{id}");
        let set = |name, value| [("do", "set"), ("metadataName", name), ("metadata", value)];
        let stored = || async { app.get(&format!("/v1{path}")).await.expect(200).json()["metadata"].clone() };
        viewer.submit(&path, &set("plan", "x")).await.expect(403);
        let seen = viewer.page(&path).await;
        assert!(seen.contains("gold") && !seen.contains("name=\"metadata\""), "{seen}");
        for (verb, name, value) in [("set", "plan", "silver"), ("set", "visits", "8"), ("new", " city ", "<Madrid>")] {
            browser.submit(&path, &[("do", verb), ("metadataName", name), ("metadata", value)]).await.expect(303);
        }
        let taken = browser.submit(&path, &[("do", "new"), ("metadataName", "plan"), ("metadata", "lost?")]).await.expect(400).text;
        assert!(taken.contains("id=\"metadataName-fault\"") && taken.contains("value=\"lost?\""), "{taken}");
        assert_eq!(stored().await, json!({"plan": "silver", "visits": 8, "city": "<Madrid>"}));
        assert!(browser.page(&path).await.contains("value=\"&lt;Madrid&gt;\""));
        browser.submit(&path, &[("do", "unset"), ("metadataName", "plan")]).await.expect(303);
        assert_eq!(stored().await, json!({"visits": 8, "city": "<Madrid>"}));
        let wrong = browser.submit(&path, &set(" ", "lost?")).await.expect(400);
        assert!(wrong.text.contains("id=\"metadataName-fault\"") && wrong.text.contains("value=\"lost?\""), "{}", wrong.text);
        // Saved at the same time, none overwrites another.
        let names: Vec<String> = (0..8).map(|n| format!("at once {n}")).collect();
        let save =
            async |name: &String| browser.submit(&path, &[("do", "new"), ("metadataName", name), ("metadata", "x")]).await.expect(303);
        futures::future::join_all(names.iter().map(save)).await;
        let all = stored().await;
        assert!(names.iter().all(|name| all[name] == "x"), "{all}");
        // A field of one line would lose the line breaks.
        let lines = json!({"note": "\nfirst\r\nsecond"});
        app.request("PATCH", &format!("/v1{path}"), Some(json!({"metadata": lines}))).await.expect(200);
        let page = browser.page(&path).await;
        assert!(page.contains(">\n\nfirst\nsecond</textarea>"), "{page}");
        browser.submit(&path, &set("note", "\r\nfirst\r\nsecond")).await.expect(303);
        assert_eq!(stored().await, lines, "unchanged");
        let full: serde_json::Map<_, _> = (0..50).map(|n| (format!("k{n}"), json!("v"))).collect();
        app.request("PATCH", &format!("/v1{path}"), Some(json!({"metadata": full}))).await.expect(200);
        let wrong = browser.submit(&path, &set("one more", "v")).await.expect(400);
        assert!(wrong.text.contains("has 51 keys; must have at most 50"), "{}", wrong.text);
    }
}

// holds: pages.broadcasts
#[tokio::test]
async fn why_a_broadcast_did_not_change_stays_on_its_page() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let id = draft(&app, json!({"name": "News", "channel": "sms", "text": "Hello from Acme"})).await;
        let path = format!("/broadcasts/{id}");
        assert!(browser.page(&path).await.contains("Delete the draft"), "also without recipients");
        add(&app, &id, ["+34600111222".to_owned()]).await;
        let far = browser.submit(&path, &[("do", "send"), ("at", "2999-01-01T00:00")]).await.expect(400).text;
        assert!(far.contains("id=\"at-fault\"") && far.contains("is more than 365 days ahead"), "{far}");
        let later = app.clock.now().plus(Duration::from_secs(7_200)).to_string();
        browser.submit(&path, &[("do", "send"), ("at", &later[..16])]).await.expect(303);
        app.drain().await;
        assert!(browser.page(&path).await.contains("data-live=\"whole\""));
        let past = browser.submit(&path, &[("do", "schedule"), ("at", "2001-01-01T00:00")]).await.expect(400).text;
        assert!(past.contains("There is 1 error.") && past.contains("id=\"at-fault\""), "{past}");
        assert!(!past.contains("data-live"), "a reload would take it back");
    }
}

// holds: pages.messages
#[tokio::test]
async fn a_filter_keeps_the_messages_of_one_broadcast_or_contact() {
    for app in TestApp::on_each().await {
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        app.send_message(json!({"to": "+34600111222", "text": "hello"})).await;
        let id = draft(&app, json!({"name": "Spring sale", "channel": "sms", "text": "Hello from Acme"})).await;
        add(&app, &id, ["+34600111222".to_owned()]).await;
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        let contact = app.get("/v1/contacts").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
        for (field, id, name) in [("broadcast", &id, "Spring sale"), ("contact", &contact, "+34600111222")] {
            let page = viewer.page(&format!("/messages?{field}={id}&status=delivered,read")).await;
            let of = page.split("Only messages of the ").nth(1).unwrap_or_else(|| panic!("no scope: {page}"));
            assert!(of.starts_with(field) && of.contains(name) && of.contains(&format!("href=\"/{field}s/{id}\"")), "{page}");
            assert!(page.contains(&format!("type=\"hidden\" name=\"{field}\" value=\"{id}\"")), "{page}");
            assert!(page.contains("href=\"/messages?status=delivered%2Cread\"") && page.contains("href=\"/messages/msg_"), "{page}");
        }
        assert!(!viewer.page("/messages").await.contains("Only messages of"));
    }
}

// holds: pages.compose, pages.composer, pages.set_up
#[tokio::test]
async fn a_second_click_leads_to_what_the_first_one_made() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let twice = async |path: &str, fields: &[(&str, &str)]| {
            let fields = [fields, &[("once", "page-1")]].concat();
            let first = browser.submit(path, &fields).await.expect(303).header("location").to_owned();
            assert_eq!(browser.submit(path, &fields).await.expect(303).header("location"), first, "{path}");
            first
        };
        let sent = twice("/messages/new", &[("to", "+34600111222"), ("text", "hello"), ("do", "send")]).await;
        assert!(sent.starts_with("/messages/msg_"), "{sent}");
        let draft = twice("/broadcasts/new", &[("name", "News"), ("channel", "sms"), ("text", "Hello from Acme")]).await;
        assert!(draft.starts_with("/broadcasts/brd_"), "{draft}");
        assert!(browser.page(&draft).await.contains("name=\"once\""));
        let copy = twice(&draft, &[("do", "clone")]).await;
        assert!(copy.starts_with("/broadcasts/brd_") && copy != draft, "{copy}");
        let test = twice(&draft, &[("do", "test"), ("to", "+34600111222")]).await;
        assert!(test.starts_with("/messages/msg_"), "{test}");
        twice("/senders/new", &[("name", "Desk")]).await;
        twice("/templates/new", &[("name", "hello"), ("language", "en"), ("body", "Hello"), ("category", "UTILITY")]).await;
        twice("/contacts/new", &[("name", "Ana"), ("identifier", "+34600111333")]).await;
        for page in ["/templates/new", "/contacts"] {
            assert!(browser.page(page).await.contains("name=\"once\""), "{page}");
        }
        let invite = [("clientName", "Acme"), ("once", "page-1")];
        browser.submit("/invitations", &invite).await.expect(201);
        let again = browser.submit("/invitations", &invite).await.expect(303);
        let shown = browser.page(again.header("location")).await;
        assert!(shown.contains("Send it to your client.") && shown.matches("Withdraw this link?").count() == 1, "{shown}");
        assert_eq!(app.get("/v1/senders").await.expect(200).json()["items"].as_array().map(Vec::len), Some(2));
    }
}
