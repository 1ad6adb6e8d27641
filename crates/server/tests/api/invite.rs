//! Invitation pages, used like a browser without scripts.

use std::time::Duration;

use nuncio_core::projects::UpdateProject;
use nuncio_domain::Colour;
use nuncio_domain::colour::READABLE;
use nuncio_testkit::{Backend, TestApp, TestResponse};
use serde_json::{Value, json};

use super::at_once;
use super::invitations::events;

const PHONE: &str = "+34600111222";

/// A client with an invitation link.
struct Client<'a> {
    app: &'a TestApp,
    invitation: Value,
    path: String,
}

/// Fields of a form in the page.
type Fields = Vec<(String, String)>;

impl<'a> Client<'a> {
    async fn invited(app: &'a TestApp, body: Value) -> Self {
        let invitation = app.post("/v1/invitations", body).await.expect(201).json()["invitation"].clone();
        let url = invitation["url"].as_str().expect("a url");
        let path = url.strip_prefix("https://nuncio.example").expect("our own address").to_owned();
        Self { app, invitation, path }
    }

    async fn open(&self) -> TestResponse {
        self.app.send("GET", &self.path, &[], None).await
    }

    /// Fills in and submits the form of a step on the current page.
    async fn submit(&self, step: &str, filled: &[(&str, &str)]) -> TestResponse {
        let page =
            self.app.send("GET", &format!("{}{}", self.path, if step == "details" { "?edit" } else { "" }), &[], None).await.expect(200);
        let mut fields = form(&page.text, step).unwrap_or_else(|| panic!("no form for {step}: {}", page.text));
        for (name, value) in filled {
            match fields.iter_mut().find(|(known, _)| known == name) {
                Some(field) => field.1 = (*value).to_owned(),
                None => panic!("no field {name} in {fields:?}"),
            }
        }
        // An unchecked box is not submitted.
        fields.retain(|(name, _)| name != "agree" || filled.iter().any(|(filled, _)| filled == name));
        self.post(&fields).await
    }

    async fn post(&self, fields: &[(String, String)]) -> TestResponse {
        self.app.raw("POST", &self.path, &[("content-type", "application/x-www-form-urlencoded")], encode(fields).into_bytes()).await
    }

    /// Submits a form that must be accepted; returns the next page.
    async fn go(&self, step: &str, filled: &[(&str, &str)]) -> TestResponse {
        let taken = self.submit(step, filled).await.expect(303);
        let next = format!("/invite/{}", taken.header("location"));
        assert_eq!(next.split('?').next(), Some(self.path.as_str()));
        self.app.send("GET", &next, &[], None).await.expect(200)
    }

    /// Continues until the code is requested.
    async fn to_code(&self) -> TestResponse {
        self.go("begin", &[]).await;
        self.go("details", &[("name", "Ada Shoes"), ("email", "ada@example.org"), ("phone", "+34 600 111-222")]).await
    }

    /// Returns the code sent last.
    async fn code(&self) -> String {
        let sent = self.app.get("/v1/messages?to=%2B34600111222&limit=1").await.expect(200).json();
        sent["items"][0]["text"].as_str().expect("a text")[..6].to_owned()
    }

    async fn state(&self) -> Value {
        let path = format!("/v1/invitations/{}", self.invitation["id"].as_str().expect("an id"));
        self.app.get(&path).await.expect(200).json()["invitation"].clone()
    }
}

