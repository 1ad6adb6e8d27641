//! Parts that come too late, and deliveries while nothing can be written.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use nuncio_channel::EventSink;
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::{Clock, Entropy, Ids, Redacted, Timestamp};
use serde_json::Map;

use super::*;

/// A clock and a disk that do as they are told.
#[derive(Debug, Default)]
struct World {
    seconds: AtomicU64,
    full: AtomicBool,
    written: Mutex<Vec<(String, String)>>,
}

impl Clock for World {
    fn now(&self) -> Timestamp {
        Timestamp::from_millis(0)
    }

    fn monotonic(&self) -> Duration {
        Duration::from_secs(self.seconds.load(Ordering::SeqCst))
    }
}

impl Entropy for World {
    fn fill(&self, out: &mut [u8]) {
        out.fill(9);
    }
}

#[async_trait::async_trait]
impl EventSink for World {
    fn push(&self, event: ProviderEvent, _: Duration) {
        unreachable!("{event:?}")
    }

    async fn record(&self, event: ProviderEvent) -> Result<(), Unrecorded> {
        let ProviderEvent::Inbound(inbound) = event else { unreachable!("{event:?}") };
        if self.full.load(Ordering::SeqCst) {
            return Err(Unrecorded);
        }
        self.written.lock().push((inbound.provider_message_id, inbound.text));
        Ok(())
    }
}

fn inbox(world: &Arc<World>) -> Inbox {
    let account = Account {
        id: ConnectionId::from_uuid(uuid_v7(Timestamp::from_millis(1), [7; 10])),
        tenant: TenantId(3),
        channel: Channel::Sms,
        settings: Map::new(),
        secrets: Redacted::default(),
        trusted: true,
    };
    let ids = Ids { clock: world.clone(), entropy: world.clone() };
    let services = Services { events: world.clone(), ids, public_url: "https://nuncio.example".into() };
    Inbox::new(&account, &services, IdFormat::Text, Duration::from_secs(600))
}

fn part(sequence: u8, text: &[u8]) -> Delivery {
    Delivery { esm_class: 0x40, octets: [&[5, 0, 3, 7, 2, sequence], text].concat(), ..Delivery::default() }
}

#[tokio::test(start_paused = true)]
async fn what_stays_incomplete_is_written_when_its_time_is_over() {
    let world = Arc::new(World::default());
    let (inbox, session) = (inbox(&world), Arc::new(Session::new(1, Duration::from_secs(1))));
    assert_eq!(inbox.take(&session, part(1, b"Hello")).await, status::OK, "after a second, so that the next part may come");
    world.seconds.store(599, Ordering::SeqCst);
    inbox.give_up(false).await;
    assert!(world.written.lock().is_empty());
    world.seconds.store(600, Ordering::SeqCst);
    world.full.store(true, Ordering::SeqCst);
    inbox.give_up(false).await;
    world.full.store(false, Ordering::SeqCst);
    inbox.give_up(false).await;
    inbox.give_up(true).await;
    assert_eq!(*world.written.lock(), [("09".repeat(16), "Hello[…]".to_owned())], "once, when it could be written");
}

#[tokio::test(start_paused = true)]
async fn parts_of_what_cannot_be_written_are_put_off_and_taken_again() {
    let world = Arc::new(World::default());
    let (inbox, session) = (inbox(&world), Arc::new(Session::new(1, Duration::from_secs(1))));
    world.full.store(true, Ordering::SeqCst);
    let both = tokio::join!(inbox.take(&session, part(1, b"Hello, ")), inbox.take(&session, part(2, b"world")));
    assert_eq!(both, (status::NOT_NOW, status::NOT_NOW));
    world.full.store(false, Ordering::SeqCst);
    let both = tokio::join!(inbox.take(&session, part(1, b"Hello, ")), inbox.take(&session, part(2, b"world")));
    assert_eq!(both, (status::OK, status::OK));
    assert_eq!(*world.written.lock(), [("09".repeat(16), "Hello, world".to_owned())]);
}
