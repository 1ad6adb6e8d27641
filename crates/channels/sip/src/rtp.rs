//! Packets of sound and of key presses: RTP (RFC 3550 §5.1) and telephone events (RFC 4733 §2.3).

use std::io;
use std::net::{IpAddr, SocketAddr};

use nuncio_domain::Entropy;
use tokio::net::UdpSocket;

use crate::sdp;

/// Samples in a packet: 20 ms at 8 kHz, the default of G.711 (RFC 3551 §4.5.14).
pub(crate) const FRAME: usize = 160;
const HEADER: usize = 12;

/// Header state of outgoing packets.
#[derive(Clone, Debug)]
pub(crate) struct Stream {
    payload_type: u8,
    sequence: u16,
    timestamp: u32,
    source: u32,
    first: bool,
}

impl Stream {
    /// Starts a stream at random numbers, as required by RFC 3550 §5.1.
    pub(crate) fn new(payload_type: u8, entropy: &dyn Entropy) -> Self {
        let mut random = [0; 10];
        entropy.fill(&mut random);
        let [a, b, c, d, e, f, g, h, i, j] = random;
        Self {
            payload_type,
            sequence: u16::from_be_bytes([a, b]),
            timestamp: u32::from_be_bytes([c, d, e, f]),
            source: u32::from_be_bytes([g, h, i, j]),
            first: true,
        }
    }

    /// The next packet, of one frame of G.711.
    pub(crate) fn packet(&mut self, sound: &[u8]) -> Vec<u8> {
        let mut packet = Vec::with_capacity(HEADER + sound.len());
        // The marker bit starts a talk spurt (RFC 3551 §4.1).
        packet.extend([0x80, self.payload_type | if self.first { 0x80 } else { 0 }]);
        packet.extend(self.sequence.to_be_bytes());
        packet.extend(self.timestamp.to_be_bytes());
        packet.extend(self.source.to_be_bytes());
        packet.extend(sound);
        self.first = false;
        self.sequence = self.sequence.wrapping_add(1);
        self.timestamp = self.timestamp.wrapping_add(sound.len() as u32);
        packet
    }

    /// Lets the time of one frame pass without a packet: timestamps are a clock (RFC 3550 §5.1).
    pub(crate) const fn skip(&mut self) {
        self.timestamp = self.timestamp.wrapping_add(FRAME as u32);
        self.first = true;
    }
}

/// A received packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Packet<'a> {
    /// Payload type, from 0 to 127.
    pub(crate) payload_type: u8,
    /// When it was made, on a clock of the sender's.
    pub(crate) timestamp: u32,
    /// Payload without padding.
    pub(crate) payload: &'a [u8],
}

impl<'a> Packet<'a> {
    /// Parses a datagram; `None` if it is not RTP.
    pub(crate) fn read(datagram: &'a [u8]) -> Option<Self> {
        let (head, rest) = datagram.split_first_chunk::<HEADER>()?;
        if head[0] >> 6 != 2 {
            return None;
        }
        let sources = usize::from(head[0] & 0x0F) * 4;
        let mut payload = rest.get(sources..)?;
        if head[0] & 0x10 != 0 {
            let (extension, more) = payload.split_first_chunk::<4>()?;
            payload = more.get(usize::from(u16::from_be_bytes([extension[2], extension[3]])) * 4..)?;
        }
        if head[0] & 0x20 != 0 {
            let padding = usize::from(*payload.last()?);
            payload = payload.get(..payload.len().checked_sub(padding)?)?;
        }
        let timestamp = u32::from_be_bytes([head[4], head[5], head[6], head[7]]);
        Some(Self { payload_type: head[1] & 0x7F, timestamp, payload })
    }
}

/// Returns the key of a telephone event; `None` for other events.
fn key(payload: &[u8]) -> Option<char> {
    match *payload.first_chunk::<4>()? {
        [event @ 0..=9, ..] => Some(char::from(b'0' + event)),
        [10, ..] => Some('*'),
        [11, ..] => Some('#'),
        [event @ 12..=15, ..] => Some(char::from(b'A' + event - 12)),
        _ => None,
    }
}

/// Detects key presses: each consists of many packets.
#[derive(Clone, Debug)]
pub(crate) struct Keys {
    /// Payload type in the other side's description. It should use ours (RFC 3264 §5.1), but not every peer does.
    pub(crate) theirs: Option<u8>,
    last: Option<u32>,
}

impl Keys {
    /// Detects keys with our payload type and this one.
    pub(crate) const fn new(theirs: Option<u8>) -> Self {
        Self { theirs, last: None }
    }

    /// Returns the key if `packet` is its first one. All packets of a press have the same timestamp.
    pub(crate) fn press(&mut self, packet: &Packet<'_>) -> Option<char> {
        let is_event = packet.payload_type == sdp::KEYS || self.theirs == Some(packet.payload_type);
        if !is_event || self.last == Some(packet.timestamp) {
            return None;
        }
        let key = key(packet.payload)?;
        self.last = Some(packet.timestamp);
        Some(key)
    }
}

