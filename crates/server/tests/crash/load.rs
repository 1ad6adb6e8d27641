//! Clients that send continuously, whatever happens to the server.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use nuncio_domain::Environment;
use rand_chacha::ChaCha20Rng;
use rand_chacha::rand_core::{RngCore as _, SeedableRng as _};
use serde_json::json;
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::http::{Answer, Http};
use crate::ledger::{Entry, Ledger};
use crate::server::Keys;

/// Clients per environment.
const CLIENTS: u64 = 4;
/// One in this many requests has an idempotency key.
const KEYED: u64 = 3;
/// One in this many requests with a key is repeated after its response.
const REPEATED: u64 = 8;
/// One in this many emails is too large for the hot path.
const LARGE: u64 = 100;
/// Recipients per environment.
const RECIPIENTS: u64 = 300;
/// Maximum time in which a client makes no progress.
const PATIENCE: Duration = Duration::from_secs(60);
/// Delay after a rejection for overload.
const OVERLOAD_PAUSE: Duration = Duration::from_millis(20);

/// Instructions for the clients.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Signal {
    server: Option<SocketAddr>,
    /// Start nothing new; only repeat requests without a response.
    stop: bool,
}

/// Counts of one client.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Seen {
    pub(crate) accepted: u64,
    pub(crate) refused: u64,
}

#[derive(Debug)]
pub(crate) struct Load {
    signal: watch::Sender<Signal>,
    seen: Vec<watch::Receiver<Seen>>,
    clients: JoinSet<()>,
}

impl Load {
    /// Starts the clients; they wait for a server.
    pub(crate) fn start(keys: &Keys, ledger: &Arc<Ledger>, seed: u64) -> Self {
        let (signal, told) = watch::channel(Signal { server: None, stop: false });
        let (mut clients, mut seen) = (JoinSet::new(), Vec::new());
        for number in 0..2 * CLIENTS {
            let world = if number < CLIENTS { Environment::Live } else { Environment::Test };
            let (tell, counts) = watch::channel(Seen::default());
            seen.push(counts);
            let client = Client {
                world,
                name: format!("{seed:x}c{number}"),
                key: keys.of(world).to_owned(),
                ledger: Arc::clone(ledger),
                random: ChaCha20Rng::seed_from_u64(seed.wrapping_add(number)),
                told: told.clone(),
                tell,
                pending: None,
                sent: 0,
            };
            clients.spawn(client.run());
        }
        Self { signal, seen, clients }
    }

    /// Sets the server's address; `None` while it is down.
    pub(crate) fn serve(&self, server: Option<SocketAddr>) {
        self.signal.send_modify(|signal| signal.server = server);
    }

    /// Waits until every client has seen `enough` since this call.
    pub(crate) async fn every(&mut self, enough: impl Fn(Seen) -> bool) {
        for client in &mut self.seen {
            let before = *client.borrow_and_update();
            let since = |seen: &Seen| Seen { accepted: seen.accepted - before.accepted, refused: seen.refused - before.refused };
            let seen = tokio::time::timeout(PATIENCE, client.wait_for(|seen| enough(since(seen)))).await;
            seen.expect("the server answers the client").expect("the client runs");
        }
    }

    /// Returns the number of accepted messages so far.
    pub(crate) fn accepted(&self) -> u64 {
        self.seen.iter().map(|client| client.borrow().accepted).sum()
    }

    /// Lets every client finish its current request. Fails if a client saw a wrong response.
    pub(crate) async fn finish(mut self) {
        self.signal.send_modify(|signal| signal.stop = true);
        while let Some(ended) = self.clients.join_next().await {
            ended.expect("every answer was as it must be");
        }
    }
}

/// A request, identical when repeated.
#[derive(Debug)]
struct Request {
    token: String,
    key: Option<String>,
    body: String,
    /// It was sent before, but the response was lost.
    repeated: bool,
}

