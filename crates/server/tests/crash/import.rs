//! Sends a file of recipients repeatedly while the server is killed.

use std::collections::HashSet;
use std::fmt::Write as _;
use std::net::SocketAddr;

use nuncio_domain::Environment;
use serde_json::json;
use tokio::task::JoinHandle;

use crate::http::Http;
use crate::server::Keys;
use crate::verify::Case;

/// Recipients in the file.
const ROWS: usize = 20_000;

/// A draft and its file of recipients.
#[derive(Debug)]
pub(crate) struct Import {
    path: String,
    draft: String,
    key: String,
    file: String,
    /// How many times the file was sent.
    sent: usize,
}

impl Import {
    pub(crate) async fn prepare(server: SocketAddr, keys: &Keys) -> Self {
        let key = keys.of(Environment::Live);
        let body = json!({"name": "import", "channel": "sms", "text": "Hello from Acme"});
        let mut http = Http::connect(server).await.expect("the server listens");
        let made = http.ask(key, "POST /v1/broadcasts", &body).await.expect("an answer");
        let draft = made.json["broadcast"]["id"].as_str().unwrap_or_else(|| panic!("{made:?}")).to_owned();
        let mut file = "phone\n".to_owned();
        for n in 0..ROWS {
            let _ = writeln!(file, "+346{n:08}");
        }
        let path = format!("/v1/broadcasts/{draft}/contacts/import?importId=one");
        Self { path, draft: format!("/v1/broadcasts/{draft}"), key: key.to_owned(), file, sent: 0 }
    }

    /// Sends the file and ignores the result, since the server is killed meanwhile.
    pub(crate) fn send(&mut self, server: SocketAddr) -> JoinHandle<()> {
        self.sent += 1;
        let (path, key, file) = (self.path.clone(), self.key.clone(), self.file.clone());
        tokio::spawn(async move {
            if let Ok(mut http) = Http::connect(server).await {
                let _ = http.post_csv(&key, &path, &file).await;
            }
        })
    }

    /// Sends the whole file. Fails unless the draft has each recipient once and the response counts each row once.
    pub(crate) async fn is_whole(&self, case: &Case<'_>) {
        let answer = case.http().await.post_csv(&self.key, &self.path, &self.file).await.expect("an answer");
        let counts = ["rows", "added", "duplicates", "invalid"].map(|name| answer.json[name].as_u64());
        assert_eq!(counts, [ROWS as u64, ROWS as u64, 0, 0].map(Some), "{answer:?}");
        let shown = case.http().await.get(&self.key, &self.draft).await.expect("an answer");
        assert_eq!(shown.json["broadcast"]["totalContacts"], ROWS, "{shown:?}");
        let contacts = case.walk(Environment::Live, &format!("{}/contacts", self.draft)).await;
        let different: HashSet<_> = contacts.iter().map(|contact| contact["recipient"].as_str().expect("a recipient")).collect();
        assert_eq!((contacts.len(), different.len()), (ROWS, ROWS));
        eprintln!("{ROWS} recipients of a file that was sent {} times, at last after row {}", self.sent + 1, answer.json["resumedAfter"]);
    }
}
