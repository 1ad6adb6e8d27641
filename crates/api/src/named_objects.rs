//! Gives objects with free-form fields a named schema, so that generated clients have one type for each.

use std::collections::BTreeMap;

use utoipa::openapi::schema::{AdditionalProperties, Object, OneOfBuilder, SchemaType, Type};
use utoipa::openapi::{OpenApi, Ref, RefOr, Schema};

/// Fields, and the names of their schemas.
const NAMES: &[(&str, &str)] = &[
    ("metadata", "Metadata"),
    ("secrets", "ConnectionSecrets"),
    ("settings", "ConnectionSettings"),
    ("templateButtonVariables", "TemplateVariables"),
    ("templateHeaderVariables", "TemplateVariables"),
    ("templateVariables", "TemplateVariables"),
];

/// Replaces the schemas of these fields with references. A schema that differs from the first of its name stays inline.
pub(crate) fn name(document: &mut OpenApi) {
    let Some(components) = &mut document.components else { return };
    let mut named: BTreeMap<&str, Object> = BTreeMap::new();
    for schema in components.schemas.values_mut() {
        let RefOr::T(Schema::Object(object)) = schema else { continue };
        for (field, property) in &mut object.properties {
            let Some((_, name)) = NAMES.iter().find(|(known, _)| known == field) else { continue };
            let RefOr::T(Schema::Object(inner)) = &*property else { continue };
            let (mut plain, is_nullable) = (inner.clone(), inner.schema_type != SchemaType::Type(Type::Object));
            plain.schema_type = SchemaType::Type(Type::Object);
            if has_any_values(&plain) {
                (plain.property_names, plain.additional_properties) = (None, None);
            }
            // Explicit: TypeScript generators take its absence for "no fields".
            plain.additional_properties.get_or_insert_with(|| Box::new(AdditionalProperties::FreeForm(true)));
            let description = plain.description.take();
            if !plain.properties.is_empty() || *named.entry(name).or_insert_with(|| plain.clone()) != plain {
                continue;
            }
            *property = if is_nullable {
                let null = Object::with_type(Type::Null);
                OneOfBuilder::new().description(description).item(null).item(Ref::from_schema_name(*name)).into()
            } else {
                let mut reference = Ref::from_schema_name(*name);
                reference.description = description.unwrap_or_default();
                RefOr::Ref(reference)
            };
        }
    }
    components.schemas.extend(named.into_iter().map(|(name, object)| (name.to_owned(), RefOr::T(Schema::Object(object)))));
}

/// Returns whether the object accepts values of any type.
fn has_any_values(object: &Object) -> bool {
    let values = object.additional_properties.as_deref();
    matches!(values, Some(AdditionalProperties::RefOr(RefOr::T(Schema::Object(values)))) if values.schema_type == SchemaType::AnyValue)
}
