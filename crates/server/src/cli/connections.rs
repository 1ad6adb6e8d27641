//! `nuncio connections`, on an installation or on a remote node.

use std::io::{IsTerminal as _, Write as _};

use clap::Subcommand;
use nuncio_domain::config::Throttle;
use nuncio_domain::{Channel, Environment};
use reqwest::Method;
use serde_json::{Value, json};

use super::input::or_live;
use super::values::{names, pair};
use crate::admin::{Command, NewThrottle};
use crate::client::life::Outcome;
use crate::client::lists::{self, CONNECTIONS};
use crate::client::profile::{Access, Remote, environment};
use crate::client::send::pairs;
use crate::client::{World, say, say_json};

const SET: &str = "\
Example: nuncio connections set --env live --channel email --kind smtp --setting host=smtp.example.org --setting from=hello@example.org \
--secret password=@password.txt";

#[derive(Debug, Subcommand)]
pub(super) enum ConnectionsAction {
    /// List connections, without their secrets.
    List {
        /// Only this environment [default: both].
        #[arg(long, value_parser = environment())]
        env: Option<Environment>,
    },
    /// Set the provider account of a sender's channel, replacing the current one.
    #[command(after_help = SET)]
    Set {
        #[command(flatten)]
        of: Which,
        /// The kind of provider: smtp, smpp, kannel, twilio, sip, telegram, whatsapp_cloud or instagram; sim in the test environment.
        #[arg(long)]
        kind: String,
        /// A setting, as name=value. Repeatable.
        #[arg(long = "setting", value_name = "NAME=VALUE", value_parser = pair)]
        settings: Vec<String>,
        /// A secret, as name=value, or name=@FILE to read it from a file (@- for standard input). Repeatable.
        #[arg(long = "secret", value_name = "NAME=VALUE", value_parser = pair)]
        secrets: Vec<String>,
        /// Rate limit over all nodes: messages per second, and after a slash the burst, such as 50/100; none removes the limit
        /// [default: unchanged].
        #[arg(long, value_name = "RATE[/BURST]", value_parser = throttle)]
        throttle: Option<NewThrottle>,
    },
    /// Remove the provider account of a sender's channel.
    Remove(Which),
    /// Verify the inbound address of a sender's email connection, so that email to it arrives. On a remote node, a code is emailed to
    /// the address, and asked for.
    Verify {
        /// The environment [default: live; on a remote node, the one that there is a key for].
        #[arg(long, value_parser = environment())]
        env: Option<Environment>,
        /// ID or name of the sender [default: the default sender].
        #[arg(long)]
        sender: Option<String>,
        /// The channel.
        #[arg(long, default_value = "email", value_parser = names(Channel::ALL, Channel::as_str))]
        channel: String,
    },
    /// Connect to the provider and log in, without sending a message.
    Test(Which),
}

/// Which connection.
#[derive(Debug, clap::Args)]
pub(super) struct Which {
    /// The environment [default: live; on a remote node, the one that there is a key for].
    #[arg(long, value_parser = environment())]
    env: Option<Environment>,
    /// ID or name of the sender [default: the default sender].
    #[arg(long)]
    sender: Option<String>,
    /// The channel.
    #[arg(long, value_parser = names(Channel::ALL, Channel::as_str))]
    channel: String,
}

impl ConnectionsAction {
    /// The command as a request to the installation.
    pub(super) fn into_command(self) -> anyhow::Result<Command> {
        Ok(match self {
            Self::List { env } => Command::ConnectionsList { env },
            Self::Remove(Which { env, sender, channel }) => Command::ConnectionsRemove { env: or_live(env), sender, channel },
            Self::Verify { env, sender, channel } => Command::ConnectionsVerify { env: or_live(env), sender, channel },
            Self::Test(Which { env, sender, channel }) => Command::ConnectionsTest { env: or_live(env), sender, channel },
            Self::Set { of: Which { env, sender, channel }, kind, settings, secrets, throttle } => {
                let (settings, secrets) = (pairs(&settings, false)?, pairs(&secrets, true)?);
                let throttle = throttle.unwrap_or(NewThrottle::Keep);
                Command::ConnectionsSet { env: or_live(env), sender, channel, kind, settings, secrets, throttle }
            }
        })
    }

