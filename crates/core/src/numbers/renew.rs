//! Monthly renewals.

use nuncio_domain::{ErrorCode, Ids, PhoneNumberId, Result, TenantId};
use nuncio_store::Store;

use super::charge::charge;
use crate::StoreResultExt as _;

/// Numbers of one round.
const ROUND: u32 = 100;

/// Renews what is due, each number in a transaction of its own. Answers whether anything was due.
pub async fn renew_due(store: &dyn Store, ids: &Ids) -> Result<bool> {
    let due = store.read().await.or_fail()?.due_numbers(ids.clock.now(), ROUND).await.or_fail()?;
    for (tenant, id) in &due {
        // One that cannot be read must not stand in front of the others.
        if let Err(error) = renew_number(store, ids, *tenant, *id).await {
            tracing::warn!(%id, %error, "a phone number that is due could not be seen to; it is tried again");
        }
    }
    Ok(!due.is_empty())
}

/// Renews a number, if it still is due under the lock of its row: of two nodes one renews.
pub async fn renew_number(store: &dyn Store, ids: &Ids, tenant: TenantId, id: PhoneNumberId) -> Result<()> {
    let now = ids.clock.now();
    let mut tx = store.begin().await.or_fail()?;
    let Some(mut number) = tx.lock_number(tenant, id).await.or_fail()?.filter(|number| number.renews_at <= now) else {
        return Ok(());
    };
    let paid = match charge(&mut *tx, tenant, &number, number.pricing.to_renew(), number.month_to_pay(now), now).await {
        Ok(()) => true,
        Err(error) if error.code() == ErrorCode::InsufficientBalance => {
            tracing::warn!(number.id = %id, "a phone number could not be renewed: {error}; it is suspended");
            false
        }
        Err(error) => return Err(error),
    };
    number.renew(paid, now);
    tx.update_number(tenant, &number).await.or_fail()?;
    tx.commit().await.or_fail()
}
