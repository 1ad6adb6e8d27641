//! Reads the audit log.

use nuncio_domain::audit::{Entry, Filter};
use nuncio_domain::page::{Page, PageRequest};
use nuncio_domain::{Environment, Error, ErrorCode, Result, Timestamp, config::Project, id::Id as _, user::Role};
use nuncio_store::Tx;
use uuid::Uuid;

use super::{SignedIn, Users};

/// Page size.
const PAGE: u32 = 50;
/// Kinds of resources that belong to a project, not to an environment.
const OF_PROJECT: &[&str] = &["project", "person", "mail_domain", "prices"];

/// Filters of the audit log.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListAudit {
    /// A person's email address, an API key's id, or `command line`.
    pub actor: Option<String>,
    /// A resource's id or name, or a kind such as `sender`.
    pub resource: Option<String>,
    /// At or after this time.
    pub since: Option<Timestamp>,
    /// Before this time.
    pub until: Option<Timestamp>,
    /// The cursor returned with the previous page.
    pub cursor: Option<String>,
}

#[derive(Clone, PartialEq, Debug)]
pub struct AuditEntryView {
    pub entry: Entry,
    /// `None` for a resource of the whole project.
    pub environment: Option<Environment>,
}

impl Users<'_> {
    /// Returns changes in both environments of the project, newest first, and the cursor of the next page. `403 forbidden` for viewers.
    pub async fn audit_log(&self, who: &SignedIn, asked: &ListAudit) -> Result<(Vec<AuditEntryView>, Option<String>)> {
        if who.role < Role::Operator {
            return Err(Error::new(ErrorCode::Forbidden, "only operators and owners can read the audit log"));
        }
        let scope = format!("audit?{:?}", (&asked.actor, &asked.resource, asked.since, asked.until));
        let tenant = who.project.live;
        let before = asked.cursor.as_deref().map(|cursor| self.cursors().read(tenant, &scope, cursor)).transpose()?;
        let page = PageRequest::older(PAGE, before.map(Uuid::from_bytes)).within(asked.since, asked.until);
        // Only names of kinds consist of lower-case letters and underscores.
        let word = asked.resource.clone().filter(|text| text.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_'));
        let resource = if word.is_some() { None } else { asked.resource.clone() };
        let filter = Filter { actor: asked.actor.clone(), resource, kind: word };
        let mut tx = self.inner.store.read().await?;
        let found = merged_page(&mut *tx, &who.project, &filter, page).await?;
        let next = found.next.map(|id| self.cursors().make(tenant, &scope, *id.as_bytes()));
        let view = |entry: Entry| {
            let environment = if entry.tenant == who.project.live { Environment::Live } else { Environment::Test };
            AuditEntryView { environment: (!OF_PROJECT.contains(&entry.kind.as_str())).then_some(environment), entry }
        };
        Ok((found.items.into_iter().map(view).collect(), next))
    }
}

/// Merges the entries of both environments into one page, which ends where the shorter one ended.
async fn merged_page(tx: &mut dyn Tx, project: &Project, filter: &Filter, page: PageRequest) -> Result<Page<Entry>> {
    let live = tx.list_audit_entries(project.live, filter, page).await?;
    let test = tx.list_audit_entries(project.test, filter, page).await?;
    let end = live.next.max(test.next);
    let mut items: Vec<Entry> =
        live.items.into_iter().chain(test.items).filter(|entry| end.is_none_or(|end| entry.id.uuid() >= end)).collect();
    items.sort_unstable_by_key(|entry| std::cmp::Reverse(entry.id));
    let full = items.len() > page.limit as usize;
    items.truncate(page.limit as usize);
    let next = if full { items.last().map(|entry| entry.id.uuid()) } else { end };
    Ok(Page { items, next })
}
