//! Parses recipients: phone numbers, email addresses and chat ids.

use std::collections::HashMap;
use std::fmt;
use std::sync::{LazyLock, Mutex, PoisonError};

use rlibphonenumber::{NumberLengthType, PHONE_NUMBER_UTIL, PhoneNumberFormat, PhoneNumberType, ValidationError};
use serde::{Deserialize, Serialize};

use crate::channel::{Channel, named};

named! {
    /// Kind of an identifier. A phone number is one identity across sms, whatsapp and voice.
    AddressKind {
        /// E.164 phone number.
        Phone = 1 "phone",
        /// Email address with a lower-cased domain.
        Email = 2 "email",
        /// Telegram chat id.
        Telegram = 3 "telegram",
        /// Instagram-scoped user id.
        Instagram = 4 "instagram",
    }
}

/// A recipient in canonical form.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Recipient {
    pub kind: AddressKind,
    /// Canonical text: `+` and digits, address with lower-cased domain, or signed decimal.
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

const RECIPIENT: &str = "an E.164 phone number such as +34600111222, an email address, or a numeric chat id";
const PHONE: &str = "an E.164 phone number such as +34600111222";
const EMAIL: &str = "an email address such as ada@example.org";

impl Parsed {
    /// Parses a recipient as written by a caller.
    pub fn parse(text: &str) -> Result<Self, InvalidRecipient> {
        if text.contains('@') {
            return email(text).map(Self::Email);
        }
        if text.starts_with('+') {
            return phone(text).map(Self::Phone);
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            return text
                .parse::<i64>()
                .map(|id| Self::Digits(id.to_string()))
                .map_err(|_| invalid(text, "is too long for a chat id", RECIPIENT));
        }
        Err(match meant(text) {
            Some(e164) => InvalidRecipient(format!("{:?} is not in E.164 form; did you mean {e164}?", shown(text))),
            None => invalid(text, "is not a recipient", RECIPIENT),
        })
    }
}

fn invalid(text: &str, what: &str, expected: &str) -> InvalidRecipient {
    InvalidRecipient(format!("{:?} {what}; expected {expected}", shown(text)))
}

fn shown(text: &str) -> String {
    text.chars().take(64).collect()
}

/// Parses an E.164 phone number. Rejects only what cannot be parsed or has an impossible length (ITU-T E.164: at most 15 digits). For a
/// number in another notation, the error suggests the E.164 form.
pub fn phone(text: &str) -> Result<String, InvalidRecipient> {
    strict_phone(text).map_err(|error| match meant(text) {
        Some(e164) => InvalidRecipient(format!("{:?} is not in E.164 form; did you mean {e164}?", shown(text))),
        None => error,
    })
}

fn strict_phone(text: &str) -> Result<String, InvalidRecipient> {
    let digits = text.strip_prefix('+').unwrap_or_default();
    if !(5..=15).contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_digit()) || digits.starts_with('0') {
        return Err(invalid(text, "is not a phone number: + and 5 to 15 digits, country code first", PHONE));
    }
    match looked_up(text).wrong {
        Some(what) => Err(invalid(text, what, PHONE)),
        None => Ok(text.to_owned()),
    }
}

/// Numbering-plan data of a text that begins with `+`.
#[derive(Clone, Debug)]
struct LookedUp {
    /// Why it is not an E.164 number.
    wrong: Option<&'static str>,
    facts: PhoneFacts,
}

/// The numbers that were looked up last, in two generations: the older one goes when the younger is full. A look costs some regular
/// expressions, and each number is looked up several times on its way.
#[derive(Default)]
struct Lately {
    young: HashMap<Box<str>, LookedUp>,
    old: HashMap<Box<str>, LookedUp>,
}

/// Numbers of one generation.
const GENERATION: usize = 4_096;
static LATELY: LazyLock<Mutex<Lately>> = LazyLock::new(Mutex::default);

fn looked_up(text: &str) -> LookedUp {
    let lock = || LATELY.lock().unwrap_or_else(PoisonError::into_inner);
    {
        let lately = lock();
        if let Some(known) = lately.young.get(text).or_else(|| lately.old.get(text)) {
            return known.clone();
        }
    }
    let found = look_up(text);
    // Longer texts are not phone numbers and would waste memory.
    if text.len() <= 16 {
        let mut lately = lock();
        if lately.young.len() >= GENERATION {
            lately.old = std::mem::take(&mut lately.young);
        }
        lately.young.insert(text.into(), found.clone());
    }
    found
}

