//! `nuncio serve`.

use std::io::Write as _;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use nuncio_api::{ApiLimits, ApiState, Pace};
use nuncio_domain::Ids;
use nuncio_domain::message::Status;
use nuncio_node::Node;
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::{Config, reachable};
use crate::data::{ADDRESS, DataDir, Lock, check_installed, write_private};
use crate::mail_listener::MailListener;

use crate::wiring;
use crate::{admin, http, people, system};

/// How often to check that all parts of the server run.
const LOOK: Duration = Duration::from_secs(1);

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) node: Node,
    pub(crate) address: SocketAddr,
    pub(crate) data: DataDir,
    stop: watch::Sender<bool>,
    http: JoinHandle<()>,
    loops: JoinHandle<()>,
    socket: Option<JoinHandle<()>>,
    mail_listener: Option<MailListener>,
    patience: Duration,
    _lock: Option<Lock>,
}

impl Server {
    /// Opens everything and starts listening. When it returns, requests are served.
    pub(crate) async fn start(config: &Config) -> anyhow::Result<Self> {
        let ids = system::ids();
        let metrics = metrics_exporter_prometheus::PrometheusBuilder::new().install_recorder().context("metrics")?;
        register_counters();
        check_installed(&config.storage, true)?;
        let data = DataDir::open(&config.storage.data)?;
        let embedded = config.storage.database.is_empty();
        let lock = if embedded { Some(lock(&data)?) } else { None };
        let listener = TcpListener::bind(&config.server.listen)
            .await
            .with_context(|| format!("cannot listen on {}; choose another address with --listen", config.server.listen))?;
        let address = listener.local_addr()?;
        let for_mail = MailListener::bind(&config.email).await?;
        let store = data.open_store(&config.storage).await?;
        let (sealer, keys) = data.sealer(&config.storage, &*ids.entropy)?;
        let node = wiring::node(config, store, sealer, ids, &address.to_string())?;
        data.check_keys(keys, &node.core).await?;
        admin::project(&node.core, None).await?;
        node.start().await?;
        // Whatever can fail comes before the first attempt starts.
        let mail_listener = match for_mail {
            Some(listener) => Some(MailListener::open(&node, &config.email, listener).await?),
            None => None,
        };
        // Only commands in this folder read it; a full disk must not keep the server from starting.
        if lock.is_some()
            && let Err(error) = write_private(&data.file(ADDRESS), &address.to_string())
        {
            tracing::warn!(error = %format_args!("{error:#}"), "failed to write address; commands in this folder need --server");
        }
        let loops = tokio::spawn({
            let node = node.clone();
            async move { node.run().await }
        });
        let socket = lock.is_some().then(|| serve_admin(&node, &data));
        let limits = ApiLimits {
            per_minute: config.api.rate_limit.per_minute,
            burst: config.api.rate_limit.burst,
            wrong_keys_per_minute: config.api.rate_limit.wrong_keys_per_minute,
            max_in_flight_bytes: config.api.max_in_flight_bytes,
            pace: Pace { bytes_per_second: config.server.min_bytes_per_second, ..Pace::default() },
        };
        let state = ApiState { core: node.core.clone(), metrics: Arc::new(move || metrics.render()), limits };
        let (stop, stopped) = watch::channel(false);
        let limits = http::Limits::new(&config.server, system::raise_open_files());
        let proxies = config.server.proxies().map_err(anyhow::Error::msg)?;
        let http = tokio::spawn(http::serve(listener, wiring::router(state), limits, proxies, stopped));
        let patience = Duration::from_secs(config.server.shutdown_seconds);
        Ok(Self { node, address, data, stop, http, loops, socket, mail_listener, patience, _lock: lock })
    }

    /// Starts unless a signal comes first.
    pub(crate) async fn start_unless(signals: &mut Signals, config: &Config) -> anyhow::Result<Option<Self>> {
        tokio::select! {
            started = Self::start(config) => started.map(Some),
            () = signals.received() => Ok(None),
        }
    }

    /// Waits for a signal, or until a part of the server has panicked.
    pub(crate) async fn until_end(&self, signals: &mut Signals) {
        tokio::select! {
            () = signals.received() => {}
            () = self.has_failed() => tracing::error!("a part of the server panicked; stopping"),
        }
    }

