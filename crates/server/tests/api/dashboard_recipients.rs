//! Pages of broadcasts: recipients from contacts, removing a recipient, results by reason, and settings that delay a broadcast.

use std::time::Duration;

use nuncio_domain::Timestamp;
use nuncio_domain::user::Role;
use nuncio_testkit::TestApp;
use serde_json::{Value, json};

use crate::broadcasts::{act, add, contacts, counts, draft, finish, get};
use crate::dashboard::person;
use crate::dashboard_pages::upload;

async fn contact(app: &TestApp, number: &str, name: &str, metadata: Value) {
    let channels = json!([{"channel": "sms", "identifier": number}]);
    let contact = json!({"displayName": name, "channels": channels, "metadata": metadata});
    app.post("/v1/contacts", contact).await.expect(201);
}

async fn suppress(app: &TestApp, number: &str) {
    app.post("/v1/suppressions", json!({"identifier": number})).await.expect(201);
}

/// Returns the part of a page between a text and the end of the panel.
fn panel<'a>(page: &'a str, title: &str) -> &'a str {
    let rest = page.split(&format!("<h2>{title}</h2>")).nth(1).unwrap_or_else(|| panic!("no {title} in {page}"));
    rest.split("</section>").next().unwrap_or_default()
}

// holds: pages.compose
#[tokio::test]
async fn contacts_fill_the_variables_of_a_template_or_say_what_they_lack() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "ma@example.net", Role::Operator).await;
        contact(&app, "+34600111222", "Ana", json!({"stadt": "Bonn"})).await;
        contact(&app, "+34600111223", "Bo", json!({})).await;
        contact(&app, "+34600111224", "Cy", json!({})).await;
        let template = json!({"name": "opening", "language": "en", "body": "Hello {{name}}, we open in {{stadt}}."});
        let template = app.post("/v1/templates", template).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
        let write = [("name", "Spring"), ("channel", "sms"), ("text", ""), ("template", template.as_str()), ("once", "page-1")];
        let path = browser.submit("/broadcasts/new", &write).await.expect(303).header("location").to_owned();
        let page = browser.page(&path).await;
        for offered in ["name=\"variables.name\" type=\"text\" value=\"name\"", "value=\"metadata.stadt\""] {
            assert!(page.contains(offered), "{offered}: {page}");
        }

        let none = browser.submit(&path, &[("do", "select"), ("variables.name", "name"), ("variables.stadt", " ")]).await.expect(200).text;
        assert!(none.contains("0 contacts added.") && none.contains("class=\"note warn\" role=\"status\""), "{none}");
        assert!(none.contains("Matched: 3.") && none.contains("Invalid: 3.") && !none.contains("class=\"note ok\""), "{none}");
        let reasons = panel(&none, "Not added");
        assert!(reasons.contains("stadt: is required by the template") && reasons.contains(">3</td>"), "{reasons}");
        assert_eq!(reasons.matches("is required").count(), 1, "one line for each reason: {reasons}");

        let wrong = [("do", "select"), ("variables.name", "name"), ("variables.stadt", "city")];
        let wrong = browser.submit(&path, &wrong).await.expect(400).text;
        assert!(wrong.contains("id=\"variables.stadt-fault\"") && wrong.contains("value=\"city\""), "{wrong}");
        assert!(wrong.contains(">{{stadt}} &quot;city&quot; is not a field of a contact"), "{wrong}");

        let fields = [("do", "select"), ("variables.name", "name"), ("variables.stadt", "metadata.stadt")];
        let some = browser.submit(&path, &fields).await.expect(200).text;
        assert!(some.contains("1 contact added.") && some.contains("Invalid: 2."), "{some}");
        assert!(some.contains("Hello Ana, we open in Bonn."), "{some}");
        let id = path.trim_start_matches("/broadcasts/");
        let values = contacts(&app, id, "").await[0]["variables"]["templateVariables"].clone();
        assert_eq!(values, json!({"name": "Ana", "stadt": "Bonn"}));
    }
}

