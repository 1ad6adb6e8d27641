//! The second factor: codes of an authenticator app, and recovery codes for people who lost it.
//!
//! Stored sealed. Each use increments its version, so that a code that is submitted twice, even to different nodes, is accepted once.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use nuncio_domain::user::User;
use nuncio_domain::{Error, ErrorCode, Redacted, Result, Timestamp, UserId, id::Id as _};
use nuncio_secrets::{Row, mac};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};
use std::time::Duration;
use subtle::ConstantTimeEq as _;
use uuid::Uuid;

use super::manage::{record_in_all, require_all};
use super::totp::{base32, step_of};
use super::{SignedIn, Users, password, sign_in_address};
use crate::base::Change;

/// Number of recovery codes per person.
const CODES: usize = 10;
/// Time limit for the second step.
const PATIENCE: Duration = Duration::from_secs(300);

/// The sealed value.
#[derive(Clone, Serialize, Deserialize)]
struct Factor {
    secret: String,
    /// Time step of the last code used.
    step: i64,
    /// Hashes of unused recovery codes.
    codes: Vec<String>,
    /// Whether a code was entered once. Until then, sign-in does not require it.
    confirmed: bool,
}

/// A factor before its first code.
#[derive(Clone, Debug)]
pub struct PendingFactor {
    /// For manual entry, in base32.
    pub secret: Redacted<String>,
    /// For the QR code.
    pub uri: Redacted<String>,
}

/// State of a person's second factor.
#[derive(Clone, Debug)]
pub enum FactorState {
    Off,
    /// Set up but not confirmed.
    Pending(PendingFactor),
    /// Required at sign-in; with the number of unused recovery codes.
    On(usize),
}

