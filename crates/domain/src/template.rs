//! Templates: texts with variables, approved by WhatsApp.

use serde::{Deserialize, Serialize};

use crate::id::{ConnectionId, SenderId, TemplateId, TenantId};
use crate::{channel::named, time::Timestamp};

named! {
    /// Approval status of a template at WhatsApp. Other channels need no approval.
    #[cfg_attr(feature = "openapi", schema(as = TemplateStatus, description = "Approval status of a template at WhatsApp. Other channels need no approval."))]
    Status {
        /// Not submitted.
        Draft = 1 "draft",
        /// WhatsApp is reviewing it.
        Pending = 2 "pending",
        /// Approved by WhatsApp.
        Approved = 3 "approved",
        /// Rejected by WhatsApp.
        Rejected = 4 "rejected",
    }
}

named! {
    /// WhatsApp category of a template.
    #[derive(Default)]
    #[cfg_attr(feature = "openapi", schema(as = TemplateCategory))]
    Category {
        /// About something the recipient requested.
        #[default]
        Utility = 1 "UTILITY",
        /// Advertising.
        Marketing = 2 "MARKETING",
        /// One-time codes.
        Authentication = 3 "AUTHENTICATION",
    }
}

named! {
    /// Header type.
    #[cfg_attr(feature = "openapi", schema(as = TemplateHeaderType))]
    HeaderType {
        Text = 1 "text",
        Image = 2 "image",
        Video = 3 "video",
        Document = 4 "document",
    }
}

named! {
    /// Action of a button.
    #[cfg_attr(feature = "openapi", schema(as = TemplateButtonType))]
    ButtonType {
        /// Sends its text as a reply.
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
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = TemplateButton))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Button {
    /// Action.
    #[serde(rename = "type")]
    pub kind: ButtonType,
    /// Label.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 25))]
    pub text: String,
    /// URL; can end in `{{1}}`, which each message fills in.
    #[cfg_attr(feature = "openapi", schema(max_length = 2000, example = "https://example.com/orders/{{1}}"))]
    pub url: Option<String>,
    /// Example value of the variable, required by WhatsApp.
    #[cfg_attr(feature = "openapi", schema(min_length = 1, max_length = 2000))]
    pub example: Option<String>,
    /// Number to call, in E.164.
    #[cfg_attr(feature = "openapi", schema(max_length = 20))]
    pub phone_number: Option<String>,
}

impl Button {
    /// Returns whether each message fills in its value.
    pub fn has_variable(&self) -> bool {
        match self.kind {
            ButtonType::Url => self.url.as_deref().is_some_and(|url| !variables(url).is_empty()),
            ButtonType::Otp => true,
            ButtonType::QuickReply | ButtonType::Phone => false,
        }
    }
}

/// Content of a template. Stored as JSON.
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Content {
    /// Version of the content, from 1. Independent of the row's version.
    #[serde(skip_serializing_if = "is_first")]
    pub revision: u32,
    /// The approved content, while a later revision is not approved.
    pub approved: Option<Box<Content>>,
    /// Name at WhatsApp, if it differs: each submitted revision is a separate template there.
    pub submitted_as: Option<String>,
    /// Text for channels without a separate text.
    pub body: String,
    /// Text for SMS.
    pub sms_body: Option<String>,
    /// Text for Telegram.
    pub telegram_body: Option<String>,
    /// Text for Instagram.
    pub instagram_body: Option<String>,
    /// WhatsApp category.
    #[serialize_always]
    pub category: Option<Category>,
    pub header_type: Option<HeaderType>,
    /// Text, or the URL of the media.
    pub header_content: Option<String>,
    /// Footer text.
    pub footer: Option<String>,
    /// Names of the body variables, in order.
    pub variables: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub buttons: Vec<Button>,
    /// The sender whose WhatsApp account submitted it.
    pub sender: Option<SenderId>,
    /// The connection that submitted it.
    pub connection: Option<ConnectionId>,
    /// The WhatsApp account that it was submitted to, if it has an id.
    pub business_account: Option<String>,
    /// WhatsApp's id.
    pub provider_id: Option<String>,
    /// Reason of the rejection.
    pub rejection_reason: Option<String>,
    /// When it was last submitted.
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
            business_account: None,
            provider_id: None,
            rejection_reason: None,
            submitted_at: None,
        }
    }
}

