//! Phone numbers: the operator's inventory, and the numbers an environment holds.

use crate::id::{PhoneNumberId, SenderId};
use crate::{channel::named, money::Micros, time::Timestamp};

named! {
    /// Status of a phone number.
    #[cfg_attr(feature = "openapi", schema(as = PhoneNumberStatus))]
    NumberStatus {
        /// Paid and usable.
        Active = 1 "active",
        /// Its renewal could not be paid.
        Suspended = 2 "suspended",
        /// Ordered, not available yet.
        Pending = 3 "pending",
    }
}

named! {
    /// Capability of a phone number.
    #[cfg_attr(feature = "openapi", schema(as = PhoneNumberCapability))]
    Capability {
        Sms = 1 "sms",
        /// Calls.
        Voice = 2 "voice",
        Mms = 4 "mms",
    }
}

/// A set of capabilities; the numbers of [`Capability`] are its bits.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Capabilities(i16);

impl Capabilities {
    /// Makes the set from stored bits; drops unknown ones.
    pub fn from_bits(bits: i16) -> Self {
        Capability::ALL.iter().copied().filter(|c| bits & c.number() != 0).collect()
    }

    /// Returns the stored bits.
    pub const fn bits(self) -> i16 {
        self.0
    }

    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Returns the members in the order of [`Capability::ALL`].
    pub fn iter(self) -> impl Iterator<Item = Capability> {
        Capability::ALL.iter().copied().filter(move |c| self.0 & c.number() != 0)
    }
}

impl FromIterator<Capability> for Capabilities {
    fn from_iter<I: IntoIterator<Item = Capability>>(members: I) -> Self {
        Self(members.into_iter().fold(0, |bits, c| bits | c.number()))
    }
}

/// Price of a phone number, set by the operator.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct NumberPricing {
    /// Monthly price for the holder.
    pub monthly_price: Micros,
    /// One-time price, charged with the first month.
    pub upfront_cost: Micros,
    /// The operator's monthly cost at the carrier. Shown, never charged.
    pub monthly_cost: Micros,
    /// Whether the holder pays nothing.
    pub is_free: bool,
}

impl NumberPricing {
    /// Returns the price of acquiring the number: setup plus first month. `None` on overflow.
    pub const fn to_acquire(self) -> Option<Micros> {
        if self.is_free { Some(Micros(0)) } else { self.upfront_cost.checked_add(self.monthly_price) }
    }

    /// Returns the price of each further month.
    pub const fn to_renew(self) -> Micros {
        if self.is_free { Micros(0) } else { self.monthly_price }
    }
}

/// A number in the operator's inventory, offered to one environment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InventoryNumber {
    /// E.164; one row per environment.
    pub phone_number: String,
    /// ISO 3166-1 alpha-2.
    pub country: String,
    pub capabilities: Capabilities,
    pub pricing: NumberPricing,
}

/// A number that an environment holds.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct PhoneNumber {
    /// Created when the number was acquired.
    pub id: PhoneNumberId,
    /// E.164.
    pub phone_number: String,
    pub capabilities: Capabilities,
    pub pricing: NumberPricing,
    pub status: NumberStatus,
    /// Name given by the holder.
    pub name: Option<String>,
    pub sender: Option<SenderId>,
    /// When the next month is due; for a suspended number, when payment is retried.
    pub renews_at: Timestamp,
    pub updated_at: Timestamp,
}

/// How often a failed renewal is retried.
pub const RENEWAL_RETRY: std::time::Duration = std::time::Duration::from_secs(86_400);

impl PhoneNumber {
    /// Returns the first renewal after `moment`: a whole number of calendar months after the number was acquired.
    pub fn renewal_after(&self, moment: Timestamp) -> Timestamp {
        first_renewal_after(crate::id::Id::created_at(self.id), moment)
    }

    /// Returns how many whole months the number has been held at `moment`.
    pub fn month_at(&self, moment: Timestamp) -> i16 {
        let beginning = crate::id::Id::created_at(self.id);
        let months = (1..i16::MAX).take_while(|months| beginning.plus_months(u32::from(months.unsigned_abs())) <= moment);
        months.last().unwrap_or(0)
    }

    /// Returns the start of the month that a renewal at `now` pays for: the one that is due, or, for a suspended number, the current one.
    pub fn month_to_pay(&self, now: Timestamp) -> Timestamp {
        if self.status == NumberStatus::Suspended { now } else { self.renews_at }
    }

