//! The OpenAPI document: what the handlers say, and what is common to all operations.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use nuncio_domain::ErrorCode;
use serde_json::{Value, json};
use utoipa::openapi::header::{Header, HeaderBuilder};
use utoipa::openapi::path::{Operation, Parameter, ParameterBuilder, ParameterIn, PathItem};
use utoipa::openapi::schema::{Object, Schema, SchemaType, Type};
use utoipa::openapi::security::{HttpAuthScheme, HttpBuilder, SecurityRequirement, SecurityScheme};
use utoipa::openapi::tag::TagBuilder;
use utoipa::openapi::{
    Components, ComponentsBuilder, ContentBuilder, InfoBuilder, ObjectBuilder, OpenApi, OpenApiBuilder, Ref, RefOr, Required, Response,
    ResponseBuilder,
};
use utoipa::{PartialSchema as _, ToSchema};
use utoipa_axum::router::OpenApiRouter;

use crate::error::ErrorBody;
use crate::operations::OPERATIONS;
use crate::state::App;
use crate::v1;

const DESCRIPTION: &str = "Send messages over SMS, WhatsApp, Telegram, email, Instagram and voice, and learn what became of them.

An API key opens one of a project's two worlds, live or test, and sees nothing of the other. Fields and parameters that an operation \
does not know are refused, unless the request says `Prefer: handling=lenient`. Enumerations in answers may grow.";

const BEARER: &str = "bearer";

/// Operations whose body may be left out.
const OPTIONAL_BODIES: &[&str] = &["create_invitation", "rotate_sender_webhook_secret", "rotate_webhook_secret", "send_broadcast"];

/// The headers of answers: name, type, meaning.
const HEADERS: &[(&str, Type, &str)] = &[
    (
        "X-Request-Id",
        Type::String,
        "The request's id: the one it came with, if that has 1 to 128 letters, digits, dots, dashes and underscores, else a new one.",
    ),
    ("X-RateLimit-Limit", Type::Integer, "Requests of this world a minute, in the long run. Absent when there is no limit."),
    ("X-RateLimit-Remaining", Type::Integer, "Requests that this world may make right now."),
    ("X-RateLimit-Reset", Type::Integer, "When this world has its full burst again, in Unix milliseconds."),
    ("Retry-After", Type::Integer, "When to come back, in seconds."),
    ("X-Should-Retry", Type::String, "`false`: the same request will fail again."),
    ("WWW-Authenticate", Type::String, "`Bearer`."),
];

/// The errors that every operation may answer with, and those that some may.
const ERRORS: &[(u16, &str)] = &[
    (400, "The request is wrong; `details.errors` lists every fault."),
    (401, "The API key is missing or invalid."),
    (403, "The API key lacks the permission that `details.required` names."),
    (404, "There is no such resource in this world."),
    (406, "The header `Accept` excludes `application/json`."),
    (413, "The body is too large."),
    (415, "The body is not `application/json`."),
    (429, "Too many requests of this world, or too many failed authentications from this address."),
    (500, "Something went wrong inside; the log has more under `details.requestId`."),
    (503, "The request cannot be taken now; try again."),
];

/// The OpenAPI 3.1 document of the API, made from the handlers.
pub fn openapi() -> OpenApi {
    build().1
}

/// The routes and their document.
pub(crate) fn build() -> (axum::Router<App>, OpenApi) {
    let (routes, mut document) = OpenApiRouter::with_openapi(base()).merge(v1::routes()).split_for_parts();
    for (path, item) in &mut document.paths.paths {
        let takes_id = path.contains('{');
        for (operation, has_body) in operations(item) {
            complete(operation, takes_id, has_body);
        }
    }
    absent_is_not_null(&mut document);
    (routes, document)
}

/// `{"components": {"schemas": …}}` of the document, as JSON.
pub(crate) fn schemas() -> &'static Value {
    static SCHEMAS: LazyLock<Value> = LazyLock::new(|| {
        let schemas = openapi().components.map(|components| components.schemas);
        json!({"components": {"schemas": schemas}})
    });
    &SCHEMAS
}

fn base() -> OpenApi {
    let info = InfoBuilder::new().title("nuncio").version(env!("CARGO_PKG_VERSION")).description(Some(DESCRIPTION));
    let tag = |name: &str, text: &str| TagBuilder::new().name(name).description(Some(text)).build();
    let tags = [
        tag("Messages", "Sending messages and following them."),
        tag("Contacts", "People, and the identifiers that reach them."),
        tag("Suppressions", "Recipients to whom nothing may be sent."),
        tag("Introspection", "What can be told of a recipient without sending anything."),
        tag("Senders", "The profiles that messages are sent by, and the provider accounts that carry their channels."),
        tag("Events", "What happened, in order."),
        tag("Webhooks", "Where events are posted to, and what became of it."),
        tag("Phone numbers", "Acquiring numbers, and assigning them to senders."),
        tag("Invitations", "Having a client set up a sender by itself."),
        tag("Templates", "Texts with variables."),
        tag("Broadcasts", "One content for many recipients."),
        tag("Account", "What an API key opens."),
    ];
    OpenApiBuilder::new().info(info.build()).components(Some(components())).tags(Some(tags)).build()
}

