//! Return paths that name their attempt, and mails that offer to unsubscribe.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_domain::message::{Membership, Message};
use serde_json::json;

use crate::support::{PUBLIC_URL, Peer, Sink, key, key_text, listen, open, open_with, send, send_again, short, text, tokens};

fn of_broadcast() -> Message {
    let mut message = text("ada@example.net");
    message.state.detail.broadcast = Some(Membership {
        broadcast: "brd_01kahy0000e0000000000000ae".parse().unwrap(),
        contact: "bct_01kahy0000e0000000000000af".parse().unwrap(),
        no_receipts: false,
        withdrawn: false,
        quiet_hours: None,
    });
    message
}

#[tokio::test]
async fn bounces_name_their_attempt() {
    let (listener, address) = listen().await;
    let adapter = open(address, json!({"bounce_domain": "bounces.example.org"}));
    let message = text("ada@example.net");
    let paths = [0, 1, 200].map(|attempt| tokens().bounce(message.tenant, message.id, attempt));
    let expected = paths.clone();
    let relay = tokio::spawn(async move {
        let mut peer = Peer::greeted(&listener, &[]).await;
        let mut mails = Vec::new();
        for path in expected {
            mails.push(peer.take_from(&format!("{path}@bounces.example.org")).await);
            peer.say("250 ok").await;
        }
        mails
    });
    for attempt in [0, 1, 200] {
        assert_eq!(short(&send_again(&adapter, &message, attempt, &[]).await).0, "accepted");
    }
    let mails = relay.await.unwrap();
    assert!(mails.iter().all(|mail| *mail == mails[0] && mail.contains("\r\nFrom: \"Acme\" <hello@example.org>\r\n")), "{mails:?}");
    assert_eq!(tokens().read_bounce(&paths[2]), Some((message.tenant, message.id, 200)));
}

#[tokio::test]
async fn which_mails_offer_to_unsubscribe() {
    let url = format!("List-Unsubscribe: <{PUBLIC_URL}/unsubscribe/{}>", tokens().unsubscribe(of_broadcast().tenant, of_broadcast().id));
    let mut answer = text("ada@example.net");
    answer.state.detail.compliance = true;
    for (setting, message, offered) in [
        ("broadcasts", of_broadcast(), true),
        ("broadcasts", text("ada@example.net"), false),
        ("always", text("ada@example.net"), true),
        ("always", answer, false),
        ("never", of_broadcast(), false),
    ] {
        let (listener, address) = listen().await;
        let adapter = open(address, json!({"list_unsubscribe": setting}));
        let relay = tokio::spawn(async move {
            let mut peer = Peer::greeted(&listener, &[]).await;
            let mail = peer.take().await;
            peer.say("250 ok").await;
            mail
        });
        assert_eq!(short(&send(&adapter, &message).await).0, "accepted");
        let mail = relay.await.unwrap();
        let both = mail.contains(&format!("\r\n{url}\r\nList-Unsubscribe-Post: List-Unsubscribe=One-Click\r\n"));
        assert_eq!((both, mail.contains("List-")), (offered, offered), "{setting}: {mail}");
        assert_eq!(mail.contains("\r\nAuto-Submitted: auto-replied\r\n"), message.state.detail.compliance);
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMTP peer; ./test runs it"]
async fn heavy_the_offer_to_unsubscribe_is_signed() {
    for (private, public) in [("dkim-rsa-pkcs8.pem", "dkim-rsa-public.pem"), ("dkim-ed25519.pem", "dkim-ed25519.txt")] {
        let public = key(public).to_str().unwrap().to_owned();
        let mut sink = Sink::start(&["--dkim", "s1", "example.org", &public]);
        let name = "A name of many characters ünd words ".repeat(20).trim_end().to_owned();
        let settings = json!({"dkim_domain": "example.org", "dkim_selector": "s1", "bounce_domain": "bounces.example.org",
            "from": format!("{name} <hello@example.org>")});
        let adapter = open_with(sink.address, settings, json!({"dkim_key": key_text(private)}));
        assert_eq!(short(&send(&adapter, &of_broadcast()).await).0, "accepted");
        let seen = sink.seen();
        assert_eq!(seen["dkim"], true, "{seen}");
        let header =
            |name: &str| seen["headers"].as_array().unwrap().iter().find(|h| h[0] == name).unwrap()[1].as_str().unwrap().to_owned();
        // aiosmtpd's parser puts spaces between the encoded words of a name, which RFC 2047 §6.2 forbids; another one reads them.
        let raw = STANDARD.decode(seen["raw_base64"].as_str().unwrap()).unwrap();
        let parsed = mail_parser::MessageParser::default().parse(&raw).unwrap();
        assert_eq!(parsed.from().and_then(|from| from.first()).and_then(|from| from.name()), Some(name.as_str()));
        assert!(header("DKIM-Signature").replace(' ', "").contains(":list-unsubscribe:list-unsubscribe-post:"), "{seen}");
        assert_eq!(seen["mailFrom"], format!("{}@bounces.example.org", tokens().bounce(of_broadcast().tenant, of_broadcast().id, 0)));
        sink.stop();
    }
}
