//! Simulates a slow disk: compiles a small C library that, preloaded into a process, delays each sync.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};

const SOURCE: &str = include_str!("../shim/sync_delay.c");

/// A compiled delay.
#[derive(Debug)]
pub(crate) struct Shim {
    library: PathBuf,
    mark: PathBuf,
    delay: Duration,
}

impl Shim {
    /// Compiles the delay into `dir`, which the delayed process must be able to read and write.
    pub(crate) fn build(dir: &Path, delay: Duration) -> Result<Self> {
        let source = dir.join("sync_delay.c");
        let library = dir.join("sync_delay.so");
        fs::write(&source, SOURCE)?;
        let status = Command::new("cc")
            .args(["-O2", "-shared", "-fPIC", "-Wall", "-Werror", "-o"])
            .args([&library, &source])
            .arg("-ldl")
            .status()
            .context("a C compiler (cc) is needed for the slow disk")?;
        ensure!(status.success(), "cc failed on {}", source.display());
        Ok(Self { library, mark: dir.join("sync_delay.mark"), delay })
    }

    /// Returns the environment variables of a delayed process.
    pub(crate) fn environment(&self) -> [(&'static str, String); 3] {
        [
            ("LD_PRELOAD", self.library.display().to_string()),
            ("NUNCIO_BENCH_SYNC_DELAY_US", self.delay.as_micros().to_string()),
            ("NUNCIO_BENCH_SYNC_MARK", self.mark.display().to_string()),
        ]
    }

    /// Clears the record of syncs, so that [`Self::took_effect`] covers only what follows.
    pub(crate) fn reset(&self) {
        fs::remove_file(&self.mark).ok();
    }

    /// Returns whether a sync was delayed since the last reset.
    pub(crate) fn took_effect(&self) -> bool {
        self.mark.exists()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Instant;

    use super::*;

    #[test]
    fn a_preloaded_process_syncs_slowly_and_leaves_its_mark() {
        let dir = tempfile::tempdir().unwrap();
        let shim = Shim::build(dir.path(), Duration::from_millis(300)).unwrap();
        let file = dir.path().join("file");
        fs::write(&file, "x").unwrap();

        shim.reset();
        assert!(Command::new("sync").arg("-d").arg(&file).status().unwrap().success());
        assert!(!shim.took_effect());

        let start = Instant::now();
        let mut slow = Command::new("sync");
        slow.arg("-d").arg(&file).envs(shim.environment());
        assert!(slow.status().unwrap().success());
        assert!(start.elapsed() >= Duration::from_millis(300));
        assert!(shim.took_effect());
    }
}
