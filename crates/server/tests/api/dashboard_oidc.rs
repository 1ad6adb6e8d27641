//! Sign-in through a certified third-party OpenID provider: npm `oidc-provider` (`peers/oidc_provider.mjs`).

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use nuncio::config::OidcConfig;
use nuncio_core::users::NewUser;
use nuncio_domain::Redacted;
use nuncio_domain::user::Role;
use nuncio_testkit::{Backend, Options, TestApp, TestResponse};
use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdout, Command};
use url::Url;

use crate::audit::log;
use crate::dashboard::PASSWORD;

const HERE: &str = "https://nuncio.example";

/// A running provider. Stops when dropped.
struct Provider {
    issuer: String,
    _process: Child,
    /// It ends when its output is closed.
    _output: Lines<BufReader<ChildStdout>>,
}

impl Provider {
    async fn start() -> Self {
        let root = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../..");
        let modules = std::env::var_os("NUNCIO_PEER_NODE").map_or_else(|| root.join(".peers/node"), PathBuf::from);
        let mut command = Command::new("node");
        command.arg(root.join("peers/oidc_provider.mjs")).arg(modules).arg(format!("{HERE}/sign-in/oidc/back"));
        let mut process =
            command.stdout(Stdio::piped()).stderr(Stdio::null()).kill_on_drop(true).spawn().expect("node; see scripts/deps.sh");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        loop {
            let line = lines.next_line().await.expect("a line").expect("the provider has begun");
            if let Ok(Value::Object(begun)) = serde_json::from_str(&line) {
                return Self { issuer: begun["issuer"].as_str().expect("an issuer").to_owned(), _process: process, _output: lines };
            }
        }
    }

    async fn app(&self, backend: Backend, role: &str) -> TestApp {
        let config = OidcConfig {
            issuer: self.issuer.clone(),
            name: "Acme ID".to_owned(),
            client_id: "nuncio".to_owned(),
            client_secret: "a secret of the provider".to_owned(),
            allowed_domains: "Acme.example, other.example".to_owned(),
            allowed_emails: "guest@example.net".to_owned(),
            role: role.to_owned(),
        };
        let oidc = config.provider().expect("good settings");
        TestApp::with(backend, Options { oidc, ..Options::default() }).await
    }
}

/// A browser with cookies for both sites, which submits the provider's forms.
struct Browser<'a> {
    app: &'a TestApp,
    http: reqwest::Client,
    cookies: BTreeMap<String, BTreeMap<String, String>>,
}

