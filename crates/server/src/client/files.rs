//! Files of contacts and suppressions: imports with several requests at once, and exports page by page.

use futures::{StreamExt as _, TryStreamExt as _, stream};
use indicatif::{ProgressBar, ProgressStyle};
use nuncio_core::contacts::file::FileRow;
use nuncio_domain::line;
use reqwest::{Method, StatusCode};
use serde::Serialize;
use serde_json::{Value, json};

use super::import::wrong_rows;
use super::life::Outcome;
use super::{CallError, TRIES, World, lists, patiently, say, say_json, say_text};

/// Requests in flight.
const AT_ONCE: usize = 8;
/// How an import that was cut off goes on.
const AGAIN: &str = "the import stopped; repeat the command to continue it";

/// Result of an import.
#[derive(Debug, Default)]
struct Imported {
    rows: usize,
    added: usize,
    duplicates: usize,
    /// Rejected rows: line and reason.
    errors: Vec<(u64, String)>,
}

impl Imported {
    fn note(&mut self, line: u64, result: Result<bool, String>) {
        self.rows += 1;
        match result {
            Ok(true) => self.added += 1,
            Ok(false) => self.duplicates += 1,
            Err(reason) => self.errors.push((line, reason)),
        }
    }

    fn json(&self) -> Value {
        let errors: Vec<_> = self.errors.iter().map(|(line, reason)| json!({"line": line, "reason": reason})).collect();
        json!({"rows": self.rows, "added": self.added, "duplicates": self.duplicates, "invalid": self.errors.len(), "errors": errors})
    }

    fn text(&self) -> String {
        let known =
            if self.rows > 0 && self.duplicates == self.rows { "Everything in this file exists already; nothing was added. " } else { "" };
        let Self { rows, added, duplicates, errors } = self;
        format!("{known}{rows} rows: {added} added, {duplicates} duplicates, {} invalid.{}", errors.len(), wrong_rows(&self.json()))
    }
}

/// Adds contacts. A contact that exists only gets a missing name. Fails if rows were rejected.
pub(crate) async fn import_contacts<T: Serialize>(world: &World, rows: Vec<FileRow<T>>, json: bool) -> anyhow::Result<Outcome> {
    import(world, rows, async |contact| add_contact(world, contact).await, json).await
}

/// Adds suppressions. Fails if rows were rejected.
pub(crate) async fn import_suppressions<T: Serialize>(world: &World, rows: Vec<FileRow<T>>, json: bool) -> anyhow::Result<Outcome> {
    let add = async |suppression: &Value| patiently(TRIES, async || world.create("/v1/suppressions", suppression).await).await;
    import(world, rows, add, json).await
}

/// Prints all resources at a path: with a header line and a row each, or with `json` one JSON object per line.
pub(crate) async fn export(world: &World, path: &str, file: &Exported, json: bool) -> anyhow::Result<()> {
    if !json {
        say_text(file.head);
    }
    let print = |items: Vec<Value>| {
        for item in items.iter().filter(|item| !(file.is_hidden)(item)) {
            if json { say_json(&(file.body)(item)) } else { say_text(&(file.line)(item)) }
        }
    };
    Ok(lists::each_page(world, path, &[], usize::MAX, print).await?)
}

/// How resources are exported.
pub(crate) struct Exported {
    /// Header line of the CSV.
    pub(crate) head: &'static str,
    /// Row of a resource in the CSV.
    pub(crate) line: fn(&Value) -> String,
    /// Body of the request that creates the same.
    pub(crate) body: fn(&Value) -> Value,
    /// Whether to leave a resource out.
    pub(crate) is_hidden: fn(&Value) -> bool,
}

/// These fields of a JSON object, unless they are null.
pub(crate) fn only(item: &Value, names: &[&str]) -> Value {
    names.iter().filter(|name| !item[**name].is_null()).map(|name| ((*name).to_owned(), item[*name].clone())).collect()
}

/// Adds each row; `add` returns whether it is new.
async fn import<T: Serialize>(
    world: &World,
    rows: Vec<FileRow<T>>,
    add: impl AsyncFn(&Value) -> Result<bool, CallError>,
    json: bool,
) -> anyhow::Result<Outcome> {
    // Reports a wrong key and an unreachable node once, and without delay.
    world.get("/v1/me", &[]).await?;
    // It is drawn on a terminal only.
    let bar = ProgressBar::new(rows.len() as u64).with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} {per_sec} {eta}")?);
    let add = &add;
    let stored = stream::iter(rows).map(|(line, row)| async move {
        let result = match row {
            Ok(body) => rejected(add(&json!(body)).await)?,
            Err(reason) => Err(reason),
        };
        Ok::<_, CallError>((line, result))
    });
    let note = |mut imported: Imported, (line, result)| {
        bar.inc(1);
        imported.note(line, result);
        std::future::ready(Ok(imported))
    };
    let imported = stored.buffer_unordered(AT_ONCE).try_fold(Imported::default(), note).await;
    bar.finish_and_clear();
    let mut imported = imported.map_err(|error| anyhow::Error::from(error).context(AGAIN))?;
    imported.errors.sort();
    if json {
        say_json(&imported.json())
    } else {
        say(line::escaped(&imported.text()))
    }
    Ok(if imported.errors.is_empty() { Outcome::Sent } else { Outcome::Failed })
}

/// Separates what is wrong with one row from what ends the import.
fn rejected(result: Result<bool, CallError>) -> Result<Result<bool, String>, CallError> {
    match result {
        Err(CallError::Refused { status, message, .. }) if is_about_the_row(status) => Ok(Err(message.replace('\n', "; "))),
        other => other.map(Ok),
    }
}

fn is_about_the_row(status: StatusCode) -> bool {
    status.is_client_error() && ![StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::REQUEST_TIMEOUT].contains(&status)
}

async fn add_contact(world: &World, contact: &Value) -> Result<bool, CallError> {
    let error = match patiently(TRIES, async || world.create("/v1/contacts", contact).await).await {
        Err(error) => error,
        created => return created,
    };
    let CallError::Refused { body, .. } = &error else { return Err(error) };
    match body["details"]["contactId"].as_str() {
        Some(owner) if body["code"] == "duplicate_identifier" => {
            add_name(world, owner, &contact["displayName"]).await?;
            Ok(false)
        }
        _ => Err(error),
    }
}

/// Names a contact that has no name.
async fn add_name(world: &World, id: &str, name: &Value) -> Result<(), CallError> {
    let path = format!("/v1/contacts/{id}");
    if name.is_null() || !patiently(TRIES, async || world.get(&path, &[]).await).await?["displayName"].is_null() {
        return Ok(());
    }
    let change = json!({"displayName": name});
    patiently(TRIES, async || world.call(Method::PATCH, &path, Some(&change)).await).await.map(drop)
}
