//! Validates all responses and webhooks of a test against the OpenAPI document.
//!
//! Stricter than clients need to be: undocumented fields and headers are violations, too.

use std::collections::HashMap;
use std::sync::{Arc, LazyLock};

use axum::http::{HeaderMap, Method};
use jsonschema::error::ValidationErrorKind;
use jsonschema::{Draft, Registry, Validator};
use nuncio_domain::ErrorCode;
use parking_lot::Mutex;
use serde_json::{Map, Value, json};

/// URI of the document in the schema registry.
const DOCUMENT: &str = "nuncio:/openapi.json";

/// General HTTP headers, which operations do not document.
const PLAIN: &[&str] = &["content-type", "content-length", "cache-control", "connection", "x-content-type-options"];

/// Shared by all tests of a process: compiling schemas is slow.
static CONTRACT: LazyLock<Contract> = LazyLock::new(|| Contract::new(json!(nuncio_api::openapi())));

/// A request and its response.
#[derive(Clone, Copy)]
pub(crate) struct Exchange<'a> {
    pub(crate) method: &'a str,
    /// Path and query.
    pub(crate) target: &'a str,
    pub(crate) status: u16,
    pub(crate) headers: &'a HeaderMap,
    /// Response body; `None` while it is being sent.
    pub(crate) body: Option<&'a [u8]>,
}

/// Fails the test if a response violates the document. Only API paths are documented.
pub(crate) fn check(exchange: Exchange<'_>) {
    let violations = CONTRACT.response(exchange);
    let Exchange { method, target, status, body, .. } = exchange;
    let body = String::from_utf8_lossy(body.unwrap_or_default());
    assert!(violations.is_empty(), "{method} {target}: {status} contradicts the OpenAPI document:\n- {}\n{body}", violations.join("\n- "));
}

/// Returns how the body of a webhook violates the document.
pub(crate) fn webhook(body: &[u8]) -> Vec<String> {
    CONTRACT.webhook(body)
}

/// Returns the operation for a method of a documented path. Methods are case-sensitive: `PoST` has none.
pub fn operation<'a>(item: &'a Value, method: &str) -> Option<&'a Value> {
    let known = ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE"].contains(&method);
    let method = if method == Method::HEAD { "get".to_owned() } else { method.to_ascii_lowercase() };
    item.get(method).filter(|_| known)
}

/// The document, with all schemas closed to additional fields.
struct Contract {
    document: Value,
    registry: Registry<'static>,
    validators: Mutex<HashMap<String, Arc<Validator>>>,
}

impl Contract {
    fn new(open: Value) -> Self {
        let mut document = open.clone();
        let schemas = document["components"]["schemas"].as_object_mut().expect("schemas");
        schemas.values_mut().for_each(|schema| close(schema, &open));
        absolute(&mut document);
        let registry = Registry::new().add(DOCUMENT, document.clone()).and_then(|registry| registry.prepare()).expect("a document");
        Self { document, registry, validators: Mutex::default() }
    }

    fn response(&self, exchange: Exchange<'_>) -> Vec<String> {
        let path = exchange.target.split('?').next().unwrap_or_default();
        if !path.starts_with("/v1/") {
            return Vec::new();
        }
        let Some((template, item)) = self.path(path) else { return self.nowhere(exchange, ErrorCode::NotFound) };
        let Some(operation) = operation(item, exchange.method) else { return self.nowhere(exchange, ErrorCode::MethodNotAllowed) };
        let Some(response) = operation["responses"].get(exchange.status.to_string()) else {
            return vec![format!("the status {} is not documented for {template}", exchange.status)];
        };
        let response = self.resolve(response);
        let mut violations = self.headers(response, exchange.headers);
        match exchange.body {
            Some(body) if exchange.method == Method::HEAD => violations.extend((!body.is_empty()).then(|| "HEAD has a body".to_owned())),
            Some(body) => violations.extend(self.content(response, exchange.headers, body)),
            None => {}
        }
        violations
    }

    /// Validates the response to a request without an operation.
    fn nowhere(&self, exchange: Exchange<'_>, code: ErrorCode) -> Vec<String> {
        if matches!(exchange.status, 401 | 429) {
            return Vec::new(); // a wrong key is rejected before routing
        }
        if exchange.status != code.status() {
            return vec![format!("no such operation is documented; expected {}", code.status())];
        }
        let body = exchange.body.filter(|_| exchange.method != Method::HEAD);
        body.map(|body| self.json(&json!({"$ref": format!("{DOCUMENT}#/components/schemas/Error")}), body)).unwrap_or_default()
    }