impl<'a> Browser<'a> {
    fn new(app: &'a TestApp) -> Self {
        nuncio_net::init_tls();
        let http = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).build().expect("a client");
        Self { app, http, cookies: BTreeMap::new() }
    }

    fn cookie(&self, site: &str) -> String {
        let pairs = self.cookies.get(site).into_iter().flatten().map(|(name, value)| format!("{name}={value}"));
        pairs.collect::<Vec<_>>().join("; ")
    }

    fn remember<'h>(&mut self, site: &str, lines: impl Iterator<Item = &'h str>) {
        let kept = self.cookies.entry(site.to_owned()).or_default();
        for (name, value) in lines.filter_map(|line| line.split(';').next()?.split_once('=')) {
            kept.insert(name.to_owned(), value.to_owned());
        }
    }

    async fn here(&mut self, target: &str) -> TestResponse {
        let answer = self.app.raw("GET", target, &[("cookie", &self.cookie(HERE))], Vec::new()).await;
        let lines: Vec<String> =
            answer.headers.get_all("set-cookie").iter().filter_map(|line| line.to_str().ok().map(str::to_owned)).collect();
        self.remember(HERE, lines.iter().map(String::as_str));
        answer
    }

    /// Sends a request to the provider; returns status, redirect and page.
    async fn there(&mut self, url: &Url, form: Option<String>) -> (u16, Option<String>, String) {
        let mut request = if form.is_some() { self.http.post(url.clone()) } else { self.http.get(url.clone()) };
        if let Some(form) = form {
            request = request.header("content-type", "application/x-www-form-urlencoded").body(form);
        }
        let answer = request.header("cookie", self.cookie("there")).send().await.expect("the provider answers");
        let lines: Vec<String> =
            answer.headers().get_all("set-cookie").iter().filter_map(|line| line.to_str().ok().map(str::to_owned)).collect();
        self.remember("there", lines.iter().map(String::as_str));
        let location = answer.headers().get("location").and_then(|value| value.to_str().ok()).map(str::to_owned);
        (answer.status().as_u16(), location, answer.text().await.expect("a page"))
    }

    /// Follows the sign-in button through the provider's pages as `name`; returns the URL it redirects back to.
    async fn sign_in_at_provider(&mut self, name: &str) -> Url {
        let begun = self.here("/sign-in/oidc?to=%2Fmessages").await.expect(303);
        let mut url: Url = begun.header("location").parse().expect("a URL");
        for part in ["code_challenge_method=S256", "state=", "nonce=", "response_type=code", "scope=openid+email"] {
            assert!(url.as_str().contains(part), "{part}: {url}");
        }
        let mut form = None;
        for _ in 0..20 {
            let (status, location, page) = self.there(&url, form.take()).await;
            if let Some(location) = location {
                url = url.join(&location).expect("a URL");
                if url.as_str().starts_with(HERE) {
                    return url;
                }
                continue;
            }
            assert_eq!(status, 200, "{url}: {page}");
            let between = |left: &str| page.split(left).nth(1).and_then(|rest| rest.split('"').next()).unwrap_or_default().to_owned();
            let (action, prompt) = (between("action=\""), between("name=\"prompt\" value=\""));
            url = url.join(&action).expect("a form");
            let mut body = url::form_urlencoded::Serializer::new(String::new());
            body.append_pair("prompt", &prompt).append_pair("login", name).append_pair("password", "any");
            form = Some(body.finish());
        }
        panic!("the provider goes round in circles at {url}");
    }

    async fn sign_in(&mut self, name: &str) -> TestResponse {
        let back = self.sign_in_at_provider(name).await;
        self.here(&format!("{}?{}", back.path(), back.query().unwrap_or_default())).await
    }
}

async fn owner(app: &TestApp, email: &str) {
    let new = NewUser { email: email.to_owned(), password: Redacted::new(PASSWORD.to_owned()) };
    app.node.core.users().add(&app.project, Role::Owner, &new).await.expect("a person");
}

// holds: pages.oidc
#[tokio::test]
#[ignore = "needs node and npm oidc-provider"]
async fn heavy_people_sign_in_by_an_openid_provider() {
    let provider = Provider::start().await;
    for backend in Backend::all() {
        let app = provider.app(backend, "operator").await;
        let unowned = Browser::new(&app).sign_in("ana@acme.example").await.expect(401);
        assert!(unowned.text.contains("this server has no owner yet"), "{}", unowned.text);
        owner(&app, "ada@example.net").await;
        let page = app.raw("GET", "/sign-in?to=%2Fmessages", &[], Vec::new()).await.expect(200);
        assert!(page.text.contains("Sign in with Acme ID"), "{}", page.text);

        // An existing user is recognized by the verified address, whatever its domain and case.
        let mut ada = Browser::new(&app);
        let done = ada.sign_in("Ada@Example.net").await.expect(303);
        assert_eq!(done.header("location"), "/messages");
        assert!(ada.here("/settings/people").await.expect(200).text.contains("Add a person"), "an owner");
        // Others may sign in by domain or address, with the role in the settings.
        let mut ana = Browser::new(&app);
        ana.sign_in("ana@acme.example").await.expect(303);
        assert!(ana.here("/settings/account").await.expect(200).text.contains("ana@acme.example, operator of"));
        Browser::new(&app).sign_in("ana@acme.example").await.expect(303);
        Browser::new(&app).sign_in("guest@example.net").await.expect(303);
        let people = app.node.core.users().list(app.project.id).await.expect("people").len();
        assert_eq!(people, 3, "twice is one person");

        for (name, why) in [
            ("eve@evil.example", "is not allowed to sign in here"),
            ("ana@notacme.example", "is not allowed to sign in here"),
            ("unverified@acme.example", "does not report your email address as verified"),
            ("nameless", "does not report your email address"),
        ] {
            let mut browser = Browser::new(&app);
            let refused = browser.sign_in(name).await.expect(401);
            assert!(refused.text.contains(why), "{name}: {}", refused.text);
            assert_eq!(browser.here("/messages").await.status, 303, "{name} is not signed in");
        }
        assert_eq!(app.node.core.users().list(app.project.id).await.expect("people").len(), 3);
        let created = log(&app, app.project.live).await.into_iter().filter(|entry| entry.verb == "create" && entry.kind == "person");
        let mut names: Vec<_> = created.map(|entry| entry.actor.name).collect();
        names.sort();
        assert_eq!(names, ["ana@acme.example", "guest@example.net"]);
    }
}

