//! Stores inbound messages, opt-outs, complaints and bounces.

use std::borrow::Cow;
use std::sync::Arc;
use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::STANDARD};
use nuncio_channel::{Inbound, Media, OptedOut, Wish};
use nuncio_dispatch::Hint;
use nuncio_domain::address::{self, Parsed};
use nuncio_domain::config::{Connection, Sender, TenantConfig};
use nuncio_domain::id::Id as _;
use nuncio_domain::ledger::{Purpose, Transfer};
use nuncio_domain::lifecycle::bounded_reference;
use nuncio_domain::message::{
    Attachment, AttachmentSource, Content, Detail, Direction, Message, Money, Quote, QuoteState, Request, Route, State, Status, Wait,
};
use nuncio_domain::page::PageRequest;
use nuncio_domain::price::{PriceBook, Quantity};
use nuncio_domain::{
    AddressId, AddressKind, Channel, ConnectionId, ContactId, Country, Ids, MessageId, Recipient, RequestedChannel, TenantId, Timestamp,
    limits, line, sms,
};
use nuncio_store::{Idempotency, MessageFilter, NewInbound, Repeat, Result, Store, Suppression, SuppressionReason, Transferred, Tx};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

use super::ProviderEvents;
use crate::base::has_nul;
use crate::contacts;
use crate::contacts::suppressions;
use crate::inbound::keywords;
use crate::messages::{self, sent_from};

/// Minimum interval between automatic replies to help requests: two machines must not reply to each other without end.
const QUIET: Duration = Duration::from_secs(60);
/// Automatic replies that an author gets within a day. They are counted among the `COUNTED` newest messages to them.
const REPLIES_A_DAY: usize = 10;
const COUNTED: u32 = 100;
const DAY: Duration = Duration::from_secs(86_400);
/// The oldest time of writing that a provider can report; an older one is a mistake.
const OLDEST: Duration = Duration::from_secs(30 * 86_400);

/// Result of an inbound message.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Received {
    /// Stored.
    Written(MessageId),
    /// Already stored, or its connection is unknown.
    Dropped,
    /// Its idempotency key was already used; nothing was stored.
    Repeated(Repeat),
}

/// Whom an inbound message was written to, and how that sender replies.
struct Addressee<'a> {
    sender: &'a Sender,
    replies_by: &'a Connection,
    /// The number or address that replies come from.
    replies_as: String,
}

