//! Several projects: created, opened and renamed on pages; people with a role in each.

use std::time::Duration;

use nuncio_domain::user::Role;
use nuncio_testkit::TestApp;
use serde_json::json;

use crate::dashboard::{Browser, PASSWORD, person};
use crate::dashboard_pages::upload;

/// Returns the projects that `/projects` lists as openable: name and id.
async fn others(browser: &Browser<'_>) -> Vec<(String, String)> {
    let page = browser.page("/projects").await;
    let table = page.split("<tbody>").nth(1).and_then(|rest| rest.split("</tbody>").next()).expect("a table").to_owned();
    let rows = table.split("<tr>").skip(1).filter(|row| row.contains("name=\"open\""));
    let between =
        |row: &str, from: &str, to: &str| row.split(from).nth(1).and_then(|rest| rest.split(to).next()).unwrap_or_default().to_owned();
    rows.map(|row| (between(row, "<bdi dir=\"auto\">", "</bdi>"), between(row, "name=\"open\" value=\"", "\""))).collect()
}

async fn open(browser: &Browser<'_>, name: &str) {
    let projects = others(browser).await;
    let (_, id) = projects.iter().find(|(other, _)| other == name).unwrap_or_else(|| panic!("no {name} in {projects:?}"));
    browser.submit("/projects", &[("open", id), ("to", "/messages")]).await.expect(303);
}

// holds: pages.projects
#[tokio::test]
async fn an_owner_creates_opens_and_renames_projects() {
    for app in TestApp::on_each().await {
        let owner = person(&app, "ada@example.net", Role::Owner).await;
        let id = app.send_message(json!({"to": "+34600111222", "text": "of the first"})).await;
        let first = app.get("/v1/me").await.expect(200).json()["project"]["name"].as_str().expect("a name").to_owned();
        assert!(!owner.page("/").await.contains("All projects"), "no switch for one project");
        let empty = owner.submit("/projects", &[("name", " ")]).await.expect(400);
        assert!(empty.text.contains("href=\"#name\"") && empty.text.contains("has 0 characters"), "{}", empty.text);
        assert_eq!(owner.submit("/projects", &[("name", "Second")]).await.expect(303).header("location"), "/");
        let home = owner.page("/").await;
        assert!(home.contains("· Second</title>") && home.contains("Test environment."), "{home}");
        assert!(home.contains("All projects") && home.contains("Getting started"), "{home}");
        // Nothing of the first project is seen, though the id exists.
        owner.get(&format!("/messages/{id}")).await.expect(404);
        assert!(owner.page("/messages").await.contains("No messages yet"));
        owner.submit("/messages/new", &[("to", "+12125550100"), ("text", "of the second"), ("do", "send")]).await.expect(303);
        owner.submit("/settings/project", &[("name", "Renamed"), ("look", "plain"), ("do", "save")]).await.expect(303);
        open(&owner, &first).await;
        let list = owner.page("/messages").await;
        assert!(list.contains("+34600111222") && !list.contains("+12125550100"), "{list}");
        assert_eq!(others(&owner).await[0].0, "Renamed");
        // A new session opens what the newest one viewed.
        open(&owner, "Renamed").await;
        let mut elsewhere = Browser { app: &app, cookie: String::new() };
        elsewhere.sign_in("ada@example.net", PASSWORD).await.expect(303);
        assert!(elsewhere.page("/messages").await.contains("Messages · Renamed"));
    }
}

// holds: pages.forms, pages.projects
#[tokio::test]
async fn a_form_acts_only_where_its_page_was_opened() {
    for app in TestApp::on_each().await {
        let owner = person(&app, "ada@example.net", Role::Owner).await;
        let first = app.project.id.to_string();
        // A tab that stays open in the test environment of the first project.
        let key = owner.form_key().await;
        let from_tab = async |path: &str, fields: &[(&str, &str)]| owner.send(path, &[fields, &[("key", key.as_str())]].concat()).await;
        let message = [("to", "+12125550100"), ("text", "hello"), ("do", "send")];
        let refused = async || {
            let form = from_tab("/messages/new", &message).await.expect(400);
            let file = upload(&owner, "/contacts", &[("key", &key)], "people.csv", "phone\n+34600999222\n").await.expect(400);
            for page in [form.text, file.text] {
                assert!(page.contains("You switched to another environment or project since this page was opened."), "{page}");
            }
        };
        owner.submit("/world", &[("world", "live")]).await.expect(303);
        refused().await;
        app.clock.advance(Duration::from_secs(1));
        owner.submit("/projects", &[("name", "Second")]).await.expect(303);
        refused().await;
        for key in [&app.test_key, &app.live_key] {
            for list in ["/v1/messages", "/v1/contacts"] {
                assert_eq!(app.with_key(key, "GET", list, None).await.expect(200).json()["items"], json!([]), "{list}");
            }
        }
        // What switches or leaves needs no reload.
        from_tab("/projects", &[("open", &first)]).await.expect(303);
        from_tab("/messages/new", &message).await.expect(303);
        owner.submit("/world", &[("world", "live")]).await.expect(303);
        from_tab("/world", &[("world", "test")]).await.expect(303);
        assert!(owner.page("/messages").await.contains("+12125550100"));
        owner.submit("/world", &[("world", "live")]).await.expect(303);
        from_tab("/sign-out", &[]).await.expect(303);
        assert_eq!(owner.get("/").await.status, 303);
    }
}

