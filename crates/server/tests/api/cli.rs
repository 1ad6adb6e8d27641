//! The command line with a node.

use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nuncio_domain::Environment;
use nuncio_testkit::{Receiver, TestApp};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::Command;
use tokio::time::timeout;

/// Result of a command.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

impl Ran {
    pub(crate) fn json(&self) -> Value {
        serde_json::from_str(&self.out).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }

    /// Fails unless the command ended with this code.
    pub(crate) fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "{self:?}");
        self
    }
}

/// A terminal with a home folder, and a listening node.
pub(crate) struct Terminal {
    pub(crate) home: tempfile::TempDir,
    pub(crate) server: SocketAddr,
}

impl Terminal {
    pub(crate) async fn beside(app: &TestApp) -> Self {
        Self { home: tempfile::tempdir().expect("a folder"), server: app.listen().await }
    }

    pub(crate) fn command(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nuncio"));
        command.args(arguments).current_dir(self.home.path()).env_clear().env("HOME", self.home.path());
        command.env("NUNCIO_SERVER", format!("http://{}", self.server)).stdin(Stdio::null()).kill_on_drop(true);
        command
    }

    async fn run(&self, arguments: &[&str], input: &str) -> Ran {
        let mut child =
            self.command(arguments).stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().expect("it runs");
        let mut stdin = child.stdin.take().expect("a pipe");
        // A command that does not read its input may have ended.
        let _ = stdin.write_all(input.as_bytes()).await;
        drop(stdin);
        let output = child.wait_with_output().await.expect("it ends");
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).expect("text");
        Ran { code: output.status.code().unwrap_or(-1), out: text(output.stdout), err: text(output.stderr) }
    }

    /// Runs a command that writes to `output`.
    async fn run_into(&self, arguments: &[&str], output: impl Into<Stdio>) -> Ran {
        let child = self.command(arguments).stdout(output).stderr(Stdio::piped()).spawn().expect("it runs");
        let ended = child.wait_with_output().await.expect("it ends");
        Ran { code: ended.status.code().unwrap_or(-1), out: String::new(), err: String::from_utf8(ended.stderr).expect("text") }
    }

    pub(crate) async fn type_in(&self, arguments: &[&str]) -> Ran {
        self.run(arguments, "").await
    }

    pub(crate) async fn login(&self, key: &str) {
        self.run(&["login"], key).await.expect(0);
    }
}

#[tokio::test]
async fn quickstart_says_how_to_send_from_where_it_was_started() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    for (data, variable, place, names_key) in [
        ("elsewhere", None, "Send the next one yourself:", true),
        ("nuncio-data", None, "yourself, from this folder:", false),
        ("nuncio-data", Some("NUNCIO_API_KEY"), "Send the next one yourself:", true),
        ("nuncio-data", Some("NUNCIO_PROFILE"), "Send the next one yourself:", true),
    ] {
        let mut command = terminal.command(&["quickstart", "--exit", "--listen", "127.0.0.1:0", "--data", data]);
        let ran = command.env_remove("NUNCIO_SERVER").envs(variable.map(|name| (name, "x"))).output().await.expect("it ends");
        let out = String::from_utf8_lossy(&ran.stdout);
        let after = |start: &str| out.split_once(start).unwrap_or_else(|| panic!("{start:?} is missing: {ran:?}")).1;
        let (key, base) = (after("test key  ").lines().next().expect("a key"), after("running at ").split(' ').next().expect("a URL"));
        let key = if names_key { format!("NUNCIO_API_KEY={key} ") } else { String::new() };
        let program = env!("CARGO_BIN_EXE_nuncio");
        let server = if names_key { format!(" --server {base}") } else { String::new() };
        let hint = format!("\n\n  {key}{program} send +34600111222 'Hello again' --env test{server}\n");
        assert!(after(place).starts_with(&hint), "{hint}: {ran:?}");
    }
    assert!(!terminal.home.path().join("nuncio-data/address").exists(), "nothing listens any more");
}

#[tokio::test]
async fn the_server_of_this_folder_is_found_on_any_port() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    // The profile of another server does not take over.
    terminal.login(&app.test_key).await;
    let mut serving = terminal.command(&["quickstart", "--listen", "127.0.0.1:0"]).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(serving.stdout.take().expect("a pipe")).lines();
    while !lines.next_line().await.expect("a line").expect("it goes on").starts_with("Send the next one yourself") {}
    let send = async |more: &[&str]| {
        let arguments = [&["send", "+34600111222", "hi", "--env", "test", "--wait", "0"], more].concat();
        let sent = terminal.command(&arguments).env_remove("NUNCIO_SERVER").output().await.expect("it ends");
        (sent.status.success(), String::from_utf8_lossy(&sent.stderr).into_owned())
    };
    let sent = async || app.get("/v1/messages").await.expect(200).json()["items"].as_array().map(Vec::len);
    assert!(send(&[]).await.0);
    assert_eq!(sent().await, Some(0), "it went to the server of this folder");
    assert!(send(&["--profile", "default"]).await.0);
    assert_eq!(sent().await, Some(1));
    let address = std::fs::read_to_string(terminal.home.path().join("nuncio-data/address")).expect("an address");
    assert!(send(&["--server", &format!("http://{address}")]).await.0, "its keys are for this address, too");
    std::fs::write(terminal.home.path().join("nuncio-data/quickstart.json"), "{").expect("damaged");
    let (_, damaged) = send(&[]).await;
    assert_eq!(damaged, "nuncio: nuncio-data/quickstart.json is damaged; delete this file: `nuncio quickstart` makes new keys\n");
    serving.kill().await.expect("it ends");
}

