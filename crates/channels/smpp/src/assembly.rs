//! Messages from outside that come in several parts.

use std::collections::HashMap;
use std::time::Duration;

use tokio::sync::oneshot;

use crate::parts;
use crate::wire::Address;

/// Messages that may be incomplete at once; parts of more are put off.
const MOST: usize = 10_000;
/// Stands for what did not come.
const GAP: &str = "[…]";

/// What the parts of a message have in common.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Key {
    /// From.
    pub(crate) source: Address,
    /// To.
    pub(crate) destination: String,
    /// The phone's number for the message.
    pub(crate) reference: u16,
    /// How many parts it has.
    pub(crate) total: u8,
}

/// One part.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Piece {
    /// Its alphabet.
    pub(crate) coding: u8,
    /// Its user data without header.
    pub(crate) octets: Vec<u8>,
}

/// A message of which some parts are here.
#[derive(Debug)]
pub(crate) struct Assembly {
    id: String,
    pieces: Vec<Option<Piece>>,
    since: Duration,
    recorded: bool,
    /// Who waits for the rest.
    waiting: Vec<oneshot::Sender<bool>>,
}

impl Assembly {
    /// The id that it has from its first part on.
    pub(crate) fn id(&self) -> &str {
        &self.id
    }

    fn is_complete(&self) -> bool {
        self.pieces.iter().all(Option::is_some)
    }

    /// What it says. Parts of one alphabet are joined before they are read: some phones cut a character in two.
    pub(crate) fn text(&self) -> String {
        let mut text = String::new();
        for run in self.pieces.chunk_by(|a, b| matches!((a, b), (Some(a), Some(b)) if a.coding == b.coding) || (a.is_none() && b.is_none()))
        {
            match &run[0] {
                Some(first) => {
                    let octets: Vec<u8> = run.iter().flatten().flat_map(|piece| piece.octets.iter().copied()).collect();
                    text.push_str(&parts::read(first.coding, &octets));
                }
                None => text.push_str(GAP),
            }
        }
        text
    }
}

/// What became of a part.
#[derive(Debug)]
pub(crate) enum Put {
    /// It was the last one that was missing.
    Complete {
        /// The message's id.
        id: String,
        /// What it says.
        text: String,
    },
    /// Others are missing. Tells whether the message was written, when they are here.
    Waits(oneshot::Receiver<bool>),
    /// The message was written before.
    Again,
    /// Too many are incomplete.
    Full,
}

/// Messages that are incomplete, and those that were complete lately.
#[derive(Debug, Default)]
pub(crate) struct Assembler {
    open: HashMap<Key, Assembly>,
    /// Incomplete ones whose key another message took.
    ousted: Vec<(Key, Assembly)>,
}

impl Assembler {
    /// Adds part `sequence`, from 1 to the key's total. Its message gets the id `fresh` if it is the first.
    pub(crate) fn put(&mut self, key: &Key, sequence: u8, piece: Piece, now: Duration, fresh: impl FnOnce() -> String) -> Put {
        let index = usize::from(sequence) - 1;
        // A phone uses its numbers again: a part that differs from the one that is here is of another message.
        let differs = |assembly: &Assembly| assembly.pieces[index].as_ref().is_some_and(|known| *known != piece);
        if self.open.get(key).is_some_and(differs)
            && let Some(old) = self.open.remove(key)
            && !old.recorded
        {
            self.ousted.push((key.clone(), old));
        }
        if self.open.len() + self.ousted.len() >= MOST && !self.open.contains_key(key) {
            return Put::Full;
        }
        let assembly = self.open.entry(key.clone()).or_insert_with(|| Assembly {
            id: fresh(),
            pieces: vec![None; usize::from(key.total)],
            since: now,
            recorded: false,
            waiting: Vec::new(),
        });
        if assembly.recorded {
            return Put::Again;
        }
        assembly.pieces[index] = Some(piece);
        if assembly.is_complete() {
            return Put::Complete { id: assembly.id.clone(), text: assembly.text() };
        }
        let (tell, told) = oneshot::channel();
        assembly.waiting.push(tell);
        Put::Waits(told)
    }

    /// The complete message was written, or could not be; whoever waits for it is told. It is remembered, as its parts may come again.
    pub(crate) fn recorded(&mut self, key: &Key, id: &str, written: bool) {
        let Some(assembly) = self.open.get_mut(key).filter(|assembly| assembly.id == id) else { return };
        assembly.recorded |= written;
        for waiting in assembly.waiting.drain(..) {
            // Whoever waited too long has been answered.
            waiting.send(written).ok();
        }
    }

    /// Forgets what is older than `patience`, and returns what was not written of it.
    pub(crate) fn expire(&mut self, now: Duration, patience: Duration) -> Vec<(Key, Assembly)> {
        let mut expired = std::mem::take(&mut self.ousted);
        let old = |_: &Key, assembly: &mut Assembly| now.saturating_sub(assembly.since) >= patience;
        expired.extend(self.open.extract_if(|key, assembly| old(key, assembly)).filter(|(_, assembly)| !assembly.recorded));
        expired
    }

    /// Keeps one that could not be written for another time.
    pub(crate) fn put_back(&mut self, key: Key, assembly: Assembly) {
        self.ousted.push((key, assembly));
    }
}

#[cfg(test)]
#[path = "assembly_tests.rs"]
mod tests;
