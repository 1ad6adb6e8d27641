//! Quiet hours: the part of the day without messages.

use std::fmt;
use std::time::Duration;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize, Serializer};

use crate::FieldError;
use crate::time::{self, Timestamp};

/// A local time of day in minutes, written `HH:MM`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct TimeOfDay(u16);

impl TimeOfDay {
    /// Reads `HH:MM`, `00:00` to `23:59`.
    pub fn parse(text: &str) -> Option<Self> {
        let [h1, h2, b':', m1, m2] = text.as_bytes() else { return None };
        let number = |tens: &u8, ones: &u8| {
            let digits = tens.is_ascii_digit() && ones.is_ascii_digit();
            digits.then(|| u16::from(tens - b'0') * 10 + u16::from(ones - b'0'))
        };
        let (hour, minute) = (number(h1, h2)?, number(m1, m2)?);
        (hour < 24 && minute < 60).then_some(Self(hour * 60 + minute))
    }

    /// Returns the time since local midnight.
    pub const fn since_midnight(self) -> Duration {
        Duration::from_secs(self.0 as u64 * 60)
    }
}

impl fmt::Display for TimeOfDay {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:02}:{:02}", self.0 / 60, self.0 % 60)
    }
}

impl Serialize for TimeOfDay {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// The part of each day in which a broadcast sends no messages, in the recipient's local time.
#[serde_with::skip_serializing_none]
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "camelCase", try_from = "WrittenQuietHours")]
pub struct QuietHours {
    /// First minute of the quiet hours, `HH:MM`. If it is later than `to`, the quiet hours span midnight.
    from: TimeOfDay,
    /// First minute after the quiet hours, `HH:MM`. Must differ from `from`.
    to: TimeOfDay,
    /// IANA time zone of recipients without a known one, such as email addresses and chat ids. Default: `UTC`.
    #[cfg_attr(feature = "openapi", schema(example = "Europe/Madrid"))]
    time_zone: Option<String>,
}

/// Unvalidated [`QuietHours`].
#[derive(Clone, PartialEq, Eq, Debug, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = NewQuietHours))]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct WrittenQuietHours {
    /// First minute of the quiet hours, `HH:MM`. If it is later than `to`, the quiet hours span midnight.
    #[cfg_attr(feature = "openapi", schema(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$", example = "21:00"))]
    pub from: String,
    /// First minute after the quiet hours, `HH:MM`. Must differ from `from`.
    #[cfg_attr(feature = "openapi", schema(pattern = "^([01][0-9]|2[0-3]):[0-5][0-9]$", example = "08:00"))]
    pub to: String,
    /// IANA time zone of recipients without a known one, such as email addresses and chat ids. Default: `UTC`.
    #[cfg_attr(feature = "openapi", schema(max_length = 64, example = "Europe/Madrid"))]
    pub time_zone: Option<String>,
}

impl TryFrom<WrittenQuietHours> for QuietHours {
    type Error = String;

    fn try_from(written: WrittenQuietHours) -> Result<Self, String> {
        Self::new(&written.from, &written.to, written.time_zone.as_deref()).map_err(|errors| {
            let lines: Vec<String> = errors.into_iter().map(|error| format!("{} {}", error.path, error.message)).collect();
            lines.join("; ")
        })
    }
}

impl QuietHours {
    /// Validates all fields; error paths are `from`, `to` and `timeZone`.
    pub fn new(from: &str, to: &str, time_zone: Option<&str>) -> Result<Self, Vec<FieldError>> {
        let mut errors = Vec::new();
        let mut time = |path: &str, text: &str| {
            let time = TimeOfDay::parse(text);
            if time.is_none() {
                errors.push(FieldError::new(path, format!("is {text:?}; must be a local time as HH:MM, 00:00 to 23:59, such as 21:00")));
            }
            time
        };
        let (from, to) = (time("from", from), time("to", to));
        if let (Some(from), Some(to)) = (from, to)
            && from == to
        {
            errors
                .push(FieldError::new("to", format!("is \"{to}\", the same as from; must differ, since quiet hours cannot last all day")));
        }
        let zone = time_zone.map(|name| (name, time::zone(name)));
        if let Some((name, None)) = &zone {
            errors.push(FieldError::new("timeZone", format!("is {name:?}; must be an IANA time zone such as Europe/Madrid or UTC")));
        }
        match (from, to) {
            (Some(from), Some(to)) if errors.is_empty() => {
                let canonical = |zone: TimeZone| zone.iana_name().map(str::to_owned);
                Ok(Self { from, to, time_zone: zone.and_then(|(_, zone)| zone).and_then(canonical) })
            }
            _ => Err(errors),
        }
    }

