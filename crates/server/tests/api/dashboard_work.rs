//! Daily work on pages: figures and tasks, message search, contacts as files, merging two contacts.

use std::time::Duration;

use nuncio_domain::message::Cost;
use nuncio_domain::price::{Price, Unit};
use nuncio_domain::user::Role;
use nuncio_domain::{Channel, Clock as _, Micros, Timestamp};
use nuncio_testkit::TestApp;
use serde_json::json;

use crate::dashboard::person;
use crate::dashboard_pages::upload;

// holds: pages.home
#[tokio::test]
async fn home_draws_what_went_out_and_names_what_waits() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        assert!(!browser.page("/").await.contains("Last 24 hours"), "no figures before the first message");
        let cost = Cost { fee: Micros(10_000), provider: Micros(40_000) };
        let price =
            Price { channel: Channel::Sms, country: "*".to_owned(), effective_from: Timestamp::from_millis(0), unit: Unit::Segment, cost };
        let mut tx = app.store().begin().await.expect("a transaction");
        tx.put_prices(None, &[price], false).await.expect("prices");
        tx.commit().await.expect("committed");
        for to in ["+34600111222", "+34600111223", "+12125550001"] {
            app.send_message(json!({"to": to, "text": "hello"})).await;
        }
        app.send_message(json!({"to": "ada@example.org", "text": "hello", "subject": "Hello"})).await;
        let later = app.clock.now().plus(Duration::from_secs(7_200)).to_string();
        app.send_message(json!({"to": "+34600111224", "text": "hello", "scheduledAt": later})).await;
        app.drain().await;
        app.advance(Duration::from_secs(60)).await;
        let home = browser.page("/").await;
        for part in [
            "<th scope=\"row\">SMS, ES</th>",
            "<th scope=\"row\">SMS, US</th>",
            "<th scope=\"row\">Email</th>",
            "Sent, by hour",
            "Spent, by hour",
            "Show as a table",
            "Delivered",
            "Time to delivery",
            "data-live=\"calm\"",
        ] {
            assert!(home.contains(part), "{part}: {home}");
        }
        assert!(!home.contains("over 30 min"), "{home}");
        // A scheduled message counts from its scheduled time.
        app.advance(Duration::from_secs(7_200)).await;
        app.drain().await;
        app.advance(Duration::from_secs(60)).await;
        let home = browser.page("/?span=week").await;
        assert!(home.contains("Sent, by 6 hours") && home.contains("Last 7 days") && !home.contains("over 30 min"), "{home}");
        assert!(browser.page("/?span=month").await.contains("Sent, by day"));

        // Waiting items are listed with how long they have waited, and how many are new.
        let unsent = async |after| {
            let at = app.clock.now().plus(Duration::from_secs(after)).to_string();
            app.send_message(json!({"to": "+34600111225", "text": "hello", "scheduledAt": at})).await;
        };
        unsent(600).await;
        app.advance(Duration::from_secs(590)).await;
        unsent(20).await;
        app.clock.advance(Duration::from_secs(290));
        let home = browser.page("/").await;
        for part in ["2 messages wait for SMS of", "and due 4 minutes ago", "Accepted in the last five minutes: 1."] {
            assert!(home.contains(part), "{part}: {home}");
        }
    }
}

