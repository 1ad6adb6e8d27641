//! What a command answers.

use nuncio_domain::Environment;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::table::Table;

/// What a command answers, for programs and for people.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CommandOutput {
    /// For programs.
    pub json: Value,
    /// For people, where there is no table.
    pub text: String,
    /// A list, for people.
    pub table: Option<Table>,
    /// A remark for people, which a program that reads the text must not get; on standard error.
    #[serde(default)]
    pub notice: Option<String>,
    /// Whether the command found what it was asked about to be wrong.
    #[serde(default)]
    pub bad: bool,
}

impl CommandOutput {
    pub(crate) fn new(json: Value, text: impl Into<String>) -> Self {
        Self { json, text: text.into(), table: None, notice: None, bad: false }
    }

    /// A list; `none` is said when it is empty.
    pub(crate) fn list(json: Value, table: Table, none: &str) -> Self {
        let table = (!table.rows.is_empty()).then_some(table);
        Self { table, ..Self::new(json, none) }
    }
}

/// Lists as one. Every item names its environment; for people only where there is a choice.
pub(crate) fn merged(lists: Vec<(Environment, CommandOutput)>) -> CommandOutput {
    let several = lists.len() > 1;
    let (mut items, mut tables, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (environment, answer) in lists {
        let world = environment.as_str();
        if let Value::Array(found) = answer.json {
            items.extend(found.into_iter().map(|mut item| {
                item["environment"] = world.into();
                item
            }));
        }
        match answer.table {
            Some(table) if several => tables.push(table.under("ENV", world)),
            Some(table) => tables.push(table),
            None if several && !items.is_empty() => texts.push(format!("{world}: {}", answer.text)),
            None => texts.push(answer.text),
        }
    }
    let table = tables.into_iter().reduce(|all, next| all.with(next.rows));
    texts.dedup();
    CommandOutput { table, ..CommandOutput::new(items.into(), texts.join("\n")) }
}
