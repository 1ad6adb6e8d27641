//! `PATCH` and `DELETE /v1/phone-numbers/{id}`.

use nuncio_domain::number::{NumberStatus, PhoneNumber};
use nuncio_domain::{Error, ErrorCode, Result, SenderId, TenantId, Timestamp, config::TenantConfig};
use nuncio_store::Tx;
use serde::Deserialize;
use utoipa::ToSchema;

use super::{Numbers, check_name, view::PhoneNumberView};
use crate::base::{Caller, Change, UseCase, is_blank, parse_id, parse_id_at, patch};

/// Changes of a number; absent fields stay unchanged.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = UpdatePhoneNumber)]
pub struct UpdateNumber {
    /// Your name for it; null or empty clears it.
    #[serde(deserialize_with = "patch::nullable")]
    #[schema(max_length = 100)]
    pub name: Option<Option<String>>,
    /// The sender to assign it to; null unassigns it.
    #[serde(deserialize_with = "patch::nullable")]
    pub sender_id: Option<Option<String>>,
}

impl Numbers<'_> {
    /// Renames a number, and assigns or unassigns it. A sender without a phone number takes an assigned one as its own, and loses it with
    /// the assignment.
    pub async fn update(&self, caller: &Caller, id: &str, asked: UpdateNumber) -> Result<PhoneNumberView> {
        caller.require(UseCase::UpdatePhoneNumber)?;
        let id = parse_id(id, "phone number")?;
        let mut errors = Vec::new();
        check_name(asked.name.as_ref().and_then(|name| name.as_deref()), &mut errors);
        Error::if_any(errors)?;
        let wanted = asked.sender_id.map(|id| id.map(|text| parse_id_at("senderId", &text, "sender")).transpose()).transpose()?;
        let now = self.ids().clock.now();
        // Every change of senders is serialised per environment before it locks anything else.
        let mut tx = match wanted {
            Some(_) => self.change_config(caller.tenant).await?,
            None => self.inner.store.begin().await?,
        };
        let mut number = tx.lock_number(caller.tenant, id).await?.ok_or_else(|| Error::not_found("phone number"))?;
        let before = PhoneNumberView::from(number.clone());
        if let Some(name) = asked.name {
            number.name = name.filter(|name| !is_blank(name));
        }
        match wanted {
            Some(Some(sender)) => assign(&mut *tx, caller.tenant, &mut number, sender, now).await?,
            Some(None) => unassign(&mut *tx, caller.tenant, &mut number, now).await?,
            None => {}
        }
        number.updated_at = now;
        tx.update_number(caller.tenant, &number).await?;
        let view = PhoneNumberView::from(number);
        Change::new("phone_number", "update", id).from(&before).to(&view).record(&mut *tx, caller.tenant).await?;
        self.commit_change(caller.tenant, tx).await?;
        Ok(view)
    }

    /// Returns a number to the inventory. Fails if a sender or an open invitation uses it.
    pub async fn release(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require(UseCase::ReleasePhoneNumber)?;
        let id = parse_id(id, "phone number")?;
        let now = self.ids().clock.now();
        let mut tx = self.change_config(caller.tenant).await?;
        let number = tx.lock_number(caller.tenant, id).await?.ok_or_else(|| Error::not_found("phone number"))?;
        if let Some(sender) = number.sender {
            return Err(bound(format!("the number is assigned to sender {sender}; unassign it first (PATCH with senderId null)")));
        }
        let config = tx.load_tenant(caller.tenant).await?.ok_or_else(|| Error::not_found("project"))?;
        if let Some(sender) = other_holder(&config, None, &number.phone_number) {
            return Err(bound(format!("sender {sender} sends from the number; give that sender another phoneNumber first")));
        }
        refuse_reserved(&mut *tx, caller.tenant, &number, now).await?;
        tx.release_number(caller.tenant, id, now).await?;
        Change::new("phone_number", "release", id).from(&PhoneNumberView::from(number)).record(&mut *tx, caller.tenant).await?;
        self.commit_change(caller.tenant, tx).await
    }
}

