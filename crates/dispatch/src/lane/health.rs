//! Health of a connection: back-off after failures, throttling on request of the provider, and refused accounts.

use std::sync::Arc;
use std::time::Duration;

use nuncio_domain::health::{Health, HealthState};
use nuncio_domain::message::{Failure, FailureCode};

use super::{Lane, LaneState};
use crate::{Shared, retry};

/// Unknown outcomes in a row after which a connection backs off.
const UNANSWERED: u32 = 10;

impl LaneState {
    /// Halves the limit on attempts in flight.
    fn slow_down(&mut self, in_flight: usize) {
        self.share = (self.share.min(in_flight as f64) / 2.0).max(1.0);
    }
}

impl Lane {
    /// Returns the health of the connection.
    pub(crate) fn health(&self, now: Duration) -> Health {
        if let Err(why) = &self.adapter {
            return Health { state: HealthState::Failing, since: Some(self.opened_at), reason: Some(why.clone()) };
        }
        let state = self.state.lock();
        let Some((since, reason)) = &state.trouble else {
            let trouble = self.adapter.as_ref().ok().and_then(|adapter| adapter.trouble());
            return trouble.map_or_else(Health::default, |reason| Health {
                state: HealthState::Failing,
                since: None,
                reason: Some(reason),
            });
        };
        let kind = match () {
            () if state.refused => HealthState::Stopped,
            () if now < state.paused_until => HealthState::Resting,
            () => HealthState::Failing,
        };
        Health { state: kind, since: Some(*since), reason: Some(reason.clone()) }
    }

    /// Records a response: the connection works. After each window of such responses, one more attempt can be in flight.
    pub(crate) fn answered(&self) {
        let mut state = self.state.lock();
        state.failures = 0;
        state.unanswered = 0;
        state.trouble = None;
        state.refused = false;
        state.share = (state.share + 1.0 / state.share).min(self.size as f64);
    }

    /// Records an unknown outcome. A single one says nothing about the connection. After [`UNANSWERED`] in a row the provider is probably
    /// down, and each further message might have to be sent again.
    pub(crate) fn went_unanswered(&self, shared: &Shared, failure: &Failure) {
        let unanswered = {
            let mut state = self.state.lock();
            state.unanswered += 1;
            state.unanswered
        };
        if unanswered >= UNANSWERED {
            self.failed(shared, None, failure);
        }
    }

    /// Records a failure of the whole connection: backs off before the next attempt.
    pub(crate) fn failed(&self, shared: &Shared, asked: Option<Duration>, failure: &Failure) {
        let mut state = self.state.lock();
        let since = state.trouble.take().map_or_else(|| shared.ids.clock.now(), |(since, _)| since);
        state.trouble = Some((since, failure.message.clone()));
        let now = shared.ids.clock.monotonic();
        // Attempts that were in flight when the connection failed fail with it, without new information.
        let known = state.refused || now < state.paused_until;
        if known && asked.is_none() {
            return;
        }
        state.failures += u32::from(!known);
        state.refused |= failure.code == FailureCode::CredentialsInvalid;
        if failure.code == FailureCode::RateLimited && !known {
            state.slow_down(self.size - self.window.available_permits());
        }
        let pause = match state.refused {
            true => retry::pause_of_refused(state.failures, &*shared.ids.entropy),
            false => retry::pause(state.failures, asked, &*shared.ids.entropy),
        };
        state.paused_until = state.paused_until.max(now + pause);
        let (refused, failures) = (state.refused, state.failures);
        tracing::warn!(connection = %self.connection, failures, refused, pause_ms = pause.as_millis() as u64, why = %failure.message, "connection backing off");
    }

    /// Returns whether it is time to check a refused account. The caller must report the result to [`Self::checked`].
    fn take_check(&self, shared: &Shared, now: Duration) -> bool {
        let mut state = self.state.lock();
        if !state.refused || state.closed || now < state.paused_until {
            return false;
        }
        state.failures += 1;
        state.paused_until = now + retry::pause_of_refused(state.failures, &*shared.ids.entropy);
        true
    }

    /// Records the result of an account check. A failed one holds up nothing, but shows until a message or a check gets through. If a refused
    /// account is accepted, one message is tried first. Any other pause goes on: the provider may have asked for it.
    pub(crate) fn checked(self: &Arc<Self>, shared: &Shared, result: &Result<String, String>) {
        let (now, mut state) = (shared.ids.clock.monotonic(), self.state.lock());
        if let Err(why) = result {
            state.trouble.get_or_insert_with(|| (shared.ids.clock.now(), String::new())).1.clone_from(why);
            return;
        }
        if state.refused {
            state.refused = false;
            state.paused_until = now;
        }
        if state.paused_until <= now {
            state.trouble = None;
        }
        drop(state);
        self.pump();
    }
}

impl Shared {
    /// Checks refused accounts, and counts connections by health.
    pub(crate) fn look_at_accounts(self: &Arc<Self>, now: Duration) {
        let lanes: Vec<_> = self.lanes.read().values().cloned().collect();
        let mut counts = [(HealthState::Ok, 0_u32), (HealthState::Resting, 0), (HealthState::Failing, 0), (HealthState::Stopped, 0)];
        for lane in lanes {
            let state = lane.health(now).state;
            counts.iter_mut().filter(|(kind, _)| *kind == state).for_each(|(_, count)| *count += 1);
            if lane.take_check(self, now) {
                self.check_account(lane);
            }
        }
        for (state, count) in counts {
            metrics::gauge!("nuncio_connections", "state" => state.as_str()).set(f64::from(count));
        }
    }

    fn check_account(self: &Arc<Self>, lane: Arc<Lane>) {
        let (shared, working) = (Arc::clone(self), self.tracker.begin());
        self.runtime.spawn(async move {
            let _working = working;
            if let Ok(adapter) = &lane.adapter {
                let answer = adapter.check().await;
                lane.checked(&shared, &answer);
            }
        });
    }
}
