//! Contacts and suppressions as files, on the command line.

use nuncio_domain::Environment;
use nuncio_testkit::TestApp;
use serde_json::{Value, json};

use crate::cli::{Ran, Terminal};

async fn run(terminal: &Terminal, line: &str) -> Ran {
    terminal.type_in(&line.split(' ').collect::<Vec<_>>()).await
}

fn write(terminal: &Terminal, name: &str, text: &str) {
    std::fs::write(terminal.home.path().join(name), text).expect("a file");
}

/// The numbers of an import.
fn counts(answer: &Value) -> [&Value; 4] {
    ["rows", "added", "duplicates", "invalid"].map(|name| &answer[name])
}

// holds: cli.files
#[tokio::test]
async fn contacts_are_imported_once() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    let mut good = "Name,Phone,email,city\n".to_owned();
    for n in 0..40 {
        good += &format!("Person {n},600 111 2{n:02},p{n}@example.org,Vigo\n");
    }
    write(&terminal, "good.csv", &good);
    let said = run(&terminal, "contacts import good.csv --countries es").await.expect(0);
    assert_eq!(said.out, "40 rows: 40 added, 0 duplicates, 0 invalid.\n");
    let again = run(&terminal, "contacts import good.csv --countries ES").await.expect(0);
    assert_eq!(again.out, "Everything in this file exists already; nothing was added. 40 rows: 0 added, 40 duplicates, 0 invalid.\n");
    let one = run(&terminal, "contacts list --phone +34600111207 --json").await.expect(0).json();
    assert_eq!((&one[0]["displayName"], &one[0]["metadata"]), (&json!("Person 7"), &json!({"city": "Vigo"})), "{one}");
    assert_eq!(one.as_array().map(Vec::len), Some(1), "{one}");

    // A known contact without a name gets it.
    run(&terminal, "contacts create --channel email=bo@example.org").await.expect(0);
    write(
        &terminal,
        "bad.csv",
        "name,email,phone,metadata\nBo,bo@example.org,,\nCy,nonsense,,\nDi,,123,\nEd,,,\nFe,fe@example.org,,{\nGi,gi@example.org\n",
    );
    let answer = run(&terminal, "contacts import bad.csv --json").await.expect(1).json();
    assert_eq!(counts(&answer), [&json!(6), &json!(0), &json!(1), &json!(5)], "{answer}");
    let lines: Vec<_> = answer["errors"].as_array().expect("errors").iter().map(|error| error["line"].as_u64().expect("a line")).collect();
    assert_eq!(lines, [3, 4, 5, 6, 7], "{answer}");
    let reason = |n: usize| answer["errors"][n]["reason"].as_str().expect("a reason");
    assert!(reason(0).starts_with("channels[0].identifier: ") && reason(1).contains("\"123\" has no country code"), "{answer}");
    assert_eq!((reason(2), reason(4)), ("has no address", "has 2 cells; the first line has 4"));
    let said = run(&terminal, "contacts import bad.csv").await.expect(1);
    assert!(said.out.starts_with("6 rows: 0 added, 1 duplicates, 5 invalid.\nline 3: "), "{said:?}");
    let named = run(&terminal, "contacts list --email bo@example.org --json").await.expect(0).json();
    assert_eq!(named[0]["displayName"], "Bo");

    write(
        &terminal,
        "more.ndjson",
        "{\"channels\": [{\"channel\": \"sms\", \"identifier\": \"600 999 888\", \"label\": \"work\"}]}\n\n{\"chanels\": []}\n",
    );
    let answer = run(&terminal, "contacts import more.ndjson --countries ES --json").await.expect(1).json();
    assert_eq!((counts(&answer)[1], &answer["errors"][0]["line"]), (&json!(1), &json!(3)), "{answer}");
}

