//! The command line as a whole.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

use super::input::Node;
use super::installed::InstalledAction;
use super::remote::RemoteAction;

/// A self-hosted messaging server: one API for SMS, WhatsApp, Telegram, email, Instagram and voice.
#[derive(Debug, Parser)]
#[command(name = "nuncio", version, max_term_width = 100, after_help = EXIT_CODES)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(super) action: Action,
}

const EXIT_CODES: &str = "Exit codes: 0 success; 1 failure; 2 wrong command line; 3 server unreachable; 4 still in progress.";

#[derive(Debug, Subcommand)]
pub(super) enum Action {
    /// Run the server.
    Serve(Node),
    /// Run the server, create keys, and send a first message in the sandbox.
    Quickstart {
        #[command(flatten)]
        node: Node,
        /// Exit once the message is delivered.
        #[arg(long)]
        exit: bool,
    },
    /// Ask a few questions, write nuncio.toml, and set up and test a first connection.
    Init,
    #[command(flatten)]
    Remote(RemoteAction),
    #[command(flatten)]
    Installed(InstalledAction),
    /// Check or show the configuration.
    Config {
        #[command(subcommand)]
        action: ConfigAction,
    },
    /// Print a completion script for a shell, such as: nuncio completions bash > /etc/bash_completion.d/nuncio
    Completions {
        /// The shell.
        shell: clap_complete::Shell,
    },
    /// Write manual pages.
    Man {
        /// The folder to write them to.
        folder: PathBuf,
    },
}

#[derive(Debug, Subcommand)]
pub(super) enum ConfigAction {
    /// Check the file and the environment variables, and report every problem.
    Check(Node),
    /// Show the effective settings, without secrets.
    Show(Node),
}
