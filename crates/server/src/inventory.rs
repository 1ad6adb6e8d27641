//! `nuncio numbers`: the inventory of phone numbers.

use anyhow::bail;
use nuncio_core::Core;
use nuncio_core::numbers::ImportedNumber;
use nuncio_domain::number::{Capability, InventoryNumber};
use nuncio_domain::{PhoneNumberId, Result, TenantId};
use serde_json::{Value, json};

use crate::answer::CommandOutput;
use crate::table::Table;

/// The first two are required.
const COLUMNS: [&str; 6] = ["phoneNumber", "capabilities", "monthlyPrice", "monthlyCost", "upfrontCost", "isFreeNumber"];

/// Parses a CSV file with a header line; returns each number with its line. Values are validated when the numbers are added.
///
/// # Errors
///
/// Reports the header, or else all lines with a wrong number of fields.
pub(crate) fn read(bytes: &[u8]) -> anyhow::Result<Vec<(u64, ImportedNumber)>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes); // spreadsheets write a byte order mark
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).flexible(true).from_reader(bytes);
    let names = reader.headers()?.clone();
    let times = |column: &str| names.iter().filter(|name| *name == column).count();
    if names.iter().any(|name| !COLUMNS.contains(&name) || times(name) > 1) || COLUMNS[..2].iter().any(|column| times(column) == 0) {
        bail!("line 1: must have the columns {}; the last four are optional", COLUMNS.join(","));
    }
    let (mut numbers, mut ragged) = (Vec::new(), Vec::new());
    let (mut line, mut counted) = (1, 0);
    for record in reader.records() {
        let record = record?;
        // The reader counts from the end of the record before, so that CRLF and empty lines lead it astray.
        let begin = record.position().map_or(0, |position| position.byte() as usize);
        let begin = begin + bytes[begin..].iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        line += bytes[counted..begin].iter().filter(|byte| **byte == b'\n').count() as u64;
        counted = begin;
        if record.len() == names.len() {
            numbers.push((line, record.deserialize(Some(&names))?));
        } else {
            ragged.push(format!("line {line}: has {} fields; the first line has {}", record.len(), names.len()));
        }
    }
    if !ragged.is_empty() {
        bail!(ragged.join("\n"));
    }
    if numbers.is_empty() {
        bail!("the file has no number after its first line");
    }
    Ok(numbers)
}

/// Adds the numbers of a file, each with its line, unless one of them is invalid.
pub(crate) async fn import(core: &Core, tenant: TenantId, numbers: Vec<(u64, ImportedNumber)>) -> Result<CommandOutput> {
    let (lines, numbers): (Vec<_>, Vec<_>) = numbers.into_iter().unzip();
    let count = core.numbers().import(tenant, &numbers, |n| format!("line {}", lines[n])).await?;
    Ok(CommandOutput::new(json!({"imported": count}), format!("imported {count} number{}", if count == 1 { "" } else { "s" })))
}

pub(crate) async fn add(core: &Core, tenant: TenantId, number: &ImportedNumber) -> Result<CommandOutput> {
    core.numbers().import(tenant, std::slice::from_ref(number), |_| String::new()).await?;
    Ok(CommandOutput::new(json!({"imported": 1}), format!("{} imported", number.phone_number)))
}

pub(crate) async fn list(core: &Core, tenant: TenantId) -> Result<CommandOutput> {
    let inventory = core.numbers().inventory(tenant).await?;
    let json = inventory.iter().map(show).collect();
    let rows = inventory.iter().map(|(number, holder)| {
        let price = if number.pricing.is_free { "free".to_owned() } else { format!("{} a month", number.pricing.monthly_price) };
        let holder = holder.map_or_else(|| "available".to_owned(), |id| id.to_string());
        vec![number.phone_number.to_string(), number.country.to_string(), names(number).join(","), price, holder]
    });
    let table = Table::new(&["NUMBER", "COUNTRY", "CAPABILITIES", "PRICE", "HELD BY"]).with(rows);
    Ok(CommandOutput::list(json, table, "no numbers; import some with `nuncio numbers import FILE.csv`"))
}

fn names(number: &InventoryNumber) -> Vec<&'static str> {
    number.capabilities.iter().map(Capability::as_str).collect()
}

fn show((number, holder): &(InventoryNumber, Option<PhoneNumberId>)) -> Value {
    let pricing = &number.pricing;
    json!({"phoneNumber": number.phone_number, "countryCode": number.country, "capabilities": names(number), "id": holder,
        "pricing": {"monthlyPrice": pricing.monthly_price, "upfrontCost": pricing.upfront_cost,
            "monthlyCost": pricing.monthly_cost, "isFreeNumber": pricing.is_free}})
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_by_the_names_of_its_columns() {
        let text = "\u{feff}capabilities,phoneNumber,monthlyPrice\r\n\"sms,voice\", +12025550142 ,1.15\r\n";
        let read = read(text.as_bytes()).expect("a good file");
        let (line, one) = &read[0];
        assert_eq!(*line, 2);
        assert_eq!(
            (one.phone_number.as_str(), one.capabilities.as_str(), one.monthly_price.as_str()),
            ("+12025550142", "sms,voice", "1.15")
        );
        assert_eq!((one.upfront_cost.as_str(), one.is_free_number.as_str()), ("", ""));
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_line() {
        for (text, said) in [
            ("", "line 1: must have the columns phoneNumber,capabilities,"),
            ("phoneNumber,capabilities\n", "the file has no number"),
            ("phoneNumber,price\n+12025550142,1\n", "line 1: must have the columns"),
            ("phoneNumber,capabilities,phoneNumber\n", "line 1: must have the columns"),
            ("phoneNumber,capabilities\n+12025550142\n\n+1,sms\n+1,sms,1\n", "line 2: has 1 fields; the first line has 2\nline 5: has 3"),
        ] {
            let refused = super::read(text.as_bytes()).expect_err(text).to_string();
            assert!(refused.starts_with(said), "{text}: {refused}");
        }
    }
}
