//! Diagnoses problems, and resolves held messages.

use nuncio_core::Core;
use nuncio_domain::lifecycle::Resolution;
use nuncio_domain::message::Wait;
use nuncio_domain::{Environment, Error, MessageId, Result, TenantId};
use nuncio_store::DueMessage;
use serde_json::json;

use crate::answer::CommandOutput;
use crate::table::Table;

const PAGE: u32 = 1_000;

/// Returns everything an operator should know, and what to do about it.
pub(crate) async fn examine(core: &Core) -> Result<CommandOutput> {
    let mut findings = core.store().advice().await?;
    let unguarded = core.store().read().await?.count_unguarded_messages().await?;
    if unguarded > 0 {
        findings.push(format!("{unguarded} messages are stuck; please report this as a bug, with the log"));
    }
    let mut uneven = false;
    let held = held_messages(core).await?.len();
    if held > 0 {
        findings.push(format!("{held} messages are held; see `nuncio held list`, decide with `nuncio held resolve`"));
    }
    for project in core.projects().list().await? {
        for environment in [Environment::Live, Environment::Test] {
            let world = core.tenant_config(project.tenant(environment)).await?;
            if world.default_sender().is_none() {
                findings.push(format!(
                    "project {} has no default {env} sender; create one with `nuncio senders create --env {env} --name NAME --default`",
                    project.name,
                    env = environment.as_str()
                ));
            }
            if environment == Environment::Live && world.connections.is_empty() {
                findings.push(format!(
                    "project {} has no live connection: live messages cannot be sent; set one with `nuncio connections set`",
                    project.name
                ));
            }
            if !core.billing().is_balanced(world.tenant).await? {
                uneven = true;
                findings.push(format!(
                    "the {} balance of project {} is not the sum of its transfers; please report this as a bug, with the log",
                    environment.as_str(),
                    project.name
                ));
            }
            for connection in world.connections.iter().filter(|c| c.kind != "sim") {
                if let Err(why) = core.senders().check_connection(world.tenant, connection).await? {
                    findings.push(format!("connection {} ({} by {}): {why}", connection.id, connection.channel, connection.kind));
                }
            }
        }
    }
    let text = if findings.is_empty() {
        "no problems found".to_owned()
    } else {
        findings.iter().map(|f| format!("- {f}")).collect::<Vec<_>>().join("\n")
    };
    Ok(CommandOutput { bad: unguarded > 0 || uneven, ..CommandOutput::new(json!({"findings": findings}), text) })
}

/// Lists held messages.
pub(crate) async fn held(core: &Core) -> Result<CommandOutput> {
    let held = held_messages(core).await?;
    let reason = |m: &DueMessage| if let Some(Wait::Held { reason, .. }) = m.wait { reason.as_str() } else { "" };
    let json = held.iter().map(|m| json!({"id": m.id, "heldReason": reason(m)})).collect();
    let table = Table::new(&["MESSAGE", "REASON"]).with(held.iter().map(|m| vec![m.id.to_string(), reason(m).to_owned()]));
    Ok(CommandOutput::list(json, table, "no message is held"))
}

async fn held_messages(core: &Core) -> Result<Vec<DueMessage>> {
    Ok(core.store().read().await?.held_messages(PAGE).await?)
}

/// Resolves one held message, or all of them.
pub(crate) async fn resolve(core: &Core, id: Option<&str>, all: bool, action: Resolution) -> Result<CommandOutput> {
    let targets: Vec<(TenantId, MessageId)> = match (id, all) {
        (Some(text), false) => {
            let id = text.parse().map_err(|_| Error::not_found("message"))?;
            core.projects().list().await?.iter().flat_map(|project| [(project.live, id), (project.test, id)]).collect()
        }
        (None, true) => held_messages(core).await?.into_iter().map(|m| (m.tenant, m.id)).collect(),
        _ => return Err(Error::field("id", "set the id of one message, or --all")),
    };
    let mut resolved = 0;
    for (tenant, id) in targets {
        resolved += u32::from(core.messages().resolve_held(tenant, id, action).await?);
    }
    if resolved == 0 && !all {
        return Err(Error::not_found("held message"));
    }
    Ok(CommandOutput::new(json!({"resolved": resolved}), format!("{resolved} resolved")))
}
