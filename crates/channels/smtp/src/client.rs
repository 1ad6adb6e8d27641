//! One SMTP conversation (RFC 5321; STARTTLS: 3207; AUTH: 4954; SIZE: 1870; PIPELINING: 2920; SMTPUTF8: 6531).
//!
//! Not taken from lettre, because outcomes must be known exactly: lettre hides how far an email got and the relay's size limit; it turns a
//! response in Latin-1 into a failure, even one that accepts the email; and it keeps data that an attacker injects after the response to
//! STARTTLS.

use std::io;
use std::net::SocketAddr;
use std::pin::pin;
use std::task::{Context, Waker};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_net::upload_time;
use tokio::io::{AsyncBufReadExt as _, AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};
use tokio_rustls::TlsConnector;

use crate::config::{Config, Login, Relay, Tls};
use crate::map::{Failed, Reply, SessionError, Stage};
use crate::message::OutboundEmail;

/// Maximum size of a response, in octets; all its lines together.
const ANSWER: u64 = 64 * 1024;
/// Mails are written in pieces of about this many octets.
const PIECE: usize = 64 * 1024;
/// Longest wait for the response to an email. A shorter one would send emails again that a slow relay accepts (RFC 5321 §4.5.3.2.6).
const PROCESSING: Duration = Duration::from_secs(600);

trait Wire: AsyncRead + AsyncWrite + Send + Sync + Unpin {}
impl<T: AsyncRead + AsyncWrite + Send + Sync + Unpin> Wire for T {}

/// Extensions announced by the relay.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
struct Offers {
    starttls: bool,
    pipelining: bool,
    utf8: bool,
    eight_bit: bool,
    plain: bool,
    login: bool,
    /// Maximum email size in octets, if limited.
    size: Option<usize>,
}

impl Offers {
    /// Parses the response to EHLO. Some relays announce `AUTH=`, a pre-standard form.
    fn read(reply: &Reply) -> Self {
        let mut offers = Self::default();
        for line in reply.lines.iter().skip(1) {
            let line = line.to_ascii_uppercase();
            let mut words = line.split([' ', '=']).filter(|w| !w.is_empty());
            match words.next() {
                Some("STARTTLS") => offers.starttls = true,
                Some("PIPELINING") => offers.pipelining = true,
                Some("SMTPUTF8") => offers.utf8 = true,
                Some("8BITMIME") => offers.eight_bit = true,
                Some("SIZE") => offers.size = words.next().and_then(|n| n.parse().ok()).filter(|&n| n > 0),
                Some("AUTH") => words.for_each(|mechanism| {
                    offers.plain |= mechanism == "PLAIN";
                    offers.login |= mechanism == "LOGIN";
                }),
                _ => {}
            }
        }
        offers
    }
}

/// An open, logged-in connection. Must be dropped after a failure, unless the failure keeps it.
pub(crate) struct Connection {
    stream: BufReader<Box<dyn Wire>>,
    offers: Offers,
    /// How the relay calls itself.
    pub(crate) name: String,
    /// Whether the conversation is encrypted.
    pub(crate) encrypted: bool,
    /// When it was last used.
    pub(crate) since: Instant,
    /// Whether a refused email must be reset before the next.
    reset: bool,
}

fn at(stage: Stage) -> impl Fn(SessionError) -> Failed {
    move |fault| Failed { stage, fault }
}

/// Runs one step within `limit`.
async fn within<T>(limit: Duration, stage: Stage, step: impl Future<Output = Result<T, Failed>>) -> Result<T, Failed> {
    timeout(limit, step).await.unwrap_or_else(|_| Err(Failed { stage, fault: SessionError::TimedOut(limit) }))
}

async fn in_time<T>(limit: Duration, step: impl Future<Output = Result<T, SessionError>>) -> Result<T, SessionError> {
    timeout(limit, step).await.unwrap_or_else(|_| Err(SessionError::TimedOut(limit)))
}

impl Connection {
    /// Connects, starts TLS as configured, and logs in; all within the timeout of one step.
    pub(crate) async fn open(config: &Config, relay: &Relay) -> Result<Self, Failed> {
        within(config.timeout, Stage::Greeting, Self::establish(config, relay)).await
    }

