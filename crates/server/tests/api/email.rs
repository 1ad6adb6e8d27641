//! Inbound email: bounces, complaints, and messages from people.

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use nuncio::config::EmailConfig;
use nuncio::mail_listener::MailListener;
use nuncio_channel_smtp::dkim::Signer;
use nuncio_domain::{Channel, ConnectionId, MessageId, Timestamp};
use nuncio_testkit::{Backend, Mailbox, NameServer, Options, TestApp, repository};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader as Reader};
use tokio::net::{TcpListener, TcpStream};

pub(crate) const TAKEN: &str = "250 2.0.0 Taken";

/// A live environment with a relay and a listener for inbound email.
pub(crate) struct House {
    pub(crate) app: TestApp,
    room: MailListener,
    pub(crate) names: NameServer,
}

/// The key of RFC 8463, and its DNS record.
const KEY: &str = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A=";
const PUBLISHED: &str = "v=DKIM1; k=ed25519; p=11qYAYKxCrfVS/7TyWQHOg7hcvPapiMlrwIaaPcHURo=";

/// DNS records for the listener. Most authors use `example.net`.
const NAMES: &[(&str, &str)] = &[
    ("s1._domainkey.example.net", PUBLISHED),
    ("_dmarc.example.net", "v=DMARC1; p=reject"),
    ("example.net", "v=spf1 ip4:198.51.100.7 -all"),
    ("s1._domainkey.other.example", PUBLISHED),
    // Without DMARC.
    ("s1._domainkey.plain.example", PUBLISHED),
    ("plain.example", "v=spf1 ip4:198.51.100.7 ?all"),
    ("s1._domainkey.broken.example", NameServer::BROKEN),
    ("_dmarc.broken.example", "v=DMARC1; p=reject"),
];

/// Signs `mail` as the server of `domain`.
pub(crate) fn signed_by(domain: &str, mail: &str) -> String {
    let mail = mail.replace("\r\n", "\n").replace('\n', "\r\n");
    let mail = if mail.ends_with("\r\n") { mail } else { mail + "\r\n" };
    let signer = Signer::new(domain, "s1", KEY).expect("a good key");
    signer.sign(mail.as_bytes(), Timestamp::from_millis(1_700_000_000_000)) + &mail
}

impl House {
    pub(crate) async fn open(backend: Backend, relay: u16) -> Self {
        Self::with(backend, relay, EmailConfig::default()).await
    }

    pub(crate) async fn with(backend: Backend, relay: u16, config: EmailConfig) -> Self {
        let names = NameServer::start(NAMES).await;
        let mut options = Options::default();
        options.dispatch.guard.allow_loopback = true;
        options.code_relay = config.code_relay().expect("a relay");
        options.receives_email = true;
        let app = TestApp::with(backend, options).await;
        app.connect(Channel::Email, "smtp", settings(relay), json!({})).await;
        let name_servers = names.address.to_string();
        let config = EmailConfig { listen: "127.0.0.1:0".to_owned(), name_servers, ..config };
        let listener = MailListener::bind(&config).await.expect("it is free").expect("an address is set");
        let room = MailListener::open(&app.node, &config, listener).await.expect("it opens");
        Self { app, room, names }
    }

    pub(crate) async fn live(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let answer = self.app.with_key(&self.app.live_key, method, path, body).await;
        assert!(answer.status.is_success(), "{}", answer.text);
        answer.json()
    }

    pub(crate) async fn items(&self, path: &str) -> Vec<Value> {
        self.live("GET", path, None).await["items"].as_array().expect("a page").clone()
    }

    pub(crate) async fn send(&self, to: &str) -> String {
        let body = json!({"to": to, "subject": "s", "text": "x"});
        let id = self.live("POST", "/v1/messages", Some(body)).await["message"]["id"].as_str().expect("an id").to_owned();
        self.app.drain().await;
        id
    }

    pub(crate) async fn message(&self, id: &str) -> Value {
        self.live("GET", &format!("/v1/messages/{id}"), None).await["message"].clone()
    }

    pub(crate) async fn sender(&self) -> String {
        self.items("/v1/senders").await[0]["id"].as_str().expect("an id").to_owned()
    }

    pub(crate) async fn receive_email(&self, enabled: bool) {
        let path = format!("/v1/senders/{}", self.sender().await);
        self.live("PATCH", &path, Some(json!({"emailReceivingEnabled": enabled}))).await;
    }

