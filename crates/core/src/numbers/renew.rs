//! Monthly renewals.

use nuncio_domain::{ErrorCode, PhoneNumberId, Result, TenantId};

use super::Numbers;
use super::charge::charge;

/// Numbers per round.
const ROUND: u32 = 100;

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
