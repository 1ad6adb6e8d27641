//! Compares the two schemas.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsString;

use nuncio_store_sql::{COPIED, DISTRIBUTED, Target, WRITER_SETTINGS, WRITER_STATEMENTS, distribute, open};
use sqlx::{AssertSqlSafe, Connection as _, PgConnection};

use crate::harness::{Backend, Harness};

/// An index: its table, its columns in order, and its condition (`""` for none).
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(crate) struct Index {
    pub(crate) table: String,
    pub(crate) columns: Vec<String>,
    pub(crate) unique: bool,
    pub(crate) predicate: String,
}

#[derive(Debug, Default)]
pub(crate) struct Schema {
    /// Whether each column is nullable, by table and column.
    pub(crate) columns: BTreeMap<(String, String), bool>,
    pub(crate) indexes: BTreeSet<Index>,
}

const SQLITE_COLUMNS: &str = "SELECT m.name, p.name, p.\"notnull\" = 0 AND p.pk = 0 FROM sqlite_master m, pragma_table_info(m.name) p \
     WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name <> '_sqlx_migrations'";
/// A single integer key is the table itself and has no index.
const SQLITE_INDEXES: &str = "SELECT m.name, i.name, i.\"unique\", COALESCE(s.sql, ''), c.name FROM sqlite_master m, pragma_index_list(m.name) i, \
     pragma_index_info(i.name) c LEFT JOIN sqlite_master s ON s.name = i.name \
     WHERE m.type = 'table' AND m.name NOT LIKE 'sqlite%' AND m.name <> '_sqlx_migrations' \
     UNION ALL SELECT m.name, m.name || '_rowid', 1, '', p.name FROM sqlite_master m, pragma_table_info(m.name) p \
     WHERE m.type = 'table' AND p.pk = 1 AND m.name <> '_sqlx_migrations' \
     AND NOT EXISTS (SELECT 1 FROM pragma_index_list(m.name) WHERE origin = 'pk')";

const POSTGRES_COLUMNS: &str = "SELECT table_name, column_name, CASE is_nullable WHEN 'YES' THEN 1 ELSE 0 END \
     FROM information_schema.columns WHERE table_schema = 'public' AND table_name <> '_sqlx_migrations'";
const POSTGRES_INDEXES: &str = "SELECT t.relname, i.relname, CASE WHEN x.indisunique THEN 1 ELSE 0 END, \
     COALESCE('WHERE ' || pg_get_expr(x.indpred, x.indrelid), ''), a.attname FROM pg_index x JOIN pg_class t ON t.oid = x.indrelid \
     JOIN pg_class i ON i.oid = x.indexrelid JOIN pg_namespace n ON n.oid = t.relnamespace \
     CROSS JOIN LATERAL unnest(x.indkey) WITH ORDINALITY AS k (attnum, n) JOIN pg_attribute a ON a.attrelid = t.oid AND a.attnum = k.attnum \
     WHERE n.nspname = 'public' AND t.relname <> '_sqlx_migrations' ORDER BY i.relname, k.n";

impl Schema {
    pub(crate) async fn of(h: &Harness) -> Self {
        let (columns, indexes) = match h.backend {
            Backend::Sqlite => (SQLITE_COLUMNS, SQLITE_INDEXES),
            Backend::Postgres => (POSTGRES_COLUMNS, POSTGRES_INDEXES),
        };
        Self::from_rows(h.sql(columns).await, h.sql(indexes).await)
    }

    fn from_rows(columns: Vec<Vec<Option<String>>>, indexes: Vec<Vec<Option<String>>>) -> Self {
        let texts = |row: Vec<Option<String>>| row.into_iter().map(Option::unwrap_or_default).collect::<Vec<_>>();
        let mut schema = Self::default();
        for row in columns.into_iter().map(texts) {
            schema.columns.insert((row[0].clone(), row[1].clone()), row[2] == "1");
        }
        let mut named: BTreeMap<String, Index> = BTreeMap::new();
        for row in indexes.into_iter().map(texts) {
            let predicate = row[3].split_once("WHERE ").map_or_else(String::new, |(_, p)| p.trim_matches(['(', ')']).replace("::text", ""));
            let index = Index { table: row[0].clone(), columns: Vec::new(), unique: row[2] == "1", predicate };
            named.entry(row[1].clone()).or_insert(index).columns.push(row[4].clone());
        }
        schema.indexes.extend(named.into_values());
        schema
    }

    pub(crate) fn tables(&self) -> BTreeSet<&str> {
        self.columns.keys().map(|(table, _)| table.as_str()).collect()
    }
}

