//! Reads the parameters of callbacks, and computes what proves them.

use std::borrow::Cow;

use hmac::Mac;
use hmac::digest::KeyInit;
use nuncio_domain::{MessageId, Redacted, Timestamp};
use percent_encoding::percent_decode;
use subtle::ConstantTimeEq as _;

/// Parameters of a query or a form (`application/x-www-form-urlencoded`). Values are bytes: providers send texts that are not UTF-8.
#[derive(Debug)]
pub struct Parameters<'a>(Vec<[Cow<'a, [u8]>; 2]>);

impl<'a> Parameters<'a> {
    /// Reads any text; what is not a pair has an empty value.
    pub fn parse(form: &'a [u8]) -> Self {
        let pairs = form.split(|byte| *byte == b'&').filter(|pair| !pair.is_empty());
        Self(pairs.map(|pair| split(pair).map(decoded)).collect())
    }

    /// The first value of this name.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.iter().find(|[key, _]| key.as_ref() == name.as_bytes()).map(|[_, value]| value.as_ref())
    }

    /// The same; empty if there is none.
    pub fn bytes(&self, name: &str) -> &[u8] {
        self.get(name).unwrap_or_default()
    }

    /// The same as text.
    pub fn text(&self, name: &str) -> Cow<'_, str> {
        String::from_utf8_lossy(self.bytes(name))
    }

    /// The same, unless it is empty.
    pub fn some(&self, name: &str) -> Option<String> {
        Some(self.text(name).into_owned()).filter(|text| !text.is_empty())
    }

    /// Whether the value is this secret. Compares in constant time.
    pub fn is_secret(&self, name: &str, secret: &Redacted<String>) -> bool {
        is_secret(self.bytes(name), secret)
    }

    /// The attempt that [`Endpoint::attempt_url`](crate::Endpoint::attempt_url) named.
    pub fn attempt(&self) -> Option<(MessageId, usize)> {
        Some((self.text("m").parse().ok()?, self.text("a").parse().ok()?))
    }

    /// All names and values, sorted, without repetitions.
    pub fn sorted(&self) -> Vec<(&[u8], &[u8])> {
        let mut all: Vec<_> = self.0.iter().map(|[name, value]| (name.as_ref(), value.as_ref())).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}

/// Names an attempt in the query of a URL.
pub(crate) fn attempt_query(message: MessageId, attempt: usize) -> String {
    format!("m={message}&a={attempt}")
}

/// Whether a caller knows a secret. Compares in constant time.
pub fn is_secret(given: &[u8], secret: &Redacted<String>) -> bool {
    given.ct_eq(secret.expose().as_bytes()).into()
}

/// A time in Unix seconds, or `now` if it is not one.
pub fn unix_seconds(seconds: &str, now: Timestamp) -> Timestamp {
    seconds.parse::<i64>().ok().and_then(|seconds| seconds.checked_mul(1_000)).map_or(now, Timestamp::from_millis)
}

fn split(pair: &[u8]) -> [&[u8]; 2] {
    let at = pair.iter().position(|byte| *byte == b'=');
    at.map_or([pair, &[]], |at| [&pair[..at], &pair[at + 1..]])
}

fn decoded(part: &[u8]) -> Cow<'_, [u8]> {
    if !part.contains(&b'+') {
        return percent_decode(part).into();
    }
    let spaced: Vec<u8> = part.iter().map(|byte| if *byte == b'+' { b' ' } else { *byte }).collect();
    Cow::Owned(percent_decode(&spaced).collect())
}

/// The keyed hash of some bytes; more can be added. Its `verify_slice` compares in constant time.
pub fn mac<M: Mac + KeyInit>(key: &str, bytes: &[u8]) -> M {
    let mac = <M as Mac>::new_from_slice(key.as_bytes()).unwrap_or_else(|_| unreachable!("HMAC takes keys of any length"));
    mac.chain_update(bytes)
}

#[cfg(test)]
mod tests {
    use nuncio_domain::id::{Id as _, uuid_v7};

    use super::*;

    #[test]
    fn an_attempt_is_read_as_it_was_named() {
        let message = MessageId::from_uuid(uuid_v7(Timestamp::from_millis(1), [7; 10]));
        let query = attempt_query(message, 3);
        assert_eq!(Parameters::parse(query.as_bytes()).attempt(), Some((message, 3)));
        for wrong in [query.replace("m=msg_", "m=msg_x"), query.replace("a=3", "a=x"), query.replace("&a", "&b"), String::new()] {
            assert_eq!(Parameters::parse(wrong.as_bytes()).attempt(), None, "{wrong}");
        }
    }

    #[test]
    fn a_secret_is_its_bytes() {
        let secret = Redacted::new("a+b".to_owned());
        let parameters = Parameters::parse(b"right=a%2Bb&wrong=a+b&short=a");
        assert!(parameters.is_secret("right", &secret));
        assert!(!["wrong", "short", "none"].iter().any(|name| parameters.is_secret(name, &secret)));
    }

    #[test]
    fn times_are_in_seconds() {
        let now = Timestamp::from_millis(7);
        assert_eq!(unix_seconds("1795304697", now), Timestamp::from_millis(1_795_304_697_000));
        for other in ["", "x", "1.5", "9223372036854775807"] {
            assert_eq!(unix_seconds(other, now), now, "{other}");
        }
    }

    #[test]
    fn values_are_bytes() {
        let parameters = Parameters::parse(b"a=1+2%2B3&text=%04%1F&key&&a=9&b=%zz&hub.m%6Fde=x=y");
        assert_eq!(parameters.text("a"), "1 2+3");
        assert_eq!(parameters.bytes("text"), b"\x04\x1f");
        assert_eq!((parameters.text("key"), parameters.text("none"), parameters.text("b")), ("".into(), "".into(), "%zz".into()));
        assert_eq!((parameters.some("key"), parameters.some("hub.mode")), (None, Some("x=y".to_owned())));
        assert_eq!(Parameters::parse(b"b=2&a=1&b=1&b=2").sorted(), [(&b"a"[..], &b"1"[..]), (b"b", b"1"), (b"b", b"2")]);
    }
}
