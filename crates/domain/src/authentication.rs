//! Results of email authentication.

use serde::{Deserialize, Serialize};

/// Result of one method of authentication, in the words of RFC 8601.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum AuthenticationResult {
    /// Nothing to check.
    #[default]
    None,
    Pass,
    Fail,
    /// SPF softfail.
    SoftFail,
    /// The domain has no policy, or the check does not apply.
    Neutral,
    /// DNS did not respond in time.
    TempError,
    /// The domain's records or the email are invalid.
    PermError,
}

/// Whether the `From` address of an email is proven.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum FromResult {
    /// Proven: DMARC passes, or, without a DMARC record, an aligned DKIM signature or SPF passes.
    Authenticated,
    /// Not proven; the address may be forged.
    #[default]
    Unauthenticated,
}

/// Authentication results of an inbound email.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = EmailAuthentication))]
pub struct Authentication {
    /// SPF of the envelope sender; `none` if the client's address is unknown.
    pub spf: AuthenticationResult,
    /// Result of the best DKIM signature.
    pub dkim: AuthenticationResult,
    /// DMARC of the domain in `From`.
    pub dmarc: AuthenticationResult,
    /// Whether the address in `From` is proven. If not, the email changes no opt-out and verifies no contact.
    pub from: FromResult,
}

impl Authentication {
    pub fn is_authenticated(&self) -> bool {
        self.from == FromResult::Authenticated
    }
}
