//! Templates: creating, reading, submitting, and rendering as text.

mod check;
mod command;
mod manage;
pub(crate) mod render;
mod submit;
mod update;
mod view;

pub use command::{CreateTemplate, ListTemplates, SubmitTemplate, UpdateTemplate};
pub use view::TemplateView;

crate::base::use_cases! {
    templates => Templates
}
