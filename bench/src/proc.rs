//! Reads CPU time and memory of processes, and data about the machine, from the kernel.

use std::fs;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result};
use serde::Serialize;

use crate::stats::{Latency, histogram, record};

/// Ticks per second in `/proc/PID/stat`, on every Linux platform (`USER_HZ`).
const TICKS: f64 = 100.0;

struct Stat {
    parent: u32,
    /// Ticks of the process, user and system.
    own: u64,
    /// Ticks of its children that ended and were waited for.
    waited: u64,
}

impl Stat {
    fn read(pid: u32) -> Option<Self> {
        Self::parse(&fs::read_to_string(format!("/proc/{pid}/stat")).ok()?)
    }

    /// Parses the fields after the name, which can contain spaces (proc(5)).
    fn parse(text: &str) -> Option<Self> {
        let fields: Vec<&str> = text[text.rfind(')')? + 1..].split_whitespace().collect();
        let number = |at: usize| fields.get(at)?.parse::<u64>().ok();
        Some(Self { parent: u32::try_from(number(1)?).ok()?, own: number(11)? + number(12)?, waited: number(13)? + number(14)? })
    }
}

/// Returns the CPU seconds of a process so far, user and system.
pub(crate) fn cpu(pid: u32) -> Option<f64> {
    Some(Stat::read(pid)?.own as f64 / TICKS)
}

/// Returns the CPU seconds of a process and all its children, including ended ones.
pub(crate) fn cpu_with_children(pid: u32) -> Option<f64> {
    let parent = Stat::read(pid)?;
    let children: u64 = pids().filter_map(Stat::read).filter(|stat| stat.parent == pid).map(|stat| stat.own + stat.waited).sum();
    Some((parent.own + parent.waited + children) as f64 / TICKS)
}

fn pids() -> impl Iterator<Item = u32> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok())
}

/// Returns the name of a process.
pub(crate) fn name(pid: u32) -> Option<String> {
    Some(fs::read_to_string(format!("/proc/{pid}/comm")).ok()?.trim().to_owned())
}

/// Returns the resident memory of a process in MB (10^6 bytes): now, and its peak.
pub(crate) fn memory_mb(pid: u32) -> Option<(f64, f64)> {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).ok()?;
    let field = |name: &str| {
        let line = status.lines().find(|line| line.starts_with(name))?;
        let kib: f64 = line.split_whitespace().nth(1)?.parse().ok()?;
        Some(kib * 1024.0 / 1e6)
    };
    Some((field("VmRSS:")?, field("VmHWM:")?))
}

/// Returns the median time in ms to append 4 KiB to a file in `dir` and call fdatasync.
pub(crate) fn sync_ms(dir: &Path) -> Result<f64> {
    use std::io::Write as _;
    let mut file = tempfile::tempfile_in(dir).context("cannot write beside the data")?;
    let mut times = histogram();
    for _ in 0..200 {
        let start = Instant::now();
        file.write_all(&[7; 4096])?;
        file.sync_data()?;
        record(&mut times, start.elapsed());
    }
    Ok(Latency::of(&times).p50_ms)
}

/// The machine under test.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Machine {
    pub(crate) cores: usize,
    pub(crate) model: String,
    pub(crate) memory_gb: f64,
    pub(crate) kernel: String,
    pub(crate) file_system: String,
    pub(crate) load_at_start: String,
    pub(crate) commit: String,
    pub(crate) date: String,
}

