//! Composes the messages of a broadcast.

use std::sync::Arc;

use nuncio_domain::config::{Sender, TenantConfig};
use nuncio_domain::message::{Failure, FailureCode, Membership, OnUnknown};
use nuncio_domain::{AddressKind, ErrorCode, Result, Timestamp, address::Parsed, broadcast::Broadcast, template::Template};
use nuncio_store::{IdempotentOperation, NewBroadcastContact};

use super::{Broadcasts, content, links, variables};
use crate::messages::plan::{Destination, Planned, Planner};
use crate::messages::routing::RoutingInputs;
use crate::{base::Core, messages::SendMessage};

pub(super) struct Composer<'a> {
    pub(super) broadcast: &'a Broadcast,
    pub(super) config: Arc<TenantConfig>,
    pub(super) sender: Sender,
    /// As it was reviewed, if it was.
    pub(super) template: Option<Template>,
}

impl Broadcasts<'_> {
    /// Prepares to compose messages. With the inner error, every recipient fails.
    pub(super) async fn composer<'a>(&self, broadcast: &'a Broadcast) -> Result<std::result::Result<Composer<'a>, Failure>> {
        let mut config = self.tenant_config(broadcast.tenant).await?;
        if config.sender(broadcast.sender).is_none() {
            config = self.current_config(broadcast.tenant).await?;
        }
        let Some(sender) = config.sender(broadcast.sender).cloned() else {
            return Ok(Err(Failure::own(FailureCode::Undeliverable, "the sender of the broadcast was deleted")));
        };
        match self.named_template(broadcast).await {
            Ok(template) => {
                let template = template.map(|template| content::reviewed(broadcast, template));
                Ok(Ok(Composer { broadcast, config, sender, template }))
            }
            Err(error) if error.code() == ErrorCode::NotFound => {
                Ok(Err(Failure::own(FailureCode::ContentRejected, "the template of the broadcast was deleted")))
            }
            Err(error) => Err(error),
        }
    }

    /// Plans the message to a recipient. If `explores`, another good channel is tried occasionally.
    pub(super) fn plan_contact(
        &self,
        composer: &Composer<'_>,
        contact: &NewBroadcastContact,
        known: &RoutingInputs,
        now: Timestamp,
        explores: bool,
    ) -> Result<Planned> {
        let Composer { broadcast, config, sender, template } = composer;
        let planner = Planner {
            config,
            sender,
            known,
            ids: self.ids(),
            marks: &self.inner.marks,
            now,
            operation: IdempotentOperation::SendMessage,
            lenient: false,
            explores,
            template: template.as_ref(),
        };
        let command = command(self, composer, contact)?;
        let destination = Destination::of(Parsed::from(&contact.recipient), command.channel.unwrap_or_default())?;
        let mut planned = planner.plan(command, destination)?;
        planned.require_open_window(known)?;
        // The provider's response shows this too, unless it is lost and a person reports that the message was sent.
        let no_receipts = !self.inner.dispatch.has_receipts(broadcast.tenant, &planned.connection);
        planned.accept.message.state.detail.broadcast = Some(Membership::new(broadcast.id, contact.id, no_receipts));
        Ok(planned)
    }
}

/// Returns the message to a recipient as a request to send it.
pub(super) fn command(core: &Core, composer: &Composer<'_>, contact: &NewBroadcastContact) -> Result<SendMessage> {
    let mut command = content::message(composer.broadcast);
    command.to.clone_from(&contact.recipient.identifier);
    command.on_unknown = Some(OnUnknown::Hold);
    if composer.template.is_some() {
        command.content = Some(Box::new(variables::merged(composer.broadcast, &contact.variables)));
    }
    if contact.recipient.kind == AddressKind::Email {
        command.subject.clone_from(&composer.broadcast.body.email_subject);
        command.html_body.clone_from(&composer.broadcast.html);
    }
    links::put_in(core, composer.broadcast, contact.id, &mut command);
    variables::fill_in(composer.broadcast, &contact.variables, &mut command)?;
    Ok(command)
}
