use nuncio_channel::{ResolvedAttachment, SendRequest};
use nuncio_domain::Channel;
use nuncio_domain::message::Message;

use super::*;
use crate::testing::{NOW, message};

fn from() -> Sender {
    Sender { name: Some("Ñandú & Söhne".into()), address: "hello@example.org".into() }
}

fn try_build(message: &Message, attachments: &[ResolvedAttachment]) -> Result<OutboundEmail, Failure> {
    build(&SendRequest { message, attempt: 0, channel: Channel::Email, attachments, now: NOW }, &from(), &[], None)
}

fn mail(message: &Message, attachments: &[ResolvedAttachment]) -> String {
    let letter = try_build(message, attachments).unwrap();
    for line in letter.bytes.split_inclusive(|&b| b == b'\n') {
        assert!(
            line.ends_with(b"\r\n") && line.len() <= 1_000 && !line[..line.len() - 2].contains(&b'\r'),
            "{}",
            String::from_utf8_lossy(line)
        );
    }
    String::from_utf8(letter.bytes).unwrap()
}

fn attachment(filename: &str, content_type: &str, content_id: Option<&str>) -> ResolvedAttachment {
    ResolvedAttachment {
        filename: filename.into(),
        content_type: content_type.into(),
        content_id: content_id.map(str::to_owned),
        bytes: vec![7; 100],
    }
}

/// Returns the values of all headers of that name, unfolded, part headers included.
fn values(mail: &str, name: &str) -> Vec<String> {
    let unfolded = mail.replace("\r\n ", " ");
    unfolded.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix(": ").map(str::to_owned)).collect()
}

/// Puts encoded words together again.
fn decode(value: &str) -> String {
    let bytes: Vec<u8> = value
        .split(' ')
        .flat_map(|w| STANDARD.decode(w.strip_prefix("=?utf-8?B?").unwrap().strip_suffix("?=").unwrap()).unwrap())
        .collect();
    String::from_utf8(bytes).unwrap()
}

#[test]
fn a_plain_text_as_a_whole() {
    let mut message = message();
    message.request_mut().text = Some("Hello\n.\nworld\n".into());
    message.request_mut().subject = Some("Hi there".into());
    message.request_mut().reply_to = Some("desk@example.org".into());
    assert_eq!(
        mail(&message, &[]),
        "Date: Sat, 21 Nov 2026 10:00:00 +0000\r\n\
         From: =?utf-8?B?w5FhbmTDuiAmIFPDtmhuZQ==?=\r\n <hello@example.org>\r\n\
         To: ada@example.net\r\n\
         Reply-To: desk@example.org\r\n\
         Subject: Hi there\r\n\
         Message-ID: <msg_01kahy0000e0000000000000ab@example.org>\r\n\
         MIME-Version: 1.0\r\n\
         Content-Type: text/plain; charset=utf-8\r\n\
         Content-Transfer-Encoding: 7bit\r\n\
         \r\n\
         Hello\r\n.\r\nworld\r\n\r\n"
    );
}

#[test]
fn every_attempt_is_the_same_mail() {
    let mut message = message();
    message.request_mut().html_body = Some("<p>x</p>".into());
    let files = [attachment("a.pdf", "application/pdf", None)];
    assert_eq!(try_build(&message, &files), try_build(&message, &files));
}

#[test]
fn parts_lie_where_they_belong() {
    let structure = |message: &Message, files: &[ResolvedAttachment]| -> Vec<String> {
        values(&mail(message, files), "Content-Type").iter().map(|v| v.split(';').next().unwrap().to_owned()).collect()
    };
    let inline = attachment("logo.png", "image/png", Some("logo"));
    let file = attachment("a.pdf", "application/pdf", None);
    let mut message = message();
    message.request_mut().text = Some("x".into());
    assert_eq!(structure(&message, &[]), ["text/plain"]);
    assert_eq!(structure(&message, std::slice::from_ref(&file)), ["multipart/mixed", "text/plain", "application/pdf"]);
    assert_eq!(
        structure(&message, std::slice::from_ref(&inline)),
        ["multipart/mixed", "text/plain", "image/png"],
        "nothing to be inline in"
    );
    message.request_mut().html_body = Some("<img src='cid:logo'>".into());
    assert_eq!(structure(&message, &[]), ["multipart/alternative", "text/plain", "text/html"]);
    assert_eq!(
        structure(&message, &[file, inline.clone()]),
        ["multipart/mixed", "multipart/alternative", "text/plain", "multipart/related", "text/html", "image/png", "application/pdf"]
    );
    let mail = mail(&message, &[inline]);
    assert_eq!(values(&mail, "Content-ID"), ["<logo>"]);
    assert_eq!(values(&mail, "Content-Disposition"), ["inline; filename=\"logo.png\""]);
    let boundary = "=_msg_01kahy0000e0000000000000ab_0";
    assert!(mail.contains(&format!("boundary=\"{boundary}\"")) && mail.ends_with(&format!("\r\n--{boundary}--\r\n")), "{mail}");
}

