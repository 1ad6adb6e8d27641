//! Renders any message type as an email.

use nuncio_domain::MessageType;
use nuncio_domain::message::{Card, Content, Failure, FailureCode, Message};

use crate::html;

/// The body of an email.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Body {
    /// Plain text; from the HTML, when there is only that.
    pub(crate) text: String,
    /// HTML, if the caller gave any.
    pub(crate) html: Option<String>,
    /// A vCard file, for contacts.
    pub(crate) vcard: Option<String>,
}

/// One line that the message type adds below the text.
enum Line {
    Text(String),
    Link { label: String, url: String },
    Gap,
}

/// Says `message` in the words of an email, or why that cannot be.
pub(crate) fn body(message: &Message) -> Result<Body, Failure> {
    let none = Content::default();
    let content = message.request.content.as_deref().unwrap_or(&none);
    let lines = match message.message_type {
        // Templates are already rendered as text.
        MessageType::Text | MessageType::Template => Vec::new(),
        MessageType::Image | MessageType::Video | MessageType::Audio | MessageType::Document => media(message.message_type, content)?,
        MessageType::Location => location(content),
        MessageType::Contact => contacts(content.contacts.as_deref().unwrap_or_default()),
        MessageType::Buttons => buttons(content),
        MessageType::List => list(content),
        MessageType::CtaUrl => cta(content),
        MessageType::Sticker | MessageType::Reaction => {
            return Err(refused(format!("an email cannot carry a message of type {}", message.message_type)));
        }
    };
    let html = message.request.html_body.as_ref().map(|html| append_html(html, &lines));
    let text = match (&message.request.text, &html) {
        (Some(text), _) => append_text(text, &lines),
        (None, Some(html)) => html::to_text(html),
        (None, None) => append_text("", &lines),
    };
    let vcard = (message.message_type == MessageType::Contact).then(|| vcards(content.contacts.as_deref().unwrap_or_default()));
    Ok(Body { text, html, vcard })
}

fn refused(message: String) -> Failure {
    Failure::own(FailureCode::ContentRejected, message)
}

fn append_text(text: &str, lines: &[Line]) -> String {
    let mut out = text.to_owned();
    if lines.is_empty() {
        return out;
    }
    if !text.is_empty() {
        out.push_str("\n\n");
    }
    for line in lines {
        match line {
            Line::Text(text) => out.push_str(text),
            Line::Link { label, url } if label.is_empty() => out.push_str(url),
            Line::Link { label, url } => out.push_str(&format!("{label}: {url}")),
            Line::Gap => {}
        }
        out.push('\n');
    }
    out.trim_end().to_owned()
}

fn append_html(html: &str, lines: &[Line]) -> String {
    let extra: String = lines
        .iter()
        .map(|line| match line {
            Line::Text(text) => format!("<p>{}</p>", html::escape(text)),
            Line::Link { label, url } => {
                let label = if label.is_empty() { url } else { label };
                format!("<p><a href=\"{}\">{}</a></p>", html::escape(url), html::escape(label))
            }
            Line::Gap => String::new(),
        })
        .collect();
    match html.rfind("</body>") {
        Some(end) => format!("{}{extra}{}", &html[..end], &html[end..]),
        None => format!("{html}{extra}"),
    }
}

fn text_line(text: Option<&String>) -> Option<Line> {
    text.filter(|t| !t.is_empty()).map(|t| Line::Text(t.clone()))
}

fn media(kind: MessageType, content: &Content) -> Result<Vec<Line>, Failure> {
    let Some(url) = content.media_url.clone() else {
        return Err(refused("an email links to media by its mediaUrl; a mediaId means nothing to it".to_owned()));
    };
    let label = content.filename.clone().unwrap_or_else(|| {
        match kind {
            MessageType::Image => "Image",
            MessageType::Video => "Video",
            MessageType::Audio => "Audio",
            _ => "Document",
        }
        .to_owned()
    });
    Ok(vec![Line::Link { label, url }])
}

fn location(content: &Content) -> Vec<Line> {
    let (latitude, longitude) = (content.latitude.unwrap_or_default(), content.longitude.unwrap_or_default());
    let mut lines: Vec<_> = [&content.location_name, &content.location_address].into_iter().filter_map(|t| text_line(t.as_ref())).collect();
    let url = format!("https://www.openstreetmap.org/?mlat={latitude}&mlon={longitude}#map=16/{latitude}/{longitude}");
    lines.push(Line::Link { label: "Map".to_owned(), url });
    lines
}

fn contacts(cards: &[Card]) -> Vec<Line> {
    cards.iter().map(|card| Line::Text(format!("{}: {}", card.name, card.phones.join(", ")))).collect()
}

fn buttons(content: &Content) -> Vec<Line> {
    let choices = content.buttons.iter().flatten().map(|b| Line::Text(format!("- {}", b.title)));
    text_line(content.cta_header_text.as_ref()).into_iter().chain(choices).chain(text_line(content.footer_text.as_ref())).collect()
}

fn list(content: &Content) -> Vec<Line> {
    let mut lines: Vec<_> = text_line(content.list_button.as_ref()).into_iter().collect();
    for section in content.sections.iter().flatten() {
        if !lines.is_empty() {
            lines.push(Line::Gap);
        }
        lines.extend(text_line(Some(&section.title)));
        lines.extend(section.rows.iter().map(|row| {
            let description = row.description.as_ref().map(|d| format!(": {d}")).unwrap_or_default();
            Line::Text(format!("- {}{description}", row.title))
        }));
    }
    lines.extend(text_line(content.footer_text.as_ref()));
    lines
}

