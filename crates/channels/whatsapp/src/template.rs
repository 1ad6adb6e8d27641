//! Templates as the Graph API takes them: parameters of a message, and components of a submission. Pure.
//!
//! Sources: <https://developers.facebook.com/docs/whatsapp/cloud-api/guides/send-message-templates>,
//! <https://developers.facebook.com/docs/whatsapp/business-management-api/message-templates/components>

use std::collections::BTreeMap;

use nuncio_domain::message::{Content, Failure, FailureCode, Request};
use nuncio_domain::template::{Button, ButtonType, Category, HeaderType, Template, Used, fill, variables};
use serde_json::{Map, Value, json};

use crate::link;

/// How the variables of a template are called. One template has one way.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Format {
    /// `{{1}}`, `{{2}}` …
    Positional,
    /// `{{name}}`.
    Named,
}

impl Format {
    /// That of a message's template. WhatsApp words templates for one-time codes itself, and counts.
    fn of_used(used: &Used) -> Self {
        if used.buttons.contains(&ButtonType::Otp) { Self::Positional } else { Self::of(&used.variables, header_variable(used)) }
    }

    /// The body decides; the header, if the body has no variables.
    fn of(body: &[String], header: Option<&str>) -> Self {
        let first = body.first().map(String::as_str).or(header);
        if first.is_none_or(is_number) { Self::Positional } else { Self::Named }
    }

    /// What WhatsApp calls the one variable of the header, which may be called in the other way here.
    fn header(self, name: &str) -> String {
        match self {
            Self::Positional => "1".to_owned(),
            Self::Named if is_number(name) => format!("header_{name}"),
            Self::Named => name.to_owned(),
        }
    }

    /// The value of a variable in a message.
    fn parameter(self, name: &str, value: &str) -> Value {
        let value = one_line(value);
        match self {
            Self::Positional => json!({"type": "text", "text": value}),
            Self::Named => json!({"type": "text", "parameter_name": name, "text": value}),
        }
    }
}

/// WhatsApp refuses values with line breaks, tabs or more than four spaces in a row: each such gap becomes a space.
fn one_line(value: &str) -> String {
    let mut line = String::with_capacity(value.len());
    for word in value.split_inclusive(|c: char| !c.is_whitespace()) {
        let (gap, character) = word.split_at(word.find(|c: char| !c.is_whitespace()).unwrap_or(word.len()));
        let is_refused = gap.chars().count() > 4 || gap.contains(|c: char| c.is_control() || matches!(c, '\u{2028}' | '\u{2029}'));
        line.push_str(if is_refused { " " } else { gap });
        line.push_str(character);
    }
    line
}

fn is_number(name: &str) -> bool {
    name.bytes().all(|b| b.is_ascii_digit())
}

/// The variables of the body in the order in which WhatsApp counts them.
fn in_order(names: &[String]) -> Vec<String> {
    let mut names = names.to_vec();
    if names.iter().all(|name| is_number(name)) {
        names.sort_by_key(|name| name.parse::<u32>().unwrap_or(u32::MAX));
    }
    names
}

/// `en-US` is `en_US` there.
pub(crate) fn language(code: &str) -> String {
    code.replace('-', "_")
}

const fn media_name(kind: HeaderType) -> Option<&'static str> {
    match kind {
        HeaderType::Text => None,
        HeaderType::Image => Some("image"),
        HeaderType::Video => Some("video"),
        HeaderType::Document => Some("document"),
    }
}

/// The `template` object of a message.
pub(crate) fn message(request: &Request, content: &Content) -> Result<Value, Failure> {
    let gone = || Failure::own(FailureCode::ContentRejected, "the message names no template that is known here");
    let used = request.template.as_deref().ok_or_else(gone)?;
    let components: Vec<_> = header(used, content).into_iter().chain(body(used, content)).chain(buttons(used, content)).collect();
    let mut template = json!({"name": used.name, "language": {"code": language(&used.language)}});
    if !components.is_empty() {
        template["components"] = components.into();
    }
    Ok(template)
}

fn header_variable(used: &Used) -> Option<&str> {
    let text = used.header_content.as_deref().filter(|_| used.header_type == Some(HeaderType::Text))?;
    variables(text).first().copied()
}

fn header(used: &Used, content: &Content) -> Option<Value> {
    let parameter = match media_name(used.header_type?) {
        Some(kind) => json!({"type": kind, kind: link::media(kind, used.header_content.as_ref()?)}),
        None => {
            let name = header_variable(used)?;
            let format = Format::of_used(used);
            format.parameter(&format.header(name), content.template_header_variables.as_ref()?.get(name)?)
        }
    };
    Some(json!({"type": "header", "parameters": [parameter]}))
}

fn body(used: &Used, content: &Content) -> Option<Value> {
    let values = content.template_variables.as_ref()?;
    let format = Format::of_used(used);
    let parameters: Vec<_> = in_order(&used.variables).iter().filter_map(|name| Some(format.parameter(name, values.get(name)?))).collect();
    (!parameters.is_empty()).then(|| json!({"type": "body", "parameters": parameters}))
}

/// A button that copies a one-time code takes it as if it were part of a URL.
fn buttons(used: &Used, content: &Content) -> Vec<Value> {
    let values = content.template_button_variables.iter().flatten();
    values
        .filter_map(|(index, value)| {
            let kind = used.buttons.get(index.parse::<usize>().ok()?)?;
            let takes_value = matches!(kind, ButtonType::Url | ButtonType::Otp);
            let parameter = json!({"type": "text", "text": value});
            takes_value.then(|| json!({"type": "button", "sub_type": "url", "index": index, "parameters": [parameter]}))
        })
        .collect()
}

