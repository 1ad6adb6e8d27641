//! `nuncio broadcasts import`: a file of recipients, sent to a running server.

use std::io;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use futures::stream;
use reqwest::{Body, Method, StatusCode, header};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use tokio::io::AsyncReadExt as _;

use super::{CallError, PAUSE, TRIES, World};

/// Bytes that are sent at once.
const PIECE: usize = 64 * 1024;
/// Wrong rows that are shown.
const SHOWN: usize = 20;

/// A file to import.
#[derive(Clone, Debug)]
pub struct ImportFile {
    /// The environment of the broadcast; its key needs `broadcasts:write`.
    pub world: World,
    /// The broadcast.
    pub broadcast: String,
    /// The file: `.ndjson`, `.jsonl` or `.json` holds a JSON object a line, any other CSV.
    pub file: PathBuf,
    /// Further parameters of the request: `recipient`, `countries`, `columns`.
    pub query: Vec<(&'static str, String)>,
}

impl ImportFile {
    /// Sends the file, and goes on with it when the connection breaks. `progress` is called with the bytes that were sent so far.
    ///
    /// # Errors
    ///
    /// Says what the server refused, or that it could not be reached after all tries.
    pub async fn send(&self, progress: impl Fn(u64) + Clone + Send + Sync + 'static) -> anyhow::Result<Value> {
        // The same file, read in the same way, is the same import.
        let name = fingerprint(&self.file, &self.query).await?;
        for _ in 1..TRIES {
            match self.send_once(&name, progress.clone()).await {
                Ok(Some(answer)) => return Ok(answer),
                Ok(None) => {}
                Err(error) if error.downcast_ref::<reqwest::Error>().is_some() => tracing::warn!("{error:#}; continuing"),
                Err(error) => return Err(error),
            }
            tokio::time::sleep(PAUSE).await;
        }
        self.send_once(&name, progress).await?.context("the server is not available; repeat the command to resume the import")
    }

    /// `None` when the server cannot take it just now.
    async fn send_once(&self, name: &str, progress: impl Fn(u64) + Send + Sync + 'static) -> anyhow::Result<Option<Value>> {
        let file = tokio::fs::File::open(&self.file).await.with_context(|| self.file.display().to_string())?;
        let pieces = stream::try_unfold((file, 0), move |(mut file, sent)| {
            progress(sent);
            async move {
                let mut piece = Vec::with_capacity(PIECE);
                (&mut file).take(PIECE as u64).read_to_end(&mut piece).await?;
                let sent = sent + piece.len() as u64;
                Ok::<_, io::Error>(if piece.is_empty() { None } else { Some((piece, (file, sent))) })
            }
        });
        let query: Vec<(&str, &str)> = self.query.iter().map(|(name, value)| (*name, value.as_str())).chain([("importId", name)]).collect();
        let request =
            self.world.request(Method::POST, self.world.url(&format!("/v1/broadcasts/{}/contacts/import", self.broadcast), &query));
        let request = request.header(header::CONTENT_TYPE, self.content_type()).body(Body::wrap_stream(pieces));
        let response = request.send().await.context("the server cannot be reached")?;
        let status = response.status();
        let text = response.text().await?;
        match status {
            StatusCode::CREATED => Ok(Some(serde_json::from_str(&text)?)),
            StatusCode::SERVICE_UNAVAILABLE | StatusCode::TOO_MANY_REQUESTS => Ok(None),
            _ => Err(CallError::refused(status, &text).into()),
        }
    }

    fn content_type(&self) -> &'static str {
        if is_ndjson(&self.file) { "application/x-ndjson" } else { "text/csv" }
    }
}

/// Whether a file holds a JSON object per line, by its name.
pub(crate) fn is_ndjson(file: &Path) -> bool {
    let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
    ["ndjson", "jsonl", "json"].contains(&extension.to_ascii_lowercase().as_str())
}

/// Describes the result of an import.
pub fn summary(answer: &Value) -> String {
    let number = |name: &str| answer[name].as_u64().unwrap_or_default();
    let mut out = match number("resumedAfter") {
        0 => String::new(),
        all if all == number("rows") => "This file was imported before; nothing was added. In all: ".to_owned(),
        rows => format!("Continued after row {rows}. In all: "),
    };
    out += &format!(
        "{} rows: {} added, {} duplicates, {} invalid. {} recipients of the broadcast are suppressed.",
        number("rows"),
        number("added"),
        number("duplicates"),
        number("invalid"),
        number("suppressed")
    );
    let earlier = number("invalid").saturating_sub(answer["errors"].as_array().map_or(0, Vec::len) as u64);
    if number("resumedAfter") > 0 && earlier > 0 {
        out += &format!("\n{earlier} rejected rows were shown by an earlier import; import a file with these corrected");
    }
    out + &wrong_rows(answer)
}

/// The first wrong rows of an import, a line each.
pub(super) fn wrong_rows(answer: &Value) -> String {
    let shown = |error: &Value| format!("\nline {}: {}", error["line"], error["reason"].as_str().unwrap_or_default());
    let errors = answer["errors"].as_array().map_or(&[][..], Vec::as_slice);
    let mut out: String = errors.iter().take(SHOWN).map(shown).collect();
    if errors.len() > SHOWN {
        out += &format!("\nand {} more; --json lists them", errors.len() - SHOWN);
    }
    out
}

/// A name for a file, from its content and how it is read.
async fn fingerprint(path: &Path, query: &[(&str, String)]) -> anyhow::Result<String> {
    let (path, query) = (path.to_owned(), format!("{query:?}"));
    let hashed = tokio::task::spawn_blocking(move || {
        let mut hash = Sha256::new_with_prefix(query);
        let mut file = std::fs::File::open(&path).with_context(|| path.display().to_string())?;
        io::copy(&mut file, &mut hash).with_context(|| path.display().to_string())?;
        anyhow::Ok(hash.finalize())
    });
    Ok(hashed.await??.iter().take(16).map(|byte| format!("{byte:02x}")).collect())
}
