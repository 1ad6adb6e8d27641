//! Results that the store refuses.

use async_trait::async_trait;
use nuncio_domain::{MessageId, Timestamp, id::Id as _, lifecycle::Receipts};
use nuncio_store::{Accept, Accepted, DeliveryLog, MetricRow, Result, Tx};
use parking_lot::Mutex;

use super::*;

/// A store that refuses what a test wants it to, and keeps what it was asked.
#[derive(Debug)]
struct Refusing {
    refuses: fn(&Outcome) -> bool,
    asked: Mutex<Vec<Outcome>>,
}

#[async_trait]
impl Store for Refusing {
    async fn transition(&self, item: Transition) -> Result<Transitioned> {
        let Step::Settle { outcome, .. } = item.step else { unreachable!() };
        let refused = (self.refuses)(&outcome);
        self.asked.lock().push(outcome);
        if refused { Err(StoreError::Other("the key is too long".into())) } else { Ok(Transitioned::Missing) }
    }

    async fn accept(&self, _: Accept) -> Result<Accepted> {
        unreachable!()
    }

    async fn add_metrics(&self, _: Vec<MetricRow>) -> Result<()> {
        unreachable!()
    }

    async fn log_deliveries(&self, _: DeliveryLog) -> Result<bool> {
        unreachable!()
    }

    async fn begin(&self) -> Result<Box<dyn Tx>> {
        unreachable!()
    }

    async fn read(&self) -> Result<Box<dyn Tx>> {
        unreachable!()
    }

    async fn ping(&self) -> Result<()> {
        unreachable!()
    }

    async fn close(&self) {}

    async fn advice(&self) -> Result<Vec<String>> {
        unreachable!()
    }
}

fn accepted(refs: &[&str]) -> Outcome {
    Outcome::Accepted { refs: refs.iter().map(|&id| id.to_owned()).collect(), cost: None }
}

/// Records that the message was accepted under `id1`. Returns what the store was asked, and whether it took any of it.
async fn recorded(refuses: fn(&Outcome) -> bool) -> (Vec<Outcome>, bool) {
    let store = Refusing { refuses, asked: Mutex::default() };
    let step = Step::Settle {
        attempt: 0,
        fence: 1,
        outcome: accepted(&["id1"]),
        receipts: Receipts::ByReference,
        retry_in: Duration::ZERO,
        receipt_wait: Duration::ZERO,
    };
    let message = MessageId::from_uuid(uuid::Uuid::nil());
    let transition = Transition::new(TenantId(1), message, step, Timestamp::from_millis(0));
    let taken = record(&store, transition).await.is_some();
    (store.asked.into_inner(), taken)
}

#[tokio::test]
async fn an_accepted_message_is_stored_without_the_ids_that_the_store_refuses() {
    assert_eq!(recorded(|_| false).await, (vec![accepted(&["id1"])], true));
    let has_ids = |outcome: &Outcome| !outcome.references(Receipts::ByReference).is_empty();
    assert_eq!(recorded(has_ids).await, (vec![accepted(&["id1"]), accepted(&[])], true));
    assert_eq!(recorded(|_| true).await, (vec![accepted(&["id1"]), accepted(&[])], false), "tried once more, not for ever");
}
