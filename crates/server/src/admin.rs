//! Runs administrative commands on an installation, whether its server is running or not.
//!
//! SQLite allows one process. A command that finds the data folder locked is sent through `admin.sock` to the server, which runs the same
//! function on its core; otherwise the command opens the database itself.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use nuncio_core::numbers::ImportedNumber;
use nuncio_core::senders::{CreateSender, SenderView, UpdateSender};
use nuncio_core::{Act, Core, PutConnection};
use nuncio_domain::broadcast::ReviewPolicy;
use nuncio_domain::config::{Connection, Project, Sender, TenantConfig};
use nuncio_domain::lifecycle::Resolution;
use nuncio_domain::{Channel, Environment, Error, Permissions, Redacted, Result, SenderId};
use nuncio_store::Storage;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use crate::table::Table;
use crate::{money, people};

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Request {
    /// Id or name of the project; `None` means the oldest.
    pub project: Option<String>,
    pub command: Command,
}

/// An administrative command.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Show all projects.
    ProjectsList,
    /// Make a project.
    ProjectsCreate {
        name: String,
    },
    /// Give the project another name.
    ProjectsRename {
        name: String,
    },
    /// Make an API key.
    KeysCreate {
        name: String,
        env: Environment,
        permissions: Vec<String>,
    },
    /// Show all keys of an environment.
    KeysList {
        env: Option<Environment>,
    },
    KeysRevoke {
        id: String,
    },
    /// Show all senders of an environment.
    SendersList {
        env: Option<Environment>,
    },
    /// Make a sender.
    SendersCreate {
        env: Environment,
        name: String,
        phone_number: String,
        default: bool,
    },
    /// Change a sender.
    SendersUpdate {
        env: Environment,
        id: String,
        name: Option<String>,
        phone_number: Option<String>,
        default: bool,
    },
    /// Make a sender like one of the other environment.
    SendersCopy {
        id: String,
        to: Environment,
    },
    /// Remove a sender.
    SendersDelete {
        env: Environment,
        id: String,
    },
    /// Show all connections of an environment.
    ConnectionsList {
        env: Option<Environment>,
    },
    /// Set the provider account of a channel.
    ConnectionsSet {
        env: Environment,
        sender: Option<String>,
        channel: String,
        kind: String,
        settings: Map<String, Value>,
        secrets: Map<String, Value>,
    },
    /// Remove the provider account of a channel.
    ConnectionsRemove {
        env: Environment,
        sender: Option<String>,
        channel: String,
    },
    /// Vouch for the inbound address of a connection.
    ConnectionsVerify {
        env: Environment,
        sender: Option<String>,
        channel: String,
    },
    /// Show the domains of all projects.
    DomainsList,
    /// Give a domain to the project.
    DomainsAdd {
        domain: String,
    },
    /// Take a domain back.
    DomainsRemove {
        domain: String,
    },
    /// Reach for the provider and log in.
    ConnectionsTest {
        env: Environment,
        sender: Option<String>,
        channel: String,
    },
    /// Show the inventory of phone numbers of an environment.
    NumbersList {
        env: Option<Environment>,
    },
    /// Enter many numbers.
    NumbersImport {
        env: Environment,
        numbers: Vec<ImportedNumber>,
    },
    /// Enter one number.
    NumbersAdd {
        env: Environment,
        number: ImportedNumber,
    },
    /// Show held messages.
    HeldList,
    /// Decide about held messages.
    HeldResolve {
        id: Option<String>,
        all: bool,
        action: Resolution,
    },
    /// Import a price file.
    PricesImport {
        csv: String,
        own: bool,
        replace: bool,
    },
    /// Show the price list.
    PricesList {
        own: bool,
    },
    /// Show what is on the accounts of an environment.
    BalanceShow {
        env: Environment,
    },
    /// Add or withdraw funds.
    BalanceAdd {
        env: Environment,
        amount: String,
        reference: Option<String>,
    },
    /// Limit spending to the available balance, or remove the limit.
    BalanceLimit {
        env: Environment,
        on: bool,
    },
    /// Show how much an environment stores, and how much it may.
    StorageShow {
        env: Option<Environment>,
    },
    /// Set how many bytes of messages an environment may store; none for no limit.
    StorageLimit {
        env: Environment,
        max_bytes: Option<i64>,
    },
    /// Show the disk usage of the database.
    DbSize,
    /// Show who may sign in to the dashboard.
    PeopleList,
    /// Show the link of the first person.
    PeopleLink,
    /// Add a person.
    PeopleAdd {
        email: String,
        role: String,
    },
    /// Give a person a new password.
    PeoplePassword {
        email: String,
    },
    /// Switch a user's second factor off.
    PeopleResetFactor {
        email: String,
    },
    /// Remove a person.
    PeopleRemove {
        email: String,
    },
    /// Show broadcasts that wait for a human review.
    ReviewsList,
    /// Decide about one of them.
    ReviewsDecide {
        id: String,
        approve: bool,
        reason: Option<String>,
    },
    /// Change the given parts of the review policy, and show it.
    ReviewsPolicy {
        env: Option<Environment>,
        threshold: Option<f64>,
        blocked_words: Option<Vec<String>>,
        allowed_domains: Option<Vec<String>>,
    },
    /// Show every text that a person has reviewed.
    ReviewsExport {
        env: Option<Environment>,
    },
    /// Diagnose problems.
    Doctor,
}

