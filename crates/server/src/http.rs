//! Connections of clients: how many there are, and how long each may do nothing.

use std::collections::{HashMap, VecDeque};
use std::convert::Infallible;
use std::net::{IpAddr, SocketAddr};
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use axum::body::{Body, Bytes, HttpBody};
use axum::extract::ConnectInfo;
use axum::http::header::CONNECTION;
use axum::http::{Request, Response};
use axum::serve::Listener;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use nuncio_api::Spare;
use nuncio_core::rate::subscriber;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tower::Service as _;

use crate::config::ServerConfig;
use crate::wire::Wire;

/// How long a client may take to send the head of a request, and a connection may stand idle.
const HEAD: Duration = Duration::from_secs(75);
/// The same for a connection above the limit.
const SPARE_HEAD: Duration = Duration::from_secs(2);
/// Connections above the limit that are listened to at a time, so that probes are answered. Each further one takes the place of the oldest.
const SPARE: usize = 64;
/// How long an idle connection that was asked to end may take.
const FAREWELL: Duration = Duration::from_secs(10);
/// How often the log says that connections are turned away.
const COMPLAIN: Duration = Duration::from_secs(10);
/// Open files that are not for clients: databases, providers, webhooks, the mail listener.
const OTHER_FILES: usize = 512;

/// The longest head of a request, in bytes; over HTTP/1 also the size of read and write buffers.
const HEAD_BYTES: u32 = 32 * 1024;
/// Requests at a time of one HTTP/2 connection.
const STREAMS: u32 = 100;
/// Bytes that one request, and all of one HTTP/2 connection, may send before they are read.
const WINDOWS: (u32, u32) = (128 * 1024, 256 * 1024);
/// Bytes of answers that are buffered for one HTTP/2 stream.
const SEND_BUFFER: usize = 16 * 1024;
/// Requests that a client may cancel before they are looked at, and those that may break the rules.
const RESETS: (usize, usize) = (20, 100);
/// How often a silent HTTP/2 client is asked whether it is still there, and for how long.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// What clients may take.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// How long a request head may take, and a connection stand idle.
    pub idle: Duration,
    /// How long a client may take nothing of an answer.
    pub stall: Duration,
    /// Connections at a time.
    pub connections: usize,
    /// Connections of one address at a time.
    pub per_address: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(&ServerConfig::default(), usize::MAX)
    }
}

impl Limits {
    /// As configured, as far as the process may open `files`.
    pub fn new(config: &ServerConfig, files: usize) -> Self {
        let most = files.saturating_sub(OTHER_FILES).max(SPARE);
        if most < config.max_connections {
            tracing::warn!(most, configured = config.max_connections, "the limit of open files allows fewer connections than configured");
        }
        Self {
            idle: HEAD,
            stall: Duration::from_secs(config.stall_seconds),
            connections: config.max_connections.min(most),
            per_address: config.max_connections_per_address,
        }
    }

    /// How often a connection is looked at.
    fn tick(&self) -> Duration {
        (self.idle.min(self.stall) / 4).max(Duration::from_millis(5))
    }
}

