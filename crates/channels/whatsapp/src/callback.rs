//! Reads callbacks: checks the signature, then reads statuses and messages. Pure, except for warnings.
//!
//! Source: <https://developers.facebook.com/docs/whatsapp/cloud-api/webhooks/payload-examples>

use std::collections::HashMap;

use nuncio_channel::{CallError, CallbackRequest, Inbound, ParsedCallback, ProviderEvent};
use nuncio_channel_http::unix_seconds;
use nuncio_channel_meta::{GraphError, proved};
use nuncio_domain::Timestamp;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode};
use serde::Deserialize;
use serde_json::value::RawValue;

use crate::config::Cloud;
use crate::{inbound, map, wire};

pub(crate) fn read(cloud: &Cloud, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
    match proved(&cloud.secrets, call)? {
        Some(verification) => Ok(verification),
        None => Ok(events(cloud, call)?.into()),
    }
}

#[derive(Deserialize)]
struct Envelope<'a> {
    #[serde(borrow, default)]
    entry: Vec<Entry<'a>>,
}

#[derive(Deserialize)]
struct Entry<'a> {
    #[serde(borrow, default)]
    changes: Vec<Change<'a>>,
}

#[derive(Deserialize)]
struct Change<'a> {
    #[serde(default)]
    field: String,
    #[serde(borrow)]
    value: &'a RawValue,
}

/// Its items are parsed one by one: an invalid one must not affect the others.
#[derive(Deserialize)]
struct Messages<'a> {
    metadata: Metadata,
    #[serde(borrow, default)]
    statuses: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    messages: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    contacts: Vec<&'a RawValue>,
}

#[derive(Deserialize)]
struct Metadata {
    phone_number_id: String,
    #[serde(default)]
    display_phone_number: String,
}

fn events(cloud: &Cloud, call: &CallbackRequest<'_>) -> Result<Vec<ProviderEvent>, CallError> {
    let envelope: Envelope<'_> =
        serde_json::from_slice(call.body).map_err(|error| CallError::malformed(format!("the body cannot be read: {error}")))?;
    let changes = envelope.entry.into_iter().flat_map(|entry| entry.changes);
    let values = changes.filter(|change| change.field == "messages").filter_map(|change| cloud.parse("change", change.value.get()));
    // All numbers of an app can share one callback URL.
    let ours = values.filter(|value: &Messages<'_>| value.metadata.phone_number_id == cloud.phone_number_id);
    Ok(ours.flat_map(|value| events_of(cloud, call.now, &value)).collect())
}

fn events_of(cloud: &Cloud, now: Timestamp, value: &Messages<'_>) -> Vec<ProviderEvent> {
    // Looked for by id: a call has room for very many messages and people. Of two with one id, the first counts.
    let people = value.contacts.iter().rev().filter_map(|raw| cloud.parse::<inbound::Person>("contact", raw.get()));
    let people: HashMap<String, inbound::Person> = people.map(|person| (person.wa_id.clone(), person)).collect();
    let to = written_to(&value.metadata.display_phone_number);
    let receipts = value.statuses.iter().filter_map(|raw| receipt(cloud, now, raw));
    let messages = value.messages.iter().filter_map(|raw| inbound::read(cloud, now, raw.get(), &people));
    let messages = messages.map(|inbound| Inbound { to: to.clone(), ..inbound });
    receipts.chain(messages.map(ProviderEvent::Inbound)).collect()
}

/// Returns the number that people wrote to, from its display form: `15550783881` or `+1 555-078-3881`.
fn written_to(shown: &str) -> Option<String> {
    let digits: String = shown.chars().filter(char::is_ascii_digit).collect();
    (!digits.is_empty()).then(|| inbound::number(&digits))
}

#[derive(Deserialize)]
struct Status<'a> {
    id: String,
    status: String,
    timestamp: Option<String>,
    biz_opaque_callback_data: Option<String>,
    #[serde(borrow)]
    errors: Option<&'a RawValue>,
}

fn receipt(cloud: &Cloud, now: Timestamp, raw: &RawValue) -> Option<ProviderEvent> {
    let status: Status<'_> = cloud.parse("status", raw.get())?;
    let kind = match status.status.as_str() {
        "sent" => ReceiptKind::Sent,
        "delivered" => ReceiptKind::Delivered,
        // For a voice message, `played`.
        "read" | "played" => ReceiptKind::Read,
        // Whatever the errors look like, it has failed.
        "failed" => ReceiptKind::Failed(match first_error(status.errors) {
            Some(error) => map::failed(error),
            None => Failure::own(FailureCode::Undeliverable, "WhatsApp gives no reason"),
        }),
        _ => return None,
    };
    let target = match wire::read_callback_data(&status.biz_opaque_callback_data.unwrap_or_default()) {
        Some((message, attempt)) => cloud.graph.endpoint.origin.attempt(message, attempt),
        None => cloud.graph.endpoint.origin.reference(status.id),
    };
    Some(ProviderEvent::Receipt {
        target,
        kind,
        at: unix_seconds(&status.timestamp.unwrap_or_default(), now),
        raw: Some(raw.get().to_owned()),
    })
}

fn first_error(errors: Option<&RawValue>) -> Option<GraphError> {
    serde_json::from_str::<Vec<GraphError>>(errors?.get()).ok()?.into_iter().next()
}

/// The ids of the messages among `events`.
pub(crate) fn inbound_ids(events: &[ProviderEvent]) -> impl Iterator<Item = &str> {
    events.iter().filter_map(|event| match event {
        ProviderEvent::Inbound(Inbound { provider_message_id, .. }) => Some(provider_message_id.as_str()),
        _ => None,
    })
}
