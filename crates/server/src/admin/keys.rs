//! `nuncio keys`.

use nuncio_core::{Core, KeyView};
use nuncio_domain::config::Project;
use nuncio_domain::{Environment, Error, ErrorCode, Permissions, Result, Timestamp};
use serde_json::{Value, json};

use crate::answer::CommandOutput;
use crate::client::lists::KEYS;

/// Creates a key.
pub(super) async fn create(
    core: &Core,
    project: &Project,
    name: &str,
    env: Environment,
    permissions: &[String],
    expires_at: Option<Timestamp>,
) -> Result<CommandOutput> {
    let permissions = Permissions::parse(permissions.iter().map(String::as_str)).map_err(|e| Error::field("permissions", e.to_string()))?;
    let new = core.keys().create(project.tenant(env), env, name, permissions, expires_at).await?;
    let mut key = serde_json::to_value(KeyView::new(new.key, Some(new.secret))).map_err(Error::internal)?;
    key["environment"] = env.as_str().into();
    let (text, notice) = created(&key);
    Ok(CommandOutput { notice: Some(notice), ..CommandOutput::new(key, text) })
}

/// A new key, and what is said of it.
pub(crate) fn created(key: &Value) -> (String, String) {
    let text = |name: &str| key[name].as_str().unwrap_or_default();
    (text("key").to_owned(), format!("The key is not shown again. Its ID is {}.", text("id")))
}

/// Lists the keys of an environment, newest first.
pub(super) async fn list(core: &Core, project: &Project, env: Environment) -> Result<CommandOutput> {
    let keys = core.keys().list(project.tenant(env)).await?.into_iter().rev();
    let items = keys.map(|key| serde_json::to_value(KeyView::new(key, None))).collect::<Result<_, _>>().map_err(Error::internal)?;
    Ok(KEYS.answer(items))
}

/// Revokes a key of either environment.
pub(super) async fn revoke(core: &Core, project: &Project, id: &str) -> Result<CommandOutput> {
    let missing = || Error::new(ErrorCode::NotFound, "API key not found; give its ID (key_…), which `nuncio keys list` shows");
    let id = id.parse().map_err(|_| missing())?;
    for env in [Environment::Live, Environment::Test] {
        match core.keys().revoke(project.tenant(env), id).await {
            Ok(revoked) => {
                let text = if revoked { "revoked; every node rejects the key from now on" } else { "was already revoked" };
                return Ok(CommandOutput::new(json!({"id": id, "revoked": true}), text));
            }
            Err(error) if error.code() == ErrorCode::NotFound => {}
            Err(error) => return Err(error),
        }
    }
    Err(missing())
}
