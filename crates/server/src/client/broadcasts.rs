//! `nuncio broadcasts`: from a draft and a file to the last recipient.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::Context as _;
use indicatif::{ProgressBar, ProgressStyle};
use nuncio_domain::line;
use reqwest::Method;
use serde_json::{Value, json};

use super::import::{ImportFile, summary};
use super::life::{Outcome, watch};
use super::lists::{Act, BROADCASTS, act, find, list, print, show, unwrapped};
use super::profile::Remote;
use super::send::pairs;
use super::{say, say_json};

/// Between two looks at the progress of a broadcast.
const LOOK: Duration = Duration::from_secs(1);
/// How long a test is watched.
const TEST_WAIT: Duration = Duration::from_secs(30);

/// What to do with broadcasts.
#[derive(Debug, clap::Subcommand)]
pub(crate) enum BroadcastsAction {
    /// Show the newest broadcasts.
    List {
        /// Those with this status alone.
        #[arg(long)]
        status: Option<String>,
        /// At most so many of each environment.
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Show one broadcast, with what its review found.
    Show {
        /// The broadcast.
        id: String,
    },
    /// Make a draft.
    Create {
        /// A name for people.
        #[arg(long)]
        name: String,
        /// How the recipients are reached; smart chooses for each.
        #[arg(long, default_value = "smart")]
        channel: String,
        /// The text, with {{variables}}.
        #[arg(long)]
        text: Option<String>,
        /// A value for recipients that have none of their own, as name=value. Repeatable.
        #[arg(long = "var", value_name = "NAME=VALUE")]
        variables: Vec<String>,
        /// Subject of emails.
        #[arg(long)]
        subject: Option<String>,
        /// A file with the HTML body of emails.
        #[arg(long, value_name = "FILE")]
        html: Option<PathBuf>,
        /// The id of the sender [default: the default sender].
        #[arg(long, value_name = "ID")]
        sender: Option<String>,
        /// Further fields of the request as a JSON object.
        #[arg(long, value_name = "JSON")]
        fields: Option<String>,
    },
    /// Add recipients from a file to a draft. A file that was cut off goes on when it is sent again.
    Import {
        /// The broadcast.
        id: String,
        /// CSV with a head line, or NDJSON if it is called .ndjson, .jsonl or .json.
        file: PathBuf,
        /// The column of the recipient [default: the one that is called phone, email, recipient or alike].
        #[arg(long, value_name = "COLUMN")]
        recipient: Option<String>,
        /// Countries whose national numbers are taken, such as ES,PT.
        #[arg(long)]
        countries: Option<String>,
        /// Columns and the variables that they hold, such as nombre:name,notas: (a column without a variable is left out).
        #[arg(long)]
        columns: Option<String>,
    },
    /// Show what it would cost, how long it would take, and who cannot be sent to.
    Estimate {
        /// The broadcast.
        id: String,
    },
    /// Show what one recipient would get.
    Preview {
        /// The broadcast.
        id: String,
        /// The id of the recipient [default: the first one].
        #[arg(long, value_name = "ID")]
        recipient: Option<String>,
    },
    /// Send it to one recipient of your own, to look at.
    Test {
        /// The broadcast.
        id: String,
        /// Whom to send it to.
        to: String,
    },
    /// Have it reviewed, and send it if it passes.
    Send {
        /// The broadcast.
        id: String,
        /// When to send it, such as 2027-01-31T09:30:00Z [default: at once].
        #[arg(long, value_name = "TIME")]
        at: Option<String>,
        /// Watch it until every recipient is done.
        #[arg(long)]
        follow: bool,
    },
    /// Watch a broadcast until every recipient is done.
    Follow {
        /// The broadcast.
        id: String,
    },
    /// Hold it back for a while.
    Pause {
        /// The broadcast.
        id: String,
    },
    /// Go on with it.
    Resume {
        /// The broadcast.
        id: String,
    },
    /// End it; who was not sent to is not.
    Cancel {
        /// The broadcast.
        id: String,
    },
    /// Make a new draft like it.
    Clone {
        /// The broadcast.
        id: String,
    },
    /// Show how it went, by channel, country, reason of failure and link.
    Statistics {
        /// The broadcast.
        id: String,
    },
    /// Print what became of every recipient, as CSV or NDJSON.
    Results {
        /// The broadcast.
        id: String,
        /// csv or ndjson.
        #[arg(long, default_value = "csv")]
        format: String,
    },
}

/// Runs a command about broadcasts.
pub(crate) async fn run(at: &Remote, action: BroadcastsAction) -> anyhow::Result<Outcome> {
    use BroadcastsAction as A;
    let (worlds, json) = (at.worlds()?, at.json());
    match action {
        A::List { status, limit } => list(&worlds, &BROADCASTS, &[("status", status.as_deref())], limit, json).await?,
        A::Show { id } => show(&worlds, &BROADCASTS, &id, json).await?,
        A::Create { name, channel, text, variables, subject, html, sender, fields } => {
            let html = html.map(|file| std::fs::read_to_string(&file).with_context(|| file.display().to_string())).transpose()?;
            let mut body: Value =
                fields.map_or_else(|| Ok(json!({})), |text| serde_json::from_str(&text)).context("--fields must be a JSON object")?;
            let given = json!({"name": name, "channel": channel, "text": text, "emailSubject": subject, "emailHtmlBody": html, "senderId": sender,
                "variables": (!variables.is_empty()).then(|| pairs(&variables)).transpose()?});
            for (name, value) in given.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null()) {
                body[name] = value.clone();
            }
            print(&at.world()?.call(Method::POST, "/v1/broadcasts", Some(&body)).await?, json);
        }
        A::Import { id, file, recipient, countries, columns } => {
            let (world, _) = find(&worlds, &BROADCASTS, &id).await?;
            let query = [("recipient", recipient), ("countries", countries), ("columns", columns)];
            let query = query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
            import(ImportFile { world: world.clone(), broadcast: id, file, query }, json).await?;
        }
        A::Estimate { id } => print(&of(at, &id, "/estimate").await?, json),
        A::Statistics { id } => print(&of(at, &id, "/statistics").await?, json),
        A::Preview { id, recipient } => {
            let body = json!({"contactId": recipient});
            act(&worlds, &BROADCASTS, &id, Act::post("/preview", recipient.is_some().then_some(&body)), json).await?;
        }
        A::Test { id, to } => {
            let (world, _) = find(&worlds, &BROADCASTS, &id).await?;
            let sent = world.call(Method::POST, &format!("/v1/broadcasts/{id}/test"), Some(&json!({"to": to}))).await?;
            return watch(world, &sent["message"], TEST_WAIT, json).await;
        }
        A::Send { id, at: time, follow: watched } => {
            let body = json!({"scheduledAt": time});
            act(&worlds, &BROADCASTS, &id, Act::post("/send", time.is_some().then_some(&body)), json && !watched).await?;
            if watched {
                return follow(at, &id).await;
            }
        }
        A::Follow { id } => return follow(at, &id).await,
        A::Pause { id } => act(&worlds, &BROADCASTS, &id, Act::post("/pause", None), json).await?,
        A::Resume { id } => act(&worlds, &BROADCASTS, &id, Act::post("/resume", None), json).await?,
        A::Cancel { id } => act(&worlds, &BROADCASTS, &id, Act::post("/cancel", None), json).await?,
        A::Clone { id } => act(&worlds, &BROADCASTS, &id, Act::post("/clone", None), json).await?,
        A::Results { id, format } => results(at, &id, &format).await?,
    }
    Ok(Outcome::Sent)
}

