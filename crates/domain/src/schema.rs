//! Schemas of types that write themselves as a string or a number.

use std::borrow::Cow;

use utoipa::openapi::schema::{KnownFormat, SchemaFormat, Type};
use utoipa::openapi::{ArrayBuilder, ObjectBuilder, RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

use crate::{Base64, Micros, Permission, Permissions, Timestamp, broadcast::TimeOfDay, limits};

impl PartialSchema for Timestamp {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .format(Some(SchemaFormat::KnownFormat(KnownFormat::DateTime)))
            .description(Some("A point in time in UTC, with milliseconds."))
            .examples(["2030-01-31T09:30:00.000Z"])
            .into()
    }
}

impl ToSchema for Timestamp {}

impl PartialSchema for Micros {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new().schema_type(Type::Number).description(Some("US dollars, with at most six decimals.")).examples([0.0075]).into()
    }
}

impl ToSchema for Micros {
    fn name() -> Cow<'static, str> {
        "Dollars".into()
    }
}

impl PartialSchema for TimeOfDay {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("A local time of day, `HH:MM`."))
            .pattern(Some("^([01][0-9]|2[0-3]):[0-5][0-9]$"))
            .examples(["21:00"])
            .into()
    }
}

impl ToSchema for TimeOfDay {}

impl PartialSchema for Base64 {
    fn schema() -> RefOr<Schema> {
        ObjectBuilder::new()
            .schema_type(Type::String)
            .description(Some("Bytes in base64."))
            .content_encoding("base64")
            .max_length(Some(limits::ATTACHMENT_BYTES.div_ceil(3) * 4))
            .into()
    }
}

impl ToSchema for Base64 {}

impl PartialSchema for Permissions {
    fn schema() -> RefOr<Schema> {
        let names = std::iter::once("*").chain(Permission::ALL.iter().map(|permission| permission.as_str()));
        let name = ObjectBuilder::new().schema_type(Type::String).enum_values(Some(names));
        ArrayBuilder::new().items(name).description(Some("Names of permissions; `*` means all.")).into()
    }
}

impl ToSchema for Permissions {}
