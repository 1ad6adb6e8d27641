//! Voice calls over a SIP trunk: reads a message aloud, or plays a recording, to whoever answers.
//!
//! An attempt lasts as long as its call: [`Adapter::send`] returns when the call is over, so that the connection's window limits concurrent
//! calls. A message is accepted, and delivered, when the call was answered (possibly by voicemail) and the message was played to its end.
//! Before the INVITE is sent, failures are deferrals; a final response of the trunk proves that nobody was reached; without one, the
//! outcome is [`Outcome::Unknown`]. When the session is asked to end, no new calls start and ringing is cancelled, but answered calls play
//! to their end: called again, people would hear the message twice.

use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, AdapterFactory, Capabilities, Opened, OptedOut, Outcome, ProviderEvent, ReceiptTarget, Receipts, SendRequest,
    Services, Sessions, Stop,
};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::{Channel, ConnectionId, MessageType, TenantId};
use nuncio_net::Network;
use parking_lot::Mutex;
use tokio::sync::{Semaphore, SemaphorePermit, watch};
use tokio::time::{sleep, timeout};

use crate::config::Config;
use crate::speech::Speech;
use crate::trunk::{Question, Trunk};

mod audio;
mod call;
mod config;
mod content;
mod keys;
mod language;
mod map;
mod media;
mod rtp;
mod sdp;
mod speech;
mod trunk;

pub use config::Ports;

/// Message types that can be spoken or played.
static MESSAGE_TYPES: &[MessageType] = &[MessageType::Text, MessageType::Audio, MessageType::Location, MessageType::Template];
/// The language of the check, and where no other has a voice.
const ENGLISH: &str = "en-US";
/// How often the trunk is checked; a result is valid for as long.
const EVERY: Duration = Duration::from_secs(30);
/// Extra time after the longest call, for hanging up and storing the result.
const LAST_WORDS: Duration = Duration::from_secs(8);

/// Makes adapters of kind `sip`, which use these ports of this server. They share generated speech, and take turns decoding recordings.
pub fn factory(net: Network, ports: Ports) -> AdapterFactory {
    let (speech, recordings) = (Arc::<Speech>::default(), Arc::new(Semaphore::new(content::AT_ONCE)));
    let open = move |account: &Account, services: &Services| -> Opened {
        let config = Config::read(account, &net, ports)?;
        let lines = config.lines as usize;
        Ok(Arc::new(SipAdapter {
            capabilities: Capabilities { message_types: MESSAGE_TYPES, receipts: Receipts::ByAttempt, window: lines },
            config,
            speech: Arc::clone(&speech),
            recordings: Arc::clone(&recordings),
            services: services.clone(),
            tenant: account.tenant,
            connection: account.id,
            lines: Semaphore::new(lines),
            stop: nuncio_channel::stop(),
            trunk: tokio::sync::Mutex::default(),
            looked: Mutex::default(),
            trouble: Mutex::default(),
        }))
    };
    AdapterFactory::new("sip", &[Channel::Voice], config::FIELDS, open).with_sessions()
}

struct SipAdapter {
    capabilities: Capabilities,
    config: Config,
    speech: Arc<Speech>,
    /// Turns at fetching and decoding.
    recordings: Arc<Semaphore>,
    services: Services,
    tenant: TenantId,
    connection: ConnectionId,
    /// One for each call.
    lines: Semaphore,
    /// Signals the end of the session: no new calls, and ringing stops.
    stop: (watch::Sender<bool>, Stop),
    trunk: tokio::sync::Mutex<Option<Arc<Trunk>>>,
    /// When the trunk was last checked, on the monotonic clock, and why the check failed.
    looked: Mutex<Option<(Duration, Result<(), String>)>>,
    trouble: Mutex<Option<String>>,
}

impl fmt::Debug for SipAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SipAdapter").field("config", &self.config).finish_non_exhaustive()
    }
}

#[async_trait]
impl Adapter for SipAdapter {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        match self.stop.1.clone().or(self.prepare(request)).await {
            // Checked while holding the line: closing the lines waits for calls that start here.
            Some(Ok((sound, _line, trunk))) if !*self.stop.0.borrow() => self.call(&trunk, request, &sound).await,
            Some(Err(outcome)) => outcome,
            Some(Ok(_)) | None => map::stopped(),
        }
    }

    async fn check(&self) -> Result<String, String> {
        let trunk = self.reach(Look::Beside).await?;
        let place = self.config.place();
        let login = match (self.config.username(), self.log_in(&trunk).await) {
            (None, _) => "it knows this server by its address, if at all: only a call can test it".to_owned(),
            (Some(name), Login::Right) => format!("logged in as {name}"),
            (Some(name), Login::Wrong) => {
                return Err(format!("the trunk {place} refuses the login of {name}: correct username and password"));
            }
            (Some(_), Login::Unclear) => "the trunk does not confirm the login: only a call can test it".to_owned(),
        };
        let said = self.speech.say(&self.config.command, ENGLISH, "Test").await;
        said.map_err(|fault| format!("the trunk {place} responds, but speech fails: {fault}; install espeak-ng, or set tts_command"))?;
        Ok(format!("the trunk {place} responds; {login}"))
    }

    fn sessions(&self) -> Sessions {
        Sessions::EveryNode
    }

    async fn run(&self, mut stop: Stop) {
        self.stop.0.send_replace(false);
        while let Some(found) = stop.or(self.reach(Look::Anew)).await {
            *self.trouble.lock() = found.err();
            if stop.or(sleep(EVERY)).await.is_none() {
                break;
            }
        }
        self.stop.0.send_replace(true);
        // When all lines are free, the last call is over.
        timeout(self.config.longest + LAST_WORDS, self.lines.acquire_many(self.config.lines)).await.ok();
        *self.trunk.lock().await = None;
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.lock().clone()
    }
}