    pub(crate) async fn received(&self) -> Vec<Value> {
        self.of_direction("inbound").await
    }

    async fn of_direction(&self, direction: &str) -> Vec<Value> {
        self.items("/v1/messages").await.into_iter().filter(|message| message["direction"] == direction).collect()
    }

    /// Returns the stored reports about a message.
    async fn reports(&self, id: &str) -> Vec<String> {
        let mut tx = self.app.store().read().await.expect("a reader");
        let kept = tx.list_receipts(self.app.project.live, id.parse().expect("an id")).await.expect("receipts");
        kept.into_iter().map(|record| record.receipt.raw).collect()
    }

    /// Returns `identifier reason` for every suppression.
    pub(crate) async fn suppressions(&self) -> Vec<String> {
        let text = |s: &Value| format!("{} {}", s["identifier"].as_str().unwrap_or_default(), s["reason"].as_str().unwrap_or_default());
        let mut all: Vec<_> = self.items("/v1/suppressions").await.iter().map(text).collect();
        all.sort();
        all
    }

    fn bounces(&self, id: &str) -> String {
        let message: MessageId = id.parse().expect("an id");
        format!("{}@bounces.example.org", self.app.node.core.mail_tokens().bounce(self.app.project.live, message, 0))
    }

    async fn feedback(&self) -> String {
        let world = self.app.node.core.tenant_config(self.app.project.live).await.expect("the live world");
        let connection: ConnectionId = world.connections.iter().find(|c| c.kind == "smtp").expect("the connection").id;
        format!("{}@bounces.example.org", self.app.node.core.mail_tokens().feedback(self.app.project.live, connection))
    }

    /// Delivers an email by LMTP; returns the listener's last response.
    pub(crate) async fn bring(&self, from: &str, to: &str, mail: &str) -> String {
        bring(self.room.address, &["LHLO mx.test"], from, to, mail).await
    }

    /// Delivers an email by a mail server that names the client it came from.
    async fn bring_from(&self, client: &str, from: &str, to: &str, mail: &str) -> String {
        let forward = format!("XFORWARD ADDR={client} HELO=mail.example.net");
        bring(self.room.address, &["LHLO mx.test", &forward], from, to, mail).await
    }

    /// Delivers an email to the connection's address; returns its authentication result.
    async fn authentication(&self, client: Option<&str>, from: &str, mail: &str) -> Value {
        let to = "hello@example.org";
        let answer = match client {
            Some(client) => self.bring_from(client, from, to, mail).await,
            None => self.bring(from, to, mail).await,
        };
        assert_eq!(answer, TAKEN, "{mail}");
        let newest = self.received().await[0]["authentication"].clone();
        self.app.clock.advance(Duration::from_millis(1)); // the next one is newer
        newest
    }
}

pub(crate) fn settings(relay: u16) -> Value {
    json!({"host": "127.0.0.1", "port": relay, "tls": "none", "from": "Acme <Hello@Example.org>", "bounce_domain": "bounces.example.org"})
}

async fn bring(address: SocketAddr, opening: &[&str], from: &str, to: &str, mail: &str) -> String {
    let mut stream = Reader::new(TcpStream::connect(address).await.expect("the listener"));
    let mut last = String::new();
    let mail = mail.replace("\r\n", "\n").replace('\n', "\r\n");
    let opening = opening.iter().map(|command| format!("{command}\r\n"));
    let delivery = [format!("MAIL FROM:<{from}>\r\n"), format!("RCPT TO:<{to}>\r\n"), "DATA\r\n".to_owned(), format!("{mail}\r\n.\r\n")];
    for say in std::iter::once(String::new()).chain(opening).chain(delivery) {
        stream.get_mut().write_all(say.as_bytes()).await.expect("written");
        last.clear();
        while last.is_empty() || last.lines().last().is_some_and(|line| line.as_bytes().get(3) == Some(&b'-')) {
            stream.read_line(&mut last).await.expect("an answer");
        }
        if last.starts_with(['4', '5']) {
            break;
        }
    }
    last.lines().last().unwrap_or_default().to_owned()
}

/// Starts a relay that accepts all emails.
pub(crate) async fn relay() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("its address").port();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            tokio::spawn(converse(Reader::new(stream)));
        }
    });
    port
}

