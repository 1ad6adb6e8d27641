//! Suppressions.

use async_trait::async_trait;
use nuncio_domain::contact::SuppressionReason;
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{AddressKind, Recipient, SenderId, SuppressionId, TenantId, Timestamp};

use crate::error::Result;

/// A suppressed recipient.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Suppression {
    pub id: SuppressionId,
    pub recipient: Recipient,
    /// The sender it applies to; `None` means all senders.
    pub sender: Option<SenderId>,
    pub reason: SuppressionReason,
    /// What caused it, as text.
    pub source: String,
}

/// Suppressions, of email addresses in any case ([`Recipient::folded`]). Those of erased contacts have a keyed hash in place of the
/// identifier.
#[async_trait]
pub trait SuppressionRepo {
    /// Lists suppressions of any of these recipients (all, if empty), newest first.
    async fn list_suppressions(&mut self, tenant: TenantId, of: &[Recipient], page: PageRequest) -> Result<Page<Suppression>>;

    /// Stores a suppression of this time; `false` if the recipient already has one for the sender.
    async fn insert_suppression(&mut self, tenant: TenantId, suppression: &Suppression, at: Timestamp) -> Result<bool>;

    /// Removes an opt-out of no later time than `at`, but no other suppression; `false` if there is none.
    async fn delete_opt_out(&mut self, tenant: TenantId, recipient: &Recipient, sender: SenderId, at: Timestamp) -> Result<bool>;

    /// Returns whether sending to the recipient is suppressed for `sender`.
    async fn is_suppressed(&mut self, tenant: TenantId, kind: AddressKind, identifier: &str, sender: SenderId) -> Result<bool>;

    async fn find_suppression(&mut self, tenant: TenantId, id: SuppressionId) -> Result<Option<Suppression>>;

    /// Deletes a suppression; `false` if there is none.
    async fn delete_suppression(&mut self, tenant: TenantId, id: SuppressionId) -> Result<bool>;

    /// Moves suppressions from one recipient to another of the same kind: from an identifier to its keyed hash, or back.
    async fn rename_suppressions(&mut self, tenant: TenantId, from: &Recipient, to: &str) -> Result<()>;
}
