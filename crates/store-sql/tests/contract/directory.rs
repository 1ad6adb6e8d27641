//! Projects, keys, senders, connections, and transactions.

use nuncio_domain::config::{Connection, Project, Sender, Throttle};
use nuncio_domain::id::Id as _;
use nuncio_domain::key::{ApiKey, KeyHash};
use nuncio_domain::message::NodeId;
use nuncio_domain::page::PageRequest;
use nuncio_domain::profile::{BusinessAccount, BusinessProfile, KeptAccount, SetupStatus, Vertical};
use nuncio_domain::user::{Member, Membership, Role, Session, User};
use nuncio_domain::{Channel, Colour, Environment, Micros, Permission, Permissions, Redacted, SenderId, TenantId};
use nuncio_store::{StoreError, Tx};
use serde_json::json;

use crate::harness::{Harness, START};
use crate::make::phone;

pub(crate) async fn a_project_has_two_worlds(h: &Harness) {
    let mut tx = h.begin().await;
    let asked = Project { colour: Some(Colour::rgb(0x27, 0x47, 0xc7)), ..h.project("second \u{1F4E8}") };
    let made = tx.insert_project(asked.clone(), h.tick()).await.unwrap();
    tx.commit().await.unwrap();
    assert_eq!((&made.name, made.id, made.team), (&asked.name, asked.id, asked.team));
    let worlds = [h.world.tenant, h.other.tenant, made.live, made.test];
    assert!(worlds.iter().enumerate().all(|(n, a)| worlds[..n].iter().all(|b| a != b)), "{worlds:?}");
    let mut tx = h.read().await;
    let names: Vec<_> = tx.list_projects().await.unwrap().into_iter().map(|p| p.name).collect();
    assert_eq!(names, ["one", "second \u{1F4E8}"], "oldest first");
    for (tenant, environment) in [(made.live, Environment::Live), (made.test, Environment::Test)] {
        let world = tx.load_tenant(tenant).await.unwrap().unwrap();
        assert_eq!((world.tenant, world.environment, &world.project), (tenant, environment, &made));
        assert!(world.senders.is_empty() && world.connections.is_empty());
    }
    assert_eq!(tx.load_tenant(TenantId(404)).await.unwrap(), None);
}

async fn epoch(tx: &mut Box<dyn Tx>, tenant: TenantId) -> i64 {
    tx.load_tenant(tenant).await.unwrap().unwrap().epoch
}

pub(crate) async fn every_change_raises_the_epoch_of_its_world(h: &Harness) {
    let tenant = h.world.tenant;
    let mut tx = h.begin().await;
    let mut last = epoch(&mut tx, tenant).await;
    let other = epoch(&mut tx, h.other.tenant).await;
    let mut sender = sender(h, "new", false);
    let connection = connection(h, sender.id, Channel::Email);
    for change in 0..6 {
        match change {
            0 => tx.raise_epoch(tenant).await.unwrap(),
            1 => tx.insert_sender(tenant, &sender, START).await.unwrap(),
            2 => {
                sender.name = "renamed".to_owned();
                assert!(tx.update_sender(tenant, &sender).await.unwrap());
            }
            3 => tx.put_connection(tenant, &connection).await.unwrap(),
            4 => assert!(tx.delete_connection(tenant, sender.id, Channel::Email).await.unwrap()),
            _ => assert!(tx.delete_sender(tenant, sender.id).await.unwrap()),
        }
        let now = epoch(&mut tx, tenant).await;
        assert!(now > last, "{change}");
        last = now;
        assert_eq!(tx.epochs(&[tenant, TenantId(404)]).await.unwrap(), [(tenant, now)]);
    }
    assert_eq!(epoch(&mut tx, h.other.tenant).await, other);
    assert_eq!(tx.epochs(&[tenant, h.other.tenant]).await.unwrap().len(), 2);
}

