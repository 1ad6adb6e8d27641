//! Senders: the profiles that messages are sent by.

mod business;
mod change;
mod command;
mod copy;
mod create;
mod delete;
mod list;
mod update;
mod view;

pub use business::{ProfileView, SetPicture, UpdateProfile};
pub use command::{CreateSender, UpdateSender};
pub use list::ListSenders;
pub use view::{ConnectionView, SenderView};
