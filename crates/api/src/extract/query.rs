//! Extracts query parameters.

use std::borrow::Cow;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use nuncio_domain::{Error, FieldError, limits};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use url::form_urlencoded;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn, ParameterStyle};
use utoipa::openapi::schema::{Object, SchemaType, Type};
use utoipa::openapi::{RefOr, Required, Schema};

use super::headers::lenient;
use crate::error::ApiError;
use crate::json::shown;

/// The query, parsed into `T` by its documentation: booleans and integers as such, deep objects (`metadata[key]=value`) as maps, lists
/// (repeated or comma-separated) as comma-separated text, everything else as text. Reports unknown, repeated, missing and malformed
/// parameters at once.
#[derive(Debug)]
pub(crate) struct Query<T>(pub(crate) T);

impl<S: Sync, T: DeserializeOwned + IntoParams> FromRequestParts<S> for Query<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, ApiError> {
        Ok(Self(read(parts.uri.query().unwrap_or_default(), lenient(&parts.headers))?))
    }
}

/// Returns the decoded names and values of a query.
pub(crate) fn pairs(query: &str) -> form_urlencoded::Parse<'_> {
    form_urlencoded::parse(query.as_bytes())
}

fn read<T: DeserializeOwned + IntoParams>(query: &str, lenient: bool) -> Result<T, Error> {
    if query.is_empty()
        && let Ok(value) = serde_json::from_value(Value::Object(Map::new()))
    {
        return Ok(value);
    }
    let known = T::into_params(|| Some(ParameterIn::Query));
    let (mut values, mut faults) = (Map::new(), Vec::new());
    for (name, text) in pairs(query) {
        if let Err(message) = take(&known, &mut values, &name, text, lenient) {
            faults.push(FieldError::new(format!("query.{}", shown(&name)), message));
        }
        if faults.len() >= limits::FIELD_ERRORS {
            break;
        }
    }
    for parameter in known.iter().filter(|p| p.required == Required::True && p.style != Some(ParameterStyle::DeepObject)) {
        if !values.contains_key(&parameter.name) {
            faults.push(FieldError::new(format!("query.{}", parameter.name), "is required"));
        }
    }
    Error::if_any(faults)?;
    serde_json::from_value(Value::Object(values)).map_err(|error| Error::field("query", error.to_string()))
}

fn take(known: &[Parameter], values: &mut Map<String, Value>, name: &str, text: Cow<'_, str>, lenient: bool) -> Result<(), String> {
    let (outer, key) = match name.strip_suffix(']').and_then(|rest| rest.split_once('[')) {
        Some((outer, key)) => (outer, Some(key)),
        None => (name, None),
    };
    let is_meant = |p: &&Parameter| p.name == outer && (p.style == Some(ParameterStyle::DeepObject)) == key.is_some();
    let Some(parameter) = known.iter().find(is_meant) else {
        return if lenient { Ok(()) } else { Err(format!("is unknown; known are {}", names(known))) };
    };
    if text.contains('\0') || name.contains('\0') {
        return Err("must not contain U+0000".to_owned());
    }
    let repeated = match key {
        None if is_list(parameter) => {
            join(values, outer, &text);
            false
        }
        None => values.insert(outer.to_owned(), typed(parameter, text)?).is_some(),
        Some(key) => {
            let entries = values.entry(outer).or_insert_with(|| Value::Object(Map::new()));
            entries.as_object_mut().is_some_and(|entries| entries.insert(key.to_owned(), text.into()).is_some())
        }
    };
    if repeated { Err("is given more than once".to_owned()) } else { Ok(()) }
}

fn is_list(parameter: &Parameter) -> bool {
    matches!(parameter.schema, Some(RefOr::T(Schema::Array(_))))
}

/// Joins repeated values of a list with commas.
fn join(values: &mut Map<String, Value>, name: &str, text: &str) {
    match values.get_mut(name) {
        Some(Value::String(joined)) => *joined = format!("{joined},{text}"),
        _ => drop(values.insert(name.to_owned(), text.into())),
    }
}

fn names(known: &[Parameter]) -> String {
    let name = |p: &Parameter| if p.style == Some(ParameterStyle::DeepObject) { format!("{}[…]", p.name) } else { p.name.clone() };
    known.iter().map(name).collect::<Vec<_>>().join(", ")
}

