mod channels;
mod create;
mod delete;
mod get;
mod list;
mod profile;
mod update;
mod webhook;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(list::list_senders, create::create_sender))
        .routes(routes!(get::get_sender, update::update_sender, delete::delete_sender))
        .routes(routes!(channels::get_sender_channel, channels::put_sender_channel, channels::delete_sender_channel))
        .routes(routes!(channels::test_sender_channel))
        .routes(routes!(channels::request_sender_channel_code))
        .routes(routes!(channels::verify_sender_channel))
        .routes(routes!(profile::get_sender_profile, profile::update_sender_profile))
        .routes(routes!(profile::set_sender_profile_picture))
        .routes(routes!(webhook::rotate_sender_webhook_secret))
}
