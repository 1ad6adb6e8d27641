//! Invariants of outbound texts and of all inbound data, for property tests and fuzz targets. Panics on a violation.

use nuncio_domain::sms::{Encoding, measure};

use crate::parts::{Marking, bodies, read};
use crate::receipt::{self, Fields};
use crate::wire::{Body, DeliverSm, Sar, deliver_sm, frame, id, message_id};

/// Octets of the header of a PDU (SMPP 3.4 §3.2).
const HEADER: usize = 16;
const ESCAPE: u8 = 0x1B;

/// Takes the header off user data that has one.
fn strip(body: &Body) -> (Option<Sar>, Vec<u8>) {
    let delivery = DeliverSm { esm_class: if body.has_header { 0x40 } else { 0 }, octets: body.octets.clone(), ..DeliverSm::default() };
    let (sar, octets) = delivery.body();
    (sar, octets.to_vec())
}

/// Reads the bodies as a phone does, and checks that each can be read alone.
fn reassemble(encoding: Encoding, bodies: &[Body]) -> String {
    let coding = match encoding {
        Encoding::Gsm7 => 0,
        Encoding::Ucs2 => 8,
    };
    bodies.iter().fold(String::new(), |text, body| {
        let (_, octets) = strip(body);
        assert!(!matches!((encoding, octets.last()), (Encoding::Gsm7, Some(&ESCAPE))), "an escape was cut");
        assert!(encoding == Encoding::Gsm7 || octets.len() % 2 == 0, "half a unit");
        text + &read(coding, &octets)
    })
}

/// A text is sent in full, in as many segments as were priced, each of which fits and is numbered. The API rejects NUL. Byte order marks are
/// not read where a segment begins.
pub fn segmentation(text: &str, reference: u16) {
    let unmarked = |text: &str| text.replace('\u{feff}', "");
    let measure = measure(text);
    for marking in [Marking::Header, Marking::WideHeader, Marking::Sar] {
        let Ok((encoding, bodies)) = bodies(text, marking, reference) else {
            assert!(measure.segments > 255, "{} parts can be numbered", measure.segments);
            continue;
        };
        assert_eq!((encoding, bodies.len()), (measure.encoding, usize::from(measure.segments)), "what was priced");
        assert_eq!(unmarked(&reassemble(encoding, &bodies)), unmarked(text));
        for (index, body) in bodies.iter().enumerate() {
            // 140 octets of user data over the air, septets packed; a header takes whole septets.
            let header = if body.has_header {
                usize::from(body.octets[0]) + 1
            } else if body.sar.is_some() {
                6
            } else {
                0
            };
            let units = body.octets.len() - if body.has_header { header } else { 0 };
            let room = match encoding {
                Encoding::Gsm7 => (140 - header) * 8 / 7,
                Encoding::Ucs2 => 140 - header,
            };
            assert!(units <= room, "{units} units where {room} fit");
            let marked = if body.has_header { strip(body).0 } else { body.sar };
            let low = if body.has_header && header == 6 { reference & 0xFF } else { reference };
            let expected = Sar { reference: low, total: bodies.len() as u8, sequence: index as u8 + 1 };
            assert_eq!(marked, (bodies.len() > 1).then_some(expected));
        }
    }
    let (encoding, whole) = bodies(text, Marking::Payload, reference).expect("one body needs no numbers");
    assert_eq!((whole.len(), whole[0].payload), (1, measure.segments > 1));
    assert_eq!(unmarked(&reassemble(encoding, &whole)), unmarked(text));
}

/// A receipt is parsed or ignored; a parsed one has an id.
pub fn receipt(text: &str, state: Option<u8>, esm_class: u8) {
    let fields = Fields::read(text);
    assert!(text.starts_with(fields.head));
    let found = receipt::read(&DeliverSm { esm_class, state, ..DeliverSm::default() }, text);
    assert!(found.is_none_or(|receipt| !receipt.id.is_empty()));
}

/// Octets of an SMSC are read or refused, to the last step.
pub fn pdu(octets: &[u8]) {
    if let Ok(Some(frame)) = frame(octets) {
        assert_eq!(HEADER + frame.body.len() + frame.rest.len(), octets.len());
        body(frame.header.id, frame.body);
    }
    for command in [id::DELIVER_SM, id::DATA_SM] {
        body(command, octets);
    }
    assert!(message_id(octets).is_none_or(|id| !id.is_empty()));
}

fn body(command: u32, octets: &[u8]) {
    let Some(delivery) = deliver_sm(command, octets) else { return };
    assert!(delivery.octets.len() <= octets.len());
    let (_, body) = delivery.body();
    let text = read(delivery.data_coding, body);
    assert!(!text.contains('\0'), "databases cannot keep NUL in a text");
    let receipt = receipt::read(&delivery, &text);
    assert!(receipt.is_none_or(|receipt| !receipt.id.is_empty()));
}
