//! Tracks links of broadcasts: messages link to this node, which redirects to the page.
//!
//! The URL names link and recipient, and is signed, so that nothing is stored for it before it is opened.

use std::collections::HashSet;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use nuncio_domain::{BroadcastContactId, BroadcastId, Error, Result, TenantId, broadcast::Broadcast, id::Id as _};
use nuncio_secrets::mac;
use nuncio_store::{BroadcastClick, BroadcastLink};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

use super::{Broadcasts, content};
use crate::{base::Core, messages::SendMessage};

/// Bytes of a token: environment, link, recipient, signature.
const PARTS: [usize; 4] = [4, 5, 8, 4];
const TOKEN: usize = PARTS[0] + PARTS[1] + PARTS[2] + PARTS[3];

/// Noted clicks, by link and recipient, at which they are stored without waiting for the next second.
const CLICKS: usize = 1_000;

/// Contents of a token.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Target {
    tenant: TenantId,
    link: i64,
    /// Last eight bytes of the recipient's id.
    recipient: i64,
}

/// Returns the tracked links of a broadcast, each once; none if tracking is off.
pub(super) fn of(broadcast: &Broadcast) -> Vec<BroadcastLink> {
    if !broadcast.body.track_links || content::is_template(broadcast) {
        return Vec::new();
    }
    let (mut links, mut known) = (Vec::new(), HashSet::new());
    let mut note = |url: &str| {
        let key = key(broadcast.id, url);
        if known.insert(key) {
            links.push(BroadcastLink { key, url: url.to_owned() });
        }
        None
    };
    rewrite_text(broadcast.body.text.as_deref().unwrap_or_default(), &mut note);
    rewrite_html(broadcast.html.as_deref().unwrap_or_default(), &mut note);
    links
}

/// Returns the 40-bit key of a link; the same on every node.
fn key(broadcast: BroadcastId, url: &str) -> i64 {
    let digest = Sha256::new().chain_update(broadcast.uuid()).chain_update(url).finalize();
    digest[..PARTS[1]].iter().fold(0, |key, byte| key << 8 | i64::from(*byte))
}

/// Returns the last eight bytes of an id, which contain 62 random bits.
pub(super) fn short(contact: BroadcastContactId) -> i64 {
    contact.uuid().as_u128() as i64
}

/// Replaces links with tracked ones in the message to a recipient. Links with a `{{variable}}` are unchanged, since each leads elsewhere.
pub(super) fn put_in(core: &Core, broadcast: &Broadcast, contact: BroadcastContactId, command: &mut SendMessage) {
    if !broadcast.body.track_links || content::is_template(broadcast) {
        return;
    }
    let mut counted = |url: &str| {
        let target = Target { tenant: broadcast.tenant, link: key(broadcast.id, url), recipient: short(contact) };
        target.token(core).map(|token| format!("{}/l/{token}", core.inner.public_url))
    };
    if let Some(text) = &mut command.text {
        *text = rewrite_text(text, &mut counted);
    }
    if let Some(html) = &mut command.html_body {
        *html = rewrite_html(html, &mut counted);
    }
}

impl Target {
    /// Returns the token; `None` if the environment's number exceeds four bytes.
    fn token(self, core: &Core) -> Option<String> {
        let mut bytes = Vec::with_capacity(TOKEN);
        bytes.extend(u32::try_from(self.tenant.0).ok()?.to_be_bytes());
        bytes.extend(&self.link.to_be_bytes()[3..]);
        bytes.extend(self.recipient.to_be_bytes());
        bytes.extend(signature(core, &bytes));
        Some(URL_SAFE_NO_PAD.encode(bytes))
    }

    fn read(core: &Core, token: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(token).ok().filter(|bytes| bytes.len() == TOKEN)?;
        let (named, signed) = bytes.split_at(TOKEN - PARTS[3]);
        if !bool::from(signature(core, named).as_slice().ct_eq(signed)) {
            return None;
        }
        let (tenant, rest) = named.split_first_chunk()?;
        let (link, recipient) = rest.split_first_chunk::<{ PARTS[1] }>()?;
        Some(Self {
            tenant: TenantId(u32::from_be_bytes(*tenant).into()),
            link: link.iter().fold(0, |key, byte| key << 8 | i64::from(*byte)),
            recipient: i64::from_be_bytes(recipient.try_into().ok()?),
        })
    }
}

