//! PostgreSQL with several nodes, and with connections that break.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures::future::{join, join_all};
use nuncio_domain::Redacted;
use nuncio_domain::lifecycle::{Applied, ReceiptKind, Step};
use nuncio_domain::message::{FailureCode, Status, Wait};
use nuncio_store::{Accept, Accepted, Claim, Store, StoreError, Suppression, SuppressionReason, Transition, Transitioned};
use nuncio_store_sql::{Target, open};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::harness::{Harness, NODE, START, in_tx};
use crate::make::{duplicate, failure, found, new, phone, receipt, settle, start, started, taken, with_key};

pub(crate) async fn two_nodes_change_the_same_messages(h: &Harness) {
    let rival = h.another().await;
    for round in 0..4_u8 {
        // Both accept the same keys and recipients, in opposite orders.
        let mine: Vec<_> = (0..60).map(|n| with_key(h.claimed(&phone(n)), &format!("{round}-{n}"), 1)).collect();
        let theirs: Vec<_> = (0..60).rev().map(|n| with_key(h.claimed(&phone(n)), &format!("{round}-{n}"), 1)).collect();
        let mine = join_all(mine.into_iter().map(|item| h.store.accept(item)));
        let theirs = join_all(theirs.into_iter().map(|item| rival.accept(item)));
        let (mine, theirs) = join(mine, theirs).await;
        let mut ids = Vec::new();
        for (one, other) in mine.into_iter().zip(theirs.into_iter().rev()) {
            let (won, lost) = if matches!(one, Ok(Accepted::New { .. })) { (one, other) } else { (other, one) };
            let message = new(won).0;
            assert_eq!(duplicate(lost), (message.id, true));
            ids.push(message.id);
        }
        let steps = |order: Vec<_>, by: fn(&Harness) -> Vec<Step>| -> Vec<Transition> {
            order.into_iter().flat_map(|id| by(h).into_iter().map(move |step| h.transition(id, step))).collect()
        };
        let facts = |h: &Harness| {
            let at = h.tick();
            vec![settle(0, 1, taken("p")), receipt(ReceiptKind::Sent, at), receipt(ReceiptKind::Read, at)]
        };
        let news = |h: &Harness| {
            let at = h.tick();
            let lost = ReceiptKind::Failed(failure(FailureCode::Undeliverable));
            vec![receipt(lost, at), receipt(ReceiptKind::Delivered, at), Step::Cancel]
        };
        let forward = steps(ids.clone(), facts);
        let backward = steps(ids.iter().rev().copied().collect(), news);
        let mine = join_all(forward.into_iter().map(|item| h.store.transition(item)));
        let theirs = join_all(backward.into_iter().map(|item| rival.transition(item)));
        let (mine, theirs) = join(mine, theirs).await;
        for answer in mine.into_iter().chain(theirs) {
            found(answer);
        }
        for id in ids {
            let state = h.lookup(id).await.state;
            assert_eq!((state.status, state.wait, state.detail.attempts.len()), (Status::Read, Wait::Nothing, 1));
            h.events(id).await;
        }
    }
    assert_eq!((h.rows_of("addresses").await, h.rows_of("contacts").await, h.rows_of("messages").await), (60, 60, 240));
    rival.close().await;
}

/// A cached row is invalid once another node has written it.
pub(crate) async fn a_row_that_another_node_wrote_is_read_again(h: &Harness) {
    let rival = h.another().await;
    for accepted_by in [&h.store, &rival] {
        let message = new(accepted_by.accept(h.claimed(&phone(1))).await).0;
        found(rival.transition(h.transition(message.id, settle(0, 1, taken("p")))).await);
        let (applied, state) = h.step(message.id, receipt(ReceiptKind::Delivered, h.tick())).await;
        assert_eq!((applied, state.status), (Applied::Yes, Status::Delivered));
        found(rival.transition(h.transition(message.id, receipt(ReceiptKind::Read, h.tick()))).await);
        let (_, state) = h.step(message.id, receipt(ReceiptKind::Read, h.tick())).await;
        assert_eq!((state.status, state.detail.attempts.len()), (Status::Read, 1));
        assert_eq!(h.lookup(message.id).await.state, state);
        h.events(message.id).await;
    }
    rival.close().await;
}

/// Ends all sessions of the store, like a server restart.
async fn kill(h: &Harness) -> usize {
    let sql = "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'nuncio'";
    h.sql(sql).await.len()
}

async fn under_fire<T>(h: &Harness, work: impl Future<Output = T>) -> T {
    let killer = async {
        for _ in 0..4 {
            kill(h).await;
        }
    };
    join(work, killer).await.0
}

