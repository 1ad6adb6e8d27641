//! Test harness: the whole server in one process, with a manual clock and seeded randomness.
//!
//! [`TestApp`] sends requests to the real router, without a socket. [`TestApp::drain`] runs dispatch until nothing is left to do, and
//! [`TestApp::advance`] moves the clock. Nothing sleeps, and ids and times are the same in every run. Every response is validated against
//! the OpenAPI document.

mod contract;
mod database;
mod fault_injector;
mod mailbox;
mod name_server;
mod provider;
mod receiver;
mod time;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::response::Parts;
use axum::http::{HeaderMap, Request, Response, StatusCode};
use http_body_util::BodyExt as _;
use nuncio_api::{ApiLimits, ApiState, Pace};
use nuncio_channel::Registry;
use nuncio_core::broadcasts::Reviewer;
use nuncio_core::users::Oidc;
use nuncio_core::{CodeRelay, PutConnection, Row, Sealer};
use nuncio_dispatch::DispatchConfig;
use nuncio_domain::config::Project;
use nuncio_domain::event::EventType;
use nuncio_domain::webhook::Webhook;
use nuncio_domain::{Channel, Environment, Ids, Permissions, Redacted, SenderId, TenantId};
use nuncio_node::Node;
use nuncio_store::Store;
use serde_json::{Map, Value};
use tower::ServiceExt as _;

pub use contract::operation;
pub use database::{Backend, Database, Held};
pub use fault_injector::FaultInjector;
pub use mailbox::{Mailbox, peer_python, repository, repository_file};
pub use name_server::NameServer;
pub use provider::provider;
pub use receiver::{Posted, Receiver};
pub use time::{ManualClock, SeededEntropy};

/// The whole server.
#[derive(Debug)]
pub struct TestApp {
    pub clock: Arc<ManualClock>,
    pub node: Node,
    /// The first project.
    pub project: Project,
    /// A key with all permissions in the live environment.
    pub live_key: String,
    /// A key with all permissions in the test environment.
    pub test_key: String,
    /// Injects database errors.
    pub faults: Arc<FaultInjector>,
    router: Router,
    ids: Ids,
    database: Database,
    options: Options,
}

#[derive(Clone, Debug)]
pub struct Options {
    /// Requests per minute and environment; 0 means no limit, the default.
    pub per_minute: u32,
    /// Burst of requests.
    pub burst: u32,
    /// Bytes that requests and responses can hold in memory.
    pub max_in_flight_bytes: usize,
    /// Minimum speed of request bodies.
    pub pace: Pace,
    pub dispatch: DispatchConfig,
    /// Adapter kinds.
    pub registry: Registry,
    /// Sends codes to verify inbound email addresses.
    pub code_relay: Option<CodeRelay>,
    /// Whether servers listen for email.
    pub receives_email: bool,
    /// Verifies users who sign in through an OpenID provider.
    pub oidc: Option<Oidc>,
    /// External reviewer of broadcasts, in addition to the built-in review.
    pub reviewer: Option<Reviewer>,
    /// Whether to count statements, for [`TestApp::statements`]. Requires PostgreSQL.
    pub counts_statements: bool,
}

impl Default for Options {
    fn default() -> Self {
        let config = nuncio::config::Config::default();
        let guard = config.guard().unwrap_or_default();
        Self {
            per_minute: 0,
            burst: 10,
            max_in_flight_bytes: 256 * 1024 * 1024,
            pace: Pace::default(),
            registry: nuncio::wiring::registry(&config, nuncio_core::mail_tokens(&sealer())).expect("a way out"),
            dispatch: DispatchConfig { guard, ..DispatchConfig::default() },
            code_relay: None,
            receives_email: false,
            oidc: None,
            reviewer: None,
            counts_statements: false,
        }
    }
}

#[derive(Debug)]
pub struct TestResponse {
    pub status: StatusCode,
    pub headers: HeaderMap,
    /// Body as text.
    pub text: String,
}

impl TestResponse {
    /// Returns the body as JSON; null if it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// Returns a header as text, or `""`.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
    }

    /// Fails the test and prints the body unless the status is `status`.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }
}

impl TestApp {
    /// Starts with a new SQLite database.
    pub async fn start() -> Self {
        Self::with(Backend::Sqlite, Options::default()).await
    }

    /// Starts with a new database.
    pub async fn on(backend: Backend) -> Self {
        Self::with(backend, Options::default()).await
    }

    /// Starts one on each database.
    pub async fn on_each() -> Vec<Self> {
        let mut apps = Vec::new();
        for backend in Backend::all() {
            apps.push(Self::on(backend).await);
        }
        apps
    }

