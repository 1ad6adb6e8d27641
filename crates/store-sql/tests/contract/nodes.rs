//! Live nodes, their messages, and opening and closing a store.

use std::time::Duration;

use futures::future::join_all;
use nuncio_domain::MessageId;
use nuncio_domain::lifecycle::Step;
use nuncio_domain::message::NodeId;
use nuncio_store::{Accept, Claim, Node, StoreError};

use crate::harness::{Harness, NODE, START, in_tx};
use crate::make::{MINUTE, new, phone};

pub(crate) async fn a_node_lives_while_its_counter_moves(h: &Harness) {
    let node = NodeId(i64::MIN);
    let later = h.tick();
    let mut tx = h.begin().await;
    tx.insert_node(node, START).await.unwrap();
    assert!(tx.beat(node, later).await.unwrap());
    assert!(!tx.beat(NodeId(404), later).await.unwrap());
    let expected = Node { id: node, beat: 2, dead: false, beat_at: later };
    assert_eq!(tx.list_nodes().await.unwrap()[0], expected);
    assert!(!tx.mark_dead(node, 1).await.unwrap(), "it moved");
    assert!(tx.mark_dead(node, 2).await.unwrap());
    assert!(!tx.mark_dead(node, 2).await.unwrap(), "somebody else was faster");
    assert!(!tx.beat(node, h.tick()).await.unwrap(), "the dead stay dead");
    tx.commit().await.unwrap();
    assert_eq!(h.read().await.list_nodes().await.unwrap()[0], Node { dead: true, ..expected });
}

pub(crate) async fn a_node_that_owns_something_is_not_forgotten(h: &Harness) {
    let node = NodeId(7);
    in_tx!(h, |tx| tx.insert_node(node, START).await.unwrap());
    let message = h.accept(Accept { claim: Some(Claim { node }), ..h.item(&phone(1)) }).await;
    let forget = async || {
        in_tx!(h, |tx| tx.delete_node(node).await.unwrap());
        h.read().await.list_nodes().await.unwrap().iter().all(|n| n.id != node)
    };
    assert!(!forget().await);
    h.sent(2).await;
    assert_eq!(h.read().await.owners().await.unwrap(), [node]);
    h.step(message.id, Step::Recover { node, retry_in: MINUTE }).await;
    assert_eq!(h.read().await.owners().await.unwrap(), []);
    assert!(forget().await);
    assert_eq!(h.read().await.list_nodes().await.unwrap()[0].id, NODE, "and nobody else");
}

pub(crate) async fn the_database_tells_the_time(h: &Harness) {
    let mut tx = h.read().await;
    let (first, second) = (tx.database_time().await.unwrap(), tx.database_time().await.unwrap());
    assert!(first <= second && second.since(first) < Duration::from_secs(60));
    // Milliseconds, not seconds or microseconds.
    assert!((1_500_000_000_000..4_000_000_000_000).contains(&first.millis()), "{first}");
}

pub(crate) async fn chunks_that_no_message_uses_are_swept(h: &Harness) {
    let mut large = h.item(&phone(1));
    large.message.request_mut().html_body = Some("x".repeat(600_000));
    let used = h.accept(large).await;
    let orphan: MessageId = h.id();
    let (early, late) = (h.tick(), h.tick());
    let mut tx = h.begin().await;
    for (index, at) in [(0, early), (1, early), (2, late)] {
        tx.insert_spool_chunk(h.world.tenant, orphan, index, &[0, 255], at).await.unwrap();
    }
    tx.insert_spool_chunk(h.other.tenant, used.id, 0, &[], early).await.unwrap();
    tx.commit().await.unwrap();
    let sweep = async |since, before, limit| in_tx!(h, |tx| tx.purge_orphaned_spool(since, before, limit).await.unwrap());
    assert_eq!(sweep(START, early, 9).await, 0, "only what was written before");
    assert_eq!(sweep(late, late, 9).await, 0, "and since");
    assert_eq!((sweep(early, late, 2).await, sweep(early, late, 9).await, sweep(early, late, 9).await), (2, 1, 0));
    assert_eq!(sweep(late, h.tick(), 9).await, 1);
    assert!(h.lookup(used.id).await == used, "what is used stays");
}

pub(crate) async fn a_closed_store_has_written_what_it_took(h: &Harness) {
    let second = h.another().await;
    second.ping().await.unwrap();
    assert_eq!(second.advice().await.unwrap(), Vec::<String>::new());
    let items: Vec<_> = (0..50).map(|n| h.item(&phone(n))).collect();
    let mut asked: Vec<_> = items.iter().map(|item| second.accept(item.clone())).collect();
    for one in &mut asked {
        let _ = futures::poll!(one.as_mut());
    }
    let (answers, ()) = futures::future::join(join_all(asked), second.close()).await;
    for (answer, item) in answers.into_iter().zip(&items) {
        assert_eq!(h.lookup(new(answer).0.id).await.id, item.message.id);
    }
    let closed = [
        second.accept(h.item(&phone(1))).await.err(),
        second.transition(h.transition(items[0].message.id, Step::Cancel)).await.err(),
        second.begin().await.err(),
        second.read().await.err(),
        second.ping().await.err(),
        second.advice().await.err(),
    ];
    for error in closed {
        assert!(matches!(error, Some(StoreError::Unavailable(_))), "{error:?}");
    }
    second.close().await;
}
