//! Links that hide or pretend.

use url::{Host, Url};

use super::finding::{Category, Finding};

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
    "evri",
    "seur",
    "chronopost",
    "laposte",
    "disney",
    "spotify",
    "hmrc",
    "irs",
    "dgt",
    "aeat",
    "ezpass",
    "fastrak",
    "caixa",
    "sabadell",
    "intesa",
    "unicredit",
    "sparkasse",
    "ledger",
    "trezor",
];

/// What fraud adds to a borrowed name.
const BAIT: &[&str] = &[
    "secure",
    "security",
    "verify",
    "verification",
    "login",
    "signin",
    "unlock",
    "update",
    "confirm",
    "fee",
    "fees",
    "refund",
    "rebate",
    "rebates",
    "support",
    "help",
    "alert",
    "stop",
    "payee",
    "claim",
    "billing",
    "pay",
    "payment",
    "redir",
    "redelivery",
    "rebooking",
    "track",
    "tracking",
    "parcel",
    "customs",
    "account",
    "id",
    "bloqueo",
    "activa",
    "seguridad",
    "verificar",
    "acceso",
    "portes",
    "multas",
    "devolucion",
    "reembolso",
    "pago",
    "frais",
    "blocco",
    "toll",
    "bill",
    "safe",
    "info",
    "online",
    "reward",
    "bonus",
    "es",
    "uk",
    "us",
];

/// Top-level domains that cost next to nothing and are named in fraud out of proportion.
const CHEAP: &[&str] = &[
    "top", "xyz", "click", "icu", "cyou", "buzz", "rest", "cfd", "sbs", "monster", "quest", "gq", "tk", "ml", "cf", "ga", "bond", "vip",
    "loan", "win", "bid", "zip", "mov", "ru", "pw", "site", "online", "bet",
];

/// Further ones that make a link of a name without a scheme and a path.
const BARE: &[&str] =
    &["com", "net", "org", "info", "biz", "app", "live", "io", "co", "es", "fr", "de", "it", "pt", "br", "mx", "uk", "eu", "example"];
/// The most bytes of the name that a text begins with.
const OPENING: usize = 40;

/// Characters that stand for letters.
const LOOKALIKES: &[(char, char)] = &[('0', 'o'), ('1', 'l'), ('3', 'e'), ('4', 'a'), ('5', 's'), ('7', 't')];

/// Letters of other alphabets that look like Latin ones.
const FOREIGN: &[(char, char)] = &[
    ('а', 'a'),
    ('е', 'e'),
    ('о', 'o'),
    ('р', 'p'),
    ('с', 'c'),
    ('у', 'y'),
    ('х', 'x'),
    ('і', 'i'),
    ('ѕ', 's'),
    ('ԁ', 'd'),
    ('һ', 'h'),
    ('ӏ', 'l'),
    ('ο', 'o'),
    ('α', 'a'),
];

/// Judges links. Those to the domains of a project, and below them, are its own affair.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links<'a> {
    pub(super) allowed: &'a [String],
}

impl Links<'_> {
    /// Finds the links of a text.
    pub(super) fn in_text(self, text: &str, findings: &mut Vec<Finding>) {
        for word in pieces(text) {
            let Some(url) = link(word).filter(|url| !self.allows(url)) else { continue };
            if let Some(category) = judge(&url) {
                findings.push(Finding(category, word.to_owned()));
            } else if speaks_for_another(text, &url) || joins_its_name(text, &url) {
                findings.push(Finding(Category::Lure, word.to_owned()));
            }
        }
    }

    /// Finds links of HTML whose words name another place than they lead to.
    pub(super) fn in_html(self, html: &str, findings: &mut Vec<Finding>) {
        for part in html.split("<a ").skip(1) {
            let Some((attributes, rest)) = part.split_once('>') else { continue };
            let Some(href) = attribute(attributes, "href") else { continue };
            let Some(target) = link(href).filter(|url| !self.allows(url)) else { continue };
            if let Some(category) = judge(&target) {
                findings.push(Finding(category, href.to_owned()));
            }
            let words = visible_text(rest.split("</a").next().unwrap_or_default());
            let shown = link(words.trim()).as_ref().and_then(registered);
            if shown.is_some_and(|shown| registered(&target).is_some_and(|target| target != shown)) {
                findings.push(Finding(Category::Phishing, href.to_owned()));
            }
        }
    }

    /// Whether a text says who speaks: it links to a domain of the project, or names the domain that it links to, as a business does
    /// ("Acme: ... https://pay.acme.example").
    pub(super) fn identify(self, text: &str) -> bool {
        let (mut prose, mut domains) = (String::new(), Vec::new());
        for word in pieces(text) {
            match link(word) {
                Some(url) if self.allows(&url) => return true,
                Some(url) => domains.push(url),
                None => prose.push_str(&letters(word)),
            }
        }
        domains.retain(|url| url.host_str().is_some_and(|host| !borrows(host) && !is_cheap(host)));
        domains.iter().filter_map(own_label).any(|label| label.len() >= 4 && prose.contains(&letters(&label)))
    }

    fn allows(self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        self.allowed.iter().any(|domain| host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
    }
}

/// Whether a text holds a link.
pub(super) fn any(text: &str) -> bool {
    pieces(text).any(|word| link(word).is_some())
}

/// The letters and digits of a text, small.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Whether a text begins with a well-known name and links elsewhere: "DHL: ... https://fees.example".
fn speaks_for_another(text: &str, url: &Url) -> bool {
    let Some((opening, _)) = text.split_once(':') else { return false };
    let name = letters(opening);
    let label = own_label(url).unwrap_or_default();
    let host = url.host_str().unwrap_or_default();
    // Offices write below the domains of their states.
    if host.rsplit('.').take(2).any(|label| matches!(label, "gov" | "gob" | "gouv")) {
        return false;
    }
    BRANDS.contains(&name.as_str()) && !label.contains(&name) && !label.starts_with("amzn")
}

