//! Projects and environments.

use nuncio_domain::config::{Project, Sender};
use nuncio_domain::user::{Membership, Role};
use nuncio_domain::{Colour, Environment, Error, FieldError, Result, TenantId, UserId};
use serde_json::{Value, json};

use super::Projects;
use crate::base::{Change, project_name};
use crate::numbers;

/// New properties of a project; absent ones stay.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct UpdateProject {
    pub name: Option<String>,
    /// `#rrggbb`; `Some(None)` removes the colour.
    pub colour: Option<Option<String>>,
}

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

    /// Changes name and colour. Every node shows them within a second.
    pub async fn update(&self, project: &Project, command: UpdateProject) -> Result<Project> {
        let mut tx = self.change_project(project).await?;
        let before = tx.list_projects().await?.into_iter().find(|stored| stored.id == project.id);
        let before = before.ok_or_else(|| Error::not_found("project"))?;
        let after = changed(&before, command)?;
        tx.update_project(&after).await?;
        Change::new("project", "update", project.id).from(&shown(&before)).to(&shown(&after)).record_of(&mut *tx, project).await?;
        self.commit_project(project, tx).await?;
        Ok(after)
    }

    /// Creates a project with a default sender in each environment; all channels of the one in the test environment are simulated.
    /// It belongs to `owner`, if one is given.
    pub async fn create(&self, name: &str, owner: Option<UserId>) -> Result<Project> {
        let name = project_name("name", name).map_err(|error| Error::invalid(vec![error]))?;
        let now = self.ids().clock.now();
        let mut tx = self.inner.store.begin().await?;
        let project = Project {
            id: self.ids().next(),
            name: name.clone(),
            colour: None,
            team: self.ids().next(),
            team_name: name.clone(),
            live: TenantId(0),
            test: TenantId(0),
        };
        let project = tx.insert_project(project, now).await?;
        if let Some(owner) = owner {
            tx.insert_membership(owner, Membership { project: project.id, role: Role::Owner }, now).await?;
        }
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
        Change::new("project", "create", project.id).to(&json!({"name": name})).commit_of(tx, &project).await?;
        self.check_keys().await?;
        if let Some(sender) = simulated {
            self.senders().query_new_account(project.test, sender).await;
        }
        Ok(project)
    }
}

/// Returns the project with its new properties, or all of their errors.
fn changed(project: &Project, command: UpdateProject) -> Result<Project> {
    let mut errors = Vec::new();
    let name = command.name.map_or_else(|| Ok(project.name.clone()), |name| project_name("name", &name));
    let name = name.map_err(|error| errors.push(error)).unwrap_or_default();
    let colour = match command.colour {
        None => project.colour,
        Some(None) => None,
        Some(Some(text)) => read_colour(&text).map_err(|error| errors.push(error)).ok(),
    };
    if errors.is_empty() { Ok(Project { name, colour, ..project.clone() }) } else { Err(Error::invalid(errors)) }
}

fn read_colour(text: &str) -> Result<Colour, FieldError> {
    Colour::parse(text).ok_or_else(|| {
        let shown: String = text.chars().take(64).collect();
        FieldError::new("colour", format!("is {shown:?}; must be # and six hexadecimal digits, such as #2747c7"))
    })
}

/// Returns the members that the audit log records.
fn shown(project: &Project) -> Value {
    json!({"name": project.name, "colour": project.colour.map(|colour| colour.to_string())})
}
