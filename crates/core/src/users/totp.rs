//! Time-based one-time passwords (RFC 6238): six digits, SHA-1, steps of 30 seconds, as all authenticator apps support.

use hmac::{Hmac, Mac as _};
use nuncio_domain::Timestamp;
use sha1::Sha1;
use subtle::ConstantTimeEq as _;

const ALPHABET: &[u8; 32] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";
/// Length of a step, in milliseconds.
const STEP: i64 = 30_000;

/// Returns the code of a step.
fn at(secret: &[u8], step: i64) -> String {
    let Ok(mut mac) = Hmac::<Sha1>::new_from_slice(secret) else { return String::new() };
    mac.update(&step.to_be_bytes());
    let hash = mac.finalize().into_bytes();
    let offset = usize::from(hash[19] & 15);
    let number = u32::from_be_bytes([hash[offset] & 0x7f, hash[offset + 1], hash[offset + 2], hash[offset + 3]]);
    format!("{:06}", number % 1_000_000)
}

/// Returns the step of `code`: the current one or a neighbour, to tolerate clock differences, and later than `after`.
pub(super) fn step_of(secret: &[u8], code: &str, now: Timestamp, after: i64) -> Option<i64> {
    let present = now.millis().div_euclid(STEP);
    (present - 1..=present + 1).find(|step| *step > after && bool::from(at(secret, *step).as_bytes().ct_eq(code.as_bytes())))
}

/// Encodes base32 (RFC 4648 §6) without padding.
pub(super) fn base32(bytes: &[u8]) -> String {
    let bits = |n: usize| (0..5).fold(0, |value, bit| value << 1 | usize::from(bit_at(bytes, n * 5 + bit)));
    (0..(bytes.len() * 8).div_ceil(5)).map(|n| char::from(ALPHABET[bits(n)])).collect()
}

fn bit_at(bytes: &[u8], n: usize) -> bool {
    bytes.get(n / 8).is_some_and(|byte| byte >> (7 - n % 8) & 1 == 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_examples_of_rfc_6238_hold() {
        let secret = b"12345678901234567890";
        // Appendix B lists eight digits; six-digit codes are the last six.
        for (seconds, digits) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(at(secret, seconds / 30), digits, "{seconds}");
        }
        assert_eq!(base32(secret), "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ");
        assert_eq!(base32(b"foob"), "MZXW6YQ");
    }

    #[test]
    fn a_password_holds_for_its_step_and_its_neighbours_and_once() {
        let secret = b"12345678901234567890";
        let now = Timestamp::from_millis(1_111_111_109_000);
        let step = 1_111_111_109 / 30;
        assert_eq!(step_of(secret, "081804", now, 0), Some(step));
        for (moved, found) in [(-1, true), (1, true), (-2, false), (2, false)] {
            let then = Timestamp::from_millis(now.millis() + moved * STEP);
            assert_eq!(step_of(secret, "081804", then, 0).is_some(), found, "{moved}");
        }
        assert_eq!(step_of(secret, "081804", now, step), None, "it was used");
        assert_eq!(step_of(secret, "", now, 0), None);
    }
}
