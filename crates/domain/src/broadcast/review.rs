//! Results, decisions and rules of the content review.

use serde::{Deserialize, Serialize};

use crate::{template, time::Timestamp};

/// Result of a review.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase")]
pub struct ReviewResult {
    /// From 0 to 1; 1 is safe.
    pub score: f64,
    /// Categories of violations found.
    pub categories: Vec<String>,
    /// Explanation, one or two sentences.
    pub reasoning: String,
    /// When the review ran.
    pub reviewed_at: Timestamp,
    /// The offending fragments, as written.
    pub flagged_content: Vec<String>,
    /// Version of the rules and the model. The same version gives the same text the same result.
    #[serde(default)]
    pub version: u32,
}

/// A human reviewer's decision on an escalated broadcast.
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewDecision {
    /// Whether the broadcast can be sent.
    pub approved: bool,
    /// Reason, shown to the caller who created the broadcast.
    pub reason: Option<String>,
    pub decided_at: Timestamp,
}

/// The template of a broadcast as of its review.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct ReviewedTemplate {
    pub status: template::Status,
    pub content: template::Content,
}

/// The operator's content rules for a project's broadcasts, in addition to those of every review.
#[derive(Clone, PartialEq, Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct ReviewPolicy {
    /// Lowest score that passes, 0 to 1.
    pub threshold: f64,
    /// Words and phrases that no broadcast may contain; case and accents are ignored.
    pub blocked_words: Vec<String>,
    /// The project's own domains: links to them and their subdomains are not judged.
    pub allowed_domains: Vec<String>,
}

impl Default for ReviewPolicy {
    fn default() -> Self {
        Self { threshold: 0.6, blocked_words: Vec::new(), allowed_domains: Vec::new() }
    }
}
