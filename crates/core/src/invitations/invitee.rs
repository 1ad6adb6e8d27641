//! The client's side of an invitation. There is no API key: the token of the link is the permission.

use std::sync::Arc;

use nuncio_domain::config::{Sender, TenantConfig};
use nuncio_domain::contact::Contact;
use nuncio_domain::invitation::{Invitation, InvitationStatus, Stage};
use nuncio_domain::number::{NumberStatus, PhoneNumber};
use nuncio_domain::{
    Colour, Environment, Error, ErrorCode, FieldError, InvitationId, PhoneNumberId, Redacted, Result, SenderId, TenantId, Timestamp,
    address, limits, line,
};
use nuncio_store::Tx;
use serde_json::json;
use subtle::ConstantTimeEq as _;

use super::{Invitations, code::recipient, create::hash, status};
use crate::{base::Change, contacts::lock_of, numbers};

/// An invitation as its client sees it.
#[derive(Clone, Debug)]
pub struct Invitee {
    /// Name of the inviting project.
    pub project: String,
    /// Colour of the project.
    pub colour: Option<Colour>,
    pub environment: Environment,
    pub stage: Stage,
    /// The client's name, if known.
    pub name: String,
    /// The client's email address, if known.
    pub email: String,
    /// The client's own phone number, if known.
    pub phone: String,
    /// The number to use instead of their own.
    pub assigned: Option<String>,
    /// Allowed countries of the client's own number; empty means any.
    pub countries: Vec<String>,
    pub expires_at: Timestamp,
    /// Number of codes that can still be sent within the hour.
    pub codes_left: usize,
    /// Part of every form, so that other sites cannot submit one.
    pub form_key: Redacted<String>,
}

/// What a client entered, unparsed.
#[derive(Clone, Debug, Default)]
pub struct Details {
    /// The name of the future sender.
    pub name: String,
    /// The client's email address.
    pub email: String,
    /// The client's own phone number; ignored if the invitation includes one.
    pub phone: String,
}

/// An invitation locked by a transaction.
struct Held {
    tx: Box<dyn Tx>,
    tenant: TenantId,
    invitation: Invitation,
    now: Timestamp,
}

