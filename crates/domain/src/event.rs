//! Types of events in the event log.

use crate::channel::named;

named! {
    /// Kind of resource an event is about.
    ResourceKind {
        Message = 1 "message",
        Contact = 2 "contact",
        Broadcast = 3 "broadcast",
        Template = 4 "template",
        Invitation = 5 "invitation",
        /// A test of a webhook.
        Webhook = 6 "webhook",
    }
}

named! {
    /// Type of an event in webhooks and the event log.
    EventType {
        /// A message was accepted.
        MessageQueued "message.queued",
        /// Its first attempt started.
        MessageSending "message.sending",
        /// A provider accepted it.
        MessageSent "message.sent",
        MessageDelivered "message.delivered",
        MessageRead "message.read",
        /// It failed permanently, or was cancelled.
        MessageFailed "message.failed",
        /// An inbound message arrived.
        MessageInbound "message.inbound",
        /// The first inbound message of a contact, or the first after 24 hours of silence.
        ConversationNew "conversation.new",
        BroadcastStatusChanged "broadcast.status_changed",
        TemplateStatusChanged "template.status_changed",
        InvitationStatusChanged "invitation.status_changed",
        /// Two contacts were merged.
        ContactMerged "contact.merged",
        ContactOptedOut "contact.opted_out",
        /// A webhook was tested.
        WebhookTest "webhook.test",
    }
}
