//! Reads and writes files of suppressions: CSV, NDJSON, or one recipient per line.

use nuncio_domain::{Channel, Result, address, contact::SuppressionReason};
use serde_json::Value;

use super::file::{FileRow, channel_of, entries, json_lines, typed};
use super::suppressions::CreateSuppression;
use crate::base::csv::{quoted, records, unquoted};

/// Header line of an export.
pub const HEAD: &str = "identifier,channel,reason,senderId,source,createdAt\r\n";

/// Returns the row of a suppression, given as its JSON, below [`HEAD`].
pub fn csv_line(suppression: &Value) -> String {
    let cell = |name: &str| quoted(suppression[name].as_str().unwrap_or_default());
    HEAD.trim_end().split(',').map(cell).collect::<Vec<_>>().join(",") + "\r\n"
}

/// Reads suppressions in the columns of an export; unknown columns are ignored. Without a header line, each line is a recipient.
/// `countries` are those whose phone numbers may be in national format.
pub fn read_csv(file: &[u8], countries: &[String]) -> Result<Vec<FileRow<CreateSuppression>>> {
    let mut rows = records(file)?;
    let lower = |cells: &[String]| cells.iter().map(|cell| cell.to_lowercase()).collect::<Vec<_>>();
    let head = rows.first().map(|(_, cells)| lower(cells)).filter(|head| head.iter().any(|column| recipient_of(column).is_some()));
    if head.is_some() {
        rows.remove(0);
    }
    let head = head.unwrap_or_else(|| vec!["identifier".to_owned()]);
    let of_row = |(line, cells): (u64, Vec<String>)| match read(&head, &cells, countries) {
        Ok(found) => found.into_iter().map(|suppression| (line, Ok(suppression))).collect(),
        Err(reason) => vec![(line, Err(reason))],
    };
    Ok(rows.into_iter().flat_map(of_row).collect())
}

/// Reads suppressions as bodies of `POST /v1/suppressions`, one per line.
pub fn read_ndjson(text: &str, countries: &[String]) -> Vec<FileRow<CreateSuppression>> {
    let written = |suppression: CreateSuppression| {
        let identifier = identifier(suppression.channel, &suppression.identifier, countries)?;
        Ok(CreateSuppression { identifier, ..suppression })
    };
    json_lines(text).into_iter().map(|(line, suppression)| (line, suppression.and_then(written))).collect()
}

/// Returns whether a column has recipients, and their channel if its name says it.
fn recipient_of(column: &str) -> Option<Option<Channel>> {
    match column {
        "identifier" | "recipient" | "to" | "address" => Some(None),
        other => channel_of(other).map(Some),
    }
}

/// Reads the suppressions of a row: one for each recipient in it.
fn read(head: &[String], cells: &[String], countries: &[String]) -> std::result::Result<Vec<CreateSuppression>, String> {
    if head.len() != cells.len() {
        return Err(format!("has {} cells; must have {}", cells.len(), head.len()));
    }
    let row = || head.iter().map(String::as_str).zip(cells.iter().map(|cell| unquoted(cell)));
    let cell = |names: &[&str]| row().find(|(column, text)| names.contains(column) && !text.is_empty()).map(|(_, text)| text);
    let channel = cell(&["channel"]).map(|text| word("channel", text, Channel::parse, Channel::ALL)).transpose()?;
    let reason = cell(&["reason"]).map(|text| word("reason", text, SuppressionReason::parse, SuppressionReason::ALL)).transpose()?;
    let sender_id = cell(&["senderid", "sender_id"]).map(str::to_owned);
    let mut found = Vec::new();
    for (column, text) in row() {
        let Some(of_column) = recipient_of(column) else { continue };
        for entry in entries(text) {
            let channel = of_column.or(channel);
            let identifier = identifier(channel, entry, countries)?;
            found.push(CreateSuppression { identifier, channel, sender_id: sender_id.clone(), reason });
        }
    }
    if found.is_empty() { Err("has no recipient".to_owned()) } else { Ok(found) }
}

