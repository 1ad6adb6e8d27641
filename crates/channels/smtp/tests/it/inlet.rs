//! The listener: what it takes, what it refuses, and that nothing makes it fall over.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::stop;
use nuncio_channel::testing::peer_python;
use nuncio_channel_smtp::inlet::{Limits, MailDestination, MailHandler, NotNow, serve};
use nuncio_channel_smtp::mail::Mail;
use nuncio_domain::TenantId;
use parking_lot::Mutex;
use proptest::prelude::*;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;
use tokio::sync::watch;

use crate::message;
use crate::support::listen;

const SIZE: usize = 10_000;

/// Knows `ada@`, `bob@` and `busy@` example.org, and fails for the last one, or for whom it is told to.
#[derive(Debug, Default)]
struct Book {
    taken: Mutex<Vec<(MailDestination, Mail)>>,
    /// Outcomes of the next mails.
    fails: Mutex<VecDeque<bool>>,
}

#[async_trait::async_trait]
impl MailHandler for Book {
    async fn find(&self, address: &str) -> Result<Option<MailDestination>, NotNow> {
        let connection = message::message().state.route.connection;
        match address {
            "ada@example.org" => Ok(Some(MailDestination::Sender(TenantId(1), connection, address.to_owned()))),
            "bob@example.org" => Ok(Some(MailDestination::Sender(TenantId(2), connection, address.to_owned()))),
            "busy@example.org" => Err(NotNow),
            _ => Ok(None),
        }
    }

    async fn take(&self, place: &MailDestination, mail: &Mail) -> Result<(), NotNow> {
        if self.fails.lock().pop_front().unwrap_or(false) {
            return Err(NotNow);
        }
        self.taken.lock().push((place.clone(), mail.clone()));
        Ok(())
    }
}

struct Server {
    address: SocketAddr,
    book: Arc<Book>,
    ask: watch::Sender<bool>,
    task: tokio::task::JoinHandle<()>,
}

async fn server(patience: Duration) -> Server {
    let (listener, address) = listen().await;
    let book = Arc::new(Book::default());
    let (ask, asked) = stop();
    let limits = Limits { connections: 4, recipients: 3, patience, ..Limits::of_size(SIZE) };
    let task = tokio::spawn(serve(listener, book.clone(), limits, asked));
    Server { address, book, ask, task }
}

pub(crate) struct Client(BufReader<TcpStream>);

impl Client {
    async fn meet(server: &Server, hello: &str) -> Self {
        Self::meet_at(server.address, hello).await
    }

    pub(crate) async fn meet_at(address: SocketAddr, hello: &str) -> Self {
        let mut client = Self(BufReader::new(TcpStream::connect(address).await.unwrap()));
        assert_eq!(client.hear().await, "220 nuncio ready");
        client.say(&format!("{hello} client.test\r\n")).await;
        let mut line = client.hear().await;
        while line.starts_with("250-") {
            line = client.hear().await;
        }
        client
    }

    pub(crate) async fn say(&mut self, text: &str) {
        self.0.get_mut().write_all(text.as_bytes()).await.unwrap();
    }

    pub(crate) async fn hear(&mut self) -> String {
        let mut line = String::new();
        self.0.read_line(&mut line).await.unwrap();
        line.trim_end().to_owned()
    }

    /// Says a line, and hears the code of the answer.
    pub(crate) async fn turn(&mut self, line: &str) -> String {
        self.say(&format!("{line}\r\n")).await;
        self.hear().await.chars().take(3).collect()
    }

    /// Everything up to the end of the connection.
    async fn rest(&mut self) -> String {
        let mut rest = String::new();
        self.0.read_to_string(&mut rest).await.unwrap();
        rest
    }
}

const LETTER: &str = "From: eve@example.net\r\nSubject: Hi\r\n\r\n..dots\r\nhello\r\n.\r\n";

#[tokio::test]
async fn each_recipient_is_answered_in_lmtp_and_the_mail_in_smtp() {
    let server = server(Duration::from_secs(60)).await;
    for (hello, fails, answers) in [
        ("LHLO", [false, false], &["250", "250"][..]),
        ("LHLO", [true, false], &["451", "250"]),
        ("EHLO", [false, false], &["250"]),
        ("HELO", [false, true], &["451"]),
    ] {
        server.book.taken.lock().clear();
        server.book.fails.lock().extend(fails);
        let mut client = Client::meet(&server, hello).await;
        client.say("MAIL FROM:<eve@example.net> SIZE=100 BODY=8BITMIME\r\nRCPT TO:<ada@example.org>\r\n").await;
        client.say("RCPT TO:<nobody@example.org>\r\nRCPT TO:<eve@elsewhere.example>\r\nRCPT TO:<bob@example.org>\r\nDATA\r\n").await;
        let heard =
            [client.hear().await, client.hear().await, client.hear().await, client.hear().await, client.hear().await, client.hear().await];
        assert_eq!(heard.map(|line| line[..3].to_owned()), ["250", "250", "550", "550", "250", "354"], "it relays nothing");
        client.say(LETTER).await;
        for answer in answers {
            assert!(client.hear().await.starts_with(answer), "{hello} {fails:?}");
        }
        assert_eq!(client.turn("QUIT").await, "221");
        let taken = server.book.taken.lock().clone();
        assert_eq!(taken.len(), fails.iter().filter(|fails| !**fails).count());
        assert!(taken.iter().all(|(_, mail)| matches!(mail, Mail::InboundEmail(letter) if letter.text == ".dots\nhello")), "{taken:?}");
    }
}

