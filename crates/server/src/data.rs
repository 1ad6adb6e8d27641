//! The data folder: its lock, its key file, its database.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::Write as _;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use nuncio_core::{Core, Sealer};
use nuncio_domain::{Entropy, Redacted};
use nuncio_store_sql::Target;

use crate::config::StorageConfig;

/// The folder, made if need be, readable by its owner only.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
}

/// Held while a process works on the embedded database.
#[derive(Debug)]
pub(crate) struct Lock {
    _file: File,
}

impl DataDir {
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        std::fs::DirBuilder::new()
            .recursive(true)
            .mode(0o700)
            .create(path)
            .with_context(|| format!("the data folder {} cannot be made; choose another with --data", path.display()))?;
        Ok(Self { path: path.to_owned() })
    }

    /// The lock, or `None` when another process holds it.
    pub(crate) fn lock(&self) -> anyhow::Result<Option<Lock>> {
        let path = self.path.join("lock");
        let file = OpenOptions::new()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(0o600)
            .open(&path)
            .with_context(|| path.display().to_string())?;
        match file.try_lock() {
            Ok(()) => Ok(Some(Lock { _file: file })),
            Err(TryLockError::WouldBlock) => Ok(None),
            Err(TryLockError::Error(error)) => Err(error).with_context(|| path.display().to_string()),
        }
    }

    pub(crate) fn socket(&self) -> PathBuf {
        self.path.join("admin.sock")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.path.join(name)
    }

    pub(crate) fn target(&self, storage: &StorageConfig) -> Target {
        if storage.database.is_empty() {
            Target::Sqlite(self.path.join("nuncio.db"))
        } else {
            Target::Postgres(Redacted::new(storage.database.clone()))
        }
    }

    /// The keys that provider secrets are sealed with: from the settings, else from the key file, which is made at first.
    pub(crate) fn sealer(&self, storage: &StorageConfig, entropy: &dyn Entropy) -> anyhow::Result<Sealer> {
        if !storage.encryption_keys.is_empty() {
            return Sealer::parse(&storage.encryption_keys).context("storage.encryption_keys");
        }
        let path = self.key_file();
        if !path.exists() {
            write_private(&path, Sealer::generate(entropy).expose())?;
        }
        let mode = std::fs::metadata(&path).with_context(|| path.display().to_string())?.permissions().mode();
        if mode & 0o077 != 0 {
            bail!("{} can be read by others; run chmod 600 on it", path.display());
        }
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Sealer::parse(&text).with_context(|| path.display().to_string())
    }

    /// Fails unless the keys are those that the database was set up with.
    pub(crate) async fn check_keys(&self, storage: &StorageConfig, core: &Core) -> anyhow::Result<()> {
        let source = if storage.encryption_keys.is_empty() { self.key_file().display().to_string() } else { "the setting".to_owned() };
        core.check_keys().await.with_context(|| {
            format!(
                "every node and every command on a database needs the same encryption keys. Take those of a node that works: its file \
                 encryption.keys in the data folder, or storage.encryption_keys. Here they come from {source}; the oldest key, on the \
                 last line, must never be taken out"
            )
        })
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        self.path.join("encryption.keys")
    }
}

/// Writes a file that only its owner can read, synced before it gets its name.
pub(crate) fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let temporary = path.with_extension("new");
    let mut file = OpenOptions::new()
        .create(true)
        .truncate(true)
        .write(true)
        .mode(0o600)
        .open(&temporary)
        .with_context(|| temporary.display().to_string())?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(&temporary, path)?;
    if let Some(folder) = path.parent() {
        File::open(folder)?.sync_all()?;
    }
    Ok(())
}
