//! Builds the OpenAPI document from the handlers, and adds what all operations share.

use std::collections::{BTreeMap, BTreeSet};

use nuncio_domain::{ErrorCode, limits};
use serde_json::{Value, json};
use utoipa::openapi::extensions::Extensions;
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn};
use utoipa::openapi::schema::{AdditionalProperties, ArrayItems, Object, Schema, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::server::ServerBuilder;
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    Components, ComponentsBuilder, ContentBuilder, InfoBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required, Response,
    ResponseBuilder,
};
use utoipa::{PartialSchema as _, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use crate::error_schemas::{Code, ErrorBody};
use crate::operations::{operation_id, permission, with_body};
use crate::v1;
use crate::{error_schemas, event_schemas, examples, named_objects};

const DESCRIPTION: &str = "Send messages over SMS, WhatsApp, Telegram, email, Instagram and voice, and track their delivery.

An API key belongs to one of a project's two environments, live or test, and cannot access the other. Unknown fields and parameters are \
rejected, unless the request has `Prefer: handling=lenient`. Enumerations in responses can get new values.";

const BEARER: &str = "bearer";
const JSON: &str = "application/json";

/// Operations whose body is optional.
const OPTIONAL_BODIES: &[&str] = &[
    "clone_broadcast",
    "create_invitation",
    "preview_broadcast",
    "rotate_sender_webhook_secret",
    "rotate_webhook_secret",
    "send_broadcast",
];

/// Response headers: name, type, description.
const HEADERS: &[(&str, Type, &str)] = &[
    (
        "X-Request-Id",
        Type::String,
        "The request's id: yours, if it is 1 to 128 letters, digits, dots, dashes and underscores, otherwise a new one.",
    ),
    (
        "X-RateLimit-Limit",
        Type::Integer,
        "Requests per minute of this environment; of a 401, and a 429 of wrong keys, failed authentications per minute of your address. Absent without a limit.",
    ),
    ("X-RateLimit-Remaining", Type::Integer, "How many of them are left now."),
    ("X-RateLimit-Reset", Type::Integer, "When the full burst is available again, in Unix milliseconds."),
    ("Retry-After", Type::Integer, "Seconds to wait before a retry."),
    ("X-Should-Retry", Type::String, "`false`: the same request will fail again."),
    ("WWW-Authenticate", Type::String, "`Bearer`."),
];

/// Returns the OpenAPI 3.1 document of the API.
pub fn openapi() -> OpenApi {
    let documented = v1::routes().documented.into_iter();
    completed(documented.fold(OpenApiRouter::with_openapi(base()), |router, of_path| router.routes(of_path())).into_openapi())
}

fn completed(mut document: OpenApi) -> OpenApi {
    for (path, item) in &mut document.paths.paths {
        let takes_id = path.contains('{');
        for (operation, has_body) in with_body(item) {
            complete(operation, takes_id, has_body);
        }
    }
    event_schemas::add(&mut document);
    name_operations(&mut document);
    absent_is_not_null(&mut document);
    null_is_no_default(&mut document);
    strings_have_an_end(&mut document);
    named_objects::name(&mut document);
    examples::add(&mut document);
    document
}

/// Sets the operation ids that clients are generated from, and those of links.
fn name_operations(document: &mut OpenApi) {
    for item in document.paths.paths.values_mut() {
        for (operation, _) in with_body(item) {
            operation.operation_id = operation.operation_id.as_deref().map(operation_id);
            for response in operation.responses.responses.values_mut() {
                let RefOr::T(response) = response else { continue };
                for link in response.links.values_mut() {
                    if let RefOr::T(link) = link {
                        link.operation_id = operation_id(&link.operation_id);
                    }
                }
            }
        }
    }
}

fn base() -> OpenApi {
    let info = InfoBuilder::new().title("nuncio").version(env!("CARGO_PKG_VERSION")).description(Some(DESCRIPTION));
    let tag = |name: &str, text: &str| TagBuilder::new().name(name).description(Some(text)).build();
    let tags = [
        tag("Messages", "Sending and tracking messages."),
        tag("Contacts", "People and their identifiers."),
        tag("Suppressions", "Recipients that receive no messages."),
        tag("Introspection", "Information about a recipient, without sending anything."),
        tag("Senders", "Profiles that send messages, and the provider accounts of their channels."),
        tag("Events", "The log of changes, in order."),
        tag("Webhooks", "URLs that receive events, and the deliveries."),
        tag("Phone numbers", "Acquiring numbers, and assigning them to senders."),
        tag("Invitations", "Links with which clients set up their own senders."),
        tag("Templates", "Texts with variables."),
        tag("Broadcasts", "One content for many recipients."),
        tag("Sandbox", "Simulating recipients, in the test environment."),
        tag("Account", "API keys and the balance."),
        tag("Audit log", "Who changed what."),
    ];
    let server = ServerBuilder::new().url("/").description(Some("The server of this document.")).build();
    OpenApiBuilder::new().info(info.build()).servers(Some([server])).components(Some(components())).tags(Some(tags)).build()
}

fn components() -> Components {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("svc_live_… or svc_test_…").build();
    let mut schemas = vec![(ErrorBody::name().into_owned(), ErrorBody::schema()), (Code::name().into_owned(), Code::schema())];
    ErrorBody::schemas(&mut schemas);
    let mut components = ComponentsBuilder::new().security_scheme(BEARER, SecurityScheme::Http(bearer)).schemas_from_iter(schemas).build();
    components.headers.extend(HEADERS.iter().map(|(name, kind, text)| ((*name).to_owned(), RefOr::T(header(name, kind, text)))));
    let shared = error_schemas::common().map(|code| (error_schemas::response_name(code), vec![code]));
    let shared = shared.chain([(INVALID_BODY, INVALID_BODY_CODES.to_vec())]);
    components.responses.extend(
        shared.map(|(name, codes)| (name.to_owned(), RefOr::T(error_response(codes[0].status(), &summaries(&codes), &codes, None)))),
    );
    components
}

fn header(name: &str, kind: &Type, text: &str) -> Header {
    let header = HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(kind.clone()))).description(Some(text));
    // Not an extension, but utoipa has no field for it.
    let required = Extensions::from_iter([("required", !name.starts_with("X-RateLimit-"))]);
    header.extensions(Some(required)).build()
}

