//! Putting the house together.

use std::sync::Arc;
use std::time::Duration;

use nuncio_api::ApiState;
use nuncio_channel::{Registry, Tokens};
use nuncio_core::{Core, Parts, Sealer};
use nuncio_dispatch::{Dispatch, DispatchConfig};
use nuncio_domain::Ids;
use nuncio_net::Network;
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

/// A node: what takes requests, and what carries messages out.
#[derive(Clone, Debug)]
pub struct Node {
    /// Use cases.
    pub core: Core,
    /// The loops.
    pub dispatch: Dispatch,
}

impl Node {
    /// Puts a node together on an open database, with these kinds of providers. Nothing runs yet. Links to it begin with `public_url`.
    pub fn new(
        store: Arc<dyn Store>,
        registry: Registry,
        sealer: Sealer,
        ids: Ids,
        config: DispatchConfig,
        public_url: String,
    ) -> anyhow::Result<Self> {
        let config = DispatchConfig { public_url: public_url.as_str().into(), ..config };
        let dispatch = Dispatch::new(Arc::clone(&store), registry.clone(), sealer.clone(), ids, config)?;
        let core = Core::new(Parts {
            store,
            outbound: Arc::new(dispatch.clone()),
            web: Arc::new(dispatch.clone()),
            registry,
            services: dispatch.services(),
            sealer,
            public_url,
        });
        dispatch.serve(&core);
        Ok(Self { core, dispatch })
    }
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
        ..DispatchConfig::default()
    })
}

/// Everything that is served: the API and the pages.
pub fn router(state: ApiState) -> axum::Router {
    let pages = nuncio_dashboard::router(state.core.clone());
    nuncio_api::router(state, pages)
}
