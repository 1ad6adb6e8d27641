//! Prints what the review of broadcasts makes of every line of the standard input: score, categories, flagged words, separated by tabs.
//! A file named on the command line takes the place of the model's weights.

use std::io::{self, BufRead as _, Write as _};

use nuncio_core::review::{Model, Subject, review_with};
use nuncio_domain::Timestamp;
use nuncio_domain::broadcast::ReviewPolicy;

fn main() -> io::Result<()> {
    let weights = std::env::args().nth(1).map(std::fs::read).transpose()?;
    let model = match &weights {
        Some(bytes) => Model::read(bytes).ok_or_else(|| io::Error::other("not a file of weights"))?,
        None => Model::default(),
    };
    let policy = ReviewPolicy::default();
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let subject = Subject { texts: vec![line?], ..Subject::default() };
        let result = review_with(&model, &subject, &policy, Timestamp::from_millis(0));
        writeln!(out, "{}\t{}\t{}", result.score, result.categories.join(", "), result.flagged_content.join(" | "))?;
    }
    out.flush()
}
