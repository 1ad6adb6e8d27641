//! The operator's inventory.

use std::collections::BTreeSet;

use nuncio_domain::number::{Capabilities, Capability, InventoryNumber, NumberPricing, dollars};
use nuncio_domain::{Error, FieldError, Micros, PhoneNumberId, Result, TenantId, Timestamp, address};
use nuncio_store::Tx;
use serde::{Deserialize, Serialize};
use serde_json::json;

use super::Numbers;
use crate::base::Change;

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

impl ImportedNumber {
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
    fn sandbox_numbers_are_of_their_countries() {
        for (phone_number, country, _) in SANDBOX {
            assert_eq!(address::country(phone_number), *country, "{phone_number}");
        }
    }
}
