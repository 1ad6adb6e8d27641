//! Maps responses of relays to outcomes (RFC 5321 §4.2, RFC 3463, RFC 4954). Pure.

use std::io;
use std::time::Duration;

use nuncio_channel::{Outcome, Scope};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_net::FetchError;

use crate::message::NonAscii;
use crate::refusal;

/// Maximum characters stored of a relay's text.
const TEXT: usize = 500;

/// Progress of a conversation.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) enum Stage {
    /// Connecting, greeting, EHLO, STARTTLS.
    Greeting,
    /// AUTH.
    Login,
    /// MAIL FROM.
    Mail,
    /// RCPT TO.
    Rcpt,
    /// The DATA command.
    Data,
    /// The content, but not the final dot: the relay cannot have accepted the email.
    Content,
    /// The final dot was, or may have been, written: only the relay's response tells.
    Answer,
}

/// Why a conversation failed.
#[derive(Debug)]
pub(crate) enum SessionError {
    /// The host name has no address.
    Name(FetchError),
    /// No address could be connected to.
    Connect(io::Error),
    /// TLS failed.
    Tls(io::Error),
    /// The connection broke.
    Lost(io::Error),
    /// No response in time.
    TimedOut(Duration),
    /// The relay broke the protocol.
    Garbled(String),
    /// Refused by the relay.
    Refused(Reply),
    /// STARTTLS is required and not offered.
    NoStartTls,
    /// A login is set, and no AUTH mechanism that we know is offered.
    NoAuth,
    /// The email exceeds the relay's size limit.
    TooLarge {
        /// Size of the email in octets.
        size: usize,
        /// Limit in octets.
        limit: usize,
    },
    /// An address needs SMTPUTF8 and the relay does not offer it.
    NoUtf8(NonAscii),
}

/// A failure and its stage.
#[derive(Debug)]
pub(crate) struct Failed {
    pub(crate) stage: Stage,
    pub(crate) fault: SessionError,
}

impl Failed {
    /// Returns whether a new connection is likely to work: the relay closed the idle one before anything of the email was written, or what
    /// it answered may not be about the email.
    pub(crate) fn was_stale(&self) -> bool {
        let gone = match &self.fault {
            SessionError::Lost(_) => true,
            SessionError::Refused(reply) => reply.code == 421 || self.may_be_stray(),
            _ => false,
        };
        gone && self.stage < Stage::Content
    }

    /// Returns whether the relay may have said this about the email before, while it was still on its way: it is the first answer.
    fn may_be_stray(&self) -> bool {
        self.stage == Stage::Mail && matches!(&self.fault, SessionError::Refused(reply) if reply.code >= 500)
    }

    /// Returns whether another relay may accept the email: this one cannot have it, and the problem is not the email.
    pub(crate) fn is_of_relay(&self) -> bool {
        self.stage < Stage::Content && matches!(outcome(self, ""), Outcome::Deferred { scope: Scope::Connection, .. })
    }

    /// Returns whether the connection can be reused.
    pub(crate) fn keeps_connection(&self) -> bool {
        match &self.fault {
            SessionError::Refused(reply) => reply.code != 421 && !self.may_be_stray(),
            SessionError::TooLarge { .. } | SessionError::NoUtf8(_) => true,
            _ => false,
        }
    }
}

/// A response of a relay.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Reply {
    /// Three digits.
    pub(crate) code: u16,
    /// The texts of its lines.
    pub(crate) lines: Vec<String>,
}

