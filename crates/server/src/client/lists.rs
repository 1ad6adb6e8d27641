//! Lists and single resources of the API, in tables and lines.

use anyhow::{Context as _, bail};
use nuncio_domain::{SenderId, line};
use reqwest::Method;
use serde_json::{Map, Value};

use super::tables::Form::{self, Money, Text, Time, Yes, YesNo};
pub(crate) use super::tables::{
    AUDIT_LOG, BROADCASTS, CONNECTIONS, CONTACTS, DELIVERIES, EVENTS, INVITATIONS, KEYS, Listed, MESSAGES, RECEIPTS, RECIPIENTS, SENDERS,
    SUPPRESSIONS, TEMPLATES, WEBHOOKS,
};
use super::{CallError, World, patiently, say, say_json};
use crate::answer::CommandOutput;
use crate::named::{Named, named};
use crate::table::{Table, terminal_width};

/// The longest page of the API.
const PAGE: usize = 100;

/// Shows the newest `limit` resources of each environment.
pub(crate) async fn list(
    worlds: &[World],
    listed: &Listed,
    query: &[(&str, Option<&str>)],
    limit: usize,
    json: bool,
) -> anyhow::Result<()> {
    list_at(worlds, listed.path, listed, query, limit, json).await
}

/// The same at another path than the usual one.
pub(crate) async fn list_at(
    worlds: &[World],
    path: &str,
    listed: &Listed,
    query: &[(&str, Option<&str>)],
    limit: usize,
    json: bool,
) -> anyhow::Result<()> {
    let query: Vec<(&str, &str)> = query.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
    let mut items = Vec::new();
    for world in worlds {
        let found = pages(world, path, &query, limit).await?;
        items.extend(found.into_iter().map(|mut item| {
            item["environment"] = world.environment.as_str().into();
            item
        }));
    }
    if items.is_empty() && !query.is_empty() && !json {
        say("nothing matches these options");
        return Ok(());
    }
    show_items(listed, items, worlds.len() > 1, json);
    Ok(())
}

/// Shows what is listed below the resource with this id, such as the receipts of a message.
pub(crate) async fn list_of(worlds: &[World], of: &Listed, id: &str, below: &str, listed: &Listed, json: bool) -> anyhow::Result<()> {
    let (world, _) = find(worlds, of, id).await?;
    list_at(std::slice::from_ref(world), &format!("{}/{id}{below}", of.path), listed, &[], usize::MAX, json).await
}

/// Shows items as a JSON array or as a table; `several` adds a column for their environment.
pub(crate) fn show_items(listed: &Listed, items: Vec<Value>, several: bool, json: bool) {
    if json {
        say_json(&Value::Array(items));
    } else if items.is_empty() {
        say(listed.none);
    } else {
        say(table(listed, &items, several).text(terminal_width()));
    }
}

/// All resources at a path of an environment.
pub(crate) async fn all(world: &World, path: &str, query: &[(&str, &str)]) -> Result<Vec<Value>, CallError> {
    pages(world, path, query, usize::MAX).await
}

/// A sender by its ID or name; the default sender when none is given.
pub(crate) async fn sender(world: &World, wanted: Option<&str>) -> anyhow::Result<Value> {
    let senders = all(world, "/v1/senders", &[]).await?;
    let environment = world.environment.as_str();
    let Some(text) = wanted else {
        let default = senders.into_iter().find(|sender| sender["isDefault"] == true);
        return default.with_context(|| format!("the {environment} environment has no default sender; set one with --sender"));
    };
    let of = |sender: &Value| (shown(&sender["id"], Text), shown(&sender["name"], Text));
    match named(senders, text, text.parse::<SenderId>().is_ok(), of) {
        Named::One(sender) => Ok(sender),
        Named::None => bail!("there is no sender {text:?} in the {environment} environment; see `nuncio senders list`"),
        Named::Several(which) => bail!("sender: {which}"),
    }
}

impl Listed {
    /// What an installation answers: the items, and their table.
    pub(crate) fn answer(&self, items: Vec<Value>) -> CommandOutput {
        let table = table(self, &items, false);
        CommandOutput::list(items.into(), table, self.none)
    }
}

async fn pages(world: &World, path: &str, query: &[(&str, &str)], limit: usize) -> Result<Vec<Value>, CallError> {
    let mut items = Vec::new();
    each_page(world, path, query, limit, |found| items.extend(found)).await?;
    Ok(items)
}

