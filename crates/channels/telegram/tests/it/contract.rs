//! The adapter keeps the contract in every mode.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hmac::{Hmac, Mac as _};
use nuncio_channel::contract::{Harness, Mode, Peer, Report, Rig, run_all};
use nuncio_channel::{Account, AdapterFactory, Services};
use nuncio_net::GuardPolicy;
use serde_json::json;
use tokio::net::TcpListener;

use crate::support::{self, Act, BotAnswer as _, BotCall as _, Recorder, Seen, TOKEN, account, factory, open, services};

#[derive(Debug)]
struct Bot(AdapterFactory);

#[derive(Debug)]
struct Chats(Option<support::Peer>, Mode);

impl Peer for Chats {
    fn taken(&self) -> Vec<String> {
        let takes = matches!(self.1, Mode::Accepts | Mode::LosesAnswer | Mode::Garbage);
        let calls = self.0.iter().flat_map(support::Peer::seen).filter(|seen| takes && seen.method().starts_with("send"));
        calls.map(|seen| seen.json().to_string()).collect()
    }
}

fn act(mode: Mode, seen: &Seen) -> Act {
    match (mode, seen.method()) {
        (Mode::BadCredentials, _) => Act::error(401, "Unauthorized", json!({})),
        (_, "getMe") => Act::result(json!({"id": 123_456_789, "is_bot": true, "first_name": "Desk", "username": "desk_bot"})),
        (Mode::Accepts, _) => Act::sent(1),
        (Mode::RejectsPermanently, _) => Act::error(400, "Bad Request: chat not found", json!({})),
        (Mode::Throttles, _) => Act::error(429, "Too Many Requests: retry after 7", json!({"retry_after": 7})),
        (Mode::FailsTemporarily, _) => Act::error(503, "Service Unavailable", json!({})),
        (Mode::LosesAnswer, _) => Act::HangUp,
        (Mode::Garbage, _) => Act::text(200, "<html>"),
        (Mode::AnswersNever | Mode::Unreachable, _) => unreachable!("nothing can be read in this mode"),
    }
}

#[async_trait]
impl Harness for Bot {
    fn factory(&self) -> &AdapterFactory {
        &self.0
    }

    fn account(&self) -> Account {
        account(json!({}))
    }

    fn more_secrets(&self) -> Vec<String> {
        let mut mac = Hmac::<sha2::Sha256>::new_from_slice(TOKEN.as_bytes()).unwrap();
        mac.update(format!("nuncio webhook {}", self.account().id).as_bytes());
        vec![hex::encode(mac.finalize().into_bytes()), TOKEN.replace(':', "%3A")]
    }

    fn services(&self) -> Services {
        services(Arc::new(Recorder::default()), "https://nuncio.example")
    }

    async fn rig(&self, mode: Mode) -> Option<Rig> {
        let to = "5".to_owned();
        let retry_after = (mode == Mode::Throttles).then_some(Duration::from_secs(7));
        if matches!(mode, Mode::AnswersNever | Mode::Unreachable) {
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.unwrap();
            // Who waits for the first word of TLS has not written the message. Nobody accepts, but the system does.
            let scheme = if mode == Mode::AnswersNever { "https" } else { "http" };
            let settings = json!({"base_url": format!("{scheme}://{}", listener.local_addr().unwrap())});
            let adapter = self.0.open(&account(settings), &self.services()).unwrap();
            if mode == Mode::AnswersNever {
                tokio::spawn(async move {
                    let _open = listener;
                    std::future::pending::<()>().await;
                });
            }
            return Some(Rig { adapter, to, retry_after, peer: Box::new(Chats(None, mode)) });
        }
        let peer = support::Peer::start(move |seen| act(mode, seen)).await;
        let adapter = open(&peer.base(), json!({}), &Arc::default());
        Some(Rig { adapter, to, retry_after, peer: Box::new(Chats(Some(peer), mode)) })
    }
}

#[tokio::test(start_paused = true)]
async fn the_adapter_keeps_the_contract_in_every_mode() {
    let bot = Bot(factory(GuardPolicy::default()));
    assert_eq!(run_all(&bot).await, Report { missing: Vec::new() });
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_is_unknown() {
    let peer = support::Peer::start(|_| Act::Silence).await;
    let adapter = open(&peer.base(), json!({"timeout_seconds": 3}), &Arc::default());
    let message = nuncio_channel::contract::message(&account(json!({})), "5", 0);
    let outcome = adapter.send(&nuncio_channel::contract::request(&message)).await;
    assert_eq!(support::short(&outcome).0, "unknown", "{outcome:?}");
    assert_eq!(peer.methods(), ["sendMessage"]);
}
