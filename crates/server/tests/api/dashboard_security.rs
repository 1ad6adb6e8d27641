//! Security properties of all pages and forms. Routes are read from the source, so that new ones are covered.

use nuncio_core::projects::UpdateProject;
use nuncio_domain::limits;
use nuncio_domain::user::Role;
use nuncio_testkit::{Backend, Options, TestApp, TestResponse};
use serde_json::json;

use crate::audit::log;
use crate::broadcasts::{act, add, draft, finish};
use crate::dashboard::{Browser, PASSWORD, person};
use crate::dashboard_pages::upload;

// holds: pages.forms
#[tokio::test]
async fn forms_of_another_origin_are_refused_without_fetch_metadata() {
    let app = TestApp::start().await;
    person(&app, "ada@example.net", Role::Owner).await;
    let body = format!("email=ada%40example.net&password={}", PASSWORD.replace(' ', "+"));
    let (host, type_of) = (("host", "Nuncio.local:8080"), ("content-type", "application/x-www-form-urlencoded"));
    for (headers, status) in [
        (&[("origin", "http://evil.example")][..], 403),
        (&[("origin", "null"), host], 403),
        (&[("origin", "http://evil.example:8080"), host], 403),
        (&[("origin", "http://nuncio.local:8080"), host], 303),
        (&[("origin", "https://nuncio.example"), ("host", "10.0.0.1")], 303),
        (&[("origin", "http://evil.example"), ("sec-fetch-site", "same-origin")], 303),
        (&[], 303),
    ] {
        let headers = [&[type_of], headers].concat();
        app.raw("POST", "/sign-in", &headers, body.clone()).await.expect(status);
    }
    // With no-referrer, browsers would name no origin for the forms of these pages, either.
    assert_eq!(app.raw("GET", "/sign-in", &[], Vec::new()).await.header("referrer-policy"), "same-origin");
}

