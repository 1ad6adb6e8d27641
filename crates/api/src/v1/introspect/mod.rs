//! Checks recipients without sending anything.

mod email;
mod phone;

use crate::routes::{Routes, routes};

pub(crate) fn routes() -> Routes {
    Routes::default().routes(routes!(phone::introspect_phone)).routes(routes!(email::introspect_email))
}
