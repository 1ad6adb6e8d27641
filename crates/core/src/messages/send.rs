//! `POST /v1/messages`.

use nuncio_domain::config::{Sender, World};
use nuncio_domain::lifecycle::Wait;
use nuncio_domain::message::Message;
use nuncio_domain::{Error, ErrorCode, FieldError, Permission, Result, SenderId, Timestamp};
use nuncio_store::{Accept, Accepted, Claim};
use serde::Serialize;
use tokio::sync::oneshot;
use utoipa::ToSchema;

use super::command::SendMessage;
use super::plan::{self, Planned};
use super::view::{MessageView, RoutingView};
use crate::ports::{Hint, Permit};
use crate::{Caller, Core, StoreResultExt as _, once};

/// What stands beside the body of a send.
#[derive(Clone, Debug, Default)]
pub struct SendOptions {
    /// Header `Service-Sender`.
    pub sender: Option<String>,
    /// Header `Idempotency-Key`.
    pub idempotency_key: Option<String>,
    /// `Prefer: handling=lenient`.
    pub lenient: bool,
}

/// What would happen to a message.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MessagePlan)]
pub struct Plan {
    /// The recipient in canonical form.
    pub to: String,
    /// The channel.
    #[schema(value_type = nuncio_domain::Channel)]
    pub channel: String,
    /// The sender profile.
    #[schema(value_type = String)]
    pub sender_id: SenderId,
    /// The number or address that it would come from; empty if none.
    pub from: String,
    /// Why it would go there.
    pub routing: RoutingView,
    /// When it would be sent.
    #[schema(value_type = String, format = DateTime)]
    pub send_at: Timestamp,
    /// When it would expire.
    #[schema(value_type = String, format = DateTime)]
    pub expires_at: Timestamp,
    /// Whether the recipient is suppressed, so that it would fail at once.
    pub suppressed: bool,
}

/// How often a plan that turned out stale is made again.
const REPLANS: usize = 4;

impl Core {
    /// Accepts a message. When this returns, the message, its idempotency key and its first event are on disk.
    ///
    /// A used idempotency key gives a 409 with the original message, and nothing is sent.
    pub async fn send_message(&self, caller: &Caller, command: SendMessage, options: SendOptions) -> Result<MessageView> {
        caller.require(Permission::MessagesSend)?;
        let command = with_key(command, options.idempotency_key.as_deref())?;
        for _ in 0..REPLANS {
            let now =
                self.inner.outbound.accepting().ok_or_else(|| Error::unavailable("this node is not fit to accept messages right now"))?;
            let (world, planned) = self.plan(caller, command.clone(), &options, now).await?;
            match self.accept(planned).await? {
                Accepted::New { message, contact } => return Ok(MessageView::new(&message, world.environment, Some(contact))),
                Accepted::Stale => self.forget_world(caller.tenant),
                Accepted::Duplicate { original, same_request } => {
                    let original = self.message(caller, original).await?;
                    return Err(once::conflict("message", &original, same_request));
                }
            }
        }
        Err(Error::unavailable("the configuration keeps changing; try again"))
    }

    /// What [`Self::send_message`] would do. Writes nothing.
    pub async fn plan_message(&self, caller: &Caller, command: SendMessage, options: SendOptions) -> Result<Plan> {
        caller.require(Permission::MessagesSend)?;
        let command = with_key(command, options.idempotency_key.as_deref())?;
        let (_, planned) = self.plan(caller, command, &options, self.ids().clock.now()).await?;
        let Accept { message, recipient, now, .. } = planned.accept;
        let mut tx = self.inner.store.read().await.or_fail()?;
        let suppressed = tx.is_suppressed(caller.tenant, recipient.kind, &recipient.identifier, message.sender).await.or_fail()?;
        Ok(Plan {
            channel: message.state.route.channel.as_str().to_owned(),
            sender_id: message.sender,
            routing: RoutingView::new(&message.request),
            send_at: message.request.scheduled_at.filter(|at| *at > now).unwrap_or(now),
            expires_at: message.state.expires_at,
            from: message.from,
            to: message.to,
            suppressed,
        })
    }

