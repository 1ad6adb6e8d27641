//! Keyed hashes that replace identifiers of erased contacts, so that their opt-outs survive, and idempotency keys, which can contain
//! personal data.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use nuncio_domain::{Recipient, Redacted, TenantId};
use nuncio_store::Idempotency;

use nuncio_secrets::{Sealer, mac};

/// No identifier starts with it: phone numbers start with `+`, chat ids are numbers, and email addresses contain `@`.
const BEGINNING: char = '~';
const BYTES: usize = 16;
/// Not the number of any kind of identifier.
const KEY: i16 = 0;

/// Makes keyed hashes of identifiers.
#[derive(Clone, Debug)]
pub struct IdentifierHasher {
    key: Redacted<[u8; 32]>,
}

impl IdentifierHasher {
    /// Derives its key from the sealer's oldest key.
    pub fn new(sealer: &Sealer) -> Self {
        Self { key: sealer.derive(b"erased recipients") }
    }

    /// Returns the hash of a recipient in an environment, for suppressions: of an email address in any case.
    pub fn of(&self, tenant: TenantId, recipient: &Recipient) -> String {
        Self::text(&self.hash(tenant, recipient.kind.number(), recipient.folded().as_bytes()))
    }

    /// Returns the hash of a recipient as it is written, which a broadcast can have in several cases.
    pub(crate) fn as_written(&self, tenant: TenantId, recipient: &Recipient) -> String {
        Self::text(&self.hash(tenant, recipient.kind.number(), recipient.identifier.as_bytes()))
    }

    /// Returns an idempotency key in stored form: neither its text nor the request can be read or guessed from it.
    pub(crate) fn hashed(&self, tenant: TenantId, given: Idempotency) -> Idempotency {
        let Idempotency { operation, key, fingerprint } = given;
        Idempotency { operation, key: self.key(tenant, &key), fingerprint: self.hash(tenant, KEY, &fingerprint) }
    }

    /// Returns the stored form of an idempotency key's text.
    pub(crate) fn key(&self, tenant: TenantId, key: &str) -> String {
        Self::text(&self.hash(tenant, KEY, key.as_bytes()))
    }

    fn hash(&self, tenant: TenantId, kind: i16, what: &[u8]) -> [u8; 32] {
        mac(self.key.expose(), &[&tenant.0.to_be_bytes(), &kind.to_be_bytes(), what])
    }

    fn text(hash: &[u8; 32]) -> String {
        let mut mark = String::with_capacity(24);
        mark.push(BEGINNING);
        URL_SAFE_NO_PAD.encode_string(&hash[..BYTES], &mut mark);
        mark
    }
}

/// Returns whether a stored identifier is a keyed hash.
pub(crate) fn is_mark(recipient: &Recipient) -> bool {
    recipient.identifier.starts_with(BEGINNING) && !recipient.identifier.contains('@')
}
