//! Checks that every method of the store has a case.

use std::collections::BTreeMap;
use std::path::Path;

fn sources(dir: &Path) -> String {
    let files = dir.read_dir().unwrap().map(|entry| entry.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|e| e == "rs")).map(|path| std::fs::read_to_string(path).unwrap()).collect()
}

/// Returns the names that follow `async fn`, each with the text up to the next one.
fn functions(source: &str) -> BTreeMap<&str, &str> {
    let parts = source.split("async fn ").skip(1);
    parts.map(|part| (part.split(['(', '<']).next().unwrap(), part)).collect()
}

#[test]
fn every_method_has_a_case() {
    let here = Path::new(env!("CARGO_MANIFEST_DIR"));
    let (traits, suite) = (sources(&here.join("../store/src")), sources(&here.join("tests/contract")));
    let (methods, mut cases) = (functions(&traits), functions(&suite));
    cases.retain(|name, _| crate::CASES.contains(name));
    assert!(!methods.is_empty() && cases.len() == crate::CASES.len(), "the sources are not read as they should be");

    // A harness helper counts as the method it calls. The text of a case ends at the next function.
    let is_called = |method: &str| {
        let calls = [format!(".{method}("), format!("{}(h, ", helper(method))];
        cases.values().any(|text| calls.iter().any(|call| text.contains(call)))
    };
    let missing: Vec<_> = methods.into_keys().filter(|method| !is_called(method)).collect();
    assert!(missing.is_empty(), "no case calls {missing:?}");
}

/// Returns the helper that only calls this method.
fn helper(method: &str) -> &str {
    match method {
        "log_deliveries" => "log",
        "insert_inbound" => "receive",
        "find_mailbox" => "holder",
        "limit_storage" => "limit",
        method => method,
    }
}
