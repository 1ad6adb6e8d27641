//! What the command line can ask of an installation, running or not.
//!
//! The embedded database has one user. A command that finds the data folder locked sends itself through `admin.sock` to the
//! server, which runs the same function on its own core; otherwise it opens the database itself.

mod connections;
mod domains;
pub(crate) mod keys;
mod senders;
mod socket;
mod storage;

use nuncio_core::numbers::ImportedNumber;
use nuncio_core::projects::UpdateProject;
use nuncio_core::{Act, Core, PutConnection};
use nuncio_domain::broadcast::ReviewPolicy;
use nuncio_domain::config::{Project, Throttle};
use nuncio_domain::lifecycle::Resolution;
use nuncio_domain::{Environment, Error, ErrorCode, ProjectId, Redacted, Result, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

pub use crate::answer::CommandOutput;
use crate::answer::merged;
use crate::named::{Named, named};
use crate::table::Table;
use crate::{money, people};
pub use socket::{ask, listen};

/// One command.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// ID or name of the project; when absent the oldest, or all for commands about reviews.
    pub project: Option<String>,
    /// What to do.
    pub command: Command,
}

/// What to do.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Show all projects.
    ProjectsList,
    /// Make a project.
    ProjectsCreate { name: String },
    /// Give the project another name.
    ProjectsRename { name: String },
    /// Give the project a colour, or none.
    ProjectsColour { colour: Option<String> },
    /// Make an API key.
    KeysCreate { name: String, env: Environment, permissions: Vec<String>, expires_at: Option<Timestamp> },
    /// Show all keys of a world.
    KeysList { env: Option<Environment> },
    /// Revoke a key.
    KeysRevoke { id: String },
    /// Show all senders of a world.
    SendersList { env: Option<Environment> },
    /// Make a sender.
    SendersCreate { env: Environment, sender: Value },
    /// Change a sender.
    SendersUpdate { env: Environment, id: String, change: Value },
    /// Make a sender like one of the other world.
    SendersCopy { id: String, to: Environment },
    /// Remove a sender.
    SendersDelete { env: Environment, id: String },
    /// Show all connections of a world.
    ConnectionsList { env: Option<Environment> },
    /// Set the provider account of a channel.
    ConnectionsSet {
        env: Environment,
        sender: Option<String>,
        channel: String,
        kind: String,
        settings: Map<String, Value>,
        secrets: Map<String, Value>,
        throttle: NewThrottle,
    },
    /// Remove the provider account of a channel.
    ConnectionsRemove { env: Environment, sender: Option<String>, channel: String },
    /// Mark the inbound address of a connection as verified.
    ConnectionsVerify { env: Environment, sender: Option<String>, channel: String },
    /// Show the domains of all projects.
    DomainsList,
    /// Give a domain to the project.
    DomainsAdd { domain: String },
    /// Take a domain back.
    DomainsRemove { domain: String },
    /// Connect to the provider and log in.
    ConnectionsTest { env: Environment, sender: Option<String>, channel: String },
    /// Show the inventory of phone numbers of a world.
    NumbersList { env: Option<Environment> },
    /// Import numbers, each with its line in the file.
    NumbersImport { env: Environment, numbers: Vec<(u64, ImportedNumber)> },
    /// Add one number.
    NumbersAdd { env: Environment, number: ImportedNumber },
    /// Show messages that wait for a person.
    HeldList,
    /// Decide about held messages.
    HeldResolve { id: Option<String>, all: bool, action: Resolution },
    /// Import prices.
    PricesImport { csv: String, own: bool, replace: bool },
    /// Show the price list.
    PricesList { own: bool },
    /// Show what is on the accounts of a world.
    BalanceShow { env: Environment },
    /// Put money in, or take some out.
    BalanceAdd { env: Environment, amount: String, reference: Option<String> },
    /// Switch the limit to what is available on or off.
    BalanceLimit { env: Environment, on: bool },
    /// Show how much a world stores, and how much it may.
    StorageShow { env: Option<Environment> },
    /// Set how many bytes of messages a world may store; none for no limit.
    StorageLimit { env: Environment, max_bytes: Option<i64> },
    /// Show what takes the room in the database.
    DbSize,
    /// Show who may sign in to the dashboard.
    PeopleList,
    /// Show the link of the first person.
    PeopleLink,
    /// Add a person.
    PeopleAdd { email: String, role: String },
    /// Give a person a new password.
    PeoplePassword { email: String },
    /// Switch a person's second factor off.
    PeopleResetFactor { email: String },
    /// Change the role of a person.
    PeopleRole { email: String, role: String },
    /// Remove a person.
    PeopleRemove { email: String },
    /// Show broadcasts that wait for a person's review.
    ReviewsList,
    /// Decide about one of them.
    ReviewsDecide { id: String, approve: bool, reason: Option<String> },
    /// Show what is asked of the content of broadcasts, after changing what is given.
    ReviewsPolicy {
        env: Option<Environment>,
        threshold: Option<f64>,
        blocked_words: Option<Vec<String>>,
        allowed_domains: Option<Vec<String>>,
    },
    /// Show every text that a person decided about.
    ReviewsExport { env: Option<Environment> },
    /// Look for what is wrong.
    Doctor,
}

