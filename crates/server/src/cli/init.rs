//! `nuncio init`: a few questions, then `nuncio.toml` and a first connection that was tried out.

use std::io::{BufRead as _, IsTerminal as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use nuncio_channel::{AdapterFactory, Field, Tokens};
use nuncio_domain::{Environment, Redacted};
use serde_json::{Map, Value};

use super::perform;
use crate::admin::{Command, NewThrottle, Request};
use crate::answer::CommandOutput;
use crate::client::{say, say_text};
use crate::config::Config;
use crate::data::write_private;
use crate::wiring;

const FILE: &str = "nuncio.toml";

/// Asks, writes the settings, and sets and tries the first connection.
pub(super) async fn run() -> anyhow::Result<()> {
    let config = if Path::new(FILE).exists() {
        let config = Config::load(Some(Path::new(FILE)), std::env::vars_os())?;
        say(format!("{FILE} exists and stays as it is. Press Enter to use the value in brackets.\n"));
        config
    } else {
        say("Press Enter to use the value in brackets.\n");
        let config = loop {
            match settings()? {
                Ok(config) => break config,
                Err(error) => say(format!("\n{error:#}\n\nNothing was written. Once more:\n")),
            }
        };
        say(format!("\nWrote {FILE}; the guide (/docs/guide) lists all settings.\n"));
        config
    };
    let mut answers = Answers::default();
    while connection(&config, &mut answers)? {
        match ask_installation(&config, answers.set()).await {
            Err(error) => say(format!("\n{error:#}\n\nThis was not saved. Try again; Enter keeps an answer:\n")),
            Ok(saved) => {
                let test = Command::ConnectionsTest { env: Environment::Live, sender: None, channel: answers.channel.clone() };
                let tested = ask_installation(&config, test).await?;
                say(format!("\n{}\ntest: {}", saved.text, tested.text));
                if !tested.bad || ask("\nChange the answers? yes or no", "no")? != "yes" {
                    break;
                }
            }
        }
    }
    say("\nNow run `nuncio serve`. It prints a link that makes you its owner in the browser.");
    Ok(())
}

async fn ask_installation(config: &Config, command: Command) -> anyhow::Result<CommandOutput> {
    perform(config, Request { project: None, command }).await
}

/// What was answered about the connection; offered again when it was wrong.
#[derive(Debug, Default)]
struct Answers {
    kind: String,
    channel: String,
    settings: Map<String, Value>,
    secrets: Map<String, Value>,
}

impl Answers {
    /// The command that sets the connection.
    fn set(&self) -> Command {
        Command::ConnectionsSet {
            env: Environment::Live,
            sender: None,
            channel: self.channel.clone(),
            kind: self.kind.clone(),
            settings: self.settings.clone(),
            secrets: self.secrets.clone(),
            throttle: NewThrottle::Keep,
        }
    }
}

/// Asks for the settings that a first installation needs, and writes them once they are good. The inner error says what is wrong with them.
fn settings() -> anyhow::Result<anyhow::Result<Config>> {
    let default = Config::default();
    let mut file = toml::Table::new();
    let mut set = |section: &str, name: &str, value: String| {
        if !value.is_empty() {
            let section = file.entry(section).or_insert_with(|| toml::Table::new().into());
            section.as_table_mut().map(|table| table.insert(name.to_owned(), value.into()));
        }
    };
    set("server", "listen", ask("Address and port to listen on", &default.server.listen)?);
    set("server", "public_url", ask("Its public URL, such as https://messages.example.org", "")?);
    set("storage", "data", ask("Data folder", &default.storage.data.display().to_string())?);
    set("storage", "database", ask("PostgreSQL as postgres://user@host:5432/name, instead of the embedded database", "")?);
    // The URL of the database can hold a password. `write_private` syncs the parent folder, which a bare name does not have.
    write_private(&Path::new(".").join(FILE), &toml::to_string_pretty(&file)?)?;
    let config = Config::load(Some(Path::new(FILE)), std::env::vars_os());
    if config.is_err() {
        std::fs::remove_file(FILE).context(FILE)?;
    }
    Ok(config.map_err(Into::into))
}

/// Asks for an optional connection of the live environment; returns whether one is wanted.
fn connection(config: &Config, answers: &mut Answers) -> anyhow::Result<bool> {
    let registry = wiring::registry(config, Tokens::new(Redacted::new([0; 32])))?;
    let kinds = registry.iter().map(AdapterFactory::kind).filter(|kind| *kind != "sim").collect::<Vec<_>>().join(", ");
    let factory = loop {
        let before = if answers.kind.is_empty() { "none" } else { &answers.kind };
        let kind = ask(&format!("First connection, one of {kinds}; the sandbox needs none"), before)?;
        match registry.get(&kind) {
            _ if kind == "none" => return Ok(false),
            Some(factory) if kind != "sim" => break factory,
            _ => say(format!("{kind:?} is not one of {kinds}, or none")),
        }
    };
    if answers.kind != factory.kind() {
        *answers = Answers { kind: factory.kind().to_owned(), ..Answers::default() };
    }
    let channels: Vec<&str> = factory.channels().iter().map(|channel| channel.as_str()).collect();
    answers.channel = match channels.as_slice() {
        [only] => (*only).to_owned(),
        [first, ..] => {
            let before = if answers.channel.is_empty() { first } else { answers.channel.as_str() };
            ask(&format!("Channel, one of {}", channels.join(", ")), before)?
        }
        [] => bail!("{} has no channels", factory.kind()),
    };
    for field in factory.fields().iter().filter(|field| field.required) {
        let known = if field.secret { &mut answers.secrets } else { &mut answers.settings };
        let before = known.get(field.name).and_then(Value::as_str).unwrap_or_default();
        let value = ask_for(field, before)?;
        known.insert(field.name.to_owned(), value.into());
    }
    loop {
        let more = ask("Another setting as name=value", "none")?;
        let (name, value) = match more.split_once('=') {
            Some((name, value)) => (name.trim(), value.trim()),
            None if more == "none" => return Ok(true),
            None => {
                say("it must have the form name=value, such as port=2525");
                continue;
            }
        };
        let secret = factory.fields().iter().any(|field| field.secret && field.name == name);
        let known = if secret { &mut answers.secrets } else { &mut answers.settings };
        known.insert(name.to_owned(), value.into());
    }
}

/// Asks for a field; an empty answer keeps what was answered `before`.
fn ask_for(field: &Field, before: &str) -> anyhow::Result<String> {
    let question = format!("{}: {}", field.name, field.help);
    loop {
        let answer = match field.secret {
            true if std::io::stdin().is_terminal() => {
                console::Term::stderr().write_str(&format!("{question}: "))?;
                console::Term::stderr().read_secure_line()?
            }
            true => ask(&question, "")?,
            false => ask(&question, before)?,
        };
        match (answer.is_empty(), before.is_empty()) {
            (false, _) => return Ok(answer),
            (true, false) => return Ok(before.to_owned()),
            (true, true) => say(format!("{} is required", field.name)),
        }
    }
}

/// One line of the answer, or `default` for an empty one.
fn ask(question: &str, default: &str) -> anyhow::Result<String> {
    let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    say_text(&format!("{question}{shown}: "));
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line)? == 0 {
        bail!("the input ended before the last question");
    }
    let answer = line.trim();
    Ok(if answer.is_empty() { default.to_owned() } else { answer.to_owned() })
}
