//! Projects, keys, senders, connections, and transactions as such.

use nuncio_domain::config::{ApiKey, Connection, Sender};
use nuncio_domain::key::KeyHash;
use nuncio_domain::lifecycle::NodeId;
use nuncio_domain::{Channel, Environment, Permission, Permissions, Redacted, SenderId, TenantId};
use nuncio_store::{StoreError, Tx};
use serde_json::json;

use crate::harness::{Harness, START};
use crate::make::phone;

pub(crate) async fn a_project_has_two_worlds(h: &Harness) {
    let mut tx = h.begin().await;
    let asked = h.project("second \u{1F4E8}");
    let made = tx.insert_project(asked.clone(), h.tick()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((&made.name, made.id, made.team), (&asked.name, asked.id, asked.team));
    let worlds = [h.world.tenant, h.other.tenant, made.live, made.test];
    assert!(worlds.iter().enumerate().all(|(n, a)| worlds[..n].iter().all(|b| a != b)), "{worlds:?}");
    let mut tx = h.read().await;
    let names: Vec<_> = tx.list_projects().await.unwrap().into_iter().map(|p| p.name).collect();
    assert_eq!(names, ["one", "second \u{1F4E8}"], "oldest first");
    for (tenant, environment) in [(made.live, Environment::Live), (made.test, Environment::Test)] {
        let world = tx.load_world(tenant).await.unwrap().unwrap();
        assert_eq!((world.tenant, world.environment, &world.project), (tenant, environment, &made));
        assert!(world.senders.is_empty() && world.connections.is_empty());
    }
    assert_eq!(tx.load_world(TenantId(404)).await.unwrap(), None);
}

async fn epoch(tx: &mut Box<dyn Tx>, tenant: TenantId) -> i64 {
    tx.load_world(tenant).await.unwrap().unwrap().epoch
}

pub(crate) async fn every_change_raises_the_epoch_of_its_world(h: &Harness) {
    let tenant = h.world.tenant;
    let mut tx = h.begin().await;
    let mut last = epoch(&mut tx, tenant).await;
    let other = epoch(&mut tx, h.other.tenant).await;
    let mut sender = sender(h, "new", false);
    let connection = connection(h, sender.id, Channel::Email);
    for change in 0..5 {
        match change {
            0 => tx.raise_epoch(tenant).await.unwrap(),
            1 => tx.insert_sender(tenant, &sender, START).await.unwrap(),
            2 => {
                sender.name = "renamed".to_owned();
                assert!(tx.update_sender(tenant, &sender).await.unwrap());
            }
            3 => tx.put_connection(tenant, &connection).await.unwrap(),
            _ => assert!(tx.delete_connection(tenant, sender.id, Channel::Email).await.unwrap()),
        }
        let now = epoch(&mut tx, tenant).await;
        assert!(now > last, "{change}");
        last = now;
    }
    assert_eq!(epoch(&mut tx, h.other.tenant).await, other);
}

pub(crate) async fn a_key_is_found_by_its_hash_and_revoked_once(h: &Harness) {
    let key = |tenant, byte: u8, permissions| ApiKey {
        tenant,
        id: h.id(),
        name: "ci \u{1F916}".to_owned(),
        hash: [byte; 32],
        permissions,
        revoked_at: None,
    };
    let few = Permissions::NONE.with(Permission::MessagesSend).with(Permission::WebhooksWrite);
    let keys = [key(h.world.tenant, 0, Permissions::ALL), key(h.world.tenant, 255, few), key(h.other.tenant, 9, few)];
    let mut tx = h.begin().await;
    for key in &keys {
        tx.insert_key(key, START).await.unwrap();
    }
    assert_eq!(tx.find_key(&keys[1].hash).await.unwrap(), Some((keys[1].clone(), Environment::Live)));
    assert_eq!(tx.find_key(&keys[2].hash).await.unwrap(), Some((keys[2].clone(), Environment::Test)));
    let unknown: KeyHash = [1; 32];
    assert_eq!(tx.find_key(&unknown).await.unwrap(), None);
    assert_eq!(tx.list_keys(h.world.tenant).await.unwrap(), keys[..2]);
    let at = h.tick();
    assert!(!tx.revoke_key(h.other.tenant, keys[0].id, at).await.unwrap(), "not this world's");
    assert!(tx.revoke_key(h.world.tenant, keys[0].id, at).await.unwrap());
    assert!(!tx.revoke_key(h.world.tenant, keys[0].id, h.tick()).await.unwrap(), "revoked already");
    let revoked = tx.find_key(&keys[0].hash).await.unwrap().unwrap().0;
    assert_eq!(revoked, ApiKey { revoked_at: Some(at), ..keys[0].clone() });
    tx.commit().await.unwrap();
    assert_eq!(h.read().await.list_keys(h.world.tenant).await.unwrap(), [revoked, keys[1].clone()]);
}

fn sender(h: &Harness, name: &str, is_default: bool) -> Sender {
    Sender { id: h.id(), name: name.to_owned(), phone_number: String::new(), is_default, updated_at: h.tick() }
}

pub(crate) async fn a_world_has_one_default_sender(h: &Harness) {
    let tenant = h.world.tenant;
    let mut tx = h.begin().await;
    let (mut plain, default) = (sender(h, "plain", false), sender(h, "default", true));
    tx.insert_sender(tenant, &plain, START).await.unwrap();
    assert_eq!(tx.load_world(tenant).await.unwrap().unwrap().default_sender().map(|s| s.id), Some(h.world.sender));
    tx.insert_sender(tenant, &default, START).await.unwrap();
    let world = tx.load_world(tenant).await.unwrap().unwrap();
    assert_eq!(world.senders.iter().filter(|s| s.is_default).collect::<Vec<_>>(), [&default]);
    assert_eq!(world.sender(plain.id), Some(&plain));

    plain = Sender { name: "renamed".to_owned(), phone_number: phone(1).identifier, is_default: true, updated_at: h.tick(), ..plain };
    assert!(tx.update_sender(tenant, &plain).await.unwrap());
    let nobody = sender(h, "nobody", true);
    assert!(!tx.update_sender(tenant, &nobody).await.unwrap());
    assert!(!tx.update_sender(h.other.tenant, &plain).await.unwrap(), "not that world's");
    tx.commit().await.unwrap();
    let mut tx = h.read().await;
    let world = tx.load_world(tenant).await.unwrap().unwrap();
    assert_eq!(world.senders.iter().filter(|s| s.is_default).collect::<Vec<_>>(), [&plain], "the default is not lost to nobody");
    assert_eq!(world.senders.len(), 3);
    let other = tx.load_world(h.other.tenant).await.unwrap().unwrap();
    assert_eq!(other.default_sender().map(|s| s.id), Some(h.other.sender));
}

fn connection(h: &Harness, sender: SenderId, channel: Channel) -> Connection {
    let settings = json!({"host": "mail.example.org", "port": 587, "Ünïcode": "\u{1F4EE}"});
    Connection {
        id: h.id(),
        sender,
        channel,
        kind: "smtp".to_owned(),
        settings: settings.as_object().unwrap().clone(),
        sealed: Redacted::new((0..=255).collect()),
        updated_at: h.tick(),
    }
}

pub(crate) async fn a_sender_has_one_connection_per_channel(h: &Harness) {
    let tenant = h.world.tenant;
    let mut tx = h.begin().await;
    let first = connection(h, h.world.sender, Channel::Email);
    tx.put_connection(tenant, &first).await.unwrap();
    let stored =
        async |tx: &mut Box<dyn Tx>| tx.load_world(tenant).await.unwrap().unwrap().connection(h.world.sender, Channel::Email).cloned();
    assert_eq!(stored(&mut tx).await, Some(first.clone()));
    let second = Connection { kind: "sim".to_owned(), sealed: Redacted::new(Vec::new()), ..connection(h, h.world.sender, Channel::Email) };
    tx.put_connection(tenant, &second).await.unwrap();
    // The identifier stays, since messages that wait name it.
    assert_eq!(stored(&mut tx).await, Some(Connection { id: first.id, ..second }));
    assert!(!tx.delete_connection(h.other.tenant, h.world.sender, Channel::Email).await.unwrap());
    assert!(!tx.delete_connection(tenant, h.world.sender, Channel::Voice).await.unwrap());
    assert!(tx.delete_connection(tenant, h.world.sender, Channel::Email).await.unwrap());
    assert_eq!(stored(&mut tx).await, None);
    tx.commit().await.unwrap();
    let world = h.read().await.load_world(tenant).await.unwrap().unwrap();
    assert_eq!(world.connections.iter().map(|c| c.id).collect::<Vec<_>>(), [h.world.connection]);
}

pub(crate) async fn a_dropped_transaction_leaves_nothing(h: &Harness) {
    let mut tx = h.begin().await;
    tx.insert_node(NodeId(7), START).await.unwrap();
    assert_eq!(tx.list_nodes().await.unwrap().len(), 2, "it sees its own writes");
    assert_eq!(h.read().await.list_nodes().await.unwrap().len(), 1, "nobody else does");
    drop(tx);
    assert_eq!(h.read().await.list_nodes().await.unwrap().len(), 1);
    // Nothing of it is in the way of the next.
    let mut tx = h.begin().await;
    tx.insert_node(NodeId(7), START).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!(h.read().await.list_nodes().await.unwrap().len(), 2);
}

pub(crate) async fn a_conflict_ends_the_transaction(h: &Harness) {
    let mut tx = h.begin().await;
    tx.insert_node(NodeId(7), START).await.unwrap();
    let conflict = tx.insert_node(NodeId(7), START).await;
    assert!(matches!(conflict, Err(StoreError::Conflict(_))), "{conflict:?}");
    let committed = tx.commit().await;
    assert!(matches!(committed, Err(StoreError::Other(_))), "{committed:?}");
    assert_eq!(h.read().await.list_nodes().await.unwrap().len(), 1, "nothing of it was written");
    let mut tx = h.begin().await;
    tx.insert_node(NodeId(8), START).await.unwrap();
    tx.commit().await.unwrap();
}
