//! Identifies signed-in people and verifies forms.

use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::header::{COOKIE, LOCATION};
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderValue, Method, StatusCode, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use maud::{Markup, html};
use nuncio_core::ReadPermit;
use nuncio_core::users::SignedIn;
use nuncio_domain::user::Role;
use nuncio_domain::{Error, ErrorCode, Result};
use url::form_urlencoded;

use crate::App;
use crate::components::{icon, may_change, sentence};
use crate::form::Form;
use crate::page::failed;
use crate::shell::{framed, guest};

/// Title of the page of an unknown address.
const NOTHING: &str = "There is nothing here";

/// Session cookie.
pub(crate) const SESSION: &str = "nuncio_session";

/// Extracts the signed-in person; redirects others to the sign-in page.
#[derive(Debug)]
pub(crate) struct Signed(pub(crate) SignedIn);

impl FromRequestParts<App> for Signed {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        match signed_in(app, &parts.headers).await? {
            Some(who) => {
                if parts.method == Method::POST {
                    // A form is checked against the same view of the session as the handler acts in.
                    parts.extensions.insert(who.clone());
                } else {
                    let permit =
                        app.core.reads().acquire(who.caller.tenant).await.map_err(|error| refuse(&who, parts.uri.path(), &error))?;
                    parts.extensions.get_or_insert_default::<Held>().0.get_or_init(|| permit);
                }
                Ok(Self(who))
            }
            None if parts.method == Method::GET => {
                let to = parts.uri.path_and_query().map_or("/", |path| path.as_str());
                Err(lead_to(&format!("/sign-in?to={}", escaped(to))))
            }
            None => Err(lead_to(&format!("/sign-in?ended=yes&to={}", escaped(page_of_form(parts.uri.path()))))),
        }
    }
}

/// The read permit of a request, shared by the extractor that waits for it and the middleware that keeps it.
#[derive(Clone, Debug, Default)]
struct Held(Arc<OnceLock<ReadPermit>>);

/// Keeps the read permit of a request until its page is made.
pub(crate) async fn hold_permit(mut request: Request, next: Next) -> Response {
    let held = Held::default();
    request.extensions_mut().insert(held.clone());
    let response = next.run(request).await;
    drop(held);
    response
}

fn escaped(to: &str) -> String {
    form_urlencoded::byte_serialize(to.as_bytes()).collect()
}

/// Returns the page that has the form posted to `path`: mostly the same path, otherwise the list or the broadcast that it belongs to.
fn page_of_form(path: &str) -> &str {
    const LISTS: [&str; 5] = ["/reviews", "/numbers", "/invitations", "/suppressions", "/developers/keys"];
    if matches!(path, "/sign-out" | "/world") {
        return "/";
    }
    let list = LISTS.into_iter().find(|list| path.strip_prefix(list).is_some_and(|rest| rest.starts_with('/')));
    let broadcast = path
        .strip_suffix("/columns")
        .or(path.strip_suffix("/no-recipients"))
        .or(path.split_once("/recipients").map(|(broadcast, _)| broadcast));
    list.or(broadcast).unwrap_or(path)
}

/// Leads to the page that has the form posted to this path. Browsers ask for the path after a form with a result, such as from the address
/// bar.
pub(crate) async fn to_page(_: Signed, uri: Uri) -> Response {
    lead_to(page_of_form(uri.path()))
}

/// As [`Signed`], for pages that are of no use to viewers.
#[derive(Debug)]
pub(crate) struct MayChange(pub(crate) SignedIn);

impl FromRequestParts<App> for MayChange {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, app: &App) -> Result<Self, Response> {
        let Signed(who) = Signed::from_request_parts(parts, app).await?;
        if may_change(&who) {
            Ok(Self(who))
        } else {
            Err(refuse(&who, "/", &Error::new(ErrorCode::Forbidden, "Only operators and owners can open this page")))
        }
    }
}

pub(crate) async fn signed_in(app: &App, headers: &HeaderMap) -> Result<Option<SignedIn>, Response> {
    match cookie(headers) {
        Some(cookie) => app.core.users().signed_in(cookie).await.map_err(|error| failed("looking at a session", &error)),
        None => Ok(None),
    }
}

fn cookie(headers: &HeaderMap) -> Option<&str> {
    cookie_named(headers, SESSION)
}

/// Returns the value of a cookie.
pub(crate) fn cookie_named<'a>(headers: &'a HeaderMap, wanted: &str) -> Option<&'a str> {
    let lines = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = lines.flat_map(|line| line.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs.find(|(name, _)| *name == wanted).map(|(_, value)| value)
}

