//! For tests: the whole server in one process, with a clock and randomness that follow from a seed.
//!
//! [`TestApp`] sends requests through the real router, without a socket; [`TestApp::drain`] runs dispatch until nothing is left to
//! do, and [`TestApp::advance`] moves the clock. Nothing sleeps, and identifiers and times are the same in every run. Every response is
//! held against the OpenAPI document.

mod contract;
mod database;
mod faults;
mod mailbox;
mod name_server;
mod receiver;
mod time;

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
pub use faults::Faults;
pub use mailbox::{Mailbox, peer_python, repository, repository_file};
pub use name_server::NameServer;
pub use receiver::{Posted, Receiver};
pub use time::{ManualClock, SeededEntropy};

/// The whole server.
#[derive(Debug)]
pub struct TestApp {
    /// The clock.
    pub clock: Arc<ManualClock>,
    /// The node.
    pub node: Node,
    /// The project that it starts with.
    pub project: Project,
    /// A key to everything in the live world.
    pub live_key: String,
    /// A key to everything in the test world.
    pub test_key: String,
    /// What goes wrong with the database.
    pub faults: Arc<Faults>,
    router: Router,
    ids: Ids,
    database: Database,
    options: Options,
}

/// How a [`TestApp`] differs from the default.
#[derive(Clone, Debug)]
pub struct Options {
    /// Requests a minute and world; 0 for no limit, the default.
    pub per_minute: u32,
    /// Requests at once.
    pub burst: u32,
    /// Bytes that requests and answers take at once.
    pub max_in_flight_bytes: usize,
    /// How fast clients must send bodies.
    pub pace: Pace,
    /// Dispatch.
    pub dispatch: DispatchConfig,
    /// Kinds of providers.
    pub registry: Registry,
    /// Sends codes that prove inbound email addresses.
    pub code_relay: Option<CodeRelay>,
    /// Asked about the content of broadcasts beside the built-in review.
    pub reviewer: Option<Reviewer>,
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
            reviewer: None,
        }
    }
}

/// What was answered.
#[derive(Debug)]
pub struct Answer {
    /// Status.
    pub status: StatusCode,
    /// Headers.
    pub headers: HeaderMap,
    /// Body as text.
    pub text: String,
}

impl Answer {
    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }

    /// A header as text, or `""`.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or_default()
    }

    /// Fails the test unless the status is `status`; shows the body.
    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }
}

impl TestApp {
    /// On an embedded database of its own.
    pub async fn start() -> Self {
        Self::with(Backend::Sqlite, Options::default()).await
    }

    /// On a database of its own of this kind.
    pub async fn on(backend: Backend) -> Self {
        Self::with(backend, Options::default()).await
    }

    /// With options.
    pub async fn with(backend: Backend, options: Options) -> Self {
        let clock = Arc::new(ManualClock::default());
        let ids = Ids { clock: clock.clone(), entropy: Arc::new(SeededEntropy::new(42)) };
        let database = Database::make(backend).await;
        let faults = Arc::new(Faults::default());
        let (node, router) = boot(&database, &ids, &options, &faults).await;
        node.start().await.expect("the node enters");
        let project = nuncio::admin::project(&node.core, None).await.expect("a project");
        let mut app =
            Self { clock, node, project, live_key: String::new(), test_key: String::new(), faults, router, ids, database, options };
        app.live_key = app.key(Environment::Live, &[]).await;
        app.test_key = app.key(Environment::Test, &[]).await;
        app
    }

    /// A new key with these permissions; none for everything.
    pub async fn key(&self, environment: Environment, permissions: &[&str]) -> String {
        let permissions = Permissions::parse(permissions.iter().copied()).expect("known permissions");
        let key = self.node.core.keys().create(self.project.tenant(environment), environment, "a key", permissions).await.expect("a key");
        key.secret.expose().clone()
    }

    /// A provider account of the default live sender.
    pub async fn connect(&self, channel: Channel, kind: &str, settings: Value, secrets: Value) {
        let world = self.node.core.world(self.project.live).await.expect("the live world");
        let sender = world.default_sender().expect("a default sender").id;
        let object = |value: Value| if let Value::Object(map) = value { map } else { Map::new() };
        let put =
            PutConnection { kind: kind.to_owned(), settings: object(settings), secrets: Redacted::new(object(secrets)), throttle: None };
        self.node.core.senders().put_connection(self.project.live, sender, channel, put, true).await.expect("a good connection");
    }

    /// Sets the webhook of a sender of the test world, or of that world, with this signing secret.
    pub async fn set_webhook(&self, sender: Option<SenderId>, url: &str, events: &[EventType], secret: &str) {
        let secrets = Map::from_iter([("current".to_owned(), Value::from(secret))]);
        let sealed = sealer().seal(Row::Webhook(self.tenant(), sender), &secrets, &*self.ids.entropy).expect("sealed");
        let webhook = Webhook {
            sender,
            url: url.to_owned(),
            events: events.to_vec(),
            active: true,
            sealed: Redacted::new(sealed),
            previous_until: None,
            failing_since: None,
            disabled_reason: None,
            updated_at: self.ids.clock.now(),
        };
        let mut tx = self.store().begin().await.expect("a transaction");
        tx.put_webhook(self.tenant(), &webhook).await.expect("written");
        nuncio_core::webhooks::changed(&mut *tx, self.tenant()).await.expect("the log is opened");
        tx.commit().await.expect("committed");
        self.node.dispatch.logs().webhooks_changed();
    }