/// Output of a command, for programs and for people.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct CommandOutput {
    /// For programs.
    pub json: Value,
    /// For people, if there is no table.
    pub text: String,
    /// A list, for people.
    #[serde(default)]
    pub table: Option<Table>,
    /// Whether the command found a problem.
    #[serde(default)]
    pub bad: bool,
}

impl CommandOutput {
    pub(crate) fn new(json: Value, text: impl Into<String>) -> Self {
        Self { json, text: text.into(), table: None, bad: false }
    }

    /// Makes a list; `none` is shown if it is empty.
    pub(crate) fn list(json: Value, table: Table, none: &str) -> Self {
        let table = (!table.rows.is_empty()).then_some(table);
        Self { table, ..Self::new(json, none) }
    }
}

/// Lists the requested environment, or both.
macro_rules! listed {
    ($asked:expr, $each:ident => $list:expr) => {{
        let mut lists = Vec::new();
        for $each in $asked.map_or(vec![Environment::Live, Environment::Test], |asked| vec![asked]) {
            lists.push(($each, $list));
        }
        Ok(merged(lists))
    }};
}

/// Merges the lists of both environments. Each JSON item names its environment; tables do only if there are several.
fn merged(lists: Vec<(Environment, CommandOutput)>) -> CommandOutput {
    let several = lists.len() > 1;
    let (mut items, mut tables, mut texts) = (Vec::new(), Vec::new(), Vec::new());
    for (environment, answer) in lists {
        let world = environment.as_str();
        if let Value::Array(found) = answer.json {
            items.extend(found.into_iter().map(|mut item| {
                item["environment"] = world.into();
                item
            }));
        }
        match answer.table {
            Some(table) if several => tables.push(table.under("WORLD", world)),
            Some(table) => tables.push(table),
            None if several && !items.is_empty() => texts.push(format!("{world}: {}", answer.text)),
            None => texts.push(answer.text),
        }
    }
    let table = tables.into_iter().reduce(|all, next| all.with(next.rows));
    texts.dedup();
    CommandOutput { table, ..CommandOutput::new(items.into(), texts.join("\n")) }
}

pub async fn run(core: &Core, request: Request) -> Result<CommandOutput> {
    Act::command_line(core.ids().clone()).run(Box::pin(carry_out(core, request))).await
}

