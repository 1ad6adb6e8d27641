//! Detects deceptive links.

use std::collections::BTreeSet;

use url::{Host, Url};

use super::finding::{Category, Finding};
use super::{FLAGGED, html::Page};

/// Hosts of URL shorteners.
const SHORTENERS: &[&str] = &[
    "bit.ly", "tinyurl.com", "t.co", "goo.gl", "is.gd", "v.gd", "ow.ly", "cutt.ly", "rb.gy", "buff.ly", "rebrand.ly", "shorturl.at",
    "tiny.cc", "t.ly", "s.id", "lnkd.in", "soo.gd", "bl.ink", "adf.ly", "shorte.st", "clck.ru", "urlz.fr", "tny.im",
];

/// Names often imitated in fraud.
const BRANDS: &[&str] = &[
    "paypal", "amazon", "apple", "icloud", "microsoft", "google", "netflix", "facebook", "instagram", "whatsapp", "telegram", "linkedin",
    "coinbase", "binance", "metamask", "blockchain", "wellsfargo", "citibank", "chase", "hsbc", "barclays", "santander", "bbva",
    "caixabank", "revolut", "westernunion", "dhl", "fedex", "ups", "usps", "correos", "royalmail", "evri", "seur", "chronopost", "laposte",
    "disney", "disneyplus", "spotify", "hmrc", "irs", "dgt", "aeat", "ezpass", "fastrak", "caixa", "sabadell", "intesa", "unicredit",
    "sparkasse", "ledger", "trezor", "monzo", "lloyds", "natwest", "capitalone", "bankofamerica", "navyfederal", "zelle", "venmo",
    "cashapp", "klarna", "kraken", "trustwallet", "opensea", "ebay", "walmart", "costco", "norton", "mcafee", "geeksquad", "microsoft365",
    "office365", "outlook", "hotmail", "docusign", "dropbox", "tiktok", "snapchat", "discord", "steam", "roblox", "playstation",
    "vodafone", "verizon", "tmobile", "comcast", "xfinity", "movistar", "telcel", "telekom", "swisscom", "dpd", "gls", "hermes", "postnl",
    "bpost", "inpost", "mondialrelay", "colissimo", "posteitaliane", "auspost", "canadapost", "parcelforce", "ctt", "postnord", "sunpass",
    "txtag", "dvla", "tvlicensing", "medicare", "mygov", "elster", "finanzamt", "belastingdienst", "digid", "agenziaentrate", "inps",
    "impots", "ameli", "antai", "agenciatributaria", "volksbank", "commerzbank", "postbank", "rabobank", "abnamro", "creditagricole",
    "boursorama", "labanquepostale", "banquepostale", "societegenerale", "bnpparibas", "millenniumbcp", "itau", "bradesco", "nubank",
    "mercadopago", "mbank", "pkobp", "allegro", "ziraat", "isbank", "vietcombank", "techcombank", "bidv", "tokopedia", "shopee",
    "sberbank", "tinkoff", "gosuslugi", "hdfc", "icici", "paytm", "hdfcbank", "icicibank",
];

/// Those of them under whose domains anybody can publish.
const PLATFORMS: &[&str] = &[
    "google", "facebook", "instagram", "whatsapp", "telegram", "linkedin", "microsoft", "tiktok", "snapchat", "discord", "steam", "dropbox",
];
/// Public suffixes under which well-known names have their own domains.
const OWN_SUFFIXES: &[&str] =
    &["com", "co.uk", "de", "fr", "es", "it", "pt", "nl", "pl", "ie", "ca", "com.br", "com.mx", "com.au", "com.tr"];
/// Further names of their domains.
const ALIASES: &[(&str, &str)] = &[
    ("laposte", "colissimo"),
    ("laposte", "chronopost"),
    ("fb", "facebook"),
    ("ig", "instagram"),
    ("t", "telegram"),
    ("wa", "whatsapp"),
    ("g", "google"),
    ("goo", "google"),
    ("a", "amazon"),
    ("apple", "icloud"),
    ("icloud", "apple"),
    ("aka", "microsoft"),
    ("live", "microsoft"),
    ("disneyplus", "disney"),
    ("postescanada", "canadapost"),
    ("poste", "posteitaliane"),
    ("bcp", "millenniumbcp"),
    ("steampowered", "steam"),
];

