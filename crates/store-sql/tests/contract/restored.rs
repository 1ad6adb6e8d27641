//! A database that was restored from a dump.

use nuncio_domain::id::Id as _;
use nuncio_store::Position;
use nuncio_store_sql::open;
use uuid::Uuid;

use crate::harness::Harness;
use crate::make::phone;

pub(crate) async fn a_log_from_another_cluster_is_read_on(h: &Harness) {
    let tenant = h.world.tenant;
    let mut ids: Vec<Uuid> = Vec::new();
    for n in 0..4 {
        ids.push(h.accept(h.item(&phone(n))).await.id.uuid());
    }
    h.quiet().await;
    let log = h.read().await.read_log(tenant, Position::default(), 9).await.unwrap();
    let mut tx = h.begin().await;
    tx.open_log(tenant, log[1].position).await.unwrap();
    tx.open_log(h.other.tenant, log[3].position).await.unwrap();
    tx.commit().await.unwrap();
    // There the transactions had come much further. The first row was written when they had not.
    h.sql("UPDATE events SET position = position + 1000000000000 WHERE entry > (SELECT MIN(entry) FROM events)").await;
    h.sql("UPDATE webhook_cursors SET position = position + 1000000000000").await;

    let restored = open(&h.target).await.unwrap();
    ids.push(h.accept(h.item(&phone(9))).await.id.uuid());
    h.quiet().await;
    let mut tx = restored.read().await.unwrap();
    let readers = tx.log_readers().await.unwrap();
    let of = |tenant| readers.iter().find(|reader| reader.tenant == tenant).unwrap().read;
    let told = async |after| {
        let rows = restored.read().await.unwrap().read_log(tenant, after, 9).await.unwrap();
        rows.into_iter().map(|row| row.resource).collect::<Vec<_>>()
    };
    assert_eq!(told(Position::default()).await, ids, "all of it, in order");
    assert_eq!(told(of(tenant)).await, ids[2..], "and on from where it was read");
    assert_eq!(of(h.other.tenant), Position::default());
    drop(tx);
    restored.close().await;
    // A second start finds nothing to do.
    let log = h.read().await.read_log(tenant, Position::default(), 9).await.unwrap();
    open(&h.target).await.unwrap().close().await;
    assert_eq!(h.read().await.read_log(tenant, Position::default(), 9).await.unwrap(), log);
}