pub(crate) async fn both_databases_have_one_schema(h: &Harness) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("nuncio.db");
    open(&Target::Sqlite(path.clone())).await.unwrap().close().await;
    let rows = |sql| crate::rows::sqlite_rows(&path, sql);
    let sqlite = Schema::from_rows(rows(SQLITE_COLUMNS), rows(SQLITE_INDEXES));
    let postgres = Schema::of(h).await;
    assert!(postgres.tables().len() > 10, "{:?}", postgres.tables());
    assert_eq!(sqlite.columns, postgres.columns, "table, column, whether it takes NULL");
    assert_eq!(sqlite.indexes, postgres.indexes);
    let text = "SELECT table_name, column_name FROM information_schema.columns WHERE table_schema = 'public' \
         AND table_name <> '_sqlx_migrations' AND data_type = 'text' AND collation_name IS DISTINCT FROM 'C'";
    assert_eq!(h.sql(text).await, Vec::<Vec<_>>::new(), "text that is not compared byte by byte");
}

/// Unique keys that do not begin with the tenant: table and first column. The list must not grow.
const NOT_OF_A_TENANT: &[(&str, &str)] = &[
    ("api_keys", "hash"),
    // An email only names an address, so that two environments cannot share it.
    ("mail_domains", "domain"),
    ("mailboxes", "address"),
    ("nodes", "id"),
    ("prices", "project_id"),
    ("projects", "id"),
    ("worlds", "project_id"),
    ("users", "id"),
    ("users", "email"),
    ("memberships", "user_id"),
    ("sessions", "hash"),
];

pub(crate) async fn the_tenant_begins_every_key(h: &Harness) {
    let schema = Schema::of(h).await;
    let keys = schema.indexes.iter().filter(|index| index.unique && index.columns[0] != "tenant_id");
    let found: BTreeSet<_> = keys.map(|index| (index.table.as_str(), index.columns[0].as_str())).collect();
    let allowed: BTreeSet<_> = NOT_OF_A_TENANT.iter().copied().collect();
    assert_eq!(found, allowed);
    for table in schema.tables() {
        assert!(schema.indexes.iter().any(|index| index.table == table && index.unique), "{table} has no key");
    }
}

/// A unique key of a distributed table must contain the tenant, since it is unique per node only. A reference table may refer to reference
/// tables only.
pub(crate) async fn every_table_has_its_place_in_a_cluster(h: &Harness) {
    let schema = Schema::of(h).await;
    let placed: Vec<&str> = COPIED.iter().chain(DISTRIBUTED).copied().collect();
    assert_eq!(placed.len(), schema.tables().len(), "each in one place");
    assert_eq!(BTreeSet::from_iter(placed), schema.tables());
    for table in DISTRIBUTED {
        let keys = schema.indexes.iter().filter(|index| index.table == *table && index.unique);
        assert!(keys.clone().all(|key| key.columns.iter().any(|column| column == "tenant_id")), "{table}");
        assert!(schema.columns.contains_key(&((*table).to_owned(), "tenant_id".to_owned())), "{table}");
    }
    let references =
        "SELECT CAST(CAST(conrelid AS regclass) AS TEXT), CAST(CAST(confrelid AS regclass) AS TEXT) FROM pg_constraint WHERE contype = 'f'";
    for row in h.sql(references).await {
        let (from, to) = (row[0].as_deref().unwrap(), row[1].as_deref().unwrap());
        assert!(COPIED.contains(&to), "{from} refers to {to}, which is not on every node");
        if let Some(at) = COPIED.iter().position(|table| *table == from) {
            assert!(COPIED[..at].contains(&to), "{to} must be copied before {from}");
        }
    }
    let Target::Postgres(url) = &h.target else { unreachable!() };
    let refused = distribute(url.expose()).await.unwrap_err().to_string();
    assert!(refused.contains("CREATE EXTENSION citus"), "{refused}");
}

/// The functions of Citus that `distribute` calls, written for one server: they record what they are called with, and the schema `worker`
/// stands for another node. A superuser may claim that the extension is installed.
const CLUSTER_FUNCTIONS: &str = r"
    SET allow_system_table_mods = on;
    INSERT INTO pg_extension (oid, extname, extowner, extnamespace, extrelocatable, extversion)
    SELECT 1, 'citus', extowner, extnamespace, extrelocatable, extversion FROM pg_extension WHERE extname = 'plpgsql';
    CREATE SCHEMA worker;
    CREATE TABLE worker.placed (n BIGINT GENERATED ALWAYS AS IDENTITY, logicalrelid REGCLASS, how TEXT);
    CREATE VIEW pg_dist_partition AS SELECT logicalrelid FROM worker.placed;
    CREATE FUNCTION create_reference_table(REGCLASS) RETURNS VOID LANGUAGE sql AS
        $$ INSERT INTO worker.placed (logicalrelid, how) VALUES ($1, 'copied') $$;
    CREATE FUNCTION create_distributed_table(REGCLASS, distribution_column TEXT, colocate_with TEXT) RETURNS VOID LANGUAGE sql AS
        $$ INSERT INTO worker.placed (logicalrelid, how) VALUES ($1, $2 || ' beside ' || $3) $$;
    CREATE FUNCTION run_command_on_workers(command TEXT) RETURNS VOID LANGUAGE plpgsql SET search_path = worker AS
        $$ BEGIN EXECUTE command; END $$";