    pub async fn with(backend: Backend, options: Options) -> Self {
        let clock = Arc::new(ManualClock::default());
        let ids = Ids::new(clock.clone(), Arc::new(SeededEntropy::new(42)));
        let database = Database::make(backend).await;
        if options.counts_statements {
            database.count_statements().await;
        }
        let faults = Arc::new(FaultInjector::default());
        let (node, router) = boot(&database, &ids, &options, &faults).await;
        node.start().await.expect("the node enters");
        let project = nuncio::admin::project(&node.core, None).await.expect("a project");
        let mut app =
            Self { clock, node, project, live_key: String::new(), test_key: String::new(), faults, router, ids, database, options };
        app.live_key = app.key(Environment::Live, &[]).await;
        app.test_key = app.key(Environment::Test, &[]).await;
        app
    }

    /// Creates a key with these permissions; empty means all.
    pub async fn key(&self, environment: Environment, permissions: &[&str]) -> String {
        let permissions = Permissions::parse(permissions.iter().copied()).expect("known permissions");
        let key =
            self.node.core.keys().create(self.project.tenant(environment), environment, "a key", permissions, None).await.expect("a key");
        key.secret.expose().clone()
    }

    /// Adds a connection to the default live sender.
    pub async fn connect(&self, channel: Channel, kind: &str, settings: Value, secrets: Value) {
        let world = self.node.core.tenant_config(self.project.live).await.expect("the live world");
        let sender = world.default_sender().expect("a default sender").id;
        let object = |value: Value| if let Value::Object(map) = value { map } else { Map::new() };
        let put = PutConnection {
            kind: kind.to_owned(),
            settings: object(settings),
            secrets: Redacted::new(object(secrets)),
            throttle: None,
            expected_version: None,
        };
        self.node.core.senders().put_connection(self.project.live, sender, channel, put, true).await.expect("a good connection");
    }

    /// Sets the webhook of a sender of the test environment, or of the environment.
    pub async fn set_webhook(&self, sender: Option<SenderId>, url: &str, events: &[EventType], secret: &str) {
        let secrets = Map::from_iter([("current".to_owned(), Value::from(secret))]);
        let sealed = sealer().seal(Row::Webhook(self.tenant(), sender), &secrets, &*self.ids.entropy).expect("sealed");
        let now = self.ids.clock.now();
        let webhook = Webhook {
            sender,
            url: url.to_owned(),
            events: events.to_vec(),
            active: true,
            sealed: Redacted::new(sealed),
            failing_since: None,
            disabled_reason: None,
            created_at: now,
            updated_at: now,
        };
        let mut tx = self.store().begin().await.expect("a transaction");
        tx.raise_epoch(self.tenant()).await.expect("raised");
        tx.put_webhook(self.tenant(), &webhook).await.expect("written");
        nuncio_core::webhooks::update_log_reader(&mut *tx, self.tenant(), now).await.expect("the log is opened");
        tx.commit().await.expect("committed");
        self.node.dispatch.log_signals().webhooks_changed();
    }

    /// Sends a request with the test key.
    pub async fn request(&self, method: &str, path: &str, body: Option<Value>) -> TestResponse {
        self.with_key(&self.test_key, method, path, body).await
    }

    /// `GET` with the test key.
    pub async fn get(&self, path: &str) -> TestResponse {
        self.request("GET", path, None).await
    }

    /// `POST` with the test key.
    pub async fn post(&self, path: &str, body: Value) -> TestResponse {
        self.request("POST", path, Some(body)).await
    }

    /// `POST` with the test key and this idempotency key.
    pub async fn once(&self, key: &str, path: &str, body: Value) -> TestResponse {
        let auth = format!("Bearer {}", self.test_key);
        self.send("POST", path, &[("authorization", &auth), ("idempotency-key", key)], Some(body)).await
    }

    /// Sends a request with this API key.
    pub async fn with_key(&self, key: &str, method: &str, path: &str, body: Option<Value>) -> TestResponse {
        self.send(method, path, &[("authorization", &format!("Bearer {key}"))], body).await
    }

