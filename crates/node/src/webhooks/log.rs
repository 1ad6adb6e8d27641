//! Reads an environment's log and tracks the position in it.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use nuncio_core::events::{self, Event};
use nuncio_core::webhooks::{INACTIVE, Targets, new_delivery};
use nuncio_dispatch::LogFlags;
use nuncio_domain::{DeliveryId, SenderId, TenantId, Timestamp, config::TenantConfig, event::ResourceKind};
use nuncio_store::{Delivery, DeliveryLog, LogEntry, LogReader, Position, Result, Tx};
use parking_lot::Mutex;
use uuid::Uuid;

use super::endpoint::{Endpoint, HOLDING_TRIES, Task, abandoned};
use super::post::target_of;
use crate::Shared;

/// Entries per read, while their events are small.
const ENTRIES: u32 = 256;
/// Entries per read after one above [`LARGE`]: each can contain the text of an email.
const FEW_ENTRIES: u32 = 64;
/// Bytes of events per read that count as small.
const LARGE: usize = 1 << 20;
/// Maximum number of events in memory before reading pauses.
const MEMORY: usize = 1_024;
/// Maximum bytes of events in memory before reading pauses.
const MEMORY_BYTES: usize = 16 << 20;
/// A log that was quiet for eight times this long is read only when it is known to have grown.
const QUIET: Duration = Duration::from_millis(500);
/// Pause after an error.
const AFTER_ERROR: Duration = Duration::from_millis(500);
/// Deliveries per write.
const WRITE: usize = 256;
/// How long webhooks and senders that do not change are cached. A secret that was replaced signs for this much longer at most.
const CONFIG_TTL: Duration = Duration::from_secs(60);
/// How long an event can wait in memory before it is stored as a pending delivery.
const MAX_IN_MEMORY: Duration = Duration::from_secs(1);
/// When a delivery in flight is retried if this node dies.
const IN_FLIGHT_RETRY: Duration = Duration::from_secs(60);
/// How often the position is stored when nothing else is.
const SAVE_POSITION: Duration = Duration::from_secs(1);
/// Minimum pause after a look for due deliveries that found none.
const DUE: Duration = Duration::from_millis(250);
/// Maximum such pause: other nodes change deliveries too, and clocks are set.
const DUE_LATER: Duration = Duration::from_secs(5);

/// Owner of a webhook: a sender, or the environment.
pub(super) type WebhookOwner = Option<SenderId>;

/// An environment and its webhooks.
#[derive(Debug)]
pub(super) struct Config {
    pub(super) tenant: TenantConfig,
    pub(super) targets: Targets,
}

/// The log of one environment.
#[derive(Debug)]
pub(crate) struct Log {
    pub(super) tenant: TenantId,
    pub(super) fence: i64,
    /// Up to here an earlier reader may have stored deliveries beyond its stored position.
    taken_over: Position,
    pub(super) inner: Mutex<Inner>,
    /// Changes since the last round.
    flags: Arc<LogFlags>,
}

/// What is between the log and the endpoints. An entry read goes into `open` with the number of its deliveries; each of them goes to an
/// endpoint's lines, to `flights` while it is posted, and to `done` with its result. When `done` is stored, the entry counts one down; the
/// stored position is that before the first entry left in `open`.
#[derive(Debug, Default)]
pub(super) struct Inner {
    /// Another node may read the log now: nothing more is posted.
    closed: bool,
    /// Up to here the log has been read.
    read: Position,
    /// Whether everything up to `taken_over` has been read.
    caught_up: bool,
    /// The newest configuration, and when it expires.
    config: Option<(Option<Duration>, Arc<Config>)>,
    /// Entries read, with the number of their deliveries not stored yet.
    open: BTreeMap<Position, usize>,
    /// Deliveries in flight.
    pub(super) flights: HashMap<DeliveryId, Flight>,
    /// Deliveries to store, with the entry that waits for each.
    done: HashMap<DeliveryId, (Delivery, Option<Position>)>,
    /// Resources with a pending delivery in `done`.
    pending: HashSet<(WebhookOwner, Uuid)>,
    /// Whether the last read was large.
    large: bool,
    /// When something was last read, and when to read next without a signal.
    read_at: Duration,
    read_next: Duration,
    /// When to look next for webhooks with stored deliveries.
    look_next: Duration,
    /// No work before this time, after an error.
    resting_until: Duration,
    /// The position to store.
    position: Option<Position>,
    position_saved_at: Duration,
    pub(super) endpoints: HashMap<WebhookOwner, Endpoint>,
    /// Changes of webhooks to store.
    pub(super) notes: HashMap<WebhookOwner, Note>,
}

