//! Parses delivery reports (RFC 3464) and complaints (RFC 5965). Pure.

use mail_parser::{Message, MessagePart, PartType};
use nuncio_domain::MessageId;
use nuncio_domain::message::{Failure, FailureCode};

use crate::parts::{clean, content, is, own};
use crate::refusal;

/// Maximum characters of a report's text stored in a failure.
const TEXT: usize = 500;
/// Maximum characters of a report's entry stored unchanged.
const RAW: usize = 4 * 1_024;
/// Entries of a report that are read.
const ENTRIES: usize = 20;

/// A report's entry for one recipient.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Delivery {
    /// Action reported for the email.
    pub fate: DsnAction,
    /// The recipient of the entry: another one than the email's if that is an alias.
    pub recipient: Option<String>,
    /// The entry as received.
    pub raw: String,
}

/// Action of a delivery report (RFC 3464).
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DsnAction {
    /// Delivered, or relayed to where nothing more is reported.
    Delivered,
    /// It is on its way still.
    Delayed,
    /// It did not arrive.
    Failed {
        failure: Failure,
        /// Whether the mailbox does not exist, so that later emails cannot be delivered either.
        hard: bool,
    },
}

/// A complaint about an email.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Complaint {
    /// Candidates for the email's return path, most trustworthy first.
    pub return_paths: Vec<String>,
    /// The message, by the email's `Message-ID`.
    pub message: Option<MessageId>,
}

/// A report about emails of ours.
pub(crate) enum Report {
    /// Of delivery, with one entry for each recipient.
    Deliveries(Vec<Delivery>),
    Complaint(Complaint),
    /// Of something else.
    Other,
}

type Fields = Vec<(String, String)>;

/// Parses a report, if the email is one.
pub(crate) fn read(message: &Message<'_>) -> Option<Report> {
    let of = |kind: &str| message.parts.iter().find(|part| is(part, "message", kind));
    if let Some(part) = of("feedback-report") {
        return Some(complaint(message, part));
    }
    let Some(part) = of("delivery-status").or_else(|| of("global-delivery-status")) else {
        // A receipt for reading (RFC 8098): the email arrived, and may have been read.
        return of("disposition-notification").or_else(|| of("global-disposition-notification")).map(|_| Report::Other);
    };
    let entries = groups(&String::from_utf8_lossy(&content(message, part)));
    let deliveries: Vec<Delivery> = entries.into_iter().filter_map(|(fields, raw)| delivery(&fields, &raw)).take(ENTRIES).collect();
    Some(if deliveries.is_empty() { Report::Other } else { Report::Deliveries(deliveries) })
}

/// Returns groups of fields, separated by empty lines, each with its text. Names are in lower case, folded values in one line.
fn groups(text: &str) -> Vec<(Fields, String)> {
    let text = text.replace("\r\n", "\n");
    let read = |group: &str| -> Fields {
        let mut fields = Fields::new();
        for line in group.lines() {
            match (line.starts_with([' ', '\t']), fields.last_mut(), line.split_once(':')) {
                (true, Some((_, value)), _) => {
                    value.push(' ');
                    value.push_str(line.trim());
                }
                (false, _, Some((name, value))) => fields.push((name.trim().to_ascii_lowercase(), value.trim().to_owned())),
                _ => {}
            }
        }
        fields
    };
    text.split("\n\n").map(|group| (read(group), clean(group.trim(), RAW))).filter(|(fields, _)| !fields.is_empty()).collect()
}

fn get<'a>(fields: &'a Fields, name: &str) -> Option<&'a str> {
    fields.iter().find(|(known, _)| known == name).map(|(_, value)| value.trim())
}

