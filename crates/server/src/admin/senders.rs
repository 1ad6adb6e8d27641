//! `nuncio senders`.

use nuncio_core::Core;
use nuncio_core::senders::{CreateSender, SenderView, UpdateSender};
use nuncio_domain::config::{Project, Sender, TenantConfig};
use nuncio_domain::{Environment, Error, ErrorCode, Result, SenderId, TenantId};
use serde_json::{Value, json};

use crate::answer::CommandOutput;
use crate::client::lists::SENDERS;
use crate::named::{Named, named};

/// Lists the senders of an environment.
pub(super) async fn list(core: &Core, tenant: TenantId) -> Result<CommandOutput> {
    let senders = core.senders().all(tenant).await?;
    let items = senders.iter().map(serde_json::to_value).collect::<Result<_, _>>().map_err(Error::internal)?;
    Ok(SENDERS.answer(items))
}

/// Creates a sender.
pub(super) async fn create(core: &Core, project: &Project, env: Environment, sender: Value) -> Result<CommandOutput> {
    let command: CreateSender = serde_json::from_value(sender).map_err(Error::internal)?;
    one(&core.senders().make(project.tenant(env), env, command).await?)
}

/// Changes a sender.
pub(super) async fn update(core: &Core, tenant: TenantId, id: &str, change: Value) -> Result<CommandOutput> {
    let change: UpdateSender = serde_json::from_value(change).map_err(Error::internal)?;
    let id = here(core, tenant, id).await?;
    one(&core.senders().change(tenant, id, change).await?)
}

/// Copies a sender to the environment `to`.
pub(super) async fn copy(core: &Core, project: &Project, id: &str, to: Environment) -> Result<CommandOutput> {
    let id = in_environment(core, project.tenant(to.other()), id).await?;
    one(&core.senders().copy(project, id, to).await?)
}

/// Deletes a sender.
pub(super) async fn delete(core: &Core, tenant: TenantId, id: &str) -> Result<CommandOutput> {
    let id = here(core, tenant, id).await?;
    core.senders().remove(tenant, id).await?;
    Ok(CommandOutput::new(json!({}), "deleted; its messages stay readable"))
}

fn one(sender: &SenderView) -> Result<CommandOutput> {
    let json = serde_json::to_value(sender).map_err(Error::internal)?;
    let mut text = format!("{}  {}", sender.id, sender.name);
    if let Some(secret) = sender.webhook.as_ref().and_then(|webhook| webhook.secret.as_ref()) {
        text.push_str(&format!("\n\nIts webhook is signed with {}. The secret is not shown again.", secret.expose()));
    }
    Ok(CommandOutput::new(json, text))
}

/// The ID of a sender of this environment, by its ID or name.
async fn in_environment(core: &Core, tenant: TenantId, text: &str) -> Result<SenderId> {
    Ok(find(&*core.tenant_config(tenant).await?, Some(text))?.id)
}

/// The same, for a command with `--env`, which it names if the sender is in the other environment.
async fn here(core: &Core, tenant: TenantId, text: &str) -> Result<SenderId> {
    let missing = match in_environment(core, tenant, text).await {
        Ok(id) => return Ok(id),
        Err(missing) => missing,
    };
    let world = core.tenant_config(tenant).await?;
    let other = world.environment.other();
    match in_environment(core, world.project.tenant(other), text).await {
        Ok(_) => {
            let message = format!("sender: {text:?} is in the {env} environment: --env {env}", env = other.as_str());
            Err(Error::new(ErrorCode::NotFound, message))
        }
        Err(_) => Err(missing),
    }
}

fn missing(world: &TenantConfig, text: &str) -> Error {
    let env = world.environment.as_str();
    let message = format!("sender: there is no {text:?} in the {env} environment; `nuncio senders list` shows all senders");
    Error::new(ErrorCode::NotFound, message)
}

/// The sender with this ID or name; the default sender when none is given.
pub(super) fn find<'a>(world: &'a TenantConfig, wanted: Option<&str>) -> Result<&'a Sender> {
    let env = world.environment.as_str();
    let without = || Error::new(ErrorCode::NotFound, format!("sender: the {env} environment has no default sender; set one with --sender"));
    let Some(text) = wanted else { return world.default_sender().ok_or_else(without) };
    match named(&world.senders, text, text.parse::<SenderId>().is_ok(), |sender| (sender.id.to_string(), sender.name.clone())) {
        Named::One(sender) => Ok(sender),
        Named::None => Err(missing(world, text)),
        Named::Several(which) => Err(Error::field("sender", which)),
    }
}
