//! Countries of recipients.

use std::fmt;

use serde::{Deserialize, Serialize};

/// A country by its ISO 3166-1 alpha-2 code, or none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Country([u8; 2]);

impl Country {
    /// No country is known.
    pub const UNKNOWN: Self = Self([0, 0]);

    /// Returns the country with this code; [`UNKNOWN`](Self::UNKNOWN) unless it is two capital letters.
    pub fn of(code: &str) -> Self {
        match code.as_bytes() {
            [a @ b'A'..=b'Z', b @ b'A'..=b'Z'] => Self([*a, *b]),
            _ => Self::UNKNOWN,
        }
    }

    /// Returns whether no country is known.
    pub fn is_unknown(&self) -> bool {
        *self == Self::UNKNOWN
    }

    /// Returns the code; `""` if unknown.
    pub fn as_str(&self) -> &str {
        if self.is_unknown() { "" } else { std::str::from_utf8(&self.0).unwrap_or_default() }
    }
}

impl From<String> for Country {
    fn from(code: String) -> Self {
        Self::of(&code)
    }
}

impl From<Country> for String {
    fn from(country: Country) -> Self {
        country.as_str().to_owned()
    }
}

impl fmt::Debug for Country {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}
