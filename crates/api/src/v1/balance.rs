//! `GET /v1/balance`.

use nuncio_core::billing::BalanceView;

use crate::extract::Call;
use crate::reply::{Reply, Result};

/// Show the balance
///
/// The balance of this environment in US dollars. If the operator does not limit spending, `available` can be negative.
#[utoipa::path(get, path = "/v1/balance", tag = "Account", responses((status = 200, description = "The balance.", body = BalanceView)))]
pub(crate) async fn get_balance(Call(core, caller): Call) -> Result<Reply<BalanceView>> {
    Ok(Reply::ok(core.billing().get_balance(&caller).await?))
}
