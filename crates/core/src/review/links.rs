//! Links that hide or pretend.

use url::{Host, Url};

use super::{Category, Finding};

/// Hosts that lead anywhere.
const SHORTENERS: &[&str] = &[
    "bit.ly",
    "tinyurl.com",
    "t.co",
    "goo.gl",
    "is.gd",
    "v.gd",
    "ow.ly",
    "cutt.ly",
    "rb.gy",
    "buff.ly",
    "rebrand.ly",
    "shorturl.at",
    "tiny.cc",
    "t.ly",
    "s.id",
    "lnkd.in",
    "soo.gd",
    "bl.ink",
    "adf.ly",
    "shorte.st",
    "clck.ru",
    "urlz.fr",
    "tny.im",
];

/// Names that fraud likes to borrow.
const BRANDS: &[&str] = &[
    "paypal",
    "amazon",
    "apple",
    "icloud",
    "microsoft",
    "google",
    "netflix",
    "facebook",
    "instagram",
    "whatsapp",
    "telegram",
    "linkedin",
    "coinbase",
    "binance",
    "metamask",
    "blockchain",
    "wellsfargo",
    "citibank",
    "chase",
    "hsbc",
    "barclays",
    "santander",
    "bbva",
    "caixabank",
    "revolut",
    "westernunion",
    "dhl",
    "fedex",
    "ups",
    "usps",
    "correos",
    "royalmail",
];

/// Characters that stand for letters.
const LOOKALIKES: &[(char, char)] = &[('0', 'o'), ('1', 'l'), ('3', 'e'), ('4', 'a'), ('5', 's'), ('7', 't')];

/// Second levels below which names are registered, such as `co.uk`.
const SECOND_LEVELS: &[&str] = &["co", "com", "org", "net", "gov", "ac", "edu"];

/// Finds the links of a text.
pub(super) fn in_text(text: &str, findings: &mut Vec<Finding>) {
    for word in text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '<' | '>' | '(' | ')')) {
        let word = word.trim_end_matches(['.', ',', ';', '!', '?', ':', '\'', ']', '}']);
        if let Some(category) = link(word).and_then(|url| judge(&url)) {
            findings.push(Finding(category, word.to_owned()));
        }
    }
}

/// Finds links of HTML whose words name another place than they lead to.
pub(super) fn in_html(html: &str, findings: &mut Vec<Finding>) {
    for part in html.split("<a ").skip(1) {
        let Some((attributes, rest)) = part.split_once('>') else { continue };
        let Some(href) = attribute(attributes, "href") else { continue };
        let words = visible_text(rest.split("</a").next().unwrap_or_default());
        let target = link(href);
        if let Some(category) = target.as_ref().and_then(judge) {
            findings.push(Finding(category, href.to_owned()));
        }
        let (Some(target), Some(shown)) = (target.as_ref().and_then(registered), link(words.trim()).as_ref().and_then(registered)) else {
            continue;
        };
        if target != shown {
            findings.push(Finding(Category::Phishing, href.to_owned()));
        }
    }
}

fn attribute<'a>(attributes: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = attributes.split_once(name)?;
    let rest = rest.trim_start().strip_prefix('=')?.trim_start();
    match rest.chars().next()? {
        quote @ ('"' | '\'') => rest[1..].split(quote).next(),
        _ => rest.split_whitespace().next(),
    }
}

/// The words of HTML without its tags.
pub(super) fn visible_text(html: &str) -> String {
    let mut out = String::with_capacity(html.len());
    let mut inside = false;
    for c in html.chars() {
        match c {
            '<' => inside = true,
            '>' if inside => {
                inside = false;
                out.push(' ');
            }
            c if !inside => out.push(c),
            _ => {}
        }
    }
    out
}

/// A word as a link, also one without a scheme.
fn link(word: &str) -> Option<Url> {
    let lower = word.to_lowercase();
    if lower.starts_with("http://") || lower.starts_with("https://") {
        return Url::parse(word).ok();
    }
    let host = lower.split('/').next().unwrap_or_default();
    let domain = host.split_once('.').is_some_and(|(name, rest)| !name.is_empty() && rest.len() >= 2);
    let known = lower.starts_with("www.") || SHORTENERS.contains(&host);
    let looks =
        lower.contains('/') && !host.contains('@') && host.rsplit('.').next().is_some_and(|tld| tld.chars().all(char::is_alphabetic));
    if domain && (known || looks) { Url::parse(&format!("http://{word}")).ok() } else { None }
}

/// What is wrong with a link.
fn judge(url: &Url) -> Option<Category> {
    let host = match url.host()? {
        Host::Domain(host) => host.to_lowercase(),
        Host::Ipv4(_) | Host::Ipv6(_) => return Some(Category::Phishing),
    };
    if !url.username().is_empty() {
        return Some(Category::Phishing);
    }
    // A name of Latin and other letters together is easily taken for another one.
    if host.split('.').any(|label| label.strip_prefix("xn--").is_some_and(|rest| rest.matches('-').count() > 0)) {
        return Some(Category::ShortLink);
    }
    let bare = host.strip_prefix("www.").unwrap_or(&host);
    if SHORTENERS.contains(&bare) {
        return Some(Category::ShortLink);
    }
    borrows(&host).then_some(Category::Phishing)
}

/// Whether a host bears a well-known name, plain or disguised, below a domain that is not that name's own.
fn borrows(host: &str) -> bool {
    let labels: Vec<&str> = host.split('.').collect();
    let own = name_label(&labels);
    let name = labels.get(own).copied().unwrap_or_default();
    let outside = labels.iter().enumerate().filter(|(n, _)| *n < own).flat_map(|(_, label)| label.split('-'));
    let within: Vec<&str> = name.split('-').collect();
    let disguised = |word: &str| BRANDS.iter().any(|brand| word != *brand && plain(word) == *brand);
    // `paypal.com` is the name's own; `paypal-secure.com` and `paypal.com.x.net` are not.
    let joined = within.len() > 1 && within.iter().any(|word| long_brand(word) || disguised(word));
    let below = outside.filter(|word| !word.is_empty()).any(|word| !BRANDS.contains(&name) && (long_brand(word) || disguised(word)));
    joined || disguised(name) || below
}

/// Short names are words of their own and prove nothing.
fn long_brand(word: &str) -> bool {
    word.len() >= 5 && BRANDS.contains(&word)
}

fn plain(word: &str) -> String {
    let swap = |c: char| LOOKALIKES.iter().find(|(from, _)| *from == c).map_or(c, |(_, to)| *to);
    word.to_lowercase().chars().map(swap).collect::<String>().replace("rn", "m").replace("vv", "w")
}

/// Which label is the one that somebody registered.
fn name_label(labels: &[&str]) -> usize {
    let last = labels.len().saturating_sub(1);
    let second = last >= 2 && labels[last].len() == 2 && SECOND_LEVELS.contains(&labels[last - 1]);
    last.saturating_sub(if second { 2 } else { 1 })
}

/// The registered domain of a link.
fn registered(url: &Url) -> Option<String> {
    let Host::Domain(host) = url.host()? else { return None };
    let host = host.to_lowercase();
    let labels: Vec<&str> = host.split('.').collect();
    Some(labels[name_label(&labels)..].join("."))
}
