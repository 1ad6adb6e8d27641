//! `POST /v1/messages`.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::LazyLock;
use std::task::{Context, Poll};

use nuncio_dispatch::{Hint, Permit};
use nuncio_domain::address::Parsed;
use nuncio_domain::config::{Sender, TenantConfig};
use nuncio_domain::id::Id as _;
use nuncio_domain::message::{Message, Status, Wait};
use nuncio_domain::template::Template;
use nuncio_domain::{AddressKind, Error, ErrorCode, MessageType, Permission, Result, TenantId, Timestamp};
use nuncio_store::{Accept, Accepted, ChannelMetrics, Claim, IdempotentOperation, Shortage};
use tokio::runtime::Handle;

use super::plan::{Destination, Planned, Planner};
use super::routing::{self, RoutingInputs, Window};
use super::{Messages, command::SendMessage, validate, view::MessageView};
use crate::base::audit::Change;
use crate::base::spending::Pending;
use crate::base::{Caller, Core, idempotency, requested_sender, rights};
use crate::billing;

/// Parameters of a send outside its body.
#[derive(Clone, Debug, Default)]
pub struct SendOptions {
    /// Header `Service-Sender`.
    pub sender: Option<String>,
    /// Header `Idempotency-Key`.
    pub idempotency_key: Option<String>,
    /// `Prefer: handling=lenient`.
    pub lenient: bool,
    /// The template as it was reviewed, for messages of a broadcast. Default: as it is in use.
    pub template: Option<Box<Template>>,
}

/// A handle saves a look-up per message. The recorder must be installed before the first use.
static ACCEPTED: LazyLock<metrics::Counter> = LazyLock::new(|| metrics::counter!("nuncio_messages_accepted_total"));

/// Maximum number of plans made when the configuration keeps changing.
const REPLANS: usize = 4;

