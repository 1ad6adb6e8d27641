//! Keeps an account's sessions open: connects, binds, reconnects, and reports their state.

use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::{Outcome, Scope, Stop};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{ConnectionId, Ids};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};
use tokio_rustls::TlsConnector;

use crate::config::Config;
use crate::session::{Inbox, Line, RequestError, Session};
use crate::status;
use crate::wire::{self, id};

/// The first wait after a session broke; each further one is twice as long.
const FIRST_WAIT: Duration = Duration::from_secs(1);
/// The longest.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// Pause after a refused login: a person must correct it, and providers block clients that insist.
const REFUSED_WAIT: Duration = Duration::from_secs(300);
/// So many binds after a session was open may be refused with [`status::BIND_FAILED`] before it counts as a refused login, about a minute:
/// some SMSCs count the old session until they notice that it is gone.
const REBINDS: u32 = 6;
/// Timeout for connecting to one address.
const CONNECT: Duration = Duration::from_secs(10);

/// Purpose of a session.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Both directions.
    Both,
    Send,
    /// Receives receipts and inbound messages.
    Receive,
}

impl Role {
    const fn of(config: &Config) -> &'static [Self] {
        if config.paired { &[Self::Send, Self::Receive] } else { &[Self::Both] }
    }

    const fn command(self) -> u32 {
        match self {
            Self::Both => id::BIND_TRANSCEIVER,
            Self::Send => id::BIND_TRANSMITTER,
            Self::Receive => id::BIND_RECEIVER,
        }
    }

    const fn name(self) -> &'static str {
        match self {
            Self::Both => "transceiver",
            Self::Send => "transmitter",
            Self::Receive => "receiver",
        }
    }
}

/// Why a session is down.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct SessionDown {
    /// The class.
    pub(crate) code: FailureCode,
    /// The problem, and what to do about it.
    pub(crate) text: String,
}

impl SessionDown {
    pub(crate) fn new(text: impl Into<String>) -> Self {
        Self { code: FailureCode::Undeliverable, text: text.into() }
    }

    /// The outcome on a message that finds no session.
    fn outcome(&self) -> Outcome {
        Outcome::Deferred { retry_after: None, failure: Failure::own(self.code, self.text.clone()), scope: Scope::Connection }
    }
}

#[derive(Clone, Debug)]
struct SessionSlot {
    role: Role,
    state: Result<Arc<Session>, SessionDown>,
    /// Whether its first bind attempt has ended.
    tried: bool,
}

impl SessionSlot {
    fn untried(role: Role) -> Self {
        Self { role, state: Err(SessionDown::new("it is not open yet")), tried: false }
    }

    fn sends(&self) -> bool {
        self.role != Role::Receive
    }
}

/// States of all sessions.
#[derive(Clone, Debug)]
pub(crate) struct Board(Vec<SessionSlot>);

impl Board {
    fn new(config: &Config) -> Self {
        Self((0..config.binds).flat_map(|_| Role::of(config)).map(|role| SessionSlot::untried(*role)).collect())
    }

    /// The session with the most room.
    fn roomiest(&self) -> Option<Arc<Session>> {
        let up = self.0.iter().filter(|slot| slot.sends()).filter_map(|slot| slot.state.as_ref().ok());
        up.filter(|session| !session.is_leaving() && !session.window.is_closed())
            .max_by_key(|session| session.window.available_permits())
            .cloned()
    }

    /// Whether it is known that nothing can be sent, or that something can.
    fn is_settled(&self) -> bool {
        self.roomiest().is_some() || self.0.iter().all(|slot| slot.tried || !slot.sends())
    }

    fn troubles(&self) -> impl Iterator<Item = (&SessionSlot, &SessionDown)> {
        self.0.iter().filter_map(|slot| Some((slot, slot.state.as_ref().err()?)))
    }

