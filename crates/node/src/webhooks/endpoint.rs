//! What waits for one endpoint, and how it is doing.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use nuncio_store::{Delivery, Position};
use uuid::Uuid;

/// Deliveries to one endpoint at once.
const WIDTH: usize = 32;
/// Failures in a row after which an endpoint is left in peace, but for one try now and then.
const PATIENCE: u32 = 5;
/// The longest rest between two such tries.
const REST: Duration = Duration::from_secs(30);

/// A delivery that is to be made now.
#[derive(Debug)]
pub(super) struct Task {
    pub(super) delivery: Delivery,
    /// The body, the same at each try.
    pub(super) body: Vec<u8>,
    /// The row of the log that waits for it; none when the delivery itself is written already.
    pub(super) position: Option<Position>,
    /// When it was taken from the log, on the monotonic clock.
    pub(super) since: Duration,
}

/// One endpoint.
#[derive(Debug, Default)]
pub(super) struct Endpoint {
    /// Events by resource. A line that is there and empty has its only event under way.
    lines: HashMap<Uuid, VecDeque<Task>>,
    /// Lines whose first event may go.
    ready: VecDeque<Uuid>,
    pub(super) under_way: usize,
    pub(super) waiting: usize,
    /// What the bodies of those that wait take, in bytes.
    pub(super) bytes: usize,
    failures: u32,
    resting_until: Option<Duration>,
    /// Whether written deliveries may wait for it.
    pub(super) backlog: bool,
    /// When to look for them next.
    pub(super) look_at: Duration,
    /// It answers slowly: everything is written first, until nothing waits any more.
    pub(super) slow: bool,
}

impl Endpoint {
    /// One for which written deliveries may wait.
    pub(super) fn with_backlog() -> Self {
        Self { backlog: true, ..Self::default() }
    }

    /// Whether what comes from the log must be written first, since it cannot go now.
    pub(super) fn is_closed(&self) -> bool {
        self.slow || self.resting_until.is_some()
    }

    /// Something may be due that was not, and somebody wants to see it tried.
    pub(super) fn look_again(&mut self) {
        self.backlog = true;
        self.look_at = Duration::ZERO;
        if self.resting_until.is_some() {
            self.resting_until = Some(Duration::ZERO);
        }
    }

    /// How many more deliveries it takes now.
    pub(super) fn room(&self, now: Duration) -> usize {
        let width = match self.resting_until {
            None => WIDTH,
            Some(until) => usize::from(now >= until),
        };
        width.saturating_sub(self.under_way + self.waiting)
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

    /// The next delivery to make.
    pub(super) fn pop(&mut self, now: Duration) -> Option<Task> {
        let width = if self.resting_until.is_some_and(|until| now >= until) { 1 } else { WIDTH };
        if self.under_way >= width || self.resting_until.is_some_and(|until| now < until) {
            return None;
        }
        let resource = self.ready.pop_front()?;
        let task = self.lines.get_mut(&resource)?.pop_front()?;
        self.waiting -= 1;
        self.bytes -= task.body.len();
        self.under_way += 1;
        Some(task)
    }

    /// A delivery arrived: the next of its line may go.
    pub(super) fn succeeded(&mut self, resource: Uuid) {
        self.under_way -= 1;
        self.failures = 0;
        self.resting_until = None;
        self.advance(resource);
    }

    /// A delivery failed. Answers what must not go before it, or cannot go now; `holds` says whether its line waits for it.
    pub(super) fn failed(&mut self, resource: Uuid, holds: bool, now: Duration) -> Vec<Task> {
        self.under_way -= 1;
        self.failures = self.failures.saturating_add(1);
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

    /// When the one that waits longest was taken from the log.
    pub(super) fn oldest(&self) -> Option<Duration> {
        self.lines.values().flatten().map(|task| task.since).min()
    }

    /// Takes back everything that is not under way.
    pub(super) fn take_waiting(&mut self) -> Vec<Task> {
        let tasks: Vec<Task> = self.lines.values_mut().flat_map(std::mem::take).collect();
        // What is left are the lines of deliveries under way.
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
