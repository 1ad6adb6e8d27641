//! An SMSC that counts messages. It implements the part of SMPP 3.4 that receives messages and sends receipts, parses no more of a message
//! than needed, and responds to everything available in one write.

use std::collections::{HashMap, VecDeque};
use std::io::{self, ErrorKind, Write as _};
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::counts::Counts;
use crate::workload::{TOKEN, TOKEN_DIGITS};

const HEADER: usize = 16;
const ANSWER: u32 = 0x8000_0000;
const BIND_RECEIVER: u32 = 0x01;
const BIND_TRANSMITTER: u32 = 0x02;
const SUBMIT_SM: u32 = 0x04;
const DELIVER_SM: u32 = 0x05;
const UNBIND: u32 = 0x06;
const BIND_TRANSCEIVER: u32 = 0x09;
const ENQUIRE_LINK: u32 = 0x15;
const GENERIC_NACK: u32 = ANSWER;
const INVALID_COMMAND: u32 = 0x03;

/// Delay of the receipt after the response. Phones are slower, but the response should be stored by then.
const RECEIPT_AFTER: Duration = Duration::from_millis(100);
/// Delay before a rejected receipt is resent.
const RESEND_AFTER: Duration = Duration::from_millis(100);
/// Maximum number of unanswered receipts per session.
const RECEIPTS: usize = 100;

/// A running SMSC. Stops with its runtime. A transceiver session gets the receipts of its own messages.
#[derive(Clone, Debug)]
pub(crate) struct Smsc {
    pub(crate) addr: SocketAddr,
    pub(crate) counts: Counts,
    bound: Arc<AtomicUsize>,
    /// Number of the next message.
    next: Arc<AtomicU64>,
}

impl Smsc {
    /// Listens on a free port.
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let smsc = Self { addr: listener.local_addr()?, counts: Counts::default(), bound: Arc::default(), next: Arc::default() };
        let served = smsc.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                // A closed connection is not an error of the SMSC.
                tokio::spawn(Session::new(served.clone()).run(stream));
            }
        });
        Ok(smsc)
    }

    /// Returns the number of binds so far.
    pub(crate) fn bound(&self) -> usize {
        self.bound.load(Ordering::Relaxed)
    }
}

/// A PDU: header, body and length.
struct Pdu<'a> {
    id: u32,
    status: u32,
    sequence: u32,
    body: &'a [u8],
    length: usize,
}

impl<'a> Pdu<'a> {
    /// Returns the first PDU of `input`, if it is complete.
    fn read(input: &'a [u8]) -> io::Result<Option<Self>> {
        let Some(header) = input.first_chunk::<HEADER>() else { return Ok(None) };
        let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
        let length = word(0) as usize;
        if !(HEADER..100_000).contains(&length) {
            return Err(ErrorKind::InvalidData.into());
        }
        let Some(body) = input.get(HEADER..length) else { return Ok(None) };
        Ok(Some(Self { id: word(4), status: word(8), sequence: word(12), body, length }))
    }
}

fn put(out: &mut Vec<u8>, id: u32, status: u32, sequence: u32, body: &[u8]) {
    let length = (HEADER + body.len()) as u32;
    for word in [length, id, status, sequence] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    out.extend_from_slice(body);
}

/// The fields of a submit_sm that the SMSC needs.
struct Submit<'a> {
    /// Including type and plan, unparsed.
    source: &'a [u8],
    destination: &'a [u8],
    registered: bool,
    text: &'a [u8],
}

impl<'a> Submit<'a> {
    fn read(body: &'a [u8]) -> Option<Self> {
        // Splits off `before` octets and a string with its NUL.
        let string = |before: usize, fields: &'a [u8]| {
            let length = fields.get(before..)?.iter().position(|&b| b == 0)?;
            fields.split_at_checked(before + length + 1)
        };
        let (_service, rest) = string(0, body)?;
        let (source, rest) = string(2, rest)?;
        let (destination, rest) = string(2, rest)?;
        let (_class_and_schedule, rest) = string(3, rest)?;
        let (_validity, rest) = string(0, rest)?;
        let &[registered, _replace, _coding, _default, length, ref text @ ..] = rest else { return None };
        Some(Self { source, destination, registered: registered & 3 != 0, text: text.get(..usize::from(length))? })
    }

    /// Returns the body of the deliver_sm that reports delivery (Appendix B).
    fn receipt(&self, id: &str) -> Vec<u8> {
        let text = format!(
            "id:{id} sub:001 dlvrd:001 submit date:2611211200 done date:2611211200 stat:DELIVRD err:000 text:Your parcel is on its"
        );
        let mut body = vec![0];
        body.extend_from_slice(self.destination);
        body.extend_from_slice(self.source);
        // esm_class 4 marks a receipt; eight empty fields follow.
        body.extend_from_slice(&[4, 0, 0, 0, 0, 0, 0, 0, 0, text.len() as u8]);
        body.extend_from_slice(text.as_bytes());
        body
    }
}

