//! Schemas of `details`, by error code. Bodies are made from [`nuncio_domain::Error`].
#![expect(dead_code, reason = "only their schemas are used")]

use serde::Serialize;
use utoipa::openapi::schema::AnyOfBuilder;
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// One fault of a request.
#[derive(ToSchema)]
#[schema(as = FieldError)]
pub(crate) struct Fault {
    /// Where it is: `content.buttons[2].title`, `query.limit`, `header.Service-Sender`.
    path: String,
    /// What was wrong, and what would be right.
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

/// Where the body stops being JSON.
#[derive(ToSchema)]
pub(crate) struct InvalidJsonDetails {
    /// Line, from 1.
    line: u64,
    /// Column, from 1.
    column: u64,
}

/// Either `errors`, or the status that does not allow the operation, or another reason.
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

/// Which identifier is taken.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct DuplicateIdentifierDetails {
    /// Which field has it.
    errors: Option<Vec<Fault>>,
    /// The contact that it belongs to.
    contact_id: Option<String>,
}

/// The balance of the environment, or the daily limit of the sender, in US dollars.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct InsufficientBalanceDetails {
    /// What the operation may cost.
    required: f64,
    /// `reserved` and `available` together.
    balance: Option<f64>,
    /// Reserved for messages and broadcasts in flight.
    reserved: Option<f64>,
    /// What can be spent.
    available: Option<f64>,
    /// The sender's daily limit, if that is what refuses the operation.
    daily_spend_limit: Option<f64>,
    /// What the sender has spent or reserved today (UTC).
    spent_today: Option<f64>,
}

/// What the environment stores and may store, in bytes.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct StorageQuotaExceededDetails {
    /// What the environment stores.
    stored_bytes: i64,
    /// What it may store.
    max_bytes: i64,
    /// What the request needs.
    required_bytes: i64,
}

/// Which permission is missing.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct ForbiddenDetails {
    /// The permission that the API key lacks.
    #[schema(example = "messages:send")]
    required_permission: String,
}

/// Which field names something that does not exist.
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

/// How the operator finds the cause.
#[derive(ToSchema)]
#[schema(rename_all = "camelCase")]
pub(crate) struct InternalErrorDetails {
    /// The request's id, which is in the log line of the cause.
    request_id: String,
}

/// Whether anything was done.
#[derive(ToSchema)]
pub(crate) struct UnavailableDetails {
    /// `unknown`: the request may have been carried out; send it again with the same idempotency key. Absent: nothing was done.
    outcome: Option<String>,
}

/// The `code` of the answer to a repeated idempotency key: `idempotency_conflict` if the request is the same, `idempotency_key_reused`
/// if it is another.
#[derive(ToSchema)]
#[schema(rename_all = "snake_case")]
pub(crate) enum IdempotencyCode {
    /// The request is the same.
    IdempotencyConflict,
    /// The request is another.
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
    let whole = AnyOfBuilder::new().description(Some("Id and status only if the API key may not read it."));
    whole.item(Ref::from_schema_name(T::name())).item(Ref::from_schema_name(ResourceReference::name())).build().into()
}
