//! What holds of every message, whatever happens to it and in whatever order.

use std::time::Duration;

use nuncio_domain::broadcast::{Counts, Halt, RecipientQuietHours};
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{Applied, Change, Outcome, ReceiptKind, Receipts, Resolution, Scope, Step};
use nuncio_domain::message::{
    Attempt, AttemptStatus, Cost, Detail, Failure, FailureCode, HeldReason, Membership, Money, NodeId, OnUnknown, Quote, QuoteState, Route,
    State, Status, Wait,
};
use nuncio_domain::{BroadcastContactId, BroadcastId, Channel, ConnectionId, Micros, Timestamp, limits};
use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed};

const BIRTH: Timestamp = Timestamp::from_millis(1_800_000_000_000);
const HOUR: Duration = Duration::from_secs(3_600);
const DAY: Duration = Duration::from_secs(86_400);

fn config() -> Config {
    Config {
        cases: 4_096,
        rng_seed: RngSeed::Fixed(7),
        rng_algorithm: RngAlgorithm::ChaCha,
        failure_persistence: None,
        ..Config::default()
    }
}

fn route(channel: Channel) -> Route {
    Route { channel, connection: ConnectionId::from_uuid(Default::default()), provider: "sim".to_owned() }
}

fn born(status: Status, due_at: Timestamp, detail: Detail) -> State {
    State {
        status,
        wait: Wait::Attempt { due_at },
        fence: 0,
        version: 1,
        expires_at: due_at.plus(DAY),
        updated_at: BIRTH,
        route: route(Channel::Whatsapp),
        detail,
    }
}

fn queued() -> State {
    born(Status::Queued, BIRTH, Detail::default())
}

fn failure(code: FailureCode) -> Failure {
    Failure { code, provider_code: Some("421".to_owned()), message: "it did not work".to_owned() }
}

fn accepted() -> Outcome {
    Outcome::Accepted { refs: vec!["p-1".to_owned()], cost: None }
}

fn unknown() -> Outcome {
    Outcome::Unknown { failure: failure(FailureCode::UnknownOutcome), refs: Vec::new() }
}

/// One step as a test draws it: `fresh` means that the fence which the step names is the right one.
#[derive(Clone, Debug)]
enum Act {
    Start { fresh: bool, suppressed: bool, paused: bool },
    Settle { attempt: usize, outcome: Outcome, receipts: Receipts },
    Receipt { attempt: Option<usize>, part: u8, kind: ReceiptKind, ago: u64 },
    Disconnected { fresh: bool },
    Deadline { fresh: bool },
    Recover,
    Hold(HeldReason),
    Cancel,
    Withdraw(Option<Halt>),
    Erase,
    Resolve(Resolution),
}

fn outcome() -> impl Strategy<Value = Outcome> {
    let cost = proptest::option::of(
        (any::<i64>(), any::<i64>()).prop_map(|(fee, provider)| Cost { fee: Micros(fee), provider: Micros(provider) }),
    );
    prop_oneof![
        3 => (proptest::collection::vec("[a-z]{3}", 0..4), cost)
            .prop_map(|(refs, cost)| Outcome::Accepted { refs, cost }),
        2 => Just(Outcome::Deferred { retry_after: None, failure: failure(FailureCode::RateLimited), scope: Scope::Message }),
        2 => Just(Outcome::Rejected { failure: failure(FailureCode::ProviderRejected) }),
        2 => Just(unknown()),
    ]
}

fn receipts() -> impl Strategy<Value = Receipts> {
    prop_oneof![Just(Receipts::Never), Just(Receipts::ByAttempt), Just(Receipts::ByReference)]
}

fn kind() -> impl Strategy<Value = ReceiptKind> {
    prop_oneof![
        Just(ReceiptKind::Sent),
        Just(ReceiptKind::Delivered),
        Just(ReceiptKind::Read),
        Just(ReceiptKind::Failed(failure(FailureCode::Undeliverable))),
    ]
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        6 => (proptest::bool::weighted(0.9), proptest::bool::weighted(0.1), proptest::bool::weighted(0.2))
            .prop_map(|(fresh, suppressed, paused)| Act::Start { fresh, suppressed, paused }),
        6 => (0_usize..4, outcome(), receipts()).prop_map(|(attempt, outcome, receipts)| Act::Settle { attempt, outcome, receipts }),
        4 => (proptest::option::of(0_usize..4), 0_u8..4, kind(), 0_u64..100_000_000)
            .prop_map(|(attempt, part, kind, ago)| Act::Receipt { attempt, part, kind, ago }),
        1 => proptest::bool::weighted(0.9).prop_map(|fresh| Act::Disconnected { fresh }),
        2 => proptest::bool::weighted(0.9).prop_map(|fresh| Act::Deadline { fresh }),
        3 => Just(Act::Recover),
        1 => prop_oneof![Just(HeldReason::UnknownOutcome), Just(HeldReason::PastDue), Just(HeldReason::StaleDatabase)].prop_map(Act::Hold),
        1 => Just(Act::Cancel),
        1 => prop_oneof![Just(None), Just(Some(Halt::Paused)), Just(Some(Halt::Cancelled))].prop_map(Act::Withdraw),
        1 => Just(Act::Erase),
        1 => prop_oneof![Just(Resolution::Resend), Just(Resolution::Sent), Just(Resolution::Failed)].prop_map(Act::Resolve),
    ]
}

