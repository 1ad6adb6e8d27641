//! Prices and balances at the command line.

use nuncio_core::Core;
use nuncio_core::billing::BalanceView;
use nuncio_domain::ledger::Balance;
use nuncio_domain::{Error, Micros, ProjectId, Result, TenantId};
use serde_json::json;

use crate::admin::Answer;
use crate::table::Table;

pub(crate) async fn prices_import(core: &Core, project: Option<ProjectId>, csv: &str, replace: bool) -> Result<Answer> {
    let count = core.billing().import_prices(project, csv, replace).await?;
    let text = format!("{count} prices are taken over; messages that are accepted from now on cost what they say");
    Ok(Answer::new(json!({"imported": count}), text))
}

pub(crate) async fn prices_list(core: &Core, project: Option<ProjectId>) -> Result<Answer> {
    let prices = core.billing().list_prices(project).await?;
    let json = prices.iter().map(|p| {
        json!({"channel": p.channel, "country": p.country, "unit": p.unit, "provider": p.cost.provider, "fee": p.cost.fee,
            "effectiveFrom": p.effective_from})
    });
    let rows = prices.iter().map(|p| {
        let (provider, fee) = (p.cost.provider.to_string(), p.cost.fee.to_string());
        vec![p.channel.to_string(), p.country.to_string(), p.unit.to_string(), provider, fee, p.effective_from.to_string()]
    });
    let table = Table::new(&["CHANNEL", "COUNTRY", "UNIT", "PROVIDER", "FEE", "EFFECTIVE FROM"]).with(rows);
    Ok(Answer::list(json.collect(), table, "no prices: nothing is charged; import some with `nuncio prices import FILE.csv`"))
}

pub(crate) fn balance(balance: &Balance) -> Answer {
    let mut json = serde_json::to_value(BalanceView::from(*balance)).unwrap_or_default();
    json["limited"] = balance.limited.into();
    let limit = if balance.limited { "no more than that can be spent" } else { "spending is not limited" };
    let text = format!("${} available, ${} reserved, ${} spent; {limit}", balance.available, balance.reserved, balance.spent);
    Answer::new(json, text)
}

pub(crate) async fn balance_add(core: &Core, tenant: TenantId, amount: &str, reference: Option<&str>) -> Result<Answer> {
    let amount = Micros::parse(amount)
        .ok_or_else(|| Error::field("amount", format!("{amount:?} is no amount of US dollars with at most six decimals")))?;
    let (done, now) = core.billing().add_money(tenant, amount, reference).await?;
    let answer = balance(&now);
    let text = if done { answer.text } else { format!("this reference was used before, nothing moved; {}", answer.text) };
    Ok(Answer { text, ..answer })
}