async fn carry_out(core: &Core, request: Request) -> Result<CommandOutput> {
    let project = project(core, request.project.as_deref()).await?;
    match request.command {
        Command::ProjectsList => projects_list(core).await,
        Command::ProjectsCreate { name } => {
            let made = core.projects().create(&name).await?;
            Ok(CommandOutput::new(json!({"id": made.id, "name": made.name}), format!("{}  {}", made.id, made.name)))
        }
        Command::ProjectsRename { name } => {
            core.projects().rename(&project, &name).await?;
            Ok(CommandOutput::new(json!({"id": project.id, "name": name}), format!("{}  {name}", project.id)))
        }
        Command::KeysCreate { name, env, permissions } => keys_create(core, &project, &name, env, &permissions).await,
        Command::KeysList { env } => listed!(env, each => keys_list(core, &project, each).await?),
        Command::KeysRevoke { id } => keys_revoke(core, &project, &id).await,
        Command::SendersList { env } => listed!(env, each => senders(&*core.tenant_config(project.tenant(each)).await?)),
        Command::SendersCreate { env, name, phone_number, default } => {
            let command = CreateSender { name, phone_number: Some(phone_number), set_as_default: Some(default), ..CreateSender::default() };
            one_sender(&core.senders().make(project.tenant(env), env, command).await?)
        }
        Command::SendersUpdate { env, id, name, phone_number, default } => {
            let change = UpdateSender {
                name,
                phone_number: phone_number.map(Some),
                set_as_default: default.then_some(true),
                ..UpdateSender::default()
            };
            one_sender(&core.senders().change(project.tenant(env), sender_id(&id)?, change).await?)
        }
        Command::SendersCopy { id, to } => one_sender(&core.senders().copy(&project, sender_id(&id)?, to).await?),
        Command::SendersDelete { env, id } => {
            core.senders().remove(project.tenant(env), sender_id(&id)?).await?;
            Ok(CommandOutput::new(json!({}), "removed; its messages stay readable"))
        }
        Command::ConnectionsList { env } => listed!(env, each => connections(&*core.tenant_config(project.tenant(each)).await?)),
        Command::ConnectionsSet { env, sender, channel, kind, settings, secrets } => {
            let world = core.tenant_config(project.tenant(env)).await?;
            let (sender, channel) = (find_sender(&world, sender.as_deref())?, read_channel(&channel)?);
            let throttle = world.connection(sender.id, channel).and_then(|connection| connection.throttle);
            let put = PutConnection { kind, settings, secrets: Redacted::new(secrets), throttle };
            let (connection, _) = core.senders().put_connection(world.tenant, sender.id, channel, put, true).await?;
            let text = format!(
                "{} now carries {channel} of sender {} ({}); try it with `nuncio connections test --channel {channel}`",
                connection.kind, sender.name, sender.id
            );
            Ok(CommandOutput::new(show(&connection), text))
        }
        Command::ConnectionsRemove { env, sender, channel } => {
            let world = core.tenant_config(project.tenant(env)).await?;
            core.senders().delete_connection(world.tenant, find_sender(&world, sender.as_deref())?.id, read_channel(&channel)?).await?;
            Ok(CommandOutput::new(json!({}), "removed"))
        }
        Command::ConnectionsVerify { env, sender, channel } => {
            let world = core.tenant_config(project.tenant(env)).await?;
            let sender = find_sender(&world, sender.as_deref())?.id;
            let inbound = core.senders().vouch(world.tenant, sender, read_channel(&channel)?).await?;
            let text = format!("email to {} is accepted", inbound.address);
            Ok(CommandOutput::new(json!(inbound), text))
        }
        Command::DomainsList => domains_list(core).await,
        Command::DomainsAdd { domain } => {
            let domain = read_domain(&domain)?;
            core.senders().assign_mail_domain(&project, &domain).await?;
            let text = format!("email to addresses of {domain} is accepted for project {} if a live connection uses them", project.name);
            Ok(CommandOutput::new(json!({"domain": domain, "projectId": project.id}), text))
        }
        Command::DomainsRemove { domain } => {
            core.senders().remove_mail_domain(&read_domain(&domain)?).await?;
            Ok(CommandOutput::new(json!({}), "removed"))
        }
        Command::ConnectionsTest { env, sender, channel } => connections_test(core, project.tenant(env), sender.as_deref(), &channel).await,
        Command::NumbersList { env } => listed!(env, each => crate::inventory::list(core, project.tenant(each)).await?),
        Command::NumbersImport { env, numbers } => crate::inventory::import(core, project.tenant(env), &numbers).await,
        Command::NumbersAdd { env, number } => crate::inventory::add(core, project.tenant(env), &number).await,
        Command::HeldList => crate::doctor::held(core).await,
        Command::HeldResolve { id, all, action } => crate::doctor::resolve(core, &project, id.as_deref(), all, action).await,
        Command::PricesImport { csv, own, replace } => money::prices_import(core, own.then_some(project.id), &csv, replace).await,
        Command::PricesList { own } => money::prices_list(core, own.then_some(project.id)).await,
        Command::BalanceShow { env } => Ok(money::balance(&core.billing().balance(project.tenant(env)).await?)),
        Command::BalanceAdd { env, amount, reference } => {
            money::balance_add(core, project.tenant(env), &amount, reference.as_deref()).await
        }
        Command::BalanceLimit { env, on } => Ok(money::balance(&core.billing().limit_balance(project.tenant(env), on).await?)),
        Command::StorageShow { env } => listed!(env, each => storage(core.billing().storage(project.tenant(each)).await?)),
        Command::StorageLimit { env, max_bytes } => {
            Ok(merged(vec![(env, storage(core.billing().limit_storage(project.tenant(env), max_bytes).await?))]))
        }
        Command::DbSize => db_size(core).await,
        Command::PeopleList => people::list(core, &project).await,
        Command::PeopleLink => people::link(core).await,
        Command::PeopleAdd { email, role } => people::add(core, &project, &email, &role).await,
        Command::PeoplePassword { email } => people::new_password(core, &email).await,
        Command::PeopleResetFactor { email } => people::reset_factor(core, &email).await,
        Command::PeopleRemove { email } => people::remove(core, &email).await,
        Command::ReviewsList => crate::reviews::list(core, &project).await,
        Command::ReviewsDecide { id, approve, reason } => crate::reviews::decide(core, &project, &id, approve, reason.as_deref()).await,
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

/// Returns the requested project; creates the first one if there is none.
pub async fn project(core: &Core, wanted: Option<&str>) -> Result<Project> {
    let projects = core.projects().list().await?;
    match wanted {
        Some(text) => projects.into_iter().find(|p| p.name == text || p.id.to_string() == text).ok_or_else(|| Error::not_found("project")),
        None => match projects.into_iter().next() {
            Some(project) => Ok(project),
            None => core.projects().create("default").await,
        },
    }
}

async fn projects_list(core: &Core) -> Result<CommandOutput> {
    let projects = core.projects().list().await?;
    let json = projects.iter().map(|p| json!({"id": p.id, "name": p.name})).collect();
    let rows = projects.iter().map(|p| vec![p.id.to_string(), p.name.clone()]);
    Ok(CommandOutput::list(json, Table::new(&["ID", "NAME"]).with(rows), "no projects"))
}

async fn keys_create(core: &Core, project: &Project, name: &str, env: Environment, permissions: &[String]) -> Result<CommandOutput> {
    let permissions = Permissions::parse(permissions.iter().map(String::as_str)).map_err(|e| Error::field("permissions", e.to_string()))?;
    let new = core.keys().create(project.tenant(env), env, name, permissions).await?;
    let key = new.secret.expose();
    let json = json!({"id": new.key.id, "key": key, "name": name, "environment": env, "permissions": permissions});
    Ok(CommandOutput::new(json, format!("{key}\n\nThis is the only time that the key is shown. Its id is {}.", new.key.id)))
}

async fn keys_list(core: &Core, project: &Project, env: Environment) -> Result<CommandOutput> {
    let keys = core.keys().list(project.tenant(env)).await?;
    let json = keys.iter().map(|k| json!({"id": k.id, "name": k.name, "permissions": k.permissions, "revokedAt": k.revoked_at})).collect();
    let rows = keys.iter().map(|k| {
        let revoked = k.revoked_at.map_or_else(String::new, |at| at.to_string());
        vec![k.id.to_string(), k.name.clone(), k.permissions.names().join(","), revoked]
    });
    Ok(CommandOutput::list(
        json,
        Table::new(&["ID", "NAME", "PERMISSIONS", "REVOKED"]).with(rows),
        "no keys; make one with `nuncio keys create`",
    ))
}

async fn keys_revoke(core: &Core, project: &Project, id: &str) -> Result<CommandOutput> {
    let id = id.parse().map_err(|_| Error::not_found("API key"))?;
    for env in [Environment::Live, Environment::Test] {
        match core.keys().revoke(project.tenant(env), id).await {
            Ok(revoked) => {
                // Each node caches keys for up to a second.
                tokio::time::sleep(Duration::from_secs(1)).await;
                let text = if revoked { "revoked; every node rejects the key from now on" } else { "was already revoked" };
                return Ok(CommandOutput::new(json!({"id": id, "revoked": true}), text));
            }
            Err(error) if error.code() == nuncio_domain::ErrorCode::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::not_found("API key"))
}

fn senders(world: &TenantConfig) -> CommandOutput {
    let json = world.senders.iter().map(sender_json).collect();
    let row = |s: &Sender| vec![s.id.to_string(), s.name.clone(), s.phone_number.to_string(), yes(s.is_default)];
    let table = Table::new(&["ID", "NAME", "PHONE NUMBER", "DEFAULT"]).with(world.senders.iter().map(row));
    CommandOutput::list(json, table, "no senders; make one with `nuncio senders create`")
}

fn yes(what: bool) -> String {
    if what { "yes".to_owned() } else { String::new() }
}

fn one_sender(sender: &SenderView) -> Result<CommandOutput> {
    let json = serde_json::to_value(sender).map_err(Error::internal)?;
    let mut text = format!("{}  {}", sender.id, sender.name);
    if let Some(secret) = sender.webhook.as_ref().and_then(|webhook| webhook.secret.as_ref()) {
        text.push_str(&format!("\n\nIts webhook is signed with {}. This is the only time that the secret is shown.", secret.expose()));
    }
    Ok(CommandOutput::new(json, text))
}

/// Shows the storage of an environment as a list of one.
fn storage(storage: Option<Storage>) -> CommandOutput {
    let text = match storage {
        Some(Storage { max_bytes, stored_bytes }) => format!("{stored_bytes} of {max_bytes} bytes stored"),
        None => "no quota; nothing is counted (set one with `nuncio storage limit`)".to_owned(),
    };
    let (max, stored) = storage.map(|s| (s.max_bytes, s.stored_bytes)).unzip();
    CommandOutput::new(json!([{"maxBytes": max, "storedBytes": stored}]), text)
}

/// Shows the size of each table, largest first, and the total.
async fn db_size(core: &Core) -> Result<CommandOutput> {
    let tables = core.store().read().await?.table_sizes().await?;
    let all: i64 = tables.iter().map(|table| table.bytes).sum();
    let share = |bytes: i64| if all > 0 { bytes * 100 / all } else { 0 };
    let row = |(name, bytes): (&str, i64)| vec![name.to_owned(), format!("{:.1} MB", bytes as f64 / 1e6), format!("{} %", share(bytes))];
    let rows = tables.iter().map(|t| (t.table.as_str(), t.bytes)).chain([("all", all)]).map(row);
    let json: Vec<_> = tables.iter().map(|t| json!({"table": t.table, "bytes": t.bytes})).collect();
    Ok(CommandOutput::list(json!({"tables": json, "bytes": all}), Table::new(&["TABLE", "SIZE", "SHARE"]).with(rows), ""))
}

fn sender_id(text: &str) -> Result<SenderId> {
    text.parse().map_err(|_| Error::not_found("sender"))
}

fn sender_json(sender: &Sender) -> Value {
    json!({"id": sender.id, "name": sender.name, "phoneNumber": sender.phone_number, "isDefault": sender.is_default, "updatedAt": sender.updated_at})
}

fn connections(world: &TenantConfig) -> CommandOutput {
    let json = world.connections.iter().map(|connection| show(connection)).collect();
    let row = |c: &Connection| vec![c.id.to_string(), c.channel.to_string(), c.kind.to_string(), c.sender.to_string()];
    let table = Table::new(&["ID", "CHANNEL", "KIND", "SENDER"]).with(world.connections.iter().map(|connection| row(connection)));
    CommandOutput::list(json, table, "no connections; set one with `nuncio connections set`")
}

fn show(connection: &Connection) -> Value {
    json!({"id": connection.id, "senderId": connection.sender, "channel": connection.channel, "kind": connection.kind,
        "settings": connection.settings, "updatedAt": connection.updated_at})
}

async fn connections_test(core: &Core, tenant: nuncio_domain::TenantId, sender: Option<&str>, channel: &str) -> Result<CommandOutput> {
    let world = core.tenant_config(tenant).await?;
    let (sender, channel) = (find_sender(&world, sender)?, read_channel(channel)?);
    let connection = world.connection(sender.id, channel).ok_or_else(|| Error::not_found("connection"))?;
    Ok(match core.senders().check_connection(tenant, connection).await? {
        Ok(text) => CommandOutput::new(json!({"ok": true, "message": text}), format!("ok: {text}")),
        Err(text) => CommandOutput { bad: true, ..CommandOutput::new(json!({"ok": false, "message": text}), format!("failed: {text}")) },
    })
}

async fn domains_list(core: &Core) -> Result<CommandOutput> {
    let (domains, projects) = (core.senders().mail_domains().await?, core.projects().list().await?);
    let json = domains.iter().map(|d| json!({"domain": d.domain, "projectId": d.project, "createdAt": d.created_at})).collect();
    let name = |id| projects.iter().find(|project| project.id == id).map_or("", |project| project.name.as_str());
    let rows = domains.iter().map(|d| vec![d.domain.to_string(), d.project.to_string(), name(d.project).to_owned()]);
    let table = Table::new(&["DOMAIN", "PROJECT", "NAME"]).with(rows);
    Ok(CommandOutput::list(json, table, "no domains; give one to a project with `nuncio domains add`"))
}

/// Parses a domain; returns it in lower case and ASCII.
fn read_domain(text: &str) -> Result<String> {
    let address = nuncio_channel_smtp::mailbox_address(&format!("x@{text}")).filter(|_| text.contains('.') && !text.contains('@'));
    let domain = address.and_then(|address| address.strip_prefix("x@").map(str::to_owned));
    domain.ok_or_else(|| Error::field("domain", format!("is {text:?}; must be a domain such as example.org")))
}

fn find_sender<'a>(world: &'a TenantConfig, wanted: Option<&str>) -> Result<&'a Sender> {
    let found = match wanted {
        None => world.default_sender(),
        Some(text) => world.senders.iter().find(|s| s.name == text || s.id.to_string() == text),
    };
    found.ok_or_else(|| Error::not_found("sender"))
}

fn read_channel(text: &str) -> Result<Channel> {
    let known = Channel::ALL.iter().map(|c| c.as_str()).collect::<Vec<_>>().join(", ");
    Channel::parse(text).ok_or_else(|| Error::field("channel", format!("{text:?} is not one of {known}")))
}

/// Maximum size of a command: an inventory of some hundred thousand numbers.
const COMMAND_BYTES: u64 = 32 * 1024 * 1024;

/// Timeout for receiving a command.
const COMMAND_TIME: Duration = Duration::from_secs(30);
/// Pause after a failed accept, for example when no file can be opened.
const RETRY: Duration = Duration::from_millis(100);

/// Result of a command as sent through the socket.
type Wire = std::result::Result<CommandOutput, String>;

/// Serves commands at `path` until the task is dropped. Only the owner of the data folder can connect.
pub async fn listen(core: Core, path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let _ = std::fs::remove_file(path); // left by a killed process; we hold the folder's lock
    let listener = UnixListener::bind(path).with_context(|| path.display().to_string())?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "failed to accept admin connection; will retry");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        let core = core.clone();
        tokio::spawn(async move {
            if let Err(error) = serve(&core, stream).await {
                tracing::warn!(%error, "failed to respond to admin command");
            }
        });
    }
}

