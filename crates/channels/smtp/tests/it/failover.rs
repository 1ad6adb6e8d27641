//! Several relays: the next one takes what the one before cannot, and nothing goes out twice.

use nuncio_domain::message::FailureCode;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::support::{Peer, listen, open, send, short, text};

const QUEUED: &str = "250 2.0.0 Ok: queued as Q1";

/// A relay that takes one mail and sends its connection away afterwards, and tells what came.
async fn takes_one(listener: &TcpListener) -> String {
    let mut peer = Peer::greeted(listener, &[]).await;
    let mail = peer.take().await;
    peer.say(QUEUED).await;
    peer.say("421 4.4.2 enough").await;
    mail
}

fn others(address: std::net::SocketAddr) -> Value {
    json!({"relays": format!("{address}")})
}

/// The first relay has a fault of this name; the mail goes to the second one.
async fn is_passed_over(fault: &'static str) {
    let ((first, address), (second, next)) = (listen().await, listen().await);
    // Long enough for the relay that answers.
    let timeout = if fault.starts_with("no greeting") || fault.starts_with("silence") { 3 } else { 20 };
    let adapter = open(address, json!({"relays": format!("{next}"), "timeout_seconds": timeout}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::accept(&first).await;
        if !fault.contains(" at ") {
            if !fault.starts_with("no") {
                peer.say(fault).await;
            }
            peer.gone().await;
            return;
        }
        peer.say("220 relay.test").await;
        peer.ehlo(&[]).await;
        peer.turn("MAIL", if fault.starts_with("530") { "530 5.7.0 who are you" } else { "250 ok" }).await;
        if fault.ends_with("at MAIL") {
            return;
        }
        peer.turn("RCPT", if fault.starts_with("421") { "421 bye" } else { "250 ok" }).await;
        peer.hear().await; // DATA, or nothing
        peer.gone().await;
    });
    let taken = tokio::spawn(async move { takes_one(&second).await });
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), ("accepted", None, Some("Q1")), "{fault}");
    assert!(taken.await.unwrap().contains("Subject: Hi"));
    relay.await.unwrap();
}

#[tokio::test]
async fn what_one_relay_cannot_take_the_next_one_takes() {
    let faults =
        ["no greeting", "554 no mail for you", "421 4.7.0 busy", "hangs up at MAIL", "421 at RCPT", "silence at DATA", "530 at MAIL"];
    JoinSet::from_iter(faults.map(is_passed_over)).join_all().await;
}

#[tokio::test]
async fn what_may_have_gone_out_goes_to_no_other_relay() {
    // A mail that was refused for itself neither: another relay would be asked to do what the first one knows better than to do.
    for (answer, outcome) in [
        (None, ("unknown", Some(FailureCode::UnknownOutcome), None)),
        (Some("554 5.7.1 spam"), ("rejected", Some(FailureCode::ContentRejected), Some("554 5.7.1"))),
        (Some("451 4.3.0 later"), ("deferred", Some(FailureCode::Undeliverable), Some("451 4.3.0"))),
        (Some("421 4.3.0 closing"), ("connection", Some(FailureCode::RateLimited), Some("421 4.3.0"))),
    ] {
        let ((first, address), (second, next)) = (listen().await, listen().await);
        let adapter = open(address, others(next));
        let relay = tokio::spawn(async move {
            let mut peer = Peer::greeted(&first, &[]).await;
            peer.take().await;
            if let Some(answer) = answer {
                peer.say(answer).await;
            }
        });
        assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), outcome);
        relay.await.unwrap();
        drop(adapter);
        assert!(tokio::time::timeout(std::time::Duration::ZERO, second.accept()).await.is_err(), "the other relay was called");
    }
}

#[tokio::test]
async fn a_dead_relay_is_passed_over_and_tried_again_later() {
    let ((first, address), (second, next)) = (listen().await, listen().await);
    let adapter = open(address, others(next));
    drop(first);
    let taken = tokio::spawn(async move {
        takes_one(&second).await;
        takes_one(&second).await;
        second
    });
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await).0, "accepted");
    let first = TcpListener::bind(address).await.unwrap();
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await).0, "accepted");
    let second = taken.await.unwrap();
    assert!(tokio::time::timeout(std::time::Duration::ZERO, first.accept()).await.is_err(), "it rests");

    tokio::time::pause();
    tokio::time::advance(std::time::Duration::from_secs(61)).await;
    tokio::time::resume();
    let taken = tokio::spawn(async move { takes_one(&first).await });
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await).0, "accepted");
    taken.await.unwrap();
    drop(second);
}

#[tokio::test]
async fn when_all_relays_fail_the_first_one_s_failure_is_told() {
    let ((first, address), (second, next)) = (listen().await, listen().await);
    let adapter = open(address, others(next));
    drop((first, second));
    for _ in 0..2 {
        let outcome = send(&adapter, &text("ada@example.net")).await;
        assert_eq!(short(&outcome), ("connection", Some(FailureCode::Undeliverable), None));
        assert!(format!("{outcome:?}").contains(&address.to_string()), "{outcome:?}");
    }
    let told = adapter.check().await.unwrap_err();
    assert!(told.contains(&address.to_string()) && told.contains(&next.to_string()), "{told}");
}
