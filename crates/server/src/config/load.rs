//! Reads the configuration: `nuncio.toml`, then the environment (`NUNCIO__SECTION__KEY`), then the command line.
//!
//! Unknown keys and invalid values are rejected, all at once, each with its path.

use std::ffi::OsString;
use std::path::Path;

use nuncio_core::Sealer;
use serde_json::Value;
use tracing_subscriber::EnvFilter;
use tracing_subscriber::filter::LevelFilter;

use super::Config;

/// All problems of a configuration.
#[derive(Debug, thiserror::Error)]
#[error("the configuration has {} problem{}:\n{}", .0.len(), if .0.len() == 1 { "" } else { "s" }, .0.iter().map(|p| format!("  {p}")).collect::<Vec<_>>().join("\n"))]
pub struct Problems(pub Vec<String>);

impl Config {
    /// Reads `file` (or `nuncio.toml` in the working folder, if there is one) and the environment.
    pub fn load(file: Option<&Path>, environment: impl Iterator<Item = (OsString, OsString)>) -> Result<Self, Problems> {
        Self::load_with(file, environment, &[])
    }

    /// The same, with options of the command line: path of the setting, such as `server.listen`, and value.
    pub fn load_with(
        file: Option<&Path>,
        environment: impl Iterator<Item = (OsString, OsString)>,
        options: &[(&str, &str)],
    ) -> Result<Self, Problems> {
        let one = |text: String| Problems(vec![text]);
        let mut merged = match file {
            Some(path) => read_file(path).map_err(one)?,
            None if Path::new("nuncio.toml").exists() => read_file(Path::new("nuncio.toml")).map_err(one)?,
            None => Value::Object(serde_json::Map::new()),
        };
        let mut problems = Vec::new();
        for (name, text) in environment {
            let name = name.to_string_lossy();
            let Some(path) = name.strip_prefix("NUNCIO__") else { continue };
            match text.to_str() {
                Some(text) => set(&mut merged, &path.to_lowercase().split("__").collect::<Vec<_>>(), text),
                None => problems.push(format!("{name}: is not UTF-8")),
            }
        }
        for (path, value) in options {
            set(&mut merged, &path.split('.').collect::<Vec<_>>(), value);
        }
        let default = serde_json::to_value(Self::default()).unwrap_or_default();
        compare(&mut merged, &default, "", &mut problems);
        let config: Self = match serde_json::from_value(merged) {
            Ok(config) => config,
            Err(error) => {
                problems.push(error.to_string());
                return Err(Problems(problems));
            }
        };
        config.check(&mut problems);
        if problems.is_empty() { Ok(config) } else { Err(Problems(problems)) }
    }

    fn check(&self, problems: &mut Vec<String>) {
        if self.server.listen.parse::<std::net::SocketAddr>().is_err() {
            problems.push(format!("server.listen: {:?} is not address:port, such as 127.0.0.1:8025", self.server.listen));
        }
        let url = &self.server.public_url;
        let has_host = |rest: &str| !rest.is_empty() && !rest.starts_with('/') && !rest.contains(['?', '#', ' ']);
        let authority = url.split('/').nth(2).unwrap_or_default();
        if authority.contains('@') {
            problems.push("server.public_url: has a user or password; must be a URL such as https://messages.example.org".to_owned());
        } else if !url.is_empty() && !url.strip_prefix("https://").or(url.strip_prefix("http://")).is_some_and(has_host) {
            problems.push(format!("server.public_url: is {url:?}; must be a URL such as https://messages.example.org, or empty"));
        } else if url.splitn(4, '/').nth(3).is_some_and(|path| !path.is_empty()) {
            problems.push(format!(
                "server.public_url: {url:?} has a path; nuncio needs a host of its own, such as https://messages.example.org"
            ));
        }
        problems.extend(self.server.proxies().err());
        let (all, of_one) = (self.server.max_connections, self.server.max_connections_per_address);
        for (setting, most) in [("max_connections", all), ("max_connections_per_address", of_one)] {
            if most == 0 {
                problems.push(format!("server.{setting}: is 0; must be at least 1"));
            }
        }
        if !(5..=3_600).contains(&self.server.stall_seconds) {
            problems.push(format!("server.stall_seconds: is {}; must be 5 to 3600", self.server.stall_seconds));
        }
        if self.api.max_in_flight_bytes < 1024 * 1024 {
            problems.push(format!("api.max_in_flight_bytes: is {}; must be at least 1048576", self.api.max_in_flight_bytes));
        }
        if self.storage.data.as_os_str().is_empty() {
            problems.push("storage.data: is empty; must be a folder such as nuncio-data".to_owned());
        }
        // Neither is shown: they are secrets.
        if !self.storage.database.is_empty()
            && let Err(problem) = nuncio_store_sql::check_url(&self.storage.database)
        {
            problems.push(format!("storage.database: {problem}; leave it empty for the embedded database"));
        }
        if !self.storage.encryption_keys.is_empty()
            && let Err(error) = Sealer::parse(&self.storage.encryption_keys)
        {
            problems.push(format!("storage.encryption_keys: {error}"));
        }
        if !matches!(self.retention.days, 0 | 7..=36_500) {
            problems.push(format!("retention.days: is {}; must be 0 (permanently) or 7 to 36500", self.retention.days));
        }
        if !(60..=2_592_000).contains(&self.dispatch.receipt_wait_seconds) {
            problems.push(format!("dispatch.receipt_wait_seconds: is {}; must be 60 to 2592000", self.dispatch.receipt_wait_seconds));
        }
        if self.dispatch.max_in_flight_bytes < 1_048_576 {
            problems.push(format!("dispatch.max_in_flight_bytes: is {}; must be at least 1048576", self.dispatch.max_in_flight_bytes));
        }
        self.email.check(&self.server.listen, problems);
        self.review.check(problems);
        self.dashboard.oidc.check(problems);
        if self.api.rate_limit.per_minute > 0 && self.api.rate_limit.burst == 0 {
            problems.push("api.rate_limit.burst: must be at least 1 while the limit is on".to_owned());
        }
        if !is_log_filter(&self.log.level) {
            let right = "must be off, error, warn, info, debug or trace, or a filter such as nuncio=debug,warn";
            problems.push(format!("log.level: is {:?}; {right}", self.log.level));
        }
        if !matches!(self.log.format.as_str(), "text" | "json") {
            problems.push(format!("log.format: {:?} is neither text nor json", self.log.format));
        }
        self.sip.check(problems);
        if let Err(problem) = self.guard() {
            problems.push(problem);
        }
    }
}