#[tokio::test]
async fn urls_that_lead_to_no_node_say_what_is_right() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    let server = terminal.server.to_string();
    for (url, said) in [
        (server.clone(), "must be a URL such as http://127.0.0.1:8025"),
        ("localhost:8025".to_owned(), "must be a URL such as http://127.0.0.1:8025"),
        (format!("http://{server}/v1"), "must be the URL of the node, such as http://127.0.0.1:8025, without /v1"),
    ] {
        for command in ["login", "senders list"] {
            let arguments: Vec<&str> = command.split(' ').chain(["--server", &url]).collect();
            let refused = terminal.type_in(&arguments).await.expect(2);
            assert!(refused.err.contains(said), "{command} {url}: {refused:?}");
        }
        let mut command = terminal.command(&["senders", "list"]);
        let refused = command.env("NUNCIO_SERVER", &url).env("NUNCIO_API_KEY", &app.test_key).output().await.expect("it ends");
        assert!(String::from_utf8_lossy(&refused.stderr).contains(said), "{url}: {refused:?}");
    }
    let forward = terminal.type_in(&["listen", "--forward", &server, "--key", &app.test_key]).await.expect(2);
    assert!(forward.err.contains("must be a URL such as http://127.0.0.1:8025"), "{forward:?}");
    let no_tls = terminal.type_in(&["messages", "list", "--server", &format!("https://{server}"), "--key", &app.test_key]).await.expect(3);
    assert!(no_tls.err.contains("cannot be reached: it does not speak TLS; use http://"), "{no_tls:?}");
    std::fs::create_dir(terminal.home.path().join("nuncio-data")).expect("a folder");
    std::fs::write(terminal.home.path().join("nuncio-data/address"), "127.0.0.1:1").expect("a file");
    let usual = ["messages", "list", "--server", "http://127.0.0.1:8025", "--key", &app.test_key];
    let elsewhere = terminal.type_in(&usual).await;
    let advice = "; the server of this folder is elsewhere: add `--server http://127.0.0.1:1`";
    assert!(elsewhere.code != 3 || elsewhere.err.contains(advice), "unless something listens on the usual port: {elsewhere:?}");
}

#[tokio::test]
async fn quickstart_replaces_revoked_keys_and_outlives_its_message() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    let quickstart = ["quickstart", "--exit", "--listen", "127.0.0.1:0"];
    let keys = |ran: &Ran| {
        let after = |start: &str| ran.out.split_once(start).and_then(|(_, rest)| rest.lines().next()).expect("a key").to_owned();
        (after("live key  "), after("test key  "))
    };
    let first = keys(&terminal.type_in(&quickstart).await.expect(0));
    assert_eq!(keys(&terminal.type_in(&quickstart).await.expect(0)), first, "they are kept");
    let live = terminal.type_in(&["keys", "list", "--env", "live", "--json"]).await.expect(0).json();
    terminal.type_in(&["keys", "revoke", live[0]["id"].as_str().expect("an id")]).await.expect(0);
    let second = keys(&terminal.type_in(&quickstart).await.expect(0));
    assert!(second.0 != first.0 && second.1 == first.1, "only the revoked one is replaced");

    terminal.type_in(&["storage", "limit", "1", "--env", "test"]).await.expect(0);
    let refused = terminal.type_in(&quickstart).await.expect(1);
    assert!(refused.err.contains("the first message was not delivered: ") && refused.err.contains("507"), "{refused:?}");
    let mut serving = terminal.command(&quickstart[..1]).args(&quickstart[2..]).stderr(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(serving.stderr.take().expect("a pipe")).lines();
    while lines.next_line().await.expect("a line").expect("it goes on") != "The server continues to run." {}
    let mut audit = terminal.command(&["audit", "list", "--env", "live"]);
    let audit = audit.env_remove("NUNCIO_SERVER").output().await.expect("it ends");
    let audit = String::from_utf8_lossy(&audit.stdout);
    assert!(audit.lines().filter(|line| line.contains("api_key") && line.contains("command line")).count() >= 2, "{audit}");
    serving.kill().await.expect("it ends");
}

