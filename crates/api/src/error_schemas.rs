//! Schemas of errors: one per code, so that the document specifies `details`.

use std::borrow::Cow;

use nuncio_domain::ErrorCode;
use serde::Serialize;
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::schema::{Discriminator, OneOfBuilder, Type};
use utoipa::openapi::{ObjectBuilder, Ref, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::error_details::*;

/// Maps each code to the schema of its `details`; a code without one does not compile.
macro_rules! details {
    ($($code:ident => $details:ident,)*) => {
        const fn variant(code: ErrorCode) -> &'static str {
            match code { $(ErrorCode::$code => stringify!($code),)* }
        }

        fn details_name(code: ErrorCode) -> Cow<'static, str> {
            match code { $(ErrorCode::$code => $details::name(),)* }
        }

        fn add_details(code: ErrorCode, schemas: &mut Vec<(String, RefOr<Schema>)>) {
            match code {
                $(ErrorCode::$code => {
                    $details::schemas(schemas);
                    schemas.push(($details::name().into_owned(), $details::schema()));
                })*
            }
        }
    };
}

details! {
    InvalidJson => InvalidJsonDetails,
    InvalidRequest => InvalidRequestDetails,
    WhatsappWindowClosed => NoDetails,
    WindowClosed => NoDetails,
    NoContacts => NoDetails,
    SenderNotConfigured => NoDetails,
    TemplateNotApproved => NoDetails,
    BroadcastNotEditable => WrongStatusDetails,
    ReviewAttemptsExhausted => NoDetails,
    DuplicateIdentifier => DuplicateIdentifierDetails,
    Unauthorized => NoDetails,
    InsufficientBalance => InsufficientBalanceDetails,
    Forbidden => ForbiddenDetails,
    NotFound => NotFoundDetails,
    MethodNotAllowed => NoDetails,
    NotAcceptable => NoDetails,
    IdempotencyConflict => NoDetails,
    IdempotencyKeyReused => NoDetails,
    Conflict => ConflictDetails,
    PayloadTooLarge => NoDetails,
    UnsupportedMediaType => NoDetails,
    RequestTimeout => NoDetails,
    RateLimitExceeded => NoDetails,
    InternalError => InternalErrorDetails,
    Unavailable => UnavailableDetails,
    StorageQuotaExceeded => StorageQuotaExceededDetails,
}

/// Returns whether the body contains the original resource; each resource has a schema for these codes.
pub(crate) const fn is_repeat(code: ErrorCode) -> bool {
    matches!(code, ErrorCode::IdempotencyConflict | ErrorCode::IdempotencyKeyReused)
}

/// Returns the codes whose body is the same for every operation.
pub(crate) fn common() -> impl Iterator<Item = ErrorCode> {
    ErrorCode::ALL.iter().copied().filter(|code| !is_repeat(*code))
}

pub(crate) const fn response_name(code: ErrorCode) -> &'static str {
    variant(code)
}

pub(crate) fn schema_name(code: ErrorCode) -> String {
    let name = variant(code);
    format!("{}Error", name.strip_suffix("Error").unwrap_or(name))
}

pub(crate) fn add_schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
    for code in common() {
        add_details(code, schemas);
        schemas.push((schema_name(code), schema(code).into()));
    }
    ErrorObject::schemas(schemas);
    schemas.push((ErrorObject::name().into_owned(), ErrorObject::schema()));
    schemas.push((ResourceReference::name().into_owned(), ResourceReference::schema()));
}

fn schema(code: ErrorCode) -> Schema {
    let constant = Extensions::from_iter([("const", code.as_str())]); // not an extension, but utoipa has no field for it
    let constant = ObjectBuilder::new().schema_type(Type::String).extensions(Some(constant));
    let message = ObjectBuilder::new().schema_type(Type::String).description(Some("What is wrong, and how to fix it."));
    let mut object = ObjectBuilder::new()
        .description(Some(code.summary()))
        .property("code", constant)
        .required("code")
        .property("message", message)
        .required("message")
        .property("details", Ref::from_schema_name(details_name(code)))
        .required("details");
    if code.has_error_object() {
        object = object.property("error", Ref::from_schema_name(ErrorObject::name())).required("error");
    }
    object.into()
}

/// Returns the schema of a body with one of these codes. `repeated` is the schema of the two idempotency codes for this operation.
pub(crate) fn one_of(codes: &[ErrorCode], repeated: Option<&RefOr<Schema>>) -> RefOr<Schema> {
    let (mut items, mut discriminator) = (Vec::new(), Discriminator::new("code"));
    if let Some(RefOr::Ref(repeated)) = repeated {
        items.push(RefOr::Ref(repeated.clone()));
        let names = codes.iter().filter(|code| is_repeat(**code)).map(|code| (code.as_str().to_owned(), repeated.ref_location.clone()));
        discriminator.mapping.extend(names);
    }
    for code in codes.iter().filter(|code| !is_repeat(**code)) {
        let reference = Ref::from_schema_name(schema_name(*code));
        discriminator.mapping.insert(code.as_str().to_owned(), reference.ref_location.clone());
        items.push(RefOr::Ref(reference));
    }
    match items.len() {
        1 => items.remove(0),
        _ => items.into_iter().fold(OneOfBuilder::new().discriminator(Some(discriminator)), OneOfBuilder::item).into(),
    }
}

/// The body of any error.
pub(crate) struct ErrorBody;

impl PartialSchema for ErrorBody {
    fn schema() -> RefOr<Schema> {
        one_of(&common().collect::<Vec<_>>(), None)
    }
}

impl ToSchema for ErrorBody {
    fn name() -> Cow<'static, str> {
        "Error".into()
    }

    fn schemas(schemas: &mut Vec<(String, RefOr<Schema>)>) {
        add_schemas(schemas);
    }
}

/// Code and message of an error.
#[derive(Serialize, ToSchema)]
pub(crate) struct ErrorObject {
    #[schema(value_type = Code)]
    code: &'static str,
    message: String,
}

pub(crate) struct Code;

impl PartialSchema for Code {
    fn schema() -> RefOr<Schema> {
        let lines = ErrorCode::ALL.iter().map(|code| format!("- `{}` ({}): {}", code.as_str(), code.status(), code.summary()));
        ObjectBuilder::new()
            .schema_type(Type::String)
            .enum_values(Some(ErrorCode::ALL.iter().map(|code| code.as_str())))
            .description(Some(lines.collect::<Vec<_>>().join("\n")))
            .into()
    }
}

impl ToSchema for Code {
    fn name() -> Cow<'static, str> {
        "ErrorCode".into()
    }
}

/// Makes the schema of the 409 for a repeated idempotency key, with the original resource under its name.
macro_rules! repeated {
    ($(#[$doc:meta])* $name:ident: $field:ident of $resource:ty) => {
        $(#[$doc])*
        #[derive(serde::Serialize, utoipa::ToSchema)]
        #[serde(rename_all = "camelCase")]
        pub(crate) struct $name {
            /// The original, unless it was deleted since.
            #[serde(skip_serializing_if = "Option::is_none")]
            #[schema(schema_with = crate::error_details::whole_or_reference::<$resource>)]
            $field: Option<$resource>,
            #[schema(value_type = crate::error_details::IdempotencyCode)]
            code: &'static str,
            /// What happened, as text.
            #[schema(example = "the idempotency key was used by the same request")]
            message: String,
            details: crate::error_details::NoDetails,
            error: crate::error_schemas::ErrorObject,
        }
    };
}
pub(crate) use repeated;
