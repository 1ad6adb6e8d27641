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
    /// Set the colour of the pages that invited clients see, for the project that --project names.
    Colour {
        /// Six hexadecimal digits after #, in quotes, such as '#2747c7'; none removes the colour.
        colour: String,
    },
}

impl From<ProjectsAction> for Command {
    fn from(action: ProjectsAction) -> Self {
        match action {
            ProjectsAction::List => Self::ProjectsList,
            ProjectsAction::Create { name } => Self::ProjectsCreate { name },
            ProjectsAction::Rename { name } => Self::ProjectsRename { name },
            ProjectsAction::Colour { colour } => Self::ProjectsColour { colour: Some(colour).filter(|colour| colour != "none") },
        }
    }
}
