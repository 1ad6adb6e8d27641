mod create;
mod delete;
mod list;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default().routes(routes!(create::create_suppression, list::list_suppressions)).routes(routes!(delete::delete_suppression))
}
