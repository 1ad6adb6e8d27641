//! An SMSC that follows a script. A foreign codec (rusmpp) reads and writes its PDUs.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex};

use rusmpp::pdus::{BindReceiverResp, BindTransceiverResp, BindTransmitterResp, DeliverSm, SubmitSm, SubmitSmResp};
use rusmpp::tokio_codec::CommandCodec;
use rusmpp::types::{COctetString, OctetString};
use rusmpp::values::{Ansi41Specific, DataCoding, EsmClass, GsmFeatures, MessageType, MessagingMode, Ton};
use rusmpp::{Command, CommandId, CommandStatus, Pdu};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::bytes::BytesMut;
use tokio_util::codec::{Decoder as _, Encoder as _};

use crate::support::PATIENCE;

/// What it does with a submit_sm.
#[derive(Clone, Debug)]
pub(crate) enum Act {
    /// Takes it under this id.
    Take(String),
    /// Answers with this status.
    Refuse(u32),
    /// Says nothing; the test answers.
    Leave,
    /// Hangs up.
    HangUp,
    /// Sends these octets.
    Say(Vec<u8>),
    /// Sends this delivery first, and takes it then.
    After(Box<Command>, String),
}

/// What it does with the submit_sm of this number, from 0.
type Policy = dyn Fn(usize, &SubmitSm) -> Act + Send + Sync;

/// What it does.
#[derive(Clone)]
pub(crate) struct Script {
    /// Status of the answer to a bind on the connection of this number, from 0; silence when absent.
    pub(crate) bind: fn(usize) -> Option<u32>,
    /// What it does with the submit_sm of this number, from 0.
    pub(crate) submit: Arc<Policy>,
    /// TLS, if it speaks that.
    pub(crate) tls: Option<tokio_rustls::TlsAcceptor>,
}

impl Script {
    pub(crate) fn new(submit: impl Fn(usize, &SubmitSm) -> Act + Send + Sync + 'static) -> Self {
        Self { bind: |_| Some(0), submit: Arc::new(submit), tls: None }
    }

    /// Takes everything under the ids `id1`, `id2`, …
    pub(crate) fn takes() -> Self {
        Self::new(|number, _| Act::Take(format!("id{}", number + 1)))
    }
}

/// What it saw, and on which connection.
#[derive(Debug)]
pub(crate) enum Seen {
    /// A bind, to be answered with what the script says; and the way to say more on its connection.
    Bound(CommandId, Says),
    /// A submit_sm and its sequence number.
    Submit(usize, u32, Box<SubmitSm>),
    /// Another request, or an answer: its id, status and sequence number.
    Other(CommandId, u32, u32),
    /// The connection was closed.
    Gone(usize),
}

/// A way to say something on a connection.
#[derive(Clone, Debug)]
pub(crate) struct Says {
    /// Which connection, from 0.
    pub(crate) connection: usize,
    says: mpsc::UnboundedSender<Vec<u8>>,
}

impl Says {
    pub(crate) fn say(&self, command: &Command) {
        self.says.send(encode(command)).unwrap();
    }

    pub(crate) fn octets(&self, octets: Vec<u8>) {
        self.says.send(octets).unwrap();
    }

    /// Accepts the submit_sm of this sequence number.
    pub(crate) fn take(&self, sequence: u32, id: &str) {
        self.answer(sequence, 0, id);
    }

    /// Answers the submit_sm of this sequence number.
    pub(crate) fn answer(&self, sequence: u32, status: u32, id: &str) {
        self.say(&taken(sequence, status, id));
    }
}

/// The SMSC; it lives as long as the test's runtime.
#[derive(Debug)]
pub(crate) struct Smsc {
    pub(crate) port: u16,
    pub(crate) seen: mpsc::UnboundedReceiver<Seen>,
    pub(crate) taken: Arc<Mutex<Vec<SubmitSm>>>,
}

impl Smsc {
    pub(crate) async fn start(script: Script) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let (tell, seen) = mpsc::unbounded_channel();
        let taken = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&taken);
        tokio::spawn(async move {
            for connection in 0.. {
                let (stream, _) = listener.accept().await.unwrap();
                let serving = Serving { connection, script: script.clone(), tell: tell.clone(), taken: Arc::clone(&all) };
                tokio::spawn(async move {
                    match serving.script.tls.clone() {
                        Some(tls) => {
                            let Ok(stream) = tls.accept(stream).await else { return };
                            serving.serve(stream).await;
                        }
                        None => serving.serve(stream).await,
                    }
                });
            }
        });
        Self { port, seen, taken }
    }

    pub(crate) async fn next(&mut self) -> Seen {
        timeout(PATIENCE, self.seen.recv()).await.expect("something to see").expect("the SMSC")
    }

    /// The next bind.
    pub(crate) async fn bound(&mut self) -> (CommandId, Says) {
        loop {
            if let Seen::Bound(command, says) = self.next().await {
                return (command, says);
            }
        }
    }

    /// The next submit_sm: its connection, its sequence number, itself.
    pub(crate) async fn submitted(&mut self) -> (usize, u32, SubmitSm) {
        loop {
            if let Seen::Submit(connection, sequence, submit) = self.next().await {
                return (connection, sequence, *submit);
            }
        }
    }

    /// Status and sequence number of the next PDU of this kind.
    pub(crate) async fn other(&mut self, wanted: CommandId) -> (u32, u32) {
        loop {
            match self.next().await {
                Seen::Other(command, status, sequence) if command == wanted => return (status, sequence),
                _ => {}
            }
        }
    }
}