/// Returns the recipient that the links of test messages name. Its clicks are not counted.
pub(super) fn tester(broadcast: BroadcastId) -> BroadcastContactId {
    BroadcastContactId::from_uuid(broadcast.uuid())
}

fn signature(core: &Core, named: &[u8]) -> [u8; PARTS[3]] {
    let full = mac(core.inner.sealer.derive(b"counted links").expose(), &[named]);
    let mut signature = [0; PARTS[3]];
    signature.copy_from_slice(&full[..PARTS[3]]);
    signature
}

impl Broadcasts<'_> {
    /// Returns the target of a tracked link, and counts a click if `opened`. `404 not_found` if the token is invalid.
    pub async fn follow_link(&self, token: &str, opened: bool) -> Result<String> {
        let unknown = || Error::not_found("link");
        // Forged tokens cause no database query.
        let Target { tenant, link, recipient } = Target::read(self, token).ok_or_else(unknown)?;
        let found = self.inner.store.read().await?.find_broadcast_link(tenant, link).await?;
        let (broadcast, url) = found.ok_or_else(unknown)?;
        if opened && recipient != short(tester(broadcast)) {
            self.note_click(BroadcastClick { tenant, broadcast, link, recipient }).await?;
        }
        Ok(url)
    }

    /// Notes a click in memory: opening one link again and again must not keep the writer busy. Clicks that are not stored yet are lost in a
    /// crash, or if the database fails.
    async fn note_click(&self, click: BroadcastClick) -> nuncio_store::Result<()> {
        let is_many = {
            let mut clicks = self.inner.clicks.lock();
            clicks.entry(click).or_insert((0, self.ids().clock.now())).0 += 1;
            clicks.len() >= CLICKS
        };
        if is_many { self.store_clicks().await } else { Ok(()) }
    }

    /// Stores the noted clicks. The node calls it once a second.
    pub async fn store_clicks(&self) -> nuncio_store::Result<()> {
        let clicks = std::mem::take(&mut *self.inner.clicks.lock());
        if clicks.is_empty() {
            return Ok(());
        }
        let mut tx = self.inner.store.begin().await?;
        for (click, (number, first_at)) in clicks {
            tx.count_broadcast_clicks(click, number, first_at).await?;
        }
        tx.commit().await
    }

    /// Stores the tracked links of a broadcast. Idempotent.
    pub(super) async fn put_links(&self, broadcast: &Broadcast) -> Result<()> {
        let links = of(broadcast);
        if links.is_empty() {
            return Ok(());
        }
        let mut tx = self.inner.store.begin().await?;
        tx.put_broadcast_links(broadcast.tenant, broadcast.id, &links).await?;
        Ok(tx.commit().await?)
    }
}

/// Replaces each link of a text for which `new` returns another one.
fn rewrite_text(text: &str, new: &mut impl FnMut(&str) -> Option<String>) -> String {
    let (mut out, mut rest) = (String::with_capacity(text.len()), text);
    while let Some(start) = find_link(rest) {
        let (before, from) = rest.split_at(start);
        let end = from.find(ends_link).unwrap_or(from.len());
        out.push_str(before);
        if let Some(whole) = with_letters(from, end) {
            out.push_str(whole);
            rest = &from[whole.len()..];
            continue;
        }
        let url = without_tail(&from[..end], before);
        out.push_str(&replaced(url, new));
        rest = &from[url.len().max(1)..];
    }
    out.push_str(rest);
    out
}

/// Returns whether this is a letter of Chinese, Japanese or Korean, which put no space after a link.
const fn is_unspaced(c: char) -> bool {
    matches!(c, '\u{1100}'..='\u{11ff}' | '\u{2e80}'..='\u{2fff}' | '\u{3040}'..='\u{9fff}' | '\u{ac00}'..='\u{d7ff}')
}

