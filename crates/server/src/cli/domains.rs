//! `nuncio domains`.

use clap::Subcommand;

use crate::admin::Command;

#[derive(Debug, Subcommand)]
pub(super) enum DomainsAction {
    /// List domains and their projects.
    List,
    /// Assign a domain to a project: its live connections receive email to addresses of the domain. Subdomains are not included.
    Add {
        /// The domain, such as example.org.
        domain: String,
        /// ID or name of the project [default: the oldest].
        #[arg(long, value_name = "PROJECT", help_heading = "Installation")]
        project: Option<String>,
    },
    /// Withdraw a domain. Email to addresses that were claimed through it no longer arrives.
    Remove {
        /// The domain.
        domain: String,
    },
}

impl DomainsAction {
    /// The project that the domain is assigned to, if one was named.
    pub(super) fn project(&self) -> Option<&String> {
        if let Self::Add { project, .. } = self { project.as_ref() } else { None }
    }
}

impl From<DomainsAction> for Command {
    fn from(action: DomainsAction) -> Self {
        match action {
            DomainsAction::List => Self::DomainsList,
            DomainsAction::Add { domain, .. } => Self::DomainsAdd { domain },
            DomainsAction::Remove { domain } => Self::DomainsRemove { domain },
        }
    }
}
