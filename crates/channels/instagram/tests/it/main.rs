//! The adapter against a Graph API that follows a script. Nothing third-party that speaks Instagram's wire format is there to test with.

mod support;

mod callbacks;
mod contract;
mod sending;
mod settings;
