//! Previews, tests, estimates and clones broadcasts.

use std::collections::BTreeMap;

use nuncio_domain::broadcast::{Body, Broadcast, Counts, Status};
use nuncio_domain::{Channel, Error, ErrorCode, Micros, Permission, Result};
use nuncio_store::{IdempotentOperation, NewBroadcastContact};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::composer::{Composer, command};
use super::{Broadcasts, command::NewContact, contacts, content, links, money::Class, view::BroadcastView};
use crate::base::{Caller, UseCase, idempotency, is_mark, parse_id};
use crate::messages::{MessageView, Plan, SendOptions};

/// The recipient of the preview. Without either field: the first recipient.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct PreviewBroadcast {
    /// A recipient of the broadcast.
    pub contact_id: Option<String>,
    /// Any recipient, in the broadcast or not.
    pub contact: Option<NewContact>,
}

/// A test message.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct TestBroadcast {
    /// Where to send it: a phone number, an email address, or a chat id, as the channel of the broadcast requires.
    #[schema(example = "+34600111222")]
    pub to: String,
    /// The recipient whose values it contains. Default: the first one.
    pub contact_id: Option<String>,
}

/// A copy of a broadcast.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct CloneBroadcast {
    /// Its name. Default: that of the original.
    #[schema(min_length = 1, max_length = 200)]
    pub name: Option<String>,
}

/// The message that one recipient would get now.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastPreview {
    /// The text or caption, with the recipient's values; a template is shown as on channels without templates.
    pub text: Option<String>,
    /// The subject of the email.
    pub subject: Option<String>,
    /// The HTML of the email.
    pub html_body: Option<String>,
    /// How it would be sent.
    pub plan: Plan,
}

/// Estimate for a broadcast if it were sent now.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct BroadcastEstimate {
    /// Recipients whose message is not queued yet.
    pub recipients: u64,
    /// Those of them that are suppressed and will be skipped. The figures below include them.
    pub suppressed: u64,
    /// Those that cannot be sent to, by reason.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub unsendable: Vec<Unsendable>,
    /// By first channel of the message.
    pub channels: Vec<ChannelEstimate>,
    /// Cost on these channels, in US dollars; absent without prices.
    pub estimated_cost: Option<Micros>,
    /// Amount that would be reserved, including fallbacks, in US dollars.
    pub required: Micros,
    /// Duration at the rate limits of the connections, in seconds; absent without rate limits.
    pub duration_seconds: Option<u64>,
}

/// Recipients that cannot be sent to, for one reason.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = UnsendableRecipients)]
pub struct Unsendable {
    /// The reason.
    pub reason: String,
    /// Number of recipients.
    pub recipients: u64,
}

/// Estimate for one channel.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ChannelEstimate {
    /// The channel.
    pub channel: Channel,
    /// Number of recipients.
    pub recipients: u64,
    /// Total SMS segments; absent for other channels.
    pub segments: Option<u64>,
    /// Cost in US dollars; absent without prices.
    pub estimated_cost: Option<Micros>,
}

/// Number of pending recipients to search for one who was not erased.
const FIRST: u32 = 20;

/// Maximum number of distinct reasons; further ones are combined.
const REASONS: usize = 20;

