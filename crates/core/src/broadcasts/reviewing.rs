//! Runs the automated review of broadcasts, and stores review policies and decisions.

use std::collections::BTreeMap;
use std::time::Duration;

use nuncio_domain::broadcast::{Broadcast, BroadcastAction, ReviewDecision, ReviewPolicy, ReviewResult, Variables};
use nuncio_domain::{BroadcastId, Channel, Error, Result, TenantId, Timestamp, page::PageRequest, plain, template::Template};
use nuncio_secrets::mac;
use nuncio_store::DueBroadcast;
use serde::Serialize;

use super::run::{self, Slots};
use super::{Broadcasts, act::is_ahead, content, content::fingerprint, variables, view::BroadcastView};
use crate::review::{self, Subject};
use crate::{base::Change, templates::render};

/// Maximum number of recipients whose values are reviewed, and bytes of content after which no further ones are.
const SAMPLE: usize = 100;
const SAMPLE_BYTES: usize = 4 << 20;
/// Recipients per page that these are picked from, and maximum number of pages.
const SCANNED: u32 = 1_000;
const SCANNED_PAGES: usize = 100;
/// Channels that together show all texts of a template.
const BODIES: [Channel; 4] = [Channel::Whatsapp, Channel::Sms, Channel::Telegram, Channel::Instagram];
/// Maximum number of blocked words or allowed domains of a policy, and of characters of one.
const LISTED: usize = 1_000;
const LISTED_LENGTH: usize = 100;
/// Delay before a reviewer without a verdict is called again.
const ASK_AGAIN: Duration = Duration::from_secs(30);
/// Broadcasts per read of an export.
const PAGE: u32 = 100;

/// A text that a person decided about, as a training example.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewExample {
    pub broadcast_id: BroadcastId,
    /// The person's decision.
    #[serde(flatten)]
    pub decision: ReviewDecision,
    /// Text or caption.
    pub text: Option<String>,
    pub email_subject: Option<String>,
    /// Result of the automated review.
    pub review_result: Option<ReviewResult>,
}

/// A broadcast that waits for an operator, with what it says: to its first recipient, then without anybody's values.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct EscalatedBroadcast {
    pub broadcast: BroadcastView,
    pub subjects: Vec<String>,
    /// The text or caption with links and choices, or what each channel shows of the template.
    pub texts: Vec<String>,
    /// The text of the HTML.
    pub html_texts: Vec<String>,
}

