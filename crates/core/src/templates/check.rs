//! Validates templates, and returns all errors at once.

use nuncio_domain::template::{Button, ButtonType, HeaderType, malformed, variables};
use nuncio_domain::{FieldError, address, limits};

use super::command::CreateTemplate;
use crate::base::{BLANK, FieldErrors, is_blank};

/// Returns the bodies of a template, each with the name of its field.
fn bodies(command: &CreateTemplate) -> Vec<(&'static str, &str)> {
    let optional = [("smsBody", &command.sms_body), ("telegramBody", &command.telegram_body), ("instagramBody", &command.instagram_body)];
    let mut bodies = vec![("body", command.body.as_str())];
    bodies.extend(optional.into_iter().filter_map(|(name, body)| Some((name, body.as_deref()?))));
    bodies
}

/// Returns the distinct variables of all bodies, in order.
pub(super) fn used(command: &CreateTemplate) -> Vec<String> {
    let mut names: Vec<String> = Vec::new();
    for (_, body) in bodies(command) {
        for name in variables(body) {
            if !names.iter().any(|known| known == name) {
                names.push(name.to_owned());
            }
        }
    }
    names
}

/// Collects all errors.
pub(super) fn check(command: &CreateTemplate) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut faults = FieldErrors { errors: &mut errors };
    faults.name("name", Some(&command.name), 1, limits::TEMPLATE_NAME);
    if command.name.trim() != command.name {
        faults.push("name", "must not start or end with spaces");
    }
    if !is_language(&command.language) {
        let shown: String = command.language.chars().take(64).collect();
        faults.push("language", format!("is {shown:?}; must be a language code such as en, en_US or es-ES"));
    }
    texts(command, &mut faults);
    names(command, &mut faults);
    header(command, &mut faults);
    faults.length("footer", command.footer.as_deref(), 1, limits::HEADER_FOOTER);
    if let Some(name) = command.footer.as_deref().and_then(|footer| variables(footer).first().copied()) {
        faults.push("footer", format!("contains {{{{{name}}}}}; must not contain variables"));
    }
    let buttons = command.buttons.as_deref().unwrap_or_default();
    faults.count("buttons", buttons.len(), 0, limits::BUTTONS);
    buttons.iter().enumerate().for_each(|(n, b)| button(&format!("buttons[{n}]"), b, &mut faults));
    errors
}

/// Letters, optionally followed by a script or region.
fn is_language(code: &str) -> bool {
    let mut parts = code.split(['_', '-']);
    let first = parts.next().unwrap_or_default();
    let subtag = |part: &str| (2..=4).contains(&part.len()) && part.bytes().all(|b| b.is_ascii_alphanumeric());
    (2..=3).contains(&first.len()) && first.bytes().all(|b| b.is_ascii_lowercase()) && parts.all(subtag) && code.len() <= 16
}

fn texts(command: &CreateTemplate, faults: &mut FieldErrors<'_>) {
    faults.length("body", Some(&command.body), 1, limits::TEMPLATE_BODY);
    faults.length("smsBody", command.sms_body.as_deref(), 1, limits::SMS_TEXT);
    faults.length("telegramBody", command.telegram_body.as_deref(), 1, limits::CHAT_TEXT);
    if let Some(body) = &command.instagram_body {
        faults.length("instagramBody", Some(body), 1, limits::INSTAGRAM_TEXT_BYTES);
        if body.len() > limits::INSTAGRAM_TEXT_BYTES {
            faults.push("instagramBody", format!("is {} bytes of UTF-8; must be at most {}", body.len(), limits::INSTAGRAM_TEXT_BYTES));
        }
    }
    for (field, body) in bodies(command) {
        if let Some(fault) = malformed(body) {
            faults.push(field, fault);
        }
        if !body.is_empty() && is_blank(body) {
            faults.push(field, BLANK);
        }
    }
}

