//! Parses receipts: the text form of SMPP 3.4, Appendix B, and equivalent optional parameters. Pure.

use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{Failure, FailureCode};

use crate::wire::DeliverSm;

/// Maximum length of a stored receipt, in characters.
const RAW: usize = 300;
/// Maximum length of the name of a state, in characters.
const NAME: usize = 20;

/// How the ids of receipts differ from those of responses.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum IdFormat {
    /// Not at all.
    Text,
    /// Both are numbers of the first base and the second; padding and case do not count.
    Numbers {
        /// Base of the ids in responses.
        answer: u32,
        /// Base of the ids in receipts.
        receipt: u32,
    },
}

impl IdFormat {
    /// Returns the reference for the id in a response.
    pub(crate) fn of_answer(self, id: &str) -> String {
        match self {
            Self::Text => id.to_owned(),
            Self::Numbers { answer, .. } => number(id, answer),
        }
    }

    /// The reference that a receipt names.
    pub(crate) fn of_receipt(self, id: &str) -> String {
        match self {
            Self::Text => id.to_owned(),
            Self::Numbers { receipt, .. } => number(id, receipt),
        }
    }
}

/// Converts a number to decimal; other ids stay unchanged.
fn number(id: &str, base: u32) -> String {
    let digits = id.strip_prefix("0x").or_else(|| id.strip_prefix("0X")).filter(|_| base == 16).unwrap_or(id);
    u128::from_str_radix(digits, base).map_or_else(|_| id.to_owned(), |number| number.to_string())
}

/// The fields of a receipt's text. Their order, the case of their names, and the separators differ between SMSCs.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Fields<'a> {
    pub(crate) id: Option<&'a str>,
    pub(crate) stat: Option<&'a str>,
    pub(crate) err: Option<&'a str>,
    /// Everything before `text`, which repeats words of the message.
    pub(crate) head: &'a str,
}

impl<'a> Fields<'a> {
    /// Reads `id:… sub:… dlvrd:… submit date:… done date:… stat:… err:… text:…`.
    pub(crate) fn read(text: &'a str) -> Self {
        let head = find(text, "text").map_or(text, |(start, _)| &text[..start]);
        let field = |name| {
            let (_, end) = find(head, name)?;
            Some(head[end..].trim_start().split(|c: char| c.is_whitespace() || c == ',' || c == ';').next()?).filter(|v| !v.is_empty())
        };
        Self { id: field("id"), stat: field("stat"), err: field("err"), head: head.trim_end() }
    }
}

/// Returns where `name:` starts and ends as a separate word.
fn find(text: &str, name: &str) -> Option<(usize, usize)> {
    let bytes = text.as_bytes();
    let begins = |at: usize| at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
    let ends = |at: usize| bytes.get(at + name.len()) == Some(&b':');
    let named = |at: usize| bytes[at..].get(..name.len()).is_some_and(|word| word.eq_ignore_ascii_case(name.as_bytes()));
    (0..bytes.len()).find(|&at| begins(at) && named(at) && ends(at)).map(|at| (at, at + name.len() + 1))
}

/// State of a message (§5.2.28).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum State {
    Enroute,
    Delivered,
    Expired,
    Deleted,
    Undeliverable,
    Accepted,
    Unknown,
    Rejected,
    /// One of no known meaning.
    Unlisted,
}

/// States by number. The first and the last are of SMPP 5.0, 4.7.15: not yet sent, and not sent at all.
const STATES: &[(&str, State)] = &[
    ("SCHEDULED", State::Enroute),
    ("ENROUTE", State::Enroute),
    ("DELIVRD", State::Delivered),
    ("EXPIRED", State::Expired),
    ("DELETED", State::Deleted),
    ("UNDELIV", State::Undeliverable),
    ("ACCEPTD", State::Accepted),
    ("UNKNOWN", State::Unknown),
    ("REJECTD", State::Rejected),
    ("SKIPPED", State::Deleted),
];

/// Delivered, in full: `DELIVERY_FAILED` and `DELIVERING` begin alike.
const DELIVERED: &[&str] = &["DELIV", "DELIVD", "DELIVRD", "DELIVRED", "DELIVERD", "DELIVERED", "READ"];

/// How the other states begin, as SMSCs spell them.
const FAMILIES: &[(State, &[&str])] = &[
    (State::Undeliverable, &["UNDEL", "NOTDEL", "NOT_DEL", "UNROUT", "BLOCK"]),
    (State::Expired, &["EXPIR"]),
    (State::Deleted, &["DELET", "CANCEL", "SKIP"]),
    (State::Rejected, &["REJ"]),
    (State::Unknown, &["UNKN"]),
    (State::Accepted, &["ACCEPT", "ACK"]),
    (State::Enroute, &["ENROUT", "SCHED", "SENT", "SUBM", "BUFF", "QUEUE", "PEND"]),
];

