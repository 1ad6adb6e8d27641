//! Encrypts secrets at rest: XChaCha20-Poly1305, bound to the row they belong to.
//!
//! Blob: key id (4 bytes), nonce (24 random bytes), ciphertext with tag. The row's identity is authenticated with it, so that a blob copied
//! to another row does not open. To rotate, put the new key first and keep the old ones until everything is sealed again.

mod mac;

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use chacha20poly1305::aead::{Aead as _, KeyInit as _, Payload};
use chacha20poly1305::{XChaCha20Poly1305, XNonce};
use nuncio_domain::{ConnectionId, Entropy, InvitationId, Redacted, SenderId, TenantId, UserId};
use serde_json::{Map, Value};
use sha2::{Digest as _, Sha256};

pub use mac::mac;

/// Seals with the first key, opens with any.
#[derive(Clone, Debug)]
pub struct Sealer {
    keys: Vec<Redacted<[u8; 32]>>,
}

/// Why sealing or opening failed.
#[derive(Debug, thiserror::Error)]
pub enum SealerError {
    /// No key was given, or one is not 32 bytes of base64.
    #[error("an encryption key must be 32 bytes in base64, one key a line, the newest first")]
    Key,
    /// Sealed with an unknown key.
    #[error("sealed with a key that is missing from the key file")]
    UnknownKey,
    /// The blob was changed, cut or moved to another row.
    #[error("the sealed secrets are damaged")]
    Damaged,
}

impl Sealer {
    /// Parses a key file: one base64 key per line, newest first.
    pub fn parse(text: &str) -> Result<Self, SealerError> {
        let keys = text
            .lines()
            .map(str::trim)
            .filter(|line| !line.is_empty())
            .map(|line| STANDARD.decode(line).ok().and_then(|key| key.try_into().ok()).map(Redacted::new).ok_or(SealerError::Key))
            .collect::<Result<Vec<_>, _>>()?;
        if keys.is_empty() { Err(SealerError::Key) } else { Ok(Self { keys }) }
    }

    /// Returns a line for a new key file.
    pub fn generate(entropy: &dyn Entropy) -> Redacted<String> {
        let mut key = [0; 32];
        entropy.fill(&mut key);
        Redacted::new(format!("{}\n", STANDARD.encode(key)))
    }

    /// Derives a key for another purpose from the oldest key, so that it survives rotation.
    pub fn derive(&self, purpose: &[u8]) -> Redacted<[u8; 32]> {
        let oldest = self.keys.last().map_or([0; 32], |key| *key.expose());
        Redacted::new(mac(&oldest, &[purpose]))
    }

    pub fn seal(&self, row: Row, secrets: &Map<String, Value>, entropy: &dyn Entropy) -> Result<Vec<u8>, SealerError> {
        let key = self.keys.first().ok_or(SealerError::Key)?;
        let mut nonce = [0; 24];
        entropy.fill(&mut nonce);
        let plain = serde_json::to_vec(secrets).map_err(|_| SealerError::Damaged)?;
        let row = row.to_string();
        let payload = Payload { msg: &plain, aad: row.as_bytes() };
        let sealed = cipher(key).encrypt(&XNonce::from(nonce), payload).map_err(|_| SealerError::Damaged)?;
        Ok([key_id(key).as_slice(), &nonce, &sealed].concat())
    }

    pub fn open(&self, row: Row, blob: &[u8]) -> Result<Map<String, Value>, SealerError> {
        let (id, rest) = blob.split_at_checked(4).ok_or(SealerError::Damaged)?;
        let (nonce, sealed) = rest.split_at_checked(24).ok_or(SealerError::Damaged)?;
        let key = self.keys.iter().find(|key| key_id(key) == id).ok_or(SealerError::UnknownKey)?;
        let row = row.to_string();
        let payload = Payload { msg: sealed, aad: row.as_bytes() };
        let plain = cipher(key).decrypt(XNonce::from_slice(nonce), payload).map_err(|_| SealerError::Damaged)?;
        serde_json::from_slice(&plain).map_err(|_| SealerError::Damaged)
    }
}

fn cipher(key: &Redacted<[u8; 32]>) -> XChaCha20Poly1305 {
    XChaCha20Poly1305::new(key.expose().into())
}

fn key_id(key: &Redacted<[u8; 32]>) -> [u8; 4] {
    let digest = Sha256::digest(key.expose());
    [digest[0], digest[1], digest[2], digest[3]]
}

/// The row that secrets belong to. Part of the authenticated data, so stored values must keep their form.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Row {
    /// Secrets of a provider account.
    Connection(TenantId, ConnectionId),
    /// Signing secrets of a sender's webhook, or of the environment's.
    Webhook(TenantId, Option<SenderId>),
    /// Token of an invitation.
    Invitation(TenantId, InvitationId),
    /// The second factor of a person.
    Factor(UserId),
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Connection(tenant, id) => write!(f, "connections/{}/{id}", tenant.0),
            Self::Webhook(tenant, Some(sender)) => write!(f, "webhooks/{}/{sender}", tenant.0),
            Self::Webhook(tenant, None) => write!(f, "webhooks/{}", tenant.0),
            Self::Invitation(tenant, id) => write!(f, "invitations/{}/{id}", tenant.0),
            Self::Factor(user) => write!(f, "factors/{user}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuncio_domain::Timestamp;
    use nuncio_domain::id::{Id as _, uuid_v7};

    #[derive(Debug)]
    struct Fixed(u8);
    impl Entropy for Fixed {
        fn fill(&self, out: &mut [u8]) {
            out.fill(self.0);
        }
    }

    fn connection(n: u8) -> ConnectionId {
        ConnectionId::from_uuid(uuid_v7(Timestamp::from_millis(1), [n; 10]))
    }

    #[test]
    fn opens_with_the_old_key_after_rotation_and_only_for_its_row() -> Result<(), SealerError> {
        let (old, new) = (Sealer::generate(&Fixed(1)), Sealer::generate(&Fixed(2)));
        let sealer = Sealer::parse(old.expose())?;
        let mut secrets = Map::new();
        secrets.insert("password".into(), "hunter2".into());
        let blob = sealer.seal(Row::Connection(TenantId(1), connection(1)), &secrets, &Fixed(3))?;
        let rotated = Sealer::parse(&format!("{}{}", new.expose(), old.expose()))?;
        assert_eq!(rotated.open(Row::Connection(TenantId(1), connection(1)), &blob)?, secrets);
        assert!(matches!(rotated.open(Row::Connection(TenantId(1), connection(2)), &blob), Err(SealerError::Damaged)));
        assert!(matches!(rotated.open(Row::Connection(TenantId(2), connection(1)), &blob), Err(SealerError::Damaged)));
        assert!(matches!(
            Sealer::parse(new.expose())?.open(Row::Connection(TenantId(1), connection(1)), &blob),
            Err(SealerError::UnknownKey)
        ));
        assert!(!blob.windows(7).any(|w| w == b"hunter2"));
        Ok(())
    }
}
