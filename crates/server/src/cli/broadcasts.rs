//! `nuncio broadcasts`: from a draft and a file to the last recipient.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use clap::Subcommand;
use nuncio_domain::Channel;
use nuncio_domain::broadcast::{BroadcastChannel, ContactStatus, Status};
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::values::{count, joined, names, pair, time};
use crate::client::broadcasts::{follow, import, results};
use crate::client::import::ImportFile;
use crate::client::life::{Outcome, watch};
use crate::client::lists::{self, Act, BROADCASTS, RECIPIENTS, print, unwrapped};
use crate::client::profile::Remote;
use crate::client::send::pairs;

/// How long a test message is followed.
const TEST_WAIT: Duration = Duration::from_secs(30);

#[derive(Debug, Subcommand)]
pub(super) enum BroadcastsAction {
    /// List broadcasts, newest first.
    List {
        /// Only those with this status.
        #[arg(long, value_delimiter = ',', value_parser = names(Status::ALL, Status::as_str))]
        status: Vec<String>,
        /// The most to list per environment.
        #[arg(long, default_value_t = 20, value_parser = count())]
        limit: usize,
    },
    /// Show a broadcast, with the findings of its review.
    Show(Which),
    /// Create a broadcast, as a draft.
    #[command(after_help = STEPS)]
    Create {
        /// Its name, which recipients do not see.
        #[arg(long)]
        name: String,
        /// How to reach the recipients; smart chooses for each.
        #[arg(long, default_value = "smart", value_parser = names(BroadcastChannel::ALL, BroadcastChannel::as_str))]
        channel: String,
        /// ID of the sender [default: the default sender].
        #[arg(long, value_name = "ID")]
        sender: Option<String>,
        #[command(flatten)]
        content: Content,
    },
    /// Edit a draft or a rejected broadcast. Omitted fields stay unchanged.
    Update {
        /// The broadcast.
        id: String,
        /// Its name, which recipients do not see.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        content: Content,
    },
    /// Add recipients from a file to a draft. Repeat the command to resume an interrupted import. The exit code is 1 if rows are rejected.
    Import {
        /// The broadcast.
        id: String,
        /// CSV with a header line, or NDJSON if its name ends with .ndjson, .jsonl or .json.
        file: PathBuf,
        /// The column of the recipient [default: the one called phone, email, recipient or similar].
        #[arg(long, value_name = "COLUMN")]
        recipient: Option<String>,
        /// Countries whose national numbers are accepted, such as ES,PT.
        #[arg(long, value_name = "COUNTRIES")]
        countries: Option<String>,
        /// Columns and the variables that they fill, such as nombre:name,notas: (a column without a variable is ignored).
        #[arg(long)]
        columns: Option<String>,
    },
    /// Add contacts to a draft that match all options given.
    Select {
        /// The broadcast.
        id: String,
        /// An entry of the contact's metadata, as name=value. Repeatable.
        #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
        metadata: Vec<String>,
        /// Countries of the contact, such as ES,PT.
        #[arg(long, value_delimiter = ',')]
        countries: Vec<String>,
        /// A channel that the contact has.
        #[arg(long, value_parser = names(Channel::ALL, Channel::as_str))]
        channel: Option<String>,
        /// A variable and the contact's field that fills it, as name=FIELD: name, country or metadata.KEY. Repeatable.
        #[arg(long = "var", value_name = "NAME=FIELD", value_parser = pair)]
        variables: Vec<String>,
    },
    /// List recipients, newest first.
    Recipients {
        /// The broadcast.
        id: String,
        /// Only those with this status.
        #[arg(long, value_delimiter = ',', value_parser = names(ContactStatus::ALL, ContactStatus::as_str))]
        status: Vec<String>,
        /// The most to list.
        #[arg(long, default_value_t = 20, value_parser = count())]
        limit: usize,
    },
    /// Remove a recipient from a draft.
    RemoveRecipient {
        /// The broadcast.
        id: String,
        /// The recipient's ID, which `recipients` lists.
        recipient: String,
    },
    /// Show what a broadcast will cost, how long it takes, and who cannot be reached.
    Estimate(Which),
    /// Show the message that one recipient gets.
    Preview {
        /// The broadcast.
        id: String,
        /// ID of the recipient [default: the first one].
        #[arg(long, value_name = "ID")]
        recipient: Option<String>,
    },
    /// Send the message of a draft to yourself, as a test.
    Test {
        /// The broadcast.
        id: String,
        /// Phone number, email address or chat ID.
        to: String,
    },
    /// Submit a broadcast for review, and send it if it passes.
    Send {
        /// The broadcast.
        id: String,
        /// When to send it, at most 365 days ahead, such as 2027-01-31T09:30:00Z [default: now].
        #[arg(long, value_name = "TIME", value_parser = time)]
        at: Option<String>,
        /// Follow it until every recipient is done.
        #[arg(long)]
        follow: bool,
    },
    /// Move a scheduled broadcast to another time.
    Schedule {
        /// The broadcast.
        id: String,
        /// When to send it, at most 365 days ahead, such as 2027-01-31T09:30:00Z.
        #[arg(value_name = "TIME")]
        at: String,
    },
    /// Follow a broadcast until every recipient is done.
    Follow(Which),
    /// Pause a broadcast that is being sent.
    Pause(Which),
    /// Resume a paused broadcast.
    Resume(Which),
    /// Cancel a broadcast. Recipients without a message will not get one.
    Cancel(Which),
    /// Review a rejected broadcast again, after an edit.
    RetryReview(Which),
    /// Ask the operator to review a rejected broadcast.
    Escalate(Which),
    /// Create a draft with the content of a broadcast, without its recipients.
    Clone(Which),
    /// Delete a draft.
    Delete(Which),
    /// Show results by channel, country, failure reason and link.
    Statistics(Which),
    /// Print the result of every recipient, as CSV or NDJSON.
    Results {
        /// The broadcast.
        id: String,
        /// The format [default: csv; ndjson with --json].
        #[arg(long, value_parser = ["csv", "ndjson"])]
        format: Option<String>,
    },
}

