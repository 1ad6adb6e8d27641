//! Turns inbound email into provider events.

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use nuncio_channel::{EventSink, Inbound, ProviderEvent, ReceiptTarget, Tokens, stop};
use nuncio_channel_smtp::authenticate::Authenticator;
use nuncio_channel_smtp::inlet::{self, Limits, MailDestination, MailHandler, NotNow};
use nuncio_channel_smtp::mail::{Complaint, Delivery, DsnAction, InboundEmail, Mail};
use nuncio_channel_smtp::mailbox_address;
use nuncio_core::Core;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{Channel, ConnectionId, MessageId, TenantId};
use nuncio_node::Node;
use sha2::{Digest as _, Sha256};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::config::EmailConfig;

/// Listens for inbound email.
#[derive(Debug)]
pub struct MailListener {
    pub address: SocketAddr,
    stop: watch::Sender<bool>,
    task: JoinHandle<()>,
}

impl MailListener {
    /// Reserves the address; returns `None` if none is configured. Nothing is answered before [`Self::open`].
    pub async fn bind(config: &EmailConfig) -> anyhow::Result<Option<TcpListener>> {
        if config.listen.is_empty() {
            return Ok(None);
        }
        let listener = TcpListener::bind(&config.listen).await;
        listener.map(Some).with_context(|| format!("cannot listen for email on {}; change email.listen", config.listen))
    }

    /// Starts to take email.
    pub async fn open(node: &Node, config: &EmailConfig, listener: TcpListener) -> anyhow::Result<Self> {
        let address = listener.local_addr()?;
        let trusted_server = Some(config.authserv_id.clone()).filter(|id| !id.is_empty());
        let authenticator = Authenticator::new(&config.name_servers().map_err(anyhow::Error::msg)?, trusted_server, config.reject_dmarc)
            .map_err(|why| anyhow::anyhow!("{why}; set email.name_servers"))?;
        node.core.senders().claim_mailboxes().await?;
        let (core, events, authenticator) = (node.core.clone(), node.events(), Arc::new(authenticator));
        let desk = Arc::new(InboundMailHandler { core, events, authenticator });
        let (ask, asked) = stop();
        let task = tokio::spawn(inlet::serve(listener, desk, Limits::of_size(config.max_message_bytes), asked));
        Ok(Self { address, stop: ask, task })
    }

    /// Returns whether it has stopped listening.
    pub fn has_ended(&self) -> bool {
        self.task.is_finished()
    }

    /// Stops accepting email and finishes transfers in flight.
    pub async fn close(self) {
        self.stop.send_replace(true);
        let _ = self.task.await; // a task that panicked has stopped, too
    }
}

/// Maps addresses to connections, and emails to events.
#[derive(Debug)]
struct InboundMailHandler {
    core: Core,
    events: Arc<dyn EventSink>,
    authenticator: Arc<Authenticator>,
}

#[async_trait]
impl MailHandler for InboundMailHandler {
    fn authenticator(&self) -> Option<&Arc<Authenticator>> {
        Some(&self.authenticator)
    }

    async fn find(&self, address: &str) -> Result<Option<MailDestination>, NotNow> {
        if let Some(place) = self.read_token(address) {
            return Ok(Some(place));
        }
        let Some(address) = mailbox_address(address) else { return Ok(None) };
        let found = self.mailbox(&address).await?;
        Ok(found.map(|(tenant, connection)| MailDestination::Sender(tenant, connection, address)))
    }

    async fn take(&self, place: &MailDestination, mail: &Mail) -> Result<(), NotNow> {
        match (place, mail) {
            (MailDestination::Bounces(tenant, message, attempt), Mail::Report(deliveries)) => {
                self.delivered((*tenant, *message, *attempt), deliveries).await
            }
            (MailDestination::Bounces(tenant, message, attempt), Mail::Returned(raw)) => {
                let failure = Failure::own(FailureCode::Undeliverable, "the email bounced without a report");
                let delivery = Delivery { fate: DsnAction::Failed { failure, hard: false }, recipient: None, raw: raw.clone() };
                self.delivered((*tenant, *message, *attempt), &[delivery]).await
            }
            (MailDestination::Bounces(tenant, message, _), Mail::Complaint(_)) => {
                self.record(ProviderEvent::Complaint { tenant: *tenant, message: *message }).await
            }
            (MailDestination::Feedback(tenant, connection), Mail::Complaint(complaint)) => {
                self.complained(*tenant, *connection, complaint).await
            }
            (MailDestination::Sender(tenant, connection, address), Mail::InboundEmail(letter)) => {
                self.wrote((*tenant, *connection), address, letter).await
            }
            _ => {
                tracing::debug!(?place, "automatic email dropped");
                Ok(())
            }
        }
    }
}