/// Name of the shared response to an unreadable body.
const INVALID_BODY: &str = "InvalidBody";
const INVALID_BODY_CODES: [ErrorCode; 2] = [ErrorCode::InvalidJson, ErrorCode::InvalidRequest];

fn summaries(codes: &[ErrorCode]) -> String {
    codes.iter().map(|code| code.summary()).collect::<Vec<_>>().join(" ")
}

/// Makes an error response for `codes`; `repeated` is the schema for a repeated idempotency key.
fn error_response(status: u16, text: &str, codes: &[ErrorCode], repeated: Option<&RefOr<Schema>>) -> Response {
    let named = named_codes(text, status);
    let others: Vec<_> = codes.iter().filter(|code| !named.contains(code)).map(|code| format!("`{}`", code.as_str())).collect();
    let label = if named.is_empty() && others.len() == 1 { "Code" } else { "Codes" };
    let label = if named.is_empty() { label } else { "Also" };
    let text = if others.is_empty() { text.to_owned() } else { format!("{text} {label}: {}.", others.join(", ")) };
    let content = ContentBuilder::new().schema(Some(error_schemas::one_of(codes, repeated))).build();
    let mut response = ResponseBuilder::new().description(text).content(JSON, content).build();
    add_headers(&mut response, status);
    response
}

/// Returns the codes of `status` that the text names in backticks.
fn named_codes(text: &str, status: u16) -> Vec<ErrorCode> {
    let quoted: Vec<_> = text.split('`').skip(1).step_by(2).collect();
    ErrorCode::ALL.iter().copied().filter(|code| code.status() == status && quoted.contains(&code.as_str())).collect()
}

/// Returns the codes that any operation with these properties can return.
fn common_codes(takes_id: bool, has_body: bool, has_permission: bool) -> impl Iterator<Item = ErrorCode> {
    error_schemas::common().filter(move |code| match code {
        ErrorCode::InvalidRequest
        | ErrorCode::Unauthorized
        | ErrorCode::NotAcceptable
        | ErrorCode::RateLimitExceeded
        | ErrorCode::InternalError
        | ErrorCode::Unavailable => true,
        ErrorCode::InvalidJson | ErrorCode::RequestTimeout | ErrorCode::PayloadTooLarge | ErrorCode::UnsupportedMediaType => has_body,
        ErrorCode::Forbidden => has_permission,
        ErrorCode::NotFound => takes_id,
        _ => false,
    })
}

