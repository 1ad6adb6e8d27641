//! A server that says what it is told to, byte by byte, and remembers what it heard.

use std::sync::{Arc, Mutex};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinHandle;

pub(crate) struct Server {
    port: u16,
    heard: Arc<Mutex<Vec<String>>>,
    first_byte: watch::Receiver<Option<u8>>,
    task: JoinHandle<()>,
}

impl Drop for Server {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Server {
    /// Gives each connection the next answer and closes it; beyond the last, hangs up.
    pub(crate) async fn answering(script: Vec<String>) -> Self {
        let mut script = script.into_iter();
        Self::start(move |_| (script.next().unwrap_or_default(), After::Close)).await
    }

    /// Says one thing to each connection, then nothing more, and keeps it open.
    pub(crate) async fn stalling(said: &'static str) -> Self {
        Self::start(move |_| (said.to_owned(), After::Stall)).await
    }

    /// Says one thing, then repeats another for as long as the client listens.
    pub(crate) async fn repeating(head: &'static str, forever: &'static str) -> Self {
        Self::start(move |_| (head.to_owned(), After::Repeat(forever))).await
    }

    /// A port on which nothing listens.
    pub(crate) async fn closed_port() -> u16 {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        listener.local_addr().unwrap().port()
    }

    pub(crate) fn url(&self, path: &str) -> String {
        format!("http://127.0.0.1:{}{path}", self.port)
    }

    /// The requests heard so far, head and body.
    pub(crate) fn requests(&self) -> Vec<String> {
        self.heard.lock().unwrap().clone()
    }

    /// How many connections were taken so far.
    pub(crate) fn connections(&self) -> usize {
        self.requests().len()
    }

    /// The first byte of the first connection.
    pub(crate) async fn first_byte(&self) -> u8 {
        let mut first = self.first_byte.clone();
        first.wait_for(Option::is_some).await.unwrap().unwrap()
    }

    async fn start(mut next: impl FnMut(usize) -> (String, After) + Send + 'static) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let (first_sent, first_byte) = watch::channel(None);
        let log = heard.clone();
        let task = tokio::spawn(async move {
            // Stalled connections live here until the server goes.
            let mut open = Vec::new();
            while let Ok((mut stream, _)) = listener.accept().await {
                let at = log.lock().unwrap().len();
                log.lock().unwrap().push(String::new());
                let request = read_request(&mut stream).await;
                first_sent.send_if_modified(|first| {
                    *first = first.or(request.first().copied());
                    true
                });
                log.lock().unwrap()[at] = String::from_utf8_lossy(&request).into_owned();
                let (said, after) = next(at);
                // The client may have hung up already, which is its right.
                stream.write_all(said.as_bytes()).await.ok();
                match after {
                    After::Close => drop(stream.shutdown().await),
                    After::Stall => open.push(stream),
                    After::Repeat(more) => while stream.write_all(more.as_bytes()).await.is_ok() {},
                }
            }
        });
        Self { port, heard, first_byte, task }
    }
}

enum After {
    Close,
    Stall,
    Repeat(&'static str),
}

/// Reads one request, by its `content-length`; whatever is not HTTP, by one read.
async fn read_request(stream: &mut TcpStream) -> Vec<u8> {
    let mut request = Vec::new();
    loop {
        let mut buffer = [0; 4096];
        let read = stream.read(&mut buffer).await.unwrap_or(0);
        request.extend_from_slice(&buffer[..read]);
        if read == 0 || is_whole(&request) {
            return request;
        }
    }
}

fn is_whole(request: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(request) else {
        return true;
    };
    let Some((head, body)) = text.split_once("\r\n\r\n") else {
        return false;
    };
    let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).map_or(0, |length| length.parse().unwrap());
    body.len() >= length
}
