//! Page cursors: opaque, signed, bound to the environment, the operation and its filters, but not to the page size.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use nuncio_domain::{Error, Redacted, Result, TenantId};
use subtle::ConstantTimeEq as _;

use nuncio_secrets::mac;

const TAG: usize = 12;

/// Makes and verifies cursors.
#[derive(Clone, Debug)]
pub struct Cursors {
    key: Redacted<[u8; 32]>,
}

impl Cursors {
    pub const fn new(key: Redacted<[u8; 32]>) -> Self {
        Self { key }
    }

    /// Makes a cursor that continues after the row `last`. `scope` names the operation and its filters.
    pub fn make(&self, tenant: TenantId, scope: &str, last: [u8; 16]) -> String {
        let tag = self.tag(tenant, scope, last);
        URL_SAFE_NO_PAD.encode([last.as_slice(), &tag].concat())
    }

    /// Returns the row to continue after. A modified cursor, or one of another list, is a 400.
    pub fn read(&self, tenant: TenantId, scope: &str, cursor: &str) -> Result<[u8; 16]> {
        let wrong = || Error::field("query.cursor", "is not a nextCursor of this list with these filters");
        let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| wrong())?;
        let (last, tag) = bytes.split_first_chunk::<16>().ok_or_else(wrong)?;
        let expected = self.tag(tenant, scope, *last);
        if bool::from(expected.ct_eq(tag)) { Ok(*last) } else { Err(wrong()) }
    }

    fn tag(&self, tenant: TenantId, scope: &str, last: [u8; 16]) -> [u8; TAG] {
        let full = mac(self.key.expose(), &[&tenant.0.to_be_bytes(), &last, scope.as_bytes()]);
        let mut tag = [0; TAG];
        tag.copy_from_slice(&full[..TAG]);
        tag
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cursor_is_good_for_its_own_list_only() {
        let cursors = Cursors::new(Redacted::new([7; 32]));
        let cursor = cursors.make(TenantId(1), "messages?to=a", [9; 16]);
        assert_eq!(cursors.read(TenantId(1), "messages?to=a", &cursor).ok(), Some([9; 16]));
        assert!(cursors.read(TenantId(2), "messages?to=a", &cursor).is_err());
        assert!(cursors.read(TenantId(1), "messages?to=b", &cursor).is_err());
        for at in 0..cursor.len() {
            let mut changed = cursor.clone().into_bytes();
            changed[at] = if changed[at] == b'A' { b'B' } else { b'A' };
            let changed = String::from_utf8(changed).unwrap_or_default();
            assert!(cursors.read(TenantId(1), "messages?to=a", &changed).is_err(), "{at}");
        }
        assert!(cursors.read(TenantId(1), "messages?to=a", "").is_err());
    }
}