// holds: pages.home
#[tokio::test]
async fn messages_of_which_nobody_knows_are_named_by_their_reason() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let viewer = person(&app, "vi@example.net", Role::Viewer).await;
    let metadata = json!({"order": "1017", "paid": true});
    let id = app.send_message(json!({"to": "+12125550008", "text": "hello", "onUnknown": "hold", "metadata": metadata})).await;
    app.drain().await;
    let home = browser.page("/").await;
    assert!(home.contains("1 message waits for your decision") && home.contains("The outcome of its last attempt is unknown"), "{home}");
    let path = format!("/messages/{id}");
    let page = browser.page(&path).await;
    assert!(page.contains("It was sent") && page.contains("<h2>Content</h2>"), "{page}");
    assert!(page.contains("Send it again?"), "it asks first: {page}");
    let said = app.message(&id).await["attempts"][0]["errorMessage"].as_str().expect("what the provider said").to_owned();
    assert!(page.contains(">1017</bdi>") && page.contains(">true</bdi>"), "{page}");
    let seen = viewer.page(&path).await;
    assert!(seen.contains("waits for a decision") && !seen.contains("It was sent") && !seen.contains("Send again"), "{seen}");
    app.clock.advance(Duration::from_secs(1));
    browser.submit(&path, &[("do", "sent")]).await.expect(303);
    let late = browser.submit(&path, &[("do", "failed")]).await.expect(303).header("location").to_owned();
    let told = browser.page(&late).await;
    assert!(told.contains("Your last action changed nothing.") && told.contains("It was decided before: A person decided that"), "{told}");
    let page = browser.page(&path).await;
    assert!(page.contains("Decision: it was sent") && page.contains("Attempt 1 ended with an unknown outcome"), "{page}");
    assert_eq!(app.message(&id).await["attempts"][0]["errorMessage"], said, "what the provider said stays");
    for _ in 0..2 {
        app.send_message(json!({"to": "+12125550008", "text": "hello", "onUnknown": "hold"})).await;
    }
    app.drain().await;
    let home = browser.page("/").await;
    assert!(home.contains("2 messages wait for your decision") && home.contains("href=\"/messages?status=held\""), "{home}");
    let held = browser.page("/messages?status=held").await;
    assert!(held.matches("class=\"to clip\"").count() == 2 && !held.contains(&path), "{held}");
    assert!(browser.page("/messages?status=held&channel=email").await.contains("Nothing matches"));
}

// holds: pages.messages, messages.list.text
#[tokio::test]
async fn messages_are_found_by_what_is_known_of_them() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "su@example.net", Role::Operator).await;
        let parcel =
            app.send_message(json!({"to": "+34600111222", "text": "Your Parcel is 50% there", "metadata": {"order": "1017"}})).await;
        app.send_message(json!({"to": "+34600111223", "text": "Something else"})).await;
        let finds = async |query: &str| {
            let page = browser.page(&format!("/messages?{query}")).await;
            (page.contains(&format!("/messages/{parcel}")), page.matches("class=\"to clip\"").count())
        };
        for query in [
            "q=%2B34+600+111+222", "q=%2B34600111222", "q=parcel+is", "q=50%25", "q=order%3D1017", "q=1017&in=metadata", "q=PARCEL&in=text",
        ] {
            let found = if query == "q=1017&in=metadata" { (false, 0) } else { (true, 1) };
            assert_eq!(finds(query).await, found, "{query}");
        }
        assert_eq!(finds("q=5_%25").await, (false, 0));
        app.send_message(json!({"to": "Bob@Example.ORG", "subject": "Hello", "text": "A mail"})).await;
        assert_eq!(finds("q=Bob%40Example.ORG").await.1, 1, "as it was written");
        assert_eq!(finds("q=").await, (true, 3));
        let listed = app.get("/v1/messages?text=PARCEL").await.expect(200).json();
        assert_eq!((listed["items"].as_array().map(Vec::len), &listed["items"][0]["id"]), (Some(1), &json!(parcel)));
        let long = "x".repeat(201);
        app.get(&format!("/v1/messages?text={long}")).await.expect(400);
        for (id, page) in [("con_x", "/contacts/con_x"), ("brd_x", "/broadcasts/brd_x")] {
            assert_eq!(browser.get(&format!("/messages?q={id}")).await.expect(303).header("location"), page);
        }
    }
}

// holds: pages.composer
#[tokio::test]
async fn a_text_is_measured_and_shown_before_it_is_sent() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let check = async |text: &str| {
        browser
            .submit("/messages/new", &[("to", "+34600111222"), ("channel", "sms"), ("text", text), ("do", "check")])
            .await
            .expect(200)
            .text
    };
    let plain = check("Hello Ana").await;
    assert!(plain.contains("9 of 160 characters.") && plain.contains("1 segment") && plain.contains("No price is set"), "{plain}");
    let foreign = check("Hello Ana 🙂, see you").await;
    assert!(foreign.contains("</mark> requires UCS-2.") && foreign.contains("It is character 11."), "{foreign}");
    let long = check(&"x".repeat(161)).await;
    assert!(long.contains("161 of 306 characters of 2 segments."), "{long}");
    let lines = check("Hello\r\nAna").await;
    assert!(lines.contains("9 of 160 characters."), "a browser sends a line break as two characters: {lines}");
    // The text is measured even without a recipient.
    let early = browser.submit("/messages/new", &[("to", ""), ("text", "Hello"), ("do", "check")]).await.expect(400);
    assert!(early.text.contains("5 of 160 characters."), "{}", early.text);
    let sent = browser.submit("/messages/new", &[("to", "+12125550001"), ("text", "Again?\r\nYes"), ("do", "send")]).await.expect(303);
    app.drain().await;
    let page = browser.page(sent.header("location")).await;
    let id = sent.header("location").trim_start_matches("/messages/");
    assert_eq!(app.message(id).await["text"], "Again?\nYes");
    assert!(page.contains(&format!("/messages/new?like={id}")), "{page}");
    let again = browser.page(&format!("/messages/new?like={id}")).await;
    assert!(again.contains(">Again?\nYes</textarea>") && again.contains("value=\"+12125550001\""), "{again}");
}