fn pause() -> impl Strategy<Value = Duration> {
    prop_oneof![4 => 0_u64..5_000, 2 => 0_u64..7_200_000, 1 => 0_u64..200_000_000].prop_map(Duration::from_millis)
}

/// What the two routes cost, where they have a price.
fn money() -> impl Strategy<Value = Option<Money>> {
    let quotes = [Channel::Whatsapp, Channel::Sms].map(|channel| {
        proptest::option::of((0_i64..100, 0_i64..100)).prop_map(move |cost| {
            let cost = cost.map(|(fee, provider)| Cost { fee: Micros(fee), provider: Micros(provider) });
            cost.map(|cost| Quote { channel, cost, state: QuoteState::Open })
        })
    });
    quotes.prop_map(|quotes| {
        let quotes: Vec<_> = quotes.into_iter().flatten().collect();
        (!quotes.is_empty()).then_some(Money { quotes, prepaid: false, limited_sender: None })
    })
}

fn state() -> impl Strategy<Value = State> {
    let policy = prop_oneof![Just(OnUnknown::Resend), Just(OnUnknown::Hold), Just(OnUnknown::Fail)];
    let broadcast = proptest::option::of(any::<bool>());
    (any::<bool>(), policy, any::<bool>(), proptest::option::of(5_u64..90_000), money(), broadcast).prop_map(
        |(scheduled, on_unknown, fallback, fallback_after_seconds, mut money, prepaid)| {
            let fallback = fallback.then(|| route(Channel::Sms));
            money.iter_mut().for_each(|money| money.prepaid = prepaid == Some(true));
            let ids = (BroadcastId::from_uuid(Default::default()), BroadcastContactId::from_uuid(Default::default()));
            let quiet_hours = scheduled.then_some(RecipientQuietHours { from: BIRTH.plus(HOUR), seconds: 7_200 });
            let broadcast = prepaid.map(|_| Membership { quiet_hours, ..Membership::new(ids.0, ids.1, false) });
            let detail = Detail { on_unknown, fallback, fallback_after_seconds, money, broadcast, ..Detail::default() };
            let (status, due) = if scheduled { (Status::Scheduled, BIRTH.plus(HOUR)) } else { (Status::Queued, BIRTH) };
            born(status, due, detail)
        },
    )
}

/// A message on its way, with what its owners remember.
struct Life {
    state: State,
    now: Timestamp,
    changes: Vec<Change>,
    /// The fence that each start returned.
    fences: Vec<i64>,
}

impl Life {
    const NODE: NodeId = NodeId(4);

    fn new(state: State) -> Self {
        Self { state, now: BIRTH, changes: Vec::new(), fences: Vec::new() }
    }

    fn apply(&mut self, step: &Step) -> Applied {
        let applied = self.state.apply(step, self.now, &mut self.changes);
        if self.state.detail.attempts.len() > self.fences.len() {
            self.fences.push(self.state.fence);
        }
        applied
    }

    fn start(&mut self) -> Applied {
        self.start_after(None)
    }

    fn start_after(&mut self, pause: Option<(Timestamp, Timestamp)>) -> Applied {
        self.apply(&Step::Start { node: Self::NODE, fence: self.state.fence, suppressed: false, pause })
    }

    fn settle(&mut self, attempt: usize, outcome: Outcome) -> Applied {
        self.settle_by(Receipts::ByAttempt, attempt, outcome)
    }

    fn settle_by(&mut self, receipts: Receipts, attempt: usize, outcome: Outcome) -> Applied {
        let fence = self.fences.get(attempt).copied().unwrap_or(-1);
        self.apply(&Step::Settle { attempt, fence, outcome, receipts, retry_in: HOUR, receipt_wait: DAY })
    }

    fn receipt(&mut self, attempt: usize, kind: ReceiptKind) -> Applied {
        self.apply(&Step::Receipt { attempt: Some(attempt), part: 0, kind, at: self.now })
    }

    fn act(&mut self, act: &Act) -> Applied {
        let fence = |fresh: bool| if fresh { self.state.fence } else { self.state.fence - 1 };
        match act {
            Act::Start { fresh, suppressed, paused } => {
                let pause = paused.then_some((BIRTH, self.now));
                self.apply(&Step::Start { node: Self::NODE, fence: fence(*fresh), suppressed: *suppressed, pause })
            }
            Act::Settle { attempt, outcome, receipts } => self.settle_by(*receipts, *attempt, outcome.clone()),
            Act::Receipt { attempt, part, kind, ago } => {
                let at = self.now.minus(Duration::from_millis(*ago));
                self.apply(&Step::Receipt { attempt: *attempt, part: *part, kind: kind.clone(), at })
            }
            Act::Disconnected { fresh } => self.apply(&Step::Disconnected { fence: fence(*fresh) }),
            Act::Deadline { fresh } => self.apply(&Step::Deadline { fence: fence(*fresh) }),
            Act::Recover => self.apply(&Step::Recover { node: Self::NODE, retry_in: HOUR }),
            Act::Hold(reason) => self.apply(&Step::Hold { reason: *reason }),
            Act::Cancel => self.apply(&Step::Cancel),
            Act::Withdraw(halt) => self.apply(&Step::Withdraw { halt: *halt }),
            Act::Erase => self.apply(&Step::Erase),
            Act::Resolve(action) => self.apply(&Step::Resolve { action: *action }),
        }
    }

