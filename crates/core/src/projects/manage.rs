//! Projects and environments.

use nuncio_domain::config::{Project, Sender};
use nuncio_domain::{Environment, Error, Result, TenantId, limits, line};

use serde_json::json;

use super::Projects;
use crate::base::Change;
use crate::numbers;

impl Projects<'_> {
    /// Fails unless this node has the encryption keys of this database's environments: with other keys it could neither decrypt their
    /// secrets nor recognise erased contacts.
    pub async fn check_keys(&self) -> Result<()> {
        let check = self.inner.sealer.derive(b"which key this is");
        let mut tx = self.inner.store.begin().await?;
        let same = tx.check_key(check.expose()).await?;
        tx.commit().await?;
        if same { Ok(()) } else { Err(Error::unavailable("the encryption keys differ from those this database was set up with")) }
    }

    /// Returns all projects, oldest first.
    pub async fn list(&self) -> Result<Vec<Project>> {
        Ok(self.inner.store.read().await?.list_projects().await?)
    }

    pub async fn rename(&self, project: &Project, name: &str) -> Result<()> {
        if let Some(fault) = line::check("name", name, 1, limits::PROJECT_NAME) {
            return Err(Error::invalid(vec![fault]));
        }
        let mut tx = self.inner.store.begin().await?;
        tx.rename_project(project.id, name).await?;
        let change = Change::new("project", "update", project.id).from(&json!({"name": project.name})).to(&json!({"name": name}));
        change.record_of(&mut *tx, project).await?;
        Ok(tx.commit().await?)
    }

    /// Creates a project with a default sender in each environment; all channels of the one in the test environment are simulated.
    pub async fn create(&self, name: &str) -> Result<Project> {
        if let Some(fault) = line::check("name", name, 1, limits::PROJECT_NAME) {
            return Err(Error::invalid(vec![fault]));
        }
        let now = self.ids().clock.now();
        let mut tx = self.inner.store.begin().await?;
        let project = Project {
            id: self.ids().next(),
            name: name.to_owned(),
            team: self.ids().next(),
            team_name: name.to_owned(),
            live: TenantId(0),
            test: TenantId(0),
        };
        let project = tx.insert_project(project, now).await?;
        let mut simulated = None;
        for environment in [Environment::Live, Environment::Test] {
            let sender = Sender { is_default: true, ..Sender::new(self.ids().at(now), "Default", now) };
            let tenant = project.tenant(environment);
            self.senders().write(&mut *tx, tenant, environment, &sender).await?;
            if environment == Environment::Test {
                simulated = Some(sender.id);
                numbers::stock_sandbox(&mut *tx, tenant, now).await?;
            }
        }
        Change::new("project", "create", project.id).to(&json!({"name": name})).record_of(&mut *tx, &project).await?;
        tx.commit().await?;
        self.check_keys().await?;
        if let Some(sender) = simulated {
            self.senders().query_new_account(project.test, sender).await;
        }
        Ok(project)
    }
}
