//! One call, from ringing to hanging up.

use nuncio_channel::{Outcome, SendRequest};
use nuncio_domain::id::Id as _;
use nuncio_domain::message::FailureCode;
use tokio::net::UdpSocket;
use tokio::time::{Instant, sleep_until};

use crate::keys::Script;
use crate::map::Refusal;
use crate::media::{End, Guard, Media};
use crate::sdp::{Answer, Codec, Direction, Own};
use crate::trunk::{Call, Cancelled, Progress, Trunk};
use crate::{Login, SipAdapter, map, rtp, sdp};

/// How ringing ended.
enum Rung {
    Answered(Answer),
    /// Answered, but no sound can be sent.
    Deaf(&'static str),
    Refused(Refusal),
    /// The trunk's response is invalid.
    Broken(String),
    /// The trunk did not respond.
    Silent,
    /// Not answered.
    InVain,
    /// The session is ending.
    Stopped,
}

/// Our end of the sound of a call.
struct Ear<'a> {
    socket: UdpSocket,
    trunk: &'a Trunk,
    own: Own,
}

impl SipAdapter {
    /// Calls the recipient and plays `sound`.
    pub(crate) async fn call(&self, trunk: &Trunk, request: &SendRequest<'_>, sound: &[i16]) -> Outcome {
        let config = &self.config;
        let mut ear = match self.ear(trunk).await {
            Ok(ear) => ear,
            Err(error) => {
                return map::unreachable(format!(
                    "no port for sound is free on this server: {error}; widen the operator's range, sip.rtp_port_low to sip.rtp_port_high"
                ));
            }
        };
        // The same in every call of this attempt, and in no other's.
        let call_id = format!("nuncio-{}-{}", request.message.id.uuid(), request.attempt);
        let from = config.from.as_deref().unwrap_or(&request.message.from);
        let (to, from) = (config.dialled(&request.message.to), config.dialled(from));
        let offer = ear.own.describe(config.codecs, Direction::SendRecv);
        let mut call = match trunk.invite(to, from, call_id.clone(), offer) {
            Ok(call) => call,
            Err(why) => return map::rejected(FailureCode::InvalidRecipient, why),
        };
        let answer = match self.ring(&mut call).await {
            Rung::Answered(answer) => answer,
            Rung::Deaf(why) => {
                call.hang_up().await;
                return deaf(why);
            }
            Rung::Refused(refusal) => return self.refused(trunk, &refusal).await,
            Rung::Broken(why) => return map::unknown(&why),
            Rung::Silent => return map::unknown(&format!("the trunk did not answer within {} s", config.timeout.as_secs())),
            Rung::InVain => return in_vain(call.cancel().await, config.ring.as_secs()),
            Rung::Stopped => return stopped(call.cancel().await),
        };
        let mut script = self.script(answer.codec, sound);
        let end = self.talk(ear, &mut call, &answer, &mut script).await;
        call.hang_up().await;
        match end {
            Ok(_) if script.was_heard() => self.heard(request, &script, call_id).await,
            Ok(end) => unheard(end, &script, sound.len()),
            Err(why) => deaf(&why),
        }
    }

    async fn ear<'a>(&self, trunk: &'a Trunk) -> std::io::Result<Ear<'a>> {
        let entropy = &*self.services.ids.entropy;
        let socket = rtp::bind(trunk.local, self.config.ports.rtp, entropy).await?;
        let port = socket.local_addr()?.port();
        Ok(Ear { socket, trunk, own: Own::new(trunk.public, port, entropy.below(1 << 62)) })
    }

    /// Waits until someone picks up.
    async fn ring(&self, call: &mut Call) -> Rung {
        let mut stop = self.stop.1.clone();
        let (mut deadline, mut underway) = (Instant::now() + self.config.timeout, false);
        loop {
            let progress = tokio::select! {
                progress = call.progress() => progress,
                () = stop.asked() => return Rung::Stopped,
                () = sleep_until(deadline) => return if underway { Rung::InVain } else { Rung::Silent },
            };
            match progress {
                Progress::Underway if underway => {}
                Progress::Underway => (deadline, underway) = (Instant::now() + self.config.ring, true),
                Progress::Answered(description) => {
                    return sdp::read(&description, self.config.codecs).map_or_else(Rung::Deaf, Rung::Answered);
                }
                Progress::Refused(refusal) => return Rung::Refused(refusal),
                Progress::Broken(why) => return Rung::Broken(why),
            }
        }
    }

    /// Returns the outcome on a refusal. Trunks use "forbidden" for wrong passwords too: only the login itself can tell.
    async fn refused(&self, trunk: &Trunk, refusal: &Refusal) -> Outcome {
        let login_refused = refusal.status == 403 && self.log_in(trunk).await == Login::Wrong;
        map::refused(refusal, login_refused)
    }

    fn script(&self, codec: Codec, sound: &[i16]) -> Script {
        let config = &self.config;
        let silence = codec.encode(&[0])[0];
        Script::new(codec.encode(sound), silence, config.repeat, config.listen, config.keys)
    }

    async fn talk(&self, ear: Ear<'_>, call: &mut Call, answer: &Answer, script: &mut Script) -> Result<End, String> {
        let guard = Guard { net: self.config.net.clone(), trusted: self.config.trusted, trunk: ear.trunk.address };
        let mut media = Media::new(ear.socket, guard, answer, ear.own, &*self.services.ids.entropy).await?;
        let deadline = Instant::now() + self.config.longest;
        Ok(media.talk(script, call, deadline).await)
    }

    async fn heard(&self, request: &SendRequest<'_>, script: &Script, call_id: String) -> Outcome {
        self.report_delivered(request).await;
        if script.is_opted_out() {
            self.report_opted_out(request).await;
        }
        Outcome::Accepted { refs: vec![call_id], cost: None }
    }
}

/// Returns the outcome on an answered call without sound.
fn deaf(why: &str) -> Outcome {
    map::answered(FailureCode::ProviderRejected, format!("the call was answered, but no sound can be sent: {why}"))
}

fn in_vain(cancelled: Cancelled, seconds: u64) -> Outcome {
    match cancelled {
        // If the call was answered at that moment, nothing was heard.
        Cancelled::InTime | Cancelled::TooLate => map::rang_out(seconds),
        Cancelled::Silence => map::unknown("the call was not answered, and the trunk did not confirm the cancellation"),
    }
}

fn stopped(cancelled: Cancelled) -> Outcome {
    match cancelled {
        Cancelled::InTime | Cancelled::TooLate => map::stopped(),
        Cancelled::Silence => map::unknown("the session ended, and the trunk did not confirm the cancellation"),
    }
}

/// The outcome on a message of which the recipient heard a part at most.
fn unheard(end: End, script: &Script, samples: usize) -> Outcome {
    let (tenths, all) = (script.tenths(), samples / 800);
    match end {
        // Not called again: they know that we called, and did not want it.
        End::HungUp => map::answered(
            FailureCode::Undeliverable,
            format!("the recipient hung up after {}.{} s of {}.{} s", tenths / 10, tenths % 10, all / 10, all % 10),
        ),
        End::TooLong | End::Said => map::unknown("the call was too short to play the message"),
    }
}
