//! What holds of every text that becomes short messages.

use nuncio_domain::sms::{Encoding, Segment, measure, segments};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed};

fn config() -> Config {
    Config { rng_seed: RngSeed::Fixed(7), rng_algorithm: RngAlgorithm::ChaCha, failure_persistence: None, ..Config::default() }
}

/// Texts of the default alphabet with escapes, and of all others with surrogate pairs.
fn text() -> impl Strategy<Value = String> {
    prop_oneof![
        2 => r"[a-zA-Z0-9 @£$èÇØΔΞ€{}\[\]~^|\\\n]{0,700}",
        1 => "[a-zж\u{4e2d}\u{1F600}\u{1F4E8}]{0,300}",
        1 => any::<String>(),
    ]
}

/// The default alphabet, in an order of its own: by septet.
const BASIC: [char; 128] = [
    '@', '£', '$', '¥', 'è', 'é', 'ù', 'ì', 'ò', 'Ç', '\n', 'Ø', 'ø', '\r', 'Å', 'å', 'Δ', '_', 'Φ', 'Γ', 'Λ', 'Ω', 'Π', 'Ψ', 'Σ', 'Θ',
    'Ξ', '\u{1b}', 'Æ', 'æ', 'ß', 'É', ' ', '!', '"', '#', '¤', '%', '&', '\'', '(', ')', '*', '+', ',', '-', '.', '/', '0', '1', '2', '3',
    '4', '5', '6', '7', '8', '9', ':', ';', '<', '=', '>', '?', '¡', 'A', 'B', 'C', 'D', 'E', 'F', 'G', 'H', 'I', 'J', 'K', 'L', 'M', 'N',
    'O', 'P', 'Q', 'R', 'S', 'T', 'U', 'V', 'W', 'X', 'Y', 'Z', 'Ä', 'Ö', 'Ñ', 'Ü', '§', '¿', 'a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i',
    'j', 'k', 'l', 'm', 'n', 'o', 'p', 'q', 'r', 's', 't', 'u', 'v', 'w', 'x', 'y', 'z', 'ä', 'ö', 'ñ', 'ü', 'à',
];

/// Reads septets as a phone does.
fn read(septets: &[u8]) -> String {
    let mut septets = septets.iter();
    let mut text = String::new();
    while let Some(septet) = septets.next() {
        if *septet != 0x1b {
            text.push(BASIC[usize::from(*septet)]);
            continue;
        }
        text.push(match septets.next().expect("an escape is not the end of a part") {
            0x0a => '\u{c}',
            0x14 => '^',
            0x28 => '{',
            0x29 => '}',
            0x2f => '\\',
            0x3c => '[',
            0x3d => '~',
            0x3e => ']',
            0x40 => '|',
            0x65 => '€',
            other => panic!("0x1b {other:#x}"),
        });
    }
    text
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn the_parts_are_the_text_and_each_fits(text in text()) {
        let (measure, segments) = (measure(&text), segments(&text));
        prop_assert_eq!(usize::from(measure.segments), segments.len());
        let most = if segments.len() == 1 { measure.encoding.alone() } else { measure.encoding.part() };
        prop_assert!(segments.iter().all(|part| part.units() <= most));
        prop_assert_eq!(segments.iter().map(Segment::units).sum::<usize>(), measure.units);
        // Each part reads by itself: no escape sequence and no surrogate pair is cut.
        let one = |part: &Segment| match part {
            Segment::Gsm7(septets) => read(septets),
            Segment::Ucs2(units) => String::from_utf16(units).expect("whole characters"),
        };
        let joined: String = segments.iter().map(one).collect();
        prop_assert_eq!(&joined, &text);
        // Every part but the last has no room for the character that begins the next one.
        prop_assert!(segments[..segments.len() - 1].iter().all(|part| part.units() + 1 >= most));
    }

    #[test]
    fn ucs2_has_a_reason(text in text()) {
        let measured = measure(&text);
        prop_assert_eq!(measured.encoding == Encoding::Ucs2, measured.forced_by.is_some());
        if let Some(foreign) = measured.forced_by {
            prop_assert_eq!(text.chars().nth(foreign.position), Some(foreign.character));
            let before: String = text.chars().take(foreign.position).collect();
            prop_assert_eq!(measure(&before).encoding, Encoding::Gsm7);
        }
    }
}