impl Broadcasts<'_> {
    /// Returns the message that a recipient would get now.
    pub async fn preview(&self, caller: &Caller, id: &str, asked: PreviewBroadcast) -> Result<BroadcastPreview> {
        caller.require(UseCase::PreviewBroadcast)?;
        let broadcast = self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        let contact = match asked.contact {
            Some(contact) => self.read_contact(&broadcast, contact, "contact.recipient").await?,
            None => self.one_contact(&broadcast, asked.contact_id.as_deref()).await?,
        };
        let composer = self.composer(&broadcast).await?.map_err(|failure| Error::new(ErrorCode::InvalidRequest, failure.message))?;
        let command = command(self, &composer, &contact)?;
        let (subject, html_body) = (command.subject.clone(), command.html_body.clone());
        let (plan, text) = self.messages().plan_for(caller, command, &options(&composer)).await?;
        Ok(BroadcastPreview { text, subject, html_body, plan })
    }

    /// Sends a broadcast's message to any address, as an ordinary message.
    pub async fn test(&self, caller: &Caller, id: &str, asked: TestBroadcast, key: Option<String>) -> Result<MessageView> {
        caller.require(Permission::BroadcastsRead)?;
        let broadcast = self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        let given = NewContact { recipient: asked.to, ..NewContact::default() };
        let shown = match self.one_contact(&broadcast, asked.contact_id.as_deref()).await {
            Err(error) if error.code() == ErrorCode::NoContacts => None,
            found => Some(found?.variables),
        };
        let (recipient, _) = contacts::read(&broadcast, None, given).map_err(|reason| Error::field("to", reason))?;
        // Tracked links name the recipient. Those of a test are the same in a repeated request.
        let contact = NewBroadcastContact { id: links::tester(broadcast.id), recipient, variables: shown.unwrap_or_default() };
        let composer = self.composer(&broadcast).await?.map_err(|failure| Error::new(ErrorCode::InvalidRequest, failure.message))?;
        self.put_links(&broadcast).await?;
        let options = SendOptions { idempotency_key: key, ..options(&composer) };
        self.messages().send_as(caller, command(self, &composer, &contact)?, options, IdempotentOperation::TestBroadcast).await
    }

    /// Creates a draft with the content of another broadcast, without recipients.
    pub async fn clone(&self, caller: &Caller, id: &str, asked: CloneBroadcast, key: Option<String>) -> Result<BroadcastView> {
        caller.require(UseCase::CloneBroadcast)?;
        let guard = self.guard(caller.tenant, IdempotentOperation::CloneBroadcast, idempotency::key(None, key.as_deref())?, &(id, &asked));
        match self.copy_of(caller, id, asked).await {
            Ok(draft) => self.insert(caller, &draft, guard.as_ref(), "clone").await,
            Err(error) => Err(self.repeated_or(caller, guard.as_ref(), error).await?),
        }
    }

    async fn copy_of(&self, caller: &Caller, id: &str, asked: CloneBroadcast) -> Result<Broadcast> {
        let original = self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        if self.tenant_config(caller.tenant).await?.sender(original.sender).is_none() {
            return Err(content::sender_deleted());
        }
        self.template_of(&original).await?;
        let now = self.ids().clock.now();
        let Body { name, text, content, email_subject, variables, canary, halt_on, quiet_hours, track_links, metadata, .. } = original.body;
        let name = asked.name.unwrap_or(name);
        let body =
            Body { name, text, content, email_subject, variables, canary, halt_on, quiet_hours, track_links, metadata, ..Body::default() };
        Ok(Broadcast {
            id: self.ids().at(now),
            status: Status::Draft,
            version: 0,
            due_at: None,
            starved: false,
            total: 0,
            body,
            updated_at: now,
            counts: Counts::default(),
            ..original
        })
    }

    /// Returns what a broadcast would do if it were sent now. Reads every recipient.
    pub async fn forecast(&self, caller: &Caller, id: &str) -> Result<BroadcastEstimate> {
        caller.require(UseCase::EstimateBroadcast)?;
        let broadcast = self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        let suppressed = self.inner.store.read().await?.count_suppressed_contacts(caller.tenant, broadcast.id, broadcast.sender).await?;
        let classes = self.classes(&broadcast).await?;
        let mut out = BroadcastEstimate { suppressed, ..BroadcastEstimate::default() };
        let (mut channels, mut reasons) = (BTreeMap::<Channel, ChannelEstimate>::new(), BTreeMap::<String, u64>::new());
        for (class, count) in classes {
            out.recipients += count;
            match class {
                Class::Refused(reason) => {
                    let reason = if reasons.len() < REASONS || reasons.contains_key(&reason) { reason } else { "other reasons".to_owned() };
                    *reasons.entry(reason).or_default() += count;
                }
                Class::Sendable { channel, segments, price } => {
                    let none = ChannelEstimate { channel, recipients: 0, segments: None, estimated_cost: None };
                    let entry = channels.entry(channel).or_insert(none);
                    entry.recipients += count;
                    if let Some(segments) = segments {
                        *entry.segments.get_or_insert_default() += u64::from(segments) * count;
                    }
                    let times = |one: Micros| Micros(one.0.saturating_mul(count as i64));
                    if let Some(cost) = price.expected.map(times) {
                        entry.estimated_cost.get_or_insert_default().0 += cost.0;
                        out.estimated_cost.get_or_insert_default().0 += cost.0;
                    }
                    out.required.0 = out.required.0.saturating_add(times(price.required).0);
                }
            }
        }
        let config = self.tenant_config(caller.tenant).await?;
        let seconds = |channel: &Channel, estimate: &ChannelEstimate| {
            let throttle = config.connection(broadcast.sender, *channel)?.throttle?;
            let paced = estimate.recipients.saturating_sub(u64::from(throttle.burst));
            Some((paced as f64 / throttle.messages_per_second).ceil() as u64)
        };
        out.duration_seconds = channels.iter().filter_map(|(channel, estimate)| seconds(channel, estimate)).max();
        out.channels = channels.into_values().collect();
        out.unsendable = reasons.into_iter().map(|(reason, recipients)| Unsendable { reason, recipients }).collect();
        Ok(out)
    }

    /// Returns a recipient by id, or the first pending one.
    async fn one_contact(&self, broadcast: &Broadcast, id: Option<&str>) -> Result<NewBroadcastContact> {
        let mut tx = self.inner.store.read().await?;
        let Some(id) = id else {
            let first = tx.pending_broadcast_contacts(broadcast.tenant, broadcast.id, None, FIRST).await?.found;
            let shown = first.into_iter().find(|contact| !is_mark(&contact.recipient));
            return shown.ok_or_else(|| Error::new(ErrorCode::NoContacts, "the broadcast has no recipients to show"));
        };
        let found = tx.find_broadcast_contact(broadcast.tenant, broadcast.id, parse_id(id, "contact of the broadcast")?).await?;
        found.filter(|contact| !is_mark(&contact.recipient)).ok_or_else(|| Error::not_found("contact of the broadcast"))
    }

    async fn read_contact(&self, broadcast: &Broadcast, contact: NewContact, path: &str) -> Result<NewBroadcastContact> {
        let template = self.template_of(broadcast).await?;
        let read = contacts::read(broadcast, template.as_ref(), contact);
        let (recipient, variables) = read.map_err(|reason| Error::field(path, reason))?;
        Ok(NewBroadcastContact { id: self.ids().next(), recipient, variables })
    }
}

fn options(composer: &Composer<'_>) -> SendOptions {
    let template = composer.template.clone().map(Box::new);
    SendOptions { sender: Some(composer.sender.id.to_string()), template, ..SendOptions::default() }
}
