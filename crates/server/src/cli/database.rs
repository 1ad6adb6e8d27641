//! `nuncio db`.

use anyhow::{Context as _, anyhow, bail};
use clap::Subcommand;
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::json;

use crate::answer::CommandOutput;
use crate::config::Config;
use crate::data::{DATABASE, DataDir, advised, check_installed};

#[derive(Debug, Subcommand)]
pub(super) enum DbAction {
    /// Bring the schema up to date.
    Migrate,
    /// Show the size of each table. Of the embedded database, this reads the whole file.
    Size,
    /// Copy the embedded database to an empty PostgreSQL database. The server must be stopped.
    Copy {
        /// The PostgreSQL database: postgres://user@host:5432/name.
        #[arg(long, value_name = "URL")]
        to: String,
    },
    /// Bring the schema up to date and distribute its tables over a Citus cluster.
    Distribute,
}

/// Brings the schema up to date.
pub(super) async fn migrate(config: &Config) -> anyhow::Result<CommandOutput> {
    check_installed(&config.storage, false)?;
    let data = DataDir::open(&config.storage.data)?;
    let _lock = match (config.storage.database.is_empty(), data.lock()?) {
        (true, None) => {
            bail!("a server uses this data folder, and migrated the schema when it started; to migrate manually, stop it first")
        }
        (_, lock) => lock,
    };
    data.open_store(&config.storage).await?.close().await;
    Ok(CommandOutput::new(json!({"migrated": true}), "the schema is up to date"))
}

/// Distributes the tables over a cluster.
pub(super) async fn distribute(config: &Config) -> anyhow::Result<CommandOutput> {
    if config.storage.database.is_empty() {
        bail!("storage.database: is empty; must be the postgres:// URL of a Citus coordinator");
    }
    nuncio_store_sql::distribute(&config.storage.database).await?;
    Ok(CommandOutput::new(json!({"distributed": true}), "the tables are distributed over the cluster"))
}

/// Copies the embedded database to PostgreSQL.
pub(super) async fn copy(config: &Config, to: &str) -> anyhow::Result<CommandOutput> {
    if !config.storage.database.is_empty() {
        bail!("storage.database: is set, so this installation does not use the embedded database; run this before you set it");
    }
    nuncio_store_sql::check_url(to).map_err(|problem| anyhow!("--to: {problem}"))?;
    check_installed(&config.storage, false)?;
    let data = DataDir::open(&config.storage.data)?;
    let file = data.file(DATABASE);
    let Some(_lock) = data.lock()? else { bail!("a server uses this data folder; stop it first, so that nothing changes during the copy") };
    // The newest schema, and what the last run left in the write-ahead log.
    data.open_store(&config.storage).await?.close().await;
    let bar = ProgressBar::no_length().with_style(ProgressStyle::with_template("{bar:40} {percent}% {human_pos}/{human_len} rows {msg}")?);
    let shown = bar.clone();
    let copied = nuncio_store_sql::copy(&file, to, move |progress| {
        shown.set_length(progress.rows);
        shown.set_position(progress.copied);
        shown.set_message(progress.table.to_owned());
    })
    .await;
    bar.finish_and_clear();
    let copied = copied.map_err(|error| advised(error.into())).context("nothing was copied")?;
    let text = format!(
        "copied {} rows of {} tables. Set storage.database, keep {} (every node needs it), and start the server",
        copied.rows,
        copied.tables,
        data.key_file().display()
    );
    Ok(CommandOutput::new(json!({"rows": copied.rows, "tables": copied.tables}), text))
}
