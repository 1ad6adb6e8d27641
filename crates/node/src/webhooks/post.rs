//! Posts deliveries and evaluates the responses.

use std::sync::Arc;
use std::time::Duration;

use nuncio_core::webhooks::{INACTIVE, NOT_SELECTED, Target, Targets, sign};
use nuncio_domain::{Entropy, EventId, Timestamp, webhook::DeliveryStatus};
use nuncio_net::header::{CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue};
use nuncio_net::{FetchLimits, Response};
use nuncio_store::{Delivery, DeliveryTry, Result};

use super::endpoint::{HOLDING_TRIES, abandoned};
use super::log::{Config, Flight, Log, Note, WebhookOwner};
use crate::Shared;

/// Timeout of an endpoint.
const TIMEOUT: Duration = Duration::from_secs(15);
/// How much of a response is stored.
const ANSWER: u64 = 4 * 1_024;
/// Timeout of a response's body. The status decides; the next event of the resource does not wait longer for what is only shown.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(1);
/// How many tries are stored.
const TRIES: usize = 20;
/// Delays between tries; after the last one a delivery is abandoned.
const AGAIN: [Duration; 8] = [
    Duration::from_secs(5),
    Duration::from_secs(60),
    Duration::from_secs(5 * 60),
    Duration::from_secs(30 * 60),
    Duration::from_secs(2 * 3_600),
    Duration::from_secs(6 * 3_600),
    Duration::from_secs(12 * 3_600),
    Duration::from_secs(24 * 3_600),
];
/// A webhook that has only failed for this long is disabled.
const GIVE_UP: Duration = Duration::from_secs(5 * 86_400);

impl Shared {
    /// Posts the deliveries that are ready, as far as there are permits, unless the node is stopping or may have lost the log.
    pub(super) fn start_posts(self: &Arc<Self>, log: &Arc<Log>) {
        if self.dispatch.accepting().is_none() {
            return;
        }
        let now = self.ids.clock.monotonic();
        let mut inner = log.inner.lock();
        while let Some(key) = inner.next_endpoint(now) {
            let Some(permit) = self.webhooks.permits.take(log.tenant) else { return };
            let Some(task) = inner.endpoints.get_mut(&key).and_then(|endpoint| endpoint.pop(now)) else { return };
            let flight = Flight { delivery: task.delivery.clone(), position: task.position, since: task.since };
            inner.flights.insert(task.delivery.id, flight);
            let (shared, log, working) = (Arc::clone(self), Arc::clone(log), self.tracker.begin());
            self.runtime.spawn(async move {
                let _working = working;
                shared.post(&log, task.delivery, task.body).await;
                drop(permit);
                shared.start_waiting(&log);
            });
        }
    }

    /// Posts what waited for the permit that a post of `log` released: environments that wait for one go first.
    fn start_waiting(self: &Arc<Self>, log: &Arc<Log>) {
        while let Some(tenant) = self.webhooks.permits.next_waiting() {
            let other = self.webhooks.logs.lock().get(&tenant).cloned();
            if let Some(other) = other {
                self.start_posts(&other);
            }
        }
        self.start_posts(log);
    }

    async fn post(self: &Arc<Self>, log: &Arc<Log>, mut delivery: Delivery, body: Vec<u8>) {
        let config = log.config();
        let target = match config.as_ref().map_or(Err(INACTIVE), |config| target_of(&config.targets, &delivery)) {
            Ok(target) => target,
            Err(reason) => {
                self.record_outcome(log, abandoned(delivery, reason, self.ids.clock.now()), None, None);
                return;
            }
        };
        let at = self.ids.clock.now();
        delivery.url.clone_from(&target.url);
        let began = self.ids.clock.monotonic();
        let answer = self.request(target, delivery.event, at, body).await;
        let ms = self.ids.clock.monotonic().saturating_sub(began).as_millis() as u64;
        let tried = match &answer {
            Ok(answer) => DeliveryTry {
                at,
                status: Some(answer.status.as_u16()),
                ms,
                error: None,
                body: Some(shown(&answer.body)).filter(|text| !text.is_empty()),
            },
            Err(error) => DeliveryTry { at, status: None, ms, error: Some(error.clone()), body: None },
        };
        let status = tried.status;
        metrics::counter!("nuncio_webhook_attempts_total", "outcome" => if is_success(status) { "delivered" } else { "failed" })
            .increment(1);
        let delivery = evaluated(delivery, tried, self.ids.clock.now(), &*self.ids.entropy);
        self.record_outcome(log, delivery, Some(target), status);
    }

