//! `nuncio webhooks`: where events are posted to, and the deliveries.

use std::time::{Duration, Instant};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};
use nuncio_domain::line;
use nuncio_domain::webhook::DeliveryStatus;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::values::{count, joined, names};
use crate::client::life::Outcome;
use crate::client::lists::{self, Act, DELIVERIES, WEBHOOKS};
use crate::client::profile::Remote;
use crate::client::{World, say};

/// What to say where a command needs a webhook.
const NONE: &str = "there is no webhook; `nuncio webhooks set URL` sets one";

/// How long to wait for the response to a test event.
const PATIENCE: Duration = Duration::from_secs(5);

/// Whose webhook a command is about.
#[derive(Debug, Args)]
pub(super) struct Whose {
    /// ID or name of the sender whose webhook it is [default: the default sender].
    #[arg(long, conflicts_with = "own")]
    sender: Option<String>,
    /// The environment's webhook, for events without a sender.
    #[arg(long)]
    own: bool,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum OldSecret {
    /// Stop signing with it at once.
    Now,
    /// Sign with both for a day.
    #[value(name = "24h")]
    Day,
}

#[derive(Debug, Subcommand)]
pub(super) enum WebhooksAction {
    /// List the webhooks of all senders and of the environment.
    List,
    /// Show a webhook.
    Show(Whose),
    /// Set where events are posted to. The signing secret is shown once.
    Set {
        /// A public https URL.
        url: String,
        #[command(flatten)]
        whose: Whose,
        /// Which events, separated by commas [default: those of messages, conversations, broadcasts, templates and invitations; with --own
        /// those of templates, invitations and contacts].
        #[arg(long, value_delimiter = ',')]
        events: Vec<String>,
    },
    /// Enable a webhook again, such as after it failed for days.
    Enable(Whose),
    /// Disable a webhook.
    Disable(Whose),
    /// Replace the signing secret. The new one is shown once.
    Rotate {
        #[command(flatten)]
        whose: Whose,
        /// When the old secret expires.
        #[arg(long, value_name = "WHEN", default_value = "24h")]
        expire_old: OldSecret,
    },
    /// Send a test event and show the response. Fails unless the webhook confirms it.
    Test(Whose),
    /// Remove a webhook.
    Remove(Whose),
    /// List deliveries, newest first.
    Deliveries {
        /// Only those with this status.
        #[arg(long, value_delimiter = ',', value_parser = names(DeliveryStatus::ALL, DeliveryStatus::as_str))]
        status: Vec<String>,
        /// Only those of this resource.
        #[arg(long, value_name = "ID")]
        resource: Option<String>,
        /// The most to list per environment.
        #[arg(long, default_value_t = 20, value_parser = count())]
        limit: usize,
    },
    /// Show a delivery, with every attempt and response.
    Delivery {
        /// The delivery.
        id: String,
    },
    /// Repeat a delivery.
    Replay {
        /// The delivery.
        id: String,
    },
}

impl Whose {
    /// The sender; `None` for the environment's own webhook.
    async fn sender(&self, world: &World) -> anyhow::Result<Option<Value>> {
        if self.own { Ok(None) } else { lists::sender(world, self.sender.as_deref()).await.map(Some) }
    }

    /// The webhook; `None` when there is none.
    async fn find(&self, world: &World) -> anyhow::Result<Option<Value>> {
        match self.sender(world).await? {
            Some(sender) => Ok(sender.get("webhook").filter(|webhook| !webhook.is_null()).cloned()),
            None => own(world).await,
        }
    }

    /// Changes it. `change` has the names of `PUT /v1/webhook`.
    async fn change(&self, world: &World, change: Map<String, Value>) -> anyhow::Result<Value> {
        match self.sender(world).await? {
            Some(sender) => {
                let name = |name: &str| format!("webhook{}{}", name[..1].to_uppercase(), &name[1..]);
                let body: Map<String, Value> = change.into_iter().map(|(key, value)| (name(&key), value)).collect();
                let sender = world.call(Method::PATCH, &path(&sender), Some(&body.into())).await?;
                Ok(lists::unwrapped(sender)["webhook"].take())
            }
            None => {
                let mut body = json!({});
                if let Some(before) = own(world).await? {
                    body = json!({"url": before["url"], "events": before["events"], "active": before["active"]});
                }
                change.into_iter().for_each(|(name, value)| body[name] = value);
                Ok(world.call(Method::PUT, "/v1/webhook", Some(&body)).await?)
            }
        }
    }

