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
    /// Rename a project.
    Rename {
        /// The new name.
        name: String,
        /// ID or name of the project [default: the oldest].
        #[arg(long, value_name = "PROJECT", help_heading = "Installation")]
        project: Option<String>,
    },
    /// Set the colour of the pages that invited clients of a project see.
    Colour {
        /// Six hexadecimal digits after #, in quotes, such as '#2747c7'; none removes the colour.
        colour: String,
        /// ID or name of the project [default: the oldest].
        #[arg(long, value_name = "PROJECT", help_heading = "Installation")]
        project: Option<String>,
    },
}

impl ProjectsAction {
    /// The project that is changed, if one was named.
    pub(super) fn project(&self) -> Option<&String> {
        match self {
            Self::Rename { project, .. } | Self::Colour { project, .. } => project.as_ref(),
            Self::List | Self::Create { .. } => None,
        }
    }
}

impl From<ProjectsAction> for Command {
    fn from(action: ProjectsAction) -> Self {
        match action {
            ProjectsAction::List => Self::ProjectsList,
            ProjectsAction::Create { name } => Self::ProjectsCreate { name },
            ProjectsAction::Rename { name, .. } => Self::ProjectsRename { name },
            ProjectsAction::Colour { colour, .. } => Self::ProjectsColour { colour: Some(colour).filter(|colour| colour != "none") },
        }
    }
}
