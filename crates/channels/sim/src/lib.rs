//! The simulator: stands where a provider would be in every test world, and in tests.
//!
//! It keeps no state: what the provider would keep of a business profile is what nuncio knows of it. What happens follows from the recipient, the channel and the number of the attempt alone (see [`Behaviour`]),
//! so a message goes the same way after a restart and on any node. Recipients without a special meaning get everything.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, AdapterFactory, Capabilities, EventSink, Field, FieldKind, Inbound, ProfileApi, ProviderEvent, ReceiptTarget,
    Receipts, Scope, SendRequest, Services, Settings, TemplateApi, Verdict,
};
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::template::{Decision, Template};
use nuncio_domain::{Channel, ConnectionId, FieldError, MessageId, MessageType, RequestedChannel, TemplateId, TenantId};

mod behaviour;
mod profile;

pub use behaviour::Behaviour;

/// How long after the receipt a recipient reads, answers or complains.
pub const REPLY_AFTER: Duration = Duration::from_millis(100);
/// How long after the receipt [`Behaviour::Resumes`] asks for messages again.
pub const RESUME_AFTER: Duration = Duration::from_secs(5);
/// How late the receipt of [`Behaviour::Late`] and the correction of [`Behaviour::Corrects`] come.
pub const LATE_BY: Duration = Duration::from_secs(30);
/// When [`Behaviour::ThrottlesOnce`] asks to come back.
pub const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Characters of a message that a reply repeats.
const REPEATED: usize = 100;

static CAPABILITIES: Capabilities = Capabilities { message_types: MessageType::ALL, receipts: Receipts::ByAttempt, window: 256 };

static FIELDS: &[Field] = &[Field {
    name: "fails",
    kind: FieldKind::OneOf(&[REFUSED, UNREACHABLE]),
    secret: false,
    required: false,
    help: "plays a provider that takes nothing: refused (the account) or unreachable; by default everything works",
}];
const REFUSED: &str = "refused";
const UNREACHABLE: &str = "unreachable";

/// Makes simulators. Kind `sim`, every channel.
#[derive(Clone, Copy, Debug, Default)]
pub struct SimFactory;

impl AdapterFactory for SimFactory {
    fn kind(&self) -> &'static str {
        "sim"
    }

    fn channels(&self) -> &'static [Channel] {
        Channel::ALL
    }

    fn fields(&self) -> &'static [Field] {
        FIELDS
    }

    fn forgets_receipts(&self) -> bool {
        true
    }

    fn open(&self, account: &Account, services: &Services) -> Result<Arc<dyn Adapter>, Vec<FieldError>> {
        let settings = Settings::new(self.fields(), account);
        let outage = settings.text("fails").map(outage);
        settings.finish()?;
        let (tenant, connection, channel) = (account.tenant, account.id, account.channel);
        Ok(Arc::new(Sim { tenant, connection, channel, outage, events: Arc::clone(&services.events) }))
    }
}

#[derive(Debug)]
struct Sim {
    tenant: TenantId,
    connection: ConnectionId,
    channel: Channel,
    /// Why the provider takes nothing.
    outage: Option<Failure>,
    events: Arc<dyn EventSink>,
}

