//! `nuncio quickstart`: from nothing to a delivered message in one command.

use std::fmt::Write as _;
use std::time::Duration;

use anyhow::{Context as _, bail};
use nuncio_domain::{Environment, Permissions};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use crate::admin;
use crate::config::Config;
use crate::data::write_private;
use crate::serve::{Server, asked_to_end};

const PATIENCE: Duration = Duration::from_secs(30);

/// The keys that the first quickstart made. Kept in the data folder, readable by its owner only, so that the next one can show them.
#[derive(Serialize, Deserialize)]
struct Keys {
    live: String,
    test: String,
}

/// Serves, sends a sandbox message through the HTTP API and shows its life; then goes on serving, or ends with `exit`.
pub(crate) async fn run(mut config: Config, exit: bool) -> anyhow::Result<()> {
    config.net.allow_loopback = true; // so that a first webhook or attachment can come from this machine
    let server = Server::start(&config).await?;
    let outcome = show(&server).await;
    if outcome.is_ok() && !exit {
        asked_to_end().await?;
    }
    server.stop().await?;
    outcome
}

async fn show(server: &Server) -> anyhow::Result<()> {
    let keys = keys(server).await?;
    let base = format!("http://{}", server.address);
    println!("nuncio is running at {base} (API documentation: {base}/docs)\n");
    println!("  live key  {}\n  test key  {}\n", keys.live, keys.test);
    if let Some(link) = crate::people::first_link(&server.node.core).await? {
        println!("Open this link to own it and see everything in the browser:\n\n  {link}\n");
    }
    println!("A first message in the sandbox:");
    let body = json!({"to": "+34600111222", "text": "Hello from nuncio"});
    let sent = call(server, &keys.test, "POST", "/v1/messages", Some(&body)).await?;
    let id = sent["message"]["id"].as_str().context("the answer has no message id")?.to_owned();
    println!("  {id}");
    watch(server, &id).await?;
    let message = call(server, &keys.test, "GET", &format!("/v1/messages/{id}"), None).await?;
    println!("  why there: {}\n", message["message"]["routing"]["reason"].as_str().unwrap_or_default());
    println!("Send the next one yourself:\n");
    println!(
        "  curl {base}/v1/messages -H 'Authorization: Bearer {}' \\\n    -H 'Content-Type: application/json' \\\n    -d '{body}'\n",
        keys.test
    );
    Ok(())
}

/// Prints each change of the message as it is written, until it is delivered.
async fn watch(server: &Server, id: &str) -> anyhow::Result<()> {
    let id = id.parse()?;
    let tenant = admin::project(&server.node.core, None).await?.test;
    let started = std::time::Instant::now();
    let mut shown = 0;
    while started.elapsed() < PATIENCE {
        let events = server.node.core.store().read().await?.list_message_events(tenant, id).await?;
        let changes: Vec<_> = events.iter().flat_map(|e| &e.changes).collect();
        for change in changes.iter().skip(shown) {
            println!("  {}  {}", change.at, change.status);
        }
        shown = changes.len();
        match changes.last().map(|c| c.status.as_str()) {
            Some("delivered") => return Ok(()),
            Some("failed") => bail!("the sandbox message failed"),
            _ => tokio::time::sleep(Duration::from_millis(10)).await,
        }
    }
    bail!("the sandbox message was not delivered within {} seconds", PATIENCE.as_secs())
}

async fn keys(server: &Server) -> anyhow::Result<Keys> {
    let path = server.data.file("quickstart.json");
    if let Ok(text) = std::fs::read_to_string(&path) {
        let keys: Keys = serde_json::from_str(&text).with_context(|| path.display().to_string())?;
        if server.node.core.keys().authenticate(&keys.test).await.is_ok() {
            return Ok(keys);
        }
    }
    let project = admin::project(&server.node.core, None).await?;
    let mut made = Vec::new();
    for env in [Environment::Live, Environment::Test] {
        made.push(server.node.core.keys().create(project.tenant(env), env, "quickstart", Permissions::ALL).await?.secret.expose().clone());
    }
    let [live, test] = <[String; 2]>::try_from(made).map_err(|_| anyhow::anyhow!("two keys were made"))?;
    let keys = Keys { live, test };
    write_private(&path, &serde_json::to_string_pretty(&keys)?)?;
    Ok(keys)
}

/// One request to our own HTTP API, the way any client makes it.
async fn call(server: &Server, key: &str, method: &str, path: &str, body: Option<&Value>) -> anyhow::Result<Value> {
    let body = body.map(Value::to_string).unwrap_or_default();
    let mut request =
        format!("{method} {path} HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {key}\r\nConnection: close\r\n", server.address);
    if !body.is_empty() {
        write!(request, "Content-Type: application/json\r\nContent-Length: {}\r\n", body.len())?;
    }
    request.push_str("\r\n");
    request.push_str(&body);
    let mut stream = TcpStream::connect(server.address).await?;
    stream.write_all(request.as_bytes()).await?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).await?;
    let answer = String::from_utf8(answer)?;
    let (head, body) = answer.split_once("\r\n\r\n").context("the answer is cut short")?;
    let status: u16 = head.split(' ').nth(1).and_then(|s| s.parse().ok()).context("the answer has no status")?;
    if !(200..300).contains(&status) {
        bail!("{method} {path} answered {status}: {body}");
    }
    Ok(serde_json::from_str(body)?)
}
