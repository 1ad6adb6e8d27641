//! Converts schema violations to field errors.

use jsonschema::error::{TypeKind, ValidationErrorKind};
use jsonschema::paths::Location;
use jsonschema::{ValidationError, Validator};
use nuncio_domain::address::Parsed;
use nuncio_domain::{FieldError, limits};
use serde_json::Value;

/// Maximum number of characters shown of a value.
const SHOWN: usize = 64;

/// Format of a recipient. A body with a wrong recipient is parsed, so that the use case reports it together with its other errors. Only if
/// the body cannot be parsed is it reported here.
pub(super) const RECIPIENT: &str = "recipient";

/// Maximum length of a text whose characters are counted, in bytes; above every limit of the document.
pub(super) const LONG: usize = 32 * 1024;

/// Field errors of a body.
#[derive(Debug)]
pub(super) struct Found<'a> {
    /// All except unknown fields and recipients.
    faults: Vec<FieldError>,
    unknown: Vec<FieldError>,
    recipients: Vec<FieldError>,
    /// Whether unknown fields are ignored.
    lenient: bool,
    body: &'a Value,
}

impl<'a> Found<'a> {
    /// Validates `value` against `schema`, from which `validator` was compiled.
    pub(super) fn faults(validator: &Validator, schema: &Value, body: &'a Value, lenient: bool) -> Vec<FieldError> {
        let mut found = Self { faults: Vec::new(), unknown: Vec::new(), recipients: Vec::new(), lenient, body };
        for error in validator.iter_errors(body) {
            match error.kind() {
                // Reported for the members of an object without fields.
                ValidationErrorKind::FalseSchema => {
                    let object = body.pointer(error.instance_path().as_str()).and_then(Value::as_object);
                    let members: Vec<_> = object.into_iter().flatten().map(|(name, _)| name.clone()).collect();
                    found.unknown(schema, &error, &path(found.body, error.instance_path()), &members);
                }
                _ => found.add(schema, &error),
            }
            if found.faults.len() + found.unknown.len() + found.recipients.len() >= limits::FIELD_ERRORS {
                break;
            }
        }
        found.faults.extend(found.unknown);
        if !found.faults.is_empty() {
            found.faults.extend(found.recipients);
        }
        found.faults
    }

    fn add(&mut self, schema: &Value, error: &ValidationError<'_>) {
        let at = path(self.body, error.instance_path());
        match error.kind() {
            ValidationErrorKind::AdditionalProperties { unexpected } => self.unknown(schema, error, &at, unexpected),
            ValidationErrorKind::OneOfNotValid { context } | ValidationErrorKind::AnyOf { context } => {
                self.alternatives(schema, error, context)
            }
            ValidationErrorKind::Required { property } => {
                self.faults.push(FieldError::new(member(&at, property.as_str().unwrap_or_default()), "is required"));
            }
            // Its wrong type is reported separately.
            ValidationErrorKind::Enum { .. } if !error.instance().is_string() => {}
            ValidationErrorKind::Format { format } if format == RECIPIENT => {
                // That it is empty is reported already.
                let text = error.instance().as_str().filter(|text| !text.is_empty());
                if let Some(wrong) = text.and_then(|text| Parsed::parse(text).err()) {
                    self.recipients.push(FieldError::new(at, wrong.to_string()));
                }
            }
            kind => self.faults.push(FieldError::new(or_body(&at), sentence(kind, error, &at))),
        }
    }

    fn unknown(&mut self, schema: &Value, error: &ValidationError<'_>, at: &str, unexpected: &[String]) {
        if self.lenient {
            return;
        }
        let known = known_fields(schema, error.schema_path());
        let fault = |name: &String| FieldError::new(member(at, name), format!("is unknown; {known}"));
        self.unknown.extend(unexpected.iter().take(limits::FIELD_ERRORS).map(fault));
    }

    /// Reports the violations of the alternative that the value was meant for: the first one of its type.
    fn alternatives(&mut self, schema: &Value, error: &ValidationError<'_>, context: &[Vec<ValidationError<'static>>]) {
        let own = |e: &&ValidationError<'_>| e.instance_path() == error.instance_path();
        let wrong_type = |e: &ValidationError<'_>| matches!(e.kind(), ValidationErrorKind::Type { .. });
        if let Some(meant) = context.iter().find(|errors| !errors.iter().filter(own).any(wrong_type)) {
            meant.iter().for_each(|e| self.add(schema, e));
            return;
        }
        let mut types = Vec::new();
        for e in context.iter().flatten().filter(own) {
            if let ValidationErrorKind::Type { kind } = e.kind() {
                types.extend(type_names(kind));
            }
        }
        let at = path(self.body, error.instance_path());
        let message = format!("is {}; must be {}", value(error.instance(), &at), types.join(" or "));
        self.faults.push(FieldError::new(or_body(&at), message));
    }
}

