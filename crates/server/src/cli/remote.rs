//! Commands that use the HTTP API of a running node.

use anyhow::bail;
use clap::Subcommand;
use nuncio_domain::Environment;
use reqwest::Method;
use serde_json::Value;

use super::audit::AuditAction;
use super::broadcasts::BroadcastsAction;
use super::contacts::ContactsAction;
use super::events::EventsAction;
use super::input::On;
use super::invitations::InvitationsAction;
use super::messages::MessagesAction;
use super::suppressions::SuppressionsAction;
use super::templates::TemplatesAction;
use super::webhooks::WebhooksAction;
use crate::client::life::Outcome;
use crate::client::listen::{self, Forward};
use crate::client::lists;
use crate::client::profile::{self, Access, Remote, environment};
use crate::client::send::{self, NewMessage, read_input};
use crate::client::{say, say_json};

/// What is asked of a running node, with a key.
#[derive(Debug, Subcommand)]
pub(super) enum RemoteAction {
    /// Test an API key and save it with the URL of its node. Asks for the key if none is given.
    #[command(after_help = "Example: nuncio login --server https://messages.example.org")]
    Login {
        #[command(flatten)]
        at: Access,
        /// Print JSON, for scripts.
        #[arg(long)]
        json: bool,
    },
    /// Delete a profile. Its keys stay valid; `nuncio keys revoke` ends that.
    Logout {
        /// The profile [default: that of the last login].
        #[arg(long, value_name = "NAME", env = "NUNCIO_PROFILE")]
        profile: Option<String>,
    },
    /// Send a message on any channel, and follow it until it is delivered.
    #[command(after_help = SEND)]
    Send {
        #[command(flatten)]
        at: Remote,
        #[command(flatten)]
        message: Box<NewMessage>,
    },
    /// List, show, follow, cancel and resolve messages.
    Messages(On<Remote, MessagesAction>),
    /// List past events, or follow new ones.
    Events(On<Remote, EventsAction>),
    /// Forward events to a program on this machine, signed as a webhook would be, for development.
    #[command(after_help = "Example: nuncio listen --forward http://127.0.0.1:3000/hooks --type message.delivered,message.failed")]
    Listen {
        #[command(flatten)]
        at: Remote,
        #[command(flatten)]
        forward: Forward,
    },
    /// Manage contacts: people and how to reach them.
    Contacts(On<Remote, ContactsAction>),
    /// Manage broadcasts: one message to many recipients.
    Broadcasts(On<Remote, BroadcastsAction>),
    /// Manage templates: texts with variables, which WhatsApp approves.
    Templates(On<Remote, TemplatesAction>),
    /// Manage invitations: links by which clients set up senders.
    Invitations(On<Remote, InvitationsAction>),
    /// Manage suppressions: recipients that receive no messages.
    Suppressions(On<Remote, SuppressionsAction>),
    /// Manage webhooks and their deliveries.
    Webhooks(On<Remote, WebhooksAction>),
    /// Show who changed what.
    Audit(On<Remote, AuditAction>),
    /// Make any API request and print the JSON of its response, such as: nuncio api GET /v1/me
    Api {
        #[command(flatten)]
        at: Access,
        /// The environment, where there are keys to both.
        #[arg(long, value_parser = environment())]
        env: Option<Environment>,
        /// GET, POST, PUT, PATCH or DELETE.
        method: Method,
        /// The path, with its query.
        path: String,
        /// The JSON body; @FILE reads it from a file, - from standard input.
        body: Option<String>,
    },
}

const SEND: &str = "\
Exit codes: 0 sent or delivered, or only accepted with --wait 0; 1 failed; 3 server unreachable;
4 still in progress after --wait.

Examples:
  nuncio send +34600111222 'Your parcel is on its way'
  nuncio send ana@example.org - --subject Invoice --attach invoice.pdf < body.txt";

impl RemoteAction {
    /// Runs the command.
    pub(super) async fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Login { at, json } => login(&at, json).await?,
            Self::Logout { profile } => say(format!("profile {:?} deleted", profile::logout(profile)?)),
            Self::Send { at, message } => return send::send(&at.world()?, &message, at.json()).await,
            Self::Messages(On { at, action }) => return action.run(&at).await,
            Self::Events(On { at, action }) => action.run(&at).await?,
            Self::Listen { at, forward } => listen::listen(&at.worlds()?, &forward, at.json()).await?,
            Self::Contacts(On { at, action }) => return action.run(&at).await,
            Self::Broadcasts(On { at, action }) => return action.run(&at).await,
            Self::Templates(On { at, action }) => action.run(&at).await?,
            Self::Invitations(On { at, action }) => action.run(&at).await?,
            Self::Suppressions(On { at, action }) => return action.run(&at).await,
            Self::Webhooks(On { at, action }) => return action.run(&at).await,
            Self::Audit(On { at, action }) => action.run(&at).await?,
            Self::Api { at, env, method, path, body } => any(&Remote::new(at, env, true), method, &path, body.as_deref()).await?,
        }
        Ok(Outcome::Sent)
    }
}

async fn login(at: &Access, json: bool) -> anyhow::Result<()> {
    let me = profile::login(at).await?;
    if json {
        lists::print(&me, true);
    } else {
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        say(format!(
            "profile {}: the {} environment of project {} at {}",
            text(&me["profile"]),
            text(&me["environment"]),
            text(&me["project"]["name"]),
            text(&me["server"])
        ));
    }
    Ok(())
}

/// A request as it is given. Its response is JSON already.
async fn any(at: &Remote, method: Method, path: &str, body: Option<&str>) -> anyhow::Result<()> {
    let world = at.world()?;
    let (path, query) = path.split_once('?').unwrap_or((path, ""));
    if !path.starts_with('/') {
        bail!("{path:?}: the path must begin with /, such as /v1/me");
    }
    let mut url = world.url(path, &[]);
    url.set_query((!query.is_empty()).then_some(query));
    let request = world.request(method, url);
    let request = match body {
        Some(body) => request.header("content-type", "application/json").body(match body.strip_prefix('@') {
            Some(file) => read_input(file)?,
            None if body == "-" => read_input("-")?,
            None => body.to_owned(),
        }),
        None => request,
    };
    say_json(&world.answer(request).await?);
    Ok(())
}
