//! Renders templates as text, for channels without native templates. Pure.

use std::collections::BTreeMap;

use nuncio_domain::template::{Button, ButtonType, HeaderType, Template, fill, variables};
use nuncio_domain::{Channel, FieldError, broadcast::Variables, limits, message::Content};

use crate::base::FieldErrors;

type Values = BTreeMap<String, String>;

/// Returns the values in a message's content.
pub(crate) fn values(content: Option<&Content>) -> Variables {
    let Some(content) = content else { return Variables::default() };
    Variables {
        template_variables: content.template_variables.clone(),
        template_button_variables: content.template_button_variables.clone(),
        template_header_variables: content.template_header_variables.clone(),
    }
}

/// Returns an error for every missing or invalid value, and for unused ones as many as one response lists. Paths start with `prefix`.
pub(crate) fn check(template: &Template, values: &Variables, prefix: &str) -> Vec<FieldError> {
    let content = &template.content;
    let header = match content.header_type {
        Some(HeaderType::Text) => variables(content.header_content.as_deref().unwrap_or_default()),
        _ => Vec::new(),
    };
    let buttons = content.buttons.iter().enumerate().filter(|(_, b)| b.has_variable()).map(|(n, _)| n.to_string());
    let mut errors = Vec::new();
    let mut part = |name: &str, wanted: Vec<String>, given: Option<&Values>| {
        compare(&format!("{prefix}{name}"), &wanted, given, &mut errors);
    };
    part("templateVariables", content.variables.clone(), values.template_variables.as_ref());
    part("templateHeaderVariables", header.into_iter().map(str::to_owned).collect(), values.template_header_variables.as_ref());
    part("templateButtonVariables", buttons.collect(), values.template_button_variables.as_ref());
    for (n, value) in values.template_button_variables.iter().flatten().filter(|(_, value)| !value.is_empty()) {
        let button = n.parse().ok().and_then(|n: usize| content.buttons.get(n)).filter(|button| button.has_variable());
        let link = button
            .filter(|button| button.kind == ButtonType::Url)
            .map(|button| url(button.url.as_deref().unwrap_or_default(), Some(value)));
        FieldErrors { errors: &mut errors }.link(&format!("{prefix}templateButtonVariables.{n}"), link.as_deref());
    }
    errors
}

fn compare(path: &str, wanted: &[String], given: Option<&Values>, errors: &mut Vec<FieldError>) {
    let none = Values::new();
    let given = given.unwrap_or(&none);
    for name in wanted {
        match given.get(name) {
            None => errors.push(FieldError::new(format!("{path}.{name}"), "is required by the template")),
            Some(value) if value.is_empty() => errors.push(FieldError::new(format!("{path}.{name}"), "is empty; must have a value")),
            Some(value) => {
                let length = value.chars().count();
                if length > limits::TEMPLATE_VALUE {
                    let message = format!("has {length} characters; must have 1 to {}", limits::TEMPLATE_VALUE);
                    errors.push(FieldError::new(format!("{path}.{name}"), message));
                } else if value.contains('\0') {
                    errors.push(FieldError::new(format!("{path}.{name}"), "must not contain U+0000"));
                }
            }
        }
    }
    for name in given.keys().filter(|name| !wanted.contains(name)).take(limits::FIELD_ERRORS) {
        let shown: String = name.chars().take(64).collect();
        let known = if wanted.is_empty() { "it uses none".to_owned() } else { format!("it uses {}", wanted.join(", ")) };
        errors.push(FieldError::new(format!("{path}.{shown}"), format!("the template does not use this variable; {known}")));
    }
}

/// Renders the text for `channel`, with header, footer and buttons as lines; a call speaks only the body.
pub(crate) fn render(template: &Template, channel: Channel, values: &Variables) -> String {
    let content = &template.content;
    let none = Values::new();
    let of = |given: &Option<Values>| given.clone().unwrap_or_else(|| none.clone());
    let own = match channel {
        Channel::Sms | Channel::SmsOneway => content.sms_body.as_deref(),
        Channel::Telegram => content.telegram_body.as_deref(),
        Channel::Instagram => content.instagram_body.as_deref(),
        Channel::Whatsapp | Channel::Email | Channel::Voice => None,
    };
    let body = fill(own.unwrap_or(&content.body), &of(&values.template_variables));
    if channel == Channel::Voice {
        return body;
    }
    let header = content.header_content.as_deref().map(|header| fill(header, &of(&values.template_header_variables)));
    let buttons = of(&values.template_button_variables);
    let lines: Vec<String> = content.buttons.iter().enumerate().map(|(n, b)| button(b, buttons.get(&n.to_string()))).collect();
    let buttons = Some(lines.join("\n")).filter(|text| !text.is_empty());
    [header, Some(body), content.footer.clone(), buttons].into_iter().flatten().collect::<Vec<_>>().join("\n\n")
}

