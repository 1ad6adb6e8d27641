//! Commands that work on an installation, through its data folder or its database, without an API key.

use anyhow::bail;
use clap::Subcommand;

use super::balance::{BalanceAction, StorageAction};
use super::connections::ConnectionsAction;
use super::database::DbAction;
use super::domains::DomainsAction;
use super::held::HeldAction;
use super::input::{Asked, InProject, On, PLACES, Place};
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
    Projects(On<Asked, ProjectsAction>),
    /// Manage API keys.
    #[command(after_help = PLACES)]
    Keys(On<Place, KeysAction>),
    /// Manage senders: the profiles that send messages.
    #[command(after_help = PLACES)]
    Senders(On<Place, SendersAction>),
    /// Manage connections: the provider accounts of senders.
    #[command(after_help = PLACES)]
    Connections(On<Place, ConnectionsAction>),
    /// Manage domains: whose inbound email belongs to which project.
    Domains(On<Asked, DomainsAction>),
    /// Manage the inventory of phone numbers that projects can acquire.
    Numbers(On<InProject, NumbersAction>),
    /// Resolve messages that wait for a decision, in all projects.
    Held(On<Asked, HeldAction>),
    /// Review escalated broadcasts.
    Reviews(On<InProject, ReviewsAction>),
    /// Manage prices. Without prices, nothing is charged.
    Prices(On<InProject, PricesAction>),
    /// Manage the balance of an environment.
    Balance(On<InProject, BalanceAction>),
    /// Limit the bytes of messages that an environment can store.
    Storage(On<InProject, StorageAction>),
    /// Manage people who can sign in to the dashboard.
    People(On<InProject, PeopleAction>),
    /// Migrate, copy or measure the database.
    Db(On<Asked, DbAction>),
    /// Report problems with this installation, and how to fix them.
    Doctor(Asked),
}

impl InstalledAction {
    /// Where the installation is, and the project.
    pub(super) fn at(&self) -> (&Asked, Option<&String>) {
        match self {
            Self::Keys(On { at: Place { here: at, .. }, .. })
            | Self::Senders(On { at: Place { here: at, .. }, .. })
            | Self::Connections(On { at: Place { here: at, .. }, .. })
            | Self::Numbers(On { at, .. })
            | Self::Reviews(On { at, .. })
            | Self::Prices(On { at, .. })
            | Self::Balance(On { at, .. })
            | Self::Storage(On { at, .. })
            | Self::People(On { at, .. }) => (&at.asked, at.project.as_ref()),
            Self::Projects(On { at, action }) => (at, action.project()),
            Self::Domains(On { at, action }) => (at, action.project()),
            Self::Held(On { at, .. }) | Self::Db(On { at, .. }) | Self::Doctor(at) => (at, None),
        }
    }

    /// The remote node that the command is about; `None` for the installation here.
    pub(super) fn remote(&self) -> anyhow::Result<Option<Access>> {
        match self {
            Self::Keys(On { at, .. }) | Self::Senders(On { at, .. }) | Self::Connections(On { at, .. }) => at.remote(),
            _ => Ok(None),
        }
    }

    /// Runs the command over the HTTP API of a remote node.
    pub(super) async fn run_remotely(self, access: Access) -> anyhow::Result<Outcome> {
        let json = self.at().0.json;
        match self {
            Self::Keys(on) => on.action.run(access, json).await?,
            Self::Senders(on) => on.action.run(access, json).await?,
            Self::Connections(on) => return on.action.run(access, json).await,
            _ => bail!("this command works only on an installation"),
        }
        Ok(Outcome::Sent)
    }

    /// What the command asks of the installation.
    pub(super) fn into_command(self) -> anyhow::Result<Command> {
        Ok(match self {
            Self::Projects(on) => on.action.into(),
            Self::Keys(on) => on.action.into(),
            Self::Senders(on) => on.action.into(),
            Self::Connections(on) => on.action.into_command()?,
            Self::Domains(on) => on.action.into(),
            Self::Numbers(on) => on.action.into_command()?,
            Self::Held(on) => on.action.into(),
            Self::Reviews(on) => on.action.into(),
            Self::Prices(on) => on.action.into_command()?,
            Self::Balance(on) => on.action.into(),
            Self::Storage(on) => on.action.into(),
            Self::People(on) => on.action.into(),
            Self::Db(On { action: DbAction::Size, .. }) => Command::DbSize,
            Self::Db(_) => bail!("this command works on the database itself"),
            Self::Doctor(_) => Command::Doctor,
        })
    }
}