// holds: cli.files
#[tokio::test]
async fn what_cannot_be_imported_says_why() {
    let (app, other) = (TestApp::start().await, TestApp::start().await);
    let terminal = Terminal::beside(&app).await;
    write(&terminal, "people.csv", "email\nana@example.org\nbo@example.org\n");
    write(&terminal, "none.csv", "a,b\n1,2\n");
    let with = |key: &str| format!("contacts import people.csv --key {key}");
    let missing = run(&terminal, &format!("contacts import nowhere.csv --key {}", app.test_key)).await.expect(1);
    assert!(missing.err.starts_with("nuncio: nowhere.csv: "), "{missing:?}");
    std::fs::write(terminal.home.path().join("latin.csv"), b"email,name\nana@example.org,Bego\xf1a\n").expect("a file");
    write(&terminal, "open.csv", "email,name\nana@example.org,\"Ana\nbo@example.org,Bo\n");
    for (file, why) in [
        ("contacts import latin.csv", "latin.csv: is not UTF-8; save it as UTF-8"),
        ("suppressions import latin.csv", "latin.csv: is not UTF-8; save it as UTF-8"),
        ("prices import latin.csv --data none", "latin.csv: is not UTF-8; save it as UTF-8"),
        ("contacts import open.csv", "open.csv: line 2 has a quotation mark that is not closed"),
    ] {
        let key = if file.contains("--data") { String::new() } else { format!(" --key {}", app.test_key) };
        let refused = run(&terminal, &format!("{file}{key}")).await.expect(1);
        assert_eq!(refused.err, format!("nuncio: {why}\n"), "{file}");
    }
    write(&terminal, "lines.ndjson", "email\n[1]\n{\"channels\": 1}\n");
    let rows = run(&terminal, &format!("contacts import lines.ndjson --json --key {}", app.test_key)).await.expect(1).json();
    let reason = |n: usize| rows["errors"][n]["reason"].as_str().expect("a reason");
    assert!(reason(0).starts_with("is not JSON: ") && reason(1) == "is not a JSON object", "{rows}");
    assert!(reason(2).starts_with("invalid type"), "{rows}");
    let none = run(&terminal, &format!("contacts import none.csv --key {}", app.test_key)).await.expect(1);
    assert!(none.err.starts_with("nuncio: none.csv: has no column named phone, email"), "{none:?}");
    // The first keys of two nodes are equal here.
    other.key(Environment::Test, &["*"]).await;
    let strange = run(&terminal, &with(&other.key(Environment::Test, &["*"]).await)).await.expect(1);
    assert!(strange.err.contains("API key") && !strange.err.contains("stopped"), "{strange:?}");
    let reader = app.key(Environment::Test, &["contacts:read"]).await;
    let refused = run(&terminal, &with(&reader)).await.expect(1);
    assert!(
        refused.err.contains("the import stopped; repeat the command to continue it") && refused.err.contains("contacts:write"),
        "{refused:?}"
    );
    run(&terminal, &format!("{} --server http://127.0.0.1:1", with(&app.test_key))).await.expect(3);
    let listed = run(&terminal, &format!("contacts list --json --key {}", app.test_key)).await.expect(0).json();
    assert_eq!(listed, json!([]), "nothing was added");
}