fn button(button: &Button, value: Option<&String>) -> String {
    let text = &button.text;
    match button.kind {
        ButtonType::QuickReply => format!("- {text}"),
        ButtonType::Url => format!("{text}: {}", url(button.url.as_deref().unwrap_or_default(), value)),
        ButtonType::Phone => format!("{text}: {}", button.phone_number.as_deref().unwrap_or_default()),
        ButtonType::Otp => format!("{text}: {}", value.map_or("", String::as_str)),
    }
}

fn url(url: &str, value: Option<&String>) -> String {
    let name = variables(url).first().map(|name| (*name).to_owned());
    let values = name.zip(value.cloned()).into_iter().collect();
    fill(url, &values)
}

#[cfg(test)]
mod tests {
    use super::*;
    use nuncio_domain::id::{Id as _, uuid_v7};
    use nuncio_domain::template::{self, Status};
    use nuncio_domain::{TemplateId, TenantId, Timestamp};

    fn template() -> Template {
        let button = |kind, text: &str, url: Option<&str>, phone: Option<&str>| Button {
            kind,
            text: text.to_owned(),
            url: url.map(str::to_owned),
            example: None,
            phone_number: phone.map(str::to_owned),
        };
        Template {
            tenant: TenantId(1),
            id: TemplateId::from_uuid(uuid_v7(Timestamp::from_millis(1), [1; 10])),
            name: "order".into(),
            language: "en".into(),
            status: Status::Draft,
            version: 0,
            due_at: None,
            content: template::Content {
                body: "Hello {{1}}, order {{2}} left.".into(),
                sms_body: Some("{{1}}: {{2}} left".into()),
                header_type: Some(HeaderType::Text),
                header_content: Some("News for {{who}}".into()),
                footer: Some("Acme".into()),
                variables: vec!["1".into(), "2".into()],
                buttons: vec![
                    button(ButtonType::Url, "Track", Some("https://example.com/{{1}}"), None),
                    button(ButtonType::Phone, "Call", None, Some("+34600111222")),
                    button(ButtonType::QuickReply, "Thanks", None, None),
                ],
                ..template::Content::default()
            },
            updated_at: Timestamp::from_millis(1),
        }
    }

    fn values(pairs: &[(&str, &str)]) -> Option<Values> {
        Some(pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect())
    }

    fn full() -> Variables {
        Variables {
            template_variables: values(&[("1", "Ada"), ("2", "77")]),
            template_button_variables: values(&[("0", "xyz")]),
            template_header_variables: values(&[("who", "you")]),
        }
    }

    #[test]
    fn each_channel_says_it_in_its_words() {
        let rest = "\n\nAcme\n\nTrack: https://example.com/xyz\nCall: +34600111222\n- Thanks";
        assert_eq!(render(&template(), Channel::Sms, &full()), format!("News for you\n\nAda: 77 left{rest}"));
        assert_eq!(render(&template(), Channel::Email, &full()), format!("News for you\n\nHello Ada, order 77 left.{rest}"));
        assert_eq!(render(&template(), Channel::Voice, &full()), "Hello Ada, order 77 left.");
    }

    #[test]
    fn what_is_missing_and_what_is_too_much_is_told() {
        assert_eq!(check(&template(), &full(), "content."), []);
        let wrong = Variables { template_variables: values(&[("1", ""), ("3", "x")]), ..Variables::default() };
        let paths: Vec<String> = check(&template(), &wrong, "content.").into_iter().map(|e| e.path).collect();
        assert_eq!(
            paths,
            [
                "content.templateVariables.1",
                "content.templateVariables.2",
                "content.templateVariables.3",
                "content.templateHeaderVariables.who",
                "content.templateButtonVariables.0",
            ]
        );
    }
}
