//! The form of a template: all that a template has, and little for a mere text.

use nuncio_domain::user::Role;
use nuncio_testkit::TestApp;
use serde_json::json;

use crate::dashboard::person;

/// Returns the fields of a form, filled in as on the page.
fn fields(page: &str) -> Vec<(String, String)> {
    let plain = |text: &str| text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&");
    let form = page.split("<form class=\"panel\"").nth(1).and_then(|rest| rest.split("</form>").next()).expect("a form");
    let mut found = Vec::new();
    for tag in form.split('<').skip(1) {
        let value = |name: &str| tag.split(&format!(" {name}=\"")).nth(1).and_then(|rest| rest.split('"').next()).map(plain);
        if tag.starts_with("input") {
            found.push((value("name").expect("a name"), value("value").unwrap_or_default()));
        } else if tag.starts_with("textarea") {
            found.push((value("name").expect("a name"), plain(tag.split_once('>').expect("content").1)));
        } else if tag.starts_with("select") {
            found.push((value("name").expect("a name"), String::new()));
        } else if tag.starts_with("option") && (tag.contains(" selected") || found.last().is_some_and(|(_, chosen)| chosen.is_empty())) {
            found.last_mut().expect("a select").1 = value("value").expect("a value");
        }
    }
    found.retain(|(name, _)| name != "key");
    found
}

// holds: pages.set_up
#[tokio::test]
async fn a_template_is_written_and_changed_with_all_that_it_has() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "op@example.net", Role::Operator).await;
        let page = browser.page("/templates/new").await;
        assert!(page.contains("<details>") && !page.contains("<details open"), "a mere text needs none of it: {page}");
        let mut new = fields(&page);
        let mut set = |name: &str, value: &str| new.iter_mut().find(|(known, _)| known == name).expect(name).1 = value.to_owned();
        for (name, value) in [
            ("name", "order"),
            ("language", "en"),
            ("body", "Hello {{1}}"),
            ("telegramBody", "Hi {{1}}"),
            ("instagramBody", "Hey {{1}}"),
            ("headerType", "text"),
            ("headerContent", "News & more"),
            ("footer", "Acme"),
            ("button_1_type", "url"),
            ("button_1_label", "Track"),
            ("button_1_address_or_number", "https://example.com/{{1}}"),
            ("button_1_example", "https://example.com/7"),
            ("button_3_type", "phone"),
            ("button_3_label", "Call"),
            ("button_3_address_or_number", "+34 600 111 222"),
        ] {
            set(name, value);
        }
        let sent: Vec<_> = new.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
        let path = browser.submit("/templates/new", &sent).await.expect(303).header("location").to_owned();
        let stored = async || app.get(&format!("/v1{path}")).await.expect(200).json();
        let made = stored().await;
        let buttons = json!([
            {"type": "url", "text": "Track", "url": "https://example.com/{{1}}", "example": "https://example.com/7"},
            {"type": "phone", "text": "Call", "phoneNumber": "+34600111222"},
        ]);
        assert_eq!((&made["buttons"], &made["headerType"], &made["headerContent"]), (&buttons, &json!("text"), &json!("News & more")));
        assert_eq!((&made["telegramBody"], &made["instagramBody"], made.get("smsBody")), (&json!("Hi {{1}}"), &json!("Hey {{1}}"), None));

        // Saving the form as it is changes nothing but the version.
        let page = browser.page(&path).await;
        assert_eq!(page.matches("<details open").count(), 2, "{page}");
        let same = fields(&page);
        let sent: Vec<_> = same.iter().map(|(name, value)| (name.as_str(), value.as_str())).chain([("do", "save")]).collect();
        browser.submit(&path, &sent).await.expect(303);
        let mut now = stored().await;
        for changed in ["version", "updatedAt"] {
            now[changed] = made[changed].clone();
        }
        assert_eq!(now, made);

        // Emptied fields are removed.
        let bare = [("do", "save"), ("body", "Hello {{1}}"), ("category", "UTILITY"), ("headerType", "")];
        browser.submit(&path, &bare).await.expect(303);
        let now = stored().await;
        for removed in ["telegramBody", "instagramBody", "headerType", "headerContent", "footer"] {
            assert_eq!(now.get(removed), None, "{removed}: {now}");
        }
        assert_eq!(now["buttons"].as_array().map_or(0, Vec::len), 0, "{now}");
    }
}

// holds: pages.set_up
#[tokio::test]
async fn what_is_wrong_with_a_button_stands_at_its_field() {
    let app = TestApp::start().await;
    let browser = person(&app, "op@example.net", Role::Operator).await;
    let text = [("name", "order"), ("language", "en"), ("body", "Hello")];
    for (fields, at, why) in [
        (
            &[("button_2_type", "url"), ("button_2_label", "Track"), ("button_2_address_or_number", "nonsense")][..],
            "button_2_address_or_number",
            "Button 2 address or number must be an http or https URL",
        ),
        (&[("button_3_type", "phone"), ("button_3_label", "Call")], "button_3_address_or_number", "Button 3 address or number is required"),
        (
            &[("button_2_type", "url"), ("button_2_address_or_number", "https://example.com")],
            "button_2_label",
            "Button 2 label has 0 characters",
        ),
        (&[("headerContent", "News")], "headerType", "Header is required with the header content"),
    ] {
        let page = browser.submit("/templates/new", &[&text[..], fields].concat()).await.expect(400).text;
        let part = page.split("<details open>").nth(1).expect("an open part");
        assert!(part.contains(&format!("id=\"{at}-fault\"")), "{at}: {page}");
        assert!(page.contains(&format!("<a href=\"#{at}\">{why}")), "{at}: {page}");
        let field = page.split(&format!(" id=\"{at}\"")).nth(1).and_then(|rest| rest.split('>').next()).expect("the field");
        assert!(field.contains(" autofocus") && page.matches(" autofocus").count() == 1, "browsers scroll to it: {page}");
    }
}
