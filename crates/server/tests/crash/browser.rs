//! Runs `peers/browser.mjs`, which uses all pages in Chromium.

use std::path::PathBuf;
use std::time::Duration;

use nuncio_domain::Environment;
use nuncio_testkit::{Backend, Database, repository};
use tokio::process::Command;
use tokio::time::timeout;

use crate::clients::node_modules;
use crate::server::Install;

/// Maximum duration of the run.
const PATIENCE: Duration = Duration::from_secs(600);

/// Returns the folder for screenshots of all pages: `NUNCIO_TEST_PICTURES`, or `pictures` next to the binaries.
fn pictures() -> PathBuf {
    let beside = || PathBuf::from(env!("CARGO_BIN_EXE_nuncio")).with_file_name("pictures");
    std::env::var_os("NUNCIO_TEST_PICTURES").map_or_else(beside, PathBuf::from)
}

// holds: pages.browser, pages.tasks
#[tokio::test]
#[ignore = "heavy: needs Chromium and the npm peers"]
async fn heavy_browser_walk() {
    let Some(modules) = node_modules() else { return };
    let (database, folder) = (Database::make(Backend::Sqlite).await, tempfile::tempdir().expect("a folder"));
    let install = Install { data: folder.path().join("data"), database: database.url() };
    let key = install.keys().await.of(Environment::Test).to_owned();
    let server = install.start(&[]).await;
    let (_, link) = install.run(&["people", "link"]).await;
    // The link has the server's configured address, which differs here.
    let link = link["link"].as_str().and_then(|link| link.split_once("/begin/")).expect("a link").1;
    let base = format!("http://{}", server.address);
    std::fs::copy(repository().join("peers/browser.mjs"), folder.path().join("browser.mjs")).expect("copied");
    std::os::unix::fs::symlink(&modules, folder.path().join("node_modules")).expect("a link");
    let mut command = Command::new("node");
    command.args(["browser.mjs", &base, &format!("{base}/begin/{link}"), &key, "/usr/bin/chromium"]).arg(pictures());
    command.current_dir(folder.path()).kill_on_drop(true);
    let status = timeout(PATIENCE, command.status()).await.expect("in time").expect("node runs");
    assert!(status.success(), "what is wrong stands above; pictures are in {}", pictures().display());
}
