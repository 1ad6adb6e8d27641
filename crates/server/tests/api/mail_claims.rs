//! Claims of inbound addresses: an address belongs to whoever proves ownership, not to whoever names it first.

use std::time::Duration;

use nuncio::admin::{Command, NewThrottle, Request, run};
use nuncio::config::EmailConfig;
use nuncio_domain::config::Project;
use nuncio_domain::{Environment, Permissions};
use nuncio_testkit::Backend;
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::email::{House, TAKEN, relay};

const ADDRESS: &str = "support@victim.example";
const LETTER: &str = "From: ada@other.example\nMessage-ID: <1@other.example>\n\nhello\n";

/// A mail server that passes on received emails with their envelopes.
async fn catching_relay() -> (u16, UnboundedReceiver<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let port = listener.local_addr().expect("its address").port();
    let (sender, caught) = unbounded_channel();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let sender = sender.clone();
            tokio::spawn(async move {
                let mail = converse(BufReader::new(stream)).await;
                sender.send(mail.unwrap_or_default())
            });
        }
    });
    (port, caught)
}

async fn converse(mut stream: BufReader<TcpStream>) -> std::io::Result<String> {
    let mut mail = String::new();
    stream.get_mut().write_all(b"220 relay\r\n").await?;
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        mail.push_str(&line);
        let answer = if line.starts_with("DATA") { "354 go\r\n" } else { "250 ok\r\n" };
        stream.get_mut().write_all(answer.as_bytes()).await?;
        while line.starts_with("DATA") && !mail.ends_with("\r\n.\r\n") {
            stream.read_line(&mut mail).await?;
        }
        if line.starts_with("DATA") {
            stream.get_mut().write_all(b"250 ok\r\n").await?;
            return Ok(mail);
        }
    }
}

/// Returns the code in an email.
fn code_in(mail: &str) -> String {
    let body = mail.split("\r\n\r\n").nth(1).expect("a body");
    body.split_whitespace().next().expect("a code").to_owned()
}

/// A project's live environment, as a caller with a key sees it.
struct Tenant {
    project: Project,
    key: String,
    sender: String,
}

struct Town {
    house: House,
    /// The tenant that sets the address up first, without owning it, and the owner.
    first: Tenant,
    owner: Tenant,
}

impl Town {
    async fn open(backend: Backend, config: EmailConfig) -> Self {
        let house = House::with(backend, relay().await, config).await;
        let first = Tenant { project: house.app.project.clone(), key: house.app.live_key.clone(), sender: String::new() };
        let core = &house.app.node.core;
        let project = core.projects().create("owner", None).await.expect("a project");
        let key = core.keys().create(project.live, Environment::Live, "owner", Permissions::ALL, None).await.expect("a key");
        let owner = Tenant { project, key: key.secret.expose().clone(), sender: String::new() };
        let mut town = Self { house, first, owner };
        let sender = town.new_sender(&town.first).await;
        town.first.sender = sender;
        let sender = town.new_sender(&town.owner).await;
        town.owner.sender = sender;
        town
    }

    async fn call(&self, of: &Tenant, method: &str, path: &str, body: Option<Value>) -> (u16, Value) {
        let answer = self.house.app.with_key(&of.key, method, path, body).await;
        (answer.status.as_u16(), answer.json())
    }

    async fn new_sender(&self, of: &Tenant) -> String {
        let (status, made) = self.call(of, "POST", "/v1/senders", Some(json!({"name": "Desk", "emailReceivingEnabled": true}))).await;
        assert_eq!(status, 201, "{made}");
        made["id"].as_str().expect("an id").to_owned()
    }

    /// Sets up an email connection with the API.
    async fn put(&self, of: &Tenant, sender: &str, from: &str) -> (u16, Value) {
        let settings = json!({"host": "192.0.2.1", "from": from});
        let path = format!("/v1/senders/{sender}/channels/email");
        self.call(of, "PUT", &path, Some(json!({"kind": "smtp", "settings": settings}))).await
    }

