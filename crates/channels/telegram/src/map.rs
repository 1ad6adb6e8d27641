//! Maps the Bot API's errors to outcomes. Pure.
//!
//! Telegram documents no list of errors; the texts are those of its open server,
//! <https://github.com/tdlib/telegram-bot-api/blob/master/telegram-bot-api/Client.cpp>, and of the API behind it,
//! <https://core.telegram.org/api/errors>.

use std::time::Duration;

use nuncio_channel::{Outcome, Scope};
use nuncio_channel_http::{Disposition, Refusal, plain};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_net::FetchError;

/// Why a request failed; a refusal has its disposition.
pub(crate) type RequestError = nuncio_channel_http::RequestError<Disposition>;

/// An error of the Bot API. `code` follows HTTP; `moved_to` is the new id of a group that became a supergroup.
pub(crate) fn refusal(code: u16, description: &str, retry_after: Option<Duration>, moved_to: Option<i64>) -> Refusal<Disposition> {
    let disposition = classify(code, description, moved_to);
    let text = plain(&format!("{description}{}", advice(code, disposition, moved_to)), "");
    Refusal { status: code, code: code.to_string(), text, retry_after, details: disposition }
}

/// The outcome on a message to `chat` of `total` requests, of which one failed after those in `refs`.
pub(crate) fn outcome(error: &RequestError, chat: &str, refs: Vec<String>, total: usize) -> Outcome {
    let alone = match error {
        // A proxy before the Bot API, which did not pass the request on.
        RequestError::Unreadable { status: status @ (300..=399 | 429 | 503), .. } => error.outcome_of(Disposition::of_status(*status)),
        // It is not a Bot API, and it did not accept the request.
        RequestError::Unreadable { status: 400..=499, .. } => {
            error.outcome_of(Disposition::Defer(Scope::Connection, FailureCode::ProviderRejected))
        }
        RequestError::Unreadable { .. } => error.outcome_of(Disposition::Unknown),
        // Each group has its own limit; the bot's limit concerns all chats.
        RequestError::Refused(refusal) if refusal.details == Disposition::RATE_LIMITED && chat.starts_with('-') => {
            error.outcome_of(Disposition::Defer(Scope::Message, FailureCode::RateLimited))
        }
        _ => error.outcome(|refusal| Some(refusal.details)),
    };
    if refs.is_empty() { alone } else { error.partly_sent(refs, total, alone) }
}

/// The same for a file to be sent that could not be fetched.
pub(crate) fn no_file(error: &FetchError, refs: Vec<String>, total: usize) -> Outcome {
    let mut message = format!("the file could not be fetched: {error}");
    if !refs.is_empty() {
        message = format!("{} of {total} parts were sent; then: {message}", refs.len());
        if error.is_transient() {
            return Outcome::Unknown { failure: Failure::own(FailureCode::UnknownOutcome, message), refs };
        }
    }
    let failure = Failure::own(FailureCode::AttachmentUnavailable, message);
    if error.is_transient() {
        return Outcome::Deferred { retry_after: None, failure, scope: Scope::Message };
    }
    Outcome::Rejected { failure }
}

