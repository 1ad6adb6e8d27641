//! Pages for broadcasts from a file, connections, templates, invitations, suppressions, numbers and money.

use std::time::Duration;

use nuncio_domain::user::Role;
use nuncio_testkit::{Backend, TestApp, TestResponse};
use serde_json::json;

use crate::audit::log;
use crate::broadcasts::finish;
use crate::dashboard::{Browser, person};
use crate::dashboard_broadcasts::value;

/// Uploads a file after form fields, like a browser.
pub(crate) async fn upload(browser: &Browser<'_>, path: &str, fields: &[(&str, &str)], name: &str, file: &str) -> TestResponse {
    let mut body = String::new();
    for (field, value) in fields {
        body.push_str(&format!("--b\r\nContent-Disposition: form-data; name=\"{field}\"\r\n\r\n{value}\r\n"));
    }
    body.push_str(&format!(
        "--b\r\nContent-Disposition: form-data; name=\"file\"; filename=\"{name}\"\r\nContent-Type: text/csv\r\n\r\n{file}\r\n--b--\r\n"
    ));
    let headers = [("cookie", browser.cookie.as_str()), ("content-type", "multipart/form-data; boundary=b")];
    browser.app.raw("POST", path, &headers, body.into_bytes()).await
}

// holds: pages.compose
#[tokio::test]
async fn a_broadcast_is_written_filled_tried_and_sent() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let browser = person(&app, "ma@example.net", Role::Operator).await;
        let empty = browser.submit("/broadcasts/new", &[("name", ""), ("channel", "sms"), ("text", "Hello {{name}}")]).await.expect(400);
        assert!(empty.text.contains("role=\"alert\"") && empty.text.contains(">Hello {{name}}</textarea>"), "{}", empty.text);
        let write = [("name", "Spring"), ("channel", "sms"), ("text", "Hello {{name}}, it is Acme"), ("once", "page-1")];
        let made = browser.submit("/broadcasts/new", &write).await.expect(303);
        let path = made.header("location").to_owned();
        assert_ne!(browser.submit("/broadcasts/new", &write).await.status, 201, "twice makes one");
        assert!(browser.page(&path).await.contains("Recipients from a file"));

        let key = browser.form_key().await;
        let file = "phone,name\n600 111 222,Ana\n+34600111223,Bo\nnonsense,Cy\n+34600111224,\n";
        upload(&browser, &format!("{path}/recipients"), &[("countries", "ES")], "a.csv", file).await.expect(403);
        upload(&browser, &format!("{path}/recipients"), &[("key", "wrong")], "a.csv", file).await.expect(403);
        let added = upload(&browser, &format!("{path}/recipients"), &[("key", &key), ("countries", "ES")], "a.csv", file).await.expect(200);
        assert!(
            added.text.contains("3 of 4 rows added") && added.text.contains("&quot;nonsense&quot; is not a recipient"),
            "{}",
            added.text
        );
        assert!(added.text.contains("Hello ") && added.text.contains("Estimate"), "{}", added.text);
        let wrong = upload(&browser, &format!("{path}/recipients"), &[("key", &key)], "a.csv", "x,y\n1,2\n").await.expect(400);
        assert!(wrong.text.contains("role=\"alert\""), "{}", wrong.text);

        app.post("/v1/contacts", json!({"channels": [{"channel": "sms", "identifier": "+12125550100"}]})).await.expect(201);
        let selected = browser.submit(&path, &[("do", "select"), ("channel", "sms"), ("ofCountries", "us")]).await.expect(200);
        assert!(selected.text.contains("1 contact added."), "{}", selected.text);
        let tried = browser.submit(&path, &[("do", "test"), ("to", "+34600999888")]).await.expect(303);
        assert!(tried.header("location").starts_with("/messages/msg_"));
        // Two recipients have no name: nothing is sent with a gap.
        let gap = browser.submit(&path, &[("do", "send")]).await.expect(400);
        assert!(gap.text.contains("name"), "{}", gap.text);
        let wrong = browser.submit(&path, &[("do", "send"), ("at", "tomorrow")]).await.expect(400);
        assert!(wrong.text.contains("must be a date and a time") && wrong.text.contains("value=\"tomorrow\""), "{}", wrong.text);

        let copy = browser.submit(&path, &[("do", "clone")]).await.expect(303).header("location").to_owned();
        browser.submit(&path, &[("do", "delete")]).await.expect(303);
        browser.get(&path).await.expect(404);
        let good = "phone,name\n+34600111222,Ana\n+12125550001,=1+1\n";
        upload(&browser, &format!("{copy}/recipients"), &[("key", &key)], "b.csv", good).await.expect(200);
        browser.submit(&copy, &[("do", "send")]).await.expect(303);
        finish(&app).await;
        let page = browser.page(&copy).await;
        assert!(page.contains("100 % done") && page.contains("Failed and skipped by reason") && page.contains("By country"), "{page}");
        let csv = browser.get(&format!("{copy}/results.csv")).await.expect(200);
        assert_eq!(csv.header("content-type"), "text/csv; charset=utf-8");
        assert!(csv.text.contains(",+34600111222,phone,delivered,sms,msg_") && csv.text.lines().count() == 3, "{}", csv.text);
    }
}

