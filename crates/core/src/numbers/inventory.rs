//! The operator's inventory.

use std::collections::BTreeSet;

use nuncio_domain::number::{Capabilities, Capability, InventoryNumber, NumberPricing, dollars};
use nuncio_domain::{Error, FieldError, Micros, PhoneNumberId, Result, TenantId, Timestamp, address};
use nuncio_store::Tx;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Numbers;
use crate::base::{Change, csv};

/// Numbers per transaction.
const CHUNK: usize = 200;

/// Free numbers of every test environment, with their countries: numbers that regulators reserve for fiction.
const SANDBOX: &[(&str, &str, &[Capability])] = &[
    ("+12025550142", "US", &[Capability::Sms, Capability::Voice, Capability::Mms]),
    ("+12025550143", "US", &[Capability::Sms, Capability::Voice, Capability::Mms]),
    ("+12125550164", "US", &[Capability::Sms, Capability::Voice]),
    ("+13105550187", "US", &[Capability::Sms]),
    ("+16135550119", "CA", &[Capability::Sms, Capability::Voice]),
    ("+447700900123", "GB", &[Capability::Sms, Capability::Voice]),
    ("+447700900456", "GB", &[Capability::Sms]),
    ("+33639980107", "FR", &[Capability::Sms, Capability::Voice]),
    ("+61491570156", "AU", &[Capability::Sms, Capability::Voice]),
];

/// A number in an import file. All amounts are US dollars, such as `1.15`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct ImportedNumber {
    /// E.164.
    pub phone_number: String,
    /// `sms`, `voice`, `mms`, separated by spaces, commas, semicolons or bars.
    pub capabilities: String,
    /// Monthly price for the holder.
    pub monthly_price: String,
    /// The operator's monthly cost.
    pub monthly_cost: String,
    /// One-time price for the holder.
    pub upfront_cost: String,
    /// `true` or `false`.
    pub is_free_number: String,
}

impl Numbers<'_> {
    /// Adds numbers to an environment's inventory. Existing ones get the new capabilities, and the new prices from the next renewal on;
    /// they keep their holders. Returns all errors at once, and then stores nothing. `place` names the n-th number.
    pub async fn import(&self, tenant: TenantId, given: &[ImportedNumber], place: impl Fn(usize) -> String) -> Result<usize> {
        let mut errors = Vec::new();
        let numbers: Vec<_> = given.iter().enumerate().map(|(n, one)| one.read(&place(n), &mut errors)).collect();
        let mut seen = BTreeSet::new();
        for (n, number) in numbers.iter().enumerate().filter(|(_, number)| !number.phone_number.is_empty()) {
            if !seen.insert(&number.phone_number) {
                errors.push(FieldError::new(place(n), format!("repeats the phone number {}", number.phone_number)));
            }
        }
        if !errors.is_empty() {
            errors.truncate(100);
            return Err(Error::invalid(errors));
        }
        let now = self.ids().clock.now();
        for chunk in numbers.chunks(CHUNK) {
            let mut tx = self.inner.store.begin().await?;
            for number in chunk {
                tx.put_inventory_number(tenant, number, now).await?;
            }
            Change::new("inventory", "import", "inventory").to(&json!({"numbers": chunk.len()})).commit(tx, tenant).await?;
        }
        Ok(numbers.len())
    }

    /// Returns the inventory of an environment with the held numbers.
    pub async fn inventory(&self, tenant: TenantId) -> Result<Vec<(InventoryNumber, Option<PhoneNumberId>)>> {
        Ok(self.inner.store.read().await?.list_inventory(tenant).await?)
    }
}

/// Adds the sandbox's numbers to a test environment.
pub(crate) async fn stock_sandbox(tx: &mut dyn Tx, tenant: TenantId, now: Timestamp) -> Result<()> {
    for (phone_number, country, capabilities) in SANDBOX {
        let number = InventoryNumber {
            phone_number: (*phone_number).to_owned(),
            country: (*country).to_owned(), // a look-up would load the numbering plans before anything needs them
            capabilities: capabilities.iter().copied().collect(),
            pricing: NumberPricing { is_free: true, ..NumberPricing::default() },
        };
        tx.put_inventory_number(tenant, &number, now).await?;
    }
    Ok(())
}

/// The columns of an import file; the first two are required.
const COLUMNS: [&str; 6] = ["phoneNumber", "capabilities", "monthlyPrice", "monthlyCost", "upfrontCost", "isFreeNumber"];

