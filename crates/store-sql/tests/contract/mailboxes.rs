//! Inbound email addresses.

use std::time::Duration;

use nuncio_domain::mailbox::Proof;
use nuncio_domain::{Channel, ConnectionId, TenantId};
use nuncio_store::{MailCode, MailDomain, Tx};

use crate::directory::{connection, sender};
use crate::harness::{Harness, START};

/// Returns the holder of an address.
async fn holder(_: &Harness, tx: &mut dyn Tx, address: &str) -> Option<(TenantId, ConnectionId, Proof)> {
    tx.find_mailbox(address).await.unwrap().map(|found| (found.tenant, found.connection, found.proof))
}

pub(crate) async fn mail_for_an_address_comes_to_one_connection(h: &Harness) {
    let (tenant, other) = (h.world.tenant, h.other.tenant);
    let mut tx = h.begin().await;
    let senders = [sender(h, "one", false), sender(h, "two", false)];
    for sender in &senders {
        tx.insert_sender(tenant, sender, START).await.unwrap();
    }
    let [first, second] = [0, 1].map(|n| connection(h, senders[n].id, Channel::Email));
    let rival = connection(h, h.other.sender, Channel::Email);
    for connection in [&first, &second] {
        tx.put_connection(tenant, connection).await.unwrap();
    }
    tx.put_connection(other, &rival).await.unwrap();
    let a = "a@example.org";
    assert_eq!(holder(h, &mut *tx, a).await, None);
    // In turn: claimant, proof, and whether the claim succeeds.
    let (mine, also_mine, theirs) = ((tenant, first.id), (tenant, second.id), (other, rival.id));
    for (number, ((tenant, connection), proof, gets)) in [
        (mine, Proof::Code, true),
        (mine, Proof::Code, true),
        (theirs, Proof::Code, false),
        (also_mine, Proof::Domain, false),
        (also_mine, Proof::Code, true),
        (theirs, Proof::Domain, true),
        (mine, Proof::Domain, false),
        (mine, Proof::Code, false),
        (mine, Proof::Operator, true),
        (theirs, Proof::Operator, false),
        (theirs, Proof::Domain, false),
        (also_mine, Proof::Code, false),
    ]
    .into_iter()
    .enumerate()
    {
        let before = holder(h, &mut *tx, a).await;
        assert_eq!(tx.claim_mailbox(tenant, connection, a, proof).await.unwrap(), gets, "{number}");
        let after = if gets { Some((tenant, connection, proof)) } else { before };
        assert_eq!(holder(h, &mut *tx, a).await, after, "{number}");
    }
    assert!(tx.claim_mailbox(tenant, first.id, a, Proof::Code).await.unwrap());
    assert_eq!(holder(h, &mut *tx, a).await, Some((tenant, first.id, Proof::Operator)), "the strongest proof stays");
    assert!(tx.release_mailbox(a).await.unwrap());
    assert!(!tx.release_mailbox(a).await.unwrap());

    for connection in [&first, &second] {
        assert!(tx.claim_mailbox(tenant, connection.id, &format!("{}@example.org", connection.id), Proof::Code).await.unwrap());
    }
    assert!(tx.delete_connection(tenant, senders[0].id, Channel::Email).await.unwrap());
    assert!(tx.delete_sender(tenant, senders[1].id).await.unwrap());
    tx.commit().await.unwrap();
    let mut tx = h.read().await;
    assert_eq!(tx.mailboxes_of_domain("example.org").await.unwrap(), [], "gone with their connections");
}

pub(crate) async fn an_inbound_address_is_pending_until_it_is_claimed(h: &Harness) {
    let tenant = h.world.tenant;
    let mut tx = h.begin().await;
    let first = connection(h, h.world.sender, Channel::Email);
    tx.put_connection(tenant, &first).await.unwrap();
    let state = async |tx: &mut dyn Tx| {
        let found = tx.inbound_addresses(tenant, &[first.id]).await.unwrap();
        found.into_iter().map(|found| (found.connection, found.address, found.is_claimed)).collect::<Vec<_>>()
    };
    assert_eq!(state(&mut *tx).await, []);
    let (a, b) = ("a@example.org", "b@example.org");
    tx.set_inbound_address(tenant, first.id, Some(a)).await.unwrap();
    assert_eq!(state(&mut *tx).await, [(first.id, a.to_owned(), false)]);
    assert!(tx.claim_mailbox(tenant, first.id, a, Proof::Code).await.unwrap());
    tx.set_inbound_address(tenant, first.id, Some(a)).await.unwrap();
    assert_eq!(state(&mut *tx).await, [(first.id, a.to_owned(), true)], "the same address keeps its claim");
    tx.set_inbound_address(tenant, first.id, Some(b)).await.unwrap();
    assert_eq!(state(&mut *tx).await, [(first.id, b.to_owned(), false)]);
    assert_eq!(holder(h, &mut *tx, a).await, None, "another one ends it");
    assert!(tx.claim_mailbox(tenant, first.id, b, Proof::Code).await.unwrap());
    assert_eq!(tx.inbound_addresses(h.other.tenant, &[first.id]).await.unwrap(), []);
    assert_eq!(tx.inbound_addresses(tenant, &[]).await.unwrap(), []);
    tx.set_inbound_address(tenant, first.id, None).await.unwrap();
    assert_eq!((state(&mut *tx).await, holder(h, &mut *tx, b).await), (Vec::new(), None));
    tx.set_inbound_address(tenant, first.id, Some(b)).await.unwrap();
    assert!(tx.delete_connection(tenant, h.world.sender, Channel::Email).await.unwrap());
    assert_eq!(state(&mut *tx).await, []);
}