    /// Posts a signed event.
    async fn request(&self, target: &Target, event: EventId, at: Timestamp, body: Vec<u8>) -> std::result::Result<Response, String> {
        if target.secrets.is_empty() {
            return Err("not posted: the signing secret cannot be decrypted; rotate it".to_owned());
        }
        let signature = sign(&target.secrets, event, at, &body);
        let mut headers = HeaderMap::new();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        for (name, value) in
            [("webhook-id", signature.id), ("webhook-timestamp", signature.timestamp), ("webhook-signature", signature.signature)]
        {
            if let Ok(value) = HeaderValue::try_from(value) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        let limits = FetchLimits { max_bytes: ANSWER, timeout: TIMEOUT };
        self.net.notify(&target.url, headers, body, limits, ANSWER_TIMEOUT).await.map_err(|error| error.to_string())
    }

    fn record_outcome(&self, log: &Log, delivery: Delivery, target: Option<&Target>, status: Option<u16>) {
        let (now, monotonic) = (self.ids.clock.now(), self.ids.clock.monotonic());
        let mut inner = log.inner.lock();
        let position = inner.flights.remove(&delivery.id).and_then(|flight| flight.position);
        let (key, resource) = (delivery.sender, delivery.resource);
        let holds = delivery.status == DeliveryStatus::Failed && delivery.tries < HOLDING_TRIES;
        inner.write(delivery, position);
        let endpoint = inner.endpoints.entry(key).or_default();
        match target {
            None => endpoint.skipped(resource),
            Some(_) if is_success(status) => endpoint.succeeded(resource),
            Some(_) => {
                let back = endpoint.failed(resource, holds, is_down(status), monotonic);
                inner.put_off(back, now);
            }
        }
        if let Some(note) = target.and_then(|target| note(target, inner.notes.get(&key), status, now)) {
            inner.notes.insert(key, note);
        }
        self.dispatch.log_signals().wake();
    }

    /// Stores since when webhooks fail, and disables those that failed for too long or are gone. Returns whether anything was stored.
    pub(super) async fn note_webhooks(&self, log: &Log, config: &Config) -> Result<bool> {
        let notes = log.inner.lock().notes.clone();
        for (key, note) in &notes {
            if let Some(target) = config.targets.find(*key) {
                self.note_webhook(log, *key, &target.url, note).await?;
            }
            let mut inner = log.inner.lock();
            if inner.notes.get(key) == Some(note) {
                inner.notes.remove(key);
            }
        }
        Ok(!notes.is_empty())
    }

    async fn note_webhook(&self, log: &Log, key: WebhookOwner, url: &str, note: &Note) -> Result<()> {
        let Note { seen, failing_since, reason } = note;
        let mut tx = self.store.begin().await?;
        if reason.is_some() {
            // Takes turns with all others who change webhooks: one of them may be enabling another.
            tx.raise_epoch(log.tenant).await?;
        }
        let noted = tx.mark_webhook(log.tenant, key, *seen, *failing_since, reason.as_deref()).await?;
        if noted && let Some(reason) = reason {
            // The path of the URL can be secret.
            let host = url::Url::parse(url).ok().and_then(|url| url.host_str().map(str::to_owned));
            tracing::warn!(tenant = log.tenant.0, host, reason, "webhook disabled");
            nuncio_core::webhooks::update_log_reader(&mut *tx, log.tenant, self.ids.clock.now()).await?;
        }
        tx.commit().await?;
        log.invalidate_config();
        if noted && reason.is_some() {
            nuncio_core::webhooks::drop_waiting(&*self.store, log.tenant, key, self.ids.clock.now()).await?;
        }
        Ok(())
    }
}

/// Returns what a response says about its webhook, if that is not known yet.
fn note(target: &Target, noted: Option<&Note>, status: Option<u16>, now: Timestamp) -> Option<Note> {
    let seen = target.updated_at;
    if noted.is_some_and(|note| note.seen > seen) {
        return None;
    }
    let known = noted.filter(|note| note.seen == seen).map_or(target.failing_since, |note| note.failing_since);
    if is_success(status) {
        return known.map(|_| Note { seen, failing_since: None, reason: None });
    }
    let since = known.unwrap_or(now);
    let gone = (status == Some(410)).then_some("the endpoint returned 410 Gone");
    let reason = gone.or_else(|| (now.since(since) >= GIVE_UP).then_some("all deliveries failed for five days")).map(str::to_owned);
    (known.is_none() || reason.is_some()).then_some(Note { seen, failing_since: Some(since), reason })
}

/// Returns a response as stored: text of at most [`ANSWER`] bytes.
fn shown(answer: &[u8]) -> String {
    let mut text = String::from_utf8_lossy(answer).replace('\0', "\u{fffd}");
    text.truncate(text.floor_char_boundary(ANSWER as usize));
    text
}

/// Returns the webhook that a delivery is posted to, or why it is abandoned.
pub(super) fn target_of<'a>(targets: &'a Targets, delivery: &Delivery) -> std::result::Result<&'a Target, &'static str> {
    let target = targets.find(delivery.sender).filter(|target| !is_of_earlier_webhook(delivery, target)).ok_or(INACTIVE)?;
    // Who replays a delivery wants it, whatever the webhook selects now.
    if target.wants(delivery.event_type) || delivery.replays > 0 { Ok(target) } else { Err(NOT_SELECTED) }
}