/// The composite types of a schema, with the names and types of their columns.
fn row_types(schema: &str) -> String {
    format!(
        r"
        SELECT c.relname, string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum)
        FROM pg_class c
        JOIN pg_attribute a ON a.attrelid = c.oid
        WHERE c.relkind = 'c' AND c.relnamespace = CAST('{schema}' AS regnamespace)
        GROUP BY c.relname
        ORDER BY c.relname"
    )
}

/// A second time changes nothing.
pub(crate) async fn distribute_places_each_table_and_creates_the_row_types(h: &Harness) {
    let Target::Postgres(url) = &h.target else { unreachable!() };
    let mut conn = PgConnection::connect(url.expose()).await.unwrap();
    sqlx::raw_sql(CLUSTER_FUNCTIONS).execute(&mut conn).await.unwrap();
    conn.close().await.unwrap();
    let distributed = DISTRIBUTED.iter().enumerate().map(|(n, table)| (*table, if n == 0 { "none" } else { "messages" }));
    let distributed = distributed.map(|(table, beside)| (table, format!("tenant_id beside {beside}")));
    let expected: Vec<_> = COPIED.iter().map(|table| (*table, "copied".to_owned())).chain(distributed).collect();
    for _ in 0..2 {
        distribute(url.expose()).await.unwrap();
        let placed = h.sql("SELECT CAST(logicalrelid AS TEXT), how FROM worker.placed ORDER BY n").await;
        let placed: Vec<_> = placed.iter().map(|row| (row[0].as_deref().unwrap(), row[1].clone().unwrap())).collect();
        assert_eq!(placed, expected);
        let types = h.sql(&row_types("public")).await;
        assert!(types.len() >= 5 && types == h.sql(&row_types("worker")).await, "{types:?}");
    }
}

#[test]
fn both_databases_have_the_same_migrations() {
    assert!(!migration_files("sqlite").is_empty());
    assert_eq!(migration_files("sqlite"), migration_files("postgres"));
}

fn migration_files(backend: &str) -> BTreeSet<OsString> {
    let dir = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations").join(backend);
    dir.read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect()
}

/// A file that `migrations.rs` does not list is never applied.
pub(crate) async fn every_migration_is_applied(h: &Harness) {
    let backend = if h.backend == Backend::Sqlite { "sqlite" } else { "postgres" };
    let applied = h.number("SELECT CAST(COUNT(*) AS BIGINT) FROM _sqlx_migrations WHERE success").await;
    assert_eq!(applied, migration_files(backend).len() as i64);
}

/// Plans are made once, before a table has grown: each statement of the writer looks up rows by their keys.
pub(crate) async fn no_statement_of_the_writer_reads_a_whole_table(h: &Harness) {
    let Target::Postgres(url) = &h.target else { unreachable!() };
    let mut conn = PgConnection::connect(url.expose()).await.unwrap();
    let planner = |setting: &&str| setting.starts_with("plan_cache_mode") || setting.starts_with("enable_");
    for setting in WRITER_SETTINGS.split("-c ").filter(planner) {
        sqlx::raw_sql(AssertSqlSafe(format!("SET {setting}"))).execute(&mut conn).await.unwrap();
    }
    assert!(WRITER_STATEMENTS.len() > 30, "all of them");
    for (n, sql) in WRITER_STATEMENTS.iter().enumerate() {
        // Counts have a row for each broadcast, which are few.
        let is_narrow = sql.matches("[]").count() <= 9 || sql.contains("INTO broadcast_counts");
        assert!(is_narrow, "an array for each of many columns costs more than the rows: {sql}");
        sqlx::raw_sql(AssertSqlSafe(format!("PREPARE planned_{n} AS {sql}"))).execute(&mut conn).await.unwrap();
        let params = (1..100_u32).filter(|param| sql.contains(&format!("${param}"))).count();
        let explain = AssertSqlSafe(format!("EXPLAIN EXECUTE planned_{n}({})", vec!["NULL"; params].join(", ")));
        let plan: Vec<(String,)> = sqlx::query_as(explain).fetch_all(&mut conn).await.unwrap();
        let scans = plan.iter().enumerate().filter(|(_, (line,))| line.contains(" Scan using ") || line.contains("Seq Scan"));
        for (at, (line,)) in scans {
            let by_key = plan.get(at + 1).is_some_and(|(next,)| next.contains("Index Cond") && next.matches('=').count() >= 2);
            let plan: Vec<_> = plan.iter().map(|(line,)| line).collect();
            assert!(by_key || ONE_ROW_EACH.iter().any(|table| line.contains(table)), "reads more than it needs: {plan:#?}\n{sql}");
        }
    }
    conn.close().await.unwrap();
}

/// Tables with one row for each environment.
const ONE_ROW_EACH: &[&str] = &["on worlds ", "on storage_quotas ", "on balances ", "on log_heads "];
