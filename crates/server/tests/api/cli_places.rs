//! Commands on an installation and on a remote node, and what both have in common.

use std::time::Duration;

use nuncio::admin;
use nuncio_domain::Environment;
use nuncio_testkit::{Backend, Database, Receiver, TestApp};
use serde_json::{Value, json};

use crate::cli::{Ran, Terminal};

async fn run(terminal: &Terminal, line: &str) -> Ran {
    terminal.type_in(&line.split(' ').collect::<Vec<_>>()).await
}

fn id(answer: &Ran) -> String {
    answer.json()["id"].as_str().expect("an id").to_owned()
}

// holds: cli.places
#[tokio::test]
async fn senders_connections_and_keys_are_managed_on_a_remote_node() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    terminal.login(&app.key(Environment::Live, &["*"]).await).await;

    let made = run(&terminal, "keys create --name shop --env test --permissions messages:send").await.expect(0);
    let key = made.out.lines().next().expect("a key").to_owned();
    assert!(key.starts_with("svc_test_") && made.out.lines().count() == 1, "the key alone, for scripts: {made:?}");
    assert!(made.err.starts_with("The key is not shown again. Its ID is key_"), "{made:?}");
    let listed = run(&terminal, "keys list --env test --json").await.expect(0).json();
    assert!(listed[0]["name"] == "shop" && listed[0]["environment"] == "test", "{listed}");
    run(&terminal, &format!("keys revoke {}", listed[0]["id"].as_str().expect("an id"))).await.expect(0);
    let made = run(&terminal, "keys create --name all --env test --json").await.expect(0).json();
    assert_eq!(made["permissions"], json!(["*"]), "without a list, all");

    let refused = run(&terminal, "senders create --name Desk").await.expect(1);
    assert!(refused.err.contains("set --env live or --env test"), "{refused:?}");
    let desk = id(&terminal
        .type_in(&["senders", "create", "--name", "Desk", "--phone-number", "+34 600 111 222", "--env", "live", "--json"])
        .await
        .expect(0));
    run(&terminal, &format!("senders update {desk} --name Front-desk")).await.expect(0);
    let senders = run(&terminal, "senders list").await.expect(0);
    assert!(senders.out.starts_with("ENV ") && senders.out.contains("Front-desk") && senders.out.contains("+34600111222"), "{senders:?}");

    let set = "connections set --env live --sender Front-desk --channel email --kind smtp --setting host=127.0.0.1 --setting port=1 \
               --setting tls=none --setting from=a@example.org";
    run(&terminal, set).await.expect(0);
    let tested = run(&terminal, "connections test --env live --sender Front-desk --channel email").await.expect(1);
    assert!(tested.out.starts_with("failed: "), "{tested:?}");
    let listed = run(&terminal, "connections list --env live --json").await.expect(0).json();
    assert_eq!(
        (&listed[0]["kind"], &listed[0]["settings"]["host"], &listed[0]["senderId"]),
        (&json!("smtp"), &json!("127.0.0.1"), &json!(desk))
    );
    run(&terminal, "connections remove --env live --sender Front-desk --channel email").await.expect(0);
    let copied = run(&terminal, &format!("senders copy {desk} --to test --json")).await.expect(0).json();
    assert_eq!((&copied["name"], &copied["phoneNumber"]), (&json!("Front-desk"), &json!("+34600111222")));
    run(&terminal, &format!("senders delete {desk}")).await.expect(0);
    assert!(!terminal.home.path().join("nuncio-data").exists(), "none of this made an installation here");
}

// holds: cli.places
#[tokio::test]
async fn an_installation_here_goes_before_a_profile_and_answers_in_the_same_shape() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    let names = |list: &Value| list[0].as_object().expect("an item").keys().cloned().collect::<Vec<_>>();
    let elsewhere = [
        run(&terminal, "keys list --json").await.expect(0).json(),
        run(&terminal, "senders list --json").await.expect(0).json(),
        run(&terminal, "connections list --json").await.expect(0).json(),
    ];
    run(&terminal, "projects create here").await.expect(0);
    run(&terminal, "keys create --name local --env test").await.expect(0);
    run(&terminal, "senders create --name Local --env test").await.expect(0);
    let keys = run(&terminal, "keys list --json").await.expect(0).json();
    assert_eq!(keys[0]["name"], "local", "{keys}");
    let here = [
        keys,
        run(&terminal, "senders list --env test --json").await.expect(0).json(),
        run(&terminal, "connections list --env test --json").await.expect(0).json(),
    ];
    for (here, elsewhere) in here.iter().zip(&elsewhere) {
        assert_eq!(names(here), names(elsewhere));
    }
    let asked = run(&terminal, &format!("keys list --json --server http://{}", terminal.server)).await.expect(0).json();
    assert_ne!(asked[0]["name"], "local", "an option names the node");
    let both = run(&terminal, "keys list --data nuncio-data --profile default").await.expect(1);
    assert!(both.err.contains("Use one kind"), "{both:?}");
}

