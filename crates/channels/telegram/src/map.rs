//! From what the Bot API answers to what became of a message. Pure.
//!
//! Telegram documents no list of errors; the texts are those of its open server,
//! <https://github.com/tdlib/telegram-bot-api/blob/master/telegram-bot-api/Client.cpp>, and of the API behind it,
//! <https://core.telegram.org/api/errors>.

use nuncio_channel::{Scope, Verdict};
use nuncio_domain::message::{Failure, FailureCode};

use crate::api::{Fault, Refusal};

/// Longest text that is kept of an answer, in characters.
const TEXT: usize = 500;

/// The verdict on a message to `chat` whose part after those in `refs` came to nothing; `parts` in all.
pub(crate) fn verdict(fault: &Fault, chat: &str, refs: Vec<String>, parts: usize) -> Verdict {
    if !refs.is_empty() {
        let text = format!("{} of {parts} parts were sent; then: {}", refs.len(), explain(fault));
        let provider_code = provider_code(fault);
        return Verdict::Unknown { failure: Failure { code: FailureCode::UnknownOutcome, provider_code, message: text }, refs };
    }
    let failure = |code| Failure { code, provider_code: provider_code(fault), message: explain(fault) };
    match fault {
        Fault::Unsent(_) => deferred(Scope::Connection, failure(FailureCode::Undeliverable)),
        Fault::Lost(_) => Verdict::Unknown { failure: failure(FailureCode::UnknownOutcome), refs },
        // No Bot API answers so, and what refuses has not taken the message.
        Fault::Garbled { status: 400..=499 } => deferred(Scope::Connection, failure(FailureCode::ProviderRejected)),
        Fault::Garbled { .. } => Verdict::Unknown { failure: failure(FailureCode::UnknownOutcome), refs },
        Fault::NoFile { later: true, .. } => deferred(Scope::Message, failure(FailureCode::AttachmentUnavailable)),
        Fault::NoFile { later: false, .. } => Verdict::Rejected { failure: failure(FailureCode::AttachmentUnavailable) },
        Fault::Refused(refusal) => match class(refusal) {
            Class::Account(code) => deferred(Scope::Connection, failure(code)),
            Class::Later => deferred(Scope::Message, failure(FailureCode::Undeliverable)),
            Class::Unsure => Verdict::Unknown { failure: failure(FailureCode::UnknownOutcome), refs },
            Class::Slower => {
                // A group has a limit of its own; that of a bot is met by many chats at once.
                let scope = if chat.starts_with('-') { Scope::Message } else { Scope::Connection };
                Verdict::Deferred { retry_after: refusal.retry_after, failure: failure(FailureCode::RateLimited), scope }
            }
            Class::Never(code) => Verdict::Rejected { failure: failure(code) },
        },
    }
}

fn deferred(scope: Scope, failure: Failure) -> Verdict {
    Verdict::Deferred { retry_after: None, failure, scope }
}

fn provider_code(fault: &Fault) -> Option<String> {
    match fault {
        Fault::Refused(refusal) => Some(refusal.code.to_string()),
        Fault::Garbled { status } => Some(status.to_string()),
        Fault::Unsent(_) | Fault::Lost(_) | Fault::NoFile { .. } => None,
    }
}

/// What a refusal means.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    /// The bot cannot send at all.
    Account(FailureCode),
    /// Telegram has trouble of its own.
    Later,
    /// Nobody can tell whether it was carried out.
    Unsure,
    /// Too much at once.
    Slower,
    /// This message cannot be sent.
    Never(FailureCode),
}

fn class(refusal: &Refusal) -> Class {
    use FailureCode::{BlockedByRecipient, ContentRejected, CredentialsInvalid, InvalidRecipient, ProviderRejected, Undeliverable};
    let text = refusal.description.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match refusal.code {
        // An older server behind `base_url` does not know the method; else the path, which is the token, is not known.
        404 if says(&["method"]) => Class::Never(ProviderRejected),
        401 | 404 => Class::Account(CredentialsInvalid),
        429 => Class::Slower,
        500 => Class::Later,
        // What stands before the Bot API says that no answer came from it, not that it did nothing.
        502 | 504 => Class::Unsure,
        501..=599 => Class::Account(Undeliverable),
        403 if says(&["deactivated", "to bots", "to the bot"]) => Class::Never(InvalidRecipient),
        403 if says(&["blocked", "kicked", "not a member"]) => Class::Never(BlockedByRecipient),
        403 if says(&["initiate"]) => Class::Never(Undeliverable),
        400 if refusal.moved_to.is_some() || says(INVALID_CHAT) => Class::Never(InvalidRecipient),
        400 if says(NO_RIGHT) => Class::Never(ProviderRejected),
        400 if says(NO_MEDIA) => Class::Never(FailureCode::AttachmentUnavailable),
        400 | 413 => Class::Never(ContentRejected),
        _ => Class::Never(ProviderRejected),
    }
}