/// Since when a webhook has only failed, and the reason to disable it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Note {
    /// When the webhook that failed was set up: one that was set up since is not to blame.
    pub(super) seen: Timestamp,
    pub(super) failing_since: Option<Timestamp>,
    pub(super) reason: Option<String>,
}

/// A delivery in flight.
#[derive(Debug)]
pub(super) struct Flight {
    pub(super) delivery: Delivery,
    /// The log entry that waits for it.
    pub(super) position: Option<Position>,
    pub(super) since: Duration,
}

impl Log {
    pub(super) fn new(
        tenant: TenantId,
        fence: i64,
        read: Position,
        end: Position,
        waiting: Vec<WebhookOwner>,
        flags: Arc<LogFlags>,
    ) -> Self {
        let with_backlog = |key| (key, Endpoint::with_backlog());
        let inner = Inner { read, endpoints: waiting.into_iter().map(with_backlog).collect(), ..Inner::default() };
        Self { tenant, fence, taken_over: end, inner: Mutex::new(inner), flags }
    }

    /// Notes that the log has grown, or that webhooks or senders have changed.
    pub(super) fn compare(&self, stored: &LogReader) {
        if self.config().is_some_and(|config| config.tenant.epoch != stored.epoch) {
            self.invalidate_config();
        }
        if stored.head > self.inner.lock().read.commit {
            self.flags.set_grown();
        }
    }

    /// Discards cached webhooks and senders.
    pub(super) fn invalidate_config(&self) {
        if let Some((until, _)) = &mut self.inner.lock().config {
            *until = None;
        }
    }

    /// Ends posting, before another node reads the log.
    pub(super) fn close(&self) {
        self.inner.lock().closed = true;
    }

    /// Returns whether nothing is in flight and everything is stored.
    pub(super) fn is_idle(&self) -> bool {
        let inner = self.inner.lock();
        inner.open.is_empty()
            && inner.done.is_empty()
            && inner.notes.is_empty()
            && inner.endpoints.values().all(|e| e.under_way + e.waiting == 0)
    }

    pub(super) fn config(&self) -> Option<Arc<Config>> {
        self.inner.lock().config.as_ref().map(|(_, config)| Arc::clone(config))
    }
}

impl Inner {
    /// Returns the endpoint to post to next: of those with a delivery that can be posted now, the one with the fewest in flight.
    pub(super) fn next_endpoint(&self, now: Duration) -> Option<WebhookOwner> {
        let ready = self.endpoints.iter().filter(|(_, endpoint)| !self.closed && endpoint.is_ready(now));
        ready.min_by_key(|(_, endpoint)| endpoint.under_way).map(|(key, _)| *key)
    }

    /// Queues a delivery to be stored, with the row that waits for it.
    pub(super) fn write(&mut self, delivery: Delivery, position: Option<Position>) {
        if delivery.due_at.is_some() {
            self.pending.insert((delivery.sender, delivery.resource));
            self.endpoints.entry(delivery.sender).or_default().backlog = true;
        }
        // The result replaces the in-flight note; the row may still wait for that note.
        let noted = self.done.remove(&delivery.id).and_then(|(_, position)| position);
        self.done.insert(delivery.id, (delivery, position.or(noted)));
    }

    /// Queues deliveries that cannot be posted now to be stored as pending.
    pub(super) fn put_off(&mut self, tasks: Vec<Task>, now: Timestamp) {
        for task in tasks {
            let delivery =
                Delivery { due_at: Some(task.delivery.due_at.map_or(now, |due| due.min(now))), updated_at: now, ..task.delivery };
            self.write(delivery, task.position);
        }
    }
}

