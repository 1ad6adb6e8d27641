//! Costs, and the agreed prices of a message: charges what providers accepted, and releases the rest.

use serde::{Deserialize, Serialize};

use super::{AttemptStatus, Detail, State};
use crate::{channel::Channel, id::SenderId, money::Micros};

/// Costs, absent until known.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Cost {
    /// Platform fee.
    pub fee: Micros,
    /// The carrier's price.
    pub provider: Micros,
}

impl Cost {
    /// Returns fee plus carrier's price.
    pub const fn total(self) -> Micros {
        Micros(self.fee.0.saturating_add(self.provider.0))
    }
}

/// Agreed prices of a message, as of its acceptance. An upper bound of its cost.
#[derive(Clone, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub struct Money {
    /// One for each route with a price.
    #[serde(rename = "q", default, skip_serializing_if = "Vec::is_empty")]
    pub quotes: Vec<Quote>,
    /// Whether its broadcast has already reserved the money, so that acceptance reserves nothing.
    #[serde(rename = "p", default, skip_serializing_if = "std::ops::Not::not")]
    pub prepaid: bool,
    /// The sender, if its daily spending is limited.
    #[serde(rename = "d", default, skip_serializing_if = "Option::is_none")]
    pub limited_sender: Option<SenderId>,
}

/// Price of one route, independent of the number of attempts.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, Deserialize)]
pub struct Quote {
    #[serde(rename = "c")]
    pub channel: Channel,
    #[serde(rename = "m", with = "stored_cost")]
    pub cost: Cost,
    #[serde(rename = "s", default, skip_serializing_if = "super::is_default")]
    pub state: QuoteState,
}

/// State of a quote.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
pub enum QuoteState {
    /// Reserved.
    #[default]
    #[serde(rename = "o")]
    Open,
    #[serde(rename = "c")]
    Charged,
    #[serde(rename = "r")]
    Released,
    /// Returned to the reservation of the message's broadcast.
    #[serde(rename = "b")]
    Returned,
}

impl Money {
    /// Returns the price of all routes: the amount originally reserved.
    pub fn whole(&self) -> Micros {
        Micros(self.quotes.iter().map(|q| q.cost.total().0).sum())
    }

    /// Returns the amount still reserved.
    pub fn open(&self) -> Micros {
        Micros(self.quotes.iter().filter(|q| q.state == QuoteState::Open).map(|q| q.cost.total().0).sum())
    }

    /// Returns whether anything is still reserved.
    pub fn is_open(&self) -> bool {
        self.quotes.iter().any(|q| q.state == QuoteState::Open)
    }
}

/// The stored form of costs: fee and carrier's price in micros. The public JSON has decimals, which would not read back.
pub(crate) mod stored_cost {
    use serde::{Deserialize, Deserializer, Serialize, Serializer};

    use super::Cost;
    use crate::money::Micros;

    pub(super) fn serialize<S: Serializer>(cost: &Cost, serializer: S) -> Result<S::Ok, S::Error> {
        (cost.fee.0, cost.provider.0).serialize(serializer)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Cost, D::Error> {
        let (fee, provider) = Deserialize::deserialize(deserializer)?;
        Ok(Cost { fee: Micros(fee), provider: Micros(provider) })
    }

    /// The same for costs that can be absent.
    pub(crate) mod option {
        use super::{Cost, Deserialize, Deserializer, Micros, Serialize, Serializer};

        pub(crate) fn serialize<S: Serializer>(cost: &Option<Cost>, serializer: S) -> Result<S::Ok, S::Error> {
            cost.map(|cost| (cost.fee.0, cost.provider.0)).serialize(serializer)
        }

        pub(crate) fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Cost>, D::Error> {
            let stored = Option::<(i64, i64)>::deserialize(deserializer)?;
            Ok(stored.map(|(fee, provider)| Cost { fee: Micros(fee), provider: Micros(provider) }))
        }
    }
}

impl State {
    /// A cost reported by the provider counts only if no price was agreed.
    pub(crate) fn add_reported_cost(&mut self, cost: Option<Cost>) {
        if let Some(cost) = cost.filter(|_| self.detail.money.is_none()) {
            self.add_cost(cost);
        }
    }

    /// Charges each route that accepted an attempt, once.
    pub(crate) fn charge_accepted(&mut self) {
        let Detail { money: Some(money), attempts, .. } = &mut self.detail else { return };
        let taken = |channel| {
            attempts.iter().any(|a| a.channel == channel && matches!(a.status, AttemptStatus::Accepted | AttemptStatus::Delivered))
        };
        let mut charged = Vec::new();
        for quote in money.quotes.iter_mut().filter(|q| q.state == QuoteState::Open && taken(q.channel)) {
            quote.state = QuoteState::Charged;
            charged.push(quote.cost);
        }
        charged.into_iter().for_each(|cost| self.add_cost(cost));
    }

    /// Settles the money of a final message: charges what was accepted, releases the rest. Later corrections cost nothing.
    pub(crate) fn settle_money(&mut self) {
        if !self.is_final() || !self.detail.money.as_ref().is_some_and(Money::is_open) {
            return;
        }
        self.charge_accepted();
        let open = self.detail.money.iter_mut().flat_map(|m| &mut m.quotes).filter(|q| q.state == QuoteState::Open);
        open.for_each(|quote| quote.state = QuoteState::Released);
    }

    pub(crate) fn add_cost(&mut self, cost: Cost) {
        let sum = self.detail.cost.get_or_insert_with(Cost::default);
        sum.fee.0 = sum.fee.0.saturating_add(cost.fee.0);
        sum.provider.0 = sum.provider.0.saturating_add(cost.provider.0);
    }
}
