//! Compares what clients were promised with what the server has. Every id of a 202 must exist once, in a final status. Nothing else may
//! exist, except for requests whose response the client did not receive.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail, ensure};
use serde::{Deserialize, Serialize};

use crate::http::Conn;
use crate::load::Target;

/// Result of an audit, in messages.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Audit {
    /// 202 responses that the clients received.
    pub(crate) promised: u64,
    /// Messages listed by the server.
    pub(crate) listed: u64,
    /// Promised but not listed.
    pub(crate) lost: u64,
    /// Listed more than once, or the same id in two responses.
    pub(crate) doubled: u64,
    /// Listed but not promised, beyond the requests with an unknown outcome.
    pub(crate) surplus: u64,
    /// Listed in a status other than the expected final one.
    pub(crate) not_delivered: u64,
    /// SMTP runs: promised messages that never reached the sink.
    pub(crate) sink_lost: u64,
    /// SMTP runs: emails that the sink received more than once or could not identify.
    pub(crate) sink_doubled: u64,
}

impl Audit {
    pub(crate) fn passed(&self) -> bool {
        self.lost + self.doubled + self.surplus + self.not_delivered + self.sink_lost + self.sink_doubled == 0
    }
}

/// A row of `GET /v1/messages`.
#[derive(Clone, Debug, Deserialize)]
pub(crate) struct Listed {
    id: Box<str>,
    status: Box<str>,
}

/// Compares the ids of 202 responses with the server's list. `ambiguous` requests may have been accepted without a response; `finals` are
/// the statuses that count as delivered.
pub(crate) fn compare(promised: &[Box<str>], listed: &[Listed], ambiguous: u64, finals: &[&str]) -> Audit {
    // Per id: times promised and times listed.
    let mut seen: HashMap<&str, (u64, u64)> = HashMap::with_capacity(promised.len());
    for id in promised {
        seen.entry(id).or_default().0 += 1;
    }
    for row in listed {
        seen.entry(&row.id).or_default().1 += 1;
    }
    let mut audit = Audit { promised: promised.len() as u64, listed: listed.len() as u64, ..Audit::default() };
    for &(promises, rows) in seen.values() {
        audit.lost += u64::from(rows == 0);
        audit.surplus += u64::from(promises == 0);
        audit.doubled += promises.max(rows).saturating_sub(1);
    }
    audit.surplus = audit.surplus.saturating_sub(ambiguous);
    let open = listed.iter().filter(|row| !finals.contains(&&*row.status));
    audit.not_delivered = open.count() as u64;
    audit
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    items: Vec<Listed>,
    next_cursor: Option<String>,
}

/// Returns all messages since `since` (RFC 3339), page by page.
///
/// # Errors
/// If a response is not a 200, or the cursor does not end.
pub(crate) async fn walk(target: &Target, since: &str) -> Result<Vec<Listed>> {
    let mut conn = Conn::open(target.addr).await.context("the audit cannot connect")?;
    let mut rows = Vec::new();
    let mut cursor = String::new();
    loop {
        let path = format!("/v1/messages?since={}&limit=100{cursor}", escape(since));
        let reply = conn.get(&path, &target.key).await?;
        if reply.status != 200 {
            bail!("GET {path}: {} {}", reply.status, String::from_utf8_lossy(reply.body));
        }
        let page: Page = serde_json::from_slice(reply.body).context("a page of messages")?;
        let ended = page.next_cursor.is_none();
        ensure!(ended || !page.items.is_empty(), "an empty page with a cursor: {path}");
        rows.extend(page.items);
        match page.next_cursor {
            Some(next) => cursor = format!("&cursor={}", escape(&next)),
            None => return Ok(rows),
        }
    }
}

/// Input of an audit.
#[derive(Debug)]
pub(crate) struct Claim<'a> {
    pub(crate) ids: &'a [Box<str>],
    pub(crate) ambiguous: u64,
    pub(crate) finals: &'a [&'a str],
}

/// Reads and compares until nothing is missing or `patience` is over.
pub(crate) async fn audit(target: &Target, since: &str, claim: &Claim<'_>, patience: Duration) -> Result<Audit> {
    let start = Instant::now();
    loop {
        let rows = walk(target, since).await.context("reading the list of messages")?;
        let audit = compare(claim.ids, &rows, claim.ambiguous, claim.finals);
        if audit.passed() || start.elapsed() > patience {
            return Ok(audit);
        }
        tokio::time::sleep(Duration::from_millis(500)).await;
    }
}

