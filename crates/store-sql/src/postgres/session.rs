//! A connection for message batches: its statements are prepared once, and several may be in flight at a time.
//!
//! Statements whose futures are polled together are sent together and run in the order of their first poll, so that a transaction takes
//! as many round trips as it has to wait for results. After a failed statement PostgreSQL fails all others up to the end of the
//! transaction, and a `COMMIT` then rolls back: a transaction is committed only if none of its statements failed.

use std::error::Error as _;
use std::time::Duration;

use nuncio_store::{Result, StoreError};
use tokio::task::JoinHandle;
use tokio_postgres::error::SqlState;
use tokio_postgres::types::ToSql;
use tokio_postgres::{Client, NoTls, Row, Statement};

use super::database;
use super::url::Database;
use crate::passing;

/// How long connecting may take.
const CONNECT: Duration = Duration::from_secs(5);
/// How long the server's machine may leave what was sent to it unacknowledged.
const UNACKNOWLEDGED: Duration = Duration::from_secs(10);

/// Every statement finds its rows by key. A plan is made once, before the tables have grown and statistics are there: it must not be one
/// that reads whole tables.
pub const SETTINGS: &str = "-c synchronous_commit=on -c lock_timeout=1s -c statement_timeout=5s -c idle_in_transaction_session_timeout=2s \
     -c tcp_keepalives_idle=5 -c tcp_keepalives_interval=2 -c tcp_keepalives_count=3 -c plan_cache_mode=force_generic_plan \
     -c enable_seqscan=off -c enable_bitmapscan=off -c enable_hashjoin=off -c enable_mergejoin=off";

/// The first number tells the locks of sessions from other advisory locks of the database.
const TAKE_LOCK: &str =
    "SELECT number, pg_advisory_lock(1853191529, number) FROM (SELECT (random() * 2147483647)::int4 AS number) AS chosen";
const AWAIT_LOCK: &str = "SELECT pg_advisory_xact_lock(1853191529, $1)";

/// Parameters of a statement.
pub(super) type Params<'a> = [&'a (dyn ToSql + Sync)];

macro_rules! statements {
    ($($(#[$doc:meta])* $name:ident = $sql:expr;)+) => {
        /// The statements of a session.
        #[derive(Debug)]
        pub(super) struct Statements {
            $($(#[$doc])* pub(super) $name: tokio_postgres::Statement,)+
        }

        /// The texts of all statements.
        pub const TEXTS: &[&str] = &[$($sql),+];

        impl Statements {
            pub(super) async fn prepare(client: &tokio_postgres::Client) -> std::result::Result<Self, tokio_postgres::Error> {
                $(let $name = client.prepare($sql);)+
                let ($($name,)+) = tokio::try_join!($($name,)+)?;
                Ok(Self { $($name,)+ })
            }
        }
    };
}
pub(super) use statements;

/// A connection.
#[derive(Debug)]
pub(super) struct Session<S> {
    client: Client,
    pub(super) statements: S,
    _socket: Socket,
}

/// The task that reads and writes the socket of a connection. Dropping it closes the socket, whatever the server still owes: the task
/// would wait for one that vanished.
#[derive(Debug)]
pub(super) struct Socket(JoinHandle<()>);

impl Socket {
    fn of(connection: impl Future<Output = std::result::Result<(), tokio_postgres::Error>> + Send + 'static) -> Self {
        Self(tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::warn!(%error, "lost a connection to PostgreSQL");
            }
        }))
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Opens a connection to the database of `url`.
pub(super) async fn connect(url: &str) -> Result<(Client, Socket)> {
    let Database { session: mut config, tls, .. } = database(url)?;
    config.application_name("nuncio").connect_timeout(CONNECT);
    // `SETTINGS` let the server notice that this node vanished; these let this node notice that the server did (power loss, an address
    // that moved), which otherwise takes up to two hours.
    config
        .tcp_user_timeout(UNACKNOWLEDGED)
        .keepalives(true)
        .keepalives_idle(Duration::from_secs(5))
        .keepalives_interval(Duration::from_secs(2))
        .keepalives_retries(3);
    let options = config.get_options().map_or_else(|| SETTINGS.to_owned(), |own| format!("{own} {SETTINGS}"));
    config.options(options);
    let connected = async {
        match tls {
            None => config.connect(NoTls).await.map(|(client, connection)| (client, Socket::of(connection))),
            Some(tls) => config.connect(tls).await.map(|(client, connection)| (client, Socket::of(connection))),
        }
    };
    match tokio::time::timeout(CONNECT, connected).await {
        Ok(connected) => connected.map_err(failed),
        Err(_) => Err(StoreError::Unavailable("the PostgreSQL server does not answer".to_owned())),
    }
}

impl<S> Session<S> {
    pub(super) fn new((client, socket): (Client, Socket), statements: S) -> Self {
        Self { client, statements, _socket: socket }
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    pub(super) async fn query(&self, statement: &Statement, params: &Params<'_>) -> std::result::Result<Vec<Row>, tokio_postgres::Error> {
        self.client.query(statement, params).await
    }

    /// Runs a query, unless there is nothing to run it for.
    pub(super) async fn query_if(
        &self,
        wanted: bool,
        statement: &Statement,
        params: &Params<'_>,
    ) -> std::result::Result<Vec<Row>, tokio_postgres::Error> {
        if wanted { self.client.query(statement, params).await } else { Ok(Vec::new()) }
    }

    /// Runs a statement, unless there is nothing to run it for; returns how many rows it wrote.
    pub(super) async fn execute(
        &self,
        wanted: bool,
        statement: &Statement,
        params: &Params<'_>,
    ) -> std::result::Result<u64, tokio_postgres::Error> {
        if wanted { self.client.execute(statement, params).await } else { Ok(0) }
    }

    /// Takes a lock that the server holds as long as its side of this session lasts; returns the lock's number.
    pub(super) async fn take_lock(&self) -> Result<i32> {
        Ok(self.client.query_one(TAKE_LOCK, &[]).await.map_err(failed)?.get(0))
    }

    /// Waits until the server has ended the session with this lock, and with it the session's transaction.
    pub(super) async fn wait_for_end(&self, lock: i32) -> Result<()> {
        self.client.execute(AWAIT_LOCK, &[&lock]).await.map(drop).map_err(failed)
    }

    pub(super) async fn run(&self, sql: &str) -> std::result::Result<(), tokio_postgres::Error> {
        self.client.batch_execute(sql).await
    }
}

fn with_cause(error: &tokio_postgres::Error) -> String {
    error.source().map_or_else(|| error.to_string(), |cause| format!("{error}: {cause}"))
}

/// What went wrong with a statement.
pub(super) fn failed(error: tokio_postgres::Error) -> StoreError {
    let Some(told) = error.as_db_error() else { return StoreError::Unavailable(with_cause(&error)) };
    // Not its details, which name the values of a row.
    let message = told.message();
    if *told.code() == SqlState::UNIQUE_VIOLATION {
        return StoreError::Conflict(message.into());
    }
    passing(told.code().code(), message).unwrap_or_else(|| StoreError::Other(message.into()))
}
