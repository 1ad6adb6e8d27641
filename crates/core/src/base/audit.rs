//! Records who changed what, in the transaction that changes it.
//!
//! Interfaces run each request of a person, a key or the command line inside [`Act::run`]. Use cases add a [`Change`] before they commit;
//! outside of an act, as in scheduled work, that does nothing. Of messages, those that people write on a page are recorded; sending through
//! the API changes no configuration, so it is not recorded and pays nothing for this.

use std::net::IpAddr;

use nuncio_domain::audit::{Actor, ActorKind, Entry};
use nuncio_domain::{Ids, InvitationId, TenantId, config::Project};
use nuncio_store::Tx;
use serde::Serialize;
use serde_json::{Map, Value};
use url::Url;

use super::{Caller, Core};

tokio::task_local! {
    static ACT: Act;
}

/// Types of resources whose changes are recorded.
pub(crate) const KINDS: &[&str] = &[
    "api_key", "balance", "broadcast", "connection", "contact", "delivery", "inventory", "invitation", "mail_domain", "message", "person",
    "phone_number", "prices", "project", "review_policy", "sender", "storage_quota", "suppression", "template", "webhook",
];
/// Maximum length of a recorded text, in characters.
const TEXT: usize = 500;
/// Placeholder for a value that is not recorded.
const LEFT_OUT: &str = "[left out]";
/// Members never recorded, whatever the resource.
const SECRETS: &[&str] = &["secret", "secrets", "password", "token"];
/// Members ignored in comparisons.
const NOISE: &[&str] = &["updatedAt", "health", "metrics"];
/// Recorded members of resources with personal data or content. The others are left out.
const KEPT: &[(&str, &[&str])] = &[
    (
        "contact",
        &["id", "availableChannels", "defaultChannel", "countryCode", "verified", "mergedFrom", "channel", "channelId", "isPrimary"],
    ),
    ("suppression", &["id", "channel", "senderId", "reason"]),
    ("invitation", &["id", "status", "phoneNumberId", "senderId", "allowedPhoneCountries", "expiresAt"]),
    (
        "broadcast",
        &[
            "id", "name", "status", "channel", "messageType", "senderId", "canary", "canarySentAt", "haltOn", "quietHours", "trackLinks",
            "scheduledAt", "totalContacts", "recipients", "estimatedCost", "reservedAmount", "approved",
        ],
    ),
    ("message", &["status", "action"]),
];

/// The actor of a request, and the address it came from.
#[derive(Clone, Debug)]
pub struct Act {
    actor: Option<Actor>,
    from: String,
    ids: Ids,
}

impl Act {
    /// An actor who is not identified yet, such as during sign-in. Only changes that name their actor are recorded.
    pub const fn unknown(from: String, ids: Ids) -> Self {
        Self { actor: None, from, ids }
    }

    pub fn key(caller: &Caller, from: IpAddr, ids: Ids) -> Self {
        let actor = Actor { kind: ActorKind::ApiKey, name: caller.key.to_string(), label: caller.key_name.clone() };
        Self { actor: Some(actor), from: from.to_string(), ids }
    }

    pub fn person(email: &str, from: IpAddr, ids: Ids) -> Self {
        Self { actor: Some(person(email)), from: from.to_string(), ids }
    }

    pub fn command_line(ids: Ids) -> Self {
        let actor = Actor { kind: ActorKind::CommandLine, name: "command line".to_owned(), label: String::new() };
        Self { actor: Some(actor), from: String::new(), ids }
    }

    /// Runs `work` as this actor.
    pub async fn run<F: Future>(self, work: F) -> F::Output {
        ACT.scope(self, work).await
    }
}

fn person(email: &str) -> Actor {
    Actor { kind: ActorKind::Person, name: email.to_owned(), label: String::new() }
}