fn components() -> Components {
    let bearer = HttpBuilder::new().scheme(HttpAuthScheme::Bearer).bearer_format("svc_live_… or svc_test_…").build();
    let mut schemas = Vec::new();
    ErrorBody::schemas(&mut schemas);
    schemas.push((ErrorBody::name().into_owned(), ErrorBody::schema()));
    let mut components = ComponentsBuilder::new().security_scheme(BEARER, SecurityScheme::Http(bearer)).schemas_from_iter(schemas).build();
    components.headers.extend(HEADERS.iter().map(|(name, kind, text)| ((*name).to_owned(), RefOr::T(header(kind, text)))));
    components.responses.extend(ERRORS.iter().map(|(status, text)| (error_name(*status), RefOr::T(error_response(*status, text)))));
    components
}

fn header(kind: &Type, text: &str) -> Header {
    HeaderBuilder::new().schema(Some(ObjectBuilder::new().schema_type(kind.clone()))).description(Some(text)).build()
}

fn error_response(status: u16, text: &str) -> Response {
    let codes: Vec<_> = ErrorCode::ALL.iter().filter(|code| code.status() == status).map(|code| format!("`{}`", code.as_str())).collect();
    let content = ContentBuilder::new().schema(Some(Ref::from_schema_name(ErrorBody::name()))).build();
    let mut response =
        ResponseBuilder::new().description(format!("{text} Code: {}.", codes.join(", "))).content("application/json", content).build();
    add_headers(&mut response, status);
    response
}

fn error_name(status: u16) -> String {
    format!("Error{status}")
}

/// Adds what all operations have in common.
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
    let permission =
        OPERATIONS.iter().find(|(id, _)| operation.operation_id.as_deref() == Some(*id)).and_then(|(_, permission)| *permission);
    for (status, _) in ERRORS {
        let applies = match status {
            403 => permission.is_some(),
            404 => takes_id,
            413 | 415 => has_body,
            _ => true,
        };
        if applies {
            let reference = || RefOr::Ref(Ref::new(format!("#/components/responses/{}", error_name(*status))));
            operation.responses.responses.entry(status.to_string()).or_insert_with(reference);
        }
    }
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
            "X-Should-Retry" => (400..500).contains(&status) && status != 429,
            "WWW-Authenticate" => status == 401,
            _ => status != 401, // without a key there is no world to count for
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
        .description(Some("`handling=lenient` has unknown fields and parameters ignored instead of refused."))
        .schema(Some(Schema::Object(schema)))
        .build()
}

/// The operations of a path, each with whether it reads a body.
fn operations(item: &mut PathItem) -> impl Iterator<Item = (&mut Operation, bool)> {
    let PathItem { get, post, put, patch, delete, .. } = item;
    let all = [(get, false), (post, true), (put, true), (patch, true), (delete, false)];
    all.into_iter().filter_map(|(operation, has_body)| Some((operation.as_mut()?, has_body)))
}

/// Answers leave out what is absent, so that only the fields that are always there may be null. Requests may say null instead.
fn absent_is_not_null(document: &mut OpenApi) {
    let mut requested = BTreeSet::new();
    for item in document.paths.paths.values_mut() {
        for (operation, _) in operations(item) {
            collect_references(&json!(operation.request_body), &mut requested);
        }
    }
    let Some(components) = &mut document.components else { return };
    let mut open: Vec<_> = requested.iter().cloned().collect();
    while let Some(name) = open.pop() {
        let mut further = BTreeSet::new();
        collect_references(&json!(components.schemas.get(&name)), &mut further);
        open.extend(further.into_iter().filter(|name| requested.insert(name.clone())));
    }
    let answers = components.schemas.iter_mut().filter(|(name, _)| !requested.contains(*name));
    for object in answers.filter_map(|(_, schema)| if let RefOr::T(Schema::Object(object)) = schema { Some(object) } else { None }) {
        for (_, property) in object.properties.iter_mut().filter(|(name, _)| !object.required.contains(name)) {
            without_null(property);
        }
    }
}

/// Gathers the names of the schemas that `value` refers to.
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
