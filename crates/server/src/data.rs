//! Opens the data folder: its lock, key file and database.

use std::error::Error as _;
use std::fs::{File, OpenOptions, TryLockError};
use std::io::{ErrorKind, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, anyhow, bail};
use nuncio_core::{Core, Sealer};
use nuncio_domain::{Entropy, Redacted};
use nuncio_store::Store;
use nuncio_store_sql::Target;

use crate::config::StorageConfig;

/// The embedded database.
pub(crate) const DATABASE: &str = "nuncio.db";
/// Where the server of this folder listens, while it runs.
pub(crate) const ADDRESS: &str = "address";
/// The encryption keys, unless the settings have them.
const KEYS: &str = "encryption.keys";

/// The data folder, created if missing, readable by its owner only.
#[derive(Debug)]
pub(crate) struct DataDir {
    path: PathBuf,
}

/// Held while a process uses the SQLite database.
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
            .with_context(|| format!("failed to create the data folder {}; choose another with --data", path.display()))?;
        let mode = std::fs::metadata(path).with_context(|| path.display().to_string())?.permissions().mode();
        if mode & 0o1000 != 0 {
            bail!("{} is shared by all users of this machine; choose a separate data folder with --data", path.display());
        }
        let data = Self { path: path.to_owned() };
        tighten(path);
        ["lock", "quickstart.json"].iter().for_each(|name| tighten(&data.file(name)));
        Ok(data)
    }

    /// Takes the lock, or returns `None` if another process holds it.
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
            Target::Sqlite(self.path.join(DATABASE))
        } else {
            Target::Postgres(Redacted::new(storage.database.clone()))
        }
    }

    /// Opens the database and brings its schema up to date.
    ///
    /// # Errors
    ///
    /// Says what to do about an error, where that is known.
    pub(crate) async fn open_store(&self, storage: &StorageConfig) -> anyhow::Result<Arc<dyn Store>> {
        let target = self.target(storage);
        if let Target::Sqlite(path) = &target {
            refuse_links(path)?;
        }
        nuncio_store_sql::open(&target).await.map_err(|error| advised(error.into()))
    }

    /// Returns the encryption keys: from the settings, or from the key file, which is created first if missing. Comes after
    /// [`Self::open_store`]: a folder with keys and without a database belongs to a PostgreSQL installation.
    pub(crate) fn sealer(&self, storage: &StorageConfig, entropy: &dyn Entropy) -> anyhow::Result<(Sealer, KeySource)> {
        if !storage.encryption_keys.is_empty() {
            return Ok((Sealer::parse(&storage.encryption_keys).context("storage.encryption_keys")?, KeySource::Setting));
        }
        let path = self.key_file();
        let source = if path.exists() { KeySource::File } else { KeySource::NewFile };
        if source == KeySource::NewFile {
            write_private(&path, Sealer::generate(entropy).expose())?;
        }
        let mode = std::fs::metadata(&path).with_context(|| path.display().to_string())?.permissions().mode();
        if mode & 0o077 != 0 {
            bail!("{} can be read by others; run chmod 600 on it", path.display());
        }
        let text = std::fs::read_to_string(&path).with_context(|| path.display().to_string())?;
        Ok((Sealer::parse(&text).with_context(|| path.display().to_string())?, source))
    }

    /// Fails unless the database was set up with these keys. If it fails, deletes a key file that was just created: it must not pass for the
    /// missing one.
    pub(crate) async fn check_keys(&self, source: KeySource, core: &Core) -> anyhow::Result<()> {
        let Err(error) = core.projects().check_keys().await else { return Ok(()) };
        // Keys that differ have no further cause; a database that fails has one.
        if error.source().is_some() {
            return Err(advised(error.into()));
        }
        let path = self.key_file();
        if source == KeySource::NewFile {
            std::fs::remove_file(&path).with_context(|| path.display().to_string())?;
        }
        let here = match source {
            KeySource::Setting => "they come from the setting".to_owned(),
            KeySource::File => format!("they come from {}", path.display()),
            KeySource::NewFile => format!("{} is missing", path.display()),
        };
        Err(error).with_context(|| {
            format!(
                "every node and every command on a database needs the same encryption keys. Use those of a working node: its file \
                 encryption.keys in the data folder, or storage.encryption_keys. Here {here}; never remove the oldest key, on the last line"
            )
        })
    }

    pub(crate) fn key_file(&self) -> PathBuf {
        self.path.join(KEYS)
    }
}

/// Where the encryption keys come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum KeySource {
    Setting,
    File,
    /// The file was missing, and has been created.
    NewFile,
}