async fn converse(mut stream: Reader<TcpStream>) {
    let (mut answer, mut content) = ("220 relay\r\n", false);
    loop {
        if stream.get_mut().write_all(answer.as_bytes()).await.is_err() {
            return;
        }
        let mut line = String::new();
        while line.is_empty() || (content && line != ".\r\n") {
            line.clear();
            if stream.read_line(&mut line).await.unwrap_or(0) == 0 {
                return;
            }
        }
        content = line.starts_with("DATA");
        answer = if content { "354 go\r\n" } else { "250 ok\r\n" };
    }
}

/// Returns the result of testing the connection.
async fn check(app: &TestApp) -> String {
    let config = app.node.core.tenant_config(app.project.live).await.expect("the live world");
    let connection = config.connections.iter().find(|c| c.kind == "smtp").expect("the connection").clone();
    app.node.core.senders().check_connection(app.project.live, &connection).await.expect("checked").expect("it works")
}

fn report(kind: &str, content: &str, head: &str) -> String {
    format!(
        "From: mailer@mx.example\nSubject: report\nMIME-Version: 1.0\nContent-Type: multipart/report; report-type=x; boundary=b\n\n--b\n\nIn words.\n\
         --b\nContent-Type: message/{kind}\n\n{content}\n--b\nContent-Type: text/rfc822-headers\n\n{head}\n--b--\n"
    )
}

fn delivery(action: &str, status: &str) -> String {
    delivery_to("RECIPIENT", action, status)
}

fn delivery_to(recipient: &str, action: &str, status: &str) -> String {
    let entry = format!("Reporting-MTA: dns; mx.example\n\nFinal-Recipient: rfc822; {recipient}\nAction: {action}\nStatus: {status}\n");
    report("delivery-status", &entry, "Subject: s")
}

fn status(message: &Value) -> (&str, Option<&str>) {
    (message["status"].as_str().expect("a status"), message["errorCode"].as_str())
}

#[tokio::test]
async fn reports_of_delivery_correct_what_is_known() {
    for backend in Backend::all() {
        let house = House::open(backend, relay().await).await;
        for (number, (mail, expected, suppressed)) in [
            (delivery("delayed", "4.4.1"), ("sent", None), false),
            (delivery("delivered", "2.0.0"), ("delivered", None), false),
            (delivery("relayed", "2.0.0"), ("delivered", None), false),
            (delivery("failed", "5.1.1"), ("failed", Some("invalid_recipient")), true),
            (delivery_to("behind@an.alias.example", "failed", "5.1.1"), ("failed", Some("invalid_recipient")), false),
            (delivery("failed", "5.2.2"), ("failed", Some("undeliverable")), false),
            (delivery("failed", "5.7.1"), ("failed", Some("content_rejected")), false),
            ("From: mailer@mx.example\nSubject: failure notice\n\nIt came back.\n".to_owned(), ("failed", Some("undeliverable")), false),
            ("From: a@b.example\nSubject: away\nAuto-Submitted: auto-replied\n\nIn the sun.\n".to_owned(), ("sent", None), false),
        ]
        .into_iter()
        .enumerate()
        {
            let to = format!("ada{number}@example.net");
            let mail = mail.replace("RECIPIENT", &to);
            let id = house.send(&to).await;
            assert_eq!(status(&house.message(&id).await), ("sent", None));
            // A mail server without a response sends the email again.
            for _ in 0..2 {
                assert_eq!(house.bring("", &house.bounces(&id), &mail).await, TAKEN);
            }
            let message = house.message(&id).await;
            assert_eq!(status(&message), expected, "{mail}: {message}");
            let suppressions = house.suppressions().await;
            assert_eq!(suppressions.iter().filter(|s| **s == format!("{to} bounce")).count(), usize::from(suppressed), "{suppressions:?}");
            if mail.contains("Action: ") {
                let reports = house.reports(&id).await;
                assert!(reports[0].starts_with("Final-Recipient: rfc822; "), "{reports:?}");
            }
        }
        house.room.close().await;
    }
}

