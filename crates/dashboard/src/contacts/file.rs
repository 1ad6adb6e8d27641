//! Exports and imports contacts as CSV.

use axum::body::Body;
use axum::extract::{Multipart, State};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse as _, Response};
use futures::{StreamExt as _, stream};
use maud::{Markup, html};
use nuncio_core::contacts::file::{ContactFile, HEAD, ImportedPeople, ROWS};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Error, Result, address};

use super::{Said, people};
use crate::App;
use crate::broadcasts::{broken, short};
use crate::components::{Faults, Field, figure, form_key};
use crate::form::{Form, of_another_site};
use crate::signed::{Asked, Signed, foreign, is_form_key, refuse, show_or_refuse};
use crate::upload::file_field;

/// The field of the countries whose national numbers are accepted.
const COUNTRIES: &str = "countries";

/// Exports all contacts, for spreadsheets.
pub(crate) async fn export(State(app): State<App>, Signed(who): Signed) -> Response {
    let file = match app.core.contacts().file(&who.caller) {
        Ok(file) => file,
        Err(error) => return refuse(&who, "/contacts", &error),
    };
    let pieces =
        stream::try_unfold(file, |mut file: ContactFile| async move { Ok::<_, Error>(file.next().await?.map(|lines| (lines, file))) });
    let body = Body::from_stream(stream::iter([Ok(HEAD.to_owned())]).chain(pieces));
    let name = "attachment; filename=\"contacts.csv\"";
    ([(CONTENT_TYPE, "text/csv; charset=utf-8"), (CONTENT_DISPOSITION, name)], body).into_response()
}

/// Renders the upload form.
pub(super) fn form(who: &SignedIn, said: &Said) -> Markup {
    let typed = said.typed.get(COUNTRIES);
    let countries = Field {
        required: false,
        ..Field::new(COUNTRIES, "Countries of national numbers", "With ES, 600 111 222 means +34600111222.", &typed)
    };
    html! {
        section class="panel" {
            header { h2 { "People from a file" } }
            form class="body" method="post" enctype="multipart/form-data" action="/contacts" {
                (form_key(who))
                (countries.show(&said.faults))
                (file_field("CSV file", ".csv,.tsv,.txt", &format!("The first line names the columns: name, phone, email, whatsapp, telegram, instagram, voice. Others become metadata. At most {} rows. No messages are sent.", figure(ROWS as u64)), &said.faults))
                div class="row" { button class="btn" { "Add people" } }
            }
        }
    }
}

/// Adds the contacts of a file. The other fields must precede the file, the form key first.
pub(crate) async fn import(State(app): State<App>, Signed(who): Signed, asked: Asked, headers: HeaderMap, parts: Multipart) -> Response {
    if of_another_site(&app, &headers) {
        return foreign(StatusCode::FORBIDDEN);
    }
    let mut countries = String::new();
    let (status, faults, imported) = match read(&app, &who, parts, &mut countries).await {
        Ok(Some(imported)) => (StatusCode::OK, Faults::default(), Some(imported)),
        Ok(None) => return foreign(StatusCode::FORBIDDEN),
        Err(error) if error.code().status() == 400 => (StatusCode::BAD_REQUEST, Faults::of(&error), None),
        Err(error) => return refuse(&who, "/contacts", &error),
    };
    let said = Said { faults, typed: Form::from_iter([(COUNTRIES, countries)]), owner: None };
    show_or_refuse(status, &who, "/contacts", "Contacts", people(&app, &who, &asked, &said, imported.as_ref()).await, "/contacts")
}

/// Parses the countries of national numbers.
fn codes(text: &str) -> Result<Vec<String>> {
    let codes: Vec<String> = text.split(',').map(|code| code.trim().to_uppercase()).filter(|code| !code.is_empty()).collect();
    match codes.iter().find(|code| !address::is_country(code)) {
        Some(code) => Err(Error::field(COUNTRIES, format!("{code:?} is not a country such as ES"))),
        None => Ok(codes),
    }
}

/// Imports the file, and reads the `countries` as entered; `None` if the form key is wrong.
async fn read(app: &App, who: &SignedIn, mut parts: Multipart, countries: &mut String) -> Result<Option<ImportedPeople>> {
    let mut ours = false;
    while let Some(mut part) = parts.next_field().await.map_err(broken)? {
        match part.name().unwrap_or_default().to_owned().as_str() {
            "key" => ours = is_form_key(who, &short(&mut part).await?)?,
            COUNTRIES => *countries = short(&mut part).await?,
            "file" if ours => {
                // Reads to the end: browsers ignore a response before that.
                let file = part.bytes().await.map_err(broken)?;
                return app.core.contacts().import(&who.caller, &file, &codes(countries)?).await.map(Some);
            }
            _ => {}
        }
    }
    if ours { Err(Error::field("file", "is missing; choose a file")) } else { Ok(None) }
}
