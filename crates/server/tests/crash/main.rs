//! Verifies that an accepted message is kept, whatever happens to the process, the disk or the database.
//!
//! The real binary runs under load and is killed, loses power, or loses its disk or database. Then three independent records are compared:
//! a [ledger](ledger) of accepted messages seen by clients, synced before they count; an [SMTP relay](sink) that counts emails; and the
//! API. See [`verify`] for the conditions. Where the process is killed repeatedly, a [webhook endpoint](watch) listens as well, a file of
//! recipients is [imported](import), and a broadcast is sent.
//!
//! These tests can be tested. The power cut tests include a control on a disk that ignores syncs. For crashes, comment out the loop that
//! calls `self.recover_node(node)` in `Shared::enter` (`crates/dispatch/src/nodes.rs`), so that attempts of dead processes are not
//! recovered, and run
//!
//! ```text
//! cargo test -p nuncio --test crash -- --ignored heavy_crash_sqlite
//! ```
//!
//! It then fails with messages that `still are unfinished`. For webhooks, let `Shared::take` (`crates/node/src/webhooks/mod.rs`) begin at
//! the end of a log instead of at `reader.read`; the test then fails with messages that `are not told`.
//!
//! Further tests run the same binary against [hostile clients](hostile), [requests generated from its OpenAPI document](schema), [generated
//! clients](clients), the commands of the [guide], and a [browser].
//!
//! Kills come at random times. Every run prints its seed, which `NUNCIO_TEST_SEED` sets; it determines requests and times, but not what the
//! machine does in between.

mod browser;
mod cancel;
mod clients;
mod guide;
mod hostile;
mod http;
mod import;
mod kill;
mod ledger;
mod load;
mod nodes;
mod postgres;
mod power;
mod schema;
mod server;
mod sink;
mod verify;
mod watch;

/// Returns the seed of all randomness.
fn seed() -> u64 {
    let given = std::env::var("NUNCIO_TEST_SEED").ok().map(|text| text.parse().expect("NUNCIO_TEST_SEED is a number"));
    let seed = given.unwrap_or_else(|| server::now().millis() as u64);
    eprintln!("NUNCIO_TEST_SEED={seed}");
    seed
}
