//! Runs an attempt: records the start, calls the provider, records the result.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};
use std::task::Poll;
use std::time::Duration;

use nuncio_channel::{LateResult, SendRequest};
use nuncio_domain::lifecycle::{Applied, Outcome, Scope, Step};
use nuncio_domain::message::{AttemptStatus, Failure, FailureCode, Message, Status, Wait};
use nuncio_domain::{MessageId, MessageType, TenantId};
use nuncio_store::{Result, Store, StoreError, Transition, Transitioned};

use crate::{Hint, Permit, Shared, lane::Slot, retry};

/// A handle for each status saves a look-up per change. The recorder must be installed before the first use.
static SETTLED: LazyLock<HashMap<Status, metrics::Counter>> = LazyLock::new(|| {
    let counter = |status: &Status| (*status, metrics::counter!("nuncio_messages_settled_total", "status" => status.as_str()));
    Status::ALL.iter().map(counter).collect()
});

/// A fence that no message has.
const PAST: i64 = -1;
/// How often to look whether an attempt has ended.
const SETTLING: Duration = Duration::from_millis(10);

impl Permit {
    /// Runs the attempt of `message`, which must be stored as started by [`Self::node`].
    pub fn start(self, message: Box<Message>) {
        let Self { mut slot, shared } = self;
        shared.logs.grown(message.tenant);
        // The attempt is registered before its accept ends: without either, the message would seem lost.
        let accepting = slot.accepting.take();
        let running = Arc::clone(&shared);
        shared.spawn(message.id, async move { running.run_attempt(slot, message).await });
        drop(accepting);
    }
}

impl Shared {
    /// Starts the attempt of a waiting message in a free slot.
    pub(crate) fn begin(self: &Arc<Self>, slot: Slot, hint: Hint) {
        let shared = Arc::clone(self);
        self.spawn(hint.id, async move { shared.start_and_run(slot, hint).await });
    }

    fn spawn(&self, message: MessageId, attempt: impl Future<Output = ()> + Send + 'static) {
        let working = (self.tracker.begin(), self.in_flight.attempt(message));
        self.runtime.spawn(async move {
            let _working = working;
            attempt.await;
        });
    }

    /// Starts the attempt of a waiting message. Storing the start detects whether another node was faster or the message may not be sent.
    async fn start_and_run(self: &Arc<Self>, mut slot: Slot, hint: Hint) {
        // Reserved before the request is loaded.
        slot.memory = self.memory.for_request(hint.tenant, hint.bytes).await;
        if slot.memory.is_some() && (self.is_stopping() || !self.fitness.is_fit(self.ids.clock.monotonic())) {
            return;
        }
        let step = self.start_step(hint.fence);
        let transition = Transition::new(hint.tenant, hint.id, step, self.ids.clock.now());
        match self.store.transition(transition).await {
            Ok(Transitioned::Found { message: Some(message), .. }) => {
                self.logs.grown(hint.tenant);
                self.run_attempt(slot, message).await
            }
            Ok(ended) => self.count_step(hint.tenant, &ended),
            // Either nothing was started, or the outcome of the commit is unknown and recovery finds it.
            Err(error @ (StoreError::Busy(_) | StoreError::Unavailable(_) | StoreError::InDoubt(_))) => {
                if let Some(suppressed) = self.failed_starts.line(&error.to_string(), self.ids.clock.monotonic()) {
                    tracing::warn!(message.id = %hint.id, %error, suppressed, "failed to start attempt; the scanner will retry it");
                }
            }
            Err(error) => self.skip_temporarily(hint.id, &error),
        }
    }

