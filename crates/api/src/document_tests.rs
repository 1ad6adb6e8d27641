use std::collections::BTreeSet;

use super::*;
use crate::operations::{READ_FROM_PROVIDERS, handlers};
use crate::published::{PUBLISHED, schemas};

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
fn the_published_document_is_that_of_the_code() {
    let document: Value = serde_json::from_slice(&PUBLISHED).expect("JSON");
    assert!(document == self::document(), "run `cargo xtask generate`");
}

#[test]
fn every_operation_has_a_permission_row() {
    let documented = std::sync::Mutex::new(BTreeSet::new());
    each_operation(|_, _, operation| {
        let id = operation["operationId"].as_str().expect("an id").to_owned();
        assert!(documented.lock().expect("no panic").insert(id.clone()), "{id} stands twice");
    });
    let rows: BTreeSet<_> = handlers().map(|(handler, _)| operation_id(handler)).collect();
    assert_eq!(documented.into_inner().expect("no panic"), rows);
    assert_eq!(rows.len(), handlers().count());
    assert!(READ_FROM_PROVIDERS.iter().all(|handler| handlers().any(|(known, _)| known == *handler)));
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
            let described =
                |content: &serde_json::Map<String, Value>| !content.is_empty() && content.values().all(|kind| kind.get("schema").is_some());
            assert!(status == "204" || response["content"].as_object().is_some_and(described), "{at}: schema of {status}");
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

fn validator(name: &str) -> jsonschema::Validator {
    let mut schema = schemas().clone();
    schema["$ref"] = format!("#/components/schemas/{name}").into();
    jsonschema::draft202012::new(&schema).expect("a schema")
}

// holds: errors.details
#[test]
fn the_code_of_an_error_decides_what_its_details_are() {
    let any = validator("Error");
    assert!(!any.is_valid(&json!({"code": "nonsense", "message": "", "details": {}})));
    let details = |code: ErrorCode| match code {
        ErrorCode::InvalidJson => json!({"line": 1, "column": 2}),
        ErrorCode::BroadcastNotEditable => json!({"currentStatus": "sending", "allowedFrom": ["draft"]}),
        ErrorCode::InsufficientBalance => json!({"required": 1.5, "balance": 1, "reserved": 0, "available": 1}),
        ErrorCode::Forbidden => json!({"requiredPermission": "messages:send"}),
        ErrorCode::InternalError => json!({"requestId": "req_1"}),
        ErrorCode::StorageQuotaExceeded => json!({"storedBytes": 9, "maxBytes": 10, "requiredBytes": 2}),
        _ => json!({}),
    };
    for code in error_schemas::common() {
        let own = validator(&error_schemas::schema_name(code));
        let mut body = nuncio_domain::Error::new(code, "why").to_body();
        body["details"] = details(code);
        assert!(any.is_valid(&body) && own.is_valid(&body), "{body}");
        for other in error_schemas::common().filter(|other| *other != code) {
            assert!(!validator(&error_schemas::schema_name(other)).is_valid(&body), "{body} is not {}", other.as_str());
        }
    }
    assert!(!any.is_valid(&json!({"code": "insufficient_balance", "message": "", "details": {"required": "messages:send"}})));
}

// holds: errors.codes
#[test]
fn every_error_response_says_which_codes_it_may_have() {
    let document = document();
    each_operation(|path, method, operation| {
        for (status, response) in
            operation["responses"].as_object().expect("responses").iter().filter(|(status, _)| status.as_str() >= "400")
        {
            let at = format!("{method} {path}: {status}");
            let response = response["$ref"].as_str().map_or(response, |to| document.pointer(&to[1..]).expect("a response"));
            let schema = &response["content"]["application/json"]["schema"];
            let alternatives = schema["oneOf"].as_array().map_or_else(|| vec![schema.clone()], Vec::clone);
            let text = response["description"].as_str().expect("a description");
            for alternative in alternatives {
                let name =
                    alternative["$ref"].as_str().and_then(|to| to.rsplit('/').next()).unwrap_or_else(|| panic!("{at}: {alternative}"));
                assert_ne!(name, "Error", "{at}");
                let codes: Vec<_> = error_schemas::common().filter(|code| error_schemas::schema_name(*code) == name).collect();
                assert!(codes.iter().all(|code| code.status().to_string() == *status), "{at}: {name}");
                assert!(codes.iter().all(|code| text.contains(&format!("`{}`", code.as_str()))), "{at}: {text}");
                assert!(!codes.is_empty() || name.ends_with("Conflict"), "{at}: {name}");
            }
        }
    });
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

/// Collects the strings of a schema that have no maximum length.
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

// holds: openapi.examples
#[test]
fn every_body_and_parameter_has_an_example_that_fits_its_schema() {
    let document = document();
    let registry =
        jsonschema::Registry::new().add("nuncio:/", document.clone()).and_then(|registry| registry.prepare()).expect("a document");
    let options =
        || jsonschema::options().with_draft(jsonschema::Draft::Draft202012).with_registry(&registry).should_validate_formats(true);
    let check = |at: &str, content: &Value| {
        let several = content["examples"].as_object().into_iter().flat_map(|examples| examples.values()).map(|example| &example["value"]);
        let examples: Vec<_> = content.get("example").into_iter().chain(several).collect();
        assert!(!examples.is_empty(), "{at}: no example of {}", content["schema"]);
        let mut schema = content["schema"].to_string();
        schema = schema.replace("\"#/components", "\"nuncio:/#/components");
        let schema: Value = serde_json::from_str(&schema).expect("JSON");
        let validator = options().build(&schema).expect("a schema");
        for example in examples {
            let faults: Vec<_> = validator.iter_errors(example).map(|error| format!("{}: {error}", error.instance_path())).collect();
            assert!(faults.is_empty(), "{at}: {faults:?}");
        }
    };
    let check_all = |at: &str, body: &Value| {
        for (media, content) in body["content"].as_object().into_iter().flatten() {
            check(&format!("{at} {media}"), content);
        }
    };
    for section in ["paths", "webhooks"] {
        for (path, item) in document[section].as_object().expect("paths") {
            for (method, operation) in item.as_object().expect("a path item") {
                let at = format!("{method} {path}");
                check_all(&at, &operation["requestBody"]);
                for parameter in operation["parameters"].as_array().into_iter().flatten() {
                    let at = format!("{at} {}", parameter["name"]);
                    assert!(parameter["description"].as_str().is_some_and(|text| !text.is_empty()), "{at}: description");
                    assert!(parameter.get("example").is_some_and(|example| !example.is_null()), "{at}: example");
                    check(&at, parameter);
                }
                for (status, response) in operation["responses"].as_object().expect("responses") {
                    check_all(&format!("{at} {status}"), response);
                }
            }
        }
    }
    for (name, response) in document["components"]["responses"].as_object().expect("responses") {
        check_all(name, response);
    }
    let of = |pointer: &str| document.pointer(pointer).unwrap_or_else(|| panic!("{pointer}"));
    assert_eq!(of("/paths/~1v1~1messages/get/responses/200/content/application~1json/example")["items"][0]["status"], "delivered");
}

// holds: webhooks.documented
#[test]
fn every_type_of_event_is_a_webhook() {
    let document = document();
    for kind in nuncio_domain::event::EventType::ALL {
        let webhook = &document["webhooks"][kind.as_str()]["post"];
        let schema = webhook["requestBody"]["content"]["application/json"]["schema"]["$ref"].as_str().expect("a schema");
        let schema = document.pointer(&schema[1..]).expect("a schema");
        assert_eq!(schema["properties"]["type"]["const"], kind.as_str());
        assert!(schema["properties"]["data"]["$ref"].as_str().is_some_and(|name| name.ends_with("EventData")), "{kind}");
        assert_eq!(webhook["parameters"].as_array().map(Vec::len), Some(3), "{kind}: the headers of Standard Webhooks");
    }
}