    /// Runs the command on a remote node.
    pub(super) async fn run(self, access: Access, json: bool) -> anyhow::Result<Outcome> {
        let at = |env| Remote::new(access, env, json);
        match self {
            Self::List { env } => list(&at(env).worlds()?, json).await?,
            Self::Set { of, kind, settings, secrets, throttle } => {
                let (world, path) = of.find(&at(of.env)).await?;
                let mut body = json!({"kind": kind, "settings": pairs(&settings, false)?, "secrets": pairs(&secrets, true)?});
                body["throttle"] = match throttle.unwrap_or(NewThrottle::Keep) {
                    NewThrottle::Keep => present_throttle(&world, &path).await?,
                    NewThrottle::None => Value::Null,
                    NewThrottle::Set(throttle) => json!(throttle),
                };
                lists::print(&world.call(Method::PUT, &path, Some(&body)).await?, json);
            }
            Self::Remove(of) => {
                let (world, path) = of.find(&at(of.env)).await?;
                lists::print(&world.call(Method::DELETE, &path, None).await?, json);
            }
            Self::Verify { env, sender, channel } => {
                let of = Which { env, sender, channel };
                let (world, path) = of.find(&at(env)).await?;
                let sent = world.call(Method::POST, &format!("{path}/verification"), None).await?;
                if sent["status"] == "verified" {
                    lists::print(&sent, json);
                    return Ok(Outcome::Sent);
                }
                let code = ask_for_code()?;
                lists::print(&world.call(Method::POST, &format!("{path}/verify"), Some(&json!({"code": code}))).await?, json);
            }
            Self::Test(of) => {
                let (world, path) = of.find(&at(of.env)).await?;
                let tested = world.call(Method::POST, &format!("{path}/test"), None).await?;
                let ok = tested["ok"] == true;
                let text = tested["message"].as_str().unwrap_or_default();
                if json {
                    say_json(&tested)
                } else {
                    say(format!("{}: {text}", if ok { "ok" } else { "failed" }))
                }
                return Ok(if ok { Outcome::Sent } else { Outcome::Failed });
            }
        }
        Ok(Outcome::Sent)
    }
}

impl Which {
    /// The environment, and the path of the connection there.
    async fn find(&self, at: &Remote) -> anyhow::Result<(World, String)> {
        let world = at.world()?;
        let sender = lists::sender(&world, self.sender.as_deref()).await?;
        let path = format!("/v1/senders/{}/channels/{}", sender["id"].as_str().unwrap_or_default(), self.channel);
        Ok((world, path))
    }
}

/// The rate limit of a connection, if there are both.
async fn present_throttle(world: &World, path: &str) -> anyhow::Result<Value> {
    match world.get(path, &[]).await {
        Ok(mut connection) => Ok(connection["throttle"].take()),
        Err(error) if error.is_not_found() => Ok(Value::Null),
        Err(error) => Err(error.into()),
    }
}

/// Reads `none`, a rate, or a rate and a burst. The burst is by default what a second carries.
fn throttle(text: &str) -> Result<NewThrottle, String> {
    if text == "none" {
        return Ok(NewThrottle::None);
    }
    let (rate, burst) = text.split_once('/').map_or((text, None), |(rate, burst)| (rate, Some(burst)));
    let wrong = || "must be messages per second such as 50, with a burst such as 50/100, or none".to_owned();
    let messages_per_second: f64 = rate.parse().ok().filter(|rate: &f64| rate.is_finite()).ok_or_else(wrong)?;
    let burst = match burst {
        Some(burst) => burst.parse().map_err(|_| wrong())?,
        None => messages_per_second.ceil().max(1.0) as u32,
    };
    Ok(NewThrottle::Set(Throttle { messages_per_second, burst }))
}

/// The connections of all senders.
async fn list(worlds: &[World], json: bool) -> anyhow::Result<()> {
    let mut items = Vec::new();
    for world in worlds {
        for sender in lists::all(world, "/v1/senders", &[]).await? {
            let id = sender["id"].as_str().unwrap_or_default();
            for channel in sender["channels"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let mut connection = world.get(&format!("/v1/senders/{id}/channels/{channel}"), &[]).await?;
                connection["environment"] = world.environment.as_str().into();
                items.push(connection);
            }
        }
    }
    lists::show_items(&CONNECTIONS, items, worlds.len() > 1, json);
    Ok(())
}

fn ask_for_code() -> anyhow::Result<String> {
    if std::io::stdin().is_terminal() {
        eprint!("Code from the email: ");
        std::io::stderr().flush()?;
    }
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    Ok(line.trim().to_owned())
}
