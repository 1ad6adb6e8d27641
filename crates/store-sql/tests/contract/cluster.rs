//! Checks that PostgreSQL, distributed by Citus, would accept all statements of a case: parses them and compares them with the placement of
//! the tables.
//!
//! The server records the statements (`pg_stat_statements`). A statement may access rows of many tenants, but combine only rows of the same
//! one: distributed tables are joined by `tenant_id`, rows are locked for one tenant at a time, and nothing is written inside a `WITH`.
//! System columns and transaction numbers must not be used, since they differ between nodes.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;

use nuncio_store_sql::DISTRIBUTED;
use sqlparser::ast::{BinaryOperator, Expr, Ident, Query, Select, SetExpr, Statement, TableFactor, Visit as _, Visitor};
use sqlparser::dialect::PostgreSqlDialect;
use sqlparser::parser::Parser;

/// Columns that PostgreSQL adds to every row.
const SYSTEM_COLUMNS: &[&str] = &["xmin", "xmax", "cmin", "cmax", "ctid", "tableoid"];
/// Functions whose result is valid on one cluster node only.
const TRANSACTIONS: &[&str] = &[
    "txid_current", "txid_current_snapshot", "txid_snapshot_xmin", "pg_current_xact_id", "pg_current_snapshot", "pg_snapshot_xmin",
    "pg_current_wal_lsn",
];

/// Returns why a cluster would reject or misinterpret a statement. Empty for statements that neither read nor write rows.
pub(crate) fn faults(sql: &str) -> Vec<String> {
    let statements = match Parser::parse_sql(&PostgreSqlDialect {}, sql) {
        Ok(statements) => statements,
        Err(error) => return vec![format!("it cannot be parsed: {error}")],
    };
    statements.iter().filter(|s| is_data(s)).flat_map(|statement| Walk::of(statement).faults()).collect()
}

fn is_data(statement: &Statement) -> bool {
    matches!(statement, Statement::Query(_) | Statement::Insert(_) | Statement::Update(_) | Statement::Delete(_))
}

/// A side of a comparison of tenants.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Side {
    /// `tenant_id` of a table, which may be named, as resolved in a scope.
    Column(usize, Option<String>),
    /// A parameter or constant, which is a single tenant.
    Given,
}

/// Scope of table names: a `SELECT`, or the whole statement.
#[derive(Debug, Default)]
struct Scope {
    parent: Option<usize>,
    /// Table of each name; `None` for a function or a subquery.
    tables: BTreeMap<String, Option<String>>,
    locks: bool,
}

#[derive(Debug, Default)]
struct Walk {
    scopes: Vec<Scope>,
    open: Vec<usize>,
    equal: Vec<(Side, Side)>,
    locks: bool,
    faults: Vec<String>,
}

impl Walk {
    fn of(statement: &Statement) -> Self {
        let mut walk = Self { scopes: vec![Scope::default()], open: vec![0], ..Self::default() };
        let _ = statement.visit(&mut walk);
        walk
    }

    fn scope(&self) -> usize {
        self.open.last().copied().unwrap_or_default()
    }

    /// Returns why a cluster would reject the statement. Sides that stand for the same tenant get the same number.
    fn faults(mut self) -> Vec<String> {
        let mut groups: BTreeMap<Place, usize> = BTreeMap::new();
        for (at, scope) in self.scopes.iter().enumerate() {
            for name in scope.tables.keys() {
                groups.insert(Place::Table(at, name.clone()), groups.len());
            }
        }
        groups.insert(Place::Given, groups.len());
        for (left, right) in &self.equal {
            let (Some(left), Some(right)) = (self.place(left), self.place(right)) else { continue };
            let (Some(from), Some(to)) = (groups.get(&left).copied(), groups.get(&right).copied()) else { continue };
            groups.values_mut().filter(|group| **group == from).for_each(|group| *group = to);
        }
        let given = groups[&Place::Given];
        let mut together = BTreeSet::new();
        let mut names = Vec::new();
        for (at, scope) in self.scopes.iter().enumerate() {
            for (name, table) in &scope.tables {
                if !table.as_deref().is_some_and(|table| DISTRIBUTED.contains(&table)) {
                    continue;
                }
                let group = groups[&Place::Table(at, name.clone())];
                together.insert(group);
                names.push(name.clone());
                if scope.locks && group != given {
                    self.faults.push(format!("it locks rows of {name} for more than one tenant"));
                }
            }
        }
        if together.len() > 1 {
            self.faults.push(format!("not all of {names:?} are joined by tenant_id"));
        }
        self.faults
    }

    fn place(&self, side: &Side) -> Option<Place> {
        let Side::Column(scope, name) = side else { return Some(Place::Given) };
        let mut at = Some(*scope);
        while let Some(n) = at {
            let tables = &self.scopes[n].tables;
            let found = match name {
                Some(name) => tables.get_key_value(name).map(|(name, _)| name),
                None => tables.keys().next().filter(|_| tables.len() == 1),
            };
            if let Some(found) = found {
                return Some(Place::Table(n, found.clone()));
            }
            at = self.scopes[n].parent;
        }
        None
    }

    fn side(&self, expr: &Expr) -> Side {
        let is_tenant = |ident: &Ident| ident.value == "tenant_id";
        match expr {
            Expr::Identifier(ident) if is_tenant(ident) => Side::Column(self.scope(), None),
            Expr::CompoundIdentifier(path) if path.last().is_some_and(is_tenant) => {
                Side::Column(self.scope(), path.first().map(|ident| ident.value.clone()))
            }
            Expr::Nested(inner) => self.side(inner),
            _ => Side::Given,
        }
    }

