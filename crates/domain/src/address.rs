//! Recipients: phone numbers, email addresses and chat ids, parsed once at the door.

use std::fmt;

use rlibphonenumber::{PHONE_NUMBER_UTIL, PhoneNumberFormat, PhoneNumberType};
use serde::{Deserialize, Serialize};

use crate::channel::{Channel, named};

named! {
    /// What an identifier is. A phone number is one identity across sms, whatsapp and voice.
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
    /// What it is.
    pub kind: AddressKind,
    /// Canonical text: `+` and digits, address with lower-cased domain, or signed decimal.
    pub identifier: String,
}

/// What a recipient looks like before the channel is known.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Parsed {
    /// A phone number in E.164.
    Phone(String),
    /// An email address.
    Email(String),
    /// A decimal number without `+`: a chat id, when the channel is telegram or instagram.
    Digits(String),
}

/// Why a recipient could not be read; the text says what would be right.
#[derive(Clone, PartialEq, Eq, Debug, thiserror::Error)]
#[error("{0}")]
pub struct InvalidRecipient(String);

const EXPECTED: &str = "an E.164 phone number such as +34600111222, an email address, or a numeric chat id";

impl Parsed {
    /// Reads what a caller wrote as a recipient.
    pub fn parse(text: &str) -> Result<Self, InvalidRecipient> {
        if text.contains('@') {
            return email(text).map(Self::Email);
        }
        if text.starts_with('+') {
            return phone(text).map(Self::Phone);
        }
        let digits = text.strip_prefix('-').unwrap_or(text);
        if !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit()) {
            return text.parse::<i64>().map(|id| Self::Digits(id.to_string())).map_err(|_| invalid(text, "is too long for a chat id"));
        }
        Err(invalid(text, "is no recipient"))
    }
}

fn invalid(text: &str, what: &str) -> InvalidRecipient {
    let shown: String = text.chars().take(64).collect();
    InvalidRecipient(format!("{shown:?} {what}; expected {EXPECTED}"))
}

/// Reads an E.164 phone number. Refused only when it cannot be parsed or has an impossible length (ITU-T E.164: at most 15 digits).
pub fn phone(text: &str) -> Result<String, InvalidRecipient> {
    let digits = text.strip_prefix('+').unwrap_or_default();
    if !(5..=15).contains(&digits.len()) || !digits.bytes().all(|b| b.is_ascii_digit()) || digits.starts_with('0') {
        return Err(invalid(text, "is not a phone number: + and 5 to 15 digits, country code first"));
    }
    let number = PHONE_NUMBER_UTIL.parse(text, None).map_err(|_| invalid(text, "has no known country code"))?;
    let e164 = PHONE_NUMBER_UTIL.format(&number, PhoneNumberFormat::E164);
    if e164 != text {
        return Err(invalid(text, &format!("is not in E.164 form; did you mean {e164}?")));
    }
    Ok(text.to_owned())
}

/// The sender of a text message in canonical form: `+` and digits for what is an international number, or looks like one; as it came
/// otherwise, as a short code or a name. `international` is what the gateway says of it, if anything.
pub fn sms_sender(text: &str, international: Option<bool>) -> String {
    let text = text.trim();
    let digits = text.strip_prefix('+').or_else(|| text.strip_prefix("00")).unwrap_or(text);
    let numeric = digits.bytes().all(|b| b.is_ascii_digit()) && (8..=15).contains(&digits.len());
    let marked = international == Some(true) || digits.len() < text.len();
    // Many leave the type of number unknown; as long as this, a national number is rare.
    let looks_so = international.is_none() && digits.len() > 9 && !digits.starts_with('0');
    if numeric && (marked || looks_so) { format!("+{digits}") } else { text.to_owned() }
}

/// What is known of a phone number from the public numbering plans.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhoneFacts {
    /// Country as ISO 3166-1 alpha-2; `""` when the number is in no known range.
    pub country: String,
    /// Whether the number lies in an assigned range.
    pub assigned: bool,
}

