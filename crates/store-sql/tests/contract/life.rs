//! A long random sequence of steps: whatever their order, no message is left without an owner, and the log is complete.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use futures::future::join_all;
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{Outcome, ReceiptKind, Receipts, Resolution, Scope, Step};
use nuncio_domain::message::{FailureCode, HeldReason, NodeId, State};
use nuncio_domain::{MessageId, Timestamp};
use nuncio_store::{Accepted, Position, RawReceipt, Store, Transition, Transitioned};

use crate::harness::{Backend, Harness, NODE, START, in_tx};
use crate::make::{MINUTE, failure, phone, settle_by, start};

/// Messages in total.
const MESSAGES: usize = 10_000;
/// Messages accepted at once.
const AT_ONCE: usize = 100;
/// Steps after each of these.
const STEPS: usize = 400;
/// Rounds between restarts, and between deletions of expired data.
const RESTART: usize = 20;
/// Retention, in the time of the case.
const KEPT: std::time::Duration = std::time::Duration::from_secs(30);
/// A second node, alongside [`NODE`].
const OTHER: NodeId = NodeId(2);

/// SplitMix64: the same numbers in every run.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: usize) -> usize {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mixed = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((mixed ^ (mixed >> 31)) % end as u64) as usize
    }

    fn outcome(&mut self) -> Outcome {
        let reference = format!("p{}", self.below(5_000));
        match self.below(6) {
            0 => Outcome::Deferred { retry_after: None, failure: failure(FailureCode::RateLimited), scope: Scope::Message },
            1 => Outcome::Rejected { failure: failure(FailureCode::Undeliverable) },
            2 => Outcome::Unknown { failure: failure(FailureCode::UnknownOutcome), refs: vec![reference] },
            _ => Outcome::Accepted { refs: vec![reference], cost: None },
        }
    }

    fn step(&mut self, h: &Harness, state: &State) -> Step {
        let fence = state.fence - i64::from(self.below(10) == 0);
        let node = if self.below(3) == 0 { OTHER } else { NODE };
        let attempt = state.detail.attempts.len().saturating_sub(1);
        match self.below(20) {
            0..6 => start(node, fence),
            6..12 => settle_by(Receipts::ByReference, attempt, fence, self.outcome()),
            12 => Step::Receipt { attempt: None, part: 0, kind: ReceiptKind::Sent, at: h.tick() },
            13 => Step::Receipt { attempt: None, part: 0, kind: ReceiptKind::Read, at: h.tick() },
            14 => Step::Deadline { fence },
            15 => Step::Recover { node, retry_in: MINUTE },
            16 => Step::Cancel,
            17 => Step::Hold { reason: HeldReason::UnknownOutcome },
            18 => Step::Resolve { action: [Resolution::Resend, Resolution::Sent, Resolution::Failed][self.below(3)] },
            _ if self.below(4) == 0 => Step::Erase,
            _ => Step::Disconnected { fence },
        }
    }
}

pub(crate) async fn a_random_life_leaves_everything_guarded(h: &Harness) {
    h.leaves_broken_rows(); // the log loses its beginning; this case checks it itself
    let tenant = h.world.tenant;
    in_tx!(h, |tx| tx.insert_node(OTHER, START).await.unwrap());
    let mut chance = Chance(7);
    let mut nodes = open(h).await;
    let mut living: HashMap<MessageId, State> = HashMap::new();
    for round in 1..=MESSAGES / AT_ONCE {
        let accepts: Vec<_> = (0..AT_ONCE)
            .map(|_| {
                let to = phone(chance.below(2_000) as u32);
                let item = if chance.below(2) == 0 { h.item(&to) } else { h.claimed(&to) };
                nodes[chance.below(nodes.len())].accept(item)
            })
            .collect();
        for accepted in join_all(accepts).await {
            if let Accepted::New { message, .. } = accepted.unwrap() {
                living.insert(message.id, message.state);
            }
        }
        let mut known: Vec<MessageId> = living.keys().copied().collect();
        known.sort_unstable();
        // Several steps of one message can be concurrent, all based on the same state.
        let steps: Vec<Transition> = (0..STEPS)
            .map(|_| {
                let id = known[known.len() - 1 - chance.below(known.len().min(500))];
                if chance.below(8) == 0 {
                    let reference = format!("p{}", chance.below(5_000));
                    let receipt = RawReceipt { id: h.id(), connection: h.world.connection, reference, raw: "DELIVRD".to_owned() };
                    return Transition::of_reference(tenant, receipt, ReceiptKind::Delivered, h.tick(), h.tick());
                }
                h.transition(id, chance.step(h, &living[&id]))
            })
            .collect();
        let erased: Vec<_> = steps.iter().map(|step| step.id.filter(|_| matches!(step.step, Step::Erase))).collect();
        let taken = join_all(steps.into_iter().map(|step| nodes[chance.below(nodes.len())].transition(step)).collect::<Vec<_>>()).await;
        for (erased, taken) in erased.into_iter().zip(taken) {
            if let Transitioned::Found { id, state, .. } = taken.unwrap()
                && let Some(known) = living.get_mut(&id)
            {
                *known = *state;
            }
            if let Some(id) = erased {
                in_tx!(h, |tx| tx.erase_messages(tenant, &[id]).await.unwrap());
            }
        }
        if round % RESTART == 0 {
            for node in nodes {
                node.close().await;
            }
            nodes = open(h).await;
            check(h).await;
            forget(h, h.tick().minus(KEPT), &mut living).await;
            check(h).await;
        }
    }
    for node in nodes {
        node.close().await;
    }
    assert!(living.len() < MESSAGES && living.len() > 2_000, "some were old enough to go: {}", living.len());
}

