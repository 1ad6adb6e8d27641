//! Imports recipients from files of any size in bounded memory. Parses one piece while the previous one is written.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;

use nuncio_domain::address::{self, typed_phone};
use nuncio_domain::broadcast::{Broadcast, BroadcastAction, apply};
use nuncio_domain::{AddressKind, BroadcastContactId, BroadcastId, Error, Ids, RequestedChannel, Result, template::Template};
use nuncio_store::{ImportProgress, NewBroadcastContact};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};

use super::import_rows::{Columns, Format, Row, Rows};
use super::{Broadcasts, command::NewContact, contacts, variables};
use crate::base::{Caller, Change, Core, UseCase, parse_id};

/// Bytes parsed at once.
const PIECE: usize = 64 * 1024;
/// Recipients per transaction: it takes milliseconds, so that messages are stored in between.
const AT_ONCE: usize = 500;
/// Maximum number of rejected rows that are listed; further ones are only counted.
const SHOWN: usize = 1_000;
/// Maximum length of an import's name.
const NAME: usize = 64;

/// Query of `POST /v1/broadcasts/{id}/contacts/import`.
#[derive(Clone, Debug, Default, Deserialize, IntoParams)]
#[serde(default, rename_all = "camelCase")]
#[into_params(parameter_in = Query)]
pub struct ImportContacts {
    /// The column of the recipient. Default: the first one named `recipient`, `to`, `phone`, `mobile`, `email` or similar.
    pub recipient: Option<String>,
    /// Countries (ISO 3166-1 alpha-2, comma-separated) whose national numbers are accepted: with `ES`, `600 111 222` means `+34600111222`.
    #[param(example = "ES")]
    pub countries: Option<String>,
    /// Columns and their variables, comma-separated: `nombre:name,notas:`. A column without a variable is ignored. Columns not listed here
    /// are used only if the content has a variable of the same name.
    #[param(example = "nombre:name")]
    pub columns: Option<String>,
    /// A name of your choice for this import. An interrupted import resumes after its last stored row if you send the same file again under
    /// the same name.
    #[param(min_length = 1, max_length = 64)]
    pub import_id: Option<String>,
}

/// Result of an import.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImportedContacts {
    /// Rows read, without the header and empty rows. With an `importId`, this and the counts below include its earlier requests.
    pub rows: u64,
    /// Number of recipients added.
    pub added: u64,
    /// Number that were already recipients.
    pub duplicates: u64,
    /// Number that cannot be recipients.
    pub invalid: u64,
    /// Number of all recipients of the broadcast that are suppressed now. They stay recipients, but will be skipped.
    pub suppressed: u64,
    /// Number of rows that this request skipped because an earlier one with the same `importId` had read them.
    pub resumed_after: u64,
    /// The first 1,000 rows of this request that cannot be recipients.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schema(required = false)]
    pub errors: Vec<RefusedRow>,
}

/// A row that cannot be a recipient.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = RejectedImportRow)]
pub struct RefusedRow {
    /// The line of the file on which it begins; the header is line 1.
    pub line: u64,
    /// The recipient as in the file, if any.
    pub recipient: Option<String>,
    /// The reason.
    pub reason: String,
}

/// An import in progress.
#[derive(Debug)]
pub struct Import {
    core: Core,
    caller: Caller,
    id: BroadcastId,
    name: Option<String>,
    reader: Option<Box<Reader>>,
    /// Bytes not yet parsed.
    waiting: Vec<u8>,
    /// Rows parsed but not yet written.
    read: Vec<ReadRow>,
    progress: ImportProgress,
    /// Rows of the file so far, and how many an earlier request wrote.
    at: u64,
    resumed_after: u64,
    errors: Vec<RefusedRow>,
}

/// A row to write, or a rejected one.
type ReadRow = std::result::Result<NewBroadcastContact, RefusedRow>;

/// Counts of one transaction.
#[derive(Clone, Copy, Debug, Default)]
struct Counted {
    rows: u64,
    /// Rows with the recipient of an earlier row.
    duplicates: u64,
}

/// State of the parser, which runs on a separate thread.
#[derive(Debug)]
struct Reader {
    rows: Rows,
    broadcast: Arc<Broadcast>,
    template: Option<Template>,
    countries: Vec<String>,
    ids: Ids,
}

