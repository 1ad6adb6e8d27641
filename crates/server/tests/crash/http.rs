//! A minimal HTTP/1.1 client (RFC 9112) that knows exactly which requests got a response.

use std::io::{Error, ErrorKind, Result};
use std::net::SocketAddr;
use std::time::Duration;

use serde_json::Value;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

/// A response that takes longer counts as lost.
const PATIENCE: Duration = Duration::from_secs(20);

/// A connection. Unusable after an error, when the outcome of the request is unknown.
#[derive(Debug)]
pub(crate) struct Http(BufReader<TcpStream>);

#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    pub(crate) json: Value,
}

impl Answer {
    /// Returns the message id in the body.
    pub(crate) fn message_id(&self) -> String {
        self.json["message"]["id"].as_str().unwrap_or_else(|| panic!("no message in {self:?}")).to_owned()
    }
}

impl Http {
    pub(crate) async fn connect(address: SocketAddr) -> Result<Self> {
        let stream = TcpStream::connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Connects from this loopback address, so that clients can be distinguished.
    pub(crate) async fn connect_from(host: [u8; 4], address: SocketAddr) -> Result<Self> {
        let socket = tokio::net::TcpSocket::new_v4()?;
        socket.bind((host, 0).into())?;
        let stream = socket.connect(address).await?;
        stream.set_nodelay(true)?;
        Ok(Self(BufReader::new(stream)))
    }

    /// Returns the connection, for anything other than requests.
    pub(crate) fn into_stream(self) -> TcpStream {
        self.0.into_inner()
    }

    pub(crate) async fn get(&mut self, key: &str, path: &str) -> Result<Answer> {
        self.call(format!("GET {path} HTTP/1.1\r\nHost: nuncio\r\nAuthorization: Bearer {key}\r\n\r\n")).await
    }

    /// Returns a counter without labels from `/metrics`.
    pub(crate) async fn counter(&mut self, name: &str) -> Result<usize> {
        self.0.write_all(b"GET /metrics HTTP/1.1\r\nHost: nuncio\r\n\r\n").await?;
        let (_, body) = self.body().await?;
        let text = String::from_utf8_lossy(&body);
        let value = text.lines().find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.ok_or_else(|| Error::new(ErrorKind::InvalidData, format!("no {name} in {text}")))
    }

    /// `POST /v1/messages`.
    pub(crate) async fn send(&mut self, key: &str, idempotency_key: Option<&str>, body: &str) -> Result<Answer> {
        let idempotency = idempotency_key.map_or_else(String::new, |key| format!("Idempotency-Key: {key}\r\n"));
        self.write(key, "POST /v1/messages", &idempotency, body).await
    }

    /// Sends a CSV file.
    pub(crate) async fn post_csv(&mut self, key: &str, path: &str, file: &str) -> Result<Answer> {
        self.call(format!(
            "POST {path} HTTP/1.1\r\nHost: nuncio\r\nAuthorization: Bearer {key}\r\n\
             Content-Type: text/csv\r\nContent-Length: {}\r\n\r\n{file}",
            file.len()
        ))
        .await
    }

    /// Sends a request with a JSON body; `operation` is its method and path.
    pub(crate) async fn ask(&mut self, key: &str, operation: &str, body: &Value) -> Result<Answer> {
        self.write(key, operation, "", &body.to_string()).await
    }

    async fn write(&mut self, key: &str, operation: &str, headers: &str, body: &str) -> Result<Answer> {
        self.call(format!(
            "{operation} HTTP/1.1\r\nHost: nuncio\r\nAuthorization: Bearer {key}\r\n{headers}\
             Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        ))
        .await
    }

    async fn call(&mut self, request: String) -> Result<Answer> {
        let exchange = async {
            self.0.write_all(request.as_bytes()).await?;
            self.read().await
        };
        tokio::time::timeout(PATIENCE, exchange).await.unwrap_or_else(|_| Err(ErrorKind::TimedOut.into()))
    }

    async fn read(&mut self) -> Result<Answer> {
        let (status, body) = self.body().await?;
        Ok(Answer { status, json: serde_json::from_slice(&body).unwrap_or_default() })
    }

    /// Reads a response: its status and its body.
    async fn body(&mut self) -> Result<(u16, Vec<u8>)> {
        let line = self.line().await?;
        let status = line.split(' ').nth(1).and_then(|s| s.parse().ok()).ok_or_else(|| Error::new(ErrorKind::InvalidData, line.clone()))?;
        let mut length = 0;
        loop {
            let header = self.line().await?;
            if header.is_empty() {
                break;
            }
            if let Some(value) = header.to_ascii_lowercase().strip_prefix("content-length:") {
                length = value.trim().parse().map_err(|_| Error::new(ErrorKind::InvalidData, header.clone()))?;
            }
        }
        let mut body = vec![0; length];
        self.0.read_exact(&mut body).await?;
        Ok((status, body))
    }

    async fn line(&mut self) -> Result<String> {
        let mut line = String::new();
        self.0.read_line(&mut line).await?;
        // A truncated line is not a response.
        line.strip_suffix("\r\n").map(str::to_owned).ok_or_else(|| ErrorKind::UnexpectedEof.into())
    }
}
