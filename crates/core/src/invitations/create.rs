//! `POST /v1/invitations`.

use std::time::Duration;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};
use nuncio_domain::id::Id as _;
use nuncio_domain::invitation::{Invitation, InvitationProgress, InvitationStatus};
use nuncio_domain::number::NumberStatus;
use nuncio_domain::{Error, FieldError, InvitationId, PhoneNumberId, Redacted, Result, TenantId, Timestamp, address, limits, line};
use nuncio_secrets::{Row, mac};
use nuncio_store::{IdempotentOperation, Repeat, Tx};
use serde::{Deserialize, Serialize};
use serde_json::Map;
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;
use utoipa::ToSchema;

use super::Invitations;
use super::view::{InvitationView, TOKEN};
use crate::base::{Caller, Change, UseCase, idempotency, is_blank, list, parse_id_at, rights, unknown};
use crate::numbers;

/// 32 bytes in base64.
const RANDOM_LENGTH: usize = 43;
const NUMBER: &str = "phoneNumberId";
const DAY: Duration = Duration::from_secs(86_400);

/// A new invitation.
#[derive(Clone, Debug, Default, Serialize, Deserialize, ToSchema)]
#[serde(default, rename_all = "camelCase", deny_unknown_fields)]
pub struct CreateInvitation {
    /// The client's name; empty means none.
    #[schema(max_length = 100)]
    pub client_name: Option<String>,
    /// The client's email address.
    #[schema(max_length = 254, format = "email")]
    pub client_email: Option<String>,
    /// The client's phone number in E.164.
    #[schema(max_length = 16, example = "+34600111222")]
    pub client_phone: Option<String>,
    /// A number of yours that the client uses instead of their own. It must be active and not assigned to a sender.
    pub phone_number_id: Option<String>,
    /// Days until it expires. Default 7.
    #[schema(minimum = 1, maximum = 30)]
    pub expires_in_days: Option<u32>,
    /// Allowed countries (ISO 3166-1 alpha-2) of the client's own number; absent or empty means any.
    #[schema(max_items = 250, value_type = Option<Vec<CountryCode>>)]
    pub allowed_phone_countries: Option<Vec<String>>,
    /// Fields that a page could not read, reported with all other errors.
    #[serde(skip)]
    pub unreadable: Vec<FieldError>,
}

