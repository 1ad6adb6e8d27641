//! Recipients from files, and texts with variables.

use axum::body::{Body, Bytes};
use futures::stream;
use nuncio::client::World;
use nuncio::client::import::{ImportFile, summary};
use nuncio_testkit::{Backend, TestApp, TestResponse};
use serde_json::{Value, json};

use crate::broadcasts::{act, add, contacts, counts, draft, finish, get, phones, status, text};

async fn import(app: &TestApp, id: &str, query: &str, kind: &str, file: impl Into<Body>) -> TestResponse {
    let auth = format!("Bearer {}", app.test_key);
    let headers = [("authorization", auth.as_str()), ("content-type", kind)];
    app.raw("POST", &format!("/v1/broadcasts/{id}/contacts/import?{query}"), &headers, file).await
}

const CSV: &str = "text/csv; charset=utf-8";

// holds: broadcasts.import
#[tokio::test]
async fn a_file_of_recipients_is_imported() {
    for app in TestApp::on_each().await {
        let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Hello {{name}} from Acme"})).await;
        app.post("/v1/suppressions", json!({"identifier": "+34600111223"})).await.expect(201);
        let file =
            "\u{feff}nombre;Móvil;secreto\nAda;600 111 222;1\nBo;+34 600-111-223;2\nCy;+34600111222;3\nDi;nonsense;4\nEd;600111224\n";
        let answer = import(&app, &id, "countries=ES&columns=nombre:name", CSV, file).await.expect(201).json();
        let numbers = ["rows", "added", "duplicates", "invalid", "suppressed", "resumedAfter"].map(|name| answer[name].as_u64());
        assert_eq!(numbers, [5, 2, 1, 2, 1, 0].map(Some), "{answer}");
        assert_eq!((&answer["errors"][0]["line"], &answer["errors"][0]["recipient"]), (&json!(5), &json!("nonsense")));
        assert!(answer["errors"][1]["reason"].as_str().is_some_and(|reason| reason.contains("2 cells")), "{answer}");
        let listed = contacts(&app, &id, "").await;
        let variables = |contact: &Value| contact["variables"]["templateVariables"].clone();
        assert_eq!(listed.iter().map(variables).collect::<Vec<_>>(), [json!({"name": "Bo"}), json!({"name": "Ada"})]);
        let lines = "{\"phone\": \"+34600111225\", \"name\": \"Flo\"}\n{\"recipient\": \"+34600111226\", \"templateVariables\": {\"name\": \"Gil\"}}";
        let answer = import(&app, &id, "", "application/x-ndjson", lines).await.expect(201).json();
        assert_eq!(answer["added"], 2, "{answer}");
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        assert_eq!(counts(&get(&app, &id).await), [4, 0, 0, 3, 0, 1]);
        let texts: Vec<_> = app.get("/v1/messages?status=delivered").await.json()["items"]
            .as_array()
            .expect("messages")
            .iter()
            .map(|m| m["text"].clone())
            .collect();
        assert!(texts.contains(&json!("Hello Ada from Acme")) && texts.contains(&json!("Hello Gil from Acme")), "{texts:?}");
        import(&app, &id, "", CSV, "phone\n+34600111229\n").await.expect(400);
    }
}

