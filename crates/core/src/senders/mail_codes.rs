//! Verifies an inbound address by a code emailed to it.
//!
//! The code is sent through the operator's mail server, not through the connection's relay: callers can configure their own relay and would
//! read the code there. For the same reason it is not stored in a message, which callers can read.

use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::{Account, Outcome, SendRequest};
use nuncio_domain::config::Connection;
use nuncio_domain::mailbox::{Proof, Status as Inbound};
use nuncio_domain::message::{Detail, Direction, Message, Request, Route, State, Status, Wait};
use nuncio_domain::{Channel, Error, ErrorCode, MessageType, Permission, Redacted, RequestedChannel, Result, TenantId, Timestamp, limits};
use nuncio_secrets::mac;
use nuncio_store::MailCode;
use serde::{Deserialize, Serialize};
use serde_json::{Map, json};
use subtle::ConstantTimeEq as _;
use utoipa::ToSchema;

use super::claims::{Claimed, InboundAddressView, domain_of, inbound, kept, take, taken};
use super::{Senders, connections::place};
use crate::base::{Caller, Change, CodeRelay};

/// A code sent by email.
#[serde_with::skip_serializing_none]
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
#[schema(as = SentCode)]
pub struct SentCodeView {
    /// The address.
    pub address: String,
    /// `verified` if the address was already verified; then no code was sent.
    pub status: Inbound,
    /// When the code expires.
    pub expires_at: Option<Timestamp>,
}

/// A code received by email.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct EnterCode {
    /// Eight digits.
    #[schema(min_length = 8, max_length = 8, example = "12345678")]
    pub code: String,
}

/// How long a caller waits for the mail server that sends codes.
const SENDING: Duration = Duration::from_secs(20);

