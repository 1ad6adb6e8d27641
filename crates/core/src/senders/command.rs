//! Requests about senders.

use nuncio_domain::event::EventType;
use nuncio_domain::{FieldError, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use utoipa::ToSchema;

use crate::base::patch::{given, nullable};

/// A new sender.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateSender {
    /// Its name.
    #[schema(min_length = 1, max_length = 100)]
    pub name: String,
    /// Its phone number in E.164.
    #[schema(max_length = 16, example = "+34600111222")]
    pub phone_number: Option<String>,
    /// Whether messages without a sender use this one from now on.
    pub set_as_default: Option<bool>,
    /// Webhook for its events: a public https URL. The response contains the signing secret, only once.
    #[schema(min_length = 1, max_length = 2048, example = "https://example.com/hooks")]
    pub webhook_url: Option<String>,
    /// Event types; by default those of messages, conversations, broadcasts, templates and invitations.
    #[schema(min_items = 1)]
    pub webhook_events: Option<Vec<EventType>>,
    /// Whether inbound email is accepted. Default false.
    pub email_receiving_enabled: Option<bool>,
    /// Countries it can send to (ISO 3166-1 alpha-2); all by default. Applies to phone numbers only.
    #[schema(min_items = 1, max_items = 250, example = json!(["ES", "PT"]))]
    pub allowed_countries: Option<Vec<String>>,
    /// Spending limit per day, in US dollars; none by default.
    #[schema(value_type = Option<f64>, minimum = 0, maximum = 1_000_000_000)]
    pub daily_spend_limit: Option<Number>,
}

/// Changes of a sender; absent fields stay unchanged.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct UpdateSender {
    /// Its name.
    #[serde(default, deserialize_with = "given")]
    #[schema(min_length = 1, max_length = 100, nullable = false)]
    pub name: Option<String>,
    /// Its phone number in E.164; null for none.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(required = false, max_length = 16)]
    pub phone_number: Option<Option<String>>,
    /// `true` makes it the default sender, in place of the current one.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub set_as_default: Option<bool>,
    /// Webhook for its events; null removes it. If there was none, the response contains the signing secret, only once.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(required = false, min_length = 1, max_length = 2048)]
    pub webhook_url: Option<Option<String>>,
    /// Event types; null for the defaults.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(required = false, min_items = 1)]
    pub webhook_events: Option<Option<Vec<EventType>>>,
    /// Whether events are posted. `true` also resets the record of failures.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub webhook_active: Option<bool>,
    /// Whether inbound email is accepted.
    #[serde(default, deserialize_with = "given")]
    #[schema(nullable = false)]
    pub email_receiving_enabled: Option<bool>,
    /// Countries it can send to (ISO 3166-1 alpha-2); null for all.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(required = false, min_items = 1, max_items = 250)]
    pub allowed_countries: Option<Option<Vec<String>>>,
    /// Spending limit per day, in US dollars; null for none.
    #[serde(default, deserialize_with = "nullable")]
    #[schema(value_type = Option<f64>, required = false, minimum = 0, maximum = 1_000_000_000)]
    pub daily_spend_limit: Option<Option<Number>>,
    /// Fails with 409 if the sender was last changed at another time, for pages, which save all fields of a form.
    #[serde(skip)]
    pub expected_version: Option<Timestamp>,
    /// Fields that a page could not read, reported with all other errors.
    #[serde(skip)]
    pub unreadable: Vec<FieldError>,
}

impl From<CreateSender> for UpdateSender {
    fn from(create: CreateSender) -> Self {
        Self {
            name: Some(create.name),
            phone_number: create.phone_number.map(Some),
            set_as_default: create.set_as_default,
            webhook_url: create.webhook_url.map(Some),
            webhook_events: create.webhook_events.map(Some),
            webhook_active: None,
            email_receiving_enabled: create.email_receiving_enabled,
            allowed_countries: create.allowed_countries.map(Some),
            daily_spend_limit: create.daily_spend_limit.map(Some),
            expected_version: None,
            unreadable: Vec::new(),
        }
    }
}
