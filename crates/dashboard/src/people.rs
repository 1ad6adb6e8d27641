//! `/settings/people`: people who can sign in to this project. Owners add and remove them, and change their roles.

use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::users::{NewUser, SignedIn};
use nuncio_domain::user::{Member, Role, User};
use nuncio_domain::{Error, ErrorCode, Redacted, Result};

use crate::App;
use crate::components::{Faults, Field, ask_first, data_table, form_key, form_panel, head};
use crate::signed::{Posted, Signed, lead_to, refuse, show_or_refuse};

const PLACE: &str = "/settings/people";
const FIRST_PASSWORD: &str = "At least 12 characters; send it to them in a secure way. Whoever belongs to another project of this server keeps theirs: leave it empty.";

pub(crate) async fn show(State(app): State<App>, Signed(who): Signed) -> Response {
    page(&app, &who, StatusCode::OK, ("", Role::Viewer), &Faults::default()).await
}

/// Renders the page. `typed`: address and role of a new person.
async fn page(app: &App, who: &SignedIn, status: StatusCode, typed: (&str, Role), faults: &Faults) -> Response {
    show_or_refuse(status, who, PLACE, "People", content(app, who, typed, faults).await, "/")
}

async fn content(app: &App, who: &SignedIn, typed: (&str, Role), faults: &Faults) -> Result<Markup> {
    let people = app.core.users().list(who.project.id).await?;
    let owner = who.role == Role::Owner;
    Ok(html! {
        (head(None, html! { "People" }, html! { "People who can sign in to " (who.project.name) }, html! {}))
        section class="panel" {
            (data_table("fix", "People", &[("", "Email address"), ("w2", "Role"), ("num w5", "Action")], html! {
                @for Member { user, role } in &people {
                    tr {
                        td { (user.email) @if user.id == who.user.id { " " span class="faint" { "you" } } }
                        td { (role.as_str()) @if app.core.users().has_factor(user)? { " " span class="faint" { "second factor" } } }
                        td class="num" {
                            @if owner && user.id != who.user.id { (actions(app, who, user, *role)?) }
                        }
                    }
                }
            }))
        }
        @if owner { (new_person(who, typed, faults)) }
    })
}

/// What an owner can do to a colleague.
fn actions(app: &App, who: &SignedIn, user: &User, role: Role) -> Result<Markup> {
    Ok(html! {
        div class="row end" {
            (change_role(who, user, role))
            @if app.core.users().has_factor(user)? {
                (ask_first(&format!("f-{}", user.id), "Reset factor", &format!("Reset the second factor of {}?", user.email), "They sign in with only their password until they set it up again. Verify that the request is theirs.", PLACE,
                    html! { (form_key(who)) input type="hidden" name="reset" value=(user.email); }))
            }
            (ask_first(&user.id.to_string(), "Remove", &format!("Remove {}?", user.email), "They lose access to this project at once.", PLACE,
                html! { (form_key(who)) input type="hidden" name="remove" value=(user.email); }))
        }
    })
}

/// A button that opens the choice of a role.
fn change_role(who: &SignedIn, user: &User, role: Role) -> Markup {
    let id = format!("r-{}", user.id);
    html! {
        button class="btn" type="button" popovertarget=(id) { "Role…" }
        div class="dlg" id=(id) popover role="dialog" aria-labelledby={ (id) "-h" } {
            form method="post" action=(PLACE) {
                (form_key(who))
                input type="hidden" name="member" value=(user.email);
                h2 id={ (id) "-h" } { "Role of " (user.email) }
                (roles(role))
                p class="row" {
                    button class="btn go" { "Change" }
                    button class="btn" type="button" popovertarget=(id) popovertargetaction="hide" { "Go back" }
                }
            }
        }
    }
}

fn roles(chosen: Role) -> Markup {
    let meaning = |role| match role {
        Role::Viewer => ("Viewer", "Sees everything, changes nothing."),
        Role::Operator => ("Operator", "Sends, changes and decides."),
        Role::Owner => ("Owner", "Also manages API keys and people."),
    };
    html! {
        fieldset class="field" {
            legend { "Role" }
            div class="pick" {
                @for role in Role::ALL {
                    label {
                        input type="radio" name="role" value=(role.as_str()) checked[*role == chosen];
                        (meaning(*role).0) span { (meaning(*role).1) }
                    }
                }
            }
        }
    }
}

fn new_person(who: &SignedIn, (email, role): (&str, Role), faults: &Faults) -> Markup {
    let body = html! {
        (faults.summary())
        div class="fields" {
            (Field { kind: "email", ..Field::new("email", "Email address", "", email) }.show(faults))
            (Field { kind: "password", autocomplete: "new-password", required: false, ..Field::new("password", "First password", FIRST_PASSWORD, "") }.show(faults))
        }
        (roles(role))
        div class="row" { button class="btn go" { "Add" } }
    };
    form_panel(who, "Add a person", PLACE, body)
}

pub(crate) async fn act(State(app): State<App>, Signed(who): Signed, Posted(form): Posted) -> Response {
    let email = form.get("email");
    let done = async {
        if who.role != Role::Owner {
            return Err(Error::new(ErrorCode::Forbidden, "only owners can manage people"));
        }
        let (users, project) = (app.core.users(), &who.project);
        let removed = form.get("remove");
        if !removed.is_empty() {
            return users.remove(project, &removed).await;
        }
        let reset = form.get("reset");
        if !reset.is_empty() {
            return users.reset_colleagues_factor(&who, &reset).await;
        }
        let role = Role::parse(&form.get("role")).ok_or_else(|| Error::field("role", "must be viewer, operator or owner"))?;
        let member = form.get("member");
        if !member.is_empty() {
            return users.set_role(project, &member, role).await;
        }
        let new = NewUser { email: email.clone(), password: Redacted::new(form.get("password")) };
        users.add_colleague(&who, role, &new).await.map(drop)
    };
    match done.await {
        Ok(()) => lead_to(PLACE),
        Err(error) if error.code().status() == 400 => {
            // The form of a colleague's role has no address.
            let role = Role::parse(&form.get("role")).filter(|_| !email.is_empty()).unwrap_or(Role::Viewer);
            page(&app, &who, StatusCode::BAD_REQUEST, (&email, role), &Faults::of(&error)).await
        }
        Err(error) => refuse(&who, PLACE, &error),
    }
}