    /// Looks after the message as nodes do that are never lucky, until it is final; how many steps that took.
    fn drive(&mut self) -> usize {
        for steps in 0..100 {
            if let Some(due) = self.state.due_at() {
                self.now = self.now.max(due);
            }
            match self.state.wait {
                Wait::Nothing => return steps,
                Wait::Attempt { .. } => self.start(),
                Wait::Owned { node } => self.apply(&Step::Recover { node, retry_in: HOUR }),
                Wait::Receipt { .. } | Wait::Held { .. } => self.apply(&Step::Deadline { fence: self.state.fence }),
            };
        }
        panic!("still not final: {:?}", self.state);
    }
}

fn count(state: &State, which: impl Fn(&Attempt) -> bool) -> usize {
    state.detail.attempts.iter().filter(|a| which(a)).count()
}

/// What holds of every state.
fn check_state(state: &State) {
    let detail = &state.detail;
    match state.wait {
        Wait::Nothing => {
            assert!(state.is_final());
            assert!(state.status > Status::Sending, "final and {}", state.status);
        }
        Wait::Owned { .. } => {
            assert!(!state.is_final() && state.due_at().is_none());
            assert!(!detail.attempts.is_empty(), "owned without an attempt");
        }
        _ => assert!(!state.is_final() && state.due_at().is_some()),
    }
    if matches!(state.status, Status::Failed | Status::Cancelled) {
        assert!(state.is_final(), "{} and waits", state.status);
    }
    if matches!(state.status, Status::Delivered | Status::Read) {
        assert!(matches!(state.wait, Wait::Nothing | Wait::Owned { .. }), "it arrived, and waits for more: {:?}", state.wait);
    }
    assert_eq!(detail.failure.is_some(), matches!(state.status, Status::Failed | Status::Cancelled), "{:?}", detail.failure);
    assert_eq!(detail.delivered_at.is_some() || state.status == Status::Cancelled, state.status >= Status::Delivered);
    assert_eq!(state.status == Status::Read, detail.read_at.is_some() && state.status != Status::Cancelled);
    if matches!(state.status, Status::Sent | Status::Delivered | Status::Read) {
        assert!(detail.sent_at.is_some());
    }
    let times: Vec<_> = [detail.sent_at, detail.delivered_at, detail.read_at].into_iter().flatten().collect();
    assert!(times.is_sorted(), "sent, delivered, read: {times:?}");
    if count(state, |a| matches!(a.status, AttemptStatus::Accepted | AttemptStatus::Delivered)) > 1 {
        assert!(detail.possible_duplicate, "two attempts were taken and nobody is told");
    }
}

/// What holds of a message that went back to its broadcast: no provider was ever asked in vain, and it counts for nothing.
fn check_withdrawn(state: &State) {
    let returned = state.detail.money.iter().flat_map(|m| &m.quotes).any(|q| q.state == QuoteState::Returned);
    let Some(part) = state.detail.broadcast.filter(|part| part.withdrawn) else { return assert!(!returned, "given back to nobody") };
    assert_eq!((state.is_final(), part.no_receipts), (true, false));
    assert_eq!(Counts::of(state), Counts::default());
    if state.status == Status::Cancelled {
        assert_eq!(state.detail.cost, None);
    }
}

/// What holds of a message's money: nothing is reserved for a final one, and its cost is what was charged, for what was taken.
fn check_money(state: &State) {
    let Some(money) = &state.detail.money else { return };
    let charged: Vec<_> = money.quotes.iter().filter(|q| q.state == QuoteState::Charged).collect();
    let sum = charged.iter().map(|q| q.cost.total().0).sum::<i64>();
    assert_eq!(state.detail.cost.map_or(0, |c| c.total().0), sum);
    assert_eq!(state.detail.cost.is_some(), !charged.is_empty(), "absent until known");
    for quote in charged {
        assert!(state.detail.attempts.iter().any(|a| a.channel == quote.channel), "charged for nothing");
    }
    if state.is_final() {
        assert_eq!((money.open(), money.is_open()), (Micros(0), false));
    }
}

