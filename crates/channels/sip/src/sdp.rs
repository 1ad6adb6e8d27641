//! Describes the sound of a call: SDP (RFC 4566) as an offer and its answer (RFC 3264).

use std::net::IpAddr;

use audio_codec::CodecType;

/// Payload type that we offer for key presses.
pub(crate) const KEYS: u8 = 101;

/// Encoding of sound. Both are static payload types (RFC 3551 §6).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Codec {
    /// G.711 µ-law.
    Pcmu,
    /// G.711 A-law.
    Pcma,
}

impl Codec {
    /// Its number in RTP.
    pub(crate) const fn payload_type(self) -> u8 {
        match self {
            Self::Pcmu => 0,
            Self::Pcma => 8,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Pcmu => "PCMU",
            Self::Pcma => "PCMA",
        }
    }

    /// Samples of 8 kHz as they go over the line, a byte each.
    pub(crate) fn encode(self, samples: &[i16]) -> Vec<u8> {
        let codec = match self {
            Self::Pcmu => CodecType::PCMU,
            Self::Pcma => CodecType::PCMA,
        };
        audio_codec::create_encoder(codec).encode(samples)
    }
}

/// Which way sound goes, as the author of a description sees it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Direction {
    SendRecv,
    SendOnly,
    RecvOnly,
    Inactive,
}

impl Direction {
    const fn name(self) -> &'static str {
        match self {
            Self::SendRecv => "sendrecv",
            Self::SendOnly => "sendonly",
            Self::RecvOnly => "recvonly",
            Self::Inactive => "inactive",
        }
    }

    /// The direction in a line such as `a=sendonly`.
    fn read(line: &str) -> Option<Self> {
        let name = line.strip_prefix("a=")?;
        [Self::SendRecv, Self::SendOnly, Self::RecvOnly, Self::Inactive].into_iter().find(|direction| direction.name() == name)
    }

    /// The same as the other side sees it, which is the answer to an offer (RFC 3264 §6.1).
    pub(crate) const fn mirrored(self) -> Self {
        match self {
            Self::SendOnly => Self::RecvOnly,
            Self::RecvOnly => Self::SendOnly,
            Self::SendRecv | Self::Inactive => self,
        }
    }

    /// Whether the author receives sound.
    pub(crate) const fn receives(self) -> bool {
        matches!(self, Self::SendRecv | Self::RecvOnly)
    }
}

/// Our side of a call, whose sound is sent to `ip` and `port`.
#[derive(Debug)]
pub(crate) struct Own {
    ip: IpAddr,
    port: u16,
    session: u64,
    version: u64,
    /// The last description, after its version.
    last: String,
}

impl Own {
    pub(crate) const fn new(ip: IpAddr, port: u16, session: u64) -> Self {
        Self { ip, port, session, version: 0, last: String::new() }
    }

    /// Returns our description. An offer lists all `codecs`, best first. The version is new if the description differs from the one before:
    /// peers may skip one whose version they know (RFC 3264 §8).
    pub(crate) fn describe(&mut self, codecs: &[Codec], direction: Direction) -> String {
        let Self { ip, port, session, .. } = *self;
        let (family, direction) = (if ip.is_ipv4() { "IP4" } else { "IP6" }, direction.name());
        let numbers: String = codecs.iter().map(|c| format!("{} ", c.payload_type())).collect();
        let maps: String = codecs.iter().map(|c| format!("a=rtpmap:{} {}/8000\r\n", c.payload_type(), c.name())).collect();
        let rest = format!(
            "s=-\r\nc=IN {family} {ip}\r\nt=0 0\r\nm=audio {port} RTP/AVP {numbers}{KEYS}\r\n\
             {maps}a=rtpmap:{KEYS} telephone-event/8000\r\na=fmtp:{KEYS} 0-15\r\na=ptime:20\r\na={direction}\r\n"
        );
        if rest != self.last {
            self.version += 1;
            self.last = rest;
        }
        format!("v=0\r\no=nuncio {session} {} IN {family} {ip}\r\n{}", self.version, self.last)
    }
}

/// The other side's description.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Answer {
    /// Target of sound: an address, or a name.
    pub(crate) host: String,
    /// And the port there.
    pub(crate) port: u16,
    pub(crate) codec: Codec,
    /// Payload type of key presses, if supported.
    pub(crate) keys: Option<u8>,
    pub(crate) direction: Direction,
}