fn look_up(text: &str) -> LookedUp {
    let nothing = PhoneFacts { country: String::new(), assigned: false };
    let Ok(number) = PHONE_NUMBER_UTIL.parse(text, None) else {
        return LookedUp { wrong: Some("has no known country code"), facts: nothing };
    };
    let region = PHONE_NUMBER_UTIL.get_region_for_number(&number);
    let facts = PhoneFacts {
        country: region.map_or_else(String::new, |region| region.as_region_str().to_string()),
        assigned: PHONE_NUMBER_UTIL.is_valid_number(&number),
    };
    // Longer numbers may belong to a newer plan; shorter ones lack an area code or were truncated.
    let length = PHONE_NUMBER_UTIL.is_possible_number_with_reason(&number);
    let wrong = if PHONE_NUMBER_UTIL.format(&number, PhoneNumberFormat::E164) != text {
        Some("is not in E.164 form")
    } else if matches!(length, Err(ValidationError::TooShort) | Ok(NumberLengthType::IsPossibleLocalOnly)) {
        Some("is too short for a number of its country")
    } else {
        None
    };
    LookedUp { wrong, facts }
}

/// Parses a phone number as people write it: with spaces, dashes, dots, slashes and brackets; with the country code after `+` or `00`, or
/// in the national form of one of `countries` (ISO 3166-1 alpha-2). Rejects a number that is valid in several of them.
pub fn typed_phone<C: AsRef<str>>(text: &str, countries: &[C]) -> Result<String, InvalidRecipient> {
    let refused =
        |what: &str| InvalidRecipient(format!("{:?} {what}; write it with its country code, such as +34 600 111 222", shown(text)));
    let plain = digits(text).ok_or_else(|| refused("is not a phone number"))?;
    if let Some(rest) = plain.strip_prefix('+').or_else(|| plain.strip_prefix("00")) {
        return international(rest).ok_or_else(|| refused("is not a phone number"));
    }
    let mut found: Vec<String> = countries.iter().filter_map(|country| national(&plain, country.as_ref())).collect();
    found.sort_unstable();
    found.dedup();
    match found.len() {
        0 if countries.is_empty() => Err(refused("has no country code")),
        0 => Err(refused("is not a phone number")),
        1 => Ok(found.swap_remove(0)),
        _ => Err(refused(&format!("is ambiguous: {}", found.join(" or ")))),
    }
}

/// Returns the likely E.164 form of a number in another notation, or without its `+`.
fn meant(text: &str) -> Option<String> {
    let without_plus = || international(&digits(text)?).filter(|e164| phone_facts(e164).assigned);
    typed_phone::<&str>(text, &[]).ok().or_else(without_plus)
}

/// Returns how to write a digits-only phone number.
pub fn with_plus(digits: &str) -> String {
    meant(digits).unwrap_or_else(|| format!("+{digits}"))
}

/// Returns the digits of a phone number, with a leading `+` if it has one; `None` if it contains anything but digits and the usual
/// separators. Numbers copied from address books contain invisible direction marks.
fn digits(text: &str) -> Option<String> {
    let mut plain = String::new();
    for c in text.chars() {
        match c {
            '0'..='9' => plain.push(c),
            '+' if plain.is_empty() => plain.push(c),
            '-' | '.' | '/' | '(' | ')' | '[' | ']' | '\u{2010}'..='\u{2015}' | '\u{2212}' => {}
            '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => {}
            c if c.is_whitespace() => {}
            _ => return None,
        }
    }
    plain.ends_with(|c: char| c.is_ascii_digit()).then_some(plain)
}

/// Returns the E.164 form of a country code and number; a trunk prefix can stand between them: `+44 (0)20 …`.
fn international(digits: &str) -> Option<String> {
    let number = PHONE_NUMBER_UTIL.parse(format!("+{}", digits.trim_start_matches(['+', '0'])), None).ok()?;
    strict_phone(&PHONE_NUMBER_UTIL.format(&number, PhoneNumberFormat::E164)).ok()
}

/// Returns the E.164 form of a number as dialled within a country.
fn national(digits: &str, country: &str) -> Option<String> {
    let region = PHONE_NUMBER_UTIL.get_supported_regions().find(|region| region.as_region_str().as_str() == country)?;
    let number = PHONE_NUMBER_UTIL.parse(digits, Some(region)).ok()?;
    let is_of_it = PHONE_NUMBER_UTIL.get_region_for_number(&number) == Some(region) && PHONE_NUMBER_UTIL.is_valid_number(&number);
    is_of_it.then(|| strict_phone(&PHONE_NUMBER_UTIL.format(&number, PhoneNumberFormat::E164)).ok())?
}

/// Returns the canonical form of a text message's sender: `+` and digits for an international number, or what looks like one; otherwise
/// unchanged, as a short code or a name. `international` is the type of number as given by the gateway.
pub fn sms_sender(text: &str, international: Option<bool>) -> String {
    let text = text.trim();
    let digits = text.strip_prefix('+').or_else(|| text.strip_prefix("00")).unwrap_or(text);
    let numeric = digits.bytes().all(|b| b.is_ascii_digit()) && (8..=15).contains(&digits.len());
    let marked = international == Some(true) || digits.len() < text.len();
    // Many gateways leave the type of number unknown; national numbers are rarely this long.
    let looks_so = international.is_none() && digits.len() > 9 && !digits.starts_with('0');
    if numeric && (marked || looks_so) { format!("+{digits}") } else { text.to_owned() }
}