// holds: pages.projects, pages.roles
#[tokio::test]
async fn a_person_has_a_role_in_each_project() {
    for app in TestApp::on_each().await {
        let owner = person(&app, "ada@example.net", Role::Owner).await;
        let colleague = person(&app, "bo@example.net", Role::Viewer).await;
        colleague.submit("/projects", &[("name", "Mine")]).await.expect(403);
        assert!(!colleague.page("/projects").await.contains("New project"));
        let first = app.project.name.clone();
        app.clock.advance(Duration::from_secs(1));
        owner.submit("/projects", &[("name", "Second")]).await.expect(303);
        let second = app.node.core.projects().list().await.expect("projects").into_iter().find(|project| project.name == "Second");
        let second = second.expect("the second").id.to_string();
        colleague.submit("/projects", &[("open", &second)]).await.expect(404);
        colleague.submit("/projects", &[("open", "nonsense")]).await.expect(404);
        // Somebody who is known needs no password, and keeps theirs.
        owner.submit("/settings/people", &[("email", "new@example.net"), ("role", "viewer")]).await.expect(400);
        let add = [("email", "bo@example.net"), ("password", ""), ("role", "operator")];
        owner.submit("/settings/people", &add).await.expect(303);
        let again = owner.submit("/settings/people", &add).await.expect(400);
        assert!(again.text.contains("already belongs to this project"), "{}", again.text);
        open(&colleague, "Second").await;
        let send = [("to", "+12125550100"), ("text", "hello"), ("do", "send")];
        colleague.submit("/messages/new", &send).await.expect(303);
        open(&colleague, &first).await;
        colleague.submit("/messages/new", &send).await.expect(403);
        // Roles change at once, without signing in again.
        open(&colleague, "Second").await;
        owner.submit("/settings/people", &[("member", "bo@example.net"), ("role", "owner")]).await.expect(303);
        owner.submit("/settings/people", &[("member", "bo@example.net"), ("role", "king")]).await.expect(400);
        assert!(colleague.page("/settings/people").await.contains("Add a person"));
        // An owner of another project than the oldest neither creates projects nor sets prices, as these cost the server's owner money.
        colleague.submit("/projects", &[("name", "Mine")]).await.expect(403);
        assert!(!colleague.page("/money").await.contains("Import prices") && owner.page("/money").await.contains("Import prices"));
        // Nor do they approve what the review of their own broadcasts rejected.
        for (browser, status) in [(&colleague, 403), (&owner, 404)] {
            browser.submit("/reviews/brd_1", &[("do", "approve")]).await.expect(status);
        }
        colleague.submit("/settings/people", &[("member", "ada@example.net"), ("role", "viewer")]).await.expect(303);
        owner.submit("/settings/people", &[("remove", "bo@example.net")]).await.expect(403);
        let last = colleague.submit("/settings/people", &[("member", "bo@example.net"), ("role", "viewer")]).await.expect(400);
        assert!(last.text.contains("bo@example.net is the only owner of the project"), "{}", last.text);
        let entries = colleague.page("/settings/audit?resource=ada@example.net").await;
        assert!(entries.contains("owner") && entries.contains("viewer"), "before and after: {entries}");
        // An owner of one project does not weaken the access to another: bo owns the second only, ada belongs to the first too.
        let reset = colleague.submit("/settings/people", &[("reset", "ada@example.net")]).await.expect(400);
        assert!(reset.text.contains("a project that you do not own"), "{}", reset.text);
        // Nor does an owner who added somebody, with a password of their choice, get into a project that adds the same person later.
        open(&owner, &first).await;
        owner
            .submit("/settings/people", &[("email", "dee@example.net"), ("password", "chosen by another"), ("role", "viewer")])
            .await
            .expect(303);
        let known =
            colleague.submit("/settings/people", &[("email", "dee@example.net"), ("password", ""), ("role", "owner")]).await.expect(400);
        assert!(known.text.contains("nuncio people add dee@example.net"), "{}", known.text);
        open(&owner, "Second").await;
        // Who is removed from the project that they view sees another of theirs, and none after the last.
        colleague.submit("/settings/people", &[("remove", "ada@example.net")]).await.expect(303);
        assert!(owner.page("/messages").await.contains(&format!("Messages · {first}")));
        assert_eq!(others(&owner).await, []);
        owner.submit("/projects", &[("open", &second)]).await.expect(404);
    }
}
