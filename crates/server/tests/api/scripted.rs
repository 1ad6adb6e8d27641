//! A scripted provider.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use nuncio_channel::{Adapter, AdapterFactory, Capabilities, Outcome, Registry, SendRequest, TemplateApi};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::template::{Decision, Template};
use nuncio_domain::{Channel, MessageType};
use nuncio_testkit::{Backend, Options, TestApp, provider};

static CAPABILITIES: Capabilities = Capabilities { message_types: MessageType::ALL, receipts: nuncio_channel::Receipts::Never, window: 8 };

/// The simulator under another name: a provider of all channels for the live environment, which rejects `sim`.
fn stand_in() -> AdapterFactory {
    let sim = nuncio_channel_sim::factory();
    AdapterFactory::new("stand_in", sim.channels(), sim.fields(), move |account, services| sim.open(account, services))
}

/// Starts a server whose live environment has the provider `stand_in`.
pub(crate) async fn with_stand_in(backend: Backend) -> TestApp {
    let registry = Registry::new(vec![nuncio_channel_sim::factory(), stand_in()]);
    TestApp::with(backend, Options { registry, ..Options::default() }).await
}

/// A provider with scripted responses about templates, which records requests. It does not respond to messages.
#[derive(Clone, Debug, Default)]
pub(crate) struct Scripted(Arc<Mutex<Script>>);

#[derive(Debug, Default)]
struct Script {
    submits: VecDeque<Result<String, Failure>>,
    statuses: VecDeque<Result<Decision, Failure>>,
    /// Requests: `submit`, or the provider's id.
    asked: Vec<String>,
}

impl Scripted {
    /// Returns a registry with this provider alone, as `scripted`.
    pub(crate) fn registry(&self) -> Registry {
        let channels = &[Channel::Whatsapp, Channel::Email];
        Registry::new(vec![provider("scripted", channels, self.clone())])
    }

    pub(crate) fn will(&self, submits: Vec<Result<String, Failure>>, statuses: Vec<Result<Decision, Failure>>) {
        let mut script = self.0.lock().expect("no panic");
        (script.submits, script.statuses) = (submits.into(), statuses.into());
    }

    /// Returns the requests since the last call.
    pub(crate) fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.0.lock().expect("no panic").asked)
    }
}

#[async_trait]
impl Adapter for Scripted {
    fn capabilities(&self) -> &Capabilities {
        &CAPABILITIES
    }

    async fn send(&self, _: &SendRequest<'_>) -> Outcome {
        let failure = Failure::own(FailureCode::UnknownOutcome, "the connection broke before the answer came");
        Outcome::Unknown { failure, refs: Vec::new() }
    }

    async fn check(&self) -> Result<String, String> {
        Ok("scripted".to_owned())
    }

    fn templates(&self) -> Option<&dyn TemplateApi> {
        Some(self)
    }
}

#[async_trait]
impl TemplateApi for Scripted {
    async fn submit(&self, _: &Template) -> Result<String, Failure> {
        let mut script = self.0.lock().expect("no panic");
        script.asked.push("submit".to_owned());
        script.submits.pop_front().expect("it is handed in so often only")
    }

    async fn status(&self, template: &Template) -> Result<Decision, Failure> {
        let mut script = self.0.lock().expect("no panic");
        script.asked.push(template.content.provider_id.clone().unwrap_or_default());
        script.statuses.pop_front().expect("it is asked so often only")
    }
}