struct Session {
    smsc: Smsc,
    sends_receipts: bool,
    /// Receipts with their times.
    due: VecDeque<(Instant, Vec<u8>)>,
    unanswered: HashMap<u32, Vec<u8>>,
    sequence: u32,
    output: Vec<u8>,
    over: bool,
}

impl Session {
    fn new(smsc: Smsc) -> Self {
        let (due, unanswered, output) = (VecDeque::new(), HashMap::new(), Vec::new());
        Self { smsc, sends_receipts: false, due, unanswered, sequence: 0, output, over: false }
    }

    async fn run(mut self, mut stream: TcpStream) -> io::Result<()> {
        stream.set_nodelay(true)?;
        let mut input = Vec::with_capacity(65_536);
        while !self.over {
            let due = self.due.front().filter(|_| self.unanswered.len() < RECEIPTS).map(|(at, _)| *at);
            let receipt = tokio::time::sleep_until(due.unwrap_or_else(Instant::now).into());
            tokio::select! {
                read = stream.read_buf(&mut input) => if read? == 0 { break },
                () = receipt, if due.is_some() => {}
            }
            let mut start = 0;
            while let Some(pdu) = Pdu::read(&input[start..])? {
                start += pdu.length;
                self.take(&pdu);
            }
            input.drain(..start);
            input.reserve(65_536);
            self.send_receipts();
            stream.write_all(&self.output).await?;
            self.output.clear();
        }
        Ok(())
    }

    fn take(&mut self, pdu: &Pdu<'_>) {
        match pdu.id {
            SUBMIT_SM => self.submitted(pdu),
            BIND_RECEIVER | BIND_TRANSMITTER | BIND_TRANSCEIVER => {
                self.sends_receipts = pdu.id == BIND_TRANSCEIVER;
                self.smsc.bound.fetch_add(1, Ordering::Relaxed);
                self.answer(pdu, 0, b"bench\0");
            }
            ENQUIRE_LINK => self.answer(pdu, 0, b""),
            UNBIND => {
                self.over = true;
                self.answer(pdu, 0, b"");
            }
            answer if answer & ANSWER != 0 => {
                let receipt = self.unanswered.remove(&pdu.sequence);
                if let Some(receipt) = receipt.filter(|_| pdu.status != 0) {
                    self.due.push_back((Instant::now() + RESEND_AFTER, receipt));
                }
            }
            _ => put(&mut self.output, GENERIC_NACK, INVALID_COMMAND, pdu.sequence, b""),
        }
    }

    fn answer(&mut self, pdu: &Pdu<'_>, status: u32, body: &[u8]) {
        put(&mut self.output, pdu.id | ANSWER, status, pdu.sequence, body);
    }

    fn submitted(&mut self, pdu: &Pdu<'_>) {
        let Some(submit) = Submit::read(pdu.body) else {
            return self.answer(pdu, 1, b"\0");
        };
        self.smsc.counts.add(submit.text);
        let id = format!("{:010}", self.smsc.next.fetch_add(1, Ordering::Relaxed));
        self.answer(pdu, 0, format!("{id}\0").as_bytes());
        if self.sends_receipts && submit.registered {
            self.due.push_back((Instant::now() + RECEIPT_AFTER, submit.receipt(&id)));
        }
    }

    fn send_receipts(&mut self) {
        let now = Instant::now();
        while self.unanswered.len() < RECEIPTS {
            let Some((_, receipt)) = self.due.pop_front_if(|(at, _)| *at <= now) else { return };
            self.sequence += 1;
            put(&mut self.output, DELIVER_SM, 0, self.sequence, &receipt);
            self.unanswered.insert(self.sequence, receipt);
        }
    }
}

/// Returns the messages per second that the SMSC at `addr` accepts from a minimal client. Each of `sessions` concurrent sessions sends
/// `each` messages: it writes `window` of them, reads as many responses, and repeats.
pub(crate) async fn saturate(addr: SocketAddr, sessions: usize, window: usize, each: usize) -> io::Result<f64> {
    let start = Instant::now();
    let mut clients = tokio::task::JoinSet::new();
    for session in 0..sessions {
        clients.spawn(submit(addr, session * each..(session + 1) * each, window));
    }
    while let Some(ended) = clients.join_next().await {
        ended.map_err(io::Error::other)??;
    }
    Ok((sessions * each) as f64 / start.elapsed().as_secs_f64())
}