#[test]
fn subjects_of_all_kinds_stay_within_lines() {
    let long = "Long words of all kinds stand in this subject ".repeat(20).trim_end().to_owned();
    for subject in [
        "s".repeat(998),
        "🎉".repeat(998),
        "é".repeat(998),
        long,
        "a  b".into(),
        " a ".into(),
        "=?utf-8?Q?x?=".into(),
        "Hé llo".into(),
        "tab\tor\u{7f}".into(),
    ] {
        let mut message = message();
        message.request_mut().subject = Some(subject.clone());
        let mail = mail(&message, &[]);
        assert!(mail.lines().all(|line| line.len() <= 76 || !line.starts_with("Subject")), "{mail}");
        let value = &values(&mail, "Subject")[0];
        let seen = if value.starts_with("=?") { decode(value) } else { value.clone() };
        assert_eq!(seen, clean(&subject), "{subject}");
    }
}

#[test]
fn no_value_can_add_a_header() {
    let evil = "x\r\nBcc: eve@example.com\r\n\r\nbody";
    let mut message = message();
    message.request_mut().subject = Some(evil.into());
    message.request_mut().html_body = Some("<p>x</p>".into());
    let files = [attachment(evil, evil, Some(evil)), attachment(evil, "text/plain; name=\"a\r\nBcc: eve@example.com\"", None)];
    let request = SendRequest { message: &message, attempt: 0, channel: Channel::Email, attachments: &files, now: NOW };
    let sender = Sender { name: Some(evil.into()), address: "hello@example.org".into() };
    let letter = build(&request, &sender, &[], None).unwrap();
    let mail = String::from_utf8(letter.bytes).unwrap();
    assert!(!mail.to_ascii_lowercase().contains("\nbcc:") && !mail.contains("\rBcc:"), "{mail}");
    let head = mail.split("\r\n\r\n").next().unwrap();
    assert_eq!(head.lines().filter(|l| !l.starts_with(' ')).count(), 7, "{head}");

    for bad in ["a@example.org\r\nBcc: eve@example.com", "\"a\r\nb\"@example.org", "a@exam\nple.org", "a b@example.org", "", "a"] {
        assert_eq!(wire_address(bad), None, "{bad:?}");
        message.request_mut().reply_to = Some(bad.into());
        assert!(try_build(&message, &[]).is_err(), "{bad:?}");
    }
    message.request_mut().reply_to = Some("\"Eve\r\nBcc: x\" <desk@example.org>".into());
    if let Ok(letter) = try_build(&message, &[]) {
        assert!(!String::from_utf8(letter.bytes).unwrap().contains("\nBcc"));
    }
    message.request_mut().reply_to = None;
    message.to = "ada@example.net>\r\nRCPT TO:<eve@example.com".into();
    assert_eq!(try_build(&message, &[]).unwrap_err().code, FailureCode::InvalidRecipient);
}

#[test]
fn addresses_beyond_ascii() {
    assert_eq!(wire_address("ada@bücher.example").as_deref(), Some("ada@xn--bcher-kva.example"));
    let mut message = message();
    message.to = "ada@bücher.example".into();
    let letter = try_build(&message, &[]).unwrap();
    assert_eq!((letter.to.as_str(), letter.utf8), ("ada@xn--bcher-kva.example", None));
    message.to = "jörg@example.net".into();
    assert_eq!(try_build(&message, &[]).unwrap().utf8, Some(NonAscii::Envelope));
    message.request_mut().reply_to = Some("Ñandú <jörg@bücher.example>".into());
    assert_eq!(try_build(&message, &[]).unwrap().utf8, Some(NonAscii::Envelope));
    message.to = "ada@example.net".into();
    let reply_to = Some(NonAscii::ReplyTo("Ñandú <jörg@bücher.example>".into()));
    assert_eq!(try_build(&message, &[]).unwrap().utf8, reply_to);
    message.request_mut().reply_to = Some("Ñandú <desk@bücher.example>".into());
    assert_eq!(try_build(&message, &[]).unwrap().utf8, None);
}

