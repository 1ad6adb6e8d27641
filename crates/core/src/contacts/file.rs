//! Exports and imports contacts as CSV, one contact per row. Reads NDJSON too.

use nuncio_domain::{Channel, ContactId, Error, ErrorCode, Permission, Result, address};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use super::Contacts;
use super::command::{ContactChannelIn, CreateContact, ListContacts, UpdateContact};
use crate::base::csv::{quoted, records, unquoted};
use crate::base::{Caller, Core};

/// Maximum number of rows of an import.
pub const ROWS: usize = 5_000;
/// Header line of an export.
pub const HEAD: &str = "id,name,phone,email,whatsapp,telegram,instagram,voice,country,metadata\r\n";
/// The column of the name, and its other names.
const NAME: &str = "name";
const NAMES: [&str; 4] = [NAME, "displayname", "display name", "display_name"];
/// The column of all metadata as a JSON object.
const METADATA: &str = "metadata";
/// Exported columns that an import ignores in exported rows.
const ID: &str = "id";
const COUNTRY: &str = "country";
/// The column of numbers that are only called. Other programs write there whether somebody agreed to calls.
const VOICE: &str = "voice";

/// A row of a file: its line, and what it says or why it is rejected.
pub type FileRow<T> = (u64, std::result::Result<T, String>);

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
        let rows = read_csv(file, countries)?;
        if rows.len() > ROWS {
            return Err(Error::field("file", format!("has {} rows; must have at most {ROWS}", rows.len())));
        }
        let mut imported = ImportedPeople { rows: rows.len(), ..ImportedPeople::default() };
        for (line, row) in rows {
            let result = match row {
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
        let channels: Vec<_> = command.channels.iter().map(|channel| channel.channel).collect();
        let error = match self.create(caller, command, None).await {
            Ok(_) => return Ok(Ok(true)),
            Err(error) if error.code().status() < 500 => error,
            Err(error) => return Err(error),
        };
        let owner = error.details().get("contactId").and_then(Value::as_str).filter(|_| error.code() == ErrorCode::DuplicateIdentifier);
        let Some(owner) = owner else { return Ok(Err(in_columns(&error, &channels))) };
        match self.name(caller, owner, name).await {
            // Merged or erased just now.
            Err(error) if error.code().status() < 500 => Ok(Err(error.message().to_owned())),
            named => named.map(|()| Ok(false)),
        }
    }

    /// Names a contact that has no name.
    async fn name(&self, caller: &Caller, contact: &str, name: Option<String>) -> Result<()> {
        let known = self.get(caller, contact).await?;
        if let (None, Some(name)) = (known.display_name, name) {
            let update = UpdateContact { display_name: Some(name), default_channel: None, metadata: None };
            self.update(caller, contact, update).await?;
        }
        Ok(())
    }
}

/// Returns the message of an error, which names the columns of the file and not the fields of the API.
fn in_columns(error: &Error, channels: &[Channel]) -> String {
    let first = error.details().get("errors").and_then(|errors| errors.get(0));
    let Some((path, message)) = first.and_then(|first| Some((first["path"].as_str()?, first["message"].as_str()?))) else {
        return error.message().to_owned();
    };
    let item = path.strip_prefix("channels[").and_then(|rest| rest.split_once(']')?.0.parse::<usize>().ok());
    let column = match item.and_then(|item| channels.get(item)) {
        Some(Channel::Sms) => "phone",
        Some(channel) => channel.as_str(),
        None if path == "displayName" => NAME,
        None => path,
    };
    format!("{column} {message}")
}

impl ContactFile {
    /// Returns the next lines, once there is a read permit; `None` at the end.
    pub async fn next(&mut self) -> Result<Option<String>> {
        if self.through {
            return Ok(None);
        }
        let _permit = self.core.inner.reads.wait(self.caller.tenant).await;
        let asked = ListContacts { limit: Some(100), cursor: self.cursor.take(), ..ListContacts::default() };
        let (contacts, next) = self.core.contacts().list(&self.caller, &asked).await?;
        (self.through, self.cursor) = (next.is_none(), next);
        Ok(Some(contacts.iter().map(|contact| csv_line(&json!(contact))).collect()))
    }
}

