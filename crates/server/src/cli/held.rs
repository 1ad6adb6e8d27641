//! `nuncio held`: messages that wait for a decision.

use clap::{Subcommand, ValueEnum};
use nuncio_domain::lifecycle::Resolution;

use crate::admin::Command;

#[derive(Debug, Subcommand)]
pub(super) enum HeldAction {
    /// List held messages.
    List,
    /// Resolve a held message, or all of them.
    Resolve {
        /// The message; or --all.
        id: Option<String>,
        /// All held messages.
        #[arg(long)]
        all: bool,
        /// What to do: resend it, or count it as sent or failed.
        #[arg(long)]
        action: Decision,
    },
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Decision {
    /// Send it (again).
    Resend,
    /// Count it as sent.
    Sent,
    /// Count it as failed.
    Failed,
}

impl Decision {
    /// Its name in the API.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Resend => "resend",
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }
}

impl From<HeldAction> for Command {
    fn from(action: HeldAction) -> Self {
        match action {
            HeldAction::List => Self::HeldList,
            HeldAction::Resolve { id, all, action } => {
                let action = match action {
                    Decision::Resend => Resolution::Resend,
                    Decision::Sent => Resolution::Sent,
                    Decision::Failed => Resolution::Failed,
                };
                Self::HeldResolve { id, all, action }
            }
        }
    }
}
