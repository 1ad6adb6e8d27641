//! The operator's own reviewer: any HTTP server that is asked about content that the built-in review lets through.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, header};
use nuncio_domain::broadcast::{Broadcast, ReviewResult};
use nuncio_net::{Client, FetchLimits, GuardPolicy};
use serde::Deserialize;
use serde_json::json;

use super::Subject;

/// The longest answer, in bytes.
const ANSWER: u64 = 64 * 1024;
/// The most characters of reasoning, and the most categories and fragments, that are kept of an answer.
const REASONING: usize = 2_000;
const KEPT: usize = 20;

/// Where content is reviewed beside the built-in review. Clones are one.
#[derive(Clone, Debug)]
pub struct Reviewer {
    client: Client,
    url: String,
    headers: HeaderMap,
    /// For one request, from resolving to the last byte.
    pub(crate) timeout: Duration,
    /// Whether content passes on the built-in review alone while the reviewer cannot be asked.
    pub(crate) fail_open: bool,
}

/// What a reviewer answers: a score of 0 (refuse) to 1 (nothing found), and why.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    score: f64,
    #[serde(default)]
    categories: Vec<String>,
    #[serde(default)]
    reasoning: String,
    #[serde(default)]
    flagged_content: Vec<String>,
}

impl Reviewer {
    /// Makes one. `token` goes into `Authorization: Bearer`; empty for none. The URL is the operator's, and may be of a private network.
    ///
    /// # Errors
    ///
    /// Says what is wrong with the URL or the token.
    pub fn new(url: &str, token: &str, timeout: Duration, fail_open: bool) -> Result<Self, String> {
        let client = Client::new(GuardPolicy::open()).map_err(|error| error.to_string())?;
        client.check_url(url)?;
        let mut headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        if !token.is_empty() {
            let value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| "the token has characters that no header may have")?;
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(Self { client, url: url.to_owned(), headers, timeout, fail_open })
    }

    /// Adds the reviewer's verdict to that of the built-in review: the lower score counts, and both say why. The error says why there is
    /// no verdict; it repeats no content.
    pub(crate) async fn review(&self, broadcast: &Broadcast, subject: &Subject, found: &mut ReviewResult) -> Result<(), String> {
        let question = json!({
            "broadcastId": broadcast.id, "channel": broadcast.channel, "sender": subject.sender, "texts": subject.texts,
            "html": subject.html, "links": subject.links, "score": found.score, "categories": found.categories,
        });
        let limits = FetchLimits { max_bytes: ANSWER, timeout: self.timeout };
        let asked = self.client.request(Method::POST, &self.url, self.headers.clone(), question.to_string().into_bytes(), limits).await;
        let response = asked.map_err(|error| error.to_string())?;
        if !response.status.is_success() {
            return Err(format!("it answered with status {}", response.status.as_u16()));
        }
        let answer: Answer = serde_json::from_slice(&response.body).map_err(|error| format!("its answer cannot be read: {error}"))?;
        if !(0.0..=1.0).contains(&answer.score) {
            return Err(format!("its score is {}; must be 0 to 1", answer.score));
        }
        found.score = found.score.min(answer.score);
        found.categories.extend(answer.categories.into_iter().take(KEPT));
        found.flagged_content.extend(answer.flagged_content.into_iter().take(KEPT));
        let reasoning: String = answer.reasoning.chars().take(REASONING).collect();
        note(found, &format!("The reviewer gave {}{}{reasoning}", answer.score, if reasoning.is_empty() { "." } else { ": " }));
        Ok(())
    }
}

/// Adds a sentence to the reasoning of a review.
pub(crate) fn note(found: &mut ReviewResult, sentence: &str) {
    found.reasoning.push(' ');
    found.reasoning.push_str(sentence);
}
