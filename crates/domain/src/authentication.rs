//! What a mail from outside proves about its writer.

use serde::{Deserialize, Serialize};

/// Result of one method of authentication, in the words of RFC 8601.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum AuthenticationResult {
    /// There was nothing to check.
    #[default]
    None,
    /// It holds.
    Pass,
    /// It does not hold.
    Fail,
    /// SPF: it probably does not hold.
    SoftFail,
    /// The domain makes no statement, or the check could not be applied.
    Neutral,
    /// DNS did not answer in time.
    TempError,
    /// What the domain published or the mail says is invalid.
    PermError,
}

/// Whether the `From` address of a mail is proven.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "lowercase")]
pub enum FromResult {
    /// Its domain vouches for the mail: DMARC passes, or, without a DMARC record, an aligned DKIM signature or SPF does.
    Authenticated,
    /// Anyone could have written it.
    #[default]
    Unauthenticated,
}

/// How an email that came in was authenticated.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema), schema(as = EmailAuthentication))]
pub struct Authentication {
    /// SPF of the envelope sender; `none` if the client's address is unknown.
    pub spf: AuthenticationResult,
    /// The best DKIM signature.
    pub dkim: AuthenticationResult,
    /// DMARC of the domain in `From`.
    pub dmarc: AuthenticationResult,
    /// Whether the address in `From` is proven. If not, the email opts nobody in or out and verifies no contact.
    pub from: FromResult,
}

impl Authentication {
    /// Whether the address in `From` is proven.
    pub fn is_authenticated(&self) -> bool {
        self.from == FromResult::Authenticated
    }
}
