//! SMS over SMPP 3.4, through sessions with an SMSC that stay open.
//!
//! A message is `accepted` when the SMSC returned an id for each of its segments. What was not written to the session is deferred, and
//! what the SMSC refused is deferred or rejected. A lost response, or a message of which only some segments were accepted, is
//! [`Outcome::Unknown`]; a response that comes after its timeout replaces it. The segments of a message have the same reference in every
//! attempt, so that a phone that gets some of them twice still assembles one message.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use nuncio_channel::{
    Account, Adapter, AdapterFactory, Capabilities, EventSink, LateResult, Opened, Origin, Outcome, ProviderEvent, Receipts, Scope,
    SendRequest, Services, Sessions, Stop, sms,
};
use nuncio_domain::Channel;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_net::Network;
use tokio::time::timeout;

use crate::config::Config;
use crate::inbound::EventInbox;
use crate::session::{Request, RequestError, Session};
use crate::submit::{Draft, Progress, Taken};
use crate::supervisor::Link;
use crate::wire::{Body, Envelope};

/// How often, and after what pauses, a throttled segment is submitted again.
const REPEATS: u32 = 10;
const REPEAT_AFTER: Duration = Duration::from_millis(500);

mod address;
mod config;
mod inbound;
mod parts;
#[cfg(any(test, feature = "fuzz"))]
pub mod promises;
mod receipt;
mod recent;
mod session;
mod silence;
mod status;
mod submit;
mod supervisor;
mod turns;
mod wire;

/// Makes adapters of kind `smpp`.
pub fn factory(net: Network) -> AdapterFactory {
    let open = move |account: &Account, services: &Services| open(&net, account, services);
    AdapterFactory::new("smpp", &[Channel::Sms, Channel::SmsOneway], config::FIELDS, open).with_sessions()
}

fn open(net: &Network, account: &Account, services: &Services) -> Opened {
    let config = Config::read(account, net)?;
    let receipts = if config.registered_delivery == 0 { Receipts::Never } else { Receipts::ByReference };
    let capabilities = Capabilities { message_types: sms::MESSAGE_TYPES, receipts, window: config.binds * config.window };
    let inbox = Arc::new(EventInbox::new(account, services, config.ids, config.reassembly));
    Ok(Arc::new(SmppAdapter {
        capabilities,
        origin: Origin::of(account),
        events: Arc::clone(&services.events),
        link: Arc::new(Link::new(config, account.id, inbox, services.ids.clone())),
    }))
}

struct SmppAdapter {
    capabilities: Capabilities,
    origin: Origin,
    events: Arc<dyn EventSink>,
    link: Arc<Link>,
}

impl fmt::Debug for SmppAdapter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SmppAdapter").field("config", &self.link.config).finish_non_exhaustive()
    }
}

#[async_trait]
impl Adapter for SmppAdapter {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn send(&self, request: &SendRequest<'_>) -> Outcome {
        let draft = match Draft::new(request, &self.link.config) {
            Ok(draft) => draft,
            Err(failure) => return Outcome::Rejected { failure },
        };
        let session = match self.link.session().await {
            Ok(session) => session,
            Err(outcome) => return outcome,
        };
        let mut progress = Progress { taken: 0, total: draft.bodies.len(), refs: Vec::with_capacity(draft.bodies.len()) };
        let mut sent = self.submit(&session, &draft, request, &mut progress).await;
        // The SMSC can end a session between two segments. The rest was not sent, and can follow over another session.
        if progress.is_partial()
            && matches!(sent, Err(Taken::NotSent(_)))
            && let Some(next) = self.link.next_session().await
        {
            sent = self.submit(&next, &draft, request, &mut progress).await;
        }
        match sent {
            Ok(()) => Outcome::Accepted { refs: progress.refs, cost: None },
            Err(stopped) if progress.taken > 0 => progress.partial(stopped),
            Err(Taken::No(outcome)) => outcome,
            Err(Taken::NotSent(why)) => self.broke(&why),
            Err(Taken::Unclear(why)) => submit::unknown(why, progress.refs),
            Err(stopped @ Taken::Yes(_)) => progress.partial(stopped),
        }
    }

    async fn check(&self) -> Result<String, String> {
        // A session beyond the account's limit would be refused, which would prove nothing.
        if let Some(session) = self.link.up() {
            return self.ask(&session).await;
        }
        let tried = self.link.attempt().await;
        match (tried, self.link.up()) {
            (Ok(()), _) => Ok(self.bound()),
            (Err(_), Some(session)) => self.ask(&session).await,
            (Err(trouble), None) => Err(trouble.text),
        }
    }