impl Invitations<'_> {
    /// Returns the invitation of a link. `opened` records that the client viewed it.
    pub async fn guest(&self, token: &str, opened: bool) -> Result<Invitee> {
        let (tenant, id) = self.find_token(token).await?;
        let mut invitation = self.read(tenant, id).await?;
        if opened && invitation.viewed_at.is_none() && invitation.status_at(self.ids().clock.now()).is_open() {
            let tx = self.inner.store.begin().await?;
            let mut held = self.hold(tx, tenant, id).await?;
            held.see();
            invitation = held.save().await?;
        }
        let config = self.tenant_config(tenant).await?;
        let assigned = match invitation.number {
            Some(number) => self.inner.store.read().await?.find_number(tenant, number).await?.map(|n| n.phone_number),
            None => None,
        };
        Ok(Invitee {
            project: config.project.name.clone(),
            colour: config.project.colour,
            environment: config.environment,
            stage: invitation.stage(self.ids().clock.now()),
            name: invitation.client_name.unwrap_or_default(),
            email: invitation.client_email.unwrap_or_default(),
            phone: invitation.client_phone.unwrap_or_default(),
            assigned,
            countries: invitation.countries,
            expires_at: invitation.expires_at,
            codes_left: invitation.progress.codes_left(self.ids().clock.now()),
            form_key: self.form_key(token),
        })
    }

    /// Returns whether a form came from our own page.
    pub fn is_form_key(&self, token: &str, given: &str) -> bool {
        self.form_key(token).expose().as_bytes().ct_eq(given.as_bytes()).into()
    }

    fn form_key(&self, token: &str) -> Redacted<String> {
        Redacted::new(self.keyed_hash(b"invitation forms", &[token.as_bytes()]))
    }

    /// The client starts.
    pub async fn begin(&self, token: &str) -> Result<()> {
        let mut held = self.hold_token(token, &[Stage::Welcome]).await?;
        held.see();
        held.invitation.started_at = Some(held.now);
        held.change(InvitationStatus::InProgress).await.map(drop)
    }

    /// The client enters details. Sends a code to an own number that is not verified yet, in this language (RFC 5646).
    pub async fn give_details(&self, token: &str, details: Details, language: &str) -> Result<()> {
        let mut held = self.hold_token(token, &[Stage::Details, Stage::Code, Stage::Agree]).await?;
        let config = self.fresh_config(&mut held).await?;
        let read = read_details(&held.invitation, details)?;
        let invitation = &mut held.invitation;
        invitation.client_name = Some(read.name);
        invitation.client_email = Some(read.email);
        invitation.progress.details = true;
        let Some(phone) = read.phone else { return held.save().await.map(drop) };
        // So that they learn it now; [`Self::finish`] checks it for good.
        refuse_taken(&mut held, &phone, "phone").await?;
        let invitation = &mut held.invitation;
        if invitation.client_phone.as_ref() != Some(&phone) {
            invitation.client_phone = Some(phone.clone());
            invitation.progress.code = None;
        }
        if invitation.is_proved() || invitation.progress.code.as_ref().is_some_and(|code| code.is_good(held.now)) {
            return held.save().await.map(drop);
        }
        self.keep_and_send_code(held, (&config.project.name, language), &phone).await
    }

    /// The client requests another code.
    pub async fn resend_code(&self, token: &str, language: &str) -> Result<()> {
        let mut held = self.hold_token(token, &[Stage::Code]).await?;
        let config = self.fresh_config(&mut held).await?;
        let phone = held.invitation.client_phone.clone().unwrap_or_default();
        self.keep_and_send_code(held, (&config.project.name, language), &phone).await
    }

    /// Stores the code before it is sent, so that the client never has an unknown code.
    async fn keep_and_send_code(&self, mut held: Held, (project, language): (&str, &str), phone: &str) -> Result<()> {
        let new = self.new_code(&held.invitation, phone, held.now);
        if let Err(wait) = held.invitation.progress.count_code(held.now) {
            let message = match wait.as_secs().div_ceil(60) {
                0 | 1 => "Too many codes were sent. Try again in one minute.".to_owned(),
                minutes => format!("Too many codes were sent. Try again in {minutes} minutes."),
            };
            return Err(Error::field("form", message));
        }
        let before = held.invitation.progress.code.replace(new.kept.clone());
        let (tenant, counted) = (held.tenant, held.now);
        let id = held.save().await?.id;
        let Err(error) = self.send_code(tenant, (project, language), phone, &new).await else { return Ok(()) };
        // It may have been sent.
        if error.code().status() >= 500 {
            return Err(error);
        }
        let mut held = self.hold(self.inner.store.begin().await?, tenant, id).await?;
        held.invitation.progress.uncount_code(&new.kept, counted, before);
        held.save().await?;
        let message = "We could not send a code to this number. Try another number, or contact the person who invited you.";
        Err(Error::field("form", message).caused_by(error))
    }

    /// The client enters a code. Each wrong one counts, even if entered concurrently.
    pub async fn enter_code(&self, token: &str, entered: &str) -> Result<()> {
        let (mut held, contact) = self.hold_with_contact(token, &[Stage::Code]).await?;
        let digits: String = entered.chars().filter(|c| !c.is_whitespace() && *c != '-').collect();
        if digits.is_empty() {
            return Err(Error::field("code", "Enter the code."));
        }
        // A slip is not a guess: it costs no try.
        if digits.len() != 6 || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
            return Err(Error::field("code", "The code has six digits."));
        }
        let phone = held.invitation.client_phone.clone().unwrap_or_default();
        let Some(code) = held.invitation.progress.code.clone() else {
            return Err(Error::field("code", "There is no code yet. Request one below."));
        };
        if !code.is_good(held.now) {
            let why = if code.tries >= limits::INVITATION_CODE_TRIES { "Too many wrong codes." } else { "The code has expired." };
            return Err(Error::field("code", format!("{why} Request a new one below.")));
        }
        if self.is_code(&held.invitation, &phone, &code, &digits) {
            if let Some(contact) = contact {
                self.verify_contact(&mut *held.tx, held.tenant, contact, &held.invitation, &code).await?;
            }
            held.invitation.progress.code = None;
            held.invitation.progress.proved = Some(phone);
            return held.save().await.map(drop);
        }
        let left = limits::INVITATION_CODE_TRIES - code.tries - 1;
        if let Some(code) = &mut held.invitation.progress.code {
            code.tries += 1;
        }
        held.save().await?;
        let message = match left {
            0 => "The code is wrong, and this was the last try. Request a new one below.".to_owned(),
            1 => "The code is wrong. One try left.".to_owned(),
            left => format!("The code is wrong. {left} tries left."),
        };
        Err(Error::field("code", message))
    }

    /// The client agrees and finishes: creates the sender. All in one transaction, so that a second try finds the invitation completed.
    pub async fn finish(&self, token: &str, agreed: bool) -> Result<SenderId> {
        let (tenant, id) = self.find_token(token).await?;
        // Like every change of senders, it is serialised per environment before it locks anything else.
        let tx = self.change_config(tenant).await?;
        let mut held = self.hold(tx, tenant, id).await?.at(&[Stage::Agree])?;
        if !agreed {
            return Err(Error::field("agree", "Tick the box to continue."));
        }
        let mut number = match held.invitation.number {
            Some(id) => Some(held.assigned(id).await?),
            None => None,
        };
        let own = held.invitation.client_phone.clone().unwrap_or_default();
        let name = held.invitation.client_name.clone().unwrap_or_default();
        let phone_number = number.as_ref().map_or(own, |number| number.phone_number.clone());
        let sender = Sender { phone_number, ..Sender::new(self.ids().at(held.now), name, held.now) };
        let config = self.fresh_config(&mut held).await?;
        match &number {
            None => refuse_taken(&mut held, &sender.phone_number, "form").await?,
            Some(_) if config.senders.iter().any(|other| other.phone_number == sender.phone_number) => {
                return Err(Error::field("form", "Another sender already has this number."));
            }
            Some(_) => {}
        }
        self.senders().write(&mut *held.tx, tenant, config.environment, &sender).await?;
        if let Some(number) = &mut number {
            numbers::take(&mut *held.tx, tenant, number, sender.id, held.now).await?;
            held.tx.update_number(tenant, number).await?;
        }
        held.invitation.sender = Some(sender.id);
        Change::new("invitation", "complete", id).to(&json!({"senderId": sender.id})).by_guest(id).record(&mut *held.tx, tenant).await?;
        held.invitation.completed_at = Some(held.now);
        held.change(InvitationStatus::Completed).await?;
        self.forget_config(tenant);
        if config.environment == Environment::Test {
            self.senders().query_new_account(tenant, sender.id).await;
        }
        Ok(sender.id)
    }

    async fn find_token(&self, token: &str) -> Result<(TenantId, InvitationId)> {
        // Guessed tokens cause no database access; a link whose invitation is gone causes one.
        let hash = hash(token);
        if !self.is_token(token) || self.inner.dead_links.contains(&hash) {
            return Err(Error::not_found("invitation"));
        }
        let found = self.inner.store.read().await?.find_invitation_by_token(&hash).await?;
        self.inner.dead_links.note(hash, found.is_none());
        found.ok_or_else(|| Error::not_found("invitation"))
    }

    async fn read(&self, tenant: TenantId, id: InvitationId) -> Result<Invitation> {
        let found = self.inner.store.read().await?.find_invitation(tenant, id).await?;
        found.ok_or_else(|| Error::not_found("invitation"))
    }

    /// Locks an invitation.
    async fn hold(&self, mut tx: Box<dyn Tx>, tenant: TenantId, id: InvitationId) -> Result<Held> {
        let found = tx.lock_invitation(tenant, id).await?;
        let invitation = found.ok_or_else(|| Error::not_found("invitation"))?;
        Ok(Held { tx, tenant, invitation, now: self.ids().clock.now() })
    }

    /// Locks the invitation of a token, if it is in one of these stages.
    async fn hold_token(&self, token: &str, stages: &[Stage]) -> Result<Held> {
        let (tenant, id) = self.find_token(token).await?;
        let tx = self.inner.store.begin().await?;
        self.hold(tx, tenant, id).await?.at(stages)
    }

    /// Like [`Self::hold_token`], but first locks the contact that has the client's number, in the order of an erasure.
    async fn hold_with_contact(&self, token: &str, stages: &[Stage]) -> Result<(Held, Option<Contact>)> {
        let (tenant, id) = self.find_token(token).await?;
        let recipient = recipient(&self.read(tenant, id).await?);
        let mut tx = self.inner.store.begin().await?;
        let contact = lock_of(&mut *tx, tenant, &recipient).await?;
        Ok((self.hold(tx, tenant, id).await?.at(stages)?, contact))
    }

    /// Returns the configuration as the transaction sees it. A second connection could wait for the one held here.
    async fn fresh_config(&self, held: &mut Held) -> Result<Arc<TenantConfig>> {
        let config = held.tx.load_tenant(held.tenant).await?;
        config.map(Arc::new).ok_or_else(|| Error::not_found("project"))
    }
}