// holds: pages.contacts
#[tokio::test]
async fn people_come_from_a_file_and_leave_as_one() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let key = browser.form_key().await;
        app.send_message(json!({"to": "+34600111222", "text": "hello"})).await;
        let file = "name;phone;email;plan\n=Ana;600 111 222;;gold\nBo;+34600111223;bo@example.org;\nCy;nonsense;;\nDi;;;\n";
        upload(&browser, "/contacts", &[("key", "wrong")], "a.csv", file).await.expect(403);
        let added = upload(&browser, "/contacts", &[("key", &key), ("countries", "es")], "a.csv", file).await.expect(200);
        assert!(
            added.text.contains("1 of 4 people are new") && added.text.contains("Already known: 1. Invalid rows: 2."),
            "{}",
            added.text
        );
        assert!(
            added.text.contains("has no address") && added.text.contains("&quot;nonsense&quot; is not a phone number"),
            "{}",
            added.text
        );
        let wrong = upload(&browser, "/contacts", &[("key", &key)], "a.csv", "name\nAna\n").await.expect(400);
        assert!(wrong.text.contains("has no column named phone"), "{}", wrong.text);
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        let foreign = viewer.form_key().await;
        upload(&viewer, "/contacts", &[("key", &foreign)], "a.csv", "phone\n+34600111299\n").await.expect(403);

        let csv = browser.get("/contacts.csv").await.expect(200);
        assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
        assert!(csv.text.contains(",Bo,+34600111223,bo@example.org,,,,,ES,"), "{}", csv.text);
        assert!(csv.text.contains(",'=Ana,+34600111222,"), "a spreadsheet takes no name for a formula: {}", csv.text);
        let again = upload(&browser, "/contacts", &[("key", &key)], "b.csv", &csv.text).await.expect(200);
        assert!(again.text.contains("0 of 2 people are new"), "{}", again.text);
    }
}

// holds: pages.contacts
#[tokio::test]
async fn two_contacts_are_compared_before_they_are_one() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let make =
        async |body: serde_json::Value| app.post("/v1/contacts", body).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
    let one = make(json!({"displayName": "Ana Ruiz", "channels": [{"channel": "sms", "identifier": "+34600111222"}]})).await;
    let two =
        make(json!({"displayName": "Ana Ruiz", "channels": [{"channel": "email", "identifier": "ana@example.org"}], "metadata": {"plan": "gold"}})).await;
    let page = browser.page(&format!("/contacts/{one}")).await;
    let compare = format!("/contacts/{one}/merge?with={two}");
    assert!(page.contains("second contact of the same person") && page.contains(&compare), "{page}");
    assert!(browser.page("/contacts").await.contains("possible duplicate"));
    let preview = browser.page(&compare).await;
    let afterwards = preview.split("Result").nth(1).expect("a preview");
    assert!(afterwards.contains("+34600111222") && afterwards.contains("ana@example.org") && afterwards.contains("gold"), "{preview}");
    browser.get(&format!("/contacts/{one}/merge?with={one}")).await.expect(400);

    // Whoever enters an address that another contact has is led there.
    let known = [("identifier", "+34600111222"), ("channel", ""), ("do", "add")];
    let refused = browser.submit(&format!("/contacts/{two}"), &known).await.expect(400).text;
    assert!(refused.contains(&format!("\"/contacts/{two}/merge?with={one}\"")), "{refused}");
    let refused = browser.submit("/contacts/new", &known).await.expect(400).text;
    assert!(refused.contains(&format!("\"/contacts/{one}\">Open the contact")), "{refused}");

    // Consent belongs to an address.
    browser.submit(&format!("/contacts/{one}"), &[("do", "stop"), ("channel", "sms"), ("identifier", "+34600111222")]).await.expect(303);
    let page = browser.page(&format!("/contacts/{one}")).await;
    assert!(page.contains("Not to be contacted") && page.contains("Contact again"), "{page}");
    assert!(page.contains(&format!("/messages?contact={one}")) && page.contains("0 of 0 attempts"), "{page}");

    let viewer = person(&app, "vi@example.net", Role::Viewer).await;
    let seen = viewer.page(&format!("/contacts/{one}")).await;
    assert!(!seen.contains("Contact again") && !seen.contains("Not the same") && !seen.contains(">Write<"), "{seen}");
    assert!(!viewer.page("/contacts").await.contains("People from a file"));
    viewer.submit(&format!("/contacts/{one}/merge"), &[("with", &two)]).await.expect(403);
    browser.submit(&format!("/contacts/{one}/merge"), &[("with", &two)]).await.expect(303);
    let merged = browser.page(&format!("/contacts/{one}")).await;
    assert!(merged.contains("ana@example.org") && !merged.contains("second contact"), "{merged}");

    let three = make(json!({"displayName": "Ana Ruiz", "channels": [{"channel": "telegram", "identifier": "12345"}]})).await;
    assert!(browser.page(&format!("/contacts/{three}")).await.contains("second contact"));
    browser.submit(&format!("/contacts/{three}"), &[("do", "dismiss")]).await.expect(303);
    assert!(!browser.page(&format!("/contacts/{three}")).await.contains("second contact"));
}