#[tokio::test]
async fn complaints_suppress_whom_they_are_from() {
    let house = House::open(Backend::Sqlite, relay().await).await;
    let (by_path, by_name, by_bounce) =
        (house.send("a@example.net").await, house.send("b@example.net").await, house.send("c@example.net").await);
    let mail = |path: &str, id: &str, kind: &str| {
        report(
            "feedback-report",
            &format!("Feedback-Type: {kind}\nOriginal-Mail-From: <{path}>\n"),
            &format!("Message-ID: <{id}@example.org>"),
        )
    };
    let feedback = house.feedback().await;
    for (mail, to) in [
        (mail("x@y.example", &by_name, "not-spam"), &feedback),
        (mail("x@y.example", "msg_01kahy0000e0000000000000ab", "abuse"), &feedback),
    ] {
        assert_eq!(house.bring("fbl@mx.example", to, &mail).await, TAKEN);
        assert!(house.suppressions().await.is_empty());
    }
    for (mail, to) in [
        (mail(&house.bounces(&by_path), "x", "abuse"), feedback.clone()),
        (mail("x@y.example", &by_name, "abuse"), feedback.clone()),
        (mail("x@y.example", "x", "abuse"), house.bounces(&by_bounce)),
    ] {
        assert_eq!(house.bring("fbl@mx.example", &to, &mail).await, TAKEN);
    }
    assert_eq!(house.suppressions().await, ["a@example.net complaint", "b@example.net complaint", "c@example.net complaint"]);
    let check = check(&house.app).await;
    assert!(check.contains(&format!("complaints (feedback loops) belong to {feedback}")), "{check}");
}

/// Feedback loops are registered with the address of the first connection.
#[tokio::test]
async fn complaints_to_a_former_connection_count() {
    for backend in Backend::all() {
        let house = House::open(backend, relay().await).await;
        let feedback = house.feedback().await;
        let path = format!("/v1/senders/{}/channels/email", house.sender().await);
        house.app.with_key(&house.app.live_key, "DELETE", &path, None).await.expect(204);
        house.app.connect(Channel::Email, "smtp", settings(relay().await), json!({})).await;
        assert_ne!(house.feedback().await, feedback);
        let id = house.send("a@example.net").await;
        let complaint = |path: &str| {
            report(
                "feedback-report",
                &format!("Feedback-Type: abuse\nOriginal-Mail-From: <{path}>\n"),
                &format!("Message-ID: <{id}@example.org>"),
            )
        };
        assert_eq!(house.bring("fbl@mx.example", &feedback, &complaint("x@y.example")).await, TAKEN);
        assert!(house.suppressions().await.is_empty(), "anyone can write a Message-ID");
        assert_eq!(house.bring("fbl@mx.example", &feedback, &complaint(&house.bounces(&id))).await, TAKEN);
        assert_eq!(house.suppressions().await, ["a@example.net complaint"]);
    }
}

#[tokio::test]
async fn a_connection_test_says_why_no_email_comes() {
    let house = House::open(Backend::Sqlite, relay().await).await;
    let off = "; email to hello@example.org is not accepted, as emailReceivingEnabled of the sender is false";
    assert!(check(&house.app).await.contains(off));
    house.receive_email(true).await;
    assert!(!check(&house.app).await.contains("; email to"));

    let mut options = Options::default();
    options.dispatch.guard.allow_loopback = true;
    let deaf = TestApp::with(Backend::Sqlite, options).await;
    deaf.connect(Channel::Email, "smtp", settings(relay().await), json!({})).await;
    let check = check(&deaf).await;
    assert!(check.contains("; email to hello@example.org is not received, as this server does not listen for email"), "{check}");
}

