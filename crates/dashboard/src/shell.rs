//! Layout of pages for signed-in people.

use axum::http::StatusCode;
use axum::response::Response;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use nuncio_core::users::SignedIn;
use nuncio_domain::Environment;
use nuncio_domain::user::Role;

use crate::assets::SPRITE;
use crate::components::{form_key, icon, words};
use crate::page::page;

/// Page of a person's own account.
pub(crate) const ACCOUNT: &str = "/settings/account";

/// Page of a person's projects.
pub(crate) const PROJECTS: &str = "/projects";
/// Maximum number of projects listed in the navigation.
const SWITCH: usize = 8;

/// Navigation: path, icon, label.
const WORK: [(&str, &str, &str); 6] = [
    ("/", "home", "Home"),
    ("/messages", "msg", "Messages"),
    ("/conversations", "chat", "Conversations"),
    ("/contacts", "person", "Contacts"),
    ("/broadcasts", "cast", "Broadcasts"),
    ("/reviews", "check", "Reviews"),
];
const SET_UP: [(&str, &str, &str); 5] = [
    ("/senders", "plug", "Senders"),
    ("/templates", "doc", "Templates"),
    ("/numbers", "hash", "Numbers"),
    ("/invitations", "link", "Invitations"),
    ("/suppressions", "alert", "Suppressions"),
];
const PROJECT: [(&str, &str, &str); 4] = [
    ("/developers/keys", "key", "Developers"),
    ("/money", "coin", "Money"),
    ("/settings/people", "person", "People"),
    ("/settings/project", "gear", "Project"),
];
/// Visible to operators and owners only.
const OPERATORS: [(&str, &str, &str); 1] = [("/settings/audit", "doc", "Audit log")];

/// Renders a page. `place`: the path of its navigation entry.
pub(crate) fn shell(who: &SignedIn, place: &str, title: &str, content: &Markup) -> Response {
    framed(StatusCode::OK, who, place, title, content)
}

/// Renders a page with a status.
pub(crate) fn framed(status: StatusCode, who: &SignedIn, place: &str, title: &str, content: &Markup) -> Response {
    followed(status, who, place, title, content, None)
}

/// How the script refreshes an open page.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Live {
    /// Reloads it.
    Whole,
    /// Reloads it less often, since it is expensive.
    Calm,
    /// Refreshes the list and announces new rows.
    Rows,
}

/// Renders a page with a status, refreshed by the script.
pub(crate) fn followed(status: StatusCode, who: &SignedIn, place: &str, title: &str, content: &Markup, live: Option<Live>) -> Response {
    let live = live.map(|live| match live {
        Live::Whole => "whole",
        Live::Calm => "calm",
        Live::Rows => "rows",
    });
    let test = who.session.environment == Environment::Test;
    let name = &who.project.name;
    let body = html! {
        (DOCTYPE)
        html lang="en" {
            (document_head(&format!("{title} · {name}")))
            body class=[test.then_some("test")] {
                a class="skip" href="#main" { "Skip to content" }
                (PreEscaped(SPRITE))
                div class="shell" {
                    @if test { aside class="band" aria-label="Environment" { b { "Test environment." } " Messages sent here do not leave this server." } }
                    header class="bar" {
                        a class="project" href="/" { (mark()) span class="name" { (words(name)) } (tag(test)) }
                        button class="btn" type="button" popovertarget="nav" { "Menu" }
                    }
                    (navigation(who, place, test))
                    main class="main" id="main" data-live=[live] { (content) }
                }
            }
        }
    };
    page(status, body)
}

fn navigation(who: &SignedIn, place: &str, test: bool) -> Markup {
    html! {
        nav class="nav" id="nav" popover aria-label="Main" {
            (projects(who, place))
            form class="plain" method="post" action="/world" {
                (form_key(who))
                input type="hidden" name="to" value=(place);
                div class="worlds" role="group" aria-label="Environment" {
                    @for (value, word, current) in [("live", "Live", !test), ("test", "Test", test)] {
                        button name="world" value=(value) aria-current=[current.then_some("true")] { (word) }
                    }
                }
            }
            form class="find" role="search" action="/messages" {
                label class="sr" for="q" { "Find a message by number, address, id or text" }
                (icon("search"))
                input class="in" id="q" name="q" type="search" placeholder="Find anything" autocomplete="off";
                kbd aria-hidden="true" { "/" }
            }
            (entries(&WORK, place))
            div { h2 { "Set up" } (entries(&SET_UP, place)) }
            div {
                h2 { "Project" }
                (entries(&PROJECT, place))
                @if who.role > Role::Viewer { (entries(&OPERATORS, place)) }
            }
            div { h2 { "Help" } ul { li { a href="/docs/guide" { (icon("doc")) "Guide" } } li { a href="/docs" { (icon("link")) "API reference" } } } }
            div class="me" {
                a href=(ACCOUNT) title={ "Your account, " (who.user.email) } aria-current=[(place == ACCOUNT).then_some("page")] { (who.user.email) }
                form class="plain" method="post" action="/sign-out" { (form_key(who)) button class="btn quiet small" { "Sign out" } }
            }
        }
    }
}

/// The project, and a switch to others of the person.
fn projects(who: &SignedIn, place: &str) -> Markup {
    let name = html! { (mark()) span class="name" { (words(&who.project.name)) } };
    if who.projects.len() == 1 {
        return html! { a class="project" href="/" { (name) } };
    }
    let others = who.projects.iter().filter(|(project, _)| project.id != who.project.id).take(SWITCH);
    html! {
        details class="switch" {
            summary class="project" { (name) span class="sr" { ", switch project" } }
            form class="plain" method="post" action=(PROJECTS) {
                (form_key(who))
                input type="hidden" name="to" value=(place);
                ul { @for (project, _) in others { li { button class="btn quiet" name="open" value=(project.id) { (words(&project.name)) } } } }
            }
            a href=(PROJECTS) { "All projects" }
        }
    }
}

fn entries(list: &[(&str, &str, &str)], place: &str) -> Markup {
    html! {
        ul {
            @for (href, symbol, name) in list {
                li { a href=(href) aria-current=[(*href == place).then_some("page")] { (icon(symbol)) (name) } }
            }
        }
    }
}

fn tag(test: bool) -> Markup {
    if test {
        html! { span class="tag test" { "Test" } }
    } else {
        html! { span class="tag live" { "Live" } }
    }
}

fn mark() -> Markup {
    html! { svg class="mark" aria-hidden="true" { use href="#mark" {} } }
}

fn document_head(title: &str) -> Markup {
    html! {
        head {
            meta charset="utf-8";
            meta name="viewport" content="width=device-width, initial-scale=1";
            meta name="color-scheme" content="light dark";
            title { (title) }
            link rel="icon" href="/assets/mark.svg" type="image/svg+xml";
            link rel="stylesheet" href="/assets/nuncio.css";
            script src="/assets/nuncio.js" defer {}
        }
    }
}

/// Renders a page for a visitor who is not signed in.
pub(crate) fn guest(status: StatusCode, title: &str, content: &Markup) -> Response {
    let body = html! {
        (DOCTYPE)
        html lang="en" {
            (document_head(&format!("{title} · nuncio")))
            body {
                (PreEscaped(SPRITE))
                main class="guest" { div class="slip" { p class="who" { (mark()) "nuncio" } (content) } }
            }
        }
    };
    page(status, body)
}