/// Words that fraud adds to an imitated name.
const BAIT: &[&str] = &[
    "secure", "security", "verify", "verification", "login", "signin", "unlock", "update", "confirm", "fee", "fees", "refund", "rebate",
    "rebates", "support", "help", "alert", "stop", "payee", "claim", "billing", "pay", "payment", "redir", "redelivery", "rebooking",
    "track", "tracking", "parcel", "customs", "account", "id", "bloqueo", "activa", "seguridad", "verificar", "acceso", "portes", "multas",
    "devolucion", "reembolso", "pago", "frais", "blocco", "toll", "bill", "safe", "info", "online", "reward", "bonus", "es", "uk", "us",
    "rebook", "device", "devices", "unlink", "review", "cancel", "invoice", "kyc", "portal", "fine", "tax", "restore", "renewal",
    "delivery", "form", "pagos", "zahlung", "porto", "livraison", "sblocco", "betalen", "doplata", "onay", "sim", "simcheck", "access",
    "help",
];

/// Words of the same kind that begin many others.
const BAIT_STEMS: &[&str] = &[
    "verif", "weryfik", "aktualis", "actualiz", "vernieuw", "bestaetig", "bestatig", "sicher", "segur", "rembours", "ruckerst", "paiement",
    "desbloq", "entsperr", "legitim", "erstatt", "devoluc", "rimbors", "reembols", "activac", "aggiorn", "dogrula",
];

/// Cheap top-level domains that occur disproportionately in fraud.
const CHEAP: &[&str] = &[
    "top", "xyz", "click", "icu", "cyou", "buzz", "rest", "cfd", "sbs", "monster", "quest", "gq", "tk", "ml", "cf", "ga", "bond", "vip",
    "loan", "win", "bid", "zip", "mov", "ru", "pw", "site", "online", "bet",
];

/// Top-level domains that are everyday words. A name under them may be two words with the blank missing, as in "call.me".
const WORD_DOMAINS: &[&str] = &["am", "as", "at", "be", "by", "do", "in", "is", "la", "me", "my", "no", "se", "so", "to", "us"];
/// Maximum number of linked domains whose names are looked for in a text.
const SOUGHT: usize = 200;
/// Maximum length of the name that a text begins with, in bytes.
const OPENING: usize = 40;
/// Maximum distance of a link from the name that a text begins with, in bytes.
const NEAR: usize = 400;
/// How much of a known link is read for its host, in bytes: more than scheme and host have.
const HOST: usize = 300;

/// Digits, and the letters that they resemble.
const LOOKALIKES: (&str, &str) = ("013457", "oleast");

/// Letters of other alphabets, and the Latin ones that they resemble.
const HOMOGLYPHS: (&str, &str) = ("аеорсухіѕԁһӏοα", "aeopcyxisdhloa");

/// Judges links, except those to a project's own domains and their subdomains.
#[derive(Clone, Copy, Debug)]
pub(super) struct Links<'a> {
    pub(super) allowed: &'a [String],
}

impl Links<'_> {
    /// Finds deceptive links in a text.
    pub(super) fn in_text(self, text: &str, findings: &mut Vec<Finding>) {
        for word in pieces(text) {
            let Some(url) = link(word).filter(|url| !self.allows(url)) else { continue };
            let is_near = word.as_ptr() as usize - text.as_ptr() as usize <= NEAR;
            if let Some(category) = judge(&url) {
                add(findings, category, word, &url);
            } else if is_near && (impersonates(text, &url) || extends_own_name(text, &url)) {
                add(findings, Category::Lure, word, &url);
            }
        }
    }

    /// Finds deceptive links in HTML, including those whose words name another domain than their target.
    pub(super) fn in_html(self, page: &Page, findings: &mut Vec<Finding>) {
        for (href, words) in &page.links {
            let Some(target) = link(href).filter(|url| !self.allows(url)) else { continue };
            if let Some(category) = judge(&target) {
                add(findings, category, href, &target);
            }
            let shown = link(words.trim()).as_ref().and_then(registered);
            if shown.is_some_and(|shown| registered(&target).is_some_and(|target| target != shown)) {
                add(findings, Category::Phishing, href, &target);
            }
        }
    }

    /// Returns whether a text identifies its sender: it links to a domain of the project, or names the domain that it links to, as
    /// businesses do ("Acme: ... https://pay.acme.example").
    pub(super) fn identify(self, text: &str) -> bool {
        let (mut prose, mut domains) = (String::new(), Vec::new());
        for word in pieces(text) {
            match link(word) {
                Some(url) if self.allows(&url) || url.host_str().is_some_and(is_public_office) => return true,
                Some(url) => domains.push(url),
                None => prose.extend(word.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase)),
            }
        }
        domains.retain(|url| url.host_str().is_some_and(|host| !imitates_brand(host) && !is_cheap(host)));
        let labels: BTreeSet<String> = domains.iter().filter_map(registered_label).filter(|label| label.len() >= 4).collect();
        labels.iter().take(SOUGHT).any(|label| prose.contains(&letters(label)))
    }

    /// Returns whether all links of a text lead to public offices, or to well-known names under their own domains: fraud cannot have these.
    pub(super) fn official(self, text: &str) -> bool {
        let mut links = pieces(text).filter_map(link).peekable();
        links.peek().is_some() && links.all(|url| url.host_str().is_some_and(|host| is_public_office(host) || is_own_domain(host)))
    }

    fn allows(self, url: &Url) -> bool {
        let host = url.host_str().unwrap_or_default();
        self.allowed.iter().any(|domain| host.strip_suffix(domain.as_str()).is_some_and(|rest| rest.is_empty() || rest.ends_with('.')))
    }
}