// holds: pages.connect
#[tokio::test]
async fn a_sender_is_made_connected_and_tested() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let viewer = person(&app, "vi@example.net", Role::Viewer).await;
    viewer.submit("/senders/new", &[("name", "x")]).await.expect(403);
    for browser in [&browser, &viewer] {
        browser.submit("/world", &[("world", "live"), ("to", "/senders")]).await.expect(303);
    }
    let wrong = browser.submit("/senders/new", &[("name", "Shop"), ("phoneNumber", "12")]).await.expect(400);
    assert!(wrong.text.contains("value=\"12\""), "{}", wrong.text);
    let made = browser.submit("/senders/new", &[("name", "Shop"), ("phoneNumber", "+34 600 111 222")]).await.expect(303);
    let own = made.header("location").to_owned();
    let sms = format!("{own}/channels/sms");
    assert!(browser.page(&sms).await.contains("Kind of provider"));
    let form = browser.page(&format!("{sms}?kind=kannel")).await;
    assert!(
        form.contains("name=\"password\" type=\"password\"")
            && form.contains("More settings")
            && form.contains("Callback secret</label>")
            && form.contains("In the API: callback_secret.")
            && form.contains("type=\"number\""),
        "{}",
        form.split("id=\"main\"").nth(1).unwrap_or_default()
    );

    let mut fields = vec![("do", "save"), ("kind", "kannel"), ("url", "nonsense"), ("username", "me")];
    fields.extend([("password", "s3cret-pass"), ("callback_secret", "a-secret-of-20-letters")]);
    let refused = browser.submit(&sms, &fields).await.expect(400);
    assert!(refused.text.contains("id=\"url-fault\"") && refused.text.contains("value=\"nonsense\""), "{}", refused.text);
    assert!(!refused.text.contains("s3cret-pass"), "a secret is not shown");
    fields[2] = ("url", "https://gateway.example.com/sendsms");
    let saved = browser.submit(&sms, &fields).await.expect(200);
    assert!(saved.text.contains("It is saved, but does not work yet."), "{}", saved.text);
    let tested = browser.submit(&sms, &[("do", "test"), ("kind", "kannel")]).await.expect(200);
    assert!(tested.text.contains("It does not work.") && !tested.text.contains("It is saved"), "{}", tested.text);
    assert!(tested.text.contains("Fails") && !tested.text.contains("Works"), "{}", tested.text);
    let home = browser.page("/").await;
    let (fails, steps) = (home.find("Shop</bdi> fails").expect("a failure"), home.find("Getting started").expect("the steps"));
    assert!(fails < steps, "what fails comes first: {home}");
    let seen = viewer.page(&sms).await;
    assert!(seen.contains("gateway.example.com") && !seen.contains("Save and test") && !seen.contains("name=\"do\""), "{seen}");
    assert!(!saved.text.contains("s3cret-pass") && saved.text.contains("Leave it empty to keep"), "{}", saved.text);
    // An empty secret keeps the stored one only if no setting changes: it must not go to another server unnoticed.
    let again = [
        ("do", "save"),
        ("kind", "kannel"),
        ("url", "https://gateway.example.com/sendsms"),
        ("username", "me"),
        ("password", "another-pass"),
    ];
    browser.submit(&sms, &again).await.expect(200);
    let elsewhere = [("do", "save"), ("kind", "kannel"), ("url", "https://other.example.com/sendsms"), ("username", "me")];
    browser.submit(&sms, &elsewhere).await.expect(400);
    viewer.submit(&sms, &[("do", "test"), ("kind", "kannel")]).await.expect(403);
    browser.submit(&sms, &[("do", "remove")]).await.expect(303);
    assert!(browser.page(&own).await.contains("Nothing is connected"));

    let hooked = browser.submit(&own, &[("do", "webhook"), ("webhookUrl", "https://example.com/hooks")]).await.expect(200);
    assert!(hooked.text.contains("whsec_"), "{}", hooked.text);
    assert!(!browser.page(&own).await.contains("whsec_"), "it is shown once");
    browser.submit(&own, &[("do", "webhook"), ("webhookUrl", "ftp://x")]).await.expect(400);
    let tried = browser.submit(&own, &[("do", "try")]).await.expect(303).header("location").to_owned();
    let seen = browser.page(&tried).await;
    assert!(seen.contains("A test event was sent.") && seen.contains("data-live"), "its result appears by itself: {seen}");
    app.drain().await;
    assert!(browser.page(&own).await.contains("webhook.test"));
    browser.submit(&own, &[("do", "save"), ("name", "Store")]).await.expect(303);
    assert!(browser.page("/senders").await.contains("Store"));
    browser.submit(&own, &[("do", "delete")]).await.expect(303);
    browser.get(&own).await.expect(404);
}