impl Broadcasts<'_> {
    /// Starts an import into a draft.
    pub async fn import(&self, caller: &Caller, id: &str, asked: ImportContacts, format: Result<Format>) -> Result<Import> {
        caller.require(UseCase::ImportBroadcastContacts)?;
        let id: BroadcastId = parse_id(id, "broadcast")?;
        let broadcast = self.find(caller.tenant, id).await?;
        apply(broadcast.standing(""), BroadcastAction::Prepare)?;
        let format = format?;
        if let Some(name) = asked.import_id.as_ref().filter(|name| !(1..=NAME).contains(&name.chars().count())) {
            return Err(Error::field("query.importId", format!("has {} characters; must have 1 to {NAME}", name.chars().count())));
        }
        let template = self.template_of(&broadcast).await?;
        let columns = columns(&broadcast, template.as_ref(), &asked)?;
        let countries = countries(asked.countries.as_deref())?;
        let progress = match &asked.import_id {
            Some(name) => self.inner.store.read().await?.find_broadcast_import(caller.tenant, id, name).await?.unwrap_or_default(),
            None => ImportProgress::default(),
        };
        let reader =
            Reader { rows: Rows::new(format, columns), broadcast: Arc::new(broadcast), template, countries, ids: self.ids().clone() };
        Ok(Import {
            core: Core::clone(self),
            caller: caller.clone(),
            id,
            name: asked.import_id,
            reader: Some(Box::new(reader)),
            waiting: Vec::new(),
            read: Vec::new(),
            at: 0,
            resumed_after: progress.rows,
            progress,
            errors: Vec::new(),
        })
    }
}

impl Import {
    /// Imports the next bytes of the file.
    pub async fn feed(&mut self, bytes: &[u8]) -> Result<()> {
        self.waiting.extend_from_slice(bytes);
        if self.waiting.len() < PIECE { Ok(()) } else { self.step(false).await }
    }

    /// Ends the file; returns the result of the import.
    pub async fn finish(mut self) -> Result<ImportedContacts> {
        self.step(true).await?;
        let rows = std::mem::take(&mut self.read);
        self.write(rows).await?;
        let sender = self.core.broadcasts().find(self.caller.tenant, self.id).await?.sender;
        let suppressed = self.core.inner.store.read().await?.count_suppressed_contacts(self.caller.tenant, self.id, sender).await?;
        let ImportProgress { rows, added, duplicates, invalid } = self.progress;
        Ok(ImportedContacts { rows, added, duplicates, invalid, suppressed, resumed_after: self.resumed_after, errors: self.errors })
    }

    /// Returns roughly how many bytes the import holds in memory.
    pub fn held(&self) -> usize {
        self.waiting.len() + 4 * PIECE
    }

    /// Parses pending bytes while writing the rows parsed before.
    async fn step(&mut self, last: bool) -> Result<()> {
        let piece = std::mem::take(&mut self.waiting);
        let mut reader = self.reader.take().ok_or_else(|| Error::internal("an import was used after it had failed"))?;
        let reading = tokio::task::spawn_blocking(move || {
            let rows = reader.read(&piece, last);
            (reader, rows)
        });
        let ready = std::mem::take(&mut self.read);
        let written = self.write(ready).await;
        let (reader, rows) = reading.await.map_err(Error::internal)?;
        written?;
        self.read = rows?;
        self.reader = Some(reader);
        Ok(())
    }

    async fn write(&mut self, rows: Vec<ReadRow>) -> Result<()> {
        let skipped = usize::try_from(self.resumed_after.saturating_sub(self.at)).unwrap_or(usize::MAX).min(rows.len());
        self.at += rows.len() as u64;
        let mut rows = rows.into_iter().skip(skipped).peekable();
        while rows.peek().is_some() {
            let (mut new, mut seen, mut count) = (Vec::with_capacity(AT_ONCE), HashSet::with_capacity(AT_ONCE), Counted::default());
            for row in rows.by_ref().take(AT_ONCE) {
                count.rows += 1;
                match row {
                    // The first row of a recipient counts.
                    Ok(contact) if seen.insert(contact.recipient.clone()) => new.push(contact),
                    Ok(_) => count.duplicates += 1,
                    Err(refused) if self.errors.len() < SHOWN => self.errors.push(refused),
                    Err(_) => {}
                }
            }
            self.write_some(new, count).await?;
        }
        Ok(())
    }