pub(crate) async fn a_lane_survives_the_end_of_its_session(h: &Harness) {
    for round in 0..8 {
        let items: Vec<_> = (0..60).map(|n| with_key(h.claimed(&phone(n)), &format!("{round}-{n}"), 1)).collect();
        let asked = join_all(items.iter().map(|item| h.store.accept(item.clone())));
        let answers = under_fire(h, asked).await;
        let mut settles = Vec::new();
        for (item, answer) in items.iter().zip(answers) {
            // Without a response, the caller retries, and must not get another message.
            let answer = if answer.is_err() { h.store.accept(item.clone()).await } else { answer };
            let id = match answer {
                Ok(Accepted::New { message, .. }) => message.id,
                other => duplicate(other).0,
            };
            assert_eq!(id, item.message.id);
            settles.push((id, h.transition(id, settle(0, 1, taken("p")))));
        }
        let told = under_fire(h, join_all(settles.iter().map(|(_, item)| h.store.transition(item.clone())))).await;
        for ((id, item), answer) in settles.into_iter().zip(told) {
            if answer.is_err() {
                found(h.store.transition(item).await);
            }
            let state = h.lookup(id).await.state;
            assert_eq!((state.status, state.version, state.detail.attempts.len()), (Status::Sent, 3, 1));
            h.events(id).await;
        }
    }
    assert_eq!((h.rows_of("messages").await, h.rows_of("idempotency_keys").await), (480, 480));
}

/// A node that is paused within a transaction finds its session ended by the server's limit for idle transactions.
pub(crate) async fn an_idle_transaction_that_the_server_ended_is_unavailable(h: &Harness) {
    let mut tx = h.store.begin().await.expect("a transaction");
    let id = h.claimed(&phone(1)).message.id;
    tx.insert_spool_chunk(h.world.tenant, id, 0, b"one", START).await.expect("a chunk");
    let idle = "SELECT pid FROM pg_stat_activity WHERE datname = current_database() AND state = 'idle in transaction'";
    let begun = std::time::Instant::now();
    while !h.sql(idle).await.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(20), "the server ends the session");
        h.sql("SELECT pg_sleep(0.05)").await;
    }
    let answer = tx.insert_spool_chunk(h.world.tenant, id, 1, b"two", START).await;
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
    assert_eq!(h.rows_of("spool_chunks").await, 0);
}

/// An operator can set a database to read only, for example before an upgrade.
pub(crate) async fn a_database_that_takes_no_writes_is_not_ready(h: &Harness) {
    h.store.ping().await.expect("it takes writes");
    h.sql("DO $$ BEGIN EXECUTE format('ALTER DATABASE %I SET default_transaction_read_only = on', current_database()); END $$").await;
    kill(h).await;
    let answer = h.store.ping().await;
    assert!(matches!(answer, Err(StoreError::Unavailable(_))), "{answer:?}");
}

/// What happens to a COMMIT.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Cut {
    /// It arrives, but the response is lost.
    Answer,
    /// It arrives, and the connection breaks before it is done.
    Early,
    /// It is lost.
    Request,
    /// Nothing happens to it, but nothing that its transaction asks is answered before.
    Nothing,
    /// From when the proxy is armed, nothing is answered.
    Silence,
}

/// A connection to the server that breaks at a chosen COMMIT.
struct Proxy {
    store: Arc<dyn Store>,
    /// Number of commits until then; 0 for never.
    countdown: Arc<AtomicUsize>,
}

impl Proxy {
    async fn start(h: &Harness, cut: Cut) -> Self {
        let Target::Postgres(url) = &h.target else { unreachable!() };
        let server = url.expose().split('@').nth(1).and_then(|rest| rest.split('/').next()).unwrap().to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let here = listener.local_addr().unwrap().to_string();
        let proxied = Target::Postgres(Redacted::new(url.expose().replace(&server, &here)));
        let countdown = Arc::new(AtomicUsize::new(0));
        let counter = Arc::clone(&countdown);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let upstream = TcpStream::connect(&server).await.unwrap();
                tokio::spawn(pump(client, upstream, cut, Arc::clone(&counter)));
            }
        });
        Self { store: open(&proxied).await.unwrap(), countdown }
    }

    /// Breaks at the commit with this number.
    fn arm(&self, after: usize) {
        self.countdown.store(after + 1, Ordering::SeqCst);
    }

    fn broke(&self) -> bool {
        self.countdown.load(Ordering::SeqCst) == 0
    }
}

