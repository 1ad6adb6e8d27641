//! What goes over the wire, where the tables of the mapping do not reach.

use std::sync::Arc;

use nuncio_channel::contract::request;
use nuncio_channel::{Outcome, ResolvedAttachment, SendRequest};
use nuncio_domain::MessageType;
use nuncio_domain::message::{Card, Content, FailureCode};
use nuncio_net::GuardPolicy;
use serde_json::json;

use crate::support::{Act, BotAnswer as _, Peer, Recorder, account, factory, message, open, services, short};

#[tokio::test]
async fn an_attachment_goes_out_as_a_form() {
    let peer = Peer::start(|_| Act::sent(9)).await;
    let adapter = open(&peer.base(), json!({}), &Arc::default());
    let file =
        ResolvedAttachment { filename: "ñ.png".into(), content_type: "image/png".into(), content_id: None, bytes: vec![0, 255, 13, 10] };
    let image = message("-1005", MessageType::Image, Content::default());
    let outcome = adapter.send(&SendRequest { attachments: &[file], ..request(&image) }).await;
    assert_eq!(short(&outcome), ("accepted", None, vec!["-1005:9"]));
    let seen = peer.seen().remove(0);
    assert!(seen.header("content-type").is_some_and(|kind| kind.starts_with("multipart/form-data; boundary=")), "{seen:?}");
    let has = |part: &[u8]| seen.body.windows(part.len()).any(|window| window == part);
    assert!(has("name=\"photo\"; filename=\"ñ.png\"\r\nContent-Type: image/png\r\n\r\n".as_bytes()) && has(&[0, 255, 13, 10]), "{seen:?}");
}

#[tokio::test]
async fn a_message_of_several_parts_stops_at_the_first_that_fails() {
    let mut calls = 0;
    let peer = Peer::start(move |_| {
        calls += 1;
        if calls == 3 { Act::error(429, "Too Many Requests: retry after 9", json!({"retry_after": 9})) } else { Act::sent(calls) }
    })
    .await;
    let adapter = open(&peer.base(), json!({}), &Arc::default());
    let cards = vec![Card { name: "Ada".into(), phones: ["+1", "+2", "+3", "+4"].map(str::to_owned).to_vec() }];
    let contact = message("5", MessageType::Contact, Content { contacts: Some(cards), ..Content::default() });
    let outcome = adapter.send(&request(&contact)).await;
    assert_eq!(short(&outcome), ("unknown", Some(FailureCode::UnknownOutcome), vec!["5:1", "5:2"]));
    assert_eq!(peer.methods(), ["sendContact"; 3]);
}

#[tokio::test]
async fn a_delay_of_zero_is_none() {
    let peer = Peer::start(|_| Act::error(429, "Too Many Requests", json!({"retry_after": 0}))).await;
    let outcome = open(&peer.base(), json!({}), &Arc::default()).send(&request(&message("5", MessageType::Text, Content::default()))).await;
    assert!(matches!(outcome, Outcome::Deferred { retry_after: None, .. }), "{outcome:?}");
}

#[tokio::test]
async fn a_reaction_has_no_reference() {
    let peer = Peer::start(|_| Act::result(json!(true))).await;
    let adapter = open(&peer.base(), json!({}), &Arc::default());
    let content = Content { emoji: Some("👍".into()), react_to_message_id: Some("5:42".into()), ..Content::default() };
    let outcome = adapter.send(&request(&message("5", MessageType::Reaction, content))).await;
    assert_eq!(short(&outcome), ("accepted", None, vec![]));
    assert_eq!(peer.methods(), ["setMessageReaction"]);
}

#[tokio::test]
async fn an_answer_without_an_id_is_unknown() {
    let peer = Peer::start(|_| Act::result(json!({"chat": {"id": 5}}))).await;
    let outcome = open(&peer.base(), json!({}), &Arc::default()).send(&request(&message("5", MessageType::Text, Content::default()))).await;
    assert_eq!(short(&outcome), ("unknown", Some(FailureCode::UnknownOutcome), vec![]));
}

/// A document by its URL at a server that answers so; the outcome of it, and the calls of the Bot API.
async fn document(files: &Peer, policy: GuardPolicy) -> (&'static str, Option<FailureCode>, Vec<String>, Vec<u8>) {
    let api = Peer::start(|_| Act::sent(1)).await;
    let settings = account(json!({"base_url": api.base()}));
    let adapter = factory(policy).open(&settings, &services(Arc::new(Recorder::default()), "https://nuncio.example")).unwrap();
    let media_url = Some(format!("{}/d/bill.docx", files.base()));
    let outcome = adapter.send(&request(&message("5", MessageType::Document, Content { media_url, ..Content::default() }))).await;
    let (kind, code, _) = short(&outcome);
    (kind, code, api.methods(), api.seen().first().map(|seen| seen.body.clone()).unwrap_or_default())
}

#[tokio::test]
async fn a_document_is_fetched_where_callers_may_go_and_uploaded() {
    let open_loopback = GuardPolicy { allow_http: true, allow_loopback: true, ..GuardPolicy::default() };
    let files = Peer::start(|_| Act::text(200, "the bill")).await;
    let (kind, _, methods, body) = document(&files, open_loopback.clone()).await;
    assert_eq!((kind, methods), ("accepted", vec!["sendDocument".to_owned()]));
    let body = String::from_utf8(body).unwrap();
    assert!(body.contains("filename=\"bill.docx\"\r\nContent-Type: text/plain\r\n\r\nthe bill\r\n"), "{body}");

    // The connection is the operator's, who may go anywhere; the URL is not.
    let (kind, code, methods, _) = document(&files, GuardPolicy { allow_http: true, ..GuardPolicy::default() }).await;
    assert_eq!((kind, code, methods), ("rejected", Some(FailureCode::AttachmentUnavailable), vec![]));
    assert_eq!(files.seen().len(), 1);

    for (status, wanted) in [(404, "rejected"), (503, "deferred")] {
        let files = Peer::start(move |_| Act::text(status, "")).await;
        let (kind, code, methods, _) = document(&files, open_loopback.clone()).await;
        assert_eq!((kind, code, methods), (wanted, Some(FailureCode::AttachmentUnavailable), vec![]), "{status}");
    }
}

/// Uploads that Telegram does not take: each holds a file of up to 20 MB twice.
#[tokio::test]
async fn all_connections_together_hold_few_files() {
    let open_loopback = GuardPolicy { allow_http: true, allow_loopback: true, ..GuardPolicy::default() };
    let (files, api) = (Peer::start(|_| Act::text(200, "the bill")).await, Peer::start(|_| Act::Silence).await);
    let (settings, factory) = (account(json!({"base_url": api.base()})), factory(open_loopback));
    let mut sends = tokio::task::JoinSet::new();
    for _ in 0..4 {
        let adapter = factory.open(&settings, &services(Arc::new(Recorder::default()), "https://nuncio.example")).unwrap();
        for _ in 0..3 {
            let (adapter, media_url) = (Arc::clone(&adapter), Some(format!("{}/d/bill.docx", files.base())));
            let message = message("5", MessageType::Document, Content { media_url, ..Content::default() });
            sends.spawn(async move { drop(adapter.send(&request(&message)).await) });
        }
    }
    api.wait_for("sendDocument", 6).await;
    assert_eq!(files.seen().len(), 6);
}