/// What a path below a broadcast answers.
async fn of(at: &Remote, id: &str, path: &str) -> anyhow::Result<Value> {
    let worlds = at.worlds()?;
    let (world, _) = find(&worlds, &BROADCASTS, id).await?;
    Ok(unwrapped(world.get(&format!("/v1/broadcasts/{id}{path}"), &[]).await?))
}

async fn import(import: ImportFile, json: bool) -> anyhow::Result<()> {
    let length = std::fs::metadata(&import.file).with_context(|| import.file.display().to_string())?.len();
    let style = ProgressStyle::with_template("{bar:40} {percent}% {bytes}/{total_bytes} {eta}")?;
    // It is drawn on a terminal only.
    let bar = ProgressBar::new(length).with_style(style);
    let shown = bar.clone();
    let answer = import.send(move |sent| shown.set_position(sent)).await;
    bar.finish_and_clear();
    let answer = answer?;
    if json {
        say_json(&answer)
    } else {
        say(line::escaped(&summary(&answer)))
    };
    Ok(())
}

/// Watches a broadcast until it ends or a person has to decide about it.
async fn follow(at: &Remote, id: &str) -> anyhow::Result<Outcome> {
    let bar = ProgressBar::new(1).with_style(ProgressStyle::with_template("{bar:40} {pos}/{len} {msg}")?);
    loop {
        let progress = of(at, id, "/progress").await?;
        let number = |name: &str| progress[name].as_u64().unwrap_or_default();
        let status = progress["status"].as_str().unwrap_or_default().to_owned();
        let left = number("pending") + number("sending");
        bar.set_length(number("total"));
        bar.set_position(number("total").saturating_sub(left));
        bar.set_message(format!(
            "{status}, {} failed, {:.0} a second",
            number("failed"),
            progress["recipientsPerSecond"].as_f64().unwrap_or_default()
        ));
        let ended = match status.as_str() {
            "completed" => Some(Outcome::Sent),
            "cancelled" | "failed" | "rejected" | "rejected_final" => Some(Outcome::Failed),
            "paused" | "escalated" => Some(Outcome::UnderWay),
            _ => None,
        };
        if let Some(outcome) = ended {
            bar.finish_and_clear();
            print(&progress, at.json());
            return Ok(outcome);
        }
        tokio::time::sleep(LOOK).await;
    }
}

async fn results(at: &Remote, id: &str, format: &str) -> anyhow::Result<()> {
    let worlds = at.worlds()?;
    let (world, _) = find(&worlds, &BROADCASTS, id).await?;
    let request = world.request(Method::GET, world.url(&format!("/v1/broadcasts/{id}/results"), &[("format", format)]));
    world.copy_to_output(request).await
}
