//! Metrics of channels.

use nuncio_domain::Timestamp;
use nuncio_domain::id::Id as _;
use nuncio_store::{MetricRow, Result};
use rusqlite::params;

use super::super::rusqlite_error as failed;
use super::statements::{ADD_METRICS, Statements};

/// Adds to the metrics of channels. No row may come twice.
pub(in crate::sqlite) fn add_metrics(sql: &mut Statements<'_>, deltas: &[MetricRow]) -> Result<()> {
    let add = sql.get(ADD_METRICS).map_err(failed)?;
    for (tenant, address, channel, delta) in deltas {
        add.execute(params![
            tenant.0,
            address.uuid().as_bytes(),
            channel.number(),
            delta.successes,
            delta.failures,
            delta.delivery_ms,
            delta.timed,
            delta.last_success_at.map(Timestamp::millis)
        ])
        .map_err(failed)?;
    }
    Ok(())
}
