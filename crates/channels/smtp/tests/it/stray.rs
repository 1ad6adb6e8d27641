//! Relays that say more than they are asked. It must not be taken for the answer to the next email.

use std::sync::Arc;

use nuncio_domain::message::FailureCode;
use rustls::ServerConfig;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use serde_json::json;
use tokio::io::BufReader;
use tokio::net::TcpStream;
use tokio::sync::oneshot;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::support::{Peer, key, key_text, listen, open, send, short, text};

const QUEUED: &str = "250 2.0.0 Ok: queued as Q1";
const STRAY: &str = "550 5.1.1 stray";

#[tokio::test]
async fn a_stray_answer_costs_the_connection_and_no_email() {
    for (first, refused) in [(QUEUED, false), ("554 5.7.1 looks like spam", true)] {
        let (listener, address) = listen().await;
        let adapter = open(address, json!({}));
        let relay = tokio::spawn(async move {
            let mut peer = Peer::greeted(&listener, &[]).await;
            peer.take().await;
            peer.say(&format!("{first}\r\n{STRAY}")).await;
            let mut fresh = Peer::greeted(&listener, &[]).await;
            fresh.take().await;
            fresh.say(QUEUED).await;
            assert_eq!(peer.hear().await, "", "hangs up");
        });
        let expected = if refused { "rejected" } else { "accepted" };
        assert_eq!(short(&send(&adapter, &text("ada@example.net")).await).0, expected);
        assert_eq!(short(&send(&adapter, &text("ada@example.net")).await).0, "accepted");
        relay.await.unwrap();
    }
}

/// The stray answer may arrive before the next email is begun, or with the answer to its first command.
#[tokio::test]
async fn a_stray_answer_on_its_way_costs_no_email() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let ((ask, asked), (said, when_said)) = (oneshot::channel(), oneshot::channel());
    let relay = tokio::spawn(async move {
        let mut peer = Peer::greeted(&listener, &[]).await;
        peer.take().await;
        peer.say(QUEUED).await;
        asked.await.unwrap();
        peer.say(STRAY).await;
        said.send(()).unwrap();
        let mut fresh = Peer::greeted(&listener, &[]).await;
        fresh.take().await;
        fresh.say(QUEUED).await;
    });
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await).0, "accepted");
    ask.send(()).unwrap();
    when_said.await.unwrap();
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await).0, "accepted");
    relay.await.unwrap();
}

#[tokio::test]
async fn a_refused_sender_is_asked_about_once_more_on_a_fresh_connection() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({}));
    let relay = tokio::spawn(async move {
        let mut peer = Peer::greeted(&listener, &[]).await;
        peer.take().await;
        peer.say(QUEUED).await;
        peer.turn("MAIL", "550 5.1.8 bad sender").await;
        assert_eq!(peer.hear().await, "", "hangs up");
        let mut fresh = Peer::greeted(&listener, &[]).await;
        fresh.turn("MAIL", "550 5.1.8 bad sender").await;
        assert_eq!(fresh.hear().await, "", "hangs up");
    });
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await).0, "accepted");
    let expected = ("rejected", Some(FailureCode::ProviderRejected), Some("550 5.1.8"));
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), expected);
    relay.await.unwrap();
}

fn acceptor() -> TlsAcceptor {
    let chain = CertificateDer::pem_file_iter(key("server.pem")).unwrap().map(Result::unwrap).collect();
    let own = PrivateKeyDer::from_pem_file(key("server.key")).unwrap();
    let builder = ServerConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()));
    TlsAcceptor::from(Arc::new(
        builder.with_safe_default_protocol_versions().unwrap().with_no_client_auth().with_single_cert(chain, own).unwrap(),
    ))
}

/// The next client, after greeting and EHLO under TLS.
async fn greeted(listener: &tokio::net::TcpListener, acceptor: &TlsAcceptor) -> Peer<TlsStream<TcpStream>> {
    let stream = acceptor.accept(listener.accept().await.unwrap().0).await.unwrap();
    let mut peer = Peer(BufReader::new(stream));
    peer.say("220 relay.test ESMTP").await;
    peer.ehlo(&[]).await;
    peer
}

#[tokio::test]
async fn a_quiet_connection_under_tls_is_kept_and_another_is_not() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({"tls": "implicit", "tls_ca": key_text("ca.pem")}));
    let relay = tokio::spawn(async move {
        let acceptor = acceptor();
        let mut peer = greeted(&listener, &acceptor).await;
        peer.take().await;
        peer.say(QUEUED).await;
        peer.take().await;
        peer.say(&format!("{QUEUED}\r\n{STRAY}")).await;
        let mut fresh = greeted(&listener, &acceptor).await;
        fresh.take().await;
        fresh.say(QUEUED).await;
    });
    for _ in 0..3 {
        assert_eq!(short(&send(&adapter, &text("ada@example.net")).await).0, "accepted");
    }
    relay.await.unwrap();
}
