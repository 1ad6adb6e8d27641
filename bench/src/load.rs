//! Generates load: closed loop (each connection sends its next request after the last response) and open loop (requests start at a given
//! rate, regardless of the server; latency counts from when a request *should* have started, so that stalls are not hidden).

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::http::{Conn, Reply};
use crate::stats::{histogram, record};
use crate::workload::{Dialect, Workload};

/// A server and an API key; the key is empty for none.
#[derive(Clone, Debug)]
pub(crate) struct Target {
    pub(crate) addr: SocketAddr,
    pub(crate) key: String,
}

#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    Closed,
    /// Requests per second.
    Open(f64),
}

#[derive(Clone, Copy, Debug)]
pub(crate) struct Plan {
    pub(crate) connections: usize,
    pub(crate) pace: Pace,
    /// Number of messages; `None` to continue until closed.
    pub(crate) limit: Option<u64>,
    pub(crate) work: Workload,
}

/// Results that the clients of a load saw.
#[derive(Debug)]
pub(crate) struct Outcome {
    /// 202 responses in the window.
    pub(crate) count: u64,
    pub(crate) window: Duration,
    /// Latencies of the 202 responses in the window.
    pub(crate) latency: Histogram<u64>,
    /// All results other than a 202, by status or kind of failure, of the whole load.
    pub(crate) errors: BTreeMap<String, u64>,
    pub(crate) first_error: Option<String>,
    /// Requests that failed with an unknown outcome.
    pub(crate) ambiguous: u64,
    /// Messages requested by the whole load, numbered from 0.
    pub(crate) issued: u64,
    /// Ids of all 202 responses of the whole load.
    pub(crate) ids: Vec<Box<str>>,
    pub(crate) first_accept: Option<Instant>,
}

impl Outcome {
    /// Returns 202 responses per second in the window.
    pub(crate) fn rate(&self) -> f64 {
        self.count as f64 / self.window.as_secs_f64()
    }
}

#[derive(Debug)]
struct Shared {
    plan: Plan,
    target: Target,
    start: Instant,
    opened: OnceLock<Instant>,
    closed: OnceLock<Instant>,
    next: AtomicU64,
    /// Upper bound of request numbers, exclusive.
    end: AtomicU64,
    /// Open loop: due requests that no connection has taken.
    due: Semaphore,
}

impl Shared {
    fn intended(&self, n: u64) -> Instant {
        match self.plan.pace {
            Pace::Closed => Instant::now(),
            Pace::Open(rate) => self.start + Duration::from_secs_f64(n as f64 / rate),
        }
    }

    /// Returns whether a request counts. Closed loop: its response is in the window. Open loop: its intended start is in the window,
    /// however late the response.
    fn counts(&self, intended: Instant) -> bool {
        let Some(opened) = self.opened.get() else {
            return false;
        };
        match self.plan.pace {
            Pace::Closed => self.closed.get().is_none(),
            Pace::Open(_) => intended >= *opened,
        }
    }

    /// Open loop: makes requests due until the window closes. On a separate thread, because async timers have a resolution of a
    /// millisecond.
    fn issue(&self, rate: f64) {
        let mut issued = 0;
        while self.closed.get().is_none() && issued < self.end.load(Ordering::Relaxed) {
            let due = (self.start.elapsed().as_secs_f64() * rate) as u64 + 1;
            let due = due.min(self.end.load(Ordering::Relaxed));
            self.due.add_permits(usize::try_from(due - issued).expect("few at a time"));
            issued = due;
            std::thread::sleep(Duration::from_micros(100));
        }
        self.end.store(issued, Ordering::Relaxed);
        // One more for each connection, which then finds no request and ends.
        self.due.add_permits(self.plan.connections);
    }
}

/// A load running in the background.
#[derive(Debug)]
pub(crate) struct Load {
    shared: Arc<Shared>,
    clients: JoinSet<Tally>,
}

impl Load {
    pub(crate) fn start(target: Target, plan: Plan) -> Self {
        let shared = Arc::new(Shared {
            plan,
            target,
            start: Instant::now(),
            opened: OnceLock::new(),
            closed: OnceLock::new(),
            next: AtomicU64::new(0),
            end: AtomicU64::new(plan.limit.map_or(u64::MAX, |limit| limit / plan.work.each)),
            due: Semaphore::new(0),
        });
        if let Pace::Open(rate) = plan.pace {
            let shared = Arc::clone(&shared);
            std::thread::spawn(move || shared.issue(rate));
        }
        let mut clients = JoinSet::new();
        for _ in 0..plan.connections {
            clients.spawn(client(Arc::clone(&shared)));
        }
        Self { shared, clients }
    }

    /// Starts to count requests.
    pub(crate) fn open_window(&self) {
        self.shared.opened.get_or_init(Instant::now);
    }

    /// Ends the load after the requests in flight and, in an open loop, those that are due.
    pub(crate) async fn close(self) -> Outcome {
        let closed = *self.shared.closed.get_or_init(Instant::now);
        self.join(Some(closed)).await
    }

