//! Builds submissions from messages, and outcomes from responses. Pure.

use std::borrow::Cow;
use std::time::Duration;

use nuncio_channel::{Outcome, SendRequest, sms};
use nuncio_domain::Timestamp;
use nuncio_domain::id::Id as _;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::sms::Encoding;

use crate::config::{Config, Validity};
use crate::session::{Reply, RequestError};
use crate::status::OwnStatuses;
use crate::wire::{Body, Envelope, id};
use crate::{address, parts, status};

/// A message, ready to go out.
#[derive(Debug)]
pub(crate) struct Draft<'a> {
    pub(crate) envelope: Envelope<'a>,
    pub(crate) bodies: Vec<Body>,
}

impl<'a> Draft<'a> {
    /// Fails with why the message cannot go out.
    pub(crate) fn new(request: &SendRequest<'_>, config: &'a Config) -> Result<Self, Failure> {
        let message = request.message;
        let text = sms::text(request)?;
        let source = match &config.from {
            Some(from) => Cow::Borrowed(from),
            None => Cow::Owned(
                address::outgoing(&message.from, config.short_code)
                    .map_err(|fault| Failure::own(FailureCode::ProviderRejected, format!("the sender cannot be used: {fault}")))?,
            ),
        };
        let destination =
            address::outgoing(&message.to, config.short_code).map_err(|fault| Failure::own(FailureCode::InvalidRecipient, fault))?;
        // The end of a UUIDv7 is random, and the same in every attempt.
        let [.., high, low] = *message.id.uuid().as_bytes();
        let (encoding, bodies) = parts::bodies(&text, config.marking, u16::from_be_bytes([high, low]))
            .map_err(|parts::TooLong| Failure::own(FailureCode::ContentRejected, "the text takes more than 255 short messages"))?;
        let envelope = Envelope {
            service_type: &config.service_type,
            source,
            destination,
            validity: validity(config.validity, request.now, message.state.expires_at),
            registered_delivery: config.registered_delivery,
            data_coding: if encoding == Encoding::Gsm7 { config.gsm7 } else { config.ucs2 },
        };
        Ok(Self { envelope, bodies })
    }
}

/// A point in time, or a span, as SMPP 3.4 §7.1.1 writes it. A span is cut to 99 days, and is a second at least.
fn validity(how: Validity, now: Timestamp, end: Timestamp) -> String {
    match how {
        Validity::Unsaid => String::new(),
        Validity::Relative => {
            let left = end.since(now).clamp(Duration::from_secs(1), Duration::from_secs(99 * 86_400)).as_secs();
            let (days, of_day) = (left / 86_400, left % 86_400);
            format!("0000{days:02}{:02}{:02}{:02}000R", of_day / 3_600, of_day / 60 % 60, of_day % 60)
        }
        Validity::Absolute => {
            // 2026-11-21T10:00:00.000Z
            let digits: String = end.to_string().chars().filter(char::is_ascii_digit).skip(2).take(12).collect();
            format!("{digits}000+")
        }
    }
}

/// Result of submitting one segment.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Taken {
    /// The SMSC has it, under this id.
    Yes(Option<String>),
    /// It refused it.
    No(Outcome),
    /// It never left.
    NotSent(String),
    /// Unknown outcome.
    Unclear(String),
}

impl Config {
    /// Evaluates the response to a submit_sm.
    pub(crate) fn judge(&self, reply: Result<Reply, RequestError>) -> Taken {
        match judge(reply, &self.statuses) {
            Taken::Yes(id) => Taken::Yes(id.map(|id| self.ids.of_answer(&id))),
            taken => taken,
        }
    }
}

fn judge(reply: Result<Reply, RequestError>, own: &OwnStatuses) -> Taken {
    match reply {
        Ok(Reply { id, status: status::OK, message_id }) if id == id::SUBMIT_SM | id::ANSWER => Taken::Yes(message_id),
        Ok(Reply { id: id::GENERIC_NACK, status, .. }) if status != status::OK => Taken::No(status::outcome(status, own)),
        Ok(Reply { id, status, .. }) if id == id::SUBMIT_SM | id::ANSWER => Taken::No(status::outcome(status, own)),
        Ok(_) => Taken::Unclear("the SMSC answered something else".to_owned()),
        Err(RequestError::NotSent(why)) => Taken::NotSent(why),
        Err(RequestError::NoResponse(why)) => Taken::Unclear(why),
    }
}

/// Returns the outcome on a message that may have been sent.
pub(crate) fn unknown(why: String, refs: Vec<String>) -> Outcome {
    Outcome::Unknown { failure: Failure::own(FailureCode::UnknownOutcome, why), refs }
}