impl Shared {
    /// Runs one round for one log; returns whether there was anything to do. Errors affect only this log.
    pub(super) async fn follow(self: &Arc<Self>, log: &Arc<Log>, look: bool) -> bool {
        let now = self.ids.clock.monotonic();
        if now < log.inner.lock().resting_until {
            return false;
        }
        self.try_follow(log, look).await.unwrap_or_else(|error| {
            tracing::warn!(tenant = log.tenant.0, %error, "failed to process webhooks of an environment; will retry");
            log.inner.lock().resting_until = now + AFTER_ERROR;
            false
        })
    }

    async fn try_follow(self: &Arc<Self>, log: &Arc<Log>, look: bool) -> Result<bool> {
        if log.flags.take_deliveries() {
            let mut inner = log.inner.lock();
            inner.look_next = Duration::ZERO;
            inner.endpoints.values_mut().for_each(Endpoint::look_again);
        }
        let Some(mut config) = self.config_of(log).await? else { return Ok(false) };
        if self.note_webhooks(log, &config).await? {
            let Some(newer) = self.config_of(log).await? else { return Ok(false) };
            config = newer;
        }
        let mut busy = self.save(log).await?;
        if !self.dispatch.is_stopping() {
            busy |= self.read_on(log, &config, look).await?;
            self.find_waiting(log).await?;
            busy |= self.take_due(log, &config).await?;
            self.start_posts(log);
        }
        Ok(busy)
    }

    async fn config_of(&self, log: &Log) -> Result<Option<Arc<Config>>> {
        let now = self.ids.clock.monotonic();
        if let Some((_, config)) = log.inner.lock().config.as_ref().filter(|(until, _)| until.is_some_and(|until| now < until)) {
            return Ok(Some(Arc::clone(config)));
        }
        self.read_config(&mut *self.store.read().await?, log).await
    }

    async fn read_config(&self, tx: &mut dyn Tx, log: &Log) -> Result<Option<Arc<Config>>> {
        let Some(tenant) = tx.load_tenant(log.tenant).await? else { return Ok(None) };
        let targets = Targets::read(tx, &self.sealer, &tenant, self.ids.clock.now()).await?;
        let config = Arc::new(Config { tenant, targets });
        log.inner.lock().config = Some((Some(self.ids.clock.monotonic() + CONFIG_TTL), Arc::clone(&config)));
        Ok(Some(config))
    }

    /// Reads the next rows and distributes their events. A quiet log is read less and less often, and at last only when it has grown,
    /// unless `look` is set.
    async fn read_on(&self, log: &Log, config: &Config, look: bool) -> Result<bool> {
        let now = self.ids.clock.monotonic();
        let (read, rows, caught_up) = {
            let inner = log.inner.lock();
            let is_full = |(count, bytes)| count >= MEMORY || bytes >= MEMORY_BYTES;
            let unsaved = (inner.done.len(), 0);
            if is_full(inner.endpoints.values().fold(unsaved, |(count, bytes), e| (count + e.waiting, bytes + e.bytes))) {
                return Ok(false);
            }
            let told = log.flags.take_grown();
            if !told && !look && now < inner.read_next {
                return Ok(false);
            }
            (inner.read, if inner.large { FEW_ENTRIES } else { ENTRIES }, inner.caught_up)
        };
        let mut tx = self.store.read().await?;
        let entries = tx.read_log(log.tenant, read, rows).await?;
        if entries.is_empty() {
            let mut inner = log.inner.lock();
            inner.caught_up = true;
            let pause = now.saturating_sub(inner.read_at) / 8;
            inner.read_next = if pause < QUIET { now + pause } else { Duration::MAX };
            return Ok(false);
        }
        // After the entries, so that a webhook that was set up before an event gets it.
        let epoch = tx.epochs(&[log.tenant]).await?.pop();
        let newer = if epoch == Some((log.tenant, config.tenant.epoch)) { None } else { self.read_config(&mut *tx, log).await? };
        let config = newer.as_deref().unwrap_or(config);
        let events = events::build_events(&mut *tx, &config.tenant, &entries, |event_type| config.targets.want(event_type)).await?;
        let created_at = self.ids.clock.now();
        let with_delivery = |event: Event| {
            let target = config.targets.of(&event)?;
            Some((new_delivery(&event, target.sender, &target.url, created_at), event))
        };
        let (tests, mut meant): (Vec<(Delivery, Event)>, Vec<_>) =
            events.into_iter().filter_map(with_delivery).partition(|(delivery, _)| delivery.kind == ResourceKind::Webhook);
        let known: HashSet<DeliveryId> = if caught_up {
            HashSet::new()
        } else {
            let ids: Vec<DeliveryId> = meant.iter().map(|(delivery, _)| delivery.id).collect();
            tx.known_deliveries(log.tenant, &ids).await?.into_iter().collect()
        };
        let with_backlog: Vec<WebhookOwner> = log.inner.lock().endpoints.iter().filter(|(_, e)| e.backlog).map(|(key, _)| *key).collect();
        let mut behind: HashSet<(WebhookOwner, Uuid)> = HashSet::new();
        for key in with_backlog {
            let resources: Vec<Uuid> = meant.iter().filter(|(d, _)| d.sender == key).map(|(d, _)| d.resource).collect();
            behind.extend(tx.waiting_resources(log.tenant, key, &resources).await?.into_iter().map(|resource| (key, resource)));
        }
        drop(tx);
        meant.retain(|(delivery, _)| !known.contains(&delivery.id));
        self.hand_out(log, &entries, meant, &behind);
        // Their deliveries were stored with them.
        for (test, _) in tests {
            log.inner.lock().endpoints.entry(test.sender).or_default().look_again();
        }
        Ok(true)
    }

