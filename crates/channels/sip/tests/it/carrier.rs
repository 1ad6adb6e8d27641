//! A scripted trunk on UDP, with a phone behind it.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::UdpSocket;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Duration, Instant, sleep_until, timeout};

use crate::support::PATIENCE;

/// Payload types of key presses: of our offer, which phones should use (RFC 3264 §5.1), and of the phone's description.
pub(crate) const OURS: u8 = 101;
pub(crate) const THEIRS: u8 = 96;
/// Between deeds that are done in turn; after an offer, from its answer.
const GAP: Duration = Duration::from_millis(150);

/// What the trunk does about an INVITE.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Rings, answers, and does this in the call.
    Answer(Talk),
    /// Refuses with a status, and further header lines.
    Refuse(u16, &'static str),
    /// Rings until it is cancelled, and says so.
    Ring,
    /// Rings, and is deaf to CANCEL.
    RingForEver,
    /// Says nothing at all.
    Silence,
    /// Says something that is no SIP.
    Garbage,
}

/// What the phone does.
#[derive(Clone, Debug)]
pub(crate) struct Talk {
    /// Description of the sound; `PORT` stands for the phone's port.
    pub(crate) sdp: &'static str,
    /// Whether the description comes in a 183, and none in the 200. Then its second port is heard before the answer.
    pub(crate) early: bool,
    /// After so many packets of sound, what it does.
    pub(crate) after: Option<(usize, Deed)>,
}

/// Something that the phone does in a call.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Deed {
    HangUp,
    /// Presses a key, as events of this payload type.
    Press(u8, u8),
    Info(char),
    /// Is heard from its first port, and asks for the sound to go to its second one.
    Move,
    /// Presses a key, and goes on, from its second port, of which no description tells.
    PressElsewhere(u8),
    /// Offers its sound again, in this direction.
    Offer(&'static str),
    /// Asks for our offer.
    Ask,
    /// Does one after the other.
    InTurn(&'static [Deed]),
    /// Presses nothing, while a stranger presses this key before the phone was heard, and the second port does after.
    Bystanders(u8),
}

pub(crate) const SDP: &str = "v=0\r\no=- 1 1 IN IP4 127.0.0.1\r\ns=-\r\nc=IN IP4 127.0.0.1\r\nt=0 0\r\nm=audio PORT RTP/AVP 8 96\r\na=rtpmap:96 telephone-event/8000\r\n";

impl Talk {
    /// Listens, and says goodbye when we do.
    pub(crate) const fn listens() -> Self {
        Self { sdp: SDP, early: false, after: None }
    }

    pub(crate) const fn does(packets: usize, deed: Deed) -> Self {
        Self { after: Some((packets, deed)), ..Self::listens() }
    }
}

/// How the trunk behaves.
#[derive(Clone, Debug)]
pub(crate) struct Script {
    /// Status of the answer to OPTIONS; none if it says nothing.
    pub(crate) options: Option<u16>,
    /// Whether the login is asked for, and right.
    pub(crate) login: Option<bool>,
    /// Header lines that ask for it.
    pub(crate) challenge: &'static str,
    /// Status of the answer to REGISTER, when the login is right.
    pub(crate) register: u16,
    /// And to INVITE.
    pub(crate) invite: Act,
}

impl Script {
    pub(crate) const fn new(invite: Act) -> Self {
        let challenge = "WWW-Authenticate: Digest realm=\"carrier\", nonce=\"7b1c\", algorithm=MD5, qop=\"auth\"\r\n";
        Self { options: Some(200), login: Some(true), challenge, register: 200, invite }
    }
}

/// What the trunk and its phone got.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) enum Got {
    /// A request, whole.
    Sip(String),
    /// An answer to an offer within the call.
    Answer(String),
    /// A packet of sound, at the first or second port.
    Sound(usize, Vec<u8>),
}

/// The trunk.
#[derive(Debug)]
pub(crate) struct Carrier {
    pub(crate) port: u16,
    /// Call-IDs of the calls that it took.
    pub(crate) taken: Arc<Mutex<Vec<String>>>,
    got: mpsc::UnboundedReceiver<Got>,
    task: JoinHandle<()>,
}