fn encode(fields: &[(String, String)]) -> String {
    let escape = |text: &str| text.bytes().map(|b| format!("%{b:02X}")).collect::<String>();
    fields.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect::<Vec<_>>().join("&")
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let (_, rest) = tag.split_once(&format!(" {name}=\""))?;
    let text = rest.split('"').next()?;
    Some(text.replace("&quot;", "\"").replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
}

/// Returns the inputs of the form for `step`.
fn form(page: &str, step: &str) -> Option<Fields> {
    page.split("<form").skip(1).map(|part| part.split("</form>").next().unwrap_or_default()).find_map(|form| {
        let inputs = form.split("<input").skip(1).map(|part| part.split('>').next().unwrap_or_default());
        let fields: Fields =
            inputs.map(|tag| (attribute(tag, "name").unwrap_or_default(), attribute(tag, "value").unwrap_or_default())).collect();
        fields.contains(&("step".to_owned(), step.to_owned())).then_some(fields)
    })
}

fn title(page: &TestResponse) -> &str {
    page.text.split("<title>").nth(1).and_then(|rest| rest.split('<').next()).unwrap_or_default()
}

/// Returns a wrong code.
fn wrong(code: &str) -> String {
    format!("{:06}", (code.parse::<u32>().expect("digits") + 1) % 1_000_000)
}

async fn senders(app: &TestApp) -> Vec<nuncio_domain::config::Sender> {
    app.store().read().await.expect("a reader").load_tenant(app.tenant()).await.expect("a look").expect("the world").senders
}

// holds: invitations.languages
#[tokio::test]
async fn the_pages_speak_the_browsers_language() {
    let app = TestApp::start().await;
    let phrases = [
        ("es-MX, en;q=0.8", "es", "default le invita", "es tu código para default", "El código no es correcto. Quedan 4 intentos."),
        ("pt-BR", "pt", "default convida você", "é o seu código para default", "O código não está certo. Restam 4 tentativas."),
        (
            "nl, fr-CH;q=0.9, de;q=0.5",
            "fr",
            "default vous invite",
            "est votre code pour default",
            "Ce n’est pas le bon code. Encore 4 essais.",
        ),
        ("en;q=0.1, DE;q=0.2", "de", "default lädt Sie ein", "ist Ihr Code für default", "Das ist nicht der Code. Noch 4 Versuche."),
        ("ja, *;q=0.5", "en", "default invites you", "is your code for default", "The code is wrong. 4 tries left."),
        ("de;q=0, ,;;q=x", "en", "default invites you", "is your code for default", "The code is wrong. 4 tries left."),
    ];
    for (n, (asked, language, invites, code, wrong_code)) in phrases.into_iter().enumerate() {
        let client = Client::invited(&app, json!({})).await;
        let get = async || app.send("GET", &client.path, &[("accept-language", asked)], None).await;
        let page = get().await.expect(200);
        assert!(page.text.contains(&format!("<html lang=\"{language}\">")), "{asked}: {}", page.text);
        assert_eq!(title(&page), invites, "{asked}");
        client.go("begin", &[]).await;
        let phone = format!("+3460011123{n}");
        let headers = [("content-type", "application/x-www-form-urlencoded"), ("accept-language", asked)];
        let mut fields = form(&get().await.expect(200).text, "details").expect("a form");
        let given = [("name", "Ada"), ("email", "ada@example.org"), ("phone", &phone)];
        fields.retain(|(name, _)| given.iter().all(|(own, _)| own != name));
        fields.extend(given.map(|(name, value)| (name.to_owned(), value.to_owned())));
        app.raw("POST", &client.path, &headers, encode(&fields).into_bytes()).await.expect(303);
        let sent = app.get(&format!("/v1/messages?to=%2B{}", &phone[1..])).await.expect(200).json()["items"][0]["text"].clone();
        let sent = sent.as_str().expect("a text");
        assert!(sent.contains(code), "{asked}: {sent}");
        let page = get().await.expect(200);
        let mut fields = form(&page.text, "code").expect("a form");
        fields.iter_mut().filter(|(name, _)| name == "code").for_each(|(_, value)| wrong(&sent[..6]).clone_into(value));
        let page = app.raw("POST", &client.path, &headers, encode(&fields).into_bytes()).await.expect(422);
        assert!(page.text.contains(wrong_code), "{asked}: {}", page.text);
    }
}

/// Sets the colour of the project.
async fn paint(app: &TestApp, colour: Option<&str>) -> nuncio_domain::Result<nuncio_domain::config::Project> {
    let command = UpdateProject { colour: Some(colour.map(str::to_owned)), ..UpdateProject::default() };
    app.node.core.projects().update(&app.project, command).await
}

// holds: invitations.colour
#[tokio::test]
async fn the_pages_are_in_the_projects_colour() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let client = Client::invited(&app, json!({})).await;
        let plain = client.open().await.expect(200);
        assert!(!plain.text.contains("colours/") && !plain.text.contains("class=\"brand\""), "{}", plain.text);
        for (colour, text) in [("#FFD500", "#000000"), ("#2747c7", "#ffffff"), ("#777777", "#000000"), ("#000000", "#ffffff")] {
            paint(&app, Some(colour)).await.expect("a colour");
            let page = client.open().await.expect(200);
            let sheet = format!("assets/colours/{}.css", &colour[1..].to_lowercase());
            assert!(page.text.contains(&format!("<link rel=\"stylesheet\" href=\"../{sheet}\">")), "{}", page.text);
            assert!(page.text.contains("<p class=\"brand\"><bdi>default</bdi></p>"), "{}", page.text);
            assert!(!page.text.contains("style=") && !page.text.contains("<style"), "{}", page.text);
            let policy = page.header("content-security-policy");
            assert!(policy.contains("style-src 'self';") && !policy.contains("unsafe"), "{policy}");
            let served = app.send("GET", &format!("/{sheet}"), &[], None).await.expect(200);
            assert_eq!(served.header("content-type"), "text/css; charset=utf-8");
            assert_eq!(served.header("cache-control"), "public, max-age=2592000");
            let tokens = format!("--brand: {}; --on-brand: {text};", colour.to_lowercase());
            assert!(served.text.contains(&tokens), "{}", served.text);
            for token in ["--brand-edge", "--accent"] {
                readable_on_both_sheets(&served.text, token);
            }
        }
        assert_eq!(app.get("/v1/me").await.expect(200).json()["project"]["colour"], "#000000");
        paint(&app, None).await.expect("no colour");
        assert!(!client.open().await.expect(200).text.contains("colours/"));
        assert_eq!(app.get("/v1/me").await.expect(200).json()["project"]["colour"], json!(null));
    }
}

