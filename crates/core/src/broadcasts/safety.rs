//! Halts broadcasts with too many failures, opt-outs or complaints, and limits canaries.

use std::time::Duration;

use nuncio_domain::broadcast::{Broadcast, BroadcastAction, Canary, Counts, HaltBase, HaltOn, Status};
use nuncio_domain::{FieldError, Result, Timestamp, contact::SuppressionReason};

use super::{Broadcasts, change::ignore_lost_race};

/// Minimum number of known results before a rate counts.
const MIN_KNOWN: i64 = 50;
/// How many messages may be in flight without a known result, if a rate can halt the broadcast.
const MAX_UNKNOWN: i64 = 200;
/// Interval of checks while a broadcast waits for its canary.
pub(super) const LOOK: Duration = Duration::from_secs(5);
const WAIT: std::ops::RangeInclusive<u32> = 60..=604_800;

/// Returns the errors of the canary and halt settings.
pub(super) fn check(broadcast: &Broadcast) -> Vec<FieldError> {
    let mut faults = Vec::new();
    if let Some(Canary { percent, wait_seconds }) = broadcast.body.canary {
        if !(1..=50).contains(&percent) {
            faults.push(FieldError::new("canary.percent", format!("is {percent}; must be 1 to 50")));
        }
        if !WAIT.contains(&wait_seconds) {
            faults.push(FieldError::new("canary.waitSeconds", format!("is {wait_seconds}; must be {} to {}", WAIT.start(), WAIT.end())));
        }
    }
    let HaltOn { failure_percent, opt_out_percent, complaint_percent } = broadcast.body.halt_on.unwrap_or_default();
    for (name, percent) in
        [("failurePercent", failure_percent), ("optOutPercent", opt_out_percent), ("complaintPercent", complaint_percent)]
    {
        if let Some(percent) = percent.filter(|percent| !(*percent > 0.0 && *percent <= 100.0)) {
            faults.push(FieldError::new(format!("haltOn.{name}"), format!("is {percent}; must be above 0 and at most 100")));
        }
    }
    faults
}

/// Returns how many recipients the canary allows now, and until when, if its wait has begun; `None` if all.
pub(super) fn canary(broadcast: &Broadcast, now: Timestamp) -> Option<(i64, Option<Timestamp>)> {
    let canary = broadcast.body.canary?;
    let Some(sent_at) = broadcast.body.canary_sent_at else {
        return Some(((canary.first_of(broadcast.total) - broadcast.counts.handled()).max(0), None));
    };
    let until = canary.end(sent_at);
    (now < until).then_some((0, Some(until)))
}

/// Returns how many more messages may be in flight if a rate can halt the broadcast: as many as have a result, at least [`MAX_UNKNOWN`], less
/// those in flight. Acceptance by a provider counts as a result: receipts may never come.
pub(super) fn allowance(counts: &Counts) -> i64 {
    let (known, in_flight) = (counts.failed + counts.delivered + counts.sent, (counts.awaited - counts.sent).max(0));
    known.max(MAX_UNKNOWN) - in_flight
}

impl Broadcasts<'_> {
    /// Begins the wait of the canary.
    pub(super) async fn start_wait(&self, broadcast: &Broadcast) -> Result<()> {
        let started = self.change(broadcast.tenant, broadcast.id, BroadcastAction::StartWait, |broadcast, now| {
            broadcast.body.canary_sent_at.get_or_insert(now);
            Ok(())
        });
        ignore_lost_race(started.await.map(drop))
    }

    /// Pauses a broadcast that exceeds its halt limits; returns whether it did.
    pub(super) async fn halts(&self, broadcast: &Broadcast) -> Result<bool> {
        // Without pending recipients there is nothing to stop.
        let Some(limits) = broadcast.body.halt_on.filter(|_| broadcast.waiting() > 0) else { return Ok(false) };
        let now = self.results_so_far(broadcast).await?;
        let Some(reason) = exceeded(limits, now, broadcast.body.halt_base) else { return Ok(false) };
        tracing::warn!(broadcast.id = %broadcast.id, reason, "halted a broadcast");
        let halted = self.change(broadcast.tenant, broadcast.id, BroadcastAction::Pause, |broadcast, _| {
            broadcast.body.halted = Some(reason.clone());
            broadcast.body.halt_base = now;
            Ok(())
        });
        ignore_lost_race(halted.await.map(|broadcast| broadcast.status == Status::Paused))
    }

    async fn results_so_far(&self, broadcast: &Broadcast) -> Result<HaltBase> {
        let counts = broadcast.counts;
        let mut base = HaltBase { failed: counts.failed, reached: counts.delivered + counts.sent, ..HaltBase::default() };
        if let (Some(since), Some(HaltOn { opt_out_percent, complaint_percent, .. })) = (broadcast.body.started_at, broadcast.body.halt_on)
            && (opt_out_percent.is_some() || complaint_percent.is_some())
        {
            let mut tx = self.inner.store.read().await?;
            for (reason, count) in tx.suppressed_since(broadcast.tenant, broadcast.id, broadcast.sender, since).await? {
                match reason {
                    SuppressionReason::OptOut => base.opted_out += count as i64,
                    SuppressionReason::Complaint => base.complained += count as i64,
                    SuppressionReason::Bounce | SuppressionReason::Manual => {}
                }
            }
        }
        Ok(base)
    }
}

/// Returns which limit the results since `base` exceed, in words.
fn exceeded(limits: HaltOn, now: HaltBase, base: HaltBase) -> Option<String> {
    let (failed, reached) = (now.failed - base.failed, now.reached - base.reached);
    let known = failed + reached;
    if known < MIN_KNOWN {
        return None;
    }
    let rates = [
        (limits.failure_percent, failed, known, "failed"),
        (limits.opt_out_percent, now.opted_out - base.opted_out, reached, "opted out"),
        (limits.complaint_percent, now.complained - base.complained, reached, "complained"),
    ];
    rates.into_iter().find_map(|(limit, count, of, what)| {
        let (limit, percent) = (limit?, 100.0 * count as f64 / of.max(1) as f64);
        (percent > limit).then(|| format!("{count} of {of} recipients {what} ({percent:.1} %); the limit is {limit} %"))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    // holds: broadcasts.halt.careful
    #[test]
    fn as_many_may_be_in_flight_as_have_a_result() {
        assert_eq!(allowance(&Counts::default()), 200);
        assert_eq!(allowance(&Counts { queued: 150, awaited: 150, ..Counts::default() }), 50);
        assert_eq!(allowance(&Counts { sending: 200, awaited: 200, ..Counts::default() }), 0, "no result, no more");
        assert_eq!(allowance(&Counts { sending: 200, sent: 200, awaited: 200, taken: 200, ..Counts::default() }), 200);
        let half = Counts { delivered: 500, failed: 100, sending: 300, sent: 50, awaited: 300, ..Counts::default() };
        assert_eq!(allowance(&half), 650 - 250);
    }
}