impl ProviderEvents<'_> {
    /// Stores an inbound message, unless it is already stored.
    pub(crate) async fn receive_message(&self, inbound: Inbound) -> Result<()> {
        self.receive_once(inbound, None).await.map(drop)
    }

    /// Stores an inbound message under an idempotency key, unless either exists.
    pub(crate) async fn receive_once(&self, inbound: Inbound, guard: Option<&Idempotency>) -> Result<Received> {
        let (store, ids) = (&*self.inner.store, self.ids());
        let now = ids.clock.now();
        let inbound = without_nul(inbound);
        let Some(config) = self.config_with_connection(inbound.tenant, inbound.connection).await? else { return Ok(Received::Dropped) };
        let Some(connection) = config.connections.iter().find(|c| c.id == inbound.connection) else { return Ok(Received::Dropped) };
        let Some(Addressee { sender, replies_by, replies_as }) = self.addressee(&config, connection, &inbound).await? else {
            return Ok(Received::Dropped);
        };
        let Some(from) = author(&inbound, sender) else {
            if let Some(suppressed) = self.inner.dropped.line("author", ids.clock.monotonic()) {
                tracing::warn!(connection = %inbound.connection, suppressed, "failed to parse the author of an inbound message; dropped the message");
            }
            return Ok(Received::Dropped);
        };
        // The time of an email is what its author claims.
        let written_at = if inbound.channel == Channel::Email { now } else { time_of_writing(inbound.at, now) };
        let new_address: AddressId = ids.next();
        let message = Message {
            tenant: inbound.tenant,
            id: ids.in_order(now),
            direction: Direction::Inbound,
            message_type: inbound.message_type,
            to: inbound.to.clone().unwrap_or_else(|| sent_from(&sender.phone_number, connection)),
            from: from.identifier.clone(),
            sender: sender.id,
            address: new_address,
            request: Arc::new(received(store, ids, &from, &inbound).await?),
            state: received_state(&inbound, route(connection), now),
        };
        let country = if from.kind == AddressKind::Phone { address::phone_facts(&from.identifier).country } else { String::new() };
        let is_proven = inbound.authentication.is_none_or(|authentication| authentication.is_authenticated());
        let is_tap = inbound.content.as_ref().is_some_and(|content| content.buttons.is_some() || content.sections.is_some());
        let read = if is_tap { keywords::read_button } else { keywords::read };
        let wished = match read(own_words(&inbound), &sender.name) {
            _ if inbound.answered.is_some() => inbound.answered.map(|wish| (wish, None)),
            Some((wish, answer)) if is_proven || (wish != Wish::Start && replies_to_ours(store, &inbound, &from).await?) => {
                Some((wish, Some(answer)))
            }
            _ => None,
        };
        let new = NewInbound {
            mark: self.inner.marks.of(inbound.tenant, &from),
            message,
            from,
            country,
            new_address,
            new_contact: ContactId::from_uuid(new_address.uuid()),
            provider_key: self.inner.marks.key(inbound.tenant, &identity(&inbound)),
            written_at,
            is_proven,
        };
        let prices = if matches!(wished, Some((_, Some(_)))) { self.price_book(&config).await? } else { Arc::default() };
        let mut tx = store.begin().await?;
        if let Some(guard) = guard {
            let purge_after = now.plus(limits::IDEMPOTENCY_RETENTION);
            if let Some(repeat) = tx.claim_idempotency_key(new.message.tenant, guard, new.message.id.uuid(), purge_after).await? {
                return Ok(Received::Repeated(repeat));
            }
        }
        let written = tx.insert_inbound(&new).await?;
        let mut answered = None;
        if written {
            if let Some(name) = inbound.profile_name.filter(|name| is_proven && !name.is_empty()) {
                store_profile_name(&mut *tx, &new, name, now).await?;
            }
            if let Some((wish, answer)) = wished
                && grant(&mut *tx, ids, &new, wish, now).await?
                && let Some(answer) = answer
                && may_reply(&mut *tx, &new, sender, wish, now).await?
                && let Some(mut message) = reply(&mut *tx, ids, &new, (route(replies_by), replies_as), answer, now).await?
            {
                reserve(&mut *tx, &mut message, sender, &prices, &new.country, now).await?;
                tx.insert_reply(&message).await?;
                answered = Some(message);
            }
        }
        tx.commit().await?;
        if let Some(answer) = answered {
            self.inner.dispatch.add_hint(Hint::of(&answer));
        }
        Ok(if written { Received::Written(new.message.id) } else { Received::Dropped })
    }

    /// Determines whom an inbound message was written to. An account can carry texts to the numbers of several senders.
    async fn addressee<'a>(&self, config: &'a TenantConfig, by: &'a Connection, inbound: &Inbound) -> Result<Option<Addressee<'a>>> {
        let Some(own) = config.sender(by.sender) else { return Ok(None) };
        let usual = Addressee { sender: own, replies_by: by, replies_as: sent_from(&own.phone_number, by) };
        let Some(to) = inbound.to.as_deref().filter(|to| by.channel.is_sms() && *to != usual.replies_as) else {
            return Ok(Some(usual));
        };
        let Some(sender) = self.sender_with_number(config, to).await? else { return Ok(Some(usual)) };
        // What takes the texts to a number can send from it, unless it is set to send from another.
        let is_free = |connection: &Connection| !connection.settings.contains_key("from");
        let replies_by = config.connection(sender.id, by.channel).filter(|_| !is_free(by)).map_or(by, |connection| &**connection);
        Ok(Some(Addressee { sender, replies_by, replies_as: sent_from(to, replies_by) }))
    }

    /// Returns the sender of an environment that has this phone number, as its own or assigned to it.
    pub(super) async fn sender_with_number<'a>(&self, config: &'a TenantConfig, number: &str) -> Result<Option<&'a Sender>> {
        if address::phone(number).is_err() {
            return Ok(None);
        }
        let own = config.senders.iter().find(|sender| sender.phone_number == number);
        if own.is_some() {
            return Ok(own);
        }
        let mut tx = self.inner.store.read().await?;
        let Some((_, Some(held))) = tx.find_inventory_number(config.tenant, number).await? else { return Ok(None) };
        let number = tx.find_number(config.tenant, held).await?;
        Ok(number.and_then(|number| number.sender).and_then(|id| config.sender(id)))
    }

    /// Returns a tenant's configuration with this connection; the cached one can be older than the connection.
    async fn config_with_connection(&self, tenant: TenantId, connection: ConnectionId) -> Result<Option<Arc<TenantConfig>>> {
        let has = |config: &Option<Arc<TenantConfig>>| config.as_ref().is_some_and(|w| w.connections.iter().any(|c| c.id == connection));
        let config = self.stored_tenant_config(tenant).await?;
        if has(&config) {
            return Ok(config);
        }
        self.forget_config(tenant);
        Ok(self.stored_tenant_config(tenant).await?.filter(|config| has(&Some(Arc::clone(config)))))
    }
}

