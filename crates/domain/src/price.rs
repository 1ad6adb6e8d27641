//! The price list.

use std::collections::HashMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::channel::{Channel, named};
use crate::message::Cost;
use crate::money::Micros;
use crate::time::Timestamp;

named! {
    /// What a price is for.
    Unit {
        /// One part of an SMS.
        Segment = 1 "segment",
        /// One message, however long.
        Message = 2 "message",
        /// One minute of a call, begun ones included.
        Minute = 3 "minute",
    }
}

/// The country of a price that holds wherever no other does.
pub const ANYWHERE: &str = "*";
/// Characters that are spoken in a minute, by which the length of a call is estimated.
pub const SPOKEN_PER_MINUTE: usize = 900;

/// One line of the price list.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Price {
    /// The channel.
    pub channel: Channel,
    /// ISO 3166-1 alpha-2, or [`ANYWHERE`].
    pub country: String,
    /// From when on it holds, until a later one does.
    pub effective_from: Timestamp,
    /// What it is for.
    pub unit: Unit,
    /// The carrier's price and the platform's fee, of one unit.
    pub cost: Cost,
}

/// How much of each unit a message takes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Quantity {
    /// Parts of an SMS.
    pub segments: u16,
    /// Characters that are spoken.
    pub spoken: usize,
}

/// The prices that hold for one project: its own go before the general ones.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct PriceBook {
    own: Prices,
    general: Arc<Prices>,
}

/// By channel, then by country; of one place the newest first.
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
    /// From the lines of a project and those of everybody.
    pub fn new(own: Vec<Price>, general: Vec<Price>) -> Self {
        Self { own: sort(own), general: Arc::new(sort(general)) }
    }

    /// Keeps the lines of everybody only once, should those of `other` be the same.
    pub fn share(&mut self, other: &Self) {
        if self.general == other.general {
            self.general = Arc::clone(&other.general);
        }
    }

    /// Whether nothing costs anything.
    pub fn is_empty(&self) -> bool {
        self.own.is_empty() && self.general.is_empty()
    }

    /// The price in force at `at`. The country goes before [`ANYWHERE`], and any price of the project before the general ones.
    pub fn find(&self, channel: Channel, country: &str, at: Timestamp) -> Option<&Price> {
        [&self.own, &*self.general].into_iter().find_map(|prices| {
            let places = prices.get(&channel)?;
            [country, ANYWHERE].into_iter().find_map(|place| places.get(place)?.iter().find(|p| p.effective_from <= at))
        })
    }

    /// What one message by `channel` costs; `None` when there is no price. Stops at the largest amount.
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

/// The most that one part of a price may come to: sums of millions of them still fit.
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