impl Reply {
    /// The text, without the enhanced status code, fit to be shown.
    fn text(&self) -> String {
        let lines = self.lines.iter().map(|line| enhanced(line).map_or(line.as_str(), |(_, rest)| rest).trim());
        let text = lines.filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT).collect()
    }

    /// The enhanced status code, such as 5.1.1, as numbers.
    fn status(&self) -> Option<[u16; 3]> {
        self.lines.iter().find_map(|line| enhanced(line)).map(|(status, _)| status)
    }

    fn provider_code(&self) -> String {
        match self.status() {
            Some([a, b, c]) => format!("{} {a}.{b}.{c}", self.code),
            None => self.code.to_string(),
        }
    }

    /// Returns the relay's queue id of the email, if it can be recognised.
    pub(crate) fn queue_id(&self) -> Option<String> {
        let text = self.text();
        let words: Vec<_> = text.split_whitespace().collect();
        let after = |marker: &[&str]| {
            words
                .windows(marker.len() + 1)
                .find(|w| marker.iter().zip(*w).all(|(m, w)| m.eq_ignore_ascii_case(w.trim_end_matches(':'))))
                .and_then(|w| id(w[marker.len()]))
        };
        after(&["queued", "as"])
            .or_else(|| words.iter().find_map(|w| w.strip_prefix("id=")).and_then(id))
            .or_else(|| words.windows(4).find(|w| w[1..] == ["Message", "accepted", "for"]).and_then(|w| id(w[0])))
            .or_else(|| {
                let after_ok = words.iter().skip_while(|w| !w.trim_end_matches(':').eq_ignore_ascii_case("ok")).skip(1);
                let id = after_ok.copied().find(|word| !is_unix_time(word)).and_then(id);
                id.filter(|id| id.len() >= 8 && id.bytes().any(|b| b.is_ascii_digit()))
            })
    }
}

/// Returns whether a word is a time: Gmail and qmail write it before the id, and other emails of that second have it, too.
fn is_unix_time(word: &str) -> bool {
    word.len() == 10 && word.bytes().all(|b| b.is_ascii_digit())
}

fn id(word: &str) -> Option<String> {
    let word = word.trim_matches(|c: char| !c.is_ascii_alphanumeric());
    let clean = !word.is_empty() && word.len() <= 128 && word.bytes().all(|b| b.is_ascii_graphic());
    clean.then(|| word.to_owned())
}

/// Returns the enhanced status code at the start of a line (RFC 2034), and the rest.
fn enhanced(line: &str) -> Option<([u16; 3], &str)> {
    let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
    let mut numbers = word.split('.').map(|n| n.bytes().all(|b| b.is_ascii_digit()).then(|| n.parse::<u16>().ok()).flatten());
    let status = [numbers.next()??, numbers.next()??, numbers.next()??];
    (numbers.next().is_none() && matches!(status[0], 2 | 4 | 5)).then_some((status, rest))
}

/// Returns the outcome on an accepted email, with the reference from `reply`, or `message_id`.
pub(crate) fn accepted(reply: &Reply, message_id: &str) -> Outcome {
    Outcome::Accepted { refs: vec![reply.queue_id().unwrap_or_else(|| message_id.to_owned())], cost: None }
}

/// Returns the outcome on an email that failed. `relay` is its host and port, for people.
pub(crate) fn outcome(failed: &Failed, relay: &str) -> Outcome {
    let own = |code| Failure::own(code, explain(failed, relay));
    match &failed.fault {
        SessionError::Refused(reply) => refused(failed.stage, reply),
        SessionError::TooLarge { .. } => Outcome::Rejected { failure: own(FailureCode::ContentRejected) },
        SessionError::NoUtf8(NonAscii::Envelope) => Outcome::Rejected { failure: own(FailureCode::InvalidRecipient) },
        SessionError::NoUtf8(NonAscii::ReplyTo(_)) => Outcome::Rejected { failure: own(FailureCode::ContentRejected) },
        SessionError::NoAuth => deferred(Scope::Connection, own(FailureCode::CredentialsInvalid)),
        _ if failed.stage == Stage::Answer => Outcome::Unknown { failure: own(FailureCode::UnknownOutcome), refs: Vec::new() },
        // The relay worked a moment ago: the cause may be this email, such as its size. If not, the next one will show.
        _ if failed.stage == Stage::Content => deferred(Scope::Message, own(FailureCode::Undeliverable)),
        _ => deferred(Scope::Connection, own(FailureCode::Undeliverable)),
    }
}

fn deferred(scope: Scope, failure: Failure) -> Outcome {
    Outcome::Deferred { retry_after: None, failure, scope }
}