    async fn ask_for_code(&self, of: &Tenant) -> (u16, Value) {
        self.call(of, "POST", &format!("/v1/senders/{}/channels/email/verification", of.sender), None).await
    }

    async fn enter(&self, of: &Tenant, code: &str) -> (u16, Value) {
        self.call(of, "POST", &format!("/v1/senders/{}/channels/email/verify", of.sender), Some(json!({"code": code}))).await
    }

    /// Returns the state of the inbound address, which both views must agree on.
    async fn state(&self, of: &Tenant) -> String {
        let (_, connection) = self.call(of, "GET", &format!("/v1/senders/{}/channels/email", of.sender), None).await;
        let (_, sender) = self.call(of, "GET", &format!("/v1/senders/{}", of.sender), None).await;
        assert_eq!(connection["inboundAddress"], sender["connections"][0]["inboundAddress"]);
        connection["inboundAddress"]["status"].as_str().unwrap_or("none").to_owned()
    }

    async fn received(&self, of: &Tenant) -> usize {
        let (_, page) = self.call(of, "GET", "/v1/messages", None).await;
        page["items"].as_array().expect("a page").len()
    }

    async fn command(&self, project: &Project, command: Command) -> Result<Value, String> {
        let request = Request { project: Some(project.id.to_string()), command };
        run(&self.house.app.node.core, request).await.map(|answer| answer.json).map_err(|error| error.to_string())
    }

    async fn give(&self, domain: &str, to: &Tenant) -> Result<Value, String> {
        self.command(&to.project, Command::DomainsAdd { domain: domain.to_owned() }).await
    }
}

// holds: senders.channels.inbound, senders.channels.inbound.taken
#[tokio::test]
async fn naming_an_address_is_no_claim() {
    for backend in Backend::all() {
        let town = Town::open(backend, EmailConfig::default()).await;
        let (first, owner) = (&town.first, &town.owner);
        let (status, made) = town.put(first, &first.sender, &format!("Support <{ADDRESS}>")).await;
        assert_eq!((status, &made["inboundAddress"]), (201, &json!({"address": ADDRESS, "status": "pending"})), "{made}");
        assert_eq!(town.state(first).await, "pending");
        town.house.app.node.core.senders().claim_mailboxes().await.expect("a start of the server changes nothing");
        assert!(town.house.bring("ada@other.example", ADDRESS, LETTER).await.starts_with("550 5.1.1"));

        // A domain is assigned exactly, and the first environment learns that it is too late.
        town.give("mail.victim.example", first).await.expect("given");
        town.give("Victim.Example", owner).await.expect("given");
        assert_eq!(town.state(first).await, "pending");
        let (status, made) = town.put(owner, &owner.sender, ADDRESS).await;
        assert_eq!((status, &made["inboundAddress"]["status"]), (201, &json!("verified")), "{made}");
        assert_eq!(town.house.bring("ada@other.example", ADDRESS, LETTER).await, TAKEN);
        assert_eq!((town.received(first).await, town.received(owner).await), (0, 1));
        assert_eq!(town.house.bring("ada@other.example", ADDRESS, LETTER).await, TAKEN, "it came again");
        assert_eq!(town.received(owner).await, 1);
        // Whoever has seen or guessed a Message-ID cannot hide the email that it belongs to.
        for (other, received) in [(LETTER.replace("ada@", "eve@"), 2), (LETTER.replace("hello", "bye"), 3)] {
            assert_eq!(town.house.bring("ada@other.example", ADDRESS, &other).await, TAKEN);
            assert_eq!(town.received(owner).await, received);
        }
        let nobody = LETTER.replace("ada@other.example", "<<<");
        assert!(town.house.bring("ada@other.example", ADDRESS, &nobody).await.starts_with("550 5.1.7"), "a 250 means that it is stored");

        let late = town.new_sender(first).await;
        for address in [ADDRESS, "sales@victim.example"] {
            let (status, refused) = town.put(first, &late, address).await;
            assert_eq!((status, &refused["code"]), (409, &json!("conflict")), "{refused}");
            let text = refused.to_string();
            assert!(text.contains(address) && !text.contains("owner") && !text.contains(&owner.project.id.to_string()), "{text}");
            assert_eq!(town.call(first, "GET", &format!("/v1/senders/{late}/channels/email"), None).await.0, 404, "nothing was set up");
        }
        let (status, refused) = town.ask_for_code(first).await;
        assert_eq!((status, &refused["code"]), (409, &json!("conflict")), "{refused}");
        // The connection still sends, and can be changed.
        assert_eq!(town.put(first, &first.sender, ADDRESS).await.0, 200);

        // Within an environment, the first connection keeps the address.
        let other = town.new_sender(owner).await;
        assert_eq!(town.put(owner, &other, ADDRESS).await.1["inboundAddress"]["status"], "pending");
        assert_eq!(town.state(owner).await, "verified");
    }
}