/// One recipient's entry; the first group of a report is about the report itself and has neither action nor status. Some servers write only
/// the status.
fn delivery(fields: &Fields, raw: &str) -> Option<Delivery> {
    let reported = get(fields, "status").and_then(status);
    // The word can be followed by comments.
    let action = get(fields, "action").and_then(|action| action.split([' ', '(', ';']).next()).unwrap_or_default().to_ascii_lowercase();
    let action = match (action.as_str(), reported) {
        ("", Some([2, ..])) => "delivered",
        ("", Some([4, ..])) => "delayed",
        ("", Some(_)) => "failed",
        (action, _) => action,
    };
    let recipient = get(fields, "final-recipient").and_then(|field| field.split_once(';')).map(|(_, address)| bare(address));
    let fate = match action {
        "delivered" | "relayed" | "expanded" => DsnAction::Delivered,
        "delayed" => DsnAction::Delayed,
        "failed" => {
            let said = get(fields, "diagnostic-code").unwrap_or_default();
            // "smtp; 550 5.1.1 No such user"
            let said = said.split_once(';').map_or(said, |(_, text)| text).trim();
            let status = precise_status(reported, said);
            let (code, hard) = meaning(status, said);
            let message = if said.is_empty() { "the mail came back".to_owned() } else { clean(said, TEXT) };
            let provider_code = status.map(|[a, b, c]| format!("{a}.{b}.{c}"));
            DsnAction::Failed { failure: Failure { code, provider_code, message }, hard }
        }
        _ => return None,
    };
    Some(Delivery { fate, recipient, raw: raw.to_owned() })
}

/// Takes the status of the mail server's reply, "550 5.1.1 No such user", if the report's own has no detail: Exim only writes 5.0.0.
fn precise_status(reported: Option<[u16; 3]>, reply: &str) -> Option<[u16; 3]> {
    if !matches!(reported, None | Some([_, 0, 0])) {
        return reported;
    }
    let replied = reply.split_at_checked(3).filter(|(code, _)| code.parse::<u16>().is_ok());
    replied.and_then(|(_, text)| status(text.strip_prefix([' ', '-'])?)).or(reported)
}

/// Parses a status such as 5.1.1 (RFC 3463), which can be followed by a comment.
fn status(text: &str) -> Option<[u16; 3]> {
    let mut numbers = text.split([' ', '(']).next()?.split('.').map(|number| number.parse::<u16>().ok());
    let status = [numbers.next()??, numbers.next()??, numbers.next()??];
    (numbers.next().is_none() && matches!(status[0], 2 | 4 | 5)).then_some(status)
}

/// Returns the failure code of a status that came with `text`, and whether the mailbox does not exist.
fn meaning(status: Option<[u16; 3]>, text: &str) -> (FailureCode, bool) {
    let permanent = status.filter(|status| status[0] == 5);
    match permanent.and_then(|status| refusal::meaning(status, text)) {
        Some(meaning) => meaning,
        None if matches!(permanent, Some([_, 7, _])) => (FailureCode::ContentRejected, false),
        None => (FailureCode::Undeliverable, false),
    }
}

/// Feedback types that are complaints of people. `not-spam` is the opposite, `auth-failure` is about our DNS.
const COMPLAINTS: &[&str] = &["abuse", "fraud", "virus", "other", "miscategorized", "opt-out", "opt-out-list"];

fn complaint(message: &Message<'_>, report: &MessagePart<'_>) -> Report {
    let fields: Fields = groups(&String::from_utf8_lossy(&content(message, report))).into_iter().flat_map(|(fields, _)| fields).collect();
    let kind = get(&fields, "feedback-type").unwrap_or("abuse").to_ascii_lowercase();
    if !COMPLAINTS.contains(&kind.as_str()) {
        return Report::Other;
    }
    let mut complaint = Complaint::default();
    complaint.return_paths.extend(get(&fields, "original-mail-from").map(bare));
    for part in &message.parts {
        if let PartType::Message(mail) = &part.body {
            complaint.return_paths.extend(mail.return_address().map(bare));
            complaint.message = complaint.message.or_else(|| mail.message_id().and_then(own));
        } else if is(part, "text", "rfc822-headers") {
            let head = groups(&String::from_utf8_lossy(&content(message, part)));
            let Some((head, _)) = head.first() else { continue };
            complaint.return_paths.extend(get(head, "return-path").map(bare));
            complaint.message = complaint.message.or_else(|| get(head, "message-id").and_then(own));
        }
    }
    Report::Complaint(complaint)
}

fn bare(address: &str) -> String {
    address.trim().trim_start_matches('<').trim_end_matches('>').to_owned()
}

#[cfg(test)]
#[path = "report_tests.rs"]
mod tests;
