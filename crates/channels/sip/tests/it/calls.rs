//! What goes over the line, and what the other side can do about it.

use std::sync::atomic::Ordering;
use std::time::Duration;

use nuncio_channel::{OptedOut, Outcome, ProviderEvent, ReceiptTarget, ResolvedAttachment, SendRequest};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::Content;
use nuncio_domain::{Channel, MessageType};
use serde_json::json;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpListener;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::carrier::{Act, Carrier, Deed, Got, OURS, SDP, Script, THEIRS, Talk, header, methods, sounds};
use crate::support::{Caller, NOW, PATIENCE, TO, short, speaker, tone};

pub(crate) fn answering(talk: Talk) -> Script {
    Script::new(Act::Answer(talk))
}

fn is_delivered(event: Option<ProviderEvent>, caller: &Caller) -> bool {
    let Some(ProviderEvent::Receipt { target, kind: ReceiptKind::Delivered, raw: None, .. }) = event else { return false };
    let ReceiptTarget::Attempt { message, attempt, .. } = target else { return false };
    message == caller.message.id && attempt == Some(2)
}

/// Samples of µ-law or A-law that are not silence, in packets of sound.
pub(crate) fn loud(packets: &[(usize, &[u8])]) -> usize {
    packets.iter().filter(|(_, packet)| packet[12..].iter().collect::<std::collections::BTreeSet<_>>().len() > 10).count()
}

#[tokio::test]
async fn a_message_is_said_and_delivered() {
    let mut carrier = Carrier::start(answering(Talk::listens())).await;
    let mut caller = Caller::new(carrier.port, json!({ "from": "+34910000000" }));
    let outcome = caller.send().await;
    let Outcome::Accepted { refs, cost: None } = &outcome else { panic!("{outcome:?}") };
    assert!(is_delivered(caller.told(), &caller));
    assert_eq!(caller.told(), None);
    let bye = carrier.until("BYE").await;
    assert_eq!(header(&bye, "Call-ID"), refs[0]);
    assert!(refs[0].starts_with("nuncio-") && refs[0].ends_with("-2") && !refs[0].contains('@'), "{refs:?}");
}

#[tokio::test]
async fn the_sound_keeps_its_pace_and_its_numbers() {
    let mut carrier = Carrier::start(answering(Talk::listens())).await;
    let caller = Caller::new(carrier.port, json!({ "repeat": 2, "number_format": "digits" }));
    let began = std::time::Instant::now();
    assert!(matches!(caller.send().await, Outcome::Accepted { .. }));
    let lasted = began.elapsed().as_millis();
    let got = carrier.heard(105).await;
    assert_eq!(methods(&got), ["OPTIONS", "INVITE", "ACK", "INVITE", "ACK", "BYE"], "the first INVITE is asked for the login");
    let Got::Sip(invite) = got.iter().rev().find(|g| matches!(g, Got::Sip(text) if text.starts_with("INVITE"))).unwrap() else { panic!() };
    assert!(invite.starts_with("INVITE sip:34600111222@127.0.0.1 SIP/2.0\r\n"), "{invite}");
    assert!(invite.contains("m=audio 3") && invite.contains("RTP/AVP 0 8 101\r\n"), "{invite}");
    let packets = sounds(&got);
    // Half a second of silence, 0.3 s of sound, a second of silence, 0.3 s of sound.
    assert_eq!((packets.len(), loud(&packets)), (25 + 15 + 50 + 15, 30));
    assert!((2_080..20_000).contains(&lasted), "the call took {lasted} ms");
    let numbers: Vec<_> =
        packets.iter().map(|(_, p)| (u16::from_be_bytes([p[2], p[3]]), u32::from_be_bytes([p[4], p[5], p[6], p[7]]))).collect();
    assert!(numbers.windows(2).all(|n| n[1] == (n[0].0.wrapping_add(1), n[0].1.wrapping_add(160))), "{numbers:?}");
    assert!(packets.iter().all(|(_, p)| p.len() == 172 && p[1] & 0x7F == 8), "20 ms of the codec that the answer chose");
    assert_eq!(packets.iter().filter(|(_, p)| p[1] & 0x80 != 0).count(), 1, "one marker");
}