#[test]
fn mailboxes_as_people_write_them() {
    for (text, name, address) in [
        ("a@b.example", None, "a@b.example"),
        (" <a@b.example> ", None, "a@b.example"),
        ("Acme, Inc. <a@b.example>", Some("Acme, Inc."), "a@b.example"),
        ("\"Acme \\\"the\\\" \\\\ one\" <a@b.example>", Some("Acme \"the\" \\ one"), "a@b.example"),
        ("Ñandú <a@bücher.example>", Some("Ñandú"), "a@xn--bcher-kva.example"),
    ] {
        assert_eq!(parse_mailbox(text), Some(Sender { name: name.map(str::to_owned), address: address.into() }), "{text}");
    }
    for bad in ["", "a", "a@b.example>", "<a@b.example", "Acme a@b.example", "a@b.example, c@d.example", "x <a@b.example\r\n>", "<>"] {
        assert_eq!(parse_mailbox(bad), None, "{bad}");
    }
}

#[test]
fn display_names() {
    assert_eq!(mailbox(None, "a@b.c"), "a@b.c");
    assert_eq!(mailbox(Some(" "), "a@b.c"), "a@b.c");
    assert_eq!(mailbox(Some("Acme, \"the\" \\ one"), "a@b.c"), "\"Acme, \\\"the\\\" \\\\ one\" <a@b.c>");
    assert_eq!(mailbox(Some("Ñ"), "a@b.c"), "=?utf-8?B?w5E=?=\r\n <a@b.c>");
    assert!(mailbox(Some(&"x".repeat(500)), "a@b.c").split("\r\n").all(|l| l.len() < 76));
}

#[test]
fn file_names_and_types() {
    let header = |name: &str, kind: &str| {
        let mail = mail(&message(), &[attachment(name, kind, None)]);
        (values(&mail, "Content-Disposition")[0].clone(), values(&mail, "Content-Type")[2].clone())
    };
    let (disposition, kind) = header("fáctura 1.pdf", "application/pdf");
    assert_eq!((disposition.as_str(), kind.as_str()), ("attachment; filename*0*=utf-8''f%C3%A1ctura%201.pdf", "application/pdf"));
    assert_eq!(
        header("../../etc/passwd", "text/csv; charset=latin1"),
        ("attachment; filename=\".._.._etc_passwd\"".into(), "text/csv; charset=latin1".into())
    );
    for unusable in ["message/rfc822", "multipart/mixed; boundary=x", "nonsense", "", "text/plain; a=\"b\r\nc\""] {
        assert_eq!(header(" ", unusable), ("attachment; filename=\"attachment\"".into(), "application/octet-stream".into()), "{unusable}");
    }
    header(&"x".repeat(255), "a/b");
    header(&"名".repeat(255), "a/b");
}

#[test]
fn a_content_id_arrives_whole() {
    let mut message = message();
    let id = "i".repeat(255);
    message.request_mut().html_body = Some(format!("<img src=\"cid:{id}\">"));
    let mail = mail(&message, &[attachment("a.png", "image/png", Some(&id))]);
    assert_eq!(values(&mail, "Content-ID"), [format!("<{id}>")]);
}

#[test]
fn texts_arrive_whole() {
    for text in
        ["", "a\rb\nc\r\nd", "nul\0nul", &"long ".repeat(5_000), &"x".repeat(5_000), "ñ", &"日本語\n".repeat(100), ".\n..\n", "From me\n"]
    {
        let mut message = message();
        message.request_mut().text = Some(text.into());
        message.request_mut().html_body = Some(text.into());
        mail(&message, &[]);
    }
    assert_eq!(crlf("a\rb\nc\r\nd\0\n\r"), "a\r\nb\r\nc\r\nd\r\n\r\n");
}

#[test]
fn missing_text_comes_from_the_html() {
    let mut message = message();
    message.request_mut().html_body = Some("<p>Hello <b>you</b></p>".into());
    assert!(mail(&message, &[]).contains("\r\n\r\nHello you\r\n--=_msg"), "a plain part");
}
