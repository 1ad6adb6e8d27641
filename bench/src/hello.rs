//! The baseline: a bare axum server that parses the same body and returns a 202 of the same size. It stores, checks and sends nothing.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use anyhow::{Context as _, Result, ensure};
use axum::extract::State;
use axum::http::StatusCode;
use axum::routing::post;
use axum::{Json, Router};
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::net::TcpListener;
use tokio::process::{Child, Command};

#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Where to listen; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// Bytes of a response body (at least 100; less is rounded up).
    #[arg(long, default_value_t = 400)]
    body_bytes: usize,
}

#[derive(Deserialize)]
struct Send {
    to: String,
    channel: Option<String>,
    text: String,
}

#[derive(Serialize)]
struct Sent {
    message: Message,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Message {
    id: String,
    status: &'static str,
    to: String,
    channel: String,
    padding: &'static str,
}

struct Shared {
    count: AtomicU64,
    padding: &'static str,
}

impl Shared {
    fn answer(&self, to: String, channel: String) -> Sent {
        let n = self.count.fetch_add(1, Ordering::Relaxed);
        let id = format!("msg_{n:026}");
        Sent { message: Message { id, status: "queued", to, channel, padding: self.padding } }
    }
}

async fn send(State(shared): State<Arc<Shared>>, Json(body): Json<Send>) -> Result<(StatusCode, Json<Sent>), StatusCode> {
    if body.text.is_empty() {
        return Err(StatusCode::BAD_REQUEST);
    }
    let answer = shared.answer(body.to, body.channel.unwrap_or_default());
    Ok((StatusCode::ACCEPTED, Json(answer)))
}

/// Returns the baseline's routes, with response bodies of `body_bytes`.
pub(crate) fn router(body_bytes: usize) -> Router {
    let mut shared = Shared { count: AtomicU64::new(0), padding: "" };
    let bare = serde_json::to_vec(&shared.answer("+34610000000".into(), "sms".into()));
    let bare = bare.expect("plain strings").len();
    // Leaked once per process.
    shared.padding = "x".repeat(body_bytes.saturating_sub(bare)).leak();
    Router::new().route("/v1/messages", post(send)).with_state(Arc::new(shared))
}

/// Serves until killed. Prints the address on the first line.
pub(crate) async fn serve(args: Args) -> Result<()> {
    let listener = TcpListener::bind(args.listen).await.context("cannot listen")?;
    println!("{}", listener.local_addr()?);
    axum::serve(listener, router(args.body_bytes)).await.context("serving")
}

/// The baseline in a separate process, which stops with its owner.
#[derive(Debug)]
pub(crate) struct Hello {
    pub(crate) addr: SocketAddr,
    _child: Child,
}

impl Hello {
    /// Starts this program as `hello`.
    pub(crate) async fn start(body_bytes: usize) -> Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["hello", "--body-bytes", &body_bytes.to_string()])
            .stdout(std::process::Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .context("cannot start the baseline")?;
        let out = child.stdout.take().context("the baseline has no output")?;
        let mut line = String::new();
        BufReader::new(out).read_line(&mut line).await?;
        ensure!(!line.is_empty(), "the baseline ended at once");
        Ok(Self { addr: line.trim().parse()?, _child: child })
    }
}
