//! Strategies for property tests of adapters.

use proptest::prelude::*;
use proptest::test_runner::{Config, RngAlgorithm, RngSeed};
use serde_json::Value;

/// Runs this many cases, the same in every run; writes nothing to disk.
pub fn config(cases: u32) -> Config {
    Config { cases, rng_seed: RngSeed::Fixed(7), rng_algorithm: RngAlgorithm::ChaCha, failure_persistence: None, ..Config::default() }
}

/// Generates JSON of any shape, up to about 50 values. Field names and texts are often among `words`.
pub fn json(words: &'static [&'static str]) -> impl Strategy<Value = Value> {
    let word = move || prop_oneof![3 => prop::sample::select(words).prop_map(str::to_owned), 1 => any::<String>()];
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        word().prop_map(Value::from),
    ];
    leaf.prop_recursive(5, 48, 6, move |inner| {
        let fields = prop::collection::vec((word(), inner.clone()), 0..6);
        prop_oneof![
            1 => prop::collection::vec(inner, 0..4).prop_map(Value::from),
            3 => fields.prop_map(|fields| Value::Object(fields.into_iter().collect())),
        ]
    })
}
