//! Decides which connection receives the email of an inbound address.
//!
//! Naming an address in the settings proves nothing. Proofs, in order of precedence: the operator set up or vouches for the connection; the
//! operator assigned the domain to the project; a code emailed to the address was entered. An address has at most one claim; another
//! environment gets an error.

use nuncio_domain::config::{Connection, Project};
use nuncio_domain::mailbox::{Proof, Status};
use nuncio_domain::{Channel, ConnectionId, Error, ErrorCode, MessageId, ProjectId, Result, SenderId, TenantId};
use nuncio_store::{InboundAddress, MailDomain, Mailbox, Tx};
use serde::Serialize;
use serde_json::json;
use utoipa::ToSchema;

use super::Senders;
use crate::base::Change;

/// The inbound address of a connection, and whether email for it is accepted.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[schema(as = InboundAddress)]
pub struct InboundAddressView {
    /// The address.
    pub address: String,
    /// `pending` until the address is verified: the connection can send, but email to the address is not accepted.
    pub status: Status,
}

impl From<InboundAddress> for InboundAddressView {
    fn from(found: InboundAddress) -> Self {
        let status = if found.is_claimed { Status::Verified } else { Status::Pending };
        Self { address: found.address, status }
    }
}

/// Result of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claimed {
    /// The connection receives email for the address, or has no address.
    Verified,
    /// Not verified.
    Pending,
    /// The operator gave the address to another connection of this environment: no code takes it from there.
    Kept,
    /// Another environment has the address or its domain.
    Elsewhere,
}

pub(crate) fn domain_of(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, domain)| domain)
}

pub(crate) fn taken(address: &str) -> Error {
    let message = format!("another environment receives email for {address}; use another address, or ask the operator of this server");
    Error::new(ErrorCode::Conflict, message)
}

pub(crate) fn kept(address: &str) -> Error {
    let message = format!(
        "another sender of this environment receives email for {address}, as the operator decided; use another address, or ask the operator \
         of this server"
    );
    Error::new(ErrorCode::Conflict, message)
}

