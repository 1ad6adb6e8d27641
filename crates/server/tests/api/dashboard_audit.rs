//! Audit log pages, and entries for actions on pages.

use std::time::Duration;

use nuncio::admin::{Command, Request, run};
use nuncio_domain::user::Role;
use nuncio_testkit::TestApp;
use serde_json::json;

use crate::audit::log;
use crate::dashboard::person;

// holds: audit.page, audit.roles, audit.sends
#[tokio::test]
async fn people_see_who_changed_what() {
    for app in TestApp::on_each().await {
        let owner = person(&app, "ada@example.net", Role::Owner).await;
        let viewer = person(&app, "vi@example.net", Role::Viewer).await;
        let operator = person(&app, "op@example.net", Role::Operator).await;
        owner.submit("/developers/keys", &[("name", "<b>shop</b>"), ("may", "send"), ("world", "live")]).await.expect(201);
        app.clock.advance(Duration::from_millis(1));
        let made = operator.submit("/senders/new", &[("name", "Shop")]).await;
        assert_eq!(made.status, 303, "{}", made.text);
        app.clock.advance(Duration::from_millis(1));
        let command = Command::BalanceLimit { env: nuncio_domain::Environment::Test, on: true };
        run(&app.node.core, Request { project: None, command }).await.expect("done");
        app.clock.advance(Duration::from_millis(1));
        app.post("/v1/templates", json!({"name": "code", "language": "en", "body": "Your code"})).await.expect(201);

        let page = owner.page("/settings/audit").await;
        for words in
            ["ada@example.net", "op@example.net", "Command line", "API key ", "api key: create", "sender: create", "template: create"]
        {
            assert!(page.contains(words), "{words}: {page}");
        }
        assert!(page.contains("&lt;b&gt;shop&lt;/b&gt;") && !page.contains("<b>shop"), "{page}");
        let before = |left: &str, right: &str| page.find(left).expect("it is there") < page.find(right).expect("it is there");
        assert!(before("template: create", "balance: limit") && before("sender: create", "api key: create"), "newest first");
        operator.submit("/messages/new", &[("to", "+34600111222"), ("text", "a secret"), ("once", "k1"), ("do", "send")]).await.expect(303);
        app.send_message(json!({"to": "+34600111222", "text": "x"})).await;
        let sent = log(&app, app.project.test).await.into_iter().filter(|entry| entry.kind == "message").collect::<Vec<_>>();
        assert!(sent.len() == 1 && sent[0].verb == "send" && sent[0].actor.name == "op@example.net" && sent[0].after.is_none(), "{sent:?}");
        let rows = async |query: &str| {
            let page = owner.page(&format!("/settings/audit?{query}")).await;
            (page.matches("<tr>").count().saturating_sub(1), page)
        };
        let (count, page) = rows("who=op%40example.net").await;
        assert!(count == 3 && page.contains("person: sign in") && page.contains("sender: create"), "{page}");
        assert_eq!(rows("what=template").await.0, 1);
        assert_eq!(rows("what=template&who=op%40example.net").await.0, 0);
        assert_eq!(rows("who=command+line").await.0, 1);
        assert!(rows("until=2001-01-01").await.1.contains("No changes"));
        assert!(owner.get("/settings/audit?since=yesterday").await.expect(400).text.contains("must be a day"));

        viewer.get("/settings/audit").await.expect(403);
        operator.page("/settings/audit").await;
        assert!(!viewer.page("/").await.contains("/settings/audit") && operator.page("/").await.contains("/settings/audit"));
        viewer.submit("/messages/new", &[("to", "+34600111222"), ("text", "hello"), ("do", "send")]).await.expect(403);
        let of_viewer = log(&app, app.project.live).await.into_iter().filter(|entry| entry.actor.name == "vi@example.net");
        assert_eq!(of_viewer.map(|entry| entry.verb).collect::<Vec<_>>(), ["sign_in"], "what is refused is no change");
    }
}

// holds: audit.page
#[tokio::test]
async fn the_log_has_pages_over_both_environments() {
    let app = TestApp::start().await;
    let owner = person(&app, "ada@example.net", Role::Owner).await;
    for n in 0..120 {
        app.clock.advance(Duration::from_millis(1));
        let (project, environment) =
            (&app.project, if n % 3 == 0 { nuncio_domain::Environment::Live } else { nuncio_domain::Environment::Test });
        let command = Command::KeysCreate { name: format!("key {n}"), env: environment, permissions: Vec::new(), expires_at: None };
        run(&app.node.core, Request { project: Some(project.id.to_string()), command }).await.expect("done");
    }
    let (mut path, mut seen) = ("/settings/audit?what=api_key".to_owned(), Vec::new());
    loop {
        let page = owner.page(&path).await;
        seen.extend(page.split("<bdi dir=\"auto\">key ").skip(1).filter_map(|rest| rest.split('<').next()?.parse::<u32>().ok()));
        let older =
            page.split("class=\"pager\"").nth(1).and_then(|rest| rest.split("href=\"").nth(1)?.split('"').next().map(str::to_owned));
        let Some(older) = older else { break };
        path = older.replace("&amp;", "&");
    }
    assert_eq!(seen, (0..120).rev().collect::<Vec<_>>());
}
