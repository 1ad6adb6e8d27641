//! Money.

use std::fmt;

use serde::ser::Error as _;
use serde::{Serialize, Serializer};

/// An amount in micro-dollars (10⁻⁶ US dollars). Integer arithmetic only.
///
/// Serialises as a JSON number of US dollars with at most six decimals and no exponent.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Default, Hash, serde::Deserialize)]
#[serde(transparent)]
pub struct Micros(pub i64);

impl Micros {
    /// The sum, or `None` when it leaves the range of 64 bits.
    pub const fn checked_add(self, other: Self) -> Option<Self> {
        match self.0.checked_add(other.0) {
            Some(sum) => Some(Self(sum)),
            None => None,
        }
    }
}

impl fmt::Display for Micros {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sign, amount) = (if self.0 < 0 { "-" } else { "" }, self.0.unsigned_abs());
        let (whole, part) = (amount / 1_000_000, amount % 1_000_000);
        if part == 0 {
            return write!(f, "{sign}{whole}");
        }
        let decimals = format!("{part:06}");
        write!(f, "{sign}{whole}.{}", decimals.trim_end_matches('0'))
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
    fn json_has_no_exponent_and_no_rounding() {
        for (micros, json) in [(1, "0.000001"), (-2_500_000, "-2.5"), (0, "0"), (i64::MAX, "9223372036854.775807")] {
            assert_eq!(serde_json::to_string(&Micros(micros)).ok().as_deref(), Some(json));
        }
    }
}
