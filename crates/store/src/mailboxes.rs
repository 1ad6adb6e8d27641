//! Inbound email addresses: claims, their proofs, and the domains and codes behind the proofs.

use async_trait::async_trait;
use nuncio_domain::mailbox::Proof;
use nuncio_domain::{ConnectionId, ProjectId, TenantId, Timestamp};

use crate::error::Result;

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InboundAddress {
    pub connection: ConnectionId,
    /// The address, in lower case, its domain in ASCII.
    pub address: String,
    /// Whether the connection receives email for the address.
    pub is_claimed: bool,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mailbox {
    pub address: String,
    /// The environment that receives email for it.
    pub tenant: TenantId,
    /// The connection that receives email for it.
    pub connection: ConnectionId,
    /// The proof of the claim.
    pub proof: Proof,
}

/// A domain assigned to a project by the operator.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MailDomain {
    /// In lower case and ASCII. Does not include subdomains.
    pub domain: String,
    pub project: ProjectId,
    pub created_at: Timestamp,
}

/// A verification code emailed to an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MailCode {
    pub address: String,
    /// Keyed hash of the code.
    pub hash: Vec<u8>,
    /// Wrong codes entered since it was sent.
    pub tries: i16,
    /// Codes sent to the address since `first_at`.
    pub sends: i16,
    pub first_at: Timestamp,
    /// When this code, the last one, was sent.
    pub sent_at: Timestamp,
}

/// Inbound email addresses.
#[async_trait]
pub trait MailboxRepo {
    /// Sets the address a connection receives email for once it is claimed. Ends the connection's claim on another address.
    async fn set_inbound_address(&mut self, tenant: TenantId, connection: ConnectionId, address: Option<&str>) -> Result<()>;

    /// Returns the inbound addresses of these connections, where they have one.
    async fn inbound_addresses(&mut self, tenant: TenantId, connections: &[ConnectionId]) -> Result<Vec<InboundAddress>>;

    /// Claims an address for a connection; returns whether it has the claim. The first claim wins, with these exceptions: an operator's
    /// claim precedes all others; a domain's claim precedes a code of another environment; a code can move an address within its
    /// environment, unless the operator claimed it.
    async fn claim_mailbox(&mut self, tenant: TenantId, connection: ConnectionId, address: &str, proof: Proof) -> Result<bool>;

    /// Returns the claim on an address.
    async fn find_mailbox(&mut self, address: &str) -> Result<Option<Mailbox>>;

    /// Returns the claimed addresses of a domain.
    async fn mailboxes_of_domain(&mut self, domain: &str) -> Result<Vec<Mailbox>>;

    /// Ends the claim on an address; `false` if there is none.
    async fn release_mailbox(&mut self, address: &str) -> Result<bool>;

    /// Assigns a domain to a project unless it is assigned; returns the project that has it.
    async fn assign_mail_domain(&mut self, domain: &MailDomain) -> Result<ProjectId>;

    /// Returns the project a domain is assigned to.
    async fn find_mail_domain(&mut self, domain: &str) -> Result<Option<ProjectId>>;

    /// Lists all assigned domains in alphabetical order.
    async fn list_mail_domains(&mut self) -> Result<Vec<MailDomain>>;

    /// Removes a domain's assignment; `false` if there is none.
    async fn delete_mail_domain(&mut self, domain: &str) -> Result<bool>;

    /// Stores a code, replacing the one of its address.
    async fn put_mail_code(&mut self, tenant: TenantId, code: &MailCode) -> Result<()>;

    /// Returns all codes of an environment.
    async fn list_mail_codes(&mut self, tenant: TenantId) -> Result<Vec<MailCode>>;

    /// Deletes codes of addresses whose first code was sent before a time.
    async fn purge_mail_codes(&mut self, tenant: TenantId, before: Timestamp) -> Result<()>;
}