fn names(command: &CreateTemplate, faults: &mut FieldErrors<'_>) {
    let used = used(command);
    let is_number = |name: &str| name.parse::<u8>().is_ok();
    // From the main body on: WhatsApp gets it alone.
    let mut numbers: Vec<u8> = Vec::new();
    for (field, body) in bodies(command) {
        let names = variables(body);
        if let Some(other) = names.iter().find(|name| is_number(name) != is_number(&used[0])) {
            faults.push(field, format!("uses {{{{{other}}}}} beside {{{{{}}}}}; use either numbers or names", used[0]));
        }
        numbers.extend(names.iter().filter_map(|name| name.parse::<u8>().ok()));
        for missing in (1..=numbers.iter().copied().max().unwrap_or(0)).filter(|n| !numbers.contains(n)).collect::<Vec<_>>() {
            faults.push(field, format!("skips {{{{{missing}}}}}; numbered variables count from 1 without a gap"));
            numbers.push(missing);
        }
    }
    let Some(declared) = &command.variables else { return };
    for (n, name) in declared.iter().enumerate() {
        let shown: String = name.chars().take(64).collect();
        if !used.contains(name) {
            faults.push(&format!("variables[{n}]"), format!("{shown:?} is not used in any body"));
        } else if declared[..n].contains(name) {
            faults.push(&format!("variables[{n}]"), format!("{shown:?} is a duplicate"));
        }
    }
    for name in used.iter().filter(|name| !declared.contains(name)) {
        faults.push("variables", format!("must include {name:?}, which a body uses"));
    }
}

fn header(command: &CreateTemplate, faults: &mut FieldErrors<'_>) {
    match (command.header_type, command.header_content.as_deref()) {
        (None, None) => {}
        (None, Some(_)) => faults.push("headerType", "is required with headerContent; must be text, image, video or document"),
        (Some(kind), None) => faults.push("headerContent", format!("is required when headerType is {kind}")),
        (Some(HeaderType::Text), Some(text)) => {
            faults.length("headerContent", Some(text), 1, limits::HEADER_FOOTER);
            if variables(text).len() > 1 || malformed(text).is_some() {
                faults.push("headerContent", "can contain at most one variable such as {{1}}");
            }
        }
        (Some(_), Some(url)) => faults.url("headerContent", Some(url)),
    }
}

fn button(path: &str, button: &Button, faults: &mut FieldErrors<'_>) {
    faults.length(&format!("{path}.text"), Some(&button.text), 1, limits::TEMPLATE_BUTTON);
    let mut only = |field: &str, present: bool, kind: ButtonType| {
        if present && button.kind != kind {
            faults.push(&format!("{path}.{field}"), format!("is for buttons of type {kind}; this one is of type {}", button.kind));
        } else if !present && button.kind == kind {
            faults.push(&format!("{path}.{field}"), format!("is required for a button of type {kind}"));
        }
    };
    only("url", button.url.is_some(), ButtonType::Url);
    only("phoneNumber", button.phone_number.is_some(), ButtonType::Phone);
    if let Some(url) = &button.url {
        button_url(path, url, faults);
    }
    faults.length(&format!("{path}.example"), button.example.as_deref(), 1, limits::TEMPLATE_URL);
    if let Some(number) = &button.phone_number
        && let Err(error) = address::phone(number)
    {
        faults.push(&format!("{path}.phoneNumber"), error.to_string());
    }
}

/// WhatsApp allows a variable only at the end.
fn button_url(path: &str, url: &str, faults: &mut FieldErrors<'_>) {
    let path = format!("{path}.url");
    let fixed = url.find("{{").map_or(url, |at| &url[..at]);
    faults.url(&path, Some(fixed));
    faults.length(&path, Some(url), 1, limits::TEMPLATE_URL);
    let at_end = fixed.len() == url.len() || (variables(url).len() == 1 && malformed(url).is_none() && url.ends_with("}}"));
    if !at_end || url.matches("{{").count() > 1 {
        faults.push(&path, "can contain one variable, at its end, such as https://example.com/{{1}}");
    }
}