    async fn write_some(&mut self, new: Vec<NewBroadcastContact>, count: Counted) -> Result<()> {
        let (core, tenant) = (&self.core, self.caller.tenant);
        let mut tx = core.inner.store.begin().await?;
        let Some(added) = tx.insert_broadcast_contacts(tenant, self.id, &new).await? else {
            drop(tx);
            return Err(core.broadcasts().no_draft(&self.caller, self.id).await);
        };
        let mut progress = self.progress.clone();
        progress.rows += count.rows;
        progress.added += added;
        progress.duplicates += count.duplicates + new.len() as u64 - added;
        progress.invalid += count.rows - count.duplicates - new.len() as u64;
        if let Some(name) = &self.name {
            tx.put_broadcast_import(tenant, self.id, name, &progress).await?;
        }
        if self.progress.rows == self.resumed_after {
            // One entry per request, not per transaction.
            Change::new("broadcast", "import_recipients", self.id).record(&mut *tx, tenant).await?;
        }
        tx.commit().await?;
        self.progress = progress;
        Ok(())
    }
}

impl Reader {
    fn read(&mut self, piece: &[u8], last: bool) -> Result<Vec<ReadRow>> {
        let rows = self.rows.read(piece, last)?;
        // Ids in the order of the file, since recipients are enqueued by id.
        let now = self.ids.clock.now();
        let mut ids: Vec<BroadcastContactId> = rows.iter().map(|_| self.ids.at(now)).collect();
        ids.sort_unstable();
        Ok(rows.into_iter().zip(ids).map(|(row, id)| self.recipient(row, id)).collect())
    }

    fn recipient(&self, (line, row): Row, id: BroadcastContactId) -> ReadRow {
        let contact = row.map_err(|reason| RefusedRow { line, recipient: None, reason })?;
        let given = contact.recipient.clone();
        let read = self.as_written(contact).and_then(|contact| contacts::read(&self.broadcast, self.template.as_ref(), contact));
        let (recipient, variables) =
            read.map_err(|reason| RefusedRow { line, recipient: Some(given.chars().take(320).collect()), reason })?;
        Ok(NewBroadcastContact { id, recipient, variables })
    }

    /// Converts a phone number to international form if it is a national number. Fails if it is one of none or several of the countries.
    fn as_written(&self, mut contact: NewContact) -> std::result::Result<NewContact, String> {
        let text = contact.recipient.as_str();
        let takes_phones = match self.broadcast.channel.requested() {
            RequestedChannel::Only(channel) => channel.address_kind() == AddressKind::Phone,
            RequestedChannel::Auto => !text.contains('@'),
        };
        let plain = text.strip_prefix('+').is_some_and(|digits| digits.bytes().all(|b| b.is_ascii_digit()));
        if !takes_phones || plain {
            return Ok(contact);
        }
        let is_number = text.contains(|c: char| c.is_ascii_digit()) && !text.contains(char::is_alphabetic);
        match typed_phone(text, &self.countries) {
            Ok(number) => contact.recipient = number,
            // Otherwise the check of all recipients says more.
            Err(error) if is_number && !self.countries.is_empty() => return Err(error.to_string()),
            Err(_) => {}
        }
        Ok(contact)
    }
}

/// Returns the column mapping for a broadcast.
pub(super) fn columns(broadcast: &Broadcast, template: Option<&Template>, asked: &ImportContacts) -> Result<Columns> {
    let used = variables::of_recipients(broadcast, template).into_iter().collect();
    Ok(Columns { recipient: asked.recipient.clone(), renamed: renamed(asked.columns.as_deref())?, used })
}

/// Parses `column:variable,…`.
fn renamed(text: Option<&str>) -> Result<BTreeMap<String, String>> {
    let pairs = text.unwrap_or_default().split(',').filter(|pair| !pair.trim().is_empty());
    let pair = |pair: &str| match pair.rsplit_once(':') {
        Some((column, name)) => Ok((column.trim().to_owned(), name.trim().to_owned())),
        None => Err(Error::field("query.columns", format!("{pair:?} is not column:variable, such as nombre:name"))),
    };
    pairs.map(pair).collect()
}

fn countries(text: Option<&str>) -> Result<Vec<String>> {
    let codes = text.unwrap_or_default().split(',').map(|code| code.trim().to_uppercase()).filter(|code| !code.is_empty());
    let known = |code: String| {
        if address::is_country(&code) {
            Ok(code)
        } else {
            Err(Error::field("query.countries", format!("{code:?} is not a country such as ES")))
        }
    };
    codes.map(known).collect()
}
