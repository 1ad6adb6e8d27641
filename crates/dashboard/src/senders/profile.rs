//! `/senders/{id}/profile`: the business profile of a sender, which WhatsApp shows to recipients.

use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use maud::{Markup, html};
use nuncio_core::is_changed_meanwhile;
use nuncio_core::senders::{PictureType, ProfileView, SetPicture, UpdateProfile};
use nuncio_core::users::SignedIn;
use nuncio_domain::profile::Vertical;
use nuncio_domain::{Error, Result};

use crate::App;
use crate::components::{Faults, Field, changed_meanwhile, choice, form_key, head, may_change, version_field, words};
use crate::form::Form;
use crate::signed::{Posted, Signed, lead_to, refuse, show_or_refuse};

const VERTICALS: [(&str, &str); 19] = [
    ("UNDEFINED", "Not set"),
    ("APPAREL", "Clothes"),
    ("AUTO", "Cars"),
    ("BEAUTY", "Beauty"),
    ("EDU", "Education"),
    ("ENTERTAIN", "Entertainment"),
    ("EVENT_PLAN", "Planning of events"),
    ("FINANCE", "Finance"),
    ("GOVT", "Government"),
    ("GROCERY", "Groceries"),
    ("HEALTH", "Health"),
    ("HOTEL", "Hotels"),
    ("NONPROFIT", "Nonprofit organisation"),
    ("PROF_SERVICES", "Professional services"),
    ("RESTAURANT", "Restaurants"),
    ("RETAIL", "Shops"),
    ("TRAVEL", "Travel"),
    ("NOT_A_BIZ", "Not a business"),
    ("OTHER", "Other"),
];
const PICTURES: [(&str, &str); 2] = [("image/png", "PNG"), ("image/jpeg", "JPEG")];
/// Form fields of the web sites.
const SITES: [&str; 2] = ["website1", "website2"];

/// Input of the last action, and what is wrong with it.
#[derive(Default)]
struct Said {
    faults: Faults,
    typed: Option<Form>,
    /// Whether it was not saved because the profile was changed since the form was opened.
    changed_meanwhile: bool,
}

/// Shows the profile as the provider reports it.
pub(crate) async fn profile(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>) -> Response {
    page(&app, &who, &id, StatusCode::OK, &Said::default()).await
}

async fn page(app: &App, who: &SignedIn, id: &str, status: StatusCode, said: &Said) -> Response {
    show_or_refuse(status, who, "/senders", "WhatsApp profile", content(app, who, id, said).await, &format!("/senders/{id}"))
}

async fn content(app: &App, who: &SignedIn, id: &str, said: &Said) -> Result<Markup> {
    let sender = app.core.senders().get(&who.caller, id).await?;
    let profile = app.core.senders().get_profile(&who.caller, id).await?;
    let (crumb, action) = (format!("/senders/{}", sender.id), format!("/senders/{}/profile", sender.id));
    Ok(html! {
        (head(Some((&crumb, &sender.name)), html! { "WhatsApp profile" }, html! { "What recipients see of this sender on WhatsApp" }, html! {}))
        (said.faults.summary())
        @if said.changed_meanwhile { (facts(&profile)) }
        @if may_change(who) { (form(who, &profile, said, &action)) (picture(who, &profile, said, &action)) } @else { (facts(&profile)) }
    })
}

/// Shows the profile to a viewer, or what is stored in place of what was entered.
fn facts(profile: &ProfileView) -> Markup {
    let sites = profile.websites.join(", ");
    let rows = [
        ("About", profile.about.as_str()),
        ("Description", &profile.description),
        ("Address", &profile.address),
        ("Email address", &profile.email),
        ("Web sites", &sites),
        ("Industry", industry(profile.vertical)),
        ("Picture", &profile.profile_picture_url),
    ];
    html! {
        section class="panel" aria-label="Profile" {
            div class="body" { dl class="facts" { @for (label, text) in rows { dt { (label) } dd { @if text.is_empty() { span class="faint" { "not set" } } @else { (words(text)) } } } } }
        }
    }
}

fn industry(vertical: Vertical) -> &'static str {
    VERTICALS.iter().find(|(name, _)| *name == vertical.as_str()).map_or("", |(_, word)| word)
}

