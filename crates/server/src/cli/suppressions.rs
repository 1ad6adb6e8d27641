//! `nuncio suppressions`.

use clap::Subcommand;
use nuncio_domain::Channel;
use reqwest::Method;
use serde_json::json;

use super::values::{count, names};
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
    },
    /// Send to a recipient again.
    Remove {
        /// The suppression's ID.
        id: String,
    },
}

impl SuppressionsAction {
    pub(super) async fn run(self, at: &Remote) -> anyhow::Result<()> {
        let json = at.json();
        match self {
            Self::List { to, limit } => lists::list(&at.worlds()?, &SUPPRESSIONS, &[("identifier", to.as_deref())], limit, json).await,
            Self::Add { to, channel } => {
                let mut body = json!({"identifier": to});
                if let Some(channel) = channel {
                    body["channel"] = channel.into();
                }
                lists::print(&at.world()?.call(Method::POST, "/v1/suppressions", Some(&body)).await?, json);
                Ok(())
            }
            Self::Remove { id } => lists::remove(&at.worlds()?, &format!("/v1/suppressions/{id}"), json).await,
        }
    }
}
