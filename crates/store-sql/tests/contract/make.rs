//! Creates messages and steps for cases.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::join_all;
use nuncio_domain::id::Id as _;
use nuncio_domain::lifecycle::{Applied, Outcome, ReceiptKind, Receipts, Step};
use nuncio_domain::message::{Detail, Direction, Failure, FailureCode, Message, NodeId, Request, Route, State, Status, Wait};
use nuncio_domain::{AddressId, AddressKind, Channel, ContactId, MessageId, MessageType, Recipient, TenantId, Timestamp};
use nuncio_store::{Accept, Accepted, Claim, EventRecord, Idempotency, IdempotentOperation, Result, Store, Transition, Transitioned};
use sqlx::{Connection as _, PgConnection};

use crate::harness::{Backend, Harness, NODE, World};

pub(crate) const DAY: Duration = Duration::from_secs(86_400);
pub(crate) const MINUTE: Duration = Duration::from_secs(60);

pub(crate) fn phone(number: u32) -> Recipient {
    Recipient { kind: AddressKind::Phone, identifier: format!("+346{number:08}") }
}

/// Returns the hash that replaces an erased recipient.
pub(crate) fn mark(recipient: &Recipient) -> String {
    format!("~{}", recipient.identifier.trim_start_matches('+'))
}

pub(crate) fn failure(code: FailureCode) -> Failure {
    Failure::own(code, "it did not work")
}

pub(crate) fn taken(id: &str) -> Outcome {
    Outcome::Accepted { refs: vec![id.to_owned()], cost: None }
}

pub(crate) fn settle(attempt: usize, fence: i64, outcome: Outcome) -> Step {
    settle_by(Receipts::ByAttempt, attempt, fence, outcome)
}

pub(crate) fn settle_by(receipts: Receipts, attempt: usize, fence: i64, outcome: Outcome) -> Step {
    Step::Settle { attempt, fence, outcome, receipts, retry_in: MINUTE, receipt_wait: DAY }
}

pub(crate) fn receipt(kind: ReceiptKind, at: Timestamp) -> Step {
    Step::Receipt { attempt: None, part: 0, kind, at }
}

pub(crate) fn start(node: NodeId, fence: i64) -> Step {
    Step::Start { node, fence, suppressed: false, pause: None }
}

pub(crate) type Boxed<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

impl Harness {
    /// Returns a queued text message to a recipient.
    pub(crate) fn item(&self, to: &Recipient) -> Accept {
        self.item_in(&self.world, to)
    }

    pub(crate) fn item_in(&self, world: &World, to: &Recipient) -> Accept {
        let now = self.tick();
        let new_address: AddressId = self.id();
        let state = State {
            status: Status::Queued,
            wait: Wait::Attempt { due_at: now.plus(Duration::from_secs(5)) },
            fence: 0,
            version: 0,
            expires_at: now.plus(DAY),
            updated_at: now,
            route: Route { channel: Channel::Sms, connection: world.connection, provider: "sim".to_owned() },
            detail: Detail::default(),
        };
        let message = Message {
            tenant: world.tenant,
            id: self.id(),
            direction: Direction::Outbound,
            message_type: MessageType::Text,
            to: to.identifier.clone(),
            from: "+34600000000".to_owned(),
            sender: world.sender,
            address: new_address,
            request: Arc::new(request("hello")),
            state,
        };
        Accept {
            message,
            recipient: to.clone(),
            country: "ES".to_owned(),
            mark: mark(to),
            new_address,
            new_contact: ContactId::from_uuid(new_address.uuid()),
            idempotency: None,
            epoch: world.epoch,
            broadcast_fence: 0,
            claim: None,
            now,
        }
    }

    /// Like [`Self::item`], sent at once by [`NODE`].
    pub(crate) fn claimed(&self, to: &Recipient) -> Accept {
        Accept { claim: Some(Claim { node: NODE }), ..self.item(to) }
    }

    pub(crate) async fn accept(&self, item: Accept) -> Message {
        new(self.store.accept(item).await).0
    }

    /// Accepts a message whose first attempt was started by [`NODE`].
    pub(crate) async fn sending(&self, to: u32) -> Message {
        self.accept(self.claimed(&phone(to))).await
    }

    /// Accepts a message that a provider accepted and will send receipts for.
    pub(crate) async fn sent(&self, to: u32) -> Message {
        let mut message = self.sending(to).await;
        let (applied, state) = self.step(message.id, settle(0, message.state.fence, taken("p"))).await;
        assert_eq!(applied, Applied::Yes);
        message.state = state;
        message
    }

    pub(crate) fn transition(&self, id: MessageId, step: Step) -> Transition {
        Transition::new(self.world.tenant, id, step, self.tick())
    }

    pub(crate) async fn step(&self, id: MessageId, step: Step) -> (Applied, State) {
        found(self.store.transition(self.transition(id, step)).await)
    }

    pub(crate) async fn lookup(&self, id: MessageId) -> Message {
        self.lookup_in(self.world.tenant, id).await.unwrap()
    }

    pub(crate) async fn lookup_in(&self, tenant: TenantId, id: MessageId) -> Option<Message> {
        self.read().await.lookup_message(tenant, id).await.unwrap()
    }

    /// Returns the events of a message, after checking that they are complete.
    pub(crate) async fn events(&self, id: MessageId) -> Vec<EventRecord> {
        self.events_in(self.world.tenant, id).await
    }