/// Returns whether a link ends before this character: white space, a quote, a symbol or emoji, or an unspaced letter.
fn ends_link(c: char) -> bool {
    c.is_whitespace()
        || is_unspaced(c)
        || matches!(c, '"' | '\'' | '<' | '>' | '`' | '|' | '\\' | '^' | '«' | '»' | '\u{60c}' | '\u{61b}' | '\u{61f}')
        || matches!(c, '\u{2010}'..='\u{2bff}' | '\u{3000}'..='\u{303f}')
        || matches!(c, '\u{f900}'..='\u{faff}' | '\u{fe30}'..='\u{fe4f}' | '\u{ff00}'..='\u{ffef}' | '\u{1f000}'..='\u{3ffff}')
}

/// Returns a link of `text` as a whole if letters that would end it at `end` seem to belong to it: `https://例え.jp/x`. It is not counted.
fn with_letters(text: &str, end: usize) -> Option<&str> {
    let (link, rest) = text.split_at(end);
    let more = &rest[..rest.find(|c| ends_link(c) && !is_unspaced(c)).unwrap_or(rest.len())];
    let belongs = link.ends_with(['/', '=', '-', '.']) || more.contains(['/', '.']) || more.contains("{{");
    (rest.starts_with(is_unspaced) && belongs).then(|| &text[..end + more.len()])
}

/// Returns a link without the punctuation after it, without the closing brackets that it does not open, and without the marks of bold or
/// italic text: `_` if it also stands right `before` the link.
fn without_tail<'a>(url: &'a str, before: &str) -> &'a str {
    let unopened = |open: char, close: char| url.matches(close).count().saturating_sub(url.matches(open).count());
    let (mut round, mut square, mut curly) = (unopened('(', ')'), unopened('[', ']'), unopened('{', '}'));
    // Looked for once, not for each mark of the link: a megabyte of marks on both sides of a link would take minutes.
    let is_italic = before.chars().rev().take_while(char::is_ascii_punctuation).any(|mark| mark == '_');
    url.trim_end_matches(|c: char| {
        let left = match c {
            ')' => &mut round,
            ']' => &mut square,
            '}' => &mut curly,
            // Tokens end with it, too.
            '_' => return is_italic,
            c => return matches!(c, '.' | ',' | ';' | ':' | '!' | '?' | '*' | '~'),
        };
        let trimmed = *left > 0;
        *left -= usize::from(trimmed);
        trimmed
    })
}

/// Replaces the targets of `href` attributes in HTML, if they are clicked.
fn rewrite_html(html: &str, new: &mut impl FnMut(&str) -> Option<String>) -> String {
    let (mut out, mut rest, mut clicked) = (String::with_capacity(html.len()), html, false);
    while let Some(start) = find(rest, "href") {
        let (before, from) = rest.split_at(start + "href".len());
        out.push_str(before);
        rest = from;
        if let Some(tag) = before.rfind('<') {
            clicked = is_clicked(&before[tag + 1..]);
        }
        let Some((assigned, value)) = value(from).filter(|_| clicked && begins_name(&before[..start])) else { continue };
        out.push_str(assigned);
        let url = target(value);
        match Some(&url).filter(|url| find_link(url) == Some(0)).map(|url| replaced(url, new)).filter(|made| *made != url) {
            Some(made) => out.push_str(&made),
            None => out.push_str(value),
        }
        rest = &from[assigned.len() + value.len()..];
    }
    out.push_str(rest);
    out
}

/// Returns whether the name of an attribute begins after this: not that of another, such as `data-href`.
fn begins_name(before: &str) -> bool {
    before.ends_with(|c: char| c.is_ascii_whitespace() || matches!(c, '/' | '"' | '\''))
}

