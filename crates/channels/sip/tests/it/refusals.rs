//! Calls that were not put through, and trunks that are not there.

use std::time::Duration;

use nuncio_channel::Outcome;
use nuncio_domain::message::FailureCode;
use serde_json::json;
use tokio::net::UdpSocket;
use tokio::time::timeout;

use crate::carrier::{Act, Carrier, Script, Talk, header, methods};
use crate::support::{Caller, PATIENCE, short};

#[tokio::test]
async fn refusals_have_their_outcomes() {
    for (status, lines, wanted) in [
        (486, "", ("deferred", "undeliverable", Some(120))),
        (480, "Reason: Q.850;cause=1;text=\"Unallocated\"\r\n", ("rejected", "invalid_recipient", None)),
        (603, "", ("rejected", "undeliverable", None)),
        (404, "", ("rejected", "invalid_recipient", None)),
        (503, "", ("deferred", "undeliverable", None)),
        (488, "", ("rejected", "provider_rejected", None)),
    ] {
        let mut carrier = Carrier::start(Script::new(Act::Refuse(status, lines))).await;
        let caller = Caller::new(carrier.port, json!({}));
        let outcome = caller.send().await;
        let (kind, code, wait, _) = short(&outcome);
        assert_eq!((kind, code, wait), wanted, "{status}");
        carrier.until("ACK").await;
    }
}

/// Trunks say 403 of wrong passwords and of forbidden numbers: the login tells which.
#[tokio::test]
async fn forbidden_is_the_login_or_the_number() {
    for (register, wanted) in [(403, "connection"), (200, "rejected"), (405, "rejected")] {
        let script = Script { register, ..Script::new(Act::Refuse(403, "")) };
        let mut carrier = Carrier::start(script).await;
        let caller = Caller::new(carrier.port, json!({}));
        let outcome = caller.send().await;
        assert_eq!(short(&outcome).0, wanted, "{register}: {outcome:?}");
        let register = carrier.until("REGISTER").await;
        assert_eq!(header(&register, "Contact"), "", "it registers nothing");
    }
}

#[tokio::test]
async fn challenges_of_newer_trunks() {
    const BOTH: &str = "WWW-Authenticate: Digest realm=\"carrier\", nonce=\"1\", algorithm=SHA-256, qop=\"auth\"\r\n\
                        WWW-Authenticate: Digest realm=\"carrier\", nonce=\"2\", algorithm=MD5, qop=\"auth,auth-int\"\r\n";
    const NEW: &str = "WWW-Authenticate: Digest realm=\"carrier\", nonce=\"1\", algorithm=SHA-256, qop=\"auth\"\r\n";
    for (challenge, wanted) in [(BOTH, ("accepted", "")), (NEW, ("connection", "credentials_invalid"))] {
        let carrier = Carrier::start(Script { challenge, ..Script::new(Act::Answer(Talk::listens())) }).await;
        let outcome = Caller::new(carrier.port, json!({})).send().await;
        assert_eq!((short(&outcome).0, short(&outcome).1), wanted, "{outcome:?}");
        assert_eq!(short(&outcome).3.contains("unsupported kind"), challenge == NEW, "{outcome:?}");
    }
}

#[tokio::test]
async fn nobody_picks_up() {
    let mut carrier = Carrier::start(Script::new(Act::Ring)).await;
    let caller = Caller::new(carrier.port, json!({ "ring_seconds": 5 }));
    let outcome = caller.send().await;
    assert_eq!(short(&outcome), ("deferred", "undeliverable", Some(600), "the call was not answered within 5 seconds"));
    assert!(matches!(&outcome, Outcome::Deferred { failure, .. } if failure.provider_code.as_deref() == Some("487")), "{outcome:?}");
    let got = carrier.got();
    assert!(methods(&got).contains(&"CANCEL"), "{got:?}");
}

#[tokio::test]
async fn a_trunk_that_does_not_say_that_ringing_stopped() {
    let carrier = Carrier::start(Script::new(Act::RingForEver)).await;
    let caller = Caller::new(carrier.port, json!({ "ring_seconds": 5 }));
    assert_eq!(short(&caller.send().await).0, "unknown");
}

