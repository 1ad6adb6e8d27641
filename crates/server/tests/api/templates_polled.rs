//! Templates of a provider that is polled for decisions.

use std::time::Duration;

use nuncio_domain::Channel;
use nuncio_domain::message::{Failure, FailureCode};
use nuncio_domain::template::Decision;
use nuncio_testkit::{Backend, Options, TestApp, TestResponse};
use serde_json::{Value, json};

use crate::scripted::Scripted;

fn down() -> Failure {
    Failure::own(FailureCode::Undeliverable, "the provider does not answer")
}

/// Starts a live environment with the scripted provider and a template.
async fn app(backend: Backend) -> (TestApp, Scripted, String) {
    let scripted = Scripted::default();
    let options = Options { registry: scripted.registry(), ..Options::default() };
    let app = TestApp::with(backend, options).await;
    app.connect(Channel::Whatsapp, "scripted", json!({}), json!({})).await;
    let made = live(&app, "POST", "/v1/templates", Some(json!({"name": "hi", "language": "en", "body": "x"}))).await.expect(201).json();
    let id = made["id"].as_str().expect("an id").to_owned();
    (app, scripted, id)
}

async fn live(app: &TestApp, method: &str, path: &str, body: Option<Value>) -> TestResponse {
    app.with_key(&app.live_key, method, path, body).await
}

async fn submit(app: &TestApp, id: &str) {
    let world = app.node.core.tenant_config(app.project.live).await.expect("the live world");
    let body = json!({"senderId": world.default_sender().expect("a sender").id.to_string()});
    let answer = live(app, "POST", &format!("/v1/templates/{id}/submit"), Some(body)).await.expect(202).json();
    assert_eq!(answer["status"], "pending");
    app.drain().await;
}

async fn status(app: &TestApp, id: &str) -> String {
    let template = live(app, "GET", &format!("/v1/templates/{id}"), None).await.expect(200).json();
    template["status"].as_str().expect("a status").to_owned()
}

async fn told(app: &TestApp) -> Vec<String> {
    let page = live(app, "GET", "/v1/events", None).await.expect(200).json();
    let all = page["items"].as_array().expect("events").iter().rev();
    all.map(|event| event["data"]["template"]["status"].as_str().expect("a template").to_owned()).collect()
}

// holds: templates.submit
#[tokio::test]
async fn a_silent_provider_is_asked_until_it_decides() {
    for backend in Backend::all() {
        let (app, scripted, id) = app(backend).await;
        scripted.will(vec![Ok("p1".to_owned())], vec![Ok(Decision::Pending), Err(down()), Ok(Decision::Approved)]);
        submit(&app, &id).await;
        assert_eq!(scripted.asked(), ["submit"]);
        app.advance(Duration::from_secs(59)).await;
        assert_eq!(scripted.asked(), [""; 0]);
        let updated = async || live(&app, "GET", &format!("/v1/templates/{id}"), None).await.json()["updatedAt"].clone();
        let before = updated().await;
        app.advance(Duration::from_secs(1)).await;
        assert_eq!((scripted.asked(), status(&app, &id).await.as_str()), (vec!["p1".to_owned()], "pending"));
        assert_eq!(updated().await, before, "nothing of it has changed");
        app.advance(Duration::from_secs(899)).await;
        assert_eq!(scripted.asked(), [""; 0]);
        app.advance(Duration::from_secs(1)).await;
        assert_eq!((scripted.asked(), status(&app, &id).await.as_str()), (vec!["p1".to_owned()], "pending"), "it did not answer");
        app.advance(Duration::from_secs(900)).await;
        assert_eq!((scripted.asked(), status(&app, &id).await.as_str()), (vec!["p1".to_owned()], "approved"));
        assert_eq!(told(&app).await, ["pending", "approved"]);
        app.advance(Duration::from_secs(86_400)).await;
        assert_eq!(scripted.asked(), [""; 0], "nothing is left to ask");
    }
}

// holds: templates.submit
#[tokio::test]
async fn what_could_not_be_handed_in_is_handed_in_again() {
    for backend in Backend::all() {
        let (mut app, scripted, id) = app(backend).await;
        let reason = "too shouty".to_owned();
        scripted.will(vec![Err(down()), Err(down()), Ok("p2".to_owned())], vec![Ok(Decision::Rejected { reason: reason.clone() })]);
        submit(&app, &id).await;
        app.advance(Duration::from_secs(60)).await;
        assert_eq!((scripted.asked(), status(&app, &id).await.as_str()), (vec!["submit".to_owned(); 2], "pending"));
        // Any live node does it when it is due.
        app.crash().await;
        app.advance(Duration::from_secs(900)).await;
        assert_eq!((scripted.asked(), status(&app, &id).await.as_str()), (vec!["submit".to_owned()], "pending"));
        app.advance(Duration::from_secs(900)).await;
        assert_eq!(scripted.asked(), ["p2"]);
        let template = live(&app, "GET", &format!("/v1/templates/{id}"), None).await.expect(200).json();
        assert_eq!((&template["status"], &template["rejectionReason"]), (&json!("rejected"), &json!(reason)));

        // A rejection ends polling; another submission restarts it.
        let refused = Failure::own(FailureCode::ContentRejected, "not this word");
        scripted.will(vec![Err(refused), Ok("p3".to_owned())], vec![Ok(Decision::Approved)]);
        submit(&app, &id).await;
        assert_eq!(status(&app, &id).await, "rejected");
        app.advance(Duration::from_secs(3_600)).await;
        assert_eq!(scripted.asked(), ["submit"]);
        submit(&app, &id).await;
        app.advance(Duration::from_secs(60)).await;
        assert_eq!((scripted.asked(), status(&app, &id).await.as_str()), (vec!["submit".to_owned(), "p3".to_owned()], "approved"));
        assert_eq!(told(&app).await, ["pending", "rejected", "pending", "rejected", "pending", "approved"]);
    }
}

#[tokio::test]
async fn a_template_that_is_deleted_is_asked_about_no_more() {
    let (app, scripted, id) = app(Backend::Sqlite).await;
    scripted.will(vec![Ok("p1".to_owned())], Vec::new());
    submit(&app, &id).await;
    live(&app, "DELETE", &format!("/v1/templates/{id}"), None).await.expect(204);
    app.advance(Duration::from_secs(86_400)).await;
    assert_eq!(scripted.asked(), ["submit"]);
}

// holds: templates.submit
#[tokio::test]
async fn a_template_whose_account_was_removed_is_rejected() {
    for backend in Backend::all() {
        let (app, scripted, id) = app(backend).await;
        scripted.will(vec![Ok("p1".to_owned())], vec![]);
        submit(&app, &id).await;
        let world = app.node.core.tenant_config(app.project.live).await.expect("the live world");
        let sender = world.default_sender().expect("a sender").id;
        live(&app, "DELETE", &format!("/v1/senders/{sender}/channels/whatsapp"), None).await.expect(204);
        app.advance(Duration::from_secs(60)).await;
        let template = live(&app, "GET", &format!("/v1/templates/{id}"), None).await.expect(200).json();
        assert_eq!(template["status"], "rejected", "{template}");
        assert!(template["rejectionReason"].as_str().is_some_and(|reason| reason.contains("was removed")), "{template}");
    }
}
