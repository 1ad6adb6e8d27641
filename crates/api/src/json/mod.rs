//! Parses JSON bodies by the schemas of the published document.

mod faults;
mod objects;
mod scan;
mod short;
mod validators;

pub(crate) use faults::shown;
pub(crate) use validators::Validators;
