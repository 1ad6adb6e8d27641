//! The adapter against Kannel itself: bearerbox and smsbox, with its own fakesmsc and, where there is node, an SMSC on npm smpp behind
//! them.

use std::io::{BufRead as _, BufReader, Read};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use nuncio_channel::contract::request;
use nuncio_channel::scripted::{Reply, Scripted, Seen};
use nuncio_channel::testing::{node_peer, object, services};
use nuncio_channel::{Account, Adapter, CallbackRequest, Inbound, Outcome, ProviderEvent, ReceiptTarget, Scope, Services};
use nuncio_channel_http::testing::NOW;
use nuncio_domain::id::{Id as _, uuid_v7};
use nuncio_domain::lifecycle::ReceiptKind;
use nuncio_domain::message::{FailureCode, Message};
use nuncio_domain::{ConnectionId, MessageId, MessageType, Redacted, Timestamp};
use nuncio_net::header::{HeaderMap, HeaderName, HeaderValue};
use serde_json::json;
use tokio::sync::mpsc;
use tokio::time::timeout;

use crate::support::{GATEWAY, PASSWORD, SECRET};

/// Kannel asks an SMSC that it lost again after 10 s.
const PATIENCE: Duration = Duration::from_secs(60);

/// A program and what it prints. It is killed with its owner.
struct Program {
    process: Child,
    lines: mpsc::UnboundedReceiver<String>,
}

impl Program {
    fn start(command: &mut Command) -> Self {
        let mut process = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let (say, lines) = mpsc::unbounded_channel();
        let pipes: [Box<dyn Read + Send>; 2] = [Box::new(process.stdout.take().unwrap()), Box::new(process.stderr.take().unwrap())];
        for pipe in pipes {
            let say = say.clone();
            std::thread::spawn(move || {
                for line in BufReader::new(pipe).split(b'\n').map_while(Result::ok) {
                    say.send(String::from_utf8_lossy(&line).into_owned()).ok();
                }
            });
        }
        Self { process, lines }
    }

    /// The next line that holds these words.
    async fn says(&mut self, words: &str) -> String {
        let mut said = Vec::new();
        let found = async {
            while let Some(line) = self.lines.recv().await {
                if line.contains(words) {
                    return Some(line);
                }
                said.push(line);
            }
            None
        };
        let found = timeout(PATIENCE, found).await.ok().flatten();
        found.unwrap_or_else(|| panic!("it never said {words:?}, but:\n{}", said.join("\n")))
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.process.kill().ok();
        self.process.wait().ok();
    }
}

fn ports<const N: usize>() -> [u16; N] {
    let held = [(); N].map(|()| TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap());
    held.map(|listener| listener.local_addr().unwrap().port())
}

/// The SMSC on node.
async fn smsc() -> Option<(Program, u64)> {
    let mut peer = Program::start(&mut node_peer("smsc.js", "smpp")?);
    let said: serde_json::Value = serde_json::from_str(&peer.says("port").await).unwrap();
    Some((peer, said["port"].as_u64().unwrap()))
}

/// An adapter, and the connection that it serves.
type Named = (String, Arc<dyn Adapter>);

/// Accounts of the gateway, one for each SMSC, with where it calls back.
struct House {
    told: mpsc::UnboundedReceiver<ProviderEvent>,
    fake: Arc<dyn Adapter>,
    smpp: Arc<dyn Adapter>,
    stranger: Arc<dyn Adapter>,
    sendsms: u16,
    callbacks: [String; 2],
}

impl House {
    async fn start(sendsms: u16) -> Self {
        let adapters: Arc<Mutex<Vec<Named>>> = Arc::default();
        let (tell, told) = mpsc::unbounded_channel();
        let known = Arc::clone(&adapters);
        let listener = Scripted::start(move |seen| {
            let known = known.lock().unwrap();
            let adapter = known.iter().find(|(id, _)| seen.path.contains(id.as_str())).map(|(_, adapter)| adapter);
            called(adapter.expect("a connection"), seen, &tell)
        });
        let base = listener.await.base();
        let ids = [1, 2, 3].map(|n| ConnectionId::from_uuid(uuid_v7(Timestamp::from_millis(n), [7; 10])));
        let open = |id: ConnectionId, settings, password: &str| {
            let secrets = Redacted::new(object(json!({"password": password, "callback_secret": SECRET})));
            let account = Account { id, secrets, ..GATEWAY.account(&format!("http://127.0.0.1:{sendsms}"), settings) };
            let adapter = GATEWAY.factory().open(&account, &Services { public_url: base.as_str().into(), ..services() }).unwrap();
            adapters.lock().unwrap().push((id.to_string(), Arc::clone(&adapter)));
            adapter
        };
        Self {
            told,
            fake: open(ids[0], json!({"smsc": "FAKE", "from": "ACME"}), PASSWORD),
            smpp: open(ids[1], json!({"smsc": "SMPP", "method": "post"}), PASSWORD),
            stranger: open(ids[2], json!({}), "wrong"),
            sendsms,
            callbacks: [ids[0], ids[1]].map(|id| format!("{base}/providers/kannel/{id}?key={}&id=%I", SECRET.replace('+', "%2B"))),
        }
    }