// holds: cli.login
#[tokio::test]
async fn keys_are_kept_for_their_owner_alone() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    let refused = terminal.type_in(&["messages", "list"]).await.expect(1);
    assert!(refused.err.contains("there is no API key"), "{refused:?}");
    let refused = terminal.run(&["login"], "svc_test_nonsense").await.expect(1);
    assert!(refused.err.contains("is not an API key"), "{refused:?}");
    let said = terminal.run(&["login"], &format!("{}\n", app.test_key)).await.expect(0);
    assert!(said.out.starts_with("profile default: the test environment of project "), "{said:?}");

    let file = terminal.home.path().join(".config/nuncio/profiles.toml");
    assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600);
    terminal.type_in(&["send", "+34600111222", "hi", "--wait", "0"]).await.expect(0);

    // With keys for both environments, lists show both, and sending needs the environment.
    let live = app.key(Environment::Live, &["*"]).await;
    terminal.login(&live).await;
    let refused = terminal.type_in(&["send", "+34600111222", "hi"]).await.expect(1);
    assert!(refused.err.contains("set --env live or --env test"), "{refused:?}");
    assert_eq!(terminal.type_in(&["messages", "list", "--held"]).await.expect(0).out.trim(), "nothing matches these options");
    let listed = terminal.type_in(&["messages", "list"]).await.expect(0);
    assert!(listed.out.starts_with("ENV   ID "), "{listed:?}");

    app.request("DELETE", "/v1/webhook", None).await.expect(404);
    let gone = terminal.type_in(&["logout"]).await.expect(0);
    assert_eq!(gone.out, "profile \"default\" deleted\n");
    let again = terminal.type_in(&["logout"]).await.expect(1);
    assert_eq!(again.err, "nuncio: you are not logged in\n");
    assert!(!std::fs::read_to_string(&file).expect("a file").contains("svc_"), "the keys are gone with it");
}

// holds: cli.send
#[tokio::test]
async fn a_message_is_sent_watched_and_shown() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;

    let plan = terminal.type_in(&["send", "+34600111222", "Zürich ąę", "--dry-run"]).await.expect(0);
    assert!(plan.out.contains("segments:  1 (ucs2, because of \"ą\")"), "{plan:?}");
    assert_eq!(terminal.type_in(&["messages", "list", "--json"]).await.expect(0).json(), json!([]), "a dry run sends nothing");

    let send = ["send", "+34600111222", "-", "--wait", "0", "--json", "--idempotency-key", "k-1", "--metadata", "order=17"];
    let sent = terminal.run(&send, "Hello\nyou\n").await.expect(0).json();
    assert_eq!((&sent["text"], &sent["metadata"]), (&json!("Hello\nyou"), &json!({"order": "17"})), "{sent}");
    let again = terminal.run(&send, "Hello\nyou\n").await.expect(0).json();
    assert_eq!(again["id"], sent["id"], "the same key is the same message");
    let other = terminal.run(&send, "Another text").await.expect(1);
    let which = format!("for a different request; here is the message it created: {}, ", sent["id"].as_str().expect("an id"));
    assert!(other.err.contains(&which), "{other:?}");
    app.drain().await;

    let id = sent["id"].as_str().expect("an id");
    let followed = terminal.type_in(&["messages", "follow", id]).await.expect(0);
    assert!(followed.out.starts_with(&format!("{id}  sms to +34600111222  (test)\n")), "{followed:?}");
    assert!(followed.out.contains("attempt: sms by sim") && followed.out.contains("  delivered\n"), "{followed:?}");
    let shown = terminal.type_in(&["messages", "show", id]).await.expect(0);
    assert!(shown.out.starts_with(&format!("{id}  delivered  sms to +34600111222  (test)\n")), "{shown:?}");
    assert!(shown.out.contains("  text          Hello\n                you\n"), "{shown:?}");

    let failing = terminal.type_in(&["send", "+15005550001", "hi", "--wait", "0", "--json"]).await.expect(0).json();
    app.drain().await;
    let failed = terminal.type_in(&["messages", "follow", failing["id"].as_str().expect("an id")]).await.expect(1);
    assert!(failed.out.contains("failed: invalid_recipient"), "{failed:?}");
    let bounced = app.send_message(json!({"to": "+15005550002", "channel": "sms", "text": "x"})).await;
    app.drain().await;
    let followed = terminal.type_in(&["messages", "follow", &bounced]).await.expect(1);
    let at = |words: &str| followed.out.find(words).unwrap_or_else(|| panic!("{words}: {followed:?}"));
    assert!(at("sent: the provider accepted it") < at("attempt failed, by its receipt: sms by sim: undeliverable"), "{followed:?}");
    let later = app.send_message(json!({"to": "+34600111222", "text": "x", "scheduledAt": "2026-01-02T00:00:00Z"})).await;
    app.post(&format!("/v1/messages/{later}/cancel"), json!({})).await.expect(200);
    terminal.type_in(&["messages", "follow", &later]).await.expect(1);

    let refused = terminal.type_in(&["send", "nonsense", "hi"]).await.expect(1);
    assert!(refused.err.starts_with("nuncio: to: "), "{refused:?}");
    let refused = terminal.type_in(&["messages", "show", "msg_x"]).await.expect(1);
    assert!(refused.err.contains("not found"), "{refused:?}");
    let elsewhere = ["send", "+34600111222", "hi", "--server", "http://127.0.0.1:1"];
    let refused = terminal.type_in(&elsewhere).await.expect(1);
    let keys_are_for =
        format!("nuncio: the keys of profile \"default\" are for http://{}/; give a key of this server with --key ", terminal.server);
    assert!(refused.err.starts_with(&keys_are_for), "another server must not learn them: {refused:?}");
    let with_profile = terminal.type_in(&[&elsewhere[..], &["--profile", "default"]].concat()).await.expect(3);
    assert!(with_profile.err.contains("cannot be reached"), "{with_profile:?}");
    terminal.type_in(&["messages", "list", "--server", "http://127.0.0.1:1", "--key", &app.test_key]).await.expect(3);
    let alone = terminal.type_in(&[&elsewhere[..], &["--key", &app.test_key]].concat()).await.expect(3);
    assert!(alone.err.starts_with("nuncio: http://127.0.0.1:1/ cannot be reached: "), "the cause comes first: {alone:?}");
    assert!(alone.err.contains("; to try again without sending twice, add --idempotency-key "), "{alone:?}");
    let lacking = terminal.type_in(&["send"]).await.expect(2);
    assert!(lacking.err.contains("Usage: nuncio send <TO> [TEXT]\n"), "what the environment sets is not required: {lacking:?}");
    let typo = terminal.type_in(&["mesages", "list"]).await.expect(2);
    assert!(typo.err.contains("similar subcommands exist") && typo.err.contains("'messages'"), "{typo:?}");
}

