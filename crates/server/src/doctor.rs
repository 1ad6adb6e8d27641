//! Diagnoses problems, and resolves held messages.

use std::collections::{HashMap, HashSet};

use nuncio_core::Core;
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::Resolution;
use nuncio_domain::message::{Message, Wait};
use nuncio_domain::{Environment, Error, MessageId, Result, TenantId};
use nuncio_store::DueMessage;
use serde_json::json;

use crate::answer::CommandOutput;
use crate::named::project_option;
use crate::table::Table;

const PAGE: u32 = 1_000;

/// Returns everything an operator should know, and what to do about it.
pub(crate) async fn examine(core: &Core) -> Result<CommandOutput> {
    let mut findings = core.store().advice().await?;
    findings.extend(core.trouble().map(|why| format!("this node accepts no messages: {why}")));
    let unguarded = core.store().read().await?.count_unguarded_messages().await?;
    if unguarded > 0 {
        findings.push(format!("{unguarded} messages are stuck; please report this as a bug, with the log"));
    }
    let (mut uneven, mut escalated) = (false, 0);
    let held = held_messages(core, None, PAGE).await?.len();
    if held > 0 {
        let what = match held {
            1 => "message is",
            _ if held == PAGE as usize => "or more messages are",
            _ => "messages are",
        };
        findings.push(format!("{held} {what} held; see `nuncio held list`, decide with `nuncio held resolve`"));
    }
    let projects = core.projects().list().await?;
    for project in &projects {
        let option = project_option(&projects, project);
        for environment in [Environment::Live, Environment::Test] {
            let world = core.tenant_config(project.tenant(environment)).await?;
            if world.default_sender().is_none() {
                findings.push(format!(
                    "project {} has no default {env} sender; create one with `nuncio senders create --env {env} --name NAME --default{option}`",
                    project.name,
                    env = environment.as_str()
                ));
            }
            if environment == Environment::Live && world.connections.is_empty() {
                findings.push(format!(
                    "project {} has no live connection: live messages cannot be sent; set one with `nuncio connections set{option}`",
                    project.name
                ));
            }
            escalated += core.broadcasts().escalated(world.tenant).await?.len();
            if !core.billing().is_balanced(world.tenant).await? {
                uneven = true;
                findings.push(format!(
                    "the {} balance of project {} is not the sum of its transfers; please report this as a bug, with the log",
                    environment.as_str(),
                    project.name
                ));
            }
            for sender in core.webhooks().without_secret(world.tenant).await? {
                let (whose, option) = match sender {
                    Some(sender) => (format!("sender {sender}"), format!("--sender {sender}")),
                    None => (format!("the {} environment of project {}", environment.as_str(), project.name), "--own".to_owned()),
                };
                findings.push(format!(
                    "the webhook of {whose} gets no events: its signing secret cannot be decrypted; \
                     add the missing key and restart, or rotate it with `nuncio webhooks rotate --env {} {option}`",
                    environment.as_str()
                ));
            }
            for connection in &world.connections {
                let checked = core.senders().check_connection(world.tenant, connection).await?;
                if let Some(mut why) = checked.err().or_else(|| core.senders().session_trouble(connection)) {
                    if why.starts_with("its secrets cannot be decrypted") {
                        let simulated = if environment == Environment::Test { " --env test --kind sim" } else { "" };
                        let again = format!("or set them again with `nuncio connections set{simulated}{option}`");
                        why.push_str(&format!("; add the missing key and restart, {again}"));
                    }
                    findings.push(format!("connection {} ({} by {}): {why}", connection.id, connection.channel, connection.kind));
                }
            }
        }
    }
    if escalated > 0 {
        let what = if escalated == 1 { "broadcast waits" } else { "broadcasts wait" };
        findings.push(format!("{escalated} {what} for your review; see `nuncio reviews list`, decide with `nuncio reviews approve`"));
    }
    let text = if findings.is_empty() {
        "no problems found".to_owned()
    } else {
        findings.iter().map(|f| format!("- {f}")).collect::<Vec<_>>().join("\n")
    };
    Ok(CommandOutput { bad: unguarded > 0 || uneven, ..CommandOutput::new(json!({"findings": findings}), text) })
}

