//! Produces the sound of a message.

use std::sync::Arc;
use std::time::Duration;

use nuncio_channel::{Outcome, Scope, SendRequest};
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::{MessageType, speech};
use nuncio_net::FetchLimits;

use crate::speech::SpeechError;
use crate::{ENGLISH, SipAdapter, audio, map};

/// Longest recording that is fetched: an hour of CD sound in one channel.
const MOST_BYTES: u64 = 40_000_000;
/// Recordings fetched and decoded at once, for all accounts.
pub(crate) const AT_ONCE: usize = 2;
/// Timeout for fetching a recording.
const FETCH: Duration = Duration::from_secs(60);

impl SipAdapter {
    /// The message as samples of the line, short enough for a call.
    pub(crate) async fn sound(&self, request: &SendRequest<'_>) -> Result<Arc<[i16]>, Outcome> {
        let sound = match request.message.message_type {
            MessageType::Audio => self.recording(request).await?,
            MessageType::Text | MessageType::Template | MessageType::Location => self.spoken(request).await?,
            other => {
                let why = format!("a call cannot carry a message of type {other}");
                return Err(map::rejected(FailureCode::ContentRejected, why));
            }
        };
        if sound.is_empty() {
            return Err(map::rejected(FailureCode::ContentRejected, "the message has no text to speak"));
        }
        let fits = audio::fits(sound.len(), audio::RATE, self.config.longest.as_secs());
        fits.map(|()| sound).map_err(|why| map::rejected(FailureCode::ContentRejected, why))
    }

    async fn spoken(&self, request: &SendRequest<'_>) -> Result<Arc<[i16]>, Outcome> {
        let message = request.message;
        let text = speech::words(message.message_type, message.request.text.as_deref(), message.request.content.as_deref());
        if text.trim().is_empty() {
            return Err(map::rejected(FailureCode::ContentRejected, "the message has no text to speak"));
        }
        let asked = message.request.voice_language.as_deref();
        let command = &self.config.command;
        let said = match self.speech.say(command, speech::language(asked, &message.to), &text).await {
            // If a country's language has no voice, many people there understand English; a requested language has no substitute.
            Err(SpeechError::NoVoice(_)) if asked.is_none() => self.speech.say(command, ENGLISH, &text).await,
            said => said,
        };
        said.map_err(|fault| match fault {
            SpeechError::NoVoice(_) => map::rejected(FailureCode::ContentRejected, fault.to_string()),
            SpeechError::Program(_) => map::unreachable(fault.to_string()),
        })
    }

    /// Returns the attached or linked recording. Waits for its turn: a recording takes much memory and some CPU time.
    async fn recording(&self, request: &SendRequest<'_>) -> Result<Arc<[i16]>, Outcome> {
        let turn = Arc::clone(&self.recordings).acquire_owned().await;
        let (content_type, bytes) = match request.attachments.first() {
            Some(attached) => (attached.content_type.clone(), attached.bytes.clone()),
            None => self.fetch(request).await?,
        };
        let most = self.config.longest.as_secs();
        let read = tokio::task::spawn_blocking(move || {
            // Continues even if the caller is dropped.
            let _turn = turn;
            audio::read(&content_type, &bytes, most)
        });
        let read = read.await;
        let read = read.map_err(|error| map::rejected(FailureCode::Internal, error.to_string()))?;
        read.map(Into::into).map_err(|why| map::rejected(FailureCode::ContentRejected, why))
    }

    /// Returns the MIME type and the content behind the message's link.
    async fn fetch(&self, request: &SendRequest<'_>) -> Result<(String, Vec<u8>), Outcome> {
        let url = request.message.request.content.as_ref().and_then(|content| content.media_url.as_deref());
        let Some(url) = url else {
            return Err(map::rejected(FailureCode::AttachmentUnavailable, "the message has no recording"));
        };
        // The link comes from the caller, even if the operator set the account up.
        match self.config.net.client(false).fetch(url, FetchLimits { max_bytes: MOST_BYTES, timeout: FETCH }).await {
            Ok(fetched) => Ok((fetched.content_type.unwrap_or_default(), fetched.bytes)),
            Err(error) => {
                let failure = Failure::own(FailureCode::AttachmentUnavailable, format!("the recording: {error}"));
                Err(if error.is_transient() {
                    Outcome::Deferred { retry_after: None, failure, scope: Scope::Message }
                } else {
                    Outcome::Rejected { failure }
                })
            }
        }
    }
}
