//! Stores provider references, and receipts as received.

use std::time::Duration;

use async_trait::async_trait;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::{ConnectionId, MessageId, ReceiptId, TenantId, Timestamp};

use crate::Result;

/// A receipt as a provider sent it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawReceipt {
    /// Id of the receipt; its time is the time of arrival.
    pub id: ReceiptId,
    /// The connection that received it.
    pub connection: ConnectionId,
    /// The provider's message id; `""` if the receipt named nuncio's message id instead.
    pub reference: String,
    /// The receipt as text: at most 4 KiB, without secrets and, where the adapter can tell, without what the recipient wrote.
    pub raw: String,
}

/// A receipt whose reference is not known yet: the provider's reply with that reference may still be in flight.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StrayReceipt {
    /// The environment of the connection.
    pub tenant: TenantId,
    pub receipt: RawReceipt,
    /// The status that it reports.
    pub kind: ReceiptKind,
    /// Time of the status as reported by the provider, otherwise of arrival.
    pub at: Timestamp,
    /// Number of lookups so far.
    pub tries: u16,
}

/// A stored receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiptRecord {
    pub receipt: RawReceipt,
    /// Time of arrival, taken from its id.
    pub received_at: Timestamp,
}

/// Delay before the next lookup of a stray receipt after `tries` lookups: 200 ms at first, 16 h at last; `None` after 8 lookups.
pub fn next_lookup(tries: u16) -> Option<Duration> {
    const LOOKS: [u64; 8] = [200, 1_000, 5_000, 60_000, 600_000, 3_600_000, 6 * 3_600_000, 16 * 3_600_000];
    LOOKS.get(usize::from(tries)).map(|ms| Duration::from_millis(*ms))
}

/// References of providers, and receipts.
#[async_trait]
pub trait ReceiptRepo {
    /// Stores a receipt whose message is not known yet. Its next lookup is at `due`.
    async fn insert_stray(&mut self, stray: &StrayReceipt, due: Timestamp) -> Result<()>;

    /// Up to `limit` stray receipts of all environments whose lookup is due at `now`, longest due first.
    async fn due_strays(&mut self, now: Timestamp, limit: u32) -> Result<Vec<StrayReceipt>>;

    /// Sets the next lookup of a stray receipt; `None` for no further lookup, after which it is only listed. Does nothing if another node
    /// has set it meanwhile.
    async fn reschedule_stray(&mut self, stray: &StrayReceipt, due: Option<Timestamp>) -> Result<()>;

    /// Deletes a stray receipt that has been applied to its message.
    async fn delete_stray(&mut self, tenant: TenantId, id: ReceiptId) -> Result<()>;

    /// The receipts of a message, oldest first; at most 100.
    async fn list_receipts(&mut self, tenant: TenantId, message: MessageId) -> Result<Vec<ReceiptRecord>>;

    /// The stray receipts of an environment, newest first; at most 100.
    async fn list_strays(&mut self, tenant: TenantId) -> Result<Vec<StrayReceipt>>;
}
