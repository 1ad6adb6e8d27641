//! Pages for signed-in users: first sign-in, roles, and escaping of hostile content.

use std::time::Duration;

use nuncio_core::users::NewUser;
use nuncio_domain::Redacted;
use nuncio_domain::user::Role;
use nuncio_testkit::{TestApp, TestResponse};
use serde_json::json;

use crate::broadcasts::{act, add, draft, finish};

const FORM: (&str, &str) = ("content-type", "application/x-www-form-urlencoded");
pub(crate) const PASSWORD: &str = "correct horse battery";

/// A browser: keeps its cookie and submits form keys.
pub(crate) struct Browser<'a> {
    pub(crate) app: &'a TestApp,
    pub(crate) cookie: String,
}

impl<'a> Browser<'a> {
    const fn new(app: &'a TestApp) -> Self {
        Self { app, cookie: String::new() }
    }

    pub(crate) async fn get(&self, path: &str) -> TestResponse {
        self.app.raw("GET", path, &[("cookie", &self.cookie)], Vec::new()).await
    }

    pub(crate) async fn page(&self, path: &str) -> String {
        let answer = self.get(path).await.expect(200);
        assert!(answer.header("content-security-policy").starts_with("default-src 'none'"), "{path}");
        assert!(!answer.header("content-security-policy").contains("unsafe"), "{path}");
        assert_eq!((answer.text.matches("<h1>").count(), answer.text.matches("<title>").count()), (1, 1), "{path}");
        assert!(!answer.text.contains("style=\"") && !answer.text.contains("onclick"), "{path}");
        answer.text
    }

    /// Sends a form unchanged.
    pub(crate) async fn send(&self, path: &str, fields: &[(&str, &str)]) -> TestResponse {
        let mut body = url::form_urlencoded::Serializer::new(String::new());
        body.extend_pairs(fields);
        self.app.raw("POST", path, &[("cookie", &self.cookie), FORM], body.finish().into_bytes()).await
    }

    /// Returns the form key of this session.
    pub(crate) async fn form_key(&self) -> String {
        let page = self.get("/settings/people").await.text;
        page.split("name=\"key\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a form key").to_owned()
    }

    /// Submits a form of a page.
    pub(crate) async fn submit(&self, path: &str, fields: &[(&str, &str)]) -> TestResponse {
        let key = self.form_key().await;
        let fields: Vec<_> = fields.iter().copied().chain([("key", key.as_str())]).collect();
        self.send(path, &fields).await
    }

    pub(crate) async fn sign_in(&mut self, email: &str, password: &str) -> TestResponse {
        let answer = self.send("/sign-in", &[("email", email), ("password", password), ("to", "/messages")]).await;
        self.remember(&answer);
        answer
    }

    pub(crate) fn remember(&mut self, answer: &TestResponse) {
        let line = answer.header("set-cookie");
        if !line.is_empty() {
            assert!(line.contains("HttpOnly") && line.contains("SameSite=Lax"), "{line}");
            self.cookie = line.split(';').next().unwrap_or_default().to_owned();
        }
    }
}

/// Creates a user with this role and signs in.
pub(crate) async fn person<'a>(app: &'a TestApp, email: &str, role: Role) -> Browser<'a> {
    let new = NewUser { email: email.to_owned(), password: Redacted::new(PASSWORD.to_owned()) };
    app.node.core.users().add(&app.project, role, &new).await.expect("a person");
    let mut browser = Browser::new(app);
    browser.sign_in(email, PASSWORD).await.expect(303);
    browser
}

