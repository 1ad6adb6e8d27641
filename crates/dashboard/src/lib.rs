//! Pages for people, made on the server.
//!
//! They work without script, and call use cases of [`nuncio_core`] only. Every answer has the headers of [`headers`].

mod account;
mod assets;
mod audit;
mod broadcasts;
mod charts;
mod components;
mod contacts;
mod conversations;
mod factor;
mod form;
mod headers;
mod home;
mod invitations;
mod invite;
mod keys;
mod link;
mod messages;
mod money;
mod numbers;
mod oidc;
mod page;
mod people;
mod refused;
mod senders;
mod shell;
mod sign_in;
mod signed;
mod suppressions;
mod templates;
mod unsubscribe;

use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;

use axum::extract::{ConnectInfo, Request};
use axum::routing::{get, post};
use nuncio_core::Core;
use nuncio_core::rate::{Buckets, Quota, subscriber};
use nuncio_domain::{UserId, limits};

/// The state behind every page.
#[derive(Clone, Debug)]
struct App {
    core: Core,
    /// Guesses that addresses have left.
    guesses: Arc<Buckets<IpAddr>>,
    /// Tries to sign in that addresses have left.
    tries: Arc<Buckets<IpAddr>>,
    /// Codes of a second factor that people have left, from whatever address.
    codes: Arc<Buckets<UserId>>,
}

/// Tries to sign in that an address has a minute.
const TRIES: u32 = 10;
/// Codes of a second factor that may be tried for a person a minute, and at once: a million of them take two years.
const CODES: (u32, u32) = (1, 5);

/// The routes of all pages.
///
/// Serve them with `ConnectInfo<SocketAddr>`: guesses are counted per address. Without one they all count together.
pub fn router(core: Core) -> axum::Router {
    let buckets = |per_minute| Arc::new(Buckets::new(Quota::new(per_minute, per_minute)));
    let app =
        App { core, guesses: buckets(limits::GUESSES), tries: buckets(TRIES), codes: Arc::new(Buckets::new(Quota::new(CODES.0, CODES.1))) };
    let watched = axum::middleware::from_fn_with_state(app.clone(), audit::watch);
    let pages = guests().merge(people_pages()).layer(watched).layer(axum::middleware::map_response(headers::protect));
    pages.merge(assets::routes()).with_state(app)
}

/// Pages for whoever has their address.
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

/// Pages for people who are signed in.
fn people_pages() -> axum::Router<App> {
    axum::Router::new()
        .route("/", get(home::show))
        .route("/sign-out", post(sign_in::sign_out))
        .route("/world", post(sign_in::world))
        .route("/messages", get(messages::list::show))
        .route("/messages/new", get(messages::new::show).post(messages::new::act))
        .route("/messages/{id}", get(messages::show::show).post(messages::show::act))
        .route("/contacts", get(contacts::list).post(contacts::import))
        .route("/contacts.csv", get(contacts::export))
        .route("/contacts/{id}", get(contacts::show).post(contacts::act))
        .route("/contacts/{id}/merge", get(contacts::compare).post(contacts::merge))
        .route("/conversations", get(conversations::list))
        .route("/conversations/{id}", get(conversations::show).post(conversations::answer))
        .route("/broadcasts", get(broadcasts::list))
        .route("/broadcasts/new", get(broadcasts::new).post(broadcasts::create))
        .route("/broadcasts/{id}/recipients", post(broadcasts::upload).layer(axum::extract::DefaultBodyLimit::disable()))
        .route("/broadcasts/{id}/columns", post(broadcasts::look).layer(axum::extract::DefaultBodyLimit::disable()))
        .route("/broadcasts/{id}/results.csv", get(broadcasts::results))
        .route("/broadcasts/{id}", get(broadcasts::show).post(broadcasts::act))
        .route("/reviews", get(broadcasts::reviews))
        .route("/reviews/{id}", post(broadcasts::decide))
        .route("/senders", get(senders::list))
        .route("/senders/new", get(senders::new).post(senders::create))
        .route("/senders/{id}", get(senders::show).post(senders::act))
        .route("/senders/{id}/channels/{channel}", get(senders::connection).post(senders::connect))
        .route("/templates", get(templates::list))
        .route("/templates/new", get(templates::new).post(templates::create))
        .route("/templates/{id}", get(templates::show).post(templates::act))
        .route("/numbers", get(numbers::show).post(numbers::acquire))
        .route("/numbers/{id}", post(numbers::release))
        .route("/invitations", get(invitations::show).post(invitations::create))
        .route("/invitations/{id}", post(invitations::cancel))
        .route("/suppressions", get(suppressions::show).post(suppressions::add))
        .route("/suppressions/{id}", post(suppressions::remove))
        .route("/money", get(money::show))
        .route("/developers/keys", get(keys::show).post(keys::create))
        .route("/developers/keys/{id}", post(keys::revoke))
        .route("/settings/account", get(account::show).post(account::act))
        .route("/settings/audit", get(audit::show))
        .route("/settings/people", get(people::show).post(people::act))
}

/// Whom a request counts for.
fn address(request: &Request) -> IpAddr {
    let peer = request.extensions().get::<ConnectInfo<SocketAddr>>();
    peer.map_or(Ipv4Addr::UNSPECIFIED.into(), |info| subscriber(info.0.ip()))
}
