//! Parses authentication results of a mail server in front: `Authentication-Results` (RFC 8601).

use mail_auth::AuthenticatedMessage;
use nuncio_domain::Authentication;
use nuncio_domain::authentication::{AuthenticationResult as Is, FromResult};

/// One `method=result` with its properties.
#[derive(Debug, PartialEq)]
struct Entry {
    method: String,
    result: Is,
    properties: Vec<(String, String)>,
}

impl Entry {
    /// The domain that a property names.
    fn domain(&self, name: &str) -> Option<&str> {
        let (_, value) = self.properties.iter().find(|(property, _)| property == name)?;
        Some(value.rsplit_once('@').map_or(value.as_str(), |(_, domain)| domain))
    }
}

/// Returns the results that `server` recorded for an email whose `From` is of `domain`; `None` if there are none. That server must remove
/// such fields from inbound emails (RFC 8601 §5).
pub(crate) fn read(message: &AuthenticatedMessage<'_>, server: &str, domain: &str) -> Option<Authentication> {
    let fields = message.headers.iter().filter(|(name, _)| name.trim_ascii().eq_ignore_ascii_case(b"authentication-results"));
    let entries: Vec<Entry> = fields.filter_map(|(_, value)| parse(&String::from_utf8_lossy(value), server)).flatten().collect();
    if entries.is_empty() {
        return None;
    }
    let of = |method: &'static str| entries.iter().filter(move |entry| entry.method == method);
    let best = |method| of(method).map(|entry| entry.result).min_by_key(|result| rank(*result)).unwrap_or_default();
    // DMARC has one result; if fields disagree, the worst one counts.
    let dmarc = of("dmarc").map(|entry| entry.result).max_by_key(|result| rank(*result)).unwrap_or_default();
    let is_authenticated = match dmarc {
        Is::Pass => of("dmarc").all(|entry| entry.domain("header.from").is_some_and(|from| from.eq_ignore_ascii_case(domain))),
        Is::None if of("dmarc").all(|entry| entry.result == Is::None) => {
            let vouches = |entry: &Entry, names: [&str; 2]| {
                entry.result == Is::Pass && names.iter().find_map(|name| entry.domain(name)).is_some_and(|of| is_within(domain, of))
            };
            of("dkim").any(|entry| vouches(entry, ["header.d", "header.i"]))
                || of("spf").any(|entry| vouches(entry, ["smtp.mailfrom", "envelope-from"]))
        }
        _ => false,
    };
    let from = if is_authenticated { FromResult::Authenticated } else { FromResult::Unauthenticated };
    Some(Authentication { spf: best("spf"), dkim: best("dkim"), dmarc, from })
}

/// The entries of a field, if it is of `server`.
fn parse(value: &str, server: &str) -> Option<Vec<Entry>> {
    let mut parts = split(value).into_iter();
    let words = parts.next()?;
    if !words.first()?.eq_ignore_ascii_case(server) || words.get(1).is_some_and(|version| version != "1") {
        return None;
    }
    Some(parts.filter_map(|words| entry(&words)).collect())
}

fn entry(words: &[String]) -> Option<Entry> {
    let mut pairs = words.iter().filter_map(|word| word.split_once('=')).map(|(name, value)| (name.to_ascii_lowercase(), value.to_owned()));
    let (method, result) = pairs.next()?;
    let result = match result.to_ascii_lowercase().as_str() {
        "none" => Is::None,
        "pass" => Is::Pass,
        "fail" | "hardfail" => Is::Fail,
        "softfail" => Is::SoftFail,
        "neutral" | "policy" => Is::Neutral,
        "temperror" => Is::TempError,
        _ => Is::PermError,
    };
    let method = method.split('/').next().unwrap_or_default().to_owned();
    Some(Entry { method, result, properties: pairs.collect() })
}

