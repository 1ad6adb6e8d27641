//! Lists and single resources of the API, in tables and lines.

use nuncio_domain::line;
use reqwest::Method;
use serde_json::Value;

use super::{CallError, World, say, say_json};
use crate::table::{Table, terminal_width};

/// How a column shows what its field holds.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// As it is; lists joined by commas.
    Text,
    /// A moment to the second, in UTC.
    Time,
    /// US dollars.
    Money,
}

/// A column: its name, where its field is (a JSON pointer), and how it is shown.
type Column = (&'static str, &'static str, Form);

/// A kind of resource that is listed.
#[derive(Debug)]
pub(crate) struct Listed {
    /// Its path.
    pub(crate) path: &'static str,
    columns: &'static [Column],
    /// What to say when there is none.
    none: &'static str,
}

use Form::{Money, Text, Time};

/// Messages.
pub(crate) const MESSAGES: Listed = Listed {
    path: "/v1/messages",
    columns: &[
        ("ID", "/id", Text),
        ("STATUS", "/status", Text),
        ("CHANNEL", "/channel", Text),
        ("TO", "/to", Text),
        ("CREATED (UTC)", "/createdAt", Time),
        ("COST", "/costTotal", Money),
        ("TEXT", "/text", Text),
    ],
    none: "no messages; `nuncio send TO TEXT` sends one",
};
/// Contacts.
pub(crate) const CONTACTS: Listed = Listed {
    path: "/v1/contacts",
    columns: &[
        ("ID", "/id", Text),
        ("NAME", "/displayName", Text),
        ("PHONE", "/primaryPhone", Text),
        ("CHANNELS", "/availableChannels", Text),
        ("CREATED (UTC)", "/createdAt", Time),
    ],
    none: "no contacts; they come with the first message to or from somebody",
};
/// Broadcasts.
pub(crate) const BROADCASTS: Listed = Listed {
    path: "/v1/broadcasts",
    columns: &[
        ("ID", "/id", Text),
        ("STATUS", "/status", Text),
        ("CHANNEL", "/channel", Text),
        ("NAME", "/name", Text),
        ("RECIPIENTS", "/totalContacts", Text),
        ("DELIVERED", "/deliveredCount", Text),
        ("FAILED", "/failedCount", Text),
        ("COST", "/actualCost", Money),
    ],
    none: "no broadcasts; `nuncio broadcasts create` makes one",
};
/// Templates.
pub(crate) const TEMPLATES: Listed = Listed {
    path: "/v1/templates",
    columns: &[
        ("ID", "/id", Text),
        ("STATUS", "/status", Text),
        ("NAME", "/name", Text),
        ("LANGUAGE", "/language", Text),
        ("BODY", "/body", Text),
    ],
    none: "no templates; `nuncio templates create FILE` makes one",
};
/// Invitations.
pub(crate) const INVITATIONS: Listed = Listed {
    path: "/v1/invitations",
    columns: &[
        ("ID", "/id", Text),
        ("STATUS", "/status", Text),
        ("CLIENT", "/clientName", Text),
        ("EXPIRES (UTC)", "/expiresAt", Time),
        ("LINK", "/url", Text),
    ],
    none: "no invitations; `nuncio invitations create` makes one",
};
/// Suppressions.
pub(crate) const SUPPRESSIONS: Listed = Listed {
    path: "/v1/suppressions",
    columns: &[
        ("ID", "/id", Text),
        ("RECIPIENT", "/identifier", Text),
        ("CHANNEL", "/channel", Text),
        ("REASON", "/reason", Text),
        ("SINCE (UTC)", "/createdAt", Time),
    ],
    none: "nobody is suppressed",
};
/// Deliveries of webhooks.
pub(crate) const DELIVERIES: Listed = Listed {
    path: "/v1/webhooks/deliveries",
    columns: &[
        ("ID", "/id", Text),
        ("STATUS", "/status", Text),
        ("EVENT", "/eventType", Text),
        ("RESOURCE", "/resourceId", Text),
        ("UPDATED (UTC)", "/updatedAt", Time),
        ("URL", "/url", Text),
    ],
    none: "no deliveries; `nuncio webhooks set URL` sets where events go",
};
/// Events.
pub(crate) const EVENTS: Listed = Listed {
    path: "/v1/events",
    columns: &[("ID", "/id", Text), ("TYPE", "/type", Text), ("TIME (UTC)", "/timestamp", Time), ("SENDER", "/senderId", Text)],
    none: "no events yet",
};

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
    let query: Vec<(&str, &str)> = query.iter().filter_map(|(name, value)| Some((*name, (*value)?))).collect();
    let mut items = Vec::new();
    for world in worlds {
        let found = pages(world, listed.path, &query, limit).await?;
        items.extend(found.into_iter().map(|mut item| {
            item["environment"] = world.environment.as_str().into();
            item
        }));
    }
    if json {
        say_json(&Value::Array(items));
    } else if items.is_empty() {
        say(listed.none);
    } else {
        say(table(listed, &items, worlds.len() > 1).text(terminal_width()));
    }
    Ok(())
}