impl Drop for Carrier {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Carrier {
    pub(crate) async fn start(script: Script) -> Self {
        let [sip, phone, second] = [bind().await, bind().await, bind().await];
        let (tell, got) = mpsc::unbounded_channel();
        let taken = Arc::<Mutex<Vec<_>>>::default();
        let port = port(&sip);
        let line = Line {
            script,
            sip,
            phone: [phone, second],
            tell,
            taken: Arc::clone(&taken),
            seen: HashSet::new(),
            call: None,
            packets: 0,
            requests: 0,
            turns: None,
        };
        Self { port, taken, got, task: tokio::spawn(line.serve()) }
    }

    /// Everything that came until now.
    pub(crate) fn got(&mut self) -> Vec<Got> {
        std::iter::from_fn(|| self.got.try_recv().ok()).collect()
    }

    /// Waits until so many packets of sound have come, and returns everything that came until then: the last ones may be read only after
    /// the call has ended.
    pub(crate) async fn heard(&mut self, packets: usize) -> Vec<Got> {
        let mut got = self.got();
        let wanted = async {
            while sounds(&got).len() < packets {
                got.push(self.got.recv().await.expect("a carrier"));
            }
        };
        let came = timeout(PATIENCE, wanted).await;
        assert!(came.is_ok(), "{} of {packets} packets came", sounds(&got).len());
        got.extend(self.got());
        got
    }

    /// Waits for a request of this method.
    pub(crate) async fn until(&mut self, method: &str) -> String {
        let wanted = async {
            loop {
                if let Got::Sip(text) = self.got.recv().await.expect("a carrier")
                    && text.starts_with(method)
                {
                    return text;
                }
            }
        };
        timeout(PATIENCE, wanted).await.unwrap_or_else(|_| panic!("no {method} came"))
    }

    /// Waits for something like this.
    pub(crate) async fn until_got(&mut self, is_it: fn(&Got) -> bool) {
        let wanted = async { while !is_it(&self.got.recv().await.expect("a carrier")) {} };
        timeout(PATIENCE, wanted).await.expect("what is waited for");
    }
}

/// The methods of what came.
pub(crate) fn methods(got: &[Got]) -> Vec<&str> {
    got.iter().filter_map(|g| if let Got::Sip(text) = g { text.split(' ').next() } else { None }).collect()
}

/// The packets of sound.
pub(crate) fn sounds(got: &[Got]) -> Vec<(usize, &[u8])> {
    got.iter().filter_map(|g| if let Got::Sound(at, packet) = g { Some((*at, &packet[..])) } else { None }).collect()
}

/// The value of a header.
pub(crate) fn header<'a>(text: &'a str, name: &str) -> &'a str {
    let line = text.lines().find_map(|line| line.split_once(':').filter(|(n, _)| n.eq_ignore_ascii_case(name)));
    line.map_or("", |(_, value)| value.trim())
}

async fn bind() -> UdpSocket {
    UdpSocket::bind("127.0.0.1:0").await.unwrap()
}

fn port(socket: &UdpSocket) -> u16 {
    socket.local_addr().unwrap().port()
}

/// A key press as telephone events; other keys begin at other times.
async fn press(socket: &UdpSocket, payload_type: u8, key: u8, to: SocketAddr) {
    for number in 0..6_u8 {
        let end = if number > 2 { 0x8A } else { 0x0A };
        let event = [0x80, payload_type, 0, number, 0, 0, 1, key, 0, 0, 0, 7, key, end, 0, 160];
        socket.send_to(&event, to).await.unwrap();
    }
}

struct Line {
    script: Script,
    sip: UdpSocket,
    phone: [UdpSocket; 2],
    tell: mpsc::UnboundedSender<Got>,
    taken: Arc<Mutex<Vec<String>>>,
    /// Branches of requests and answers that came: those that come again are not counted again.
    seen: HashSet<String>,
    /// The INVITE in flight, and who sent it.
    call: Option<(String, SocketAddr)>,
    /// Packets of sound in it.
    packets: usize,
    /// Requests of the phone.
    requests: u32,
    /// When it does which deeds, and where sound comes from.
    turns: Option<(Instant, &'static [Deed], SocketAddr)>,
}

impl Line {
    async fn serve(mut self) {
        let (mut one, mut two, mut three) = ([0; 4_096], [0; 512], [0; 512]);
        loop {
            let due = self.turns.map(|(due, ..)| due);
            tokio::select! {
                () = sleep_until(due.unwrap_or_else(Instant::now)), if due.is_some() => self.turn().await,
                received = self.sip.recv_from(&mut one) => {
                    let (length, from) = received.unwrap();
                    let text = String::from_utf8_lossy(&one[..length]).into_owned();
                    self.hear(text, from).await;
                }
                received = self.phone[0].recv_from(&mut two) => {
                    let (length, from) = received.unwrap();
                    self.sound(0, &two[..length], from).await;
                }
                received = self.phone[1].recv_from(&mut three) => {
                    let (length, from) = received.unwrap();
                    self.sound(1, &three[..length], from).await;
                }
            }
        }
    }