    async fn establish(config: &Config, relay: &Relay) -> Result<Self, Failed> {
        let greeting = at(Stage::Greeting);
        let tcp = connect(config, relay).await.map_err(&greeting)?;
        let helo = match (&config.helo, tcp.local_addr()) {
            (Some(name), _) => name.clone(),
            (None, Ok(SocketAddr::V4(local))) => format!("[{}]", local.ip()),
            (None, Ok(SocketAddr::V6(local))) => format!("[IPv6:{}]", local.ip()), // RFC 5321 §4.1.3
            (None, Err(error)) => return Err(greeting(SessionError::Lost(error))),
        };
        let mut connection = Self::over(Box::new(tcp));
        if config.tls == Tls::Implicit {
            connection = connection.encrypt(config, relay).await.map_err(&greeting)?;
        }
        connection.expect(220).await.map_err(&greeting)?;
        connection.hello(&helo).await.map_err(&greeting)?;
        match config.tls {
            Tls::Required if !connection.offers.starttls => return Err(greeting(SessionError::NoStartTls)),
            Tls::Required | Tls::Opportunistic if connection.offers.starttls => {
                connection = connection.starttls(config, relay).await.map_err(&greeting)?;
                connection.hello(&helo).await.map_err(&greeting)?;
            }
            _ => {}
        }
        if let Some(login) = &config.login {
            connection.login(login).await.map_err(at(Stage::Login))?;
        }
        Ok(connection)
    }

    fn over(stream: Box<dyn Wire>) -> Self {
        Self {
            stream: BufReader::new(stream),
            offers: Offers::default(),
            name: String::new(),
            encrypted: false,
            since: Instant::now(),
            reset: false,
        }
    }

    /// Returns the relay's size limit, in octets.
    pub(crate) fn size_limit(&self) -> Option<usize> {
        self.offers.size
    }

    /// Returns the connection if nothing is left to read, and the relay has not closed it. Does not wait.
    pub(crate) fn quiet(mut self) -> Option<Self> {
        // The budget of a task would make a stream look quiet that is not.
        let fill = pin!(tokio::task::unconstrained(self.stream.fill_buf()));
        let is_quiet = fill.poll(&mut Context::from_waker(Waker::noop())).is_pending();
        is_quiet.then_some(self)
    }

    /// Starts TLS on the bare stream.
    async fn encrypt(self, config: &Config, relay: &Relay) -> Result<Self, SessionError> {
        let Some(trust) = &config.trust else { return Err(SessionError::NoStartTls) };
        if !self.stream.buffer().is_empty() {
            return Err(SessionError::Garbled("it sent more before TLS began; somebody may be tampering with the line".to_owned()));
        }
        let stream =
            TlsConnector::from(trust.clone()).connect(relay.name.clone(), self.stream.into_inner()).await.map_err(SessionError::Tls)?;
        Ok(Self { encrypted: true, ..Self::over(Box::new(stream)) })
    }

    async fn starttls(mut self, config: &Config, relay: &Relay) -> Result<Self, SessionError> {
        self.command("STARTTLS").await?;
        self.expect(220).await?;
        self.encrypt(config, relay).await
    }

    async fn hello(&mut self, name: &str) -> Result<(), SessionError> {
        self.command(&format!("EHLO {name}")).await?;
        let reply = self.expect(250).await?;
        self.offers = Offers::read(&reply);
        self.name = reply
            .lines
            .first()
            .and_then(|line| line.split_whitespace().next())
            .unwrap_or_default()
            .chars()
            .filter(|c| !c.is_control())
            .take(255)
            .collect();
        Ok(())
    }

    async fn login(&mut self, login: &Login) -> Result<(), SessionError> {
        let password = login.password.expose();
        if self.offers.plain {
            let response = STANDARD.encode(format!("\0{}\0{password}", login.username));
            self.command(&format!("AUTH PLAIN {response}")).await?;
        } else if self.offers.login {
            self.command("AUTH LOGIN").await?;
            self.expect(334).await?;
            self.command(&STANDARD.encode(&login.username)).await?;
            self.expect(334).await?;
            self.command(&STANDARD.encode(password)).await?;
        } else {
            return Err(SessionError::NoAuth);
        }
        self.expect(235).await.map(drop)
    }