    fn hand_out(&self, log: &Log, entries: &[LogEntry], meant: Vec<(Delivery, Event)>, behind: &HashSet<(WebhookOwner, Uuid)>) {
        let (now, since) = (self.ids.clock.now(), self.ids.clock.monotonic());
        let mut inner = log.inner.lock();
        let mut bytes = 0;
        inner.open.extend(entries.iter().map(|entry| (entry.position, 0)));
        for (delivery, event) in meant {
            *inner.open.entry(event.position).or_default() += 1;
            let line = (delivery.sender, delivery.resource);
            let must_wait = behind.contains(&line) || inner.pending.contains(&line);
            let endpoint = inner.endpoints.entry(delivery.sender).or_default();
            let body = event.body();
            bytes += body.len();
            let task = Task { delivery, body, position: Some(event.position), since };
            if must_wait || endpoint.is_closed() {
                inner.put_off(vec![task], now);
            } else {
                endpoint.push(task);
            }
        }
        if let Some(last) = entries.last() {
            inner.read = last.position;
            inner.caught_up |= log.taken_over <= last.position;
            inner.large = bytes > LARGE;
            inner.read_at = since;
            inner.read_next = since;
        }
    }

    /// Finds the webhooks that stored deliveries wait for: a replay, on this node or on another, may be of one that got no event since
    /// this node began to read the log, or that had nothing waiting.
    async fn find_waiting(&self, log: &Log) -> Result<()> {
        let now = self.ids.clock.monotonic();
        if now < log.inner.lock().look_next {
            return Ok(());
        }
        let waiting = self.store.read().await?.waiting_webhooks(log.tenant).await?;
        let mut inner = log.inner.lock();
        inner.look_next = now + DUE_LATER;
        waiting.into_iter().for_each(|key| inner.endpoints.entry(key).or_default().backlog = true);
        Ok(())
    }

    /// Loads stored deliveries that are due. Not before the log is read as far as the last reader had read it: it can contain an earlier
    /// event of the same resource whose delivery that reader had not stored.
    async fn take_due(&self, log: &Log, config: &Config) -> Result<bool> {
        let now = self.ids.clock.monotonic();
        let (mut open, waiting): (Vec<(WebhookOwner, usize, usize)>, usize) = {
            let inner = log.inner.lock();
            if !inner.caught_up {
                return Ok(false);
            }
            let asked = inner.endpoints.iter().filter(|(_, e)| e.backlog && e.next_poll_at <= now && e.room(now) > 0);
            let waiting = inner.endpoints.values().map(|e| e.waiting).sum();
            (asked.map(|(key, e)| (*key, e.room(now), e.under_way + e.waiting)).collect(), waiting)
        };
        // No more than there are permits for, but at least one of each idle endpoint, which would never have its turn.
        let mut left = self.webhooks.permits.left(log.tenant).saturating_sub(waiting);
        let mut any = false;
        open.sort_unstable_by_key(|(_, _, busy)| *busy);
        for (key, room, busy) in open {
            let room = room.min(left.max(usize::from(busy == 0)));
            if room > 0 {
                let taken = self.take_due_of(log, config, key, room, busy).await?;
                left = left.saturating_sub(taken);
                any |= taken > 0;
            }
        }
        Ok(any)
    }