#[derive(Clone, Debug)]
pub(crate) struct Change {
    kind: &'static str,
    verb: &'static str,
    resource: String,
    by: Option<Actor>,
    before: Option<Value>,
    after: Option<Value>,
}

impl Change {
    /// Describes `verb` on a resource, named by its id, or by its name if it has no id.
    pub(crate) fn new(kind: &'static str, verb: &'static str, resource: impl ToString) -> Self {
        debug_assert!(KINDS.contains(&kind), "{kind} must be one of KINDS");
        let resource = if is_in_act() { resource.to_string() } else { String::new() };
        Self { kind, verb, resource, by: None, before: None, after: None }
    }

    /// Sets the resource before the change, if there was one.
    pub(crate) fn from(mut self, before: &impl Serialize) -> Self {
        self.before = is_in_act().then(|| serde_json::to_value(before).unwrap_or_default()).filter(|before| !before.is_null());
        self
    }

    /// Sets the resource after the change.
    pub(crate) fn to(mut self, after: &impl Serialize) -> Self {
        self.after = is_in_act().then(|| serde_json::to_value(after).unwrap_or_default());
        self
    }

    /// Sets the actor, for requests that identify a person themselves.
    pub(crate) fn by(self, email: &str) -> Self {
        Self { by: Some(person(email)), ..self }
    }

    /// Sets the client of an invitation as the actor.
    pub(crate) fn by_guest(self, invitation: InvitationId) -> Self {
        let actor = Actor { kind: ActorKind::Guest, name: invitation.to_string(), label: String::new() };
        Self { by: Some(actor), ..self }
    }

    /// Writes the entry in the transaction of the change; nothing outside of an act, without an actor, or if nothing differs.
    pub(crate) async fn record(self, tx: &mut dyn Tx, tenant: TenantId) -> nuncio_store::Result<()> {
        let Some((act, actor)) = ACT.try_with(Act::clone).ok().and_then(|act| {
            let actor = self.by.clone().or_else(|| act.actor.clone())?;
            Some((act, actor))
        }) else {
            return Ok(());
        };
        let (before, after) = differences(self.before, self.after);
        let is_empty = |value: &Option<Value>| value.as_ref().and_then(Value::as_object).is_some_and(Map::is_empty);
        if is_empty(&before) && is_empty(&after) {
            return Ok(()); // unchanged
        }
        let shown = |value: Option<Value>| value.map(|value| redact(self.kind, value));
        let entry = Entry {
            id: act.ids.next(),
            tenant,
            actor,
            from: act.from,
            kind: self.kind.to_owned(),
            verb: self.verb.to_owned(),
            resource: self.resource,
            before: shown(before),
            after: shown(after),
        };
        tx.insert_audit_entry(&entry).await
    }

    /// Writes the entry, and commits the transaction.
    pub(crate) async fn commit(self, mut tx: Box<dyn Tx>, tenant: TenantId) -> nuncio_store::Result<()> {
        self.record(&mut *tx, tenant).await?;
        tx.commit().await
    }

    /// Writes the entry of a project's resource, which belongs to neither environment.
    pub(crate) async fn record_of(self, tx: &mut dyn Tx, project: &Project) -> nuncio_store::Result<()> {
        self.record(tx, project.live).await
    }

    /// Like [`Self::record_of`], and commits the transaction.
    pub(crate) async fn commit_of(self, tx: Box<dyn Tx>, project: &Project) -> nuncio_store::Result<()> {
        self.commit(tx, project.live).await
    }
}

impl Core {
    /// Writes the entry in a separate transaction, for changes that the store commits itself.
    pub(crate) async fn record_apart(&self, change: Change, tenant: TenantId) -> nuncio_store::Result<()> {
        if !is_in_act() {
            return Ok(());
        }
        let tx = self.inner.store.begin().await?;
        change.commit(tx, tenant).await
    }
}

fn is_in_act() -> bool {
    ACT.try_with(|_| ()).is_ok()
}