// holds: pages.compose
#[tokio::test]
async fn a_broadcast_is_made_from_a_template_and_its_columns_are_looked_at() {
    let app = TestApp::start().await;
    let browser = person(&app, "ma@example.net", Role::Operator).await;
    let template = json!({"name": "opening", "language": "en", "body": "Hello {{1}}, we open at {{2}}."});
    let template = app.post("/v1/templates", template).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
    assert!(browser.page(&format!("/broadcasts/new?template={template}")).await.contains("opening (en)"));
    let write = [("name", "Spring"), ("channel", "sms"), ("text", ""), ("template", template.as_str()), ("once", "page-1")];
    let path = browser.submit("/broadcasts/new", &write).await.expect(303).header("location").to_owned();
    let key = browser.form_key().await;
    let columns = format!("{path}/columns");
    let file = "phone,vorname,2,notes\n+34600111222,Ana,nine,secret\n+34600111223,Bo,ten,\n";
    upload(&browser, &columns, &[("key", "wrong")], "a.csv", file).await.expect(403);
    let seen = upload(&browser, &columns, &[("key", &key)], "a.csv", file).await.expect(200).text;
    assert!(seen.contains("The columns of your file") && seen.contains("Ignored") && seen.contains("Ana, Bo"), "{seen}");
    assert!(seen.contains("No column fills <code>{{1}}</code>"), "{seen}");
    let seen = upload(&browser, &columns, &[("key", &key), ("columns", "vorname:1")], "a.csv", file).await.expect(200).text;
    let at = |text: &str| seen.find(text).unwrap_or_else(|| panic!("no {text} in {seen}"));
    assert!(at("value=\"vorname:1\"") < at("type=\"file\""), "what was typed stays, and is sent before the file");
    assert!(!seen.contains("No column fills") && seen.contains("0</b>") | seen.contains("0 so far"), "nothing was added: {seen}");
    let added =
        upload(&browser, &format!("{path}/recipients"), &[("key", &key), ("columns", "vorname:1")], "a.csv", file).await.expect(200).text;
    assert!(added.contains("2 of 2 rows added") && added.contains("Hello Ana, we open at nine."), "{added}");
}

// holds: pages.broadcasts
#[tokio::test]
async fn what_many_recipients_lack_is_told_in_a_few_lines() {
    let app = TestApp::start().await;
    let browser = person(&app, "ma@example.net", Role::Operator).await;
    let write = [("name", "Spring"), ("channel", "sms"), ("text", "Hello {{name}}"), ("once", "page-1")];
    let path = browser.submit("/broadcasts/new", &write).await.expect(303).header("location").to_owned();
    let (key, rows) = (browser.form_key().await, (0..9).map(|n| format!("+3460011122{n}\n")).collect::<String>());
    upload(&browser, &format!("{path}/recipients"), &[("key", &key)], "a.csv", &format!("phone\n{rows}")).await.expect(200);
    let refused = browser.submit(&path, &[("do", "send")]).await.expect(400).text;
    assert_eq!(refused.matches(": name is missing; the text uses {{name}}").count(), 3, "{refused}");
    assert!(refused.contains("The same is true of others.") && !refused.contains("templateVariables"), "{refused}");
}

