//! Serves HTTP connections, and limits their number and idle time.

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
use axum::http::header::{CONNECTION, HOST};
use axum::http::{Request, Response, Version};
use axum::serve::Listener;
use http_body::{Frame, SizeHint};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use nuncio_api::{NoHost, Spare};
use nuncio_core::rate::subscriber;
use parking_lot::Mutex;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tower::Service as _;

use crate::config::ServerConfig;
use crate::proxies::Proxies;
use crate::wire::Wire;

/// Timeout for the head of a request, and idle timeout of a connection.
const HEAD: Duration = Duration::from_secs(75);
/// The same for a connection above the limit.
const SPARE_HEAD: Duration = Duration::from_secs(2);
/// Connections above the limit that are served at a time, so that probes get a response. Each further one replaces the oldest.
const SPARE: usize = 64;
/// How long an idle connection can take to close gracefully.
const FAREWELL: Duration = Duration::from_secs(10);
/// How long a connection without a request in flight can take to close when the server stops.
const LAST_MOMENT: Duration = Duration::from_secs(1);
/// Minimum interval of log lines about refused connections.
const REFUSAL_LOG_INTERVAL: Duration = Duration::from_secs(10);
/// Open files not used for clients: databases, providers, webhooks, the mail listener.
const OTHER_FILES: usize = 512;

/// Maximum size of a request head, in bytes; over HTTP/1 also the size of read and write buffers.
const HEAD_BYTES: u32 = 32 * 1024;
/// Concurrent requests of one HTTP/2 connection.
const STREAMS: u32 = 100;
/// Bytes that one request, and all of one HTTP/2 connection, can send before they are read.
const WINDOWS: (u32, u32) = (128 * 1024, 256 * 1024);
/// Buffered response bytes of one HTTP/2 stream.
const SEND_BUFFER: usize = 16 * 1024;
/// Limits on early resets: requests cancelled before they are accepted, and protocol violations.
const RESETS: (usize, usize) = (20, 100);
/// Interval and timeout of pings to a silent HTTP/2 client.
const PING: (Duration, Duration) = (Duration::from_secs(30), Duration::from_secs(20));

/// Limits of client connections.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Timeout for a request head, and idle timeout of a connection.
    pub idle: Duration,
    /// How long a client can stop reading a response.
    pub stall: Duration,
    /// Maximum connections.
    pub connections: usize,
    /// Maximum connections per address.
    pub per_address: usize,
    /// Maximum connections above these limits, for probes.
    pub spare: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self::new(&ServerConfig::default(), usize::MAX)
    }
}

impl Limits {
    /// Returns the configured limits, reduced to what `files` open files allow.
    pub fn new(config: &ServerConfig, files: usize) -> Self {
        let most = files.saturating_sub(OTHER_FILES).max(files / 8);
        if most < config.max_connections {
            tracing::warn!(most, configured = config.max_connections, "open file limit allows fewer connections than configured");
        }
        Self {
            idle: HEAD,
            stall: Duration::from_secs(config.stall_seconds),
            connections: config.max_connections.min(most),
            per_address: config.max_connections_per_address,
            spare: SPARE.min(files / 8),
        }
    }

    /// Interval at which a connection is checked.
    fn tick(&self) -> Duration {
        (self.idle.min(self.stall) / 4).max(Duration::from_millis(5))
    }
}

/// Serves until `stopped`, then finishes requests in flight. Dropping it aborts them.
pub async fn serve(mut listener: TcpListener, router: axum::Router, limits: Limits, proxies: Proxies, mut stopped: watch::Receiver<bool>) {
    let (limiter, mut connections, mut spare, mut log) =
        (ConnectionLimiter::default(), JoinSet::new(), VecDeque::new(), RefusalLog::default());
    loop {
        let (io, peer) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            Some(_) = connections.join_next() => continue,
            _ = stopped.wait_for(|stop| *stop) => break,
        };
        drop(io.set_nodelay(true));
        let client = Client { peer, router: router.clone(), limits, proxies: proxies.clone(), stopped: stopped.clone() };
        match limiter.admit(subscriber(peer.ip()), &limits) {
            Ok(permit) => drop(connections.spawn(client.serve(io, Some(permit)))),
            Err(full) => {
                log.refused(full, peer);
                make_room(&mut spare, limits.spare);
                let limits = Limits { idle: SPARE_HEAD.min(limits.idle), ..limits };
                spare.push_back(connections.spawn(Client { limits, ..client }.serve(io, None)));
            }
        }
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

/// Closes the oldest connections above the limit if there are too many.
fn make_room(spare: &mut VecDeque<AbortHandle>, most: usize) {
    if spare.len() >= most {
        spare.retain(|connection| !connection.is_finished());
    }
    while spare.len() >= most {
        if let Some(oldest) = spare.pop_front() {
            oldest.abort();
        }
    }
}

/// The limit reached.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Full {
    Total,
    Address,
}

/// Limits connections, in total and per address.
#[derive(Clone, Debug, Default)]
struct ConnectionLimiter(Arc<Mutex<OpenConnections>>);

#[derive(Debug, Default)]
struct OpenConnections {
    all: usize,
    by: HashMap<IpAddr, usize>,
}

/// Counts one connection until it is dropped.
#[derive(Debug)]
struct ConnectionPermit {
    limiter: ConnectionLimiter,
    address: IpAddr,
}