    pub const fn from(&self) -> TimeOfDay {
        self.from
    }

    pub const fn to(&self) -> TimeOfDay {
        self.to
    }

    pub fn default_zone(&self) -> TimeZone {
        self.time_zone.as_deref().and_then(time::zone).unwrap_or(TimeZone::UTC)
    }
}

/// When the quiet hours of one recipient begin, and how long they last. They repeat each day; changes of the clock after the first are
/// ignored, and so are further quiet hours of the same day, which a country with several time zones can have.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct RecipientQuietHours {
    /// When they begin for the first time.
    #[serde(rename = "f")]
    pub from: Timestamp,
    /// How long they last, in seconds; 0 for never.
    #[serde(rename = "s")]
    pub seconds: u32,
}

impl RecipientQuietHours {
    /// Returns when the quiet hours that `now` is in end; `None` if it is in none.
    pub fn end(&self, now: Timestamp) -> Option<Timestamp> {
        const DAY: Duration = Duration::from_secs(86_400);
        let since = now.since(self.from).as_millis() % DAY.as_millis();
        let length = Duration::from_secs(self.seconds.into()).as_millis();
        (now >= self.from && since < length).then(|| now.plus(Duration::from_millis((length - since) as u64)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quiet_hours_are_read_and_written() {
        let json = r#"{"from":"21:00","to":"08:00","timeZone":"Europe/Madrid"}"#;
        let hours: QuietHours = serde_json::from_str(json).unwrap();
        assert_eq!(serde_json::to_string(&hours).unwrap(), json);
        assert_eq!(hours.from().since_midnight(), Duration::from_secs(21 * 3_600));
        assert_eq!(hours.default_zone().iana_name(), Some("Europe/Madrid"));

        let without = QuietHours::new("00:00", "23:59", None).unwrap();
        assert_eq!(serde_json::to_string(&without).unwrap(), r#"{"from":"00:00","to":"23:59"}"#);
        assert_eq!(without.default_zone(), TimeZone::UTC);
        let other_case = QuietHours::new("21:00", "08:00", Some("europe/madrid"));
        assert_eq!(other_case, Ok(hours), "names of zones are stored as IANA writes them");
    }

    #[test]
    fn invalid_quiet_hours_name_the_field_and_the_value() {
        let faults = |from, to, zone| -> Vec<(String, String)> {
            QuietHours::new(from, to, zone).unwrap_err().into_iter().map(|e| (e.path, e.message)).collect()
        };
        for text in ["", "8:00", "24:00", "08:60", "08:00:00", "08.00", "+8:00", "0８:0"] {
            let found = faults(text, "08:00", None);
            assert_eq!(found.len(), 1, "{text}");
            assert_eq!(found[0].0, "from");
            assert!(found[0].1.contains(&format!("{text:?}")) && found[0].1.contains("HH:MM"), "{found:?}");
        }
        let all: Vec<String> = faults("9", "x", Some("Mars/Olympus")).into_iter().map(|(path, _)| path).collect();
        assert_eq!(all, ["from", "to", "timeZone"]);
        assert_eq!(faults("08:00", "08:00", None)[0].0, "to");
        for zone in ["", "Madrid", "+02:00", "CET-1CEST", "Etc/Unknown", "../etc/passwd"] {
            assert_eq!(faults("21:00", "08:00", Some(zone))[0].0, "timeZone", "{zone}");
        }
        let error = serde_json::from_str::<QuietHours>(r#"{"from":"21:00","to":"25:00"}"#).unwrap_err().to_string();
        assert!(error.starts_with(r#"to is "25:00"; must be"#), "{error}");
        assert!(serde_json::from_str::<QuietHours>(r#"{"from":"21:00","to":"08:00","timezone":"UTC"}"#).is_err(), "unknown field");
    }
}
