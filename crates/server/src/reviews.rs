//! `nuncio reviews`: broadcasts that wait for a human review.

use nuncio_core::Core;
use nuncio_core::broadcasts::{BroadcastView, EscalatedBroadcast};
use nuncio_domain::broadcast::ReviewPolicy;
use nuncio_domain::config::Project;
use nuncio_domain::{Environment, Error, ErrorCode, Result, TenantId};
use serde_json::json;

use crate::answer::CommandOutput;

const WORLDS: [Environment; 2] = [Environment::Live, Environment::Test];

/// Lists escalated broadcasts of both environments of these projects.
pub(crate) async fn list(core: &Core, projects: &[Project]) -> Result<CommandOutput> {
    let (mut json, mut text) = (Vec::new(), Vec::new());
    for (project, environment) in worlds(projects) {
        for escalated in core.broadcasts().escalated_content(project.tenant(environment)).await? {
            text.push(describe(&escalated, project, environment));
            let mut item = json!(escalated);
            (item["project"], item["environment"]) = (json!(project.name), json!(environment));
            json.push(item);
        }
    }
    let text = if text.is_empty() { "no broadcasts to review".to_owned() } else { text.join("\n") };
    Ok(CommandOutput::new(json.into(), text))
}

fn worlds(projects: &[Project]) -> impl Iterator<Item = (&Project, Environment)> {
    projects.iter().flat_map(|project| WORLDS.map(|environment| (project, environment)))
}

fn describe(escalated: &EscalatedBroadcast, project: &Project, environment: Environment) -> String {
    let EscalatedBroadcast { broadcast, subjects, texts, html_texts } = escalated;
    let BroadcastView { id, name, channel, total_contacts, .. } = broadcast;
    let project = &project.name;
    let mut out = format!("{id}  {project:?} {}  {name:?}  {channel}, {total_contacts} contacts", environment.as_str());
    for (what, lines) in [("subject", subjects), ("text", texts), ("html", html_texts)] {
        lines.iter().for_each(|line| out.push_str(&format!("\n  {what}: {line:?}")));
    }
    if let Some(review) = &broadcast.review_result {
        out.push_str(&format!("\n  review: {}", review.reasoning));
        review.flagged_content.iter().for_each(|fragment| out.push_str(&format!("\n  flagged: {fragment:?}")));
    }
    out
}

/// Approves a broadcast, or refuses it permanently.
pub(crate) async fn decide(core: &Core, projects: &[Project], id: &str, approve: bool, reason: Option<&str>) -> Result<CommandOutput> {
    for (project, environment) in worlds(projects) {
        match core.broadcasts().decide_review(project.tenant(environment), id, approve, reason).await {
            Ok(broadcast) => {
                let text = format!("{} is {} now", broadcast.id, broadcast.status);
                return Ok(CommandOutput::new(json!({"broadcast": broadcast}), text));
            }
            Err(error) if error.code() == ErrorCode::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(Error::not_found("broadcast"))
}

/// Changes the policy of an environment, if asked to, and shows it.
pub(crate) async fn policy(core: &Core, tenant: TenantId, change: impl Fn(ReviewPolicy) -> ReviewPolicy) -> Result<CommandOutput> {
    let broadcasts = core.broadcasts();
    let before = broadcasts.review_policy(tenant).await?;
    let mut policy = change(before.clone());
    if policy != before {
        policy = broadcasts.set_review_policy(tenant, policy).await?;
    }
    let list = |items: &[String]| if items.is_empty() { "none".to_owned() } else { items.join(", ") };
    let text = format!(
        "threshold {}; blocked words: {}; allowed domains: {}",
        policy.threshold,
        list(&policy.blocked_words),
        list(&policy.allowed_domains)
    );
    Ok(CommandOutput::new(json!([policy]), text))
}

/// Shows the texts that people reviewed, one JSON object per line.
pub(crate) async fn export(core: &Core, project: &Project, env: Option<Environment>) -> Result<CommandOutput> {
    let mut examples = Vec::new();
    for environment in env.map_or(WORLDS.to_vec(), |env| vec![env]) {
        for example in core.broadcasts().review_examples(project.tenant(environment)).await? {
            examples.push(json!(example));
        }
    }
    let text: Vec<String> = examples.iter().map(ToString::to_string).collect();
    Ok(CommandOutput::new(examples.into(), text.join("\n")))
}
