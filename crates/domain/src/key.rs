//! API keys: `svc_live_` or `svc_test_`, 32 random base62 characters, and a 6-character checksum.
//!
//! The checksum (CRC-32 in base62) lets a mistyped key be refused without a look-up, and lets secret scanners recognise one.

use sha2::{Digest, Sha256};

use crate::id::{KeyId, TenantId};
use crate::{config::Environment, ctx::Entropy, permission::Permissions, redacted::Redacted, time::Timestamp};

const BASE62: &[u8; 62] = b"0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const RANDOM_LEN: usize = 32;
const CHECKSUM_LEN: usize = 6;

/// Stored form of a key: its SHA-256. The key has 190 random bits, so a slow hash is not needed.
pub type KeyHash = [u8; 32];

/// A stored API key.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ApiKey {
    /// The environment the key gives access to.
    pub tenant: TenantId,
    pub id: KeyId,
    /// Display name.
    pub name: String,
    /// SHA-256 of the key.
    pub hash: KeyHash,
    pub permissions: Permissions,
    /// When it was revoked. Permanent.
    pub revoked_at: Option<Timestamp>,
    /// From when on it is refused.
    pub expires_at: Option<Timestamp>,
    /// When it last authenticated a request, as far as stored.
    pub last_used_at: Option<Timestamp>,
}

impl ApiKey {
    pub fn has_expired(&self, now: Timestamp) -> bool {
        self.expires_at.is_some_and(|at| at <= now)
    }

    /// Returns whether it is neither revoked nor expired.
    pub fn is_valid(&self, now: Timestamp) -> bool {
        self.revoked_at.is_none() && !self.has_expired(now)
    }
}

const fn prefix(environment: Environment) -> &'static str {
    match environment {
        Environment::Live => "svc_live_",
        Environment::Test => "svc_test_",
    }
}

fn checksum(text: &str) -> [u8; CHECKSUM_LEN] {
    let mut value = crc32fast::hash(text.as_bytes());
    let mut out = [0; CHECKSUM_LEN];
    for slot in out.iter_mut().rev() {
        *slot = BASE62[(value % 62) as usize];
        value /= 62;
    }
    out
}

/// Generates a key. It is shown once; only its [`hash`] is stored.
pub fn generate(environment: Environment, entropy: &dyn Entropy) -> Redacted<String> {
    let mut key = prefix(environment).to_owned();
    for _ in 0..RANDOM_LEN {
        key.push(char::from(BASE62[entropy.below(62) as usize]));
    }
    let sum = checksum(&key);
    key.extend(sum.iter().map(|b| char::from(*b)));
    Redacted::new(key)
}

/// Returns the environment of a well-formed key; `None` if prefix, length, alphabet or checksum is wrong.
pub fn parse(key: &str) -> Option<Environment> {
    let environment = [Environment::Live, Environment::Test].into_iter().find(|e| key.starts_with(prefix(*e)))?;
    let body = &key[prefix(environment).len()..];
    if body.len() != RANDOM_LEN + CHECKSUM_LEN || !body.bytes().all(|b| b.is_ascii_alphanumeric()) {
        return None;
    }
    let (head, sum) = key.split_at(key.len() - CHECKSUM_LEN);
    (sum.as_bytes() == checksum(head)).then_some(environment)
}

/// Returns the stored form of a key.
pub fn hash(key: &str) -> KeyHash {
    Sha256::digest(key.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug)]
    struct Counting(std::sync::atomic::AtomicU8);
    impl Entropy for Counting {
        fn fill(&self, out: &mut [u8]) {
            for byte in out {
                *byte = self.0.fetch_add(37, std::sync::atomic::Ordering::Relaxed);
            }
        }
    }

    #[test]
    fn a_single_wrong_character_is_noticed() {
        let key = generate(Environment::Test, &Counting(7.into()));
        let key = key.expose();
        assert_eq!(parse(key), Some(Environment::Test));
        for at in 9..key.len() {
            let mut wrong = key.clone().into_bytes();
            wrong[at] = if wrong[at] == b'a' { b'b' } else { b'a' };
            let wrong = String::from_utf8(wrong).unwrap_or_default();
            assert_eq!(parse(&wrong), None, "{at}");
        }
    }

    #[test]
    fn foreign_text_is_refused() {
        for text in ["", "svc_live_", "sk_live_abc", "svc_test_é2345678901234567890123456789012345678"] {
            assert_eq!(parse(text), None);
        }
    }
}
