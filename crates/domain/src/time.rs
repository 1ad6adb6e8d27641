//! Points in time, to the millisecond.

use std::fmt;
use std::sync::LazyLock;
use std::time::Duration;

use jiff::tz::{TimeZone, TimeZoneDatabase};
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Milliseconds since the Unix epoch, UTC. Written as RFC 3339 with three decimals and `Z`.
///
/// The range that is ever used, years 1970 to 9999, round-trips exactly through both databases and through JSON.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Timestamp(i64);

/// Not an RFC 3339 date-time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("must be an ISO 8601 date-time with an offset, such as 2030-01-31T09:30:00.000Z")]
pub struct InvalidTimestamp;

impl Timestamp {
    /// Makes a timestamp from Unix milliseconds.
    pub const fn from_millis(millis: i64) -> Self {
        Self(millis)
    }

    /// Returns Unix milliseconds.
    pub const fn millis(self) -> i64 {
        self.0
    }

    /// Parses an ISO 8601 date-time with an offset (RFC 3339); truncates to milliseconds.
    pub fn parse(text: &str) -> Result<Self, InvalidTimestamp> {
        chrono::DateTime::parse_from_rfc3339(text).map(|t| Self(t.timestamp_millis())).map_err(|_| InvalidTimestamp)
    }

    /// Parses a bound of a range of timestamps: the first one at or after the time.
    pub fn parse_bound(text: &str) -> Result<Self, InvalidTimestamp> {
        let time = chrono::DateTime::parse_from_rfc3339(text).map_err(|_| InvalidTimestamp)?;
        let is_between = time.timestamp_subsec_nanos() % 1_000_000 != 0;
        Ok(Self(time.timestamp_millis() + i64::from(is_between)))
    }

    /// Returns the time this much later; saturates at the end of the range.
    #[must_use]
    pub const fn plus(self, by: Duration) -> Self {
        let millis = by.as_millis();
        Self(self.0.saturating_add(if millis > i64::MAX as u128 { i64::MAX } else { millis as i64 }))
    }

    /// Returns the time this much earlier; saturates at the start of the range.
    #[must_use]
    pub const fn minus(self, by: Duration) -> Self {
        let millis = by.as_millis();
        Self(self.0.saturating_sub(if millis > i64::MAX as u128 { i64::MAX } else { millis as i64 }))
    }

    /// Returns the time this many calendar months later, at the same time of day; clamped to the last day of a shorter month. Saturates at
    /// the end of the range.
    #[must_use]
    pub fn plus_months(self, months: u32) -> Self {
        let later = chrono::DateTime::from_timestamp_millis(self.0).and_then(|at| at.checked_add_months(chrono::Months::new(months)));
        later.map_or(Self(i64::MAX), |at| Self(at.timestamp_millis()))
    }

    /// Returns the time since `earlier`; zero if `earlier` is later.
    pub const fn since(self, earlier: Self) -> Duration {
        let millis = self.0.saturating_sub(earlier.0);
        Duration::from_millis(if millis < 0 { 0 } else { millis as u64 })
    }
}

impl fmt::Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // Civil date from days since the epoch (proleptic Gregorian calendar), written out because this is on the hot path.
        let (days, of_day) = (self.0.div_euclid(86_400_000), self.0.rem_euclid(86_400_000));
        let z = days + 719_468;
        let era = z.div_euclid(146_097);
        let doe = z.rem_euclid(146_097);
        let yoe = (doe - doe / 1_460 + doe / 36_524 - doe / 146_096) / 365;
        let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
        let mp = (5 * doy + 2) / 153;
        let day = doy - (153 * mp + 2) / 5 + 1;
        let month = if mp < 10 { mp + 3 } else { mp - 9 };
        let year = yoe + era * 400 + i64::from(month <= 2);
        let (seconds, millis) = (of_day / 1_000, of_day % 1_000);
        let (h, m, s) = (seconds / 3_600, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{h:02}:{m:02}:{s:02}.{millis:03}Z")
    }
}

impl fmt::Debug for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

static ZONES: LazyLock<TimeZoneDatabase> = LazyLock::new(TimeZoneDatabase::bundled);

/// Returns the time zone of an IANA name, in any case. Uses the database in the binary, so that all nodes have the same rules.
pub fn zone(name: &str) -> Option<TimeZone> {
    ZONES.get(name).ok().filter(|zone| !zone.is_unknown())
}

/// Serialises a `Timestamp` as a number of milliseconds, for compact stored JSON.
pub mod millis {
    use super::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    pub fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_i64(at.millis())
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        i64::deserialize(deserializer).map(Timestamp::from_millis)
    }

    /// The same for an optional timestamp.
    pub mod option {
        use super::super::Timestamp;
        use serde::{Deserialize, Deserializer, Serializer};

        pub fn serialize<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
            match at {
                Some(at) => serializer.serialize_i64(at.millis()),
                None => serializer.serialize_none(),
            }
        }

        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
            Ok(Option::<i64>::deserialize(deserializer)?.map(Timestamp::from_millis))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn display_agrees_with_the_parser_over_four_centuries() {
        for day in (-36_525..146_097).step_by(17) {
            let at = Timestamp::from_millis(day * 86_400_000 + 45_296_789);
            assert_eq!(Timestamp::parse(&at.to_string()), Ok(at));
        }
        assert_eq!(Timestamp::from_millis(1_763_722_800_123).to_string(), "2025-11-21T11:00:00.123Z");
    }

    #[test]
    fn offsets_are_understood_and_required() {
        assert_eq!(Timestamp::parse("2025-11-21T12:00:00+01:00"), Timestamp::parse("2025-11-21T11:00:00Z"));
        assert!(Timestamp::parse("2025-11-21T12:00:00").is_err());
        assert!(Timestamp::parse("tomorrow").is_err());
    }
}