/// Checks that a token's pair of colours can be read on the page in light and dark mode.
fn readable_on_both_sheets(css: &str, token: &str) {
    let pair = css.split(&format!("{token}: light-dark(")).nth(1).and_then(|rest| rest.split(')').next()).expect("a pair");
    let pair = pair.split(", ").map(|text| Colour::parse(text).expect("a colour"));
    for (colour, sheet) in pair.zip(["#ffffff", "#1b1a17"]) {
        let contrast = colour.contrast(Colour::parse(sheet).expect("a colour"));
        assert!(contrast >= READABLE, "{token} {colour} on {sheet}: {contrast}");
    }
}

// holds: invitations.colour
#[tokio::test]
async fn what_is_no_colour_is_refused() {
    let app = TestApp::start().await;
    for text in ["", "red", "2747c7", "#27c", "#2747c7ff", "#2747c7;}", "#2747c7 ", "url(x)", "</style>", "#27\n47c"] {
        let refused = paint(&app, Some(text)).await.expect_err("not a colour");
        let error = refused.details()["errors"][0].clone();
        assert_eq!((refused.code().status(), &error["path"]), (400, &json!("colour")), "{text}");
        let message = error["message"].as_str().expect("a message");
        assert_eq!(message, format!("is {text:?}; must be # and six hexadecimal digits, such as #2747c7"));
    }
    let mut refused =
        vec!["2747c7".to_owned(), ".css".to_owned(), "2747C7.css".to_owned(), "27c.css".to_owned(), "2747c7.css.css".to_owned()];
    refused.extend(["%232747c7.css", "2747c7%7D.css", "%3Cb%3E.css", "..%2Ftokens.css", "%FF.css", "2747c7%00.css"].map(str::to_owned));
    refused.push(format!("{}.css", "a".repeat(2_000)));
    for file in refused {
        let answer = app.send("GET", &format!("/assets/colours/{file}"), &[], None).await;
        assert!(matches!(answer.status.as_u16(), 400 | 404), "{file}: {}", answer.status);
        assert!(!answer.text.contains("--brand"), "{file}: {}", answer.text);
    }
}

// holds: invitations.page
#[tokio::test]
async fn a_client_goes_all_the_way() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let client = Client::invited(&app, json!({"clientName": "Ada <Shoes>", "allowedPhoneCountries": ["ES"]})).await;
        let page = client.open().await.expect(200);
        assert_eq!(title(&page), "default invites you");
        let seen = client.state().await;
        assert_eq!((&seen["viewedAt"], &seen["status"]), (&json!("2026-01-01T00:00:00.000Z"), &json!("pending")));

        app.clock.advance(Duration::from_secs(1));
        let page = client.go("begin", &[]).await;
        assert_eq!(title(&page), "Your details");
        let fields = form(&page.text, "details").expect("a form");
        assert!(fields.contains(&("name".to_owned(), "Ada <Shoes>".to_owned())), "{fields:?}");
        assert!(page.text.contains("Ada &lt;Shoes&gt;"));
        let begun = client.state().await;
        assert_eq!((&begun["startedAt"], &begun["status"]), (&json!("2026-01-01T00:00:01.000Z"), &json!("in_progress")));
        assert_eq!(begun["viewedAt"], seen["viewedAt"], "once");

        let details = [("name", " Ada Shoes "), ("email", "Ada@EXAMPLE.org"), ("phone", "0034 600 111-222")];
        let page = client.go("details", &details).await;
        assert_eq!(title(&page), "Enter the code");
        assert!(page.text.contains(PHONE));
        let sent = app.get("/v1/messages?to=%2B34600111222").await.expect(200).json();
        assert_eq!(sent["items"].as_array().map(Vec::len), Some(1));
        assert_eq!(sent["items"][0]["senderId"], senders(&app).await[0].id.to_string(), "by the default sender");

        let code = client.code().await;
        let page = client.go("code", &[("code", &format!(" {} {} ", &code[..3], &code[3..]))]).await;
        assert_eq!(title(&page), "Check and agree");
        for shown in ["Ada Shoes", "Ada@example.org", PHONE] {
            assert!(page.text.contains(shown), "{shown}");
        }
        let missing = client.submit("finish", &[]).await.expect(422);
        assert!(missing.text.contains("Tick the box"), "{}", missing.text);
        app.clock.advance(Duration::from_secs(1));
        let page = client.go("finish", &[("agree", "yes")]).await;
        assert_eq!(title(&page), "You are done");

        let done = client.state().await;
        assert_eq!((&done["status"], &done["completedAt"]), (&json!("completed"), &json!("2026-01-01T00:00:02.000Z")));
        assert_eq!((&done["clientName"], &done["clientPhone"]), (&json!("Ada Shoes"), &json!(PHONE)));
        let made = senders(&app).await.into_iter().find(|s| done["senderId"] == s.id.to_string()).expect("the sender");
        assert_eq!((made.name.as_str(), made.phone_number.as_str(), made.is_default), ("Ada Shoes", PHONE, false));
        let text = |text: &str| text.to_owned();
        let (told, last) = events(&app, &client.invitation).await;
        assert_eq!(told, [(1, text("pending"), text("in_progress")), (2, text("in_progress"), text("completed"))]);
        assert_eq!(last["invitation"]["senderId"], done["senderId"]);
        // The new sender works in the sandbox.
        let auth = format!("Bearer {}", app.test_key);
        let headers = [("authorization", auth.as_str()), ("service-sender", done["senderId"].as_str().expect("an id"))];
        app.send("POST", "/v1/messages", &headers, Some(json!({"to": "+34600111333", "text": "x"}))).await.expect(202);
    }
}

