//! Runs Kannel, the gateway for comparison: bearerbox and smsbox on fresh data, with the sink as SMSC.

use std::fs::{self, File};
use std::net::SocketAddr;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, Result, ensure};
use tempfile::TempDir;
use tokio::process::{Child, Command};

use crate::http::Conn;
use crate::load::Target;
use crate::proc::{self, wait_until};
use crate::smsc::Smsc;
use crate::subject::free_port;
use crate::workload::LOGIN;

/// Shown if it is not installed.
const MISSING: &str = "Kannel is not installed (no bearerbox or smsbox in PATH, /usr/sbin or /usr/lib/kannel): apt-get install kannel";

/// Where it stores accepted messages.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Store {
    /// In a file per message, written but not synced.
    Spool,
    /// In memory.
    Nothing,
}

/// A running Kannel.
#[derive(Debug)]
pub(crate) struct Kannel {
    pub(crate) target: Target,
    bearerbox: Child,
    smsbox: Child,
    /// Last, so that the processes that write there are dropped first.
    dir: TempDir,
}

impl Kannel {
    /// Returns its version.
    ///
    /// # Errors
    /// Returns instructions if it is not installed.
    pub(crate) fn version() -> Result<String> {
        program("smsbox")?;
        let output = std::process::Command::new(program("bearerbox")?).arg("--version").output()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let version =
            text.lines().find_map(|line| line.split_once("version `")).map(|(_, rest)| rest.trim_end_matches(['\'', '.']).to_owned());
        Ok(format!("Kannel {}", version.unwrap_or_else(|| "of an unknown version".to_owned())))
    }

    /// Starts it and waits until `binds` sessions with the sink are open.
    pub(crate) async fn start(work: &Path, store: Store, smsc: &Smsc, binds: usize, window: usize) -> Result<Self> {
        let dir = tempfile::Builder::new().prefix("kannel-").tempdir_in(work)?;
        let [admin, boxes, sendsms] = [free_port()?, free_port()?, free_port()?];
        let text = configuration(dir.path(), store, smsc.addr, [admin, boxes, sendsms], binds, window);
        fs::create_dir(dir.path().join("spool"))?;
        fs::write(dir.path().join("kannel.conf"), text)?;
        let bearerbox = spawn("bearerbox", dir.path())?;
        let tail = || fs::read_to_string(dir.path().join("bearerbox.log")).unwrap_or_default();
        let up = wait_until(Duration::from_secs(20), Duration::from_millis(20), async || Ok(Conn::open(admin).await.is_ok()));
        ensure!(up.await?, "bearerbox does not start:\n{}", tail());
        let smsbox = spawn("smsbox", dir.path())?;
        let ready = wait_until(Duration::from_secs(20), Duration::from_millis(20), async || {
            let Ok(mut conn) = Conn::open(admin).await else { return Ok(false) };
            let Ok(reply) = conn.get(&format!("/status.txt?password={LOGIN}"), "").await else { return Ok(false) };
            let attached = String::from_utf8_lossy(reply.body).contains("smsbox:");
            Ok(attached && smsc.bound() >= binds && Conn::open(sendsms).await.is_ok())
        });
        ensure!(ready.await?, "Kannel is not ready:\n{}", tail());
        Ok(Self { target: Target { addr: sendsms, key: String::new() }, bearerbox, smsbox, dir })
    }

    fn pids(&self) -> Result<[u32; 2]> {
        let pids = [self.bearerbox.id(), self.smsbox.id()];
        let [Some(bearerbox), Some(smsbox)] = pids else { anyhow::bail!("Kannel ended") };
        Ok([bearerbox, smsbox])
    }

    /// Returns the CPU seconds of both programs so far.
    pub(crate) fn cpu(&self) -> Result<f64> {
        self.pids()?.into_iter().map(|pid| proc::cpu(pid).context("Kannel died")).sum()
    }

    /// Returns the resident memory of both programs in MB: now, and the sum of their peaks.
    pub(crate) fn memory_mb(&self) -> Result<(f64, f64)> {
        let mut sum = (0.0, 0.0);
        for pid in self.pids()? {
            let (now, most) = proc::memory_mb(pid).context("Kannel died")?;
            sum = (sum.0 + now, sum.1 + most);
        }
        Ok(sum)
    }

    /// Returns the number of spooled messages.
    pub(crate) fn spooled(&self) -> usize {
        let folders = fs::read_dir(self.dir.path().join("spool")).into_iter().flatten().flatten();
        folders.map(|folder| fs::read_dir(folder.path()).map_or(0, Iterator::count)).sum()
    }

    /// Stops both programs, smsbox first.
    pub(crate) async fn stop(mut self) -> Result<()> {
        for child in [&mut self.smsbox, &mut self.bearerbox] {
            let pid = child.id().context("Kannel was gone before it was stopped")?;
            Command::new("kill").args(["-TERM", &pid.to_string()]).status().await?;
            if tokio::time::timeout(Duration::from_secs(10), child.wait()).await.is_err() {
                child.kill().await?;
            }
        }
        Ok(())
    }
}

/// Returns a program's path. Debian installs them outside of some users' PATH.
fn program(name: &str) -> Result<std::path::PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let dirs = std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/lib/kannel".into()]);
    dirs.map(|dir| dir.join(name)).find(|file| file.is_file()).context(MISSING)
}

fn spawn(name: &str, dir: &Path) -> Result<Child> {
    // Level 4 logs only fatal errors: other lines would cost time.
    let output = File::create(dir.join(format!("{name}.out")))?;
    let mut command = Command::new(program(name)?);
    command.args(["-v", "4", "kannel.conf"]).current_dir(dir).stdin(Stdio::null());
    command.stdout(output.try_clone()?).stderr(output).kill_on_drop(true);
    command.spawn().with_context(|| name.to_owned())
}

fn configuration(dir: &Path, store: Store, smsc: SocketAddr, ports: [SocketAddr; 3], binds: usize, window: usize) -> String {
    let [admin, boxes, sendsms] = ports.map(|addr| addr.port());
    let dir = dir.display();
    let store = match store {
        Store::Spool => format!("store-type = spool\nstore-location = \"{dir}/spool\"\n"),
        Store::Nothing => String::new(),
    };
    format!(
        "group = core\nadmin-port = {admin}\nadmin-interface = 127.0.0.1\nadmin-password = {LOGIN}\n\
         smsbox-port = {boxes}\nsmsbox-interface = 127.0.0.1\ndlr-storage = internal\n\
         log-file = \"{dir}/bearerbox.log\"\nlog-level = 3\n{store}\n\
         group = smsc\nsmsc = smpp\nsmsc-id = sink\nhost = 127.0.0.1\nport = {port}\ntransceiver-mode = true\n\
         smsc-username = {LOGIN}\nsmsc-password = {LOGIN}\nsystem-type = \"\"\n\
         instances = {binds}\nmax-pending-submits = {window}\nenquire-link-interval = 30\n\n\
         group = smsbox\nbearerbox-host = 127.0.0.1\nsendsms-port = {sendsms}\nsendsms-interface = 127.0.0.1\n\
         log-file = \"{dir}/smsbox.log\"\nlog-level = 3\n\n\
         group = sendsms-user\nusername = {LOGIN}\npassword = {LOGIN}\n\n\
         group = sms-service\nkeyword = default\ntext = \"\"\nmax-messages = 0\n",
        port = smsc.port(),
    )
}
