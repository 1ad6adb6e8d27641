//! Keeps the database's files readable by their owner only.

use std::ffi::OsString;
use std::fs::{OpenOptions, Permissions, metadata, set_permissions};
use std::os::unix::fs::{OpenOptionsExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

use nuncio_store::{Result, StoreError};

/// What SQLite adds to the name of the file.
const FILES: [&str; 4] = ["", "-wal", "-shm", "-journal"];

/// Makes the file if it is not there, and takes the rights of others from the files that are. SQLite makes those beside it alike.
pub(super) fn keep(database: &Path) -> Result<()> {
    let failed = |error| StoreError::Unavailable(format!("{}: {error}", database.display()));
    OpenOptions::new().create(true).append(true).mode(0o600).open(database).map_err(failed)?;
    for suffix in FILES {
        let mut name = OsString::from(database);
        name.push(suffix);
        let path = PathBuf::from(name);
        let Ok(found) = metadata(&path) else { continue };
        let mode = found.permissions().mode() & 0o7777;
        if mode & 0o177 == 0 {
            continue;
        }
        let was = format!("{mode:04o}");
        match set_permissions(&path, Permissions::from_mode(mode & 0o600)) {
            Ok(()) => tracing::warn!(path = %path.display(), was, "database was accessible to others; restricted it to its owner"),
            Err(error) => {
                tracing::warn!(path = %path.display(), was, %error, "database is accessible to others, and restricting it failed; run chmod 600 on it")
            }
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mode(path: &Path) -> u32 {
        metadata(path).unwrap().permissions().mode() & 0o7777
    }

    #[test]
    fn files_of_the_database_are_the_owners_alone_and_never_more_open_than_before() {
        let folder = tempfile::tempdir().unwrap();
        let (old, new) = (folder.path().join("old.db"), folder.path().join("new.db"));
        let old_wal = folder.path().join("old.db-wal");
        for (path, before) in [(&old, 0o644), (&old_wal, 0o660)] {
            std::fs::write(path, "").unwrap();
            set_permissions(path, Permissions::from_mode(before)).unwrap();
        }
        keep(&old).unwrap();
        keep(&new).unwrap();
        assert_eq!([mode(&old), mode(&old_wal), mode(&new)], [0o600; 3]);
        set_permissions(&new, Permissions::from_mode(0o600)).unwrap();
        keep(&new).unwrap();
        assert_eq!(mode(&new), 0o600);
    }
}
