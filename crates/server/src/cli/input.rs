//! What commands have in common: where an installation or a node is, environments, and how values are read.

use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::ValueEnum;
use nuncio_core::contacts::file::FileRow;
use nuncio_domain::{Environment, address};
use serde_json::{Map, Value};

use crate::client::import::is_ndjson;
use crate::client::profile::{self, Access};
use crate::client::send::read_input;
use crate::config::Config;
use crate::data::has_database;
use crate::option_values::node;

/// Where an installation keeps its files.
#[derive(Debug, Default, clap::Args)]
pub(super) struct Installation {
    /// Configuration file [default: nuncio.toml in the working folder, if it exists].
    #[arg(long, global = true, value_name = "FILE", help_heading = "Installation")]
    pub(super) config: Option<PathBuf>,
    /// Data folder [default: nuncio-data].
    #[arg(long, global = true, value_name = "DIR", help_heading = "Installation")]
    pub(super) data: Option<PathBuf>,
    /// PostgreSQL instead of the embedded database: postgres://user@host:5432/name.
    #[arg(long, global = true, value_name = "URL", help_heading = "Installation")]
    pub(super) database: Option<String>,
}

impl Installation {
    pub(super) fn load(&self) -> anyhow::Result<Config> {
        self.load_listening(None)
    }

    /// The settings; those of the command line are checked like the others.
    fn load_listening(&self, listen: Option<&str>) -> anyhow::Result<Config> {
        let given = [("server.listen", listen), ("storage.database", self.database.as_deref())];
        let given: Vec<_> = given.into_iter().filter_map(|(path, value)| Some((path, value?))).collect();
        let mut config = Config::load_with(self.config.as_deref(), std::env::vars_os(), &given)?;
        if let Some(data) = &self.data {
            config.storage.data.clone_from(data);
        }
        Ok(config)
    }
}

/// An installation, and where its server listens.
#[derive(Debug, clap::Args)]
pub(super) struct Node {
    #[command(flatten)]
    pub(super) at: Installation,
    /// Address and port to listen on [default: 127.0.0.1:8025].
    #[arg(long, value_name = "ADDR")]
    pub(super) listen: Option<String>,
}

impl Node {
    pub(super) fn load(&self) -> anyhow::Result<Config> {
        self.at.load_listening(self.listen.as_deref())
    }
}

/// An installation that a command works on. Its server may be running or not.
#[derive(Debug, clap::Args)]
pub(super) struct Asked {
    #[command(flatten)]
    pub(super) at: Installation,
    /// Print JSON, for scripts.
    #[arg(long, global = true, display_order = 901)]
    pub(super) json: bool,
}

// An action and where it happens. No documentation, which would be published as that of the command.
#[derive(Debug, clap::Args)]
pub(super) struct On<P: clap::Args, A: clap::Subcommand> {
    #[command(flatten)]
    pub(super) at: P,
    #[command(subcommand)]
    pub(super) action: A,
}

/// A project of an installation.
#[derive(Debug, clap::Args)]
pub(super) struct InProject {
    #[command(flatten)]
    pub(super) asked: Asked,
    /// ID or name of the project [default: the oldest].
    #[arg(long, global = true, value_name = "PROJECT", help_heading = "Installation")]
    pub(super) project: Option<String>,
}

/// A project of the installation here, or an environment of a remote node.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    #[command(flatten)]
    pub(super) here: InProject,
    /// Profile of `nuncio login`.
    #[arg(long, global = true, value_name = "NAME", help_heading = "Remote node")]
    profile: Option<String>,
    /// URL of the node.
    #[arg(long, global = true, value_name = "URL", value_parser = node, help_heading = "Remote node")]
    server: Option<reqwest::Url>,
    /// API key, instead of the profile's. Better in NUNCIO_API_KEY.
    #[arg(long, global = true, value_name = "KEY", help_heading = "Remote node")]
    key: Option<String>,
}

pub(super) const PLACES: &str = "Works on the installation in this folder if there is one, else on the node of `nuncio login`.";

impl Place {
    /// How to reach the remote node; `None` for the installation here.
    ///
    /// # Errors
    ///
    /// Reports options that name both.
    pub(super) fn remote(&self) -> anyhow::Result<Option<Access>> {
        let at = &self.here.asked.at;
        let is_here = at.config.is_some() || at.data.is_some() || at.database.is_some() || self.here.project.is_some();
        let is_remote = self.profile.is_some() || self.server.is_some() || self.key.is_some();
        if is_here && is_remote {
            bail!(
                "--config, --data, --database and --project name an installation here; --profile, --server and --key a remote node. \
                 Use one kind"
            );
        }
        if is_here || (!is_remote && (is_installed(at)? || !profile::is_known())) {
            return Ok(None);
        }
        Access::new(self.profile.clone(), self.server.clone(), self.key.clone()).map(Some)
    }
}

/// Whether there is an installation where the settings say.
fn is_installed(at: &Installation) -> anyhow::Result<bool> {
    let storage = at.load()?.storage;
    Ok(Path::new("nuncio.toml").exists() || !storage.database.is_empty() || has_database(&storage.data)?)
}

/// The environment that a command changes where none is given.
pub(super) fn or_live(env: Option<Environment>) -> Environment {
    env.unwrap_or(Environment::Live)
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
pub(super) enum Switch {
    On,
    Off,
}

/// A phone number as a person typed it, in E.164. One that cannot be read stays, and is rejected with all other errors of the command.
pub(super) fn typed(phone: String, country: Option<&String>) -> String {
    address::typed_phone(&phone, country.as_slice()).unwrap_or(phone)
}

/// A country that has a numbering plan.
pub(super) fn country(text: &str) -> Result<String, String> {
    let code = text.to_uppercase();
    if address::is_country(&code) { Ok(code) } else { Err("is not an ISO 3166-1 alpha-2 code such as ES".to_owned()) }
}

/// A file to import.
#[derive(Debug, clap::Args)]
pub(super) struct ImportOf {
    /// CSV, or NDJSON if its name ends with .ndjson, .jsonl or .json; - for CSV from standard input.
    file: String,
    /// Countries whose national numbers are accepted, such as ES,PT.
    #[arg(long, value_delimiter = ',', value_parser = country)]
    countries: Vec<String>,
}

impl ImportOf {
    /// The rows of the file.
    ///
    /// # Errors
    ///
    /// Reports a file that cannot be read, or that has no columns to import.
    pub(super) fn rows<T>(
        &self,
        csv: impl FnOnce(&[u8], &[String]) -> nuncio_domain::Result<Vec<FileRow<T>>>,
        ndjson: impl FnOnce(&str, &[String]) -> Vec<FileRow<T>>,
    ) -> anyhow::Result<Vec<FileRow<T>>> {
        let text = read_input(&self.file)?;
        if is_ndjson(Path::new(&self.file)) {
            return Ok(ndjson(&text, &self.countries));
        }
        csv(text.as_bytes(), &self.countries).map_err(|error| anyhow!("{}: {}", self.file, error.message_without("file")))
    }
}

/// The JSON object of a file, or of standard input.
pub(super) fn read_object(file: &str) -> anyhow::Result<Map<String, Value>> {
    serde_json::from_str(&read_input(file)?).with_context(|| format!("{file} must hold a JSON object"))
}