// holds: broadcasts.import
#[tokio::test]
async fn what_is_wrong_with_an_import_is_told() {
    let app = TestApp::start().await;
    let id = text(&app).await;
    let path = |answer: TestResponse| answer.json()["details"]["errors"][0]["path"].as_str().unwrap_or_default().to_owned();
    let wrong = [
        ("countries=Spain", CSV, "phone\n1\n", "query.countries"),
        ("columns=x", CSV, "phone\n1\n", "query.columns"),
        ("recipient=x", CSV, "phone\n1\n", "query.recipient"),
        ("", CSV, "a,b\n1,2\n", "query.recipient"),
        ("", CSV, "", "body"),
        ("importId=", CSV, "phone\n1\n", "query.importId"),
    ];
    for (query, kind, file, field) in wrong {
        assert_eq!(path(import(&app, &id, query, kind, file).await.expect(400)), field, "{query} {kind} {file}");
    }
    let other = import(&app, &id, "", "application/json", "{}").await.expect(415).json();
    assert_eq!(other["code"], "unsupported_media_type");
    let auth = format!("Bearer {}", app.test_key);
    let headers = [("authorization", auth.as_str()), ("content-type", CSV), ("content-encoding", "gzip")];
    let zipped = app.raw("POST", &format!("/v1/broadcasts/{id}/contacts/import"), &headers, b"\x1f\x8b".to_vec()).await.expect(415);
    assert!(zipped.text.contains("Content-Encoding"), "{}", zipped.text);
    import(&app, "brd_01hgw2bbg0e9tatjpp9vyrkcyk", "", CSV, "phone\n1\n").await.expect(404);
    let numbers = import(&app, &id, "countries=ES,FR", CSV, "phone\n612 345 678\n612\n+34600111222\n").await.expect(201).json();
    let reason = |n: usize| numbers["errors"][n]["reason"].as_str().unwrap_or_default().to_owned();
    assert_eq!(numbers["added"], 1, "{numbers}");
    assert!(reason(0).contains("is ambiguous: ") && reason(1).contains("is not a phone number"), "{numbers}");
    let id = draft(&app, json!({"name": "News", "channel": "sms", "text": "Hello {{name}} from Acme"})).await;
    let nul = import(&app, &id, "", CSV, "phone,name\n+34600111222,a\0b\n").await.expect(201);
    assert!(nul.text.contains("U+0000"), "{}", nul.text);
    assert!(contacts(&app, &id, "").await.is_empty());
    let template = json!({"name": "hi", "language": "en", "body": "Hello {{name}}, says Acme"});
    let template = app.post("/v1/templates", template).await.expect(201).json()["id"].clone();
    let id = draft(&app, json!({"name": "x", "channel": "sms", "messageType": "template", "content": {"templateId": template}})).await;
    let nul = import(&app, &id, "", CSV, "phone,name\n+34600111222,a\0b\n").await.expect(201);
    assert!(nul.text.contains("U+0000"), "{}", nul.text);
    assert!(contacts(&app, &id, "").await.is_empty());
}

#[tokio::test]
async fn a_row_of_empty_cells_alone_is_too_long_at_some_time() {
    let app = TestApp::start().await;
    let id = text(&app).await;
    for head in ["phone\n+34600111222\n", "phone"] {
        let refused = import(&app, &id, "", CSV, head.to_owned() + &",".repeat(1 << 20)).await.expect(400);
        assert!(refused.text.contains("cells"), "{}", refused.text);
    }
}

/// Filled, the text would take 100 MB and the HTML 600 MB.
#[tokio::test]
async fn values_that_make_a_text_too_long_are_found_before_it_is_filled() {
    let app = TestApp::start().await;
    let long = "{{a}}".repeat(100_000);
    let value = "\"".repeat(1_024);
    for (field, bytes) in [("emailHtmlBody", 100_000 * 1_024 * 6), ("text", 100_000 * 1_024)] {
        let id = draft(&app, json!({"name": "x", "channel": "email", "emailSubject": "s", field: long})).await;
        let given = json!({"contacts": [{"recipient": "ada@example.net", "templateVariables": {"a": value}}]});
        app.post(&format!("/v1/broadcasts/{id}/contacts"), given).await.expect(201);
        let refused = app.post(&format!("/v1/broadcasts/{id}/preview"), json!({})).await.expect(400).json();
        let error = &refused["details"]["errors"][0];
        assert_eq!(error["path"], field, "{refused}");
        assert!(error["message"].as_str().is_some_and(|text| text.starts_with(&format!("is {bytes} bytes of UTF-8 with"))), "{refused}");
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("failed"), [1, 0, 0, 0, 1, 0]), "{broadcast}");
    }
}

