//! Handing the recipients of a broadcast over: each becomes a message by the way of all messages.
//!
//! The transaction that accepts the message also takes the recipient, if nobody did before, the broadcast still is being sent and nobody
//! took it over. So nobody gets two, whoever dies when, nobody is handed over after a pause or a cancel was answered, and the broadcast's
//! money is spent by one node at a time.

use std::collections::HashMap;
use std::sync::Arc;

use nuncio_domain::broadcast::{Broadcast, Part};
use nuncio_domain::config::{Sender, World};
use nuncio_domain::message::{Failure, FailureCode, OnUnknown};
use nuncio_domain::template::Template;
use nuncio_domain::{AddressKind, BroadcastContactId, ConnectionId, Error, ErrorCode, Result, Timestamp};
use nuncio_store::{Accepted, NewBroadcastContact};

use super::Broadcasts;
use super::check;
use super::contacts::merged;
use crate::base::Core;
use crate::messages::SendMessage;
use crate::messages::plan::{self, Planned, Planner};
use crate::messages::routing::Known;

/// Recipients of one step, and steps of one round.
const CHUNK: u32 = 200;
const STEPS: usize = 5;

/// How a round ended.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Round {
    /// There may be more to hand over.
    More,
    /// There is more, but no room for it.
    Crowded,
    /// Nobody is left who could be handed over.
    Through,
}

/// What messages of a broadcast are made from.
pub(super) struct Mould<'a> {
    pub(super) broadcast: &'a Broadcast,
    pub(super) world: Arc<World>,
    pub(super) sender: Sender,
    template: Option<Template>,
}

/// What became of planning one recipient.
enum Fate {
    Planned(Box<Planned>),
    Failed(Failure),
}

