//! Encodes and decodes PDUs (SMPP 3.4, issue 1.2, <https://smpp.org/SMPP_v3_4_Issue1_2.pdf>). Pure.
//!
//! Writes directly into the outgoing buffer, and parses leniently: an unknown parameter, or a field somewhat longer than allowed, is no
//! reason to refuse a message that its sender cannot change.

use std::borrow::Cow;

/// `command_id` (§5.1.2.1).
pub(crate) mod id {
    pub(crate) const GENERIC_NACK: u32 = 0x8000_0000;
    pub(crate) const BIND_RECEIVER: u32 = 0x0000_0001;
    pub(crate) const BIND_TRANSMITTER: u32 = 0x0000_0002;
    pub(crate) const SUBMIT_SM: u32 = 0x0000_0004;
    pub(crate) const DELIVER_SM: u32 = 0x0000_0005;
    pub(crate) const UNBIND: u32 = 0x0000_0006;
    pub(crate) const BIND_TRANSCEIVER: u32 = 0x0000_0009;
    pub(crate) const OUTBIND: u32 = 0x0000_000B;
    pub(crate) const ENQUIRE_LINK: u32 = 0x0000_0015;
    pub(crate) const ALERT_NOTIFICATION: u32 = 0x0000_0102;
    pub(crate) const DATA_SM: u32 = 0x0000_0103;
    /// The bit that distinguishes a response from its request.
    pub(crate) const ANSWER: u32 = 0x8000_0000;
}

/// Tags of optional parameters (§5.3.2).
mod tag {
    pub(super) const RECEIPTED_MESSAGE_ID: u16 = 0x001E;
    pub(super) const SAR_MSG_REF_NUM: u16 = 0x020C;
    pub(super) const SAR_TOTAL_SEGMENTS: u16 = 0x020E;
    pub(super) const SAR_SEGMENT_SEQNUM: u16 = 0x020F;
    pub(super) const NETWORK_ERROR_CODE: u16 = 0x0423;
    pub(super) const MESSAGE_PAYLOAD: u16 = 0x0424;
    pub(super) const MESSAGE_STATE: u16 = 0x0427;
}

/// The version that is spoken (§5.2.4).
const VERSION: u8 = 0x34;
/// Octets of a header.
const HEADER: usize = 16;
/// The longest PDU that is read, in octets: a message_payload of 64 KiB with everything around it.
const LONGEST: usize = 70 * 1024;
/// The longest address that is read, in octets without NUL: as in SMPP 5.0 §4.2.1.1. Version 3.4 allows 20.
const ADDRESS: usize = 64;

/// The header of every PDU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Header {
    /// Command.
    pub(crate) id: u32,
    /// How it went; 0 in requests.
    pub(crate) status: u32,
    /// Pairs a response with its request.
    pub(crate) sequence: u32,
}

/// A PDU and the rest of the buffer.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Frame<'a> {
    pub(crate) header: Header,
    pub(crate) body: &'a [u8],
    /// The rest of the buffer.
    pub(crate) rest: &'a [u8],
}

/// The stream is not SMPP (any more); it cannot be recovered.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Garbage;

/// Returns the first complete PDU of `buffer`: its header, its body, and the rest. `None` if it is incomplete.
pub(crate) fn frame(buffer: &[u8]) -> Result<Option<Frame<'_>>, Garbage> {
    let Some(header) = buffer.first_chunk::<HEADER>() else { return Ok(None) };
    let word = |at: usize| u32::from_be_bytes([header[at], header[at + 1], header[at + 2], header[at + 3]]);
    let length = word(0) as usize;
    if !(HEADER..=LONGEST).contains(&length) {
        return Err(Garbage);
    }
    let header = Header { id: word(4), status: word(8), sequence: word(12) };
    Ok(buffer.split_at_checked(length).map(|(pdu, rest)| Frame { header, body: &pdu[HEADER..], rest }))
}

/// Writes a PDU with the body that `body` writes.
fn pdu(out: &mut Vec<u8>, header: Header, body: impl FnOnce(&mut Vec<u8>)) {
    let start = out.len();
    out.extend_from_slice(&[0; 4]);
    for word in [header.id, header.status, header.sequence] {
        out.extend_from_slice(&word.to_be_bytes());
    }
    body(out);
    let length = (out.len() - start) as u32;
    out[start..start + 4].copy_from_slice(&length.to_be_bytes());
}

fn c_string(out: &mut Vec<u8>, text: &str) {
    out.extend_from_slice(text.as_bytes());
    out.push(0);
}