/// What holds between a state and the one before it.
fn check_step((before, after): (&State, &State), applied: Applied, act: &Act, told: &[Change], now: Timestamp) {
    check_money(after);
    check_withdrawn(after);
    if let (Some(before), Some(after)) = (&before.detail.money, &after.detail.money) {
        for (before, after) in before.quotes.iter().zip(&after.quotes) {
            assert!(before.state == QuoteState::Open || before == after, "what is paid or given back stays so");
        }
    }
    if applied == Applied::Lost {
        assert_eq!((before, told), (after, &[][..]), "nothing was to change");
    }
    assert!(after.fence >= before.fence && after.status >= before.status);
    if before.detail.possible_duplicate && !after.detail.possible_duplicate {
        assert!(matches!(act, Act::Settle { .. }), "{act:?} proves nothing");
        assert!(count(after, |a| a.status != AttemptStatus::Failed) <= 1, "two attempts may have been sent");
    }
    assert_eq!(after.version, before.version + told.len() as i64);
    let mut previous = before.status;
    for change in told {
        assert_eq!(change.previous, Some(previous));
        assert!(change.status > previous);
        assert_eq!(change.failure.is_some(), matches!(change.status, Status::Failed | Status::Cancelled));
        previous = change.status;
    }
    assert_eq!(previous, after.status, "what is told ends where the message is");
    let words = |error: &Option<Failure>| error.as_ref().is_some_and(|f| f.message != f.code.as_str());
    assert!(!after.detail.erased || !matches!(after.wait, Wait::Attempt { .. } | Wait::Held { .. }), "nothing more is sent");
    let of_attempts = after.detail.attempts.iter().flat_map(|a| std::iter::once(a).chain(a.superseded.iter().map(|(_, a)| a)));
    let kept = of_attempts.map(|a| &a.error).chain([&after.detail.failure, &after.detail.superseded]).any(words);
    assert!(!after.detail.erased || !kept, "no words are kept");
    let (channel, next) = (after.channel(), after.detail.next_channel);
    assert_eq!(next.unwrap_or(channel), after.route.channel, "what is stored as its channel says the route's");
    match act {
        Act::Start { fresh: false, .. } | Act::Disconnected { fresh: false } | Act::Deadline { fresh: false } => {
            assert_eq!(applied, Applied::Lost)
        }
        Act::Start { .. } => {
            let waits = before.detail.broadcast.is_some_and(|part| part.quiet_hours.is_some_and(|hours| hours.end(now).is_some()));
            assert!(!waits || before.detail.attempts.len() == after.detail.attempts.len(), "an attempt in quiet hours");
        }
        Act::Withdraw(None) => assert_eq!(applied, Applied::Lost),
        Act::Withdraw(_) if applied == Applied::Yes => assert!(after.wait != before.wait && after.fence > before.fence),
        _ => assert_eq!(before.detail.attempts.len(), after.detail.attempts.len(), "an attempt that nobody started"),
    }
    let new_owner = matches!((before.wait, after.wait), (b, Wait::Owned { .. }) if b != after.wait);
    assert!(!new_owner || after.fence > before.fence, "a new owner under an old fence");
}

/// What is stored is what is read.
fn check_json(life: &Life) {
    let text = serde_json::to_string(&life.state.detail).unwrap();
    assert_eq!(serde_json::from_str::<Detail>(&text).unwrap(), life.state.detail);
    let text = serde_json::to_string(&life.changes).unwrap();
    assert_eq!(serde_json::from_str::<Vec<Change>>(&text).unwrap(), life.changes);
}

/// How far a receipt takes a message that was sent once.
fn rank(kind: &ReceiptKind) -> Status {
    match kind {
        ReceiptKind::Sent => Status::Sent,
        ReceiptKind::Failed(_) => Status::Failed,
        ReceiptKind::Delivered => Status::Delivered,
        ReceiptKind::Read => Status::Read,
    }
}

/// A message after these receipts, all of one moment, the provider's answer before the `answer_at`-th of them.
fn after(told: &[ReceiptKind], answer_at: usize, receipts: Receipts) -> State {
    let mut life = Life::new(queued());
    life.start();
    for (n, kind) in told.iter().map(Some).chain([None]).enumerate() {
        if n == answer_at {
            life.settle_by(receipts, 0, Outcome::Accepted { refs: vec!["p".to_owned()], cost: None });
        }
        if let Some(kind) = kind {
            life.receipt(0, kind.clone());
        }
        check_state(&life.state);
    }
    // What was shown on the way depends on the order.
    life.state.detail.superseded = None;
    life.state.detail.attempts[0].superseded.clear();
    life.state
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn whatever_happens_the_rules_hold(state in state(), acts in proptest::collection::vec((pause(), act()), 1..24)) {
        let mut life = Life::new(state);
        check_state(&life.state);
        for (pause, act) in &acts {
            life.now = life.now.plus(*pause);
            let (before, told) = (life.state.clone(), life.changes.len());
            let applied = life.act(act);
            check_step((&before, &life.state), applied, act, &life.changes[told..], life.now);
            check_state(&life.state);
        }
        check_json(&life);
        life.drive();
        check_state(&life.state);
        check_money(&life.state);
    }

    #[test]
    fn receipts_lead_to_one_state_in_any_order(
        kinds in proptest::collection::vec(kind(), 0..8).prop_shuffle(),
        repeats in proptest::collection::vec(any::<prop::sample::Index>(), 0..4),
        answer_at in any::<prop::sample::Index>(),
        receipts in receipts(),
    ) {
        let mut told = kinds.clone();
        for repeat in repeats.iter().filter(|_| !kinds.is_empty()) {
            told.push(kinds[repeat.index(kinds.len())].clone());
        }
        let state = after(&told, answer_at.index(told.len() + 1), receipts);
        let best = told.iter().map(rank).max().unwrap_or(Status::Sent);
        prop_assert_eq!(state.status, best);
        prop_assert_eq!(state.detail.attempts[0].provider_message_id.as_deref(), Some("p"));
        prop_assert_eq!(state.is_final(), best > Status::Sent || receipts == Receipts::Never);

        told.sort_by_key(rank);
        let sorted = after(&told, 0, receipts);
        prop_assert_eq!((state.wait, state.detail), (sorted.wait, sorted.detail));
    }

    #[test]
    fn delivered_after_failed_corrects_once(again in 1_usize..5) {
        let mut life = Life::new(queued());
        life.start();
        life.settle(0, Outcome::Rejected { failure: failure(FailureCode::Undeliverable) });
        assert_eq!(life.state.status, Status::Failed);
        for n in 0..again {
            let applied = life.receipt(0, ReceiptKind::Delivered);
            assert_eq!(applied == Applied::Yes, n == 0);
        }
        let told: Vec<_> = life.changes.iter().map(|c| c.status).collect();
        assert_eq!(told, [Status::Sending, Status::Failed, Status::Delivered]);
        assert_eq!((life.state.detail.failure, life.state.wait), (None, Wait::Nothing));
    }
}

