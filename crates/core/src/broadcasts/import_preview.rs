//! Previews how a CSV file of recipients would be imported, from its first lines.

use std::collections::BTreeMap;

use nuncio_domain::broadcast::Broadcast;
use nuncio_domain::template::Template;
use nuncio_domain::{Error, Permission, Result};

use super::import_rows::{Columns, named};
use super::{Broadcasts, ImportContacts, variables};
use crate::base::csv::records;
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
        let mut rows = records(&head[..end])?.into_iter().map(|(_, cells)| cells);
        let named = uses(&columns, &rows.next().unwrap_or_default())?;
        let rows: Vec<Vec<String>> = rows.take(ROWS).collect();
        let filled = |name: &String| named.iter().any(|(_, becomes)| matches!(becomes, ColumnUse::Variable(variable) if variable == name));
        let missing = columns.used.iter().filter(|name| !filled(name) && !broadcast.body.variables.contains_key(*name)).cloned().collect();
        let column = |(at, (name, becomes)): (usize, (String, ColumnUse))| {
            let values = rows.iter().filter_map(|row| row.get(at)).cloned().collect();
            PreviewedColumn { name, becomes, values }
        };
        Ok(ImportPreview { columns: named.into_iter().enumerate().map(column).collect(), missing })
    }
}

/// Returns the column mapping for a broadcast.
pub(super) fn columns(broadcast: &Broadcast, template: Option<&Template>, asked: &ImportContacts) -> Result<Columns> {
    let used = match template {
        Some(template) => template.content.variables.clone(),
        None => variables::used(broadcast).into_iter().map(str::to_owned).collect(),
    };
    Ok(Columns { recipient: asked.recipient.clone(), renamed: renamed(asked.columns.as_deref())?, used })
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

/// Parses `column:variable,…`.
fn renamed(text: Option<&str>) -> Result<BTreeMap<String, String>> {
    let pairs = text.unwrap_or_default().split(',').filter(|pair| !pair.trim().is_empty());
    let pair = |pair: &str| match pair.rsplit_once(':') {
        Some((column, name)) => Ok((column.trim().to_owned(), name.trim().to_owned())),
        None => Err(Error::field("query.columns", format!("{pair:?} is not column:variable, such as nombre:name"))),
    };
    pairs.map(pair).collect()
}