/// Replaces the error responses declared by a handler and adds the common ones. A declared response gets the codes that its description
/// names in backticks, or else all codes of its status.
fn complete_errors(responses: &mut BTreeMap<String, RefOr<Response>>, common: impl Iterator<Item = ErrorCode>) {
    let mut by_status: BTreeMap<u16, Vec<ErrorCode>> = BTreeMap::new();
    common.for_each(|code| by_status.entry(code.status()).or_default().push(code));
    let mut declared = BTreeMap::new();
    for (status, response) in responses.iter() {
        let (Ok(status @ 400..), RefOr::T(response)) = (status.parse::<u16>(), response) else { continue };
        let schema =
            response.content.get(JSON).and_then(|content| if let RefOr::T(content) = content { content.schema.clone() } else { None });
        let repeated = schema.filter(|schema| !matches!(schema, RefOr::Ref(to) if to.ref_location.ends_with("/Error")));
        let mut named = named_codes(&response.description, status);
        if named.is_empty() {
            named.extend(ErrorCode::ALL.iter().filter(|c| c.status() == status && error_schemas::is_repeat(**c) == repeated.is_some()));
        }
        by_status.entry(status).or_default().extend(named);
        declared.insert(status, (response.description.clone(), repeated));
    }
    for (status, mut codes) in by_status {
        codes.sort_by_key(|code| ErrorCode::ALL.iter().position(|other| other == code));
        codes.dedup();
        let shared = |name: &str| RefOr::Ref(Ref::new(format!("#/components/responses/{name}")));
        let response = match (declared.get(&status), codes.as_slice()) {
            (None, [only]) => shared(error_schemas::response_name(*only)),
            (None, codes) if codes == INVALID_BODY_CODES => shared(INVALID_BODY),
            (None, codes) => RefOr::T(error_response(status, &summaries(codes), codes, None)),
            (Some((text, repeated)), codes) => RefOr::T(error_response(status, text, codes, repeated.as_ref())),
        };
        responses.insert(status.to_string(), response);
    }
}

/// Adds the parts common to all operations.
fn complete(operation: &mut Operation, takes_id: bool, has_body: bool) {
    operation.security = Some(vec![SecurityRequirement::new(BEARER, Vec::<String>::new())]);
    let is_optional = operation.operation_id.as_deref().is_some_and(|id| OPTIONAL_BODIES.contains(&id));
    if let Some(RefOr::T(body)) = operation.request_body.as_mut().filter(|_| is_optional) {
        body.required = Some(Required::False);
    }
    for (status, response) in &mut operation.responses.responses {
        if let (RefOr::T(response), Ok(status)) = (response, status.parse()) {
            add_headers(response, status);
        }
    }
    let permission = operation.operation_id.as_deref().and_then(permission);
    complete_errors(&mut operation.responses.responses, common_codes(takes_id, has_body, permission.is_some()));
    operation.parameters.get_or_insert_default().push(RefOr::T(prefer()));
    if let Some(permission) = permission {
        let needs = format!("Needs the permission `{}`.", permission.as_str());
        operation.description = Some(operation.description.take().map_or(needs.clone(), |text| format!("{text}\n\n{needs}")));
    }
}

fn add_headers(response: &mut Response, status: u16) {
    for (name, ..) in HEADERS {
        let applies = match *name {
            "X-Request-Id" => true,
            "Retry-After" => matches!(status, 429 | 503),
            "X-Should-Retry" => (400..500).contains(&status) && !matches!(status, 408 | 429) || status == 507,
            "WWW-Authenticate" => status == 401,
            _ => true,
        };
        if applies {
            response.headers.insert((*name).to_owned(), RefOr::Ref(Ref::new(format!("#/components/headers/{name}"))));
        }
    }
}

fn prefer() -> Parameter {
    let schema = Object::with_type(Type::String);
    ParameterBuilder::new()
        .name("Prefer")
        .parameter_in(ParameterIn::Header)
        .required(Required::False)
        .description(Some("`handling=lenient` ignores unknown fields and parameters; `handling=strict`, the default, rejects them."))
        .schema(Some(Schema::Object(schema)))
        .build()
}

/// Returns the names of the schemas used in request bodies.
fn requested(document: &mut OpenApi) -> BTreeSet<String> {
    let mut requested = BTreeSet::new();
    for item in document.paths.paths.values_mut() {
        for (operation, _) in with_body(item) {
            collect_references(&json!(operation.request_body), &mut requested);
        }
    }
    let Some(components) = &document.components else { return requested };
    let mut open: Vec<_> = requested.iter().cloned().collect();
    while let Some(name) = open.pop() {
        let mut further = BTreeSet::new();
        collect_references(&json!(components.schemas.get(&name)), &mut further);
        open.extend(further.into_iter().filter(|name| requested.insert(name.clone())));
    }
    requested
}