impl ConnectionLimiter {
    fn admit(&self, address: IpAddr, limits: &Limits) -> Result<ConnectionPermit, Full> {
        let mut open = self.0.lock();
        if open.all >= limits.connections {
            return Err(Full::Total);
        }
        if open.by.get(&address).is_some_and(|count| *count >= limits.per_address) {
            return Err(Full::Address);
        }
        open.all += 1;
        *open.by.entry(address).or_default() += 1;
        metrics::gauge!("nuncio_http_connections").set(open.all as f64);
        Ok(ConnectionPermit { limiter: self.clone(), address })
    }
}

impl Drop for ConnectionPermit {
    fn drop(&mut self) {
        let mut open = self.limiter.0.lock();
        open.all -= 1;
        metrics::gauge!("nuncio_http_connections").set(open.all as f64);
        if let Some(count) = open.by.get_mut(&self.address) {
            *count -= 1;
            if *count == 0 {
                open.by.remove(&self.address);
            }
        }
    }
}

/// Logs refused connections at intervals.
#[derive(Debug, Default)]
struct RefusalLog {
    since: u64,
    last: Option<Instant>,
}

impl RefusalLog {
    fn refused(&mut self, full: Full, peer: SocketAddr) {
        let limit = match full {
            Full::Total => "total",
            Full::Address => "address",
        };
        metrics::counter!("nuncio_http_connections_refused_total", "limit" => limit).increment(1);
        self.since += 1;
        if self.last.is_none_or(|last| last.elapsed() >= REFUSAL_LOG_INTERVAL) {
            tracing::warn!(limit, %peer, refused = self.since, "connection limit reached; rejecting connections");
            (self.since, self.last) = (0, Some(Instant::now()));
        }
    }
}

struct Client {
    peer: SocketAddr,
    router: axum::Router,
    limits: Limits,
    proxies: Proxies,
    stopped: watch::Receiver<bool>,
}

impl Client {
    /// Serves a connection until it ends; without a permit, it only gets responses to probes.
    async fn serve(self, io: TcpStream, permit: Option<ConnectionPermit>) {
        let Self { peer, router, limits, proxies, mut stopped } = self;
        let (life, is_spare) = (Arc::new(Life::default()), permit.is_none());
        let io = Wire::new(io, limits.stall, Arc::clone(&life.lingers));
        let heard = Arc::clone(&life);
        let service = service_fn(move |mut request: Request<Incoming>| {
            let exchange = Life::begin(&heard);
            let client = proxies.client(peer, request.headers());
            request.extensions_mut().insert(ConnectInfo(client));
            if is_spare {
                request.extensions_mut().insert(Spare);
            }
            if request.version() == Version::HTTP_11 && request.headers().get_all(HOST).iter().count() != 1 {
                request.extensions_mut().insert(NoHost);
            }
            let answer = router.clone().call(request);
            async move { Ok::<_, Infallible>(exchange.watch(answer.await?)) }
        });
        let server = builder(&limits);
        let server = if is_spare { server.http1_only() } else { server };
        let mut connection = pin!(server.serve_connection(TokioIo::new(io), service));
        let (mut tick, mut end, mut asked) = (tokio::time::interval(limits.tick()), None, None);
        loop {
            tokio::select! {
                _ = connection.as_mut() => return, // client disconnects are not logged
                _ = stopped.wait_for(|stop| *stop), if end.is_none() => {
                    end = Some(tokio::time::interval_at(tokio::time::Instant::now() + LAST_MOMENT, LAST_MOMENT));
                    connection.as_mut().graceful_shutdown();
                }
                () = elapsed(&mut end) => if life.is_quiet() { return },
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

/// Waits for the next tick of an interval; forever if there is none.
async fn elapsed(interval: &mut Option<tokio::time::Interval>) {
    match interval {
        Some(interval) => drop(interval.tick().await),
        None => std::future::pending().await,
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

/// State of a connection.
#[derive(Debug)]
struct Life {
    now: Mutex<Now>,
    lingers: Arc<AtomicBool>,
}

#[derive(Debug)]
struct Now {
    /// Unfinished requests, each with the time since which the client should be reading more of the response.
    open: Vec<(u64, Option<Instant>)>,
    next: u64,
    quiet_since: Instant,
}

/// Health of a connection.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Fine,
    /// Idle for too long.
    Idle,
    /// No request was ever made, or the client stopped reading a response.
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

    /// Returns whether no request is in flight. One whose head has not arrived in full does not count.
    fn is_quiet(&self) -> bool {
        self.now.lock().open.is_empty()
    }

    fn state(&self, limits: &Limits) -> State {
        let now = self.now.lock();
        let stalls = |since: &Option<Instant>| since.is_some_and(|since| since.elapsed() > limits.stall);
        if now.open.iter().any(|(_, since)| stalls(since)) {
            return State::Dead;
        }
        match now.open.is_empty() && now.quiet_since.elapsed() > limits.idle {
            false => State::Fine,
            // Until the HTTP version is detected, no other timeout applies.
            true if now.next == 0 => State::Dead,
            true => State::Idle,
        }
    }
}

/// A request and its response.
#[derive(Debug)]
struct Exchange {
    life: Arc<Life>,
    id: u64,
}

impl Exchange {
    /// Records since when the client should be reading, if it should.
    fn waits(&self, since: Option<Instant>) {
        let mut now = self.life.now.lock();
        if let Some((_, waits)) = now.open.iter_mut().find(|(id, _)| *id == self.id) {
            *waits = since;
        }
    }

    fn watch(self, response: Response<Body>) -> Response<Watched> {
        // The rest of the request body may still arrive.
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

/// A response body being sent.
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
        // The client cannot be late while there is nothing to send.
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
