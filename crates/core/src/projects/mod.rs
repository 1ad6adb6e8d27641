//! Projects, and checks of recipients.

pub mod introspect;
mod manage;

pub use manage::UpdateProject;

crate::base::use_cases! {
    projects => Projects
}
