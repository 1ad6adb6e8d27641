//! `GET /v1/balance`.

use axum::extract::State;
use nuncio_core::Core;
use nuncio_core::billing::BalanceView;

use crate::extract::Auth;
use crate::reply::{Reply, Result};

/// Show the balance
///
/// The money of this environment in US dollars. Where the operator does not limit spending, `available` may be below zero.
#[utoipa::path(get, path = "/v1/balance", tag = "Account", responses((status = 200, description = "The balance.", body = BalanceView)))]
pub(crate) async fn get_balance(State(core): State<Core>, Auth(caller): Auth) -> Result<Reply<BalanceView>> {
    Ok(Reply::ok(core.billing().get_balance(&caller).await?))
}
