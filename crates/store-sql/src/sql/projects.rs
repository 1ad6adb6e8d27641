//! Projects and their environments.

use async_trait::async_trait;
use nuncio_domain::config::{Project, TenantConfig};
use nuncio_domain::{Colour, Environment, TenantId, Timestamp};
use nuncio_store::{ProjectRepo, Result};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{Columns, Db, Record, SqlTx, connections, senders};
use crate::row::corrupt;

const PROJECTS: &str = r"
    SELECT p.id, p.name, p.colour, p.team_id, p.team_name, l.tenant_id AS live, t.tenant_id AS test
    FROM projects p
    JOIN worlds l ON l.project_id = p.id AND l.environment = 'live'
    JOIN worlds t ON t.project_id = p.id AND t.environment = 'test'";

impl Record for Project {
    const TABLE: &'static str = "projects";

    fn read(row: &Columns<'_>) -> Result<Self> {
        let colour: Option<String> = row.get("colour")?;
        let parsed = |text: String| Colour::parse(&text).ok_or_else(|| corrupt(Self::TABLE, format!("colour {text:?}")));
        Ok(Self {
            id: row.get("id")?,
            name: row.get("name")?,
            colour: colour.map(parsed).transpose()?,
            team: row.get("team_id")?,
            team_name: row.get("team_name")?,
            live: row.get("live")?,
            test: row.get("test")?,
        })
    }
}

#[async_trait]
impl ProjectRepo for SqlTx {
    async fn insert_project(&mut self, project: Project, now: Timestamp) -> Result<Project> {
        self.run(sql!(
            "INSERT INTO projects (id, name, colour, team_id, team_name, created_at) VALUES ($1, $2, $3, $4, $5, $6)",
            [project.id, &project.name, project.colour.map(|colour| colour.to_string()), project.team, &project.team_name, now]
        ))
        .await?;
        let mut tenants = [TenantId(0); 2];
        for (slot, environment) in tenants.iter_mut().zip([Environment::Live, Environment::Test]) {
            (*slot,) = self
                .one(sql!(
                    r"
                    INSERT INTO worlds (tenant_id, project_id, environment, epoch)
                    SELECT COALESCE(MAX(tenant_id), 0) + 1, $1, $2, 1
                    FROM worlds
                    RETURNING tenant_id",
                    [project.id, environment]
                ))
                .await?;
        }
        let [live, test] = tenants;
        Ok(Project { live, test, ..project })
    }

    async fn list_projects(&mut self) -> Result<Vec<Project>> {
        let mut query = QueryBuilder::<Db>::new(PROJECTS);
        query.push(" ORDER BY p.created_at, p.id");
        self.all(query.build()).await
    }

    async fn update_project(&mut self, project: &Project) -> Result<bool> {
        self.changes(sql!(
            "UPDATE projects SET name = $2, colour = $3 WHERE id = $1",
            [project.id, &project.name, project.colour.map(|colour| colour.to_string())]
        ))
        .await
    }

    async fn load_tenant(&mut self, tenant: TenantId) -> Result<Option<TenantConfig>> {
        // The epoch is read first: if the rest is newer, the accept finds the epoch stale and plans again.
        let head: Option<(String, i64, Uuid)> =
            self.optional(sql!("SELECT environment, epoch, project_id FROM worlds WHERE tenant_id = $1", [tenant])).await?;
        let Some((text, epoch, project_id)) = head else { return Ok(None) };
        let environment = Environment::parse(&text).ok_or_else(|| corrupt("worlds", text))?;
        let mut query = QueryBuilder::<Db>::new(PROJECTS);
        query.push(" WHERE p.id = ").push_bind(project_id);
        let project: Option<Project> = self.optional(query.build()).await?;
        let project = project.ok_or_else(|| corrupt("worlds", "a world without its project"))?;
        let senders = senders::all(self, tenant).await?;
        let connections = connections::all(self, tenant).await?;
        Ok(Some(TenantConfig { tenant, environment, epoch, project, senders, connections }))
    }

    async fn raise_epoch(&mut self, tenant: TenantId) -> Result<()> {
        self.write(sql!("UPDATE worlds SET epoch = epoch + 1 WHERE tenant_id = $1", [tenant])).await
    }

    async fn epochs(&mut self, tenants: &[TenantId]) -> Result<Vec<(TenantId, i64)>> {
        if tenants.is_empty() {
            return Ok(Vec::new());
        }
        let mut query = QueryBuilder::<Db>::new("SELECT tenant_id, epoch FROM worlds WHERE tenant_id IN (");
        let mut list = query.separated(", ");
        for tenant in tenants {
            list.push_bind(tenant.0);
        }
        query.push(")");
        self.all(query.build()).await
    }

    async fn check_key(&mut self, check: &[u8]) -> Result<bool> {
        self.run(sql!("UPDATE worlds SET key_check = $1 WHERE key_check IS NULL", [check])).await?;
        let (others,): (i64,) = self.one(sql!("SELECT CAST(COUNT(*) AS BIGINT) FROM worlds WHERE key_check <> $1", [check])).await?;
        Ok(others == 0)
    }
}
