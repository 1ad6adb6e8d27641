mod create;
mod delete;
mod get;
mod list;
mod submit;
mod update;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default()
        .routes(routes!(create::create_template, list::list_templates))
        .routes(routes!(get::get_template, update::update_template, delete::delete_template))
        .routes(routes!(submit::submit_template))
}