    async fn next(&mut self) -> ProviderEvent {
        timeout(PATIENCE, self.told.recv()).await.expect("something is told").unwrap()
    }

    async fn inbound(&mut self) -> Inbound {
        loop {
            if let ProviderEvent::Inbound(inbound) = self.next().await {
                return inbound;
            }
        }
    }

    /// What the next receipts say, up to one that is final.
    async fn receipts(&mut self, message: MessageId) -> Vec<ReceiptKind> {
        let mut kinds = Vec::new();
        while !kinds.iter().any(|kind| !matches!(kind, ReceiptKind::Sent)) {
            if let ProviderEvent::Receipt { target: ReceiptTarget::Attempt { message: of, attempt, .. }, kind, .. } = self.next().await
                && of == message
            {
                assert_eq!(attempt, Some(0));
                kinds.push(kind);
            }
        }
        kinds
    }
}

fn called(adapter: &Arc<dyn Adapter>, seen: &Seen, tell: &mpsc::UnboundedSender<ProviderEvent>) -> Reply {
    let (path, query) = seen.path.split_once('?').unwrap_or((&seen.path, ""));
    let rest = path.splitn(5, '/').nth(4).unwrap_or_default();
    let pairs = seen
        .headers
        .iter()
        .filter_map(|(name, value)| Some((HeaderName::try_from(name).ok()?, HeaderValue::from_bytes(value.as_bytes()).ok()?)));
    let headers: HeaderMap = pairs.collect();
    let call = CallbackRequest { method: &seen.method, url: &seen.path, rest, query, headers: &headers, body: &seen.body, now: NOW };
    match adapter.callback(&call) {
        Ok(told) => {
            told.events.into_iter().for_each(|event| drop(tell.send(event)));
            Reply::text(200, "")
        }
        Err(error) => panic!("{error}: {seen:?}"),
    }
}

fn configuration(house: &House, [admin, boxes, fake]: [u16; 3], smpp: Option<u64>) -> String {
    let [by_get, by_post] = &house.callbacks;
    let sendsms = house.sendsms;
    let smpp = smpp.map_or_else(String::new, |port| {
        format!(
            "group = smsc\nsmsc = smpp\nsmsc-id = SMPP\nallowed-smsc-id = SMPP\nhost = 127.0.0.1\nport = {port}\nsmsc-username = acme\nsmsc-password = secret08\n\
             system-type = \"\"\ntransceiver-mode = true\n\n"
        )
    });
    format!(
        "group = core\nadmin-port = {admin}\nadmin-password = bar\nadmin-interface = \"127.0.0.1\"\nsmsbox-port = {boxes}\n\
         smsbox-interface = \"127.0.0.1\"\nbox-deny-ip = \"*.*.*.*\"\nbox-allow-ip = \"127.0.0.1\"\ndlr-storage = internal\n\n\
         group = smsc\nsmsc = fake\nsmsc-id = FAKE\nallowed-smsc-id = FAKE\nport = {fake}\nour-host = \"127.0.0.1\"\nconnect-allow-ip = 127.0.0.1\n\n\
         {smpp}group = smsbox\nbearerbox-host = 127.0.0.1\nsendsms-port = {sendsms}\nsendsms-interface = \"127.0.0.1\"\n\n\
         group = sendsms-user\nusername = tester\npassword = \"{PASSWORD}\"\nconcatenation = true\nmax-messages = 10\n\n\
         group = sms-service\nkeyword = default\naccepted-smsc = FAKE\nmax-messages = 0\n\
         get-url = \"{by_get}&from=%p&to=%P&text=%b&charset=%C&coding=%c&time=%T\"\n\n\
         group = sms-service\nkeyword = default\naccepted-smsc = SMPP\nmax-messages = 0\nsend-sender = true\npost-url = \"{by_post}\"\n"
    )
}

/// Kannel, up and connected.
struct Gateway {
    _bearerbox: Program,
    _smsbox: Program,
    fakesmsc: Program,
    smsc: Option<Program>,
    _folder: tempfile::TempDir,
}

