//! Chooses the channel of a message.

use std::sync::Arc;
use std::time::Duration;

use nuncio_domain::address::{self, Parsed};
use nuncio_domain::config::{Connection, Sender, TenantConfig};
use nuncio_domain::message::{Considered, Cost, Route, Routing};
use nuncio_domain::price::{PriceBook, Quantity};
use nuncio_domain::template::{Content, Status, Template};
use nuncio_domain::{
    AddressKind, Channel, Environment, Error, ErrorCode, FieldError, MessageType, RequestedChannel, Result, Timestamp, limits,
};
use nuncio_store::{ChannelMetrics, CountryMetrics};

use super::estimate::{Estimate, GOOD};

/// How long the recipient's last message influences the choice of channel, and keeps a window open.
pub(crate) const RECENT: Duration = Duration::from_secs(86_400);
/// One in this many messages explores another good channel, to measure it.
const EXPLORE: u16 = 64;

/// The chosen channel.
#[derive(Debug)]
pub(crate) struct Choice<'a> {
    pub(crate) connection: &'a Arc<Connection>,
    pub(crate) routing: Routing,
    /// Why the content fits no channel, for each of them; empty if it fits one.
    pub(crate) misfits: Vec<FieldError>,
}

/// What a message requires of a channel.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asked<'a> {
    pub(crate) sender: &'a Sender,
    pub(crate) to: &'a Parsed,
    pub(crate) channel: RequestedChannel,
    pub(crate) message_type: MessageType,
    /// The text as given.
    pub(crate) text: &'a str,
    /// The message as plain text; for phone numbers.
    pub(crate) words: &'a str,
    /// Whether its media is only known to one messaging app's provider.
    pub(crate) media_is_bound: bool,
    /// Country of a phone number; `""` if unknown.
    pub(crate) country: &'a str,
    pub(crate) quantity: Quantity,
    /// Whether another good channel can be explored.
    pub(crate) explores: bool,
    /// Random number.
    pub(crate) dice: u16,
    pub(crate) now: Timestamp,
    /// `now`, or the time it is scheduled for.
    pub(crate) sends_at: Timestamp,
    /// Whether WhatsApp has approved the template for the sender's account, if there is one.
    pub(crate) approved: bool,
}

/// Data about the recipient that the choice depends on.
#[derive(Clone, Debug, Default)]
pub(crate) struct RoutingInputs {
    pub(crate) metrics: Vec<ChannelMetrics>,
    pub(crate) countries: Arc<Vec<CountryMetrics>>,
    pub(crate) window: Window,
    pub(crate) prices: Arc<PriceBook>,
}

/// The conversation window of WhatsApp or Instagram.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) enum Window {
    /// Closed, except for WhatsApp templates.
    #[default]
    Closed,
    /// Open, until then if that is known.
    Open(Option<Timestamp>),
}

/// Channels tried for a phone number if none is requested. Voice is never chosen automatically.
const TEXT_ORDER: &[Channel] = &[Channel::Sms, Channel::SmsOneway, Channel::Whatsapp];
/// The same for content that SMS can only describe.
pub(crate) const RICH_ORDER: &[Channel] = &[Channel::Whatsapp, Channel::Sms, Channel::SmsOneway];

/// Why a channel cannot be used.
enum Refusal {
    NotConnected,
    Type,
    Content(FieldError),
    Window,
    /// A better channel of its kind is available.
    Spare,
    /// The template is not approved by the provider.
    Unapproved,
}

impl Refusal {
    fn words(&self, message_type: MessageType) -> String {
        match self {
            Self::NotConnected => "not connected".to_owned(),
            Self::Type => format!("cannot carry messageType {message_type}"),
            Self::Content(fault) => fault.message.clone(),
            Self::Window => "its 24-hour window is closed: the recipient has not written recently".to_owned(),
            Self::Spare => "sms is connected, which allows replies".to_owned(),
            Self::Unapproved => "the template is not approved for the sender's account".to_owned(),
        }
    }
}

/// A channel that can carry the message.
struct Candidate<'a> {
    connection: &'a Arc<Connection>,
    cost: Option<Cost>,
    estimate: Estimate,
    last_inbound_at: Option<Timestamp>,
}

