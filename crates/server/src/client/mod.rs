//! The HTTP API of a node, as the commands that speak to one use it. They need no data folder, only a key.

pub(crate) mod broadcasts;
pub(crate) mod files;
pub mod import;
pub(crate) mod life;
pub(crate) mod listen;
pub(crate) mod lists;
pub(crate) mod profile;
pub(crate) mod send;
mod stream;
mod tables;

use std::io::{ErrorKind, IsTerminal as _, Write as _};
use std::time::Duration;

use anyhow::Context as _;
use futures::StreamExt as _;
use nuncio_domain::{Environment, Redacted, key, line};
use reqwest::{Client, Method, StatusCode, Url};
use serde_json::Value;

use profile::{SERVER, server_here};

/// How often a request that was cut off is repeated, and how soon.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_secs(2);

/// How long a node may take to answer. A body of an email with attachments is on its way for a while.
const PATIENCE: Duration = Duration::from_secs(60);

/// A request that came to nothing.
#[derive(Debug, thiserror::Error)]
pub enum CallError {
    /// Nobody answered.
    #[error("{server} cannot be reached: {why}; check that the server is running there{advice}")]
    Unreachable {
        /// Where the node should be.
        server: String,
        /// What happened.
        why: String,
        /// What else to do; empty or "; " and more.
        advice: String,
    },
    /// The node refused it.
    #[error("{message}")]
    Refused {
        /// The answer's status.
        status: StatusCode,
        /// What is wrong, a line a fault.
        message: String,
        /// The whole answer.
        body: Value,
    },
}

impl CallError {
    /// An answer that is no success: a line for each fault, or its message.
    pub(crate) fn refused(status: StatusCode, text: &str) -> Self {
        let body: Value = serde_json::from_str(text).unwrap_or_default();
        let faults: Vec<String> = body["details"]["errors"].as_array().into_iter().flatten().map(fault).collect();
        let message = match body["error"]["message"].as_str().or(body["message"].as_str()) {
            _ if !faults.is_empty() => faults.join("\n"),
            message => format!("{} ({status})", message.unwrap_or(text.trim())),
        };
        Self::Refused { status, message, body }
    }

    /// Whether the node asks to wait, or refuses for a while.
    fn is_passing(&self) -> bool {
        let is_busy = matches!(self, Self::Refused { status: StatusCode::SERVICE_UNAVAILABLE, .. });
        is_busy || self.is_rate_limit() || matches!(self, Self::Unreachable { .. })
    }

    /// Whether there were too many requests.
    fn is_rate_limit(&self) -> bool {
        matches!(self, Self::Refused { status: StatusCode::TOO_MANY_REQUESTS, .. })
    }

    /// Whether the node says that there is no such thing.
    pub(crate) fn is_not_found(&self) -> bool {
        matches!(self, Self::Refused { status: StatusCode::NOT_FOUND, .. })
    }
}

/// One environment of a node, opened by a key.
#[derive(Clone, Debug)]
pub struct World {
    http: Client,
    server: Url,
    key: Redacted<String>,
    /// Which environment the key opens.
    pub environment: Environment,
}

impl World {
    /// The environment that `key` opens on the node at `server`.
    ///
    /// # Errors
    ///
    /// Says that the key is no API key.
    pub fn new(server: Url, key: String) -> anyhow::Result<Self> {
        let environment = key::parse(&key).context("that is not an API key: it must begin with svc_live_ or svc_test_, and be complete")?;
        let http = Client::builder().no_proxy().build()?;
        Ok(Self { http, server, key: Redacted::new(key), environment })
    }

    /// Where a path of the API is on this node.
    pub(crate) fn url(&self, path: &str, query: &[(&str, &str)]) -> Url {
        let mut url = self.server.clone();
        url.set_path(&format!("{}{path}", self.server.path().trim_end_matches('/')));
        if !query.is_empty() {
            url.query_pairs_mut().extend_pairs(query);
        }
        url
    }

    /// Makes a request with this environment's key.
    pub(crate) fn request(&self, method: Method, url: Url) -> reqwest::RequestBuilder {
        self.http.request(method, url).bearer_auth(self.key.expose())
    }

    /// What a request without a body answers.
    pub(crate) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value, CallError> {
        self.answer(self.request(Method::GET, self.url(path, query)).timeout(PATIENCE)).await
    }

    /// What a request with a JSON body, or none, answers; `null` for an empty answer.
    pub(crate) async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, CallError> {
        let request = self.request(method, self.url(path, &[])).timeout(PATIENCE);
        self.answer(match body {
            Some(body) => request.json(body),
            None => request,
        })
        .await
    }