impl ImportedNumber {
    /// Reads a CSV file with a header line; returns each number with its line. Values are validated when the numbers are added.
    ///
    /// # Errors
    ///
    /// Reports the header, or else all lines with a wrong number of fields.
    pub fn read_file(file: &[u8]) -> Result<Vec<(u64, Self)>> {
        let mut records = csv::records(file)?.into_iter();
        let names = records.next().map(|(_, names)| names).unwrap_or_default();
        let columns = COLUMNS.map(|column| names.iter().position(|name| name == column));
        let found = columns.iter().flatten().count();
        // A name that is unknown or there twice is found at no column.
        if found != names.len() || columns[..2].contains(&None) {
            return Err(Error::field("line 1", format!("must have the columns {}; the last four are optional", COLUMNS.join(","))));
        }
        let (mut numbers, mut errors) = (Vec::new(), Vec::new());
        for (line, cells) in records {
            if cells.len() != names.len() {
                let message = format!("has {} fields; the first line has {}", cells.len(), names.len());
                errors.push(FieldError::new(format!("line {line}"), message));
                continue;
            }
            let [phone_number, capabilities, monthly_price, monthly_cost, upfront_cost, is_free_number] =
                columns.map(|column| column.map(|at| cells[at].clone()).unwrap_or_default());
            let number = Self { phone_number, capabilities, monthly_price, monthly_cost, upfront_cost, is_free_number };
            numbers.push((line, number));
        }
        Error::if_any(errors)?;
        if numbers.is_empty() {
            return Err(Error::field("file", "has no number after its first line"));
        }
        Ok(numbers)
    }

    fn read(&self, place: &str, errors: &mut Vec<FieldError>) -> InventoryNumber {
        let path = |field: &str| if place.is_empty() { field.to_owned() } else { format!("{place}, {field}") };
        let mut amount = |field: &str, text: &str| match text.trim() {
            "" => Micros(0),
            text => dollars(text).unwrap_or_else(|| {
                errors.push(FieldError::new(path(field), format!("{text:?} is not an amount of US dollars such as 1.15")));
                Micros(0)
            }),
        };
        let pricing = NumberPricing {
            monthly_price: amount("monthlyPrice", &self.monthly_price),
            upfront_cost: amount("upfrontCost", &self.upfront_cost),
            monthly_cost: amount("monthlyCost", &self.monthly_cost),
            is_free: match self.is_free_number.trim() {
                "" | "false" => false,
                "true" => true,
                other => {
                    errors.push(FieldError::new(path("isFreeNumber"), format!("{other:?} is neither true nor false")));
                    false
                }
            },
        };
        let capabilities = read_capabilities(&self.capabilities, &path("capabilities"), errors);
        let phone_number = address::phone(self.phone_number.trim()).unwrap_or_else(|error| {
            errors.push(FieldError::new(path("phoneNumber"), error.to_string()));
            String::new()
        });
        InventoryNumber { country: address::country(&phone_number), phone_number, capabilities, pricing }
    }
}

fn read_capabilities(text: &str, path: &str, errors: &mut Vec<FieldError>) -> Capabilities {
    let (mut found, mut words) = (Vec::new(), 0);
    for word in text.split([' ', ',', ';', '|']).filter(|word| !word.is_empty()) {
        words += 1;
        match Capability::parse(&word.to_lowercase()) {
            Some(capability) => found.push(capability),
            None => errors.push(FieldError::new(path, format!("{word:?} is not one of sms, voice, mms"))),
        }
    }
    if words == 0 {
        errors.push(FieldError::new(path, "is empty; must name at least one of sms, voice, mms"));
    }
    found.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_read_by_the_names_of_its_columns() {
        let text = "\u{feff}capabilities,phoneNumber,monthlyPrice\r\n\"sms,voice\", +12025550142 ,1.15\r\n";
        let read = ImportedNumber::read_file(text.as_bytes()).expect("a good file");
        let (line, one) = &read[0];
        assert_eq!((*line, one.phone_number.as_str(), one.capabilities.as_str()), (2, "+12025550142", "sms,voice"));
        assert_eq!([&one.monthly_price, &one.upfront_cost, &one.is_free_number], ["1.15", "", ""]);
    }

    #[test]
    fn what_cannot_be_read_is_said_with_its_line() {
        for (text, said) in [
            ("", "line 1: must have the columns phoneNumber,capabilities,"),
            ("phoneNumber,capabilities\n", "file: has no number"),
            ("phoneNumber,price\n+12025550142,1\n", "line 1: must have the columns"),
            ("phoneNumber\n+12025550142\n", "line 1: must have the columns"),
            ("phoneNumber,capabilities,phoneNumber\n", "line 1: must have the columns"),
            ("phoneNumber,capabilities\n\n+1,sms\n+12025550142\n", "line 4: has 1 fields; the first line has 2"),
        ] {
            let refused = ImportedNumber::read_file(text.as_bytes()).expect_err(text);
            assert!(refused.to_string().starts_with(said), "{text}: {refused}");
        }
        let ragged = ImportedNumber::read_file(b"phoneNumber,capabilities\n+1\n\n+1,sms,1\n").expect_err("two lines");
        assert_eq!(ragged.details()["errors"][1]["path"], "line 4");
    }

    #[test]
    fn sandbox_numbers_are_of_their_countries() {
        for (phone_number, country, _) in SANDBOX {
            assert_eq!(address::country(phone_number), *country, "{phone_number}");
        }
    }
}