/// Which broadcast.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// The broadcast.
    id: String,
}

/// What a broadcast says.
#[derive(Debug, clap::Args)]
pub(super) struct Content {
    /// The text, with {{variables}}.
    #[arg(long)]
    text: Option<String>,
    /// The value of a variable for recipients that have none, as name=value. Repeatable.
    #[arg(long = "var", value_name = "NAME=VALUE")]
    variables: Vec<String>,
    /// Subject of emails.
    #[arg(long)]
    subject: Option<String>,
    /// A file with the HTML body of emails.
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
    /// Further fields of the request as a JSON object, such as '{"trackLinks": true}'.
    #[arg(long, value_name = "JSON")]
    fields: Option<String>,
}

impl Content {
    /// The fields of a request, with those of `more` that are not null.
    fn body(self, more: &Value) -> anyhow::Result<Value> {
        let html = self.html.map(|file| std::fs::read_to_string(&file).with_context(|| file.display().to_string())).transpose()?;
        let mut body: Map<String, Value> =
            self.fields.map_or_else(|| Ok(Map::new()), |text| serde_json::from_str(&text)).context("--fields must be a JSON object")?;
        let variables = (!self.variables.is_empty()).then(|| pairs(&self.variables, false)).transpose()?;
        let given = json!({"text": self.text, "emailSubject": self.subject, "emailHtmlBody": html, "variables": variables});
        let given = [&given, more].into_iter().filter_map(Value::as_object).flatten().filter(|(_, value)| !value.is_null());
        body.extend(given.map(|(name, value)| (name.clone(), value.clone())));
        Ok(body.into())
    }
}

const STEPS: &str = "Next: `nuncio broadcasts import ID people.csv`, then `estimate ID`, `test ID TO` and `send ID --follow`.

Example: nuncio broadcasts create --name spring --channel sms --text 'Hello {{name}}' --env live";

