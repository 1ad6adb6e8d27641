//! A message of every type.

use nuncio_domain::message::Message;
use nuncio_domain::template::{ButtonType, HeaderType, Used};
use nuncio_domain::{MessageType, MessageType as Type};
use serde_json::{Value, json};

use crate::support::CLOUD;

const LINK: &str = "https://x.example/a.png";

fn template(content: Value, used: Used) -> Message {
    let mut message = CLOUD.message(Type::Template, Some("the words of a fallback"), content);
    message.request_mut().template = Some(Box::new(used));
    message
}

fn used(name: &str, language: &str, variables: &[&str]) -> Used {
    let variables = variables.iter().map(|&name| name.to_owned()).collect();
    Used { name: name.to_owned(), language: language.to_owned(), variables, header_type: None, header_content: None, buttons: Vec::new() }
}

/// A template whose variables are counted, written in another order than they are used in; with a picture above and a link below.
fn positional() -> Message {
    let content = json!({"templateId": "tpl_1", "templateVariables": {"1": "Ada", "2": "77"}, "templateButtonVariables": {"0": "xyz"}});
    let header = (Some(HeaderType::Image), Some(LINK.to_owned()));
    let buttons = vec![ButtonType::Url, ButtonType::QuickReply];
    template(content, Used { header_type: header.0, header_content: header.1, buttons, ..used("order", "en-US", &["2", "1"]) })
}

/// A template whose variables have names, one of them above.
fn named() -> Message {
    let content =
        json!({"templateId": "tpl_1", "templateVariables": {"name": "Ada", "number": "77"}, "templateHeaderVariables": {"who": "you"}});
    let header_content = Some("News for {{who}}".to_owned());
    template(content, Used { header_type: Some(HeaderType::Text), header_content, ..used("order", "en_US", &["name", "number"]) })
}

/// A one-time code: WhatsApp counts there, whatever the variable is called here.
fn code() -> Message {
    let content = json!({"templateId": "tpl_1", "templateVariables": {"code": "123456"}, "templateButtonVariables": {"0": "123456"}});
    template(content, Used { buttons: vec![ButtonType::Otp], ..used("code", "en", &["code"]) })
}

/// A template with a document at `url` as its header.
pub(crate) fn with_document(url: &str) -> Message {
    let header = (Some(HeaderType::Document), Some(url.to_owned()));
    template(json!({"templateId": "tpl_1"}), Used { header_type: header.0, header_content: header.1, ..used("order", "en", &[]) })
}

/// A template whose only variable has this value.
pub(crate) fn with_value(value: &str) -> Message {
    template(json!({"templateId": "tpl_1", "templateVariables": {"1": value}}), used("order", "en", &["1"]))
}

/// Every case with its name.
pub(crate) fn all() -> Vec<(&'static str, Message)> {
    let plain = |kind: MessageType, text: Option<&str>, content: Value| CLOUD.message(kind, text, content);
    let sections = json!([
        {"title": "A", "rows": [{"id": "1", "title": "One", "description": "first"}]},
        {"title": "B", "rows": [{"id": "2", "title": "Two"}]}
    ]);
    let cta = |more: Value| {
        let mut content = json!({"ctaDisplayText": "Pay", "ctaUrl": "https://x.example/pay"});
        content.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        CLOUD.message(Type::CtaUrl, Some("Well?"), content)
    };
    let document = json!({"mediaUrl": "https://x.example/a.pdf", "filename": "bill.pdf", "mimeType": "application/pdf"});
    vec![
        ("text", plain(Type::Text, Some("Hola"), json!({}))),
        ("image", plain(Type::Image, Some("See"), json!({"mediaUrl": LINK}))),
        ("video", plain(Type::Video, None, json!({"mediaUrl": "https://x.example/a.mp4"}))),
        ("audio", plain(Type::Audio, None, json!({"mediaId": "1013859600285441"}))),
        ("document", plain(Type::Document, Some("See"), document)),
        ("sticker", plain(Type::Sticker, None, json!({"mediaId": "1013859600285441"}))),
        (
            "location",
            plain(Type::Location, None, json!({"latitude": 40.5, "longitude": -3.25, "locationName": "Sol", "locationAddress": "Plaza 1"})),
        ),
        ("contact", plain(Type::Contact, None, json!({"contacts": [{"name": "Ada", "phones": ["+34600111222"]}]}))),
        (
            "buttons",
            plain(
                Type::Buttons,
                Some("Well?"),
                json!({"buttons": [{"id": "y", "title": "Yes"}, {"id": "n", "title": "No"}], "footerText": "Acme"}),
            ),
        ),
        ("list", plain(Type::List, Some("Well?"), json!({"listButton": "Choose", "sections": sections, "footerText": "Acme"}))),
        ("cta_text", cta(json!({"ctaHeaderText": "Bill", "footerText": "Acme"}))),
        ("cta_image", cta(json!({"ctaHeaderType": "image", "ctaHeaderMediaUrl": LINK}))),
        ("reaction", plain(Type::Reaction, None, json!({"reactToMessageId": "wamid.A", "emoji": "👍"}))),
        ("positional", positional()),
        ("named", named()),
        ("code", code()),
    ]
}
