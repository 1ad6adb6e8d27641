//! Prints the features that the review of broadcasts sees in every line of the standard input, for the training: the value that all
//! features of the line have, then their buckets.

use std::io::{self, BufRead as _, Write as _};

use nuncio_core::review::features::Features;

fn main() -> io::Result<()> {
    let mut out = io::BufWriter::new(io::stdout().lock());
    for line in io::stdin().lock().lines() {
        let features = Features::of(&line?);
        let (buckets, value) = features.vector();
        write!(out, "{value}")?;
        for bucket in buckets {
            write!(out, " {bucket}")?;
        }
        writeln!(out)?;
    }
    out.flush()
}
