//! `nuncio numbers`: the inventory of phone numbers.

use anyhow::Context as _;
use nuncio_core::Core;
use nuncio_core::numbers::ImportedNumber;
use nuncio_domain::number::{Capability, InventoryNumber};
use nuncio_domain::{PhoneNumberId, Result, TenantId};
use serde_json::{Value, json};

use crate::answer::CommandOutput;
use crate::table::Table;

/// Parses a CSV file with a header line. Values are validated when the numbers are added.
pub(crate) fn read(bytes: &[u8]) -> anyhow::Result<Vec<ImportedNumber>> {
    let bytes = bytes.strip_prefix(b"\xef\xbb\xbf").unwrap_or(bytes); // spreadsheets write a byte order mark
    let mut reader = csv::ReaderBuilder::new().trim(csv::Trim::All).from_reader(bytes);
    let numbers = reader.deserialize().collect::<Result<Vec<_>, _>>();
    numbers.context("the file cannot be read; its first line must name the columns phoneNumber, capabilities, monthlyPrice, monthlyCost, upfrontCost and isFreeNumber")
}

/// Adds the numbers of a file, unless one of them is invalid.
pub(crate) async fn import(core: &Core, tenant: TenantId, numbers: &[ImportedNumber]) -> Result<CommandOutput> {
    let count = core.numbers().import(tenant, numbers, |n| format!("number {}", n + 1)).await?;
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
        let one = &read[0];
        assert_eq!(
            (one.phone_number.as_str(), one.capabilities.as_str(), one.monthly_price.as_str()),
            ("+12025550142", "sms,voice", "1.15")
        );
        assert_eq!((one.upfront_cost.as_str(), one.is_free_number.as_str()), ("", ""));
    }

    #[test]
    fn unknown_columns_and_ragged_lines_are_refused() {
        for text in ["phoneNumber,price\n+12025550142,1\n", "phoneNumber,capabilities\n+12025550142\n"] {
            assert!(super::read(text.as_bytes()).is_err(), "{text}");
        }
    }
}