/// A phone keeps little sound in store: what comes at once is lost.
#[tokio::test]
async fn after_a_pause_of_the_server_no_sound_is_hurried() {
    let mut carrier = Carrier::start(answering(Talk::listens())).await;
    let caller = Caller::new(carrier.port, json!({}));
    let began = std::time::Instant::now();
    let (outcome, ()) = tokio::join!(caller.send(), async {
        carrier.until_got(|got| matches!(got, Got::Sound(..))).await;
        // Both sides run in this thread.
        std::thread::sleep(Duration::from_secs(1));
    });
    let lasted = began.elapsed().as_millis();
    assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome:?}");
    // The first one is looked at already.
    let got = carrier.heard(39).await;
    assert_eq!((sounds(&got).len(), loud(&sounds(&got))), (39, 15));
    assert!(lasted >= 1_700, "0.8 s of sound and a pause of 1 s took {lasted} ms");
}

#[tokio::test]
async fn a_description_that_comes_before_the_answer_counts() {
    let mut carrier = Carrier::start(answering(Talk { early: true, ..Talk::listens() })).await;
    let caller = Caller::new(carrier.port, json!({}));
    assert!(matches!(caller.send().await, Outcome::Accepted { .. }));
    let got = carrier.heard(40).await;
    assert_eq!(loud(&sounds(&got)), 15);
    assert!(sounds(&got).iter().all(|(at, _)| *at == 0), "the source of early media does not count");
}

#[tokio::test]
async fn who_hangs_up_early_did_not_get_the_message_and_who_does_later_did() {
    let carrier = Carrier::start(answering(Talk::does(32, Deed::HangUp))).await;
    let mut caller = Caller::new(carrier.port, json!({ "tts_command": speaker(10_000) }));
    let outcome = caller.send().await;
    let (kind, code, _, text) = short(&outcome);
    assert_eq!((kind, code), ("rejected", "undeliverable"), "{outcome:?}");
    assert!(matches!(&outcome, Outcome::Rejected { failure } if failure.provider_code.as_deref() == Some("200")), "{outcome:?}");
    assert!(text.starts_with("the recipient hung up after 0.") && text.ends_with(" s of 10.0 s"), "{text}");
    assert_eq!(caller.told(), None);

    let carrier = Carrier::start(answering(Talk::does(60, Deed::HangUp))).await;
    let mut caller = Caller::new(carrier.port, json!({ "repeat": 3 }));
    assert!(matches!(caller.send().await, Outcome::Accepted { .. }));
    assert!(is_delivered(caller.told(), &caller));
}

#[tokio::test]
async fn one_says_it_again_and_nine_asks_for_no_more_calls() {
    let again = [Deed::Press(OURS, 1), Deed::Press(THEIRS, 1), Deed::Info('1')].map(|deed| async move {
        let mut carrier = Carrier::start(answering(Talk::does(30, deed))).await;
        let caller = Caller::new(carrier.port, json!({ "tts_command": speaker(2_000) }));
        assert!(matches!(caller.send().await, Outcome::Accepted { .. }));
        let heard = loud(&sounds(&carrier.got()));
        assert!((101..200).contains(&heard), "{deed:?}: 5 or so, and then 100; heard {heard}");
    });
    JoinSet::from_iter(again).join_all().await;
    for deed in [Deed::Press(OURS, 9), Deed::Press(THEIRS, 9), Deed::Info('9')] {
        let carrier = Carrier::start(answering(Talk::does(10, deed))).await;
        let mut caller = Caller::new(carrier.port, json!({}));
        assert!(matches!(caller.send().await, Outcome::Accepted { .. }), "{deed:?}");
        assert!(is_delivered(caller.told(), &caller));
        let Some(ProviderEvent::OptedOut(OptedOut { channel, from, .. })) = caller.told() else { panic!("{deed:?}") };
        assert_eq!((channel, from.as_str()), (Channel::Voice, TO));
    }
    let carrier = Carrier::start(answering(Talk::does(10, Deed::Press(OURS, 9)))).await;
    let mut caller = Caller::new(carrier.port, json!({ "keys": false }));
    assert!(matches!(caller.send().await, Outcome::Accepted { .. }));
    assert!(is_delivered(caller.told(), &caller));
    assert_eq!(caller.told(), None);
}