/// Returns whether a delivery that is retried was first tried before its webhook existed: that was another one, deleted meanwhile.
fn is_of_earlier_webhook(delivery: &Delivery, target: &Target) -> bool {
    let first = delivery.attempts.len().checked_sub(usize::from(delivery.tries.unsigned_abs()));
    first.and_then(|first| delivery.attempts.get(first)).is_some_and(|tried| tried.at < target.created_at)
}

/// Returns whether an endpoint seems to be down or overloaded. Any other response shows that it works, even if it rejects the event.
fn is_down(status: Option<u16>) -> bool {
    status.is_none_or(|status| status == 429 || status >= 500)
}

fn is_success(status: Option<u16>) -> bool {
    status.is_some_and(|status| (200..300).contains(&status))
}

/// Returns a delivery updated by the result of a try.
fn evaluated(mut delivery: Delivery, tried: DeliveryTry, now: Timestamp, entropy: &dyn Entropy) -> Delivery {
    let arrived = is_success(tried.status);
    delivery.attempts.push(tried);
    let surplus = delivery.attempts.len().saturating_sub(TRIES);
    delivery.attempts.drain(..surplus);
    delivery.updated_at = now;
    if arrived {
        return Delivery { status: DeliveryStatus::Delivered, due_at: None, ..delivery };
    }
    delivery.tries = delivery.tries.saturating_add(1);
    match AGAIN.get(usize::from(delivery.tries.unsigned_abs()) - 1) {
        Some(pause) => {
            // Up to 10% later, so that deliveries that failed together are not retried together.
            let jitter = Duration::from_millis(entropy.below(pause.as_millis() as u64 / 10 + 1));
            Delivery { status: DeliveryStatus::Failed, due_at: Some(now.plus(*pause + jitter)), ..delivery }
        }
        None => Delivery { status: DeliveryStatus::Dead, due_at: None, ..delivery },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_answer_that_is_no_text_takes_no_more_room() {
        assert_eq!(shown(b"a\0b\xff"), "a\u{fffd}b\u{fffd}");
        for answer in [vec![0xff; 4_096], vec![0; 4_096], vec![b'x'; 4_096]] {
            assert!((4_094..=4_096).contains(&shown(&answer).len()));
        }
    }
}
