//! Receives email: a small SMTP (RFC 5321) and LMTP (RFC 2033) server behind a mail server.
//!
//! It accepts email only for addresses its [`MailHandler`] knows, so it relays nothing; and it confirms an email only after the handler has
//! stored it.

mod content;
mod room;
mod session;

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::Stop;
use nuncio_domain::{ConnectionId, MessageId, TenantId};
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use self::room::Room;
use crate::authenticate::Authenticator;
use crate::mail::Mail;

/// Whose an address is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum MailDestination {
    /// Bounces of an attempt (from 0) go to it.
    Bounces(TenantId, MessageId, usize),
    /// Receives complaints about a connection's emails.
    Feedback(TenantId, ConnectionId),
    /// The inbound address of a connection, in canonical form.
    Sender(TenantId, ConnectionId, String),
}

/// A temporary failure; the email must be sent again later.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not now")]
pub struct NotNow;

/// Knows the addresses, and stores emails for them.
#[async_trait]
pub trait MailHandler: Debug + Send + Sync {
    /// Authenticates emails; without it, nothing is checked.
    fn authenticator(&self) -> Option<&Arc<Authenticator>> {
        None
    }

    /// Returns the destination of an address; `None` if it accepts no email.
    async fn find(&self, address: &str) -> Result<Option<MailDestination>, NotNow>;

    /// Stores an email for one of its recipients before it returns. Can be called again for the same email.
    async fn take(&self, place: &MailDestination, mail: &Mail) -> Result<(), NotNow>;
}

/// Limits of a listener.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Concurrent connections. Further ones wait to be accepted.
    pub connections: usize,
    /// Octets of an email.
    pub size: usize,
    /// Octets of the emails of all connections that are being received, checked or stored; at least `size`. Emails beyond that are asked
    /// to be sent again later.
    pub memory: usize,
    /// Recipients of an email.
    pub recipients: usize,
    /// Timeout of a command. An email has twice that.
    pub patience: Duration,
}

impl Limits {
    /// Returns the usual limits for emails of up to `size` octets. The timeout is that of RFC 5321 §4.5.3.2.7.
    pub const fn of_size(size: usize) -> Self {
        Self { connections: 100, size, memory: 128 * 1024 * 1024, recipients: 100, patience: Duration::from_secs(300) }
    }
}

/// Most emails that are parsed at once.
const PARSERS: usize = 2;

/// Serves until it is asked to stop, then closes connections without an email in flight.
pub async fn serve(listener: TcpListener, desk: Arc<dyn MailHandler>, limits: Limits, mut stop: Stop) {
    let permits = Arc::new(Semaphore::new(limits.connections));
    let room = Room::new(limits.memory.max(limits.size), PARSERS);
    let mut sessions = JoinSet::new();
    loop {
        let next = async {
            let permit = Arc::clone(&permits).acquire_owned().await;
            (permit, listener.accept().await)
        };
        let (permit, accepted) = tokio::select! {
            next = next => next,
            Some(_) = sessions.join_next() => continue,
            () = stop.asked() => break,
        };
        match accepted {
            Ok((stream, peer)) => {
                let (desk, room, stop) = (Arc::clone(&desk), room.clone(), stop.clone());
                sessions.spawn(async move {
                    session::run(stream, peer.ip(), &*desk, (limits, room), stop).await;
                    drop(permit);
                });
            }
            // Out of file descriptors, or the client disconnected early: the next accept may succeed.
            Err(error) => {
                tracing::warn!(%error, "failed to accept a mail connection; will retry");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    while sessions.join_next().await.is_some() {}
}
