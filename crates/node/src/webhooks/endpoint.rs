//! The queue and state of one endpoint.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use nuncio_domain::{Timestamp, webhook::DeliveryStatus};
use nuncio_store::{Delivery, Position};
use uuid::Uuid;

/// The next event of a resource waits until the previous one has failed this many times.
pub(super) const HOLDING_TRIES: i16 = 3;
/// Maximum concurrent deliveries to one endpoint.
const WIDTH: usize = 32;
/// Consecutive tries without a sign of life after which an endpoint only gets single tries.
const PATIENCE: u32 = 5;
/// Maximum pause between two such tries.
const REST: Duration = Duration::from_secs(30);

/// A delivery ready to post.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) delivery: Delivery,
    /// The body, identical for each try.
    pub(super) body: Vec<u8>,
    /// The log entry that waits for it; `None` if the delivery itself is already stored.
    pub(super) position: Option<Position>,
    /// When it was read from the log, on the monotonic clock.
    pub(super) since: Duration,
}

/// Returns a delivery that is not tried any more, although it could be.
pub(super) fn abandoned(delivery: Delivery, reason: &str, now: Timestamp) -> Delivery {
    Delivery { status: DeliveryStatus::Dead, due_at: None, reason: Some(reason.to_owned()), updated_at: now, ..delivery }
}

#[derive(Debug, Default)]
pub(super) struct Endpoint {
    /// Waiting events by resource. An empty line has its only event in flight.
    lines: HashMap<Uuid, VecDeque<Task>>,
    /// Lines whose first event can be posted.
    ready: VecDeque<Uuid>,
    pub(super) under_way: usize,
    pub(super) waiting: usize,
    /// Bytes of all waiting bodies.
    pub(super) bytes: usize,
    failures: u32,
    resting_until: Option<Duration>,
    /// Whether stored deliveries may be waiting for it.
    pub(super) backlog: bool,
    /// When to look for them next.
    pub(super) next_poll_at: Duration,
    /// The endpoint is slow: events are stored first until none wait.
    pub(super) slow: bool,
}

impl Endpoint {
    /// Makes an endpoint that may have stored deliveries.
    pub(super) fn with_backlog() -> Self {
        Self { backlog: true, ..Self::default() }
    }

    /// Returns whether events from the log must be stored first because they cannot be posted now.
    pub(super) fn is_closed(&self) -> bool {
        self.slow || self.resting_until.is_some()
    }

    /// Requests an early look for deliveries, for a caller that waits for one.
    pub(super) fn look_again(&mut self) {
        self.backlog = true;
        self.next_poll_at = Duration::ZERO;
        if self.resting_until.is_some() {
            self.resting_until = Some(Duration::ZERO);
        }
    }

    /// Returns how many more deliveries fit now.
    pub(super) fn room(&self, now: Duration) -> usize {
        self.width(now).saturating_sub(self.under_way + self.waiting)
    }

    pub(super) fn has_line(&self, resource: Uuid) -> bool {
        self.lines.contains_key(&resource)
    }

    pub(super) fn push(&mut self, task: Task) {
        let resource = task.delivery.resource;
        self.waiting += 1;
        self.bytes += task.body.len();
        match self.lines.get_mut(&resource) {
            Some(line) => line.push_back(task),
            None => {
                self.lines.insert(resource, VecDeque::from([task]));
                self.ready.push_back(resource);
            }
        }
    }

    /// Returns whether a delivery can be posted now.
    pub(super) fn is_ready(&self, now: Duration) -> bool {
        !self.ready.is_empty() && self.under_way < self.width(now)
    }

    fn width(&self, now: Duration) -> usize {
        self.resting_until.map_or(WIDTH, |until| usize::from(now >= until))
    }

    /// Returns the next delivery to post.
    pub(super) fn pop(&mut self, now: Duration) -> Option<Task> {
        if !self.is_ready(now) {
            return None;
        }
        let resource = self.ready.pop_front()?;
        let task = self.lines.get_mut(&resource)?.pop_front()?;
        self.waiting -= 1;
        self.bytes -= task.body.len();
        self.under_way += 1;
        Some(task)
    }

    /// Records a success and releases the next event of the line.
    pub(super) fn succeeded(&mut self, resource: Uuid) {
        self.under_way -= 1;
        self.failures = 0;
        self.resting_until = None;
        self.advance(resource);
    }

    /// Records that a delivery was abandoned, which says nothing about the endpoint, and releases the next event of the line.
    pub(super) fn skipped(&mut self, resource: Uuid) {
        self.under_way -= 1;
        self.advance(resource);
    }

    /// Records a failure. Returns the tasks that must not, or cannot, be posted now; `holds` is whether the line waits for the failed
    /// event. An endpoint that is not `down` rejects this event and may accept the next.
    pub(super) fn failed(&mut self, resource: Uuid, holds: bool, down: bool, now: Duration) -> Vec<Task> {
        self.under_way -= 1;
        if down {
            self.failures = self.failures.saturating_add(1);
        } else {
            self.failures = 0;
            self.resting_until = None;
        }
        if self.failures >= PATIENCE {
            let doubled = Duration::from_secs(1) * 2_u32.saturating_pow((self.failures - PATIENCE).min(5));
            self.resting_until = Some(now + doubled.min(REST));
            let back = self.take_waiting();
            self.lines.remove(&resource);
            return back;
        }
        if holds {
            let line: Vec<_> = self.lines.remove(&resource).into_iter().flatten().collect();
            self.forget(&line);
            return line;
        }
        self.advance(resource);
        Vec::new()
    }

    fn advance(&mut self, resource: Uuid) {
        match self.lines.get(&resource) {
            Some(line) if line.is_empty() => drop(self.lines.remove(&resource)),
            Some(_) => self.ready.push_back(resource),
            None => {}
        }
    }

    /// Returns when the oldest waiting event was read from the log. Those that were stored before hold nothing back.
    pub(super) fn oldest(&self) -> Option<Duration> {
        self.lines.values().flatten().filter(|task| task.position.is_some()).map(|task| task.since).min()
    }

    /// Removes everything that is not in flight.
    pub(super) fn take_waiting(&mut self) -> Vec<Task> {
        let tasks: Vec<Task> = self.lines.values_mut().flat_map(std::mem::take).collect();
        // The remaining lines have deliveries in flight.
        for resource in self.ready.drain(..) {
            self.lines.remove(&resource);
        }
        self.forget(&tasks);
        tasks
    }

    fn forget(&mut self, tasks: &[Task]) {
        self.waiting -= tasks.len();
        self.bytes -= tasks.iter().map(|task| task.body.len()).sum::<usize>();
    }
}
