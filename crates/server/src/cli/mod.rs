//! The command line.

mod args;
mod audit;
mod balance;
mod broadcasts;
mod connections;
mod contacts;
mod database;
mod domains;
mod events;
mod held;
mod init;
mod input;
mod installed;
mod invitations;
mod keys;
mod messages;
mod numbers;
mod people;
mod prices;
mod projects;
mod remote;
mod reviews;
mod senders;
mod suppressions;
mod templates;
mod webhooks;

use std::io::IsTerminal as _;
use std::process::ExitCode;

use anyhow::Context as _;
use clap::error::{ContextKind, ContextValue};
use clap::{CommandFactory as _, FromArgMatches as _};
use nuncio_domain::line;

use crate::admin::{self, Request};
use crate::answer::CommandOutput;
use crate::client::life::Outcome;
use crate::client::{CallError, say};
use crate::config::Config;
use crate::data::{DataDir, check_installed};
use crate::option_values as values;
use crate::table::terminal_width;
use crate::wiring;
use crate::{quickstart, serve};
use args::{Action, Args, ConfigAction};
use database::DbAction;
use input::On;
use installed::InstalledAction;

/// The server cannot be reached.
const UNREACHABLE: u8 = 3;
/// What was asked for is still in progress.
const IN_PROGRESS: u8 = 4;

