//! The event log: one row per tenant and batch, with an entry per resource that changed.
//!
//! An entry holds neither the words of a provider nor its identifiers: those stay with the message, where an erasure finds them, so that
//! no row of the log ever has to be rewritten because one of its messages is erased.
//!
//! The entries of a row are JSON, compressed with LZ4: those of one batch repeat each other.

use std::collections::BTreeMap;

use nuncio_domain::Timestamp;
use nuncio_domain::event::ResourceKind;
use nuncio_domain::lifecycle::Change;
use nuncio_store::{LogEntry, LogPayload, Occurrence, Position, Result};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::row::{corrupt, fingerprint, json};

/// A row to be written.
#[derive(Debug)]
pub(crate) struct LogRow {
    pub(crate) tenant: i64,
    /// The identifier of the batch, by which messages refer to the row. Its position is not known before the transaction ends.
    pub(crate) batch: i64,
    pub(crate) recorded_at: i64,
    entries: Vec<Option<String>>,
}

impl LogRow {
    /// The column `entries`. An entry that was withdrawn is null, so that the numbers of the others hold.
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut text = String::with_capacity(2 + self.entries.iter().map(|entry| entry.as_ref().map_or(5, |e| e.len() + 1)).sum::<usize>());
        for entry in &self.entries {
            text.push(if text.is_empty() { '[' } else { ',' });
            text.push_str(entry.as_deref().unwrap_or("null"));
        }
        text.push(']');
        compress(&text)
    }
}

/// Reference to an entry: its batch, and its number there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct EntryRef {
    pub(crate) batch: i64,
    pub(crate) number: u16,
}

/// The log rows of one transaction.
#[derive(Debug, Default)]
pub(crate) struct LogBatch(BTreeMap<i64, LogRow>);

impl LogBatch {
    /// Adds an entry. `changes` is JSON.
    pub(crate) fn push(
        &mut self,
        tenant: i64,
        (kind, resource, sequence): (ResourceKind, Uuid, i64),
        recorded_at: i64,
        changes: &str,
    ) -> EntryRef {
        let batch = || fingerprint(b"log", resource, sequence);
        let row = self.0.entry(tenant).or_insert_with(|| LogRow { tenant, batch: batch(), recorded_at, entries: Vec::new() });
        row.recorded_at = row.recorded_at.max(recorded_at);
        row.entries.push(Some(format!("[{},\"{}\",{sequence},{recorded_at},{changes}]", kind.number(), resource.simple())));
        EntryRef { batch: row.batch, number: (row.entries.len() - 1) as u16 }
    }

    /// Takes back an entry whose change was not written. A row left empty goes: its batch derives from that change, so the node that made it
    /// may have logged it under the same batch.
    pub(crate) fn withdraw(&mut self, tenant: i64, entry: EntryRef) {
        let Some(row) = self.0.get_mut(&tenant) else { return };
        row.entries[usize::from(entry.number)] = None;
        if row.entries.iter().all(Option::is_none) {
            self.0.remove(&tenant);
        }
    }

    /// The rows to write, by tenant.
    pub(crate) fn into_rows(self) -> Vec<LogRow> {
        self.0.into_values().collect()
    }
}

fn compress(text: &str) -> Vec<u8> {
    lz4_flex::compress_prepend_size(text.as_bytes())
}

fn decompress(entries: &[u8]) -> Result<Vec<u8>> {
    lz4_flex::decompress_size_prepended(entries).map_err(|e| corrupt("log", e))
}

/// What the log keeps of the changes of a message, as JSON.
pub(crate) fn without_words(changes: &[Change]) -> Result<String> {
    let mut kept = changes.to_vec();
    for change in &mut kept {
        change.strip_provider_text();
    }
    json(&kept)
}

/// Appends the batch of an entry to the history of a message.
pub(crate) fn append_batch(history: &mut Vec<u8>, batch: i64) {
    history.extend_from_slice(&batch.to_le_bytes());
}

/// Reads the batches of a message's history, oldest first.
pub(crate) fn batches(history: &[u8]) -> Vec<i64> {
    history.as_chunks().0.iter().map(|batch| i64::from_le_bytes(*batch)).collect()
}

/// Kind and identifier of the resource, sequence, time and changes.
#[derive(Deserialize)]
struct Stored<'a>(i16, &'a str, i64, i64, #[serde(borrow)] &'a RawValue);

/// Reads the entries of a row, with their positions.
pub(crate) fn read(position: i64, entries: &[u8]) -> Result<Vec<LogEntry>> {
    let wrong = |e: serde_json::Error| corrupt("log", e);
    let text = decompress(entries)?;
    let stored: Vec<Option<Stored<'_>>> = serde_json::from_slice(&text).map_err(wrong)?;
    let entries = stored.into_iter().zip(0_i64..).filter_map(|(stored, number)| Some((stored?, number)));
    entries
        .map(|(Stored(kind, resource, sequence, recorded_at, changes), number)| {
            let payload = match ResourceKind::from_number(kind).ok_or_else(|| corrupt("log", format!("kind {kind}")))? {
                ResourceKind::Message => LogPayload::Message(serde_json::from_str(changes.get()).map_err(wrong)?),
                other => LogPayload::Other(other, serde_json::from_str(changes.get()).map_err(wrong)?),
            };
            let resource = Uuid::try_parse(resource).map_err(|e| corrupt("log", e))?;
            let position = Position { commit: position, entry: number };
            Ok(LogEntry { position, resource, sequence, recorded_at: Timestamp::from_millis(recorded_at), payload })
        })
        .collect()
}

/// A row without what it holds of a resource other than a message, except its identifier.
pub(crate) fn forget(entries: &[u8], kind: ResourceKind, resource: Uuid) -> Result<Vec<u8>> {
    let wrong = |e: serde_json::Error| corrupt("log", e);
    let text = decompress(entries)?;
    let stored: Vec<Option<Stored<'_>>> = serde_json::from_slice(&text).map_err(wrong)?;
    let name = resource.simple().to_string();
    let entry = |Stored(of, id, sequence, at, changes): Stored<'_>| {
        if of != kind.number() || id != name {
            return Ok(format!("[{of},\"{id}\",{sequence},{at},{changes}]"));
        }
        let mut occurrences: Vec<Occurrence> = serde_json::from_str(changes.get()).map_err(wrong)?;
        for occurrence in &mut occurrences {
            let id = occurrence.data.get(kind.as_str()).and_then(|r| r.get("id")).cloned();
            occurrence.data.clear();
            occurrence.data.insert(kind.as_str().to_owned(), serde_json::json!({"id": id.unwrap_or(Value::Null)}));
        }
        Ok(format!("[{of},\"{id}\",{sequence},{at},{}]", json(&occurrences)?))
    };
    let entries = stored.into_iter().map(|stored| stored.map_or(Ok("null".to_owned()), entry)).collect::<Result<Vec<_>>>()?;
    Ok(compress(&format!("[{}]", entries.join(","))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_not_named_after_a_change_that_another_node_made() {
        let (mut batch, mut other) = (LogBatch::default(), LogBatch::default());
        let message = |sequence| (ResourceKind::Message, Uuid::from_u128(7), sequence);
        let theirs = other.push(1, message(3), 0, "[]");

        let lost = batch.push(1, message(3), 0, "[]");
        batch.withdraw(1, lost);
        let again = batch.push(1, message(4), 0, "[]");

        assert_ne!(again.batch, theirs.batch);
        assert_eq!(batch.into_rows().iter().map(|row| (row.batch, row.entries.len())).collect::<Vec<_>>(), [(again.batch, 1)]);
    }
}
