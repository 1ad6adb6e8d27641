//! WhatsApp through Meta's Cloud API.
//!
//! A message is one request. Meta has accepted it when the response has an id; statuses then return our name of the attempt
//! (`biz_opaque_callback_data`). The Cloud API does not detect duplicates: a request without a response is [`Outcome::Unknown`].
//!
//! Source: <https://developers.facebook.com/docs/whatsapp/cloud-api>

use std::sync::Arc;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, AdapterFactory, CallError, CallbackRequest, Capabilities, Opened, Outcome, ParsedCallback, ProfileApi, Receipts,
    ResolvedAttachment, SendRequest, Services, Sessions, Stop, TemplateApi,
};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{Channel, MessageType};
use nuncio_net::Network;
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};

use crate::config::Cloud;

mod callback;
mod config;
mod inbound;
mod link;
mod map;
mod media;
mod profile;
mod template;
mod templates;
mod wire;

const KIND: &str = "whatsapp_cloud";

/// Most inbound messages waiting to be marked as read; beyond that, messages stay unmarked.
const UNMARKED: usize = 1_024;

/// Makes adapters of kind `whatsapp_cloud`.
pub fn factory(net: Network) -> AdapterFactory {
    let open = move |account: &Account, services: &Services| open(&net, account, services);
    AdapterFactory::new(KIND, &[Channel::Whatsapp], config::FIELDS, open).with_sessions()
}

fn open(net: &Network, account: &Account, services: &Services) -> Opened {
    let cloud = Cloud::read(net, account, services)?;
    let (mark, marks) = mpsc::channel(UNMARKED);
    Ok(Arc::new(Whatsapp {
        capabilities: Capabilities { message_types: MessageType::ALL, receipts: Receipts::ByAttempt, window: cloud.graph.endpoint.window },
        cloud,
        mark,
        marks: Mutex::new(marks),
    }))
}

#[derive(Debug)]
struct Whatsapp {
    cloud: Cloud,
    capabilities: Capabilities,
    /// Ids of messages to be marked as read, from callbacks to the session.
    mark: mpsc::Sender<String>,
    marks: Mutex<mpsc::Receiver<String>>,
}

#[async_trait]
impl Adapter for Whatsapp {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        let uploaded = match to_upload(request) {
            Err(failure) => return Outcome::Rejected { failure },
            Ok(None) => None,
            Ok(Some(file)) => match self.cloud.upload_media(file).await {
                Ok(id) => Some(id),
                Err(error) => return map::not_uploaded(&error),
            },
        };
        match wire::message(request, uploaded.as_deref()) {
            Ok(body) => map::sent(self.cloud.graph.post(&self.messages_path(), body).await),
            Err(failure) => Outcome::Rejected { failure },
        }
    }

    async fn check(&self) -> Result<String, String> {
        let path = format!("{}?fields=display_phone_number,verified_name,quality_rating", self.cloud.phone_number_id);
        let number = self.cloud.graph.get(&path).await.map_err(|error| map::advice(&error))?;
        let text = |name: &str| number.get(name).and_then(Value::as_str).unwrap_or("unknown").to_owned();
        Ok(format!(
            "the number is {} ({}), quality {}; callbacks are expected at {}",
            text("display_phone_number"),
            text("verified_name"),
            text("quality_rating"),
            self.cloud.graph.endpoint.callback_url
        ))
    }

    /// A session only marks messages as read.
    fn sessions(&self) -> Sessions {
        if self.cloud.mark_read { Sessions::EveryNode } else { Sessions::None }
    }

    async fn run(&self, mut stop: Stop) {
        let mut marks = self.marks.lock().await;
        while let Some(Some(id)) = stop.or(marks.recv()).await {
            let body = json!({"messaging_product": "whatsapp", "status": "read", "message_id": id});
            // A failure does no harm: marking the next message marks this one, too.
            let _ = stop.or(self.cloud.graph.post(&self.messages_path(), body)).await;
        }
    }

    fn callback(&self, call: &CallbackRequest<'_>) -> Result<ParsedCallback, CallError> {
        let parsed = callback::read(&self.cloud, call)?;
        if self.cloud.mark_read {
            callback::inbound_ids(&parsed.events).for_each(|id| drop(self.mark.try_send(id.to_owned())));
        }
        Ok(parsed)
    }

    async fn fetch_media(&self, reference: &str, most: usize) -> Result<ResolvedAttachment, Failure> {
        self.cloud.fetch_media(reference, most).await
    }

    fn profile(&self) -> Option<&dyn ProfileApi> {
        Some(&self.cloud)
    }

    fn templates(&self) -> Option<&dyn TemplateApi> {
        Some(&self.cloud)
    }
}

impl Whatsapp {
    fn messages_path(&self) -> String {
        format!("{}/messages", self.cloud.phone_number_id)
    }
}

/// The attachment that is the media of the message. A WhatsApp message carries at most one file, and nothing else with it.
fn to_upload<'a>(request: &SendRequest<'a>) -> Result<Option<&'a ResolvedAttachment>, Failure> {
    let refused = |what: &str| Err(Failure::own(FailureCode::ContentRejected, what));
    let content = request.message.request.content.as_deref();
    let has_media = content.is_some_and(|content| content.media_id.is_some() || content.media_url.is_some());
    match request.attachments {
        [] => Ok(None),
        [file] if wire::media_name(request.message.message_type).is_some() && !has_media => Ok(Some(file)),
        [_] => refused("WhatsApp carries an attachment only as the media of an image, video, audio, document or sticker message"),
        _ => refused("WhatsApp carries one file with a message"),
    }
}
