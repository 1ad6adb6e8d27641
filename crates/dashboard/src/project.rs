//! `/settings/project`: the project's name, and the colour of its invitation pages. Owners change them.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::projects::UpdateProject;
use nuncio_core::users::SignedIn;
use nuncio_domain::config::Project;
use nuncio_domain::user::Role;
use nuncio_domain::{Colour, Error, ErrorCode};

use crate::App;
use crate::brand::SHEETS;
use crate::components::{Faults, Field, form_key, head, icon, words};
use crate::form::Form;
use crate::shell::{PROJECTS, framed};
use crate::signed::{Posted, Signed, lead_to, refuse};

const PLACE: &str = "/settings/project";
/// The colour that is offered to a project without one.
const OFFERED: Colour = Colour::rgb(0x27, 0x47, 0xc7);

/// The form as entered; redisplayed after an error.
struct Typed {
    name: String,
    is_coloured: bool,
    colour: String,
}

impl Typed {
    fn of(form: &Form) -> Self {
        Self { name: form.get("name").trim().to_owned(), is_coloured: form.get("look") == "own", colour: form.get("colour") }
    }

    fn stored(project: &Project) -> Self {
        let colour = project.colour.unwrap_or(OFFERED).to_string();
        Self { name: project.name.clone(), is_coloured: project.colour.is_some(), colour }
    }

    fn command(&self) -> UpdateProject {
        UpdateProject { name: Some(self.name.clone()), colour: Some(self.is_coloured.then(|| self.colour.clone())) }
    }
}

pub(crate) async fn show(Signed(who): Signed) -> Response {
    page(&who, StatusCode::OK, &Typed::stored(&who.project), &Faults::default())
}

/// Previews or changes the project.
pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, Posted(form): Posted) -> Response {
    if who.role != Role::Owner {
        return refuse(&who, PLACE, &Error::new(ErrorCode::Forbidden, "only owners can change the project"));
    }
    let typed = Typed::of(&form);
    if form.get("do") == "check" {
        return page(&who, StatusCode::OK, &typed, &Faults::default());
    }
    match app.core.projects().update(&who.project, typed.command()).await {
        Ok(_) => lead_to(PLACE),
        Err(error) if error.code().status() == 400 => page(&who, StatusCode::BAD_REQUEST, &typed, &Faults::of(&error)),
        Err(error) => refuse(&who, PLACE, &error),
    }
}

fn page(who: &SignedIn, status: StatusCode, typed: &Typed, faults: &Faults) -> Response {
    let content = html! {
        (head(None, html! { "Project" }, html! { "Its name, and how its invitations look" }, html! { a class="btn" href=(PROJECTS) { "All projects" } }))
        div class="aside" {
            @if who.role == Role::Owner { (fields(who, typed, faults)) } @else { (facts(&who.project)) }
            div class="stack" id="live" aria-live="polite" { (preview(typed)) }
        }
    };
    framed(status, who, PLACE, "Project", &content)
}

fn fields(who: &SignedIn, typed: &Typed, faults: &Faults) -> Markup {
    html! {
        form class="panel" method="post" action=(PLACE) data-check="live" {
            div class="body" {
                (form_key(who))
                (faults.summary())
                (Field::new("name", "Name", "Invited clients see it too.", &typed.name).show(faults))
                fieldset class="field" {
                    legend { "Pages of invitations" }
                    div class="pick" {
                        label { input type="radio" name="look" value="plain" checked[!typed.is_coloured]; "Without a colour" span { "Black and white." } }
                        label { input type="radio" name="look" value="own" checked[typed.is_coloured]; "In a colour" span { "Header, button and progress." } }
                    }
                }
                (Field { kind: "color", ..Field::new("colour", "Colour", "Text on it is black or white, whichever can be read better.", &typed.colour) }.show(faults))
            }
            footer {
                button class="btn" name="do" value="check" { "Preview" }
                button class="btn go push" name="do" value="save" { "Save" }
            }
        }
    }
}

fn facts(project: &Project) -> Markup {
    html! {
        section class="panel" {
            div class="body" {
                dl class="facts" {
                    dt { "Name" } dd { (words(&project.name)) }
                    dt { "Colour" } dd { @if let Some(colour) = project.colour { (colour) } @else { "None" } }
                }
            }
        }
    }
}

/// Shows how the colour looks in light and dark mode.
fn preview(typed: &Typed) -> Markup {
    let colour = typed.is_coloured.then(|| Colour::parse(&typed.colour)).flatten();
    html! {
        @if let Some(colour) = colour {
            section class="panel" {
                header { h2 { "Preview" } span class="faint" { (colour) } }
                div class="body" {
                    @for (sheet, mode) in SHEETS.into_iter().zip(["light", "dark"]) { (drawing(&typed.name, colour, sheet, mode)) }
                    p class="soft" { "Contrast of text: " (format!("{:.1}", colour.contrast(colour.text()))) " to 1." }
                }
            }
        } @else if typed.is_coloured {
            div class="note warn" { (icon("alert")) p { "Choose a colour such as " (OFFERED) "." } }
        }
    }
}

/// Draws the top of an invitation page. Its colours are attributes, which the content security policy permits.
fn drawing(name: &str, colour: Colour, sheet: Colour, mode: &str) -> Markup {
    let (text, edge) = (colour.text(), colour.readable_on(sheet));
    html! {
        svg class="preview" role="img" aria-label={ "An invitation page in " (mode) " mode" } viewBox="0 0 280 116" {
            rect width="280" height="116" rx="8" fill=(sheet) {}
            path d="M0 34V8a8 8 0 0 1 8-8h264a8 8 0 0 1 8 8v26z" fill=(colour) {}
            text x="16" y="22" font-size="13" font-weight="600" fill=(text) { (name) }
            rect x="16" y="52" width="248" height="6" rx="3" fill=(edge) fill-opacity=".25" {}
            rect x="16" y="52" width="84" height="6" rx="3" fill=(edge) {}
            rect x="16.5" y="72.5" width="72" height="28" rx="6" fill=(colour) stroke=(edge) {}
            text x="52.5" y="91" font-size="12" font-weight="600" text-anchor="middle" fill=(text) { "Begin" }
        }
    }
}
