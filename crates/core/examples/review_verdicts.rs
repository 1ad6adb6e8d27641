//! Prints what the review of broadcasts makes of every line of the standard input: score, categories, flagged words.

use std::io::{self, BufRead as _, Write as _};

use nuncio_core::review::{Subject, review};
use nuncio_domain::Timestamp;

fn main() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let result = review(&Subject { texts: vec![line?], ..Subject::default() }, Timestamp::from_millis(0));
        writeln!(out, "{}\t{}\t{}", result.score, result.categories.join(", "), result.flagged_content.join(" | "))?;
    }
    out.flush()
}
