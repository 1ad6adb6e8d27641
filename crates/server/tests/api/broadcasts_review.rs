//! Review of broadcasts: approval, rejection, escalation.

use std::time::Duration;

use nuncio::admin::{self, Command};
use nuncio_core::broadcasts::Reviewer;
use nuncio_domain::broadcast::{BroadcastType, Status};
use nuncio_domain::message::Content;
use nuncio_testkit::{Backend, Options, Receiver, TestApp};
use serde_json::{Value, json};

use crate::broadcasts::{act, add, contacts, counts, draft, finish, get, messages, now, phones, status, text, told};

// holds: broadcasts.send.empty, broadcasts.transitions
#[tokio::test]
async fn what_cannot_go_out_is_said_before_and_after() {
    let app = TestApp::start().await;
    let id = text(&app).await;
    assert_eq!(act(&app, &id, "send").await.expect(400).json()["code"], "no_contacts");
    for verb in ["pause", "resume", "escalate", "retry-review"] {
        assert_eq!(act(&app, &id, verb).await.expect(400).json()["details"]["currentStatus"], "draft", "{verb}");
    }
    let path = format!("/v1/broadcasts/{id}/schedule");
    app.request("PATCH", &path, Some(json!({"scheduledAt": "2026-02-01T00:00:00Z"}))).await.expect(400);
    let live = format!("Bearer {}", app.live_key);
    let auth = [("authorization", live.as_str())];
    let made =
        app.send("POST", "/v1/broadcasts", &auth, Some(json!({"name": "x", "channel": "sms", "text": "x"}))).await.expect(201).json();
    let path = format!("/v1/broadcasts/{}", made["broadcast"]["id"].as_str().expect("an id"));
    let contacts = json!({"contacts": [{"recipient": "+34600111222"}]});
    app.send("POST", &format!("{path}/contacts"), &auth, Some(contacts)).await.expect(201);
    let refused = app.send("POST", &format!("{path}/send"), &auth, None).await.expect(400).json();
    assert_eq!(refused["code"], "sender_not_configured");
    // No recipient can be reached: on WhatsApp, outside the window. The broadcast fails, with a reason for each.
    let id = draft(&app, json!({"name": "x", "channel": "whatsapp", "text": "Hello"})).await;
    add(&app, &id, ["+12125550009".to_owned()]).await;
    act(&app, &id, "send").await.expect(202);
    finish(&app).await;
    let broadcast = get(&app, &id).await;
    assert_eq!((broadcast["status"].as_str(), counts(&broadcast)), (Some("failed"), [1, 0, 0, 0, 1, 0]));
    assert_eq!(self::contacts(&app, &id, "&status=failed").await[0]["errorCode"], "window_closed");
    // The provider rejects all messages: nothing was sent, either.
    let id = text(&app).await;
    add(&app, &id, ["+12125550001".to_owned(), "+12135550001".to_owned()]).await;
    act(&app, &id, "send").await.expect(202);
    finish(&app).await;
    assert_eq!(status(&app, &id).await, "failed");
}