#[tokio::test]
async fn what_is_out_of_turn_or_too_much_is_refused() {
    let server = server(Duration::from_secs(60)).await;
    let mut stranger = Client(BufReader::new(TcpStream::connect(server.address).await.unwrap()));
    stranger.hear().await;
    assert_eq!(stranger.turn("MAIL FROM:<a@b.example>").await, "503");
    let mut client = Client::meet(&server, "EHLO").await;
    for (line, code) in [
        ("RCPT TO:<ada@example.org>", "503"),
        ("DATA", "503"),
        ("MAIL FROM:<a@b.example> SIZE=10001", "552"),
        ("MAIL FROM:<>", "250"),
        ("MAIL FROM:<>", "503"),
        ("DATA", "554"),
        ("RCPT TO:<busy@example.org>", "451"),
        ("RCPT TO:<ada@example.org>", "250"),
        ("RCPT TO:<ada@example.org>", "250"),
        ("RCPT TO:<ada@example.org>", "250"),
        ("RCPT TO:<ada@example.org>", "452"),
        ("RSET", "250"),
        ("DATA", "503"),
        ("VRFY ada", "252"),
        ("NOOP", "250"),
        ("STARTTLS", "502"),
        ("AUTH PLAIN AGEAYg==", "502"),
        ("BDAT 5 LAST", "502"),
        ("EXPN all", "502"),
        ("MAIL FROM:<a@b.example>", "250"),
        ("RCPT TO:<ada@example.org>", "250"),
        ("DATA", "354"),
    ] {
        assert_eq!(client.turn(line).await, code, "{line}");
    }
    client.say(&format!("Subject: x\r\n\r\n{}.\r\n", "x\r\n".repeat(SIZE))).await;
    assert!(client.hear().await.starts_with("552 5.3.4"));
    assert_eq!(client.turn("MAIL FROM:<a@b.example>").await, "250", "the next mail may be smaller");
    for _ in 0..30 {
        client.say("HOW ARE YOU\r\n").await;
    }
    assert!(client.rest().await.contains("421 4.7.0"), "enough is enough");
    assert!(server.book.taken.lock().is_empty());
}

#[tokio::test]
async fn who_asks_for_addresses_is_not_hung_up_on() {
    let server = server(Duration::from_secs(60)).await;
    let mut client = Client::meet(&server, "EHLO").await;
    for _ in 0..3 {
        for _ in 0..15 {
            assert_eq!(client.turn("MAIL FROM:<>").await, "250");
            assert_eq!(client.turn("RCPT TO:<nobody@example.org>").await, "550");
            assert_eq!(client.turn("DATA").await, "554");
            assert_eq!(client.turn("RSET").await, "250");
            assert_eq!(client.turn("RCPT TO:<ada@example.org>").await, "503");
        }
        client.say("MAIL FROM:<eve@example.net>\r\nRCPT TO:<ada@example.org>\r\nDATA\r\n").await;
        for code in ["250", "250", "354"] {
            assert!(client.hear().await.starts_with(code));
        }
        client.say(LETTER).await;
        assert!(client.hear().await.starts_with("250"), "what is taken makes good for faults");
    }
    for _ in 0..20 {
        client.say("DATA\r\n").await;
    }
    assert!(client.rest().await.ends_with("421 4.7.0 Too many errors\r\n"));
    assert_eq!(server.book.taken.lock().len(), 3);
}

#[tokio::test]
async fn nothing_is_smuggled() {
    let server = server(Duration::from_secs(60)).await;
    let second = "MAIL FROM:<ceo@example.org>\r\nRCPT TO:<bob@example.org>\r\nDATA\r\nFrom: ceo@example.org\r\n\r\nbuy\r\n.\r\n";
    for end in ["\n.\r\n", "\r\n.\n", "\n.\n", "\r.\r\n", "\r\n.\r", "\r.\r"] {
        let mut client = Client::meet(&server, "EHLO").await;
        client.say("MAIL FROM:<eve@example.net>\r\nRCPT TO:<ada@example.org>\r\nDATA\r\n").await;
        client.say(&format!("From: eve@example.net\r\n\r\nhello{end}{second}")).await;
        let rest = client.rest().await;
        assert!(rest.ends_with("521 5.5.2 A line ends with CR and LF and has no other\r\n"), "{}: {rest}", end.escape_debug());
    }
    for command in ["NOOP\nMAIL FROM:<a@b.example>\r\n", "MAIL FROM:<a@b.example>\rRCPT TO:<ada@example.org>\r\n", "NOOP\n"] {
        let mut client = Client::meet(&server, "EHLO").await;
        client.say(command).await;
        assert!(client.rest().await.starts_with("521"), "{}", command.escape_debug());
    }
    let mut client = Client::meet(&server, "EHLO").await;
    client.say(&"x".repeat(5_000)).await;
    assert!(client.rest().await.starts_with("500"));
    assert!(server.book.taken.lock().is_empty());
}

