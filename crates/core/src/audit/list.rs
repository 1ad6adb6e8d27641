//! `GET /v1/audit-log`: who changed what in an environment.

use nuncio_domain::audit::{Actor, ActorKind, Entry, Filter};
use nuncio_domain::{AuditEntryId, Result, Timestamp, id::Id as _};
use serde::Serialize;
use serde_json::Value;
use utoipa::ToSchema;

use super::Audit;
use crate::base::{Caller, UseCase, audit, list, list::Listed};

/// A change.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = AuditEntry)]
pub struct AuditEntryView {
    /// Its identifier.
    pub id: AuditEntryId,
    /// Who made the change.
    pub actor: AuditActorView,
    /// Network address that the request came from; absent for the command line.
    pub address: Option<String>,
    /// What was done, such as `update`.
    #[schema(example = "update")]
    pub action: String,
    /// Type of the changed resource, such as `sender`.
    #[schema(example = "sender")]
    pub resource_type: String,
    /// Id of the changed resource, or its name if it has no id.
    pub resource_id: String,
    /// Members that changed or were removed, as they were before. Secrets, content and personal data are left out.
    #[schema(value_type = Option<Object>)]
    pub before: Option<Value>,
    /// Members that changed or were added, as they are since then.
    #[schema(value_type = Option<Object>)]
    pub after: Option<Value>,
    /// When the change was made.
    pub created_at: Timestamp,
}

/// Who made a change.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = AuditActor)]
pub struct AuditActorView {
    /// What kind of actor.
    #[serde(rename = "type")]
    pub kind: ActorKind,
    /// Email address of a person, id of an API key, id of the invitation of a guest, or `command line`.
    pub id: String,
    /// Name of an API key at the time of the change; absent for other actors.
    pub name: Option<String>,
}

impl From<Actor> for AuditActorView {
    fn from(actor: Actor) -> Self {
        Self { kind: actor.kind, id: actor.name, name: given(actor.label) }
    }
}

impl From<Entry> for AuditEntryView {
    fn from(entry: Entry) -> Self {
        Self {
            id: entry.id,
            actor: entry.actor.into(),
            address: given(entry.from),
            action: entry.verb,
            resource_type: entry.kind,
            resource_id: entry.resource,
            before: entry.before,
            after: entry.after,
            created_at: entry.id.created_at(),
        }
    }
}

fn given(text: String) -> Option<String> {
    Some(text).filter(|text| !text.is_empty())
}

list::list_query! {
    /// Query of `GET /v1/audit-log`.
    ListAuditEntries {
        /// By this actor: the `id` of `actor`.
        #[param(min_length = 1, max_length = 200, example = "ada@example.org")]
        pub actor: Option<String>,
        /// Of resources of this type.
        #[param(min_length = 1, max_length = 200, example = "sender")]
        pub resource_type: Option<String>,
        /// Of this resource.
        #[param(min_length = 1, max_length = 200)]
        pub resource_id: Option<String>,
    }
}

impl Audit<'_> {
    /// `GET /v1/audit-log`: a page of the environment's changes, and the cursor of the next one. Changes of the whole project are in the
    /// log of its live environment.
    pub async fn list(&self, caller: &Caller, asked: &ListAuditEntries) -> Result<Listed<AuditEntryView>> {
        caller.require(UseCase::ListAuditEntries)?;
        let (range, mut errors) = list::asked!(asked);
        let filter = Filter {
            actor: list::part(asked.actor.as_deref(), "query.actor", &mut errors),
            resource: list::part(asked.resource_id.as_deref(), "query.resourceId", &mut errors),
            kind: list::one_of(asked.resource_type.as_deref(), audit::KINDS, "query.resourceType", &mut errors),
        };
        let listing = self.listing(caller.tenant, &format!("audit-log?{filter:?}"), &range, errors)?;
        let page = self.inner.store.read().await?.list_audit_entries(caller.tenant, &filter, listing.page).await?;
        let items = page.items.into_iter().map(AuditEntryView::from).collect();
        Ok((items, self.next_cursor(caller.tenant, &listing, page.next)))
    }
}