/// Does something `after` so many of 125 packets. Those that are sent some time after it go to the second port, all before to the first.
async fn assert_moves(after: usize, deed: Deed) {
    let mut carrier = Carrier::start(answering(Talk::does(after, deed))).await;
    let caller = Caller::new(carrier.port, json!({ "tts_command": speaker(2_000) }));
    assert!(matches!(caller.send().await, Outcome::Accepted { .. }));
    let got = carrier.heard(125).await;
    let mut packets = sounds(&got);
    // In the order in which they were sent: they are read from two sockets.
    let number = |packet: &[u8]| u16::from_be_bytes([packet[2], packet[3]]);
    let first = number(packets[0].1);
    packets.sort_by_key(|(_, packet)| number(packet).wrapping_sub(first).cast_signed());
    let ports: Vec<_> = packets.iter().map(|(at, _)| *at).collect();
    let moved = ports.iter().position(|at| *at == 1).expect("sound at the second port");
    assert!((after..75).contains(&moved) && ports[moved..].iter().all(|at| *at == 1), "{ports:?}");
}

#[tokio::test]
async fn sound_follows_the_call_when_it_is_moved() {
    assert_moves(5, Deed::Move).await;
}

/// The address of the answer may be translated on the way to another port.
#[tokio::test]
async fn sound_goes_back_to_where_the_phone_is_heard_from() {
    assert_moves(10, Deed::PressElsewhere(5)).await;
}

/// Ports for sound are open to everybody, and easily found.
#[tokio::test]
async fn bystanders_press_no_keys_and_get_no_sound() {
    let mut carrier = Carrier::start(answering(Talk::does(10, Deed::Bystanders(9)))).await;
    let mut caller = Caller::new(carrier.port, json!({}));
    assert!(matches!(caller.send().await, Outcome::Accepted { .. }));
    assert!(is_delivered(caller.told(), &caller));
    assert_eq!(caller.told(), None, "nobody asked for no more calls");
    let got = carrier.heard(40).await;
    let packets = sounds(&got);
    assert_eq!((packets.len(), packets.iter().filter(|(at, _)| *at == 1).count()), (40, 0), "all sound came to the phone's first port");
}

#[tokio::test]
async fn an_answer_without_a_codec_of_ours_ends_the_call() {
    const G729: &str = "v=0\r\nc=IN IP4 127.0.0.1\r\nm=audio PORT RTP/AVP 18\r\n";
    let mut carrier = Carrier::start(answering(Talk { sdp: G729, ..Talk::listens() })).await;
    let caller = Caller::new(carrier.port, json!({}));
    let outcome = caller.send().await;
    assert_eq!(short(&outcome).3, "the call was answered, but no sound can be sent: it accepts none of the offered codecs");
    carrier.until("BYE").await;
}

/// Whoever only has the API may use a trunk of theirs, but not to send packets into the operator's network.
#[tokio::test]
async fn sound_of_untrusted_accounts_goes_only_where_they_may_lead() {
    use crate::support::{account, services};
    use nuncio_channel_sip::Ports;
    use nuncio_net::{GuardPolicy, Network};

    const INSIDE: &str = "v=0\r\nc=IN IP4 10.1.2.3\r\nm=audio PORT RTP/AVP 0\r\n";
    let policy = GuardPolicy { allow_loopback: true, ..GuardPolicy::default() };
    let factory = nuncio_channel_sip::factory(Network::new(policy).unwrap(), Ports::default());
    let mut carrier = Carrier::start(answering(Talk { sdp: INSIDE, ..Talk::listens() })).await;
    let mut untrusted = account(carrier.port, json!({ "tts_command": null }));
    untrusted.trusted = false;
    let adapter = factory.open(&untrusted, &services().0).unwrap();
    let message = recording();
    let attachments = [attachment()];
    let request = SendRequest { message: &message, attempt: 0, channel: Channel::Voice, attachments: &attachments, now: NOW };
    let outcome = adapter.send(&request).await;
    let (kind, code, _, text) = short(&outcome);
    assert_eq!((kind, code), ("rejected", "provider_rejected"), "{outcome:?}");
    assert!(text.contains("10.1.2.3"), "{text}");
    carrier.until("BYE").await;
}

