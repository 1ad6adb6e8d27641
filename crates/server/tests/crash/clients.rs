//! Clients that others generate from `/openapi.json`: in Python by openapi-python-client (PyPI), in TypeScript by openapi-typescript
//! (npm). They are generated, type-checked, and used: send, repeat, list page by page, and verify a webhook.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nuncio_domain::Environment;
use nuncio_testkit::{Backend, Database, peer_python, repository};
use tokio::process::Command;
use tokio::time::timeout;

use crate::http::Http;
use crate::server::{Install, Server};

/// How long a step may take.
const PATIENCE: Duration = Duration::from_secs(300);

// holds: openapi.clients
#[tokio::test]
#[ignore = "heavy: needs the Python peers"]
async fn heavy_client_python() {
    let test = Test::start().await;
    let python = peer_python();
    let generator = python.with_file_name("openapi-python-client");
    let config = repository().join("peers/clients/python.yml");
    let arguments =
        ["generate", "--path", "openapi.json", "--meta", "none", "--output-path", "nuncio_client", "--fail-on-warning", "--config"];
    let path = [python.parent().expect("a folder").to_owned()];
    test.run(&generator, arguments.map(OsStr::new).into_iter().chain([config.as_os_str()]), &path).await;
    test.copy("peers/clients/client.py", "client.py");
    test.run(&python, ["-m", "compileall", "-q", "nuncio_client"].map(OsStr::new), &path).await;
    // What is the same in every generated client is the generator's affair.
    let typed = ["-m", "mypy", "--strict", "--follow-imports=silent", "client.py", "nuncio_client/models", "nuncio_client/api"];
    test.run(&python, typed.map(OsStr::new), &path).await;
    test.run(&python, ["client.py"].map(OsStr::new), &path).await;
}

// holds: openapi.clients
#[tokio::test]
#[ignore = "heavy: needs the npm peers"]
async fn heavy_client_typescript() {
    let modules = std::env::var_os("NUNCIO_PEER_NODE").map_or_else(|| repository().join(".peers/node"), PathBuf::from);
    let modules = modules.join("node_modules");
    if !modules.join(".bin/openapi-typescript").exists() {
        eprintln!("SKIPPED: no npm packages in {}; scripts/deps.sh installs them where there is node", modules.display());
        return;
    }
    let test = Test::start().await;
    std::os::unix::fs::symlink(modules.canonicalize().expect("a folder"), test.folder().join("node_modules")).expect("a link");
    test.copy("peers/clients/client.ts", "client.ts");
    test.copy("peers/clients/tsconfig.json", "tsconfig.json");
    std::fs::write(test.folder().join("package.json"), r#"{"type": "module"}"#).expect("written");
    test.run(&modules.join(".bin/openapi-typescript"), ["openapi.json", "-o", "nuncio.d.ts"].map(OsStr::new), &[]).await;
    test.run(&modules.join(".bin/tsc"), ["--project", "."].map(OsStr::new), &[]).await;
    test.run(Path::new("node"), ["client.js"].map(OsStr::new), &[]).await;
}

/// A server, and a folder with its document.
struct Test {
    folder: tempfile::TempDir,
    server: Server,
    key: String,
    _database: Database,
}

impl Test {
    async fn start() -> Self {
        let (database, folder) = (Database::make(Backend::Sqlite).await, tempfile::tempdir().expect("a folder"));
        let install = Install { data: folder.path().join("data"), database: database.url() };
        let key = install.keys().await.of(Environment::Test).to_owned();
        let server = install.start(&[]).await;
        let mut http = Http::connect(server.address).await.expect("a connection");
        let document = http.get(&key, "/openapi.json").await.expect("an answer").json;
        std::fs::write(folder.path().join("openapi.json"), document.to_string()).expect("written");
        Self { folder, server, key, _database: database }
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn copy(&self, from: &str, to: &str) {
        std::fs::copy(repository().join(from), self.folder().join(to)).expect(from);
    }

    /// Runs a program in the folder, with these folders first in its search path; it must succeed.
    async fn run<'a>(&self, program: &Path, arguments: impl IntoIterator<Item = &'a OsStr>, first: &[PathBuf]) {
        let path = std::env::var_os("PATH").unwrap_or_default();
        let path = std::env::join_paths(first.iter().cloned().chain(std::env::split_paths(&path))).expect("a search path");
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder()).env("PATH", path).kill_on_drop(true);
        command.env("NUNCIO_URL", format!("http://{}", self.server.address)).env("NUNCIO_KEY", &self.key);
        let status = timeout(PATIENCE, command.status()).await.expect("in time");
        let status = status.unwrap_or_else(|error| panic!("{}: {error}; scripts/deps.sh installs it", program.display()));
        assert!(status.success(), "{} failed; its output is above", program.display());
    }
}
