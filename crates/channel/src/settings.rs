//! Settings of a provider account: described once, checked and documented from the description.

use std::time::Duration;

use nuncio_domain::{FieldError, Redacted};
use serde_json::{Map, Value};
use url::Url;

use crate::Account;

/// One setting or secret of an adapter.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// In snake_case.
    pub name: &'static str,
    pub kind: FieldKind,
    /// Whether it is encrypted at rest and never shown.
    pub secret: bool,
    pub required: bool,
    /// Purpose, default and valid values, in one line.
    pub help: &'static str,
}

impl Field {
    /// An optional setting.
    pub const fn optional(name: &'static str, kind: FieldKind, help: &'static str) -> Self {
        Self { name, kind, secret: false, required: false, help }
    }

    /// A required setting.
    pub const fn required(name: &'static str, kind: FieldKind, help: &'static str) -> Self {
        Self { name, kind, secret: false, required: true, help }
    }

    /// A required secret text.
    pub const fn secret(name: &'static str, help: &'static str) -> Self {
        Self { name, kind: FieldKind::Text, secret: true, required: true, help }
    }
}

/// Type of a setting.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// Any text.
    Text,
    /// A whole number in this range, inclusive.
    Integer(i64, i64),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// Reads an account's settings against their description and collects every error.
#[derive(Debug)]
pub struct Settings<'a> {
    fields: &'static [Field],
    account: &'a Account,
    errors: Vec<FieldError>,
}

impl<'a> Settings<'a> {
    /// Checks names, presence and kinds of all settings of `account`.
    pub fn new(fields: &'static [Field], account: &'a Account) -> Self {
        let mut settings = Self { fields, account, errors: Vec::new() };
        settings.check();
        settings
    }

    fn check(&mut self) {
        for (map, secret) in [(&self.account.settings, false), (self.account.secrets.expose(), true)] {
            let known: Vec<_> = self.fields.iter().filter(|field| field.secret == secret).map(|field| field.name).collect();
            for name in map.keys().filter(|name| !known.contains(&name.as_str())) {
                let prefix = if secret { "secrets" } else { "settings" };
                let names = if known.is_empty() { "there are none".to_owned() } else { format!("known names are {}", known.join(", ")) };
                let why = format!("is not a known name; {names}");
                self.errors.push(FieldError::new(format!("{prefix}.{name}"), why));
            }
        }
        for field in self.fields {
            let error = match self.map(field).get(field.name).filter(|value| !value.is_null()) {
                None if field.required => Some(format!("is required: {}", field.help)),
                None => None,
                Some(value) => mismatch(field.kind, value).map(|wanted| {
                    let shown = if field.secret { "the value given".to_owned() } else { value.to_string() };
                    format!("{shown} is wrong; must be {wanted}")
                }),
            };
            self.errors.extend(error.map(|why| FieldError::new(path(field), why)));
        }
    }

    fn map(&self, field: &Field) -> &'a Map<String, Value> {
        if field.secret { self.account.secrets.expose() } else { &self.account.settings }
    }

    fn value(&self, name: &str) -> Option<&'a Value> {
        let field = self.fields.iter().find(|f| f.name == name)?;
        self.map(field).get(name)
    }

    /// Returns a text, if set.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.value(name)?.as_str()
    }

    /// Returns a text as a `String`, if set.
    pub fn string(&self, name: &str) -> Option<String> {
        self.text(name).map(str::to_owned)
    }

    /// Returns a secret; empty if it is not set.
    pub fn secret(&self, name: &str) -> Redacted<String> {
        Redacted::new(self.string(name).unwrap_or_default())
    }

    /// Returns a number; accepts text too, as the command line passes it.
    pub fn integer(&self, name: &str) -> Option<i64> {
        whole_number(self.value(name)?)
    }

    /// Returns a number, or `default` if it is not set or does not fit in `T`.
    pub fn number<T: TryFrom<i64>>(&self, name: &str, default: T) -> T {
        self.integer(name).and_then(|number| T::try_from(number).ok()).unwrap_or(default)
    }

    /// Returns a duration given in whole seconds.
    pub fn seconds(&self, name: &str, default: u64) -> Duration {
        Duration::from_secs(self.number(name, default))
    }

    /// Returns a flag; accepts text too.
    pub fn flag(&self, name: &str) -> Option<bool> {
        boolean(self.value(name)?)
    }

    /// Returns the base URL of an API without a trailing slash; `default` if it is not set.
    pub fn base_url(&mut self, name: &str, default: &str) -> String {
        let base = self.text(name).unwrap_or(default).trim_end_matches('/').to_owned();
        let plain = |url: Url| matches!(url.scheme(), "https" | "http") && url.query().is_none() && url.fragment().is_none();
        if !Url::parse(&base).is_ok_and(plain) {
            self.error(name, format!("must be an http or https URL without a query, such as {default}"));
        }
        base
    }

    /// Adds an error if a text or secret is set and not `good`; it must be `wanted`.
    pub fn check_text(&mut self, name: &str, good: impl FnOnce(&str) -> bool, wanted: &str) {
        let Some(text) = self.text(name).filter(|text| !text.is_empty() && !good(text)) else { return };
        let is_secret = self.fields.iter().any(|field| field.name == name && field.secret);
        let shown = if is_secret { "the value given".to_owned() } else { format!("{text:?}") };
        self.error(name, format!("{shown} is wrong; must be {wanted}"));
    }

    /// Adds an error that only the adapter can detect. The text must not contain a secret.
    pub fn error(&mut self, name: &str, message: impl Into<String>) {
        let path = self.fields.iter().find(|field| field.name == name).map_or_else(|| name.to_owned(), path);
        self.errors.push(FieldError::new(path, message));
    }

    /// Fails with all errors found.
    pub fn finish(self) -> Result<(), Vec<FieldError>> {
        if self.errors.is_empty() { Ok(()) } else { Err(self.errors) }
    }
}

fn path(field: &Field) -> String {
    format!("{}.{}", if field.secret { "secrets" } else { "settings" }, field.name)
}

fn whole_number(value: &Value) -> Option<i64> {
    let written_otherwise = || value.as_f64().filter(|number| number.fract() == 0.0 && number.abs() < 1e15).map(|number| number as i64);
    value.as_i64().or_else(written_otherwise).or_else(|| value.as_str()?.parse().ok())
}

fn boolean(value: &Value) -> Option<bool> {
    value.as_bool().or_else(|| value.as_str()?.parse().ok())
}

/// Returns what the value must be, if it is not.
fn mismatch(kind: FieldKind, value: &Value) -> Option<String> {
    match kind {
        FieldKind::Text => value.as_str().is_none_or(str::is_empty).then(|| "a text".to_owned()),
        FieldKind::Integer(low, high) => {
            whole_number(value).is_none_or(|n| n < low || n > high).then(|| format!("a whole number from {low} to {high}"))
        }
        FieldKind::Flag => boolean(value).is_none().then(|| "true or false".to_owned()),
        FieldKind::OneOf(words) => value.as_str().is_none_or(|v| !words.contains(&v)).then(|| format!("one of {}", words.join(", "))),
    }
}