fn form(who: &SignedIn, profile: &ProfileView, said: &Said, action: &str) -> Markup {
    let value = |name: &str, now: &str| {
        said.typed.as_ref().filter(|typed| typed.get("do") == "save").map_or_else(|| now.to_owned(), |typed| typed.get(name))
    };
    let field = |name: &str, label: &str, hint: &str, kind: &str, now: &str| {
        Field { kind, required: false, ..Field::new(name, label, hint, &value(name, now)) }.show(&said.faults)
    };
    let site = |n: usize| profile.websites.get(n).map_or("", String::as_str);
    html! {
        form class="panel" method="post" action=(action) {
            div class="body" {
                (form_key(who))
                (version_field(said.typed.as_ref().and_then(Form::version), said.changed_meanwhile, profile.version()))
                @if said.changed_meanwhile { (changed_meanwhile("The list above")) }
                (field("about", "About", "A line below the name, at most 139 characters.", "text", &profile.about))
                (field("description", "Description", "At most 512 characters.", "textarea", &profile.description))
                (field("address", "Address", "At most 256 characters.", "text", &profile.address))
                div class="fields" {
                    (field("email", "Email address", "", "email", &profile.email))
                    (field(SITES[0], "Web site", "", "url", site(0)))
                    (field(SITES[1], "Second web site", "", "url", site(1)))
                    (choice("vertical", "Industry", &VERTICALS, &value("vertical", profile.vertical.as_str()), "", &said.faults))
                }
            }
            footer { button class="btn go push" name="do" value="save" { "Save" } }
        }
    }
}

fn picture(who: &SignedIn, profile: &ProfileView, said: &Said, action: &str) -> Markup {
    let typed = said.typed.as_ref().filter(|typed| typed.get("do") == "picture");
    let url = typed.map(|typed| typed.get("imageUrl")).unwrap_or_default();
    let hint = "A public https URL, at most 5 MB. It is fetched once.";
    let field = Field { kind: "url", ..Field::new("imageUrl", "Address of the new picture", hint, &url) };
    html! {
        section class="panel" {
            header { h2 { "Picture" } @if profile.profile_picture_url.starts_with("https://") { a href=(profile.profile_picture_url) rel="noreferrer" { "The current one" } } }
            form class="body" method="post" action=(action) {
                (form_key(who))
                (field.show(&said.faults))
                (choice("mimeType", "Type", &PICTURES, &typed.map(|typed| typed.get("mimeType")).unwrap_or_default(), "", &said.faults))
                div class="row" { button class="btn" name="do" value="picture" { "Set the picture" } }
            }
        }
    }
}

/// Changes the profile or its picture, at the provider.
pub(crate) async fn change_profile(State(app): State<App>, Signed(who): Signed, Path(id): Path<String>, Posted(form): Posted) -> Response {
    let done = match form.get("do").as_str() {
        "save" => save(&app, &who, &id, &form).await,
        "picture" => set_picture(&app, &who, &id, &form).await,
        _ => Err(Error::field("do", "is not an action of a profile")),
    };
    match done {
        Ok(_) => lead_to(&format!("/senders/{id}/profile")),
        Err(error) if is_changed_meanwhile(&error) => {
            let said = Said { typed: Some(form), changed_meanwhile: true, ..Said::default() };
            page(&app, &who, &id, StatusCode::CONFLICT, &said).await
        }
        Err(error) if error.code().status() == 400 => {
            let sites = filled_sites(&form);
            let name =
                |path: &str| (0..sites.len()).find(|n| path == format!("websites[{n}]")).map_or(path.to_owned(), |n| sites[n].0.to_owned());
            let said = Said { faults: Faults::of(&error).renamed(name), typed: Some(form), changed_meanwhile: false };
            page(&app, &who, &id, StatusCode::BAD_REQUEST, &said).await
        }
        Err(error) => refuse(&who, &format!("/senders/{id}"), &error),
    }
}

/// Returns the web sites that were entered, with their fields.
fn filled_sites(form: &Form) -> Vec<(&'static str, String)> {
    SITES.iter().map(|name| (*name, form.get(name).trim().to_owned())).filter(|(_, site)| !site.is_empty()).collect()
}

async fn save(app: &App, who: &SignedIn, id: &str, form: &Form) -> Result<ProfileView> {
    let text = |name: &str| Some(form.get(name).trim().to_owned());
    let vertical = form.get("vertical");
    let update = UpdateProfile {
        expected_version: form.version(),
        about: text("about"),
        address: text("address"),
        description: text("description"),
        email: text("email"),
        websites: Some(filled_sites(form).into_iter().map(|(_, site)| site).collect()),
        vertical: Some(Vertical::parse(&vertical).ok_or_else(|| Error::field("vertical", format!("{vertical:?} is not an industry")))?),
    };
    app.core.senders().update_profile(&who.caller, id, update).await
}

async fn set_picture(app: &App, who: &SignedIn, id: &str, form: &Form) -> Result<ProfileView> {
    let mime_type = match form.get("mimeType").as_str() {
        "image/jpeg" => PictureType::Jpeg,
        "image/png" => PictureType::Png,
        _ => return Err(Error::field("mimeType", "is not one of the choices")),
    };
    app.core.senders().set_picture(&who.caller, id, SetPicture { image_url: form.get("imageUrl").trim().to_owned(), mime_type }).await
}