impl State {
    /// Returns the state that a text names in capitals.
    fn named(name: &str) -> Self {
        if DELIVERED.contains(&name) {
            return Self::Delivered;
        }
        if name.contains("FAIL") {
            return Self::Undeliverable;
        }
        let family = FAMILIES.iter().find(|(_, begins)| begins.iter().any(|begin| name.starts_with(begin)));
        family.map_or(Self::Unlisted, |(state, _)| *state)
    }
}

/// A parsed receipt.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Receipt {
    /// The id that it is of, as the receipt spells it.
    pub(crate) id: String,
    /// Status of the message.
    pub(crate) kind: ReceiptKind,
    /// The text, without words of the message.
    pub(crate) raw: Option<String>,
    /// A state of no known meaning.
    pub(crate) unlisted: Option<String>,
}

/// Returns whether `delivery` is a receipt rather than a message (§5.2.12: a delivery receipt, or an intermediate notification). Some SMSCs
/// do not mark receipts, but set parameters that messages do not have. The text of an unmarked message proves nothing: anyone can write it.
pub(crate) fn is_receipt(delivery: &DeliverSm) -> bool {
    matches!(delivery.esm_class & 0x3C, 0x04 | 0x20) || (delivery.receipted_id.is_some() && delivery.state.is_some())
}

/// Parses a receipt with the text `text`. Parameters take precedence over the text. `None` if the message or its state is missing. A state
/// of no known meaning decides nothing.
pub(crate) fn read(delivery: &DeliverSm, text: &str) -> Option<Receipt> {
    let fields = Fields::read(text);
    let id = delivery.receipted_id.as_deref().or(fields.id)?.to_owned();
    let (name, state) = state(delivery, &fields)?;
    let intermediate = delivery.esm_class & 0x3C == 0x20;
    let kind = match state {
        State::Delivered => ReceiptKind::Delivered,
        State::Enroute | State::Accepted | State::Unlisted => ReceiptKind::Sent,
        // It may still be delivered.
        _ if intermediate => ReceiptKind::Sent,
        _ => ReceiptKind::Failed(failure(state, &name, error(delivery, &fields))),
    };
    let raw: String = fields.head.chars().filter(|c| !c.is_control()).take(RAW).collect();
    Some(Receipt { id, kind, raw: Some(raw).filter(|raw| !raw.is_empty()), unlisted: (state == State::Unlisted).then_some(name) })
}

/// Returns the state and its name; `None` if there is none.
fn state(delivery: &DeliverSm, fields: &Fields<'_>) -> Option<(String, State)> {
    if let Some((name, state)) = delivery.state.and_then(|number| STATES.get(usize::from(number))) {
        return Some(((*name).to_owned(), *state));
    }
    let written = fields.stat.map(|stat| stat.chars().take(NAME).collect::<String>().to_ascii_uppercase());
    let name = written.or_else(|| delivery.state.map(|number| number.to_string()))?;
    let state = State::named(&name);
    Some((name, state))
}

/// Returns the network's error; `None` if it is zero.
fn error(delivery: &DeliverSm, fields: &Fields<'_>) -> Option<String> {
    let of_network = delivery.network_error.map(|(_, code)| code.to_string());
    let said = of_network.or_else(|| fields.err.map(|err| err.chars().take(20).collect()));
    said.filter(|error| error.bytes().any(|b| b != b'0'))
}

fn failure(state: State, name: &str, error: Option<String>) -> Failure {
    let (code, what) = match state {
        State::Expired => (FailureCode::Expired, "the SMSC could not deliver it within its validity"),
        State::Deleted => (FailureCode::ProviderRejected, "the SMSC deleted it"),
        State::Rejected => (FailureCode::ProviderRejected, "the SMSC or the recipient's network rejected it"),
        State::Unknown => (FailureCode::Undeliverable, "the SMSC does not know what became of it"),
        _ => (FailureCode::Undeliverable, "it could not be delivered"),
    };
    let because = error.as_ref().map(|error| format!(", error {error}")).unwrap_or_default();
    let provider_code = Some(error.map_or_else(|| name.to_owned(), |error| format!("{name} {error}")));
    Failure { code, provider_code, message: format!("{what} ({name}{because})") }
}

#[cfg(test)]
#[path = "receipt_tests.rs"]
mod tests;
