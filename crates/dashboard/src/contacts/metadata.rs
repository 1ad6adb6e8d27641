//! Your own data about a contact: shown to viewers, changed by others, one entry at a time.

use maud::{Markup, html};
use nuncio_core::contacts::ContactView;
use nuncio_core::users::SignedIn;
use nuncio_domain::{Error, Result};
use serde_json::{Map, Value};

use super::Said;
use crate::App;
use crate::components::{Field, form_key, json_text, may_change, value, words};
use crate::form::Form;

/// Renders the entries and the id. Each entry has its own form, so that nobody overwrites an entry that they did not change.
pub(super) fn panel(who: &SignedIn, contact: &ContactView, said: &Said) -> Markup {
    html! {
        section class="panel" id="details" {
            header { h2 { "Details" } }
            div class="body" {
                @if may_change(who) {
                    @for (n, (name, now)) in contact.metadata.iter().enumerate() { (entry(who, contact, n, name, now)) }
                    (new(who, contact, said))
                } @else {
                    dl class="facts" { @for (name, now) in &contact.metadata { dt { (words(name)) } dd { code { (words(&json_text(now))) } } } }
                }
                (value(&contact.id.to_string()))
            }
        }
    }
}

fn entry(who: &SignedIn, contact: &ContactView, n: usize, name: &str, now: &Value) -> Markup {
    let (id, text) = (format!("meta-{n}"), lines(now));
    html! {
        form class="field" method="post" action={ "/contacts/" (contact.id) } {
            (form_key(who))
            input type="hidden" name="metadataName" value=(name);
            label for=(id) { (words(name)) }
            div class="row" {
                @if text.contains('\n') {
                    // Browsers drop the first line break of a field.
                    textarea class="in" id=(id) name="metadata" dir="auto" { "\n" (text) }
                } @else {
                    input class="in" id=(id) name="metadata" dir="auto" value=(text);
                }
                button class="btn small" name="do" value="set" { "Save" span class="sr" { " " (name) } }
                button class="btn small quiet" name="do" value="unset" { "Remove" span class="sr" { " " (name) } }
            }
        }
    }
}

fn new(who: &SignedIn, contact: &ContactView, said: &Said) -> Markup {
    let (name, text) = (said.typed.get("metadataName"), said.typed.get("metadata"));
    let field = |name, label, hint, value| Field { required: false, ..Field::new(name, label, hint, value) }.show(&said.faults);
    html! {
        form class="stack" method="post" action={ "/contacts/" (contact.id) } {
            (form_key(who))
            (said.faults.summary())
            (field("metadataName", "Name of your own field", "Such as customer number.", &name))
            (field("metadata", "Its value", "", &text))
            div class="row" { button class="btn" name="do" value="new" { "Save the field" } }
        }
    }
}

/// Adds an entry, sets or removes it. The others stay as they are.
pub(super) async fn change(app: &App, who: &SignedIn, id: &str, form: &Form, verb: &str) -> Result<()> {
    let (name, text) = (form.get("metadataName"), form.get("metadata"));
    if name.trim().is_empty() {
        return Err(Error::field("metadataName", "is empty; must be a name"));
    }
    let edit = |metadata: &mut Map<String, Value>| {
        match verb {
            "unset" => drop(metadata.remove(&name)),
            "new" if metadata.contains_key(name.trim()) => {
                return Err(Error::field("metadataName", format!("is {:?}, which the contact has; change its value there", name.trim())));
            }
            "new" => drop(metadata.insert(name.trim().to_owned(), Value::String(text))),
            _ => {
                let new = entered(metadata.get(&name), text);
                metadata.insert(name, new);
            }
        }
        Ok(())
    };
    app.core.contacts().edit_metadata(&who.caller, id, edit).await
}

/// Returns a value as a field has it, with the line breaks of forms.
fn lines(value: &Value) -> String {
    json_text(value).replace("\r\n", "\n").replace('\r', "\n")
}

/// Returns the new value: a text, unless JSON that is no text is replaced by JSON.
fn entered(before: Option<&Value>, text: String) -> Value {
    match before {
        Some(before) if lines(before) == text => before.clone(),
        Some(before) if !before.is_string() => serde_json::from_str(&text).unwrap_or(Value::String(text)),
        _ => Value::String(text),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn an_entry_keeps_its_type() {
        let cases = [
            (None, "7", json!("7")),
            (Some(json!("7")), "8", json!("8")),
            (Some(json!(7)), "8", json!(8)),
            (Some(json!(7)), "eight", json!("eight")),
            (Some(json!("a\r\nb")), "a\nb", json!("a\r\nb")),
            (Some(json!({"a": [1]})), "{\"a\":[1]}", json!({"a": [1]})),
        ];
        for (before, text, after) in cases {
            assert_eq!(entered(before.as_ref(), text.to_owned()), after, "{text}");
        }
    }
}
