//! Charges what providers accepted, and releases the rest.

use crate::message::{AttemptStatus, Cost, Detail, Money, QuoteState, State};

impl State {
    /// A cost reported by the provider counts only if no price was agreed.
    pub(super) fn add_reported_cost(&mut self, cost: Option<Cost>) {
        if let Some(cost) = cost.filter(|_| self.detail.money.is_none()) {
            self.add_cost(cost);
        }
    }

    /// Charges each route that accepted an attempt, once.
    pub(super) fn charge_accepted(&mut self) {
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
    pub(super) fn settle_money(&mut self) {
        if !self.is_final() || !self.detail.money.as_ref().is_some_and(Money::is_open) {
            return;
        }
        self.charge_accepted();
        let open = self.detail.money.iter_mut().flat_map(|m| &mut m.quotes).filter(|q| q.state == QuoteState::Open);
        open.for_each(|quote| quote.state = QuoteState::Released);
    }

    pub(super) fn add_cost(&mut self, cost: Cost) {
        let sum = self.detail.cost.get_or_insert_with(Cost::default);
        sum.fee.0 = sum.fee.0.saturating_add(cost.fee.0);
        sum.provider.0 = sum.provider.0.saturating_add(cost.provider.0);
    }
}
