//! What broadcasts cost. Prices are not known yet: everything is free, and nothing is set aside.

use nuncio_domain::Result;
use nuncio_domain::broadcast::Broadcast;
use nuncio_store::Tx;

/// What a broadcast is expected to cost, in micro-dollars.
pub(super) const fn estimate(_broadcast: &Broadcast) -> i64 {
    0
}

/// Sets aside what a broadcast is expected to cost, in the transaction that begins its review. Fails with 402 when the balance is short.
#[expect(clippy::unused_async, reason = "a reservation is a row in the transaction")]
pub(super) async fn reserve(_tx: &mut dyn Tx, broadcast: &mut Broadcast) -> Result<()> {
    let estimate = estimate(broadcast);
    broadcast.body.estimated_cost = Some(estimate);
    broadcast.body.reserved = estimate;
    Ok(())
}

/// Gives back what is left of the reservation, in the transaction that ends or rejects a broadcast.
#[expect(clippy::unused_async, reason = "a release is a row in the transaction")]
pub(super) async fn release(_tx: &mut dyn Tx, broadcast: &mut Broadcast) -> Result<()> {
    broadcast.body.reserved = 0;
    Ok(())
}