/// Percent-encodes all characters except RFC 3986's unreserved ones.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                out.push(char::from(byte));
            }
            _ => out.push_str(&format!("%{byte:02X}")),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use std::collections::HashMap as Map;

    use axum::extract::Query;
    use axum::routing::get;
    use axum::{Json, Router};
    use serde_json::{Value, json};
    use tokio::net::TcpListener;

    use super::*;

    const FINALS: &[&str] = &["delivered"];

    fn ids(ids: &[&str]) -> Vec<Box<str>> {
        ids.iter().map(|&id| id.into()).collect()
    }

    fn rows(rows: &[(&str, &str)]) -> Vec<Listed> {
        rows.iter().map(|&(id, status)| Listed { id: id.into(), status: status.into() }).collect()
    }

    fn check(promised: &[&str], listed: &[(&str, &str)], ambiguous: u64) -> Audit {
        compare(&ids(promised), &rows(listed), ambiguous, FINALS)
    }

    #[test]
    fn what_was_promised_and_delivered_passes() {
        let audit = check(&["a", "b"], &[("b", "delivered"), ("a", "delivered")], 0);
        assert!(audit.passed(), "{audit:?}");
        assert_eq!((audit.promised, audit.listed), (2, 2));
    }

    #[test]
    fn each_fault_is_counted_as_itself_and_fails() {
        let faults = [
            (check(&["a", "b"], &[("a", "delivered")], 0), "lost"),
            (check(&["a"], &[("a", "delivered"), ("a", "delivered")], 0), "doubled"),
            (check(&["a", "a"], &[("a", "delivered")], 0), "doubled"),
            (check(&["a"], &[("a", "delivered"), ("b", "delivered")], 0), "surplus"),
            (check(&["a"], &[("a", "sending")], 0), "notDelivered"),
            (Audit { sink_lost: 1, ..Audit::default() }, "sinkLost"),
            (Audit { sink_doubled: 1, ..Audit::default() }, "sinkDoubled"),
        ];
        for (audit, fault) in faults {
            assert!(!audit.passed(), "{fault}");
            let counts = serde_json::to_value(&audit).unwrap();
            let faulty: Vec<_> = counts
                .as_object()
                .unwrap()
                .iter()
                .filter(|(name, n)| !["promised", "listed"].contains(&&***name) && **n != json!(0))
                .collect();
            assert_eq!(faulty, [(&fault.to_owned(), &json!(1))]);
        }
    }

    #[test]
    fn a_request_without_an_answer_may_have_been_accepted() {
        let listed = [("a", "delivered"), ("b", "delivered"), ("c", "delivered")];
        assert!(check(&["a"], &listed, 2).passed());
        assert_eq!(check(&["a"], &listed, 1).surplus, 1);
    }

    async fn list(Query(query): Query<Map<String, String>>) -> Json<Value> {
        assert_eq!(query["since"], "2026-01-01T00:00:00.000Z");
        assert_eq!(query["limit"], "100");
        let row = |id: &str| json!({"id": id, "status": "delivered", "to": "+1"});
        Json(match query.get("cursor").map(String::as_str) {
            None => json!({"items": [row("c"), row("b")], "nextCursor": "b+/="}),
            Some("b+/=") => json!({"items": [row("a")], "nextCursor": null}),
            Some("empty") => json!({"items": [], "nextCursor": "empty"}),
            Some(other) => panic!("cursor {other} was mangled"),
        })
    }

    #[tokio::test]
    async fn a_walk_follows_the_cursor_to_the_end() {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let target = Target { addr: listener.local_addr().unwrap(), key: "k".into() };
        let router = Router::new().route("/v1/messages", get(list));
        tokio::spawn(async move { axum::serve(listener, router).await });
        let rows = walk(&target, "2026-01-01T00:00:00.000Z").await.unwrap();
        let ids: Vec<_> = rows.iter().map(|row| &*row.id).collect();
        assert_eq!(ids, ["c", "b", "a"]);
    }
}