fn read_file(path: &Path) -> Result<Value, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
    toml::from_str(&text).map_err(|e| format!("{}: {}", path.display(), toml_problem(&e, &text)))
}

/// What is wrong with a TOML text, and where. Without the line itself, which the error's own text shows: it can hold a secret.
pub(crate) fn toml_problem(error: &toml::de::Error, text: &str) -> String {
    let Some(before) = error.span().and_then(|span| text.get(..span.start)) else { return error.message().to_owned() };
    let line = before.matches('\n').count() + 1;
    let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
    format!("line {line}, column {column}: {}", error.message())
}

/// Whether a log filter has no word that is taken for a target by mistake: only that target would be logged then.
fn is_log_filter(text: &str) -> bool {
    let is_meant = |part: &str| part.contains(['=', '[']) || (!part.is_empty() && part.parse::<LevelFilter>().is_ok());
    EnvFilter::try_new(text).is_ok() && text.split(',').all(is_meant)
}

/// Sets the value of an environment variable at its path; the type follows from the default.
fn set(value: &mut Value, path: &[&str], text: &str) {
    let Some((head, rest)) = path.split_first() else {
        *value = Value::from(text);
        return;
    };
    if !value.is_object() {
        *value = Value::Object(serde_json::Map::new());
    }
    if let Value::Object(members) = value {
        set(members.entry((*head).to_owned()).or_insert(Value::Null), rest, text);
    }
}

/// Compares names and types with the default, and parses numbers and flags. What is wrong is left out, so that the rest can be checked too.
fn compare(value: &mut Value, default: &Value, path: &str, problems: &mut Vec<String>) {
    let problem = match (&mut *value, default) {
        (Value::Object(members), Value::Object(known)) => {
            members.retain(|name, member| {
                let place = if path.is_empty() { name.clone() } else { format!("{path}.{name}") };
                match known.get(name) {
                    Some(default) => compare(member, default, &place, problems),
                    None => {
                        problems.push(format!("{place}: is unknown; known are {}", known.keys().cloned().collect::<Vec<_>>().join(", ")))
                    }
                }
                known.contains_key(name)
            });
            return;
        }
        (Value::String(text), Value::Number(_)) => match text.parse::<u64>() {
            Ok(number) if number <= largest(path) => {
                *value = number.into();
                return;
            }
            Ok(number) => too_large(path, number),
            Err(_) => format!("{path}: {text:?} is not a whole number"),
        },
        (Value::String(text), Value::Bool(_)) => match text.parse::<bool>() {
            Ok(flag) => {
                *value = flag.into();
                return;
            }
            Err(_) => format!("{path}: {text:?} is neither true nor false"),
        },
        (Value::Number(number), Value::Number(_)) if number.is_u64() => match number.as_u64() {
            Some(number) if number > largest(path) => too_large(path, number),
            _ => return,
        },
        (Value::Bool(_), Value::Bool(_)) | (Value::String(_), Value::String(_)) => return,
        // The value may be a misplaced secret.
        (given, default) if ["storage", "review", "dashboard"].iter().any(|section| path.starts_with(section)) => {
            format!("{path}: must be {}, not {}", kind(default), kind(given))
        }
        (given, default) => format!("{path}: must be {}, not {given}", kind(default)),
    };
    problems.push(problem);
    *value = default.clone();
}