// holds: pages.oidc
#[tokio::test]
#[ignore = "needs node and npm oidc-provider"]
async fn heavy_what_was_begun_elsewhere_signs_nobody_in() {
    let provider = Provider::start().await;
    let app = provider.app(Backend::Sqlite, "viewer").await;
    owner(&app, "ada@example.net").await;
    let mut ada = Browser::new(&app);
    let back = ada.sign_in_at_provider("ada@example.net").await;
    let target = format!("{}?{}", back.path(), back.query().unwrap_or_default());
    // The link of another browser, whose owner wants the victim to use their account.
    let mut victim = Browser::new(&app);
    for _ in 0..2 {
        let refused = victim.here(&target).await.expect(401);
        assert!(refused.text.contains("was not started in this browser"), "{}", refused.text);
        victim.here("/sign-in/oidc").await.expect(303);
    }
    let forged = target.replace("state=", "state=x");
    ada.here(&forged).await.expect(401);
    assert!(ada.cookies[HERE]["nuncio_oidc"].is_empty(), "a try uses the cookie up");
    let fresh = ada.sign_in_at_provider("ada@example.net").await;
    let (kept, target) = (ada.cookies.clone(), format!("{}?{}", fresh.path(), fresh.query().unwrap_or_default()));
    ada.here(&target).await.expect(303);
    ada.cookies = kept;
    let again = ada.here(&target).await;
    assert_eq!(again.status, 401, "the provider takes a code once: {}", again.text);
    let denied = ada.here("/sign-in/oidc/back?error=access_denied&state=x").await.expect(401);
    assert!(denied.text.contains("rejected the sign-in"), "{}", denied.text);
    // An expired state is rejected.
    let mut back = Browser::new(&app);
    app.clock.advance(Duration::from_secs(3 * 365 * 86_400));
    let old = back.sign_in("ada@example.net").await;
    assert_eq!(old.status, 401, "by our clock the token has expired: {}", old.text);
}

// holds: pages.oidc
#[tokio::test]
async fn without_a_provider_there_is_no_button() {
    let app = TestApp::start().await;
    owner(&app, "ada@example.net").await;
    assert!(!app.raw("GET", "/sign-in", &[], Vec::new()).await.expect(200).text.contains("/sign-in/oidc"));
    app.raw("GET", "/sign-in/oidc", &[], Vec::new()).await.expect(404);
    app.raw("GET", "/sign-in/oidc/back?state=x&code=y", &[], Vec::new()).await.expect(404);
    let wrong = |change: fn(&mut OidcConfig)| {
        let mut config = OidcConfig { issuer: "https://id.example".into(), client_id: "x".into(), ..OidcConfig::default() };
        change(&mut config);
        let mut problems = Vec::new();
        config.check(&mut problems);
        problems.remove(0)
    };
    assert!(wrong(|config| config.role = "king".into()).starts_with("dashboard.oidc.role: is \"king\""));
    assert!(wrong(|config| config.client_id.clear()).starts_with("dashboard.oidc.client_id"));
    assert!(wrong(|config| config.issuer = "id.example".into()).starts_with("dashboard.oidc.issuer"));
    assert!(wrong(|config| config.allowed_domains = "a@b.example".into()).starts_with("dashboard.oidc.allowed_domains"));
    // If the provider is down, the page says so, and passwords still work.
    let config = OidcConfig { issuer: "http://127.0.0.1:9".into(), client_id: "x".into(), ..OidcConfig::default() };
    let app = TestApp::with(Backend::Sqlite, Options { oidc: config.provider().expect("good"), ..Options::default() }).await;
    owner(&app, "ada@example.net").await;
    app.raw("GET", "/sign-in/oidc", &[], Vec::new()).await.expect(503);
    let mut browser = crate::dashboard::Browser { app: &app, cookie: String::new() };
    browser.sign_in("ada@example.net", PASSWORD).await.expect(303);
}
