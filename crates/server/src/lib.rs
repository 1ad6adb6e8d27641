//! The server: configuration, command line and wiring. The only crate that names concrete stores or providers.

pub mod admin;
mod answer;
pub mod cli;
pub mod client;
pub mod config;
mod data;
mod doctor;
pub mod http;
mod inventory;
pub mod mail_listener;
mod money;
mod named;
mod option_values;
mod people;
pub mod proxies;
mod quickstart;
mod reviews;
mod serve;
pub mod system;
pub mod table;
mod wire;
pub mod wiring;