/// Fails where the database is missing, before anything is created; what `begins` an installation may create an embedded one.
///
/// # Errors
///
/// Also if the folder belongs to another user.
pub(crate) fn check_installed(storage: &StorageConfig, begins: bool) -> anyhow::Result<()> {
    let folder = &storage.data;
    if !storage.database.is_empty() || has_database(folder)? {
        return Ok(());
    }
    let shown = folder.display();
    if has_file(folder, KEYS)? {
        if folder.join(DATABASE).exists() {
            bail!("{shown}/nuncio.db is empty, as after a copy that failed; restore a backup (guide: Backup and restore)");
        }
        bail!(
            "{shown} belongs to a PostgreSQL installation: it has encryption.keys, but no nuncio.db; give --database, \
             NUNCIO__STORAGE__DATABASE, or storage.database in nuncio.toml. If nuncio.db was lost, restore a backup"
        );
    }
    if !begins {
        bail!("found no installation in {shown}; give its folder with --data, or create one with `nuncio quickstart` or `serve`");
    }
    Ok(())
}

/// Whether the folder holds an embedded database. An empty file, as a copy that failed leaves, is none.
///
/// # Errors
///
/// Says that the folder belongs to another user.
pub(crate) fn has_database(folder: &Path) -> anyhow::Result<bool> {
    has_file(folder, DATABASE)
}

fn has_file(folder: &Path, name: &str) -> anyhow::Result<bool> {
    match folder.join(name).metadata() {
        Ok(file) => Ok(file.len() > 0),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(false),
        Err(error) => Err(unreadable(folder, error)),
    }
}

fn unreadable(folder: &Path, error: std::io::Error) -> anyhow::Error {
    let folder = folder.display();
    match error.kind() {
        ErrorKind::PermissionDenied => {
            anyhow!("{folder} belongs to another user: run the command as that one, such as `sudo -u nuncio nuncio …`")
        }
        _ => anyhow!("{folder}: {error}"),
    }
}

/// An error of a database with what to do about it, where that is known.
pub(crate) fn advised(error: anyhow::Error) -> anyhow::Error {
    match advice(&format!("{error:#}")) {
        Some(advice) => anyhow!("{advice}: {}", error.root_cause()),
        None => error,
    }
}

/// What to do about an error of a database. It is known by its text: the code does not come this far.
fn advice(error: &str) -> Option<&'static str> {
    let has = |parts: &[&str]| parts.iter().any(|part| error.contains(part));
    let lacks = |what: &str| error.contains(what) && error.contains("\" does not exist");
    if has(&["database disk image is malformed", "file is not a database"]) {
        return Some("nuncio.db is damaged; restore a backup (guide: Backup and restore)");
    }
    if has(&["attempt to write a readonly database", "unable to open database file"]) {
        return Some("nuncio.db cannot be written; check who owns it and its folder, and whether the disk is read-only");
    }
    if has(&["permission denied for ", "must be owner of "]) {
        return Some("the PostgreSQL user must own the database, as after ALTER DATABASE nuncio OWNER TO nuncio (guide: PostgreSQL)");
    }
    if lacks("database \"") {
        return Some("PostgreSQL has no such database; create it, as by CREATE DATABASE nuncio OWNER nuncio (guide: PostgreSQL)");
    }
    if has(&["no pg_hba.conf entry"]) && has(&["no encryption"]) {
        return Some("PostgreSQL refuses the user without encryption; add sslmode=require to the URL (guide: PostgreSQL)");
    }
    if has(&["invalid peer certificate"]) {
        return Some("the certificate of PostgreSQL cannot be verified; give its root as sslrootcert in the URL (guide: PostgreSQL)");
    }
    if lacks("role \"") || has(&["authentication failed for user", "no pg_hba.conf entry", "is not permitted to log in"]) {
        return Some("PostgreSQL refuses the user or the password (guide: PostgreSQL)");
    }
    None
}

/// Refuses a database with another name: a server in another folder, whose lock is another, could use it at the same time.
fn refuse_links(database: &Path) -> anyhow::Result<()> {
    let Ok(file) = std::fs::symlink_metadata(database) else { return Ok(()) };
    if file.is_symlink() || file.nlink() > 1 {
        bail!("{} is a link, so two servers could use one database; move the file itself into the data folder", database.display());
    }
    Ok(())
}

/// Removes the permissions of group and others from a file or folder, if it exists.
fn tighten(path: &Path) {
    let Ok(metadata) = std::fs::metadata(path) else { return };
    let mode = metadata.permissions().mode() & 0o7777;
    if mode & 0o077 == 0 {
        return;
    }
    let (was, path_shown) = (format!("{mode:04o}"), path.display());
    match std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & !0o077)) {
        Ok(()) => tracing::warn!(path = %path_shown, was, "file was accessible to others; restricted it to its owner"),
        Err(error) => tracing::warn!(path = %path_shown, was, %error, "failed to restrict a file that is accessible to others"),
    }
}