/// Parses a description.
pub(crate) fn read(text: &str, codecs: &[Codec]) -> Result<Answer, &'static str> {
    let lines = || text.lines().map(str::trim_end);
    let is_media = |line: &str| line.starts_with("m=");
    // Uses the first accepted audio stream; a stream extends to the next one.
    let (index, port, numbers) = lines()
        .enumerate()
        .find_map(|(index, line)| audio(line).filter(|(port, _)| *port != 0).map(|(port, numbers)| (index, port, numbers)))
        .ok_or("it accepts no sound")?;
    let stream = || lines().skip(index + 1).take_while(|line| !is_media(line));
    let session = || lines().take_while(|line| !is_media(line));
    let host = stream().find_map(host).or_else(|| session().find_map(host)).ok_or("it has no target for sound")?;
    let codec = numbers
        .split_ascii_whitespace()
        .find_map(|number| codecs.iter().find(|codec| number.parse() == Ok(codec.payload_type())))
        .ok_or("it accepts none of the offered codecs")?;
    let direction = stream().find_map(Direction::read).or_else(|| session().find_map(Direction::read)).unwrap_or(Direction::SendRecv);
    Ok(Answer { host: host.to_owned(), port, codec: *codec, keys: stream().find_map(keys), direction })
}

/// Port and payload types of `m=audio 49170 RTP/AVP 0 8 101`.
fn audio(line: &str) -> Option<(u16, &str)> {
    let (port, rest) = line.strip_prefix("m=audio ")?.split_once(' ')?;
    let port = port.split('/').next()?.parse().ok()?;
    Some((port, rest.strip_prefix("RTP/AVP ")?))
}

/// The address of `c=IN IP4 192.0.2.1`, without the lifetime of a multicast one.
fn host(line: &str) -> Option<&str> {
    let (family, address) = line.strip_prefix("c=IN ")?.split_once(' ')?;
    let host = address.split(['/', ' ']).next().filter(|host| !host.is_empty())?;
    matches!(family, "IP4" | "IP6").then_some(host)
}

