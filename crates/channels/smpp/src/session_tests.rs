//! State of requests when a session ends.

use std::sync::atomic::{AtomicBool, Ordering};

use tokio::io::{DuplexStream, duplex};

use super::*;
use crate::wire::Garbage;

const LIMIT: Duration = Duration::from_secs(30);

fn session() -> Arc<Session> {
    Arc::new(Session::new(10, LIMIT))
}

/// Runs `session` on a line; the other end of it holds `size` octets.
fn run(session: &Arc<Session>, size: usize) -> (DuplexStream, tokio::task::JoinHandle<String>) {
    let (near, far) = duplex(size);
    let session = Arc::clone(session);
    (far, tokio::spawn(async move { session.run(Box::new(near), None, Duration::from_secs(60)).await }))
}

async fn hear(far: &mut DuplexStream) -> Header {
    let mut octets = [0; 16];
    far.read_exact(&mut octets).await.unwrap();
    match wire::frame(&octets) {
        Ok(Some(frame)) => frame.header,
        Ok(None) | Err(Garbage) => panic!("{octets:?}"),
    }
}

async fn say(far: &mut DuplexStream, header: Header) {
    let mut out = Vec::new();
    wire::bare(&mut out, header);
    far.write_all(&out).await.unwrap();
}

#[tokio::test]
async fn what_was_not_taken_by_the_writer_was_not_sent() {
    let session = session();
    let asking = tokio::spawn({
        let session = Arc::clone(&session);
        async move { session.enquire().await }
    });
    tokio::task::yield_now().await;
    session.end("gone");
    assert_eq!(asking.await.unwrap(), Err(RequestError::NotSent("gone".into())));
    assert_eq!(session.enquire().await, Err(RequestError::NotSent("gone".into())));
    assert!(session.window.acquire().await.is_err());
}

#[tokio::test]
async fn what_was_written_is_lost_with_its_answer() {
    let session = session();
    let (mut far, running) = run(&session, 4096);
    let asking = tokio::spawn({
        let session = Arc::clone(&session);
        async move { session.enquire().await }
    });
    assert_eq!(hear(&mut far).await.id, id::ENQUIRE_LINK);
    drop(far);
    assert_eq!(asking.await.unwrap(), Err(RequestError::NoResponse("the SMSC closed the connection".into())));
    assert_eq!(running.await.unwrap(), "the SMSC closed the connection");
}

#[tokio::test(start_paused = true)]
async fn silence_is_a_lost_answer_and_forgotten() {
    let session = session();
    let (mut far, _running) = run(&session, 4096);
    assert_eq!(session.enquire().await, Err(RequestError::NoResponse("the SMSC did not respond within 30 s".into())));
    assert!(session.outbox.lock().waiting.is_empty());
    // A late response is ignored.
    let late = hear(&mut far).await;
    say(&mut far, Header { id: late.id | id::ANSWER, ..late }).await;
    let asking = session.enquire();
    let answering = async {
        let asked = hear(&mut far).await;
        say(&mut far, Header { id: asked.id | id::ANSWER, ..asked }).await;
    };
    assert_eq!(tokio::join!(asking, answering).0, Ok(Reply { id: id::ENQUIRE_LINK | id::ANSWER, status: 0, message_id: None }));
}

#[tokio::test(start_paused = true)]
async fn a_late_response_can_be_waited_for_while_the_session_lasts() {
    let session = session();
    let (mut far, _running) = run(&session, 4096);
    let begin = || session.begin(|out, sequence| wire::bare(out, Header { id: id::SUBMIT_SM, status: 0, sequence })).unwrap();
    let (mut first, mut second, mut third) = (begin(), begin(), begin());
    for request in [&mut first, &mut second, &mut third] {
        assert!(matches!(request.response().await, Err(RequestError::NoResponse(_))));
        assert!(request.is_open());
    }
    let asked = hear(&mut far).await;
    say(&mut far, Header { id: asked.id | id::ANSWER, ..asked }).await;
    assert_eq!(first.late_response().await, Some(Reply { id: id::SUBMIT_SM | id::ANSWER, status: 0, message_id: None }));
    assert_eq!(tokio::time::timeout(LATEST * 2, second.late_response()).await, Ok(None), "it gives up");
    session.end("gone");
    assert_eq!(third.late_response().await, None);
    assert!(session.outbox.lock().waiting.is_empty());
}

