//! `nuncio contacts`.

use anyhow::{Context as _, bail};
use clap::Subcommand;
use nuncio_core::contacts::file;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::input::ImportOf;
use super::values::{channel_or, count, pair};
use crate::client::files::{self, Exported};
use crate::client::life::Outcome;
use crate::client::lists::{self, Act, CONTACTS, MESSAGES};
use crate::client::profile::Remote;
use crate::client::send::pairs;

#[derive(Debug, Subcommand)]
pub(super) enum ContactsAction {
    /// List contacts, newest first.
    List {
        /// Only the one with this phone number.
        #[arg(long)]
        phone: Option<String>,
        /// Only the one with this email address.
        #[arg(long)]
        email: Option<String>,
        /// Only those whose name contains this.
        #[arg(long)]
        name: Option<String>,
        /// The most to list per environment.
        #[arg(long, default_value_t = 20, value_parser = count())]
        limit: usize,
    },
    /// Show a contact.
    Show(Which),
    /// List the messages to and from a contact, newest first.
    Messages(Which),
    /// Create a contact.
    #[command(after_help = "Example: nuncio contacts create --name Ana --channel sms=+34600111222 --channel email=ana@example.org")]
    Create {
        /// How to reach them, as channel=identifier, such as sms=+34600111222. Repeatable.
        #[arg(long = "channel", value_name = "CHANNEL=ID", required = true)]
        channels: Vec<String>,
        /// Their name.
        #[arg(long)]
        name: Option<String>,
        /// Your own data, as name=value. Repeatable.
        #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
        metadata: Vec<String>,
    },
    /// Add contacts from a file. One that exists stays as it is, except that it gets a missing name. To resume, repeat the command.
    #[command(after_help = IMPORT)]
    Import(ImportOf),
    /// Print all contacts as CSV that `import` reads; with --json as NDJSON.
    #[command(after_help = "Example: nuncio contacts export --env live > contacts.csv")]
    Export,
    /// Change a contact. Omitted fields stay unchanged.
    Update {
        /// The contact.
        id: String,
        /// Their name; "" for none.
        #[arg(long)]
        name: Option<String>,
        /// The channel to prefer; none for no preference.
        #[arg(long, value_name = "CHANNEL", value_parser = channel_or("none"))]
        default_channel: Option<String>,
        /// Your own data, as name=value, replacing all of it. Repeatable.
        #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
        metadata: Vec<String>,
    },
    /// Add a channel to a contact.
    AddChannel {
        /// The contact.
        id: String,
        /// The channel, as channel=identifier, such as email=ana@example.org.
        #[arg(value_name = "CHANNEL=ID")]
        channel: String,
        /// Your name for it.
        #[arg(long)]
        label: Option<String>,
        /// Make it the primary one of its type.
        #[arg(long)]
        primary: bool,
    },
    /// Remove a channel from a contact.
    RemoveChannel {
        /// The contact.
        id: String,
        /// The channel's ID, which `show` lists.
        channel: String,
    },
    /// Make a channel the primary one of its type.
    Primary {
        /// The contact.
        id: String,
        /// The channel's ID, which `show` lists.
        channel: String,
    },
    /// Merge a contact into another.
    Merge {
        /// The contact that stays.
        id: String,
        /// The contact that is merged into it.
        other: String,
    },
    /// Dismiss the suggestion to merge a contact with another, permanently.
    KeepApart(Which),
    /// Erase a contact, with the messages to and from them.
    Delete(Which),
}

/// Which contact.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// The contact.
    id: String,
}

const IMPORT: &str = "\
Columns: name; phone, email, whatsapp, telegram, instagram, voice (several values in a cell are separated by semicolons); metadata (a JSON object). All \
others become metadata, except id and country of an export. NDJSON: a body of POST /v1/contacts per line.

Rejected rows are shown with line and reason, and all others are added; the exit code is then 1.

Example: nuncio contacts import contacts.csv --countries ES --env live";

/// An export of contacts.
const EXPORT: Exported = Exported { head: file::HEAD, line: file::csv_line, body, is_hidden: |_| false };