async fn pages(world: &World, path: &str, query: &[(&str, &str)], limit: usize) -> Result<Vec<Value>, CallError> {
    let (mut items, mut cursor) = (Vec::new(), String::new());
    while items.len() < limit {
        let size = (limit - items.len()).min(PAGE).to_string();
        let mut query = query.to_vec();
        query.push(("limit", &size));
        if !cursor.is_empty() {
            query.push(("cursor", &cursor));
        }
        let mut page = world.get(path, &query).await?;
        if let Value::Array(found) = page["items"].take() {
            items.extend(found);
        }
        match page["nextCursor"].as_str() {
            Some(next) => next.clone_into(&mut cursor),
            None => break,
        }
    }
    Ok(items)
}

fn table(listed: &Listed, items: &[Value], several: bool) -> Table {
    let mut head: Vec<&str> = if several { vec!["WORLD"] } else { Vec::new() };
    head.extend(listed.columns.iter().map(|(name, ..)| *name));
    let row = |item: &Value| {
        let world = several.then(|| shown(&item["environment"], Text));
        let cells = listed.columns.iter().map(|(_, pointer, form)| shown(item.pointer(pointer).unwrap_or(&Value::Null), *form));
        world.into_iter().chain(cells).collect()
    };
    Table::new(&head).with(items.iter().map(row))
}

fn shown(value: &Value, form: Form) -> String {
    match (value, form) {
        (Value::Null, _) => String::new(),
        (Value::String(text), Time) => format!("{} {}", text.get(..10).unwrap_or(text), text.get(11..19).unwrap_or_default()),
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
    Err(refused.map_or_else(|| anyhow::anyhow!("there is no environment to look in"), Into::into))
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
    if json {
        say_json(answer);
    } else if answer.is_null() {
        say("done");
    } else {
        let mut out = Vec::new();
        fields(answer, 0, &mut out);
        say(out.join("\n"));
    }
}

/// A line a field, fields of objects below their name.
fn fields(value: &Value, depth: usize, out: &mut Vec<String>) {
    let indent = "  ".repeat(depth);
    let Value::Object(map) = value else {
        return out.push(format!("{indent}{}", line::escaped(&shown(value, Text))));
    };
    for (name, value) in map.iter().filter(|(_, value)| !is_empty(value)) {
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
            value => out.push(format!("{indent}{name}: {}", line::escaped(&shown(value, Text)))),
        }
    }
}

fn is_empty(value: &Value) -> bool {
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
        assert_eq!(out, ["deep:", "  n: 1", "id: x", "list: a,b", "rows:", "  1", "    c: true"]);
    }

    #[test]
    fn both_worlds_have_a_column() {
        let items = [
            json!({"id": "sup_1", "environment": "live", "createdAt": "2026-01-31T09:30:00.000Z", "identifier": "+1", "reason": "manual"}),
        ];
        let text = console::strip_ansi_codes(&table(&SUPPRESSIONS, &items, true).text(None)).into_owned();
        assert_eq!(
            text,
            "WORLD  ID     RECIPIENT  CHANNEL  REASON  SINCE (UTC)\nlive   sup_1  +1                  manual  2026-01-31 09:30:00"
        );
    }
}