    fn checks_own_sessions(&self) -> bool {
        true
    }

    fn sessions(&self) -> Sessions {
        Sessions::EveryNode
    }

    async fn run(&self, stop: Stop) {
        Arc::clone(&self.link).run(stop).await;
    }

    fn trouble(&self) -> Option<String> {
        self.link.trouble()
    }
}

impl SmppAdapter {
    /// Tests an open session.
    async fn ask(&self, session: &Arc<Session>) -> Result<String, String> {
        match session.enquire().await {
            Ok(_) => {
                let trouble = self.link.trouble().map(|trouble| format!("; but {trouble}")).unwrap_or_default();
                Ok(format!("{}; it responds{trouble}", self.bound()))
            }
            Err(RequestError::NotSent(why) | RequestError::NoResponse(why)) => {
                let config = &self.link.config;
                Err(format!("the SMSC {}:{} does not respond: {why}", config.host, config.port))
            }
        }
    }

    fn bound(&self) -> String {
        let config = &self.link.config;
        let line = if config.trust.is_some() { "encrypted" } else { "in clear text" };
        format!("bound to the SMSC {}:{} as {}, {line}", config.host, config.port, config.system_id)
    }

    /// The outcome on a message that was not sent because its session ended.
    fn broke(&self, why: &str) -> Outcome {
        let scope = if self.link.up().is_some() { Scope::Message } else { Scope::Connection };
        Outcome::Deferred { retry_after: None, failure: Failure::own(FailureCode::Undeliverable, why), scope }
    }

    /// Sends the segments that are left, in order: if the first is refused, which is the usual case, nothing has been sent. Fails with what
    /// stopped it.
    async fn submit(
        &self,
        session: &Arc<Session>,
        draft: &Draft<'_>,
        request: &SendRequest<'_>,
        progress: &mut Progress,
    ) -> Result<(), Taken> {
        let _permit = match timeout(self.link.config.timeout, session.window.acquire()).await {
            Ok(Ok(permit)) => permit,
            Ok(Err(_)) => return Err(Taken::NotSent("the session with the SMSC ended".to_owned())),
            Err(_) => {
                let failure = Failure::own(FailureCode::RateLimited, "the SMSC has not responded to earlier messages");
                return Err(Taken::No(Outcome::Deferred { retry_after: None, failure, scope: Scope::Message }));
            }
        };
        for body in &draft.bodies[progress.taken..] {
            let (taken, open) = self.submit_segment(session, &draft.envelope, body, progress.taken > 0).await;
            if let Some(open) = open {
                self.report_late(open, progress.clone(), request);
            }
            match taken {
                Taken::Yes(id) => progress.take(id),
                stopped => return Err(stopped),
            }
        }
        Ok(())
    }

    /// Submits one segment. If the SMSC throttles one after the first, repeats it for a while: the whole message must not be. Also returns
    /// the request if its response timed out and can still come.
    async fn submit_segment(&self, session: &Arc<Session>, envelope: &Envelope<'_>, body: &Body, later: bool) -> (Taken, Option<Request>) {
        let config = &self.link.config;
        let mut pauses = if later { REPEATS } else { 0 };
        loop {
            let mut sent = match session.begin(|out, sequence| wire::submit(out, sequence, envelope, body)) {
                Ok(sent) => sent,
                Err(error) => return (config.judge(Err(error)), None),
            };
            match config.judge(sent.response().await) {
                Taken::No(Outcome::Deferred { .. }) if pauses > 0 => pauses -= 1,
                taken => return (taken, Some(sent).filter(Request::is_open)),
            }
            tokio::time::sleep(REPEAT_AFTER).await;
        }
    }

    /// Reports the response to the segment after `progress` when it comes after all.
    fn report_late(&self, open: Request, progress: Progress, request: &SendRequest<'_>) {
        let (link, events) = (Arc::clone(&self.link), Arc::clone(&self.events));
        let (origin, receipts, message, attempt) = (self.origin, self.capabilities.receipts, request.message.id, request.attempt);
        tokio::spawn(async move {
            let Some(reply) = open.late_response().await else { return };
            let Some(outcome) = progress.late(link.config.judge(Ok(reply))) else { return };
            events.push(ProviderEvent::LateResult(Box::new(LateResult { origin, message, attempt, outcome, receipts })), Duration::ZERO);
        });
    }
}
