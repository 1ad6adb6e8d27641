//! Request types for broadcasts.

use std::collections::BTreeMap;

use nuncio_domain::Timestamp;
use nuncio_domain::broadcast::{BroadcastChannel, BroadcastType, Canary, ContactStatus, HaltOn, Status, WrittenQuietHours};
use nuncio_domain::message::Content;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::{IntoParams, ToSchema};

use crate::base::patch::given;

/// A broadcast to make.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateBroadcast {
    /// A name for people.
    #[schema(min_length = 1, max_length = 200, example = "Spring sale")]
    pub name: String,
    /// How the recipients are reached.
    pub channel: BroadcastChannel,
    /// What kind of content it has. Default `text`.
    #[serde(default)]
    pub message_type: Option<BroadcastType>,
    /// Text, caption, or the words of a call.
    #[serde(default)]
    #[schema(max_length = 1048576)]
    pub text: Option<String>,
    /// Extra content of types other than `text`.
    #[serde(default)]
    pub content: Option<Box<Content>>,
    /// Values of `{{variables}}` in text, subject and HTML, for recipients who have none of their own in `templateVariables`. Not for
    /// templates.
    #[serde(default)]
    pub variables: Option<BTreeMap<String, String>>,
    /// Who sends it; by default the environment's default sender.
    #[serde(default)]
    pub sender_id: Option<String>,
    /// Subject of emails; required for channel `email`.
    #[serde(default)]
    #[schema(max_length = 998)]
    pub email_subject: Option<String>,
    /// HTML body of emails.
    #[serde(default)]
    #[schema(max_length = 2097152)]
    pub email_html_body: Option<String>,
    /// How it begins: with some recipients, the others some time later.
    #[serde(default)]
    pub canary: Option<Canary>,
    /// When it is paused by itself. Default: never.
    #[serde(default)]
    pub halt_on: Option<HaltOn>,
    /// When none of its messages is sent, in each recipient's local time, which follows from the phone number.
    #[serde(default)]
    pub quiet_hours: Option<WrittenQuietHours>,
    /// Whether links in text and HTML are counted for each recipient: they lead over this node then. Default: false. Not for templates,
    /// and not for links with a variable in them.
    #[serde(default)]
    pub track_links: Option<bool>,
    /// When to send, at most 365 days ahead. Counts from `send` on; a moment that has passed then sends at once.
    #[serde(default)]
    pub scheduled_at: Option<Timestamp>,
    /// Your own data, returned unchanged: at most 50 keys, 16 KB, 5 levels.
    #[serde(default)]
    pub metadata: Option<Map<String, Value>>,
    /// Makes at most one broadcast per key. Same as the header `Idempotency-Key`.
    #[serde(default)]
    #[schema(min_length = 1, max_length = 255)]
    pub idempotency_key: Option<String>,
}

/// What shall change about a broadcast. What is left out stays; null clears what may be absent.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UpdateBroadcast {
    /// A name for people.
    #[serde(deserialize_with = "given")]
    #[schema(min_length = 1, max_length = 200, nullable = false)]
    pub name: Option<String>,
    /// Text, caption, or the words of a call.
    #[serde(deserialize_with = "given")]
    #[schema(max_length = 1048576)]
    pub text: Option<Option<String>>,
    /// Extra content, replaced whole.
    #[serde(deserialize_with = "given")]
    pub content: Option<Option<Box<Content>>>,
    /// Subject of emails.
    #[serde(deserialize_with = "given")]
    #[schema(max_length = 998)]
    pub email_subject: Option<Option<String>>,
    /// HTML body of emails.
    #[serde(deserialize_with = "given")]
    #[schema(max_length = 2097152)]
    pub email_html_body: Option<Option<String>>,
    /// Values of `{{variables}}`, replaced whole.
    #[serde(deserialize_with = "given")]
    pub variables: Option<Option<BTreeMap<String, String>>>,
    /// How it begins.
    #[serde(deserialize_with = "given")]
    pub canary: Option<Option<Canary>>,
    /// When it is paused by itself, replaced whole.
    #[serde(deserialize_with = "given")]
    pub halt_on: Option<Option<HaltOn>>,
    /// When none of its messages is sent, in each recipient's local time.
    #[serde(deserialize_with = "given")]
    pub quiet_hours: Option<Option<WrittenQuietHours>>,
    /// Whether links are counted.
    pub track_links: Option<bool>,
    /// Your own data, replaced whole.
    #[serde(deserialize_with = "given")]
    pub metadata: Option<Option<Map<String, Value>>>,
}

/// Recipients to add.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct AddBroadcastContacts {
    /// The recipients.
    #[schema(min_items = 1, max_items = 1000)]
    pub contacts: Vec<NewContact>,
}

/// One recipient to add.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[schema(as = NewBroadcastContact)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct NewContact {
    /// An E.164 phone number, an email address, or a numeric chat id (channels telegram and instagram).
    #[schema(example = "+34600111222")]
    pub recipient: String,
    /// Values of the template's variables, or of `{{variables}}` in the text, for this recipient. They go before those of the broadcast.
    #[serde(default)]
    pub template_variables: Option<BTreeMap<String, String>>,
    /// The same for its buttons, by index.
    #[serde(default)]
    pub template_button_variables: Option<BTreeMap<String, String>>,
    /// The same for its header.
    #[serde(default)]
    pub template_header_variables: Option<BTreeMap<String, String>>,
}

/// How to send a broadcast.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SendBroadcast {
    /// When to send, in place of what the broadcast says so far. A moment that has passed sends at once.
    pub scheduled_at: Option<Timestamp>,
}

/// When to send a broadcast that is scheduled.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScheduleBroadcast {
    /// The new moment: in the future, at most 365 days ahead.
    pub scheduled_at: Timestamp,
}

/// Which broadcasts are asked for: the query of `GET /v1/broadcasts`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct ListBroadcasts {
    /// Any of these statuses, repeated or joined by commas.
    #[param(value_type = Option<Vec<Status>>, style = Form, explode, min_items = 1)]
    pub status: Option<String>,
    /// Created at or after this moment.
    #[param(format = DateTime)]
    pub since: Option<String>,
    /// Created before this moment.
    #[param(format = DateTime)]
    pub until: Option<String>,
    /// Page size; 50 when absent.
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
    /// Where to continue: the `nextCursor` of the page before, with the same filter.
    pub cursor: Option<String>,
}

/// Which recipients are asked for: the query of `GET /v1/broadcasts/{id}/contacts`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct ListBroadcastContacts {
    /// Any of these statuses, repeated or joined by commas.
    #[param(value_type = Option<Vec<ContactStatus>>, style = Form, explode, min_items = 1)]
    pub status: Option<String>,
    /// Created at or after this moment.
    #[param(format = DateTime)]
    pub since: Option<String>,
    /// Created before this moment.
    #[param(format = DateTime)]
    pub until: Option<String>,
    /// Page size; 50 when absent.
    #[param(minimum = 1, maximum = 100)]
    pub limit: Option<u32>,
    /// Where to continue: the `nextCursor` of the page before, with the same filter.
    pub cursor: Option<String>,
}
