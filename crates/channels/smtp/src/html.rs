//! Converts HTML to plain text, for readers that show no HTML. Best effort, in one pass, for any input.

use mail_parser::decoders::html::add_html_token;

/// Text of `html`: tags gone, the usual character references decoded, a line per block, link targets in brackets.
pub(crate) fn to_text(html: &str) -> String {
    let mut text = Text::default();
    let mut rest = html;
    while let Some(start) = rest.find('<') {
        text.push(&rest[..start]);
        rest = &rest[start..];
        if let Some(comment) = rest.strip_prefix("<!--") {
            rest = comment.split_once("-->").map_or("", |(_, after)| after);
            continue;
        }
        if !rest[1..].starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '/' | '!' | '?')) {
            text.push("<");
            rest = &rest[1..];
            continue;
        }
        let Some(end) = tag_end(rest) else {
            rest = ""; // an unfinished tag swallows the rest, as in browsers
            break;
        };
        let tag = &rest[1..end];
        rest = &rest[end + 1..];
        let name = tag_name(tag);
        if matches!(name.as_str(), "script" | "style" | "title" | "template") {
            rest = after_closing(rest, &name);
        }
        text.tag(&name, tag);
    }
    text.push(rest);
    text.out.trim_end().to_owned()
}

/// `text` with the characters that mean something in HTML escaped, for element content and quoted attributes.
pub(crate) fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[derive(Default)]
struct Text {
    out: String,
    /// Line ends owed before the next word.
    breaks: usize,
    /// Whether a space is owed before the next word.
    space: bool,
    /// Target of the open link, and where its text starts in `out`.
    link: Option<(String, usize)>,
}

impl Text {
    /// Adds text with its white space collapsed.
    fn push(&mut self, raw: &str) {
        let decoded = decode(raw);
        for (index, word) in decoded.split(|c: char| c.is_ascii_whitespace()).enumerate() {
            self.space |= index > 0;
            self.word(word);
        }
    }

    fn word(&mut self, word: &str) {
        if word.is_empty() {
            return;
        }
        if self.out.is_empty() {
            // nothing to part it from
        } else if self.breaks > 0 {
            self.out.extend(std::iter::repeat_n('\n', self.breaks.min(2)));
        } else if self.space {
            self.out.push(' ');
        }
        (self.breaks, self.space) = (0, false);
        self.out.push_str(word);
    }

    fn tag(&mut self, name: &str, tag: &str) {
        match name {
            "br" => self.breaks += 1,
            "p" | "/p" | "h1" | "h2" | "h3" | "h4" | "h5" | "h6" | "/h1" | "/h2" | "/h3" | "/h4" | "/h5" | "/h6" | "table" | "/table"
            | "ul" | "/ul" | "ol" | "/ol" | "blockquote" | "/blockquote" | "hr" => self.breaks = 2,
            "div" | "/div" | "tr" | "/tr" | "section" | "/section" | "pre" | "/pre" | "/li" => self.breaks = self.breaks.max(1),
            "li" => {
                self.breaks = self.breaks.max(1);
                self.word("-");
                self.space = true;
            }
            "td" | "/td" | "th" | "/th" => self.space = true,
            "img" => self.push(&attribute(tag, "alt").unwrap_or_default()),
            "a" => self.link = attribute(tag, "href").map(|target| (target, self.out.len())),
            "/a" => self.end_link(),
            _ => {}
        }
    }

    fn end_link(&mut self) {
        let Some((target, start)) = self.link.take() else { return };
        let target = decode(&target);
        let shown = self.out.get(start..).unwrap_or_default().trim();
        let bare = target.strip_prefix("mailto:").unwrap_or(&target);
        if ["http:", "https:", "mailto:", "tel:"].iter().any(|scheme| target.starts_with(scheme))
            && shown != bare
            && !target.contains(char::is_whitespace)
        {
            self.space = true;
            self.word(&format!("({bare})"));
        }
    }
}

/// Returns the position of the `>` of the tag at the start of `text`, skipping quoted attribute values.
fn tag_end(text: &str) -> Option<usize> {
    let mut quote = None;
    let mut last = b' ';
    for (index, byte) in text.bytes().enumerate() {
        match (quote, byte) {
            (None, b'>') => return Some(index),
            (None, b'"' | b'\'') if last == b'=' => quote = Some(byte),
            (Some(open), _) if open == byte => quote = None,
            _ => {}
        }
        if !byte.is_ascii_whitespace() {
            last = byte;
        }
    }
    None
}

