//! The simulator, seen from outside.

mod contract;
mod liars;
mod recipients;
mod support;
