//! Spreading the tables over the nodes of a Citus cluster.
//!
//! What belongs to a tenant is distributed by `tenant_id`, all of it alike, so that rows of one tenant are on one node. What every
//! statement may be joined with, and what is found without a tenant, is copied to each node.

use nuncio_store::{Result, StoreError};
use sqlx::postgres::PgPoolOptions;

use crate::{SqlxResult as _, sqlx_error};

/// Tables that each node has a copy of, those first that others refer to.
pub const COPIED: &[&str] = &[
    "projects", "worlds", "api_keys", "senders", "connections", "mailboxes", "mail_domains", "prices", "nodes", "users", "memberships",
    "sessions",
];

/// Tables that are distributed by `tenant_id`. All others go with the first.
pub const DISTRIBUTED: &[&str] = &[
    "messages", "states", "flagged", "agenda", "log", "log_heads", "resource_log", "spool_chunks", "inbound_keys", "idempotency_keys",
    "contacts", "addresses", "removed_addresses", "contact_channels", "merged_contacts", "erasures", "channel_metrics", "country_metrics",
    "traffic", "suppressions", "webhooks", "webhook_cursors", "deliveries", "provider_refs", "receipts", "stray_receipts", "reassemblies",
    "inbound_addresses", "mail_codes", "business_accounts", "phone_numbers", "invitations", "templates", "broadcasts",
    "broadcast_contacts", "broadcast_imports", "broadcast_links", "broadcast_clicks", "broadcast_counts", "ledger", "balances",
    "storage_quotas", "review_policies", "audit_log",
];

/// Creates on each worker the types that rows are passed as, unless the cluster did so when the schema created them.
const CREATE_ROW_TYPES: &str = r"
    SELECT run_command_on_workers(format(
        'DO $do$ BEGIN CREATE TYPE %s AS (%s); EXCEPTION WHEN duplicate_object THEN NULL; END $do$',
        CAST(t.oid AS regtype),
        string_agg(format('%I %s', a.attname, format_type(a.atttypid, a.atttypmod)), ', ' ORDER BY a.attnum)
    ))
    FROM pg_type t
    JOIN pg_class c ON c.oid = t.typrelid
    JOIN pg_attribute a ON a.attrelid = c.oid
    WHERE c.relkind = 'c' AND c.relnamespace = CAST(current_schema() AS regnamespace)
    GROUP BY t.oid";

/// Brings the schema up to date and spreads its tables. Tables that are spread already stay as they are. Fails without the extension.
pub async fn distribute(url: &str) -> Result<()> {
    let (options, pool) = super::connect(url).await?;
    super::refuse_unsafe(&pool).await?;
    pool.close().await;
    super::migrate(&options).await?;
    let unlimited = ["lock_timeout", "statement_timeout", "idle_in_transaction_session_timeout"].map(|limit| (limit, "0"));
    let pool = PgPoolOptions::new().max_connections(1).connect_with(options.options(unlimited)).await.map_err(sqlx_error)?;
    let (installed,): (bool,) =
        sqlx::query_as("SELECT EXISTS (SELECT 1 FROM pg_extension WHERE extname = 'citus')").fetch_one(&pool).await.store()?;
    if !installed {
        return Err(StoreError::Unavailable(
            "the database lacks the extension citus; install it on every node and run CREATE EXTENSION citus".to_owned(),
        ));
    }
    for table in COPIED {
        sqlx::query(
            r"
                SELECT create_reference_table(CAST($1 AS regclass))
                WHERE NOT EXISTS (
                    SELECT 1
                    FROM pg_dist_partition
                    WHERE logicalrelid = CAST($1 AS regclass)
                )",
        )
        .bind(table)
        .execute(&pool)
        .await
        .store()?;
    }
    for (n, table) in DISTRIBUTED.iter().enumerate() {
        let beside = if n == 0 { "none" } else { DISTRIBUTED[0] };
        sqlx::query(
            r"
                SELECT create_distributed_table(CAST($1 AS regclass), 'tenant_id', colocate_with => $2)
                WHERE NOT EXISTS (
                    SELECT 1
                    FROM pg_dist_partition
                    WHERE logicalrelid = CAST($1 AS regclass)
                )",
        )
        .bind(table)
        .bind(beside)
        .execute(&pool)
        .await
        .store()?;
    }
    sqlx::query(CREATE_ROW_TYPES).execute(&pool).await.store()?;
    pool.close().await;
    Ok(())
}
