//! `nuncio people`: users of the dashboard.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use nuncio_core::Core;
use nuncio_core::users::NewUser;
use nuncio_domain::config::Project;
use nuncio_domain::user::{Member, Role};
use nuncio_domain::{Error, Redacted, Result};
use serde_json::json;

use crate::answer::CommandOutput;
use crate::table::Table;

/// Lists the users of the project.
pub(crate) async fn list(core: &Core, project: &Project) -> Result<CommandOutput> {
    let people = core.users().list(project.id).await?;
    let json = people.iter().map(|Member { user, role }| json!({"id": user.id, "email": user.email, "role": role.as_str()})).collect();
    let rows = people.iter().map(|Member { user, role }| vec![user.email.clone(), role.as_str().to_owned()]);
    Ok(CommandOutput::list(
        json,
        Table::new(&["EMAIL", "ROLE"]).with(rows),
        "no people; nuncio people link shows the link for the first person",
    ))
}

/// Shows the sign-up link of the first user.
pub(crate) async fn link(core: &Core) -> Result<CommandOutput> {
    match first_link(core).await? {
        Some(link) => Ok(CommandOutput::new(json!({"link": link}), link)),
        None => Err(Error::field("people", "the first person was already added; add others with nuncio people add EMAIL")),
    }
}

/// Returns the sign-up link of the first user; `None` once there is one.
pub(crate) async fn first_link(core: &Core) -> Result<Option<String>> {
    Ok(core.users().first_run_token().await?.map(|token| format!("{}/begin/{token}", core.public_url())))
}

/// Adds a user to the project. Shows the password of a new one once.
pub(crate) async fn add(core: &Core, project: &Project, email: &str, role: &str) -> Result<CommandOutput> {
    let role = parse_role(role)?;
    if role != Role::Owner && first_link(core).await?.is_some() {
        return Err(Error::field("role", format!("is {}; the first person must be an owner: add --role owner", role.as_str())));
    }
    let password = password(core);
    let added = core.users().add(project, role, &NewUser { email: email.to_owned(), password: password.clone() }).await?;
    if added.is_new {
        return Ok(shown(&added.email, &password));
    }
    let (email, name) = (added.email.as_str(), &project.name);
    let advice = format!("if somebody else may know that password, run nuncio people password {email}");
    let text = format!("{email} belongs to {name} now, and signs in with the same password as before; {advice}");
    Ok(CommandOutput::new(json!({"email": added.email, "password": null}), text))
}

/// Changes the role of a user in the project.
pub(crate) async fn set_role(core: &Core, project: &Project, email: &str, role: &str) -> Result<CommandOutput> {
    let role = parse_role(role)?;
    core.users().set_role(project, email, role).await?;
    Ok(CommandOutput::new(json!({"email": email, "role": role.as_str()}), format!("{email} is {} of {} now", role.as_str(), project.name)))
}

fn parse_role(role: &str) -> Result<Role> {
    Role::parse(role).ok_or_else(|| Error::field("role", format!("is {role:?}; must be viewer, operator or owner")))
}

/// Sets a new password, which is shown once, and ends the user's sessions.
pub(crate) async fn new_password(core: &Core, email: &str) -> Result<CommandOutput> {
    let password = password(core);
    core.users().set_password(email, &password).await?;
    Ok(shown(email, &password))
}

/// Switches a user's second factor off.
pub(crate) async fn reset_factor(core: &Core, email: &str) -> Result<CommandOutput> {
    core.users().reset_factor(email).await?;
    let text = format!("{email} signs in with only the password until a new second factor is set up");
    Ok(CommandOutput::new(json!({"email": email, "secondFactor": false}), text))
}

/// Removes a user from the project.
pub(crate) async fn remove(core: &Core, project: &Project, email: &str) -> Result<CommandOutput> {
    core.users().remove(project, email).await?;
    Ok(CommandOutput::new(json!({"removed": email}), format!("{email} no longer belongs to {}", project.name)))
}

fn password(core: &Core) -> Redacted<String> {
    let mut bytes = [0; 15];
    core.ids().entropy.fill(&mut bytes);
    Redacted::new(URL_SAFE_NO_PAD.encode(bytes))
}

fn shown(email: &str, password: &Redacted<String>) -> CommandOutput {
    let password = password.expose();
    CommandOutput::new(json!({"email": email, "password": password}), format!("{password}\n\nThe password of {email} is not shown again."))
}