/// What happens to the rate limit of a connection that is set.
#[derive(Clone, Copy, PartialEq, Debug, Serialize, Deserialize)]
pub enum NewThrottle {
    /// Keep the current one.
    Keep,
    /// Remove it.
    None,
    /// Set this one.
    Set(Throttle),
}

impl Command {
    /// Whether it can be the first command of a new installation. The others need what an earlier one added.
    pub const fn begins(&self) -> bool {
        matches!(
            self,
            Self::ProjectsCreate { .. }
                | Self::ProjectsRename { .. }
                | Self::ProjectsColour { .. }
                | Self::KeysCreate { .. }
                | Self::SendersCreate { .. }
                | Self::ConnectionsSet { .. }
                | Self::DomainsAdd { .. }
                | Self::NumbersImport { .. }
                | Self::NumbersAdd { .. }
                | Self::PricesImport { .. }
                | Self::BalanceAdd { .. }
                | Self::BalanceLimit { .. }
                | Self::StorageLimit { .. }
                | Self::PeopleLink
                | Self::PeopleAdd { .. }
        )
    }
}

/// A list of the environment that was asked for, or of both.
macro_rules! listed {
    ($asked:expr, $each:ident => $list:expr) => {{
        let mut lists = Vec::new();
        for $each in $asked.map_or(vec![Environment::Live, Environment::Test], |asked| vec![asked]) {
            lists.push(($each, $list));
        }
        Ok(merged(lists))
    }};
}

/// Runs a command.
pub async fn run(core: &Core, request: Request) -> Result<CommandOutput> {
    Act::command_line(core.ids().clone()).run(Box::pin(carry_out(core, request))).await
}

async fn carry_out(core: &Core, request: Request) -> Result<CommandOutput> {
    let is_named = request.project.is_some();
    let project = project(core, request.project.as_deref()).await?;
    match request.command {
        Command::ProjectsList => projects_list(core).await,
        Command::ProjectsCreate { name } => {
            let made = core.projects().create(&name, None).await?;
            Ok(CommandOutput::new(json!({"id": made.id, "name": made.name}), format!("{}  {}", made.id, made.name)))
        }
        Command::ProjectsRename { name } => project_update(core, &project, UpdateProject { name: Some(name), colour: None }).await,
        Command::ProjectsColour { colour } => project_update(core, &project, UpdateProject { name: None, colour: Some(colour) }).await,
        Command::KeysCreate { name, env, permissions, expires_at } => {
            keys::create(core, &project, &name, env, &permissions, expires_at).await
        }
        Command::KeysList { env } => listed!(env, each => keys::list(core, &project, each).await?),
        Command::KeysRevoke { id } => keys::revoke(core, &project, &id).await,
        Command::SendersList { env } => listed!(env, each => senders::list(core, project.tenant(each)).await?),
        Command::SendersCreate { env, sender } => senders::create(core, &project, env, sender).await,
        Command::SendersUpdate { env, id, change } => senders::update(core, project.tenant(env), &id, change).await,
        Command::SendersCopy { id, to } => senders::copy(core, &project, &id, to).await,
        Command::SendersDelete { env, id } => senders::delete(core, project.tenant(env), &id).await,
        Command::ConnectionsList { env } => listed!(env, each => connections::list(core, project.tenant(each)).await?),
        Command::ConnectionsSet { env, sender, channel, kind, settings, secrets, throttle } => {
            let put = PutConnection { kind, settings, secrets: Redacted::new(secrets), throttle: None, expected_version: None };
            connections::set(core, project.tenant(env), (sender.as_deref(), &channel), put, throttle).await
        }
        Command::ConnectionsRemove { env, sender, channel } => {
            connections::remove(core, project.tenant(env), sender.as_deref(), &channel).await
        }
        Command::ConnectionsVerify { env, sender, channel } => {
            connections::verify(core, project.tenant(env), sender.as_deref(), &channel).await
        }
        Command::ConnectionsTest { env, sender, channel } => {
            connections::test(core, project.tenant(env), sender.as_deref(), &channel).await
        }
        Command::DomainsList => domains::list(core).await,
        Command::DomainsAdd { domain } => domains::add(core, &project, &domain).await,
        Command::DomainsRemove { domain } => domains::remove(core, &domain).await,
        Command::NumbersList { env } => listed!(env, each => crate::inventory::list(core, project.tenant(each)).await?),
        Command::NumbersImport { env, numbers } => crate::inventory::import(core, project.tenant(env), numbers).await,
        Command::NumbersAdd { env, number } => crate::inventory::add(core, project.tenant(env), &number).await,
        Command::HeldList => crate::doctor::held(core).await,
        Command::HeldResolve { id, all, action } => crate::doctor::resolve(core, id.as_deref(), all, action).await,
        Command::PricesImport { csv, own, replace } => money::prices_import(core, own.then_some(project.id), &csv, replace).await,
        Command::PricesList { own } => money::prices_list(core, &project, !own).await,
        Command::BalanceShow { env } => Ok(money::balance(&core.billing().balance(project.tenant(env)).await?)),
        Command::BalanceAdd { env, amount, reference } => {
            money::balance_add(core, project.tenant(env), &amount, reference.as_deref()).await
        }
        Command::BalanceLimit { env, on } => Ok(money::balance(&core.billing().limit_balance(project.tenant(env), on).await?)),
        Command::StorageShow { env } => listed!(env, each => storage::show(core.billing().storage(project.tenant(each)).await?)),
        Command::StorageLimit { env, max_bytes } => {
            Ok(merged(vec![(env, storage::show(core.billing().limit_storage(project.tenant(env), max_bytes).await?))]))
        }
        Command::DbSize => storage::tables(core).await,
        Command::PeopleList => people::list(core, &project).await,
        Command::PeopleLink => people::link(core).await,
        Command::PeopleAdd { email, role } => people::add(core, &project, &email, &role).await,
        Command::PeoplePassword { email } => people::new_password(core, &email).await,
        Command::PeopleResetFactor { email } => people::reset_factor(core, &email).await,
        Command::PeopleRole { email, role } => people::set_role(core, &project, &email, &role).await,
        Command::PeopleRemove { email } => people::remove(core, &project, &email).await,
        Command::ReviewsList => crate::reviews::list(core, &one_or_all(core, project, is_named).await?).await,
        Command::ReviewsDecide { id, approve, reason } => {
            crate::reviews::decide(core, &one_or_all(core, project, is_named).await?, &id, approve, reason.as_deref()).await
        }
        Command::ReviewsPolicy { env, threshold, blocked_words, allowed_domains } => {
            let change = |policy: ReviewPolicy| ReviewPolicy {
                threshold: threshold.unwrap_or(policy.threshold),
                blocked_words: blocked_words.clone().unwrap_or(policy.blocked_words),
                allowed_domains: allowed_domains.clone().unwrap_or(policy.allowed_domains),
            };
            listed!(env, each => crate::reviews::policy(core, project.tenant(each), change).await?)
        }
        Command::ReviewsExport { env } => crate::reviews::export(core, &project, env).await,
        Command::Doctor => crate::doctor::examine(core).await,
    }
}