const INVALID_CHAT: &[&str] = &[
    "chat not found",
    "user not found",
    "user_id_invalid",
    "peer_id_invalid",
    "chat_id",
    "group chat was deactivated",
    "user is deactivated",
];
const NO_RIGHT: &[&str] =
    &["not enough rights", "have no rights", "need administrator rights", "chat_write_forbidden", "_forbidden", "chat_restricted"];
/// What Telegram says of a URL that it could not fetch or does not take: <https://core.telegram.org/bots/api#sending-files>.
const NO_MEDIA: &[&str] = &["http url content", "web page content", "webpage_", "wrong file identifier", "wrong remote file"];

/// What went wrong, in plain words, with what to do where that is known.
pub(crate) fn explain(fault: &Fault) -> String {
    let text = match fault {
        Fault::Unsent(why) => format!("Telegram cannot be reached ({why}); check base_url, DNS and firewalls"),
        Fault::Lost(why) => format!("no whole answer came from Telegram ({why})"),
        Fault::Garbled { status } => format!("what answered (status {status}) does not speak the Bot API; check base_url"),
        Fault::NoFile { why, .. } => format!("the file could not be fetched: {why}"),
        Fault::Refused(refusal) => format!("{}{}", refusal.description, advice(refusal)),
    };
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT).collect()
}