/// Opens a socket on one of the even ports from `low` to `high`, beginning with one chosen by chance.
pub(crate) async fn bind(ip: IpAddr, (low, high): (u16, u16), entropy: &dyn Entropy) -> io::Result<UdpSocket> {
    let first = u32::from(low).next_multiple_of(2);
    let count = (u32::from(high) + 2).saturating_sub(first) / 2;
    let start = entropy.below(u64::from(count.max(1))) as u32;
    let mut refused = io::Error::from(io::ErrorKind::AddrInUse);
    for step in 0..count {
        let port = (first + (start + step) % count * 2) as u16;
        match UdpSocket::bind(SocketAddr::new(ip, port)).await {
            Ok(socket) => return Ok(socket),
            Err(error) => refused = error,
        }
    }
    Err(refused)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[derive(Debug)]
    struct Zero;

    impl Entropy for Zero {
        fn fill(&self, out: &mut [u8]) {
            out.fill(0xFF);
        }

        fn below(&self, _: u64) -> u64 {
            0
        }
    }

    #[test]
    fn a_stream_counts_and_wraps() {
        let mut stream = Stream::new(8, &Zero);
        let (one, two) = (stream.packet(&[0xD5; FRAME]), stream.packet(&[0xD5; FRAME]));
        assert_eq!(one[..12], [0x80, 0x88, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF, 0xFF], "marker, payload type 8");
        assert_eq!(two[..8], [0x80, 0x08, 0, 0, 0, 0, 0, 159], "sequence and timestamp went on past their ends");
        stream.skip();
        let three = stream.packet(&[0xD5; FRAME]);
        assert_eq!(three[..8], [0x80, 0x88, 0, 1, 0, 0, 1, 223], "after a pause: a marker, the next number, a later time");
        assert_eq!(one.len(), 172);
        assert_eq!(Packet::read(&one).unwrap().payload, [0xD5; FRAME]);
    }

    #[test]
    fn a_key_is_told_once_however_many_packets_it_comes_in() {
        let mut keys = Keys::new(Some(96));
        let mut press = |timestamp, payload_type, payload: &[u8]| keys.press(&Packet { payload_type, timestamp, payload });
        assert_eq!(press(160, 101, &[9, 0x0A, 0, 160]), Some('9'));
        assert_eq!(press(160, 101, &[9, 0x0A, 1, 64]), None, "it goes on");
        assert_eq!(press(160, 101, &[9, 0x8A, 1, 224]), None, "its end");
        assert_eq!(press(4_000, 101, &[9, 0x0A, 0, 160]), Some('9'), "pressed again");
        assert_eq!(press(5_000, 101, &[11, 0x0A, 0, 160]), Some('#'));
        assert_eq!(press(6_000, 101, &[36, 0x0A, 0, 160]), None, "a fax tone is no key");
        assert_eq!(press(7_000, 0, &[1, 0x0A, 0, 160]), None, "sound is no key");
        assert_eq!(press(8_000, 101, &[1, 0x0A]), None, "cut off");
        assert_eq!(press(9_000, 96, &[1, 0x0A, 0, 160]), Some('1'), "their number");
        assert_eq!(press(10_000, 97, &[1, 0x0A, 0, 160]), None, "an unknown number");
    }

    #[test]
    fn headers_of_all_shapes() {
        let head = |first: u8| [first, 101, 0, 1, 0, 0, 0, 7, 0, 0, 0, 1];
        let with = |first, rest: &[u8]| [&head(first)[..], rest].concat();
        for (datagram, payload) in [
            (with(0x80, &[1, 2]), Some(&[1_u8, 2][..])),
            (with(0x81, &[9, 9, 9, 9, 1, 2]), Some(&[1, 2][..])),
            (with(0x90, &[0, 0, 0, 1, 9, 9, 9, 9, 1]), Some(&[1][..])),
            (with(0xA0, &[1, 2, 0, 2]), Some(&[1, 2][..])),
            (with(0xA0, &[1, 9]), None),
            (with(0x40, &[1]), None),
            (with(0x90, &[0, 0, 9, 9, 1]), None),
            (with(0x8F, &[1]), None),
            (vec![0x80; 11], None),
        ] {
            assert_eq!(Packet::read(&datagram).map(|p| p.payload), payload, "{datagram:?}");
        }
    }

    proptest! {
        #[test]
        fn no_datagram_breaks_the_parser(datagram in proptest::collection::vec(any::<u8>(), 0..300)) {
            if let Some(packet) = Packet::read(&datagram) {
                prop_assert!(packet.payload.len() + HEADER <= datagram.len());
                let _ = Keys::new(Some(packet.payload_type)).press(&packet);
            }
        }

        #[test]
        fn what_is_written_is_read(payload_type in 0_u8..128, sound in proptest::collection::vec(any::<u8>(), 0..300)) {
            let mut stream = Stream::new(payload_type, &Zero);
            let bytes = stream.packet(&sound);
            let packet = Packet::read(&bytes).unwrap();
            prop_assert_eq!((packet.payload_type, packet.payload), (payload_type, &sound[..]));
        }
    }

    /// An even port that is free, like the even one after it. Below those that the system gives away by itself.
    fn two_even_ports() -> u16 {
        let is_free = |port: u16| std::net::UdpSocket::bind(("127.0.0.1", port)).is_ok();
        // Another run of the tests begins elsewhere.
        let first = 20_000 + (std::process::id() % 500) as u16 * 4;
        (first..24_000).step_by(4).find(|port| is_free(*port) && is_free(port + 2)).expect("free ports")
    }

    #[tokio::test]
    async fn ports_are_even_within_the_range_and_may_run_out() {
        let ip = IpAddr::from([127, 0, 0, 1]);
        let even = two_even_ports();
        let socket = bind(ip, (even - 1, even + 1), &Zero).await.unwrap();
        assert_eq!(socket.local_addr().unwrap().port(), even);
        assert_eq!(bind(ip, (even - 1, even + 1), &Zero).await.unwrap_err().kind(), io::ErrorKind::AddrInUse);
        let _next = bind(ip, (even - 1, even + 2), &Zero).await.unwrap();
    }
}
