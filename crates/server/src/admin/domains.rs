//! `nuncio domains`.

use nuncio_core::Core;
use nuncio_domain::config::Project;
use nuncio_domain::{Error, Result};
use serde_json::json;

use crate::answer::CommandOutput;
use crate::table::Table;

/// Lists the domains of all projects.
pub(super) async fn list(core: &Core) -> Result<CommandOutput> {
    let (domains, projects) = (core.senders().mail_domains().await?, core.projects().list().await?);
    let json = domains.iter().map(|d| json!({"domain": d.domain, "projectId": d.project, "createdAt": d.created_at})).collect();
    let name = |id| projects.iter().find(|project| project.id == id).map_or("", |project| project.name.as_str());
    let rows = domains.iter().map(|d| vec![d.domain.to_string(), d.project.to_string(), name(d.project).to_owned()]);
    let table = Table::new(&["DOMAIN", "PROJECT", "NAME"]).with(rows);
    Ok(CommandOutput::list(json, table, "no domains; `nuncio domains add` assigns one to a project"))
}

/// Assigns a domain to the project.
pub(super) async fn add(core: &Core, project: &Project, domain: &str) -> Result<CommandOutput> {
    let domain = read_domain(domain)?;
    core.senders().assign_mail_domain(project, &domain).await?;
    let text = format!("project {} receives email to addresses of {domain} for which it has a live connection", project.name);
    Ok(CommandOutput::new(json!({"domain": domain, "projectId": project.id}), text))
}

/// Withdraws a domain.
pub(super) async fn remove(core: &Core, domain: &str) -> Result<CommandOutput> {
    core.senders().remove_mail_domain(&read_domain(domain)?).await?;
    Ok(CommandOutput::new(json!({}), "removed"))
}

/// A domain as addresses have it: in small letters, in ASCII.
fn read_domain(text: &str) -> Result<String> {
    let address = nuncio_channel_smtp::mailbox_address(&format!("x@{text}")).filter(|_| text.contains('.') && !text.contains('@'));
    let domain = address.and_then(|address| address.strip_prefix("x@").map(str::to_owned));
    domain.ok_or_else(|| Error::field("domain", format!("is {text:?}; must be a domain such as example.org")))
}