impl InboundMailHandler {
    fn tokens(&self) -> &Tokens {
        self.core.mail_tokens()
    }

    /// Parses an address that this server generated.
    fn read_token(&self, address: &str) -> Option<MailDestination> {
        let name = address.rsplit_once('@')?.0;
        let bounces = self.tokens().read_bounce(name).map(|(tenant, message, attempt)| MailDestination::Bounces(tenant, message, attempt));
        bounces.or_else(|| self.tokens().read_feedback(name).map(|(tenant, connection)| MailDestination::Feedback(tenant, connection)))
    }

    async fn mailbox(&self, address: &str) -> Result<Option<(TenantId, ConnectionId)>, NotNow> {
        self.core.senders().find_mailbox(address).await.map_err(|error| not_now(&error))
    }

    async fn record(&self, event: ProviderEvent) -> Result<(), NotNow> {
        self.events.record(event).await.map_err(|_| NotNow)
    }

    /// Ignores messages that no longer exist.
    async fn delivered(&self, (tenant, message, attempt): (TenantId, MessageId, usize), told: &[Delivery]) -> Result<(), NotNow> {
        let connection =
            self.core.senders().connection_of_attempt(tenant, message, Some(attempt)).await.map_err(|error| not_now(&error))?;
        let Some(connection) = connection else { return Ok(()) };
        for Delivery { fate, recipient, raw } in told {
            let (kind, hard) = match fate {
                DsnAction::Delivered => (ReceiptKind::Delivered, false),
                DsnAction::Delayed => (ReceiptKind::Sent, false),
                DsnAction::Failed { failure, hard } => (ReceiptKind::Failed(failure.clone()), *hard),
            };
            let target = ReceiptTarget::Attempt { tenant, message, attempt: Some(attempt), connection };
            let at = self.core.ids().clock.now();
            self.record(ProviderEvent::Receipt { target, kind, at, raw: Some(raw.clone()) }).await?;
            if hard {
                self.record(ProviderEvent::Bounced { tenant, message, recipient: recipient.clone() }).await?;
            }
        }
        Ok(())
    }

    /// The message is found by its return path, which proves that this environment sent it, or otherwise by its `Message-ID`, if this
    /// connection sent it.
    async fn complained(&self, tenant: TenantId, connection: ConnectionId, complaint: &Complaint) -> Result<(), NotNow> {
        let of_path = complaint.return_paths.iter().find_map(|path| match self.read_token(path) {
            Some(MailDestination::Bounces(tenant, message, _)) => Some((tenant, message)),
            _ => None,
        });
        let (message, is_ours) = match (of_path, complaint.message) {
            (Some((found_in, message)), _) => (message, found_in == tenant),
            (None, Some(message)) => {
                let sent_by = self.core.senders().connection_of_attempt(tenant, message, None).await.map_err(|error| not_now(&error))?;
                (message, sent_by == Some(connection))
            }
            (None, None) => {
                tracing::info!(%connection, "complaint matches no message; dropped it");
                return Ok(());
            }
        };
        if !is_ours {
            tracing::info!(%connection, "complaint about a message of another connection; dropped it");
            return Ok(());
        }
        self.record(ProviderEvent::Complaint { tenant, message }).await
    }

    async fn wrote(&self, place: (TenantId, ConnectionId), to: &str, letter: &InboundEmail) -> Result<(), NotNow> {
        let author = mailbox_address(&letter.from);
        if author.is_some_and(|author| author == to) {
            return Ok(()); // a copy of our own email, or an attempt to make us talk to ourselves
        }
        let now = self.core.ids().clock.now();
        let id = letter.message_id.clone().unwrap_or_else(|| fingerprint(letter));
        let place = (place.0, place.1, Channel::Email);
        let inbound = Inbound::text(place, id, letter.from.clone(), letter.text.clone(), letter.at.unwrap_or(now));
        self.record(ProviderEvent::Inbound(Inbound {
            to: Some(to.to_owned()),
            profile_name: letter.name.clone(),
            subject: letter.subject.clone(),
            html_body: letter.html.clone(),
            media: letter.media.clone(),
            replies_to: letter.replies_to.map(|id| id.to_string()),
            // Without a check, nothing is proven.
            authentication: Some(letter.authentication.unwrap_or_default()),
            ..inbound
        }))
        .await
    }
}

/// Identifies an email without a `Message-ID`. Excludes DNS results, which can differ when it is sent again.
fn fingerprint(letter: &InboundEmail) -> String {
    let letter = InboundEmail { authentication: None, ..letter.clone() };
    let digest = Sha256::digest(format!("{letter:?}"));
    digest[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

fn not_now(error: &nuncio_domain::Error) -> NotNow {
    tracing::warn!(%error, "failed to process inbound email; asked the mail server to resend");
    NotNow
}
