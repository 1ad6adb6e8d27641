//! Schemas of `details`, by error code. Bodies are made from [`nuncio_domain::Error`].
#![expect(dead_code, reason = "only their schemas are used")]

use serde::Serialize;
use utoipa::openapi::schema::AnyOfBuilder;
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// One field error.
#[derive(ToSchema)]
#[schema(as = FieldError)]
pub(crate) struct Fault {
    /// The field: `content.buttons[2].title`, `query.limit`, `header.Service-Sender`.
    path: String,
    /// What is wrong, and how to fix it.
    message: String,
}

#[derive(Serialize)]
pub(crate) struct NoDetails {}

impl PartialSchema for NoDetails {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().description(Some("Always empty.")).max_properties(Some(0)).into()
    }
}

impl ToSchema for NoDetails {}

/// Position of the JSON syntax error.
#[derive(ToSchema)]
pub(crate) struct InvalidJsonDetails {
    /// Line, from 1.
    line: u64,
    /// Column, from 1.
    column: u64,
}

/// Field errors, or the status that does not allow the operation, or another reason.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct InvalidRequestDetails {
    /// Every field error of the request.
    errors: Option<Vec<Fault>>,
    /// The status that does not allow the operation.
    current_status: Option<String>,
    /// The statuses that allow it.
    allowed_from: Option<Vec<String>>,
    /// Why a sender cannot be deleted.
    reason: Option<UndeletableReason>,
}

/// Why a sender cannot be deleted.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum UndeletableReason {
    /// It is the default sender.
    DefaultSender,
    /// It has messages that are queued, scheduled, being sent or held.
    QueuedMessages,
}

/// The status that does not allow the operation.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct WrongStatusDetails {
    /// The status of the resource.
    current_status: String,
    /// The statuses that allow the operation.
    allowed_from: Vec<String>,
}

/// The identifier that belongs to another contact.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct DuplicateIdentifierDetails {
    /// The field that contains it.
    errors: Option<Vec<Fault>>,
    /// The contact that it belongs to.
    contact_id: Option<String>,
}

/// The balance of the environment and, if it is too low, the daily limit of the sender, in US dollars.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct InsufficientBalanceDetails {
    /// Maximum cost of the operation.
    required: f64,
    /// `reserved` and `available` together.
    balance: f64,
    /// Reserved for messages and broadcasts in flight.
    reserved: f64,
    /// Available to spend.
    available: f64,
    /// The sender's daily limit, if it is too low for the operation.
    daily_spend_limit: Option<f64>,
    /// What the sender has spent or reserved today (UTC), if its daily limit is too low.
    spent_today: Option<f64>,
}

/// Storage use and quota of the environment, in bytes.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct StorageQuotaExceededDetails {
    /// Storage in use.
    stored_bytes: i64,
    /// The quota.
    max_bytes: i64,
    /// Storage that the request needs.
    required_bytes: i64,
}

/// The missing permission.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct ForbiddenDetails {
    /// The permission that the API key lacks.
    #[schema(example = "messages:send")]
    required_permission: String,
}

/// The field that names a missing resource.
#[derive(ToSchema)]
pub(crate) struct NotFoundDetails {
    /// The field, if it is not the path.
    errors: Option<Vec<Fault>>,
}

/// What the resource conflicts with.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct ConflictDetails {
    /// The contact that the contact was merged into; change that one.
    merged_into: Option<String>,
}

/// Identifies the cause in the log.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct InternalErrorDetails {
    /// The request's id, which the log line of the cause contains.
    request_id: String,
}

/// Whether the request was carried out.
#[derive(ToSchema)]
pub(crate) struct UnavailableDetails {
    /// `unknown`: possibly carried out; send it again with the same idempotency key. Absent: not carried out.
    outcome: Option<String>,
}

/// The `code` of the response to a repeated idempotency key: `idempotency_conflict` if the request is the same, `idempotency_key_reused`
/// if it differs.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum IdempotencyCode {
    /// The request is the same.
    IdempotencyConflict,
    /// The request differs.
    IdempotencyKeyReused,
}

/// A resource that the API key may not read.
#[derive(ToSchema)]
pub(crate) struct ResourceReference {
    /// Its identifier.
    id: String,
    /// Its status, if it has one.
    status: Option<String>,
}

/// Returns the schema of a resource: complete for API keys that can read it, otherwise a reference.
pub(crate) fn whole_or_reference<T: ToSchema>() -> Schema {
    or_reference::<T>("Only id and status if the API key may not read it.")
}

/// Returns the schema of a resource that can have been erased since.
pub(crate) fn whole_or_erased<T: ToSchema>() -> Schema {
    or_reference::<T>("Only its id if it was erased after the event.")
}

fn or_reference<T: ToSchema>(when: &str) -> Schema {
    let whole = AnyOfBuilder::new().description(Some(when)).item(Ref::from_schema_name(T::name()));
    whole.item(Ref::from_schema_name(ResourceReference::name())).build().into()
}
