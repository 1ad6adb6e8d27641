//! `nuncio send`: sends one message on any channel, and follows it.

use std::fmt::Display;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, anyhow, bail};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use nuncio_domain::line;
use reqwest::Method;
use serde_json::{Map, Value, json};

use super::life::{self, Outcome};
use super::{CallError, World, say, say_json};
use crate::option_values::{channel_or, object, pair, time};

/// A message, as it is given on the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct NewMessage {
    /// Phone number with its country code, email address, or chat ID.
    pub(crate) to: String,
    /// The text; - for standard input.
    pub(crate) text: Option<String>,
    /// The channel [default: chosen from those that the sender has connected and that reach the recipient].
    #[arg(long, value_parser = channel_or("auto"))]
    pub(crate) channel: Option<String>,
    /// ID of the sender [default: the default sender].
    #[arg(long, value_name = "ID")]
    pub(crate) sender: Option<String>,
    /// Subject of an email.
    #[arg(long)]
    pub(crate) subject: Option<String>,
    /// A file with the HTML body of an email.
    #[arg(long, value_name = "FILE")]
    pub(crate) html: Option<PathBuf>,
    /// A file to attach to an email. Repeatable.
    #[arg(long, value_name = "FILE")]
    pub(crate) attach: Vec<PathBuf>,
    /// ID of a template.
    #[arg(long, value_name = "ID")]
    pub(crate) template: Option<String>,
    /// A variable of the template, as name=value. Repeatable.
    #[arg(long = "var", value_name = "NAME=VALUE", requires = "template", value_parser = pair)]
    pub(crate) variables: Vec<String>,
    /// When to send it: a time at most 30 days ahead, such as 2027-01-31T09:30:00Z.
    #[arg(long, value_name = "TIME", value_parser = time)]
    pub(crate) at: Option<String>,
    /// Your own data, as name=value. Repeatable.
    #[arg(long, value_name = "NAME=VALUE", value_parser = pair)]
    pub(crate) metadata: Vec<String>,
    /// Send at most one message per key, however often the command is repeated [default: a new key].
    #[arg(long, value_name = "KEY")]
    pub(crate) idempotency_key: Option<String>,
    /// Further fields of the request as a JSON object, such as '{"validitySeconds": 300}'.
    #[arg(long, value_name = "JSON", value_parser = object)]
    pub(crate) fields: Option<String>,
    /// Show the route and the cost, and send nothing.
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// Seconds to wait for the final status; 0 does not wait, and neither does a message that is sent later.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    pub(crate) wait: u64,
}

impl NewMessage {
    /// The body of the request.
    fn body(&self) -> anyhow::Result<Value> {
        let mut body = match &self.fields {
            None => Map::new(),
            Some(text) => serde_json::from_str(text).context("--fields must be a JSON object")?,
        };
        let mut set = |name: &str, value: Option<Value>| {
            if let Some(value) = value {
                body.insert(name.to_owned(), value);
            }
        };
        set("to", Some(json!(self.to)));
        set("channel", self.channel.as_ref().map(|channel| json!(channel)));
        set("subject", self.subject.as_ref().map(|subject| json!(subject)));
        set("scheduledAt", self.at.as_ref().map(|at| json!(at)));
        set("text", self.text()?.map(Value::from));
        set("htmlBody", self.html.as_deref().map(read).transpose()?.map(Value::from));
        set("metadata", (!self.metadata.is_empty()).then(|| pairs(&self.metadata, false)).transpose()?.map(Value::from));
        let files = self.attach.iter().map(|file| attachment(file)).collect::<anyhow::Result<Vec<_>>>()?;
        set("attachments", (!files.is_empty()).then(|| files.into()));
        if let Some(template) = &self.template {
            set("messageType", Some(json!("template")));
            set("content", Some(json!({"templateId": template, "templateVariables": pairs(&self.variables, false)?})));
        }
        Ok(body.into())
    }

    fn text(&self) -> anyhow::Result<Option<String>> {
        match self.text.as_deref() {
            Some("-") => Ok(Some(read_input("-")?.trim_end_matches('\n').to_owned())),
            text => Ok(text.map(str::to_owned)),
        }
    }
}

