//! Runs the commands of the guide like a reader.
//!
//! All `sh` blocks of a page run in order, in one shell and an empty folder. `sh,norun` marks a block with missing requirements;
//! `sh,server` a command that runs until the page ends; `sh,postgres` a block that needs the URL of an empty PostgreSQL database in
//! `DATABASE_URL`. A page without `sh,server` gets a server started by `quickstart`.

use std::collections::BTreeMap;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use nuncio_testkit::{Backend, Database, repository, repository_file};
use tokio::process::Command;
use tokio::time::timeout;

use crate::clients::node_modules;

/// Maximum duration of a page's commands.
const PATIENCE: Duration = Duration::from_secs(120);
/// The server's address in the guide.
pub(crate) const ADDRESS: &str = "127.0.0.1:8025";

/// A code block: its language, further tags, and text.
pub(crate) struct Block {
    pub(crate) language: String,
    pub(crate) tags: Vec<String>,
    pub(crate) text: String,
}

/// Returns the code blocks of a page.
pub(crate) fn blocks(markdown: &str) -> Vec<Block> {
    let (mut found, mut lines) = (Vec::new(), markdown.lines());
    while let Some(line) = lines.next() {
        let Some(info) = line.trim_start().strip_prefix("```") else { continue };
        let indent = line.len() - line.trim_start().len();
        let text: String = lines
            .by_ref()
            .take_while(|line| line.trim() != "```")
            .map(|line| format!("{}\n", line.get(indent..).unwrap_or_default()))
            .collect();
        let mut tags = info.split(',').map(|tag| tag.trim().to_owned());
        found.push(Block { language: tags.next().unwrap_or_default(), tags: tags.collect(), text });
    }
    found
}

/// Returns the script of a page; `None` without commands.
fn script(markdown: &str, address: &str, own_server: bool, has_postgres: bool) -> Option<String> {
    let mut script = "set -euo pipefail\nset -x\n".to_owned();
    if own_server {
        script.push_str(&server("nuncio quickstart", address));
    }
    let mut any = false;
    for block in blocks(markdown).iter().filter(|block| ["sh", "bash"].contains(&block.language.as_str())) {
        let text = block.text.replace(ADDRESS, address);
        match block.tags.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
            ["norun"] => continue,
            ["postgres"] if !has_postgres => {
                eprintln!("SKIPPED a block: NUNCIO_TEST_PG is not set");
                continue;
            }
            [] | ["postgres"] => script.push_str(&text),
            ["server"] => script.push_str(&server(text.trim(), address)),
            tags => panic!("a block is marked {tags:?}; must be norun, server or postgres"),
        }
        any = true;
    }
    any.then_some(script)
}

/// Returns the commands that start a server and wait until it is ready. After `quickstart`, `KEY` is its test key.
fn server(command: &str, address: &str) -> String {
    let mut script = format!(
        "{command} >server.log 2>&1 &\nserver=$!\ntrap 'kill $server; wait $server || true' EXIT\n\
         until curl -sf http://{address}/readyz >/dev/null; do kill -0 $server || {{ cat server.log; exit 1; }}; sleep 0.1; done\n",
    );
    if command.contains("quickstart") {
        script.push_str(
            "until grep -q 'Send the next one' server.log; do sleep 0.1; done\nexport KEY=$(sed -n 's/^ *test key *//p' server.log)\n",
        );
    }
    script
}

