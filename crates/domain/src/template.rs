//! Templates: texts with variables, written once and approved by WhatsApp.

use serde::{Deserialize, Serialize};

use crate::channel::named;
use crate::id::{ConnectionId, SenderId, TemplateId};
use crate::tenant::TenantId;
use crate::time::Timestamp;

named! {
    /// Where a template stands with WhatsApp. Other channels need no approval.
    #[cfg_attr(feature = "openapi", schema(as = TemplateStatus, description = "Where a template stands with WhatsApp. Other channels need no approval."))]
    Status {
        /// Not submitted.
        Draft = 1 "draft",
        /// WhatsApp is looking at it.
        Pending = 2 "pending",
        /// It can be sent by WhatsApp.
        Approved = 3 "approved",
        /// WhatsApp refused it.
        Rejected = 4 "rejected",
    }
}

named! {
    /// What a template is for, in WhatsApp's terms.
    #[derive(Default)]
    #[cfg_attr(feature = "openapi", schema(as = TemplateCategory))]
    Category {
        /// About something that the recipient asked for.
        #[serde(rename = "UTILITY")]
        #[default]
        Utility = 1 "UTILITY",
        /// Advertising.
        #[serde(rename = "MARKETING")]
        Marketing = 2 "MARKETING",
        /// One-time codes.
        #[serde(rename = "AUTHENTICATION")]
        Authentication = 3 "AUTHENTICATION",
    }
}

named! {
    /// What stands above the body.
    #[cfg_attr(feature = "openapi", schema(as = TemplateHeaderType))]
    HeaderType {
        /// Words.
        Text = 1 "text",
        /// A picture.
        Image = 2 "image",
        /// A video.
        Video = 3 "video",
        /// A file.
        Document = 4 "document",
    }
}

named! {
    /// What a button does.
    #[cfg_attr(feature = "openapi", schema(as = TemplateButtonType))]
    ButtonType {
        /// Sends its text back.
        QuickReply = 1 "quick_reply",
        /// Opens a page.
        Url = 2 "url",
        /// Calls a number.
        Phone = 3 "phone",
        /// Copies a one-time code.
        Otp = 4 "otp",
    }
}

/// One button.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TemplateButton))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Button {
    /// What it does.
    #[serde(rename = "type")]
    pub kind: ButtonType,
    /// What it says.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 25))]
    pub text: String,
    /// The page; may end in `{{1}}`, whose value comes with the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 2000, example = "https://example.com/orders/{{1}}"))]
    pub url: Option<String>,
    /// An example of the variable, which WhatsApp asks for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 2000))]
    pub example: Option<String>,
    /// The number to call, in E.164.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(feature = "openapi", schema(max_length = 20))]
    pub phone_number: Option<String>,
}

impl Button {
    /// Whether its value comes with the message.
    pub fn has_variable(&self) -> bool {
        match self.kind {
            ButtonType::Url => self.url.as_deref().is_some_and(|url| !variables(url).is_empty()),
            ButtonType::Otp => true,
            ButtonType::QuickReply | ButtonType::Phone => false,
        }
    }
}

/// What a template says. Stored as JSON.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Content {
    /// The version of the text, from 1; not that of the row.
    #[serde(skip_serializing_if = "is_first")]
    pub revision: u32,
    /// What WhatsApp approved, while a later revision has no approval yet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub approved: Option<Box<Content>>,
    /// The name that WhatsApp knows it by, if that is another one: there each revision that was submitted is a template of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted_as: Option<String>,
    /// The text, for every channel without one of its own.
    pub body: String,
    /// For SMS.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sms_body: Option<String>,
    /// For Telegram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub telegram_body: Option<String>,
    /// For Instagram.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub instagram_body: Option<String>,
    /// For WhatsApp.
    pub category: Option<Category>,
    /// What stands above.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_type: Option<HeaderType>,
    /// Words, or the URL of the media.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub header_content: Option<String>,
    /// Small print below.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub footer: Option<String>,
    /// Names of the variables of the bodies, in order.
    pub variables: Vec<String>,
    /// Buttons.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Button>,
    /// The sender whose WhatsApp account it was submitted by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sender: Option<SenderId>,
    /// The connection that it was submitted by.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub connection: Option<ConnectionId>,
    /// WhatsApp's own id for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub provider_id: Option<String>,
    /// Why WhatsApp refused it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rejection_reason: Option<String>,
    /// When it was submitted last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub submitted_at: Option<Timestamp>,
}

impl Default for Content {
    fn default() -> Self {
        Self {
            revision: 1,
            approved: None,
            submitted_as: None,
            body: String::new(),
            sms_body: None,
            telegram_body: None,
            instagram_body: None,
            category: None,
            header_type: None,
            header_content: None,
            footer: None,
            variables: Vec::new(),
            buttons: Vec::new(),
            sender: None,
            connection: None,
            provider_id: None,
            rejection_reason: None,
            submitted_at: None,
        }
    }
}

