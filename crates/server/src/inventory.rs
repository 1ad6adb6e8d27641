//! `nuncio numbers`: the inventory of phone numbers.

use nuncio_core::Core;
use nuncio_core::numbers::ImportedNumber;
use nuncio_domain::number::{Capability, InventoryNumber};
use nuncio_domain::{PhoneNumberId, Result, TenantId};
use serde_json::{Value, json};

use crate::answer::CommandOutput;
use crate::table::Table;

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
