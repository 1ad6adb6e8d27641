//! The simulator: replaces every provider in the test environment, and in tests.
//!
//! It is stateless: a business profile is what nuncio has stored of it. The outcome depends only on the recipient, the channel and the
//! number of the attempt (see [`Behaviour`]), so it is the same after a restart and on any node. Recipients without a special meaning get
//! everything.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, AdapterFactory, Capabilities, EventSink, Field, FieldKind, Inbound, Opened, Outcome, ProfileApi, ProviderEvent,
    ReceiptTarget, Receipts, Scope, SendRequest, Services, Settings, TemplateApi,
};
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::template::{Decision, Template};
use nuncio_domain::{Channel, ConnectionId, MessageId, MessageType, RequestedChannel, TemplateId, TenantId};

mod behaviour;
mod profile;

pub use behaviour::Behaviour;

/// Delay from the receipt to a read, reply or complaint.
pub const REPLY_AFTER: Duration = Duration::from_millis(100);
/// Delay from the receipt until [`Behaviour::Resumes`] subscribes again.
pub const RESUME_AFTER: Duration = Duration::from_secs(5);
/// Delay of the receipt of [`Behaviour::Late`] and the correction of [`Behaviour::Corrects`].
pub const LATE_BY: Duration = Duration::from_secs(30);
/// Delay requested by [`Behaviour::ThrottlesOnce`].
pub const RETRY_AFTER: Duration = Duration::from_secs(2);

/// Maximum characters of a message repeated in a reply.
const REPEATED: usize = 100;

static CAPABILITIES: Capabilities = Capabilities { message_types: MessageType::ALL, receipts: Receipts::ByAttempt, window: 256 };

static FIELDS: &[Field] = &[Field {
    name: "fails",
    kind: FieldKind::OneOf(&[REFUSED, UNREACHABLE]),
    secret: false,
    required: false,
    help: "simulates an outage: refused (the account) or unreachable; none by default",
}];
const REFUSED: &str = "refused";
const UNREACHABLE: &str = "unreachable";

/// Makes simulators. Kind `sim`, every channel.
pub fn factory() -> AdapterFactory {
    AdapterFactory::new("sim", Channel::ALL, FIELDS, open).forgetting_receipts()
}

fn open(account: &Account, services: &Services) -> Opened {
    let settings = Settings::new(FIELDS, account);
    let outage = settings.text("fails").map(outage);
    settings.finish()?;
    let (tenant, connection, channel) = (account.tenant, account.id, account.channel);
    Ok(Arc::new(Sim { tenant, connection, channel, outage, events: Arc::clone(&services.events) }))
}

#[derive(Debug)]
struct Sim {
    tenant: TenantId,
    connection: ConnectionId,
    channel: Channel,
    /// The simulated outage.
    outage: Option<Failure>,
    events: Arc<dyn EventSink>,
}

#[async_trait]
impl Adapter for Sim {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        if let Some(failure) = self.outage.clone() {
            return Outcome::Deferred { retry_after: None, failure, scope: Scope::Connection };
        }
        let first = request.attempt == 0;
        let by_mail = request.channel == Channel::Email;
        let (stop, start) = if by_mail { ("unsubscribe", "subscribe") } else { ("STOP", "START") };
        match Behaviour::of(request.channel, &request.message.to) {
            Behaviour::Invalid => rejected(failure(FailureCode::InvalidRecipient, "the recipient does not exist")),
            Behaviour::Undeliverable if request.channel.is_app() => rejected(undeliverable()),
            Behaviour::Undeliverable if !is_fallback(request) => {
                if by_mail {
                    self.events
                        .push(ProviderEvent::Bounced { tenant: self.tenant, message: request.message.id, recipient: None }, Duration::ZERO);
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
                let failure = failure(FailureCode::UnknownOutcome, "the connection broke before the response");
                Outcome::Unknown { failure, refs: Vec::new() }
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
                let outcome = self.accept(request, ReceiptKind::Delivered, Duration::ZERO);
                self.events.push(ProviderEvent::Complaint { tenant: self.tenant, message: request.message.id }, REPLY_AFTER);
                outcome
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

    /// The result depends only on the attempt, so it can be computed again.
    async fn resend_receipt(&self, request: &SendRequest<'_>) {
        drop(self.send(request).await);
    }

    async fn check(&self) -> Result<String, String> {
        if let Some(failure) = &self.outage {
            return Err(format!("{}: simulated by the setting `fails`", failure.message));
        }
        Ok("simulated: nothing leaves this server, and the recipient determines the outcome".to_owned())
    }

    fn profile(&self) -> Option<&dyn ProfileApi> {
        (self.channel == Channel::Whatsapp).then_some(self)
    }

    fn templates(&self) -> Option<&dyn TemplateApi> {
        Some(self)
    }
}

/// Approves every template at once, except those with `reject` in their name or body. Leaves those with `pending` in their name undecided.
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
        return Decision::Rejected { reason: "simulated: the name or body contains reject".to_owned() };
    }
    if template.name.to_lowercase().contains("pending") { Decision::Pending } else { Decision::Approved }
}

impl Sim {
    /// Accepts the message and sends a receipt of `kind` later.
    fn accept(&self, request: &SendRequest<'_>, kind: ReceiptKind, after: Duration) -> Outcome {
        let target = ReceiptTarget::Attempt {
            tenant: self.tenant,
            message: request.message.id,
            attempt: Some(request.attempt),
            connection: self.connection,
        };
        self.events.push(ProviderEvent::Receipt { target, kind, at: request.now.plus(after), raw: None }, after);
        accepted(request)
    }

    /// Delivers the message; its recipient then sends each of these texts after its delay. Automatic replies get none, to avoid an endless
    /// exchange.
    fn accept_and_reply(&self, request: &SendRequest<'_>, replies: &[(&str, Duration)]) -> Outcome {
        let outcome = self.accept(request, ReceiptKind::Delivered, Duration::ZERO);
        if request.message.state.detail.compliance {
            return outcome;
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
        outcome
    }
}

/// Returns whether this attempt is the fallback of a messaging app; that must be seen to be delivered.
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

/// Returns `sim_`, the message id without its prefix, `_` and the attempt: always the same for an attempt.
fn provider_message_id(request: &SendRequest<'_>) -> String {
    let mut id = String::with_capacity(40);
    // Writing to a String cannot fail.
    let _ = write!(id, "{}_{}", request.message.id, request.attempt);
    id.replace_range(..MessageId::PREFIX.len(), "sim");
    id
}

fn accepted(request: &SendRequest<'_>) -> Outcome {
    Outcome::Accepted { refs: vec![provider_message_id(request)], cost: None }
}

fn rejected(failure: Failure) -> Outcome {
    Outcome::Rejected { failure }
}

fn deferred(retry_after: Option<Duration>, failure: Failure) -> Outcome {
    Outcome::Deferred { retry_after, failure, scope: Scope::Message }
}

fn outage(fails: &str) -> Failure {
    match fails {
        REFUSED => failure(FailureCode::CredentialsInvalid, "the provider refuses the account"),
        _ => failure(FailureCode::Undeliverable, "the provider cannot be reached"),
    }
}

fn undeliverable() -> Failure {
    failure(FailureCode::Undeliverable, "delivery failed")
}

fn failure(code: FailureCode, what: &str) -> Failure {
    Failure::own(code, format!("simulated: {what}"))
}
