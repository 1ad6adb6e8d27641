//! Email over SMTP: one relay (smarthost) per connection, with STARTTLS or TLS, AUTH and DKIM.
//!
//! A mail is `accepted` when the relay answered its content with 2xx. Whatever happens before the dot that ends the content was
//! written is a deferral or a rejection; a lost answer after it is [`Verdict::Unknown`]. Every attempt of a message bears the same
//! `Message-ID`, by which mailboxes recognise a duplicate.

use std::fmt;
use std::sync::Arc;

use async_trait::async_trait;
use nuncio_channel::{Account, Adapter, AdapterFactory, Capabilities, Field, Receipts, Scope, SendRequest, Services, Verdict};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{Channel, FieldError, MessageType};
use nuncio_net::Network;
use tokio::runtime::{Handle, RuntimeFlavor};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::client::Connection;
use crate::config::Config;
use crate::map::Failed;
use crate::message::Letter;
use crate::pool::Pool;

mod client;
mod config;
mod degrade;
mod dkim;
mod html;
mod map;
mod message;
mod pool;
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

/// Building a mail with more content than this, in bytes, must not hold up other tasks.
const HEAVY: usize = 256 * 1024;

/// Makes adapters of kind `smtp`.
#[derive(Clone, Debug)]
pub struct SmtpFactory {
    net: Network,
}

impl SmtpFactory {
    /// A factory whose adapters leave by `net`.
    pub const fn new(net: Network) -> Self {
        Self { net }
    }
}

impl AdapterFactory for SmtpFactory {
    fn kind(&self) -> &'static str {
        "smtp"
    }

    fn channels(&self) -> &'static [Channel] {
        &[Channel::Email]
    }

    fn fields(&self) -> &'static [Field] {
        config::FIELDS
    }

    fn open(&self, account: &Account, _services: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
        let config = Config::read(account, &self.net)?;
        Ok(Arc::new(SmtpAdapter {
            capabilities: Capabilities { message_types: MESSAGE_TYPES, receipts: Receipts::Never, window: config.connections },
            permits: Semaphore::new(config.connections),
            pool: Arc::default(),
            config,
        }))
    }
}

struct SmtpAdapter {
    config: Config,
    capabilities: Capabilities,
    pool: Arc<Pool>,
    permits: Semaphore,
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

    async fn send(&self, request: &SendRequest<'_>) -> Verdict {
        let letter = match self.letter(request) {
            Ok(letter) => letter,
            Err(failure) => return Verdict::Rejected { failure },
        };
        let Ok(_permit) = timeout(self.config.timeout, self.permits.acquire()).await else {
            let failure =
                Failure::own(FailureCode::RateLimited, format!("all {} connections to {} are busy", self.config.connections, self.relay()));
            return Verdict::Deferred { retry_after: None, failure, scope: Scope::Message };
        };
        self.deliver(&letter).await.unwrap_or_else(|failed| map::verdict(&failed, &self.relay()))
    }

    async fn check(&self) -> Result<String, String> {
        let explain = |failed: Failed| map::explain(&failed, &self.relay());
        let mut connection = Connection::open(&self.config).await.map_err(explain)?;
        connection.noop(self.config.timeout).await.map_err(explain)?;
        let name = connection.name.clone();
        let line = if connection.encrypted { "encrypted" } else { "in clear text" };
        let login = self.config.login.as_ref().map(|l| format!(", logged in as {}", l.username)).unwrap_or_default();
        let limit = connection.size_limit().map(|n| format!("; it takes mails of up to {n} bytes")).unwrap_or_default();
        connection.quit().await;
        Ok(format!("connected to {} ({name}), {line}{login}{limit}", self.relay()))
    }
}

impl SmtpAdapter {
    fn relay(&self) -> String {
        format!("{}:{}", self.config.host, self.config.port)
    }

    fn letter(&self, request: &SendRequest<'_>) -> Result<Letter, Failure> {
        let build = || message::build(request, &self.config.from, self.config.dkim.as_ref());
        let texts = [&request.message.request.text, &request.message.request.html_body];
        let size: usize = request.attachments.iter().map(|a| a.bytes.len()).chain(texts.into_iter().flatten().map(String::len)).sum();
        // Moving the work to another thread would need a copy of the attachments; moving the other tasks does not.
        let heavy = self.config.dkim.is_some() || size > HEAVY;
        if heavy && Handle::current().runtime_flavor() == RuntimeFlavor::MultiThread { tokio::task::block_in_place(build) } else { build() }
    }

    /// Sends over a waiting connection; over a fresh one if there is none, or if the relay had closed it meanwhile.
    async fn deliver(&self, letter: &Letter) -> Result<Verdict, Failed> {
        if let Some(connection) = self.pool.take() {
            match self.deliver_over(connection, letter).await {
                Err(failed) if failed.was_stale() => {}
                outcome => return outcome,
            }
        }
        self.deliver_over(Connection::open(&self.config).await?, letter).await
    }

    async fn deliver_over(&self, mut connection: Connection, letter: &Letter) -> Result<Verdict, Failed> {
        let outcome = connection.deliver(&self.config.from.address, letter, self.config.timeout).await;
        if outcome.as_ref().map_or_else(Failed::keeps_connection, |_| true) {
            self.pool.put(connection);
        }
        outcome.map(|reply| map::accepted(&reply, &letter.message_id))
    }
}
