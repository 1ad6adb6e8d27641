use axum::body::Bytes;
use futures::{StreamExt as _, stream};

use super::*;
use crate::budget::{Budget, Owner};

const MOMENT: Duration = Duration::from_millis(20);

fn lease(budget: &Budget) -> Lease {
    budget.lease(Owner::Address([127, 0, 0, 1].into()))
}

fn body(pieces: &[&'static str]) -> Body {
    let pieces: Vec<_> = pieces.iter().map(|text| Ok::<_, std::convert::Infallible>(Bytes::from_static(text.as_bytes()))).collect();
    Body::from_stream(stream::iter(pieces))
}

/// A body that stalls after its beginning.
fn stuck(begins: &'static str) -> Body {
    let begins = stream::iter([Ok::<_, std::convert::Infallible>(Bytes::from_static(begins.as_bytes()))]);
    Body::from_stream(begins.chain(stream::pending()))
}

#[tokio::test]
async fn a_body_that_comes_too_slowly_is_not_waited_for() {
    let budget = Budget::new(1_000);
    let pace = Pace { grace: MOMENT, bytes_per_second: 1_000 };
    let (intake, rest) = Intake::new(stuck("0123456789"), lease(&budget), pace);
    let began = Instant::now();
    let error = Body::new(intake).collect().await.expect_err("it never ends");
    assert_eq!(unread(error).code(), ErrorCode::RequestTimeout);
    assert!(began.elapsed() >= MOMENT + Duration::from_millis(10), "ten bytes have ten milliseconds more");
    assert!(rest.lock().is_some(), "what is left stands before the next request");

    let (intake, _) = Intake::new(stuck("0123456789"), lease(&budget), Pace { bytes_per_second: 0, ..pace });
    assert!(tokio::time::timeout(4 * MOMENT, Body::new(intake).collect()).await.is_err(), "0 is no limit");
}

#[tokio::test]
async fn what_is_left_of_a_body_is_read_if_it_is_little() {
    let budget = Budget::new(1_000);
    let left = async |inner: Body, read: usize| {
        let (intake, rest) = Intake::new(inner, lease(&budget), Pace::default());
        let mut body = Body::new(intake);
        for _ in 0..read {
            body.frame().await.expect("a piece").expect("read");
        }
        drop(body);
        rest.lock().take()
    };
    assert!(left(body(&["a", "b"]), 0).await.is_some());
    let rest = left(body(&["a", "b"]), 1).await.expect("one piece");
    assert!(drain(rest).await);
    assert!(!drain(stuck("a")).await, "it does not come");
    assert!(!drain(Body::from(vec![0; DRAINED_BYTES as usize + 1])).await, "it says that it is much");
    let much: Vec<_> = (0..=DRAINED_BYTES / 1_024).map(|_| Ok::<_, std::convert::Infallible>(Bytes::from(vec![0; 1_024]))).collect();
    assert!(!drain(Body::from_stream(stream::iter(much))).await, "it is much");
    let (intake, rest) = Intake::new(body(&["a"]), lease(&budget), Pace::default());
    Body::new(intake).collect().await.expect("read");
    assert!(rest.lock().is_none(), "read to its end");
}

#[tokio::test]
async fn an_answer_holds_its_lease_until_its_last_piece_is_taken() {
    let budget = Budget::new(900);
    let lease = lease(&budget);
    lease.settle(800, false).expect("room");
    let full = || budget.lease(Owner::Address([127, 0, 0, 2].into())).grow(800).is_err();
    let mut body = Body::new(Answer::new(Body::from("0123456789"), 4, lease));
    assert_eq!(body.size_hint().exact(), Some(10));
    let mut all = Vec::new();
    while let Some(frame) = body.frame().await {
        let data = frame.expect("a piece").into_data().expect("data");
        assert!(data.len() <= 4 && full());
        all.extend_from_slice(&data);
        assert_eq!(body.size_hint().exact(), Some(10 - all.len() as u64));
    }
    assert!(all == b"0123456789" && body.is_end_stream() && full());
    drop(body);
    assert!(!full());
}