    /// Sends an email and returns the accepting response. Each step takes at most `limit`; writing gets extra time for the size, and the
    /// last response has [`PROCESSING`].
    pub(crate) async fn deliver(&mut self, from: &str, letter: &OutboundEmail, limit: Duration) -> Result<Reply, Failed> {
        if let Some(size) = self.offers.size.filter(|&size| letter.bytes.len() > size) {
            return Err(Failed { stage: Stage::Mail, fault: SessionError::TooLarge { size: letter.bytes.len(), limit: size } });
        }
        if let Some(address) = letter.utf8.as_ref().filter(|_| !self.offers.utf8) {
            return Err(Failed { stage: Stage::Mail, fault: SessionError::NoUtf8(address.clone()) });
        }
        let reset = std::mem::replace(&mut self.reset, true);
        within(limit, Stage::Rcpt, self.envelope(from, letter, reset)).await?;
        let mut stage = Stage::Content;
        let writing = limit + upload_time(letter.bytes.len());
        let answer = match in_time(writing, self.content(&letter.bytes, &mut stage)).await {
            Ok(()) => in_time(PROCESSING, self.expect_class(2)).await,
            Err(fault) => Err(fault),
        };
        // Accepted or refused, the response ends the transaction.
        self.reset = false;
        answer.map_err(at(stage))
    }

    /// Sends everything before the content. Without PIPELINING each command waits for the previous response.
    async fn envelope(&mut self, from: &str, letter: &OutboundEmail, reset: bool) -> Result<(), Failed> {
        let size = self.offers.size.map(|_| format!(" SIZE={}", letter.bytes.len())).unwrap_or_default();
        let body = if letter.utf8.is_some() && self.offers.eight_bit { " BODY=8BITMIME" } else { "" }; // only headers contain non-ASCII characters
        let utf8 = if letter.utf8.is_some() { " SMTPUTF8" } else { "" };
        let steps = [
            (Stage::Mail, "RSET".to_owned()),
            (Stage::Mail, format!("MAIL FROM:<{from}>{size}{body}{utf8}")),
            (Stage::Rcpt, format!("RCPT TO:<{}>", letter.to)),
        ];
        let steps = &steps[usize::from(!reset)..];
        if self.offers.pipelining {
            let all = steps.iter().map(|(_, command)| command.as_str()).collect::<Vec<_>>().join("\r\n");
            self.command(&all).await.map_err(at(Stage::Mail))?;
        }
        let mut refused = None;
        for (stage, command) in steps {
            if !self.offers.pipelining {
                self.command(command).await.map_err(at(*stage))?;
            }
            match self.expect_class(2).await {
                Ok(_) => {}
                // A connection that cannot be reset is as useless as a closed one.
                Err(SessionError::Refused(_)) if command == "RSET" => {
                    return Err(Failed { stage: *stage, fault: SessionError::Lost(io::ErrorKind::ConnectionReset.into()) });
                }
                // The first refusal counts; with pipelining the responses to the other commands still follow.
                Err(SessionError::Refused(reply)) => {
                    refused = refused.or(Some(Failed { stage: *stage, fault: SessionError::Refused(reply) }))
                }
                // A relay that refuses and hangs up has refused.
                Err(fault) => return Err(refused.unwrap_or(Failed { stage: *stage, fault })),
            }
            if !self.offers.pipelining && refused.is_some() {
                break;
            }
        }
        if let Some(refused) = refused {
            return Err(refused);
        }
        self.command("DATA").await.map_err(at(Stage::Data))?;
        self.expect(354).await.map(drop).map_err(at(Stage::Data))
    }

    /// Writes the email with dots doubled at the start of lines (RFC 5321 §4.5.2). `stage` records the progress.
    async fn content(&mut self, mail: &[u8], stage: &mut Stage) -> Result<(), SessionError> {
        let mut piece = Vec::with_capacity(PIECE.min(mail.len()) + 1_024);
        for line in mail.split_inclusive(|&b| b == b'\n') {
            if line.starts_with(b".") {
                piece.push(b'.');
            }
            piece.extend_from_slice(line);
            if piece.len() >= PIECE {
                self.write(&piece).await?;
                piece.clear();
            }
        }
        piece.extend_from_slice(b".\r\n");
        *stage = Stage::Answer;
        self.write(&piece).await
    }