/// Returns the beginning of a request's text.
pub(crate) fn shown(text: &str) -> String {
    match text.char_indices().nth(SHOWN) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// Returns the path of a value in the notation of field errors: `content.buttons[2].title`.
fn path(body: &Value, location: &Location) -> String {
    let mut place = Some(body);
    location.segments().fold(String::new(), |path, segment| {
        let segment = segment.to_string();
        // A member can have a number for a name.
        let is_index = place.is_some_and(Value::is_array);
        place = place.and_then(|value| if is_index { value.get(segment.parse::<usize>().ok()?) } else { value.get(&segment) });
        if is_index { format!("{path}[{segment}]") } else { member(&path, &segment) }
    })
}

/// Returns the path of a member of the object at `path`.
pub(super) fn member(path: &str, name: &str) -> String {
    let name = shown(name);
    if path.is_empty() { name } else { format!("{path}.{name}") }
}

/// Returns `body` for the root, whose path is empty.
pub(super) fn or_body(path: &str) -> &str {
    if path.is_empty() { "body" } else { path }
}

fn known_fields(schema: &Value, keyword: &Location) -> String {
    let object = keyword.as_str().rsplit_once('/').map_or("", |(object, _)| object);
    let properties = schema.pointer(object).and_then(|s| s["properties"].as_object());
    let names: Vec<_> = properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect();
    if names.is_empty() { "no fields are allowed here".to_owned() } else { format!("known are {}", names.join(", ")) }
}

fn sentence(kind: &ValidationErrorKind, error: &ValidationError<'_>, at: &str) -> String {
    let instance = error.instance();
    let shown = || value(instance, at);
    match kind {
        ValidationErrorKind::Type { kind } => format!("is {}; must be {}", shown(), type_names(kind).join(" or ")),
        ValidationErrorKind::Enum { options } => {
            let names: Vec<_> = options.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
            format!("is {}; must be one of {}", shown(), names.join(", "))
        }
        ValidationErrorKind::MinLength { limit } => format!("has {} characters; must have at least {limit}", characters(instance)),
        ValidationErrorKind::MaxLength { limit } => format!("has {} characters; must have at most {limit}", characters(instance)),
        ValidationErrorKind::MinItems { limit } => format!("has {} items; must have at least {limit}", items(instance)),
        ValidationErrorKind::MaxItems { limit } => format!("has {} items; must have at most {limit}", items(instance)),
        ValidationErrorKind::MinProperties { limit } => format!("has {} entries; must have at least {limit}", items(instance)),
        ValidationErrorKind::MaxProperties { limit } => format!("has {} entries; must have at most {limit}", items(instance)),
        ValidationErrorKind::Minimum { limit } => format!("is {}; must be at least {limit}", shown()),
        ValidationErrorKind::Maximum { limit } => format!("is {}; must be at most {limit}", shown()),
        ValidationErrorKind::Pattern { pattern } => format!("is {}; must match {pattern}", shown()),
        ValidationErrorKind::Format { format } if format == "date-time" => {
            format!("is {}; must be an ISO 8601 date-time with an offset, such as 2030-01-31T09:30:00.000Z", shown())
        }
        ValidationErrorKind::Format { format } => {
            let article = if format.starts_with(['a', 'e', 'i', 'o']) { "an" } else { "a" };
            format!("is {}; must be {article} {format}", shown())
        }
        ValidationErrorKind::UniqueItems => "has the same item twice".to_owned(),
        _ => error.masked_with("the value").to_string(),
    }
}

fn type_names(kind: &TypeKind) -> Vec<&'static str> {
    use jsonschema::JsonType;
    let name = |one: JsonType| match one {
        JsonType::Array => Some("an array"),
        JsonType::Boolean => Some("true or false"),
        JsonType::Integer => Some("a whole number"),
        JsonType::Number => Some("a number"),
        JsonType::Object => Some("an object"),
        JsonType::String => Some("a string"),
        JsonType::Null => None, // same as omitting the field
    };
    match kind {
        TypeKind::Single(one) => name(*one).into_iter().collect(),
        TypeKind::Multiple(many) => many.iter().filter_map(name).collect(),
    }
}

/// Returns a short form of a value; never of a field that can contain a secret.
fn value(value: &Value, at: &str) -> String {
    let at = at.to_ascii_lowercase();
    if ["secret", "password", "token"].iter().any(|word| at.contains(word)) {
        return "something else".to_owned();
    }
    match value {
        Value::String(text) => format!("{:?}", shown(text)),
        Value::Array(_) => "an array".to_owned(),
        Value::Object(_) => "an object".to_owned(),
        scalar => scalar.to_string(),
    }
}

fn characters(value: &Value) -> String {
    let text = value.as_str().unwrap_or_default();
    let count = text.chars().count();
    if text.len() > LONG - 4 { format!("{count} or more") } else { count.to_string() }
}

fn items(value: &Value) -> usize {
    value.as_array().map(Vec::len).or(value.as_object().map(serde_json::Map::len)).unwrap_or_default()
}