#[tokio::test]
async fn letters_of_people_are_messages() {
    for backend in Backend::all() {
        let house = House::open(backend, relay().await).await;
        let letter = "From: Ada <ada@example.net>\nSubject: Re: s\nMessage-ID: <1@example.net>\nContent-Type: multipart/mixed; boundary=b\n\n\
            --b\n\nHello\n--b\nContent-Type: text/plain; name=a.txt\nContent-Disposition: attachment\n\nfile\n--b--\n";
        let to = "HELLO@example.ORG";
        for refused in
            [to, "nobody@example.org", "hello@example.com", "b-1-01kahy0000e0000000000000ab-0-0123456789abcdef@bounces.example.org", "x"]
        {
            let answer = house.bring("ada@example.net", refused, letter).await;
            assert!(answer.starts_with("550 5.1.1") || (refused == "x" && answer.starts_with('5')), "{refused}: {answer}");
        }
        house.receive_email(true).await;
        for _ in 0..2 {
            assert_eq!(house.bring("bounce@lists.example", to, letter).await, TAKEN);
        }
        let received = house.received().await;
        let [message] = received.as_slice() else { panic!("{received:?}") };
        assert_eq!(
            (&message["from"], &message["text"], &message["subject"]),
            (&json!("ada@example.net"), &json!("Hello"), &json!("Re: s"))
        );
        assert_eq!((&message["channel"], &message["providerMessageId"]), (&json!("email"), &json!("1@example.net")));
        let files = house.items(&format!("/v1/messages/{}/attachments", message["id"].as_str().expect("an id"))).await;
        assert_eq!((&files[0]["filename"], &files[0]["size"]), (&json!("a.txt"), &json!(4)), "{files:?}");

        // Automatic emails, and those apparently from ourselves, do not become conversations.
        for machine in [
            "From: a@example.net\nAuto-Submitted: auto-replied\n\naway",
            "From: a@example.net\nPrecedence: bulk\n\nnews",
            "From: Hello@example.org\n\nto myself",
            &delivery("failed", "5.1.1"),
        ] {
            assert_eq!(house.bring("a@example.net", to, machine).await, TAKEN);
        }
        assert_eq!(house.bring("", to, "From: a@example.net\n\nno way back").await, TAKEN);
        assert_eq!((house.received().await.len(), house.suppressions().await.len()), (1, 0));

        house.receive_email(false).await;
        assert!(house.bring("ada@example.net", to, letter).await.starts_with("550"));
    }
}

#[tokio::test]
async fn an_email_from_another_nuncio_is_received() {
    let house = House::open(Backend::Sqlite, relay().await).await;
    house.receive_email(true).await;
    let letter = "From: desk@other.example\nMessage-ID: <msg_01kahy0000e0000000000000ab@other.example>\n\nHello\n";
    assert_eq!(house.bring("desk@other.example", "hello@example.org", letter).await, TAKEN);
    assert_eq!(house.received().await[0]["from"], "desk@other.example");
}

#[tokio::test]
async fn an_author_without_an_address_is_refused() {
    let house = House::open(Backend::Sqlite, relay().await).await;
    house.receive_email(true).await;
    for from in ["From: <>\n", "From: root\n", "From: not an address\n", "From: Friends:;\n", ""] {
        let answer = house.bring("ada@example.net", "hello@example.org", &format!("{from}Subject: s\n\nHello\n")).await;
        assert_eq!(answer, "550 5.1.7 The address in From cannot be answered", "{from}");
    }
    assert!(house.received().await.is_empty());
}

#[tokio::test]
async fn emails_that_differ_in_a_file_are_two() {
    for backend in Backend::all() {
        let house = House::open(backend, relay().await).await;
        house.receive_email(true).await;
        let letter = |name: &str, content: &str| {
            format!(
                "From: ada@example.net\nMessage-ID: <1@example.net>\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHello\n\
                 --b\nContent-Type: text/csv\nContent-Disposition: attachment; filename={name}\n\n{content}\n--b--\n"
            )
        };
        for (name, content, received) in [("a.csv", "1", 1), ("a.csv", "1", 1), ("a.csv", "2", 2), ("b.csv", "1", 3), ("a.csv", "2", 3)] {
            assert_eq!(house.bring("ada@example.net", "hello@example.org", &letter(name, content)).await, TAKEN);
            assert_eq!(house.received().await.len(), received, "{name} {content}");
        }
    }
}

#[tokio::test]
async fn names_in_an_email_are_one_line_and_no_path() {
    let house = House::open(Backend::Sqlite, relay().await).await;
    house.receive_email(true).await;
    let file = |name: &str| format!("--b\nContent-Type: text/csv\nContent-Disposition: attachment; filename*=utf-8''{name}\n\n1\n");
    let files = ["%0d%0aSet-Cookie:a", "..%2f..%2f%3cb%3ex.html", "..%5ca%e2%80%aegnp.exe", "%0d"].map(file).concat();
    let letter = format!(
        "From: ada@example.net\nSubject: =?utf-8?q?a=0D=0Ab=E2=80=AEc?=\nContent-Type: multipart/mixed; boundary=b\n\n--b\n\nHello\n{files}--b--\n"
    );
    assert_eq!(house.bring("ada@example.net", "hello@example.org", &letter).await, TAKEN);
    let received = house.received().await;
    assert_eq!(received[0]["subject"], "a  b c");
    let files = house.items(&format!("/v1/messages/{}/attachments", received[0]["id"].as_str().expect("an id"))).await;
    let names: Vec<_> = files.iter().map(|file| file["filename"].as_str().unwrap_or_default()).collect();
    assert_eq!(names, ["Set-Cookie:a", ".._.._<b>x.html", ".._a gnp.exe", "media"]);
}

