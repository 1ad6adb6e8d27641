//! Checks links between documents, and their anchors.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

use anyhow::{Context as _, bail};

use crate::root::root;

/// Source of the guide. Its pages are served without the other documents, so that their links must stay within it.
const GUIDE: &str = "docs/guide/src";
/// Server paths that guide pages can also link to.
const SERVED: [&str; 3] = ["/", "/docs/", "/openapi.json"];
/// Folders without documents, or with third-party ones.
const SKIPPED: [&str; 5] = ["target", "node_modules", ".git", ".peers", "book"];

/// Fails for links to missing files or headings, and for pages missing from the guide's contents.
pub(crate) fn check() -> anyhow::Result<()> {
    let root = root();
    let mut files = BTreeMap::new();
    collect(&root, Path::new(""), &mut files)?;
    let mut errors = errors(&files, &|path| root.join(path).exists());
    errors.extend(left_out(&files));
    if errors.is_empty() { Ok(()) } else { bail!("links:\n  {}", errors.join("\n  ")) }
}

/// Reads all Markdown files in a folder, with their paths from the root.
fn collect(root: &Path, folder: &Path, files: &mut BTreeMap<PathBuf, String>) -> anyhow::Result<()> {
    for entry in root.join(folder).read_dir()? {
        let entry = entry?;
        let name = entry.file_name();
        let path = folder.join(&name);
        if entry.file_type()?.is_dir() {
            if !SKIPPED.iter().any(|skipped| name == *skipped) {
                collect(root, &path, files)?;
            }
        } else if path.extension().is_some_and(|e| e == "md") {
            let text = std::fs::read_to_string(entry.path()).with_context(|| path.display().to_string())?;
            files.insert(path, text);
        }
    }
    Ok(())
}

/// Returns all broken links; `exists` checks a file or folder.
fn errors(files: &BTreeMap<PathBuf, String>, exists: &dyn Fn(&Path) -> bool) -> Vec<String> {
    let anchors: BTreeMap<&Path, BTreeSet<String>> =
        files.iter().map(|(path, text)| (path.as_path(), anchors(path, text, files))).collect();
    let mut errors = Vec::new();
    for (path, text) in files {
        let in_guide = path.starts_with(GUIDE);
        for (number, line) in prose(text) {
            let mut report = |what: &str| errors.push(format!("{}:{number}: {what}", path.display()));
            if let Some(file) = included(line) {
                if !exists(&resolve(path, file)) {
                    report(&format!("{file} is not a file"));
                }
                continue;
            }
            for target in targets(line) {
                let (file, anchor) = target.split_once('#').unwrap_or((&target, ""));
                if file.contains(':') || (in_guide && SERVED.contains(&file)) {
                    continue;
                }
                let found = if file.is_empty() { path.clone() } else { resolve(path, file) };
                if in_guide && !found.starts_with(GUIDE) {
                    report(&format!("{target} leads out of the guide; name the file instead"));
                } else if !exists(&found) {
                    report(&format!("{target} is not a file"));
                } else if !anchor.is_empty() && !anchors.get(found.as_path()).is_some_and(|known| known.contains(anchor)) {
                    report(&format!("{target} is not a heading of {}", found.display()));
                }
            }
        }
    }
    errors
}

/// Returns pages missing from the guide's contents.
fn left_out(files: &BTreeMap<PathBuf, String>) -> Vec<String> {
    let contents = Path::new(GUIDE).join("SUMMARY.md");
    let text = files.get(&contents).map(String::as_str).unwrap_or_default();
    let listed: BTreeSet<PathBuf> = text.lines().flat_map(targets).map(|target| resolve(&contents, &target)).collect();
    let pages = files.keys().filter(|path| path.starts_with(GUIDE) && **path != contents && !path.ends_with("404.md"));
    pages.filter(|path| !listed.contains(*path)).map(|path| format!("{} is not in SUMMARY.md", path.display())).collect()
}

/// Returns the numbered lines outside code blocks.
fn prose(text: &str) -> impl Iterator<Item = (usize, &str)> {
    let mut code = false;
    text.lines().enumerate().filter_map(move |(number, line)| {
        let fence = line.trim_start().starts_with("```");
        code ^= fence;
        (!code && !fence).then_some((number + 1, line))
    })
}