fn lost_and_found(on_unknown: OnUnknown) -> Life {
    let mut life = Life::new(born(Status::Queued, BIRTH, Detail { on_unknown, ..Detail::default() }));
    life.start();
    life.apply(&Step::Recover { node: Life::NODE, retry_in: HOUR });
    life
}

#[test]
fn an_acceptance_that_comes_late_stops_the_resend() {
    for on_unknown in [OnUnknown::Resend, OnUnknown::Hold] {
        let mut life = lost_and_found(on_unknown);
        let hint = life.state.fence;
        assert_eq!(life.settle(0, accepted()), Applied::Yes);
        assert_eq!(life.state.wait, Wait::Receipt { deadline: BIRTH.plus(DAY) });
        assert_eq!(life.apply(&Step::Start { node: Life::NODE, fence: hint, suppressed: false, pause: None }), Applied::Lost);
        assert!(!life.state.detail.possible_duplicate);

        let mut life = lost_and_found(on_unknown);
        assert_eq!(life.receipt(0, ReceiptKind::Sent), Applied::Yes);
        assert!(matches!(life.state.wait, Wait::Receipt { .. }), "{:?}", life.state.wait);
    }
}

#[test]
fn a_refusal_that_comes_late_decides_like_one_in_time() {
    for on_unknown in [OnUnknown::Resend, OnUnknown::Hold] {
        let mut life = lost_and_found(on_unknown);
        life.settle(0, Outcome::Rejected { failure: failure(FailureCode::InvalidRecipient) });
        assert_eq!((life.state.status, life.state.wait), (Status::Failed, Wait::Nothing));

        let mut life = lost_and_found(on_unknown);
        life.settle(0, Outcome::Deferred { retry_after: None, failure: failure(FailureCode::RateLimited), scope: Scope::Message });
        assert_eq!(life.state.wait, Wait::Attempt { due_at: BIRTH.plus(HOUR) });
        life.now = BIRTH.plus(HOUR);
        life.start();
        assert!(!life.state.detail.possible_duplicate, "the first was refused");
        assert_eq!(life.settle(0, unknown()), Applied::Lost);
    }
    // After the resend, only the newest attempt decides. The first made no duplicate.
    let mut life = lost_and_found(OnUnknown::Resend);
    life.now = BIRTH.plus(HOUR);
    life.start();
    life.settle(1, unknown());
    assert!(life.state.detail.possible_duplicate);
    let wait = life.state.wait;
    life.settle(0, Outcome::Rejected { failure: failure(FailureCode::InvalidRecipient) });
    assert_eq!((life.state.status, life.state.wait), (Status::Sending, wait));
    assert!(!life.state.detail.possible_duplicate);
    // Unless a part of it had been accepted.
    let mut life = Life::new(queued());
    life.start();
    life.settle(0, Outcome::Unknown { failure: failure(FailureCode::UnknownOutcome), refs: vec!["p1".to_owned()] });
    life.now = BIRTH.plus(HOUR);
    life.start();
    life.settle(1, accepted());
    life.settle(0, Outcome::Rejected { failure: failure(FailureCode::InvalidRecipient) });
    assert!(life.state.detail.possible_duplicate);
}

#[test]
fn a_message_is_not_sent_again_and_again_while_its_outcome_stays_unknown() {
    let mut life = Life::new(queued());
    for n in 0..limits::UNKNOWN_ATTEMPTS {
        assert!(matches!(life.state.wait, Wait::Attempt { .. }), "attempt {n}: {:?}", life.state.wait);
        life.now = BIRTH.plus(HOUR * n as u32);
        life.start();
        life.settle(n, unknown());
    }
    assert!(matches!(life.state.wait, Wait::Held { reason: HeldReason::UnknownOutcome, .. }), "{:?}", life.state.wait);
}

#[test]
fn a_decision_that_it_was_sent_keeps_what_the_provider_said() {
    let mut life = Life::new(born(Status::Queued, BIRTH, Detail { on_unknown: OnUnknown::Hold, ..Detail::default() }));
    life.start();
    life.settle(0, unknown());
    let Outcome::Unknown { failure, .. } = unknown() else { unreachable!() };
    assert_eq!(life.apply(&Step::Resolve { action: Resolution::Sent }), Applied::Yes);
    let attempt = &life.state.detail.attempts[0];
    assert_eq!((attempt.status, attempt.error.as_ref()), (AttemptStatus::Accepted, Some(&failure)));
}

#[test]
fn an_acceptance_that_comes_while_a_further_resend_waits_stops_it() {
    for second in [unknown(), Outcome::Deferred { retry_after: None, failure: failure(FailureCode::RateLimited), scope: Scope::Message }] {
        let mut life = lost_and_found(OnUnknown::Resend);
        life.now = BIRTH.plus(HOUR);
        life.start();
        life.settle(1, second);
        assert!(matches!(life.state.wait, Wait::Attempt { .. }), "{:?}", life.state.wait);
        life.settle(0, accepted());
        assert!(matches!(life.state.wait, Wait::Receipt { .. }), "{:?}", life.state.wait);
    }
}

