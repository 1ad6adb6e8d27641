//! Charges for phone numbers, and renews them each month.

use nuncio_domain::ledger::{Purpose, Transfer};
use nuncio_domain::{ErrorCode, Micros, PhoneNumberId, Result, TenantId, Timestamp, id::Id as _, number::PhoneNumber};
use nuncio_store::Tx;

use super::Numbers;
use crate::billing;

/// Numbers per round.
const ROUND: u32 = 100;

/// Charges `amount` for the month of a number that `moment` is in, at most once; month 0 is paid on acquisition. `402 insufficient_balance`
/// if less is available, without a charge. Locks the environment's balance until the commit.
pub(super) async fn charge(
    tx: &mut dyn Tx,
    tenant: TenantId,
    number: &PhoneNumber,
    amount: Micros,
    moment: Timestamp,
    now: Timestamp,
) -> Result<()> {
    let (resource, part) = (number.id.uuid(), number.month_at(moment));
    billing::transfer(tx, tenant, &Transfer { purpose: Purpose::Charge, resource, part, amount, sender: None }, now).await
}

impl Numbers<'_> {
    /// Renews due numbers, each in a separate transaction; returns whether any was due.
    pub async fn renew_due(&self) -> Result<bool> {
        let due = self.inner.store.read().await?.due_numbers(self.ids().clock.now(), ROUND).await?;
        for (tenant, id) in &due {
            // A number that cannot be read must not block the others.
            if let Err(error) = self.renew(*tenant, *id).await {
                tracing::warn!(%id, %error, "failed to renew phone number; will retry");
            }
        }
        Ok(!due.is_empty())
    }

    /// Renews a number if it is still due under its row lock, so that only one node renews it.
    pub async fn renew(&self, tenant: TenantId, id: PhoneNumberId) -> Result<()> {
        let now = self.ids().clock.now();
        let mut tx = self.inner.store.begin().await?;
        let Some(mut number) = tx.lock_number(tenant, id).await?.filter(|number| number.renews_at <= now) else {
            return Ok(());
        };
        let paid = match charge(&mut *tx, tenant, &number, number.pricing.to_renew(), number.month_to_pay(now), now).await {
            Ok(()) => true,
            Err(error) if error.code() == ErrorCode::InsufficientBalance => {
                tracing::warn!(number.id = %id, "failed to renew phone number: {error}; suspended it");
                false
            }
            Err(error) => return Err(error),
        };
        number.renew(paid, now);
        tx.update_number(tenant, &number).await?;
        Ok(tx.commit().await?)
    }
}
