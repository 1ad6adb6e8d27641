//! Examples of bodies, for people who read the document.
//!
//! `examples.json` has one for each request and each resource, by the name of its schema. Those of responses and webhooks are put
//! together from them.

use std::sync::LazyLock;

use serde_json::{Map, Value, json};
use utoipa::openapi::path::Paths;
use utoipa::openapi::{Content, OpenApi, RefOr};

static EXAMPLES: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).expect("examples.json is an object"));

/// Adds examples to all bodies in JSON.
pub(crate) fn add(document: &mut OpenApi) {
    let schemas = json!(document.components.as_ref().map(|components| &components.schemas));
    let of = |content: &Content| example(&json!(content.schema), &schemas);
    add_to(&mut document.paths, &of);
    let event = |content: &Content| {
        let reference = json!(content.schema);
        let schema = resolve(&reference, &schemas)?;
        let mut event = EXAMPLES["Event"].clone();
        event["type"] = schema["properties"]["type"]["const"].clone();
        event["data"] = example(&schema["properties"]["data"], &schemas)?;
        Some(event)
    };
    document.webhooks.iter_mut().for_each(|webhooks| add_to(webhooks, &event));
}

fn add_to(paths: &mut Paths, of: &impl Fn(&Content) -> Option<Value>) {
    let complete = |content: Option<&mut RefOr<Content>>| {
        if let Some(RefOr::T(content)) = content {
            content.example = content.example.take().or_else(|| of(content));
        }
    };
    for item in paths.paths.values_mut() {
        for (operation, _) in super::document::operations(item) {
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                complete(body.content.get_mut("application/json"));
            }
            for (_, response) in operation.responses.responses.iter_mut().filter(|(status, _)| status.starts_with('2')) {
                if let RefOr::T(response) = response {
                    complete(response.content.get_mut("application/json"));
                }
            }
        }
    }
}

/// An example of a schema; none if a required field has none.
fn example(schema: &Value, schemas: &Value) -> Option<Value> {
    if let Some(known) = name(schema).and_then(|name| EXAMPLES.get(name)) {
        return Some(known.clone());
    }
    let schema = resolve(schema, schemas)?;
    if let Some(value) = schema.get("const").or(schema.get("example")).or(schema.pointer("/enum/0")) {
        return Some(value.clone());
    }
    if let Some(alternatives) = schema["oneOf"].as_array() {
        return alternatives.iter().find_map(|alternative| example(alternative, schemas));
    }
    match schema["type"].as_str() {
        Some("array") => Some(json!([example(&schema["items"], schemas)?])),
        Some("object") if schema.get("properties").is_some() => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            let fields = required.map(|name| Some((name.to_owned(), example(&schema["properties"][name], schemas)?)));
            fields.collect::<Option<Map<_, _>>>().map(Value::Object)
        }
        None if schema["type"].as_array().is_some_and(|types| types.contains(&json!("null"))) => Some(Value::Null),
        _ => None,
    }
}

fn name(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

fn resolve<'a>(schema: &'a Value, schemas: &'a Value) -> Option<&'a Value> {
    name(schema).map_or(Some(schema), |name| schemas.get(name))
}
