//! `nuncio audit`.

use clap::Subcommand;

use super::values::{count, time};
use crate::client::lists::{self, AUDIT_LOG};
use crate::client::profile::Remote;

#[derive(Debug, Subcommand)]
pub(super) enum AuditAction {
    /// List changes, newest first. --json shows them before and after.
    List {
        /// Only those by this email address, API key ID or invitation ID, or by "command line".
        #[arg(long)]
        actor: Option<String>,
        /// Only those of resources of this type, such as sender.
        #[arg(long = "type", value_name = "TYPE")]
        kind: Option<String>,
        /// Only those of this resource.
        #[arg(long, value_name = "ID")]
        resource: Option<String>,
        /// Only those made at or after this time, such as 2027-01-31T09:30:00Z.
        #[arg(long, value_name = "TIME", value_parser = time)]
        since: Option<String>,
        /// Only those made before this time.
        #[arg(long, value_name = "TIME", value_parser = time)]
        until: Option<String>,
        /// The most to list per environment.
        #[arg(long, default_value_t = 20, value_parser = count())]
        limit: usize,
    },
}

impl AuditAction {
    pub(super) async fn run(self, at: &Remote) -> anyhow::Result<()> {
        let Self::List { actor, kind, resource, since, until, limit } = self;
        let query = [("actor", actor), ("resourceType", kind), ("resourceId", resource), ("since", since), ("until", until)];
        let query: Vec<_> = query.iter().map(|(name, value)| (*name, value.as_deref())).collect();
        lists::list(&at.worlds()?, &AUDIT_LOG, &query, limit, at.json()).await
    }
}
