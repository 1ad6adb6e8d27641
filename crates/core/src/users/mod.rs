//! People who sign in to the dashboard: accounts, sessions and roles.

mod account;
mod audit;
mod factor;
mod manage;
mod oidc;
mod password;
mod sign_in;
mod totp;

use nuncio_domain::address::{self, InvalidRecipient};

pub use crate::base::{Oidc, OidcSettings};
pub use account::Browser;
pub use audit::{AuditEntryView, ListAudit};
pub use factor::{FactorState, PendingFactor};
pub use manage::{AddedUser, NewUser};
pub use oidc::OidcBegun;
pub use sign_in::{SignIn, SignInStep, SignedIn};

/// Normalises an email address for sign-in. Case is ignored throughout.
fn sign_in_address(text: &str) -> Result<String, InvalidRecipient> {
    address::email(text).map(|email| email.to_lowercase())
}

crate::base::use_cases! {
    users => Users
}
