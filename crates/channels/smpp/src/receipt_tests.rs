//! Receipts as SMSCs write them.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed};

use super::*;

fn config() -> Config {
    Config { rng_seed: RngSeed::Fixed(7), rng_algorithm: RngAlgorithm::ChaCha, failure_persistence: None, ..Config::default() }
}

fn receipt(text: &str) -> Option<Receipt> {
    read(&DeliverSm { esm_class: 0x04, ..DeliverSm::default() }, text)
}

fn failed(kind: &ReceiptKind) -> Option<(FailureCode, &str)> {
    match kind {
        ReceiptKind::Failed(failure) => Some((failure.code, failure.provider_code.as_deref().unwrap())),
        _ => None,
    }
}

#[test]
fn texts_of_smscs() {
    let usual = |stat: &str, err: &str| {
        format!("id:0A1b-9 sub:001 dlvrd:001 submit date:2611210900 done date:2611210901 stat:{stat} err:{err} text:Your code is 12")
    };
    for (stat, err, expected) in [
        ("ENROUTE", "000", None),
        ("ACCEPTD", "000", None),
        ("EXPIRED", "000", Some((FailureCode::Expired, "EXPIRED"))),
        ("DELETED", "000", Some((FailureCode::ProviderRejected, "DELETED"))),
        ("UNDELIV", "034", Some((FailureCode::Undeliverable, "UNDELIV 034"))),
        ("UNKNOWN", "0x1F", Some((FailureCode::Undeliverable, "UNKNOWN 0x1F"))),
        ("REJECTD", "8", Some((FailureCode::ProviderRejected, "REJECTD 8"))),
        ("Undeliverable", "8", Some((FailureCode::Undeliverable, "UNDELIVERABLE 8"))),
    ] {
        let found = receipt(&usual(stat, err)).unwrap();
        assert_eq!((found.id.as_str(), failed(&found.kind)), ("0A1b-9", expected), "{stat}");
        assert!(expected.is_some() || found.kind == ReceiptKind::Sent, "{stat}");
    }
    let found = receipt(&usual("DELIVRD", "000")).unwrap();
    assert_eq!(found.kind, ReceiptKind::Delivered);
    assert!(found.raw.as_deref().unwrap().ends_with("stat:DELIVRD err:000"), "words of the message are not kept: {:?}", found.raw);
    for (text, id) in [
        ("ID:77 STAT:DELIVRD TEXT:id:1 stat:UNDELIV", "77"),
        ("id: 77, stat: DELIVRD; err: 000", "77"),
        ("sub:001\nid:77\nstat:DELIVRD", "77"),
        ("msgid:3 id:77 stat:DELIVRD", "77"),
    ] {
        let found = receipt(text).unwrap();
        assert_eq!((found.id.as_str(), found.kind), (id, ReceiptKind::Delivered), "{text}");
    }
    for text in ["", "id:77", "stat:DELIVRD", "id:77 stat:", "text:id:1 stat:DELIVRD"] {
        assert_eq!(receipt(text), None, "{text}");
    }
}

#[test]
fn states_as_smscs_spell_them() {
    use FailureCode::{Expired, ProviderRejected, Undeliverable};
    let told = |stat: &str| receipt(&format!("id:77 stat:{stat} err:000")).unwrap();
    for stat in ["DELIVERD", "Delivered", "READ"] {
        assert_eq!(told(stat).kind, ReceiptKind::Delivered, "{stat}");
    }
    for (stat, code) in [
        ("UNDELIVERED", Undeliverable),
        ("UNDELIVRD", Undeliverable),
        ("NOTDELIVERED", Undeliverable),
        ("BLOCKED", Undeliverable),
        ("UNROUTABLE", Undeliverable),
        ("DELIVERY_FAILED", Undeliverable),
        ("EXPIRD", Expired),
        ("CANCELLED", ProviderRejected),
        ("REJECT", ProviderRejected),
    ] {
        assert_eq!(failed(&told(stat).kind), Some((code, stat)));
    }
    for stat in ["BUFFERED", "SUBMITTED", "SENT", "ACKED"] {
        assert_eq!((told(stat).kind, told(stat).unlisted), (ReceiptKind::Sent, None), "{stat}");
    }
    for stat in ["WHATEVER", "DELIVERING"] {
        assert_eq!((told(stat).kind, told(stat).unlisted.as_deref()), (ReceiptKind::Sent, Some(stat)), "it decides nothing");
    }
    let numbered = DeliverSm { receipted_id: Some("77".into()), state: Some(200), ..DeliverSm::default() };
    assert_eq!(read(&numbered, "").map(|found| (found.kind, found.unlisted)), Some((ReceiptKind::Sent, Some("200".into()))));
}

