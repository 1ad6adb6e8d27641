//! Parses recipients: phone numbers, email addresses and chat ids.

use std::borrow::Cow;
use std::fmt;

pub use crate::channel::AddressKind;
use crate::channel::Channel;

mod phone;

use phone::meant;
pub use phone::{LineType, PhoneFacts, PhonePlan, country, is_country, phone, phone_facts, phone_plan, sms_sender, typed_phone, with_plus};

/// A recipient in canonical form.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Recipient {
    pub kind: AddressKind,
    /// Canonical text: `+` and digits, address with lower-cased domain in Unicode, or signed decimal.
    pub identifier: String,
}

/// A recipient before the channel is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parsed {
    /// A phone number in E.164.
    Phone(String),
    /// An email address.
    Email(String),
    /// A decimal number without `+`: a chat id, when the channel is telegram or instagram.
    Digits(String),
}

/// Why parsing failed; the text says what would be valid.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRecipient(String);

/// Maximum octets of an email address.
const EMAIL_OCTETS: usize = 254;

const RECIPIENT: &str = "an E.164 phone number such as +34600111222, an email address, or a numeric chat id";
const PHONE: &str = "an E.164 phone number such as +34600111222";
const EMAIL: &str = "an email address such as ada@example.org";

impl Parsed {
    /// Returns the recipient in canonical form.
    pub fn identifier(&self) -> &str {
        let (Self::Phone(text) | Self::Email(text) | Self::Digits(text)) = self;
        text
    }

    /// Parses a recipient as written by a caller.
    pub fn parse(text: &str) -> Result<Self, InvalidRecipient> {
        if text.contains('@') {
            return email(text).map(Self::Email);
        }
        if text.starts_with('+') {
            return phone(text).map(Self::Phone);
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_number = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
        // No chat id begins with a zero, but phone numbers in national form do.
        if is_number && (digits.len() == 1 || !digits.starts_with('0')) {
            return text
                .parse::<i64>()
                .map(|id| Self::Digits(id.to_string()))
                .map_err(|_| invalid(text, "is too long for a chat id", RECIPIENT));
        }
        Err(match meant(text) {
            Some(e164) => InvalidRecipient(format!("{:?} is not in E.164 form; did you mean {e164}?", shown(text))),
            None if is_number => invalid(text, "has no country code", RECIPIENT),
            None => invalid(text, "is not a recipient", RECIPIENT),
        })
    }
}

/// Returns whether a text that is not a recipient was meant as a phone number or an email address, and not as a short code or a name.
pub fn is_meant(text: &str) -> bool {
    text.starts_with('+') || text.contains('@') || meant(text).is_some()
}

fn invalid(text: &str, what: &str, expected: &str) -> InvalidRecipient {
    InvalidRecipient(format!("{:?} {what}; expected {expected}", shown(text)))
}

fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Parses an email address (RFC 5321 mailbox, at most 254 octets, no quoted local part). Its domain is put in lower case, and an
/// international one in Unicode: mail servers write it in ASCII.
pub fn email(text: &str) -> Result<String, InvalidRecipient> {
    let wrong = || invalid(text, "is not an email address", EMAIL);
    if text.len() > EMAIL_OCTETS || text.contains('"') || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(wrong());
    }
    let options = email_address::Options::default().with_required_tld().without_display_text().without_domain_literal();
    let address = email_address::EmailAddress::parse_with_options(text, options).map_err(|_| wrong())?;
    let domain = address.domain().to_lowercase();
    let canonical = format!("{}@{}", address.local_part(), international(&domain).unwrap_or(domain));
    if canonical.len() > EMAIL_OCTETS { Err(wrong()) } else { Ok(canonical) }
}

/// Returns an international domain in Unicode; `None` for any other.
fn international(domain: &str) -> Option<String> {
    if domain.is_ascii() && !domain.contains("xn--") {
        return None;
    }
    let ascii = idna::domain_to_ascii_strict(domain).ok()?;
    Some(idna::domain_to_unicode(&ascii).0)
}

