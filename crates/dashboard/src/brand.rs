//! `/assets/colours/{rrggbb}.css`: the colour of a project as a style sheet. The content security policy permits no inline styles.

use axum::extract::Path;
use axum::http::StatusCode;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::response::{IntoResponse as _, Response};
use nuncio_domain::Colour;

/// Backgrounds of public pages in light and dark mode: `--sheet` of `tokens.css`.
pub(crate) const SHEETS: [Colour; 2] = [Colour::WHITE, Colour::rgb(0x1b, 0x1a, 0x17)];

/// Returns the path of a colour's style sheet, relative to `/assets/`.
pub(crate) fn path(colour: Colour) -> String {
    format!("colours/{}.css", colour.hex())
}

/// Serves the style sheet of a colour. Each has one path, in lower case.
pub(crate) async fn show(Path(file): Path<String>) -> Response {
    let colour = file.strip_suffix(".css").and_then(Colour::parse_hex).filter(|colour| path(*colour).ends_with(&file));
    let Some(colour) = colour else { return StatusCode::NOT_FOUND.into_response() };
    ([(CONTENT_TYPE, "text/css; charset=utf-8"), (CACHE_CONTROL, "public, max-age=2592000")], sheet(colour)).into_response()
}

/// Sets the colour's tokens. Links, borders and progress are as close to it as can be read on the page.
fn sheet(colour: Colour) -> String {
    let [light, dark] = SHEETS.map(|sheet| colour.readable_on(sheet));
    format!(
        ":root {{ --brand: {colour}; --on-brand: {text}; --brand-edge: light-dark({light}, {dark}); --accent: light-dark({light}, {dark}); }}\n",
        text = colour.text()
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sheets_are_those_of_the_tokens() {
        let [light, dark] = SHEETS;
        assert!(include_str!("../assets/tokens.css").contains(&format!("--sheet: light-dark({light}, {dark});")));
    }

    #[test]
    fn a_sheet_holds_nothing_but_colours() {
        let yellow = ":root { --brand: #ffd500; --on-brand: #000000; --brand-edge: light-dark(#8b7400, #ffd500); --accent: light-dark(#8b7400, #ffd500); }\n";
        assert_eq!(sheet(Colour::rgb(0xff, 0xd5, 0)), yellow);
    }
}