async fn submit(addr: SocketAddr, numbers: std::ops::Range<usize>, window: usize) -> io::Result<()> {
    let mut stream = TcpStream::connect(addr).await?;
    stream.set_nodelay(true)?;
    let (mut output, mut input) = (Vec::new(), Vec::new());
    put(&mut output, BIND_TRANSCEIVER, 0, 0, b"bench\0bench\0\0\x34\0\0\0");
    stream.write_all(&output).await?;
    answers(&mut stream, &mut input, 1).await?;
    let mut body = Vec::new();
    for first in numbers.clone().step_by(window) {
        output.clear();
        let end = numbers.end.min(first + window);
        for n in first..end {
            body.clear();
            body.extend_from_slice(b"\0\x01\x0134600000000\0\x01\x0134610000000\0\0\0\0\0\0\0\0\0\0");
            body.push((TOKEN.len() + TOKEN_DIGITS) as u8);
            write!(body, "{TOKEN}{n:0w$}", w = TOKEN_DIGITS)?;
            put(&mut output, SUBMIT_SM, 0, n as u32, &body);
        }
        stream.write_all(&output).await?;
        answers(&mut stream, &mut input, end - first).await?;
    }
    Ok(())
}

/// Reads this many successful responses.
async fn answers(stream: &mut TcpStream, input: &mut Vec<u8>, count: usize) -> io::Result<()> {
    let (mut start, mut found) = (0, 0);
    while found < count {
        let Some(pdu) = Pdu::read(&input[start..])? else {
            if stream.read_buf(input).await? == 0 {
                return Err(ErrorKind::UnexpectedEof.into());
            }
            continue;
        };
        if pdu.status != 0 {
            return Err(io::Error::other(format!("status {}", pdu.status)));
        }
        (start, found) = (start + pdu.length, found + 1);
    }
    input.drain(..start);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn each_message_is_counted_once_however_fast_they_come() {
        let smsc = Smsc::start().await.unwrap();
        assert!(saturate(smsc.addr, 2, 7, 100).await.unwrap() > 0.0);
        assert_eq!((smsc.bound(), smsc.counts.different(), smsc.counts.compare(200)), (2, 200, (0, 0)));
        // Sends them again: each one is a duplicate.
        saturate(smsc.addr, 1, 7, 200).await.unwrap();
        assert_eq!((smsc.counts.different(), smsc.counts.compare(201)), (200, (1, 200)));
    }

    /// Reads the next PDU: its command, status, sequence number and body.
    async fn next(stream: &mut TcpStream) -> (u32, u32, u32, Vec<u8>) {
        let length = stream.read_u32().await.unwrap() as usize;
        let mut pdu = (length as u32).to_be_bytes().to_vec();
        pdu.resize(length, 0);
        stream.read_exact(&mut pdu[4..]).await.unwrap();
        let Pdu { id, status, sequence, body, .. } = Pdu::read(&pdu).unwrap().unwrap();
        (id, status, sequence, body.to_vec())
    }

    async fn respond(stream: &mut TcpStream, id: u32, status: u32, sequence: u32, body: &[u8]) {
        let mut out = Vec::new();
        put(&mut out, id, status, sequence, body);
        stream.write_all(&out).await.unwrap();
    }

    #[tokio::test]
    async fn a_receipt_is_sent_until_it_is_taken() {
        let smsc = Smsc::start().await.unwrap();
        let mut stream = TcpStream::connect(smsc.addr).await.unwrap();
        respond(&mut stream, BIND_TRANSCEIVER, 0, 1, b"").await;
        assert_eq!(next(&mut stream).await.0, BIND_TRANSCEIVER | ANSWER);
        let text = format!("hello {TOKEN}{:0w$}", 3, w = TOKEN_DIGITS);
        let addresses = [&b"\0"[..], b"\x05\0Shop\0", b"\x01\x0134610000000\0", &[0, 0, 0, 0]].concat();
        let rest = [b"000001000000000R\0", &[1, 0, 0, 0, text.len() as u8][..], text.as_bytes()].concat();
        respond(&mut stream, SUBMIT_SM, 0, 2, &[addresses, rest].concat()).await;
        let (command, status, sequence, id) = next(&mut stream).await;
        assert_eq!((command, status, sequence, &id[..]), (SUBMIT_SM | ANSWER, 0, 2, &b"0000000000\0"[..]));
        assert_eq!(smsc.counts.compare(4), (3, 0));
        let (command, _, sequence, receipt) = next(&mut stream).await;
        assert_eq!(command, DELIVER_SM);
        assert!(receipt.starts_with(b"\0\x01\x0134610000000\0\x05\0Shop\0\x04"), "{receipt:?}");
        assert!(String::from_utf8_lossy(&receipt).contains("id:0000000000 sub:001 dlvrd:001"), "{receipt:?}");
        respond(&mut stream, DELIVER_SM | ANSWER, 0x14, sequence, b"\0").await;
        let (command, _, sequence, again) = next(&mut stream).await;
        assert_eq!((command, again), (DELIVER_SM, receipt));
        respond(&mut stream, DELIVER_SM | ANSWER, 0, sequence, b"\0").await;
        respond(&mut stream, UNBIND, 0, 3, b"").await;
        assert_eq!(next(&mut stream).await.0, UNBIND | ANSWER);
        assert_eq!(stream.read_u8().await.unwrap_err().kind(), ErrorKind::UnexpectedEof);
    }
}
