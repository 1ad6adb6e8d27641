//! Property tests of segmentation and decoding.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed};

use super::*;
use crate::promises;

fn config() -> Config {
    Config { rng_seed: RngSeed::Fixed(7), rng_algorithm: RngAlgorithm::ChaCha, failure_persistence: None, ..Config::default() }
}

/// Texts of the default alphabet with escapes, and others with surrogate pairs. The API rejects NUL.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => r"[a-zA-Z0-9 @£$èÇØΔΞ€{}\[\]~^|\\\n]{0,700}",
        1 => "[a-zж\u{4e2d}\u{1F600}\u{1F4E8}]{0,300}",
        1 => any::<String>().prop_map(|text| text.replace('\0', "")),
    ]
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_goes_out_is_the_text_in_as_many_parts_as_priced(text in text(), reference: u16) {
        promises::segmentation(&text, reference);
    }

    #[test]
    fn whatever_comes_in_is_read(coding: u8, octets in proptest::collection::vec(any::<u8>(), 0..300)) {
        let (_, body) = strip_header(&octets);
        prop_assert!(!read(coding, body).contains('\0'));
    }
}

#[test]
fn the_whole_alphabet_is_known() {
    let missing: Vec<_> = (0..128).filter(|&septet| read(0, &[septet]) == "\u{fffd}").collect();
    assert!(missing.is_empty(), "{missing:?}");
    let extended: Vec<_> = (0..128).filter(|&septet| read(0, &[ESCAPE, septet]) != read(0, &[septet])).collect();
    assert_eq!(extended.len(), 11, "ten, and the escape itself: {extended:?}");
    assert_eq!(read(0, &[0x00, 0x1B, 0x65, 0x10, 0x1B, 0x41, 0xFF, 0x1B]), "@€ΔA\u{fffd} ");
}

#[test]
fn wide_references_cost_nothing() {
    let headers =
        |text: &str| bodies(text, Marking::WideHeader, 0x1234).unwrap().1.iter().map(|b| b.octets[..4].to_vec()).collect::<Vec<_>>();
    // Two parts of 152 hold 304 septets; 306 only fit two parts of 153.
    assert_eq!(headers(&"a".repeat(304)), [[6, 8, 4, 0x12], [6, 8, 4, 0x12]]);
    assert_eq!(headers(&"a".repeat(306)), [[5, 0, 3, 0x34], [5, 0, 3, 0x34]]);
    assert_eq!(bodies(&"a".repeat(153 * 255 + 1), Marking::Header, 1), Err(TooLong));
}

#[test]
fn codings_of_phones() {
    for (coding, octets, text) in [
        (1, &b"a~"[..], "a~"),
        (3, b"\xe9", "é"),
        (8, b"\x04\x16\xd8\x3d\xde\x00", "Ж\u{1F600}"),
        (8, b"\xd8\x3d\x00a\x00", "\u{fffd}a"),
        (0xF0, b"\x05", "é"),
        (0x11, b"\x05", "é"),
        (0x18, b"\x00\xe9", "é"),
        (4, b"\x00\x01", "\u{fffd}\u{1}"),
    ] {
        assert_eq!(read(coding, octets), text, "{coding:#x}");
    }
}

#[test]
fn receipts_are_mostly_in_ascii() {
    for (coding, octets, text) in [
        (0, &b"id:ab_12 stat:DELIVRD"[..], "id:ab_12 stat:DELIVRD"),
        (0, b"id:ab\x1112 stat:DELIVRD", "id:ab_12 stat:DELIVRD"),
        (0, b"id:a@b$[]{}|~^\\", "id:a@b$[]{}|~^\\"),
        (0, b"id:a\x00b\x02", "id:a@b$"),
        (1, b"id:ab_12", "id:ab_12"),
        (8, b"\x00i\x00d\x00:\x00_", "id:_"),
        (8, b"\xfe\xff\x00i\x00d\x00:\x00_\x00\x00", "id:_"),
        // The coding is that of the message, and so are the words of it.
        (8, b"id:ab_12 stat:DELIVRD text:\x04\x16", "id:ab_12 stat:DELIVRD text:\u{4}\u{16}"),
        (0x18, b"id:ab_12 stat:DELIVRD", "id:ab_12 stat:DELIVRD"),
        // Written as a C string.
        (0, b"id:1038\x00", "id:1038"),
        (1, b"id:1038 err:000\x00\x00", "id:1038 err:000"),
        (8, b"stat:DELIVRD\x00", "stat:DELIVRD"),
        (0, b"\x00", ""),
    ] {
        assert_eq!(read_receipt(coding, octets), text, "{octets:?}");
    }
}

#[test]
fn headers_of_phones() {
    let sar = |reference, total, sequence| Some(Sar { reference, total, sequence });
    for (octets, part, body) in [
        (&[5, 0, 3, 7, 2, 1, b'x'][..], sar(7, 2, 1), &b"x"[..]),
        (&[6, 8, 4, 1, 7, 2, 1, b'x'], sar(0x107, 2, 1), b"x"),
        // With ports before it, and with a language table after it.
        (&[11, 5, 4, 0, 1, 0, 2, 0, 3, 7, 2, 1, b'x'], sar(7, 2, 1), b"x"),
        (&[3, 0x24, 1, 1, b'x'], None, b"x"),
        // Broken: longer than the message, or an element longer than the header.
        (&[9, 0, 3], None, &[9, 0, 3]),
        (&[2, 0, 9, b'x'], None, b"x"),
        (&[], None, b""),
    ] {
        assert_eq!(strip_header(octets), (part, body), "{octets:?}");
    }
}