// holds: pages.begin, pages.sign_in
#[tokio::test]
async fn the_first_person_begins_by_a_link_that_works_once() {
    for app in TestApp::on_each().await {
        let mut browser = Browser::new(&app);
        assert_eq!(browser.get("/").await.expect(303).header("location"), "/sign-in?to=%2F");
        assert!(browser.page("/sign-in").await.contains("This server has no owner yet"));
        assert_ne!(app.get("/v1/me").await.expect(200).json()["project"]["name"], "Acme");
        let token = app.node.core.users().first_run_token().await.expect("a look").expect("nobody yet");
        let link = format!("/begin/{token}");
        browser.get("/begin/nonsense").await.expect(404);
        assert!(browser.page(&link).await.contains("Become the owner"));
        let short = browser.send(&link, &[("project", "Acme"), ("email", "Ada@example.net"), ("password", "short")]).await.expect(400);
        assert!(short.text.contains("has 5 characters; must have at least 12") && short.text.contains("value=\"Acme\""), "{}", short.text);
        assert!(!short.text.contains("value=\"short\""), "a password is not shown");
        let all = browser.send(&link, &[("project", ""), ("email", "ada"), ("password", "short")]).await.expect(400).text;
        for field in ["project", "email", "password"] {
            assert!(all.contains(&format!("id=\"{field}-fault\"")) && all.contains(&format!("href=\"#{field}\"")), "{field}: {all}");
        }
        let begun = browser.send(&link, &[("project", "Acme"), ("email", "ada@example.net"), ("password", PASSWORD)]).await.expect(303);
        browser.remember(&begun);
        assert!(browser.page("/").await.contains("Getting started"));
        app.send_message(json!({"to": "+34600111222", "text": "hello"})).await;
        let home = browser.page("/").await;
        assert!(home.contains("Getting started") && home.contains("of 4 done"), "the other steps stay: {home}");
        assert_eq!(app.get("/v1/me").await.expect(200).json()["project"]["name"], "Acme");
        assert!(browser.page("/settings/people").await.contains("ada@example.net"));
        browser.get(&link).await.expect(404);
        let again = browser.send(&link, &[("project", "x"), ("email", "eve@example.net"), ("password", PASSWORD)]).await;
        assert_eq!(again.status, 404);
        assert!(app.holders(PASSWORD).await.is_empty(), "only a hash is kept");
        // Signing out also ends the session for copies of the cookie.
        browser.submit("/sign-out", &[]).await.expect(303);
        assert_eq!(browser.get("/").await.expect(303).header("location"), "/sign-in?to=%2F");
        browser.sign_in("ada@example.net", "wrong password!").await.expect(401);
        assert_eq!(browser.sign_in("ADA@example.net", PASSWORD).await.expect(303).header("location"), "/messages");
        browser.page("/messages").await;
    }
}

// holds: pages.sign_in
#[tokio::test]
async fn guessing_passwords_is_slowed_down() {
    let app = TestApp::start().await;
    let mut browser = person(&app, "ada@example.net", Role::Owner).await;
    let before = browser.cookie.clone();
    let mut answers = Vec::new();
    for _ in 0..12 {
        answers.push(browser.sign_in("ada@example.net", "wrong password!").await.status.as_u16());
    }
    assert_eq!((answers[0], answers[11]), (401, 429), "{answers:?}");
    assert_eq!(browser.cookie, before, "a wrong password brings no session");
    app.clock.advance(Duration::from_secs(60));
    browser.sign_in("ada@example.net", PASSWORD).await.expect(303);
    assert_ne!(browser.cookie, before, "signing in begins a session of its own");
    for away in ["//evil.example", "/\t/evil.example", "/\\evil.example", "/l/x", "/x/../l/x", "/%2e/l/x"] {
        let sent = browser.send("/sign-in", &[("email", "ada@example.net"), ("password", PASSWORD), ("to", away)]).await;
        assert_eq!(sent.expect(303).header("location"), "/", "{away:?}");
    }
    assert!(browser.page("/sign-in?to=%2F%09%2Fevil.example").await.contains("name=\"to\" value=\"/\""), "browsers skip a tab");
    app.clock.advance(Duration::from_secs(14 * 86_400));
    assert_eq!(browser.get("/").await.status, 303, "a session ends after two weeks");
}

