//! Addresses as people type them: in the search of contacts and messages, and to merge two contacts.

use nuncio_domain::user::Role;
use nuncio_testkit::TestApp;
use serde_json::json;

use crate::dashboard::person;

fn encoded(text: &str) -> String {
    url::form_urlencoded::byte_serialize(text.as_bytes()).collect()
}

// holds: pages.contacts, pages.messages
#[tokio::test]
async fn an_address_is_found_as_people_type_it() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "su@example.net", Role::Viewer).await;
        for (to, name) in
            [("+34600111222", "Ana"), ("ana.ruiz@example.org", "Ruiz"), ("Ben.Cole@example.org", "Ben"), ("+12125550123", "Cy")]
        {
            let (subject, query) = match to.contains('@') {
                true => (json!("x"), format!("email={to}")),
                false => (json!(null), format!("phoneNumber={}", encoded(to))),
            };
            app.send_message(json!({"to": to, "subject": subject, "text": "hello"})).await;
            let found = app.get(&format!("/v1/contacts?{query}")).await.expect(200).json()["items"][0]["id"].clone();
            let path = format!("/v1/contacts/{}", found.as_str().expect("a contact"));
            app.request("PATCH", &path, Some(json!({"displayName": name}))).await.expect(200);
        }
        for (typed, to, name) in [
            ("600 111 222", "+34600111222", "Ana"),
            ("600-11-12-22", "+34600111222", "Ana"),
            ("34600111222", "+34600111222", "Ana"),
            ("0034 600 111 222", "+34600111222", "Ana"),
            ("(212) 555-0123", "+12125550123", "Cy"),
            ("ANA.RUIZ@EXAMPLE.ORG", "ana.ruiz@example.org", "Ruiz"),
            ("Ana.ruiz@example.org", "ana.ruiz@example.org", "Ruiz"),
            ("ben.cole@example.org", "Ben.Cole@example.org", "Ben"),
        ] {
            let page = browser.page(&format!("/contacts?q={}", encoded(typed))).await;
            let shown = page.matches("href=\"/contacts/con_").count();
            assert!(page.contains(&format!(">{name}</bdi>")) && shown == 1, "{typed}: {page}");
            let page = browser.page(&format!("/messages?q={}", encoded(typed))).await;
            let shown = page.matches("href=\"/messages/msg_").count();
            assert!(page.contains(&format!(">{to}</bdi>")) && shown == 1, "{typed}: {page}");
        }
        let nobody = browser.page("/contacts?q=20+7946+0018").await;
        assert!(nobody.contains("A number might need its country code"), "{nobody}");

        // A number that two contacts have in their countries.
        for number in ["+34612345678", "+33612345678"] {
            app.send_message(json!({"to": number, "text": "hello"})).await;
        }
        for path in ["/contacts?q=612345678", "/messages?q=612345678"] {
            let page = browser.page(path).await;
            assert!(page.contains("It is ambiguous: +33612345678 or +34612345678; write it with its country code."), "{path}: {page}");
        }
    }
}

// holds: pages.contacts
#[tokio::test]
async fn any_two_contacts_can_be_merged() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        let new = async |channel: &str, identifier: &str| {
            let body = json!({"channels": [{"channel": channel, "identifier": identifier}]});
            app.post("/v1/contacts", body).await.expect(201).json()["id"].as_str().expect("an id").to_owned()
        };
        let (ana, mail, chat) =
            (new("sms", "+34600111222").await, new("email", "Ana@example.org").await, new("telegram", "345678901").await);
        let path = format!("/contacts/{ana}");
        assert!(!viewer.page(&path).await.contains("name=\"other\""));
        for (typed, other) in [("ana@example.org", &mail), ("345678901", &chat)] {
            let led = browser.submit(&path, &[("do", "compare"), ("other", typed)]).await.expect(303).header("location").to_owned();
            assert_eq!(led, format!("{path}/merge?with={other}"));
            assert!(browser.page(&led).await.contains("Are they one person?"));
            browser.submit(&format!("{path}/merge"), &[("with", other)]).await.expect(303);
        }
        let merged = app.get(&format!("/v1{path}")).await.expect(200).json();
        assert_eq!(merged["availableChannels"].as_array().map(Vec::len), Some(3), "{merged}");
        for (typed, why) in
            [("600 111 222", "belongs to this contact"), ("bea@example.org", "belongs to no contact"), ("", "belongs to no contact")]
        {
            let page = browser.submit(&path, &[("do", "compare"), ("other", typed)]).await.expect(400).text;
            assert!(page.contains(&format!("id=\"other-fault\">{why}")) && page.contains(&format!("value=\"{typed}\"")), "{typed}: {page}");
        }
    }
}
