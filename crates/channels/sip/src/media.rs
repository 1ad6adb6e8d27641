//! The sound of a call: sent at its own pace, while key presses and requests are listened to.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use nuncio_domain::Entropy;
use nuncio_net::Network;
use tokio::net::UdpSocket;
use tokio::time::{Instant, MissedTickBehavior, interval, sleep_until};

use crate::keys::Script;
use crate::rtp::{Keys, Packet, Stream};
use crate::sdp::{self, Answer, Codec, Direction, Own};
use crate::trunk::{Call, Event};

/// Every so often a packet is sent.
const PACE: Duration = Duration::from_millis(20);
/// More packets than wait in a socket.
const WAITING: usize = 1_000;

/// How a conversation ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum End {
    /// Played to the end.
    Said,
    /// The other side hung up.
    HungUp,
    /// Took too long.
    TooLong,
}

/// Restricts the addresses that sound is sent to.
#[derive(Clone, Debug)]
pub(crate) struct Guard {
    pub(crate) net: Network,
    /// Whether the provider can be in the operator's own network.
    pub(crate) trusted: bool,
    /// The trunk, used if an answer has no address of its own (`0.0.0.0`).
    pub(crate) trunk: SocketAddr,
}

impl Guard {
    /// Returns the address for sound, if it is permitted.
    pub(crate) async fn permit(&self, host: &str, port: u16) -> Result<SocketAddr, String> {
        let trunk = self.trunk.ip().to_string();
        let host = if matches!(host, "0.0.0.0" | "::") { &trunk } else { host };
        let found = self.net.resolve(self.trusted, host, port).await.map_err(|error| error.to_string())?;
        found.into_iter().find(|to| to.is_ipv4() == self.trunk.is_ipv4()).ok_or_else(|| format!("{host} is out of reach"))
    }
}

/// The sound of one call.
#[derive(Debug)]
pub(crate) struct Media {
    socket: UdpSocket,
    guard: Guard,
    to: SocketAddr,
    codec: Codec,
    stream: Stream,
    keys: Keys,
    /// Where the other side's sound comes from. After the first packet, other sources are ignored.
    heard: Option<SocketAddr>,
    /// Whether the other side receives sound. If not, the call is on hold.
    receives: bool,
    own: Own,
}

impl Media {
    /// Makes the sound stream as agreed, if its target is permitted.
    pub(crate) async fn new(socket: UdpSocket, guard: Guard, answer: &Answer, own: Own, entropy: &dyn Entropy) -> Result<Self, String> {
        let to = guard.permit(&answer.host, answer.port).await?;
        // Early media may have come from a source that is gone by now.
        for _ in 0..WAITING {
            if socket.try_recv_from(&mut [0; 2_048]).is_err() {
                break;
            }
        }
        let stream = Stream::new(answer.codec.payload_type(), entropy);
        let (keys, receives) = (Keys::new(answer.keys), answer.direction.receives());
        Ok(Self { socket, guard, to, codec: answer.codec, stream, keys, heard: None, receives, own })
    }

    /// Plays `script` until it ends, the other side hangs up, or at `deadline`. On hold, the script waits.
    pub(crate) async fn talk(&mut self, script: &mut Script, call: &mut Call, deadline: Instant) -> End {
        let mut pace = interval(PACE);
        // After a pause of the server, the sound goes on where it was: packets sent all at once would be lost in the phone's small buffer.
        pace.set_missed_tick_behavior(MissedTickBehavior::Skip);
        let mut datagram = [0; 2_048];
        loop {
            tokio::select! {
                _ = pace.tick() => {
                    // A key can end a call on hold too.
                    if !self.receives && !script.is_opted_out() {
                        self.stream.skip();
                        continue;
                    }
                    let Some(frame) = script.next_frame() else { return End::Said };
                    let packet = self.stream.packet(frame);
                    // Lost packets are not resent, as on any telephone line.
                    self.socket.send_to(&packet, self.to).await.ok();
                }
                received = self.socket.recv_from(&mut datagram) => {
                    if let Some(key) = self.listen(received, &datagram) {
                        script.press(key);
                    }
                }
                event = call.event() => match event {
                    Event::HungUp => return End::HungUp,
                    Event::Key(key) => script.press(key),
                    Event::Moved(description, answering) => match self.follow(&description).await {
                        Ok(ours) => answering.agree(ours).await,
                        Err(_) => answering.refuse().await,
                    },
                },
                () = sleep_until(deadline) => return End::TooLong,
            }
        }
    }

    /// Returns the key in a datagram. The first sound reveals the other side's real address behind NAT. Only datagrams from the trunk and
    /// from the host of the answer are trusted.
    fn listen(&mut self, received: io::Result<(usize, SocketAddr)>, datagram: &[u8]) -> Option<char> {
        let (length, from) = received.ok()?;
        let packet = Packet::read(&datagram[..length])?;
        let is_known = match self.heard {
            Some(heard) => from == heard,
            None => from.ip() == self.to.ip() || from.ip() == self.guard.trunk.ip(),
        };
        if !is_known {
            return None;
        }
        (self.heard, self.to) = (Some(from), from);
        self.keys.press(&packet)
    }

    /// Follows an offer. Returns the answer; or our offer, if we are asked for one.
    async fn follow(&mut self, description: &str) -> Result<String, String> {
        if description.is_empty() {
            return Ok(self.own.describe(&[self.codec], Direction::SendRecv));
        }
        let answer = sdp::read(description, &[self.codec])?;
        self.to = self.guard.permit(&answer.host, answer.port).await?;
        (self.heard, self.keys.theirs, self.receives) = (None, answer.keys, answer.direction.receives());
        Ok(self.own.describe(&[self.codec], answer.direction.mirrored()))
    }
}