impl BroadcastsAction {
    pub(super) async fn run(self, at: &Remote) -> anyhow::Result<Outcome> {
        let (worlds, json) = (at.worlds()?, at.json());
        let act = async |id: &str, act: Act<'_>| lists::act(&worlds, &BROADCASTS, id, act, json).await;
        let post = async |id: &str, path: &str| act(id, Act::post(path, None)).await;
        match self {
            Self::List { status, limit } => {
                lists::list(&worlds, &BROADCASTS, &[("status", joined(&status).as_deref())], limit, json).await?
            }
            Self::Show(Which { id }) => lists::show(&worlds, &BROADCASTS, &id, json).await?,
            Self::Create { name, channel, sender, content } => {
                let body = content.body(&json!({"name": name, "channel": channel, "senderId": sender}))?;
                print(&at.world()?.call(Method::POST, "/v1/broadcasts", Some(&body)).await?, json);
            }
            Self::Update { id, name, content } => {
                let body = content.body(&json!({"name": name}))?;
                act(&id, Act { method: Method::PATCH, path: "", body: Some(&body) }).await?;
            }
            Self::Import { id, file, recipient, countries, columns } => {
                let (world, _) = lists::find(&worlds, &BROADCASTS, &id).await?;
                let query = [("recipient", recipient), ("countries", countries), ("columns", columns)];
                let query = query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
                return import(ImportFile { world: world.clone(), broadcast: id, file, query }, json).await;
            }
            Self::Select { id, metadata, countries, channel, variables } => {
                let body = json!({"metadata": pairs(&metadata, false)?, "countries": countries, "channel": channel,
                    "variables": pairs(&variables, false)?});
                act(&id, Act::post("/contacts/select", Some(&body))).await?;
            }
            Self::Recipients { id, status, limit } => {
                let (world, _) = lists::find(&worlds, &BROADCASTS, &id).await?;
                let at = format!("/v1/broadcasts/{id}/contacts");
                lists::list_at(std::slice::from_ref(world), &at, &RECIPIENTS, &[("status", joined(&status).as_deref())], limit, json)
                    .await?;
            }
            Self::RemoveRecipient { id, recipient } => {
                act(&id, Act { method: Method::DELETE, path: &format!("/contacts/{recipient}"), body: None }).await?;
            }
            Self::Estimate(Which { id }) => print(&of(at, &id, "/estimate").await?, json),
            Self::Statistics(Which { id }) => print(&of(at, &id, "/statistics").await?, json),
            Self::Preview { id, recipient } => {
                let body = json!({"contactId": recipient});
                act(&id, Act::post("/preview", recipient.is_some().then_some(&body))).await?;
            }
            Self::Test { id, to } => {
                let (world, _) = lists::find(&worlds, &BROADCASTS, &id).await?;
                let sent = world.call(Method::POST, &format!("/v1/broadcasts/{id}/test"), Some(&json!({"to": to}))).await?;
                return watch(world, &sent["message"], TEST_WAIT, json).await;
            }
            Self::Send { id, at: time, follow: followed } => {
                let body = json!({"scheduledAt": time});
                let body = time.is_some().then_some(&body);
                if followed {
                    let (world, _) = lists::find(&worlds, &BROADCASTS, &id).await?;
                    world.call(Method::POST, &format!("/v1/broadcasts/{id}/send"), body).await?;
                    return follow(world, &id, json).await;
                }
                act(&id, Act::post("/send", body)).await?;
            }
            Self::Schedule { id, at: time } => {
                let body = json!({"scheduledAt": time});
                act(&id, Act { method: Method::PATCH, path: "/schedule", body: Some(&body) }).await?;
            }
            Self::Follow(Which { id }) => {
                let (world, _) = lists::find(&worlds, &BROADCASTS, &id).await?;
                return follow(world, &id, json).await;
            }
            Self::Pause(Which { id }) => post(&id, "/pause").await?,
            Self::Resume(Which { id }) => post(&id, "/resume").await?,
            Self::Cancel(Which { id }) => post(&id, "/cancel").await?,
            Self::RetryReview(Which { id }) => post(&id, "/retry-review").await?,
            Self::Escalate(Which { id }) => post(&id, "/escalate").await?,
            Self::Clone(Which { id }) => post(&id, "/clone").await?,
            Self::Delete(Which { id }) => act(&id, Act::delete()).await?,
            Self::Results { id, format } => {
                let (world, _) = lists::find(&worlds, &BROADCASTS, &id).await?;
                results(world, &id, format.as_deref().unwrap_or(if json { "ndjson" } else { "csv" })).await?;
            }
        }
        Ok(Outcome::Sent)
    }
}

/// What a path below a broadcast returns.
async fn of(at: &Remote, id: &str, path: &str) -> anyhow::Result<Value> {
    let worlds = at.worlds()?;
    let (world, _) = lists::find(&worlds, &BROADCASTS, id).await?;
    Ok(unwrapped(world.get(&format!("/v1/broadcasts/{id}{path}"), &[]).await?))
}