// holds: pages.compose
#[tokio::test]
async fn numbered_variables_are_not_guessed_and_a_deleted_template_has_none() {
    let app = TestApp::start().await;
    let browser = person(&app, "ma@example.net", Role::Operator).await;
    let template = json!({"name": "opening", "language": "en", "body": "Hello {{1}}"});
    let template = app.post("/v1/templates", template).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
    let write = [("name", "Spring"), ("channel", "sms"), ("text", ""), ("template", template.as_str()), ("once", "page-1")];
    let path = browser.submit("/broadcasts/new", &write).await.expect(303).header("location").to_owned();
    assert!(browser.page(&path).await.contains("name=\"variables.1\" type=\"text\" value=\"\""));
    app.request("DELETE", &format!("/v1/templates/{template}"), None).await.expect(204);
    assert!(!browser.page(&path).await.contains("variables.1"));
}

// holds: pages.compose
#[tokio::test]
async fn suppressed_recipients_count_for_the_whole_broadcast() {
    let app = TestApp::start().await;
    let browser = person(&app, "ma@example.net", Role::Operator).await;
    let path = format!("/broadcasts/{}", crate::broadcasts::text(&app).await);
    let key = browser.form_key().await;
    suppress(&app, "+34600313001").await;
    let said = "Suppressed among all recipients of this broadcast: 1. They are skipped when it is sent.";
    for (number, told) in [("+34600313002", false), ("+34600313001", true), ("+34600313003", true)] {
        let file = format!("phone\n{number}\n");
        let added = upload(&browser, &format!("{path}/recipients"), &[("key", &key)], "a.csv", &file).await.expect(200).text;
        assert!(added.contains("1 of 1 rows added") && added.contains(said) == told, "{number}: {added}");
    }
}

// holds: pages.details
#[tokio::test]
async fn all_recipients_are_removed_from_a_draft() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        let id = draft(&app, json!({"name": "News", "channel": "sms", "text": "Hello from Acme"})).await;
        let (path, list) = (format!("/broadcasts/{id}"), format!("/broadcasts/{id}/recipients"));
        let remove = format!("{path}/no-recipients");
        assert!(!browser.page(&list).await.contains("Remove all recipients"), "it has none");
        add(&app, &id, (0..600).map(|n| format!("+34600111{n:03}"))).await;
        assert!(browser.page(&list).await.contains("Remove 600 recipients?") && !viewer.page(&list).await.contains("Remove"));
        viewer.submit(&remove, &[]).await.expect(403);
        assert_eq!(browser.submit(&remove, &[]).await.expect(303).header("location"), path);
        assert_eq!((get(&app, &id).await["totalContacts"].clone(), contacts(&app, &id, "").await.len()), (json!(0), 0));
        assert!(browser.page("/settings/audit?what=broadcast").await.contains("all recipients removed"));
        add(&app, &id, ["+34600111000".to_owned()]).await;
        act(&app, &id, "send").await.expect(202);
        assert_eq!(browser.submit(&remove, &[]).await.expect(303).header("location"), format!("{path}?late=yes"));
    }
}