fn cta(content: &Content) -> Vec<Line> {
    let mut lines: Vec<_> = text_line(content.cta_header_text.as_ref()).into_iter().collect();
    if let Some(url) = content.cta_header_media_url.clone() {
        lines.push(Line::Link { label: String::new(), url });
    }
    if let Some(url) = content.cta_url.clone() {
        lines.push(Line::Link { label: content.cta_display_text.clone().unwrap_or_default(), url });
    }
    lines.extend(text_line(content.footer_text.as_ref()));
    lines
}

/// vCard 3.0 (RFC 2426), which every address book reads.
fn vcards(cards: &[Card]) -> String {
    cards
        .iter()
        .map(|card| {
            let name = vcard_text(&card.name);
            let phones: String = card.phones.iter().map(|p| format!("TEL;TYPE=CELL:{}\r\n", vcard_text(p))).collect();
            format!("BEGIN:VCARD\r\nVERSION:3.0\r\nN:;{name};;;\r\nFN:{name}\r\n{phones}END:VCARD\r\n")
        })
        .collect()
}

fn vcard_text(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '\\' | ',' | ';' => out.extend(['\\', c]),
            _ if c.is_control() => out.push(' '),
            _ => out.push(c),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use nuncio_domain::message::{Button, Row, Section};

    use super::*;
    use crate::testing::message;

    fn degraded(message_type: MessageType, content: Content) -> String {
        let mut message = message();
        message.message_type = message_type;
        message.request_mut().text = Some("Hello".into());
        message.request_mut().content = Some(Box::new(content));
        body(&message).unwrap().text
    }

    #[test]
    fn every_type_says_something() {
        let media = Content { media_url: Some("https://x.example/a.pdf".into()), ..Content::default() };
        assert_eq!(degraded(MessageType::Image, media.clone()), "Hello\n\nImage: https://x.example/a.pdf");
        assert_eq!(
            degraded(MessageType::Document, Content { filename: Some("bill.pdf".into()), ..media }),
            "Hello\n\nbill.pdf: https://x.example/a.pdf"
        );
        let place = Content { latitude: Some(40.5), longitude: Some(-3.25), location_name: Some("Sol".into()), ..Content::default() };
        assert_eq!(
            degraded(MessageType::Location, place),
            "Hello\n\nSol\nMap: https://www.openstreetmap.org/?mlat=40.5&mlon=-3.25#map=16/40.5/-3.25"
        );
        let buttons = Content {
            buttons: Some(vec![Button { id: "1".into(), title: "Yes".into() }, Button { id: "2".into(), title: "No".into() }]),
            footer_text: Some("Bye".into()),
            ..Content::default()
        };
        assert_eq!(degraded(MessageType::Buttons, buttons), "Hello\n\n- Yes\n- No\nBye");
        let row = Row { id: "r".into(), title: "Ten".into(), description: Some("in the morning".into()) };
        let list = Content {
            list_button: Some("Choose".into()),
            sections: Some(vec![Section { title: "Times".into(), rows: vec![row] }]),
            ..Content::default()
        };
        assert_eq!(degraded(MessageType::List, list), "Hello\n\nChoose\n\nTimes\n- Ten: in the morning");
        let cta = Content {
            cta_display_text: Some("Pay".into()),
            cta_url: Some("https://x.example/pay".into()),
            cta_header_text: Some("Bill".into()),
            ..Content::default()
        };
        assert_eq!(degraded(MessageType::CtaUrl, cta), "Hello\n\nBill\nPay: https://x.example/pay");
    }

    #[test]
    fn contacts_become_a_file() {
        let mut message = message();
        message.message_type = MessageType::Contact;
        message.request_mut().text = None;
        let card = Card { name: "Ada; Love\r\nlace".into(), phones: vec!["+34600111222".into()] };
        message.request_mut().content = Some(Box::new(Content { contacts: Some(vec![card]), ..Content::default() }));
        let body = body(&message).unwrap();
        assert_eq!(
            body.vcard.unwrap(),
            "BEGIN:VCARD\r\nVERSION:3.0\r\nN:;Ada\\; Love  lace;;;\r\nFN:Ada\\; Love  lace\r\nTEL;TYPE=CELL:+34600111222\r\nEND:VCARD\r\n"
        );
        assert!(body.text.contains("+34600111222"));
    }

    #[test]
    fn what_cannot_be_said_is_refused() {
        for kind in [MessageType::Sticker, MessageType::Reaction, MessageType::Image] {
            let mut message = message();
            message.message_type = kind;
            assert_eq!(body(&message).unwrap_err().code, FailureCode::ContentRejected, "{kind}");
        }
    }

    #[test]
    fn html_gets_the_extra_lines_too() {
        let mut message = message();
        message.message_type = MessageType::CtaUrl;
        message.request_mut().text = None;
        message.request_mut().html_body = Some("<body><p>Hi</p></body>".into());
        message.request_mut().content = Some(Box::new(Content {
            cta_display_text: Some("<Pay>".into()),
            cta_url: Some("https://x.example/?a=1&b=\"".into()),
            ..Content::default()
        }));
        let body = body(&message).unwrap();
        assert_eq!(body.html.unwrap(), "<body><p>Hi</p><p><a href=\"https://x.example/?a=1&amp;b=&quot;\">&lt;Pay&gt;</a></p></body>");
        assert_eq!(body.text, "Hi\n\n<Pay> (https://x.example/?a=1&b=\")");
    }
}