impl Users<'_> {
    /// Returns whether the person signs in with a second step.
    pub fn has_factor(&self, user: &User) -> Result<bool> {
        Ok(self.factor(user)?.is_some_and(|factor| factor.confirmed))
    }

    /// Returns the state of the signed-in person's second factor.
    pub fn factor_state(&self, who: &SignedIn) -> Result<FactorState> {
        Ok(match self.factor(&who.user)? {
            None => FactorState::Off,
            Some(factor) if factor.confirmed => FactorState::On(factor.codes.len()),
            Some(factor) => {
                let encoded = |text: &str| url::form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20");
                let issuer = encoded(&format!("nuncio {}", who.project.name));
                let uri = format!("otpauth://totp/{issuer}:{}?secret={}&issuer={issuer}", encoded(&who.user.email), factor.secret);
                FactorState::Pending(PendingFactor { secret: Redacted::new(factor.secret), uri: Redacted::new(uri) })
            }
        })
    }

    /// Sets up a second factor. Sign-in requires it only after [`Self::confirm_factor`].
    pub async fn begin_factor(&self, who: &SignedIn, current: &Redacted<String>) -> Result<()> {
        self.check_password(who, current).await?;
        if self.has_factor(&who.user)? {
            return Err(Error::new(ErrorCode::InvalidRequest, "there is already a second factor; disable it first"));
        }
        let mut secret = [0; 20];
        self.ids().entropy.fill(&mut secret);
        let factor = Factor { secret: base32(&secret), step: 0, codes: Vec::new(), confirmed: false };
        self.put_factor(&who.user, Some(&factor), None).await
    }

    /// Activates the second factor. Returns the recovery codes, which cannot be shown again.
    pub async fn confirm_factor(&self, who: &SignedIn, code: &str) -> Result<Vec<Redacted<String>>> {
        let pending = self.factor(&who.user)?.filter(|factor| !factor.confirmed);
        let mut factor = pending.ok_or_else(|| Error::not_found("second factor to confirm"))?;
        let Some(step) = step_of(&decode(&factor.secret), &digits(code), self.ids().clock.now(), 0) else {
            return Err(Error::field("code", "is not the code in the app; check that both clocks are right"));
        };
        let codes = self.new_codes(&mut factor);
        (factor.step, factor.confirmed) = (step, true);
        self.put_factor(&who.user, Some(&factor), Some("switch_on_second_factor")).await?;
        Ok(codes)
    }

    /// Replaces all recovery codes.
    pub async fn renew_codes(&self, who: &SignedIn, current: &Redacted<String>) -> Result<Vec<Redacted<String>>> {
        self.check_password(who, current).await?;
        let on = self.factor(&who.user)?.filter(|factor| factor.confirmed);
        let mut factor = on.ok_or_else(|| Error::not_found("second factor"))?;
        let codes = self.new_codes(&mut factor);
        self.put_factor(&who.user, Some(&factor), Some("renew_recovery_codes")).await?;
        Ok(codes)
    }

    /// Removes the signed-in person's second factor.
    pub async fn remove_factor(&self, who: &SignedIn, current: &Redacted<String>) -> Result<()> {
        self.check_password(who, current).await?;
        self.put_factor(&who.user, None, Some("switch_off_second_factor")).await
    }

    /// Removes the second factor of a person who lost it. The caller must have checked that an owner or the operator requests it.
    pub async fn reset_factor(&self, email: &str) -> Result<()> {
        let email = sign_in_address(email).unwrap_or_default();
        let user = self.inner.store.read().await?.find_user(&email).await?.ok_or_else(|| Error::not_found("person"))?;
        self.put_factor(&user, None, Some("reset_second_factor")).await
    }

    /// Removes the second factor of a colleague who lost it. Fails unless `who` owns all of their projects: an owner of one project must
    /// not weaken the access to another.
    pub async fn reset_colleagues_factor(&self, who: &SignedIn, email: &str) -> Result<()> {
        let email = sign_in_address(email).unwrap_or_default();
        let mut tx = self.inner.store.read().await?;
        let user = tx.find_user(&email).await?.ok_or_else(|| Error::not_found("person"))?;
        let theirs = tx.list_memberships(user.id).await?;
        if !theirs.iter().any(|membership| membership.project == who.project.id) {
            return Err(Error::not_found("person"));
        }
        require_all(&mut *tx, who, &user, "reset-factor").await?;
        drop(tx);
        self.put_factor(&user, None, Some("reset_second_factor")).await
    }

    /// Returns proof of the first step. Valid for five minutes, for one sign-in, and until the password changes.
    pub(super) fn ticket(&self, user: &User) -> Redacted<String> {
        let until = self.ids().clock.now().plus(PATIENCE).millis().to_be_bytes();
        let id = user.id.uuid().into_bytes();
        let ticket = [&id[..], &until, &self.ticket_mac(user, until)].concat();
        Redacted::new(URL_SAFE_NO_PAD.encode(ticket))
    }

    fn ticket_mac(&self, user: &User, until: [u8; 8]) -> [u8; 32] {
        let key = self.inner.sealer.derive(b"second step of the dashboard");
        let (id, version) = (user.id.uuid().into_bytes(), user.factor_version.to_be_bytes());
        mac(key.expose(), &[&id, &until, &version, user.password.expose().as_bytes()])
    }

    /// Returns the person who passed the first step; `401 unauthorized` for an invalid or expired ticket.
    pub async fn ticket_holder(&self, ticket: &str) -> Result<User> {
        let over = || Error::new(ErrorCode::Unauthorized, "that took too long; sign in again");
        let (id, until, proof) = read_ticket(ticket).ok_or_else(over)?;
        let user = self.inner.store.read().await?.find_user_by_id(UserId::from_uuid(id)).await?.ok_or_else(over)?;
        let now = self.ids().clock.now();
        let is_proof: bool = self.ticket_mac(&user, until).ct_eq(&proof).into();
        if !is_proof || now >= Timestamp::from_millis(i64::from_be_bytes(until)) {
            return Err(over());
        }
        if self.has_factor(&user)? { Ok(user) } else { Err(over()) }
    }

    /// Completes the second step and returns the session cookie. Each code works once.
    pub async fn second_step(&self, user: &User, code: &str) -> Result<Redacted<String>> {
        let on = self.factor(user)?.filter(|factor| factor.confirmed);
        let mut factor = on.ok_or_else(|| Error::not_found("second factor"))?;
        let verb = match factor.take(code, self.ids().clock.now()) {
            Some(verb) => verb,
            None => {
                let mut tx = self.inner.store.begin().await?;
                let change = Change::new("person", "refused_second_step", &user.email).by(&user.email);
                record_in_all(&mut *tx, user, &change).await?;
                tx.commit().await?;
                return Err(Error::field("code", "is not a valid code"));
            }
        };
        self.put_factor(user, Some(&factor), verb).await?;
        self.open_session(&User { factor_version: user.factor_version + 1, ..user.clone() }).await
    }

    async fn check_password(&self, who: &SignedIn, current: &Redacted<String>) -> Result<()> {
        if password::is(current.expose(), Some(&who.user.password)).await? {
            return Ok(());
        }
        Err(Error::new(ErrorCode::InvalidRequest, "that is not your password"))
    }

    fn new_codes(&self, factor: &mut Factor) -> Vec<Redacted<String>> {
        let code = |_| {
            let mut bytes = [0; 10];
            self.ids().entropy.fill(&mut bytes);
            let text = base32(&bytes).to_lowercase();
            format!("{}-{}-{}-{}", &text[..4], &text[4..8], &text[8..12], &text[12..])
        };
        let codes: Vec<String> = (0..CODES).map(code).collect();
        factor.codes = codes.iter().map(|code| hash(code)).collect();
        codes.into_iter().map(Redacted::new).collect()
    }

    fn factor(&self, user: &User) -> Result<Option<Factor>> {
        let Some(sealed) = &user.factor else { return Ok(None) };
        let opened = self.inner.sealer.open(Row::Factor(user.id), sealed.expose()).map_err(Error::internal)?;
        serde_json::from_value(Value::Object(opened)).map(Some).map_err(Error::internal)
    }

    /// Stores a factor unless it changed or was used since `user` was read.
    async fn put_factor(&self, user: &User, factor: Option<&Factor>, verb: Option<&'static str>) -> Result<()> {
        let sealed = match factor.map(serde_json::to_value).transpose().map_err(Error::internal)? {
            Some(Value::Object(map)) => {
                let sealed = self.inner.sealer.seal(Row::Factor(user.id), &map, &*self.ids().entropy).map_err(Error::internal)?;
                Some(Redacted::new(sealed))
            }
            _ => None,
        };
        let mut tx = self.inner.store.begin().await?;
        if !tx.put_factor(user.id, user.factor_version, sealed.as_ref()).await? {
            return Err(Error::field("code", "was just used; wait for the next one"));
        }
        if let Some(verb) = verb {
            let change = Change::new("person", verb, &user.email);
            // During the second step, no one is signed in who could be the actor.
            let change = if verb == USED { change.by(&user.email) } else { change };
            record_in_all(&mut *tx, user, &change).await?;
        }
        Ok(tx.commit().await?)
    }
}

