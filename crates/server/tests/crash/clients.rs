//! Clients generated from `/openapi.json`: in Python by openapi-python-client (PyPI), in TypeScript by openapi-typescript (npm). The test
//! generates them with the commands of the guide, type-checks them, and uses them: the guide's first steps; then send, repeat, list pages,
//! and verify a webhook.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use nuncio_domain::Environment;
use nuncio_testkit::{Backend, Database, peer_python, repository, repository_file};
use tokio::process::Command;
use tokio::time::timeout;

use crate::guide::{ADDRESS, Block, blocks};
use crate::server::{Install, Server};

/// Maximum duration of a step.
const PATIENCE: Duration = Duration::from_secs(300);

// holds: openapi.clients
#[tokio::test]
#[ignore = "heavy: needs the Python peers"]
async fn heavy_client_python() {
    let test = Test::start().await;
    let python = peer_python();
    let path = [python.parent().expect("a folder").to_owned()];
    let steps = test.generate("## Python", "first_steps.py", &path).await;
    test.copy("peers/clients/client.py", "client.py");
    test.run(&python, ["-m", "compileall", "-q", "nuncio_client"].map(OsStr::new), &path).await;
    // Code that is the same in all generated clients is not checked.
    let typed = ["-m", "mypy", "--strict", "--follow-imports=silent", "client.py", "nuncio_client/models", "nuncio_client/api"];
    test.run(&python, typed.map(OsStr::new), &path).await;
    test.run(&python, ["client.py"].map(OsStr::new), &path).await;
    test.expect(&python, "first_steps.py", &steps).await;
}

// holds: openapi.clients
#[tokio::test]
#[ignore = "heavy: needs the npm peers"]
async fn heavy_client_typescript() {
    let Some(modules) = node_modules() else { return };
    let test = Test::start().await;
    std::os::unix::fs::symlink(&modules, test.folder().join("node_modules")).expect("a link");
    test.copy("peers/clients/client.ts", "client.ts");
    test.copy("peers/clients/tsconfig.json", "tsconfig.json");
    std::fs::write(test.folder().join("package.json"), r#"{"type": "module"}"#).expect("written");
    let steps = test.generate("## TypeScript", "first_steps.ts", &[modules.join(".bin")]).await;
    test.run(&modules.join(".bin/tsc"), ["--project", "."].map(OsStr::new), &[]).await;
    test.run(Path::new("node"), ["client.js"].map(OsStr::new), &[]).await;
    test.expect(Path::new("node"), "first_steps.js", &steps).await;
}

/// Returns the folder of the peers' npm packages, `NUNCIO_PEER_NODE` or that of scripts/deps.sh; `None` with a notice if they are not
/// installed.
pub(crate) fn node_modules() -> Option<PathBuf> {
    let peers = std::env::var_os("NUNCIO_PEER_NODE").map_or_else(|| repository().join(".peers/node"), PathBuf::from);
    let modules = peers.join("node_modules").canonicalize().ok().filter(|modules| modules.join(".bin/openapi-typescript").exists());
    if modules.is_none() {
        eprintln!("SKIPPED: no npm packages in {}; scripts/deps.sh installs them where there is node", peers.display());
    }
    modules
}

/// A server and a working folder.
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
        Self { folder, server, key, _database: database }
    }

    fn folder(&self) -> &Path {
        self.folder.path()
    }

    fn copy(&self, from: &str, to: &str) {
        std::fs::copy(repository().join(from), self.folder().join(to)).expect(from);
    }

    /// Runs the commands of a section of the guide's client page, and saves its program. Returns the output of the commands.
    async fn generate(&self, section: &str, file: &str, path: &[PathBuf]) -> Vec<String> {
        let page = repository_file("docs/guide/src/api/clients.md");
        let (_, rest) = page.split_once(section).expect("the section");
        let section = rest.split("\n## ").next().expect("text");
        let here = |text: &str| text.replace(ADDRESS, &self.server.address.to_string());
        let (commands, programs): (Vec<Block>, Vec<Block>) = blocks(section).into_iter().partition(|block| block.language == "sh");
        for Block { text, .. } in commands.iter().filter(|block| block.tags.is_empty()) {
            self.run(Path::new("bash"), ["-euc", &here(text)].map(OsStr::new), path).await;
        }
        let [Block { text, .. }] = programs.as_slice() else { panic!("one program a section") };
        std::fs::write(self.folder().join(file), here(text)).expect("written");
        let printed = text.lines().filter(|line| line.contains("print(") || line.contains("console.log("));
        printed.map(|line| line.rsplit_once("# ").or(line.rsplit_once("// ")).expect("what it prints").1.to_owned()).collect()
    }

    /// Runs a program and checks its output.
    async fn expect(&self, interpreter: &Path, file: &str, lines: &[String]) {
        let mut command = Command::new(interpreter);
        command.arg(file).current_dir(self.folder()).env("KEY", &self.key).kill_on_drop(true);
        let output = timeout(PATIENCE, command.output()).await.expect("in time").expect("it runs");
        let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
        assert!(output.status.success(), "{file}: {out}{err}");
        assert_eq!(out.lines().collect::<Vec<_>>(), lines, "{file}");
    }

    /// Runs a program in the working folder, with these folders first in `PATH`; it must succeed.
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