    /// Calls the provider and records the result. Releases the slot once the result waits for the store: the start of the next attempt is
    /// written after it, so a crash leaves no more attempts without a result than if the slot were held until then.
    async fn run_attempt(self: &Arc<Self>, mut slot: Slot, mut message: Box<Message>) {
        slot.used = true;
        let attempt = message.state.detail.attempts.len().saturating_sub(1);
        let bytes = message.request.spooled_bytes();
        let outcome = self.call(&slot, &mut message, attempt).await;
        let asked = match &outcome {
            Outcome::Deferred { retry_after, .. } => retry_after.map(|asked| asked.min(retry::ASKED_MAX)),
            _ => None,
        };
        match &outcome {
            Outcome::Deferred { scope: Scope::Connection, failure, .. } => slot.lane.failed(self, asked, failure),
            outcome if has_responded(outcome) => slot.lane.answered(),
            Outcome::Unknown { failure, .. } => slot.lane.went_unanswered(self, failure),
            // A local failure says nothing about the connection.
            _ => {}
        }
        let step = Step::Settle {
            attempt,
            fence: message.state.fence,
            outcome,
            receipts: slot.lane.receipts(),
            retry_in: retry::after(attempt, asked, &*self.ids.entropy),
            receipt_wait: self.config.receipt_wait,
        };
        let result = Transition::new(message.tenant, message.id, step, self.ids.clock.now());
        let result = Transition { frees: Some(slot.lane.connection), ..result };
        let mut settled = std::pin::pin!(record(&*self.store, result));
        // Polled once, it is in the queue of the store.
        let first = futures::poll!(settled.as_mut());
        // A large request stays in memory until the end, and so does what it reserved. Others release their slot here.
        let _kept = if bytes > 0 {
            Some(slot)
        } else {
            drop(slot);
            None
        };
        let settled = match first {
            Poll::Ready(settled) => settled,
            Poll::Pending => settled.await,
        };
        if let Some(settled) = &settled {
            self.count_unknown(settled);
            self.count_result(message.tenant, settled);
        }
        if let Some(Transitioned::Found { state, .. }) = settled {
            // A fallback is due at once; the scanner finds everything else.
            if let Wait::Attempt { due_at } = state.wait
                && due_at <= self.ids.clock.now()
            {
                let (fence, connection) = (state.fence, state.route.connection);
                let bulk = state.detail.broadcast.is_some();
                let hint = Hint { tenant: message.tenant, id: message.id, fence, connection, bulk, bytes };
                self.add_hint(hint);
            }
        }
    }

    /// Records the result of an attempt whose outcome was recorded as unknown.
    pub async fn settle_late(&self, late: LateResult) -> Result<()> {
        let LateResult { origin, message, attempt, outcome, receipts } = late;
        // The unknown outcome must be stored first.
        while self.in_flight.has(message) {
            tokio::time::sleep(SETTLING).await;
        }
        metrics::counter!("nuncio_attempts_late_total").increment(1);
        let lane = self.lanes.read().get(&origin.connection).cloned();
        match (lane, &outcome) {
            (Some(lane), Outcome::Deferred { scope: Scope::Connection, failure, .. }) => lane.failed(self, None, failure),
            // There was a response, even if the outcome is still unknown.
            (Some(lane), _) => lane.answered(),
            (None, _) => {}
        }
        let step = Step::Settle {
            attempt,
            fence: PAST,
            outcome: outcome.with_bounded_references(),
            receipts,
            retry_in: retry::after(attempt, None, &*self.ids.entropy),
            receipt_wait: self.config.receipt_wait,
        };
        let settled = self.store.transition(Transition::new(origin.tenant, message, step, self.ids.clock.now())).await?;
        self.count_result(origin.tenant, &settled);
        Ok(())
    }

    async fn call(&self, slot: &Slot, message: &mut Message, attempt: usize) -> Outcome {
        let adapter = match &slot.lane.adapter {
            Ok(adapter) => adapter,
            Err(why) => {
                let failure = Failure::own(FailureCode::CredentialsInvalid, why.clone());
                return Outcome::Deferred { retry_after: None, failure, scope: Scope::Connection };
            }
        };
        // Boxed, here and below, so that rarely used code does not enlarge the future of every attempt.
        let (attachments, _fetched) = if message.request.attachments.is_empty() {
            (Vec::new(), None)
        } else {
            match Box::pin(self.resolve_attachments(message)).await {
                Ok(resolved) => resolved,
                Err(outcome) => return outcome,
            }
        };
        let message = &*message;
        let channel = message.state.detail.attempts.get(attempt).map_or(message.state.route.channel, |a| a.channel);
        let reaction = match message.message_type {
            MessageType::Reaction => match Box::pin(self.name_for_provider(message)).await {
                Ok(reaction) => Some(reaction),
                Err(outcome) => return outcome,
            },
            _ => None,
        };
        let message = reaction.as_deref().unwrap_or(message);
        let request = SendRequest { message, attempt, channel, attachments: &attachments, now: self.ids.clock.now() };
        adapter.send(&request).await.with_bounded_references()
    }

