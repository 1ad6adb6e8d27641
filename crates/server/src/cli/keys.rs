//! `nuncio keys`, on an installation or on a remote node.

use clap::Subcommand;
use nuncio_domain::{Environment, Timestamp};
use reqwest::Method;
use serde_json::json;

use super::values::time;
use crate::admin::{Command, keys::created};
use crate::client::lists::{self, KEYS};
use crate::client::profile::{Access, Remote, environment};
use crate::client::{say, say_json};

#[derive(Debug, Subcommand)]
pub(super) enum KeysAction {
    /// Create a key. It is printed once, alone on standard output.
    #[command(after_help = "Example: nuncio keys create --name shop --env live --permissions messages:send,messages:read")]
    Create {
        /// What the key is for.
        #[arg(long)]
        name: String,
        /// The environment of the key.
        #[arg(long, value_parser = environment())]
        env: Environment,
        /// Permissions, separated by commas, such as messages:send,messages:read [default: everything, or what the key of a
        /// remote node may do].
        #[arg(long, value_delimiter = ',')]
        permissions: Vec<String>,
        /// Refuse the key from this time on, such as 2027-01-31T09:30:00Z [default: it does not expire].
        #[arg(long, value_name = "TIME", value_parser = moment)]
        expires: Option<Timestamp>,
    },
    /// List keys.
    List {
        /// Only this environment [default: both].
        #[arg(long, value_parser = environment())]
        env: Option<Environment>,
    },
    /// Revoke a key permanently.
    Revoke {
        /// The key's ID (key_…), not the key.
        id: String,
    },
}

fn moment(text: &str) -> Result<Timestamp, String> {
    time(text).and_then(|text| Timestamp::parse(&text).map_err(|error| error.to_string()))
}

impl From<KeysAction> for Command {
    fn from(action: KeysAction) -> Self {
        match action {
            KeysAction::Create { name, env, permissions, expires } => Self::KeysCreate { name, env, permissions, expires_at: expires },
            KeysAction::List { env } => Self::KeysList { env },
            KeysAction::Revoke { id } => Self::KeysRevoke { id },
        }
    }
}

impl KeysAction {
    /// Runs the command on a remote node.
    pub(super) async fn run(self, access: Access, json: bool) -> anyhow::Result<()> {
        match self {
            Self::Create { name, env, permissions, expires } => {
                let world = Remote::new(access, Some(env), json).world()?;
                let permissions = (!permissions.is_empty()).then_some(permissions); // without a list, all
                let asked = json!({"name": name, "permissions": permissions, "expiresAt": expires});
                let mut key = world.call(Method::POST, "/v1/keys", Some(&asked)).await?;
                key["environment"] = world.environment.as_str().into();
                if json {
                    say_json(&key);
                    return Ok(());
                }
                let (text, notice) = created(&key);
                say(text);
                eprintln!("{notice}");
            }
            Self::List { env } => {
                let worlds = Remote::new(access, env, json).worlds()?;
                lists::list(&worlds, &KEYS, &[], usize::MAX, json).await?;
            }
            Self::Revoke { id } => lists::remove(&Remote::new(access, None, json).worlds()?, &format!("/v1/keys/{id}"), json).await?,
        }
        Ok(())
    }
}
