//! Amounts of money.

use std::fmt;

use serde::{Serialize, Serializer, ser::Error as _};

/// An amount in micro-dollars (10⁻⁶ US dollars). Integer arithmetic only.
///
/// Serialises as a JSON number of US dollars with at most six decimals and no exponent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash, serde::Deserialize)]
#[serde(transparent)]
pub struct Micros(pub i64);

impl Micros {
    /// Parses a JSON number of US dollars without float arithmetic. `None` if it has more than six decimals or is out of range.
    pub fn from_dollars(dollars: &serde_json::Number) -> Option<Self> {
        // For a fraction, the shortest text of the same value, never with an exponent.
        let text = match dollars.as_f64() {
            Some(fraction) if dollars.is_f64() => fraction.to_string(),
            _ => dollars.to_string(),
        };
        let (whole, part) = text.split_once('.').unwrap_or((&text, ""));
        Self::parse(&format!("{whole}.{:0<1}", part.trim_end_matches('0')))
    }

    /// Returns the sum, or `None` on overflow.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }

    /// Parses a decimal number of US dollars with at most six decimals; never rounds.
    pub fn parse(text: &str) -> Option<Self> {
        let (negative, digits) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
        let (whole, part) = digits.split_once('.').unwrap_or((digits, "0"));
        let is_number = |text: &str| !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
        if !is_number(whole) || !is_number(part) || part.len() > 6 {
            return None;
        }
        let micros = whole.parse::<i64>().ok()?.checked_mul(1_000_000)?.checked_add(format!("{part:0<6}").parse().ok()?)?;
        Some(Self(if negative { -micros } else { micros }))
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, amount) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let (whole, part) = (amount / 1_000_000, amount % 1_000_000);
        // `{:#}` is for texts, which always have cents.
        if part == 0 && !f.alternate() {
            return write!(f, "{sign}{whole}");
        }
        let decimals = format!("{part:06}");
        let least = if f.alternate() { 2 } else { 0 };
        write!(f, "{sign}{whole}.{:0<least$}", decimals.trim_end_matches('0'))
    }
}

impl Serialize for Micros {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serde_json::value::RawValue::from_string(self.to_string()).map_err(S::Error::custom)?.serialize(serializer)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dollars_are_read_to_the_micro() {
        for (json, micros) in
            [("0.1", Some(100_000)), ("-2.5", Some(-2_500_000)), ("12", Some(12_000_000)), ("0.000001", Some(1)), ("1.0", Some(1_000_000))]
        {
            let number = serde_json::from_str(json).unwrap_or_else(|_| panic!("{json}"));
            assert_eq!(Micros::from_dollars(&number), micros.map(Micros), "{json}");
        }
        for json in ["0.0000001", "1e-7", "1e300", "99999999999999999999"] {
            let number = serde_json::from_str(json).unwrap_or_else(|_| panic!("{json}"));
            assert_eq!(Micros::from_dollars(&number), None, "{json}");
        }
    }

    #[test]
    fn json_has_no_exponent_and_no_rounding() {
        for (micros, json) in [(1, "0.000001"), (-2_500_000, "-2.5"), (0, "0"), (i64::MAX, "9223372036854.775807")] {
            assert_eq!(serde_json::to_string(&Micros(micros)).ok().as_deref(), Some(json));
            assert_eq!(Micros::parse(json), Some(Micros(micros)));
        }
        for bad in ["", "-", ".5", "1.", "1.0000001", "1e3", "1,5", "+1", " 1", "9223372036854.775808"] {
            assert_eq!(Micros::parse(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn texts_have_cents() {
        assert_eq!([100_000, 0, -2_570_700].map(|sum| format!("{:#}", Micros(sum))), ["0.10", "0.00", "-2.5707"]);
    }
}
