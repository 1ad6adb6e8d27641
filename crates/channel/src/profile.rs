//! Business profiles: what some providers let a business say about itself.

use async_trait::async_trait;
use nuncio_domain::profile::{BusinessAccount, ProfileChange};

/// The part of a provider that keeps business profiles. Each call answers with the whole account as it is afterwards.
///
/// `known` is what nuncio kept of the provider's last answer. A provider that can be asked has no use for it.
#[async_trait]
pub trait ProfileApi: Send + Sync {
    /// Asks for the account.
    async fn get(&self, known: &BusinessAccount) -> Result<BusinessAccount, ProfileError>;

    /// Changes the profile.
    async fn update(&self, known: &BusinessAccount, change: &ProfileChange) -> Result<BusinessAccount, ProfileError>;

    /// Uploads a picture and shows it on the profile.
    async fn set_picture(&self, known: &BusinessAccount, picture: &Picture) -> Result<BusinessAccount, ProfileError>;
}

/// A profile picture that was fetched and looked at: it is what `mime_type` says.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Picture {
    /// Where it was fetched from.
    pub url: String,
    /// `image/jpeg` or `image/png`.
    pub mime_type: &'static str,
    /// The file.
    pub bytes: Vec<u8>,
}

/// Why a call about a profile came to nothing. The texts are for the caller and hold no secrets.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
pub enum ProfileError {
    /// The provider refused what was asked for; the same will be refused again.
    #[error("the provider refused it: {0}")]
    Refused(String),
    /// The provider could not be reached, or did not answer as it should. It may have made the change.
    #[error("the provider did not answer as it should: {0}")]
    Unavailable(String),
}
