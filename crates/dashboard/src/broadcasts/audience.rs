//! Imports recipients from an uploaded file of any size.

use axum::extract::multipart::Field as Part;
use axum::extract::{Multipart, Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use nuncio_core::broadcasts::{ImportContacts, ImportFormat, ImportPreview, ImportedContacts, PREVIEWED};
use nuncio_core::users::SignedIn;
use nuncio_domain::{Error, Result};

use super::act::{is_too_late, lead_to_too_late};
use super::draft::Said;
use super::show::page;
use crate::App;
use crate::components::Faults;
use crate::form::of_another_site;
use crate::signed::{Signed, foreign, is_form_key, refuse};

/// Maximum length of a form field, in bytes.
const FIELD: usize = 1_024;

/// Adds the rows while the file is uploaded. The other fields must precede the file, the form key first.
pub(crate) async fn upload(
    State(app): State<App>,
    Signed(who): Signed,
    Path(id): Path<String>,
    headers: HeaderMap,
    parts: Multipart,
) -> Response {
    if of_another_site(&app, &headers) {
        return foreign(StatusCode::FORBIDDEN);
    }
    let mut fields = Fields::default();
    let imported = read(&app, &who, &id, &mut fields, parts).await;
    let said = imported.map(|found| found.map(|imported| Said { imported: Some(imported), ..Said::default() }));
    shown(&app, &who, &id, fields, said).await
}

/// Previews the columns of a file without adding recipients.
pub(crate) async fn look(
    State(app): State<App>,
    Signed(who): Signed,
    Path(id): Path<String>,
    headers: HeaderMap,
    parts: Multipart,
) -> Response {
    if of_another_site(&app, &headers) {
        return foreign(StatusCode::FORBIDDEN);
    }
    let mut fields = Fields::default();
    let previewed = read_columns(&app, &who, &id, &mut fields, parts).await;
    let said = previewed.map(|found| found.map(|previewed| Said { previewed: Some(previewed), ..Said::default() }));
    shown(&app, &who, &id, fields, said).await
}

/// Renders the page after a file was read; `None` means that the form key was wrong.
async fn shown(app: &App, who: &SignedIn, id: &str, fields: Fields, outcome: Result<Option<Said>>) -> Response {
    let (status, said) = match outcome {
        Ok(Some(said)) => (StatusCode::OK, said),
        Ok(None) => return foreign(StatusCode::FORBIDDEN),
        Err(error) if is_too_late(&error) => return lead_to_too_late(id),
        Err(error) if error.code().status() == 400 => (StatusCode::BAD_REQUEST, Said { faults: faults(&error), ..Said::default() }),
        Err(error) => return refuse(who, &format!("/broadcasts/{id}"), &error),
    };
    page(app, who, id, status, &Said { file: fields.asked, ..said }).await
}

/// Returns the errors under the names of the form fields, which are parameters of the query in the API.
fn faults(error: &Error) -> Faults {
    Faults::of(error).renamed(|path| if path == "body" { "file" } else { path.trim_start_matches("query.") }.to_owned())
}

/// The fields that precede the file.
#[derive(Default)]
struct Fields {
    asked: ImportContacts,
    /// Whether the form key is valid for this session.
    ours: bool,
}

impl Fields {
    /// Reads one field; returns `false` if it is the file.
    async fn take(&mut self, who: &SignedIn, part: &mut Part<'_>) -> Result<bool> {
        let name = part.name().unwrap_or_default().to_owned();
        if name == "file" {
            return Ok(false);
        }
        let value = short(part).await?;
        let given = Some(value.trim().to_owned()).filter(|value| !value.is_empty());
        match name.as_str() {
            "key" => self.ours = is_form_key(who, &value)?,
            "recipient" => self.asked.recipient = given,
            "columns" => self.asked.columns = given,
            "countries" => self.asked.countries = given,
            _ => {}
        }
        Ok(true)
    }

    /// Returns the result for a form without a file.
    fn without_file<T>(&self) -> Result<Option<T>> {
        if self.ours { Err(Error::field("file", "is missing; choose a file")) } else { Ok(None) }
    }
}

/// Imports the file; `None` if the form key is wrong.
async fn read(app: &App, who: &SignedIn, id: &str, fields: &mut Fields, mut parts: Multipart) -> Result<Option<ImportedContacts>> {
    while let Some(mut part) = parts.next_field().await.map_err(broken)? {
        if fields.take(who, &mut part).await? {
            continue;
        }
        if !fields.ours {
            return Ok(None);
        }
        let format = format(part.file_name().unwrap_or_default());
        let mut import = app.core.broadcasts().import(&who.caller, id, fields.asked.clone(), Ok(format)).await?;
        while let Some(piece) = part.chunk().await.map_err(broken)? {
            import.feed(&piece).await?;
        }
        return import.finish().await.map(Some);
    }
    fields.without_file()
}

/// Reads the column headings; `None` if the form key is wrong.
async fn read_columns(app: &App, who: &SignedIn, id: &str, fields: &mut Fields, mut parts: Multipart) -> Result<Option<ImportPreview>> {
    while let Some(mut part) = parts.next_field().await.map_err(broken)? {
        if fields.take(who, &mut part).await? {
            continue;
        }
        if !fields.ours {
            return Ok(None);
        }
        let mut head = Vec::new();
        // Reads to the end: browsers ignore a response before that.
        while let Some(piece) = part.chunk().await.map_err(broken)? {
            head.extend_from_slice(&piece[..piece.len().min(PREVIEWED - head.len())]);
        }
        return app.core.broadcasts().preview_import(&who.caller, id, &fields.asked, &head).await.map(Some);
    }
    fields.without_file()
}

pub(crate) async fn short(part: &mut Part<'_>) -> Result<String> {
    let mut bytes = Vec::new();
    while let Some(piece) = part.chunk().await.map_err(broken)? {
        bytes.extend_from_slice(&piece);
        if bytes.len() > FIELD {
            return Err(Error::field("form", format!("has a field of more than {FIELD} bytes")));
        }
    }
    Ok(String::from_utf8_lossy(&bytes).replace('\0', ""))
}

pub(crate) fn broken(error: axum::extract::multipart::MultipartError) -> Error {
    let why = match error.status() {
        StatusCode::PAYLOAD_TOO_LARGE => "is larger than 2 MB; divide it, or import it by the command line".to_owned(),
        _ => format!("was interrupted: {}", error.body_text()),
    };
    Error::field("file", why)
}

fn format(name: &str) -> ImportFormat {
    let extension = name.rsplit('.').next().unwrap_or_default().to_ascii_lowercase();
    if matches!(extension.as_str(), "ndjson" | "jsonl" | "json") { ImportFormat::Ndjson } else { ImportFormat::Csv }
}