/// Returns the author; `None` if it is not an address that can be answered. Some SMS gateways name the author by a national number, of the
/// country of the number that was written to.
fn author(inbound: &Inbound, sender: &Sender) -> Option<Recipient> {
    let on = |text: &str| Recipient::on(&Parsed::parse(text).ok()?, inbound.channel).ok();
    on(&inbound.from).or_else(|| {
        let ours = [inbound.to.as_deref().unwrap_or_default(), &sender.phone_number].into_iter().filter(|ours| ours.starts_with('+'));
        let countries: Vec<String> = ours.map(address::country).chain(sender.allowed_countries.iter().cloned()).collect();
        let number = |country: &String| address::typed_phone(&inbound.from, &[country]).ok();
        countries.iter().find_map(number).filter(|_| inbound.channel == Channel::Sms).and_then(|number| on(&number))
    })
}

/// Returns a time that a provider reports, or `now` if it is later or too old.
fn time_of_writing(reported: Timestamp, now: Timestamp) -> Timestamp {
    if reported < now.minus(OLDEST) { now } else { reported.min(now) }
}

/// Returns what is the same when an inbound message comes again. The `Message-ID` of an email is its author's: another email can have it.
fn identity(inbound: &Inbound) -> Cow<'_, str> {
    let Inbound { provider_message_id: id, from, subject, text, html_body, media, .. } = inbound;
    match inbound.channel {
        Channel::Email => {
            let digest = |media: &Media| Sha256::digest(media.bytes.as_deref().unwrap_or_default());
            let files: Vec<_> = media.iter().map(|media| (&media.filename, digest(media))).collect();
            Cow::Owned(format!("{:?}", (id, from, subject, text, html_body, files)))
        }
        _ => Cow::Borrowed(id),
    }
}

/// Replaces NUL in what people and providers write: PostgreSQL can neither store nor search it.
fn without_nul(mut inbound: Inbound) -> Inbound {
    let optional = [&mut inbound.to, &mut inbound.profile_name, &mut inbound.subject, &mut inbound.html_body, &mut inbound.replies_to];
    let texts = optional.into_iter().flatten().chain([&mut inbound.text, &mut inbound.provider_message_id]);
    let of_media = inbound.media.iter_mut().flat_map(|media| {
        let optional = [&mut media.filename, &mut media.content_id].into_iter().flatten();
        [&mut media.reference, &mut media.content_type].into_iter().chain(optional)
    });
    for text in texts.chain(of_media).filter(|text| text.contains('\0')) {
        *text = text.replace('\0', "\u{fffd}");
    }
    inbound.content = inbound.content.map(content_without_nul);
    inbound
}

/// The same for the content, whose texts are where its type says.
fn content_without_nul(content: Box<Content>) -> Box<Content> {
    let mut value = serde_json::to_value(&content).unwrap_or_default();
    if !has_nul(&value) {
        return content;
    }
    replace_nul(&mut value);
    serde_json::from_value(value).map_or(content, Box::new)
}

fn replace_nul(value: &mut Value) {
    match value {
        Value::String(text) => *text = text.replace('\0', "\u{fffd}"),
        Value::Array(items) => items.iter_mut().for_each(replace_nul),
        Value::Object(members) => members.values_mut().for_each(replace_nul),
        _ => {}
    }
}

fn route(connection: &Connection) -> Route {
    Route { channel: connection.channel, connection: connection.id, provider: connection.kind.clone() }
}

