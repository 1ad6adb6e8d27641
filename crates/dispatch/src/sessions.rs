//! Keeps sessions of provider accounts open, on every node or on one.
//!
//! A session belongs to the lane of its connection, whose adapter runs it. A changed connection gets a new lane and with it a new session;
//! a session that ends by itself is restarted by the next check.

use std::collections::HashMap;
use std::sync::Arc;

use nuncio_channel::{Sessions, stop};
use nuncio_domain::{ConnectionId, id::Id as _};
use parking_lot::Mutex;
use tokio::{sync::watch, task::JoinHandle};

use crate::{Shared, lane::Lane, nodes::SHARDS};

/// The sessions of this node.
#[derive(Debug, Default)]
pub(crate) struct Running {
    sessions: Mutex<HashMap<ConnectionId, Session>>,
}

#[derive(Debug)]
struct Session {
    lane: Arc<Lane>,
    /// Dropping it requests the session to end.
    ask: Option<watch::Sender<bool>>,
    task: JoinHandle<()>,
}

impl Shared {
    /// Starts missing sessions, and ends those whose connection changed, was deleted, or moved to another node.
    pub(crate) async fn keep_sessions(self: &Arc<Self>) -> nuncio_store::Result<()> {
        let kinds: Vec<&str> = self.registry.iter().filter(|factory| factory.has_sessions()).map(|factory| factory.kind()).collect();
        if kinds.is_empty() || self.is_stopping() {
            return Ok(());
        }
        let connections = self.store.read().await?.connections_of_kinds(&kinds).await?;
        let shards = self.shards();
        let mut wanted = HashMap::new();
        for (tenant, connection) in connections {
            let lane = self.lane_of(tenant, &connection);
            let here = match lane.adapter.as_ref().map(|adapter| adapter.sessions()) {
                Ok(Sessions::EveryNode) => true,
                Ok(Sessions::OneNode) => shards.contains(&((connection.id.uuid().as_u128() % SHARDS as u128) as i16)),
                Ok(Sessions::None) | Err(_) => false,
            };
            if here {
                wanted.insert(connection.id, lane);
            }
        }
        let mut sessions = self.running.sessions.lock();
        // `end_sessions` may have run since the first check.
        if self.is_stopping() {
            return Ok(());
        }
        // An ending session keeps its slot until it has ended: two sessions of one account would conflict.
        sessions.retain(|_, session| !session.task.is_finished());
        for (id, session) in sessions.iter_mut() {
            if !wanted.get(id).is_some_and(|lane| Arc::ptr_eq(lane, &session.lane)) {
                session.ask = None;
            }
        }
        for (id, lane) in wanted {
            sessions.entry(id).or_insert_with(|| self.begin_session(lane));
        }
        Ok(())
    }

    /// Returns the problem of the session that this node keeps for a connection, if there is one.
    pub fn session_trouble(&self, connection: ConnectionId) -> Option<String> {
        let sessions = self.running.sessions.lock();
        sessions.get(&connection)?.lane.adapter.as_ref().ok()?.trouble()
    }

    fn begin_session(&self, lane: Arc<Lane>) -> Session {
        let (ask, asked) = stop();
        let held = Arc::clone(&lane);
        let task = self.runtime.spawn(async move {
            if let Ok(adapter) = &held.adapter {
                adapter.run(asked).await;
            }
        });
        Session { lane, ask: Some(ask), task }
    }

    /// Ends all sessions.
    pub(crate) async fn end_sessions(&self) {
        let sessions: Vec<Session> = self.running.sessions.lock().drain().map(|(_, session)| session).collect();
        let asked = sessions.into_iter().map(|Session { task, .. }| task);
        futures::future::join_all(asked).await;
    }
}