/// Runs the program.
pub fn main() -> ExitCode {
    let args = parse().unwrap_or_else(|error| nearest_first(without_environment(error)).exit());
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

fn parse() -> Result<Args, clap::Error> {
    let mut matches = without_empty(command()).try_get_matches()?;
    Args::from_arg_matches_mut(&mut matches).map_err(|error| error.format(&mut command()))
}

/// Makes options ignore variables that are set to nothing, as CI systems set them, in a command and those below it.
fn without_empty(command: clap::Command) -> clap::Command {
    let is_empty = |arg: &clap::Arg| arg.get_env().and_then(std::env::var_os).is_some_and(|value| value.is_empty());
    let set = |arg: clap::Arg| if is_empty(&arg) { arg.env(None::<&str>) } else { arg };
    command.mut_args(set).mut_subcommands(without_empty)
}

/// The whole command line, for help, completions and manual pages.
pub fn command() -> clap::Command {
    Args::command()
}

/// The same error with a usage line without what the environment sets. clap shows it there as if it were required.
fn without_environment(error: clap::Error) -> clap::Error {
    if !error.use_stderr() {
        return error;
    }
    hide_environment(without_empty(command())).try_get_matches().err().unwrap_or(error)
}

/// Hides the options that can be set in the environment, in a command and those below it.
fn hide_environment(command: clap::Command) -> clap::Command {
    let hidden = |arg: clap::Arg| if arg.get_env().is_some() { arg.hide(true) } else { arg };
    command.mut_args(hidden).mut_subcommands(hide_environment)
}

/// Puts the nearest of the suggested commands first; clap puts it last.
fn nearest_first(mut error: clap::Error) -> clap::Error {
    if let Some(ContextValue::Strings(found)) = error.get(ContextKind::SuggestedSubcommand) {
        let found = found.iter().rev().cloned().collect();
        error.insert(ContextKind::SuggestedSubcommand, ContextValue::Strings(found));
    }
    error
}

fn start(action: Action) -> anyhow::Result<ExitCode> {
    match action {
        Action::Serve(node) => {
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
        Action::Config { action } => config_command(&action),
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
            Ok(exit_code(runtime()?.block_on(action.run())?))
        }
        Action::Installed(action) => {
            if let Some(access) = action.remote()? {
                log(&Config::default(), QUIET);
                return Ok(exit_code(runtime()?.block_on(action.run_remotely(access))?));
            }
            let config = action.at().0.at.load()?;
            log(&config, QUIET);
            runtime()?.block_on(installed(&config, action))
        }
    }
}

/// Commands log only what is wrong.
const QUIET: &str = "warn";

fn exit_code(outcome: Outcome) -> ExitCode {
    match outcome {
        Outcome::Sent => ExitCode::SUCCESS,
        Outcome::Failed => ExitCode::FAILURE,
        Outcome::UnderWay => IN_PROGRESS.into(),
    }
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

fn in_runtime(future: impl Future<Output = anyhow::Result<()>>) -> anyhow::Result<ExitCode> {
    runtime()?.block_on(future).map(|()| ExitCode::SUCCESS)
}

fn log(config: &Config, level: &str) {
    let builder = tracing_subscriber::fmt()
        .with_env_filter(without_personal_data(level))
        .with_writer(std::io::stderr)
        // A line that cannot be written, to a full disk or a closed pipe, is lost. Otherwise whatever logs it would panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal());
    if config.log.format == "json" { builder.json().init() } else { builder.init() }
}

/// Adds to a log filter what keeps personal data out of the log: the library of phone numbers writes them at `trace`, that of SIP writes
/// whole messages at `info` (who calls whom, and answers to challenges).
fn without_personal_data(filter: &str) -> String {
    let is_info = filter.split(',').any(|part| part.eq_ignore_ascii_case("info")) && !filter.contains("rsipstack");
    format!("{filter},rlibphonenumber=off{}", if is_info { ",rsipstack=warn" } else { "" })
}

fn config_command(action: &ConfigAction) -> anyhow::Result<ExitCode> {
    match action {
        ConfigAction::Check(node) => {
            node.load()?;
            say("the configuration is valid");
        }
        ConfigAction::Show(node) => say(toml::to_string_pretty(&redacted(&node.load()?))?.trim_end()),
    }
    Ok(ExitCode::SUCCESS)
}

async fn installed(config: &Config, action: InstalledAction) -> anyhow::Result<ExitCode> {
    let (asked, project) = action.at();
    let (json, project) = (asked.json, project.cloned());
    let answer = match action {
        InstalledAction::Db(On { action: DbAction::Migrate, .. }) => database::migrate(config).await?,
        InstalledAction::Db(On { action: DbAction::Distribute, .. }) => database::distribute(config).await?,
        InstalledAction::Db(On { action: DbAction::Copy { to }, .. }) => database::copy(config, &to).await?,
        action => {
            let command = action.into_command()?;
            check_installed(&config.storage, command.begins())?;
            perform(config, Request { project, command }).await?
        }
    };
    let text = shown(&answer, json);
    if !text.is_empty() {
        say(text);
    }
    if let Some(notice) = answer.notice.filter(|_| !json) {
        eprintln!("{}", line::escaped(&notice));
    }
    Ok(if answer.bad { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// An answer as it is printed. Names and provider texts may contain anything; none of it may control the terminal.
pub(crate) fn shown(answer: &CommandOutput, json: bool) -> String {
    match &answer.table {
        _ if json => line::escaped_json(&answer.json.to_string()).into_owned(),
        Some(table) => table.text(terminal_width()),
        None => line::escaped(&answer.text).into_owned(),
    }
}

fn redacted(config: &Config) -> Config {
    let mut config = config.clone();
    let Config { storage, review, dashboard, .. } = &mut config;
    for secret in [&mut storage.database, &mut storage.encryption_keys, &mut review.token, &mut dashboard.oidc.client_secret] {
        if !secret.is_empty() {
            "***".clone_into(secret);
        }
    }
    config
}

/// Runs a command on the installation: through its server if one holds the data folder, else by itself.
async fn perform(config: &Config, request: Request) -> anyhow::Result<CommandOutput> {
    let embedded = config.storage.database.is_empty();
    let data = DataDir::open(&config.storage.data)?;
    let _lock = match (embedded, data.lock()?) {
        (true, None) => return admin::ask(&data.socket(), &request).await,
        (_, lock) => lock,
    };
    let ids = serve::ids();
    let store = data.open_store(&config.storage).await?;
    let (sealer, keys) = data.sealer(&config.storage, &*ids.entropy)?;
    let node = wiring::node(config, store, sealer, ids, &config.server.listen)?;
    data.check_keys(keys, &node.core).await?;
    let answer = admin::run(&node.core, request).await.map_err(|e| anyhow::anyhow!(admin::explain(&e)));
    node.core.store().close().await;
    answer
}

#[cfg(test)]
mod tests {
    use clap::Parser as _;

    use super::*;

    #[test]
    fn personal_data_is_logged_only_if_asked_for() {
        for (filter, added) in
            [("info", true), ("warn,INFO", true), ("debug", false), ("nuncio=debug", false), ("info,rsipstack=info", false)]
        {
            let logged = without_personal_data(filter);
            assert_eq!(logged.ends_with(",rsipstack=warn"), added, "{filter}");
            assert!(logged.contains(",rlibphonenumber=off"), "phone numbers never are: {filter}");
        }
    }

    /// Some names are older than the rule for them, and some texts come from providers.
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

    /// What is suggested for a typo.
    fn suggested(line: &str) -> Vec<String> {
        let error = Args::try_parse_from(format!("nuncio {line}").split(' ')).map(|_| ()).map_err(nearest_first).expect_err("a typo");
        let shown = error.to_string();
        let tip = shown.split_once("exist").map(|(_, tip)| tip.split("\n\n").next().unwrap_or_default()).unwrap_or_default();
        tip.split('\'').skip(1).step_by(2).map(str::to_owned).collect()
    }

    // holds: cli.typos
    #[test]
    fn the_nearest_command_is_suggested_first() {
        for (typo, meant) in [
            ("mesages list", "messages"),
            ("brodcasts", "broadcasts"),
            ("sent", "send"),
            ("contcats list", "contacts"),
            ("supressions", "suppressions"),
            ("conections list", "connections"),
            ("messages lst", "list"),
            ("broadcasts improt", "import"),
            ("messages list --limt 3", "--limit"),
            ("messages list --staus sent", "--status"),
            ("contacts import people.csv --country ES", "--countries"),
        ] {
            let suggested = suggested(typo);
            assert_eq!(suggested.first().map(String::as_str), Some(meant), "{typo}: {suggested:?}");
        }
    }

    fn parsed(line: &[&str]) -> Result<admin::Command, String> {
        let args = Args::try_parse_from(["nuncio"].iter().chain(line)).map_err(|error| error.to_string())?;
        let Action::Installed(action) = args.action else { return Err("another kind of command".to_owned()) };
        action.into_command().map_err(|error| error.to_string())
    }

    #[test]
    fn phone_numbers_are_accepted_as_people_write_them() {
        use admin::Command;
        for (phone, country) in [("+34 600-111.222", None), ("0034 (600) 111222", None), ("600 111 222", Some("es"))] {
            let with_country = |mut line: Vec<&'static str>| {
                line.extend(country.into_iter().flat_map(|country| ["--country", country]));
                parsed(&line)
            };
            let made = with_country(vec!["senders", "create", "--name", "x", "--phone-number", phone]);
            assert!(matches!(&made, Ok(Command::SendersCreate { sender, .. }) if sender["phoneNumber"] == "+34600111222"), "{made:?}");
            let changed = with_country(vec!["senders", "update", "snd_1", "--phone-number", phone]);
            assert!(
                matches!(&changed, Ok(Command::SendersUpdate { change, .. }) if change["phoneNumber"] == "+34600111222"),
                "{changed:?}"
            );
            let added = with_country(vec!["numbers", "add", phone, "--capabilities", "sms"]);
            assert!(matches!(&added, Ok(Command::NumbersAdd { number, .. }) if number.phone_number == "+34600111222"), "{added:?}");
            let mut file = tempfile::NamedTempFile::new().expect("a file");
            std::io::Write::write_all(&mut file, format!("phoneNumber,capabilities\n{phone},sms\n").as_bytes()).expect("written");
            let mut line = vec!["numbers", "import", file.path().to_str().expect("a path")];
            line.extend(country.into_iter().flat_map(|country| ["--country", country]));
            let read = parsed(&line);
            assert!(matches!(&read, Ok(Command::NumbersImport { numbers, .. }) if numbers[0].1.phone_number == "+34600111222"), "{read:?}");
        }
        assert!(parsed(&["numbers", "add", "600 111 222", "--capabilities", "sms", "--country", "XX"]).is_err());
        let unread = parsed(&["numbers", "add", "600 111 222", "--capabilities", "sms"]);
        assert!(
            matches!(unread, Ok(Command::NumbersAdd { number, .. }) if number.phone_number == "600 111 222"),
            "core says what is wrong"
        );
    }
}