// holds: broadcasts.review, broadcasts.retry_review, broadcasts.escalate, broadcasts.transitions
#[tokio::test]
async fn a_rejected_broadcast_is_edited_reviewed_again_and_escalated() {
    for app in TestApp::on_each().await {
        let bad = "Please reply with your password to win";
        let id = draft(&app, json!({"name": "x", "channel": "sms", "text": bad})).await;
        add(&app, &id, phones(2)).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        let broadcast = get(&app, &id).await;
        assert_eq!((broadcast["status"].as_str(), broadcast["reviewAttempts"].as_i64()), (Some("rejected"), Some(1)));
        let review = &broadcast["reviewResult"];
        assert!(review["score"].as_f64().is_some_and(|s| s < 0.6) && review["reviewedAt"].is_string(), "{review}");
        assert_eq!(review["flaggedContent"], json!([bad]));
        assert!(review["categories"].as_array().is_some_and(|c| c.contains(&json!("credential_request"))), "{review}");
        assert_eq!(counts(&broadcast), [2, 2, 0, 0, 0, 0]);
        let refused = act(&app, &id, "retry-review").await.expect(400).json();
        assert_eq!((refused["code"].as_str(), refused["details"]["currentStatus"].as_str()), (Some("invalid_request"), Some("rejected")));
        let path = format!("/v1/broadcasts/{id}");
        app.request("PATCH", &path, Some(json!({"name": "another name"}))).await.expect(200);
        act(&app, &id, "retry-review").await.expect(400); // a name is not content
        for attempt in 2..=3 {
            app.request("PATCH", &path, Some(json!({"text": format!("{bad} {attempt}")}))).await.expect(200);
            assert_eq!(act(&app, &id, "retry-review").await.expect(200).json()["broadcast"]["status"], "pending_review");
            app.drain().await;
            assert_eq!((status(&app, &id).await.as_str(), get(&app, &id).await["reviewAttempts"].as_i64()), ("rejected", Some(attempt)));
        }
        app.request("PATCH", &path, Some(json!({"text": "Hello from Acme"}))).await.expect(200);
        assert_eq!(act(&app, &id, "retry-review").await.expect(400).json()["code"], "review_attempts_exhausted");
        assert_eq!(act(&app, &id, "escalate").await.expect(200).json()["broadcast"]["status"], "escalated");
        act(&app, &id, "escalate").await.expect(400);
        let listed = admin(&app, Command::ReviewsList).await;
        assert!(listed.text.contains(&id), "{}", listed.text);
        let edited = "review: The content was changed after this review. ";
        assert!(listed.text.contains(edited), "{}", listed.text);
        admin(&app, Command::ReviewsDecide { id: id.clone(), approve: true, reason: Some("a game".into()) }).await;
        finish(&app).await;
        assert_eq!(status(&app, &id).await, "completed");
        assert!(get(&app, &id).await["reviewResult"]["reasoning"].as_str().is_some_and(|r| r.contains("a game")));
        let told = told(&app, &id).await;
        assert_eq!(told[told.len() - 4..], ["escalated", "approved", "sending", "completed"]);
    }
}

// holds: broadcasts.retry_review, broadcasts.escalate
#[tokio::test]
async fn a_template_that_changed_after_the_rejection_is_other_content() {
    for app in TestApp::on_each().await {
        let id = rejected_template(&app, "Please reply with your password to win").await;
        act(&app, &id, "retry-review").await.expect(400); // it has not changed yet
        edit_template(&app, &id, "Please confirm your PIN by SMS").await;
        let escalated = act(&app, &id, "escalate").await.expect(200).json();
        let reasoning = escalated["broadcast"]["reviewResult"]["reasoning"].as_str().unwrap_or_default().to_owned();
        assert!(reasoning.starts_with("The content was changed after this review. "), "{reasoning}");
        // What is approved is what was seen.
        edit_template(&app, &id, "Hello from Acme").await;
        assert!(app.node.core.broadcasts().decide_review(app.tenant(), &id, true, None).await.is_err());

        let id = rejected_template(&app, "Please reply with your password to play").await;
        edit_template(&app, &id, "Hello from Acme").await;
        act(&app, &id, "retry-review").await.expect(200);
        finish(&app).await;
        assert_eq!(status(&app, &id).await, "completed");
    }
}

/// Creates a broadcast of a template, which the review rejects.
async fn rejected_template(app: &TestApp, body: &str) -> String {
    let name = format!("hi_{}", body.len());
    let template = app.post("/v1/templates", json!({"name": name, "language": "en", "body": body})).await.expect(201).json();
    let content = json!({"templateId": template["id"]});
    let id = draft(app, json!({"name": "x", "channel": "sms", "messageType": "template", "content": content})).await;
    let values = if body.contains("{{1}}") { json!({"1": "bank"}) } else { json!({}) };
    assert!(is_rejected_with(app, &id, json!([{"recipient": "+34600111222", "templateVariables": values}])).await, "{body}");
    id
}