/// Limits every request string: by its own maximum length, or [`limits::STRING`].
fn strings_have_an_end(document: &mut OpenApi) {
    let requested = requested(document);
    let Some(components) = &mut document.components else { return };
    for (name, schema) in &mut components.schemas {
        if requested.contains(name) {
            end_strings(schema);
        }
    }
}

fn end_strings(schema: &mut RefOr<Schema>) {
    let RefOr::T(schema) = schema else { return };
    match schema {
        Schema::Object(object) => {
            let is_string = match &object.schema_type {
                SchemaType::Type(one) => *one == Type::String,
                SchemaType::Array(many) => many.contains(&Type::String),
                SchemaType::AnyValue => false,
            };
            if is_string && object.enum_values.is_none() {
                object.max_length.get_or_insert(limits::STRING);
            }
            object.properties.values_mut().for_each(end_strings);
            if let Some(Schema::Object(names)) = object.property_names.as_deref_mut() {
                names.max_length.get_or_insert(limits::STRING);
            }
            if let Some(AdditionalProperties::RefOr(values)) = object.additional_properties.as_deref_mut() {
                end_strings(values);
            }
        }
        Schema::Array(array) => {
            if let ArrayItems::RefOrSchema(items) = &mut array.items {
                end_strings(items);
            }
        }
        Schema::OneOf(one_of) => one_of.items.iter_mut().for_each(end_strings),
        Schema::AllOf(all_of) => all_of.items.iter_mut().for_each(end_strings),
        Schema::AnyOf(any_of) => any_of.items.iter_mut().for_each(end_strings),
        _ => {}
    }
}

/// Responses omit absent fields, so only required fields can be null. Requests may use null for absent.
fn absent_is_not_null(document: &mut OpenApi) {
    let requested = requested(document);
    let Some(components) = &mut document.components else { return };
    let answers = components.schemas.iter_mut().filter(|(name, _)| !requested.contains(*name));
    for object in answers.filter_map(|(_, schema)| if let RefOr::T(Schema::Object(object)) = schema { Some(object) } else { None }) {
        for (_, property) in object.properties.iter_mut().filter(|(name, _)| !object.required.contains(name)) {
            without_null(property);
        }
    }
}

/// In a change, null clears a field that stays when it is absent, so null is the default of none. Not all could be null, either.
fn null_is_no_default(document: &mut OpenApi) {
    let Some(components) = &mut document.components else { return };
    components.schemas.values_mut().for_each(without_null_defaults);
}

fn without_null_defaults(schema: &mut RefOr<Schema>) {
    match schema {
        RefOr::T(Schema::Object(object)) => {
            for property in object.properties.values_mut() {
                let default = match property {
                    RefOr::Ref(reference) => &mut reference.default,
                    RefOr::T(Schema::Object(object)) => &mut object.default,
                    RefOr::T(Schema::Array(array)) => &mut array.default,
                    RefOr::T(Schema::OneOf(one_of)) => &mut one_of.default,
                    _ => continue,
                };
                default.take_if(|default| default.is_null());
            }
        }
        RefOr::T(Schema::AllOf(all_of)) => all_of.items.iter_mut().for_each(without_null_defaults),
        _ => {}
    }
}

/// Collects the names of the schemas that `value` refers to.
fn collect_references(value: &Value, names: &mut BTreeSet<String>) {
    if let Some(name) = value.get("$ref").and_then(Value::as_str).and_then(|reference| reference.strip_prefix("#/components/schemas/")) {
        names.insert(name.to_owned());
    }
    value.as_array().into_iter().flatten().for_each(|item| collect_references(item, names));
    value.as_object().into_iter().flatten().for_each(|(_, item)| collect_references(item, names));
}

fn without_null(property: &mut RefOr<Schema>) {
    let kind = match property {
        RefOr::T(Schema::Object(object)) => &mut object.schema_type,
        RefOr::T(Schema::Array(array)) => &mut array.schema_type,
        RefOr::T(Schema::OneOf(one_of)) => {
            one_of
                .items
                .retain(|item| !matches!(item, RefOr::T(Schema::Object(object)) if object.schema_type == SchemaType::Type(Type::Null)));
            if one_of.items.len() == 1 {
                *property = one_of.items.remove(0);
            }
            return;
        }
        _ => return,
    };
    if let SchemaType::Array(types) = kind {
        types.retain(|one| *one != Type::Null);
        if let [only] = types.as_slice() {
            *kind = SchemaType::Type(only.clone());
        }
    }
}

#[cfg(test)]
#[path = "document_tests.rs"]
mod tests;