// holds: senders.channels.inbound.code
#[tokio::test]
async fn a_code_that_came_by_mail_claims_an_address() {
    for backend in Backend::all() {
        let (port, mut caught) = catching_relay().await;
        let config =
            EmailConfig { code_relay: format!("127.0.0.1:{port}"), code_from: "nuncio@example.org".to_owned(), ..EmailConfig::default() };
        let town = Town::open(backend, config).await;
        let (first, owner) = (&town.first, &town.owner);
        for of in [first, owner] {
            assert_eq!(town.put(of, &of.sender, ADDRESS).await.0, 201);
        }
        let mut code = async |of: &Tenant| {
            let (status, sent) = town.ask_for_code(of).await;
            assert_eq!((status, &sent["address"], &sent["status"]), (202, &json!(ADDRESS), &json!("pending")), "{sent}");
            let mail = caught.recv().await.expect("a mail");
            assert!(mail.contains("MAIL FROM:<nuncio@example.org>") && mail.contains(&format!("RCPT TO:<{ADDRESS}>")), "{mail}");
            assert!(mail.contains("Auto-Submitted:"), "{mail}");
            code_in(&mail)
        };
        let good = code(owner).await;
        assert_eq!(good.len(), 8);
        assert_eq!(town.received(owner).await, 0, "callers can read messages, so the code is none");
        assert!(town.house.app.holders(&good).await.is_empty(), "only a hash is kept");

        // A code is valid in one environment, and wrong ones use it up.
        assert_eq!(town.enter(first, &good).await.0, 400);
        let wrong = if good == "00000000" { "11111111" } else { "00000000" };
        for left in [4, 3, 2, 1, 0] {
            let (status, refused) = town.enter(owner, wrong).await;
            assert!(status == 400 && refused.to_string().contains(&format!("{left} tries are left")), "{refused}");
        }
        assert_eq!(town.enter(owner, &good).await.0, 400);
        let (status, refused) = town.ask_for_code(owner).await;
        assert_eq!((status, &refused["code"]), (409, &json!("conflict")), "one a minute: {refused}");

        // It is valid for a while.
        town.house.app.clock.advance(Duration::from_secs(60));
        let old = code(owner).await;
        town.house.app.clock.advance(Duration::from_secs(900));
        assert_eq!(town.enter(owner, &old).await.0, 400);
        let good = code(owner).await;
        assert_eq!(town.enter(owner, &old).await.0, 400, "a new one replaces it");
        let of_first = code(first).await;
        let (status, verified) = town.enter(owner, &good).await;
        assert_eq!((status, verified), (200, json!({"address": ADDRESS, "status": "verified"})));
        assert_eq!((town.state(owner).await.as_str(), town.state(first).await.as_str()), ("verified", "pending"));
        assert_eq!(town.house.bring("ada@other.example", ADDRESS, LETTER).await, TAKEN);
        assert_eq!((town.received(first).await, town.received(owner).await), (0, 1));

        // The late claim is rejected.
        let (status, refused) = town.enter(first, &of_first).await;
        assert_eq!((status, &refused["code"]), (409, &json!("conflict")), "{refused}");
        // Another `from` ends the claim.
        assert_eq!(town.put(owner, &owner.sender, "else@victim.example").await.1["inboundAddress"]["status"], "pending");
        assert!(town.house.bring("ada@other.example", ADDRESS, LETTER).await.starts_with("550"));
    }
}

