//! `nuncio prices` and `nuncio balance`.

use nuncio_core::Core;
use nuncio_core::billing::{BalanceView, ImportedPrices};
use nuncio_domain::config::Project;
use nuncio_domain::ledger::Balance;
use nuncio_domain::{Error, Micros, ProjectId, Result, TenantId, Timestamp};
use serde_json::json;

use crate::answer::CommandOutput;
use crate::table::Table;

pub(crate) async fn prices_import(core: &Core, project: Option<ProjectId>, csv: &str, replace: bool) -> Result<CommandOutput> {
    let ImportedPrices { imported, deleted } = core.billing().import_prices(project, csv, replace).await?;
    let what = if imported == 1 { "1 price; it applies".to_owned() } else { format!("{imported} prices; they apply") };
    let others = if deleted == 1 { "1 other was".to_owned() } else { format!("{deleted} others were") };
    let gone = if replace { format!("; {others} deleted") } else { String::new() };
    let text = format!("imported {what} to new messages{gone}");
    Ok(CommandOutput::new(json!({"imported": imported, "deleted": deleted}), text))
}

/// Lists the prices of a project, which take precedence, and with `general` those of all projects too.
pub(crate) async fn prices_list(core: &Core, project: &Project, general: bool) -> Result<CommandOutput> {
    let of_project = core.billing().list_prices(Some(project.id)).await?;
    let of_all = if general { core.billing().list_prices(None).await? } else { Vec::new() };
    let prices = || of_project.iter().map(|price| (Some(project), price)).chain(of_all.iter().map(|price| (None, price)));
    let json = prices().map(|(of, p)| {
        json!({"project": of.map(|of| of.id), "channel": p.channel, "country": p.country, "unit": p.unit, "provider": p.cost.provider,
            "fee": p.cost.fee, "effectiveFrom": p.effective_from})
    });
    let rows = prices().map(|(of, p)| {
        let (provider, fee) = (p.cost.provider.to_string(), p.cost.fee.to_string());
        let from = if p.effective_from == Timestamp::default() { "always".to_owned() } else { p.effective_from.to_string() };
        let of = of.map_or_else(|| "all".to_owned(), |of| of.name.clone());
        vec![of, p.channel.to_string(), p.country.to_string(), p.unit.to_string(), provider, fee, from]
    });
    let table = Table::new(&["PROJECT", "CHANNEL", "COUNTRY", "UNIT", "PROVIDER", "FEE", "EFFECTIVE FROM"]).with(rows);
    let none = if general {
        "no prices: nothing is charged; import some with `nuncio prices import FILE.csv`"
    } else {
        "no prices for this project only; `nuncio prices list` shows those of all projects"
    };
    Ok(CommandOutput::list(json.collect(), table, none))
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
