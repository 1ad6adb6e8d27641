//! `nuncio projects`.

use clap::Subcommand;

use crate::admin::Command;

#[derive(Debug, Subcommand)]
pub(super) enum ProjectsAction {
    /// List projects, oldest first.
    List,
    /// Create a project.
    Create {
        /// Its name.
        name: String,
    },
    /// Rename the project that --project names.
    Rename {
        /// The new name.
        name: String,
    },
}

impl From<ProjectsAction> for Command {
    fn from(action: ProjectsAction) -> Self {
        match action {
            ProjectsAction::List => Self::ProjectsList,
            ProjectsAction::Create { name } => Self::ProjectsCreate { name },
            ProjectsAction::Rename { name } => Self::ProjectsRename { name },
        }
    }
}