#[tokio::test]
async fn codes_are_few() {
    let (port, mut caught) = catching_relay().await;
    let config =
        EmailConfig { code_relay: format!("127.0.0.1:{port}"), code_from: "nuncio@example.org".to_owned(), ..EmailConfig::default() };
    let town = Town::open(Backend::Sqlite, config).await;
    let first = &town.first;
    assert_eq!(town.put(first, &first.sender, ADDRESS).await.0, 201);
    let minute = Duration::from_secs(60);
    for _ in 0..5 {
        assert_eq!(town.ask_for_code(first).await.0, 202);
        town.house.app.clock.advance(minute);
    }
    let (status, refused) = town.ask_for_code(first).await;
    assert_eq!(status, 409, "five a day for an address");
    assert!(refused["message"].as_str().unwrap_or_default().starts_with("5 codes were sent to this address within a day"), "{refused}");
    // Other or deleted connections do not change that.
    for n in 1..20 {
        assert_eq!(town.put(first, &first.sender, &format!("a{n}@victim.example")).await.0, 200);
        assert_eq!(town.ask_for_code(first).await.0, 202);
    }
    assert_eq!(town.put(first, &first.sender, "a20@victim.example").await.0, 200);
    assert_eq!(town.ask_for_code(first).await.0, 409, "twenty addresses a day");
    assert_eq!(town.call(first, "DELETE", &format!("/v1/senders/{}/channels/email", first.sender), None).await.0, 204);
    assert_eq!(town.put(first, &first.sender, ADDRESS).await.0, 201);
    assert_eq!(town.ask_for_code(first).await.0, 409);
    town.house.app.clock.advance(minute * 60 * 24);
    assert_eq!(town.ask_for_code(first).await.0, 202);
    for _ in 0..5 + 19 + 1 {
        caught.recv().await.expect("a mail for each");
    }
    assert!(caught.try_recv().is_err(), "and no more");
}

#[tokio::test]
async fn without_a_mail_server_of_the_operator_there_are_no_codes() {
    let town = Town::open(Backend::Sqlite, EmailConfig::default()).await;
    let first = &town.first;
    assert_eq!(town.ask_for_code(first).await.0, 404, "there is no connection");
    assert_eq!(town.put(first, &first.sender, ADDRESS).await.0, 201);
    let (status, refused) = town.ask_for_code(first).await;
    assert!(status == 400 && refused["message"].as_str().is_some_and(|text| text.contains("the domain victim.example")), "{refused}");
    let simulated = town.house.app.post("/v1/senders", json!({"name": "x"})).await.expect(201).json();
    let path = format!("/v1/senders/{}/channels/email/verification", simulated["id"].as_str().expect("an id"));
    let refused = town.house.app.post(&path, json!({})).await;
    assert_eq!(refused.status.as_u16(), 400, "the test environment claims nothing: {}", refused.text);
}

