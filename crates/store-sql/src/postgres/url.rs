//! Reads the URL of a PostgreSQL database.

use std::collections::HashSet;
use std::error::Error;
use std::str::FromStr as _;

use sqlx::postgres::{PgConnectOptions, PgSslMode};
use tokio_postgres::config::SslMode;
use tokio_postgres_rustls::MakeRustlsConnect;
use url::Url;

use super::tls;

/// What may follow `?`: what both drivers know. One of them would ignore any other, such as a misspelt `password`, and log its value.
const PARAMETERS: [&str; 9] = ["dbname", "host", "hostaddr", "options", "password", "port", "sslmode", "sslrootcert", "user"];

/// How to connect to a database.
pub(super) struct Database {
    /// The pool.
    pub(super) pool: PgConnectOptions,
    /// The session of the writer.
    pub(super) session: tokio_postgres::Config,
    /// Encrypts that session.
    pub(super) tls: Option<MakeRustlsConnect>,
}

/// Checks a URL such as `postgres://user:password@host:5432/name?sslmode=require`.
///
/// # Errors
///
/// Says what is wrong, to follow the name of the setting. Does not repeat the URL, which can hold a password.
pub fn check_url(text: &str) -> Result<(), String> {
    parse(text).map(|_| ())
}

pub(super) fn parse(text: &str) -> Result<Database, String> {
    if !["postgres://", "postgresql://"].iter().any(|scheme| text.starts_with(scheme)) {
        return Err("must begin with postgres:// or postgresql://".to_owned());
    }
    let url = Url::parse(text).map_err(|error| format!("is not a URL such as postgres://user@host:5432/name: {error}"))?;
    let parameter = |wanted: &str| url.query_pairs().find(|(name, _)| name == wanted).map(|(_, value)| value.into_owned());
    let mut seen = HashSet::new();
    for (name, _) in url.query_pairs() {
        if !PARAMETERS.contains(&&*name) {
            return Err(format!("has the unknown parameter {name:?}; known are {}", PARAMETERS.join(", ")));
        }
        // One driver would take the first, the other one the last.
        if !seen.insert(name.clone()) {
            return Err(format!("has the parameter {name:?} twice"));
        }
    }
    let (mode, root) = (parameter("sslmode"), parameter("sslrootcert"));
    let tls = match mode.as_deref() {
        None | Some("disable") => None,
        Some("require") => Some(tls::unverified()?),
        Some("verify-full") => Some(tls::verified(root.as_deref())?),
        Some(_) => return Err("has an unknown sslmode; must be disable, require or verify-full".to_owned()),
    };
    if root.is_some() && mode.as_deref() != Some("verify-full") {
        return Err("has an sslrootcert, which needs sslmode=verify-full".to_owned());
    }
    let unusable = |error: &dyn Error| format!("cannot be used: {}", error.source().unwrap_or(error));
    let mut session = tokio_postgres::Config::from_str(&without_tls(&url, text)).map_err(|error| unusable(&error))?;
    if session.get_hosts().is_empty() && session.get_hostaddrs().is_empty() {
        return Err("names no host".to_owned());
    }
    session.ssl_mode(if tls.is_some() { SslMode::Require } else { SslMode::Disable });
    let mut pool = PgConnectOptions::from_str(text).map_err(|error| unusable(&error))?;
    if tls.is_none() {
        pool = pool.ssl_mode(PgSslMode::Disable);
    }
    Ok(Database { pool, session, tls })
}

/// The URL without the parameters that the driver of the session does not know.
fn without_tls(url: &Url, text: &str) -> String {
    let Some(query) = url.query().filter(|query| query.contains("ssl")) else { return text.to_owned() };
    let kept: Vec<&str> = query.split('&').filter(|parameter| !parameter.starts_with("ssl")).collect();
    let mut url = url.clone();
    url.set_query(Some(kept.join("&")).as_deref().filter(|query| !query.is_empty()));
    url.into()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_driver_would_ignore_or_refuse_later_is_refused_without_its_value() {
        for good in [
            "postgres://nuncio@localhost/x",
            "postgresql:///x?host=/run&sslmode=disable&options=-c%20jit=off",
            "postgres://nuncio:a%2Fb@localhost/x?sslmode=require&options=-c%20jit=off",
        ] {
            assert_eq!(check_url(good), Ok(()), "{good}");
        }
        for (bad, said) in [
            ("mysql://a:hush@b/c", "must begin with postgres://"),
            ("postgres://a:hush@b:70000/c", "invalid port number"),
            ("postgres://a@b/c?pasword=hush", "has the unknown parameter \"pasword\"; known are dbname, host"),
            ("postgres://a@b/c?password=hush&password=hush", "has the parameter \"password\" twice"),
            ("postgres://a:hush@b/c?sslmode=prefer", "has an unknown sslmode; must be disable, require or verify-full"),
            ("postgres://a:hush@b/c?sslmode=require&sslrootcert=x.pem", "has an sslrootcert, which needs sslmode=verify-full"),
            ("postgres://a:hush@b/c?sslmode=verify-full&sslrootcert=absent.pem", "has an sslrootcert that cannot be read: absent.pem: "),
            ("postgres://a:hush@b/c?port=x", "cannot be used: "),
            ("postgres:///c", "names no host"),
        ] {
            let refused = check_url(bad).expect_err(bad);
            assert!(refused.contains(said) && !refused.contains("hush"), "{bad}: {refused}");
        }
    }

    #[test]
    fn the_session_gets_what_is_not_about_encryption() {
        let url = "postgres://me:a%2Fb@db:5433/x?sslmode=require&options=-c%20jit=off";
        let Ok(Database { session, tls, .. }) = parse(url) else { panic!("a good URL") };
        assert!(tls.is_some());
        assert_eq!(
            (session.get_options(), session.get_password(), session.get_ports()),
            (Some("-c jit=off"), Some(&b"a/b"[..]), &[5433][..])
        );
    }
}