// holds: cli.send
#[tokio::test]
async fn a_message_under_way_has_an_exit_code_of_its_own() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    let scheduled = terminal.type_in(&["send", "+34600111222", "later", "--at", "2026-01-20T00:00:00Z"]).await.expect(0);
    assert!(scheduled.out.contains("  will be sent at 2026-01-20T00:00:00.000Z; `nuncio messages follow msg_"), "{scheduled:?}");
    // Needs two attempts; no clock leads to the second one.
    let queued = terminal.type_in(&["send", "+12125550003", "now", "--wait", "1"]).await.expect(4);
    assert!(queued.out.contains("still "), "{queued:?}");
    // The sandbox reports nothing more about this recipient.
    let send = async |wait: &str| terminal.type_in(&["send", "+12125550005", "hi", "--idempotency-key", "k-5", "--wait", wait]).await;
    send("0").await.expect(0);
    app.drain().await;
    let sent = send("1").await.expect(0);
    assert!(sent.out.contains("\n  sent; no receipt yet, `nuncio messages follow msg_"), "{sent:?}");
}

#[tokio::test]
async fn a_server_whose_log_nobody_reads_goes_on() {
    let home = tempfile::tempdir().expect("a folder");
    let mut command = Command::new(env!("CARGO_BIN_EXE_nuncio"));
    command.args(["serve", "--listen", "127.0.0.1:0", "--data", "data"]).current_dir(home.path()).env_clear();
    // At this level, statements of the database are logged.
    command.env("NUNCIO__LOG__LEVEL", "debug").stdin(Stdio::null()).stderr(Stdio::piped()).kill_on_drop(true);
    let mut serving = command.spawn().expect("it runs");
    let mut log = BufReader::new(serving.stderr.take().expect("a pipe")).lines();
    let server = loop {
        let line = log.next_line().await.expect("a line").expect("it goes on");
        if let Some(server) = line.strip_prefix("nuncio listens on http://") {
            break server.to_owned();
        }
    };
    drop(log);
    let mut client = TcpStream::connect(&server).await.expect("a connection");
    client.write_all(b"GET /readyz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await.expect("written");
    let mut answer = String::new();
    client.read_to_string(&mut answer).await.expect("an answer");
    assert!(answer.starts_with("HTTP/1.1 200"), "{answer}");
    let process = serving.id().and_then(|id| rustix::process::Pid::from_raw(id as i32)).expect("it runs");
    rustix::process::kill_process(process, rustix::process::Signal::TERM).expect("a signal");
    let ended = timeout(Duration::from_secs(60), serving.wait()).await.expect("in time").expect("it ends");
    assert!(ended.success(), "{ended}");
}

#[tokio::test]
async fn output_that_is_lost_is_a_failure_unless_nobody_reads_it() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    let create = ["broadcasts", "create", "--name", "spring", "--channel", "sms", "--text", "hello", "--json"];
    let draft = terminal.type_in(&create).await.expect(0).json();
    let results = ["broadcasts", "results", draft["id"].as_str().expect("an id")];
    for arguments in [&["keys", "list", "--json"][..], &["contacts", "export"], &results] {
        let full = std::fs::File::options().write(true).open("/dev/full").expect("a full disk");
        let lost = terminal.run_into(arguments, full).await.expect(1);
        assert!(lost.err.starts_with("nuncio: standard output: No space left on device"), "{lost:?}");
        let (reader, unread) = std::io::pipe().expect("a pipe");
        drop(reader);
        assert_eq!(terminal.run_into(arguments, unread).await.expect(0).err, "", "{arguments:?}");
    }
}

