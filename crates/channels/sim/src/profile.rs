//! The business profile of a simulated WhatsApp account.

use async_trait::async_trait;
use nuncio_channel::{Picture, ProfileApi, ProfileError};
use nuncio_domain::id::Id as _;
use nuncio_domain::profile::{BusinessAccount, MethodStatus, ProfileChange, SetupStatus};

use crate::Sim;

impl Sim {
    /// Returns the account with billing set up, and the profile unchanged.
    fn account(&self, known: &BusinessAccount) -> BusinessAccount {
        BusinessAccount {
            phone_number_id: format!("sim_{}", self.connection.uuid().simple()),
            display_phone_number: String::new(),
            setup_status: SetupStatus::Complete,
            method_status: MethodStatus::Valid,
            profile: known.profile.clone(),
        }
    }
}

#[async_trait]
impl ProfileApi for Sim {
    async fn get(&self, known: &BusinessAccount) -> Result<BusinessAccount, ProfileError> {
        Ok(self.account(known))
    }

    async fn update(&self, known: &BusinessAccount, change: &ProfileChange) -> Result<BusinessAccount, ProfileError> {
        let mut account = self.account(known);
        change.apply(&mut account.profile);
        Ok(account)
    }

    async fn set_picture(&self, known: &BusinessAccount, picture: &Picture) -> Result<BusinessAccount, ProfileError> {
        let mut account = self.account(known);
        account.profile.profile_picture_url.clone_from(&picture.url);
        Ok(account)
    }
}
