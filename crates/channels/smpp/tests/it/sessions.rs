//! Sessions: kept, opened again, ended.

use nuncio_channel::Sessions;
use nuncio_domain::message::FailureCode;
use rusmpp::{Command, CommandId, CommandStatus, Pdu};
use serde_json::json;

use crate::smsc::{Act, Script, Seen, Smsc};
use crate::support::{PASSWORD, Running, account, draft, send, send_message, short, try_open};

#[tokio::test]
async fn without_sessions_nothing_is_sent() {
    let smsc = Smsc::start(Script::takes()).await;
    // So long a message waits for a session.
    let adapter = try_open(&account(smsc.port, json!({"timeout_seconds": 1}))).unwrap();
    assert_eq!(adapter.sessions(), Sessions::EveryNode);
    assert!(adapter.checks_own_sessions());
    assert_eq!(short(&send(&adapter, "x", 1).await), ("connection", Some(FailureCode::Undeliverable), vec![]));
    // But a login can be tried, and is ended.
    let adapter = try_open(&account(smsc.port, json!({}))).unwrap();
    let found = adapter.check().await.unwrap();
    assert!(found.contains("as acme, in clear text"), "{found}");
    assert!(smsc.taken.lock().unwrap().is_empty());
}

#[tokio::test]
async fn a_refused_login_is_told() {
    let smsc = Smsc::start(Script { bind: |_| Some(0x0E), ..Script::takes() }).await;
    let running = Running::start(smsc.port, json!({}));
    assert_eq!(short(&running.send("x").await), ("connection", Some(FailureCode::CredentialsInvalid), vec![]));
    for text in [running.adapter.trouble().unwrap(), running.adapter.check().await.unwrap_err()] {
        assert!(text.contains("the password is wrong (ESME_RINVPASWD, 0x0E)") && !text.contains(PASSWORD), "{text}");
    }
    running.stop().await;
}

#[tokio::test]
async fn a_login_that_is_accepted_again_opens_the_session_at_once() {
    let mut smsc = Smsc::start(Script { bind: |connection| Some(if connection == 0 { 0x0E } else { 0 }), ..Script::takes() }).await;
    let running = Running::start(smsc.port, json!({}));
    assert_eq!(short(&running.send("x").await), ("connection", Some(FailureCode::CredentialsInvalid), vec![]));
    smsc.bound().await;
    assert!(running.adapter.check().await.is_ok());
    assert_eq!(smsc.bound().await.1.connection, 1, "of the check");
    assert_eq!(short(&running.send("x").await).0, "accepted");
    assert_eq!(smsc.bound().await.1.connection, 2);
}

#[tokio::test]
async fn a_check_binds_in_both_directions() {
    let smsc = Smsc::start(Script { bind: |connection| Some(if connection == 1 { 0x08 } else { 0 }), ..Script::takes() }).await;
    let adapter = try_open(&account(smsc.port, json!({"bind_mode": "transmitter_receiver"}))).unwrap();
    let why = adapter.check().await.unwrap_err();
    assert!(why.contains("refuses the bind as receiver"), "{why}");
}

#[tokio::test]
async fn a_session_that_broke_is_opened_again() {
    let mut smsc = Smsc::start(Script::takes()).await;
    let running = Running::start(smsc.port, json!({}));
    let (command, says) = smsc.bound().await;
    assert_eq!(command, CommandId::BindTransceiver);
    assert_eq!(short(&running.send("x").await).0, "accepted");
    assert_eq!(running.adapter.trouble(), None);
    assert!(running.adapter.check().await.unwrap().contains("it responds"), "over the session that is there");
    says.octets(Vec::new());
    smsc.bound().await;
    assert!(running.adapter.trouble().unwrap().ends_with("ended: the SMSC closed the connection"));
    running.up().await;
    assert_eq!(short(&running.send("x").await), ("accepted", None, vec!["id2"]));
}

#[tokio::test]
async fn an_smsc_that_counts_the_old_session_is_soon_asked_again() {
    let bind = |connection| Some(if connection == 1 { 0x0D } else { 0 });
    let mut smsc = Smsc::start(Script { bind, ..Script::takes() }).await;
    let running = Running::start(smsc.port, json!({}));
    smsc.bound().await.1.octets(Vec::new());
    smsc.bound().await;
    assert!(matches!(smsc.next().await, Seen::Gone(1)));
    let outcome = running.send("x").await;
    assert_eq!(short(&outcome), ("connection", Some(FailureCode::Undeliverable), vec![]), "{:?}", running.adapter.trouble());
    smsc.bound().await;
    running.up().await;
}