// holds: cli.places
#[tokio::test]
async fn only_commands_that_add_something_begin_an_installation() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    let copy = "db copy --to postgres://127.0.0.1:1/x";
    for line in ["doctor", "prices list", "numbers list", "senders list", "db size", "people list", "held list", "db migrate", copy] {
        let refused = run(&terminal, line).await.expect(1);
        assert!(refused.err.contains("found no installation in nuncio-data") && refused.err.contains("--data"), "{line}: {refused:?}");
    }
    assert!(!terminal.home.path().join("nuncio-data").exists(), "a folder was made");
    run(&terminal, "keys create --name first --env test").await.expect(0);
    run(&terminal, "doctor").await.expect(0);
    run(&terminal, "db migrate").await.expect(0);
}

#[tokio::test]
async fn a_database_without_its_keys_gets_no_new_ones() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    run(&terminal, "keys create --name first --env test").await.expect(0);
    let folder = terminal.home.path().join("nuncio-data");
    std::fs::remove_file(folder.join("encryption.keys")).expect("removed");
    for line in ["keys list", "serve --listen 127.0.0.1:0"] {
        let refused = run(&terminal, line).await.expect(1);
        assert!(refused.err.contains("nuncio-data/encryption.keys is missing"), "{line}: {refused:?}");
        assert!(!folder.join("encryption.keys").exists(), "{line}");
    }
    // A copy that failed.
    std::fs::write(folder.join("nuncio.db"), "").expect("emptied");
    for side in ["-wal", "-shm"] {
        let _ = std::fs::remove_file(folder.join(format!("nuncio.db{side}")));
    }
    let refused = run(&terminal, "keys list").await.expect(1);
    assert!(refused.err.contains("found no installation in nuncio-data"), "{refused:?}");
}

#[tokio::test]
async fn the_folder_of_a_postgresql_node_gets_no_second_installation() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    run(&terminal, "keys create --name first --env test").await.expect(0);
    let database = terminal.home.path().join("nuncio-data/nuncio.db");
    std::fs::write(&database, "not a database, but long enough to be read ".repeat(100)).expect("overwritten");
    let damaged = run(&terminal, "keys list").await.expect(1);
    assert!(damaged.err.contains("nuncio.db is damaged; restore a backup") && !damaged.err.contains("encryption keys"), "{damaged:?}");
    for file in std::fs::read_dir(terminal.home.path().join("nuncio-data")).expect("a folder") {
        let file = file.expect("a file");
        if file.file_name().to_string_lossy().starts_with("nuncio.db") {
            std::fs::remove_file(file.path()).expect("removed");
        }
    }
    let start = "quickstart --exit --listen 127.0.0.1:0";
    for line in ["keys create --name second --env test", "doctor", "db migrate", "serve --listen 127.0.0.1:0", start] {
        let refused = run(&terminal, line).await.expect(1);
        assert!(refused.err.contains("nuncio-data belongs to a PostgreSQL installation"), "{line}: {refused:?}");
        assert!(refused.err.contains("storage.database in nuncio.toml"), "{line}: {refused:?}");
    }
    assert!(!database.exists(), "nothing was begun");
    let refused = run(&terminal, "keys list --database mysql://a:hush@127.0.0.1/x").await.expect(1);
    assert!(refused.err.contains("storage.database: must begin with postgres://") && !refused.err.contains("hush"), "{refused:?}");
    let refused = run(&terminal, "db copy --to mysql://a:hush@127.0.0.1/x").await.expect(1);
    assert!(refused.err.contains("--to: must begin with postgres://") && !refused.err.contains("hush"), "{refused:?}");
    let refused = run(&terminal, "config check --listen nowhere").await.expect(1);
    assert!(refused.err.contains("server.listen: \"nowhere\""), "{refused:?}");
    let empty = terminal.command(&["config", "check"]).env("NUNCIO__SERVER__LISTEN", "").output().await.expect("it ends");
    let empty = String::from_utf8_lossy(&empty.stderr).into_owned();
    assert!(empty.contains("server.listen") && !empty.contains("email.listen"), "{empty}");
}

