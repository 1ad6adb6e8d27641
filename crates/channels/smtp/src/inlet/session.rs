//! A conversation with a client that sends email.
//!
//! The client is a mail server of the operator's. In a private network, it can report the origin of an email by `XFORWARD`, a Postfix
//! extension: SPF is about that address.

use std::net::IpAddr;
use std::sync::Arc;

use nuncio_channel::Stop;
use nuncio_domain::address;
use nuncio_net::GuardPolicy;
use smtp_proto::{Error, Request};
use tokio::io::{AsyncBufRead, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::time::timeout;

use super::content::{Broken, COMMAND, Content, read_line, read_mail};
use super::room::Room;
use super::{Limits, MailDestination, MailHandler, NotNow};
use crate::authenticate::Origin;
use crate::mail::Mail;

/// Invalid commands since the last accepted email after which a client is disconnected. Rejected addresses do not count: a mail server
/// tries many over one connection.
const FAULTS: u32 = 20;
const UNREADABLE: &str =
    "554 5.6.0 The mail cannot be read, or is too complex: 10000 header fields, 500 parts and 600000 lines are taken at most";
const NO_ROOM: &str = "452 4.3.1 Too many mails are under way; try again later";
const BARE: &str = "521 5.5.2 A line ends with CR and LF and has no other";

/// The envelope of an email.
struct Envelope {
    origin: Origin,
    to: Vec<MailDestination>,
}

struct Session<'a, S> {
    stream: S,
    desk: &'a dyn MailHandler,
    limits: Limits,
    room: Room,
    /// Whether it said hello, and whether in LMTP.
    lmtp: Option<bool>,
    envelope: Option<Envelope>,
    /// Whether it can report the origin of emails, and what it reported for the next one.
    is_front: bool,
    origin: Origin,
    faults: u32,
}

/// Whether the conversation continues.
#[derive(PartialEq)]
enum Then {
    On,
    End,
}

/// Converses until one side has enough.
pub(super) async fn run(
    stream: impl AsyncRead + AsyncWrite + Unpin,
    peer: IpAddr,
    desk: &dyn MailHandler,
    (limits, room): (Limits, Room),
    stop: Stop,
) {
    let is_front = GuardPolicy::default().check_address("", peer.to_canonical()).is_err();
    let (stream, origin) = (BufReader::new(stream), Origin::default());
    let mut session = Session { stream, desk, limits, room, lmtp: None, envelope: None, is_front, origin, faults: 0 };
    // Clients that disconnect or are too slow are not logged.
    let _ = session.converse(stop).await;
}

