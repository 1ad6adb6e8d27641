//! Senders: the profiles that messages are sent by.

mod business;
mod change;
mod claims;
mod command;
mod connections;
mod create;
mod delete;
mod list;
mod mail_codes;
mod update;
mod view;

pub use business::{PictureType, ProfileView, SetPicture, UpdateProfile};
pub use claims::InboundAddressView;
pub use command::{CreateSender, UpdateSender};
pub use connections::PutConnection;
pub use list::{Kind, ListSenders};
pub use mail_codes::{EnterCode, SentCodeView};
pub use nuncio_channel::{Field, FieldKind};
pub use view::{ConnectionView, SenderView};

crate::base::use_cases! {
    /// Senders, their connections and mailboxes.
    senders => Senders
}
