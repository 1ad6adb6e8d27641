//! Inbound messages of which some parts have arrived.

use std::time::Duration;

use nuncio_domain::Channel;
use nuncio_domain::sms::Alphabet;
use nuncio_store::{Piece, Reassembly, ReassemblyState};

use crate::harness::{Harness, in_tx};

fn begun(h: &Harness, reference: &str, seconds: u64) -> Reassembly {
    let since = h.tick();
    let first = Some(Piece { alphabet: Alphabet::Ucs2, octets: vec![0, 0x41, 0, 0xff] });
    Reassembly {
        tenant: h.world.tenant,
        connection: h.world.connection,
        key: "34600111222 123 7 2".to_owned(),
        reference: reference.to_owned(),
        due_at: since.plus(Duration::from_secs(seconds)),
        parts: ReassemblyState {
            channel: Channel::Sms,
            from: "+34600111222".to_owned(),
            to: Some("12345".to_owned()),
            since,
            pieces: vec![first, None],
            done: false,
            sealed: false,
        },
    }
}

pub(crate) async fn a_message_in_parts_is_kept_under_its_key(h: &Harness) {
    let (first, second) = (begun(h, "a", 10), begun(h, "b", 20));
    let mut tx = h.begin().await;
    assert_eq!(tx.lock_reassembly(&first).await.unwrap(), first);
    tx.commit().await.unwrap();
    let mut tx = h.begin().await;
    assert_eq!(tx.lock_reassembly(&second).await.unwrap(), first, "the key is taken");
    let elsewhere = Reassembly { tenant: h.other.tenant, ..second.clone() };
    assert_eq!(tx.lock_reassembly(&elsewhere).await.unwrap(), elsewhere, "another world's key is another");
    tx.put_reassembly(&second).await.unwrap();
    tx.commit().await.unwrap();

    let due = async |at| h.read().await.due_reassemblies(at, 10).await.unwrap();
    assert_eq!(due(first.due_at).await, [], "the other took its place");
    let mut tx = h.begin().await;
    tx.delete_reassembly(&first).await.unwrap();
    tx.delete_reassembly(&elsewhere).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(due(second.due_at).await, std::slice::from_ref(&second));
    assert_eq!(h.read().await.due_reassemblies(second.due_at, 0).await.unwrap(), []);
    in_tx!(h, |tx| tx.delete_reassembly(&second).await.unwrap());
    assert_eq!(due(second.due_at).await, []);
}

pub(crate) async fn of_two_who_bring_parts_one_waits_for_the_other(h: &Harness) {
    let both = async |index: usize| {
        let mut tx = h.begin().await;
        let mut known = tx
            .lock_reassembly(&Reassembly {
                parts: ReassemblyState { pieces: vec![None; 2], ..begun(h, "a", 10).parts },
                ..begun(h, "a", 10)
            })
            .await
            .unwrap();
        known.parts.pieces[index] = Some(Piece { alphabet: Alphabet::Gsm7, octets: vec![1] });
        tokio::task::yield_now().await;
        tx.put_reassembly(&known).await.unwrap();
        tx.commit().await.unwrap();
        known.parts.pieces.iter().all(Option::is_some)
    };
    let (one, other) = tokio::join!(both(0), both(1));
    assert!(one ^ other, "the one that comes second sees both");
}
