//! Keyed hashes: what stands for the identifiers of people who were erased, so that their opt-outs outlive them, and for idempotency keys,
//! in which callers write what they like.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nuncio_domain::{Recipient, Redacted, TenantId};
use nuncio_store::Idempotency;

use nuncio_secrets::Sealer;
use nuncio_secrets::mac;

/// No identifier begins like this: phone numbers begin with `+`, chat ids are numbers, and email addresses have an `@`.
const BEGINNING: char = '~';
const BYTES: usize = 16;
/// No kind of identifier has this number.
const KEY: i16 = 0;

/// Makes marks: keyed hashes of identifiers.
#[derive(Clone, Debug)]
pub struct Marks {
    key: Redacted<[u8; 32]>,
}

impl Marks {
    /// Marks whose key follows from the sealer's oldest.
    pub fn new(sealer: &Sealer) -> Self {
        Self { key: sealer.derive(b"erased recipients") }
    }

    /// The mark of a recipient in a world.
    pub fn of(&self, tenant: TenantId, recipient: &Recipient) -> String {
        Self::text(&self.hash(tenant, recipient.kind.number(), recipient.identifier.as_bytes()))
    }

    /// An idempotency key as it is stored: neither its text nor the request can be read from it, or found by trying.
    pub(crate) fn seal(&self, tenant: TenantId, given: Idempotency) -> Idempotency {
        let Idempotency { operation, key, fingerprint } = given;
        Idempotency { operation, key: self.key(tenant, &key), fingerprint: self.hash(tenant, KEY, &fingerprint) }
    }

    /// The text of an idempotency key as it is stored.
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

/// Whether a stored identifier is a mark.
pub(crate) fn is_mark(recipient: &Recipient) -> bool {
    recipient.identifier.starts_with(BEGINNING) && !recipient.identifier.contains('@')
}
