//! Copying a SQLite database to PostgreSQL.

use nuncio_domain::Redacted;
use nuncio_store_sql::{COPIED, Copied, DISTRIBUTED, Target, copy, open};

use crate::harness::{Harness, database, drop_database, fresh_postgres};
use crate::rows::{postgres_rows, sqlite_rows};

/// A table and its columns: name, SQLite type, whether nullable.
type Table = (String, Vec<(String, String, bool)>);

pub(crate) async fn an_embedded_database_is_copied_whole(_: &Harness) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nuncio.db");
    open(&Target::Sqlite(path.clone())).await.unwrap().close().await;
    let sqlite = |sql: &str| sqlite_rows(&path, sql);
    let mut tables: Vec<Table> = Vec::new();
    for table in COPIED.iter().chain(DISTRIBUTED) {
        let columns = sqlite(&format!("SELECT name, type, \"notnull\" = 0 AND pk = 0 FROM pragma_table_info('{table}')"));
        let text = |cell: &Option<String>| cell.clone().unwrap_or_default();
        tables.push(((*table).to_owned(), columns.iter().map(|row| (text(&row[0]), text(&row[1]), text(&row[2]) == "1")).collect()));
    }
    // The second row is NULL wherever possible. All ids of a row are alike, so that its references match.
    for (table, columns) in &tables {
        for n in 1..=2 {
            let values: Vec<String> = columns.iter().map(|column| value(column, n)).collect();
            let names: Vec<&str> = columns.iter().map(|(name, ..)| name.as_str()).collect();
            sqlite(&format!("INSERT INTO {table} ({}) VALUES ({})", names.join(", "), values.join(", ")));
        }
    }
    let name = fresh_postgres().await;
    let url = database(&name);
    let rows = 2 * tables.len() as u64;
    let copied = copy(&path, &url, |_| ()).await.unwrap();
    assert_eq!(copied, Copied { tables: tables.len() as u64, rows });

    let postgres = open(&Target::Postgres(Redacted::new(url.clone()))).await.unwrap();
    assert_eq!(postgres.read().await.unwrap().list_nodes().await.unwrap().len(), 2, "it is a database like any other");
    postgres.close().await;
    // What only the pool understands is refused at once, not at the first message.
    let refused =
        open(&Target::Postgres(Redacted::new(format!("{url}?sslcert=/nowhere")))).await.map(drop).expect_err("a refusal").to_string();
    assert!(refused.contains("the database URL has the unknown parameter \"sslcert\""), "{refused}");
    for (table, columns) in &tables {
        let text = |cast: &dyn Fn(&str) -> String| columns.iter().map(|(name, ..)| cast(name)).collect::<Vec<_>>().join(", ");
        let here = text(&|name| format!("CASE typeof({name}) WHEN 'blob' THEN lower(hex({name})) ELSE CAST({name} AS TEXT) END"));
        let there = text(&|name| format!("replace(replace(CAST({name} AS TEXT), '\\x', ''), '-', '')"));
        let mut before = sqlite(&format!("SELECT {here} FROM {table}"));
        let mut after = postgres_rows(&url, &format!("SELECT {there} FROM {table}")).await;
        before.sort();
        after.sort();
        assert_eq!(before, after, "{table}");
    }

    let again = copy(&path, &url, |_| ()).await.unwrap_err();
    assert!(again.to_string().contains("is not empty: it has rows in projects"), "{again}");
    drop_database(&name).await;
}

/// Returns the value of a column in row `n`.
fn value((name, kind, nullable): &(String, String, bool), n: u8) -> String {
    match kind.as_str() {
        _ if *nullable && n == 2 => "NULL".to_owned(),
        "BLOB" => format!("X'{}'", format!("0{n}fe").repeat(8)),
        "INTEGER" if name == "tenant_id" => n.to_string(),
        "INTEGER" => format!("{n}0001"),
        _ if name == "environment" => "'live'".to_owned(),
        _ => format!("'{{\"ñ\": \"€ {n}\"}}'"),
    }
}