impl Broadcasts<'_> {
    /// Returns the broadcasts of an environment that wait for an operator, newest first.
    pub async fn escalated_content(&self, tenant: TenantId) -> Result<Vec<EscalatedBroadcast>> {
        let mut all = Vec::new();
        for listed in self.escalated(tenant).await? {
            let broadcast = self.find(tenant, listed.id).await?;
            let mut tx = self.inner.store.read().await?;
            let template = content::template(&mut *tx, &broadcast).await?.map(|template| content::reviewed(&broadcast, template));
            let first = tx.pending_broadcast_contacts(tenant, broadcast.id, None, 1).await?.found.pop();
            let (subjects, texts, html_texts) = <(Vec<_>, Vec<_>, Vec<_>)>::default();
            let mut out = EscalatedBroadcast { broadcast: BroadcastView::whole(&broadcast), subjects, texts, html_texts };
            for own in first.map(|contact| contact.variables).into_iter().chain([Variables::default()]) {
                let written = written(&broadcast, template.as_ref(), &own);
                add_new(&mut out.subjects, written.subject);
                add_new(&mut out.texts, written.texts);
                add_new(&mut out.html_texts, written.html.as_deref().map(review::text_of_html));
            }
            all.push(out);
        }
        Ok(all)
    }

    /// Reviews a broadcast, then sends or rejects it and returns `None`. Otherwise it stays `pending_review`; returns the time of the next
    /// review, or `None` if that is when the claim ends. The call of the reviewer takes one of the slots for reviews in exchange for `slot`;
    /// if none is free, a broadcast that is `late` keeps `slot`, and another waits for its next review.
    pub(super) async fn review<'s>(
        &self,
        broadcast: &Broadcast,
        due: &mut DueBroadcast,
        slots: &'s Slots,
        slot: &mut run::Slot<'s>,
        late: bool,
    ) -> Result<Option<Timestamp>> {
        let now = self.ids().clock.now();
        // If it was deleted, the recipients fail one by one.
        let template = content::template(&mut *self.inner.store.read().await?, broadcast).await?;
        let subject = self.subject_of(broadcast, template.as_ref()).await?;
        let policy = self.inner.store.read().await?.review_policy(broadcast.tenant).await?;
        let threshold = policy.threshold;
        // Texts of megabytes take seconds, in which other tasks of this thread would wait.
        let reviewing = tokio::task::spawn_blocking(move || {
            let result = review::review(&subject, &policy, now);
            (subject, result)
        });
        let (subject, mut result) = reviewing.await.map_err(Error::internal)?;
        if let (Some(reviewer), true) = (&self.inner.reviewer, result.score >= threshold) {
            match slots.take_for_review() {
                Some(own) => *slot = own,
                // At its next review it would not be late, and so be sent instead of held.
                None if late => {}
                None => return Ok(None),
            }
            // Keeps other nodes away during the call of the reviewer.
            if !self.claim(due, Some(now.plus(reviewer.timeout + run::LEASE))).await? {
                return Ok(None);
            }
            if let Err(reason) = reviewer.review(broadcast, &subject, &mut result).await {
                tracing::warn!(broadcast.id = %broadcast.id, reason, fail_open = reviewer.fail_open, "reviewer returned no verdict");
                if !reviewer.fail_open {
                    return Ok(Some(now.plus(ASK_AGAIN)));
                }
                review::note(&mut result, "The reviewer could not be reached; this is only the built-in review.");
            }
        }
        let passes = result.score >= threshold;
        let reviewed = fingerprint(broadcast, template.as_ref());
        let operation = |broadcast: &Broadcast| match passes {
            true => BroadcastAction::Pass { ahead: is_ahead(broadcast, now) },
            false => BroadcastAction::Reject,
        };
        self.change_as(broadcast.tenant, broadcast.id, operation, None, |broadcast, _| {
            broadcast.body.review = Some(result.clone());
            broadcast.body.reviewed_content = Some(reviewed.clone());
            Ok(())
        })
        .await?;
        Ok(None)
    }

    /// Returns the review policy of an environment.
    pub async fn review_policy(&self, tenant: TenantId) -> Result<ReviewPolicy> {
        Ok(self.inner.store.read().await?.review_policy(tenant).await?)
    }

    /// Sets the review policy. It applies from the next review on.
    pub async fn set_review_policy(&self, tenant: TenantId, mut policy: ReviewPolicy) -> Result<ReviewPolicy> {
        if !(0.0..=1.0).contains(&policy.threshold) {
            return Err(Error::field("threshold", format!("is {}; must be 0 to 1", policy.threshold)));
        }
        for (field, list) in [("blockedWords", &policy.blocked_words), ("allowedDomains", &policy.allowed_domains)] {
            if list.len() > LISTED {
                return Err(Error::field(field, format!("has {} items; must have at most {LISTED}", list.len())));
            }
            if let Some(word) = list.iter().find(|word| word.trim().is_empty() || word.chars().count() > LISTED_LENGTH) {
                return Err(Error::field(field, format!("{word:?} must have 1 to {LISTED_LENGTH} characters")));
            }
        }
        if let Some(word) = policy.blocked_words.iter().find(|word| !word.contains(char::is_alphanumeric)) {
            return Err(Error::field("blockedWords", format!("{word:?} must have a letter or a digit")));
        }
        let is_domain = |text: &str| {
            let inner = text.trim_matches('.');
            inner == text && inner.contains('.') && text.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '.' | '-'))
        };
        if let Some(domain) = policy.allowed_domains.iter().find(|domain| !is_domain(domain)) {
            return Err(Error::field("allowedDomains", format!("{domain:?} is not a domain such as acme.example")));
        }
        policy.allowed_domains.iter_mut().for_each(|domain| domain.make_ascii_lowercase());
        let mut tx = self.inner.store.begin().await?;
        let before = tx.review_policy(tenant).await?;
        tx.put_review_policy(tenant, &policy).await?;
        Change::new("review_policy", "update", "review policy").from(&before).to(&policy).commit(tx, tenant).await?;
        Ok(policy)
    }

    /// Returns all broadcasts of an environment that a person decided about, newest first.
    pub async fn review_examples(&self, tenant: TenantId) -> Result<Vec<ReviewExample>> {
        let (mut examples, mut before) = (Vec::new(), None);
        loop {
            let page = self.inner.store.read().await?.list_broadcasts(tenant, &[], PageRequest::older(PAGE, before)).await?;
            examples.extend(page.items.into_iter().filter_map(example));
            if page.next.is_none() {
                return Ok(examples);
            }
            before = page.next;
        }
    }

    async fn subject_of(&self, broadcast: &Broadcast, template: Option<&Template>) -> Result<Subject> {
        let config = self.tenant_config(broadcast.tenant).await?;
        let mut subject = Subject {
            links: broadcast.body.content.iter().filter_map(|c| c.media_url.clone()).collect(),
            sender: config.sender(broadcast.sender).map(|s| s.name.clone()).unwrap_or_default(),
            ..Subject::default()
        };
        let mut values = vec![Variables::default()];
        if template.is_some() || !variables::used(broadcast).is_empty() {
            values.extend(self.sample(broadcast).await?);
        }
        for own in &values {
            let Written { mut texts, subject: title, html } = written(broadcast, template, own);
            texts.extend(title);
            // Each has its own limit: neither can be padded to hide the other.
            for (known, new) in [(&mut subject.texts, texts), (&mut subject.html, html.into_iter().collect())] {
                if known.iter().map(String::len).sum::<usize>() < SAMPLE_BYTES {
                    add_new(known, new);
                }
            }
        }
        Ok(subject)
    }

    /// Returns the values of recipients, equal ones once. If there are too many, a keyed hash picks some: always the same ones, but their
    /// author cannot predict which.
    async fn sample(&self, broadcast: &Broadcast) -> Result<Vec<Variables>> {
        let key = self.inner.sealer.derive(b"reviewed recipients");
        let (mut picked, mut after) = (BTreeMap::new(), None);
        for _ in 0..SCANNED_PAGES {
            let page = self.inner.store.read().await?.pending_broadcast_contacts(broadcast.tenant, broadcast.id, after, SCANNED).await?;
            for contact in page.found {
                let values = serde_json::to_vec(&contact.variables).map_err(Error::internal)?;
                picked.insert(mac(key.expose(), &[values.as_slice()]), contact.variables);
                if picked.len() > SAMPLE {
                    picked.pop_last();
                }
            }
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        Ok(picked.into_values().collect())
    }
}

