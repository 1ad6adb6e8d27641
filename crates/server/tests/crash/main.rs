//! A 202 is kept, whatever happens to the process, the disk or the database.
//!
//! The real binary runs under load and is killed, cut off from power, or robbed of its disk or database. Three witnesses that
//! share nothing with it are compared afterwards: a [ledger](ledger) of what clients saw accepted, synced before it counts; an
//! [SMTP relay](sink) that counts what it took; and what the API says. See [`verify`] for what must hold. Where the process is killed
//! again and again, a [webhook endpoint](watch) listens as well, a file of recipients is [imported](import), and a broadcast goes out.
//!
//! Whether these tests see anything can be tried out. For power cuts a control runs with them, on a disk that lies. For crashes:
//! comment out the loop that calls `self.bury(node)` in `Shared::enter` (`crates/dispatch/src/nodes.rs`), so that nobody takes over
//! what a dead process had under way, and run
//!
//! ```text
//! cargo test -p nuncio --test crash -- --ignored heavy_crash_sqlite
//! ```
//!
//! It then fails with messages that `still are unfinished`. For webhooks: let `Shared::take` (`crates/node/src/webhooks/mod.rs`)
//! begin at the end of a log instead of at `reader.read`; the test then fails with messages that `are not told`.
//!
//! [`hostile`] holds the same binary under clients that mean it harm.
//!
//! [`guide`] runs the commands of the guide.
//!
//! [`browser`] walks through the pages in Chromium.
//!
//! [`schema`] drives the same binary from its own description, and [`clients`] has clients generated from that.
//!
//! Kills come at random moments. `NUNCIO_TEST_SEED` sets the seed, which every run prints; requests and moments follow from it,
//! what the machine does in between does not.

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

/// What randomness starts from.
fn seed() -> u64 {
    let given = std::env::var("NUNCIO_TEST_SEED").ok().map(|text| text.parse().expect("NUNCIO_TEST_SEED is a number"));
    let seed = given.unwrap_or_else(|| server::now().millis() as u64);
    eprintln!("NUNCIO_TEST_SEED={seed}");
    seed
}