impl Held {
    /// Returns it if it is in one of these stages.
    fn at(self, stages: &[Stage]) -> Result<Self> {
        if stages.contains(&self.invitation.stage(self.now)) {
            return Ok(self);
        }
        let current = self.invitation.status_at(self.now).as_str();
        Err(Error::wrong_state("the invitation is at another step", current, &[]))
    }

    /// Records that the client viewed the invitation.
    fn see(&mut self) {
        if self.invitation.status_at(self.now).is_open() {
            self.invitation.viewed_at.get_or_insert(self.now);
        }
    }

    async fn save(mut self) -> Result<Invitation> {
        self.invitation.updated_at = self.now;
        self.tx.update_invitation(self.tenant, &self.invitation).await?;
        self.tx.commit().await?;
        Ok(self.invitation)
    }

    async fn change(mut self, to: InvitationStatus) -> Result<Invitation> {
        status::change(&mut *self.tx, self.tenant, &mut self.invitation, to, self.now).await?;
        self.tx.commit().await?;
        Ok(self.invitation)
    }

    /// Returns the reserved number, if it is still available.
    async fn assigned(&mut self, id: PhoneNumberId) -> Result<PhoneNumber> {
        let number = self.tx.lock_number(self.tenant, id).await?;
        number.filter(|number| number.status == NumberStatus::Active && number.sender.is_none()).ok_or_else(|| {
            Error::field("form", "The number reserved for you is not available at the moment. Contact the person who invited you.")
        })
    }
}

