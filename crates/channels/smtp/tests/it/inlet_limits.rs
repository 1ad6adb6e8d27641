//! What the emails of all clients of the listener may take together, and what one email may be made of.

use std::net::SocketAddr;
use std::sync::Arc;

use nuncio_channel::stop;
use nuncio_channel_smtp::inlet::{Limits, MailDestination, MailHandler, NotNow, serve};
use nuncio_channel_smtp::mail::Mail;
use nuncio_domain::TenantId;
use tokio::sync::{Semaphore, watch};

use crate::inlet::Client;
use crate::message;
use crate::support::listen;

const SIZE: usize = 500_000;
const MEMORY: usize = SIZE + 100_000;

/// Accepts every address. For `wait@c.example`, signals `has` when it gets the email, and waits for `goes_on` before it stores it.
#[derive(Debug)]
struct Desk {
    has: Semaphore,
    goes_on: Semaphore,
}

#[async_trait::async_trait]
impl MailHandler for Desk {
    async fn find(&self, address: &str) -> Result<Option<MailDestination>, NotNow> {
        Ok(Some(MailDestination::Sender(TenantId(1), message::message().state.route.connection, address.to_owned())))
    }

    async fn take(&self, place: &MailDestination, _: &Mail) -> Result<(), NotNow> {
        if matches!(place, MailDestination::Sender(_, _, address) if address == "wait@c.example") {
            self.has.add_permits(1);
            self.goes_on.acquire().await.unwrap().forget();
        }
        Ok(())
    }
}

/// Serves until the sender is dropped.
async fn server() -> (SocketAddr, Arc<Desk>, watch::Sender<bool>) {
    let (listener, address) = listen().await;
    let desk = Arc::new(Desk { has: Semaphore::new(0), goes_on: Semaphore::new(0) });
    let (ask, asked) = stop();
    tokio::spawn(serve(listener, desk.clone(), Limits { memory: MEMORY, ..Limits::of_size(SIZE) }, asked));
    (address, desk, ask)
}

/// Sends an email with these further header fields and this body, to two recipients.
async fn bring(client: &mut Client, to: &str, fields: &str, body: &str) {
    assert_eq!(client.turn("MAIL FROM:<eve@b.example>").await, "250");
    for to in [to, "bob"] {
        assert_eq!(client.turn(&format!("RCPT TO:<{to}@c.example>")).await, "250");
    }
    assert_eq!(client.turn("DATA").await, "354");
    client.say(&format!("From: eve@b.example\r\n{fields}\r\n{body}.\r\n")).await;
}

#[tokio::test]
async fn emails_beyond_the_memory_are_asked_to_come_later() {
    let (address, desk, _ask) = server().await;
    let large = "0123456789abcdef0123456789abcdef0123456789abcdef\r\n".repeat(8_000);
    let mut first = Client::meet_at(address, "EHLO").await;
    bring(&mut first, "wait", "", &large).await;
    desk.has.acquire().await.unwrap().forget();

    // The first email is being stored.
    for (hello, answers) in [("EHLO", 1), ("LHLO", 2)] {
        let mut second = Client::meet_at(address, hello).await;
        for _ in 0..2 {
            bring(&mut second, "ada", "", &large).await;
            for _ in 0..answers {
                assert_eq!(second.hear().await, "452 4.3.1 Too many mails are under way; try again later");
            }
        }
        bring(&mut second, "ada", "", "small\r\n").await;
        for _ in 0..answers {
            assert!(second.hear().await.starts_with("250"), "the session goes on, and a small one has room");
        }
    }
    desk.goes_on.add_permits(1);
    assert!(first.hear().await.starts_with("250"));
    bring(&mut first, "ada", "", &large).await;
    assert!(first.hear().await.starts_with("250"), "what it took is free again");
}

#[tokio::test]
async fn memory_is_given_back() {
    let (address, _desk, _ask) = server().await;
    let large = "0123456789abcdef0123456789abcdef0123456789abcdef\r\n".repeat(8_000);
    for _ in 0..2 {
        // Cut off, too large, stored, unreadable.
        let mut cut = Client::meet_at(address, "EHLO").await;
        bring(&mut cut, "ada", "", &format!("{large}bare\n")).await;
        assert!(cut.hear().await.starts_with("521"));
        let mut client = Client::meet_at(address, "EHLO").await;
        bring(&mut client, "ada", "", &large.repeat(2)).await;
        assert!(client.hear().await.starts_with("552"));
        bring(&mut client, "ada", "", &large).await;
        assert!(client.hear().await.starts_with("250"));
        bring(&mut client, "ada", &"X: y\r\n".repeat(60_000), "").await;
        assert!(client.hear().await.starts_with("554"));
    }
}

#[tokio::test]
async fn header_fields_are_limited() {
    let (address, _desk, _ask) = server().await;
    let mut client = Client::meet_at(address, "EHLO").await;
    let multipart = "Content-Type: multipart/mixed; boundary=b\r\n";
    let fields = |count: usize| "X: y\r\n".repeat(count);
    // `From` and, in all but the first two, `Content-Type` count too.
    for (head, body, code) in [
        (fields(9_999), String::new(), "250"),
        (fields(10_000), String::new(), "554"),
        (multipart.to_owned(), format!("--b\r\n{}\r\n--b\r\n{}\r\n--b--\r\n", fields(5_000), fields(4_998)), "250"),
        (multipart.to_owned(), format!("--b\r\n{}\r\n--b\r\n{}\r\n--b--\r\n", fields(5_000), fields(4_999)), "554"),
        ("Content-Type: message/rfc822\r\n".to_owned(), format!("{}\r\n", fields(9_999)), "554"),
        ("Content-Type: text/plain\r\n".to_owned(), fields(20_000), "250"),
    ] {
        bring(&mut client, "ada", &head, &body).await;
        let answer = client.hear().await;
        assert!(answer.starts_with(code), "{answer}");
        assert!(code != "554" || answer.contains("10000 header fields"), "{answer}");
    }
}
