mod acquire;
mod available;
mod get;
mod list;
mod release;
mod update;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(acquire::acquire_phone_number, list::list_phone_numbers))
        .routes(routes!(available::list_available_phone_numbers))
        .routes(routes!(get::get_phone_number, update::update_phone_number, release::release_phone_number))
}
