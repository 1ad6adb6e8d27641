//! Routes of the API. Their documentation is built on request: that of all operations takes megabytes, which a server does not need.

use axum::handler::Handler;
use axum::http::Method;
use axum::routing::MethodRouter;
use utoipa::openapi::HttpMethod;
use utoipa::openapi::path::Operation;
use utoipa_axum::PathItemExt as _;
use utoipa_axum::router::UtoipaMethodRouter;

use crate::operations::Route;
use crate::state::App;

/// Handlers of one path, made by [`routes!`].
#[derive(Debug)]
pub(crate) struct PathRoutes {
    router: MethodRouter<App>,
    routes: Vec<Route>,
    documented: fn() -> UtoipaMethodRouter<App>,
}

impl PathRoutes {
    pub(crate) fn new(documented: fn() -> UtoipaMethodRouter<App>) -> Self {
        Self { router: MethodRouter::new(), routes: Vec::new(), documented }
    }

    /// Adds a handler; `name` is its path.
    pub(crate) fn on<T: 'static>(
        mut self,
        (path, methods): (String, Vec<HttpMethod>),
        name: &'static str,
        documented: fn() -> Operation,
        handler: impl Handler<T, App>,
    ) -> Self {
        let name = name.rsplit("::").next().unwrap_or(name).trim();
        for method in methods {
            self.router = self.router.on(method.to_method_filter(), handler.clone());
            self.routes.push(Route { path: path.clone(), method: named(&method), handler: name, documented });
        }
        self
    }
}

fn named(method: &HttpMethod) -> Method {
    match method {
        HttpMethod::Get => Method::GET,
        HttpMethod::Put => Method::PUT,
        HttpMethod::Post => Method::POST,
        HttpMethod::Head => Method::HEAD,
        HttpMethod::Patch => Method::PATCH,
        HttpMethod::Trace => Method::TRACE,
        HttpMethod::Delete => Method::DELETE,
        HttpMethod::Options => Method::OPTIONS,
    }
}

/// Routes and their documentation.
#[derive(Debug, Default)]
pub(crate) struct Routes {
    pub(crate) router: axum::Router<App>,
    pub(crate) routes: Vec<Route>,
    pub(crate) documented: Vec<fn() -> UtoipaMethodRouter<App>>,
}

impl Routes {
    pub(crate) fn routes(mut self, added: PathRoutes) -> Self {
        let Some(Route { path, .. }) = added.routes.first() else { return self };
        self.router = self.router.route(path, added.router);
        self.routes.extend(added.routes);
        self.documented.push(added.documented);
        self
    }

    pub(crate) fn merge(mut self, other: Self) -> Self {
        self.router = self.router.merge(other.router);
        self.routes.extend(other.routes);
        self.documented.extend(other.documented);
        self
    }
}

/// Makes the routes of one path from handlers with `#[utoipa::path]`.
macro_rules! routes {
    ($($handler:path),+ $(,)?) => {
        $crate::routes::PathRoutes::new(|| utoipa_axum::routes!($($handler),+))$(.on(
            utoipa_axum::paste! {(
                utoipa_axum::routes!(@path [path()] of $handler),
                utoipa_axum::routes!(@path [methods()] of $handler),
            )},
            stringify!($handler),
            || utoipa_axum::paste! { utoipa_axum::routes!(@path [operation()] of $handler) },
            $handler,
        ))+
    };
}
pub(crate) use routes;