/// Returns the form in which suppressions compare an identifier: email addresses in lower case, since no provider gives two people addresses
/// that differ only in case. The hash of an erased address contains no `@` and stays as it is.
pub fn folded(kind: AddressKind, identifier: &str) -> Cow<'_, str> {
    let is_mixed = kind == AddressKind::Email && identifier.contains('@') && identifier.chars().any(char::is_uppercase);
    if is_mixed { Cow::Owned(identifier.to_lowercase()) } else { Cow::Borrowed(identifier) }
}

impl Recipient {
    /// Returns the recipient of a canonical identifier. `None` for the empty text that is left of an erased one.
    pub fn canonical(channel: Channel, identifier: &str) -> Option<Self> {
        (!identifier.is_empty()).then(|| Self { kind: channel.address_kind(), identifier: identifier.to_owned() })
    }

    /// Returns the identifier as suppressions compare it.
    pub fn folded(&self) -> Cow<'_, str> {
        folded(self.kind, &self.identifier)
    }

    /// Returns the recipient on `channel`, or why the two contradict each other.
    pub fn on(parsed: &Parsed, channel: Channel) -> Result<Self, InvalidRecipient> {
        let (kind, identifier) = match (parsed, channel) {
            (Parsed::Phone(number), Channel::Sms | Channel::SmsOneway | Channel::Whatsapp | Channel::Voice) => (AddressKind::Phone, number),
            (Parsed::Email(address), Channel::Email) => (AddressKind::Email, address),
            (Parsed::Digits(id), Channel::Telegram) => (AddressKind::Telegram, id),
            (Parsed::Digits(id), Channel::Instagram) => (AddressKind::Instagram, id),
            (Parsed::Digits(id), _) => {
                return Err(InvalidRecipient(format!(
                    "{id:?} is a chat id, which needs channel telegram or instagram; for a phone number write {}",
                    with_plus(id)
                )));
            }
            (Parsed::Phone(text) | Parsed::Email(text), _) => {
                return Err(InvalidRecipient(format!("{text:?} cannot be reached by channel {channel}")));
            }
        };
        Ok(Self { kind, identifier: identifier.clone() })
    }
}