fn classify(code: u16, description: &str, moved_to: Option<i64>) -> Disposition {
    use FailureCode::{BlockedByRecipient, ContentRejected, InvalidRecipient, ProviderRejected, Undeliverable};
    let text = description.to_ascii_lowercase();
    let says = |words: &[&str]| words.iter().any(|word| text.contains(word));
    match code {
        // An older server at `base_url` does not know the method. Otherwise the path is unknown, which contains the token.
        404 if says(&["method"]) => Disposition::Reject(ProviderRejected),
        401 | 404 => Disposition::BAD_CREDENTIALS,
        429 => Disposition::RATE_LIMITED,
        // A server that restarts answers 500 to what it is sending ("Internal Server Error: restart"); with 502 and 504, a proxy got no response.
        500 | 502 | 504 => Disposition::Unknown,
        501..=599 => Disposition::Defer(Scope::Connection, Undeliverable),
        403 if says(&["deactivated", "to bots", "to the bot"]) => Disposition::Reject(InvalidRecipient),
        403 if says(&["blocked", "kicked", "not a member"]) => Disposition::Reject(BlockedByRecipient),
        403 if says(&["initiate"]) => Disposition::Reject(Undeliverable),
        400 if moved_to.is_some() || says(INVALID_CHAT) => Disposition::Reject(InvalidRecipient),
        400 if says(NO_RIGHT) => Disposition::Reject(ProviderRejected),
        400 if says(NO_MEDIA) => Disposition::Reject(FailureCode::AttachmentUnavailable),
        400 | 413 => Disposition::Reject(ContentRejected),
        _ => Disposition::Reject(ProviderRejected),
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
/// Errors about a URL that Telegram could not fetch or does not accept: <https://core.telegram.org/bots/api#sending-files>.
const NO_MEDIA: &[&str] = &["http url content", "web page content", "webpage_", "wrong file identifier", "wrong remote file"];

/// What to do, where that is known.
fn advice(code: u16, disposition: Disposition, moved_to: Option<i64>) -> String {
    if let Some(id) = moved_to {
        return format!("; the group's chat id is now {id}");
    }
    let text = match (code, disposition) {
        (_, Disposition::BAD_CREDENTIALS) => "; Telegram does not know the token: copy it from BotFather again",
        (403, Disposition::Reject(FailureCode::Undeliverable)) | (400, Disposition::Reject(FailureCode::InvalidRecipient)) => {
            "; a bot can write only to people who wrote to it first, and to groups that it is in"
        }
        (409, _) => "; another program receives this bot's messages: stop it, or use a separate bot for this connection",
        _ => "",
    };
    text.to_owned()
}

/// An error with what to do, for the operator.
pub(crate) fn explain(error: &RequestError) -> String {
    match error {
        RequestError::Unreachable(_) => error.with_advice("check base_url, DNS and firewalls"),
        RequestError::Unreadable { .. } => error.with_advice("check base_url, which must be a Bot API"),
        RequestError::NoResponse(_) => error.to_string(),
        RequestError::Refused(refusal) => refusal.text.clone(),
    }
}

#[cfg(test)]
mod tests {
    use nuncio_channel::testing::kind_and_code;

    use super::*;

    fn refused(code: u16, description: &str) -> RequestError {
        RequestError::Refused(refusal(code, description, None, None))
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
            (500, "Internal Server Error: restart", "unknown", FailureCode::UnknownOutcome),
            (502, "Bad Gateway", "unknown", FailureCode::UnknownOutcome),
            (503, "Service Unavailable", "connection", Undeliverable),
            (504, "Gateway Timeout", "unknown", FailureCode::UnknownOutcome),
            (418, "I'm a teapot", "rejected", ProviderRejected),
        ] {
            assert_eq!(kind_and_code(&outcome(&refused(code, text), "5", Vec::new(), 1)), (what, failure), "{code} {text}");
        }
    }

    #[test]
    fn other_errors() {
        let unreadable = |status| RequestError::Unreadable { status, retry_after: None };
        for (error, what, code) in [
            (RequestError::Unreachable("x".into()), "connection", FailureCode::Undeliverable),
            (RequestError::NoResponse("x".into()), "unknown", FailureCode::UnknownOutcome),
            (unreadable(200), "unknown", FailureCode::UnknownOutcome),
            (unreadable(504), "unknown", FailureCode::UnknownOutcome),
            (unreadable(404), "connection", FailureCode::ProviderRejected),
            (unreadable(503), "connection", FailureCode::Undeliverable),
            (unreadable(307), "connection", FailureCode::Undeliverable),
            (unreadable(429), "connection", FailureCode::RateLimited),
        ] {
            assert_eq!(kind_and_code(&outcome(&error, "5", Vec::new(), 1)), (what, code), "{error:?}");
        }
        let unknown = ("unknown", FailureCode::UnknownOutcome);
        let rejected = ("rejected", FailureCode::AttachmentUnavailable);
        for (error, alone, later) in
            [(FetchError::Timeout, ("message", FailureCode::AttachmentUnavailable), unknown), (FetchError::Status(404), rejected, rejected)]
        {
            assert_eq!(kind_and_code(&no_file(&error, Vec::new(), 1)), alone);
            assert_eq!(kind_and_code(&no_file(&error, vec!["5:1".into()], 2)), later);
        }
    }

    #[test]
    fn a_delay_is_passed_on_and_a_group_slows_down_alone() {
        let error = refusal(429, "Too Many Requests: retry after 31", Some(Duration::from_secs(31)), None);
        let error = RequestError::Refused(error);
        for (chat, wanted) in [("5", Scope::Connection), ("-1005", Scope::Message)] {
            let Outcome::Deferred { retry_after, scope, .. } = outcome(&error, chat, Vec::new(), 1) else { panic!() };
            assert_eq!((retry_after, scope), (Some(Duration::from_secs(31)), wanted));
        }
    }

    #[test]
    fn a_message_sent_in_part_is_rejected_with_the_part_that_is_and_unknown_otherwise() {
        let sent = vec!["5:1".to_owned()];
        let rejected = outcome(&refused(403, "Forbidden: bot was blocked by the user"), "5", sent.clone(), 3);
        let Outcome::Rejected { failure } = rejected else { panic!("{rejected:?}") };
        assert_eq!((failure.code, failure.provider_code.as_deref()), (FailureCode::BlockedByRecipient, Some("403")));
        assert_eq!(failure.message, "1 of 3 parts were sent; then: the provider returned code 403: Forbidden: bot was blocked by the user");
        let throttled = outcome(&refused(429, "Too Many Requests"), "5", sent.clone(), 3);
        let Outcome::Unknown { failure, refs } = throttled else { panic!("{throttled:?}") };
        assert_eq!((failure.code, refs), (FailureCode::UnknownOutcome, sent));
    }

    #[test]
    fn advice_is_given() {
        let moved = refusal(400, "Bad Request: group chat was upgraded to a supergroup chat", None, Some(-1005));
        assert_eq!(moved.text, "Bad Request: group chat was upgraded to a supergroup chat; the group's chat id is now -1005");
        assert!(explain(&refused(400, "Bad Request: chat not found")).contains("wrote to it first"));
        assert!(explain(&refused(401, "Unauthorized")).contains("BotFather"));
    }
}