fn is_first(revision: &u32) -> bool {
    *revision == 1
}

/// A template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    /// The world.
    pub tenant: TenantId,
    /// Its identifier.
    pub id: TemplateId,
    /// Its name.
    pub name: String,
    /// Its language, such as `en` or `en_US`. Name and language together are unique.
    pub language: String,
    /// Where it stands with WhatsApp.
    pub status: Status,
    /// Grows with every change; the `sequence` of its events.
    pub version: i64,
    /// When WhatsApp must be asked about it.
    pub due_at: Option<Timestamp>,
    /// What it says.
    pub content: Content,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Template {
    /// The template as messages are made from it: in the revision that WhatsApp approved, if there is one, else in the newest.
    #[must_use]
    pub fn in_use(mut self) -> Self {
        if let Some(approved) = self.content.approved.take() {
            (self.content, self.status) = (*approved, Status::Approved);
        }
        self
    }

    /// The revision that WhatsApp approved.
    pub fn approved_revision(&self) -> Option<u32> {
        match &self.content.approved {
            Some(approved) => Some(approved.revision),
            None => (self.status == Status::Approved).then_some(self.content.revision),
        }
    }

    /// The name that WhatsApp knows it by.
    pub fn submitted_name(&self) -> &str {
        self.content.submitted_as.as_deref().unwrap_or(&self.name)
    }
}

/// What WhatsApp says of a template that was submitted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// Still looking.
    Pending,
    /// It can be sent.
    Approved,
    /// It cannot.
    Rejected {
        /// Why.
        reason: String,
    },
}

/// What an adapter must know of the template of a message, as it was when the message was accepted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Used {
    /// Its name.
    pub name: String,
    /// Its language.
    pub language: String,
    /// Names of the variables of the body, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    /// What stands above the body.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_type: Option<HeaderType>,
    /// Words, or the URL of the media.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub header_content: Option<String>,
    /// What each button does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<ButtonType>,
}

impl From<&Template> for Used {
    fn from(template: &Template) -> Self {
        Self {
            name: template.submitted_name().to_owned(),
            language: template.language.clone(),
            variables: variables(&template.content.body).into_iter().map(str::to_owned).collect(),
            header_type: template.content.header_type,
            header_content: template.content.header_content.clone(),
            buttons: template.content.buttons.iter().map(|b| b.kind).collect(),
        }
    }
}

/// One piece of a text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Piece<'a> {
    Words(&'a str),
    Variable(&'a str),
    /// Braces that hold no name.
    Malformed(&'a str),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(start) = rest.find("{{") {
        let (before, opened) = rest.split_at(start);
        let Some(end) = opened.find("}}") else { break };
        let name = opened[2..end].trim();
        found.push(Piece::Words(before));
        found.push(if is_name(name) { Piece::Variable(name) } else { Piece::Malformed(&opened[..end + 2]) });
        rest = &opened[end + 2..];
    }
    found.push(if rest.contains("{{") { Piece::Malformed(rest) } else { Piece::Words(rest) });
    found
}

/// A number from 1, or letters, digits and underscores that begin with a letter.
fn is_name(name: &str) -> bool {
    let number = name.parse::<u8>().is_ok_and(|n| n > 0) && !name.starts_with(['0', '+']);
    let word = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    number || (word && name.len() <= 64)
}

/// The variables of a text in order, each once.
pub fn variables(text: &str) -> Vec<&str> {
    let mut names = Vec::new();
    for piece in pieces(text) {
        if let Piece::Variable(name) = piece
            && !names.contains(&name)
        {
            names.push(name);
        }
    }
    names
}

/// The first piece of a text that looks like a variable and is none.
pub fn malformed(text: &str) -> Option<&str> {
    pieces(text).into_iter().find_map(|piece| if let Piece::Malformed(text) = piece { Some(text) } else { None })
}

/// The text with its variables replaced; what has no value stays as it is. Values are not read for variables again.
pub fn fill(text: &str, values: &std::collections::BTreeMap<String, String>) -> String {
    let mut out = String::with_capacity(text.len());
    for piece in pieces(text) {
        match piece {
            Piece::Words(words) | Piece::Malformed(words) => out.push_str(words),
            Piece::Variable(name) => match values.get(name) {
                Some(value) => out.push_str(value),
                None => out.push_str(&format!("{{{{{name}}}}}")),
            },
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_and_filled_once() {
        assert_eq!(variables("Hi {{1}}, {{ name }} and {{1}}"), ["1", "name"]);
        assert_eq!(malformed("{{0}}"), Some("{{0}}"));
        assert_eq!(malformed("a {{1}} {{"), Some(" {{"));
        assert_eq!(malformed("{ {1} }"), None);
        let values = [("1".to_owned(), "{{name}}".to_owned()), ("name".to_owned(), "Ada".to_owned())].into();
        assert_eq!(fill("{{1}} {{name}} {{2}}", &values), "{{name}} Ada {{2}}");
    }
}