#[tokio::test]
async fn variables_without_a_value_are_not_set() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    for name in ["NUNCIO_PROFILE", "NUNCIO_SERVER", "NUNCIO_API_KEY"] {
        let listed = terminal.command(&["messages", "list"]).env(name, "").output().await.expect("it ends");
        assert!(listed.status.success(), "{name}: {listed:?}");
    }
}

/// Answers the next request with a status and a body, and closes the connection. Returns what was asked.
async fn answer(listener: &TcpListener, status: &str, body: &str) -> String {
    let (mut stream, _) = timeout(Duration::from_secs(30), listener.accept()).await.expect("a request in time").expect("a connection");
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        head.push(stream.read_u8().await.expect("a request"));
    }
    let answer = format!("HTTP/1.1 {status}\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n{body}");
    stream.write_all(answer.as_bytes()).await.expect("an answer");
    String::from_utf8(head).expect("text")
}

// holds: cli.listen
#[tokio::test]
async fn a_stream_that_breaks_before_its_first_event_is_resumed() {
    let app = TestApp::start().await;
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let server = listener.local_addr().expect("an address");
    let terminal = Terminal { home: tempfile::tempdir().expect("a folder"), server };
    let arguments = ["events", "follow", "--json", "--key", &app.test_key];
    let mut child = terminal.command(&arguments).stdout(Stdio::piped()).spawn().expect("it runs");
    answer(&listener, "200 OK", "id: 7\n\n").await;
    answer(&listener, "429 Too Many Requests", "").await;
    let resumed = answer(&listener, "200 OK", "id: 8\ndata: {\"a\":1}\n\n").await;
    assert!(resumed.to_lowercase().contains("\r\nlast-event-id: 7\r\n"), "{resumed}");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    assert_eq!(lines.next_line().await.expect("a line").as_deref(), Some("{\"a\":1}"));
    child.kill().await.expect("it ends");
}

// holds: cli.listen
#[tokio::test]
async fn a_program_on_this_machine_gets_events_as_its_webhook_would() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    terminal.type_in(&["send", "+34600111222", "hi", "--wait", "0"]).await.expect(0);
    app.drain().await;
    let receiver = Receiver::start().await;
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let arguments = ["listen", "--forward", &receiver.url, "--replay", "1", "--type", "message.delivered", "--secret", secret, "--json"];
    let mut child = terminal.command(&arguments).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let told = loop {
        let line = lines.next_line().await.expect("a line").expect("it goes on");
        let line: Value = serde_json::from_str(&line).expect("JSON");
        if line["event"]["type"] == "message.delivered" {
            break line;
        }
    };
    child.kill().await.expect("it ends");
    assert!(told["status"].as_u64().is_some_and(|status| status / 100 == 2) && told["error"].is_null(), "{told}");
    let request = &receiver.got()[0];
    assert_eq!(request.json()["data"]["message"]["status"], "delivered");
    let verifier = standardwebhooks::Webhook::new(secret).expect("a secret");
    verifier.verify(&request.bytes, &request.headers).expect("it is signed");
    let inbound = r#"{"channel": "sms", "from": "+34600111223", "text": "Where is it?"}"#;
    terminal.type_in(&["api", "POST", "/v1/sandbox/inbound", inbound]).await.expect(0);
    app.drain().await;
    let arguments = ["listen", "--forward", &receiver.url, "--replay", "1", "--type", "message.inbound"];
    let mut child = terminal.command(&arguments).stdout(Stdio::piped()).spawn().expect("it runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    while !lines.next_line().await.expect("a line").expect("it goes on").contains("  sms  from +34600111223  →  2") {}
    child.kill().await.expect("it ends");
    terminal.type_in(&["listen", "--forward", "ftp://example.org"]).await.expect(2);
    let refused = terminal.type_in(&["listen", "--forward", &receiver.url, "--secret", "x"]).await.expect(1);
    assert!(refused.err.contains("--secret: must be whsec_"), "{refused:?}");
}