/// The body of a request that creates this contact.
fn body(contact: &Value) -> Value {
    let mut body = files::only(contact, &["displayName", "metadata"]);
    let channel = |channel| files::only(channel, &["channel", "identifier", "countryCode", "label", "isPrimary"]);
    body["channels"] = contact["channels"].as_array().into_iter().flatten().map(channel).collect();
    body
}

impl ContactsAction {
    pub(super) async fn run(self, at: &Remote) -> anyhow::Result<Outcome> {
        let (worlds, json) = (at.worlds()?, at.json());
        let act = async |id: &str, act: Act<'_>| lists::act(&worlds, &CONTACTS, id, act, json).await;
        match self {
            Self::List { phone, email, name, limit } => {
                let query = [("phoneNumber", phone.as_deref()), ("email", email.as_deref()), ("name", name.as_deref())];
                lists::list(&worlds, &CONTACTS, &query, limit, json).await?;
            }
            Self::Show(Which { id }) => lists::show(&worlds, &CONTACTS, &id, json).await?,
            Self::Messages(Which { id }) => lists::list_of(&worlds, &CONTACTS, &id, "/messages", &MESSAGES, json).await?,
            Self::Create { channels, name, metadata } => {
                let channels = channels.iter().map(|text| channel(text)).collect::<anyhow::Result<Vec<_>>>()?;
                let mut body = json!({"channels": channels, "metadata": pairs(&metadata, false)?});
                if let Some(name) = name {
                    body["displayName"] = name.into();
                }
                lists::print(&at.world()?.call(Method::POST, "/v1/contacts", Some(&body)).await?, json);
            }
            Self::Import(file) => {
                return files::import_contacts(&at.world()?, file.rows(file::read_csv, file::read_ndjson)?, json).await;
            }
            Self::Export => files::export(&at.world()?, CONTACTS.path, &EXPORT, json).await?,
            Self::Update { id, name, default_channel, metadata } => {
                let body = changes(name, default_channel, &metadata)?;
                act(&id, Act { method: Method::PATCH, path: "", body: Some(&body) }).await?;
            }
            Self::AddChannel { id, channel: text, label, primary } => {
                let mut body = channel(&text)?;
                if let Some(label) = label {
                    body["label"] = label.into();
                }
                if primary {
                    body["isPrimary"] = true.into();
                }
                act(&id, Act::post("/channels", Some(&body))).await?;
            }
            Self::RemoveChannel { id, channel } => {
                act(&id, Act { method: Method::DELETE, path: &format!("/channels/{channel}"), body: None }).await?;
            }
            Self::Primary { id, channel } => act(&id, Act::post(&format!("/channels/{channel}/primary"), None)).await?,
            Self::Merge { id, other } => act(&id, Act::post("/merge", Some(&json!({"sourceContactId": other})))).await?,
            Self::KeepApart(Which { id }) => act(&id, Act { method: Method::DELETE, path: "/merge-suggestion", body: None }).await?,
            Self::Delete(Which { id }) => act(&id, Act::delete()).await?,
        }
        Ok(Outcome::Sent)
    }
}

/// The body of a request that changes a contact.
fn changes(name: Option<String>, default_channel: Option<String>, metadata: &[String]) -> anyhow::Result<Value> {
    let mut body = Map::new();
    if let Some(name) = name {
        body.insert("displayName".to_owned(), name.into());
    }
    if let Some(channel) = default_channel {
        body.insert("defaultChannel".to_owned(), if channel == "none" { Value::Null } else { channel.into() });
    }
    if !metadata.is_empty() {
        body.insert("metadata".to_owned(), pairs(metadata, false)?.into());
    }
    if body.is_empty() {
        bail!("nothing to change: set --name, --default-channel or --metadata");
    }
    Ok(body.into())
}

fn channel(text: &str) -> anyhow::Result<Value> {
    let (channel, identifier) = text.split_once('=').with_context(|| format!("{text:?} must have the form channel=identifier"))?;
    Ok(json!({"channel": channel, "identifier": identifier}))
}