// holds: pages.broadcasts
#[tokio::test]
async fn a_broadcast_is_edited_until_it_is_sent_and_its_time_is_moved() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let write = [("name", "Spring"), ("channel", "sms"), ("text", "Helo"), ("once", "page-1")];
    let path = browser.submit("/broadcasts/new", &write).await.expect(303).header("location").to_owned();
    assert!(browser.page(&path).await.contains(">Helo</textarea>"));
    let empty = browser.submit(&path, &[("do", "update"), ("name", ""), ("text", "Hello")]).await.expect(400).text;
    assert!(empty.contains(">Hello</textarea>"), "what was typed stays: {empty}");
    browser.submit(&path, &[("do", "update"), ("name", "Summer"), ("text", "Hello")]).await.expect(303);
    let draft = browser.page(&path).await;
    assert!(draft.contains("Summer") && draft.contains(">Hello</textarea>"), "{draft}");
    let key = browser.form_key().await;
    upload(&browser, &format!("{path}/recipients"), &[("key", &key)], "a.csv", "phone\n+34600111222\n").await.expect(200);
    let later = |hours: u64| app.clock.now().plus(Duration::from_secs(hours * 3_600)).to_string();
    browser.submit(&path, &[("do", "send"), ("at", &later(2)[..16])]).await.expect(303);
    app.drain().await;
    let scheduled = browser.page(&path).await;
    assert!(scheduled.contains("Sending begins") && !scheduled.contains("value=\"pause\""), "{scheduled}");
    assert!(!scheduled.contains("</textarea>"), "it can no longer be edited");
    browser.submit(&path, &[("do", "schedule"), ("at", &later(5)[..16])]).await.expect(303);
    assert!(browser.page(&path).await.contains(&format!("value=\"{}\"", &later(5)[..16])));
    let viewer = person(&app, "view@example.net", Role::Viewer).await;
    let seen = viewer.page(&path).await;
    assert!(!seen.contains("value=\"clone\"") && !seen.contains("value=\"schedule\""), "{seen}");
}

// holds: pages.messages
#[tokio::test]
async fn a_person_is_found_by_name() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Viewer).await;
    let made =
        app.post("/v1/contacts", json!({"displayName": "Ana Pérez", "channels": [{"channel": "sms", "identifier": "+34600111222"}]})).await;
    let id = made.expect(201).json()["id"].as_str().expect("an id").to_owned();
    let found = browser.page("/messages?q=ana%20p%C3%A9rez").await;
    assert!(
        found.contains("People with this name")
            && found.contains("href=\"/contacts?q=")
            && found.contains(&format!("/messages?contact={id}")),
        "{found}"
    );
    assert!(!browser.page("/messages?q=nobody").await.contains("People with this name"));
}

// holds: pages.contacts
#[tokio::test]
async fn a_person_is_added_named_reached_otherwise_and_erased() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let add = [("name", "Ana"), ("identifier", "+34 600 111 222"), ("channel", "")];
    let page = browser.submit("/contacts/new", &add).await.expect(303).header("location").to_owned();
    browser.submit(&page, &[("do", "rename"), ("name", "Ana Pérez")]).await.expect(303);
    browser.submit(&page, &[("do", "add"), ("identifier", "ana@example.org"), ("channel", "")]).await.expect(303);
    let seen = browser.page(&page).await;
    assert!(["Ana Pérez", "+34600111222", "ana@example.org"].iter().all(|part| seen.contains(part)), "{seen}");
    let wrong = browser.submit(&page, &[("do", "add"), ("identifier", "nonsense"), ("channel", "email")]).await.expect(400).text;
    assert!(wrong.contains("id=\"identifier-fault\"") && wrong.contains("value=\"nonsense\""), "what was entered stays: {wrong}");
    let twice = browser.submit("/contacts/new", &add).await.expect(400).text;
    assert!(twice.contains("role=\"alert\"") && twice.contains("value=\"+34 600 111 222\""), "{twice}");
    assert_eq!(browser.get("/contacts/new").await.expect(303).header("location"), "/contacts#new", "reloading leads back to the form");
    assert!(browser.page("/contacts").await.contains("id=\"new\""));
    browser.submit(&page, &[("do", "erase")]).await.expect(303);
    browser.get(&page).await.expect(404);
    assert!(app.holders("Ana Pérez").await.is_empty(), "the name is gone");
}
