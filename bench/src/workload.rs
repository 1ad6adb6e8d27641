//! Generates request bodies and recipients as a pure function of seed and number, so that runs are repeatable.

use std::io::Write as _;
use std::net::SocketAddr;

use crate::http::bearer;

/// First number of the pool, and first number outside it. All are valid Spanish mobile numbers; nothing is sent to them.
pub(crate) const POOL: u64 = 34_610_000_000;
const OUTSIDE: u64 = 34_620_000_000;
/// Maximum size of the pool.
pub(crate) const POOL_MAX: u64 = OUTSIDE - POOL;

/// Sender of SMS over SMPP.
pub(crate) const FROM: &str = "12345";
/// User name and password for both gateways.
pub(crate) const LOGIN: &str = "bench";
/// Precedes the number of a message in its text.
pub(crate) const TOKEN: &str = "benchtoken";
/// Digits of that number.
pub(crate) const TOKEN_DIGITS: usize = 12;

/// Recipients of the messages.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Recipients {
    /// A new number for each message.
    New,
    /// Drawn at random from this many numbers (1..=[`POOL_MAX`]).
    Pool(u64),
    /// The numbers of the pool in order, each once.
    Sweep,
}

/// The channel to send over.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Channel {
    Sms,
    Email,
}

/// API of the gateway under test.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Dialect {
    Nuncio,
    /// `sendsms` of Kannel, with a URL for delivery reports.
    Kannel {
        receipts: Option<SocketAddr>,
    },
}

/// What a run sends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Workload {
    pub(crate) dialect: Dialect,
    pub(crate) channel: Channel,
    pub(crate) recipients: Recipients,
    /// Whether each message has an idempotency key.
    pub(crate) idempotent: bool,
    pub(crate) seed: u64,
    /// Number of the first message; runs against one server must not overlap.
    pub(crate) first: u64,
    /// Messages per request. More than one use `POST /v1/messages/batch`.
    pub(crate) each: u64,
}

impl Workload {
    pub(crate) fn sms(recipients: Recipients, seed: u64) -> Self {
        Self { dialect: Dialect::Nuncio, channel: Channel::Sms, recipients, idempotent: false, seed, first: 0, each: 1 }
    }

    /// Writes request `n`, replacing the content of `request`. `body` is a scratch buffer.
    pub(crate) fn write_request(&self, n: u64, key: &str, body: &mut Vec<u8>, request: &mut Vec<u8>) {
        request.clear();
        if let Dialect::Kannel { receipts } = self.dialect {
            return self.write_sendsms(n, receipts, request);
        }
        body.clear();
        let path = if self.each > 1 { "/v1/messages/batch" } else { "/v1/messages" };
        if self.each > 1 {
            self.write_batch(n, body);
        } else {
            self.write(n, body);
        }
        let (auth, length) = (bearer(key), body.len());
        write!(request, "POST {path} HTTP/1.1\r\nHost: bench\r\n{auth}Content-Type: application/json\r\nContent-Length: {length}\r\n\r\n")
            .expect("writing to memory");
        request.extend_from_slice(body);
    }

    fn write_sendsms(&self, n: u64, receipts: Option<SocketAddr>, request: &mut Vec<u8>) {
        let (to, n) = (self.recipient(n), self.first + n);
        let callback = receipts.map(|addr| {
            let port = addr.port();
            // 1 requests receipts of delivered messages.
            format!("&dlr-mask=1&dlr-url=http%3A%2F%2F127.0.0.1%3A{port}%2F%3Fn%3D{n}")
        });
        write!(
            request,
            "GET /cgi-bin/sendsms?username={LOGIN}&password={LOGIN}&from={FROM}&to=%2B{to}\
             &text=Your+parcel+is+on+its+way+and+arrives+today.+{TOKEN}{n:0w$}{callback} HTTP/1.1\r\nHost: bench\r\n\r\n",
            w = TOKEN_DIGITS,
            callback = callback.unwrap_or_default(),
        )
        .expect("writing to memory");
    }

