//! The simulator, seen from outside.

mod contract;
mod liars;
mod profile;
mod recipients;
mod support;
