//! API for business profiles.

use async_trait::async_trait;
use nuncio_domain::profile::{BusinessAccount, ProfileChange};

/// Business profiles at a provider. Each call returns the whole account after the call.
///
/// `known` is the account as nuncio last stored it, for providers that cannot be queried.
#[async_trait]
pub trait ProfileApi: Send + Sync {
    /// Returns the account.
    async fn get(&self, known: &BusinessAccount) -> Result<BusinessAccount, ProfileError>;

    /// Changes the profile.
    async fn update(&self, known: &BusinessAccount, change: &ProfileChange) -> Result<BusinessAccount, ProfileError>;

    /// Uploads a picture and sets it as the profile picture.
    async fn set_picture(&self, known: &BusinessAccount, picture: &Picture) -> Result<BusinessAccount, ProfileError>;
}

/// A fetched profile picture, verified to be of `mime_type`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    pub url: String,
    /// `image/jpeg` or `image/png`.
    pub mime_type: &'static str,
    pub bytes: Vec<u8>,
}

/// Why a profile call failed. The texts are for the caller and contain no secrets.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProfileError {
    /// The provider refused the request permanently.
    #[error("the provider refused it: {0}")]
    Refused(String),
    /// The provider was unreachable or sent an invalid response. It may have made the change.
    #[error("the provider did not respond as expected: {0}")]
    Unavailable(String),
}