/// Returns the row of a contact, given as its JSON, below [`HEAD`].
pub fn csv_line(contact: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let of = |wanted: Channel| {
        let channels = contact["channels"].as_array().into_iter().flatten().filter(|channel| channel["channel"] == wanted.as_str());
        channels.filter_map(|channel| channel["identifier"].as_str()).collect::<Vec<_>>().join("; ")
    };
    let name = if contact["displayName"].is_string() { &contact["displayName"] } else { &contact["profileName"] };
    let has_metadata = contact["metadata"].as_object().is_some_and(|metadata| !metadata.is_empty());
    let cells = [
        text(&contact["id"]),
        text(name),
        of(Channel::Sms),
        of(Channel::Email),
        of(Channel::Whatsapp),
        of(Channel::Telegram),
        of(Channel::Instagram),
        of(Channel::Voice),
        text(&contact["countryCode"]),
        if has_metadata { contact["metadata"].to_string() } else { String::new() },
    ];
    cells.map(|cell| quoted(&cell)).join(",") + "\r\n"
}

/// Reads contacts in the columns of an export; unknown columns become metadata. `countries` are those whose phone numbers may be in
/// national format. Fails if no column has addresses.
pub fn read_csv(file: &[u8], countries: &[String]) -> Result<Vec<FileRow<CreateContact>>> {
    let mut rows = records(file)?.into_iter();
    let head: Vec<String> = rows.next().map(|(_, cells)| cells.into_iter().map(known).collect()).unwrap_or_default();
    // Spreadsheets add columns without a name.
    let is_own = |column: &str| !column.is_empty() && channel_of(column).is_none();
    let is_twice = |(at, column): &(usize, &String)| is_own(column) && head[..*at].contains(column);
    if let Some((at, twice)) = head.iter().enumerate().find(is_twice) {
        return Err(Error::field("file", format!("has two columns for {twice:?} in its first line, the second at {}", at + 1)));
    }
    if !head.iter().any(|column| channel_of(column).is_some()) {
        let message = "has no column named phone, email, whatsapp, telegram or instagram in its first line";
        return Err(Error::field("file", message));
    }
    Ok(rows.map(|(line, cells)| (line, read(&head, &cells, countries))).collect())
}

/// Reads contacts as bodies of `POST /v1/contacts`, one per line.
pub fn read_ndjson(text: &str, countries: &[String]) -> Vec<FileRow<CreateContact>> {
    let typed_all = |mut contact: CreateContact| {
        for channel in &mut contact.channels {
            channel.identifier = typed(channel.channel, &channel.identifier, countries)?;
        }
        Ok(contact)
    };
    json_lines(text).into_iter().map(|(line, contact)| (line, contact.and_then(typed_all))).collect()
}

/// Reads a value per line; empty lines are skipped.
pub(super) fn json_lines<T: DeserializeOwned>(text: &str) -> Vec<FileRow<T>> {
    let lines = text.trim_start_matches('\u{feff}').lines().zip(1..).filter(|(line, _)| !line.trim().is_empty());
    lines.map(|(line, number)| (number, json_line(line))).collect()
}

fn json_line<T: DeserializeOwned>(line: &str) -> std::result::Result<T, String> {
    let shown = |error: serde_json::Error| error.to_string().replace(" at line 1 ", " at ");
    serde_json::from_str(line).map_err(|error| match serde_json::from_str::<Value>(line) {
        Err(error) => format!("is not JSON: {}", shown(error)),
        Ok(Value::Object(_)) => shown(error),
        Ok(_) => "is not a JSON object".to_owned(),
    })
}

