//! Projects, and checks of recipients.

pub mod introspect;
mod manage;

crate::base::use_cases! {
    projects => Projects
}
