//! Plans a message from a request and cached data. Pure.

use std::sync::Arc;
use std::time::Duration;

use nuncio_domain::address::{self, Parsed};
use nuncio_domain::config::{Connection, Sender, TenantConfig};
use nuncio_domain::id::Id as _;
use nuncio_domain::message::{
    Attachment, AttachmentSource, Content, Detail, Direction, Message, Money, Quote, QuoteState, Request, Routing, State, Status, Wait,
};
use nuncio_domain::price::Quantity;
use nuncio_domain::sms::{self, Measure};
use nuncio_domain::template::Template;
use nuncio_domain::{
    AddressId, Channel, ContactId, Country, Environment, Error, FieldError, Ids, MessageId, MessageType, Recipient, RequestedChannel,
    Result, Timestamp, plain, speech,
};
use nuncio_store::{Accept, Idempotency, IdempotentOperation};

use super::command::{AttachmentIn, SendMessage};
use super::routing::{Asked, Choice, RoutingInputs, Window};
use super::{content, routing, validate};
use crate::base::IdentifierHasher;
use crate::base::spending::Pending;
use crate::base::{BLANK, FieldErrors, idempotency, is_blank, unknown};
use crate::templates::render;

/// Time for which this node reserves a queued message, before any node can start it.
const GRACE: Duration = Duration::from_secs(5);

/// A planned message and the connection that carries it.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) accept: Accept,
    pub(crate) connection: Arc<Connection>,
    /// Its size as SMS, if any of its routes is SMS.
    pub(crate) measure: Option<Measure>,
    /// Its part of the sender's daily limit, until it is accepted.
    pub(crate) spending: Option<Pending>,
}

impl Planned {
    /// Fails if the channel requires a recent message from the recipient and there is none.
    pub(crate) fn require_open_window(&self, known: &RoutingInputs) -> Result<()> {
        let (channel, message_type) = (self.connection.channel, self.accept.message.message_type);
        let is_closed = routing::has_window(channel, message_type) && known.window == Window::Closed;
        if is_closed { Err(routing::window_closed(channel)) } else { Ok(()) }
    }
}

/// Inputs of planning, in addition to the request.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Planner<'a> {
    pub(crate) config: &'a TenantConfig,
    pub(crate) sender: &'a Sender,
    pub(crate) known: &'a RoutingInputs,
    pub(crate) ids: &'a Ids,
    pub(crate) marks: &'a IdentifierHasher,
    pub(crate) now: Timestamp,
    /// What its idempotency key guards, if it has one.
    pub(crate) operation: IdempotentOperation,
    /// Whether unused fields are removed instead of rejected.
    pub(crate) lenient: bool,
    /// Whether another good channel can be explored.
    pub(crate) explores: bool,
    /// The requested template, if it exists.
    pub(crate) template: Option<&'a Template>,
}

/// The recipient, before a channel is chosen.
pub(crate) struct Destination {
    pub(super) parsed: Parsed,
    /// Country of a phone number; `""` if unknown.
    country: String,
    is_phone: bool,
    /// Whether a phone number is in an assigned range.
    is_assigned: bool,
}

/// Text of a message to a phone number, which can become SMS or speech. Empty for other recipients, because an email can be large.
#[derive(Default)]
struct Wording {
    /// The text as given, or as rendered from the template.
    text: String,
    /// The whole content as plain text; for a call, as it is spoken.
    words: String,
    measure: Option<Measure>,
}

/// Route, fallback and prices of a message.
struct Itinerary<'a> {
    connection: &'a Arc<Connection>,
    recipient: Recipient,
    country: Country,
    fallback: Option<&'a Arc<Connection>>,
    quotes: Vec<Quote>,
    routing: Routing,
}