/// What a recipient gets.
struct Written {
    texts: Vec<String>,
    subject: Option<String>,
    html: Option<String>,
}

/// Returns what a recipient with these values gets on any channel. Where values are missing, the variables stay.
fn written(broadcast: &Broadcast, template: Option<&Template>, own: &Variables) -> Written {
    let mut command = content::message(broadcast);
    command.subject.clone_from(&broadcast.body.email_subject);
    command.html_body.clone_from(&broadcast.html);
    variables::fill_in(broadcast, own, &mut command).ok();
    let texts = match template {
        Some(template) => {
            let values = render::values(Some(&variables::merged(broadcast, own)));
            BODIES.map(|channel| render::render(template, channel, &values)).into()
        }
        None => {
            let message_type = broadcast.message_type.message_type();
            vec![plain::text(message_type, command.text.as_deref(), command.content.as_deref()).into_owned()]
        }
    };
    Written { texts, subject: command.subject, html: command.html_body }
}

/// Adds texts that are not known yet.
fn add_new(known: &mut Vec<String>, texts: impl IntoIterator<Item = String>) {
    for text in texts {
        if !text.is_empty() && !known.contains(&text) {
            known.push(text);
        }
    }
}

fn example(broadcast: Broadcast) -> Option<ReviewExample> {
    let body = broadcast.body;
    Some(ReviewExample {
        broadcast_id: broadcast.id,
        decision: body.decision?,
        text: body.text,
        email_subject: body.email_subject,
        review_result: body.review,
    })
}
