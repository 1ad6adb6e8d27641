//! The server: configuration, command line and wiring. The only place that names a concrete store or provider.

pub mod admin;
pub mod cli;
pub mod client;
pub mod config;
mod data;
mod doctor;
pub mod http;
mod inventory;
mod money;
mod people;
pub mod post_room;
mod quickstart;
mod reviews;
mod serve;
pub mod system;
pub mod table;
mod wire;
pub mod wiring;
