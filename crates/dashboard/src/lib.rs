//! Web pages, rendered on the server.
//!
//! They work without script and call only use cases of [`nuncio_core`]. Every response has the security headers of [`headers`].

mod account;
mod assets;
mod audit;
mod brand;
mod broadcasts;
mod charts;
mod components;
mod contacts;
mod conversations;
mod factor;
mod filters;
mod form;
mod headers;
mod home;
mod invitations;
mod invite;
mod keys;
mod labels;
mod link;
mod messages;
mod money;
mod numbers;
mod oidc;
mod page;
mod people;
mod plain;
mod project;
mod projects;
mod refused;
mod senders;
mod shell;
mod sign_in;
mod signed;
mod suppressions;
mod templates;
mod unsubscribe;
mod upload;
mod webhook;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request, State};
use axum::http::HeaderMap;
use axum::response::Response;
use axum::routing::{get, post};
use nuncio_core::Core;
use nuncio_core::rate::{Buckets, Quota, subscriber};
use nuncio_domain::{Error, UserId, limits};

use crate::signed::{hold_permit, nothing_here, refuse, signed_in, to_page};

/// State shared by all pages.
#[derive(Clone, Debug)]
struct App {
    core: Core,
    /// Remaining guesses of link tokens, by client address.
    guesses: Arc<Buckets<IpAddr>>,
    /// Remaining sign-in attempts, by client address.
    tries: Arc<Buckets<IpAddr>>,
    /// Remaining second-factor codes, by person.
    codes: Arc<Buckets<UserId>>,
}

/// Sign-in attempts per minute and address.
const TRIES: u32 = 10;
/// Second-factor codes per person: rate per minute, and burst. Trying all million codes takes two years.
const CODES: (u32, u32) = (1, 5);

/// Returns the routes of all pages, with a fallback for unknown addresses.
///
/// Serve them with `ConnectInfo<SocketAddr>`, so that guesses are counted per client address; otherwise all clients share one limit.
pub fn router(core: Core) -> axum::Router {
    let buckets = |per_minute| Arc::new(Buckets::new(Quota::new(per_minute, per_minute)));
    let app =
        App { core, guesses: buckets(limits::GUESSES), tries: buckets(TRIES), codes: Arc::new(Buckets::new(Quota::new(CODES.0, CODES.1))) };
    let watched = axum::middleware::from_fn_with_state(app.clone(), audit::watch);
    let pages = guests()
        .merge(people_pages().layer(axum::middleware::from_fn(hold_permit)))
        .fallback(unknown)
        .layer(watched)
        .layer(axum::middleware::map_response(headers::protect));
    pages.merge(assets::routes()).with_state(app)
}

/// Public pages.
fn guests() -> axum::Router<App> {
    axum::Router::new()
        .route("/invite/{token}", get(invite::show).post(invite::act))
        .route("/unsubscribe/{token}", get(unsubscribe::show).post(unsubscribe::act))
        .route("/l/{token}", get(link::follow))
        .route("/begin/{token}", get(sign_in::begin).post(sign_in::own))
        .route("/sign-in", get(sign_in::show).post(sign_in::act))
        .route("/sign-in/oidc", get(oidc::begin))
        .route("/sign-in/oidc/back", get(oidc::back))
}

/// Pages that require sign-in.
fn people_pages() -> axum::Router<App> {
    axum::Router::new()
        .route("/", get(home::show))
        .route("/sign-out", post(sign_in::sign_out).get(to_page))
        .route("/world", post(sign_in::world).get(to_page))
        .route("/messages", get(messages::list::show))
        .route("/messages/new", get(messages::new::show).post(messages::new::act))
        .route("/messages/{id}", get(messages::show::show).post(messages::show::act))
        .route("/contacts", get(contacts::list).post(contacts::import))
        .route("/contacts.csv", get(contacts::export))
        .route("/contacts/new", get(contacts::new).post(contacts::create))
        .route("/contacts/{id}", get(contacts::show).post(contacts::act))
        .route("/contacts/{id}/merge", get(contacts::compare).post(contacts::merge))
        .route("/conversations", get(conversations::list))
        .route("/conversations/{id}", get(conversations::show).post(conversations::answer))
        .route("/broadcasts", get(broadcasts::list))
        .route("/broadcasts/new", get(broadcasts::new).post(broadcasts::create))
        .route(
            "/broadcasts/{id}/recipients",
            post(broadcasts::upload).get(broadcasts::recipients).layer(axum::extract::DefaultBodyLimit::disable()),
        )
        .route("/broadcasts/{id}/recipients/{contact}", post(broadcasts::remove).get(to_page))
        .route("/broadcasts/{id}/no-recipients", post(broadcasts::remove_all).get(to_page))
        .route("/broadcasts/{id}/columns", post(broadcasts::look).get(to_page).layer(axum::extract::DefaultBodyLimit::disable()))
        .route("/broadcasts/{id}/results.csv", get(broadcasts::results))
        .route("/broadcasts/{id}", get(broadcasts::show).post(broadcasts::act))
        .route("/reviews", get(broadcasts::reviews))
        .route("/reviews/{id}", post(broadcasts::decide).get(to_page))
        .route("/senders", get(senders::list))
        .route("/senders/new", get(senders::new).post(senders::create))
        .route("/senders/{id}", get(senders::show).post(senders::act))
        .route("/senders/{id}/profile", get(senders::profile).post(senders::change_profile))
        .route("/senders/{id}/channels/{channel}", get(senders::connection).post(senders::connect))
        .route("/templates", get(templates::list))
        .route("/templates/new", get(templates::new).post(templates::create))
        .route("/templates/{id}", get(templates::show).post(templates::act))
        .route("/numbers", get(numbers::show).post(numbers::acquire))
        .route("/numbers/{id}", post(numbers::release).get(to_page))
        .route("/invitations", get(invitations::show).post(invitations::create))
        .route("/invitations/{id}", post(invitations::cancel).get(to_page))
        .route("/suppressions", get(suppressions::show).post(suppressions::add))
        .route("/suppressions/{id}", post(suppressions::remove).get(to_page))
        .route("/money", get(money::show).post(money::import))
        .route("/money/ledger", get(money::ledger))
        .route("/developers/keys", get(keys::show).post(keys::create))
        .route("/developers/keys/{id}", post(keys::revoke).get(to_page))
        .route("/developers/webhook", get(webhook::show).post(webhook::act))
        .route("/settings/account", get(account::show).post(account::act))
        .route("/settings/audit", get(audit::show))
        .route("/settings/people", get(people::show).post(people::act))
        .route("/settings/project", get(project::show).post(project::act))
        .route("/projects", get(projects::show).post(projects::act))
}

/// The page of an unknown address.
async fn unknown(State(app): State<App>, headers: HeaderMap) -> Response {
    match signed_in(&app, &headers).await {
        Ok(Some(who)) => refuse(&who, "/", &Error::not_found("page")),
        Ok(None) => nothing_here(),
        Err(failed) => failed,
    }
}

/// Returns the client address that limits apply to.
fn address(request: &Request) -> IpAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |info| subscriber(info.0.ip()))
}
