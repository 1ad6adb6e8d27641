//! Broadcasts: drafts, recipients, progress and reviews.

mod act;
mod audience;
mod content;
mod draft;
mod letter;
mod list;
mod new;
mod recipients;
mod results;
mod reviews;
mod show;

pub(crate) use act::{act, is_too_late};
pub(crate) use audience::{broken, look, short, upload};
pub(crate) use list::list;
pub(crate) use new::{create, new};
pub(crate) use recipients::{recipients, remove, remove_all};
pub(crate) use results::results;
pub(crate) use reviews::{decide, reviews};
pub(crate) use show::show;
