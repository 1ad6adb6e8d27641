//! Maps the SMSCs' `command_status` (SMPP 3.4 §5.1.3; from 0x100 on: SMPP 5.0, 4.7.6). Pure.

use nuncio_channel::{Outcome, Scope};
use nuncio_domain::message::{Failure, FailureCode};

/// It worked.
pub(crate) const OK: u32 = 0x00;
/// A command that is not known.
pub(crate) const INVALID_COMMAND: u32 = 0x03;
/// The bind failed, for any reason.
pub(crate) const BIND_FAILED: u32 = 0x0D;
/// The queue is full: later.
pub(crate) const QUEUE_FULL: u32 = 0x14;
/// The receiver cannot take it now: later.
pub(crate) const NOT_NOW: u32 = 0x64;
/// The receiver will never take it.
pub(crate) const NEVER: u32 = 0x65;

/// Meaning of a submit_sm_resp other than [`OK`].
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Class {
    /// Not now.
    Later(FailureCode, Scope),
    Never(FailureCode),
}

use Class::{Later, Never};
use FailureCode::{
    ContentRejected as Content, CredentialsInvalid as Credentials, InvalidRecipient as Recipient, ProviderRejected as Rejected,
    RateLimited, Undeliverable,
};

/// Number, name, class, and text.
const TABLE: &[(u32, &str, Class, &str)] = &[
    (0x01, "ESME_RINVMSGLEN", Never(Content), "the message is too long for it"),
    (0x02, "ESME_RINVCMDLEN", Never(Rejected), "it does not understand our PDUs: the length is wrong"),
    (0x03, "ESME_RINVCMDID", Never(Rejected), "it does not understand our PDUs: the command is unknown"),
    (0x04, "ESME_RINVBNDSTS", Later(Undeliverable, Scope::Connection), "it does not take messages over this session"),
    (0x05, "ESME_RALYBND", Later(Undeliverable, Scope::Connection), "it says that the account is bound already"),
    (0x06, "ESME_RINVPRTFLG", Never(Rejected), "it refuses the priority"),
    (0x07, "ESME_RINVREGDLVFLG", Never(Rejected), "it refuses to send receipts; see registered_delivery"),
    (0x08, "ESME_RSYSERR", Later(Undeliverable, Scope::Message), "it has trouble of its own"),
    (0x0A, "ESME_RINVSRCADR", Never(Rejected), "it refuses the sender's address; see from, or ask which senders the account may use"),
    (0x0B, "ESME_RINVDSTADR", Never(Recipient), "it refuses the recipient's address"),
    (BIND_FAILED, "ESME_RBINDFAIL", Later(Credentials, Scope::Connection), "it refuses to be bound to"),
    (0x0E, "ESME_RINVPASWD", Later(Credentials, Scope::Connection), "the password is wrong"),
    (0x0F, "ESME_RINVSYSID", Later(Credentials, Scope::Connection), "the system_id is wrong"),
    (QUEUE_FULL, "ESME_RMSGQFUL", Later(RateLimited, Scope::Message), "its queue is full"),
    (0x15, "ESME_RINVSERTYP", Never(Rejected), "it refuses the service_type"),
    (0x43, "ESME_RINVESMCLASS", Never(Rejected), "it refuses headers in messages; see multipart"),
    (0x45, "ESME_RSUBMITFAIL", Later(Undeliverable, Scope::Message), "it could not take the message"),
    (0x48, "ESME_RINVSRCTON", Never(Rejected), "it refuses the sender's type of number; see short_code_ton"),
    (0x49, "ESME_RINVSRCNPI", Never(Rejected), "it refuses the sender's numbering plan; see short_code_npi"),
    (0x50, "ESME_RINVDSTTON", Never(Recipient), "it refuses the recipient's type of number"),
    (0x51, "ESME_RINVDSTNPI", Never(Recipient), "it refuses the recipient's numbering plan"),
    (0x53, "ESME_RINVSYSTYP", Later(Credentials, Scope::Connection), "the system_type is wrong"),
    (0x58, "ESME_RTHROTTLED", Later(RateLimited, Scope::Connection), "the account sends faster than it may"),
    (0x61, "ESME_RINVSCHED", Never(Rejected), "it refuses the delivery time"),
    (0x62, "ESME_RINVEXPIRY", Never(Rejected), "it refuses the validity period; see validity_period"),
    (NOT_NOW, "ESME_RX_T_APPN", Later(Undeliverable, Scope::Message), "it cannot take the message now"),
    (NEVER, "ESME_RX_P_APPN", Never(Rejected), "it will not take the message"),
    (0x66, "ESME_RX_R_APPN", Never(Rejected), "it rejects the message"),
    (0xC0, "ESME_RINVOPTPARSTREAM", Never(Rejected), "it cannot read our optional parameters; see multipart"),
    (0xC1, "ESME_ROPTPARNOTALLWD", Never(Rejected), "it does not allow our optional parameters; see multipart"),
    (0xC2, "ESME_RINVPARLEN", Never(Rejected), "it cannot read our optional parameters; see multipart"),
    (0xC4, "ESME_RINVOPTPARAMVAL", Never(Rejected), "it refuses our optional parameters; see multipart"),
    (0xFE, "ESME_RDELIVERYFAILURE", Never(Undeliverable), "the message could not be delivered"),
    (0xFF, "ESME_RUNKNOWNERR", Later(Undeliverable, Scope::Message), "it does not say why"),
    (0x100, "ESME_RSERTYPUNAUTH", Never(Rejected), "the account may not use the service_type"),
    (0x101, "ESME_RPROHIBITED", Never(Rejected), "the account may not do this"),
    (0x102, "ESME_RSERTYPUNAVAIL", Later(Undeliverable, Scope::Message), "the service_type is not available now"),
    (0x103, "ESME_RSERTYPDENIED", Never(Rejected), "the service_type is denied"),
    (0x104, "ESME_RINVDCS", Never(Content), "it refuses the data_coding; see gsm7_data_coding and ucs2_data_coding"),
    (0x105, "ESME_RINVSRCADDRSUBUNIT", Never(Rejected), "it refuses the sender's address"),
    (0x106, "ESME_RINVDSTADDRSUBUNIT", Never(Recipient), "it refuses the recipient's address"),
];

