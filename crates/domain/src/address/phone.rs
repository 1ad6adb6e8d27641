//! Parses phone numbers, and looks them up in the numbering plans.

use std::collections::HashMap;
use std::sync::{LazyLock, Mutex, PoisonError};

use rlibphonenumber::{NumberLengthType, PHONE_NUMBER_UTIL, PhoneNumberFormat, PhoneNumberType, ValidationError};

use super::{InvalidRecipient, PHONE, invalid, shown};
use crate::channel::named;

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
        country: region.map_or_else(String::new, |region| region_code(region.as_region_str().as_ref())),
        assigned: PHONE_NUMBER_UTIL.is_valid_number(&number),
    };
    let length = PHONE_NUMBER_UTIL.is_possible_number_with_reason(&number);
    let wrong = match length {
        _ if PHONE_NUMBER_UTIL.format(&number, PhoneNumberFormat::E164) != text => Some("is not in E.164 form"),
        Err(ValidationError::TooShort) | Ok(NumberLengthType::IsPossibleLocalOnly) => Some("is too short for a number of its country"),
        Err(ValidationError::TooLong) => Some("is too long for a number of its country"),
        Err(ValidationError::InvalidLength) => Some("has a length that no number of its country has"),
        _ => None,
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
pub(super) fn meant(text: &str) -> Option<String> {
    let without_plus = || international(&digits(text)?).filter(|e164| phone_facts(e164).assigned);
    typed_phone::<&str>(text, &[]).ok().or_else(without_plus)
}

/// Returns how to write a phone number that was written as digits only, to complete *write …*.
pub fn with_plus(digits: &str) -> String {
    meant(digits).unwrap_or_else(|| "+ and its country code first, as in +34600111222".to_owned())
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
    main.map_or_else(String::new, |region| region_code(region.as_region_str().as_ref()))
}

/// Returns a country's code; empty for what no country has, such as satellite phones (`001`).
fn region_code(region: &str) -> String {
    if region.len() == 2 { region.to_owned() } else { String::new() }
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