async fn pump(mut client: TcpStream, mut server: TcpStream, cut: Cut, countdown: Arc<AtomicUsize>) {
    let (mut asked, mut told) = (vec![0; 1 << 16], vec![0; 1 << 16]);
    let contains = |bytes: &[u8], word: &[u8]| bytes.windows(word.len()).any(|w| w == word);
    let mut held = false;
    loop {
        tokio::select! {
            read = client.read(&mut asked) => {
                let Some(bytes) = read.ok().filter(|n| *n > 0).map(|n| &asked[..n]) else { return };
                let commit = contains(bytes, b"COMMIT\0");
                held = match cut {
                    Cut::Nothing => !commit && (held || contains(bytes, b"BEGIN\0")),
                    Cut::Silence => countdown.load(Ordering::SeqCst) > 0,
                    _ => false,
                };
                if held && cut == Cut::Silence {
                    continue;
                }
                let last = commit && countdown.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)) == Ok(1);
                if last && cut == Cut::Request {
                    return;
                }
                server.write_all(bytes).await.unwrap();
                if last && cut == Cut::Early {
                    return;
                }
                if last {
                    // The response shows that the commit succeeded; it is not forwarded.
                    server.readable().await.unwrap();
                    return;
                }
            }
            read = server.read(&mut told), if !held => {
                let Some(bytes) = read.ok().filter(|n| *n > 0).map(|n| &told[..n]) else { return };
                if client.write_all(bytes).await.is_err() {
                    return;
                }
            }
        }
    }
}

pub(crate) async fn a_commit_without_an_answer_is_read_back(h: &Harness) {
    let entry = Suppression { id: h.id(), recipient: phone(9), sender: None, reason: SuppressionReason::Manual, source: String::new() };
    in_tx!(h, |tx| tx.insert_suppression(h.world.tenant, &entry, START).await.unwrap());
    let original = h.accept(with_key(h.item(&phone(1)), "used", 1)).await;
    for cut in [Cut::Answer, Cut::Request] {
        // Sent whole, in one round trip.
        let proxy = Proxy::start(h, cut).await;
        proxy.arm(0);
        let (message, _) = new(proxy.store.accept(with_key(h.claimed(&phone(40)), &format!("{cut:?}"), 1)).await);
        assert!(proxy.broke(), "the commit was to be lost");
        assert_eq!(h.lookup(message.id).await, message);
        h.events(message.id).await;
        proxy.store.close().await;
    }
    // The item that goes ahead commits twice: what is sent whole fails.
    let rounds = [Cut::Answer, Cut::Request].into_iter().flat_map(|cut| [(cut, 0), (cut, 1), (cut, 2)]);
    for (round, (cut, commit)) in rounds.enumerate() {
        let proxy = Proxy::start(h, cut).await;
        let before = h.rows_of("messages").await;
        let items = BTreeMap::from([
            ("plain", h.claimed(&phone(1))),
            ("repeated", with_key(h.item(&phone(1)), "used", 1)),
            ("stale", Accept { epoch: -1, ..h.item(&phone(1)) }),
            ("suppressed", h.item(&phone(9))),
            ("with a key", with_key(h.item(&phone(20 + round as u32)), &format!("{cut:?} {commit}"), 1)),
        ]);
        proxy.arm(commit);
        let answers = h.accept_at_once_by(&*proxy.store, items.values().cloned().collect()).await;
        assert!(proxy.broke(), "the commit was to be lost");
        for ((name, item), answer) in items.into_iter().zip(answers) {
            match name {
                "repeated" => assert_eq!(duplicate(answer), (original.id, true)),
                "stale" => assert!(matches!(answer, Ok(Accepted::Stale)), "{answer:?}"),
                _ => {
                    let (message, contact) = new(answer);
                    assert_eq!((message.id, message.state.status == Status::Failed), (item.message.id, name == "suppressed"));
                    assert_eq!(h.lookup(message.id).await, message, "{name}");
                    let known = h.read().await.find_address(h.world.tenant, &item.recipient).await.unwrap();
                    assert_eq!(known, Some((message.address, contact)));
                    h.events(message.id).await;
                }
            }
        }
        assert_eq!(h.rows_of("messages").await - before, 3);
        steps(h, &proxy).await;
        proxy.store.close().await;
    }
}

/// A standby or a slow disk can hold a commit up. Nothing tells that it was written until it is, so its end is waited for.
pub(crate) async fn a_commit_that_goes_on_without_its_connection_is_waited_for(h: &Harness) {
    h.sql("CREATE FUNCTION wait() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN PERFORM pg_sleep(1); RETURN NULL; END'").await;
    for table in ["messages", "states"] {
        let trigger = format!("CREATE CONSTRAINT TRIGGER wait AFTER INSERT OR UPDATE ON {table} DEFERRABLE INITIALLY DEFERRED");
        h.sql(&format!("{trigger} FOR EACH ROW EXECUTE FUNCTION wait()")).await;
    }
    let proxy = Proxy::start(h, Cut::Early).await;
    proxy.arm(0);
    let (message, _) = new(proxy.store.accept(with_key(h.item(&phone(1)), "mine", 1)).await);
    assert!(proxy.broke(), "the commit was to go on alone");
    proxy.arm(0);
    let (applied, state) = found(proxy.store.transition(h.transition(message.id, start(NODE, 0))).await);
    assert!(proxy.broke(), "the commit was to go on alone");
    assert_eq!((applied, state.wait), (Applied::Yes, Wait::Owned { node: NODE }));
    proxy.store.close().await;
}