// holds: cli.files
#[tokio::test]
async fn contacts_move_to_another_environment_by_a_file() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    terminal.login(&app.key(Environment::Live, &["*"]).await).await;
    run(
        &terminal,
        "contacts create --env test --channel sms=+34600111222 --channel email=ana@example.org --name Ana,=1 --metadata plan=pro",
    )
    .await
    .expect(0);
    run(&terminal, "contacts create --env test --channel telegram=1234567").await.expect(0);
    run(&terminal, "contacts create --env test --channel voice=+34600111223 --name Eva").await.expect(0);
    let needs = run(&terminal, "contacts export").await.expect(1);
    assert!(needs.err.contains("set --env live or --env test"), "{needs:?}");
    let csv = run(&terminal, "contacts export --env test").await.expect(0).out;
    assert!(csv.starts_with("id,name,phone,email,whatsapp,telegram,instagram,voice,country,metadata\r\n"), "{csv}");
    assert!(
        csv.contains(",,,,,1234567,,,,\r\n") && csv.contains(",\"Ana,=1\",+34600111222,ana@example.org,,,,,ES,\"{\"\"plan\"\""),
        "{csv}"
    );
    let ndjson = run(&terminal, "contacts export --env test --json").await.expect(0).out;
    for (name, text, added) in [("all.csv", &csv, 3), ("all.ndjson", &ndjson, 0)] {
        write(&terminal, name, text);
        let answer = run(&terminal, &format!("contacts import {name} --env live --json")).await.expect(0).json();
        assert_eq!(counts(&answer), [&json!(3), &json!(added), &json!(3 - added), &json!(0)], "{name}: {answer}");
    }
    let moved = run(&terminal, "contacts list --env live --name Ana --json").await.expect(0).json();
    assert_eq!((&moved[0]["metadata"], &moved[0]["primaryEmail"]), (&json!({"plan": "pro"}), &json!("ana@example.org")), "{moved}");
    let called = run(&terminal, "contacts list --env live --name Eva --json").await.expect(0).json();
    let channels = called[0]["channels"].as_array().expect("channels");
    assert_eq!((channels.len(), &channels[0]["channel"]), (1, &json!("voice")), "only called, and no text: {called}");
}

// holds: cli.files
#[tokio::test]
async fn suppressions_are_imported_once_and_exported() {
    let app = TestApp::start().await;
    let terminal = Terminal::beside(&app).await;
    terminal.login(&app.test_key).await;
    write(&terminal, "list.txt", "600 111 222\nana@example.org\n+34600111223\n");
    let import = "suppressions import list.txt --countries ES --reason opt_out";
    assert_eq!(run(&terminal, import).await.expect(0).out, "3 rows: 3 added, 0 duplicates, 0 invalid.\n");
    let again = run(&terminal, &format!("{import} --json")).await.expect(0).json();
    assert_eq!(again, json!({"rows": 3, "added": 0, "duplicates": 3, "invalid": 0, "errors": []}));
    write(&terminal, "columns.csv", "phone,chat,channel,reason\n+34600111224,,,bounce\nnonsense,,,\n+34600111225,,pigeon,\n");
    let said = run(&terminal, "suppressions import columns.csv").await.expect(1);
    assert!(said.out.starts_with("3 rows: 1 added, 0 duplicates, 2 invalid.\nline 3: \"nonsense\" is not a phone number"), "{said:?}");
    assert!(said.out.contains("\nline 4: channel is \"pigeon\"; must be one of sms, "), "{said:?}");

    run(&terminal, "suppressions add 1234567 --channel telegram --reason complaint").await.expect(0);
    let no_id = run(&terminal, "suppressions remove +34600111222").await.expect(1);
    assert!(no_id.err.contains("give its ID (sup_…), which `nuncio suppressions list` shows"), "{no_id:?}");
    let csv = run(&terminal, "suppressions export").await.expect(0).out;
    assert!(csv.starts_with("identifier,channel,reason,senderId,source,createdAt\r\n") && csv.matches("\r\n").count() == 6, "{csv}");
    assert!(csv.contains("\r\n1234567,telegram,complaint,,") && csv.contains("\r\n+34600111222,,opt_out,,"), "{csv}");
    let ndjson = run(&terminal, "suppressions export --json").await.expect(0).out;
    terminal.login(&app.key(Environment::Live, &["*"]).await).await;
    for (name, text, added) in [("all.csv", &csv, 5), ("all.ndjson", &ndjson, 0)] {
        write(&terminal, name, text);
        let answer = run(&terminal, &format!("suppressions import {name} --env live --json")).await.expect(0).json();
        assert_eq!(counts(&answer), [&json!(5), &json!(added), &json!(5 - added), &json!(0)], "{name}: {answer}");
    }
}