    /// Checks that the relay responds.
    pub(crate) async fn noop(&mut self, limit: Duration) -> Result<(), Failed> {
        let ask = async {
            self.command("NOOP").await.map_err(at(Stage::Mail))?;
            self.expect_class(2).await.map(drop).map_err(at(Stage::Mail))
        };
        within(limit, Stage::Mail, ask).await
    }

    /// Says goodbye. Whether the relay hears it makes no difference.
    pub(crate) async fn quit(mut self) {
        let goodbye = async {
            self.command("QUIT").await?;
            self.reply().await
        };
        timeout(Duration::from_secs(1), goodbye).await.ok();
    }

    async fn command(&mut self, line: &str) -> Result<(), SessionError> {
        self.write(format!("{line}\r\n").as_bytes()).await
    }

    async fn write(&mut self, bytes: &[u8]) -> Result<(), SessionError> {
        self.stream.write_all(bytes).await.map_err(SessionError::Lost)?;
        self.stream.flush().await.map_err(SessionError::Lost)
    }

    async fn expect(&mut self, code: u16) -> Result<Reply, SessionError> {
        let reply = self.expect_class(code / 100).await?;
        if reply.code != code {
            return Err(SessionError::Garbled(format!("it answered {} where {code} was due", reply.code)));
        }
        Ok(reply)
    }

    async fn expect_class(&mut self, class: u16) -> Result<Reply, SessionError> {
        let reply = self.reply().await?;
        match reply.code / 100 {
            found if found == class => Ok(reply),
            4 | 5 => Err(SessionError::Refused(reply)),
            _ => Err(SessionError::Garbled(format!("it answered {} out of turn", reply.code))),
        }
    }

    async fn reply(&mut self) -> Result<Reply, SessionError> {
        let mut lines = Vec::new();
        let mut input = (&mut self.stream).take(ANSWER);
        loop {
            let mut line = Vec::new();
            input.read_until(b'\n', &mut line).await.map_err(SessionError::Lost)?;
            if !line.ends_with(b"\n") {
                let full = input.limit() == 0;
                return Err(if full {
                    SessionError::Garbled("an answer does not end".to_owned())
                } else {
                    SessionError::Lost(io::ErrorKind::UnexpectedEof.into())
                });
            }
            let (code, more, text) = reply_line(&line).ok_or_else(|| SessionError::Garbled("an answer has no code".to_owned()))?;
            lines.push(text);
            if !more {
                return Ok(Reply { code, lines });
            }
        }
    }
}

/// Parses a response line: code, whether more lines follow, and text. The text may be missing or not UTF-8.
fn reply_line(line: &[u8]) -> Option<(u16, bool, String)> {
    let line = line.trim_ascii_end();
    let code = line.get(..3).filter(|c| c.iter().all(u8::is_ascii_digit))?;
    let code = code.iter().fold(0, |n, d| n * 10 + u16::from(d - b'0'));
    let more = match line.get(3) {
        None | Some(b' ') => false,
        Some(b'-') => true,
        Some(_) => return None,
    };
    (200..600).contains(&code).then(|| (code, more, String::from_utf8_lossy(line.get(4..).unwrap_or_default()).into_owned()))
}

/// Connects to the first address of the host that responds. No address can use up the whole timeout.
async fn connect(config: &Config, relay: &Relay) -> Result<TcpStream, SessionError> {
    let addresses = config.net.resolve(config.trusted, &relay.host, relay.port).await.map_err(SessionError::Name)?;
    let limit = (config.timeout / 2).min(Duration::from_secs(10));
    let mut last = SessionError::TimedOut(limit);
    for address in addresses {
        match timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true).map_err(SessionError::Connect)?; // the conversation is a game of ping-pong
                return Ok(stream);
            }
            Ok(Err(error)) => last = SessionError::Connect(error),
            Err(_) => last = SessionError::TimedOut(limit),
        }
    }
    Err(last)
}

#[cfg(test)]
#[path = "client_tests.rs"]
mod tests;
