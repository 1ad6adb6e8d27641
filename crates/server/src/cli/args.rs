//! Arguments, and what each command asks of the installation.

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Parser, Subcommand, ValueEnum};
use nuncio_core::numbers::ImportedNumber;
use nuncio_domain::lifecycle::Resolution;
use nuncio_domain::{Environment, address};
use serde_json::{Map, Value};

use super::input::{Decision, read};
use super::remote::RemoteAction;
use crate::admin::Command;

/// A self-hosted messaging server: one API for SMS, WhatsApp, Telegram, email, Instagram and voice.
#[derive(Debug, Parser)]
#[command(name = "nuncio", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(super) action: Action,
}

const EXIT_CODES: &str =
    "Exit codes: 0 done; 1 it did not work; 2 the command line is wrong; 3 the server cannot be reached; 4 still under way.";

/// Where an installation keeps its things.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Installation {
    /// Configuration file [default: nuncio.toml in the working folder, if there is one].
    #[arg(long, global = true, value_name = "FILE")]
    pub(super) config: Option<PathBuf>,
    /// Data folder [default: nuncio-data].
    #[arg(long, global = true, value_name = "DIR")]
    pub(super) data: Option<PathBuf>,
    /// PostgreSQL instead of the embedded database: postgres://user@host:5432/name.
    #[arg(long, global = true, value_name = "URL")]
    pub(super) database: Option<String>,
}

/// An installation, and where its server listens.
#[derive(Debug, clap::Args)]
pub(super) struct Node {
    #[command(flatten)]
    pub(super) at: Installation,
    /// Address and port to listen on [default: 127.0.0.1:8025].
    #[arg(long, global = true, value_name = "ADDR")]
    pub(super) listen: Option<String>,
}

/// An installation that is asked something. Its server may run or not.
#[derive(Debug, clap::Args)]
pub(super) struct Asked {
    #[command(flatten)]
    pub(super) at: Installation,
    /// Answer as JSON, for scripts.
    #[arg(long, global = true)]
    pub(super) json: bool,
}

/// A project of an installation.
#[derive(Debug, clap::Args)]
pub(super) struct InProject {
    #[command(flatten)]
    pub(super) asked: Asked,
    /// Identifier or name of the project [default: the oldest].
    #[arg(long, global = true, value_name = "PROJECT")]
    pub(super) project: Option<String>,
}

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Run the server.
    Serve {
        #[command(flatten)]
        node: Node,
    },
    /// Run the server, make keys, and send a first message in the sandbox.
    Quickstart {
        #[command(flatten)]
        node: Node,
        /// End when the message was delivered.
        #[arg(long)]
        exit: bool,
    },
    /// Ask a few questions, write nuncio.toml, and set and try a first connection.
    Init,
    #[command(flatten)]
    Remote(RemoteAction),
    #[command(flatten)]
    Installed(InstalledAction),
    /// The configuration.
    Config {
        #[command(flatten)]
        node: Node,
        #[command(subcommand)]
        action: ConfigAction,
    },
    /// Print a script that completes commands in a shell, such as: nuncio completions bash > /etc/bash_completion.d/nuncio
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write manual pages.
    Man {
        /// The folder to write them to.
        folder: PathBuf,
    },
}