#[test]
fn an_acceptance_that_comes_after_the_resend_marks_the_duplicate() {
    let mut life = lost_and_found(OnUnknown::Resend);
    life.now = BIRTH.plus(HOUR);
    life.start();
    assert_eq!(life.settle(0, accepted()), Applied::Yes);
    assert_eq!((life.state.status, life.state.wait), (Status::Sent, Wait::Owned { node: Life::NODE }));
    assert!(life.state.detail.possible_duplicate);
    // The first was taken, so the second is not tried again, whatever became of it.
    assert_eq!(life.settle(1, unknown()), Applied::Yes);
    assert!(matches!(life.state.wait, Wait::Receipt { .. }), "{:?}", life.state.wait);
}

#[test]
fn a_receipt_that_comes_before_the_answer_outweighs_an_unknown_one() {
    let mut life = Life::new(queued());
    life.start();
    life.receipt(0, ReceiptKind::Sent);
    life.settle(0, unknown());
    assert!(matches!(life.state.wait, Wait::Receipt { .. }), "{:?}", life.state.wait);
    assert_eq!(life.state.detail.attempts[0].status, AttemptStatus::Accepted);
}

#[test]
fn what_arrived_is_neither_sent_again_nor_held() {
    let mut life = lost_and_found(OnUnknown::Resend);
    life.now = BIRTH.plus(HOUR);
    life.start();
    life.receipt(0, ReceiptKind::Delivered);
    assert_eq!(life.apply(&Step::Hold { reason: HeldReason::UnknownOutcome }), Applied::Lost);
    life.apply(&Step::Recover { node: Life::NODE, retry_in: HOUR });
    assert_eq!((life.state.status, life.state.wait), (Status::Delivered, Wait::Nothing));
}

/// The fallback is due as long as the caller asked for after anything shows that the first route accepted the message.
#[test]
fn the_time_until_the_fallback_begins_when_anything_shows_that_the_message_was_accepted() {
    let minute = Duration::from_secs(60);
    let taken = |how: fn(&mut Life) -> Applied| {
        let detail = Detail { fallback: Some(route(Channel::Sms)), fallback_after_seconds: Some(60), ..Detail::default() };
        let mut life = Life::new(born(Status::Queued, BIRTH, detail));
        life.start();
        how(&mut life);
        (life.state.status, life.state.wait, life.now)
    };
    let ways: [fn(&mut Life) -> Applied; 5] = [
        |life| life.settle(0, accepted()),
        |life| {
            life.settle(0, unknown());
            life.receipt(0, ReceiptKind::Sent)
        },
        |life| {
            life.apply(&Step::Recover { node: Life::NODE, retry_in: HOUR });
            life.settle(0, accepted())
        },
        |life| {
            life.receipt(0, ReceiptKind::Sent);
            life.settle(0, unknown())
        },
        |life| {
            life.receipt(0, ReceiptKind::Sent);
            life.apply(&Step::Recover { node: Life::NODE, retry_in: HOUR })
        },
    ];
    for how in ways {
        let (status, wait, now) = taken(how);
        assert_eq!((status, wait), (Status::Sent, Wait::Receipt { deadline: now.plus(minute) }));
    }
    // Without time for the fallback, the message waits for its receipt as long as any other.
    let detail = Detail { fallback: Some(route(Channel::Sms)), fallback_after_seconds: Some(60), ..Detail::default() };
    let mut life = Life::new(born(Status::Queued, BIRTH, detail));
    life.state.expires_at = BIRTH.plus(minute);
    life.start();
    life.settle(0, accepted());
    assert_eq!(life.state.wait, Wait::Receipt { deadline: life.now.plus(DAY) });
}

#[test]
fn a_fallback_is_retried_although_the_first_route_took_the_message() {
    let detail = Detail { fallback: Some(route(Channel::Sms)), fallback_after_seconds: Some(60), ..Detail::default() };
    let mut life = Life::new(born(Status::Queued, BIRTH, detail));
    life.start();
    life.settle(0, accepted());
    life.now = BIRTH.plus(Duration::from_secs(60));
    assert_eq!(life.apply(&Step::Deadline { fence: life.state.fence }), Applied::Yes);
    assert_eq!(life.state.route, route(Channel::Sms));
    life.start();
    life.settle(1, Outcome::Deferred { retry_after: None, failure: failure(FailureCode::RateLimited), scope: Scope::Message });
    assert_eq!(life.state.wait, Wait::Attempt { due_at: life.now.plus(HOUR) });
    life.now = life.now.plus(HOUR);
    life.start();
    life.settle(2, accepted());
    assert!(life.state.detail.possible_duplicate, "both routes took it");
    // Only when no attempt is left that may have arrived has the message failed.
    life.receipt(2, ReceiptKind::Failed(failure(FailureCode::Undeliverable)));
    assert_eq!(life.state.status, Status::Sent);
    life.receipt(0, ReceiptKind::Failed(failure(FailureCode::Undeliverable)));
    assert_eq!((life.state.status, life.state.wait), (Status::Failed, Wait::Nothing));
}

