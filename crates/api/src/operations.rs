//! Every operation, and who may call it.

use std::collections::HashMap;

use axum::extract::MatchedPath;
use axum::http::{Method, Request};
use nuncio_domain::Permission;
use utoipa::openapi::path::{Operation as Documented, ParameterIn, PathItem};
use utoipa::openapi::{OpenApi, RefOr};

use crate::document::operation_id;

/// The permission that each operation needs, by the name of its handler; `None` admits every key.
///
/// The shell looks here before anything else of a request is read. An operation without a row is refused.
pub const OPERATIONS: &[(&str, Option<Permission>)] = &[
    ("send_message", Some(Permission::MessagesSend)),
    ("send_messages", Some(Permission::MessagesSend)),
    ("list_messages", Some(Permission::MessagesRead)),
    ("get_message", Some(Permission::MessagesRead)),
    ("cancel_message", Some(Permission::MessagesSend)),
    ("resolve_message", Some(Permission::MessagesSend)),
    ("react_to_message", Some(Permission::MessagesSend)),
    ("list_message_attachments", Some(Permission::MessagesRead)),
    ("list_message_receipts", Some(Permission::MessagesRead)),
    ("list_stray_receipts", Some(Permission::MessagesRead)),
    ("play_inbound", Some(Permission::MessagesSend)),
    ("create_contact", Some(Permission::ContactsWrite)),
    ("list_contacts", Some(Permission::ContactsRead)),
    ("list_contact_messages", Some(Permission::MessagesRead)),
    ("get_contact", Some(Permission::ContactsRead)),
    ("update_contact", Some(Permission::ContactsWrite)),
    ("delete_contact", Some(Permission::ContactsWrite)),
    ("get_contact_by_phone", Some(Permission::ContactsRead)),
    ("merge_contacts", Some(Permission::ContactsWrite)),
    ("dismiss_merge_suggestion", Some(Permission::ContactsWrite)),
    ("add_contact_channel", Some(Permission::ContactsWrite)),
    ("update_contact_channel", Some(Permission::ContactsWrite)),
    ("remove_contact_channel", Some(Permission::ContactsWrite)),
    ("make_contact_channel_primary", Some(Permission::ContactsWrite)),
    ("create_suppression", Some(Permission::ContactsWrite)),
    ("list_suppressions", Some(Permission::ContactsRead)),
    ("delete_suppression", Some(Permission::ContactsWrite)),
    ("introspect_phone", Some(Permission::ContactsRead)),
    ("introspect_email", Some(Permission::ContactsRead)),
    ("list_events", Some(Permission::MessagesRead)),
    ("list_webhook_deliveries", Some(Permission::WebhooksRead)),
    ("get_webhook_delivery", Some(Permission::WebhooksRead)),
    ("replay_webhook_delivery", Some(Permission::WebhooksWrite)),
    ("test_sender_webhook", Some(Permission::WebhooksWrite)),
    ("list_senders", Some(Permission::SendersRead)),
    ("create_sender", Some(Permission::SendersWrite)),
    ("get_sender", Some(Permission::SendersRead)),
    ("update_sender", Some(Permission::SendersWrite)),
    ("delete_sender", Some(Permission::SendersWrite)),
    ("get_sender_channel", Some(Permission::SendersRead)),
    ("put_sender_channel", Some(Permission::SendersWrite)),
    ("delete_sender_channel", Some(Permission::SendersWrite)),
    ("request_sender_channel_code", Some(Permission::SendersWrite)),
    ("verify_sender_channel", Some(Permission::SendersWrite)),
    ("get_sender_profile", Some(Permission::SendersRead)),
    ("update_sender_profile", Some(Permission::SendersWrite)),
    ("set_sender_profile_picture", Some(Permission::SendersWrite)),
    ("rotate_sender_webhook_secret", Some(Permission::WebhooksWrite)),
    ("get_webhook", Some(Permission::WebhooksRead)),
    ("put_webhook", Some(Permission::WebhooksWrite)),
    ("delete_webhook", Some(Permission::WebhooksWrite)),
    ("test_webhook", Some(Permission::WebhooksWrite)),
    ("rotate_webhook_secret", Some(Permission::WebhooksWrite)),
    ("get_balance", Some(Permission::MessagesRead)),
    ("list_phone_numbers", Some(Permission::NumbersRead)),
    ("list_available_phone_numbers", Some(Permission::NumbersRead)),
    ("acquire_phone_number", Some(Permission::NumbersWrite)),
    ("get_phone_number", Some(Permission::NumbersRead)),
    ("update_phone_number", Some(Permission::NumbersWrite)),
    ("release_phone_number", Some(Permission::NumbersWrite)),
    ("create_invitation", Some(Permission::InvitationsWrite)),
    ("list_invitations", Some(Permission::InvitationsRead)),
    ("get_invitation", Some(Permission::InvitationsRead)),
    ("cancel_invitation", Some(Permission::InvitationsWrite)),
    ("list_templates", Some(Permission::TemplatesRead)),
    ("get_template", Some(Permission::TemplatesRead)),
    ("create_template", Some(Permission::TemplatesWrite)),
    ("update_template", Some(Permission::TemplatesWrite)),
    ("delete_template", Some(Permission::TemplatesWrite)),
    ("submit_template", Some(Permission::TemplatesWrite)),
    ("list_broadcasts", Some(Permission::BroadcastsRead)),
    ("get_broadcast", Some(Permission::BroadcastsRead)),
    ("get_broadcast_progress", Some(Permission::BroadcastsRead)),
    ("list_broadcast_contacts", Some(Permission::BroadcastsRead)),
    ("create_broadcast", Some(Permission::BroadcastsWrite)),
    ("update_broadcast", Some(Permission::BroadcastsWrite)),
    ("delete_broadcast", Some(Permission::BroadcastsWrite)),
    ("add_broadcast_contacts", Some(Permission::BroadcastsWrite)),
    ("select_broadcast_contacts", Some(Permission::BroadcastsWrite)),
    ("get_broadcast_statistics", Some(Permission::BroadcastsRead)),
    ("import_broadcast_contacts", Some(Permission::BroadcastsWrite)),
    ("preview_broadcast", Some(Permission::BroadcastsRead)),
    ("test_broadcast", Some(Permission::MessagesSend)),
    ("clone_broadcast", Some(Permission::BroadcastsWrite)),
    ("estimate_broadcast", Some(Permission::BroadcastsRead)),
    ("export_broadcast_results", Some(Permission::BroadcastsRead)),
    ("delete_broadcast_contact", Some(Permission::BroadcastsWrite)),
    ("send_broadcast", Some(Permission::BroadcastsSend)),
    ("schedule_broadcast", Some(Permission::BroadcastsSend)),
    ("pause_broadcast", Some(Permission::BroadcastsSend)),
    ("resume_broadcast", Some(Permission::BroadcastsSend)),
    ("cancel_broadcast", Some(Permission::BroadcastsSend)),
    ("escalate_broadcast", Some(Permission::BroadcastsSend)),
    ("retry_broadcast_review", Some(Permission::BroadcastsSend)),
    ("get_me", None),
];