/// Reads a form of a signed-in person. Rejects forms of other sites, and of pages of another project or environment.
pub(crate) async fn form(app: &App, who: &SignedIn, request: Request) -> Result<Form, Response> {
    let form = Form::read_of_person(app, request).await.map_err(foreign)?;
    match is_form_key(who, &form.get("key")) {
        Ok(true) => Ok(form),
        Ok(false) => Err(foreign(StatusCode::FORBIDDEN)),
        Err(switched) => Err(refuse(who, "/", &switched)),
    }
}

/// Extracts a form of a signed-in person, after [`Signed`]. Rejects forms of other sites, and of pages of another project or environment.
#[derive(Debug)]
pub(crate) struct Posted(pub(crate) Form);

impl FromRequest<App> for Posted {
    type Rejection = Response;

    async fn from_request(mut request: Request, app: &App) -> Result<Self, Response> {
        let who = request.extensions_mut().remove::<SignedIn>();
        match who {
            Some(who) => form(app, &who, request).await.map(Self),
            None => Err(foreign(StatusCode::FORBIDDEN)),
        }
    }
}

/// As [`Posted`], also of pages of another project or environment: for forms that switch or leave.
#[derive(Debug)]
pub(crate) struct PostedAnywhere(pub(crate) Form);

impl FromRequest<App> for PostedAnywhere {
    type Rejection = Response;

    async fn from_request(mut request: Request, app: &App) -> Result<Self, Response> {
        let who = request.extensions_mut().remove::<SignedIn>();
        let form = Form::read(app, request).await.map_err(foreign)?;
        match who {
            Some(who) if who.is_session_key(&form.get("key")) => Ok(Self(form)),
            _ => Err(foreign(StatusCode::FORBIDDEN)),
        }
    }
}

/// Returns whether the key belongs to the session; fails if its page showed another project or environment than the session views now.
pub(crate) fn is_form_key(who: &SignedIn, key: &str) -> Result<bool> {
    match (who.is_form_key(key), who.is_session_key(key)) {
        (false, true) => Err(Error::new(
            ErrorCode::Conflict,
            "You switched to another environment or project since this page was opened. Nothing was changed; open the page again.",
        )),
        (ours, _) => Ok(ours),
    }
}

pub(crate) fn foreign(status: StatusCode) -> Response {
    let (title, text) = match status {
        StatusCode::PAYLOAD_TOO_LARGE => ("That form is too large", "Go back, shorten what you entered and send it again."),
        StatusCode::SERVICE_UNAVAILABLE => ("That form could not be read", "Go back and send it again in a minute."),
        _ => ("That form cannot be used", "Open the page again and send it from there."),
    };
    guest(status, title, &html! { h1 { (title) } p { (text) } p { a class="btn" href="/" { "Home" } } })
}

/// Tells a visitor who is not signed in that an address is unknown.
pub(crate) fn nothing_here() -> Response {
    let content = html! { h1 { (NOTHING) } p { "The address is wrong." } p { a class="btn" href="/" { "Home" } } };
    guest(StatusCode::NOT_FOUND, NOTHING, &content)
}

/// Redirects with GET, so that reloading does not repeat a form.
pub(crate) fn lead_to(path: &str) -> Response {
    let location = HeaderValue::try_from(path).unwrap_or(HeaderValue::from_static("/"));
    (StatusCode::SEE_OTHER, [(LOCATION, location)]).into_response()
}

/// What paths are resolved against.
const BASE: &str = "http://here.invalid";

/// Returns `path` if it is a page of this server, otherwise `/`; guards against open redirects. A tracked link is none: it leads elsewhere.
pub(crate) fn own_page(path: &str) -> &str {
    // As browsers read it: `\` is `/`, tabs and line breaks are skipped, and `/x/../l/` is `/l/`.
    let read = url::Url::parse(BASE).and_then(|base| base.join(path));
    let is_inside = read.is_ok_and(|url| url.as_str().strip_prefix(BASE) == Some(path));
    if is_inside && path.starts_with('/') && !path.starts_with("/l/") { path } else { "/" }
}

/// Returns the page of the list at `path` that has a form, as [`Asked::this`] put it into the form; without it, the first page.
pub(crate) fn page_of_list(form: &Form, path: &str) -> String {
    let back = form.get("back");
    let is_of_list = back.strip_prefix(path).is_some_and(|rest| rest.starts_with('?'));
    if is_of_list && own_page(&back) == back { back } else { path.to_owned() }
}

/// Parses the query of a page.
pub(crate) fn query(parts: &Parts) -> HashMap<String, String> {
    form_urlencoded::parse(parts.uri.query().unwrap_or_default().as_bytes()).into_owned().collect()
}