    /// Waits until a part has ended by itself, which it does only by a panic. The rest would refuse all requests; a supervisor starts the
    /// server again once it has ended.
    async fn has_failed(&self) {
        let mail = self.mail_listener.as_ref();
        while !(self.loops.is_finished() || self.http.is_finished() || mail.is_some_and(MailListener::has_ended)) {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Stops accepting, finishes requests in flight, and closes the database. Requests that are not done after half the time are aborted:
    /// the other half is for attempts, which would be unknown.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let (began, for_requests) = (Instant::now(), self.patience / 2);
        self.node.core.events().end_streams();
        self.stop.send_replace(true);
        if let Some(mail_listener) = self.mail_listener.take()
            && tokio::time::timeout(for_requests, mail_listener.close()).await.is_err()
        {
            tracing::warn!("shutdown timed out with email still arriving; aborted it, the mail server will resend");
        }
        match tokio::time::timeout(for_requests.saturating_sub(began.elapsed()), &mut self.http).await {
            Ok(served) => served?,
            Err(_) => {
                tracing::warn!("shutdown timed out with requests in flight; aborted them");
                self.http.abort();
            }
        }
        self.node.stop(self.patience.saturating_sub(began.elapsed())).await;
        self.loops.await?;
        if let Some(socket) = self.socket {
            socket.abort();
            let _ = std::fs::remove_file(self.data.socket());
            let _ = std::fs::remove_file(self.data.file(ADDRESS));
        }
        self.node.core.store().close().await;
        Ok(())
    }
}

/// Shows the counters that alerts watch from the start: the growth of one that appears with its first event cannot be seen.
fn register_counters() {
    metrics::counter!("nuncio_attempts_unknown_total").increment(0);
    metrics::counter!("nuncio_attempts_late_total").increment(0);
    metrics::counter!("nuncio_messages_accepted_total").increment(0);
    for status in Status::ALL {
        metrics::counter!("nuncio_messages_settled_total", "status" => status.as_str()).increment(0);
    }
    for outcome in ["delivered", "failed"] {
        metrics::counter!("nuncio_webhook_attempts_total", "outcome" => outcome).increment(0);
    }
    for limit in ["total", "address"] {
        metrics::counter!("nuncio_http_connections_refused_total", "limit" => limit).increment(0);
    }
}

fn serve_admin(node: &Node, data: &DataDir) -> JoinHandle<()> {
    let (core, path) = (node.core.clone(), data.socket());
    tokio::spawn(async move {
        if let Err(error) = admin::listen(core, &path).await {
            tracing::error!(error = %format_args!("{error:#}"), "failed to open admin socket; commands cannot reach this server");
        }
    })
}

fn lock(data: &DataDir) -> anyhow::Result<Lock> {
    match data.lock()? {
        Some(lock) => Ok(lock),
        None => bail!("another nuncio uses this data folder; stop it, or choose another folder with --data"),
    }
}

/// Serves until the process gets a stop signal.
pub(crate) async fn run(config: &Config) -> anyhow::Result<()> {
    let mut signals = Signals::catch()?;
    let Some(server) = Server::start_unless(&mut signals, config).await? else { return Ok(()) };
    tracing::info!(address = %server.address, "listening");
    let text = config.log.format != "json"; // a line of text would not be parsed
    if text {
        announce(format_args!("nuncio listens on http://{}", reachable(server.address)));
    }
    if let Some(link) = people::first_link(&server.node.core).await? {
        const NO_OWNER: &str = "this server has no owner yet; open this link to set one up";
        if text {
            announce(format_args!("{NO_OWNER}: {link}"));
        } else {
            tracing::warn!(%link, "{NO_OWNER}");
        }
    }
    server.until_end(&mut signals).await;
    tracing::info!("stopping");
    server.stop().await
}

/// Writes a line to standard error if possible; `eprintln!` panics if not.
pub(crate) fn announce(line: std::fmt::Arguments<'_>) {
    let _ = writeln!(std::io::stderr(), "{line}");
}

/// SIGINT, SIGTERM and SIGHUP (of a terminal that closes), caught from the start: a server that is asked to end as soon as it listens ends in
/// order, too.
pub(crate) struct Signals {
    interrupt: Signal,
    terminate: Signal,
    hang_up: Signal,
}

impl Signals {
    pub(crate) fn catch() -> anyhow::Result<Self> {
        let (interrupt, terminate, hang_up) = (SignalKind::interrupt(), SignalKind::terminate(), SignalKind::hangup());
        Ok(Self { interrupt: signal(interrupt)?, terminate: signal(terminate)?, hang_up: signal(hang_up)? })
    }

    async fn received(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
            _ = self.hang_up.recv() => {}
        }
    }
}

/// Returns clock and randomness for a command that does not serve.
pub(crate) fn ids() -> Ids {
    system::ids()
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test(flavor = "multi_thread")]
    async fn the_end_of_a_part_is_noticed() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut config = Config::default();
        folder.path().join("data").clone_into(&mut config.storage.data);
        "127.0.0.1:0".clone_into(&mut config.server.listen);
        // Takes the place of the address, which cannot be written then: that is no reason not to start.
        std::fs::create_dir_all(config.storage.data.join(ADDRESS)).expect("a folder");
        let server = Server::start(&config).await.expect("it starts");
        assert!(server.has_failed().now_or_never().is_none());
        server.loops.abort();
        tokio::time::timeout(Duration::from_secs(30), server.has_failed()).await.expect("in time");
        assert!(server.stop().await.is_err());
    }

    /// Growth from nothing is not seen in a counter that begins with its first message.
    #[test]
    fn counters_exist_before_they_count() {
        let recorder = metrics_exporter_prometheus::PrometheusBuilder::new().build_recorder();
        metrics::with_local_recorder(&recorder, register_counters);
        let shown = recorder.handle().render();
        for counter in ["nuncio_messages_accepted_total 0", "nuncio_messages_settled_total{status=\"failed\"} 0"] {
            assert!(shown.contains(counter), "{counter}: {shown}");
        }
    }

    #[tokio::test]
    async fn a_terminal_that_closes_stops_the_server() {
        let mut signals = Signals::catch().expect("handlers");
        let mut kill = std::process::Command::new("kill");
        assert!(kill.args(["-HUP", &std::process::id().to_string()]).status().expect("kill runs").success());
        tokio::time::timeout(Duration::from_secs(30), signals.received()).await.expect("the signal arrives");
    }
}