    fn headers(&self, response: &Value, headers: &HeaderMap) -> Vec<String> {
        let empty = Map::new();
        let documented = response["headers"].as_object().unwrap_or(&empty);
        let unknown = headers.keys().map(|name| name.as_str()).filter(|name| !PLAIN.contains(name));
        let unknown = unknown.filter(|name| !documented.keys().any(|known| known.eq_ignore_ascii_case(name)));
        let mut violations: Vec<_> = unknown.map(|name| format!("the header {name} is not documented")).collect();
        for (name, header) in documented {
            let header = self.resolve(header);
            match headers.get(name).map(|value| value.to_str().unwrap_or_default()) {
                None if header["required"] == true => violations.push(format!("the header {name} is missing")),
                Some(value) if header["schema"]["type"] == "integer" && value.parse::<i64>().is_err() => {
                    violations.push(format!("the header {name} is {value:?}, not a whole number"));
                }
                _ => {}
            }
        }
        violations
    }

    fn content(&self, response: &Value, headers: &HeaderMap, body: &[u8]) -> Vec<String> {
        let header = headers.get("content-type").and_then(|value| value.to_str().ok());
        let kind = header.and_then(|value| value.split(';').next()).unwrap_or_default().trim();
        match (response["content"].as_object(), response["content"].get(kind)) {
            (None, _) if body.is_empty() && kind.is_empty() => Vec::new(),
            (None, _) => vec![format!("no body is documented, but there are {} bytes of {kind:?}", body.len())],
            (Some(_), None) => vec![format!("the content type {kind:?} is not documented")],
            (Some(_), Some(content)) if kind == "application/json" => self.json(&content["schema"], body),
            _ => Vec::new(),
        }
    }

    fn webhook(&self, body: &[u8]) -> Vec<String> {
        let kind = serde_json::from_slice::<Value>(body).unwrap_or_default()["type"].as_str().unwrap_or_default().to_owned();
        let Some(webhook) = self.document["webhooks"].get(&kind) else { return vec![format!("the webhook {kind:?} is not documented")] };
        self.json(&webhook["post"]["requestBody"]["content"]["application/json"]["schema"], body)
    }

    fn json(&self, schema: &Value, body: &[u8]) -> Vec<String> {
        let body: Value = match serde_json::from_slice(body) {
            Ok(body) => body,
            Err(error) => return vec![format!("the body is not JSON: {error}")],
        };
        let validator = self.validator(schema);
        let mut violations = Vec::new();
        for error in validator.iter_errors(&body) {
            violations.push(format!("{}: {}", error.instance_path(), error.masked()));
            if let ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } = error.kind() {
                let inner = context.iter().enumerate().flat_map(|(n, errors)| errors.iter().map(move |error| (n, error)));
                violations.extend(inner.map(|(n, error)| format!("  alternative {n}: {}: {}", error.instance_path(), error.masked())));
            }
        }
        violations
    }

    fn validator(&self, schema: &Value) -> Arc<Validator> {
        let key = schema.to_string();
        if let Some(validator) = self.validators.lock().get(&key) {
            return Arc::clone(validator);
        }
        let options = jsonschema::options().with_draft(Draft::Draft202012).with_registry(&self.registry).should_validate_formats(true);
        let validator = Arc::new(options.build(schema).expect("a schema"));
        self.validators.lock().insert(key, Arc::clone(&validator));
        validator
    }

    /// Returns the documented path that matches; the one with the fewest parameters has priority.
    fn path(&self, path: &str) -> Option<(&String, &Value)> {
        let parameters = |template: &str| template.matches('{').count();
        let paths = self.document["paths"].as_object().expect("paths");
        paths.iter().filter(|(template, _)| is_of(path, template)).min_by_key(|(template, _)| parameters(template))
    }

    fn resolve<'a>(&'a self, value: &'a Value) -> &'a Value {
        let pointer = value["$ref"].as_str().and_then(|reference| reference.strip_prefix(DOCUMENT)?.strip_prefix('#'));
        pointer.map_or(value, |pointer| self.document.pointer(pointer).expect("a reference that leads somewhere"))
    }
}

fn is_of(path: &str, template: &str) -> bool {
    let (path, template): (Vec<_>, Vec<_>) = (path.split('/').collect(), template.split('/').collect());
    path.len() == template.len() && path.iter().zip(template).all(|(a, b)| if b.starts_with('{') { !a.is_empty() } else { *a == b })
}