fn is_first(revision: &u32) -> bool {
    *revision == 1
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Template {
    pub tenant: TenantId,
    pub id: TemplateId,
    pub name: String,
    /// Such as `en` or `en_US`. Unique together with the name.
    pub language: String,
    /// Approval status at WhatsApp.
    pub status: Status,
    /// Incremented by each change; the `sequence` of its events.
    pub version: i64,
    /// When to poll WhatsApp for its status.
    pub due_at: Option<Timestamp>,
    pub content: Content,
    pub updated_at: Timestamp,
}

impl Template {
    /// Returns the template as used by messages: in the approved revision if there is one, otherwise in the newest.
    #[must_use]
    pub fn in_use(mut self) -> Self {
        if let Some(approved) = self.content.approved.take() {
            (self.content, self.status) = (*approved, Status::Approved);
        }
        self
    }

    pub fn approved_revision(&self) -> Option<u32> {
        match &self.content.approved {
            Some(approved) => Some(approved.revision),
            None => (self.status == Status::Approved).then_some(self.content.revision),
        }
    }

    /// Returns its name at WhatsApp.
    pub fn submitted_name(&self) -> &str {
        self.content.submitted_as.as_deref().unwrap_or(&self.name)
    }
}

/// WhatsApp's decision on a submitted template.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Decision {
    /// In review.
    Pending,
    Approved,
    /// Rejected.
    Rejected {
        reason: String,
    },
}

/// What an adapter needs of a message's template, as of acceptance.
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Used {
    pub name: String,
    pub language: String,
    /// Names of the body variables, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variables: Vec<String>,
    pub header_type: Option<HeaderType>,
    /// Text, or the URL of the media.
    pub header_content: Option<String>,
    /// Action of each button.
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

/// A piece of a template text.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Piece<'a> {
    Words(&'a str),
    Variable(&'a str),
    /// Braces without a valid name.
    Malformed(&'a str),
}

fn pieces(text: &str) -> Vec<Piece<'_>> {
    let (mut found, mut rest) = (Vec::new(), text);
    while let Some(start) = rest.find("{{") {
        let (before, opened) = rest.split_at(start);
        found.push(Piece::Words(before));
        rest = opened;
        let Some(end) = opened.find("}}") else { break };
        let name = opened[2..end].trim();
        found.push(if is_name(name) { Piece::Variable(name) } else { Piece::Malformed(&opened[..end + 2]) });
        rest = &opened[end + 2..];
    }
    found.push(if rest.starts_with("{{") { Piece::Malformed(rest) } else { Piece::Words(rest) });
    found
}

/// Returns whether `name` is a number from 1, or a letter followed by letters, digits and underscores.
fn is_name(name: &str) -> bool {
    let number = name.parse::<u8>().is_ok_and(|n| n > 0) && !name.starts_with(['0', '+']);
    let word = name.starts_with(|c: char| c.is_ascii_alphabetic()) && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
    number || (word && name.len() <= 64)
}

/// Returns the distinct variables of a text in order.
pub fn variables(text: &str) -> Vec<&str> {
    let (mut names, mut known) = (Vec::new(), std::collections::HashSet::new());
    for piece in pieces(text) {
        if let Piece::Variable(name) = piece
            && known.insert(name)
        {
            names.push(name);
        }
    }
    names
}

/// Returns what is wrong with the first malformed variable of a text.
pub fn malformed(text: &str) -> Option<String> {
    let wrong = pieces(text).into_iter().find_map(|piece| if let Piece::Malformed(text) = piece { Some(text) } else { None })?;
    let shown: String = wrong.chars().take(32).collect();
    Some(format!("{shown:?} is not a variable; must be {{{{1}}}}, {{{{2}}}} … or {{{{name}}}} of letters a to z, digits and underscores"))
}

/// Replaces variables by their values. Variables without a value stay; values are not expanded again.
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

/// Returns the length in bytes that [`fill`] would make a text. Values can make a short text huge.
pub fn filled_length(text: &str, values: &std::collections::BTreeMap<String, String>) -> usize {
    let length = |piece| match piece {
        Piece::Words(words) | Piece::Malformed(words) => words.len(),
        Piece::Variable(name) => values.get(name).map_or(name.len() + 4, String::len),
    };
    pieces(text).into_iter().map(length).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_are_found_and_filled_once() {
        assert_eq!(variables("Hi {{1}}, {{ name }} and {{1}}"), ["1", "name"]);
        for (text, shown) in [("{{0}}", "{{0}}"), ("a {{1}} b {{", "{{"), ("{{año}}", "{{año}}"), ("{{ .Name }} x", "{{ .Name }}")] {
            assert!(malformed(text).is_some_and(|fault| fault.starts_with(&format!("{shown:?} is not a variable"))), "{text}");
        }
        assert_eq!(malformed("{ {1} } {{ name }}"), None);
        let values = [("1".to_owned(), "{{name}}".to_owned()), ("name".to_owned(), "Ada".to_owned())].into();
        assert_eq!(fill("{{1}} {{name}} {{2}}", &values), "{{name}} Ada {{2}}");
        for text in ["{{1}} {{name}} {{ 2 }}", "é {{name}}{{name}} {{", ""] {
            assert_eq!(filled_length(text, &values), fill(text, &values).len(), "{text}");
        }
    }
}