/// The payload type of `a=rtpmap:101 telephone-event/8000`.
fn keys(line: &str) -> Option<u8> {
    let (number, name) = line.strip_prefix("a=rtpmap:")?.split_once(' ')?;
    let known = name.trim_start().get(..16).is_some_and(|name| name.eq_ignore_ascii_case("telephone-event/"));
    number.parse().ok().filter(|number| known && *number < 128)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const BOTH: &[Codec] = &[Codec::Pcmu, Codec::Pcma];

    #[test]
    fn an_offer_names_codecs_best_first() {
        let text = Own::new("192.0.2.7".parse().unwrap(), 10_000, 5).describe(&[Codec::Pcma, Codec::Pcmu], Direction::SendRecv);
        assert!(text.contains("\r\nc=IN IP4 192.0.2.7\r\nt=0 0\r\nm=audio 10000 RTP/AVP 8 0 101\r\na=rtpmap:8 PCMA/8000\r\n"), "{text}");
        assert!(text.ends_with("a=ptime:20\r\na=sendrecv\r\n"));
        let text = Own::new("2001:db8::1".parse().unwrap(), 1, 1).describe(BOTH, Direction::SendRecv);
        assert!(text.contains("c=IN IP6 2001:db8::1\r\n"), "{text}");
    }

    #[test]
    fn a_description_that_differs_has_the_next_version() {
        let mut own = Own::new("192.0.2.7".parse().unwrap(), 10_000, 5);
        for (codecs, direction, version, line) in [
            (BOTH, Direction::SendRecv, 1, "a=sendrecv"),
            (&BOTH[..1], Direction::SendRecv, 2, "a=sendrecv"),
            (&BOTH[..1], Direction::SendRecv, 2, "a=sendrecv"),
            (&BOTH[..1], Direction::RecvOnly, 3, "a=recvonly"),
            (&BOTH[..1], Direction::SendRecv, 4, "a=sendrecv"),
        ] {
            let text = own.describe(codecs, direction);
            assert!(text.starts_with(&format!("v=0\r\no=nuncio 5 {version} IN IP4 192.0.2.7\r\n")), "{text}");
            assert_eq!(text.lines().last(), Some(line));
        }
    }

    #[test]
    fn the_direction_of_the_stream_precedes_the_sessions() {
        use Direction::{Inactive, RecvOnly, SendOnly, SendRecv};
        for (session, stream, direction, mirrored, receives) in [
            ("", "", SendRecv, SendRecv, true),
            ("", "a=sendonly\r\n", SendOnly, RecvOnly, false),
            ("a=inactive\r\n", "", Inactive, Inactive, false),
            ("a=inactive\r\n", "a=recvonly\r\n", RecvOnly, SendOnly, true),
            ("", "m=video 6 RTP/AVP 9\r\na=inactive\r\n", SendRecv, SendRecv, true),
        ] {
            let read = read(&format!("c=IN IP4 192.0.2.1\r\n{session}m=audio 8 RTP/AVP 0\r\n{stream}"), BOTH).unwrap().direction;
            assert_eq!((read, read.mirrored(), read.receives()), (direction, mirrored, receives), "{session}{stream}");
        }
    }

    #[test]
    fn answers_of_all_shapes() {
        let answer =
            |host: &str, port, codec, keys| Ok(Answer { host: host.to_owned(), port, codec, keys, direction: Direction::SendRecv });
        for (text, wanted) in [
            (
                "v=0\r\no=- 1 1 IN IP4 198.51.100.1\r\ns=-\r\nc=IN IP4 198.51.100.1\r\nt=0 0\r\nm=audio 4000 RTP/AVP 8 96\r\n\
                 a=rtpmap:96 telephone-event/8000\r\n",
                answer("198.51.100.1", 4_000, Codec::Pcma, Some(96)),
            ),
            // The stream's address takes precedence over the session's; CR is optional.
            ("c=IN IP4 10.0.0.1\nm=audio 4002/2 RTP/AVP 0\nc=IN IP4 192.0.2.9\n", answer("192.0.2.9", 4_002, Codec::Pcmu, None)),
            ("c=IN IP6 2001:db8::2\r\nm=audio 4 RTP/AVP 0\r\n", answer("2001:db8::2", 4, Codec::Pcmu, None)),
            ("c=IN IP4 224.2.36.42/127\r\nm=audio 4 RTP/AVP 0\r\n", answer("224.2.36.42", 4, Codec::Pcmu, None)),
            ("c=IN IP4 media.example.org\r\nm=audio 4 RTP/AVP 0\r\n", answer("media.example.org", 4, Codec::Pcmu, None)),
            (
                "c=IN IP4 192.0.2.1\r\nm=video 6 RTP/AVP 0\r\nm=audio 0 RTP/AVP 0\r\nm=audio 8 RTP/AVP 0\r\n",
                answer("192.0.2.1", 8, Codec::Pcmu, None),
            ),
            // Other streams' attributes do not count.
            (
                "c=IN IP4 192.0.2.1\r\nm=audio 8 RTP/AVP 0\r\nm=video 6 RTP/AVP 9\r\nc=IN IP4 9.9.9.9\r\na=rtpmap:101 telephone-event/8000\r\n",
                answer("192.0.2.1", 8, Codec::Pcmu, None),
            ),
            ("c=IN IP4 192.0.2.1\r\nm=audio 8 RTP/AVP 18 3\r\n", Err("it accepts none of the offered codecs")),
            ("c=IN IP4 192.0.2.1\r\nm=audio 8 RTP/SAVP 0\r\n", Err("it accepts no sound")),
            ("c=IN IP4 192.0.2.1\r\nm=audio 0 RTP/AVP 0\r\n", Err("it accepts no sound")),
            ("c=IN IP4 192.0.2.1\r\nm=audio 70000 RTP/AVP 0\r\n", Err("it accepts no sound")),
            ("m=audio 8 RTP/AVP 0\r\n", Err("it has no target for sound")),
            ("", Err("it accepts no sound")),
        ] {
            assert_eq!(read(text, BOTH), wanted, "{text}");
        }
        assert!(read("c=IN IP4 192.0.2.1\r\nm=audio 8 RTP/AVP 0\r\n", &[Codec::Pcma]).is_err(), "a codec that was not offered");
    }

    proptest! {
        #[test]
        fn no_text_breaks_the_parser(text in "(?s).{0,400}") {
            let _ = read(&text, BOTH);
        }

        #[test]
        fn no_lines_break_the_parser(lines in proptest::collection::vec(
            prop_oneof!["[vosctma]=.{0,60}", "m=audio [0-9]{0,6}(/[0-9])? RTP/AVP( [0-9]{0,4}){0,4}", "c=IN IP[46] .{0,30}", "a=rtpmap:.{0,30}"],
            0..12,
        )) {
            if let Ok(answer) = read(&lines.join("\r\n"), BOTH) {
                prop_assert!(answer.port != 0 && !answer.host.is_empty() && answer.keys.is_none_or(|keys| keys < 128));
            }
        }

        #[test]
        fn our_own_descriptions_are_read(ip in any::<std::net::IpAddr>(), port in 1_u16.., first in any::<bool>()) {
            let codecs = if first { [Codec::Pcmu, Codec::Pcma] } else { [Codec::Pcma, Codec::Pcmu] };
            let direction = Direction::Inactive;
            let answer = read(&Own::new(ip, port, 1).describe(&codecs, direction), BOTH).unwrap();
            prop_assert_eq!(answer, Answer { host: ip.to_string(), port, codec: codecs[0], keys: Some(KEYS), direction });
        }
    }
}