    /// Like [`Self::events`], in another environment.
    pub(crate) async fn events_in(&self, tenant: TenantId, id: MessageId) -> Vec<EventRecord> {
        let mut tx = self.read().await;
        let events = tx.list_message_events(tenant, id).await.unwrap();
        let state = tx.lookup_message(tenant, id).await.unwrap().unwrap().state;
        let mut next = 1;
        let mut status = None;
        for event in &events {
            assert_eq!(event.sequence, next, "{events:?}");
            next += event.changes.len() as i64;
            for change in &event.changes {
                assert_eq!(change.previous, status, "{events:?}");
                status = Some(change.status);
            }
        }
        assert_eq!((next - 1, status), (state.version, Some(state.status)), "{events:?}");
        events
    }

    /// Enqueues all items while writes are blocked, so that they share one transaction. The lane can run its first item alone: that is
    /// `first`, which has no effect.
    pub(crate) async fn at_once<T>(&self, mut first: Boxed<'_, T>, mut items: Vec<Boxed<'_, T>>) -> Vec<T> {
        let gate = self.close_gate().await;
        assert!(futures::poll!(first.as_mut()).is_pending());
        // Long enough for the writer to take the first item, on a busy machine too: it then waits at the gate.
        for _ in 0..500 {
            self.read().await.list_nodes().await.unwrap();
        }
        for item in &mut items {
            assert!(futures::poll!(item.as_mut()).is_pending(), "an answer while nothing can be written");
        }
        gate.open().await;
        first.await;
        join_all(items).await
    }

    async fn close_gate(&self) -> Gate {
        match self.backend {
            Backend::Sqlite => Gate::Sqlite(self.begin().await),
            Backend::Postgres => {
                let nuncio_store_sql::Target::Postgres(url) = &self.target else { unreachable!() };
                let mut conn = PgConnection::connect(url.expose()).await.unwrap();
                sqlx::raw_sql("BEGIN; LOCK TABLE worlds, messages IN ACCESS EXCLUSIVE MODE").execute(&mut conn).await.unwrap();
                Gate::Postgres(conn)
            }
        }
    }

    /// Enqueues each item from a separate task.
    pub(crate) async fn accept_from_tasks(&self, items: impl Iterator<Item = Accept>) -> Vec<Result<Accepted>> {
        let tasks = items.map(|item| {
            let store = std::sync::Arc::clone(&self.store);
            tokio::spawn(async move { store.accept(item).await })
        });
        join_all(tasks).await.into_iter().map(|joined| joined.unwrap()).collect()
    }

    pub(crate) async fn accept_at_once(&self, items: Vec<Accept>) -> Vec<Result<Accepted>> {
        self.accept_at_once_by(&*self.store, items).await
    }

    pub(crate) async fn accept_at_once_by(&self, store: &dyn Store, items: Vec<Accept>) -> Vec<Result<Accepted>> {
        let stale = Accept { epoch: -1, ..self.item(&phone(0)) };
        self.at_once(store.accept(stale), items.into_iter().map(|item| store.accept(item)).collect()).await
    }

    pub(crate) async fn steps_at_once(&self, items: Vec<Transition>) -> Vec<Result<Transitioned>> {
        self.steps_at_once_by(&*self.store, items).await
    }

    pub(crate) async fn steps_at_once_by(&self, store: &dyn Store, items: Vec<Transition>) -> Vec<Result<Transitioned>> {
        let nobody = self.transition(self.id(), Step::Cancel);
        self.at_once(store.transition(nobody), items.into_iter().map(|item| store.transition(item)).collect()).await
    }
}

enum Gate {
    Sqlite(Box<dyn nuncio_store::Tx>),
    Postgres(PgConnection),
}

impl Gate {
    async fn open(self) {
        match self {
            Self::Sqlite(tx) => drop(tx),
            Self::Postgres(conn) => conn.close().await.unwrap(),
        }
    }
}

pub(crate) fn request(text: &str) -> Request {
    let empty = serde_json::json!({"routing": {"reason": "the only channel"}});
    Request { text: Some(text.to_owned()), ..serde_json::from_value(empty).unwrap() }
}

pub(crate) fn with_key(mut item: Accept, key: &str, fingerprint: u8) -> Accept {
    item.idempotency =
        Some(Idempotency { operation: IdempotentOperation::SendMessage, key: key.to_owned(), fingerprint: [fingerprint; 32] });
    item.message.request_mut().idempotency_key = Some(key.to_owned());
    item
}

/// Returns the message and contact of a new message.
#[track_caller]
pub(crate) fn new(accepted: Result<Accepted>) -> (Message, ContactId) {
    match accepted {
        Ok(Accepted::New { message, contact }) => (*message, contact),
        other => panic!("not new: {other:?}"),
    }
}

#[track_caller]
pub(crate) fn duplicate(accepted: Result<Accepted>) -> (MessageId, bool) {
    match accepted {
        Ok(Accepted::Duplicate { original, same_request }) => (original, same_request),
        other => panic!("no duplicate: {other:?}"),
    }
}

/// Returns whether the step took effect, and the resulting state.
#[track_caller]
pub(crate) fn found(transitioned: Result<Transitioned>) -> (Applied, State) {
    match transitioned {
        Ok(Transitioned::Found { applied, state, .. }) => (applied, *state),
        other => panic!("not found: {other:?}"),
    }
}

/// Returns the message of a start that won.
#[track_caller]
pub(crate) fn started(transitioned: Result<Transitioned>) -> Message {
    match transitioned {
        Ok(Transitioned::Found { applied: Applied::Yes, message: Some(message), .. }) => *message,
        other => panic!("not started: {other:?}"),
    }
}
