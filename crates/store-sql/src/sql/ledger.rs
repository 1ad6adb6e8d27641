//! Accounts and transfers.

use async_trait::async_trait;
use nuncio_domain::ledger::{Account, Balance, BalanceDelta, Entry, EntryFilter, Purpose, Transfer};
use nuncio_domain::{Micros, SenderId, TenantId, Timestamp};
use nuncio_store::{LedgerRepo, Result, Transferred};
use sqlx::QueryBuilder;
use uuid::Uuid;

use super::{Columns, Db, Record, SqlTx};

const INSERT: &str = r"
    INSERT INTO ledger (tenant_id, resource_id, purpose, part, debit, credit, amount, sender_id,
        recorded_at)
    VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)
    ON CONFLICT (tenant_id, resource_id, purpose, part) DO NOTHING";
const MOVE: &str = r"
    INSERT INTO balances AS b (tenant_id, available, reserved, spent, limited)
    VALUES ($1, $2, $3, $4, 0)
    ON CONFLICT (tenant_id) DO UPDATE SET
        available = b.available + excluded.available,
        reserved = b.reserved + excluded.reserved,
        spent = b.spent + excluded.spent
    WHERE b.limited = 0
      OR excluded.available >= 0
      OR b.available + excluded.available >= 0";
const SUM: &str = r"
    SELECT
        (SELECT available FROM balances WHERE tenant_id = $1),
        (SELECT reserved FROM balances WHERE tenant_id = $1),
        (SELECT spent FROM balances WHERE tenant_id = $1),
        (SELECT limited FROM balances WHERE tenant_id = $1),
        CAST(COALESCE(SUM(CASE WHEN credit = $2 THEN amount WHEN debit = $2 THEN -amount ELSE 0 END), 0) AS BIGINT),
        CAST(COALESCE(SUM(CASE WHEN credit = $3 THEN amount WHEN debit = $3 THEN -amount ELSE 0 END), 0) AS BIGINT),
        CAST(COALESCE(SUM(CASE WHEN credit = $4 THEN amount WHEN debit = $4 THEN -amount ELSE 0 END), 0) AS BIGINT)
    FROM ledger
    WHERE tenant_id = $1";
const SPENT: &str = r"
    SELECT CAST(COALESCE(SUM(CASE WHEN debit = $4 THEN amount WHEN credit = $4 THEN -amount ELSE 0 END), 0) AS BIGINT)
    FROM ledger
    WHERE tenant_id = $1 AND sender_id = $2 AND recorded_at >= $3";

#[async_trait]
impl LedgerRepo for SqlTx {
    async fn transfer(&mut self, tenant: TenantId, transfer: &Transfer, now: Timestamp) -> Result<Transferred> {
        let (debit, credit) = transfer.purpose.accounts();
        let inserted = self
            .run(sql!(
                INSERT,
                [tenant, transfer.resource, transfer.purpose, transfer.part, debit, credit, transfer.amount, transfer.sender, now]
            ))
            .await?;
        if inserted == 0 {
            return Ok(Transferred::Repeated);
        }
        let mut moves = BalanceDelta::default();
        moves.add(transfer.purpose, transfer.amount.0);
        let moved = self.run(sql!(MOVE, [tenant, moves.available, moves.reserved, moves.spent])).await?;
        if moved == 1 {
            return Ok(Transferred::Done);
        }
        self.run(sql!(
            "DELETE FROM ledger WHERE tenant_id = $1 AND resource_id = $2 AND purpose = $3 AND part = $4",
            [tenant, transfer.resource, transfer.purpose, transfer.part]
        ))
        .await?;
        self.find_balance(tenant).await.map(Transferred::Short)
    }

    async fn find_balance(&mut self, tenant: TenantId) -> Result<Balance> {
        let row = self.optional(sql!("SELECT available, reserved, spent, limited FROM balances WHERE tenant_id = $1", [tenant])).await?;
        let (available, reserved, spent, limited) = row.unwrap_or_default();
        Ok(Balance { available, reserved, spent, limited })
    }

