//! Codes that verify a phone number.

use base64::{Engine as _, engine::general_purpose::STANDARD_NO_PAD};
use nuncio_domain::contact::Contact;
use nuncio_domain::id::Id as _;
use nuncio_domain::invitation::{Invitation, SentCode};
use nuncio_domain::key::KeyHash;
use nuncio_domain::message::{OnUnknown, Status};
use nuncio_domain::{AddressKind, Environment, Error, Permission, Permissions, Recipient, Redacted, Result, TenantId, Timestamp, limits};
use nuncio_secrets::mac;
use nuncio_store::{IdempotentOperation, Tx};
use subtle::ConstantTimeEq as _;

use super::Invitations;
use crate::base::Caller;
use crate::messages::{SendMessage, SendOptions};

/// A new code: the digits to send, and what to store.
pub(super) struct NewCode {
    pub(super) digits: Redacted<String>,
    pub(super) kept: SentCode,
}

impl Invitations<'_> {
    /// Makes a six-digit code for the phone number of an invitation.
    pub(super) fn new_code(&self, invitation: &Invitation, phone: &str, now: Timestamp) -> NewCode {
        let digits = format!("{:06}", self.ids().entropy.below(1_000_000));
        let hash = self.code_hash(invitation, phone, &digits);
        let kept = SentCode { hash, expires_at: now.plus(limits::INVITATION_CODE_TTL), tries: 0 };
        NewCode { digits: Redacted::new(digits), kept }
    }

    pub(super) fn is_code(&self, invitation: &Invitation, phone: &str, code: &SentCode, entered: &str) -> bool {
        self.code_hash(invitation, phone, entered).as_bytes().ct_eq(code.hash.as_bytes()).into()
    }

    /// Returns the idempotency key of the message that carries a code, by which it is found again. New for each code sent.
    fn message_key(code: &SentCode) -> String {
        format!("{}-{}", code.hash, code.expires_at.millis())
    }

    /// Marks the channel of the client's contact that carried a code as verified, in the transaction that accepts the code and has locked
    /// the contact.
    pub(super) async fn verify_contact(
        &self,
        tx: &mut dyn Tx,
        tenant: TenantId,
        contact: Contact,
        invitation: &Invitation,
        code: &SentCode,
    ) -> Result<()> {
        let key = self.inner.marks.key(tenant, &Self::message_key(code));
        let Some(message) = tx.find_message_by_idempotency_key(tenant, IdempotentOperation::SendMessage, &key).await? else {
            return Ok(());
        };
        let Some(message) = tx.lookup_messages(tenant, &[message]).await?.pop() else { return Ok(()) };
        let channel = message.state.route.channel.of_contact();
        match self.contacts().verify_channel(tx, tenant, contact, &recipient(invitation), channel).await? {
            Some(change) => Ok(change.by_guest(invitation.id).record(tx, tenant).await?),
            None => Ok(()),
        }
    }

    /// Keyed: the million possible codes could be tried against a plain hash.
    fn code_hash(&self, invitation: &Invitation, phone: &str, digits: &str) -> String {
        self.keyed_hash(b"invitation codes", &[invitation.id.uuid().as_bytes(), phone.as_bytes(), b"/", digits.as_bytes()])
    }

    pub(super) fn keyed_hash(&self, purpose: &[u8], parts: &[&[u8]]) -> String {
        let key = self.inner.sealer.derive(purpose);
        STANDARD_NO_PAD.encode(mac(key.expose(), parts))
    }

    /// Sends a code as an ordinary message of the inviting environment's default sender. The message expires with the code.
    pub(super) async fn send_code(&self, tenant: TenantId, (project, language): (&str, &str), phone: &str, new: &NewCode) -> Result<()> {
        let config = self.tenant_config(tenant).await?;
        let caller = self.system_caller(tenant, config.environment);
        let minutes = limits::INVITATION_CODE_TTL.as_secs() / 60;
        let text = code_text(language, new.digits.expose(), project, minutes);
        let message = SendMessage {
            validity_seconds: Some(limits::INVITATION_CODE_TTL.as_secs()),
            on_unknown: Some(OnUnknown::Resend),
            idempotency_key: Some(Self::message_key(&new.kept)),
            ..SendMessage::text(phone, text)
        };
        let sent = self.messages().send(&caller, message, SendOptions::default()).await?;
        if sent.status == Status::Failed {
            return Err(Error::field("form", sent.error_message.unwrap_or_else(|| "this number cannot receive messages".to_owned())));
        }
        Ok(())
    }

    /// Returns the caller of messages that nuncio sends on its own.
    fn system_caller(&self, tenant: TenantId, environment: Environment) -> Caller {
        Caller {
            tenant,
            environment,
            key: self.ids().next(),
            key_hash: KeyHash::default(), // not of any key
            key_name: "invitations".to_owned(),
            permissions: Permissions::NONE.with(Permission::MessagesSend),
            expires_at: None,
        }
    }
}

/// Returns the client's number as a recipient.
pub(super) fn recipient(invitation: &Invitation) -> Recipient {
    Recipient { kind: AddressKind::Phone, identifier: invitation.client_phone.clone().unwrap_or_default() }
}

/// Returns the text of a code's message, in English unless there is one in this language.
fn code_text(language: &str, digits: &str, project: &str, minutes: u64) -> String {
    match language {
        "es" => format!("{digits} es tu código para {project}. Vale {minutes} minutos. No lo compartas."),
        "pt" => format!("{digits} é o seu código para {project}. Vale por {minutes} minutos. Não o compartilhe."),
        "fr" => format!("{digits} est votre code pour {project}. Il est valable {minutes} minutes. Ne le partagez pas."),
        "de" => format!("{digits} ist Ihr Code für {project}. Er gilt {minutes} Minuten. Geben Sie ihn nicht weiter."),
        _ => format!("{digits} is your code for {project}. It is valid for {minutes} minutes. Do not share it."),
    }
}