#[derive(Debug)]
struct Client {
    world: Environment,
    name: String,
    key: String,
    ledger: Arc<Ledger>,
    random: ChaCha20Rng,
    told: watch::Receiver<Signal>,
    tell: watch::Sender<Seen>,
    pending: Option<Request>,
    sent: u64,
}

impl Client {
    async fn run(mut self) {
        loop {
            let done = self.pending.is_none();
            let Ok(signal) = self.told.wait_for(|signal| signal.server.is_some() || signal.stop && done).await.map(|signal| *signal) else {
                return;
            };
            let Some(server) = signal.server.filter(|_| !(signal.stop && done)) else { return };
            match Http::connect(server).await {
                Ok(mut http) => self.converse(&mut http).await,
                Err(_) => tokio::time::sleep(OVERLOAD_PAUSE).await,
            }
        }
    }

    /// Sends until the connection fails or the load stops.
    async fn converse(&mut self, http: &mut Http) {
        loop {
            let stop = self.told.borrow().stop;
            let Some(request) = self.pending.take().or_else(|| (!stop).then(|| self.make())) else { return };
            let Ok(answer) = http.send(&self.key, request.key.as_deref(), &request.body).await else {
                return self.lost(request);
            };
            if !self.answered(request, &answer, http).await {
                return;
            }
        }
    }

    fn lost(&mut self, request: Request) {
        if request.key.is_some() {
            self.pending = Some(Request { repeated: true, ..request });
        } else {
            self.ledger.in_doubt(&request.token);
        }
    }

    /// Returns whether the connection is still usable.
    async fn answered(&mut self, request: Request, answer: &Answer, http: &mut Http) -> bool {
        match answer.status {
            202 => return self.accepted(request, answer, http).await,
            409 if request.repeated => {
                assert_eq!(answer.json["code"], "idempotency_conflict", "{answer:?}");
                return self.accepted(request, answer, http).await;
            }
            503 if answer.json["details"]["outcome"] == "unknown" => self.lost(request),
            503 => {
                self.tell.send_modify(|seen| seen.refused += 1);
                if request.repeated {
                    self.pending = Some(request); // its first outcome is still unknown
                } else {
                    self.ledger.refused(&request.token);
                }
                tokio::time::sleep(OVERLOAD_PAUSE).await;
            }
            _ => panic!("{request:?} was answered {answer:?}"),
        }
        true
    }

    /// Returns whether the connection is still usable.
    async fn accepted(&mut self, request: Request, answer: &Answer, http: &mut Http) -> bool {
        let id = answer.message_id();
        let entry = Entry { world: self.world, token: request.token.clone(), id: id.clone(), key: request.key.clone() };
        let ledger = Arc::clone(&self.ledger);
        tokio::task::spawn_blocking(move || ledger.accepted(&entry)).await.expect("the ledger is written");
        self.tell.send_modify(|seen| seen.accepted += 1);
        if request.key.is_none() || !self.one_of(REPEATED) {
            return true;
        }
        // A late response would be taken for that of the next request.
        let Ok(again) = http.send(&self.key, request.key.as_deref(), &request.body).await else { return false };
        assert!(again.status == 409 && again.message_id() == id || again.status == 503, "{request:?} became {id}, and then {again:?}");
        true
    }

    fn make(&mut self) -> Request {
        self.sent += 1;
        let token = format!("t{}n{}", self.name, self.sent);
        let recipient = self.random.next_u64() % RECIPIENTS;
        let body = match self.world {
            Environment::Live => {
                let text = if self.one_of(LARGE) { "large ".repeat(50_000) } else { token.clone() };
                json!({"to": format!("user{recipient}@example.com"), "channel": "email", "subject": token, "text": text})
            }
            Environment::Test => json!({"to": format!("+34600111{recipient:03}"), "channel": "sms", "text": token}),
        };
        let key = self.one_of(KEYED).then(|| format!("k{token}"));
        Request { token, key, body: body.to_string(), repeated: false }
    }

    fn one_of(&mut self, many: u64) -> bool {
        self.random.next_u64().is_multiple_of(many)
    }
}