fn refused(stage: Stage, reply: &Reply) -> Outcome {
    let failure = |code| Failure { code, provider_code: Some(reply.provider_code()), message: reply.text() };
    let temporary = reply.code < 500;
    match reply.code {
        // Not now, nor for others: closing, overloaded, or too many connections (RFC 5321 §3.8; 4.3.2, RFC 3463 §3.4).
        421 => deferred(Scope::Connection, failure(FailureCode::RateLimited)),
        _ if matches!(reply.status(), Some([4, 3, 2])) => deferred(Scope::Connection, failure(FailureCode::RateLimited)),
        530 | 534 | 535 | 538 => deferred(Scope::Connection, failure(FailureCode::CredentialsInvalid)),
        _ if stage == Stage::Login && !temporary => deferred(Scope::Connection, failure(FailureCode::CredentialsInvalid)),
        _ if stage <= Stage::Login && temporary => deferred(Scope::Connection, failure(FailureCode::Undeliverable)),
        _ if stage <= Stage::Login => deferred(Scope::Connection, failure(FailureCode::ProviderRejected)),
        _ if temporary && matches!(reply.status(), Some([4, 7, _])) => deferred(Scope::Message, failure(FailureCode::RateLimited)),
        _ if temporary => deferred(Scope::Message, failure(FailureCode::Undeliverable)),
        _ => Outcome::Rejected { failure: failure(permanent(stage, reply)) },
    }
}

/// Returns the failure code of a 5xx response.
fn permanent(stage: Stage, reply: &Reply) -> FailureCode {
    let content_seen = stage >= Stage::Content;
    match reply.status().and_then(|status| refusal::meaning(status, &reply.text())) {
        // It speaks of the sender.
        Some((FailureCode::InvalidRecipient, _)) if stage == Stage::Mail => return FailureCode::ProviderRejected,
        Some((code, _)) => return code,
        None => {}
    }
    match (reply.status(), reply.code) {
        (Some([_, 2 | 4, _]), _) => FailureCode::Undeliverable,
        (Some([_, 7, _]), _) if content_seen => FailureCode::ContentRejected,
        (Some([_, 0, _]) | None, 552) if stage == Stage::Mail => FailureCode::ContentRejected, // the announced size
        (Some([_, 0, _]) | None, 552) => FailureCode::Undeliverable,
        (Some([_, 0, _]) | None, 550 | 551 | 553) if stage == Stage::Rcpt => FailureCode::InvalidRecipient,
        (Some([_, 0, _]) | None, 550 | 554) if content_seen => FailureCode::ContentRejected,
        _ => FailureCode::ProviderRejected,
    }
}

