//! Runs schemathesis (PyPI), a third-party tool that generates requests from `/openapi.json` and checks every response: no 5xx; no
//! undocumented status, content type or body; no invalid input accepted; links work.

use nuncio_domain::Environment;
use nuncio_testkit::{Backend, Database, peer_python, repository};
use tokio::process::Command;

use crate::server::Install;

#[tokio::test]
#[ignore = "heavy: needs the Python peers"]
async fn heavy_schema_sqlite() {
    drive(Backend::Sqlite).await;
}

#[tokio::test]
#[ignore = "heavy: needs the Python peers and PostgreSQL"]
async fn heavy_schema_postgres() {
    drive(Backend::Postgres).await;
}

async fn drive(backend: Backend) {
    let (database, folder) = (Database::make(backend).await, tempfile::tempdir().expect("a folder"));
    let install = Install { data: folder.path().join("data"), database: database.url() };
    let keys = install.keys().await;
    let server = install.start(&[]).await;
    let status = Command::new(peer_python().with_file_name("st"))
        .current_dir(folder.path())
        .env("SCHEMATHESIS_HOOKS", repository().join("peers/schemathesis_hooks.py"))
        .arg("--config-file")
        .arg(repository().join("peers/schemathesis.toml"))
        .args(["run", "--no-color", "--warnings", "off", "--header"])
        .arg(format!("Authorization: Bearer {}", keys.of(Environment::Test)))
        .arg(format!("http://{}/openapi.json", server.address))
        .status()
        .await
        .expect("schemathesis starts; scripts/deps.sh installs it");
    assert!(status.success(), "what failed stands above, with a command that shows it again");
}