#[tokio::test]
async fn what_the_operator_says_goes_before_a_code() {
    for backend in Backend::all() {
        let (port, mut caught) = catching_relay().await;
        let config =
            EmailConfig { code_relay: format!("127.0.0.1:{port}"), code_from: "nuncio@example.org".to_owned(), ..EmailConfig::default() };
        let town = Town::open(backend, config).await;
        let (first, owner) = (&town.first, &town.owner);
        let claim_by_code = async |caught: &mut UnboundedReceiver<String>| {
            assert_eq!(town.ask_for_code(first).await.0, 202);
            let code = code_in(&caught.recv().await.expect("a mail"));
            assert_eq!(town.enter(first, &code).await.0, 200);
        };
        assert_eq!(town.put(first, &first.sender, ADDRESS).await.0, 201);
        assert_eq!(town.put(owner, &owner.sender, ADDRESS).await.0, 201);
        claim_by_code(&mut caught).await;
        assert_eq!((town.state(first).await.as_str(), town.state(owner).await.as_str()), ("verified", "pending"));

        // The owner gets the domain: the claim by code is revoked, and the owner's is valid at once.
        town.give("victim.example", owner).await.expect("given");
        assert_eq!((town.state(first).await.as_str(), town.state(owner).await.as_str()), ("pending", "verified"));
        let refused = town.give("victim.example", first).await.expect_err("it is the owner's");
        assert!(refused.contains("another project"), "{refused}");
        let listed = town.command(&first.project, Command::DomainsList).await.expect("listed");
        assert_eq!((&listed[0]["domain"], &listed[0]["projectId"]), (&json!("victim.example"), &json!(owner.project.id)));

        // Without the domain, claims based on it end.
        town.command(&first.project, Command::DomainsRemove { domain: "VICTIM.example".to_owned() }).await.expect("removed");
        assert_eq!(town.state(owner).await, "pending");
        assert!(town.command(&first.project, Command::DomainsRemove { domain: "victim.example".to_owned() }).await.is_err());

        // The operator confirms one address.
        town.house.app.clock.advance(Duration::from_secs(60));
        claim_by_code(&mut caught).await;
        let verify = |of: &Tenant| Command::ConnectionsVerify {
            env: Environment::Live,
            sender: Some(of.sender.clone()),
            channel: "email".to_owned(),
        };
        town.command(&owner.project, verify(owner)).await.expect("vouched");
        assert_eq!((town.state(first).await.as_str(), town.state(owner).await.as_str()), ("pending", "verified"));
        assert!(town.command(&first.project, verify(first)).await.is_err(), "not for two");
        // That remains, whoever gets the domain.
        town.give("victim.example", first).await.expect("given");
        assert_eq!((town.state(first).await.as_str(), town.state(owner).await.as_str()), ("pending", "verified"));

        // A valid code does not help against a domain, either.
        town.command(&first.project, Command::DomainsRemove { domain: "victim.example".to_owned() }).await.expect("removed");
        assert_eq!(town.put(first, &first.sender, "sales@victim.example").await.1["inboundAddress"]["status"], "pending");
        assert_eq!(town.ask_for_code(first).await.0, 202);
        let code = code_in(&caught.recv().await.expect("a mail"));
        town.give("victim.example", owner).await.expect("given");
        let (status, refused) = town.enter(first, &code).await;
        assert_eq!((status, &refused["code"]), (409, &json!("conflict")), "{refused}");

        for domain in ["", "victim", "a@victim.example", "a b.example"] {
            let refused = town.give(domain, owner).await.expect_err(domain);
            assert!(refused.contains("must be a domain such as example.org"), "{refused}");
        }
    }
}

#[tokio::test]
async fn a_connection_that_the_operator_sets_up_has_its_address_at_once() {
    let town = Town::open(Backend::Sqlite, EmailConfig::default()).await;
    let (first, owner) = (&town.first, &town.owner);
    let set = |of: &Tenant, from: &str| Command::ConnectionsSet {
        throttle: NewThrottle::Keep,
        env: Environment::Live,
        sender: Some(of.sender.clone()),
        channel: "email".to_owned(),
        kind: "smtp".to_owned(),
        settings: json!({"host": "127.0.0.1", "from": from}).as_object().expect("an object").clone(),
        secrets: serde_json::Map::new(),
    };
    town.give("victim.example", first).await.expect("given");
    assert_eq!(town.put(first, &first.sender, ADDRESS).await.1["inboundAddress"]["status"], "verified");
    town.command(&owner.project, set(owner, ADDRESS)).await.expect("set up");
    assert_eq!((town.state(first).await.as_str(), town.state(owner).await.as_str()), ("pending", "verified"));
    // With two such connections, the first keeps the address; the other can send.
    town.command(&first.project, set(first, ADDRESS)).await.expect("set up");
    assert_eq!((town.state(first).await.as_str(), town.state(owner).await.as_str()), ("pending", "verified"));
    // Once it is released, a restart gives it to the other one.
    town.command(&owner.project, set(owner, "else@victim.example")).await.expect("set up");
    town.house.app.node.core.senders().claim_mailboxes().await.expect("a start");
    assert_eq!((town.state(first).await.as_str(), town.state(owner).await.as_str()), ("verified", "verified"));
}

