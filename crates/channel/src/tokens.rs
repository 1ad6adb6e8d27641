//! Signed tokens in email addresses and links.

use hmac::{Hmac, Mac as _};
use nuncio_domain::id::Id;
use nuncio_domain::{ConnectionId, MessageId, Redacted, TenantId};
use sha2::Sha256;

/// Makes and verifies signed tokens.
///
/// A token consists of a letter for its purpose, the tenant, an identifier and the first 64 bits of an HMAC-SHA-256 over all of these,
/// joined by hyphens; guesses can only be tested against this server. It has only lower-case letters, digits and hyphens, and at most 64 of
/// them for any tenant below 2^60, so that it can be the local part of an address (RFC 5321 §4.5.3.1.1). Upper case is accepted too,
/// since some servers change it.
#[derive(Clone, Debug)]
pub struct Tokens {
    key: Redacted<[u8; 32]>,
}

impl Tokens {
    /// Makes tokens signed with `key`. Tokens must stay valid for years: the key must outlive key rotation.
    pub const fn new(key: Redacted<[u8; 32]>) -> Self {
        Self { key }
    }

    /// Returns the bounce token of an attempt (from 0).
    pub fn bounce(&self, tenant: TenantId, message: MessageId, attempt: usize) -> String {
        self.sign(format!("b-{:x}-{}-{attempt:x}", tenant.0, bare(message)))
    }

    /// Parses a token made by [`Self::bounce`].
    pub fn read_bounce(&self, name: &str) -> Option<(TenantId, MessageId, usize)> {
        let [tenant, id, attempt] = self.read(name, "b")?;
        Some((world(&tenant)?, whole(&id)?, usize::from_str_radix(&attempt, 16).ok()?))
    }

    /// Returns the token for complaints about a connection's emails.
    pub fn feedback(&self, tenant: TenantId, connection: ConnectionId) -> String {
        self.sign(format!("f-{:x}-{}", tenant.0, bare(connection)))
    }

    /// Parses a token made by [`Self::feedback`].
    pub fn read_feedback(&self, name: &str) -> Option<(TenantId, ConnectionId)> {
        let [tenant, id] = self.read(name, "f")?;
        Some((world(&tenant)?, whole(&id)?))
    }

    /// Returns the token of a message's unsubscribe link.
    pub fn unsubscribe(&self, tenant: TenantId, message: MessageId) -> String {
        self.sign(format!("u-{:x}-{}", tenant.0, bare(message)))
    }

    /// Parses a token made by [`Self::unsubscribe`].
    pub fn read_unsubscribe(&self, name: &str) -> Option<(TenantId, MessageId)> {
        let [tenant, id] = self.read(name, "u")?;
        Some((world(&tenant)?, whole(&id)?))
    }

    fn mac(&self, text: &str) -> Hmac<Sha256> {
        let key = self.key.expose();
        let mut mac = <Hmac<Sha256> as hmac::Mac>::new_from_slice(key).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
        mac.update(text.as_bytes());
        mac
    }

    fn sign(&self, mut text: String) -> String {
        let mac = self.mac(&text).finalize().into_bytes();
        text.push('-');
        mac[..8].iter().for_each(|byte| text.push_str(&format!("{byte:02x}")));
        text
    }

    /// Returns the parts of a signed token of this purpose, without purpose and signature.
    fn read<const N: usize>(&self, name: &str, purpose: &str) -> Option<[String; N]> {
        if !name.is_ascii() || name.len() > 80 {
            return None;
        }
        let name = name.to_ascii_lowercase();
        let (text, signature) = name.rsplit_once('-').filter(|(_, signature)| signature.len() == 16)?;
        let mut parts = text.split('-').map(str::to_owned);
        if parts.next()? != purpose {
            return None;
        }
        let signature: Option<Vec<u8>> = (0..8).map(|i| u8::from_str_radix(&signature[2 * i..2 * i + 2], 16).ok()).collect();
        self.mac(text).verify_truncated_left(&signature?).ok()?;
        parts.collect::<Vec<_>>().try_into().ok()
    }
}

/// Returns an identifier without its prefix.
fn bare(id: impl Id) -> String {
    id.to_string().split_off(id.to_string().len() - 26)
}

fn whole<T: Id + std::str::FromStr>(bare: &str) -> Option<T> {
    format!("{}_{bare}", T::PREFIX).parse().ok()
}

fn world(text: &str) -> Option<TenantId> {
    i64::from_str_radix(text, 16).ok().map(TenantId)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn tokens(n: u8) -> Tokens {
        Tokens::new(Redacted::new([n; 32]))
    }

    fn id<T: Id>(bits: u128) -> T {
        T::from_uuid(nuncio_domain::id::uuid_v7(nuncio_domain::Timestamp::from_millis((bits >> 82) as i64), [(bits & 255) as u8; 10]))
    }

    proptest! {
        #[test]
        fn what_was_made_is_read(tenant in 0_i64..1 << 60, bits: u128, attempt in 0_usize..256, upper: bool) {
            let (message, connection): (MessageId, ConnectionId) = (id(bits), id(bits));
            let tokens = tokens(1);
            let seen = |name: String| {
                assert!(name.len() <= 64, "{name}");
                if upper { name.to_uppercase() } else { name }
            };
            let bounce = seen(tokens.bounce(TenantId(tenant), message, attempt));
            prop_assert_eq!(tokens.read_bounce(&bounce), Some((TenantId(tenant), message, attempt)));
            let feedback = seen(tokens.feedback(TenantId(tenant), connection));
            prop_assert_eq!(tokens.read_feedback(&feedback), Some((TenantId(tenant), connection)));
            let unsubscribe = seen(tokens.unsubscribe(TenantId(tenant), message));
            prop_assert_eq!(tokens.read_unsubscribe(&unsubscribe), Some((TenantId(tenant), message)));
            prop_assert_eq!(tokens.read_bounce(&unsubscribe), None, "each has its purpose");
        }

        #[test]
        fn nothing_else_is_read(text in "\\PC{0,90}", place in 0_usize..60, letter in "[0-9a-z-]") {
            let tokens = tokens(1);
            prop_assert_eq!(tokens.read_bounce(&text), None);
            let good = tokens.bounce(TenantId(1), id(1), 0);
            let mut other = good.clone();
            let place = place % good.len();
            other.replace_range(place..=place, &letter);
            prop_assert_eq!(tokens.read_bounce(&other).is_some(), other == good);
            prop_assert_eq!(super::tests::tokens(2).read_bounce(&good), None, "another server's");
        }
    }
}