impl Senders<'_> {
    /// `POST /v1/senders/{id}/channels/{channel}/verification`: emails a code to the inbound address.
    pub async fn request_address_code(&self, caller: &Caller, sender: &str, channel: &str) -> Result<SentCodeView> {
        caller.require(Permission::SendersWrite)?;
        let (sender, channel) = place(sender, channel)?;
        let project = self.tenant_config(caller.tenant).await?.project.id;
        let mut tx = self.change_config(caller.tenant).await?;
        let (connection, inbound) = inbound(&mut *tx, caller.tenant, sender, channel).await?;
        let address = inbound.address;
        match self.claim(&mut *tx, (caller.tenant, project), &connection, Some(&address)).await? {
            Claimed::Elsewhere => return Err(taken(&address)),
            Claimed::Kept => return Err(kept(&address)),
            Claimed::Verified => {
                self.commit_change(caller.tenant, tx).await?;
                return Ok(SentCodeView { address, status: Inbound::Verified, expires_at: None });
            }
            Claimed::Pending => {}
        }
        let Some(relay) = self.inner.code_relay.as_ref() else {
            let message =
                format!("this server cannot email codes; ask its operator to assign the domain {} to your project", domain_of(&address));
            return Err(Error::new(ErrorCode::InvalidRequest, message));
        };
        let now = self.ids().clock.now();
        tx.purge_mail_codes(caller.tenant, now.minus(limits::MAIL_CODE_SPAN)).await?;
        let codes = tx.list_mail_codes(caller.tenant).await?;
        let before = codes.iter().find(|code| code.address == address);
        check_limits(before, codes.len(), now)?;
        let digits = Redacted::new(format!("{:08}", self.ids().entropy.below(100_000_000)));
        let code = MailCode {
            hash: self.mail_code_hash(caller.tenant, &address, digits.expose()),
            address: address.clone(),
            tries: 0,
            sends: before.map_or(0, |before| before.sends) + 1,
            first_at: before.map_or(now, |before| before.first_at),
            sent_at: now,
        };
        tx.put_mail_code(caller.tenant, &code).await?;
        Change::new("connection", "request_code", connection.id).to(&json!({"address": address})).record(&mut *tx, caller.tenant).await?;
        self.commit_change(caller.tenant, tx).await?;
        self.mail_code(caller.tenant, &connection, relay, &address, &digits).await?;
        Ok(SentCodeView { address, status: Inbound::Pending, expires_at: Some(now.plus(limits::MAIL_CODE_TTL)) })
    }

    /// `POST /v1/senders/{id}/channels/{channel}/verify`: claims the inbound address with the code sent to it.
    pub async fn verify_address(&self, caller: &Caller, sender: &str, channel: &str, entered: &EnterCode) -> Result<InboundAddressView> {
        caller.require(Permission::SendersWrite)?;
        let (sender, channel) = place(sender, channel)?;
        let tenant = caller.tenant;
        let project = self.tenant_config(tenant).await?.project.id;
        let mut tx = self.change_config(tenant).await?;
        let (connection, inbound) = inbound(&mut *tx, tenant, sender, channel).await?;
        if inbound.is_claimed {
            return Ok(inbound.into());
        }
        let now = self.ids().clock.now();
        let codes = tx.list_mail_codes(tenant).await?;
        let is_good = |code: &MailCode| {
            code.address == inbound.address && code.tries < limits::MAIL_CODE_TRIES && now < code.sent_at.plus(limits::MAIL_CODE_TTL)
        };
        let Some(mut code) = codes.into_iter().find(is_good) else {
            let message = format!("there is no valid code for {}; request a new one with POST …/verification", inbound.address);
            return Err(Error::field("code", message));
        };
        let hash = self.mail_code_hash(tenant, &inbound.address, &entered.code);
        let is_right: bool = hash.ct_eq(&code.hash).into();
        // Each entry uses the code up, right or wrong; a right one invalidates it.
        code.tries = if is_right { limits::MAIL_CODE_TRIES } else { code.tries + 1 };
        tx.put_mail_code(tenant, &code).await?;
        if !is_right {
            self.commit_change(tenant, tx).await?;
            let left = limits::MAIL_CODE_TRIES - code.tries;
            let message = format!("is not the code sent to {}; {left} tries are left", inbound.address);
            return Err(Error::field("code", message));
        }
        // The domain may have been assigned to another project since the code was sent.
        let owner = tx.find_mail_domain(domain_of(&inbound.address)).await?;
        let is_taken =
            owner.is_some_and(|owner| owner != project) || !take(&mut *tx, (tenant, connection.id), &inbound.address, Proof::Code).await?;
        let mut refused = None;
        if is_taken {
            let holder = tx.find_mailbox(&inbound.address).await?;
            let is_here = holder.is_some_and(|holder| holder.tenant == tenant);
            refused = Some(if is_here { kept(&inbound.address) } else { taken(&inbound.address) });
        } else {
            let change = Change::new("connection", "verify_address", connection.id);
            change.to(&json!({"address": inbound.address, "by": "code"})).record(&mut *tx, tenant).await?;
        }
        self.commit_change(tenant, tx).await?;
        if let Some(refused) = refused {
            return Err(refused);
        }
        tracing::info!(address = inbound.address, connection = %connection.id, "inbound address verified by code");
        Ok(nuncio_store::InboundAddress { is_claimed: true, ..inbound }.into())
    }

    /// Keyed: the few possible codes could be tried against a plain hash.
    fn mail_code_hash(&self, tenant: TenantId, address: &str, digits: &str) -> Vec<u8> {
        let key = self.inner.sealer.derive(b"mail codes");
        mac(key.expose(), &[&tenant.0.to_be_bytes(), address.as_bytes(), b"/", digits.as_bytes()]).to_vec()
    }

    async fn mail_code(
        &self,
        tenant: TenantId,
        connection: &Connection,
        relay: &CodeRelay,
        to: &str,
        digits: &Redacted<String>,
    ) -> Result<()> {
        let settings = json!({"host": relay.host, "port": relay.port, "tls": "none", "from": relay.from, "timeout_seconds": 20});
        let account = Account {
            id: self.ids().next(),
            tenant,
            channel: Channel::Email,
            settings: if let serde_json::Value::Object(settings) = settings { settings } else { Map::new() },
            secrets: Redacted::new(Map::new()),
            trusted: true,
        };
        let unusable = |faults| Error::internal(format!("the mail server for codes has invalid settings: {faults:?}"));
        let adapter = self.inner.registry.open(&connection.kind, &account, &self.inner.services).map_err(unusable)?;
        let message = self.code_message(tenant, connection, relay, to, digits);
        let now = self.ids().clock.now();
        let request = SendRequest { message: &message, attempt: 0, channel: Channel::Email, attachments: &[], now };
        // A relay may process a mail for minutes; the caller does not wait for that.
        match tokio::time::timeout(SENDING, adapter.send(&request)).await {
            Ok(Outcome::Accepted { .. }) => {
                tracing::info!(address = to, connection = %connection.id, "emailed a code to an inbound address");
                Ok(())
            }
            verdict => {
                tracing::warn!(address = to, ?verdict, "failed to email a code to an inbound address");
                Err(Error::unavailable("the code could not be sent; try again in a minute"))
            }
        }
    }

    fn code_message(&self, tenant: TenantId, connection: &Connection, relay: &CodeRelay, to: &str, digits: &Redacted<String>) -> Message {
        let now = self.ids().clock.now();
        let minutes = limits::MAIL_CODE_TTL.as_secs() / 60;
        let text = format!(
            "{} is the code to receive email for {to} at {}. It is valid for {minutes} minutes.\n\n\
             Anyone who enters it receives the email for this address. If you did not request it, do not share it.\n",
            digits.expose(),
            self.inner.public_url
        );
        let mut request = Request::text(RequestedChannel::Only(Channel::Email), text);
        request.subject = Some("Your code".to_owned());
        Message {
            tenant,
            id: self.ids().at(now),
            direction: Direction::Outbound,
            message_type: MessageType::Text,
            to: to.to_owned(),
            from: relay.from.clone(),
            sender: connection.sender,
            address: self.ids().next(),
            request: Arc::new(request),
            state: State {
                status: Status::Sending,
                wait: Wait::Nothing,
                fence: 0,
                version: 0,
                expires_at: now,
                updated_at: now,
                route: Route { channel: Channel::Email, connection: connection.id, provider: connection.kind.clone() },
                // Marked as automatic, so that other systems do not reply.
                detail: Detail { compliance: true, ..Detail::default() },
            },
        }
    }
}

/// Limits codes, so that addresses cannot be flooded with them.
fn check_limits(before: Option<&MailCode>, addresses: usize, now: Timestamp) -> Result<()> {
    let wait = |sent: String, wait: Duration| {
        let message = format!("{sent}; the next one can be sent in {} seconds", wait.as_secs() + 1);
        Error::new(ErrorCode::Conflict, message)
    };
    match before {
        Some(before) if now.since(before.sent_at) < limits::MAIL_CODE_PAUSE => {
            Err(wait("a code has just been sent".to_owned(), limits::MAIL_CODE_PAUSE - now.since(before.sent_at)))
        }
        Some(before) if before.sends >= limits::MAIL_CODES => {
            let sent = format!("{} codes were sent to this address within a day, which is the limit", before.sends);
            Err(wait(sent, limits::MAIL_CODE_SPAN - now.since(before.first_at)))
        }
        None if addresses >= limits::MAIL_CODE_ADDRESSES => {
            let message = format!("codes were sent to {addresses} addresses within a day, which is the limit; try again later");
            Err(Error::new(ErrorCode::Conflict, message))
        }
        _ => Ok(()),
    }
}
