//! Records who changed what, in the transaction that changes it.
//!
//! Whoever serves a request of a person, a key or the command line runs it inside [`Act::run`]. Use cases add a [`Change`] before they
//! commit; outside of an act, as when nuncio itself does what falls due, that adds nothing. Messages are no configuration: sending one is
//! not recorded, and nothing of this touches their way.

use std::net::IpAddr;

use nuncio_domain::audit::{Actor, ActorKind, Entry};
use nuncio_domain::config::Project;
use nuncio_domain::{Ids, InvitationId, TenantId};
use nuncio_store::Tx;
use serde::Serialize;
use serde_json::{Map, Value};
use url::Url;

use super::{Caller, Core};

tokio::task_local! {
    static ACT: Act;
}

/// The longest text that is kept of a member, in characters.
const TEXT: usize = 500;
/// What stands for a value that is not kept.
const LEFT_OUT: &str = "[left out]";
/// Members that are never kept, of whatever resource.
const SECRETS: &[&str] = &["secret", "secrets", "password", "token"];
/// Members that say nothing about a change.
const NOISE: &[&str] = &["updatedAt", "health", "metrics"];
/// Of resources that hold personal data or contents: the members that are kept. All others are left out.
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
            "id",
            "name",
            "status",
            "channel",
            "messageType",
            "senderId",
            "canary",
            "haltOn",
            "quietHours",
            "trackLinks",
            "scheduledAt",
            "totalContacts",
            "recipients",
            "estimatedCost",
            "reservedAmount",
            "approved",
        ],
    ),
    ("message", &["status", "action"]),
];

/// Who acts, and from where, while a request is served.
#[derive(Clone, Debug)]
pub struct Act {
    actor: Option<Actor>,
    from: String,
    ids: Ids,
}

impl Act {
    /// Somebody who is not known yet, such as who signs in. Changes name their actor themselves, or are not recorded.
    pub const fn unknown(from: String, ids: Ids) -> Self {
        Self { actor: None, from, ids }
    }

    /// An API key.
    pub fn key(caller: &Caller, from: IpAddr, ids: Ids) -> Self {
        let actor = Actor { kind: ActorKind::Key, name: caller.key.to_string(), label: caller.key_name.clone() };
        Self { actor: Some(actor), from: from.to_string(), ids }
    }

    /// A person, by their email address.
    pub fn person(email: &str, from: IpAddr, ids: Ids) -> Self {
        Self { actor: Some(person(email)), from: from.to_string(), ids }
    }

    /// The command line.
    pub fn command_line(ids: Ids) -> Self {
        let actor = Actor { kind: ActorKind::CommandLine, name: "command line".to_owned(), label: String::new() };
        Self { actor: Some(actor), from: String::new(), ids }
    }

    /// Does `work` as this actor.
    pub async fn run<F: Future>(self, work: F) -> F::Output {
        ACT.scope(self, work).await
    }
}

fn person(email: &str) -> Actor {
    Actor { kind: ActorKind::Person, name: email.to_owned(), label: String::new() }
}

/// A change to record.
#[derive(Debug)]
pub(crate) struct Change {
    kind: &'static str,
    verb: &'static str,
    resource: String,
    by: Option<Actor>,
    before: Option<Value>,
    after: Option<Value>,
}

impl Change {
    /// `verb` was done to the resource of this kind with this id, or this name if it has none.
    pub(crate) fn new(kind: &'static str, verb: &'static str, resource: impl ToString) -> Self {
        let resource = if is_watched() { resource.to_string() } else { String::new() };
        Self { kind, verb, resource, by: None, before: None, after: None }
    }

    /// How the resource was before.
    pub(crate) fn from(mut self, before: &impl Serialize) -> Self {
        self.before = is_watched().then(|| serde_json::to_value(before).unwrap_or_default());
        self
    }