impl From<&Recipient> for Parsed {
    fn from(recipient: &Recipient) -> Self {
        let identifier = recipient.identifier.clone();
        match recipient.kind {
            AddressKind::Phone => Self::Phone(identifier),
            AddressKind::Email => Self::Email(identifier),
            AddressKind::Telegram | AddressKind::Instagram => Self::Digits(identifier),
        }
    }
}

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.identifier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_number_of_no_country_has_no_country() {
        for number in ["+882161234567", "+80012345678"] {
            assert_eq!((phone_facts(number).country.as_str(), country(number).as_str()), ("", ""), "{number}");
        }
    }

    #[test]
    fn errors_say_what_would_be_right_at_their_place() {
        let told = |error: InvalidRecipient| error.to_string();
        assert!(told(Parsed::parse("nobody").expect_err("no recipient")).ends_with(RECIPIENT));
        for error in [phone("nobody"), phone("+999123456"), Parsed::parse("+1").map(|_| String::new())] {
            let told = told(error.expect_err("no phone number"));
            assert!(told.ends_with(PHONE), "{told}");
        }
        for error in [email("nobody"), Parsed::parse("a@b@c").map(|_| String::new())] {
            let told = told(error.expect_err("no email address"));
            assert!(told.ends_with(EMAIL), "{told}");
        }
    }

    #[test]
    fn phones() {
        for good in ["+34600111222", "+14155552671", "+15005550001", "+999123456"] {
            assert_eq!(Parsed::parse(good).is_ok(), good != "+999123456", "{good}");
        }
        for bad in ["+1", "+0034600111222", "+34 600", "+346001112223334445", "+12125", "+15551234", "+3460011"] {
            assert!(Parsed::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(phone_facts("+34600111222"), PhoneFacts { country: "ES".into(), assigned: true });
    }

    #[test]
    fn phones_as_people_write_them() {
        for (text, country, e164) in [
            ("+34 600 111 222", "", "+34600111222"),
            ("0034 600-111-222", "", "+34600111222"),
            ("(+34) 600.11.12.22", "", "+34600111222"),
            ("+34 (600) 111/222", "", "+34600111222"),
            ("\u{202a}+34\u{a0}600 11 12 22\u{202c}", "", "+34600111222"),
            ("+44 (0)20 7946 0018", "", "+442079460018"),
            ("+1 (212) 555-0123", "", "+12125550123"),
            ("600 111 222", "ES", "+34600111222"),
            ("34600111222", "ES", "+34600111222"),
            ("06 12 34 56 78", "FR", "+33612345678"),
            ("6 12 34 56 78", "FR", "+33612345678"),
            ("(212) 555-0123", "US", "+12125550123"),
            ("020 7946 0018", "GB", "+442079460018"),
            ("+33 6 12 34 56 78", "ES", "+33612345678"),
            ("600 111 222", "", ""),
            ("600 111 222 x5", "ES", ""),
            ("1-800-FLOWERS", "US", ""),
            ("6001112", "FR", ""),
            ("+", "ES", ""),
            ("", "ES", ""),
        ] {
            let countries: &[&str] = if country.is_empty() { &[] } else { &[country] };
            let read = typed_phone(text, countries);
            assert_eq!(read.clone().unwrap_or_default(), e164, "{text:?} in {country:?}: {read:?}");
        }
        // 020 … is dialled in London and in Amsterdam.
        let both = typed_phone("020 794 0018", &["GB", "NL"]);
        assert!(both == Ok("+31207940018".into()) || both.is_err_and(|error| error.to_string().contains(" or ")));
        assert_eq!(typed_phone("612 345 678", &["PT", "ES"]), Ok("+34612345678".into()));
    }

    #[test]
    fn the_api_is_strict_and_offers_what_was_meant() {
        for text in ["+34 600 111 222", "0034600111222", "+34-600-111-222", "(0034) 600 111 222", "34 600 111 222", "+0034600111222"] {
            let error = phone(text).expect_err("not in E.164 form").to_string();
            assert!(error.ends_with("did you mean +34600111222?"), "{text}: {error}");
        }
        for text in ["+34 600 111 222", "34 600 111 222", "0034-600-111-222"] {
            let error = Parsed::parse(text).expect_err("not in E.164 form").to_string();
            assert!(error.contains("did you mean +34600111222?"), "{text}: {error}");
        }
        let error = Recipient::on(&Parsed::Digits("34600111222".into()), Channel::Sms).expect_err("a chat id").to_string();
        assert!(error.ends_with("write +34600111222"), "{error}");
        for text in ["nonsense", "+1", "12", "call me"] {
            assert!(!phone(text).expect_err("no number").to_string().contains("did you mean"), "{text}");
        }
    }

    #[test]
    fn emails_and_chats() {
        assert_eq!(Parsed::parse("Ada@EXAMPLE.org"), Ok(Parsed::Email("Ada@example.org".into())));
        for domain in ["münchen.example", "MÜNCHEN.example", "xn--mnchen-3ya.example", "XN--MNCHEN-3YA.example"] {
            assert_eq!(email(&format!("Ada@{domain}")), Ok("Ada@münchen.example".into()), "{domain}");
        }
        // Written in wide characters, an address has no second @.
        assert!(!email("a@b\u{ff20}c.example").is_ok_and(|address| address.matches('@').count() > 1));
        assert_eq!(folded(AddressKind::Email, "Ana.Lopez@shop.org"), "ana.lopez@shop.org");
        assert!(matches!(folded(AddressKind::Email, "ana@shop.org"), Cow::Borrowed(_)));
        assert_eq!(folded(AddressKind::Email, "~Abc"), "~Abc");
        assert_eq!(Parsed::parse("-100123"), Ok(Parsed::Digits("-100123".into())));
        for bad in ["a@b", "@example.org", "a b@example.org", "a@example.org\r\nBcc: x@y.z", "", "-", "hello"] {
            assert!(Parsed::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Recipient::on(&Parsed::Digits("600".into()), Channel::Sms).is_err());
    }
}