    /// Makes a request below it.
    async fn post(&self, world: &World, below: &str, body: Option<&Value>) -> anyhow::Result<Value> {
        let place = self.sender(world).await?.map_or_else(|| "/v1".to_owned(), |sender| path(&sender));
        Ok(world.call(Method::POST, &format!("{place}/webhook/{below}"), body).await?)
    }
}

/// The environment's own webhook.
async fn own(world: &World) -> anyhow::Result<Option<Value>> {
    match world.get("/v1/webhook", &[]).await {
        Err(error) if error.is_not_found() => Ok(None),
        answer => Ok(Some(lists::unwrapped(answer?))),
    }
}

fn path(sender: &Value) -> String {
    format!("/v1/senders/{}", sender["id"].as_str().unwrap_or_default())
}

impl WebhooksAction {
    pub(super) async fn run(self, at: &Remote) -> anyhow::Result<Outcome> {
        let json = at.json();
        let printed = |answer: Value| lists::print(&answer, json);
        match self {
            Self::List => list(&at.worlds()?, json).await?,
            Self::Show(whose) => show(&at.worlds()?, &whose, json).await?,
            Self::Set { url, whose, events } => {
                let mut change = Map::from_iter([("url".to_owned(), url.into())]);
                if !events.is_empty() {
                    change.insert("events".to_owned(), events.into());
                }
                printed(whose.change(&at.world()?, change).await?);
            }
            Self::Enable(whose) => printed(switch(at, &whose, true).await?),
            Self::Disable(whose) => printed(switch(at, &whose, false).await?),
            Self::Rotate { whose, expire_old } => {
                let body = json!({"expireOld": match expire_old { OldSecret::Now => "now", OldSecret::Day => "24h" }});
                printed(whose.post(&at.world()?, "secret", Some(&body)).await?);
            }
            Self::Test(whose) => return test(&at.world()?, &whose, json).await,
            Self::Remove(whose) => {
                let world = at.world()?;
                if whose.own {
                    printed(world.call(Method::DELETE, "/v1/webhook", None).await?);
                } else {
                    printed(whose.change(&world, Map::from_iter([("url".to_owned(), Value::Null)])).await?);
                }
            }
            Self::Deliveries { status, resource, limit } => {
                let status = joined(&status);
                let query = [("status", status.as_deref()), ("resourceId", resource.as_deref())];
                lists::list(&at.worlds()?, &DELIVERIES, &query, limit, json).await?;
            }
            Self::Delivery { id } => lists::show(&at.worlds()?, &DELIVERIES, &id, json).await?,
            Self::Replay { id } => lists::act(&at.worlds()?, &DELIVERIES, &id, Act::post("/replay", None), json).await?,
        }
        Ok(Outcome::Sent)
    }
}

async fn switch(at: &Remote, whose: &Whose, active: bool) -> anyhow::Result<Value> {
    let world = at.world()?;
    whose.find(&world).await?.context(NONE)?;
    whose.change(&world, Map::from_iter([("active".to_owned(), active.into())])).await
}

/// Posts a test event and shows what became of it.
async fn test(world: &World, whose: &Whose, json: bool) -> anyhow::Result<Outcome> {
    if whose.find(world).await?.context(NONE)?["active"] == false {
        bail!("it is disabled; `nuncio webhooks enable`");
    }
    let posted = whose.post(world, "test", None).await?;
    let delivery = tried(world, posted["deliveryId"].as_str().context("the response has no delivery ID")?).await?;
    if json {
        lists::print(&delivery, true)
    } else {
        say(line::escaped(&described(&delivery)))
    }
    Ok(match (delivery["status"].as_str(), last_attempt(&delivery)) {
        (Some("delivered"), _) => Outcome::Sent,
        (_, Some(_)) => Outcome::Failed,
        _ => Outcome::UnderWay,
    })
}

/// A delivery after its first attempt, or when the time is up.
async fn tried(world: &World, id: &str) -> anyhow::Result<Value> {
    let started = Instant::now();
    loop {
        let delivery = lists::unwrapped(world.get(&format!("{}/{id}", DELIVERIES.path), &[]).await?);
        if last_attempt(&delivery).is_some() || started.elapsed() > PATIENCE {
            return Ok(delivery);
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

fn last_attempt(delivery: &Value) -> Option<&Value> {
    delivery["attempts"].as_array()?.last()
}

/// A delivery in words: its status, and the response to the last attempt.
fn described(delivery: &Value) -> String {
    let text = |name: &str| delivery[name].as_str().unwrap_or_default();
    let (id, status) = (text("id"), text("status"));
    let Some(attempt) = last_attempt(delivery) else {
        return format!("{id}  {status}: no response yet; `nuncio webhooks delivery {id}` shows it later");
    };
    let response = match (attempt["responseStatus"].as_u64(), attempt["error"].as_str()) {
        (Some(code), _) => format!("{code} in {} ms", attempt["durationMs"]),
        (None, error) => error.unwrap_or("no response").to_owned(),
    };
    format!("{id}  {status}: {response}  ({})", text("url"))
}

async fn show(worlds: &[World], whose: &Whose, json: bool) -> anyhow::Result<()> {
    let (mut shown, mut refused) = (false, None);
    for world in worlds {
        let found = match whose.find(world).await {
            // A sender is in one environment only.
            Err(error) if whose.sender.is_some() => {
                refused = Some(error);
                continue;
            }
            found => found?,
        };
        shown = true;
        let environment = world.environment.as_str();
        if found.is_none() && !json {
            say(format!("no webhook in {environment}; `nuncio webhooks set URL` sets one"));
            continue;
        }
        let mut webhook = found.unwrap_or_else(|| json!({"url": null}));
        webhook["environment"] = environment.into();
        lists::print(&webhook, json);
    }
    refused.filter(|_| !shown).map_or(Ok(()), Err)
}

/// All webhooks, each with the name of its sender.
async fn list(worlds: &[World], json: bool) -> anyhow::Result<()> {
    let mut items = Vec::new();
    for world in worlds {
        let mut found: Vec<(Value, Value)> = Vec::new();
        for mut sender in lists::all(world, "/v1/senders", &[]).await? {
            found.push((sender["name"].take(), sender["webhook"].take()));
        }
        found.push((Value::Null, own(world).await?.unwrap_or_default()));
        items.extend(found.into_iter().filter(|(_, webhook)| webhook.is_object()).map(|(sender, mut webhook)| {
            webhook["sender"] = sender;
            webhook["environment"] = world.environment.as_str().into();
            webhook
        }));
    }
    lists::show_items(&WEBHOOKS, items, worlds.len() > 1, json);
    Ok(())
}
