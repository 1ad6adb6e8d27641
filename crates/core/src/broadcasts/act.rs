//! Actions on broadcasts: send, schedule, pause, resume, cancel, escalate, retry the review, and the operator's decision.

use nuncio_domain::broadcast::{Broadcast, BroadcastAction, ReviewDecision, Status, apply};
use nuncio_domain::{BroadcastId, Channel, Error, ErrorCode, RequestedChannel, Result, TenantId, Timestamp, limits, page::PageRequest};

use super::change::{TRIES, changing};
use super::command::{ScheduleBroadcast, SendBroadcast};
use super::{Broadcasts, check, content, content::fingerprint, view::BroadcastView};
use crate::base::{Caller, UseCase, check_version, parse_id};
use crate::messages::routing;

/// Maximum number of escalated broadcasts that are returned.
const ESCALATED: u32 = 100;

impl Broadcasts<'_> {
    /// Submits a draft for review; after approval, it is sent at its scheduled time.
    pub async fn send(&self, caller: &Caller, id: &str, command: SendBroadcast) -> Result<BroadcastView> {
        caller.require(UseCase::SendBroadcast)?;
        if let Some(at) = command.scheduled_at {
            self.check_time(at)?;
        }
        let edit = |broadcast: &mut Broadcast| {
            let stored = broadcast.body.scheduled_at.filter(|_| !command.at_once);
            broadcast.body.scheduled_at = command.scheduled_at.or(stored);
        };
        self.submit_for_review(caller.tenant, parse_id(id, "broadcast")?, BroadcastAction::Send, command.expected, edit).await
    }

    /// Fails if the broadcast has nothing that can be sent.
    async fn ensure_sendable(&self, broadcast: &Broadcast) -> Result<()> {
        let config = self.current_config(broadcast.tenant).await?;
        let template = self.template_of(broadcast).await?;
        let sender = config.sender(broadcast.sender).ok_or_else(content::sender_deleted)?;
        let requested = broadcast.channel.requested();
        let channels = match requested {
            RequestedChannel::Only(channel) => vec![channel],
            RequestedChannel::Auto => [routing::RICH_ORDER, &[Channel::Email]].concat(),
        };
        if channels.iter().all(|channel| config.connection(broadcast.sender, *channel).is_none()) {
            let names: Vec<&str> = channels.iter().map(|channel| channel.as_str()).collect();
            let message = format!("the sender of the broadcast has no provider connected for {}", names.join(", "));
            return Err(Error::new(ErrorCode::SenderNotConfigured, message));
        }
        let approved = template.is_none_or(|template| routing::is_approved(&template, &config, sender));
        if requested == RequestedChannel::Only(Channel::Whatsapp) && !approved { Err(routing::not_approved()) } else { Ok(()) }
    }

    /// Reschedules a scheduled broadcast.
    pub async fn schedule(&self, caller: &Caller, id: &str, command: ScheduleBroadcast) -> Result<BroadcastView> {
        caller.require(UseCase::ScheduleBroadcast)?;
        let at = command.scheduled_at;
        self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        self.check_time(at)?;
        if at <= self.ids().clock.now() {
            return Err(Error::field("scheduledAt", format!("{at} has passed; must be in the future")));
        }
        self.act_on(caller, id, BroadcastAction::Schedule, |broadcast, _| {
            broadcast.body.scheduled_at = Some(at);
            Ok(())
        })
        .await
    }

    /// Pauses a broadcast. Withdraws queued messages that no provider has yet.
    pub async fn pause(&self, caller: &Caller, id: &str) -> Result<BroadcastView> {
        caller.require(UseCase::PauseBroadcast)?;
        self.act_on(caller, id, BroadcastAction::Pause, |_, _| Ok(())).await
    }

    /// Resumes a paused broadcast.
    pub async fn resume(&self, caller: &Caller, id: &str) -> Result<BroadcastView> {
        caller.require(UseCase::ResumeBroadcast)?;
        self.act_on(caller, id, BroadcastAction::Resume, |broadcast, _| {
            broadcast.body.halted = None;
            Ok(())
        })
        .await
    }

    /// Cancels a broadcast permanently. Withdraws queued messages that no provider has yet.
    pub async fn cancel(&self, caller: &Caller, id: &str) -> Result<BroadcastView> {
        caller.require(UseCase::CancelBroadcast)?;
        self.act_on(caller, id, BroadcastAction::Cancel, |_, _| Ok(())).await
    }

    /// Requests a decision by a person about a rejected broadcast.
    pub async fn escalate(&self, caller: &Caller, id: &str) -> Result<BroadcastView> {
        caller.require(UseCase::EscalateBroadcast)?;
        self.act_on(caller, id, BroadcastAction::Escalate, |_, _| Ok(())).await
    }

    /// Submits the edited content of a rejected broadcast for review.
    pub async fn retry_review(&self, caller: &Caller, id: &str) -> Result<BroadcastView> {
        caller.require(UseCase::RetryBroadcastReview)?;
        self.submit_for_review(caller.tenant, parse_id(id, "broadcast")?, BroadcastAction::RetryReview, None, |_| {}).await
    }

    /// Reserves the maximum cost of a broadcast, and starts its review. Fails with 409 if it has another version or number of recipients than
    /// `expected`.
    async fn submit_for_review(
        &self,
        tenant: TenantId,
        id: BroadcastId,
        action: BroadcastAction,
        expected: Option<(i64, i64)>,
        edit: impl Fn(&mut Broadcast) + Send + Sync,
    ) -> Result<BroadcastView> {
        for _ in 0..TRIES {
            let broadcast = self.find(tenant, id).await?;
            let template = content::template(&mut *self.inner.store.read().await?, &broadcast).await?;
            apply(broadcast.standing(&fingerprint(&broadcast, template.as_ref())), action)?;
            // The estimate fails if recipients or content change until it is submitted.
            check_version(expected, (broadcast.version, broadcast.total), "broadcast")?;
            Error::if_any(check::check_complete(&broadcast, self.ids().clock.now()))?;
            self.ensure_sendable(&broadcast).await?;
            self.require_values(&broadcast).await?;
            let estimate = self.estimate(&broadcast).await?;
            let change = |broadcast: &mut Broadcast, now: Timestamp| {
                edit(broadcast);
                broadcast.body.review_attempts += 1;
                // It may have been edited since.
                Error::if_any(check::check_complete(broadcast, now))
            };
            match self.change_as(tenant, id, |_| action, Some(&estimate), change).await {
                // Recipients or content changed since they were checked.
                Err(error) if error.code() == ErrorCode::Conflict => {}
                changed => return Ok(BroadcastView::whole(&changed?)),
            }
        }
        Err(changing())
    }

    async fn act_on(
        &self,
        caller: &Caller,
        id: &str,
        action: BroadcastAction,
        edit: impl Fn(&mut Broadcast, Timestamp) -> Result<()> + Send + Sync,
    ) -> Result<BroadcastView> {
        let id = parse_id(id, "broadcast")?;
        Ok(BroadcastView::whole(&self.change(caller.tenant, id, action, edit).await?))
    }

    fn check_time(&self, at: Timestamp) -> Result<()> {
        if at > self.ids().clock.now().plus(limits::BROADCAST_AHEAD) {
            return Err(Error::field("scheduledAt", format!("{at} is more than 365 days ahead")));
        }
        Ok(())
    }

    /// Returns the broadcasts of an environment that wait for an operator, newest first.
    pub async fn escalated(&self, tenant: TenantId) -> Result<Vec<BroadcastView>> {
        let page = PageRequest::newest(ESCALATED);
        let page = self.inner.store.read().await?.list_broadcasts(tenant, &[Status::Escalated], page).await?;
        Ok(page.items.iter().map(BroadcastView::whole).collect())
    }

    /// Approves an escalated broadcast, or rejects it permanently. `reason` is shown to the broadcast's author.
    pub async fn decide_review(&self, tenant: TenantId, id: &str, approve: bool, reason: Option<&str>) -> Result<BroadcastView> {
        let broadcast = self.find(tenant, parse_id(id, "broadcast")?).await?;
        let action = |broadcast: &Broadcast| {
            let now = self.ids().clock.now();
            if approve { BroadcastAction::Approve { ahead: is_ahead(broadcast, now) } } else { BroadcastAction::Refuse }
        };
        apply(broadcast.standing(""), action(&broadcast))?;
        let estimate = if approve { Some(self.estimate(&broadcast).await?) } else { None };
        let changed = self
            .change_as(tenant, broadcast.id, action, estimate.as_ref(), |broadcast, now| {
                let reason_given = reason.map(str::to_owned);
                broadcast.body.decision = Some(ReviewDecision { approved: approve, reason: reason_given, decided_at: now });
                if let Some(review) = &mut broadcast.body.review {
                    let verdict = if approve { "Approved by a person" } else { "Refused by a person" };
                    review.reasoning = reason.map_or_else(|| format!("{verdict}."), |reason| format!("{verdict}: {reason}"));
                    review.reviewed_at = now;
                }
                Ok(())
            })
            .await?;
        Ok(BroadcastView::whole(&changed))
    }
}

/// Returns whether the scheduled time is in the future.
pub(super) fn is_ahead(broadcast: &Broadcast, now: Timestamp) -> bool {
    broadcast.body.scheduled_at.is_some_and(|at| at > now)
}