// holds: pages.set_up
#[tokio::test]
async fn templates_invitations_suppressions_and_numbers_have_pages() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;

        assert!(browser.page("/templates").await.contains("No templates yet"));
        let body = [("name", "hello"), ("language", "en"), ("body", "Hello {{1}}"), ("category", "UTILITY")];
        viewer.submit("/templates/new", &body).await.expect(403);
        browser.submit("/templates/new", &[("name", "x"), ("language", "en"), ("body", "")]).await.expect(400);
        let template = browser.submit("/templates/new", &body).await.expect(303).header("location").to_owned();
        let change = [("do", "save"), ("body", "Good day {{1}}"), ("smsBody", "Hi {{1}}"), ("category", "MARKETING")];
        let wrong = browser.submit(&template, &[&change[..], &[("footer", &"f".repeat(61))]].concat()).await.expect(400).text;
        assert!(wrong.contains(&"f".repeat(61)) && wrong.contains("Hi {{1}}"), "what was typed stays: {wrong}");
        browser.submit(&template, &change).await.expect(303);
        let page = browser.page(&template).await;
        let shown = ["Good day {{1}}", "Text for SMS", "Hi {{1}}", "Marketing"];
        assert!(shown.iter().all(|text| page.contains(text)), "{page}");
        let stored = app.get(&template.replace("/templates", "/v1/templates")).await.expect(200).json();
        assert_eq!((&stored["smsBody"], &stored["category"], &stored["version"]), (&json!("Hi {{1}}"), &json!("MARKETING"), &json!(2)));
        browser.submit(&template, &[("do", "delete")]).await.expect(303);
        browser.get(&template).await.expect(404);

        let wrong = browser.submit("/invitations", &[("clientName", "Acme"), ("expiresInDays", "99")]).await.expect(400);
        assert!(wrong.text.contains("value=\"99\""), "{}", wrong.text);
        viewer.submit("/invitations", &[("clientName", "Acme")]).await.expect(403);
        let made = browser.submit("/invitations", &[("clientName", "Acme"), ("allowedPhoneCountries", "es, mx")]).await.expect(201);
        let link = made.text.split("data-copy=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a link").to_owned();
        assert!(link.contains("/invite/"), "{link}");
        assert!(made.text.contains("aria-label=\"QR code of the link\""), "{}", made.text);
        assert!(made.text.contains(&format!("value=\"{link}\" readonly")), "it can be copied without script: {}", made.text);
        let items = app.get("/v1/invitations").await.expect(200).json()["items"].take();
        assert_eq!(items[0]["allowedPhoneCountries"], json!(["ES", "MX"]));
        let id = items[0]["id"].as_str().expect("an id");
        let again = browser.page(&format!("/invitations?link={id}")).await;
        assert!(again.contains(&format!("value=\"{link}\" readonly")) && again.contains("QR code of the link"), "{again}");
        let seen = viewer.page("/invitations").await;
        assert!(!seen.contains("Withdraw") && !seen.contains("Invite a client"), "{seen}");
        browser.submit(&format!("/invitations/{id}"), &[]).await.expect(303);
        assert!(!browser.page(&format!("/invitations?link={id}")).await.contains(&link), "it was withdrawn");
        assert!(browser.page("/invitations").await.contains("Withdrawn"));

        assert!(browser.page("/suppressions").await.contains("No suppressions"));
        viewer.submit("/suppressions", &[("identifier", "+34600111222")]).await.expect(403);
        browser.submit("/suppressions", &[("identifier", "nonsense")]).await.expect(400);
        browser.submit("/suppressions", &[("identifier", "+34 600 111 222")]).await.expect(303);
        assert!(browser.page("/suppressions?q=%2B34600111222").await.contains("+34600111222"));
        let listed = app.get("/v1/suppressions").await.expect(200).json();
        let id = listed["items"][0]["id"].as_str().expect("an id");
        assert!(browser.page("/suppressions?q=%2B34600111222").await.contains("name=\"back\" value=\"/suppressions?q=%2B34600111222\""));
        let back = [("back", "/suppressions?q=%2B34600111222")];
        assert_eq!(browser.submit(&format!("/suppressions/{id}"), &back).await.expect(303).header("location"), back[0].1);
        assert!(browser.page("/suppressions").await.contains("No suppressions"));

        let offered = browser.page("/numbers?country=us").await;
        let number = offered.split("name=\"number\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a number").to_owned();
        viewer.submit("/numbers", &[("number", &number)]).await.expect(403);
        browser.submit("/numbers", &[("number", &number)]).await.expect(303);
        assert!(browser.page("/numbers").await.contains(&number));
        let held = app.get("/v1/phone-numbers").await.expect(200).json();
        let id = held["items"][0]["id"].as_str().expect("an id");
        browser.submit(&format!("/numbers/{id}"), &[]).await.expect(303);

        assert!(browser.page("/money").await.contains("Nothing is charged without them"));
        app.node
            .core
            .billing()
            .import_prices(None, "channel,country,unit,provider,fee\nsms,ES,segment,0.03,0.005\n", false)
            .await
            .expect("prices");
        let money = browser.page("/money").await;
        assert!(money.contains("$0.03") && money.contains("$0.005") && money.contains("US dollars"), "{money}");
        assert!(money.contains(">always</td>"), "{money}");
    }
}

