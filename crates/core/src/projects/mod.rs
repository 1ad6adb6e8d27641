//! Projects, and what a person may know of one.

pub mod introspect;
mod manage;

crate::base::use_cases! {
    projects => Projects
}