/// Serves until `stopped`, and then what is in flight to its end. Dropping it cuts that off.
pub async fn serve(mut listener: TcpListener, router: axum::Router, limits: Limits, mut stopped: watch::Receiver<bool>) {
    let (door, mut connections, mut spare, mut log) = (Door::default(), JoinSet::new(), VecDeque::new(), Complaints::default());
    loop {
        let (io, peer) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            Some(_) = connections.join_next() => continue,
            _ = stopped.wait_for(|stop| *stop) => break,
        };
        drop(io.set_nodelay(true));
        let client = Client { peer, router: router.clone(), limits, stopped: stopped.clone() };
        match door.enter(subscriber(peer.ip()), &limits) {
            Ok(place) => drop(connections.spawn(client.serve(io, Some(place)))),
            Err(full) => {
                log.refused(full, peer);
                make_room(&mut spare);
                let limits = Limits { idle: SPARE_HEAD.min(limits.idle), ..limits };
                spare.push_back(connections.spawn(Client { limits, ..client }.serve(io, None)));
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Ends the oldest connections above the limit if there are too many.
fn make_room(spare: &mut VecDeque<AbortHandle>) {
    if spare.len() >= SPARE {
        spare.retain(|connection| !connection.is_finished());
    }
    while spare.len() >= SPARE {
        if let Some(oldest) = spare.pop_front() {
            oldest.abort();
        }
    }
}

/// Which limit is reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Full {
    Total,
    Address,
}

/// Counts connections.
#[derive(Clone, Debug, Default)]
struct Door(Arc<Mutex<Inside>>);

#[derive(Debug, Default)]
struct Inside {
    all: usize,
    by: HashMap<IpAddr, usize>,
}

/// One connection. Dropping it makes room.
#[derive(Debug)]
struct Place {
    door: Door,
    address: IpAddr,
}

impl Door {
    fn enter(&self, address: IpAddr, limits: &Limits) -> Result<Place, Full> {
        let mut inside = self.0.lock();
        if inside.all >= limits.connections {
            return Err(Full::Total);
        }
        if inside.by.get(&address).is_some_and(|count| *count >= limits.per_address) {
            return Err(Full::Address);
        }
        inside.all += 1;
        *inside.by.entry(address).or_default() += 1;
        metrics::gauge!("nuncio_http_connections").set(inside.all as f64);
        Ok(Place { door: self.clone(), address })
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        let mut inside = self.door.0.lock();
        inside.all -= 1;
        metrics::gauge!("nuncio_http_connections").set(inside.all as f64);
        if let Some(count) = inside.by.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                inside.by.remove(&self.address);
            }
        }
    }
}

/// Says in the log, now and then, that connections are turned away.
#[derive(Debug, Default)]
struct Complaints {
    since: u64,
    last: Option<Instant>,
}

impl Complaints {
    fn refused(&mut self, full: Full, peer: SocketAddr) {
        let limit = match full {
            Full::Total => "total",
            Full::Address => "address",
        };
        metrics::counter!("nuncio_http_connections_refused_total", "limit" => limit).increment(1);
        self.since += 1;
        if self.last.is_none_or(|last| last.elapsed() >= COMPLAIN) {
            tracing::warn!(limit, %peer, refused = self.since, "too many connections; refusing new ones");
            (self.since, self.last) = (0, Some(Instant::now()));
        }
    }
}

struct Client {
    peer: SocketAddr,
    router: axum::Router,
    limits: Limits,
    stopped: watch::Receiver<bool>,
}

impl Client {
    /// Serves a connection to its end; one without a place answers probes only.
    async fn serve(self, io: TcpStream, place: Option<Place>) {
        let Self { peer, router, limits, mut stopped } = self;
        let (life, is_spare) = (Arc::new(Life::default()), place.is_none());
        let io = Wire::new(io, limits.stall, Arc::clone(&life.lingers));
        let heard = Arc::clone(&life);
        let service = service_fn(move |mut request: Request<Incoming>| {
            let exchange = Life::begin(&heard);
            request.extensions_mut().insert(ConnectInfo(peer));
            if is_spare {
                request.extensions_mut().insert(Spare);
            }
            let answer = router.clone().call(request);
            async move { Ok::<_, Infallible>(exchange.watch(answer.await?)) }
        });
        let server = builder(&limits);
        let server = if is_spare { server.http1_only() } else { server };
        let mut connection = pin!(server.serve_connection(TokioIo::new(io), service));
        let (mut tick, mut stopping, mut asked) = (tokio::time::interval(limits.tick()), false, None);
        loop {
            tokio::select! {
                _ = connection.as_mut() => return, // a client that went away is no news
                _ = stopped.wait_for(|stop| *stop), if !stopping => {
                    stopping = true;
                    connection.as_mut().graceful_shutdown();
                }
                _ = tick.tick() => match life.state(&limits) {
                    State::Fine => asked = None,
                    State::Idle => {
                        if asked.get_or_insert_with(Instant::now).elapsed() > FAREWELL {
                            return;
                        }
                        connection.as_mut().graceful_shutdown();
                    }
                    State::Dead => return,
                },
            }
        }
    }
}