    /// Runs a load with a limit; all requests count.
    pub(crate) async fn run(target: Target, plan: Plan) -> Outcome {
        debug_assert!(plan.limit.is_some(), "a load without a limit never ends");
        let load = Self::start(target, plan);
        load.shared.opened.get_or_init(|| load.shared.start);
        load.join(None).await
    }

    /// Without `closed`, the window ends with the last response.
    async fn join(mut self, closed: Option<Instant>) -> Outcome {
        let mut all = Tally::default();
        while let Some(tally) = self.clients.join_next().await {
            all.add(tally.expect("a client does not panic"));
        }
        let closed = closed.unwrap_or_else(Instant::now);
        let opened = self.shared.opened.get().copied().unwrap_or(closed);
        Outcome {
            count: all.latency.len(),
            window: closed - opened,
            latency: all.latency,
            errors: all.errors,
            first_error: all.first_error,
            ambiguous: all.ambiguous,
            // Each client takes one number past the end.
            issued: self.shared.next.load(Ordering::Relaxed).min(self.shared.end.load(Ordering::Relaxed)) * self.shared.plan.work.each,
            ids: all.ids,
            first_accept: all.first_accept,
        }
    }
}

#[derive(Debug)]
struct Tally {
    latency: Histogram<u64>,
    errors: BTreeMap<String, u64>,
    first_error: Option<String>,
    ambiguous: u64,
    ids: Vec<Box<str>>,
    first_accept: Option<Instant>,
}

impl Default for Tally {
    fn default() -> Self {
        Self { latency: histogram(), errors: BTreeMap::new(), first_error: None, ambiguous: 0, ids: Vec::new(), first_accept: None }
    }
}

impl Tally {
    fn add(&mut self, other: Self) {
        self.latency.add(other.latency).expect("histograms of one kind");
        for (kind, count) in other.errors {
            *self.errors.entry(kind).or_default() += count;
        }
        self.first_error = self.first_error.take().or(other.first_error);
        self.ambiguous += other.ambiguous;
        self.ids.extend(other.ids);
        self.first_accept = match (self.first_accept, other.first_accept) {
            (Some(a), Some(b)) => Some(a.min(b)),
            (a, b) => a.or(b),
        };
    }

    fn fail(&mut self, kind: String, what: impl FnOnce() -> String) {
        *self.errors.entry(kind).or_default() += 1;
        self.first_error.get_or_insert_with(what);
    }

    /// Records a response and returns how many messages it accepted. Kannel returns no ids: the request number replaces them.
    fn reply(&mut self, n: u64, work: &Workload, reply: &Reply<'_>) -> u64 {
        let ids: Vec<Box<str>> = match work.dialect {
            _ if reply.status != if work.each > 1 { 200 } else { 202 } => Vec::new(),
            Dialect::Nuncio => message_ids(reply.body, work.each),
            Dialect::Kannel { .. } => vec![n.to_string().into_boxed_str()],
        };
        let accepted = ids.len() as u64;
        if accepted > 0 {
            self.ids.extend(ids);
            self.first_accept.get_or_insert_with(Instant::now);
        }
        if accepted == work.each {
            return accepted;
        }
        // A server error can follow the commit.
        self.ambiguous += if reply.status >= 500 || reply.status == 202 { work.each } else { 0 };
        self.fail(reply.status.to_string(), || {
            let body = &reply.body[..reply.body.len().min(300)];
            format!("{} {}", reply.status, String::from_utf8_lossy(body))
        });
        accepted
    }
}

async fn client(shared: Arc<Shared>) -> Tally {
    let mut tally = Tally::default();
    let (mut body, mut request) = (Vec::new(), Vec::new());
    let mut open = None;
    while let Some((n, intended)) = next(&shared).await {
        let mut conn = match open.take() {
            Some(conn) => conn,
            None => match Conn::open(shared.target.addr).await {
                Ok(conn) => conn,
                Err(e) => {
                    tally.fail(format!("connect: {}", e.kind()), || e.to_string());
                    tokio::time::sleep(Duration::from_millis(10)).await;
                    continue;
                }
            },
        };
        shared.plan.work.write_request(n, &shared.target.key, &mut body, &mut request);
        match conn.exchange(&request).await {
            Ok(reply) => {
                let accepted = tally.reply(n, &shared.plan.work, &reply);
                if shared.counts(intended) {
                    (0..accepted).for_each(|_| record(&mut tally.latency, intended.elapsed()));
                }
                open = Some(conn);
            }
            Err(e) => {
                tally.ambiguous += shared.plan.work.each;
                tally.fail(format!("io: {}", e.kind()), || e.to_string());
            }
        }
    }
    tally
}

/// Returns the next request's number and its intended start; `None` at the end.
async fn next(shared: &Shared) -> Option<(u64, Instant)> {
    match shared.plan.pace {
        Pace::Closed if shared.closed.get().is_some() => return None,
        Pace::Closed => {}
        Pace::Open(_) => shared.due.acquire().await.ok()?.forget(),
    }
    let n = shared.next.fetch_add(1, Ordering::Relaxed);
    (n < shared.end.load(Ordering::Relaxed)).then(|| (n, shared.intended(n)))
}

