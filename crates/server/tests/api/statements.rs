//! Number of database queries. PostgreSQL counts them; both databases run the same ones.

use nuncio_domain::Channel;
use nuncio_domain::user::Role;
use nuncio_testkit::{Backend, Options, TestApp};
use serde_json::json;

use crate::broadcasts::{add, draft, phones};
use crate::contacts::{create, list, write};
use crate::dashboard::person;

async fn counting() -> Option<TestApp> {
    let backend = Backend::all().into_iter().find(|backend| *backend == Backend::Postgres)?;
    Some(TestApp::with(backend, Options { counts_statements: true, ..Options::default() }).await)
}

/// Creates contacts in pairs with the same name, one with a phone and one with an email address, so that merging is suggested.
async fn pairs(app: &TestApp, range: std::ops::Range<u32>) {
    for number in range {
        let name = format!("Ada {}", number / 2);
        let (channel, identifier) =
            if number % 2 == 0 { ("sms", format!("+3460011{number:04}")) } else { ("email", format!("ada{number}@example.org")) };
        create(app, json!({"displayName": name, "channels": [{"channel": channel, "identifier": identifier}]})).await;
    }
}

#[tokio::test]
async fn a_page_of_contacts_takes_as_many_statements_however_long_it_is() {
    let Some(app) = counting().await else { return };
    pairs(&app, 0..4).await;
    let page = async || assert_eq!(list(&app).await[0]["suggestedMergeWith"].as_str().map(|id| &id[..4]), Some("con_"));
    page().await; // The key is now cached.
    let few = app.statements(page()).await;
    pairs(&app, 4..50).await;
    let many = app.statements(page()).await;
    assert_eq!(list(&app).await.len(), 50);
    assert_eq!(many.values().sum::<i64>(), few.values().sum::<i64>(), "{few:#?} {many:#?}");
}

#[tokio::test]
async fn a_page_of_conversations_takes_as_many_statements_however_many_people_wrote() {
    let Some(app) = counting().await else { return };
    let browser = person(&app, "op@example.net", Role::Operator).await;
    write(&app, Channel::Sms, "+34600110000", "first", None).await;
    let page = async || browser.page("/conversations").await;
    page().await; // The session is now known.
    let few = app.statements(page()).await;
    for number in 1..15 {
        write(&app, Channel::Sms, &format!("+3460011{number:04}"), &format!("text {number}"), None).await;
    }
    let many = app.statements(page()).await;
    assert!(page().await.contains("+34600110014"));
    assert_eq!(many.values().sum::<i64>(), few.values().sum::<i64>(), "{few:#?} {many:#?}");
}

#[tokio::test]
async fn an_inbound_message_looks_up_no_configuration_and_no_contact() {
    let Some(app) = counting().await else { return };
    write(&app, Channel::Sms, "+34600111222", "first", None).await;
    let ran = app.statements(write(&app, Channel::Sms, "+34600111223", "second", None)).await;
    assert!(!ran.is_empty());
    for table in ["senders", "connections", "prices", "worlds", "contacts"] {
        let reads = |statement: &&String| statement.starts_with("SELECT") && first_table(statement) == Some(table);
        assert_eq!(ran.keys().find(reads), None, "reads {table}");
    }
}

fn first_table(statement: &str) -> Option<&str> {
    let (_, rest) = statement.split_once("FROM ")?;
    rest.split_whitespace().next()
}

#[tokio::test]
async fn the_recipients_of_a_broadcast_are_looked_up_together() {
    let Some(app) = counting().await else { return };
    let estimated = async |count: usize| {
        let id = draft(&app, json!({"name": "News", "channel": "smart", "text": "Hello from Acme"})).await;
        add(&app, &id, phones(count)).await;
        let path = format!("/v1/broadcasts/{id}/estimate");
        app.get(&path).await.expect(200); // Caches are now filled.
        let ran = app.statements(async { assert_eq!(app.get(&path).await.expect(200).json()["recipients"], count) }).await;
        ran.values().sum::<i64>()
    };
    assert_eq!(estimated(3).await, estimated(150).await);
}