impl Candidate<'_> {
    fn channel(&self) -> Channel {
        self.connection.channel
    }

    /// Candidates without a price sort last if others have one: their cost is unknown.
    fn price(&self) -> i64 {
        self.cost.map_or(i64::MAX, |c| c.total().0)
    }

    fn words(&self, country: &str) -> String {
        let price = self.cost.map_or_else(|| "no price".to_owned(), |c| format!("${:#}", c.total()));
        format!("{price}; {}", self.estimate.words(country))
    }
}

/// Returns whether data about the recipient influences the choice or the channel's window.
pub(crate) fn needs_knowledge(config: &TenantConfig, sender: &Sender, asked: RequestedChannel, message_type: MessageType) -> bool {
    match asked {
        RequestedChannel::Auto => config.connection(sender.id, Channel::Whatsapp).is_some(),
        RequestedChannel::Only(channel) => has_window(channel, message_type),
    }
}

/// Returns the kind of recipient that has such data.
pub(crate) const fn known_kind(asked: RequestedChannel) -> AddressKind {
    match asked {
        RequestedChannel::Only(channel) => channel.address_kind(),
        RequestedChannel::Auto => AddressKind::Phone,
    }
}

/// Returns whether a channel carries the type only to recipients who wrote within the last 24 hours. On Instagram a template is a text.
pub(crate) fn has_window(channel: Channel, message_type: MessageType) -> bool {
    match channel {
        Channel::Whatsapp => message_type != MessageType::Template,
        Channel::Instagram => true,
        _ => false,
    }
}

/// Chooses the channel of a message by request, recipient, known data, and the sender's connections.
pub(crate) fn choose<'a>(config: &'a TenantConfig, asked: &Asked<'_>, known: &RoutingInputs) -> Result<Choice<'a>> {
    match (asked.channel, asked.to) {
        (RequestedChannel::Only(channel), _) => only(config, asked.sender, channel, "the channel was requested"),
        (RequestedChannel::Auto, Parsed::Email(_)) => only(config, asked.sender, Channel::Email, "the recipient is an email address"),
        (RequestedChannel::Auto, Parsed::Digits(id)) => {
            let message = format!(
                "{id:?} is a chat id, which needs channel telegram or instagram; for a phone number write {}",
                address::with_plus(id)
            );
            Err(Error::field("to", message))
        }
        (RequestedChannel::Auto, Parsed::Phone(_)) => auto(config, asked, known),
    }
}

fn auto<'a>(config: &'a TenantConfig, asked: &Asked<'_>, known: &RoutingInputs) -> Result<Choice<'a>> {
    let order = if asked.message_type == MessageType::Text { TEXT_ORDER } else { RICH_ORDER };
    let (mut considered, mut candidates, mut refused) = (Vec::new(), Vec::new(), Vec::new());
    for channel in order.iter().copied() {
        match check(config, asked, known, channel) {
            Ok(connection) => {
                let candidate = candidate(connection, asked, known);
                considered.push(Considered {
                    channel,
                    usable: true,
                    reason: candidate.words(asked.country),
                    price: candidate.cost.map(Cost::total),
                    chance: Some(candidate.estimate.thousandths()),
                });
                candidates.push(candidate);
            }
            Err(refusal) => {
                let reason = refusal.words(asked.message_type);
                considered.push(Considered { channel, usable: false, reason, price: None, chance: None });
                refused.push((channel, refusal));
            }
        }
    }
    if candidates.is_empty() {
        return nothing_fits(config, asked, &refused);
    }
    let (chosen, reason) = pick(&candidates, asked);
    let routing = Routing { reason: format!("auto: {reason}"), considered, warnings: Vec::new() };
    Ok(Choice { connection: chosen.connection, routing, misfits: Vec::new() })
}

/// Returns the connection of a channel, or why it cannot be used.
fn check<'a>(config: &'a TenantConfig, asked: &Asked<'_>, known: &RoutingInputs, channel: Channel) -> Result<&'a Arc<Connection>, Refusal> {
    let connection = config.connection(asked.sender.id, channel).ok_or(Refusal::NotConnected)?;
    if channel == Channel::SmsOneway && config.connection(asked.sender.id, Channel::Sms).is_some() {
        return Err(Refusal::Spare);
    }
    if !carries(channel, asked.message_type) {
        return Err(Refusal::Type);
    }
    if let Some(fault) = misfit(channel, asked) {
        return Err(Refusal::Content(fault));
    }
    if channel == Channel::Whatsapp && asked.message_type == MessageType::Template && !asked.approved {
        return Err(Refusal::Unapproved);
    }
    if has_window(channel, asked.message_type) && known.window == Window::Closed {
        return Err(Refusal::Window);
    }
    Ok(connection)
}

