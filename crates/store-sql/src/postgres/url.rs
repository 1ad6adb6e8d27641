//! Reads the URL of a PostgreSQL database.

use std::error::Error;
use std::str::FromStr as _;

use sqlx::postgres::PgConnectOptions;
use url::Url;

/// What may follow `?`: what both drivers know. One of them would ignore any other, such as a misspelt `password`, and log its value.
const PARAMETERS: [&str; 8] = ["dbname", "host", "hostaddr", "options", "password", "port", "sslmode", "user"];

/// Checks a URL such as `postgres://user:password@host:5432/name`.
///
/// # Errors
///
/// Says what is wrong, to follow the name of the setting. Does not repeat the URL, which can hold a password.
pub fn check_url(text: &str) -> Result<(), String> {
    parse(text).map(|_| ())
}

/// The options of the pool. The session of the writer reads the URL by itself.
pub(super) fn parse(text: &str) -> Result<PgConnectOptions, String> {
    if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
        return Err("must begin with postgres:// or postgresql://".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("is not a URL such as postgres://user@host:5432/name: {error}"))?;
    for (name, value) in url.query_pairs() {
        if !PARAMETERS.contains(&&*name) {
            return Err(format!("has the unknown parameter {name:?}; known are {}", PARAMETERS.join(", ")));
        }
        if name == "sslmode" && !matches!(&*value, "disable" | "prefer") {
            return Err("has an sslmode other than disable and prefer, but the connection is not encrypted".to_owned());
        }
    }
    let unusable = |error: &dyn Error| format!("cannot be used: {}", error.source().unwrap_or(error));
    let session = tokio_postgres::Config::from_str(text).map_err(|error| unusable(&error))?;
    if session.get_hosts().is_empty() && session.get_hostaddrs().is_empty() {
        return Err("names no host".to_owned());
    }
    PgConnectOptions::from_str(text).map_err(|error| unusable(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_would_ignore_or_refuse_later_is_refused_without_its_value() {
        for good in ["postgres://nuncio@localhost/x", "postgresql:///x?host=/run&sslmode=prefer&options=-c%20jit=off"] {
            assert_eq!(check_url(good), Ok(()), "{good}");
        }
        for (bad, said) in [
            ("mysql://a:hush@b/c", "must begin with postgres://"),
            ("postgres://a:hush@b:70000/c", "invalid port number"),
            ("postgres://a@b/c?pasword=hush", "has the unknown parameter \"pasword\"; known are dbname, host"),
            ("postgres://a:hush@b/c?sslmode=require", "the connection is not encrypted"),
            ("postgres://a:hush@b/c?port=x", "cannot be used: "),
            ("postgres:///c", "names no host"),
        ] {
            let refused = check_url(bad).expect_err(bad);
            assert!(refused.contains(said) && !refused.contains("hush"), "{bad}: {refused}");
        }
    }
}
