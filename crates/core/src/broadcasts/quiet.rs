//! Computes when a message of a broadcast may be sent to a recipient: outside quiet hours in local time.
//!
//! The phone number determines the time zones: those of the area code for +1, otherwise all of the country. Numbers move with people, so
//! this is a guess, not a location. With several zones, the message waits until it is outside quiet hours in all of them.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::sync::LazyLock;
use std::time::Duration;

use jiff::tz::TimeZone;
use nuncio_domain::broadcast::{QuietHours, RecipientQuietHours};
use nuncio_domain::{AddressKind, Recipient, Timestamp, address, time};

/// Countries and their time zones, from the tzdata release that jiff bundles. Public domain.
const COUNTRIES: &str = include_str!("quiet/zone1970.tab");
/// Time zones and their +1 area codes.
const AREA_CODES: &str = include_str!("quiet/area_codes.tsv");
/// Regions of numbering plans that tzdata does not list.
const UNLISTED: [(&str, &str); 3] = [("AC", "Africa/Abidjan"), ("TA", "Africa/Abidjan"), ("XK", "Europe/Belgrade")];

const DAY: i64 = 86_400_000;
/// How far ahead to search for a time outside quiet hours in all time zones.
const HORIZON: Duration = Duration::from_secs(48 * 3_600);

type ZoneNames = Vec<&'static str>;

/// Time zones by country (ISO 3166-1 alpha-2) or +1 area code, which cannot collide.
static PLACES: LazyLock<HashMap<&'static str, ZoneNames>> = LazyLock::new(|| {
    let mut places: HashMap<&str, ZoneNames> = UNLISTED.map(|(country, zone)| (country, vec![zone])).into();
    for row in rows(COUNTRIES) {
        let [countries, _, zone, ..] = row[..] else { continue };
        for country in countries.split(',') {
            places.entry(country).or_default().push(zone);
        }
    }
    for row in rows(AREA_CODES) {
        let [zones, codes] = row[..] else { continue };
        places.extend(codes.split(' ').map(|code| (code, zones.split(' ').collect())));
    }
    places
});

fn rows(table: &'static str) -> impl Iterator<Item = ZoneNames> {
    table.lines().filter(|line| !line.starts_with('#')).map(|line| line.split('\t').collect())
}

/// Returns the country or area code of a recipient, as a key of [`PLACES`]; `None` if unknown.
///
/// A phone number outside known ranges counts for the main country of its calling code.
fn place(recipient: &Recipient) -> Option<&'static str> {
    if recipient.kind != AddressKind::Phone {
        return None;
    }
    let known = |key: &str| PLACES.get_key_value(key).map(|(key, _)| *key);
    let area_code = recipient.identifier.strip_prefix("+1").and_then(|national| national.get(..3));
    area_code.and_then(known).or_else(|| known(&address::country(&recipient.identifier)))
}

#[cfg(test)]
fn not_before(hours: &QuietHours, recipient: &Recipient, now: Timestamp) -> Option<Timestamp> {
    QuietClock::new(hours, now).ask(recipient).err()
}

/// Computes quiet hours for one moment, with a cache by country and area code.
pub(super) struct QuietClock {
    /// Start and end of quiet hours, in milliseconds since local midnight.
    from: i64,
    to: i64,
    default_zone: TimeZone,
    now: Timestamp,
    answers: HashMap<Option<&'static str>, Result<RecipientQuietHours, Timestamp>>,
}

impl QuietClock {
    pub(super) fn new(hours: &QuietHours, now: Timestamp) -> Self {
        let millis = |since_midnight: Duration| since_midnight.as_millis() as i64;
        Self {
            from: millis(hours.from().since_midnight()),
            to: millis(hours.to().since_midnight()),
            default_zone: hours.default_zone(),
            now,
            answers: HashMap::new(),
        }
    }

    /// Returns the next quiet hours of `recipient`, or as an error when a message may be sent, if not now.
    ///
    /// This is the first time outside quiet hours in all possible time zones of the recipient. If there is none within 48 hours, because
    /// the zones are too far apart, it is the first time outside quiet hours in as many of them as possible.
    pub(super) fn ask(&mut self, recipient: &Recipient) -> Result<RecipientQuietHours, Timestamp> {
        let place = place(recipient);
        if let Some(answer) = self.answers.get(&place) {
            return *answer;
        }
        let zones: Vec<TimeZone> = match place {
            Some(place) => PLACES[place].iter().filter_map(|name| time::zone(name)).collect(),
            None => vec![self.default_zone.clone()],
        };
        let earliest = self.earliest(&zones, self.now);
        let answer = if earliest > self.now { Err(earliest) } else { Ok(self.next(&zones)) };
        self.answers.insert(place, answer);
        answer
    }

