//! The adapter against relays that follow a script, most of them badly.

use std::time::Duration;

use nuncio_channel::{Outcome, ResolvedAttachment};
use nuncio_domain::message::FailureCode;
use serde_json::json;
use tokio::sync::oneshot;

use crate::support::{Peer, listen, open, open_with, send, send_with, short, text};

const DELIVERED: (&str, Option<FailureCode>, Option<&str>) = ("accepted", None, Some("Q1"));
const OFFLINE: (&str, Option<FailureCode>, Option<&str>) = ("connection", Some(FailureCode::Undeliverable), None);
const UNKNOWN: (&str, Option<FailureCode>, Option<&str>) = ("unknown", Some(FailureCode::UnknownOutcome), None);

fn large(bytes: usize) -> ResolvedAttachment {
    ResolvedAttachment {
        filename: "big.bin".into(),
        content_type: "application/octet-stream".into(),
        content_id: None,
        bytes: vec![1; bytes],
    }
}

#[tokio::test]
async fn two_mails_over_one_connection() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::greeted(&listener, &[]).await;
        let first = peer.take().await;
        peer.say("250 2.0.0 Ok: queued as Q1").await;
        peer.take().await;
        peer.say_bytes(b"250 Ok: \xe4ngenommen, queued as Q1\r\n").await; // not UTF-8, and accepted all the same
        first
    });
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), DELIVERED);
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), DELIVERED);
    let mail = relay.await.unwrap();
    assert!(mail.ends_with("\r\n\r\nHello\r\n..\r\n...dots\r\n\r\n.\r\n"), "dots are doubled: {mail}");
}

#[tokio::test]
async fn without_an_id_the_message_id_names_the_mail() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::greeted(&listener, &[]).await;
        peer.take().await;
        peer.say("250 OK").await;
    });
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await).2, Some("<msg_01kahy0000e0000000000000ab@example.org>"));
    relay.await.unwrap();
}

#[tokio::test]
async fn an_answer_lost_after_the_mail_is_unknown() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        for answer in ["", "25", "what?\r\n", "354 more\r\n"] {
            let mut peer = Peer::greeted(&listener, &[]).await;
            peer.take().await;
            peer.say_bytes(answer.as_bytes()).await;
        }
    });
    for _ in 0..4 {
        assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), UNKNOWN);
    }
    relay.await.unwrap();
}

#[tokio::test]
async fn a_relay_may_process_a_mail_for_minutes() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::greeted(&listener, &[]).await;
        peer.take().await;
        tokio::time::pause();
        tokio::time::advance(Duration::from_secs(540)).await;
        tokio::time::resume();
        peer.say("250 2.0.0 Ok: queued as Q1").await;
    });
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), DELIVERED);
    relay.await.unwrap();
}

#[tokio::test]
async fn silence_after_the_mail_is_unknown() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::greeted(&listener, &[]).await;
        peer.take().await;
        tokio::time::pause(); // from here on, time runs to the next timer as soon as nothing else is left to do
        peer.gone().await;
    });
    let outcome = send(&adapter, &text("ada@example.net")).await;
    assert_eq!(short(&outcome), UNKNOWN);
    assert!(format!("{outcome:?}").contains("within 600 s"), "{outcome:?}");
    relay.await.unwrap();
}

#[tokio::test]
async fn silence_before_the_mail_is_a_deferral() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::accept(&listener).await;
        tokio::time::pause(); // never greets, and the wait for it takes no time
        peer.gone().await;
        tokio::time::resume();
        let mut peer = Peer::greeted(&listener, &[]).await;
        peer.turn("MAIL", "250 ok").await;
        tokio::time::pause();
        peer.gone().await;
    });
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), OFFLINE);
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), OFFLINE);
    relay.await.unwrap();
}

#[tokio::test]
async fn a_relay_that_hangs_up_before_the_mail_is_offline() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        drop(Peer::accept(&listener).await);
        drop(Peer::greeted(&listener, &[]).await);
        let mut peer = Peer::greeted(&listener, &[]).await;
        peer.turn("MAIL", "250 ok").await;
        peer.turn("RCPT", "250 ok").await;
        peer.hear().await; // DATA
    });
    for _ in 0..3 {
        assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), OFFLINE);
    }
    relay.await.unwrap();
    let Outcome::Deferred { failure, .. } = send(&adapter, &text("ada@example.net")).await else { panic!() };
    assert!(failure.message.contains("refuses connections"), "{failure:?}");
}

