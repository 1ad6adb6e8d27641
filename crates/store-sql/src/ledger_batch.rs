//! Ledger rows of a batch, with one balance update per environment.
//!
//! Free where messages have no price.

use std::collections::BTreeMap;

use nuncio_domain::id::Id as _;
use nuncio_domain::ledger::{Balance, BalanceDelta, Purpose};
use nuncio_domain::message::{Message, QuoteState};
use nuncio_domain::{Micros, TenantId};
use nuncio_store::Shortage;
use uuid::Uuid;

use crate::message_batch::LoadedMessage;

/// A row of the ledger.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LedgerRow {
    pub(crate) tenant: i64,
    pub(crate) resource: Uuid,
    pub(crate) purpose: Purpose,
    pub(crate) part: i16,
    pub(crate) amount: i64,
    pub(crate) sender: Option<Uuid>,
    pub(crate) at: i64,
}

/// Ledger rows and balance changes of one batch.
#[derive(Debug, Default)]
pub(crate) struct LedgerBatch {
    /// Balances, as far as they were read.
    balances: BTreeMap<i64, Balance>,
    pub(crate) rows: Vec<LedgerRow>,
    /// Sorted by tenant.
    pub(crate) moves: BTreeMap<i64, BalanceDelta>,
}

/// What a new message reserves.
pub(crate) fn reserved_amount(message: &Message) -> i64 {
    message.state.detail.money.as_ref().filter(|money| !money.prepaid).map_or(0, |money| money.open().0)
}

impl LedgerBatch {
    pub(crate) fn know(&mut self, tenant: TenantId, balance: Balance) {
        self.balances.insert(tenant.0, balance);
    }

    /// Reserves what a new message may cost; fails if that is not available.
    pub(crate) fn reserve(&mut self, message: &Message) -> Result<(), Shortage> {
        let (tenant, amount) = (message.tenant.0, reserved_amount(message));
        if amount == 0 {
            return Ok(());
        }
        let mut balance = self.balances.get(&tenant).copied().unwrap_or_default();
        let moved = self.moves.get(&tenant).copied().unwrap_or_default();
        balance.available.0 += moved.available;
        balance.reserved.0 += moved.reserved;
        if balance.limited && balance.available.0 < amount {
            return Err(Shortage { balance, required: Micros(amount) });
        }
        let sender = message.state.detail.money.as_ref().and_then(|m| m.limited_sender);
        self.push(LedgerRow {
            tenant,
            resource: message.id.uuid(),
            purpose: Purpose::Reserve,
            part: 0,
            amount,
            sender: sender.map(|s| s.uuid()),
            at: message.state.updated_at.millis(),
        });
        Ok(())
    }

    /// Charges and releases what the batch settled for one message.
    pub(crate) fn settle(&mut self, (tenant, resource): (i64, Uuid), loaded: &LoadedMessage) {
        let (Some(before), Some(after)) = (&loaded.money, &loaded.row.state.detail.money) else { return };
        let (at, sender) = (loaded.row.state.updated_at.millis(), after.limited_sender.map(|s| s.uuid()));
        let changed = before.quotes.iter().zip(&after.quotes).filter(|(before, after)| before.state != after.state);
        for (_, quote) in changed {
            let purpose = match quote.state {
                QuoteState::Charged => Purpose::Settle,
                QuoteState::Released => Purpose::Release,
                // It stays reserved.
                QuoteState::Open | QuoteState::Returned => continue,
            };
            let (part, amount) = (quote.channel.number(), quote.cost.total().0);
            self.push(LedgerRow { tenant, resource, purpose, part, amount, sender, at });
        }
    }

    fn push(&mut self, row: LedgerRow) {
        if row.amount > 0 {
            self.moves.entry(row.tenant).or_default().add(row.purpose, row.amount);
            self.rows.push(row);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }
}
