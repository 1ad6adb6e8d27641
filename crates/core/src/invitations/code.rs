//! Codes that prove a phone number.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use nuncio_domain::id::Id as _;
use nuncio_domain::invitation::{Invitation, SentCode};
use nuncio_domain::key::KeyHash;
use nuncio_domain::message::{OnUnknown, Status};
use nuncio_domain::{Environment, Error, Permission, Permissions, Redacted, Result, TenantId, Timestamp, limits};
use nuncio_secrets::mac;
use subtle::ConstantTimeEq as _;

use super::Invitations;
use crate::base::Caller;
use crate::messages::{SendMessage, SendOptions};

/// A new code: what goes out, and what is kept.
pub(super) struct NewCode {
    pub(super) digits: Redacted<String>,
    pub(super) kept: SentCode,
}

impl Invitations<'_> {
    /// Six digits for the phone number of an invitation.
    pub(super) fn new_code(&self, invitation: &Invitation, phone: &str, now: Timestamp) -> NewCode {
        let digits = format!("{:06}", self.ids().entropy.below(1_000_000));
        let hash = self.code_hash(invitation, phone, &digits);
        let kept = SentCode { hash, expires_at: now.plus(limits::INVITATION_CODE_TTL), tries: 0 };
        NewCode { digits: Redacted::new(digits), kept }
    }

    /// Whether `entered` is the code that was sent to `phone`.
    pub(super) fn is_code(&self, invitation: &Invitation, phone: &str, code: &SentCode, entered: &str) -> bool {
        self.code_hash(invitation, phone, entered).as_bytes().ct_eq(code.hash.as_bytes()).into()
    }

    /// Keyed: of a million codes each could be tried against a plain hash.
    fn code_hash(&self, invitation: &Invitation, phone: &str, digits: &str) -> String {
        self.guest_mac(b"invitation codes", &[invitation.id.uuid().as_bytes(), phone.as_bytes(), b"/", digits.as_bytes()])
    }

    /// A keyed hash for one purpose.
    pub(super) fn guest_mac(&self, purpose: &[u8], parts: &[&[u8]]) -> String {
        let key = self.inner.sealer.derive(purpose);
        STANDARD_NO_PAD.encode(mac(key.expose(), parts))
    }

    /// Sends a code as an ordinary message of the inviting world's default sender. It is of no use after it expired, so it goes out
    /// by then or not at all.
    pub(super) async fn send_code(&self, tenant: TenantId, project: &str, phone: &str, digits: &Redacted<String>) -> Result<()> {
        let world = self.world(tenant).await?;
        let caller = self.house(tenant, world.environment);
        let minutes = limits::INVITATION_CODE_TTL.as_secs() / 60;
        let text = format!("{} is your code for {project}. It is good for {minutes} minutes. Do not pass it on.", digits.expose());
        let message = SendMessage {
            validity_seconds: Some(limits::INVITATION_CODE_TTL.as_secs()),
            on_unknown: Some(OnUnknown::Resend),
            ..SendMessage::text(phone, text)
        };
        let sent = self.messages().send(&caller, message, SendOptions::default()).await?;
        if sent.status == Status::Failed.as_str() {
            return Err(Error::field("form", sent.error_message.unwrap_or_else(|| "the number cannot be written to".to_owned())));
        }
        Ok(())
    }

    /// Who sends messages that no caller asked for.
    fn house(&self, tenant: TenantId, environment: Environment) -> Caller {
        Caller {
            tenant,
            environment,
            key: self.ids().next(),
            key_hash: KeyHash::default(), // of no key
            key_name: "invitations".to_owned(),
            permissions: Permissions::NONE.with(Permission::MessagesSend),
        }
    }
}
