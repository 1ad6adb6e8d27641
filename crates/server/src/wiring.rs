//! Assembles a node.

use std::sync::Arc;
use std::time::Duration;

use nuncio_api::ApiState;
use nuncio_channel::{Registry, Tokens};
use nuncio_dispatch::DispatchConfig;
use nuncio_domain::Ids;
use nuncio_net::Network;
use nuncio_node::{Node, NodeDeps};
use nuncio_secrets::Sealer;
use nuncio_store::Store;

use crate::config::Config;

/// Returns all adapter kinds of this server; a new one is one line here. Accounts set up through the API reach only what `config` permits.
/// `tokens` identify bounces and complaints.
pub fn registry(config: &Config, tokens: Tokens) -> anyhow::Result<Registry> {
    let net = Network::new(config.guard().map_err(anyhow::Error::msg)?)?;
    Ok(Registry::new(vec![
        nuncio_channel_instagram::factory(net.clone()),
        nuncio_channel_kannel::factory(net.clone()),
        nuncio_channel_sim::factory(),
        nuncio_channel_sip::factory(net.clone(), config.sip.ports()),
        nuncio_channel_smpp::factory(net.clone()),
        nuncio_channel_smtp::factory(net.clone(), tokens),
        nuncio_channel_telegram::factory(net.clone()),
        nuncio_channel_twilio::factory(net.clone()),
        nuncio_channel_whatsapp::factory(net),
    ]))
}

/// Assembles a node from the settings and an open database. `listen` is its address unless `server.public_url` is set.
///
/// # Errors
///
/// Names the invalid setting.
pub fn node(config: &Config, store: Arc<dyn Store>, sealer: Sealer, ids: Ids, listen: &str) -> anyhow::Result<Node> {
    let parts = NodeDeps {
        store,
        registry: registry(config, nuncio_core::mail_tokens(&sealer))?,
        sealer,
        ids,
        public_url: config.server.public_url(listen),
        code_relay: config.email.code_relay().map_err(anyhow::Error::msg)?,
        receives_email: !config.email.listen.is_empty(),
        oidc: config.dashboard.oidc.provider().map_err(anyhow::Error::msg)?,
        reviewer: config.review.reviewer().map_err(anyhow::Error::msg)?,
    };
    Node::new(parts, dispatch_config(config)?)
}

/// Returns the settings of dispatch.
pub fn dispatch_config(config: &Config) -> anyhow::Result<DispatchConfig> {
    let embedded = config.storage.database.is_empty();
    Ok(DispatchConfig {
        sole: embedded,
        compare_clocks: !embedded,
        receipt_wait: Duration::from_secs(config.dispatch.receipt_wait_seconds),
        retention: (config.retention.days > 0).then(|| Duration::from_secs(u64::from(config.retention.days) * 86_400)),
        max_in_flight_bytes: config.dispatch.max_in_flight_bytes,
        guard: config.guard().map_err(anyhow::Error::msg)?,
        ..DispatchConfig::default()
    })
}

/// Returns the router of everything served: the API, the pages and the guide.
pub fn router(state: ApiState) -> axum::Router {
    let pages = nuncio_dashboard::router(state.core.clone()).merge(nuncio_guide::router());
    nuncio_api::router(state, pages)
}