/// Each folder has a lock of its own, which would protect nothing.
#[tokio::test]
async fn a_database_that_lies_in_another_folder_too_is_refused() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    run(&terminal, "keys create --name first --env test").await.expect(0);
    let folder = terminal.home.path().join("nuncio-data");
    let (database, elsewhere) = (folder.join("nuncio.db"), terminal.home.path().join("elsewhere.db"));
    std::fs::hard_link(&database, &elsewhere).expect("linked");
    assert!(run(&terminal, "keys list").await.expect(1).err.contains("nuncio.db is a link"));
    std::fs::remove_file(&database).expect("removed");
    std::os::unix::fs::symlink(&elsewhere, &database).expect("linked");
    assert!(run(&terminal, "keys list").await.expect(1).err.contains("nuncio.db is a link"));
    std::fs::rename(&elsewhere, &database).expect("moved");
    run(&terminal, "keys list").await.expect(0);
    let twice = "connections set --env test --channel sms --kind sim --setting fails=a --setting fails=b";
    assert!(run(&terminal, twice).await.expect(1).err.contains("\"fails\" is given twice"));
    let refused = terminal.type_in(&["balance", "add", "7", "--env", "test", "--reference", ""]).await.expect(1);
    assert!(refused.err.contains("reference: is empty"), "{refused:?}");
    std::fs::write(&database, "").expect("emptied");
    assert!(run(&terminal, "keys list").await.expect(1).err.contains("nuncio.db is empty"));
}

#[tokio::test]
async fn an_address_for_email_that_is_taken_is_noticed_before_the_node_registers() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let address = taken.local_addr().expect("an address").to_string();
    let refused = terminal.command(&["serve", "--listen", "127.0.0.1:0"]).env("NUNCIO__EMAIL__LISTEN", &address).output().await;
    let said = String::from_utf8_lossy(&refused.expect("it ends").stderr).into_owned();
    assert!(said.contains(&format!("cannot listen for email on {address}")), "{said}");
    assert!(!terminal.home.path().join("nuncio-data/nuncio.db").exists(), "there is no node to recover");
}

// holds: cli.places
#[tokio::test]
async fn a_name_decides_only_if_it_is_the_only_one() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    let [first, second] = ["one", "two"].map(|name| format!("projects create {name} --json"));
    let (first, second) = (id(&run(&terminal, &first).await.expect(0)), id(&run(&terminal, &second).await.expect(0)));
    let keys = async |project: &str| run(&terminal, &format!("keys list --json --project {project}")).await;
    run(&terminal, &format!("keys create --name mine --env test --project {second}")).await.expect(0);
    run(&terminal, &format!("projects rename {second} --project one")).await.expect(0);
    assert_eq!(keys(&second).await.expect(0).json()[0]["name"], "mine", "a name does not hide an ID");
    run(&terminal, &format!("projects rename two --project {first}")).await.expect(0);
    let refused = keys("two").await.expect(1);
    assert!(refused.err.contains(&format!("2 have the name \"two\": {first}, {second}; use the ID of one")), "{refused:?}");
    let refused = keys("three").await.expect(1);
    assert!(refused.err.contains("project: there is no \"three\"; `nuncio projects list`"), "{refused:?}");

    terminal.login(&app.key(Environment::Live, &["*"]).await).await;
    for place in ["", " --data nuncio-data"] {
        let elsewhere = if place.is_empty() { " --profile default" } else { place };
        let make = format!("senders create --name Desk --env live --json{elsewhere}");
        let (one, two) = (id(&run(&terminal, &make).await.expect(0)), id(&run(&terminal, &make).await.expect(0)));
        let test = async |sender: &str| {
            run(&terminal, &format!("connections test --env live --channel email --sender {sender}{elsewhere}")).await.expect(1)
        };
        let refused = test("Desk").await;
        assert!(refused.err.contains("sender: 2 have the name \"Desk\"") && refused.err.contains("use the ID of one"), "{refused:?}");
        run(&terminal, &format!("senders update {two} --name {one}{elsewhere}")).await.expect(0);
        for (sender, said) in [(one.as_str(), "connection"), ("Nobody", "there is no")] {
            let tested = test(sender).await;
            assert!(tested.err.contains(said) && !tested.err.contains("have the name"), "{tested:?}");
        }
    }
}