// holds: suppressions.stop.proven
#[tokio::test]
async fn stop_and_start_are_heard_in_emails_that_prove_their_writer() {
    for backend in Backend::all() {
        let house = House::open(backend, relay().await).await;
        house.receive_email(true).await;
        let write =
            |number: u8, text: &str| format!("From: Ada <ada@example.net>\nSubject: Re: s\nMessage-ID: <{number}@example.net>\n\n{text}\n");
        let bring = async |mail: &str| assert_eq!(house.bring("ada@example.net", "hello@example.org", mail).await, TAKEN);
        let verified = async || {
            let contacts = house.items("/v1/contacts").await;
            contacts.iter().find(|contact| contact["primaryEmail"] == "ada@example.net").map(|contact| contact["verified"].clone())
        };
        // Anyone can forge this.
        for word in ["STOP", "HELP", "START"] {
            bring(&write(word.len() as u8 + word.as_bytes()[1], word)).await;
        }
        house.app.drain().await;
        let proof = json!({"spf": "none", "dkim": "none", "dmarc": "fail", "from": "unauthenticated"});
        assert_eq!(house.received().await.iter().map(|message| &message["authentication"]).collect::<Vec<_>>(), [&proof, &proof, &proof]);
        assert_eq!((house.suppressions().await.len(), house.of_direction("outbound").await.len()), (0, 0));
        assert_eq!(verified().await, Some(json!(false)));

        let quoted = write(1, "Stop.\n\nSent from AOL on Android\n\nOn Sat, 21 Nov 2026, Acme wrote:\n> s\n> x");
        bring(&signed_by("example.net", &quoted)).await;
        assert_eq!(house.suppressions().await, ["ada@example.net opt_out"]);
        assert_eq!(verified().await, Some(json!(true)));
        house.app.drain().await;
        let answers = house.of_direction("outbound").await;
        assert!(answers.len() == 1 && status(&answers[0]) == ("sent", None) && answers[0]["to"] == "ada@example.net", "{answers:?}");
        assert_eq!(status(&house.message(&house.send("ada@example.net").await).await), ("failed", Some("recipient_suppressed")));

        bring(&write(2, "START")).await;
        assert_eq!(house.suppressions().await, ["ada@example.net opt_out"], "a stranger lifts no opt-out");
        bring(&signed_by("example.net", &write(3, "START"))).await;
        assert!(house.suppressions().await.is_empty());
        house.room.close().await;
    }
}

#[tokio::test]
async fn an_answer_to_a_mail_that_came_may_stop_and_no_more() {
    let house = House::open(Backend::Sqlite, relay().await).await;
    house.receive_email(true).await;
    let (to_ada, to_bob) = (house.send("ada@example.net").await, house.send("bob@example.net").await);
    let write = |answered: &str, number: u8, text: &str| {
        format!("From: ada@example.net\nMessage-ID: <{number}@example.net>\nIn-Reply-To: <{answered}@example.org>\n\n{text}\n")
    };
    let bring = async |mail: &str| assert_eq!(house.bring("ada@example.net", "hello@example.org", mail).await, TAKEN);
    for (number, other) in [(1, to_bob.as_str()), (2, "msg_01kahy0000e0000000000000ab"), (3, "x")] {
        bring(&write(other, number, "STOP")).await;
        assert!(house.suppressions().await.is_empty(), "{other}");
    }
    bring(&write(&to_ada, 4, "STOP")).await;
    assert_eq!(house.suppressions().await, ["ada@example.net opt_out"]);
    bring(&write(&to_ada, 5, "START")).await;
    assert_eq!(house.suppressions().await, ["ada@example.net opt_out"]);
    assert_eq!(house.received().await[0]["authentication"]["from"], "unauthenticated");
}