fn recording() -> nuncio_domain::message::Message {
    let mut message = Caller::new(1, json!({})).message;
    message.message_type = MessageType::Audio;
    message
}

fn attachment() -> ResolvedAttachment {
    ResolvedAttachment { filename: "a.wav".into(), content_type: "audio/wav".into(), content_id: None, bytes: tone(200) }
}

/// Serves one file, once.
async fn serve(content_type: &'static str, body: Vec<u8>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/sound", listener.local_addr().unwrap());
    tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.unwrap();
        let mut request = [0; 4_096];
        assert!(stream.read(&mut request).await.unwrap() > 0);
        let head =
            format!("HTTP/1.1 200 OK\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n", body.len());
        stream.write_all(head.as_bytes()).await.unwrap();
        stream.write_all(&body).await.unwrap();
    });
    url
}

#[tokio::test]
async fn recordings_are_played() {
    let mut carrier = Carrier::start(answering(Talk::listens())).await;
    let mut caller = Caller::new(carrier.port, json!({ "tts_command": "/nonexistent" }));
    caller.message = recording();
    caller.message.request_mut().content =
        Some(Box::new(Content { media_url: Some(serve("audio/x-wav", tone(200)).await), ..Content::default() }));
    assert!(matches!(caller.send().await, Outcome::Accepted { .. }));
    assert_eq!(loud(&sounds(&carrier.heard(35).await)), 10);

    let attachments = [attachment()];
    let request = SendRequest { message: &caller.message, attempt: 3, channel: Channel::Voice, attachments: &attachments, now: NOW };
    assert!(matches!(caller.adapter.send(&request).await, Outcome::Accepted { .. }), "an attachment goes before a link");
    assert_eq!(loud(&sounds(&carrier.heard(35).await)), 10);
}

/// Each may take some hundred megabytes of memory.
#[tokio::test]
async fn two_recordings_at_once_are_fetched() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let mut caller = Caller::new(1, json!({}));
    caller.message = recording();
    let media_url = Some(format!("http://{}/sound", listener.local_addr().unwrap()));
    caller.message.request_mut().content = Some(Box::new(Content { media_url, ..Content::default() }));
    let serves = async {
        for _ in 0..2 {
            let (mut one, mut two) = (listener.accept().await.unwrap().0, listener.accept().await.unwrap().0);
            // That something does not happen has no sign but time.
            assert!(timeout(Duration::from_millis(200), listener.accept()).await.is_err(), "a third is fetched");
            for stream in [&mut one, &mut two] {
                assert!(stream.read(&mut [0; 4_096]).await.unwrap() > 0);
                stream.write_all(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\nConnection: close\r\n\r\nID3").await.unwrap();
            }
        }
    };
    let (a, b, c, d, ()) = tokio::join!(caller.send(), caller.send(), caller.send(), caller.send(), serves);
    for outcome in [a, b, c, d] {
        assert_eq!(short(&outcome).1, "content_rejected", "{outcome:?}");
    }
}

