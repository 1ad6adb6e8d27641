//! `nuncio messages`.

use clap::Subcommand;
use nuncio_core::messages::ListMessages;
use nuncio_domain::Channel;
use nuncio_domain::message::{Direction, Status};
use serde_json::json;

use super::held::Decision;
use super::values::{count, joined, names, time};
use crate::client::life::{self, Outcome};
use crate::client::listen::{self, Which};
use crate::client::lists::{self, Act, MESSAGES, RECEIPTS};
use crate::client::profile::Remote;
use crate::client::say;

#[derive(Debug, Subcommand)]
pub(super) enum MessagesAction {
    /// List messages, newest first.
    List {
        /// Only those with this status.
        #[arg(long, value_delimiter = ',', value_parser = names(Status::ALL, Status::as_str))]
        status: Vec<String>,
        /// Only those held for a decision.
        #[arg(long)]
        held: bool,
        /// Only those on this channel.
        #[arg(long, value_delimiter = ',', value_parser = names(Channel::ALL, Channel::as_str))]
        channel: Vec<String>,
        /// Only those to this recipient.
        #[arg(long)]
        to: Option<String>,
        /// Only those from this number or address.
        #[arg(long)]
        from: Option<String>,
        /// Only those of this broadcast.
        #[arg(long, value_name = "ID")]
        broadcast: Option<String>,
        /// Only inbound or outbound ones.
        #[arg(long, value_parser = names(Direction::ALL, Direction::as_str))]
        direction: Option<String>,
        /// Only those created at or after this time, such as 2027-01-31T09:30:00Z.
        #[arg(long, value_name = "TIME", value_parser = time)]
        since: Option<String>,
        /// The most to list per environment.
        #[arg(long, default_value_t = 20, value_parser = count())]
        limit: usize,
    },
    /// Show a message: its route and why, its attempts, its cost.
    Show {
        /// The message.
        id: String,
    },
    /// Follow a message until its status is final, or all messages as they change.
    Follow {
        /// The message [default: all].
        id: Option<String>,
    },
    /// List the receipts of a message, as sent by the provider.
    Receipts {
        /// The message.
        id: String,
    },
    /// Send a reaction to a message.
    React {
        /// The message.
        id: String,
        /// An emoji; "" removes the reaction.
        emoji: String,
    },
    /// Cancel a message that was not sent yet.
    Cancel {
        /// The message.
        id: String,
    },
    /// Resolve a held message.
    Resolve {
        /// The message.
        id: String,
        /// What to do: resend it, or count it as sent or failed.
        #[arg(long)]
        action: Decision,
    },
}

impl MessagesAction {
    pub(super) async fn run(self, at: &Remote) -> anyhow::Result<Outcome> {
        let (worlds, json) = (at.worlds()?, at.json());
        match self {
            Self::List { status, held, channel, to, from, broadcast, direction, since, limit } => {
                let (status, channel) = (joined(&status), joined(&channel));
                let held = held.then(ListMessages::any_held_reason);
                let query = [
                    ("status", status.as_deref()),
                    ("heldReason", held.as_deref()),
                    ("channel", channel.as_deref()),
                    ("to", to.as_deref()),
                    ("from", from.as_deref()),
                    ("broadcastId", broadcast.as_deref()),
                    ("direction", direction.as_deref()),
                    ("since", since.as_deref()),
                ];
                lists::list(&worlds, &MESSAGES, &query, limit, json).await?;
            }
            Self::Show { id } if json => lists::show(&worlds, &MESSAGES, &id, true).await?,
            Self::Show { id } => say(life::describe(&lists::find(&worlds, &MESSAGES, &id).await?.1)),
            Self::Follow { id: Some(id) } => {
                let (world, message) = lists::find(&worlds, &MESSAGES, &id).await?;
                return life::watch(world, &message, std::time::Duration::MAX, json).await;
            }
            Self::Follow { id: None } => {
                let types = ["queued", "sending", "sent", "delivered", "read", "failed", "inbound"].map(|name| format!("message.{name}"));
                listen::follow(&worlds, &Which { types: Some(types.join(",")), resource: None }, json).await?;
            }
            Self::Receipts { id } => {
                let (world, _) = lists::find(&worlds, &MESSAGES, &id).await?;
                let mut answer = world.get(&format!("/v1/messages/{id}/receipts"), &[]).await?;
                let receipts = answer["items"].as_array_mut().map(std::mem::take).unwrap_or_default();
                lists::show_items(&RECEIPTS, receipts, false, json);
            }
            Self::React { id, emoji } => {
                let body = json!({"emoji": emoji});
                lists::act(&worlds, &MESSAGES, &id, Act::post("/reactions", Some(&body)), json).await?;
            }
            Self::Cancel { id } => lists::act(&worlds, &MESSAGES, &id, Act::post("/cancel", None), json).await?,
            Self::Resolve { id, action } => {
                let body = json!({"action": action.as_str()});
                lists::act(&worlds, &MESSAGES, &id, Act::post("/resolve", Some(&body)), json).await?;
            }
        }
        Ok(Outcome::Sent)
    }
}
