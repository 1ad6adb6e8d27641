//! Costs of lists, and the keys that open a database.

use nuncio_domain::message::{Attachment, AttachmentSource, Message};
use nuncio_domain::page::PageRequest;
use nuncio_domain::{Base64, limits};
use nuncio_store::MessageFilter;

use crate::harness::Harness;
use crate::make::phone;

async fn large(h: &Harness, text: &str) -> Message {
    let mut item = h.item(&phone(1));
    let request = item.message.request_mut();
    request.text = Some(text.to_owned());
    request.html_body = Some("<p>".repeat(100_000));
    request.metadata = Some([("size".to_owned(), "large".into())].into_iter().collect());
    request.attachments = vec![Attachment {
        id: h.id(),
        filename: "a.bin".to_owned(),
        content_type: "application/octet-stream".to_owned(),
        content_id: None,
        size: Some(300_000),
        source: AttachmentSource::Base64("AAAA".repeat(100_000).into()),
    }];
    h.accept(item).await
}

/// Returns the message as lists and lookups of many return it.
async fn listed(h: &Harness, message: &Message) -> Message {
    let mut tx = h.read().await;
    let looked_up = tx.lookup_messages(h.world.tenant, &[message.id]).await.unwrap();
    let page = PageRequest::newest(5);
    let listed = tx.list_messages(h.world.tenant, &MessageFilter::default(), page).await.unwrap().items;
    assert!(listed == looked_up);
    listed.into_iter().next().unwrap()
}

pub(crate) async fn lists_do_without_the_chunks_of_large_requests(h: &Harness) {
    for text in ["short".to_owned(), "é\u{1}".repeat(200_000)] {
        let message = large(h, &text).await;
        assert!(h.lookup(message.id).await == message, "whole");
        h.sql("DELETE FROM spool_chunks").await;
        let shown = listed(h, &message).await;
        let mut expected = message.clone();
        expected.request_mut().drop_bulk();
        assert_eq!(expected.request.attachments[0].source, AttachmentSource::Base64(Base64::default()));
        let is_cut = text.len() > limits::SPOOLED_TEXT_SHOWN_BYTES;
        if is_cut {
            expected.request_mut().truncate_text();
        }
        assert_eq!((expected.request.may_be_truncated(), shown == expected), (is_cut, true));
        let bytes = h.number("SELECT CAST(MAX(LENGTH(request)) AS BIGINT) FROM messages").await;
        assert!(bytes <= limits::SPOOL_THRESHOLD_BYTES as i64, "{bytes}");
        for table in ["messages", "states", "agenda"] {
            h.sql(&format!("DELETE FROM {table}")).await;
        }
    }
}

pub(crate) async fn worlds_remember_by_which_key_they_were_made(h: &Harness) {
    for (check, same) in [(b"one", true), (b"two", false), (b"one", true)] {
        let mut tx = h.begin().await;
        assert_eq!(tx.check_key(check).await.unwrap(), same);
        tx.commit().await.unwrap();
    }
    let mut tx = h.begin().await;
    tx.insert_project(h.project("new"), h.tick()).await.unwrap();
    assert!(!tx.check_key(b"two").await.unwrap(), "the worlds that were there");
    assert!(!tx.check_key(b"one").await.unwrap(), "and the new ones, which took the other");
    drop(tx);
    let mut tx = h.begin().await;
    assert!(tx.check_key(b"one").await.unwrap(), "which was not committed");
}