/// The words between semicolons, without comments and quotes. White space around `=` is left away.
fn split(value: &str) -> Vec<Vec<String>> {
    let (mut parts, mut word) = (vec![Vec::new()], String::new());
    let (mut depth, mut is_quoted) = (0_usize, false);
    let end = |word: &mut String, parts: &mut Vec<Vec<String>>| {
        if let (false, Some(part)) = (word.is_empty(), parts.last_mut()) {
            part.push(std::mem::take(word));
        }
    };
    let mut characters = value.chars().peekable();
    while let Some(c) = characters.next() {
        match c {
            '\\' if is_quoted || depth > 0 => {
                let escaped = characters.next();
                word.extend(escaped.filter(|_| depth == 0));
            }
            '"' if depth == 0 => is_quoted = !is_quoted,
            _ if is_quoted => word.push(c),
            '(' => depth += 1,
            ')' => depth = depth.saturating_sub(1),
            _ if depth > 0 => {}
            ';' => {
                end(&mut word, &mut parts);
                parts.push(Vec::new());
            }
            _ if c.is_whitespace() => {
                while characters.next_if(|c| c.is_whitespace()).is_some() {}
                if !word.ends_with('=') && characters.peek() != Some(&'=') {
                    end(&mut word, &mut parts);
                }
            }
            _ => word.push(c),
        }
    }
    end(&mut word, &mut parts);
    parts
}

/// Whether `domain` is `of` or a subdomain of it: the owner of a domain is responsible for its subdomains, not the reverse.
pub(crate) fn is_within(domain: &str, of: &str) -> bool {
    let (domain, of) = (domain.trim_end_matches('.'), of.trim_end_matches('.'));
    let Some(start) = domain.len().checked_sub(of.len()) else { return false };
    let ends = domain.get(start..).is_some_and(|end| end.eq_ignore_ascii_case(of));
    ends && of.contains('.') && (start == 0 || domain.as_bytes()[start - 1] == b'.')
}

/// Orders results, best first: of several signatures, the best one counts.
pub(crate) const fn rank(result: Is) -> u8 {
    match result {
        Is::Pass => 0,
        Is::TempError => 1,
        Is::Fail | Is::SoftFail => 2,
        Is::PermError => 3,
        Is::Neutral => 4,
        Is::None => 5,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn from(fields: &[&str]) -> Option<Authentication> {
        let head: String = fields.iter().map(|field| format!("Authentication-Results: {field}\r\n")).collect();
        let mail = format!("{head}From: ada@example.net\r\n\r\nx\r\n");
        read(&AuthenticatedMessage::parse(mail.as_bytes()).expect("a mail"), "mx.example.org", "example.net")
    }

    fn is_authenticated(fields: &[&str]) -> bool {
        from(fields).expect("a field of the server").is_authenticated()
    }

    #[test]
    fn only_the_fields_of_the_server_count() {
        assert_eq!(from(&[]), None);
        for other in ["mx.example.com; dmarc=pass header.from=example.net", "evil (mx.example.org); dmarc=pass header.from=example.net"] {
            assert_eq!(from(&[other]), None, "{other}");
        }
        let found = from(&["MX.example.org 1;\r\n spf=softfail (x; y) smtp.mailfrom=a@b.example;\r\n dkim = pass header.d=example.net"]);
        let expected = Authentication { spf: Is::SoftFail, dkim: Is::Pass, dmarc: Is::None, from: FromResult::Authenticated };
        assert_eq!(found, Some(expected));
    }

    #[test]
    fn what_authenticates() {
        for good in [
            "mx.example.org; dmarc=pass (p=reject) header.from=Example.net",
            "mx.example.org; dkim=fail header.d=x.example; dkim=pass header.i=@example.net",
            "mx.example.org; dmarc=none header.from=example.net; spf=pass smtp.mailfrom=\"ada\"@example.net",
        ] {
            assert!(is_authenticated(&[good]), "{good}");
        }
        for bad in [
            "mx.example.org; none",
            "mx.example.org; dmarc=pass header.from=other.example",
            "mx.example.org; dmarc=pass",
            "mx.example.org; dmarc=fail header.from=example.net; dkim=pass header.d=example.net",
            "mx.example.org; dmarc=temperror header.from=example.net; dkim=pass header.d=example.net",
            "mx.example.org; dkim=pass header.d=sub.example.net",
            "mx.example.org; dkim=pass header.d=net",
            "mx.example.org; dkim=pass (header.d=example.net) header.d=other.example",
            "mx.example.org; spf=pass smtp.mailfrom=\"x smtp.mailfrom=ada@example.net\"@other.example",
        ] {
            assert!(from(&[bad]).is_none_or(|found| !found.is_authenticated()), "{bad}");
        }
        let forged = "mx.example.org; dmarc=pass header.from=example.net";
        assert!(!is_authenticated(&["mx.example.org; dmarc=fail header.from=example.net", forged]));
    }
}