fn look_up(status: u32) -> (&'static str, Class, &'static str) {
    let known = TABLE.iter().find(|(number, ..)| *number == status);
    // Unknown codes are permanent refusals: 0x400 to 0x4FF are provider-specific.
    known
        .map_or(("a status of its own", Never(Rejected), "ask the provider what it means"), |(_, name, class, words)| (name, *class, words))
}

/// Returns a status for people, such as `the password is wrong (ESME_RINVPASWD, 0x0E)`.
pub(crate) fn explain(status: u32) -> String {
    let (name, _, words) = look_up(status);
    format!("{words} ({name}, {status:#04X})").replace("0X", "0x")
}

/// Whether a bind that was refused like this fails until a person corrects the settings.
pub(crate) fn refuses_login(status: u32) -> bool {
    matches!(look_up(status).1, Later(Credentials, _))
}

/// Statuses that the settings give a meaning of their own.
#[derive(Clone, Default, Debug)]
pub(crate) struct OwnStatuses {
    /// The message is retried.
    pub(crate) retry: Vec<u32>,
    /// The whole connection backs off.
    pub(crate) pause: Vec<u32>,
}

impl OwnStatuses {
    fn class(&self, status: u32) -> Option<Class> {
        let later = |statuses: &[u32], scope| statuses.contains(&status).then_some(Later(Undeliverable, scope));
        later(&self.retry, Scope::Message).or_else(|| later(&self.pause, Scope::Connection))
    }
}

