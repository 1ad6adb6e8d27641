//! Files: uploaded with a message, and fetched of an inbound one.

use nuncio_channel::contract::request;
use nuncio_channel::{Outcome, ResolvedAttachment, Scope, SendRequest};
use nuncio_channel_meta::scripted::{Reply, refusal};
use nuncio_domain::MessageType;
use nuncio_domain::message::FailureCode;
use serde_json::json;

use crate::support::{CLOUD, NUMBER, TOKEN, start, taken};

fn file(name: &str, content_type: &str, bytes: &[u8]) -> ResolvedAttachment {
    ResolvedAttachment { filename: name.into(), content_type: content_type.into(), content_id: None, bytes: bytes.to_vec() }
}

#[tokio::test]
async fn an_attachment_is_uploaded_and_sent_by_its_id() {
    let api =
        start(|seen| if seen.path.ends_with("/media") { Reply::json(200, &json!({"id": "1037543291543636"})) } else { taken() }).await;
    let message = CLOUD.message(MessageType::Document, Some("See"), json!({}));
    let files = [file("bill.pdf", "application/pdf", &[0, 13, 10, 255])];
    let outcome = CLOUD.open(&api, json!({})).send(&SendRequest { attachments: &files, ..request(&message) }).await;
    assert!(matches!(outcome, Outcome::Accepted { .. }), "{outcome:?}");
    let [upload, sent] = &api.seen()[..] else { panic!("two calls") };
    assert_eq!(upload.path, format!("/v23.0/{NUMBER}/media"));
    let boundary = upload.header("content-type").unwrap().strip_prefix("multipart/form-data; boundary=").unwrap();
    assert!(
        upload.body.starts_with(format!("--{boundary}\r\n").as_bytes())
            && upload.body.ends_with(format!("\r\n--{boundary}--\r\n").as_bytes())
    );
    assert!(upload.body.windows(8).any(|w| w == b"\r\n\r\n\0\r\n\xff"), "the bytes as they are");
    assert_eq!(sent.json()["document"], json!({"id": "1037543291543636", "caption": "See", "filename": "bill.pdf"}));
}

#[tokio::test]
async fn an_upload_that_fails_sends_nothing() {
    let message = CLOUD.message(MessageType::Image, None, json!({}));
    let files = [file("a.png", "image/png", &[1])];
    let lost = start(|_| Reply::HangUp).await;
    let outcome = CLOUD.open(&lost, json!({})).send(&SendRequest { attachments: &files, ..request(&message) }).await;
    assert!(
        matches!(outcome, Outcome::Deferred { scope: Scope::Message, .. }),
        "a lost response to an upload leaves nothing in doubt: {outcome:?}"
    );
    let refused = start(|_| refusal(400, 131_053, "Media upload error")).await;
    let outcome = CLOUD.open(&refused, json!({})).send(&SendRequest { attachments: &files, ..request(&message) }).await;
    let Outcome::Rejected { failure } = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.code, FailureCode::AttachmentUnavailable);
    assert_eq!((lost.seen().len(), refused.seen().len()), (1, 1));
}

#[tokio::test]
async fn attachments_that_are_no_media_are_refused() {
    let one = [file("a.png", "image/png", &[1])];
    let two = [one[0].clone(), one[0].clone()];
    let link = json!({"mediaUrl": "https://x.example/a.png"});
    for (message, files) in [
        (CLOUD.message(MessageType::Text, Some("Hola"), json!({})), &one[..]),
        (CLOUD.message(MessageType::Image, None, json!({})), &two[..]),
        (CLOUD.message(MessageType::Image, None, link), &one[..]),
    ] {
        let outcome = CLOUD.offline(json!({})).send(&SendRequest { attachments: files, ..request(&message) }).await;
        assert!(matches!(outcome, Outcome::Rejected { .. }), "{outcome:?}");
    }
}

#[tokio::test]
async fn media_is_fetched_in_two_steps_with_the_token() {
    let api = start(|seen| {
        let about = |size| json!({"url": format!("http://{}/blob", seen.header("host").unwrap()), "mime_type": "image/jpeg", "file_size": size, "id": "1"});
        match seen.path.as_str() {
            "/blob" => Reply::raw(200, Vec::new(), vec![7; 10]),
            path if path.starts_with("/v23.0/10?") => Reply::json(200, &about(json!(10))),
            path if path.starts_with("/v23.0/11?") => Reply::json(200, &about(json!("9"))), // which is a lie
            path if path.starts_with("/v23.0/12?") => Reply::json(200, &about(json!("1000"))),
            _ => refusal(400, 100, "Object with ID '13' does not exist"),
        }
    })
    .await;
    let adapter = CLOUD.open(&api, json!({}));
    let media = adapter.fetch_media("10", 10).await.unwrap();
    assert_eq!((media.content_type.as_str(), media.bytes), ("image/jpeg", vec![7; 10]));
    let [about, blob] = &api.seen()[..] else { panic!("two calls") };
    assert_eq!(about.path, format!("/v23.0/10?phone_number_id={NUMBER}"));
    assert_eq!(blob.header("authorization"), Some(&*format!("Bearer {TOKEN}")));
    for (id, most, calls) in [("10", 9, 1), ("11", 9, 2), ("12", 999, 1), ("13", 9, 1), ("../me", 9, 0), ("", 9, 0)] {
        let before = api.seen().len();
        assert!(adapter.fetch_media(id, most).await.is_err(), "{id}");
        assert_eq!(api.seen().len() - before, calls, "{id}");
    }
}