impl Planner<'_> {
    /// Plans a message to `destination`, the recipient of `command`; reports all field errors at once.
    pub(crate) fn plan(&self, mut command: SendMessage, destination: Destination) -> Result<Planned> {
        let (address, id) = (self.ids.at(self.now), self.ids.at(self.now));
        let wording = self.wording(&command, &destination);
        let asked = self.asked(&command, &destination, &wording, id);
        let choice = routing::choose(self.config, &asked, self.known)?;
        let recipient = self.check(&mut command, &asked, &choice)?;
        let template = self.template(&command, &asked, choice.connection.channel)?;
        allowed(self.sender, &recipient, &destination.country)?;
        let idempotency = self.idempotency(&command, choice.connection.channel);
        let itinerary = self.itinerary(&command, &asked, choice, recipient, !destination.is_phone || destination.is_assigned);
        let measure = wording.measure.filter(|_| itinerary.channels().any(Channel::is_sms));
        if let Some(template) = template {
            let text = rendered(template, command.content.as_deref(), itinerary.connection.channel)?;
            if is_blank(&text) {
                return Err(Error::field("content.templateVariables", format!("with them, the text {BLANK}")));
            }
            command.text = Some(text);
        }
        let connection = Arc::clone(itinerary.connection);
        let recipient = itinerary.recipient.clone();
        let mark = self.marks.of(self.config.tenant, &recipient);
        let key = idempotency.as_ref().map(|stored| stored.key.clone());
        let message = self.message(command, key, template, itinerary, measure, (id, address));
        let accept = Accept {
            message,
            recipient,
            country: destination.country,
            mark,
            new_address: address,
            new_contact: ContactId::from_uuid(address.uuid()),
            idempotency,
            epoch: self.config.epoch,
            broadcast_fence: 0,
            claim: None,
            now: self.now,
        };
        Ok(Planned { accept, connection, measure, spending: None })
    }

    fn wording(&self, command: &SendMessage, destination: &Destination) -> Wording {
        if !destination.is_phone {
            return Wording::default();
        }
        let message_type = command.message_type.unwrap_or_default();
        let content = command.content.as_deref();
        let is_call = command.channel == Some(RequestedChannel::Only(Channel::Voice));
        let template = self.template.filter(|_| message_type == MessageType::Template);
        let said = template.and_then(|t| rendered_if_complete(t, content, if is_call { Channel::Voice } else { Channel::Sms }));
        let text = said.or_else(|| command.text.clone()).unwrap_or_default();
        let words_for = if is_call { speech::words } else { plain::text };
        let words = words_for(message_type, Some(&text), content).into_owned();
        Wording { measure: Some(sms::measure(&words)), text, words }
    }

    fn asked<'a>(&'a self, command: &SendMessage, destination: &'a Destination, wording: &'a Wording, id: MessageId) -> Asked<'a> {
        let fallback = command.fallback_enabled.unwrap_or(true);
        let message_type = command.message_type.unwrap_or_default();
        // Content that the type does not use rules out no channel.
        let content = command.content.as_ref().filter(|_| content::has_media(message_type));
        Asked {
            sender: self.sender,
            to: &destination.parsed,
            channel: command.channel.unwrap_or_default(),
            message_type,
            text: &wording.text,
            words: &wording.words,
            media_is_bound: content.is_some_and(|content| content.media_id.is_some()),
            country: &destination.country,
            quantity: Quantity { segments: wording.measure.map_or(1, |m| m.segments), spoken: wording.words.chars().count() },
            explores: self.explores && self.config.environment == Environment::Live && fallback,
            dice: dice(id),
            now: self.now,
            sends_at: command.sends_at(self.now),
            approved: self.template.is_none_or(|template| routing::is_approved(template, self.config, self.sender)),
        }
    }

    /// Validates the request for the chosen channel; returns the recipient in its form.
    fn check(&self, command: &mut SendMessage, asked: &Asked<'_>, choice: &Choice<'_>) -> Result<Recipient> {
        let channel = choice.connection.channel;
        let recipient = on(asked.to, channel)?;
        let mut errors = validate::check(command, channel, self.now, self.lenient);
        if !routing::carries(channel, asked.message_type) {
            errors.push(FieldError::new("messageType", format!("channel {channel} cannot carry {}", asked.message_type)));
        } else if let Some(fault) = routing::misfit(channel, asked)
            && errors.iter().all(|known| known.path != fault.path)
        {
            errors.push(fault);
        }
        // What each channel takes says more than the limit of one.
        errors.retain(|known| choice.misfits.iter().all(|fault| fault.path != known.path));
        errors.extend(choice.misfits.iter().cloned());
        if errors.is_empty() { Ok(recipient) } else { Err(Error::invalid(errors)) }
    }

    /// Returns the template of the message, if it has one. Fails if it is missing, lacks values, or is not approved where required.
    fn template(&self, command: &SendMessage, asked: &Asked<'_>, channel: Channel) -> Result<Option<&Template>> {
        if asked.message_type == MessageType::Template {
            let id = command.content.as_ref().and_then(|content| content.template_id.as_deref()).unwrap_or_default();
            let template = self.template.ok_or_else(|| unknown("template", "content.templateId", id))?;
            Error::if_any(render::check(template, &render::values(command.content.as_deref()), "content."))?;
        }
        if channel == Channel::Whatsapp && !asked.approved {
            return Err(routing::not_approved());
        }
        Ok(self.template.filter(|_| asked.message_type == MessageType::Template))
    }

    /// Returns the stored form of the idempotency key and the request.
    fn idempotency(&self, command: &SendMessage, channel: Channel) -> Option<Idempotency> {
        let key = command.idempotency_key.clone()?;
        let fingerprint = idempotency::fingerprint(&(self.sender.id, command.essence(channel)));
        Some(self.marks.hashed(self.config.tenant, Idempotency { operation: self.operation, key, fingerprint }))
    }

    /// Adds the fallback, and prices both routes.
    fn itinerary<'a>(
        &'a self,
        command: &SendMessage,
        asked: &Asked<'_>,
        choice: Choice<'a>,
        recipient: Recipient,
        is_assigned: bool,
    ) -> Itinerary<'a> {
        let Choice { connection, mut routing, .. } = choice;
        if !is_assigned {
            routing.warnings.push("the number is outside all known assigned ranges".to_owned());
        }
        let wanted = command.fallback_enabled.unwrap_or(true);
        let fallback = if wanted { routing::fallback(self.config, asked, connection.channel, &mut routing.warnings) } else { None };
        let country = Country::of(asked.country);
        let mut itinerary = Itinerary { connection, recipient, country, fallback, quotes: Vec::new(), routing };
        let quote = |channel| {
            let cost = self.known.prices.quote(channel, asked.country, asked.quantity, self.now)?;
            Some(Quote { channel, cost, state: QuoteState::Open })
        };
        itinerary.quotes = itinerary.channels().filter_map(quote).collect();
        itinerary
    }

    fn message(
        &self,
        command: SendMessage,
        idempotency_key: Option<String>,
        template: Option<&Template>,
        itinerary: Itinerary<'_>,
        measure: Option<Measure>,
        (id, address): (MessageId, AddressId),
    ) -> Message {
        let state = self.state(&command, &itinerary, measure);
        let Itinerary { recipient, routing, .. } = itinerary;
        let message_type = command.message_type.unwrap_or_default();
        let attachments = command.attachments.unwrap_or_default().into_iter().map(|a| attachment(a, self.ids)).collect();
        let request = Request {
            requested_channel: command.channel.unwrap_or_default(),
            text: command.text,
            content: command.content,
            subject: command.subject,
            html_body: command.html_body,
            reply_to: command.reply_to,
            metadata: command.metadata,
            fallback_enabled: command.fallback_enabled.unwrap_or(true),
            fallback_after_seconds: command.fallback_after_seconds,
            validity_seconds: command.validity_seconds,
            voice_language: command.voice_language,
            attachments,
            template: template.map(|t| Box::new(t.into())),
            scheduled_at: command.scheduled_at,
            idempotency_key,
            routing,
        };
        Message {
            tenant: self.config.tenant,
            id,
            direction: Direction::Outbound,
            message_type,
            to: recipient.identifier,
            from: sent_from(&self.sender.phone_number, itinerary.connection),
            sender: self.sender.id,
            address,
            request: Arc::new(request),
            state,
        }
    }

    fn state(&self, command: &SendMessage, itinerary: &Itinerary<'_>, measure: Option<Measure>) -> State {
        let Itinerary { connection, country, fallback, quotes, .. } = itinerary;
        let limited_sender = self.sender.daily_spend_limit.map(|_| self.sender.id);
        let ahead = command.scheduled_at.filter(|at| *at > self.now);
        let validity = command.validity_seconds.unwrap_or(super::command::validity(connection.channel));
        State {
            status: if ahead.is_some() { Status::Scheduled } else { Status::Queued },
            wait: Wait::Attempt { due_at: ahead.unwrap_or_else(|| self.now.plus(GRACE)) },
            fence: 0,
            version: 0,
            expires_at: ahead.unwrap_or(self.now).plus(Duration::from_secs(validity)),
            updated_at: self.now,
            route: routing::route(connection),
            detail: Detail {
                money: (!quotes.is_empty()).then(|| Money { quotes: quotes.clone(), limited_sender, ..Money::default() }),
                segments: measure.map(|m| m.segments),
                country: *country,
                scheduled_at: ahead,
                fallback: fallback.map(|connection| routing::route(connection)),
                fallback_from: fallback
                    .map(|fallback| sent_from(&self.sender.phone_number, fallback))
                    .filter(|from| *from != sent_from(&self.sender.phone_number, connection)),
                fallback_after_seconds: command.fallback_after_seconds,
                on_unknown: command.on_unknown.unwrap_or_default(),
                ..Detail::default()
            },
        }
    }
}

