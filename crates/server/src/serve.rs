//! `nuncio serve`.

use std::net::SocketAddr;
use std::time::Duration;

use anyhow::{Context as _, bail};
use nuncio_api::{ApiLimits, ApiState};
use nuncio_domain::Ids;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::data::{DataDir, Lock};
use crate::wiring::{self, Node};
use crate::{admin, system};

/// A running server.
#[derive(Debug)]
pub(crate) struct Server {
    pub(crate) node: Node,
    pub(crate) address: SocketAddr,
    pub(crate) data: DataDir,
    stop: watch::Sender<bool>,
    http: JoinHandle<anyhow::Result<()>>,
    loops: JoinHandle<()>,
    socket: Option<JoinHandle<()>>,
    patience: Duration,
    _lock: Option<Lock>,
}

impl Server {
    /// Opens everything and begins to listen. When this returns, requests are answered.
    pub(crate) async fn start(config: &Config) -> anyhow::Result<Self> {
        let ids = system::ids();
        let metrics = metrics_exporter_prometheus::PrometheusBuilder::new().install_recorder().context("metrics")?;
        let data = DataDir::open(&config.storage.data)?;
        let embedded = config.storage.database.is_empty();
        let lock = if embedded { Some(lock(&data)?) } else { None };
        let sealer = data.sealer(&config.storage, &*ids.entropy)?;
        let listener = TcpListener::bind(&config.server.listen)
            .await
            .with_context(|| format!("cannot listen on {}; choose another address with --listen", config.server.listen))?;
        let address = listener.local_addr()?;
        let store = nuncio_store_sql::open(&data.target(&config.storage)).await?;
        let node = Node::new(
            store,
            wiring::registry(),
            sealer,
            ids,
            wiring::dispatch_config(config)?,
            config.server.public_url(&address.to_string()),
        )?;
        admin::project(&node.core, None).await?;
        node.dispatch.start().await?;
        let loops = tokio::spawn({
            let dispatch = node.dispatch.clone();
            async move { dispatch.run().await }
        });
        let socket = lock.is_some().then(|| serve_admin(&node, &data));
        let limits = ApiLimits {
            per_minute: config.api.rate_limit.per_minute,
            burst: config.api.rate_limit.burst,
            max_in_flight_bytes: config.api.max_in_flight_bytes,
        };
        let state = ApiState { core: node.core.clone(), metrics: std::sync::Arc::new(move || metrics.render()), limits };
        let (stop, stopped) = watch::channel(false);
        let http = tokio::spawn(serve_http(listener, wiring::router(state), stopped));
        let patience = Duration::from_secs(config.server.shutdown_seconds);
        Ok(Self { node, address, data, stop, http, loops, socket, patience, _lock: lock })
    }

    /// Stops accepting, finishes what is under way, and closes the database.
    pub(crate) async fn stop(self) -> anyhow::Result<()> {
        self.stop.send_replace(true);
        self.http.await??;
        self.node.dispatch.stop(self.patience).await;
        self.loops.await?;
        if let Some(socket) = self.socket {
            socket.abort();
            let _ = std::fs::remove_file(self.data.socket());
        }
        self.node.core.store().close().await;
        Ok(())
    }
}

async fn serve_http(listener: TcpListener, router: axum::Router, mut stopped: watch::Receiver<bool>) -> anyhow::Result<()> {
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let done = async move {
        let _ = stopped.wait_for(|stop| *stop).await;
    };
    use axum::serve::ListenerExt as _;
    let listener = listener.tap_io(|io| drop(io.set_nodelay(true)));
    axum::serve(listener, service).with_graceful_shutdown(done).await?;
    Ok(())
}

fn serve_admin(node: &Node, data: &DataDir) -> JoinHandle<()> {
    let (core, path) = (node.core.clone(), data.socket());
    tokio::spawn(async move {
        if let Err(error) = admin::listen(core, &path).await {
            tracing::error!(%error, "the admin socket is not available; commands cannot reach this server");
        }
    })
}

fn lock(data: &DataDir) -> anyhow::Result<Lock> {
    match data.lock()? {
        Some(lock) => Ok(lock),
        None => bail!("another nuncio works on this data folder; stop it, or choose another folder with --data"),
    }
}

/// Serves until the process is asked to end.
pub(crate) async fn run(config: &Config) -> anyhow::Result<()> {
    let server = Server::start(config).await?;
    tracing::info!(address = %server.address, "listening");
    eprintln!("nuncio listens on http://{}", server.address);
    asked_to_end().await?;
    tracing::info!("stopping");
    server.stop().await
}

/// Returns at SIGINT or SIGTERM.
pub(crate) async fn asked_to_end() -> anyhow::Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut term = signal(SignalKind::terminate())?;
    tokio::select! {
        _ = term.recv() => {}
        result = tokio::signal::ctrl_c() => result?,
    }
    Ok(())
}

/// Clock and randomness of a command that does not serve.
pub(crate) fn ids() -> Ids {
    system::ids()
}
