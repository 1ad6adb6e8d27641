//! `PATCH` and `DELETE /v1/phone-numbers/{id}`.

use nuncio_domain::config::World;
use nuncio_domain::number::{NumberStatus, PhoneNumber};
use nuncio_domain::{Error, ErrorCode, Permission, Result, SenderId, TenantId, Timestamp};
use nuncio_store::Tx;
use serde::Deserialize;
use utoipa::ToSchema;

use super::Numbers;
use super::check_name;
use super::view::PhoneNumberView;
use crate::base::{Caller, parse_id, patch};

/// What to change about a number; what is absent stays.
#[derive(Clone, Debug, Default, Deserialize, ToSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = UpdatePhoneNumber)]
pub struct UpdateNumber {
    /// Your own name for it; null or an empty text clears it.
    #[serde(deserialize_with = "patch::nullable")]
    #[schema(value_type = Option<String>, max_length = 100)]
    pub name: Option<Option<String>>,
    /// The sender to assign it to; null unassigns it.
    #[serde(deserialize_with = "patch::nullable")]
    #[schema(value_type = Option<String>)]
    pub sender_id: Option<Option<String>>,
}

impl Numbers<'_> {
    /// Names a number, and assigns it to a sender or takes it from one. A sender without a phone number takes the one that it is
    /// given as its own, and loses it with it.
    pub async fn update(&self, caller: &Caller, id: &str, asked: UpdateNumber) -> Result<PhoneNumberView> {
        caller.require(Permission::NumbersWrite)?;
        let id = parse_id(id, "phone number")?;
        let mut errors = Vec::new();
        check_name(asked.name.as_ref().and_then(|name| name.as_deref()), &mut errors);
        if !errors.is_empty() {
            return Err(Error::invalid(errors));
        }
        let wanted = match asked.sender_id {
            Some(Some(text)) => Some(Some(parse_id(&text, "sender")?)),
            Some(None) => Some(None),
            None => None,
        };
        let now = self.ids().clock.now();
        // What touches a sender takes its turn among the changes of the world, before it locks anything else.
        let mut tx = match wanted {
            Some(_) => self.change_world(caller.tenant).await?,
            None => self.inner.store.begin().await?,
        };
        let mut number = tx.lock_number(caller.tenant, id).await?.ok_or_else(|| Error::not_found("phone number"))?;
        if let Some(name) = asked.name {
            number.name = name.filter(|name| !name.is_empty());
        }
        match wanted {
            Some(Some(sender)) => assign(&mut *tx, caller.tenant, &mut number, sender, now).await?,
            Some(None) => unassign(&mut *tx, caller.tenant, &mut number, now).await?,
            None => {}
        }
        number.updated_at = now;
        tx.update_number(caller.tenant, &number).await?;
        self.commit_change(caller.tenant, tx).await?;
        Ok(number.into())
    }

    /// Gives a number back to the inventory. One that a sender or an open invitation needs stays.
    pub async fn release(&self, caller: &Caller, id: &str) -> Result<()> {
        caller.require(Permission::NumbersWrite)?;
        let id = parse_id(id, "phone number")?;
        let now = self.ids().clock.now();
        let mut tx = self.inner.store.begin().await?;
        let number = tx.lock_number(caller.tenant, id).await?.ok_or_else(|| Error::not_found("phone number"))?;
        if let Some(sender) = number.sender {
            return Err(bound(format!("the number is assigned to sender {sender}; unassign it first (PATCH with senderId null)")));
        }
        refuse_reserved(&mut *tx, caller.tenant, &number, now).await?;
        tx.release_number(caller.tenant, id, now).await?;
        Ok(tx.commit().await?)
    }
}

async fn assign(tx: &mut dyn Tx, tenant: TenantId, number: &mut PhoneNumber, sender: SenderId, now: Timestamp) -> Result<()> {
    let world = tx.load_world(tenant).await?.ok_or_else(|| Error::not_found("project"))?;
    if world.sender(sender).is_none() {
        return Err(Error::not_found("sender"));
    }
    if number.sender == Some(sender) {
        return Ok(());
    }
    if number.status != NumberStatus::Active {
        let message = "only an active number can be assigned to a sender";
        return Err(Error::wrong_state(message, number.status.as_str(), &[NumberStatus::Active.as_str()]));
    }
    if let Some(other) = number.sender.or(bearer(&world, sender, &number.phone_number)) {
        return Err(belongs_to(other));
    }
    refuse_reserved(tx, tenant, number, now).await?;
    take(tx, tenant, number, sender, now).await
}

/// Fails with `409 conflict` when a phone number that `sender` is to bear belongs to another one of the world: because that one bears
/// it, or because the number was acquired and assigned to it. To be called in a transaction that changes the world.
pub(crate) async fn refuse_borne(tx: &mut dyn Tx, tenant: TenantId, sender: SenderId, phone_number: &str) -> Result<()> {
    if phone_number.is_empty() {
        return Ok(());
    }
    let world = tx.load_world(tenant).await?.ok_or_else(|| Error::not_found("project"))?;
    let mut other = bearer(&world, sender, phone_number);
    if let Some((_, Some(held))) = tx.find_inventory_number(tenant, phone_number).await? {
        let assigned = tx.find_number(tenant, held).await?.and_then(|number| number.sender);
        other = other.or(assigned.filter(|assigned| *assigned != sender));
    }
    other.map_or(Ok(()), |other| Err(belongs_to(other)))
}

/// The sender other than `sender` that bears a phone number.
fn bearer(world: &World, sender: SenderId, phone_number: &str) -> Option<SenderId> {
    world.senders.iter().find(|s| s.id != sender && s.phone_number == phone_number).map(|s| s.id)
}

fn belongs_to(other: SenderId) -> Error {
    bound(format!("the number belongs to sender {other}; a number belongs to at most one sender"))
}

/// Writes down that a number is a sender's. A sender that has no phone number takes it as its own.
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

/// Fails when the number is set aside for an open invitation.
pub(crate) async fn refuse_reserved(tx: &mut dyn Tx, tenant: TenantId, number: &PhoneNumber, now: Timestamp) -> Result<()> {
    match tx.invitation_of_number(tenant, number.id, now).await? {
        Some(invitation) => Err(bound(format!("the number is set aside for invitation {invitation}; cancel that first"))),
        None => Ok(()),
    }
}

/// `409 conflict`: the number is bound elsewhere.
pub(crate) fn bound(message: String) -> Error {
    Error::new(ErrorCode::Conflict, message)
}
