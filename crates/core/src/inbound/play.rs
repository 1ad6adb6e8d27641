//! `POST /v1/sandbox/inbound`: a recipient writes, taps, reacts or reads, as if the provider had reported it.

use nuncio_channel::{Inbound, ProviderEvent, ReceiptTarget};
use nuncio_domain::address::{self, Parsed};
use nuncio_domain::config::{Connection, Sender, TenantConfig};
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Button, Content, Direction, Message, Row, Section, Status};
use nuncio_domain::page::PageRequest;
use nuncio_domain::template::ButtonType;
use nuncio_domain::{
    Channel, Environment, Error, ErrorCode, FieldError, MessageId, MessageType, Recipient, Result, SenderId, TemplateId, TenantId, limits,
};
use nuncio_store::{Idempotency, IdempotentOperation, MessageFilter, Repeat};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{ProviderEvents, Received};
use crate::base::{Caller, FieldErrors, UseCase, idempotency, parse_id_at, rights, unknown};
use crate::messages::MessageView;
use crate::messages::content::emoji;

/// An action of a recipient in the sandbox. Exactly one of `text`, `buttonId`, `reaction` and `read` is required.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = SandboxInbound)]
pub struct PlayInbound {
    /// The channel: `sms`, `whatsapp`, `telegram`, `email` or `instagram`.
    pub channel: Channel,
    /// The recipient: a phone number, email address or numeric chat id, as the channel requires.
    #[schema(min_length = 1, max_length = 320, example = "+34600111222")]
    pub from: String,
    /// The sender they write to: its `phoneNumber`, a phone number assigned to it, or its id. Default: the default sender.
    #[schema(min_length = 1, max_length = 320, example = "+12025550142")]
    pub to: Option<String>,
    /// The text they write.
    #[schema(min_length = 1, max_length = 10_000, example = "STOP")]
    pub text: Option<String>,
    /// The id of the button or list row they tap. For a template's quick reply, its text is its id.
    #[schema(min_length = 1, max_length = 256)]
    pub button_id: Option<String>,
    /// The emoji they react with; empty removes a reaction.
    #[schema(max_length = 16, example = "👍")]
    pub reaction: Option<String>,
    /// The message they read. Only WhatsApp and Instagram report that.
    pub read: Option<String>,
    /// The message they tap or react to; when absent, the newest one sent to them on the channel, or for `buttonId` the newest one that has
    /// such a button.
    pub message_id: Option<String>,
}

/// Maximum length of phone numbers, addresses and ids.
const IDENTIFIER: usize = 320;
/// Maximum length of an inbound text.
const TEXT: usize = 10_000;

/// Action of a recipient.
enum Act {
    Writes(String),
    Taps(String),
    Reacts(String),
    Reads,
}

/// Something that can be tapped.
enum Choice {
    Button(Button),
    Row(Row),
}

impl Choice {
    fn id(&self) -> &str {
        match self {
            Self::Button(button) => &button.id,
            Self::Row(row) => &row.id,
        }
    }

    /// Returns the title, and the content a provider reports of a tap. Only WhatsApp distinguishes rows from buttons.
    fn tapped(self, channel: Channel) -> (String, Content) {
        match self {
            Self::Row(row) if channel == Channel::Whatsapp => {
                let title = row.title.clone();
                let section = Section { title: String::new(), rows: vec![row] };
                (title, Content { sections: Some(vec![section]), ..Content::default() })
            }
            Self::Row(Row { id, title, .. }) | Self::Button(Button { id, title }) => {
                let button = Button { id, title: title.clone() };
                (title, Content { buttons: Some(vec![button]), ..Content::default() })
            }
        }
    }
}

/// Context of an action.
struct Scene<'a> {
    sender: &'a Sender,
    connection: &'a Connection,
    /// The sender's number they wrote to, if given.
    number: Option<String>,
    from: Recipient,
    /// The message they read, tapped or reacted to, if given.
    named: Option<Message>,
}

impl Scene<'_> {
    /// Fails unless the recipient has received the message in `field` from the sender on the channel.
    fn check_named(&self, field: &str) -> Result<()> {
        let Some(message) = &self.named else { return Ok(()) };
        let (from, channel) = (&self.from.identifier, self.connection.channel);
        let theirs = message.direction == Direction::Outbound && message.to == *from && message.state.route.channel == channel;
        if !theirs || message.sender != self.sender.id {
            let what = format!("{} was not sent to {from} by {channel} from the sender {}", message.id, self.sender.id);
            return Err(Error::field(field, what));
        }
        if !THERE.contains(&message.state.status) {
            let what = format!("{from} has not received the message {}", message.id);
            return Err(Error::wrong_state(what, message.state.status.as_str(), &THERE.map(Status::as_str)));
        }
        Ok(())
    }
}

