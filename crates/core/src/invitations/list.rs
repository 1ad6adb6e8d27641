//! `GET /v1/invitations`, `GET /v1/invitations/{id}`, `POST /v1/invitations/{id}/cancel`.

use nuncio_domain::{Error, InvitationId, Result, invitation::InvitationStatus};
use serde_json::json;

use super::{Invitations, status, view::InvitationView};
use crate::base::{Caller, Change, UseCase, list, list::Listed, parse_id};

crate::base::list::list_query! {
    /// Query of `GET /v1/invitations`.
    ListInvitations {
        /// Statuses, repeated or comma-separated.
        #[param(value_type = Option<Vec<InvitationStatus>>, style = Form, explode, min_items = 1)]
        pub status: Option<String>,
    }
}

impl Invitations<'_> {
    pub(super) async fn find(&self, caller: &Caller, id: InvitationId) -> Result<InvitationView> {
        let found = self.inner.store.read().await?.find_invitation(caller.tenant, id).await?;
        found.map(|found| self.view(caller, &found)).ok_or_else(|| Error::not_found("invitation"))
    }

    /// `GET /v1/invitations/{id}`.
    pub async fn get(&self, caller: &Caller, id: &str) -> Result<InvitationView> {
        caller.require(UseCase::GetInvitation)?;
        self.find(caller, parse_id(id, "invitation")?).await
    }

    /// `GET /v1/invitations`: returns a page and the cursor of the next one.
    pub async fn list(&self, caller: &Caller, asked: &ListInvitations) -> Result<Listed<InvitationView>> {
        caller.require(UseCase::ListInvitations)?;
        let (range, mut errors) = list::asked!(asked);
        let statuses = list::words(asked.status.as_deref(), "query.status", InvitationStatus::parse, InvitationStatus::ALL, &mut errors);
        let listing = self.listing(caller.tenant, &format!("invitations?{statuses:?}"), &range, errors)?;
        let now = self.ids().clock.now();
        let page = self.inner.store.read().await?.list_invitations(caller.tenant, &statuses, now, listing.page).await?;
        let items = page.items.iter().map(|invitation| self.view(caller, invitation)).collect();
        Ok((items, self.next_cursor(caller.tenant, &listing, page.next)))
    }

    /// `POST /v1/invitations/{id}/cancel`: withdraws an open invitation. Its link stops working.
    pub async fn cancel(&self, caller: &Caller, id: &str) -> Result<InvitationView> {
        caller.require(UseCase::CancelInvitation)?;
        let id = parse_id(id, "invitation")?;
        let now = self.ids().clock.now();
        let mut tx = self.inner.store.begin().await?;
        let mut invitation = tx.lock_invitation(caller.tenant, id).await?.ok_or_else(|| Error::not_found("invitation"))?;
        let current = invitation.status_at(now);
        if !current.is_open() {
            let open = [InvitationStatus::Pending.as_str(), InvitationStatus::InProgress.as_str()];
            return Err(Error::wrong_state("only an open invitation can be cancelled", current.as_str(), &open));
        }
        status::change(&mut *tx, caller.tenant, &mut invitation, InvitationStatus::Cancelled, now).await?;
        let shown = |status: InvitationStatus| json!({"status": status.as_str()});
        let change = Change::new("invitation", "cancel", id).from(&shown(current)).to(&shown(InvitationStatus::Cancelled));
        change.commit(tx, caller.tenant).await?;
        Ok(self.view(caller, &invitation))
    }
}
