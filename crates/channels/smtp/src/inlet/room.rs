//! Memory for the emails of all sessions of a listener.

use std::sync::Arc;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Octets per permit.
const UNIT: usize = 1024;
/// Smallest growth of a buffer, in octets.
const STEP: usize = 16 * 1024;

/// What the sessions of a listener share.
#[derive(Clone)]
pub(super) struct Room {
    /// Memory that is left, in KiB.
    memory: Arc<Semaphore>,
    /// Parsing takes several times the size of an email, so few are parsed at once.
    pub(super) parsers: Arc<Semaphore>,
}

impl Room {
    /// Has `memory` octets for emails, and parses up to `parsers` of them at once.
    pub(super) fn new(memory: usize, parsers: usize) -> Self {
        Self { memory: Arc::new(Semaphore::new(memory.div_ceil(UNIT))), parsers: Arc::new(Semaphore::new(parsers)) }
    }

    /// An empty buffer for an email of up to `most` octets.
    pub(super) fn buffer(&self, most: usize) -> Buffer {
        Buffer { bytes: Vec::new(), most, memory: Arc::clone(&self.memory), held: None }
    }
}

/// An email as far as it has arrived. The memory is given back when the second half of [`Buffer::split`] is dropped.
#[derive(Debug)]
pub(super) struct Buffer {
    bytes: Vec<u8>,
    most: usize,
    memory: Arc<Semaphore>,
    held: Option<OwnedSemaphorePermit>,
}

impl Buffer {
    /// Appends a line with CR and LF; `false` if the memory is used up. The caller enforces the size limit.
    pub(super) fn push(&mut self, line: &[u8]) -> bool {
        let needed = self.bytes.len() + line.len() + 2;
        if needed > self.bytes.capacity() && !self.grow(needed) {
            return false;
        }
        self.bytes.extend_from_slice(line);
        self.bytes.extend_from_slice(b"\r\n");
        true
    }

    /// Takes the memory before it is used. What a vector reserves by itself would not be counted.
    fn grow(&mut self, needed: usize) -> bool {
        let old = self.bytes.capacity();
        let capacity = (old + STEP.max(old / 2)).min(self.most).max(needed);
        let held = self.held.as_ref().map_or(0, OwnedSemaphorePermit::num_permits);
        let Ok(more) = u32::try_from(capacity.div_ceil(UNIT) - held) else { return false };
        let Ok(more) = Arc::clone(&self.memory).try_acquire_many_owned(more) else { return false };
        match &mut self.held {
            Some(held) => held.merge(more),
            None => self.held = Some(more),
        }
        self.bytes.reserve_exact(capacity - self.bytes.len());
        true
    }

    /// The email, and the claim to its memory.
    pub(super) fn split(self) -> (Vec<u8>, Option<OwnedSemaphorePermit>) {
        (self.bytes, self.held)
    }
}
