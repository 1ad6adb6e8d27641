//! The price list.

use std::collections::HashMap;
use std::sync::Arc;

use crate::channel::{Channel, named};
use crate::{message::Cost, money::Micros, time::Timestamp};

named! {
    /// Unit of a price.
    Unit {
        /// One segment of an SMS.
        Segment = 1 "segment",
        /// One message of any length.
        Message = 2 "message",
        /// One minute of a call, rounded up.
        Minute = 3 "minute",
    }
}

/// Country of a price that applies where no other does.
pub const ANYWHERE: &str = "*";
/// Characters spoken per minute, to estimate the length of a call.
pub const SPOKEN_PER_MINUTE: usize = 900;

/// An entry of the price list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Price {
    pub channel: Channel,
    /// ISO 3166-1 alpha-2, or [`ANYWHERE`].
    pub country: String,
    /// Applies from this time, until a later entry does.
    pub effective_from: Timestamp,
    pub unit: Unit,
    /// The carrier's price and the platform's fee per unit.
    pub cost: Cost,
}

/// Size of a message in each unit.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quantity {
    /// SMS segments.
    pub segments: u16,
    /// Characters to speak.
    pub spoken: usize,
}

/// The prices of one project; its own take precedence over the general ones.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PriceBook {
    own: Prices,
    general: Arc<Prices>,
}

/// By channel, then by country; newest first within a country.
type Prices = HashMap<Channel, HashMap<String, Vec<Price>>>;

fn sort(prices: Vec<Price>) -> Prices {
    let mut sorted = Prices::new();
    for price in prices {
        sorted.entry(price.channel).or_default().entry(price.country.clone()).or_default().push(price);
    }
    for places in sorted.values_mut().flat_map(HashMap::values_mut) {
        places.sort_by_key(|price| std::cmp::Reverse(price.effective_from));
    }
    sorted
}

impl PriceBook {
    /// Makes a book from the project's own and the general entries.
    pub fn new(own: Vec<Price>, general: Vec<Price>) -> Self {
        Self { own: sort(own), general: Arc::new(sort(general)) }
    }

    /// Shares the general entries with `other` if they are equal, to keep them in memory once.
    pub fn share(&mut self, other: &Self) {
        if self.general == other.general {
            self.general = Arc::clone(&other.general);
        }
    }

    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.general.is_empty()
    }

    /// Returns the price in force at `at`. A country takes precedence over [`ANYWHERE`], and the project's prices over the general ones.
    pub fn find(&self, channel: Channel, country: &str, at: Timestamp) -> Option<&Price> {
        [&self.own, &*self.general].into_iter().find_map(|prices| {
            let places = prices.get(&channel)?;
            [country, ANYWHERE].into_iter().find_map(|place| places.get(place)?.iter().find(|p| p.effective_from <= at))
        })
    }

    /// Returns the cost of a message on `channel`; `None` without a price. Saturates at the maximum amount.
    pub fn quote(&self, channel: Channel, country: &str, quantity: Quantity, at: Timestamp) -> Option<Cost> {
        let price = self.find(channel, country, at)?;
        let count = match price.unit {
            Unit::Segment => i64::from(quantity.segments),
            Unit::Message => 1,
            Unit::Minute => quantity.spoken.div_ceil(SPOKEN_PER_MINUTE).max(1) as i64,
        };
        let times = |one: Micros| Micros(one.0.saturating_mul(count).min(MOST));
        Some(Cost { fee: times(price.cost.fee), provider: times(price.cost.provider) })
    }
}

/// Maximum of one component of a price, so that sums of millions of them do not overflow.
pub const MOST: i64 = 1_000_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    fn price(channel: Channel, country: &str, from: i64, unit: Unit, provider: i64, fee: i64) -> Price {
        let cost = Cost { fee: Micros(fee), provider: Micros(provider) };
        Price { channel, country: country.to_owned(), effective_from: Timestamp::from_millis(from), unit, cost }
    }

    #[test]
    fn the_nearest_price_in_force_holds() {
        let general = vec![
            price(Channel::Sms, "*", 0, Unit::Segment, 50, 5),
            price(Channel::Sms, "ES", 0, Unit::Segment, 30, 3),
            price(Channel::Sms, "ES", 100, Unit::Segment, 40, 4),
            price(Channel::Voice, "*", 0, Unit::Minute, 7, 0),
        ];
        let mut again = PriceBook::new(Vec::new(), general.clone());
        let book = PriceBook::new(vec![price(Channel::Sms, "FR", 0, Unit::Message, 9, 1)], general);
        again.share(&book);
        assert!(Arc::ptr_eq(&again.general, &book.general) && again.own.is_empty());
        again.share(&PriceBook::default());
        assert!(!again.is_empty(), "another list is not taken over");
        let quantity = Quantity { segments: 2, spoken: 901 };
        let total =
            |channel, country, at| book.quote(channel, country, quantity, Timestamp::from_millis(at)).map(|c| c.fee.0 + c.provider.0);
        assert_eq!(total(Channel::Sms, "DE", 0), Some(110));
        assert_eq!(total(Channel::Sms, "ES", 99), Some(66));
        assert_eq!(total(Channel::Sms, "ES", 100), Some(88));
        assert_eq!(total(Channel::Sms, "FR", 0), Some(10), "the project's own, by the message");
        assert_eq!(total(Channel::Voice, "", 0), Some(14), "a minute that has begun counts");
        assert_eq!((total(Channel::Whatsapp, "ES", 0), total(Channel::Sms, "ES", -1)), (None, None));
    }
}
