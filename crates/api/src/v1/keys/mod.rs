mod create;
mod list;
mod revoke;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default().routes(routes!(list::list_keys, create::create_key)).routes(routes!(revoke::revoke_key))
}
