//! Whether two requests under one idempotency key are the same request.

use nuncio_domain::SenderId;
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::command::SendMessage;

/// A hash of the request with its resolved sender, without the key. The order of object members does not matter.
pub(super) fn of(command: &SendMessage, sender: SenderId) -> [u8; 32] {
    let mut command = command.clone();
    command.idempotency_key = None;
    let mut hasher = Sha256::new();
    hasher.update(sender.to_string());
    feed(&mut hasher, &serde_json::to_value(&command).unwrap_or_default());
    hasher.finalize().into()
}

fn feed(hasher: &mut Sha256, value: &Value) {
    match value {
        Value::Object(members) => {
            // A member that is absent and one that is null are the same request.
            let mut members: Vec<_> = members.iter().filter(|(_, v)| !v.is_null()).collect();
            members.sort_unstable_by_key(|(name, _)| *name);
            hasher.update([b'{']);
            for (name, value) in members {
                feed(hasher, &Value::from(name.as_str()));
                feed(hasher, value);
            }
            hasher.update([b'}']);
        }
        Value::Array(items) => {
            hasher.update([b'[']);
            items.iter().for_each(|item| feed(hasher, item));
            hasher.update([b']']);
        }
        scalar => {
            let text = scalar.to_string();
            hasher.update((text.len() as u64).to_be_bytes());
            hasher.update(text);
        }
    }
}
