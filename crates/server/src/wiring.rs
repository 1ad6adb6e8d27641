//! Puts a node together.

use std::sync::Arc;
use std::time::Duration;

use nuncio_api::ApiState;
use nuncio_channel::{Registry, Tokens};
use nuncio_dispatch::DispatchConfig;
use nuncio_domain::Ids;
use nuncio_net::Network;
use nuncio_node::{Node, Parts};
use nuncio_secrets::Sealer;
use nuncio_store::Store;

use crate::config::Config;

/// Every kind of provider that this server knows. A new one is one line here. Accounts that callers set up go only where `config` permits.
/// What mails bring back is recognised by `tokens`.
pub fn registry(config: &Config, tokens: Tokens) -> anyhow::Result<Registry> {
    let net = Network::new(config.guard().map_err(anyhow::Error::msg)?)?;
    Ok(Registry::new(vec![
        Arc::new(nuncio_channel_instagram::InstagramFactory::new(net.clone())),
        Arc::new(nuncio_channel_kannel::KannelFactory::new(net.clone())),
        Arc::new(nuncio_channel_sim::SimFactory),
        Arc::new(nuncio_channel_sip::SipFactory::new(net.clone(), config.sip.ports())),
        Arc::new(nuncio_channel_smpp::SmppFactory::new(net.clone())),
        Arc::new(nuncio_channel_smtp::SmtpFactory::new(net.clone(), tokens)),
        Arc::new(nuncio_channel_telegram::TelegramFactory::new(net.clone())),
        Arc::new(nuncio_channel_twilio::TwilioFactory::new(net.clone())),
        Arc::new(nuncio_channel_whatsapp::WhatsappFactory::new(net)),
    ]))
}

/// Puts a node together from the settings, on an open database. `listen` is the address that it is reached at unless `server.public_url`
/// says otherwise.
///
/// # Errors
///
/// Says which setting is wrong.
pub fn node(config: &Config, store: Arc<dyn Store>, sealer: Sealer, ids: Ids, listen: &str) -> anyhow::Result<Node> {
    let parts = Parts {
        store,
        registry: registry(config, nuncio_core::mail_tokens(&sealer))?,
        sealer,
        ids,
        public_url: config.server.public_url(listen),
        code_relay: config.email.code_relay().map_err(anyhow::Error::msg)?,
        reviewer: config.review.reviewer().map_err(anyhow::Error::msg)?,
    };
    Node::new(parts, dispatch_config(config)?)
}

/// Dispatch's part of the settings.
pub fn dispatch_config(config: &Config) -> anyhow::Result<DispatchConfig> {
    let embedded = config.storage.database.is_empty();
    Ok(DispatchConfig {
        sole: embedded,
        compare_clocks: !embedded,
        receipt_wait: Duration::from_secs(config.dispatch.receipt_wait_seconds),
        retention: (config.retention.days > 0).then(|| Duration::from_secs(u64::from(config.retention.days) * 86_400)),
        max_in_flight_bytes: config.dispatch.max_in_flight_bytes,
        guard: config.guard().map_err(anyhow::Error::msg)?,
    })
}

/// Everything that is served: the API, the pages and the guide.
pub fn router(state: ApiState) -> axum::Router {
    let pages = nuncio_dashboard::router(state.core.clone()).merge(nuncio_guide::router());
    nuncio_api::router(state, pages)
}
