//! Reads HTML as mail programs and browsers do: its text, and its links.

/// Tags that part no words: readers see `pass<b>word</b>` as one.
const INLINE: &[&str] = &["b", "big", "code", "em", "font", "i", "mark", "s", "small", "span", "strong", "sub", "sup", "u", "wbr"];
/// Tags whose content has no tags.
const RAW: &[&str] = &["iframe", "noembed", "noframes", "script", "style", "textarea", "title", "xmp"];
/// Character references by name, those with a semicolon only where browsers require it. `ACCENTS` has those of letters.
const NAMED: &[(&str, char)] = &[
    ("amp", '&'),
    ("apos;", '\''),
    ("colon;", ':'),
    ("commat;", '@'),
    ("dollar;", '$'),
    ("euro;", '€'),
    ("excl;", '!'),
    ("gt", '>'),
    ("iexcl", '¡'),
    ("iquest", '¿'),
    ("lt", '<'),
    ("nbsp", ' '),
    ("percnt;", '%'),
    ("period;", '.'),
    ("pound", '£'),
    ("quot", '"'),
    ("rsquo;", '\''),
    ("sol;", '/'),
    ("szlig", 'ß'),
];
/// Accents of character references, the letters that take them, and the results.
const ACCENTS: &[(&str, &str, &str)] = &[
    ("acute", "aeiouAEIOU", "áéíóúÁÉÍÓÚ"),
    ("grave", "aeiouAEIOU", "àèìòùÀÈÌÒÙ"),
    ("circ", "aeiouAEIOU", "âêîôûÂÊÎÔÛ"),
    ("uml", "aeiouAEIOU", "äëïöüÄËÏÖÜ"),
    ("tilde", "anoANO", "ãñõÃÑÕ"),
    ("cedil", "cC", "çÇ"),
];

/// HTML as readers see it.
#[derive(Debug, Default)]
pub(super) struct Page {
    /// The text without tags.
    pub(super) text: String,
    /// The target of each link, and the words to click.
    pub(super) links: Vec<(String, String)>,
    /// The link that is not closed yet.
    open: Option<usize>,
}

impl Page {
    pub(super) fn of(html: &str) -> Self {
        let (mut page, mut rest) = (Self::default(), html);
        while let Some(start) = rest.find('<') {
            page.push(&rest[..start]);
            rest = page.markup(&rest[start..]);
        }
        page.push(rest);
        page
    }

    fn push(&mut self, text: &str) {
        let text = decode(text);
        if let Some(open) = self.open
            && let Some((_, words)) = self.links.get_mut(open)
        {
            words.push_str(&text);
        }
        self.text.push_str(&text);
    }

    /// Reads the tag or comment that begins with the `<` at the start of `html`; returns what follows it.
    fn markup<'a>(&mut self, html: &'a str) -> &'a str {
        // Some mail programs show what is in conditional comments.
        if html.starts_with("<!--") && !html.starts_with("<!--[") {
            let comment = &html[2..];
            let ends = |at: usize| comment[..at].ends_with("--") || comment[..at].ends_with("--!");
            let end = comment.match_indices('>').find(|(at, _)| ends(*at));
            return end.map_or("", |(at, _)| &comment[at + 1..]);
        }
        // These are comments, too, up to the first `>` (HTML standard, "bogus comment state").
        let closes = html.strip_prefix("</").is_some_and(|rest| !rest.starts_with(|c: char| c.is_ascii_alphabetic()));
        if closes || html.starts_with("<!") || html.starts_with("<?") {
            return html.split_once('>').map_or("", |(_, after)| after);
        }
        if !html[1..].starts_with(|c: char| c.is_ascii_alphabetic() || c == '/') {
            self.push("<");
            return &html[1..];
        }
        let Tag { name, target, alt, after } = tag(html);
        if matches!(name.as_str(), "a" | "/a") {
            self.open = None;
        }
        if !INLINE.contains(&name.trim_start_matches('/')) {
            self.push(" ");
        }
        // Mail programs show this until their user asks for images.
        if let Some(alt) = alt.filter(|_| name == "img") {
            self.push(alt);
            self.push(" ");
        }
        if let Some(target) = target {
            if name == "a" {
                self.open = Some(self.links.len());
            }
            self.links.push((target, String::new()));
        }
        if !RAW.contains(&name.as_str()) {
            return after;
        }
        let (content, after) = after.split_at(closing(after, &name));
        if !matches!(name.as_str(), "script" | "style") {
            self.push(content);
        }
        after
    }
}

/// Splits a text at the first character from `from` on that ends the part.
fn until(text: &str, from: usize, ends: impl Fn(char) -> bool) -> (&str, &str) {
    text.split_at(text[from..].find(ends).map_or(text.len(), |at| from + at))
}

struct Tag<'a> {
    /// In lower case, with the slash of a closing tag.
    name: String,
    /// The target of its link.
    target: Option<String>,
    /// Its `alt`, with character references.
    alt: Option<&'a str>,
    /// What follows it.
    after: &'a str,
}

