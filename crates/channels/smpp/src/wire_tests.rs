//! PDUs against a codec that is not ours (rusmpp), and against nonsense.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed};
use rusmpp::pdus::SubmitSmResp;
use rusmpp::tlvs::MessageDeliveryRequestTlvValue as Parameter;
use rusmpp::tokio_codec::CommandCodec;
use rusmpp::types::{COctetString, OctetString};
use rusmpp::values::{DataCoding, InterfaceVersion, MessageState, ServiceType, Ton};
use rusmpp::{Command, CommandStatus, Pdu};
use tokio_util::bytes::BytesMut;
use tokio_util::codec::{Decoder as _, Encoder as _};

use super::*;

fn theirs(octets: &[u8]) -> Command {
    let mut buffer = BytesMut::from(octets);
    let command = CommandCodec::new().decode(&mut buffer).unwrap().expect("a whole PDU");
    assert!(buffer.is_empty());
    command
}

fn ours(command: &Command) -> Vec<u8> {
    let mut buffer = BytesMut::new();
    CommandCodec::new().encode(command, &mut buffer).unwrap();
    buffer.to_vec()
}

fn c<const MIN: usize, const MAX: usize>(text: &str) -> COctetString<MIN, MAX> {
    COctetString::from_slice(format!("{text}\0").as_bytes()).unwrap()
}

#[test]
fn a_foreign_codec_reads_binds() {
    let login = Login { system_id: "acme", password: "secret08", system_type: "SMPP", address_range: "123" };
    let mut out = Vec::new();
    bind(&mut out, id::BIND_TRANSCEIVER, 1, &login);
    let command = theirs(&out);
    let Some(Pdu::BindTransceiver(bind)) = command.pdu() else { panic!("{command:?}") };
    assert_eq!(
        (&bind.system_id, &bind.password, &bind.system_type, &bind.address_range),
        (&c("acme"), &c("secret08"), &c("SMPP"), &c("123"))
    );
    assert_eq!((bind.interface_version, command.sequence_number()), (InterfaceVersion::Smpp3_4, 1));
}

fn submitted(body: &Body) -> (rusmpp::pdus::SubmitSm, Vec<u8>) {
    let envelope = Envelope {
        service_type: "CMT",
        source: Cow::Owned(Address { ton: 5, npi: 0, text: "ACME".into() }),
        destination: Address { ton: 1, npi: 1, text: "34600111222".into() },
        validity: "000001000000000R".into(),
        registered_delivery: 1,
        data_coding: 8,
    };
    let mut out = Vec::new();
    submit(&mut out, 77, &envelope, body);
    let command = theirs(&out);
    let Some(Pdu::SubmitSm(submit)) = command.pdu() else { panic!("{command:?}") };
    (submit.clone(), out)
}

#[test]
fn a_foreign_codec_reads_submits() {
    let (submit, out) = submitted(&Body { octets: vec![5, 0, 3, 7, 2, 1, 0, b'a'], has_header: true, ..Body::default() });
    assert_eq!(submit.service_type, ServiceType::new(c("CMT")));
    assert_eq!((submit.source_addr_ton, &submit.source_addr, &submit.destination_addr), (Ton::Alphanumeric, &c("ACME"), &c("34600111222")));
    assert_eq!(submit.data_coding, DataCoding::Ucs2);
    assert_eq!(submit.short_message().as_ref(), [5, 0, 3, 7, 2, 1, 0, b'a']);
    assert!(submit.tlvs().is_empty());
    // esm_class follows the addresses: CMT\0 5 0 ACME\0 1 1 34600111222\0.
    assert_eq!(out[HEADER + 4 + 2 + 5 + 2 + 12], 0x40);

    let sar = Sar { reference: 0x1234, total: 3, sequence: 2 };
    let (submit, _) = submitted(&Body { octets: b"hi".to_vec(), sar: Some(sar), ..Body::default() });
    let parameters: Vec<_> = submit.tlvs().iter().filter_map(|tlv| tlv.value().cloned()).map(|value| format!("{value:?}")).collect();
    assert_eq!(parameters, ["SarMsgRefNum(4660)", "SarTotalSegments(3)", "SarSegmentSeqnum(2)"]);

    let (submit, _) = submitted(&Body { octets: vec![b'x'; 300], payload: true, ..Body::default() });
    assert_eq!((submit.short_message().as_ref().len(), submit.tlvs().len()), (0, 1));
}

