//! DKIM signatures (RFC 6376), relaxed/relaxed, with RSA-SHA256 or Ed25519-SHA256 (RFC 8463).
//!
//! Signs the sent bytes, with the time of the attempt, in one pass without recursion. lettre's signer reads the clock, recurses once per
//! header character, which a long subject can turn into a stack overflow, and does not support PKCS#8 keys.

use std::fmt;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_domain::Timestamp;
use ring::digest::{Context, SHA256, digest};
use ring::rand::SystemRandom;
use ring::signature::{Ed25519KeyPair, RSA_PKCS1_SHA256, RsaKeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::pki_types::pem::PemObject;

/// The header fields that are signed, when present.
const SIGNED: &[&str] = &[
    "from",
    "to",
    "subject",
    "date",
    "message-id",
    "mime-version",
    "content-type",
    "reply-to",
    "content-transfer-encoding",
    "auto-submitted",
    // RFC 8058 §4: mailboxes heed them only when they are signed.
    "list-unsubscribe",
    "list-unsubscribe-post",
];

enum Key {
    Rsa(Box<RsaKeyPair>),
    Ed25519(Ed25519KeyPair),
}

/// Signs for one domain.
pub struct Signer {
    domain: String,
    selector: String,
    key: Key,
}

impl fmt::Debug for Signer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Signer({}._domainkey.{})", self.selector, self.domain)
    }
}

impl Signer {
    /// Makes a signer for `domain` (ASCII). The error says what is wrong with `key` without showing it.
    pub fn new(domain: &str, selector: &str, key: &str) -> Result<Self, String> {
        Ok(Self { domain: domain.to_owned(), selector: selector.to_owned(), key: read_key(key)? })
    }

    /// Returns the `DKIM-Signature` field for `mail`, a complete message with CRLF line ends, to be prepended.
    pub fn sign(&self, mail: &[u8], now: Timestamp) -> String {
        let (head, body) = split(mail);
        let fields = signed_fields(head);
        let algorithm = match self.key {
            Key::Rsa(_) => "rsa-sha256",
            Key::Ed25519(_) => "ed25519-sha256",
        };
        let names: Vec<_> = fields.iter().map(|(name, _)| *name).collect();
        let mut header = format!(
            "DKIM-Signature: v=1; a={algorithm}; c=relaxed/relaxed; d={};\r\n s={}; t={};\r\n h={};\r\n bh={};\r\n b=",
            self.domain,
            self.selector,
            now.millis() / 1_000,
            names.join(":"),
            STANDARD.encode(body_hash(body)),
        );
        let mut data: String = fields.iter().map(|(name, value)| format!("{name}:{value}\r\n")).collect();
        data.push_str("dkim-signature:");
        data.push_str(&relaxed(header.split_once(": ").map_or("", |(_, value)| value)));
        let signature = STANDARD.encode(self.key.sign(data.as_bytes()));
        for (index, chunk) in signature.as_bytes().chunks(70).enumerate() {
            header.push_str(if index == 0 { "" } else { "\r\n " });
            header.push_str(std::str::from_utf8(chunk).unwrap_or_default()); // base64 is ASCII
        }
        header.push_str("\r\n");
        header
    }
}

impl Key {
    fn sign(&self, data: &[u8]) -> Vec<u8> {
        match self {
            Self::Rsa(key) => {
                let mut signature = vec![0; key.public().modulus_len()];
                // The randomness only blinds the computation; the signature does not depend on it.
                key.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), data, &mut signature).expect("the buffer has the length of the modulus");
                signature
            }
            Self::Ed25519(key) => key.sign(digest(&SHA256, data).as_ref()).as_ref().to_vec(),
        }
    }
}

fn read_key(text: &str) -> Result<Key, String> {
    if !text.contains("-----BEGIN") {
        let seed = STANDARD.decode(text.trim()).map_err(|_| "is neither PEM nor base64")?;
        return Ed25519KeyPair::from_seed_unchecked(&seed)
            .map(Key::Ed25519)
            .map_err(|_| "is base64, but not of the 32 bytes of an Ed25519 key".to_owned());
    }
    let rejected = |e: ring::error::KeyRejected| format!("is not usable ({e}); must be RSA of 2048 to 4096 bits, or Ed25519");
    match PrivateKeyDer::from_pem_slice(text.as_bytes()) {
        Ok(PrivateKeyDer::Pkcs1(der)) => RsaKeyPair::from_der(der.secret_pkcs1_der()).map(|k| Key::Rsa(Box::new(k))).map_err(rejected),
        Ok(PrivateKeyDer::Pkcs8(der)) => match Ed25519KeyPair::from_pkcs8_maybe_unchecked(der.secret_pkcs8_der()) {
            Ok(key) => Ok(Key::Ed25519(key)),
            Err(_) => RsaKeyPair::from_pkcs8(der.secret_pkcs8_der()).map(|k| Key::Rsa(Box::new(k))).map_err(rejected),
        },
        Ok(_) => Err("is an elliptic-curve key, which DKIM does not know; must be RSA or Ed25519".to_owned()),
        Err(_) => Err("is no PEM private key without a passphrase".to_owned()),
    }
}

fn split(mail: &[u8]) -> (&str, &[u8]) {
    let end = mail.windows(4).position(|w| w == b"\r\n\r\n").unwrap_or(mail.len());
    (std::str::from_utf8(&mail[..end]).unwrap_or_default(), mail.get(end + 4..).unwrap_or_default())
}

