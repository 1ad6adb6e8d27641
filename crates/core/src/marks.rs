//! What stands for the identifiers of people who were erased, so that their opt-outs outlive them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nuncio_domain::{Recipient, Redacted, TenantId};

use crate::mac::mac;
use crate::secrets::Sealer;

/// No identifier begins like this: phone numbers begin with `+`, chat ids are numbers, and email addresses have an `@`.
const BEGINNING: char = '~';
const BYTES: usize = 16;

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
        let parts: [&[u8]; 3] = [&tenant.0.to_be_bytes(), &recipient.kind.number().to_be_bytes(), recipient.identifier.as_bytes()];
        let full = mac(self.key.expose(), &parts);
        let mut mark = String::with_capacity(24);
        mark.push(BEGINNING);
        URL_SAFE_NO_PAD.encode_string(&full[..BYTES], &mut mark);
        mark
    }
}

/// Whether a stored identifier is a mark.
pub(crate) fn is_mark(recipient: &Recipient) -> bool {
    recipient.identifier.starts_with(BEGINNING) && !recipient.identifier.contains('@')
}
