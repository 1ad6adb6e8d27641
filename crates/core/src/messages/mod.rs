//! Messages: sending, reading, cancelling, resolving.

mod attachments;
mod cancel;
mod command;
pub(crate) mod content;
mod estimate;
mod list;
pub(crate) mod plan;
mod react;
mod receipts;
pub(crate) mod routing;
mod send;
mod traffic;
pub(crate) mod validate;
mod view;

pub use attachments::{AttachmentView, Download};
pub use command::{AttachmentIn, SendMessage};
pub use list::{ListContactMessages, ListMessages};
pub use nuncio_store::{DELAYS, Traffic};
pub(crate) use plan::sent_from;
pub use react::React;
pub use receipts::{ReceiptView, StrayReceiptView};
pub use send::{Foreign, Plan, PlannedCost, SendOptions, WindowView};
pub use traffic::{Overdue, TrafficView};
pub use view::{AttemptView, MessageView, RoutingView};

crate::base::use_cases! {
    /// Messages: sending, reading, cancelling, resolving.
    messages => Messages
}