/// Returns the name of a tag in lower case, with the `/` of one that ends.
pub(crate) fn tag_name(tag: &str) -> String {
    let end = tag
        .char_indices()
        .find(|(index, c)| !(c.is_ascii_alphanumeric() || (*index == 0 && *c == '/')))
        .map_or(tag.len(), |(index, _)| index);
    tag[..end].to_ascii_lowercase()
}

fn after_closing<'a>(text: &'a str, name: &str) -> &'a str {
    let closing = format!("</{name}");
    let found = text.as_bytes().windows(closing.len()).position(|w| w.eq_ignore_ascii_case(closing.as_bytes()));
    found.map_or("", |start| &text[start..])
}

fn attribute(tag: &str, name: &str) -> Option<String> {
    let mut rest = tag;
    while let Some(equals) = rest.find('=') {
        let found = rest[..equals].trim_end().rsplit(|c: char| c.is_ascii_whitespace() || c == '/').next()?.eq_ignore_ascii_case(name);
        rest = rest[equals + 1..].trim_start();
        let (value, after) = match rest.chars().next() {
            Some(quote @ ('"' | '\'')) => rest[1..].split_once(quote).unwrap_or((&rest[1..], "")),
            _ => rest.split_once(|c: char| c.is_ascii_whitespace()).unwrap_or((rest, "")),
        };
        if found {
            return Some(value.to_owned());
        }
        rest = after;
    }
    None
}

fn decode(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find('&') {
        out.push_str(&rest[..start]);
        rest = &rest[start + 1..];
        let end = rest.bytes().take(10).position(|b| b == b';');
        match end.and_then(|end| Some((reference(&rest[..end])?, end))) {
            Some((character, end)) => {
                out.push(character);
                rest = &rest[end + 1..];
            }
            None => out.push('&'),
        }
    }
    out.push_str(rest);
    out
}

fn reference(name: &str) -> Option<char> {
    if let Some(number) = name.strip_prefix('#') {
        let code = number.strip_prefix(['x', 'X']).map_or_else(|| number.parse().ok(), |hex| u32::from_str_radix(hex, 16).ok())?;
        return char::from_u32(code).filter(|c| !c.is_control() || c.is_ascii_whitespace());
    }
    let token = format!("&{name};");
    let mut decoded = String::new();
    add_html_token(&mut decoded, token.as_bytes(), false);
    decoded.chars().next().filter(|_| decoded != token)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_readers_see() {
        for (html, text) in [
            ("<p>Hello <b>Ada</b>,</p><p>your code is&nbsp;<code>1&lt;2</code>.</p>", "Hello Ada,\n\nyour code is\u{a0}1<2."),
            ("<html><head><title>T</title><style>p { a > b }</style></head><body>x<br>y<BR/>z</body></html>", "x\ny\nz"),
            ("<script>if (a < b) alert('</p>')</SCRIPT>after", "after"),
            (
                "<a href=\"https://example.org/?a=1&amp;b=2\">here</a> or <a href='https://example.org'>https://example.org</a>",
                "here (https://example.org/?a=1&b=2) or https://example.org",
            ),
            ("<a href=mailto:a@example.org>write</a>", "write (a@example.org)"),
            ("<a href='javascript:alert(1)'>x</a>", "x"),
            ("<ul><li>one<li>two</ul>three", "- one\n- two\n\nthree"),
            ("<table><tr><td>a</td><td>b</td></tr><tr><td>c</td></tr></table>", "a b\nc"),
            ("<!-- <p>no</p> -->a<!-- never closed", "a"),
            ("1 < 2 & 3 &amp; &unknown; &#233;&#xe9;&#0;", "1 < 2 & 3 & &unknown; éé&#0;"),
            ("a&zwnj;b&shy;c &apos;&eacute;&rarr;&; &é;", "a\u{200c}b\u{ad}c 'é→&; &é;"),
            ("<img src=x alt=\"a > b\"> end", "a > b end"),
            ("a<p title='unfinished", "a"),
            ("", ""),
            ("<", "<"),
            ("  \n ", ""),
        ] {
            assert_eq!(to_text(html), text, "{html}");
        }
    }

    #[test]
    fn escaping_survives_the_way_back() {
        assert_eq!(to_text(&escape("a <b> & \"c\"")), "a <b> & \"c\"");
    }
}