/// Statuses of a message that its recipient has received.
const THERE: [Status; 3] = [Status::Sent, Status::Delivered, Status::Read];

impl ProviderEvents<'_> {
    /// Simulates an action of a recipient. Resulting messages and receipts take the normal route. Returns the inbound message, or the
    /// message that was read.
    pub async fn play(&self, caller: &Caller, command: PlayInbound, header: Option<&str>) -> Result<MessageView> {
        caller.require(UseCase::PlayInbound)?;
        if caller.environment == Environment::Live {
            let message = "this is a live key, but only the test environment is simulated; use a svc_test_ key";
            return Err(Error::new(ErrorCode::InvalidRequest, message));
        }
        let key = idempotency::key(None, header)?;
        let (from, act) = read(&command)?;
        let config = self.current_config(caller.tenant).await?;
        let named = self.named(caller.tenant, &command).await?;
        let scene = self.scene(&config, &command, from, named).await?;
        let asked = PlayInbound { from: scene.from.identifier.clone(), to: Some(scene.sender.id.to_string()), ..command };
        let guard = self.guard(caller.tenant, IdempotentOperation::PlayInbound, key, &asked);
        let (text, message_type, content, replies_to) = match act {
            Act::Reads => return self.play_read(caller, &scene, guard).await,
            Act::Writes(text) => (text, MessageType::Text, None, None),
            Act::Taps(id) => {
                let (message, title, content) = self.tapped(caller.tenant, &scene, &id).await?;
                (title, MessageType::Text, Some(content), reference(&message))
            }
            Act::Reacts(emoji) => {
                let reference = reference(&self.reacted_to(caller.tenant, &scene).await?);
                let content = Content { emoji: Some(emoji), react_to_message_id: reference.clone(), ..Content::default() };
                (String::new(), MessageType::Reaction, Some(content), reference)
            }
        };
        let ids = self.ids();
        let place = (caller.tenant, scene.connection.id, scene.connection.channel);
        let id = ids.next::<MessageId>().to_string().replacen(MessageId::PREFIX, "sim", 1);
        let written = Inbound::text(place, id, scene.from.identifier, text, ids.clock.now());
        let inbound = Inbound { to: scene.number, message_type, content: content.map(Box::new), replies_to, ..written };
        match self.inbound().receive_once(inbound, guard.as_ref()).await? {
            Received::Written(id) => {
                self.inner.dispatch.log_signals().changed(caller.tenant);
                self.messages().view(caller, id).await
            }
            Received::Repeated(repeat) => Err(self.played_before(caller, repeat).await?),
            Received::Dropped => Err(Error::unavailable("the sender has just changed; try again")),
        }
    }

    /// Returns the message of `read` or `messageId`.
    async fn named(&self, tenant: TenantId, command: &PlayInbound) -> Result<Option<Message>> {
        let Some(id) = command.read.as_deref().or(command.message_id.as_deref()) else { return Ok(None) };
        let path = if command.read.is_some() { "read" } else { "messageId" };
        let parsed: MessageId = parse_id_at(path, id, "message")?;
        let message = self.inner.store.read().await?.lookup_messages(tenant, &[parsed]).await?.pop();
        message.ok_or_else(|| unknown("message", path, id)).map(Some)
    }

    /// Determines the sender and the connection.
    async fn scene<'a>(&self, config: &'a TenantConfig, asked: &PlayInbound, from: Recipient, named: Option<Message>) -> Result<Scene<'a>> {
        let (sender, number) = match (asked.to.as_deref(), &named) {
            (Some(to), _) => (self.written_to(config, to).await?, address::phone(to).ok()),
            (None, Some(message)) => (config.sender(message.sender), None),
            (None, None) => (config.default_sender(), None),
        };
        let Some(sender) = sender else {
            let message = "is not a sender of this environment; must be a sender's phoneNumber, a phone number assigned to it, or its id";
            return Err(Error::field("to", format!("{:?} {message}", asked.to.as_deref().unwrap_or_default())));
        };
        let connection = config.connections.iter().find(|c| c.sender == sender.id && c.channel == asked.channel).ok_or_else(|| {
            let message = format!("the sender {} has no connected channel {}", sender.id, asked.channel);
            Error::new(ErrorCode::SenderNotConfigured, message)
        })?;
        let scene = Scene { sender, connection, number, from, named };
        scene.check_named(if asked.read.is_some() { "read" } else { "messageId" })?;
        Ok(scene)
    }

    async fn written_to<'a>(&self, config: &'a TenantConfig, to: &str) -> Result<Option<&'a Sender>> {
        match to.parse::<SenderId>() {
            Ok(id) => Ok(config.sender(id)),
            Err(_) => Ok(self.sender_with_number(config, to).await?),
        }
    }

    /// Returns the message with the button or row of this id that the recipient has, its title, and the content of a tap.
    async fn tapped(&self, tenant: TenantId, scene: &Scene<'_>, id: &str) -> Result<(Message, String, Content)> {
        let mut known = Vec::new();
        for message in self.had(tenant, scene).await? {
            for choice in self.choices(tenant, &message).await? {
                if choice.id() == id {
                    let (title, content) = choice.tapped(scene.connection.channel);
                    return Ok((message, title, content));
                }
                known.push(choice.id().to_owned());
            }
        }
        known.truncate(limits::FIELD_ERRORS);
        let has = if known.is_empty() { "there are none".to_owned() } else { format!("there are {}", known.join(", ")) };
        let (from, channel) = (&scene.from.identifier, scene.connection.channel);
        Err(Error::field("buttonId", format!("no message to {from} by {channel} has a button or row {id:?}; {has}")))
    }

    /// Returns what can be tapped in a message.
    async fn choices(&self, tenant: TenantId, message: &Message) -> Result<Vec<Choice>> {
        let Some(content) = message.request.content.as_deref() else { return Ok(Vec::new()) };
        if message.message_type == MessageType::Template && message.state.route.channel == Channel::Whatsapp {
            let Some(Ok(id)) = content.template_id.as_deref().map(str::parse::<TemplateId>) else { return Ok(Vec::new()) };
            let template = self.inner.store.read().await?.find_template(tenant, id).await?;
            let buttons = template.map(|template| template.content.buttons).unwrap_or_default().into_iter();
            let replies = buttons.filter(|button| button.kind == ButtonType::QuickReply);
            return Ok(replies.map(|button| Choice::Button(Button { id: button.text.clone(), title: button.text })).collect());
        }
        let rows = content.sections.iter().flatten().flat_map(|section| section.rows.iter().cloned().map(Choice::Row));
        Ok(content.buttons.iter().flatten().cloned().map(Choice::Button).chain(rows).collect())
    }

    async fn reacted_to(&self, tenant: TenantId, scene: &Scene<'_>) -> Result<Message> {
        let newest = self.had(tenant, scene).await?.into_iter().find(|message| message.message_type != MessageType::Reaction);
        newest.ok_or_else(|| {
            let (from, channel) = (&scene.from.identifier, scene.connection.channel);
            Error::field("reaction", format!("no message to {from} by {channel} can be reacted to; send a message first"))
        })
    }

    /// Returns the given message, or those of the sender that the recipient has received on the channel, newest first.
    async fn had(&self, tenant: TenantId, scene: &Scene<'_>) -> Result<Vec<Message>> {
        if let Some(named) = &scene.named {
            return Ok(vec![named.clone()]);
        }
        let filter = MessageFilter {
            to: Some(scene.from.identifier.clone()),
            channel: vec![scene.connection.channel],
            direction: Some(Direction::Outbound),
            sender: Some(scene.sender.id),
            ..MessageFilter::default()
        };
        let newest = self.inner.store.read().await?.list_messages(tenant, &filter, PageRequest::newest(limits::PAGE_MAX)).await?;
        Ok(newest.items.into_iter().filter(|m| THERE.contains(&m.state.status)).collect())
    }

    /// Reading twice changes nothing, so the key is claimed after the receipt: if that fails, the request can be repeated.
    async fn play_read(&self, caller: &Caller, scene: &Scene<'_>, guard: Option<Idempotency>) -> Result<MessageView> {
        let Some(message) = &scene.named else { return Err(Error::not_found("message")) };
        self.claim_read(caller, message.id, guard.as_ref(), false).await?;
        let (tenant, connection) = (caller.tenant, message.state.route.connection);
        let target = ReceiptTarget::Attempt { tenant, message: message.id, attempt: None, connection };
        let event = ProviderEvent::Receipt { target, kind: ReceiptKind::Read, at: self.ids().clock.now(), raw: None };
        let recorded = self.inner.services.events.record(event).await;
        recorded.map_err(|_| Error::unavailable("the receipt could not be stored; try again"))?;
        self.claim_read(caller, message.id, guard.as_ref(), true).await?;
        self.messages().view(caller, message.id).await
    }

    /// Fails if the key was already used; claims it if `keeps`.
    async fn claim_read(&self, caller: &Caller, id: MessageId, guard: Option<&Idempotency>, keeps: bool) -> Result<()> {
        if guard.is_none() {
            return Ok(());
        }
        let mut tx = self.inner.store.begin().await?;
        if let Some(repeat) = idempotency::claim(&mut *tx, caller.tenant, guard, id.uuid(), self.ids().clock.now()).await? {
            drop(tx);
            return Err(self.played_before(caller, repeat).await?);
        }
        if keeps {
            tx.commit().await?;
        }
        Ok(())
    }

    async fn played_before(&self, caller: &Caller, repeat: Repeat) -> Result<Error> {
        let original = self.messages().view(caller, MessageId::from_uuid(repeat.original)).await?;
        Ok(idempotency::conflict(caller, rights::MESSAGE, &original, repeat.same_request))
    }
}

