//! Lists the promises of the interface with the tests that verify them.
//!
//! Promises are in `docs/conformance/rows.txt`. A test names those it verifies in a comment above it, `// holds: id, id`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;

use anyhow::{Context as _, bail};

use crate::root::root;

const ROWS: &str = "docs/conformance/rows.txt";
const MARK: &str = "// holds: ";

/// A promise.
struct Row {
    section: String,
    id: String,
    promise: String,
    /// The tests that verify it.
    held: Vec<String>,
}

/// Returns all promises with their tests. Fails for a test with an unknown row, and for a duplicate row.
fn rows() -> anyhow::Result<Vec<Row>> {
    let text = std::fs::read_to_string(root().join(ROWS)).context(ROWS)?;
    let mut tests: BTreeMap<String, Vec<String>> = BTreeMap::new();
    collect(&root().join("crates"), &mut tests)?;
    let (mut rows, mut section) = (Vec::<Row>::new(), "");
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with('#')) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
            continue;
        }
        let (id, promise) = line.split_once(" | ").with_context(|| format!("{ROWS}: {line:?} is not `id | promise`"))?;
        if rows.iter().any(|row| row.id == id) {
            bail!("{ROWS}: {id} is there twice");
        }
        let held = tests.remove(id).unwrap_or_default();
        rows.push(Row { section: section.to_owned(), id: id.to_owned(), promise: promise.to_owned(), held });
    }
    if let Some((id, by)) = tests.first_key_value() {
        bail!("{by:?} says that it holds {id:?}, which is not in {ROWS}");
    }
    Ok(rows)
}

/// Fails for a promise without a test.
pub(crate) fn check() -> anyhow::Result<()> {
    let without: Vec<_> = rows()?.into_iter().filter(|row| row.held.is_empty()).map(|row| row.id).collect();
    if !without.is_empty() {
        bail!("{ROWS} promises what no test holds; write `{MARK}id` above one: {}", without.join(", "));
    }
    Ok(())
}

/// Returns the table as Markdown.
pub(crate) fn table() -> anyhow::Result<String> {
    let rows = rows()?;
    let mut text = format!(
        "# What the interface promises, and the test that holds it\n\nGenerated from `{ROWS}` and the tests by `cargo xtask generate`.\n"
    );
    let mut section = "";
    for row in &rows {
        if row.section != section {
            section = &row.section;
            let _ = writeln!(text, "\n## {section}\n\n| promise | held by |\n|---|---|");
        }
        let held = if row.held.is_empty() { "**no test yet**".to_owned() } else { row.held.join("<br>") };
        let _ = writeln!(text, "| {} | {held} |", row.promise);
    }
    let open = rows.iter().filter(|row| row.held.is_empty()).count();
    let _ = writeln!(text, "\n{} promises, {open} without a test.", rows.len());
    Ok(text)
}

/// Collects the tests in a folder by the promises they verify.
fn collect(folder: &Path, tests: &mut BTreeMap<String, Vec<String>>) -> anyhow::Result<()> {
    let mut entries: Vec<_> = folder.read_dir()?.collect::<Result<_, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        let path = entry.path();
        if path.is_dir() {
            collect(&path, tests)?;
        } else if path.extension().is_some_and(|e| e == "rs") {
            read(&path, tests)?;
        }
    }
    Ok(())
}

fn read(path: &Path, tests: &mut BTreeMap<String, Vec<String>>) -> anyhow::Result<()> {
    let text = std::fs::read_to_string(path)?;
    let mut held: Vec<&str> = Vec::new();
    for line in text.lines().map(str::trim) {
        if let Some(ids) = line.strip_prefix(MARK) {
            held.extend(ids.split(',').map(str::trim));
        } else if !held.is_empty()
            && let Some((_, rest)) = line.split_once("fn ")
        {
            let name = rest.split(['(', '<']).next().unwrap_or_default();
            let place = path.strip_prefix(root().join("crates")).unwrap_or(path).display();
            for id in held.drain(..) {
                tests.entry(id.to_owned()).or_default().push(format!("`{name}` ({place})"));
            }
        }
    }
    if held.is_empty() { Ok(()) } else { bail!("{}: `{MARK}{}` stands above no test", path.display(), held.join(", ")) }
}