async fn edit_template(app: &TestApp, broadcast: &str, body: &str) {
    let template = get(app, broadcast).await["content"]["templateId"].as_str().expect("a template").to_owned();
    app.request("PATCH", &format!("/v1/templates/{template}"), Some(json!({"body": body}))).await.expect(200);
}

// holds: broadcasts.send.empty
#[tokio::test]
async fn a_sender_without_any_channel_of_it_cannot_send_a_broadcast() {
    let app = TestApp::start().await;
    let sender = app.post("/v1/senders", json!({"name": "Shop"})).await.expect(201).json()["id"].as_str().expect("an id").to_owned();
    let draft = async |channel: &str, text: &str| {
        let id = draft(&app, json!({"name": "x", "channel": channel, "text": text, "senderId": sender})).await;
        add(&app, &id, phones(1)).await;
        id
    };
    let rejected = draft("sms", "Please reply with your password to win").await;
    act(&app, &rejected, "send").await.expect(202);
    app.drain().await;
    let smart = draft("smart", "Hello from Acme").await;
    for channel in ["whatsapp", "sms", "sms_oneway", "email"] {
        app.request("DELETE", &format!("/v1/senders/{sender}/channels/{channel}"), None).await.expect(204);
    }
    app.request("PATCH", &format!("/v1/broadcasts/{rejected}"), Some(json!({"text": "Hello from Acme"}))).await.expect(200);
    for (id, verb) in [(&smart, "send"), (&rejected, "retry-review")] {
        assert_eq!(act(&app, id, verb).await.expect(400).json()["code"], "sender_not_configured", "{verb}");
    }
    assert_eq!((status(&app, &smart).await, status(&app, &rejected).await), ("draft".to_owned(), "rejected".to_owned()));
}

// holds: broadcasts.escalate
#[tokio::test]
async fn what_an_operator_refuses_is_over() {
    let app = TestApp::start().await;
    let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Buy cocaine now"})).await;
    add(&app, &id, phones(1)).await;
    act(&app, &id, "send").await.expect(202);
    app.drain().await;
    let escalated = act(&app, &id, "escalate").await.expect(200).json();
    assert_eq!(escalated["broadcast"]["reviewResult"]["reasoning"], get(&app, &id).await["reviewResult"]["reasoning"]);
    assert!(!escalated.to_string().contains("was changed after this review"), "{escalated}");
    let core = &app.node.core;
    assert!(core.broadcasts().decide_review(app.project.live, &id, false, None).await.is_err(), "another world");
    assert_eq!(core.broadcasts().decide_review(app.tenant(), &id, false, Some("no")).await.expect("refused").status, Status::RejectedFinal);
    assert!(core.broadcasts().decide_review(app.tenant(), &id, true, None).await.is_err());
    assert_eq!(counts(&get(&app, &id).await), [1, 0, 0, 0, 0, 1], "it will get nothing");
    let skipped = contacts(&app, &id, "&status=skipped").await;
    assert_eq!((skipped.len(), skipped[0]["status"].as_str()), (1, Some("skipped")));
    assert!(skipped[0]["processedAt"].is_string() && contacts(&app, &id, "&status=pending").await.is_empty(), "{skipped:?}");
    let progress = app.get(&format!("/v1/broadcasts/{id}/progress")).await.expect(200).json();
    assert_eq!((&progress["skipped"], &progress["percentComplete"]), (&json!(1), &json!(100)), "{progress}");
    let statistics = app.get(&format!("/v1/broadcasts/{id}/statistics")).await.expect(200).json();
    assert_eq!(statistics["countries"][0]["skipped"], 1, "{statistics}");
    for verb in ["send", "cancel", "escalate", "retry-review", "resume"] {
        act(&app, &id, verb).await.expect(400);
    }
    assert!(messages(&app).await.is_empty());
}