    async fn limit_balance(&mut self, tenant: TenantId, limited: bool) -> Result<()> {
        self.write(sql!(
            r"
                INSERT INTO balances (tenant_id, available, reserved, spent, limited)
                VALUES ($1, 0, 0, 0, $2)
                ON CONFLICT (tenant_id) DO UPDATE SET limited = excluded.limited",
            [tenant, limited]
        ))
        .await
    }

    async fn sum_transfers(&mut self, tenant: TenantId) -> Result<(Balance, Balance)> {
        type Row = (Option<Micros>, Option<Micros>, Option<Micros>, Option<bool>, Micros, Micros, Micros);
        let accounts = [Account::Available, Account::Reserved, Account::Spent].map(Account::number);
        self.limit_time(false).await?;
        let row: Result<Row> = self.one(sql!(SUM, [tenant, accounts[0], accounts[1], accounts[2]])).await;
        self.limit_time(true).await?;
        let row = row?;
        let limited = row.3.unwrap_or_default();
        let [available, reserved, spent] = [row.0, row.1, row.2].map(Option::unwrap_or_default);
        let summed = Balance { available: row.4, reserved: row.5, spent: row.6, limited };
        Ok((summed, Balance { available, reserved, spent, limited }))
    }

    async fn list_transfers(&mut self, tenant: TenantId, resource: Uuid) -> Result<Vec<Transfer>> {
        let entries: Vec<Entry> = self
            .all(sql!(
                r"
                SELECT recorded_at, resource_id, purpose, part, amount, sender_id
                FROM ledger
                WHERE tenant_id = $1 AND resource_id = $2
                ORDER BY purpose, part",
                [tenant, resource]
            ))
            .await?;
        Ok(entries.into_iter().map(|entry| entry.transfer).collect())
    }

    async fn list_entries(&mut self, tenant: TenantId, filter: &EntryFilter, skip: u32, limit: u32) -> Result<Vec<Entry>> {
        self.all(newest(tenant, filter, skip, limit).build()).await
    }

    async fn spent_by_sender(&mut self, tenant: TenantId, sender: SenderId, since: Timestamp) -> Result<Micros> {
        let (spent,) = self.one(sql!(SPENT, [tenant, sender, since, Account::Available])).await?;
        Ok(spent)
    }
}

impl Record for Entry {
    const TABLE: &'static str = "ledger";

    fn read(row: &Columns<'_>) -> Result<Self> {
        let transfer = Transfer {
            purpose: row.get("purpose")?,
            resource: row.get("resource_id")?,
            part: row.get("part")?,
            amount: row.get("amount")?,
            sender: row.get("sender_id")?,
        };
        Ok(Self { transfer, recorded_at: row.get("recorded_at")? })
    }
}

/// Merges the purposes, each of which the index has in the order of time.
fn newest(tenant: TenantId, filter: &EntryFilter, skip: u32, limit: u32) -> QueryBuilder<Db> {
    let mut query = QueryBuilder::<Db>::new("");
    for (n, purpose) in Purpose::ALL.iter().filter(|purpose| filter.purpose.is_none_or(|wanted| wanted == **purpose)).enumerate() {
        query.push(if n == 0 { "" } else { " UNION ALL " });
        query.push("SELECT * FROM (SELECT recorded_at, resource_id, purpose, part, amount, sender_id FROM ledger WHERE tenant_id = ");
        query.push_bind(tenant.0).push(" AND purpose = ").push_bind(purpose.number());
        if let Some(since) = filter.since {
            query.push(" AND recorded_at >= ").push_bind(since.millis());
        }
        if let Some(until) = filter.until {
            query.push(" AND recorded_at < ").push_bind(until.millis());
        }
        query.push(" ORDER BY recorded_at DESC, resource_id DESC, part DESC LIMIT ").push_bind(i64::from(skip) + i64::from(limit));
        query.push(") s").push(n.to_string());
    }
    query.push(" ORDER BY recorded_at DESC, resource_id DESC, purpose DESC, part DESC LIMIT ").push_bind(i64::from(limit));
    query.push(" OFFSET ").push_bind(i64::from(skip));
    query
}
