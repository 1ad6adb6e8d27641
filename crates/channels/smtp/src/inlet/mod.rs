//! Where mail comes in: a small server of SMTP (RFC 5321) and LMTP (RFC 2033) for the mail server in front of it.
//!
//! It takes mail for addresses that its [`Desk`] knows and for no others, so it relays nothing; and it answers that it took a mail only
//! after the desk has written what came of it.

mod content;
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

use crate::authenticate::Authenticator;
use crate::mail::Mail;

/// Whose an address is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Place {
    /// Bounces of an attempt (from 0) go to it.
    Bounces(TenantId, MessageId, usize),
    /// Complaints about the mails of a connection go to it.
    Feedback(TenantId, ConnectionId),
    /// It is the address of a connection, to which people write.
    Sender(TenantId, ConnectionId),
}

/// Nothing can be said or written now; the mail is to be brought again later.
#[derive(Clone, Copy, PartialEq, Eq, Debug, thiserror::Error)]
#[error("not now")]
pub struct NotNow;

/// Knows addresses, and takes mail for them.
#[async_trait]
pub trait Desk: Debug + Send + Sync {
    /// What checks who wrote a letter; without it, nothing is checked.
    fn authenticator(&self) -> Option<&Arc<Authenticator>> {
        None
    }

    /// Whose an address is; `None` for one to which no mail is taken.
    async fn find(&self, address: &str) -> Result<Option<Place>, NotNow>;

    /// Takes a mail for one of its recipients. What came of it is on disk when this returns. May be called again for the same mail.
    async fn take(&self, place: &Place, mail: &Mail) -> Result<(), NotNow>;
}

/// What one listener bears.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Limits {
    /// Connections at once. Further ones wait to be accepted.
    pub connections: usize,
    /// Octets of a mail.
    pub size: usize,
    /// Recipients of a mail.
    pub recipients: usize,
    /// How long a command may take to come. A mail has twice that.
    pub patience: Duration,
}

impl Limits {
    /// The usual ones, for mails of up to `size` octets. The time is that of RFC 5321 §4.5.3.2.7.
    pub const fn of_size(size: usize) -> Self {
        Self { connections: 100, size, recipients: 100, patience: Duration::from_secs(300) }
    }
}

/// Serves until it is asked to stop, and then hangs up where no mail is under way.
pub async fn serve(listener: TcpListener, desk: Arc<dyn Desk>, limits: Limits, mut stop: Stop) {
    let permits = Arc::new(Semaphore::new(limits.connections));
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
                let (desk, stop) = (Arc::clone(&desk), stop.clone());
                sessions.spawn(async move {
                    session::run(stream, peer.ip(), &*desk, limits, stop).await;
                    drop(permit);
                });
            }
            // Out of files, or the client was faster away: the next one may fare better.
            Err(error) => {
                tracing::warn!(%error, "a connection with mail could not be accepted");
                tokio::time::sleep(Duration::from_millis(100)).await;
            }
        }
    }
    drop(listener);
    while sessions.join_next().await.is_some() {}
}
