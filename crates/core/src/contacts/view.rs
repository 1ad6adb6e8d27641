//! How a contact looks from outside.

use nuncio_domain::contact::{ChannelEntry, Contact};
use nuncio_domain::id::Id as _;
use nuncio_domain::{Channel, ContactChannelId, ContactId, Timestamp, address, limits};
use nuncio_store::{Address, MetricDelta};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::openapi::schema::{ObjectBuilder, Type};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use super::CHANNELS;

/// A contact.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Contact)]
pub struct ContactView {
    /// Its identifier.
    #[schema(value_type = String)]
    pub id: ContactId,
    /// The caller's name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub display_name: Option<String>,
    /// Same as `primaryPhone`. Deprecated.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(deprecated)]
    pub phone_number: Option<String>,
    /// The phone number to prefer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_phone: Option<String>,
    /// The email address to prefer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub primary_email: Option<String>,
    /// ISO 3166-1 alpha-2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country_code: Option<String>,
    /// The name that a messaging app told; null when none did.
    #[schema(required)]
    pub profile_name: Option<String>,
    /// Channels by which the contact can be reached.
    #[schema(value_type = Vec<ContactChannelType>)]
    pub available_channels: Vec<&'static str>,
    /// The channel to prefer: the one that was set, else that of the newest inbound message, else the first.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<ContactChannelType>)]
    pub default_channel: Option<&'static str>,
    /// All channels, each with its identifier.
    pub channels: Vec<ContactChannelView>,
    /// Whether an inbound message or a code has proved any of them.
    pub verified: bool,
    /// A contact that seems to be the same person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub suggested_merge_with: Option<ContactId>,
    /// The contact that was asked for and became part of this one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>)]
    pub merged_from: Option<ContactId>,
    /// Your own data.
    #[schema(value_type = Object)]
    pub metadata: Map<String, Value>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

/// One channel of a contact.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ContactChannel)]
pub struct ContactChannelView {
    /// Its identifier.
    #[schema(value_type = String)]
    pub id: ContactChannelId,
    /// The channel.
    #[schema(value_type = ContactChannelType)]
    pub channel: &'static str,
    /// Phone number, email address or chat id.
    pub identifier: String,
    /// Whether it is the primary one of its type.
    pub is_primary: bool,
    /// Whether an inbound message, a code or you have proved it.
    pub verified: bool,
    /// ISO 3166-1 alpha-2.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country_code: Option<String>,
    /// Your name for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub label: Option<String>,
    /// What became of messages by it.
    pub metrics: ChannelMetricsView,
    /// When the contact last wrote by it.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub last_inbound_at: Option<Timestamp>,
    /// Until when WhatsApp carries free text, or Instagram anything; or did.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    pub window_expires_at: Option<Timestamp>,
    /// Your own data.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Object>)]
    pub metadata: Option<Map<String, Value>>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub created_at: Timestamp,
    /// When it last changed.
    #[schema(value_type = String, format = DateTime)]
    pub updated_at: Timestamp,
}

/// What became of messages by a channel.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ContactChannelMetrics)]
pub struct ChannelMetricsView {
    /// Attempts that arrived.
    pub success_count: i64,
    /// Attempts that failed.
    pub failure_count: i64,
    /// Both.
    pub total_attempts: i64,
    /// How long arriving took on average, in milliseconds; absent until something arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub avg_delivery_time_ms: Option<i64>,
    /// When something last arrived.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
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

/// A contact with everything that is known of it.
#[derive(Clone, Debug)]
pub(crate) struct Person {
    pub(crate) contact: Contact,
    pub(crate) addresses: Vec<Address>,
}

/// One channel of a person.
#[derive(Clone, Debug)]
pub(crate) struct PersonChannel<'a> {
    pub(crate) id: ContactChannelId,
    pub(crate) channel: Channel,
    pub(crate) address: &'a Address,
    pub(crate) entry: Option<&'a ChannelEntry>,
}

impl Person {
    /// All channels, oldest address first. A channel is there because the caller said so or because it was used.
    pub(crate) fn channels(&self) -> Vec<PersonChannel<'_>> {
        let mut channels = Vec::new();
        for address in &self.addresses {
            for channel in CHANNELS.into_iter().filter(|c| c.address_kind() == address.recipient.kind) {
                let entry = address.entries.iter().find(|e| e.channel == channel);
                let shown = match entry {
                    Some(entry) => !entry.hidden,
                    None => used(address, channel),
                };
                if shown {
                    channels.push(PersonChannel { id: ContactChannelId::of(address.id, channel), channel, address, entry });
                }
            }
        }
        channels
    }

    /// The channel with this identifier.
    pub(crate) fn channel(&self, id: ContactChannelId) -> Option<PersonChannel<'_>> {
        self.channels().into_iter().find(|c| c.id == id)
    }

    /// The primary channel of a type: the one that was chosen, else the oldest.
    pub(crate) fn primary(&self, channel: Channel) -> Option<ContactChannelId> {
        let of_type: Vec<_> = self.channels().into_iter().filter(|c| c.channel == channel).map(|c| c.id).collect();
        let chosen = self.contact.detail.primaries.get(&channel).filter(|id| of_type.contains(id));
        chosen.or(of_type.first()).copied()
    }

    /// Types of channels, in their order.
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

/// Whether a channel of an address was used. A phone number of which nothing is known takes text messages.
fn used(address: &Address, channel: Channel) -> bool {
    let only = CHANNELS.into_iter().filter(|c| c.address_kind() == address.recipient.kind).count() == 1;
    let newest = || address.newest.map_or(Channel::Sms, Channel::of_contact) == channel;
    let silent = address.metrics.is_empty() && address.entries.is_empty();
    only || address.metrics.iter().any(|m| m.channel.of_contact() == channel) || (silent && newest())
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
            channel: self.channel.as_str(),
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

/// The country of a phone number; nothing else tells one.
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
    /// The view of a person.
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
            available_channels: person.available().iter().map(|c| c.as_str()).collect(),
            default_channel: person.default_channel().map(Channel::as_str),
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