    /// Returns a copy of a reaction that names the message reacted to by the provider's id instead of ours.
    async fn name_for_provider(&self, message: &Message) -> Result<Box<Message>, Outcome> {
        let later = |error: StoreError| {
            let failure = Failure::own(FailureCode::Undeliverable, format!("the message reacted to could not be read: {error}"));
            Outcome::Deferred { retry_after: None, failure, scope: Scope::Message }
        };
        let mut named = Box::new(message.clone());
        let reacted_to = named.request_mut().content.as_mut().and_then(|content| content.react_to_message_id.as_mut());
        let id = reacted_to.as_ref().and_then(|id| id.parse().ok());
        let found = match id {
            Some(id) => self.store.read().await.map_err(later)?.lookup_messages(message.tenant, &[id]).await.map_err(later)?.pop(),
            None => None,
        };
        let reference = found.as_ref().and_then(|found| found.state.detail.provider_message_id());
        match (reacted_to, reference) {
            (Some(reacted_to), Some(reference)) => reference.clone_into(reacted_to),
            _ => {
                let what = "the provider has no id for the message reacted to";
                return Err(Outcome::Rejected { failure: Failure::own(FailureCode::ContentRejected, what) });
            }
        }
        Ok(named)
    }

    /// Counts what a step did to its message, and signals the reader of its event log.
    pub fn count_step(&self, tenant: TenantId, transitioned: &Transitioned) {
        for change in transitioned.changes() {
            SETTLED[&change.status].increment(1);
        }
        self.metric_buffer.add_traffic(tenant, transitioned);
        self.logs.grown(tenant);
    }

    /// Counts an attempt whose outcome became unknown. The changes of its message do not show it: a message that will be sent again keeps its
    /// status.
    pub(crate) fn count_unknown(&self, ended: &Transitioned) {
        let Transitioned::Found { applied: Applied::Yes, state, .. } = ended else { return };
        if state.detail.attempts.last().is_some_and(|attempt| attempt.status == AttemptStatus::Unknown) {
            metrics::counter!("nuncio_attempts_unknown_total").increment(1);
        }
    }

    /// Like [`Self::count_step`] for the result of an attempt or a receipt, which also shows how well the channel reaches the recipient.
    pub fn count_result(&self, tenant: TenantId, transitioned: &Transitioned) {
        self.count_step(tenant, transitioned);
        if let Transitioned::Found { applied: Applied::Yes, state, changes, address, .. } = transitioned {
            self.metric_buffer.add(tenant, *address, state, changes);
        }
    }

    /// Signals the reader of the event log that a message was accepted that does not start now, and counts it if it failed at once.
    pub fn count_accepted(&self, message: &Message) {
        if message.state.status == Status::Failed {
            SETTLED[&Status::Failed].increment(1);
            self.metric_buffer.add_failed(message);
        }
        self.logs.grown(message.tenant);
    }
}

/// Records a fact, retrying while the process lives: what happened must not be lost. A node that stops waits for it as long as its patience
/// lasts.
async fn record(store: &dyn Store, mut transition: Transition) -> Option<Transitioned> {
    let mut pause = Duration::from_millis(50);
    loop {
        match store.transition(transition.clone()).await {
            Ok(transitioned) => return Some(transitioned),
            Err(StoreError::Busy(_) | StoreError::Unavailable(_) | StoreError::InDoubt(_)) => {}
            // Without its result, an accepted message would be sent again. Without its ids, only its receipts are lost.
            Err(error) if drop_references(&mut transition.step) => {
                tracing::error!(message.id = transition.id.map(tracing::field::display), %error, "failed to store the result of an attempt; storing it without the provider's ids");
                continue;
            }
            Err(error) => {
                tracing::error!(message.id = transition.id.map(tracing::field::display), %error, "failed to store the result of an attempt; recovery will count it as unknown");
                return None;
            }
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(Duration::from_secs(2));
    }
}

/// Drops the provider's ids from a result; returns whether there were any.
fn drop_references(step: &mut Step) -> bool {
    match step {
        Step::Settle { outcome, .. } => outcome.drop_references(),
        _ => false,
    }
}

/// Returns whether the provider responded.
const fn has_responded(outcome: &Outcome) -> bool {
    match outcome {
        Outcome::Accepted { .. } => true,
        Outcome::Deferred { failure, .. } | Outcome::Rejected { failure } => failure.provider_code.is_some(),
        Outcome::Unknown { .. } => false,
    }
}

#[cfg(test)]
#[path = "attempt_tests.rs"]
mod tests;