#[tokio::test]
async fn accounts_without_a_login() {
    let mut carrier = Carrier::start(Script { login: None, ..Script::new(Act::Answer(Talk::listens())) }).await;
    let caller = Caller::new(carrier.port, json!({ "username": null }));
    assert_eq!(short(&caller.send().await).0, "accepted");
    assert_eq!(methods(&carrier.got()), ["OPTIONS", "INVITE", "ACK", "BYE"]);
    let found = caller.adapter.check().await.unwrap();
    assert!(found.contains("only a call can test it"), "{found}");

    let carrier = Carrier::start(Script::new(Act::Silence)).await;
    let caller = Caller::new(carrier.port, json!({ "username": null }));
    assert_eq!(short(&caller.send().await).1, FailureCode::CredentialsInvalid.as_str(), "the trunk wants one");
}

#[tokio::test]
async fn what_the_check_says() {
    for (script, more, wanted) in [
        (Script::new(Act::Silence), json!({}), Ok("responds; logged in as acme")),
        (Script { register: 405, ..Script::new(Act::Silence) }, json!({}), Ok("does not confirm the login")),
        (Script { options: Some(404), ..Script::new(Act::Silence) }, json!({}), Ok("logged in as acme")),
        (Script { login: Some(false), ..Script::new(Act::Silence) }, json!({}), Err("correct username and password")),
        (Script { options: None, ..Script::new(Act::Silence) }, json!({ "timeout_seconds": 1 }), Err("did not answer OPTIONS within 1 s")),
        (Script { options: None, ..Script::new(Act::Silence) }, json!({ "options_ping": false }), Ok("logged in as acme")),
        (Script::new(Act::Silence), json!({ "tts_command": "/nonexistent" }), Err("install espeak-ng, or set tts_command")),
        (Script::new(Act::Silence), json!({ "transport": "tcp" }), Err("no connection to the trunk")),
    ] {
        let mut carrier = Carrier::start(script.clone()).await;
        let caller = Caller::new(carrier.port, more);
        let found = caller.adapter.check().await;
        let right = match (&found, wanted) {
            (Ok(text), Ok(part)) | (Err(text), Err(part)) => text.contains(part),
            _ => false,
        };
        assert!(right, "{script:?}: {found:?}");
        assert!(!methods(&carrier.got()).contains(&"INVITE"));
    }
}

#[tokio::test]
async fn a_session_tells_whether_the_trunk_is_there() {
    let mut carrier = Carrier::start(Script::new(Act::Silence)).await;
    let port = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let caller = Caller::at(port, carrier.port, json!({}));
    let (ask, run) = caller.run();
    carrier.until("OPTIONS").await;
    ask.send(true).unwrap();
    run.await.unwrap();
    assert_eq!(caller.adapter.trouble(), None);
    let freed = async {
        while UdpSocket::bind(("127.0.0.1", port)).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, freed).await.expect("a session that ended holds no port");

    let caller = Caller::new(1, json!({ "timeout_seconds": 1 }));
    let (ask, run) = caller.run();
    let troubled = async {
        while caller.adapter.trouble().is_none() {
            tokio::task::yield_now().await;
        }
    };
    timeout(PATIENCE, troubled).await.expect("trouble");
    assert!(caller.adapter.trouble().unwrap().contains("did not answer OPTIONS"));
    drop(ask);
    run.await.unwrap();
}

/// The check opens an adapter of its own, beside the one that carries messages.
#[tokio::test]
async fn a_fixed_port_is_no_hindrance_to_the_check() {
    let carrier = Carrier::start(Script::new(Act::Answer(Talk::listens()))).await;
    let taken = UdpSocket::bind("127.0.0.1:0").await.unwrap();
    let caller = Caller::at(taken.local_addr().unwrap().port(), carrier.port, json!({}));
    let outcome = caller.send().await;
    assert_eq!((short(&outcome).0, short(&outcome).3.contains("can be opened")), ("connection", true), "{outcome:?}");
    let beside = Caller::at(taken.local_addr().unwrap().port(), carrier.port, json!({}));
    beside.adapter.check().await.unwrap();
}

/// Half a minute after a call, for as long as its end may have to be confirmed again (RFC 6026 §7.2).
#[tokio::test]
#[ignore = "takes 35 seconds"]
async fn heavy_a_session_that_ended_after_a_call_holds_no_port() {
    let carrier = Carrier::start(Script::new(Act::Answer(Talk::listens()))).await;
    let port = UdpSocket::bind("127.0.0.1:0").await.unwrap().local_addr().unwrap().port();
    let caller = Caller::at(port, carrier.port, json!({}));
    assert_eq!(short(&caller.send().await).0, "accepted");
    drop(caller);
    let freed = async {
        while UdpSocket::bind(("127.0.0.1", port)).await.is_err() {
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
    };
    timeout(Duration::from_secs(50), freed).await.expect("the port is free again");
}
