//! Request types for broadcasts.

use std::collections::BTreeMap;

use nuncio_domain::broadcast::{BroadcastChannel, BroadcastType, Canary, ContactStatus, HaltOn, Status, WrittenQuietHours};
use nuncio_domain::{Timestamp, message::Content};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use crate::base::patch::given;

/// A new broadcast.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateBroadcast {
    /// Display name.
    #[schema(min_length = 1, max_length = 200, example = "Spring sale")]
    pub name: String,
    /// Channel to the recipients.
    pub channel: BroadcastChannel,
    /// Content type. Default `text`.
    pub message_type: Option<BroadcastType>,
    /// Text, caption, or spoken text of a call. Like all content, it can be given later: `send` requires what the type and the channel need.
    #[schema(max_length = 1048576)]
    pub text: Option<String>,
    /// Extra content of types other than `text`.
    pub content: Option<Box<Content>>,
    /// Values of `{{variables}}` in text, subject and HTML, for recipients without `templateVariables` for them. Not for templates.
    pub variables: Option<BTreeMap<String, String>>,
    /// The sender. Default: the environment's default sender.
    pub sender_id: Option<String>,
    /// Subject of emails; channel `email` needs one to be sent.
    #[schema(max_length = 998)]
    pub email_subject: Option<String>,
    /// HTML body of emails.
    #[schema(max_length = 2097152)]
    pub email_html_body: Option<String>,
    /// Sends to some recipients first, and to the others later.
    pub canary: Option<Canary>,
    /// When it pauses automatically. Default: never.
    pub halt_on: Option<HaltOn>,
    /// When to send none of its messages, in each recipient's local time, which is derived from the phone number.
    pub quiet_hours: Option<WrittenQuietHours>,
    /// Whether clicks on links in text and HTML are counted for each recipient; such links redirect through this server. Default: false.
    /// Not for templates, and not for links that contain a variable.
    pub track_links: Option<bool>,
    /// When to send, at most 365 days ahead. Takes effect with `send`; if the time has passed by then, it is sent at once.
    pub scheduled_at: Option<Timestamp>,
    /// Your own data, returned unchanged: at most 50 keys, 16 KB, 5 levels.
    pub metadata: Option<Map<String, Value>>,
    /// Creates at most one broadcast per key. Same as the header `Idempotency-Key`.
    #[schema(min_length = 1, max_length = 255)]
    pub idempotency_key: Option<String>,
}

/// Changes of a broadcast. Absent fields stay unchanged; null clears an optional field.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct UpdateBroadcast {
    /// Display name.
    #[serde(deserialize_with = "given")]
    #[schema(min_length = 1, max_length = 200, nullable = false)]
    pub name: Option<String>,
    /// Text, caption, or spoken text of a call.
    #[serde(deserialize_with = "given")]
    #[schema(max_length = 1048576)]
    pub text: Option<Option<String>>,
    /// Extra content, replaced entirely.
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
    /// Values of `{{variables}}`, replaced entirely.
    #[serde(deserialize_with = "given")]
    pub variables: Option<Option<BTreeMap<String, String>>>,
    /// Sends to some recipients first.
    #[serde(deserialize_with = "given")]
    pub canary: Option<Option<Canary>>,
    /// When it pauses automatically, replaced entirely.
    #[serde(deserialize_with = "given")]
    pub halt_on: Option<Option<HaltOn>>,
    /// When to send none of its messages, in each recipient's local time.
    #[serde(deserialize_with = "given")]
    pub quiet_hours: Option<Option<WrittenQuietHours>>,
    /// Whether clicks on links are counted.
    #[serde(deserialize_with = "given")]
    #[schema(nullable = false)]
    pub track_links: Option<bool>,
    /// Your own data, replaced entirely.
    #[serde(deserialize_with = "given")]
    pub metadata: Option<Option<Map<String, Value>>>,
    /// Fails with 409 if the broadcast has another version now, for pages, which save all fields of a form.
    #[serde(skip)]
    pub expected_version: Option<i64>,
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
    /// Values of the template's variables, or of `{{variables}}` in the text, for this recipient. They override those of the broadcast.
    pub template_variables: Option<BTreeMap<String, String>>,
    /// The same for its buttons, by index.
    pub template_button_variables: Option<BTreeMap<String, String>>,
    /// The same for its header.
    pub template_header_variables: Option<BTreeMap<String, String>>,
}

/// How to send a broadcast.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct SendBroadcast {
    /// When to send, replacing the broadcast's `scheduledAt`. A time in the past sends at once.
    pub scheduled_at: Option<Timestamp>,
    /// Ignores the broadcast's `scheduledAt`, for pages, which show it in a field that can be emptied.
    #[serde(skip)]
    pub at_once: bool,
    /// Fails with 409 if the broadcast has another version or number of recipients now, for pages, which show them.
    #[serde(skip)]
    pub expected: Option<(i64, i64)>,
}

/// New time of a scheduled broadcast.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct ScheduleBroadcast {
    /// The new time: in the future, at most 365 days ahead.
    pub scheduled_at: Timestamp,
}

crate::base::list::list_query! {
    /// Query of `GET /v1/broadcasts`.
    ListBroadcasts {
        /// Statuses, repeated or comma-separated.
        #[param(value_type = Option<Vec<Status>>, style = Form, explode, min_items = 1)]
        pub status: Option<String>,
    }
}

crate::base::list::list_query! {
    /// Query of `GET /v1/broadcasts/{id}/contacts`.
    ListBroadcastContacts {
        /// Statuses, repeated or comma-separated.
        #[param(value_type = Option<Vec<ContactStatus>>, style = Form, explode, min_items = 1)]
        pub status: Option<String>,
    }
}