    /// Loads at most `room` deliveries to one webhook; returns how many.
    async fn take_due_of(&self, log: &Log, config: &Config, key: WebhookOwner, room: usize, busy: usize) -> Result<usize> {
        let (now, since) = (self.ids.clock.now(), self.ids.clock.monotonic());
        let mut tx = self.store.read().await?;
        let due = tx.due_deliveries(log.tenant, key, now, HOLDING_TRIES, (room + busy) as u32).await?;
        let any_due = !due.is_empty();
        let fresh: Vec<Delivery> = {
            let inner = log.inner.lock();
            let endpoint = inner.endpoints.get(&key);
            // An earlier delivery of the resource may not be stored yet.
            let is_fresh = |d: &Delivery| {
                let is_pending = inner.pending.contains(&(key, d.resource)) || inner.done.contains_key(&d.id);
                !is_pending && !endpoint.is_some_and(|e| e.has_line(d.resource))
            };
            due.into_iter().filter(is_fresh).take(room).collect()
        };
        if fresh.is_empty() {
            // If some are due, they wait for what is in memory. If none is, each pending one is due later or waits for one that is.
            let next = if any_due { Some(now) } else { tx.next_delivery_at(log.tenant, key, now).await? };
            let mut inner = log.inner.lock();
            let nothing_pending = !inner.pending.iter().any(|(k, _)| *k == key);
            if let Some(endpoint) = inner.endpoints.get_mut(&key) {
                endpoint.next_poll_at = since + next.map_or(DUE, |at| at.since(now).clamp(DUE, DUE_LATER));
                endpoint.slow &= endpoint.under_way > 0;
                endpoint.backlog = next.is_some() || !nothing_pending;
            }
            return Ok(0);
        }
        let taken = fresh.len();
        for delivery in fresh {
            let event = match tx.find_log_entry(log.tenant, delivery.kind, delivery.resource, delivery.sequence).await? {
                Some(entry) => events::build_events(&mut *tx, &config.tenant, &[entry], |event_type| event_type == delivery.event_type)
                    .await?
                    .into_iter()
                    .find(|e| e.view.id == delivery.event),
                None => None,
            };
            let mut inner = log.inner.lock();
            match event {
                Some(event) => {
                    let body = event.body();
                    inner.endpoints.entry(key).or_default().push(Task { delivery, body, position: None, since });
                }
                None => inner.write(abandoned(delivery, "the event, or its resource, no longer exists", now), None),
            }
        }
        Ok(taken)
    }

