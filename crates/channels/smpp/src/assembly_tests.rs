//! Parts in any order, twice, too late, and mixed up.

use super::*;

fn key(reference: u16, total: u8) -> Key {
    Key { source: Address { text: "346".into(), ..Address::default() }, destination: "123".into(), reference, total }
}

fn piece(text: &str) -> Piece {
    Piece { coding: 0, octets: text.as_bytes().to_vec() }
}

fn put(assembler: &mut Assembler, key: &Key, sequence: u8, text: &str, second: u64) -> Put {
    assembler.put(key, sequence, piece(text), Duration::from_secs(second), || format!("at {second}"))
}

fn complete(put: Put) -> (String, String) {
    match put {
        Put::Complete { id, text } => (id, text),
        other => panic!("{other:?}"),
    }
}

fn waits(put: Put) -> oneshot::Receiver<bool> {
    match put {
        Put::Waits(told) => told,
        other => panic!("{other:?}"),
    }
}

#[test]
fn parts_come_in_any_order_and_are_answered_together() {
    let mut assembler = Assembler::default();
    let (one, other) = (key(7, 3), key(8, 2));
    let mut last = waits(put(&mut assembler, &one, 3, "c", 1));
    waits(put(&mut assembler, &other, 1, "x", 2));
    let mut first = waits(put(&mut assembler, &one, 1, "a", 3));
    assert_eq!(complete(put(&mut assembler, &one, 2, "b", 4)), ("at 1".into(), "abc".into()));
    assembler.recorded(&one, "at 1", true);
    assert_eq!((first.try_recv(), last.try_recv()), (Ok(true), Ok(true)));
    assert!(matches!(put(&mut assembler, &one, 2, "b", 5), Put::Again), "an answer was lost");
    assert_eq!(complete(put(&mut assembler, &other, 2, "y", 6)), ("at 2".into(), "xy".into()));
}

#[test]
fn what_could_not_be_written_is_written_when_a_part_comes_again() {
    let mut assembler = Assembler::default();
    let key = key(7, 2);
    let mut first = waits(put(&mut assembler, &key, 1, "a", 1));
    let (id, _) = complete(put(&mut assembler, &key, 2, "b", 2));
    assembler.recorded(&key, &id, false);
    assert_eq!(first.try_recv(), Ok(false));
    assert_eq!(complete(put(&mut assembler, &key, 1, "a", 3)), (id, "ab".into()), "under the same id");
}

#[test]
fn a_reference_that_is_used_again_is_another_message() {
    let mut assembler = Assembler::default();
    let key = key(7, 2);
    waits(put(&mut assembler, &key, 1, "a", 1));
    waits(put(&mut assembler, &key, 1, "c", 2));
    assert_eq!(complete(put(&mut assembler, &key, 2, "d", 3)), ("at 2".into(), "cd".into()));
    assembler.recorded(&key, "at 2", true);
    waits(put(&mut assembler, &key, 2, "f", 4));
    let left = assembler.expire(Duration::from_secs(4), Duration::from_secs(60));
    assert_eq!(
        left.iter().map(|(_, a)| (a.id(), a.text())).collect::<Vec<_>>(),
        [("at 1", "a[…]".into())],
        "nothing that was answered is lost"
    );
}

#[test]
fn what_is_late_is_given_up() {
    let mut assembler = Assembler::default();
    let (incomplete, done) = (key(7, 4), key(8, 2));
    waits(put(&mut assembler, &incomplete, 2, "b", 10));
    waits(put(&mut assembler, &done, 1, "x", 10));
    let (id, _) = complete(put(&mut assembler, &done, 2, "y", 10));
    assembler.recorded(&done, &id, true);
    assert!(assembler.expire(Duration::from_secs(69), Duration::from_secs(60)).is_empty());
    let mut left = assembler.expire(Duration::from_secs(70), Duration::from_secs(60));
    assert_eq!(left.len(), 1);
    assert!(assembler.open.is_empty(), "what was written is forgotten with its time");
    let (key, assembly) = left.remove(0);
    assert_eq!(assembly.text(), "[…]b[…]");
    assembler.put_back(key, assembly);
    assert_eq!(assembler.expire(Duration::from_secs(70), Duration::from_secs(60)).len(), 1, "it is kept until it is written");
}

#[test]
fn a_character_that_was_cut_in_two_is_whole_again() {
    let mut assembler = Assembler::default();
    let key = key(7, 3);
    let half = |octets: &[u8], coding| Piece { coding, octets: octets.to_vec() };
    waits(assembler.put(&key, 1, half(&[0xD8, 0x3D], 8), Duration::ZERO, String::new));
    waits(assembler.put(&key, 2, half(&[0xDE, 0x00], 8), Duration::ZERO, String::new));
    let (_, text) = complete(assembler.put(&key, 3, half(b"!", 0), Duration::ZERO, String::new));
    assert_eq!(text, "\u{1F600}!");
}

#[test]
fn memory_is_bounded() {
    let mut assembler = Assembler::default();
    for reference in 0..MOST as u16 {
        waits(put(&mut assembler, &key(reference, 2), 1, "a", 0));
    }
    assert!(matches!(put(&mut assembler, &key(60_000, 2), 1, "a", 0), Put::Full));
    complete(put(&mut assembler, &key(1, 2), 2, "b", 0));
}