    fn write_batch(&self, n: u64, body: &mut Vec<u8>) {
        body.extend_from_slice(br#"{"messages":["#);
        for message in n * self.each..(n + 1) * self.each {
            self.write(message, body);
            body.push(b',');
        }
        body.pop();
        body.extend_from_slice(b"]}");
    }

    /// Appends message `n` to `body`.
    pub(crate) fn write(&self, n: u64, body: &mut Vec<u8>) {
        let (to, n) = (self.recipient(n), self.first + n);
        let written = match self.channel {
            Channel::Sms => write!(body, r#"{{"to":"+{to}","channel":"sms","#),
            Channel::Email => write!(body, r#"{{"to":"r{to}@example.net","channel":"email","subject":"Your order {n}","#),
        };
        written.expect("writing to memory");
        if self.idempotent {
            write!(body, r#""idempotencyKey":"bench-{n}","#).expect("writing to memory");
        }
        write!(body, r#""text":"Your parcel is on its way and arrives today. {TOKEN}{n:0w$}"}}"#, w = TOKEN_DIGITS)
            .expect("writing to memory");
    }

    fn recipient(&self, n: u64) -> u64 {
        match self.recipients {
            Recipients::New => OUTSIDE + self.first + n,
            Recipients::Pool(size) => POOL + mix(self.seed ^ mix(self.first + n)) % size,
            Recipients::Sweep => POOL + n,
        }
    }
}

/// SplitMix64's finaliser: spreads neighbouring numbers evenly.
fn mix(n: u64) -> u64 {
    let z = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    fn recipients(recipients: Recipients, seed: u64) -> Vec<u64> {
        let work = Workload::sms(recipients, seed);
        (0..10_000).map(|n| work.recipient(n)).collect()
    }

    #[test]
    fn a_seed_decides_the_recipients() {
        assert_eq!(recipients(Recipients::Pool(1000), 1), recipients(Recipients::Pool(1000), 1));
        assert_ne!(recipients(Recipients::Pool(1000), 1), recipients(Recipients::Pool(1000), 2));
    }

    #[test]
    fn a_pool_is_drawn_from_evenly_and_never_left() {
        let drawn = recipients(Recipients::Pool(100), 7);
        let pool: HashSet<u64> = drawn.iter().copied().collect();
        assert_eq!(pool, (POOL..POOL + 100).collect());
        let first = drawn.iter().filter(|&&r| r == POOL).count();
        assert!((50..200).contains(&first), "{first} of 10,000 draws from 100");
    }

    #[test]
    fn new_recipients_are_new_even_beside_the_pool() {
        let mut all: HashSet<u64> = recipients(Recipients::New, 1).into_iter().collect();
        assert_eq!(all.len(), 10_000);
        all.extend(recipients(Recipients::Sweep, 1));
        assert_eq!(all.len(), 20_000);
    }

    #[test]
    fn bodies_are_the_json_that_the_interface_wants() {
        let mut work = Workload::sms(Recipients::Sweep, 1);
        let mut body = Vec::new();
        work.write(5, &mut body);
        let sms: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(sms["to"], "+34610000005");
        assert_eq!(sms["channel"], "sms");
        assert!(sms["text"].as_str().unwrap().ends_with("benchtoken000000000005"));
        assert!(sms.get("idempotencyKey").is_none());

        work.each = 2;
        let (mut request, mut body) = (Vec::new(), b"left over".to_vec());
        work.write_request(3, "key", &mut body, &mut request);
        let batch: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(batch["messages"].as_array().map(Vec::len), Some(2));
        assert_eq!(batch["messages"][1]["to"], "+34610000007");

        work = Workload { channel: Channel::Email, idempotent: true, first: 100, ..work };
        body.clear();
        work.write(5, &mut body);
        let mail: serde_json::Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(mail["to"], "r34610000005@example.net");
        assert_eq!(mail["idempotencyKey"], "bench-105");
        assert!(mail["subject"].is_string());
    }
}
