//! Requests about contacts.

use std::collections::BTreeMap;

use nuncio_domain::Channel;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::view::ContactChannelType;
use crate::base::patch;

/// A new contact.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateContact {
    /// How to reach the contact. An identifier must not belong to another contact.
    #[schema(min_items = 1, max_items = 20)]
    pub channels: Vec<ContactChannelIn>,
    /// The contact's name.
    #[schema(max_length = 200)]
    pub display_name: Option<String>,
    /// Your own data, returned unchanged: at most 50 keys, 16 KB, 5 levels.
    pub metadata: Option<Map<String, Value>>,
}

/// One channel of a contact.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = NewContactChannel)]
pub struct ContactChannelIn {
    /// The channel. `sms` includes `sms_oneway`.
    #[schema(value_type = ContactChannelType)]
    pub channel: Channel,
    /// Phone number, email address or chat id.
    #[schema(min_length = 1, max_length = 320, format = "recipient", example = "+34600111222")]
    pub identifier: String,
    /// ISO 3166-1 alpha-2; by default the country of the phone number.
    #[schema(pattern = "^[A-Za-z]{2}$")]
    pub country_code: Option<String>,
    /// Your name for it.
    #[schema(max_length = 50)]
    pub label: Option<String>,
    /// Whether it is the contact's primary one of its type.
    #[serde(default, skip_serializing_if = "is_default")]
    pub is_primary: Option<bool>,
}

/// One more channel of a contact.
pub type AddChannel = ContactChannelIn;

/// Changes of a contact. Absent fields stay unchanged.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateContact {
    /// The contact's name; empty for none.
    #[serde(default, deserialize_with = "patch::given")]
    #[schema(max_length = 200, nullable = false)]
    pub display_name: Option<String>,
    /// The preferred channel, one that the contact has; null for no preference.
    #[serde(default, deserialize_with = "patch::nullable")]
    #[schema(value_type = Option<ContactChannelType>)]
    pub default_channel: Option<Option<Channel>>,
    /// Your own data; replaces the previous one.
    #[serde(default, deserialize_with = "patch::given")]
    #[schema(nullable = false)]
    pub metadata: Option<Map<String, Value>>,
}

/// Changes of a contact channel. Absent fields stay unchanged.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateContactChannel {
    /// Your name for it; empty for none.
    #[serde(default, deserialize_with = "patch::given")]
    #[schema(max_length = 50, nullable = false)]
    pub label: Option<String>,
    /// Whether it is verified.
    #[serde(default, deserialize_with = "patch::given")]
    #[schema(nullable = false)]
    pub verified: Option<bool>,
    /// Your own data; replaces the previous one.
    #[serde(default, deserialize_with = "patch::given")]
    #[schema(nullable = false)]
    pub metadata: Option<Map<String, Value>>,
}

/// The contact to merge into this one.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct MergeContacts {
    /// The contact that is merged and disappears.
    #[schema(example = "con_01hgw2bbg0e9tatjpp9vyrkcyk")]
    pub source_contact_id: String,
}

crate::base::list::list_query! {
    /// Query of `GET /v1/contacts`.
    ListContacts {
        /// The contact with this phone number, in E.164 form. A leading space is read as `+`.
        #[param(example = "+34600111222")]
        pub phone_number: Option<String>,
        /// The contact with this email address.
        #[param(example = "ada@example.org")]
        pub email: Option<String>,
        /// Contacts whose name (`displayName`, or else `profileName`) contains this, ignoring case.
        pub name: Option<String>,
        /// Entries of `metadata`, as `metadata[key]=value`.
        #[param(style = DeepObject, explode)]
        pub metadata: BTreeMap<String, String>,
    }
}

/// False equals absent, also for idempotency.
fn is_default(flag: &Option<bool>) -> bool {
    *flag != Some(true)
}
