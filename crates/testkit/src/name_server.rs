//! A DNS server on 127.0.0.1 with fixed records.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::net::UdpSocket;
use tokio::task::JoinHandle;

/// Serves TXT records by name; for [`NameServer::BROKEN`] it responds with SERVFAIL, for a missing name with NXDOMAIN.
#[derive(Debug)]
pub struct NameServer {
    pub address: SocketAddr,
    asked: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl NameServer {
    /// Makes a name fail temporarily.
    pub const BROKEN: &str = "SERVFAIL";

    /// Starts a server with these records: names without a trailing dot, and texts.
    pub async fn start(records: &[(&str, &str)]) -> Self {
        let socket = UdpSocket::bind("127.0.0.1:0").await.expect("a port");
        let address = socket.local_addr().expect("its address");
        let records: HashMap<String, String> = records.iter().map(|(name, text)| ((*name).to_owned(), (*text).to_owned())).collect();
        let asked = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&asked);
        let task = tokio::spawn(async move {
            let mut packet = [0; 1_500];
            while let Ok((length, peer)) = socket.recv_from(&mut packet).await {
                count.fetch_add(1, Ordering::Relaxed);
                if let Some(answer) = answer(&packet[..length], &records) {
                    let _ = socket.send_to(&answer, peer).await;
                }
            }
        });
        Self { address, asked, task }
    }

    /// Returns the number of queries.
    pub fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Returns the response to a query (RFC 1035 §4), with at most one TXT record.
fn answer(query: &[u8], records: &HashMap<String, String>) -> Option<Vec<u8>> {
    let (mut labels, mut at) = (Vec::new(), 12);
    while let Some(length) = query.get(at).map(|length| usize::from(*length)).filter(|length| *length > 0) {
        labels.push(String::from_utf8_lossy(query.get(at + 1..at + 1 + length)?).to_lowercase());
        at += 1 + length;
    }
    let question = query.get(12..at + 5)?;
    let is_txt = question[question.len() - 4..] == [0, 16, 0, 1];
    let record = records.get(&labels.join("."));
    let code = match record {
        Some(text) if text == NameServer::BROKEN => 2,
        Some(_) => 0,
        None => 3,
    };
    let text = record.filter(|_| is_txt && code == 0);
    let mut packet = query.get(..2)?.to_vec();
    packet.extend([0x81, 0x80 | code, 0, 1, 0, u8::from(text.is_some()), 0, 0, 0, 0]);
    packet.extend(question);
    if let Some(text) = text {
        let data: Vec<u8> = text.as_bytes().chunks(255).flat_map(|chunk| [&[chunk.len() as u8], chunk].concat()).collect();
        packet.extend([0xc0, 12, 0, 16, 0, 1, 0, 0, 0, 60]);
        packet.extend((data.len() as u16).to_be_bytes());
        packet.extend(data);
    }
    Some(packet)
}
