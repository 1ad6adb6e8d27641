//! What several commands take.

use anyhow::Context as _;
use clap::ValueEnum;

/// What became of a message that is held.
#[derive(Clone, Copy, Debug, ValueEnum)]
pub(super) enum Decision {
    /// Send it (again).
    Resend,
    /// It went out.
    Sent,
    /// It did not; give up.
    Failed,
}

impl Decision {
    /// Its name in the API.
    pub(super) fn as_str(self) -> &'static str {
        match self {
            Self::Resend => "resend",
            Self::Sent => "sent",
            Self::Failed => "failed",
        }
    }
}

/// The text of a file, or of standard input.
pub(super) fn read(file: &str) -> anyhow::Result<String> {
    match file {
        "-" => Ok(std::io::read_to_string(std::io::stdin())?),
        path => std::fs::read_to_string(path).with_context(|| path.to_owned()),
    }
}
