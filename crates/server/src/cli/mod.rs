//! The command line.

mod args;
mod init;
mod input;
mod remote;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::{CommandFactory as _, Parser as _};
use nuncio_domain::line;

use crate::admin::{self, CommandOutput, Request};
use crate::client::life::Outcome;
use crate::client::{CallError, say};
use crate::config::Config;
use crate::data::DataDir;
use crate::table::terminal_width;
use crate::wiring;
use crate::{quickstart, serve};
use args::{Action, Args, ConfigAction, DbAction, Installation, InstalledAction, Node};

/// The server cannot be reached.
const UNREACHABLE: u8 = 3;
/// What was asked for is still under way.
const UNDER_WAY: u8 = 4;

/// Runs the program.
pub fn main() -> ExitCode {
    let args = Args::parse();
    nuncio_net::init_tls();
    match start(args.action) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("nuncio: {}", line::escaped(&format!("{error:#}")));
            match error.downcast_ref::<CallError>() {
                Some(CallError::Unreachable { .. }) => UNREACHABLE.into(),
                _ => ExitCode::FAILURE,
            }
        }
    }
}

/// The whole command line, for help, completions and manual pages.
pub fn command() -> clap::Command {
    Args::command()
}

fn start(action: Action) -> anyhow::Result<ExitCode> {
    match action {
        Action::Serve { node } => {
            let config = node.load()?;
            log(&config, config.log.level.as_str());
            in_runtime(serve::run(&config))
        }
        Action::Quickstart { node, exit } => {
            let config = node.load()?;
            log(&config, QUIET);
            in_runtime(quickstart::run(config, exit))
        }
        Action::Init => {
            log(&Config::default(), QUIET);
            in_runtime(init::run())
        }
        Action::Config { node, action } => config_command(&node, &action),
        Action::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut command(), "nuncio", &mut script);
            say(String::from_utf8_lossy(&script).trim_end());
            Ok(ExitCode::SUCCESS)
        }
        Action::Man { folder } => {
            std::fs::create_dir_all(&folder).with_context(|| folder.display().to_string())?;
            clap_mangen::generate_to(command(), &folder).with_context(|| folder.display().to_string())?;
            Ok(ExitCode::SUCCESS)
        }
        Action::Remote(action) => {
            log(&Config::default(), QUIET);
            Ok(match runtime()?.block_on(action.run())? {
                Outcome::Sent => ExitCode::SUCCESS,
                Outcome::Failed => ExitCode::FAILURE,
                Outcome::UnderWay => UNDER_WAY.into(),
            })
        }
        Action::Installed(action) => {
            let config = action.at().0.at.load()?;
            log(&config, QUIET);
            runtime()?.block_on(installed(&config, action))
        }
    }
}

/// Commands log only what is wrong.
const QUIET: &str = "warn";

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