/// Those that read from a provider: they wait for it, not for the database.
pub(crate) const READ_FROM_PROVIDERS: &[&str] = &["get_sender_profile"];

/// Those that are not GET and leave no entry in the audit log, since no configuration changes: messages are sent, or something is worked out.
pub const NOT_AUDITED: &[&str] = &[
    "send_message",
    "send_messages",
    "react_to_message",
    "play_inbound",
    "test_broadcast",
    "introspect_phone",
    "introspect_email",
    "preview_broadcast",
];

/// What the shell must know of an operation.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Operation {
    pub(crate) id: &'static str,
    pub(crate) permission: Option<Permission>,
    /// Whether it documents query parameters; one that does not takes none.
    pub(crate) has_query: bool,
    /// Whether it is a read that the database answers, and so takes a place among the reads of its environment.
    pub(crate) reads_database: bool,
    /// Whether what it changes is recorded in the audit log.
    pub(crate) is_audited: bool,
}

/// The operations by path template and method.
#[derive(Debug)]
pub(crate) struct Operations(HashMap<String, Vec<(Method, Operation)>>);

impl Operations {
    pub(crate) fn of(document: &OpenApi) -> Self {
        let of_path = |item: &PathItem| {
            by_method(item)
                .into_iter()
                .filter_map(|(method, documented)| {
                    let operation = known(&method, documented)?;
                    Some((method, operation))
                })
                .collect()
        };
        Self(document.paths.paths.iter().map(|(path, item)| (path.clone(), of_path(item))).collect())
    }

    /// The operation that a request is for, once it was routed.
    pub(crate) fn find<B>(&self, request: &Request<B>) -> Option<Operation> {
        let path = request.extensions().get::<MatchedPath>()?;
        // A HEAD request is served by the handler of GET.
        let method = if request.method() == Method::HEAD { &Method::GET } else { request.method() };
        self.0.get(path.as_str())?.iter().find(|(m, _)| m == method).map(|(_, operation)| *operation)
    }
}

fn known(method: &Method, documented: &Documented) -> Option<Operation> {
    let id = documented.operation_id.as_deref()?;
    let (id, permission) = *OPERATIONS.iter().find(|(handler, _)| operation_id(handler) == id)?;
    let has_query = documented.parameters.iter().flatten().any(|p| matches!(p, RefOr::T(p) if p.parameter_in == ParameterIn::Query));
    let reads_database = method == Method::GET && !READ_FROM_PROVIDERS.contains(&id);
    let is_audited = method != Method::GET && !NOT_AUDITED.contains(&id);
    Some(Operation { id, permission, has_query, reads_database, is_audited })
}

fn by_method(item: &PathItem) -> Vec<(Method, &Documented)> {
    let PathItem { get, post, put, patch, delete, .. } = item;
    let all = [(Method::GET, get), (Method::POST, post), (Method::PUT, put), (Method::PATCH, patch), (Method::DELETE, delete)];
    all.into_iter().filter_map(|(method, operation)| Some((method, operation.as_ref()?))).collect()
}