// holds: cli.resources
#[tokio::test]
async fn hints_name_the_place_that_was_given() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    run(&terminal, "projects create acme").await.expect(0);
    let set = "connections set --channel email --kind sim --env test --project acme";
    let set_up = run(&terminal, set).await.expect(0);
    assert!(set_up.out.contains("`nuncio connections test --channel email --project acme --env test`"), "{set_up:?}");
    let sender = run(&terminal, "senders list --env test --project acme --json").await.expect(0).json()[0]["id"].clone();
    let sender = sender.as_str().expect("an id");
    let set_up = run(&terminal, &format!("{set} --sender {sender}")).await.expect(0);
    assert!(set_up.out.contains(&format!(" --env test --sender {sender}`")), "{set_up:?}");
    let reported = run(&terminal, "doctor").await.expect(0).out;
    for said in ["project default has no live connection", "`nuncio connections set`", "`nuncio connections set --project acme`"] {
        assert!(reported.contains(said), "{said}: {reported}");
    }
    for wrong in ["NaN", "inf", "1.1", "much"] {
        let refused = run(&terminal, &format!("reviews policy --threshold {wrong}")).await.expect(2);
        assert!(refused.err.contains("must be a number from 0 to 1"), "{refused:?}");
    }
    assert!(run(&terminal, "reviews policy --threshold 0.7 --env test").await.expect(0).out.contains("threshold 0.7"));
}

// holds: cli.resources
#[tokio::test]
async fn held_messages_are_listed_with_their_recipients() {
    let app = TestApp::start().await;
    let soon = app.node.core.ids().clock.now().plus(Duration::from_secs(60)).to_string();
    let held = app.send_message(json!({"to": "+34600111222", "text": "x", "scheduledAt": soon})).await;
    app.clock.advance(Duration::from_secs(2 * 3_600));
    app.drain().await;
    let listed = admin::run(&app.node.core, admin::Request { project: None, command: admin::Command::HeldList }).await.expect("a list");
    let table = listed.table.expect("a table");
    assert_eq!(table.head, ["MESSAGE", "ENV", "RECIPIENT", "CREATED (UTC)", "REASON"]);
    assert_eq!(table.rows[0][..3], [held, "test".to_owned(), "+34600111222".to_owned()]);
    assert_eq!((&listed.json[0]["to"], &listed.json[0]["environment"]), (&json!("+34600111222"), &json!("test")));
    assert_eq!(listed.notice, None, "these are all");
}

// holds: cli.resources
#[tokio::test]
async fn a_full_list_of_held_messages_says_whether_there_are_more() {
    let app = TestApp::start().await;
    let soon = app.node.core.ids().clock.now().plus(Duration::from_secs(60)).to_string();
    let hold = async |count: usize| {
        let messages = vec![json!({"to": "+34600111222", "text": "x", "scheduledAt": soon}); count];
        app.post("/v1/messages/batch", json!({"messages": messages})).await.expect(200);
    };
    let list = async || {
        app.drain().await;
        let request = admin::Request { project: None, command: admin::Command::HeldList };
        let listed = admin::run(&app.node.core, request).await.expect("a list");
        (listed.json.as_array().map(Vec::len), listed.notice)
    };
    hold(1_000).await;
    hold(1).await;
    app.clock.advance(Duration::from_secs(2 * 3_600));
    assert_eq!(list().await, (Some(1_000), Some("1,000 shown, there are more".to_owned())));
    let one = app.get("/v1/messages?limit=1").await.expect(200).json()["items"][0]["id"].as_str().expect("an id").to_owned();
    app.post(&format!("/v1/messages/{one}/resolve"), json!({"action": "failed"})).await.expect(200);
    assert_eq!(list().await, (Some(1_000), None), "these are all");
}

