//! Public representation of contacts.

use nuncio_domain::contact::{ChannelEntry, Contact};
use nuncio_domain::{Channel, ContactChannelId, ContactId, Timestamp, address, id::Id as _, limits};
use nuncio_store::{Address, MetricDelta};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::CHANNELS;

/// A contact.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Contact)]
pub struct ContactView {
    /// Its identifier.
    pub id: ContactId,
    /// The caller's name for it.
    pub display_name: Option<String>,
    /// Same as `primaryPhone`. Deprecated.
    #[schema(deprecated)]
    pub phone_number: Option<String>,
    /// The preferred phone number.
    pub primary_phone: Option<String>,
    /// The preferred email address.
    pub primary_email: Option<String>,
    /// ISO 3166-1 alpha-2.
    pub country_code: Option<String>,
    /// The name reported by a messaging app; null if none did.
    #[schema(required)]
    #[serialize_always]
    pub profile_name: Option<String>,
    /// Channels on which the contact can be reached.
    #[schema(value_type = Vec<ContactChannelType>)]
    pub available_channels: Vec<Channel>,
    /// The preferred channel: the one that was set, otherwise that of the newest inbound message, otherwise the first.
    #[schema(value_type = Option<ContactChannelType>)]
    pub default_channel: Option<Channel>,
    /// All channels, each with its id.
    pub channels: Vec<ContactChannelView>,
    /// Whether any channel is verified by an inbound message or a code.
    pub verified: bool,
    /// A contact that seems to be the same person.
    pub suggested_merge_with: Option<ContactId>,
    /// The requested contact, if it was merged into this one.
    pub merged_from: Option<ContactId>,
    /// Your own data.
    pub metadata: Map<String, Value>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// One channel of a contact.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ContactChannel)]
pub struct ContactChannelView {
    /// Its identifier.
    pub id: ContactChannelId,
    /// The channel.
    #[schema(value_type = ContactChannelType)]
    pub channel: Channel,
    /// Phone number, email address or chat id.
    pub identifier: String,
    /// Whether it is the primary one of its type.
    pub is_primary: bool,
    /// Whether it was verified by an inbound message, a code or you.
    pub verified: bool,
    /// ISO 3166-1 alpha-2.
    pub country_code: Option<String>,
    /// Your name for it.
    pub label: Option<String>,
    /// Results of messages on this channel.
    pub metrics: ChannelMetricsView,
    /// Time of the contact's last message on this channel.
    pub last_inbound_at: Option<Timestamp>,
    /// When WhatsApp stops allowing free text, or Instagram any message; can be in the past.
    pub window_expires_at: Option<Timestamp>,
    /// Your own data.
    pub metadata: Option<Map<String, Value>>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// Results of messages on a channel.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ContactChannelMetrics)]
pub struct ChannelMetricsView {
    /// Delivered attempts.
    pub success_count: i64,
    /// Failed attempts.
    pub failure_count: i64,
    /// Total of both.
    pub total_attempts: i64,
    /// Average time to delivery, in milliseconds; absent without a delivery.
    pub avg_delivery_time_ms: Option<i64>,
    /// Time of the last delivery.
    pub last_success_at: Option<Timestamp>,
}

/// The schema of a channel that contacts have.
#[derive(Debug)]
pub struct ContactChannelType;

impl PartialSchema for ContactChannelType {
    fn schema() -> RefOr<Schema> {
        let names = CHANNELS.iter().map(|channel| channel.as_str());
        ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names)).description(Some("A channel of a contact.")).into()
    }
}

impl ToSchema for ContactChannelType {}

/// A contact with all related data.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) contact: Contact,
    pub(crate) addresses: Vec<Address>,
}

#[derive(Clone, Debug)]
pub(crate) struct PersonChannel<'a> {
    pub(crate) id: ContactChannelId,
    pub(crate) channel: Channel,
    pub(crate) address: &'a Address,
    pub(crate) entry: Option<&'a ChannelEntry>,
}

impl Person {
    /// Returns all channels, oldest address first: those set by a caller, and those known from use.
    pub(crate) fn channels(&self) -> Vec<PersonChannel<'_>> {
        let mut channels = Vec::new();
        for address in &self.addresses {
            for channel in CHANNELS.into_iter().filter(|c| c.address_kind() == address.recipient.kind) {
                let entry = address.entries.iter().find(|e| e.channel == channel);
                let shown = match entry {
                    Some(entry) => !entry.hidden || used_since(address, channel, entry.updated_at),
                    None => used(address, channel),
                };
                if shown {
                    channels.push(PersonChannel { id: ContactChannelId::of(address.id, channel), channel, address, entry });
                }
            }
        }
        channels
    }

    pub(crate) fn channel(&self, id: ContactChannelId) -> Option<PersonChannel<'_>> {
        self.channels().into_iter().find(|c| c.id == id)
    }

    /// Returns the primary channel of a type: the chosen one, otherwise the oldest.
    pub(crate) fn primary(&self, channel: Channel) -> Option<ContactChannelId> {
        let of_type: Vec<_> = self.channels().into_iter().filter(|c| c.channel == channel).map(|c| c.id).collect();
        let chosen = self.contact.detail.primaries.get(&channel).filter(|id| of_type.contains(id));
        chosen.or(of_type.first()).copied()
    }

    /// Returns the types of channels, in listing order.
    pub(crate) fn available(&self) -> Vec<Channel> {
        let channels = self.channels();
        CHANNELS.into_iter().filter(|c| channels.iter().any(|own| own.channel == *c)).collect()
    }

    fn default_channel(&self) -> Option<Channel> {
        let available = self.available();
        let chosen = self.contact.detail.default_channel.filter(|c| available.contains(c));
        let channels = self.channels();
        let newest = channels.iter().filter(|c| c.last_inbound_at().is_some()).max_by_key(|c| c.last_inbound_at()).map(|c| c.channel);
        chosen.or(newest).or(available.first().copied())
    }

    fn identifier(&self, types: &[Channel]) -> Option<String> {
        let id = types.iter().find_map(|channel| self.primary(*channel))?;
        self.channel(id).map(|c| c.address.recipient.identifier.clone())
    }
}