    /// Returns the next quiet hours of a recipient who is in none now: they begin when the first of the open `zones` closes.
    fn next(&self, zones: &[TimeZone]) -> RecipientQuietHours {
        let open = zones.iter().filter(|zone| !self.state(zone, self.now).0);
        let from = open.map(|zone| self.closes(zone, self.now)).min().unwrap_or(self.now);
        RecipientQuietHours { from, seconds: self.earliest(zones, from).since(from).as_secs() as u32 }
    }

    fn earliest(&self, zones: &[TimeZone], from: Timestamp) -> Timestamp {
        self.open_in_all(zones, from).unwrap_or_else(|| self.open_in_most(zones, from))
    }

    /// Returns the first time within the horizon outside quiet hours in all `zones`.
    fn open_in_all(&self, zones: &[TimeZone], from: Timestamp) -> Option<Timestamp> {
        let mut at = from;
        while at <= from.plus(HORIZON) {
            // Until the last zone opens, that one is quiet.
            let opened = zones.iter().map(|zone| self.opens(zone, at)).max().unwrap_or(at);
            if opened == at {
                return Some(at);
            }
            at = opened;
        }
        None
    }

    /// Returns the first time within the horizon outside quiet hours in as many of `zones` as possible.
    fn open_in_most(&self, zones: &[TimeZone], from: Timestamp) -> Timestamp {
        let open = |at: Timestamp| zones.iter().filter(|zone| !self.state(zone, at).0).count();
        // The number of open zones only grows when a zone opens.
        let openings = zones.iter().flat_map(|zone| {
            let reopens = |at: &Timestamp| Some(self.opens(zone, self.closes(zone, *at)));
            std::iter::successors(Some(self.opens(zone, from)), reopens).take_while(|at| *at <= from.plus(HORIZON))
        });
        openings.chain([from]).max_by_key(|at| (open(*at), Reverse(*at))).unwrap_or(from)
    }

    /// Returns the first time from `at` on outside quiet hours in `zone`.
    fn opens(&self, zone: &TimeZone, at: Timestamp) -> Timestamp {
        self.first(zone, at, false)
    }

    /// Returns the first time from `at` on within quiet hours in `zone`.
    fn closes(&self, zone: &TimeZone, at: Timestamp) -> Timestamp {
        self.first(zone, at, true)
    }

    fn first(&self, zone: &TimeZone, mut at: Timestamp, quiet: bool) -> Timestamp {
        loop {
            let (is_quiet, remaining) = self.state(zone, at);
            if is_quiet == quiet {
                return at;
            }
            // If the clocks change before that, evaluate the local time after the change.
            let changed = zone.following(instant(at)).next().map(|change| Timestamp::from_millis(change.timestamp().as_millisecond()));
            let due = at.plus(remaining);
            at = changed.map_or(due, |changed| due.min(changed));
        }
    }

    /// Returns whether `at` is within quiet hours in `zone`, and how long that lasts without a clock change.
    fn state(&self, zone: &TimeZone, at: Timestamp) -> (bool, Duration) {
        let local = at.millis() + i64::from(zone.to_offset(instant(at)).seconds()) * 1_000;
        let until = |time_of_day: i64| (time_of_day - local).rem_euclid(DAY);
        let quiet = (local - self.from).rem_euclid(DAY) < (self.to - self.from).rem_euclid(DAY);
        (quiet, Duration::from_millis(until(if quiet { self.to } else { self.from }).unsigned_abs()))
    }
}