    /// Posts a JSON body. Returns whether something was created.
    async fn create(&self, path: &str, body: &Value) -> Result<bool, CallError> {
        let (status, _) = self.text(self.request(Method::POST, self.url(path, &[])).timeout(PATIENCE).json(body)).await?;
        Ok(status == StatusCode::CREATED)
    }

    /// Sends a request and reads its answer.
    pub(crate) async fn answer(&self, request: reqwest::RequestBuilder) -> Result<Value, CallError> {
        let (_, text) = self.text(request).await?;
        Ok(if text.is_empty() { Value::Null } else { serde_json::from_str(&text).unwrap_or(Value::String(text)) })
    }

    /// Prints what a request answers as it comes, by whole lines: a piece can end within a character.
    pub(crate) async fn copy_to_output(&self, request: reqwest::RequestBuilder) -> anyhow::Result<()> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        if !status.is_success() {
            return Err(CallError::refused(status, &response.text().await?).into());
        }
        let (mut pieces, mut lines) = (response.bytes_stream(), Vec::<u8>::new());
        while let Some(piece) = pieces.next().await {
            lines.extend_from_slice(&piece.context("the response was interrupted")?);
            let rest = lines.split_off(lines.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1));
            say_text(&String::from_utf8_lossy(&lines));
            lines = rest;
        }
        say_text(&String::from_utf8_lossy(&lines));
        Ok(())
    }

    async fn text(&self, request: reqwest::RequestBuilder) -> Result<(StatusCode, String), CallError> {
        let response = request.send().await.map_err(|error| self.unreachable(&error))?;
        let status = response.status();
        let text = response.text().await.map_err(|error| self.unreachable(&error))?;
        if status.is_success() { Ok((status, text)) } else { Err(CallError::refused(status, &text)) }
    }

    fn unreachable(&self, error: &reqwest::Error) -> CallError {
        // The chain's end is what the system said, such as "Connection refused".
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let (server, why) = (self.server.to_string(), nuncio_net::explained(&cause.to_string()));
        CallError::Unreachable { server, why, advice: self.advice() }
    }

    /// Where the server of this folder is, for a person who gave a key and no URL.
    fn advice(&self) -> String {
        let is_default = Url::parse(SERVER).is_ok_and(|usual| usual == self.server);
        match server_here().filter(|here| is_default && *here != self.server) {
            Some(here) => format!("; the server of this folder is elsewhere: add `--server {}`", here.as_str().trim_end_matches('/')),
            None => String::new(),
        }
    }
}

/// Prints a line of JSON.
pub(crate) fn say_json(value: &Value) {
    say(line::escaped_json(&value.to_string()));
}

/// Prints text as it is. On a terminal, it cannot control it.
pub(crate) fn say_text(text: &str) {
    if std::io::stdout().is_terminal() { write_out(&line::escaped(&text.replace('\r', ""))) } else { write_out(text) }
}

/// Prints a line.
pub(crate) fn say(line: impl std::fmt::Display) {
    write_out(&format!("{line}\n"));
}

/// Writes to standard output. A reader that went away, such as `head`, ends the program in peace; any other error, such as a full disk, is
/// a failure.
fn write_out(text: &str) {
    let mut output = std::io::stdout().lock();
    let Err(error) = output.write_all(text.as_bytes()).and_then(|()| output.flush()) else { return };
    if error.kind() == ErrorKind::BrokenPipe {
        std::process::exit(0);
    }
    // Not `eprintln!`, which panics if standard error is on the same full disk.
    let _ = writeln!(std::io::stderr(), "nuncio: standard output: {error}");
    std::process::exit(1);
}

/// A fault with its field. Parameters of the query are options of commands, most of the same name.
fn fault(fault: &Value) -> String {
    let (path, message) = (fault["path"].as_str().unwrap_or_default(), fault["message"].as_str().unwrap_or_default());
    let path = path.strip_prefix("query.").unwrap_or(path);
    if path.is_empty() { message.to_owned() } else { format!("{path}: {message}") }
}

/// Repeats a request while the node refuses it for a while: as long as there are too many requests, otherwise `tries` times.
async fn patiently<T>(mut tries: usize, request: impl AsyncFn() -> Result<T, CallError>) -> Result<T, CallError> {
    loop {
        let error = match request().await {
            Err(error) if error.is_passing() => error,
            other => return other,
        };
        if !error.is_rate_limit() {
            tries -= 1;
        }
        if tries == 0 {
            return Err(error);
        }
        tokio::time::sleep(PAUSE).await;
    }
}
