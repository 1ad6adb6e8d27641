//! Which channel carries a message, and why.

use nuncio_domain::address::Parsed;
use nuncio_domain::config::{Connection, Sender, World};
use nuncio_domain::lifecycle::Route;
use nuncio_domain::message::{Considered, Routing};
use nuncio_domain::{Channel, Error, ErrorCode, MessageType, RequestedChannel, Result};

/// What was chosen.
#[derive(Debug)]
pub(super) struct Choice<'a> {
    pub(super) connection: &'a Connection,
    pub(super) routing: Routing,
}

/// Channels that are tried for a phone number when none is asked for. Voice is never chosen by itself.
const TEXT_ORDER: &[Channel] = &[Channel::Sms, Channel::SmsOneway, Channel::Whatsapp];
/// The same for content that SMS can only describe.
const RICH_ORDER: &[Channel] = &[Channel::Whatsapp, Channel::Sms, Channel::SmsOneway];

/// Chooses the channel of a message from what was asked, what the recipient is and what the sender has connected.
pub(super) fn choose<'a>(
    world: &'a World,
    sender: &Sender,
    to: &Parsed,
    asked: RequestedChannel,
    message_type: MessageType,
) -> Result<Choice<'a>> {
    let candidates: &[Channel] = match (asked, to) {
        (RequestedChannel::Only(channel), _) => return only(world, sender, channel, "the channel was asked for"),
        (RequestedChannel::Auto, Parsed::Email(_)) => return only(world, sender, Channel::Email, "the recipient is an email address"),
        (RequestedChannel::Auto, Parsed::Digits(id)) => {
            let message = format!("{id:?} is a chat id, which needs channel telegram or instagram; for a phone number write +{id}");
            return Err(Error::field("to", message));
        }
        (RequestedChannel::Auto, Parsed::Phone(_)) if message_type == MessageType::Text => TEXT_ORDER,
        (RequestedChannel::Auto, Parsed::Phone(_)) => RICH_ORDER,
    };
    let mut considered = Vec::new();
    let mut chosen = None;
    for channel in candidates.iter().copied() {
        let connection = world.connection(sender.id, channel);
        let (usable, reason) = match connection {
            None => (false, "not connected"),
            Some(_) if !carries(channel, message_type) => (false, "cannot carry this message type"),
            Some(_) if channel == Channel::Whatsapp && message_type == MessageType::Text => {
                (false, "carries free text only inside the 24-hour window")
            }
            Some(_) => (true, "connected"),
        };
        considered.push(Considered { channel, usable, reason: reason.to_owned() });
        if usable && chosen.is_none() {
            chosen = connection;
        }
    }
    let Some(connection) = chosen else { return Err(not_configured(sender, candidates)) };
    let reason = format!("auto: {} is the first channel that can carry messageType {message_type} to a phone number", connection.channel);
    Ok(Choice { connection, routing: Routing { reason, considered, warnings: Vec::new() } })
}

fn only<'a>(world: &'a World, sender: &Sender, channel: Channel, reason: &str) -> Result<Choice<'a>> {
    let connection = world.connection(sender.id, channel).ok_or_else(|| not_configured(sender, &[channel]))?;
    Ok(Choice { connection, routing: Routing { reason: reason.to_owned(), considered: Vec::new(), warnings: Vec::new() } })
}

fn not_configured(sender: &Sender, channels: &[Channel]) -> Error {
    let names = channels.iter().map(|c| c.as_str()).collect::<Vec<_>>().join(", ");
    let message = format!(
        "sender {} ({}) has no provider connected for {names}; connect one, or name a channel that is connected",
        sender.id, sender.name
    );
    Error::new(ErrorCode::SenderNotConfigured, message)
}

/// Whether a channel carries a message type, natively or as text that says the same.
pub(super) const fn carries(channel: Channel, message_type: MessageType) -> bool {
    match message_type {
        MessageType::Sticker => matches!(channel, Channel::Whatsapp | Channel::Telegram | Channel::Instagram),
        MessageType::Reaction => matches!(channel, Channel::Whatsapp | Channel::Telegram | Channel::Instagram),
        MessageType::Image | MessageType::Video | MessageType::Document => !matches!(channel, Channel::Voice),
        MessageType::Location => true,
        MessageType::Contact | MessageType::Buttons | MessageType::List | MessageType::CtaUrl | MessageType::Template => {
            !matches!(channel, Channel::Voice)
        }
        MessageType::Text | MessageType::Audio => true,
    }
}

/// Where a message of a messaging app goes when the app fails.
pub(super) fn fallback(world: &World, sender: &Sender, channel: Channel, message_type: MessageType, to: &Parsed) -> Option<Route> {
    if !channel.is_app() || !matches!(to, Parsed::Phone(_)) {
        return None;
    }
    [Channel::Sms, Channel::SmsOneway]
        .into_iter()
        .filter(|c| carries(*c, message_type))
        .find_map(|c| world.connection(sender.id, c))
        .map(route)
}

/// The route of a connection.
pub(super) fn route(connection: &Connection) -> Route {
    Route { channel: connection.channel, connection: connection.id, provider: connection.kind.clone() }
}
