//! Messages: sending, reading, cancelling, resolving.

mod cancel;
mod command;
pub(crate) mod content;
mod estimate;
mod list;
pub(crate) mod plan;
pub(crate) mod routing;
mod send;
pub(crate) mod validate;
mod view;

pub use command::{AttachmentIn, SendMessage};
pub use list::ListMessages;
pub use send::{Foreign, Plan, PlannedCost, SendOptions, WindowView};
pub use view::{AttemptView, MessageView, RoutingView};
