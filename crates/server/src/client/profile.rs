//! Profiles: nodes and the keys to them, as `nuncio login` keeps them in a file that only its owner reads.

use std::collections::BTreeMap;
use std::io::IsTerminal as _;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, anyhow, bail};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use nuncio_domain::Environment;
use reqwest::Url;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use super::World;
use crate::config::{reachable, toml_problem};
use crate::data::{ADDRESS, write_private};
use crate::option_values::node;

/// Where a node is when nobody says.
pub(crate) const SERVER: &str = "http://127.0.0.1:8025";

/// A node, and a key to it.
#[derive(Debug, clap::Args)]
pub(crate) struct Access {
    /// Profile of `nuncio login` [default: `quickstart` in this folder if it runs, or the last login].
    #[arg(long, global = true, value_name = "NAME", env = "NUNCIO_PROFILE", help_heading = "Node")]
    profile: Option<String>,
    /// URL of the node [default: that of `quickstart` in this folder, or of the profile, or http://127.0.0.1:8025].
    #[arg(long, global = true, value_name = "URL", env = "NUNCIO_SERVER", value_parser = node, help_heading = "Node")]
    server: Option<Url>,
    /// API key, instead of the profile's. Better in the environment than on the command line.
    #[arg(long, global = true, value_name = "KEY", env = "NUNCIO_API_KEY", hide_env_values = true, help_heading = "Node")]
    key: Option<String>,
}

/// Which environments of a node a command is about.
#[derive(Debug, clap::Args)]
pub(crate) struct Remote {
    #[command(flatten)]
    access: Access,
    /// Only this environment [default: each that there is a key for]. With keys to both, commands that create or set something need it.
    #[arg(long, global = true, display_order = 900, value_parser = environment())]
    env: Option<Environment>,
    /// Print JSON, for scripts.
    #[arg(long, global = true, display_order = 901)]
    json: bool,
}

/// Reads the value of an option that names an environment.
pub(crate) fn environment() -> impl TypedValueParser<Value = Environment> {
    let read = |name: String| if name == Environment::Live.as_str() { Environment::Live } else { Environment::Test };
    PossibleValuesParser::new([Environment::Live.as_str(), Environment::Test.as_str()]).map(read)
}

#[derive(Debug, Default, Serialize, Deserialize)]
struct Profiles {
    /// The profile of the newest login.
    default: String,
    profiles: BTreeMap<String, Profile>,
}

/// A node and the keys to its environments.
#[derive(Debug, Serialize, Deserialize)]
struct Profile {
    server: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    live: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    test: Option<String>,
}

impl Remote {
    /// The environments that `access` opens, or one of them.
    pub(crate) fn new(access: Access, env: Option<Environment>, json: bool) -> Self {
        Self { access, env, json }
    }

    /// Whether to print JSON.
    pub(crate) fn json(&self) -> bool {
        self.json
    }

    /// The environments that the command is about, live first: those that there are keys of and that were not left out.
    ///
    /// # Errors
    ///
    /// Says where a key can come from, when there is none.
    pub(crate) fn worlds(&self) -> anyhow::Result<Vec<World>> {
        let (server, keys) = self.access.keys()?;
        let mut worlds = keys.into_iter().map(|key| World::new(server.clone(), key)).collect::<Result<Vec<_>, _>>()?;
        worlds.retain(|world| self.env.is_none_or(|env| env == world.environment));
        if worlds.is_empty() {
            bail!("there is no key to the {} environment; `nuncio login` adds one", self.env.unwrap_or(Environment::Live).as_str());
        }
        Ok(worlds)
    }

    /// The one environment that a command changes.
    ///
    /// # Errors
    ///
    /// Asks for `--env` when there are keys to both environments.
    pub(crate) fn world(&self) -> anyhow::Result<World> {
        let mut worlds = self.worlds()?;
        match (worlds.pop(), worlds.is_empty()) {
            (Some(world), true) => Ok(world),
            _ => bail!("there are keys to both environments; set --env live or --env test"),
        }
    }
}

