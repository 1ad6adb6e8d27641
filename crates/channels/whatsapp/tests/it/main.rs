//! The adapter against a Graph API that follows a script, and against a third-party implementation of its wire format.

mod support;

mod callbacks;
mod cases;
mod contract;
mod files;
mod peer;
mod profile;
mod sending;
mod settings;
mod templates;
