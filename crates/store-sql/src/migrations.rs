//! The migrations of each database, oldest first. A new file in `migrations/` is added here.

use std::borrow::Cow;

use nuncio_store::{Result, StoreError};
use sqlx::SqlStr;
use sqlx::migrate::{MigrateError, Migration, MigrationType, Migrator};

type Migrations = &'static [(i64, &'static str, &'static str)];

const SQLITE: Migrations = &[(1, "init", include_str!("../migrations/sqlite/0001_init.sql"))];
const POSTGRES: Migrations = &[(1, "init", include_str!("../migrations/postgres/0001_init.sql"))];

/// Applies the migrations that an SQLite file lacks.
pub(crate) async fn sqlite(pool: &sqlx::SqlitePool) -> Result<()> {
    migrator(SQLITE).run(pool).await.map_err(error)
}

/// Applies the migrations that a PostgreSQL database lacks.
pub(crate) async fn postgres(pool: &sqlx::PgPool) -> Result<()> {
    migrator(POSTGRES).run(pool).await.map_err(error)
}

fn migrator(migrations: Migrations) -> Migrator {
    let migration =
        |&(version, name, sql)| Migration::new(version, Cow::Borrowed(name), MigrationType::Simple, SqlStr::from_static(sql), false);
    Migrator::with_migrations(migrations.iter().map(migration).collect())
}

fn error(error: MigrateError) -> StoreError {
    match error {
        MigrateError::Execute(e) => crate::sqlx_error(e),
        MigrateError::VersionMissing(_) => {
            StoreError::Unavailable("the schema is that of a newer version of nuncio; run that version, or restore a backup".to_owned())
        }
        MigrateError::VersionMismatch(_) => StoreError::Unavailable(
            "the schema is that of a version before the first release; run that version, or start with an empty database".to_owned(),
        ),
        other => StoreError::Unavailable(format!("the schema could not be brought up to date: {other}")),
    }
}