/// What is submitted. `handle` is that of the uploaded example of a header with media.
pub(crate) fn submission(template: &Template, handle: Option<&str>) -> Value {
    let content = &template.content;
    let category = content.category.unwrap_or_default();
    let header_name = match content.header_type {
        Some(HeaderType::Text) => content.header_content.as_deref().and_then(|text| variables(text).first().copied()),
        _ => None,
    };
    let body = body_variables(template);
    let format = Format::of(&body, header_name);
    let mut components = Vec::new();
    if category == Category::Authentication {
        // WhatsApp words these itself.
        components.push(json!({"type": "BODY", "add_security_recommendation": true}));
    } else {
        components.extend(header_component(template, format, header_name, handle));
        components.push(body_component(&content.body, format, &body));
        components.extend(content.footer.as_ref().map(|text| json!({"type": "FOOTER", "text": text})));
    }
    if !content.buttons.is_empty() {
        let buttons: Vec<_> = content.buttons.iter().map(button_component).collect();
        components.push(json!({"type": "BUTTONS", "buttons": buttons}));
    }
    let mut submission = json!({
        "name": template.submitted_name(),
        "language": language(&template.language),
        "category": category.as_str(),
        "components": components,
    });
    if format == Format::Named && category != Category::Authentication {
        submission["parameter_format"] = "NAMED".into();
    }
    submission
}

/// Whether `found`, a template at WhatsApp, says what is submitted. WhatsApp words those for one-time codes itself.
pub(crate) fn says_the_same(template: &Template, found: &Value) -> bool {
    let category = template.content.category.unwrap_or_default();
    if category == Category::Authentication {
        return found.get("category").and_then(Value::as_str) == Some(category.as_str());
    }
    texts(&submission(template, None)) == texts(found)
}

/// The text of each component that has one, with its variables.
fn texts(template: &Value) -> BTreeMap<&str, &str> {
    let components = template.get("components").and_then(Value::as_array).into_iter().flatten();
    components.filter_map(|component| Some((component.get("type")?.as_str()?, component.get("text")?.as_str()?))).collect()
}

/// Those of the WhatsApp body only: other bodies may have more.
fn body_variables(template: &Template) -> Vec<String> {
    in_order(&variables(&template.content.body).into_iter().map(str::to_owned).collect::<Vec<_>>())
}

/// What stands for a variable in the example that WhatsApp wants to see.
fn example(name: &str) -> String {
    if is_number(name) { format!("Example {name}") } else { name.replace('_', " ") }
}

fn header_component(template: &Template, format: Format, name: Option<&str>, handle: Option<&str>) -> Option<Value> {
    let content = &template.content;
    let text = content.header_content.as_deref()?;
    if let Some(kind) = media_name(content.header_type?) {
        return Some(json!({"type": "HEADER", "format": kind.to_uppercase(), "example": {"header_handle": [handle?]}}));
    }
    let Some(name) = name else { return Some(json!({"type": "HEADER", "format": "TEXT", "text": text})) };
    let called = format.header(name);
    let text = fill(text, &BTreeMap::from([(name.to_owned(), format!("{{{{{called}}}}}"))]));
    let example = match format {
        Format::Positional => json!({"header_text": [example(name)]}),
        Format::Named => json!({"header_text_named_params": [{"param_name": called, "example": example(name)}]}),
    };
    Some(json!({"type": "HEADER", "format": "TEXT", "text": text, "example": example}))
}

fn body_component(text: &str, format: Format, names: &[String]) -> Value {
    // Without the spaces that may stand in braces here.
    let bare = names.iter().map(|name| (name.clone(), format!("{{{{{name}}}}}"))).collect();
    let mut body = json!({"type": "BODY", "text": fill(text, &bare)});
    if names.is_empty() {
        return body;
    }
    body["example"] = match format {
        Format::Positional => json!({"body_text": [names.iter().map(|name| example(name)).collect::<Vec<_>>()]}),
        Format::Named => {
            let named = names.iter().map(|name| json!({"param_name": name, "example": example(name)}));
            json!({"body_text_named_params": named.collect::<Vec<_>>()})
        }
    };
    body
}

fn button_component(button: &Button) -> Value {
    let text = &button.text;
    match button.kind {
        ButtonType::QuickReply => json!({"type": "QUICK_REPLY", "text": text}),
        ButtonType::Phone => json!({"type": "PHONE_NUMBER", "text": text, "phone_number": button.phone_number}),
        ButtonType::Otp => json!({"type": "OTP", "otp_type": "COPY_CODE", "text": text}),
        ButtonType::Url => url_component(button),
    }
}

/// The variable of a URL is `{{1}}`, whatever it is called here; the example is a whole URL.
fn url_component(button: &Button) -> Value {
    let url = button.url.as_deref().unwrap_or_default();
    let mut fields = Map::from_iter([("type".to_owned(), "URL".into()), ("text".to_owned(), button.text.clone().into())]);
    let Some(name) = variables(url).first().copied() else {
        fields.insert("url".to_owned(), url.into());
        return fields.into();
    };
    let with = |value: &str| fill(url, &BTreeMap::from([(name.to_owned(), value.to_owned())]));
    let example = match button.example.as_deref() {
        Some(example) if example.contains("://") => example.to_owned(),
        example => with(example.unwrap_or("example")),
    };
    fields.insert("url".to_owned(), with("{{1}}").into());
    fields.insert("example".to_owned(), json!([example]));
    fields.into()
}
