//! Previews how a CSV file of recipients would be imported, from its first lines.

use std::collections::BTreeSet;

use nuncio_domain::{Permission, Result};

use super::Broadcasts;
use super::import::{ImportContacts, columns};
use super::import_rows::{Columns, named};
use crate::base::csv::first_records;
use crate::base::{Caller, parse_id};

/// Bytes of the file that are parsed.
pub const HEAD: usize = 64 * 1024;
/// Rows that are shown.
const ROWS: usize = 3;

/// How a column is imported.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum ColumnUse {
    /// Recipient of the message.
    Recipient,
    /// Value of this variable.
    Variable(String),
    /// Ignored.
    LeftOut,
}

/// One column of the file.
#[derive(Clone, Debug)]
pub struct PreviewedColumn {
    /// Name in the file.
    pub name: String,
    /// How it is imported.
    pub becomes: ColumnUse,
    /// First values.
    pub values: Vec<String>,
}

/// How a file would be imported.
#[derive(Clone, Debug)]
pub struct ImportPreview {
    /// Columns in file order.
    pub columns: Vec<PreviewedColumn>,
    /// Variables of the content without a column or a value in the broadcast.
    pub missing: Vec<String>,
}

impl Broadcasts<'_> {
    /// Previews the beginning of a CSV file, at most [`HEAD`] bytes. Writes nothing.
    pub async fn preview_import(&self, caller: &Caller, id: &str, asked: &ImportContacts, head: &[u8]) -> Result<ImportPreview> {
        caller.require(Permission::BroadcastsRead)?;
        let broadcast = self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        let template = self.template_of(&broadcast).await?;
        let columns = columns(&broadcast, template.as_ref(), asked)?;
        // The last line may be incomplete.
        let end = if head.len() < HEAD { head.len() } else { head.iter().rposition(|byte| *byte == b'\n').unwrap_or(head.len()) };
        let mut rows = first_records(&head[..end])?.into_iter().map(|(_, cells)| cells);
        let named = uses(&columns, &rows.next().unwrap_or_default())?;
        let rows: Vec<Vec<String>> = rows.take(ROWS).collect();
        let filled: BTreeSet<&String> =
            named.iter().filter_map(|(_, becomes)| if let ColumnUse::Variable(name) = becomes { Some(name) } else { None }).collect();
        let lacking = columns.used.iter().filter(|name| !filled.contains(name) && !broadcast.body.variables.contains_key(*name));
        let missing = lacking.cloned().collect();
        let column = |(at, (name, becomes)): (usize, (String, ColumnUse))| {
            let values = rows.iter().filter_map(|row| row.get(at)).cloned().collect();
            PreviewedColumn { name, becomes, values }
        };
        Ok(ImportPreview { columns: named.into_iter().enumerate().map(column).collect(), missing })
    }
}

/// Returns how each column of a header is imported.
fn uses(columns: &Columns, head: &[String]) -> Result<Vec<(String, ColumnUse)>> {
    let names = named(columns, head.iter().map(String::as_str).collect())?;
    let becomes = |at: usize, name: &str| match columns.variable(name) {
        _ if at == names.recipient => ColumnUse::Recipient,
        Some(variable) => ColumnUse::Variable(variable.to_owned()),
        None => ColumnUse::LeftOut,
    };
    Ok(names.all.iter().enumerate().map(|(at, name)| (name.clone(), becomes(at, name))).collect())
}
