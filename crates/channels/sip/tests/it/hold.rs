//! Offers within a call: the direction of sound, and calls on hold.

use nuncio_channel::{Outcome, ProviderEvent};
use serde_json::json;
use tokio::time::{Duration, advance, pause, resume};

use crate::calls::{answering, loud};
use crate::carrier::{Carrier, Deed, Got, OURS, THEIRS, Talk, sounds};
use crate::support::{Caller, short, speaker};

/// Does these after 30 packets, in the middle of the message.
fn midway(deeds: &'static [Deed]) -> Talk {
    Talk::does(30, Deed::InTurn(deeds))
}

#[tokio::test]
async fn who_is_on_hold_misses_nothing() {
    use Deed::Offer;
    const OFFERS: &[Deed] = &[Offer("sendonly"), Offer("inactive"), Offer("recvonly"), Offer("sendrecv"), Offer("sendrecv")];
    let mut carrier = Carrier::start(answering(midway(OFFERS))).await;
    let caller = Caller::new(carrier.port, json!({ "listen_seconds": 1 }));
    assert!(matches!(caller.send().await, Outcome::Accepted { .. }));
    let got = carrier.heard(25 + 15 + 50).await;
    let answers: Vec<_> = got.iter().filter_map(|g| if let Got::Answer(text) = g { Some(text.trim_end()) } else { None }).collect();
    let agreed: Vec<_> = answers
        .iter()
        .map(|text| (text.split_once("o=nuncio ").unwrap().1.split(' ').nth(1).unwrap(), text.rsplit_once("a=").unwrap().1))
        .collect();
    assert_eq!(agreed, [("2", "recvonly"), ("3", "inactive"), ("4", "sendonly"), ("5", "sendrecv"), ("5", "sendrecv")]);
    let packets = sounds(&got);
    assert_eq!((packets.len(), loud(&packets)), (25 + 15 + 50, 15), "nothing is lost");
    let times: Vec<_> = packets.iter().map(|(_, p)| (u32::from_be_bytes([p[4], p[5], p[6], p[7]]), p[1] & 0x80 != 0)).collect();
    let pauses: Vec<_> =
        times.windows(2).map(|t| (t[1].0.wrapping_sub(t[0].0) / 160, t[1].1)).filter(|pause| *pause != (1, false)).collect();
    // It lasts 300 ms, or longer; while the whole process stands still, packets are not counted.
    assert!(matches!(pauses[..], [(5.., true)]), "one pause, and a marker after it: {pauses:?}");
}

#[tokio::test]
async fn who_asks_for_an_offer_gets_one() {
    let mut carrier = Carrier::start(answering(midway(&[Deed::Ask]))).await;
    let caller = Caller::new(carrier.port, json!({ "listen_seconds": 1 }));
    assert!(matches!(caller.send().await, Outcome::Accepted { .. }));
    let got = carrier.heard(25 + 15 + 50).await;
    let offer = got.iter().find_map(|g| if let Got::Answer(text) = g { Some(text) } else { None }).expect("an offer");
    assert!(offer.contains("RTP/AVP 8 101\r\n") && offer.contains("a=sendrecv\r\n"), "{offer}");
    assert_eq!(loud(&sounds(&got)), 15, "the message goes on");
}

#[tokio::test]
async fn what_is_said_to_nobody_is_not_heard() {
    use Deed::{HangUp, Offer};
    const ON_HOLD: Deed = Offer("inactive");
    // For 1.2 s at least: longer than the rest of the message.
    const DEEDS: &[Deed] = &[ON_HOLD, ON_HOLD, ON_HOLD, ON_HOLD, ON_HOLD, ON_HOLD, ON_HOLD, ON_HOLD, HangUp];
    let carrier = Carrier::start(answering(midway(DEEDS))).await;
    let mut caller = Caller::new(carrier.port, json!({ "tts_command": speaker(900) }));
    let outcome = caller.send().await;
    assert_eq!(short(&outcome).0, "rejected", "{outcome:?}");
    assert!(short(&outcome).3.starts_with("the recipient hung up after 0."), "{outcome:?}");
    assert_eq!(caller.told(), None);
}

#[tokio::test]
async fn calls_on_hold_end_in_time() {
    let mut carrier = Carrier::start(answering(midway(&[Deed::Offer("sendonly")]))).await;
    let caller = Caller::new(carrier.port, json!({ "max_call_seconds": 10, "tts_command": speaker(5_000) }));
    let (outcome, ()) = tokio::join!(caller.send(), async {
        carrier.until_got(|got| matches!(got, Got::Answer(_))).await;
        pause();
        advance(Duration::from_secs(10)).await;
        resume();
    });
    assert_eq!(short(&outcome).0, "unknown", "{outcome:?}");
    carrier.until("BYE").await;
}

#[tokio::test]
async fn keys_end_calls_on_hold() {
    for deeds in [&[Deed::Offer("sendonly"), Deed::Press(OURS, 9)], &[Deed::Offer("sendonly"), Deed::Press(THEIRS, 9)]] {
        let carrier = Carrier::start(answering(midway(deeds))).await;
        let mut caller = Caller::new(carrier.port, json!({ "tts_command": speaker(5_000) }));
        assert!(matches!(caller.send().await, Outcome::Accepted { .. }), "{deeds:?}");
        assert!(matches!(caller.told(), Some(ProviderEvent::Receipt { .. })), "{deeds:?}");
        assert!(matches!(caller.told(), Some(ProviderEvent::OptedOut(_))), "{deeds:?}");
    }
}
