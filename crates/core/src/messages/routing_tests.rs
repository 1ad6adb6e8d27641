use nuncio_domain::{ConnectionId, Redacted, SenderId, Timestamp, id::Id as _};

use super::*;

fn connection(channel: Channel) -> Connection {
    Connection {
        id: ConnectionId::from_uuid(Default::default()),
        sender: SenderId::from_uuid(Default::default()),
        channel,
        kind: "sim".to_owned(),
        settings: serde_json::Map::new(),
        sealed: Redacted::new(Vec::new()),
        trusted: false,
        throttle: None,
        updated_at: Timestamp::default(),
    }
}

fn sender() -> Sender {
    Sender {
        id: SenderId::from_uuid(Default::default()),
        name: "desk".to_owned(),
        phone_number: String::new(),
        is_default: true,
        email_receiving_enabled: false,
        allowed_countries: Vec::new(),
        daily_spend_limit: None,
        updated_at: Timestamp::default(),
    }
}

/// Picks between SMS at 5 and WhatsApp at 2, with what happened to each.
fn picked(sms: (i64, i64), whatsapp: (i64, i64), explores: bool, dice: u16) -> Channel {
    let connections = [connection(Channel::Sms), connection(Channel::Whatsapp)];
    let costs = [5, 2].map(|micros| Cost { fee: nuncio_domain::Micros(micros), ..Cost::default() });
    let candidates: Vec<_> = connections
        .iter()
        .zip(costs)
        .zip([sms, whatsapp])
        .map(|((connection, cost), own)| Candidate {
            connection,
            cost: Some(cost),
            estimate: Estimate::new(own, (0, 0)),
            last_inbound_at: None,
        })
        .collect();
    let (sender, to) = (sender(), Parsed::Phone("+34600111222".to_owned()));
    let asked = Asked {
        sender: &sender,
        to: &to,
        channel: RequestedChannel::Auto,
        message_type: MessageType::Text,
        text: "x",
        words: "x",
        media_is_bound: false,
        country: "ES",
        quantity: Quantity { segments: 1, spoken: 1 },
        explores,
        dice,
        now: Timestamp::default(),
        approved: true,
    };
    pick(&candidates, &asked).0.channel()
}

#[test]
fn exploring_is_rare_and_only_among_good_channels() {
    let tried = |sms, whatsapp, explores| (0..6_400).filter(|dice| picked(sms, whatsapp, explores, *dice) == Channel::Sms).count();
    assert_eq!(tried((0, 0), (0, 0), true), 100, "one in 64");
    assert_eq!(tried((0, 0), (0, 0), false), 0, "never without a fallback");
    assert_eq!(tried((0, 9), (0, 0), true), 0, "never by a channel that fails");
    assert_eq!(tried((0, 0), (0, 9), true), 6_400, "the only good one");
}

#[test]
fn a_call_plays_recordings_and_names_places() {
    assert_eq!(degraded(Channel::Voice, MessageType::Audio), None);
    assert_eq!(degraded(Channel::Voice, MessageType::Location).as_deref(), Some("voice: the place is read aloud as its name and address"));
    assert_eq!(degraded(Channel::Sms, MessageType::Audio).as_deref(), Some("sms: the media goes as a link"));
}
