//! Keyed hashes.

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

/// Returns the HMAC-SHA-256 of the concatenated `parts`. If the same bytes could be split into parts in another way, include a separator.
pub fn mac(key: &[u8], parts: &[&[u8]]) -> [u8; 32] {
    let mut mac = <Hmac<Sha256> as hmac::Mac>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    parts.iter().for_each(|part| mac.update(part));
    mac.finalize().into_bytes().into()
}