/// Whether a profile was saved, or the environment names a profile or a key.
pub(crate) fn is_known() -> bool {
    ["NUNCIO_PROFILE", "NUNCIO_API_KEY"].iter().any(|name| variable(name).is_some()) || load().is_ok_and(|known| !known.profiles.is_empty())
}

/// Whether the environment names a profile, a node or a key, which then come before what is in this folder.
pub(crate) fn is_set() -> bool {
    ["NUNCIO_PROFILE", "NUNCIO_SERVER", "NUNCIO_API_KEY"].iter().any(|name| variable(name).is_some())
}

fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}

impl Access {
    /// What was given on the command line, completed from the environment variables.
    pub(crate) fn new(profile: Option<String>, server: Option<Url>, key: Option<String>) -> anyhow::Result<Self> {
        let server = match (server, variable("NUNCIO_SERVER")) {
            (None, Some(text)) => Some(node(&text).map_err(|why| anyhow!("NUNCIO_SERVER: is {text:?}; {why}"))?),
            (server, _) => server,
        };
        // A profile that was named goes before a key that happens to be in the environment.
        let key = key.or_else(|| variable("NUNCIO_API_KEY").filter(|_| profile.is_none()));
        Ok(Self { profile: profile.or_else(|| variable("NUNCIO_PROFILE")), server, key })
    }

    fn keys(&self) -> anyhow::Result<(Url, Vec<String>)> {
        let server = || self.server.clone().map_or_else(|| Url::parse(SERVER), Ok);
        if let Some(key) = &self.key {
            return Ok((server()?, vec![key.clone()]));
        }
        let is_at = |url: &Url| self.server.as_ref().is_none_or(|server| server.origin() == url.origin());
        // What runs in this folder goes before a saved profile, as for the commands on an installation: the folder is what a person sees.
        if let Some(here) = server_here().filter(|here| self.profile.is_none() && Path::new(QUICKSTART).exists() && is_at(here)) {
            return Ok((here, quickstart()?));
        }
        let mut known = load()?;
        let name = self.profile.as_ref().unwrap_or(&known.default);
        match known.profiles.remove(name) {
            Some(profile) => {
                let of_profile = Url::parse(&profile.server)?;
                if self.profile.is_none() && !is_at(&of_profile) {
                    bail!(
                        "the keys of profile {name:?} are for {of_profile}; give a key of this server with --key or NUNCIO_API_KEY, or --profile"
                    );
                }
                Ok((self.server.clone().unwrap_or(of_profile), [profile.live, profile.test].into_iter().flatten().collect()))
            }
            None if self.profile.is_some() => bail!("there is no profile {name:?} in {}", path()?.display()),
            None => Ok((server()?, quickstart()?)),
        }
    }
}

/// Where commands look for the keys of `nuncio quickstart`.
pub(crate) const QUICKSTART: &str = "nuncio-data/quickstart.json";

/// The keys that `nuncio quickstart` keeps, if it was run in this folder.
fn quickstart() -> anyhow::Result<Vec<String>> {
    let path = Path::new(QUICKSTART);
    let text = std::fs::read_to_string(path).map_err(|_| {
        anyhow!("there is no API key; enter one with `nuncio login`, or set NUNCIO_API_KEY. `nuncio keys create` creates one")
    })?;
    let keys: BTreeMap<String, String> = read_keys(path, &text)?;
    Ok(keys.into_values().collect())
}

/// Reads the file of keys that `nuncio quickstart` keeps.
///
/// # Errors
///
/// Says what to do with a damaged one.
pub(crate) fn read_keys<T: DeserializeOwned>(path: &Path, text: &str) -> anyhow::Result<T> {
    // Without the parser's words, which show values.
    serde_json::from_str(text).map_err(|_| anyhow!("{} is damaged; delete this file: `nuncio quickstart` makes new keys", path.display()))
}

/// Where the server of this folder listens, if it runs. Only for the keys of the same folder: a strange folder must not learn other keys.
pub(super) fn server_here() -> Option<Url> {
    let address = listens_at(&Path::new(QUICKSTART).with_file_name(ADDRESS))?;
    Url::parse(&format!("http://{}", reachable(address))).ok()
}