// holds: pages.details
#[tokio::test]
async fn a_recipient_is_removed_from_a_draft() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        let id = draft(&app, json!({"name": "News", "channel": "sms", "text": "Hello {{name}}"})).await;
        let path = format!("/broadcasts/{id}/recipients");
        let two = json!({"contacts": [
            {"recipient": "+34600111222", "templateVariables": {"name": "Ana"}},
            {"recipient": "+34600111223"},
        ]});
        app.post(&format!("/v1/broadcasts/{id}/contacts"), two).await.expect(201);
        browser.submit(&format!("/broadcasts/{id}"), &[("do", "send")]).await.expect(400);

        let bad = contacts(&app, &id, "").await.into_iter().find(|one| one["recipient"] == "+34600111223").expect("the recipient");
        let remove = format!("{path}/{}", bad["id"].as_str().expect("an id"));
        let found = browser.page(&format!("{path}?q=%2B34600111223")).await;
        assert!(found.contains(&format!("action=\"{remove}\"")) && found.contains("Remove<span class=\"sr\"> +34600111223"), "{found}");
        assert!(!viewer.page(&path).await.contains("Remove"));
        viewer.submit(&remove, &[]).await.expect(403);
        browser.send(&remove, &[]).await.expect(403);
        assert!(found.contains(&format!("name=\"back\" value=\"{path}?q=%2B34600111223\"")), "{found}");
        let back = format!("{path}?cursor=x");
        assert_eq!(browser.submit(&remove, &[("back", &back)]).await.expect(303).header("location"), back);
        for other in ["https://evil.example", "/money", &format!("{path}?/../../l/x")] {
            let location = browser.submit(&remove, &[("back", other)]).await.expect(303).header("location").to_owned();
            assert!(location.starts_with(&path), "{other}: {location}");
        }
        assert_eq!(browser.submit(&remove, &[]).await.expect(303).header("location"), path, "a second click");
        assert!(!browser.page(&path).await.contains("+34600111223"));
        assert_eq!(browser.get(&remove).await.expect(303).header("location"), format!("/broadcasts/{id}"));

        browser.submit(&format!("/broadcasts/{id}"), &[("do", "send")]).await.expect(303);
        let left = contacts(&app, &id, "").await[0]["id"].as_str().expect("an id").to_owned();
        let late = browser.submit(&format!("{path}/{left}"), &[]).await.expect(303);
        assert_eq!(late.header("location"), format!("/broadcasts/{id}?late=yes"));
        assert!(!browser.page(&path).await.contains("Remove"), "it is no longer a draft");
    }
}

// holds: pages.broadcasts
#[tokio::test]
async fn reasons_of_failed_and_skipped_recipients_add_up_and_lead_to_them() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let id = crate::broadcasts::text(&app).await;
        suppress(&app, "+34600313001").await;
        // Number 1 of the sandbox fails.
        add(&app, &id, ["+34600111222", "+12125550001", "+34600313001"].map(str::to_owned)).await;
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        assert_eq!(counts(&get(&app, &id).await), [3, 0, 0, 1, 1, 1]);
        let page = browser.page(&format!("/broadcasts/{id}")).await;
        let reasons = panel(&page, "Failed and skipped");
        let row = |reason: &str| reasons.split("<tr>").find(|row| row.contains(reason)).unwrap_or_else(|| panic!("no {reason}: {reasons}"));
        let skipped = row("recipient suppressed");
        assert!(skipped.contains("recipients?status=skipped") && skipped.contains("Skipped") && skipped.contains(">1</td>"), "{skipped}");
        assert_eq!(reasons.matches("recipients?status=failed").count(), 1, "{reasons}");
        let failed = reasons.split("<tr>").find(|row| row.contains("status=failed")).expect("a failed one");
        assert!(failed.contains("Failed</span>") && failed.contains(">1</td>"), "{failed}");
        let listed = browser.page(&format!("/broadcasts/{id}/recipients?status=skipped")).await;
        assert!(listed.contains("+34600313001") && !listed.contains("+12125550001"), "{listed}");
    }
}

// holds: pages.broadcasts
#[tokio::test]
async fn a_cancelled_broadcast_counts_those_who_had_no_message() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let hours = json!({"from": "00:00", "to": "08:00"});
    let id = draft(&app, json!({"name": "x", "channel": "email", "text": "Hello", "emailSubject": "News", "quietHours": hours})).await;
    add(&app, &id, ["ada@example.org", "bo@example.org"].map(str::to_owned)).await;
    act(&app, &id, "send").await.expect(202);
    app.drain().await;
    act(&app, &id, "cancel").await.expect(200);
    app.drain().await;
    let page = browser.page(&format!("/broadcasts/{id}")).await;
    let reasons = panel(&page, "Failed and skipped");
    assert!(reasons.contains("broadcast cancelled") && reasons.contains(">2</td>") && !reasons.contains("status=failed"), "{reasons}");
}