/// Reads resources at a path of an environment page by page, newest first, until there are `limit`.
pub(crate) async fn each_page(
    world: &World,
    path: &str,
    query: &[(&str, &str)],
    limit: usize,
    mut take: impl FnMut(Vec<Value>),
) -> Result<(), CallError> {
    let (mut left, mut cursor) = (limit, String::new());
    while left > 0 {
        let size = left.min(PAGE).to_string();
        let mut query = query.to_vec();
        query.push(("limit", &size));
        if !cursor.is_empty() {
            query.push(("cursor", &cursor));
        }
        let mut page = patiently(1, async || world.get(path, &query).await).await?;
        if let Value::Array(found) = page["items"].take() {
            left = left.saturating_sub(found.len());
            take(found);
        }
        match page["nextCursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    Ok(())
}

fn table(listed: &Listed, items: &[Value], several: bool) -> Table {
    let mut head: Vec<&str> = if several { vec!["ENV"] } else { Vec::new() };
    head.extend(listed.columns.iter().map(|(name, ..)| *name));
    let row = |item: &Value| {
        let world = several.then(|| shown(&item["environment"], Text));
        let cells = listed.columns.iter().map(|(_, pointer, form)| shown(field(item, pointer), *form));
        world.into_iter().chain(cells).collect()
    };
    Table::new(&head).with(items.iter().map(row))
}

/// What a column's place holds.
fn field<'a>(item: &'a Value, place: &str) -> &'a Value {
    let found = place.split('|').filter_map(|pointer| match pointer.split_once("/*") {
        Some((before, after)) => item.pointer(before)?.as_object()?.values().find_map(|value| value.pointer(after)),
        None => item.pointer(pointer),
    });
    found.into_iter().find(|value| !is_empty(value)).unwrap_or(&Value::Null)
}

fn shown(value: &Value, form: Form) -> String {
    match (value, form) {
        (Value::Null, _) => String::new(),
        (Value::String(text), Time) => format!("{} {}", text.get(..10).unwrap_or(text), text.get(11..19).unwrap_or_default()),
        (Value::Bool(true), Yes | YesNo) => "yes".to_owned(),
        (Value::Bool(false), Yes) => String::new(),
        (Value::Bool(false), YesNo) => "no".to_owned(),
        (Value::Number(number), Money) => format!("${number}"),
        (Value::String(text), _) => text.clone(),
        (Value::Array(items), _) => items.iter().map(|item| shown(item, form)).collect::<Vec<_>>().join(","),
        (other, _) => other.to_string(),
    }
}

/// The first answer of an environment that has what is asked for, and that environment.
async fn first<'a, T>(worlds: &'a [World], ask: impl AsyncFn(&'a World) -> Result<T, CallError>) -> anyhow::Result<(&'a World, T)> {
    let mut refused = None;
    for world in worlds {
        match ask(world).await {
            Ok(answer) => return Ok((world, answer)),
            Err(error) if error.is_not_found() => refused = Some(error),
            Err(error) => return Err(error.into()),
        }
    }
    Err(refused.map_or_else(|| anyhow::anyhow!("there is no environment to search"), Into::into))
}

/// The resource with this id, from the environment that has it, and that environment.
pub(crate) async fn find<'a>(worlds: &'a [World], listed: &Listed, id: &str) -> anyhow::Result<(&'a World, Value)> {
    let path = format!("{}/{id}", listed.path);
    let (world, answer) = first(worlds, async |world| world.get(&path, &[]).await).await?;
    Ok((world, unwrapped(answer)))
}

/// Removes the resource at `path`, in the environment that has it.
pub(crate) async fn remove(worlds: &[World], path: &str, json: bool) -> anyhow::Result<()> {
    let (_, answer) = first(worlds, async |world| world.call(Method::DELETE, path, None).await).await?;
    print(&answer, json);
    Ok(())
}

/// Shows one resource.
pub(crate) async fn show(worlds: &[World], listed: &Listed, id: &str, json: bool) -> anyhow::Result<()> {
    let (_, found) = find(worlds, listed, id).await?;
    print(&found, json);
    Ok(())
}

/// Makes a request about the resource with this id, in the environment that has it, and shows what it answers.
pub(crate) async fn act(worlds: &[World], listed: &Listed, id: &str, act: Act<'_>, json: bool) -> anyhow::Result<()> {
    let (world, _) = find(worlds, listed, id).await?;
    print(&world.call(act.method, &format!("{}/{id}{}", listed.path, act.path), act.body).await?, json);
    Ok(())
}

