//! Inbound email addresses: who claimed them, by what proof, and the domains and codes behind the proofs.

use async_trait::async_trait;
use nuncio_domain::mailbox::Proof;
use nuncio_domain::{ConnectionId, ProjectId, TenantId, Timestamp};

use crate::error::Result;

/// The inbound address of a connection.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InboundAddress {
    /// The connection.
    pub connection: ConnectionId,
    /// The address, in small letters, its domain in ASCII.
    pub address: String,
    /// Whether mail for the address comes to the connection.
    pub is_claimed: bool,
}

/// A claimed address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Mailbox {
    /// The address.
    pub address: String,
    /// The environment that mail for it comes to.
    pub tenant: TenantId,
    /// The connection that mail for it comes to.
    pub connection: ConnectionId,
    /// Why it may.
    pub proof: Proof,
}

/// A domain that the operator gave to a project.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MailDomain {
    /// The domain, in small letters and in ASCII. Its subdomains are not included.
    pub domain: String,
    /// The project.
    pub project: ProjectId,
    /// When it was given.
    pub created_at: Timestamp,
}

/// A code that was mailed to an address.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MailCode {
    /// The address.
    pub address: String,
    /// A keyed hash of the code.
    pub hash: Vec<u8>,
    /// Wrong codes that were entered since it was sent.
    pub tries: i16,
    /// Codes that were sent to the address since `first_at`.
    pub sends: i16,
    /// When the first one was sent.
    pub first_at: Timestamp,
    /// When the last one was sent, which this is.
    pub sent_at: Timestamp,
}

/// Inbound email addresses.
#[async_trait]
pub trait MailboxRepo {
    /// Notes the address that mail for a connection comes to once it is claimed. A claim of the connection on another one ends.
    async fn set_inbound_address(&mut self, tenant: TenantId, connection: ConnectionId, address: Option<&str>) -> Result<()>;

    /// The inbound addresses of these connections; those that have none are left out.
    async fn inbound_addresses(&mut self, tenant: TenantId, connections: &[ConnectionId]) -> Result<Vec<InboundAddress>>;

    /// Has mail for an address come to a connection; answers whether it does. Of two connections the first one keeps an address, except
    /// that an operator's claim goes before all others, that of a domain before a code of another environment, and that a code moves an
    /// address, unless it is the operator's, within its environment.
    async fn claim_mailbox(&mut self, tenant: TenantId, connection: ConnectionId, address: &str, proof: Proof) -> Result<bool>;

    /// Who claimed an address.
    async fn find_mailbox(&mut self, address: &str) -> Result<Option<Mailbox>>;

    /// The claimed addresses of a domain.
    async fn mailboxes_of_domain(&mut self, domain: &str) -> Result<Vec<Mailbox>>;

    /// Ends the claim on an address; `false` when there is none.
    async fn release_mailbox(&mut self, address: &str) -> Result<bool>;

    /// Gives a domain to a project, unless it is given; answers whose it is then.
    async fn give_mail_domain(&mut self, domain: &MailDomain) -> Result<ProjectId>;

    /// To which project a domain is given.
    async fn find_mail_domain(&mut self, domain: &str) -> Result<Option<ProjectId>>;

    /// All domains that are given, in alphabetical order.
    async fn list_mail_domains(&mut self) -> Result<Vec<MailDomain>>;

    /// Takes a domain back; `false` when it is not given.
    async fn delete_mail_domain(&mut self, domain: &str) -> Result<bool>;

    /// Writes a code, in place of the one of its address.
    async fn put_mail_code(&mut self, tenant: TenantId, code: &MailCode) -> Result<()>;

    /// All codes of an environment.
    async fn list_mail_codes(&mut self, tenant: TenantId) -> Result<Vec<MailCode>>;

    /// Forgets the codes of addresses whose first one was sent before a time.
    async fn purge_mail_codes(&mut self, tenant: TenantId, before: Timestamp) -> Result<()>;
}
