//! Decides who gets the mail of an inbound address: the connection that proved that it may.
//!
//! That a connection names an address in its settings proves nothing. Proofs are, in this order: the operator set the connection up or
//! vouches for it; the operator gave the domain to the project; or a code that was mailed to the address was entered. An address has one
//! claim, and an environment that comes too late is told so.

use nuncio_domain::config::{Connection, Project};
use nuncio_domain::mailbox::{Proof, Status};
use nuncio_domain::{Channel, ConnectionId, Error, ErrorCode, ProjectId, Result, SenderId, TenantId};
use nuncio_store::{InboundAddress, MailDomain, Tx};
use serde::Serialize;
use utoipa::ToSchema;

use super::Senders;

/// The address that people write to, and whether their mail comes in.
#[derive(Clone, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[schema(as = InboundAddress)]
pub struct InboundAddressView {
    /// The address.
    pub address: String,
    /// `pending` until the address is verified: the connection sends, but mail to the address does not come in.
    #[schema(value_type = Status)]
    pub status: &'static str,
}

impl From<InboundAddress> for InboundAddressView {
    fn from(found: InboundAddress) -> Self {
        let status = if found.is_claimed { Status::Verified } else { Status::Pending };
        Self { address: found.address, status: status.as_str() }
    }
}

/// Result of a claim.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Claimed {
    /// Mail for the address comes to the connection, or it has no address.
    Verified,
    /// A proof is missing.
    Pending,
    /// Another environment has the address or its domain.
    Elsewhere,
}

/// The domain of an address.
pub(crate) fn domain_of(address: &str) -> &str {
    address.rsplit_once('@').map_or(address, |(_, domain)| domain)
}

pub(crate) fn taken(address: &str) -> Error {
    let message = format!("mail to {address} comes to another environment; use another address, or ask the operator of this server");
    Error::new(ErrorCode::Conflict, message)
}

impl Senders<'_> {
    /// Notes the inbound address of a connection and claims it, if that can be done without a code.
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
            _ if owner.is_some_and(|owner| owner != project) => Claimed::Elsewhere,
            _ => Claimed::Pending,
        })
    }

    /// Claims for a connection that was just set. One that newly names an address of another environment is refused, unless the operator
    /// set it up: it is then for sending.
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

    /// Claims the addresses of all connections for which that can be done without a code. The operator's come first, then those that were
    /// there first.
    pub async fn claim_mailboxes(&self) -> Result<()> {
        let kinds: Vec<&str> = self.inner.registry.iter().map(|factory| factory.kind()).collect();
        let mut connections = self.inner.store.read().await?.connections_of_kinds(&kinds).await?;
        connections.sort_by_key(|(_, connection)| (!connection.trusted, connection.id));
        for (tenant, connection) in connections {
            // Connections that cannot be opened are reported where they are used.
            let Ok(Ok(adapter)) = self.open_adapter(tenant, &connection) else { continue };
            let Some(address) = adapter.mailbox() else { continue };
            let project = self.world(tenant).await?.project.id;
            let mut tx = self.inner.store.begin().await?;
            self.claim(&mut *tx, (tenant, project), &connection, Some(&address)).await?;
            tx.commit().await?;
        }
        Ok(())
    }

    /// Has the operator vouch for the inbound address of a sender's channel: mail for it comes to this connection from now on.
    pub async fn vouch(&self, tenant: TenantId, sender: SenderId, channel: Channel) -> Result<InboundAddressView> {
        let mut tx = self.change_world(tenant).await?;
        let (connection, inbound) = inbound_of(&mut *tx, tenant, sender, channel).await?;
        if !take(&mut *tx, (tenant, connection.id), &inbound.address, Proof::Operator).await? {
            let message =
                format!("mail to {} comes to another connection that the operator set up; remove that one first", inbound.address);
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        self.commit_change(tenant, tx).await?;
        Ok(InboundAddress { is_claimed: true, ..inbound }.into())
    }

    /// Gives a domain (in small letters, in ASCII) to a project: its live environment gets the mail of every address of the domain that it
    /// names. Claims of other environments by code end; those of connections that the operator set up stay.
    pub async fn give_mail_domain(&self, project: &Project, domain: &str) -> Result<()> {
        let given = MailDomain { domain: domain.to_owned(), project: project.id, created_at: self.ids().clock.now() };
        let mut tx = self.inner.store.begin().await?;
        let owner = tx.give_mail_domain(&given).await?;
        if owner != project.id {
            let message = format!("{domain} is given to another project ({owner}); remove it there first");
            return Err(Error::new(ErrorCode::Conflict, message));
        }
        for mailbox in tx.mailboxes_of_domain(domain).await? {
            if mailbox.proof == Proof::Code && mailbox.tenant != project.live {
                revoke(&mut *tx, &mailbox).await?;
            }
        }
        tx.commit().await?;
        self.claim_mailboxes().await
    }

    /// Takes a domain back. Claims that rest on it end.
    pub async fn remove_mail_domain(&self, domain: &str) -> Result<()> {
        let mut tx = self.inner.store.begin().await?;
        if !tx.delete_mail_domain(domain).await? {
            return Err(Error::not_found("domain"));
        }
        for mailbox in tx.mailboxes_of_domain(domain).await? {
            if mailbox.proof == Proof::Domain {
                revoke(&mut *tx, &mailbox).await?;
            }
        }
        Ok(tx.commit().await?)
    }

    /// All domains that are given, in alphabetical order.
    pub async fn mail_domains(&self) -> Result<Vec<MailDomain>> {
        Ok(self.inner.store.read().await?.list_mail_domains().await?)
    }

    /// What a check says of an address whose mail does not come in.
    pub(crate) async fn missing_mail(&self, tenant: TenantId, connection: &Connection, address: Option<String>) -> Result<String> {
        let Some(address) = address else { return Ok(String::new()) };
        let found = self.inner.store.read().await?.find_mailbox(&address).await?;
        Ok(match found {
            Some(found) if (found.tenant, found.connection) == (tenant, connection.id) => String::new(),
            Some(_) => format!("; mail to {address} comes to another connection"),
            None => format!("; mail to {address} does not come in, as the address is not verified"),
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

async fn revoke(tx: &mut dyn Tx, mailbox: &nuncio_store::Mailbox) -> Result<()> {
    tx.release_mailbox(&mailbox.address).await?;
    tracing::warn!(address = mailbox.address, connection = %mailbox.connection, by = %mailbox.proof, "claim on inbound address revoked");
    Ok(())
}

/// The connection of a sender's channel, and its inbound address.
pub(crate) async fn inbound_of(
    tx: &mut dyn Tx,
    tenant: TenantId,
    sender: SenderId,
    channel: Channel,
) -> Result<(Connection, InboundAddress)> {
    let connections = tx.connections_of_senders(tenant, &[sender]).await?;
    let connection = connections.into_iter().find(|connection| connection.channel == channel);
    let connection = connection.ok_or_else(|| Error::not_found("connection"))?;
    let inbound = tx.inbound_addresses(tenant, &[connection.id]).await?.pop();
    let message = || format!("the {channel} connection of this sender has no inbound address; only kind smtp has one");
    Ok((connection, inbound.ok_or_else(|| Error::new(ErrorCode::InvalidRequest, message()))?))
}