async fn run(page: &Path) {
    let markdown = std::fs::read_to_string(page).expect("a page");
    let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
    let address = listener.local_addr().expect("an address").to_string();
    drop(listener);
    let postgres = Backend::all().contains(&Backend::Postgres);
    let own_server = !["start", "operate"].iter().any(|folder| page.parent().is_some_and(|parent| parent.ends_with(folder)));
    let Some(mut script) = script(&markdown, &address, own_server, postgres) else { return };
    // A page for operators finds an installation, unless it begins one itself.
    if !own_server && !["serve", "quickstart", " create ", " import "].iter().any(|begins| script.contains(begins)) {
        script.insert_str(0, "nuncio keys create --name example --env test >/dev/null\n");
    }
    let database = if postgres && script.contains("DATABASE_URL") { Some(Database::make(Backend::Postgres).await) } else { None };
    let folder = tempfile::tempdir().expect("a folder");
    let mut path = Path::new(env!("CARGO_BIN_EXE_nuncio")).parent().expect("a folder").as_os_str().to_owned();
    path.push(":");
    path.push(std::env::var_os("PATH").unwrap_or_default());
    let mut command = Command::new("bash");
    command.arg("-c").arg(&script).current_dir(folder.path()).env_clear().env("PATH", path);
    command.env("NUNCIO__SERVER__LISTEN", &address).env("NUNCIO__LOG__LEVEL", "warn");
    command.env("NUNCIO_SERVER", format!("http://{address}"));
    command.envs(database.as_ref().map(|database| ("DATABASE_URL", database.url())));
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).process_group(0);
    let child = command.spawn().expect("bash runs");
    let group = child.id().expect("it runs");
    let output = timeout(PATIENCE, child.wait_with_output()).await;
    // A page that failed half-way leaves its processes running.
    let _ = Command::new("kill").args(["-KILL", "--", &format!("-{group}")]).stderr(Stdio::null()).status().await;
    let Ok(output) = output else { panic!("{}: its commands did not end in time", page.display()) };
    let output = output.expect("it can be waited for");
    let told = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    assert!(output.status.success(), "{}: {}\n{told}", page.display(), output.status);
    eprintln!("{}: ran", page.display());
}

#[tokio::test]
#[ignore = "heavy: needs bash, curl and sqlite3"]
async fn heavy_guide_commands() {
    for page in pages() {
        // That page generates clients, which have separate tests.
        if !page.ends_with("api/clients.md") {
            run(&page).await;
        }
    }
}

/// Returns all pages of the guide.
fn pages() -> Vec<PathBuf> {
    let (mut folders, mut pages) = (vec![repository().join("docs/guide/src")], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).expect("a folder") {
            let path = entry.expect("an entry").path();
            if path.is_dir() {
                folders.push(path);
            } else {
                pages.push(path);
            }
        }
    }
    pages.sort();
    pages
}

/// Blocks of JSON must parse, `nuncio.toml` must be accepted, and every block must have a language that a test runs or parses.
#[test]
fn guide_blocks_are_what_they_say() {
    let mut seen = 0;
    for page in pages() {
        for Block { language, tags, text } in blocks(&std::fs::read_to_string(&page).expect("a page")) {
            let at = format!("{}: {text}", page.display());
            match language.as_str() {
                "json" => {
                    serde_json::from_str::<serde_json::Value>(&text).unwrap_or_else(|error| panic!("{error}: {at}"));
                }
                "toml" if !text.contains("{{#include") => {
                    let file = tempfile::NamedTempFile::new().expect("a file");
                    std::fs::write(file.path(), &text).expect("written");
                    nuncio::config::Config::load(Some(file.path()), std::iter::empty()).unwrap_or_else(|error| panic!("{error}: {at}"));
                }
                "sh" => assert!(matches!(tags.as_slice(), [] | [_]), "{at}"),
                "python" | "typescript" | "go" | "rust" => {
                    assert!(page.ends_with("verify.md") || page.ends_with("clients.md"), "no test runs this. {at}");
                }
                // Files of other programs, and diagrams.
                "toml" | "ini" | "nginx" | "text" | "" => {}
                other => panic!("{other} is a language that no test knows. {at}"),
            }
            seen += 1;
        }
    }
    assert!(seen > 60, "{seen}");
}

/// The secret of the requests below, and another one.
const SECRET: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
const OTHER: &str = "whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oD";

/// A request to verify: name, whether it is genuine, secret, headers, body.
type Request = (&'static str, bool, &'static str, BTreeMap<&'static str, String>, &'static str);

