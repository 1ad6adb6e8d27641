//! The command line.

mod args;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use clap::Parser as _;
use indicatif::{ProgressBar, ProgressStyle};
use nuncio_domain::line;

use crate::admin::{self, Answer, Request};
use crate::config::Config;
use crate::data::DataDir;
use crate::import_file::{ImportFile, summary};
use crate::wiring;
use crate::{quickstart, serve};
use args::{Action, Args, BroadcastsAction, ConfigAction, DbAction};

/// Runs the program.
pub fn main() -> ExitCode {
    let args = Args::parse();
    nuncio_net::init_tls();
    match start(args) {
        Ok(code) => code,
        Err(error) => {
            eprintln!("nuncio: {}", line::escaped(&format!("{error:#}")));
            ExitCode::FAILURE
        }
    }
}

fn start(args: Args) -> anyhow::Result<ExitCode> {
    let config = load(&args)?;
    let serves = matches!(args.action, Action::Serve | Action::Quickstart { .. });
    log(&config, serves, matches!(args.action, Action::Quickstart { .. }));
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(run(args, config))
}

fn load(args: &Args) -> anyhow::Result<Config> {
    let mut config = Config::load(args.config.as_deref(), std::env::vars())?;
    if let Some(data) = &args.data {
        config.storage.data.clone_from(data);
    }
    if let Some(database) = &args.database {
        config.storage.database.clone_from(database);
    }
    if let Some(listen) = &args.listen {
        config.server.listen.clone_from(listen);
    }
    Ok(config)
}

fn log(config: &Config, serves: bool, quiet: bool) {
    let level = if quiet || !serves { "warn" } else { config.log.level.as_str() };
    let filter = tracing_subscriber::EnvFilter::try_new(level).unwrap_or_else(|_| tracing_subscriber::EnvFilter::new("info"));
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr).with_ansi(std::io::stderr().is_terminal());
    if config.log.format == "json" { builder.json().init() } else { builder.init() }
}

async fn run(args: Args, config: Config) -> anyhow::Result<ExitCode> {
    let json = args.json;
    let request = match args.action {
        Action::Serve => return serve::run(&config).await.map(|()| ExitCode::SUCCESS),
        Action::Quickstart { exit } => return quickstart::run(config, exit).await.map(|()| ExitCode::SUCCESS),
        Action::Config { action: ConfigAction::Check } => {
            println!("the configuration is good");
            return Ok(ExitCode::SUCCESS);
        }
        Action::Config { action: ConfigAction::Show } => {
            println!("{}", toml::to_string_pretty(&redacted(&config))?);
            return Ok(ExitCode::SUCCESS);
        }
        Action::Broadcasts { action } => return import(&config, action, json).await.map(|()| ExitCode::SUCCESS),
        Action::Db { action: DbAction::Migrate } => return migrate(&config).await.map(|()| ExitCode::SUCCESS),
        Action::Db { action: DbAction::Distribute } => return distribute(&config).await.map(|()| ExitCode::SUCCESS),
        other => Request { project: args.project, command: other.into_command()? },
    };
    let answer = perform(&config, request).await?;
    print!("{}", shown(&answer, json));
    Ok(if answer.bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// An answer as it is printed. Names and what providers said may hold anything; none of it may control the terminal.
pub(crate) fn shown(answer: &Answer, json: bool) -> String {
    let text = if json { line::escaped_json(&answer.json.to_string()).into_owned() } else { line::escaped(&answer.text).into_owned() };
    text + "\n"
}

async fn import(config: &Config, action: BroadcastsAction, json: bool) -> anyhow::Result<()> {
    let BroadcastsAction::Import { id, file, server, key, recipient, countries, columns } = action;
    let length = std::fs::metadata(&file).with_context(|| file.display().to_string())?.len();
    let style = ProgressStyle::with_template("{bar:40} {percent}% {bytes}/{total_bytes} {eta}")?;
    // It is drawn on a terminal only.
    let bar = ProgressBar::new(length).with_style(style);
    let query = [("recipient", recipient), ("countries", countries), ("columns", columns)];
    let query = query.into_iter().filter_map(|(name, value)| Some((name, value?))).collect();
    let server = server.unwrap_or_else(|| format!("http://{}", config.server.listen));
    let import = ImportFile { server, key, broadcast: id, file, query };
    let shown = bar.clone();
    let answer = import.send(move |sent| shown.set_position(sent)).await;
    bar.finish_and_clear();
    let answer = answer?;
    println!("{}", if json { line::escaped_json(&answer.to_string()).into_owned() } else { line::escaped(&summary(&answer)).into_owned() });
    Ok(())
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
async fn perform(config: &Config, request: Request) -> anyhow::Result<Answer> {
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
    println!("the schema is up to date");
    Ok(())
}

async fn distribute(config: &Config) -> anyhow::Result<()> {
    if config.storage.database.is_empty() {
        bail!("storage.database: is empty; must be the postgres:// URL of a Citus coordinator");
    }
    nuncio_store_sql::distribute(&config.storage.database).await?;
    println!("the tables are spread over the cluster");
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Some names are older than the rule for them, and some texts are a provider's.
    #[test]
    fn nothing_that_is_printed_controls_the_terminal() {
        let name = "Shop\u{1b}]0;owned\u{7}\u{9b}2J\u{202e}";
        let answer = Answer::new(serde_json::json!({"name": name}), format!("snd_1  {name}\nsnd_2  Store"));
        let text = shown(&answer, false);
        assert_eq!(text, "snd_1  Shop\\u{1b}]0;owned\\u{7}\\u{9b}2J\\u{202e}\nsnd_2  Store\n");
        let json = shown(&answer, true);
        assert!(json.trim_end().bytes().all(|b| b.is_ascii_graphic()), "{json}");
        assert_eq!(serde_json::from_str::<serde_json::Value>(&json).expect("JSON"), answer.json);
    }
}