async fn serve(core: &Core, mut stream: UnixStream) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    let mut asked = (&mut stream).take(COMMAND_BYTES);
    tokio::time::timeout(COMMAND_TIME, asked.read_to_end(&mut bytes)).await.context("the command was not received in time")??;
    let answer: Wire = match serde_json::from_slice(&bytes) {
        Ok(request) => run(core, request).await.map_err(|e| explain(&e)),
        Err(error) => Err(format!("the running server does not support this command; is it another version? ({error})")),
    };
    stream.write_all(&serde_json::to_vec(&answer)?).await?;
    stream.shutdown().await?;
    Ok(())
}

/// Sends a command to the server that holds the data folder.
pub async fn ask(path: &Path, request: &Request) -> anyhow::Result<CommandOutput> {
    let mut stream = UnixStream::connect(path).await.with_context(|| {
        format!("the data folder is in use, but no server responds at {}; is one starting or stopping?", path.display())
    })?;
    stream.write_all(&serde_json::to_vec(request)?).await?;
    stream.shutdown().await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    let answer: Wire = serde_json::from_slice(&bytes)?;
    answer.map_err(anyhow::Error::msg)
}

/// Formats an error with all its field errors for a terminal.
pub fn explain(error: &Error) -> String {
    let faults = error.details().get("errors").and_then(Value::as_array).cloned().unwrap_or_default();
    let faults: Vec<String> = faults
        .iter()
        .map(|f| format!("  {}: {}", f["path"].as_str().unwrap_or_default(), f["message"].as_str().unwrap_or_default()))
        .collect();
    let cause = std::error::Error::source(error).map_or_else(String::new, |source| format!(" ({source})"));
    if faults.is_empty() { format!("{error}{cause}") } else { faults.join("\n").trim_start().to_owned() }
}