/// The test clock starts at midnight UTC.
// holds: pages.broadcasts
#[tokio::test]
async fn a_broadcast_in_quiet_hours_says_until_when_it_waits() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let hours = json!({"from": "21:00", "to": "08:00", "timeZone": "Europe/Madrid"});
        let halt = json!({"failurePercent": 10, "complaintPercent": 0.5});
        let body = json!({"name": "x", "channel": "email", "text": "Hello", "emailSubject": "News", "quietHours": hours, "haltOn": halt});
        let id = draft(&app, body).await;
        add(&app, &id, ["ada@example.org", "bo@example.org"].map(str::to_owned)).await;
        let path = format!("/broadcasts/{id}");
        let page = browser.page(&path).await;
        let rules = panel(&page, "Sending rules");
        assert!(rules.contains("21:00 to 08:00, recipient's local time. Without a phone number: Europe/Madrid."), "{rules}");
        assert!(rules.contains("more than 10 % fail, more than 0.5 % complain") && !rules.contains("Canary"), "{rules}");
        assert!(!page.contains("Waits for the end"), "a draft waits for nothing: {page}");
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        let page = browser.page(&path).await;
        assert!(
            page.contains(
                "Waits for the end of quiet hours. The next recipients get no message before <time datetime=\"2026-01-01T07:00:00.000Z\""
            ),
            "{page}"
        );
        assert!(page.contains("<h2>Sending rules</h2>"), "{page}");
        // Recipients that are awake get their messages.
        let id = draft(&app, json!({"name": "y", "channel": "sms", "text": "Hello", "quietHours": hours})).await;
        add(&app, &id, ["+12135550100".to_owned()]).await;
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        assert!(!browser.page(&format!("/broadcasts/{id}")).await.contains("Waits for the end"));
        let plain = crate::broadcasts::text(&app).await;
        assert!(!browser.page(&format!("/broadcasts/{plain}")).await.contains("Sending rules"));
    }
}

// holds: pages.broadcasts
#[tokio::test]
async fn a_broadcast_that_was_found_late_says_so() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let hours = json!({"from": "00:00", "to": "08:00"});
    let id = draft(&app, json!({"name": "x", "channel": "email", "text": "Hello", "emailSubject": "News", "quietHours": hours})).await;
    add(&app, &id, ["ada@example.org".to_owned()]).await;
    act(&app, &id, "send").await.expect(202);
    app.drain().await;
    app.advance(Duration::from_secs(7_200)).await;
    let path = format!("/broadcasts/{id}");
    let page = browser.page(&path).await;
    assert!(page.contains("It was paused automatically.") && page.contains("It was more than an hour late"), "{page}");
    assert!(!page.contains("Waits for the end"), "{page}");
    browser.submit(&path, &[("do", "resume")]).await.expect(303);
    assert!(!browser.page(&path).await.contains("more than an hour late"));
}

// holds: pages.broadcasts
#[tokio::test]
async fn a_broadcast_with_a_canary_says_when_the_others_follow() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let canary = json!({"percent": 50, "waitSeconds": 5_400});
        let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Hello from Acme", "canary": canary})).await;
        add(&app, &id, crate::broadcasts::phones(4)).await;
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        let page = browser.page(&format!("/broadcasts/{id}")).await;
        let sent_at = get(&app, &id).await["canarySentAt"].take();
        let sent_at = Timestamp::parse(sent_at.as_str().expect("a time")).expect("a time");
        let until = sent_at.plus(Duration::from_secs(5_400)).to_string();
        let said = format!("The first 50 % have their message. The others follow at <time datetime=\"{until}\"");
        assert!(page.contains(&said), "{said}: {page}");
        assert!(panel(&page, "Sending rules").contains("50 % first, the others 90 minutes later"), "{page}");
        for _ in 0..3 {
            app.advance(Duration::from_secs(1_800)).await;
        }
        finish(&app).await;
        let page = browser.page(&format!("/broadcasts/{id}")).await;
        assert!(page.contains("100 % done") && !page.contains("The others follow"), "{page}");
    }
}
