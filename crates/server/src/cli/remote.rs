//! Commands that speak to a running node over its HTTP API.

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use reqwest::Method;
use serde_json::{Value, json};

use super::input::{Decision, read};
use crate::client::broadcasts::{self, BroadcastsAction};
use crate::client::life::{self, Outcome};
use crate::client::listen::{self, Forward, Which};
use crate::client::lists::{self, Act, CONTACTS, DELIVERIES, EVENTS, INVITATIONS, MESSAGES, SUPPRESSIONS, TEMPLATES};
use crate::client::profile::{self, Access, Remote};
use crate::client::send::{self, NewMessage};
use crate::client::{World, say, say_json};

/// What is asked of a running node, with a key.
#[derive(Debug, Subcommand)]
pub(super) enum RemoteAction {
    /// Keep where a node is and an API key to it, after trying the key. Asks for the key if none is given.
    Login {
        #[command(flatten)]
        at: Access,
    },
    /// Forget a profile. Its keys stay good: see `nuncio keys revoke`.
    Logout {
        /// The profile [default: the last one that was logged in].
        #[arg(long, value_name = "NAME", env = "NUNCIO_PROFILE")]
        profile: Option<String>,
    },
    /// Send a message on any channel, and watch it until it is delivered.
    Send {
        #[command(flatten)]
        at: Remote,
        #[command(flatten)]
        message: Box<NewMessage>,
    },
    /// Messages that were sent and that came in.
    Messages {
        #[command(flatten)]
        at: Remote,
        #[command(subcommand)]
        action: MessagesAction,
    },
    /// What happened, and what happens.
    Events {
        #[command(flatten)]
        at: Remote,
        #[command(subcommand)]
        action: EventsAction,
    },
    /// Hand events to a program on this machine as its webhook would be, while developing.
    Listen {
        #[command(flatten)]
        at: Remote,
        #[command(flatten)]
        forward: Forward,
    },
    /// People and how to reach them.
    Contacts {
        #[command(flatten)]
        at: Remote,
        #[command(subcommand)]
        action: ContactsAction,
    },
    /// The same message to many.
    Broadcasts {
        #[command(flatten)]
        at: Remote,
        #[command(subcommand)]
        action: BroadcastsAction,
    },
    /// Texts that a provider approves.
    Templates {
        #[command(flatten)]
        at: Remote,
        #[command(subcommand)]
        action: TemplatesAction,
    },
    /// Links by which clients connect their own numbers.
    Invitations {
        #[command(flatten)]
        at: Remote,
        #[command(subcommand)]
        action: InvitationsAction,
    },
    /// Recipients that nothing is sent to.
    Suppressions {
        #[command(flatten)]
        at: Remote,
        #[command(subcommand)]
        action: SuppressionsAction,
    },
    /// Where events go, and what became of them.
    Webhooks {
        #[command(flatten)]
        at: Remote,
        #[command(subcommand)]
        action: WebhooksAction,
    },
    /// Make any request of the API, such as: nuncio api GET /v1/me
    Api {
        #[command(flatten)]
        at: Remote,
        /// GET, POST, PUT, PATCH or DELETE.
        method: Method,
        /// The path, with its query.
        path: String,
        /// The JSON body; @FILE reads it from a file, - from standard input.
        body: Option<String>,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum MessagesAction {
    /// Show the newest messages.
    List {
        /// Those with this status alone.
        #[arg(long)]
        status: Option<String>,
        /// Those on this channel alone.
        #[arg(long)]
        channel: Option<String>,
        /// Those to this recipient alone.
        #[arg(long)]
        to: Option<String>,
        /// Those from this number or address alone.
        #[arg(long)]
        from: Option<String>,
        /// Those of this broadcast alone.
        #[arg(long, value_name = "ID")]
        broadcast: Option<String>,
        /// inbound or outbound.
        #[arg(long)]
        direction: Option<String>,
        /// Not before this moment, such as 2027-01-31T09:30:00Z.
        #[arg(long, value_name = "TIME")]
        since: Option<String>,
        /// At most so many of each environment.
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Show one message: why it took its way, what happened to it, and what it cost.
    Show {
        /// The message.
        id: String,
    },
    /// Watch a message until it is final, or all messages as they change.
    Follow {
        /// The message [default: all].
        id: Option<String>,
    },
    /// Keep a message that was not sent yet from being sent.
    Cancel {
        /// The message.
        id: String,
    },
    /// Decide about a held message.
    Resolve {
        /// The message.
        id: String,
        /// What to do.
        #[arg(long)]
        action: Decision,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum EventsAction {
    /// Show the newest events.
    List {
        #[command(flatten)]
        which: Which,
        /// At most so many of each environment.
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Show events as they happen.
    Follow {
        #[command(flatten)]
        which: Which,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ContactsAction {
    /// Show the newest contacts.
    List {
        /// The one with this phone number alone.
        #[arg(long)]
        phone: Option<String>,
        /// The one with this email address alone.
        #[arg(long)]
        email: Option<String>,
        /// Those whose name holds this alone.
        #[arg(long)]
        name: Option<String>,
        /// At most so many of each environment.
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Show one contact.
    Show {
        /// The contact.
        id: String,
    },
    /// Make a contact.
    Create {
        /// How to reach them, as channel=identifier, such as sms=+34600111222. Repeatable.
        #[arg(long = "channel", value_name = "CHANNEL=ID", required = true)]
        channels: Vec<String>,
        /// Their name.
        #[arg(long)]
        name: Option<String>,
        /// Your own data, as name=value. Repeatable.
        #[arg(long, value_name = "NAME=VALUE")]
        metadata: Vec<String>,
    },
    /// Erase a contact, with what was sent to and came from them.
    Delete {
        /// The contact.
        id: String,
    },
    /// Make one contact of two.
    Merge {
        /// The one that stays.
        id: String,
        /// The one that goes into it.
        other: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum TemplatesAction {
    /// Show the newest templates.
    List {
        /// At most so many of each environment.
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Show one template.
    Show {
        /// The template.
        id: String,
    },
    /// Make a template.
    Create {
        /// A file with the JSON body of the request; - for standard input.
        file: String,
    },
    /// Have the provider approve a template.
    Submit {
        /// The template.
        id: String,
    },
    /// Remove a template.
    Delete {
        /// The template.
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum InvitationsAction {
    /// Show the newest invitations.
    List {
        /// Those with this status alone.
        #[arg(long)]
        status: Option<String>,
        /// At most so many of each environment.
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Show one invitation.
    Show {
        /// The invitation.
        id: String,
    },
    /// Make a link for a client.
    Create {
        /// The client's name.
        #[arg(long)]
        client: Option<String>,
        /// The client's email address.
        #[arg(long)]
        email: Option<String>,
        /// Countries that the client's number may be of, such as ES,MX [default: any].
        #[arg(long, value_delimiter = ',')]
        countries: Vec<String>,
        /// Days that the link is good for [default: 7].
        #[arg(long)]
        days: Option<u32>,
    },
    /// Take a link back.
    Cancel {
        /// The invitation.
        id: String,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum SuppressionsAction {
    /// Show who is suppressed.
    List {
        /// This recipient alone.
        #[arg(long)]
        to: Option<String>,
        /// At most so many of each environment.
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Send nothing to a recipient any more.
    Add {
        /// Phone number, email address, or chat id (with --channel).
        to: String,
        /// The channel of a chat id.
        #[arg(long)]
        channel: Option<String>,
    },
    /// Send to a recipient again.
    Remove {
        /// The suppression's id.
        id: String,
    },
}

/// Whose webhook a command is about.
#[derive(Debug, Args)]
pub(super) struct Whose {
    /// The sender whose messages it hears of [default: the default sender].
    #[arg(long, value_name = "ID", conflicts_with = "own")]
    sender: Option<String>,
    /// The environment's own webhook, which hears of what no sender has to do with.
    #[arg(long)]
    own: bool,
}

impl Whose {
    /// The path of the sender; `None` for the environment's own.
    async fn sender(&self, world: &World) -> anyhow::Result<Option<String>> {
        if self.own {
            return Ok(None);
        }
        if let Some(id) = &self.sender {
            return Ok(Some(format!("/v1/senders/{id}")));
        }
        let senders = world.get("/v1/senders", &[("limit", "100")]).await?;
        let default = senders["items"].as_array().into_iter().flatten().find(|sender| sender["isDefault"] == true);
        let id = default.and_then(|sender| sender["id"].as_str()).context("there is no default sender; say --sender ID or --own")?;
        Ok(Some(format!("/v1/senders/{id}")))
    }

    /// The webhook; `None` when there is none.
    async fn find(&self, world: &World) -> anyhow::Result<Option<Value>> {
        let Some(sender) = self.sender(world).await? else {
            return match world.get("/v1/webhook", &[]).await {
                Err(error) if error.is_not_found() => Ok(None),
                answer => Ok(Some(lists::unwrapped(answer?))),
            };
        };
        let sender = lists::unwrapped(world.get(&sender, &[]).await?);
        Ok(sender.get("webhook").filter(|webhook| !webhook.is_null()).cloned())
    }

    /// Sets it, or removes it without a URL.
    async fn set(&self, world: &World, url: Option<&str>, events: &[String]) -> anyhow::Result<Value> {
        let Some(sender) = self.sender(world).await? else {
            let Some(url) = url else { return Ok(world.call(Method::DELETE, "/v1/webhook", None).await?) };
            let mut body = json!({"url": url});
            if !events.is_empty() {
                body["events"] = events.into();
            }
            return Ok(world.call(Method::PUT, "/v1/webhook", Some(&body)).await?);
        };
        let mut body = json!({"webhookUrl": url});
        if !events.is_empty() {
            body["webhookEvents"] = events.into();
        }
        let sender = lists::unwrapped(world.call(Method::PATCH, &sender, Some(&body)).await?);
        Ok(sender["webhook"].clone())
    }

    async fn test(&self, world: &World) -> anyhow::Result<Value> {
        let place = self.sender(world).await?.unwrap_or_else(|| "/v1".to_owned());
        Ok(world.call(Method::POST, &format!("{place}/webhook/test"), None).await?)
    }
}

#[derive(Debug, Subcommand)]
pub(super) enum WebhooksAction {
    /// Show a webhook.
    Show {
        #[command(flatten)]
        whose: Whose,
    },
    /// Set where events go. The secret that they are signed with is shown once.
    Set {
        /// A public https address.
        url: String,
        #[command(flatten)]
        whose: Whose,
        /// Which events, separated by commas [default: all that are usual].
        #[arg(long, value_delimiter = ',')]
        events: Vec<String>,
    },
    /// Send a test event.
    Test {
        #[command(flatten)]
        whose: Whose,
    },
    /// Remove a webhook.
    Remove {
        #[command(flatten)]
        whose: Whose,
    },
    /// Show the newest deliveries.
    Deliveries {
        /// Those with this status alone: pending, delivered or dead.
        #[arg(long)]
        status: Option<String>,
        /// Those of this resource alone.
        #[arg(long, value_name = "ID")]
        resource: Option<String>,
        /// At most so many of each environment.
        #[arg(long, default_value_t = 20)]
        limit: usize,
    },
    /// Show one delivery, with every try and what was answered.
    Delivery {
        /// The delivery.
        id: String,
    },
    /// Make a delivery again.
    Replay {
        /// The delivery.
        id: String,
    },
}

impl RemoteAction {
    /// Runs the command.
    pub(super) async fn run(self) -> anyhow::Result<Outcome> {
        match self {
            Self::Login { at } => login(&at).await?,
            Self::Logout { profile } => say(format!("profile {:?} is forgotten", profile::logout(profile)?)),
            Self::Send { at, message } => return send::send(&at.world()?, &message, at.json()).await,
            Self::Messages { at, action } => return action.run(&at).await,
            Self::Events { at, action } => action.run(&at).await?,
            Self::Listen { at, forward } => listen::listen(&at.worlds()?, &forward).await?,
            Self::Contacts { at, action } => action.run(&at).await?,
            Self::Broadcasts { at, action } => return broadcasts::run(&at, action).await,
            Self::Templates { at, action } => action.run(&at).await?,
            Self::Invitations { at, action } => action.run(&at).await?,
            Self::Suppressions { at, action } => action.run(&at).await?,
            Self::Webhooks { at, action } => action.run(&at).await?,
            Self::Api { at, method, path, body } => any(&at, method, &path, body.as_deref()).await?,
        }
        Ok(Outcome::Sent)
    }
}

async fn login(at: &Access) -> anyhow::Result<()> {
    let me = profile::login(at).await?;
    if at.json {
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

/// A request as it is given, whatever it is. Its answer is JSON already.
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
            Some(file) => read(file)?,
            None if body == "-" => read("-")?,
            None => body.to_owned(),
        }),
        None => request,
    };
    say_json(&world.answer(request).await?);
    Ok(())
}

impl MessagesAction {
    async fn run(self, at: &Remote) -> anyhow::Result<Outcome> {
        let (worlds, json) = (at.worlds()?, at.json());
        match self {
            Self::List { status, channel, to, from, broadcast, direction, since, limit } => {
                let query = [
                    ("status", status.as_deref()),
                    ("channel", channel.as_deref()),
                    ("to", to.as_deref()),
                    ("from", from.as_deref()),
                    ("broadcastId", broadcast.as_deref()),
                    ("direction", direction.as_deref()),
                    ("since", since.as_deref()),
                ];
                lists::list(&worlds, &MESSAGES, &query, limit, json).await?;
            }
            Self::Show { id } if json => lists::show(&worlds, &MESSAGES, &id, true).await?,
            Self::Show { id } => say(life::describe(&lists::find(&worlds, &MESSAGES, &id).await?.1)),
            Self::Follow { id: Some(id) } => {
                let (world, message) = lists::find(&worlds, &MESSAGES, &id).await?;
                return life::watch(world, &message, std::time::Duration::MAX, json).await;
            }
            Self::Follow { id: None } => {
                let types = ["queued", "sending", "sent", "delivered", "read", "failed", "inbound"].map(|name| format!("message.{name}"));
                listen::follow(&worlds, &Which { types: Some(types.join(",")), resource: None }, json).await?;
            }
            Self::Cancel { id } => lists::act(&worlds, &MESSAGES, &id, Act::post("/cancel", None), json).await?,
            Self::Resolve { id, action } => {
                let body = json!({"action": action.as_str()});
                lists::act(&worlds, &MESSAGES, &id, Act::post("/resolve", Some(&body)), json).await?;
            }
        }
        Ok(Outcome::Sent)
    }
}

impl EventsAction {
    async fn run(self, at: &Remote) -> anyhow::Result<()> {
        match self {
            Self::List { which, limit } => {
                let types: Vec<&str> = which.types.iter().flat_map(|types| types.split(',')).collect();
                let mut query: Vec<(&str, Option<&str>)> = types.into_iter().map(|each| ("type", Some(each))).collect();
                query.push(("resourceId", which.resource.as_deref()));
                lists::list(&at.worlds()?, &EVENTS, &query, limit, at.json()).await
            }
            Self::Follow { which } => listen::follow(&at.worlds()?, &which, at.json()).await,
        }
    }
}

impl ContactsAction {
    async fn run(self, at: &Remote) -> anyhow::Result<()> {
        let (worlds, json) = (at.worlds()?, at.json());
        match self {
            Self::List { phone, email, name, limit } => {
                let query = [("phoneNumber", phone.as_deref()), ("email", email.as_deref()), ("name", name.as_deref())];
                lists::list(&worlds, &CONTACTS, &query, limit, json).await
            }
            Self::Show { id } => lists::show(&worlds, &CONTACTS, &id, json).await,
            Self::Create { channels, name, metadata } => {
                let channels = channels.iter().map(|text| channel(text)).collect::<anyhow::Result<Vec<_>>>()?;
                let mut body = json!({"channels": channels, "metadata": send::pairs(&metadata)?});
                if let Some(name) = name {
                    body["displayName"] = name.into();
                }
                lists::print(&at.world()?.call(Method::POST, "/v1/contacts", Some(&body)).await?, json);
                Ok(())
            }
            Self::Delete { id } => lists::act(&worlds, &CONTACTS, &id, Act::delete(), json).await,
            Self::Merge { id, other } => {
                lists::act(&worlds, &CONTACTS, &id, Act::post("/merge", Some(&json!({"sourceContactId": other}))), json).await
            }
        }
    }
}

fn channel(text: &str) -> anyhow::Result<Value> {
    let (channel, identifier) = text.split_once('=').with_context(|| format!("{text:?} must be written channel=identifier"))?;
    Ok(json!({"channel": channel, "identifier": identifier}))
}

impl TemplatesAction {
    async fn run(self, at: &Remote) -> anyhow::Result<()> {
        let (worlds, json) = (at.worlds()?, at.json());
        match self {
            Self::List { limit } => lists::list(&worlds, &TEMPLATES, &[], limit, json).await,
            Self::Show { id } => lists::show(&worlds, &TEMPLATES, &id, json).await,
            Self::Create { file } => {
                let body: Value = serde_json::from_str(&read(&file)?).with_context(|| format!("{file} is not JSON"))?;
                lists::print(&at.world()?.call(Method::POST, "/v1/templates", Some(&body)).await?, json);
                Ok(())
            }
            Self::Submit { id } => lists::act(&worlds, &TEMPLATES, &id, Act::post("/submit", None), json).await,
            Self::Delete { id } => lists::act(&worlds, &TEMPLATES, &id, Act::delete(), json).await,
        }
    }
}

impl InvitationsAction {
    async fn run(self, at: &Remote) -> anyhow::Result<()> {
        let (worlds, json) = (at.worlds()?, at.json());
        match self {
            Self::List { status, limit } => lists::list(&worlds, &INVITATIONS, &[("status", status.as_deref())], limit, json).await,
            Self::Show { id } => lists::show(&worlds, &INVITATIONS, &id, json).await,
            Self::Create { client, email, countries, days } => {
                let body = json!({"clientName": client, "clientEmail": email, "allowedPhoneCountries": countries, "expiresInDays": days});
                lists::print(&at.world()?.call(Method::POST, "/v1/invitations", Some(&body)).await?, json);
                Ok(())
            }
            Self::Cancel { id } => lists::act(&worlds, &INVITATIONS, &id, Act::post("/cancel", None), json).await,
        }
    }
}

impl SuppressionsAction {
    async fn run(self, at: &Remote) -> anyhow::Result<()> {
        let json = at.json();
        match self {
            Self::List { to, limit } => lists::list(&at.worlds()?, &SUPPRESSIONS, &[("identifier", to.as_deref())], limit, json).await,
            Self::Add { to, channel } => {
                let mut body = json!({"identifier": to});
                if let Some(channel) = channel {
                    body["channel"] = channel.into();
                }
                lists::print(&at.world()?.call(Method::POST, "/v1/suppressions", Some(&body)).await?, json);
                Ok(())
            }
            Self::Remove { id } => lists::remove(&at.worlds()?, &format!("/v1/suppressions/{id}"), json).await,
        }
    }
}

impl WebhooksAction {
    async fn run(self, at: &Remote) -> anyhow::Result<()> {
        let json = at.json();
        match self {
            Self::Show { whose } => {
                for world in &at.worlds()? {
                    let (found, environment) = (whose.find(world).await?, world.environment.as_str());
                    if found.is_none() && !json {
                        say(format!("no webhook in {environment}; `nuncio webhooks set URL` sets one"));
                        continue;
                    }
                    let mut webhook = found.unwrap_or_else(|| json!({"url": null}));
                    webhook["environment"] = environment.into();
                    lists::print(&webhook, json);
                }
                Ok(())
            }
            Self::Set { url, whose, events } => {
                lists::print(&whose.set(&at.world()?, Some(&url), &events).await?, json);
                Ok(())
            }
            Self::Test { whose } => {
                lists::print(&whose.test(&at.world()?).await?, json);
                Ok(())
            }
            Self::Remove { whose } => {
                lists::print(&whose.set(&at.world()?, None, &[]).await?, json);
                Ok(())
            }
            Self::Deliveries { status, resource, limit } => {
                let query = [("status", status.as_deref()), ("resourceId", resource.as_deref())];
                lists::list(&at.worlds()?, &DELIVERIES, &query, limit, json).await
            }
            Self::Delivery { id } => lists::show(&at.worlds()?, &DELIVERIES, &id, json).await,
            Self::Replay { id } => lists::act(&at.worlds()?, &DELIVERIES, &id, Act::post("/replay", None), json).await,
        }
    }
}
