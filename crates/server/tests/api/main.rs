//! The HTTP API, tested as a whole: requests go through the real router, dispatch runs by a clock that the test holds.

mod attachments;
mod authz;
mod channels;
mod contacts;
mod contract;
mod dispatch;
mod idempotency;
mod introspect;
mod mail;
mod messages;
mod money;
mod operations;
mod profiles;
mod routing;
mod sandbox;
mod scheduling;
mod senders;
mod suppressions;
mod validation;
mod webhook;
mod webhooks;