// holds: cli.resources
#[tokio::test]
async fn what_is_not_here_is_said_with_where_to_look() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    let sender = id(&run(&terminal, "senders create --env test --name Desk --json").await.expect(0));
    for (line, said) in [
        (format!("senders update {sender} --name Front"), "is in the test environment: --env test\n"),
        (format!("senders delete {sender}"), "is in the test environment: --env test\n"),
        ("senders delete Nobody".to_owned(), "in the live environment; `nuncio senders list` shows all senders"),
        ("connections test --channel whatsapp".to_owned(), "of the live environment has none for whatsapp; `nuncio connections list`"),
        ("connections remove --channel sms".to_owned(), "has none for sms"),
        ("connections verify".to_owned(), "has none for email"),
        ("keys revoke nonsense".to_owned(), "give its ID (key_…), which `nuncio keys list` shows"),
    ] {
        let refused = run(&terminal, &line).await.expect(1);
        assert!(refused.err.contains(said), "{line}: {refused:?}");
    }
    run(&terminal, "senders update Desk --env test --name Front").await.expect(0);
    run(&terminal, "senders copy Front --to live").await.expect(0);
    run(&terminal, "senders delete Front --env live").await.expect(0);
    run(&terminal, &format!("senders delete {sender} --env test")).await.expect(0);
}

// holds: cli.resources
#[tokio::test]
async fn the_limits_of_a_sender_are_set_and_lifted() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    for place in ["", " --data here"] {
        let run = async |line: String| run(&terminal, &format!("senders {line} --env test --json{place}")).await;
        let limits = "--receive-email true --allowed-countries ES,PT --daily-spend-limit 2.5";
        let made = run(format!("create --name Desk {limits}")).await.expect(0).json();
        assert_eq!(
            (&made["emailReceivingEnabled"], &made["allowedCountries"], &made["dailySpendLimit"]),
            (&json!(true), &json!(["ES", "PT"]), &json!(2.5)),
            "{place}"
        );
        let desk = made["id"].as_str().expect("an id");
        let kept = run(format!("update {desk} --name Front")).await.expect(0).json();
        assert_eq!((&kept["name"], &kept["dailySpendLimit"]), (&json!("Front"), &json!(2.5)), "{place}");
        run(format!("update {desk} --receive-email false --allowed-countries all --daily-spend-limit none")).await.expect(0);
        let listed = run("list".to_owned()).await.expect(0).json();
        let lifted = listed.as_array().expect("senders").iter().find(|sender| sender["id"] == desk).expect("the sender");
        assert_eq!((&lifted["emailReceivingEnabled"], &lifted["name"]), (&json!(false), &json!("Front")), "{place}");
        assert!(lifted["allowedCountries"].is_null() && lifted["dailySpendLimit"].is_null(), "{place}: {lifted}");
        let refused = run(format!("update {desk} --daily-spend-limit much")).await.expect(2);
        assert!(refused.err.contains("must be an amount of US dollars"), "{refused:?}");
        let refused = run(format!("update {desk} --allowed-countries Spain")).await.expect(1);
        assert!(refused.err.contains("allowedCountries"), "{refused:?}");
    }
}

// holds: cli.resources
#[tokio::test]
async fn secrets_whose_key_is_gone_are_reported_and_can_be_set_again() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    run(&terminal, "keys create --name first --env test").await.expect(0);
    let set = "connections set --channel email --kind smtp --setting host=127.0.0.1 --setting port=1 --setting tls=none \
               --setting from=a@example.org --setting username=a";
    let keys = terminal.home.path().join("nuncio-data/encryption.keys");
    let old = std::fs::read_to_string(&keys).expect("a key");
    let rotated = format!("{}\n{old}", "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=");
    std::fs::write(&keys, &rotated).expect("rotated");
    run(&terminal, &format!("{set} --secret password=one")).await.expect(0);
    std::fs::write(&keys, &old).expect("the new key is lost");
    let gone = "its secrets cannot be decrypted: sealed with a key that is missing from the key file";
    let reported = run(&terminal, "doctor").await.expect(0);
    assert!(reported.out.contains(gone), "{reported:?}");
    assert!(reported.out.contains("or set them again with `nuncio connections set`"), "{reported:?}");
    let tested = run(&terminal, "connections test --channel email").await.expect(1);
    assert!(tested.out.contains(gone), "{tested:?}");
    run(&terminal, set).await.expect(1);
    run(&terminal, &format!("{set} --secret password=two")).await.expect(0);
    let reported = run(&terminal, "doctor").await.expect(0);
    assert!(!reported.out.contains("cannot be decrypted"), "{reported:?}");

    // Those of simulated accounts, too.
    std::fs::write(&keys, &rotated).expect("rotated");
    run(&terminal, "projects create Second").await.expect(0);
    std::fs::write(&keys, &old).expect("the new key is lost");
    let reported = run(&terminal, "doctor").await.expect(0);
    assert!(
        reported.out.contains("or set them again with `nuncio connections set --env test --kind sim --project Second`"),
        "{reported:?}"
    );
}