/// Adds a finding about a link. Each link counts once, and so does a cheap domain, however many of its pages are linked to.
fn add(findings: &mut Vec<Finding>, category: Category, word: &str, url: &Url) {
    // Called for each link, so it does not parse a long path again and again.
    let host_of = |other: &str| link(&other[..other.floor_char_boundary(HOST)]);
    let same_host = |other: &str| category == Category::CheapLink && host_of(other).is_some_and(|other| other.host() == url.host());
    let mut known = findings.iter().filter(|Finding(of, _)| *of == category).map(|Finding(_, fragment)| fragment.as_str());
    // More would neither count nor be shown.
    if known.clone().count() < FLAGGED && !known.any(|other| other == word || same_host(other)) {
        findings.push(Finding(category, word.to_owned()));
    }
}

/// Returns whether a text contains a link.
pub(super) fn any(text: &str) -> bool {
    pieces(text).any(|word| link(word).is_some())
}

/// Returns the letters and digits of a text, in lower case.
fn letters(text: &str) -> String {
    text.chars().filter(|c| c.is_alphanumeric()).flat_map(char::to_lowercase).collect()
}

/// Returns what a text begins with, before a colon, a dash or a bracket. Called for each link, so it reads no more than that.
pub(super) fn opening(text: &str) -> Option<&str> {
    let head = &text[..text.floor_char_boundary(OPENING + 3)];
    let end = [":", " - ", " – ", "]", " : "].iter().filter_map(|sign| head.find(sign)).min().filter(|end| *end <= OPENING)?;
    Some(text[..end].trim_start_matches('['))
}

/// Names of the domains under which a state registers its own offices.
const STATE: &[&str] = &["gov", "gob", "gouv", "nhs", "police", "mil"];

fn is_public_office(host: &str) -> bool {
    let suffix = psl::suffix(host.as_bytes()).and_then(|suffix| std::str::from_utf8(suffix.as_bytes()).ok()).unwrap_or_default();
    suffix.split('.').next().is_some_and(|label| STATE.contains(&label))
}

/// Returns whether a host is of a well-known name itself, and not a page that anybody can have there.
fn is_own_domain(host: &str) -> bool {
    let Some((label, suffix)) = psl::domain_str(host).and_then(|domain| domain.split_once('.')) else { return false };
    BRANDS.contains(&label) && !PLATFORMS.contains(&label) && OWN_SUFFIXES.contains(&suffix)
}

/// Returns whether a host pretends to belong to a public office: `gov.uk-refunds.com`, `irs-gov.org`.
fn imitates_office(host: &str) -> bool {
    !is_public_office(host) && host.split(['.', '-']).any(|part| matches!(part, "gov" | "gob" | "gouv" | "govuk"))
}

/// Returns whether a text begins with a well-known name and links elsewhere: "DHL: ... https://fees.example".
fn impersonates(text: &str, url: &Url) -> bool {
    let Some(opening) = opening(text) else { return false };
    let name = letters(opening);
    let label = registered_label(url).unwrap_or_default();
    let host = url.host_str().unwrap_or_default();
    // Public offices use subdomains of their states.
    if is_public_office(host) {
        return false;
    }
    let own = letters(&label).contains(&name) || ALIASES.iter().any(|(alias, of)| *alias == label && *of == name);
    BRANDS.contains(&name.as_str()) && !own && !label.starts_with("amzn")
}