    /// Sends a request with these headers and a JSON body.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<Value>) -> TestResponse {
        let json = body.is_some();
        let bytes = body.map(|b| b.to_string().into_bytes()).unwrap_or_default();
        let mut all = headers.to_vec();
        if json && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            all.push(("content-type", "application/json"));
        }
        self.raw(method, path, &all, bytes).await
    }

    /// Sends a request unchanged. The body can be a stream.
    pub async fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> TestResponse {
        let (parts, body) = self.exchange(method, path, headers, body).await.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        check(method, path, &parts, Some(&bytes));
        TestResponse { status: parts.status, headers: parts.headers, text: String::from_utf8_lossy(&bytes).into_owned() }
    }

    /// Sends a request unchanged, without reading the response body. The request body can be a stream.
    pub async fn open(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Response<Body> {
        let (parts, body) = self.exchange(method, path, headers, body).await.into_parts();
        check(method, path, &parts, None);
        Response::from_parts(parts, body)
    }

    async fn exchange(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let mut request = request.body(body.into()).expect("a request");
        request.extensions_mut().insert(ConnectInfo(SocketAddr::from(([127, 0, 0, 1], 4_000))));
        self.router.clone().oneshot(request).await.expect("the router cannot fail")
    }

    /// Serves on a local port, like the binary. Connection timeouts use the machine's clock.
    pub async fn listen(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let serving = nuncio::http::serve(
            listener,
            self.router.clone(),
            nuncio::http::Limits::default(),
            nuncio::proxies::Proxies::default(),
            stopped,
        );
        tokio::spawn(async move {
            let _stop = stop;
            serving.await;
        });
        address
    }

    /// Sends a message with the test key and returns its id.
    pub async fn send_message(&self, body: Value) -> String {
        let answer = self.post("/v1/messages", body).await.expect(202);
        answer.json()["message"]["id"].as_str().expect("an id").to_owned()
    }

    /// Returns a message of the test environment as the API shows it.
    pub async fn message(&self, id: &str) -> Value {
        self.get(&format!("/v1/messages/{id}")).await.expect(200).json()["message"].clone()
    }

    /// Runs dispatch until nothing is due or in flight.
    pub async fn drain(&self) {
        self.node.drain().await.expect("dispatch");
    }

    /// Advances the clock and runs dispatch.
    pub async fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.node.tick().await.expect("dispatch");
        self.drain().await;
    }

    /// Simulates a crash: the node ends without signing off, and another starts on the same database.
    pub async fn crash(&mut self) {
        self.try_crash().await.expect("the node enters");
    }

    /// Like [`Self::crash`], for tests in which the next start can fail.
    pub async fn try_crash(&mut self) -> nuncio_store::Result<()> {
        self.node.core.store().close().await;
        (self.node, self.router) = boot(&self.database, &self.ids, &self.options, &self.faults).await;
        self.node.start().await
    }

    /// Returns another node on the same database, not registered yet.
    pub async fn another_node(&self) -> Node {
        boot(&self.database, &self.ids, &self.options, &Arc::default()).await.0
    }

    /// Runs a statement, bypassing the store.
    pub async fn sql(&self, statement: &str) {
        self.database.execute(statement).await;
    }

    /// Returns how often the server runs each kind of statement during `action`.
    pub async fn statements(&self, action: impl Future) -> BTreeMap<String, i64> {
        let before = self.database.statements().await;
        action.await;
        let mut after = self.database.statements().await;
        after.retain(|statement, calls| {
            *calls -= before.get(statement).copied().unwrap_or_default();
            *calls > 0
        });
        after
    }

    /// Blocks all writers of messages until [`Held::release`]. The store gives up after a second.
    pub async fn hold_messages(&self) -> Held {
        self.database.hold_messages().await
    }

    pub fn store(&self) -> &dyn Store {
        self.node.core.store()
    }

    /// Returns the test environment.
    pub fn tenant(&self) -> TenantId {
        self.project.test
    }

    /// Returns the tables that contain a text anywhere.
    pub async fn holders(&self, text: &str) -> Vec<String> {
        self.database.holders(text).await
    }

    /// Returns the folder of the SQLite database.
    pub fn folder(&self) -> Option<&Path> {
        self.database.folder()
    }
}

/// Validates a response against the OpenAPI document.
fn check(method: &str, target: &str, parts: &Parts, body: Option<&[u8]>) {
    contract::check(contract::Exchange { method, target, status: parts.status.as_u16(), headers: &parts.headers, body });
}

/// Returns the sealer of a [`TestApp`].
pub fn sealer() -> Sealer {
    Sealer::parse(Sealer::generate(&SeededEntropy::new(7)).expose()).expect("a key")
}

/// Creates a node on `database`, not registered yet.
async fn boot(database: &Database, ids: &Ids, options: &Options, faults: &Arc<FaultInjector>) -> (Node, Router) {
    let store = nuncio_store_sql::open(&database.target()).await.expect("the database opens");
    let store = fault_injector::with(Arc::clone(faults), store);
    let public_url = "https://nuncio.example".to_owned();
    let parts = nuncio_node::NodeDeps {
        store,
        registry: options.registry.clone(),
        sealer: sealer(),
        ids: ids.clone(),
        public_url,
        code_relay: options.code_relay.clone(),
        receives_email: options.receives_email,
        oidc: options.oidc.clone(),
        reviewer: options.reviewer.clone(),
    };
    let node = Node::new(parts, options.dispatch.clone()).expect("a node");
    let limits = ApiLimits {
        per_minute: options.per_minute,
        burst: options.burst,
        max_in_flight_bytes: options.max_in_flight_bytes,
        pace: options.pace,
        ..ApiLimits::default()
    };
    let state = ApiState { core: node.core.clone(), metrics: Arc::new(|| "# no metrics\n".to_owned()), limits };
    (node.clone(), nuncio::wiring::router(state))
}