#[tokio::test(start_paused = true)]
async fn a_line_that_takes_nothing_is_given_up_and_the_rest_was_not_sent() {
    let session = session();
    let (_far, running) = run(&session, 8);
    let first = session.enquire();
    let second = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        session.enquire().await
    };
    let (first, second) = tokio::join!(first, second);
    assert!(matches!(first, Err(RequestError::NoResponse(_))), "half of it was written: {first:?}");
    assert!(matches!(second, Err(RequestError::NotSent(_))), "{second:?}");
    assert_eq!(running.await.unwrap(), "the SMSC no longer reads");
}

#[tokio::test(start_paused = true)]
async fn a_silent_line_is_tested_and_then_given_up() {
    let session = session();
    let (mut far, running) = run(&session, 4096);
    let asked = hear(&mut far).await;
    assert_eq!(asked.id, id::ENQUIRE_LINK);
    say(&mut far, Header { id: asked.id | id::ANSWER, ..asked }).await;
    assert_eq!(hear(&mut far).await.id, id::ENQUIRE_LINK, "after a minute of silence again");
    assert_eq!(running.await.unwrap(), "the SMSC was silent for 30 s, also to enquire_link");
}

/// An unsolicited deliver_sm_resp with a body of 100 octets.
fn long_pdu() -> Vec<u8> {
    let mut pdu = vec![0, 0, 0, 116, 0x80, 0, 0, 5, 0, 0, 0, 0, 0, 0, 0, 9];
    pdu.resize(116, 0);
    pdu
}

#[tokio::test(start_paused = true)]
async fn octets_of_a_pdu_that_never_ends_are_no_sign_of_life() {
    let session = session();
    let (mut far, running) = run(&session, 4096);
    let began = Instant::now();
    // Whole PDUs are one; the last begins after a minute, when the line is tested.
    say(&mut far, Header { id: id::OUTBIND, status: 0, sequence: 1 }).await;
    assert_eq!(hear(&mut far).await.id, id::ENQUIRE_LINK);
    assert_eq!(began.elapsed(), Duration::from_secs(60));
    let mut seconds = 0;
    for octet in long_pdu() {
        if far.write_all(&[octet]).await.is_err() {
            break;
        }
        tokio::time::sleep(Duration::from_secs(1)).await;
        seconds += 1;
    }
    assert_eq!(running.await.unwrap(), "the SMSC did not complete a PDU within 30 s");
    assert!((30..=32).contains(&seconds), "{seconds}");
}

#[tokio::test(start_paused = true)]
async fn a_pdu_may_arrive_slowly() {
    let session = session();
    let (mut far, running) = run(&session, 4096);
    let pdu = long_pdu();
    // Each read ends one PDU and begins the next.
    for start in [0, 50, 50, 50] {
        far.write_all(&pdu[start..]).await.unwrap();
        far.write_all(&pdu[..50]).await.unwrap();
        tokio::time::sleep(Duration::from_secs(29)).await;
    }
    assert!(!running.is_finished());
    far.write_all(&pdu[50..]).await.unwrap();
    assert_eq!(hear(&mut far).await.id, id::ENQUIRE_LINK, "a minute after the last");
    assert!(!running.is_finished());
}

#[tokio::test]
async fn what_is_not_for_us_is_answered_and_breaks_nothing() {
    let session = session();
    let (mut far, running) = run(&session, 4096);
    for (asked, answered, status) in [
        (id::ENQUIRE_LINK, id::ENQUIRE_LINK | id::ANSWER, 0),
        // query_sm
        (0x03, id::GENERIC_NACK, status::INVALID_COMMAND),
        (id::UNBIND, id::UNBIND | id::ANSWER, 0),
    ] {
        // Neither of these gets a response.
        say(&mut far, Header { id: id::OUTBIND, status: 0, sequence: 1 }).await;
        say(&mut far, Header { id: id::SUBMIT_SM | id::ANSWER, status: 0, sequence: 4_000 }).await;
        say(&mut far, Header { id: asked, status: 0, sequence: 9 }).await;
        assert_eq!(hear(&mut far).await, Header { id: answered, status, sequence: 9 });
    }
    assert_eq!(running.await.unwrap(), "the SMSC ended the session (unbind)");
}

