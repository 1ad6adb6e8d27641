mod by_phone;
mod channels;
mod create;
mod delete;
mod dismiss;
mod get;
mod list;
mod merge;
mod messages;
mod update;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(create::create_contact, list::list_contacts))
        .routes(routes!(get::get_contact, update::update_contact, delete::delete_contact))
        .routes(routes!(by_phone::get_contact_by_phone))
        .routes(routes!(messages::list_contact_messages))
        .routes(routes!(merge::merge_contacts))
        .routes(routes!(dismiss::dismiss_merge_suggestion))
        .routes(routes!(channels::add_contact_channel))
        .routes(routes!(channels::update_contact_channel, channels::remove_contact_channel))
        .routes(routes!(channels::make_contact_channel_primary))
}