pub(crate) async fn a_key_is_found_by_its_hash_and_revoked_once(h: &Harness) {
    let key = |tenant, byte: u8, permissions| ApiKey {
        tenant,
        id: h.id(),
        name: "ci \u{1F916}".to_owned(),
        hash: [byte; 32],
        permissions,
        revoked_at: None,
        expires_at: (byte > 0).then_some(START),
        last_used_at: None,
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
    let newest = tx.page_keys(h.world.tenant, PageRequest::newest(1)).await.unwrap();
    assert_eq!((newest.items.as_slice(), newest.next), (&keys[1..2], Some(keys[1].id.uuid())));
    let older = tx.page_keys(h.world.tenant, PageRequest::older(1, newest.next)).await.unwrap();
    assert_eq!((older.items.as_slice(), older.next), (&keys[..1], None));
    assert_eq!(tx.lookup_key(h.world.tenant, keys[0].id).await.unwrap().as_ref(), Some(&keys[0]));
    assert_eq!(tx.lookup_key(h.other.tenant, keys[0].id).await.unwrap(), None, "another world's");
    let at = h.tick();
    assert!(!tx.revoke_key(h.other.tenant, keys[0].id, at).await.unwrap(), "not this world's");
    assert!(tx.revoke_key(h.world.tenant, keys[0].id, at).await.unwrap());
    assert!(!tx.revoke_key(h.world.tenant, keys[0].id, h.tick()).await.unwrap(), "revoked already");
    let revoked = tx.find_key(&keys[0].hash).await.unwrap().unwrap().0;
    assert_eq!(revoked, ApiKey { revoked_at: Some(at), ..keys[0].clone() });
    tx.commit().await.unwrap();
    assert_eq!(h.read().await.list_keys(h.world.tenant).await.unwrap(), [revoked, keys[1].clone()]);
}

pub(crate) async fn keys_remember_their_last_use(h: &Harness) {
    let key = |tenant, byte: u8, last_used_at| ApiKey {
        tenant,
        id: h.id(),
        name: "ci".to_owned(),
        hash: [byte; 32],
        permissions: Permissions::ALL,
        revoked_at: None,
        expires_at: None,
        last_used_at,
    };
    let (first, second, third) = (h.tick(), h.tick(), h.tick());
    let (here, there) = (h.world.tenant, h.other.tenant);
    let keys = [key(here, 0, None), key(here, 1, Some(third)), key(here, 2, None), key(there, 3, Some(first))];
    let mut tx = h.begin().await;
    for key in &keys {
        tx.insert_key(key, START).await.unwrap();
    }
    tx.mark_keys_used(&[], first).await.unwrap();
    let used = [(here, keys[0].id), (here, keys[1].id), (there, keys[3].id), (here, h.id()), (there, keys[2].id)];
    tx.mark_keys_used(&used, second).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = h.read().await;
    let mut stored = tx.list_keys(here).await.unwrap();
    stored.extend(tx.list_keys(there).await.unwrap());
    let wanted = [Some(second), Some(third), None, Some(second)];
    assert_eq!(stored.iter().map(|key| key.last_used_at).collect::<Vec<_>>(), wanted, "never set back; only the tenant's own");
    assert_eq!(stored[3], ApiKey { last_used_at: Some(second), ..keys[3].clone() });
}

pub(crate) fn sender(h: &Harness, name: &str, is_default: bool) -> Sender {
    Sender { is_default, ..Sender::new(h.id(), name, h.tick()) }
}

pub(crate) async fn a_world_has_one_default_sender(h: &Harness) {
    let tenant = h.world.tenant;
    let mut tx = h.begin().await;
    let (mut plain, default) = (sender(h, "plain", false), sender(h, "default", true));
    tx.insert_sender(tenant, &plain, START).await.unwrap();
    assert_eq!(tx.load_tenant(tenant).await.unwrap().unwrap().default_sender().map(|s| s.id), Some(h.world.sender));
    tx.insert_sender(tenant, &default, START).await.unwrap();
    let world = tx.load_tenant(tenant).await.unwrap().unwrap();
    assert_eq!(world.senders.iter().filter(|s| s.is_default).collect::<Vec<_>>(), [&default]);
    assert_eq!(world.sender(plain.id), Some(&plain));

    plain = Sender { name: "renamed".to_owned(), phone_number: phone(1).identifier, is_default: true, updated_at: h.tick(), ..plain };
    assert!(tx.update_sender(tenant, &plain).await.unwrap());
    let nobody = sender(h, "nobody", true);
    assert!(!tx.update_sender(tenant, &nobody).await.unwrap());
    assert!(!tx.update_sender(h.other.tenant, &plain).await.unwrap(), "not that world's");
    tx.commit().await.unwrap();
    let mut tx = h.read().await;
    let world = tx.load_tenant(tenant).await.unwrap().unwrap();
    assert_eq!(world.senders.iter().filter(|s| s.is_default).collect::<Vec<_>>(), [&plain], "the default is not lost to nobody");
    assert_eq!(world.senders.len(), 3);
    let other = tx.load_tenant(h.other.tenant).await.unwrap().unwrap();
    assert_eq!(other.default_sender().map(|s| s.id), Some(h.other.sender));
}

pub(crate) fn connection(h: &Harness, sender: SenderId, channel: Channel) -> Connection {
    let settings = json!({"host": "mail.example.org", "port": 587, "Ünïcode": "\u{1F4EE}"});
    Connection {
        id: h.id(),
        sender,
        channel,
        kind: "smtp".to_owned(),
        settings: settings.as_object().unwrap().clone(),
        sealed: Redacted::new((0..=255).collect()),
        trusted: true,
        throttle: Some(Throttle { messages_per_second: 0.5, burst: 3 }),
        updated_at: h.tick(),
    }
}

pub(crate) async fn a_sender_has_one_connection_per_channel(h: &Harness) {
    let tenant = h.world.tenant;
    let mut tx = h.begin().await;
    let first = connection(h, h.world.sender, Channel::Email);
    tx.put_connection(tenant, &first).await.unwrap();
    let stored = async |tx: &mut Box<dyn Tx>| {
        let world = tx.load_tenant(tenant).await.unwrap().unwrap();
        world.connection(h.world.sender, Channel::Email).map(|connection| Connection::clone(connection))
    };
    assert_eq!(stored(&mut tx).await, Some(first.clone()));
    let second = Connection { kind: "sim".to_owned(), sealed: Redacted::new(Vec::new()), ..connection(h, h.world.sender, Channel::Email) };
    tx.put_connection(tenant, &second).await.unwrap();
    // The id is kept, since waiting messages refer to it.
    assert_eq!(stored(&mut tx).await, Some(Connection { id: first.id, ..second }));
    assert!(!tx.delete_connection(h.other.tenant, h.world.sender, Channel::Email).await.unwrap());
    assert!(!tx.delete_connection(tenant, h.world.sender, Channel::Voice).await.unwrap());
    assert!(tx.delete_connection(tenant, h.world.sender, Channel::Email).await.unwrap());
    assert_eq!(stored(&mut tx).await, None);
    tx.commit().await.unwrap();
    let world = h.read().await.load_tenant(tenant).await.unwrap().unwrap();
    assert_eq!(world.connections.iter().map(|c| c.id).collect::<Vec<_>>(), [h.world.connection]);
}

pub(crate) async fn senders_come_back_as_they_were_and_go(h: &Harness) {
    let tenant = h.world.tenant;
    let limited = Sender {
        phone_number: phone(1).identifier,
        email_receiving_enabled: true,
        allowed_countries: vec!["ES".to_owned(), "PT".to_owned()],
        daily_spend_limit: Some(Micros(1_500_000)),
        ..sender(h, "limited \u{1F4E8}", false)
    };
    let plain = sender(h, "plain", false);
    let mut tx = h.begin().await;
    for sender in [&limited, &plain] {
        tx.insert_sender(tenant, sender, START).await.unwrap();
    }
    let own = [connection(h, limited.id, Channel::Email), connection(h, limited.id, Channel::Sms)];
    for connection in &own {
        tx.put_connection(tenant, connection).await.unwrap();
    }
    tx.commit().await.unwrap();

    let mut tx = h.read().await;
    let nobody: SenderId = h.id();
    assert_eq!(tx.find_senders(tenant, &[limited.id, nobody]).await.unwrap(), std::slice::from_ref(&limited));
    assert_eq!(tx.find_senders(tenant, &[]).await.unwrap(), []);
    assert_eq!(tx.find_senders(h.other.tenant, &[limited.id]).await.unwrap(), []);
    assert_eq!(tx.connections_of_senders(tenant, &[limited.id, plain.id]).await.unwrap(), own);
    assert_eq!(tx.connections_of_senders(h.other.tenant, &[limited.id]).await.unwrap(), []);
    assert_eq!(tx.find_connection(own[0].id).await.unwrap(), Some((tenant, own[0].clone())));
    assert_eq!(tx.find_connection(h.id()).await.unwrap(), None);
    let of_kind = tx.connections_of_kinds(&["none", "smtp"]).await.unwrap();
    assert_eq!(of_kind, own.clone().map(|connection| (tenant, connection)));
    assert_eq!(tx.connections_of_senders(tenant, &[]).await.unwrap(), []);
    let first = tx.list_senders(tenant, PageRequest::newest(2)).await.unwrap();
    assert_eq!(first.items, [plain.clone(), limited.clone()], "newest first");
    let second = tx.list_senders(tenant, PageRequest::older(2, first.next)).await.unwrap();
    assert_eq!((second.items.iter().map(|s| s.id).collect::<Vec<_>>(), second.next), (vec![h.world.sender], None));
    drop(tx);

    let mut tx = h.begin().await;
    let changed = Sender { allowed_countries: Vec::new(), daily_spend_limit: None, email_receiving_enabled: false, ..limited.clone() };
    assert!(tx.update_sender(tenant, &changed).await.unwrap());
    assert_eq!(tx.find_senders(tenant, &[limited.id]).await.unwrap(), [changed]);
    assert!(!tx.delete_sender(h.other.tenant, limited.id).await.unwrap(), "not that world's");
    assert!(tx.delete_sender(tenant, limited.id).await.unwrap());
    assert!(!tx.delete_sender(tenant, limited.id).await.unwrap());
    tx.commit().await.unwrap();
    let world = h.read().await.load_tenant(tenant).await.unwrap().unwrap();
    assert_eq!(world.senders.iter().map(|s| s.id).collect::<Vec<_>>(), [h.world.sender, plain.id]);
    assert_eq!(world.connections.iter().map(|c| c.id).collect::<Vec<_>>(), [h.world.connection]);
}

pub(crate) async fn what_is_kept_of_an_account_comes_back(h: &Harness) {
    let tenant = h.world.tenant;
    let profile = BusinessProfile {
        about: "Ünïcode \u{1F4EE}".to_owned(),
        websites: vec!["https://example.org".to_owned()],
        vertical: Vertical::EventPlan,
        ..BusinessProfile::default()
    };
    let account =
        BusinessAccount { phone_number_id: "7".to_owned(), setup_status: SetupStatus::Complete, profile, ..BusinessAccount::default() };
    let kept = KeptAccount { sender: h.world.sender, version: 1, account, unsent: true, updated_at: h.tick() };
    let mut tx = h.begin().await;
    tx.put_account(tenant, &kept).await.unwrap();
    assert_eq!(tx.accounts_of_senders(tenant, &[h.world.sender, h.id()]).await.unwrap(), std::slice::from_ref(&kept));
    assert_eq!(tx.accounts_of_senders(tenant, &[]).await.unwrap(), []);
    assert_eq!(tx.accounts_of_senders(h.other.tenant, &[h.world.sender]).await.unwrap(), []);
    let changed = KeptAccount { version: 2, unsent: false, account: BusinessAccount::default(), updated_at: h.tick(), ..kept };
    tx.put_account(tenant, &changed).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = h.begin().await;
    assert_eq!(tx.accounts_of_senders(tenant, &[h.world.sender]).await.unwrap(), [changed]);
    assert!(!tx.delete_account(h.other.tenant, h.world.sender).await.unwrap());
    assert!(tx.delete_account(tenant, h.world.sender).await.unwrap());
    assert!(!tx.delete_account(tenant, h.world.sender).await.unwrap());
}

pub(crate) async fn a_dropped_transaction_leaves_nothing(h: &Harness) {
    let mut tx = h.begin().await;
    tx.insert_node(NodeId(7), START).await.unwrap();
    assert_eq!(tx.list_nodes().await.unwrap().len(), 2, "it sees its own writes");
    assert_eq!(h.read().await.list_nodes().await.unwrap().len(), 1, "nobody else does");
    drop(tx);
    assert_eq!(h.read().await.list_nodes().await.unwrap().len(), 1);
    // It does not block the next one.
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

pub(crate) async fn people_belong_to_projects(h: &Harness) {
    let project = h.read().await.list_projects().await.unwrap().remove(0);
    let user = |email: &str| {
        let (id, password) = (h.id(), Redacted::new("hash".to_owned()));
        User { id, email: email.to_owned(), password, factor: None, factor_version: 0 }
    };
    let (ada, bo) = (user("ada@example.net"), user("bo@example.net"));
    let mut tx = h.begin().await;
    let other = tx.insert_project(h.project("other"), START).await.unwrap();
    assert!(tx.insert_user(&ada, START).await.unwrap() && tx.insert_user(&bo, START).await.unwrap());
    let membership = |project: &Project, role| Membership { project: project.id, role };
    let (owner, viewer) = (membership(&project, Role::Owner), membership(&other, Role::Viewer));
    assert!(tx.insert_membership(ada.id, viewer, START).await.unwrap() && tx.insert_membership(ada.id, owner, START).await.unwrap());
    assert!(!tx.insert_membership(ada.id, membership(&project, Role::Viewer), START).await.unwrap(), "once");
    assert!(tx.insert_membership(bo.id, viewer, START).await.unwrap());
    tx.commit().await.unwrap();
    let mut tx = h.begin().await;
    let mut hers = [owner, viewer];
    hers.sort_by_key(|membership| membership.project);
    assert_eq!(tx.list_memberships(ada.id).await.unwrap(), hers);
    let member = |user: &User, role| Member { user: user.clone(), role };
    assert_eq!(tx.list_members(project.id).await.unwrap(), [member(&ada, Role::Owner)]);
    let mut both = [member(&ada, Role::Viewer), member(&bo, Role::Viewer)];
    both.sort_by_key(|member| member.user.id);
    assert_eq!(tx.list_members(other.id).await.unwrap(), both);
    let operator = membership(&other, Role::Operator);
    assert!(tx.update_membership(bo.id, operator).await.unwrap());
    assert!(!tx.update_membership(bo.id, membership(&project, Role::Owner)).await.unwrap(), "not a member");
    assert_eq!(tx.list_memberships(bo.id).await.unwrap(), [operator]);
    assert_eq!(tx.list_memberships(ada.id).await.unwrap(), hers, "only theirs");
    assert!(tx.delete_membership(ada.id, other.id).await.unwrap() && !tx.delete_membership(ada.id, other.id).await.unwrap());
    assert_eq!(tx.list_memberships(ada.id).await.unwrap(), [owner]);
    assert!(tx.delete_user(bo.id).await.unwrap());
    assert_eq!(tx.list_members(other.id).await.unwrap(), []);
    tx.commit().await.unwrap();
}

pub(crate) async fn people_sign_in_and_out(h: &Harness) {
    let later = START.plus(std::time::Duration::from_secs(60));
    let project = h.read().await.list_projects().await.unwrap().remove(0);
    let user = |email: &str| User {
        id: h.id(),
        email: email.to_owned(),
        password: Redacted::new("hash".to_owned()),
        factor: None,
        factor_version: 0,
    };
    assert!(!h.read().await.has_users().await.unwrap());
    let (ada, bo) = (user("ada@example.net"), user("bo@example.net"));
    let session = |user: &User, hash: u8| Session {
        hash: [hash; 32],
        user: user.id,
        project: project.id,
        environment: Environment::Test,
        created_at: START,
        expires_at: later,
    };
    let mut tx = h.begin().await;
    assert!(tx.insert_user(&ada, START).await.unwrap() && tx.insert_user(&bo, START).await.unwrap());
    assert!(!tx.insert_user(&user("ada@example.net"), START).await.unwrap(), "an address has one person");
    for (user, hash) in [(&ada, 1), (&ada, 2), (&bo, 3)] {
        assert!(tx.insert_session(&session(user, hash), user).await.unwrap());
    }
    tx.commit().await.unwrap();
    let mut tx = h.begin().await;
    assert!(tx.has_users().await.unwrap());
    assert_eq!(tx.find_user("ada@example.net").await.unwrap(), Some(ada.clone()));
    assert_eq!(tx.find_session(&[1; 32], START).await.unwrap(), Some((session(&ada, 1), ada.clone())));
    assert_eq!(tx.find_session(&[1; 32], later).await.unwrap(), None, "it has expired");
    assert_eq!(tx.list_sessions(ada.id, START).await.unwrap(), [session(&ada, 1), session(&ada, 2)]);
    assert_eq!(tx.list_sessions(ada.id, later).await.unwrap(), []);
    let other = tx.insert_project(h.project("other"), START).await.unwrap();
    assert!(tx.update_session(&[1; 32], other.id, Environment::Live).await.unwrap());
    assert!(!tx.update_session(&[9; 32], other.id, Environment::Live).await.unwrap());
    let (session_now, _) = tx.find_session(&[1; 32], START).await.unwrap().unwrap();
    assert_eq!((session_now.project, session_now.environment), (other.id, Environment::Live));
    assert!(tx.delete_session(&[2; 32]).await.unwrap() && !tx.delete_session(&[2; 32]).await.unwrap());
    let sealed = Redacted::new(vec![1, 2, 3]);
    assert!(tx.put_factor(ada.id, 0, Some(&sealed)).await.unwrap() && !tx.put_factor(ada.id, 0, None).await.unwrap(), "once per version");
    assert!(!tx.insert_session(&session(&ada, 5), &ada).await.unwrap(), "it needs the second factor now");
    let ada = User { factor: Some(sealed), factor_version: 1, ..ada };
    assert_eq!(tx.find_user_by_id(ada.id).await.unwrap(), Some(ada.clone()));
    assert_eq!(tx.find_session(&[1; 32], START).await.unwrap().unwrap().1, ada);
    assert_eq!(tx.find_user_by_id(h.id()).await.unwrap(), None);
    let changed = User { password: Redacted::new("other".to_owned()), ..ada.clone() };
    assert!(tx.put_password(ada.id, &changed.password).await.unwrap() && !tx.put_password(h.id(), &changed.password).await.unwrap());
    assert_eq!(tx.find_user("ada@example.net").await.unwrap(), Some(changed));
    assert_eq!(tx.find_session(&[1; 32], START).await.unwrap(), None, "a new password ends sessions");
    assert!(!tx.insert_session(&session(&ada, 5), &ada).await.unwrap(), "the old password no longer opens one");
    assert_eq!(tx.purge_sessions(START, 10).await.unwrap(), 0);
    assert_eq!(tx.purge_sessions(later, 10).await.unwrap(), 1);
    assert!(tx.insert_session(&session(&bo, 4), &bo).await.unwrap());
    assert!(tx.delete_user(bo.id).await.unwrap() && !tx.delete_user(bo.id).await.unwrap());
    assert_eq!(tx.find_session(&[4; 32], START).await.unwrap(), None);
    for colour in [Some(Colour::rgb(0, 171, 255)), None] {
        let changed = Project { name: "Acme".to_owned(), colour, ..project.clone() };
        assert!(tx.update_project(&changed).await.unwrap());
        assert_eq!(tx.list_projects().await.unwrap()[0], changed);
        assert_eq!(tx.load_tenant(project.test).await.unwrap().unwrap().project, changed);
    }
    assert!(!tx.update_project(&h.project("nobody")).await.unwrap());
    tx.commit().await.unwrap();
}