// holds: messages.inbound.authentication
#[tokio::test]
async fn what_proves_the_writer_of_a_mail() {
    let house = House::open(Backend::Sqlite, relay().await).await;
    house.receive_email(true).await;
    let number = std::cell::Cell::new(0);
    let write = |from: &str| {
        number.set(number.get() + 1);
        format!("From: {from}\nTo: hello@example.org\nSubject: s\nMessage-ID: <n{}@x.example>\n\nhello\n", number.get())
    };
    let (ada, plain, good, evil) = ("ada@example.net", "ada@plain.example", Some("198.51.100.7"), Some("203.0.113.9"));
    let twice = |mail: String| mail.replacen("From: ", "From: bob@example.net\nFrom: ", 1);
    for (what, client, envelope, mail, spf, dkim, dmarc, proven) in [
        ("signed", None, ada, signed_by("example.net", &write(ada)), "none", "pass", "pass", true),
        ("a comma in the name", None, ada, signed_by("example.net", &write("Doe, Ada <ada@example.net>")), "none", "pass", "pass", true),
        ("signed by the domain above", None, ada, signed_by("example.net", &write("ada@mail.example.net")), "none", "pass", "pass", true),
        ("signed by another domain", None, ada, signed_by("other.example", &write(ada)), "none", "pass", "fail", false),
        ("changed", None, ada, signed_by("example.net", &write(ada)).replace("hello\r\n", "bye\r\n"), "none", "fail", "fail", false),
        (
            "head changed",
            None,
            ada,
            signed_by("example.net", &write(ada)).replace("From: ada@", "From: bob@"),
            "none",
            "fail",
            "fail",
            false,
        ),
        ("two writers", None, ada, twice(signed_by("example.net", &write(ada))), "permerror", "permerror", "permerror", false),
        (
            "two writers in a field",
            None,
            ada,
            signed_by("example.net", &write("ada@example.net, bob@example.net")),
            "permerror",
            "permerror",
            "permerror",
            false,
        ),
        ("from its server", good, ada, write(ada), "pass", "none", "pass", true),
        ("from elsewhere", evil, ada, write(ada), "fail", "none", "fail", false),
        ("from nobody knows where", None, ada, write(ada), "none", "none", "fail", false),
        ("forwarded", evil, ada, signed_by("example.net", &write(ada)), "fail", "pass", "pass", true),
        ("from the server of another domain", good, plain, write(ada), "pass", "none", "fail", false),
        ("signed, without DMARC", None, plain, signed_by("plain.example", &write(plain)), "none", "pass", "none", true),
        ("from its server, without DMARC", good, plain, write(plain), "pass", "none", "none", true),
        (
            "signed by a subdomain, without DMARC",
            None,
            plain,
            signed_by("s.plain.example", &write(plain)),
            "none",
            "permerror",
            "none",
            false,
        ),
        ("neither, without DMARC", evil, plain, write(plain), "neutral", "none", "none", false),
        (
            "DNS fails",
            None,
            "a@broken.example",
            signed_by("broken.example", &write("a@broken.example")),
            "none",
            "temperror",
            "temperror",
            false,
        ),
    ] {
        let from = if proven { "authenticated" } else { "unauthenticated" };
        let expected = json!({"spf": spf, "dkim": dkim, "dmarc": dmarc, "from": from});
        assert_eq!(house.authentication(client, envelope, &mail).await, expected, "{what}");
    }
}

#[tokio::test]
async fn what_other_servers_found_counts_for_the_named_one_only() {
    let result =
        "Authentication-Results: mx.example.org; spf=pass smtp.mailfrom=ada@example.net; dkim=none; dmarc=pass header.from=example.net\n";
    let mail = |number: u8| format!("{result}From: ada@example.net\nMessage-ID: <{number}@example.net>\n\nhello\n");
    for (authserv_id, expected) in [("", "unauthenticated"), ("mx.example.com", "unauthenticated"), ("mx.example.org", "authenticated")] {
        let config = EmailConfig { authserv_id: authserv_id.to_owned(), ..EmailConfig::default() };
        let house = House::with(Backend::Sqlite, relay().await, config).await;
        house.receive_email(true).await;
        let found = house.authentication(None, "ada@example.net", &mail(1)).await;
        assert_eq!(found["from"], expected, "{authserv_id:?}: {found}");
    }
}