// holds: reads.fair
#[tokio::test]
async fn pages_wait_for_the_read_permits_of_their_environment() {
    let app = TestApp::start().await;
    let browser = person(&app, "vi@example.net", Role::Viewer).await;
    let (reads, tenant) = (app.node.core.reads(), app.tenant());
    let mut held = Vec::new();
    for _ in 0..limits::READS {
        held.push(reads.acquire(tenant).await.expect("a permit"));
    }
    let mut page = std::pin::pin!(browser.page("/messages"));
    let waits = async {
        while reads.requests(tenant) == limits::READS {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        _ = &mut page => panic!("it did not wait"),
        () = waits => {}
    }
    drop(held.pop());
    page.await;
    assert_eq!(reads.requests(tenant), held.len(), "it is given back");
}

/// Returns the dashboard's paths with this method.
fn routes(method: &str) -> Vec<String> {
    let source = include_str!("../../../dashboard/src/lib.rs");
    let lines = source.lines().filter_map(|line| line.trim().strip_prefix(".route(\"")?.split_once('"'));
    let has = |rest: &str| rest.contains(&format!(" {method}(")) || rest.contains(&format!(").{method}("));
    lines.filter(|(_, rest)| has(rest)).map(|(path, _)| path.to_owned()).collect()
}

/// Returns a path for signed-in users, with an existing resource for each id.
async fn filled(app: &TestApp, path: &str) -> String {
    let fixtures = crate::authz::fixtures(app).await;
    let of = |name: &str| fixtures.iter().find(|(known, _)| *known == name).expect("a fixture").1.clone();
    let id = match path.split('/').nth(1).unwrap_or_default() {
        "messages" => of("message"),
        "contacts" | "conversations" => of("contact"),
        "broadcasts" | "reviews" => of("broadcast"),
        "senders" => of("sender"),
        "templates" => of("template"),
        "numbers" => of("number"),
        "invitations" => of("invitation"),
        "suppressions" => of("suppression"),
        "developers" => {
            let mut tx = app.store().read().await.expect("a reader");
            tx.list_keys(app.tenant()).await.expect("keys")[0].id.to_string()
        }
        _ => "nonsense".to_owned(),
    };
    path.replace("{id}", &id).replace("{channel}", "sms").replace("{token}", "nonsense").replace("{contact}", "nonsense")
}

/// Forms without sign-in: a token or password identifies the user.
const FOR_ALL: &[&str] = &["/invite/{token}", "/unsubscribe/{token}", "/begin/{token}", "/sign-in"];
/// Forms about one's own account, which viewers can also submit.
const ABOUT_ONESELF: &[&str] = &["/sign-out", "/world", "/settings/account"];

/// Read-only forms, for all users who may read the page.
const READ_ONLY: &[&str] = &["/broadcasts/{id}/columns"];
/// Forms with a file: path, and a valid file.
const WITH_FILES: &[(&str, &str)] = &[
    ("/contacts", "name,phone\r\nAda,+34600999222\r\n"),
    ("/broadcasts/{id}/recipients", "phone\r\n+34600999222\r\n"),
    ("/broadcasts/{id}/columns", "phone\r\n+34600999222\r\n"),
    ("/money", "channel,country,unit,provider,fee\r\nsms,ES,segment,0.03,0.005\r\n"),
];

/// Fields that would cause a change by each form.
const FIELDS: &[(&str, &str)] = &[
    ("to", "+34600111222"),
    ("text", "hello"),
    ("do", "send"),
    ("name", "x"),
    ("world", "test"),
    ("may", "all"),
    ("channel", "sms"),
    ("identifier", "+34600999111"),
    ("email", "eve@example.net"),
    ("password", PASSWORD),
    ("role", "owner"),
    ("phoneNumber", "+12025550142"),
    ("number", "+12025550142"),
    ("language", "en"),
    ("body", "hello"),
    ("kind", "sim"),
];

// holds: pages.roles, pages.forms
#[tokio::test]
async fn no_form_works_without_its_key_nor_for_a_viewer() {
    let app = TestApp::start().await;
    let owner = person(&app, "ow@example.net", Role::Owner).await;
    let viewer = person(&app, "vi@example.net", Role::Viewer).await;
    let forms = routes("post");
    assert!(forms.len() > 20, "{forms:?}");
    let mut wrong = Vec::new();
    for route in forms.iter().filter(|route| !FOR_ALL.contains(&route.as_str())) {
        let path = filled(&app, route).await;
        let before = log(&app, app.project.live).await.len() + log(&app, app.project.test).await.len();
        let file = WITH_FILES.iter().find(|(known, _)| known == route).map(|(_, file)| *file);
        let foreign = match file {
            Some(file) => upload(&owner, &path, &[], "people.csv", file).await,
            None => owner.send(&path, FIELDS).await,
        };
        if foreign.status != 403 {
            wrong.push(format!("{route} without a key: {}", foreign.status));
        }
        if let Some(file) = file {
            let refused = upload(&viewer, &path, &[("key", &viewer.form_key().await)], "people.csv", file).await;
            if refused.status != 403 && !READ_ONLY.contains(&route.as_str()) {
                wrong.push(format!("{route} with a file by a viewer: {}", refused.status));
            }
        } else if !ABOUT_ONESELF.contains(&route.as_str()) {
            for verb in ["send", "approve", "delete", "cancel", "resolve", "test", "rotate", "submit", ""] {
                let fields: Vec<_> = FIELDS.iter().copied().filter(|(name, _)| *name != "do").chain([("do", verb)]).collect();
                let refused = viewer.submit(&path, &fields).await;
                if refused.status.is_success() || refused.status.is_redirection() || refused.status.is_server_error() {
                    wrong.push(format!("{route} {verb:?} by a viewer: {}", refused.status));
                }
            }
        }
        let after = log(&app, app.project.live).await.len() + log(&app, app.project.test).await.len();
        if after != before {
            wrong.push(format!("{route} changed something"));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    // A user with the permission makes a change, and it is recorded.
    for (route, file) in &WITH_FILES[..2] {
        let path = filled(&app, route).await;
        let made = log(&app, app.project.test).await.len();
        let taken = upload(&owner, &path, &[("key", &owner.form_key().await)], "people.csv", file).await.expect(200);
        let entries = log(&app, app.project.test).await;
        assert_eq!(entries.len(), made + 1, "{route}: {}", taken.text);
    }
}

// holds: pages.hostile, pages.csp
#[tokio::test]
async fn no_page_runs_what_somebody_wrote() {
    let app = TestApp::start().await;
    let owner = person(&app, "ow@example.net", Role::Owner).await;
    let evil = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>";
    app.post("/v1/senders", json!({"name": evil})).await.expect(201);
    app.post("/v1/templates", json!({"name": "x", "language": "en", "body": evil})).await.expect(201);
    app.post("/v1/invitations", json!({"clientName": evil})).await.expect(201);
    app.post("/v1/contacts", json!({"displayName": evil, "channels": [{"channel": "telegram", "identifier": "4711"}]})).await.expect(201);
    app.send_message(json!({"to": "+34600111222", "text": evil, "metadata": {evil: evil}})).await;
    draft(&app, json!({"name": evil, "channel": "sms", "text": evil})).await;
    owner.submit("/developers/keys", &[("name", evil), ("may", "all"), ("world", "test")]).await.expect(201);
    let command = UpdateProject { name: Some(evil.to_owned()), colour: Some(Some("#2747c7".to_owned())) };
    app.node.core.projects().update(&app.project, command).await.expect("a name");
    app.drain().await;
    let pages = routes("get");
    assert!(pages.len() > 25, "{pages:?}");
    let mut shown = 0;
    for route in &pages {
        let path = filled(&app, route).await;
        for query in ["", "?q=%3Cscript%3Ealert(1)%3C/script%3E&who=%22%3E%3Cimg+src%3Dx%3E&to=%22%3E%3Cimg+src%3Dx%3E&cursor=%22%3E%3Cimg"]
        {
            let answer = owner.get(&format!("{path}{query}")).await;
            let policy = answer.header("content-security-policy");
            assert!(policy.starts_with("default-src 'none'") && !policy.contains("unsafe"), "{route}: {policy}");
            assert_eq!(answer.header("x-content-type-options"), "nosniff", "{route}");
            if answer.header("content-type").starts_with("text/csv") {
                assert!(answer.header("content-disposition").starts_with("attachment"), "{route}: a file is saved, not shown");
                continue;
            }
            assert!(!answer.text.contains("<script>alert") && !answer.text.contains("<img"), "{route}{query}: {}", answer.text);
            assert!(!answer.text.contains(" style=\"") && !answer.text.contains(" onclick"), "{route}: something is inline");
            shown += answer.text.matches("&lt;script&gt;alert(1)").count();
        }
    }
    assert!(shown > 10, "hostile names are shown, as text: {shown}");
}

// holds: pages.sign_in
#[tokio::test]
async fn a_session_that_somebody_planted_opens_nothing() {
    let app = TestApp::start().await;
    person(&app, "ada@example.net", Role::Owner).await;
    let planted = "nuncio_session=AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
    let mut victim = Browser { app: &app, cookie: planted.to_owned() };
    victim.sign_in("ada@example.net", PASSWORD).await.expect(303);
    assert_ne!(victim.cookie, planted, "signing in takes over no cookie");
    victim.page("/").await;
    let attacker = Browser { app: &app, cookie: planted.to_owned() };
    assert_eq!(attacker.get("/").await.status, 303);
}

// holds: pages.csv
#[tokio::test]
async fn a_file_of_results_holds_no_formula() {
    let app = TestApp::start().await;
    let owner = person(&app, "ada@example.net", Role::Owner).await;
    let body = json!({"name": "x", "channel": "email", "text": "hello", "emailSubject": "hello"});
    let id = draft(&app, body).await;
    add(&app, &id, ["=cmd@example.org", "+cmd@example.org", "-cmd@example.org", "ok@example.org"].map(str::to_owned)).await;
    act(&app, &id, "send").await.expect(202);
    finish(&app).await;
    let of_page: TestResponse = owner.get(&format!("/broadcasts/{id}/results.csv")).await.expect(200);
    let of_api = app.get(&format!("/v1/broadcasts/{id}/results?format=csv")).await.expect(200);
    assert!(of_page.text.lines().count() == 5, "{}", of_page.text);
    for text in [&of_page.text, &of_api.text] {
        let cells = text.lines().flat_map(|line| line.split(',')).map(|cell| cell.trim_matches('"'));
        let formulas: Vec<_> = cells.filter(|cell| cell.starts_with(['=', '+', '-', '@'])).collect();
        assert!(formulas.is_empty(), "{formulas:?}");
    }
    assert!(of_page.text.contains("'=cmd@example.org"), "{}", of_page.text);
}

// holds: pages.forms
#[tokio::test]
async fn a_person_sends_a_whole_email_and_a_guest_does_not() {
    let html = "é".repeat(100_000);
    let write = [("name", "x"), ("channel", "email"), ("text", "hello"), ("emailSubject", "hello"), ("emailHtmlBody", html.as_str())];
    let app = TestApp::start().await;
    let owner = person(&app, "ada@example.net", Role::Owner).await;
    let made = owner.submit("/broadcasts/new", &write).await.expect(303);
    assert!(owner.page(made.header("location")).await.contains(&format!(">{html}</textarea>")));
    let most = "é".repeat(2 * 1024 * 1024);
    for (path, email) in [("/sign-in", &html), ("/suppressions", &most)] {
        let refused = owner.send(path, &[("email", email), ("password", "x")]).await.expect(413);
        assert!(refused.text.contains("That form is too large"), "{path}: {}", refused.text);
    }
    // A large form counts as memory like any other body.
    let app = TestApp::with(Backend::Sqlite, Options { max_in_flight_bytes: 1024 * 1024, ..Options::default() }).await;
    let owner = person(&app, "ada@example.net", Role::Owner).await;
    owner.submit("/broadcasts/new", &write).await.expect(503);
}
