mod act;
mod compose;
mod contacts;
mod create;
mod delete;
mod get;
mod import;
mod list;
mod progress;
mod results;
mod schedule;
mod send;
mod update;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(create::create_broadcast, list::list_broadcasts))
        .routes(routes!(get::get_broadcast, update::update_broadcast, delete::delete_broadcast))
        .routes(routes!(contacts::add_broadcast_contacts, contacts::list_broadcast_contacts))
        .routes(routes!(contacts::delete_broadcast_contact))
        .routes(routes!(contacts::select_broadcast_contacts))
        .routes(routes!(import::import_broadcast_contacts))
        .routes(routes!(send::send_broadcast))
        .routes(routes!(schedule::schedule_broadcast))
        .routes(routes!(progress::get_broadcast_progress))
        .routes(routes!(progress::get_broadcast_statistics))
        .routes(routes!(compose::preview_broadcast))
        .routes(routes!(compose::test_broadcast))
        .routes(routes!(compose::clone_broadcast))
        .routes(routes!(compose::estimate_broadcast))
        .routes(routes!(results::export_broadcast_results))
        .routes(routes!(act::pause_broadcast))
        .routes(routes!(act::resume_broadcast))
        .routes(routes!(act::cancel_broadcast))
        .routes(routes!(act::escalate_broadcast))
        .routes(routes!(act::retry_broadcast_review))
}
