//! Messages: sending, reading, cancelling, resolving.

mod attachments;
mod cancel;
mod command;
pub(crate) mod content;
mod dry_run;
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
pub(crate) use command::validity;
pub use command::{AttachmentIn, SendMessage};
pub use dry_run::{Foreign, Plan, PlannedCost, WindowView};
pub use list::{ListContactMessages, ListMessages};
pub use nuncio_store::{DELAYS, Traffic};
pub(crate) use plan::{allowed, sent_from};
pub use react::React;
pub use receipts::{ReceiptView, StrayReceiptView};
pub use send::SendOptions;
pub use traffic::{Overdue, TrafficView};
pub use view::{AttemptView, MessageView, RoutingView};

crate::base::use_cases! {
    /// Messages: sending, reading, cancelling, resolving.
    messages => Messages
}