/// Returns the state of an inbound message, which never changes.
fn received_state(inbound: &Inbound, route: Route, now: Timestamp) -> State {
    State {
        status: Status::Received,
        wait: Wait::Nothing,
        fence: 0,
        version: 0,
        expires_at: now,
        updated_at: now,
        route,
        detail: Detail {
            provider_id: Some(inbound.provider_message_id.clone()),
            authentication: inbound.authentication,
            ..Detail::default()
        },
    }
}

/// Returns whether an email replies to one of ours to its author on the same connection. Only the recipient knows our `Message-ID` with its
/// random part: it authorises an opt-out, like the unsubscribe link, but no opt-in.
async fn replies_to_ours(store: &dyn Store, inbound: &Inbound, from: &Recipient) -> Result<bool> {
    let Some(id) = inbound.replies_to.as_deref().and_then(|id| id.parse::<MessageId>().ok()) else { return Ok(false) };
    let answered = store.read().await?.lookup_messages(inbound.tenant, &[id]).await?.pop();
    Ok(answered.is_some_and(|message| {
        let by_same = message.state.detail.attempts.iter().any(|attempt| attempt.connection == inbound.connection);
        let to_author = address::folded(from.kind, &message.to) == from.folded();
        message.direction == Direction::Outbound && to_author && by_same
    }))
}

/// The first two words of the line that mail programs write below an email, "Sent from", in lower case.
const SENT: &[&str] = &[
    "sent", "enviado", "enviada", "enviat", "envoyé", "gesendet", "inviato", "inviata", "verstuurd", "verzonden", "skickat", "sendt",
    "wysłane", "wysłano", "lähetetty", "odesláno", "отправлено",
];
const SENT_BY: &[&str] = &[
    "from", "via", "with", "using", "desde", "con", "de", "des", "do", "da", "com", "depuis", "avec", "von", "vom", "mit", "aus", "über",
    "dal", "dalla", "tramite", "vanaf", "met", "från", "fra", "med", "z", "ze", "с", "из",
];

/// What follows them where no name does, as in "Sent from my phone".
const OWN: &[&str] = &["my", "mi", "meu", "mon", "meinem", "meiner", "mio", "mijn", "min", "mit"];

/// How mail programs name the author of the email that they quote, and what is in the line below, in lower case.
const QUOTED_FROM: &[&str] =
    &["from", "von", "de", "da", "van", "från", "fra", "od", "lähettäjä", "от", "发件人", "寄件者", "差出人", "보낸 사람"];
const QUOTED_NEXT: &[&str] = &[
    "sent", "date", "to", "gesendet", "datum", "an", "enviado", "enviado el", "enviado em", "enviada em", "fecha", "data", "para",
    "envoyé", "à", "inviato", "a", "verzonden", "aan", "skickat", "till", "sendt", "dato", "til", "wysłano", "wysłane", "do", "odesláno",
    "komu", "lähetetty", "отправлено", "дата", "кому", "发送时间", "日期", "傳送時間", "寄件日期", "送信日時", "日時", "보낸 날짜", "날짜",
];

/// A colon as Latin scripts and as East Asian ones write it.
const COLONS: [char; 2] = [':', '：'];

/// Returns what the author wrote: without the quoted email and the signature; for an empty body, the subject. A link to a bot of Telegram can
/// add a word to the command that starts it.
fn own_words(inbound: &Inbound) -> &str {
    if inbound.channel == Channel::Telegram
        && let Some((command @ "/start", added)) = inbound.text.split_once(' ')
        && !added.contains(char::is_whitespace)
    {
        return command;
    }
    if inbound.channel != Channel::Email {
        return &inbound.text;
    }
    let ends = |line: &str| {
        let line = line.trim();
        line == "--" || [">", "-----", "_____", "Yahoo Mail: "].iter().any(|begin| line.starts_with(begin)) || is_mobile_signature(line)
    };
    let lines: Vec<&str> = inbound.text.split_inclusive('\n').collect();
    let is_own = |n: &usize| !ends(lines[*n]) && !begins_quoted_header(&lines[*n..]);
    let own = (0..lines.len()).take_while(is_own).map(|n| lines[n].len()).sum();
    let mut words = inbound.text[..own].trim();
    if own < inbound.text.len() && words.ends_with(COLONS) {
        // "On Saturday, Acme wrote:", possibly with a line break
        words = words.rsplit_once("\n\n").or(words.rsplit_once('\n')).map_or("", |(words, _)| words).trim();
    }
    if words.is_empty() { inbound.subject.as_deref().unwrap_or_default() } else { words }
}

