//! Compresses the OpenAPI document, which the crate embeds.

use std::fs::File;
use std::path::Path;
use std::{env, io};

use flate2::Compression;
use flate2::write::GzEncoder;

// From the folder of this package: an absolute path would name another clone where clones share a target folder.
const DOCUMENT: &str = "../../docs/openapi.json";

fn main() -> io::Result<()> {
    for path in [DOCUMENT, "build.rs"] {
        println!("cargo::rerun-if-changed={path}");
    }
    let out = env::var_os("OUT_DIR").ok_or(io::ErrorKind::NotFound)?;
    let mut gzip = GzEncoder::new(File::create(Path::new(&out).join("openapi.json.gz"))?, Compression::best());
    io::copy(&mut File::open(DOCUMENT)?, &mut gzip)?;
    gzip.finish()?;
    Ok(())
}