impl Broadcasts<'_> {
    /// Hands over as many recipients as there is room for, as long as `fence` is the broadcast's.
    pub(super) async fn hand_over(&self, broadcast: &Broadcast, fence: i64) -> Result<Round> {
        let (mut after, mut any) = (None, false);
        for _ in 0..STEPS {
            let mut tx = self.inner.store.read().await?;
            let chunk = tx.pending_broadcast_contacts(broadcast.tenant, broadcast.id, after, CHUNK).await?;
            drop(tx);
            let Some(last) = chunk.last() else { return Ok(if after.is_none() { Round::Through } else { pace(any) }) };
            after = Some(last.id);
            any |= self.hand_over_chunk(broadcast, fence, chunk).await?;
        }
        Ok(pace(any))
    }

    /// Answers whether anybody was handed over.
    async fn hand_over_chunk(&self, broadcast: &Broadcast, fence: i64, chunk: Vec<NewBroadcastContact>) -> Result<bool> {
        let Some(now) = self.inner.dispatch.accepting() else { return Ok(false) };
        let mould = self.mould(broadcast).await?;
        let (mut room, mut accepts) = (HashMap::<ConnectionId, usize>::new(), Vec::new());
        let (mut purse, mut any) = (self.purse(broadcast.tenant, broadcast.id).await?, false);
        for contact in chunk {
            let fate = match &mould {
                Ok(mould) => self.fate(mould, &contact, now).await?,
                Err(failure) => Fate::Failed(failure.clone()),
            };
            match fate {
                Fate::Failed(failure) => any |= self.fail_contact(broadcast, contact.id, &failure, now).await?,
                Fate::Planned(mut planned) => {
                    let connection = &planned.connection;
                    let left = room.entry(connection.id).or_insert_with(|| self.inner.dispatch.bulk_room(broadcast.tenant, connection));
                    if *left == 0 {
                        continue;
                    }
                    if !purse.pays(&mut planned.accept.message) && !self.pays_itself(broadcast, &planned).await? {
                        continue;
                    }
                    *left -= 1;
                    planned.accept.broadcast_fence = fence;
                    let core = Core::clone(self);
                    accepts.push(tokio::spawn(async move { core.messages().accept(*planned).await }));
                }
            }
        }
        // All of them are waited for before anything is said of one: each may be written.
        let mut answers = Vec::with_capacity(accepts.len());
        for accept in accepts {
            answers.push(accept.await.map_err(Error::internal)?);
        }
        for answer in answers {
            match answer? {
                Accepted::New { .. } => any = true,
                Accepted::Stale => self.forget_world(broadcast.tenant),
                // Short of money or room they stay pending, and are tried again.
                Accepted::Closed | Accepted::Duplicate { .. } | Accepted::Short(_) | Accepted::Full { .. } => {}
            }
        }
        Ok(any)
    }

    /// The inner error is what becomes of every recipient.
    pub(super) async fn mould<'a>(&self, broadcast: &'a Broadcast) -> Result<std::result::Result<Mould<'a>, Failure>> {
        let world = self.world(broadcast.tenant).await?;
        let Some(sender) = world.sender(broadcast.sender).cloned() else {
            return Ok(Err(Failure::own(FailureCode::Undeliverable, "the sender of the broadcast was deleted")));
        };
        match self.template_of(broadcast).await {
            Ok(template) => Ok(Ok(Mould { broadcast, world, sender, template })),
            Err(error) if error.code() == ErrorCode::NotFound => {
                Ok(Err(Failure::own(FailureCode::ContentRejected, "the template of the broadcast was deleted")))
            }
            Err(error) => Err(error),
        }
    }

    async fn fate(&self, mould: &Mould<'_>, contact: &NewBroadcastContact, now: Timestamp) -> Result<Fate> {
        let known = self.messages().known(&mould.world, &mould.sender, &command(mould, contact), now).await?;
        match self.plan_contact(mould, contact, &known, now, true) {
            Ok(planned) => Ok(Fate::Planned(Box::new(planned))),
            Err(error) if error.code().status() < 500 => Ok(Fate::Failed(failure(&error))),
            Err(error) => Err(error),
        }
    }

    /// Plans the message to one recipient. `explores`: another good channel may be tried now and then.
    pub(super) fn plan_contact(
        &self,
        mould: &Mould<'_>,
        contact: &NewBroadcastContact,
        known: &Known,
        now: Timestamp,
        explores: bool,
    ) -> Result<Planned> {
        let template = mould.template.as_ref();
        let planner =
            Planner { world: &mould.world, sender: &mould.sender, known, ids: self.ids(), now, lenient: false, explores, template };
        let mut planned = planner.plan(command(mould, contact))?;
        plan::keep_window(&planned, known)?;
        // Told by the provider's answer too, unless that is lost and a person says that the message went out.
        let no_receipts = !self.inner.dispatch.has_receipts(mould.broadcast.tenant, &planned.connection);
        let part = Part::new(mould.broadcast.id, contact.id, no_receipts);
        planned.accept.message.state.detail.broadcast = Some(part);
        Ok(planned)
    }

    /// Whether a message that the reservation has no room for may set its own price aside: not beyond what its sender may spend a day.
    async fn pays_itself(&self, broadcast: &Broadcast, planned: &Planned) -> Result<bool> {
        match self.messages().keep_within_the_day(&*self.world(broadcast.tenant).await?, &planned.accept).await {
            Err(error) if error.code() == ErrorCode::InsufficientBalance => Ok(false),
            outcome => outcome.map(|()| true),
        }
    }

    async fn fail_contact(&self, broadcast: &Broadcast, contact: BroadcastContactId, failure: &Failure, now: Timestamp) -> Result<bool> {
        let mut tx = self.inner.store.begin().await?;
        let failed = tx.fail_broadcast_contact(broadcast.tenant, broadcast.id, contact, failure, now).await?;
        tx.commit().await?;
        Ok(failed)
    }
}

/// The message to one recipient, as a caller would ask for it.
fn command(mould: &Mould<'_>, contact: &NewBroadcastContact) -> SendMessage {
    let mut command = check::message(mould.broadcast);
    command.to.clone_from(&contact.recipient.identifier);
    command.on_unknown = Some(OnUnknown::Hold);
    if mould.template.is_some() {
        command.content = Some(Box::new(merged(mould.broadcast, &contact.variables)));
    }
    if contact.recipient.kind == AddressKind::Email {
        command.subject.clone_from(&mould.broadcast.body.email_subject);
        command.html_body.clone_from(&mould.broadcast.html);
    }
    command
}

const fn pace(any: bool) -> Round {
    if any { Round::More } else { Round::Crowded }
}

/// Why a recipient cannot be sent to, from the error that a message to them would have met.
fn failure(error: &Error) -> Failure {
    let code = match error.code() {
        ErrorCode::WhatsappWindowClosed | ErrorCode::WindowClosed => FailureCode::WindowClosed,
        ErrorCode::SenderNotConfigured => FailureCode::Undeliverable,
        _ => FailureCode::ContentRejected,
    };
    Failure::own(code, error.message())
}