#[tokio::test(start_paused = true)]
async fn an_smsc_that_unbinds_and_never_responds_is_left() {
    for (limit, waits) in [(LIMIT, UNBINDING), (Duration::from_secs(2), Duration::from_secs(2))] {
        let session = Arc::new(Session::new(10, limit));
        let (mut far, running) = run(&session, 4096);
        let asking = tokio::spawn({
            let session = Arc::clone(&session);
            async move { session.enquire().await }
        });
        assert_eq!(hear(&mut far).await.id, id::ENQUIRE_LINK);
        let began = Instant::now();
        say(&mut far, Header { id: id::UNBIND, status: 0, sequence: 9 }).await;
        say(&mut far, Header { id: id::UNBIND, status: 0, sequence: 10 }).await;
        assert_eq!(hear(&mut far).await, Header { id: id::UNBIND | id::ANSWER, status: 0, sequence: 9 });
        assert_eq!(began.elapsed(), waits);
        assert_eq!(running.await.unwrap(), UNBOUND);
        assert!(matches!(asking.await.unwrap(), Err(RequestError::NoResponse(_))));
    }
}

#[tokio::test]
async fn deliveries_that_nobody_takes_are_put_off() {
    let session = session();
    let (mut far, _running) = run(&session, 4096);
    say(&mut far, Header { id: id::DELIVER_SM, status: 0, sequence: 9 }).await;
    let mut answer = [0; 17];
    far.read_exact(&mut answer).await.unwrap();
    let frame = wire::frame(&answer).unwrap().unwrap();
    assert_eq!(frame.header, Header { id: id::DELIVER_SM | id::ANSWER, status: status::NOT_NOW, sequence: 9 });
}

#[tokio::test]
async fn sequence_numbers_begin_again_at_one() {
    let session = session();
    session.outbox.lock().next = SEQUENCES - 1;
    let (mut far, _running) = run(&session, 4096);
    let mut seen = Vec::new();
    for _ in 0..2 {
        let answering = async {
            let asked = hear(&mut far).await;
            seen.push(asked.sequence);
            say(&mut far, Header { id: asked.id | id::ANSWER, ..asked }).await;
        };
        assert!(tokio::join!(session.enquire(), answering).0.is_ok());
    }
    assert_eq!(seen, [0x7FFF_FFFF, 1]);
}

fn answer(session: &Session) -> Option<QueuedResponse> {
    session.respond(|out| wire::bare(out, Header { id: id::DELIVER_SM | id::ANSWER, status: 0, sequence: 1 }))
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_written_well_before_the_end_is_with_the_smsc() {
    let session = session();
    let (mut far, running) = run(&session, 4096);
    let early = answer(&session);
    hear(&mut far).await;
    tokio::time::advance(Duration::from_secs(5)).await;
    let late = answer(&session);
    hear(&mut far).await;
    assert!(!session.may_have_lost(None), "the session is there");
    drop(far);
    running.await.unwrap();
    assert!(!session.may_have_lost(early.as_ref()));
    assert!(session.may_have_lost(late.as_ref()), "it may have been on its way");
    assert!(answer(&session).is_none());
    assert!(session.may_have_lost(None), "it was not even handed over");
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_was_not_written_is_not_with_the_smsc() {
    let session = session();
    let (_far, running) = run(&session, 8);
    let stuck = answer(&session);
    assert_eq!(running.await.unwrap(), "the SMSC no longer reads");
    assert!(session.may_have_lost(stuck.as_ref()), "half of it was written, {LIMIT:?} ago");
}

#[test]
fn what_is_said_not_to_be_sent_never_is() {
    for round in 0..1_000 {
        let session = session();
        session.test();
        let ready = AtomicBool::new(false);
        let (fault, written) = std::thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut chunk = Vec::new();
                ready.store(true, Ordering::SeqCst);
                // Interleaves the steps of both.
                (0..round % 50).for_each(|_| std::hint::spin_loop());
                session.outbox.lock().take(&mut chunk);
                !chunk.is_empty()
            });
            while !ready.load(Ordering::SeqCst) {
                std::hint::spin_loop();
            }
            (session.no_response(0), writer.join().unwrap())
        });
        assert_eq!(matches!(fault, RequestError::NoResponse(_)), written, "in round {round}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_smsc_that_asks_on_and_on_and_reads_nothing_is_left() {
    let session = session();
    let (mut far, running) = run(&session, 4096);
    let began = Instant::now();
    let mut asked = Vec::new();
    for sequence in 1..=1_024 {
        wire::bare(&mut asked, Header { id: id::ENQUIRE_LINK, status: 0, sequence });
    }
    let mut octets = 0;
    while far.write_all(&asked).await.is_ok() {
        octets += asked.len();
        assert!(octets < 2 * UNSENT, "no end of it");
    }
    assert_eq!(running.await.unwrap(), "the SMSC does not read responses");
    assert!(octets >= UNSENT, "{octets}");
    assert!(began.elapsed() <= FAREWELL, "not only when the line is stuck for {LIMIT:?}");
    assert!(session.outbox.lock().buffer.is_empty());
}
