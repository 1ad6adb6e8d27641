mod attachments;
mod batch;
mod cancel;
mod get;
mod list;
mod react;
mod receipts;
mod resolve;
mod send;

pub(crate) use attachments::download;
pub(crate) use get::MessageBody;
pub(crate) use list::MessagePage;
pub(crate) use send::MessageConflict;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(send::send_message, list::list_messages))
        .routes(routes!(batch::send_messages))
        .routes(routes!(get::get_message))
        .routes(routes!(cancel::cancel_message))
        .routes(routes!(resolve::resolve_message))
        .routes(routes!(react::react_to_message))
        .routes(routes!(attachments::list_message_attachments))
        .routes(routes!(receipts::list_message_receipts))
        .routes(routes!(receipts::list_stray_receipts))
}