// holds: broadcasts.escalate
#[tokio::test]
async fn broadcasts_of_all_projects_are_listed_with_what_they_say() {
    for app in TestApp::on_each().await {
        let core = &app.node.core;
        assert!(!admin(&app, Command::Doctor).await.text.contains("for your review"));
        let id = rejected_template(&app, "Please reply with your {{1}} password").await;
        act(&app, &id, "escalate").await.expect(200);
        // The same broadcast in another project, with the content of an email.
        let other = core.projects().create("Shop", None).await.expect("a project");
        let mut tx = app.store().begin().await.expect("a transaction");
        let mut mail = tx.find_broadcast(app.tenant(), id.parse().expect("an id")).await.expect("it works").expect("it is there");
        (mail.tenant, mail.id, mail.message_type) = (other.live, core.ids().next(), BroadcastType::Document);
        mail.html = Some("<p>Win <b>now</b></p>".to_owned());
        mail.body.email_subject = Some("News".to_owned());
        mail.body.content = Some(Box::new(Content { media_url: Some("https://acme.example/a.pdf".to_owned()), ..Content::default() }));
        tx.insert_broadcast(&mail).await.expect("it works");
        tx.commit().await.expect("it works");

        let listed = admin(&app, Command::ReviewsList).await;
        for part in [
            id.as_str(),
            "  text: \"Please reply with your bank password\"\n  text: \"Please reply with your {{1}} password\"",
            "\"Shop\" live",
            "  subject: \"News\"",
            "  html: \"Win now\"",
            "  text: \"https://acme.example/a.pdf\"",
        ] {
            assert!(listed.text.contains(part), "{part}: {}", listed.text);
        }
        let mut projects: Vec<_> = listed.json.as_array().expect("a list").iter().map(|item| item["project"].clone()).collect();
        projects.sort_by_key(ToString::to_string);
        assert_eq!((projects.len(), &projects[0]), (2, &json!("Shop")), "{}", listed.json);
        let doctor = admin(&app, Command::Doctor).await.text;
        assert!(doctor.contains("2 broadcasts wait for your review; see `nuncio reviews list`"), "{doctor}");
        let request = admin::Request { project: Some("Shop".to_owned()), command: Command::ReviewsList };
        assert_eq!(admin::run(core, request).await.expect("it works").json.as_array().map(Vec::len), Some(1));
        admin(&app, Command::ReviewsDecide { id: mail.id.to_string(), approve: false, reason: None }).await;
        assert!(!admin(&app, Command::ReviewsList).await.text.contains("Shop"));
    }
}

// holds: broadcasts.review.export
#[tokio::test]
async fn what_a_person_decided_is_exported_as_an_example() {
    for app in TestApp::on_each().await {
        let bad = "Buy cocaine now";
        let id = draft(&app, json!({"name": "x", "channel": "sms", "text": bad})).await;
        add(&app, &id, phones(1)).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        act(&app, &id, "escalate").await.expect(200);
        assert_eq!(admin(&app, Command::ReviewsExport { env: None }).await.text, "", "nothing is decided yet");
        admin(&app, Command::ReviewsDecide { id: id.clone(), approve: false, reason: Some("drugs".into()) }).await;
        let text = admin(&app, Command::ReviewsExport { env: None }).await.text;
        let example: Value = serde_json::from_str(&text).expect("one line of JSON");
        assert_eq!([&example["approved"], &example["reason"], &example["text"]], [&json!(false), &json!("drugs"), &json!(bad)]);
        assert_eq!(example["reviewResult"]["version"], get(&app, &id).await["reviewResult"]["version"]);
    }
}

