//! Examples for the document.
//!
//! `examples.json` has one per request, resource and error, by schema name. Those of responses and webhooks are composed from them. Those of
//! parameters come from their schema, or from [`named`].

use std::sync::LazyLock;

use nuncio_core::broadcasts::CSV_HEAD;
use nuncio_domain::{BroadcastId, ContactId, EventId, MessageId, SenderId};
use serde_json::{Map, Value, json};
use utoipa::PartialSchema;
use utoipa::openapi::example::ExampleBuilder;
use utoipa::openapi::path::{ParameterBuilder, Paths};
use utoipa::openapi::{Content, OpenApi, RefOr};

static EXAMPLES: LazyLock<Map<String, Value>> =
    LazyLock::new(|| serde_json::from_str(include_str!("examples.json")).expect("examples.json is an object"));

const JSON: &str = "application/json";
/// A row of broadcast results as CSV.
const RESULT: &str = "bct_01hgw2bbg0e9tatjpp9vyrkcyk,+34600111222,phone,delivered,sms,msg_01hgw2bbg0e9tatjpp9vyrkcyk,,,0.035,\
                      2026-01-31T09:30:01.000Z,2026-01-31T09:00:00.000Z";

/// Adds an example to every body and every parameter.
pub(crate) fn add(document: &mut OpenApi) {
    let schemas = json!(document.components.as_ref().map(|components| &components.schemas));
    std::iter::once(&mut document.paths).chain(&mut document.webhooks).for_each(|paths| add_to_parameters(paths, &schemas));
    let of = |content: &mut Content| complete(content, &schemas);
    add_to(&mut document.paths, &of);
    for response in document.components.iter_mut().flat_map(|components| components.responses.values_mut()) {
        if let RefOr::T(response) = response
            && let Some(RefOr::T(content)) = response.content.get_mut(JSON)
        {
            of(content);
        }
    }
    let event = |content: &mut Content| {
        content.example = content.example.take().or_else(|| event(&json!(content.schema), &schemas));
    };
    document.webhooks.iter_mut().for_each(|webhooks| add_to(webhooks, &event));
}

fn add_to(paths: &mut Paths, of: &impl Fn(&mut Content)) {
    for item in paths.paths.values_mut() {
        for (operation, _) in crate::operations::with_body(item) {
            let id = operation.operation_id.clone().unwrap_or_default();
            let show = |(media, content): (&String, &mut RefOr<Content>)| {
                let RefOr::T(content) = content else { return };
                match text(&id, media) {
                    Some(text) => content.example = Some(Value::String(text)),
                    None if media == JSON => of(content),
                    None => {}
                }
            };
            if let Some(RefOr::T(body)) = &mut operation.request_body {
                body.content.iter_mut().for_each(show);
            }
            for response in operation.responses.responses.values_mut() {
                if let RefOr::T(response) = response {
                    response.content.iter_mut().for_each(show);
                }
            }
        }
    }
}

fn add_to_parameters(paths: &mut Paths, schemas: &Value) {
    for item in paths.paths.values_mut() {
        for (operation, _) in crate::operations::with_body(item) {
            for parameter in operation.parameters.iter_mut().flatten() {
                let RefOr::T(parameter) = parameter else { continue };
                let known = json!(parameter);
                if known.get("example").is_none() {
                    let example =
                        example(&known["schema"], schemas).filter(|example| !example.is_null()).or_else(|| named(&parameter.name));
                    *parameter = ParameterBuilder::from(std::mem::take(parameter)).example(example).build();
                }
            }
        }
    }
}

/// Returns the example of a parameter whose schema has none.
fn named(parameter: &str) -> Option<Value> {
    Some(match parameter {
        "limit" => json!(50),
        "cursor" => json!("AXqQ3nB2dGVzdC1jdXJzb3I"),
        "since" => json!("2026-01-01T00:00:00Z"),
        "until" => json!("2026-02-01T00:00:00Z"),
        "broadcastId" => id::<BroadcastId>(),
        "contactId" => id::<ContactId>(),
        "senderId" | "Service-Sender" => id::<SenderId>(),
        "resourceId" => id::<MessageId>(),
        "metadata" => json!({"plan": "pro"}),
        "name" => json!("Ana"),
        "contains" => json!("555"),
        "dryRun" => json!(true),
        "idempotencyKey" | "Idempotency-Key" => json!("order-17"),
        "importId" => json!("people-2026-01"),
        "recipient" => json!("phone"),
        "Last-Event-ID" => json!("01hgw2bbg0-4"),
        "Prefer" => json!("handling=strict"),
        "webhook-id" => id::<EventId>(),
        "webhook-timestamp" => json!("1769851800"),
        "webhook-signature" => json!("v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="),
        _ => return None,
    })
}

