//! `POST /v1/messages/{id}/cancel` and `/resolve`: human decisions on accepted messages.

use nuncio_domain::lifecycle::{Applied, Resolution, Step};
use nuncio_domain::message::{State, Status, Wait};
use nuncio_domain::{Error, ErrorCode, MessageId, Result, TenantId};
use nuncio_store::{Transition, Transitioned};
use serde_json::json;

use super::{Messages, view::MessageView};
use crate::base::{Caller, Change, UseCase, parse_id};

impl Messages<'_> {
    /// Cancels a message that was not sent to a provider yet.
    pub async fn cancel(&self, caller: &Caller, id: &str) -> Result<MessageView> {
        caller.require(UseCase::CancelMessage)?;
        let id = parse_id(id, "message")?;
        let (applied, state) = self.step(caller.tenant, id, Step::Cancel).await?;
        if applied == Applied::Lost {
            let message = match state.wait {
                Wait::Owned { .. } => "an attempt is in flight, so the message can no longer be cancelled",
                _ => "only a message that was not sent to a provider can be cancelled",
            };
            return Err(Error::wrong_state(message, state.status.as_str(), &["scheduled", "queued", "sending"]));
        }
        self.record_apart(Change::new("message", "cancel", id), caller.tenant).await?;
        self.view(caller, id).await
    }

    /// Resolves a held message.
    pub async fn resolve(&self, caller: &Caller, id: &str, action: Resolution) -> Result<MessageView> {
        caller.require(UseCase::ResolveMessage)?;
        let id = parse_id(id, "message")?;
        let (applied, state) = self.decided(caller.tenant, id, action).await?;
        if applied == Applied::Lost {
            let message = "only a held message (one with a heldReason) can be resolved";
            return Err(Error::wrong_state(message, state.status.as_str(), &[Status::Scheduled.as_str(), Status::Sending.as_str()]));
        }
        // For a resend, the scanner finds it and knows its size.
        self.inner.dispatch.log_signals().changed(caller.tenant);
        self.view(caller, id).await
    }

    /// Resolves a held message for the operator; `false` if it is not held or does not exist.
    pub async fn resolve_held(&self, tenant: TenantId, id: MessageId, action: Resolution) -> Result<bool> {
        match self.decided(tenant, id, action).await {
            Ok((applied, _)) => Ok(applied == Applied::Yes),
            Err(error) if error.code() == ErrorCode::NotFound => Ok(false),
            Err(error) => Err(error),
        }
    }

    async fn decided(&self, tenant: TenantId, id: MessageId, action: Resolution) -> Result<(Applied, State)> {
        let (applied, state) = self.step(tenant, id, Step::Resolve { action }).await?;
        if applied == Applied::Yes {
            self.record_apart(Change::new("message", "resolve", id).to(&json!({"action": action})), tenant).await?;
        }
        Ok((applied, state))
    }

    async fn step(&self, tenant: TenantId, id: MessageId, step: Step) -> Result<(Applied, State)> {
        let transition = Transition::new(tenant, id, step, self.ids().clock.now());
        let transitioned = self.inner.store.transition(transition).await?;
        self.inner.dispatch.count_step(tenant, &transitioned);
        match transitioned {
            Transitioned::Found { applied, state, .. } => Ok((applied, *state)),
            Transitioned::Missing => Err(Error::not_found("message")),
        }
    }
}
