//! The audit log.

mod list;

pub use list::{AuditActorView, AuditEntryView, ListAuditEntries};

crate::base::use_cases! {
    /// The audit log.
    audit => Audit
}
