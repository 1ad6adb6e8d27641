//! `POST /v1/phone-numbers`.

use nuncio_domain::number::{NumberStatus, PhoneNumber, first_renewal_after};
use nuncio_domain::{Error, ErrorCode, FieldError, PhoneNumberId, Result, address, id::Id as _};
use nuncio_store::{IdempotentOperation, Repeat};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{Numbers, charge::charge, check_name, view::PhoneNumberView};
use crate::base::{Caller, Change, UseCase, idempotency, is_blank, rights};

/// A number to acquire.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
#[schema(as = AcquirePhoneNumber)]
pub struct AcquireNumber {
    /// The number, as `GET /v1/phone-numbers/available` shows it.
    #[schema(min_length = 1, max_length = 16, example = "+12025550142")]
    pub phone_number: String,
    /// Your name for it; empty means none.
    #[schema(max_length = 100)]
    pub name: Option<String>,
}

impl Numbers<'_> {
    /// Acquires an available number for the caller's environment, and charges setup and first month. Of two concurrent callers, one gets
    /// `409 conflict`.
    pub async fn acquire(&self, caller: &Caller, mut asked: AcquireNumber, key: Option<&str>) -> Result<PhoneNumberView> {
        caller.require(UseCase::AcquirePhoneNumber)?;
        let phone_number = check(&asked)?;
        asked.name = asked.name.filter(|name| !is_blank(name));
        let guard = self.guard(caller.tenant, IdempotentOperation::AcquirePhoneNumber, idempotency::key(None, key)?, &asked);
        let now = self.ids().clock.now();
        let id: PhoneNumberId = self.ids().at(now);
        let mut tx = self.inner.store.begin().await?;
        let repeat = idempotency::claim(&mut *tx, caller.tenant, guard.as_ref(), id.uuid(), now).await?;
        if let Some(Repeat { original, same_request }) = repeat {
            drop(tx);
            return Err(self.was_acquired(caller, PhoneNumberId::from_uuid(original), same_request).await?);
        }
        let Some((found, holder)) = tx.find_inventory_number(caller.tenant, &phone_number).await? else {
            let message = format!("{phone_number:?} is not in the inventory; list available numbers");
            return Err(Error::not_found("phone number").at("phoneNumber", message));
        };
        if holder.is_some() {
            return Err(taken(&phone_number));
        }
        let price = found.pricing.to_acquire().ok_or_else(|| Error::internal("the price of a number is out of range"))?;
        let number = PhoneNumber {
            id,
            phone_number,
            capabilities: found.capabilities,
            pricing: found.pricing,
            status: NumberStatus::Active,
            name: asked.name,
            sender: None,
            renews_at: first_renewal_after(now, now),
            updated_at: now,
        };
        if !tx.acquire_number(caller.tenant, &number).await? {
            return Err(taken(&number.phone_number));
        }
        let view = PhoneNumberView::from(number.clone());
        Change::new("phone_number", "acquire", id).to(&view).record(&mut *tx, caller.tenant).await?;
        charge(&mut *tx, caller.tenant, &number, price, now, now).await?;
        tx.commit().await?;
        Ok(view)
    }

    /// Returns the 409 of a repeat. The number may have been released since.
    async fn was_acquired(&self, caller: &Caller, id: PhoneNumberId, same_request: bool) -> Result<Error> {
        let original = self.inner.store.read().await?.find_number(caller.tenant, id).await?;
        Ok(idempotency::repeat(caller, rights::PHONE_NUMBER, original.map(PhoneNumberView::from).as_ref(), same_request))
    }
}

fn check(asked: &AcquireNumber) -> Result<String> {
    let mut errors = Vec::new();
    check_name(asked.name.as_deref(), &mut errors);
    let phone_number = address::phone(&asked.phone_number).unwrap_or_else(|error| {
        errors.insert(0, FieldError::new("phoneNumber", error.to_string()));
        String::new()
    });
    if errors.is_empty() { Ok(phone_number) } else { Err(Error::invalid(errors)) }
}

fn taken(phone_number: &str) -> Error {
    let message = format!("{phone_number} is already acquired; GET /v1/phone-numbers/available lists available numbers");
    Error::new(ErrorCode::Conflict, message)
}