/// Returns why the content does not fit a channel that carries its type.
pub(crate) fn misfit(channel: Channel, asked: &Asked<'_>) -> Option<FieldError> {
    let path = if asked.message_type == MessageType::Template { "content.templateVariables" } else { "text" };
    let long = |text: &str, most: usize| {
        let length = text.chars().count();
        (length > most).then(|| FieldError::new(path, format!("takes {length} characters on {channel}; must take at most {most}")))
    };
    match channel {
        Channel::Sms | Channel::SmsOneway | Channel::Email | Channel::Voice if asked.media_is_bound => {
            let what = match channel {
                Channel::Email => "an email, which links to media",
                Channel::Voice => "a call, which plays media from a link",
                _ => "an SMS, which links to media",
            };
            Some(FieldError::new("content.mediaId", format!("cannot be used in {what}; set content.mediaUrl")))
        }
        Channel::Sms | Channel::SmsOneway => long(asked.words, limits::SMS_TEXT),
        Channel::Whatsapp if asked.message_type == MessageType::Text => long(asked.text, limits::CHAT_TEXT),
        // WhatsApp has the template and measures it itself.
        Channel::Whatsapp if asked.message_type == MessageType::Template => None,
        Channel::Whatsapp if asked.message_type == MessageType::Audio && !asked.text.is_empty() => {
            Some(FieldError::new("text", "is not shown by WhatsApp with audio; send it as a separate message"))
        }
        Channel::Whatsapp => long(asked.text, limits::CAPTION),
        _ => None,
    }
}

fn candidate<'a>(connection: &'a Arc<Connection>, asked: &Asked<'_>, known: &RoutingInputs) -> Candidate<'a> {
    let channel = connection.channel;
    let own = known.metrics.iter().find(|m| m.channel == channel);
    let country = known.countries.iter().find(|m| m.channel == channel && m.country == asked.country);
    Candidate {
        connection,
        cost: known.prices.quote(channel, asked.country, asked.quantity, asked.now),
        estimate: Estimate::new(
            own.map_or((0, 0), |m| (m.sums.successes, m.sums.failures)),
            country.map_or((0, 0), |m| (m.successes, m.failures)),
        ),
        last_inbound_at: own.and_then(|m| m.last_inbound_at).filter(|at| asked.sends_at.since(*at) < RECENT),
    }
}

/// Returns the best candidate and the reason. Candidates are not empty and in order of preference.
fn pick<'c, 'a>(candidates: &'c [Candidate<'a>], asked: &Asked<'_>) -> (&'c Candidate<'a>, String) {
    let first = &candidates[0];
    let name = |c: &Candidate<'_>| c.channel().as_str();
    if let [only] = candidates {
        return (only, format!("{} is the only channel that can send the message to this number", name(only)));
    }
    if let Some(recent) = candidates.iter().filter(|c| c.last_inbound_at.is_some()).max_by_key(|c| c.last_inbound_at) {
        let at = recent.last_inbound_at.unwrap_or_default();
        return (recent, format!("the recipient's newest message of the last 24 hours came by {}, at {at}", name(recent)));
    }
    if asked.message_type != MessageType::Text {
        return (first, format!("{} is the first channel that can carry messageType {}", name(first), asked.message_type));
    }
    let good: Vec<_> = candidates.iter().filter(|c| c.estimate.chance() >= GOOD).collect();
    let Some(cheapest) = good.iter().copied().min_by_key(|c| c.price()) else {
        let nearest = candidates.iter().reduce(|a, b| if b.estimate.chance() > a.estimate.chance() { b } else { a }).unwrap_or(first);
        let reason =
            format!("no channel is likely enough to deliver; {} is the most likely ({})", name(nearest), nearest.words(asked.country));
        return (nearest, reason);
    };
    let others = good.iter().copied().filter(|c| c.channel() != cheapest.channel());
    let untried = others.min_by_key(|c| c.estimate.attempts());
    if let Some(untried) = untried.filter(|_| asked.explores && asked.dice.is_multiple_of(EXPLORE)) {
        return (untried, format!("{} is tried to measure it; {} would be the cheapest", name(untried), name(cheapest)));
    }
    let rule = match &good[..] {
        [_] => "is the only channel that is likely enough to deliver",
        several if several.iter().all(|c| c.price() == cheapest.price()) => {
            "is preferred among channels of the same price and is likely to deliver"
        }
        _ => "is the cheapest and is likely to deliver",
    };
    (cheapest, format!("{} {rule} ({})", name(cheapest), cheapest.words(asked.country)))
}