    /// Returns the current problem, as text.
    fn trouble(&self) -> Option<String> {
        let (slot, trouble) = self.troubles().next()?;
        let down = self.troubles().count();
        Some(format!("{down} of {} sessions are down; the {}: {}", self.0.len(), slot.role.name(), trouble.text))
    }
}

/// What binding needs, and the state of the binds.
pub(crate) struct Link {
    pub(crate) config: Config,
    connection: ConnectionId,
    inbox: Arc<dyn Inbox>,
    ids: Ids,
    board: watch::Sender<Board>,
    /// Changes when the SMSC has accepted the login: sessions that are down need not wait longer.
    login_accepted: watch::Sender<()>,
}

impl Link {
    pub(crate) fn new(config: Config, connection: ConnectionId, inbox: Arc<dyn Inbox>, ids: Ids) -> Self {
        let board = watch::Sender::new(Board::new(&config));
        Self { config, connection, inbox, ids, board, login_accepted: watch::Sender::new(()) }
    }

    /// Returns a session for sending, or a deferral. Waits for the first result of all sessions, within the response timeout.
    pub(crate) async fn session(&self) -> Result<Arc<Session>, Outcome> {
        if let Some(session) = self.up() {
            return Ok(session);
        }
        let mut board = self.board.subscribe();
        // In any case, the state after the wait counts.
        timeout(self.config.timeout, board.wait_for(Board::is_settled)).await.ok();
        let board = board.borrow();
        let trouble = || board.troubles().find(|(slot, _)| slot.sends()).map(|(_, trouble)| trouble.outcome());
        board.roomiest().ok_or_else(|| trouble().unwrap_or_else(|| SessionDown::new("the SMSC is ending the session (unbind)").outcome()))
    }

    /// Returns a session for the rest of a message whose session ended, once one is up. `None` if none is within the response timeout.
    pub(crate) async fn next_session(&self) -> Option<Arc<Session>> {
        let mut board = self.board.subscribe();
        let board = timeout(self.config.timeout, board.wait_for(|board| board.roomiest().is_some())).await.ok()?.ok()?;
        board.roomiest()
    }

    /// The session with the most room, if one is up.
    pub(crate) fn up(&self) -> Option<Arc<Session>> {
        self.board.borrow().roomiest()
    }

    /// Returns the problem of the sessions.
    pub(crate) fn trouble(&self) -> Option<String> {
        self.board.borrow().trouble()
    }

    /// Keeps all sessions until `stop` asks.
    pub(crate) async fn run(self: Arc<Self>, stop: Stop) {
        let mut slots = JoinSet::new();
        for index in 0..self.board.borrow().0.len() {
            slots.spawn(Arc::clone(&self).keep(index, stop.clone()));
        }
        while slots.join_next().await.is_some() {}
    }

    fn set(&self, index: usize, state: Result<Arc<Session>, SessionDown>) {
        self.board.send_modify(|board| {
            let slot = &mut board.0[index];
            (slot.state, slot.tried) = (state, true);
        });
    }

    /// Records that a session is down, and logs it if that is new.
    fn set_down(&self, index: usize, role: Role, trouble: SessionDown) {
        let is_known = self.board.borrow().0[index].state.as_ref().is_err_and(|known| *known == trouble);
        if !is_known {
            tracing::warn!(connection = %self.connection, session = role.name(), why = %trouble.text, "session with the SMSC is down");
        }
        self.set(index, Err(trouble));
    }

    /// Keeps one session open.
    async fn keep(self: Arc<Self>, index: usize, mut stop: Stop) {
        let role = self.board.borrow().0[index].role;
        let mut wait = FIRST_WAIT;
        let mut rebinds = 0;
        loop {
            let (began, mut accepted) = (self.ids.clock.monotonic(), self.login_accepted.subscribe());
            let Some(trouble) = self.live(index, role, &mut rebinds, &mut stop).await else { break };
            let lasted = self.ids.clock.monotonic().saturating_sub(began);
            if lasted > LONGEST_WAIT {
                wait = FIRST_WAIT;
            }
            let pause = pause(&trouble, &mut wait);
            self.set_down(index, role, trouble);
            let paused = async {
                tokio::select! {
                    () = sleep(self.jittered(pause)) => false,
                    _ = accepted.changed() => true,
                }
            };
            match stop.or(paused).await {
                // The SMSC may count the session that was accepted for a while.
                Some(true) => rebinds = REBINDS,
                Some(false) => {}
                None => break,
            }
        }
        self.set(index, Err(SessionDown::new("the sessions with the SMSC are closed")));
    }

