//! Checks the dependencies between workspace crates.

use std::collections::{BTreeSet, HashMap};

use anyhow::bail;
use cargo_metadata::{DependencyKind, MetadataCommand, Package};

/// Workspace crates that a crate may use, and crates that it must not reach, even indirectly.
struct Rule {
    name: &'static str,
    may_use: &'static [&'static str],
    never: &'static [&'static str],
}

const CHANNEL: &[&str] = &["nuncio-domain", "nuncio-net", "nuncio-channel", "nuncio-channel-http"];
/// The adapters for Meta share a crate.
const META: &[&str] = &["nuncio-domain", "nuncio-net", "nuncio-channel", "nuncio-channel-http", "nuncio-channel-meta"];
const CHANNEL_NEVER: &[&str] = &["nuncio-store", "nuncio-core", "axum", "sqlx", "rusqlite"];

const RULES: &[Rule] = &[
    Rule { name: "nuncio-domain", may_use: &[], never: &["tokio", "axum", "sqlx", "rusqlite", "reqwest"] },
    Rule { name: "nuncio-store", may_use: &["nuncio-domain"], never: &["sqlx", "rusqlite", "axum", "reqwest"] },
    Rule {
        name: "nuncio-store-sql",
        may_use: &["nuncio-domain", "nuncio-store"],
        never: &["axum", "reqwest", "nuncio-channel", "nuncio-core"],
    },
    Rule { name: "nuncio-net", may_use: &["nuncio-domain"], never: &["nuncio-store", "axum", "sqlx"] },
    Rule { name: "nuncio-channel", may_use: &["nuncio-domain", "nuncio-net"], never: CHANNEL_NEVER },
    Rule { name: "nuncio-channel-http", may_use: CHANNEL, never: CHANNEL_NEVER },
    Rule { name: "nuncio-channel-instagram", may_use: META, never: CHANNEL_NEVER },
    Rule { name: "nuncio-channel-kannel", may_use: CHANNEL, never: CHANNEL_NEVER },
    Rule { name: "nuncio-channel-meta", may_use: CHANNEL, never: CHANNEL_NEVER },
    Rule { name: "nuncio-channel-sim", may_use: CHANNEL, never: CHANNEL_NEVER },
    Rule { name: "nuncio-channel-sip", may_use: CHANNEL, never: CHANNEL_NEVER },
    Rule { name: "nuncio-channel-smpp", may_use: CHANNEL, never: CHANNEL_NEVER },
    Rule { name: "nuncio-channel-smtp", may_use: CHANNEL, never: CHANNEL_NEVER },
    Rule { name: "nuncio-channel-telegram", may_use: CHANNEL, never: CHANNEL_NEVER },
    Rule { name: "nuncio-channel-twilio", may_use: CHANNEL, never: CHANNEL_NEVER },
    Rule { name: "nuncio-channel-whatsapp", may_use: META, never: CHANNEL_NEVER },
    Rule { name: "nuncio-secrets", may_use: &["nuncio-domain"], never: &["tokio", "axum", "sqlx", "rusqlite", "reqwest"] },
    Rule {
        name: "nuncio-dispatch",
        may_use: &["nuncio-domain", "nuncio-store", "nuncio-channel", "nuncio-net", "nuncio-secrets"],
        never: &["sqlx", "rusqlite", "axum", "nuncio-core"],
    },
    Rule {
        name: "nuncio-core",
        may_use: &["nuncio-domain", "nuncio-store", "nuncio-channel", "nuncio-net", "nuncio-secrets", "nuncio-dispatch"],
        never: &["sqlx", "rusqlite", "axum"],
    },
    Rule {
        name: "nuncio-node",
        may_use: &["nuncio-domain", "nuncio-store", "nuncio-channel", "nuncio-net", "nuncio-secrets", "nuncio-dispatch", "nuncio-core"],
        never: &["sqlx", "rusqlite", "axum"],
    },
    Rule { name: "nuncio-api", may_use: &["nuncio-domain", "nuncio-core"], never: &["sqlx", "rusqlite", "nuncio-store-sql", "lettre"] },
    Rule {
        name: "nuncio-dashboard",
        may_use: &["nuncio-domain", "nuncio-core"],
        never: &["sqlx", "rusqlite", "nuncio-store-sql", "lettre"],
    },
    Rule { name: "nuncio-guide", may_use: &[], never: &["mdbook-driver", "sqlx", "rusqlite", "reqwest"] },
    // The binary, and crates that must not be part of it.
    Rule {
        name: "nuncio",
        may_use: &[
            "nuncio-domain",
            "nuncio-store",
            "nuncio-store-sql",
            "nuncio-net",
            "nuncio-channel",
            "nuncio-channel-instagram",
            "nuncio-channel-kannel",
            "nuncio-channel-sim",
            "nuncio-channel-sip",
            "nuncio-channel-smpp",
            "nuncio-channel-smtp",
            "nuncio-channel-telegram",
            "nuncio-channel-twilio",
            "nuncio-channel-whatsapp",
            "nuncio-secrets",
            "nuncio-dispatch",
            "nuncio-core",
            "nuncio-node",
            "nuncio-api",
            "nuncio-dashboard",
            "nuncio-guide",
        ],
        never: &["openssl-sys", "native-tls", "aws-lc-sys"],
    },
];

/// Crates for tests and tools.
const TOOLS: &[&str] = &["nuncio-testkit", "nuncio-bench", "xtask"];

pub(crate) fn check() -> anyhow::Result<()> {
    let metadata = MetadataCommand::new().exec()?;
    let uses: HashMap<&str, BTreeSet<&str>> = metadata.packages.iter().map(|p| (p.name.as_str(), direct(p))).collect();
    let mut faults = Vec::new();
    for package in metadata.workspace_packages() {
        let name = package.name.as_str();
        if TOOLS.contains(&name) {
            continue;
        }
        let Some(rule) = RULES.iter().find(|r| r.name == name) else {
            faults.push(format!("{name} stands in no rule: add it to xtask/src/deps.rs and docs/ARCHITECTURE.md"));
            continue;
        };
        for used in direct(package).iter().filter(|d| d.starts_with("nuncio")) {
            if !rule.may_use.contains(used) {
                faults.push(format!("{name} may not use {used}"));
            }
        }
        let reached = reach(name, &uses);
        faults.extend(rule.never.iter().filter(|never| reached.contains(*never)).map(|never| format!("{name} must never reach {never}")));
    }
    if faults.is_empty() { Ok(()) } else { bail!("dependencies:\n  {}", faults.join("\n  ")) }
}

/// Returns the dependencies of a package, without those of its tests. Optional dependencies count as resolved by the lock file: a disabled
/// feature is caught by naming the crates that it adds.
fn direct(package: &Package) -> BTreeSet<&str> {
    package.dependencies.iter().filter(|d| d.kind == DependencyKind::Normal && !d.optional).map(|d| d.name.as_str()).collect()
}

fn reach<'a>(name: &'a str, uses: &HashMap<&'a str, BTreeSet<&'a str>>) -> BTreeSet<&'a str> {
    let mut reached = BTreeSet::new();
    let mut open = vec![name];
    while let Some(next) = open.pop() {
        for used in uses.get(next).into_iter().flatten() {
            if reached.insert(*used) {
                open.push(used);
            }
        }
    }
    reached
}
