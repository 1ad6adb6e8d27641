//! The adapter against an API that follows a script, and against Twilio's own client library.

mod support;

mod callbacks;
mod contract;
mod foreign;
mod sending;
mod settings;