// holds: cli.resources
#[tokio::test]
async fn the_rate_of_a_connection_is_set_with_it_and_stays() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.key(Environment::Live, &["*"]).await).await;
    let set = "connections set --env live --channel email --kind smtp --setting host=127.0.0.1 --setting from=a@example.org --json";
    for place in ["", " --data here"] {
        for (option, wanted) in [
            (" --throttle 50/100", json!({"messagesPerSecond": 50.0, "burst": 100})),
            ("", json!({"messagesPerSecond": 50.0, "burst": 100})),
            (" --throttle 2.5", json!({"messagesPerSecond": 2.5, "burst": 3})),
            (" --throttle none", Value::Null),
        ] {
            let answer = run(&terminal, &format!("{set}{place}{option}")).await.expect(0).json();
            assert_eq!(answer["throttle"], wanted, "{place}{option}");
        }
        let refused = run(&terminal, &format!("{set}{place} --throttle fast")).await.expect(2);
        assert!(refused.err.contains("must be messages per second such as 50"), "{refused:?}");
    }
}

// holds: cli.resources
#[tokio::test]
async fn contacts_templates_and_broadcasts_are_edited() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    let done = async |line: &str| run(&terminal, line).await.expect(0);

    let ana = id(&done("contacts create --channel sms=+34600111222 --name Ana --json").await);
    done(&format!("contacts add-channel {ana} email=ana@example.org --label work --json")).await;
    done(&format!("contacts update {ana} --name Ana-María --default-channel email --metadata plan=pro")).await;
    let shown = done(&format!("contacts show {ana} --json")).await.json();
    assert_eq!(
        (&shown["displayName"], &shown["defaultChannel"], &shown["metadata"]["plan"]),
        (&json!("Ana-María"), &json!("email"), &json!("pro"))
    );
    let email = shown["channels"].as_array().expect("channels").iter().find(|each| each["identifier"] == "ana@example.org").expect("it");
    done(&format!("contacts remove-channel {ana} {}", email["id"].as_str().expect("an id"))).await;
    done("send +34600111222 hi --wait 0").await;
    assert!(done(&format!("contacts messages {ana}")).await.out.contains("+34600111222"));
    assert!(run(&terminal, &format!("contacts update {ana}")).await.expect(1).err.contains("nothing to change"));

    std::fs::write(terminal.home.path().join("t.json"), r#"{"name": "hello", "language": "en", "body": "Hello {{1}}"}"#).expect("a file");
    let template = id(&done("templates create t.json --json").await);
    std::fs::write(terminal.home.path().join("u.json"), r#"{"body": "Good day {{1}}"}"#).expect("a file");
    assert!(done(&format!("templates update {template} u.json")).await.out.contains("Good day"));
    assert!(done(&format!("templates show {template}")).await.out.contains("\nvariables: [1]\n"), "a list of one is a list");
    let submitted = done(&format!("templates submit {template} --sender Default --category MARKETING --json")).await.json();
    assert_eq!((&submitted["status"], &submitted["category"]), (&json!("pending"), &json!("MARKETING")), "{submitted}");
    assert!(submitted["senderId"].is_string(), "{submitted}");
    let unknown = run(&terminal, &format!("templates submit {template} --sender Nobody")).await.expect(1);
    assert!(unknown.err.contains("there is no sender \"Nobody\""), "{unknown:?}");

    let spring = id(&done("broadcasts create --name spring --channel sms --text hello --json").await);
    assert!(done(&format!("broadcasts update {spring} --name summer --text bye")).await.out.contains("name: summer"));
    assert!(done(&format!("broadcasts select {spring} --metadata plan=pro")).await.out.contains("added: 1"));
    let recipients = done(&format!("broadcasts recipients {spring} --json")).await.json();
    assert_eq!(recipients[0]["recipient"], "+34600111222", "{recipients}");
    done(&format!("broadcasts remove-recipient {spring} {}", recipients[0]["id"].as_str().expect("an id"))).await;
    done(&format!("broadcasts delete {spring}")).await;
    run(&terminal, &format!("broadcasts show {spring}")).await.expect(1);

    let first = done("webhooks set https://example.com/hooks").await;
    let rotated = done("webhooks rotate --expire-old now").await;
    assert!(first.out.contains("whsec_") && rotated.out.contains("whsec_"), "{rotated:?}");
    done("webhooks disable").await;
    assert!(done("webhooks show").await.out.contains("active: false"));
    assert!(done("webhooks list").await.out.contains("\nDefault  no "));
    assert_eq!(run(&terminal, "webhooks test").await.expect(1).err, "nuncio: it is disabled; `nuncio webhooks enable`\n");
    done("webhooks enable").await;
    done("webhooks set https://example.com/own --own --events template.status_changed").await;
    done("webhooks disable --own").await;
    let listed = done("webhooks list --json").await.json();
    assert_eq!(
        (&listed[0]["active"], &listed[1]["active"], &listed[1]["url"]),
        (&json!(true), &json!(false), &json!("https://example.com/own"))
    );
}

// holds: cli.resources
#[tokio::test]
async fn a_webhook_is_tested_and_its_response_shown() {
    let app = crate::webhooks::app(Backend::Sqlite).await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    let receiver = Receiver::start().await;
    run(&terminal, &format!("webhooks set {}", receiver.url)).await.expect(0);
    for (status, code, said) in [(200, 0, "  delivered: 200 in "), (500, 1, "  failed: 500 in ")] {
        receiver.always(Some(status));
        let before = receiver.got().len();
        let delivered = async {
            while receiver.got().len() == before {
                app.drain().await;
                tokio::time::sleep(std::time::Duration::from_millis(20)).await;
            }
            app.drain().await;
        };
        let (tested, ()) = tokio::join!(run(&terminal, "webhooks test"), delivered);
        let tested = tested.expect(code);
        assert!(tested.out.starts_with("dlv_") && tested.out.contains(said), "{tested:?}");
    }
}

// holds: cli.tables
#[tokio::test]
async fn tables_look_like_this() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    let done = async |line: &str| run(&terminal, line).await.expect(0).out;
    terminal.login(&app.test_key).await;
    let mut out = Vec::new();
    for line in [
        "messages list", "contacts list", "broadcasts list", "templates list", "invitations list", "suppressions list", "webhooks list",
        "webhooks deliveries",
    ] {
        out.push(format!("$ nuncio {line}\n{}", done(line).await));
    }
    done("send +34600111222 hello --wait 0").await;
    done("send +15005550001 nobody --wait 0").await;
    app.drain().await;
    done("contacts create --channel sms=+34600111223 --name Ana").await;
    done("suppressions add +34600111229").await;
    done("invitations create --client Acme").await;
    done("broadcasts create --name spring --channel sms --text hello").await;
    done("webhooks set https://example.com/hooks").await;
    terminal.login(&app.key(Environment::Live, &["*"]).await).await;
    for line in [
        "messages list",
        "contacts list --env test",
        "broadcasts list",
        "suppressions list",
        "webhooks list",
        "senders list",
        "connections list",
        "keys list",
        "invitations list",
        "events list --env test",
        "audit list --env test",
    ] {
        out.push(format!("$ nuncio {line}\n{}", done(line).await));
    }
    insta::assert_snapshot!(out.join("\n"));
}

// holds: cli.copy
#[tokio::test]
async fn an_installation_moves_to_postgresql() {
    if !Backend::all().contains(&Backend::Postgres) {
        return;
    }
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    run(&terminal, "projects create acme").await.expect(0);
    run(&terminal, "senders create --name Desk").await.expect(0);
    let before = run(&terminal, "keys create --name shop --env live --json").await.expect(0).json();
    let database = Database::make(Backend::Postgres).await;
    let copied = run(&terminal, &format!("db copy --to {} --json", database.url())).await.expect(0).json();
    assert!(copied["rows"].as_u64().is_some_and(|rows| rows > 5), "{copied}");
    let there = run(&terminal, &format!("keys list --json --database {}", database.url())).await.expect(0).json();
    assert_eq!(there[0]["id"], before["id"]);
    let senders = run(&terminal, &format!("senders list --env live --json --database {}", database.url())).await.expect(0).json();
    assert!(senders.as_array().is_some_and(|all| all.iter().any(|sender| sender["name"] == "Desk")), "{senders}");
    let again = run(&terminal, &format!("db copy --to {}", database.url())).await.expect(1);
    assert!(again.err.contains("is not empty"), "{again:?}");
}
