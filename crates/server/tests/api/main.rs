//! The HTTP API, tested as a whole: requests go through the real router, dispatch runs by a clock that the test holds.

mod authz;
mod contract;
mod dispatch;
mod idempotency;
mod mail;
mod messages;
mod operations;
mod sandbox;
mod scheduling;
mod validation;
mod webhooks;