/// Looks a canonical phone number up in the numbering plans.
pub fn phone_facts(e164: &str) -> PhoneFacts {
    let Ok(number) = PHONE_NUMBER_UTIL.parse(e164, None) else {
        return PhoneFacts { country: String::new(), assigned: false };
    };
    PhoneFacts {
        country: PHONE_NUMBER_UTIL.get_region_for_number(&number).map_or_else(String::new, |region| region.as_region_str().to_string()),
        assigned: PHONE_NUMBER_UTIL.is_valid_number(&number),
    }
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

/// Whether a country (ISO 3166-1 alpha-2) has a numbering plan.
pub fn is_country(code: &str) -> bool {
    PHONE_NUMBER_UTIL.get_supported_regions().any(|region| region.as_region_str().to_string() == code)
}

/// What the numbering plans say of a number beyond [`PhoneFacts`].
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhonePlan {
    /// As it is dialled within its country.
    pub national: String,
    /// What kind of line it is.
    pub line: LineType,
}

named! {
    /// What kind of line a phone number is, as far as its range tells.
    LineType {
        /// A mobile phone.
        Mobile = 1 "mobile",
        /// A landline.
        FixedLine = 2 "fixed_line",
        /// One of both; the numbering plan does not tell them apart.
        FixedLineOrMobile = 3 "fixed_line_or_mobile",
        /// Free for the caller.
        TollFree = 4 "toll_free",
        /// Dear for the caller.
        PremiumRate = 5 "premium_rate",
        /// Over the internet.
        Voip = 6 "voip",
        /// Any other known kind.
        Other = 7 "other",
        /// In no known range.
        Unknown = 8 "unknown",
    }
}

impl LineType {
    /// Whether a line of this kind may take text messages.
    pub const fn takes_text(self) -> bool {
        matches!(self, Self::Mobile | Self::FixedLineOrMobile | Self::Voip | Self::Other)
    }
}

/// What the numbering plans say of a canonical phone number.
pub fn phone_plan(e164: &str) -> PhonePlan {
    let Ok(number) = PHONE_NUMBER_UTIL.parse(e164, None) else {
        return PhonePlan { national: String::new(), line: LineType::Unknown };
    };
    let line = match PHONE_NUMBER_UTIL.get_number_type(&number) {
        PhoneNumberType::Mobile => LineType::Mobile,
        PhoneNumberType::FixedLine => LineType::FixedLine,
        PhoneNumberType::FixedLineOrMobile => LineType::FixedLineOrMobile,
        PhoneNumberType::TollFree => LineType::TollFree,
        PhoneNumberType::PremiumRate => LineType::PremiumRate,
        PhoneNumberType::VoIP => LineType::Voip,
        PhoneNumberType::Unknown => LineType::Unknown,
        _ => LineType::Other,
    };
    PhonePlan { national: PHONE_NUMBER_UTIL.format(&number, PhoneNumberFormat::National).into_owned(), line }
}

/// Reads an email address (RFC 5321 mailbox, at most 254 octets, no quoted local part); its domain is lower-cased.
pub fn email(text: &str) -> Result<String, InvalidRecipient> {
    let wrong = || invalid(text, "is not an email address");
    if text.len() > 254 || text.contains('"') || text.chars().any(|c| c.is_control() || c.is_whitespace()) {
        return Err(wrong());
    }
    let options = email_address::Options::default().with_required_tld().without_display_text().without_domain_literal();
    let address = email_address::EmailAddress::parse_with_options(text, options).map_err(|_| wrong())?;
    Ok(format!("{}@{}", address.local_part(), address.domain().to_lowercase()))
}

impl Recipient {
    /// The recipient on `channel`, or why the two contradict each other.
    pub fn on(parsed: &Parsed, channel: Channel) -> Result<Self, InvalidRecipient> {
        let (kind, identifier) = match (parsed, channel) {
            (Parsed::Phone(number), Channel::Sms | Channel::SmsOneway | Channel::Whatsapp | Channel::Voice) => (AddressKind::Phone, number),
            (Parsed::Email(address), Channel::Email) => (AddressKind::Email, address),
            (Parsed::Digits(id), Channel::Telegram) => (AddressKind::Telegram, id),
            (Parsed::Digits(id), Channel::Instagram) => (AddressKind::Instagram, id),
            (Parsed::Digits(id), _) => {
                return Err(InvalidRecipient(format!(
                    "{id:?} is a chat id, which needs channel telegram or instagram; for a phone number write +{id}"
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
    fn phones() {
        for good in ["+34600111222", "+14155552671", "+15005550001", "+999123456"] {
            assert_eq!(Parsed::parse(good).is_ok(), good != "+999123456", "{good}");
        }
        for bad in ["+1", "+0034600111222", "+34 600", "+346001112223334445"] {
            assert!(Parsed::parse(bad).is_err(), "{bad}");
        }
        assert_eq!(phone_facts("+34600111222"), PhoneFacts { country: "ES".into(), assigned: true });
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
