//! Invitations.

use nuncio_domain::invitation::{Invitation, InvitationProgress, InvitationStatus, SentCode};
use nuncio_domain::page::PageRequest;
use nuncio_domain::{AddressKind, Recipient, Redacted};

use crate::harness::{Harness, START, in_tx};
use crate::make::DAY;

const ALL: PageRequest = PageRequest::newest(100);

fn invitation(h: &Harness, byte: u8) -> Invitation {
    Invitation {
        id: h.id(),
        version: 0,
        status: InvitationStatus::Pending,
        token_hash: [byte; 32],
        sealed: Redacted::new(vec![0, byte]),
        client_name: Some("Ada \u{1F469}".to_owned()),
        client_email: None,
        client_phone: None,
        number: None,
        countries: vec!["ES".to_owned()],
        sender: None,
        expires_at: START.plus(DAY),
        viewed_at: None,
        started_at: None,
        completed_at: None,
        updated_at: START,
        progress: InvitationProgress::default(),
    }
}

pub(crate) async fn an_invitation_comes_back_as_it_was(h: &Harness) {
    let tenant = h.world.tenant;
    let plain = invitation(h, 1);
    in_tx!(h, |tx| tx.insert_invitation(tenant, &plain).await.unwrap());
    let mut tx = h.begin().await;
    assert_eq!(tx.lock_invitation(tenant, plain.id).await.unwrap(), Some(plain.clone()));
    assert_eq!(tx.lock_invitation(h.other.tenant, plain.id).await.unwrap(), None);
    let full = Invitation {
        version: 3,
        status: InvitationStatus::Completed,
        client_name: None,
        client_email: Some("ada@example.org".to_owned()),
        client_phone: Some("+34600111222".to_owned()),
        sender: Some(h.id()),
        viewed_at: Some(h.tick()),
        started_at: Some(h.tick()),
        completed_at: Some(h.tick()),
        updated_at: h.tick(),
        progress: InvitationProgress {
            details: true,
            code: Some(SentCode { hash: "x".to_owned(), expires_at: START, tries: 2 }),
            sent: vec![START],
            proved: Some("+34600111222".to_owned()),
        },
        ..plain
    };
    tx.update_invitation(tenant, &full).await.unwrap();
    tx.commit().await.unwrap();
    let mut tx = h.read().await;
    assert_eq!(tx.find_invitation(tenant, full.id).await.unwrap(), Some(full.clone()));
    assert_eq!(tx.find_invitation(h.other.tenant, full.id).await.unwrap(), None);
    assert_eq!(tx.find_invitation_by_token(&[1; 32]).await.unwrap(), Some((tenant, full.id)));
    assert_eq!(tx.find_invitation_by_token(&[2; 32]).await.unwrap(), None);
}

