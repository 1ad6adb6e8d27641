//! Tells why the next recipients of a broadcast get no message yet.

use nuncio_domain::broadcast::Status;
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
        let Some(hours) = &broadcast.body.quiet_hours else { return Ok(None) };
        let next = self.inner.store.read().await?.pending_broadcast_contacts(broadcast.tenant, broadcast.id, None, LOOKED_AT).await?;
        let mut clock = QuietClock::new(hours, now);
        let recipients = next.found.iter().map(|contact| &contact.recipient).filter(|recipient| !is_mark(recipient));
        let ends: Option<Vec<Timestamp>> = recipients.map(|recipient| clock.ask(recipient).err()).collect();
        Ok(ends.and_then(|ends| ends.into_iter().min()).map(BroadcastWait::QuietHours))
    }
}