/// The query of a page.
#[derive(Debug)]
pub(crate) struct Asked(HashMap<String, String>);

impl FromRequestParts<App> for Asked {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &App) -> Result<Self, Self::Rejection> {
        Ok(Self(query(parts)))
    }
}

impl Asked {
    /// Returns a field; `None` if it is absent or empty. Strips NUL, which PostgreSQL rejects.
    pub(crate) fn get(&self, name: &str) -> Option<String> {
        self.0.get(name).map(|value| value.replace('\0', "").trim().to_owned()).filter(|value| !value.is_empty())
    }

    /// Returns this page with another cursor.
    pub(crate) fn older(&self, path: &str, cursor: Option<String>) -> Option<String> {
        let cursor = cursor?;
        Some(format!("{path}?{}", self.except("cursor").append_pair("cursor", &cursor).finish()))
    }

    /// Returns this page, as a form returns to it.
    pub(crate) fn this(&self, path: &str) -> String {
        let mut query = self.except("cursor");
        if let Some(cursor) = self.get("cursor") {
            query.append_pair("cursor", &cursor);
        }
        let query = query.finish();
        if query.is_empty() { path.to_owned() } else { format!("{path}?{query}") }
    }

    /// Returns the first page of this list without a filter.
    pub(crate) fn without(&self, path: &str, filter: &str) -> String {
        format!("{path}?{}", self.except(filter).finish())
    }

    /// Returns the query except a field and the cursor.
    fn except(&self, field: &str) -> form_urlencoded::Serializer<'static, String> {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let mut fields: Vec<_> = self.0.iter().filter(|(name, value)| *name != "cursor" && *name != field && !value.is_empty()).collect();
        fields.sort();
        query.extend_pairs(fields);
        query
    }
}

/// Says which role is needed, and which one the person has.
fn needed_role(who: &SignedIn, error: &Error) -> String {
    // That of a use case names the permission of an API key.
    let is_of_key = error.details().get("requiredPermission").is_some();
    let needed = match who.role {
        Role::Viewer if is_of_key => "Only operators and owners can do this.".to_owned(),
        _ if is_of_key => "Only owners can do this.".to_owned(),
        _ => sentence(error.message()),
    };
    let own = if who.role == Role::Viewer { "a" } else { "an" };
    format!("{needed} You are {own} {} of this project.", who.role.as_str())
}

/// Renders an error inside the layout.
pub(crate) fn refuse(who: &SignedIn, place: &str, error: &Error) -> Response {
    let (status, symbol, title, text) = match error.code() {
        ErrorCode::Forbidden => (StatusCode::FORBIDDEN, "key", "Your role does not allow this", needed_role(who, error)),
        code if code.status() == 404 => {
            (StatusCode::NOT_FOUND, "search", NOTHING, "The address is wrong, or belongs to another environment or project.".to_owned())
        }
        ErrorCode::RateLimitExceeded => (StatusCode::TOO_MANY_REQUESTS, "alert", "Too many requests", sentence(error.message())),
        code if code.status() < 500 => (StatusCode::BAD_REQUEST, "alert", "That cannot be done", sentence(error.message())),
        _ => {
            let cause = std::error::Error::source(error).map(ToString::to_string);
            tracing::error!(code = error.code().as_str(), cause, "a page failed: {error}");
            let text = "There is a problem on our side; nothing was changed. Try again in a minute.".to_owned();
            (StatusCode::SERVICE_UNAVAILABLE, "alert", "That did not work", text)
        }
    };
    let content = html! {
        section class="panel" {
            div class="empty" {
                (icon(symbol))
                h1 { (title) }
                p { (text) }
                div class="acts" { a class="btn" href=(place) { "Back" } }
            }
        }
    };
    framed(status, who, place, title, &content)
}

/// Renders a page with a status; if its content could not be made, the error with a link to `back`.
pub(crate) fn show_or_refuse(
    status: StatusCode,
    who: &SignedIn,
    place: &str,
    title: &str,
    content: Result<Markup>,
    back: &str,
) -> Response {
    match content {
        Ok(content) => framed(status, who, place, title, &content),
        Err(error) => refuse(who, back, &error),
    }
}

/// Redirects to `page` after an action that was done; renders the error of one that was not, with a link to `page`.
pub(crate) fn lead_back_or_refuse<T>(who: &SignedIn, page: &str, done: Result<T>) -> Response {
    match done {
        Ok(_) => lead_to(page),
        Err(error) => refuse(who, page, &error),
    }
}
