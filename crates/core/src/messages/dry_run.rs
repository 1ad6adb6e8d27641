//! `POST /v1/messages` with `dryRun`: what a send would do, without storing anything.

use nuncio_domain::message::{Cost, Money};
use nuncio_domain::{Channel, ErrorCode, Micros, Permission, Result, SenderId, Timestamp, ledger::Balance};
use nuncio_store::{Accept, IdempotentOperation};
use serde::Serialize;
use utoipa::ToSchema;

use super::routing::{self, Window};
use super::send::{PlanWithInputs, SendOptions, with_key};
use super::{Messages, command::SendMessage, view::RoutingView};
use crate::base::Caller;

/// How a message would be sent.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = MessagePlan)]
pub struct Plan {
    /// The recipient in canonical form.
    pub to: String,
    /// The channel.
    pub channel: Channel,
    /// The sender profile.
    pub sender_id: SenderId,
    /// The number or address of the sender on this channel; empty if none.
    pub from: String,
    /// Why it would take this route.
    pub routing: RoutingView,
    /// When it would be sent.
    pub send_at: Timestamp,
    /// When it would expire.
    pub expires_at: Timestamp,
    /// Whether the recipient is suppressed; the message would then fail at once.
    pub suppressed: bool,
    /// The next channel if this one fails.
    pub fallback_channel: Option<Channel>,
    /// Number of SMS segments; absent if it cannot be sent as SMS.
    pub segments: Option<u16>,
    /// Character encoding as SMS.
    pub encoding: Option<nuncio_domain::sms::Encoding>,
    /// The first character outside the default SMS alphabet; without such characters, a segment holds more text.
    pub forced_by: Option<Foreign>,
    /// Estimated cost; absent without a price, and if the recipient is suppressed.
    pub estimated_cost: Option<PlannedCost>,
    /// Amount that would be reserved, including its fallback; absent without a price, and if the recipient is suppressed.
    pub required: Option<Micros>,
    /// Whether that amount is available.
    pub affordable: bool,
    /// The conversation window, if the channel is WhatsApp or Instagram.
    pub window: Option<WindowView>,
    /// Content that a channel does not support, and how it would be sent instead.
    pub degraded: Vec<String>,
}

/// A character outside the default SMS alphabet.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = ForeignCharacter)]
pub struct Foreign {
    /// The character.
    pub character: String,
    /// Its position in the text, in code points from 0.
    pub position: usize,
}

/// Cost of a message on its first channel, in US dollars.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlannedCost {
    /// Platform fee.
    pub cost: Micros,
    /// Carrier's price.
    pub cost_provider: Micros,
    /// Sum of both.
    pub cost_total: Micros,
}

impl From<Cost> for PlannedCost {
    fn from(cost: Cost) -> Self {
        Self { cost: cost.fee, cost_provider: cost.provider, cost_total: cost.total() }
    }
}

/// The conversation window of WhatsApp or Instagram.
#[serde_with::skip_serializing_none]
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = ConversationWindow)]
pub struct WindowView {
    /// Whether it is open.
    pub open: bool,
    /// When it closes, if known.
    pub expires_at: Option<Timestamp>,
}

impl From<Window> for WindowView {
    fn from(window: Window) -> Self {
        match window {
            Window::Closed => Self { open: false, expires_at: None },
            Window::Open(expires_at) => Self { open: true, expires_at },
        }
    }
}

impl Messages<'_> {
    /// Returns what [`Self::send`] would do, without storing anything.
    pub async fn plan(&self, caller: &Caller, command: SendMessage, options: SendOptions) -> Result<Plan> {
        caller.require(Permission::MessagesSend)?;
        Ok(self.plan_for(caller, with_key(command, options.idempotency_key.as_deref())?, &options).await?.0)
    }

    /// Plans for callers who were authorised otherwise; also returns the text as sent.
    pub(crate) async fn plan_for(&self, caller: &Caller, command: SendMessage, options: &SendOptions) -> Result<(Plan, Option<String>)> {
        let (operation, now) = (IdempotentOperation::SendMessage, self.ids().clock.now());
        let config = self.current_config(caller.tenant).await?;
        let PlanWithInputs { planned, window } = self.plan_with_inputs(&config, command, options, operation, now, false).await?;
        let is_within_limit = match self.begin_daily_spend(&config, &planned.accept).await {
            Err(error) if error.code() != ErrorCode::InsufficientBalance => return Err(error),
            outcome => outcome.is_ok(),
        };
        let suppressed = self.is_suppressed(&planned.accept).await?;
        let Accept { message, now, .. } = planned.accept;
        // A message to a suppressed recipient costs nothing.
        let (route, money) = (&message.state.route, message.state.detail.money.as_ref().filter(|_| !suppressed));
        let required = money.map(Money::open);
        let balance = if required.is_some() { self.billing().balance(caller.tenant).await? } else { Balance::default() };
        let fallback = message.state.detail.fallback.as_ref().map(|route| route.channel);
        let channels = std::iter::once(route.channel).chain(fallback);
        let text = message.request.text.clone();
        let plan = Plan {
            channel: route.channel,
            sender_id: message.sender,
            routing: RoutingView::new(&message.request),
            send_at: message.request.scheduled_at.filter(|at| *at > now).unwrap_or(now),
            expires_at: message.state.expires_at,
            suppressed,
            fallback_channel: fallback,
            segments: planned.measure.map(|m| m.segments),
            encoding: planned.measure.map(|m| m.encoding),
            forced_by: planned.measure.and_then(|m| m.forced_by).map(|f| Foreign { character: f.character.into(), position: f.position }),
            estimated_cost: money.and_then(|m| m.quotes.iter().find(|q| q.channel == route.channel)).map(|q| q.cost.into()),
            required,
            affordable: is_within_limit && (!balance.limited || required.is_none_or(|required| required <= balance.available)),
            window: matches!(route.channel, Channel::Whatsapp | Channel::Instagram).then(|| window.into()),
            degraded: channels.filter_map(|channel| routing::degraded(channel, message.message_type)).collect(),
            from: message.from,
            to: message.to,
        };
        Ok((plan, text))
    }
}