/// Splits what follows the name of an attribute into the equals sign with an opening quote, and the value: up to the closing quote or, without
/// quotes, to the next whitespace or the end of the tag. `None` if there is no value.
fn value(text: &str) -> Option<(&str, &str)> {
    let unspaced = text.trim_ascii_start().strip_prefix('=')?.trim_ascii_start();
    let quote = unspaced.chars().next().filter(|c| matches!(c, '"' | '\''));
    let (assigned, rest) = text.split_at(text.len() - unspaced.len() + usize::from(quote.is_some()));
    let end = match quote {
        Some(quote) => rest.find(quote)?,
        None => rest.find(|c: char| c.is_ascii_whitespace() || c == '>')?,
    };
    Some((assigned, &rest[..end]))
}

/// Returns the link that a browser opens for the value of an attribute: with the characters that `&amp;` and numbers stand for, and without
/// spaces around it, line breaks and tabs.
fn target(value: &str) -> String {
    let value = value.trim_ascii().replace(['\t', '\n', '\r'], "");
    let mut parts = value.split('&');
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let (c, rest) = reference(part).unwrap_or(('&', part));
        out.push(c);
        out.push_str(rest);
    }
    out
}

/// Returns the character of the reference at the start of `text`, after its `&`, and what follows it. Other names than `amp` hardly occur
/// in links, where browsers often read them as parameters.
fn reference(text: &str) -> Option<(char, &str)> {
    let (name, rest) = text.split_once(';')?;
    let code = match name.strip_prefix('#') {
        None => return (name == "amp").then_some(('&', rest)),
        Some(number) => match number.strip_prefix(['x', 'X']) {
            Some(digits) => u32::from_str_radix(digits, 16).ok()?,
            None => number.parse().ok()?,
        },
    };
    Some((char::from_u32(code)?, rest))
}

/// Returns whether the target of a tag, given from its name on, is clicked: not that of `<link>` or `<base>`, but of Outlook's buttons.
fn is_clicked(tag: &str) -> bool {
    let name = tag.split(|c: char| c.is_ascii_whitespace() || c == '/').next().unwrap_or_default();
    ["a", "area", "v:rect", "v:roundrect"].iter().any(|clicked| name.eq_ignore_ascii_case(clicked))
}

fn replaced(url: &str, new: &mut impl FnMut(&str) -> Option<String>) -> String {
    let host = url.split_once("://").map_or("", |(_, rest)| rest);
    // No redirect can lead to a link with control characters.
    let counts = !url.contains("{{") && !url.contains(char::is_control) && host.starts_with(|c: char| c.is_alphanumeric());
    counts.then(|| new(url)).flatten().unwrap_or_else(|| url.to_owned())
}

/// Returns the position of the first link.
fn find_link(text: &str) -> Option<usize> {
    let begins = |at: usize, scheme: &str| {
        text.as_bytes()[at..].get(..scheme.len()).is_some_and(|part| part.eq_ignore_ascii_case(scheme.as_bytes()))
    };
    (0..text.len()).find(|at| begins(*at, "http://") || begins(*at, "https://"))
}