/// Returns whether a text begins with a name and links to a domain that joins it with words of fraud: "Acme: ... https://acme-refund.example".
/// A business owns the domain of its name; fraud must use another one. Places and trades join names honestly: "hotel-adler-berlin.example".
fn extends_own_name(text: &str, url: &Url) -> bool {
    let Some(opening) = opening(text) else { return false };
    let (label, host) = (registered_label(url).unwrap_or_default(), url.host_str().unwrap_or_default());
    if !label.contains('-') || letters(&label) == letters(opening) {
        return false;
    }
    let names: Vec<String> = opening.split_whitespace().map(letters).collect();
    let baited = label.split('-').any(|part| is_bait(part) && names.iter().all(|name| name != part));
    let joins = |name: &String| match name.len() {
        0..2 => false,
        2..4 => label.split('-').next() == Some(name),
        _ => label.split('-').chain(host.split('.')).any(|part| part == name),
    };
    baited && names.iter().any(joins)
}

/// Returns the words of a text without surrounding punctuation. A link ends the word that it is glued to: "today!http://a.example".
fn pieces(text: &str) -> impl Iterator<Item = &str> {
    text.split(|c: char| c.is_whitespace() || matches!(c, '"' | '<' | '>' | '(' | ')'))
        .flat_map(|word| <[&str; 2]>::from(word.split_at(glued(word))))
        .filter(|word| !word.is_empty())
        .map(|word| word.trim_end_matches(['.', ',', ';', '!', '?', ':', '\'', ']', '}']))
}

/// Returns where in a word a link with a scheme begins; 0 if none does.
fn glued(word: &str) -> usize {
    if !word.contains(':') {
        return 0;
    }
    let lower = word.to_ascii_lowercase();
    ["http:", "https:"].iter().filter_map(|scheme| lower.find(scheme)).min().unwrap_or_default()
}

fn is_bait(word: &str) -> bool {
    BAIT.contains(&word) || BAIT_STEMS.iter().any(|stem| word.starts_with(stem))
}

fn is_cheap(host: &str) -> bool {
    host.rsplit('.').next().is_some_and(|tld| CHEAP.contains(&tld))
}

/// Parses a word as a link, with or without a scheme.
pub(super) fn link(word: &str) -> Option<Url> {
    if !word.contains(['.', ':']) {
        return None;
    }
    let lower = word.to_lowercase();
    // Phones also open links without slashes, which fraud omits to evade filters.
    if lower.starts_with("http:") || lower.starts_with("https:") {
        return Url::parse(word).ok();
    }
    let host = lower.split('/').next().unwrap_or_default();
    let domain = host.split_once('.').is_some_and(|(name, rest)| !name.is_empty() && rest.len() >= 2);
    let known = lower.starts_with("www.") || SHORTENERS.contains(&host);
    let tld = host.rsplit('.').next().unwrap_or_default();
    // Phones turn a bare name into a link. A capital letter after the dot begins the next sentence instead.
    let bare = word.ends_with(tld) && is_bare_link(host, tld);
    let looks = !host.contains('@') && (bare || lower.contains('/') && tld.chars().all(char::is_alphabetic));
    if domain && (known || looks) { Url::parse(&format!("http://{word}")).ok() } else { None }
}

/// Returns whether a name without scheme and path is a link.
fn is_bare_link(host: &str, tld: &str) -> bool {
    let name = &host[..host.len() - tld.len()];
    let plain = name.chars().all(|c| c.is_alphanumeric() || matches!(c, '-' | '.')) && name.chars().any(char::is_alphabetic);
    let typed = WORD_DOMAINS.contains(&tld) && !name.contains(['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9']) && name.len() < 12;
    let exists = tld == "example" || psl::suffix(host.as_bytes()).is_some_and(|suffix| suffix.is_known());
    plain && exists && !typed
}

/// Returns what is wrong with a link.
fn judge(url: &Url) -> Option<Category> {
    let host = match url.host()? {
        Host::Domain(host) => host.to_lowercase(),
        Host::Ipv4(_) | Host::Ipv6(_) => return Some(Category::Phishing),
    };
    // An app from outside the app stores.
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
    if imitates_brand(&host) || imitates_office(&host) {
        return Some(Category::Phishing);
    }
    is_cheap(&host).then_some(Category::CheapLink)
}

/// Returns whether a name in Punycode mixes Latin with other letters, or resembles a well-known name.
fn mixes_scripts(label: &str) -> bool {
    let (decoded, _) = idna::domain_to_unicode(label);
    let other = decoded.chars().any(|c| c.is_alphabetic() && c as u32 >= 0x370);
    let latin = decoded.chars().any(|c| c.is_ascii_alphabetic());
    other && (latin || BRANDS.contains(&swapped(&decoded, HOMOGLYPHS).as_str()))
}