#[test]
fn parameters_go_before_the_text() {
    let delivery = DeliverSm { receipted_id: Some("AB".into()), state: Some(5), network_error: Some((3, 11)), ..DeliverSm::default() };
    assert!(is_receipt(&delivery), "even if it is not marked as one");
    let found = read(&delivery, "id:171 stat:DELIVRD err:000").unwrap();
    assert_eq!((found.id.as_str(), failed(&found.kind)), ("AB", Some((FailureCode::Undeliverable, "UNDELIV 11"))));
    let found = read(&DeliverSm { state: Some(77), ..delivery }, "id:171 stat:DELIVRD").unwrap();
    assert_eq!((found.id.as_str(), found.kind, found.raw.as_deref()), ("AB", ReceiptKind::Delivered, Some("id:171 stat:DELIVRD")));
}

#[test]
fn what_is_no_receipt() {
    let marked = |esm_class| is_receipt(&DeliverSm { esm_class, ..DeliverSm::default() });
    assert_eq!([0x00, 0x04, 0x44, 0x20, 0x08, 0x10, 0x40, 0x03].map(marked), [false, true, true, true, false, false, false, false]);
    let found = read(&DeliverSm { esm_class: 0x20, ..DeliverSm::default() }, "id:1 stat:UNDELIV err:001").unwrap();
    assert_eq!(found.kind, ReceiptKind::Sent, "an intermediate notification decides nothing");
}

#[test]
fn ids_of_two_bases() {
    let format = |answer, receipt| IdFormat::Numbers { answer, receipt };
    for (format, answer, receipt) in [
        (IdFormat::Text, "0A1B", "0A1B"),
        (format(16, 10), "0A1B", "2587"),
        (format(16, 10), "a1b", "0000002587"),
        (format(10, 16), "2587", "0x0A1B"),
        (format(16, 16), "00a1B", "A1b"),
        (format(10, 10), "02587", "2587"),
        // No numbers: left alone.
        (format(16, 10), "4f2c-77", "4f2c-77"),
    ] {
        assert_eq!(format.of_answer(answer), format.of_receipt(receipt), "{format:?} {answer} {receipt}");
    }
    assert_ne!(IdFormat::Text.of_answer("0A1B"), IdFormat::Text.of_receipt("a1b"));
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn what_is_written_is_read(
        id in "[0-9A-Za-z_.-]{1,64}",
        number in 1_u8..=8,
        err in "[0-9]{3}",
        words in "\\PC{0,20}",
    ) {
        let name = STATES[usize::from(number)].0;
        let text = format!("id:{id} sub:001 dlvrd:001 submit date:2611210900 done date:2611210901 stat:{name} err:{err} text:{words}");
        let by_text = receipt(&text);
        let by_parameters = read(&DeliverSm { receipted_id: Some(id.clone()), state: Some(number), ..DeliverSm::default() }, &text);
        prop_assert_eq!(&by_text, &by_parameters);
        let found = by_text.unwrap();
        prop_assert_eq!(found.id, id);
        let end = format!("err:{err}");
        prop_assert!(found.raw.unwrap().ends_with(&end));
    }

    #[test]
    fn nothing_breaks_the_reader(text in any::<String>(), state: Option<u8>, esm_class: u8) {
        crate::promises::receipt(&text, state, esm_class);
    }
}