/// Returns whether a mail program added a line: "Sent from" and the name of the program or the phone, or a link to Outlook.
fn is_mobile_signature(line: &str) -> bool {
    let lower = line.to_lowercase();
    let words: Vec<&str> = lower.split_whitespace().collect();
    let [first, second, third, ..] = words.as_slice() else { return false };
    // The names of programs and phones have capitals.
    let is_named = line.chars().skip_while(|c| !c.is_whitespace()).any(char::is_uppercase);
    (SENT.contains(first) && SENT_BY.contains(second) && (is_named || OWN.contains(third)))
        || (*first == "von" && *second == "meinem")
        || (lower.contains("outlook") && ["ios", "android"].iter().any(|system| lower.contains(system)))
}

/// Returns whether lines begin with the fields of a quoted email.
fn begins_quoted_header(lines: &[&str]) -> bool {
    let names = |line: &str, fields: &[&str]| {
        let name = line.split(COLONS).next().filter(|name| name.len() < line.len()).unwrap_or_default();
        fields.contains(&name.replace('*', "").trim().to_lowercase().as_str())
    };
    let [first, second, ..] = lines else { return false };
    names(first, QUOTED_FROM) && names(second, QUOTED_NEXT)
}

/// Stores the author's name in the messaging app on the contact.
async fn store_profile_name(tx: &mut dyn Tx, new: &NewInbound, name: String, now: Timestamp) -> Result<()> {
    let tenant = new.message.tenant;
    let name: String = line::cleaned(&name).chars().take(limits::DISPLAY_NAME).collect();
    if name.is_empty() {
        return Ok(());
    }
    let Some(mut contact) = contacts::lock_of(tx, tenant, &new.from).await? else { return Ok(()) };
    if contact.detail.profile_name.as_ref() == Some(&name) {
        return Ok(());
    }
    contact.detail.profile_name = Some(name);
    contact.version += 1;
    contact.updated_at = now;
    tx.update_contact(tenant, &contact).await?;
    Ok(())
}

/// Carries out a recipient's request; returns whether to reply. A repeated STOP gets no reply.
async fn grant(tx: &mut dyn Tx, ids: &Ids, new: &NewInbound, wish: Wish, now: Timestamp) -> Result<bool> {
    let (tenant, sender, from) = (new.message.tenant, new.message.sender, &new.from);
    match wish {
        Wish::Stop => {
            let suppression = Suppression {
                id: ids.next(),
                recipient: from.clone(),
                sender: Some(sender),
                reason: SuppressionReason::OptOut,
                source: format!("inbound {}", new.message.id),
            };
            let fresh = tx.insert_suppression(tenant, &suppression, new.written_at).await?;
            if fresh {
                suppressions::publish_opt_out(tx, tenant, &suppression, now).await?;
            }
            Ok(fresh)
        }
        Wish::Start => {
            // A START that arrives after a newer STOP lifts nothing. Providers count in seconds.
            let lifted = tx.delete_opt_out(tenant, from, sender, new.written_at.plus(Duration::from_millis(999))).await?;
            Ok(lifted && !tx.is_suppressed(tenant, from.kind, &from.identifier, sender).await?)
        }
        Wish::Help => Ok(true),
    }
}

/// Returns whether the author gets a reply: anybody can write under any number, and each reply costs money.
async fn may_reply(tx: &mut dyn Tx, new: &NewInbound, sender: &Sender, wish: Wish, now: Timestamp) -> Result<bool> {
    if messages::allowed(sender, &new.from, &new.country).is_err() {
        return Ok(false);
    }
    let filter = MessageFilter { to: Some(new.from.identifier.clone()), ..MessageFilter::default() };
    let newest = tx.list_messages(new.message.tenant, &filter, PageRequest::newest(COUNTED)).await?.items;
    let is_reply = |message: &Message, within| message.state.detail.compliance && now.since(message.id.created_at()) < within;
    if wish == Wish::Help && newest.iter().any(|message| is_reply(message, QUIET)) {
        return Ok(false);
    }
    Ok(newest.iter().filter(|message| is_reply(message, DAY)).count() < REPLIES_A_DAY)
}

