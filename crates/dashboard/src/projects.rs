//! `/projects`: the projects of a person. Owners of the oldest one create others.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Environment, Error, ErrorCode, ProjectId, Result};

use crate::App;
use crate::components::{Faults, Field, data_table, form_key, form_panel, head, words};
use crate::form::Form;
use crate::shell::{PROJECTS, framed};
use crate::signed::{PostedAnywhere, Signed, lead_to, own_page, refuse};

/// Its navigation entry.
const PLACE: &str = "/settings/project";

pub(crate) async fn show(Signed(who): Signed) -> Response {
    page(&who, StatusCode::OK, "", &Faults::default())
}

fn page(who: &SignedIn, status: StatusCode, name: &str, faults: &Faults) -> Response {
    let content = html! {
        (head(None, html! { "Projects" }, html! { "Each has its own contacts, senders, keys, prices and people" }, html! {}))
        section class="panel" {
            (data_table("fix", "Projects", &[("", "Name"), ("w2", "Your role"), ("num w3", "Action")], html! {
                @for (project, role) in &who.projects {
                    tr {
                        td { (words(&project.name)) }
                        td { (role.as_str()) }
                        td class="num" {
                            @if project.id == who.project.id { span class="faint" { "open" } } @else { (open(who, project.id, &project.name)) }
                        }
                    }
                }
            }))
        }
        @if who.owns_server { (new_project(who, name, faults)) }
    };
    framed(status, who, PLACE, "Projects", &content)
}

fn open(who: &SignedIn, id: ProjectId, name: &str) -> Markup {
    html! {
        form class="plain" method="post" action=(PROJECTS) {
            (form_key(who))
            button class="btn" name="open" value=(id) { "Open" span class="sr" { " " (name) } }
        }
    }
}

fn new_project(who: &SignedIn, name: &str, faults: &Faults) -> Markup {
    let hint = "For another product, brand or client. It begins with a simulated sender in its test environment.";
    let body = html! {
        (faults.summary())
        (Field::new("name", "Name", hint, name).show(faults))
        div class="row" { button class="btn go" { "Create" } }
    };
    form_panel(who, "New project", PROJECTS, body)
}

/// Opens a project, or creates one and opens it.
pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, PostedAnywhere(form): PostedAnywhere) -> Response {
    let name = form.get("name").trim().to_owned();
    match switch(&app, &who, &form, &name).await {
        Ok(()) => lead_to(own_page(&form.get("to"))),
        Err(error) if error.code().status() == 400 => page(&who, StatusCode::BAD_REQUEST, &name, &Faults::of(&error)),
        Err(error) => refuse(&who, PROJECTS, &error),
    }
}

async fn switch(app: &App, who: &SignedIn, form: &Form, name: &str) -> Result<()> {
    let wanted = form.get("open");
    if !wanted.is_empty() {
        let id = wanted.parse().map_err(|_| Error::not_found("project"))?;
        return app.core.users().look_at(who, id, who.session.environment).await;
    }
    if !who.owns_server {
        return Err(Error::new(ErrorCode::Forbidden, "Only owners of the oldest project can create others"));
    }
    let created = app.core.projects().create(name, Some(who.user.id)).await?;
    app.core.users().look_at(who, created.id, Environment::Test).await
}
