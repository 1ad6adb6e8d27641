//! The socket by which commands reach the server that holds the data folder.

use std::path::Path;
use std::time::Duration;

use anyhow::Context as _;
use nuncio_core::Core;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{UnixListener, UnixStream};

use super::{Request, explain, run};
use crate::answer::CommandOutput;

/// The largest command: an inventory of some hundred thousand numbers.
const COMMAND_BYTES: u64 = 32 * 1024 * 1024;

/// How long a command may take to come.
const COMMAND_TIME: Duration = Duration::from_secs(30);
/// How long to wait when no connection can be taken, such as for want of open files.
const RETRY: Duration = Duration::from_millis(100);

/// How an answer or an error travels through the socket.
type Wire = std::result::Result<CommandOutput, String>;

/// Serves commands at `path` until the task is dropped. Only the owner of the data folder can connect.
pub async fn listen(core: Core, path: &Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    let _ = std::fs::remove_file(path); // left behind by a process that was killed; the folder's lock is ours
    let listener = UnixListener::bind(path).with_context(|| path.display().to_string())?;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
    loop {
        let stream = match listener.accept().await {
            Ok((stream, _)) => stream,
            Err(error) => {
                tracing::warn!(%error, "failed to accept admin connection; will retry");
                tokio::time::sleep(RETRY).await;
                continue;
            }
        };
        let core = core.clone();
        tokio::spawn(async move {
            if let Err(error) = serve(&core, stream).await {
                tracing::warn!(%error, "failed to respond to admin command");
            }
        });
    }
}

async fn serve(core: &Core, mut stream: UnixStream) -> anyhow::Result<()> {
    let mut bytes = Vec::new();
    let mut asked = (&mut stream).take(COMMAND_BYTES);
    tokio::time::timeout(COMMAND_TIME, asked.read_to_end(&mut bytes)).await.context("the command was not received in time")??;
    let answer: Wire = match serde_json::from_slice(&bytes) {
        Ok(request) => run(core, request).await.map_err(|e| explain(&e)),
        Err(error) => Err(format!("the running server does not support this command; it might be another version ({error})")),
    };
    stream.write_all(&serde_json::to_vec(&answer)?).await?;
    stream.shutdown().await?;
    Ok(())
}

/// Sends a command to the server that holds the data folder.
pub async fn ask(path: &Path, request: &Request) -> anyhow::Result<CommandOutput> {
    let mut stream = UnixStream::connect(path).await.with_context(|| {
        format!("the data folder is in use, but no server responds at {}; one might be starting or stopping", path.display())
    })?;
    stream.write_all(&serde_json::to_vec(request)?).await?;
    stream.shutdown().await?;
    let mut bytes = Vec::new();
    stream.read_to_end(&mut bytes).await?;
    let answer: Wire = serde_json::from_slice(&bytes)?;
    answer.map_err(anyhow::Error::msg)
}