#[test]
fn a_fallback_that_nothing_may_be_sent_by_leaves_the_wait_for_the_first_receipt() {
    let removed: fn(&mut Life) -> Applied = |life| life.apply(&Step::Disconnected { fence: life.state.fence });
    let suppressed = |life: &mut Life| life.act(&Act::Start { fresh: true, suppressed: true, paused: false });
    for step in [removed, suppressed] {
        let detail = Detail { fallback: Some(route(Channel::Sms)), fallback_after_seconds: Some(60), ..Detail::default() };
        let mut life = Life::new(born(Status::Queued, BIRTH, detail));
        life.start();
        life.settle(0, accepted());
        life.now = BIRTH.plus(Duration::from_secs(60));
        life.apply(&Step::Deadline { fence: life.state.fence });
        assert_eq!(step(&mut life), Applied::Yes);
        assert_eq!((life.state.status, life.state.channel()), (Status::Sent, Channel::Whatsapp));
        assert_eq!(life.state.wait, Wait::Receipt { deadline: life.now.plus(limits::RECEIPT_WAIT) });
        life.receipt(0, ReceiptKind::Failed(failure(FailureCode::Undeliverable)));
        assert_eq!((life.state.status, life.state.wait), (Status::Failed, Wait::Nothing));
        assert_eq!(life.state.detail.failure, Some(failure(FailureCode::Undeliverable)), "the reason of the attempt");
    }
}

#[test]
fn nothing_falls_back_after_its_validity_or_after_its_price_was_settled() {
    let cost = Cost { provider: Micros(10), fee: Micros(0) };
    let quotes = [Channel::Whatsapp, Channel::Sms].map(|channel| Quote { channel, cost, state: QuoteState::Open }).to_vec();
    let money = Some(Money { quotes, prepaid: false, limited_sender: None });
    for (money, wait, fails_after, falls_back) in [
        (None, DAY, HOUR, true),
        (None, DAY, DAY + HOUR, false), // expired
        (None, HOUR, 2 * HOUR, true),   // free of charge, so there is nothing to settle
        (money.clone(), DAY, HOUR, true),
        (money, HOUR, 2 * HOUR, false),
    ] {
        let detail = Detail { fallback: Some(route(Channel::Sms)), money, ..Detail::default() };
        let mut state = born(Status::Queued, BIRTH, detail);
        state.route = route(Channel::Whatsapp);
        let mut life = Life::new(state);
        life.start();
        life.settle(0, accepted());
        life.now = BIRTH.plus(wait);
        if let Wait::Receipt { .. } = life.state.wait {
            life.state.wait = Wait::Receipt { deadline: BIRTH.plus(wait) };
        }
        if wait < fails_after {
            life.apply(&Step::Deadline { fence: life.state.fence });
        }
        life.now = BIRTH.plus(fails_after);
        life.receipt(0, ReceiptKind::Failed(failure(FailureCode::Undeliverable)));
        let expected = if falls_back { Channel::Sms } else { Channel::Whatsapp };
        assert_eq!((life.state.route.channel, life.state.status == Status::Failed), (expected, !falls_back), "{wait:?} {fails_after:?}");
        let code = life.state.detail.failure.as_ref().map(|failure| failure.code);
        assert_eq!(code, (!falls_back).then_some(FailureCode::Undeliverable), "the reason of the attempt");
    }
}

#[test]
fn the_moments_after_which_nothing_is_sent() {
    let mut past = Life::new(born(Status::Scheduled, BIRTH, Detail::default()));
    past.now = BIRTH.plus(HOUR + Duration::from_millis(1));
    past.start_after(Some((BIRTH, past.now)));
    assert!(matches!(past.state.wait, Wait::Held { reason: HeldReason::PastDue, .. }), "nothing ran when it was due");
    let mut busy = Life::new(born(Status::Scheduled, BIRTH, Detail::default()));
    busy.now = past.now;
    busy.start_after(Some((BIRTH.plus(Duration::from_millis(1)), busy.now)));
    assert!(matches!(busy.state.wait, Wait::Owned { .. }), "its connection was slow or down");
    let mut late = Life::new(born(Status::Scheduled, BIRTH, Detail::default()));
    late.now = BIRTH.plus(DAY);
    late.start_after(Some((BIRTH, late.now)));
    assert_eq!(late.state.detail.failure.as_ref().map(|f| f.code), Some(FailureCode::Expired), "no longer valid");

    let mut expired = Life::new(queued());
    expired.now = BIRTH.plus(DAY);
    expired.start();
    assert_eq!(expired.state.detail.failure.as_ref().map(|f| f.code), Some(FailureCode::Expired));

    let mut deferred = Life::new(queued());
    deferred.now = BIRTH.plus(DAY - HOUR);
    deferred.start();
    deferred.settle(0, Outcome::Deferred { retry_after: None, failure: failure(FailureCode::RateLimited), scope: Scope::Message });
    let last = BIRTH.plus(DAY).minus(limits::LAST_RETRY);
    assert_eq!(deferred.state.wait, Wait::Attempt { due_at: last }, "the last retry");
    deferred.now = last;
    deferred.start();
    deferred.settle(1, Outcome::Deferred { retry_after: None, failure: failure(FailureCode::RateLimited), scope: Scope::Message });
    assert_eq!(deferred.state.wait, Wait::Attempt { due_at: BIRTH.plus(DAY) }, "not before its end");
    deferred.now = BIRTH.plus(DAY);
    deferred.start();
    assert_eq!(deferred.state.detail.failure.as_ref().map(|f| f.code), Some(FailureCode::RateLimited), "retried when it is over");
}

