//! `nuncio quickstart`: from nothing to a delivered message in one command.

use std::path::Path;
use std::time::Duration;

use anyhow::bail;
use nuncio_core::Act;
use nuncio_domain::{Environment, ErrorCode, Permissions, line};
use reqwest::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use crate::admin;
use crate::client::life::{self, Outcome};
use crate::client::profile::{QUICKSTART, is_set, listens_at, read_keys};
use crate::client::{World, say};
use crate::config::{Config, reachable};
use crate::data::{ADDRESS, write_private};
use crate::serve::{Server, Signals, announce};

const PATIENCE: Duration = Duration::from_secs(30);
/// The name of the keys that it creates.
const QUICKSTART_KEY: &str = "quickstart";

/// Keys created by the first quickstart. Stored in the data folder, readable by its owner only, so that later runs can show them.
#[derive(Default, Serialize, Deserialize)]
struct Keys {
    live: String,
    test: String,
}

/// Serves, sends a sandbox message through the HTTP API and shows its progress; then keeps serving, or ends with `exit`.
pub(crate) async fn run(mut config: Config, exit: bool) -> anyhow::Result<()> {
    config.net.allow_loopback = true; // so that the first webhook or attachment can be on this machine
    let mut signals = Signals::catch()?;
    let Some(server) = Server::start_unless(&mut signals, &config).await? else { return Ok(()) };
    let shown = show(&server).await;
    if let Ok(sent) = &shown
        && !exit
    {
        if let Err(why) = sent {
            announce(format_args!("\nnuncio: {}\nThe server continues to run.", line::escaped(&format!("{why:#}"))));
        }
        server.until_end(&mut signals).await;
    }
    server.stop().await?;
    let sent = shown?;
    if exit { sent } else { Ok(()) }
}

/// Shows keys and links, and sends the first message. The inner error says why it was not delivered.
async fn show(server: &Server) -> anyhow::Result<anyhow::Result<()>> {
    let keys = keys(server).await?;
    let base = format!("http://{}", reachable(server.address));
    say(format_args!("nuncio is running at {base} (API documentation: {base}/docs)\n"));
    say(format_args!("  live key  {}\n  test key  {}\n", keys.live, keys.test));
    if let Some(link) = crate::people::first_link(&server.node.core).await? {
        say(format_args!("Open this link to become its owner and see everything in the browser:\n\n  {link}\n"));
    }
    say(format_args!("The first message, in the sandbox:\n"));
    let world = World::new(base.parse()?, keys.test.clone())?;
    let body = json!({"to": "+34600111222", "text": "Hello from nuncio"});
    if let Err(why) = first_message(&world, &body).await {
        return Ok(Err(why.context("the first message was not delivered")));
    }
    // As it was called: perhaps it is not on the path.
    let program = std::env::args().next().unwrap_or_else(|| "nuncio".to_owned());
    let send = format!("{program} send +34600111222 'Hello again' --env test");
    // In this folder, commands find a server on the embedded database by themselves, unless the environment names another.
    let here = server.data.file("quickstart.json") == Path::new(QUICKSTART) && !is_set();
    let (place, send) = if here && listens_at(&server.data.file(ADDRESS)) == Some(server.address) {
        (", from this folder", send)
    } else {
        ("", format!("NUNCIO_API_KEY={} {send} --server {base}", keys.test))
    };
    say(format_args!("\nSend the next one yourself{place}:\n\n  {send}\n\nor from anywhere:\n"));
    say(format_args!(
        "  curl {base}/v1/messages -H 'Authorization: Bearer {}' \\\n    -H 'Content-Type: application/json' \\\n    -d '{body}'\n",
        keys.test
    ));
    Ok(Ok(()))
}

/// Sends a message and follows it until it is delivered.
async fn first_message(world: &World, body: &Value) -> anyhow::Result<()> {
    let sent = world.call(Method::POST, "/v1/messages", Some(body)).await?;
    let message = &sent["message"];
    if life::watch(world, message, PATIENCE, false).await? == Outcome::Sent {
        return Ok(());
    }
    let seen = world.get(&format!("/v1/messages/{}", message["id"].as_str().unwrap_or_default()), &[]).await?["message"].take();
    let text = |name: &str| seen[name].as_str().unwrap_or_default();
    match text("errorCode") {
        "" => bail!("its status after {} seconds is {}", PATIENCE.as_secs(), text("status")),
        code => bail!("its status is {}: {code}: {}", text("status"), text("errorMessage")),
    }
}

/// Returns the stored keys, each replaced by a new one unless it is still valid.
async fn keys(server: &Server) -> anyhow::Result<Keys> {
    let (path, core) = (server.data.file("quickstart.json"), &server.node.core);
    let mut keys = match std::fs::read_to_string(&path) {
        Ok(text) => read_keys(&path, &text)?,
        Err(_) => Keys::default(),
    };
    let project = admin::project(core, None).await?;
    for (env, key) in [(Environment::Live, &mut keys.live), (Environment::Test, &mut keys.test)] {
        match core.keys().authenticate(key).await {
            Ok(_) => continue,
            Err(error) if error.code() == ErrorCode::Unauthorized => {}
            Err(error) => return Err(error.into()),
        }
        let api_keys = core.keys();
        let create = api_keys.create(project.tenant(env), env, QUICKSTART_KEY, Permissions::ALL, None);
        let new = Act::command_line(core.ids().clone()).run(create).await?;
        new.secret.expose().clone_into(key);
    }
    write_private(&path, &serde_json::to_string_pretty(&keys)?)?;
    Ok(keys)
}