pub(crate) async fn a_domain_is_given_to_one_project(h: &Harness) {
    let (mine, theirs) = (h.id(), h.id());
    let project = |id| nuncio_domain::config::Project {
        id,
        name: "p".to_owned(),
        colour: None,
        team: h.id(),
        team_name: "t".to_owned(),
        live: TenantId(0),
        test: TenantId(0),
    };
    let given = |domain: &str, project| MailDomain { domain: domain.to_owned(), project, created_at: START };
    let mut tx = h.begin().await;
    for id in [mine, theirs] {
        tx.insert_project(project(id), START).await.unwrap();
    }
    assert_eq!(tx.find_mail_domain("example.org").await.unwrap(), None);
    for (project, owner) in [(mine, mine), (mine, mine), (theirs, mine)] {
        assert_eq!(tx.assign_mail_domain(&given("example.org", project)).await.unwrap(), owner);
    }
    assert_eq!(tx.assign_mail_domain(&given("a.example", theirs)).await.unwrap(), theirs);
    assert_eq!(tx.find_mail_domain("mail.example.org").await.unwrap(), None, "subdomains are not included");
    assert_eq!(tx.list_mail_domains().await.unwrap(), [given("a.example", theirs), given("example.org", mine)]);
    assert!(tx.delete_mail_domain("example.org").await.unwrap());
    assert!(!tx.delete_mail_domain("example.org").await.unwrap());
    assert_eq!(tx.find_mail_domain("example.org").await.unwrap(), None);

    let first = connection(h, h.world.sender, Channel::Email);
    tx.put_connection(h.world.tenant, &first).await.unwrap();
    assert!(tx.claim_mailbox(h.world.tenant, first.id, "a@ex_mple.org", Proof::Code).await.unwrap());
    for (domain, count) in [("ex_mple.org", 1), ("example.org", 0), ("mple.org", 0), ("org", 0)] {
        assert_eq!(tx.mailboxes_of_domain(domain).await.unwrap().len(), count, "{domain}");
    }
    assert!(tx.release_mailbox("a@ex_mple.org").await.unwrap());
    assert!(tx.claim_mailbox(h.world.tenant, first.id, "a@example.org", Proof::Code).await.unwrap());
    assert_eq!(tx.mailboxes_of_domain("ex_mple.org").await.unwrap(), [], "an underscore is a character");
}

pub(crate) async fn codes_of_an_environment_are_kept_for_a_while(h: &Harness) {
    let tenant = h.world.tenant;
    let later = START.plus(Duration::from_secs(60));
    let code = |address: &str, first_at| MailCode {
        address: address.to_owned(),
        hash: (0..32).collect(),
        tries: 1,
        sends: 2,
        first_at,
        sent_at: later,
    };
    let mut tx = h.begin().await;
    let (old, new) = (code("a@example.org", START), code("b@example.org", later));
    for code in [&new, &old] {
        tx.put_mail_code(tenant, code).await.unwrap();
    }
    tx.put_mail_code(h.other.tenant, &old).await.unwrap();
    assert_eq!(tx.list_mail_codes(tenant).await.unwrap(), [old.clone(), new.clone()]);
    let again = MailCode { hash: vec![1], tries: 0, sends: 3, first_at: later, sent_at: later, ..new };
    tx.put_mail_code(tenant, &again).await.unwrap();
    tx.purge_mail_codes(tenant, later).await.unwrap();
    assert_eq!(tx.list_mail_codes(tenant).await.unwrap(), [again]);
    assert_eq!(tx.list_mail_codes(h.other.tenant).await.unwrap(), [old]);
}