    async fn hear(&mut self, text: String, from: SocketAddr) {
        let method = text.split(' ').next().unwrap_or_default().to_owned();
        let is_answer = text.starts_with("SIP/2.0");
        let again = !is_answer && !self.seen.insert(format!("{method} {}", header(&text, "Via")));
        if !is_answer && !again {
            // Nobody may be listening any more.
            self.tell.send(Got::Sip(text.clone())).ok();
        }
        match method.as_str() {
            "OPTIONS" => {
                if let Some(status) = self.script.options {
                    self.answer(&text, from, status, "", "").await;
                }
            }
            "REGISTER" if self.is_let_in(&text, from).await => self.answer(&text, from, self.script.register, "", "").await,
            "INVITE" if self.is_let_in(&text, from).await && !again => self.invited(text, from).await,
            "CANCEL" => self.cancelled(&text, from).await,
            "BYE" => self.answer(&text, from, 200, "", "").await,
            "SIP/2.0" if text.starts_with("SIP/2.0 200") && header(&text, "CSeq").ends_with("INVITE") => {
                self.request("ACK", "text/plain", "").await;
                if self.seen.insert(format!("200 {}", header(&text, "Via"))) {
                    self.tell.send(Got::Answer(text)).ok();
                    if let Some((due, ..)) = &mut self.turns {
                        *due = Instant::now() + GAP;
                    }
                }
            }
            _ => {}
        }
    }

    /// Asks for the login, unless none is needed or the right one is there.
    async fn is_let_in(&self, text: &str, from: SocketAddr) -> bool {
        let given = header(text, "Authorization").starts_with("Digest username=\"acme\"");
        match self.script.login {
            Some(right) if !given || !right => {
                self.answer(text, from, 401, self.script.challenge, "").await;
                false
            }
            _ => true,
        }
    }

    async fn invited(&mut self, text: String, from: SocketAddr) {
        let act = self.script.invite.clone();
        if !matches!(act, Act::Refuse(..)) {
            self.taken.lock().unwrap().push(header(&text, "Call-ID").to_owned());
        }
        match act {
            Act::Silence => {}
            Act::Garbage => drop(self.sip.send_to(b"HTTP/1.1 400 Bad Request\r\n\r\n", from).await),
            Act::Refuse(status, lines) => {
                self.answer(&text, from, 100, "", "").await;
                self.answer(&text, from, status, lines, "").await;
            }
            Act::Ring | Act::RingForEver => {
                self.answer(&text, from, 180, "", "").await;
                self.call = Some((text, from));
            }
            Act::Answer(talk) => {
                let sdp = talk.sdp.replace("PORT", &port(&self.phone[0]).to_string());
                if talk.early {
                    let (_, ours) = text.split_once("m=audio ").unwrap();
                    let ours = ours.split(' ').next().unwrap().parse().unwrap();
                    press(&self.phone[1], OURS, 5, SocketAddr::new(from.ip(), ours)).await;
                }
                self.answer(&text, from, if talk.early { 183 } else { 180 }, "", if talk.early { &sdp } else { "" }).await;
                self.answer(&text, from, 200, "", if talk.early { "" } else { &sdp }).await;
                (self.call, self.packets) = (Some((text, from)), 0);
            }
        }
    }

    async fn cancelled(&mut self, text: &str, from: SocketAddr) {
        if matches!(self.script.invite, Act::RingForEver) {
            return;
        }
        self.answer(text, from, 200, "", "").await;
        if let Some((invite, _)) = self.call.take() {
            self.answer(&invite, from, 487, "", "").await;
        }
    }