    fn equate(&mut self, left: Side, right: Side) {
        if left != right {
            self.equal.push((left, right));
        }
    }
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Debug)]
enum Place {
    Table(usize, String),
    Given,
}

impl Visitor for Walk {
    type Break = ();

    fn pre_visit_query(&mut self, query: &Query) -> ControlFlow<()> {
        let writes = |body: &SetExpr| matches!(body, SetExpr::Insert(_) | SetExpr::Update(_) | SetExpr::Delete(_) | SetExpr::Merge(_));
        if query.with.iter().flat_map(|with| &with.cte_tables).any(|cte| writes(&cte.query.body)) {
            self.faults.push("it writes inside a WITH".to_owned());
        }
        self.locks |= !query.locks.is_empty();
        ControlFlow::Continue(())
    }

    fn pre_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        let parent = Some(self.scope());
        self.open.push(self.scopes.len());
        self.scopes.push(Scope { parent, locks: std::mem::take(&mut self.locks), ..Scope::default() });
        ControlFlow::Continue(())
    }

    fn post_visit_select(&mut self, _: &Select) -> ControlFlow<()> {
        self.open.pop();
        ControlFlow::Continue(())
    }

    fn pre_visit_table_factor(&mut self, factor: &TableFactor) -> ControlFlow<()> {
        let (table, alias) = match factor {
            TableFactor::Table { name, alias, args: None, .. } => (Some(name.to_string()), alias),
            TableFactor::Table { alias, .. }
            | TableFactor::Derived { alias, .. }
            | TableFactor::UNNEST { alias, .. }
            | TableFactor::Function { alias, .. } => (None, alias),
            other => {
                self.faults.push(format!("no rule is known for {other}"));
                return ControlFlow::Continue(());
            }
        };
        let scope = self.scope();
        if let Some(name) = alias.as_ref().map(|alias| alias.name.value.clone()).or_else(|| table.clone()) {
            self.scopes[scope].tables.insert(name, table);
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_expr(&mut self, expr: &Expr) -> ControlFlow<()> {
        match expr {
            Expr::BinaryOp { left, op: BinaryOperator::Eq, right } => self.equate(self.side(left), self.side(right)),
            Expr::InList { expr, negated: false, .. } => self.equate(self.side(expr), Side::Given),
            Expr::Function(function) if TRANSACTIONS.contains(&function.name.to_string().as_str()) => {
                self.faults.push(format!("{} tells of one node", function.name));
            }
            _ => {}
        }
        ControlFlow::Continue(())
    }

    fn pre_visit_ident(&mut self, ident: &Ident) -> ControlFlow<()> {
        if SYSTEM_COLUMNS.contains(&ident.value.as_str()) {
            self.faults.push(format!("{} is a column of the system", ident.value));
        }
        ControlFlow::Continue(())
    }
}

#[test]
fn what_a_cluster_refuses_is_found() {
    for (sql, fault) in [
        ("WITH m AS (DELETE FROM messages WHERE id = $1 RETURNING id) SELECT id FROM m", "inside a WITH"),
        ("SELECT xmin FROM messages WHERE tenant_id = $1", "column of the system"),
        ("SELECT txid_current()", "tells of one node"),
        ("SELECT 1 FROM messages m JOIN states s ON s.id = m.id", "joined by tenant_id"),
        ("SELECT 1 FROM messages m JOIN states s ON s.id = m.id WHERE m.tenant_id = $1", "joined by tenant_id"),
        ("SELECT 1 FROM messages m WHERE EXISTS (SELECT 1 FROM states s WHERE s.tenant_id = s.tenant_id AND s.id = m.id)", "joined by"),
        ("UPDATE states s SET wait = 0 FROM agenda a WHERE a.id = s.agenda", "joined by tenant_id"),
        ("DELETE FROM states WHERE id IN (SELECT id FROM messages WHERE tenant_id = $1)", "joined by tenant_id"),
        ("SELECT id FROM states WHERE wait = 1 FOR UPDATE SKIP LOCKED", "more than one tenant"),
        (
            "SELECT s.id FROM unnest($1::bigint[]) AS u (tenant_id) JOIN states s ON s.tenant_id = u.tenant_id FOR UPDATE OF s",
            "more than one",
        ),
        ("SELEC 1", "cannot be parsed"),
    ] {
        let found = faults(sql);
        assert!(found.iter().any(|f| f.contains(fault)), "{sql}: {found:?}");
    }
    for sql in [
        "SELECT 1 FROM messages m JOIN states s ON s.tenant_id = m.tenant_id AND s.id = m.id",
        "SELECT 1 FROM messages m, states s WHERE m.tenant_id = $1 AND s.tenant_id = $1",
        "SELECT 1 FROM worlds w, messages m WHERE w.tenant_id = m.tenant_id",
        "SELECT id FROM states WHERE tenant_id = $1 AND id = ANY($2) ORDER BY id FOR UPDATE",
        "UPDATE states s SET wait = u.wait FROM unnest($1::bigint[], $2::int[]) AS u (tenant_id, wait) WHERE s.tenant_id = u.tenant_id",
        "BEGIN",
    ] {
        assert_eq!(faults(sql), [""; 0], "{sql}");
    }
}