async fn assign(tx: &mut dyn Tx, tenant: TenantId, number: &mut PhoneNumber, sender: SenderId, now: Timestamp) -> Result<()> {
    let config = tx.load_tenant(tenant).await?.ok_or_else(|| Error::not_found("project"))?;
    if config.sender(sender).is_none() {
        return Err(Error::not_found("sender"));
    }
    if number.sender == Some(sender) {
        return Ok(());
    }
    if number.status != NumberStatus::Active {
        let message = "only an active number can be assigned to a sender";
        return Err(Error::wrong_state(message, number.status.as_str(), &[NumberStatus::Active.as_str()]));
    }
    if let Some(other) = number.sender.or(other_holder(&config, Some(sender), &number.phone_number)) {
        return Err(belongs_to(other));
    }
    refuse_reserved(tx, tenant, number, now).await?;
    take(tx, tenant, number, sender, now).await
}

/// Fails with `409 conflict` if a phone number wanted for `sender`, which may not exist yet, belongs to another sender of the environment,
/// as its own or by assignment, or is reserved for an invitation. Must be called in a transaction that changes the environment.
pub(crate) async fn refuse_other_holder(
    tx: &mut dyn Tx,
    tenant: TenantId,
    sender: Option<SenderId>,
    phone_number: &str,
    now: Timestamp,
) -> Result<()> {
    if phone_number.is_empty() {
        return Ok(());
    }
    let config = tx.load_tenant(tenant).await?.ok_or_else(|| Error::not_found("project"))?;
    if let Some(other) = other_holder(&config, sender, phone_number) {
        return Err(belongs_to(other));
    }
    let Some((_, Some(held))) = tx.find_inventory_number(tenant, phone_number).await? else { return Ok(()) };
    let Some(number) = tx.find_number(tenant, held).await? else { return Ok(()) };
    match number.sender {
        Some(other) if sender != Some(other) => Err(belongs_to(other)),
        Some(_) => Ok(()),
        None => refuse_reserved(tx, tenant, &number, now).await,
    }
}

/// Returns the sender other than `sender` that has a phone number.
fn other_holder(config: &TenantConfig, sender: Option<SenderId>, phone_number: &str) -> Option<SenderId> {
    config.senders.iter().find(|s| Some(s.id) != sender && s.phone_number == phone_number).map(|s| s.id)
}

fn belongs_to(other: SenderId) -> Error {
    bound(format!("the number belongs to sender {other}; a number belongs to at most one sender"))
}

/// Assigns a number to a sender. A sender without a phone number takes it as its own.
pub(crate) async fn take(tx: &mut dyn Tx, tenant: TenantId, number: &mut PhoneNumber, sender: SenderId, now: Timestamp) -> Result<()> {
    number.sender = Some(sender);
    number.updated_at = now;
    tx.swap_sender_phone(tenant, sender, "", &number.phone_number, now).await?;
    Ok(())
}

async fn unassign(tx: &mut dyn Tx, tenant: TenantId, number: &mut PhoneNumber, now: Timestamp) -> Result<()> {
    if let Some(sender) = number.sender.take() {
        tx.swap_sender_phone(tenant, sender, &number.phone_number, "", now).await?;
    }
    Ok(())
}

/// Fails if the number is reserved for an open invitation.
async fn refuse_reserved(tx: &mut dyn Tx, tenant: TenantId, number: &PhoneNumber, now: Timestamp) -> Result<()> {
    match tx.invitation_of_number(tenant, number.id, now).await? {
        Some(invitation) => Err(bound(format!("the number is reserved for invitation {invitation}; cancel that first"))),
        None => Ok(()),
    }
}

/// Returns `409 conflict`.
pub(crate) fn bound(message: String) -> Error {
    Error::new(ErrorCode::Conflict, message)
}