impl Senders<'_> {
    /// Stores the inbound address of a connection, and claims it if that needs no code.
    pub(crate) async fn claim(
        &self,
        tx: &mut dyn Tx,
        (tenant, project): (TenantId, ProjectId),
        connection: &Connection,
        address: Option<&str>,
    ) -> Result<Claimed> {
        tx.set_inbound_address(tenant, connection.id, address).await?;
        let Some(address) = address else { return Ok(Claimed::Verified) };
        let owner = tx.find_mail_domain(domain_of(address)).await?;
        let proof = if connection.trusted { Some(Proof::Operator) } else { owner.filter(|o| *o == project).map(|_| Proof::Domain) };
        if let Some(proof) = proof
            && take(tx, (tenant, connection.id), address, proof).await?
        {
            return Ok(Claimed::Verified);
        }
        let holder = tx.find_mailbox(address).await?;
        Ok(match holder {
            Some(holder) if (holder.tenant, holder.connection) == (tenant, connection.id) => Claimed::Verified,
            Some(holder) if holder.tenant != tenant => Claimed::Elsewhere,
            Some(holder) if holder.proof == Proof::Operator => Claimed::Kept,
            _ if owner.is_some_and(|owner| owner != project) => Claimed::Elsewhere,
            _ => Claimed::Pending,
        })
    }

    /// Claims the address of a connection that was just set up. Rejects an address of another environment, unless the operator set the
    /// connection up, for sending only.
    pub(crate) async fn claim_new(
        &self,
        tx: &mut dyn Tx,
        place: (TenantId, ProjectId),
        connection: &Connection,
        address: Option<&str>,
    ) -> Result<()> {
        let before = tx.inbound_addresses(place.0, &[connection.id]).await?.pop();
        let claimed = self.claim(tx, place, connection, address).await?;
        let is_new = before.as_ref().map(|before| before.address.as_str()) != address;
        match address {
            Some(address) if claimed == Claimed::Elsewhere && is_new && !connection.trusted => Err(taken(address)),
            _ => Ok(()),
        }
    }

    /// Claims the addresses of all connections where that needs no code. The operator's come first, then the oldest.
    pub async fn claim_mailboxes(&self) -> Result<()> {
        let kinds: Vec<&str> = self.inner.registry.iter().map(|factory| factory.kind()).collect();
        let mut connections = self.inner.store.read().await?.connections_of_kinds(&kinds).await?;
        connections.sort_by_key(|(_, connection)| (!connection.trusted, connection.id));
        for (tenant, connection) in connections {
            // Connections that cannot be opened are reported where they are used.
            let Ok(adapter) = self.inner.dispatch.open_adapter(tenant, &connection) else { continue };
            let Some(address) = adapter.mailbox() else { continue };
            let project = self.tenant_config(tenant).await?.project.id;
            self.claim_unchanged((tenant, project), &connection, &address).await?;
        }
        Ok(())
    }

    /// Claims the address of a connection, unless it was changed or deleted since it was read: its former address would replace its own.
    async fn claim_unchanged(&self, place: (TenantId, ProjectId), connection: &Connection, address: &str) -> Result<()> {
        let mut tx = self.change_config(place.0).await?;
        if tx.connections_of_senders(place.0, &[connection.sender]).await?.contains(connection) {
            self.claim(&mut *tx, place, connection, Some(address)).await?;
            self.commit_change(place.0, tx).await?;
        }
        Ok(())
    }

    /// Lets the operator vouch for the inbound address of a sender's channel: this connection receives its email from now on.
    pub async fn vouch(&self, tenant: TenantId, sender: SenderId, channel: Channel) -> Result<InboundAddressView> {
        let mut tx = self.change_config(tenant).await?;
        let (connection, inbound) = inbound(&mut *tx, tenant, sender, channel).await?;
        if !take(&mut *tx, (tenant, connection.id), &inbound.address, Proof::Operator).await? {
            let message =
                format!("another connection set up by the operator receives email for {}; remove that one first", inbound.address);
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        let change = Change::new("connection", "verify_address", connection.id);
        change.to(&json!({"address": inbound.address, "by": "operator"})).record(&mut *tx, tenant).await?;
        self.commit_change(tenant, tx).await?;
        Ok(InboundAddress { is_claimed: true, ..inbound }.into())
    }

    /// Assigns a domain (in lower case and ASCII) to a project: its live environment receives email for every address of the domain that it
    /// uses. Ends claims of other environments by code, but not those of the operator.
    pub async fn assign_mail_domain(&self, project: &Project, domain: &str) -> Result<()> {
        let given = MailDomain { domain: domain.to_owned(), project: project.id, created_at: self.ids().clock.now() };
        let mut tx = self.inner.store.begin().await?;
        let owner = tx.assign_mail_domain(&given).await?;
        if owner != project.id {
            let message = format!("{domain} is assigned to another project ({owner}); remove it there first");
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        for mailbox in tx.mailboxes_of_domain(domain).await? {
            if mailbox.proof == Proof::Code && mailbox.tenant != project.live {
                revoke(&mut *tx, &mailbox).await?;
            }
        }
        Change::new("mail_domain", "create", domain).commit_of(tx, project).await?;
        self.claim_mailboxes().await
    }

    /// Removes a domain's assignment, and the claims based on it.
    pub async fn remove_mail_domain(&self, domain: &str) -> Result<()> {
        let mut tx = self.inner.store.begin().await?;
        let owner = tx.find_mail_domain(domain).await?;
        if !tx.delete_mail_domain(domain).await? {
            return Err(Error::not_found("domain"));
        }
        if let Some(project) = tx.list_projects().await?.iter().find(|project| Some(project.id) == owner) {
            Change::new("mail_domain", "delete", domain).record_of(&mut *tx, project).await?;
        }
        for mailbox in tx.mailboxes_of_domain(domain).await? {
            if mailbox.proof == Proof::Domain {
                revoke(&mut *tx, &mailbox).await?;
            }
        }
        Ok(tx.commit().await?)
    }

    /// Returns the connection that receives email for an address (in lower case); `None` if there is none, or its sender accepts none.
    pub async fn find_mailbox(&self, address: &str) -> Result<Option<(TenantId, ConnectionId)>> {
        let found = self.inner.store.read().await?.find_mailbox(address).await?;
        let Some(Mailbox { tenant, connection: id, .. }) = found else { return Ok(None) };
        let config = self.tenant_config(tenant).await?;
        let connection = config.connections.iter().find(|connection| connection.id == id);
        let sender = connection.and_then(|connection| config.sender(connection.sender));
        Ok(sender.filter(|sender| sender.email_receiving_enabled).map(|_| (tenant, id)))
    }

    /// Returns the connection of a message's attempt (from 0); of its newest attempt if `None`.
    pub async fn connection_of_attempt(&self, tenant: TenantId, id: MessageId, attempt: Option<usize>) -> Result<Option<ConnectionId>> {
        let message = self.inner.store.read().await?.lookup_messages(tenant, &[id]).await?.pop();
        let Some(message) = message else { return Ok(None) };
        let attempts = &message.state.detail.attempts;
        Ok(attempt.map_or(attempts.last(), |attempt| attempts.get(attempt)).map(|attempt| attempt.connection))
    }

    /// Returns all assigned domains in alphabetical order.
    pub async fn mail_domains(&self) -> Result<Vec<MailDomain>> {
        Ok(self.inner.store.read().await?.list_mail_domains().await?)
    }

    /// Returns the warning of a connection check about an address whose email is not accepted.
    pub(crate) async fn missing_mail(&self, tenant: TenantId, connection: &Connection, address: Option<String>) -> Result<String> {
        let Some(address) = address else { return Ok(String::new()) };
        let found = self.inner.store.read().await?.find_mailbox(&address).await?;
        let is_on = self.tenant_config(tenant).await?.sender(connection.sender).is_some_and(|sender| sender.email_receiving_enabled);
        Ok(match found {
            _ if !self.inner.receives_email => {
                format!("; email to {address} is not received, as this server does not listen for email ([email] listen)")
            }
            None => format!("; email to {address} is not accepted, as the address is not verified"),
            Some(found) if (found.tenant, found.connection) != (tenant, connection.id) => {
                format!("; another connection receives email for {address}")
            }
            Some(_) if is_on => String::new(),
            Some(_) => format!("; email to {address} is not accepted, as emailReceivingEnabled of the sender is false"),
        })
    }
}

/// Claims an address, and logs who loses it.
pub(crate) async fn take(tx: &mut dyn Tx, (tenant, connection): (TenantId, ConnectionId), address: &str, proof: Proof) -> Result<bool> {
    let before = tx.find_mailbox(address).await?;
    let is_done = tx.claim_mailbox(tenant, connection, address, proof).await?;
    if let Some(loser) = before.filter(|before| is_done && (before.tenant, before.connection) != (tenant, connection)) {
        tracing::warn!(address, connection = %loser.connection, now = %connection, by = %proof, "inbound address moved to another connection");
    }
    Ok(is_done)
}

async fn revoke(tx: &mut dyn Tx, mailbox: &Mailbox) -> Result<()> {
    tx.release_mailbox(&mailbox.address).await?;
    tracing::warn!(address = mailbox.address, connection = %mailbox.connection, by = %mailbox.proof, "claim on inbound address revoked");
    Ok(())
}

/// Returns the connection of a sender's channel, and its inbound address.
pub(crate) async fn inbound(tx: &mut dyn Tx, tenant: TenantId, sender: SenderId, channel: Channel) -> Result<(Connection, InboundAddress)> {
    let connections = tx.connections_of_senders(tenant, &[sender]).await?;
    let connection = connections.into_iter().find(|connection| connection.channel == channel);
    let connection = connection.ok_or_else(|| Error::not_found("connection"))?;
    let inbound = tx.inbound_addresses(tenant, &[connection.id]).await?.pop();
    let message = || format!("the {channel} connection of this sender has no inbound address; only kind smtp has one");
    Ok((connection, inbound.ok_or_else(|| Error::new(ErrorCode::InvalidRequest, message()))?))
}