#[test]
fn what_a_foreign_codec_writes_is_read() {
    let deliver = rusmpp::pdus::DeliverSm::builder()
        .source_addr_ton(Ton::International)
        .source_addr(c("34600111222"))
        .destination_addr(c("12345"))
        .data_coding(DataCoding::Ucs2)
        .short_message(OctetString::from_slice(&[0, b'a']).unwrap())
        .push_tlv(Parameter::ReceiptedMessageId(c("A1")))
        .push_tlv(Parameter::MessageState(MessageState::Undeliverable))
        .push_tlv(Parameter::SarMsgRefNum(9))
        .push_tlv(Parameter::SarTotalSegments(2))
        .push_tlv(Parameter::SarSegmentSeqnum(1))
        .build();
    let octets = ours(&Command::new(CommandStatus::EsmeRok, 9, deliver));
    let frame = frame(&octets).unwrap().unwrap();
    assert_eq!((frame.header, frame.rest), (Header { id: id::DELIVER_SM, status: 0, sequence: 9 }, &[][..]));
    let found = deliver_sm(id::DELIVER_SM, frame.body).unwrap();
    let expected = DeliverSm {
        source: Address { ton: 1, npi: 0, text: "34600111222".into() },
        destination: Address { ton: 0, npi: 0, text: "12345".into() },
        esm_class: found.esm_class,
        data_coding: 8,
        octets: vec![0, b'a'],
        receipted_id: Some("A1".into()),
        state: Some(5),
        network_error: None,
        sar: Some(Sar { reference: 9, total: 2, sequence: 1 }),
    };
    assert_eq!(found, expected);

    let resp = SubmitSmResp::builder().message_id(c("id7")).build();
    let octets = ours(&Command::new(CommandStatus::EsmeRok, 9, resp));
    assert_eq!(message_id(super::frame(&octets).unwrap().unwrap().body).as_deref(), Some("id7"));
}

#[test]
fn what_breaks_the_rules_is_read_as_far_as_it_goes() {
    assert_eq!(message_id(b"no-nul").as_deref(), Some("no-nul"));
    assert_eq!(message_id(b""), None);
    assert_eq!(message_id(b"\0"), None);
    let mut body = Vec::new();
    body.extend_from_slice(b"\0\x01\x01a sender that is longer than twenty characters\0\x00\x00\xe9\0");
    body.extend_from_slice(&[0x04, 0, 0, 0, 0, 0, 0, 0, 0, 2, b'h', b'i']);
    // An unknown parameter, the network's error, and one that is cut off.
    body.extend_from_slice(&[0x14, 0, 0, 1, 9, 0x04, 0x23, 0, 3, 3, 1, 2, 0x04, 0x27, 0, 9, 1]);
    let found = deliver_sm(id::DELIVER_SM, &body).unwrap();
    assert_eq!(
        (found.destination.text.as_str(), &found.octets[..], found.network_error, found.state),
        ("é", &b"hi"[..], Some((3, 258)), None)
    );
    assert_eq!(deliver_sm(id::DELIVER_SM, &body[..60]), None);
    // data_sm: no length, the text in message_payload.
    let data = b"\0\x01\x01346\0\x00\x00123\0\x00\x00\x08\x04\x24\x00\x02\x00a";
    let found = deliver_sm(id::DATA_SM, data).unwrap();
    assert_eq!((found.data_coding, &found.octets[..]), (8, &b"\0a"[..]));
}

#[test]
fn an_address_that_is_far_too_long_is_none() {
    let body = |source: usize, destination: usize| {
        let address = |length| [&[1, 1][..], &vec![0xE9; length], &[0]].concat();
        [&[0][..], &address(source), &address(destination), &[0, 0, 0, 0, 0, 0, 0, 8, 0, 2, 0, b'a']].concat()
    };
    let read = |source, destination| deliver_sm(id::DELIVER_SM, &body(source, destination)).map(|found| found.octets);
    assert_eq!(read(64, 64).as_deref(), Some(&b"\0a"[..]));
    assert_eq!([read(65, 5), read(5, 65), read(9_000, 5)], [None, None, None]);
}

#[test]
fn frames() {
    let mut out = Vec::new();
    bare(&mut out, Header { id: id::ENQUIRE_LINK, status: 0, sequence: 5 });
    deliver_response(&mut out, Header { id: id::DELIVER_SM | id::ANSWER, status: 0x64, sequence: 6 });
    let first = frame(&out).unwrap().unwrap();
    assert_eq!(first.header, Header { id: id::ENQUIRE_LINK, status: 0, sequence: 5 });
    let second = frame(first.rest).unwrap().unwrap();
    assert_eq!((second.header.status, second.body, second.rest), (0x64, &[0][..], &[][..]));
    assert!((0..16).all(|end| frame(&out[..end]) == Ok(None)));
    for length in [0_u32, 15, 71_681, u32::MAX] {
        out[..4].copy_from_slice(&length.to_be_bytes());
        assert_eq!(frame(&out), Err(Garbage), "{length}");
    }
}

fn config() -> Config {
    Config { rng_seed: RngSeed::Fixed(7), rng_algorithm: RngAlgorithm::ChaCha, failure_persistence: None, ..Config::default() }
}

proptest! {
    #![proptest_config(config())]

    #[test]
    fn nothing_breaks_the_readers(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
        crate::promises::pdu(&octets);
    }
}
