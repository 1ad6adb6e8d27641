//! The adapter against a foreign server, whose MIME parser and DKIM verifier judge the mails.

use nuncio_channel::ResolvedAttachment;
use nuncio_domain::message::FailureCode;
use serde_json::{Value, json};

use crate::support::{Sink, key, key_text, open, open_with, send, send_with, short, text};

fn header(seen: &Value, name: &str) -> String {
    let headers = seen["headers"].as_array().unwrap();
    headers.iter().find(|h| h[0].as_str().unwrap().eq_ignore_ascii_case(name)).unwrap_or_else(|| panic!("{name} in {headers:?}"))[1]
        .as_str()
        .unwrap()
        .to_owned()
}

/// The text of a part, with the line ends of the caller.
fn part_text(seen: &Value, index: usize) -> String {
    seen["parts"][index]["text"].as_str().unwrap().replace("\r\n", "\n")
}

fn path(name: &str) -> String {
    key(name).to_str().unwrap().to_owned()
}

fn all_parts() -> [ResolvedAttachment; 3] {
    let part = |filename: &str, content_type: &str, content_id: Option<&str>, bytes: &[u8]| ResolvedAttachment {
        filename: filename.into(),
        content_type: content_type.into(),
        content_id: content_id.map(str::to_owned),
        bytes: bytes.to_vec(),
    };
    [
        part("fáctura 日本.pdf", "application/pdf", None, &[0, 255, 13, 10, 46, 10].repeat(10_000)),
        part("logo.png", "image/png", Some("logo@x"), &[1, 2, 3]),
        part("notes.txt", "text/plain", None, b"a\nb\r\n.\n"),
    ]
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMTP peer; ./test runs it"]
async fn heavy_every_part_arrives_and_every_signature_verifies() {
    let keys = [
        ("dkim-rsa-pkcs1.pem", "dkim-rsa-public.pem"),
        ("dkim-rsa-pkcs8.pem", "dkim-rsa-public.pem"),
        ("dkim-ed25519.pem", "dkim-ed25519.txt"),
    ];
    for (private, public) in keys {
        let mut sink = Sink::start(&["--dkim", "s1", "example.org", &path(public)]);
        let settings = json!({"dkim_domain": "example.org", "dkim_selector": "s1", "from": "Ñandú, \"the\" Söhne <hello@example.org>"});
        let adapter = open_with(sink.address, settings, json!({"dkim_key": key_text(private)}));

        let mut plain = text("ada@example.net");
        assert_eq!(short(&send(&adapter, &plain).await).0, "accepted");
        let seen = sink.seen();
        assert_eq!(
            (&seen["dkim"], &seen["structure"], &seen["mailFrom"], &seen["rcptTo"]),
            (&json!(true), &json!("text/plain"), &json!("hello@example.org"), &json!(["ada@example.net"]))
        );
        assert_eq!(part_text(&seen, 0), "Hello\n.\n..dots\n\n");
        assert_eq!(header(&seen, "From"), "\"Ñandú, \\\"the\\\" Söhne\" <hello@example.org>");
        assert_eq!(header(&seen, "Message-ID"), "<msg_01kahy0000e0000000000000ab@example.org>");
        assert_eq!(header(&seen, "Date"), "Sat, 21 Nov 2026 10:00:00 +0000");

        let ascii = "word ".repeat(100).trim_end().to_owned();
        for subject in
            ["Héllo wörld 🎉".to_owned(), "s".repeat(998), "🎉".repeat(998), ascii, "two  spaces".to_owned(), "=?utf-8?q?x?=".to_owned()]
        {
            plain.request_mut().subject = Some(subject.clone());
            assert_eq!(short(&send(&adapter, &plain).await).0, "accepted", "{subject}");
            let seen = sink.seen();
            assert_eq!((&seen["dkim"], header(&seen, "Subject")), (&json!(true), subject));
        }

        let mut full = text("ada@example.net");
        full.request_mut().text = Some("Texto — ñ\n\n  trailing  \n".repeat(50));
        full.request_mut().html_body = Some("<p>Hola <img src=\"cid:logo@x\"></p>\n".repeat(300));
        full.request_mut().reply_to = Some("Müller <desk@example.org>".into());
        let files = all_parts();
        assert_eq!(short(&send_with(&adapter, &full, &files).await).0, "accepted");
        let seen = sink.seen();
        assert_eq!(seen["dkim"], true);
        assert_eq!(
            seen["structure"],
            "multipart/mixed(multipart/alternative(text/plain,multipart/related(text/html,image/png)),application/pdf,text/plain)"
        );
        assert_eq!(header(&seen, "Reply-To"), "Müller <desk@example.org>");
        let parts = seen["parts"].as_array().unwrap();
        assert_eq!(part_text(&seen, 0).trim_end(), full.request.text.as_ref().unwrap().trim_end());
        assert_eq!(part_text(&seen, 1).trim_end(), full.request.html_body.as_ref().unwrap().trim_end());
        assert_eq!(
            (&parts[2]["disposition"], &parts[2]["contentId"], &parts[2]["filename"]),
            (&json!("inline"), &json!("<logo@x>"), &json!("logo.png"))
        );
        for (part, file) in [(3, 0), (2, 1), (4, 2)] {
            assert_eq!(parts[part]["filename"], files[file].filename);
            assert_eq!(parts[part]["size"], files[file].bytes.len());
            assert_eq!(parts[part]["sha256"], sha256(&files[file].bytes));
        }
        sink.stop();
    }
}

fn sha256(bytes: &[u8]) -> String {
    ring::digest::digest(&ring::digest::SHA256, bytes).as_ref().iter().map(|b| format!("{b:02x}")).collect()
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMTP peer; ./test runs it"]
async fn heavy_refusals_and_lost_answers() {
    let mut sink = Sink::start(&[]);
    let adapter = open(sink.address, json!({}));
    for (to, outcome) in [
        ("nouser@example.net", ("rejected", Some(FailureCode::InvalidRecipient), Some("550 5.1.1"))),
        ("grey@example.net", ("deferred", Some(FailureCode::RateLimited), Some("451 4.7.1"))),
        ("full@example.net", ("deferred", Some(FailureCode::Undeliverable), Some("452 4.2.2"))),
        ("drop@example.net", ("unknown", Some(FailureCode::UnknownOutcome), None)),
        ("greyonce@example.net", ("deferred", Some(FailureCode::RateLimited), Some("451 4.7.1"))),
        ("greyonce@example.net", ("accepted", None, Some("<msg_01kahy0000e0000000000000ab@example.org>"))),
    ] {
        assert_eq!(short(&send(&adapter, &text(to)).await), outcome, "{to}");
        let seen = sink.seen();
        let event = match outcome.0 {
            "accepted" => Value::Null,
            "unknown" => json!("dropped"),
            _ => json!("rejected"),
        };
        assert_eq!(seen["event"], event, "{to}");
    }
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMTP peer; ./test runs it"]
async fn heavy_a_restart_between_two_mails() {
    let sink = Sink::start(&[]);
    let address = sink.address;
    let adapter = open(address, json!({}));
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await).0, "accepted");
    sink.stop();
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await), ("connection", Some(FailureCode::Undeliverable), None));
    assert!(adapter.check().await.unwrap_err().contains("refuses connections"));
    let mut sink = Sink::start(&["--port", &address.port().to_string()]);
    assert_eq!(short(&send(&adapter, &text("ada@example.net")).await).0, "accepted");
    sink.seen();
    sink.stop();
    let _sink = Sink::start(&["--port", &address.port().to_string()]);
    assert_eq!(
        short(&send(&adapter, &text("ada@example.net")).await).0,
        "accepted",
        "the waiting connection is dead, and no attempt is lost to it"
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMTP peer; ./test runs it"]
async fn heavy_login() {
    let mut sink = Sink::start(&["--auth", "me:hunter2"]);
    let login = |password: &str| open_with(sink.address, json!({"username": "me"}), json!({"password": password}));
    let (good, bad, none) = (login("hunter2"), login("wrong-one"), open(sink.address, json!({})));
    assert!(good.check().await.unwrap().contains("logged in as me"));
    assert_eq!(short(&send(&good, &text("ada@example.net")).await).0, "accepted");
    assert_eq!(sink.seen()["auth"], "me");
    assert_eq!(
        short(&send(&bad, &text("ada@example.net")).await),
        ("connection", Some(FailureCode::CredentialsInvalid), Some("535 5.7.8"))
    );
    let told = bad.check().await.unwrap_err();
    assert!(told.contains("check username and password") && !told.contains("wrong-one"), "{told}");
    assert_eq!(
        short(&send(&none, &text("ada@example.net")).await),
        ("connection", Some(FailureCode::CredentialsInvalid), Some("530 5.7.0"))
    );
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMTP peer; ./test runs it"]
async fn heavy_starttls_with_a_private_authority() {
    let mut sink = Sink::start(&["--starttls", &path("server.pem"), &path("server.key"), "--auth", "me:hunter2"]);
    let address = sink.address;
    let tls = |more: Value, host: &str| {
        let mut settings = json!({"tls": "required", "username": "me", "host": host});
        settings.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        open_with(address, settings, json!({"password": "hunter2"}))
    };
    for host in ["127.0.0.1", "localhost"] {
        let trusting = tls(json!({"tls_ca": key_text("ca.pem")}), host);
        assert!(trusting.check().await.unwrap().contains("encrypted, logged in as me"));
        assert_eq!(short(&send(&trusting, &text("ada@example.net")).await).0, "accepted");
        assert_eq!(short(&send(&trusting, &text("ada@example.net")).await).0, "accepted");
        for _ in 0..2 {
            let seen = sink.seen();
            assert_eq!((&seen["tls"], &seen["auth"]), (&json!(true), &json!("me")));
        }
    }
    let doubting = tls(json!({}), "127.0.0.1");
    assert_eq!(short(&send(&doubting, &text("ada@example.net")).await), ("connection", Some(FailureCode::Undeliverable), None));
    assert!(doubting.check().await.unwrap_err().contains("tls_ca"));
    let opportunistic = open(sink.address, json!({"tls": "opportunistic", "tls_ca": key_text("ca.pem")}));
    assert!(opportunistic.check().await.unwrap().contains("encrypted"));
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs the SMTP peer; ./test runs it"]
async fn heavy_forty_megabytes_and_the_announced_size() {
    let mut sink = Sink::start(&["--size-limit", "60000000"]);
    let adapter = open(sink.address, json!({}));
    let big = |megabytes: usize| ResolvedAttachment {
        filename: "big.bin".into(),
        content_type: "application/octet-stream".into(),
        content_id: None,
        bytes: (0..megabytes << 20).map(|i| ((i * 31) >> 3) as u8).collect(),
    };
    let file = big(40);
    assert_eq!(short(&send_with(&adapter, &text("ada@example.net"), std::slice::from_ref(&file)).await).0, "accepted");
    assert_eq!(sink.seen()["parts"][1]["sha256"], sha256(&file.bytes));
    assert_eq!(
        short(&send_with(&adapter, &text("ada@example.net"), &[big(45)]).await),
        ("rejected", Some(FailureCode::ContentRejected), None)
    );
}