    /// Carries out a renewal that was due. A number that is paid for in time keeps its day and pays for each month; one that was
    /// suspended pays for the month it is in. One that cannot be paid for is suspended and tried again a day later.
    pub fn renew(&mut self, paid: bool, now: Timestamp) {
        if paid {
            self.renews_at = self.renewal_after(self.month_to_pay(now));
            self.status = NumberStatus::Active;
        } else {
            self.renews_at = now.plus(RENEWAL_RETRY);
            self.status = NumberStatus::Suspended;
        }
        self.updated_at = now;
    }
}

/// Returns the first moment after `moment` that is a whole number of calendar months, at least one, after `beginning`.
pub fn first_renewal_after(beginning: Timestamp, moment: Timestamp) -> Timestamp {
    (1..).map(|months| beginning.plus_months(months)).find(|at| *at > moment || *at == Timestamp::from_millis(i64::MAX)).unwrap_or(moment)
}

/// Parses an amount of US dollars such as `1.15`: not negative, at most six decimals and a million dollars.
pub fn dollars(text: &str) -> Option<Micros> {
    Micros::parse(text).filter(|amount| !text.starts_with('-') && amount.0 <= crate::price::MOST)
}

/// Search filter for the inventory.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Wanted {
    /// ISO 3166-1 alpha-2.
    pub country: String,
    /// Consecutive digits of the number; empty matches any.
    pub contains: String,
    /// Required capabilities.
    pub capabilities: Capabilities,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::id::{Id as _, uuid_v7};

    fn at(text: &str) -> Timestamp {
        Timestamp::parse(text).unwrap_or_default()
    }

    fn number(acquired: &str) -> PhoneNumber {
        let id = PhoneNumberId::from_uuid(uuid_v7(at(acquired), [0; 10]));
        PhoneNumber {
            id,
            phone_number: "+12025550101".to_owned(),
            capabilities: Capabilities::default(),
            pricing: NumberPricing::default(),
            status: NumberStatus::Active,
            name: None,
            sender: None,
            renews_at: first_renewal_after(at(acquired), at(acquired)),
            updated_at: at(acquired),
        }
    }

    #[test]
    fn renewals_keep_their_day_of_the_month() {
        let mut number = number("2026-01-31T10:00:00Z");
        let mut days = vec![number.renews_at];
        for _ in 0..3 {
            number.renew(true, at("2026-06-10T00:00:00Z")); // late: each month is paid
            days.push(number.renews_at);
        }
        let expected = ["2026-02-28T10:00:00Z", "2026-03-31T10:00:00Z", "2026-04-30T10:00:00Z", "2026-05-31T10:00:00Z"];
        assert_eq!(days, expected.map(at));
    }

    #[test]
    fn what_cannot_be_paid_is_suspended_until_it_can() {
        let mut number = number("2026-01-31T10:00:00Z");
        number.renew(false, at("2026-02-28T10:00:00Z"));
        assert_eq!((number.status, number.renews_at), (NumberStatus::Suspended, at("2026-03-01T10:00:00Z")));
        number.renew(false, at("2026-05-01T10:00:00Z"));
        number.renew(true, at("2026-05-02T10:00:00Z"));
        assert_eq!((number.status, number.renews_at), (NumberStatus::Active, at("2026-05-31T10:00:00Z")), "months without it are not paid");
    }

    #[test]
    fn a_month_is_paid_under_a_number_of_its_own_also_after_a_suspension() {
        let mut number = number("2026-01-01T00:00:00Z");
        number.renew(false, at("2026-02-01T00:00:00Z"));
        let late = at("2026-02-06T00:00:00Z");
        let first = number.month_at(number.month_to_pay(late));
        number.renew(true, late);
        let second = number.month_at(number.month_to_pay(number.renews_at));
        assert_eq!((first, second), (1, 2), "though only 23 days lie between");
    }

    #[test]
    fn amounts_are_read_exactly() {
        for (text, micros) in [("1.15", 1_150_000), ("0", 0), ("12.000001", 12_000_001), ("1000000", 1_000_000_000_000)] {
            assert_eq!(dollars(text), Some(Micros(micros)), "{text}");
        }
        for text in ["", ".5", "1.", "-1", "1,5", "1e3", "0.0000001", "1000000.000001", "99999999"] {
            assert_eq!(dollars(text), None, "{text}");
        }
    }

    #[test]
    fn free_numbers_cost_nothing_whatever_stands_there() {
        let pricing = NumberPricing { monthly_price: Micros(2), upfront_cost: Micros(3), monthly_cost: Micros(1), is_free: true };
        assert_eq!((pricing.to_acquire(), pricing.to_renew()), (Some(Micros(0)), Micros(0)));
        let pricing = NumberPricing { is_free: false, ..pricing };
        assert_eq!((pricing.to_acquire(), pricing.to_renew()), (Some(Micros(5)), Micros(2)));
    }
}