// holds: invitations.assigned
#[tokio::test]
async fn a_number_that_was_set_aside_needs_no_code() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let number = app.post("/v1/phone-numbers", json!({"phoneNumber": "+12025550142"})).await.expect(201).json()["phoneNumber"].clone();
        let client = Client::invited(&app, json!({"phoneNumberId": number["id"], "allowedPhoneCountries": ["ES"]})).await;
        let page = client.go("begin", &[]).await;
        assert!(page.text.contains("+12025550142"), "{}", page.text);
        assert!(form(&page.text, "details").expect("a form").iter().all(|(name, _)| name != "phone"));
        let page = client.go("details", &[("name", "Ada"), ("email", "ada@example.org")]).await;
        assert_eq!(title(&page), "Check and agree");
        client.go("finish", &[("agree", "yes")]).await;
        let done = client.state().await;
        let assigned = app.get(&format!("/v1/phone-numbers/{}", number["id"].as_str().expect("an id"))).await.expect(200).json();
        assert_eq!(assigned["phoneNumber"]["senderId"], done["senderId"]);
        let made = senders(&app).await.into_iter().find(|s| done["senderId"] == s.id.to_string()).expect("the sender");
        assert_eq!(made.phone_number, "+12025550142");
        assert_eq!(app.get("/v1/messages").await.expect(200).json()["items"], json!([]), "no code was sent");
    }
}

// holds: invitations.countries
#[tokio::test]
async fn what_is_typed_wrong_comes_back_with_what_is_wrong() {
    let app = TestApp::start().await;
    let client = Client::invited(&app, json!({"allowedPhoneCountries": ["FR"]})).await;
    client.go("begin", &[]).await;
    let typed = [("name", ""), ("email", "\"><script>"), ("phone", "6001112")];
    let page = client.submit("details", &typed).await.expect(422);
    assert_eq!(title(&page), "Error: Your details");
    for told in ["Enter a name.", "Enter an email address", "with its country code", "role=\"alert\"", "aria-invalid=\"true\""] {
        assert!(page.text.contains(told), "{told}");
    }
    let fields = form(&page.text, "details").expect("the form again");
    for (name, value) in typed {
        assert!(fields.contains(&(name.to_owned(), value.to_owned())), "{name} in {fields:?}");
    }
    assert!(!page.text.contains("<script"));
    let page = client.submit("details", &[("name", &"x".repeat(101)), ("email", "a@example.org"), ("phone", PHONE)]).await.expect(422);
    assert!(page.text.contains("at most 100 characters") && page.text.contains("must be from one of these countries: FR"), "{}", page.text);
    // In national format of the only allowed country.
    let page = client.go("details", &[("name", "Ada"), ("email", "a@example.org"), ("phone", "06 12.34-56 (78)")]).await;
    assert_eq!(title(&page), "Enter the code");
    assert_eq!(client.state().await["clientPhone"], "+33612345678");
}

#[tokio::test]
async fn phone_numbers_are_taken_as_people_write_them() {
    let app = TestApp::start().await;
    for (phone, countries, e164) in [
        ("+34 600-111.333", json!([]), "+34600111333"),
        ("0034 (600) 111 444", json!([]), "+34600111444"),
        ("600 111 555", json!(["ES", "US"]), "+34600111555"),
    ] {
        let client = Client::invited(&app, json!({"allowedPhoneCountries": countries})).await;
        client.go("begin", &[]).await;
        let page = client.go("details", &[("name", "Ada"), ("email", "a@example.org"), ("phone", phone)]).await;
        assert_eq!(title(&page), "Enter the code", "{phone}");
        assert_eq!(client.state().await["clientPhone"], e164, "{phone}");
    }
}

#[tokio::test]
async fn an_empty_code_costs_no_try() {
    let app = TestApp::start().await;
    let client = Client::invited(&app, json!({})).await;
    client.to_code().await;
    for empty in ["", "  ", " - "].into_iter().cycle().take(9) {
        let page = client.submit("code", &[("code", empty)]).await.expect(422);
        assert!(page.text.contains("Enter the code.") && !page.text.contains("tries left"), "{}", page.text);
    }
    for slip in ["12ab", "12345", "1234567"].into_iter().cycle().take(9) {
        let page = client.submit("code", &[("code", slip)]).await.expect(422);
        assert!(page.text.contains("The code has six digits.") && !page.text.contains("tries left"), "{}", page.text);
    }
    let page = client.go("code", &[("code", &client.code().await)]).await;
    assert_eq!(title(&page), "Check and agree");
}

