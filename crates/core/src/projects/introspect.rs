//! Checks recipients without sending anything.

use nuncio_domain::address::{self, LineType};
use nuncio_domain::{AddressKind, Channel, Environment, Error, Recipient, Result, contact::SuppressionReason, limits, page::PageRequest};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::Projects;
use crate::base::{Caller, UseCase, list};
use crate::contacts::{CHANNELS, ContactChannelType};

/// A phone number to check.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct IntrospectPhone {
    /// The number, in E.164 form.
    #[schema(min_length = 1, max_length = 320, example = "+34600111222")]
    pub phone_number: String,
}

/// Data about a phone number.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct PhoneIntrospection {
    /// The number, in E.164 form.
    pub phone_number: String,
    /// ISO 3166-1 alpha-2; empty if unknown.
    pub country_code: String,
    /// Whether the number is in an assigned range.
    pub valid_number: bool,
    /// National format, as dialled within its country.
    pub national_format: String,
    /// Line type of its range.
    pub line_type: LineType,
    /// Channels on which the contact with this number was reached, and those its line type supports.
    #[schema(value_type = Vec<ContactChannelType>)]
    pub available_channels: Vec<Channel>,
}

/// An email address to check.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub struct IntrospectEmail {
    /// The address.
    #[schema(min_length = 1, max_length = 320, example = "ada@example.com")]
    pub email: String,
}

/// Longest text accepted as an email address.
const EMAIL: usize = 320;

/// Data about an email address.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EmailIntrospection {
    /// The address, its domain in lower case.
    pub email: String,
    /// Whether to send to it.
    pub verdict: Verdict,
    /// Reasons for the verdict.
    pub reasons: Vec<EmailReason>,
}

/// Whether an email address should be used.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = EmailVerdict)]
pub enum Verdict {
    /// No problem found.
    Deliverable,
    /// It may not be delivered, or not reach a person.
    Risky,
    /// It will not be delivered.
    Undeliverable,
}

/// A finding about an email address.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Serialize, ToSchema)]
#[serde(rename_all = "snake_case")]
#[schema(as = EmailVerdictReason)]
pub enum EmailReason {
    /// It is not an email address.
    InvalidSyntax,
    /// Its domain is reserved for examples and tests.
    ReservedDomain,
    /// Its owner opted out from all senders.
    OptedOut,
    /// Its owner opted out from some senders.
    OptedOutFromSome,
    /// It bounced before.
    Bounced,
    /// Its owner complained before.
    Complained,
    /// It was suppressed manually.
    Suppressed,
    /// Its domain provides temporary addresses.
    DisposableDomain,
    /// It belongs to a role, not to a person.
    RoleAccount,
    /// The domain's mail servers were not checked.
    MxNotChecked,
}

impl EmailReason {
    const fn verdict(self) -> Verdict {
        match self {
            Self::InvalidSyntax | Self::ReservedDomain | Self::OptedOut | Self::Bounced | Self::Complained | Self::Suppressed => {
                Verdict::Undeliverable
            }
            Self::OptedOutFromSome | Self::DisposableDomain | Self::RoleAccount => Verdict::Risky,
            Self::MxNotChecked => Verdict::Deliverable,
        }
    }
}

/// Well-known providers of temporary addresses.
const DISPOSABLE: &[&str] = &[
    "10minutemail.com", "20minutemail.com", "dispostable.com", "emailondeck.com", "fakeinbox.com", "getnada.com", "grr.la",
    "guerrillamail.com", "guerrillamail.net", "guerrillamail.org", "mailcatch.com", "maildrop.cc", "mailinator.com", "mailnesia.com",
    "mintemail.com", "moakt.com", "mohmal.com", "mytemp.email", "sharklasers.com", "spamgourmet.com", "temp-mail.org", "tempail.com",
    "tempmail.com", "throwawaymail.com", "trashmail.com", "yopmail.com",
];

/// Local parts of role addresses; RFC 2142 names most of them.
const ROLES: &[&str] = &[
    "abuse", "admin", "administrator", "billing", "contact", "hello", "help", "hostmaster", "info", "jobs", "mail", "mailer-daemon",
    "marketing", "no-reply", "noc", "noreply", "office", "postmaster", "root", "sales", "security", "service", "support", "team",
    "webmaster",
];

/// Domains that never receive email (RFC 2606, RFC 6761).
const RESERVED: &[&str] = &["example", "example.com", "example.net", "example.org", "invalid", "localhost", "test"];