/// Returns whether a channel of an address is known from use. A phone number without further data receives text messages.
fn used(address: &Address, channel: Channel) -> bool {
    let only = CHANNELS.into_iter().filter(|c| c.address_kind() == address.recipient.kind).count() == 1;
    let newest = || address.newest.map_or(Channel::Sms, Channel::of_contact) == channel;
    let silent = address.metrics.is_empty() && address.entries.is_empty();
    only || address.metrics.iter().any(|m| m.channel.of_contact() == channel) || (silent && newest())
}

/// Returns whether the contact wrote or was reached on a channel after it was removed.
fn used_since(address: &Address, channel: Channel, removed_at: Timestamp) -> bool {
    let times = address.metrics.iter().filter(|m| m.channel.of_contact() == channel);
    times.flat_map(|m| [m.last_inbound_at, m.sums.last_success_at]).flatten().any(|at| at > removed_at)
}

impl PersonChannel<'_> {
    fn sums(&self) -> MetricDelta {
        let mut sums = MetricDelta::default();
        self.address.metrics.iter().filter(|m| m.channel.of_contact() == self.channel).for_each(|m| sums.add(&m.sums));
        sums
    }

    fn last_inbound_at(&self) -> Option<Timestamp> {
        self.address.metrics.iter().filter(|m| m.channel.of_contact() == self.channel).filter_map(|m| m.last_inbound_at).max()
    }

    fn verified(&self) -> bool {
        self.entry.and_then(|e| e.verified).unwrap_or(self.last_inbound_at().is_some())
    }

    pub(crate) fn view(&self, is_primary: bool) -> ContactChannelView {
        let last_inbound_at = self.last_inbound_at();
        let country = self.entry.and_then(|e| e.country.clone()).or_else(|| country(self.address));
        ContactChannelView {
            id: self.id,
            channel: self.channel,
            identifier: self.address.recipient.identifier.clone(),
            is_primary,
            verified: self.verified(),
            country_code: country,
            label: self.entry.and_then(|e| e.label.clone()),
            metrics: ChannelMetricsView::from(self.sums()),
            last_inbound_at,
            window_expires_at: last_inbound_at
                .filter(|_| matches!(self.channel, Channel::Whatsapp | Channel::Instagram))
                .map(|at| at.plus(limits::CONVERSATION)),
            metadata: self.entry.and_then(|e| e.metadata.clone()),
            created_at: self.entry.map_or(self.address.created_at, |e| e.created_at),
            updated_at: self.entry.map_or(self.address.created_at, |e| e.updated_at),
        }
    }
}

/// Returns the country of a phone number; `None` for other kinds.
fn country(address: &Address) -> Option<String> {
    let identifier = &address.recipient.identifier;
    if !identifier.starts_with('+') {
        return None;
    }
    Some(address::phone_facts(identifier).country).filter(|country| !country.is_empty())
}

impl From<MetricDelta> for ChannelMetricsView {
    fn from(sums: MetricDelta) -> Self {
        Self {
            success_count: sums.successes,
            failure_count: sums.failures,
            total_attempts: sums.successes + sums.failures,
            avg_delivery_time_ms: (sums.timed > 0).then(|| sums.delivery_ms / sums.timed),
            last_success_at: sums.last_success_at,
        }
    }
}

impl ContactView {
    pub(crate) fn new(person: &Person, suggested_merge_with: Option<ContactId>) -> Self {
        let Contact { id, country, updated_at, detail, .. } = &person.contact;
        let primary_phone = person.identifier(&[Channel::Sms, Channel::Whatsapp, Channel::Voice]);
        let primaries: Vec<_> = CHANNELS.into_iter().filter_map(|channel| person.primary(channel)).collect();
        let channels: Vec<_> = person.channels().iter().map(|channel| channel.view(primaries.contains(&channel.id))).collect();
        Self {
            id: *id,
            display_name: detail.display_name.clone(),
            phone_number: primary_phone.clone(),
            primary_phone,
            primary_email: person.identifier(&[Channel::Email]),
            country_code: Some(country.clone()).filter(|country| !country.is_empty()),
            profile_name: detail.profile_name.clone(),
            available_channels: person.available(),
            default_channel: person.default_channel(),
            verified: channels.iter().any(|channel| channel.verified),
            channels,
            suggested_merge_with,
            merged_from: None,
            metadata: detail.metadata.clone(),
            created_at: id.created_at(),
            updated_at: *updated_at,
        }
    }
}
