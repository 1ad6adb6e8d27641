//! Sign-in by an OpenID provider (OpenID Connect Core 1.0, authorization code with PKCE).
//!
//! Stores nothing during the redirect: state, nonce and verifier are derived from a seed in a cookie and the installation's key. A response
//! meant for another browser therefore matches no seed.

use std::sync::Arc;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::DateTime;
use nuncio_domain::user::{Role, User};
use nuncio_domain::{Error, ErrorCode, Redacted, Result};
use nuncio_net::{Client, FetchLimits, GuardPolicy};
use nuncio_secrets::mac;
use openidconnect::core::{CoreAuthenticationFlow, CoreClient, CoreProviderMetadata, CoreUserInfoClaims};
use openidconnect::{
    AuthorizationCode, ClientId, ClientSecret, CsrfToken, IssuerUrl, Nonce, OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier,
    RedirectUrl, RequestTokenError, Scope, TokenResponse as _,
};
use parking_lot::Mutex;
use subtle::ConstantTimeEq as _;

use super::manage::shown;
use super::{SignInStep, Users, password, sign_in_address};
use crate::base::Change;

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
    settings: Arc<OidcSettings>,
    issuer: IssuerUrl,
    client: Client,
    known: Arc<Mutex<Option<(Duration, CoreProviderMetadata)>>>,
}

/// A started sign-in.
#[derive(Clone, Debug)]
pub struct OidcBegun {
    /// Where to redirect the browser.
    pub url: String,
    /// Cookie that the browser must return.
    pub seed: Redacted<String>,
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
    async fn metadata(&self, now: Duration) -> Result<CoreProviderMetadata> {
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

    fn admits(&self, email: &str) -> bool {
        let domain = email.rsplit_once('@').map_or("", |(_, domain)| domain);
        let OidcSettings { domains, emails, .. } = &*self.settings;
        domains.iter().any(|known| known.eq_ignore_ascii_case(domain)) || emails.iter().any(|known| known.eq_ignore_ascii_case(email))
    }
}

/// Sends a request through nuncio's HTTP client.
async fn fetch(client: Client, request: http::Request<Vec<u8>>) -> std::result::Result<http::Response<Vec<u8>>, nuncio_net::FetchError> {
    let (head, body) = request.into_parts();
    let response = client.request(head.method, &head.uri.to_string(), head.headers, body, LIMITS).await?;
    let mut answer = http::Response::new(response.body);
    (*answer.status_mut(), *answer.headers_mut()) = (response.status, response.headers);
    Ok(answer)
}

/// Logs why the provider is unreachable or its response unusable; returns `503 unavailable`.
fn unreachable(what: &str, error: &dyn std::error::Error) -> Error {
    let causes = std::iter::successors(Some(error), |error| error.source()).map(ToString::to_string).collect::<Vec<_>>().join(": ");
    tracing::warn!(cause = causes, "failed to get {what} from the OpenID provider");
    Error::unavailable("the provider could not be reached; try again in a minute")
}

fn refused(why: impl Into<String>) -> Error {
    Error::new(ErrorCode::Unauthorized, why.into())
}

impl Users<'_> {
    /// Returns the name of the OpenID provider, if one is configured.
    pub fn oidc_name(&self) -> Option<&str> {
        self.inner.oidc.as_ref().map(|oidc| oidc.settings.name.as_str())
    }

    fn oidc(&self) -> Result<&Oidc> {
        self.inner.oidc.as_ref().ok_or_else(|| Error::not_found("OpenID provider"))
    }

    /// Starts a sign-in.
    pub async fn oidc_begin(&self) -> Result<OidcBegun> {
        let oidc = self.oidc()?;
        let mut seed = [0; 32];
        self.ids().entropy.fill(&mut seed);
        let seed = URL_SAFE_NO_PAD.encode(seed);
        let metadata = oidc.metadata(self.ids().clock.monotonic()).await?;
        let client = CoreClient::from_provider_metadata(metadata, ClientId::new(oidc.settings.client_id.clone()), None);
        let client = client.set_redirect_uri(self.redirect_url()?);
        let (state, nonce) = (self.derive_from_seed(&seed, b"state"), self.derive_from_seed(&seed, b"nonce"));
        let verifier = PkceCodeVerifier::new(self.derive_from_seed(&seed, b"verifier"));
        let (url, _, _) = client
            .authorize_url(CoreAuthenticationFlow::AuthorizationCode, move || CsrfToken::new(state), move || Nonce::new(nonce))
            .add_scope(Scope::new("email".to_owned()))
            .set_pkce_challenge(PkceCodeChallenge::from_code_verifier_sha256(&verifier))
            .url();
        Ok(OidcBegun { url: url.to_string(), seed: Redacted::new(seed) })
    }

    /// Completes a sign-in. `401 unauthorized` says why it was rejected.
    pub async fn oidc_finish(&self, seed: &str, state: &str, code: &str) -> Result<SignInStep> {
        let oidc = self.oidc()?;
        let is_ours: bool = self.derive_from_seed(seed, b"state").as_bytes().ct_eq(state.as_bytes()).into();
        if seed.len() != 43 || !is_ours {
            return Err(refused("this sign-in was not started in this browser, or took too long; start again"));
        }
        let email = self.verified_email(oidc, seed, code).await?;
        let user = match self.inner.store.read().await?.find_user(&email).await? {
            Some(user) => user,
            None => self.provision(oidc, &email).await?,
        };
        if self.has_factor(&user)? {
            return Ok(SignInStep::SecondStep(self.ticket(&user)));
        }
        self.open_session(&user).await.map(SignInStep::Done)
    }