#[tokio::test]
async fn what_dmarc_asks_to_refuse_is_refused_if_the_operator_says_so() {
    let forged = "From: ada@example.net\nMessage-ID: <1@example.net>\n\nhello\n";
    for (reject_dmarc, answer) in [(false, TAKEN), (true, "550 5.7.1 The DMARC policy of the domain in From refuses this mail")] {
        let house = House::with(Backend::Sqlite, relay().await, EmailConfig { reject_dmarc, ..EmailConfig::default() }).await;
        house.receive_email(true).await;
        assert_eq!(house.bring("ada@example.net", "hello@example.org", forged).await, answer);
        for (domain, from) in
            [("example.net", "ada@example.net"), ("plain.example", "ada@other.example"), ("broken.example", "a@broken.example")]
        {
            let mail = signed_by(domain, &format!("From: {from}\nMessage-ID: <{domain}>\n\nhello\n"));
            assert_eq!(house.bring(from, "hello@example.org", &mail).await, TAKEN, "{domain}");
        }
    }
}

#[tokio::test]
async fn a_mail_cannot_make_dns_busy() {
    let house = House::open(Backend::Sqlite, relay().await).await;
    house.receive_email(true).await;
    let mail = signed_by("example.net", "From: ada@example.net\nMessage-ID: <1@example.net>\n\nhello\n");
    let signature = mail.split("From: ").next().expect("a signature");
    let signatures: String = (0..200).map(|n| signature.replace("d=example.net", &format!("d=d{n}.example"))).collect();
    // The valid signature is among those that are checked.
    let found = house.authentication(None, "ada@example.net", &(signatures + &mail)).await;
    assert_eq!((&found["dkim"], &found["from"]), (&json!("pass"), &json!("authenticated")));
    assert!(house.names.asked() <= 30, "{} questions", house.names.asked());
}

/// A private postfix. Stops when dropped.
struct Postfix {
    child: Child,
    log: BufReader<ChildStdout>,
}

impl Postfix {
    fn start(port: u16, next: u16, home: u16) -> Self {
        let mut child = Command::new(repository().join("peers/postfix.sh"))
            .args([port, next, home].map(|port| port.to_string()))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("postfix starts; scripts/deps.sh installs it");
        let log = BufReader::new(child.stdout.take().expect("its log"));
        let mut postfix = Self { child, log };
        postfix.wait_for("daemon started");
        postfix
    }

    /// Waits for a log line that contains `text`.
    fn wait_for(&mut self, text: &str) {
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert_ne!(self.log.read_line(&mut line).expect("its log"), 0, "postfix ended before {text:?}");
            eprint!("{line}");
        }
    }
}

impl Drop for Postfix {
    fn drop(&mut self) {
        drop(self.child.stdin.take());
        let _ = self.child.wait();
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs postfix and the SMTP peer; ./test runs it"]
async fn heavy_what_postfix_cannot_deliver_comes_back() {
    if !rustix::process::geteuid().is_root() {
        eprintln!("NOT RUN: a private postfix needs root");
        return;
    }
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("its address").port();
    let house = House::open(Backend::Sqlite, free).await;
    house.receive_email(true).await;
    let mut recipients = Mailbox::start(&[]);
    let mut postfix = Postfix::start(free, recipients.port, house.room.address.port());
    let id = house.send("nouser@example.net").await;
    assert_eq!(recipients.seen()["event"], "rejected");
    postfix.wait_for("status=sent (250 2.0.0 Taken");
    let message = house.message(&id).await;
    assert_eq!(status(&message), ("failed", Some("invalid_recipient")), "{message}");
    assert_eq!((&message["attempts"][0]["providerErrorCode"], &message["attempts"][0]["status"]), (&json!("5.1.1"), &json!("failed")));
    assert_eq!(house.suppressions().await, ["nouser@example.net bounce"]);
    let reports = house.reports(&id).await;
    assert!(reports[0].contains("Diagnostic-Code: smtp; 550 5.1.1 No such user"), "{reports:?}");

    // A message from a person arrives the same way.
    let letter = "From: Ada <ada@example.net>\nSubject: Hi\nMessage-ID: <7@example.net>\n\nHello\n";
    let relay = SocketAddr::from(([127, 0, 0, 1], free));
    assert!(bring(relay, &["EHLO mx.test"], "ada@example.net", "hello@example.org", letter).await.starts_with("250"));
    postfix.wait_for("status=sent (250 2.0.0 Taken");
    assert_eq!(house.received().await[0]["text"], "Hello");
}
