//! Sign-in by an OpenID provider (OpenID Connect Core 1.0, authorization code with PKCE).
//!
//! Stores nothing during the redirect: state, nonce and verifier are derived from a seed in a cookie and the installation's key. A response
//! meant for another browser therefore matches no seed.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use chrono::DateTime;
use nuncio_domain::user::{Membership, User};
use nuncio_domain::{Error, ErrorCode, Redacted, Result};
use nuncio_secrets::mac;
use openidconnect::core::{CoreAuthenticationFlow, CoreClient, CoreUserInfoClaims};
use openidconnect::{
    AuthorizationCode, ClientId, ClientSecret, CsrfToken, Nonce, OAuth2TokenResponse as _, PkceCodeChallenge, PkceCodeVerifier,
    RedirectUrl, RequestTokenError, Scope, TokenResponse as _,
};
use subtle::ConstantTimeEq as _;

use super::{SignInStep, Users, manage::shown, password, sign_in_address};
use crate::base::Change;
use crate::base::oidc::{Oidc, fetch, unreachable};

/// A started sign-in.
#[derive(Clone, Debug)]
pub struct OidcBegun {
    /// Where to redirect the browser.
    pub url: String,
    /// Cookie that the browser must return.
    pub seed: Redacted<String>,
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
            oidc.forget(); // its keys may have been rotated
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
        let (role, now) = (oidc.settings.role, self.ids().clock.now());
        let user = User { id: self.ids().next(), email: email.to_owned(), password, factor: None, factor_version: 0 };
        if tx.insert_user(&user, now).await? {
            tx.insert_membership(user.id, Membership { project: project.id, role }, now).await?;
            Change::new("person", "create", email).to(&shown(role)).by(email).commit_of(tx, &project).await?;
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
