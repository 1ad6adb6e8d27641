//! The adapter against relays: scripted ones that misbehave on purpose, and a foreign server that judges the mails.

mod message;
mod support;

mod conversation;
mod envelope;
mod failover;
mod inlet;
mod inlet_limits;
mod peer;
mod settings;
mod stray;