/// A country by ISO 3166-1 alpha-2.
#[derive(ToSchema)]
#[schema(min_length = 2, max_length = 2, example = "ES")]
struct CountryCode(#[expect(dead_code, reason = "describes it in the document")] String);

impl Invitations<'_> {
    /// Creates an invitation with a link for the client.
    pub async fn create(&self, caller: &Caller, mut asked: CreateInvitation, key: Option<&str>) -> Result<InvitationView> {
        caller.require(UseCase::CreateInvitation)?;
        asked.client_name = asked.client_name.filter(|name| !is_blank(name));
        let days = *asked.expires_in_days.get_or_insert(limits::INVITATION_DAYS_DEFAULT);
        asked.allowed_phone_countries.get_or_insert_default();
        let guard = self.guard(caller.tenant, IdempotentOperation::CreateInvitation, idempotency::key(None, key)?, &asked);
        let now = self.ids().clock.now();
        let invitation = self.plan(caller.tenant, asked, now)?;
        // A reserved number must not go to a sender meanwhile.
        let mut tx = match invitation.number {
            Some(_) => self.change_config(caller.tenant).await?,
            None => self.inner.store.begin().await?,
        };
        // The key is kept while the invitation can be open, and for the usual time after that.
        let repeat = idempotency::claim(&mut *tx, caller.tenant, guard.as_ref(), invitation.id.uuid(), now.plus(DAY * days)).await?;
        if let Some(Repeat { original, same_request }) = repeat {
            drop(tx);
            let original = self.find(caller, InvitationId::from_uuid(original)).await?;
            return Err(idempotency::conflict(caller, rights::INVITATION, &original, same_request));
        }
        if let Some(number) = invitation.number {
            reserve_number(&mut *tx, caller.tenant, number, now).await?;
        }
        tx.insert_invitation(caller.tenant, &invitation).await?;
        let view = self.view(caller, &invitation);
        Change::new("invitation", "create", invitation.id).to(&view).commit(tx, caller.tenant).await?;
        self.forget_config(caller.tenant);
        Ok(view)
    }

    fn plan(&self, tenant: TenantId, asked: CreateInvitation, now: Timestamp) -> Result<Invitation> {
        let mut errors = asked.unreadable;
        errors.extend(asked.client_name.as_ref().and_then(|name| line::check("clientName", name, 0, limits::INVITATION_NAME)));
        let mut read = |path: &str, text: Option<String>, parse: fn(&str) -> Result<String, address::InvalidRecipient>| {
            text.map(|text| {
                parse(&text).unwrap_or_else(|error| {
                    errors.push(FieldError::new(path, error.to_string()));
                    text
                })
            })
        };
        let client_email = read("clientEmail", asked.client_email, address::email);
        let client_phone = read("clientPhone", asked.client_phone, address::phone);
        let days = asked.expires_in_days.unwrap_or(limits::INVITATION_DAYS_DEFAULT);
        let (least, most) = limits::INVITATION_DAYS;
        if !(least..=most).contains(&days) {
            errors.push(FieldError::new("expiresInDays", format!("is {days}; must be {least} to {most}")));
        }
        let countries = list::countries(&asked.allowed_phone_countries.unwrap_or_default(), "allowedPhoneCountries", &mut errors);
        Error::if_any(errors)?;
        let number = asked.phone_number_id.map(|text| parse_id_at(NUMBER, &text, "phone number")).transpose()?;
        let id: InvitationId = self.ids().at(now);
        let token = self.new_token();
        let secrets = Map::from_iter([(TOKEN.to_owned(), token.as_str().into())]);
        let sealed = self.inner.sealer.seal(Row::Invitation(tenant, id), &secrets, &*self.ids().entropy).map_err(Error::internal)?;
        Ok(Invitation {
            id,
            version: 0,
            status: InvitationStatus::Pending,
            token_hash: hash(&token),
            sealed: Redacted::new(sealed),
            client_name: asked.client_name,
            client_email,
            client_phone,
            number,
            countries,
            sender: None,
            expires_at: now.plus(DAY * days),
            viewed_at: None,
            started_at: None,
            completed_at: None,
            updated_at: now,
            progress: InvitationProgress::default(),
        })
    }

    /// Makes a token: 256 random bits, and a keyed checksum that rejects guesses without a look-up.
    fn new_token(&self) -> String {
        let mut bytes = [0; 32];
        self.ids().entropy.fill(&mut bytes);
        let random = URL_SAFE_NO_PAD.encode(bytes);
        format!("{random}{}", self.token_checksum(&random))
    }

    fn token_checksum(&self, random: &str) -> String {
        let key = self.inner.sealer.derive(b"invitation tokens");
        URL_SAFE_NO_PAD.encode(&mac(key.expose(), &[random.as_bytes()])[..8])
    }

    /// Returns whether a token was made by this installation.
    pub(super) fn is_token(&self, token: &str) -> bool {
        let parts = token.split_at_checked(RANDOM_LENGTH);
        parts.is_some_and(|(random, checksum)| self.token_checksum(random).as_bytes().ct_eq(checksum.as_bytes()).into())
    }
}

/// Returns the look-up hash of a token.
pub(super) fn hash(token: &str) -> [u8; 32] {
    Sha256::digest(token).into()
}

/// Checks that a number is free for an invitation, and locks it against concurrent requests.
async fn reserve_number(tx: &mut dyn Tx, tenant: TenantId, id: PhoneNumberId, now: Timestamp) -> Result<()> {
    let number = tx.lock_number(tenant, id).await?.ok_or_else(|| unknown("phone number", NUMBER, id))?;
    if number.status != NumberStatus::Active {
        let message = "only an active number can be reserved for an invitation";
        return Err(Error::wrong_state(message, number.status.as_str(), &[NumberStatus::Active.as_str()]));
    }
    if let Some(sender) = number.sender {
        return Err(numbers::bound(format!("the number belongs to sender {sender}; unassign it first")));
    }
    numbers::refuse_other_holder(tx, tenant, None, &number.phone_number, now).await
}