/// Whether a text begins with a name and links to a domain that joins it with other words: "Acme: ... https://acme-refund.example". A
/// business has its name as a domain; fraud has to take what is left.
fn joins_its_name(text: &str, url: &Url) -> bool {
    let Some((opening, _)) = text.split_once(':').filter(|(opening, _)| opening.len() <= OPENING) else { return false };
    let (label, host) = (own_label(url).unwrap_or_default(), url.host_str().unwrap_or_default());
    if !label.contains('-') || letters(&label) == letters(opening) {
        return false;
    }
    let names = opening.split_whitespace().map(letters).filter(|name| name.len() >= 4);
    names.into_iter().any(|name| label.split('-').chain(host.split('.')).any(|part| part == name))
}

/// The words of a text without the marks around them.
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '<' | '>' | '(' | ')'))
        .map(|word| word.trim_end_matches(['.', ',', ';', '!', '?', ':', '\'', ']', '}']))
}

fn is_cheap(host: &str) -> bool {
    host.rsplit('.').next().is_some_and(|tld| CHEAP.contains(&tld))
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
    let tld = host.rsplit('.').next().unwrap_or_default();
    // Phones make a link of a name alone. One with a capital behind the dot is the next sentence.
    let bare = (BARE.contains(&tld) || is_cheap(host)) && word.ends_with(tld);
    let looks = !host.contains('@') && (bare || lower.contains('/') && tld.chars().all(char::is_alphabetic));
    if domain && (known || looks) { Url::parse(&format!("http://{word}")).ok() } else { None }
}

/// What is wrong with a link.
fn judge(url: &Url) -> Option<Category> {
    let host = match url.host()? {
        Host::Domain(host) => host.to_lowercase(),
        Host::Ipv4(_) | Host::Ipv6(_) => return Some(Category::Phishing),
    };
    // An app from outside the stores.
    if url.path().to_ascii_lowercase().ends_with(".apk") {
        return Some(Category::Phishing);
    }
    if !url.username().is_empty() {
        return Some(Category::Phishing);
    }
    if host.split('.').filter(|label| label.starts_with("xn--")).any(mixes_scripts) {
        return Some(Category::Phishing);
    }
    let bare = host.strip_prefix("www.").unwrap_or(&host);
    if SHORTENERS.contains(&bare) {
        return Some(Category::ShortLink);
    }
    if borrows(&host) {
        return Some(Category::Phishing);
    }
    is_cheap(&host).then_some(Category::CheapLink)
}

/// Whether a name in Punycode puts letters of other alphabets beside Latin ones, or looks like a well-known name.
fn mixes_scripts(label: &str) -> bool {
    let (decoded, _) = idna::domain_to_unicode(label);
    let other = decoded.chars().any(|c| c.is_alphabetic() && c as u32 >= 0x370);
    let latin = decoded.chars().any(|c| c.is_ascii_alphabetic());
    let swapped: String = decoded.chars().map(|c| FOREIGN.iter().find(|(from, _)| *from == c).map_or(c, |(_, to)| *to)).collect();
    other && (latin || BRANDS.contains(&swapped.as_str()))
}

/// Whether a host has a well-known name, plain or disguised, below a domain that is not that name's own.
fn borrows(host: &str) -> bool {
    let labels: Vec<&str> = host.split('.').collect();
    let own = name_label(host, labels.len());
    let name = labels.get(own).copied().unwrap_or_default();
    let outside = labels.iter().enumerate().filter(|(n, _)| *n < own).flat_map(|(_, label)| label.split('-'));
    let within: Vec<&str> = name.split('-').collect();
    let disguised = |word: &str| BRANDS.iter().any(|brand| word != *brand && plain(word) == *brand);
    // `paypal.com` is the name's own; `paypal-secure.com` and `paypal.com.x.net` are not.
    let joined = within.len() > 1 && within.iter().any(|word| long_brand(word) || disguised(word));
    let below = outside.filter(|word| !word.is_empty()).any(|word| !BRANDS.contains(&name) && (long_brand(word) || disguised(word)));
    let baited = within.iter().any(|word| BRANDS.contains(word)) && within.iter().any(|word| BAIT.contains(word));
    joined || baited || disguised(name) || below
}

/// Short names are words of their own and prove nothing.
fn long_brand(word: &str) -> bool {
    word.len() >= 5 && BRANDS.contains(&word)
}

fn plain(word: &str) -> String {
    let swap = |c: char| LOOKALIKES.iter().find(|(from, _)| *from == c).map_or(c, |(_, to)| *to);
    word.to_lowercase().chars().map(swap).collect::<String>().replace("rn", "m").replace("vv", "w")
}

/// Which label is the one that someone registered: the first one of the registrable domain.
fn name_label(host: &str, labels: usize) -> usize {
    labels.saturating_sub(psl::domain_str(host).unwrap_or(host).split('.').count())
}

/// The label that someone registered: `acme` of `pay.acme.co.uk`.
fn own_label(url: &Url) -> Option<String> {
    Some(registered(url)?.split('.').next()?.to_owned())
}

/// The registrable domain of a link, by the public suffix list.
fn registered(url: &Url) -> Option<String> {
    let Host::Domain(host) = url.host()? else { return None };
    let host = host.to_lowercase();
    Some(psl::domain_str(&host).unwrap_or(&host).to_owned())
}