struct Serving {
    connection: usize,
    script: Script,
    tell: mpsc::UnboundedSender<Seen>,
    taken: Arc<Mutex<Vec<SubmitSm>>>,
}

impl Serving {
    async fn serve(self, stream: impl AsyncRead + AsyncWrite + Unpin) {
        let (mut from, mut to) = tokio::io::split(stream);
        let (says, mut said) = mpsc::unbounded_channel::<Vec<u8>>();
        let says = Says { connection: self.connection, says };
        let (mut buffer, mut codec) = (BytesMut::new(), CommandCodec::new());
        loop {
            tokio::select! {
                read = from.read_buf(&mut buffer) => if !matches!(read, Ok(n) if n > 0) { break },
                Some(octets) = said.recv() => if octets.is_empty() || to.write_all(&octets).await.is_err() { break },
            }
            let mut open = true;
            while open && let Some(command) = codec.decode(&mut buffer).expect("what we write can be read") {
                open = self.take(command, &says);
            }
            if !open {
                break;
            }
        }
        self.tell.send(Seen::Gone(self.connection)).ok();
    }

    /// Takes a PDU in; false to hang up.
    fn take(&self, command: Command, says: &Says) -> bool {
        let sequence = command.sequence_number();
        let status = |status: u32| CommandStatus::from(status);
        match command.pdu() {
            Some(Pdu::BindTransceiver(_) | Pdu::BindTransmitter(_) | Pdu::BindReceiver(_)) => {
                self.tell.send(Seen::Bound(command.id(), says.clone())).ok();
                let Some(bind) = (self.script.bind)(self.connection) else { return true };
                let pdu: Pdu = match command.id() {
                    CommandId::BindTransceiver => BindTransceiverResp::default().into(),
                    CommandId::BindTransmitter => BindTransmitterResp::default().into(),
                    _ => BindReceiverResp::default().into(),
                };
                says.say(&Command::new(status(bind), sequence, pdu));
                if bind != 0 {
                    says.octets(Vec::new());
                }
            }
            Some(Pdu::SubmitSm(submit)) => return self.submit(sequence, submit, says),
            _ => {
                self.tell.send(Seen::Other(command.id(), u32::from(command.status()), sequence)).ok();
                match command.id() {
                    CommandId::EnquireLink => says.say(&Command::new(status(0), sequence, Pdu::EnquireLinkResp)),
                    CommandId::Unbind => says.say(&Command::new(status(0), sequence, Pdu::UnbindResp)),
                    _ => {}
                }
            }
        }
        true
    }

    fn submit(&self, sequence: u32, submit: &SubmitSm, says: &Says) -> bool {
        let number = {
            let mut taken = self.taken.lock().unwrap();
            taken.push(submit.clone());
            taken.len() - 1
        };
        let act = (self.script.submit)(number, submit);
        if matches!(act, Act::Refuse(_)) {
            self.taken.lock().unwrap().pop();
        }
        self.tell.send(Seen::Submit(self.connection, sequence, Box::new(submit.clone()))).ok();
        match act {
            Act::Take(id) => says.take(sequence, &id),
            Act::Refuse(status) => says.say(&taken(sequence, status, "")),
            Act::Leave => {}
            Act::HangUp => return false,
            Act::Say(octets) => says.octets(octets),
            Act::After(delivery, id) => {
                says.say(&delivery);
                says.take(sequence, &id);
            }
        }
        true
    }
}

pub(crate) fn encode(command: &Command) -> Vec<u8> {
    let mut buffer = BytesMut::new();
    CommandCodec::new().encode(command, &mut buffer).unwrap();
    buffer.to_vec()
}

fn taken(sequence: u32, status: u32, id: &str) -> Command {
    let resp = SubmitSmResp::builder().message_id(c(id)).build();
    Command::new(CommandStatus::from(status), sequence, resp)
}

fn c<const MIN: usize, const MAX: usize>(text: &str) -> COctetString<MIN, MAX> {
    COctetString::from_slice(format!("{text}\0").as_bytes()).unwrap()
}

/// A deliver_sm from [`crate::support::TO`].
pub(crate) fn delivery(sequence: u32, esm_class: u8, octets: &[u8]) -> Command {
    let kind = if esm_class & 0x04 == 0 { MessageType::Default } else { MessageType::ShortMessageContainsMCDeliveryReceipt };
    let features = if esm_class & 0x40 == 0 { GsmFeatures::NotSelected } else { GsmFeatures::UdhiIndicator };
    let deliver = DeliverSm::builder()
        .source_addr_ton(Ton::International)
        .source_addr(c("34600111222"))
        .destination_addr(c("12345"))
        .esm_class(EsmClass::new(MessagingMode::Default, kind, Ansi41Specific::Other(0), features))
        .data_coding(DataCoding::McSpecific)
        .short_message(OctetString::from_slice(octets).unwrap())
        .build();
    Command::new(CommandStatus::EsmeRok, sequence, deliver)
}

/// A receipt for `id` that says `stat`.
pub(crate) fn receipt(sequence: u32, id: &str, stat: &str) -> Command {
    let text = format!("id:{id} sub:001 dlvrd:001 submit date:2611210900 done date:2611210900 stat:{stat} err:000 text:Hello");
    delivery(sequence, 0x04, text.as_bytes())
}

/// A request, or a response without an error, that the foreign codec refuses to write.
pub(crate) fn pdu(command: u32, sequence: u32, body: &[u8]) -> Vec<u8> {
    let words = [16 + body.len() as u32, command, 0, sequence];
    [&words.map(u32::to_be_bytes).concat()[..], body].concat()
}