#[tokio::test]
async fn what_cannot_be_said_is_refused_before_anybody_is_called() {
    let mut carrier = Carrier::start(answering(Talk::listens())).await;
    let mut caller = Caller::new(carrier.port, json!({ "max_call_seconds": 10 }));
    let link = |url| Some(Box::new(Content { media_url: Some(url), ..Content::default() }));
    for (content_type, body, text) in [
        ("audio/mpeg", b"ID3".to_vec(), "\"audio/mpeg\" cannot be played"),
        ("audio/wav", tone(10_000), "playing it takes 10.5 s; a call can last 10 s"),
    ] {
        caller.message = recording();
        caller.message.request_mut().content = link(serve(content_type, body).await);
        let outcome = caller.send().await;
        assert_eq!(short(&outcome).1, "content_rejected");
        assert!(short(&outcome).3.starts_with(text), "{outcome:?}");
    }
    caller.message.request_mut().content = None;
    assert_eq!(short(&caller.send().await).1, "attachment_unavailable");
    caller.message.message_type = MessageType::Buttons;
    assert_eq!(short(&caller.send().await).3, "a call cannot carry a message of type buttons");
    caller.message.message_type = MessageType::Text;
    caller.message.request_mut().text = Some(" ".into());
    assert_eq!(short(&caller.send().await).3, "the message has no text to speak");
    assert_eq!(carrier.got(), []);

    let voices = Caller::new(carrier.port, json!({ "tts_command": "cat {voice}" }));
    let mut message = voices.message.clone();
    message.request_mut().voice_language = Some("fil-PH".into());
    let request = SendRequest { message: &message, attempt: 0, channel: Channel::Voice, attachments: &[], now: NOW };
    assert_eq!(short(&voices.adapter.send(&request).await).3, "no voice speaks \"fil-PH\"");
}

/// A change of the connection ends the session too: who listens must not be called again.
#[tokio::test]
async fn a_session_that_ends_lets_calls_end_by_themselves_and_begins_none() {
    let mut carrier = Carrier::start(answering(Talk::listens())).await;
    let mut caller = Caller::new(carrier.port, json!({ "repeat": 2, "lines": 1 }));
    let (ask, run) = caller.run();
    carrier.until("OPTIONS").await;
    let (outcome, ()) = tokio::join!(caller.send(), async {
        carrier.until_got(|got| matches!(got, Got::Sound(..))).await;
        let (waiting, ()) = tokio::join!(caller.send(), async { ask.send(true).unwrap() });
        assert_eq!(short(&waiting), ("deferred", "undeliverable", None, "the session ended before the call was answered"));
        assert_eq!(short(&caller.send().await).0, "deferred", "nobody is called any more");
        assert!(!run.is_finished() && !methods(&carrier.got()).contains(&"BYE"), "the first call goes on");
    });
    assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome:?}");
    assert!(is_delivered(caller.told(), &caller));
    timeout(PATIENCE, run).await.expect("the session ends when its calls have").unwrap();
    assert_eq!(short(&caller.send().await).0, "deferred", "nor after the last call");
    assert!(!methods(&carrier.got()).contains(&"INVITE"));
}

#[tokio::test]
async fn a_session_that_ends_cancels_ringing() {
    let mut carrier = Carrier::start(Script::new(Act::Ring)).await;
    let caller = Caller::new(carrier.port, json!({}));
    let (ask, run) = caller.run();
    let (outcome, ()) = tokio::join!(caller.send(), async {
        carrier.until("ACK").await;
        carrier.until("INVITE").await;
        ask.send(true).unwrap();
    });
    assert_eq!(short(&outcome), ("deferred", "undeliverable", None, "the session ended before the call was answered"));
    carrier.until("CANCEL").await;
    timeout(PATIENCE, run).await.expect("the session ends").unwrap();
}

#[tokio::test]
async fn what_cannot_be_written_now_is_handed_over() {
    let carrier = Carrier::start(answering(Talk::listens())).await;
    let mut caller = Caller::new(carrier.port, json!({}));
    caller.sink.refuses.store(true, Ordering::SeqCst);
    assert!(matches!(caller.send().await, Outcome::Accepted { .. }));
    assert!(is_delivered(caller.told(), &caller));
}

/// A description says `0.0.0.0` where the sound goes to the trunk itself.
#[tokio::test]
async fn an_answer_that_names_no_address_means_the_trunk() {
    assert!(SDP.contains("PORT"));
    const NOWHERE: &str = "v=0\r\nc=IN IP4 0.0.0.0\r\nm=audio PORT RTP/AVP 0\r\n";
    let mut carrier = Carrier::start(answering(Talk { sdp: NOWHERE, ..Talk::listens() })).await;
    let caller = Caller::new(carrier.port, json!({}));
    assert!(matches!(caller.send().await, Outcome::Accepted { .. }));
    assert_eq!(loud(&sounds(&carrier.heard(40).await)), 15);
}