    /// Stores deliveries and the position; returns whether anything was stored.
    pub(super) async fn save(&self, log: &Log) -> Result<bool> {
        let (now, monotonic) = (self.ids.clock.now(), self.ids.clock.monotonic());
        let config = log.config();
        let (rows, position, pending) = {
            let mut inner = log.inner.lock();
            if let Some(config) = &config {
                abandon_inactive(&mut inner, &config.targets, now);
            }
            put_off_overdue(&mut inner, now, monotonic);
            let ids: Vec<DeliveryId> = inner.done.keys().take(WRITE).copied().collect();
            let rows: Vec<(Delivery, Option<Position>)> = ids.iter().filter_map(|id| inner.done.remove(id)).collect();
            for position in rows.iter().filter_map(|(_, position)| *position) {
                inner.open.entry(position).and_modify(|count| *count = count.saturating_sub(1));
            }
            while let Some(first) = inner.open.first_entry().filter(|first| *first.get() == 0) {
                inner.position = Some(*first.key());
                inner.open.pop_first();
            }
            let too_soon = rows.is_empty() && monotonic.saturating_sub(inner.position_saved_at) < SAVE_POSITION;
            if inner.position.is_none() && rows.is_empty() || too_soon {
                return Ok(false);
            }
            (rows, inner.position.take(), std::mem::take(&mut inner.pending))
        };
        let deliveries = rows.iter().map(|(delivery, _)| delivery.clone()).collect();
        let logged = self.store.log_deliveries(DeliveryLog { tenant: log.tenant, deliveries, read: position, fence: log.fence }).await;
        let mut inner = log.inner.lock();
        match logged {
            Ok(holds) => {
                inner.position_saved_at = monotonic;
                // Deliveries not stored yet keep their hold.
                let left: Vec<_> = inner.done.values().filter(|(d, _)| d.due_at.is_some()).map(|(d, _)| (d.sender, d.resource)).collect();
                inner.pending.extend(left);
                for (delivery, position) in &rows {
                    let pause = match (delivery.due_at, position) {
                        // It was stored before; others may have waited for it.
                        (_, None) => Duration::ZERO,
                        (Some(at), Some(_)) => at.since(now),
                        (None, Some(_)) => continue,
                    };
                    let endpoint = inner.endpoints.entry(delivery.sender).or_default();
                    endpoint.next_poll_at = endpoint.next_poll_at.min(monotonic + pause);
                }
                drop(inner);
                if !holds {
                    tracing::warn!(tenant = log.tenant.0, "another node took over the event log; stopped reading it");
                    self.stop_reading(log.tenant);
                }
                Ok(!rows.is_empty())
            }
            Err(error) => {
                inner.pending.extend(pending);
                inner.position = inner.position.max(position);
                for (delivery, position) in rows {
                    if let Some(position) = position {
                        *inner.open.entry(position).or_default() += 1;
                    }
                    // A newer result arrived in the meantime; the row waits for that one.
                    inner.done.entry(delivery.id).and_modify(|(_, at)| *at = at.or(position)).or_insert((delivery, position));
                }
                // The position must not pass a reopened row.
                if let Some(first) = inner.open.first_key_value().map(|(first, _)| *first) {
                    inner.position = inner.position.filter(|position| *position < first);
                }
                Err(error)
            }
        }
    }
}

/// Abandons deliveries to webhooks that were deleted or disabled, or that no longer get them.
fn abandon_inactive(inner: &mut Inner, targets: &Targets, now: Timestamp) {
    let is_active = |key: WebhookOwner| targets.find(key).is_some();
    let waiting = |(key, endpoint): (&WebhookOwner, &mut Endpoint)| if is_active(*key) { Vec::new() } else { endpoint.take_waiting() };
    let tasks: Vec<Task> = inner.endpoints.iter_mut().flat_map(waiting).collect();
    for Task { delivery, position, .. } in tasks {
        inner.write(abandoned(delivery, INACTIVE, now), position);
    }
    for (delivery, _) in inner.done.values_mut().filter(|(delivery, _)| delivery.due_at.is_some()) {
        if let Err(reason) = target_of(targets, delivery) {
            *delivery = abandoned(delivery.clone(), reason, now);
        }
    }
}

/// Queues events that waited too long to be stored as pending deliveries, so that the position can advance.
fn put_off_overdue(inner: &mut Inner, now: Timestamp, monotonic: Duration) {
    let overdue = |endpoint: &Endpoint| endpoint.oldest().is_some_and(|since| monotonic.saturating_sub(since) >= MAX_IN_MEMORY);
    let slow: Vec<WebhookOwner> = inner.endpoints.iter().filter(|(_, e)| overdue(e)).map(|(key, _)| *key).collect();
    for key in slow {
        let Some(endpoint) = inner.endpoints.get_mut(&key) else { continue };
        endpoint.slow = true;
        let waiting = endpoint.take_waiting();
        inner.put_off(waiting, now);
    }
    let late = |flight: &&mut Flight| flight.position.is_some() && monotonic.saturating_sub(flight.since) >= MAX_IN_MEMORY;
    let noted: Vec<_> = inner.flights.values_mut().filter(late).map(|f| (f.delivery.clone(), f.position.take())).collect();
    for (delivery, position) in noted {
        inner.write(Delivery { due_at: Some(now.plus(IN_FLIGHT_RETRY)), updated_at: now, ..delivery }, position);
    }
}
