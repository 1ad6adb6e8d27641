//! The price list: imported from a file, and cached for planning.

use std::collections::BTreeSet;

use nuncio_domain::price::{ANYWHERE, Price, Unit};
use nuncio_domain::{Channel, Error, FieldError, Micros, ProjectId, Result, Timestamp, address, message::Cost};
use serde_json::json;

use super::Billing;
use crate::base::{Change, csv::records};

/// Columns of a price file, in any order. The last one is optional.
const COLUMNS: [&str; 6] = ["channel", "country", "unit", "provider", "fee", "effective_from"];
/// Maximum price of one unit.
const DEAREST: Micros = Micros(1_000_000_000);

/// Numbers of prices.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ImportedPrices {
    /// Prices in the file.
    pub imported: usize,
    /// Prices that were deleted because the file lacks them.
    pub deleted: usize,
}

impl Billing<'_> {
    /// Returns the general price list, or a project's own.
    pub async fn list_prices(&self, project: Option<ProjectId>) -> Result<Vec<Price>> {
        Ok(self.inner.store.read().await?.list_prices(project).await?)
    }

    /// Imports a price file: CSV with a header line. With `replace`, deletes the prices that it lacks. Reports all invalid lines, and then
    /// writes nothing.
    pub async fn import_prices(&self, project: Option<ProjectId>, csv: &str, replace: bool) -> Result<ImportedPrices> {
        let prices = parse(csv)?;
        let mut tx = self.inner.store.begin().await?;
        let before = if replace { tx.list_prices(project).await? } else { Vec::new() };
        let kept: BTreeSet<_> = prices.iter().map(key).collect();
        let deleted = before.iter().filter(|old| !kept.contains(&key(old))).count();
        tx.put_prices(project, &prices, replace).await?;
        // The general list belongs to no project, so every project's audit log records the import.
        for of in tx.list_projects().await?.iter().filter(|of| project.is_none_or(|project| project == of.id)) {
            let after = json!({"prices": prices.len(), "deleted": deleted, "own": project.is_some(), "replace": replace});
            Change::new("prices", "import", "prices").to(&after).record_of(&mut *tx, of).await?;
        }
        tx.commit().await?;
        self.inner.tenant_configs.clear();
        Ok(ImportedPrices { imported: prices.len(), deleted })
    }
}

/// Returns what tells prices of a list apart.
fn key(price: &Price) -> (Channel, &str, Timestamp) {
    (price.channel, &price.country, price.effective_from)
}

/// Parses a price file.
fn parse(csv: &str) -> Result<Vec<Price>> {
    let mut rows = records(csv.as_bytes())?.into_iter();
    let names = rows.next().map(|(_, names)| names).unwrap_or_default();
    let columns = COLUMNS.map(|wanted| names.iter().position(|name| name == wanted));
    let known = names.iter().all(|name| COLUMNS.contains(&name.as_str()));
    if !known || columns[..5].iter().any(Option::is_none) || names.iter().collect::<BTreeSet<_>>().len() != names.len() {
        let message = format!("must have the columns {}; the last is optional", COLUMNS.join(","));
        return Err(Error::field("line 1", message));
    }
    let (mut prices, mut errors, mut seen) = (Vec::new(), Vec::new(), BTreeSet::new());
    for (line, values) in rows {
        let path = format!("line {line}");
        if values.len() != names.len() {
            errors.push(FieldError::new(path, format!("has {} fields; the first line has {}", values.len(), names.len())));
            continue;
        }
        let value = |column: usize| columns[column].map_or("", |at| values[at].as_str());
        match price([value(0), value(1), value(2), value(3), value(4), value(5)]) {
            Ok(price) if !seen.insert((price.channel, price.country.clone(), price.effective_from)) => {
                errors.push(FieldError::new(path, "duplicates the channel, country and date of an earlier line"));
            }
            Ok(price) => prices.push(price),
            Err(faults) => errors.push(FieldError::new(path, faults.join("; "))),
        }
    }
    if errors.is_empty() { Ok(prices) } else { Err(Error::invalid(errors)) }
}