/// Parses who does what; returns all errors at once.
fn read(command: &PlayInbound) -> Result<(Recipient, Act)> {
    let mut errors = Vec::new();
    let mut faults = FieldErrors { errors: &mut errors };
    for (path, text, least, most) in [
        ("from", Some(&command.from), 1, IDENTIFIER),
        ("to", command.to.as_ref(), 1, IDENTIFIER),
        ("text", command.text.as_ref(), 1, TEXT),
        ("buttonId", command.button_id.as_ref(), 1, limits::BUTTON_ID),
    ] {
        faults.length(path, text.map(String::as_str), least, most);
    }
    if let Some(reaction) = &command.reaction {
        emoji("reaction", reaction, &mut errors);
    }
    let channel = command.channel;
    if !channel.has_answers() {
        errors.push(FieldError::new(
            "channel",
            format!("{channel} has no inbound messages; must be sms, whatsapp, telegram, email or instagram"),
        ));
    }
    let from = Parsed::parse(&command.from).and_then(|parsed| Recipient::on(&parsed, channel));
    let from = from.map_err(|error| errors.push(FieldError::new("from", error.to_string()))).ok();
    let acts = [
        ("text", command.text.clone().map(Act::Writes)),
        ("buttonId", command.button_id.clone().map(Act::Taps)),
        ("reaction", command.reaction.clone().map(Act::Reacts)),
        ("read", command.read.as_ref().map(|_| Act::Reads)),
    ];
    let given: Vec<_> = acts.into_iter().filter_map(|(name, act)| Some((name, act?))).collect();
    for (name, _) in given.iter().skip(1) {
        errors.push(FieldError::new(
            *name,
            format!("cannot be combined with {}; must have exactly one of text, buttonId, reaction and read", given[0].0),
        ));
    }
    let (name, act) = given.into_iter().next().map_or(("text", None), |(name, act)| (name, Some(act)));
    match &act {
        None => errors.push(FieldError::new("text", "is missing; must have exactly one of text, buttonId, reaction and read")),
        Some(Act::Taps(_) | Act::Reacts(_)) if channel.has_answers() && !channel.is_app() => {
            errors.push(FieldError::new(name, format!("is not supported by {channel}; use whatsapp, telegram or instagram")));
        }
        Some(Act::Reads) if channel.has_answers() && !channel.has_read_receipts() => {
            errors.push(FieldError::new(name, format!("{channel} does not report reads; use whatsapp or instagram")));
        }
        Some(Act::Writes(_) | Act::Reads) if command.message_id.is_some() => {
            errors.push(FieldError::new("messageId", "is for buttonId and reaction only"));
        }
        Some(_) => {}
    }
    match (from, act) {
        (Some(from), Some(act)) if errors.is_empty() => Ok((from, act)),
        _ => Err(Error::invalid(errors)),
    }
}

/// Returns the provider's id of a message's newest attempt.
fn reference(message: &Message) -> Option<String> {
    message.state.detail.attempts.last().and_then(|attempt| attempt.provider_message_id.clone())
}
