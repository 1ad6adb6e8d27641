//! Commands that work on an installation, through its data folder or its database, without an API key.

use anyhow::bail;
use clap::Subcommand;

use super::balance::{BalanceAction, StorageAction};
use super::connections::ConnectionsAction;
use super::database::DbAction;
use super::domains::DomainsAction;
use super::held::HeldAction;
use super::input::{Asked, InProject, PLACES, Place};
use super::keys::KeysAction;
use super::numbers::NumbersAction;
use super::people::PeopleAction;
use super::prices::PricesAction;
use super::projects::ProjectsAction;
use super::reviews::ReviewsAction;
use super::senders::SendersAction;
use crate::admin::Command;
use crate::client::life::Outcome;
use crate::client::profile::Access;

/// What is asked of an installation.
#[derive(Debug, Subcommand)]
pub(super) enum InstalledAction {
    /// Manage projects. Each has its own senders, keys, contacts and messages.
    Projects {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: ProjectsAction,
    },
    /// Manage API keys.
    #[command(after_help = PLACES)]
    Keys {
        #[command(flatten)]
        at: Place,
        #[command(subcommand)]
        action: KeysAction,
    },
    /// Manage senders.
    #[command(after_help = PLACES)]
    Senders {
        #[command(flatten)]
        at: Place,
        #[command(subcommand)]
        action: SendersAction,
    },
    /// Manage connections: the provider accounts of senders.
    #[command(after_help = PLACES)]
    Connections {
        #[command(flatten)]
        at: Place,
        #[command(subcommand)]
        action: ConnectionsAction,
    },
    /// Manage the domains whose inbound email belongs to a project.
    Domains {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: DomainsAction,
    },
    /// Manage the inventory of phone numbers.
    Numbers {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: NumbersAction,
    },
    /// Resolve messages that wait for a decision, in all projects.
    Held {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: HeldAction,
    },
    /// Review escalated broadcasts.
    Reviews {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: ReviewsAction,
    },
    /// Manage prices. Without prices, nothing is charged.
    Prices {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: PricesAction,
    },
    /// Manage the balance of an environment.
    Balance {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: BalanceAction,
    },
    /// Limit the bytes of messages that an environment can store.
    Storage {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: StorageAction,
    },
    /// Manage people who can sign in to the dashboard.
    People {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: PeopleAction,
    },
    /// Migrate, copy or measure the database.
    Db {
        #[command(flatten)]
        at: Asked,
        #[command(subcommand)]
        action: DbAction,
    },
    /// Report problems with this installation, and how to fix them.
    Doctor {
        #[command(flatten)]
        at: Asked,
    },
}

impl InstalledAction {
    /// Where the installation is, and the project.
    pub(super) fn at(&self) -> (&Asked, Option<&String>) {
        match self {
            Self::Keys { at: Place { here: at, .. }, .. }
            | Self::Senders { at: Place { here: at, .. }, .. }
            | Self::Connections { at: Place { here: at, .. }, .. }
            | Self::Projects { at, .. }
            | Self::Domains { at, .. }
            | Self::Numbers { at, .. }
            | Self::Held { at, .. }
            | Self::Reviews { at, .. }
            | Self::Prices { at, .. }
            | Self::Balance { at, .. }
            | Self::Storage { at, .. }
            | Self::People { at, .. } => (&at.asked, at.project.as_ref()),
            Self::Db { at, .. } | Self::Doctor { at } => (at, None),
        }
    }

    /// The node elsewhere that the command is about; `None` for the installation here.
    pub(super) fn elsewhere(&self) -> anyhow::Result<Option<Access>> {
        match self {
            Self::Keys { at, .. } | Self::Senders { at, .. } | Self::Connections { at, .. } => at.elsewhere(),
            _ => Ok(None),
        }
    }

    /// Runs the command over the HTTP API of a node elsewhere.
    pub(super) async fn run_elsewhere(self, access: Access) -> anyhow::Result<Outcome> {
        let json = self.at().0.json;
        match self {
            Self::Keys { action, .. } => action.run(access, json).await?,
            Self::Senders { action, .. } => action.run(access, json).await?,
            Self::Connections { action, .. } => return action.run(access, json).await,
            _ => bail!("this command works only on an installation"),
        }
        Ok(Outcome::Sent)
    }

    /// What the command asks of the installation.
    pub(super) fn into_command(self) -> anyhow::Result<Command> {
        Ok(match self {
            Self::Projects { action, .. } => action.into(),
            Self::Keys { action, .. } => action.into(),
            Self::Senders { action, .. } => action.into(),
            Self::Connections { action, .. } => action.into_command()?,
            Self::Domains { action, .. } => action.into(),
            Self::Numbers { action, .. } => action.into_command()?,
            Self::Held { action, .. } => action.into(),
            Self::Reviews { action, .. } => action.into(),
            Self::Prices { action, .. } => action.into_command()?,
            Self::Balance { action, .. } => action.into(),
            Self::Storage { action, .. } => action.into(),
            Self::People { action, .. } => action.into(),
            Self::Db { action: DbAction::Size, .. } => Command::DbSize,
            Self::Db { .. } => bail!("this command works on the database itself"),
            Self::Doctor { .. } => Command::Doctor,
        })
    }
}