pub(crate) async fn an_invitation_that_ended_is_expired(h: &Harness) {
    let tenant = h.world.tenant;
    let mut all = Vec::new();
    for (n, status) in InvitationStatus::ALL.iter().enumerate() {
        all.push(Invitation { status: *status, expires_at: START.plus(DAY * (n as u32 + 1)), ..invitation(h, n as u8) });
    }
    let [pending, in_progress, completed, expired, cancelled] = all.as_slice() else { panic!("five statuses") };
    let mut tx = h.begin().await;
    for one in &all {
        tx.insert_invitation(tenant, one).await.unwrap();
    }
    let mut page = async |statuses: &[InvitationStatus], now| tx.list_invitations(tenant, statuses, now, ALL).await.unwrap().items;
    let newest_first: Vec<_> = all.iter().rev().cloned().collect();
    assert_eq!(page(&[], START).await, newest_first);
    assert_eq!(page(&[InvitationStatus::Pending], START).await, all[..1]);
    assert_eq!(page(&[InvitationStatus::Expired], START).await, all[3..4]);
    let ended = pending.expires_at;
    assert_eq!(page(&[InvitationStatus::Pending], ended).await, []);
    assert_eq!(page(&[InvitationStatus::Expired], ended).await, [expired.clone(), pending.clone()]);
    let three = [InvitationStatus::InProgress, InvitationStatus::Completed, InvitationStatus::Cancelled];
    assert_eq!(page(&three, ended).await, [cancelled.clone(), completed.clone(), in_progress.clone()]);

    let first = tx.list_invitations(tenant, &[], START, PageRequest::newest(3)).await.unwrap();
    let rest = tx.list_invitations(tenant, &[], START, PageRequest::older(3, first.next)).await.unwrap();
    assert_eq!((first.items.as_slice(), rest.items.as_slice(), rest.next), (&newest_first[..3], &newest_first[3..], None));
    assert_eq!(tx.list_invitations(h.other.tenant, &[], START, ALL).await.unwrap().items, []);

    let far = START.plus(DAY * 99);
    assert_eq!(tx.due_invitations(far, 9).await.unwrap(), [(tenant, pending.id), (tenant, in_progress.id)], "the others are final");
    assert_eq!(tx.due_invitations(far, 1).await.unwrap(), [(tenant, pending.id)]);
    assert_eq!(tx.due_invitations(ended, 9).await.unwrap(), [(tenant, pending.id)]);
    tx.update_invitation(tenant, &Invitation { status: InvitationStatus::Expired, ..pending.clone() }).await.unwrap();
    assert_eq!(tx.due_invitations(far, 9).await.unwrap(), [(tenant, in_progress.id)]);
}

pub(crate) async fn a_number_is_set_aside_while_its_invitation_is_open(h: &Harness) {
    let tenant = h.world.tenant;
    let number = h.id();
    let open = Invitation { number: Some(number), ..invitation(h, 1) };
    let done = Invitation { number: Some(h.id()), status: InvitationStatus::Completed, ..invitation(h, 2) };
    let mut tx = h.begin().await;
    tx.insert_invitation(tenant, &open).await.unwrap();
    tx.insert_invitation(tenant, &done).await.unwrap();
    assert_eq!(tx.invitation_of_number(tenant, number, START).await.unwrap(), Some(open.id));
    assert_eq!(tx.invitation_of_number(h.other.tenant, number, START).await.unwrap(), None);
    assert_eq!(tx.invitation_of_number(tenant, number, open.expires_at).await.unwrap(), None, "it ended");
    assert_eq!(tx.invitation_of_number(tenant, done.number.unwrap(), START).await.unwrap(), None, "it is final");
}

pub(crate) async fn the_invitations_of_a_client_are_found(h: &Harness) {
    let tenant = h.world.tenant;
    let client = |byte, phone: Option<&str>, email: Option<&str>| Invitation {
        client_phone: phone.map(str::to_owned),
        client_email: email.map(str::to_owned),
        ..invitation(h, byte)
    };
    let (phone, email) = ("+34600111222", "ada@example.org");
    let all = [client(1, Some(phone), None), client(2, None, Some(email)), client(3, Some(phone), Some(email)), client(4, None, None)];
    let mut tx = h.begin().await;
    for invitation in &all {
        tx.insert_invitation(tenant, invitation).await.unwrap();
    }
    let of = |kind, identifier: &str| Recipient { kind, identifier: identifier.to_owned() };
    assert_eq!(tx.invitations_of_client(tenant, &of(AddressKind::Phone, phone)).await.unwrap(), [all[0].id, all[2].id]);
    assert_eq!(tx.invitations_of_client(tenant, &of(AddressKind::Email, email)).await.unwrap(), [all[1].id, all[2].id]);
    assert_eq!(tx.invitations_of_client(tenant, &of(AddressKind::Telegram, phone)).await.unwrap(), []);
    assert_eq!(tx.invitations_of_client(h.other.tenant, &of(AddressKind::Phone, phone)).await.unwrap(), []);
}
