//! From a request to a message that can be written: pure, from what is cached.

use std::sync::Arc;
use std::time::Duration;

use nuncio_domain::address::{self, Parsed};
use nuncio_domain::config::{Connection, Sender, World};
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{Detail, State, Wait};
use nuncio_domain::message::{Attachment, AttachmentSource, Content, Direction, Message, Money, Quote, QuoteState, Request, Status};
use nuncio_domain::price::Quantity;
use nuncio_domain::sms::{self, Measure};
use nuncio_domain::template::{self, Template};
use nuncio_domain::{
    Channel, ContactId, Environment, Error, ErrorCode, FieldError, Ids, MessageId, MessageType, Recipient, Result, Timestamp, plain,
};
use nuncio_store::{Accept, Idempotency, Operation};

use super::command::{AttachmentIn, SendMessage};
use super::routing::{Asked, Known};
use super::{routing, validate};
use crate::base::{Faults, check_metadata, once};
use crate::templates::render;

/// How a message is planned.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PlanOptions<'a> {
    /// Whether fields without a use are dropped.
    pub(crate) lenient: bool,
    /// Whether another good channel may be tried now and then.
    pub(crate) explores: bool,
    /// The template that it names.
    pub(crate) template: Option<&'a Template>,
}

/// How long a message that found no permit waits in memory before anyone may start it.
const GRACE: Duration = Duration::from_secs(5);

/// A planned message and the connection that carries it.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) accept: Accept,
    pub(crate) connection: Arc<Connection>,
    /// What it takes as SMS, should a route of it be SMS.
    pub(crate) measure: Option<Measure>,
}

