//! What falls due beside messages, once a second on every node: each row is taken by one of them.

use crate::Shared;

impl Shared {
    /// Renews phone numbers and ends invitations whose time has come; answers whether there was any. What fails is tried again.
    pub(crate) async fn keep_house(&self) -> bool {
        if self.is_stopping() {
            return false;
        }
        let renewed = nuncio_core::numbers::renew_due(&*self.store, &self.ids).await;
        let expired = nuncio_core::invitations::expire_due(&*self.store, &self.ids).await;
        let [renewed, expired] = [("phone numbers", renewed), ("invitations", expired)].map(|(what, outcome)| {
            outcome.unwrap_or_else(|error| {
                tracing::warn!(%error, "{what} that are due could not be looked for; it is tried again");
                false
            })
        });
        renewed || expired
    }
}