impl<S: AsyncBufRead + AsyncWrite + Unpin> Session<'_, S> {
    async fn converse(&mut self, mut stop: Stop) -> Result<(), Broken> {
        self.say("220 nuncio ready").await?;
        let mut line = Vec::new();
        loop {
            let next = timeout(self.limits.patience, read_line(&mut self.stream, &mut line, COMMAND));
            // Between two commands, nothing is lost by disconnecting.
            let Some(next) = stop.or(next).await else { return self.say("421 4.3.2 Closing").await };
            match next {
                Err(_) => return self.say("421 4.4.2 Too slow").await,
                Ok(Err(Broken::Bare)) => return self.say(BARE).await,
                Ok(Err(Broken::Long)) => return self.say("500 5.5.2 The line is too long").await,
                Ok(Err(Broken::Gone)) => return Ok(()),
                Ok(Ok(())) => {}
            }
            if self.command(&mut line).await? == Then::End {
                return Ok(());
            }
            if self.faults >= FAULTS {
                return self.say("421 4.7.0 Too many errors").await;
            }
        }
    }

    async fn say(&mut self, answer: &str) -> Result<(), Broken> {
        self.faults += u32::from(matches!(answer.get(..3), Some("500" | "501" | "502" | "503")));
        let write = async {
            self.stream.write_all(format!("{answer}\r\n").as_bytes()).await?;
            self.stream.flush().await
        };
        Ok(timeout(self.limits.patience, write).await.map_err(|_| Broken::Gone)??)
    }

    async fn command(&mut self, line: &mut Vec<u8>) -> Result<Then, Broken> {
        if let Some(attributes) = line.split_at_checked(9).filter(|(verb, _)| verb.eq_ignore_ascii_case(b"XFORWARD ")) {
            let answer = self.forward(&String::from_utf8_lossy(attributes.1));
            return self.say(answer).await.map(|()| Then::On);
        }
        line.push(b'\n');
        let answer = match Request::parse(&mut line.iter()) {
            Ok(Request::Quit) => {
                self.say("221 2.0.0 Goodbye").await?;
                return Ok(Then::End);
            }
            Ok(Request::Data) => return self.data().await,
            Ok(Request::Rcpt { to }) => self.recipient(&to.address).await,
            Ok(Request::Mail { from }) => self.sender(&from.address, from.size),
            Ok(Request::Ehlo { .. }) => self.hello(false, true),
            Ok(Request::Lhlo { .. }) => self.hello(true, true),
            Ok(Request::Helo { .. }) => self.hello(false, false),
            Ok(Request::Rset) => {
                (self.envelope, self.origin) = (None, Origin::default());
                "250 2.0.0 Forgotten".to_owned()
            }
            Ok(Request::Noop { .. }) => "250 2.0.0 Yes".to_owned(),
            Ok(Request::Vrfy { .. }) => "252 2.5.0 Send a mail and see".to_owned(),
            Ok(_) | Err(Error::UnknownCommand) => "502 5.5.1 Not known here".to_owned(),
            Err(Error::InvalidSenderAddress) => "501 5.1.7 That is no address".to_owned(),
            Err(Error::InvalidRecipientAddress) => "501 5.1.3 That is no address".to_owned(),
            Err(_) => "501 5.5.4 That cannot be read".to_owned(),
        };
        self.say(&answer).await.map(|()| Then::On)
    }

    fn hello(&mut self, lmtp: bool, extended: bool) -> String {
        (self.lmtp, self.envelope, self.origin) = (Some(lmtp), None, Origin::default());
        if !extended {
            return "250 nuncio".to_owned();
        }
        let forward = if self.is_front { "250-XFORWARD NAME ADDR PORT PROTO HELO IDENT SOURCE\r\n" } else { "" };
        format!(
            "250-nuncio\r\n250-PIPELINING\r\n250-8BITMIME\r\n250-SMTPUTF8\r\n250-ENHANCEDSTATUSCODES\r\n{forward}250 SIZE {}",
            self.limits.size
        )
    }

    /// Records the reported origin of the next email. Ignores unneeded and unknown attributes.
    fn forward(&mut self, attributes: &str) -> &'static str {
        if !self.is_front {
            return "502 5.5.1 Not known here";
        }
        if self.envelope.is_some() {
            return "503 5.5.1 A mail is under way";
        }
        for (name, value) in attributes.split_ascii_whitespace().filter_map(|attribute| attribute.split_once('=')) {
            match name.to_ascii_uppercase().as_str() {
                "ADDR" => self.origin.client = value.strip_prefix("IPV6:").unwrap_or(value).parse().ok(),
                "HELO" if value != "[UNAVAILABLE]" => value.clone_into(&mut self.origin.helo),
                _ => {}
            }
        }
        "250 2.0.0 Ok"
    }

    fn sender(&mut self, from: &str, size: usize) -> String {
        if self.lmtp.is_none() {
            return "503 5.5.1 Say hello first".to_owned();
        }
        if self.envelope.is_some() {
            return "503 5.5.1 A mail is under way".to_owned();
        }
        if size > self.limits.size {
            return self.too_large();
        }
        let origin = Origin { mail_from: from.to_owned(), ..std::mem::take(&mut self.origin) };
        self.envelope = Some(Envelope { origin, to: Vec::new() });
        "250 2.1.0 Ok".to_owned()
    }

    fn too_large(&self) -> String {
        format!("552 5.3.4 The mail is too large; {} octets are taken at most", self.limits.size)
    }

    async fn recipient(&mut self, address: &str) -> String {
        let Some(envelope) = &mut self.envelope else { return "503 5.5.1 MAIL comes first".to_owned() };
        if envelope.to.len() >= self.limits.recipients {
            return "452 4.5.3 Too many recipients".to_owned();
        }
        match self.desk.find(address).await {
            Ok(Some(place)) => {
                envelope.to.push(place);
                "250 2.1.5 Ok".to_owned()
            }
            Ok(None) => "550 5.1.1 There is no such address here".to_owned(),
            Err(NotNow) => "451 4.3.0 Try again later".to_owned(),
        }
    }

    async fn data(&mut self) -> Result<Then, Broken> {
        let Some(envelope) = self.envelope.take_if(|envelope| !envelope.to.is_empty()) else {
            let answer = if self.envelope.is_some() { "554 5.5.1 No recipient was taken" } else { "503 5.5.1 MAIL comes first" };
            return self.say(answer).await.map(|()| Then::On);
        };
        self.say("354 Go ahead, and end with a dot").await?;
        let read = timeout(self.limits.patience * 2, read_mail(&mut self.stream, &self.room, self.limits.size)).await;
        // The memory stays taken until the email is stored.
        let (bytes, _held) = match read {
            Ok(Ok(Content::Whole(buffer))) => buffer.split(),
            Ok(Ok(Content::TooLarge)) => return self.answer_all(&envelope, &self.too_large()).await,
            Ok(Ok(Content::NoRoom)) => return self.answer_all(&envelope, NO_ROOM).await,
            Err(_) => return self.say("421 4.4.2 Too slow").await.map(|()| Then::End),
            Ok(Err(Broken::Bare)) => return self.say(BARE).await.map(|()| Then::End),
            Ok(Err(Broken::Long)) => return self.say("500 5.5.2 A line is too long").await.map(|()| Then::End),
            Ok(Err(Broken::Gone)) => return Ok(Then::End),
        };
        let bytes = Arc::new(bytes);
        let Some(mut mail) = read_apart(&self.room, &envelope.origin.mail_from, Arc::clone(&bytes)).await else {
            return self.answer_all(&envelope, UNREADABLE).await;
        };
        if let Mail::InboundEmail(letter) = &mail
            && address::email(&letter.from).is_err()
        {
            return self.answer_all(&envelope, "550 5.1.7 The address in From cannot be answered").await;
        }
        if !self.authenticate(&envelope, &mut mail, bytes).await {
            return self.answer_all(&envelope, "550 5.7.1 The DMARC policy of the domain in From refuses this mail").await;
        }
        self.deliver(&envelope, &mail).await
    }

    /// Authenticates an email from a person; `false` if it must be rejected.
    async fn authenticate(&self, envelope: &Envelope, mail: &mut Mail, bytes: Arc<Vec<u8>>) -> bool {
        let Mail::InboundEmail(letter) = mail else { return true };
        let is_read = envelope.to.iter().any(|place| matches!(place, MailDestination::Sender(..)));
        let Some(authenticator) = self.desk.authenticator().filter(|_| is_read) else { return true };
        let checked = authenticator.check(envelope.origin.clone(), &letter.from, bytes).await;
        letter.authentication = Some(checked.authentication);
        !(checked.is_rejected && authenticator.rejects())
    }

    /// Sends the same response for the email: once in SMTP, for each recipient in LMTP.
    async fn answer_all(&mut self, envelope: &Envelope, answer: &str) -> Result<Then, Broken> {
        let answers = if self.lmtp == Some(true) { envelope.to.len() } else { 1 };
        for _ in 0..answers {
            self.say(answer).await?;
        }
        Ok(Then::On)
    }

    async fn deliver(&mut self, envelope: &Envelope, mail: &Mail) -> Result<Then, Broken> {
        let mut all_taken = true;
        for place in &envelope.to {
            let taken = self.desk.take(place, mail).await.is_ok();
            all_taken &= taken;
            if taken {
                self.faults = 0;
            }
            if self.lmtp == Some(true) {
                self.say(answer(taken)).await?;
            }
        }
        if self.lmtp == Some(false) {
            // Sending it again changes nothing for recipients that have it.
            self.say(answer(all_taken)).await?;
        }
        Ok(Then::On)
    }
}