/// Opens two stores on PostgreSQL, one on SQLite.
async fn open(h: &Harness) -> Vec<Arc<dyn Store>> {
    let mut nodes = vec![h.another().await];
    if h.backend == Backend::Postgres {
        nodes.push(h.another().await);
    }
    nodes
}

/// Deletes expired data like dispatch.
async fn forget(h: &Harness, before: Timestamp, living: &mut HashMap<MessageId, State>) {
    let tenant = h.world.tenant;
    let mut place = None;
    loop {
        let mut tx = h.begin().await;
        place = tx.forget_messages(tenant, place, before, 200).await.unwrap();
        let gone = tx.forget_log(tenant, before, 200).await.unwrap();
        tx.commit().await.unwrap();
        if place.is_none() && gone == 0 {
            break;
        }
    }
    let mut kept = HashSet::new();
    for id in living.keys() {
        kept.extend(h.lookup_in(tenant, *id).await.map(|message| message.id));
    }
    living.retain(|id, _| kept.contains(id));
}

/// Checks that every unfinished message is due or owned, and that the log has no gap and leads to the state of each message.
async fn check(h: &Harness) {
    let tenant = h.world.tenant;
    let mut tx = h.read().await;
    assert_eq!(tx.count_unguarded_messages().await.unwrap(), 0);
    let mut told: HashMap<uuid::Uuid, Vec<(i64, nuncio_store::LogEntry)>> = HashMap::new();
    let (mut at, mut last) = (Position::default(), None::<i64>);
    loop {
        let entries = tx.read_log(tenant, at, 1_000).await.unwrap();
        let Some(end) = entries.last() else { break };
        at = end.position;
        for entry in entries {
            assert!(last.is_none_or(|last| entry.position.commit - last <= 1), "a gap in the log after {last:?}: {entry:?}");
            last = Some(entry.position.commit);
            told.entry(entry.resource).or_default().push((entry.sequence, entry));
        }
    }
    assert_eq!(Some(tx.log_end(tenant).await.unwrap().commit), last, "the log ends at its head");
    let mut followed = 0;
    for (resource, entries) in told {
        // The remaining events of a deleted message lead to no state.
        let Some(message) = tx.lookup_message(tenant, MessageId::from_uuid(resource)).await.unwrap() else { continue };
        let (mut next, mut status) = (entries[0].0, None);
        for (sequence, entry) in &entries {
            assert_eq!(*sequence, next, "{resource}: {entries:?}");
            let nuncio_store::LogPayload::Message(changes) = &entry.payload else { panic!("{entry:?}") };
            next += changes.len() as i64;
            for change in changes {
                assert!(status.is_none() || change.previous == status, "{resource}: {entries:?}");
                status = Some(change.status);
            }
        }
        assert_eq!((next - 1, status), (message.state.version, Some(message.state.status)), "{resource}: {entries:?}");
        if followed % 10 == 0 {
            let events = tx.list_message_events(tenant, message.id).await.unwrap();
            assert_eq!(events.iter().map(|event| event.sequence).collect::<Vec<_>>(), entries.iter().map(|(n, _)| *n).collect::<Vec<_>>());
        }
        followed += 1;
    }
    assert!(followed > 1_000, "the story of {followed} messages was followed");
}