/// Replies on the same channel, even if the recipient has opted out: they asked.
async fn reply(
    tx: &mut dyn Tx,
    ids: &Ids,
    new: &NewInbound,
    (route, from): (Route, String),
    text: String,
    now: Timestamp,
) -> Result<Option<Message>> {
    let inbound = &new.message;
    let Some((address, _)) = tx.find_address(inbound.tenant, &new.from).await? else { return Ok(None) };
    let channel = route.channel;
    let mut request = Request::text(RequestedChannel::Only(channel), text);
    request.subject = (channel == Channel::Email).then(|| "Your request".to_owned());
    request.routing.reason = format!("the answer to {}", inbound.id);
    let message = Message {
        // Listed after what it answers.
        id: ids.at(now.plus(Duration::from_millis(1))),
        direction: Direction::Outbound,
        to: new.from.identifier.clone(),
        from,
        address,
        request: Arc::new(request),
        state: State {
            status: Status::Queued,
            wait: Wait::Attempt { due_at: now },
            expires_at: now.plus(Duration::from_secs(messages::validity(channel))),
            route,
            detail: Detail { compliance: true, country: Country::of(&new.country), ..Detail::default() },
            ..inbound.state.clone()
        },
        ..inbound.clone()
    };
    Ok(Some(message))
}

/// Reserves the price of a reply. If it cannot be paid, the reply is sent for free: an opt-out must be confirmed.
async fn reserve(tx: &mut dyn Tx, reply: &mut Message, sender: &Sender, book: &PriceBook, country: &str, now: Timestamp) -> Result<()> {
    let (channel, text) = (reply.state.route.channel, reply.request.text.as_deref().unwrap_or_default());
    let quantity = Quantity { segments: sms::measure(text).segments, spoken: text.chars().count() };
    reply.state.detail.segments = channel.is_sms().then_some(quantity.segments);
    let Some(cost) = book.quote(channel, country, quantity, now) else { return Ok(()) };
    let limited_sender = sender.daily_spend_limit.map(|_| sender.id);
    let (resource, amount) = (reply.id.uuid(), cost.total());
    let transfer = Transfer { purpose: Purpose::Reserve, resource, part: 0, amount, sender: limited_sender };
    if amount.0 > 0 && tx.transfer(reply.tenant, &transfer, now).await? != Transferred::Done {
        return Ok(());
    }
    let quotes = vec![Quote { channel, cost, state: QuoteState::Open }];
    reply.state.detail.money = Some(Money { quotes, limited_sender, prepaid: false });
    Ok(())
}

/// Converts an inbound event to a message.
async fn received(store: &dyn Store, ids: &Ids, from: &Recipient, inbound: &Inbound) -> Result<Request> {
    let mut content = inbound.content.clone();
    if let Some(reference) = content.as_mut().and_then(|content| content.react_to_message_id.as_mut()) {
        *reference = ours(store, inbound, from, reference).await?.map_or_else(String::new, |id| id.to_string());
    }
    Ok(Request {
        text: (!inbound.text.is_empty()).then(|| inbound.text.clone()),
        content,
        subject: inbound.subject.as_deref().map(line::cleaned),
        html_body: inbound.html_body.clone(),
        attachments: inbound.media.iter().map(|media| attachment(ids, media)).collect(),
        ..Request::text(RequestedChannel::Auto, String::new())
    })
}

fn attachment(ids: &Ids, media: &Media) -> Attachment {
    let source = match &media.bytes {
        Some(bytes) => AttachmentSource::Base64(STANDARD.encode(bytes).into()),
        None => AttachmentSource::Provider(media.reference.clone()),
    };
    Attachment {
        id: ids.next(),
        filename: media.filename.as_deref().map(file_name).filter(|name| !name.is_empty()).unwrap_or_else(|| "media".to_owned()),
        content_type: media.content_type.clone(),
        content_id: media.content_id.clone(),
        size: media.bytes.as_ref().map(|bytes| bytes.len() as u64),
        source,
    }
}

/// Returns a file name without folders, as other systems take it.
fn file_name(name: &str) -> String {
    line::cleaned(name).replace(['/', '\\'], "_")
}