#[tokio::test]
async fn a_number_of_another_sender_is_refused() {
    let app = TestApp::start().await;
    app.post("/v1/senders", json!({"name": "desk", "phoneNumber": PHONE})).await.expect(201);
    let client = Client::invited(&app, json!({})).await;
    client.go("begin", &[]).await;
    let page = client.submit("details", &[("name", "Ada"), ("email", "a@example.org"), ("phone", PHONE)]).await.expect(422);
    assert!(page.text.contains("Another sender already has this number."), "{}", page.text);
}

#[tokio::test]
async fn of_two_clients_with_one_number_one_finishes() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let (one, other) = (Client::invited(&app, json!({})).await, Client::invited(&app, json!({})).await);
        for client in [&one, &other] {
            app.clock.advance(Duration::from_secs(1));
            client.to_code().await;
            client.go("code", &[("code", &client.code().await)]).await;
        }
        one.go("finish", &[("agree", "yes")]).await;
        let late = other.submit("finish", &[("agree", "yes")]).await.expect(422);
        assert!(late.text.contains("Another sender already has this number."), "{}", late.text);
        assert_eq!(senders(&app).await.len(), 2);
        assert_eq!(other.state().await["status"], "in_progress");
    }
}

#[tokio::test]
async fn a_wrong_code_counts_and_five_are_too_many() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let client = Client::invited(&app, json!({})).await;
        client.to_code().await;
        let code = client.code().await;
        for left in ["4 tries left", "3 tries left", "2 tries left", "One try left", "the last try"] {
            let page = client.submit("code", &[("code", &wrong(&code))]).await.expect(422);
            assert!(page.text.contains(left), "{left}: {}", page.text);
        }
        let page = client.submit("code", &[("code", &code)]).await.expect(422);
        assert!(page.text.contains("Too many wrong codes"), "the right one is of no use any more: {}", page.text);
        app.clock.advance(Duration::from_secs(1));
        client.go("resend", &[]).await;
        let page = client.go("code", &[("code", &client.code().await)]).await;
        assert_eq!(title(&page), "Check and agree");
    }
}

// holds: contacts.fields
#[tokio::test]
async fn a_code_proves_the_channel_that_carried_it() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        // It has another channel already, which the code does not prove.
        app.send_message(json!({"to": PHONE, "text": "hi", "channel": "voice"})).await;
        app.drain().await;
        let client = Client::invited(&app, json!({})).await;
        client.to_code().await;
        let contact = async || app.get(&format!("/v1/contacts/phone/{PHONE}")).await.expect(200).json();
        assert_eq!(contact().await["verified"], false, "a code that was sent proves nothing yet");
        let sent = app.get("/v1/messages?to=%2B34600111222&limit=1").await.expect(200).json()["items"][0].clone();
        client.go("code", &[("code", &client.code().await)]).await;
        let contact = contact().await;
        assert_eq!(contact["verified"], true, "{contact}");
        let channels = contact["channels"].as_array().expect("channels");
        let proved: Vec<_> = channels.iter().map(|channel| (&channel["channel"], channel["verified"] == true)).collect();
        assert!(proved.contains(&(&json!("voice"), false)) && proved.contains(&(&sent["channel"], true)), "{sent}: {proved:?}");
    }
}

#[tokio::test]
async fn a_code_does_not_bring_back_a_channel_that_was_removed() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        app.send_message(json!({"to": PHONE, "text": "hi", "channel": "voice"})).await;
        let client = Client::invited(&app, json!({})).await;
        client.to_code().await;
        app.drain().await;
        let sent = app.get("/v1/messages?to=%2B34600111222&limit=1").await.expect(200).json()["items"][0]["channel"].clone();
        let contact = async || app.get(&format!("/v1/contacts/phone/{PHONE}")).await.expect(200).json();
        let before = contact().await;
        let carried = before["channels"].as_array().expect("channels").iter().find(|channel| channel["channel"] == sent).expect("it");
        let id = |value: &Value| value["id"].as_str().expect("an id").to_owned();
        app.request("DELETE", &format!("/v1/contacts/{}/channels/{}", id(&before), id(carried)), None).await.expect(204);
        client.go("code", &[("code", &client.code().await)]).await;
        let after = contact().await;
        assert_eq!((&after["verified"], &after["availableChannels"]), (&json!(false), &json!(["voice"])), "{after}");
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_code_and_an_erasure_at_once_do_not_block_each_other() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        for _ in 0..5 {
            app.advance(Duration::from_secs(1)).await;
            let client = Client::invited(&app, json!({})).await;
            let page = client.to_code().await;
            let mut fields = form(&page.text, "code").expect("a form");
            fields.retain(|(name, _)| name != "code");
            fields.push(("code".to_owned(), client.code().await));
            let contact = app.get(&format!("/v1/contacts/phone/{PHONE}")).await.expect(200).json();
            let erase = format!("/v1/contacts/{}", contact["id"].as_str().expect("an id"));
            let (entered, erased) = tokio::join!(client.post(&fields), app.request("DELETE", &erase, None));
            assert_eq!(erased.status.as_u16(), 204, "{}", erased.text);
            assert!(!entered.status.is_server_error(), "{}", entered.text);
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn wrong_codes_entered_at_once_all_count() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let client = Client::invited(&app, json!({})).await;
        let page = client.to_code().await;
        let code = client.code().await;
        let mut fields = form(&page.text, "code").expect("a form");
        fields.retain(|(name, _)| name != "code");
        fields.push(("code".to_owned(), wrong(&code)));
        let tries = (0..8).map(|_| client.post(&fields)).collect::<Vec<_>>();
        let mut refused = 0;
        for answer in at_once(tries).await {
            refused += usize::from(answer.text.contains("Too many wrong codes"));
        }
        assert_eq!(refused, 3, "five count, the rest come too late");
    }
}

