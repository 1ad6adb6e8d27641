//! Templates.

use std::time::Duration;

use nuncio_domain::id::Id as _;
use nuncio_domain::page::PageRequest;
use nuncio_domain::template::{Content, Status, Template};

use crate::harness::{Harness, START};

fn template(h: &Harness, name: &str) -> Template {
    Template {
        tenant: h.world.tenant,
        id: h.id(),
        name: name.to_owned(),
        language: "en".to_owned(),
        status: Status::Draft,
        version: 0,
        due_at: None,
        content: Content { body: "Hello {{1}}".to_owned(), variables: vec!["1".to_owned()], ..Content::default() },
        updated_at: START,
    }
}

pub(crate) async fn a_template_comes_back_as_it_was(h: &Harness) {
    let one = template(h, "one");
    let mut tx = h.begin().await;
    assert!(tx.insert_template(&one).await.unwrap());
    assert!(!tx.insert_template(&template(h, "one")).await.unwrap(), "name and language are unique");
    assert!(tx.insert_template(&Template { language: "es".to_owned(), ..template(h, "one") }).await.unwrap());
    assert!(tx.insert_template(&Template { tenant: h.other.tenant, ..template(h, "one") }).await.unwrap());
    let two = template(h, "two");
    assert!(tx.insert_template(&two).await.unwrap());
    tx.commit().await.unwrap();
    let mut tx = h.begin().await;
    assert_eq!(tx.find_template(h.world.tenant, one.id).await.unwrap(), Some(one.clone()));
    assert_eq!(tx.find_template(h.other.tenant, one.id).await.unwrap(), None);
    let page = tx.list_templates(h.world.tenant, PageRequest::newest(1)).await.unwrap();
    assert_eq!((page.items[0].id, page.next), (two.id, Some(two.id.uuid())));
    let page = tx.list_templates(h.world.tenant, PageRequest::older(5, page.next)).await.unwrap();
    assert_eq!((page.items.len(), page.next), (2, None));
    let due = START.plus(Duration::from_secs(1));
    let changed = Template { status: Status::Pending, version: 1, due_at: Some(due), ..one.clone() };
    assert!(tx.update_template(&changed, 0).await.unwrap());
    assert!(!tx.update_template(&changed, 0).await.unwrap(), "somebody was faster");
    assert_eq!(tx.due_templates(START, 10).await.unwrap(), []);
    assert_eq!(tx.due_templates(due, 10).await.unwrap(), [changed]);
    assert!(!tx.delete_template(h.other.tenant, one.id).await.unwrap());
    assert!(tx.delete_template(h.world.tenant, one.id).await.unwrap());
    assert!(!tx.delete_template(h.world.tenant, one.id).await.unwrap());
}
