//! Selects the relay of each email, and fails over.

use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::Outcome;
use parking_lot::Mutex;
use tokio::time::Instant;

use crate::client::Connection;
use crate::config::{Config, Relay};
use crate::map::{self, Failed};
use crate::message::OutboundEmail;
use crate::pool::Pool;

/// How long a relay that failed is tried last.
const REST: Duration = Duration::from_secs(60);

/// An email and its envelope.
#[derive(Clone, Copy)]
pub(crate) struct Post<'a> {
    /// Envelope sender.
    pub(crate) from: &'a str,
    /// The email.
    pub(crate) letter: &'a OutboundEmail,
}

/// All relays of a connection.
pub(crate) struct Relays(Vec<RelayState>);

struct RelayState {
    relay: Relay,
    pool: Arc<Pool>,
    rests_until: Mutex<Option<Instant>>,
}

impl Relays {
    /// Nothing is connected yet.
    pub(crate) fn new(config: &Config) -> Self {
        let way = |relay: &Relay| RelayState { relay: relay.clone(), pool: Arc::default(), rests_until: Mutex::new(None) };
        Self(config.relays.iter().map(way).collect())
    }

    /// Sends an email through the first relay that can accept it. Another one is tried only while the email cannot have been accepted:
    /// before its content is written, and if the failure is not about the email. If all fail, returns the first failure.
    pub(crate) async fn deliver(&self, config: &Config, post: &Post<'_>) -> Outcome {
        let mut failure = None;
        for way in self.in_turn() {
            let outcome = way.deliver(config, post).await;
            let fails = outcome.as_ref().is_err_and(Failed::is_of_relay);
            *way.rests_until.lock() = fails.then(|| Instant::now() + REST);
            let outcome = outcome.unwrap_or_else(|failed| map::outcome(&failed, &way.relay.to_string()));
            if !fails {
                return outcome;
            }
            failure.get_or_insert(outcome);
        }
        failure.unwrap_or_else(|| unreachable!("a connection has at least one relay"))
    }

    /// Those that work, in the order of the settings, and then those that rest: when nothing else is left, they are tried all the same.
    fn in_turn(&self) -> Vec<&RelayState> {
        let now = Instant::now();
        let mut ways: Vec<&RelayState> = self.0.iter().collect();
        ways.sort_by_key(|way| way.rests_until.lock().is_some_and(|until| until > now));
        ways
    }

    /// Logs in to all relays. One failure fails the check, although emails are sent through the others.
    pub(crate) async fn check(&self, config: &Config) -> Result<String, String> {
        let mut told = Vec::new();
        let mut all_well = true;
        for way in &self.0 {
            let found = way.check(config).await;
            all_well &= found.is_ok();
            told.push(found.unwrap_or_else(|failed| map::explain(&failed, &way.relay.to_string())));
        }
        let told = told.join("; ");
        if all_well { Ok(told) } else { Err(told) }
    }
}

impl RelayState {
    /// A waiting connection on which nothing arrived. What a relay said unasked would be taken for the answer to the next command.
    async fn idle(&self) -> Option<Connection> {
        // Lets the runtime learn what has arrived.
        tokio::task::yield_now().await;
        std::iter::from_fn(|| self.pool.take()).find_map(Connection::quiet)
    }

    /// Sends over a waiting connection; over a fresh one if there is none, or if it turns out to be
    /// stale.
    async fn deliver(&self, config: &Config, post: &Post<'_>) -> Result<Outcome, Failed> {
        if let Some(connection) = self.idle().await {
            match self.deliver_over(connection, config, post).await {
                Err(failed) if failed.was_stale() => {}
                outcome => return outcome,
            }
        }
        self.deliver_over(Connection::open(config, &self.relay).await?, config, post).await
    }

    async fn deliver_over(&self, mut connection: Connection, config: &Config, post: &Post<'_>) -> Result<Outcome, Failed> {
        let outcome = connection.deliver(post.from, post.letter, config.timeout).await;
        if outcome.as_ref().map_or_else(Failed::keeps_connection, |_| true)
            && let Some(connection) = connection.quiet()
        {
            self.pool.put(connection);
        }
        outcome.map(|reply| map::accepted(&reply, &post.letter.message_id))
    }

    async fn check(&self, config: &Config) -> Result<String, Failed> {
        let mut connection = Connection::open(config, &self.relay).await?;
        connection.noop(config.timeout).await?;
        let name = connection.name.clone();
        let line = if connection.encrypted { "encrypted" } else { "in clear text" };
        let login = config.login.as_ref().map(|l| format!(", logged in as {}", l.username)).unwrap_or_default();
        let limit = connection.size_limit().map(|n| format!("; it takes mails of up to {n} bytes")).unwrap_or_default();
        connection.quit().await;
        Ok(format!("connected to {} ({name}), {line}{login}{limit}", self.relay))
    }
}