/// Returns the message with this person that has the provider's id: one whose receipts name it by that id, or one of the newest.
async fn ours(store: &dyn Store, inbound: &Inbound, with: &Recipient, reference: &str) -> Result<Option<MessageId>> {
    let (tenant, mut tx) = (inbound.tenant, store.read().await?);
    let bounded = bounded_reference(reference.to_owned());
    if let Some(id) = tx.find_message_by_reference(tenant, inbound.connection, &bounded).await? {
        let found = tx.lookup_messages(tenant, &[id]).await?.pop();
        return Ok(found.filter(|message| message.to == with.identifier).map(|message| message.id));
    }
    let filter = MessageFilter { to: Some(with.identifier.clone()), ..MessageFilter::default() };
    let newest = tx.list_messages(tenant, &filter, PageRequest::newest(limits::PAGE_MAX)).await?;
    let known_as = |message: &Message| {
        let detail = &message.state.detail;
        detail.provider_id.as_deref() == Some(reference)
            || detail.attempts.iter().any(|a| a.provider_message_id.as_deref() == Some(reference))
    };
    Ok(newest.items.into_iter().find(known_as).map(|message| message.id))
}

impl ProviderEvents<'_> {
    /// Opts a recipient out of all messages of an account, as reported by the provider.
    pub(super) async fn opt_out(&self, opted: OptedOut) -> Result<()> {
        let (tenant, now) = (opted.tenant, self.ids().clock.now());
        let Some(config) = self.config_with_connection(tenant, opted.connection).await? else { return Ok(()) };
        let Some(connection) = config.connections.iter().find(|c| c.id == opted.connection) else { return Ok(()) };
        let Some(recipient) = Parsed::parse(&opted.from).ok().and_then(|parsed| Recipient::on(&parsed, opted.channel).ok()) else {
            return Ok(());
        };
        let suppression = Suppression {
            id: self.ids().next(),
            recipient,
            sender: Some(connection.sender),
            reason: SuppressionReason::OptOut,
            source: format!("reported by {}", connection.kind),
        };
        let mut tx = self.inner.store.begin().await?;
        if tx.insert_suppression(tenant, &suppression, time_of_writing(opted.at.unwrap_or(now), now)).await? {
            suppressions::publish_opt_out(&mut *tx, tenant, &suppression, now).await?;
        }
        tx.commit().await
    }

    /// Suppresses a message's recipient for the whole tenant, permanently, because of a complaint or a bounce. An alias is not suppressed
    /// because one of those behind it failed, whom the provider then names.
    pub(super) async fn suppress(&self, tenant: TenantId, id: MessageId, reason: SuppressionReason, failed: Option<String>) -> Result<()> {
        let (store, now) = (&*self.inner.store, self.ids().clock.now());
        let Some(message) = store.read().await?.lookup_messages(tenant, &[id]).await?.pop() else { return Ok(()) };
        let on = |text: &str| Recipient::on(&Parsed::parse(text).ok()?, message.state.route.channel).ok();
        let Some(recipient) = on(&message.to) else { return Ok(()) };
        if failed.is_some_and(|failed| on(&failed).is_none_or(|failed| failed.folded() != recipient.folded())) {
            return Ok(());
        }
        let suppression = Suppression {
            id: self.ids().next(),
            recipient,
            sender: None,
            reason,
            source: if reason == SuppressionReason::Bounce { format!("bounce of {id}") } else { format!("complaint about {id}") },
        };
        let mut tx = store.begin().await?;
        tx.insert_suppression(tenant, &suppression, now).await?;
        tx.commit().await
    }
}

#[cfg(test)]
mod tests {
    use nuncio_domain::{ConnectionId, id::uuid_v7};

    use super::*;

    fn read(channel: Channel, text: &str, subject: &str) -> String {
        let now = Timestamp::from_millis(0);
        let place = (TenantId(1), ConnectionId::from_uuid(uuid_v7(now, [0; 10])), channel);
        let mut inbound = Inbound::text(place, String::new(), String::new(), text.to_owned(), now);
        inbound.subject = Some(subject.to_owned());
        own_words(&inbound).to_owned()
    }