fn advice(refusal: &Refusal) -> String {
    if let Some(id) = refusal.moved_to {
        return format!("; the group's chat id is {id} now");
    }
    let text = match (refusal.code, class(refusal)) {
        (_, Class::Account(FailureCode::CredentialsInvalid)) => "; Telegram does not know the token: copy it from BotFather again",
        (403, Class::Never(FailureCode::Undeliverable)) | (400, Class::Never(FailureCode::InvalidRecipient)) => {
            "; a bot can write only to who wrote to it first, or to a group that it is in"
        }
        (409, _) => "; another program receives the messages of this bot: stop it, or give this connection a bot of its own",
        _ => "",
    };
    text.to_owned()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn refused(code: u16, description: &str) -> Fault {
        Fault::Refused(Refusal { code, description: description.into(), retry_after: None, moved_to: None })
    }

    fn short(verdict: &Verdict) -> (&'static str, FailureCode) {
        match verdict {
            Verdict::Deferred { failure, scope: Scope::Message, .. } => ("message", failure.code),
            Verdict::Deferred { failure, scope: Scope::Connection, .. } => ("connection", failure.code),
            Verdict::Rejected { failure } => ("rejected", failure.code),
            Verdict::Unknown { failure, .. } => ("unknown", failure.code),
            Verdict::Accepted { .. } => panic!("accepted"),
        }
    }

    #[test]
    fn refusals() {
        use FailureCode::{
            AttachmentUnavailable, BlockedByRecipient, ContentRejected, CredentialsInvalid, InvalidRecipient, ProviderRejected,
            RateLimited, Undeliverable,
        };
        for (code, text, what, failure) in [
            (401, "Unauthorized", "connection", CredentialsInvalid),
            (404, "Not Found", "connection", CredentialsInvalid),
            (404, "Not Found: method not found", "rejected", ProviderRejected),
            (403, "Forbidden: bot was blocked by the user", "rejected", BlockedByRecipient),
            (403, "Forbidden: bot was kicked from the supergroup chat", "rejected", BlockedByRecipient),
            (403, "Forbidden: bot is not a member of the channel chat", "rejected", BlockedByRecipient),
            (403, "Forbidden: user is deactivated", "rejected", InvalidRecipient),
            (403, "Forbidden: bot can't send messages to bots", "rejected", InvalidRecipient),
            (403, "Forbidden: bot can't initiate conversation with a user", "rejected", Undeliverable),
            (403, "Forbidden: something new", "rejected", ProviderRejected),
            (400, "Bad Request: chat not found", "rejected", InvalidRecipient),
            (400, "Bad Request: PEER_ID_INVALID", "rejected", InvalidRecipient),
            (400, "Bad Request: group chat was deactivated", "rejected", InvalidRecipient),
            (400, "Bad Request: not enough rights to send text messages to the chat", "rejected", ProviderRejected),
            (400, "Bad Request: VOICE_MESSAGES_FORBIDDEN", "rejected", ProviderRejected),
            (400, "Bad Request: failed to get HTTP URL content", "rejected", AttachmentUnavailable),
            (400, "Bad Request: wrong type of the web page content", "rejected", AttachmentUnavailable),
            (400, "Bad Request: wrong file identifier/HTTP URL specified", "rejected", AttachmentUnavailable),
            (400, "Bad Request: message is too long", "rejected", ContentRejected),
            (400, "Bad Request: REACTION_INVALID", "rejected", ContentRejected),
            (400, "Bad Request: BUTTON_DATA_INVALID", "rejected", ContentRejected),
            (413, "Request Entity Too Large", "rejected", ContentRejected),
            (429, "Too Many Requests: retry after 3", "connection", RateLimited),
            (500, "Internal Server Error", "message", Undeliverable),
            (502, "Bad Gateway", "unknown", FailureCode::UnknownOutcome),
            (503, "Service Unavailable", "connection", Undeliverable),
            (504, "Gateway Timeout", "unknown", FailureCode::UnknownOutcome),
            (418, "I'm a teapot", "rejected", ProviderRejected),
        ] {
            assert_eq!(short(&verdict(&refused(code, text), "5", Vec::new(), 1)), (what, failure), "{code} {text}");
        }
    }

    #[test]
    fn other_faults() {
        for (fault, what, code) in [
            (Fault::Unsent("x".into()), "connection", FailureCode::Undeliverable),
            (Fault::Lost("x".into()), "unknown", FailureCode::UnknownOutcome),
            (Fault::Garbled { status: 200 }, "unknown", FailureCode::UnknownOutcome),
            (Fault::Garbled { status: 504 }, "unknown", FailureCode::UnknownOutcome),
            (Fault::Garbled { status: 404 }, "connection", FailureCode::ProviderRejected),
            (Fault::NoFile { why: "x".into(), later: true }, "message", FailureCode::AttachmentUnavailable),
            (Fault::NoFile { why: "x".into(), later: false }, "rejected", FailureCode::AttachmentUnavailable),
        ] {
            assert_eq!(short(&verdict(&fault, "5", Vec::new(), 1)), (what, code), "{fault:?}");
        }
    }

    #[test]
    fn a_delay_is_passed_on_and_a_group_slows_down_alone() {
        let fault = Fault::Refused(Refusal {
            code: 429,
            description: "Too Many Requests: retry after 31".into(),
            retry_after: Some(Duration::from_secs(31)),
            moved_to: None,
        });
        for (chat, wanted) in [("5", Scope::Connection), ("-1005", Scope::Message)] {
            let Verdict::Deferred { retry_after, scope, .. } = verdict(&fault, chat, Vec::new(), 1) else { panic!() };
            assert_eq!((retry_after, scope), (Some(Duration::from_secs(31)), wanted));
        }
    }

    #[test]
    fn nobody_can_tell_of_a_message_that_is_half_sent() {
        let sent = vec!["5:1".to_owned()];
        let verdict = verdict(&refused(403, "Forbidden: bot was blocked by the user"), "5", sent.clone(), 3);
        let Verdict::Unknown { failure, refs } = verdict else { panic!("{verdict:?}") };
        assert_eq!((failure.code, failure.provider_code.as_deref(), refs), (FailureCode::UnknownOutcome, Some("403"), sent));
        assert_eq!(failure.message, "1 of 3 parts were sent; then: Forbidden: bot was blocked by the user");
    }

    #[test]
    fn what_to_do_is_said() {
        let moved = Refusal {
            code: 400,
            description: "Bad Request: group chat was upgraded to a supergroup chat".into(),
            retry_after: None,
            moved_to: Some(-1005),
        };
        assert_eq!(
            explain(&Fault::Refused(moved)),
            "Bad Request: group chat was upgraded to a supergroup chat; the group's chat id is -1005 now"
        );
        assert!(explain(&refused(400, "Bad Request: chat not found")).contains("wrote to it first"));
        assert!(explain(&refused(401, "Unauthorized")).contains("BotFather"));
        assert_eq!(explain(&refused(400, &format!("a\n{}", "é".repeat(900)))).chars().count(), TEXT);
    }
}