#[async_trait]
impl Adapter for Sim {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn send(&self, request: &SendRequest<'_>) -> Verdict {
        if let Some(failure) = self.outage.clone() {
            return Verdict::Deferred { retry_after: None, failure, scope: Scope::Connection };
        }
        let first = request.attempt == 0;
        let by_mail = request.channel == Channel::Email;
        let (stop, start) = if by_mail { ("unsubscribe", "subscribe") } else { ("STOP", "START") };
        match Behaviour::of(request.channel, &request.message.to) {
            Behaviour::Invalid => rejected(failure(FailureCode::InvalidRecipient, "there is no such recipient")),
            Behaviour::Undeliverable if request.channel.is_app() => rejected(undeliverable()),
            Behaviour::Undeliverable if !is_fallback(request) => {
                if by_mail {
                    self.events.push(ProviderEvent::Bounced { tenant: self.tenant, message: request.message.id }, Duration::ZERO);
                }
                self.accept(request, ReceiptKind::Failed(undeliverable()), Duration::ZERO)
            }
            Behaviour::Blocks if !is_fallback(request) => {
                rejected(failure(FailureCode::BlockedByRecipient, "the recipient has blocked the sender"))
            }
            Behaviour::RefusesContent if !is_fallback(request) => {
                rejected(failure(FailureCode::ContentRejected, "the content is not allowed"))
            }
            Behaviour::TimesOut => deferred(None, failure(FailureCode::Undeliverable, "timed out")),
            Behaviour::TimesOutOnce if first => deferred(None, failure(FailureCode::Undeliverable, "timed out")),
            Behaviour::ThrottlesOnce if first => {
                deferred(Some(RETRY_AFTER), failure(FailureCode::RateLimited, "too many messages at once"))
            }
            Behaviour::UnknownOnce if first => {
                let failure = failure(FailureCode::UnknownOutcome, "the connection broke before the answer came");
                Verdict::Unknown { failure, refs: Vec::new() }
            }
            Behaviour::Silent => accepted(request),
            Behaviour::Late => self.accept(request, ReceiptKind::Delivered, LATE_BY),
            Behaviour::Corrects if !is_fallback(request) => {
                self.accept(request, ReceiptKind::Failed(undeliverable()), Duration::ZERO);
                self.accept(request, ReceiptKind::Delivered, LATE_BY)
            }
            Behaviour::Replies => {
                let text: String = "Reply to: ".chars().chain(text(request).chars().take(REPEATED)).collect();
                self.accept_and_reply(request, &[(&text, REPLY_AFTER)])
            }
            Behaviour::Stops => self.accept_and_reply(request, &[(stop, REPLY_AFTER)]),
            Behaviour::Resumes => self.accept_and_reply(request, &[(stop, REPLY_AFTER), (start, RESUME_AFTER)]),
            Behaviour::AsksForHelp => self.accept_and_reply(request, &[("HELP", REPLY_AFTER)]),
            Behaviour::Reads if request.channel.has_read_receipts() => {
                self.accept(request, ReceiptKind::Delivered, Duration::ZERO);
                self.accept(request, ReceiptKind::Read, REPLY_AFTER)
            }
            Behaviour::Complains => {
                let verdict = self.accept(request, ReceiptKind::Delivered, Duration::ZERO);
                self.events.push(ProviderEvent::Complaint { tenant: self.tenant, message: request.message.id }, REPLY_AFTER);
                verdict
            }
            Behaviour::Plain
            | Behaviour::Undeliverable
            | Behaviour::Blocks
            | Behaviour::RefusesContent
            | Behaviour::TimesOutOnce
            | Behaviour::ThrottlesOnce
            | Behaviour::UnknownOnce
            | Behaviour::Corrects
            | Behaviour::Reads => self.accept(request, ReceiptKind::Delivered, Duration::ZERO),
        }
    }

    /// What happens follows from the attempt alone: it happens again.
    async fn tell_again(&self, request: &SendRequest<'_>) {
        drop(self.send(request).await);
    }

    async fn check(&self) -> Result<String, String> {
        if let Some(failure) = &self.outage {
            return Err(format!("{}: the setting `fails` asks for it", failure.message));
        }
        Ok("simulated: nothing leaves this server, and the recipient decides what becomes of a message".to_owned())
    }

    fn profile(&self) -> Option<&dyn ProfileApi> {
        (self.channel == Channel::Whatsapp).then_some(self)
    }

    fn templates(&self) -> Option<&dyn TemplateApi> {
        Some(self)
    }
}

/// Approves every template but those with `reject` in their name or body, and says so at once. It never decides on
/// those with `pending` in their name.
#[async_trait]
impl TemplateApi for Sim {
    async fn submit(&self, template: &Template) -> Result<String, Failure> {
        let decision = decide(template);
        if decision != Decision::Pending {
            self.events.push(ProviderEvent::TemplateDecided { tenant: self.tenant, template: template.id, decision }, Duration::ZERO);
        }
        Ok(template.id.to_string().replacen(TemplateId::PREFIX, "sim", 1))
    }

