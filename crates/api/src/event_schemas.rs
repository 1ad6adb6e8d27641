//! Schemas of events, one per type, and their webhooks.

use nuncio_core::events::EventView;
use nuncio_domain::event::EventType;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::path::{HttpMethod, OperationBuilder, ParameterBuilder, ParameterIn, PathItem, PathsBuilder};
use utoipa::openapi::request_body::RequestBodyBuilder;
use utoipa::openapi::schema::{AnyOfBuilder, Object, Type};
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{ContentBuilder, ObjectBuilder, OpenApi, Ref, RefOr, Required, ResponseBuilder, Schema};
use utoipa::{PartialSchema as _, ToSchema};

/// Schemas of event data; events themselves are built by `nuncio_core`.
mod data {
    #![expect(dead_code, reason = "only their schemas are used")]

    use nuncio_core::broadcasts::BroadcastView;
    use nuncio_core::contacts::ContactView;
    use nuncio_core::invitations::InvitationView;
    use nuncio_core::messages::MessageView;
    use nuncio_core::suppressions::SuppressionView;
    use nuncio_core::templates::TemplateView;
    use nuncio_domain::invitation::InvitationStatus;
    use nuncio_domain::{broadcast, message, template};
    use utoipa::openapi::{RefOr, Schema};
    use utoipa::{PartialSchema, ToSchema};

    use crate::error_details::{ResourceReference, whole_or_erased};

    /// A message at the time of the event.
    #[derive(ToSchema)]
    #[schema(rename_all = "camelCase")]
    pub(super) struct MessageEventData {
        message: MessageView,
        /// The previous status; absent for a new message.
        previous_status: Option<message::Status>,
    }

    /// A broadcast at the time of the event.
    #[derive(ToSchema)]
    #[schema(rename_all = "camelCase")]
    pub(super) struct BroadcastEventData {
        broadcast: BroadcastView,
        /// The previous status.
        previous_status: broadcast::Status,
    }

    /// A template at the time of the event.
    #[derive(ToSchema)]
    #[schema(rename_all = "camelCase")]
    pub(super) struct TemplateEventData {
        template: TemplateView,
        /// The previous status.
        previous_status: template::Status,
    }

    /// An invitation at the time of the event.
    #[derive(ToSchema)]
    #[schema(rename_all = "camelCase")]
    pub(super) struct InvitationEventData {
        #[schema(schema_with = whole_or_erased::<InvitationWithoutLink>)]
        invitation: InvitationWithoutLink,
        /// The previous status; absent if the client was erased.
        previous_status: Option<InvitationStatus>,
    }

    /// A contact after another one was merged into it.
    #[derive(ToSchema)]
    #[schema(rename_all = "camelCase")]
    pub(super) struct ContactMergedEventData {
        #[schema(schema_with = whole_or_erased::<ContactView>)]
        contact: ContactView,
        /// The contact that was merged into it; absent if the contact was erased.
        #[schema(example = "con_01hgw2bbg0e9tatjpp9vyrkcyk")]
        merged_from: Option<String>,
    }

    /// A contact that opted out.
    #[derive(ToSchema)]
    pub(super) struct ContactOptedOutEventData {
        #[schema(schema_with = whole_or_erased::<ContactView>)]
        contact: ContactView,
        /// Absent if the contact was erased.
        suppression: Option<SuppressionView>,
    }

    /// A webhook that is being tested.
    #[derive(ToSchema)]
    pub(super) struct WebhookTestEventData {
        webhook: TestedWebhook,
    }

    /// The owner of the webhook being tested.
    #[derive(ToSchema)]
    #[schema(rename_all = "camelCase")]
    pub(super) struct TestedWebhook {
        /// The sender; absent for the environment's webhook.
        sender_id: Option<String>,
    }