/// Plans `command` as sent by `sender`. Everything that is wrong is told at once.
pub(crate) fn plan(
    world: &Arc<World>,
    sender: &Sender,
    mut command: SendMessage,
    known: &Known,
    now: Timestamp,
    ids: &Ids,
    options: PlanOptions<'_>,
) -> Result<Planned> {
    let message_type = command.message_type.unwrap_or_default();
    let parsed = match Parsed::parse(&command.to) {
        Ok(parsed) => parsed,
        Err(e) => return Err(with_metadata_faults(Error::field("to", e.to_string()), &command)),
    };
    let requested = command.channel.unwrap_or_default();
    // The recipient is judged before the sender's connections: a contradiction is the caller's own.
    if let nuncio_domain::RequestedChannel::Only(channel) = requested {
        Recipient::on(&parsed, channel).map_err(|e| Error::field("to", e.to_string()))?;
    }
    let (new_address, id): (nuncio_domain::AddressId, MessageId) = (ids.at(now), ids.at(now));
    let facts = if let Parsed::Phone(number) = &parsed { Some(address::phone_facts(number)) } else { None };
    let country = facts.as_ref().map_or_else(String::new, |facts| facts.country.clone());
    // Only what goes to a phone number may be SMS or speech; an email may be large.
    let (mut text, mut words) = (String::new(), String::new());
    let approved = options.template.is_none_or(|t| t.status == template::Status::Approved);
    let said = options.template.filter(|_| message_type == MessageType::Template).and_then(|t| in_words(t, command.content.as_deref()));
    if facts.is_some() {
        text = said.clone().or_else(|| command.text.clone()).unwrap_or_default();
        words = plain::text(message_type, Some(&text), command.content.as_deref()).into_owned();
    }
    let measure = facts.is_some().then(|| sms::measure(&words));
    let quantity = Quantity { segments: measure.map_or(1, |m| m.segments), spoken: words.chars().count() };
    let asked = Asked {
        sender,
        to: &parsed,
        channel: requested,
        message_type,
        text: &text,
        words: &words,
        media_is_bound: command.content.as_ref().is_some_and(|c| c.media_id.is_some()),
        country: &country,
        quantity,
        explores: options.explores && world.environment == Environment::Live && command.fallback_enabled.unwrap_or(true),
        dice: dice(id),
        now,
        approved,
    };
    let choice = routing::choose(world, &asked, known)?;
    let channel = choice.connection.channel;
    let recipient = Recipient::on(&parsed, channel).map_err(|e| Error::field("to", e.to_string()))?;
    let mut errors = validate::check(&mut command, channel, now, options.lenient);
    if !routing::carries(channel, message_type) {
        errors.push(FieldError::new("messageType", format!("channel {channel} cannot carry {message_type}")));
    } else if let Some(fault) = routing::misfit(channel, &asked)
        && errors.iter().all(|known| known.path != fault.path)
    {
        errors.push(fault);
    }
    if !errors.is_empty() {
        return Err(Error::invalid(errors));
    }
    let template = match (message_type, options.template) {
        (MessageType::Template, None) => return Err(Error::not_found("template")),
        (MessageType::Template, Some(template)) => Some(template),
        _ => None,
    };
    if let Some(template) = template
        && let faults = render::check(template, &render::values(command.content.as_deref()), "content.")
        && !faults.is_empty()
    {
        return Err(Error::invalid(faults));
    }
    if channel == Channel::Whatsapp && !approved {
        return Err(routing::not_approved());
    }
    let mut notes = choice.routing;
    if facts.is_some_and(|facts| !facts.assigned) {
        notes.warnings.push("the number lies outside the ranges that are known to be assigned".to_owned());
    }
    allowed(sender, &recipient, &country)?;
    let idempotency = command.idempotency_key.as_ref().map(|key| Idempotency {
        operation: Operation::SendMessage,
        key: key.clone(),
        fingerprint: once::fingerprint(&(sender.id, command.essence(channel))),
    });
    let fallback_enabled = command.fallback_enabled.unwrap_or(true);
    let fallback = if fallback_enabled { routing::fallback(world, &asked, channel, &mut notes.warnings) } else { None };
    let channels = || std::iter::once(channel).chain(fallback.as_ref().map(|route| route.channel));
    let measure = measure.filter(|_| channels().any(Channel::is_sms));
    let quotes = channels().filter_map(|channel| {
        let cost = known.prices.quote(channel, &country, quantity, now)?;
        Some(Quote { channel, cost, state: QuoteState::Open })
    });
    let quotes: Vec<Quote> = quotes.collect();
    if let Some(template) = template {
        command.text = Some(rendered(template, command.content.as_deref(), channel)?);
    }
    let detail = Detail {
        money: (!quotes.is_empty()).then(|| Money {
            quotes,
            limited_sender: sender.daily_spend_limit.map(|_| sender.id),
            ..Money::default()
        }),
        segments: measure.map(|m| m.segments),
        fallback,
        fallback_after_seconds: command.fallback_after_seconds,
        on_unknown: command.on_unknown.unwrap_or_default(),
        ..Detail::default()
    };
    let scheduled_at = command.scheduled_at;
    let ahead = scheduled_at.filter(|at| *at > now);
    let validity = command.validity_seconds.unwrap_or(super::command::validity(channel));
    let state = State {
        status: if ahead.is_some() { Status::Scheduled } else { Status::Queued },
        wait: Wait::Attempt { due_at: ahead.unwrap_or_else(|| now.plus(GRACE)) },
        fence: 0,
        version: 0,
        expires_at: ahead.unwrap_or(now).plus(Duration::from_secs(validity)),
        updated_at: now,
        route: routing::route(choice.connection),
        detail,
    };
    let attachments = command.attachments.unwrap_or_default().into_iter().map(|a| attachment(a, ids)).collect();
    let message = Message {
        tenant: world.tenant,
        id,
        direction: Direction::Outbound,
        message_type,
        to: recipient.identifier.clone(),
        from: from(sender, choice.connection),
        sender: sender.id,
        address: new_address,
        request: Arc::new(Request {
            requested_channel: requested,
            text: command.text,
            content: command.content,
            subject: command.subject,
            html_body: command.html_body,
            reply_to: command.reply_to,
            metadata: command.metadata,
            fallback_enabled,
            fallback_after_seconds: command.fallback_after_seconds,
            validity_seconds: command.validity_seconds,
            voice_language: command.voice_language,
            attachments,
            template: template.map(|t| Box::new(t.into())),
            scheduled_at,
            idempotency_key: None, // it is stored as it is sealed
            routing: notes,
        }),
        state,
    };
    let accept = Accept {
        message,
        recipient,
        country,
        mark: String::new(),
        new_address,
        new_contact: ContactId::from_uuid(new_address.uuid()),
        idempotency,
        epoch: world.epoch,
        broadcast_fence: 0,
        claim: None,
        now,
    };
    Ok(Planned { accept, connection: Arc::clone(choice.connection), measure })
}