/// Audit verb for a sign-in with a recovery code.
const USED: &str = "use_recovery_code";

impl Factor {
    /// Consumes a code. Returns its audit verb, if it has one; `None` for a wrong code.
    fn take(&mut self, code: &str, now: Timestamp) -> Option<Option<&'static str>> {
        let digits = digits(code);
        if digits.len() == 6 {
            self.step = step_of(&decode(&self.secret), &digits, now, self.step)?;
            return Some(None);
        }
        let hash = hash(code);
        let at = self.codes.iter().position(|known| bool::from(known.as_bytes().ct_eq(hash.as_bytes())))?;
        self.codes.remove(at);
        Some(Some(USED))
    }
}

fn digits(code: &str) -> String {
    code.chars().filter(|c| !c.is_whitespace()).collect()
}

/// Returns the stored form of a recovery code, normalised. An unsalted hash suffices for 80 random bits.
fn hash(code: &str) -> String {
    let plain: String = code.chars().filter(char::is_ascii_alphanumeric).collect();
    URL_SAFE_NO_PAD.encode(Sha256::digest(plain.to_lowercase()))
}

/// Decodes base32.
fn decode(secret: &str) -> Vec<u8> {
    let digit = |c: u8| if c.is_ascii_uppercase() { c - b'A' } else { c.wrapping_sub(b'2') + 26 };
    let (mut bits, mut count, mut bytes) = (0_u32, 0, Vec::new());
    for c in secret.bytes() {
        bits = bits << 5 | u32::from(digit(c) & 31);
        count += 5;
        if count >= 8 {
            count -= 8;
            bytes.push((bits >> count & 0xff) as u8);
        }
    }
    bytes
}

/// Parses a ticket: person, expiry and MAC.
fn read_ticket(ticket: &str) -> Option<(Uuid, [u8; 8], [u8; 32])> {
    let bytes = URL_SAFE_NO_PAD.decode(ticket).ok()?;
    let (id, rest) = bytes.split_first_chunk::<16>()?;
    let (until, proof) = rest.split_first_chunk::<8>()?;
    Some((Uuid::from_bytes(*id), *until, proof.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_come_back_and_codes_are_used_up() {
        let secret: Vec<u8> = (0..20).map(|n| n * 13).collect();
        assert_eq!(decode(&base32(&secret)), secret);
        let mut factor = Factor { secret: base32(&secret), step: 0, codes: vec![hash("abcd-efgh"), hash("2345-6722")], confirmed: true };
        let now = Timestamp::from_millis(0);
        assert_eq!(factor.take("ABCDEFGH", now), Some(Some(USED)), "however it is typed");
        assert_eq!(factor.take("abcd-efgh", now), None);
        assert_eq!(factor.codes.len(), 1);
        assert_eq!(factor.take("", now), None);
    }
}