/// Closes a schema to fields it does not name.
fn close(schema: &mut Value, open: &Value) {
    let Some(object) = schema.as_object_mut() else { return };
    if let Some(Value::Array(parts)) = object.get_mut("allOf") {
        // A part must accept the fields of the others.
        for part in parts {
            if let Some(pointer) = part["$ref"].as_str().and_then(|reference| reference.strip_prefix('#')) {
                *part = open.pointer(pointer).cloned().expect("a reference that leads somewhere");
            }
            close_fields(part.as_object_mut().expect("a schema"), open);
        }
        object.insert("unevaluatedProperties".to_owned(), false.into());
        return;
    }
    close_fields(object, open);
    if object.contains_key("properties") && !object.contains_key("additionalProperties") {
        object.insert("additionalProperties".to_owned(), false.into());
    }
}

fn close_fields(object: &mut Map<String, Value>, open: &Value) {
    for (keyword, inner) in object {
        match (keyword.as_str(), inner) {
            ("properties", Value::Object(fields)) => fields.values_mut().for_each(|field| close(field, open)),
            ("oneOf" | "anyOf" | "prefixItems", Value::Array(items)) => items.iter_mut().for_each(|item| close(item, open)),
            ("items" | "additionalProperties", item) => close(item, open),
            _ => {}
        }
    }
}

/// Makes every reference absolute, so that parts of the document can be compiled separately.
fn absolute(value: &mut Value) {
    match value {
        Value::Object(members) => {
            for (name, member) in members {
                match member {
                    Value::String(text) if name == "$ref" && text.starts_with('#') => text.insert_str(0, DOCUMENT),
                    member => absolute(member),
                }
            }
        }
        Value::Array(items) => items.iter_mut().for_each(absolute),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(given: &[(&'static str, &'static str)]) -> HeaderMap {
        let common = [("x-request-id", "req_1"), ("content-type", "application/json")];
        common.iter().chain(given).map(|(name, value)| (name.parse().expect("a name"), value.parse().expect("a value"))).collect()
    }

    fn violations(target: &str, status: u16, given: &[(&'static str, &'static str)], body: &Value) -> String {
        let (headers, body) = (headers(given), body.to_string());
        let exchange = Exchange { method: "GET", target, status, headers: &headers, body: Some(body.as_bytes()) };
        CONTRACT.response(exchange).join("\n")
    }

    // holds: openapi.responses
    #[test]
    fn what_the_document_does_not_say_is_a_violation() {
        let balance = json!({"balance": 1, "reserved": 0, "available": 1.5, "currency": "usd", "totalSpent": 0});
        let with = |name: &str, value: Value| {
            let mut changed = balance.clone();
            changed[name] = value;
            changed
        };
        let target = "/v1/balance?x=1";
        assert_eq!(violations(target, 200, &[("x-ratelimit-limit", "60")], &balance), "");
        assert!(violations(target, 200, &[], &with("more", json!(1))).contains("more"), "a field");
        assert!(violations(target, 200, &[], &with("balance", json!("1"))).contains("/balance"), "a type");
        assert!(violations(target, 200, &[], &json!({})).contains("required"), "a missing field");
        assert!(violations(target, 409, &[], &balance).contains("409"), "a status");
        assert!(violations(target, 200, &[("x-more", "1")], &balance).contains("x-more"), "a header");
        assert!(violations(target, 200, &[("x-ratelimit-limit", "many")], &balance).contains("X-RateLimit-Limit"), "a header's type");
        assert!(violations("/v1/nowhere", 200, &[], &balance).contains("404"), "a path");
    }

    #[test]
    fn details_are_those_of_the_code() {
        let error =
            |code: &str, details: Value| json!({"code": code, "message": "m", "details": details, "error": {"code": code, "message": "m"}});
        let told = [("x-should-retry", "false")];
        let forbidden = error("forbidden", json!({"requiredPermission": "messages:read"}));
        assert_eq!(violations("/v1/balance", 403, &told, &forbidden), "");
        assert!(violations("/v1/balance", 403, &[], &forbidden).contains("X-Should-Retry"), "a missing header");
        for wrong in [
            error("forbidden", json!({"required": "messages:read"})),
            error("forbidden", json!({"requiredPermission": "messages:read", "more": 1})),
            error("unauthorized", json!({})),
        ] {
            assert_ne!(violations("/v1/balance", 403, &told, &wrong), "", "{wrong}");
        }
    }
}
