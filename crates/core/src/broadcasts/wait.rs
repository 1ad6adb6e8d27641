//! Tells why the next recipients of a broadcast get no message yet.

use nuncio_domain::broadcast::{Broadcast, RecipientQuietHours, Status};
use nuncio_domain::{Result, Timestamp};

use super::{Broadcasts, quiet::QuietClock, safety};
use crate::base::{Caller, UseCase, is_mark, parse_id};

/// Maximum recipients to look at: a page that shows the reason may be opened often.
const LOOKED_AT: u32 = 1_000;

/// What the next recipients of a broadcast wait for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BroadcastWait {
    /// The canary was sent; the others follow at this time.
    Canary(Timestamp),
    /// The next recipients are all in quiet hours, and the first of them leaves them at this time.
    QuietHours(Timestamp),
}

impl Broadcasts<'_> {
    /// Returns what the settings of the broadcast make its next recipients wait for; `None` if they do not.
    pub async fn wait(&self, caller: &Caller, id: &str) -> Result<Option<BroadcastWait>> {
        caller.require(UseCase::GetBroadcastProgress)?;
        let broadcast = self.find(caller.tenant, parse_id(id, "broadcast")?).await?;
        if broadcast.status != Status::Sending || broadcast.waiting() == 0 {
            return Ok(None);
        }
        let now = self.ids().clock.now();
        if let Some((_, Some(until))) = safety::canary(&broadcast, now) {
            return Ok(Some(BroadcastWait::Canary(until)));
        }
        let hours = self.next_quiet_hours(&broadcast, now).await?;
        let ends: Option<Vec<Timestamp>> = hours.into_iter().map(std::result::Result::err).collect();
        Ok(ends.and_then(|ends| ends.into_iter().min()).map(BroadcastWait::QuietHours))
    }

    /// Returns whether any of the next recipients has quiet hours between these times.
    pub(super) async fn is_quiet(&self, broadcast: &Broadcast, from: Timestamp, to: Timestamp) -> Result<bool> {
        let hours = self.next_quiet_hours(broadcast, from).await?;
        Ok(!hours.into_iter().all(|hours| hours.is_ok_and(|next| next.from >= to)))
    }

    /// Returns the quiet hours after `at` of each of the next recipients, or as an error when those end that it is in then.
    async fn next_quiet_hours(
        &self,
        broadcast: &Broadcast,
        at: Timestamp,
    ) -> Result<Vec<std::result::Result<RecipientQuietHours, Timestamp>>> {
        let Some(hours) = &broadcast.body.quiet_hours else { return Ok(Vec::new()) };
        let next = self.inner.store.read().await?.pending_broadcast_contacts(broadcast.tenant, broadcast.id, None, LOOKED_AT).await?;
        let mut clock = QuietClock::new(hours, at);
        let recipients = next.found.iter().map(|contact| &contact.recipient).filter(|recipient| !is_mark(recipient));
        Ok(recipients.map(|recipient| clock.ask(recipient)).collect())
    }
}
