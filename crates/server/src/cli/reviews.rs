//! `nuncio reviews`: escalated broadcasts, and the policy of the automated review.

use clap::Subcommand;
use nuncio_domain::Environment;

use crate::admin::Command;
use crate::client::profile::environment;

#[derive(Debug, Subcommand)]
pub(super) enum ReviewsAction {
    /// List escalated broadcasts, with the findings of the automated review.
    List,
    /// Approve an escalated broadcast.
    Approve {
        /// The broadcast.
        id: String,
        /// The reason, shown to its author.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Reject an escalated broadcast permanently.
    Refuse {
        /// The broadcast.
        id: String,
        /// The reason, shown to its author.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Show the review policy of the project, after applying the options given.
    Policy {
        /// Only this environment [default: both].
        #[arg(long, value_parser = environment())]
        env: Option<Environment>,
        /// The score from which a broadcast passes, 0 to 1 [default: 0.6].
        #[arg(long, value_parser = score)]
        threshold: Option<f64>,
        /// Words and phrases that no broadcast may contain, separated by commas. Replaces the list; "" empties it.
        #[arg(long, value_name = "WORDS")]
        blocked_words: Option<String>,
        /// The project's own domains, links to which are not judged, separated by commas. Replaces the list; "" empties it.
        #[arg(long, value_name = "DOMAINS")]
        allowed_domains: Option<String>,
    },
    /// Print every text that a person decided on, one JSON object per line, as training data for the review.
    Export {
        /// Only this environment [default: both].
        #[arg(long, value_parser = environment())]
        env: Option<Environment>,
    },
}

impl From<ReviewsAction> for Command {
    fn from(action: ReviewsAction) -> Self {
        match action {
            ReviewsAction::List => Self::ReviewsList,
            ReviewsAction::Approve { id, reason } => Self::ReviewsDecide { id, approve: true, reason },
            ReviewsAction::Refuse { id, reason } => Self::ReviewsDecide { id, approve: false, reason },
            ReviewsAction::Policy { env, threshold, blocked_words, allowed_domains } => Self::ReviewsPolicy {
                env,
                threshold,
                blocked_words: blocked_words.as_deref().map(comma_separated),
                allowed_domains: allowed_domains.as_deref().map(comma_separated),
            },
            ReviewsAction::Export { env } => Self::ReviewsExport { env },
        }
    }
}

/// A score, 0 to 1. A number that is not finite would get lost on its way to the server.
fn score(text: &str) -> Result<f64, String> {
    let score = text.parse().ok().filter(|score| (0.0..=1.0).contains(score));
    score.ok_or_else(|| "must be a number from 0 to 1, such as 0.6".to_owned())
}

fn comma_separated(text: &str) -> Vec<String> {
    text.split(',').map(|item| item.trim().to_owned()).filter(|item| !item.is_empty()).collect()
}