/// Returns the preferred channel, with the reasons of all, if the content does not fit any.
fn nothing_fits<'a>(config: &'a TenantConfig, asked: &Asked<'_>, refused: &[(Channel, Refusal)]) -> Result<Choice<'a>> {
    let sender = asked.sender;
    let closed = refused.iter().any(|(_, refusal)| matches!(refusal, Refusal::Window));
    let misfit = |(channel, refusal): &(Channel, Refusal)| match refusal {
        Refusal::Content(fault) if !closed || fault.path == "text" => Some((*channel, fault.clone())),
        _ => None,
    };
    let (channels, misfits): (Vec<_>, Vec<_>) = refused.iter().filter_map(misfit).unzip();
    match channels.first() {
        Some(channel) => Ok(Choice { misfits, ..only(config, sender, *channel, "no channel can carry the content")? }),
        None if closed => Err(window_closed(Channel::Whatsapp)),
        None if refused.iter().any(|(_, refusal)| matches!(refusal, Refusal::Unapproved)) => Err(not_approved()),
        None => {
            let missing = refused
                .iter()
                .filter(|(channel, refusal)| matches!(refusal, Refusal::NotConnected) && carries(*channel, asked.message_type));
            Err(not_configured(sender, &missing.map(|(channel, _)| *channel).collect::<Vec<_>>()))
        }
    }
}

fn only<'a>(config: &'a TenantConfig, sender: &Sender, channel: Channel, reason: &str) -> Result<Choice<'a>> {
    let connection = config.connection(sender.id, channel).ok_or_else(|| not_configured(sender, &[channel]))?;
    let routing = Routing { reason: reason.to_owned(), considered: Vec::new(), warnings: Vec::new() };
    Ok(Choice { connection, routing, misfits: Vec::new() })
}

/// `400 template_not_approved`.
pub(crate) fn not_approved() -> Error {
    let message = "the template is not approved for the sender's WhatsApp account; submit it for this sender and wait for its status to become approved";
    Error::new(ErrorCode::TemplateNotApproved, message)
}

fn not_configured(sender: &Sender, channels: &[Channel]) -> Error {
    let names = channels.iter().map(|c| c.as_str()).collect::<Vec<_>>().join(", ");
    let message =
        format!("sender {} ({}) has no provider connected for {names}; connect one, or choose a connected channel", sender.id, sender.name);
    Error::new(ErrorCode::SenderNotConfigured, message)
}

/// Returns whether a channel carries a message type, natively or as equivalent text.
pub(crate) const fn carries(channel: Channel, message_type: MessageType) -> bool {
    match message_type {
        MessageType::Sticker => matches!(channel, Channel::Whatsapp | Channel::Telegram | Channel::Instagram),
        MessageType::Reaction => matches!(channel, Channel::Whatsapp | Channel::Telegram | Channel::Instagram),
        MessageType::Image | MessageType::Video | MessageType::Document => !matches!(channel, Channel::Voice),
        MessageType::Location => true,
        MessageType::Contact | MessageType::Buttons | MessageType::List | MessageType::CtaUrl => !matches!(channel, Channel::Voice),
        MessageType::Text | MessageType::Audio | MessageType::Template => true,
    }
}