// holds: broadcasts.review.policy
#[tokio::test]
async fn a_project_has_a_policy_of_its_own() {
    for app in TestApp::on_each().await {
        let verdict = async |text: &str| {
            let id = draft(&app, json!({"name": "x", "channel": "sms", "text": text})).await;
            add(&app, &id, phones(1)).await;
            act(&app, &id, "send").await.expect(202);
            app.drain().await;
            (status(&app, &id).await == "rejected", get(&app, &id).await["reviewResult"].clone())
        };
        let (short, casual) =
            ("Acme: the minutes of our meeting are at https://bit.ly/3xYz12", "Acme: our Übermut party is on Friday at 8 pm.");
        for text in [short, casual] {
            assert!(!verdict(text).await.0, "{text}");
        }
        set_policy(&app, Some(0.9), Some("übermut"), None).await.expect("a policy");
        let (refused, review) = verdict(casual).await;
        assert!(refused && review["categories"] == json!(["blocked_word"]) && review["flaggedContent"] == json!(["Übermut"]), "{review}");
        assert!(verdict(short).await.0, "the threshold is higher now");
        let shown = set_policy(&app, None, None, Some("bit.ly")).await.expect("a policy");
        assert!(shown.text.contains("0.9") && shown.text.contains("bit.ly"), "{}", shown.text);
        let (refused, review) = verdict(short).await;
        assert!(!refused, "the domain is allowed: {review}");
        for (threshold, words, domains) in [(Some(1.1), None, None), (None, Some(" "), None), (None, None, Some("no domain"))] {
            assert!(set_policy(&app, threshold, words, domains).await.is_err());
        }
        // The limit is on characters. A domain with a dot at an end would match no link.
        let (long, longer) = ("щ".repeat(100), "щ".repeat(101));
        set_policy(&app, None, Some(&long), None).await.expect("100 characters");
        for (word, domain) in [(Some(longer.as_str()), None), (None, Some(".acme.example")), (None, Some("acme.example."))] {
            assert_eq!(set_policy(&app, None, word, domain).await.expect_err("wrong").code().status(), 400, "{word:?} {domain:?}");
        }
        for word in ["🎰", "$$$"] {
            let error = set_policy(&app, None, Some(word), None).await.expect_err("it would match everything");
            assert!(error.code().status() == 400 && error.to_string().contains(word), "{error}");
        }
        assert_eq!(app.node.core.broadcasts().review_policy(app.project.live).await.expect("a policy").threshold, 0.6, "the other world's");
    }
}

#[tokio::test]
async fn what_each_recipient_sees_is_reviewed() {
    for app in TestApp::on_each().await {
        let one = |to: &str, values: Value| json!([{"recipient": to, "templateVariables": values}]);
        let html = "<p>{{note}}</p><a href=\"{{page}}\">Read</a>";
        let mail = json!({"name": "x", "channel": "email", "text": "Hello from Acme", "emailSubject": "News", "emailHtmlBody": html});
        for (note, page, bad) in [
            ("Good day", "https://acme.example", false),
            ("Please reply with your password", "https://acme.example", true),
            ("Good day", "http://185.220.101.4/bank", true),
        ] {
            let contacts = one("ada@example.org", json!({"note": note, "page": page}));
            assert_eq!(is_rejected(&app, mail.clone(), contacts).await, bad, "{note} {page}");
        }
        let template = json!({"name": "hi", "language": "en", "body": "Acme: {{1}} name and {{2}} today."});
        let template = app.post("/v1/templates", template).await.expect(201).json()["id"].clone();
        let body = json!({"name": "x", "channel": "sms", "messageType": "template", "content": {"templateId": template}});
        for (second, bad) in [("address", false), ("your password", true)] {
            let contacts = one("+34600111222", json!({"1": "please confirm your", "2": second}));
            assert_eq!(is_rejected(&app, body.clone(), contacts).await, bad, "{second}");
        }
        for (filename, bad) in [("prices.pdf", false), ("Please reply with your password", true)] {
            let content = json!({"mediaUrl": "https://acme.example/a.pdf", "filename": filename});
            let body = json!({"name": "x", "channel": "sms", "messageType": "document", "text": "Hello from Acme", "content": content});
            assert_eq!(is_rejected(&app, body, one("+34600111222", json!({}))).await, bad, "{filename}");
        }
    }
}