impl Projects<'_> {
    /// `POST /v1/introspect/phone`: returns data from the numbering plans and the contacts.
    pub async fn introspect_phone(&self, caller: &Caller, asked: &IntrospectPhone) -> Result<PhoneIntrospection> {
        caller.require(UseCase::IntrospectPhone)?;
        let number = address::phone(&list::phone(&asked.phone_number)).map_err(|e| Error::field("phoneNumber", e.to_string()))?;
        let (facts, plan) = (address::phone_facts(&number), address::phone_plan(&number));
        let mut available = Vec::new();
        if plan.takes_text {
            available.push(Channel::Sms);
        }
        if plan.takes_calls {
            available.push(Channel::Voice);
        }
        available.extend(self.known_channels(caller, &number).await?);
        Ok(PhoneIntrospection {
            phone_number: number,
            country_code: facts.country,
            valid_number: facts.assigned,
            national_format: plan.national,
            line_type: plan.line,
            available_channels: CHANNELS.into_iter().filter(|c| available.contains(c)).collect(),
        })
    }

    /// Returns the channels of the contact with a phone number.
    async fn known_channels(&self, caller: &Caller, number: &str) -> Result<Vec<Channel>> {
        let recipient = Recipient { kind: AddressKind::Phone, identifier: number.to_owned() };
        let mut tx = self.inner.store.read().await?;
        let Some((address, id)) = tx.find_address(caller.tenant, &recipient).await? else { return Ok(Vec::new()) };
        let Some(contact) = tx.find_contact(caller.tenant, id).await? else { return Ok(Vec::new()) };
        let people = crate::contacts::people(&mut *tx, caller.tenant, vec![contact]).await?;
        let channels = people.iter().flat_map(|person| person.channels());
        Ok(channels.filter(|c| c.address.id == address).map(|c| c.channel).collect())
    }

    /// `POST /v1/introspect/email`: returns data from the address itself and the suppressions.
    pub async fn introspect_email(&self, caller: &Caller, asked: &IntrospectEmail) -> Result<EmailIntrospection> {
        caller.require(UseCase::IntrospectEmail)?;
        let length = asked.email.chars().count();
        if !(1..=EMAIL).contains(&length) {
            return Err(Error::field("email", format!("has {length} characters; must have 1 to {EMAIL}")));
        }
        let Ok(email) = address::email(&asked.email) else {
            let reasons = vec![EmailReason::InvalidSyntax];
            return Ok(EmailIntrospection { email: asked.email.clone(), verdict: Verdict::Undeliverable, reasons });
        };
        let mut reasons = self.suppressed(caller, &email).await?;
        let (local, domain) = email.rsplit_once('@').unwrap_or_default();
        // In the sandbox, these domains are valid recipients.
        if caller.environment == Environment::Live && is_of(domain, RESERVED) {
            reasons.push(EmailReason::ReservedDomain);
        }
        if is_of(domain, DISPOSABLE) {
            reasons.push(EmailReason::DisposableDomain);
        }
        let local = local.split('+').next().unwrap_or_default().to_lowercase();
        if ROLES.contains(&local.as_str()) {
            reasons.push(EmailReason::RoleAccount);
        }
        reasons.push(EmailReason::MxNotChecked);
        let verdict = reasons.iter().map(|reason| reason.verdict()).max().unwrap_or(Verdict::Deliverable);
        Ok(EmailIntrospection { email, verdict, reasons })
    }

    async fn suppressed(&self, caller: &Caller, email: &str) -> Result<Vec<EmailReason>> {
        let recipient = Recipient { kind: AddressKind::Email, identifier: email.to_owned() };
        let of = [self.marked(caller.tenant, &recipient), recipient];
        let page = PageRequest::newest(limits::PAGE_MAX);
        let found = self.inner.store.read().await?.list_suppressions(caller.tenant, &of, page).await?;
        let mut reasons = Vec::new();
        for suppression in found.items {
            let reason = match (suppression.reason, suppression.sender) {
                (SuppressionReason::OptOut, None) => EmailReason::OptedOut,
                (SuppressionReason::OptOut, Some(_)) => EmailReason::OptedOutFromSome,
                (SuppressionReason::Bounce, _) => EmailReason::Bounced,
                (SuppressionReason::Complaint, _) => EmailReason::Complained,
                (SuppressionReason::Manual, _) => EmailReason::Suppressed,
            };
            if !reasons.contains(&reason) {
                reasons.push(reason);
            }
        }
        Ok(reasons)
    }
}

/// Returns whether a domain is one of these, or a subdomain of one.
fn is_of(domain: &str, domains: &[&str]) -> bool {
    domains.iter().any(|known| domain == *known || domain.strip_suffix(known).is_some_and(|rest| rest.ends_with('.')))
}
