//! `nuncio quickstart`: from nothing to a delivered message in one command.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context as _, bail};
use nuncio_domain::{Environment, Permissions};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::admin;
use crate::client::life::{self, Outcome};
use crate::client::profile::{QUICKSTART, SERVER, listens_at};
use crate::client::{World, say};
use crate::config::Config;
use crate::data::{ADDRESS, write_private};
use crate::serve::{Server, asked_to_end};

const PATIENCE: Duration = Duration::from_secs(30);

/// Keys created by the first quickstart. Stored in the data folder, readable by its owner only, so that later runs can show them.
#[derive(Serialize, Deserialize)]
struct Keys {
    live: String,
    test: String,
}

/// Serves, sends a sandbox message through the HTTP API and shows its progress; then keeps serving, or ends with `exit`.
pub(crate) async fn run(mut config: Config, exit: bool) -> anyhow::Result<()> {
    config.net.allow_loopback = true; // so that the first webhook or attachment can be on this machine
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
    say(format_args!("nuncio is running at {base} (API documentation: {base}/docs)\n"));
    say(format_args!("  live key  {}\n  test key  {}\n", keys.live, keys.test));
    if let Some(link) = crate::people::first_link(&server.node.core).await? {
        say(format_args!("Open this link to become its owner and see everything in the browser:\n\n  {link}\n"));
    }
    say(format_args!("The first message, in the sandbox:\n"));
    let world = World::new(base.parse()?, keys.test.clone())?;
    let body = json!({"to": "+34600111222", "text": "Hello from nuncio"});
    let sent = world.call(Method::POST, "/v1/messages", Some(&body)).await?;
    if life::watch(&world, &sent["message"], PATIENCE, false).await? != Outcome::Sent {
        bail!("the sandbox message was not delivered within {} seconds", PATIENCE.as_secs());
    }
    let found = server.data.file("quickstart.json") == Path::new(QUICKSTART);
    let (place, key) = if found { (", from this folder", String::new()) } else { ("", format!("NUNCIO_API_KEY={} ", keys.test)) };
    // As it was called: perhaps it is not on the path.
    let program = std::env::args().next().unwrap_or_else(|| "nuncio".to_owned());
    // In this folder, commands find a server on the embedded database by themselves.
    let finds = base == SERVER || (found && listens_at(&server.data.file(ADDRESS)) == Some(server.address));
    let server = if finds { String::new() } else { format!(" --server {base}") };
    say(format_args!(
        "\nSend the next one yourself{place}:\n\n  {key}{program} send +34600111222 'Hello again' --env test{server}\n\nor from anywhere:\n"
    ));
    say(format_args!(
        "  curl {base}/v1/messages -H 'Authorization: Bearer {}' \\\n    -H 'Content-Type: application/json' \\\n    -d '{body}'\n",
        keys.test
    ));
    Ok(())
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
        made.push(
            server.node.core.keys().create(project.tenant(env), env, "quickstart", Permissions::ALL, None).await?.secret.expose().clone(),
        );
    }
    let [live, test] = <[String; 2]>::try_from(made).map_err(|_| anyhow::anyhow!("two keys were created"))?;
    let keys = Keys { live, test };
    write_private(&path, &serde_json::to_string_pretty(&keys)?)?;
    Ok(keys)
}
