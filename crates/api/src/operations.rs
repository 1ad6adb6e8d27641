//! Properties of operations that the middleware needs.

use std::collections::HashMap;
use std::sync::LazyLock;

use axum::extract::MatchedPath;
use axum::http::{Method, Request};
use nuncio_core::UseCase;
use nuncio_domain::Permission;
use utoipa::openapi::RefOr;
use utoipa::openapi::path::{Operation as Documented, ParameterIn, PathItem};

/// Derives an operation's id from its handler's name: `sendMessage` from `send_message`.
pub fn operation_id(handler: &str) -> String {
    let capital = |word: &str| word.char_indices().map(|(n, c)| if n == 0 { c.to_ascii_uppercase() } else { c }).collect::<String>();
    handler.split('_').enumerate().map(|(n, word)| if n == 0 { word.to_owned() } else { capital(word) }).collect()
}

/// Operations that need no permission.
const OPEN: &[&str] = &["get_me"];

/// Returns all handlers with their permission.
pub(crate) fn handlers() -> impl Iterator<Item = (&'static str, Option<Permission>)> {
    let use_cases = UseCase::ALL.iter().map(|use_case| (use_case.name(), Some(use_case.permission())));
    use_cases.chain(OPEN.iter().map(|name| (*name, None)))
}

/// Returns the permission of an operation by its handler's name.
pub(crate) fn permission(handler: &str) -> Option<Permission> {
    handlers().find(|(name, _)| *name == handler)?.1
}

/// Reads that wait for a provider, not for the database.
pub(crate) const READ_FROM_PROVIDERS: &[&str] = &["get_sender_profile"];

/// Operations other than GET that are not audited, because they change no configuration: they send messages or compute something.
pub const NOT_AUDITED: &[&str] = &[
    "send_message", "send_messages", "react_to_message", "play_inbound", "test_sender_channel", "test_broadcast", "introspect_phone",
    "introspect_email", "preview_broadcast",
];

const JSON: &[&str] = &["application/json"];

/// Media types of operations that can respond with media types other than JSON. They admit JSON, too: errors are JSON.
const MEDIA: &[(&str, &[&str])] = &[
    ("list_events", &["application/json", "text/event-stream"]),
    ("export_broadcast_results", &["text/csv", "application/x-ndjson", "application/json"]),
];

/// A handler with its route.
#[derive(Debug)]
pub(crate) struct Route {
    pub(crate) path: String,
    pub(crate) method: Method,
    /// Name of the handler.
    pub(crate) handler: &'static str,
    pub(crate) documented: fn() -> Documented,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Operation {
    pub(crate) id: &'static str,
    pub(crate) permission: Option<Permission>,
    /// Whether it has query parameters; otherwise any is rejected.
    pub(crate) has_query: bool,
    /// Whether it is a database read, which needs a read permit of its environment.
    pub(crate) reads_database: bool,
    /// Whether the audit log records its changes.
    pub(crate) is_audited: bool,
    /// Media types that `Accept` must admit one of.
    pub(crate) media: &'static [&'static str],
}

/// Operations by path template and method. Each is read when it is first asked for; a route whose handler is not known has none.
#[derive(Debug)]
pub(crate) struct Operations(HashMap<String, Vec<(Method, Lazy)>>);

type Lazy = LazyLock<Option<Operation>, Box<dyn FnOnce() -> Option<Operation> + Send>>;

impl Operations {
    pub(crate) fn of(routes: Vec<Route>) -> Self {
        let mut operations: HashMap<String, Vec<(Method, Lazy)>> = HashMap::new();
        for Route { path, method, handler, documented } in routes {
            let of_handler = method.clone();
            let lazy = LazyLock::new(Box::new(move || known(handler, &of_handler, &documented())) as Box<_>);
            operations.entry(path).or_default().push((method, lazy));
        }
        Self(operations)
    }

    /// Returns the operation of a routed request.
    pub(crate) fn find<B>(&self, request: &Request<B>) -> Option<Operation> {
        let path = request.extensions().get::<MatchedPath>()?;
        // Axum serves HEAD with the handler of GET.
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        self.0.get(path.as_str())?.iter().find(|(m, _)| m == method).and_then(|(_, operation)| **operation)
    }
}

fn known(handler: &str, method: &Method, documented: &Documented) -> Option<Operation> {
    let (id, permission) = handlers().find(|(known, _)| *known == handler)?;
    let has_query = documented.parameters.iter().flatten().any(|p| matches!(p, RefOr::T(p) if p.parameter_in == ParameterIn::Query));
    let reads_database = method == Method::GET && !READ_FROM_PROVIDERS.contains(&id);
    let is_audited = method != Method::GET && !NOT_AUDITED.contains(&id);
    let media = MEDIA.iter().find(|(known, _)| *known == id).map_or(JSON, |(_, media)| *media);
    Some(Operation { id, permission, has_query, reads_database, is_audited, media })
}

/// Returns the operations of a path, each with whether it reads a body.
pub(crate) fn with_body(item: &mut PathItem) -> impl Iterator<Item = (&mut Documented, bool)> {
    let PathItem { get, post, put, patch, delete, .. } = item;
    let all = [(get, false), (post, true), (put, true), (patch, true), (delete, false)];
    all.into_iter().filter_map(|(operation, has_body)| Some((operation.as_mut()?, has_body)))
}