// holds: pages.project
#[tokio::test]
async fn an_owner_names_and_colours_the_project() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let owner = person(&app, "ow@example.net", Role::Owner).await;
        let operator = person(&app, "op@example.net", Role::Operator).await;
        let path = "/settings/project";
        let save = |colour| [("do", "save"), ("name", "Acme <Shoes>"), ("look", "own"), ("colour", colour)];
        operator.submit(path, &save("#2747c7")).await.expect(403);
        let page = operator.page(path).await;
        assert!(page.contains("None") && !page.contains("name=\"look\""), "{page}");

        assert!(owner.page(path).await.contains("type=\"color\" value=\"#2747c7\""), "a colour to begin with");
        let seen = owner.submit(path, &[("do", "check"), ("name", "Acme"), ("look", "own"), ("colour", "#ffd500")]).await.expect(200);
        assert!(
            seen.text.contains("in dark mode") && seen.text.contains("fill=\"#000000\"") && seen.text.contains("14.8 to 1"),
            "{}",
            seen.text
        );
        let wrong = owner.submit(path, &save("red\"><b>")).await.expect(400);
        assert!(wrong.text.contains("role=\"alert\"") && wrong.text.contains("id=\"colour-fault\""), "{}", wrong.text);
        assert!(wrong.text.contains("Acme &lt;Shoes&gt;") && !wrong.text.contains("<b>\""), "what was entered stays");
        assert!(!owner.page(path).await.contains("Acme"), "nothing was changed");

        owner.submit(path, &save("#ffd500")).await.expect(303);
        let page = owner.page(path).await;
        assert!(page.contains("Acme &lt;Shoes&gt;") && page.contains("value=\"#ffd500\"") && page.contains("in light mode"), "{page}");
        let page = owner.page("/settings/audit?what=project").await;
        assert!(page.contains("<ins><bdi dir=\"auto\">#ffd500</bdi></ins>"), "{page}");
        owner.submit(path, &[("do", "save"), ("name", "Acme"), ("look", "plain"), ("colour", "#ffd500")]).await.expect(303);
        assert!(!owner.page(path).await.contains("in light mode"));
    }
}