#[tokio::test]
async fn a_code_is_good_for_ten_minutes() {
    let app = TestApp::start().await;
    let client = Client::invited(&app, json!({})).await;
    client.to_code().await;
    let code = client.code().await;
    app.clock.advance(Duration::from_secs(600));
    let page = client.submit("code", &[("code", &code)]).await.expect(422);
    assert!(page.text.contains("The code has expired."), "{}", page.text);
    app.node.tick().await.expect("a tick");
    client.go("resend", &[]).await;
    let new = client.code().await;
    assert_ne!(new, code);
    app.clock.advance(Duration::from_millis(599_999));
    client.go("code", &[("code", &new)]).await;
}

#[tokio::test]
async fn three_codes_an_hour_are_sent() {
    let app = TestApp::start().await;
    let client = Client::invited(&app, json!({})).await;
    client.to_code().await;
    assert!(!client.open().await.text.contains("A new code was sent."));
    for left in ["One more can be sent within an hour.", "It was the last one within an hour."] {
        let page = client.go("resend", &[]).await;
        assert!(page.text.contains("A new code was sent.") && page.text.contains(left), "{}", page.text);
    }
    let page = client.submit("resend", &[]).await.expect(422);
    assert!(page.text.contains("Try again in 60 minutes."), "{}", page.text);
    // Another number does not help.
    let page = client.submit("details", &[("phone", "+34600111333")]).await.expect(422);
    assert!(page.text.contains("Too many codes were sent."), "{}", page.text);
    app.advance(Duration::from_secs(3_600)).await;
    client.go("resend", &[]).await;
    let sent = app.get("/v1/messages?to=%2B34600111222").await.expect(200).json();
    assert_eq!(sent["items"].as_array().map(Vec::len), Some(4));
}

#[tokio::test]
async fn a_code_proves_the_number_that_it_was_sent_to() {
    let app = TestApp::start().await;
    let client = Client::invited(&app, json!({})).await;
    client.to_code().await;
    let code = client.code().await;
    // Only the name changes: the code stays valid, and no other is sent.
    client.go("details", &[("name", "Ada Boots")]).await;
    assert_eq!(client.code().await, code);
    let page = client.go("details", &[("phone", "+34600111333")]).await;
    assert_eq!(title(&page), "Enter the code");
    client.submit("code", &[("code", &code)]).await.expect(422);
    app.clock.advance(Duration::from_secs(1));
    let page = client.go("details", &[("phone", PHONE)]).await;
    assert_eq!(title(&page), "Enter the code");
    client.go("code", &[("code", &client.code().await)]).await;
    // Verified: going back and forth needs no code, but another number does.
    let page = client.go("details", &[("name", "Ada Shoes")]).await;
    assert_eq!(title(&page), "Check and agree");
}

