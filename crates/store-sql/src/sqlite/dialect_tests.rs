use sqlx::Execute as _;

use super::*;

/// How SQLite looks up the rows of a statement, without statistics as in every database of ours.
fn plan(mut query: QueryBuilder<Db>) -> Vec<String> {
    let conn = rusqlite::Connection::open_in_memory().unwrap();
    conn.execute_batch(include_str!("../../migrations/sqlite/0001_init.sql")).unwrap();
    let sql = query.build().sql();
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {}", sql.as_str())).unwrap();
    let lines = statement.raw_query().mapped(|row| row.get(3)).collect::<Result<_, _>>();
    lines.unwrap()
}

#[test]
fn look_ups_by_key_do_not_read_the_whole_tenant() {
    for count in [1, 2, 100] {
        let ids = || (0..count).map(Uuid::from_u128);
        let texts: BTreeSet<String> = (0..count).map(|n| n.to_string()).collect();
        let batches: Vec<i64> = (0..count as i64).collect();
        for query in [
            moved_addresses(1, ids()),
            log_of_batches(1, &batches),
            contacts_of("addresses", 1, ids()),
            contacts_named(1, &texts, 5),
            contacts_by_identifier(1, 1, &texts),
        ] {
            let plan = plan(query);
            let searches: Vec<&String> = plan.iter().filter(|line| line.starts_with("SEARCH ")).collect();
            assert!(!searches.is_empty() && searches.iter().all(|line| line.matches('?').count() > 1), "{count} keys: {plan:#?}");
            assert!(plan.iter().all(|line| !line.starts_with("SCAN ") || line.contains("CONSTANT ROW") || line == "SCAN k"), "{plan:#?}");
        }
    }
}