fn requests() -> Vec<Request> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs() as i64;
    let body = r#"{"type":"message.delivered","data":{"text":"ñ €"}}"#;
    let sign = |secret: &str, at: i64| {
        standardwebhooks::Webhook::new(secret).expect("a secret").sign("evt_1", at, body.as_bytes()).expect("signed")
    };
    let headers = |at: i64, signature: String| {
        let headers = [("webhook-id", "evt_1".to_owned()), ("webhook-timestamp", at.to_string()), ("webhook-signature", signature)];
        BTreeMap::from(headers)
    };
    let rotated = format!("{} {}", sign(OTHER, now), sign(SECRET, now));
    vec![
        ("good", true, SECRET, headers(now, sign(SECRET, now)), body),
        ("after a rotation", true, SECRET, headers(now, rotated), body),
        ("another secret", false, OTHER, headers(now, sign(SECRET, now)), body),
        ("another body", false, SECRET, headers(now, sign(SECRET, now)), "{}"),
        ("another time", false, SECRET, headers(now + 1, sign(SECRET, now)), body),
        ("old", false, SECRET, headers(now - 600, sign(SECRET, now - 600)), body),
        ("of the future", false, SECRET, headers(now + 600, sign(SECRET, now + 600)), body),
        ("another version", false, SECRET, headers(now, sign(SECRET, now).replace("v1,", "v2,")), body),
    ]
}

/// Returns the guide's program that verifies a webhook, in a language.
fn verifier(language: &str) -> String {
    let page = repository_file("docs/guide/src/webhooks/verify.md");
    let mut found: Vec<_> = blocks(&page).into_iter().filter(|block| block.language == language).collect();
    assert_eq!(found.len(), 1, "{language}");
    found.remove(0).text
}

/// Runs the commands in a folder with these files and `requests.json`; the last one must print the number of requests.
async fn verified_by(files: &[(&str, &str)], commands: &[&[&str]], modules: Option<&Path>) {
    let (folder, requests) = (tempfile::tempdir().expect("a folder"), requests());
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("written");
    }
    std::fs::write(folder.path().join("requests.json"), serde_json::to_string(&requests).expect("JSON")).expect("written");
    if let Some(modules) = modules {
        std::os::unix::fs::symlink(modules, folder.path().join("node_modules")).expect("a link");
    }
    let mut printed = String::new();
    for line in commands {
        let mut command = Command::new(line[0]);
        command.args(&line[1..]).current_dir(folder.path()).env("GOTOOLCHAIN", "local").env("GOFLAGS", "-mod=mod");
        let output = timeout(PATIENCE, command.output()).await.expect("in time").unwrap_or_else(|error| panic!("{}: {error}", line[0]));
        printed = String::from_utf8_lossy(&output.stdout).into_owned();
        assert!(output.status.success(), "{line:?}: {printed}{}", String::from_utf8_lossy(&output.stderr));
    }
    assert_eq!(printed.trim(), requests.len().to_string());
}

const PYTHON: &str = r"
import json
from block import verify
requests = json.load(open('requests.json'))
for name, wanted, secret, headers, body in requests:
    try:
        got = verify(secret, headers, body.encode()) == json.loads(body)
    except ValueError:
        got = False
    assert got == wanted, (name, got)
print(len(requests))
";

#[tokio::test]
#[ignore = "heavy: needs Python"]
async fn heavy_guide_verify_python() {
    verified_by(&[("block.py", &verifier("python")), ("main.py", PYTHON)], &[&["python3", "main.py"]], None).await;
}

const TYPESCRIPT: &str = r#"
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { verify } from "./block.js";
type Request = [string, boolean, string, Record<string, string>, string];
const requests = JSON.parse(readFileSync("requests.json", "utf8")) as Request[];
for (const [name, wanted, secret, headers, body] of requests) {
  let got: unknown;
  try { got = verify(secret, headers, Buffer.from(body)); } catch { got = undefined; }
  assert.deepEqual(got, wanted ? JSON.parse(body) : undefined, name);
}
console.log(requests.length);
"#;

