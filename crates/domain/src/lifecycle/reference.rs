//! Bounds the ids that providers give: they are keys of an index, which refuses long ones.

use sha2::{Digest as _, Sha256};

/// Longest id that is kept as it is, in bytes.
const LONGEST: usize = 255;
/// Bytes of a longer one that are kept: `~` and a hash in hexadecimal follow.
const KEPT: usize = LONGEST - 1 - 64;

/// Returns a provider's id as it is stored, at most 255 bytes. A longer one is replaced by its beginning and a hash of all of it, so that
/// responses and receipts with the same id still match.
pub fn bounded_reference(mut reference: String) -> String {
    if reference.len() > LONGEST {
        let hash = Sha256::digest(&reference);
        reference.truncate(reference.floor_char_boundary(KEPT));
        reference.push_str(&format!("~{hash:x}"));
    }
    reference
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_that_fits_stays() {
        for id in [String::new(), "wamid.A".to_owned(), "x".repeat(255)] {
            assert_eq!(bounded_reference(id.clone()), id);
        }
    }

    #[test]
    fn a_longer_one_is_its_beginning_and_a_hash() {
        // printf 'x%.0s' {1..256} | sha256sum
        let hash = "85e62acd750c4eb56b7b6a1d66dca5bfaac5f062608a1a893410d0288936c09a";
        assert_eq!(bounded_reference("x".repeat(256)), format!("{}~{hash}", "x".repeat(190)));
        let long = "é".repeat(4_500) + "1";
        let bounded = bounded_reference(long.clone());
        assert_eq!(bounded.len(), 255);
        assert_eq!(bounded_reference(bounded.clone()), bounded, "it is bounded once");
        assert_ne!(bounded_reference("é".repeat(4_500) + "2"), bounded, "the end counts");
        let cut = bounded_reference("xé".repeat(100));
        assert!(cut.len() <= 255 && cut.starts_with(&"xé".repeat(63)), "no character is cut: {cut}");
    }
}