impl Machine {
    /// Describes the machine; `dir` will hold the data.
    pub(crate) fn look(root: &Path, dir: &Path) -> Self {
        let read = |path: &str| fs::read_to_string(path).unwrap_or_default();
        let value = |text: &str, key: &str| {
            let line = text.lines().find(|line| line.starts_with(key)).unwrap_or_default();
            line.split_once(':').map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
        };
        let memory = value(&read("/proc/meminfo"), "MemTotal");
        let kib: f64 = memory.trim_end_matches(" kB").parse().unwrap_or(0.0);
        Self {
            cores: std::thread::available_parallelism().map_or(0, usize::from),
            model: value(&read("/proc/cpuinfo"), "model name"),
            memory_gb: kib * 1024.0 / 1e9,
            kernel: format!("Linux {}", read("/proc/sys/kernel/osrelease").trim()),
            file_system: file_system(dir, &read("/proc/mounts")),
            load_at_start: read("/proc/loadavg").split(' ').take(3).collect::<Vec<_>>().join(" "),
            commit: commit(root),
            date: now().format("%Y-%m-%d %H:%M UTC").to_string(),
        }
    }
}

/// Returns the type of the file system of `dir`.
pub(crate) fn file_system(dir: &Path, mounts: &str) -> String {
    let dir = dir.canonicalize().unwrap_or_else(|_| dir.to_owned());
    let rows = mounts.lines().filter_map(|line| {
        let mut fields = line.split(' ').skip(1);
        Some((fields.next()?, fields.next()?))
    });
    // Of mount points with the same length, the last covers the others.
    let best = rows.filter(|(point, _)| dir.starts_with(point)).max_by_key(|(point, _)| point.len());
    best.map_or_else(|| "unknown".to_owned(), |(_, kind)| kind.to_owned())
}

fn commit(root: &Path) -> String {
    let git = |args: &[&str]| {
        let output = Command::new("git").arg("-C").arg(root).args(args).output().ok()?;
        output.status.success().then(|| String::from_utf8_lossy(&output.stdout).trim().to_owned())
    };
    let Some(hash) = git(&["rev-parse", "HEAD"]) else {
        return "none".to_owned();
    };
    match git(&["status", "--porcelain"]) {
        Some(changes) if changes.is_empty() => hash,
        _ => format!("{hash} with changes that are not committed"),
    }
}

pub(crate) fn now() -> chrono::DateTime<chrono::Utc> {
    std::time::SystemTime::now().into()
}

/// Polls at intervals of `pause` until `done`; returns `false` once `patience` is over.
pub(crate) async fn wait_until(patience: Duration, pause: Duration, mut done: impl AsyncFnMut() -> Result<bool>) -> Result<bool> {
    let start = Instant::now();
    loop {
        if done().await? {
            return Ok(true);
        }
        if start.elapsed() > patience {
            return Ok(false);
        }
        tokio::time::sleep(pause).await;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn cpu_fields_are_found_behind_any_name() {
        let text = "42 (a ) b) S 7 42 42 0 -1 4194304 1 2 3 4 150 50 30 20 20 0 9 0 1 2 3";
        let stat = Stat::parse(text).unwrap();
        assert_eq!((stat.parent, stat.own, stat.waited), (7, 200, 50));
    }

    #[test]
    fn this_process_has_cpu_time_and_memory() {
        let pid = std::process::id();
        let (now, most) = memory_mb(pid).unwrap();
        assert!(now > 0.1 && most >= now && most < 10_000.0);
        // In this order: both values only grow.
        let own = cpu(pid).unwrap();
        assert!(cpu_with_children(pid).unwrap() >= own);
        assert_eq!(cpu(u32::MAX), None);
    }

    #[test]
    fn a_child_that_ended_still_counts() {
        let pid = std::process::id();
        let before = cpu_with_children(pid).unwrap();
        let burn = "i=0; while [ $i -lt 300000 ]; do i=$((i+1)); done";
        assert!(Command::new("sh").args(["-c", burn]).status().unwrap().success());
        assert!(cpu_with_children(pid).unwrap() > before);
    }

    #[test]
    fn the_nearest_mount_decides() {
        let mounts = "/dev/a / ext4 rw 0 0\ntmpfs /proc tmpfs rw 0 0\n";
        assert_eq!(file_system(Path::new("/proc/self"), mounts), "tmpfs");
        assert_eq!(file_system(Path::new("/"), mounts), "ext4");
        assert_eq!(file_system(Path::new("/"), ""), "unknown");
    }
}
