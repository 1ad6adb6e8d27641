mod list;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default().routes(routes!(list::list_audit_entries))
}