/// Data about a phone number from the public numbering plans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhoneFacts {
    /// Country as ISO 3166-1 alpha-2; `""` when the number is in no known range.
    pub country: String,
    /// Whether the number lies in an assigned range.
    pub assigned: bool,
}

/// Looks up a canonical phone number in the numbering plans.
pub fn phone_facts(e164: &str) -> PhoneFacts {
    looked_up(e164).facts
}

/// The country of a canonical phone number (ISO 3166-1 alpha-2), or the main country of its calling code when the number lies in no
/// known range; `""` for calling codes without a country.
pub fn country(e164: &str) -> String {
    let facts = phone_facts(e164);
    if !facts.country.is_empty() {
        return facts.country;
    }
    let Ok(number) = PHONE_NUMBER_UTIL.parse(e164, None) else { return String::new() };
    let main = PHONE_NUMBER_UTIL.get_region_for_country_code(number.country_code);
    main.map_or_else(String::new, |region| region.as_region_str().to_string())
}

/// Returns whether a country (ISO 3166-1 alpha-2) has a numbering plan.
pub fn is_country(code: &str) -> bool {
    PHONE_NUMBER_UTIL.get_supported_regions().any(|region| region.as_region_str().to_string() == code)
}

/// Numbering-plan data of a number beyond [`PhoneFacts`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhonePlan {
    /// National form, as dialled within its country.
    pub national: String,
    pub line: LineType,
    /// Whether such a line can receive text messages.
    pub takes_text: bool,
    /// Whether such a line can receive calls.
    pub takes_calls: bool,
}

named! {
    /// Line type of a phone number, as far as its range determines it.
    LineType {
        /// A mobile phone, or a line of a range that holds both mobile phones and landlines.
        Mobile = 1 "mobile",
        /// A landline.
        Landline = 2 "landline",
        /// Over the internet.
        Voip = 3 "voip",
        /// Free for the caller.
        TollFree = 4 "toll_free",
        /// Of another kind, or in no known range.
        Unknown = 5 "unknown",
    }
}

/// Returns the numbering-plan data of a canonical phone number.
pub fn phone_plan(e164: &str) -> PhonePlan {
    let Ok(number) = PHONE_NUMBER_UTIL.parse(e164, None) else {
        return PhonePlan { national: String::new(), line: LineType::Unknown, takes_text: false, takes_calls: false };
    };
    let (line, takes_text, takes_calls) = match PHONE_NUMBER_UTIL.get_number_type(&number) {
        PhoneNumberType::Mobile | PhoneNumberType::FixedLineOrMobile => (LineType::Mobile, true, true),
        PhoneNumberType::FixedLine => (LineType::Landline, false, true),
        PhoneNumberType::TollFree => (LineType::TollFree, false, true),
        PhoneNumberType::VoIP => (LineType::Voip, true, true),
        PhoneNumberType::PremiumRate => (LineType::Unknown, false, true),
        PhoneNumberType::Unknown => (LineType::Unknown, false, false),
        _ => (LineType::Unknown, true, true), // pagers, personal numbers and the like
    };
    let national = PHONE_NUMBER_UTIL.format(&number, PhoneNumberFormat::National).into_owned();
    PhonePlan { national, line, takes_text, takes_calls }
}

/// Parses an email address (RFC 5321 mailbox, at most 254 octets, no quoted local part) and lower-cases its domain.
pub fn email(text: &str) -> Result<String, InvalidRecipient> {
    let wrong = || invalid(text, "is not an email address", EMAIL);
    if text.len() > 254 || text.contains('"') || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(wrong());
    }
    let options = email_address::Options::default().with_required_tld().without_display_text().without_domain_literal();
    let address = email_address::EmailAddress::parse_with_options(text, options).map_err(|_| wrong())?;
    Ok(format!("{}@{}", address.local_part(), address.domain().to_lowercase()))
}

impl Recipient {
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

impl fmt::Display for Recipient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.identifier)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

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
        assert_eq!(Parsed::parse("-100123"), Ok(Parsed::Digits("-100123".into())));
        for bad in ["a@b", "@example.org", "a b@example.org", "a@example.org\r\nBcc: x@y.z", "", "-", "hello"] {
            assert!(Parsed::parse(bad).is_err(), "{bad:?}");
        }
        assert!(Recipient::on(&Parsed::Digits("600".into()), Channel::Sms).is_err());
    }
}