#[tokio::test]
async fn who_is_slow_or_in_the_way_is_hung_up_on() {
    let server = server(Duration::from_secs(60)).await;
    let mut client = Client::meet(&server, "EHLO").await;
    tokio::time::pause(); // time runs to the next timer as soon as nothing else is left to do
    assert!(client.rest().await.starts_with("421 4.4.2"));
    tokio::time::resume();
    let mut client = Client::meet(&server, "EHLO").await;
    client.say("MAIL FROM:<eve@example.net>\r\nRCPT TO:<ada@example.org>\r\nDATA\r\nSubject: never").await;
    tokio::time::pause();
    assert!(client.rest().await.ends_with("421 4.4.2 Too slow\r\n"));
    tokio::time::resume();

    let mut idle = Client::meet(&server, "EHLO").await;
    let mut busy = Client::meet(&server, "LHLO").await;
    busy.say("MAIL FROM:<eve@example.net>\r\nRCPT TO:<ada@example.org>\r\nDATA\r\n").await;
    for _ in 0..3 {
        busy.hear().await;
    }
    server.ask.send_replace(true);
    assert!(idle.rest().await.starts_with("421 4.3.2"));
    busy.say(LETTER).await;
    assert!(busy.hear().await.starts_with("250"), "what is under way ends well");
    drop(busy);
    server.task.await.unwrap();
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Python; ./test runs it"]
async fn heavy_python_brings_mail_by_both_protocols() {
    const BRING: &str = "
import smtplib, sys
from email.message import EmailMessage
for client in (smtplib.SMTP, smtplib.LMTP):
    mail = EmailMessage()
    mail['From'], mail['To'], mail['Subject'] = 'Jörg <jorg@example.net>', 'ada@example.org', 'Grüße 🎉'
    mail.set_content('Hallo\\n.\\nÄ\\n')
    mail.add_alternative('<p>Hallo</p>', subtype='html')
    mail.add_attachment(b'\\0\\1\\2', maintype='image', subtype='png', filename='ä.png')
    with client('127.0.0.1', int(sys.argv[1]), timeout=20) as server:
        refused = server.send_message(mail, to_addrs=['ada@example.org', 'nobody@example.org'])
        assert list(refused) == ['nobody@example.org'] and refused['nobody@example.org'][0] == 550, refused
";
    let server = server(Duration::from_secs(60)).await;
    let port = server.address.port().to_string();
    let done = tokio::task::spawn_blocking(move || Command::new(peer_python()).args(["-c", BRING, &port]).status().unwrap()).await.unwrap();
    assert!(done.success());
    let taken = server.book.taken.lock().clone();
    assert_eq!(taken.len(), 2);
    for (_, mail) in taken {
        let Mail::InboundEmail(letter) = mail else { panic!("{mail:?}") };
        assert_eq!((letter.name.as_deref(), letter.subject.as_deref()), (Some("Jörg"), Some("Grüße 🎉")));
        assert_eq!((letter.text.as_str(), letter.html.as_deref().map(str::trim)), ("Hallo\n.\nÄ", Some("<p>Hallo</p>")));
        assert_eq!((letter.media[0].filename.as_deref(), letter.media[0].bytes.as_deref()), (Some("ä.png"), Some(&[0, 1, 2][..])));
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(100))]
    #[test]
    fn nothing_makes_it_fall_over(
        pieces in proptest::collection::vec(
            prop_oneof![
                Just(b"EHLO x\r\n".to_vec()),
                Just(b"LHLO x\r\n".to_vec()),
                Just(b"MAIL FROM:<>\r\n".to_vec()),
                Just(b"RCPT TO:<ada@example.org>\r\n".to_vec()),
                Just(b"DATA\r\n".to_vec()),
                Just(b"From: a@b.example\r\n\r\n".to_vec()),
                Just(b".\r\n".to_vec()),
                "[A-Z]{4} [A-Z]{2,4}:<?[^\r\n]{0,30}>?\r\n".prop_map(String::into_bytes),
                proptest::collection::vec(any::<u8>(), 0..60),
            ],
            0..30,
        ),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let server = server(Duration::from_secs(60)).await;
            let mut client = TcpStream::connect(server.address).await.unwrap();
            // It may hang up in the middle.
            let _ = client.write_all(&pieces.concat()).await;
            let _ = client.shutdown().await;
            let mut heard = Vec::new();
            let _ = client.read_to_end(&mut heard).await;
            assert!(heard.is_empty() || heard.starts_with(b"220 "), "{}", heard.escape_ascii());
            server.ask.send_replace(true);
            server.task.await.unwrap();
        });
    }
}
