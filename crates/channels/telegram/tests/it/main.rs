//! The adapter against a Bot API that follows a script, and against two that others wrote.

mod support;

mod contract;
mod foreign;
mod receiving;
mod sending;
mod settings;