/// Returns the file that a line includes.
fn included(line: &str) -> Option<&str> {
    line.trim().strip_prefix("{{#include ")?.strip_suffix("}}")?.split(':').next()
}

/// Returns the targets of a line's links, outside of code.
fn targets(line: &str) -> Vec<String> {
    let text: String = line.split('`').step_by(2).collect::<Vec<_>>().join("");
    text.split("](").skip(1).filter_map(|rest| rest.split(')').next()).map(str::to_owned).collect()
}

/// Returns a link's path from the root.
fn resolve(from: &Path, target: &str) -> PathBuf {
    let mut path = from.parent().unwrap_or(Path::new("")).to_owned();
    for part in Path::new(target).components() {
        match part {
            Component::ParentDir => drop(path.pop()),
            Component::Normal(name) => path.push(name),
            _ => {}
        }
    }
    path
}

/// Returns the anchors of a file's headings, including those of included files.
fn anchors(path: &Path, text: &str, files: &BTreeMap<PathBuf, String>) -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for (_, line) in prose(text) {
        if let Some(file) = included(line) {
            if let Some(text) = files.get(&resolve(path, file)) {
                known.extend(prose(text).filter_map(|(_, line)| heading(line)).map(anchor));
            }
        } else if let Some(title) = heading(line) {
            let base = anchor(title);
            let mut id = base.clone();
            for n in 1.. {
                if known.insert(id) {
                    break;
                }
                id = format!("{base}-{n}");
            }
        }
    }
    known
}

fn heading(line: &str) -> Option<&str> {
    let title = line.trim_start_matches('#');
    (title.len() < line.len()).then(|| title.strip_prefix(' ')).flatten()
}

/// Returns the anchor of a heading, as mdBook and code hosting sites generate it.
fn anchor(title: &str) -> String {
    let mut words = title.split("](");
    // Of a link, only the text is shown.
    let first = words.next().unwrap_or_default().to_owned();
    let shown = words.fold(first, |shown, rest| shown + rest.split_once(')').map_or("", |(_, after)| after));
    shown
        .trim()
        .to_lowercase()
        .chars()
        .filter_map(|c| if c.is_alphanumeric() || c == '_' || c == '-' { Some(c) } else { c.is_whitespace().then_some('-') })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(files: &[(&str, &str)]) -> Vec<String> {
        let files: BTreeMap<_, _> = files.iter().map(|(path, text)| (PathBuf::from(path), (*text).to_owned())).collect();
        let exists = |path: &Path| files.contains_key(path);
        let mut all = errors(&files, &exists);
        all.extend(left_out(&files));
        all
    }

    #[test]
    fn good_links_pass() {
        let summary = "[A](a.md)\n- [B](b/b.md)\n- [404](404.md)";
        let a = "# A `code` and [link](b/b.md)\n\n[here](#a-code-and-link) [b](b/b.md#two-1) [api](/docs/) [web](https://example.org/#x)\n\n`[no](no.md)`\n\n```md\n[no](no.md)\n```\n";
        let b = "## Two\n\n## Two\n\n[up](../a.md)\n\n{{#include ../../../e.md:5:}}\n\n[in](#three)";
        let files = [
            ("docs/guide/src/SUMMARY.md", summary),
            ("docs/guide/src/404.md", ""),
            ("docs/guide/src/a.md", a),
            ("docs/guide/src/b/b.md", b),
            ("docs/e.md", "# Three"),
            ("README.md", "[guide](docs/guide/src/b/b.md#two)"),
        ];
        assert_eq!(found(&files), Vec::<String>::new());
    }

    #[test]
    fn wrong_links_are_reported() {
        let files = [
            ("docs/guide/src/SUMMARY.md", ""),
            ("docs/guide/src/a.md", "[x](x.md) [y](#y)\n[out](../../../README.md)\n{{#include gone.md}}"),
            ("README.md", "[z](docs/guide/src/a.md#z) [root](/docs/)"),
        ];
        let all = found(&files);
        assert_eq!(all.len(), 7, "{all:#?}");
        for (error, part) in
            all.iter().zip(["z is not a heading", "/docs/ is not a file", "x.md is not", "#y is not", "leads out", "gone.md", "SUMMARY"])
        {
            assert!(error.contains(part), "{error}: {part}");
        }
    }
}