// holds: cli.broadcasts
#[tokio::test]
async fn a_broadcast_goes_from_a_file_to_its_results() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    let create = ["broadcasts", "create", "--name", "spring", "--channel", "sms", "--text", "Hello {{name}}, it is Acme", "--json"];
    let draft = terminal.type_in(&create).await.expect(0).json();
    let id = draft["id"].as_str().expect("an id");
    std::fs::write(terminal.home.path().join("people.csv"), "phone,name\n600 111 222,Ana\n+34600111223,Bo\nnonsense,Cy\n").expect("a file");
    let said = terminal.type_in(&["broadcasts", "import", id, "people.csv", "--countries", "ES"]).await.expect(1);
    assert!(said.out.starts_with("3 rows: 2 added, 0 duplicates, 1 invalid.") && said.out.contains("\nline 4: "), "{said:?}");
    let again = terminal.type_in(&["broadcasts", "import", id, "people.csv", "--countries", "ES"]).await.expect(1);
    assert!(again.out.starts_with("This file was imported before; nothing was added. In all: 3 rows"), "{again:?}");
    assert!(again.out.contains("\n1 rejected rows were shown by an earlier import; import a file with these corrected\n"), "{again:?}");
    std::fs::write(terminal.home.path().join("good.csv"), "phone,name\n+34600111223,Bo\n").expect("a file");
    let good = terminal.type_in(&["broadcasts", "import", id, "good.csv", "--json"]).await.expect(0).json();
    assert_eq!((&good["duplicates"], &good["errors"]), (&json!(1), &json!([])), "{good}");
    let unnamed = terminal.type_in(&["broadcasts", "import", id, "people.csv", "--recipient", "mobile"]).await.expect(1);
    assert!(unnamed.err.starts_with("nuncio: recipient: the file has no column \"mobile\""), "named like the option: {unnamed:?}");
    std::fs::create_dir(terminal.home.path().join("folder")).expect("a folder");
    let folder = terminal.type_in(&["broadcasts", "import", id, "folder"]).await.expect(1);
    assert!(folder.err.starts_with("nuncio: folder: "), "{folder:?}");
    let otherwise = terminal.type_in(&["broadcasts", "import", id, "people.csv"]).await.expect(1);
    assert!(
        otherwise.out.starts_with("3 rows: 0 added, 1 duplicates, 2 invalid."),
        "without a country it is another import: {otherwise:?}"
    );
    let preview = terminal.type_in(&["broadcasts", "preview", id, "--json"]).await.expect(0).json();
    assert_eq!(preview["text"], "Hello Ana, it is Acme");
    let estimate = terminal.type_in(&["broadcasts", "estimate", id]).await.expect(0);
    assert!(estimate.out.contains("recipients: 2"), "{estimate:?}");
    terminal.type_in(&["broadcasts", "send", id]).await.expect(0);
    app.drain().await;
    terminal.type_in(&["broadcasts", "follow", id]).await.expect(0);
    let results = terminal.type_in(&["broadcasts", "results", id]).await.expect(0);
    assert_eq!(results.out.matches(",delivered,").count(), 2, "{results:?}");
    let results = terminal.type_in(&["broadcasts", "results", id, "--json"]).await.expect(0);
    assert!(results.out.lines().all(|line| serde_json::from_str::<Value>(line).is_ok()), "{results:?}");
    let listed = terminal.type_in(&["broadcasts", "list"]).await.expect(0);
    assert!(listed.out.contains("completed"), "{listed:?}");

    let text = "URGENT: your bank account is locked. Verify your password now at http://bit.ly/3xYz or lose access!!!";
    let create = ["broadcasts", "create", "--name", "bank", "--channel", "sms", "--text", text, "--json"];
    let bad = terminal.type_in(&create).await.expect(0).json();
    let id = bad["id"].as_str().expect("an id");
    terminal.type_in(&["broadcasts", "import", id, "people.csv", "--countries", "ES"]).await.expect(1);
    terminal.type_in(&["broadcasts", "send", id]).await.expect(0);
    app.drain().await;
    let rejected = terminal.type_in(&["broadcasts", "follow", id]).await.expect(1);
    for said in ["\nreview: ", "\nflagged: \"", &format!("`nuncio broadcasts escalate {id}`")] {
        assert!(rejected.out.contains(said), "{said}: {rejected:?}");
    }
}