/// The connection fails after most of the file. Sending the file again under the same name resumes, without duplicates.
// holds: broadcasts.import.resume
#[tokio::test]
async fn an_import_that_was_cut_off_goes_on() {
    for app in TestApp::on_each().await {
        let id = text(&app).await;
        let rows = 20_000;
        let file: String = std::iter::once("phone,note\n".to_owned())
            .chain(phones(rows).map(|phone| format!("{phone},something to make it long\n")))
            .collect();
        let cut = file.len() * 3 / 4;
        let mut pieces: Vec<Result<Bytes, std::io::Error>> =
            file.as_bytes()[..cut].chunks(10_000).map(|piece| Ok(Bytes::copy_from_slice(piece))).collect();
        pieces.push(Err(std::io::Error::other("the line is dead")));
        import(&app, &id, "importId=one", CSV, Body::from_stream(stream::iter(pieces))).await.expect(400);
        let there = get(&app, &id).await["totalContacts"].as_u64().expect("a number");
        assert!(there > 5_000 && there < 15_000, "{there}");
        let answer = import(&app, &id, "importId=one", CSV, file.clone()).await.expect(201).json();
        let numbers = ["rows", "added", "duplicates", "invalid", "resumedAfter"].map(|name| answer[name].as_u64());
        assert_eq!(numbers, [rows as u64, rows as u64, 0, 0, there].map(Some), "{answer}");
        let again = import(&app, &id, "importId=one", CSV, file.clone()).await.expect(201).json();
        assert_eq!((&again["rows"], &again["resumedAfter"]), (&json!(rows), &json!(rows)));
        let other = import(&app, &id, "importId=two", CSV, file).await.expect(201).json();
        assert_eq!((&other["added"], &other["duplicates"]), (&json!(0), &json!(rows)));
        assert_eq!(get(&app, &id).await["totalContacts"], rows);
    }
}

// holds: broadcasts.variables
#[tokio::test]
async fn nobody_gets_a_text_with_a_gap() {
    for app in TestApp::on_each().await {
        let body = json!({"name": "x", "channel": "smart", "text": "Hello {{name}}, says {{shop}}", "variables": {"shop": "Acme"},
            "emailSubject": "For {{name}}", "emailHtmlBody": "<p title=\"{{name}}\">{{shop}}</p>"});
        let id = draft(&app, body).await;
        add(&app, &id, ["+34600111222".to_owned()]).await;
        let contact = |to: &str, values: Value| json!({"contacts": [{"recipient": to, "templateVariables": values}]});
        let path = format!("/v1/broadcasts/{id}/contacts");
        app.post(&path, contact("ada@example.org", json!({"name": "<b>Ada</b>", "shop": "Ada's"}))).await.expect(201);
        let refused = act(&app, &id, "send").await.expect(400).json();
        assert_eq!(refused["details"]["errors"][0]["path"], "contacts[+34600111222].templateVariables.name", "{refused}");
        assert_eq!((status(&app, &id).await.as_str(), refused["details"]["errors"].as_array().map(Vec::len)), ("draft", Some(1)));
        app.request("PATCH", &format!("/v1/broadcasts/{id}"), Some(json!({"variables": {"shop": "Acme", "name": "friend"}})))
            .await
            .expect(200);
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        assert_eq!(counts(&get(&app, &id).await), [2, 0, 0, 2, 0, 0]);
        let sent = app.get("/v1/messages").await.json();
        let of = |to: &str| sent["items"].as_array().expect("messages").iter().find(|m| m["to"] == to).cloned().expect("a message");
        assert_eq!(of("+34600111222")["text"], "Hello friend, says Acme");
        let mail = app.message(of("ada@example.org")["id"].as_str().expect("an id")).await;
        assert_eq!((&mail["text"], &mail["subject"]), (&json!("Hello <b>Ada</b>, says Ada's"), &json!("For <b>Ada</b>")));
        assert_eq!(mail["htmlBody"], "<p title=\"&lt;b&gt;Ada&lt;/b&gt;\">Ada&#39;s</p>");
    }
    let app = TestApp::start().await;
    let template =
        json!({"name": "x", "channel": "sms", "messageType": "template", "content": {"templateId": "tpl_x"}, "variables": {"a": "b"}});
    assert_eq!(app.post("/v1/broadcasts", template).await.status.as_u16(), 400);
}

