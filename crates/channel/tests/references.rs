//! Ids of providers, from responses and from receipts.

use nuncio_channel::{Origin, Outcome, ReceiptTarget};
use nuncio_domain::id::Id as _;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{Channel, ConnectionId, TenantId};

fn of_receipt(id: &str) -> String {
    let origin = Origin { tenant: TenantId(3), connection: ConnectionId::from_uuid(Default::default()), channel: Channel::Sms };
    match origin.reference(id.to_owned()) {
        ReceiptTarget::Reference { reference, .. } => reference,
        ReceiptTarget::Attempt { .. } => unreachable!(),
    }
}

#[test]
fn an_id_of_any_length_is_the_same_in_response_and_receipt_and_fits_the_store() {
    let ids = ["id1".to_owned(), "x".repeat(255), "x".repeat(256), "é".repeat(4_500), "é".repeat(30_000) + "!"];
    let failure = Failure::own(FailureCode::UnknownOutcome, "the rest was not answered");
    let accepted = Outcome::Accepted { refs: ids.to_vec(), cost: None };
    let unknown = Outcome::Unknown { failure, refs: ids.to_vec() };
    for outcome in [accepted, unknown].map(Outcome::with_bounded_references) {
        let (Outcome::Accepted { refs, .. } | Outcome::Unknown { refs, .. }) = outcome else { unreachable!() };
        assert_eq!(refs, ids.each_ref().map(|id| of_receipt(id)));
        assert_eq!(refs[..2], ids[..2], "short ones stay");
        assert!(refs.iter().all(|id| id.len() <= 255));
    }
}