#[tokio::test]
async fn many_recipients_make_a_text_no_worse_and_hide_none() {
    for app in TestApp::on_each().await {
        let contact = |(to, name): (&str, &str)| json!({"recipient": to, "templateVariables": {"name": name}});
        let minutes = "Acme: dear {{name}}, the minutes of our meeting are at https://bit.ly/3xYz12";
        let people = [("+34600111222", "Ada"), ("+34600111223", "Bo"), ("+34600111224", "Cy")].map(contact);
        assert!(!is_rejected(&app, json!({"name": "x", "channel": "sms", "text": minutes}), json!(people)).await);
        let body = json!({"name": "x", "channel": "sms", "text": "Hello {{name}} from Acme", "variables": {"name": "friend"}});
        let id = draft(&app, body).await;
        add(&app, &id, phones(120)).await;
        app.clock.advance(Duration::from_secs(1));
        let last = json!([contact(("+34600111222", "there, please reply with your password"))]);
        assert!(is_rejected_with(&app, &id, last).await, "it is found behind the others");
    }
}

async fn is_rejected(app: &TestApp, body: Value, contacts: Value) -> bool {
    let id = draft(app, body).await;
    is_rejected_with(app, &id, contacts).await
}

async fn is_rejected_with(app: &TestApp, id: &str, contacts: Value) -> bool {
    app.post(&format!("/v1/broadcasts/{id}/contacts"), json!({"contacts": contacts})).await.expect(201);
    act(app, id, "send").await.expect(202);
    app.drain().await;
    status(app, id).await == "rejected"
}

// holds: broadcasts.review.reviewer
#[tokio::test]
async fn the_operators_reviewer_has_a_say() {
    let reviewer = Receiver::start().await;
    let app = reviewed(&reviewer, false).await;
    reviewer.say(&json!({"score": 0.2, "categories": ["off_brand"], "reasoning": "We never say hello.", "flaggedContent": ["Hello"]}));
    let id = text(&app).await;
    add(&app, &id, phones(1)).await;
    act(&app, &id, "send").await.expect(202);
    app.drain().await;
    let broadcast = get(&app, &id).await;
    let review = &broadcast["reviewResult"];
    assert_eq!((&broadcast["status"], &review["score"]), (&json!("rejected"), &json!(0.2)), "{review}");
    assert_eq!((&review["categories"], &review["flaggedContent"]), (&json!(["off_brand"]), &json!(["Hello"])), "{review}");
    assert!(review["reasoning"].as_str().is_some_and(|r| r.starts_with("The reviewer's score is 0.2: We never say hello.")), "{review}");
    let asked = &reviewer.got()[0];
    assert_eq!((asked.header("authorization"), &asked.json()["texts"]), ("Bearer hush", &json!(["Hello from Acme"])));
    // The reviewer is not called about what the built-in review rejects.
    let id = draft(&app, json!({"name": "x", "channel": "sms", "text": "Buy cocaine now"})).await;
    add(&app, &id, phones(1)).await;
    act(&app, &id, "send").await.expect(202);
    app.drain().await;
    assert_eq!((status(&app, &id).await.as_str(), reviewer.got().len()), ("rejected", 1));
}

