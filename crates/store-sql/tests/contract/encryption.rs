//! Encrypted connections to PostgreSQL.

use std::io::Write as _;

use nuncio_domain::Redacted;
use nuncio_store_sql::{Target, open};

use crate::harness::Harness;
use crate::make::{new, phone};

/// The sessions of writers, by their locks, and all others of the store, by whether they are encrypted.
const SESSIONS: &str = "
    SELECT CAST(s.ssl AS TEXT), CAST(EXISTS (SELECT 1 FROM pg_locks WHERE classid = 1853191529 AND pid = s.pid) AS TEXT)
    FROM pg_stat_ssl AS s JOIN pg_stat_activity AS a USING (pid)
    WHERE a.datname = current_database() AND a.application_name = 'nuncio'";

pub(crate) async fn connections_are_encrypted_if_the_url_says_so(h: &Harness) {
    if h.sql("SHOW ssl").await != [[Some("on".to_owned())]] {
        eprintln!("SKIPPED: the PostgreSQL server has no certificate");
        return;
    }
    let Target::Postgres(url) = &h.target else { panic!("a PostgreSQL database") };
    let with = |parameters: &str| Target::Postgres(Redacted::new(format!("{}&{parameters}", url.expose())));
    new(h.store.accept(h.item(&phone(1))).await);
    let sessions =
        async |encrypted: &str| h.sql(SESSIONS).await.into_iter().filter(|row| row[0].as_deref() == Some(encrypted)).collect::<Vec<_>>();
    assert!(sessions("true").await.is_empty(), "the URL does not ask for it");
    let plain = sessions("false").await.len();

    let mut certificate = tempfile::NamedTempFile::new().unwrap();
    let pem = h.sql("SELECT pg_read_file(current_setting('ssl_cert_file'))").await.remove(0).remove(0).unwrap();
    certificate.write_all(pem.as_bytes()).unwrap();
    let verified = format!("sslmode=verify-full&sslrootcert={}", certificate.path().display());
    for (number, parameters) in [(2, "sslmode=require"), (3, verified.as_str())] {
        let store = open(&with(parameters)).await.unwrap();
        new(store.accept(h.item(&phone(number))).await);
        let encrypted = sessions("true").await;
        for is_writer in ["true", "false"] {
            assert!(encrypted.iter().any(|row| row[1].as_deref() == Some(is_writer)), "{parameters}: {encrypted:?}");
        }
        assert_eq!(sessions("false").await.len(), plain, "{parameters}");
        store.close().await;
    }
    let refused = open(&with("sslmode=verify-full")).await.map(drop).expect_err("no system trusts this certificate").to_string();
    assert!(refused.contains("certificate"), "{refused}");
}