    /// The resource, which the API key may not read.
    #[derive(ToSchema)]
    #[schema(rename_all = "camelCase")]
    pub(super) struct RestrictedEventData {
        broadcast: Option<ResourceReference>,
        contact: Option<ResourceReference>,
        invitation: Option<ResourceReference>,
        template: Option<ResourceReference>,
        /// Empty.
        #[schema(value_type = Option<Object>)]
        webhook: Option<()>,
        /// The previous status.
        previous_status: Option<String>,
    }

    /// An invitation without `url` and `token`: reading events must not be enough to use an invitation.
    pub(super) struct InvitationWithoutLink;

    impl PartialSchema for InvitationWithoutLink {
        fn schema() -> RefOr<Schema> {
            let mut schema = InvitationView::schema();
            if let RefOr::T(Schema::Object(object)) = &mut schema {
                object.description = Some("An invitation without `url` and `token`.".to_owned());
                object.properties.retain(|name, _| !is_link(name));
                object.required.retain(|name| !is_link(name));
            }
            schema
        }
    }

    impl ToSchema for InvitationWithoutLink {
        fn name() -> std::borrow::Cow<'static, str> {
            "InvitationWithoutLink".into()
        }

        fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
            InvitationView::schemas(schemas);
        }
    }

    fn is_link(name: &str) -> bool {
        matches!(name, "url" | "token")
    }
}

/// Webhook headers: name and description.
const HEADERS: &[(&str, &str)] = &[
    ("webhook-id", "The event's id, the same at each attempt."),
    ("webhook-timestamp", "When this attempt was made, in Unix seconds."),
    ("webhook-signature", "One signature per valid secret, `v1,<base64>`, separated by spaces (standardwebhooks.com)."),
];

const RESTRICTED: &str = "RestrictedEvent";

const DESCRIPTION: &str = "Any 2xx within 15 seconds is success. Events of one resource arrive in order while the endpoint is healthy; \
otherwise order them by `sequence`.";

/// Returns an event's schema name and description, and the schema name of its data.
fn describe(kind: EventType) -> (&'static str, &'static str, std::borrow::Cow<'static, str>) {
    use data::*;
    match kind {
        EventType::MessageQueued => ("MessageQueuedEvent", "A message was accepted", MessageEventData::name()),
        EventType::MessageSending => ("MessageSendingEvent", "The first attempt of a message began", MessageEventData::name()),
        EventType::MessageSent => ("MessageSentEvent", "A provider accepted a message", MessageEventData::name()),
        EventType::MessageDelivered => ("MessageDeliveredEvent", "A message was delivered", MessageEventData::name()),
        EventType::MessageRead => ("MessageReadEvent", "A message was read", MessageEventData::name()),
        EventType::MessageFailed => ("MessageFailedEvent", "A message failed or was cancelled", MessageEventData::name()),
        EventType::MessageInbound => ("MessageInboundEvent", "A contact wrote to a sender", MessageEventData::name()),
        EventType::ConversationNew => {
            ("ConversationNewEvent", "A contact wrote for the first time, or after 24 hours of silence", MessageEventData::name())
        }
        EventType::BroadcastStatusChanged => {
            ("BroadcastStatusChangedEvent", "The status of a broadcast changed", BroadcastEventData::name())
        }
        EventType::TemplateStatusChanged => ("TemplateStatusChangedEvent", "The status of a template changed", TemplateEventData::name()),
        EventType::InvitationStatusChanged => {
            ("InvitationStatusChangedEvent", "The status of an invitation changed", InvitationEventData::name())
        }
        EventType::ContactMerged => ("ContactMergedEvent", "Two contacts were merged", ContactMergedEventData::name()),
        EventType::ContactOptedOut => ("ContactOptedOutEvent", "A contact opted out", ContactOptedOutEventData::name()),
        EventType::WebhookTest => ("WebhookTestEvent", "A webhook is being tested", WebhookTestEventData::name()),
    }
}

