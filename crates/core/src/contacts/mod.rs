//! Contacts: people, their identifiers, and merging.

mod change;
mod channels;
mod command;
mod erase;
pub mod file;
mod find;
mod merge;
mod read;
pub mod suppression_file;
pub mod suppressions;
pub mod unsubscribe;
mod view;

use nuncio_domain::{Channel, ContactId, Error, ErrorCode, Recipient, Result, TenantId, contact::Contact};
use nuncio_store::Tx;

pub use command::{AddChannel, ContactChannelIn, CreateContact, ListContacts, MergeContacts, UpdateContact, UpdateContactChannel};
pub use merge::MergePreview;
pub(crate) use read::{people, views};
pub(crate) use view::Person;
pub use view::{ChannelMetricsView, ContactChannelType, ContactChannelView, ContactView};

/// Channels of contacts, in listing order.
pub(crate) const CHANNELS: [Channel; 6] =
    [Channel::Sms, Channel::Whatsapp, Channel::Telegram, Channel::Email, Channel::Instagram, Channel::Voice];

/// Locks a contact. A missing one is a 404, a merged one a 409.
async fn lock(tx: &mut dyn Tx, tenant: TenantId, id: ContactId) -> Result<Contact> {
    match tx.lock_contacts(tenant, &[id]).await?.pop() {
        Some(contact) => Ok(contact),
        None => Err(gone(tx, tenant, id).await?),
    }
}

/// Returns why a contact cannot be changed.
async fn gone(tx: &mut dyn Tx, tenant: TenantId, id: ContactId) -> Result<Error> {
    Ok(match tx.merged_into(tenant, id).await? {
        Some(target) => merged(target),
        None => Error::not_found("contact"),
    })
}

fn merged(target: ContactId) -> Error {
    Error::new(ErrorCode::Conflict, format!("the contact was merged into {target}; change that one"))
        .with("mergedInto", target.to_string().into())
}

/// Locks the contact of a recipient, if it is known. It may be merged while waiting for the lock.
pub(crate) async fn lock_of(tx: &mut dyn Tx, tenant: TenantId, recipient: &Recipient) -> nuncio_store::Result<Option<Contact>> {
    for _ in 0..4 {
        let Some((_, id)) = tx.find_address(tenant, recipient).await? else { return Ok(None) };
        if let Some(contact) = tx.lock_contacts(tenant, &[id]).await?.pop() {
            return Ok(Some(contact));
        }
    }
    Ok(None)
}

crate::base::use_cases! {
    contacts => Contacts
}

crate::base::use_cases! {
    /// Suppressions: who gets no messages, and how people leave.
    suppressions => Suppressions
}