/// Returns the example of an identifier.
fn id<T: PartialSchema>() -> Value {
    json!(T::schema()).pointer("/examples/0").cloned().unwrap_or_default()
}

/// Returns the example of a body that is not JSON.
fn text(operation: &str, media: &str) -> Option<String> {
    Some(match (operation, media) {
        ("importBroadcastContacts", "text/csv") => "recipient,name\n+34600111222,Ana\n+34600333444,Luis\n".to_owned(),
        ("importBroadcastContacts", "application/x-ndjson") => [("+34600111222", "Ana"), ("+34600333444", "Luis")]
            .map(|(to, name)| format!("{}\n", json!({"recipient": to, "name": name})))
            .concat(),
        ("exportBroadcastResults", "text/csv") => format!("{CSV_HEAD}{RESULT}\r\n"),
        ("exportBroadcastResults", "application/x-ndjson") => format!("{}\n", EXAMPLES["BroadcastContact"]),
        ("listEvents", "text/event-stream") => {
            let event = &EXAMPLES["Event"];
            format!("event: {}\nid: 01hgw2bbg0-4\ndata: {event}\n\n", event["type"].as_str().unwrap_or_default())
        }
        _ => return None,
    })
}

/// Adds an example to a body, or one per code if the body has several errors.
fn complete(content: &mut Content, schemas: &Value) {
    let schema = json!(content.schema);
    if schema.get("discriminator").is_none() {
        content.example = content.example.take().or_else(|| example(&schema, schemas));
        return;
    }
    for error in schema["oneOf"].as_array().into_iter().flatten().filter_map(|error| example(error, schemas)) {
        let code = error["code"].as_str().unwrap_or_default().to_owned();
        content.examples.insert(code, ExampleBuilder::new().value(Some(error)).build().into());
    }
}

/// Returns an event of the schema's type with its data.
fn event(schema: &Value, schemas: &Value) -> Option<Value> {
    let schema = resolve(schema, schemas)?;
    let mut event = EXAMPLES["Event"].clone();
    event["type"] = schema["properties"]["type"]["const"].clone();
    event["data"] = example(&schema["properties"]["data"], schemas)?;
    Some(event)
}

/// Returns an example of a schema; `None` if a required field has none.
fn example(schema: &Value, schemas: &Value) -> Option<Value> {
    if let Some(known) = name(schema).and_then(|name| EXAMPLES.get(name)) {
        return Some(known.clone());
    }
    let schema = resolve(schema, schemas)?;
    if let Some(value) = schema.get("const").or(schema.get("example")).or(schema.pointer("/examples/0")).or(schema.pointer("/enum/0")) {
        return Some(value.clone());
    }
    if let Some(first) = alternatives(schema).iter().find_map(|alternative| example(alternative, schemas)) {
        return Some(first);
    }
    match schema["type"].as_str() {
        Some("array") => {
            let items = &schema["items"];
            let whole = name(items).is_some_and(|name| EXAMPLES.contains_key(name));
            match resolve(items, schemas).map(alternatives) {
                Some(kinds @ [_, _, ..]) if !whole => kinds.iter().map(|kind| example(kind, schemas)).collect(),
                _ => Some(json!([example(items, schemas)?])),
            }
        }
        Some("object") if schema["maxProperties"] == 0 => Some(json!({})),
        Some("object") if schema.get("properties").is_some() => {
            let required = schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str);
            // The original of a repeated request, usually present.
            let originals = schema["properties"].as_object().into_iter().flatten().filter(|(_, field)| field.get("anyOf").is_some());
            let names = required.chain(originals.map(|(name, _)| name.as_str()));
            let fields = names.map(|name| Some((name.to_owned(), example(&schema["properties"][name], schemas)?)));
            fields.collect::<Option<Map<_, _>>>().map(Value::Object)
        }
        None if schema["type"].as_array().is_some_and(|types| types.contains(&json!("null"))) => Some(Value::Null),
        _ => None,
    }
}

fn alternatives(schema: &Value) -> &[Value] {
    schema.get("oneOf").or(schema.get("anyOf")).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

fn name(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.strip_prefix("#/components/schemas/")
}

fn resolve<'a>(schema: &'a Value, schemas: &'a Value) -> Option<&'a Value> {
    name(schema).map_or(Some(schema), |name| schemas.get(name))
}
