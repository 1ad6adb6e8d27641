//! The adapter against SMSCs: scripted ones, whose PDUs a foreign codec reads and writes, and a foreign server.

mod smsc;
mod support;

mod contract;
mod inbound;
mod peer;
mod sending;
mod sessions;
mod settings;