    /// Sends a request with the test key.
    pub async fn request(&self, method: &str, path: &str, body: Option<Value>) -> Answer {
        self.send(method, path, &[("authorization", &format!("Bearer {}", self.test_key))], body).await
    }

    /// `GET` with the test key.
    pub async fn get(&self, path: &str) -> Answer {
        self.request("GET", path, None).await
    }

    /// `POST` with the test key.
    pub async fn post(&self, path: &str, body: Value) -> Answer {
        self.request("POST", path, Some(body)).await
    }

    /// Sends a request with these headers and a JSON body.
    pub async fn send(&self, method: &str, path: &str, headers: &[(&str, &str)], body: Option<Value>) -> Answer {
        let json = body.is_some();
        let bytes = body.map(|b| b.to_string().into_bytes()).unwrap_or_default();
        let mut all = headers.to_vec();
        if json && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            all.push(("content-type", "application/json"));
        }
        self.raw(method, path, &all, bytes).await
    }

    /// Sends a request just as it is given. The body may be a stream.
    pub async fn raw(&self, method: &str, path: &str, headers: &[(&str, &str)], body: impl Into<Body>) -> Answer {
        let (parts, body) = self.exchange(method, path, headers, body).await.into_parts();
        let bytes = body.collect().await.expect("a body").to_bytes();
        check(method, path, &parts, Some(&bytes));
        Answer { status: parts.status, headers: parts.headers, text: String::from_utf8_lossy(&bytes).into_owned() }
    }

    /// Sends a request just as it is given, and leaves the body of the answer to be read. The body may be a stream.
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

    /// Serves on a port of this machine, as the binary does. The clock that times connections is the machine's.
    pub async fn listen(&self) -> SocketAddr {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let (stop, stopped) = tokio::sync::watch::channel(false);
        let serving = nuncio::http::serve(listener, self.router.clone(), nuncio::http::Limits::default(), stopped);
        tokio::spawn(async move {
            let _stop = stop;
            serving.await;
        });
        address
    }

    /// Sends a message with the test key and answers its id.
    pub async fn send_message(&self, body: Value) -> String {
        let answer = self.post("/v1/messages", body).await.expect(202);
        answer.json()["message"]["id"].as_str().expect("an id").to_owned()
    }

    /// A message of the test world as the API shows it.
    pub async fn message(&self, id: &str) -> Value {
        self.get(&format!("/v1/messages/{id}")).await.expect(200).json()["message"].clone()
    }

    /// Runs dispatch until nothing is due or under way.
    pub async fn drain(&self) {
        self.node.drain().await.expect("dispatch");
    }

    /// Moves the clock, and runs dispatch.
    pub async fn advance(&self, by: Duration) {
        self.clock.advance(by);
        self.node.tick().await.expect("dispatch");
        self.drain().await;
    }

    /// The process dies without signing off, and another starts on the same database.
    pub async fn crash(&mut self) {
        self.try_crash().await.expect("the node enters");
    }

    /// The same, where the next one may fail to enter.
    pub async fn try_crash(&mut self) -> nuncio_store::Result<()> {
        self.node.core.store().close().await;
        (self.node, self.router) = boot(&self.database, &self.ids, &self.options, &self.faults).await;
        self.node.start().await
    }

    /// One more node on the same database, which has not entered yet.
    pub async fn another_node(&self) -> Node {
        boot(&self.database, &self.ids, &self.options, &Arc::default()).await.0
    }

    /// Runs a statement around the store.
    pub async fn sql(&self, statement: &str) {
        self.database.execute(statement).await;
    }

    /// Makes every writer of messages wait for [`Held::release`]. The store gives up waiting after a second.
    pub async fn hold_messages(&self) -> Held {
        self.database.hold_messages().await
    }

    /// The database.
    pub fn store(&self) -> &dyn Store {
        self.node.core.store()
    }

    /// The test world.
    pub fn tenant(&self) -> TenantId {
        self.project.test
    }

    /// The tables of the database that hold a text anywhere.
    pub async fn holders(&self, text: &str) -> Vec<String> {
        self.database.holders(text).await
    }

    /// The folder of the embedded database.
    pub fn folder(&self) -> Option<&Path> {
        self.database.folder()
    }
}

/// Holds a response against the OpenAPI document.
fn check(method: &str, target: &str, parts: &Parts, body: Option<&[u8]>) {
    contract::check(contract::Exchange { method, target, status: parts.status.as_u16(), headers: &parts.headers, body });
}

/// What opens and closes the secrets of a [`TestApp`].
pub fn sealer() -> Sealer {
    Sealer::parse(Sealer::generate(&SeededEntropy::new(7)).expose()).expect("a key")
}

/// A node on `database` that has not entered yet.
async fn boot(database: &Database, ids: &Ids, options: &Options, faults: &Arc<Faults>) -> (Node, Router) {
    let store = nuncio_store_sql::open(&database.target()).await.expect("the database opens");
    let store = faults::with(Arc::clone(faults), store);
    let public_url = "https://nuncio.example".to_owned();
    let parts = nuncio_node::Parts {
        store,
        registry: options.registry.clone(),
        sealer: sealer(),
        ids: ids.clone(),
        public_url,
        code_relay: options.code_relay.clone(),
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
