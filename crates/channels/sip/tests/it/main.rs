//! The adapter against trunks: scripted ones, and third-party software.

mod carrier;
mod support;

mod calls;
mod contract;
mod hold;
mod phone;
mod refusals;
mod settings;
mod sipp;
