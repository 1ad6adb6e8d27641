//! The guide in browsers: all pages are served, comply with the content security policy, and have working links.

use std::collections::BTreeSet;

use nuncio_testkit::{TestApp, TestResponse};

/// Returns the tags of a page without brackets. Text is escaped, so that `<` only begins tags.
fn tags(page: &str) -> impl Iterator<Item = &str> {
    page.split('<').skip(1).filter_map(|rest| rest.split_once('>')).map(|(tag, _)| tag)
}

fn attribute<'a>(tag: &'a str, name: &str) -> Option<&'a str> {
    tag.split_once(&format!(" {name}=\""))?.1.split('"').next()
}

fn check_policy(path: &str, answer: &TestResponse) {
    let policy = answer.header("content-security-policy");
    assert!(policy.starts_with("default-src 'none'; style-src 'self'; script-src 'self';"), "{path}: {policy}");
    assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"), "{path}: {policy}");
    assert_eq!((answer.header("x-frame-options"), answer.header("x-content-type-options")), ("DENY", "nosniff"), "{path}");
}

#[tokio::test]
async fn guide_pages_pass_the_policy_and_their_links_lead_somewhere() {
    let app = TestApp::start().await;
    let pages: Vec<_> = nuncio_guide::pages().map(|page| format!("/docs/guide/{page}")).collect();
    assert!(pages.len() > 50, "{pages:?}");
    let (mut seen, mut ids) = (BTreeSet::new(), BTreeSet::new());
    for path in pages.iter().map(String::as_str).chain(["/docs/guide", "/docs/guide/"]) {
        let answer = app.send("GET", path, &[], None).await.expect(200);
        check_policy(path, &answer);
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8", "{path}");
        assert_eq!((answer.text.matches("<h1").count(), answer.text.matches("<title>").count()), (1, 1), "{path}");
        for tag in tags(&answer.text) {
            let name = tag.split([' ', '/']).next().unwrap_or_default();
            assert!(name != "style" && name != "iframe" && name != "base", "{path}: <{tag}>");
            assert!(name != "script" || attribute(tag, "src").is_some(), "{path}: <{tag}>");
            assert!(attribute(tag, "style").is_none() && !tag.contains(" on"), "{path}: <{tag}>");
            for link in ["href", "src"].into_iter().filter_map(|name| attribute(tag, name)) {
                assert!(link.starts_with(['/', '#']) || (name == "a" && link.starts_with("https://")), "{path}: <{tag}>");
                if link.starts_with('/') {
                    seen.insert(link.to_owned());
                } else if let Some(id) = link.strip_prefix('#') {
                    seen.insert(format!("{path}#{id}"));
                }
            }
            ids.extend(attribute(tag, "id").map(|id| format!("{path}#{id}")));
        }
    }
    for link in &seen {
        let path = link.split('#').next().unwrap_or_default();
        if path != "/" {
            app.send("GET", path, &[], None).await.expect(200);
        }
        assert!(!link.contains('#') || ids.contains(link), "{link} is no place of the guide");
    }
}

#[tokio::test]
async fn guide_search_files_are_served_and_unknown_pages_are_404() {
    let app = TestApp::start().await;
    for (file, kind) in [
        ("guide.css", "text/css; charset=utf-8"),
        ("guide.js", "text/javascript; charset=utf-8"),
        ("elasticlunr.min.js", "text/javascript; charset=utf-8"),
        ("searchindex.js", "text/javascript; charset=utf-8"),
    ] {
        let path = format!("/docs/guide/{file}");
        let answer = app.send("GET", &path, &[], None).await.expect(200);
        check_policy(&path, &answer);
        assert_eq!(answer.header("content-type"), kind);
    }
    for path in ["/docs/guide/nowhere.html", "/docs/guide/nowhere.css", "/docs/guide/start"] {
        let answer = app.send("GET", path, &[], None).await.expect(404);
        check_policy(path, &answer);
        assert_eq!(answer.header("content-type"), "text/html; charset=utf-8");
        assert!(answer.text.contains("no page at this address"), "{}", answer.text);
    }
}