impl Destination {
    /// Returns the recipient of a request, or the faults of `to` and of the other fields, as far as they do not depend on it.
    pub(super) fn read(command: &SendMessage, now: Timestamp, lenient: bool) -> Result<Self> {
        let read = Parsed::parse(&command.to).map_err(|error| Error::field("to", error.to_string()));
        let read = read.and_then(|parsed| Self::of(parsed, command.channel.unwrap_or_default()));
        read.map_err(|error| with_other_faults(error, command, now, lenient))
    }

    /// Fails if `channel` cannot reach the recipient: a contradiction in the request is the caller's error, whatever the sender's connections.
    pub(crate) fn of(parsed: Parsed, channel: RequestedChannel) -> Result<Self> {
        if let RequestedChannel::Only(channel) = channel {
            on(&parsed, channel)?;
        }
        let facts = if let Parsed::Phone(number) = &parsed { Some(address::phone_facts(number)) } else { None };
        let (is_phone, is_assigned) = (facts.is_some(), facts.as_ref().is_some_and(|facts| facts.assigned));
        Ok(Self { parsed, country: facts.map_or_else(String::new, |facts| facts.country), is_phone, is_assigned })
    }
}

impl Itinerary<'_> {
    /// Returns the channels of the route and of the fallback.
    fn channels(&self) -> impl Iterator<Item = Channel> + '_ {
        std::iter::once(self.connection.channel).chain(self.fallback.map(|connection| connection.channel))
    }
}