/// Reads statuses with commas between, each in decimal or, after `0x`, in hexadecimal. Fails with the first that is none.
pub(crate) fn list(text: &str) -> Result<Vec<u32>, &str> {
    text.split(',').map(str::trim).filter(|word| !word.is_empty()).map(|word| number(word).ok_or(word)).collect()
}

fn number(word: &str) -> Option<u32> {
    let number = match word.strip_prefix("0x").or_else(|| word.strip_prefix("0X")) {
        Some(digits) => u32::from_str_radix(digits, 16),
        None => word.parse(),
    };
    number.ok().filter(|number| *number != OK)
}

/// Returns the outcome on a message refused with `status`, which is not [`OK`].
pub(crate) fn outcome(status: u32, own: &OwnStatuses) -> Outcome {
    let failure =
        |code| Failure { code, provider_code: Some(code_text(status)), message: format!("the SMSC refused it: {}", explain(status)) };
    match own.class(status).unwrap_or_else(|| look_up(status).1) {
        Later(code, scope) => Outcome::Deferred { retry_after: None, failure: failure(code), scope },
        Never(code) => Outcome::Rejected { failure: failure(code) },
    }
}

/// A status as providers write it.
pub(crate) fn code_text(status: u32) -> String {
    format!("0x{status:02X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(status: u32, own: &OwnStatuses) -> (&'static str, FailureCode) {
        match outcome(status, own) {
            Outcome::Deferred { failure, scope: Scope::Connection, retry_after: None } => ("connection", failure.code),
            Outcome::Deferred { failure, .. } => ("deferred", failure.code),
            Outcome::Rejected { failure } => ("rejected", failure.code),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn classes() {
        for (status, expected) in [
            (0x01, ("rejected", Content)),
            (0x04, ("connection", Undeliverable)),
            (0x08, ("deferred", Undeliverable)),
            (0x0A, ("rejected", Rejected)),
            (0x0B, ("rejected", Recipient)),
            (0x0E, ("connection", Credentials)),
            (0x14, ("deferred", RateLimited)),
            (0x45, ("deferred", Undeliverable)),
            (0x58, ("connection", RateLimited)),
            (0x64, ("deferred", Undeliverable)),
            (0x65, ("rejected", Rejected)),
            (0xFE, ("rejected", Undeliverable)),
            (0x104, ("rejected", Content)),
            (0x0499, ("rejected", Rejected)),
        ] {
            assert_eq!(short(status, &OwnStatuses::default()), expected, "{status:#x}");
        }
    }

    #[test]
    fn settings_decide_first() {
        let own = OwnStatuses { retry: list("0x400, 11").unwrap(), pause: list("0X0401,").unwrap() };
        for (status, expected) in [
            (0x400, ("deferred", Undeliverable)),
            (0x0B, ("deferred", Undeliverable)),
            (0x401, ("connection", Undeliverable)),
            (0x402, ("rejected", Rejected)),
        ] {
            assert_eq!(short(status, &own), expected, "{status:#x}");
        }
        for (text, wrong) in [("0x400;0x401", "0x400;0x401"), ("1, 0", "0"), ("0x1G", "0x1G"), ("-1", "-1"), ("4294967296", "4294967296")] {
            assert_eq!(list(text), Err(wrong));
        }
    }

    #[test]
    fn numbers_stand_once_and_in_order() {
        assert!(TABLE.windows(2).all(|pair| pair[0].0 < pair[1].0));
        assert!([BIND_FAILED, 0x0E, 0x0F, 0x53].into_iter().all(refuses_login));
        assert!(![0x05, 0x08, 0x58, 0x400].into_iter().any(refuses_login));
        assert_eq!(explain(0x0E), "the password is wrong (ESME_RINVPASWD, 0x0E)");
        assert_eq!(explain(0x40A), "ask the provider what it means (a status of its own, 0x40A)");
    }
}
