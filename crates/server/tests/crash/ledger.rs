//! Records the responses that clients got, independently of the server.

use std::collections::HashSet;
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use nuncio_domain::Environment;

/// A message whose acceptance a client saw.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Entry {
    pub(crate) world: Environment,
    /// Identifies the message: subject of an email, text of others.
    pub(crate) token: String,
    pub(crate) id: String,
    pub(crate) key: Option<String>,
}

#[derive(Debug)]
pub(crate) struct Ledger {
    path: PathBuf,
    file: Mutex<File>,
    in_doubt: Mutex<HashSet<String>>,
    refused: Mutex<HashSet<String>>,
}

impl Ledger {
    pub(crate) fn new(folder: &Path) -> Self {
        let path = folder.join("ledger");
        let file = OpenOptions::new().create_new(true).append(true).open(&path).expect("a new ledger");
        Self { path, file: Mutex::new(file), in_doubt: Mutex::default(), refused: Mutex::default() }
    }

    /// Records an accepted message. Blocks until it is synced to disk.
    pub(crate) fn accepted(&self, entry: &Entry) {
        let Entry { world, token, id, key } = entry;
        let line = format!("{} {token} {id} {}\n", world.as_str(), key.as_deref().unwrap_or("-"));
        let mut file = self.file.lock().expect("no panic");
        file.write_all(line.as_bytes()).expect("the ledger is written");
        file.sync_data().expect("the ledger is synced");
    }

    /// Records a message whose response was lost and that is not repeated.
    pub(crate) fn in_doubt(&self, token: &str) {
        self.in_doubt.lock().expect("no panic").insert(token.to_owned());
    }

    /// Records a rejected message.
    pub(crate) fn refused(&self, token: &str) {
        self.refused.lock().expect("no panic").insert(token.to_owned());
    }

    pub(crate) fn is_in_doubt(&self, token: &str) -> bool {
        self.in_doubt.lock().expect("no panic").contains(token)
    }

    pub(crate) fn was_refused(&self, token: &str) -> bool {
        self.refused.lock().expect("no panic").contains(token)
    }

    /// Returns all accepted messages, read from disk.
    pub(crate) fn entries(&self) -> Vec<Entry> {
        let text = std::fs::read_to_string(&self.path).expect("the ledger is read");
        let entry = |line: &str| {
            let [world, token, id, key] = line.split(' ').map(str::to_owned).collect::<Vec<_>>().try_into().expect("four words");
            let world = if world == Environment::Live.as_str() { Environment::Live } else { Environment::Test };
            Entry { world, token, id, key: Some(key).filter(|key| key != "-") }
        };
        text.lines().map(entry).collect()
    }
}
