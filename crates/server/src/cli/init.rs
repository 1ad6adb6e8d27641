//! `nuncio init`: a few questions, then `nuncio.toml` and a first connection that was tried out.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::path::Path;

use anyhow::{Context as _, bail};
use nuncio_channel::{AdapterFactory, Field, Tokens};
use nuncio_domain::{Environment, Redacted};
use serde_json::{Map, Value};

use super::perform;
use crate::admin::{Command, NewThrottle, Request};
use crate::client::say;
use crate::config::Config;
use crate::wiring;

const FILE: &str = "nuncio.toml";

/// Asks, writes the settings, and sets and tries the first connection.
pub(super) async fn run() -> anyhow::Result<()> {
    let config = if Path::new(FILE).exists() {
        let config = Config::load(Some(Path::new(FILE)), std::env::vars())?;
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
    while let Some(set) = connection(&config)? {
        let Command::ConnectionsSet { sender, channel, .. } = &set else { break };
        let test = Command::ConnectionsTest { env: Environment::Live, sender: sender.clone(), channel: channel.clone() };
        match ask_installation(&config, set).await {
            Err(error) => say(format!("\n{error:#}\n\nThis was not saved. Try again:\n")),
            Ok(saved) => {
                say(format!("\n{saved}\ntest: {}", ask_installation(&config, test).await?));
                break;
            }
        }
    }
    say("\nNow run `nuncio serve`. It prints a link that makes you its owner in the browser.");
    Ok(())
}

async fn ask_installation(config: &Config, command: Command) -> anyhow::Result<String> {
    Ok(perform(config, Request { project: None, command }).await?.text)
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
    std::fs::write(FILE, toml::to_string_pretty(&file)?).context(FILE)?;
    let config = Config::load(Some(Path::new(FILE)), std::env::vars());
    if config.is_err() {
        std::fs::remove_file(FILE).context(FILE)?;
    }
    Ok(config.map_err(Into::into))
}

/// Asks for an optional connection of the live environment.
fn connection(config: &Config) -> anyhow::Result<Option<Command>> {
    let registry = wiring::registry(config, Tokens::new(Redacted::new([0; 32])))?;
    let kinds = registry.iter().map(AdapterFactory::kind).filter(|kind| *kind != "sim").collect::<Vec<_>>().join(", ");
    let factory = loop {
        let kind = ask(&format!("First connection, one of {kinds}; the sandbox needs none"), "none")?;
        match registry.get(&kind) {
            _ if kind == "none" => return Ok(None),
            Some(factory) if kind != "sim" => break factory,
            _ => say(format!("{kind:?} is not one of {kinds}, or none")),
        }
    };
    let channels: Vec<&str> = factory.channels().iter().map(|channel| channel.as_str()).collect();
    let channel = match channels.as_slice() {
        [only] => (*only).to_owned(),
        [first, ..] => ask(&format!("Channel, one of {}", channels.join(", ")), first)?,
        [] => bail!("{} has no channels", factory.kind()),
    };
    let (mut settings, mut secrets) = (Map::new(), Map::new());
    for field in factory.fields().iter().filter(|field| field.required) {
        let value = Value::from(ask_for(field)?);
        if field.secret {
            secrets.insert(field.name.to_owned(), value)
        } else {
            settings.insert(field.name.to_owned(), value)
        };
    }
    loop {
        let more = ask("Another setting as name=value", "none")?;
        let Some((name, value)) = more.split_once('=') else { break };
        settings.insert(name.to_owned(), value.into());
    }
    let kind = factory.kind().to_owned();
    Ok(Some(Command::ConnectionsSet {
        env: Environment::Live,
        sender: None,
        channel,
        kind,
        settings,
        secrets,
        throttle: NewThrottle::Keep,
    }))
}

fn ask_for(field: &Field) -> anyhow::Result<String> {
    let question = format!("{}: {}", field.name, field.help);
    loop {
        let answer = if field.secret && std::io::stdin().is_terminal() {
            console::Term::stderr().write_str(&format!("{question}: "))?;
            console::Term::stderr().read_secure_line()?
        } else {
            ask(&question, "")?
        };
        if !answer.is_empty() {
            return Ok(answer);
        }
        say(format!("{} is required", field.name));
    }
}

/// One line of the answer, or `default` for an empty one.
fn ask(question: &str, default: &str) -> anyhow::Result<String> {
    let shown = if default.is_empty() { String::new() } else { format!(" [{default}]") };
    print!("{question}{shown}: ");
    std::io::stdout().flush()?;
    let mut line = String::new();
    if std::io::stdin().lock().read_line(&mut line)? == 0 {
        bail!("the input ended before the last question");
    }
    let answer = line.trim();
    Ok(if answer.is_empty() { default.to_owned() } else { answer.to_owned() })
}