    /// Returns half to all of `pause`, so that the sessions of all nodes do not reconnect at once.
    fn jittered(&self, pause: Duration) -> Duration {
        let half = pause / 2;
        half + Duration::from_millis(self.ids.entropy.below(half.as_millis() as u64 + 1))
    }

    /// One life of a session; `None` if it was asked to end. `rebinds` is that of [`bind`].
    async fn live(&self, index: usize, role: Role, rebinds: &mut u32, stop: &mut Stop) -> Option<SessionDown> {
        let line = match stop.or(connect(&self.config)).await? {
            Ok(line) => line,
            Err(trouble) => return Some(trouble),
        };
        let session = Arc::new(Session::new(self.config.window, self.config.timeout));
        let mut running = pin!(session.run(line, Some(&self.inbox), self.config.enquire));
        let mut over = None;
        let bound = {
            let mut binding = pin!(stop.or(bind(&self.config, &session, role, rebinds)));
            tokio::select! {
                bound = &mut binding => bound,
                // Many SMSCs refuse a bind and hang up: the response is there, and more specific.
                why = &mut running => {
                    over = Some(why);
                    binding.await
                }
            }
        };
        match (bound?, over) {
            (Err(trouble), _) => {
                session.end(&trouble.text);
                return Some(trouble);
            }
            (Ok(()), Some(why)) => return Some(SessionDown::new(self.broke(&why))),
            (Ok(()), None) => {}
        }
        *rebinds = REBINDS;
        tracing::info!(connection = %self.connection, session = role.name(), "bound to the SMSC");
        self.set(index, Ok(Arc::clone(&session)));
        tokio::select! {
            why = &mut running => return Some(SessionDown::new(self.broke(&why))),
            () = stop.asked() => {}
        }
        self.set(index, Err(SessionDown::new("the sessions with the SMSC are being closed")));
        tokio::select! {
            _ = &mut running => {}
            () = session.unbind(self.config.window) => {}
        }
        session.end("the session was closed");
        None
    }

    fn broke(&self, why: &str) -> String {
        format!("the session with {}:{} ended: {why}", self.config.host, self.config.port)
    }

    /// Binds once in each role, and unbinds. If that works, sessions that are down try again at once.
    pub(crate) async fn attempt(&self) -> Result<(), SessionDown> {
        for role in Role::of(&self.config) {
            self.attempt_as(*role).await?;
        }
        if self.login_accepted.receiver_count() > 0 {
            // The next message waits for their next bind.
            self.board.send_modify(|board| {
                board.0.iter_mut().filter(|slot| slot.state.is_err()).for_each(|slot| *slot = SessionSlot::untried(slot.role));
            });
            self.login_accepted.send_replace(());
        }
        Ok(())
    }

    async fn attempt_as(&self, role: Role) -> Result<(), SessionDown> {
        let line = connect(&self.config).await?;
        let session = Arc::new(Session::new(1, self.config.timeout));
        let mut trying = pin!(async {
            bind(&self.config, &session, role, &mut 0).await?;
            session.unbind(1).await;
            Ok(())
        });
        tokio::select! {
            tried = &mut trying => tried,
            _ = session.run(line, None, self.config.enquire) => trying.await,
        }
    }
}