/// What is done with a resource.
#[derive(Debug)]
pub(crate) struct Act<'a> {
    pub(crate) method: Method,
    /// What follows the resource's own path, such as `/cancel`.
    pub(crate) path: &'a str,
    pub(crate) body: Option<&'a Value>,
}

impl<'a> Act<'a> {
    pub(crate) fn post(path: &'a str, body: Option<&'a Value>) -> Self {
        Self { method: Method::POST, path, body }
    }

    pub(crate) fn delete() -> Self {
        Self { method: Method::DELETE, path: "", body: None }
    }
}

/// What an answer is about: an answer that wraps one resource is that resource.
pub(crate) fn unwrapped(mut answer: Value) -> Value {
    match answer.as_object_mut().map(|map| (map.len(), map.values_mut().next())) {
        Some((1, Some(only))) if only.is_object() => only.take(),
        _ => answer,
    }
}

/// Prints what an answer is about: as JSON, or a line a field.
pub(crate) fn print(answer: &Value, json: bool) {
    let answer = &unwrapped(answer.clone());
    if answer.is_null() && json {
        say_json(&Value::Object(Map::new()));
    } else if json {
        say_json(answer);
    } else if answer.is_null() {
        say("done");
    } else {
        let mut out = Vec::new();
        fields(answer, 0, &mut out);
        say(out.join("\n"));
    }
}

/// Fields that say what a resource is; they come before the others.
const FIRST: &[&str] = &["id", "name", "displayName", "clientName", "status", "channel", "type", "url", "text"];

/// A line a field, the most telling first, and those of objects last, below their name.
fn fields(value: &Value, depth: usize, out: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    let Value::Object(map) = value else {
        return out.push(format!("{indent}{}", line::escaped(&bracketed(value))));
    };
    let mut shown_fields: Vec<_> = map.iter().filter(|(_, value)| !is_empty(value)).collect();
    shown_fields.sort_by_key(|(name, value)| (FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()), value.is_object()));
    for (name, value) in shown_fields {
        match value {
            Value::Object(inner) if !inner.is_empty() => {
                out.push(format!("{indent}{name}:"));
                fields(value, depth + 1, out);
            }
            Value::Array(items) if items.iter().any(Value::is_object) => {
                out.push(format!("{indent}{name}:"));
                for (number, item) in items.iter().enumerate() {
                    out.push(format!("{indent}  {}", number + 1));
                    fields(item, depth + 2, out);
                }
            }
            value => out.push(format!("{indent}{name}: {}", line::escaped(&bracketed(value)))),
        }
    }
}

/// A value in a line of its own, where a list of one must not look like the one.
fn bracketed(value: &Value) -> String {
    match value {
        Value::Array(items) => format!("[{}]", items.iter().map(|item| shown(item, Text)).collect::<Vec<_>>().join(", ")),
        value => shown(value, Text),
    }
}

/// Whether a value says nothing.
pub(crate) fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(map) => map.is_empty(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn an_answer_is_a_line_a_field() {
        let mut out = Vec::new();
        fields(&json!({"id": "x", "none": null, "list": ["a", "b"], "deep": {"n": 1}, "rows": [{"c": true}]}), 0, &mut out);
        assert_eq!(out, ["id: x", "list: [a, b]", "rows:", "  1", "    c: true", "deep:", "  n: 1"]);
    }

    #[test]
    fn a_column_takes_the_first_place_that_holds_something() {
        let change = json!({"actor": {"id": "key_1", "name": null}, "data": {"previousStatus": "sent", "message": {"id": "msg_1"}}});
        assert_eq!(field(&change, "/actor/name|/actor/id"), "key_1");
        assert_eq!(field(&change, "/data/*/id"), "msg_1");
        assert_eq!(field(&change, "/nothing/*/id"), &Value::Null);
    }

    #[test]
    fn both_environments_have_a_column() {
        let items = [
            json!({"id": "sup_1", "environment": "live", "createdAt": "2026-01-31T09:30:00.000Z", "identifier": "+1", "reason": "manual"}),
        ];
        let text = console::strip_ansi_codes(&table(&SUPPRESSIONS, &items, true).text(None)).into_owned();
        assert_eq!(
            text,
            "ENV   ID     RECIPIENT  CHANNEL  REASON  SINCE (UTC)\nlive  sup_1  +1                  manual  2026-01-31 09:30:00"
        );
    }
}
