//! Assigns behaviours to recipients.

use nuncio_domain::Channel;

/// Outcome of messages to a recipient.
///
/// | behaviour | phone `+1<area>55500NN` and chat id `9000000NN` | local part of an email address |
/// |---|---|---|
/// | [`Invalid`](Self::Invalid) | 01 | `invalid` |
/// | [`Undeliverable`](Self::Undeliverable) | 02 | `bounce` |
/// | [`TimesOutOnce`](Self::TimesOutOnce) | 03 | `delay` |
/// | [`ThrottlesOnce`](Self::ThrottlesOnce) | 04 | `throttle` |
/// | [`Silent`](Self::Silent) | 05 | `sent` |
/// | [`Replies`](Self::Replies) | 06 | `reply` |
/// | [`Stops`](Self::Stops) | 07 | `unsubscribe` |
/// | [`UnknownOnce`](Self::UnknownOnce) | 08 | `unknown` |
/// | [`Reads`](Self::Reads) | 10 | |
/// | [`Resumes`](Self::Resumes) | 11 | `subscribe` |
/// | [`AsksForHelp`](Self::AsksForHelp) | 12 | `help` |
/// | [`Blocks`](Self::Blocks) | 13 | `blocked` |
/// | [`RefusesContent`](Self::RefusesContent) | 14 | `rejected` |
/// | [`Late`](Self::Late) | 15 | `late` |
/// | [`Corrects`](Self::Corrects) | 16 | `corrected` |
/// | [`TimesOut`](Self::TimesOut) | 17 | `expired` |
/// | [`Complains`](Self::Complains) | | `complaint` |
///
/// `<area>` is any three digits. A local part may carry a `+suffix`; it has its meaning at `example.com`, `example.org`,
/// `example.net` (RFC 2606 §3) and under `.test` (RFC 2606 §2) only. Later attempts of a behaviour that ends in `Once` succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Behaviour {
    /// Accepted and delivered at once.
    Plain,
    /// Does not exist.
    Invalid,
    /// Unreachable. A messaging app refuses the message at once, and its SMS fallback is delivered; any other channel accepts the message
    /// and reports a failure later. An email bounces permanently, so that no further email is sent.
    Undeliverable,
    /// Accepted; delivered 30 s later.
    Late,
    /// The first attempt times out.
    TimesOutOnce,
    /// The first attempt is deferred for 2 s.
    ThrottlesOnce,
    /// Accepted, without a receipt.
    Silent,
    /// Delivered, and replies with the first 100 characters of the text.
    Replies,
    /// Delivered, and replies `STOP`; by email `unsubscribe`.
    Stops,
    /// Like [`Self::Stops`], and later replies `START`; by email `subscribe`.
    Resumes,
    /// Delivered, and replies `HELP`.
    AsksForHelp,
    /// Delivered, and read on channels whose providers report that.
    Reads,
    /// Has blocked the sender. The SMS fallback of a messaging app is delivered.
    Blocks,
    /// The provider refuses the content. The SMS fallback of a messaging app is delivered.
    RefusesContent,
    /// Accepted, reported as failed, and 30 s later as delivered.
    Corrects,
    /// Every attempt times out.
    TimesOut,
    /// The outcome of the first attempt is unknown.
    UnknownOnce,
    /// Delivered, and complains.
    Complains,
}

impl Behaviour {
    /// Returns the behaviour of `to`, in canonical form, on `channel`.
    pub fn of(channel: Channel, to: &str) -> Self {
        match channel {
            Channel::Email => email(to),
            Channel::Telegram | Channel::Instagram => chat(to.as_bytes()),
            Channel::Sms | Channel::SmsOneway | Channel::Whatsapp | Channel::Voice => phone(to.as_bytes()),
        }
    }
}

fn phone(to: &[u8]) -> Behaviour {
    match to {
        [b'+', b'1', _, _, _, b'5', b'5', b'5', b'0', b'0', tens, ones] => numbered([*tens, *ones]),
        _ => Behaviour::Plain,
    }
}

fn chat(to: &[u8]) -> Behaviour {
    match to {
        [b'9', b'0', b'0', b'0', b'0', b'0', b'0', tens, ones] => numbered([*tens, *ones]),
        _ => Behaviour::Plain,
    }
}

const fn numbered(digits: [u8; 2]) -> Behaviour {
    match &digits {
        b"01" => Behaviour::Invalid,
        b"02" => Behaviour::Undeliverable,
        b"03" => Behaviour::TimesOutOnce,
        b"04" => Behaviour::ThrottlesOnce,
        b"05" => Behaviour::Silent,
        b"06" => Behaviour::Replies,
        b"07" => Behaviour::Stops,
        b"08" => Behaviour::UnknownOnce,
        b"10" => Behaviour::Reads,
        b"11" => Behaviour::Resumes,
        b"12" => Behaviour::AsksForHelp,
        b"13" => Behaviour::Blocks,
        b"14" => Behaviour::RefusesContent,
        b"15" => Behaviour::Late,
        b"16" => Behaviour::Corrects,
        b"17" => Behaviour::TimesOut,
        _ => Behaviour::Plain,
    }
}

fn email(to: &str) -> Behaviour {
    let Some((local, domain)) = to.rsplit_once('@') else { return Behaviour::Plain };
    if !matches!(domain, "example.com" | "example.org" | "example.net") && !domain.ends_with(".test") {
        return Behaviour::Plain;
    }
    match local.split_once('+').map_or(local, |(name, _)| name) {
        "invalid" => Behaviour::Invalid,
        "bounce" => Behaviour::Undeliverable,
        "delay" => Behaviour::TimesOutOnce,
        "throttle" => Behaviour::ThrottlesOnce,
        "sent" => Behaviour::Silent,
        "reply" => Behaviour::Replies,
        "unsubscribe" => Behaviour::Stops,
        "unknown" => Behaviour::UnknownOnce,
        "subscribe" => Behaviour::Resumes,
        "help" => Behaviour::AsksForHelp,
        "blocked" => Behaviour::Blocks,
        "rejected" => Behaviour::RefusesContent,
        "late" => Behaviour::Late,
        "corrected" => Behaviour::Corrects,
        "expired" => Behaviour::TimesOut,
        "complaint" => Behaviour::Complains,
        _ => Behaviour::Plain,
    }
}
