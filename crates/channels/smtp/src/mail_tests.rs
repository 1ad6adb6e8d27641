use proptest::prelude::*;

use super::*;
use crate::fields::FIELDS;
use crate::parts::{LINES, NESTED};

fn read(from: &str, mail: &str) -> Mail {
    Mail::read(from, mail.replace('\n', "\r\n").as_bytes()).expect("a mail")
}

fn letter_of(mail: &str) -> InboundEmail {
    match read("ada@example.net", mail) {
        Mail::InboundEmail(letter) => *letter,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_letter_with_everything() {
    let letter = letter_of(
        "From: =?utf-8?q?Ada_L=C3=B6w?= <Ada@Example.net>\nTo: hello@example.org\nSubject: =?iso-8859-1?q?Gr=FC=DFe?=\n\
         Date: Sat, 21 Nov 2026 10:00:00 +0000\nMessage-ID: <1@example.net>\nIn-Reply-To: <msg_01kahy0000e0000000000000ab@example.org>\n\
         References: <x@y> <msg_01kahy0000e0000000000000ac@example.org>\nMIME-Version: 1.0\nContent-Type: multipart/mixed; boundary=o\n\n\
         --o\nContent-Type: multipart/alternative; boundary=i\n\n--i\nContent-Type: text/plain; charset=iso-8859-1\n\
         Content-Transfer-Encoding: quoted-printable\n\nGr=FC=DFe=\n!\n--i\nContent-Type: text/html\n\n<p>x</p>\n--i--\n\
         --o\nContent-Type: application/pdf; name=\"../a.pdf\"\nContent-Disposition: attachment; filename*=utf-8''f%C3%A1.pdf\n\
         Content-ID: <c@d>\nContent-Transfer-Encoding: base64\n\naGVsbG8=\n--o--\n",
    );
    assert_eq!((letter.from.as_str(), letter.name.as_deref()), ("Ada@Example.net", Some("Ada Löw")));
    assert_eq!((letter.subject.as_deref(), letter.text.trim(), letter.html.as_deref()), (Some("Grüße"), "Grüße!", Some("<p>x</p>")));
    assert_eq!(letter.message_id.as_deref(), Some("1@example.net"));
    assert_eq!(letter.replies_to.map(|id| id.to_string()).as_deref(), Some("msg_01kahy0000e0000000000000ab"));
    assert_eq!(letter.at, Some(Timestamp::from_millis(1_795_255_200_000)));
    let [file] = letter.media.as_slice() else { panic!("{:?}", letter.media) };
    assert_eq!((file.filename.as_deref(), file.content_type.as_str()), (Some("fá.pdf"), "application/pdf"));
    assert_eq!((file.content_id.as_deref(), file.bytes.as_deref()), (Some("c@d"), Some(&b"hello"[..])));
}

#[test]
fn letters_of_other_kinds() {
    let html = letter_of("From: a@b.example\nContent-Type: text/html\n\n<p>Hello <b>you</b></p>\n");
    for (html, text) in [
        (
            "<div>STOP</div><div>On Saturday, Acme wrote:</div><blockquote>Buy<br>now <blockquote>Old</blockquote></blockquote>Ada",
            "STOP\nOn Saturday, Acme wrote:\n> Buy\n> now\n> > Old\nAda",
        ),
        ("<div>STOP</div><div><br></div><hr><div><b>From:</b> Acme<br><b>Sent:</b> Saturday</div>", "STOP\n\nFrom: Acme\nSent: Saturday"),
    ] {
        assert_eq!(letter_of(&format!("From: a@b.example\nContent-Type: text/html\n\n{html}\n")).text, text);
    }
    assert_eq!((html.text.trim(), html.html.is_some(), html.subject), ("Hello you", true, None));
    let bare = letter_of("From: a@b.example\nReferences: <msg_01kahy0000e0000000000000ac@example.org>\n\nSTOP\n");
    assert_eq!((bare.text.trim(), bare.html, bare.message_id, bare.replies_to.is_some()), ("STOP", None, None, true));
    let picture = letter_of("From: a@b.example\nContent-Type: image/png\nContent-Transfer-Encoding: base64\n\naGVsbG8=\n");
    assert_eq!((picture.text.as_str(), picture.media[0].bytes.as_deref()), ("", Some(&b"hello"[..])));
    let Some(Mail::InboundEmail(eight_bit)) = Mail::read("a@b", b"From: a@b.example\r\nSubject: \xff\xfe\r\n\r\na\0b \xe9\r\n") else {
        panic!()
    };
    assert!(eight_bit.text.starts_with("ab ") && !eight_bit.text.contains('\0'), "{eight_bit:?}");
    assert_eq!(Mail::read("a@b", b""), None);
}

#[test]
fn the_author_is_the_first_with_an_address() {
    for (from, address, name) in [
        ("Doe, Ada <ada@example.net>", "ada@example.net", Some("Ada")),
        ("Ada <ada@example.net>, Bob <bob@example.net>", "ada@example.net", Some("Ada")),
        ("root, ada@example.net", "ada@example.net", None),
        ("Friends: Ada <ada@example.net>;", "ada@example.net", Some("Ada")),
        ("<>", "", None),
        ("root", "", None),
        ("not an address", "", None),
        ("Friends:;", "", None),
        ("", "", None),
    ] {
        let letter = letter_of(&format!("From: {from}\nSubject: s\n\nx\n"));
        assert_eq!((letter.from.as_str(), letter.name.as_deref()), (address, name), "{from}");
    }
    assert_eq!(letter_of("Subject: nobody wrote it\n\nx").from, "");
}

#[test]
fn a_blank_text_beside_html_is_made_from_it() {
    for blank in ["", " \n\n", "\u{a0}\n"] {
        let letter = letter_of(&format!(
            "From: a@b.example\nContent-Type: multipart/alternative; boundary=b\n\n--b\nContent-Type: text/plain; charset=utf-8\n\n{blank}\n\
             --b\nContent-Type: text/html\n\n<div>STOP</div><blockquote>Buy</blockquote>\n--b--\n"
        ));
        assert_eq!(letter.text, "STOP\n> Buy", "{blank:?}");
        assert!(letter.html.is_some_and(|html| html.contains("<div>STOP</div>")), "{blank:?}");
    }
}

#[test]
fn a_text_without_its_closing_boundary_is_a_text() {
    let letter = |kind: &str, parts: &str| letter_of(&format!("From: a@b.example\nContent-Type: multipart/{kind}; boundary=b\n\n{parts}"));
    let plain = "--b\nContent-Type: text/plain\n\nSTOP\n";
    let html = "--b\nContent-Type: text/HTML\n\n<p>STOP</p>\n";
    for (kind, parts, has_html) in [
        ("mixed", plain.to_owned(), false),
        ("mixed", "--b\n\nSTOP\n".to_owned(), false),
        ("mixed", html.to_owned(), true),
        ("alternative", plain.to_owned(), false),
        ("alternative", html.to_owned(), true),
        ("alternative", [plain, html].concat(), true),
    ] {
        let letter = letter(kind, &parts);
        assert_eq!((letter.text.as_str(), letter.html.is_some(), letter.media.len()), ("STOP", has_html, 0), "{kind} {parts}");
    }
    for file in
        ["Content-Type: text/plain; name=a.txt", "Content-Type: text/plain\nContent-Disposition: attachment", "Content-Type: text/csv"]
    {
        let letter = letter("mixed", &format!("{plain}--b\n{file}\n\nfile\n"));
        assert_eq!((letter.text.as_str(), letter.media.len()), ("STOP", 1), "{file}");
    }
}

/// A gateway added a line, a program encodes by its own rules.
#[test]
fn a_part_with_an_error_in_its_encoding_is_decoded() {
    let coded = |coding: &str, body: &str| format!("Content-Transfer-Encoding: {coding}\n\n{body}\n");
    let text = |coding: &str, body: &str| letter_of(&format!("From: a@b.example\n{}", coded(coding, body))).text;
    for (coding, body, read) in [
        ("quoted-printable", "Ol=C3=A1, see https://x.example/?id=z9&a=C3 caf=C3=A9", "Olá, see https://x.example/?id=z9&a\u{fffd} café"),
        ("quoted-printable", "a = b, 1 =2, c=\n=C3=A9 == x= \ny =", "a = b, 1 =2, cé == xy"),
        ("quoted-printable", "STOP\n\n> =C3=A9=zz", "STOP\n\n> é=zz"),
        ("quoted-printable;", "=53TOP", "STOP"),
        ("Base64 (comment)", "U1RPUA==", "STOP"),
        ("base64", "SGVs*bG8=", "Hello"),
        ("base64", "U1RP\n\nUA==\n-- \nScanned by AV", "STOP"),
        ("base64", "U1RPUA==\nScanned, by AV", "STOP"),
        ("base64", "U1RPUFNU\n____\nlist", "STOPST"),
        ("base64", "Not encoded, in fact", "Not encoded, in fact"),
    ] {
        assert_eq!(text(coding, body), read, "{coding} {body}");
    }
    let file = format!("From: a@b.example\nContent-Type: application/pdf\n{}", coded("base64", "JVBE\nRi0x\n-- \nScanned by AV"));
    assert_eq!(letter_of(&file).media[0].bytes.as_deref(), Some(&b"%PDF-1"[..]));
}

#[test]
fn a_character_split_between_encoded_words_is_read() {
    let subject = |value: &str| letter_of(&format!("From: a@b.example\nSubject: {value}\n\nx\n")).subject.unwrap();
    for (value, read) in [
        ("=?utf-8?Q?a=C3?= =?utf-8?Q?=B1o?=", "año"),
        ("Re: =?UTF-8?B?YcM=?=\n =?utf-8?b?sW8=?= nuevo", "Re: año nuevo"),
        ("=?utf-8?Q?=C3?= =?utf-8?Q?=B1?= =?iso-8859-1?Q?=F1?= =?utf-8?Q?=ff?=", "ññ\u{fffd}"),
        ("=?utf-8?Q?=ff?= =??= =?utf-8?Q?=", "\u{fffd} =??= =?utf-8?Q?="),
    ] {
        assert_eq!(subject(value), read, "{value}");
    }
}

#[test]
fn a_text_labelled_as_ascii_can_be_utf_8() {
    let text = |body: &[u8]| {
        let mail = [&b"From: a@b.example\r\nContent-Type: text/plain; charset=US-ASCII\r\n\r\n"[..], body].concat();
        let Some(Mail::InboundEmail(letter)) = Mail::read("a@b", &mail) else { panic!("a letter") };
        letter.text
    };
    assert_eq!((text("año".as_bytes()), text(b"a\xf1o")), ("año".to_owned(), "año".to_owned()));
}

#[test]
fn pictures_between_parts_of_a_text_end_neither_it_nor_its_html() {
    let part = |kind: &str, content: &str| format!("--b\nContent-Type: {kind}\nContent-Disposition: inline\n\n{content}\n");
    let letter =
        |parts: &[String]| letter_of(&format!("From: a@b.example\nContent-Type: multipart/mixed; boundary=b\n\n{}--b--\n", parts.concat()));
    let (picture, one, two) = (part("image/png", "x"), part("text/plain", "One"), part("text/plain", "Two"));
    for (parts, text) in [(vec![one.clone(), picture.clone(), two], "One\nTwo"), (vec![picture.clone(), one.clone()], "One")] {
        let letter = letter(&parts);
        assert_eq!((letter.text.as_str(), letter.html, letter.media.len()), (text, None, 1));
    }
    let html = letter(&[part("text/html", "<p>One</p>"), picture, part("text/html", "<p>Two</p>"), one]);
    let found = html.html.unwrap_or_default();
    assert!(found.contains("One") && found.contains("Two"), "{found}");
    assert_eq!((html.text.matches("One").count(), html.text.matches("Two").count()), (2, 1), "{}", html.text);
}

#[test]
fn machines_are_no_people() {
    for head in [
        "Auto-Submitted: auto-generated",
        "Auto-Submitted: Auto-Replied (vacation)",
        "Precedence: bulk",
        "Precedence: list",
        "List-Id: <x.example>",
        "X-Autoreply: yes",
    ] {
        assert_eq!(read("a@b.example", &format!("From: a@b.example\n{head}\n\nx\n")), Mail::Automatic, "{head}");
    }
    let by_nuncio = "Message-ID: <msg_01kahy0000e0000000000000ab@example.org>";
    for head in ["Auto-Submitted: no", "Auto-Submitted: No (a person)", "X-Auto-Response-Suppress: OOF", by_nuncio] {
        assert!(matches!(read("a@b.example", &format!("From: a@b.example\n{head}\n\nx\n")), Mail::InboundEmail(_)), "{head}");
    }
}

#[test]
fn what_comes_back_without_a_report() {
    let Mail::Returned(raw) =
        read("", "From: mailer@b.example\nSubject: failure notice\nAuto-Submitted: no\n\nHi. This is the qmail-send program.\n")
    else {
        panic!("it came back")
    };
    assert!(raw.contains("qmail"));
    for bounce in [
        "Subject: Undeliverable: Your delayed order",
        "Subject: Undelivered Mail Returned to Sender: warning",
        "X-Failed-Recipients: ada@example.net\nAuto-Submitted: auto-replied",
        "X-Failed-Recipients: ada@example.net\nPrecedence: bulk",
        "X-Failed-Recipients: ada@example.net\nX-Auto-Response-Suppress: All",
    ] {
        assert!(matches!(read("", &format!("From: a@b.example\n{bounce}\n\nIt came back.\n")), Mail::Returned(_)), "{bounce}");
    }
    let listed = read("a@b.example", "From: a@b.example\nX-Failed-Recipients: ada@example.net\nAuto-Submitted: auto-replied\n\nx\n");
    assert_eq!(listed, Mail::Automatic, "it has a sender");
    for no_bounce in [
        "Subject: Delivery delayed: Your order",
        "Subject: Delivery Status Notification (Delay)\nX-Failed-Recipients: ada@example.net",
        "Subject: Delayed Mail (still being retried)",
        "Subject: Warning: could not send message for past 4 hours",
        "Auto-Submitted: auto-replied",
        "Auto-Submitted: auto-generated",
        "Auto-Submitted: AUTO-NOTIFIED; x=y",
        "X-Auto-Response-Suppress: All",
        "Precedence: auto_reply",
        "Precedence: bulk",
        "X-Autorespond: yes",
    ] {
        assert_eq!(read("", &format!("From: a@b.example\n{no_bounce}\n\nI am away.\n")), Mail::Automatic, "{no_bounce}");
    }
}

/// The parser panics here.
#[test]
fn messages_that_end_out_of_order_are_refused() {
    let mail =
        "Content-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/rfc822\n\nContent-Type: message/rfc822\n\n\n--b--\n";
    for from in ["", "a@b"] {
        assert!(Mail::read(from, mail.as_bytes()).is_none_or(|mail| mail == Mail::Automatic || matches!(mail, Mail::Returned(_))));
    }
}

#[test]
fn headers_end() {
    let letter = |headers: usize| format!("From: a@b.example\n{}\nx\n", "a:\n".repeat(headers));
    assert!(Mail::read("a@b", letter(1_000).as_bytes()).is_some());
    assert!(Mail::read("a@b", letter(FIELDS - 1).as_bytes()).is_some());
    assert!(Mail::read("a@b", letter(FIELDS).as_bytes()).is_none());
    let body = |lines: usize| format!("From: a@b.example\n\n{}", "a:\n".repeat(lines));
    assert!(Mail::read("a@b", body(LINES - 2).as_bytes()).is_some());
    assert!(Mail::read("a@b", body(LINES - 1).as_bytes()).is_none());
}

#[test]
fn what_is_built_to_be_hard_to_read() {
    let nested = |kind: &str, depth: usize| -> String {
        let mut mail = "From: a@b.example\n".to_owned();
        for level in 0..depth {
            match kind {
                "message" => mail.push_str("Content-Type: message/rfc822\n\n"),
                _ => mail.push_str(&format!("Content-Type: multipart/{kind}; boundary=b{level}\n\n--b{level}\n")),
            }
        }
        mail + "\nx\n"
    };
    for kind in ["message", "mixed", "digest", "report"] {
        assert_eq!(Mail::read("a@b", nested(kind, 100_000).as_bytes()), None, "{kind}");
        let _ = Mail::read("a@b", nested(kind, NESTED - 1).as_bytes()); // it ends
    }
    for (head, level) in [
        ("", "Content-Type :message/rfc822\n\n"),
        ("", "c\to N tent-Type\r \x0c:message/rfc822\n\n"),
        ("", ": \tContent-Type:message/rfc822\n\n"),
        ("Content-Type: multipart/mixed; boundary=b\n\n", "--bContent-Type:message/rfc822\n\n"),
    ] {
        let hidden = |depth: usize| format!("From: a@b.example\n{head}{}x\n", level.repeat(depth));
        assert_eq!(Mail::read("a@b", hidden(25 * 1_024 * 1_024 / level.len()).as_bytes()), None, "{level:?}");
        assert!(read_small("a@b", hidden(NESTED - 1)).is_some(), "{level:?}");
    }
    for line in ["x--b\n\n", " --b\n\n"] {
        let parts = line.repeat(25 * 1_024 * 1_024 / line.len());
        assert_eq!(Mail::read("a@b", format!("From: a@b.example\nContent-Type: multipart/mixed; boundary=b\n\n{parts}").as_bytes()), None);
    }
    let parts = format!("From: a@b.example\nContent-Type: multipart/mixed; boundary=b\n\n{}", "--b\n".repeat(1_000_000));
    assert_eq!(Mail::read("a@b", parts.as_bytes()), None);
    let Mail::InboundEmail(letter) = read(
        "a@b",
        &format!("From: a@b.example\nX: {}\nSubject: {}\n\n{}\n", "x".repeat(3_000_000), "s".repeat(5_000), "é".repeat(1_200_000)),
    ) else {
        panic!("a letter")
    };
    assert_eq!((letter.subject.map(|s| s.len()), letter.text.chars().count()), (Some(998), TEXT));
    let many = "--b\nContent-Disposition: attachment\n\nx\n".repeat(400);
    let Mail::InboundEmail(letter) = read("a@b", &format!("From: a@b.example\nContent-Type: multipart/mixed; boundary=b\n\n{many}--b--\n"))
    else {
        panic!("a letter")
    };
    assert_eq!(letter.media.len(), ATTACHMENTS);
}

/// Parses on a thread with a quarter of the usual stack.
fn read_small(from: &'static str, mail: String) -> Option<Mail> {
    let small = std::thread::Builder::new().stack_size(512 * 1_024);
    small.spawn(move || Mail::read(from, mail.as_bytes())).unwrap().join().unwrap()
}

#[test]
fn no_mail_hides_in_an_encoding() {
    let level = "Content-Type: message/rfc822\n\n";
    let deep = level.repeat(18 * 1_024 * 1_024 / level.len());
    let base64 = base64::Engine::encode(&base64::engine::general_purpose::STANDARD, &deep);
    let quoted = deep.replace(':', "=3A").replace('\n', "=0A");
    for (coding, body) in [("base64", base64.as_str()), (" BASE64 ", "Y"), ("quoted-printable", quoted.as_str())] {
        for (kind, body) in [("Content-Type: message/rfc822\n", body), ("Content-Type : Message/Global\n", "Y"), ("", "Y")] {
            let hiding = |parts: &str| {
                format!(
                    "From: a@b.example\nContent-Type: multipart/digest; boundary=b\n\n{parts}\
                     --b\n{kind}Content-Transfer-Encoding:{coding}\n\n{body}\n--b--\n"
                )
            };
            assert!(kind.is_empty() || read_small("a@b", hiding("")).is_none(), "{coding} {kind}");
            let status = "--b\nContent-Type: message/delivery-status\n\nReporting-MTA: dns; x\n\nAction: failed\nStatus: 5.1.1\n";
            assert!(matches!(read_small("", hiding(status)), Some(Mail::Report(told)) if told.len() == 1), "{coding} {kind}");
        }
    }
}

#[test]
fn an_encoded_report_is_read() {
    let Mail::Report(told) = read(
        "",
        "From: a@b.example\nContent-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/delivery-status\n\
         Content-Transfer-Encoding: base64\n\nUmVwb3J0aW5nLU1UQTogZG5zOyB4CgpBY3Rpb246IGZhaWxlZApTdGF0dXM6IDUuMS4xCg==\n--b--\n",
    ) else {
        panic!("a report")
    };
    assert_eq!(told.len(), 1);
}

proptest! {
    #[test]
    fn anything_is_read_or_refused(from in ".{0,20}", bytes in proptest::collection::vec(any::<u8>(), 0..2_000)) {
        let _ = Mail::read(&from, &bytes);
    }

    #[test]
    fn anything_that_looks_like_a_mail_is_read_or_refused(
        lines in proptest::collection::vec(
            prop_oneof![
                Just("Content-Type: multipart/report; boundary=b".to_owned()),
                Just("Content-Type: message/delivery-status".to_owned()),
                Just("Content-Type: message/feedback-report".to_owned()),
                Just("Content-Type: message/rfc822".to_owned()),
                Just("Content-Transfer-Encoding: base64".to_owned()),
                Just("--b".to_owned()),
                Just("--b--".to_owned()),
                Just(String::new()),
                Just("Action: failed".to_owned()),
                Just("Status: 5.1.1".to_owned()),
                Just("From: =?utf-8?b?w7Y=?= <a@b.example>".to_owned()),
                "[A-Za-z-]{1,12}: \\PC{0,40}",
                "\\PC{0,60}",
            ],
            0..60,
        ),
        null: bool,
    ) {
        let from = if null { "" } else { "a@b.example" };
        if let Some(Mail::InboundEmail(letter)) = Mail::read(from, lines.join("\r\n").as_bytes()) {
            prop_assert!(!from.is_empty() && (letter.from.is_empty() || address::email(&letter.from).is_ok()));
        }
    }
}