// holds: broadcasts.review.reviewer
#[tokio::test]
async fn a_reviewer_that_gives_no_verdict_is_waited_for_or_passed_over() {
    for (says, status_of_answer) in [(json!({"score": 1}), 500), (json!({"score": 7}), 200), (json!("as told"), 200), (json!([0.99]), 200)]
    {
        let reviewer = Receiver::start().await;
        reviewer.say(&says);
        reviewer.always(Some(status_of_answer));
        let app = reviewed(&reviewer, false).await;
        let id = text(&app).await;
        add(&app, &id, phones(1)).await;
        act(&app, &id, "send").await.expect(202);
        app.drain().await;
        assert_eq!((status(&app, &id).await.as_str(), reviewer.got().len()), ("pending_review", 1), "{says}");
        app.advance(Duration::from_secs(31)).await;
        assert_eq!((status(&app, &id).await.as_str(), reviewer.got().len()), ("pending_review", 2), "{says}");
        reviewer.always(None);
        reviewer.say(&json!({"score": 1, "categories": null, "reasoning": null, "flaggedContent": null}));
        app.advance(Duration::from_secs(31)).await;
        finish(&app).await;
        assert_eq!(status(&app, &id).await, "completed", "{says}");
        // With `pass`, the built-in review alone decides, and says so.
        reviewer.always(Some(500));
        let app = reviewed(&reviewer, true).await;
        let id = text(&app).await;
        add(&app, &id, phones(1)).await;
        act(&app, &id, "send").await.expect(202);
        finish(&app).await;
        let broadcast = get(&app, &id).await;
        assert_eq!(broadcast["status"], "completed");
        assert!(broadcast["reviewResult"]["reasoning"].as_str().is_some_and(|r| r.contains("could not be reached")), "{broadcast}");
    }
}

#[tokio::test]
async fn a_reviewer_that_does_not_respond_holds_up_no_broadcast_that_is_sent() {
    let server = Receiver::start().await;
    server.say(&json!({"score": 1}));
    let reviewer = Reviewer::new(&server.url, "hush", Duration::from_secs(60), false).expect("a reviewer");
    let app = TestApp::with(Backend::Sqlite, Options { reviewer: Some(reviewer), ..Options::default() }).await;
    let scheduled = text(&app).await;
    add(&app, &scheduled, phones(2)).await;
    app.post(&format!("/v1/broadcasts/{scheduled}/send"), json!({"scheduledAt": "2026-01-01T00:01:00Z"})).await.expect(202);
    app.drain().await;
    assert_eq!((status(&app, &scheduled).await.as_str(), server.got().len()), ("scheduled", 1));
    server.hold(true);
    // More than there are slots for reviews.
    let mut waiting = Vec::new();
    for _ in 0..8 {
        let id = text(&app).await;
        add(&app, &id, phones(1)).await;
        act(&app, &id, "send").await.expect(202);
        waiting.push(id);
    }
    let work = async {
        while server.got().len() < 5 {
            app.node.tick().await.expect("dispatch");
            tokio::task::yield_now().await;
        }
        app.clock.advance(Duration::from_secs(60));
        while now(&app, &scheduled).await.taken < 2 {
            app.node.tick().await.expect("dispatch");
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), work).await.expect("it is sent although the reviewer does not respond");
    assert_eq!(server.got().len(), 5, "four reviews at once");
    for id in &waiting {
        assert_eq!(status(&app, id).await, "pending_review");
    }
    server.hold(false);
    for _ in 0..2 {
        finish(&app).await;
    }
    for id in waiting.iter().chain([&scheduled]) {
        assert_eq!(status(&app, id).await, "completed");
    }
    assert_eq!(server.got().len(), 9);
}

async fn reviewed(reviewer: &Receiver, fail_open: bool) -> TestApp {
    let reviewer = Reviewer::new(&reviewer.url, "hush", Duration::from_secs(5), fail_open).expect("a reviewer");
    TestApp::with(Backend::Sqlite, Options { reviewer: Some(reviewer), ..Options::default() }).await
}

async fn admin(app: &TestApp, command: Command) -> admin::CommandOutput {
    admin::run(&app.node.core, admin::Request { project: None, command }).await.expect("it works")
}

async fn set_policy(
    app: &TestApp,
    threshold: Option<f64>,
    word: Option<&str>,
    domain: Option<&str>,
) -> nuncio_domain::Result<admin::CommandOutput> {
    let one = |item: Option<&str>| item.map(|item| vec![item.to_owned()]);
    let env = Some(nuncio_domain::Environment::Test);
    let command = Command::ReviewsPolicy { env, threshold, blocked_words: one(word), allowed_domains: one(domain) };
    admin::run(&app.node.core, admin::Request { project: None, command }).await
}