impl Gateway {
    async fn start(house: &House) -> Self {
        let own: [u16; 3] = ports();
        let (mut smsc, port) = smsc().await.unzip();
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join("kannel.conf"), configuration(house, own, port)).unwrap();
        let program = |name: &str| Program::start(Command::new(name).arg("kannel.conf").current_dir(folder.path()));
        let mut bearerbox = program("/usr/sbin/bearerbox");
        bearerbox.says("entering mainloop").await;
        let mut smsbox = program("/usr/sbin/smsbox");
        smsbox.says("Connected to bearerbox").await;
        let fake = ["-H", "127.0.0.1", "-r", &own[2].to_string(), "-m", "1", "34600111222 12345 text hello you"];
        let fakesmsc = Program::start(Command::new("/usr/lib/kannel/test/fakesmsc").args(fake));
        bearerbox.says("Fakesmsc client connected").await;
        if let Some(smsc) = &mut smsc {
            smsc.says("bind_transceiver").await;
        }
        Self { _bearerbox: bearerbox, _smsbox: smsbox, fakesmsc, smsc, _folder: folder }
    }
}

fn draft(text: &str) -> Message {
    GATEWAY.message(MessageType::Text, Some(text), json!({}))
}

fn to(number: &str, text: &str, tail: u8) -> Message {
    let id = MessageId::from_uuid(uuid_v7(NOW, [tail; 10]));
    Message { id, to: number.to_owned(), ..draft(text) }
}

async fn accepted(adapter: &Arc<dyn Adapter>, message: &Message) {
    let outcome = adapter.send(&request(message)).await;
    assert_eq!(outcome, Outcome::Accepted { refs: Vec::new(), cost: None });
}

#[tokio::test(flavor = "multi_thread")]
#[ignore = "needs Kannel; ./test runs it"]
async fn heavy_through_kannel_and_back() {
    let [sendsms] = ports();
    let mut house = House::start(sendsms).await;
    let mut gateway = Gateway::start(&house).await;

    let found = house.fake.check().await.unwrap();
    assert!(found.contains("accepts the login of tester"), "{found}");
    let wrong = house.stranger.check().await.unwrap_err();
    assert!(wrong.contains("Authorization failed") && wrong.contains("check username and password"), "{wrong}");
    let outcome = house.stranger.send(&request(&draft("x"))).await;
    let Outcome::Deferred { failure, scope: Scope::Connection, .. } = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.code, FailureCode::CredentialsInvalid);

    let hello = house.inbound().await;
    assert_eq!((hello.from.as_str(), hello.text.as_str()), ("+34600111222", "hello you"));
    assert_eq!(hello.provider_message_id.len(), 36, "Kannel's own id: {hello:?}");

    for (number, text) in [(1, "Olé {€} + more"), (2, "Привет \u{1F600} & more")] {
        let message = to("+34600111222", text, number);
        accepted(&house.fake, &message).await;
        let line = gateway.fakesmsc.says("Got message").await;
        assert!(line.contains("<ACME +34600111222 ") && (number == 2 || line.contains(text)), "{line}");
        let kinds = house.receipts(message.id).await;
        assert!(kinds.contains(&ReceiptKind::Delivered), "{kinds:?}");
    }
    if gateway.smsc.is_some() {
        through_smpp(&mut house, &mut gateway).await;
    }
}

/// What only an SMSC can tell: failures, and what a long text becomes.
async fn through_smpp(house: &mut House, gateway: &mut Gateway) {
    let smsc = gateway.smsc.as_mut().unwrap();
    let long = to("+34600111222", &"long text. ".repeat(40), 3);
    accepted(&house.smpp, &long).await;
    let mut read = String::new();
    for _ in 0..3 {
        let seen: serde_json::Value = serde_json::from_str(&smsc.says("submit_sm").await).unwrap();
        assert!(seen["udh"].is_array() && seen["destination"] == json!([1, 1, "34600111222"]), "{seen}");
        read.push_str(seen["text"].as_str().unwrap());
    }
    assert_eq!(Some(read), long.request.text, "in as many parts as are counted: 440 septets in parts of 153");
    let kinds = house.receipts(long.id).await;
    assert!(kinds.contains(&ReceiptKind::Delivered), "{kinds:?}");

    for (number, tail, code) in [("+34600111005", 4, FailureCode::Undeliverable), ("+34600111000", 5, FailureCode::InvalidRecipient)] {
        let message = to(number, "x", tail);
        accepted(&house.smpp, &message).await;
        let kinds = house.receipts(message.id).await;
        let Some(ReceiptKind::Failed(failure)) = kinds.last() else { panic!("{kinds:?}") };
        assert_eq!(failure.code, code, "{failure:?}");
    }
    for (text, answer, tail) in
        [("reply Sí, {mañana}", "Sí, {mañana}", 6), ("reply Привет €", "Привет €", 7), ("reply long uno dos tres", "uno dos tres", 8)]
    {
        accepted(&house.smpp, &to("+34600111222", text, tail)).await;
        let inbound = house.inbound().await;
        assert_eq!((inbound.from.as_str(), inbound.text.as_str()), ("+34600111222", answer));
    }
}