// holds: pages.conversations, audit.sends
#[tokio::test]
async fn people_are_answered_where_they_wrote() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let browser = person(&app, "su@example.net", Role::Operator).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        assert!(browser.page("/conversations").await.contains("No inbound messages yet"));
        app.send_message(json!({"to": "+34600111222", "channel": "sms", "text": "Your code is 4711"})).await;
        app.drain().await;
        app.advance(Duration::from_secs(60)).await;
        let body = json!({"channel": "whatsapp", "from": "+34600111222", "text": "Where is <b>it</b>?"});
        let message = app.post("/v1/sandbox/inbound", body).await.expect(202).json()["message"].clone();
        app.drain().await;
        assert!(browser.page("/conversations").await.contains("Where is &lt;b&gt;it&lt;/b&gt;?"));
        for text in ["Hello?", "Anybody?"] {
            app.advance(Duration::from_secs(1)).await;
            let body = json!({"channel": "whatsapp", "from": "+34600111222", "text": text});
            app.post("/v1/sandbox/inbound", body).await.expect(202);
        }
        app.drain().await;
        let list = browser.page("/conversations").await;
        assert!(list.matches("class=\"to clip\"").count() == 1 && list.contains("3 messages") && list.contains("Anybody?"), "{list}");
        assert!(!list.contains("Hello?"), "the newest only: {list}");
        let path = format!("/conversations/{}", message["contactId"].as_str().expect("a contact"));
        assert!(list.contains(&format!("href=\"{path}#newest\"")), "{list}");
        let thread = browser.page(&path).await;
        let newest = thread.split("id=\"newest\"").nth(1).expect("the newest message");
        assert!(newest.contains("Anybody?") && !newest.contains("Hello?"), "{newest}");
        assert!(thread.find("Your code is 4711") < thread.find("Where is &lt;b&gt;"), "the oldest first: {thread}");
        assert!(thread.contains("Reply by WhatsApp") && !thread.contains("Older messages"), "{thread}");
        assert!(!viewer.page(&path).await.contains("Your reply"));

        viewer.submit(&path, &[("text", "On its way")]).await.expect(403);
        browser.submit(&path, &[("text", "")]).await.expect(400);
        for _ in 0..2 {
            browser.submit(&path, &[("text", "On its way"), ("once", "page-1")]).await.expect(303);
        }
        app.drain().await;
        let sent = app.get("/v1/messages?channel=whatsapp&direction=outbound").await.expect(200).json();
        assert_eq!(sent["items"].as_array().map(Vec::len), Some(1), "twice sends one: {sent}");
        let sends = log(&app, app.tenant()).await.into_iter().filter(|entry| entry.kind == "message").collect::<Vec<_>>();
        assert_eq!(
            sends.iter().map(|entry| (entry.verb.as_str(), entry.resource.as_str())).collect::<Vec<_>>(),
            [("send", sent["items"][0]["id"].as_str().expect("an id"))]
        );
        assert_eq!((&sent["items"][0]["text"], &sent["items"][0]["to"]), (&json!("On its way"), &json!("+34600111222")));
        // The page that somebody types in does not follow the person to another channel.
        let way = thread.split("name=\"way\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a way").to_owned();
        app.advance(Duration::from_secs(1)).await;
        app.post("/v1/sandbox/inbound", json!({"channel": "sms", "from": "+34600111222", "text": "By SMS"})).await.expect(202);
        app.drain().await;
        let fields = [("text", "It is <here>"), ("once", "page-2"), ("way", way.as_str())];
        let refused = browser.submit(&path, &fields).await.expect(400).text;
        assert!(refused.contains("the reply would now go by SMS to +34600111222") && refused.contains("It is &lt;here&gt;"), "{refused}");
        assert!(refused.contains("Reply by SMS"), "{refused}");
        browser.submit(&path, &[("text", "It is <here>"), ("once", "page-2"), ("way", value(&refused, "way"))]).await.expect(303);
        browser.get("/conversations/con_01hgw2bbg0e9tatjpp9vyrkcyk").await.expect(404);

        for n in 0..50 {
            app.clock.advance(Duration::from_millis(1));
            app.send_message(json!({"to": "+34600111222", "channel": "sms", "text": format!("Note {n}.")})).await;
        }
        let thread = browser.page(&path).await;
        let older = thread.split(&format!("href=\"{path}?cursor=")).nth(1).and_then(|rest| rest.split('"').next()).expect("older ones");
        let older = browser.page(&format!("{path}?cursor={older}")).await;
        assert!(older.contains("Your code is 4711") && !older.contains("Note 1.") && !older.contains("Your reply"), "{older}");
    }
}

