//! Senders: the profiles that messages are sent by.

mod business;
mod change;
mod claims;
mod command;
mod connections;
mod copy;
mod create;
mod delete;
mod kinds;
mod list;
mod mail_codes;
mod mailboxes;
mod update;
mod view;
mod write;

pub use business::{PictureType, ProfileView, SetPicture, UpdateProfile};
pub use claims::InboundAddressView;
pub use command::{CreateSender, UpdateSender};
pub use connections::PutConnection;
pub use kinds::Kind;
pub use list::ListSenders;
pub use mail_codes::{EnterCode, SentCodeView};
pub use nuncio_channel::{Field, FieldKind};
pub use view::{ConnectionView, SenderView};

crate::base::use_cases! {
    /// Senders, their connections and mailboxes.
    senders => Senders
}
