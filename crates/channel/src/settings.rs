//! Settings of a provider account: described once, checked and documented from the description.

use nuncio_domain::FieldError;
use serde_json::{Map, Value};

use crate::Account;

/// One setting or secret of an adapter.
#[derive(Clone, Copy, Debug)]
pub struct Field {
    /// Its name, in snake_case.
    pub name: &'static str,
    /// What it holds.
    pub kind: FieldKind,
    /// Whether it is encrypted at rest and never shown.
    pub secret: bool,
    /// Whether it must be given.
    pub required: bool,
    /// What it is for, its default and what would be right, in one line.
    pub help: &'static str,
}

/// What a setting holds.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum FieldKind {
    /// Any text.
    Text,
    /// A whole number in this range, both ends included.
    Integer(i64, i64),
    /// `true` or `false`.
    Flag,
    /// One of these words.
    OneOf(&'static [&'static str]),
}

/// Reads an account's settings against their description and gathers every fault.
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
            let place = if secret { "secrets" } else { "settings" };
            for name in map.keys() {
                if !self.fields.iter().any(|f| f.name == name && f.secret == secret) {
                    let known: Vec<_> = self.fields.iter().filter(|f| f.secret == secret).map(|f| f.name).collect();
                    self.errors
                        .push(FieldError::new(format!("{place}.{name}"), format!("is not known here; known are {}", known.join(", "))));
                }
            }
        }
        for field in self.fields {
            let path = format!("{}.{}", if field.secret { "secrets" } else { "settings" }, field.name);
            match self.map(field).get(field.name) {
                None | Some(Value::Null) if field.required => {
                    self.errors.push(FieldError::new(path, format!("is required: {}", field.help)))
                }
                None | Some(Value::Null) => {}
                Some(value) => {
                    if let Some(wanted) = fault(field.kind, value) {
                        let shown = if field.secret { "the value given".to_owned() } else { value.to_string() };
                        self.errors.push(FieldError::new(path, format!("{shown} is wrong; must be {wanted}")));
                    }
                }
            }
        }
    }

    fn map(&self, field: &Field) -> &'a Map<String, Value> {
        if field.secret { self.account.secrets.expose() } else { &self.account.settings }
    }

    fn value(&self, name: &str) -> Option<&'a Value> {
        let field = self.fields.iter().find(|f| f.name == name)?;
        self.map(field).get(name)
    }

    /// A text setting.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.value(name)?.as_str()
    }

    /// A number; also one written as text, as the command line gives it.
    pub fn integer(&self, name: &str) -> Option<i64> {
        let value = self.value(name)?;
        value.as_i64().or_else(|| value.as_str()?.parse().ok())
    }

    /// A flag; also one written as text.
    pub fn flag(&self, name: &str) -> Option<bool> {
        let value = self.value(name)?;
        value.as_bool().or_else(|| value.as_str()?.parse().ok())
    }

    /// Adds a fault that only the adapter can see.
    pub fn fault(&mut self, path: &str, message: impl Into<String>) {
        self.errors.push(FieldError::new(path, message));
    }

    /// Fails with every fault that was found.
    pub fn finish(self) -> Result<(), Vec<FieldError>> {
        if self.errors.is_empty() { Ok(()) } else { Err(self.errors) }
    }
}

fn fault(kind: FieldKind, value: &Value) -> Option<String> {
    match kind {
        FieldKind::Text => value.as_str().is_none_or(str::is_empty).then(|| "a text".to_owned()),
        FieldKind::Integer(low, high) => {
            let number = value.as_i64().or_else(|| value.as_str()?.parse().ok());
            number.is_none_or(|n| n < low || n > high).then(|| format!("a whole number from {low} to {high}"))
        }
        FieldKind::Flag => {
            let flag = value.as_bool().or_else(|| value.as_str()?.parse().ok());
            flag.is_none().then(|| "true or false".to_owned())
        }
        FieldKind::OneOf(words) => value.as_str().is_none_or(|v| !words.contains(&v)).then(|| format!("one of {}", words.join(", "))),
    }
}
