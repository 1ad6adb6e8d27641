use std::collections::BTreeSet;

use super::*;

fn document() -> Value {
    serde_json::to_value(openapi()).expect("the document is JSON")
}

fn each_operation(check: impl Fn(&str, &str, &Value)) {
    let document = document();
    for (path, item) in document["paths"].as_object().expect("paths") {
        for (method, operation) in item.as_object().expect("a path item") {
            check(path, method, operation);
        }
    }
}

#[test]
fn every_operation_has_a_permission_row() {
    let documented = std::sync::Mutex::new(BTreeSet::new());
    each_operation(|_, _, operation| {
        let id = operation["operationId"].as_str().expect("an id").to_owned();
        assert!(documented.lock().expect("no panic").insert(id.clone()), "{id} stands twice");
    });
    let rows: BTreeSet<_> = OPERATIONS.iter().map(|(id, _)| (*id).to_owned()).collect();
    assert_eq!(documented.into_inner().expect("no panic"), rows);
    assert_eq!(rows.len(), OPERATIONS.len());
}

#[test]
fn every_operation_is_described_and_needs_a_key() {
    each_operation(|path, method, operation| {
        let at = format!("{method} {path}");
        assert!(path.starts_with("/v1/"), "{at}");
        assert!(operation["summary"].as_str().is_some_and(|s| !s.is_empty()), "{at}: summary");
        assert_eq!(operation["tags"].as_array().map(Vec::len), Some(1), "{at}: tag");
        assert_eq!(operation["security"], json!([{"bearer": []}]), "{at}: security");
        for status in ["400", "401", "406", "429", "500", "503"] {
            assert!(operation["responses"].get(status).is_some(), "{at}: {status}");
        }
        let success = operation["responses"].as_object().expect("responses").iter().filter(|(status, _)| status.starts_with('2'));
        for (status, response) in success {
            assert!(response["headers"].get("X-Request-Id").is_some(), "{at}: headers of {status}");
            assert!(status == "204" || response.pointer("/content/application~1json/schema").is_some(), "{at}: schema of {status}");
        }
    });
}

#[test]
fn every_reference_leads_somewhere() {
    fn walk(document: &Value, value: &Value) {
        if let Some(reference) = value.get("$ref").and_then(Value::as_str) {
            let pointer = reference.strip_prefix('#').expect("a reference within the document");
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
        value.as_array().into_iter().flatten().for_each(|item| walk(document, item));
        value.as_object().into_iter().flatten().for_each(|(_, item)| walk(document, item));
    }
    let document = document();
    assert!(document["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    walk(&document, &document);
}

#[test]
fn request_bodies_refuse_unknown_fields_and_compile() {
    let document = document();
    each_operation(|path, method, operation| {
        let Some(body) = operation.pointer("/requestBody/content/application~1json/schema") else { return };
        let name =
            body["$ref"].as_str().and_then(|r| r.rsplit('/').next()).unwrap_or_else(|| panic!("{method} {path}: the body has no name"));
        assert_eq!(document["components"]["schemas"][name]["additionalProperties"], json!(false), "{name}");
        let mut schema = schemas().clone();
        schema["$ref"] = format!("#/components/schemas/{name}").into();
        assert!(jsonschema::draft202012::new(&schema).is_ok(), "{name}");
    });
}

#[test]
fn error_bodies_fit_their_schema() {
    let mut schema = schemas().clone();
    schema["$ref"] = "#/components/schemas/Error".into();
    let validator = jsonschema::draft202012::new(&schema).expect("a schema");
    for code in ErrorCode::ALL {
        let body = nuncio_domain::Error::new(*code, "why").with("balance", json!(1.5)).to_body();
        assert!(validator.is_valid(&body), "{body}");
    }
    assert!(!validator.is_valid(&json!({"code": "nonsense", "message": "", "details": {}})));
}

#[test]
fn only_requests_and_fields_that_are_always_there_may_be_null() {
    let document = document();
    let schemas = &document["components"]["schemas"];
    assert_eq!(schemas["Message"]["properties"]["heldReason"]["$ref"], json!("#/components/schemas/HeldReason"));
    assert_eq!(schemas["Message"]["properties"]["text"]["type"], json!("string"));
    assert_eq!(schemas["MessagePage"]["properties"]["nextCursor"]["type"], json!(["string", "null"]));
    assert_eq!(schemas["SendMessage"]["properties"]["text"]["type"], json!(["string", "null"]));
    assert_eq!(schemas["ListRow"]["properties"]["description"]["type"], json!(["string", "null"]), "reached through SendMessage");
}

/// The strings below a schema that have no longest form.
fn endless(document: &Value, schema: &Value, at: &str, seen: &mut BTreeSet<String>, found: &mut Vec<String>) {
    if !schema.is_object() {
        return;
    }
    if let Some(name) = schema["$ref"].as_str().and_then(|reference| reference.rsplit('/').next()) {
        if seen.insert(name.to_owned()) {
            endless(document, &document["components"]["schemas"][name], name, seen, found);
        }
        return;
    }
    let is_string = schema["type"] == "string" || schema["type"].as_array().is_some_and(|types| types.contains(&json!("string")));
    if is_string && ["maxLength", "enum", "const"].iter().all(|keyword| schema.get(keyword).is_none()) {
        found.push(at.to_owned());
    }
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        endless(document, property, &format!("{at}.{name}"), seen, found);
    }
    for keyword in ["items", "additionalProperties", "oneOf", "anyOf", "allOf", "prefixItems", "propertyNames", "not"] {
        match &schema[keyword] {
            Value::Array(several) => several.iter().for_each(|one| endless(document, one, at, seen, found)),
            one => endless(document, one, &format!("{at}.{keyword}"), seen, found),
        }
    }
}

#[test]
fn every_string_of_a_request_has_a_longest_form() {
    let document = document();
    let seen = std::sync::Mutex::new(BTreeSet::new());
    each_operation(|path, method, operation| {
        let Some(body) = operation.pointer("/requestBody/content/application~1json/schema") else { return };
        let mut found = Vec::new();
        endless(&document, body, &format!("{method} {path}"), &mut seen.lock().expect("no panic"), &mut found);
        assert!(found.is_empty(), "{found:?}");
    });
    assert!(seen.into_inner().expect("no panic").contains("SendMessage"));
}