/// Reads the tag at the start of `html`.
fn tag(html: &str) -> Tag<'_> {
    let slash = usize::from(html.starts_with("</"));
    let (name, mut rest) = until(html, 1 + slash, |c| c.is_ascii_whitespace() || matches!(c, '/' | '>'));
    let (mut target, mut alt) = (None, None);
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_ascii_whitespace() || c == '/');
        if rest.is_empty() || rest.starts_with('>') {
            return Tag { name: name[1..].to_ascii_lowercase(), target, alt, after: rest.get(1..).unwrap_or_default() };
        }
        let (found, value, after) = attribute(rest);
        if target.is_none() && found.eq_ignore_ascii_case("href") {
            // Browsers ignore these characters in links.
            target = Some(decode(value).replace(['\t', '\n', '\r'], "").trim().to_owned());
        }
        if alt.is_none() && found.eq_ignore_ascii_case("alt") {
            alt = Some(value);
        }
        rest = after;
    }
}

/// Splits off the attribute at the start of `text`: its name and its value.
fn attribute(text: &str) -> (&str, &str, &str) {
    let first = text.chars().next().map_or(0, char::len_utf8);
    let (name, after) = until(text, first, |c| c.is_ascii_whitespace() || matches!(c, '/' | '>' | '='));
    let Some(value) = after.trim_ascii_start().strip_prefix('=') else { return (name, "", after) };
    let value = value.trim_ascii_start();
    let (value, after) = match value.chars().next() {
        Some(quote @ ('"' | '\'')) => value[1..].split_once(quote).unwrap_or((&value[1..], "")),
        _ => until(value, 0, |c| c.is_ascii_whitespace() || c == '>'),
    };
    (name, value, after)
}

/// Returns where the tag `name` is closed.
fn closing(html: &str, name: &str) -> usize {
    let tag = format!("</{name}");
    html.as_bytes().windows(tag.len()).position(|part| part.eq_ignore_ascii_case(tag.as_bytes())).unwrap_or(html.len())
}

/// Replaces character references, also those without the semicolon.
fn decode(text: &str) -> String {
    let mut parts = text.split('&');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        match reference(part) {
            Some((c, rest)) => {
                out.push(c);
                out.push_str(rest.strip_prefix(';').unwrap_or(rest));
            }
            None => {
                out.push('&');
                out.push_str(part);
            }
        }
    }
    out
}

/// Returns the character of the reference at the start of `text`, and what follows it.
fn reference(text: &str) -> Option<(char, &str)> {
    if let Some(number) = text.strip_prefix('#') {
        let (radix, digits) = number.strip_prefix(['x', 'X']).map_or((10, number), |digits| (16, digits));
        let (digits, rest) = until(digits, 0, |c| !c.is_digit(radix));
        return Some((char::from_u32(u32::from_str_radix(digits, radix).ok()?)?, rest));
    }
    let named = NAMED.iter().find_map(|(name, c)| Some((*c, text.strip_prefix(*name)?)));
    named.or_else(|| {
        let letter = text.chars().next()?;
        ACCENTS.iter().find_map(|(accent, plain, accented)| {
            let rest = text.strip_prefix(letter)?.strip_prefix(*accent)?;
            Some((accented.chars().nth(plain.find(letter)?)?, rest))
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_what_readers_see() {
        for (html, text) in [
            ("Send your p&#97;ssword, p&#x61ssword or pass<b class='x>y'></b>word", "Send your password, password or password"),
            ("contrase&ntilde;a &amp; &quot;cl&aacutev&#0101;&QUOT &#; &unknown; 1 < 2", "contraseña & \"cláve&QUOT &#; &unknown; 1 < 2"),
            ("pass<!-- <b>no</b> -->word<!--> and <!--[if mso]>more<![endif]-->", "password and more"),
            ("a<!x y=\">b<?x y='>c</ y='>d<!-- --!>e<!--[x y=\"-->f", "abcdef"),
            ("<style>p > a { }</style>x<SCRIPT>'<a href=\"/\">'</SCRIPT>y<title><style></title>z", "  x  y <style> z"),
            ("a<br/>b</p>é<", "a b é<"),
            ("a<!--->b<!---->c<!--x--->d<!--!>e<!-- > -- > -->f<!--é", "abcdef"),
            ("a<p title='unfinished", "a "),
            ("a<img src=x ALT='Win a p&#114;ize'>b<p alt=no>c<img alt>", "a Win a prize b c  "),
            ("", ""),
        ] {
            assert_eq!(Page::of(html).text, text, "{html}");
        }
    }

    /// Not in a time that grows with the square of their number: a minute for these.
    #[test]
    fn many_comments_are_read_in_time() {
        let begun = std::time::Instant::now();
        assert_eq!(Page::of(&"<!--a--!>".repeat(400_000)).text, "");
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }

    #[test]
    fn links_are_found_however_they_are_written() {
        for html in [
            r#"<a href="https://a.example/?x=1&amp;y=2">Our <b>page</b></a>"#,
            "<A\nCLASS=x HREF = ' https://a.ex&#97;mple/?x=1&y=2\n'>Our page</A >",
            r#"<a data-href="https://b.example" title="href='/'" href=https://a.example/?x=1&y=2 href="/">Our page</a>"#,
            r#"<a/href="https://a.example/?x=1&y=2"x>Our page<a name=x>no link</a>"#,
        ] {
            assert_eq!(Page::of(html).links, [("https://a.example/?x=1&y=2".to_owned(), "Our page".to_owned())], "{html}");
        }
        let links = Page::of(r#"<a href="https://a.example"><area href="https://b.example">words</a>"#).links;
        assert_eq!((links[0].1.trim(), links[1].0.as_str()), ("words", "https://b.example"));
    }
}