// holds: cli.resources
#[tokio::test]
async fn the_other_resources_are_made_shown_and_removed() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    let run = async |line: &str| terminal.type_in(&line.split(' ').collect::<Vec<_>>()).await.expect(0);
    let id = |answer: &Ran| answer.json()["id"].as_str().expect("an id").to_owned();

    let ana = id(&run("contacts create --channel sms=+34600111222 --name Ana --json").await);
    let bo = id(&run("contacts create --channel email=bo@example.com --json").await);
    run(&format!("contacts merge {ana} {bo}")).await;
    assert!(run(&format!("contacts show {ana}")).await.out.contains("displayName: Ana"));
    assert!(run("contacts list --phone +34600111222").await.out.contains(&ana));
    run(&format!("contacts delete {ana}")).await;

    let suppressed = id(&run("suppressions add +34600111229 --json").await);
    assert!(run("suppressions list").await.out.contains("+34600111229"));
    run(&format!("suppressions remove {suppressed}")).await;
    assert_eq!(run("suppressions list").await.out, "no suppressions\n");

    let invitation = id(&run("invitations create --client Acme --countries ES,MX --days 3 --json").await);
    assert!(run(&format!("invitations show {invitation}")).await.out.contains("allowedPhoneCountries: [ES, MX]"));
    run(&format!("invitations cancel {invitation}")).await;
    assert!(run("invitations list --status cancelled").await.out.contains("Acme"));

    std::fs::write(terminal.home.path().join("t.json"), r#"{"name": "hello", "language": "en", "body": "Hello {{1}}"}"#).expect("a file");
    let template = id(&run("templates create t.json --json").await);
    assert!(run("templates list").await.out.contains("hello"));
    run(&format!("templates delete {template}")).await;

    assert!(run("webhooks set https://example.com/hooks").await.out.contains("secret: whsec_"));
    assert!(run("webhooks show").await.out.contains("url: https://example.com/hooks"));
    let set = app.store().read().await.expect("a reader").list_webhooks(app.tenant()).await.expect("webhooks");
    assert!(set.len() == 1 && set[0].sender.is_some(), "the default sender's, which hears of messages: {set:?}");
    run("webhooks set https://example.com/own --own --events template.status_changed").await;
    assert!(run("webhooks show --own").await.out.contains("url: https://example.com/own"));
    run("webhooks remove --own").await;
    assert!(run("webhooks show").await.out.contains("url: https://example.com/hooks"));
    run("webhooks remove").await;
    assert_eq!(run("webhooks show").await.out, "no webhook in test; `nuncio webhooks set URL` sets one\n");
    let refused = terminal.type_in(&["webhooks", "test"]).await.expect(1);
    assert_eq!(refused.err, "nuncio: there is no webhook; `nuncio webhooks set URL` sets one\n");
    assert!(run("events list --json").await.out.starts_with('['));
    assert_eq!(run("api GET /v1/me").await.json()["isTestMode"], true);
    let made = terminal.run(&["api", "POST", "/v1/messages", "-"], r#"{"to": "+34600111222", "text": "hi"}"#).await.expect(0).json();
    assert_eq!(made["message"]["to"], "+34600111222", "as it was answered: {made}");
}

#[tokio::test]
async fn settings_are_shown_without_their_secrets() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    let file = "[dashboard.oidc]\nissuer = \"https://accounts.example.org\"\nclient_id = \"nuncio\"\nclient_secret = \"hush\"\n\n\
                [review]\nurl = \"https://review.example.org\"\ntoken = \"hush\"\n";
    std::fs::write(terminal.home.path().join("nuncio.toml"), file).expect("a file");
    let shown = terminal.run(&["config", "show"], "").await.expect(0);
    assert!(shown.out.contains("client_secret = \"***\"") && !shown.out.contains("hush"), "{shown:?}");
    for (file, said) in [
        ("[review]\ntoken = [\"hush\"]\n", "review.token: must be a text, not a list"),
        ("[storage]\ndatabase = postgres://nuncio:hush@db/nuncio\n", "nuncio.toml: line 2, column "),
    ] {
        std::fs::write(terminal.home.path().join("nuncio.toml"), file).expect("a file");
        let refused = terminal.type_in(&["config", "check"]).await.expect(1);
        assert!(refused.err.contains(said) && !refused.err.contains("hush"), "{refused:?}");
    }
}

#[tokio::test]
async fn variables_that_are_no_text_are_refused_only_where_they_are_settings() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    for (name, code, said) in [("OTHER", 0, ""), ("NUNCIO__LOG__LEVEL", 1, "NUNCIO__LOG__LEVEL: is not UTF-8")] {
        let checked = terminal.command(&["config", "check"]).env(name, OsStr::from_bytes(b"\xff")).output().await.expect("it ends");
        let err = String::from_utf8_lossy(&checked.stderr);
        assert!(checked.status.code() == Some(code) && err.contains(said), "{name}: {checked:?}");
    }
}