    async fn plan(
        &self,
        caller: &Caller,
        command: SendMessage,
        options: &SendOptions,
        now: Timestamp,
    ) -> Result<(std::sync::Arc<World>, Planned)> {
        let world = self.world(caller.tenant).await?;
        let sender = sender(&world, options.sender.as_deref())?;
        let planned = plan::plan(&world, sender, command, now, self.ids(), options.lenient)?;
        if plan::needs_window(&planned) && !self.window_open(&world, &planned, now).await? {
            return Err(plan::window_closed());
        }
        Ok((world, planned))
    }

    /// Whether the recipient wrote by this channel within the last 24 hours.
    async fn window_open(&self, world: &World, planned: &Planned, now: Timestamp) -> Result<bool> {
        if world.environment == nuncio_domain::Environment::Test {
            return Ok(!plan::sandbox_window_closed(world.environment, &planned.accept.recipient));
        }
        let mut tx = self.inner.store.read().await.or_fail()?;
        let Some((address, _)) = tx.find_address(world.tenant, &planned.accept.recipient).await.or_fail()? else { return Ok(false) };
        let metrics = tx.channel_metrics(world.tenant, address).await.or_fail()?;
        let newest = metrics.iter().filter(|m| m.channel == planned.connection.channel).filter_map(|m| m.last_inbound_at).max();
        Ok(newest.is_some_and(|at| now.since(at) < std::time::Duration::from_secs(86_400)))
    }

    /// Writes the message and hands it over. Runs to its end even if the caller goes away: once written, somebody must send it.
    async fn accept(&self, planned: Planned) -> Result<Accepted> {
        let (reply, answer) = oneshot::channel();
        let core = self.clone();
        tokio::spawn(async move {
            let Planned { mut accept, connection } = planned;
            let waits_for_its_time = matches!(accept.message.state.wait, Wait::Attempt { due_at } if due_at > accept.now.plus(plan::GRACE));
            let outbound = &core.inner.outbound;
            let permit = if waits_for_its_time { None } else { outbound.reserve(accept.message.tenant, &connection) };
            accept.claim = permit.as_ref().map(|_| Claim { node: outbound.node() });
            let accepted = core.inner.store.accept(accept).await;
            let handed = if let Ok(Accepted::New { message, .. }) = &accepted { Some(message.clone()) } else { None };
            if handed.is_some() {
                metrics::counter!("nuncio_messages_accepted_total").increment(1);
            }
            let _ = reply.send(accepted);
            if let Some(message) = handed {
                core.hand_over(permit, message, waits_for_its_time);
            }
        });
        answer.await.map_err(Error::internal)?.or_fail()
    }

    fn hand_over(&self, permit: Option<Permit>, message: Box<Message>, waits_for_its_time: bool) {
        let outbound = &self.inner.outbound;
        match (message.state.wait, permit) {
            (Wait::Owned { .. }, Some(permit)) => outbound.started(permit, message),
            (Wait::Attempt { .. }, _) if !waits_for_its_time => outbound.waiting(Hint {
                tenant: message.tenant,
                id: message.id,
                fence: message.state.fence,
                connection: message.state.route.connection,
            }),
            _ => {}
        }
    }
}

fn with_key(mut command: SendMessage, header: Option<&str>) -> Result<SendMessage> {
    command.idempotency_key = once::key(command.idempotency_key.take(), header)?;
    Ok(command)
}

fn sender<'a>(world: &'a World, header: Option<&str>) -> Result<&'a Sender> {
    match header {
        None => world
            .default_sender()
            .ok_or_else(|| Error::new(ErrorCode::SenderNotConfigured, "this world has no default sender; name one in Service-Sender")),
        Some(text) => {
            let sender = text.parse().ok().and_then(|id| world.sender(id));
            sender.ok_or_else(|| {
                let fault = FieldError::new(
                    "header.Service-Sender",
                    format!("{:?} is no sender of this world", text.chars().take(64).collect::<String>()),
                );
                Error::not_found("sender").with("errors", serde_json::to_value([fault]).unwrap_or_default())
            })
        }
    }
}
