//! Messages: sending, reading, cancelling, resolving.

mod attachments;
mod cancel;
mod command;
mod content;
mod estimate;
mod list;
mod plan;
mod react;
mod routing;
mod send;
mod validate;
mod view;

pub(crate) use attachments::Links;
pub use attachments::{AttachmentView, Download};
pub use command::{AttachmentIn, SendMessage};
pub(crate) use content::Faults;
pub use list::ListMessages;
pub(crate) use plan::from as sent_from;
pub use react::React;
pub use send::{Foreign, Plan, PlannedCost, SendOptions, WindowView};
pub(crate) use validate::metadata as check_metadata;
pub use view::{AttemptView, MessageView, RoutingView};