fn in_runtime(future: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<ExitCode> {
    runtime()?.block_on(future).map(|()| ExitCode::SUCCESS)
}

impl Installation {
    fn load(&self) -> anyhow::Result<Config> {
        let mut config = Config::load(self.config.as_deref(), std::env::vars())?;
        if let Some(data) = &self.data {
            config.storage.data.clone_from(data);
        }
        if let Some(database) = &self.database {
            config.storage.database.clone_from(database);
        }
        Ok(config)
    }
}

impl Node {
    fn load(&self) -> anyhow::Result<Config> {
        let mut config = self.at.load()?;
        if let Some(listen) = &self.listen {
            config.server.listen.clone_from(listen);
        }
        Ok(config)
    }
}

fn log(config: &Config, level: &str) {
    let filter = tracing_subscriber::EnvFilter::try_new(level).unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    if config.log.format == "json" { builder.json().init() } else { builder.init() }
}

fn config_command(node: &Node, action: &ConfigAction) -> anyhow::Result<ExitCode> {
    let config = node.load()?;
    match action {
        ConfigAction::Check => say("the configuration is good"),
        ConfigAction::Show => say(toml::to_string_pretty(&redacted(&config))?.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

async fn installed(config: &Config, action: InstalledAction) -> anyhow::Result<ExitCode> {
    match action {
        InstalledAction::Db { action: DbAction::Migrate, .. } => return migrate(config).await.map(|()| ExitCode::SUCCESS),
        InstalledAction::Db { action: DbAction::Distribute, .. } => return distribute(config).await.map(|()| ExitCode::SUCCESS),
        _ => {}
    }
    let (asked, project) = action.at();
    let (json, project) = (asked.json, project.cloned());
    let answer = perform(config, Request { project, command: action.into_command()? }).await?;
    say(shown(&answer, json));
    Ok(if answer.bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// An answer as it is printed. Names and what providers said may hold anything; none of it may control the terminal.
pub(crate) fn shown(answer: &CommandOutput, json: bool) -> String {
    match &answer.table {
        _ if json => line::escaped_json(&answer.json.to_string()).into_owned(),
        Some(table) => table.text(terminal_width()),
        None => line::escaped(&answer.text).into_owned(),
    }
}

fn redacted(config: &Config) -> Config {
    let mut config = config.clone();
    for secret in [&mut config.storage.database, &mut config.storage.encryption_keys, &mut config.review.token] {
        if !secret.is_empty() {
            "***".clone_into(secret);
        }
    }
    config
}

/// Runs a command on the installation: through its server if one holds the data folder, else by itself.
async fn perform(config: &Config, request: Request) -> anyhow::Result<CommandOutput> {
    let data = DataDir::open(&config.storage.data)?;
    let embedded = config.storage.database.is_empty();
    let _lock = match (embedded, data.lock()?) {
        (true, None) => return admin::ask(&data.socket(), &request).await,
        (_, lock) => lock,
    };
    let ids = serve::ids();
    let sealer = data.sealer(&config.storage, &*ids.entropy)?;
    let store = nuncio_store_sql::open(&data.target(&config.storage)).await.context("the database cannot be opened")?;
    let node = wiring::node(config, store, sealer, ids, &config.server.listen)?;
    data.check_keys(&config.storage, &node.core).await?;
    let answer = admin::run(&node.core, request).await.map_err(|e| anyhow::anyhow!(admin::explain(&e)));
    node.core.store().close().await;
    answer
}

async fn migrate(config: &Config) -> anyhow::Result<()> {
    let data = DataDir::open(&config.storage.data)?;
    let _lock = match (config.storage.database.is_empty(), data.lock()?) {
        (true, None) => {
            bail!("a server works on this data folder; it brought the schema up to date when it started. To migrate by hand, stop it first")
        }
        (_, lock) => lock,
    };
    nuncio_store_sql::open(&data.target(&config.storage)).await?.close().await;
    say("the schema is up to date");
    Ok(())
}

async fn distribute(config: &Config) -> anyhow::Result<()> {
    if config.storage.database.is_empty() {
        bail!("storage.database: is empty; must be the postgres:// URL of a Citus coordinator");
    }
    nuncio_store_sql::distribute(&config.storage.database).await?;
    say("the tables are spread over the cluster");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some names are older than the rule for them, and some texts are a provider's.
    #[test]
    fn nothing_that_is_printed_controls_the_terminal() {
        let name = "Shop\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}";
        let answer = CommandOutput::new(serde_json::json!({"name": name}), format!("snd_1  {name}\nsnd_2  Store"));
        let text = shown(&answer, false);
        assert_eq!(text, "snd_1  Shop\\u{1b}]0;owned\\u{7}\\u{9b}2J\\u{202e}\nsnd_2  Store");
        let json = shown(&answer, true);
        assert!(json.bytes().all(|b| b.is_ascii_graphic()), "{json}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).expect("JSON"), answer.json);
    }
}