/// Returns a recipient as a person typed it. Without a channel, what looks like a phone number is one.
fn identifier(channel: Option<Channel>, text: &str, countries: &[String]) -> std::result::Result<String, String> {
    match channel {
        Some(channel) => typed(channel, text, countries),
        None => Ok(address::typed_phone(text, countries).unwrap_or_else(|_| text.to_owned())),
    }
}

fn word<T: std::fmt::Display>(column: &str, text: &str, parse: fn(&str) -> Option<T>, all: &[T]) -> std::result::Result<T, String> {
    let names = || all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
    parse(&text.to_lowercase()).ok_or_else(|| format!("{column} is {text:?}; must be one of {}", names()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shown(rows: Vec<FileRow<CreateSuppression>>) -> Vec<String> {
        let show = |(line, row): FileRow<CreateSuppression>| match row {
            Ok(CreateSuppression { identifier, channel, sender_id, reason }) => {
                let words =
                    [channel.map(Channel::as_str), reason.map(SuppressionReason::as_str), sender_id.as_deref()].map(|w| w.unwrap_or("-"));
                format!("{line} {identifier} {}", words.join(" "))
            }
            Err(reason) => format!("{line}: {reason}"),
        };
        rows.into_iter().map(show).collect()
    }

    #[test]
    fn a_list_needs_no_header() {
        let read = |text: &str| shown(read_csv(text.as_bytes(), &["ES".to_owned()]).expect("UTF-8"));
        assert_eq!(
            read("600 111 222\n\nana@example.org\nnonsense\n"),
            ["1 +34600111222 - - -", "3 ana@example.org - - -", "4 nonsense - - -"]
        );
        assert_eq!(read("+34600111222\nana@example.org,opt_out\n"), ["1 +34600111222 - - -", "2: has 2 cells; must have 1"]);
        assert!(read("").is_empty());
    }

    #[test]
    fn columns_are_found_by_their_names() {
        let text = "Name,Phone,email,Reason,senderId,SMS\nAna,600111222; +34600111223,ana@example.org,OPT_OUT,snd_1,yes\nBo,,,,,no\nCy,1,,,,\nDi,,d@example.org,tired,,\n";
        let read = shown(read_csv(text.as_bytes(), &["ES".to_owned()]).expect("UTF-8"));
        let expected = [
            "2 +34600111222 sms opt_out snd_1",
            "2 +34600111223 sms opt_out snd_1",
            "2 ana@example.org email opt_out snd_1",
            "3: has no recipient",
        ];
        assert_eq!(read[..4], expected);
        assert!(read[4].starts_with("4: \"1\" is not a phone number"), "{read:?}");
        assert_eq!(read[5], "5: reason is \"tired\"; must be one of opt_out, bounce, complaint, manual");
    }

    #[test]
    fn what_is_exported_can_be_imported() {
        let item = json!({"id": "sup_1", "identifier": "1234567", "channel": "telegram", "senderId": null, "reason": "complaint",
            "source": "=1+1", "createdAt": "2026-01-31T09:30:00.000Z"});
        let file = format!("{HEAD}{}", csv_line(&item));
        assert!(file.ends_with("1234567,telegram,complaint,,'=1+1,2026-01-31T09:30:00.000Z\r\n"), "{file}");
        assert_eq!(shown(read_csv(file.as_bytes(), &[]).expect("UTF-8")), ["2 1234567 telegram complaint -"]);
        let lines = "{\"identifier\": \"0034 600 111 222\", \"reason\": \"bounce\"}\n{\"identifer\": 1}\n";
        let read = shown(read_ndjson(lines, &[]));
        assert_eq!(read[0], "1 +34600111222 - bounce -");
        assert!(read[1].starts_with("2: unknown field `identifer`"), "{read:?}");
    }
}