/// Explains a failure, with what to do.
pub(crate) fn explain(failed: &Failed, relay: &str) -> String {
    let host = relay.rsplit_once(':').map_or(relay, |(host, _)| host);
    let text = match &failed.fault {
        SessionError::Name(refused @ FetchError::Refused(_)) => refused.to_string(),
        SessionError::Name(error) => format!("the name {host} cannot be resolved ({error}); check host, and the DNS of this machine"),
        SessionError::Connect(error) if error.kind() == io::ErrorKind::ConnectionRefused => {
            format!("{relay} refuses connections; check host and port")
        }
        SessionError::Connect(error) => format!("{relay} cannot be reached ({error}); check host, port and firewalls"),
        SessionError::Tls(error) if error.to_string().contains("CaUsedAsEndEntity") => format!(
            "TLS with {relay} failed: its certificate is that of an authority (CA:TRUE); install one for {host} with basicConstraints=CA:FALSE, signed by that authority or by itself"
        ),
        SessionError::Tls(error) => format!(
            "TLS with {relay} failed ({error}); its certificate must be valid, for {host}, and from a known authority or one in tls_ca; port 465 wants tls=implicit, port 587 tls=required"
        ),
        SessionError::Lost(error) if failed.stage == Stage::Answer => {
            format!("{relay} was lost after the mail was written, before it answered ({error})")
        }
        SessionError::Lost(error) => format!("{relay} broke the connection ({error})"),
        SessionError::TimedOut(after) if failed.stage == Stage::Answer => {
            format!("{relay} gave no answer to the mail within {} s", after.as_secs())
        }
        SessionError::TimedOut(after) => {
            format!("{relay} did not answer within {} s; check host, port, tls and firewalls", after.as_secs())
        }
        SessionError::Garbled(what) => format!("{relay} does not speak SMTP as it should: {what}"),
        SessionError::NoStartTls => {
            format!("{relay} offers no STARTTLS; use tls=implicit if it speaks TLS from the start (mostly port 465)")
        }
        SessionError::NoAuth => {
            format!("{relay} offers no login by AUTH PLAIN or LOGIN; remove username and password, or use the port for submission")
        }
        SessionError::TooLarge { size, limit } => format!("the mail has {size} bytes; {relay} takes at most {limit}"),
        SessionError::NoUtf8(address) => {
            let address = match address {
                NonAscii::Envelope => "the address".to_owned(),
                NonAscii::ReplyTo(address) => format!("replyTo {address:?}"),
            };
            format!("{address} has characters beyond ASCII before the @, and {relay} does not take such (no SMTPUTF8)")
        }
        SessionError::Refused(reply) => {
            let what = match failed.stage {
                Stage::Login => "refused the login; check username and password",
                Stage::Greeting => "does not serve us",
                _ => "refused",
            };
            format!("{relay} {what}: {} {}", reply.provider_code(), reply.text())
        }
    };
    text.chars().map(|c| if c.is_control() { ' ' } else { c }).take(TEXT).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reply(line: &str) -> Reply {
        Reply { code: line[..3].parse().unwrap(), lines: line[4..].split('|').map(str::to_owned).collect() }
    }

    fn short(outcome: &Outcome) -> (&'static str, FailureCode) {
        match outcome {
            Outcome::Deferred { failure, scope: Scope::Message, .. } => ("message", failure.code),
            Outcome::Deferred { failure, scope: Scope::Connection, .. } => ("connection", failure.code),
            Outcome::Rejected { failure } => ("rejected", failure.code),
            Outcome::Unknown { failure, .. } => ("unknown", failure.code),
            Outcome::Accepted { .. } => panic!("accepted"),
        }
    }

    #[test]
    fn answers() {
        use FailureCode::{ContentRejected, CredentialsInvalid, InvalidRecipient, ProviderRejected, RateLimited, Undeliverable};
        for (stage, line, what, code) in [
            (Stage::Greeting, "421 4.7.0 too many connections", "connection", RateLimited),
            (Stage::Greeting, "554 no mail for you", "connection", ProviderRejected),
            (Stage::Greeting, "454 4.7.0 TLS not available", "connection", Undeliverable),
            (Stage::Login, "535 5.7.8 bad password", "connection", CredentialsInvalid),
            (Stage::Login, "504 5.5.4 unknown mechanism", "connection", CredentialsInvalid),
            (Stage::Login, "454 4.7.0 try later", "connection", Undeliverable),
            (Stage::Mail, "530 5.7.0 authentication required", "connection", CredentialsInvalid),
            (Stage::Mail, "421 4.3.2 shutting down", "connection", RateLimited),
            (Stage::Mail, "432 4.3.2 Concurrent connections limit exceeded", "connection", RateLimited),
            (Stage::Mail, "550 5.1.8 bad sender domain", "rejected", ProviderRejected),
            (Stage::Mail, "553 5.1.3 bad address", "rejected", ProviderRejected),
            (Stage::Mail, "550 5.5.0 mailbox unavailable", "rejected", ProviderRejected),
            (Stage::Mail, "552 5.3.4 too big", "rejected", ContentRejected),
            (Stage::Mail, "552 too big", "rejected", ContentRejected),
            (Stage::Rcpt, "550 5.1.1 no such user", "rejected", InvalidRecipient),
            (Stage::Rcpt, "550 no such user", "rejected", InvalidRecipient),
            (Stage::Rcpt, "553 5.1.7 bad sender", "rejected", ProviderRejected),
            (Stage::Rcpt, "550 5.7.1 relaying denied", "rejected", ProviderRejected),
            (Stage::Rcpt, "554 relaying denied", "rejected", ProviderRejected),
            (Stage::Rcpt, "552 5.2.2 full", "rejected", Undeliverable),
            (Stage::Rcpt, "552 full", "rejected", Undeliverable),
            (Stage::Rcpt, "550 5.2.1 disabled", "rejected", Undeliverable),
            (Stage::Rcpt, "550 5.2.1 The user receives mail at a rate that prevents|5.2.1 delivery", "rejected", RateLimited),
            (Stage::Rcpt, "550 5.4.1 no route", "rejected", Undeliverable),
            (Stage::Rcpt, "550 5.4.1 Recipient address rejected: Access denied. AS(201806281)", "rejected", InvalidRecipient),
            (Stage::Rcpt, "550 5.4.1 Relay Access Denied", "rejected", Undeliverable),
            (Stage::Rcpt, "550 5.5.0 Requested action not taken: mailbox unavailable", "rejected", InvalidRecipient),
            (Stage::Rcpt, "550 5.1.0 <a@b.example>: Sender address rejected: User unknown", "rejected", ProviderRejected),
            (Stage::Rcpt, "550 5.1.0 Address rejected", "rejected", InvalidRecipient),
            (Stage::Answer, "550 5.1.90 daily limit of recipients", "rejected", RateLimited),
            (Stage::Rcpt, "501 5.5.4 syntax", "rejected", ProviderRejected),
            (Stage::Rcpt, "450 4.7.1 greylisted", "message", RateLimited),
            (Stage::Rcpt, "451 4.7.1 greylisted", "message", RateLimited),
            (Stage::Rcpt, "450 4.2.1 busy", "message", Undeliverable),
            (Stage::Rcpt, "452 4.2.2 full", "message", Undeliverable),
            (Stage::Data, "554 5.5.1 no valid recipients", "rejected", ProviderRejected),
            (Stage::Answer, "554 5.7.1 spam", "rejected", ContentRejected),
            (Stage::Answer, "554 spam", "rejected", ContentRejected),
            (Stage::Answer, "550 5.1.1 no such user", "rejected", InvalidRecipient),
            (Stage::Answer, "552 5.2.3 too long", "rejected", ContentRejected),
            (Stage::Answer, "451 4.3.0 try later", "message", Undeliverable),
            (Stage::Answer, "421 4.3.0 closing", "connection", RateLimited),
        ] {
            let outcome = outcome(&Failed { stage, fault: SessionError::Refused(reply(line)) }, "relay:25");
            assert_eq!(short(&outcome), (what, code), "{stage:?} {line}");
        }
    }

    #[test]
    fn silence_and_loss() {
        let lost = || SessionError::Lost(io::ErrorKind::UnexpectedEof.into());
        for (stage, fault, what, code, stale) in [
            (
                Stage::Greeting,
                SessionError::Connect(io::ErrorKind::ConnectionRefused.into()),
                "connection",
                FailureCode::Undeliverable,
                false,
            ),
            (Stage::Greeting, SessionError::Name(FetchError::Unreachable("x".into())), "connection", FailureCode::Undeliverable, false),
            (Stage::Greeting, SessionError::Tls(io::ErrorKind::InvalidData.into()), "connection", FailureCode::Undeliverable, false),
            (Stage::Greeting, SessionError::NoStartTls, "connection", FailureCode::Undeliverable, false),
            (Stage::Login, SessionError::NoAuth, "connection", FailureCode::CredentialsInvalid, false),
            (Stage::Mail, lost(), "connection", FailureCode::Undeliverable, true),
            (Stage::Data, lost(), "connection", FailureCode::Undeliverable, true),
            (Stage::Rcpt, SessionError::TimedOut(Duration::from_secs(5)), "connection", FailureCode::Undeliverable, false),
            (Stage::Content, lost(), "message", FailureCode::Undeliverable, false),
            (Stage::Answer, lost(), "unknown", FailureCode::UnknownOutcome, false),
            (Stage::Answer, SessionError::TimedOut(Duration::from_secs(5)), "unknown", FailureCode::UnknownOutcome, false),
            (Stage::Answer, SessionError::Garbled("x".into()), "unknown", FailureCode::UnknownOutcome, false),
            (Stage::Mail, SessionError::TooLarge { size: 2, limit: 1 }, "rejected", FailureCode::ContentRejected, false),
            (Stage::Mail, SessionError::NoUtf8(NonAscii::Envelope), "rejected", FailureCode::InvalidRecipient, false),
            (Stage::Mail, SessionError::Refused(reply("421 bye")), "connection", FailureCode::RateLimited, true),
            (Stage::Mail, SessionError::Refused(reply("550 no")), "rejected", FailureCode::ProviderRejected, true),
            (Stage::Mail, SessionError::Refused(reply("451 later")), "message", FailureCode::Undeliverable, false),
            (Stage::Rcpt, SessionError::Refused(reply("550 no")), "rejected", FailureCode::InvalidRecipient, false),
            (Stage::Answer, SessionError::Refused(reply("421 bye")), "connection", FailureCode::RateLimited, false),
        ] {
            let failed = Failed { stage, fault };
            assert_eq!(short(&outcome(&failed, "relay:25")), (what, code), "{failed:?}");
            assert_eq!(failed.was_stale(), stale, "{failed:?}");
            assert_eq!(failed.is_of_relay(), what == "connection" && failed.stage < Stage::Content, "{failed:?}");
        }
    }

    #[test]
    fn what_to_do_is_explained() {
        let text = |stage, fault| explain(&Failed { stage, fault }, "relay.example:25");
        let reply_to = || SessionError::NoUtf8(NonAscii::ReplyTo("jörg@example.net".to_owned()));
        assert!(text(Stage::Mail, reply_to()).starts_with("replyTo \"jörg@example.net\" has characters beyond ASCII"));
        let refused = outcome(&Failed { stage: Stage::Mail, fault: reply_to() }, "relay.example:25");
        assert_eq!(short(&refused), ("rejected", FailureCode::ContentRejected));
        let tls = |why: &str| text(Stage::Greeting, SessionError::Tls(io::Error::other(format!("invalid peer certificate: {why}"))));
        assert!(tls("Other(OtherError(CaUsedAsEndEntity))").contains("install one for relay.example with basicConstraints=CA:FALSE"));
        assert!(tls("UnknownIssuer").contains("UnknownIssuer") && tls("UnknownIssuer").contains("tls_ca"));
    }

    #[test]
    fn what_the_relay_said_is_kept() {
        let Outcome::Rejected { failure } = refused(Stage::Rcpt, &reply("550 5.1.1 No such user|5.1.1 here\x07")) else { panic!() };
        assert_eq!(
            failure,
            Failure { code: FailureCode::InvalidRecipient, provider_code: Some("550 5.1.1".into()), message: "No such user here ".into() }
        );
        let Outcome::Rejected { failure } = refused(Stage::Rcpt, &reply(&format!("550 {}", "é".repeat(900)))) else { panic!() };
        assert_eq!((failure.provider_code.as_deref(), failure.message.chars().count()), (Some("550"), 500));
    }

    #[test]
    fn queue_ids() {
        for (line, id) in [
            ("250 2.0.0 Ok: queued as 4XyZ12abC", Some("4XyZ12abC")),
            ("250 Ok: queued as <20261121.abc@mx.example.org>", Some("20261121.abc@mx.example.org")),
            ("250 OK id=1tDabc-0001xY-2z", Some("1tDabc-0001xY-2z")),
            ("250 2.0.0 4ALBxYz1012345 Message accepted for delivery", Some("4ALBxYz1012345")),
            ("250 Ok 010001936f2c-6d1e-000000", Some("010001936f2c-6d1e-000000")),
            ("250 2.0.0 OK  1732190000 d2e1a72fcca58-724de - gsmtp", Some("d2e1a72fcca58-724de")),
            ("250 ok 1796033113 qp 4242", None),
            ("250 2.0.0 Ok: queued as 1796033113", Some("1796033113")),
            ("250 2.0.0 Queued", None),
            ("250 Ok thanks", None),
            ("250 OK", None),
            ("250 2.0.0", None),
        ] {
            assert_eq!(reply(line).queue_id().as_deref(), id, "{line}");
        }
        assert_eq!(accepted(&reply("250 OK"), "<a@b>"), Outcome::Accepted { refs: vec!["<a@b>".into()], cost: None });
    }
}
