//! Which recipient does what.

use nuncio_domain::Channel;

/// What becomes of messages to a recipient.
///
/// | behaviour | phone `+1<area>555000N` and chat id `90000000N` | local part of an email address |
/// |---|---|---|
/// | [`Invalid`](Self::Invalid) | 1 | `invalid` |
/// | [`Undeliverable`](Self::Undeliverable) | 2 | `bounce` |
/// | [`TimesOutOnce`](Self::TimesOutOnce) | 3 | |
/// | [`ThrottlesOnce`](Self::ThrottlesOnce) | 4 | `throttle` |
/// | [`Silent`](Self::Silent) | 5 | `sent` |
/// | [`Replies`](Self::Replies) | 6 | `reply` |
/// | [`Stops`](Self::Stops) | 7 | |
/// | [`UnknownOnce`](Self::UnknownOnce) | 8 | `unknown` |
/// | [`Late`](Self::Late) | | `delay` |
/// | [`Unsubscribes`](Self::Unsubscribes) | | `unsubscribe` |
/// | [`Complains`](Self::Complains) | | `complaint` |
///
/// `<area>` is any three digits. A local part may carry a `+suffix`; it has its meaning at `example.com`, `example.org`,
/// `example.net` (RFC 2606 §3) and under `.test` (RFC 2606 §2) only. Later attempts of a behaviour that ends in `Once` succeed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Behaviour {
    /// Takes everything, and says at once that it arrived.
    Plain,
    /// Does not exist.
    Invalid,
    /// Cannot be reached. A messaging app refuses the message at once, and the SMS that it falls back to arrives; any other channel
    /// takes the message and tells later that it failed.
    Undeliverable,
    /// Takes the message, and says 30 s later that it arrived.
    Late,
    /// The first attempt times out.
    TimesOutOnce,
    /// The first attempt is told to come back in 2 s.
    ThrottlesOnce,
    /// Takes the message and says nothing more.
    Silent,
    /// Gets the message and answers with the first 100 characters of its text.
    Replies,
    /// Gets the message and answers `STOP`.
    Stops,
    /// Gets the message and answers `unsubscribe`.
    Unsubscribes,
    /// Nobody can tell what became of the first attempt.
    UnknownOnce,
    /// Gets the message and complains about it.
    Complains,
}

impl Behaviour {
    /// What becomes of messages to `to`, in canonical form, by `channel`.
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
        [b'+', b'1', _, _, _, b'5', b'5', b'5', b'0', b'0', b'0', n] => numbered(*n),
        _ => Behaviour::Plain,
    }
}

fn chat(to: &[u8]) -> Behaviour {
    match to {
        [b'9', b'0', b'0', b'0', b'0', b'0', b'0', b'0', n] => numbered(*n),
        _ => Behaviour::Plain,
    }
}

const fn numbered(digit: u8) -> Behaviour {
    match digit {
        b'1' => Behaviour::Invalid,
        b'2' => Behaviour::Undeliverable,
        b'3' => Behaviour::TimesOutOnce,
        b'4' => Behaviour::ThrottlesOnce,
        b'5' => Behaviour::Silent,
        b'6' => Behaviour::Replies,
        b'7' => Behaviour::Stops,
        b'8' => Behaviour::UnknownOnce,
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
        "delay" => Behaviour::Late,
        "throttle" => Behaviour::ThrottlesOnce,
        "sent" => Behaviour::Silent,
        "reply" => Behaviour::Replies,
        "unsubscribe" => Behaviour::Unsubscribes,
        "unknown" => Behaviour::UnknownOnce,
        "complaint" => Behaviour::Complains,
        _ => Behaviour::Plain,
    }
}