fn find(text: &str, ascii: &str) -> Option<usize> {
    text.as_bytes().windows(ascii.len()).position(|part| part.eq_ignore_ascii_case(ascii.as_bytes()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn noted(url: &str, seen: &mut Vec<String>) -> Option<String> {
        seen.push(url.to_owned());
        Some("L".to_owned())
    }

    #[test]
    fn links_of_texts_are_found() {
        let text = |text: &str, urls: &[&str], out: &str| {
            let mut seen = Vec::new();
            assert_eq!(rewrite_text(text, &mut |url| noted(url, &mut seen)), out);
            assert_eq!(seen, urls);
        };
        text("See https://a.example/x?y=1&z=2.", &["https://a.example/x?y=1&z=2"], "See L.");
        text("(https://a.example), HTTP://b.example!", &["https://a.example", "HTTP://b.example"], "(L), L!");
        text("https://a.example/w_(x)", &["https://a.example/w_(x)"], "L");
        text("https://a.example/{{name}} stays", &[], "https://a.example/{{name}} stays");
        text("https:// and é https://ü.example/ñ", &["https://ü.example/ñ"], "https:// and é L");
        text("no link", &[], "no link");
        text(
            "«https://a.example/x» “https://b.example/y” ‘https://c.example’…",
            &["https://a.example/x", "https://b.example/y", "https://c.example"],
            "«L» “L” ‘L’…",
        );
        text("*https://a.example/x* _(https://b.example/w_(x))_", &["https://a.example/x", "https://b.example/w_(x)"], "*L* _(L)_");
        text("[https://a.example/x[1]]. {https://b.example}~", &["https://a.example/x[1]", "https://b.example"], "[L]. {L}~");
        text("详情https://a.example/x请点击，https://b.example/y。", &["https://a.example/x", "https://b.example/y"], "详情L请点击，L。");
        text("https://youtu.be/dQw4w9WgXc_ now", &["https://youtu.be/dQw4w9WgXc_"], "L now");
        text("https://ja.wikipedia.org/wiki/東京 https://www.例え.jp/x", &[], "https://ja.wikipedia.org/wiki/東京 https://www.例え.jp/x");
        text("여기https://a.example/x에서 https://b.example/y🎉", &["https://a.example/x", "https://b.example/y"], "여기L에서 L🎉");
        text("(https://a.example/{{name}})", &[], "(https://a.example/{{name}})");
        text("hhttps:/http://a.example http", &["http://a.example"], "hhttps:/L http");
    }

    /// Not in a time that grows with the square of their number: minutes for these.
    #[test]
    fn marks_around_a_link_are_read_in_time() {
        let begun = std::time::Instant::now();
        let text = format!("_{}https://a.example/x{}", "!".repeat(400_000), "_".repeat(400_000));
        let mut seen = Vec::new();
        rewrite_text(&text, &mut |url| noted(url, &mut seen));
        assert_eq!(seen, ["https://a.example/x"]);
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }

    #[test]
    fn links_of_html_are_found() {
        let html = |html: &str, urls: &[&str], out: &str| {
            let mut seen = Vec::new();
            assert_eq!(rewrite_html(html, &mut |url| noted(url, &mut seen)), out);
            assert_eq!(seen, urls);
        };
        html(
            r#"<a HREF="https://a.example/?x=1&amp;y=2">é</a><img src="https://b.example/i.png">"#,
            &["https://a.example/?x=1&y=2"],
            r#"<a HREF="L">é</a><img src="https://b.example/i.png">"#,
        );
        html("<a href='mailto:x@y.example'>x</a>", &[], "<a href='mailto:x@y.example'>x</a>");
        html(
            "<a href=https://a.example>x <a href=https://b.example/ id=y>",
            &["https://a.example", "https://b.example/"],
            "<a href=L>x <a href=L id=y>",
        );
        html(
            "<a id='x'href = \"https://a.example\"><a href=\n' https://b.example '>",
            &["https://a.example", "https://b.example"],
            "<a id='x'href = \"L\"><a href=\n'L'>",
        );
        let kept = r#"<a data-href="https://a.example" data-x href><a hreflang="https://b.example" href="">"#;
        html(kept, &[], kept);
        html(
            "<a href='https://a.example/?x=1&#38;y=2&#x26;z=3&lt=4&#;'>x</a><a href='https://b.example/\r\n\tx'>y</a>",
            &["https://a.example/?x=1&y=2&z=3&lt=4&#;", "https://b.example/x"],
            "<a href='L'>x</a><a href='L'>y</a>",
        );
        html("<a href='https://a.example/&#1;'>x</a>", &[], "<a href='https://a.example/&#1;'>x</a>");
        html(r#"<a href="https://a.example"#, &[], r#"<a href="https://a.example"#);
        let kept = r#"<base href="https://a.example/"><link rel="stylesheet" href="https://a.example/s.css">"#;
        html(kept, &[], kept);
        html(
            r#"<AREA alt="5 > 3" href="https://a.example"><v:roundrect href="https://b.example"></a> href="https://c.example""#,
            &["https://a.example", "https://b.example"],
            r#"<AREA alt="5 > 3" href="L"><v:roundrect href="L"></a> href="https://c.example""#,
        );
    }
}
