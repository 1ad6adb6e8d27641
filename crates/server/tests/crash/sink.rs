//! An SMTP relay (RFC 5321) that accepts all emails and records them. It outlives the server.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};

/// Delay between accepting an email and the response: a crash in between leaves an unknown outcome.
const DELAY: Duration = Duration::from_millis(4);

/// Subject of emails that are identified by their recipient.
pub(crate) const BROADCAST: &str = "to-everybody";

/// How many times each token was accepted.
type Taken = Arc<Mutex<HashMap<String, usize>>>;

#[derive(Debug)]
pub(crate) struct Sink {
    pub(crate) address: SocketAddr,
    taken: Taken,
    task: tokio::task::JoinHandle<()>,
}

impl Drop for Sink {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Sink {
    pub(crate) async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let taken = Taken::default();
        let for_task = Arc::clone(&taken);
        let task = tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A session that the server's death interrupts ends with an error.
                tokio::spawn(converse(stream, Arc::clone(&for_task)));
            }
        });
        Self { address, taken, task }
    }

    /// Returns how many times each email was accepted, by subject; those of [`BROADCAST`] by recipient.
    pub(crate) fn taken(&self) -> HashMap<String, usize> {
        self.taken.lock().expect("no panic").clone()
    }
}

async fn converse(stream: TcpStream, taken: Taken) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    stream.write_all(b"220 sink\r\n").await?;
    let (mut line, mut recipient) = (Vec::new(), String::new());
    loop {
        line.clear();
        if stream.read_until(b'\n', &mut line).await? == 0 {
            return Ok(());
        }
        if let Some(path) = line.strip_prefix(b"RCPT TO:<") {
            recipient = String::from_utf8_lossy(path).split('>').next().unwrap_or_default().to_owned();
        }
        let answer: &[u8] = match line.to_ascii_uppercase() {
            verb if verb.starts_with(b"DATA") => {
                stream.write_all(b"354 go on\r\n").await?;
                let Some(subject) = read_mail(&mut stream).await? else { return Ok(()) };
                let token = if subject == BROADCAST { recipient.clone() } else { subject };
                *taken.lock().expect("no panic").entry(token).or_default() += 1;
                tokio::time::sleep(DELAY).await;
                b"250 taken\r\n"
            }
            verb if verb.starts_with(b"QUIT") => b"221 bye\r\n",
            verb if verb.starts_with(b"EHLO") => b"250-sink\r\n250 8BITMIME\r\n",
            _ => b"250 ok\r\n",
        };
        stream.write_all(answer).await?;
    }
}

/// Reads up to the final dot and returns the subject; `None` if the connection ends before.
async fn read_mail(stream: &mut BufReader<TcpStream>) -> std::io::Result<Option<String>> {
    let (mut subject, mut line) = (String::new(), Vec::new());
    loop {
        line.clear();
        if stream.read_until(b'\n', &mut line).await? == 0 {
            return Ok(None);
        }
        if line == b".\r\n" {
            return Ok(Some(subject));
        }
        if let Some(text) = line.strip_prefix(b"Subject: ").filter(|_| subject.is_empty()) {
            subject = String::from_utf8_lossy(text).trim().to_owned();
        }
    }
}