fn on(parsed: &Parsed, channel: Channel) -> Result<Recipient> {
    Recipient::on(parsed, channel).map_err(|e| Error::field("to", e.to_string()))
}

/// Returns random bits of an id.
fn dice(id: MessageId) -> u16 {
    let bytes = id.uuid().into_bytes();
    u16::from_be_bytes([bytes[12], bytes[13]])
}

/// Renders a template, if all values are present.
fn rendered_if_complete(template: &Template, content: Option<&Content>, channel: Channel) -> Option<String> {
    let values = render::values(content);
    render::check(template, &values, "").is_empty().then(|| render::render(template, channel, &values))
}

/// Renders a template for channels without native templates. For WhatsApp, renders the text of the SMS fallback.
fn rendered(template: &Template, content: Option<&Content>, channel: Channel) -> Result<String> {
    let by = if channel == Channel::Whatsapp { Channel::Sms } else { channel };
    let text = render::render(template, by, &render::values(content));
    let mut errors = Vec::new();
    if channel != Channel::Whatsapp {
        validate::length(&mut FieldErrors { errors: &mut errors }, "content.templateVariables", &text, channel, false);
    }
    if errors.is_empty() { Ok(text) } else { Err(Error::invalid(errors)) }
}

/// Adds the errors of the other fields to that of `to`: on the requested channel or, with `auto`, those that every channel has.
fn with_other_faults(error: Error, command: &SendMessage, now: Timestamp, lenient: bool) -> Error {
    let mut errors = match command.channel {
        Some(RequestedChannel::Only(channel)) => validate::check(&mut command.clone(), channel, now, lenient),
        _ => validate::check_without_channel(&mut command.clone(), now, lenient),
    };
    if errors.is_empty() || !error.is_about("to") {
        return error;
    }
    errors.insert(0, FieldError::new("to", error.message_without("to")));
    Error::invalid(errors)
}

/// Fails unless the sender can send to the recipient's country. An unknown country is allowed only if all are.
pub(crate) fn allowed(sender: &Sender, recipient: &Recipient, country: &str) -> Result<()> {
    let countries = &sender.allowed_countries;
    if countries.is_empty() || recipient.kind != nuncio_domain::AddressKind::Phone || countries.iter().any(|allowed| allowed == country) {
        return Ok(());
    }
    let country = if country.is_empty() { "an unknown country" } else { country };
    let message = format!("is a number of {country}, which is not in the sender's allowedCountries: {}", countries.join(", "));
    Err(Error::field("to", message))
}

/// Returns the number or address that the messages of a sender with this phone number come from on a connection; empty where the channel has
/// neither.
pub(crate) fn sent_from(phone_number: &str, connection: &Connection) -> String {
    let configured = connection.settings.get("from").and_then(serde_json::Value::as_str);
    let is_phone = matches!(connection.channel, Channel::Sms | Channel::SmsOneway | Channel::Whatsapp | Channel::Voice);
    configured.or(is_phone.then_some(phone_number)).unwrap_or_default().to_owned()
}

/// Returns the decoded size of valid base64.
fn decoded(content: &str) -> u64 {
    let padding = content.bytes().rev().take_while(|byte| *byte == b'=').count();
    (content.len() / 4 * 3 - padding) as u64
}

fn attachment(given: AttachmentIn, ids: &Ids) -> Attachment {
    let content_type = given.content_type.unwrap_or_else(|| mime_guess::from_path(&given.filename).first_or_octet_stream().to_string());
    let size = given.content.as_ref().map(|content| decoded(content));
    let source = match (given.content, given.path) {
        (Some(content), _) => AttachmentSource::Base64(content),
        (None, path) => AttachmentSource::Url(path.unwrap_or_default()),
    };
    Attachment { id: ids.next(), filename: given.filename, content_type, content_id: given.content_id, size, source }
}