/// A person writes to a sender of their own; returns the sender and the page of the conversation.
async fn conversation_with_desk(app: &TestApp) -> (String, String) {
    let desk = app.post("/v1/senders", json!({"name": "Desk", "phoneNumber": "+34600999888"})).await.expect(201).json();
    let desk = desk["id"].as_str().expect("an id").to_owned();
    let inbound = json!({"channel": "sms", "from": "+34600111222", "to": desk, "text": "Hello?"});
    let message = app.post("/v1/sandbox/inbound", inbound).await.expect(202).json()["message"].clone();
    app.drain().await;
    (desk, format!("/conversations/{}", message["contactId"].as_str().expect("a contact")))
}

// holds: pages.conversations, pages.composer
#[tokio::test]
async fn an_answer_and_a_repetition_have_the_sender_of_the_first_message() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "su@example.net", Role::Operator).await;
        let (desk, path) = conversation_with_desk(&app).await;
        let desk = desk.as_str();
        let newest = async || app.get("/v1/messages?direction=outbound").await.expect(200).json()["items"][0].clone();
        browser.submit(&path, &[("text", "Yes?")]).await.expect(303);
        let reply = newest().await;
        assert_eq!((&reply["senderId"], &reply["text"]), (&json!(desk), &json!("Yes?")));

        let like = format!("/messages/new?like={}", reply["id"].as_str().expect("an id"));
        assert!(browser.page(&like).await.contains(&format!("name=\"sender\" value=\"{desk}\"")));
        let again = [("to", "+34600111222"), ("text", "Again"), ("sender", desk), ("do", "send")];
        app.clock.advance(Duration::from_millis(1));
        browser.submit("/messages/new", &again).await.expect(303);
        let repeated = newest().await;
        assert_eq!((&repeated["senderId"], &repeated["text"]), (&json!(desk), &json!("Again")));
        let mail = json!({"to": "ana@example.org", "subject": "Hello", "text": "Hello", "htmlBody": "<p>Hello</p>"});
        let mail = app.send_message(mail).await;
        app.drain().await;
        assert!(!browser.page(&format!("/messages/{mail}")).await.contains("Send again"), "its HTML would be lost");

        // A deleted sender sends no more: the default one does, but not in a conversation with another.
        assert!(browser.page(&path).await.contains(" from <bdi dir=\"auto\">Desk</bdi>"));
        app.request("DELETE", &format!("/v1/senders/{desk}"), None).await.expect(204);
        app.clock.advance(Duration::from_millis(1));
        browser.submit("/messages/new", &again).await.expect(303);
        assert_ne!(newest().await["senderId"], desk);
    }
}

