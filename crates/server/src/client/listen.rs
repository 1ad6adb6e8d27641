//! Events as they happen: shown, or handed to a local program as its webhook would be.

use std::time::{Duration, Instant};

use anyhow::bail;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use futures::{StreamExt as _, stream};
use nuncio_core::webhooks::{new_secret, sign};
use nuncio_domain::{Ids, Redacted, line};
use reqwest::{Client, Url};
use serde_json::{Value, json};

use super::{CallError, World, say, say_json};
use crate::option_values::web;

/// How long the local program may take, as any receiver of webhooks.
const PATIENCE: Duration = Duration::from_secs(15);

/// Which events are followed.
#[derive(Debug, clap::Args)]
pub(crate) struct Which {
    /// Only events of these types, separated by commas, such as message.delivered,message.failed.
    #[arg(long = "type", value_name = "TYPES")]
    pub(crate) types: Option<String>,
    /// Only events of this resource.
    #[arg(long, value_name = "ID")]
    pub(crate) resource: Option<String>,
}

impl Which {
    fn query(&self) -> Vec<(&'static str, String)> {
        let types = self.types.iter().flat_map(|types| types.split(',')).map(|each| ("type", each.trim().to_owned()));
        types.chain(self.resource.iter().map(|id| ("resourceId", id.clone()))).collect()
    }
}

/// The events of all environments, as they happen.
fn events(worlds: &[World], which: &Which) -> impl futures::Stream<Item = Result<Value, CallError>> + Unpin {
    stream::select_all(worlds.iter().map(|world| world.follow(which.query()).boxed()))
}

/// Shows each event, until the program is ended.
pub(crate) async fn follow(worlds: &[World], which: &Which, json: bool) -> anyhow::Result<()> {
    let mut events = events(worlds, which);
    while let Some(event) = events.next().await {
        let event = event?;
        if json { say_json(&event) } else { say(summary(&event)) }
    }
    Ok(())
}

/// An event in one line.
fn summary(event: &Value) -> String {
    let text = |name: &str| event[name].as_str().unwrap_or_default();
    let data = &event["data"];
    let resource = data.as_object().and_then(|map| map.values().find(|value| value["id"].is_string())).unwrap_or(&Value::Null);
    let about = |name: &str| resource[name].as_str().map(|value| format!("  {value}")).unwrap_or_default();
    let who = if resource["direction"] == "inbound" { about("from").replacen("  ", "  from ", 1) } else { about("to") };
    let line = format!(
        "{}  {:4}  {:24}{}{}{who}{}",
        text("timestamp").get(11..23).unwrap_or_default(),
        text("environment"),
        text("type"),
        about("id"),
        about("channel"),
        about("errorMessage")
    );
    line::escaped(line.trim_end()).into_owned()
}

/// Where events are handed to.
#[derive(Debug, clap::Args)]
pub(crate) struct Forward {
    /// The local program, such as http://127.0.0.1:3000/hooks.
    #[arg(long, value_name = "URL", value_parser = web)]
    pub(crate) forward: Url,
    /// The signing secret [default: a new one, which is shown].
    #[arg(long, value_name = "SECRET", env = "NUNCIO_WEBHOOK_SECRET", hide_env_values = true)]
    pub(crate) secret: Option<String>,
    /// Forward this many of the newest events first.
    #[arg(long, value_name = "COUNT", default_value_t = 0, value_parser = clap::value_parser!(u8).range(..=100))]
    pub(crate) replay: u8,
    #[command(flatten)]
    pub(crate) which: Which,
}

/// Hands each event to a local program, signed as a webhook is (Standard Webhooks), and shows what it answered.
pub(crate) async fn listen(worlds: &[World], forward: &Forward, json: bool) -> anyhow::Result<()> {
    let ids = crate::system::ids();
    let secret = match &forward.secret {
        Some(secret) => checked(secret)?,
        None => new_secret(&*ids.entropy),
    };
    if json {
        say_json(&json!({"forward": forward.forward, "secret": secret.expose()}));
    } else {
        say(format!("events of {} are forwarded to {}, signed with\n\n  {}\n", names(worlds), forward.forward, secret.expose()));
    }
    let hand = Hand { json, http: Client::builder().no_proxy().timeout(PATIENCE).build()?, url: forward.forward.clone(), secret, ids };
    for world in worlds.iter().filter(|_| forward.replay > 0) {
        let (limit, query) = (forward.replay.to_string(), forward.which.query());
        let query: Vec<(&str, &str)> =
            query.iter().map(|(name, value)| (*name, value.as_str())).chain([("limit", limit.as_str())]).collect();
        let mut newest = world.get("/v1/events", &query).await?;
        for event in newest["items"].as_array_mut().into_iter().flatten().rev() {
            hand.over(event).await;
        }
    }
    let mut events = events(worlds, &forward.which);
    while let Some(event) = events.next().await {
        hand.over(&event?).await;
    }
    Ok(())
}

fn names(worlds: &[World]) -> String {
    worlds.iter().map(|world| world.environment.as_str()).collect::<Vec<_>>().join(" and ")
}

fn checked(secret: &str) -> anyhow::Result<Redacted<String>> {
    if secret.strip_prefix("whsec_").is_none_or(|key| STANDARD.decode(key).map_or(true, |key| key.is_empty())) {
        bail!("--secret: must be whsec_ and a key in base64, like a webhook's secret");
    }
    Ok(Redacted::new(secret.to_owned()))
}

struct Hand {
    json: bool,
    http: Client,
    url: Url,
    secret: Redacted<String>,
    ids: Ids,
}

impl Hand {
    /// Posts one event. What went wrong is shown; nothing is tried again, the developer sees it.
    async fn over(&self, event: &Value) {
        let Some(id) = event["id"].as_str().and_then(|id| id.parse().ok()) else { return };
        let body = event.to_string();
        let signature = sign(std::slice::from_ref(&self.secret), id, self.ids.clock.now(), body.as_bytes());
        let request = self.http.post(self.url.clone()).header("content-type", "application/json");
        let request = request.header("webhook-id", signature.id).header("webhook-timestamp", signature.timestamp);
        let started = Instant::now();
        let response = request.header("webhook-signature", signature.signature).body(body).send().await;
        let milliseconds = started.elapsed().as_millis() as u64;
        let answered = match &response {
            Ok(response) => format!("{} in {milliseconds} ms", response.status()),
            Err(error) if error.is_timeout() => format!("no response within {} seconds", PATIENCE.as_secs()),
            Err(_) => format!("no server responds at {}", self.url),
        };
        if !self.json {
            return say(format!("{}  →  {answered}", summary(event)));
        }
        let (status, error) = match &response {
            Ok(response) => (Some(response.status().as_u16()), None),
            Err(_) => (None, Some(answered)),
        };
        say_json(&json!({"event": event, "status": status, "milliseconds": milliseconds, "error": error}));
    }
}