const fn answer(taken: bool) -> &'static str {
    if taken { "250 2.0.0 Taken" } else { "451 4.3.0 It could not be written; try again later" }
}

/// Parses an email on a blocking thread, when it is its turn.
async fn read_apart(room: &Room, from: &str, bytes: Arc<Vec<u8>>) -> Option<Mail> {
    let (turn, from) = (Arc::clone(&room.parsers).acquire_owned().await.ok()?, from.to_owned());
    let read = move || {
        // Kept by the thread, which outlives a session that is dropped.
        let _turn = turn;
        Mail::read(&from, &bytes)
    };
    // An email that makes the parser panic is unreadable.
    tokio::task::spawn_blocking(read).await.ok().flatten()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use nuncio_channel::stop;
    use nuncio_domain::id::{Id as _, uuid_v7};
    use nuncio_domain::{ConnectionId, TenantId, Timestamp};
    use tokio::io::AsyncReadExt as _;

    use super::*;

    #[derive(Debug)]
    struct TakesAll;

    #[async_trait::async_trait]
    impl MailHandler for TakesAll {
        async fn find(&self, address: &str) -> Result<Option<MailDestination>, NotNow> {
            let connection = ConnectionId::from_uuid(uuid_v7(Timestamp::from_millis(1), [7; 10]));
            Ok(Some(MailDestination::Sender(TenantId(1), connection, address.to_owned())))
        }

        async fn take(&self, _: &MailDestination, _: &Mail) -> Result<(), NotNow> {
            Ok(())
        }
    }

    /// With a paused clock, time passes only when nothing else is left to do.
    #[tokio::test(start_paused = true)]
    async fn mails_are_parsed_in_turn() {
        let (room, (_ask, asked)) = (Room::new(10_000, 1), stop());
        let turn = Arc::clone(&room.parsers).acquire_owned().await.unwrap();
        let (mut client, server) = tokio::io::duplex(10_000);
        let ours = (Limits::of_size(10_000), room);
        let session = tokio::spawn(async move { run(server, [127, 0, 0, 1].into(), &TakesAll, ours, asked).await });
        client
            .write_all(b"HELO x\r\nMAIL FROM:<a@b.example>\r\nRCPT TO:<b@b.example>\r\nDATA\r\nFrom: a@b.example\r\n\r\n.\r\nQUIT\r\n")
            .await
            .unwrap();
        let mut heard = Vec::new();
        let waiting = timeout(Duration::from_secs(1), client.read_to_end(&mut heard)).await;
        assert!(waiting.is_err() && heard.ends_with(b"354 Go ahead, and end with a dot\r\n"), "{}", heard.escape_ascii());
        drop(turn);
        client.read_to_end(&mut heard).await.unwrap();
        assert!(heard.ends_with(b"250 2.0.0 Taken\r\n221 2.0.0 Goodbye\r\n"), "{}", heard.escape_ascii());
        session.await.unwrap();
    }
}
