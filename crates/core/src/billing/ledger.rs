//! Lists the entries of an environment's ledger.

use std::collections::BTreeMap;

use nuncio_domain::ledger::{Entry, EntryFilter, Purpose, Transfer};
use nuncio_domain::{BroadcastId, MessageId, Micros, PhoneNumberId, Result, TenantId, Timestamp, id::Id as _};
use nuncio_store::Tx;
use uuid::Uuid;

use super::Billing;
use crate::base::{Caller, Listed, UseCase};

/// Page size.
const PAGE: u32 = 50;

/// Filters of the ledger.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct ListLedger {
    /// Only entries of this purpose.
    pub purpose: Option<Purpose>,
    /// Recorded at or after this time.
    pub since: Option<Timestamp>,
    /// Recorded before this time.
    pub until: Option<Timestamp>,
    /// The cursor returned with the previous page.
    pub cursor: Option<String>,
}

/// An entry of the ledger.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct LedgerEntryView {
    pub purpose: Purpose,
    /// Always positive; `purpose` says where it went.
    pub amount: Micros,
    pub recorded_at: Timestamp,
    pub cause: LedgerCause,
}

/// What an entry of the ledger is for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LedgerCause {
    /// Money added or withdrawn by the operator.
    Operator,
    Message(MessageId),
    Broadcast(BroadcastId, String),
    /// A phone number, in E.164 while it is held.
    Number(Option<String>),
}

impl Billing<'_> {
    /// Returns a page of the ledger, newest first, and the cursor of the next one. Needs the permission that the balance needs.
    pub async fn list_ledger(&self, caller: &Caller, asked: &ListLedger) -> Result<Listed<LedgerEntryView>> {
        caller.require(UseCase::GetBalance)?;
        let (tenant, scope) = (caller.tenant, format!("ledger?{:?}", (asked.purpose, asked.since, asked.until)));
        let after = asked.cursor.as_deref().map(|cursor| self.cursors().read(tenant, &scope, cursor)).transpose()?.map(Place::from_bytes);
        let mut filter = EntryFilter { purpose: asked.purpose, since: asked.since, until: asked.until };
        let skip = after.map_or(0, |place| u32::try_from(place.skip).unwrap_or(u32::MAX));
        if let Some(place) = after {
            filter.until = Some(Timestamp::from_millis(place.at.saturating_add(1)));
        }
        let mut tx = self.inner.store.read().await?;
        let mut found = tx.list_entries(tenant, &filter, skip, PAGE + 1).await?;
        let more = found.len() > PAGE as usize;
        found.truncate(PAGE as usize);
        let next = more.then(|| Place::after(&found, after)).flatten();
        let views = views(&mut *tx, tenant, &found).await?;
        Ok((views, next.map(|place| self.cursors().make(tenant, &scope, place.to_bytes()))))
    }
}

/// Where a page ends: the time of its last entry, and how many entries of that time were listed.
#[derive(Clone, Copy, Debug)]
struct Place {
    at: i64,
    skip: u64,
}

impl Place {
    fn after(page: &[Entry], before: Option<Self>) -> Option<Self> {
        let at = page.last()?.recorded_at.millis();
        let same = page.iter().rev().take_while(|entry| entry.recorded_at.millis() == at).count() as u64;
        let earlier = before.filter(|place| place.at == at).map_or(0, |place| place.skip);
        Some(Self { at, skip: same + earlier })
    }

    fn from_bytes(bytes: [u8; 16]) -> Self {
        let [at, skip] = [0, 8].map(|from| std::array::from_fn(|n| bytes[from + n]));
        Self { at: i64::from_be_bytes(at), skip: u64::from_be_bytes(skip) }
    }

    fn to_bytes(self) -> [u8; 16] {
        let (at, skip) = (self.at.to_be_bytes(), self.skip.to_be_bytes());
        std::array::from_fn(|n| if n < 8 { at[n] } else { skip[n - 8] })
    }
}

async fn views(tx: &mut dyn Tx, tenant: TenantId, entries: &[Entry]) -> Result<Vec<LedgerEntryView>> {
    let mut known: BTreeMap<Uuid, LedgerCause> = BTreeMap::new();
    let mut views = Vec::with_capacity(entries.len());
    for Entry { transfer, recorded_at } in entries {
        let cause = match known.get(&transfer.resource) {
            Some(cause) => cause.clone(),
            None => cause_of(tx, tenant, transfer).await?,
        };
        known.insert(transfer.resource, cause.clone());
        views.push(LedgerEntryView { purpose: transfer.purpose, amount: transfer.amount, recorded_at: *recorded_at, cause });
    }
    Ok(views)
}

/// Returns what a transfer is for: its resource is an id without a kind.
async fn cause_of(tx: &mut dyn Tx, tenant: TenantId, transfer: &Transfer) -> Result<LedgerCause> {
    let message = || LedgerCause::Message(MessageId::from_uuid(transfer.resource));
    Ok(match (transfer.purpose, transfer.part) {
        (Purpose::Deposit | Purpose::Withdrawal, _) => LedgerCause::Operator,
        (Purpose::Charge, _) => {
            let number = tx.find_number(tenant, PhoneNumberId::from_uuid(transfer.resource)).await?;
            LedgerCause::Number(number.map(|number| number.phone_number))
        }
        // Reservations of broadcasts begin at part 1, and broadcasts settle nothing themselves.
        (Purpose::Settle, _) | (Purpose::Reserve, 0) => message(),
        (Purpose::Reserve | Purpose::Release, _) => {
            let broadcast = tx.find_broadcast(tenant, BroadcastId::from_uuid(transfer.resource)).await?;
            broadcast.map_or_else(message, |broadcast| LedgerCause::Broadcast(broadcast.id, broadcast.body.name))
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_its_cursor() {
        let place = Place::from_bytes(Place { at: 1_767_225_600_123, skip: 77 }.to_bytes());
        assert_eq!((place.at, place.skip), (1_767_225_600_123, 77));
    }
}