    async fn answer(&self, request: &str, to: SocketAddr, status: u16, lines: &str, sdp: &str) {
        let mut text = format!("SIP/2.0 {status} Whatever\r\n");
        for name in ["Via", "From", "Call-ID", "CSeq"] {
            write!(text, "{name}: {}\r\n", header(request, name)).unwrap();
        }
        write!(text, "To: {};tag=phone\r\nContact: <sip:phone@127.0.0.1:{}>\r\n{lines}", header(request, "To"), port(&self.sip)).unwrap();
        if !sdp.is_empty() {
            text.push_str("Content-Type: application/sdp\r\n");
        }
        write!(text, "Content-Length: {}\r\n\r\n{sdp}", sdp.len()).unwrap();
        self.sip.send_to(text.as_bytes(), to).await.unwrap();
    }

    /// A request of the phone within the call.
    async fn request(&mut self, method: &str, content_type: &str, body: &str) {
        self.requests += u32::from(method != "ACK");
        let number = self.requests;
        let Some((invite, to)) = &self.call else { return };
        let contact = header(invite, "Contact").trim_matches(['<', '>']);
        let text = format!(
            "{method} {contact} SIP/2.0\r\nVia: SIP/2.0/UDP 127.0.0.1:{};branch=z9hG4bK{method}{number}\r\nMax-Forwards: 70\r\nFrom: {};tag=phone\r\n\
             To: {}\r\nCall-ID: {}\r\nCSeq: {number} {method}\r\nContact: <sip:phone@127.0.0.1:{}>\r\nContent-Type: {content_type}\r\n\
             Content-Length: {}\r\n\r\n{body}",
            port(&self.sip),
            header(invite, "To"),
            header(invite, "From"),
            header(invite, "Call-ID"),
            port(&self.sip),
            body.len()
        );
        self.sip.send_to(text.as_bytes(), to).await.unwrap();
    }

    async fn sound(&mut self, at: usize, packet: &[u8], from: SocketAddr) {
        self.tell.send(Got::Sound(at, packet.to_vec())).ok();
        self.packets += 1;
        let Act::Answer(Talk { after: Some((packets, deed)), sdp, .. }) = self.script.invite else { return };
        if self.packets != packets {
            return;
        }
        self.does(deed, sdp, from).await;
    }

    /// Does the next of the deeds in turn.
    async fn turn(&mut self) {
        let Act::Answer(Talk { sdp, .. }) = self.script.invite else { return };
        let Some((_, [deed, rest @ ..], from)) = self.turns.take() else { return };
        self.does(*deed, sdp, from).await;
        // Counted from now, the deeds do not run together after a pause.
        let wait = if matches!(deed, Deed::Offer(_) | Deed::Ask) { PATIENCE } else { GAP };
        self.turns = Some((Instant::now() + wait, rest, from)).filter(|_| !rest.is_empty());
    }

    async fn does(&mut self, deed: Deed, sdp: &str, from: SocketAddr) {
        match deed {
            Deed::InTurn(deeds) => self.turns = Some((Instant::now(), deeds, from)),
            Deed::Offer(direction) => {
                let sdp = sdp.replace("PORT", &port(&self.phone[0]).to_string());
                self.request("INVITE", "application/sdp", &format!("{sdp}a={direction}\r\n")).await;
            }
            Deed::Ask => self.request("INVITE", "text/plain", "").await,
            Deed::HangUp => self.request("BYE", "text/plain", "").await,
            Deed::Info(key) => self.request("INFO", "application/dtmf-relay", &format!("Signal={key}\r\nDuration=100\r\n")).await,
            Deed::Move => {
                press(&self.phone[0], OURS, 5, from).await;
                self.request("INVITE", "application/sdp", &sdp.replace("PORT", &port(&self.phone[1]).to_string())).await;
            }
            Deed::Press(number, key) => press(&self.phone[0], number, key, from).await,
            Deed::PressElsewhere(key) => press(&self.phone[1], OURS, key, from).await,
            Deed::Bystanders(key) => {
                press(&UdpSocket::bind("127.0.0.2:0").await.unwrap(), OURS, key, from).await;
                press(&self.phone[0], OURS, 5, from).await;
                press(&self.phone[1], OURS, key, from).await;
            }
        }
    }
}
