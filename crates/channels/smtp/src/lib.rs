//! Email over SMTP through a relay (smarthost), or the next one while it fails, with STARTTLS or TLS, AUTH and DKIM.
//!
//! An email is `accepted` when the relay responds to its content with 2xx. A failure before the final dot is written is a deferral or a
//! rejection; a lost response after it is [`Outcome::Unknown`]. Every attempt of a message has the same `Message-ID`, by which mailboxes
//! recognise duplicates.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use nuncio_channel::{Adapter, AdapterFactory, Capabilities, Outcome, Receipts, Scope, SendRequest, Tokens};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{Channel, ConnectionId, MessageType, TenantId};
use nuncio_net::Network;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::config::{Config, Offer};
use crate::message::OutboundEmail;
use crate::relays::{Post, Relays};

pub mod authenticate;
mod client;
mod config;
mod degrade;
pub mod dkim;
mod fields;
mod html;
pub mod inlet;
pub mod mail;
mod map;
mod message;
mod parts;
mod pool;
mod refusal;
mod relays;
mod report;
mod reported;
#[cfg(test)]
#[path = "../tests/it/message.rs"]
mod testing;

/// Message types that an email can carry.
static MESSAGE_TYPES: &[MessageType] = &[
    MessageType::Text,
    MessageType::Image,
    MessageType::Video,
    MessageType::Audio,
    MessageType::Document,
    MessageType::Location,
    MessageType::Contact,
    MessageType::Buttons,
    MessageType::List,
    MessageType::CtaUrl,
    MessageType::Template,
];

/// Building an email with more content than this, in bytes, must not block other tasks.
const HEAVY: usize = 256 * 1024;

/// Returns an address in canonical form: in lower case, its domain in ASCII.
pub fn mailbox_address(text: &str) -> Option<String> {
    message::wire_address(text).map(|address| address.to_lowercase())
}

/// Makes adapters of kind `smtp`. `tokens` identify bounces and complaints.
pub fn factory(net: Network, tokens: Tokens) -> AdapterFactory {
    AdapterFactory::new("smtp", &[Channel::Email], config::FIELDS, move |account, services| {
        let config = Config::read(account, &net)?;
        Ok(Arc::new(SmtpAdapter {
            capabilities: Capabilities { message_types: MESSAGE_TYPES, receipts: Receipts::Never, window: config.connections },
            permits: Semaphore::new(config.connections),
            relays: Relays::new(&config),
            // Mailboxes post to https only (RFC 8058 §3.1), and the default is an address of this machine.
            public_url: Some(&services.public_url).filter(|url| url.starts_with("https://")).cloned(),
            tokens: tokens.clone(),
            place: (account.tenant, account.id),
            config,
        }))
    })
}

struct SmtpAdapter {
    config: Config,
    capabilities: Capabilities,
    relays: Relays,
    permits: Semaphore,
    tokens: Tokens,
    place: (TenantId, ConnectionId),
    public_url: Option<Arc<str>>,
}

impl fmt::Debug for SmtpAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmtpAdapter").field("config", &self.config).finish_non_exhaustive()
    }
}

#[async_trait]
impl Adapter for SmtpAdapter {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        let letter = match self.letter(request) {
            Ok(letter) => letter,
            Err(failure) => return Outcome::Rejected { failure },
        };
        let Ok(_permit) = timeout(self.config.timeout, self.permits.acquire()).await else {
            let failure = Failure::own(
                FailureCode::RateLimited,
                format!("all {} connections to {} are busy", self.config.connections, self.config.relays[0]),
            );
            return Outcome::Deferred { retry_after: None, failure, scope: Scope::Message };
        };
        let return_path = self.return_path(request);
        let from = return_path.as_deref().unwrap_or(&self.config.from.address);
        self.relays.deliver(&self.config, &Post { from, letter: &letter }).await
    }

    fn mailbox(&self) -> Option<String> {
        mailbox_address(&self.config.from.address)
    }

    async fn check(&self) -> Result<String, String> {
        let mut found = self.relays.check(&self.config).await?;
        if let Some(domain) = &self.config.bounce_domain {
            let (tenant, connection) = self.place;
            found.push_str(&format!("; complaints (feedback loops) belong to {}@{domain}", self.tokens.feedback(tenant, connection)));
        }
        if self.config.offer != Offer::Never && self.public_url.is_none() {
            found.push_str("; no mail offers one-click unsubscribing, since server.public_url does not begin with https://");
        }
        Ok(found)
    }
}

impl SmtpAdapter {
    /// The address that bounces of this attempt go to, which is the envelope's sender.
    fn return_path(&self, request: &SendRequest<'_>) -> Option<String> {
        let domain = self.config.bounce_domain.as_ref()?;
        Some(format!("{}@{domain}", self.tokens.bounce(request.message.tenant, request.message.id, request.attempt)))
    }

    /// Returns additional header fields.
    fn more(&self, request: &SendRequest<'_>) -> Vec<(&'static str, String)> {
        let message = request.message;
        if message.state.detail.compliance {
            return vec![("Auto-Submitted", "auto-replied".to_owned())]; // prevents automatic replies (RFC 3834)
        }
        let offered = match self.config.offer {
            Offer::Broadcasts => message.state.detail.broadcast.is_some(),
            Offer::Always => true,
            Offer::Never => false,
        };
        let Some(public_url) = self.public_url.as_ref().filter(|_| offered) else { return Vec::new() };
        let token = self.tokens.unsubscribe(message.tenant, message.id);
        vec![
            ("List-Unsubscribe", format!("<{public_url}/unsubscribe/{token}>")),
            ("List-Unsubscribe-Post", "List-Unsubscribe=One-Click".to_owned()),
        ]
    }

    fn letter(&self, request: &SendRequest<'_>) -> Result<OutboundEmail, Failure> {
        let more = self.more(request);
        let build = || message::build(request, &self.config.from, &more, self.config.dkim.as_ref());
        let texts = [&request.message.request.text, &request.message.request.html_body];
        let size: usize = request.attachments.iter().map(|a| a.bytes.len()).chain(texts.into_iter().flatten().map(String::len)).sum();
        // Moving the work to another thread would need a copy of the attachments; moving the other tasks does not.
        let heavy = self.config.dkim.is_some() || size > HEAVY;
        if heavy && Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread { tokio::task::block_in_place(build) } else { build() }
    }
}
