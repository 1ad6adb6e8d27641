//! Parses JSON into types of the document, and collects all field errors.

use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::{Draft, Validator};
use nuncio_domain::{Error, ErrorCode, FieldError, limits};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::ToSchema;

use super::faults::{Found, Unknown, member, or_body};
use super::objects::Objects;
use super::scan::{RESERVED, Scan, scan};
use super::short::{self, Short};

/// Compiled schemas of request bodies by name, compiled when a body is first invalid.
#[derive(Debug)]
pub(crate) struct Validators {
    schemas: fn() -> &'static Value,
    compiled: Mutex<HashMap<String, Option<Arc<Validator>>>>,
}

impl Validators {
    /// `schemas` returns `{"components": {"schemas": …}}` of the document.
    pub(crate) fn new(schemas: fn() -> &'static Value) -> Self {
        Self { schemas, compiled: Mutex::default() }
    }

    /// Parses a body. Only an invalid one is parsed again, to collect all field errors.
    pub(crate) fn parse<T: DeserializeOwned + ToSchema>(&self, json: &[u8], lenient: bool) -> Result<T, Error> {
        let Scan { depth, values, nul, longest, reserved } = scan(json);
        if depth > limits::JSON_DEPTH {
            return Err(Error::field("body", format!("is nested {depth} levels deep; at most {} are allowed", limits::JSON_DEPTH)));
        }
        if values > limits::JSON_VALUES {
            return Err(Error::field("body", format!("has {values} values; at most {} are allowed", limits::JSON_VALUES)));
        }
        if reserved {
            return Err(Error::field("body", format!("has a field whose name begins with {RESERVED}; such names are reserved")));
        }
        // Values that pass the schema can be stored and shown, so a long string must pass it first.
        let mut found = Found::default();
        if longest > limits::STRING {
            let short: Short = serde_json::from_slice(json).map_err(not_json)?;
            found = self.violations::<T>(&short.0);
        }
        let is_right = |found: &Found| found.faults.is_empty() && (lenient || found.unknown.is_empty());
        let mut reason = None;
        if is_right(&found) {
            match from_slice(json) {
                Ok(value) if !nul => return Ok(value),
                Ok(_) => {}
                Err(error) => reason = Some(error.to_string()),
            }
            let short: Short = serde_json::from_slice(json).map_err(not_json)?;
            found = self.violations::<T>(&short.0);
            if nul {
                find_nul(&short.0, String::new(), &mut found.faults);
            }
        }
        let Found { mut faults, unknown } = found;
        if !lenient {
            faults.extend(unknown.into_iter().map(|unknown| unknown.fault));
            match reason {
                Some(reason) if faults.is_empty() => faults.push(FieldError::new("body", reason)),
                _ => {}
            }
        } else if faults.is_empty() {
            let mut value: Value = serde_json::from_slice(json).map_err(not_json)?;
            unknown.iter().for_each(|unknown| remove(&mut value, unknown));
            // Serialised again: only from text are numbers parsed that fit no type.
            let json = serde_json::to_vec(&value).map_err(Error::internal)?;
            return from_slice(&json).map_err(|error| Error::field("body", error.to_string()));
        }
        Err(Error::invalid(faults))
    }

    fn violations<T: ToSchema>(&self, value: &Value) -> Found {
        let (name, schemas) = (T::name(), (self.schemas)());
        let mut compiled = self.compiled.lock();
        let validator = compiled.entry(name.to_string()).or_insert_with(|| compile::<T>(schemas, &name).map(Arc::new)).clone();
        drop(compiled);
        validator.map(|validator| Found::new(&validator, schemas, value)).unwrap_or_default()
    }
}

fn from_slice<T: DeserializeOwned>(json: &[u8]) -> serde_json::Result<T> {
    let mut read = serde_json::Deserializer::from_slice(json);
    let value = T::deserialize(Objects(&mut read))?;
    read.end()?;
    Ok(value)
}

fn not_json(error: serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    Error::new(ErrorCode::InvalidJson, format!("the body is not JSON: {error}")).with("line", line.into()).with("column", column.into())
}

/// Compiles the schema of a type; adds it first if the document lacks it, as for empty bodies.
fn compile<T: ToSchema>(schemas: &Value, name: &str) -> Option<Validator> {
    let mut schema = schemas.clone();
    schema.pointer_mut("/components/schemas")?.as_object_mut()?.entry(name).or_insert_with(|| serde_json::json!(T::schema()));
    schema["$ref"] = format!("#/components/schemas/{name}").into();
    jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true).build(&schema).ok()
}

fn find_nul(value: &Value, path: String, faults: &mut Vec<FieldError>) {
    if faults.len() >= limits::FIELD_ERRORS {
        return;
    }
    let mut check = |text: &str, path: &str| {
        if text.contains('\0') {
            faults.push(FieldError::new(or_body(path), "must not contain U+0000"));
        }
    };
    match value {
        Value::String(text) => check(text, &path),
        Value::Array(items) => items.iter().enumerate().for_each(|(n, item)| find_nul(item, format!("{path}[{n}]"), faults)),
        Value::Object(members) => {
            for (name, item) in members {
                let path = member(&path, &name.replace('\0', "\u{2400}"));
                if name.contains('\0') {
                    faults.push(FieldError::new(path.as_str(), "has a name that contains U+0000"));
                }
                find_nul(item, path, faults);
            }
        }
        _ => {}
    }
}

fn remove(value: &mut Value, unknown: &Unknown) {
    if let Some(object) = value.pointer_mut(&unknown.object).and_then(Value::as_object_mut) {
        match unknown.name.len() < short::NAME {
            true => drop(object.remove(&unknown.name)),
            false => object.retain(|name, _| !name.starts_with(&unknown.name)),
        }
    }
}