// holds: cli.init
#[tokio::test]
async fn a_few_questions_lead_to_a_connection_that_was_tried() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    let wrong = terminal.run(&["init"], "nowhere\n\n\n\n").await.expect(1);
    assert!(wrong.out.contains("server.listen: \"nowhere\" is not address:port") && wrong.out.contains("Once more"), "{wrong:?}");
    let file = terminal.home.path().join("nuncio.toml");
    assert!(!file.exists(), "nothing is half-done");

    // The first input lacks the start of a gateway's URL; nothing listens on port 1.
    let secrets = "secret\na-secret-of-20-letters\n";
    let answers = format!(
        "127.0.0.1:8026\n\nmy-data\n\npigeon\nkannel\nsms\nnonsense\nme\n{secrets}\n\
         \n\nhttp://127.0.0.1:2/sendsms\n\n\n\ntimeout_seconds=1\n\nyes\n\n\nhttp://127.0.0.1:1/sendsms\n\n\n\n\nno\n"
    );
    let done = terminal.run(&["init"], &answers).await.expect(0);
    for said in ["\"pigeon\" is not one of instagram, kannel", "This was not saved", "saved kannel for sms", "test: failed: "] {
        assert!(done.out.contains(said), "{said}: {}", done.out);
    }
    assert_eq!(std::fs::metadata(&file).expect("a file").permissions().mode() & 0o777, 0o600, "it can hold a password");
    let written = std::fs::read_to_string(&file).expect("a file");
    assert_eq!(written, "[server]\nlisten = \"127.0.0.1:8026\"\n\n[storage]\ndata = \"my-data\"\n");
    let connections = terminal.type_in(&["connections", "list", "--json"]).await.expect(0).json();
    let settings = json!({"url": "http://127.0.0.1:1/sendsms", "username": "me", "timeout_seconds": "1"});
    for (name, value) in settings.as_object().expect("an object") {
        let kept = &connections[0]["settings"][name];
        assert_eq!(kept.to_string().trim_matches('"'), value.as_str().expect("a text"), "answers are kept: {connections}");
    }
    let again = terminal.run(&["init"], "none\n").await.expect(0);
    assert!(again.out.contains("nuncio.toml exists and stays as it is") && again.out.contains("First connection"), "{again:?}");
    // An optional secret is given like a setting. Anything else is asked for again.
    let answers = "smtp\n127.0.0.1\na@example.org\nport 1\nport = 1\nusername=a\npassword=hush\n\nno\n";
    let mail = terminal.run(&["init"], answers).await.expect(0);
    assert!(mail.out.contains("saved smtp for email") && mail.out.contains("it must have the form name=value"), "{mail:?}");
    let connections = terminal.type_in(&["connections", "list", "--json"]).await.expect(0).out;
    assert!(connections.contains("\"username\"") && !connections.contains("hush"), "{connections}");
}

// holds: cli.projects
#[tokio::test]
async fn projects_are_made_and_named() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    assert_eq!(terminal.type_in(&["projects", "create", "acme"]).await.expect(0).out.split("  ").nth(1), Some("acme\n"));
    let blank = terminal.type_in(&["projects", "create", "  "]).await.expect(1);
    assert!(blank.err.contains("name: has 0 characters"), "{blank:?}");
    terminal.type_in(&["projects", "rename", "Acme Ltd ", "--project", "acme"]).await.expect(0);
    let listed = terminal.type_in(&["projects", "list", "--json"]).await.expect(0).json();
    let names: Vec<_> = listed.as_array().expect("a list").iter().map(|project| &project["name"]).collect();
    assert_eq!(names, ["default", "Acme Ltd"], "the first command made the first one");
    let coloured = terminal.type_in(&["projects", "colour", "#2747C7", "--project", "Acme Ltd"]).await.expect(0);
    assert!(coloured.out.trim_end().ends_with("  Acme Ltd  #2747c7"), "{coloured:?}");
    let listed = terminal.type_in(&["projects", "list", "--json"]).await.expect(0).json();
    assert_eq!((&listed[0]["colour"], &listed[1]["colour"]), (&json!(null), &json!("#2747c7")));
    let refused = terminal.type_in(&["projects", "colour", "red"]).await.expect(1);
    assert!(refused.err.contains("colour: is \"red\"; must be # and six hexadecimal digits, such as #2747c7"), "{refused:?}");
    terminal.type_in(&["projects", "colour", "none", "--project", "Acme Ltd"]).await.expect(0);
    assert_eq!(terminal.type_in(&["projects", "list", "--json"]).await.expect(0).json()[1]["colour"], json!(null));
    let refused = terminal.type_in(&["projects", "create", "a\nb"]).await.expect(1);
    assert!(refused.err.contains("name: "), "{refused:?}");
}

// holds: cli.help
#[tokio::test]
async fn every_command_says_what_it_takes() {
    let mut pages = Vec::new();
    help(&nuncio::cli::command(), "nuncio", &mut pages);
    insta::assert_snapshot!(pages.join("\n\n"));
}

/// Collects the help of a command and its subcommands.
fn help(command: &clap::Command, name: &str, pages: &mut Vec<String>) {
    let mut command = command.clone().bin_name(name).term_width(100);
    command.build();
    let page = command.render_help().to_string();
    pages.push(format!("## {name}\n\n{}", page.lines().map(str::trim_end).collect::<Vec<_>>().join("\n")));
    for below in command.get_subcommands().filter(|below| below.get_name() != "help") {
        help(below, &format!("{name} {}", below.get_name()), pages);
    }
}

// holds: cli.help
#[tokio::test]
async fn completions_and_manual_pages_are_made() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    for shell in ["bash", "zsh", "fish"] {
        assert!(terminal.type_in(&["completions", shell]).await.expect(0).out.contains("broadcasts"), "{shell}");
    }
    terminal.type_in(&["man", "pages"]).await.expect(0);
    let page = |name: &str| std::fs::read_to_string(Path::new(terminal.home.path()).join("pages").join(name)).expect("a page");
    assert!(page("nuncio-send.1").contains("idempotency"));
    assert!(page("nuncio.1").contains("Exit codes"));
}