/// Sends a message and follows it, or shows what would happen to it.
///
/// # Errors
///
/// Says what the node refused, or that it cannot be reached.
pub(crate) async fn send(world: &World, message: &NewMessage, json: bool) -> anyhow::Result<Outcome> {
    let body = message.body()?;
    if message.dry_run {
        let request = world.request(Method::POST, world.url("/v1/messages", &[("dryRun", "true")])).json(&body);
        let plan = world.answer(with_sender(request, message)).await?["plan"].take();
        if json {
            say_json(&plan)
        } else {
            say(line::escaped(&verdict(&plan)))
        };
        return Ok(Outcome::Sent);
    }
    let key = match &message.idempotency_key {
        Some(key) => key.clone(),
        None => random_key(),
    };
    let request = world.request(Method::POST, world.url("/v1/messages", &[])).json(&body).header("Idempotency-Key", &key);
    let sent = world.answer(with_sender(request, message)).await;
    let sent = match sent {
        Ok(mut answer) => answer["message"].take(),
        // This key sent it before; that is what a repeated command is for.
        Err(CallError::Refused { mut body, .. }) if body["code"] == "idempotency_conflict" => body["message"].take(),
        Err(CallError::Unreachable { server, why, advice }) => {
            let advice = format!("{advice}; to try again without sending twice, add --idempotency-key {key}");
            return Err(CallError::Unreachable { server, why, advice }.into());
        }
        Err(CallError::Refused { body, .. }) if body["code"] == "idempotency_key_reused" => bail!("{}", reused(&body)),
        Err(error) => return Err(error.into()),
    };
    let later = sent["status"] == "scheduled";
    if message.wait > 0 && !later {
        return life::watch(world, &sent, Duration::from_secs(message.wait), json).await;
    }
    if json {
        say_json(&sent)
    } else {
        say(line::escaped(&life::headline(&sent)))
    }
    if later && !json {
        let (at, id) = (sent["scheduledAt"].as_str().unwrap_or_default(), sent["id"].as_str().unwrap_or_default());
        say(line::escaped(&format!("  will be sent at {at}; `nuncio messages follow {id}` follows it then")));
    }
    Ok(Outcome::Sent)
}

/// The refusal of a key that sent another message, with that message.
fn reused(body: &Value) -> String {
    let (why, message) = (body["error"]["message"].as_str().unwrap_or_default(), &body["message"]);
    match (message["id"].as_str(), message["status"].as_str()) {
        (Some(id), Some(status)) => format!("{why}: {id}, {status}"),
        _ => why.to_owned(),
    }
}

fn with_sender(request: reqwest::RequestBuilder, message: &NewMessage) -> reqwest::RequestBuilder {
    match &message.sender {
        Some(sender) => request.header("Service-Sender", sender),
        None => request,
    }
}

/// What a dry run found, in words.
fn verdict(plan: &Value) -> String {
    let text = |name: &str| plan[name].as_str().unwrap_or_default();
    let from = if text("from").is_empty() { String::new() } else { format!(" from {}", text("from")) };
    let mut out = vec![format!("would be sent by {} to {}{from}", text("channel"), text("to"))];
    out.push(format!("  route:     {}", plan["routing"]["reason"].as_str().unwrap_or_default()));
    if let Some(segments) = plan["segments"].as_u64() {
        let forced = plan["forcedBy"]["character"].as_str().map_or_else(String::new, |c| format!(", because of {c:?}"));
        out.push(format!("  segments:  {segments} ({}{forced})", text("encoding")));
    }
    let (first, most) = (plan["estimatedCost"]["costTotal"].as_f64(), plan["required"].as_f64());
    if first.is_some() || most.is_some_and(|most| most > 0.0) {
        let cost = first.map_or_else(|| format!("no price for {}", text("channel")), |cost| format!("${cost}"));
        let most = most.filter(|most| *most > first.unwrap_or_default());
        let most = most.map_or_else(String::new, |most| format!(", at most ${most} with its fallback"));
        let affordable = if plan["affordable"] == false { ", more than is available" } else { "" };
        out.push(format!("  cost:      {cost}{most}{affordable}"));
    }
    if plan["suppressed"] == true {
        out.push("  would fail: the recipient is suppressed".to_owned());
    }
    for warning in plan["routing"]["warnings"].as_array().into_iter().flatten() {
        out.push(format!("  warning:   {}", warning.as_str().unwrap_or_default()));
    }
    out.join("\n")
}

fn attachment(path: &Path) -> anyhow::Result<Value> {
    let bytes = std::fs::read(path).with_context(|| path.display().to_string())?;
    let name = path.file_name().and_then(|name| name.to_str()).context("the name of an attachment must be text")?;
    Ok(json!({"filename": name, "content": STANDARD.encode(bytes)}))
}

fn read(path: &Path) -> anyhow::Result<String> {
    text(path.display(), std::fs::read(path))
}

/// The text of a file, or of standard input.
pub(crate) fn read_input(file: &str) -> anyhow::Result<String> {
    if file != "-" {
        return read(Path::new(file));
    }
    let mut bytes = Vec::new();
    text("standard input", std::io::stdin().read_to_end(&mut bytes).map(|_| bytes))
}

fn text(name: impl Display, bytes: std::io::Result<Vec<u8>>) -> anyhow::Result<String> {
    let bytes = bytes.with_context(|| name.to_string())?;
    String::from_utf8(bytes).map_err(|_| anyhow!("{name}: is not UTF-8; save it as UTF-8"))
}

/// An object of what was given as name=value; with `from_files`, `name=@FILE` reads the value from a file.
pub(crate) fn pairs(given: &[String], from_files: bool) -> anyhow::Result<Map<String, Value>> {
    let mut map = Map::new();
    for text in given {
        let (name, value) = text.split_once('=').with_context(|| format!("{text:?} must have the form name=value"))?;
        let value = match value.strip_prefix('@').filter(|_| from_files) {
            Some(file) => read_input(file)?.trim_end().to_owned(),
            None => value.to_owned(),
        };
        if map.insert(name.to_owned(), value.into()).is_some() {
            bail!("{name:?} is given twice");
        }
    }
    Ok(map)
}

fn random_key() -> String {
    let mut bytes = [0; 16];
    crate::system::ids().entropy.fill(&mut bytes);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}