/// The parsed details.
struct Read {
    name: String,
    email: String,
    /// The client's own number, if one is needed.
    phone: Option<String>,
}

fn read_details(invitation: &Invitation, given: Details) -> Result<Read> {
    let mut errors = Vec::new();
    let name = given.name.trim().to_owned();
    let most = limits::INVITATION_NAME;
    if name.is_empty() {
        errors.push(FieldError::new("name", "Enter a name."));
    } else if line::check("name", &name, 1, most).is_some() {
        errors.push(FieldError::new("name", format!("Enter a name of at most {most} characters, on one line.")));
    }
    let email = address::email(given.email.trim()).unwrap_or_else(|_| {
        errors.push(FieldError::new("email", "Enter an email address such as name@example.org."));
        String::new()
    });
    let phone = match invitation.number {
        Some(_) => None,
        None => match read_phone(invitation, &given.phone) {
            Ok(phone) => Some(phone),
            Err(message) => {
                errors.push(FieldError::new("phone", message));
                None
            }
        },
    };
    if errors.is_empty() { Ok(Read { name, email, phone }) } else { Err(Error::invalid(errors)) }
}

/// Parses a phone number as people write it.
fn read_phone(invitation: &Invitation, typed: &str) -> Result<String, String> {
    let allowed = &invitation.countries;
    let phone = address::typed_phone(typed, allowed)
        .map_err(|_| "Enter a phone number with its country code, such as +34 600 111 222.".to_owned())?;
    if !allowed.is_empty() && !allowed.contains(&address::phone_facts(&phone).country) {
        return Err(format!("The number must be from one of these countries: {}.", allowed.join(", ")));
    }
    Ok(phone)
}

/// Fails if a sender of the environment has the number, or it is reserved for an invitation.
async fn refuse_taken(held: &mut Held, phone: &str, path: &str) -> Result<()> {
    match numbers::refuse_other_holder(&mut *held.tx, held.tenant, None, phone, held.now).await {
        Err(error) if error.code() == ErrorCode::Conflict => Err(Error::field(path, "Another sender already has this number.")),
        free => free,
    }
}
