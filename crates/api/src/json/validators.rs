//! Parses JSON into types of the document, and collects all field errors.

use std::borrow::Cow;
use std::collections::HashMap;
use std::sync::Arc;

use jsonschema::{Draft, Validator};
use nuncio_domain::address::Parsed;
use nuncio_domain::{Error, ErrorCode, FieldError, limits};
use parking_lot::Mutex;
use serde::de::DeserializeOwned;
use serde_json::Value;
use utoipa::ToSchema;
use utoipa::openapi::{RefOr, Schema};

use super::faults::{Found, RECIPIENT, member, or_body};
use super::objects::Objects;
use super::scan::{RESERVED, Scan, scan};
use super::short::Short;

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

    /// Parses a body whose parts are parsed later, each with its own checks.
    pub(crate) fn parse_outline<T: DeserializeOwned + ToSchema>(&self, json: &[u8], lenient: bool) -> Result<T, Error> {
        if scan(json).values <= limits::JSON_VALUES
            && let Ok(outline) = from_slice(json, lenient)
        {
            return Ok(outline);
        }
        self.parse(json, lenient)
    }

    /// Parses a body. Only an invalid one is parsed again, to collect all field errors.
    pub(crate) fn parse<T: DeserializeOwned + ToSchema>(&self, json: &[u8], lenient: bool) -> Result<T, Error> {
        let described = Described { name: T::name, schema: T::schema };
        let nul = self.check(json, &described, lenient)?;
        let reason = match from_slice(json, lenient) {
            Ok(value) if !nul => return Ok(value),
            parsed => parsed.err(),
        };
        Err(self.explain(json, &described, lenient, nul, reason))
    }

    /// Checks a body before it is parsed; returns whether it contains U+0000.
    fn check(&self, json: &[u8], described: &Described, lenient: bool) -> Result<bool, Error> {
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
        if longest > limits::STRING {
            let short: Short = serde_json::from_slice(json).map_err(not_json)?;
            Error::if_any(self.violations(described, &short.0, lenient))?;
        }
        Ok(nul)
    }

    /// Returns what is wrong with a body. `reason` is the parser's error, if it failed.
    fn explain(&self, json: &[u8], described: &Described, lenient: bool, nul: bool, reason: Option<serde_json::Error>) -> Error {
        let short: Short = match serde_json::from_slice(json) {
            Ok(short) => short,
            Err(error) => return not_json(error),
        };
        let mut faults = self.violations(described, &short.0, lenient);
        if nul {
            find_nul(&short.0, String::new(), &mut faults);
        }
        if let Some(reason) = reason
            && faults.is_empty()
        {
            faults.push(FieldError::new("body", reason.to_string()));
        }
        Error::invalid(faults)
    }

    fn violations(&self, described: &Described, value: &Value, lenient: bool) -> Vec<FieldError> {
        let (name, schemas) = ((described.name)(), (self.schemas)());
        let mut compiled = self.compiled.lock();
        let validator = compiled.entry(name.to_string()).or_insert_with(|| compile(schemas, &name, described.schema).map(Arc::new)).clone();
        drop(compiled);
        // The document lacks types that stand in for others, as of a batch, but errors list their fields all the same.
        let lacking = schemas.pointer(&format!("/components/schemas/{name}")).is_none();
        let own = lacking.then(|| serde_json::json!({"components": {"schemas": {name: (described.schema)()}}}));
        validator.map(|validator| Found::faults(&validator, own.as_ref().unwrap_or(schemas), value, lenient)).unwrap_or_default()
    }
}

/// How a type describes itself. What takes one is compiled once, not for each type.
struct Described {
    name: fn() -> Cow<'static, str>,
    schema: fn() -> RefOr<Schema>,
}

fn from_slice<T: DeserializeOwned>(json: &[u8], lenient: bool) -> serde_json::Result<T> {
    let mut read = serde_json::Deserializer::from_slice(json);
    let value = T::deserialize(Objects(&mut read, lenient))?;
    read.end()?;
    Ok(value)
}

fn not_json(error: serde_json::Error) -> Error {
    let (line, column) = (error.line(), error.column());
    Error::new(ErrorCode::InvalidJson, format!("the body is not JSON: {error}")).with("line", line.into()).with("column", column.into())
}

/// Compiles the schema of a type; adds it first if the document lacks it, as for empty bodies.
fn compile(schemas: &Value, name: &str, describe: fn() -> RefOr<Schema>) -> Option<Validator> {
    let mut schema = schemas.clone();
    schema.pointer_mut("/components/schemas")?.as_object_mut()?.entry(name).or_insert_with(|| serde_json::json!(describe()));
    schema["$ref"] = format!("#/components/schemas/{name}").into();
    let options = jsonschema::options().with_draft(Draft::Draft202012).should_validate_formats(true);
    options.with_format(RECIPIENT, |text| Parsed::parse(text).is_ok()).build(&schema).ok()
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
