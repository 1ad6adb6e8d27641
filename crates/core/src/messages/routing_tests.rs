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

/// Picks between SMS at price 5 and WhatsApp at 2, with their successes and failures.
fn picked(sms: (i64, i64), whatsapp: (i64, i64), explores: bool, dice: u16) -> Channel {
    let connections = [Channel::Sms, Channel::Whatsapp].map(|channel| Arc::new(connection(channel)));
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
        sends_at: Timestamp::default(),
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
fn what_a_channel_carries_in_another_form_is_told() {
    let told =
        |channel, message_type| degraded(channel, message_type).map(|told| told.split_once(": ").map_or("", |(_, what)| what).to_owned());
    let cases = [
        (Channel::Whatsapp, MessageType::Template, None),
        (Channel::Telegram, MessageType::Template, Some("the template is sent as its text")),
        (Channel::Telegram, MessageType::List, None),
        (Channel::Instagram, MessageType::Image, None),
        (Channel::Instagram, MessageType::Location, Some("the location is sent as its name and a link to a map")),
        (Channel::Instagram, MessageType::List, Some("the options are sent as a numbered list with quick replies")),
        (Channel::Email, MessageType::Contact, Some("the contact cards are sent as text and as a vCard file")),
        (Channel::Voice, MessageType::Audio, None),
        (Channel::Voice, MessageType::Location, Some("the location is spoken as its name and address")),
        (Channel::Sms, MessageType::Video, Some("the media is sent as a link")),
        (Channel::SmsOneway, MessageType::CtaUrl, Some("the button is sent as a link")),
    ];
    for (channel, message_type, expected) in cases {
        assert!(carries(channel, message_type));
        assert_eq!(told(channel, message_type).as_deref(), expected, "{message_type} by {channel}");
    }
    // These types are rejected on all channels except the apps, not degraded.
    for channel in [Channel::Sms, Channel::SmsOneway, Channel::Email, Channel::Voice] {
        assert!(!carries(channel, MessageType::Sticker) && !carries(channel, MessageType::Reaction), "{channel}");
    }
}

#[test]
fn windows_are_those_of_whatsapp_and_instagram() {
    for message_type in MessageType::ALL.iter().copied() {
        assert_eq!(has_window(Channel::Whatsapp, message_type), message_type != MessageType::Template);
        assert!(has_window(Channel::Instagram, message_type));
        assert!(![Channel::Sms, Channel::Telegram, Channel::Email, Channel::Voice].into_iter().any(|c| has_window(c, message_type)));
    }
}

#[test]
fn a_template_is_approved_for_one_account() {
    let with = |id: u128, account: Option<&str>| {
        let mut connection = connection(Channel::Whatsapp);
        connection.id = ConnectionId::from_uuid(uuid::Uuid::from_u128(id));
        connection.settings.extend(account.map(|account| ("waba_id".to_owned(), account.into())));
        connection
    };
    let submitted = with(1, Some("111"));
    let content = Content { connection: Some(submitted.id), business_account: submitted.business_account(), ..Content::default() };
    assert!(is_of_account(&content, &submitted) && is_of_account(&content, &with(2, Some("111"))), "two senders share an account");
    assert!(!is_of_account(&content, &with(2, Some("222"))) && !is_of_account(&content, &with(2, None)));
    let nameless = Content { business_account: None, ..content };
    assert!(is_of_account(&nameless, &with(1, None)) && !is_of_account(&nameless, &with(2, None)));
}