/// Adds a schema for each event type, `Event` for all of them, and the webhooks.
pub(crate) fn add(document: &mut OpenApi) {
    let mut schemas = Vec::new();
    register::<data::MessageEventData>(&mut schemas);
    register::<data::BroadcastEventData>(&mut schemas);
    register::<data::TemplateEventData>(&mut schemas);
    register::<data::InvitationEventData>(&mut schemas);
    register::<data::InvitationWithoutLink>(&mut schemas);
    register::<data::ContactMergedEventData>(&mut schemas);
    register::<data::ContactOptedOutEventData>(&mut schemas);
    register::<data::WebhookTestEventData>(&mut schemas);
    register::<data::RestrictedEventData>(&mut schemas);
    schemas.push((RESTRICTED.to_owned(), restricted().into()));
    let mut any = AnyOfBuilder::new().description(Some("An event of any type.")).item(Ref::from_schema_name(RESTRICTED));
    let mut webhooks = PathsBuilder::new();
    for kind in EventType::ALL {
        let (name, summary, data) = describe(*kind);
        let reference = Ref::from_schema_name(name);
        schemas.push((name.to_owned(), event(*kind, summary, &data).into()));
        any = any.item(reference.clone());
        webhooks = webhooks.path(kind.as_str(), webhook(name, summary, reference));
    }
    schemas.push((EventView::name().into_owned(), RefOr::T(any.build().into())));
    document.components.get_or_insert_default().schemas.extend(schemas);
    document.webhooks = Some(webhooks.build());
}

fn register<T: ToSchema>(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    T::schemas(schemas);
    schemas.push((T::name().into_owned(), T::schema()));
}

fn event(kind: EventType, summary: &str, data: &str) -> Schema {
    let RefOr::T(Schema::Object(mut object)) = EventView::schema() else { return Object::default().into() };
    object.description = Some(format!("{summary}."));
    let constant = Extensions::from_iter([("const", kind.as_str())]); // not an extension, but utoipa has no field for it
    object.properties.insert("type".to_owned(), ObjectBuilder::new().schema_type(Type::String).extensions(Some(constant)).into());
    object.properties.insert("data".to_owned(), Ref::from_schema_name(data).into());
    object.into()
}

/// Returns the schema of an event whose resource the API key cannot read. Keys that read the log can read messages.
fn restricted() -> Schema {
    let RefOr::T(Schema::Object(mut object)) = EventView::schema() else { return Object::default().into() };
    object.description =
        Some("An event about a resource that the API key may not read: only id and status. Webhooks contain whole resources.".to_owned());
    let messages = data::MessageEventData::name();
    let kinds = EventType::ALL.iter().filter(|kind| describe(**kind).2 != messages).map(|kind| kind.as_str());
    object.properties.insert("type".to_owned(), ObjectBuilder::new().schema_type(Type::String).enum_values(Some(kinds)).into());
    object.properties.insert("data".to_owned(), Ref::from_schema_name(data::RestrictedEventData::name()).into());
    object.into()
}

fn webhook(name: &str, summary: &str, event: Ref) -> PathItem {
    let id = name.trim_end_matches("Event");
    let id = format!("on{id}");
    let body = ContentBuilder::new().schema(Some(event)).build();
    let text = || ObjectBuilder::new().schema_type(Type::String);
    let mut operation = OperationBuilder::new()
        .operation_id(Some(id))
        .tag("Webhooks")
        .summary(Some(summary))
        .description(Some(DESCRIPTION))
        .security(SecurityRequirement::default())
        .request_body(Some(RequestBodyBuilder::new().content("application/json", body).required(Some(Required::True)).build()))
        .response("2XX", ResponseBuilder::new().description("The event was received.").build())
        .response("410", ResponseBuilder::new().description("The webhook is disabled.").build());
    for (name, meaning) in HEADERS {
        let header = ParameterBuilder::new().name(*name).parameter_in(ParameterIn::Header).required(Required::True);
        operation = operation.parameter(header.description(Some(*meaning)).schema(Some(text())).build());
    }
    PathItem::new(HttpMethod::Post, operation)
}
