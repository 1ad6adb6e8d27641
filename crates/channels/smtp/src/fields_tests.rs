use mail_parser::Message;
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed};

use super::*;
use crate::parts::{parse, types};

fn counted(mail: &str) -> usize {
    count(mail.as_bytes(), &types(mail.as_bytes()).unwrap())
}

/// The header fields that the parser found.
fn parsed(message: &Message<'_>) -> usize {
    message.parts.iter().map(|part| part.headers.len() + part.message().map_or(0, parsed)).sum()
}

#[test]
fn headers_count_and_bodies_do_not() {
    for (mail, fields) in [
        ("", 0),
        ("From: a\nTo: b\n c\n\nX: y\n--b\nX: y\n", 2),
        ("\nX: y\n", 0),
        ("Content-Type: multipart/mixed; boundary=\"b b\"\n\nX: y\n--b c\nX: y\n--b b\nX: y\n\nX: y\n--b b--\n", 2),
        ("Content-Type: message/rfc822\n\nX: y\nX: y\n\nX: y\n", 3),
        ("Content-Type:\n message/rfc822\n\nContent-Type: message/global\n\nX: y\n\nX: y\n", 3),
        ("Content-Type: message/rfc822; boundary=b\n--b\n\nX: y\n\nX: y\n", 2),
        ("Content-Type: multipart/digest; boundary=b\n\n--b\n\nX: y\n\nX: y\n", 2),
    ] {
        assert_eq!(counted(mail), fields, "{mail:?}");
        assert_eq!(counted(&mail.replace('\n', "\r\n")), fields, "{mail:?}");
    }
}

#[test]
fn a_long_type_hides_no_boundary() {
    let padding = " x=y;\n".repeat(TYPE);
    assert_eq!(counted(&format!("Content-Type: multipart/mixed;\n{padding} boundary=b\n\n--b\nX: y\n\n")), 2);
    assert_eq!(counted(&format!("Content-Type: message/rfc822;\n{padding}\nX: y\n\n")), 2);
}

fn config() -> Config {
    Config {
        cases: 2_000,
        rng_seed: RngSeed::Fixed(7),
        rng_algorithm: RngAlgorithm::ChaCha,
        failure_persistence: None,
        ..Config::default()
    }
}

proptest! {
    #![proptest_config(config())]
    #[test]
    fn the_parser_finds_no_more(
        pieces in proptest::collection::vec(
            prop_oneof![
                4 => Just("\n"), 2 => Just("\r\n"), 1 => Just("\r"), 2 => Just(" "), 1 => Just("\x0c"),
                4 => Just("X: y\n"), 2 => Just("X:\n"), 1 => Just("x"), 1 => Just(":"), 1 => Just("\n\n"),
                4 => Just("Content-Type: multipart/mixed; boundary=b\n\n"),
                2 => Just("Content-Type: multipart/mixed; boundary=bb"),
                2 => Just("Content-Type: multipart/digest; boundary=\"b\"\n\n"),
                1 => Just("Content-Type: multipart/mixed; boundary*0*=''%62;\n boundary*1=b\n"),
                1 => Just("Content-Type: multipart/mixed; boundary=\"=?utf-8?q?b\n_?=\"\n"),
                4 => Just("Content-Type: message/rfc822\n\n"),
                2 => Just("content-\ttype :\n message/global"),
                1 => Just("From: =?utf-8?q?\n\n?=\n"), 1 => Just("From: \"\n\n\"\n"), 1 => Just("Subject: =?utf-8?b?\n\n?=\n"),
                1 => Just("Date: (\n\n)\n"), 1 => Just("Message-ID: <\n\n>\n"),
                4 => Just("--b\n"), 2 => Just("--b"), 2 => Just("--bb\n"), 2 => Just("--b--\n"), 1 => Just("-"), 1 => Just(" --b:"),
            ],
            0..40,
        ),
    ) {
        let mail = pieces.concat();
        // The parser panics on some of these; they are refused.
        if let Some(message) = parse(mail.as_bytes()) {
            prop_assert!(parsed(&message) <= counted(&mail), "{mail:?}: {} and not {}", parsed(&message), counted(&mail));
        }
    }
}