impl Messages<'_> {
    /// Accepts a message. When this returns, the message, its idempotency key and its first event are stored.
    ///
    /// A used idempotency key gives a 409 with the original message, and nothing is sent.
    pub async fn send(&self, caller: &Caller, command: SendMessage, options: SendOptions) -> Result<MessageView> {
        self.send_as(caller, command, options, IdempotentOperation::SendMessage).await
    }

    /// Accepts a message that a person wrote on a page, and records who it was right afterwards. A message is sent even if that fails.
    pub async fn send_by_hand(&self, caller: &Caller, command: SendMessage, options: SendOptions) -> Result<MessageView> {
        let message = self.send(caller, command, options).await?;
        if let Err(error) = self.record_apart(Change::new("message", "send", message.id), caller.tenant).await {
            tracing::error!(%error, message = %message.id, "the audit log has no entry of who sent this message");
        }
        Ok(message)
    }

    /// Accepts a message for any operation that creates one. Each operation has separate idempotency keys.
    pub(crate) async fn send_as(
        &self,
        caller: &Caller,
        command: SendMessage,
        options: SendOptions,
        operation: IdempotentOperation,
    ) -> Result<MessageView> {
        caller.require(Permission::MessagesSend)?;
        let command = with_key(command, options.idempotency_key.as_deref())?;
        for _ in 0..REPLANS {
            let now = self.inner.dispatch.accepting().ok_or_else(|| Error::unavailable("this node cannot accept messages now"))?;
            let config = self.tenant_config(caller.tenant).await?;
            let plan = async {
                let PlanWithInputs { mut planned, .. } =
                    self.plan_with_inputs(&config, command.clone(), &options, operation, now, true).await?;
                planned.spending = self.begin_daily_spend(&config, &planned.accept).await?;
                Ok(planned)
            };
            let planned = match plan.await {
                Ok(planned) => planned,
                Err(refusal) if rests_on_config(&refusal) && !self.is_current(&config).await.unwrap_or(true) => continue,
                Err(refusal) => return Err(self.conflict(caller, command, &options, operation, now).await?.unwrap_or(refusal)),
            };
            match self.accept(planned).await? {
                Accepted::New { message, contact } => return Ok(MessageView::new(&message, config.environment, Some(contact))),
                Accepted::Stale => self.forget_config(caller.tenant),
                Accepted::Short(Shortage { balance, required }) => return Err(billing::insufficient(balance, required)),
                Accepted::Full { storage, required } => return Err(billing::quota_exceeded(storage, required)),
                Accepted::Closed => return Err(Error::internal("a message without a broadcast was rejected as part of a closed one")),
                Accepted::Duplicate { original, same_request } => {
                    let original = self.view(caller, original).await?;
                    return Err(idempotency::conflict(caller, rights::MESSAGE, &original, same_request));
                }
            }
        }
        Err(Error::unavailable("the configuration keeps changing; try again"))
    }

    /// Returns the 409 of a request whose key was used, for one that is refused: its key must not seem free because something has changed
    /// since. It may have no plan any more, so it is compared with the original as on the original's channel.
    async fn conflict(
        &self,
        caller: &Caller,
        mut command: SendMessage,
        options: &SendOptions,
        operation: IdempotentOperation,
        now: Timestamp,
    ) -> Result<Option<Error>> {
        let tenant = caller.tenant;
        let Some(key) = command.idempotency_key.clone() else { return Ok(None) };
        let sealed = self.inner.marks.key(tenant, &key);
        let found = self.inner.store.read().await?.find_message_by_idempotency_key(tenant, operation, &sealed).await?;
        let Some(id) = found else { return Ok(None) };
        let (view, original) = self.outline(caller, id).await?;
        let channel = original.state.route.channel;
        // Removes what the original's plan removed.
        validate::check(&mut command, channel, now, options.lenient);
        let sender = match &options.sender {
            Some(id) => id.parse().ok(),
            None => self.tenant_config(tenant).await?.default_sender().map(|sender| sender.id),
        };
        let guard = self.guard(tenant, operation, Some(key), &(sender, command.essence(channel)));
        // Never committed: it only compares.
        let mut tx = self.inner.store.begin().await?;
        let repeat = idempotency::claim(&mut *tx, tenant, guard.as_ref(), id.uuid(), now).await?;
        Ok(repeat.map(|repeat| idempotency::conflict(caller, rights::MESSAGE, &view, repeat.same_request)))
    }

    pub(super) async fn plan_with_inputs(
        &self,
        config: &TenantConfig,
        command: SendMessage,
        options: &SendOptions,
        operation: IdempotentOperation,
        now: Timestamp,
        explores: bool,
    ) -> Result<PlanWithInputs> {
        let sender = requested_sender(config, options.sender.as_deref())?;
        let destination = Destination::read(&command, now, options.lenient)?;
        let known = self.known(config, sender, &command, &destination, now).await?;
        let template = match &options.template {
            Some(template) => Some(Template::clone(template)),
            None => self.template_of(config.tenant, &command).await?,
        };
        let planner = Planner {
            config,
            sender,
            known: &known,
            ids: self.ids(),
            marks: &self.inner.marks,
            now,
            operation,
            lenient: options.lenient,
            explores,
            template: template.as_ref(),
        };
        let planned = planner.plan(command, destination)?;
        planned.require_open_window(&known)?;
        if planned.accept.message.message_type == MessageType::Reaction {
            self.check_reaction(&planned.accept).await?;
        }
        Ok(PlanWithInputs { planned, window: known.window })
    }

    /// Returns the template named by the request, if it exists.
    async fn template_of(&self, tenant: TenantId, command: &SendMessage) -> Result<Option<Template>> {
        let id = command.content.as_deref().and_then(|c| c.template_id.as_deref()).and_then(|id| id.parse().ok());
        match id {
            Some(id) if command.message_type == Some(MessageType::Template) => {
                let found = self.inner.store.read().await?.find_template(tenant, id).await?;
                Ok(found.map(Template::in_use))
            }
            _ => Ok(None),
        }
    }

    /// Returns the inputs of the choice of channel. Looks the recipient up only if that can matter.
    pub(crate) async fn known(
        &self,
        config: &TenantConfig,
        sender: &Sender,
        command: &SendMessage,
        destination: &Destination,
        now: Timestamp,
    ) -> Result<RoutingInputs> {
        let prices = self.price_book(config).await?;
        let (asked, message_type) = (command.channel.unwrap_or_default(), command.message_type.unwrap_or_default());
        let nothing = RoutingInputs { prices, ..RoutingInputs::default() };
        if !routing::needs_knowledge(config, sender, asked, message_type) {
            return Ok(nothing);
        }
        let kind = routing::known_kind(asked);
        let (Parsed::Phone(number) | Parsed::Digits(number)) = &destination.parsed else { return Ok(nothing) };
        let metrics = self.metrics_of(config.tenant, kind, &[number]).await?.remove(number).unwrap_or_default();
        let countries = self.countries(config.tenant).await?;
        Ok(RoutingInputs { countries, ..nothing }.of(config, kind, number, metrics, command.sends_at(now)))
    }

    /// Returns metrics of at most 1,000 recipients of one kind.
    pub(crate) async fn metrics_of(
        &self,
        tenant: TenantId,
        kind: AddressKind,
        recipients: &[&str],
    ) -> Result<HashMap<String, Vec<ChannelMetrics>>> {
        let rows = self.inner.store.read().await?.recipient_metrics(tenant, kind, recipients).await?;
        let mut metrics = HashMap::<_, Vec<_>>::new();
        for (number, row) in rows {
            metrics.entry(number).or_default().push(row);
        }
        Ok(metrics)
    }

    /// Fails with 402 if the sender's daily limit is exceeded. A message to a suppressed recipient costs nothing, and is accepted.
    pub(super) async fn begin_daily_spend(&self, config: &TenantConfig, accept: &Accept) -> Result<Option<Pending>> {
        let message = &accept.message;
        let Some(money) = message.state.detail.money.as_ref() else { return Ok(None) };
        let Some(limit) = config.sender(message.sender).and_then(|sender| sender.daily_spend_limit) else { return Ok(None) };
        match self.billing().begin_daily_spend(config.tenant, message.sender, limit, money.open()).await {
            Err(error) if error.code() == ErrorCode::InsufficientBalance && self.is_suppressed(accept).await? => Ok(None),
            checked => checked.map(Some),
        }
    }

    /// Returns whether the recipient of a planned message gets none from its sender.
    pub(super) async fn is_suppressed(&self, Accept { message, recipient, mark, .. }: &Accept) -> Result<bool> {
        let mut tx = self.inner.store.read().await?;
        for identifier in [&recipient.identifier, mark] {
            if tx.is_suppressed(message.tenant, recipient.kind, identifier, message.sender).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Stores the message, and starts it or queues a hint. Runs to completion even if the caller disconnects: a stored message must be
    /// sent.
    pub(crate) async fn accept(&self, planned: Planned) -> Result<Accepted> {
        let core = Core::clone(self);
        RunToCompletion::new(async move {
            let Planned { mut accept, connection, spending: _spending, .. } = planned;
            let is_scheduled = accept.message.state.status == Status::Scheduled;
            let dispatch = &core.inner.dispatch;
            let hint = Hint::of(&accept.message);
            let permit = if is_scheduled { None } else { dispatch.permit(&hint, &connection).await };
            if permit.is_none() && !is_scheduled && !dispatch.has_room(&hint, &connection) {
                // Nothing will remember it: the scanner may take it at once.
                accept.message.state.wait = Wait::Attempt { due_at: accept.now };
            }
            let claim = permit.as_ref().map(|permit| Claim { node: permit.node() });
            accept.claim = claim;
            let accepted = core.inner.store.accept(accept).await?;
            if let Accepted::New { message, .. } = &accepted {
                ACCEPTED.increment(1);
                core.messages().start_or_queue(permit, message, is_scheduled);
            }
            Ok(accepted)
        })
        .await
    }

    fn start_or_queue(&self, permit: Option<Permit>, message: &Message, is_scheduled: bool) {
        match (message.state.wait, permit) {
            // If the commit took long, another node may have taken the message over and started the next attempt.
            (Wait::Owned { node }, Some(permit)) if node == permit.node() => permit.start(Box::new(message.clone())),
            (Wait::Attempt { .. }, _) if !is_scheduled => self.inner.dispatch.add_hint(Hint::of(message)),
            _ => self.inner.dispatch.count_accepted(message),
        }
    }
}

/// Returns whether another configuration might lift a refusal: an unknown sender, no connection, a country, a daily limit.
fn rests_on_config(refusal: &Error) -> bool {
    refusal.code().status() < 500 && (refusal.code() != ErrorCode::InvalidRequest || refusal.is_about("to"))
}

pub(super) struct PlanWithInputs {
    pub(super) planned: Planned,
    pub(super) window: Window,
}

pub(super) fn with_key(mut command: SendMessage, header: Option<&str>) -> Result<SendMessage> {
    command.idempotency_key = idempotency::key(command.idempotency_key.take(), header)?;
    Ok(command)
}

type Work<T> = Pin<Box<dyn Future<Output = T> + Send>>;

/// Runs a future inside its caller; if the caller is dropped first, a task runs the rest.
struct RunToCompletion<T: Send + 'static>(Option<Work<T>>);

impl<T: Send + 'static> RunToCompletion<T> {
    fn new(work: impl Future<Output = T> + Send + 'static) -> Self {
        Self(Some(Box::pin(work)))
    }
}

impl<T: Send + 'static> Future for RunToCompletion<T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        // Taken meanwhile: a future that panicked must not be polled again.
        let Some(mut work) = self.0.take() else { return Poll::Pending };
        let polled = work.as_mut().poll(cx);
        if polled.is_pending() {
            self.0 = Some(work);
        }
        polled
    }
}

impl<T: Send + 'static> Drop for RunToCompletion<T> {
    fn drop(&mut self) {
        if let (Some(rest), Ok(runtime)) = (self.0.take(), Handle::try_current()) {
            runtime.spawn(rest);
        }
    }
}
