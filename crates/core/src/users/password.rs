//! Passwords: hashed with Argon2id (RFC 9106) by its recommended costs, away from the threads that serve requests.

use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use nuncio_domain::{Entropy, Error, FieldError, Redacted, Result};
use tokio::sync::Semaphore;

/// The shortest password, in characters. A long one is better than one of many kinds of characters (NIST SP 800-63B §5.1.1).
const SHORTEST: usize = 12;
/// The longest.
const LONGEST: usize = 256;
/// Hashes at once on one node: each takes 19 MiB and some 20 ms.
static ROOM: Semaphore = Semaphore::const_new(2);
/// What a password is compared with when nobody has the address, so that the time of the answer does not tell.
static NOBODY: LazyLock<String> = LazyLock::new(|| {
    let salt = SaltString::from_b64("bm9ib2R5bm9ib2R5bm9ib2R5")
        .map_err(|_| argon2::password_hash::Error::SaltInvalid(argon2::password_hash::errors::InvalidValue::Malformed));
    salt.and_then(|salt| Ok(Argon2::default().hash_password(b"nobody has this password", &salt)?.to_string())).unwrap_or_default()
});

/// What is wrong with a new password.
pub(super) fn fault(password: &str) -> Option<FieldError> {
    let length = password.chars().count();
    let wrong = if length < SHORTEST {
        "at least 12"
    } else if length > LONGEST {
        "at most 256"
    } else {
        return None;
    };
    Some(FieldError::new("password", format!("has {length} characters; must have {wrong}")))
}

/// The hash of a new password.
pub(super) async fn hash(password: &str, entropy: &dyn Entropy) -> Result<Redacted<String>> {
    let mut salt = [0; 16];
    entropy.fill(&mut salt);
    let password = password.to_owned();
    away(move || {
        let salt = SaltString::encode_b64(&salt)?;
        Ok(Redacted::new(Argon2::default().hash_password(password.as_bytes(), &salt)?.to_string()))
    })
    .await
}

/// Whether `password` is the one with this hash. Without a hash it takes as long, and is not.
pub(super) async fn is(password: &str, hash: Option<&Redacted<String>>) -> Result<bool> {
    let password: String = password.chars().take(LONGEST + 1).collect();
    let known = hash.is_some();
    let hash = hash.map(|hash| hash.expose().clone());
    away(move || {
        let hash = hash.unwrap_or_else(|| NOBODY.clone());
        let parsed = PasswordHash::new(&hash)?;
        Ok(Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok() && known)
    })
    .await
}

async fn away<T: Send + 'static>(work: impl FnOnce() -> argon2::password_hash::Result<T> + Send + 'static) -> Result<T> {
    let _room = ROOM.acquire().await.map_err(Error::internal)?;
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)?.map_err(|error| Error::internal(error.to_string()))
}
