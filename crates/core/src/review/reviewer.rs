//! Calls the operator's own reviewer, an HTTP server that also reviews content which passed the built-in review.

use std::time::Duration;

use http::{HeaderMap, HeaderValue, Method, header};
use nuncio_domain::broadcast::{Broadcast, ReviewResult};
use nuncio_net::{Client, FetchLimits, GuardPolicy};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::{Subject, html::Page};

/// Maximum length of a response, in bytes.
const ANSWER: u64 = 64 * 1024;
/// Maximum number of characters of reasoning, and of categories and fragments, that are kept of a response.
const REASONING: usize = 2_000;
const KEPT: usize = 20;

/// An external reviewer. Clones share it.
#[derive(Clone, Debug)]
pub struct Reviewer {
    client: Client,
    url: String,
    headers: HeaderMap,
    /// For the whole request, including name resolution.
    pub(crate) timeout: Duration,
    /// Whether content passes on the built-in review alone while the reviewer is unavailable.
    pub(crate) fail_open: bool,
}

/// Response of a reviewer: a score from 0 (reject) to 1 (no findings), with reasons.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    score: f64,
    categories: Option<Vec<String>>,
    reasoning: Option<String>,
    flagged_content: Option<Vec<String>>,
}

impl Answer {
    /// Reads a JSON object. The derived implementation also takes an array of the fields.
    fn read(body: &[u8]) -> serde_json::Result<Self> {
        let object: Map<String, Value> = serde_json::from_slice(body)?;
        serde_json::from_value(object.into())
    }
}

impl Reviewer {
    /// Creates a reviewer. `token` is sent as `Authorization: Bearer`, unless empty. The URL may lead to a private network.
    ///
    /// # Errors
    ///
    /// Returns why `url` or `token` is invalid, with the name in front.
    pub fn new(url: &str, token: &str, timeout: Duration, fail_open: bool) -> Result<Self, String> {
        let client = Client::new(GuardPolicy::open()).map_err(|error| error.to_string())?;
        client.check_url(url).map_err(|problem| format!("url: {problem}"))?;
        let mut headers = HeaderMap::from_iter([(header::CONTENT_TYPE, HeaderValue::from_static("application/json"))]);
        if !token.is_empty() {
            let value = HeaderValue::try_from(format!("Bearer {token}")).map_err(|_| "token: has characters that headers cannot have")?;
            headers.insert(header::AUTHORIZATION, value);
        }
        Ok(Self { client, url: url.to_owned(), headers, timeout, fail_open })
    }

    /// Adds the reviewer's verdict to that of the built-in review: the lower score counts, with the reasons of both. The error of a missing
    /// verdict repeats nothing of the broadcast.
    pub(crate) async fn review(&self, broadcast: &Broadcast, subject: &Subject, found: &mut ReviewResult) -> Result<(), String> {
        // What other recipients see of the HTML is sent as text.
        let others = subject.html.iter().skip(1).map(|html| Page::of(html).text);
        let texts: Vec<String> = subject.texts.iter().cloned().chain(others).collect();
        let question = json!({
            "broadcastId": broadcast.id, "channel": broadcast.channel, "sender": subject.sender, "texts": texts,
            "html": subject.html.first(), "links": subject.links, "score": found.score, "categories": found.categories,
        });
        let limits = FetchLimits { max_bytes: ANSWER, timeout: self.timeout };
        let asked = self.client.request(Method::POST, &self.url, self.headers.clone(), question.to_string().into_bytes(), limits).await;
        let response = asked.map_err(|error| error.to_string())?;
        if !response.status.is_success() {
            return Err(format!("it responded with status {}", response.status.as_u16()));
        }
        let answer = Answer::read(&response.body).map_err(|error| format!("its response is invalid: {error}"))?;
        if !(0.0..=1.0).contains(&answer.score) {
            return Err(format!("its score is {}; must be 0 to 1", answer.score));
        }
        found.score = found.score.min(answer.score);
        found.categories.extend(answer.categories.into_iter().flatten().take(KEPT));
        found.flagged_content.extend(answer.flagged_content.into_iter().flatten().take(KEPT));
        let reasoning: String = answer.reasoning.unwrap_or_default().chars().take(REASONING).collect();
        let reasoning = if reasoning.is_empty() { ".".to_owned() } else { format!(": {reasoning}") };
        found.reasoning = format!("The reviewer's score is {}{reasoning} Built-in review: {}", answer.score, found.reasoning);
        Ok(())
    }
}

/// Adds a sentence to the reasoning of a review.
pub(crate) fn note(found: &mut ReviewResult, sentence: &str) {
    found.reasoning.push(' ');
    found.reasoning.push_str(sentence);
}