fn typed(parameter: &Parameter, text: Cow<'_, str>) -> Result<Value, String> {
    let Some(RefOr::T(Schema::Object(schema))) = &parameter.schema else { return Ok(text.into()) };
    if has_type(schema, &Type::Boolean) {
        let value = text.parse::<bool>().map_err(|_| format!("is {:?}; must be true or false", shown(&text)))?;
        return Ok(value.into());
    }
    if has_type(schema, &Type::Integer) {
        let (least, most) = (bound(&schema.minimum), bound(&schema.maximum));
        let value = text.parse::<i64>().ok().filter(|n| least.is_none_or(|least| *n >= least) && most.is_none_or(|most| *n <= most));
        return value.map(Value::from).ok_or_else(|| format!("is {:?}; must be a whole number{}", shown(&text), range(least, most)));
    }
    if let Some(known) = &schema.enum_values
        && !known.iter().any(|value| value == &*text)
    {
        let known: Vec<_> = known.iter().filter_map(Value::as_str).collect();
        return Err(format!("is {:?}; must be one of {}", shown(&text), known.join(", ")));
    }
    Ok(text.into())
}

fn has_type(schema: &Object, wanted: &Type) -> bool {
    match &schema.schema_type {
        SchemaType::Type(one) => one == wanted,
        SchemaType::Array(many) => many.contains(wanted),
        SchemaType::AnyValue => false,
    }
}

fn bound(number: &Option<utoipa::Number>) -> Option<i64> {
    serde_json::to_value(number).ok()?.as_f64().map(|n| n as i64)
}

fn range(least: Option<i64>, most: Option<i64>) -> String {
    match (least, most) {
        (Some(least), Some(most)) => format!(" from {least} to {most}"),
        (Some(least), None) => format!(" of at least {least}"),
        (None, Some(most)) => format!(" of at most {most}"),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde::Deserialize;
    use std::collections::BTreeMap;

    #[derive(Deserialize, IntoParams, Debug, Default, PartialEq)]
    #[serde(default, rename_all = "camelCase")]
    struct Asked {
        dry_run: Option<bool>,
        #[param(minimum = 1, maximum = 100)]
        limit: Option<u32>,
        cursor: Option<String>,
        #[param(value_type = Option<Vec<String>>, style = Form, explode)]
        status: Option<String>,
        #[param(style = DeepObject, explode)]
        metadata: BTreeMap<String, String>,
    }

    fn faults(query: &str) -> Vec<String> {
        let error = read::<Asked>(query, false).expect_err("must be refused");
        let faults = error.details()["errors"].as_array().expect("a list").iter();
        faults.map(|f| format!("{} {}", f["path"].as_str().unwrap_or_default(), f["message"].as_str().unwrap_or_default())).collect()
    }

    #[test]
    fn values_are_read_as_they_are_documented() {
        let asked = read::<Asked>("dryRun=true&limit=7&cursor=a%2Bb&metadata[order%20id]=5&metadata%5Bx%5D=", false).expect("is right");
        let metadata = BTreeMap::from([("order id".to_owned(), "5".to_owned()), ("x".to_owned(), String::new())]);
        assert_eq!(asked, Asked { dry_run: Some(true), limit: Some(7), cursor: Some("a+b".to_owned()), status: None, metadata });
        assert_eq!(read::<Asked>("", false).expect("is right"), Asked::default());
    }

    #[test]
    fn a_list_is_repeated_or_joined_by_commas() {
        let status = |query: &str| read::<Asked>(query, false).expect("is right").status;
        for query in ["status=a&status=b,c", "status=a,b&limit=7&status=c", "status=a,b,c"] {
            assert_eq!(status(query).as_deref(), Some("a,b,c"), "{query}");
        }
        assert_eq!(status("status=a").as_deref(), Some("a"));
        assert_eq!(status("limit=7"), None);
    }

    #[test]
    fn every_fault_is_told() {
        let query = "dryRun=maybe&limit=0&cursor=1&cursor=2&metadata=x&cursor[a]=1&lmit=3&metadata[k]=1&metadata[k]=2&metadata[n]=%00";
        let known = "is unknown; known are dryRun, limit, cursor, status, metadata[…]";
        assert_eq!(
            faults(query),
            [
                "query.dryRun is \"maybe\"; must be true or false".to_owned(),
                "query.limit is \"0\"; must be a whole number from 1 to 100".to_owned(),
                "query.cursor is given more than once".to_owned(),
                format!("query.metadata {known}"),
                format!("query.cursor[a] {known}"),
                format!("query.lmit {known}"),
                "query.metadata[k] is given more than once".to_owned(),
                "query.metadata[n] must not contain U+0000".to_owned(),
            ]
        );
    }

    #[test]
    fn lenient_handling_ignores_the_unknown_only() {
        assert_eq!(read::<Asked>("lmit=3", true).expect("is right"), Asked::default());
        assert!(read::<Asked>("limit=x", true).is_err());
    }
}