/// The address that a server left in this file.
pub(crate) fn listens_at(file: &Path) -> Option<SocketAddr> {
    std::fs::read_to_string(file).ok()?.parse().ok()
}

/// Keeps a key under its environment in a profile, after trying it. Answers what it opens.
///
/// # Errors
///
/// Says that the node cannot be reached, or that it does not know the key.
pub(crate) async fn login(access: &Access) -> anyhow::Result<serde_json::Value> {
    let name = access.profile.clone().unwrap_or_else(|| "default".to_owned());
    let key = match &access.key {
        Some(key) if key != "-" => key.clone(),
        _ => ask_for_key()?,
    };
    let mut known = load()?;
    let before = known.profiles.get(&name).map_or(SERVER, |profile| profile.server.as_str());
    let server = access.server.clone().map_or_else(|| Url::parse(before), Ok)?;
    let world = World::new(server.clone(), key.clone())?;
    let mut me = world.get("/v1/me", &[]).await?;
    // Keys of another node are of no use on this one.
    let fresh = || Profile { server: server.to_string(), live: None, test: None };
    let mut profile = known.profiles.remove(&name).filter(|profile| profile.server == server.as_str()).unwrap_or_else(fresh);
    match world.environment {
        Environment::Live => profile.live = Some(key),
        Environment::Test => profile.test = Some(key),
    }
    known.profiles.insert(name.clone(), profile);
    known.default.clone_from(&name);
    save(&known)?;
    me["profile"] = name.into();
    me["server"] = server.as_str().into();
    me["environment"] = world.environment.as_str().into();
    Ok(me)
}

/// Forgets a profile and its keys. The keys stay good: revoke them with `nuncio keys revoke`.
///
/// # Errors
///
/// Fails if the profile does not exist, or if there is none at all.
pub(crate) fn logout(profile: Option<String>) -> anyhow::Result<String> {
    let mut known = load()?;
    if profile.is_none() && known.profiles.is_empty() {
        bail!("you are not logged in");
    }
    let name = profile.unwrap_or_else(|| known.default.clone());
    if known.profiles.remove(&name).is_none() {
        bail!("there is no profile {name:?} in {}", path()?.display());
    }
    if known.default == name {
        known.default = known.profiles.keys().next().cloned().unwrap_or_default();
    }
    save(&known)?;
    Ok(name)
}

fn ask_for_key() -> anyhow::Result<String> {
    let key = if std::io::stdin().is_terminal() {
        console::Term::stderr().write_str("API key: ")?;
        console::Term::stderr().read_secure_line()?
    } else {
        std::io::read_to_string(std::io::stdin())?
    };
    Ok(key.trim().to_owned())
}

fn path() -> anyhow::Result<PathBuf> {
    let folder = match std::env::var_os("XDG_CONFIG_HOME").filter(|folder| !folder.is_empty()) {
        Some(folder) => PathBuf::from(folder),
        None => {
            PathBuf::from(std::env::var_os("HOME").context("neither XDG_CONFIG_HOME nor HOME is set, so there is no folder for profiles")?)
                .join(".config")
        }
    };
    Ok(folder.join("nuncio/profiles.toml"))
}

fn load() -> anyhow::Result<Profiles> {
    let Ok(path) = path() else { return Ok(Profiles::default()) };
    match std::fs::read_to_string(&path) {
        Ok(text) => {
            let table: toml::Value =
                toml::from_str(&text).map_err(|error| anyhow!("{}: {}", path.display(), toml_problem(&error, &text)))?;
            // Without the parser's words, which show values.
            table.try_into().map_err(|_| anyhow!("{}: is not what `nuncio login` writes", path.display()))
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => Ok(Profiles::default()),
        Err(error) => Err(error).with_context(|| path.display().to_string()),
    }
}

fn save(profiles: &Profiles) -> anyhow::Result<()> {
    let path = path()?;
    let folder = path.parent().context("a file lies in a folder")?;
    std::fs::create_dir_all(folder).with_context(|| folder.display().to_string())?;
    write_private(&path, &toml::to_string(profiles)?)
}
