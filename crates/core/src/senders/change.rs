//! Applies a change to a sender, and returns all errors at once.

use nuncio_domain::{FieldError, Micros, address, config::Sender, limits, set_if_given, webhook::Webhook};
use serde_json::Number;

use super::command::UpdateSender;
use crate::base::{Core, FieldErrors, list};
use crate::webhooks::{WebhookChange, check_events};

/// What happens to a sender's webhook.
#[derive(Debug)]
pub(super) enum WebhookFate {
    /// Unchanged, or none.
    Stays,
    Goes,
    /// Changed or created.
    Changes(WebhookChange),
}

impl UpdateSender {
    /// Applies the change except for the webhook.
    pub(super) fn apply(&self, sender: &mut Sender, errors: &mut Vec<FieldError>) {
        if let Some(name) = &self.name {
            FieldErrors { errors }.name("name", Some(name), 1, limits::SENDER_NAME);
            sender.name.clone_from(name);
        }
        if let Some(phone) = &self.phone_number {
            sender.phone_number = phone_number(phone.as_deref().unwrap_or_default(), errors);
        }
        match self.set_as_default {
            Some(false) if sender.is_default => {
                errors.push(FieldError::new(
                    "setAsDefault",
                    "an environment must have a default sender; make another sender the default instead",
                ));
            }
            Some(default) => sender.is_default = default,
            None => {}
        }
        set_if_given(&mut sender.email_receiving_enabled, &self.email_receiving_enabled);
        if let Some(countries) = &self.allowed_countries {
            sender.allowed_countries = countries.as_deref().map(|countries| allowed_countries(countries, errors)).unwrap_or_default();
        }
        if let Some(limit) = &self.daily_spend_limit {
            sender.daily_spend_limit = limit.as_ref().and_then(|limit| daily_spend_limit(limit, errors));
        }
    }

    /// Returns what happens to the webhook.
    pub(super) fn webhook(&self, core: &Core, before: Option<&Webhook>, errors: &mut Vec<FieldError>) -> WebhookFate {
        let given = [("webhookEvents", self.webhook_events.is_some()), ("webhookActive", self.webhook_active.is_some())];
        let goes = self.webhook_url == Some(None);
        let will_be = !goes && (before.is_some() || self.webhook_url.is_some());
        for (path, _) in given.iter().filter(|(_, given)| *given && !will_be) {
            errors.push(FieldError::new(*path, "needs a webhook; set webhookUrl too"));
        }
        if let Some(Some(url)) = &self.webhook_url {
            core.check_url("webhookUrl", url, errors);
        }
        check_events("webhookEvents", self.webhook_events.as_ref().and_then(Option::as_deref), errors);
        if goes {
            return WebhookFate::Goes;
        }
        if !will_be || (self.webhook_url.is_none() && given.iter().all(|(_, given)| !given)) {
            return WebhookFate::Stays;
        }
        WebhookFate::Changes(WebhookChange {
            url: self.webhook_url.clone().flatten(),
            events: self.webhook_events.clone().map(|events| events.unwrap_or_else(|| Webhook::DEFAULT_EVENTS.to_vec())),
            active: self.webhook_active,
        })
    }
}

fn phone_number(text: &str, errors: &mut Vec<FieldError>) -> String {
    if text.is_empty() {
        return String::new();
    }
    address::phone(text).unwrap_or_else(|error| {
        errors.push(FieldError::new("phoneNumber", error.to_string()));
        String::new()
    })
}

fn allowed_countries(codes: &[String], errors: &mut Vec<FieldError>) -> Vec<String> {
    if codes.is_empty() {
        errors.push(FieldError::new("allowedCountries", "has 0 items; must have at least 1, or be null to allow all countries"));
    }
    let mut codes = list::countries(codes, "allowedCountries", errors);
    codes.sort_unstable();
    codes
}

fn daily_spend_limit(dollars: &Number, errors: &mut Vec<FieldError>) -> Option<Micros> {
    let limit = Micros::from_dollars(dollars).filter(|limit| (0..=limits::DAILY_SPEND_MAX * 1_000_000).contains(&limit.0));
    if limit.is_none() {
        let message = format!("is {dollars}; must be US dollars from 0 to {}, with at most six decimals", limits::DAILY_SPEND_MAX);
        errors.push(FieldError::new("dailySpendLimit", message));
    }
    limit
}