pub(crate) async fn new_messages_take_one_round_trip(h: &Harness) {
    let proxy = Proxy::start(h, Cut::Nothing).await;
    let items = [h.claimed(&phone(1)), with_key(h.item(&phone(2)), "first", 1), h.item(&phone(2)), h.item(&phone(1))];
    for round in 0..2 {
        let items =
            items.iter().map(|item| Accept { idempotency: item.idempotency.clone().filter(|_| round == 0), ..h.item(&item.recipient) });
        let items: Vec<_> = items.collect();
        let answers = join_all(items.iter().map(|item| proxy.store.accept(item.clone())));
        let answers = tokio::time::timeout(Duration::from_secs(20), answers).await.expect("a transaction that waits for no answer");
        for (answer, item) in answers.into_iter().zip(items) {
            let (message, contact) = new(answer);
            let known = h.read().await.find_address(h.world.tenant, &item.recipient).await.unwrap();
            assert_eq!((message.id, known), (item.message.id, Some((message.address, contact))));
            assert_eq!(h.lookup(message.id).await, message);
            h.events(message.id).await;
        }
    }
    assert_eq!((h.rows_of("addresses").await, h.rows_of("contacts").await, h.rows_of("messages").await), (2, 2, 8));
    proxy.store.close().await;
}

/// A machine that vanished says nothing, not even that the connection is gone.
pub(crate) async fn nothing_waits_longer_than_the_server_may_take(h: &Harness) {
    let unanswered = Proxy::start(h, Cut::Nothing).await; // from BEGIN on
    let silent = Proxy::start(h, Cut::Silence).await;
    let (mut reader, mut writing) = (silent.store.read().await.unwrap(), silent.store.begin().await.unwrap());
    let ending = silent.store.begin().await.unwrap();
    silent.arm(0);
    let tenant = h.world.tenant;
    let waits = async {
        tokio::join!(
            async { unanswered.store.begin().await.map(drop) },
            async { reader.load_tenant(tenant).await.map(drop) },
            async { writing.limit_balance(tenant, true).await },
            ending.commit(),
            silent.store.ping(),
        )
    };
    let (begun, read, written, ended, pinged) = tokio::time::timeout(Duration::from_secs(60), waits).await.expect("no wait is longer");
    for outcome in [begun, read, written, pinged] {
        assert!(matches!(outcome, Err(StoreError::Unavailable(_) | StoreError::Busy(_))), "{outcome:?}");
    }
    assert!(matches!(ended, Err(StoreError::InDoubt(_))), "{ended:?}");
}

/// A stored start must be reported as won: otherwise its message waits for this node permanently.
async fn steps(h: &Harness, proxy: &Proxy) {
    let waiting = h.accept(h.item(&phone(1))).await;
    let sending = h.sending(1).await;
    let contested = h.accept(h.item(&phone(1))).await;
    let claimed = h.accept(Accept { claim: Some(Claim { node: NODE }), ..h.item(&phone(1)) }).await;
    let items = vec![
        h.transition(sending.id, settle(0, sending.state.fence, taken("p"))),
        h.transition(waiting.id, start(NODE, 0)),
        h.transition(contested.id, start(NODE, 99)),
        h.transition(claimed.id, Step::Recover { node: NODE, retry_in: crate::make::MINUTE }),
        h.transition(h.id(), start(NODE, 0)),
    ];
    // Statements before a batch of steps commit implicitly; a message without a key sends no COMMIT.
    proxy.arm(1);
    let mut answers = h.steps_at_once_by(&*proxy.store, items).await;
    assert!(proxy.broke(), "the commit was to be lost");
    assert!(matches!(answers.remove(4), Ok(Transitioned::Missing)));
    assert_eq!(found(answers.remove(3)).1.fence, 2, "a fact is not told twice");
    assert_eq!(found(answers.remove(2)).0, Applied::Lost);
    let won = started(answers.remove(1));
    assert_eq!((won.state.fence, won.state.detail.attempts.len()), (1, 1));
    assert_eq!(h.lookup(waiting.id).await, won);
    let settled = found(answers.remove(0)).1;
    assert_eq!((settled.status, settled.version), (Status::Sent, 3));
    for id in [waiting.id, sending.id, contested.id, claimed.id] {
        h.events(id).await;
    }
}
