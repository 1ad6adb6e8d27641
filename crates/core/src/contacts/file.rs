//! Exports and imports contacts as CSV, one contact per row.

use nuncio_domain::{Channel, ErrorCode, Permission, Result, address};
use serde_json::{Map, Value};

use super::command::{ContactChannelIn, CreateContact, ListContacts, UpdateContact};
use super::view::ContactView;
use super::{CHANNELS, Contacts};
use crate::base::csv::{quoted, records, unquoted};
use crate::base::{Caller, Core};

/// Maximum number of rows of an import.
pub const ROWS: usize = 5_000;
/// Header line of an export.
pub const HEAD: &str = "id,name,phone,email,whatsapp,telegram,instagram,country,metadata\r\n";
/// Exported columns that an import ignores.
const IGNORED: [&str; 2] = ["id", "country"];

/// An export, read page by page.
#[derive(Debug)]
pub struct ContactFile {
    core: Core,
    caller: Caller,
    cursor: Option<String>,
    through: bool,
}

/// Result of an import.
#[derive(Clone, Debug, Default)]
pub struct ImportedPeople {
    /// Rows of the file, without the header line.
    pub rows: usize,
    pub added: usize,
    /// Existing contacts, found by an address. A missing name was added.
    pub known: usize,
    /// Rejected rows: line and reason.
    pub errors: Vec<(u64, String)>,
}

impl Contacts<'_> {
    /// Exports all contacts, newest first.
    pub fn file(&self, caller: &Caller) -> Result<ContactFile> {
        caller.require(Permission::ContactsRead)?;
        Ok(ContactFile { core: Core::clone(self), caller: caller.clone(), cursor: None, through: false })
    }

    /// Imports a file of at most [`ROWS`] rows in the format of [`Self::file`]; unknown columns become metadata. `countries` are those
    /// whose phone numbers may be in national format.
    pub async fn import(&self, caller: &Caller, file: &[u8], countries: &[String]) -> Result<ImportedPeople> {
        caller.require(Permission::ContactsWrite)?;
        let mut rows = records(file)?.into_iter();
        let head: Vec<String> = rows.next().map(|(_, cells)| cells.iter().map(|cell| cell.to_lowercase()).collect()).unwrap_or_default();
        if !head.iter().any(|column| channel_of(column).is_some()) {
            let message = "has no column named phone, email, whatsapp, telegram or instagram in its first line";
            return Err(nuncio_domain::Error::field("file", message));
        }
        if rows.len() > ROWS {
            return Err(nuncio_domain::Error::field("file", format!("has {} rows; must have at most {ROWS}", rows.len())));
        }
        let mut imported = ImportedPeople { rows: rows.len(), ..ImportedPeople::default() };
        for (line, cells) in rows {
            let result = match read(&head, &cells, countries) {
                Ok(command) => self.add_contact(caller, command).await?,
                Err(reason) => Err(reason),
            };
            match result {
                Ok(true) => imported.added += 1,
                Ok(false) => imported.known += 1,
                Err(reason) => imported.errors.push((line, reason)),
            }
        }
        Ok(imported)
    }

    /// Adds a contact; returns whether it is new, or why the row is rejected.
    async fn add_contact(&self, caller: &Caller, command: CreateContact) -> Result<std::result::Result<bool, String>> {
        let name = command.display_name.clone();
        let error = match self.create(caller, command, None).await {
            Ok(_) => return Ok(Ok(true)),
            Err(error) if error.code().status() < 500 => error,
            Err(error) => return Err(error),
        };
        let owner = error.details().get("contactId").and_then(Value::as_str).filter(|_| error.code() == ErrorCode::DuplicateIdentifier);
        let Some(owner) = owner else { return Ok(Err(error.message().to_owned())) };
        let known = self.get(caller, owner).await?;
        if let (None, Some(name)) = (known.display_name, name) {
            let update = UpdateContact { display_name: Some(name), default_channel: None, metadata: None };
            self.update(caller, owner, update).await?;
        }
        Ok(Ok(false))
    }
}

impl ContactFile {
    /// Returns the next lines; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<String>> {
        if self.through {
            return Ok(None);
        }
        let asked = ListContacts { limit: Some(100), cursor: self.cursor.take(), ..ListContacts::default() };
        let (contacts, next) = self.core.contacts().list(&self.caller, &asked).await?;
        (self.through, self.cursor) = (next.is_none(), next);
        Ok(Some(contacts.iter().map(line).collect()))
    }
}

fn line(contact: &ContactView) -> String {
    let of = |channels: &[&str]| {
        let mut found: Vec<&str> = Vec::new();
        for channel in contact.channels.iter().filter(|channel| channels.contains(&channel.channel)) {
            if !found.contains(&channel.identifier.as_str()) {
                found.push(&channel.identifier);
            }
        }
        found.join("; ")
    };
    let metadata = if contact.metadata.is_empty() { String::new() } else { Value::Object(contact.metadata.clone()).to_string() };
    let cells = [
        contact.id.to_string(),
        contact.display_name.clone().or_else(|| contact.profile_name.clone()).unwrap_or_default(),
        of(&["sms", "voice"]),
        of(&["email"]),
        of(&["whatsapp"]),
        of(&["telegram"]),
        of(&["instagram"]),
        contact.country_code.clone().unwrap_or_default(),
        metadata,
    ];
    cells.map(|cell| quoted(&cell)).join(",") + "\r\n"
}

/// Returns the channel whose identifiers the column contains.
fn channel_of(column: &str) -> Option<Channel> {
    match column {
        "phone" | "phone_number" | "phonenumber" | "phone number" | "mobile" | "msisdn" | "tel" | "telephone" => Some(Channel::Sms),
        "e-mail" | "mail" => Some(Channel::Email),
        other => CHANNELS.into_iter().find(|channel| channel.as_str() == other),
    }
}

fn read(head: &[String], cells: &[String], countries: &[String]) -> std::result::Result<CreateContact, String> {
    if head.len() != cells.len() {
        return Err(format!("has {} cells; the first line has {}", cells.len(), head.len()));
    }
    let mut command = CreateContact { channels: Vec::new(), display_name: None, metadata: None };
    let mut metadata = Map::new();
    for (column, cell) in
        head.iter().zip(cells).map(|(column, cell)| (column.as_str(), unquoted(cell))).filter(|(_, cell)| !cell.is_empty())
    {
        match (channel_of(column), column) {
            (Some(channel), _) => {
                for part in cell.split(';').map(str::trim).filter(|part| !part.is_empty()) {
                    let typed = matches!(channel, Channel::Sms | Channel::Whatsapp | Channel::Voice);
                    let identifier =
                        if typed { address::typed_phone(part, countries).map_err(|error| error.to_string())? } else { part.to_owned() };
                    command.channels.push(ContactChannelIn { channel, identifier, country_code: None, label: None, is_primary: None });
                }
            }
            (None, "name" | "displayname" | "display name" | "display_name") => command.display_name = Some(cell.to_owned()),
            (None, "metadata") => match serde_json::from_str(cell) {
                Ok(Value::Object(members)) => metadata.extend(members),
                _ => return Err(format!("metadata is {cell:?}; must be a JSON object")),
            },
            (None, other) if IGNORED.contains(&other) => {}
            (None, other) => drop(metadata.insert(other.to_owned(), cell.into())),
        }
    }
    command.metadata = (!metadata.is_empty()).then_some(metadata);
    if command.channels.is_empty() { Err("has no address".to_owned()) } else { Ok(command) }
}