// holds: pages.account
#[tokio::test]
async fn browsers_are_signed_out_and_a_password_is_changed() {
    for app in TestApp::on_each().await {
        let mut here = person(&app, "ada@example.net", Role::Viewer).await;
        app.clock.advance(Duration::from_secs(60));
        let mut elsewhere = Browser::new(&app);
        elsewhere.sign_in("ada@example.net", PASSWORD).await.expect(303);
        let page = here.page("/settings/account").await;
        let id =
            page.split("name=\"browser\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("another browser").to_owned();
        assert_eq!(page.matches("name=\"browser\"").count(), 1, "not this browser");
        let stranger = person(&app, "bo@example.net", Role::Owner).await;
        stranger.submit("/settings/account", &[("browser", &id)]).await.expect(404);
        elsewhere.page("/settings/account").await;
        here.submit("/settings/account", &[("browser", &id)]).await.expect(303);
        assert_eq!(elsewhere.get("/").await.status, 303, "it is signed out");

        let new = "another long password";
        let wrong = here.submit("/settings/account", &[("current", "wrong password!"), ("password", new)]).await.expect(400);
        assert!(wrong.text.contains("is not your password"), "{}", wrong.text);
        let short = here.submit("/settings/account", &[("current", PASSWORD), ("password", "short")]).await.expect(400);
        assert!(short.text.contains("must have at least 12"), "{}", short.text);
        let before = here.cookie.clone();
        let changed = here.submit("/settings/account", &[("current", PASSWORD), ("password", new)]).await.expect(303);
        assert_eq!(here.get("/").await.status, 303, "the old session has ended");
        here.remember(&changed);
        assert_ne!(here.cookie, before);
        here.page("/").await;
        elsewhere.sign_in("ada@example.net", PASSWORD).await.expect(401);
        for _ in 0..12 {
            here.submit("/settings/account", &[("current", "wrong password!"), ("password", new)]).await;
        }
        let slowed = here.submit("/settings/account", &[("current", new), ("password", PASSWORD)]).await.expect(429);
        assert!(slowed.text.contains("Too many attempts; wait a minute, then try again."), "{}", slowed.text);
    }
}

// holds: pages.forms
#[tokio::test]
async fn forms_of_other_pages_are_refused() {
    let app = TestApp::start().await;
    let browser = person(&app, "ada@example.net", Role::Owner).await;
    let other = person(&app, "bo@example.net", Role::Owner).await;
    let fields = [("name", "x"), ("may", "all")];
    browser.send("/developers/keys", &fields).await.expect(403);
    browser.send("/developers/keys", &[("name", "x"), ("key", "nonsense")]).await.expect(403);
    let page = other.page("/settings/people").await;
    let stolen = page.split("name=\"key\" value=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a key");
    browser.send("/developers/keys", &[("name", "x"), ("key", stolen)]).await.expect(403);
    let headers = [("cookie", browser.cookie.as_str()), FORM, ("sec-fetch-site", "cross-site")];
    app.raw("POST", "/world", &headers, b"world=live".to_vec()).await.expect(403);
    assert!(app.node.core.keys().list(app.project.test).await.expect("keys").iter().all(|key| key.name != "x"));
}

// holds: pages.roles
#[tokio::test]
async fn a_viewer_changes_nothing() {
    let app = TestApp::start().await;
    let viewer = person(&app, "vi@example.net", Role::Viewer).await;
    let operator = person(&app, "op@example.net", Role::Operator).await;
    let owner = person(&app, "ow@example.net", Role::Owner).await;
    let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Hello from Acme"})).await;
    add(&app, &id, ["+34600111222".to_owned()]).await;
    let message = [("to", "+34600111222"), ("text", "hello"), ("do", "send")];
    viewer.submit("/messages/new", &message).await.expect(403);
    for page in ["/messages/new", "/broadcasts/new", "/senders/new", "/templates/new"] {
        viewer.get(page).await.expect(403);
        operator.get(page).await.expect(200);
    }
    assert!(!viewer.page("/").await.contains("New message") && !viewer.page("/broadcasts").await.contains("New broadcast"));
    viewer.submit(&format!("/broadcasts/{id}"), &[("do", "send")]).await.expect(403);
    viewer.submit(&format!("/reviews/{id}"), &[("do", "approve")]).await.expect(403);
    for browser in [&viewer, &operator] {
        browser.submit("/developers/keys", &[("name", "mine"), ("may", "all"), ("world", "live")]).await.expect(403);
        browser.submit("/settings/people", &[("email", "eve@example.net"), ("password", PASSWORD), ("role", "owner")]).await.expect(403);
    }
    let refused = viewer.submit("/settings/people", &[("remove", "op@example.net")]).await.expect(403).text;
    assert!(refused.contains("Only owners can manage people. You are a viewer of this project."), "{refused}");
    let refused = viewer.submit("/messages/new", &message).await.expect(403).text;
    assert!(refused.contains("Only operators and owners can do this. You are a viewer of this project."), "{refused}");
    let sent = operator.submit("/messages/new", &message).await.expect(303);
    assert!(sent.header("location").starts_with("/messages/msg_"));
    let made = owner.submit("/developers/keys", &[("name", "mine"), ("may", "send"), ("world", "test")]).await.expect(201);
    let key = made.text.split("svc_test_").nth(1).map(|rest| format!("svc_test_{}", rest.split(['<', '"']).next().unwrap_or_default()));
    let auth = format!("Bearer {}", key.expect("the key"));
    let send = json!({"to": "+34600111222", "text": "x"});
    app.send("POST", "/v1/messages", &[("authorization", &auth)], Some(send)).await.expect(202);
    app.send("GET", "/v1/contacts", &[("authorization", &auth)], None).await.expect(403);
    assert!(!owner.page("/developers/keys").await.contains(auth.trim_start_matches("Bearer ")), "it is shown once");
    owner.submit("/developers/keys", &[("name", "guest"), ("may", "send"), ("world", "live"), ("expires", "30")]).await.expect(201);
    let page = owner.page("/developers/keys").await;
    let expiry = app.node.core.ids().clock.now().plus(Duration::from_secs(30 * 86_400)).to_string();
    for part in [expiry.as_str(), "title=\"messages:send\">Send messages<", "Last used"] {
        assert!(page.contains(part), "no {part}: {page}");
    }
    for wrong in [[("name", "x"), ("expires", "31")], [("name", ""), ("expires", "90")]] {
        let refused = owner.submit("/developers/keys", &wrong).await.expect(400).text;
        assert_eq!(refused.contains("value=\"90\" selected"), wrong[1].1 == "90", "{refused}");
    }
    owner.submit("/settings/people", &[("remove", "vi@example.net")]).await.expect(303);
    assert_eq!(viewer.get("/").await.status, 303, "who is removed is signed out");
}

// holds: pages.messages
#[tokio::test]
async fn the_life_of_a_message_is_seen() {
    for app in TestApp::on_each().await {
        let browser = person(&app, "ada@example.net", Role::Owner).await;
        let checked = browser.submit("/messages/new", &[("to", "+12125550100"), ("text", "hello"), ("do", "check")]).await.expect(200);
        assert!(checked.text.contains("It can be sent.") && checked.text.contains(">hello</textarea>"), "{}", checked.text);
        let wrong = browser.submit("/messages/new", &[("to", "12"), ("text", "hello"), ("do", "send")]).await.expect(400);
        assert!(wrong.text.contains("role=\"alert\"") && wrong.text.contains("value=\"12\""), "{}", wrong.text);
        let sent = browser.submit("/messages/new", &[("to", "+12125550003"), ("text", "hello"), ("do", "send")]).await.expect(303);
        let path = sent.header("location").to_owned();
        app.drain().await;
        app.advance(Duration::from_secs(60)).await;
        let page = browser.page(&path).await;
        for words in ["Attempt 1 failed", "Attempt 2 accepted", "Delivered", "Accepted", "Stored before"] {
            assert!(page.contains(words), "{words}: {page}");
        }
        let home = browser.page("/").await;
        assert!(home.contains("<th scope=\"row\">SMS, US</th>") && home.contains("Show as a table"), "{home}");
        assert!(home.contains("<dt>Sent</dt><dd>1</dd>") && home.contains("<dt>Delivered</dt><dd>100.0 %</dd>"), "{home}");
        let list = browser.page("/messages").await;
        assert!(list.contains("+12125550003") && list.contains("Delivered"), "{list}");
        assert!(browser.page("/messages?status=failed").await.contains("Nothing matches"));
        let id = path.trim_start_matches("/messages/");
        assert_eq!(browser.get(&format!("/messages?q={id}")).await.expect(303).header("location"), path);
        // The same id does not exist in the other environment.
        browser.submit("/world", &[("world", "live"), ("to", "/")]).await.expect(303);
        browser.get(&path).await.expect(404);
        assert!(browser.page("/messages").await.contains("No messages yet"));
    }
}

// holds: pages.hostile
#[tokio::test]
async fn hostile_words_stay_words() {
    let app = TestApp::start().await;
    let browser = person(&app, "ada@example.net", Role::Owner).await;
    let evil = "<script>alert(1)</script>\"><img src=x onerror=alert(2)>";
    let id = app.send_message(json!({"to": "+34600111222", "text": evil, "metadata": {evil: evil}})).await;
    app.post("/v1/contacts", json!({"displayName": evil, "channels": [{"channel": "sms", "identifier": "+34600111333"}]}))
        .await
        .expect(201);
    let broadcast = draft(&app, json!({"name": evil, "channel": "sms", "text": evil})).await;
    app.post("/v1/invitations", json!({"clientName": evil})).await.expect(201);
    app.post("/v1/templates", json!({"name": "x", "language": "en", "body": evil})).await.expect(201);
    add(&app, &broadcast, ["+34600111222".to_owned()]).await;
    app.drain().await;
    let contacts = app.get("/v1/contacts").await.expect(200).json();
    let contact = contacts["items"][0]["id"].as_str().expect("a contact").to_owned();
    let pages = [
        "/".to_owned(),
        "/messages".to_owned(),
        format!("/messages/{id}"),
        "/contacts".to_owned(),
        format!("/contacts/{contact}"),
        "/broadcasts".to_owned(),
        format!("/broadcasts/{broadcast}"),
        "/senders".to_owned(),
        "/reviews".to_owned(),
        "/templates".to_owned(),
        "/invitations".to_owned(),
        "/suppressions".to_owned(),
        format!("/messages?q={}", url::form_urlencoded::byte_serialize(evil.as_bytes()).collect::<String>()),
    ];
    for path in pages {
        let answer = browser.get(&path).await;
        assert!(answer.status.as_u16() < 500, "{path} {}", answer.status);
        assert!(!answer.text.contains("<script>alert") && !answer.text.contains("<img"), "{path}: {}", answer.text);
    }
}

// holds: pages.broadcasts
#[tokio::test]
async fn a_broadcast_is_sent_and_watched() {
    let app = TestApp::start().await;
    let browser = person(&app, "ada@example.net", Role::Owner).await;
    let id = draft(&app, json!({"name": "Spring", "channel": "sms", "text": "Hello from Acme"})).await;
    add(&app, &id, ["+34600111222", "+12125550001"].map(str::to_owned)).await;
    let path = format!("/broadcasts/{id}");
    assert!(browser.page(&path).await.contains("Review and send to 2"));
    browser.submit(&path, &[("do", "send")]).await.expect(303);
    finish(&app).await;
    let page = browser.page(&path).await;
    assert!(page.contains("100 % done") && page.contains("1 delivered, 0 in flight, 1 failed"), "{page}");
    browser.submit(&path, &[("do", "pause")]).await.expect(303);
    assert!(browser.page("/broadcasts").await.contains("Completed"));
    // A broadcast rejected by the review waits for a person here.
    let text = "URGENT: your bank account is locked. Verify your password now at http://bit.ly/3xYz or lose access!!!";
    let bad = draft(&app, json!({"name": "Bank", "channel": "sms", "text": text})).await;
    add(&app, &bad, ["+34600111222".to_owned()]).await;
    act(&app, &bad, "send").await.expect(202);
    app.drain().await;
    assert!(browser.page("/").await.contains("was rejected by the review"));
    browser.submit(&format!("/broadcasts/{bad}"), &[("do", "escalate")]).await.expect(303);
    let waiting = browser.page("/reviews").await;
    assert!(waiting.contains("1 broadcast to decide") && waiting.contains("<mark>"), "{waiting}");
    assert!(waiting.contains("Reject this broadcast?"), "it asks first: {waiting}");
    let unexplained = browser.submit(&format!("/reviews/{bad}"), &[("do", "refuse"), ("why", " ")]).await.expect(400);
    assert!(unexplained.text.contains("the author needs the reason"), "{}", unexplained.text);
    browser.submit(&format!("/reviews/{bad}"), &[("do", "refuse"), ("why", "no")]).await.expect(303);
    assert!(browser.page("/reviews").await.contains("Nothing to decide"));
}
