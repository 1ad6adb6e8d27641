//! `nuncio connections`.

use nuncio_core::{Core, PutConnection};
use nuncio_domain::config::{Connection, Sender, TenantConfig};
use nuncio_domain::{Channel, Environment, Error, ErrorCode, Result, TenantId};
use serde_json::json;

use super::{NewThrottle, senders};
use crate::answer::CommandOutput;
use crate::client::lists::CONNECTIONS;
use crate::named::project_option;

/// Lists the connections of an environment, without secrets.
pub(super) async fn list(core: &Core, tenant: TenantId) -> Result<CommandOutput> {
    let connections = core.senders().all_connections(tenant).await?;
    let items = connections.iter().map(serde_json::to_value).collect::<Result<_, _>>().map_err(Error::internal)?;
    Ok(CONNECTIONS.answer(items))
}

/// Sets the provider account of a channel. It may lead into the operator's own network.
pub(super) async fn set(
    core: &Core,
    tenant: TenantId,
    (sender, channel): (Option<&str>, &str),
    mut put: PutConnection,
    throttle: NewThrottle,
) -> Result<CommandOutput> {
    let world = core.tenant_config(tenant).await?;
    let (of_sender, sender, channel) = (sender.is_some(), senders::find(&world, sender)?, read_channel(channel)?);
    put.throttle = match throttle {
        NewThrottle::Keep => world.connection(sender.id, channel).and_then(|connection| connection.throttle),
        NewThrottle::None => None,
        NewThrottle::Set(throttle) => Some(throttle),
    };
    let (connection, _) = core.senders().put_connection(tenant, sender.id, channel, put, true).await?;
    let mut options = project_option(&core.projects().list().await?, &world.project);
    if world.environment == Environment::Test {
        options.push_str(" --env test");
    }
    if of_sender {
        options.push_str(&format!(" --sender {}", sender.id));
    }
    let text = format!(
        "saved {} for {channel} of sender {} ({}); test it with `nuncio connections test --channel {channel}{options}`",
        connection.kind, sender.name, sender.id
    );
    let shown = core.senders().all_connections(tenant).await?.into_iter().find(|each| each.id == connection.id);
    Ok(CommandOutput::new(serde_json::to_value(shown).map_err(Error::internal)?, text))
}

/// Removes the provider account of a channel.
pub(super) async fn remove(core: &Core, tenant: TenantId, sender: Option<&str>, channel: &str) -> Result<CommandOutput> {
    let world = core.tenant_config(tenant).await?;
    let (sender, connection) = find(&world, sender, channel)?;
    core.senders().delete_connection(tenant, sender.id, connection.channel).await?;
    Ok(CommandOutput::new(json!({}), "removed"))
}

/// Verifies the inbound address of a connection, without a code.
pub(super) async fn verify(core: &Core, tenant: TenantId, sender: Option<&str>, channel: &str) -> Result<CommandOutput> {
    let world = core.tenant_config(tenant).await?;
    let (sender, connection) = find(&world, sender, channel)?;
    let inbound = core.senders().vouch(tenant, sender.id, connection.channel).await?;
    let text = format!("{} is verified: email to it is received", inbound.address);
    Ok(CommandOutput::new(json!(inbound), text))
}

/// Connects to the provider and logs in.
pub(super) async fn test(core: &Core, tenant: TenantId, sender: Option<&str>, channel: &str) -> Result<CommandOutput> {
    let world = core.tenant_config(tenant).await?;
    let (_, connection) = find(&world, sender, channel)?;
    Ok(match core.senders().check_connection(tenant, connection).await? {
        Ok(text) => CommandOutput::new(json!({"ok": true, "message": text}), format!("ok: {text}")),
        Err(text) => CommandOutput { bad: true, ..CommandOutput::new(json!({"ok": false, "message": text}), format!("failed: {text}")) },
    })
}

/// The connection of a sender's channel, and the sender.
fn find<'a>(world: &'a TenantConfig, sender: Option<&str>, channel: &str) -> Result<(&'a Sender, &'a Connection)> {
    let (sender, channel) = (senders::find(world, sender)?, read_channel(channel)?);
    let connection = world.connection(sender.id, channel).ok_or_else(|| {
        let env = world.environment.as_str();
        let message = format!(
            "connection: sender {} ({}) of the {env} environment has none for {channel}; `nuncio connections list` shows all",
            sender.name, sender.id
        );
        Error::new(ErrorCode::NotFound, message)
    })?;
    Ok((sender, connection))
}

/// A channel by its name.
fn read_channel(text: &str) -> Result<Channel> {
    let known = Channel::ALL.iter().map(|c| c.as_str()).collect::<Vec<_>>().join(", ");
    Channel::parse(text).ok_or_else(|| Error::field("channel", format!("{text:?} is not one of {known}")))
}