#[tokio::test]
async fn a_mail_cut_off_half_way_is_a_deferral() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::greeted(&listener, &[]).await;
        peer.turn("MAIL", "250 ok").await;
        peer.turn("RCPT", "250 ok").await;
        peer.turn("DATA", "354 go").await;
        peer.hear().await;
    });
    // More than the buffers of both ends hold, so that the end of the mail cannot have been written.
    let outcome = send_with(&adapter, &text("ada@example.net"), &[large(32 * 1024 * 1024)]).await;
    assert_eq!(short(&outcome), ("deferred", Some(FailureCode::Undeliverable), None));
    relay.await.unwrap();
}

#[tokio::test]
async fn a_connection_closed_while_idle_costs_nothing() {
    for farewell in ["", "421 4.4.2 idle for too long\r\n"] {
        let (listener, address) = listen().await;
        let adapter = open(address, json!({}));
        let (closed, when_closed) = oneshot::channel();
        let relay = tokio::spawn(async move {
            let mut peer = Peer::greeted(&listener, &[]).await;
            peer.take().await;
            peer.say("250 2.0.0 Ok: queued as Q1").await;
            peer.say_bytes(farewell.as_bytes()).await;
            drop(peer);
            closed.send(()).unwrap();
            let mut peer = Peer::greeted(&listener, &[]).await;
            peer.take().await;
            peer.say("250 2.0.0 Ok: queued as Q1").await;
        });
        assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), DELIVERED);
        when_closed.await.unwrap();
        assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), DELIVERED);
        relay.await.unwrap();
    }
}

#[tokio::test]
async fn a_relay_that_closes_on_the_next_mail_gets_it_on_a_fresh_connection() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::greeted(&listener, &[]).await;
        peer.take().await;
        peer.say("250 2.0.0 Ok: queued as Q1").await;
        peer.turn("MAIL", "421 4.7.0 enough mails on this connection").await;
        let mut fresh = Peer::greeted(&listener, &[]).await;
        fresh.turn("MAIL", "421 4.7.0 too busy").await;
    });
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), DELIVERED);
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), ("connection", Some(FailureCode::RateLimited), Some("421 4.7.0")));
    relay.await.unwrap();
}

#[tokio::test]
async fn a_refused_mail_leaves_the_connection_usable() {
    for offers in [&[][..], &["PIPELINING"]] {
        let (listener, address) = listen().await;
        let adapter = open(address, json!({}));
        let relay = tokio::spawn(async move {
            let mut peer = Peer::greeted(&listener, offers).await;
            peer.turn("MAIL", "250 ok").await;
            peer.turn("RCPT", "550 5.1.1 no such user").await;
            peer.turn("RSET", "250 ok").await;
            peer.take().await;
            peer.say("554 5.7.1 looks like spam").await;
            peer.take().await;
            peer.say("250 2.0.0 Ok: queued as Q1").await;
        });
        assert_eq!(
            short(&send(&adapter, &text("ada@example.net")).await),
            ("rejected", Some(FailureCode::InvalidRecipient), Some("550 5.1.1"))
        );
        assert_eq!(
            short(&send(&adapter, &text("ada@example.net")).await),
            ("rejected", Some(FailureCode::ContentRejected), Some("554 5.7.1"))
        );
        assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), DELIVERED);
        relay.await.unwrap();
    }
}

#[tokio::test]
async fn pipelined_commands_come_together() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::greeted(&listener, &["PIPELINING", "SIZE 100000"]).await;
        let mail = peer.hear().await;
        assert_eq!(peer.hear().await, "RCPT TO:<ada@example.net>", "before MAIL is answered");
        peer.say("550 5.7.1 sender not allowed\r\n503 5.5.1 no MAIL").await;
        mail
    });
    assert_eq!(
        short(&send(&adapter, &text("ada@example.net")).await),
        ("rejected", Some(FailureCode::ProviderRejected), Some("550 5.7.1"))
    );
    assert!(relay.await.unwrap().starts_with("MAIL FROM:<hello@example.org> SIZE="));
}

#[tokio::test]
async fn a_mail_over_the_announced_size_is_not_even_begun() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::greeted(&listener, &["SIZE 2000"]).await;
        peer.take().await;
        peer.say("250 2.0.0 Ok: queued as Q1").await;
    });
    let outcome = send_with(&adapter, &text("ada@example.net"), &[large(2_000)]).await;
    assert_eq!(short(&outcome), ("rejected", Some(FailureCode::ContentRejected), None));
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), DELIVERED);
    relay.await.unwrap();
}

