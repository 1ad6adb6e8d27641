//! Meaning of permanent status codes (RFC 3463), in replies of relays and in delivery reports. Pure.

use nuncio_domain::message::FailureCode;

/// Returns the failure code of a permanent status that came with `text`, and whether the mailbox does not exist, so that later emails
/// cannot be delivered either. `None` if the status does not tell.
pub(crate) fn meaning([_, subject, detail]: [u16; 3], text: &str) -> Option<(FailureCode, bool)> {
    let text = text.to_ascii_lowercase();
    let says = |words: &str| text.contains(words);
    Some(match (subject, detail) {
        // Postfix writes x.1.0 for refused senders too.
        (1, 0) if says("sender") => (FailureCode::ProviderRejected, false),
        (1, 0 | 1 | 2 | 3 | 6 | 10) => (FailureCode::InvalidRecipient, true),
        // The sender's address, not the recipient's.
        (1, 7 | 8) => (FailureCode::ProviderRejected, false),
        // Exchange Online: our own limit of recipients for a day.
        (1, 90) => (FailureCode::RateLimited, false),
        (1, _) => (FailureCode::InvalidRecipient, false),
        // Gmail: the mailbox gets too many emails.
        (2, 1) if says("at a rate") || says("too quickly") => (FailureCode::RateLimited, false),
        (2, 1) => (FailureCode::Undeliverable, true),
        // Microsoft: no such mailbox. Both codes also mean other things.
        (4, 1) if says("recipient address rejected: access denied") => (FailureCode::InvalidRecipient, true),
        (5, 0) if says("mailbox unavailable") => (FailureCode::InvalidRecipient, true),
        (2, 3) | (3, 4) | (6, _) => (FailureCode::ContentRejected, false),
        _ => return None,
    })
}