/// Finds message ids in a response by their prefix, since parsing the body would cost more than sending the request. Returns at most
/// `most`: after the id of a single message, the body can name others.
fn message_ids(body: &[u8], most: u64) -> Vec<Box<str>> {
    const PREFIX: &str = "msg_";
    let text = std::str::from_utf8(body).unwrap_or_default();
    let ids = text.split("\"id\":\"").skip(1).filter(|rest| rest.starts_with(PREFIX)).filter_map(|rest| rest.split('"').next());
    ids.take(usize::try_from(most).unwrap_or(usize::MAX)).map(Box::from).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::atomic::AtomicBool;

    use axum::Router;
    use axum::http::StatusCode;
    use axum::routing::post;
    use tokio::net::TcpListener;

    use super::*;
    use crate::workload::Recipients;

    async fn serve(router: Router) -> Target {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let addr = listener.local_addr().unwrap();
        tokio::spawn(async move { axum::serve(listener, router).await });
        Target { addr, key: String::new() }
    }

    fn plan(pace: Pace, limit: u64) -> Plan {
        let work = Workload::sms(Recipients::Pool(10), 1);
        Plan { connections: 4, pace, limit: Some(limit), work }
    }

    #[tokio::test]
    async fn a_closed_loop_sends_exactly_what_was_asked() {
        let target = serve(crate::hello::router(400)).await;
        let outcome = Load::run(target, plan(Pace::Closed, 1000)).await;
        assert_eq!((outcome.count, outcome.errors.len(), outcome.ambiguous), (1000, 0, 0));
        assert_eq!(outcome.ids.iter().collect::<HashSet<_>>().len(), 1000);
        assert_eq!(outcome.latency.len(), 1000);
        assert!(outcome.rate() > 0.0);
    }

    #[tokio::test]
    async fn an_open_loop_keeps_its_rate() {
        let target = serve(crate::hello::router(400)).await;
        let outcome = Load::run(target, plan(Pace::Open(1000.0), 200)).await;
        assert_eq!((outcome.count, outcome.errors.len(), outcome.issued), (200, 0, 200));
        // The last of 200 requests is due after 199 ms; the upper bound leaves room for a busy machine.
        let took = outcome.window.as_secs_f64();
        assert!((0.199..5.0).contains(&took), "{took} s");
    }

    /// One connection, and a server that delays its first response by 300 ms: the latencies of requests due meanwhile must include the
    /// wait.
    #[tokio::test]
    async fn an_open_loop_counts_from_the_intended_start() {
        static STALLED: AtomicBool = AtomicBool::new(false);
        let stall = post(async || {
            if !STALLED.swap(true, Ordering::Relaxed) {
                tokio::time::sleep(Duration::from_millis(300)).await;
            }
            (StatusCode::ACCEPTED, r#"{"message":{"id":"msg_1"}}"#)
        });
        let target = serve(Router::new().route("/v1/messages", stall)).await;
        let plan = Plan { connections: 1, ..plan(Pace::Open(1000.0), 100) };
        let outcome = Load::run(target, plan).await;
        let median = outcome.latency.value_at_quantile(0.5);
        assert!(median > 150_000, "the median hides the stall: {median} µs");
    }

    #[tokio::test]
    async fn what_is_not_a_202_is_an_error_and_no_rate() {
        let busy = post(async || (StatusCode::SERVICE_UNAVAILABLE, "busy"));
        let target = serve(Router::new().route("/v1/messages", busy)).await;
        let outcome = Load::run(target, plan(Pace::Closed, 20)).await;
        assert_eq!((outcome.count, outcome.ambiguous), (0, 20));
        assert_eq!(outcome.errors, BTreeMap::from([("503".to_owned(), 20)]));
        assert_eq!(outcome.first_error.as_deref(), Some("503 busy"));
    }

    #[tokio::test]
    async fn only_the_window_counts_but_every_id_is_kept() {
        let target = serve(crate::hello::router(400)).await;
        let mut endless = plan(Pace::Closed, 0);
        endless.limit = None;
        let load = Load::start(target, endless);
        while load.shared.next.load(Ordering::Relaxed) < 500 {
            tokio::task::yield_now().await;
        }
        load.open_window();
        let opened = load.shared.next.load(Ordering::Relaxed);
        while load.shared.next.load(Ordering::Relaxed) < opened + 500 {
            tokio::task::yield_now().await;
        }
        let outcome = load.close().await;
        assert!(outcome.count >= 400 && outcome.count + 400 <= outcome.ids.len() as u64);
    }

    #[test]
    fn an_id_is_found_wherever_it_stands() {
        let none: [Box<str>; 0] = [];
        assert_eq!(message_ids(br#"{"message":{"to":"+1","id":"msg_0x","s":1,"of":{"id":"msg_1x"}}}"#, 1), ["msg_0x".into()]);
        assert_eq!(message_ids(br#"{"results":[{"id":"msg_0x"},{"id":"msg_1x"}]}"#, 2), ["msg_0x".into(), "msg_1x".into()]);
        assert_eq!(message_ids(br#"{"message":{"id":"con_1"}}"#, 1), none);
        assert_eq!(message_ids(b"\xff", 1), none);
    }
}