/// How long to wait after `trouble`; `wait` is for ordinary trouble, and grows.
fn pause(trouble: &SessionDown, wait: &mut Duration) -> Duration {
    if trouble.code == FailureCode::CredentialsInvalid {
        return REFUSED_WAIT;
    }
    let pause = *wait;
    *wait = (pause * 2).min(LONGEST_WAIT);
    pause
}

/// Connects to the first address that responds, and starts TLS.
async fn connect(config: &Config) -> Result<Box<dyn Line>, SessionDown> {
    let place = format!("{}:{}", config.host, config.port);
    let unreachable = |why: &dyn std::fmt::Display| SessionDown::new(format!("cannot reach the SMSC {place}: {why}"));
    let addresses = config.net.resolve(config.trusted, &config.host, config.port).await.map_err(|error| unreachable(&error))?;
    let limit = config.timeout.min(CONNECT);
    let mut last = unreachable(&"the name has no address");
    for address in addresses {
        match timeout(limit, TcpStream::connect(address)).await {
            Ok(Ok(stream)) => {
                stream.set_nodelay(true).map_err(|error| unreachable(&error))?;
                return encrypt(config, stream).await.map_err(|why| SessionDown::new(format!("TLS with the SMSC {place} failed: {why}")));
            }
            Ok(Err(error)) => last = unreachable(&error),
            Err(_) => last = unreachable(&format!("no connection within {} s", limit.as_secs())),
        }
    }
    Err(last)
}

async fn encrypt(config: &Config, stream: TcpStream) -> Result<Box<dyn Line>, String> {
    let Some((name, trust)) = &config.trust else { return Ok(Box::new(stream)) };
    let shake = TlsConnector::from(Arc::clone(trust)).connect(name.clone(), stream);
    match timeout(config.timeout, shake).await {
        Ok(Ok(stream)) => Ok(Box::new(stream)),
        Ok(Err(error)) => Err(error.to_string()),
        Err(_) => Err(format!("no answer within {} s", config.timeout.as_secs())),
    }
}

/// Binds. `rebinds` is how many more times the SMSC may still count the session before.
async fn bind(config: &Config, session: &Arc<Session>, role: Role, rebinds: &mut u32) -> Result<(), SessionDown> {
    let reply = session.request(|out, sequence| wire::bind(out, role.command(), sequence, &config.login())).await;
    let place = format!("{}:{}", config.host, config.port);
    match reply {
        Ok(reply) if reply.status == status::OK && reply.id == role.command() | id::ANSWER => Ok(()),
        Ok(reply) if reply.status == status::OK => Err(SessionDown::new(format!("the SMSC {place} answers a bind with something else"))),
        Ok(reply) => {
            let why = status::explain(reply.status);
            let what_to_do = "correct system_id, password and system_type, and ask how many sessions the account may have";
            let counts_old = reply.status == status::BIND_FAILED && *rebinds > 0;
            *rebinds -= u32::from(counts_old);
            Err(match status::refuses_login(reply.status) && !counts_old {
                true => SessionDown {
                    code: FailureCode::CredentialsInvalid,
                    text: format!("the SMSC {place} refuses the login of {}: {why}; {what_to_do}", config.system_id),
                },
                false => SessionDown::new(format!("the SMSC {place} refuses the bind as {}: {why}", role.name())),
            })
        }
        Err(RequestError::NotSent(why) | RequestError::NoResponse(why)) => {
            Err(SessionDown::new(format!("the SMSC {place} does not answer the bind: {why}")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_and_a_refused_login_waits_for_a_person() {
        let mut wait = FIRST_WAIT;
        let refused = SessionDown { code: FailureCode::CredentialsInvalid, text: String::new() };
        let mut seconds = |trouble: &SessionDown| pause(trouble, &mut wait).as_secs();
        assert_eq!(seconds(&refused), 300);
        let waits: Vec<_> = (0..8).map(|_| seconds(&SessionDown::new("gone"))).collect();
        assert_eq!(waits, [1, 2, 4, 8, 16, 32, 60, 60]);
    }
}