/// Clamps to the end of the year 9999.
fn instant(at: Timestamp) -> jiff::Timestamp {
    jiff::Timestamp::from_millisecond(at.millis()).unwrap_or(jiff::Timestamp::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn night() -> QuietHours {
        QuietHours::new("21:00", "08:00", None).unwrap()
    }

    fn within(from: &str, to: &str, zone: &str) -> QuietHours {
        QuietHours::new(from, to, Some(zone)).unwrap()
    }

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(&format!("{text}:00Z")).unwrap()
    }

    fn phone(identifier: &str) -> Recipient {
        Recipient { kind: AddressKind::Phone, identifier: identifier.to_owned() }
    }

    fn email() -> Recipient {
        Recipient { kind: AddressKind::Email, identifier: "ana@example.com".to_owned() }
    }

    /// Asserts the result at each time; `-` means now.
    fn check(hours: &QuietHours, recipient: &Recipient, expected: &[(&str, &str)]) {
        for (now, earliest) in expected {
            let earliest = (*earliest != "-").then(|| at(earliest));
            assert_eq!(not_before(hours, recipient, at(now)), earliest, "{hours:?} for {recipient:?} at {now}");
        }
    }

    #[test]
    fn quiet_hours_begin_and_end_to_the_minute() {
        let over_midnight = within("21:00", "08:00", "Asia/Kolkata");
        check(
            &over_midnight,
            &email(),
            &[
                ("2026-01-15T15:29", "-"),
                ("2026-01-15T15:30", "2026-01-16T02:30"),
                ("2026-01-15T18:30", "2026-01-16T02:30"),
                ("2026-01-16T02:29", "2026-01-16T02:30"),
                ("2026-01-16T02:30", "-"),
            ],
        );
        let siesta = within("13:30", "16:00", "Asia/Kolkata");
        check(
            &siesta,
            &email(),
            &[("2026-01-15T07:59", "-"), ("2026-01-15T08:00", "2026-01-15T10:30"), ("2026-01-15T10:30", "-"), ("2026-01-15T18:30", "-")],
        );
        let second = Timestamp::from_millis(at("2026-01-15T10:30").millis() - 1);
        assert_eq!(not_before(&siesta, &email(), second), Some(at("2026-01-15T10:30")), "whole milliseconds before it");
    }

    #[test]
    fn clocks_change_during_the_night() {
        let night = within("21:00", "08:00", "Europe/Madrid");
        check(
            &night,
            &email(),
            &[
                ("2026-03-28T20:00", "2026-03-29T06:00"), // an hour less
                ("2026-03-29T05:59", "2026-03-29T06:00"),
                ("2026-10-24T19:00", "2026-10-25T07:00"), // an hour more
                ("2026-10-25T06:59", "2026-10-25T07:00"),
            ],
        );
        let until_half_past_two = within("22:00", "02:30", "Europe/Madrid");
        check(
            &until_half_past_two,
            &email(),
            &[
                ("2026-03-29T00:59", "2026-03-29T01:00"), // 02:30 does not exist: from 03:00 on
                ("2026-10-25T00:29", "2026-10-25T00:30"), // the first 02:30
                ("2026-10-25T00:45", "-"),
                ("2026-10-25T01:00", "2026-10-25T01:30"), // 02:00 again
            ],
        );
        let skipped = within("02:10", "02:50", "Europe/Madrid");
        check(&skipped, &email(), &[("2026-03-29T00:59", "-"), ("2026-03-29T01:00", "-"), ("2026-03-28T01:20", "2026-03-28T01:50")]);
    }

    /// Compares with a search minute by minute, using the local time of the library.
    #[test]
    fn each_minute_around_clock_changes_agrees_with_a_search() {
        let changes = [
            ("Europe/Madrid", "2026-03-29T01:00"),
            ("Europe/Madrid", "2026-10-25T01:00"),
            ("America/New_York", "2026-11-01T06:00"),
            ("Australia/Lord_Howe", "2026-04-04T15:00"),
            ("Australia/Lord_Howe", "2026-10-03T15:30"),
            ("Asia/Kathmandu", "2026-06-01T00:00"),
        ];
        for (zone, change) in changes {
            for (from, to) in [("21:00", "08:00"), ("01:40", "02:20"), ("02:20", "01:40"), ("00:00", "23:59"), ("12:00", "02:30")] {
                agrees_with_a_search(&within(from, to, zone), at(change));
            }
        }
    }

    fn agrees_with_a_search(hours: &QuietHours, change: Timestamp) {
        const MINUTES: i64 = 60_000;
        let (from, to) = (hours.from().to_string(), hours.to().to_string());
        let zone = hours.default_zone();
        let quiet = |at: Timestamp| {
            let local = instant(at).to_zoned(zone.clone()).strftime("%H:%M").to_string();
            if from < to { from <= local && local < to } else { from <= local || local < to }
        };
        let mut open = None;
        for minute in (-1_500..3_000).rev() {
            let now = Timestamp::from_millis(change.millis() + minute * MINUTES);
            if !quiet(now) {
                open = Some(now);
            }
            if minute < 1_500 {
                let expected = open.filter(|open| *open != now);
                assert_eq!(not_before(hours, &email(), now), expected, "{hours:?} at {now}");
            }
        }
    }

    #[test]
    fn all_time_zones_of_a_phone_number_count() {
        // On a day in January, in UTC: when all zones of the number are open, and when the first one closes.
        let windows = [
            ("+4915112345678", "07:00", "20:00"),
            ("+34600111222", "08:00", "20:00"),   // Canary Islands, mainland
            ("+5511961234567", "13:00", "23:00"), // Acre, Fernando de Noronha
            ("+79161234567", "06:00", "09:00"),   // Kaliningrad, Kamchatka
            ("+77011234567", "03:00", "16:00"),   // Kazakhstan, with the same calling code
            ("+61412345678", "00:00", "10:00"),   // Perth, Sydney
            ("+12125550123", "13:00", "02:00"),   // New York
            ("+14805550123", "15:00", "04:00"),   // Phoenix
            ("+18505550123", "14:00", "02:00"),   // Florida, both sides of the zone border
            ("+14165550123", "13:00", "02:00"),   // Toronto
            ("+19995550123", "18:00", "02:00"),   // United States, unknown area code: Hawaii, New York
            ("+38344123456", "07:00", "20:00"),   // Kosovo
        ];
        let minute = Duration::from_secs(60);
        for (number, opens, closes) in windows {
            let opens = at(&format!("2026-01-15T{opens}"));
            let closed = at(&format!("2026-01-15T{closes}"));
            let closes = if closed > opens { closed } else { Timestamp::from_millis(closed.millis() + DAY) };
            let recipient = phone(number);
            let ask = |now| not_before(&night(), &recipient, now);
            assert_eq!(ask(opens.minus(minute)), Some(opens), "{number}");
            assert_eq!(ask(opens), None, "{number}");
            let next = QuietClock::new(&night(), opens).ask(&recipient).expect(number);
            let seconds = (opens.millis() + DAY - closes.millis()) / 1_000;
            assert_eq!((next.from, i64::from(next.seconds)), (closes, seconds), "{number}");
            assert_eq!(ask(closes.minus(minute)), None, "{number}");
            assert_eq!(ask(closes), Some(Timestamp::from_millis(opens.millis() + DAY)), "{number}");
        }
        // Hawaii and Arizona have no daylight saving time.
        check(&night(), &phone("+12125550123"), &[("2026-07-15T11:59", "2026-07-15T12:00"), ("2026-07-15T12:00", "-")]);
        check(&night(), &phone("+14805550123"), &[("2026-07-15T14:59", "2026-07-15T15:00"), ("2026-07-15T15:00", "-")]);
        check(&night(), &phone("+19995550123"), &[("2026-07-15T17:59", "2026-07-15T18:00"), ("2026-07-16T00:59", "-")]);
    }

    #[test]
    fn zones_too_far_apart_take_the_moment_that_suits_most() {
        // Two hours a day, in a country that spans ten: at 13:00 UTC it is 16:00 in Moscow and 17:00 in Samara, most of the zones.
        let hours = QuietHours::new("18:00", "16:00", None).unwrap();
        check(
            &hours,
            &phone("+79161234567"),
            &[
                ("2026-01-15T05:00", "2026-01-15T13:00"),
                ("2026-01-15T13:00", "-"),
                ("2026-01-15T13:59", "-"),
                ("2026-01-15T14:00", "2026-01-16T13:00"),
            ],
        );
    }

    #[test]
    fn recipients_without_a_known_zone_have_the_default_one() {
        let madrid = within("21:00", "08:00", "Europe/Madrid");
        let telegram = Recipient { kind: AddressKind::Telegram, identifier: "12125550123".to_owned() };
        let satellite = phone("+870773111632");
        for recipient in [email(), telegram, satellite] {
            check(&night(), &recipient, &[("2026-07-15T07:59", "2026-07-15T08:00"), ("2026-07-15T20:59", "-")]);
            check(&madrid, &recipient, &[("2026-07-15T05:59", "2026-07-15T06:00"), ("2026-07-15T19:00", "2026-07-16T06:00")]);
        }
        check(&madrid, &phone("+819012345678"), &[("2026-07-15T05:00", "-"), ("2026-07-15T12:00", "2026-07-15T23:00")]);
    }

    #[test]
    fn answers_of_a_chunk_do_not_mix() {
        let hours = within("21:00", "08:00", "Europe/Madrid");
        let now = at("2026-01-15T07:30");
        let mut clock = QuietClock::new(&hours, now);
        let chunk = [phone("+12125550123"), email(), phone("+14805550123"), phone("+34600111222"), phone("+4915112345678")];
        let expected = ["2026-01-15T13:00", "-", "2026-01-15T15:00", "2026-01-15T08:00", "-"];
        for _ in 0..2 {
            for (recipient, earliest) in chunk.iter().zip(expected) {
                assert_eq!(clock.ask(recipient).err(), (earliest != "-").then(|| at(earliest)), "{recipient:?}");
            }
        }
    }

    #[test]
    fn tables_hold_every_country_and_only_known_zones() {
        for name in PLACES.values().flatten() {
            assert!(time::zone(name).is_some(), "{name}");
        }
        let letters = || 'A'..='Z';
        let codes = letters().flat_map(|a| letters().map(move |b| format!("{a}{b}")));
        let countries: Vec<String> = codes.filter(|code| address::is_country(code)).collect();
        assert!(countries.len() > 200);
        for country in countries {
            assert!(PLACES.contains_key(country.as_str()), "{country}");
        }
        assert!(PLACES.keys().filter(|key| key.starts_with(|c: char| c.is_ascii_digit())).count() > 400);
    }
}