    async fn status(&self, template: &Template) -> Result<Decision, Failure> {
        Ok(decide(template))
    }
}

fn decide(template: &Template) -> Decision {
    let asks_for = |word: &str| [&template.name, &template.content.body].iter().any(|text| text.to_lowercase().contains(word));
    if asks_for("reject") {
        return Decision::Rejected { reason: "simulated: the name or body asks for it".to_owned() };
    }
    if template.name.to_lowercase().contains("pending") { Decision::Pending } else { Decision::Approved }
}

impl Sim {
    /// Takes the message and tells `kind` about it later.
    fn accept(&self, request: &SendRequest<'_>, kind: ReceiptKind, after: Duration) -> Verdict {
        let target = ReceiptTarget::Attempt {
            tenant: self.tenant,
            message: request.message.id,
            attempt: Some(request.attempt),
            connection: self.connection,
        };
        self.events.push(ProviderEvent::Receipt { target, kind, at: request.now.plus(after), raw: None }, after);
        accepted(request)
    }

    /// Delivers the message, whereupon its recipient writes each of these texts, so long after the receipt. Automatic answers get none: the
    /// two would talk to each other for ever.
    fn accept_and_reply(&self, request: &SendRequest<'_>, replies: &[(&str, Duration)]) -> Verdict {
        let verdict = self.accept(request, ReceiptKind::Delivered, Duration::ZERO);
        if request.message.state.detail.compliance {
            return verdict;
        }
        for (number, (text, after)) in replies.iter().enumerate() {
            let mut id = provider_message_id(request);
            id.push_str("_reply");
            if number > 0 {
                // Writing to a String cannot fail.
                let _ = write!(id, "{}", number + 1);
            }
            let place = (self.tenant, self.connection, request.channel);
            let inbound = Inbound::text(place, id, request.message.to.clone(), (*text).to_owned(), request.now.plus(*after));
            self.events.push(ProviderEvent::Inbound(inbound), *after);
        }
        verdict
    }
}

/// Whether this attempt follows one by a messaging app. That one failed, and this one is there to be seen to arrive.
fn is_fallback(request: &SendRequest<'_>) -> bool {
    let message = request.message;
    if request.channel.is_app() {
        return false;
    }
    let tried = message.state.detail.attempts.iter().any(|a| a.channel.is_app());
    tried || matches!(message.request.requested_channel, RequestedChannel::Only(channel) if channel.is_app())
}

fn text<'a>(request: &SendRequest<'a>) -> &'a str {
    request.message.request.text.as_deref().unwrap_or_default()
}

/// `sim_`, the message's identifier without its prefix, `_` and the attempt: the same attempt gets the same id for ever.
fn provider_message_id(request: &SendRequest<'_>) -> String {
    let mut id = String::with_capacity(40);
    // Writing to a String cannot fail.
    let _ = write!(id, "{}_{}", request.message.id, request.attempt);
    id.replace_range(..MessageId::PREFIX.len(), "sim");
    id
}

fn accepted(request: &SendRequest<'_>) -> Verdict {
    Verdict::Accepted { refs: vec![provider_message_id(request)], cost: None }
}

fn rejected(failure: Failure) -> Verdict {
    Verdict::Rejected { failure }
}

fn deferred(retry_after: Option<Duration>, failure: Failure) -> Verdict {
    Verdict::Deferred { retry_after, failure, scope: Scope::Message }
}

fn outage(fails: &str) -> Failure {
    match fails {
        REFUSED => failure(FailureCode::CredentialsInvalid, "the provider refuses the account"),
        _ => failure(FailureCode::Undeliverable, "the provider cannot be reached"),
    }
}

fn undeliverable() -> Failure {
    failure(FailureCode::Undeliverable, "it could not be delivered")
}

fn failure(code: FailureCode, what: &str) -> Failure {
    Failure::own(code, format!("simulated: {what}"))
}
