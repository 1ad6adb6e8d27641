//! `nuncio suppressions`.

use anyhow::bail;
use clap::Subcommand;
use nuncio_core::contacts::file::FileRow;
use nuncio_core::contacts::suppression_file as file;
use nuncio_core::suppressions::CreateSuppression;
use nuncio_domain::contact::SuppressionReason;
use nuncio_domain::{Channel, SuppressionId};
use reqwest::Method;

use super::input::ImportOf;
use super::values::{count, names};
use crate::client::files::{self, Exported};
use crate::client::life::Outcome;
use crate::client::lists::{self, SUPPRESSIONS};
use crate::client::profile::Remote;

#[derive(Debug, Subcommand)]
pub(super) enum SuppressionsAction {
    /// List suppressions, newest first.
    List {
        /// Only this recipient.
        #[arg(long)]
        to: Option<String>,
        /// The most to list per environment.
        #[arg(long, default_value_t = 20, value_parser = count())]
        limit: usize,
    },
    /// Stop sending to a recipient.
    Add {
        /// Phone number, email address, or chat ID (with --channel).
        to: String,
        /// The channel of a chat ID.
        #[arg(long, value_parser = names(Channel::ALL, Channel::as_str))]
        channel: Option<String>,
        #[command(flatten)]
        scope: Scope,
    },
    /// Stop sending to the recipients of a file. To resume, repeat the command.
    #[command(after_help = IMPORT)]
    Import {
        #[command(flatten)]
        file: ImportOf,
        #[command(flatten)]
        scope: Scope,
    },
    /// Print all suppressions as CSV that `import` reads; with --json as NDJSON. Those of erased contacts are left out.
    #[command(after_help = "Example: nuncio suppressions export --env live > suppressions.csv")]
    Export,
    /// Send to a recipient again.
    Remove {
        /// The suppression's ID, which `list` shows.
        id: String,
    },
}

/// Which messages a suppression stops, and why.
#[derive(Debug, clap::Args)]
pub(super) struct Scope {
    /// Why [default: manual, or opt_out with --sender].
    #[arg(long, value_parser = names(SuppressionReason::ALL, SuppressionReason::as_str))]
    reason: Option<String>,
    /// ID of the sender whose messages are stopped, for opt-outs [default: all senders].
    #[arg(long, value_name = "ID")]
    sender: Option<String>,
}

impl Scope {
    /// Completes a suppression that does not say this itself.
    fn complete(&self, suppression: CreateSuppression) -> CreateSuppression {
        let reason = suppression.reason.or_else(|| SuppressionReason::parse(self.reason.as_deref()?));
        CreateSuppression { reason, sender_id: suppression.sender_id.or_else(|| self.sender.clone()), ..suppression }
    }
}

const IMPORT: &str = "\
One recipient per line, or CSV with a header line. Columns: identifier, phone, email, whatsapp, telegram or instagram; channel (for chat IDs), reason \
and senderId. All others are ignored. NDJSON: a body of POST /v1/suppressions per line.

Rejected rows are shown with line and reason, and all others are added; the exit code is then 1.

Example: nuncio suppressions import optouts.csv --reason opt_out --env live";

/// An export of suppressions.
const EXPORT: Exported = Exported {
    head: file::HEAD,
    line: file::csv_line,
    body: |suppression| files::only(suppression, &["identifier", "channel", "reason", "senderId"]),
    is_hidden: |suppression| suppression["identifier"] == "",
};

impl SuppressionsAction {
    pub(super) async fn run(self, at: &Remote) -> anyhow::Result<Outcome> {
        let json = at.json();
        match self {
            Self::List { to, limit } => lists::list(&at.worlds()?, &SUPPRESSIONS, &[("identifier", to.as_deref())], limit, json).await?,
            Self::Add { to, channel, scope } => {
                let channel = channel.as_deref().and_then(Channel::parse);
                let body = scope.complete(CreateSuppression { identifier: to, channel, sender_id: None, reason: None });
                lists::print(&at.world()?.call(Method::POST, "/v1/suppressions", Some(&serde_json::to_value(body)?)).await?, json);
            }
            Self::Import { file, scope } => {
                let rows = file.rows(file::read_csv, file::read_ndjson)?;
                let complete = |(line, row): FileRow<_>| (line, row.map(|suppression| scope.complete(suppression)));
                return files::import_suppressions(&at.world()?, rows.into_iter().map(complete).collect(), json).await;
            }
            Self::Export => files::export(&at.world()?, SUPPRESSIONS.path, &EXPORT, json).await?,
            Self::Remove { id } if id.parse::<SuppressionId>().is_err() => {
                bail!("{id:?} is not the ID of a suppression; give its ID (sup_…), which `nuncio suppressions list` shows")
            }
            Self::Remove { id } => lists::remove(&at.worlds()?, &format!("/v1/suppressions/{id}"), json).await?,
        }
        Ok(Outcome::Sent)
    }
}