fn parameter(out: &mut Vec<u8>, tag: u16, values: &[&[u8]]) {
    let length: usize = values.iter().map(|v| v.len()).sum();
    out.extend_from_slice(&tag.to_be_bytes());
    out.extend_from_slice(&(length as u16).to_be_bytes());
    values.iter().for_each(|value| out.extend_from_slice(value));
}

/// Writes a PDU without a body: enquire_link, unbind, their responses, generic_nack.
pub(crate) fn bare(out: &mut Vec<u8>, header: Header) {
    pdu(out, header, |_| {});
}

/// Writes a deliver_sm_resp or data_sm_resp with an empty message_id (§4.6.2).
pub(crate) fn deliver_response(out: &mut Vec<u8>, header: Header) {
    pdu(out, header, |out| out.push(0));
}

/// Credentials of a bind (§4.1).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Login<'a> {
    pub(crate) system_id: &'a str,
    pub(crate) password: &'a str,
    /// Kind of system; mostly empty.
    pub(crate) system_type: &'a str,
    /// Addresses that it serves; mostly empty.
    pub(crate) address_range: &'a str,
}

/// Writes a bind of the kind `command`.
pub(crate) fn bind(out: &mut Vec<u8>, command: u32, sequence: u32, login: &Login<'_>) {
    pdu(out, Header { id: command, status: 0, sequence }, |out| {
        for text in [login.system_id, login.password, login.system_type] {
            c_string(out, text);
        }
        out.extend_from_slice(&[VERSION, 0, 0]);
        c_string(out, login.address_range);
    });
}

/// An address with its type of number and numbering plan (§5.2.5, §5.2.6).
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub(crate) struct Address {
    /// Type of number.
    pub(crate) ton: u8,
    /// Numbering plan.
    pub(crate) npi: u8,
    /// The address; ASCII without NUL.
    pub(crate) text: String,
}

/// How one of several parts is marked.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Sar {
    /// The reference shared by all segments.
    pub(crate) reference: u16,
    /// How many there are.
    pub(crate) total: u8,
    /// Which one it is, from 1.
    pub(crate) sequence: u8,
}

/// Fields shared by all segments of a message (§4.4.1).
#[derive(Debug)]
pub(crate) struct Envelope<'a> {
    /// Kind of service; mostly empty.
    pub(crate) service_type: &'a str,
    /// From.
    pub(crate) source: Cow<'a, Address>,
    /// To.
    pub(crate) destination: Address,
    /// Validity period (§7.1.1); can be empty.
    pub(crate) validity: String,
    /// Which receipts are asked for (§5.2.17).
    pub(crate) registered_delivery: u8,
    /// The alphabet (§5.2.19).
    pub(crate) data_coding: u8,
}

/// One part, or a whole message.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct Body {
    /// User data, with its header if there is one.
    pub(crate) octets: Vec<u8>,
    /// Whether it starts with a header (§5.2.12: UDHI).
    pub(crate) has_header: bool,
    /// Marked by optional parameters instead of a header.
    pub(crate) sar: Option<Sar>,
    /// Whether it is sent as message_payload.
    pub(crate) payload: bool,
}

/// Writes a submit_sm.
pub(crate) fn submit(out: &mut Vec<u8>, sequence: u32, envelope: &Envelope<'_>, body: &Body) {
    pdu(out, Header { id: id::SUBMIT_SM, status: 0, sequence }, |out| {
        c_string(out, envelope.service_type);
        for address in [&*envelope.source, &envelope.destination] {
            out.extend_from_slice(&[address.ton, address.npi]);
            c_string(out, &address.text);
        }
        // esm_class, protocol_id, priority_flag, schedule_delivery_time
        out.extend_from_slice(&[if body.has_header { 0x40 } else { 0 }, 0, 0, 0]);
        c_string(out, &envelope.validity);
        // replace_if_present_flag, data_coding, sm_default_msg_id
        out.extend_from_slice(&[envelope.registered_delivery, 0, envelope.data_coding, 0]);
        if body.payload {
            out.push(0);
            parameter(out, tag::MESSAGE_PAYLOAD, &[&body.octets]);
        } else {
            out.push(body.octets.len() as u8);
            out.extend_from_slice(&body.octets);
        }
        if let Some(sar) = body.sar {
            parameter(out, tag::SAR_MSG_REF_NUM, &[&sar.reference.to_be_bytes()]);
            parameter(out, tag::SAR_TOTAL_SEGMENTS, &[&[sar.total]]);
            parameter(out, tag::SAR_SEGMENT_SEQNUM, &[&[sar.sequence]]);
        }
    });
}