/// Returns how a channel degrades content it does not support; `None` if it carries it natively.
pub(crate) fn degraded(channel: Channel, message_type: MessageType) -> Option<String> {
    use MessageType as Type;
    let what = match (channel, message_type) {
        (Channel::Whatsapp, _) | (_, Type::Text) => return None,
        (Channel::Voice, Type::Template) => "the body of the template is spoken, without header, footer and buttons",
        (_, Type::Template) => "the template is sent as its text",
        (Channel::Voice, Type::Location) => "the location is spoken as its name and address",
        (Channel::Telegram, _) | (Channel::Voice, _) => return None,
        (_, Type::Location) => "the location is sent as its name and a link to a map",
        (Channel::Email, Type::Contact) => "the contact cards are sent as text and as a vCard file",
        (_, Type::Contact) => "the contact cards are sent as text",
        (Channel::Instagram, Type::List) => "the options are sent as a numbered list with quick replies",
        (Channel::Instagram, _) => return None,
        (_, Type::Image | Type::Video | Type::Audio | Type::Document) => "the media is sent as a link",
        (_, Type::Buttons) => "the buttons are sent as a numbered list",
        (_, Type::List) => "the options are sent as a numbered list",
        (_, Type::CtaUrl) => "the button is sent as a link",
        // Only messaging apps carry them.
        (_, Type::Sticker | Type::Reaction) => return None,
    };
    Some(format!("{channel}: {what}"))
}

/// Returns the fallback of a messaging app, or why there is none.
pub(crate) fn fallback<'a>(
    config: &'a TenantConfig,
    asked: &Asked<'_>,
    channel: Channel,
    warnings: &mut Vec<String>,
) -> Option<&'a Arc<Connection>> {
    if !channel.is_app() || !matches!(asked.to, Parsed::Phone(_)) {
        return None;
    }
    let sms = [Channel::Sms, Channel::SmsOneway].into_iter().filter(|c| carries(*c, asked.message_type));
    let connection = sms.filter_map(|c| config.connection(asked.sender.id, c)).next()?;
    if let Some(FieldError { path, message }) = misfit(connection.channel, asked) {
        warnings.push(format!("{channel} has no fallback to {}: {path} {message}", connection.channel));
        return None;
    }
    Some(connection)
}

pub(crate) fn route(connection: &Connection) -> Route {
    Route { channel: connection.channel, connection: connection.id, provider: connection.kind.clone() }
}

/// Returns whether WhatsApp has approved a template for the account of a sender. The sandbox has one account.
pub(crate) fn is_approved(template: &Template, config: &TenantConfig, sender: &Sender) -> bool {
    let connection = config.connection(sender.id, Channel::Whatsapp).filter(|_| config.environment == Environment::Live);
    template.status == Status::Approved && connection.is_none_or(|connection| is_of_account(&template.content, connection))
}

fn is_of_account(content: &Content, connection: &Connection) -> bool {
    let account = connection.business_account();
    content.connection == Some(connection.id) || account.is_some() && account == content.business_account
}

impl RoutingInputs {
    /// Adds what is known of a phone number, or of an Instagram chat id, for a message that is sent `at` this time.
    pub(crate) fn of(self, config: &TenantConfig, kind: AddressKind, number: &str, metrics: Vec<ChannelMetrics>, at: Timestamp) -> Self {
        let window = match config.environment {
            Environment::Test if sandbox_window_closed(number) => Window::Closed,
            Environment::Test => Window::Open(None),
            Environment::Live => window(&metrics, kind, at),
        };
        Self { metrics, window, ..self }
    }
}

/// Returns the window opened by the recipient's last message, on the channel of its kind that has one.
fn window(metrics: &[ChannelMetrics], kind: AddressKind, sends_at: Timestamp) -> Window {
    let channel = if kind == AddressKind::Instagram { Channel::Instagram } else { Channel::Whatsapp };
    let newest = metrics.iter().filter(|m| m.channel == channel).filter_map(|m| m.last_inbound_at).max();
    newest.filter(|at| sends_at.since(*at) < RECENT).map_or(Window::Closed, |at| Window::Open(Some(at.plus(RECENT))))
}

/// Returns whether the sandbox simulates a closed window for this recipient. It is open for all others.
fn sandbox_window_closed(number: &str) -> bool {
    let is_test_number = number.len() == 12 && number.starts_with("+1") && number.ends_with("5550009");
    is_test_number || number == "900000009"
}

/// Returns the error for a recipient who has not written recently enough.
pub(crate) fn window_closed(channel: Channel) -> Error {
    let (code, carries) = match channel {
        Channel::Whatsapp => (ErrorCode::WhatsappWindowClosed, "WhatsApp allows only templates"),
        _ => (ErrorCode::WindowClosed, "the channel allows no messages"),
    };
    Error::new(code, format!("the recipient has not written within the last 24 hours; outside that window {carries}"))
}

#[cfg(test)]
#[path = "routing_tests.rs"]
mod tests;