/// Returns an identifier as a person typed it: a phone number in E.164 form, others unchanged.
pub(super) fn typed(channel: Channel, text: &str, countries: &[String]) -> std::result::Result<String, String> {
    match channel {
        Channel::Sms | Channel::SmsOneway | Channel::Whatsapp | Channel::Voice => {
            address::typed_phone(text, countries).map_err(|error| error.to_string())
        }
        Channel::Email | Channel::Telegram | Channel::Instagram => Ok(text.to_owned()),
    }
}

/// Returns the entries of a cell, which are separated by semicolons.
pub(super) fn entries(cell: &str) -> impl Iterator<Item = &str> {
    cell.split(';').map(str::trim).filter(|entry| !entry.is_empty())
}

/// Returns the channel whose identifiers the column contains.
pub(super) fn channel_of(column: &str) -> Option<Channel> {
    match column {
        "phone" | "phone_number" | "phonenumber" | "phone number" | "mobile" | "msisdn" | "tel" | "telephone" => Some(Channel::Sms),
        "email" | "e-mail" | "mail" => Some(Channel::Email),
        // In exports of other programs, a column named sms says whether somebody agreed to text messages.
        "whatsapp" | "telegram" | "instagram" => Channel::parse(column),
        _ => None,
    }
}

/// Returns the usual name of a column that is one of ours. Others become metadata, whose names keep their letters.
fn known(column: String) -> String {
    let small = column.to_lowercase();
    match small.as_str() {
        name if NAMES.contains(&name) => NAME.to_owned(),
        name if name == METADATA || channel_of(name).is_some() => small,
        _ => column,
    }
}

/// Returns the numbers of a cell of [`VOICE`], or `None` if it has no number.
fn voice(cell: &str, countries: &[String]) -> Option<std::result::Result<Vec<String>, String>> {
    let numbers: std::result::Result<Vec<String>, String> = entries(cell).map(|entry| typed(Channel::Voice, entry, countries)).collect();
    Some(numbers).filter(|numbers| numbers.is_ok() || cell.starts_with('+'))
}

fn read(head: &[String], cells: &[String], countries: &[String]) -> std::result::Result<CreateContact, String> {
    if head.len() != cells.len() {
        return Err(format!("has {} cells; the first line has {}", cells.len(), head.len()));
    }
    let mut command = CreateContact { channels: Vec::new(), display_name: None, metadata: None };
    let mut metadata = Map::new();
    let row = || head.iter().map(String::as_str).zip(cells.iter().map(|cell| unquoted(cell))).filter(|(_, cell)| !cell.is_empty());
    let is_exported = row().any(|(column, cell)| column == ID && cell.parse::<ContactId>().is_ok());
    let channel = |channel, identifier| ContactChannelIn { channel, identifier, country_code: None, label: None, is_primary: None };
    for (column, cell) in row() {
        if let Some(of_column) = channel_of(column) {
            for entry in entries(cell) {
                command.channels.push(channel(of_column, typed(of_column, entry, countries)?));
            }
            continue;
        }
        match (column, column.eq_ignore_ascii_case(VOICE).then(|| voice(cell, countries)).flatten()) {
            (_, Some(numbers)) => command.channels.extend(numbers?.into_iter().map(|number| channel(Channel::Voice, number))),
            (NAME, _) => command.display_name = Some(cell.to_owned()),
            (METADATA, _) => match serde_json::from_str(cell) {
                Ok(Value::Object(members)) => metadata.extend(members),
                _ => return Err(format!("metadata is {cell:?}; must be a JSON object")),
            },
            (ID | COUNTRY, _) if is_exported => {}
            (other, _) => drop(metadata.insert(other.to_owned(), cell.into())),
        }
    }
    command.metadata = (!metadata.is_empty()).then_some(metadata);
    if command.channels.is_empty() { Err("has no address".to_owned()) } else { Ok(command) }
}
