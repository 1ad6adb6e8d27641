//! Charges for phone numbers.

use nuncio_domain::id::Id as _;
use nuncio_domain::number::PhoneNumber;
use nuncio_domain::{Micros, Result, TenantId, Timestamp};
use nuncio_store::Tx;

use crate::billing::{self, Reference};

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
    let reference = Reference { resource: number.id.uuid(), part: number.month_at(moment), sender: None };
    billing::charge(tx, tenant, amount, reference, now).await
}