#[tokio::test]
async fn addresses_beyond_ascii_need_the_extension() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        drop(Peer::greeted(&listener, &[]).await.hear().await);
        let mut peer = Peer::greeted(&listener, &["SMTPUTF8", "8BITMIME"]).await;
        assert_eq!(peer.hear().await, "MAIL FROM:<hello@example.org> BODY=8BITMIME SMTPUTF8");
        peer.say("250 ok").await;
        assert_eq!(peer.hear().await, "RCPT TO:<jörg@xn--bcher-kva.example>");
        peer.say("550 5.1.1 no").await;
    });
    let other = open(address, json!({}));
    assert_eq!(short(&send(&adapter, &text("jörg@bücher.example")).await), ("rejected", Some(FailureCode::InvalidRecipient), None));
    let mut to_another = text("ada@example.net");
    to_another.request_mut().reply_to = Some("jörg@bücher.example".to_owned());
    let refused = send(&adapter, &to_another).await;
    assert!(matches!(&refused, Outcome::Rejected { failure } if failure.code == FailureCode::ContentRejected), "{refused:?}");
    drop(adapter);
    assert_eq!(short(&send(&other, &text("jörg@bücher.example")).await).2, Some("550 5.1.1"));
    relay.await.unwrap();
}

#[tokio::test]
async fn login_by_the_older_mechanism() {
    let (listener, address) = listen().await;
    let adapter = open_with(address, json!({"username": "me"}), json!({"password": "hunter2"}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::greeted(&listener, &["AUTH LOGIN"]).await;
        peer.turn("AUTH LOGIN", "334 VXNlcm5hbWU6").await;
        peer.turn("bWU=", "334 UGFzc3dvcmQ6").await;
        peer.turn("aHVudGVyMg==", "235 welcome").await;
        peer.turn("NOOP", "250 ok").await;
        peer.turn("QUIT", "221 bye").await;
        let _no_auth = Peer::greeted(&listener, &[]).await;
    });
    assert_eq!(adapter.check().await.unwrap(), format!("connected to {address} (relay.test), in clear text, logged in as me"));
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), ("connection", Some(FailureCode::CredentialsInvalid), None));
    relay.await.unwrap();
}

#[tokio::test]
async fn required_tls_is_never_left_out() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({"tls": "required"}));
    let relay = tokio::spawn(async move {
        for _ in 0..2 {
            let mut peer = Peer::greeted(&listener, &[]).await;
            assert_eq!(peer.hear().await, "", "hangs up");
        }
        // What follows the answer in clear text would be taken for the answers to what is said under TLS.
        let mut peer = Peer::greeted(&listener, &["STARTTLS"]).await;
        peer.turn("STARTTLS", "220 go\r\n250 injected").await;
    });
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), OFFLINE);
    assert!(adapter.check().await.unwrap_err().contains("STARTTLS"));
    assert!(adapter.check().await.unwrap_err().contains("tampering"));
    relay.await.unwrap();
}

#[tokio::test]
async fn a_relay_without_tls_on_a_tls_port() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({"tls": "implicit"}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::accept(&listener).await;
        peer.say("220 relay.test ESMTP").await;
        peer.gone().await;
    });
    let told = adapter.check().await.unwrap_err();
    assert!(told.contains("TLS") && told.contains("tls=implicit"), "{told}");
    relay.await.unwrap();
}

#[tokio::test]
async fn no_more_connections_than_allowed() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({"connections": 2}));
    let relay = tokio::spawn(async move {
        let (mut one, mut two) = (Peer::greeted(&listener, &[]).await, Peer::greeted(&listener, &[]).await);
        tokio::join!(one.take(), two.take());
        // Two mails are under way; a third connection would be here by now or at the latest when these are answered.
        one.say("250 Ok: queued as Q1").await;
        one.take().await;
        two.say("250 Ok: queued as Q1").await;
        one.say("250 Ok: queued as Q1").await;
        assert!(tokio::time::timeout(Duration::ZERO, listener.accept()).await.is_err(), "a third connection");
    });
    let mail = text("ada@example.net");
    let (a, b, c) = tokio::join!(send(&adapter, &mail), send(&adapter, &mail), send(&adapter, &mail));
    assert_eq!([short(&a), short(&b), short(&c)], [DELIVERED; 3]);
    relay.await.unwrap();
}

#[tokio::test]
async fn a_connection_that_waits_too_long_is_closed() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::greeted(&listener, &[]).await;
        peer.take().await;
        peer.say("250 2.0.0 Ok: queued as Q1").await;
        assert_eq!(peer.hear().await, "QUIT");
    });
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), DELIVERED);
    tokio::time::pause(); // from here on, time runs to the next timer as soon as nothing else is left to do
    relay.await.unwrap();
}

#[tokio::test]
async fn what_no_mail_can_carry_needs_no_relay() {
    let (_listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let mut message = text("ada@example.net");
    message.message_type = nuncio_domain::MessageType::Sticker;
    assert_eq!(short(&send(&adapter, &message).await), ("rejected", Some(FailureCode::ContentRejected), None));
    assert!(!adapter.capabilities().message_types.contains(&message.message_type));
    assert_eq!(short(&send(&adapter, &text("nobody")).await), ("rejected", Some(FailureCode::InvalidRecipient), None));
}
