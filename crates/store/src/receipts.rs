//! References of providers, and receipts as they came.

use std::time::Duration;

use async_trait::async_trait;
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::{ConnectionId, MessageId, ReceiptId, TenantId, Timestamp};

use crate::Result;

/// A receipt as a provider sent it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct RawReceipt {
    /// Its identifier.
    pub id: ReceiptId,
    /// The connection that it came by.
    pub connection: ConnectionId,
    /// The provider's id of what it is about; `""` when it named our own.
    pub reference: String,
    /// As it came.
    pub raw: String,
}

/// A receipt that names no message that is known yet: the answer with its reference may still be on its way.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StrayReceipt {
    /// The world of the connection.
    pub tenant: TenantId,
    /// The receipt.
    pub receipt: RawReceipt,
    /// What it says.
    pub kind: ReceiptKind,
    /// When it happened, as the provider says.
    pub at: Timestamp,
    /// How often its message was looked for.
    pub tries: u16,
}

/// A receipt as it is kept and shown.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct ReceiptRecord {
    /// The receipt.
    pub receipt: RawReceipt,
    /// When it came; from its identifier.
    pub received_at: Timestamp,
}

/// When the message of a stray receipt is looked for again, after so many tries; `None` when it is given up.
pub fn next_look(tries: u16) -> Option<Duration> {
    const LOOKS: [u64; 8] = [200, 1_000, 5_000, 60_000, 600_000, 3_600_000, 6 * 3_600_000, 16 * 3_600_000];
    LOOKS.get(usize::from(tries)).map(|ms| Duration::from_millis(*ms))
}

/// References of providers, and receipts.
#[async_trait]
pub trait ReceiptRepo {
    /// Keeps a receipt whose message is not known yet, to be looked for at `due`.
    async fn insert_stray(&mut self, stray: &StrayReceipt, due: Timestamp) -> Result<()>;

    /// Stray receipts whose message is to be looked for by `now`, longest due first.
    async fn due_strays(&mut self, now: Timestamp, limit: u32) -> Result<Vec<StrayReceipt>>;

    /// Looks for the message of a stray receipt again at `due`, or never when `None`; it then stays to be seen. Nothing, if another node
    /// looked meanwhile.
    async fn put_off_stray(&mut self, stray: &StrayReceipt, due: Option<Timestamp>) -> Result<()>;

    /// Removes a stray receipt whose message was found, and which was written with that.
    async fn delete_stray(&mut self, tenant: TenantId, id: ReceiptId) -> Result<()>;

    /// The receipts of a message, oldest first; at most 100.
    async fn list_receipts(&mut self, tenant: TenantId, message: MessageId) -> Result<Vec<ReceiptRecord>>;

    /// The stray receipts, newest first; at most 100.
    async fn list_strays(&mut self, tenant: TenantId) -> Result<Vec<StrayReceipt>>;
}