/// How to check the trunk.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Look {
    /// Only if it was not found lately.
    IfNeeded,
    /// In any case.
    Anew,
    /// Always, from a separate port: another adapter of the same account may be using the configured one.
    Beside,
}

/// Result of the login.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Login {
    Right,
    Wrong,
    Unclear,
}

impl SipAdapter {
    /// Prepares a call: sound, a line, and a reachable trunk.
    async fn prepare(&self, request: &SendRequest<'_>) -> Result<(Arc<[i16]>, Option<SemaphorePermit<'_>>, Arc<Trunk>), Outcome> {
        let sound = self.sound(request).await?;
        // The window keeps it from waiting, unless the lines are being closed.
        let line = self.lines.acquire().await.ok();
        let trunk = self.reach(Look::IfNeeded).await.map_err(map::unreachable)?;
        Ok((sound, line, trunk))
    }

    /// Returns a reachable trunk: the one in use, or the first of those the name resolves to.
    async fn reach(&self, look: Look) -> Result<Arc<Trunk>, String> {
        let config = &self.config;
        let found = config.net.resolve(config.trusted, &config.host, config.port).await.map_err(|error| error.to_string())?;
        let mut slot = self.trunk.lock().await;
        let now = self.services.ids.clock.monotonic();
        let known = self.looked.lock().clone().filter(|(at, _)| look == Look::IfNeeded && now.saturating_sub(*at) < EVERY);
        let current = slot.as_ref().map(|trunk| trunk.address).filter(|address| found.contains(address));
        match (known, slot.as_ref().filter(|_| current.is_some())) {
            // Calls that waited for the same check use its result.
            (Some((at, Err(why))), _) if now.saturating_sub(at) < config.timeout => return Err(why),
            (Some((_, Ok(()))), Some(trunk)) if trunk.connect(config.timeout).await.is_ok() => return Ok(Arc::clone(trunk)),
            _ => {}
        }
        let mut last = Err("the name has no address".to_owned());
        for address in current.into_iter().chain(found.iter().copied().filter(|a| Some(*a) != current)) {
            last = self.open(&mut slot, address, look).await;
            if last.is_ok() {
                break;
            }
        }
        let looked = (self.services.ids.clock.monotonic(), last.as_ref().map(drop).map_err(Clone::clone));
        *self.looked.lock() = Some(looked);
        last
    }

    /// The trunk at one address, opened if need be, if it is there.
    async fn open(&self, slot: &mut Option<Arc<Trunk>>, address: SocketAddr, look: Look) -> Result<Arc<Trunk>, String> {
        let config = &self.config;
        let trunk = match slot.as_ref().filter(|trunk| trunk.address == address) {
            Some(trunk) => Arc::clone(trunk),
            None => {
                *slot = None;
                let ports = if look == Look::Beside { (0, 0) } else { config.ports.sip };
                let trunk = Arc::new(Trunk::open(config, address, ports, self.services.ids.clone()).await?);
                Arc::clone(slot.insert(trunk))
            }
        };
        trunk.connect(config.timeout).await.map_err(|why| format!("no connection to the trunk {}: {why}", config.place()))?;
        if config.ping && trunk.ask(Question::Presence, config.timeout).await.is_none() {
            let seconds = config.timeout.as_secs();
            return Err(format!(
                "the trunk {} ({address}) did not answer OPTIONS within {seconds} s: correct host, port and transport, let UDP through, or \
                 turn options_ping off if it never does",
                config.place()
            ));
        }
        Ok(trunk)
    }

    /// Whether the login is right.
    async fn log_in(&self, trunk: &Trunk) -> Login {
        if self.config.login.is_none() {
            return Login::Unclear;
        }
        match trunk.ask(Question::Login, self.config.timeout).await {
            Some(reply) if reply.challenged && matches!(reply.status, 200..=299) => Login::Right,
            Some(reply) if reply.challenged && matches!(reply.status, 401 | 403 | 407) => Login::Wrong,
            _ => Login::Unclear,
        }
    }

    /// Reports what the recipient heard and requested. Stored before the attempt ends, if possible.
    async fn tell(&self, event: ProviderEvent) {
        if self.services.events.record(event.clone()).await.is_err() {
            self.services.events.push(event, Duration::ZERO);
        }
    }

    async fn report_delivered(&self, request: &SendRequest<'_>) {
        let target = ReceiptTarget::Attempt {
            tenant: self.tenant,
            message: request.message.id,
            attempt: Some(request.attempt),
            connection: self.connection,
        };
        let at = self.services.ids.clock.now();
        self.tell(ProviderEvent::Receipt { target, kind: ReceiptKind::Delivered, at, raw: None }).await;
    }

    async fn report_opted_out(&self, request: &SendRequest<'_>) {
        let from = request.message.to.clone();
        let opted = OptedOut { tenant: self.tenant, connection: self.connection, channel: Channel::Voice, from, at: None };
        self.tell(ProviderEvent::OptedOut(opted)).await;
    }
}