/// Reads the fields of a PDU one after the other.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn octets(&mut self, count: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(count)?;
        self.0 = rest;
        Some(taken)
    }

    fn octet(&mut self) -> Option<u8> {
        self.octets(1).map(|o| o[0])
    }

    fn word(&mut self) -> Option<usize> {
        self.octets(2).map(|o| usize::from(u16::from_be_bytes([o[0], o[1]])))
    }

    fn c_string(&mut self) -> Option<String> {
        let end = self.0.iter().position(|&b| b == 0)?;
        let text = latin1(self.octets(end)?);
        self.octets(1)?;
        Some(text)
    }

    fn address(&mut self) -> Option<Address> {
        let address = Address { ton: self.octet()?, npi: self.octet()?, text: self.c_string()? };
        // Longer ones are not addresses, and would not fit an index of the database. Each octet is one character.
        (address.text.chars().count() <= ADDRESS).then_some(address)
    }

    fn parameter(&mut self) -> Option<(u16, &'a [u8])> {
        let tag = self.word()? as u16;
        let length = self.word()?;
        Some((tag, self.octets(length)?))
    }
}

/// Octets as ASCII is meant to be; others as Latin-1 has them, so that nothing is lost.
pub(crate) fn latin1(octets: &[u8]) -> String {
    octets.iter().map(|&b| char::from(b)).collect()
}

/// Text up to NUL, or to the end: some forget the NUL of a string that is the last, or a parameter.
fn text(octets: &[u8]) -> String {
    latin1(octets.split(|&b| b == 0).next().unwrap_or_default())
}

/// The message_id of a submit_sm_resp (§4.4.2); also one that lacks its NUL. `None` if there is none.
pub(crate) fn message_id(body: &[u8]) -> Option<String> {
    Some(text(body)).filter(|id| !id.is_empty())
}

/// A deliver_sm (§4.6.1) or data_sm (§4.7.1) of the SMSC.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub(crate) struct DeliverSm {
    /// From.
    pub(crate) source: Address,
    /// To.
    pub(crate) destination: Address,
    /// Mode, type and features (§5.2.12).
    pub(crate) esm_class: u8,
    /// The alphabet.
    pub(crate) data_coding: u8,
    /// User data, its header included.
    pub(crate) octets: Vec<u8>,
    /// The id that a receipt is of.
    pub(crate) receipted_id: Option<String>,
    /// State of the message (§5.2.28).
    pub(crate) state: Option<u8>,
    /// The network's error: type and code (§5.3.2.31).
    pub(crate) network_error: Option<(u8, u16)>,
    /// Which part of a message it is.
    pub(crate) sar: Option<Sar>,
}

/// Reads the body of a deliver_sm, or of a data_sm.
pub(crate) fn deliver_sm(command: u32, body: &[u8]) -> Option<DeliverSm> {
    let mut fields = Cursor(body);
    fields.c_string()?; // service_type
    let mut found =
        DeliverSm { source: fields.address()?, destination: fields.address()?, esm_class: fields.octet()?, ..DeliverSm::default() };
    if command == id::DATA_SM {
        fields.octet()?; // registered_delivery
        found.data_coding = fields.octet()?;
    } else {
        fields.octets(2)?; // protocol_id, priority_flag
        fields.c_string()?; // schedule_delivery_time
        fields.c_string()?; // validity_period
        fields.octets(2)?; // registered_delivery, replace_if_present_flag
        found.data_coding = fields.octet()?;
        fields.octet()?; // sm_default_msg_id
        let length = usize::from(fields.octet()?);
        found.octets = fields.octets(length)?.to_vec();
    }
    let mut sar = (None, None, None);
    // Malformed parameters end the parsing: the message itself is complete.
    while let Some((tag, value)) = fields.parameter() {
        let number = value.iter().take(8).fold(0_u64, |number, &b| number << 8 | u64::from(b));
        match tag {
            tag::RECEIPTED_MESSAGE_ID => found.receipted_id = Some(text(value)).filter(|id| !id.is_empty()),
            tag::MESSAGE_STATE => found.state = u8::try_from(number).ok(),
            tag::NETWORK_ERROR_CODE => found.network_error = value.first_chunk().map(|&[kind, a, b]| (kind, u16::from_be_bytes([a, b]))),
            tag::MESSAGE_PAYLOAD if !value.is_empty() => found.octets = value.to_vec(),
            tag::SAR_MSG_REF_NUM => sar.0 = u16::try_from(number).ok(),
            tag::SAR_TOTAL_SEGMENTS => sar.1 = u8::try_from(number).ok(),
            tag::SAR_SEGMENT_SEQNUM => sar.2 = u8::try_from(number).ok(),
            _ => {}
        }
    }
    if let (Some(reference), Some(total), Some(sequence)) = sar {
        found.sar = Some(Sar { reference, total, sequence });
    }
    Some(found)
}

#[cfg(test)]
#[path = "wire_tests.rs"]
mod tests;
