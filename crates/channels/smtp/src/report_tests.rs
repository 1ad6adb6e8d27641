use nuncio_domain::message::FailureCode;

use super::*;
use crate::mail::Mail;

fn read(mail: &str) -> Mail {
    Mail::read("", mail.replace("\r\n", "\n").replace('\n', "\r\n").as_bytes()).expect("a mail")
}

/// Makes a report whose second part is `kind` with this content, about an email with this head.
fn report(kind: &str, content: &str, head: &str) -> Mail {
    read(&format!(
        "From: mailer@mx.example\nSubject: report\nAuto-Submitted: auto-generated\nMIME-Version: 1.0\nContent-Type: multipart/report; report-type=x; boundary=b\n\n\
         --b\n\nIn words.\n--b\nContent-Type: message/{kind}\n\n{content}\n--b\nContent-Type: text/rfc822-headers\n\n{head}\n--b--\n"
    ))
}

fn fates(entries: &str) -> Vec<DsnAction> {
    match report("delivery-status", &format!("Reporting-MTA: dns; mx.example\n\n{entries}"), "Subject: x") {
        Mail::Report(deliveries) => deliveries.into_iter().map(|delivery| delivery.fate).collect(),
        Mail::Automatic => Vec::new(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_bounce_as_postfix_writes_it() {
    let mail = include_bytes!("../tests/mails/postfix_bounce.eml");
    let Some(Mail::Report(deliveries)) = Mail::read("", mail) else { panic!("no report") };
    let [Delivery { fate, recipient, raw }] = deliveries.as_slice() else { panic!("{deliveries:?}") };
    let failure = Failure {
        code: FailureCode::InvalidRecipient,
        provider_code: Some("5.1.1".to_owned()),
        message: "550 5.1.1 No such user".to_owned(),
    };
    assert_eq!(*fate, DsnAction::Failed { failure, hard: true });
    assert_eq!(recipient.as_deref(), Some("nouser@example.net"));
    assert!(raw.starts_with("Final-Recipient: rfc822; nouser@example.net\n") && raw.ends_with("No such user"), "{raw}");
}

#[test]
fn what_statuses_mean() {
    use FailureCode::{ContentRejected, InvalidRecipient, ProviderRejected, RateLimited, Undeliverable};
    for (status, code, hard) in [
        ("5.1.1", InvalidRecipient, true),
        ("5.1.2 (bad domain)", InvalidRecipient, true),
        ("5.1.0", InvalidRecipient, true),
        ("5.1.3", InvalidRecipient, true),
        ("5.1.4", InvalidRecipient, false),
        ("5.1.6", InvalidRecipient, true),
        ("5.1.8", ProviderRejected, false),
        ("5.1.10", InvalidRecipient, true),
        ("5.1.90", RateLimited, false),
        ("5.2.1", Undeliverable, true),
        ("5.2.2", Undeliverable, false),
        ("5.3.4", ContentRejected, false),
        ("5.4.1", Undeliverable, false),
        ("5.5.0", Undeliverable, false),
        ("5.7.1", ContentRejected, false),
        ("4.1.1", Undeliverable, false),
        ("5.0.0", Undeliverable, false),
        ("4.4.7", Undeliverable, false),
        ("nonsense", Undeliverable, false),
        ("9.1.1", Undeliverable, false),
        ("5.1.1.1", Undeliverable, false),
    ] {
        let told = fates(&format!("Final-Recipient: rfc822; a@b.example\nAction: failed\nStatus: {status}\n"));
        let [DsnAction::Failed { failure, hard: found }] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((failure.code, *found), (code, hard), "{status}");
        assert!(!failure.message.is_empty());
    }
}

#[test]
fn the_reply_of_the_mail_server_makes_a_status_without_detail_precise() {
    for (status, reply, code, hard) in [
        ("5.0.0", "smtp; 550 5.1.1 <a@b.example>: User unknown", "5.1.1", true),
        ("5.0.0", "smtp; 550-5.1.1 The account does not exist", "5.1.1", true),
        ("nonsense", "smtp; 550 5.2.1 Disabled", "5.2.1", true),
        ("5.0.0", "smtp; 550 No such user", "5.0.0", false),
        ("5.0.0", "smtp; 5\u{e9}0 5.1.1", "5.0.0", false),
        ("5.2.2", "smtp; 550 5.1.1 Mailbox full", "5.2.2", false),
    ] {
        let told = fates(&format!("Final-Recipient: rfc822; a@b.example\nAction: failed\nStatus: {status}\nDiagnostic-Code: {reply}\n"));
        let [DsnAction::Failed { failure, hard: found }] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((failure.provider_code.as_deref(), *found), (Some(code), hard), "{status} {reply}");
    }
}

#[test]
fn the_text_tells_statuses_with_several_meanings_apart() {
    use FailureCode::{InvalidRecipient, ProviderRejected, RateLimited, Undeliverable};
    for (reply, code, hard) in [
        ("550 5.1.0 <us@example.org>: Sender address rejected: User unknown in virtual mailbox table", ProviderRejected, false),
        ("550 5.1.0 Address rejected", InvalidRecipient, true),
        ("550 5.5.0 Requested action not taken: mailbox unavailable (S2017062302)", InvalidRecipient, true),
        ("550 5.5.0 Requested action not taken", Undeliverable, false),
        ("550 5.4.1 Recipient address rejected: Access denied. AS(201806281) [x.outlook.com]", InvalidRecipient, true),
        ("550 5.4.1 [a@b.example]: Relay Access Denied", Undeliverable, false),
        ("550-5.2.1 The user you are trying to contact is receiving mail at a\n rate that prevents delivery", RateLimited, false),
        ("550 5.2.1 The user you are trying to contact is receiving mail too quickly", RateLimited, false),
        ("550 5.2.1 The email account that you tried to reach is inactive", Undeliverable, true),
    ] {
        let status = reply[4..].split(' ').next().unwrap();
        let told =
            fates(&format!("Final-Recipient: rfc822; a@b.example\nAction: failed\nStatus: {status}\nDiagnostic-Code: smtp; {reply}\n"));
        let [DsnAction::Failed { failure, hard: found }] = told.as_slice() else { panic!("{told:?}") };
        assert_eq!((failure.code, *found), (code, hard), "{reply}");
    }
}

#[test]
fn what_actions_mean() {
    for (action, fate) in [
        ("delivered", DsnAction::Delivered),
        ("Relayed (to a system that tells nothing)", DsnAction::Delivered),
        ("expanded", DsnAction::Delivered),
        ("DELAYED", DsnAction::Delayed),
    ] {
        assert_eq!(fates(&format!("Final-Recipient: rfc822; a@b.example\nAction: {action}\nStatus: 2.0.0\n")), [fate], "{action}");
    }
    for nothing in ["", "Action: danced\n", "Action: danced\nStatus: 5.1.1\n", "Status: 9.1.1\n", "action\n", ":\n\n:\n"] {
        assert_eq!(fates(nothing), [], "{nothing:?}");
    }
    let two =
        fates("Final-Recipient: rfc822; a@b.example\nAction: delivered\n\n\nFinal-Recipient: rfc822; c@d.example\nAction:\n delayed\n");
    assert_eq!(two, [DsnAction::Delivered, DsnAction::Delayed], "folded lines and empty ones");
    assert_eq!(fates(&"Action: delayed\n\n".repeat(1_000)).len(), ENTRIES);
}

#[test]
fn a_status_without_action_tells_what_happened() {
    let fate = |status: &str| fates(&format!("Final-Recipient: rfc822; a@b.example\nStatus: {status}\n")).pop();
    assert_eq!((fate("2.0.0"), fate("4.4.1")), (Some(DsnAction::Delivered), Some(DsnAction::Delayed)));
    let failed = fate("5.1.1 (no such user)");
    assert!(
        matches!(&failed, Some(DsnAction::Failed { failure, hard: true }) if failure.code == FailureCode::InvalidRecipient),
        "{failed:?}"
    );
}

#[test]
fn a_receipt_for_reading_is_no_bounce() {
    for kind in ["disposition-notification", "global-disposition-notification"] {
        let mail = format!(
            "From: ada@example.net\nSubject: Read: s\nContent-Type: multipart/report; report-type={kind}; boundary=b\n\n--b\n\nRead.\n\
             --b\nContent-Type: message/{kind}\n\nFinal-Recipient: rfc822; ada@example.net\nDisposition: manual-action/MDN-sent-manually; displayed\n--b--\n"
        );
        assert_eq!(read(&mail), Mail::Automatic, "{kind}");
    }
}

#[test]
fn complaints() {
    let head = "Return-Path: <b-2@bounces.example.org>\nMessage-ID: <msg_01kahy0000e0000000000000ab@example.org>\nSubject: x\n";
    let Mail::Complaint(complaint) = report(
        "feedback-report",
        "Feedback-Type: abuse\nUser-Agent: x/1\nVersion: 1\nOriginal-Mail-From: <b-1@bounces.example.org>\n",
        head,
    ) else {
        panic!("no complaint")
    };
    assert_eq!(complaint.return_paths, ["b-1@bounces.example.org", "b-2@bounces.example.org"]);
    assert_eq!(complaint.message.map(|id| id.to_string()).as_deref(), Some("msg_01kahy0000e0000000000000ab"));
    for (kind, is_one) in [("fraud", true), ("OPT-OUT", true), ("not-spam", false), ("auth-failure", false), ("dmarc", false)] {
        let mail = report("feedback-report", &format!("Feedback-Type: {kind}\n"), head);
        assert_eq!(matches!(mail, Mail::Complaint(_)), is_one, "{kind}");
    }
    // The whole email instead of its head.
    let mail = format!(
        "From: fbl@mx.example\nContent-Type: multipart/report; boundary=b\n\n--b\nContent-Type: message/feedback-report\n\nFeedback-Type: abuse\n\
         --b\nContent-Type: message/rfc822\n\n{head}\nhello\nMessage-ID: <no@header>\n--b--\n"
    );
    let Mail::Complaint(complaint) = read(&mail) else { panic!("no complaint") };
    assert_eq!((complaint.return_paths.len(), complaint.message.is_some()), (1, true));
}
