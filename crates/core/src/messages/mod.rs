//! Messages: sending, reading, cancelling, resolving.

mod cancel;
mod command;
mod content;
mod estimate;
mod list;
mod plan;
mod routing;
mod send;
mod validate;
mod view;

pub use command::{AttachmentIn, SendMessage};
pub use list::ListMessages;
pub use send::{Foreign, Plan, PlannedCost, SendOptions, WindowView};
pub use view::{AttemptView, MessageView, RoutingView};
