//! An HTTP server that follows a script, for adapter tests: it can send any response, hang up, or stop responding.

use std::fmt;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::Notify;
use url::form_urlencoded;

/// How the server reacts to a request.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Reply {
    /// Responds.
    Answer {
        status: u16,
        /// Headers besides length.
        headers: Vec<(&'static str, String)>,
        body: Vec<u8>,
    },
    HangUp,
    /// Does not respond until the client is gone.
    Silence,
}

impl Reply {
    /// Returns a plain-text response.
    pub fn text(status: u16, body: &str) -> Self {
        Self::Answer { status, headers: vec![("Content-Type", "text/plain".to_owned())], body: body.into() }
    }

    pub fn json(status: u16, body: &Value) -> Self {
        Self::Answer { status, headers: vec![("Content-Type", "application/json".to_owned())], body: body.to_string().into() }
    }

    /// Returns any response.
    pub const fn raw(status: u16, headers: Vec<(&'static str, String)>, body: Vec<u8>) -> Self {
        Self::Answer { status, headers, body }
    }

    /// Adds a header to a response; other reactions stay as they are.
    #[must_use]
    pub fn with(mut self, name: &'static str, value: &str) -> Self {
        if let Self::Answer { headers, .. } = &mut self {
            headers.push((name, value.to_owned()));
        }
        self
    }

    /// Returns whether the server did not refuse, as far as the client can tell.
    const fn takes(&self) -> bool {
        !matches!(self, Self::Answer { status: 300.., .. })
    }
}

/// A request as received.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Seen {
    pub method: String,
    /// Path and query.
    pub path: String,
    /// Headers, names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// Whether it was not refused.
    pub taken: bool,
}

impl Seen {
    /// Returns the body as JSON.
    ///
    /// # Panics
    ///
    /// If it is not JSON.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|error| panic!("{error}: {:?}", String::from_utf8_lossy(&self.body)))
    }

    /// Returns the parameters of the query and of a form in the body, sorted.
    pub fn parameters(&self) -> Vec<(String, String)> {
        let form = self.header("content-type") == Some("application/x-www-form-urlencoded");
        let mut all: Vec<_> = form_urlencoded::parse(query(&self.path).as_bytes()).into_owned().collect();
        all.extend(form_urlencoded::parse(if form { &self.body } else { b"" }).into_owned());
        all.sort();
        all
    }

    /// Returns the first parameter of this name.
    pub fn parameter(&self, name: &str) -> Option<String> {
        self.parameters().into_iter().find(|(known, _)| known == name).map(|(_, value)| value)
    }

    /// Returns a header by its lower-case name.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Returns the query of a URL.
pub fn query(url: &str) -> &str {
    url.split_once('?').map_or("", |(_, query)| query)
}

type Script = dyn Fn(&Seen) -> Reply + Send + Sync;

/// A running server on 127.0.0.1 that ends with the test's runtime. Serves one request per connection.
#[derive(Clone)]
pub struct Scripted {
    address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
    came: Arc<Notify>,
}

impl fmt::Debug for Scripted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.address.fmt(f)
    }
}

impl Scripted {
    /// Starts a server that follows `script`.
    ///
    /// # Panics
    ///
    /// If no port is free.
    pub async fn start(script: impl Fn(&Seen) -> Reply + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap_or_else(|error| panic!("no port: {error}"));
        let address = listener.local_addr().unwrap_or_else(|error| panic!("no address: {error}"));
        let server = Self { address, seen: Arc::default(), came: Arc::default() };
        let (kept, script): (_, Arc<Script>) = (server.clone(), Arc::new(script));
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(serve(stream, kept.clone(), Arc::clone(&script)));
            }
        });
        server
    }

    /// Returns its URL without a trailing slash.
    pub fn base(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns all requests, oldest first.
    pub fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Waits for this many requests.
    pub async fn wait(&self, count: usize) {
        loop {
            let came = self.came.notified();
            if self.seen().len() >= count {
                return;
            }
            came.await;
        }
    }
}

async fn serve(stream: TcpStream, server: Scripted, script: Arc<Script>) {
    let mut stream = BufReader::new(stream);
    let Some(mut seen) = read(&mut stream).await else { return };
    let reply = script(&seen);
    seen.taken = reply.takes();
    server.seen.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
    server.came.notify_waiters();
    let (status, headers, body) = match reply {
        Reply::Answer { status, headers, body } => (status, headers, body),
        Reply::HangUp => return,
        Reply::Silence => {
            let _ = stream.read(&mut [0]).await;
            return;
        }
    };
    let headers: String = headers.into_iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!("HTTP/1.1 {status} X\r\nConnection: close\r\nContent-Length: {}\r\n{headers}\r\n", body.len());
    let _ = stream.get_mut().write_all(&[head.as_bytes(), &body].concat()).await;
}

async fn read(stream: &mut BufReader<TcpStream>) -> Option<Seen> {
    let mut first = String::new();
    stream.read_line(&mut first).await.ok()?;
    let mut words = first.split_whitespace().map(str::to_owned);
    let (method, path) = (words.next()?, words.next()?);
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await.ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_lowercase(), value.trim().to_owned()));
    }
    let mut seen = Seen { method, path, headers, body: Vec::new(), taken: false };
    seen.body = vec![0; seen.header("content-length").and_then(|length| length.parse().ok()).unwrap_or(0)];
    stream.read_exact(&mut seen.body).await.ok()?;
    Some(seen)
}