    /// Returns the verified email address.
    async fn verified_email(&self, oidc: &Oidc, seed: &str, code: &str) -> Result<String> {
        let metadata = oidc.metadata(self.ids().clock.monotonic()).await?;
        let secret = Some(ClientSecret::new(oidc.settings.client_secret.expose().clone())).filter(|secret| !secret.secret().is_empty());
        let client = CoreClient::from_provider_metadata(metadata, ClientId::new(oidc.settings.client_id.clone()), secret);
        let client = client.set_redirect_uri(self.redirect_url()?);
        let requests = oidc.client.clone();
        let by = move |request| fetch(requests.clone(), request);
        let exchange = client.exchange_code(AuthorizationCode::new(code.to_owned()));
        let exchange = exchange.map_err(|error| unreachable("a token endpoint", &error))?;
        let exchange = exchange.set_pkce_verifier(PkceCodeVerifier::new(self.derive_from_seed(seed, b"verifier")));
        let tokens = exchange.request_async(&by).await.map_err(|error| {
            let other = unreachable("tokens for a code", &error);
            let is_answer = matches!(error, RequestTokenError::ServerResponse(_));
            if is_answer { refused("the provider no longer accepts this sign-in; start again") } else { other }
        })?;
        let token = tokens.id_token().ok_or_else(|| refused("the provider sent no ID token"))?;
        let nonce = Nonce::new(self.derive_from_seed(seed, b"nonce"));
        let now = self.ids().clock.now().millis();
        let verifier = client.id_token_verifier().set_time_fn(move || DateTime::from_timestamp_millis(now).unwrap_or_default());
        let claims = token.claims(&verifier, &nonce).map_err(|error| {
            *oidc.known.lock() = None; // its keys may have been rotated
            unreachable("a valid ID token", &error);
            refused("the provider's ID token is invalid; start again")
        })?;
        let mut found = (claims.email().cloned(), claims.email_verified());
        if found.0.is_none() {
            // With an access token, the address may be only in the UserInfo response (OpenID Connect Core 1.0 §5.4).
            let asked = client.user_info(tokens.access_token().clone(), Some(claims.subject().clone()));
            let asked = asked.map_err(|error| unreachable("a UserInfo endpoint", &error))?;
            let info: CoreUserInfoClaims = asked.request_async(&by).await.map_err(|error| unreachable("the email address", &error))?;
            found = (info.email().cloned(), info.email_verified());
        }
        match found {
            (Some(email), Some(true)) => {
                sign_in_address(&email).map_err(|error| refused(format!("the provider's email address cannot be used: {error}")))
            }
            (Some(_), _) => Err(refused("the provider does not report your email address as verified; verify it there")),
            (None, _) => Err(refused("the provider does not report your email address; allow it there")),
        }
    }

    /// Creates a person admitted by the settings.
    async fn provision(&self, oidc: &Oidc, email: &str) -> Result<User> {
        let not_allowed = || refused(format!("{email} is not allowed to sign in here; ask an owner to add you"));
        if !oidc.admits(email) {
            return Err(not_allowed());
        }
        // A random password: until an owner or the operator sets one, only the provider can sign this person in. Hashed before the
        // transaction, which holds up all other writers of the embedded database.
        let mut random = [0; 32];
        self.ids().entropy.fill(&mut random);
        let password = password::hash(&URL_SAFE_NO_PAD.encode(random), &*self.ids().entropy).await?;
        let mut tx = self.inner.store.begin().await?;
        let project = tx.list_projects().await?.into_iter().next().ok_or_else(not_allowed)?;
        if !tx.has_users().await? {
            return Err(refused("this server has no owner yet; open the link that it printed when it started"));
        }
        let (id, role) = (self.ids().next(), oidc.settings.role);
        let user = User { id, project: project.id, email: email.to_owned(), role, password, factor: None, factor_version: 0 };
        if tx.insert_user(&user, self.ids().clock.now()).await? {
            Change::new("person", "create", email).to(&shown(&user)).by(email).record_of(&mut *tx, &project).await?;
            tx.commit().await?;
            return Ok(user);
        }
        drop(tx);
        let found = self.inner.store.read().await?.find_user(email).await?;
        found.ok_or_else(|| Error::unavailable("this person was just added or removed; try again"))
    }

    /// Returns the redirect URL of this installation.
    fn redirect_url(&self) -> Result<RedirectUrl> {
        RedirectUrl::new(format!("{}/sign-in/oidc/back", self.inner.public_url)).map_err(Error::internal)
    }

    fn derive_from_seed(&self, seed: &str, what: &[u8]) -> String {
        let key = self.inner.sealer.derive(b"OpenID of the dashboard");
        URL_SAFE_NO_PAD.encode(mac(key.expose(), &[what, b"/", seed.as_bytes()]))
    }
}
