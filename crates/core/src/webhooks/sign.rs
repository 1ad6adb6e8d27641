//! Signatures by the Standard Webhooks specification (standardwebhooks.com, version 1), so that ready-made verifiers work.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_domain::{Entropy, EventId, Redacted, Timestamp};

use nuncio_secrets::mac;

/// Prefix of secrets.
const PREFIX: &str = "whsec_";

/// The three headers of a delivery.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Signature {
    /// `webhook-id`: the event's id, the same for each try.
    pub id: String,
    /// `webhook-timestamp`: time of the try in Unix seconds.
    pub timestamp: String,
    /// `webhook-signature`: one signature per secret, separated by spaces.
    pub signature: String,
}

/// Generates a signing secret in its public form.
pub fn new_secret(entropy: &dyn Entropy) -> Redacted<String> {
    let mut key = [0; 32];
    entropy.fill(&mut key);
    Redacted::new(format!("{PREFIX}{}", STANDARD.encode(key)))
}

/// Signs a body with every valid secret.
pub fn sign(secrets: &[Redacted<String>], event: EventId, at: Timestamp, body: &[u8]) -> Signature {
    let (id, timestamp) = (event.to_string(), (at.millis() / 1_000).to_string());
    let signatures: Vec<String> = secrets.iter().map(|secret| one(secret.expose(), &id, &timestamp, body)).collect();
    Signature { id, timestamp, signature: signatures.join(" ") }
}

fn one(secret: &str, id: &str, timestamp: &str, body: &[u8]) -> String {
    let key = STANDARD.decode(secret.strip_prefix(PREFIX).unwrap_or(secret)).unwrap_or_default();
    format!("v1,{}", STANDARD.encode(mac(&key, &[id.as_bytes(), b".", timestamp.as_bytes(), b".", body])))
}