/// Reduces two objects to the members that differ.
fn differences(before: Option<Value>, after: Option<Value>) -> (Option<Value>, Option<Value>) {
    let (Some(Value::Object(mut before)), Some(Value::Object(mut after))) = (before.clone(), after.clone()) else { return (before, after) };
    let same: Vec<String> = before.iter().filter(|(name, value)| after.get(*name) == Some(value)).map(|(name, _)| name.clone()).collect();
    for name in same.iter().map(String::as_str).chain(NOISE.iter().copied()) {
        before.remove(name);
        after.remove(name);
    }
    (Some(before.into()), Some(after.into()))
}

/// Removes secrets, personal data and noise from a value.
fn redact(kind: &str, value: Value) -> Value {
    let kept = KEPT.iter().find(|(of, _)| *of == kind).map(|(_, kept)| *kept);
    let Value::Object(members) = value else { return truncate(value) };
    let member = |(name, value): (String, Value)| {
        let shown = match kept {
            Some(kept) if !kept.contains(&name.as_str()) && !value.is_null() => LEFT_OUT.into(),
            _ => without_secrets(&name, value),
        };
        (name, shown)
    };
    members.into_iter().filter(|(name, _)| !NOISE.contains(&name.as_str())).map(member).collect::<Map<_, _>>().into()
}

fn without_secrets(name: &str, value: Value) -> Value {
    if SECRETS.contains(&name) && !value.is_null() {
        return LEFT_OUT.into();
    }
    match value {
        Value::Object(members) => members
            .into_iter()
            .map(|(name, value)| {
                let value = without_secrets(&name, value);
                (name, value)
            })
            .collect::<Map<_, _>>()
            .into(),
        Value::Array(items) => items.into_iter().map(|item| without_secrets("", item)).collect(),
        Value::String(text) if name.ends_with("rl") => url_without_secrets(&text).unwrap_or_else(|| truncate(text.into())),
        other => truncate(other),
    }
}

/// Returns a URL without user, password and query, which can be secrets; `None` if it is not a URL.
fn url_without_secrets(text: &str) -> Option<Value> {
    let mut url = Url::parse(text).ok()?;
    let had_query = url.query().is_some();
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    url.set_query(had_query.then_some("…"));
    Some(truncate(url.to_string().replace("%E2%80%A6", "…").into()))
}

fn truncate(value: Value) -> Value {
    match value {
        Value::String(text) if text.chars().count() > TEXT => {
            let length = text.chars().count();
            let begin: String = text.chars().take(TEXT).collect();
            format!("{begin}… ({length} characters)").into()
        }
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_differs_is_kept_and_no_secret() {
        let before = json!({"name": "a", "same": 1, "webhook": {"url": "https://me:pw@x.test/h?key=1", "secret": "whsec"}, "updatedAt": 1});
        let after = json!({"name": "b", "same": 1, "webhook": null, "updatedAt": 2});
        let (before, after) = differences(Some(before), Some(after));
        let redact = |value: Option<Value>| value.map(|value| redact("sender", value)).unwrap_or_default();
        assert_eq!(redact(before), json!({"name": "a", "webhook": {"url": "https://x.test/h?…", "secret": LEFT_OUT}}));
        assert_eq!(redact(after), json!({"name": "b", "webhook": null}));
    }

    #[test]
    fn personal_data_and_contents_are_left_out() {
        let contact = json!({"displayName": "Ana", "defaultChannel": "sms", "metadata": {"a": 1}, "phoneNumber": null});
        let shown = json!({"displayName": LEFT_OUT, "defaultChannel": "sms", "metadata": LEFT_OUT, "phoneNumber": null});
        assert_eq!(redact("contact", contact), shown);
        let long = "x".repeat(TEXT + 1);
        assert!(redact("template", json!({"body": long}))["body"].as_str().is_some_and(|text| text.ends_with("… (501 characters)")));
    }
}
