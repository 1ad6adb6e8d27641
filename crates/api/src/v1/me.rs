//! `GET /v1/me`.

use nuncio_domain::{Environment, KeyId, Permissions, ProjectId, TeamId};
use serde::Serialize;
use utoipa::ToSchema;

use crate::extract::Call;
use crate::reply::{Reply, Result};

/// Scope of an API key.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Me {
    project: Project,
    team: Team,
    api_key: RequestKey,
    /// Whether the key belongs to the test environment.
    is_test_mode: bool,
}

/// A project.
#[derive(Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Project {
    id: ProjectId,
    name: String,
    /// Colour of the pages of its invitations; absent if it has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(pattern = "^#[0-9a-f]{6}$", example = "#2747c7")]
    colour: Option<String>,
    /// Always false.
    is_sub_account: bool,
}

/// The team that owns a project.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Team {
    id: TeamId,
    name: String,
}

/// The API key of the request.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RequestKey {
    id: KeyId,
    name: String,
    /// Its permissions; `*` means all.
    permissions: Permissions,
}

/// Show the scope of the API key
///
/// Its project, environment and permissions. Needs no permission.
#[utoipa::path(get, path = "/v1/me", tag = "Account", responses((status = 200, description = "Project, team and key.", body = Me)))]
pub(crate) async fn get_me(Call(core, caller): Call) -> Result<Reply<Me>> {
    let world = core.tenant_config(caller.tenant).await?;
    let project = &world.project;
    Ok(Reply::ok(Me {
        project: Project {
            id: project.id,
            name: project.name.clone(),
            colour: project.colour.map(|colour| colour.to_string()),
            is_sub_account: false,
        },
        team: Team { id: project.team, name: project.team_name.clone() },
        api_key: RequestKey { id: caller.key, name: caller.key_name, permissions: caller.permissions },
        is_test_mode: caller.environment == Environment::Test,
    }))
}