/// Lists held messages, the oldest of each environment first; at most [`PAGE`].
pub(crate) async fn held(core: &Core) -> Result<CommandOutput> {
    let (mut held, projects) = (held_messages(core, None, PAGE + 1).await?, core.projects().list().await?);
    let more = held.len() > PAGE as usize;
    held.truncate(PAGE as usize);
    let mut messages: HashMap<(TenantId, MessageId), Message> = HashMap::new();
    for tenant in held.iter().map(|m| m.tenant).collect::<HashSet<_>>() {
        let ids: Vec<_> = held.iter().filter(|m| m.tenant == tenant).map(|m| m.id).collect();
        let found = core.store().read().await?.lookup_messages(tenant, &ids).await?;
        messages.extend(found.into_iter().map(|message| ((tenant, message.id), message)));
    }
    let (mut json, mut rows) = (Vec::new(), Vec::new());
    for DueMessage { tenant, id, wait, .. } in &held {
        let reason = if let Some(Wait::Held { reason, .. }) = wait { reason.as_str() } else { "" };
        let is_live = projects.iter().any(|project| project.live == *tenant);
        let environment = if is_live { Environment::Live } else { Environment::Test }.as_str();
        let to = messages.get(&(*tenant, *id)).map_or("", |message| message.to.as_str());
        let at = id.created_at().to_string();
        json.push(json!({"id": id, "environment": environment, "to": to, "createdAt": at, "heldReason": reason}));
        let second = at.get(..19).unwrap_or_default().replace('T', " ");
        rows.push(vec![id.to_string(), environment.to_owned(), to.to_owned(), second, reason.to_owned()]);
    }
    let table = Table::new(&["MESSAGE", "ENV", "RECIPIENT", "CREATED (UTC)", "REASON"]).with(rows);
    let mut answer = CommandOutput::list(json.into(), table, "no message is held");
    answer.notice = more.then(|| "1,000 shown, there are more".to_owned());
    Ok(answer)
}

async fn held_messages(core: &Core, after: Option<(TenantId, MessageId)>, most: u32) -> Result<Vec<DueMessage>> {
    Ok(core.store().read().await?.held_messages(after, most).await?)
}

/// Resolves one held message, or all of them.
pub(crate) async fn resolve(core: &Core, id: Option<&str>, all: bool, action: Resolution) -> Result<CommandOutput> {
    let mut resolved = 0;
    match (id, all) {
        (Some(text), false) => {
            let id = text.parse().map_err(|_| Error::not_found("message"))?;
            let projects = core.projects().list().await?;
            resolved += resolve_each(core, projects.iter().flat_map(|project| [(project.live, id), (project.test, id)]), action).await?;
            if resolved == 0 {
                return Err(Error::not_found("held message"));
            }
        }
        (None, true) => {
            // Each once: a message that is sent again can be held again.
            let mut after = None;
            loop {
                let page: Vec<_> = held_messages(core, after, PAGE).await?.iter().map(|m| (m.tenant, m.id)).collect();
                let Some(last) = page.last() else { break };
                after = Some(*last);
                resolved += resolve_each(core, page.into_iter(), action).await?;
            }
        }
        _ => return Err(Error::field("id", "set the id of one message, or --all")),
    }
    Ok(CommandOutput::new(json!({"resolved": resolved}), format!("{resolved} resolved")))
}

/// Resolves messages, and returns how many of them were held.
async fn resolve_each(core: &Core, messages: impl Iterator<Item = (TenantId, MessageId)>, action: Resolution) -> Result<u32> {
    let mut resolved = 0;
    for (tenant, id) in messages {
        resolved += u32::from(core.messages().resolve_held(tenant, id, action).await?);
    }
    Ok(resolved)
}