/// The project that is asked for; the first one is made when there is none.
pub async fn project(core: &Core, wanted: Option<&str>) -> Result<Project> {
    let projects = core.projects().list().await?;
    match wanted {
        Some(text) => match named(projects, text, text.parse::<ProjectId>().is_ok(), |p| (p.id.to_string(), p.name.clone())) {
            Named::One(project) => Ok(project),
            Named::None => {
                Err(Error::new(ErrorCode::NotFound, format!("project: there is no {text:?}; `nuncio projects list` shows all projects")))
            }
            Named::Several(which) => Err(Error::field("project", which)),
        },
        None => match projects.into_iter().next() {
            Some(project) => Ok(project),
            None => core.projects().create("default", None).await,
        },
    }
}

/// The project that is named, otherwise all.
async fn one_or_all(core: &Core, project: Project, is_named: bool) -> Result<Vec<Project>> {
    if is_named { Ok(vec![project]) } else { core.projects().list().await }
}

async fn projects_list(core: &Core) -> Result<CommandOutput> {
    let projects = core.projects().list().await?;
    let json = projects.iter().map(project_shown).collect();
    let rows = projects.iter().map(|p| vec![p.id.to_string(), p.name.clone(), colour(p)]);
    Ok(CommandOutput::list(json, Table::new(&["ID", "NAME", "COLOUR"]).with(rows), "no projects"))
}

async fn project_update(core: &Core, project: &Project, command: UpdateProject) -> Result<CommandOutput> {
    let project = core.projects().update(project, command).await?;
    let text = format!("{}  {}  {}", project.id, project.name, colour(&project));
    Ok(CommandOutput::new(project_shown(&project), text.trim_end().to_owned()))
}

fn project_shown(project: &Project) -> Value {
    json!({"id": project.id, "name": project.name, "colour": project.colour.map(|colour| colour.to_string())})
}

fn colour(project: &Project) -> String {
    project.colour.map(|colour| colour.to_string()).unwrap_or_default()
}

/// An error with all its faults, for people at a terminal.
pub fn explain(error: &Error) -> String {
    let faults = error.details().get("errors").and_then(Value::as_array).cloned().unwrap_or_default();
    let faults: Vec<String> = faults
        .iter()
        .map(|f| format!("  {}: {}", f["path"].as_str().unwrap_or_default(), f["message"].as_str().unwrap_or_default()))
        .collect();
    let cause = std::error::Error::source(error).map_or_else(String::new, |source| format!(" ({source})"));
    if faults.is_empty() { format!("{error}{cause}") } else { faults.join("\n").trim_start().to_owned() }
}
