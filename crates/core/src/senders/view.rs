//! Public representation of senders.

use nuncio_domain::config::{Connection, Sender, Throttle};
use nuncio_domain::health::Health;
use nuncio_domain::id::Id as _;
use nuncio_domain::profile::{BusinessAccount, KeptAccount, MethodStatus, SetupStatus};
use nuncio_domain::webhook::Webhook;
use nuncio_domain::{Channel, ConnectionId, Micros, Redacted, Result, SenderId, TenantId, Timestamp};
use nuncio_store::{InboundAddress, Tx};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{Senders, claims::InboundAddressView};
use crate::webhooks::WebhookView;

/// A sender profile.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Sender)]
pub struct SenderView {
    /// Its identifier.
    pub id: SenderId,
    /// Its name.
    pub name: String,
    /// Its phone number in E.164; `""` if it has none.
    pub phone_number: String,
    /// Whether messages without a sender use it.
    pub is_default: bool,
    /// Webhook for its events.
    pub webhook: Option<WebhookView>,
    /// Its WhatsApp account, if one is connected.
    pub whatsapp: Option<WhatsappView>,
    /// The connected channels.
    pub channels: Vec<Channel>,
    /// The provider accounts of the channels, and their health.
    pub connections: Vec<SenderConnectionView>,
    /// Whether inbound email is accepted.
    pub email_receiving_enabled: bool,
    /// Countries it can send to; all when absent.
    pub allowed_countries: Option<Vec<String>>,
    /// Spending limit per day, in US dollars; none when absent.
    pub daily_spend_limit: Option<Micros>,
    /// When it was created.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

/// A WhatsApp account, as last reported by its provider.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = WhatsappAccount)]
pub struct WhatsappView {
    /// The provider's id of the phone number; `""` while unknown.
    pub phone_number_id: String,
    /// The phone number as recipients see it.
    pub display_phone_number: String,
    /// Billing status at the provider.
    pub payment_status: PaymentStatusView,
}

/// Billing status at a provider.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = PaymentStatus)]
pub struct PaymentStatusView {
    /// Whether billing is set up.
    pub setup_status: SetupStatus,
    /// Status of the payment method.
    pub method_status: MethodStatus,
    /// Whether templates, which cost money, can be sent.
    pub can_send_templates: bool,
}

/// Connection of one channel of a sender.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[schema(as = SenderConnection)]
pub struct SenderConnectionView {
    /// Its identifier.
    pub id: ConnectionId,
    /// The channel.
    pub channel: Channel,
    /// The kind of provider, such as `smtp`.
    pub kind: String,
    /// The inbound address, if it can receive email.
    #[serde(rename = "inboundAddress", skip_serializing_if = "Option::is_none")]
    pub inbound_address: Option<InboundAddressView>,
    /// Health, as observed by the node that responds.
    pub health: Health,
}

/// The provider account of one channel of a sender, without its secrets.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = Connection)]
pub struct ConnectionView {
    /// Its identifier.
    pub id: ConnectionId,
    /// The sender.
    pub sender_id: SenderId,
    /// The channel.
    pub channel: Channel,
    /// The kind of provider, such as `smtp`.
    pub kind: String,
    /// Its settings.
    pub settings: Map<String, Value>,
    /// Rate limit; as fast as the provider accepts when absent.
    pub throttle: Option<Throttle>,
    /// The inbound address, if it can receive email.
    pub inbound_address: Option<InboundAddressView>,
    /// Health, as observed by the node that responds.
    pub health: Health,
    /// When it was first set up.
    pub created_at: Timestamp,
    /// When it last changed.
    pub updated_at: Timestamp,
}

impl Senders<'_> {
    pub(crate) async fn connection_view(&self, tx: &mut dyn Tx, tenant: TenantId, connection: &Connection) -> Result<ConnectionView> {
        let inbound = tx.inbound_addresses(tenant, &[connection.id]).await?.pop();
        Ok(ConnectionView {
            id: connection.id,
            sender_id: connection.sender,
            channel: connection.channel,
            kind: connection.kind.clone(),
            settings: connection.settings.clone(),
            throttle: connection.throttle,
            inbound_address: inbound.map(Into::into),
            health: self.inner.dispatch.health(connection),
            created_at: connection.id.created_at(),
            updated_at: connection.updated_at,
        })
    }

