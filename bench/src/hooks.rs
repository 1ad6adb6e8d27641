//! A webhook endpoint that counts events. It responds with 200 as fast as it can and records events by their `webhook-id`, or without one
//! (Kannel) by the query of its URL.

use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

const ANSWER: &[u8] = b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n";

#[derive(Debug, Default)]
struct Counts {
    events: HashMap<Box<str>, u32>,
    /// Requests without an id.
    unknown: u64,
}

/// A running endpoint. Stops with its runtime.
#[derive(Debug)]
pub(crate) struct Hooks {
    pub(crate) addr: SocketAddr,
    counts: Arc<Mutex<Counts>>,
}

impl Hooks {
    /// Listens on a free port.
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let hooks = Self { addr: listener.local_addr()?, counts: Arc::default() };
        let counts = Arc::clone(&hooks.counts);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let counts = Arc::clone(&counts);
                // A closed connection is not an error of the endpoint.
                tokio::spawn(async move { session(stream, &counts).await.ok() });
            }
        });
        Ok(hooks)
    }

    /// Returns the number of distinct events received.
    pub(crate) fn events(&self) -> u64 {
        self.counts().events.len() as u64
    }

    /// Returns the number of surplus deliveries.
    pub(crate) fn surplus(&self) -> u64 {
        let counts = self.counts();
        counts.unknown + counts.events.values().map(|n| u64::from(n - 1)).sum::<u64>()
    }

    fn counts(&self) -> std::sync::MutexGuard<'_, Counts> {
        self.counts.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn session(mut stream: TcpStream, counts: &Mutex<Counts>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = Vec::with_capacity(8192);
    loop {
        let (head, length) = loop {
            if let Some(end) = buffer.windows(4).position(|w| w == b"\r\n\r\n") {
                let head = String::from_utf8_lossy(&buffer[..end]).into_owned();
                let length = header(&head, "content-length").and_then(|v| v.parse::<usize>().ok()).unwrap_or(0);
                break (head, end + 4 + length);
            }
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        };
        while buffer.len() < length {
            if stream.read_buf(&mut buffer).await? == 0 {
                return Ok(());
            }
        }
        buffer.drain(..length);
        {
            let mut counts = counts.lock().unwrap_or_else(PoisonError::into_inner);
            match header(&head, "webhook-id").or_else(|| query(&head)) {
                Some(id) => *counts.events.entry(id.into()).or_default() += 1,
                None => counts.unknown += 1,
            }
        }
        stream.write_all(ANSWER).await?;
    }
}

fn query(head: &str) -> Option<&str> {
    head.lines().next()?.split(' ').nth(1)?.split_once('?').map(|(_, query)| query)
}

fn header<'a>(head: &'a str, name: &str) -> Option<&'a str> {
    head.lines().filter_map(|line| line.split_once(':')).find(|(n, _)| n.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim())
}