/// Returns whether a host contains a well-known name, plain or disguised, but belongs to another domain.
fn imitates_brand(host: &str) -> bool {
    let labels: Vec<&str> = host.split('.').collect();
    let own = registered_index(host, labels.len());
    let name = labels.get(own).copied().unwrap_or_default();
    let outside = labels.iter().enumerate().filter(|(n, _)| *n < own).flat_map(|(_, label)| label.split('-'));
    let within: Vec<&str> = name.split('-').collect();
    let disguised = |word: &str| Some(plain(word)).is_some_and(|plain| plain != word && BRANDS.contains(&plain.as_str()));
    // `paypal.com` belongs to the name's owner; `paypal-secure.com` and `paypal.com.x.net` do not.
    let joined = within.len() > 1 && within.iter().any(|word| long_brand(word) || disguised(word));
    let below = outside.filter(|word| !word.is_empty()).any(|word| !BRANDS.contains(&name) && (long_brand(word) || disguised(word)));
    let baited = within.iter().any(|word| BRANDS.contains(word)) && within.iter().any(|word| BAIT.contains(word));
    joined || baited || disguised(name) || below || BRANDS.iter().any(|brand| brand.len() > 5 && extends(name, brand))
}

/// Returns whether a name is a well-known one and a word of fraud, written together.
fn extends(name: &str, brand: &str) -> bool {
    let rest = name.strip_prefix(brand).or_else(|| name.strip_suffix(brand));
    // As in `amazonpay.com`, which belongs to the name's owner.
    rest.is_some_and(|rest| rest.len() > 3 && is_bait(rest))
}

/// Returns whether a word is a well-known name long enough not to be an ordinary word.
fn long_brand(word: &str) -> bool {
    word.len() >= 5 && BRANDS.contains(&word)
}

fn plain(word: &str) -> String {
    swapped(&word.to_lowercase(), LOOKALIKES).replace("rn", "m").replace("vv", "w")
}

/// Replaces each letter that is in the first text by the one at its place in the second.
fn swapped(word: &str, (from, to): (&str, &str)) -> String {
    word.chars().map(|c| from.chars().zip(to.chars()).find(|(from, _)| *from == c).map_or(c, |(_, to)| to)).collect()
}

/// Returns the index of the registered label, the first one of the registrable domain.
fn registered_index(host: &str, labels: usize) -> usize {
    labels.saturating_sub(psl::domain_str(host).unwrap_or(host).split('.').count())
}

/// Returns the registered label: `acme` of `pay.acme.co.uk`.
fn registered_label(url: &Url) -> Option<String> {
    Some(registered(url)?.split('.').next()?.to_owned())
}

/// Returns the registrable domain of a link, by the public suffix list.
fn registered(url: &Url) -> Option<String> {
    let Host::Domain(host) = url.host()? else { return None };
    let host = host.to_lowercase();
    Some(psl::domain_str(&host).unwrap_or(&host).to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Read to its end for each of its links, a text of nothing but links would take a minute.
    #[test]
    fn a_link_costs_the_same_in_a_long_text() {
        let (text, url) = ("a.co ".repeat(800_000), link("a.co").expect("a link"));
        let begun = std::time::Instant::now();
        for _ in 0..50_000 {
            assert!(!impersonates(&text, &url) && !extends_own_name(&text, &url));
        }
        assert!(begun.elapsed().as_secs() < 10, "{:?}", begun.elapsed());
    }

    /// Parsed again for each of the others, the long one would take minutes.
    #[test]
    fn many_pages_of_a_cheap_domain_are_compared_in_time() {
        let text = format!("https://a.top/{} {}", "x".repeat(500_000), "a.top ".repeat(80_000));
        let (begun, mut findings) = (std::time::Instant::now(), Vec::new());
        Links { allowed: &[] }.in_text(&text, &mut findings);
        assert_eq!(findings.len(), 1);
        assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    }

    #[test]
    fn the_opening_of_a_text_is_short() {
        let long = "x".repeat(OPENING);
        assert_eq!(opening("DHL: your parcel"), Some("DHL"));
        assert_eq!(opening(&format!("{long}: y")), Some(long.as_str()));
        assert_eq!((opening(&format!("{long}x: y")), opening("é"), opening("")), (None, None, None));
    }
}