    #[test]
    fn the_own_words_of_an_email() {
        for text in [
            "STOP",
            "STOP\nOn Sat, 21 Nov 2026, Acme wrote:\n> Buy\n",
            "STOP\n\nOn Sat, 21 Nov 2026, Acme <hello@example.org>\nwrote:\n\n> Buy\n",
            "STOP\n> Buy",
            "\nSTOP\n-- \nAda",
            "STOP\n-----Original Message-----\nBuy",
            "STOP\n\nSent from my iPhone\n\n> Buy\n",
            "STOP\n\nGet Outlook for iOS<https://aka.ms/o0ukef>\n________________________________\nFrom: Acme\n",
            "STOP\n\nVon meinem iPhone gesendet\n\n> Am 21.11.2026 schrieb Acme:\n",
            "STOP\n\nSent with Proton Mail secure email.\n\nOn Saturday, Acme wrote:\n\n> Buy\n",
            "STOP\n\nFrom: Acme <hello@example.org>\nSent: Saturday, 21 November 2026\nTo: Ada\nSubject: Buy\n\nBuy\n",
            "STOP\n\n*Von:* Acme\n*Gesendet:* Samstag\n*An:* Ada\n*Betreff:* Buy\n",
            "STOP\nDe : Acme\nEnvoyé : samedi\nÀ : Ada\nObjet : Buy\n",
            "STOP\nDe: Acme\nEnviado el: sábado\nPara: Ada\nAsunto: Buy\n",
            "STOP\nDa: Acme\nInviato: sabato\nA: Ada\n",
            "STOP\nVan: Acme\nVerzonden: zaterdag\nAan: Ada\n",
            "STOP\n\nFrån: Acme <hello@example.org>\nSkickat: lördag\nTill: Ada\nÄmne: Buy\n",
            "STOP\n\n发件人： Acme <hello@example.org>\n发送时间： 2026年11月21日\n收件人： Ada\n",
            "STOP\n\nAcme <hello@example.org> 于2026年11月21日周六写道：\n\n> Buy\n",
            "STOP\n\n2026/11/21 10:00、Acme <hello@example.org>のメール：\n\n> Buy\n",
            "STOP\n\nSent from Mail for Windows\n\nFrom: Acme\nSent: Saturday\n",
            "STOP\n\nSent via the Samsung Galaxy S10, an AT&T 5G smartphone\n",
            "STOP\n\nSent from AOL on Android\n",
            "STOP\n\nSent from Proton Mail for iOS\n",
            "STOP\n\nSent from my phone\n",
            "STOP\n\nYahoo Mail: Search, Organize, Conquer\n\nOn Saturday, Acme wrote:\n\n> Buy\n",
            "STOP\n\nHolen Sie sich Outlook für iOS<https://aka.ms/o0ukef>\n",
            "STOP\n\nObtener Outlook para iOS<https://aka.ms/o0ukef>\n",
            "STOP\n\nTélécharger Outlook pour iOS<https://aka.ms/o0ukef>\n",
            "STOP\n\nEnviado desde mi iPhone\n",
            "STOP\n\nEnvoyé de mon mobile\n",
            "STOP\n\nInviato dal mio telefono\n",
            "STOP\n\nSkickat från min iPhone\n",
            "STOP\n\nОтправлено из Почты Mail\n",
        ] {
            assert_eq!(read(Channel::Email, text, "Re: Buy"), "STOP", "{text}");
        }
        assert_eq!(read(Channel::Email, "\n\n> Buy", "unsubscribe"), "unsubscribe");
        for reply in [
            "please stop:\nthe noise",
            "Cancel\n\nSent with the wrong size.",
            "Cancel\n\nSent you another one yesterday, to Berlin",
            "Cancel\n\nmy order of an iPhone",
            "Stop\n\nI use Outlook at work",
            "Cancel\n\nOrder: 4711\nName: Ada",
        ] {
            assert_eq!(read(Channel::Email, reply, "x"), reply);
        }
        assert_eq!(read(Channel::Email, "from: the start\nI liked it", "x"), "from: the start\nI liked it");
        assert_eq!(read(Channel::Telegram, "> STOP", "x"), "> STOP");
    }

    #[test]
    fn a_link_that_starts_a_bot_can_add_a_word() {
        for text in ["/start", "/start ref123", "/start stop"] {
            let wish = keywords::read(&read(Channel::Telegram, text, ""), "Desk").map(|(wish, _)| wish);
            assert_eq!(wish, Some(Wish::Start), "{text}");
        }
        for text in ["/started it", "/start me up", "start it"] {
            assert_eq!(read(Channel::Telegram, text, ""), text);
        }
        assert_eq!(read(Channel::Sms, "/start ref123", ""), "/start ref123");
    }
}