/// The operator decided for one of two senders: a code could not take the address from it, so none is sent.
#[tokio::test]
async fn no_code_is_sent_against_the_operators_word() {
    for backend in Backend::all() {
        let (port, mut caught) = catching_relay().await;
        let config =
            EmailConfig { code_relay: format!("127.0.0.1:{port}"), code_from: "nuncio@example.org".to_owned(), ..EmailConfig::default() };
        let mut town = Town::open(backend, config).await;
        let verify = |of: &Tenant| Command::ConnectionsVerify {
            env: Environment::Live,
            sender: Some(of.sender.clone()),
            channel: "email".to_owned(),
        };
        assert_eq!(town.put(&town.first, &town.first.sender, ADDRESS).await.0, 201);
        town.command(&town.first.project, verify(&town.first)).await.expect("vouched");
        town.first.sender = town.new_sender(&town.first).await;
        let first = &town.first;
        assert_eq!(town.put(first, &first.sender, ADDRESS).await.1["inboundAddress"]["status"], "pending");
        let (status, refused) = town.ask_for_code(first).await;
        let message = refused["message"].as_str().unwrap_or_default();
        assert!(status == 409 && message.starts_with("another sender of this environment receives email for"), "{refused}");
        assert!(caught.try_recv().is_err());
    }
}

/// A server that starts claims what it has read, while a caller changes it.
#[tokio::test]
async fn a_start_does_not_undo_a_change_of_an_address() {
    for backend in Backend::all() {
        let town = Town::open(backend, EmailConfig::default()).await;
        let (app, first) = (&town.house.app, &town.first);
        town.give("victim.example", first).await.expect("given");
        assert_eq!(town.put(first, &first.sender, ADDRESS).await.1["inboundAddress"]["status"], "verified");
        let (tenant, sender) = (first.project.live, first.sender.parse().expect("an id"));
        let mut tx = app.store().begin().await.expect("a transaction");
        tx.raise_epoch(tenant).await.expect("locked");
        let mut changed = tx.connections_of_senders(tenant, &[sender]).await.expect("a look").remove(0);
        let senders = app.node.core.senders();
        let mut starting = Box::pin(senders.claim_mailboxes());
        // Long enough to read the connection as it is now.
        let _ = tokio::time::timeout(Duration::from_millis(200), &mut starting).await;
        changed.settings.insert("from".to_owned(), "sales@victim.example".into());
        changed.updated_at = changed.updated_at.plus(Duration::from_millis(1));
        tx.put_connection(tenant, &changed).await.expect("written");
        tx.set_inbound_address(tenant, changed.id, Some("sales@victim.example")).await.expect("written");
        let proof = nuncio_domain::mailbox::Proof::Domain;
        assert!(tx.claim_mailbox(tenant, changed.id, "sales@victim.example", proof).await.expect("written"));
        tx.commit().await.expect("committed");
        starting.await.expect("a start");
        let (_, connection) = town.call(first, "GET", &format!("/v1/senders/{}/channels/email", first.sender), None).await;
        assert_eq!(connection["inboundAddress"], json!({"address": "sales@victim.example", "status": "verified"}));
    }
}