fn builder(limits: &Limits) -> auto::Builder<TokioExecutor> {
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(limits.idle).max_buf_size(HEAD_BYTES as usize);
    server
        .http2()
        .timer(TokioTimer::new())
        .max_concurrent_streams(STREAMS)
        .initial_stream_window_size(WINDOWS.0)
        .initial_connection_window_size(WINDOWS.1)
        .max_send_buf_size(SEND_BUFFER)
        .max_header_list_size(HEAD_BYTES)
        .max_pending_accept_reset_streams(RESETS.0)
        .max_local_error_reset_streams(RESETS.1)
        .keep_alive_interval(PING.0)
        .keep_alive_timeout(PING.1);
    server
}

/// What goes on on a connection.
#[derive(Debug)]
struct Life {
    now: Mutex<Now>,
    lingers: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Now {
    /// Requests that are not answered to the end, each with the moment since which the client is to take more of the answer.
    open: Vec<(u64, Option<Instant>)>,
    next: u64,
    quiet_since: Instant,
}

/// How a connection fares.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Fine,
    /// Nothing was asked for too long.
    Idle,
    /// Nothing was ever asked, or the client takes nothing of an answer.
    Dead,
}

impl Default for Life {
    fn default() -> Self {
        Self { now: Mutex::new(Now { open: Vec::new(), next: 0, quiet_since: Instant::now() }), lingers: Arc::default() }
    }
}

impl Life {
    fn begin(life: &Arc<Self>) -> Exchange {
        let mut now = life.now.lock();
        let id = now.next;
        now.next += 1;
        now.open.push((id, None));
        Exchange { life: Arc::clone(life), id }
    }

    fn state(&self, limits: &Limits) -> State {
        let now = self.now.lock();
        let stalls = |since: &Option<Instant>| since.is_some_and(|since| since.elapsed() > limits.stall);
        if now.open.iter().any(|(_, since)| stalls(since)) {
            return State::Dead;
        }
        match now.open.is_empty() && now.quiet_since.elapsed() > limits.idle {
            false => State::Fine,
            // Before the version of HTTP is known, no other time limit holds.
            true if now.next == 0 => State::Dead,
            true => State::Idle,
        }
    }
}

/// A request and its answer.
#[derive(Debug)]
struct Exchange {
    life: Arc<Life>,
    id: u64,
}

impl Exchange {
    /// From now on it is the client's turn, or not.
    fn waits(&self, since: Option<Instant>) {
        let mut now = self.life.now.lock();
        if let Some((_, waits)) = now.open.iter_mut().find(|(id, _)| *id == self.id) {
            *waits = since;
        }
    }

    fn watch(self, response: Response<Body>) -> Response<Watched> {
        // What is left of the request may still be coming in.
        if response.headers().get(CONNECTION).is_some_and(|value| value == "close") {
            self.life.lingers.store(true, Ordering::Relaxed);
        }
        self.waits(Some(Instant::now()));
        response.map(|body| Watched { body, exchange: self })
    }
}

impl Drop for Exchange {
    fn drop(&mut self) {
        let mut now = self.life.now.lock();
        now.open.retain(|(id, _)| *id != self.id);
        now.quiet_since = Instant::now();
    }
}

/// The body of an answer on its way to the client.
#[derive(Debug)]
struct Watched {
    body: Body,
    exchange: Exchange,
}

impl HttpBody for Watched {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, axum::Error>>> {
        let this = self.get_mut();
        let polled = Pin::new(&mut this.body).poll_frame(cx);
        // While we have nothing to say, the client cannot be late.
        this.exchange.waits(matches!(polled, Poll::Ready(Some(Ok(_)))).then(Instant::now));
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

#[cfg(test)]
#[path = "http_tests.rs"]
mod tests;
