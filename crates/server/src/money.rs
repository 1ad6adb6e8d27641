//! `nuncio prices` and `nuncio balance`.

use nuncio_core::Core;
use nuncio_core::billing::BalanceView;
use nuncio_domain::ledger::Balance;
use nuncio_domain::{Error, Micros, ProjectId, Result, TenantId, Timestamp};
use serde_json::json;

use crate::answer::CommandOutput;
use crate::table::Table;

pub(crate) async fn prices_import(core: &Core, project: Option<ProjectId>, csv: &str, replace: bool) -> Result<CommandOutput> {
    let count = core.billing().import_prices(project, csv, replace).await?;
    let what = if count == 1 { "1 price; it applies".to_owned() } else { format!("{count} prices; they apply") };
    let text = format!("imported {what} to new messages");
    Ok(CommandOutput::new(json!({"imported": count}), text))
}

pub(crate) async fn prices_list(core: &Core, project: Option<ProjectId>) -> Result<CommandOutput> {
    let prices = core.billing().list_prices(project).await?;
    let json = prices.iter().map(|p| {
        json!({"channel": p.channel, "country": p.country, "unit": p.unit, "provider": p.cost.provider, "fee": p.cost.fee,
            "effectiveFrom": p.effective_from})
    });
    let rows = prices.iter().map(|p| {
        let (provider, fee) = (p.cost.provider.to_string(), p.cost.fee.to_string());
        let from = if p.effective_from == Timestamp::default() { "always".to_owned() } else { p.effective_from.to_string() };
        vec![p.channel.to_string(), p.country.to_string(), p.unit.to_string(), provider, fee, from]
    });
    let table = Table::new(&["CHANNEL", "COUNTRY", "UNIT", "PROVIDER", "FEE", "EFFECTIVE FROM"]).with(rows);
    Ok(CommandOutput::list(json.collect(), table, "no prices: nothing is charged; import some with `nuncio prices import FILE.csv`"))
}

pub(crate) fn balance(balance: &Balance) -> CommandOutput {
    let mut json = serde_json::to_value(BalanceView::from(*balance)).unwrap_or_default();
    json["limited"] = balance.limited.into();
    let limit = if balance.limited { "spending is limited to the available balance" } else { "spending is not limited" };
    let text = format!("${} available, ${} reserved, ${} spent; {limit}", balance.available, balance.reserved, balance.spent);
    CommandOutput::new(json, text)
}

pub(crate) async fn balance_add(core: &Core, tenant: TenantId, amount: &str, reference: Option<&str>) -> Result<CommandOutput> {
    let amount = Micros::parse(amount).ok_or_else(|| {
        Error::field("amount", format!("is {amount:?}; must be an amount of US dollars, at most a million, with at most six decimals"))
    })?;
    let (done, now) = core.billing().add_money(tenant, amount, reference).await?;
    let answer = balance(&now);
    let text = if done { answer.text } else { format!("this reference was already used; nothing changed; {}", answer.text) };
    Ok(CommandOutput { text, ..answer })
}
