//! Recipients from a file that is sent with a form, of any size.

use axum::extract::{Multipart, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use nuncio_core::broadcasts::{ImportContacts, ImportFormat, ImportedContacts};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Error, Result};

use super::draft::Said;
use super::show::page;
use crate::App;
use crate::components::Faults;
use crate::form::of_another_site;
use crate::signed::{Signed, foreign, is_form_key, refuse};

/// The longest field before the file.
const FIELD: usize = 1_024;

/// Adds the rows of a file while it comes. The fields stand before it, the form's key first of all.
pub(crate) async fn upload(
    State(app): State<App>,
    Signed(who): Signed,
    Path(id): Path<String>,
    headers: HeaderMap,
    parts: Multipart,
) -> Response {
    if of_another_site(&headers) {
        return foreign(StatusCode::FORBIDDEN);
    }
    let said = match read(&app, &who, &id, &headers, parts).await {
        Ok(Some(imported)) => Said { imported: Some(imported), ..Said::default() },
        Ok(None) => return foreign(StatusCode::FORBIDDEN),
        Err(error) if error.code().status() == 400 => Said { faults: Faults::of(&error), ..Said::default() },
        Err(error) => return refuse(&who, &format!("/broadcasts/{id}"), &error),
    };
    let status = if said.imported.is_some() { StatusCode::OK } else { StatusCode::BAD_REQUEST };
    page(&app, &who, &id, status, &said).await
}

/// `None` when the form is of another page.
async fn read(app: &App, who: &SignedIn, id: &str, headers: &HeaderMap, mut parts: Multipart) -> Result<Option<ImportedContacts>> {
    let (mut asked, mut ours) = (ImportContacts::default(), false);
    while let Some(mut part) = parts.next_field().await.map_err(broken)? {
        let name = part.name().unwrap_or_default().to_owned();
        if name != "file" {
            let value = short(&mut part).await?;
            let given = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
            match name.as_str() {
                "key" => ours = is_form_key(app, headers, &value),
                "recipient" => asked.recipient = given,
                "columns" => asked.columns = given,
                "countries" => asked.countries = given,
                _ => {}
            }
            continue;
        }
        if !ours {
            return Ok(None);
        }
        let format = format(part.file_name().unwrap_or_default());
        let mut import = app.core.broadcasts().import(&who.caller, id, asked, Ok(format)).await?;
        while let Some(piece) = part.chunk().await.map_err(broken)? {
            import.feed(&piece).await?;
        }
        return import.finish().await.map(Some);
    }
    if ours { Err(Error::field("file", "is missing; choose a file")) } else { Ok(None) }
}

async fn short(part: &mut axum::extract::multipart::Field<'_>) -> Result<String> {
    let mut bytes = Vec::new();
    while let Some(piece) = part.chunk().await.map_err(broken)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > FIELD {
            return Err(Error::field("form", format!("has a field of more than {FIELD} bytes")));
        }
    }
    Ok(String::from_utf8_lossy(&bytes).replace('\0', ""))
}

fn broken(error: axum::extract::multipart::MultipartError) -> Error {
    Error::field("file", format!("broke off: {}", error.body_text()))
}

fn format(name: &str) -> ImportFormat {
    let extension = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    if matches!(extension.as_str(), "ndjson" | "jsonl" | "json") { ImportFormat::Ndjson } else { ImportFormat::Csv }
}
