//! Validates a broadcast against its channel.

use nuncio_domain::broadcast::{Broadcast, Status};
use nuncio_domain::message::Content;
use nuncio_domain::{Channel, FieldError, RequestedChannel, Timestamp, limits, template::malformed};

use super::content::{is_template, message};
use super::{links, safety, variables};
use crate::base::{FieldErrors, check_metadata};
use crate::messages::{content, routing, validate};

/// Returns all errors. A draft may lack content.
pub(super) fn check(broadcast: &Broadcast, now: Timestamp) -> Vec<FieldError> {
    let mut errors = check_complete(broadcast, now);
    if broadcast.status == Status::Draft {
        errors.retain(|error| is_given(broadcast, &error.path));
    }
    errors
}

/// Returns whether the broadcast has the content field at `path`; true for all other fields.
fn is_given(broadcast: &Broadcast, path: &str) -> bool {
    match path.split_once('.') {
        None if path == "text" => broadcast.body.text.is_some(),
        None if path == "emailSubject" => broadcast.body.email_subject.is_some(),
        Some(("content", field)) => {
            let present = broadcast.body.content.as_deref().map(Content::present).unwrap_or_default();
            present.into_iter().any(|name| field.starts_with(name))
        }
        _ => true,
    }
}

/// Returns all errors, including those of missing content. A smart broadcast must be valid for SMS, which most of its recipients may get, and
/// for email if it has a subject or HTML.
pub(super) fn check_complete(broadcast: &Broadcast, now: Timestamp) -> Vec<FieldError> {
    let mut errors = Vec::new();
    let mut faults = FieldErrors { errors: &mut errors };
    faults.name("name", Some(&broadcast.body.name), 1, limits::BROADCAST_NAME);
    if let Some(at) = broadcast.body.scheduled_at.filter(|at| *at > now.plus(limits::BROADCAST_AHEAD)) {
        faults.push("scheduledAt", format!("{at} is more than 365 days ahead"));
    }
    let mails = broadcast.body.email_subject.is_some() || broadcast.html.is_some();
    match broadcast.channel.requested() {
        RequestedChannel::Only(channel) => errors.extend(on_channel(broadcast, channel, mails || channel == Channel::Email, now)),
        RequestedChannel::Auto => {
            errors.extend(on_channel(broadcast, Channel::Sms, false, now));
            if mails {
                errors.extend(on_channel(broadcast, Channel::Email, true, now));
            }
        }
    }
    if is_template(broadcast) && !broadcast.body.variables.is_empty() {
        errors.push(FieldError::new("variables", "are for texts; set values of a template in content.templateVariables"));
    }
    if is_template(broadcast) && broadcast.body.track_links {
        errors.push(FieldError::new("trackLinks", "must be false: a template keeps the links that its provider approved"));
    }
    let counted = links::of(broadcast).len();
    if counted > limits::COUNTED_LINKS {
        let most = limits::COUNTED_LINKS;
        errors
            .push(FieldError::new("trackLinks", format!("must be false: the content has {counted} links; at most {most} can be counted")));
    }
    for (field, text) in variables::texts(broadcast) {
        errors.extend(malformed(text).map(|fault| FieldError::new(field, fault)));
    }
    errors.extend(variables::check(&broadcast.body.variables, "variables"));
    errors.extend(safety::check(broadcast));
    check_metadata(broadcast.body.metadata.as_ref(), &mut errors);
    let mut seen = Vec::new();
    errors.retain(|error| {
        let new = !seen.contains(&error.path);
        seen.push(error.path.clone());
        new
    });
    errors
}

/// Removes content that the type or the channel of a broadcast does not use.
pub(super) fn drop_unused(broadcast: &mut Broadcast) {
    // What is wrong with the rest is reported by `check`.
    content::check(broadcast.message_type.message_type(), &mut broadcast.body.content, true, &mut Vec::new());
    if matches!(broadcast.channel.requested(), RequestedChannel::Only(channel) if channel != Channel::Email) {
        (broadcast.body.email_subject, broadcast.html) = (None, None);
    }
}

fn on_channel(broadcast: &Broadcast, channel: Channel, mails: bool, now: Timestamp) -> Vec<FieldError> {
    let mut command = message(broadcast);
    if mails {
        command.subject.clone_from(&broadcast.body.email_subject);
        command.html_body.clone_from(&broadcast.html);
    }
    let mut errors = validate::check(&mut command, channel, now, false);
    if !routing::carries(channel, broadcast.message_type.message_type()) {
        errors.push(FieldError::new("messageType", format!("channel {channel} cannot carry {}", broadcast.message_type)));
    }
    for error in &mut errors {
        match error.path.as_str() {
            "subject" => error.path = "emailSubject".to_owned(),
            "htmlBody" => error.path = "emailHtmlBody".to_owned(),
            _ => {}
        }
    }
    errors
}
