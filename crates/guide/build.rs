//! Builds the guide with mdBook, and writes the list of files that the crate embeds, compressed.

use std::fmt::Write as _;
use std::io::{Cursor, Read as _, Write as _};
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use flate2::Compression;
use flate2::write::GzEncoder;
use mdbook_driver::MDBook;

/// Where the guide is served.
const ROOT: &str = "/docs/guide/";
/// Files of mdBook that the guide uses besides its pages.
const SEARCH: [&str; 2] = ["elasticlunr.min.js", "searchindex.js"];
/// Files of Swagger UI that the API reference uses.
const SWAGGER: [&str; 2] = ["swagger-ui.css", "swagger-ui-bundle.js"];
/// What the theme puts around the table of contents.
const CONTENTS: (&str, &str) = ("<!--contents-->", "<!--/contents-->");

fn main() -> anyhow::Result<()> {
    // From the folder of this package: an absolute path would name another clone where clones share a target folder.
    let docs = Path::new("../../docs");
    let source = docs.join("guide");
    // Pages include these files.
    let included = ["benchmarks.md", "channels/settings.md", "errors.md", "nuncio.sample.toml"];
    let watched = included.iter().map(|file| docs.join(file));
    for path in watched.chain([source.clone(), "theme".into(), "assets".into(), "build.rs".into()]) {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let out = PathBuf::from(std::env::var_os("OUT_DIR").context("OUT_DIR")?);
    let built = out.join("book");
    let mut book = MDBook::load(&source)?;
    book.config.build.build_dir = built.clone();
    book.build()?;

    let mut list = String::from("&[\n");
    let packed = out.join("packed");
    std::fs::create_dir_all(&packed)?;
    let mut pack = |path: String, content: &[u8]| -> anyhow::Result<()> {
        let file = packed.join(path.replace('/', "-"));
        let mut gzip = GzEncoder::new(std::fs::File::create(&file)?, Compression::best());
        gzip.write_all(content)?;
        gzip.finish()?;
        writeln!(list, "    ({path:?}, include_bytes!({:?})),", file.display().to_string())?;
        Ok(())
    };
    let mut files = Vec::new();
    collect(&built, &mut files)?;
    for file in files {
        let name = file.strip_prefix(&built)?.to_str().context("a name in UTF-8")?.to_owned();
        let path = format!("guide/{name}");
        if name.ends_with(".html") && name != "toc.html" {
            pack(path, finish(&std::fs::read_to_string(&file)?, &name)?.as_bytes())?;
        } else if SEARCH.contains(&name.as_str()) {
            pack(path, &std::fs::read(&file)?)?;
        }
    }
    for name in ["guide.css", "guide.js", "reference.css", "reference.html", "reference.js"] {
        let folder = if name.starts_with("guide") { "guide/" } else { "" };
        pack(format!("{folder}{name}"), &std::fs::read(Path::new("assets").join(name))?)?;
    }
    let mut swagger = zip::ZipArchive::new(Cursor::new(utoipa_swagger_ui_vendored::SWAGGER_UI_VENDORED))?;
    for at in 0..swagger.len() {
        let mut file = swagger.by_index(at)?;
        let path = file.name()?.into_owned();
        let Some(name) = SWAGGER.into_iter().find(|name| path.ends_with(&format!("/dist/{name}"))) else { continue };
        let mut content = Vec::new();
        file.read_to_end(&mut content)?;
        pack(name.to_owned(), &content)?;
    }
    list.push_str("]\n");
    std::fs::write(out.join("files.rs"), list)?;
    Ok(())
}

fn collect(folder: &Path, files: &mut Vec<PathBuf>) -> anyhow::Result<()> {
    let mut entries = folder.read_dir()?.collect::<Result<Vec<_>, _>>()?;
    entries.sort_by_key(std::fs::DirEntry::path);
    for entry in entries {
        if entry.path().is_dir() { collect(&entry.path(), files)? } else { files.push(entry.path()) }
    }
    Ok(())
}

/// A page as it is served: every link is absolute, so that a page reads the same at `/docs/guide` and in its folder, and the table of
/// contents marks the page.
fn finish(page: &str, name: &str) -> anyhow::Result<String> {
    let (head, rest) = page.split_once(CONTENTS.0).context("the theme begins the table of contents")?;
    let (contents, tail) = rest.split_once(CONTENTS.1).context("the theme ends the table of contents")?;
    let folder = name.rsplit_once('/').map_or("", |(folder, _)| folder);
    let contents =
        absolute(contents, "").replace(&format!("href=\"{ROOT}{name}\""), &format!("href=\"{ROOT}{name}\" aria-current=\"page\""));
    Ok(absolute(head, folder) + &contents + &absolute(tail, folder))
}

/// The same HTML with absolute links; `folder`: where its relative ones begin.
fn absolute(html: &str, folder: &str) -> String {
    const LINK: &str = "href=\"";
    let mut parts = html.split(LINK);
    let mut text = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        text.push_str(LINK);
        let (target, rest) = part.split_once('"').unwrap_or((part, ""));
        if target.starts_with(['#', '/']) || target.contains(':') {
            text.push_str(target);
        } else {
            let mut place: Vec<&str> = folder.split('/').filter(|part| !part.is_empty()).collect();
            for part in target.split('/') {
                match part {
                    ".." => drop(place.pop()),
                    "." => {}
                    _ => place.push(part),
                }
            }
            text.push_str(ROOT);
            text.push_str(&place.join("/"));
        }
        text.push('"');
        text.push_str(rest);
    }
    text
}