// holds: broadcasts.compose
#[tokio::test]
async fn a_broadcast_is_seen_tried_and_copied_before_it_goes_out() {
    for backend in Backend::all() {
        let app = crate::money::with_prices(backend).await;
        let id = draft(&app, json!({"name": "x", "channel": "smart", "text": "Hello {{name}} from Acme", "emailSubject": "News"})).await;
        let path = format!("/v1/broadcasts/{id}");
        assert_eq!(app.post(&format!("{path}/preview"), json!({})).await.expect(400).json()["code"], "no_contacts");
        let contacts = json!({"contacts": [
            {"recipient": "+34600111222", "templateVariables": {"name": "Ada"}},
            {"recipient": "+34600111223", "templateVariables": {"name": "Bo ☺"}},
            {"recipient": "ada@example.org", "templateVariables": {"name": "Ada"}},
            {"recipient": "+34600111224"},
        ]});
        app.post(&format!("{path}/contacts"), contacts).await.expect(201);
        let listed = self::contacts(&app, &id, "").await;
        let id_of = |to: &str| listed.iter().find(|c| c["recipient"] == to).expect("a contact")["id"].clone();
        let preview = async |asked: Value| app.post(&format!("{path}/preview"), asked).await;
        let seen = preview(json!({"contactId": id_of("+34600111223")})).await.expect(200).json();
        assert_eq!((&seen["text"], &seen["plan"]["encoding"]), (&json!("Hello Bo ☺ from Acme"), &json!("ucs2")), "{seen}");
        let seen =
            preview(json!({"contact": {"recipient": "eve@example.org", "templateVariables": {"name": "Eve"}}})).await.expect(200).json();
        assert_eq!((&seen["subject"], &seen["plan"]["channel"]), (&json!("News"), &json!("email")), "{seen}");
        preview(json!({"contactId": id_of("+34600111224")})).await.expect(400);
        preview(json!({"contactId": "bct_01hgw2bbg0e9tatjpp9vyrkcyk"})).await.expect(404);
        let estimate = app.get(&format!("{path}/estimate")).await.expect(200).json();
        assert_eq!((&estimate["recipients"], &estimate["unsendable"][0]["recipients"]), (&json!(4), &json!(1)), "{estimate}");
        let sms = estimate["channels"].as_array().expect("channels").iter().find(|c| c["channel"] == "sms").expect("sms");
        assert_eq!((&sms["recipients"], &sms["segments"], &sms["estimatedCost"]), (&json!(2), &json!(2), &json!(0.07)), "{estimate}");
        assert_eq!(app.get("/v1/messages").await.json()["items"], json!([]), "nothing was sent");
        let tried =
            app.post(&format!("{path}/test"), json!({"to": "+34600999999", "contactId": id_of("+34600111222")})).await.expect(202).json();
        assert_eq!(tried["message"]["text"], "Hello Ada from Acme");
        assert_eq!(
            app.post(&format!("{path}/test"), json!({"to": "nonsense"})).await.expect(400).json()["details"]["errors"][0]["path"],
            "to"
        );
        app.drain().await;
        assert_eq!(counts(&get(&app, &id).await), [4, 4, 0, 0, 0, 0]);
        let copy = app.post(&format!("{path}/clone"), json!({"name": "again"})).await.expect(201).json()["broadcast"].clone();
        assert_eq!(
            (&copy["name"], &copy["text"], &copy["totalContacts"]),
            (&json!("again"), &json!("Hello {{name}} from Acme"), &json!(0))
        );
        assert_ne!(copy["id"], json!(id));
    }
}

