//! `nuncio storage` and `nuncio db size`.

use nuncio_core::Core;
use nuncio_domain::Result;
use nuncio_store::Storage;
use serde_json::json;

use crate::answer::CommandOutput;
use crate::table::Table;

/// What an environment stores, as a list of one.
pub(super) fn show(storage: Option<Storage>) -> CommandOutput {
    let text = match storage {
        Some(Storage { max_bytes, stored_bytes }) => format!("{stored_bytes} of {max_bytes} bytes stored"),
        None => "no quota; nothing is counted (set one with `nuncio storage limit`)".to_owned(),
    };
    let (max, stored) = storage.map(|s| (s.max_bytes, s.stored_bytes)).unzip();
    CommandOutput::new(json!([{"maxBytes": max, "storedBytes": stored}]), text)
}

/// What each table takes, the largest first, and all of them.
pub(super) async fn tables(core: &Core) -> Result<CommandOutput> {
    let tables = core.store().read().await?.table_sizes().await?;
    let all: i64 = tables.iter().map(|table| table.bytes).sum();
    let share = |bytes: i64| if all > 0 { bytes * 100 / all } else { 0 };
    let row = |(name, bytes): (&str, i64)| vec![name.to_owned(), size(bytes), format!("{} %", share(bytes))];
    let rows = tables.iter().map(|t| (t.table.as_str(), t.bytes)).chain([("all", all)]).map(row);
    let json: Vec<_> = tables.iter().map(|t| json!({"table": t.table, "bytes": t.bytes})).collect();
    Ok(CommandOutput::list(json!({"tables": json, "bytes": all}), Table::new(&["TABLE", "SIZE", "SHARE"]).with(rows), ""))
}

fn size(bytes: i64) -> String {
    if bytes < 1_000_000 { format!("{:.1} kB", bytes as f64 / 1e3) } else { format!("{:.1} MB", bytes as f64 / 1e6) }
}