/// How much of a message the SMSC has accepted.
#[derive(Clone, Debug)]
pub(crate) struct Progress {
    /// Number of segments accepted.
    pub(crate) taken: usize,
    /// Number of all segments.
    pub(crate) total: usize,
    /// The SMSC's ids of those accepted.
    pub(crate) refs: Vec<String>,
}

impl Progress {
    /// Counts another segment.
    pub(crate) fn take(&mut self, id: Option<String>) {
        self.taken += 1;
        self.refs.extend(id);
    }

    /// Whether some segments were accepted, and others are left.
    pub(crate) const fn is_partial(&self) -> bool {
        self.taken > 0 && self.taken < self.total
    }

    /// Returns the outcome on a message whose next segment was `stopped`. If that one was rejected, repeating the message would only repeat,
    /// and charge, the segments before it.
    pub(crate) fn partial(self, stopped: Taken) -> Outcome {
        let Self { taken, total, refs } = self;
        let told = |why: &str| format!("the SMSC took {taken} of {total} parts; then: {why}");
        match stopped {
            Taken::No(Outcome::Rejected { failure }) => {
                Outcome::Rejected { failure: Failure { message: told(&failure.message), ..failure } }
            }
            Taken::No(Outcome::Deferred { failure, .. }) => unknown(told(&failure.message), refs),
            Taken::NotSent(why) | Taken::Unclear(why) => unknown(told(&why), refs),
            Taken::No(_) | Taken::Yes(_) => unknown(told("it was stopped"), refs),
        }
    }

    /// Returns the outcome on a message after a late response to its next segment, after which no more were sent. `None` if it says nothing.
    pub(crate) fn late(mut self, response: Taken) -> Option<Outcome> {
        match response {
            Taken::Yes(id) => {
                self.take(id);
                let stopped = || Taken::Unclear("the response to the last of these came too late".to_owned());
                let is_whole = self.taken == self.total;
                Some(if is_whole { Outcome::Accepted { refs: self.refs, cost: None } } else { self.partial(stopped()) })
            }
            Taken::No(outcome) if self.taken == 0 => Some(outcome),
            refused @ Taken::No(_) => Some(self.partial(refused)),
            Taken::NotSent(_) | Taken::Unclear(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp::from_millis(1_795_255_200_000); // 2026-11-21T10:00:00Z

    #[test]
    fn validity_as_the_specification_writes_it() {
        let after = |seconds| NOW.plus(Duration::from_secs(seconds));
        for (how, end, text) in [
            (Validity::Relative, after(86_400), "000001000000000R"),
            (Validity::Relative, after(7 * 86_400 + 3_661), "000007010101000R"),
            (Validity::Relative, NOW.minus(Duration::from_secs(5)), "000000000001000R"),
            (Validity::Relative, after(500 * 86_400), "000099000000000R"),
            (Validity::Absolute, after(90), "261121100130000+"),
            (Validity::Unsaid, after(90), ""),
        ] {
            assert_eq!(validity(how, NOW, end), text);
            assert!(text.is_empty() || text.len() == 16);
        }
    }

    fn refused(status: u32) -> Outcome {
        status::outcome(status, &OwnStatuses::default())
    }

    #[test]
    fn answers() {
        let judge = |reply| judge(reply, &OwnStatuses::default());
        let reply = |id, status, message_id: Option<&str>| judge(Ok(Reply { id, status, message_id: message_id.map(str::to_owned) }));
        let resp = id::SUBMIT_SM | id::ANSWER;
        assert_eq!(reply(resp, 0, Some("7")), Taken::Yes(Some("7".into())));
        assert_eq!(reply(resp, 0, None), Taken::Yes(None));
        assert_eq!(reply(resp, 0x0B, Some("7")), Taken::No(refused(0x0B)));
        assert_eq!(reply(id::GENERIC_NACK, 0x02, None), Taken::No(refused(0x02)));
        for strange in
            [reply(id::GENERIC_NACK, 0, None), reply(id::DELIVER_SM | id::ANSWER, 0, None), reply(id::DELIVER_SM | id::ANSWER, 8, None)]
        {
            assert!(matches!(strange, Taken::Unclear(_)), "{strange:?}");
        }
        assert_eq!(judge(Err(RequestError::NotSent("x".into()))), Taken::NotSent("x".into()));
        assert_eq!(judge(Err(RequestError::NoResponse("x".into()))), Taken::Unclear("x".into()));
    }

    #[test]
    fn a_message_that_is_half_out_says_so() {
        let progress = Progress { taken: 2, total: 3, refs: vec!["a".into(), "b".into()] };
        let outcome = progress.partial(Taken::No(refused(0x58)));
        let Outcome::Unknown { failure, refs } = outcome else { panic!("{outcome:?}") };
        assert_eq!(refs, ["a", "b"]);
        assert!(
            failure.message.starts_with("the SMSC took 2 of 3 parts; then: the SMSC refused it: the account sends faster"),
            "{failure:?}"
        );
    }
}