/// The largest number that a setting holds, which its default does not tell.
fn largest(path: &str) -> u64 {
    let holds = |number: &u64| {
        let section = |inner: Value, name: &str| Value::Object([(name.to_owned(), inner)].into_iter().collect());
        serde_json::from_value::<Config>(path.rsplit('.').fold(Value::from(*number), section)).is_ok()
    };
    [u64::MAX, u32::MAX.into()].into_iter().find(holds).unwrap_or(u16::MAX.into())
}

fn too_large(path: &str, number: u64) -> String {
    format!("{path}: is {number}; must be at most {}", largest(path))
}

fn kind(value: &Value) -> &'static str {
    match value {
        Value::Object(_) => "a section",
        Value::Number(_) => "a whole number, 0 or more",
        Value::Bool(_) => "true or false",
        Value::Array(_) => "a list",
        _ => "a text",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn env(pairs: &[(&str, &str)]) -> Result<Config, Problems> {
        Config::load(None, pairs.iter().map(|(k, v)| (OsString::from(k), OsString::from(v))))
    }

    #[test]
    fn the_environment_reaches_nested_keys() {
        let config = env(&[("NUNCIO__API__RATE_LIMIT__PER_MINUTE", "0"), ("NUNCIO__NET__ALLOW_LOOPBACK", "true"), ("HOME", "/")]);
        assert!(config.is_ok_and(|c| c.api.rate_limit.per_minute == 0 && c.net.allow_loopback));
    }

    #[test]
    fn secrets_in_the_wrong_form_are_not_shown() {
        let default = serde_json::to_value(Config::default()).unwrap_or_default();
        for text in [
            "[storage]\nencryption_keys = [\"hush\"]\n",
            "storage = \"hush\"\n",
            "[storage.database]\nurl = \"hush\"\n",
            "[review]\ntoken = [\"hush\"]\n",
            "[dashboard.oidc]\nclient_secret = [\"hush\"]\n",
        ] {
            let mut value: Value = toml::from_str(text).unwrap_or_default();
            let mut problems = Vec::new();
            compare(&mut value, &default, "", &mut problems);
            assert!(problems.len() == 1 && !problems[0].contains("hush"), "{problems:?}");
        }
    }

    fn wrong(pairs: &[(&str, &str)]) -> Vec<String> {
        env(pairs).err().map_or_else(Vec::new, |problems| problems.0)
    }

    #[test]
    fn a_word_in_a_log_filter_is_a_level() {
        for good in ["off", "WARN", "info", "nuncio=debug,warn", "nuncio_dispatch=debug", "warn,[request]=trace"] {
            assert_eq!(wrong(&[("NUNCIO__LOG__LEVEL", good)]), Vec::<String>::new(), "{good}");
        }
        for bad in ["", "warning", "verbose", "nuncio=debgu", "nuncio,warn", "nuncio=debug, warn"] {
            let problems = wrong(&[("NUNCIO__LOG__LEVEL", bad)]);
            assert!(problems.len() == 1 && problems[0].starts_with(&format!("log.level: is {bad:?}; must be off, ")), "{problems:?}");
        }
    }

    #[test]
    fn ports_for_calls_are_ranges() {
        assert_eq!(wrong(&[("NUNCIO__SIP__PORT_LOW", "5060"), ("NUNCIO__SIP__PORT_HIGH", "5060")]), Vec::<String>::new());
        assert!(wrong(&[("NUNCIO__SIP__PORT_LOW", "5060")])[0].starts_with("sip.port_high: is 0; must be at least 5060"));
        assert!(wrong(&[("NUNCIO__SIP__PORT_HIGH", "5060")])[0].starts_with("sip.port_low: is 0; must be 1024"));
        assert!(wrong(&[("NUNCIO__SIP__RTP_PORT_HIGH", "10000")])[0].starts_with("sip.rtp_port_high: is 10000; must be at least 10001"));
    }

    #[test]
    fn a_number_that_does_not_fit_is_told_with_its_path_and_the_other_problems() {
        let problems = wrong(&[
            ("NUNCIO__API__RATE_LIMIT__PER_MINUTE", "5000000000"),
            ("NUNCIO__NET__ALLOW_NETWORKS", "nowhere"),
            ("NUNCIO__SIP__RTP_PORT_HIGH", "70000"),
        ]);
        let said =
            ["api.rate_limit.per_minute: is 5000000000; must be at most 4294967295", "sip.rtp_port_high: is 70000; must be at most 65535"];
        assert!(problems.len() == 3 && problems[..2] == said && problems[2].starts_with("net.allow_networks: "), "{problems:?}");
        let mut value: Value = toml::from_str("[sip]\nport_low = 70000\n").unwrap_or_default();
        let mut problems = Vec::new();
        compare(&mut value, &serde_json::to_value(Config::default()).unwrap_or_default(), "", &mut problems);
        assert_eq!(problems, ["sip.port_low: is 70000; must be at most 65535"]);
        assert!(env(&[("NUNCIO__SERVER__SHUTDOWN_SECONDS", &u64::MAX.to_string())]).is_ok());
    }

    #[test]
    fn every_problem_is_told_at_once() {
        assert!(wrong(&[("NUNCIO__STORAGE__DATA", "")])[0].starts_with("storage.data: is empty; must be a folder"));
        let problems = wrong(&[
            ("NUNCIO__API__RATE_LIMTI", "1"),
            ("NUNCIO__NET__ALLOW_HTTP", "maybe"),
            ("NUNCIO__DISPATCH__RECEIPT_WAIT_SECONDS", "x"),
            ("NUNCIO__RETENTION__DAYS", "3"),
            ("NUNCIO__STORAGE__ENCRYPTION_KEYS", "hush"),
        ]);
        assert!(problems.len() == 5, "names and types, then ranges: {problems:?}");
        assert!(problems[0].starts_with("api.rate_limti: is unknown; known are max_in_flight_bytes, rate_limit"), "{problems:?}");
        assert!(problems[3].starts_with("storage.encryption_keys: an encryption key must be"), "{problems:?}");
        assert!(problems[4].starts_with("retention.days: is 3"), "{problems:?}");
    }

    #[test]
    fn a_setting_that_does_nothing_is_a_problem() {
        let problems = wrong(&[
            ("NUNCIO__EMAIL__CODE_FROM", "nuncio@example.org"),
            ("NUNCIO__REVIEW__TOKEN", "hush"),
            ("NUNCIO__DASHBOARD__OIDC__CLIENT_SECRET", "hush"),
        ]);
        let said = ["email.code_from: does nothing without email.code_relay", "review.token: does", "dashboard.oidc.client_secret: does"];
        assert!(problems.len() == 3 && problems.iter().zip(said).all(|(problem, said)| problem.starts_with(said)), "{problems:?}");
        let same = wrong(&[("NUNCIO__EMAIL__LISTEN", "127.0.0.1:8025")]);
        assert_eq!(same, ["email.listen: \"127.0.0.1:8025\" is the address of server.listen; must be another"]);
        let all = wrong(&[
            ("NUNCIO__REVIEW__TIMEOUT_SECONDS", "0"),
            ("NUNCIO__REVIEW__URL", "ftp://example.org"),
            ("NUNCIO__DASHBOARD__OIDC__ROLE", "king"),
            ("NUNCIO__DASHBOARD__OIDC__ISSUER", "https://accounts.example.org"),
            ("NUNCIO__SERVER__PUBLIC_URL", "https://me:hush@example.org"),
        ]);
        let names = all.iter().map(|problem| problem.split(':').next().unwrap_or_default()).collect::<Vec<_>>();
        let expected = ["server.public_url", "review.timeout_seconds", "review.url", "dashboard.oidc.role", "dashboard.oidc.client_id"];
        assert_eq!(names, expected, "{all:?}");
        assert!(!format!("{all:?}").contains("hush"));
        let path = wrong(&[("NUNCIO__SERVER__PUBLIC_URL", "https://example.org/messages")]);
        assert!(path.len() == 1 && path[0].contains("has a path"), "{path:?}");
        assert!(wrong(&[("NUNCIO__SERVER__PUBLIC_URL", "https://example.org/")]).is_empty());
    }

    #[test]
    fn options_of_the_command_line_are_checked_too() {
        let with = |options: &[(&str, &str)]| Config::load_with(None, std::iter::empty(), options);
        let refused = with(&[("server.listen", "nowhere"), ("storage.database", "mysql://a:hush@b/c")]).expect_err("both are wrong").0;
        assert!(refused.len() == 2 && refused[0].starts_with("server.listen: \"nowhere\""), "{refused:?}");
        assert!(refused[1].starts_with("storage.database: must begin with postgres:// or postgresql://"), "{refused:?}");
        assert!(!refused[1].contains("hush"), "{refused:?}");
        assert!(with(&[("storage.database", "postgresql://b/c")]).is_ok_and(|config| config.storage.database == "postgresql://b/c"));
    }
}