// holds: broadcasts.results
#[tokio::test]
async fn results_are_exported_whole() {
    for app in TestApp::on_each().await {
        let id = text(&app).await;
        for chunk in phones(1_200).collect::<Vec<_>>().chunks(600) {
            add(&app, &id, chunk.to_vec()).await;
        }
        add(&app, &id, ["+12125550001".to_owned()]).await;
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        let csv = app.get(&format!("/v1/broadcasts/{id}/results")).await.expect(200);
        assert_eq!((csv.header("content-type"), csv.text.lines().count()), ("text/csv; charset=utf-8", 1_202));
        let failed = csv.text.lines().find(|line| line.contains("+12125550001")).expect("the recipient");
        assert!(failed.contains(",phone,failed,sms,msg_") && failed.contains(",invalid_recipient,"), "{failed}");
        let lines = app.get(&format!("/v1/broadcasts/{id}/results?format=ndjson")).await.expect(200).text;
        let items: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
        assert_eq!((items.len(), items.iter().filter(|item| item["status"] == "delivered").count()), (1_201, 1_200));
        let other = app.get(&format!("/v1/broadcasts/{id}/results?format=xml")).await.expect(400).json();
        assert_eq!(other["message"], "query.format: is \"xml\"; must be one of csv, ndjson");
        let auth = format!("Bearer {}", app.test_key);
        let (csv, ndjson) = ("text/csv; charset=utf-8", "application/x-ndjson");
        for (accept, kind) in [
            ("text/csv", csv),
            ("application/x-ndjson", ndjson),
            ("application/json", csv),
            ("*/*", csv),
            ("application/x-ndjson, */*", ndjson),
            ("text/csv;q=0.5, application/x-ndjson", ndjson),
            ("text/csv, application/x-ndjson", csv),
        ] {
            let headers = [("authorization", auth.as_str()), ("accept", accept)];
            let sent = app.send("GET", &format!("/v1/broadcasts/{id}/results"), &headers, None).await.expect(200);
            assert_eq!(sent.header("content-type"), kind, "{accept}");
        }
        let headers = [("authorization", auth.as_str()), ("accept", "text/html")];
        app.send("GET", &format!("/v1/broadcasts/{id}/results"), &headers, None).await.expect(406);
    }
}

// holds: broadcasts.import
#[tokio::test]
async fn the_command_line_imports_a_file() {
    let app = TestApp::start().await;
    let server = format!("http://{}", app.listen().await).parse().expect("a URL");
    let world = World::new(server, app.test_key.clone()).expect("a key");
    let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Hello {{name}}"})).await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("people.csv");
    let rows: String = phones(5_000).map(|phone| format!("{phone},Ada\n")).collect();
    std::fs::write(&file, format!("phone,nombre\n{rows}nonsense,Bo\n")).expect("a file");
    let query = vec![("columns", "nombre:name".to_owned())];
    let import = ImportFile { world, broadcast: id.clone(), file, query };
    let sent = std::sync::Arc::new(std::sync::atomic::AtomicU64::new(0));
    let seen = std::sync::Arc::clone(&sent);
    let answer = import.send(move |bytes| seen.store(bytes, std::sync::atomic::Ordering::Relaxed)).await.expect("it is taken");
    assert_eq!((&answer["added"], &answer["invalid"]), (&json!(5_000), &json!(1)), "{answer}");
    assert!(summary(&answer).ends_with("line 5002: \"nonsense\" is not a recipient; expected an E.164 phone number such as +34600111222, an email address, or a numeric chat id"), "{}", summary(&answer));
    assert!(sent.load(std::sync::atomic::Ordering::Relaxed) > 50_000, "progress is told");
    let again = import.send(|_| ()).await.expect("it is taken");
    assert_eq!((&again["added"], &again["resumedAfter"]), (&json!(5_000), &json!(5_001)), "the same file is the same import: {again}");
    let wrong =
        ImportFile { broadcast: "brd_01hgw2bbg0e9tatjpp9vyrkcyk".to_owned(), ..import }.send(|_| ()).await.expect_err("no such broadcast");
    assert!(wrong.to_string().contains("404"), "{wrong}");
}