#[tokio::test]
async fn a_first_bind_that_fails_is_a_refused_login() {
    let smsc = Smsc::start(Script { bind: |_| Some(0x0D), ..Script::takes() }).await;
    let running = Running::start(smsc.port, json!({}));
    assert_eq!(short(&running.send("x").await), ("connection", Some(FailureCode::CredentialsInvalid), vec![]));
}

#[tokio::test]
async fn an_smsc_that_unbinds_is_answered_and_bound_again() {
    let mut smsc = Smsc::start(Script::takes()).await;
    let _running = Running::start(smsc.port, json!({}));
    let (_, says) = smsc.bound().await;
    says.say(&Command::new(CommandStatus::EsmeRok, 9, Pdu::Unbind));
    assert_eq!(smsc.other(CommandId::UnbindResp).await, (0, 9));
    assert_eq!(smsc.bound().await.1.connection, 1);
}

#[tokio::test]
async fn an_smsc_that_unbinds_may_still_answer_what_is_in_flight() {
    let mut smsc = Smsc::start(Script::new(|_, _| Act::Leave)).await;
    let running = Running::start(smsc.port, json!({"window": 2}));
    let (_, says) = smsc.bound().await;
    running.up().await;
    let sending = [1, 2].map(|number| {
        let adapter = running.adapter.clone();
        tokio::spawn(async move { send(&adapter, "x", number).await })
    });
    let (_, first, _) = smsc.submitted().await;
    let (_, second, _) = smsc.submitted().await;
    says.say(&Command::new(CommandStatus::EsmeRok, 9, Pdu::Unbind));
    // It is read before this is answered.
    says.say(&Command::new(CommandStatus::EsmeRok, 10, Pdu::EnquireLink));
    smsc.other(CommandId::EnquireLinkResp).await;
    let late = running.send("y").await;
    assert_eq!(short(&late), ("connection", Some(FailureCode::Undeliverable), vec![]), "nothing follows an unbind");
    says.take(second, "id2");
    says.take(first, "id1");
    for sent in sending {
        assert_eq!(short(&sent.await.unwrap()).0, "accepted");
    }
    assert_eq!(smsc.other(CommandId::UnbindResp).await, (0, 9));
    assert_eq!(smsc.bound().await.1.connection, 1);
    assert_eq!(smsc.taken.lock().unwrap().len(), 2);
}

/// The phone joins the parts by their reference, over whatever session they came.
#[tokio::test]
async fn parts_that_are_left_when_an_smsc_unbinds_follow_over_the_next_session() {
    let mut smsc = Smsc::start(Script::new(|_, _| Act::Leave)).await;
    let running = Running::start(smsc.port, json!({}));
    let (_, says) = smsc.bound().await;
    running.up().await;
    let sending = tokio::spawn({
        let adapter = running.adapter.clone();
        async move { send(&adapter, &"a".repeat(400), 1).await }
    });
    let (_, first, part) = smsc.submitted().await;
    says.say(&Command::new(CommandStatus::EsmeRok, 9, Pdu::Unbind));
    says.take(first, "id1");
    let (_, again) = smsc.bound().await;
    let mut parts = vec![part];
    for id in ["id2", "id3"] {
        let (connection, sequence, part) = smsc.submitted().await;
        assert_eq!(connection, 1);
        again.take(sequence, id);
        parts.push(part);
    }
    assert_eq!(short(&sending.await.unwrap()), ("accepted", None, vec!["id1", "id2", "id3"]));
    let marks: Vec<_> = parts.iter().map(|part| part.short_message().as_ref()[3..6].to_vec()).collect();
    let reference = marks[0][0];
    assert_eq!(marks, [[reference, 3, 1], [reference, 3, 2], [reference, 3, 3]]);
}

