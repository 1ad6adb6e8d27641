//! What providers tell: receipts, inbound messages, complaints. Everything that comes from outside ends here.

use std::time::Duration;

use nuncio_channel::{Inbound, ProviderEvent, ReceiptTarget};
use nuncio_domain::address::{self, Parsed};
use nuncio_domain::lifecycle::{Detail, Route, State, Step, Wait};
use nuncio_domain::message::{Direction, Message, Request, Routing, Status};
use nuncio_domain::{Ids, MessageId, MessageType, Recipient, RequestedChannel, TenantId, Timestamp};
use nuncio_store::{NewInbound, Result, Store, Suppression, SuppressionReason, Transition, Transitioned};

/// Words that opt out when they are the whole message, whatever the case and punctuation.
const STOP: &[&str] = &[
    "STOP",
    "STOPALL",
    "STOP ALL",
    "UNSUBSCRIBE",
    "CANCEL",
    "END",
    "QUIT",
    "REVOKE",
    "OPTOUT",
    "OPT OUT", // English
    "BAJA",
    "PARAR",
    "ALTO",
    "ARRET",
    "ARRÊT",
    "STOPP",
    "ABMELDEN",
    "CANCELAR",
    "SAIR",
    "ANNULLA",
    "AFMELDEN",
];
/// Words that lift an opt-out.
const START: &[&str] = &["START", "UNSTOP", "SUBSCRIBE", "YES", "ALTA", "INICIAR"];

/// Applies one event. Answers what became of the message that a receipt was about.
pub async fn apply(store: &dyn Store, ids: &Ids, event: ProviderEvent) -> Result<Option<Transitioned>> {
    let now = ids.clock.now();
    match event {
        ProviderEvent::Receipt { target: ReceiptTarget::Attempt { tenant, message, attempt }, kind, at } => {
            let step = Step::Receipt { attempt, kind, at };
            store.transition(Transition { tenant, id: message, step, now }).await.map(Some)
        }
        ProviderEvent::Inbound(inbound) => receive(store, ids, inbound, now).await.map(|()| None),
        ProviderEvent::TemplateDecided { tenant, template, decision } => {
            crate::templates::decided(store, tenant, template, &decision, now).await.map(|()| None)
        }
        ProviderEvent::Complaint { tenant, message } => complain(store, ids, tenant, message, now).await.map(|()| None),
    }
}

async fn receive(store: &dyn Store, ids: &Ids, inbound: Inbound, now: Timestamp) -> Result<()> {
    let Some(from) = Parsed::parse(&inbound.from).ok().and_then(|parsed| Recipient::on(&parsed, inbound.channel).ok()) else {
        tracing::warn!(connection = %inbound.connection, "an inbound message names a sender that cannot be read; it was dropped");
        return Ok(());
    };
    let Some(world) = store.read().await?.load_world(inbound.tenant).await? else { return Ok(()) };
    let Some(connection) = world.connections.iter().find(|c| c.id == inbound.connection) else { return Ok(()) };
    let route = Route { channel: inbound.channel, connection: connection.id, provider: connection.kind.clone() };
    let new_address = ids.next();
    let word = inbound.text.clone();
    let to = world.sender(connection.sender).map(|s| s.phone_number.clone()).unwrap_or_default();
    let message = Message {
        tenant: inbound.tenant,
        id: ids.at(now),
        direction: Direction::Inbound,
        message_type: MessageType::Text,
        to,
        from: from.identifier.clone(),
        sender: connection.sender,
        address: new_address,
        request: request(inbound.text),
        state: State {
            status: Status::Received,
            wait: Wait::Nothing,
            fence: 0,
            version: 0,
            expires_at: now,
            updated_at: now,
            route,
            detail: Detail::default(),
        },
    };
    let country = if inbound.from.starts_with('+') { address::phone_facts(&inbound.from).country } else { String::new() };
    let new = NewInbound {
        message,
        from: from.clone(),
        country,
        new_address,
        new_contact: ids.next(),
        provider_message_id: inbound.provider_message_id,
    };
    let mut tx = store.begin().await?;
    if tx.insert_inbound(&new).await? {
        if is_word(&word, STOP) {
            let suppression = Suppression {
                id: ids.next(),
                recipient: from,
                sender: Some(connection.sender),
                reason: SuppressionReason::OptOut,
                source: format!("inbound {}", new.message.id),
            };
            tx.insert_suppression(inbound.tenant, &suppression, now).await?;
        } else if is_word(&word, START) {
            tx.delete_opt_out(inbound.tenant, &from, connection.sender).await?;
        }
    }
    tx.commit().await
}

fn request(text: String) -> Request {
    Request {
        requested_channel: RequestedChannel::Auto,
        text: Some(text),
        content: None,
        subject: None,
        html_body: None,
        reply_to: None,
        metadata: None,
        fallback_enabled: true,
        fallback_after_seconds: None,
        voice_language: None,
        attachments: Vec::new(),
        template: None,
        scheduled_at: None,
        idempotency_key: None,
        routing: Routing::default(),
    }
}

/// Whether a text is one of `words`, but for case, punctuation and courtesy.
fn is_word(text: &str, words: &[&str]) -> bool {
    let bare: String = text.chars().map(|c| if c.is_alphanumeric() { c } else { ' ' }).collect();
    let upper = bare.to_uppercase();
    let kept: Vec<&str> = upper.split_whitespace().filter(|w| !matches!(*w, "PLEASE" | "THANKS" | "POR" | "FAVOR" | "BITTE")).collect();
    words.contains(&kept.join(" ").as_str())
}

/// A complaint suppresses the recipient in the whole world, for good.
async fn complain(store: &dyn Store, ids: &Ids, tenant: TenantId, id: MessageId, now: Timestamp) -> Result<()> {
    let Some(message) = store.read().await?.lookup_message(tenant, id).await? else { return Ok(()) };
    let Some(recipient) = Parsed::parse(&message.to).ok().and_then(|p| Recipient::on(&p, message.state.route.channel).ok()) else {
        return Ok(());
    };
    let suppression = Suppression {
        id: ids.next(),
        recipient,
        sender: None,
        reason: SuppressionReason::Complaint,
        source: format!("complaint about {id}"),
    };
    let mut tx = store.begin().await?;
    tx.insert_suppression(tenant, &suppression, now).await?;
    tx.commit().await
}

/// How long a failed application of an event waits before it is tried again.
pub const RETRY: Duration = Duration::from_secs(1);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stop_alone_or_with_courtesy_but_not_inside_a_sentence() {
        for text in ["stop", " STOP! ", "Stop, please.", "baja", "opt-out"] {
            assert!(is_word(text, STOP), "{text}");
        }
        for text in ["don't stop", "the bus stop", "", "stopwatch"] {
            assert!(!is_word(text, STOP), "{text}");
        }
    }
}
