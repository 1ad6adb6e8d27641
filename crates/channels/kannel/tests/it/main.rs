//! The adapter against a gateway that follows a script, and against Kannel itself.

mod support;

mod callbacks;
mod contract;
mod kannel;
mod sending;
mod settings;