    /// How it is now.
    pub(crate) fn to(mut self, after: &impl Serialize) -> Self {
        self.after = is_watched().then(|| serde_json::to_value(after).unwrap_or_default());
        self
    }

    /// Who did it, where the request itself shows who somebody is.
    pub(crate) fn by(self, email: &str) -> Self {
        Self { by: Some(person(email)), ..self }
    }

    /// The same by the client of an invitation.
    pub(crate) fn by_guest(self, invitation: InvitationId) -> Self {
        let actor = Actor { kind: ActorKind::Guest, name: invitation.to_string(), label: String::new() };
        Self { by: Some(actor), ..self }
    }

    /// Adds it to the log, in the transaction that changes.
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
            return Ok(()); // it is as it was
        }
        let shown = |value: Option<Value>| value.map(|value| clean(self.kind, value));
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

    /// The same for what belongs to a project and to no environment.
    pub(crate) async fn record_of(self, tx: &mut dyn Tx, project: &Project) -> nuncio_store::Result<()> {
        self.record(tx, project.live).await
    }
}

impl Core {
    /// Adds a change to the log after it was made, for changes that the store makes by itself.
    pub(crate) async fn record_apart(&self, change: Change, tenant: TenantId) -> nuncio_store::Result<()> {
        if !is_watched() {
            return Ok(());
        }
        let mut tx = self.inner.store.begin().await?;
        change.record(&mut *tx, tenant).await?;
        tx.commit().await
    }
}

fn is_watched() -> bool {
    ACT.try_with(|_| ()).is_ok()
}

/// Of two objects the members that differ.
fn differences(before: Option<Value>, after: Option<Value>) -> (Option<Value>, Option<Value>) {
    let (Some(Value::Object(mut before)), Some(Value::Object(mut after))) = (before.clone(), after.clone()) else { return (before, after) };
    let same: Vec<String> = before.iter().filter(|(name, value)| after.get(*name) == Some(value)).map(|(name, _)| name.clone()).collect();
    for name in same.iter().map(String::as_str).chain(NOISE.iter().copied()) {
        before.remove(name);
        after.remove(name);
    }
    (Some(before.into()), Some(after.into()))
}

/// A value without what must not be in the log.
fn clean(kind: &str, value: Value) -> Value {
    let kept = KEPT.iter().find(|(of, _)| *of == kind).map(|(_, kept)| *kept);
    let Value::Object(members) = value else { return short(value) };
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
        Value::String(text) if name.ends_with("rl") => plain_url(&text).unwrap_or_else(|| short(text.into())),
        other => short(other),
    }
}

/// A URL without user, password and query, which may be secrets of whoever serves it. `None` for what is none.
fn plain_url(text: &str) -> Option<Value> {
    let mut url = Url::parse(text).ok()?;
    let had_query = url.query().is_some();
    url.set_username("").ok()?;
    url.set_password(None).ok()?;
    url.set_query(had_query.then_some("…"));
    Some(short(url.to_string().replace("%E2%80%A6", "…").into()))
}

fn short(value: Value) -> Value {
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
        let clean = |value: Option<Value>| value.map(|value| clean("sender", value)).unwrap_or_default();
        assert_eq!(clean(before), json!({"name": "a", "webhook": {"url": "https://x.test/h?…", "secret": LEFT_OUT}}));
        assert_eq!(clean(after), json!({"name": "b", "webhook": null}));
    }

    #[test]
    fn personal_data_and_contents_are_left_out() {
        let contact = json!({"displayName": "Ana", "defaultChannel": "sms", "metadata": {"a": 1}, "phoneNumber": null});
        let shown = json!({"displayName": LEFT_OUT, "defaultChannel": "sms", "metadata": LEFT_OUT, "phoneNumber": null});
        assert_eq!(clean("contact", contact), shown);
        let long = "x".repeat(TEXT + 1);
        assert!(clean("template", json!({"body": long}))["body"].as_str().is_some_and(|text| text.ends_with("… (501 characters)")));
    }
}