/// Name and canonical value of every field to be signed, in the order of the message.
fn signed_fields(head: &str) -> Vec<(&'static str, String)> {
    let mut fields: Vec<(&str, String)> = Vec::new();
    for line in head.split("\r\n") {
        match (line.starts_with([' ', '\t']), fields.last_mut(), line.split_once(':')) {
            (true, Some((_, value)), _) => value.push_str(line),
            (false, _, Some((name, value))) => fields.push((name, value.to_owned())),
            _ => {}
        }
    }
    let known = |name: &str| SIGNED.iter().copied().find(|s| s.eq_ignore_ascii_case(name));
    fields.into_iter().filter_map(|(name, value)| Some((known(name)?, relaxed(&value)))).collect()
}

/// A header value with every run of white space, folds too, as one space, and none at its ends (RFC 6376 §3.4.2).
fn relaxed(value: &str) -> String {
    value.split([' ', '\t', '\r', '\n']).filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

/// SHA-256 of the body in relaxed form (RFC 6376 §3.4.4).
fn body_hash(body: &[u8]) -> Vec<u8> {
    let mut hash = Context::new(&SHA256);
    let mut empty_lines = 0;
    let mut buffer = Vec::new();
    for line in body.split(|&b| b == b'\n') {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        let line = relaxed_line(line, &mut buffer);
        if line.is_empty() {
            empty_lines += 1; // counted only when something follows
            continue;
        }
        for _ in 0..std::mem::take(&mut empty_lines) {
            hash.update(b"\r\n");
        }
        hash.update(line);
        hash.update(b"\r\n");
    }
    hash.finish().as_ref().to_vec()
}

fn relaxed_line<'a>(line: &'a [u8], buffer: &'a mut Vec<u8>) -> &'a [u8] {
    if !line.iter().any(|b| matches!(b, b' ' | b'\t')) {
        return line; // nearly all lines of an email with attachments
    }
    buffer.clear();
    for &byte in line {
        match byte {
            b' ' | b'\t' if buffer.last() == Some(&b' ') => {}
            b' ' | b'\t' => buffer.push(b' '),
            _ => buffer.push(byte),
        }
    }
    if buffer.last() == Some(&b' ') {
        buffer.pop();
    }
    buffer
}

#[cfg(test)]
mod tests {
    use super::*;

    const SEED: &str = "nWGxne/9WmC6hEr0kuwsxERJxWl7MmkZcDusAxyuf2A="; // RFC 8463 A.2

    #[test]
    fn canonical_forms_of_the_standard() {
        // RFC 6376 §3.4.5: headers "A: X" and "B : Y\t\r\n\tZ  ", body " C \r\nD \t E\r\n\r\n\r\n"
        assert_eq!(relaxed(" X"), "X");
        assert_eq!(relaxed(" Y\t\r\n\tZ  "), "Y Z");
        assert_eq!(body_hash(b" C \r\nD \t E\r\n\r\n\r\n"), digest(&SHA256, b" C\r\nD E\r\n").as_ref());
        assert_eq!(body_hash(b"\r\n\r\n"), digest(&SHA256, b"").as_ref());
        assert_eq!(body_hash(b"a\r\n\r\nb"), digest(&SHA256, b"a\r\n\r\nb\r\n").as_ref());
    }

    #[test]
    fn the_example_of_rfc_8463() {
        // Its body hash is public; the message is that of appendix A.3.
        let body = b"Hi.\r\n\r\nWe lost the game.  Are you hungry yet?\r\n\r\nJoe.\r\n";
        assert_eq!(STANDARD.encode(body_hash(body)), "2jUSOH9NhtVGCQWNr9BrIAPreKQjO6Sn7XIkfJVOzv8=");
    }

    #[test]
    fn signature_covers_what_is_there() {
        let signer = Signer::new("example.org", "s1", SEED).unwrap();
        let mail = b"From: a@example.org\r\nSubject: a\r\n b\r\nX-Other: y\r\n\r\nhello\r\n";
        let header = signer.sign(mail, Timestamp::from_millis(1_700_000_000_999));
        assert!(header.starts_with("DKIM-Signature: v=1; a=ed25519-sha256; c=relaxed/relaxed; d=example.org;\r\n s=s1; t=1700000000;\r\n h=from:subject;\r\n bh="), "{header}");
        assert_eq!(header, signer.sign(mail, Timestamp::from_millis(1_700_000_000_000)));
        assert_ne!(
            header,
            signer.sign(b"From: a@example.org\r\nSubject: a\r\n c\r\n\r\nhello\r\n", Timestamp::from_millis(1_700_000_000_000))
        );
    }

    #[test]
    fn keys_in_every_form() {
        for (pem, rsa) in [
            (include_str!("../tests/keys/dkim-rsa-pkcs1.pem"), true),
            (include_str!("../tests/keys/dkim-rsa-pkcs8.pem"), true),
            (include_str!("../tests/keys/dkim-ed25519.pem"), false),
        ] {
            let signer = Signer::new("example.org", "s1", pem).unwrap();
            assert_eq!(matches!(signer.key, Key::Rsa(_)), rsa);
            assert_eq!(format!("{signer:?}"), "Signer(s1._domainkey.example.org)");
        }
        for bad in
            ["", "hello!", "AAAA", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n", include_str!("../tests/keys/ca.pem")]
        {
            let fault = Signer::new("example.org", "s1", bad).unwrap_err();
            assert!(bad.is_empty() || !fault.contains(bad.trim()), "{fault}");
        }
    }
}