fn price([channel, country, unit, provider, fee, from]: [&str; 6]) -> Result<Price, Vec<String>> {
    let mut faults = Vec::new();
    let country = country.to_ascii_uppercase();
    let names = |all: &[Channel]| all.iter().map(|c| c.as_str()).collect::<Vec<_>>().join(", ");
    let known_channel = Channel::parse(channel);
    if known_channel.is_none() {
        faults.push(format!("channel {channel:?} is not one of {}", names(Channel::ALL)));
    }
    if country != ANYWHERE && !address::is_country(&country) {
        let meant = if country == "UK" { "; write GB" } else { "" };
        faults.push(format!("country {country:?} is neither a country code (ISO 3166, two letters) nor *{meant}"));
    }
    let known_unit = Unit::parse(unit);
    match (known_unit, known_channel) {
        (None, _) => faults.push(format!("unit {unit:?} is not one of segment, message, minute")),
        (Some(Unit::Segment), Some(c)) if !c.is_sms() => faults.push(format!("unit segment is for sms and sms_oneway, not {c}")),
        (Some(Unit::Minute), Some(c)) if c != Channel::Voice => faults.push(format!("unit minute is for voice, not {c}")),
        _ => {}
    }
    let mut money = |name: &str, text: &str| {
        let amount = Micros::parse(text).filter(|amount| (Micros(0)..=DEAREST).contains(amount));
        if amount.is_none() {
            faults.push(format!("{name} is {text:?}; must be an amount of US dollars from 0 to {DEAREST} with at most six decimals"));
        }
        amount.unwrap_or_default()
    };
    let cost = Cost { provider: money("provider", provider), fee: money("fee", fee) };
    let effective_from = match from {
        "" => Some(Timestamp::default()),
        date if date.len() == 10 => Timestamp::parse(&format!("{date}T00:00:00Z")).ok(),
        moment => Timestamp::parse(moment).ok(),
    };
    if effective_from.is_none() {
        faults.push(format!("effective_from {from:?} is neither a date such as 2026-01-31 nor an RFC 3339 date-time"));
    }
    match (known_channel, known_unit, effective_from) {
        (Some(channel), Some(unit), Some(effective_from)) if faults.is_empty() => {
            Ok(Price { channel, country, effective_from, unit, cost })
        }
        _ => Err(faults),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_bad_line_is_told() {
        let csv = "channel,country,unit,provider,fee,effective_from\n\
                   sms,ES,segment,0.03,0.005,2026-01-01\n\
                   fax,Spain,page,-1,1e3,tomorrow\n\
                   \n\
                   whatsapp,*,segment,0.1,0\n\
                   sms,ES,segment,0.03,0.005,2026-01-01T00:00:00Z\n\
                   email,*,minute,0.1,2000,\n";
        let error = parse(csv).unwrap_err();
        let faults: Vec<_> = error.details()["errors"].as_array().unwrap().iter().map(|f| f["path"].as_str().unwrap()).collect();
        assert_eq!(faults, ["line 3", "line 5", "line 6", "line 7"], "{error:?}");
        for header in ["", "channel,country", "channel,country,unit,provider,fee,price", "channel,channel,country,unit,provider,fee"] {
            assert!(parse(header).is_err(), "{header:?}");
        }
    }

    #[test]
    fn columns_come_in_any_order() {
        let prices = parse("fee,provider,unit,country,channel\r\n0.005,0.03,segment,\"es\",sms\r\n").unwrap();
        let cost = Cost { fee: Micros(5_000), provider: Micros(30_000) };
        let effective_from = Timestamp::default();
        assert_eq!(prices, [Price { channel: Channel::Sms, country: "ES".into(), effective_from, unit: Unit::Segment, cost }]);
        assert_eq!(parse("fee;provider;unit;country;channel\n0.005;0.03;segment;ES;sms\n").unwrap(), prices);
        let error = parse("fee,provider,unit,country,channel\n\"0,005\",0.03,segment,ES,sms\n").unwrap_err();
        assert!(error.to_string().contains("fee is \"0,005\"; must be an amount of US dollars"), "{error}");
    }
}
