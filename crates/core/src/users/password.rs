//! Hashes passwords with Argon2id (RFC 9106) at the recommended cost, on blocking threads.

use std::sync::LazyLock;

use argon2::Argon2;
use argon2::password_hash::{PasswordHash, PasswordHasher as _, PasswordVerifier as _, SaltString};
use nuncio_domain::{Entropy, Error, FieldError, Redacted, Result};
use tokio::sync::Semaphore;

/// Minimum length in characters. Length matters more than kinds of characters (NIST SP 800-63B §5.1.1).
const SHORTEST: usize = 12;
/// Maximum length in characters.
const LONGEST: usize = 256;
/// Concurrent hashes per node: each takes 19 MiB and about 20 ms.
static ROOM: Semaphore = Semaphore::const_new(2);
/// Compared against if the address is unknown, so that the response time does not reveal it.
static NOBODY: LazyLock<String> = LazyLock::new(|| {
    let salt = SaltString::from_b64("bm9ib2R5bm9ib2R5bm9ib2R5")
        .map_err(|_| argon2::password_hash::Error::SaltInvalid(argon2::password_hash::errors::InvalidValue::Malformed));
    salt.and_then(|salt| Ok(Argon2::default().hash_password(b"nobody has this password", &salt)?.to_string())).unwrap_or_default()
});

/// Returns the field error of a new password.
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

pub(super) async fn hash(password: &str, entropy: &dyn Entropy) -> Result<Redacted<String>> {
    let mut salt = [0; 16];
    entropy.fill(&mut salt);
    let password = password.to_owned();
    blocking(move || {
        let salt = SaltString::encode_b64(&salt)?;
        Ok(Redacted::new(Argon2::default().hash_password(password.as_bytes(), &salt)?.to_string()))
    })
    .await
}

/// Returns whether the password matches. Without a hash, takes as long and returns `false`.
pub(super) async fn is(password: &str, hash: Option<&Redacted<String>>) -> Result<bool> {
    let password: String = password.chars().take(LONGEST + 1).collect();
    let known = hash.is_some();
    let hash = hash.map(|hash| hash.expose().clone());
    blocking(move || {
        let hash = hash.unwrap_or_else(|| NOBODY.clone());
        let parsed = PasswordHash::new(&hash)?;
        Ok(Argon2::default().verify_password(password.as_bytes(), &parsed).is_ok() && known)
    })
    .await
}

async fn blocking<T: Send + 'static>(work: impl FnOnce() -> argon2::password_hash::Result<T> + Send + 'static) -> Result<T> {
    let _room = ROOM.acquire().await.map_err(Error::internal)?;
    tokio::task::spawn_blocking(work).await.map_err(Error::internal)?.map_err(|error| Error::internal(error.to_string()))
}