#[test]
fn a_route_that_accepts_nothing_gives_way_to_the_fallback() {
    let deferred = || Outcome::Deferred { retry_after: None, failure: failure(FailureCode::RateLimited), scope: Scope::Connection };
    let life = |fallback_after_seconds| {
        let detail = Detail { fallback: Some(route(Channel::Sms)), fallback_after_seconds, ..Detail::default() };
        let mut state = born(Status::Queued, BIRTH, detail);
        state.route = route(Channel::Whatsapp);
        let mut life = Life::new(state);
        life.start();
        life
    };
    // After the time that the caller gave it: nothing else can become of what was not accepted.
    let mut asked = life(Some(60));
    let first = asked.now;
    asked.settle(0, deferred());
    let sms = (route(Channel::Sms), Wait::Attempt { due_at: first.plus(Duration::from_secs(60)) });
    assert_eq!((asked.state.route.clone(), asked.state.wait), sms, "a retry in an hour comes too late");
    // An unknown attempt may still turn out to be accepted.
    let mut unclear = life(Some(60));
    let first = unclear.now;
    unclear.settle(0, unknown());
    let kept = (route(Channel::Whatsapp), Wait::Attempt { due_at: first.plus(Duration::from_secs(60)) });
    assert_eq!((unclear.state.route.clone(), unclear.state.wait), kept);
    unclear.now = first.plus(Duration::from_secs(60));
    unclear.start();
    assert_eq!((unclear.state.route.clone(), unclear.state.wait), (route(Channel::Sms), Wait::Attempt { due_at: unclear.now }));
    // When no retry fits into the validity.
    for outcome in [deferred(), unknown()] {
        let mut late = life(None);
        late.state.expires_at = late.now.plus(HOUR);
        late.settle(0, outcome);
        assert_eq!((late.state.route.clone(), late.state.wait), (route(Channel::Sms), Wait::Attempt { due_at: late.now }));
        late.start();
        late.settle(1, accepted());
        assert_eq!(late.state.status, Status::Sent);
    }
    // Also if no attempt can start, of which there may have been none.
    for (seconds, attempts) in [(Some(60), 1), (Some(60), 0), (None, 0)] {
        let mut resting = life(seconds);
        let first = resting.now;
        resting.state.wait = Wait::Attempt { due_at: first };
        resting.state.detail.attempts.truncate(attempts);
        let last = resting.state.expires_at.minus(limits::LAST_RETRY);
        let at = if seconds.is_some() { first.plus(Duration::from_secs(60)) } else { last };
        assert_eq!(resting.state.decide_at(), at);
        let mut decide = |now| resting.state.apply(&Step::Deadline { fence: resting.state.fence }, now, &mut Vec::new());
        assert_eq!((decide(at.minus(Duration::from_millis(1))), decide(at)), (Applied::Lost, Applied::Yes));
        assert_eq!((&resting.state.route, resting.state.wait), (&route(Channel::Sms), Wait::Attempt { due_at: at }));
        assert_eq!(resting.state.decide_at(), resting.state.expires_at, "nothing follows");
    }
    let mut never = life(None);
    never.state.detail.fallback = None;
    never.state.expires_at = never.now.plus(HOUR);
    never.settle(0, deferred());
    assert_eq!(never.state.route, route(Channel::Whatsapp));
}

#[test]
fn a_long_message_has_arrived_when_all_its_parts_have() {
    let refs = || ["a", "b", "c"].map(str::to_owned).to_vec();
    let sent = || {
        let mut life = Life::new(queued());
        life.start();
        life.settle_by(Receipts::ByReference, 0, Outcome::Accepted { refs: refs(), cost: None });
        life
    };
    let tell = |life: &mut Life, part, kind| life.apply(&Step::Receipt { attempt: Some(0), part, kind, at: life.now });
    let mut life = sent();
    for part in [2, 0, 0, 2] {
        tell(&mut life, part, ReceiptKind::Delivered);
        assert_eq!(life.state.status, Status::Sent, "part 1 is missing");
    }
    tell(&mut life, 1, ReceiptKind::Delivered);
    assert_eq!(life.state.status, Status::Delivered);
    // Of several only the last that was read may be told.
    let mut life = sent();
    tell(&mut life, 1, ReceiptKind::Read);
    assert_eq!(life.state.status, Status::Sent, "part 2 is missing");
    tell(&mut life, 2, ReceiptKind::Read);
    assert_eq!(life.state.status, Status::Read);
    // One part that did not arrive is a message that did not.
    let mut life = sent();
    tell(&mut life, 0, ReceiptKind::Delivered);
    tell(&mut life, 1, ReceiptKind::Failed(failure(FailureCode::Undeliverable)));
    assert_eq!(life.state.status, Status::Failed);
    // What the provider accepted only in part never arrives whole.
    let mut life = Life::new(queued());
    life.start();
    life.settle(0, Outcome::Unknown { failure: failure(FailureCode::UnknownOutcome), refs: refs() });
    for part in 0..3 {
        tell(&mut life, part, ReceiptKind::Delivered);
    }
    assert_eq!((life.state.status, life.state.wait), (Status::Sending, Wait::Attempt { due_at: BIRTH.plus(HOUR) }), "it is sent again");
    // Nor does a receipt for the first part stop what follows while the next attempt is made.
    life.now = BIRTH.plus(HOUR);
    life.start();
    tell(&mut life, 0, ReceiptKind::Delivered);
    life.settle(1, Outcome::Deferred { retry_after: None, failure: failure(FailureCode::RateLimited), scope: Scope::Message });
    assert!(matches!(life.state.wait, Wait::Attempt { .. }), "{:?}", life.state.wait);
}