/// Random bits of an identifier.
fn dice(id: MessageId) -> u16 {
    let bytes = id.uuid().into_bytes();
    u16::from_be_bytes([bytes[12], bytes[13]])
}

/// What a template says as SMS, if all values are there.
fn in_words(template: &Template, content: Option<&Content>) -> Option<String> {
    let values = render::values(content);
    render::check(template, &values, "").is_empty().then(|| render::render(template, Channel::Sms, &values))
}

/// The text of a template where the channel has no templates of its own. WhatsApp has; there it is what a fallback says.
fn rendered(template: &Template, content: Option<&Content>, channel: Channel) -> Result<String> {
    let by = if channel == Channel::Whatsapp { Channel::Sms } else { channel };
    let text = render::render(template, by, &render::values(content));
    let mut errors = Vec::new();
    if channel != Channel::Whatsapp {
        validate::length(&mut Faults { errors: &mut errors }, "content.templateVariables", &text, channel, false);
    }
    if errors.is_empty() { Ok(text) } else { Err(Error::invalid(errors)) }
}

/// Fails if the message goes only to who has written lately, and the recipient has not.
pub(crate) fn keep_window(planned: &Planned, known: &Known) -> Result<()> {
    let (channel, message_type) = (planned.connection.channel, planned.accept.message.message_type);
    if routing::has_window(channel, message_type) && known.window == routing::Window::Closed { Err(window_closed(channel)) } else { Ok(()) }
}

/// The sandbox's window is open for everyone but this recipient.
pub(crate) fn sandbox_window_closed(number: &str) -> bool {
    number.ends_with("5550009") || number == "900000009"
}

pub(crate) fn window_closed(channel: Channel) -> Error {
    let (code, carries) = match channel {
        Channel::Whatsapp => (ErrorCode::WhatsappWindowClosed, "WhatsApp carries templates only"),
        _ => (ErrorCode::WindowClosed, "the channel carries nothing"),
    };
    Error::new(code, format!("the recipient has not written within the last 24 hours; outside that window {carries}"))
}

/// A recipient that cannot be read hides what else is wrong, but for what needs no channel.
fn with_metadata_faults(error: Error, command: &SendMessage) -> Error {
    let mut errors = Vec::new();
    check_metadata(command.metadata.as_ref(), &mut errors);
    if errors.is_empty() || error.code() != ErrorCode::InvalidRequest {
        return error;
    }
    errors.insert(0, FieldError::new("to", error.message().trim_start_matches("to: ")));
    Error::invalid(errors)
}

/// Whether the sender may send to the recipient's country. A number of no known country is of none that is allowed.
fn allowed(sender: &Sender, recipient: &Recipient, country: &str) -> Result<()> {
    let countries = &sender.allowed_countries;
    if countries.is_empty() || recipient.kind != nuncio_domain::AddressKind::Phone || countries.iter().any(|allowed| allowed == country) {
        return Ok(());
    }
    let country = if country.is_empty() { "an unknown country" } else { country };
    let message =
        format!("is a number of {country}, which the setting allowedCountries of the sender leaves out: {}", countries.join(", "));
    Err(Error::field("to", message))
}

/// The number or address that messages of a sender come from on a connection.
pub(crate) fn from(sender: &Sender, connection: &Connection) -> String {
    let configured = connection.settings.get("from").and_then(serde_json::Value::as_str);
    configured.unwrap_or(&sender.phone_number).to_owned()
}

/// Bytes of a text that was found to be base64.
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