// holds: pages.conversations
#[tokio::test]
async fn a_reply_goes_by_the_sender_of_the_conversation_or_not_at_all() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "su@example.net", Role::Operator).await;
        let (desk, path) = conversation_with_desk(&app).await;
        app.request("DELETE", &format!("/v1/senders/{desk}"), None).await.expect(204);
        let page = browser.page(&path).await;
        assert!(page.contains("You cannot reply here.") && !page.contains("Reply by"), "{page}");
        let refused = browser.submit(&path, &[("text", "Later")]).await.expect(400).text;
        assert!(refused.contains("The sender of this conversation was deleted") && refused.contains(">Later</pre>"), "{refused}");
        assert_eq!(app.get("/v1/messages?direction=outbound").await.expect(200).json()["items"], json!([]));
    }
}

// holds: pages.conversations
#[tokio::test]
async fn a_conversation_says_that_its_person_has_opted_out() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "su@example.net", Role::Operator).await;
        let inbound = json!({"channel": "sms", "from": "+34600111222", "text": "STOP"});
        let message = app.post("/v1/sandbox/inbound", inbound).await.expect(202).json()["message"].clone();
        app.drain().await;
        let path = format!("/conversations/{}", message["contactId"].as_str().expect("a contact"));
        let page = browser.page(&path).await;
        assert!(page.contains("This person does not want messages here.") && page.contains("Opt out. Since "), "{page}");
        browser.submit(&path, &[("text", "Really?")]).await.expect(303);
        app.drain().await;
        let failed = app.get("/v1/messages?direction=outbound&status=failed").await.expect(200).json()["items"][0].clone();
        let page = browser.page(&path).await;
        let bubble = page.split("bub out lost").nth(1).expect("the reply");
        let why = failed["errorMessage"].as_str().expect("a reason");
        assert!(bubble.to_lowercase().contains(&why.to_lowercase()), "{why}: {bubble}");
    }
}

// holds: pages.contacts
#[tokio::test]
async fn who_has_only_a_chat_id_is_written_to_on_its_channel() {
    let app = TestApp::start().await;
    let browser = person(&app, "su@example.net", Role::Operator).await;
    let body = json!({"channels": [{"channel": "telegram", "identifier": "4711"}]});
    let id = app.post("/v1/contacts", body).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
    let page = browser.page(&format!("/contacts/{id}")).await;
    assert!(page.contains("href=\"/messages/new?to=4711&amp;channel=telegram\""), "{page}");
    let form = browser.page("/messages/new?to=4711&channel=telegram").await;
    assert!(form.contains("<option value=\"telegram\" selected>"), "{form}");
}