#[tokio::test]
#[ignore = "heavy: needs the npm peers"]
async fn heavy_guide_verify_typescript() {
    let Some(modules) = node_modules() else { return };
    let compile =
        ["node", "node_modules/typescript/bin/tsc", "--strict", "--target", "es2022", "--module", "nodenext", "--types", "node", "main.ts"];
    let files =
        [("block.ts", verifier("typescript")), ("main.ts", TYPESCRIPT.to_owned()), ("package.json", r#"{"type": "module"}"#.to_owned())];
    let files = files.each_ref().map(|(name, text)| (*name, text.as_str()));
    verified_by(&files, &[&compile, &["node", "main.js"]], Some(&modules)).await;
}

const GO: &str = r#"
package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"

	"guide/webhook"
)

func main() {
	file, _ := os.ReadFile("requests.json")
	var requests [][]json.RawMessage
	if err := json.Unmarshal(file, &requests); err != nil {
		panic(err)
	}
	for _, request := range requests {
		var name, secret, body string
		var wanted bool
		var headers map[string]string
		for n, into := range []any{&name, &wanted, &secret, &headers, &body} {
			if err := json.Unmarshal(request[n], into); err != nil {
				panic(err)
			}
		}
		header := http.Header{}
		for name, value := range headers {
			header.Set(name, value)
		}
		if err := webhook.Verify(secret, header, []byte(body)); (err == nil) != wanted {
			panic(fmt.Sprint(name, ": ", err))
		}
	}
	fmt.Println(len(requests))
}
"#;

#[tokio::test]
#[ignore = "heavy: needs Go"]
async fn heavy_guide_verify_go() {
    if std::process::Command::new("go").arg("version").output().is_err() {
        eprintln!("SKIPPED: no Go here");
        return;
    }
    let files = [("go.mod", "module guide\n\ngo 1.19\n"), ("main.go", GO), ("webhook.go", &verifier("go"))];
    let sort: &[&str] = &["sh", "-c", "mkdir webhook && mv webhook.go webhook/"];
    verified_by(&files, &[sort, &["go", "vet", "./..."], &["go", "run", "."]], None).await;
}

/// Returns the event, or why the request is not genuine.
fn verify(secret: &str, headers: &http::HeaderMap, body: &[u8]) -> Result<serde_json::Value, Box<dyn std::error::Error>> {
    standardwebhooks::Webhook::new(secret)?.verify(body, headers)?;
    Ok(serde_json::from_slice(body)?)
}

#[test]
fn guide_verify_rust() {
    assert!(include_str!("guide.rs").contains(&verifier("rust")), "the guide shows another program than the one tested here");
    for (name, genuine, secret, headers, body) in requests() {
        let headers = headers.iter().map(|(name, value)| (http::HeaderName::from_static(name), value.parse().expect("a value"))).collect();
        assert_eq!(verify(secret, &headers, body.as_bytes()).is_ok(), genuine, "{name}");
    }
}

#[test]
fn guide_blocks_are_found_in_lists_too() {
    let page = "1. One\n\n   ```sh\n   cat <<X\n     y\n   X\n   ```\n\n```sh,norun\nno\n```\n\n```toml\na = 1\n```\n";
    let found: Vec<_> = blocks(page).into_iter().map(|b| (b.language, b.tags, b.text)).collect();
    assert_eq!(found[0], ("sh".to_owned(), vec![], "cat <<X\n  y\nX\n".to_owned()));
    assert_eq!((found[1].1.as_slice(), found[2].0.as_str()), (["norun".to_owned()].as_slice(), "toml"));
    assert!(script(page, "x", false, false).is_some_and(|script| script.contains("cat <<X") && !script.contains("\nno\n")));
    assert!(script("# Nothing\n", "x", false, false).is_none());
}