#[tokio::test]
async fn what_is_under_way_ends_before_the_session() {
    let mut smsc = Smsc::start(Script::new(|_, _| Act::Leave)).await;
    let running = Running::start(smsc.port, json!({}));
    let (_, says) = smsc.bound().await;
    let sending = tokio::spawn({
        let adapter = running.adapter.clone();
        async move { send(&adapter, &"a".repeat(200), 1).await }
    });
    let (_, first, _) = smsc.submitted().await;
    let adapter = running.adapter.clone();
    let stopping = tokio::spawn(running.stop());
    // When the sessions say that they are being closed, both parts are still let through.
    while adapter.trouble().is_none() {
        tokio::task::yield_now().await;
    }
    assert_eq!(short(&send(&adapter, "y", 2).await), ("connection", Some(FailureCode::Undeliverable), vec![]));
    says.take(first, "id1");
    let (_, second, _) = smsc.submitted().await;
    says.take(second, "id2");
    assert_eq!(short(&sending.await.unwrap()), ("accepted", None, vec!["id1", "id2"]));
    assert_eq!(smsc.other(CommandId::Unbind).await.0, 0);
    stopping.await.unwrap();
    assert!(matches!(smsc.next().await, Seen::Gone(0)));
}

#[tokio::test]
async fn each_direction_may_have_a_session_of_its_own() {
    let mut smsc = Smsc::start(Script::takes()).await;
    let running = Running::start(smsc.port, json!({"bind_mode": "transmitter_receiver"}));
    let mut binds = [smsc.bound().await, smsc.bound().await];
    binds.sort_by_key(|(command, _)| u32::from(*command));
    assert_eq!(binds.each_ref().map(|(command, _)| *command), [CommandId::BindReceiver, CommandId::BindTransmitter]);
    let sender = binds[1].1.connection;
    running.up().await;
    for _ in 0..3 {
        assert_eq!(short(&running.send("x").await).0, "accepted");
        assert_eq!(smsc.submitted().await.0, sender);
    }
    // The receiver's trouble stops nobody from sending, but is told.
    binds[0].1.octets(Vec::new());
    while running.adapter.trouble().is_none() {
        tokio::task::yield_now().await;
    }
    assert!(running.adapter.trouble().unwrap().starts_with("1 of 2 sessions are down; the receiver: "));
    assert_eq!(short(&running.send("x").await).0, "accepted");
}

#[tokio::test]
async fn the_session_with_the_most_room_is_taken() {
    let mut smsc = Smsc::start(Script::new(|_, _| Act::Leave)).await;
    let running = Running::start(smsc.port, json!({"binds": 3, "window": 2}));
    let mut says = Vec::new();
    for _ in 0..3 {
        says.push(smsc.bound().await.1);
    }
    running.up().await;
    let mut sends = Vec::new();
    let mut used = Vec::new();
    for number in 0..6 {
        let adapter = running.adapter.clone();
        sends.push(tokio::spawn(async move { send(&adapter, "x", number).await }));
        used.push(smsc.submitted().await);
    }
    let mut connections: Vec<_> = used.iter().map(|(connection, ..)| *connection).collect();
    connections.sort_unstable();
    assert_eq!(connections, [0, 0, 1, 1, 2, 2]);
    for (connection, sequence, _) in used {
        says.iter().find(|says| says.connection == connection).unwrap().take(sequence, "id");
    }
    for sent in sends {
        assert_eq!(short(&sent.await.unwrap()).0, "accepted");
    }
}

fn key(name: &str) -> String {
    std::fs::read_to_string(format!("{}/tests/keys/{name}", env!("CARGO_MANIFEST_DIR"))).unwrap()
}

fn acceptor() -> tokio_rustls::TlsAcceptor {
    use rustls::pki_types::pem::PemObject as _;
    use rustls::pki_types::{CertificateDer, PrivateKeyDer};
    let chain = CertificateDer::pem_slice_iter(key("server.pem").as_bytes()).collect::<Result<Vec<_>, _>>().unwrap();
    let private = PrivateKeyDer::from_pem_slice(key("server.key").as_bytes()).unwrap();
    let provider = std::sync::Arc::new(rustls::crypto::ring::default_provider());
    let builder = rustls::ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    std::sync::Arc::new(builder.with_no_client_auth().with_single_cert(chain, private).unwrap()).into()
}

#[tokio::test]
async fn over_tls_only_to_whom_is_trusted() {
    let smsc = Smsc::start(Script { tls: Some(acceptor()), ..Script::takes() }).await;
    let running = Running::start(smsc.port, json!({"tls": true, "tls_ca": key("ca.pem")}));
    assert_eq!(short(&send_message(&running.adapter, &draft("x", 1)).await).0, "accepted");
    assert!(running.adapter.check().await.unwrap().contains("encrypted"));
    let stranger = try_open(&account(smsc.port, json!({"tls": true}))).unwrap();
    assert!(stranger.check().await.unwrap_err().contains("TLS"), "a certificate that nobody vouches for");
}
