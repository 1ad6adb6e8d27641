//! Phone numbers: the operator's inventory, and the numbers environments hold.

mod acquire;
mod charge;
mod inventory;
mod list;
mod update;
mod view;

pub use acquire::AcquireNumber;
pub use inventory::ImportedNumber;
pub(crate) use inventory::stock_sandbox;
pub use list::{ListAvailable, ListNumbers};
pub use update::UpdateNumber;
pub(crate) use update::{bound, refuse_other_holder, take};
pub use view::{AvailableNumberView, PhoneNumberView, PricingView};

use nuncio_domain::{FieldError, limits, line};

/// Validates the name of a number. Empty means none.
fn check_name(name: Option<&str>, errors: &mut Vec<FieldError>) {
    errors.extend(name.and_then(|name| line::check("name", name, 0, limits::NUMBER_NAME)));
}

crate::base::use_cases! {
    /// Phone numbers of a tenant, and the inventory of the operator.
    numbers => Numbers
}
