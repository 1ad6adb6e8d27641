//! Resolves host names, a limited number at a time.

use std::io;
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;

/// Maximum lookups in flight. Each takes a thread of the pool that passwords are hashed in, too, until the system's resolver returns, which
/// no timeout of a caller ends.
const LOOKUPS: usize = 64;

type Resolver = fn(&str, u16) -> io::Result<Vec<SocketAddr>>;

/// The lookups of one client.
#[derive(Debug, Clone)]
pub(crate) struct Lookups {
    free: Arc<Semaphore>,
    resolver: Resolver,
}

impl Lookups {
    /// Uses the system's resolver.
    pub(crate) fn new() -> Self {
        Self::with(|host, port| Ok((host, port).to_socket_addrs()?.collect()))
    }

    pub(crate) fn with(resolver: Resolver) -> Self {
        Self { free: Arc::new(Semaphore::new(LOOKUPS)), resolver }
    }

    pub(crate) async fn resolve(&self, host: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        if let Ok(address) = host.parse::<IpAddr>() {
            return Ok(vec![SocketAddr::new(address, port)]);
        }
        let permit = Arc::clone(&self.free).acquire_owned().await.map_err(io::Error::other)?;
        let (resolver, host) = (self.resolver, host.to_owned());
        let lookup = spawn_blocking(move || {
            let _permit = permit;
            resolver(&host, port)
        });
        lookup.await.map_err(io::Error::other)?
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};
    use std::sync::{Condvar, Mutex, PoisonError};

    use tokio::task::JoinSet;

    use super::*;

    static BEGUN: AtomicUsize = AtomicUsize::new(0);
    static ANSWERS: (Mutex<bool>, Condvar) = (Mutex::new(false), Condvar::new());

    fn slow(_: &str, port: u16) -> io::Result<Vec<SocketAddr>> {
        BEGUN.fetch_add(1, Ordering::AcqRel);
        let answers = ANSWERS.0.lock().unwrap_or_else(PoisonError::into_inner);
        drop(ANSWERS.1.wait_while(answers, |answers| !*answers));
        Ok(vec![SocketAddr::from(([192, 0, 2, 1], port))])
    }

    #[tokio::test]
    async fn slow_lookups_leave_threads_for_others_even_after_their_callers_gave_up() {
        let lookups = Lookups::with(slow);
        let begin = |callers: &mut JoinSet<_>| {
            for _ in 0..2 * LOOKUPS {
                let lookups = lookups.clone();
                callers.spawn(async move { lookups.resolve("slow.example", 443).await });
            }
        };
        let mut callers = JoinSet::new();
        begin(&mut callers);
        while BEGUN.load(Ordering::Acquire) < LOOKUPS {
            tokio::task::yield_now().await;
        }
        callers.shutdown().await;
        begin(&mut callers);
        spawn_blocking(|| ()).await.unwrap();
        assert_eq!((BEGUN.load(Ordering::Acquire), lookups.free.available_permits()), (LOOKUPS, 0));

        *ANSWERS.0.lock().unwrap() = true;
        ANSWERS.1.notify_all();
        assert!(callers.join_all().await.iter().all(|found| found.as_ref().is_ok_and(|found| found.len() == 1)));
    }
}
