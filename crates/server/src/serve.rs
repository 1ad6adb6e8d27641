//! `nuncio serve`.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use axum::extract::ConnectInfo;
use axum::http::Request;
use axum::serve::Listener;
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto;
use nuncio_api::{ApiLimits, ApiState};
use nuncio_domain::Ids;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::{JoinHandle, JoinSet};
use tower::Service as _;

use crate::config::Config;
use crate::data::{DataDir, Lock};
use crate::post_room::PostRoom;
use crate::wiring::{self, Node};
use crate::{admin, system};

/// How long a client may take to send the head of a request, and a connection may stand idle.
const HEAD: Duration = Duration::from_secs(75);

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
    post_room: Option<PostRoom>,
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
            wiring::registry(config, nuncio_core::mail_tokens(&sealer))?,
            sealer,
            ids,
            wiring::dispatch_config(config)?,
            config.server.public_url(&address.to_string()),
        )?;
        data.check_keys(&config.storage, &node.core).await?;
        admin::project(&node.core, None).await?;
        node.dispatch.start().await?;
        let loops = tokio::spawn({
            let dispatch = node.dispatch.clone();
            async move { dispatch.run().await }
        });
        let socket = lock.is_some().then(|| serve_admin(&node, &data));
        let post_room = PostRoom::open(&node, &config.email).await?;
        let limits = ApiLimits {
            per_minute: config.api.rate_limit.per_minute,
            burst: config.api.rate_limit.burst,
            max_in_flight_bytes: config.api.max_in_flight_bytes,
        };
        let state = ApiState { core: node.core.clone(), metrics: Arc::new(move || metrics.render()), limits };
        let (stop, stopped) = watch::channel(false);
        let http = tokio::spawn(serve_http(listener, wiring::router(state), HEAD, stopped));
        let patience = Duration::from_secs(config.server.shutdown_seconds);
        Ok(Self { node, address, data, stop, http, loops, socket, post_room, patience, _lock: lock })
    }

    /// Stops accepting, finishes what is under way, and closes the database. Requests that are not done in time are cut off.
    pub(crate) async fn stop(mut self) -> anyhow::Result<()> {
        let began = Instant::now();
        self.node.core.end_streams();
        self.stop.send_replace(true);
        if let Some(post_room) = self.post_room.take()
            && tokio::time::timeout(self.patience, post_room.close()).await.is_err()
        {
            tracing::warn!("mail is still coming in at shutdown; it is cut off, and will be brought again");
        }
        match tokio::time::timeout(self.patience.saturating_sub(began.elapsed()), &mut self.http).await {
            Ok(served) => served?,
            Err(_) => {
                tracing::warn!("requests are still under way at shutdown; they are cut off");
                self.http.abort();
            }
        }
        self.node.dispatch.stop(self.patience.saturating_sub(began.elapsed())).await;
        self.loops.await?;
        if let Some(socket) = self.socket {
            socket.abort();
            let _ = std::fs::remove_file(self.data.socket());
        }
        self.node.core.store().close().await;
        Ok(())
    }
}

/// Serves until `stopped`, and then what is under way to its end. Dropping it cuts that off.
async fn serve_http(mut listener: TcpListener, router: axum::Router, head: Duration, mut stopped: watch::Receiver<bool>) {
    let mut connections = JoinSet::new();
    loop {
        let (io, peer) = tokio::select! {
            accepted = Listener::accept(&mut listener) => accepted,
            Some(_) = connections.join_next() => continue,
            _ = stopped.wait_for(|stop| *stop) => break,
        };
        drop(io.set_nodelay(true));
        connections.spawn(serve_connection(io, peer, router.clone(), head, stopped.clone()));
    }
    drop(listener);
    while connections.join_next().await.is_some() {}
}

async fn serve_connection(io: TcpStream, peer: SocketAddr, router: axum::Router, head: Duration, mut stopped: watch::Receiver<bool>) {
    let spoken = Arc::new(AtomicBool::new(false));
    let heard = Arc::clone(&spoken);
    let service = service_fn(move |mut request: Request<Incoming>| {
        heard.store(true, Ordering::Relaxed);
        request.extensions_mut().insert(ConnectInfo(peer));
        router.clone().call(request)
    });
    let mut server = auto::Builder::new(TokioExecutor::new());
    server.http1().timer(TokioTimer::new()).header_read_timeout(head);
    let mut connection = pin!(server.serve_connection(TokioIo::new(io), service));
    let mut silence = pin!(tokio::time::sleep(head));
    let mut waits = true;
    loop {
        tokio::select! {
            _ = connection.as_mut() => return, // a client that went away is no news
            // Before the version of HTTP is known, no other time limit holds.
            () = silence.as_mut(), if waits => match spoken.load(Ordering::Relaxed) {
                true => waits = false,
                false => return,
            },
            _ = stopped.wait_for(|stop| *stop) => break,
        }
    }
    connection.as_mut().graceful_shutdown();
    let _ = connection.await;
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

#[cfg(test)]
mod tests {
    use axum::routing::get;
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

    use super::*;

    const MOMENT: Duration = Duration::from_millis(50);

    async fn serving(head: Duration) -> (SocketAddr, watch::Sender<bool>, JoinHandle<()>) {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let router = axum::Router::new()
            .route("/peer", get(|ConnectInfo(peer): ConnectInfo<SocketAddr>| async move { peer.ip().to_string() }))
            .route("/never", get(std::future::pending::<()>));
        let (stop, stopped) = watch::channel(false);
        (address, stop, tokio::spawn(serve_http(listener, router, head, stopped)))
    }

    async fn says(address: SocketAddr, text: &str) -> TcpStream {
        let mut client = TcpStream::connect(address).await.expect("a connection");
        client.write_all(text.as_bytes()).await.expect("written");
        client
    }

    #[tokio::test]
    async fn who_never_ends_the_head_of_a_request_is_hung_up_on() {
        let (address, _stop, _http) = serving(MOMENT).await;
        for beginning in ["", "P", "PRI * HTTP/2.0", "GET /peer HTTP/1.1\r\nhost: a\r\nx: "] {
            let mut answer = Vec::new();
            let _ = says(address, beginning).await.read_to_end(&mut answer).await;
            assert!(!answer.starts_with(b"HTTP/1.1 200"), "{beginning:?}");
        }
        let mut answer = String::new();
        let client = &mut says(address, "GET /peer HTTP/1.1\r\nhost: a\r\n\r\n").await;
        client.read_to_string(&mut answer).await.expect("an answer, and then the end");
        assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("127.0.0.1"), "{answer}");
    }

    #[tokio::test]
    async fn an_idle_connection_does_not_hold_up_the_end_and_a_request_does() {
        let (address, stop, http) = serving(HEAD).await;
        let _idle = says(address, "").await;
        stop.send_replace(true);
        http.await.expect("it ends");

        let (address, stop, mut http) = serving(HEAD).await;
        let mut client = says(address, "GET /peer HTTP/1.1\r\nhost: a\r\n\r\nGET /never HTTP/1.1\r\nhost: a\r\n\r\n").await;
        client.read_u8().await.expect("the first is answered, so the second is under way");
        stop.send_replace(true);
        assert!(tokio::time::timeout(MOMENT, &mut http).await.is_err());
        http.abort();
        let mut rest = Vec::new();
        let _ = client.read_to_end(&mut rest).await; // this ends
    }
}
