//! A client of the OpenID provider that the operator configured (OpenID Connect Discovery 1.0).

use std::sync::Arc;
use std::time::Duration;

use nuncio_domain::{Error, Redacted, Result, user::Role};
use nuncio_net::{Client, FetchLimits, GuardPolicy};
use openidconnect::{IssuerUrl, core::CoreProviderMetadata};
use parking_lot::Mutex;

/// Limits of a provider's response.
const LIMITS: FetchLimits = FetchLimits { max_bytes: 256 * 1024, timeout: Duration::from_secs(10) };
/// How long a provider's metadata and keys are cached.
const KEPT: Duration = Duration::from_secs(600);

/// An OpenID provider, configured by the operator.
#[derive(Clone, Debug)]
pub struct OidcSettings {
    /// Label of the button.
    pub name: String,
    /// Issuer URL, the base of `/.well-known/openid-configuration`.
    pub issuer: String,
    /// Client id of this installation.
    pub client_id: String,
    pub client_secret: Redacted<String>,
    /// Email domains of people who are admitted without having been added.
    pub domains: Vec<String>,
    /// Email addresses admitted likewise.
    pub emails: Vec<String>,
    /// Role of people admitted this way.
    pub role: Role,
}

/// A provider with its cached metadata. Clones share it.
#[derive(Clone, Debug)]
pub struct Oidc {
    pub(crate) settings: Arc<OidcSettings>,
    pub(crate) issuer: IssuerUrl,
    pub(crate) client: Client,
    known: Arc<Mutex<Option<(Duration, CoreProviderMetadata)>>>,
}

impl Oidc {
    /// Makes a provider. The operator trusts it: it can be in a private network.
    ///
    /// # Errors
    ///
    /// Describes what is wrong with the issuer.
    pub fn new(settings: OidcSettings) -> std::result::Result<Self, String> {
        let client = Client::new(GuardPolicy::open()).map_err(|error| error.to_string())?;
        client.check_url(&settings.issuer)?;
        let issuer = IssuerUrl::new(settings.issuer.clone()).map_err(|error| error.to_string())?;
        Ok(Self { settings: Arc::new(settings), issuer, client, known: Arc::default() })
    }

    /// Returns the provider's metadata and keys, at most ten minutes old.
    pub(crate) async fn metadata(&self, now: Duration) -> Result<CoreProviderMetadata> {
        if let Some((at, metadata)) = &*self.known.lock()
            && now.saturating_sub(*at) < KEPT
        {
            return Ok(metadata.clone());
        }
        let client = self.client.clone();
        let found = CoreProviderMetadata::discover_async(self.issuer.clone(), &move |request| fetch(client.clone(), request)).await;
        let metadata = found.map_err(|error| unreachable("the metadata", &error))?;
        *self.known.lock() = Some((now, metadata.clone()));
        Ok(metadata)
    }

    /// Drops the cached metadata and keys, so that they are read again.
    pub(crate) fn forget(&self) {
        self.known.lock().take();
    }

    /// Returns whether a person with this address is admitted without having been added.
    pub(crate) fn admits(&self, email: &str) -> bool {
        let domain = email.rsplit_once('@').map_or("", |(_, domain)| domain);
        let OidcSettings { domains, emails, .. } = &*self.settings;
        domains.iter().any(|known| known.eq_ignore_ascii_case(domain)) || emails.iter().any(|known| known.eq_ignore_ascii_case(email))
    }
}

/// Sends a request through nuncio's HTTP client.
pub(crate) async fn fetch(
    client: Client,
    request: http::Request<Vec<u8>>,
) -> std::result::Result<http::Response<Vec<u8>>, nuncio_net::FetchError> {
    let (head, body) = request.into_parts();
    let response = client.request(head.method, &head.uri.to_string(), head.headers, body, LIMITS).await?;
    let mut answer = http::Response::new(response.body);
    (*answer.status_mut(), *answer.headers_mut()) = (response.status, response.headers);
    Ok(answer)
}

/// Logs why the provider is unreachable or its response unusable; returns `503 unavailable`.
pub(crate) fn unreachable(what: &str, error: &dyn std::error::Error) -> Error {
    let causes = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ");
    tracing::warn!(cause = causes, "failed to get {what} from the OpenID provider");
    Error::unavailable("the provider could not be reached; try again in a minute")
}