/// Writes a file readable by its owner only, and syncs it before renaming it into place.
///
/// # Errors
///
/// Names the file. What it held before stays.
pub(crate) fn write_private(path: &Path, text: &str) -> anyhow::Result<()> {
    let temporary = path.with_extension("new");
    let written = write_by(&temporary, path, text);
    if written.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    written.with_context(|| format!("{} cannot be written", path.display()))
}

fn write_by(temporary: &Path, path: &Path, text: &str) -> std::io::Result<()> {
    let mut file = OpenOptions::new().create(true).truncate(true).write(true).mode(0o600).open(temporary)?;
    file.write_all(text.as_bytes())?;
    file.sync_all()?;
    std::fs::rename(temporary, path)?;
    path.parent().map_or(Ok(()), |folder| File::open(folder)?.sync_all())
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, metadata, set_permissions};

    use super::*;

    fn mode(path: &Path) -> u32 {
        metadata(path).expect("it is there").permissions().mode() & 0o7777
    }

    #[test]
    fn known_errors_of_a_database_say_what_to_do() {
        for (error, said) in [
            ("(code: 11) database disk image is malformed", "nuncio.db is damaged"),
            ("(code: 26) file is not a database", "nuncio.db is damaged"),
            ("(code: 8) attempt to write a readonly database", "nuncio.db cannot be written"),
            ("permission denied for schema public", "must own the database"),
            ("database \"nuncio\" does not exist", "no such database"),
            ("role \"nuncio\" does not exist", "refuses the user"),
            ("password authentication failed for user \"nuncio\"", "refuses the user"),
            ("invalid peer certificate: UnknownIssuer", "give its root as sslrootcert"),
            ("no pg_hba.conf entry for host \"::1\", user \"nuncio\", database \"nuncio\", no encryption", "add sslmode=require"),
        ] {
            let shown = format!("{:#}", advised(anyhow!("error returned from database: {error}")));
            assert!(shown.contains(said) && shown.ends_with(error), "{shown}");
        }
        assert_eq!(advised(anyhow!("disk full")).to_string(), "disk full");
    }

    #[test]
    fn a_file_that_cannot_be_written_is_named_and_leaves_nothing() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("address");
        std::fs::create_dir(&path).expect("a folder in its place");
        let error = write_private(&path, "127.0.0.1:8025").expect_err("it is a folder");
        assert!(format!("{error:#}").starts_with(&format!("{} cannot be written: ", path.display())), "{error:#}");
        assert!(!folder.path().join("address.new").exists());
    }

    #[test]
    fn a_folder_of_another_user_is_not_an_absent_one() {
        let denied = unreadable(Path::new("nuncio-data"), ErrorKind::PermissionDenied.into());
        assert!(denied.to_string().starts_with("nuncio-data belongs to another user: run the command as that one"), "{denied}");
        let folder = tempfile::tempdir().expect("a folder");
        assert!(!has_database(&folder.path().join("absent")).expect("it can be read"));
    }

    #[test]
    fn the_folder_is_its_owners_alone_also_if_it_was_there_before() {
        let parent = tempfile::tempdir().expect("a folder");
        for (name, before, after) in [("wide", 0o755, 0o700), ("group", 0o770, 0o700), ("narrow", 0o500, 0o500)] {
            let path = parent.path().join(name);
            std::fs::create_dir(&path).expect("a folder");
            std::fs::write(path.join("quickstart.json"), "{}").expect("a file");
            set_permissions(path.join("quickstart.json"), Permissions::from_mode(0o644)).expect("rights");
            set_permissions(&path, Permissions::from_mode(before)).expect("rights");
            DataDir::open(&path).expect("it opens");
            assert_eq!((mode(&path), mode(&path.join("quickstart.json"))), (after, 0o600), "{name}");
        }
        DataDir::open(&parent.path().join("new/deep")).expect("it is made");
        assert_eq!(mode(&parent.path().join("new/deep")), 0o700);
        let shared = parent.path().join("shared");
        std::fs::create_dir(&shared).expect("a folder");
        set_permissions(&shared, Permissions::from_mode(0o1777)).expect("rights");
        assert!(DataDir::open(&shared).is_err_and(|error| error.to_string().contains("--data")));
        assert_eq!(mode(&shared), 0o1777, "a folder that others use is left alone");
    }
}