/// What is asked of an installation through its data folder or its database, without a key.
#[derive(Debug, Subcommand)]
pub(super) enum InstalledAction {
    /// Projects: each with senders, keys, contacts and messages of its own.
    Projects {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: ProjectsAction,
    },
    /// API keys.
    Keys {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: KeysAction,
    },
    /// Sender profiles.
    Senders {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: SendersAction,
    },
    /// Provider accounts that carry a sender's channels.
    Connections {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: ConnectionsAction,
    },
    /// Domains whose email comes in for a project.
    Domains {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: DomainsAction,
    },
    /// The inventory of phone numbers.
    Numbers {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: NumbersAction,
    },
    /// Messages that wait for a person, in all projects.
    Held {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: HeldAction,
    },
    /// Broadcasts that wait for a person's review.
    Reviews {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: ReviewsAction,
    },
    /// What messages cost. Without prices nothing is charged.
    Prices {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: PricesAction,
    },
    /// The money of an environment.
    Balance {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: BalanceAction,
    },
    /// How many bytes of messages an environment may store.
    Storage {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: StorageAction,
    },
    /// People who may sign in to the dashboard.
    People {
        #[command(flatten)]
        at: InProject,
        #[command(subcommand)]
        action: PeopleAction,
    },
    /// The database.
    Db {
        #[command(flatten)]
        at: Asked,
        #[command(subcommand)]
        action: DbAction,
    },
    /// Say what is wrong with this installation, and what to do about it.
    Doctor {
        #[command(flatten)]
        at: Asked,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Env {
    Live,
    Test,
}

impl From<Env> for Environment {
    fn from(env: Env) -> Self {
        match env {
            Env::Live => Self::Live,
            Env::Test => Self::Test,
        }
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum ProjectsAction {
    /// Show all projects, the oldest first.
    List,
    /// Make a project.
    Create {
        /// Its name.
        name: String,
    },
    /// Give the project (see --project) another name.
    Rename {
        /// The new name.
        name: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum KeysAction {
    /// Make a key. It is shown this once.
    Create {
        /// What the key is for.
        #[arg(long)]
        name: String,
        /// The environment that it opens.
        #[arg(long)]
        env: Env,
        /// What it may do, separated by commas [default: everything].
        #[arg(long, value_delimiter = ',')]
        permissions: Vec<String>,
    },
    /// Show all keys.
    List {
        /// One environment alone [default: both].
        #[arg(long)]
        env: Option<Env>,
    },
    /// Revoke a key for good.
    Revoke {
        /// The key's id (key_…), not the key.
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum SendersAction {
    /// Show all senders.
    List {
        /// One environment alone [default: both].
        #[arg(long)]
        env: Option<Env>,
    },
    /// Make a sender.
    Create {
        #[arg(long, default_value = "live")]
        env: Env,
        /// Its name.
        #[arg(long)]
        name: String,
        /// Its phone number: with its country code, such as "+34 600 111 222", or as it is dialled in --country.
        #[arg(long, default_value = "")]
        phone_number: String,
        /// The country of the phone number, such as ES.
        #[arg(long, value_parser = country)]
        country: Option<String>,
        /// Send messages that name no sender by this one.
        #[arg(long)]
        default: bool,
    },
    /// Change a sender; what is left out stays.
    Update {
        /// The sender's id.
        id: String,
        #[arg(long, default_value = "live")]
        env: Env,
        #[arg(long)]
        name: Option<String>,
        #[arg(long)]
        phone_number: Option<String>,
        /// The country of the phone number, such as ES.
        #[arg(long, value_parser = country)]
        country: Option<String>,
        #[arg(long)]
        default: bool,
    },
    /// Make a sender like one of the project's other environment. Its provider accounts are not copied.
    Copy {
        /// The id of the sender to copy.
        id: String,
        /// The environment to make the new one in.
        #[arg(long)]
        to: Env,
    },
    /// Remove a sender that is not the default one and has nothing to send. Its messages stay readable.
    Delete {
        /// The sender's id.
        id: String,
        #[arg(long, default_value = "live")]
        env: Env,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ConnectionsAction {
    /// Show all connections, without their secrets.
    List {
        /// One environment alone [default: both].
        #[arg(long)]
        env: Option<Env>,
    },
    /// Set the provider account of a sender's channel, in place of the one it has.
    Set {
        #[arg(long, default_value = "live")]
        env: Env,
        /// Id or name of the sender [default: the default sender].
        #[arg(long)]
        sender: Option<String>,
        /// The channel.
        #[arg(long)]
        channel: String,
        /// The kind of provider, such as smtp.
        #[arg(long)]
        kind: String,
        /// A setting, as name=value. Repeatable.
        #[arg(long = "setting", value_name = "NAME=VALUE")]
        settings: Vec<String>,
        /// A secret, as name=value, or name=@FILE to read it from a file (@- for standard input). Repeatable.
        #[arg(long = "secret", value_name = "NAME=VALUE")]
        secrets: Vec<String>,
    },
    /// Remove the provider account of a sender's channel.
    Remove {
        #[arg(long, default_value = "live")]
        env: Env,
        #[arg(long)]
        sender: Option<String>,
        #[arg(long)]
        channel: String,
    },
    /// Vouch for the address of a connection that was set up through the API: mail for it comes in from now on.
    Verify {
        #[arg(long, default_value = "live")]
        env: Env,
        #[arg(long)]
        sender: Option<String>,
        #[arg(long, default_value = "email")]
        channel: String,
    },
    /// Reach for the provider and log in, without sending anything.
    Test {
        #[arg(long, default_value = "live")]
        env: Env,
        #[arg(long)]
        sender: Option<String>,
        #[arg(long)]
        channel: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum DomainsAction {
    /// Show all domains and their projects.
    List,
    /// Give a domain to the project (see --project): its live connections get the mail of the addresses that they name. Subdomains are not
    /// included.
    Add {
        /// The domain, such as example.org.
        domain: String,
    },
    /// Take a domain back. Mail for addresses that were claimed by it does not come in any more.
    Remove {
        /// The domain.
        domain: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum NumbersAction {
    /// Show the inventory, and who holds what of it.
    List {
        /// One environment alone [default: both].
        #[arg(long)]
        env: Option<Env>,
    },
    /// Enter the numbers of a file. Columns: phoneNumber, capabilities, monthlyPrice, monthlyCost, upfrontCost, isFreeNumber. Numbers
    /// that are there get the new capabilities and prices.
    Import {
        /// A CSV file with a header line.
        file: PathBuf,
        /// The country of numbers that are written without its code, such as ES.
        #[arg(long, value_parser = country)]
        country: Option<String>,
        #[arg(long, default_value = "live")]
        env: Env,
    },
    /// Enter one number.
    Add {
        /// With its country code, such as "+34 600 111 222", or as it is dialled in --country.
        phone_number: String,
        /// The country of the phone number, such as ES.
        #[arg(long, value_parser = country)]
        country: Option<String>,
        #[arg(long, default_value = "live")]
        env: Env,
        /// sms, voice, mms; several joined by commas.
        #[arg(long)]
        capabilities: String,
        /// What its holder pays a month, in US dollars.
        #[arg(long, default_value = "0")]
        monthly_price: String,
        /// What you pay a month.
        #[arg(long, default_value = "0")]
        monthly_cost: String,
        /// What its holder pays once.
        #[arg(long, default_value = "0")]
        upfront_cost: String,
        /// Its holder pays nothing.
        #[arg(long)]
        free: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum HeldAction {
    /// Show messages that wait for a person.
    List,
    /// Decide about held messages.
    Resolve {
        /// The message.
        id: Option<String>,
        /// All held messages.
        #[arg(long)]
        all: bool,
        /// What to do.
        #[arg(long)]
        action: Decision,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum PeopleAction {
    /// Show who may sign in.
    List,
    /// Show the link by which the first person begins.
    Link,
    /// Add a person. Prints their password once.
    Add {
        /// Their email address.
        email: String,
        /// viewer (looks), operator (sends and changes) or owner (also keys and people).
        #[arg(long, default_value = "operator")]
        role: String,
    },
    /// Give a person a new password, which is printed once, and end their sessions.
    Password {
        /// Their email address.
        email: String,
    },
    /// Switch the second factor of a person off who lost it.
    ResetFactor {
        /// Their email address.
        email: String,
    },
    /// Remove a person and end their sessions.
    Remove {
        /// Their email address.
        email: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ReviewsAction {
    /// Show broadcasts that were escalated, with what the automated review found.
    List,
    /// Let an escalated broadcast go out.
    Approve {
        /// The broadcast.
        id: String,
        /// Why; shown to whoever made it.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Refuse an escalated broadcast for good.
    Refuse {
        /// The broadcast.
        id: String,
        /// Why; shown to whoever made it.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Show the review policy of the project, after changing the options that are given.
    Policy {
        /// One environment alone [default: both].
        #[arg(long)]
        env: Option<Env>,
        /// Score from which on a broadcast passes, 0 to 1 [default: 0.6].
        #[arg(long)]
        threshold: Option<f64>,
        /// Words and phrases that no broadcast may contain, separated by commas; replaces the list, "" empties it.
        #[arg(long, value_name = "WORDS")]
        blocked_words: Option<String>,
        /// The project's own domains, whose links are not judged, separated by commas; replaces the list, "" empties it.
        #[arg(long, value_name = "DOMAINS")]
        allowed_domains: Option<String>,
    },
    /// Print every text that a person decided about, one JSON object a line, to train the review on.
    Export {
        /// One environment alone [default: both].
        #[arg(long)]
        env: Option<Env>,
    },
}

fn comma_separated(text: &str) -> Vec<String> {
    text.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}

#[derive(Debug, Subcommand)]
pub(super) enum PricesAction {
    /// Take over a file with the columns channel,country,unit,provider,fee,effective_from: US dollars a segment, message or minute.
    /// Lines of the same channel, country and date are replaced.
    Import {
        /// The file; - for standard input.
        file: String,
        /// For the project alone; such prices go before the general ones.
        #[arg(long)]
        own: bool,
        /// Forget all prices that the file does not hold.
        #[arg(long)]
        replace: bool,
    },
    /// Show all prices.
    List {
        /// Those of the project alone.
        #[arg(long)]
        own: bool,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum BalanceAction {
    /// Show what is available, reserved and spent.
    Show {
        #[arg(long, default_value = "live")]
        env: Env,
    },
    /// Put money in; below zero takes some out.
    Add {
        #[arg(long, default_value = "live")]
        env: Env,
        /// US dollars.
        #[arg(allow_negative_numbers = true)]
        amount: String,
        /// A name for this deposit, such as a receipt's number: the same one counts once.
        #[arg(long)]
        reference: Option<String>,
    },
    /// Whether no more can be spent than is available [default: spending is not limited].
    Limit {
        #[arg(long, default_value = "live")]
        env: Env,
        /// on or off.
        switch: Switch,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum StorageAction {
    /// Show the quota and what is stored.
    Show {
        /// One environment alone [default: both].
        #[arg(long)]
        env: Option<Env>,
    },
    /// Set the quota [default: off]. New messages beyond it are rejected with 507.
    Limit {
        #[arg(long, default_value = "live")]
        env: Env,
        /// Bytes, such as 500M or 20G, or off. Counts the stored requests of messages, attachments in base64 included.
        #[arg(value_parser = quota)]
        bytes: Quota,
    },
}

/// A number of bytes, or none for no quota.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Quota(Option<i64>);

fn quota(text: &str) -> Result<Quota, String> {
    if text == "off" {
        return Ok(Quota(None));
    }
    let (digits, unit) = text.split_at(text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len()));
    let shift = match unit {
        "" => 0,
        "K" | "KB" => 10,
        "M" | "MB" => 20,
        "G" | "GB" => 30,
        "T" | "TB" => 40,
        _ => return Err(format!("{text:?} is not a number of bytes such as 500M or 20G, or off")),
    };
    let bytes = digits.parse::<i64>().ok().and_then(|number| number.checked_mul(1 << shift)).filter(|bytes| *bytes > 0);
    bytes.map(|bytes| Quota(Some(bytes))).ok_or_else(|| format!("{text:?} is out of range; must be at least 1 byte"))
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigAction {
    /// Check file and environment; tell every problem.
    Check,
    /// Show the settings in force, without secrets.
    Show,
}

#[derive(Debug, Subcommand)]
pub(super) enum DbAction {
    /// Bring the schema up to date.
    Migrate,
    /// Show what takes the room in the database. The embedded one is read as a whole for it.
    Size,
    /// Bring the schema up to date and spread its tables over the nodes of a Citus cluster.
    Distribute,
}

impl InstalledAction {
    /// Where the installation is, and the project.
    pub(super) fn at(&self) -> (&Asked, Option<&String>) {
        match self {
            Self::Projects { at, .. }
            | Self::Keys { at, .. }
            | Self::Senders { at, .. }
            | Self::Connections { at, .. }
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

    /// What the command asks of the installation.
    pub(super) fn into_command(self) -> anyhow::Result<Command> {
        Ok(match self {
            Self::Projects { action: ProjectsAction::List, .. } => Command::ProjectsList,
            Self::Projects { action: ProjectsAction::Create { name }, .. } => Command::ProjectsCreate { name },
            Self::Projects { action: ProjectsAction::Rename { name }, .. } => Command::ProjectsRename { name },
            Self::Keys { action, .. } => action.into(),
            Self::Senders { action, .. } => action.into(),
            Self::Connections { action, .. } => action.into_command()?,
            Self::Domains { action: DomainsAction::List, .. } => Command::DomainsList,
            Self::Domains { action: DomainsAction::Add { domain }, .. } => Command::DomainsAdd { domain },
            Self::Domains { action: DomainsAction::Remove { domain }, .. } => Command::DomainsRemove { domain },
            Self::Numbers { action, .. } => action.into_command()?,
            Self::Held { action: HeldAction::List, .. } => Command::HeldList,
            Self::Held { action: HeldAction::Resolve { id, all, action }, .. } => {
                let action = match action {
                    Decision::Resend => Resolution::Resend,
                    Decision::Sent => Resolution::Sent,
                    Decision::Failed => Resolution::Failed,
                };
                Command::HeldResolve { id, all, action }
            }
            Self::Reviews { action, .. } => action.into(),
            Self::Prices { action: PricesAction::Import { file, own, replace }, .. } => {
                Command::PricesImport { csv: read(&file)?, own, replace }
            }
            Self::Prices { action: PricesAction::List { own }, .. } => Command::PricesList { own },
            Self::Balance { action, .. } => action.into(),
            Self::Storage { action: StorageAction::Show { env }, .. } => Command::StorageShow { env: env.map(Into::into) },
            Self::Storage { action: StorageAction::Limit { env, bytes: Quota(max_bytes) }, .. } => {
                Command::StorageLimit { env: env.into(), max_bytes }
            }
            Self::People { action, .. } => action.into(),
            Self::Db { action: DbAction::Size, .. } => Command::DbSize,
            Self::Db { .. } => bail!("this command works on the database itself"),
            Self::Doctor { .. } => Command::Doctor,
        })
    }
}

impl From<KeysAction> for Command {
    fn from(action: KeysAction) -> Self {
        match action {
            KeysAction::Create { name, env, permissions } => Self::KeysCreate { name, env: env.into(), permissions },
            KeysAction::List { env } => Self::KeysList { env: env.map(Into::into) },
            KeysAction::Revoke { id } => Self::KeysRevoke { id },
        }
    }
}

impl From<PeopleAction> for Command {
    fn from(action: PeopleAction) -> Self {
        match action {
            PeopleAction::List => Self::PeopleList,
            PeopleAction::Link => Self::PeopleLink,
            PeopleAction::Add { email, role } => Self::PeopleAdd { email, role },
            PeopleAction::Password { email } => Self::PeoplePassword { email },
            PeopleAction::ResetFactor { email } => Self::PeopleResetFactor { email },
            PeopleAction::Remove { email } => Self::PeopleRemove { email },
        }
    }
}

impl From<ReviewsAction> for Command {
    fn from(action: ReviewsAction) -> Self {
        match action {
            ReviewsAction::List => Self::ReviewsList,
            ReviewsAction::Approve { id, reason } => Self::ReviewsDecide { id, approve: true, reason },
            ReviewsAction::Refuse { id, reason } => Self::ReviewsDecide { id, approve: false, reason },
            ReviewsAction::Policy { env, threshold, blocked_words, allowed_domains } => Self::ReviewsPolicy {
                env: env.map(Into::into),
                threshold,
                blocked_words: blocked_words.as_deref().map(comma_separated),
                allowed_domains: allowed_domains.as_deref().map(comma_separated),
            },
            ReviewsAction::Export { env } => Self::ReviewsExport { env: env.map(Into::into) },
        }
    }
}

impl From<SendersAction> for Command {
    fn from(action: SendersAction) -> Self {
        match action {
            SendersAction::List { env } => Self::SendersList { env: env.map(Into::into) },
            SendersAction::Create { env, name, phone_number, country, default } => {
                Self::SendersCreate { env: env.into(), name, phone_number: typed(phone_number, country.as_ref()), default }
            }
            SendersAction::Update { id, env, name, phone_number, country, default } => {
                let phone_number = phone_number.map(|phone| typed(phone, country.as_ref()));
                Self::SendersUpdate { env: env.into(), id, name, phone_number, default }
            }
            SendersAction::Copy { id, to } => Self::SendersCopy { id, to: to.into() },
            SendersAction::Delete { id, env } => Self::SendersDelete { env: env.into(), id },
        }
    }
}

impl From<BalanceAction> for Command {
    fn from(action: BalanceAction) -> Self {
        match action {
            BalanceAction::Show { env } => Self::BalanceShow { env: env.into() },
            BalanceAction::Add { env, amount, reference } => Self::BalanceAdd { env: env.into(), amount, reference },
            BalanceAction::Limit { env, switch } => Self::BalanceLimit { env: env.into(), on: switch == Switch::On },
        }
    }
}

/// A phone number as somebody typed it, in E.164. One that cannot be read stays, and is refused with all that is wrong with the command.
fn typed(phone: String, country: Option<&String>) -> String {
    address::typed_phone(&phone, country.as_slice()).unwrap_or(phone)
}

/// A country that has a numbering plan.
fn country(text: &str) -> Result<String, String> {
    let code = text.to_uppercase();
    if address::is_country(&code) { Ok(code) } else { Err("is not an ISO 3166-1 alpha-2 code such as ES".to_owned()) }
}

impl ConnectionsAction {
    fn into_command(self) -> anyhow::Result<Command> {
        Ok(match self {
            Self::List { env } => Command::ConnectionsList { env: env.map(Into::into) },
            Self::Remove { env, sender, channel } => Command::ConnectionsRemove { env: env.into(), sender, channel },
            Self::Verify { env, sender, channel } => Command::ConnectionsVerify { env: env.into(), sender, channel },
            Self::Test { env, sender, channel } => Command::ConnectionsTest { env: env.into(), sender, channel },
            Self::Set { env, sender, channel, kind, settings, secrets } => {
                let (settings, secrets) = (pairs(&settings, false)?, pairs(&secrets, true)?);
                Command::ConnectionsSet { env: env.into(), sender, channel, kind, settings, secrets }
            }
        })
    }
}

impl NumbersAction {
    fn into_command(self) -> anyhow::Result<Command> {
        Ok(match self {
            Self::List { env } => Command::NumbersList { env: env.map(Into::into) },
            Self::Import { file, country, env } => {
                let mut numbers = crate::inventory::read(&std::fs::read(&file).with_context(|| file.display().to_string())?)?;
                for number in &mut numbers {
                    number.phone_number = typed(std::mem::take(&mut number.phone_number), country.as_ref());
                }
                Command::NumbersImport { env: env.into(), numbers }
            }
            Self::Add { phone_number, country, env, capabilities, monthly_price, monthly_cost, upfront_cost, free } => {
                let is_free_number = free.to_string();
                let phone_number = typed(phone_number, country.as_ref());
                let number = ImportedNumber { phone_number, capabilities, monthly_price, monthly_cost, upfront_cost, is_free_number };
                Command::NumbersAdd { env: env.into(), number }
            }
        })
    }
}

fn pairs(given: &[String], from_files: bool) -> anyhow::Result<Map<String, Value>> {
    let mut map = Map::new();
    for text in given {
        let (name, value) = text.split_once('=').context("a setting must be written name=value")?;
        let value = match value.strip_prefix('@').filter(|_| from_files) {
            Some("-") => std::io::read_to_string(std::io::stdin())?.trim_end().to_owned(),
            Some(path) => std::fs::read_to_string(path).with_context(|| path.to_owned())?.trim_end().to_owned(),
            None => value.to_owned(),
        };
        map.insert(name.to_owned(), Value::from(value));
    }
    Ok(map)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn command(line: &[&str]) -> Result<Command, String> {
        let args = Args::try_parse_from(["nuncio"].iter().chain(line)).map_err(|error| error.to_string())?;
        let Action::Installed(action) = args.action else { return Err("another kind of command".to_owned()) };
        action.into_command().map_err(|error| error.to_string())
    }

    #[test]
    fn phone_numbers_are_taken_as_people_write_them() {
        for (phone, country) in [("+34 600-111.222", None), ("0034 (600) 111222", None), ("600 111 222", Some("es"))] {
            let with_country = |mut line: Vec<&'static str>| {
                line.extend(country.into_iter().flat_map(|country| ["--country", country]));
                command(&line)
            };
            let made = with_country(vec!["senders", "create", "--name", "x", "--phone-number", phone]);
            assert!(matches!(&made, Ok(Command::SendersCreate { phone_number, .. }) if phone_number == "+34600111222"), "{made:?}");
            let changed = with_country(vec!["senders", "update", "snd_1", "--phone-number", phone]);
            assert!(matches!(&changed, Ok(Command::SendersUpdate { phone_number: Some(p), .. }) if p == "+34600111222"), "{changed:?}");
            let added = with_country(vec!["numbers", "add", phone, "--capabilities", "sms"]);
            assert!(matches!(&added, Ok(Command::NumbersAdd { number, .. }) if number.phone_number == "+34600111222"), "{added:?}");
            let mut file = tempfile::NamedTempFile::new().expect("a file");
            std::io::Write::write_all(&mut file, format!("phoneNumber,capabilities\n{phone},sms\n").as_bytes()).expect("written");
            let mut line = vec!["numbers", "import", file.path().to_str().expect("a path")];
            line.extend(country.into_iter().flat_map(|country| ["--country", country]));
            let read = command(&line);
            assert!(matches!(&read, Ok(Command::NumbersImport { numbers, .. }) if numbers[0].phone_number == "+34600111222"), "{read:?}");
        }
        assert!(command(&["numbers", "add", "600 111 222", "--capabilities", "sms", "--country", "XX"]).is_err());
        let unread = command(&["numbers", "add", "600 111 222", "--capabilities", "sms"]);
        assert!(
            matches!(unread, Ok(Command::NumbersAdd { number, .. }) if number.phone_number == "600 111 222"),
            "core says what is wrong"
        );
    }
}
