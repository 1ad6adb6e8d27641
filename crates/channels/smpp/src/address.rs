//! Converts addresses to and from those of SMPP. Pure.

use nuncio_domain::address::sms_sender;

use crate::wire::Address;

/// International number of the ISDN plan.
const E164: (u8, u8) = (1, 1);
/// Letters.
const ALPHANUMERIC: (u8, u8) = (5, 0);
/// Longest address, in characters (§5.2.8: 21 octets with its NUL).
const LONGEST: usize = 20;
/// Longest sender made of letters: 11 septets (3GPP TS 23.040, 9.1.2.5).
const LONGEST_NAME: usize = 11;
/// Longest short code, in digits; a longer row of digits is a phone number.
const LONGEST_CODE: usize = 8;

/// Encodes one of our addresses: a number by its `+`, a short code with `code` (TON, NPI), anything else as a name; `""` leaves the choice
/// to the SMSC. Fails with what is wrong with it.
pub(crate) fn outgoing(address: &str, code: (u8, u8)) -> Result<Address, String> {
    let made = |(ton, npi), text: &str| Ok(Address { ton, npi, text: text.to_owned() });
    let digits = address.strip_prefix('+').unwrap_or(address);
    let numeric = !digits.is_empty() && digits.bytes().all(|b| b.is_ascii_digit());
    if address.is_empty() {
        return Ok(Address::default());
    }
    if numeric && digits.len() <= LONGEST {
        let is_code = digits.len() == address.len() && digits.len() <= LONGEST_CODE;
        return made(if is_code { code } else { E164 }, digits);
    }
    let printable = address.bytes().all(|b| b == b' ' || b.is_ascii_graphic());
    if numeric || !printable || address.starts_with('+') || address.len() > LONGEST_NAME {
        return Err(format!("{address:?} is neither a number, nor a short code, nor a name of at most {LONGEST_NAME} plain characters"));
    }
    made(ALPHANUMERIC, address)
}

/// An address of theirs in canonical form.
pub(crate) fn incoming(address: &Address) -> String {
    let international = match address.ton {
        0 => None,
        ton => Some(ton == E164.0),
    };
    sms_sender(&address.text, international)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_we_send() {
        for (given, ton, npi, text) in [
            ("+34600111222", 1, 1, "34600111222"),
            ("34600111222", 1, 1, "34600111222"),
            ("12345", 3, 0, "12345"),
            ("ACME", 5, 0, "ACME"),
            ("Acme & Co", 5, 0, "Acme & Co"),
            ("", 0, 0, ""),
        ] {
            assert_eq!(outgoing(given, (3, 0)), Ok(Address { ton, npi, text: text.into() }), "{given}");
        }
        for wrong in ["TwelveLetters", "Señor", "a\0b", "a\r\n", "123456789012345678901", "+", "+1a"] {
            assert!(outgoing(wrong, (3, 0)).is_err(), "{wrong:?}");
        }
    }

    #[test]
    fn what_they_send() {
        for (ton, text, canonical) in [
            (1, "34600111222", "+34600111222"),
            (1, "+34600111222", "+34600111222"),
            (0, "34600111222", "+34600111222"),
            (0, "0034600111222", "+34600111222"),
            (2, "600111222", "600111222"),
            (0, "0600111222", "0600111222"),
            (3, "12345", "12345"),
            (1, "12345", "12345"),
            (5, "ACME", "ACME"),
            (0, "", ""),
        ] {
            assert_eq!(incoming(&Address { ton, npi: 1, text: text.into() }), canonical, "{ton} {text}");
        }
    }
}