#[tokio::test]
async fn codes_are_kept_hashed() {
    let app = TestApp::start().await;
    let client = Client::invited(&app, json!({})).await;
    client.to_code().await;
    let code = client.code().await;
    let id = client.invitation["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let stored = app.store().read().await.expect("a reader").find_invitation(app.tenant(), id).await.expect("a look").expect("it");
    let progress = serde_json::to_string(&stored.progress).expect("JSON");
    assert!(stored.progress.code.is_some() && !progress.contains(&code), "{progress}");
}

#[tokio::test]
async fn a_code_that_cannot_be_sent_is_told() {
    let app = TestApp::start().await;
    let auth = format!("Bearer {}", app.live_key);
    let made = app.send("POST", "/v1/invitations", &[("authorization", &auth)], Some(json!({}))).await.expect(201).json();
    let path = format!("/invite/{}", made["invitation"]["token"].as_str().expect("a token"));
    let client = Client { app: &app, invitation: made["invitation"].clone(), path };
    client.go("begin", &[]).await;
    // What could not be sent does not count, and no page asks for it.
    for _ in 0..4 {
        let page = client.submit("details", &[("name", "Ada"), ("email", "a@example.org"), ("phone", PHONE)]).await.expect(422);
        assert!(page.text.contains("We could not send a code to this number."), "{}", page.text);
        assert!(!page.text.contains("This is a test."));
    }
}

#[tokio::test]
async fn a_code_stays_good_when_the_next_one_cannot_be_sent() {
    let app = TestApp::start().await;
    let client = Client::invited(&app, json!({})).await;
    client.to_code().await;
    let code = client.code().await;
    app.post("/v1/suppressions", json!({"identifier": PHONE})).await.expect(201);
    let page = client.submit("resend", &[]).await.expect(422);
    assert!(page.text.contains("We could not send a code to this number."), "{}", page.text);
    assert_eq!(title(&client.go("code", &[("code", &code)]).await), "Check and agree");
}

#[tokio::test]
async fn forms_of_other_pages_are_refused() {
    let app = TestApp::start().await;
    let client = Client::invited(&app, json!({})).await;
    let other = Client::invited(&app, json!({})).await;
    let field = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let own = form(&client.open().await.text, "begin").expect("a form");
    let foreign = form(&other.open().await.text, "begin").expect("a form");
    for fields in [vec![field("step", "begin")], vec![field("step", "begin"), field("key", "x")], foreign] {
        client.post(&fields).await.expect(403);
    }
    let body = encode(&own).into_bytes();
    let form_type = ("content-type", "application/x-www-form-urlencoded");
    for headers in [vec![form_type, ("sec-fetch-site", "cross-site")], vec![("content-type", "text/plain")], vec![]] {
        app.raw("POST", &client.path, &headers, body.clone()).await.expect(403);
    }
    let mut large = own.clone();
    large.push(field("x", &"x".repeat(20_000)));
    client.post(&large).await.expect(413);
    assert_eq!(client.state().await["status"], "pending");
    app.raw("POST", &client.path, &[form_type, ("sec-fetch-site", "same-origin")], body).await.expect(303);
    assert_eq!(client.state().await["status"], "in_progress");
}

#[tokio::test(flavor = "multi_thread")]
async fn finishing_twice_makes_one_sender() {
    for backend in Backend::all() {
        let app = TestApp::on(backend).await;
        let client = Client::invited(&app, json!({})).await;
        client.to_code().await;
        let page = client.go("code", &[("code", &client.code().await)]).await;
        let mut fields = form(&page.text, "finish").expect("a form");
        fields.retain(|(name, _)| name != "agree");
        fields.push(("agree".to_owned(), "yes".to_owned()));
        let answers = at_once((0..5).map(|_| client.post(&fields)).collect()).await;
        assert!(answers.iter().all(|answer| answer.status.as_u16() == 303), "{answers:?}");
        client.post(&fields).await.expect(303);
        assert_eq!(title(&client.open().await.expect(200)), "You are done");
        assert_eq!(senders(&app).await.len(), 2, "the default one and the new one");
        assert_eq!(events(&app, &client.invitation).await.0.len(), 2);
    }
}

#[tokio::test]
async fn steps_cannot_be_left_out() {
    let app = TestApp::start().await;
    let client = Client::invited(&app, json!({})).await;
    let key = form(&client.open().await.text, "begin").expect("a form").into_iter().find(|(name, _)| name == "key").expect("a key");
    for step in ["details", "code", "resend", "finish", "nonsense"] {
        let fields = [key.clone(), ("step".to_owned(), step.to_owned()), ("agree".to_owned(), "yes".to_owned())];
        client.post(&fields).await.expect(303);
        assert_eq!(client.state().await["status"], "pending", "{step}");
    }
    client.go("begin", &[]).await;
    client.post(&[key, ("step".to_owned(), "finish".to_owned()), ("agree".to_owned(), "yes".to_owned())]).await.expect(303);
    assert_eq!(title(&client.open().await), "Your details");
    assert_eq!(senders(&app).await.len(), 1);
}

#[tokio::test]
async fn dead_links_say_why() {
    let app = TestApp::start().await;
    let cancelled = Client::invited(&app, json!({})).await;
    app.post(&format!("/v1/invitations/{}/cancel", cancelled.invitation["id"].as_str().expect("an id")), json!({})).await.expect(200);
    assert_eq!(title(&cancelled.open().await.expect(200)), "This invitation was withdrawn");
    let expired = Client::invited(&app, json!({"expiresInDays": 1})).await;
    let fields = form(&expired.open().await.text, "begin").expect("a form");
    app.clock.advance(Duration::from_secs(86_400));
    expired.post(&fields).await.expect(303);
    assert_eq!(title(&expired.open().await.expect(200)), "This invitation has expired");
    assert_eq!((&cancelled.state().await["viewedAt"], &expired.state().await["startedAt"]), (&Value::Null, &Value::Null));
    for path in
        ["/invite/x", "/invite/%00", "/invite/%FF", &format!("/invite/{}", "A".repeat(43)), &format!("/invite/{}", "A".repeat(5_000))]
    {
        let unknown = app.send("GET", path, &[], None).await.expect(404);
        assert_eq!(title(&unknown), "There is no such invitation");
        app.raw("POST", path, &[("content-type", "application/x-www-form-urlencoded")], Vec::new()).await.expect(404);
    }
}

#[tokio::test]
async fn a_number_that_went_away_stops_the_client_politely() {
    let app = TestApp::start().await;
    let number = app.post("/v1/phone-numbers", json!({"phoneNumber": "+12025550142"})).await.expect(201).json()["phoneNumber"].clone();
    let client = Client::invited(&app, json!({"phoneNumberId": number["id"]})).await;
    client.go("begin", &[]).await;
    client.go("details", &[("name", "Ada"), ("email", "ada@example.org")]).await;
    let mut tx = app.store().begin().await.expect("a transaction");
    let id = number["id"].as_str().and_then(|id| id.parse().ok()).expect("an id");
    let mut stored = tx.lock_number(app.tenant(), id).await.expect("a look").expect("the number");
    stored.renew(false, app.node.core.ids().clock.now());
    tx.update_number(app.tenant(), &stored).await.expect("written");
    tx.commit().await.expect("committed");
    let page = client.submit("finish", &[("agree", "yes")]).await.expect(422);
    assert!(page.text.contains("is not available at the moment"), "{}", page.text);
    assert_eq!(senders(&app).await.len(), 1, "nothing is left of the try");
}

#[tokio::test]
async fn every_page_is_strict() {
    let app = TestApp::start().await;
    let client = Client::invited(&app, json!({})).await;
    let page = client.open().await.expect(200);
    let redirect = client.submit("begin", &[]).await.expect(303);
    let unknown = app.send("GET", "/invite/x", &[], None).await.expect(404);
    let refused = client.post(&[]).await.expect(403);
    for answer in [&page, &redirect, &unknown, &refused] {
        let policy = answer.header("content-security-policy");
        assert!(policy.starts_with("default-src 'none'; style-src 'self';") && policy.contains("frame-ancestors 'none'"), "{policy}");
        assert!(!policy.contains("unsafe"));
        assert!(!answer.header("x-request-id").is_empty());
        for (name, value) in [
            ("x-frame-options", "DENY"),
            ("referrer-policy", "same-origin"),
            ("cache-control", "no-store"),
            ("x-content-type-options", "nosniff"),
            ("x-robots-tag", "noindex, nofollow"),
        ] {
            assert_eq!(answer.header(name), value, "{name}");
        }
    }
    assert_eq!(page.header("content-type"), "text/html; charset=utf-8");
    assert!(page.text.starts_with("<!DOCTYPE html><html lang=\"en\">"));
    for inline in ["<script", "<style", "style=", "onclick", "http://", "https://"] {
        assert!(!page.text.contains(inline), "{inline}");
    }
    let style = app.send("GET", "/assets/invite.css", &[], None).await.expect(200);
    assert_eq!(style.header("content-type"), "text/css; charset=utf-8");
    app.send("PUT", &client.path, &[], None).await.expect(405);
}

#[tokio::test]
async fn looking_without_opening_is_not_viewing() {
    let app = TestApp::start().await;
    let client = Client::invited(&app, json!({})).await;
    app.send("HEAD", &client.path, &[], None).await.expect(200);
    assert_eq!(client.state().await["viewedAt"], Value::Null);
}

#[tokio::test]
async fn guessing_links_is_slowed_down() {
    let app = TestApp::start().await;
    let client = Client::invited(&app, json!({})).await;
    let mut statuses = Vec::new();
    for n in 0..61 {
        statuses.push(app.send("GET", &format!("/invite/{n}"), &[], None).await.status.as_u16());
    }
    assert_eq!((statuses[0], statuses[59], statuses[60]), (404, 404, 429));
    let refused = app.send("GET", "/invite/x", &[], None).await.expect(429);
    assert_eq!((refused.header("retry-after"), refused.header("cache-control")), ("1", "no-store"));
    client.open().await.expect(200); // a valid link never needs a guess
    app.clock.advance(Duration::from_secs(1));
    app.send("GET", "/invite/x", &[], None).await.expect(404);
}

#[tokio::test]
async fn a_node_that_must_not_accept_loses_no_step() {
    let app = TestApp::start().await;
    let client = Client::invited(&app, json!({})).await;
    client.go("begin", &[]).await;
    app.clock.advance(Duration::from_secs(6)); // without a heartbeat, no message is accepted
    let page = client.submit("details", &[("name", "Ada"), ("email", "a@example.org"), ("phone", PHONE)]).await.expect(503);
    assert_eq!(title(&page), "That did not work");
    app.node.tick().await.expect("a tick");
    assert_eq!(title(&client.open().await), "Enter the code");
    client.go("resend", &[]).await;
    client.go("code", &[("code", &client.code().await)]).await;
}