    /// Returns the view of a sender, with its webhook's secret if that is new.
    pub(super) async fn one_view(
        &self,
        tx: &mut dyn Tx,
        tenant: TenantId,
        sender: Sender,
        secret: Option<Redacted<String>>,
    ) -> Result<SenderView> {
        let mut view = self.views(tx, tenant, vec![sender]).await?.remove(0);
        if let Some(webhook) = &mut view.webhook {
            webhook.secret = secret;
        }
        Ok(view)
    }

    /// Returns the views of senders, in the same order.
    pub(super) async fn views(&self, tx: &mut dyn Tx, tenant: TenantId, senders: Vec<Sender>) -> Result<Vec<SenderView>> {
        let ids: Vec<SenderId> = senders.iter().map(|sender| sender.id).collect();
        let mut connections = tx.connections_of_senders(tenant, &ids).await?;
        connections.sort_by_key(|connection| connection.channel.number());
        let on_email: Vec<_> = connections.iter().filter(|connection| connection.channel == Channel::Email).map(|c| c.id).collect();
        let inbound = tx.inbound_addresses(tenant, &on_email).await?;
        let webhooks = tx.webhooks_of_senders(tenant, &ids).await?;
        let accounts = tx.accounts_of_senders(tenant, &ids).await?;
        let view = |sender: Sender| {
            let own: Vec<&Connection> = connections.iter().filter(|connection| connection.sender == sender.id).collect();
            let webhook = webhooks.iter().find(|webhook| webhook.sender == Some(sender.id));
            let account = accounts.iter().find(|kept| kept.sender == sender.id);
            self.assemble(sender, (&own, &inbound), webhook, account)
        };
        Ok(senders.into_iter().map(view).collect())
    }

    fn assemble(
        &self,
        sender: Sender,
        (connections, inbound): (&[&Connection], &[InboundAddress]),
        webhook: Option<&Webhook>,
        kept: Option<&KeptAccount>,
    ) -> SenderView {
        let account = kept.map(|kept| kept.account.clone()).unwrap_or_default();
        let on_whatsapp = connections.iter().any(|connection| connection.channel == Channel::Whatsapp);
        SenderView {
            webhook: webhook.map(|webhook| WebhookView::new(webhook, None)),
            whatsapp: on_whatsapp.then(|| WhatsappView::new(account, &sender.phone_number)),
            channels: connections.iter().map(|connection| connection.channel).collect(),
            connections: connections.iter().map(|connection| self.sender_connection_view(connection, inbound)).collect(),
            created_at: sender.id.created_at(),
            id: sender.id,
            name: sender.name,
            phone_number: sender.phone_number,
            is_default: sender.is_default,
            email_receiving_enabled: sender.email_receiving_enabled,
            allowed_countries: Some(sender.allowed_countries).filter(|countries| !countries.is_empty()),
            daily_spend_limit: sender.daily_spend_limit,
            updated_at: sender.updated_at,
        }
    }

    fn sender_connection_view(&self, connection: &Connection, inbound: &[InboundAddress]) -> SenderConnectionView {
        SenderConnectionView {
            id: connection.id,
            channel: connection.channel,
            kind: connection.kind.clone(),
            inbound_address: inbound.iter().find(|inbound| inbound.connection == connection.id).cloned().map(Into::into),
            health: self.inner.dispatch.health(connection),
        }
    }
}

impl WhatsappView {
    fn new(account: BusinessAccount, phone_number: &str) -> Self {
        let payment_status = PaymentStatusView {
            setup_status: account.setup_status,
            method_status: account.method_status,
            can_send_templates: account.can_send_templates(),
        };
        let shown = Some(account.display_phone_number).filter(|number| !number.is_empty());
        let display_phone_number = shown.unwrap_or_else(|| phone_number.to_owned());
        Self { phone_number_id: account.phone_number_id, display_phone_number, payment_status }
    }
}
